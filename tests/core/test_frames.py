"""Frames go out in the library in which they came in, and nothing is loaded that nobody chose."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant
from calibrant.core.frames import as_frame

Y = np.array([0, 1, 1, 0, 1, 1] * 20)
P = np.array([0.1, 0.8, 0.6, 0.3, 0.5, 0.9] * 20)
MAKERS = {
    "pandas": (pd.Series, pd.DataFrame),
    "polars": (lambda values: pl.Series(list(values)), pl.DataFrame),
    "pyarrow": (pa.array, pa.Table),
}


@pytest.mark.parametrize("library", MAKERS)
def test_frames_out_follow_columns_in(library):
    column, frame = MAKERS[library]
    found = calibrant.measure(column(Y), column(P))
    other = calibrant.measure(Y, P)  # what comes later changes nothing
    assert isinstance(found.frame(), frame)
    assert isinstance(other.frame(), pd.DataFrame)  # loaded, and tried first
    assert found == other


@pytest.mark.parametrize("library", MAKERS)
def test_a_result_that_is_made_of_another_takes_its_fields_alone(library):
    column, _ = MAKERS[library]
    found = calibrant.decisions.risk_gap_curve(column(Y), column(P))
    assert found == calibrant.decisions.risk_gap_curve(Y, P)


@pytest.mark.parametrize("library", MAKERS)
def test_frames_out_follow_a_scanned_frame(library):
    frame = MAKERS[library][1]
    table = as_frame({"y": Y, "p": P, "g": Y}, library)
    with calibrant.scan(table, y_true="y", y_prob="p", by="g") as groups:
        assert isinstance(calibrant.measure(groups).frame(), frame)


@pytest.mark.parametrize("library", MAKERS)
@pytest.mark.parametrize("by_name", [True, False])
def test_a_library_can_be_chosen(library, by_name):
    found = calibrant.measure(Y, P)
    backend = library if by_name else sys.modules[library]
    assert isinstance(found.frame(backend), MAKERS[library][1])
    assert isinstance(found.frame(backend=backend), MAKERS[library][1])


def test_other_libraries_go_through_narwhals():
    with pytest.raises(calibrant.InputError, match=r"^backend is 'nothing_of_the_kind', .*; choose one of pandas, "):
        calibrant.measure(Y, P).frame("nothing_of_the_kind")
    with pytest.raises(calibrant.InputError, match=r"^backend is 7, "):
        calibrant.measure(Y, P).frame(7)


def test_a_library_that_narwhals_would_be_needed_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(ImportError, match="frames of modin need narwhals"):
        calibrant.measure(Y, P).frame("modin")


def test_where_pandas_is_not_loaded_it_is_not_loaded_for_a_frame():
    script = (
        "import sys, polars, calibrant; found = calibrant.measure([0, 1] * 50, [0.2, 0.8] * 50).frame(); "
        "assert isinstance(found, polars.DataFrame); assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)

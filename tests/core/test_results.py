"""Results: frozen, readable, and plain enough for a file."""

import dataclasses
import functools
import math
import operator
import sys
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from brute_force import rows
from hypothesis import given, settings
from public_names import EVERYWHERE, public
from result_cases import EDGE_CASES, RESULTS, Y_PROB, Y_TRUE, result_of, tally
from scipy.stats import binom
from sklearn.metrics import brier_score_loss

import calibrant
from calibrant import Tally
from calibrant.certificates import GroupCertificates, RiskBands
from calibrant.core.codec import derived
from calibrant.core.laws import brownian_range
from calibrant.core.results import Result
from calibrant.measures import (
    CalibrationDistance,
    CalibrationSlope,
    CurveErrors,
    Measures,
    Relation,
    Spectrum,
    Witness,
    WorstInterval,
)
from calibrant.measures.registry import MEASURES

EVERY_RESULT = pytest.mark.parametrize("result", RESULTS, indirect=True)
EVERY_EDGE_CASE = pytest.mark.parametrize("edge_case", EDGE_CASES, indirect=True)


@pytest.fixture
def result(request):
    return result_of(request.param)


@pytest.fixture
def edge_case(request):
    return EDGE_CASES[request.param]()


def test_the_table_of_results_is_complete():
    everything = [public(name) for name in EVERYWHERE]
    kinds = {kind for kind in everything if isinstance(kind, type) and issubclass(kind, Result)}
    assert {type(result_of(name)) for name in RESULTS} == kinds == set(derived(Result))


# --- Frozen -----------------------------------------------------------------------------------------------------------


@EVERY_RESULT
def test_results_are_frozen(result):
    for field in dataclasses.fields(result):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(result, field.name, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.comment = "mine"


def test_a_tally_is_frozen():
    frozen: Any = tally()
    with pytest.raises(dataclasses.FrozenInstanceError):
        frozen.rows = None


@pytest.mark.parametrize("name", ["smooth Witness", "bounded Witness"])
def test_changing_the_arrays_of_a_witness_leaves_the_tally_alone(name):
    tally = Tally.from_arrays(Y_TRUE, Y_PROB)
    function = (
        calibrant.measures.smooth_witness if name == "smooth Witness" else calibrant.measures.bounded_variation_witness
    )
    witness = function(tally)
    with pytest.raises(ValueError, match="read-only"):
        witness.forecast[0] = 0.125
    assert tally.forecast.tolist() == [0.25, 0.5, 0.75]


def test_the_same_data_give_equal_results():
    assert calibrant.measure(Y_TRUE, Y_PROB) == calibrant.measure(Y_TRUE[::-1], Y_PROB[::-1])
    assert calibrant.measure(Y_TRUE, Y_PROB) != calibrant.measure(Y_TRUE, Y_PROB[::-1])


# --- Text and HTML ----------------------------------------------------------------------------------------------------


def test_the_worst_interval_says_where_forecasts_are_too_high():
    interval = calibrant.worst_interval([0, 0, 1, 1] * 200, [0.1, 0.6, 0.6, 0.7] * 200)
    text = str(interval)
    assert text.startswith("Forecasts between 0.1 and 0.6 are too high by 10.0 percentage points on average")
    assert "600 rows (75.0% of all rows)" in text
    assert "the mean forecast is 43.3% and the event rate is 33.3%" in text
    assert "7.50 per 100 rows (Cutoff error 0.07500)" in text
    assert interval.where() == (
        "Forecasts between 0.1 and 0.6 (75.0% of all rows) are 10.0 points too high on average: 7.50 per 100 rows."
    )


def test_the_worst_interval_says_where_forecasts_are_too_low():
    text = str(calibrant.worst_interval([0, 1, 1, 1] * 100, [0.25, 0.25, 0.5, 0.75] * 100))
    assert text.startswith("Forecasts between 0.25 and 0.75 are too low by 31.2 percentage points on average")
    assert "400 rows (100.0% of all rows)" in text
    assert "the mean forecast is 43.8% and the event rate is 75.0%" in text
    assert "0.31250" in text


def test_what_chance_shows_is_called_so():
    interval = calibrant.worst_interval([0, 0, 1, 1], [0.1, 0.6, 0.6, 0.7])
    assert interval.within_chance
    assert interval.where() == (
        "No interval is off by more than chance shows. The largest deviation is on forecasts between 0.1 and 0.6 "
        "(75.0% of all rows): 10.0 points too high."
    )
    assert str(interval).startswith("No interval of forecasts is off by more than chance shows. ")
    # n calibrated rows exceed the chance in one case of twenty, by the large-sample law
    p = np.random.default_rng(0).random(2000)
    far = [not calibrant.worst_interval(y, p).within_chance for y in np.random.default_rng(1).random((400, 2000)) < p]
    assert binom.sf(sum(far) - 1, 400, 0.05) > 1e-4
    assert binom.cdf(sum(far), 400, 0.05) > 1e-4
    weighted = calibrant.worst_interval(p < 0.5, p, sample_weight=np.full(2000, 3.0))
    assert weighted.chance == pytest.approx(calibrant.worst_interval(p < 0.5, p).chance, rel=1e-12)
    assert weighted.chance == pytest.approx(brownian_range.isf(0.05) * np.sqrt((p * (1 - p)).sum()) / 2000, rel=1e-4)


@pytest.mark.parametrize("law", ["alike", "spread", "rare without"])
def test_few_events_or_none_are_no_more_than_chance_shows(law):
    rng, rows, count = np.random.default_rng(5), 400, 400
    weight = np.ones(rows) if law == "alike" else rng.beta(0.5, 2.0, rows)
    for expected in (0.02, 0.06, 0.15, 0.4, 1.0, 2.0, 4.0):
        p = expected * weight / weight.sum()
        p = 1.0 - p if law == "rare without" else p
        far = [not calibrant.worst_interval(y.astype(float), p).within_chance for y in rng.random((count, rows)) < p]
        assert sum(far) <= binom.isf(1e-4, count, 0.07), expected
    assert not calibrant.worst_interval(np.arange(rows) < 12, np.full(rows, 0.01)).within_chance  # it can tell


def test_the_worst_interval_says_when_nothing_is_off():
    interval = calibrant.worst_interval([0, 1, 0, 1], [0.5, 0.5, 0.0, 1.0])
    assert (interval.direction, interval.error) == ("none", 0.0)
    assert str(interval) == "No interval of forecasts is off: on every one the mean forecast equals the mean outcome."


def test_the_worst_interval_of_one_forecast_is_not_called_an_interval():
    interval = calibrant.worst_interval([0, 0, 1, 0, 1] * 100, [0.5, 0.5, 0.5, 0.0, 1.0] * 100)
    assert interval.low == interval.high == 0.5
    assert str(interval).startswith("Forecasts of exactly 0.5 are too high by 16.7 percentage points on average")
    assert "between" not in str(interval)


def test_the_worst_interval_speaks_of_weight_when_rows_are_weighted():
    text = str(calibrant.worst_interval([0, 0, 1], [0.25, 0.5, 0.5], sample_weight=[1.0, 8.0, 3.0]))
    assert "on these 3 rows (100.0% of the weight)" in text
    # also where the weights inside happen to add up to the number of rows
    text = str(calibrant.worst_interval([0, 0, 1], [0.25, 0.5, 0.5], sample_weight=[0.5, 1.5, 1.0]))
    assert "of the weight" in text


def test_the_worst_interval_of_one_row_reads_well():
    assert "1 rows" not in str(calibrant.worst_interval([1], [0.25]))


@pytest.mark.parametrize("ends", [(0.99996, 0.99997), (0.500001, 0.500002), (1e-9, 2e-9)], ids=str)
def test_ends_that_differ_are_written_differently(ends):
    interval = calibrant.worst_interval([0, 0] if ends[0] > 0.1 else [1, 1], list(ends))
    assert (interval.low, interval.high) == ends
    low, high = str(interval).partition(" between ")[2].replace(" are ", ":").split(":")[0].split(" and ")
    assert float(low) < float(high)
    assert float(high) < 1.0


def test_the_bias_of_the_worst_interval_is_outcome_minus_forecast():
    interval = calibrant.worst_interval([0, 0, 1, 1], [0.1, 0.6, 0.6, 0.7])
    assert interval.bias == interval.mean_outcome - interval.mean_forecast == pytest.approx(-0.1)
    assert interval.error == pytest.approx(abs(interval.bias) * interval.share)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (
            CalibrationDistance(low=0.05, high=0.25, low_from="mean bias", high_from="ECE plug-in"),
            "distance from calibration between 0.05000 (mean bias) and 0.25000 (ECE plug-in)",
        ),
        (
            CalibrationSlope(slope=0.9, intercept=-0.1, intercept_at_unit_slope=0.25),
            "calibration slope 0.9000, intercept -0.1000 (with the slope held at 1: 0.2500)",
        ),
        (
            CurveErrors(ici=0.1, e50=0.05, e90=0.2, emax=0.5, eci=1.5, smoother="loess"),
            "ICI 0.10000, E50 0.05000, E90 0.20000, Emax 0.50000, ECI 1.50000 (loess)",
        ),
        (Relation("KS <= Cutoff", 0.25, 0.5, True, "here"), "KS <= Cutoff: 0.25 <= 0.5 holds (here)"),
        (Relation("KS <= Cutoff", 0.75, 0.5, False, "here"), "KS <= Cutoff: 0.75 <= 0.5 FAILS (here)"),
        (
            Witness(forecast=np.arange(1234) / 1234, weight=np.ones(1234), value=0.125),
            "weight function on 1,234 forecasts that attains 0.125",
        ),
        (
            Spectrum(variation=np.array([0.0, 2.0, 6.0]), error=np.array([0.125, 0.25, 0.5])),
            "calibration error from 0.125 (constant weights) to 0.5 (all weights, reached at total variation 6)",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_small_results_read_as_one_line(result, text):
    assert str(result) == text


@pytest.mark.parametrize("name", ["smooth Witness", "Spectrum", "Measures with spectrum"])
def test_results_with_arrays_do_not_print_them(name):
    assert repr(RESULTS[name]) == str(RESULTS[name])
    assert "array(" not in repr(RESULTS[name])


def test_the_repr_of_a_small_result_names_its_fields():
    assert repr(calibrant.worst_interval(tally())).startswith("WorstInterval(low=")


def written(name, value):
    """Five digits, the nearest ones, but for the ends of an interval, which are rounded outwards."""
    scaled = {"distance.low": math.floor, "distance.high": math.ceil}.get(name)
    return f"{value:.5f}" if scaled is None else f"{scaled(Fraction(value) * 10**5) / 10**5:.5f}"


def test_measures_read_as_a_table():
    result = calibrant.measure(Y_TRUE, Y_PROB)
    lines = str(result).splitlines()
    assert lines[0] == "40 rows, 3 distinct forecasts, mean forecast 50.0%, event rate 50.0%"
    for (name, value, meaning), line in zip(result.table(), lines[1:], strict=False):
        assert line.split()[:2] == [name, written(name, value)]
        assert line.endswith(meaning)
    assert str(result.worst_interval) in lines
    assert f"{len(result.relations)} relations between the measures checked, all hold." in lines


def test_what_the_table_prints_is_what_attributes_are_called_in_python_and_in_json():
    result = calibrant.measure(Y_TRUE, Y_PROB)
    for name, value, _ in result.table():
        assert operator.attrgetter(name)(result) == value
        assert functools.reduce(operator.getitem, name.split("."), result.to_dict()) == value
    for name in MEASURES:  # what certify takes, too
        assert hasattr(result, name)


def test_measures_of_weighted_rows_say_what_they_weigh():
    result = calibrant.measure([0, 1, 1], [0.25, 0.5, 0.5], sample_weight=[0.5, 0.25, 0.5])
    assert str(result).startswith("3 rows, total weight 1.25, 2 distinct forecasts")


def test_measures_say_how_many_rows_the_slope_leaves_out():
    y_prob = [0.0, 0.0, 0.2, 0.3, 0.6, 0.7, 1.0]
    found = calibrant.measure([0, 0, 0, 1, 0, 1, 1], y_prob)
    assert found.slope is not None
    assert found.slope.left_out == 3
    assert "below 1: forecasts too extreme; 3 rows at 0 or 1 left out\n" in str(found)
    assert "below 1: forecasts too extreme\n" in str(calibrant.measure([0, 1, 0, 1], y_prob[2:6]))


def test_measures_show_a_dash_for_what_is_undefined_and_say_which_relations_fail():
    broken = Relation("KS <= Cutoff", 0.75, 0.5, False, "here")
    undefined = dataclasses.replace(
        calibrant.measure(tally()), slope=None, observed_expected_ratio=None, relations=(broken,)
    )
    text = str(undefined)
    dashed = [line.split()[0] for line in text.splitlines() if line.split()[1:2] == ["-"]]
    assert dashed == ["observed_expected_ratio", "slope.slope", "slope.intercept", "slope.intercept_at_unit_slope"]
    assert "1 relations between the measures checked, 1 FAIL:" in text
    assert str(broken) in text.splitlines()
    assert undefined._repr_html_().count("<td>-</td>") == 4


class Reader(HTMLParser):
    """Collects the tags and the text that a browser would see."""

    def __init__(self, page):
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, _attrs):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data + "\n"


@EVERY_RESULT
def test_html_is_well_formed_and_says_what_the_text_says(result):
    reader = Reader(result._repr_html_())
    assert set(reader.tags) <= {"p", "pre", "table", "tbody", "thead", "tr", "th", "td"}
    if isinstance(result, Measures):
        for name, value, meaning in result.table():
            assert f"{name}\n{written(name, value)}\n{meaning}" in reader.text
        assert str(result.worst_interval) in reader.text
    else:
        assert str(result) in reader.text


HOSTILE = "<script>alert('x')</script> & \"more\""


HOSTILE_RESULTS = {
    "note": lambda: dataclasses.replace(result_of("Measures"), notes=(HOSTILE,)),
    "relation of measures": lambda: dataclasses.replace(
        result_of("Measures"), relations=(Relation(HOSTILE, 1.0, 0.0, False, HOSTILE),)
    ),
    "relation": lambda: Relation(HOSTILE, 0.0, 1.0, True, HOSTILE),
    "distance": lambda: CalibrationDistance(low=0.0, high=1.0, low_from=HOSTILE, high_from=HOSTILE),
    "note of a certificate": lambda: dataclasses.replace(result_of("certified Certificate"), notes=(HOSTILE,)),
    "group": lambda: dataclasses.replace(result_of("GroupCertificates"), groups=("a", HOSTILE)),
    "assumption": lambda: dataclasses.replace(result_of("ConfidenceInterval"), assumptions=(HOSTILE,)),
    "note of a test": lambda: dataclasses.replace(result_of("exact CalibrationTest"), notes=(HOSTILE,)),
}


@pytest.mark.parametrize("name", HOSTILE_RESULTS)
def test_html_escapes_what_it_shows(name):
    page = HOSTILE_RESULTS[name]()._repr_html_()
    assert "<script" not in page
    assert HOSTILE in Reader(page).text


# --- Frames -----------------------------------------------------------------------------------------------------------

FRAMES = {
    "Measures": ["measure", "value", "meaning"],
    "smooth Witness": ["forecast", "weight"],
    "Spectrum": ["variation", "error"],
    "GroupCertificates": ["group", "rows", "estimate", "lower", "upper", "verdict", "upper_for_joint_verdict"],
    "RiskBands without empty ones": [field.name for field in dataclasses.fields(RiskBands)[:10]],
}
WITH_FRAME = pytest.mark.parametrize(("result", "columns"), FRAMES.items(), ids=FRAMES, indirect=["result"])


def expected_columns(result):
    if isinstance(result, Measures):
        return [list(column) for column in zip(*result.table(), strict=True)]
    if isinstance(result, GroupCertificates):
        names = ("rows", "estimate", "lower", "upper", "verdict")
        columns = [[getattr(each, name) for each in result.certificates] for name in names]
        return [list(result.groups), *columns, list(result.upper)]
    arrays = [getattr(result, field.name) for field in dataclasses.fields(result)]
    return [array.tolist() for array in arrays if isinstance(array, np.ndarray)]


@WITH_FRAME
def test_a_frame_is_a_pandas_frame_where_pandas_is_installed(result, columns):
    frame = result.frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == columns
    assert [frame[name].tolist() for name in columns] == expected_columns(result)


@WITH_FRAME
def test_a_frame_is_a_polars_frame_where_only_polars_is_installed(monkeypatch, result, columns):
    monkeypatch.setitem(sys.modules, "pandas", None)
    frame = result.frame()
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == columns
    assert [frame[name].to_list() for name in columns] == expected_columns(result)


@WITH_FRAME
def test_a_frame_without_any_library_names_them(monkeypatch, result, columns):
    assert list(result.frame().columns) == columns
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"frame\(\) needs pandas, polars or pyarrow; .*pip install pandas"):
        result.frame()


def test_undefined_numbers_are_missing_in_a_frame(monkeypatch):
    result = calibrant.measure([0, 0], [0.0, 0.0])
    frame = result.frame().set_index("measure")["value"]
    undefined = ["observed_expected_ratio", "slope.slope", "slope.intercept", "slope.intercept_at_unit_slope"]
    assert frame[frame.isna()].index.tolist() == undefined
    monkeypatch.setitem(sys.modules, "pandas", None)
    polars_frame = result.frame()
    assert polars_frame["measure"].filter(polars_frame["value"].is_null()).to_list() == undefined


# --- The spectrum -----------------------------------------------------------------------------------------------------


def test_the_spectrum_is_read_between_and_beyond_its_knots():
    spectrum = Spectrum(variation=np.array([0.0, 2.0, 6.0]), error=np.array([0.125, 0.25, 0.375]))
    assert [spectrum.at(m) for m in (0, 1, 2, 4, 6, 100, math.inf)] == [
        0.125,
        0.1875,
        0.25,
        0.3125,
        0.375,
        0.375,
        0.375,
    ]


@pytest.mark.parametrize("variation", [-1.0, float("nan"), "2", None], ids=repr)
def test_the_spectrum_refuses_what_is_no_variation(variation):
    spectrum = Spectrum(variation=np.array([0.0, 2.0]), error=np.array([0.125, 0.25]))
    with pytest.raises(ValueError, match="variation must be a number"):
        spectrum.at(variation)


# --- Measures ---------------------------------------------------------------------------------------------------------


def binned(tally):
    return calibrant.expected_calibration_error(tally, n_bins=15)


def plug_in(tally):
    with pytest.warns(calibrant.CalibrationWarning):  # as the notes of `measure` say
        return calibrant.expected_calibration_error(tally)


SINGLY: dict[str, Any] = {
    "cutoff": calibrant.cutoff_calibration_error,
    "ks": calibrant.measures.ks_calibration_error,
    "smooth": calibrant.smooth_calibration_error,
    "bounded_variation": lambda tally: calibrant.measures.bounded_variation_calibration_error(tally, variation=2),
    "ece": plug_in,
    "ece_binned": binned,
    "distance.low": lambda tally: calibrant.distance_from_calibration(tally).low,
    "distance.high": lambda tally: calibrant.distance_from_calibration(tally).high,
    "calibration_in_the_large": calibrant.measures.calibration_in_the_large,
    "observed_expected_ratio": calibrant.measures.observed_expected_ratio,
    "slope.slope": lambda tally: calibrant.measures.calibration_slope_intercept(tally).slope,
    "slope.intercept": lambda tally: calibrant.measures.calibration_slope_intercept(tally).intercept,
    "slope.intercept_at_unit_slope": lambda tally: (
        calibrant.measures.calibration_slope_intercept(tally).intercept_at_unit_slope
    ),
    "curve.ici": lambda tally: calibrant.measures.integrated_calibration_index(tally).ici,
    "curve.e50": lambda tally: calibrant.measures.integrated_calibration_index(tally).e50,
    "curve.e90": lambda tally: calibrant.measures.integrated_calibration_index(tally).e90,
}


def sample(seed, size=300):
    """Forecasts that repeat now and then, outcomes and weights to go with them."""
    rng = np.random.default_rng(seed)
    y_prob = rng.random(size).round(2).clip(0.01, 0.99)
    y_true = (rng.random(size) < y_prob**1.5).astype(float)
    return y_true, y_prob, rng.exponential(size=size)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_every_number_of_the_table_is_what_its_own_function_gives(weighted, fractional):
    y_true, y_prob, weight = sample(1)
    if fractional:
        y_true = 0.5 * y_true + 0.25
    tally = Tally.from_arrays(y_true, y_prob, sample_weight=weight if weighted else None)
    result = calibrant.measure(tally)
    table = {name: value for name, value, _ in result.table()}
    brier, gap = table.pop("brier"), table.pop("risk_gap")
    assert gap == pytest.approx(calibrant.decisions.risk_gap_curve(tally).largest_gap, abs=1e-14)
    assert table == pytest.approx({name: function(tally) for name, function in SINGLY.items()}, rel=1e-14)
    assert brier == pytest.approx(np.average((y_true - y_prob) ** 2, weights=weight if weighted else None), abs=1e-14)
    assert result.worst_interval == calibrant.worst_interval(tally)
    assert result.distance == calibrant.distance_from_calibration(tally)
    assert result.slope == calibrant.measures.calibration_slope_intercept(tally)
    assert result.curve == calibrant.measures.integrated_calibration_index(tally)
    assert result.effective_support == calibrant.measures.effective_support_size(tally)


def test_rows_totals_and_means_are_those_of_the_data():
    y_true, y_prob, weight = sample(2)
    result = calibrant.measure(y_true, y_prob, sample_weight=weight)
    assert (result.rows, result.distinct_forecasts) == (300, np.unique(y_prob).size)
    assert result.weight_total == pytest.approx(weight.sum(), rel=1e-14)
    assert result.mean_forecast == pytest.approx(np.average(y_prob, weights=weight), abs=1e-14)
    assert result.mean_outcome == pytest.approx(np.average(y_true, weights=weight), abs=1e-14)
    assert result.brier == pytest.approx(brier_score_loss(y_true, y_prob, sample_weight=weight), abs=1e-14)


def test_arrays_and_their_tally_give_the_same_measures():
    y_true, y_prob, weight = sample(3)
    whole = calibrant.measure(y_true, y_prob, sample_weight=weight)
    assert whole == calibrant.measure(Tally.from_arrays(y_true, y_prob, sample_weight=weight))
    labels = np.where(y_true == 1, "late", "fine")
    assert whole == calibrant.measure(labels, y_prob, sample_weight=weight, pos_label="late")


def test_nearly_continuous_forecasts_earn_a_note_and_not_a_warning():
    y_true, y_prob, _ = sample(4)
    result = calibrant.measure(y_true, y_prob)  # a warning would fail this test
    (note,) = result.notes
    assert "300 of 300 rows share theirs with fewer than 10 rows" in note
    assert f"Note: {note}" in str(result)
    with pytest.warns(calibrant.CalibrationWarning, match="mostly measures noise") as caught:
        calibrant.expected_calibration_error(y_true, y_prob)
    assert str(caught[0].message) == note
    assert caught[0].filename == __file__  # it points at the caller's line


def test_forecasts_that_repeat_earn_no_note():
    assert calibrant.measure(Y_TRUE, Y_PROB).notes == ()


@pytest.mark.parametrize(
    ("y_true", "y_prob", "reason"),
    [
        ([0] * 10 + [1] * 10, [0.25] * 10 + [0.75] * 10, "separate the outcomes perfectly"),
        ([0] * 20, [0.25] * 10 + [0.75] * 10, "every outcome that counts here is 0"),
        ([1] * 20, [0.25] * 10 + [0.75] * 10, "every outcome that counts here is 1"),
        ([0, 1] * 10, [0.5] * 20, "at least two distinct forecasts strictly between 0 and 1"),
        ([0, 1] * 10, [0.0] * 10 + [0.5] * 10, "at least two distinct forecasts strictly between 0 and 1"),
        ([0, 1] * 10, [1.0] * 10 + [0.5] * 10, "at least two distinct forecasts strictly between 0 and 1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_where_no_slope_exists_a_note_says_why(y_true, y_prob, reason):
    result = calibrant.measure(y_true, y_prob)
    assert result.slope is None
    note, *hints = result.notes
    assert ["perhaps another column" in hint for hint in hints] == [True] * (len(set(y_true)) == 1)
    assert note.startswith("no calibration slope: ")
    assert reason in note
    with pytest.raises(ValueError, match=reason):
        calibrant.measures.calibration_slope_intercept(y_true, y_prob)


@pytest.mark.parametrize("rarity", [1e-3, 1e-8, 1e-17, 1e-300])
def test_rare_events_keep_the_digits_of_their_forecasts(rarity):
    y_true, y_prob = [0] * 99 + [1], [rarity] * 50 + [3 * rarity] * 50
    result = calibrant.measure(y_true, y_prob)
    assert result.mean_forecast == pytest.approx(2 * rarity, rel=1e-12, abs=0)
    assert result.observed_expected_ratio == pytest.approx(0.01 / (2 * rarity), rel=1e-12, abs=0)


def test_no_ratio_exists_where_no_event_is_expected():
    assert calibrant.measure([0, 1], [0.0, 0.0]).observed_expected_ratio is None
    with pytest.raises(ValueError, match="y_prob is 0 everywhere"):
        calibrant.measures.observed_expected_ratio([0, 1], [0.0, 0.0])


def test_the_spectrum_comes_on_request():
    y_true, y_prob, weight = sample(5)
    assert calibrant.measure(y_true, y_prob).spectrum is None
    result = calibrant.measure(y_true, y_prob, sample_weight=weight, spectrum=True)
    alone = calibrant.measures.bounded_variation_spectrum(y_true, y_prob, sample_weight=weight)
    assert result.spectrum is not None
    assert result.spectrum.variation.tolist() == alone.variation.tolist()
    assert result.spectrum.error.tolist() == alone.error.tolist()
    assert result.spectrum.at(0) == pytest.approx(abs(result.calibration_in_the_large), abs=1e-14)
    assert result.spectrum.at(2) == pytest.approx(result.bounded_variation, abs=1e-14)
    assert result.spectrum.at(math.inf) == pytest.approx(result.ece, abs=1e-14)


@given(rows())
@settings(max_examples=60)
def test_every_relation_holds_on_random_data(data):
    y_true, y_prob, weight = data
    result = calibrant.measure(Tally.from_arrays(y_true, y_prob, sample_weight=weight))
    assert [str(relation) for relation in result.relations if not relation.holds] == []
    assert all(relation.left <= relation.right + 1e-12 for relation in result.relations)
    assert "all hold." in str(result)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_every_relation_holds_on_larger_samples(seed, fractional, weighted):
    y_true, y_prob, weight = sample(seed, size=2000)
    if fractional:
        y_true = np.random.default_rng(seed).random(y_true.size)
    result = calibrant.measure(y_true, y_prob, sample_weight=weight if weighted else None)
    assert [str(relation) for relation in result.relations if not relation.holds] == []


def test_relations_state_the_measures_they_compare():
    result = calibrant.measure(*sample(6)[:2])
    sides = {relation.statement: (relation.left, relation.right) for relation in result.relations}
    assert len(sides) == len(result.relations)
    assert sides["KS <= Cutoff"] == (result.ks, result.cutoff)
    assert sides["Cutoff <= 2 KS"] == (result.cutoff, 2 * result.ks)
    assert sides["Cutoff <= ECE"] == (result.cutoff, result.ece)
    assert sides["Cutoff <= error for variation 2"] == (result.cutoff, result.bounded_variation)
    assert sides["smooth <= 1.5 Cutoff"] == (result.smooth, 1.5 * result.cutoff)
    assert sides["upper end of dCE <= ECE"] == (result.distance.high, result.ece)
    assert all(relation.source for relation in result.relations)


def test_a_relation_that_fails_would_be_seen():
    broken = Relation("KS <= Cutoff", 0.75, 0.5, False, "here")
    result = dataclasses.replace(calibrant.measure(tally()), relations=(*calibrant.measure(tally()).relations, broken))
    assert f"{len(result.relations)} relations between the measures checked, 1 FAIL:" in str(result)


@EVERY_EDGE_CASE
def test_edge_cases_are_measured_and_printed_without_warnings(edge_case):
    result = calibrant.measure(edge_case, spectrum=True)
    assert all(relation.holds for relation in result.relations)
    assert 0.0 <= result.distance.low <= result.distance.high <= 1.0
    assert 0.0 <= result.ks <= result.cutoff <= 1.0
    assert "nan" not in str(result).lower()
    assert "nan" not in result._repr_html_().lower()


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.5, "50.0%"), (0.0, "0.0%"), (1.0, "100.0%"), (0.001, "0.10%"), (0.9999, "99.99%"), (0.01, "1.0%")],
)
def test_percentages_have_as_many_digits_as_they_deserve(share, text):
    interval = WorstInterval(
        low=0.25,
        high=0.75,
        direction="too low",
        error=0.25,
        rows=4,
        weight=4.0,
        share=share,
        mean_forecast=0.25,
        mean_outcome=0.5,
        unit_weights=True,
        chance=0.125,
    )
    assert f"({text} of" in str(interval)

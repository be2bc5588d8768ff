"""What the gate lets through, and what it refuses: one test per kind of input, one asserted message per rule."""

import array
import datetime
import fractions
import inspect
import re
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from public_names import EVERYWHERE, HOME, public

import calibrant
from calibrant import Cells, Tally
from calibrant.rows.checks import label_places
from calibrant.rows.tally import ADDITIVE

# Eighths are exact in every float type, half precision included. Two forecasts repeat, and both ends occur.
FORECASTS = [0.25, 0.875, 0.25, 0.0, 1.0, 0.5, 0.625, 0.5]
OUTCOMES = [0, 1, 1, 0, 1, 0, 1, 1]
FRACTIONS = [0.125, 0.75, 0.5, 0.0, 1.0, 0.25, 0.625, 0.375]
WEIGHTS = [0.5, 2.0, 1.0, 3.0, 0.25, 1.5, 0.0, 4.0]
WHOLE_WEIGHTS = [1, 2, 3, 0, 1, 5, 2, 1]

SHUFFLED = [5, 2, 7, 0, 3, 6, 1, 4]  # labels of a pandas index that say nothing about position


def assert_same(tally, other):
    assert tally.forecast.tolist() == other.forecast.tolist()
    for name in ADDITIVE:
        assert getattr(tally, name).tolist() == getattr(other, name).tolist(), name
    for name in ("weight_max", "unit_weights", "binary_outcomes"):
        assert getattr(tally, name) == getattr(other, name), name


def plain(y_true=OUTCOMES, y_prob=FORECASTS, sample_weight=None):
    """The tally of plain float64 arrays, that every other kind of input must equal."""
    weight = None if sample_weight is None else np.array(sample_weight, dtype=np.float64)
    return Tally.from_arrays(
        np.array(y_true, dtype=np.float64), np.array(y_prob, dtype=np.float64), sample_weight=weight
    )


class Detached:
    """A tensor in CPU memory without a gradient: all that numpy sees of it is `__array__`."""

    def __init__(self, values):
        self.values = values

    def detach(self):
        return self

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


class WithGradient(Detached):
    """A tensor that carries a gradient, which refuses to become an array, as torch's do."""

    def detach(self):
        return Detached(self.values)

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")


class OnDevice(Detached):
    """A tensor in the memory of a graphics card."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")


def read_only(values, dtype=np.float64):
    result = np.array(values, dtype=dtype)
    result.flags.writeable = False
    return result


def strided(values, dtype=np.float64):
    wide = np.full((len(values), 3), 0.125).astype(dtype)
    wide[:, 1] = values
    return wide[:, 1]


def reversed_view(values, dtype=np.float64):
    return np.array(values[::-1], dtype=dtype)[::-1]


def chunked(values):
    return pa.chunked_array([values[:3], values[3:]])


ANY_NUMBERS = {
    "list": list,
    "tuple": tuple,
    "list of numpy numbers": lambda values: [np.float64(value) for value in values],
    "float16": lambda values: np.array(values, dtype=np.float16),
    "float32": lambda values: np.array(values, dtype=np.float32),
    "float64": lambda values: np.array(values, dtype=np.float64),
    "longdouble": lambda values: np.array(values, dtype=np.longdouble),
    "big-endian": lambda values: np.array(values, dtype=">f8"),
    "big-endian float32": lambda values: np.array(values, dtype=">f4"),
    "read-only": read_only,
    "strided": strided,
    "strided float32": lambda values: strided(values, np.float32),
    "reversed": reversed_view,
    "unmasked": lambda values: np.ma.masked_array(values, mask=False),
    "array.array": lambda values: array.array("d", values),
    "memoryview": lambda values: np.array(values, dtype=np.float64).data,
    "pandas": lambda values: pd.Series(values, dtype="float64"),
    "pandas float32": lambda values: pd.Series(values, dtype="float32"),
    "pandas nullable": lambda values: pd.Series(values, dtype="Float64"),
    "pandas nullable float32": lambda values: pd.Series(values, dtype="Float32"),
    "pandas arrow": lambda values: pd.Series(values, dtype="float64[pyarrow]"),
    "pandas shuffled index": lambda values: pd.Series(values, index=SHUFFLED, dtype="float64"),
    "pandas index": lambda values: pd.Index(values, dtype="float64"),
    "pandas column": lambda values: pd.DataFrame({"a": values, "b": 0.125}, index=SHUFFLED)["a"],
    "polars": lambda values: pl.Series(values, dtype=pl.Float64),
    "polars float32": lambda values: pl.Series(values, dtype=pl.Float32),
    "pyarrow": lambda values: pa.array(values, type=pa.float64()),
    "pyarrow chunked": lambda values: chunked(pa.array(values, type=pa.float64())),
    "tensor": Detached,
    "tensor with gradient": WithGradient,
}

WHOLE_NUMBERS = {
    **{
        f"numpy {dtype}": (lambda values, dtype=dtype: np.array(values, dtype=dtype))
        for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ">i4")
    },
    "list of int": lambda values: [int(value) for value in values],
    "read-only int": lambda values: read_only(values, np.int64),
    "strided int": lambda values: strided(values, np.int64),
    "reversed int": lambda values: reversed_view(values, np.int64),
    "pandas int": lambda values: pd.Series(values, dtype="int64", index=SHUFFLED),
    "pandas nullable int": lambda values: pd.Series(values, dtype="Int64"),
    "pandas arrow int": lambda values: pd.Series(values, dtype="int64[pyarrow]"),
    "polars int": lambda values: pl.Series(values, dtype=pl.Int32),
    "pyarrow int": lambda values: pa.array(values, type=pa.int64()),
    "pyarrow chunked int": lambda values: chunked(pa.array(values, type=pa.int8())),
}

BOOLEANS = {
    "list of bool": lambda values: [bool(value) for value in values],
    "numpy bool": lambda values: np.array(values, dtype=bool),
    "read-only bool": lambda values: read_only(values, bool),
    "strided bool": lambda values: strided(values, bool),
    "reversed bool": lambda values: reversed_view(values, bool),
    "pandas bool": lambda values: pd.Series(values, index=SHUFFLED).astype(bool),
    "pandas nullable bool": lambda values: pd.Series(values).astype("boolean"),
    "pandas arrow bool": lambda values: pd.Series(values).astype("bool[pyarrow]"),
    "polars bool": lambda values: pl.Series(values, dtype=pl.Int8).cast(pl.Boolean),
    "pyarrow bool": lambda values: pa.array([bool(value) for value in values]),
    "pyarrow chunked bool": lambda values: chunked(pa.array([bool(value) for value in values])),
}


def kinds(*tables):
    every = {name: convert for table in tables for name, convert in table.items()}
    return pytest.mark.parametrize("convert", every.values(), ids=every.keys())


# --- Accepted ---------------------------------------------------------------------------------------------------------


@kinds(ANY_NUMBERS)
def test_every_kind_of_forecast_gives_the_same_numbers(convert):
    assert_same(Tally.from_arrays(OUTCOMES, convert(FORECASTS)), plain())


@kinds(WHOLE_NUMBERS, BOOLEANS)
def test_forecasts_of_zero_and_one_may_be_whole_numbers_or_booleans(convert):
    certain = [1, 0, 1, 0, 1, 0, 1, 1]
    assert_same(Tally.from_arrays(OUTCOMES, convert(certain)), plain(y_prob=certain))


@kinds(ANY_NUMBERS, WHOLE_NUMBERS, BOOLEANS)
def test_every_kind_of_zero_one_outcome_gives_the_same_numbers(convert):
    assert_same(Tally.from_arrays(convert(OUTCOMES), FORECASTS), plain())


@kinds(ANY_NUMBERS)
def test_every_kind_of_fraction_gives_the_same_numbers(convert):
    tally = Tally.from_arrays(convert(FRACTIONS), FORECASTS)
    assert_same(tally, plain(y_true=FRACTIONS))
    assert not tally.binary_outcomes


@kinds(ANY_NUMBERS)
def test_every_kind_of_weight_gives_the_same_numbers(convert):
    assert_same(Tally.from_arrays(OUTCOMES, FORECASTS, sample_weight=convert(WEIGHTS)), plain(sample_weight=WEIGHTS))


@kinds(WHOLE_NUMBERS)
def test_weights_may_be_whole_numbers(convert):
    weighted = Tally.from_arrays(OUTCOMES, FORECASTS, sample_weight=convert(WHOLE_WEIGHTS))
    assert_same(weighted, plain(sample_weight=WHOLE_WEIGHTS))


@kinds(BOOLEANS)
def test_weights_may_be_a_mask(convert):
    assert_same(Tally.from_arrays(OUTCOMES, FORECASTS, sample_weight=convert(OUTCOMES)), plain(sample_weight=OUTCOMES))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_short_floats_are_widened_exactly(dtype):
    values = np.array([0.1, 0.2, 1 / 3, 0.7], dtype=dtype)
    tally = Tally.from_arrays([0, 1, 0, 1], values)
    assert tally.forecast.tolist() == [float(value) for value in values]
    assert tally.forecast[0] != 0.1  # and not rounded to the decimal number they stand for


def test_long_doubles_are_rounded_to_the_nearest_float64():
    third = np.longdouble(1) / np.longdouble(3)
    assert Tally.from_arrays([0, 1], np.array([third, third])).forecast.tolist() == [float(third)]


def test_torch_tensors_are_read_with_and_without_a_gradient():
    torch = pytest.importorskip("torch", reason="torch is optional; its protocol is tested without it above")
    expected = plain(sample_weight=WEIGHTS)
    for gradient in (False, True):
        forecasts = torch.tensor(FORECASTS, dtype=torch.float32, requires_grad=gradient)
        tally = Tally.from_arrays(torch.tensor(OUTCOMES), forecasts, sample_weight=torch.tensor(WEIGHTS))
        assert_same(tally, expected)


@pytest.mark.parametrize("outcomes", [OUTCOMES, FRACTIONS], ids=["binary", "fractions"])
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 1.0]], ids=["unit", "weighted"])
@pytest.mark.parametrize("zeros", [[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0]], ids=str)
def test_zero_and_minus_zero_are_one_forecast_that_prints_without_a_sign(outcomes, weights, zeros):
    tally = Tally.from_arrays(outcomes[:3], [*zeros, 0.5], sample_weight=weights)
    assert tally.forecast.tolist() == [0.0, 0.5]
    assert not np.signbit(tally.forecast).any()


def test_zero_and_minus_zero_are_one_forecast_among_counts_and_in_the_support():
    tally = Tally.from_counts([-0.0, 0.0, 0.5], [1, 2, 3], [1, 0, 2])
    assert (tally.rows.tolist(), tally.events.tolist()) == ([3, 3], [1, 2])
    assert not np.signbit(tally.forecast).any()
    assert calibrant.measures.effective_support_size([0.0, -0.0, 0.5], gamma=0.0) == 2


LABELS = ["late", "fine", "late", "fine", "fine", "late", "late", "fine"]

LABEL_KINDS = {
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    "numpy object": lambda labels: np.array(labels, dtype=object),
    "numpy strided": lambda labels: np.array([labels, labels]).T[:, 0],
    "pandas": lambda labels: pd.Series(labels, index=SHUFFLED),
    "pandas object": lambda labels: pd.Series(labels, dtype=object),
    "pandas string": lambda labels: pd.Series(labels, dtype="string"),
    "pandas arrow": lambda labels: pd.Series(labels, dtype=pd.ArrowDtype(pa.string())),
    "categorical": pd.Categorical,
    "categorical series": lambda labels: pd.Series(labels, dtype="category", index=SHUFFLED),
    "categorical with an unused label": lambda labels: pd.Categorical(labels, categories=["fine", "late", "lost"]),
    "polars": pl.Series,
    "polars categorical": lambda labels: pl.Series(labels, dtype=pl.Categorical),
    "polars enum": lambda labels: pl.Series(labels, dtype=pl.Enum(["late", "fine"])),
    "pyarrow": pa.array,
    "pyarrow chunked": lambda labels: chunked(pa.array(labels)),
    "pyarrow dictionary": lambda labels: pa.array(labels).dictionary_encode(),
}


@kinds(LABEL_KINDS)
@pytest.mark.parametrize("event", ["late", "fine"])
def test_string_labels_need_only_the_name_of_the_event(convert, event):
    tally = Tally.from_arrays(convert(LABELS), FORECASTS, pos_label=event)
    assert_same(tally, plain(y_true=[label == event for label in LABELS]))


@pytest.mark.parametrize(
    ("y_true", "pos_label"),
    [
        ([1, 2, 2, 1], 2),
        ([1, 2, 2, 1], 2.0),
        ([1, 2, 2, 1], np.int64(2)),
        ([-1, 1, 1, -1], 1),
        ([0, 1, 1, 0], 1),
        ([1, 0, 0, 1], 0),
        ([0.0, 1.0, 1.0, 0.0], 1),
        ([False, True, True, False], True),
        ([True, False, False, True], False),
        (pd.Series([1, 2, 2, 1], dtype="category"), 2),
        (pd.Series([1, 2, 2, 1], dtype="Int64"), 2),
        (np.array([b"no", b"yes", b"yes", b"no"]), b"yes"),
        (np.array(["no", "yes", "yes", "no"]), np.str_("yes")),
    ],
    ids=repr,
)
def test_two_labels_of_any_kind_with_the_event_named(y_true, pos_label):
    forecasts = [0.1, 0.2, 0.3, 0.4]
    assert_same(Tally.from_arrays(y_true, forecasts, pos_label=pos_label), plain([0, 1, 1, 0], forecasts))


@pytest.mark.parametrize(
    ("y_true", "pos_label", "outcome"),
    [
        (["late"] * 3, "late", 1),
        ([0, 0, 0], 1, 0),
        ([1, 1, 1], 0, 0),
        ([0.0, 0.0, 0.0], True, 0),
        ([2, 2, 2], 2, 1),
        ([False] * 3, True, 0),
        (pd.Categorical(["fine"] * 3, categories=["fine", "late"]), "late", 0),
        (pd.Series(["fine"] * 3, dtype=pd.CategoricalDtype(["fine", "late"])), "late", 0),
        (pl.Series(["fine"] * 3, dtype=pl.Enum(["fine", "late"])), "late", 0),
    ],
    ids=repr,
)
def test_a_sample_of_one_class_need_not_hold_an_event_that_is_declared(y_true, pos_label, outcome):
    tally = Tally.from_arrays(y_true, [0.1, 0.2, 0.3], pos_label=pos_label)
    assert tally.outcome.tolist() == [outcome] * 3


@pytest.mark.parametrize(
    ("y_true", "pos_label"),
    [
        (["no"] * 3, "yse"),
        (["late"] * 3, "Late"),
        ([-1, -1, -1], 1),
        ([2, 2, 2], 1),
        ([0, 0, 0], 2),
        ([0.5, 0.5, 0.5], 1),
        (pd.Categorical(["fine"] * 3, categories=["fine", "late"]), "lte"),
        (pd.Categorical(["a"] * 3, categories=["a", "b", "c"]), "b"),
    ],
    ids=repr,
)
def test_an_event_that_neither_occurs_nor_is_declared_is_refused(y_true, pos_label):
    only = next(iter(y_true))
    message = (
        rf"^pos_label is {pos_label!r}, which y_true does not hold: its only label is {only!r}; if no row is an event, "
        rf"say so by outcomes of 0 and 1, as in y_true == {pos_label!r} in place of y_true"
    )
    with refused(message):
        calibrant.cutoff_calibration_error(y_true, [0.1, 0.2, 0.3], pos_label=pos_label)
    zero = calibrant.Tally.from_arrays(np.asarray(y_true) == pos_label, [0.1, 0.2, 0.3])
    assert zero.outcome_total == 0.0


def test_categories_that_are_numbers_need_no_label():
    assert_same(Tally.from_arrays(pd.Series(OUTCOMES, dtype="category"), FORECASTS), plain())


def test_a_hard_classifier_is_not_mistaken_for_swapped_arguments():
    assert calibrant.cutoff_calibration_error([0, 1, 1, 0], [0, 1, 0, 1]) == 0.25


def test_inputs_are_left_as_they_were():
    y_true, y_prob, weight = np.array(OUTCOMES * 10, bool), np.array(FORECASTS * 10), np.array(WEIGHTS * 10)
    before = y_true.copy(), y_prob.copy(), weight.copy()
    for name, call in ROW_FUNCTIONS.items():
        call(y_true, y_prob, **({} if name == WITHOUT_WEIGHTS else {"sample_weight": weight}))
    calibrant.certify(y_true, y_prob, max_error=0.05, by=y_prob, sample_weight=weight + 1.0)
    for array_now, array_before in zip((y_true, y_prob, weight), before, strict=True):
        assert array_now.tolist() == array_before.tolist()


def test_a_tally_does_not_change_when_its_input_does():
    y_true, y_prob = np.array([0.0, 1.0, 1.0]), np.array([0.25, 0.5, 0.75])
    tally = Tally.from_arrays(y_true, y_prob)
    y_true[:], y_prob[:] = 0.5, 0.125
    assert (tally.forecast.tolist(), tally.outcome.tolist()) == ([0.25, 0.5, 0.75], [0.0, 1.0, 1.0])


# --- Refused ----------------------------------------------------------------------------------------------------------


def refused(message):
    return pytest.raises(ValueError, match=message)


GOOD: dict[str, Any] = {"y_true": [0, 1, 1, 0], "y_prob": [0.1, 0.4, 0.6, 0.9], "sample_weight": [1.0, 2.0, 3.0, 4.0]}
ARGUMENTS = pytest.mark.parametrize("name", list(GOOD))

MISSING = {
    "NaN": lambda values: np.array([values[0], np.nan, *values[2:]]),
    "NaN in a list": lambda values: [values[0], float("nan"), *values[2:]],
    "None": lambda values: [values[0], None, *values[2:]],
    "None among booleans": lambda values: [True, None, *[False for _ in values[2:]]],
    "None in an object array": lambda values: np.array([values[0], None, *values[2:]], dtype=object),
    "pandas NA in a list": lambda values: [values[0], pd.NA, *values[2:]],
    "pandas NaT in a list": lambda values: [values[0], pd.NaT, *values[2:]],
    "masked": lambda values: np.ma.masked_array(values, mask=[False, True, *[False for _ in values[2:]]]),
    "float16 NaN": lambda values: np.array([values[0], np.nan, *values[2:]], dtype=np.float16),
    "pandas NaN": lambda values: pd.Series([values[0], np.nan, *values[2:]], index=[3, 2, 1, 0]),
    "pandas object": lambda values: pd.Series([values[0], None, *values[2:]], dtype=object),
    "pandas Float64": lambda values: pd.Series([values[0], None, *values[2:]], dtype="Float64"),
    "pandas Int64": lambda values: pd.Series([0, None, *[1 for _ in values[2:]]], dtype="Int64"),
    "pandas boolean": lambda values: pd.Series([False, None, *[True for _ in values[2:]]], dtype="boolean"),
    "pandas arrow": lambda values: pd.Series([values[0], None, *values[2:]], dtype="float64[pyarrow]"),
    "polars null": lambda values: pl.Series([float(values[0]), None, *map(float, values[2:])]),
    "polars NaN": lambda values: pl.Series([float(values[0]), float("nan"), *map(float, values[2:])]),
    "polars boolean null": lambda values: pl.Series([False, None, *[True for _ in values[2:]]]),
    "pyarrow null": lambda values: pa.array([values[0], None, *values[2:]]),
    "pyarrow NaN": lambda values: pa.array([float(values[0]), float("nan"), *map(float, values[2:])]),
    "pyarrow boolean null": lambda values: pa.array([False, None, *[True for _ in values[2:]]]),
    "pyarrow chunked null": lambda values: pa.chunked_array([[values[0]], [None, *values[2:]]]),
    "tensor": lambda values: WithGradient([values[0], np.nan, *values[2:]]),
}


@ARGUMENTS
@kinds(MISSING)
def test_a_missing_value_is_refused_wherever_it_hides(name, convert):
    arguments = {**GOOD, name: convert(GOOD[name])}
    with refused(rf"^{name}\[1\] is missing; drop the row or fill in its value"):
        calibrant.cutoff_calibration_error(**arguments)


@pytest.mark.parametrize(
    "labels",
    [
        ["late", None, "late"],
        ["late", None, "fine"],
        ["late", float("nan"), "late"],
        ["late", float("nan"), "fine"],
        ["late", pd.NA, "late"],
        np.array(["late", np.nan, "late"], dtype=object),
        np.ma.masked_array(["late", "fine", "late"], mask=[False, True, False]),
        pd.Series(["late", None, "late"]),
        pd.Series(["late", None, "late"], dtype="string"),
        pd.Categorical(["late", None, "late"]),
        pl.Series(["late", None, "late"]),
        pl.Series(["late", None, "late"], dtype=pl.Categorical),
        pa.array(["late", None, "late"]),
        pa.array(["late", None, "late"]).dictionary_encode(),
    ],
    ids=lambda labels: f"{type(labels).__module__} {type(labels).__name__}",
)
def test_a_missing_label_is_refused_and_never_counts_as_the_other_one(labels):
    with refused(r"y_true\[1\] is missing"):
        calibrant.cutoff_calibration_error(labels, [0.1, 0.5, 0.9], pos_label="late")


@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [
        ([1.0, float("nan"), 2.0], 2),
        ([True, None, True], True),
        ([1, None, 1], 1),
        (np.array(["2024-05-01", "NaT", "2024-05-01"], dtype="M8[D]"), np.datetime64("2024-05-01")),
    ],
    ids=repr,
)
def test_a_missing_number_among_labels_is_refused(labels, pos_label):
    with refused(r"y_true\[1\] is missing"):
        calibrant.cutoff_calibration_error(labels, [0.1, 0.5, 0.9], pos_label=pos_label)


@ARGUMENTS
@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_an_infinite_value_is_refused(name, infinity):
    with refused(rf"^{name}\[2\] is {infinity}; every value must be finite"):
        calibrant.cutoff_calibration_error(**{**GOOD, name: [*GOOD[name][:2], infinity, GOOD[name][3]]})


@ARGUMENTS
def test_none_for_a_whole_argument_is_refused_except_for_weights(name):
    arguments = {**GOOD, name: None}
    if name == "sample_weight":
        assert calibrant.cutoff_calibration_error(**arguments) == calibrant.cutoff_calibration_error(
            GOOD["y_true"], GOOD["y_prob"]
        )
    else:
        with refused(rf"{name} is (None|missing)"):
            calibrant.cutoff_calibration_error(**arguments)


@pytest.mark.parametrize(
    ("forecasts", "message"),
    [
        ([0.5, 12, 80, 100], r"y_prob\[1\] is 12, outside \[0, 1\]; if these are percentages, divide by 100"),
        ([0.5, 0.2, 1.6, 0.1], r"y_prob\[2\] is 1.6, outside \[0, 1\]; if these are percentages"),
        ([0.5, -2.5, 3.0, 0.1], r"y_prob\[1\] is -2.5, outside \[0, 1\]; these look like logits.*apply a sigmoid"),
        ([0.5, -0.25, 0.3, 0.1], r"y_prob\[1\] is -0.25, outside \[0, 1\]; .*sigmoid"),
        ([0.5, 0.2, 0.3, 1.25], r"y_prob\[3\] is 1.25, outside \[0, 1\]; .*percentages divide by 100.*sigmoid"),
        ([0.5, 0.2, 250.0, 0.1], r"y_prob\[2\] is 250, outside \[0, 1\]; .*sigmoid"),
        ([0.5, 1.0000001, 0.3, 0.1], r"y_prob\[1\] is 1\.0000001, outside \[0, 1\]"),
        ([0.5, 1 + 2**-52, 0.3, 0.1], r"y_prob\[1\] is 1\.0000000000000002, outside \[0, 1\]"),
        ([0.5, -1e-18, 0.3, 0.1], r"y_prob\[1\] is -1e-18, outside \[0, 1\]"),
    ],
    ids=str,
)
def test_forecasts_outside_the_unit_interval_are_refused_with_a_remedy(forecasts, message):
    with refused(message):
        calibrant.cutoff_calibration_error([0, 1, 1, 0], forecasts)


@pytest.mark.parametrize(
    ("outcomes", "shown"),
    [([0, 1, 2, 1], "2"), ([1, 1, -1, 1], "-1"), ([0.5, 1, 1.25, 0], "1.25"), ([0, 1, 1.0000001, 0], "1.0000001")],
    ids=str,
)
def test_outcomes_outside_the_unit_interval_are_refused_with_a_remedy(outcomes, shown):
    with refused(rf"^y_true\[2\] is {re.escape(shown)}, outside \[0, 1\]; .*pos_label= .*scale them into \[0, 1\]"):
        calibrant.cutoff_calibration_error(outcomes, [0.1, 0.4, 0.6, 0.9])


def test_arguments_of_different_lengths_are_refused():
    with refused(r"y_true has 3 values and y_prob has 4; pass one outcome per forecast"):
        calibrant.cutoff_calibration_error([0, 1, 1], [0.1, 0.2, 0.3, 0.4])
    with refused(r"y_true has 1 values? and y_prob has 1,200; pass one outcome per forecast"):
        calibrant.cutoff_calibration_error([0], np.full(1200, 0.5))
    with refused(r"sample_weight has 2 values for 3 rows; pass one weight per row"):
        calibrant.cutoff_calibration_error([0, 1, 1], [0.1, 0.2, 0.3], sample_weight=[1, 1])


@ARGUMENTS
@pytest.mark.parametrize("empty", [[], (), np.empty(0), pd.Series([], dtype=float), pl.Series([]), pa.array([])])
def test_an_empty_argument_is_refused(name, empty):
    with refused(rf"^{name} is empty; at least one row is needed"):
        calibrant.cutoff_calibration_error(**{**GOOD, name: empty})


def frame_of(columns):
    return {f"class {k}": [0.1, 0.4, 0.6, 0.9] for k in range(columns)}


TWO_DIMENSIONAL = {
    "numpy": lambda columns: np.full((4, columns), 0.5),
    "lists": lambda columns: [[0.5] * columns for _ in range(4)],
    "pandas": lambda columns: pd.DataFrame(frame_of(columns)),
    "polars": lambda columns: pl.DataFrame(frame_of(columns)),
    "pyarrow": lambda columns: pa.table(frame_of(columns)),
    "tensor": lambda columns: Detached(np.full((4, columns), 0.5)),
}


@kinds(TWO_DIMENSIONAL)
@pytest.mark.parametrize("columns", [2, 3])
def test_a_table_of_forecasts_is_refused_with_the_way_to_pass_one_column(convert, columns):
    remedy = r"pass (one class's column, .*y_prob\[:, 1\]|one column of the frame)"
    with refused(rf"^y_prob has shape \(4, {columns}\), not one dimension; {remedy}"):
        Tally.from_arrays([0, 1, 1, 0], convert(columns))  # which is of one column


@ARGUMENTS
@kinds(TWO_DIMENSIONAL)
def test_a_single_column_is_refused_with_the_way_to_flatten_it(name, convert):
    remedy = rf"(flatten it with {name}\.ravel\(\)|pass one column of the frame)"
    with refused(rf"^{name} has shape \(4, 1\), not one dimension; {remedy}"):
        calibrant.cutoff_calibration_error(**{**GOOD, name: convert(1)})


@pytest.mark.parametrize("name", ["y_true", "sample_weight"])
def test_a_table_of_outcomes_or_weights_is_refused(name):
    with refused(rf"^{name} has shape \(4, 2\), not one dimension; pass one value per row"):
        calibrant.cutoff_calibration_error(**{**GOOD, name: np.full((4, 2), 0.5)})


@ARGUMENTS
@pytest.mark.parametrize(
    "scalar",
    [0.5, np.float64(0.5), np.array(0.5), "0.5", b"0.5", {0.5}, (0.5 for _ in range(4))],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_a_sequence_is_refused(name, scalar):
    with refused(rf"^{name} is one {type(scalar).__name__}, not an array; pass one value per row"):
        calibrant.cutoff_calibration_error(**{**GOOD, name: scalar})


@ARGUMENTS
def test_ragged_lists_are_refused(name):
    with refused(rf"^{name} of type list cannot be read as an array .*one value per row"):
        calibrant.cutoff_calibration_error(**{**GOOD, name: [[0.5], [0.5, 0.5], [0.5], [0.5]]})


@ARGUMENTS
def test_tensors_on_a_graphics_card_are_refused_with_the_place_they_belong(name):
    with refused(rf"^{name} of type OnDevice cannot be read as an array .*Tensor\.cpu\(\).*CPU memory"):
        calibrant.cutoff_calibration_error(**{**GOOD, name: OnDevice(GOOD[name])})


@ARGUMENTS
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers_are_refused(name, dtype):
    with refused(rf"^{name} has dtype {np.dtype(dtype)}: complex numbers"):
        calibrant.cutoff_calibration_error(**{**GOOD, name: np.array(GOOD[name], dtype=dtype)})


NOT_NUMBERS = {
    "strings": lambda: ["0.5", "0.6", "0.7", "0.8"],
    "a string among numbers": lambda: [0.5, "high", 0.7, 0.8],
    "bytes": lambda: np.array([b"0.5"] * 4),
    "pandas strings": lambda: pd.Series(["0.5"] * 4),
    "polars strings": lambda: pl.Series(["0.5"] * 4),
    "pyarrow strings": lambda: pa.array(["0.5"] * 4),
    "objects": lambda: np.array([0.5, 0.6, 0.7, 0.8], dtype=object),
    "decimals": lambda: [Decimal("0.5")] * 4,
    "polars decimals": lambda: pl.Series([Decimal("0.5")] * 4),
    "pyarrow decimals": lambda: pa.array([Decimal("0.5")] * 4),
    "fractions": lambda: [fractions.Fraction(1, 2)] * 4,
    "lists in a column": lambda: pl.Series([[0.5], [0.6], [0.7], [0.8]]),
    "dates": lambda: [datetime.date(2024, 5, 1)] * 4,
    "datetimes": lambda: np.array(["2024-05-01"] * 4, dtype="M8[D]"),
    "pandas datetimes": lambda: pd.Series(pd.to_datetime(["2024-05-01"] * 4)),
    "durations": lambda: np.array([1, 2, 3, 4], dtype="m8[s]"),
    "records": lambda: np.array([(0.5,)] * 4, dtype=[("p", "f8")]),
}


@pytest.mark.parametrize("name", ["y_prob", "sample_weight"])
@pytest.mark.parametrize("values", NOT_NUMBERS.values(), ids=NOT_NUMBERS.keys())
def test_what_is_not_a_number_is_refused(name, values):
    with refused(rf"^{name}.*not (a number|numbers); (convert|pass numbers)"):
        calibrant.cutoff_calibration_error(**{**GOOD, name: values()})


@pytest.mark.parametrize("values", NOT_NUMBERS.values(), ids=NOT_NUMBERS.keys())
def test_outcomes_that_are_not_numbers_are_refused_without_a_label(values):
    with refused(r"^y_true.*(convert|pass numbers|pass pos_label=)"):
        calibrant.cutoff_calibration_error(values(), GOOD["y_prob"])


@pytest.mark.parametrize("values", [[0, 1, 1, 0], [True, False, True, False]], ids=str)
def test_numbers_stored_as_objects_are_refused_without_denying_that_they_are_numbers(values):
    with refused(r"^y_true.*object.*astype") as caught:
        calibrant.cutoff_calibration_error(np.array(values, dtype=object), GOOD["y_prob"])
    assert "not a number" not in str(caught.value)


def test_a_record_is_refused_as_a_label_too():
    with refused(r"^y_true has dtype"):
        calibrant.cutoff_calibration_error(np.array([(1,), (0,)], dtype=[("y", "i8")]), [0.1, 0.2], pos_label=1)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2, -3, 4], r"sample_weight\[2\] is -3; weights must not be negative: drop the row or give it weight 0"),
        ([1, 2, -1e-9, 4], r"sample_weight\[2\] is -1e-09; weights must not be negative"),
        ([0, 0, 0, 0], r"sample_weight is zero everywhere; at least one row must count"),
        ([False] * 4, r"sample_weight is zero everywhere"),
        ([1e308] * 4, r"sample_weight sums to infinity \(largest weight 1e\+308\); divide"),
        ([1e200] * 4, r"sample_weight"),  # their squares, which a tally holds, overflow
        ([1e-200] * 4, r"sample_weight"),  # their squares vanish
    ],
    ids=str,
)
def test_weights_that_weigh_nothing_sensible_are_refused(weights, message):
    with refused(message):
        calibrant.measure([0, 1, 1, 0], [0.1, 0.4, 0.6, 0.9], sample_weight=weights)


@kinds(LABEL_KINDS)
def test_labels_without_the_name_of_the_event_are_refused(convert):
    with refused(r"^y_true\[0\] is 'late', a label and not a number \(labels: 'fine', 'late'\); pass pos_label="):
        calibrant.cutoff_calibration_error(convert(LABELS), FORECASTS)


@pytest.mark.parametrize(
    ("labels", "listed"),
    [
        (list("abca"), r"3 labels \('a', 'b', 'c'\): 'a'"),
        ([1, 2, 3, 1], r"3 labels \(1, 2, 3\): 1"),
        ([1.0, 2.0, 3.0, 1.0], r"3 labels \(1, 2, 3\): 1"),
        (pd.Categorical(list("abca")), r"3 labels \('a', 'b', 'c'\): 'a'"),
        (list("abcdefgh"), r"8 labels \('a', 'b', 'c', 'd', 'e', \.\.\.\): 'a'"),
    ],
    ids=str,
)
def test_one_of_more_than_two_labels_is_the_event_against_the_rest(labels, listed):
    forecasts = np.linspace(0.1, 0.9, len(labels))
    with pytest.warns(calibrant.CalibrationWarning, match=rf"^y_true holds {listed} counts as the event, all others"):
        found = calibrant.cutoff_calibration_error(labels, forecasts, pos_label=labels[0])
    assert found == calibrant.cutoff_calibration_error(np.asarray(labels) == labels[0], forecasts)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0.1, 0.2, 0.3, 0.4], r"^y_true holds numbers such as 0\.1, which are no classes; leave out pos_label="),
        ([0.0, 1.0, 0.5, 1.0], r"^y_true holds numbers such as 0\.5, which are no classes"),
        ([f"id {number}" for number in range(1001)], r"^y_true holds more than 1,000 different labels, which are no"),
    ],
    ids=["fractions", "soft labels", "names"],
)
def test_numbers_and_names_of_rows_are_no_labels(labels, message):
    with refused(message):
        calibrant.cutoff_calibration_error(labels, np.full(len(labels), 0.5), pos_label=labels[1])


@pytest.mark.parametrize(
    ("labels", "pos_label", "message"),
    [
        (["no", "yes"], "Yes", r"pos_label is 'Yes', which y_true does not hold; its labels are 'no', 'yes'"),
        ([1, 2], 0, r"pos_label is 0, which y_true does not hold; its labels are 1, 2"),
        ([1, 2], "2", r"pos_label is '2', .*labels.* are 1, 2"),
        (["1", "2"], 2, r"pos_label is 2, .*labels.* are '1', '2'"),
        ([False, True], "True", r"pos_label is 'True', .*labels.* are False, True"),
        ([1, 1], "1", r"pos_label is '1' but the labels in y_true are 1; pass the label itself"),
        (["1", "1"], 1, r"pos_label is 1 but the labels in y_true are '1'; pass the label itself"),
        (np.array([b"no", b"no"]), "no", r"pos_label is 'no' but the labels in y_true are b'no'; pass the label"),
        ([0, 1], float("nan"), r"pos_label is nan, .*labels are 0, 1"),
        ([0, 1], [1], r"pos_label is \[1\], .*labels are 0, 1"),
        ([0, 1], np.array([0, 1]), r"^pos_label is .*labels.* 0, 1"),
        ([0, 1], pd.NA, r"^pos_label is .*labels.* 0, 1"),
    ],
    ids=repr,
)
def test_an_event_that_the_outcomes_do_not_know_is_refused(labels, pos_label, message):
    with refused(message):
        calibrant.cutoff_calibration_error(labels, [0.25, 0.75], pos_label=pos_label)


SWAPPED = ([0.2, 0.9, 0.4], [0, 1, 1])


def test_swapped_arguments_are_refused_and_a_tally_says_they_are_meant():
    y_true, y_prob = [0, 0.9, 0.4], [0, 1, 1]
    message = (
        r"^y_prob holds only 0 and 1 while y_true\[1\] is 0\.9: the arguments look swapped, the order is "
        r"\(y_true, y_prob\); if it is meant, pass Tally\.from_arrays\(y_true, y_prob\)"
    )
    with refused(message):
        calibrant.cutoff_calibration_error(y_true, y_prob)
    tally = Tally.from_arrays(y_true, y_prob)
    assert calibrant.cutoff_calibration_error(tally) == pytest.approx(0.7 / 3)
    assert Cells.from_arrays(y_true, y_prob).residual_total == pytest.approx(-0.7)


# --- Nothing bypasses the gate ----------------------------------------------------------------------------------------

EXTRA_OPTIONS: dict[str, dict[str, Any]] = {
    "best_threshold": {"threshold": 0.5},
    "certify": {"max_error": 0.05},
    "decide": {"threshold": 0.5},
    "decision_risk": {"threshold": 0.5},
    "expected_calibration_error": {"n_bins": 4},
    "risk_bands": {"cutoffs": [0.5]},
    "risk_gap": {"threshold": 0.5},
    "sign_testing_gap": {"threshold": 0.5},
    "sign_testing_risk": {"threshold": 0.5},
    "weighted_calibration_error": {"weight": np.cos},
}
PUBLIC_FUNCTIONS = [  # but for adapters, which hand rows on to these, if they take any
    name for name in EVERYWHERE if inspect.isfunction(public(name)) and HOME.get(name) != "calibrant.adapters"
]
OTHERS_FIRST = {
    "affine_costs": "not_acting",
    "bracket": "cells",
    "certify_decisions": "y_true",  # with a column per class
    "certify_thresholds": "z",
    "check_independence": "y_true",  # which must have clusters
    "by_group": "source",
    "compare_models": "y_true",  # with forecasts by the name of their model
    "compare_recalibrators": "y_prob",
    "decision_guarantee": "certificate",
    "ece_hardness_bound": "rows",
    "effective_support_size": "y_prob",
    "effective_variance": "mean_outcome",
    "cox_slope": "rows",  # with times
    "horizon": "time",
    "compare_windows": "y_true",  # which must have periods
    "internal_validation": "estimator",
    "in_groups": "y_true",  # which must have groups
    "new_files": "folders",
    "openmetrics": "reading",
    "period_of": "times",
    "pit_calibration": "z",
    "reject_option": "cost",
    "rows_needed": "max_error",
    "scan": "source",
    "threshold_calibration_error": "z",
    "two_action_question": "y_true",  # with a column per class
    "worst_group": "y_true",  # which must have features
}
"""What functions take first that do not take outcomes and forecasts alone; they are tested beside what they compute."""
WITHOUT_WEIGHTS = "spiegelhalter_test"  # nobody has defined it for weighted rows


def caller(function, **options):
    return lambda *args, **kwargs: function(*args, **options, **kwargs)


MEASURES = {
    name: caller(public(name), **EXTRA_OPTIONS.get(name, {})) for name in PUBLIC_FUNCTIONS if name not in OTHERS_FIRST
}
MEASURES["expected_calibration_error, plug-in"] = calibrant.expected_calibration_error
MEASURES["integrated_calibration_index, loess"] = caller(
    calibrant.measures.integrated_calibration_index, smoother="loess"
)
MEASURES["certify, hoeffding smooth"] = caller(calibrant.certify, max_error=0.05, method="hoeffding", measure="smooth")
MEASURES["confidence_interval, normal"] = caller(calibrant.confidence_interval, method="normal")
MEASURES["calibration_test, asymptotic"] = caller(calibrant.calibration_test, method="asymptotic")
BUILDERS = {"Tally.from_arrays": Tally.from_arrays, "Cells.from_arrays": Cells.from_arrays}
ROW_FUNCTIONS = MEASURES | BUILDERS

BAD_ROWS = {
    "missing outcome": (([0, np.nan, 1], [0.1, 0.2, 0.3]), {}, r"^y_true\[1\] is missing"),
    "missing forecast": (([0, 1, 1], [0.1, np.nan, 0.3]), {}, r"^y_prob\[1\] is missing"),
    "missing weight": (([0, 1, 1], [0.1, 0.2, 0.3]), {"sample_weight": [1, np.nan, 1]}, r"^sample_weight\[1\] is miss"),
    "infinite forecast": (([0, 1, 1], [0.1, np.inf, 0.3]), {}, r"^y_prob\[1\] is inf"),
    "percentages": (([0, 1, 1], [10, 20, 30]), {}, r"^y_prob\[0\] is 10, .*percentages"),
    "logits": (([0, 1, 1], [0.1, -2.0, 3.0]), {}, r"^y_prob\[1\] is -2, .*logits"),
    "outcome outside": (([0, 2, 1], [0.1, 0.2, 0.3]), {}, r"^y_true\[1\] is 2, outside"),
    "lengths": (([0, 1], [0.1, 0.2, 0.3]), {}, r"^y_true has 2 values and y_prob has 3"),
    "no rows": (([], []), {}, r"^y_prob is empty"),
    "two columns": (
        ([0, 1], [[0.9, 0.1], [0.3, 0.8]]),
        {},
        r"^y_prob(\[1\] adds up to 1\.1 over its 2 classes| has shape \(2, 2\), .*y_prob\[:, 1\])",
    ),
    "complex": (([0, 1], [0.1 + 1j, 0.2]), {}, r"^y_prob has dtype complex128"),
    "strings": (([0, 1], ["0.1", "0.2"]), {}, r"^y_prob.*not (a number|numbers)"),
    "labels": ((["no", "yes"], [0.1, 0.2]), {}, r"^y_true\[0\] is .*no.*pass pos_label="),
    "three labels": ((["a", "b", "c"], [0.1, 0.2, 0.3]), {"pos_label": "d"}, r"^pos_label is 'd'.* are 'a', 'b', 'c'"),
    "unknown event": ((["a", "b"], [0.1, 0.2]), {"pos_label": "c"}, r"^pos_label is 'c'"),
    "negative weight": (([0, 1], [0.1, 0.2]), {"sample_weight": [1, -1]}, r"^sample_weight\[1\] is -1"),
    "zero weights": (([0, 1], [0.1, 0.2]), {"sample_weight": [0, 0]}, r"^sample_weight is zero everywhere"),
    "few weights": (([0, 1], [0.1, 0.2]), {"sample_weight": [1]}, r"^sample_weight has 1 values? for 2 rows"),
}


def test_the_table_of_functions_is_complete():
    for name in PUBLIC_FUNCTIONS:
        parameters = list(inspect.signature(public(name)).parameters)
        assert parameters[0] == OTHERS_FIRST.get(name, "y_true"), name
        if name not in OTHERS_FIRST:
            assert name in MEASURES
            assert ("sample_weight" in parameters) == (name != WITHOUT_WEIGHTS), name
    assert len(PUBLIC_FUNCTIONS) >= 25


@pytest.mark.parametrize("bad", BAD_ROWS.values(), ids=BAD_ROWS.keys())
@pytest.mark.parametrize("function", ROW_FUNCTIONS.values(), ids=ROW_FUNCTIONS.keys())
def test_every_function_refuses_bad_rows(function, bad):
    rows, options, message = bad
    if function is MEASURES[WITHOUT_WEIGHTS] and "sample_weight" in options:
        with pytest.raises(TypeError, match="unexpected keyword argument 'sample_weight'"):
            function(*rows, **options)
        return
    with refused(message):
        function(*rows, **options)


@pytest.mark.parametrize("bad", BAD_ROWS.values(), ids=BAD_ROWS.keys())
def test_rows_with_features_have_the_same_gate(bad):
    rows, options, message = bad
    with refused(message):
        calibrant.worst_group(rows[0], rows[1], [1] * len(rows[0]), **options)


@pytest.mark.parametrize("bad", BAD_ROWS.values(), ids=BAD_ROWS.keys())
@pytest.mark.parametrize(
    "name",
    ["cutoff_calibration_error", "expected_calibration_error", "worst_interval", "certify", "confidence_interval"],
)
def test_the_way_without_sorting_has_the_same_gate(monkeypatch, name, bad):
    monkeypatch.setattr("calibrant.rows.intake.SORT_BELOW_ROWS", 0)
    rows, options, message = bad
    with refused(message):
        MEASURES[name](*rows, **options)


@pytest.mark.parametrize("function", MEASURES.values(), ids=MEASURES.keys())
def test_every_measure_refuses_swapped_arguments(function):
    with refused(r"^y_prob holds only 0 and 1 while y_true\[0\] is 0\.2: the arguments look swapped"):
        function(*SWAPPED)


@pytest.mark.parametrize("function", MEASURES.values(), ids=MEASURES.keys())
def test_every_measure_says_when_the_forecasts_are_missing(function):
    with refused(r"^y_prob is missing: pass outcomes and forecasts, as in measure\(y_true, y_prob\), or a Tally"):
        function([0, 1, 1])


@pytest.mark.parametrize("function", MEASURES.values(), ids=MEASURES.keys())
@pytest.mark.parametrize(
    ("name", "value"), [("y_prob", [0.1, 0.2]), ("sample_weight", [1, 1]), ("pos_label", 1)], ids=lambda item: str(item)
)
def test_every_measure_refuses_arguments_beside_a_tally(function, name, value):
    tally = Tally.from_arrays([0, 1], [0.1, 0.2])
    if function is MEASURES[WITHOUT_WEIGHTS] and name == "sample_weight":
        with pytest.raises(TypeError, match="unexpected keyword argument 'sample_weight'"):
            function(tally, sample_weight=value)
        return
    with refused(rf"^{name} was given together with a Tally, which already holds it; pass the Tally alone"):
        function(tally, **{name: value})


def test_cells_in_place_of_a_tally_are_refused_by_name():
    cells = Cells.from_arrays([0, 1], [0.1, 0.2])
    with refused(r"Cells.*Tally"):
        calibrant.measure(cells)


@pytest.mark.parametrize(
    ("forecasts", "options", "message"),
    [
        ([0.1, None], {}, r"^y_prob\[1\] is missing"),
        ([0.1, 1.25], {}, r"^y_prob\[1\] is 1.25, outside \[0, 1\]"),
        ([[0.1, 0.9]], {}, r"^y_prob has shape \(1, 2\), .*y_prob\[:, 1\]"),
        ([], {}, r"^y_prob is empty"),
        (None, {}, r"^y_prob is None"),
        ([0.1, 0.2], {"sample_weight": [1, -1]}, r"^sample_weight\[1\] is -1"),
        ([0.1, 0.2], {"sample_weight": [1]}, r"^sample_weight has 1 values? for 2 rows"),
    ],
)
def test_the_support_size_refuses_bad_forecasts(forecasts, options, message):
    with refused(message):
        calibrant.measures.effective_support_size(forecasts, **options)


def test_the_support_size_of_a_tally_takes_no_weights():
    with refused(r"^sample_weight was given together with"):
        calibrant.measures.effective_support_size(Tally.from_arrays([0, 1], [0.1, 0.2]), sample_weight=[1, 1])


# --- Options ----------------------------------------------------------------------------------------------------------

ROWS = ([0, 1, 1, 0], [0.1, 0.4, 0.6, 0.9])


@pytest.mark.parametrize(
    "function", [calibrant.measures.bounded_variation_calibration_error, calibrant.measures.bounded_variation_witness]
)
@pytest.mark.parametrize(
    ("variation", "message"),
    [
        (-1, r"variation must be a number from 0 to inf, got -1"),
        (float("nan"), r"variation must be a number from 0 to inf, got nan"),
        ("2", r"variation must be a number, got '2' of type str"),
        (None, r"variation must be a number, got None"),
        (True, r"variation must be a number, got True of type bool"),
        ([2.0], r"variation must be a number, got \[2\.0\] of type list"),
    ],
)
def test_variation_must_be_a_number_that_is_not_negative(function, variation, message):
    with refused(message):
        function(*ROWS, variation=variation)


@pytest.mark.parametrize("variation", [np.inf, 10**400], ids=["inf", "a huge int"])
def test_variation_has_no_upper_limit(variation):
    value = calibrant.measures.bounded_variation_calibration_error(*ROWS, variation=variation)
    assert value == pytest.approx(0.5, abs=1e-12)  # the ECE plug-in


@pytest.mark.parametrize(
    ("n_bins", "message"),
    [
        (0, r"n_bins must be a whole number from 1 to .*, got 0"),
        (-3, r"n_bins must be a whole number from 1 to .*, got -3"),
        (2.5, r"n_bins must be a whole number from 1 to .*, got 2\.5"),
        (float("nan"), r"n_bins must be a whole number.*, got nan"),
        (float("inf"), r"n_bins must be a whole number.*, got inf"),
        (10**7, r"n_bins must be a whole number from 1 to .*, got 10000000"),
        (True, r"n_bins must be a whole number, got True of type bool"),
        ("10", r"n_bins must be a whole number, got '10' of type str"),
        ([0.0, 0.5, 1.0], r"n_bins must be a whole number, got \[0\.0, 0\.5, 1\.0\] of type list"),
    ],
    ids=str,
)
def test_the_number_of_bins_must_be_a_whole_number(n_bins, message):
    with refused(message):
        calibrant.expected_calibration_error(*ROWS, n_bins=n_bins)


@pytest.mark.parametrize("n_bins", [2, 2.0, np.int8(2), np.float64(2)], ids=repr)
def test_the_number_of_bins_may_be_any_kind_of_whole_number(n_bins):
    assert calibrant.expected_calibration_error(*ROWS, n_bins=n_bins) == pytest.approx(0.25, abs=1e-15)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "width"}, r"strategy must be one of 'uniform', 'quantile', got 'width'"),
        ({"strategy": None}, r"strategy must be one of 'uniform', 'quantile', got None"),
        ({"norm": "L1"}, r"norm must be one of 'l1', 'l2', 'max', got 'L1'"),
        ({"norm": 2}, r"norm must be one of 'l1', 'l2', 'max', got 2"),
        ({"debias": True}, r"debias needs norm='l2', got norm='l1'"),
        ({"debias": True, "norm": "max"}, r"debias needs norm='l2', got norm='max'"),
        (
            {"debias": True, "norm": "l2", "n_bins": 4},
            r"debias=True needs at least two rows in every bin, and 4 bins have one; use fewer bins or .*quantile",
        ),
        (
            {"debias": True, "norm": "l2", "n_bins": 1, "sample_weight": [1, 2, 1, 1]},
            r"debias=True needs unit weights",
        ),
    ],
    ids=str,
)
def test_options_of_the_binned_error_that_do_not_fit_are_refused(options, message):
    with refused(message):
        calibrant.expected_calibration_error(*ROWS, **{"n_bins": 2, **options})


def test_fractions_cannot_be_debiased():
    with refused(r"debias=True needs 0/1 outcomes"):
        calibrant.expected_calibration_error([0.5, 0, 1, 1], ROWS[1], n_bins=1, norm="l2", debias=True)


@pytest.mark.parametrize(
    ("gamma", "message"),
    [
        (-0.1, r"gamma must be a number from 0 .*, got -0\.1"),
        (1.1, r"gamma must be a number from 0 .*, got 1\.1"),
        (float("nan"), r"gamma must be a number from 0 .*, got nan"),
        ("5%", r"gamma must be a number, got '5%' of type str"),
        (True, r"gamma must be a number, got True of type bool"),
        (None, r"gamma must be a number, got None"),
    ],
)
def test_gamma_must_be_a_share(gamma, message):
    with refused(message):
        calibrant.measures.effective_support_size(ROWS[1], gamma)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (0.5, r"weight must be a function of the forecasts, got 0\.5; per-row weights: sample_weight"),
        ([1, 1, 1, 1], r"weight must be a function of the forecasts, got \[1, 1, 1, 1\]; .*sample_weight"),
        (None, r"weight must be a function of the forecasts, got None"),
        (lambda p: p[1:], r"weight returned an array of shape \(3,\) for forecasts of shape \(4,\)"),
        (lambda p: p[:, None], r"weight returned an array of shape \(4, 1\).*one value per forecast"),
        (lambda p: 2 * p, r"weight\(0\.6\) is 1\.2, outside \[-1, 1\]; divide the function by its largest"),
        (lambda p: -1.5 + 0 * p, r"weight\(0\.1\) is -1\.5, outside \[-1, 1\]"),
        (lambda _: 3, r"weight\(0\.1\) is 3, outside \[-1, 1\]"),
        (lambda p: np.where(p > 0.5, np.nan, p), r"weight\(0\.6\) is nan"),
        (lambda p: np.where(p > 0.5, np.inf, p), r"weight\(0\.6\) is inf, outside \[-1, 1\]"),
        (lambda p: 1j * p, r"weight returned .*complex"),
        (lambda p: ["high"] * p.size, r"weight returned"),
        (lambda _: None, r"weight"),
    ],
)
def test_a_weight_function_that_is_none_is_refused(weight, message):
    with refused(message):
        calibrant.measures.weighted_calibration_error(*ROWS, weight=weight)


def test_a_weight_function_cannot_change_the_tally_it_is_shown():
    tally = Tally.from_arrays(*ROWS)

    def meddle(forecast):
        forecast[:] = 0.5
        return forecast

    with pytest.raises(ValueError, match="read-only"):
        calibrant.measures.weighted_calibration_error(tally, weight=meddle)
    assert tally.forecast.tolist() == ROWS[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smoother": "gam"}, r"smoother must be one of 'isotonic', 'loess', 'lowess', 'splines', got 'gam'"),
        ({"smoother": "loess", "span": 0}, r"span must be a number from 0\.001 to 1, got 0"),
        ({"smoother": "loess", "span": 1.5}, r"span must be a number from 0\.001 to 1, got 1\.5"),
        ({"smoother": "loess", "span": "wide"}, r"span must be a number, got 'wide' of type str"),
        ({"span": 0.5}, r"span has no meaning for smoother='isotonic'; leave it out, or take 'loess' or 'lowess'"),
        ({"smoother": "loess", "knots": 4}, r"knots has no meaning for smoother='loess'; leave it out, or take 'spl"),
        ({"smoother": "splines", "knots": 2}, r"knots must be a whole number from 3 to 20, got 2"),
        ({"smoother": "loess", "scale": "log"}, r"scale must be one of 'probability', 'logit', got 'log'"),
        ({"interval": "wald"}, r"interval must be one of 'corrected', 'percentile', got 'wald'"),
        ({"confidence_level": 0.95, "n_resamples": 5}, r"n_resamples is 5, too few for a confidence_level of 0\.95"),
    ],
    ids=str,
)
def test_options_of_the_calibration_curve_that_do_not_fit_are_refused(options, message):
    with refused(message):
        calibrant.measures.integrated_calibration_index(*ROWS, **options)


@pytest.mark.parametrize(
    ("forecast", "rows", "events", "message"),
    [
        (
            [0.2, 0.7],
            [10, 5.5],
            [2, 3],
            r"^rows\[1\] is 5\.5; counts are whole numbers, .*from_arrays with sample_weight",
        ),
        ([0.2, 0.7], [10, 10000000.5], [2, 3], r"^rows\[1\] is 10000000\.5; counts are whole numbers"),
        ([0.2, 0.7], [10, 5], [2, 2.5], r"^events\[1\] is 2\.5; counts are whole numbers"),
        ([0.2, 0.7], [10, -5], [2, 3], r"^rows\[1\] is -5; counts are whole numbers, not negative"),
        ([0.2, 0.7], [10, 5], [-2, 3], r"^events\[0\] is -2; counts are whole numbers, not negative"),
        ([0.2, 0.7], [10, 5], [2, 6], r"^events\[1\] is 6 but rows\[1\] is 5; there cannot be more events than rows"),
        ([0.2, 0.7], [10], [2, 3], r"^rows has 1 values? for 2 forecasts; pass one count per forecast"),
        ([0.2, 0.7], [10, 5], [2, 3, 1], r"^events has 3 values for 2 forecasts; pass one count per forecast"),
        ([0.2, 0.7], [0, 0], [0, 0], r"^rows is 0 everywhere; at least one row is needed"),
        ([0.2, 0.7], [10, np.nan], [2, 3], r"^rows\[1\] is missing"),
        ([0.2, 0.7], [10, None], [2, 3], r"^rows\[1\] is missing"),
        ([0.2, 0.7], [10, np.inf], [2, 3], r"^rows\[1\] is inf; every value must be finite"),
        ([0.2, 0.7], [10, 1e300], [2, 3], r"^rows\[1\] is 1e\+300"),
        ([0.2, 0.7], [2**62, 2**62], [2, 3], r"^rows"),  # each fits into 64 bits, their sum does not
        ([0.2, 0.7], [[10, 5]], [2, 3], r"^rows has shape \(1, 2\), not one dimension"),
        ([0.2, 0.7], ["10", "5"], [2, 3], r"^rows.*not (a number|numbers)"),
        ([0.2, 0.7], [10, 5], None, r"^events is None"),
        ([0.2, 20], [10, 5], [2, 3], r"^forecast\[1\] is 20, outside \[0, 1\]; .*percentages"),
        ([0.2, np.nan], [10, 5], [2, 3], r"^forecast\[1\] is missing"),
        ([], [], [], r"^forecast is empty"),
        (0.2, 10, 2, r"^forecast is one float, not an array"),
    ],
    ids=str,
)
def test_counts_that_cannot_be_counts_are_refused(forecast, rows, events, message):
    with refused(message):
        Tally.from_counts(forecast, rows, events)


@kinds(WHOLE_NUMBERS)
def test_counts_may_be_any_kind_of_whole_number(convert):
    counts, events = [5, 2, 3, 4, 1, 6, 2, 7], [1, 2, 0, 0, 1, 3, 1, 5]
    tally = Tally.from_counts(FORECASTS, convert(counts), convert(events))
    assert tally.rows.tolist() == [4, 8, 13, 2, 2, 1]
    assert tally.events.tolist() == [0, 1, 8, 1, 2, 1]


DECIMALS = {
    "list": lambda counts: [Decimal(count) for count in counts],
    "objects": lambda counts: np.array([Decimal(count) for count in counts], dtype=object),
    "Python's own": lambda counts: np.array(counts, dtype=object),
    "pandas": lambda counts: pd.Series([Decimal(count) for count in counts]),
    "polars": lambda counts: pl.Series([Decimal(count) for count in counts]),
    "pyarrow": lambda counts: pa.array([Decimal(count) for count in counts], pa.decimal128(38, 0)),
}


@pytest.mark.parametrize("kind", DECIMALS)
def test_counts_that_are_decimals_are_taken_exactly(kind):
    largest = 2**52 + 1
    tally = Tally.from_counts([0.2, 0.7], DECIMALS[kind]([largest, 5]), DECIMALS[kind]([largest - 1, 0]))
    assert tally.rows.tolist() == [largest, 5]
    assert tally.events.tolist() == [largest - 1, 0]


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (Decimal("2.5"), r"^rows\[1\] is 2\.5; counts are whole numbers"),
        (Decimal(-1), r"^rows\[1\] is -1; counts are whole numbers, not negative"),
        (Decimal("NaN"), r"^rows\[1\] is missing"),
        (Decimal(2**60 + 1), r"^rows has dtype object .*; convert decimals with CAST\(\.\.\. AS DOUBLE\) in SQL"),
        (10**400, r"^rows has dtype object"),
    ],
    ids=str,
)
def test_decimals_that_cannot_be_counts_are_refused(count, message):
    with refused(message):
        Tally.from_counts([0.2, 0.7], [Decimal(3), count], [1, 0])


def test_decimals_elsewhere_are_refused_with_what_to_do():
    share: Any = [Decimal("0.2"), Decimal("0.7")]
    outcomes: Any = [Decimal(0), Decimal(1)]
    remedy = r"; convert decimals with CAST\(\.\.\. AS DOUBLE\) in SQL, cast\(pl\.Float64\) in polars, astype"
    with refused(rf"^forecast has dtype object \(first value Decimal\('0\.2'\)\), not numbers{remedy}"):
        Tally.from_counts(share, [3, 2], [1, 0])
    with refused(rf"^y_true has dtype object \(first number Decimal\('0'\)\){remedy}"):
        Tally.from_arrays(outcomes, [0.2, 0.7])
    with refused(rf"^y_prob has dtype object .*{remedy}"):
        Tally.from_arrays([0, 1], share)


def test_numbers_that_numpy_does_not_know_are_refused():
    class Column:
        """As those of polars with numbers of 128 bits, whose error is of a kind of its own."""

        def __array__(self, *_, **__):
            raise pl.exceptions.InvalidOperationError("cannot convert i128")

    with refused(r"^rows of type Column cannot be read as an array \(cannot convert i128\); pass a one-dimensional "):
        Tally.from_counts([0.2], Column(), [1])


@pytest.mark.parametrize(
    ("bits", "message"),
    [
        (-1, r"bits must be a whole number from 0 to 24, got -1"),
        (25, r"bits must be a whole number from 0 to 24, got 25"),
        (2.5, r"bits must be a whole number from 0 to 24, got 2\.5"),
        (True, r"bits must be a whole number, got True of type bool"),
        ("16", r"bits must be a whole number, got '16' of type str"),
        (None, r"bits must be a whole number, got None"),
    ],
)
def test_the_bits_of_cells_must_be_a_whole_number_within_reach(bits, message):
    with refused(message):
        Cells.from_arrays(*ROWS, bits=bits)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "float16", "float32", "float64", ">f8"])
@pytest.mark.parametrize("values", [[3, 1, 7, 3], [2, 2], [5], [100, 1, 2], [0, 1] * 50_000 + [3]])
def test_labels_that_are_counted_are_those_that_would_be_sorted(dtype, values):
    array = np.array(values, dtype=dtype)
    labels, places = label_places(array, "y_true", array.size)
    expected, inverse = np.unique(array, return_inverse=True)
    assert labels.tolist() == expected.tolist()
    assert [type(each) for each in labels.tolist()] == [type(each) for each in expected.tolist()]
    assert places.tolist() == inverse.tolist()


@pytest.mark.parametrize("dtype", [float, object])
@pytest.mark.parametrize("values", [[0.0, 0.5, 1.0], [1.0, -0.0], [-1.0, 2.0**60], [2.0**53, 2.0**53 + 2], [-3.0, 0.0]])
def test_labels_of_any_numbers_are_found_as_they_are_written(values, dtype):
    labels, places = label_places(np.array(values, dtype=dtype), "y_true", len(values))
    assert list(map(str, labels.tolist())) == [str(value + 0.0) for value in sorted(values)]  # zero has no sign
    assert labels[places].tolist() == values


@pytest.mark.parametrize("dtype", [float, object])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_labels_that_are_no_numbers_are_refused_where_they_stand(value, dtype):
    with pytest.raises(calibrant.InputError, match=r"y_true\[2\] is (missing|inf)"):
        label_places(np.array([0.0, 1.0, value], dtype=dtype), "y_true", 3)


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(lambda: pl.LazyFrame({"p": [0.2, 0.7]}), id="lazy frame"),
        pytest.param(lambda: duckdb.sql("SELECT 0.2 AS p"), id="relation"),
    ],
)
def test_tables_that_are_not_in_memory_are_for_scans(table):
    with refused(r"^y_prob .*; pass the values of one column, or name the columns in scan\(\), which reads a table "):
        Tally.from_arrays([0, 1], table())

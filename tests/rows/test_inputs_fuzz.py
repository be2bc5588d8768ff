"""Python inputs of every kind through the gate: bad ones are refused by name, valid ones give the exact Cutoff error.

The judge is rational arithmetic: the largest difference of two partial sums of y - p in order of p, over the rows.
"""

import array
import datetime
import decimal
import fractions
import io
import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant

Y = [0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0]
P = [0.25, 0.5, 0.5, 0.125, 0.75, 0.75, 0.0, 1.0, 0.875, 0.375, 0.0625, 0.5]
W = [1.0, 2.0, 0.5, 0.25, 3.0, 1.0, 4.0, 0.125, 1.5, 2.5, 0.0, 1.0]
ROUNDING = 4 * np.finfo(float).eps


def exact_cutoff(y_true, y_prob, weight=None):
    """The Cutoff error of rows in rational arithmetic, every float taken as the fraction that it is."""
    rows = [fractions.Fraction(1)] * len(y_true) if weight is None else [fractions.Fraction(w) for w in weight]
    total = sum(rows)
    residual: dict[Any, Any] = {}
    for y, p, w in zip(y_true, y_prob, rows, strict=True):
        place = fractions.Fraction(p)
        residual[place] = residual.get(place, 0) + w * (fractions.Fraction(y) - place)
    curve = [fractions.Fraction(0), *itertools.accumulate(residual[place] for place in sorted(residual))]
    return (max(curve) - min(curve)) / total


class Tensor:
    """What torch offers of a tensor that carries a gradient."""

    def __init__(self, values, held=False):
        self.values, self.held = np.asarray(values), held

    def detach(self):
        return Tensor(self.values, self.held)

    def __array__(self, dtype=None, copy=None):
        if self.held:
            raise RuntimeError("can't convert a tensor on a device")
        return np.array(self.values, dtype=dtype)


class ArrayInterface:
    """What other array libraries offer."""

    def __init__(self, values):
        self.held = np.asarray(values, dtype=float)
        self.__array_interface__ = self.held.__array_interface__


def read_only(values):
    held = np.array(values)
    held.flags.writeable = False
    return held


def memory_map(values, folder):
    held = np.memmap(folder / "column", dtype="f8", mode="w+", shape=len(values))
    held[:] = values
    held.flush()
    return np.memmap(folder / "column", dtype="f8", mode="r", shape=len(values))


def chunked(values, kind=None):
    return pa.chunked_array([pa.array(values[:5], type=kind), pa.array(values[5:], type=kind)])


def strided(values, step):
    held = np.full(len(values) * abs(step), 0.5)
    held[:: abs(step)] = values
    return held[:: abs(step)] if step > 0 else held[:: abs(step)][::-1][::-1]


FORECASTS = {
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    **{f"numpy {dtype}": lambda p, dtype=dtype: np.array(p, dtype=dtype) for dtype in ("f2", "f4", "f8", "g")},
    **{f"numpy {dtype}": lambda p, dtype=dtype: np.array(p, dtype=dtype) for dtype in (">f2", ">f4", ">f8", "<f8")},
    "every third": lambda p: strided(p, 3),
    "backwards twice": lambda p: strided(p, -2),
    "a column of a matrix": lambda p: np.array([p, p]).T[:, 1],
    "a column in Fortran's order": lambda p: np.asfortranarray(np.array([p, p]).T)[:, 0],
    "turned round": lambda p: np.array(p[::-1])[::-1],
    "a field of records": lambda p: np.array([(each, 1) for each in p], dtype=[("p", "f8"), ("n", "i4")])["p"],
    "unaligned": lambda p: np.frombuffer(b"\0" + np.array(p).tobytes(), dtype=np.uint8)[1:].view("f8"),
    "read-only": read_only,
    "frombuffer": lambda p: np.frombuffer(np.array(p).tobytes()),
    "loaded": lambda p: np.load(io.BytesIO(saved(p))),
    "numpy subclass": lambda p: np.array(p).view(np.recarray),
    "masked, nothing hidden": lambda p: np.ma.MaskedArray(p, mask=False),
    "standard library": lambda p: array.array("d", p),
    "standard library, single": lambda p: array.array("f", p),
    "memoryview": lambda p: memoryview(array.array("d", p)),
    "numpy scalars": lambda p: [np.float32(each) for each in p],
    "tensor": Tensor,
    "array interface": ArrayInterface,
    "pandas": pd.Series,
    "pandas array": lambda p: pd.array(p, dtype="Float64"),
    "pandas index": pd.Index,
    **{
        f"pandas {dtype}": lambda p, dtype=dtype: pd.Series(p, dtype=dtype)
        for dtype in ("float32", "Float64", "Float32", "float64[pyarrow]", "float[pyarrow]", "category")
    },
    "pandas sparse": lambda p: pd.Series(pd.arrays.SparseArray(p)),
    "pandas column": lambda p: pd.DataFrame({"p": p, "q": 1})["p"],
    "polars": pl.Series,
    "polars single": lambda p: pl.Series(p, dtype=pl.Float32),
    "polars column": lambda p: pl.DataFrame({"p": p})["p"],
    "polars chunks": lambda p: pl.concat([pl.Series(p[:4]), pl.Series(p[4:])], rechunk=False),
    "arrow": pa.array,
    "arrow chunks": chunked,
    "arrow single": lambda p: chunked(p, pa.float32()),
    "arrow column": lambda p: pa.table({"p": p})["p"],
}
OUTCOMES = {
    "list": list,
    "booleans": lambda y: [bool(each) for each in y],
    **{
        f"numpy {dtype}": lambda y, dtype=dtype: np.array(y, dtype=dtype)
        for dtype in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4", ">u8", "f2", "f4", "g", ">f8")
    },
    "bytes": bytearray,
    "standard library": lambda y: array.array("b", y),
    "pandas": pd.Series,
    **{
        f"pandas {dtype}": lambda y, dtype=dtype: pd.Series(y, dtype=dtype)
        for dtype in ("bool", "boolean", "UInt8", "Int64", "int64[pyarrow]", "bool[pyarrow]", "category")
    },
    "pandas sparse": lambda y: pd.Series(pd.arrays.SparseArray(y)),
    "polars": pl.Series,
    "polars boolean": lambda y: pl.Series([bool(each) for each in y]),
    "arrow boolean": lambda y: pa.array([bool(each) for each in y]),
    "arrow chunks": lambda y: chunked(y, pa.int8()),
    "tensor": Tensor,
}


def saved(values):
    held = io.BytesIO()
    np.save(held, np.array(values))
    return held.getvalue()


@pytest.mark.parametrize("convert", FORECASTS.values(), ids=FORECASTS.keys())
def test_forecasts_and_weights_of_every_kind_are_read_exactly(convert):
    found = calibrant.cutoff_calibration_error(Y, convert(P))
    assert found == float(exact_cutoff(Y, P))
    weighted = calibrant.cutoff_calibration_error(Y, P, sample_weight=convert(W))
    assert weighted == pytest.approx(float(exact_cutoff(Y, P, W)), rel=ROUNDING)


@pytest.mark.parametrize("convert", OUTCOMES.values(), ids=OUTCOMES.keys())
def test_outcomes_of_every_kind_are_read_exactly(convert):
    tally = calibrant.Tally.from_arrays(convert(Y), P)
    assert tally.binary_outcomes
    assert calibrant.cutoff_calibration_error(tally) == float(exact_cutoff(Y, P))


def test_a_memory_map_that_must_not_be_written_is_read(tmp_path):
    held = memory_map(P, tmp_path)
    assert calibrant.cutoff_calibration_error(Y, held) == float(exact_cutoff(Y, P))
    assert np.asarray(held).tolist() == P


EXTREMES = {
    "subnormals": ([1, 0, 0, 1], [5e-324, 5e-324, 2.2e-308, 0.0]),
    "minus zero": ([1, 0, 1, 0], [-0.0, 0.0, -0.0, 5e-324]),
    "next to 1": ([0, 1, 1, 0], [1.0, math.nextafter(1.0, 0.0), 1.0 - 2.0**-52, 1.0]),
    "neighbours": ([0, 1, 0, 1], [0.3, 0.1 + 0.2, 0.3, math.nextafter(0.3, 0.0)]),
    "fractions": ([0.1, 0.7, 1.0, 5e-324], [0.7, 0.1, 0.9999, 0.5]),
    "one row": ([1], [0.1]),
    "all right": ([0, 1], [0.0, 1.0]),
    "all wrong": ([1, 0], [0.0, 1.0]),
}


@pytest.mark.parametrize(("y_true", "y_prob"), EXTREMES.values(), ids=EXTREMES.keys())
def test_numbers_at_the_edge_are_added_up_exactly(y_true, y_prob):
    found = calibrant.cutoff_calibration_error(y_true, y_prob)
    assert found == pytest.approx(float(exact_cutoff(y_true, y_prob)), rel=ROUNDING, abs=5e-324)


@pytest.mark.parametrize("seed", range(20))
def test_random_rows_are_added_up_to_the_last_digits(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 400))
    y_prob = rng.choice([rng.random(size), rng.beta(0.02, 0.02, size), np.round(rng.random(size), 1)])
    y_true = (rng.random(size) < y_prob).astype(float) if seed % 2 else rng.random(size)
    weight = None if seed % 3 else rng.exponential(size=size) * 10.0 ** rng.integers(-3, 4)
    kinds = list(FORECASTS.values())[7:]  # those that hold every float64
    wide = [kind for kind in kinds if np.asarray(kind([0.1] * size)).astype(float)[0] == 0.1 and size > 5] or [list]
    forecast = wide[int(rng.integers(len(wide)))](y_prob.tolist())
    found = calibrant.cutoff_calibration_error(y_true, forecast, sample_weight=weight)
    exact = float(exact_cutoff(y_true.tolist(), y_prob.tolist(), None if weight is None else weight.tolist()))
    assert found == pytest.approx(exact, abs=1e-15 * size)


def with_value(values, value):
    return [*values[:3], value, *values[4:]]


NUMBERS = {
    "NaN": with_value(P, math.nan),
    "infinity": with_value(P, math.inf),
    "minus infinity": with_value(P, -math.inf),
    "just above 1": with_value(P, math.nextafter(1.0, 2.0)),
    "just below 0": with_value(P, -5e-324),
    "percentages": [100.0 * p for p in P],
    "logits": with_value(P, -2.5),
    "huge": with_value(P, 1e308),
    "a whole number beyond float64": with_value(P, 10**400),
    "None": with_value(P, None),
    "a word": with_value(P, "0.5"),
    "bytes": with_value(P, b"0.5"),
    "words": [str(p) for p in P],
    "complex": with_value(P, 0.5 + 0j),
    "a list inside": with_value(P, [0.5]),
    "a dict inside": with_value(P, {"p": 0.5}),
    "a decimal inside": with_value(P, decimal.Decimal("0.5")),
    "decimals": [decimal.Decimal(p) for p in P],
    "fractions": [fractions.Fraction(p) for p in P],
    "a date inside": with_value(P, datetime.date(2025, 1, 1)),
    "pandas' NA": with_value(P, pd.NA),
    "empty": [],
    "None itself": None,
    "a word itself": "0.5",
    "bytes itself": b"0.5",
    "a number": 0.5,
    "a numpy number": np.float64(0.5),
    "an array without dimensions": np.array(0.5),
    "a row": [P],
    "a column": [[p] for p in P],
    "two columns": [[0.5 - p / 2.0, p] for p in P],
    "three dimensions": np.full((2, 3, 2), 0.5),
    "ragged": [[0.5, 0.25], [0.5]],
    "a generator": (p for p in P),
    "an iterator": iter(P),
    "a map": map(float, P),
    "a range": range(len(P)),
    "a set": set(P),
    "a dict": dict(enumerate(P)),
    "an object": object(),
    "a function": len,
    "a type": float,
    "a module": math,
    "object array": np.array(with_value(P, None), dtype=object),
    "object array of numbers": np.array(P, dtype=object),
    "object array of arrays": np.array([np.array(P), None], dtype=object),
    "complex array": np.array(P, dtype=complex),
    "text array": np.array([str(p) for p in P]),
    "bytes array": np.array([b"0.5"] * len(P)),
    "dates": np.array(["2025-01-01"] * len(P), dtype="M8[D]"),
    "durations": np.array([1] * len(P), dtype="m8[s]"),
    "not a time": np.array(["NaT"] * len(P), dtype="M8[s]"),
    "records": np.array([(0.5,)] * len(P), dtype=[("p", "f8")]),
    "void": np.array([b"0123"] * len(P), dtype="V4"),
    "masked": np.ma.MaskedArray(P, mask=[False] * 11 + [True]),
    "single precision, infinite": np.array(with_value(P, np.inf), dtype="f4"),
    "half precision, NaN": np.array(with_value(P, np.nan), dtype="f2"),
    "big-endian, NaN": np.array(with_value(P, np.nan), dtype=">f8"),
    "long double above 1": np.array(with_value(P, 1.0 + 2.0**-52), dtype="g"),
    "long double beyond float64": np.array(with_value(P, np.longdouble("1e4000")), dtype="g"),
    "empty array": np.array([]),
    "empty series": pd.Series([], dtype=float),
    "empty polars": pl.Series([], dtype=pl.Float64),
    "empty arrow": pa.array([], type=pa.float64()),
    "a frame": pd.DataFrame({"p": P}),
    "a polars frame": pl.DataFrame({"p": P}),
    "an arrow table": pa.table({"p": P}),
    "pandas with NA": pd.Series(with_value(P, None), dtype="Float64"),
    "pandas arrow with null": pd.Series(with_value(P, None), dtype="float64[pyarrow]"),
    "pandas NaN": pd.Series(with_value(P, np.nan)),
    "pandas objects": pd.Series(with_value(P, "x"), dtype=object),
    "pandas text": pd.Series([str(p) for p in P], dtype="string"),
    "pandas category of words": pd.Series([str(p) for p in P], dtype="category"),
    "pandas sparse NaN": pd.Series(pd.arrays.SparseArray(with_value(P, np.nan))),
    "pandas dates": pd.Series(pd.date_range("2025-01-01", periods=len(P))),
    "pandas intervals": pd.Series(pd.interval_range(0, len(P))),
    "polars null": pl.Series(with_value(P, None)),
    "polars NaN": pl.Series(with_value(P, math.nan)),
    "polars text": pl.Series([str(p) for p in P]),
    "polars list": pl.Series([[p] for p in P]),
    "polars date": pl.Series([datetime.date(2025, 1, 1)] * len(P)),
    "polars expression": pl.col("p"),
    "polars lazy": pl.LazyFrame({"p": P}),
    "arrow null": pa.array(with_value(P, None)),
    "arrow chunk with null": chunked(with_value(P, None)),
    "arrow text": pa.array([str(p) for p in P]),
    "arrow list": pa.array([[p] for p in P]),
    "arrow dictionary": pa.array([str(p) for p in P]).dictionary_encode(),
    "tensor elsewhere": Tensor(P, held=True),
    "tensor of two columns": Tensor([[p, p] for p in P]),
}
LENGTHS = {
    "one short": lambda values: values[:-1],
    "one more": lambda values: [*values, 0.5],
    "one": lambda values: values[:1],
    "twice": lambda values: [*values, *values],
}
WEIGHTS = {
    "negative": with_value(W, -1e-300),
    "all zero": [0.0] * len(W),
    "sum overflows": [1.7e308] * len(W),
    "squares overflow": [1e200] * len(W),
    "squares vanish": [1e-200] * len(W),
}
LABELS = {
    "words without the event named": (["no", "yes"] * 6, None),
    "three words, another event": (["a", "b", "c"] * 4, "d"),
    "fractions": ([0.25, 0.5, 1.0] * 4, 1.0),
    "another word": (["no", "yes"] * 6, "maybe"),
    "one word, another event": (["no"] * 12, "yes"),
    "a number for words": (["0", "1"] * 6, 1),
    "a word for numbers": ([0, 1] * 6, "1"),
    "a missing word": (with_value(["no", "yes"] * 6, None), "yes"),
    "a missing number": (with_value([0.0, 1.0] * 6, math.nan), 1),
    "two amounts": ([0, 2] * 6, None),
}


@pytest.mark.parametrize("values", NUMBERS.values(), ids=NUMBERS.keys())
def test_what_is_no_forecast_is_refused_by_name(values):
    with pytest.raises(ValueError, match=r"^y_prob\b"):
        calibrant.cutoff_calibration_error(Y, values)


@pytest.mark.parametrize("name", [name for name in NUMBERS if name not in ("a generator", "an iterator", "a map")])
def test_what_is_no_forecast_is_no_outcome_and_no_weight_either(name):
    values = NUMBERS[name]
    if name not in ("object array of numbers",):
        with pytest.raises(ValueError, match=r"^(y_true|pos_label)\b"):
            calibrant.cutoff_calibration_error(values, P)
    if values is not None and name not in ("just above 1", "percentages", "huge", "a range", "long double above 1"):
        with pytest.raises(ValueError, match=r"^sample_weight\b"):
            calibrant.cutoff_calibration_error(Y, P, sample_weight=values)


@pytest.mark.parametrize("change", LENGTHS.values(), ids=LENGTHS.keys())
def test_columns_of_other_lengths_are_refused_by_name(change):
    with pytest.raises(ValueError, match=r"^y_true has .* values and y_prob has"):
        calibrant.cutoff_calibration_error(Y, change(P))
    with pytest.raises(ValueError, match=r"^sample_weight has .* values for"):
        calibrant.cutoff_calibration_error(Y, P, sample_weight=change(W))
    with pytest.raises(ValueError, match=r"^by has .* values for"):
        calibrant.certify(Y, P, max_error=0.5, by=change(W))


@pytest.mark.parametrize("values", WEIGHTS.values(), ids=WEIGHTS.keys())
def test_what_is_no_weight_is_refused_by_name(values):
    with pytest.raises(ValueError, match=r"^sample_weight\b"):
        calibrant.cutoff_calibration_error(Y, P, sample_weight=values)


@pytest.mark.parametrize(("labels", "event"), LABELS.values(), ids=LABELS.keys())
def test_what_does_not_name_an_event_is_refused_by_name(labels, event):
    with pytest.raises(ValueError, match=r"^(y_true|pos_label)\b"):
        calibrant.cutoff_calibration_error(labels, P, pos_label=event)


def test_as_many_kinds_are_tried_as_were_attacked():
    assert len(NUMBERS) + len(LENGTHS) + len(WEIGHTS) + len(LABELS) >= 107
    assert len(FORECASTS) + len(OUTCOMES) + len(EXTREMES) >= 73

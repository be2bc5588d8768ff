"""The one gate: raw input becomes checked arrays here and nowhere else.

Every rule has one message that names the argument, the first offending position, the value and the remedy. Nothing
is clipped, dropped or guessed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from calibrant.core.types import FloatArray, IntArray
from calibrant.core.words import shown

_CHUNK = 1 << 16
_SLIP = 1e-6  # a forecast outside [0, 1] by less than this is more likely rounding than another scale
MOST_ROWS = 2.0**53
"""From so many on, rows are not counted exactly."""
_MOST_COST = 1e300  # two of them still add up to a number
_LOOKS_LIKE_PERCENT = 1.5  # a largest value above this, and at most 100, is more likely a percentage than a slip

OUTCOME_REMEDY = (
    "if these are class labels pass pos_label= with the one that counts as the event, if they are amounts scale them "
    "into [0, 1]"
)
WEIGHT_REMEDY = "weights must not be negative: drop the row or give it weight 0"
MISSING_REMEDY = "drop the row or fill in its value before measuring"


@dataclass(frozen=True)
class Observations:
    """Checked rows: the only form in which raw data travels further.

    Attributes
    ----------
    y_true : array of uint8 (0/1 outcomes) or float64 (any outcomes in [0, 1])
    y_prob : contiguous array of float64 in [0, 1]
    sample_weight : array of float64, nonnegative and not all zero, or None for unit weights
    binary_outcomes : whether every outcome is 0 or 1
    """

    y_true: npt.NDArray[np.uint8] | FloatArray
    y_prob: FloatArray
    sample_weight: FloatArray | None
    binary_outcomes: bool

    def take(self, positions: IntArray | slice) -> Observations:
        """Return the rows at the given positions; a slice copies nothing."""
        weight = None if self.sample_weight is None else self.sample_weight[positions]
        return Observations(self.y_true[positions], self.y_prob[positions], weight, self.binary_outcomes)

    def that_count(self) -> Observations:
        """Return the rows without those of weight zero."""
        if self.sample_weight is None or self.sample_weight.all():
            return self
        return self.take(np.flatnonzero(self.sample_weight))

    def in_order(self) -> Observations:
        """Return the rows in the order of forecast, outcome and weight: a function of what they hold alone."""
        order = np.argsort(self.y_prob)
        same = np.diff(self.y_prob[order]) == 0.0
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        among = order[tied]
        weight = () if self.sample_weight is None else (self.sample_weight[among],)
        order[tied] = among[np.lexsort((*weight, self.y_true[among], self.y_prob[among]))]
        return self.take(order)

    def joined(self, other: Observations) -> Observations:
        """Return the rows of both."""
        pair = (self, other)
        weights = [np.ones(each.y_prob.size) if each.sample_weight is None else each.sample_weight for each in pair]
        weight = None if self.sample_weight is None and other.sample_weight is None else np.concatenate(weights)
        y_true, y_prob = np.concatenate([each.y_true for each in pair]), np.concatenate([each.y_prob for each in pair])
        return Observations(y_true, y_prob, weight, self.binary_outcomes and other.binary_outcomes)


def check_observations(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    by: Any = None,
    refuse_swapped: bool = True,
) -> Observations:
    """Check outcomes, forecasts and weights together; raise a `ValueError` that says what to do otherwise.

    Of groups only the labels of their rows are looked at here: `check_labels` reads them.
    """
    if y_prob is None:
        raise ValueError(
            "y_prob is missing: pass outcomes and forecasts, as in measure(y_true, y_prob), or a Tally on its own"
        )
    forecasts = check_forecasts(y_prob)
    outcomes, binary = _check_outcomes(y_true, pos_label)
    _check_same_length(outcomes.size, forecasts.size)
    weights = check_weights(sample_weight, forecasts.size)
    check_same_index(y_true=y_true, y_prob=y_prob, sample_weight=sample_weight, by=by)
    if refuse_swapped and not binary and _only_zero_and_one(forecasts):
        position = int(np.flatnonzero((outcomes != 0) & (outcomes != 1))[0])
        raise ValueError(
            f"y_prob holds only 0 and 1 while y_true[{position}] is {shown(outcomes[position])}: the arguments "
            "look swapped, the order is (y_true, y_prob); if it is meant, pass Tally.from_arrays(y_true, y_prob)"
        )
    return Observations(outcomes, forecasts, weights, binary)


def check_same_index(**arguments: Any) -> None:
    """Refuse arguments with labels of their own rows, such as pandas' index, that differ: rows are paired by position.

    What has no labels is paired with what has, whatever they are. Arguments of different lengths are refused elsewhere.
    """
    known, first = "", None
    for name, values in arguments.items():
        index = _index_of(values)
        if index is None:
            continue
        if first is None:
            known, first = name, index
        elif index is not first and not first.equals(index) and len(first) == len(index):
            pairs = enumerate(zip(first, index, strict=True))
            position, labels = next(((k, pair) for k, pair in pairs if not _same(*pair)), (0, (first[0], index[0])))
            raise ValueError(
                f"{known}[{position}] is labelled {labels[0]!r} and {name}[{position}] is labelled {labels[1]!r}, and "
                "rows are paired by position, not by label; bring both into one order, as in "
                f"{name}.reindex({known}.index), or drop the labels with .to_numpy() if the positions match"
            )


def _index_of(values: Any) -> Any:
    """Return the labels of rows: the index of a pandas series or frame, or that of xarray's first dimension."""
    if hasattr(values, "dims") and hasattr(values, "indexes"):
        return values.indexes.get(next(iter(values.dims), None))
    index = getattr(values, "index", None)  # a method of lists and tuples, which has no `equals`
    return index if hasattr(index, "equals") else None


def check_forecasts(y_prob: Any, *, name: str = "y_prob") -> FloatArray:
    """Return forecasts as contiguous float64 in [0, 1], widening other number types exactly."""
    values = _as_numbers(y_prob, name)
    low, high = float(values.min()), float(values.max())  # NaN, if any, comes out of both
    if low >= 0.0 and high <= 1.0:
        return values
    _check_finite(values, name)
    position = int(np.flatnonzero((values < 0.0) | (values > 1.0))[0])
    remedy = forecast_remedy(low, high)
    raise ValueError(f"{name}[{position}] is {shown(values[position])}, outside [0, 1]; {remedy}")


def forecast_remedy(low: float, high: float) -> str:
    """Say what to do about forecasts that reach from low to high and leave [0, 1]."""
    if low >= -_SLIP and high <= 1.0 + _SLIP:
        return "if rounding pushed it out, bring it back, as in numpy.clip(values, 0, 1)"
    if low < 0.0:
        return "these look like logits or other scores: apply a sigmoid first, or pass predict_proba output"
    if _LOOKS_LIKE_PERCENT < high <= 100.0:
        return "these look like percentages: divide by 100; if they are scores, apply a sigmoid first"
    return "if these are percentages divide by 100, if they are scores apply a sigmoid first"


def check_scores(scores: Any, *, name: str = "y_prob") -> FloatArray:
    """Return raw scores as contiguous float64: any finite numbers, not so far apart that their distance overflows."""
    values = _as_numbers(scores, name)
    _check_finite(values, name)
    low, high = float(values.min()), float(values.max())
    if not np.isfinite(high - low):
        raise ValueError(f"{name} reaches from {low:g} to {high:g}, too far for float64 to subtract; scale the scores")
    return values


def check_weights(sample_weight: Any, rows: int) -> FloatArray | None:
    """Return weights as contiguous float64, or None when there are none."""
    if sample_weight is None:
        return None
    weights = _as_numbers(sample_weight, "sample_weight")
    if weights.size != rows:
        raise ValueError(f"sample_weight has {weights.size:,} values for {rows:,} rows; pass one weight per row")
    low, high = float(weights.min()), float(weights.max())
    if not (low >= 0.0 and high < np.inf):
        _check_finite(weights, "sample_weight")
        position = int(np.flatnonzero(weights < 0.0)[0])
        raise ValueError(f"sample_weight[{position}] is {shown(weights[position])}; {WEIGHT_REMEDY}")
    if high == 0.0:
        raise ValueError("sample_weight is zero everywhere; at least one row must count")
    with np.errstate(over="ignore", under="ignore"):
        check_weight_totals(float(weights.sum()), float(weights @ weights), high)
    return weights


def check_weight_totals(total: float, square_total: float, high: float) -> None:
    """Refuse weights, none above ``high``, whose sum or sum of squares float64 cannot hold."""
    if not np.isfinite(total):
        raise ValueError(f"sample_weight sums to infinity (largest weight {high:g}); divide the weights by that")
    if not np.finfo(np.float64).tiny <= square_total < np.inf:
        raise ValueError(
            f"sample_weight has squares that float64 cannot hold (largest weight {high:g}); divide the weights by that"
        )


def check_counts(counts: Any, name: str, size: int) -> IntArray:
    """Return counts of observations as whole numbers, one per forecast."""
    values = _as_numbers(counts, name)
    if values.size != size:
        raise ValueError(f"{name} has {values.size:,} values for {size:,} forecasts; pass one count per forecast")
    _check_finite(values, name)
    bad = np.flatnonzero((values < 0.0) | (values != np.floor(values)))
    if bad.size:
        position = int(bad[0])
        raise ValueError(
            f"{name}[{position}] is {shown(values[position])}; counts are whole numbers, not negative: for weights "
            "use Tally.from_arrays with sample_weight"
        )
    check_row_counts(values, name)
    return values.astype(np.int64)


def check_row_counts(counts: FloatArray | IntArray, name: str) -> None:
    """Refuse counts that add up to more than float64, in which they meet weights and outcomes, holds exactly."""
    if counts.size == 0 or float(counts.max()) * counts.size < MOST_ROWS:
        return
    total = float(counts.sum(dtype=np.float64))
    if total >= MOST_ROWS:
        position = int(counts.argmax())
        raise ValueError(
            f"{name}[{position}] is {shown(counts[position])}, and together they reach {total:.6g}; from 2^53 on "
            "counts are not exact: judge a sample of the rows, or fewer parts at a time"
        )


def check_totals(column: npt.NDArray[Any], name: str) -> None:
    """Refuse totals of rows that hold what is not a finite number, wherever they come from, or do not add up to one."""
    with np.errstate(all="ignore"):
        total = float(np.add.reduce(column, dtype=np.float64))
    if math.isfinite(total):
        return
    position = int(np.argmin(np.isfinite(column)))
    if not np.isfinite(column[position]):
        raise ValueError(
            f"{name}[{position}] of these totals is {shown(column[position])}; every total must be finite: look for "
            "missing or infinite values in the rows that were added up"
        )
    raise ValueError(f"{name} adds up to {shown(total)}; divide the weights by the largest of them")


def check_number(value: Any, name: str, *, low: float = -np.inf, high: float = np.inf, whole: bool = False) -> float:
    """Return a scalar option as a float after checking its type and range."""
    kind = "a whole number" if whole else "a number"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{name} must be {kind}, got {value!r} of type {type(value).__name__}")
    if value != value or not low <= value <= high or (whole and not _is_whole(value)):
        raise ValueError(f"{name} must be {kind} from {low:g} to {high:g}, got {value!r}")
    try:
        return float(value)
    except OverflowError:  # a whole number beyond every float
        return np.inf


def _is_whole(value: Any) -> bool:
    return bool(abs(value) != np.inf and value == int(value))


def check_confidence(value: Any) -> float:
    """Return a confidence level from 0.5 to below 1."""
    level = check_number(value, "confidence_level", low=0.0)
    if 50.0 <= level < 100.0:
        raise ValueError(f"confidence_level is {level:g}; write {level / 100.0:g} for {level:g}%")
    if not 0.5 <= level < 1.0:
        raise ValueError(
            f"confidence_level must be from 0.5 to below 1, got {value!r}; 0.95 means wrong in at most 5% of cases"
        )
    return level


def check_seed(value: Any) -> int:
    """Return a seed: the whole number given, or one drawn from a generator or, for None, from fresh randomness."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 0:
        return int(value)
    return int(check_rng(value).integers(2**63))


def check_rng(value: Any) -> np.random.Generator:
    """Return a random generator from a seed, a generator, or None for fresh randomness."""
    try:
        if not isinstance(value, (bool, np.bool_)):
            return np.random.default_rng(value)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"rng must be None, a whole number from 0 on as seed, or a numpy.random.Generator, got {value!r}")


def check_labels(values: Any, name: str, rows: int) -> tuple[list[Any], list[IntArray]]:
    """Return the distinct labels in sorted order, and the positions of the rows that carry each."""
    array = _as_array(values, name)
    if array.size != rows:
        raise ValueError(f"{name} has {array.size:,} values for {rows:,} rows; pass one label per row")
    if array.dtype.kind == "f":
        _check_finite(array, name)
    elif array.dtype.kind in "mM":
        if np.isnat(array).any():
            _refuse_missing(name, int(np.flatnonzero(np.isnat(array))[0]))
        array = array.astype(str)
    for position, value in enumerate(array.tolist() if array.dtype.kind == "O" else ()):
        if _is_missing(value):
            _refuse_missing(name, position)
    try:
        labels, inverse = np.unique(array, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"{name} mixes labels that cannot be compared ({error}); convert them to strings") from error
    order = np.argsort(inverse, kind="stable")
    ends = np.cumsum(np.bincount(inverse))
    return [_plain_label(label) for label in labels.tolist()], np.split(order, ends[:-1])


def _plain_label(label: Any) -> Any:
    """Return a label that JSON can hold: a string or number as it is, anything else (a date, say) as a string."""
    plain = label.item() if isinstance(label, np.generic) else label
    return plain if isinstance(plain, (str, int, float)) else str(plain)


def check_thresholds(threshold: Any, name: str = "threshold") -> float | FloatArray:
    """Return one decision threshold as a float, or several as an array, each in [0, 1]."""
    if isinstance(threshold, np.ndarray) and threshold.ndim == 0:
        threshold = threshold.item()
    if isinstance(threshold, str) or not hasattr(threshold, "__len__"):
        return check_number(threshold, name, low=0.0, high=1.0)
    if len(threshold) == 0:
        raise ValueError(f"{name} is empty; pass one threshold or an array of them")
    values = _as_numbers(threshold, name)
    _check_finite(values, name)
    outside = np.flatnonzero((values < 0.0) | (values > 1.0))
    if outside.size:
        position = int(outside[0])
        raise ValueError(
            f"{name}[{position}] is {shown(values[position])}, outside [0, 1]; a threshold is the probability from "
            "which it pays to act: divide percentages by 100"
        )
    return values


def check_costs(cost_false_positive: Any, cost_false_negative: Any) -> tuple[float, float]:
    """Return the costs of acting in vain and of a missed event, not both 0."""
    costs = []
    for name, value in (("cost_false_positive", cost_false_positive), ("cost_false_negative", cost_false_negative)):
        if value is None:
            raise ValueError(f"{name} is missing: pass both costs, or threshold= in their place")
        costs.append(check_number(value, name, low=0.0, high=_MOST_COST))
    if not any(costs):
        raise ValueError("both costs are 0, so no decision matters; at least one must be positive")
    return costs[0], costs[1]


def check_masses(masses: Any, size: int) -> FloatArray:
    """Return the masses of the atoms of a measure: positive numbers, one for each."""
    values = _as_numbers([masses] if isinstance(masses, (int, float)) else masses, "masses")
    if values.size != size:
        raise ValueError(f"masses has {values.size:,} values for {size:,} atoms; pass one mass for each atom")
    _check_finite(values, "masses")
    bad = np.flatnonzero(values <= 0.0)
    if bad.size:
        position = int(bad[0])
        raise ValueError(
            f"masses[{position}] is {shown(values[position])}; masses must be positive: leave the atom out"
        )
    return values


def check_outcomes(y_true: Any, size: int) -> FloatArray:
    """Return outcomes as float64, one for each of so many forecasts."""
    outcomes, _ = _check_outcomes(y_true, None)
    _check_same_length(outcomes.size, size)
    return outcomes.astype(np.float64, copy=False)


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return an option that must be one of a few words."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}")
    return value


def check_flag(value: Any, name: str) -> bool:
    """Return an option that must be True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def _check_outcomes(y_true: Any, pos_label: Any) -> tuple[npt.NDArray[np.uint8] | FloatArray, bool]:
    array = _as_array(y_true, "y_true")
    if pos_label is not None:
        return _match_label(array, pos_label, _declared_labels(y_true)), True
    if array.dtype.kind in "USTO":
        labels = _distinct_labels(array)
        raise ValueError(
            f"y_true[0] is {array[:1].tolist()[0]!r}, a label and not a number (labels: {_listed(labels)}); pass "
            "pos_label= with the label that counts as the event"
        )
    if array.dtype.kind == "b":
        return np.ascontiguousarray(array).view(np.uint8), True
    values = _as_numbers(array, "y_true")
    low, high = float(values.min()), float(values.max())
    if not (low >= 0.0 and high <= 1.0):
        _check_finite(values, "y_true")
        position = int(np.flatnonzero((values < 0.0) | (values > 1.0))[0])
        raise ValueError(f"y_true[{position}] is {shown(values[position])}, outside [0, 1]; {OUTCOME_REMEDY}")
    return values, _only_zero_and_one(values)


def _check_same_length(outcomes: int, forecasts: int) -> None:
    if outcomes != forecasts:
        raise ValueError(f"y_true has {outcomes:,} values and y_prob has {forecasts:,}; pass one outcome per forecast")


def _match_label(array: npt.NDArray[Any], pos_label: Any, declared: list[Any]) -> npt.NDArray[np.uint8]:
    check_pos_label(_distinct_labels(array), pos_label, declared)
    return np.ascontiguousarray(array == pos_label).view(np.uint8)


def _declared_labels(values: Any) -> list[Any]:
    """Return the two labels that a categorical column declares, whether they occur or not."""
    categories: Any = getattr(getattr(values, "dtype", None), "categories", None)
    return list(categories) if hasattr(categories, "__len__") and len(categories) == 2 else []


def check_pos_label(labels: list[Any], pos_label: Any, declared: Sequence[Any] = ()) -> None:
    """Refuse a label of the event that is not one of the two labels of the outcomes.

    Where all rows are of one class, another label may be that of an event that did not happen, or a slip of the pen:
    it must be declared, by a categorical column, or be the other one of 0 and 1.
    """
    if len(labels) > 2:
        raise ValueError(
            f"y_true has {len(labels)} different labels ({_listed(labels)}); calibration here is about one event: "
            "compare with one label first, as in y_true == 'event'"
        )
    if len(labels) == 2 and not any(_same(pos_label, label) for label in labels):
        raise ValueError(f"pos_label is {pos_label!r}, which y_true does not hold; its labels are {_listed(labels)}")
    same_kind = isinstance(pos_label, str) == isinstance(labels[0], str)
    if not same_kind:
        raise ValueError(
            f"pos_label is {pos_label!r} but the labels in y_true are {_listed(labels)}; pass the label itself"
        )
    known = [*labels, *declared, *((0, 1) if labels[0] in (0, 1) else ())]
    if not any(_same(pos_label, label) for label in known):
        raise ValueError(
            f"pos_label is {pos_label!r}, which y_true does not hold: its only label is {labels[0]!r}; if no row is an "
            f"event, say so by outcomes of 0 and 1, as in y_true == {pos_label!r} in place of y_true"
        )


def _distinct_labels(array: npt.NDArray[Any]) -> list[Any]:
    """Return the labels in sorted order, after refusing missing ones."""
    if array.dtype.kind == "f":
        _check_finite(array, "y_true")
    elif array.dtype.kind in "mM" and np.isnat(array).any():
        _refuse_missing("y_true", int(np.flatnonzero(np.isnat(array))[0]))
    elif array.dtype.kind == "V":
        raise ValueError(f"y_true has dtype {array.dtype}, records that are neither numbers nor labels; pass one field")
    elif array.dtype.kind == "O":
        _check_objects(array, "y_true", labels_allowed=True)
    labels: list[Any] = np.unique(array).tolist()
    return labels


def _same(pos_label: Any, label: Any) -> bool:
    try:
        return bool(pos_label == label)
    except (TypeError, ValueError):  # arrays and pandas' NA have no truth value
        return False


def _listed(labels: list[Any]) -> str:
    shown = ", ".join(repr(label) for label in labels[:5])
    return shown if len(labels) <= 5 else f"{shown}, ..."


def _as_numbers(values: Any, name: str) -> FloatArray:
    """Return a one-dimensional, contiguous float64 array, without a copy where the input already is one."""
    array = _as_array(values, name)
    if array.dtype.kind == "O":
        _check_objects(array, name, labels_allowed=False)
    if array.dtype.kind not in "biuf":
        remedy = "pass numbers" if array.dtype.kind in "mMV" else "convert it with astype(float) first"
        raise ValueError(
            f"{name} has dtype {array.dtype} (first value {array[:1].tolist()[0]!r}), not numbers; {remedy}"
        )
    with np.errstate(over="ignore"):  # a number beyond float64 becomes an infinity, which is refused with its position
        return np.ascontiguousarray(array, dtype=np.float64)


def _as_array(values: Any, name: str) -> npt.NDArray[Any]:
    """Turn lists, numpy, pandas, polars, pyarrow and torch input into a one-dimensional numpy array of any dtype."""
    if values is None:
        raise ValueError(f"{name} is None; pass an array")
    _refuse_nulls(values, name)
    if hasattr(values, "detach"):  # a torch tensor that carries gradients cannot become an array
        values = values.detach()
    if isinstance(values, (list, tuple)) and any(isinstance(value, str) for value in values):
        values = np.array(values, dtype=object)  # otherwise numpy would turn a missing value into the label "nan"
    numpy_dtype = getattr(getattr(values, "dtype", None), "numpy_dtype", None)  # pandas' nullable and arrow dtypes
    try:
        array = np.asarray(values, dtype=numpy_dtype) if numpy_dtype is not None else np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{name} of type {type(values).__name__} cannot be read as an array ({error}); pass a one-dimensional "
            "array in CPU memory, with one value per row"
        ) from error
    if array.ndim != 1:
        _refuse_shape(array, name, values)
    if array.size == 0:
        raise ValueError(f"{name} is empty; at least one row is needed")
    if array.dtype.kind == "c":
        raise ValueError(f"{name} has dtype {array.dtype}: complex numbers are neither outcomes nor probabilities")
    return array


def _refuse_shape(array: npt.NDArray[Any], name: str, values: Any) -> NoReturn:
    if array.ndim == 0:
        raise ValueError(f"{name} is one {type(values).__name__}, not an array; pass one value per row")
    if array.ndim == 2 and hasattr(values, "columns"):
        remedy = "pass one column of the frame"
    elif array.ndim == 2 and array.shape[1] == 1:
        remedy = f"flatten it with {name}.ravel()"
    elif array.ndim == 2 and name == "y_prob":
        remedy = "pass one class's column, for two classes y_prob[:, 1]"
    else:
        remedy = "pass one value per row"
    raise ValueError(f"{name} has shape {array.shape}, not one dimension; {remedy}")


def _refuse_nulls(values: Any, name: str) -> None:
    """Find missing values that conversion would hide: masks, pandas' NA, polars' and arrow's nulls."""
    if isinstance(values, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(values)
    elif hasattr(values, "isna"):
        missing = np.asarray(values.isna())
    elif hasattr(values, "null_count") and hasattr(values, "is_null"):
        missing = np.asarray(values.is_null())
    else:
        return
    if missing.ndim == 1 and missing.any():
        _refuse_missing(name, int(np.flatnonzero(missing)[0]))


def _check_objects(array: npt.NDArray[Any], name: str, *, labels_allowed: bool) -> None:
    """Refuse missing values first, then whatever else an array of Python objects should not hold."""
    for position, value in enumerate(array):
        if _is_missing(value):
            _refuse_missing(name, position)
    for position, value in enumerate(array):
        if isinstance(value, (str, bytes)) != labels_allowed:
            if isinstance(value, (bool, int, float)):
                raise ValueError(
                    f"{name} has dtype object (first number {value!r}); convert it with astype(float) first"
                )
            raise ValueError(
                f"{name}[{position}] is {value!r} of type {type(value).__name__}, not a number; convert {name} with "
                "astype(float), or to plain labels with pos_label= for outcomes"
            )


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA has no truth value
        return True
    except ValueError:  # nor has an array, which is not missing but no single value either
        return False


def _refuse_missing(name: str, position: int) -> NoReturn:
    raise ValueError(f"{name}[{position}] is missing; {MISSING_REMEDY}")


def _check_finite(values: npt.NDArray[Any], name: str) -> None:
    positions = np.flatnonzero(~np.isfinite(values))
    if positions.size:
        position = int(positions[0])
        if np.isnan(values[position]):
            _refuse_missing(name, position)
        raise ValueError(f"{name}[{position}] is {shown(values[position])}; every value must be finite")


def _only_zero_and_one(values: npt.NDArray[Any]) -> bool:
    chunks = (values[start : start + _CHUNK] for start in range(0, values.size, _CHUNK))
    return all(bool(((chunk == 0) | (chunk == 1)).all()) for chunk in chunks)

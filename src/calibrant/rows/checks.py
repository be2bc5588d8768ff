"""The one gate: raw input becomes checked arrays here and nowhere else.

Every rule has one message that names the argument, the first offending position, the value and the remedy. Nothing
is clipped, dropped or guessed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.frames import FromFrames
from calibrant.core.types import FloatArray, IntArray
from calibrant.core.voices import Argument, Either, Option, Phrase
from calibrant.core.words import shown
from calibrant.rows.arrays import as_array, as_numbers, check_finite, check_objects, is_missing, refuse_missing
from calibrant.rows.labels import check_pos_label, counted_places, listed_labels, same_label
from calibrant.rows.runs import stable_order

_CHUNK = 1 << 16
_SLIP = 1e-6  # a forecast outside [0, 1] by less than this is more likely rounding than another scale
MOST_ROWS = 2.0**53
"""From so many on, rows are not counted exactly."""
_MOST_COST = 1e300  # two of them still add up to a number
_LOOKS_LIKE_PERCENT = 1.5  # a largest value above this, and at most 100, is more likely a percentage than a slip

OUTCOME_REMEDY = Phrase(
    "if these are class labels pass {pos_label} with the one that counts as the event, if they are amounts scale them "
    "into [0, 1]",
    pos_label=Option("pos_label"),
)
LABEL_REMEDY = Phrase("pass {pos_label} with the label that counts as the event", pos_label=Option("pos_label"))
SWAPPED_COLUMNS = Phrase(
    "the columns look swapped: exchange {y_true} and {y_prob}", y_true=Option("y_true"), y_prob=Option("y_prob")
)
WEIGHT_REMEDY = "weights must not be negative: drop the row or give it weight 0"


@dataclass(frozen=True)
class Observations(FromFrames):
    """Checked rows: the only form in which raw data travels further.

    Attributes
    ----------
    y_true : array of uint8 (0/1 outcomes) or float64 (any outcomes in [0, 1])
    y_prob : contiguous array of float64 in [0, 1]
    sample_weight : array of float64, nonnegative and not all zero, or None for unit weights
    binary_outcomes : whether every outcome is 0 or 1
    weights_estimated : whether weights were estimated from the rows, as those of censored ones are, so that no
        guarantee holds
    """

    y_true: npt.NDArray[np.uint8] | FloatArray
    y_prob: FloatArray
    sample_weight: FloatArray | None
    binary_outcomes: bool
    weights_estimated: bool = field(default=False, kw_only=True, repr=False)

    def take(self, positions: IntArray | slice) -> Observations:
        """Return the rows at the given positions; a slice copies nothing."""
        weight = None if self.sample_weight is None else self.sample_weight[positions]
        return self.others(self.y_true[positions], self.y_prob[positions], weight, self.binary_outcomes)

    def that_count(self) -> Observations:
        """Return the rows without those of weight zero."""
        if self.sample_weight is None or self.sample_weight.all():
            return self
        return self.take(np.flatnonzero(self.sample_weight))

    def alone(self) -> Observations:
        """Return some rows of a larger set as if they had come alone, with outcomes that may all be 0 or 1."""
        if self.binary_outcomes or not np.isin(self.y_true, (0.0, 1.0)).all():
            return self
        return self.others(self.y_true.astype(np.uint8), self.y_prob, self.sample_weight, True)

    def to_draw_from(self) -> Observations:
        """Return the rows that resamples are drawn from, in an order that depends on what they hold alone."""
        return self.that_count().in_order()

    def drawn_again(self, positions: IntArray) -> Observations:
        """Return the rows at the given positions as a sample of their own; what was estimated from all is anew."""
        return self.take(positions)

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
        return Observations(
            y_true,
            y_prob,
            weight,
            self.binary_outcomes and other.binary_outcomes,
            weights_estimated=self.weights_estimated or other.weights_estimated,
        )

    def others(
        self,
        y_true: npt.NDArray[np.uint8] | FloatArray,
        y_prob: FloatArray,
        sample_weight: FloatArray | None,
        binary_outcomes: bool,
    ) -> Observations:
        """Return other rows with weights that came about as these did."""
        return Observations(y_true, y_prob, sample_weight, binary_outcomes, weights_estimated=self.weights_estimated)


def check_observations(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    by: Any = None,
    cluster: Any = None,
    order: str | None = "(y_true, y_prob)",
) -> Observations:
    """Check outcomes, forecasts and weights together; raise an `InputError` that says what to do otherwise.

    Of groups and clusters only the labels of their rows are looked at here: `check_labels` and `check_codes` read them.
    ``order`` is that of the arguments of whoever asks, who is told so where they look swapped; None lets them be.
    """
    if y_prob is None:
        raise InputError(
            "is missing",
            argument="y_prob",
            remedy="pass outcomes and forecasts, as in measure(y_true, y_prob), or a Tally on its own",
            joint=": ",
        )
    forecasts = check_forecasts(y_prob)
    outcomes, binary = _check_outcomes(y_true, pos_label)
    _check_same_length(outcomes.size, forecasts.size)
    weights = check_weights(sample_weight, forecasts.size)
    check_same_index(y_true=y_true, y_prob=y_prob, sample_weight=sample_weight, by=by, cluster=cluster)
    if order is not None and not binary and _only_zero_and_one(forecasts):
        position = int(np.flatnonzero((outcomes != 0) & (outcomes != 1))[0])
        raise InputError(
            Phrase(
                "holds only 0 and 1 while {outcome} is {value}: {swapped}",
                outcome=Argument("y_true", position),
                value=shown(outcomes[position]),
                swapped=Either(
                    f"the arguments look swapped, the order is {order}; if it is meant, pass "
                    "Tally.from_arrays(y_true, y_prob)",
                    SWAPPED_COLUMNS,
                ),
            ),
            argument="y_prob",
            value=float(outcomes[position]),
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
            differing = ((k, pair) for k, pair in pairs if not same_label(*pair))
            position, labels = next(differing, (0, (first[0], index[0])))
            reordered = set(first) == set(index) and len(set(first)) == len(first)
            how = "choose the same rows of both"
            how = f"bring both into one order, as in {name}.reindex({known}.index)" if reordered else how
            raise InputError(
                f"is labelled {labels[0]!r} and {name}[{position}] is labelled {labels[1]!r}, and rows are paired by "
                "position, not by label",
                argument=known,
                position=position,
                value=labels[0],
                remedy=f"{how}, or drop the labels with .to_numpy() if the positions match",
            )


def _index_of(values: Any) -> Any:
    """Return the labels of rows: the index of a pandas series or frame, or that of xarray's first dimension."""
    if hasattr(values, "dims") and hasattr(values, "indexes"):
        return values.indexes.get(next(iter(values.dims), None))
    index = getattr(values, "index", None)  # a method of lists and tuples, which has no `equals`
    return index if hasattr(index, "equals") else None


def check_forecasts(y_prob: Any, *, name: str = "y_prob") -> FloatArray:
    """Return forecasts as contiguous float64 in [0, 1], widening other number types exactly."""
    values = as_numbers(y_prob, name)
    low, high = float(values.min()), float(values.max())  # NaN, if any, comes out of both
    if low >= 0.0 and high <= 1.0:
        return values
    check_finite(values, name)
    position = int(np.flatnonzero((values < 0.0) | (values > 1.0))[0])
    raise _bad_value(values, name, position, forecast_remedy(low, high), "outside [0, 1]")


def forecast_remedy(low: float, high: float, squash: str = "a sigmoid") -> str:
    """Say what to do about forecasts that reach from low to high and leave [0, 1]."""
    if low >= -_SLIP and high <= 1.0 + _SLIP:
        return Phrase(
            "if rounding pushed it out, bring it back{how}",
            how=Either(", as in numpy.clip(values, 0, 1)", " into [0, 1]"),
        )
    if low < 0.0:
        return Phrase(
            "these look like logits or other scores: apply {squash} first{else_}",
            squash=squash,
            else_=Either(", or pass predict_proba output"),
        )
    if _LOOKS_LIKE_PERCENT < high <= 100.0:
        return f"if these are percentages, divide by 100; if they are scores, apply {squash} first"
    return f"if these are percentages divide by 100, if they are scores apply {squash} first"


def check_scores(scores: Any, *, name: str = "y_prob") -> FloatArray:
    """Return raw scores as contiguous float64: any finite numbers, not so far apart that their distance overflows."""
    values = as_numbers(scores, name)
    check_finite(values, name)
    low, high = float(values.min()), float(values.max())
    if not np.isfinite(high - low):
        raise InputError(
            f"reaches from {low:g} to {high:g}, too far for float64 to subtract",
            argument=name,
            remedy="scale the scores",
        )
    return values


def check_weights(sample_weight: Any, rows: int) -> FloatArray | None:
    """Return weights as contiguous float64, or None when there are none."""
    if sample_weight is None:
        return None
    weights = as_numbers(sample_weight, "sample_weight")
    if weights.size != rows:
        raise _bad_length("sample_weight", weights.size, f"{rows:,} rows", "pass one weight per row")
    low, high = float(weights.min()), float(weights.max())
    if not (low >= 0.0 and high < np.inf):
        check_finite(weights, "sample_weight")
        position = int(np.flatnonzero(weights < 0.0)[0])
        raise _bad_value(weights, "sample_weight", position, WEIGHT_REMEDY)
    if high == 0.0:
        raise InputError("is zero everywhere", argument="sample_weight", remedy="at least one row must count")
    with np.errstate(over="ignore", under="ignore"):
        check_weight_totals(float(weights.sum()), float(weights @ weights), high)
    return weights


def check_weight_totals(total: float, square_total: float, high: float) -> None:
    """Refuse weights, none above ``high``, whose sum or sum of squares float64 cannot hold."""
    if not np.isfinite(total):
        raise InputError(
            f"sums to infinity (largest weight {high:g})",
            argument="sample_weight",
            value=high,
            remedy="divide the weights by that",
        )
    if not np.finfo(np.float64).tiny <= square_total < np.inf:
        raise InputError(
            f"has squares that float64 cannot hold (largest weight {high:g})",
            argument="sample_weight",
            value=high,
            remedy="divide the weights by that",
        )


def check_counts(counts: Any, name: str, size: int) -> IntArray:
    """Return counts of observations as whole numbers, one per forecast; sums of databases may come as decimals."""
    given = as_array(counts, name)
    if given.dtype.kind == "O" and all(map(_is_kept_by_float, given)):
        given = given.astype(np.float64)
    values = as_numbers(given, name)
    if values.size != size:
        raise _bad_length(name, values.size, f"{size:,} forecasts", "pass one count per forecast")
    check_finite(values, name)
    bad = np.flatnonzero((values < 0.0) | (values != np.floor(values)))
    if bad.size:
        remedy = "counts are whole numbers, not negative: for weights use Tally.from_arrays with sample_weight"
        raise _bad_value(values, name, int(bad[0]), remedy)
    check_row_counts(values, name)
    return values.astype(np.int64)


def _is_kept_by_float(value: Any) -> bool:
    return type(value) in (int, Decimal) and float(Decimal(value)) == value


def check_row_counts(counts: FloatArray | IntArray, name: str) -> None:
    """Refuse counts that add up to more than float64, in which they meet weights and outcomes, holds exactly."""
    if counts.size == 0 or float(counts.max()) * counts.size < MOST_ROWS:
        return
    total = float(counts.sum(dtype=np.float64))
    if total >= MOST_ROWS:
        position = int(counts.argmax())
        remedy = "from 2^53 on counts are not exact: judge a sample of the rows, or fewer parts at a time"
        raise _bad_value(counts, name, position, remedy, f"and together they reach {total:.6g}")


def check_totals(columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """Refuse totals of rows that hold what is not a finite number, wherever they come from, or do not add up to one."""
    with np.errstate(all="ignore"):
        totals = {name: float(np.add.reduce(column, dtype=np.float64)) for name, column in columns.items()}
    for name, total in totals.items():
        if math.isfinite(total):
            continue
        position = int(np.argmin(np.isfinite(columns[name])))
        value = columns[name][position]
        if not np.isfinite(value):
            raise InputError(
                f"of these totals is {shown(value)}",
                argument=name,
                position=position,
                value=value.item(),
                remedy="every total must be finite: look for missing or infinite values in the rows that were added up",
            )
        raise InputError(
            f"adds up to {shown(total)}", argument=name, value=total, remedy="divide the weights by the largest of them"
        )


def check_number(value: Any, name: str, *, low: float = -np.inf, high: float = np.inf, whole: bool = False) -> float:
    """Return a scalar option as a float after checking its type and range."""
    kind = "a whole number" if whole else "a number"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise _bad_option(name, value, kind, f" of type {type(value).__name__}")
    if value != value or not low <= value <= high or (whole and not _is_whole(value)):
        raise _bad_option(name, value, f"{kind} from {low:g} to {high:g}")
    try:
        return float(value)
    except OverflowError:  # a whole number beyond every float
        return np.inf


def _is_whole(value: Any) -> bool:
    return bool(abs(value) != np.inf and value == int(value))


def check_confidence(value: Any) -> float:
    """Return a confidence level from 0.5 to below 1."""
    is_nan = isinstance(value, (float, np.floating)) and value != value
    level = float(value) if is_nan else check_number(value, "confidence_level")
    if 50.0 <= level < 100.0:
        remedy = f"write {level / 100.0:g} for {level:g}%"
        raise InputError(f"is {level:g}", argument="confidence_level", value=level, remedy=remedy)
    if not 0.5 <= level < 1.0:
        raise _bad_option(
            "confidence_level", value, "from 0.5 to below 1", remedy="0.95 means wrong in at most 5% of cases"
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
    raise _bad_option("rng", value, "None, a whole number from 0 on as seed, or a numpy.random.Generator")


def check_labels(values: Any, name: str, rows: int) -> tuple[list[Any], list[IntArray]]:
    """Return the distinct labels in sorted order, and the positions of the rows that carry each."""
    labels, inverse = label_places(values, name, rows)
    order = stable_order(inverse)
    ends = np.cumsum(np.bincount(inverse))
    return [plain_label(label) for label in labels.tolist()], np.split(order, ends[:-1])


def check_codes(values: Any, name: str, rows: int) -> tuple[IntArray, int]:
    """Return the place of each row's label among the distinct ones in sorted order, and how many there are."""
    labels, places = label_places(values, name, rows)
    return places, labels.size


def label_places(values: Any, name: str, rows: int) -> tuple[npt.NDArray[Any], IntArray]:
    """Return the distinct labels in sorted order, and the place among them of the label of each row."""
    array = as_array(values, name)
    if array.size != rows:
        raise _bad_length(name, array.size, f"{rows:,} rows", "pass one label per row")
    counted = counted_places(array)
    if counted is not None:
        return counted
    if array.dtype.kind == "O":
        held = array.tolist()
        for position, value in enumerate(held):
            if is_missing(value):
                refuse_missing(name, position)
        if all(isinstance(value, float) for value in held):
            array = array.astype(np.float64)
    if array.dtype.kind == "f":
        check_finite(array, name)
        array = array + 0.0  # where zero has no sign
    elif array.dtype.kind in "mM":
        if np.isnat(array).any():
            refuse_missing(name, int(np.flatnonzero(np.isnat(array))[0]))
        array = array.astype(str)
    try:
        labels, inverse = np.unique(array, return_inverse=True)
    except TypeError as error:
        raise InputError(
            f"mixes labels that cannot be compared ({error})", argument=name, remedy="convert them to strings"
        ) from error
    return labels, inverse


def plain_label(label: Any) -> Any:
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
        raise InputError("is empty", argument=name, remedy="pass one threshold or an array of them")
    values = as_numbers(threshold, name)
    check_finite(values, name)
    outside = np.flatnonzero((values < 0.0) | (values > 1.0))
    if outside.size:
        remedy = "a threshold is the probability from which it pays to act: divide percentages by 100"
        raise _bad_value(values, name, int(outside[0]), remedy, "outside [0, 1]")
    return values


def check_costs(cost_false_positive: Any, cost_false_negative: Any) -> tuple[float, float]:
    """Return the costs of a false alarm and of a missed event, not both 0."""
    costs = []
    for name, value in (("cost_false_positive", cost_false_positive), ("cost_false_negative", cost_false_negative)):
        if value is None:
            remedy = "pass both costs, or threshold= in their place"
            raise InputError("is missing", argument=name, remedy=remedy, joint=": ")
        costs.append(check_number(value, name, low=0.0, high=_MOST_COST))
    if not any(costs):
        raise InputError("both costs are 0, so no decision matters", remedy="at least one must be positive")
    return costs[0], costs[1]


def check_masses(masses: Any, size: int) -> FloatArray:
    """Return the masses of the atoms of a measure: positive numbers, one for each."""
    values = as_numbers([masses] if isinstance(masses, (int, float)) else masses, "masses")
    if values.size != size:
        raise _bad_length("masses", values.size, f"{size:,} atoms", "pass one mass for each atom")
    check_finite(values, "masses")
    bad = np.flatnonzero(values <= 0.0)
    if bad.size:
        raise _bad_value(values, "masses", int(bad[0]), "masses must be positive: leave the atom out")
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
        raise _bad_option(name, value, f"one of {listed}")
    return value


def check_flag(value: Any, name: str) -> bool:
    """Return an option that must be True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise _bad_option(name, value, "True or False")
    return bool(value)


def _check_outcomes(y_true: Any, pos_label: Any) -> tuple[npt.NDArray[np.uint8] | FloatArray, bool]:
    array = as_array(y_true, "y_true")
    if pos_label is not None:
        return _match_label(array, pos_label, _declared_labels(y_true)), True
    if array.dtype.kind in "USTO":
        labels = _distinct_labels(array)
        first = array[:1].tolist()[0]
        raise InputError(
            f"is {first!r}, a label and not a number (labels: {listed_labels(labels)})",
            argument="y_true",
            position=0,
            value=first,
            remedy=LABEL_REMEDY,
        )
    if array.dtype.kind == "b":
        return np.ascontiguousarray(array).view(np.uint8), True
    values = as_numbers(array, "y_true")
    low, high = float(values.min()), float(values.max())
    if not (low >= 0.0 and high <= 1.0):
        check_finite(values, "y_true")
        position = int(np.flatnonzero((values < 0.0) | (values > 1.0))[0])
        raise _bad_value(values, "y_true", position, OUTCOME_REMEDY, "outside [0, 1]")
    return values, _only_zero_and_one(values)


def _check_same_length(outcomes: int, forecasts: int) -> None:
    if outcomes != forecasts:
        raise InputError(
            Phrase(
                "has {size:,} values and {other} has {count:,}",
                size=outcomes,
                other=Argument("y_prob"),
                count=forecasts,
            ),
            argument="y_true",
            remedy="pass one outcome per forecast",
        )


def _match_label(array: npt.NDArray[Any], pos_label: Any, declared: list[Any]) -> npt.NDArray[np.uint8]:
    check_pos_label(_distinct_labels(array), pos_label, declared)
    return np.ascontiguousarray(array == pos_label).view(np.uint8)


def _declared_labels(values: Any) -> list[Any]:
    """Return the two labels that a categorical column declares, whether they occur or not."""
    categories: Any = getattr(getattr(values, "dtype", None), "categories", None)
    return list(categories) if hasattr(categories, "__len__") and len(categories) == 2 else []


def _distinct_labels(array: npt.NDArray[Any]) -> list[Any]:
    """Return the labels in sorted order, after refusing missing ones."""
    if array.dtype.kind == "f":
        check_finite(array, "y_true")
    elif array.dtype.kind in "mM" and np.isnat(array).any():
        refuse_missing("y_true", int(np.flatnonzero(np.isnat(array))[0]))
    elif array.dtype.kind == "V":
        raise InputError(
            f"has dtype {array.dtype}, records that are neither numbers nor labels",
            argument="y_true",
            remedy="pass one field",
        )
    elif array.dtype.kind == "O":
        check_objects(array, "y_true", labels_allowed=True)
    labels: list[Any] = np.unique(array).tolist()
    return labels


def _bad_value(values: npt.NDArray[Any], name: str, position: int, remedy: str, why: str = "") -> InputError:
    value = values[position].item()
    said = f"is {shown(value)}, {why}" if why else f"is {shown(value)}"
    return InputError(said, argument=name, position=position, value=value, remedy=remedy)


def _bad_length(name: str, size: int, wanted: str, remedy: str) -> InputError:
    return InputError(f"has {size:,} values for {wanted}", argument=name, value=size, remedy=remedy)


def _bad_option(name: str, value: Any, wanted: str, also: str = "", remedy: str = "") -> InputError:
    return InputError(f"must be {wanted}, got {value!r}{also}", argument=name, value=value, remedy=remedy)


def _only_zero_and_one(values: npt.NDArray[Any]) -> bool:
    chunks = (values[start : start + _CHUNK] for start in range(0, values.size, _CHUNK))
    return all(bool(((chunk == 0) | (chunk == 1)).all()) for chunk in chunks)

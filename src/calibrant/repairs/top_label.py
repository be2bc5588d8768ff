"""The confidence in the top label, repaired.

.. [1] Gupta, Ramdas (2022), Top-label calibration and multiclass-to-binary reductions.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from calibrant.core.errors import CalibrationWarning, InputError
from calibrant.core.sql import number_literal
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray
from calibrant.repairs.class_recalibrator import ASSUMED
from calibrant.repairs.class_results import ClassGuarantee
from calibrant.repairs.class_rows import FitRows, tie_order, top_places
from calibrant.repairs.one_vs_rest import AroundRecalibrator
from calibrant.repairs.recalibrator import GuaranteedMeasure, GuaranteeTarget, Recalibrator
from calibrant.rows.checks import check_choice

_BELOW = 1.0 - 1e-9  # of the confidence: what another class may have at most, lest a tie change the top label


class TopLabelRecalibrator(AroundRecalibrator):
    """Recalibrate the confidence in the top label, by isotonic regression unless another map is named.

    The top label yhat is the class with the highest probability c, the first of several that are equally high. One map
    h is fitted to the pairs (c, whether yhat happened), however many classes there are. With isotonic regression the
    Cutoff calibration error of the new confidence is at most 3 sqrt(ln(2e / delta) / (2 n)) with probability
    1 - delta: known before any data, with no price for the number of classes.

    To return a whole row of probabilities, yhat gets h(c) and the other classes share the rest in proportion to their
    old probabilities. Where that would lift one of them to h(c), the shares are drawn towards equal ones until the
    largest is a hair (a billionth of it) below h(c); so yhat stays on top, and the new confidence is h(c). That is
    possible if and only if h(c) > 1/K; at h(c) = 1/K all classes are equal. Below, the others share equally, each has
    more than h(c), and a warning says so: the calibrated statement is then the pair (yhat, h(c)) that `predict_top`
    returns. Nothing is promised of the other classes.

    Parameters
    ----------
    recalibrator : Recalibrator, optional
        The map of the confidence: any recalibrator of events, by default `IsotonicRecalibrator`.
    classes : sequence of labels, optional
        The labels of the columns; by default those in ``y_true``, sorted.

    Attributes
    ----------
    map_ : Recalibrator
        The fitted map of the confidence.
    classes_ : tuple
        The labels, in the order of the columns.
    guarantee_ : ClassGuarantee or None
        What holds with 95% confidence; None after a fit with weights.
    n_rows_, weighted_
        About the fitting rows.

    References
    ----------
    [1]_ for the reduction; the guarantee is this project's (docs/theory/class-repairs.md).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.dirichlet([0.3, 0.3, 0.3], 2000)
    >>> y_true = [rng.choice(3, p=0.7 * row + 0.1) for row in y_prob]  # less sure than forecast
    >>> recalibrator = TopLabelRecalibrator().fit(y_prob, y_true)
    >>> recalibrator.predict([[0.9, 0.08, 0.02]]).round(3)
    array([[0.74 , 0.208, 0.052]])
    >>> round(recalibrator.guarantee().upper, 3)
    0.103
    """

    _fitted: ClassVar = ("map_",)

    def __init__(
        self, recalibrator: Recalibrator | None = None, *, classes: Sequence[ClassLabel] | None = None
    ) -> None:
        self.recalibrator = recalibrator
        self.classes = classes

    def predict(self, y_prob: ArrayLike) -> FloatArray:
        """Return the recalibrated probabilities.

        Parameters
        ----------
        y_prob : array-like of shape (n, K)
            Probabilities, with the columns of the fit.

        Returns
        -------
        array of shape (n, K)
            Probabilities that sum to 1, in the order of ``classes_``. A warning says in how many rows the top label
            could not stay on top.
        """
        value = self._checked(y_prob, "predict")
        found = self._mapped(value)
        top = top_places(value, self.classes_)
        lost = int(np.count_nonzero(found[np.arange(top.size), top] * found.shape[1] < 1.0 - 1e-12))
        if lost:
            warnings.warn(
                f"in {lost:,} of {top.size:,} rows the new confidence in the top label is below 1/{found.shape[1]}, so "
                "that another class is above it; predict_top() returns the label and its confidence alone",
                CalibrationWarning,
                stacklevel=2,
            )
        return found

    def predict_top(self, y_prob: ArrayLike) -> tuple[Any, FloatArray]:
        """Return the top label of each row and the recalibrated confidence in it: what the guarantee speaks of.

        Parameters
        ----------
        y_prob : array-like of shape (n, K)
            Probabilities, with the columns of the fit.

        Returns
        -------
        labels : array of shape (n,)
            Out of ``classes_``: the class with the highest probability, the first of several.
        confidence : array of shape (n,)
            The probability that it is right.
        """
        value = self._checked(y_prob, "predict_top")
        return np.array(self.classes_)[top_places(value, self.classes_)], self.map_._mapped(value.max(axis=1))

    def _check_params(self) -> None:
        super()._check_params()
        if self.recalibrator is not None:
            check_choice(self._new_map().input_kind, "input_kind of the recalibrator", ("probability",))

    def _fit_map(self, rows: FitRows) -> None:
        right = top_places(rows.value, rows.classes) == rows.places
        self.map_ = self._new_map().fit(rows.value.max(axis=1), right, sample_weight=rows.weight)

    def _map(self, value: FloatArray) -> FloatArray:
        rows, others = np.arange(len(value)), value.shape[1] - 1
        top = top_places(value, self.classes_)
        confidence = self.map_._map(value[rows, top])
        share = value.copy()
        share[rows, top] = 0.0
        total = share.sum(axis=1, keepdims=True)
        equal = 1.0 / others
        share = np.divide(share, total, out=np.full(share.shape, equal), where=total > 0.0)
        rest = 1.0 - confidence
        # rest x (equal + pull x (share - equal)): pull = 1 is in proportion, 0 is equally.
        ahead = share.max(axis=1, where=np.arange(others + 1) != top[:, None], initial=0.0) - equal
        room = _BELOW * confidence - rest * equal
        spread = np.divide(room, ahead, out=rest.copy(), where=ahead > 0.0)
        spread = np.clip(spread, 0.0, rest)
        found: FloatArray = (rest * equal)[:, None] + spread[:, None] * (share - equal)
        found = np.maximum(found, 0.0)  # rounding must not bring a class below it
        found[rows, top] = confidence
        return found

    def _sql(self, columns: list[str]) -> list[str]:
        others = len(columns) - 1
        equal = number_literal(1.0 / others)
        first = tie_order(self.classes_)
        highest = _greatest(columns)
        confidence = f"({self.map_._sql(highest)})"
        rest = f"(1e0 - {confidence})"
        is_top = [
            " AND ".join(
                f"{column} {'>' if first[j] < first[k] else '>='} {other}" for j, other in enumerate(columns) if j != k
            )
            for k, column in enumerate(columns)
        ]
        rivals = [[other for other in columns if other != column] for column in columns]
        total = _chosen(is_top, [" + ".join(each) for each in rivals])  # 1 - c would lose digits
        ahead = f"({_chosen(is_top, [_greatest(each) for each in rivals])} / {total} - {equal})"
        room = f"({number_literal(_BELOW)} * {confidence} - {rest} * {equal})"
        found = []
        for k, column in enumerate(columns):
            share = f"({column} / {total} - {equal})"
            spread = (
                f"CASE WHEN {room} <= 0e0 THEN 0e0 WHEN {ahead} <= 0e0 OR {room} >= {rest} * {ahead} THEN {rest} "
                f"ELSE {room} / {ahead} END"
            )
            found.append(
                f"CASE WHEN {is_top[k]} THEN {confidence} WHEN {total} <= 0e0 THEN {rest} * {equal} "
                f"ELSE {rest} * {equal} + ({spread}) * {share} END"
            )
        return found

    def _refuse_guarantee(self) -> None:
        pass

    def _guarantee(self, level: float, measure: GuaranteedMeasure, target: GuaranteeTarget) -> ClassGuarantee:
        found = self.map_._guarantee(level, measure, target, None)
        notes = list(found.notes)
        least = 1.0 / len(self.classes_)
        if float(self.map_._map(np.array([least, 1.0])).min()) <= least:
            notes.append(
                "where the new confidence is not above one over the number of classes, it speaks of the pair that "
                "predict_top() returns, and not of the largest probability that predict() returns"
            )
        return ClassGuarantee(
            recalibrator=type(self).__name__,
            question="confidence",
            upper=found.upper,
            error=found.error,
            margin=found.margin,
            in_advance=found.in_advance,
            confidence_level=level,
            rows=self.n_rows_,
            classes=self.classes_,
            promise=found.promise,
            measure=measure,
            target=target,
            assumptions=ASSUMED[target],
            notes=tuple(notes),
        )

    def _restored(self, name: str, value: Any) -> Recalibrator:
        del name
        return Recalibrator._from_dict(value)

    def _check_state(self) -> None:
        wanted = type(self._new_map())
        if type(self.map_) is not wanted or self.map_.input_kind != "probability":
            raise InputError(
                f"is a {type(self.map_).__name__} in place of {wanted.__name__}",
                argument="map_",
                remedy="the text is damaged",
            )


def _chosen(conditions: list[str], values: list[str]) -> str:
    cases = " ".join(f"WHEN {condition} THEN {value}" for condition, value in zip(conditions, values, strict=True))
    return f"(CASE {cases} END)"


def _greatest(columns: list[str]) -> str:
    return columns[0] if len(columns) == 1 else f"GREATEST({', '.join(columns)})"

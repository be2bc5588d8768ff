"""Maps of whole rows of probabilities by their logarithms: temperature and vector scaling of several classes.

.. [1] Guo, Pleiss, Sun, Weinberger (2017), On calibration of modern neural networks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.softmax import Draws, fit_scaling, fit_sharpness, softmax
from calibrant.core.sql import clipped_sql, number_literal
from calibrant.core.types import ClassLabel, FloatArray
from calibrant.repairs.class_recalibrator import ClassRecalibrator, restored_numbers
from calibrant.repairs.class_results import ClassGuarantee
from calibrant.repairs.class_rows import FitRows
from calibrant.repairs.fits import clipped
from calibrant.repairs.recalibrator import LARGEST, GuaranteedMeasure, GuaranteeTarget, InputKind
from calibrant.rows.checks import check_flag, check_number

_MOST_STEEP = 1e300
_SURE_EXPONENT = 700.0  # beyond it some engines refuse the exponential
_CLIP = "say how small it may be at least, as in clip=1e-6"


class _SoftmaxMap(ClassRecalibrator):
    """What maps share that scale logits, the logarithms of probabilities or scores as they are."""

    clip: float | None

    def _check_params(self) -> None:
        if self.clip is None:
            return
        if self.input_kind == "score":
            raise InputError(
                f"is {self.clip!r}, and scores have no logarithm taken",
                argument="clip",
                value=self.clip,
                remedy="leave clip out, or use input_kind='probability'",
            )
        if not 0.0 < check_number(self.clip, "clip", low=0.0, high=0.5) < 0.5:
            raise InputError(
                f"must be between 0 and 0.5, got {self.clip!r}",
                argument="clip",
                value=self.clip,
                remedy="1e-6 is a common choice",
            )

    def _logits(self, value: FloatArray) -> FloatArray:
        if self.input_kind == "score":
            return value
        with np.errstate(divide="ignore"):
            return np.log(clipped(value, self.clip))

    def _draws(self, rows: FitRows) -> Draws:
        return Draws(lambda part: self._logits(rows.value[part]), rows.places, rows.weight)

    def _refuse_guarantee(self) -> NoReturn:
        raise InputError(
            f"a {type(self).__name__} has no guarantee from the rows it was fitted to: with three classes or more it "
            "does not keep the order of the forecasts of a class, which the theorem for all monotone maps needs",
            remedy="certify() its forecasts on rows kept aside, or choose from a menu of maps fixed beforehand with "
            "MenuRecalibrator()",
        )

    def _guarantee(self, level: float, measure: GuaranteedMeasure, target: GuaranteeTarget) -> ClassGuarantee:
        del level, measure, target
        self._refuse_guarantee()

    def _sql(self, columns: list[str]) -> list[str]:
        return softmax_sql([self._linear_sql(k, column) for k, column in enumerate(columns)], self._ruled_out(columns))

    @abstractmethod
    def _linear_sql(self, number: int, column: str) -> str:
        """Return the linear part of a class as SQL of its column."""

    def _ruled_out(self, columns: list[str]) -> list[str]:
        """Return for each class when it is ruled out, as a condition in SQL; empty where it cannot be."""
        is_safe = self.input_kind == "score" or self.clip is not None
        return ["" if is_safe else f"{column} <= 0e0" for column in columns]

    def _logit_sql(self, column: str) -> str:
        return column if self.input_kind == "score" else f"LN({clipped_sql(column, self.clip)})"


class ClassTemperatureRecalibrator(_SoftmaxMap):
    """Temperature scaling of several classes: the logits of every row are divided by one number, the temperature.

    The probability of class k becomes p_k^(1/T) / sum_j p_j^(1/T), or for scores softmax(z/T). Above 1 the temperature
    makes forecasts less sure of themselves, below 1 more; the order of the classes in a row stays, and with it the top
    label. One number is fitted, by maximum likelihood, a convex problem in 1/T. For two classes it is
    `TemperatureRecalibrator`.

    **No guarantee.** With three classes or more the new confidence is not a monotone function of the old one: it
    depends on how the rest is spread. So nothing follows from the error on the fitting rows for all such maps at once,
    and `guarantee` says so. `certify` the result on rows kept aside, or choose a temperature from a grid fixed
    beforehand: `MenuRecalibrator`.

    Parameters
    ----------
    temperature : float, optional
        A temperature that is fixed beforehand; ``fit`` then only notes the classes. By default it is fitted.
    clip : float, optional
        Take probabilities below this or above one minus this to be this. Without it, a class with probability 0 is
        ruled out and stays so, whatever the temperature; if it happened on a fitting row, no temperature is more
        likely than another, and that is an error.
    input_kind : {"probability", "score"}
        Whether ``y_prob`` holds probabilities, or logits of any scale: what a softmax would make probabilities of.
    classes : sequence of labels, optional
        The labels of the columns; by default those in ``y_true``, sorted.

    Attributes
    ----------
    temperature_ : float
        Above 0.
    classes_ : tuple
        The labels, in the order of the columns.
    guarantee_ : None
        There is none.
    n_rows_, weighted_
        About the fitting rows.

    References
    ----------
    [1]_.

    Examples
    --------
    >>> y_prob = [[0.97, 0.02, 0.01], [0.9, 0.06, 0.04], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.1, 0.9, 0]]
    >>> recalibrator = ClassTemperatureRecalibrator().fit(y_prob, ["a", "b", "b", "c", "a"])
    >>> round(recalibrator.temperature_, 3), recalibrator.predict([[0.8, 0.2, 0.0]]).round(3)
    (2.556, array([[0.632, 0.368, 0.   ]]))
    """

    _fitted: ClassVar = ("temperature_",)

    def __init__(
        self,
        *,
        temperature: float | None = None,
        clip: float | None = None,
        input_kind: InputKind = "probability",
        classes: Sequence[ClassLabel] | None = None,
    ) -> None:
        self.temperature = temperature
        self.clip = clip
        self.input_kind = input_kind
        self.classes = classes

    def _check_params(self) -> None:
        super()._check_params()
        if self.temperature is not None and not (
            1.0 / _MOST_STEEP <= check_number(self.temperature, "temperature", low=0.0) <= _MOST_STEEP
        ):
            raise InputError(
                f"is {self.temperature!r}", argument="temperature", value=self.temperature, remedy="it must be above 0"
            )

    def _fit_map(self, rows: FitRows) -> None:
        if self.temperature is not None:
            self.temperature_ = float(self.temperature)
            return
        refuse_impossible(rows, self.clip, self.input_kind)
        found = fit_sharpness(self._draws(rows))
        if found.problem == "no better":
            raise UndefinedError(
                "no temperature improves on equal probabilities, because the labels do not side with the forecasts",
                remedy="use VectorRecalibrator() or OneVsRestRecalibrator(), which can also shift them",
            )
        if found.problem is not None:
            raise UndefinedError(
                "every row is of the class that its forecast puts on top, so that the temperature would be 0",
                remedy="collect more rows, or use OneVsRestRecalibrator()",
            )
        self.temperature_ = 1.0 / found.value

    def _map(self, value: FloatArray) -> FloatArray:
        logits = self._logits(value)
        # From the top of each row downwards, so that no logit overflows.
        return softmax((logits - logits.max(axis=1, keepdims=True)) / self.temperature_)

    def _linear_sql(self, number: int, column: str) -> str:
        del number
        return f"{self._logit_sql(column)} / {number_literal(self.temperature_)}"

    def _restored(self, name: str, value: Any) -> float:
        return check_number(value, name, low=0.0, high=LARGEST)

    def _check_state(self) -> None:
        if not 1.0 / _MOST_STEEP <= self.temperature_ <= _MOST_STEEP:
            raise InputError(
                f"is {self.temperature_:g}",
                argument="temperature_",
                value=self.temperature_,
                remedy="it must be above 0, so the text is damaged",
            )
        if self.temperature is not None and self.temperature_ != self.temperature:
            raise InputError("is not the temperature that was fixed", argument="temperature_")


class VectorRecalibrator(_SoftmaxMap):
    """Vector scaling: the logit of each class gets a slope and a level of its own, softmax(slope_k z_k + level_k).

    Two numbers per class are fitted, by maximum likelihood, a convex problem. It can shift the shares of classes, which
    temperature scaling cannot, and may change the top label. For two classes it is beta calibration without its signs:
    slopes a and b of ln p and ln(1 - p).

    **No guarantee**, for the reason that `ClassTemperatureRecalibrator` gives: `certify` the result on rows kept aside.

    Parameters
    ----------
    smoothing : bool, default False
        Take a row of a class with N rows for that class with probability (N + 1) / (N + 2) only, and for the others, in
        equal shares, with 1 / (N + 2), as Platt scaling does with two classes. A finite fit then always exists; without
        it, classes that the forecasts separate are an error, and so is a class without rows.
    clip : float, optional
        Take probabilities below this or above one minus this to be this. Without it a probability of exactly 0, whose
        logarithm is infinite, is an error when fitting; when predicting, a class with probability 0 keeps it.
    input_kind : {"probability", "score"}
        Whether ``y_prob`` holds probabilities, or logits of any scale: what a softmax would make probabilities of.
    classes : sequence of labels, optional
        The labels of the columns; by default those in ``y_true``, sorted.

    Attributes
    ----------
    slope_, intercept_ : array of shape (K,)
        Of each class; the intercepts have mean 0. What the rows cannot tell stays as it was, slope 1 and level 0.
    classes_, guarantee_, n_rows_, weighted_
        As in `ClassTemperatureRecalibrator`.

    References
    ----------
    [1]_.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.dirichlet([1.0, 1.0, 1.0], 2000)
    >>> truth = y_prob * [4.0, 1.0, 1.0]  # the first class is forecast too seldom
    >>> y_true = [rng.choice(3, p=row / row.sum()) for row in truth]
    >>> recalibrator = VectorRecalibrator().fit(y_prob, y_true)
    >>> recalibrator.slope_.round(1), recalibrator.predict([[1 / 3, 1 / 3, 1 / 3]]).round(1)
    (array([1., 1., 1.]), array([[0.7, 0.2, 0.2]]))
    """

    _fitted: ClassVar = ("slope_", "intercept_")

    def __init__(
        self,
        *,
        smoothing: bool = False,
        clip: float | None = None,
        input_kind: InputKind = "probability",
        classes: Sequence[ClassLabel] | None = None,
    ) -> None:
        self.smoothing = smoothing
        self.clip = clip
        self.input_kind = input_kind
        self.classes = classes

    def _check_params(self) -> None:
        check_flag(self.smoothing, "smoothing")
        super()._check_params()

    def _fit_map(self, rows: FitRows) -> None:
        if self.input_kind == "probability" and self.clip is None:
            zeros = np.argwhere(rows.value == 0.0)
            if zeros.size:
                raise UndefinedError(
                    f"holds a probability of exactly 0, of class {rows.classes[zeros[0, 1]]!r}, whose logarithm is "
                    "infinite",
                    argument="y_prob",
                    position=int(zeros[0, 0]),
                    remedy=f"{_CLIP}, or use OneVsRestRecalibrator()",
                )
        draws = self._draws(rows)
        counts = np.bincount(draws.codes, weights=draws.weight, minlength=len(rows.classes))
        if not (counts.all() or self.smoothing):
            missing = rows.classes[int(np.flatnonzero(counts == 0.0)[0])]
            raise UndefinedError(
                f"no row is of class {missing!r}, so that its level would be minus infinity",
                argument="y_true",
                remedy="collect rows of it, or use smoothing=True",
            )
        targets = np.eye(counts.size)
        if self.smoothing:
            others = (1.0 - targets) / (counts.size - 1.0)
            targets = (targets * (counts + 1.0)[:, None] + others) / (counts + 2.0)[:, None]
        found = fit_scaling(draws, targets)
        if not found.settled:
            raise UndefinedError(
                "no finite slopes and levels are the most likely: the forecasts separate the classes, or nearly",
                remedy="collect more rows, or use smoothing=True",
            )
        self.slope_, self.intercept_ = found.slopes, found.levels

    def _map(self, value: FloatArray) -> FloatArray:
        logits = self._logits(value)
        ruled_out = np.isneginf(logits)
        unclear = np.argwhere(ruled_out & (self.slope_ <= 0.0))
        if unclear.size:
            raise InputError(
                f"holds a probability of exactly 0 of class {self.classes_[unclear[0, 1]]!r}, whose slope is not "
                "positive, so that it has no limit there",
                argument="y_prob",
                remedy=f"{_CLIP}, and fit again",
            )
        with np.errstate(over="ignore"):
            linear = np.where(ruled_out, -np.inf, self.slope_ * np.where(ruled_out, 0.0, logits) + self.intercept_)
        return softmax(np.clip(linear, None, LARGEST / 4.0))

    def _linear_sql(self, number: int, column: str) -> str:
        slope, level = number_literal(self.slope_[number]), number_literal(self.intercept_[number])
        return f"{slope} * {self._logit_sql(column)} + {level}"

    def _sql(self, columns: list[str]) -> list[str]:
        found = super()._sql(columns)
        unclear = [
            condition
            for slope, condition in zip(self.slope_, self._ruled_out(columns), strict=True)
            if slope <= 0.0 and condition
        ]
        return [f"CASE WHEN {' OR '.join(unclear)} THEN NULL ELSE {curve} END" for curve in found] if unclear else found

    def _restored(self, name: str, value: Any) -> FloatArray:
        return restored_numbers(name, value, len(self.classes_))

    def _check_state(self) -> None:
        if max(np.abs(self.slope_).max(), np.abs(self.intercept_).max()) > _MOST_STEEP:
            raise InputError(
                "float64 cannot tell what so steep a map gives", argument="slope_", remedy="the text is damaged"
            )


def refuse_impossible(rows: FitRows, clip: float | None, input_kind: str) -> None:
    """Refuse rows of a class that their forecast ruled out: they are impossible whatever the map."""
    if clip is not None or input_kind == "score":
        return
    given = rows.value[np.arange(len(rows.value)), rows.places]
    impossible = given == 0.0 if rows.weight is None else (given == 0.0) & (rows.weight > 0.0)
    if impossible.any():
        position = int(np.flatnonzero(impossible)[0])
        label = rows.classes[int(rows.outcome[position])]
        raise UndefinedError(
            f"gives probability 0 to class {label!r}, which happened, and no temperature makes that possible",
            argument="y_prob",
            position=position,
            remedy=f"{_CLIP}, or use OneVsRestRecalibrator()",
        )


def softmax_sql(linear: list[str], ruled_out: list[str]) -> list[str]:
    """Write exp(u_k) / sum_j exp(u_j) for each class k, as 1 / sum_j exp(u_j - u_k), which cannot lose the top."""
    limit = number_literal(_SURE_EXPONENT)
    found = []
    for k, own in enumerate(linear):
        terms = ["1e0"]
        for j, other in enumerate(linear):
            if j == k:
                continue
            apart = f"(({other}) - ({own}))"
            # What is beyond the limit is 0 to all digits in one of the two, and EXP is not asked.
            cases = f"WHEN {apart} > {limit} THEN 1e304 WHEN {apart} < -{limit} THEN 0e0 ELSE EXP({apart})"
            none = f"WHEN {ruled_out[j]} THEN 0e0 " if ruled_out[j] else ""
            terms.append(f"CASE {none}{cases} END")
        curve = f"1e0 / ({' + '.join(terms)})"
        found.append(f"CASE WHEN {ruled_out[k]} THEN 0e0 ELSE {curve} END" if ruled_out[k] else curve)
    return found

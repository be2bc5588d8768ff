"""Monotone maps that repair forecasts: isotonic steps, logistic curves, a constant.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from calibrant.certificates.margins import constant_margin, fitted_constant_margin
from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.logistic import expit, logit
from calibrant.core.sql import clipped_sql, expit_sql, number_literal, with_ends_sql
from calibrant.core.types import ClassLabel, FloatArray
from calibrant.core.voices import Phrase
from calibrant.repairs.clustered import Layers
from calibrant.repairs.fits import (
    WITH_PLATT,
    FindErrors,
    Sample,
    clipped,
    fit_curve,
    refuse_ends,
    refuse_no_maximum,
)
from calibrant.repairs.plain import ENDS, ConstantMap, Ends, IsotonicMap, PlattMap, most_moved
from calibrant.repairs.recalibrator import INPUTS, LARGEST, InputKind, Recalibrator
from calibrant.repairs.results import MEASURES, ROUNDING
from calibrant.rows.checks import check_choice, check_flag, check_number


class IsotonicRecalibrator(IsotonicMap, Recalibrator):
    """Isotonic regression: the best non-decreasing map, a step function whose steps are means of outcomes.

    Forecasts that are equal are merged first; then neighbouring groups are pooled until their mean outcomes increase.
    On the rows it was fitted to, the result has no Cutoff calibration error at all, and the error in the population is
    bounded before any data is seen: at most (30 + 2 sqrt(2 ln(2/delta))) / sqrt(n) with probability 1 - delta
    (Proposition 5.1 of [1]_), and at most 3 sqrt(ln(2e/delta) / (2n)) (this project). Nor would re-drawing the line
    between acting and not acting save anything on those rows, and in the population it saves at most
    2 sqrt(ln(2e/delta) / (2n)) per case: ``guarantee(measure="risk_gap")``. For the very forecasts it was fitted to,
    with outcomes drawn anew, both are at most sqrt(ln(4/delta) / (2n)): ``guarantee(target="these forecasts")``.

    Parameters
    ----------
    interpolation : {"step", "linear"}
        What to do between the forecasts it was fitted to. "step" takes the value of the nearest one at or below;
        "linear" connects the last forecast of a step with the first of the next. Forecasts below the smallest or above
        the largest get the end values in both cases.
    ends : {"exact", "inside"}
        What becomes of steps at 0 and 1, where all outcomes were alike. "exact" leaves them: the log loss is infinite
        once a new outcome differs. "inside" makes them 1/(2m + 2) and 1 - 1/(2m + 2) for a step of m rows (nearer to
        the end where the next step is), which adds less than 1/(2n) to the error on the fitting rows and to the bounds.
    input_kind : {"probability", "score"}
        Whether ``y_prob`` holds probabilities, or scores of any scale.
    pos_label : label, optional
        The label in ``y_true`` that counts as the event, against all others.

    Attributes
    ----------
    block_low_, block_high_ : array
        The smallest and the largest forecast of each step.
    block_value_ : array
        The mean outcome there, at the ends perhaps moved inside: what the forecasts become. Increasing.
    guarantee_ : RecalibrationGuarantee or None
        What holds with 95% confidence; `guarantee` gives other levels. None after a fit with weights, which no
        guarantee covers.
    fit_error_, fit_risk_gap_ : float
        Cutoff error and risk gap of the recalibrated forecasts on the fitting rows: 0, or below 1/(2n) with
        ``ends="inside"``.
    fit_brier_ : float
        Brier score of the recalibrated forecasts on the fitting rows, fractions taken for chances of an event.
    n_rows_, weighted_
        What the guarantee needs to know about the rows.
    notes_ : tuple of str
        What the rows make one suspect, such as forecasts of the other class; the guarantee has it, too.

    References
    ----------
    Proposition 5.1 of [1]_; Zadrozny, Elkan (2002), Transforming classifier scores into accurate multiclass probability
    estimates.

    Examples
    --------
    >>> recalibrator = IsotonicRecalibrator().fit([0.1, 0.2, 0.3, 0.7, 0.8], [0, 1, 0, 1, 1])
    >>> recalibrator.predict([0.0, 0.25, 0.5, 0.7])
    array([0. , 0.5, 0.5, 1. ])
    >>> inside = IsotonicRecalibrator(ends="inside").fit([0.1, 0.2, 0.3, 0.7, 0.8], [0, 1, 0, 1, 1])
    >>> inside.predict([0.0, 0.25, 0.5, 0.7]).round(4)
    array([0.1667, 0.5   , 0.5   , 0.8333])
    """

    _fitted: ClassVar = ("block_low_", "block_high_", "block_value_")

    def __init__(
        self,
        *,
        interpolation: Literal["step", "linear"] = "step",
        ends: Ends = "exact",
        input_kind: InputKind = "probability",
        pos_label: ClassLabel | None = None,
    ) -> None:
        self.interpolation = interpolation
        self.ends = ends
        self.input_kind = input_kind
        self.pos_label = pos_label

    def _check_params(self) -> None:
        check_choice(self.interpolation, "interpolation", ("step", "linear"))
        check_choice(self.ends, "ends", ENDS)
        check_choice(self.input_kind, "input_kind", INPUTS)

    def _sql(self, column: str) -> str:
        low, high, value = self.block_low_, self.block_high_, self.block_value_
        if value.size == 1:
            return number_literal(value[0])
        cases = []
        for k in range(value.size - 1):
            if self.interpolation == "linear":
                cases.append(f"WHEN {column} <= {number_literal(high[k])} THEN {number_literal(value[k])}")
                share = f"({column} - {number_literal(high[k])}) / {number_literal(low[k + 1] - high[k])}"
                between = f"{number_literal(value[k])} + {share} * {number_literal(value[k + 1] - value[k])}"
                cases.append(f"WHEN {column} < {number_literal(low[k + 1])} THEN {between}")
            else:
                cases.append(f"WHEN {column} < {number_literal(low[k + 1])} THEN {number_literal(value[k])}")
        return f"CASE {' '.join(cases)} ELSE {number_literal(value[-1])} END"

    @property
    def _direction(self) -> str:
        return "increasing" if self.block_value_.size > 1 else "constant"

    def _promise(self, measure: str) -> tuple[float | None, str]:
        known = most_moved(self.ends, self.n_rows_)
        added = ", and keeping it off 0 and 1 adds at most half a row" if known else ""
        return known, (
            "{bound} was promised, from the {known} alone, because isotonic regression has no "
            f"{MEASURES[measure]} on the rows it is fitted to{added}"
        )

    def _restored(self, name: str, value: Any) -> Any:
        if not isinstance(value, list) or not value:
            raise InputError(f"must be a list of numbers, got {value!r}", argument=name, value=value)
        return np.array([check_number(each, name, low=-LARGEST, high=LARGEST) for each in value])

    def _check_state(self) -> None:
        low, high, value = self.block_low_, self.block_high_, self.block_value_
        if not low.size == high.size == value.size:
            raise InputError(
                "block_low_, block_high_ and block_value_ must have the same length", remedy="the text is damaged"
            )
        if (low > high).any() or (high[:-1] >= low[1:]).any() or (np.diff(value) <= 0.0).any():
            raise InputError(
                "the steps of this IsotonicRecalibrator are not in increasing order", remedy="the text is damaged"
            )
        _check_inside("block_value_", value)
        if self.ends == "inside" and not (value[0] > 0.0 and value[-1] < 1.0):
            raise InputError("block_value_ reaches 0 or 1, and ends='inside' does not", remedy="the text is damaged")
        if self.input_kind == "probability":
            _check_inside("block_low_", low)
            _check_inside("block_high_", high)


_MOST_STEEP = 1e300
"""By which every logarithm of a forecast can be multiplied within float64; no rows lead anywhere near it."""


class _LogarithmicMap(Recalibrator):
    """What maps share that take logarithms of forecasts, which at 0 and 1 are infinite unless forecasts are clipped."""

    def __init__(self, *, clip: float | None = None, pos_label: ClassLabel | None = None) -> None:
        self.clip = clip
        self.pos_label = pos_label

    def _check_params(self) -> None:
        if self.clip is not None and not 0.0 < check_number(self.clip, "clip", low=0.0, high=0.5) < 0.5:
            raise InputError(
                f"must be between 0 and 0.5, got {self.clip!r}",
                argument="clip",
                value=self.clip,
                remedy="1e-6 is a common choice",
            )

    def _with_ends(self, column: str, curve: str) -> str:
        """Add to the SQL of a curve its limits at 0 and 1, unless clipping keeps forecasts away from them."""
        return curve if self.clip is not None else with_ends_sql(column, curve, self._map(np.array([0.0, 1.0])))


class PlattRecalibrator(PlattMap, _LogarithmicMap):
    """Platt scaling: a logistic curve through the forecasts, 1 / (1 + exp(-(slope p + intercept))).

    Two numbers are fitted, by maximum likelihood. That is robust with few rows, and wrong when the truth is no logistic
    curve: the error can stay above zero however many rows there are (figure 4 of [1]_), so nothing is guaranteed in
    advance. `GuardedRecalibrator` replaces the curve when the rows contradict it.

    Parameters
    ----------
    on : {"forecast", "logit"}
        Fit the curve to the forecast itself, as Platt and [1]_ do, or to its logit ln(p / (1 - p)), which leaves
        calibrated forecasts alone.
    smoothing : bool, default True
        Pull outcomes inside (0, 1) by Platt's rule: 1 becomes (S + 1) / (S + 2) and 0 becomes 1 / (N + 2), with S the
        sum of the outcomes and N the sum of one minus the outcomes; fractions move in proportion. A finite fit then
        always exists. Without it, outcomes of one class and outcomes that the forecasts separate are errors.
    clip : float, optional
        For ``on="logit"``: take forecasts nearer to 0 or 1 than this to be this far away. Without it a forecast of
        exactly 0 or 1, whose logit is infinite, is an error when fitting; when predicting it gets the curve's limit.
    input_kind : {"probability", "score"}
        Whether ``y_prob`` holds probabilities, or scores of any scale (for ``on="forecast"`` only).
    pos_label : label, optional
        The label in ``y_true`` that counts as the event, against all others.

    Attributes
    ----------
    slope_, intercept_ : float
        Of the curve. A negative slope reverses the order of the forecasts; the guarantee says so. A single distinct
        forecast gets slope 0, and so do outcomes of one class.
    centre_, level_ : float
        The same curve as slope (p - centre) + level, which is how it is computed: scores far from 0 lose no digits.
    guarantee_, fit_error_, fit_risk_gap_, fit_brier_, n_rows_, weighted_, notes_
        As in `IsotonicRecalibrator`.

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines; section 5 of [1]_, whose footnote has the smoothing
    for fractions.

    Examples
    --------
    >>> y_prob, y_true = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9], [0, 1, 0, 0, 1, 1, 0, 1]
    >>> recalibrator = PlattRecalibrator().fit(y_prob, y_true)
    >>> recalibrator.predict([0.0, 0.5, 1.0]).round(3)
    array([0.285, 0.5  , 0.715])
    """

    _fitted: ClassVar = ("slope_", "centre_", "level_")

    def __init__(
        self,
        *,
        on: Literal["forecast", "logit"] = "forecast",
        smoothing: bool = True,
        clip: float | None = None,
        input_kind: InputKind = "probability",
        pos_label: ClassLabel | None = None,
    ) -> None:
        self.on = on
        self.smoothing = smoothing
        self.clip = clip
        self.input_kind = input_kind
        self.pos_label = pos_label

    def _check_params(self) -> None:
        check_choice(self.on, "on", ("forecast", "logit"))
        check_choice(self.input_kind, "input_kind", INPUTS)
        check_flag(self.smoothing, "smoothing")
        if self.on == "logit" and self.input_kind == "score":
            raise InputError(
                "on='logit' needs probabilities, and input_kind='score' says that y_prob holds scores",
                remedy="use on='forecast'",
            )
        if self.on == "forecast" and self.clip is not None:
            raise InputError(
                f"is {self.clip!r}, but on='forecast' takes no logarithm",
                argument="clip",
                value=self.clip,
                remedy="leave clip out, or use on='logit'",
            )
        super()._check_params()

    def _sql(self, column: str) -> str:
        if self.slope_ == 0.0:
            return number_literal(self._map(np.array([0.5]))[0])
        slope, centre, level = (number_literal(number) for number in (self.slope_, self.centre_, self.level_))
        if self.on == "forecast":
            return expit_sql(f"{slope} * ({column} - {centre}) + {level}")
        inside = clipped_sql(column, self.clip)
        curve = expit_sql(f"{slope} * (LN({inside}) - LN(1e0 - {inside}) - {centre}) + {level}")
        return self._with_ends(column, curve)

    @property
    def intercept_(self) -> float:
        """The curve's level at 0, on the logit scale."""
        return float(self.level_ - self.slope_ * self.centre_)

    @property
    def _direction(self) -> str:
        return "increasing" if self.slope_ > 0.0 else "decreasing" if self.slope_ < 0.0 else "constant"

    def _check_state(self) -> None:
        pass


class BetaRecalibrator(_LogarithmicMap):
    """Beta calibration: the logistic curve of a ln p - b ln(1 - p) + c with a, b >= 0.

    Three numbers are fitted, by maximum likelihood. With a = b it is Platt scaling of the logit; with a = b = 1 and
    c = 0 it leaves forecasts alone. The signs of a and b make the map non-decreasing. Nothing is guaranteed in advance,
    as for `PlattRecalibrator`.

    Parameters
    ----------
    clip : float, optional
        Take forecasts nearer to 0 or 1 than this to be this far away. Without it a forecast of exactly 0 or 1, whose
        logarithm is infinite, is an error when fitting; when predicting it gets the curve's limit.
    pos_label : label, optional
        The label in ``y_true`` that counts as the event, against all others.

    Attributes
    ----------
    a_, b_, c_ : float
        Of the curve. All forecasts equal give a = b = 0.
    guarantee_, fit_error_, fit_risk_gap_, fit_brier_, n_rows_, weighted_, notes_
        As in `IsotonicRecalibrator`.

    References
    ----------
    Kull, Silva Filho, Flach (2017), Beta calibration: a well-founded and easily implemented improvement on logistic
    calibration for binary classifiers.

    Examples
    --------
    >>> y_prob, y_true = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9], [0, 1, 0, 0, 1, 1, 0, 1]
    >>> recalibrator = BetaRecalibrator().fit(y_prob, y_true)
    >>> recalibrator.predict([0.0, 0.2, 0.5, 1.0]).round(3)
    array([0.   , 0.304, 0.5  , 1.   ])
    """

    _fitted: ClassVar = ("a_", "b_", "c_")

    def _fit_map(self, sample: Sample) -> FindErrors:
        refuse_ends(sample, self.clip, "use PlattRecalibrator()")
        refuse_no_maximum(
            sample, either_way=False, remedy=Phrase("{platt}, whose smoothing gives a finite fit", platt=WITH_PLATT)
        )
        curve = fit_curve(sample, self._features, (0.0, 1.0), not_negative=True)
        self.a_, self.b_ = curve.slopes.tolist()
        self.c_ = curve.intercept
        return lambda: sample.errors(self._mapped(sample.value))

    def _features(self, value: FloatArray) -> FloatArray:
        inside = clipped(value, self.clip)
        with np.errstate(divide="ignore"):
            return np.stack([np.log(inside), -np.log1p(-inside)])

    def _map(self, value: FloatArray) -> FloatArray:
        first, second = self._features(value)
        linear = np.full(value.size, self.c_)
        if self.a_ > 0.0:
            linear += self.a_ * first
        if self.b_ > 0.0:
            linear += self.b_ * second
        return expit(linear)

    def _sql(self, column: str) -> str:
        inside = clipped_sql(column, self.clip)
        terms = [number_literal(self.c_)]
        if self.a_ > 0.0:
            terms.append(f"{number_literal(self.a_)} * LN({inside})")
        if self.b_ > 0.0:
            terms.append(f"{number_literal(-self.b_)} * LN(1e0 - {inside})")
        curve = expit_sql(" + ".join(terms))
        return self._with_ends(column, curve)

    @property
    def _direction(self) -> str:
        return "increasing" if self.a_ > 0.0 or self.b_ > 0.0 else "constant"

    def _check_state(self) -> None:
        if self.a_ < 0.0 or self.b_ < 0.0:
            raise InputError(
                f"is {self.a_:g} and b_ is {self.b_:g}",
                argument="a_",
                value=self.a_,
                remedy="neither can be negative, so the text is damaged",
            )
        if max(self.a_, self.b_, abs(self.c_)) > _MOST_STEEP:
            raise InputError(
                f"is {self.a_:g}, b_ is {self.b_:g} and c_ is {self.c_:g}",
                argument="a_",
                value=self.a_,
                remedy="float64 cannot tell what so steep a curve gives, so the text is damaged",
            )


class TemperatureRecalibrator(_LogarithmicMap):
    """Temperature scaling: the logit of every forecast is divided by one number, the temperature.

    Above 1 it makes forecasts less sure of themselves, below 1 more; 0.5 stays where it is. One number is fitted, by
    maximum likelihood. Nothing is guaranteed in advance, as for `PlattRecalibrator`.

    Parameters
    ----------
    clip : float, optional
        As in `BetaRecalibrator`.
    pos_label : label, optional
        The label in ``y_true`` that counts as the event, against all others.

    Attributes
    ----------
    temperature_ : float
        Above 0.
    guarantee_, fit_error_, fit_risk_gap_, fit_brier_, n_rows_, weighted_, notes_
        As in `IsotonicRecalibrator`.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), On calibration of modern neural networks.

    Examples
    --------
    >>> y_prob, y_true = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9], [0, 1, 0, 0, 1, 1, 0, 1]
    >>> recalibrator = TemperatureRecalibrator().fit(y_prob, y_true)
    >>> round(recalibrator.temperature_, 3), recalibrator.predict([0.0, 0.5, 0.9]).round(3)
    (1.678, array([0.   , 0.5  , 0.787]))
    """

    _fitted: ClassVar = ("temperature_",)

    def _fit_map(self, sample: Sample) -> FindErrors:
        refuse_ends(sample, self.clip, "use PlattRecalibrator()")
        inside = clipped(sample.value, self.clip)
        count = 1.0 if sample.weight is None else sample.weight
        pull = (sample.outcome - 0.5 * count) * logit(inside)
        if not float(pull.sum()) > ROUNDING * float(np.abs(pull).sum()):
            raise UndefinedError(
                "no temperature improves on forecasting 0.5 everywhere, because the outcomes do not side with the "
                "forecasts",
                remedy=Phrase("{platt}, which can also shift and reverse them", platt=WITH_PLATT),
            )
        if not ((inside > 0.5) & (sample.outcome < count) | (inside < 0.5) & (sample.outcome > 0.0)).any():
            raise UndefinedError(
                "every outcome is on the side of 0.5 that its forecast says, so that the temperature would be 0",
                remedy=Phrase("collect more rows, or {platt}, whose smoothing gives a finite fit", platt=WITH_PLATT),
            )
        curve = fit_curve(sample, self._features, (0.0, 1.0), intercept=False)
        self.temperature_ = 1.0 / float(curve.slopes[0])
        return lambda: sample.errors(self._mapped(sample.value))

    def _features(self, value: FloatArray) -> FloatArray:
        return logit(clipped(value, self.clip))[None]

    def _map(self, value: FloatArray) -> FloatArray:
        return expit(self._features(value)[0] / self.temperature_)

    def _sql(self, column: str) -> str:
        inside = clipped_sql(column, self.clip)
        curve = expit_sql(f"(LN({inside}) - LN(1e0 - {inside})) / {number_literal(self.temperature_)}")
        return self._with_ends(column, curve)

    def _check_state(self) -> None:
        if self.temperature_ < 1.0 / _MOST_STEEP:
            raise InputError(
                f"is {self.temperature_:g}",
                argument="temperature_",
                value=self.temperature_,
                remedy="it must be above 0, so the text is damaged",
            )


class ConstantRecalibrator(ConstantMap, Recalibrator):
    """Replace every forecast by the mean outcome: useless for telling rows apart, and calibrated.

    The mean of n rows is within sqrt(ln(2/delta) / (2n)) of the population's with probability 1 - delta (Hoeffding),
    and that distance is the Cutoff error of a constant and its risk gap too. It is the last resort of
    `GuardedRecalibrator`.

    Parameters
    ----------
    pos_label : label, optional
        The label in ``y_true`` that counts as the event, against all others.

    Attributes
    ----------
    constant_ : float
        The mean outcome.
    guarantee_, fit_error_, fit_risk_gap_, fit_brier_, n_rows_, weighted_, notes_
        As in `IsotonicRecalibrator`.

    Examples
    --------
    >>> ConstantRecalibrator().fit([0.1, 0.2, 0.3, 0.7], [0, 1, 0, 1]).predict([0.0, 1.0])
    array([0.5, 0.5])
    """

    _fitted: ClassVar = ("constant_",)

    def __init__(self, *, pos_label: ClassLabel | None = None) -> None:
        self.pos_label = pos_label

    def _check_params(self) -> None:
        pass

    def _sql(self, column: str) -> str:
        del column
        return number_literal(self.constant_)

    @property
    def _direction(self) -> str:
        return "constant"

    def _margins(self, delta: float, measure: str, target: str, layers: Layers | None) -> tuple[float, float]:
        del measure  # how far the mean is off is all that a constant has of either error
        if layers is not None:
            return (layers.mean_margin(delta),) * 2
        known = constant_margin(self.n_rows_, delta)
        return known, known if target == "population" else fitted_constant_margin(self.n_rows_, self.fit_brier_, delta)

    def _promise(self, measure: str) -> tuple[float | None, str]:
        del measure
        return 0.0, "{bound} was promised, from the {known} alone: it is how far a mean can be off"

    def _check_state(self) -> None:
        _check_inside("constant_", np.array([self.constant_]))


def _check_inside(name: str, values: FloatArray) -> None:
    outside = np.flatnonzero((values < 0.0) | (values > 1.0))
    if outside.size:
        raise InputError(
            f"is {values[outside[0]]!r}, outside [0, 1]",
            argument=name,
            value=values[outside[0]],
            remedy="the text is damaged",
        )

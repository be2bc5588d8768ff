"""Recalibration: maps that repair forecasts, and what is guaranteed about the result.

A recalibrator is fitted to forecasts and outcomes, ``fit(y_prob, y_true)``, and maps forecasts to better ones,
``predict(y_prob)``. Every map here is monotone, which is what the guarantees rest on (docs/theory.md).

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

# scikit-learn has no types, so that its classes count as Any.
# mypy: allow-subclassing-any

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metadata_routing import UNUSED

from calibrant.bounds import constant_margin, monotone_margin, paper_margin, paper_monotone_margin
from calibrant.fits import (
    CHUNK,
    Sample,
    clipped,
    expit,
    fit_logistic,
    isotonic_steps,
    logit,
    logit_of,
    refuse_ends,
    refuse_no_maximum,
    smoothed_targets,
)
from calibrant.laws import brownian_range
from calibrant.results.recalibration import LadderRung, RecalibrationGuarantee
from calibrant.tally import Tally, Totals, given_tally
from calibrant.validation import (
    FloatArray,
    check_choice,
    check_confidence,
    check_flag,
    check_forecasts,
    check_number,
    check_observations,
    check_scores,
)

SCHEMA = "calibrant-recalibrator/1"
"""Version of the shape that `to_json` gives; it changes when a field changes its meaning or its name."""

INPUTS = ("probability", "score")
ROUNDING = 1e-12
"""A difference of errors, or of sums in proportion to their terms, below this is rounding."""

_NULL_LEVEL = 0.95
_SURE_EXPONENT = 700.0  # beyond it a logistic function is 0 or 1 to all digits, and some engines refuse the exponential


class Recalibrator(ABC, BaseEstimator):
    """What every recalibrator can do: fit, predict, guarantee, and be carried elsewhere as JSON or SQL.

    ``Recalibrator.from_json(text)`` rebuilds a recalibrator of any kind. This class itself fits nothing; the kinds are
    `IsotonicRecalibrator`, `PlattRecalibrator`, `BetaRecalibrator`, `TemperatureRecalibrator`, `ConstantRecalibrator`
    and `GuardedRecalibrator`.
    """

    # The first arguments are data, not metadata that a pipeline would have to route.
    __metadata_request__fit: ClassVar = {"y_prob": UNUSED, "y_true": UNUSED}
    __metadata_request__predict: ClassVar = {"y_prob": UNUSED}

    input: str = "probability"
    pos_label: Any = None
    _fitted: ClassVar[tuple[str, ...]] = ()

    def fit(self, y_prob: Any, y_true: Any = None, sample_weight: Any = None) -> Self:
        """Fit the map.

        Parameters
        ----------
        y_prob : array-like of shape (n,), or Tally
            Forecast probabilities (or scores, for ``input="score"``); or a tally that holds forecasts and outcomes.
        y_true : array-like of shape (n,)
            Outcomes: 0/1, booleans, fractions in [0, 1], or two labels together with ``pos_label``.
        sample_weight : array-like of shape (n,), optional
            Nonnegative weights: a row of weight 2 counts as two rows. No guarantee covers weighted rows.

        Returns
        -------
        Recalibrator
            Itself.
        """
        check_choice(self.input, "input", INPUTS)
        return self._fit_to(self._sample(y_prob, y_true, sample_weight))

    def predict(self, y_prob: Any) -> FloatArray:
        """Return the recalibrated forecasts.

        Parameters
        ----------
        y_prob : array-like of shape (n,)
            Forecast probabilities (or scores, for ``input="score"``).

        Returns
        -------
        array of shape (n,)
            Probabilities in [0, 1].
        """
        self._check_fitted("predict")
        return self._mapped(check_scores(y_prob) if self.input == "score" else check_forecasts(y_prob))

    def guarantee(self, confidence_level: float = 0.95) -> RecalibrationGuarantee:
        """Say what is guaranteed about the Cutoff calibration error of the recalibrated forecaster.

        Parameters
        ----------
        confidence_level : float from 0.5 to below 1
            One minus the probability that the statement is wrong.

        Returns
        -------
        RecalibrationGuarantee
            The bound, what was known of it before the data, and what it rests on.

        Raises
        ------
        ValueError
            When the map was fitted to weighted rows, which no guarantee covers.
        """
        level = check_confidence(confidence_level)
        self._check_fitted("guarantee")
        if self.weighted_:
            raise ValueError(
                "sample_weight was given to fit, and no guarantee covers weighted rows; fit without weights (counts of "
                "real observations enter as Tally.from_counts), or certify() the recalibrated forecasts on fresh rows"
            )
        return self._guarantee(level)

    def to_json(self) -> str:
        """Return the fitted recalibrator as JSON text, for `from_json`: names and numbers, never code.

        Returns
        -------
        str
            JSON with the fields schema, type, params, fitted and rows.
        """
        self._check_fitted("to_json")
        return json.dumps({"schema": SCHEMA, **self._to_dict()}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild a fitted recalibrator from the text that `to_json` returned.

        Every field is checked, and nothing in the text is executed. A text that is damaged, of another version or not a
        recalibrator's is an error that says so.

        Parameters
        ----------
        text : str
            What `to_json` returned.

        Returns
        -------
        Recalibrator
            Of the kind that was written. Called on one kind, that kind only is accepted; ``Recalibrator.from_json``
            takes all.
        """
        if not isinstance(text, str):
            raise ValueError(f"text must be the string that to_json() returned, got {type(text).__name__}")
        try:
            data = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"text is not JSON ({error}); pass what to_json() returned, whole") from error
        if not isinstance(data, dict) or "schema" not in data:
            raise ValueError("text is JSON, but not a recalibrator; pass what to_json() returned")
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema is {data['schema']!r}, this version of calibrant reads {SCHEMA!r}")
        return cls._from_dict({name: value for name, value in data.items() if name != "schema"})

    def to_sql(self, column: str) -> str:
        """Return the map as one SQL expression of a column, for scoring inside a database.

        The expression uses CASE, comparison, arithmetic, LN and EXP only. Where `predict` would refuse a value
        (missing, not finite, outside [0, 1]) it gives NULL. The name is quoted with double quotes, as the SQL standard
        has it.

        Parameters
        ----------
        column : str
            Name of the column that holds the forecasts (or scores).

        Returns
        -------
        str
            An expression whose value is that of `predict`.
        """
        self._check_fitted("to_sql")
        if not isinstance(column, str) or not column or "\0" in column:
            raise ValueError(f"column must be the name of a column, got {column!r}")
        quoted = '"' + column.replace('"', '""') + '"'
        low, high = (0.0, 1.0) if self.input == "probability" else (-_LARGEST, _LARGEST)
        return f"CASE WHEN {quoted} >= {_literal(low)} AND {quoted} <= {_literal(high)} THEN {self._sql(quoted)} END"

    @property
    def _direction(self) -> str:
        """What the map does to the order of forecasts: "increasing", "decreasing" or "constant"."""
        return "increasing"

    @abstractmethod
    def _check_params(self) -> None:
        """Check what was set when the recalibrator was made."""

    @abstractmethod
    def _fit_map(self, sample: Sample) -> float:
        """Set the fitted attributes, and return the Cutoff error of the map on the sample."""

    @abstractmethod
    def _map(self, value: FloatArray) -> FloatArray:
        """Return the recalibrated forecasts of checked values."""

    @abstractmethod
    def _sql(self, column: str) -> str:
        """Return the map as SQL of a quoted column that holds valid values only."""

    @abstractmethod
    def _check_state(self) -> None:
        """Check fitted attributes that came from a file."""

    def _mapped(self, value: FloatArray) -> FloatArray:
        """Return the recalibrated forecasts of checked values, some thousand at a time to spare memory."""
        forecast = np.empty(value.size)
        for begin in range(0, value.size, CHUNK):
            part = slice(begin, begin + CHUNK)
            forecast[part] = self._map(value[part])
        return forecast

    def _promise(self) -> tuple[float | None, str]:
        """Return what the error on the fitting rows was known in advance to stay below, and that in words."""
        return None, (
            "nothing was promised, because a map of this shape can stay miscalibrated however many rows there are; the "
            "bound is known only now that the error on the fitting rows is"
        )

    def _fit_to(self, sample: Sample) -> Self:
        self._check_params()
        error = self._fit_map(sample)
        return self._record(sample.rows, not sample.unit_weights, error)

    def _record(self, rows: int, weighted: bool, error: float) -> Self:
        """Keep what the guarantee needs to know about the rows."""
        self.n_rows_ = rows
        self.weighted_ = weighted
        self.fit_error_ = error
        self.guarantee_ = None if weighted else self._guarantee(0.95)
        return self

    def _sample(self, y_prob: Any, y_true: Any, sample_weight: Any) -> Sample:
        """Check raw input, or take a tally as it is."""
        if isinstance(y_prob, Totals):
            tally = given_tally(y_prob, None, sample_weight, self.pos_label)
            if y_true is not None:
                raise ValueError("y_true was given together with a Tally, which already holds it; pass the Tally alone")
            return Sample.of_tally(tally)
        if y_true is None:
            raise ValueError("y_true is missing: pass forecasts and outcomes, as in fit(y_prob, y_true), or a Tally")
        options = {"sample_weight": sample_weight, "pos_label": self.pos_label}
        if self.input == "probability":
            try:
                return Sample.of_rows(check_observations(y_true, y_prob, **options))
            except ValueError as error:
                raise ValueError(str(error).replace(*_OTHER_ORDER)) from None
        # Scores are numbered in their order, and the numbers stand in for forecasts.
        scores, number = np.unique(check_scores(y_prob), return_inverse=True)
        rows = check_observations(y_true, number / scores.size, refuse_swapped=False, **options)
        return Sample.of_tally(Tally.from_observations(rows), scores + 0.0)

    def _check_fitted(self, what: str) -> None:
        if not hasattr(self, "guarantee_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit(y_prob, y_true) before {what}()"
            )

    def _guarantee(self, level: float) -> RecalibrationGuarantee:
        delta = 1.0 - level
        margin = self._margin(delta)
        paper = paper_monotone_margin(self.n_rows_, delta)
        known, promise = self._promise()
        notes = []
        if self._direction == "decreasing":
            notes.append("the map reverses the order of the forecasts: higher ones went with fewer events")
        if self.fit_error_ + margin >= 1.0:
            notes.append("no error is above 1, so that this bound says nothing: there are too few rows")
        return RecalibrationGuarantee(
            recalibrator=type(self).__name__,
            bound=min(1.0, self.fit_error_ + margin),
            paper_bound=min(1.0, self.fit_error_ + paper),
            in_advance=None if known is None else min(1.0, known + margin),
            paper_in_advance=None if known is None else min(1.0, known + paper),
            error=self.fit_error_,
            margin=margin,
            paper_margin=paper,
            confidence_level=level,
            n=self.n_rows_,
            direction=self._direction,
            promise=promise,
            ladder=self._ladder_found(),
            assumptions=(
                "the rows are independent draws from the population",
                "the forecaster was fixed without looking at them",
            ),
            notes=tuple(notes),
        )

    def _margin(self, delta: float) -> float:
        return monotone_margin(self.n_rows_, delta)

    def _ladder_found(self) -> tuple[LadderRung, ...]:
        return ()

    def _to_dict(self) -> dict[str, Any]:
        return {
            "type": type(self).__name__,
            "params": _plain_params(self),
            "fitted": {name: _plain_state(getattr(self, name)) for name in self._fitted},
            "rows": {name: getattr(self, name) for name in _ROW_FACTS},
        }

    @classmethod
    def _from_dict(cls, data: Any) -> Self:
        """Rebuild a recalibrator from checked fields."""
        _check_fields(data, ("type", "params", "fitted", "rows"), "this recalibrator")
        kind = {kind.__name__: kind for kind in KINDS}.get(str(data["type"]))
        if kind is None or not issubclass(kind, cls):
            raise ValueError(f"type is {data['type']!r}, not a {cls.__name__}; pass what its to_json() returned")
        rebuilt = kind._from_params(data["params"])
        _check_fields(data["fitted"], kind._fitted, f"fitted of {kind.__name__}")
        for name in kind._fitted:
            setattr(rebuilt, name, rebuilt._restored(name, data["fitted"][name]))
        rebuilt._check_state()
        facts = data["rows"]
        _check_fields(facts, _ROW_FACTS, f"rows of {kind.__name__}")
        return rebuilt._record(
            int(check_number(facts["n_rows_"], "n_rows_", low=1, high=_MOST_ROWS, whole=True)),
            check_flag(facts["weighted_"], "weighted_"),
            check_number(facts["fit_error_"], "fit_error_", low=0.0, high=1.0),
        )

    @classmethod
    def _from_params(cls, params: Any) -> Self:
        _check_fields(params, tuple(cls._get_param_names()), f"params of {cls.__name__}")
        for name, value in params.items():
            if name != "ladder":
                _plain_param(name, value)
        rebuilt = cls(**params)
        rebuilt._check_params()
        return rebuilt

    def _restored(self, name: str, value: Any) -> Any:
        """Return a fitted attribute from its JSON form."""
        return check_number(value, name, low=-_LARGEST, high=_LARGEST)


class IsotonicRecalibrator(Recalibrator):
    """Isotonic regression: the best non-decreasing map, a step function whose steps are means of outcomes.

    Forecasts that are equal are merged first; then neighbouring groups are pooled until their mean outcomes increase.
    On the rows it was fitted to, the result has no Cutoff calibration error at all, and the error in the population is
    bounded before any data is seen: at most (30 + 2 sqrt(2 ln(2/delta))) / sqrt(n) with probability 1 - delta
    (Proposition 5.1 of [1]_), and at most 3 sqrt(ln(2e/delta) / (2n)) (this project).

    Parameters
    ----------
    interpolation : {"step", "linear"}
        What to do between the forecasts it was fitted to. "step" takes the value of the nearest one at or below;
        "linear" connects the last forecast of a step with the first of the next. Forecasts below the smallest or above
        the largest get the end values in both cases.
    input : {"probability", "score"}
        Whether ``y_prob`` holds probabilities, or scores of any scale.
    pos_label : label, optional
        The label in ``y_true`` that counts as the event.

    Attributes
    ----------
    block_low_, block_high_ : array
        The smallest and the largest forecast of each step.
    block_value_ : array
        The mean outcome there: what the forecasts become. Increasing.
    guarantee_ : RecalibrationGuarantee or None
        What holds with 95% confidence; `guarantee` gives other levels. None after a fit with weights, which no
        guarantee covers.
    fit_error_ : float
        Cutoff error of the recalibrated forecasts on the fitting rows: 0.
    n_rows_, weighted_
        What the guarantee needs to know about the rows.

    References
    ----------
    Proposition 5.1 of [1]_; Zadrozny, Elkan (2002), Transforming classifier scores into accurate multiclass probability
    estimates.

    Examples
    --------
    >>> recalibrator = IsotonicRecalibrator().fit([0.1, 0.2, 0.3, 0.7, 0.8], [0, 1, 0, 1, 1])
    >>> recalibrator.predict([0.0, 0.25, 0.5, 0.7])
    array([0. , 0.5, 0.5, 1. ])
    """

    _fitted: ClassVar = ("block_low_", "block_high_", "block_value_")

    def __init__(self, *, interpolation: str = "step", input: str = "probability", pos_label: Any = None) -> None:
        self.interpolation = interpolation
        self.input = input
        self.pos_label = pos_label

    def _check_params(self) -> None:
        check_choice(self.interpolation, "interpolation", ("step", "linear"))
        check_choice(self.input, "input", INPUTS)

    def _fit_map(self, sample: Sample) -> float:
        self.block_low_, self.block_high_, self.block_value_ = isotonic_steps(sample)
        return 0.0

    def _map(self, value: FloatArray) -> FloatArray:
        block = np.searchsorted(self.block_low_[1:], value, side="right")
        result: FloatArray = self.block_value_[block]
        if self.interpolation == "linear" and self.block_low_.size > 1:
            between = np.flatnonzero((value > self.block_high_[block]) & (block < self.block_low_.size - 1))
            block = block[between]
            begin, end = self.block_high_[block], self.block_low_[block + 1]
            rise = self.block_value_[block + 1] - self.block_value_[block]
            result[between] += (value[between] - begin) / (end - begin) * rise
        return result

    def _sql(self, column: str) -> str:
        low, high, value = self.block_low_, self.block_high_, self.block_value_
        if value.size == 1:
            return _literal(value[0])
        cases = []
        for k in range(value.size - 1):
            if self.interpolation == "linear":
                cases.append(f"WHEN {column} <= {_literal(high[k])} THEN {_literal(value[k])}")
                share = f"({column} - {_literal(high[k])}) / {_literal(low[k + 1] - high[k])}"
                between = f"{_literal(value[k])} + {share} * {_literal(value[k + 1] - value[k])}"
                cases.append(f"WHEN {column} < {_literal(low[k + 1])} THEN {between}")
            else:
                cases.append(f"WHEN {column} < {_literal(low[k + 1])} THEN {_literal(value[k])}")
        return f"CASE {' '.join(cases)} ELSE {_literal(value[-1])} END"

    @property
    def _direction(self) -> str:
        return "increasing" if self.block_value_.size > 1 else "constant"

    def _promise(self) -> tuple[float | None, str]:
        return 0.0, (
            "this bound was promised, from the number of rows alone, because isotonic regression has no Cutoff error "
            "on the rows it is fitted to"
        )

    def _restored(self, name: str, value: Any) -> Any:
        if not isinstance(value, list) or not value:
            raise ValueError(f"{name} must be a list of numbers, got {value!r}")
        return np.array([check_number(each, name, low=-_LARGEST, high=_LARGEST) for each in value])

    def _check_state(self) -> None:
        low, high, value = self.block_low_, self.block_high_, self.block_value_
        if not low.size == high.size == value.size:
            raise ValueError("block_low_, block_high_ and block_value_ must have the same length; the text is damaged")
        if (low > high).any() or (high[:-1] >= low[1:]).any() or (np.diff(value) <= 0.0).any():
            raise ValueError("the steps of this IsotonicRecalibrator are not in increasing order; the text is damaged")
        _check_inside("block_value_", value)
        if self.input == "probability":
            _check_inside("block_low_", low)
            _check_inside("block_high_", high)


class PlattRecalibrator(Recalibrator):
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
    input : {"probability", "score"}
        Whether ``y_prob`` holds probabilities, or scores of any scale (for ``on="forecast"`` only).
    pos_label : label, optional
        The label in ``y_true`` that counts as the event.

    Attributes
    ----------
    slope_, intercept_ : float
        Of the curve. A negative slope reverses the order of the forecasts; the guarantee says so. A single distinct
        forecast gets slope 0.
    centre_, level_ : float
        The same curve as slope (p - centre) + level, which is how it is computed: scores far from 0 lose no digits.
    guarantee_, fit_error_, n_rows_, weighted_
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
        on: str = "forecast",
        smoothing: bool = True,
        clip: float | None = None,
        input: str = "probability",
        pos_label: Any = None,
    ) -> None:
        self.on = on
        self.smoothing = smoothing
        self.clip = clip
        self.input = input
        self.pos_label = pos_label

    def _check_params(self) -> None:
        check_choice(self.on, "on", ("forecast", "logit"))
        check_choice(self.input, "input", INPUTS)
        check_flag(self.smoothing, "smoothing")
        if self.on == "logit" and self.input == "score":
            raise ValueError(
                "on='logit' needs probabilities, and input='score' says that y_prob holds scores; use on='forecast'"
            )
        if self.on == "forecast" and self.clip is not None:
            raise ValueError(
                f"clip is {self.clip!r}, but on='forecast' takes no logarithm; leave clip out, or use on='logit'"
            )
        _check_clip(self.clip)

    def _fit_map(self, sample: Sample) -> float:
        if self.on == "logit":
            refuse_ends(sample, self.clip, "or fit with on='forecast'")
        if not self.smoothing:
            refuse_no_maximum(sample, either_way=True, remedy="keep smoothing=True, or collect more rows")
        targets = smoothed_targets(sample) if self.smoothing else (0.0, 1.0)
        if sample.value.min() == sample.value.max():
            low, high = targets
            share = low + (high - low) * sample.outcome_total / sample.weight_total
            self.slope_, self.centre_, self.level_ = 0.0, 0.0, logit_of(share)
        else:
            (self.slope_,), (self.centre_,), self.level_ = fit_logistic(sample, self._features, targets)
        return sample.cutoff(self._mapped(sample.value))

    def _features(self, value: FloatArray) -> FloatArray:
        return (value if self.on == "forecast" else logit(clipped(value, self.clip)))[None]

    def _map(self, value: FloatArray) -> FloatArray:
        if self.slope_ == 0.0:  # at p = 0 and 1 the logit is infinite, and zero times infinity is nothing
            return np.full(value.size, expit(np.array([self.level_]))[0])
        with np.errstate(over="ignore"):  # the curve's limit, 0 or 1, is right
            return expit(self.slope_ * (self._features(value)[0] - self.centre_) + self.level_)

    def _sql(self, column: str) -> str:
        if self.slope_ == 0.0:
            return _literal(self._map(np.array([0.5]))[0])
        slope, centre, level = (_literal(number) for number in (self.slope_, self.centre_, self.level_))
        if self.on == "forecast":
            return _expit_sql(f"{slope} * ({column} - {centre}) + {level}")
        inside = _clipped_sql(column, self.clip)
        curve = _expit_sql(f"{slope} * (LN({inside}) - LN(1e0 - {inside}) - {centre}) + {level}")
        return curve if self.clip is not None else _with_ends_sql(column, self, curve)

    @property
    def intercept_(self) -> float:
        """The curve's level at 0, on the logit scale."""
        return float(self.level_ - self.slope_ * self.centre_)

    @property
    def _direction(self) -> str:
        return "increasing" if self.slope_ > 0.0 else "decreasing" if self.slope_ < 0.0 else "constant"

    def _check_state(self) -> None:
        pass


class BetaRecalibrator(Recalibrator):
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
        The label in ``y_true`` that counts as the event.

    Attributes
    ----------
    a_, b_, c_ : float
        Of the curve. All forecasts equal give a = b = 0.
    guarantee_, fit_error_, n_rows_, weighted_
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

    def __init__(self, *, clip: float | None = None, pos_label: Any = None) -> None:
        self.clip = clip
        self.pos_label = pos_label

    def _check_params(self) -> None:
        _check_clip(self.clip)

    def _fit_map(self, sample: Sample) -> float:
        refuse_ends(sample, self.clip, "or use PlattRecalibrator()")
        refuse_no_maximum(
            sample, either_way=False, remedy="use PlattRecalibrator(), whose smoothing gives a finite fit"
        )
        if sample.value.min() == sample.value.max():
            self.a_, self.b_, self.c_ = 0.0, 0.0, logit_of(sample.outcome_total / sample.weight_total)
        else:
            slopes, centre, level = fit_logistic(sample, self._features, (0.0, 1.0), not_negative=True)
            self.a_, self.b_ = slopes
            self.c_ = level - self.a_ * centre[0] - self.b_ * centre[1]
        return sample.cutoff(self._mapped(sample.value))

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
        inside = _clipped_sql(column, self.clip)
        terms = [_literal(self.c_)]
        if self.a_ > 0.0:
            terms.append(f"{_literal(self.a_)} * LN({inside})")
        if self.b_ > 0.0:
            terms.append(f"{_literal(-self.b_)} * LN(1e0 - {inside})")
        curve = _expit_sql(" + ".join(terms))
        return curve if self.clip is not None else _with_ends_sql(column, self, curve)

    @property
    def _direction(self) -> str:
        return "increasing" if self.a_ > 0.0 or self.b_ > 0.0 else "constant"

    def _check_state(self) -> None:
        if self.a_ < 0.0 or self.b_ < 0.0:
            raise ValueError(
                f"a_ is {self.a_:g} and b_ is {self.b_:g}; neither can be negative, so the text is damaged"
            )


class TemperatureRecalibrator(Recalibrator):
    """Temperature scaling: the logit of every forecast is divided by one number, the temperature.

    Above 1 it makes forecasts less sure of themselves, below 1 more; 0.5 stays where it is. One number is fitted, by
    maximum likelihood. Nothing is guaranteed in advance, as for `PlattRecalibrator`.

    Parameters
    ----------
    clip : float, optional
        As in `BetaRecalibrator`.
    pos_label : label, optional
        The label in ``y_true`` that counts as the event.

    Attributes
    ----------
    temperature_ : float
        Above 0.
    guarantee_, fit_error_, n_rows_, weighted_
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

    def __init__(self, *, clip: float | None = None, pos_label: Any = None) -> None:
        self.clip = clip
        self.pos_label = pos_label

    def _check_params(self) -> None:
        _check_clip(self.clip)

    def _fit_map(self, sample: Sample) -> float:
        refuse_ends(sample, self.clip, "or use PlattRecalibrator()")
        inside = clipped(sample.value, self.clip)
        count = 1.0 if sample.weight is None else sample.weight
        pull = (sample.outcome - 0.5 * count) * logit(inside)
        if not float(pull.sum()) > ROUNDING * float(np.abs(pull).sum()):
            raise ValueError(
                "no temperature improves on forecasting 0.5 everywhere, because the outcomes do not side with the "
                "forecasts; use PlattRecalibrator(), which can also shift and reverse them"
            )
        if not ((inside > 0.5) & (sample.outcome < count) | (inside < 0.5) & (sample.outcome > 0.0)).any():
            raise ValueError(
                "every outcome is on the side of 0.5 that its forecast says, so that the temperature would be 0; "
                "collect more rows, or use PlattRecalibrator(), whose smoothing gives a finite fit"
            )
        (sharpness,), _, _ = fit_logistic(sample, self._features, (0.0, 1.0), intercept=False)
        self.temperature_ = 1.0 / sharpness
        return sample.cutoff(self._mapped(sample.value))

    def _features(self, value: FloatArray) -> FloatArray:
        return logit(clipped(value, self.clip))[None]

    def _map(self, value: FloatArray) -> FloatArray:
        return expit(self._features(value)[0] / self.temperature_)

    def _sql(self, column: str) -> str:
        inside = _clipped_sql(column, self.clip)
        curve = _expit_sql(f"(LN({inside}) - LN(1e0 - {inside})) / {_literal(self.temperature_)}")
        return curve if self.clip is not None else _with_ends_sql(column, self, curve)

    def _check_state(self) -> None:
        if self.temperature_ <= 0.0:
            raise ValueError(f"temperature_ is {self.temperature_:g}; it must be above 0, so the text is damaged")


class ConstantRecalibrator(Recalibrator):
    """Replace every forecast by the mean outcome: useless for telling rows apart, and calibrated.

    The mean of n rows is within sqrt(ln(2/delta) / (2n)) of the population's with probability 1 - delta (Hoeffding),
    and that distance is the whole Cutoff error of a constant. It is the last resort of `GuardedRecalibrator`.

    Parameters
    ----------
    pos_label : label, optional
        The label in ``y_true`` that counts as the event.

    Attributes
    ----------
    constant_ : float
        The mean outcome.
    guarantee_, fit_error_, n_rows_, weighted_
        As in `IsotonicRecalibrator`.

    Examples
    --------
    >>> ConstantRecalibrator().fit([0.1, 0.2, 0.3, 0.7], [0, 1, 0, 1]).predict([0.0, 1.0])
    array([0.5, 0.5])
    """

    _fitted: ClassVar = ("constant_",)

    def __init__(self, *, pos_label: Any = None) -> None:
        self.pos_label = pos_label

    def _check_params(self) -> None:
        pass

    def _fit_map(self, sample: Sample) -> float:
        self.constant_ = min(1.0, sample.outcome_total / sample.weight_total)
        return 0.0

    def _map(self, value: FloatArray) -> FloatArray:
        return np.full(value.size, self.constant_)

    def _sql(self, column: str) -> str:
        del column
        return _literal(self.constant_)

    @property
    def _direction(self) -> str:
        return "constant"

    def _margin(self, delta: float) -> float:
        return constant_margin(self.n_rows_, delta)

    def _promise(self) -> tuple[float | None, str]:
        return 0.0, "this bound was promised, from the number of rows alone: it is how far a mean can be off"

    def _check_state(self) -> None:
        _check_inside("constant_", np.array([self.constant_]))


class GuardedRecalibrator(Recalibrator):
    """Try recalibrators in turn, and keep the first that is calibrated on its own rows: modified Platt, generalised.

    A rung of the ladder is kept when the Cutoff error of its forecasts, on the rows it was fitted to, is within the
    tolerance. The last rung has no error there, so that something is always kept, and the error in the population is
    bounded before any data is seen: isotonic regression's bound plus the tolerance. With the ladder
    ``[PlattRecalibrator(), ConstantRecalibrator()]`` and ``tolerance="paper"`` it is the modified Platt scaling of
    appendix D.2 of [1]_.

    Parameters
    ----------
    ladder : list of recalibrators, optional
        In the order to try; by default Platt, isotonic, constant. The last one must be isotonic or constant.
    tolerance : {"null-95", "paper"} or float
        The largest Cutoff error with which a rung is kept. "null-95" is what calibrated forecasts stay below in 95% of
        cases (for many rows), x sqrt(mean of h (1 - h) / n) with x the 95% quantile of the range of Brownian motion: it
        notices a curve that does not fit. "paper" is (20 + sqrt(2 ln 20)) / sqrt(n), some twenty times as much: it
        notices only gross misfits, and those only with many rows (below 500 rows it is above 1).
    input : {"probability", "score"}
        Whether ``y_prob`` holds probabilities, or scores of any scale. A ladder of your own must say the same.
    pos_label : label, optional
        The label in ``y_true`` that counts as the event.

    Attributes
    ----------
    recalibrator_ : Recalibrator
        The rung that was kept, fitted.
    ladder_ : tuple of LadderRung
        What was tried, with error, tolerance and the reason for keeping it or not.
    guarantee_, fit_error_, n_rows_, weighted_
        As in `IsotonicRecalibrator`. With weights, the tolerance takes their sum for the number of rows.

    References
    ----------
    Appendix D.2 of [1]_; the ladder and the tolerance "null-95" are this project's.

    Examples
    --------
    The logistic curve cannot follow events that are sure at both ends and rare between (figure 4 of [1]_):

    >>> y_prob, y_true = [0.0, 0.25, 0.5, 1.0] * 100, [1, 0, 0, 1] * 100
    >>> recalibrator = GuardedRecalibrator().fit(y_prob, y_true)
    >>> for rung in recalibrator.ladder_:
    ...     print(rung)
    PlattRecalibrator: not kept, its error of 0.2430 on the fitting rows is above the tolerance of 0.0616
    IsotonicRecalibrator: kept, its error of 0.0000 on the fitting rows is within the tolerance of 0.0510
    """

    _fitted: ClassVar = ("recalibrator_", "ladder_")

    def __init__(
        self,
        ladder: Sequence[Recalibrator] | None = None,
        *,
        tolerance: str | float = "null-95",
        input: str = "probability",
        pos_label: Any = None,
    ) -> None:
        self.ladder = ladder
        self.tolerance = tolerance
        self.input = input
        self.pos_label = pos_label

    def _check_params(self) -> None:
        check_choice(self.input, "input", INPUTS)
        if isinstance(self.tolerance, str):
            check_choice(self.tolerance, "tolerance", TOLERANCES)
        else:
            check_number(self.tolerance, "tolerance", low=0.0, high=1.0)
        if self.ladder is None:
            return
        if not isinstance(self.ladder, (list, tuple)) or not self.ladder:
            raise ValueError(f"ladder must be a list of recalibrators, got {self.ladder!r}")
        for position, rung in enumerate(self.ladder):
            if not isinstance(rung, KINDS):
                raise ValueError(
                    f"ladder[{position}] is {rung!r}, not a recalibrator; pass instances, as in [PlattRecalibrator(), "
                    "ConstantRecalibrator()]"
                )
            if not isinstance(rung, ConstantRecalibrator) and rung.input != self.input:
                raise ValueError(
                    f"ladder[{position}] takes input={rung.input!r} and the guard input={self.input!r}; set both alike"
                )
            if rung.pos_label is not None:
                raise ValueError(
                    f"ladder[{position}] has pos_label={rung.pos_label!r}; pass pos_label= to the guard instead, which "
                    "reads the outcomes for all rungs"
                )
        if not isinstance(self.ladder[-1], (IsotonicRecalibrator, ConstantRecalibrator)):
            raise ValueError(
                f"ladder ends with {type(self.ladder[-1]).__name__}, which may miss the tolerance too; end it with "
                "IsotonicRecalibrator() or ConstantRecalibrator(), which cannot"
            )

    def _rungs(self) -> Sequence[Recalibrator]:
        if self.ladder is not None:
            return self.ladder
        return [PlattRecalibrator(input=self.input), IsotonicRecalibrator(input=self.input), ConstantRecalibrator()]

    def _fit_map(self, sample: Sample) -> float:
        found: list[LadderRung] = []
        for rung in self._rungs():
            fitted: Recalibrator = clone(rung)
            name = type(fitted).__name__
            try:
                fitted._fit_to(sample)
            except ValueError as problem:
                found.append(LadderRung(name, None, None, False, f"it could not be fitted: {problem}"))
                continue
            error, tolerance = fitted.fit_error_, self._tolerated(fitted, sample)
            kept = error <= tolerance + ROUNDING
            comparison = "within" if kept else "above"
            reason = f"its error of {error:.4f} on the fitting rows is {comparison} the tolerance of {tolerance:.4f}"
            found.append(LadderRung(name, error, tolerance, kept, reason))
            if kept:
                break
        # The last rung has no error on its own rows, so that the loop always ends by keeping one.
        self.recalibrator_ = fitted
        self.ladder_ = tuple(found)
        return fitted.fit_error_

    def _tolerated(self, rung: Recalibrator, sample: Sample) -> float:
        if self.tolerance == "paper":
            return paper_margin(sample.weight_total, 1.0 - _NULL_LEVEL)
        if self.tolerance == "null-95":
            forecast = rung._mapped(sample.value)
            return _null_quantile(sample.mean(forecast * (1.0 - forecast)), sample.weight_total)
        return float(self.tolerance)

    def _promise(self) -> tuple[float | None, str]:
        if self.tolerance == "paper":
            most = paper_margin(self.n_rows_, 1.0 - _NULL_LEVEL)
        elif self.tolerance == "null-95":
            most = _null_quantile(0.25, self.n_rows_)
        else:
            most = float(self.tolerance)
        return most, (
            "the guard promised, from the number of rows alone, isotonic regression's bound plus the tolerance, which "
            f"is at most {most:.4f}"
        )

    def _ladder_found(self) -> tuple[LadderRung, ...]:
        return self.ladder_

    def _map(self, value: FloatArray) -> FloatArray:
        return self.recalibrator_._map(value)

    def _sql(self, column: str) -> str:
        return self.recalibrator_._sql(column)

    @property
    def _direction(self) -> str:
        return self.recalibrator_._direction

    @classmethod
    def _from_params(cls, params: Any) -> Self:
        if isinstance(params, dict) and isinstance(params.get("ladder"), list):
            params = {**params, "ladder": [_rebuilt_rung(rung) for rung in params["ladder"]]}
        return super()._from_params(params)

    def _restored(self, name: str, value: Any) -> Any:
        if name == "recalibrator_":
            return Recalibrator._from_dict(value)
        if not isinstance(value, list) or not value:
            raise ValueError(f"{name} must be a list of rungs, got {value!r}")
        return tuple(LadderRung.from_dict(rung) for rung in value)

    def _check_state(self) -> None:
        kept, tried = type(self.recalibrator_).__name__, self.ladder_
        for rung in tried:
            check_flag(rung.kept, "kept")
            check_choice(rung.recalibrator, "recalibrator of a rung", tuple(kind.__name__ for kind in KINDS))
            if not isinstance(rung.reason, str):
                raise ValueError(f"reason of a rung must be words, got {rung.reason!r}; the text is damaged")
            for number in (rung.error, rung.tolerance):
                if number is not None or rung.kept:
                    check_number(number, "error and tolerance", low=0.0, high=_LARGEST)
        if [rung.kept for rung in tried] != [False] * (len(tried) - 1) + [True] or tried[-1].recalibrator != kept:
            raise ValueError(f"ladder_ does not end by keeping {kept}, which recalibrator_ is; the text is damaged")


KINDS = (
    IsotonicRecalibrator,
    PlattRecalibrator,
    BetaRecalibrator,
    TemperatureRecalibrator,
    ConstantRecalibrator,
    GuardedRecalibrator,
)
TOLERANCES = ("null-95", "paper")


def _check_clip(clip: Any) -> None:
    if clip is not None and not 0.0 < check_number(clip, "clip", low=0.0, high=0.5) < 0.5:
        raise ValueError(f"clip must be between 0 and 0.5, got {clip!r}; 1e-6 is a common choice")


def _null_quantile(variance: float, rows: float) -> float:
    """Return what the Cutoff error of calibrated forecasts stays below in 95% of cases, for many rows."""
    return float(brownian_range.ppf(_NULL_LEVEL)) * math.sqrt(max(variance, 0.0) / rows)


# --- JSON and SQL -----------------------------------------------------------------------------------------------------

_LARGEST = float(np.finfo(np.float64).max)
_MOST_ROWS = 2.0**63
_ROW_FACTS = ("n_rows_", "weighted_", "fit_error_")
_OTHER_ORDER = ("the order is (y_true, y_prob)", "the order is fit(y_prob, y_true)")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _check_fields(data: Any, names: Sequence[str], where: str) -> None:
    """Make sure that a part of a file holds just what it should."""
    if not isinstance(data, dict):
        raise ValueError(f"{where} is not an object with names, got {data!r}; pass what to_json() returned, whole")
    for name in names:
        if name not in data:
            raise ValueError(f"{name} is missing from {where}; pass what to_json() returned, whole")
    for name in data:
        if name not in names:
            raise ValueError(f"{name!r} is unknown in {where}; pass what to_json() of this version returned, unchanged")


def _check_inside(name: str, values: FloatArray) -> None:
    outside = np.flatnonzero((values < 0.0) | (values > 1.0))
    if outside.size:
        raise ValueError(f"{name} is {values[outside[0]]!r}, outside [0, 1]; the text is damaged")


def _plain_param(name: str, value: Any) -> Any:
    """Return a parameter as JSON holds it: names, numbers, and the rungs of a ladder unfitted."""
    if name == "ladder" and value is not None:
        return [{"type": type(rung).__name__, "params": _plain_params(rung)} for rung in value]
    plain = value.item() if isinstance(value, np.generic) else value
    is_plain = plain is None or isinstance(plain, (str, bool, int, float))
    if not is_plain or (isinstance(plain, float) and not math.isfinite(plain)):
        raise ValueError(f"{name} is {value!r}, which the JSON of a recalibrator cannot hold; use a string or a number")
    return plain


def _plain_params(recalibrator: Recalibrator) -> dict[str, Any]:
    return {name: _plain_param(name, value) for name, value in recalibrator.get_params(deep=False).items()}


def _plain_state(value: Any) -> Any:
    if isinstance(value, Recalibrator):
        return value._to_dict()
    if isinstance(value, tuple):
        return [rung.to_dict() for rung in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def _rebuilt_rung(data: Any) -> Recalibrator:
    _check_fields(data, ("type", "params"), "a rung of the ladder")
    kind = {kind.__name__: kind for kind in KINDS}.get(str(data["type"]))
    if kind is None:
        raise ValueError(f"type of a rung is {data['type']!r}, not a recalibrator; the text is damaged")
    rung: Recalibrator = kind._from_params(data["params"])
    return rung


def _literal(number: float) -> str:
    """Write a number so that every engine reads the same double: with an exponent, else some take it for a decimal."""
    text = f"{float(number):.16e}"
    return f"({text})" if text.startswith("-") else text


def _expit_sql(linear: str) -> str:
    limit = _literal(_SURE_EXPONENT)
    ends = f"WHEN {linear} > {limit} THEN 1e0 WHEN {linear} < -{limit} THEN 0e0"
    return f"CASE {ends} ELSE 1e0 / (1e0 + EXP(-({linear}))) END"


def _clipped_sql(column: str, clip: float | None) -> str:
    if clip is None:
        return column
    low, high = _literal(clip), _literal(1.0 - clip)
    return f"(CASE WHEN {column} < {low} THEN {low} WHEN {column} > {high} THEN {high} ELSE {column} END)"


def _with_ends_sql(column: str, recalibrator: Recalibrator, curve: str) -> str:
    """Add the limits of a curve at 0 and 1, where SQL has no logarithm."""
    at_zero, at_one = recalibrator._map(np.array([0.0, 1.0]))
    ends = f"WHEN {column} <= 0e0 THEN {_literal(at_zero)} WHEN {column} >= 1e0 THEN {_literal(at_one)}"
    return f"CASE {ends} ELSE {curve} END"

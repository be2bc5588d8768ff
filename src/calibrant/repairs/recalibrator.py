"""Recalibration: what every map that repairs forecasts can do, and what is guaranteed about the result.

A recalibrator is fitted to forecasts and outcomes, ``fit(y_prob, y_true)``, and maps forecasts to better ones,
``predict(y_prob)``. Every map here is monotone, which is what the guarantees rest on (docs/theory/repairs.md).

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

# scikit-learn has no types, so that its classes count as Any.
# mypy: allow-subclassing-any

from __future__ import annotations

import json
from abc import abstractmethod
from importlib import import_module
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.metadata_routing import UNUSED

from calibrant.certificates.clusters import check_clusters
from calibrant.certificates.margins import fitted_range_margin, monotone_margin, paper_monotone_margin, range_margin
from calibrant.certificates.saving_limits import monotone_saving_margin
from calibrant.core.errors import InputError
from calibrant.core.sql import is_name, number_literal, quoted
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray
from calibrant.core.words import rounded_up
from calibrant.repairs.clustered import TO_CERTIFY, Layers
from calibrant.repairs.documents import check_fields, plain_param, read_document
from calibrant.repairs.fits import FitErrors, Sample
from calibrant.repairs.plain import PlainMap
from calibrant.repairs.results import MEASURES, TARGETS, LadderRung, RecalibrationGuarantee
from calibrant.rows.checks import (
    MOST_ROWS,
    Observations,
    check_choice,
    check_confidence,
    check_flag,
    check_forecasts,
    check_number,
    check_same_index,
    check_scores,
)
from calibrant.rows.intake import RowsLike, rows_to_fit
from calibrant.rows.matrices import has_columns, shape_of
from calibrant.rows.tally import Tally, Totals

SCHEMA = "calibrant-recalibrator/1"
"""Version of the shape that `to_json` gives; it changes when a field changes its meaning or its name."""

KINDS = (
    "IsotonicRecalibrator",
    "PlattRecalibrator",
    "BetaRecalibrator",
    "TemperatureRecalibrator",
    "ConstantRecalibrator",
    "GuardedRecalibrator",
)
InputKind = Literal["probability", "score"]
INPUTS: tuple[str, ...] = get_args(InputKind)
GuaranteedMeasure = Literal["cutoff", "risk_gap"]
GuaranteeTarget = Literal["population", "these forecasts"]
_MARGINS = {"cutoff": monotone_margin, "risk_gap": monotone_saving_margin}
LARGEST = float(np.finfo(np.float64).max)
_FIT_ERRORS = ("fit_error_", "fit_risk_gap_", "fit_brier_")
_ROW_FACTS = ("n_rows_", "weighted_", *_FIT_ERRORS, "notes_")
_ASSUMED = {
    "population": (
        "the rows are independent draws from the population, which several of one patient, day or site are not",
        "the forecaster was fixed without looking at them",
    ),
    "these forecasts": (
        "given their forecasts the outcomes are independent, which several of one patient, day or site seldom are",
        "the forecaster was fixed without looking at these outcomes, to which the map may be fitted",
    ),
}
"""What each guarantee rests on."""


class Recalibrator(PlainMap, BaseEstimator):
    """What every recalibrator can do: fit, predict, guarantee, and be carried elsewhere as JSON or SQL.

    ``Recalibrator.from_json(text)`` rebuilds a recalibrator of any kind. This class itself fits nothing; the kinds are
    `IsotonicRecalibrator`, `PlattRecalibrator`, `BetaRecalibrator`, `TemperatureRecalibrator`, `ConstantRecalibrator`
    and `GuardedRecalibrator`.
    """

    # The first arguments are data, not metadata that a pipeline would have to route.
    __metadata_request__fit: ClassVar = {"y_prob": UNUSED, "y_true": UNUSED}
    __metadata_request__predict: ClassVar = {"y_prob": UNUSED}

    input_kind: InputKind = "probability"
    pos_label: ClassLabel | None = None
    _fitted: ClassVar[tuple[str, ...]] = ()

    def fit(self, y_prob: RowsLike, y_true: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the map.

        Parameters
        ----------
        y_prob : array-like of shape (n,), or Tally
            Forecast probabilities (or scores, for ``input_kind="score"``); or a tally that holds forecasts and
            outcomes.
        y_true : array-like of shape (n,)
            Outcomes: 0/1, booleans, fractions in [0, 1], or labels together with ``pos_label``.
        sample_weight : array-like of shape (n,), optional
            Nonnegative weights: a row of weight 2 counts as two rows. No guarantee covers weighted rows.

        Returns
        -------
        Recalibrator
            Itself.
        """
        check_choice(self.input_kind, "input_kind", INPUTS)
        sample = self._sample(y_prob, y_true, sample_weight)
        return self._fit_to(sample, sample.hints)

    def predict(self, y_prob: ArrayLike) -> FloatArray:
        """Return the recalibrated forecasts.

        Parameters
        ----------
        y_prob : array-like of shape (n,)
            Forecast probabilities (or scores, for ``input_kind="score"``).

        Returns
        -------
        array of shape (n,)
            Probabilities in [0, 1].
        """
        self._check_fitted("predict")
        return self._mapped(check_scores(y_prob) if self.input_kind == "score" else check_forecasts(y_prob))

    def guarantee(
        self,
        confidence_level: float = 0.95,
        *,
        measure: GuaranteedMeasure = "cutoff",
        target: GuaranteeTarget = "population",
        cluster: ArrayLike | None = None,
        serial: int = 0,
    ) -> RecalibrationGuarantee:
        """Say what is guaranteed about the recalibrated forecaster: its Cutoff calibration error, or its risk gap.

        Parameters
        ----------
        confidence_level : float from 0.5 to below 1
            One minus the probability that the statement is wrong.
        measure : {"cutoff", "risk_gap"}
            What is bounded: the Cutoff calibration error, or what re-drawing the line between acting and not acting
            could save, at the worst threshold. Each statement has the confidence for itself.
        target : {"population", "these forecasts"}
            Whom it speaks of: cases to come from the same population, or the forecasts of the fitting rows, if they
            were issued once more and only the outcomes drawn anew. The second needs no more than outcomes that are
            independent given the forecasts, and its bound is a third as large, or less where outcomes vary little; of
            forecasts that are not among these rows it says nothing.
        cluster : array-like of shape (n,), optional
            The cluster of each row that the map was fitted to: the patient, the day, the site. Rows of one cluster may
            depend on each other in any way. Without it the guarantee holds for independent rows only, and is far too
            small for others. With it the bound is (sum_k sqrt(G_k) / n) sqrt(ln(4e/delta) / 2), G_k the number of
            clusters with at least k rows, on top of the error on the fitting rows: about 1.6/sqrt(G) for G clusters of
            equal size, of these forecasts only. For the population fit on half of the clusters and `certify` on the
            others.
        serial : int, default 0
            How many places apart, in the sorted order of their labels, clusters may depend on each other, as in
            `certify`.

        Returns
        -------
        RecalibrationGuarantee
            The bound, what was known of it before the data, and what it rests on.

        Raises
        ------
        ValueError
            When the map was fitted to weighted rows, which no guarantee covers, and for the population of clusters.

        Examples
        --------
        Ten rows of each of 400 patients: what holds of these forecasts, and what of the population when half of the
        patients are kept to judge the map.

        >>> from calibrant import IsotonicRecalibrator, certify
        >>> rng = np.random.default_rng(0)
        >>> patient = np.repeat(np.arange(400), 10)
        >>> y_prob = rng.random(4000)
        >>> y_true = rng.random(4000) < y_prob**1.5
        >>> all_rows = IsotonicRecalibrator().fit(y_prob, y_true)
        >>> round(all_rows.guarantee(target="these forecasts", cluster=patient).upper, 3)
        0.082
        >>> half = rng.permutation(400)[patient] < 200
        >>> better = IsotonicRecalibrator().fit(y_prob[half], y_true[half]).predict(y_prob[~half])
        >>> certificate = certify(y_true[~half], better, max_error=0.1, cluster=patient[~half])
        >>> certificate.verdict, round(certificate.upper, 3)
        ('certified', 0.048)
        """
        level = check_confidence(confidence_level)
        check_choice(measure, "measure", tuple(MEASURES))
        check_choice(target, "target", tuple(TARGETS))
        self._check_fitted("guarantee")
        if self.weighted_:
            raise InputError(
                "was given to fit, and no guarantee covers weighted rows",
                argument="sample_weight",
                remedy="fit without weights (counts of real observations enter as Tally.from_counts), or certify() "
                "the recalibrated forecasts on fresh rows",
            )
        return self._guarantee(level, measure, target, self._layers(cluster, serial, target))

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
        return cls._from_dict(read_document(text, SCHEMA))

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
        if not is_name(column):
            raise InputError(f"must be the name of a column, got {column!r}", argument="column", value=column)
        name = quoted(column)
        low, high = self._range
        is_valid = f"{name} >= {number_literal(low)} AND {name} <= {number_literal(high)}"
        return f"CASE WHEN {is_valid} THEN {self._sql(name)} END"

    @property
    def _range(self) -> tuple[float, float]:
        """The least and the largest value that `predict` takes."""
        return (0.0, 1.0) if self.input_kind == "probability" else (-LARGEST, LARGEST)

    @property
    def _direction(self) -> str:
        """What the map does to the order of forecasts: "increasing", "decreasing" or "constant"."""
        return "increasing"

    @abstractmethod
    def _check_params(self) -> None:
        """Check what was set when the recalibrator was made."""

    @abstractmethod
    def _sql(self, column: str) -> str:
        """Return the map as SQL of a quoted column that holds valid values only."""

    @abstractmethod
    def _check_state(self) -> None:
        """Check fitted attributes that came from a file."""

    def _promise(self, measure: str) -> tuple[float | None, str]:
        """Return what an error on the fitting rows was known in advance to stay below, and that in words.

        In the words ``{bound}`` stands for the bound that was promised, and ``{known}`` for what was known.
        """
        del measure
        return None, (
            "nothing was promised, because a map of this shape can stay miscalibrated however many rows there are; the "
            "bound is known only now that the error on the fitting rows is"
        )

    def _fit_to(self, sample: Sample, notes: tuple[str, ...] = ()) -> Self:
        self._check_params()
        find_errors = self._fit_map(sample)
        return self._record(sample.rows, not sample.unit_weights, find_errors(), notes)

    def _record(self, rows: int, weighted: bool, errors: FitErrors, notes: tuple[str, ...]) -> Self:
        """Keep what the guarantee needs to know about the rows."""
        self.notes_ = notes
        self.n_rows_ = rows
        self.weighted_ = weighted
        self.fit_error_, self.fit_risk_gap_, self.fit_brier_ = errors
        self.guarantee_ = None if weighted else self._guarantee(0.95, "cutoff", "population", None)
        return self

    def _sample(self, y_prob: RowsLike, y_true: ArrayLike | None, sample_weight: ArrayLike | None) -> Sample:
        """Check raw input, or take a tally or checked rows as they are."""
        scores: FloatArray | None = None
        if has_columns(y_prob):
            raise InputError(
                f"has shape {shape_of(y_prob)}, and {type(self).__name__} maps the forecasts of one event",
                argument="y_prob",
                remedy="pass one class's column, for two classes y_prob[:, 1], or repair all of them with a "
                "recalibrator of classes, such as OneVsRestRecalibrator()",
            )
        if self.input_kind == "score" and y_true is not None and not isinstance(y_prob, (Totals, Observations)):
            # Scores are numbered in their order, and the numbers stand in for forecasts.
            check_same_index(y_prob=y_prob, y_true=y_true, sample_weight=sample_weight)
            scores, number = np.unique(check_scores(y_prob), return_inverse=True)
            y_prob = number / scores.size
        given = {"sample_weight": sample_weight, "pos_label": self.pos_label}
        rows = rows_to_fit(y_prob, y_true, **given, call="fit", swapped=scores is not None)
        if isinstance(rows, Tally):
            return Sample.of_tally(rows)
        if scores is None:
            return Sample.of_rows(rows)
        return Sample.of_tally(Tally.from_observations(rows), scores + 0.0)

    def _check_fitted(self, what: str) -> None:
        if not hasattr(self, "guarantee_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit(y_prob, y_true) before {what}()"
            )

    def _layers(self, cluster: ArrayLike | None, serial: int, target: str) -> Layers | None:
        """Return the clusters of the rows; None for independent rows, of which no more may be said."""
        if cluster is None:
            check_clusters(False, "rows", None, serial)
            return None
        layers = Layers.of(cluster, serial, self.n_rows_)
        if target == "population":
            raise InputError(
                "was given, and from the rows that fitted the map no guarantee is known for the population of clusters",
                argument="cluster",
                remedy=f"{TO_CERTIFY}; or ask for target='these forecasts'",
            )
        return layers

    def _guarantee(
        self, level: float, measure: GuaranteedMeasure, target: GuaranteeTarget, layers: Layers | None
    ) -> RecalibrationGuarantee:
        delta = 1.0 - level
        error = {"cutoff": self.fit_error_, "risk_gap": self.fit_risk_gap_}[measure]
        promised, margin = self._margins(delta, measure, target, layers)
        clusters = None if layers is None else layers.facts(margin)
        known, promise = self._promise(measure)
        in_advance = None if known is None else min(1.0, known + promised)
        bound = "this bound" if margin == promised else f"a bound of {rounded_up(in_advance)}"
        paper = paper_monotone_margin(self.n_rows_, delta) if target == "population" else None
        notes = list(self.notes_)
        if self._direction == "decreasing":
            notes.append("the map reverses the order of the forecasts: higher ones went with fewer events")
        if error + margin >= 1.0:
            few = "rows" if layers is None else "clusters"
            notes.append(f"no {MEASURES[measure]} is above 1, so that this bound says nothing: there are too few {few}")
        return RecalibrationGuarantee(
            recalibrator=type(self).__name__,
            upper=min(1.0, error + margin),
            paper_upper=None if paper is None else min(1.0, self.fit_error_ + paper),
            in_advance=in_advance,
            paper_in_advance=None if known is None or paper is None else min(1.0, known + paper),
            error=error,
            margin=margin,
            paper_margin=paper,
            confidence_level=level,
            rows=self.n_rows_,
            direction=self._direction,
            promise=promise.format(bound=bound, known="number of rows" if layers is None else "sizes of the clusters"),
            measure=measure,
            target=target,
            ladder=self._ladder_found(),
            assumptions=_ASSUMED[target] if clusters is None else (clusters.assumed(given=True), _ASSUMED[target][-1]),
            notes=tuple(notes),
            clusters=clusters,
        )

    def _margins(self, delta: float, measure: str, target: str, layers: Layers | None) -> tuple[float, float]:
        """Return by how much the error can exceed that on the fitting rows, known in advance and after the fit."""
        if layers is not None:
            return (layers.margin(delta),) * 2
        if target == "population":
            margin = _MARGINS[measure](self.n_rows_, delta)
            return margin, margin
        return range_margin(self.n_rows_, delta), fitted_range_margin(self.n_rows_, self.fit_brier_, delta)

    def _ladder_found(self) -> tuple[LadderRung, ...]:
        return ()

    def _to_dict(self) -> dict[str, Any]:
        return {
            "type": type(self).__name__,
            "params": plain_params(self),
            "fitted": {name: _plain_state(getattr(self, name)) for name in self._fitted},
            "rows": {**{name: getattr(self, name) for name in _ROW_FACTS}, "notes_": list(self.notes_)},
        }

    @classmethod
    def _from_dict(cls, data: Any) -> Self:
        """Rebuild a recalibrator from checked fields."""
        check_fields(data, ("type", "params", "fitted", "rows"), "this recalibrator")
        kind = kinds().get(str(data["type"]))
        if kind is None or not issubclass(kind, cls):
            raise InputError(
                f"is {data['type']!r}, not a {cls.__name__}",
                argument="type",
                value=data["type"],
                remedy="pass what its to_json() returned",
            )
        rebuilt = kind._from_params(data["params"])
        check_fields(data["fitted"], kind._fitted, f"fitted of {kind.__name__}")
        for name in kind._fitted:
            setattr(rebuilt, name, rebuilt._restored(name, data["fitted"][name]))
        rebuilt._check_state()
        facts = data["rows"]
        if isinstance(facts, dict):
            facts = {"notes_": [], **facts}  # which files of older releases have none of
        check_fields(facts, _ROW_FACTS, f"rows of {kind.__name__}")
        return rebuilt._record(
            int(check_number(facts["n_rows_"], "n_rows_", low=1, high=MOST_ROWS, whole=True)),
            check_flag(facts["weighted_"], "weighted_"),
            FitErrors(*(check_number(facts[name], name, low=0.0, high=1.0) for name in _FIT_ERRORS)),
            _check_notes(facts["notes_"]),
        )

    @classmethod
    def _from_params(cls, params: Any) -> Self:
        check_fields(params, tuple(cls._get_param_names()), f"params of {cls.__name__}")
        for name, value in params.items():
            if name != "ladder":
                _plain_param(name, value)
        rebuilt = cls(**params)
        rebuilt._check_params()
        return rebuilt

    def _restored(self, name: str, value: Any) -> Any:
        """Return a fitted attribute from its JSON form."""
        return check_number(value, name, low=-LARGEST, high=LARGEST)


def _check_notes(notes: Any) -> tuple[str, ...]:
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise InputError(f"must be a list of sentences, got {notes!r}", argument="notes_", remedy="the text is damaged")
    return tuple(notes)


def kinds() -> dict[str, type[Any]]:
    """Return every kind of recalibrator by its name, loaded only now: the kinds build on this module."""
    package = import_module("calibrant.repairs")
    return {name: getattr(package, name) for name in KINDS}


def _plain_param(name: str, value: Any) -> Any:
    """Return a parameter as JSON holds it: names, numbers, and the rungs of a ladder unfitted."""
    if name == "ladder" and value is not None:
        return [{"type": type(rung).__name__, "params": plain_params(rung)} for rung in value]
    return plain_param(name, value)


def plain_params(recalibrator: Recalibrator) -> dict[str, Any]:
    """Return the parameters of a recalibrator as JSON holds them."""
    return {name: _plain_param(name, value) for name, value in recalibrator.get_params(deep=False).items()}


def _plain_state(value: Any) -> Any:
    if isinstance(value, Recalibrator):
        return value._to_dict()
    if isinstance(value, tuple):
        return [rung.to_dict() for rung in value]
    return value.tolist() if isinstance(value, np.ndarray) else value

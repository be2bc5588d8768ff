"""Recalibration of several classes: what every map of whole rows of probabilities can do.

A recalibrator of classes is fitted to probabilities with one column per class and to labels, ``fit(y_prob, y_true)``,
and maps probabilities to better ones, ``predict(y_prob)``, of the same shape. Which of them has a guarantee, and of
what, is said by each; the proofs are in docs/theory/class-repairs.md.
"""

# scikit-learn has no types, so that its classes count as Any.
# mypy: allow-subclassing-any

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.metadata_routing import UNUSED

from calibrant.core.errors import InputError
from calibrant.core.sql import is_name, number_literal, quoted
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray
from calibrant.repairs.class_results import ClassGuarantee
from calibrant.repairs.class_rows import FitRows, check_class_matrix, check_class_rows, fitted_order
from calibrant.repairs.documents import check_fields, plain_param, read_document
from calibrant.repairs.recalibrator import (
    INPUTS,
    LARGEST,
    GuaranteedMeasure,
    GuaranteeTarget,
    InputKind,
)
from calibrant.repairs.results import MEASURES, TARGETS
from calibrant.rows.checks import MOST_ROWS, check_choice, check_confidence, check_flag, check_number
from calibrant.rows.matrices import SUM_TOLERANCE

SCHEMA = "calibrant-class-recalibrator/1"
"""Version of the shape that `to_json` gives; it changes when a field changes its meaning or its name."""

CLASS_KINDS = (
    "ClassTemperatureRecalibrator",
    "VectorRecalibrator",
    "OneVsRestRecalibrator",
    "TopLabelRecalibrator",
    "MenuRecalibrator",
)
_PART = 1 << 16
ASSUMED = {
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


class ClassRecalibrator(ABC, BaseEstimator):
    """What every recalibrator of several classes can do: fit, predict, guarantee, and be carried elsewhere.

    ``ClassRecalibrator.from_json(text)`` rebuilds one of any kind. This class itself fits nothing; the kinds are
    `ClassTemperatureRecalibrator`, `VectorRecalibrator`, `OneVsRestRecalibrator`, `TopLabelRecalibrator` and
    `MenuRecalibrator`.
    """

    # The first arguments are data, not metadata that a pipeline would have to route.
    __metadata_request__fit: ClassVar = {"y_prob": UNUSED, "y_true": UNUSED}
    __metadata_request__predict: ClassVar = {"y_prob": UNUSED}

    input_kind: InputKind = "probability"
    multilabel: bool = False
    classes: Sequence[ClassLabel] | None = None
    _fitted: ClassVar[tuple[str, ...]] = ()

    def fit(self, y_prob: ArrayLike, y_true: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the map.

        Parameters
        ----------
        y_prob : array-like of shape (n, K)
            Probabilities, one column per class and rows that sum to 1 (or scores, for ``input_kind="score"``).
        y_true : array-like of shape (n,)
            The label of each row; with ``multilabel=True``, an array of shape (n, K) of 0 and 1.
        sample_weight : array-like of shape (n,), optional
            Nonnegative weights: a row of weight 2 counts as two rows. No guarantee covers weighted rows.

        Returns
        -------
        ClassRecalibrator
            Itself.
        """
        check_choice(self.input_kind, "input_kind", INPUTS)
        self._check_params()
        return self._fit_to(
            check_class_rows(
                y_prob,
                y_true,
                classes=self.classes,
                sample_weight=sample_weight,
                scores=self.input_kind == "score",
                multilabel=self.multilabel,
            )
        )

    def predict(self, y_prob: ArrayLike) -> FloatArray:
        """Return the recalibrated probabilities.

        Parameters
        ----------
        y_prob : array-like of shape (n, K)
            Probabilities (or scores), with the columns of the fit: those of a frame are found by their names, those of
            an array are in the order of ``classes_``.

        Returns
        -------
        array of shape (n, K)
            Probabilities in [0, 1], an array with the columns in the order of ``classes_``: pass
            ``classes=recalibrator.classes_`` with it to measures and certificates. Rows sum to 1, except where a
            recalibrator was told not to see to that.
        """
        return self._mapped(self._checked(y_prob, "predict"))

    def guarantee(
        self,
        confidence_level: float = 0.95,
        *,
        measure: GuaranteedMeasure = "cutoff",
        target: GuaranteeTarget = "population",
    ) -> ClassGuarantee:
        """Say what is guaranteed about the recalibrated forecaster, for all classes together.

        Parameters
        ----------
        confidence_level : float from 0.5 to below 1
            One minus the probability that the statement is wrong.
        measure : {"cutoff", "risk_gap"}
            What is bounded: the Cutoff calibration error, or what re-drawing the line between acting and not acting
            could save, at the worst threshold. Each statement has the confidence for itself.
        target : {"population", "these forecasts"}
            Whom it speaks of: cases to come from the same population, or the forecasts of the fitting rows, if they
            were issued once more and only the outcomes drawn anew.

        Returns
        -------
        ClassGuarantee
            The bound, what was known of it before the data, and what it rests on.

        Raises
        ------
        ValueError
            When the map has no guarantee, with the reason and what to do instead; and when it was fitted to weighted
            rows, which no guarantee covers.
        """
        level = check_confidence(confidence_level)
        check_choice(measure, "measure", tuple(MEASURES))
        check_choice(target, "target", tuple(TARGETS))
        self._check_fitted("guarantee")
        self._refuse_guarantee()
        if self.weighted_:
            raise InputError(
                "was given to fit, and no guarantee covers weighted rows",
                argument="sample_weight",
                remedy="fit without weights, or certify() the recalibrated forecasts on fresh rows",
            )
        return self._guarantee(level, measure, target)

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

        Every field is checked, and nothing in the text is executed. A text that is damaged, of another version or not
        such a recalibrator's is an error that says so.

        Parameters
        ----------
        text : str
            What `to_json` returned.

        Returns
        -------
        ClassRecalibrator
            Of the kind that was written. Called on one kind, that kind only is accepted;
            ``ClassRecalibrator.from_json`` takes all.
        """
        return cls._from_dict(read_document(text, SCHEMA))

    def to_sql(self, columns: Sequence[str]) -> list[str]:
        """Return the map as SQL, one expression per class, for scoring inside a database.

        The expressions use CASE, comparison, arithmetic, LN, EXP and GREATEST only. Where `predict` would refuse a row
        (missing, not finite, outside [0, 1], not summing to 1) they give NULL. Names are quoted with double quotes, as
        the SQL standard has it.

        Parameters
        ----------
        columns : sequence of str
            Names of the columns that hold the probabilities (or scores), in the order of ``classes_``.

        Returns
        -------
        list of str
            Expressions whose values are the columns of `predict`.
        """
        self._check_fitted("to_sql")
        wanted = len(self.classes_)
        if isinstance(columns, str) or not all(map(is_name, columns)) or len(columns) != wanted:
            raise InputError(
                f"must be the names of {wanted} columns, one per class, got {columns!r}",
                argument="columns",
                value=columns,
            )
        names = [quoted(column) for column in columns]
        low, high = (0.0, 1.0) if self.input_kind == "probability" else (-LARGEST, LARGEST)
        valid = [f"{name} >= {number_literal(low)} AND {name} <= {number_literal(high)}" for name in names]
        if self.input_kind == "probability" and not self.multilabel:
            total = f"({' + '.join(names)})"
            ends = number_literal(1.0 - SUM_TOLERANCE), number_literal(1.0 + SUM_TOLERANCE)
            valid.append(f"{total} >= {ends[0]} AND {total} <= {ends[1]}")
        is_valid = " AND ".join(valid)
        return [f"CASE WHEN {is_valid} THEN {curve} END" for curve in self._sql(names)]

    @abstractmethod
    def _check_params(self) -> None:
        """Check what was set when the recalibrator was made."""

    @abstractmethod
    def _fit_map(self, rows: FitRows) -> None:
        """Set the fitted attributes."""

    @abstractmethod
    def _map(self, value: FloatArray) -> FloatArray:
        """Return the recalibrated probabilities of checked rows."""

    @abstractmethod
    def _sql(self, columns: list[str]) -> list[str]:
        """Return the map as SQL of quoted columns that hold valid values only."""

    @abstractmethod
    def _check_state(self) -> None:
        """Check fitted attributes that came from a file."""

    @abstractmethod
    def _restored(self, name: str, value: Any) -> Any:
        """Return a fitted attribute from its JSON form."""

    @abstractmethod
    def _refuse_guarantee(self) -> None:
        """Say why there is none, where there is none."""

    @abstractmethod
    def _guarantee(self, level: float, measure: GuaranteedMeasure, target: GuaranteeTarget) -> ClassGuarantee:
        """Return the guarantee of a map that has one."""

    def _checked(self, y_prob: ArrayLike, what: str) -> FloatArray:
        """Check rows with the columns of the fit; return them in its order, whichever a frame has them in."""
        self._check_fitted(what)
        order = fitted_order(y_prob, self.classes_, self.columns_, stated=self.classes is not None)
        value = check_class_matrix(
            y_prob, scores=self.input_kind == "score", multilabel=self.multilabel, count=len(self.classes_)
        )
        return value if order is None else np.ascontiguousarray(value[:, order])

    def _mapped(self, value: FloatArray) -> FloatArray:
        """Return the recalibrated probabilities of checked rows, some thousand at a time to spare memory."""
        forecast = np.empty(value.shape)
        step = max(1, _PART // value.shape[1])
        for begin in range(0, len(value), step):
            part = slice(begin, begin + step)
            forecast[part] = self._map(value[part])
        return forecast

    def _fit_to(self, rows: FitRows) -> Self:
        self.classes_, self.columns_ = rows.classes, rows.columns
        self._fit_map(rows)
        return self._record(rows.size, rows.weighted)

    def _record(self, rows: int, weighted: bool) -> Self:
        """Keep what the guarantee needs to know about the rows."""
        self.n_rows_ = rows
        self.weighted_ = weighted
        self.guarantee_ = self._guarantee(0.95, "cutoff", "population") if self._is_covered else None
        return self

    @property
    def _is_covered(self) -> bool:
        """Whether there is a guarantee for this map and the rows that it was fitted to."""
        try:
            self._refuse_guarantee()
        except InputError:
            return False
        return not self.weighted_

    def _check_fitted(self, what: str) -> None:
        if not hasattr(self, "guarantee_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit(y_prob, y_true) before {what}()"
            )

    def _to_dict(self) -> dict[str, Any]:
        return {
            "type": type(self).__name__,
            "params": self._plain_params(),
            "fitted": {name: plain_state(getattr(self, name)) for name in self._fitted},
            "rows": {
                "n_rows_": self.n_rows_,
                "weighted_": self.weighted_,
                "classes_": [plain_param("classes_", label) for label in self.classes_],
                "columns_": None if self.columns_ is None else list(self.columns_),
            },
        }

    def _plain_params(self) -> dict[str, Any]:
        """Return the parameters as JSON holds them."""
        return {name: self._plain(name, value) for name, value in self.get_params(deep=False).items()}

    def _plain(self, name: str, value: Any) -> Any:
        if name == "classes" and value is not None:
            return [plain_param(name, label) for label in value]
        return plain_param(name, value)

    @classmethod
    def _from_dict(cls, data: Any) -> Self:
        """Rebuild a recalibrator from checked fields."""
        check_fields(data, ("type", "params", "fitted", "rows"), "this recalibrator")
        kind = class_kinds().get(str(data["type"]))
        if kind is None or not issubclass(kind, cls):
            raise InputError(
                f"is {data['type']!r}, not a {cls.__name__}",
                argument="type",
                value=data["type"],
                remedy="pass what its to_json() returned",
            )
        rebuilt: Self = kind._from_params(data["params"])
        facts = data["rows"]
        check_fields(facts, ("n_rows_", "weighted_", "classes_", "columns_"), f"rows of {kind.__name__}")
        rebuilt.classes_ = _restored_labels(facts["classes_"])
        rebuilt.columns_ = None if facts["columns_"] is None else _restored_labels(facts["columns_"], "columns_")
        if rebuilt.columns_ is not None and len(rebuilt.columns_) != len(rebuilt.classes_):
            raise InputError("are not one per class", argument="columns_", remedy="the text is damaged")
        if rebuilt.classes is not None and tuple(rebuilt.classes) != rebuilt.classes_:
            raise InputError("are not the classes that were named", argument="classes_", remedy="the text is damaged")
        check_fields(data["fitted"], kind._fitted, f"fitted of {kind.__name__}")
        for name in kind._fitted:
            setattr(rebuilt, name, rebuilt._restored(name, data["fitted"][name]))
        rebuilt._check_state()
        return rebuilt._record(
            int(check_number(facts["n_rows_"], "n_rows_", low=1, high=MOST_ROWS, whole=True)),
            check_flag(facts["weighted_"], "weighted_"),
        )

    @classmethod
    def _from_params(cls, params: Any) -> Self:
        check_fields(params, tuple(cls._get_param_names()), f"params of {cls.__name__}")
        rebuilt = cls(**{name: cls._rebuilt_param(name, value) for name, value in params.items()})
        rebuilt._check_params()
        return rebuilt

    @classmethod
    def _rebuilt_param(cls, name: str, value: Any) -> Any:
        """Return a parameter from its JSON form."""
        if name == "classes" and value is not None:
            return list(_restored_labels(value))
        return plain_param(name, value)


def class_kinds() -> dict[str, type[Any]]:
    """Return every kind of recalibrator of classes by its name, loaded only now: the kinds build on this module."""
    package = import_module("calibrant.repairs")
    return {name: getattr(package, name) for name in CLASS_KINDS}


def plain_state(value: Any) -> Any:
    """Return a fitted attribute as JSON holds it."""
    if hasattr(value, "_to_dict"):
        return value._to_dict()
    if isinstance(value, (tuple, list)):
        return [plain_state(each) for each in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def restored_numbers(name: str, value: Any, size: int) -> FloatArray:
    """Return so many finite numbers from their JSON form."""
    if not isinstance(value, list) or len(value) != size:
        raise InputError(
            f"must be a list of {size} numbers, got {value!r}", argument=name, value=value, remedy="the text is damaged"
        )
    return np.array([check_number(each, name, low=-LARGEST, high=LARGEST) for each in value])


def _restored_labels(labels: Any, name: str = "classes_") -> tuple[Any, ...]:
    is_list = isinstance(labels, list) and len(labels) >= 2
    if not is_list or not all(isinstance(label, (str, bool, int, float)) for label in labels):
        raise InputError(f"must be a list of labels, got {labels!r}", argument=name, remedy="the text is damaged")
    if any(isinstance(label, float) and not math.isfinite(label) for label in labels) or len(set(labels)) < len(labels):
        raise InputError("holds a label twice, or none", argument=name, remedy="the text is damaged")
    return tuple(labels)

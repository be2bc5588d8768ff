"""What classifiers share that certify or recalibrate a model of scikit-learn: fitting, forecasting, checks of rows."""

# scikit-learn has no types, so that its classes count as Any.
# mypy: allow-subclassing-any

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, train_test_split
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from calibrant.certificates.clusters import check_clusters
from calibrant.certificates.judging import check_plan
from calibrant.certificates.methods.registry import METHODS, POPULATION_METHODS
from calibrant.certificates.question_results import QuestionCertificates
from calibrant.certificates.results import Certificate
from calibrant.certificates.verdicts import certify
from calibrant.classifiers.clusters import RowClusters
from calibrant.classifiers.targets import Targets, read_targets
from calibrant.core.errors import CalibrationWarning, InputError
from calibrant.core.types import ArrayLike, FloatArray
from calibrant.core.words import counted, level_said
from calibrant.measures.judged import judged_measure
from calibrant.rows.checks import check_choice, check_number, check_same_index, check_weights
from calibrant.rows.classes import DEFAULT, QUESTIONS
from calibrant.rows.models import take
from calibrant.rows.questions import KINDS

try:
    from sklearn.frozen import FrozenEstimator
except ImportError:  # scikit-learn before 1.6 has no frozen models
    FrozenEstimator = None

Verdict = Certificate | QuestionCertificates
"""What rows kept aside say: of one question, or of several."""

LOOK_AGAIN = "It holds for one fit: to fit again on the same rows and choose among the results is to look again."
FEWER_FOR_JUDGING = ", or keep fewer for judging with a smaller split"
SEARCHES = (GridSearchCV, RandomizedSearchCV)
"""Models whose fit takes groups for their splitter without naming them."""


@dataclass(frozen=True)
class Asked:
    """What a fit was asked to do, checked: rows, confidence level, and what model and splitter are to be given."""

    X: Any
    y: npt.NDArray[Any]
    weight: FloatArray | None
    clusters: RowClusters | None
    level: float
    fit_params: dict[str, Any]
    split_params: dict[str, Any]


class AroundModel(ABC, ClassifierMixin, BaseEstimator):
    """What the classifiers here share: a model inside, classes or labels, and metadata for the model's fit."""

    _weights_count_for: ClassVar[str]

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the model, and repair or judge it on rows that it has not seen.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
            Features, as the model takes them.
        y : array-like of shape (n,), or of shape (n, K)
            The label of each row, of two classes or more; or a column of 0 and 1 for each of K labels, of which a row
            may have any number.
        sample_weight : array-like of shape (n,), optional
            Weights fixed beforehand: those computed from the rows, such as inverse propensities, are not covered.
        groups : array-like of shape (n,), optional
            The cluster of each row, as scikit-learn calls it: the patient, the day, the site. Rows of one cluster may
            depend on each other in any way; they are never on both sides of a split, and the certificate counts
            clusters, as ``certify(..., cluster=...)`` does, for clusters of these sizes. A splitter gets them, and a
            model whose ``fit`` takes groups, a search for instance; with metadata routing, who requests them.
        **fit_params
            Passed on to the model's ``fit``, by metadata routing where that is enabled (then also to the ``split`` of
            a splitter); values with one entry per row are split like the rows.

        Returns
        -------
        classifier
            Itself.
        """
        level = self._check_options()
        labels = read_targets(y)
        weight = check_weights(sample_weight, len(labels))
        check_same_index(X=X, y=y, sample_weight=sample_weight, groups=groups)
        X, y = indexable(X, labels)
        clusters = None if groups is None else RowClusters.of(groups, X, y, weight)
        if clusters is not None:
            self._check_clusters(level)
        self._fit(Asked(X, y, weight, clusters, level, *self._routed(weight, groups, fit_params)))
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the classes, or of the labels.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
            Features, as the model takes them.

        Returns
        -------
        array of shape (n, K)
            Probabilities, in the order of ``classes_``; for two classes a column each.
        """
        check_is_fitted(self)
        return self._probabilities(X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each row, the first of several that are equally probable.

        Where a row may have several labels, those are returned whose probability is above one half.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
            Features, as the model takes them.

        Returns
        -------
        array of shape (n,), or of shape (n, K)
            Labels out of ``classes_``; or a column of 0 and 1 for each of several labels.
        """
        check_is_fitted(self)
        chosen: npt.NDArray[Any] = self._targets.chosen(self.predict_proba(X))
        return chosen

    def get_metadata_routing(self) -> Any:
        """Say which metadata the two fits ask for: weights and groups here, and whatever the model requests.

        Returns
        -------
        MetadataRouter
            As scikit-learn describes it.
        """
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        if self._is_given:
            return router
        return router.add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags  # scikit-learn before 1.6 has none, and does not call this

        tags = super().__sklearn_tags__()
        of_model = get_tags(self.estimator)
        if of_model.classifier_tags is not None:
            tags.classifier_tags.multi_class = of_model.classifier_tags.multi_class
            tags.classifier_tags.multi_label = of_model.classifier_tags.multi_label
        tags.input_tags.sparse = of_model.input_tags.sparse
        tags.input_tags.allow_nan = of_model.input_tags.allow_nan
        return tags

    @abstractmethod
    def _check_options(self) -> float:
        """Check what was set when the classifier was made, and return the confidence level."""

    def _check_clusters(self, level: float) -> None:
        """Refuse what no limit is known of for rows in clusters, before anything is fitted."""
        question = check_clusters(True, "rows", None, 0)
        named = self._judged_by()
        measure = judged_measure(
            named.get("measure", "cutoff"),
            2.0,
            named.get("threshold"),
            named.get("cost_false_positive"),
            named.get("cost_false_negative"),
        )
        check_plan(self.method, measure, level, "rows", question)

    @abstractmethod
    def _fit(self, asked: Asked) -> None:
        """Set the fitted attributes."""

    @abstractmethod
    def _probabilities(self, X: Any) -> FloatArray:
        """Return the probabilities of the classes or labels, by a fitted classifier."""

    @property
    def _is_frozen(self) -> bool:
        return FrozenEstimator is not None and isinstance(self.estimator, FrozenEstimator)

    @property
    def _is_given(self) -> bool:
        """Whether the model comes fitted and is used as it is."""
        return self._is_frozen

    def _routed(
        self, weight: FloatArray | None, groups: Any, fit_params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the model's fit and the splitter of rows are to be given besides features and labels."""
        if self._is_given:
            if fit_params:
                raise InputError(
                    f"{next(iter(fit_params))} was given for the model's fit, and the model is fitted already",
                    remedy="leave it out",
                )
            return {}, {}
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=weight, groups=groups, **fit_params)
            return dict(routed.estimator.fit), dict(routed.splitter.split) if "splitter" in routed else {}
        split_params = {}
        if groups is not None:
            split_params["groups"] = groups
            if has_fit_parameter(self.estimator, "groups") or isinstance(self.estimator, SEARCHES):
                fit_params = {**fit_params, "groups": groups}
        if weight is None:
            return fit_params, split_params
        if has_fit_parameter(self.estimator, "sample_weight"):
            return {**fit_params, "sample_weight": weight}, split_params
        if not any(name.endswith("__sample_weight") for name in fit_params):
            warnings.warn(
                f"{type(self.estimator).__name__}.fit takes no sample_weight, so the weights count for "
                f"{self._weights_count_for} only; to pass them on, enable metadata routing or name the step, as in "
                "step__sample_weight=",
                CalibrationWarning,
                stacklevel=3,
            )
        return fit_params, split_params

    def _judge(
        self,
        targets: Targets,
        y: npt.NDArray[Any],
        forecasts: FloatArray,
        weight: FloatArray | None,
        clusters: RowClusters | None,
        level: float,
    ) -> Verdict:
        """Certify forecasts of rows that neither the model nor its recalibration has seen."""
        outcome: Any = y
        asked: dict[str, Any] = {}
        if targets.is_event:
            outcome, forecasts = y == targets.classes[1], forecasts[:, 1]
        elif targets.multilabel:
            asked = {"multilabel": True}
        else:
            asked = {"classes": targets.classes, "questions": self.questions}
        certificate: Verdict = certify(
            outcome,
            forecasts,
            max_error=self.max_error,
            confidence_level=level,
            method=self.method,
            sample_weight=weight,
            cluster=None if clusters is None else clusters.codes,
            **{**asked, **self._judged_by()},
        )
        return certificate

    def _judged_by(self) -> dict[str, Any]:
        """Return which error the certificate is about, as `certify` takes it."""
        return {}

    def _in_words(self, certificate: Verdict, level: float, known: str, reason: str) -> list[str]:
        """Return what is known of this classifier, how surely, why, and on what it rests."""
        surely = f"With {level_said(level)} confidence"
        one = first_of(certificate)
        if not one.finite_sample:
            surely += ", approximately and for many rows only,"
        whom = "" if one.clusters is None else one.clusters.of_whom.rstrip(",")
        return [
            f"{surely} {known} in the population{whom}: {reason}.",
            *(f"Caution: {caution}" for caution in certificate.cautions),
            f"This assumes that {'; '.join(one.assumptions)}.",
            LOOK_AGAIN,
            *(f"Note: {note}" for note in certificate.notes),
        ]

    def _take_names(self, model: Any) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # an earlier fit may have had names where this one has none
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))


def check_judging(split: Any, method: Any, questions: Any = DEFAULT) -> None:
    """Check how many rows are kept for judging, by which method they judge, and what of several classes."""
    check_choice(questions, "questions", QUESTIONS)
    share = check_number(split, "split")
    if not 0.0 < share < 1.0:
        raise InputError(
            f"split is {split!r}", remedy="it is the share of the rows kept for judging, between 0 and 1, as in 0.5"
        )
    if isinstance(method, str) and method in METHODS and method not in POPULATION_METHODS:
        raise InputError(
            f"method={method!r} speaks of the forecasts at hand, and a classifier makes new ones",
            remedy="use method='adaptive'",
        )
    check_choice(method, "method", tuple(POPULATION_METHODS))


def draw_rows(asked: Asked, split: float, generator: np.random.RandomState) -> tuple[Any, ...]:
    """Draw the rows for judging; return features, labels and positions of the others and of them.

    A plain random split by position: given its size, both parts are independent draws from the population, with any
    seed that was fixed beforehand, because the positions of independent rows say nothing about them. Rows in clusters
    are drawn cluster by cluster.
    """
    X, y, rows = asked.X, asked.y, len(asked.y)
    if asked.clusters is not None:
        fitting, chosen = asked.clusters.drawn(split, generator)
        return take(X, fitting), take(X, chosen), y[fitting], y[chosen], fitting, chosen
    judging = round(split * rows)
    if judging in (0, rows):
        raise InputError(
            f"n_samples={rows} and split={split!r} leave {rows - judging} for fitting and {judging} for judging",
            remedy="both parts need rows",
        )
    return tuple(train_test_split(X, y, np.arange(rows), test_size=judging, random_state=generator))


def rows_of(options: dict[str, Any], positions: npt.NDArray[Any], rows: int) -> dict[str, Any]:
    """Return options of a fit, those with one value per row cut to the rows at the given positions."""
    return {name: take(value, positions) if _has_one_per_row(value, rows) else value for name, value in options.items()}


def check_both_classes(y_fit: npt.NDArray[Any], where: str, remedy: str = "") -> None:
    """Refuse rows for fitting that are all of one class; a label may be on all rows, or on none."""
    if y_fit.ndim == 2:
        return
    distinct = np.unique(y_fit).tolist()
    if len(distinct) == 1:
        raise InputError(
            f"y has one class only, {distinct[0]!r}, in the {y_fit.size:,} rows {where}, and a model needs both",
            remedy=f"collect rows of the other class{remedy}",
        )


def effective_size(weight: FloatArray | None, rows: int, clusters: RowClusters | None = None) -> float:
    """Return how many rows, or clusters, of equal weight would say as much: (sum w)^2 / sum w^2."""
    if weight is not None and not weight.any():
        raise InputError(
            f"is 0 for all {rows:,} rows kept for judging", argument="sample_weight", remedy="at least one must count"
        )
    if clusters is not None:
        weight = np.bincount(clusters.codes, weights=weight).astype(np.float64)
    return float(rows) if weight is None else float(weight.sum() ** 2 / (weight @ weight))


def first_of(certificate: Verdict) -> Certificate:
    """Return the certificate itself, or that of the first of several questions: all rest on the same rows."""
    if isinstance(certificate, Certificate):
        return certificate
    return certificate.certificates[0]


def upper_of(certificate: Verdict) -> float:
    """Return the upper limit that the verdict compares."""
    return certificate.upper if isinstance(certificate, Certificate) else certificate.joint_upper


def of_what(certificate: Verdict, targets: Targets, questions: str) -> str:
    """Say which error of a classifier a certificate is about, where there are several."""
    if targets.count == 2 and not targets.multilabel:
        return ""
    kind = certificate.kind if isinstance(certificate, QuestionCertificates) else questions
    return f" {KINDS[kind].every}"


def error_of(measure: str, every: str) -> str:
    """Begin the sentence on an error of a classifier, of one event or of several questions."""
    return f"the {measure}{every} is, with this classifier," if every else f"the {measure} of this classifier is"


def rows_said(certificate: Verdict) -> str:
    """Say how many rows judged, and in how many clusters."""
    rows, clusters = f"{certificate.rows:,} rows", first_of(certificate).clusters
    return rows if clusters is None else f"{rows} in {counted(clusters.count, 'cluster')}"


def _has_one_per_row(value: Any, rows: int) -> bool:
    if isinstance(value, (str, bytes, dict)):
        return False
    shape = getattr(value, "shape", None)
    if shape is not None:
        return len(shape) > 0 and shape[0] == rows
    return hasattr(value, "__len__") and len(value) == rows

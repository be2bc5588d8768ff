"""Classifiers that come with a guarantee about their calibration, for scikit-learn.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

# scikit-learn has no types, so that its classes count as Any; and it calls the features X.
# mypy: allow-subclassing-any
# ruff: noqa: N803, N806

from __future__ import annotations

import math
import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state, column_or_1d, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from calibrant.certificates import certify
from calibrant.results import Certificate, percent
from calibrant.validation import (
    CalibrationWarning,
    FloatArray,
    check_choice,
    check_confidence,
    check_labels,
    check_number,
    check_weights,
)

try:
    from sklearn.frozen import FrozenEstimator
except ImportError:  # scikit-learn before 1.6 has no frozen models
    FrozenEstimator = None

METHODS = ("adaptive", "normal", "hoeffding", "paper")
FALLBACKS = ("constant",)


class CertifiedClassifier(ClassifierMixin, BaseEstimator):
    """Fit any binary classifier, and keep it only if its calibration error is certified to be small.

    The rows are split at random. One part fits the model, the other judges it, as in `certify`: is its Cutoff
    calibration error at most ``max_error``? If that is certified the model is kept. If not, every forecast is the mean
    outcome of the judging part: useless for telling rows apart, but calibrated. Either way

        P(Cutoff error of the result <= max_error) >= confidence_level

    for every population and every model: Corollary 4.1 of [1]_. Half of 1 - confidence_level is spent on the
    certificate, half on the constant.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
        The model, or a whole pipeline. A model that is already fitted, wrapped in ``FrozenEstimator`` of scikit-learn
        1.6 or later, is judged on all rows; none of them may have been used to fit it.
    max_error : float in [0, 1]
        The largest Cutoff error you can live with, as in `certify`. The mean of m rows is only known up to
        sqrt(ln(2 / delta) / (2 m)) with delta = (1 - confidence_level) / 2, and less than that cannot be asked for.
        (The paper prints ln(1 / delta), but a mean can err to both sides.)
    confidence_level : float from 0.5 to below 1
        Of the whole procedure. The certificate on its own has the level (1 + confidence_level) / 2.
    split : float between 0 and 1
        Share of the rows kept for judging. They are drawn without regard to their classes: balanced parts would no
        longer be independent draws.
    method : {"adaptive", "hoeffding", "normal", "paper"}
        As in `certify`; "normal" makes the guarantee a large-sample one. "exact" is refused, because it speaks of the
        forecasts at hand and not of those to come.
    fallback : {"constant"}
        What replaces a model that is not certified.
    random_state : int, RandomState or None
        Draws the split; an int gives the same one at every fit. Fix it beforehand: whoever tries several seeds and
        picks one has looked several times.

    Attributes
    ----------
    estimator_ : classifier
        The fitted model, kept for inspection even if it is not certified.
    certificate_ : Certificate
        The verdict on the model, with the level (1 + confidence_level) / 2.
    fell_back_ : bool
        Whether the model was replaced by the constant.
    constant_ : float
        The constant forecast for ``classes_[1]``, whether it was needed or not.
    classes_ : array of shape (2,)
        The two classes; the forecasts judged are those of the second.
    guarantee_ : str
        What holds, how surely, and under which assumptions.
    n_features_in_, feature_names_in_
        As the model saw them, where it says so.

    Notes
    -----
    The judging rows must have had no part in the model. So put preprocessing, tuning and recalibration *inside*, as in
    ``CertifiedClassifier(GridSearchCV(make_pipeline(...), ...), ...)``. Inside a pipeline or a search that has seen all
    rows everything works as usual, but the guarantee is lost: the model was chosen by looking at the rows that judge
    it.

    ``sample_weight`` counts for both parts, if the model's ``fit`` accepts it: weights that are fixed, not random, as
    in `certify`.

    References
    ----------
    Corollary 4.1 of [1]_ for ``method="paper"``; with the other methods the same proof holds (docs/theory.md).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(n_samples=4000, flip_y=0.2, random_state=0)
    >>> model = CertifiedClassifier(LogisticRegression(), max_error=0.1, random_state=0).fit(X, y)
    >>> model.fell_back_, model.certificate_.verdict
    (False, 'certified')
    >>> print(model.guarantee_)
    With 95% confidence the Cutoff calibration error of this classifier is at most 0.1 in the population: the model was
    certified on 2,000 rows that had no part in fitting it (adaptive method).
    This assumes that the rows are independent draws from the population; forecaster, limit, method and level were
    fixed without looking at these rows.
    It holds for one fit: to fit again on the same rows and choose among the results is to look again.
    """

    def __init__(
        self,
        estimator: Any,
        *,
        max_error: float,
        confidence_level: float = 0.95,
        split: float = 0.5,
        method: str = "adaptive",
        fallback: str = "constant",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.max_error = max_error
        self.confidence_level = confidence_level
        self.split = split
        self.method = method
        self.fallback = fallback
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit the model on one part of the rows, judge it on the other, and keep it or step back to the constant.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
            Features, as the model takes them.
        y : array-like of shape (n,)
            Labels of two classes.
        sample_weight : array-like of shape (n,), optional
            Weights that are fixed, not random.
        **fit_params
            Passed on to the model's ``fit``, by metadata routing where that is enabled; values with one entry per row
            are split like the rows.

        Returns
        -------
        CertifiedClassifier
            Itself.
        """
        level = self._check_options()
        delta = (1.0 - level) / 2.0
        X, y = indexable(X, _check_classes(y))
        weight = check_weights(sample_weight, y.size)
        fit_params = self._routed(weight, fit_params)
        if self._is_frozen:
            model = self.estimator.fit(X, y)  # fits nothing, but makes sure that the model is fitted
            self._check_possible(y, weight, delta, share=1.0)
        else:
            X_fit, X, y_fit, y, fit_params, chosen = self._parts(X, y, fit_params)
            weight = None if weight is None else weight[chosen]
            self._check_possible(y, weight, delta, share=self.split)
            _check_both_classes(y_fit)
            model = clone(self.estimator).fit(X_fit, y_fit, **fit_params)
        classes = _two_classes(model, y)
        outcome = y == classes[1]
        certificate = certify(
            outcome,
            _forecasts(model, X)[:, 1],
            max_error=self.max_error,
            confidence_level=1.0 - delta,
            method=self.method,
            sample_weight=weight,
        )
        assert isinstance(certificate, Certificate)  # and not one per group
        self.estimator_ = model
        self.classes_ = classes
        self.certificate_ = certificate
        self.fell_back_ = not certificate
        self.constant_ = float(np.average(outcome, weights=weight))
        self.guarantee_ = self._guarantee(level)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # an earlier fit may have had names where this one has none
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the two classes: the model's if it was certified, else the constant ones.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
            Features, as the model takes them.

        Returns
        -------
        array of shape (n, 2)
            Probabilities, in the order of ``classes_``.
        """
        check_is_fitted(self)
        forecasts = _forecasts(self.estimator_, X)
        if not self.fell_back_:
            return forecasts
        # The model is still asked, so that features it cannot read are an error either way.
        return np.tile([1.0 - self.constant_, self.constant_], (len(forecasts), 1))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the more probable class of each row, the first one where both are equally probable.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
            Features, as the model takes them.

        Returns
        -------
        array of shape (n,)
            Labels out of ``classes_``.
        """
        check_is_fitted(self)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def get_metadata_routing(self) -> Any:
        """Say which metadata the two fits ask for: ``sample_weight`` here, and whatever the model requests.

        Returns
        -------
        MetadataRouter
            As scikit-learn describes it.
        """
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags  # scikit-learn before 1.6 has none, and does not call this

        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        read_by_model = get_tags(self.estimator).input_tags
        tags.input_tags.sparse = read_by_model.sparse
        tags.input_tags.allow_nan = read_by_model.allow_nan
        return tags

    def _more_tags(self) -> dict[str, Any]:  # what scikit-learn before 1.6 asks for instead
        return {"binary_only": True}

    @property
    def _is_frozen(self) -> bool:
        return FrozenEstimator is not None and isinstance(self.estimator, FrozenEstimator)

    def _check_options(self) -> float:
        """Check what was set when the classifier was made, and return the confidence level."""
        check_number(self.max_error, "max_error", low=0.0, high=1.0)
        share = check_number(self.split, "split")
        if not 0.0 < share < 1.0:
            raise ValueError(
                f"split is {self.split!r}; it is the share of the rows kept for judging, between 0 and 1, as in 0.5"
            )
        if self.method == "exact":
            raise ValueError(
                "method='exact' speaks of the forecasts at hand, and a classifier makes new ones; use method='adaptive'"
            )
        check_choice(self.method, "method", METHODS)
        check_choice(self.fallback, "fallback", FALLBACKS)
        return check_confidence(self.confidence_level)

    def _routed(self, weight: FloatArray | None, fit_params: dict[str, Any]) -> dict[str, Any]:
        """Return what the model's fit is to be given besides features and labels."""
        if get_config()["enable_metadata_routing"]:
            return dict(process_routing(self, "fit", sample_weight=weight, **fit_params).estimator.fit)
        if weight is None or self._is_frozen:
            return fit_params
        if has_fit_parameter(self.estimator, "sample_weight"):
            return {**fit_params, "sample_weight": weight}
        if not any(name.endswith("__sample_weight") for name in fit_params):
            warnings.warn(
                f"{type(self.estimator).__name__}.fit takes no sample_weight, so the weights count for the certificate "
                "and the constant only; to pass them on, enable metadata routing or name the step, as in "
                "step__sample_weight=",
                CalibrationWarning,
                stacklevel=3,
            )
        return fit_params

    def _parts(self, X: Any, y: npt.NDArray[Any], fit_params: dict[str, Any]) -> tuple[Any, ...]:
        """Draw the rows for judging; return features and labels of both parts, the fit's options, and the rows drawn.

        A plain random split: given its size, both parts are independent draws from the population.
        """
        rows = y.size
        judging = round(self.split * rows)
        if judging in (0, rows):
            raise ValueError(
                f"n_samples={rows} and split={self.split!r} leave {rows - judging} for fitting and {judging} for "
                "judging; both parts need rows"
            )
        by_row = {name: value for name, value in fit_params.items() if _has_one_per_row(value, rows)}
        X_fit, X_judge, y_fit, y_judge, _, chosen, *values = train_test_split(
            X,
            y,
            np.arange(rows),
            *by_row.values(),
            test_size=judging,
            random_state=check_random_state(self.random_state),
        )
        fit_params = {**fit_params, **dict(zip(by_row, values[::2], strict=True))}
        return X_fit, X_judge, y_fit, y_judge, fit_params, chosen

    def _check_possible(self, y: npt.NDArray[Any], weight: FloatArray | None, delta: float, share: float) -> None:
        """Refuse a limit that the constant could not keep to (two-sided Hoeffding); no error is above 1."""
        rows, effective_rows = y.size, _effective_rows(weight, y.size)
        exponent = math.log(2.0 / delta)
        smallest = min(1.0, math.sqrt(exponent / (2.0 * effective_rows)))
        if self.max_error >= smallest:
            return
        remedy = "since no number of rows is enough for 0"
        if self.max_error > 0.0:
            # Weights like these keep the share of rows that they are worth.
            needed = exponent / (2.0 * self.max_error**2) * (rows / effective_rows) / share
            remedy = f"or collect about {math.ceil(needed):,} rows in all"
        worth = "" if math.isclose(rows, effective_rows) else f", worth {effective_rows:,.1f} of equal weight"
        raise ValueError(
            f"max_error is {self.max_error:g}, less than even a constant can guarantee from {rows:,} rows kept for "
            f"judging{worth} at confidence_level={self.confidence_level:g}; allow max_error="
            f"{math.ceil(smallest * 1e4) / 1e4:g} or more, {remedy}"
        )

    def _guarantee(self, level: float) -> str:
        certificate = self.certificate_
        rows = f"{certificate.n:,} rows"
        if not self._is_frozen:  # nobody but the user knows about a frozen one: it is among the assumptions
            rows += " that had no part in fitting it"
        if self.fell_back_:
            reason = (
                f"the model could not be certified on {rows} ({self.method} method), and every forecast is their mean "
                f"outcome, {self.constant_:.4g}"
            )
        else:
            reason = f"the model was certified on {rows} ({self.method} method)"
        surely = f"With {percent(level).replace('.0%', '%')} confidence"
        if not certificate.finite_sample:
            surely += ", approximately and for many rows only,"
        sentences = [
            f"{surely} the Cutoff calibration error of this classifier is at most {self.max_error:g} in the "
            f"population: {reason}.",
            f"This assumes that {'; '.join(certificate.assumptions)}.",
            "It holds for one fit: to fit again on the same rows and choose among the results is to look again.",
            *(f"Note: {note}" for note in certificate.notes),
        ]
        return "\n".join(sentences)


def _check_classes(y: Any) -> npt.NDArray[Any]:
    """Return labels of at most two classes, in one dimension."""
    labels = column_or_1d(y, warn=True)
    distinct, _ = check_labels(labels, "y", len(labels))
    check_classification_targets(labels)
    if len(distinct) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: y has "
            f"{len(distinct)} classes; judge one of them at a time, as in y == {distinct[0]!r}"
        )
    return np.asarray(labels)


def _check_both_classes(y_fit: npt.NDArray[Any]) -> None:
    distinct = np.unique(y_fit).tolist()
    if len(distinct) == 1:
        raise ValueError(
            f"y has one class only, {distinct[0]!r}, in the {y_fit.size:,} rows drawn for fitting, and a model needs "
            "both; collect rows of the other class, or keep fewer for judging with a smaller split"
        )


def _two_classes(model: Any, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the classes of a fitted model, after making sure that they are two and cover the labels."""
    name = type(model).__name__
    if not hasattr(model, "classes_"):
        raise ValueError(f"{name} has no classes_ after fitting; pass a classifier")
    classes = np.asarray(model.classes_)
    if classes.shape != (2,):
        raise ValueError(f"{name} was fitted to {len(classes)} classes; calibration here is about two")
    unknown = [label for label in np.unique(y).tolist() if label not in classes.tolist()]
    if unknown:
        raise ValueError(f"y holds {unknown[0]!r}, which {name} was not fitted to; its classes are {classes.tolist()}")
    return classes


def _forecasts(model: Any, X: Any) -> FloatArray:
    """Return the probabilities of both classes."""
    # Asked after fitting: some models know only then.
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"{type(model).__name__} has no predict_proba, and only probabilities can be calibrated; choose options "
            "with which it has, or wrap it in sklearn.calibration.CalibratedClassifierCV"
        )
    forecasts = np.asarray(model.predict_proba(X))
    if forecasts.ndim != 2 or forecasts.shape[1] != 2:
        raise ValueError(
            f"{type(model).__name__}.predict_proba returned shape {forecasts.shape}; one column per class is needed"
        )
    return forecasts


def _effective_rows(weight: FloatArray | None, rows: int) -> float:
    """Return how many rows of equal weight would say as much: (sum w)^2 / sum w^2."""
    if weight is None:
        return float(rows)
    if not weight.any():
        raise ValueError(f"sample_weight is 0 for all {rows:,} rows kept for judging; at least one must count")
    return float(weight.sum() ** 2 / (weight @ weight))


def _has_one_per_row(value: Any, rows: int) -> bool:
    if isinstance(value, (str, bytes, dict)):
        return False
    shape = getattr(value, "shape", None)
    if shape is not None:
        return len(shape) > 0 and shape[0] == rows
    return hasattr(value, "__len__") and len(value) == rows

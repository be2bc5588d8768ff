"""Classifiers that come with a guarantee about their calibration, for scikit-learn.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

# scikit-learn has no types, so that its classes count as Any.
# mypy: allow-subclassing-any

from __future__ import annotations

import math
import warnings
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.utils import check_random_state, column_or_1d, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from calibrant.certificates import certify
from calibrant.recalibration import GuardedRecalibrator, Recalibrator
from calibrant.results.base import level_said
from calibrant.results.certificates import Certificate
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
LOOK_AGAIN = "It holds for one fit: to fit again on the same rows and choose among the results is to look again."
FEWER_FOR_JUDGING = ", or keep fewer for judging with a smaller split"


class _AroundModel(ClassifierMixin, BaseEstimator):
    """What the classifiers here share: a model inside, two classes, and metadata for the model's fit."""

    _weights_count_for: ClassVar[str]

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
        if self._is_given:
            return router
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

    @property
    def _is_given(self) -> bool:
        """Whether the model comes fitted and is used as it is."""
        return self._is_frozen

    def _routed(self, weight: FloatArray | None, fit_params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the model's fit and the splitter of rows are to be given besides features and labels."""
        if self._is_given:
            if fit_params:
                raise ValueError(
                    f"{next(iter(fit_params))} was given for the model's fit, and the model is fitted already; leave "
                    "it out"
                )
            return {}, {}
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=weight, **fit_params)
            return dict(routed.estimator.fit), dict(routed.splitter.split) if "splitter" in routed else {}
        if weight is None:
            return fit_params, {}
        if has_fit_parameter(self.estimator, "sample_weight"):
            return {**fit_params, "sample_weight": weight}, {}
        if not any(name.endswith("__sample_weight") for name in fit_params):
            warnings.warn(
                f"{type(self.estimator).__name__}.fit takes no sample_weight, so the weights count for "
                f"{self._weights_count_for} only; to pass them on, enable metadata routing or name the step, as in "
                "step__sample_weight=",
                CalibrationWarning,
                stacklevel=3,
            )
        return fit_params, {}

    def _judge(
        self, outcome: npt.NDArray[Any], forecast: FloatArray, weight: FloatArray | None, level: float
    ) -> Certificate:
        """Certify forecasts of rows that neither the model nor its recalibration has seen."""
        return certify(
            outcome,
            forecast,
            max_error=self.max_error,
            confidence_level=level,
            method=self.method,
            sample_weight=weight,
        )

    def _take_names(self, model: Any) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # an earlier fit may have had names where this one has none
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))


class CertifiedClassifier(_AroundModel):
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

    _weights_count_for = "the certificate and the constant"

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
        fit_params, _ = self._routed(weight, fit_params)
        if self._is_given:
            model = self.estimator.fit(X, y)  # fits nothing, but makes sure that the model is fitted
            self._check_possible(y, weight, delta, share=1.0)
        else:
            X_fit, X, y_fit, y, kept, chosen = _draw_rows(X, y, self.split, check_random_state(self.random_state))
            weight = None if weight is None else weight[chosen]
            self._check_possible(y, weight, delta, share=self.split)
            _check_both_classes(y_fit, "drawn for fitting", FEWER_FOR_JUDGING)
            model = clone(self.estimator).fit(X_fit, y_fit, **_rows_of(fit_params, kept, kept.size + chosen.size))
        classes = two_classes(model, y)
        outcome = y == classes[1]
        certificate = self._judge(outcome, class_forecasts(model, X)[:, 1], weight, 1.0 - delta)
        self.estimator_ = model
        self.classes_ = classes
        self.certificate_ = certificate
        self.fell_back_ = not certificate
        self.constant_ = float(np.average(outcome, weights=weight))
        self.guarantee_ = self._guarantee(level)
        self._take_names(model)
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
        forecasts = class_forecasts(self.estimator_, X)
        if not self.fell_back_:
            return forecasts
        # The model is still asked, so that features it cannot read are an error either way.
        return np.tile([1.0 - self.constant_, self.constant_], (len(forecasts), 1))

    def _check_options(self) -> float:
        """Check what was set when the classifier was made, and return the confidence level."""
        check_number(self.max_error, "max_error", low=0.0, high=1.0)
        _check_judging(self.split, self.method)
        check_choice(self.fallback, "fallback", FALLBACKS)
        return check_confidence(self.confidence_level)

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
        surely = f"With {level_said(level)} confidence"
        if not certificate.finite_sample:
            surely += ", approximately and for many rows only,"
        sentences = [
            f"{surely} the Cutoff calibration error of this classifier is at most {self.max_error:g} in the "
            f"population: {reason}.",
            f"This assumes that {'; '.join(certificate.assumptions)}.",
            LOOK_AGAIN,
            *(f"Note: {note}" for note in certificate.notes),
        ]
        return "\n".join(sentences)


class RecalibratedClassifier(_AroundModel):
    """Fit any binary classifier and repair its calibration with a recalibrator, without wasting rows on it.

    A recalibrator must learn from forecasts of rows that the model has not seen. Cross-fitting gets them from the
    same rows: they are cut into ``cv`` parts, a copy of the model fitted on the others forecasts each part, and all
    these forecasts together fit one recalibrator. It is then put behind one model that is fitted on all rows (what
    scikit-learn calls ``ensemble=False``: one model and one map to store, explain and carry elsewhere, instead of one
    pair per part whose forecasts are averaged). With a model that is fitted already, all rows fit the recalibrator.

    **What is guaranteed.** Cross-fitted forecasts are not those of one fixed forecaster: each part has a model of its
    own, and the map ends up behind yet another. So the guarantee of the recalibrator does not carry over, and only
    rows kept aside from everything can tell how well the result is calibrated. Ask for that with ``max_error``. With a
    model fitted beforehand on other rows the recalibrator's own guarantee holds. ``guarantee_`` says in words which
    case this is.

    Parameters
    ----------
    estimator : classifier with ``predict_proba`` or ``decision_function``
        The model, or a whole pipeline. A model wrapped in ``FrozenEstimator`` of scikit-learn 1.6 or later counts as
        fitted, whatever ``cv`` says.
    recalibrator : Recalibrator, optional
        By default `GuardedRecalibrator`, which keeps Platt scaling unless it is visibly off and then steps back to
        isotonic regression. One with ``input="score"`` reads what ``decision_function`` returns, or the probabilities
        where there is none; the others read ``predict_proba``. A model that has no ``predict_proba`` needs the first
        kind, and the default is then of it.
    cv : int, splitter, list of pairs, or "prefit"
        Into how many parts the rows are cut, at random and with the classes in equal shares; or a splitter of
        scikit-learn, for instance one that keeps groups together or respects time; or the positions of the rows that
        fit and that are forecast, part by part. A row may be in no part, and then has no say in the recalibration, but
        not in two, and no model may forecast rows that it was fitted on. "prefit": ``estimator`` is fitted already and
        is used as it is; none of the rows may have been used to fit it.
    max_error : float in [0, 1], optional
        Keep rows aside and judge the result on them, as in `certify`: is its Cutoff error at most this?
    confidence_level : float from 0.5 to below 1
        Of the certificate, or of the recalibrator's guarantee.
    method : {"adaptive", "hoeffding", "normal", "paper"}
        Of the certificate, as in `certify`. "exact" is refused, because it speaks of the forecasts at hand and not of
        those to come.
    split : float between 0 and 1
        Share of the rows kept aside, drawn without regard to their classes; without ``max_error`` it has no effect.
    random_state : int, RandomState or None
        Draws the rows kept aside and the parts; an int gives the same ones at every fit.

    Attributes
    ----------
    estimator_ : classifier
        The fitted model.
    recalibrator_ : Recalibrator
        The fitted recalibrator; ``recalibrator_.to_sql`` and ``to_json`` carry it elsewhere. What it says about its
        own guarantee is about the forecasts it was fitted to: see above.
    response_method_ : str
        What the recalibrator reads: "predict_proba" or "decision_function".
    classes_ : array of shape (2,)
        The two classes; the forecasts recalibrated are those of the second.
    certificate_ : Certificate or None
        The verdict on the result, from the rows kept aside; None without ``max_error``. Nothing is replaced when it is
        not "certified": for that, put this classifier inside a `CertifiedClassifier`.
    guarantee_ : str
        What holds, how surely, and under which assumptions.
    n_features_in_, feature_names_in_
        As the model saw them, where it says so.

    Notes
    -----
    ``sample_weight`` counts for the model (if its ``fit`` accepts it), the recalibrator and the certificate. ``cv=5``
    fits six models. ``clone``, and so a search or cross-validation around, turns a fitted model into an unfitted one:
    there, use ``FrozenEstimator`` and not "prefit". A certificate means something only when nothing around the
    classifier has chosen it by looking at its rows.

    References
    ----------
    Section 5 of [1]_ for the guarantees of recalibrators; `certify` for the certificate.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(n_samples=4000, n_redundant=10, flip_y=0.2, random_state=0)
    >>> model = RecalibratedClassifier(GaussianNB(), max_error=0.1, random_state=0).fit(X, y)
    >>> model.certificate_.verdict
    'certified'
    """

    _weights_count_for = "the recalibration and the certificate"

    def __init__(
        self,
        estimator: Any,
        recalibrator: Any = None,
        *,
        cv: Any = 5,
        max_error: float | None = None,
        confidence_level: float = 0.95,
        method: str = "adaptive",
        split: float = 0.25,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv
        self.max_error = max_error
        self.confidence_level = confidence_level
        self.method = method
        self.split = split
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit the model and its recalibration, and certify the result if that was asked for.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
            Features, as the model takes them.
        y : array-like of shape (n,)
            Labels of two classes.
        sample_weight : array-like of shape (n,), optional
            Weights that are fixed, not random.
        **fit_params
            Passed on to the model's ``fit``, by metadata routing where that is enabled (then also to the splitter's
            ``split``, groups for instance); values with one entry per row are split like the rows.

        Returns
        -------
        RecalibratedClassifier
            Itself.
        """
        level = self._check_options()
        X, y = indexable(X, _check_classes(y))
        rows = y.size
        weight = check_weights(sample_weight, rows)
        fit_params, split_params = self._routed(weight, fit_params)
        generator = check_random_state(self.random_state)
        X_fit, y_fit, kept = X, y, np.arange(rows)
        where, remedy = "for fitting", ""
        if self.max_error is not None:
            X_fit, X_judge, y_fit, y_judge, kept, chosen = _draw_rows(X, y, self.split, generator)
            fit_params, split_params = _rows_of(fit_params, kept, rows), _rows_of(split_params, kept, rows)
            where, remedy = "drawn for fitting", FEWER_FOR_JUDGING
        if self._is_given:
            model = self._given_model(X_fit, y_fit)
        else:
            _check_both_classes(y_fit, where, remedy)
            folds = self._folds(X_fit, y_fit, kept, rows, generator, split_params)
            model = clone(self.estimator).fit(X_fit, y_fit, **fit_params)
        classes = two_classes(model, y)
        recalibrator, response_method = self._chosen(model)
        if self._is_given:
            response = _response(model, X_fit, response_method)
            forecast_rows = np.arange(kept.size)
        else:
            response, forecast_rows = self._cross_fitted(X_fit, y_fit, folds, response_method, fit_params)
        recalibrator.fit(
            response,
            y_fit[forecast_rows] == classes[1],
            sample_weight=None if weight is None else weight[kept[forecast_rows]],
        )
        certificate: Certificate | None = None
        if self.max_error is not None:
            judge_weight = None if weight is None else weight[chosen]
            _effective_rows(judge_weight, y_judge.size)  # refuses weights that are all zero
            judged = recalibrator.predict(_response(model, X_judge, response_method))
            certificate = self._judge(y_judge == classes[1], judged, judge_weight, level)
        self.estimator_ = model
        self.recalibrator_ = recalibrator
        self.response_method_ = response_method
        self.classes_ = classes
        self.certificate_ = certificate
        self.guarantee_ = self._guarantee(level, weighted=weight is not None)
        self._take_names(model)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the recalibrated probabilities of the two classes.

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
        forecast = self.recalibrator_.predict(_response(self.estimator_, X, self.response_method_))
        return np.stack([1.0 - forecast, forecast], axis=1)

    def get_metadata_routing(self) -> Any:
        """Say which metadata the fits and the splitter ask for: ``sample_weight`` here, and whatever they request.

        Returns
        -------
        MetadataRouter
            As scikit-learn describes it.
        """
        router = super().get_metadata_routing()
        if not self._is_given and hasattr(self.cv, "get_metadata_routing"):
            router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        return router

    @property
    def _is_given(self) -> bool:
        return self._is_frozen or (isinstance(self.cv, str) and self.cv == "prefit")

    def _check_options(self) -> float:
        """Check what was set when the classifier was made, and return the confidence level."""
        if self.max_error is not None:
            check_number(self.max_error, "max_error", low=0.0, high=1.0)
        _check_judging(self.split, self.method)
        if self.recalibrator is not None and not isinstance(self.recalibrator, Recalibrator):
            raise ValueError(
                f"recalibrator is {self.recalibrator!r}, not a recalibrator of calibrant; pass one, as in "
                "IsotonicRecalibrator(), or None for the guarded default"
            )
        if self.recalibrator is not None and self.recalibrator.pos_label is not None:
            raise ValueError(
                f"recalibrator has pos_label={self.recalibrator.pos_label!r}, and the classes are known from y: the "
                "second in sorted order counts as the event; leave pos_label out"
            )
        if isinstance(self.cv, str):
            check_choice(self.cv, "cv", ("prefit",))
        elif not (hasattr(self.cv, "split") or isinstance(self.cv, (list, tuple))):
            check_number(self.cv, "cv", low=2, whole=True)
        return check_confidence(self.confidence_level)

    def _given_model(self, X: Any, y: npt.NDArray[Any]) -> Any:
        if self._is_frozen:
            return self.estimator.fit(X, y)  # fits nothing, but makes sure that the model is fitted
        check_is_fitted(self.estimator)
        return self.estimator

    def _folds(
        self,
        X: Any,
        y: npt.NDArray[Any],
        kept: npt.NDArray[Any],
        rows: int,
        generator: np.random.RandomState,
        split_params: dict[str, Any],
    ) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """Return positions of the rows that fit a model, and of those that it forecasts, for each part."""
        if hasattr(self.cv, "split"):
            return list(self.cv.split(X, y, **split_params))
        if isinstance(self.cv, (list, tuple)):
            # They speak of all rows, and those kept aside are not there any more.
            number = np.full(rows, -1)
            number[kept] = np.arange(kept.size)
            listed = [[number[positions] for positions in pair] for pair in self.cv]
            return [(others[others >= 0], part[part >= 0]) for others, part in listed]
        labels, counts = (values.tolist() for values in np.unique(y, return_counts=True))
        rarer = counts.index(min(counts))
        if counts[rarer] < self.cv:
            fewer = f"use cv={counts[rarer]} or less" if counts[rarer] > 1 else "collect more"
            raise ValueError(
                f"cv is {self.cv}, and only {counts[rarer]} of the {y.size:,} rows for fitting are of class "
                f"{labels[rarer]!r}, too few for one in every part; {fewer}"
            )
        return list(StratifiedKFold(int(self.cv), shuffle=True, random_state=generator).split(X, y))

    def _chosen(self, model: Any) -> tuple[Recalibrator, str]:
        """Return an unfitted recalibrator and the method of the model that it reads."""
        name = type(model).__name__
        # Asked after fitting: some models know only then.
        has_probabilities, has_scores = hasattr(model, "predict_proba"), hasattr(model, "decision_function")
        if not (has_probabilities or has_scores):
            raise ValueError(
                f"{name} has neither predict_proba nor decision_function, so there is nothing to recalibrate; pass a "
                "classifier that has one of them"
            )
        recalibrator: Recalibrator
        if self.recalibrator is not None:
            recalibrator = clone(self.recalibrator)
        else:
            recalibrator = GuardedRecalibrator(input="probability" if has_probabilities else "score")
        if recalibrator.input == "score":
            return recalibrator, "decision_function" if has_scores else "predict_proba"
        if not has_probabilities:
            raise ValueError(
                f"{name} has a decision_function but no predict_proba, and {recalibrator!r} reads probabilities; pass "
                "one with input='score', as in GuardedRecalibrator(input='score')"
            )
        return recalibrator, "predict_proba"

    def _cross_fitted(
        self,
        X: Any,
        y: npt.NDArray[Any],
        folds: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]],
        response_method: str,
        fit_params: dict[str, Any],
    ) -> tuple[FloatArray, npt.NDArray[Any]]:
        """Return forecasts or scores by models that have not seen the row, and the positions of the rows."""
        responses, positions = [], []
        times_forecast = np.zeros(y.size, dtype=np.int64)
        for number, (others, part) in enumerate(folds, start=1):
            _check_both_classes(y[others], f"that cv leaves for fitting the model of part {number}")
            seen = np.intersect1d(others, part)
            if seen.size:
                raise ValueError(
                    f"cv has row {seen[0]} forecast by a model that was fitted on it, in part {number}; pass a "
                    "splitter that keeps them apart, such as StratifiedKFold"
                )
            model = clone(self.estimator).fit(_take(X, others), y[others], **_rows_of(fit_params, others, y.size))
            responses.append(_response(model, _take(X, part), response_method))
            positions.append(part)
            times_forecast[part] += 1
        if (times_forecast > 1).any():
            row = int(np.flatnonzero(times_forecast > 1)[0])
            raise ValueError(
                f"cv puts row {row} into {times_forecast[row]} parts, and it would count as many times; pass a "
                "splitter that puts every row into one, such as StratifiedKFold"
            )
        return np.concatenate(responses), np.concatenate(positions)

    def _guarantee(self, level: float, *, weighted: bool) -> str:
        certificate = self.certificate_
        sentences = [] if certificate is None else self._certified(certificate, level)
        if not self._is_given:
            so = "The certificate alone counts"
            if certificate is None:
                so = "Nothing is guaranteed about the calibration of this classifier"
            sentences.append(
                f"{so}: the recalibration was fitted to forecasts of several models, each fitted on part of the rows, "
                "and is applied to another, fitted on all. They are not one fixed forecaster, so the recalibrator's "
                "own guarantee does not carry over."
            )
            if certificate is None:
                sentences.append("A certificate needs rows kept aside: set max_error.")
        elif weighted:
            sentences.append("The recalibration on its own guarantees nothing: no guarantee covers weighted rows.")
        else:
            also = "" if certificate is None else "On its own, from the rows that fitted the recalibration: "
            sentences.append(f"{also}{self.recalibrator_.guarantee(level)}")
            sentences.append("The model must have been fitted beforehand, on none of these rows.")
        return "\n".join(sentences)

    def _certified(self, certificate: Certificate, level: float) -> list[str]:
        """Return what the certificate says, and on what it rests."""
        surely = f"With {level_said(level)} confidence"
        if not certificate.finite_sample:
            surely += ", approximately and for many rows only,"
        fitted = "the recalibration" if self._is_given else "the model or its recalibration"
        if certificate:
            limit, verdict = f"at most {self.max_error:g}", "it was certified"
        elif certificate.verdict == "refuted":
            limit, verdict = f"at least {certificate.lower:.4g}", f"at most {self.max_error:g} was refuted"
        else:
            limit, verdict = f"at most {certificate.upper:.4g}", f"at most {self.max_error:g} could not be decided"
        return [
            f"{surely} the Cutoff calibration error of this classifier is {limit} in the population: {verdict} on "
            f"{certificate.n:,} rows that had no part in fitting {fitted} ({self.method} method).",
            f"This assumes that {'; '.join(certificate.assumptions)}.",
            LOOK_AGAIN,
            *(f"Note: {note}" for note in certificate.notes),
        ]


def _check_judging(split: Any, method: Any) -> None:
    """Check how many rows are kept for judging, and by which method they judge."""
    share = check_number(split, "split")
    if not 0.0 < share < 1.0:
        raise ValueError(
            f"split is {split!r}; it is the share of the rows kept for judging, between 0 and 1, as in 0.5"
        )
    if method == "exact":
        raise ValueError(
            "method='exact' speaks of the forecasts at hand, and a classifier makes new ones; use method='adaptive'"
        )
    check_choice(method, "method", METHODS)


def _draw_rows(X: Any, y: npt.NDArray[Any], split: float, generator: np.random.RandomState) -> tuple[Any, ...]:
    """Draw the rows for judging; return features, labels and positions of the others and of them.

    A plain random split: given its size, both parts are independent draws from the population.
    """
    rows = y.size
    judging = round(split * rows)
    if judging in (0, rows):
        raise ValueError(
            f"n_samples={rows} and split={split!r} leave {rows - judging} for fitting and {judging} for judging; both "
            "parts need rows"
        )
    return tuple(train_test_split(X, y, np.arange(rows), test_size=judging, random_state=generator))


def _rows_of(options: dict[str, Any], positions: npt.NDArray[Any], rows: int) -> dict[str, Any]:
    """Return options of a fit, those with one value per row cut to the rows at the given positions."""
    return {
        name: _take(value, positions) if _has_one_per_row(value, rows) else value for name, value in options.items()
    }


def _take(values: Any, positions: npt.NDArray[Any]) -> Any:
    if hasattr(values, "iloc"):
        return values.iloc[positions]
    return values[positions] if hasattr(values, "shape") else [values[position] for position in positions]


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


def _check_both_classes(y_fit: npt.NDArray[Any], where: str, remedy: str = "") -> None:
    distinct = np.unique(y_fit).tolist()
    if len(distinct) == 1:
        raise ValueError(
            f"y has one class only, {distinct[0]!r}, in the {y_fit.size:,} rows {where}, and a model needs both; "
            f"collect rows of the other class{remedy}"
        )


def two_classes(model: Any, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
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


def event_forecasts(model: Any, X: Any, y: Any, pos_label: Any = None) -> tuple[FloatArray, Any]:
    """Return the forecasts of the class that counts as the event, the second one unless named, and that class."""
    classes = two_classes(model, y).tolist()
    event = classes[1] if pos_label is None else pos_label
    if event not in classes:
        raise ValueError(f"pos_label is {event!r}, which is not a class of the estimator; its classes are {classes}")
    return class_forecasts(model, X)[:, classes.index(event)], event


def class_forecasts(model: Any, X: Any) -> FloatArray:
    """Return the probabilities of both classes."""
    # Asked after fitting: some models know only then.
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"{type(model).__name__} has no predict_proba, and only probabilities can be calibrated; choose options "
            "with which it has, or wrap it in RecalibratedClassifier"
        )
    forecasts = np.asarray(model.predict_proba(X))
    if forecasts.ndim != 2 or forecasts.shape[1] != 2:
        raise ValueError(
            f"{type(model).__name__}.predict_proba returned shape {forecasts.shape}; one column per class is needed"
        )
    return forecasts


def _response(model: Any, X: Any, response_method: str) -> FloatArray:
    """Return the probability, or the score, of the second class."""
    if response_method == "predict_proba":
        return class_forecasts(model, X)[:, 1]
    scores = np.asarray(model.decision_function(X))
    if scores.ndim != 1:
        raise ValueError(
            f"{type(model).__name__}.decision_function returned shape {scores.shape}; one score per row is needed"
        )
    return scores


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

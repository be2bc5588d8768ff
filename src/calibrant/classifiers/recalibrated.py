"""The classifier whose forecasts are repaired by a recalibrator.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import MethodMapping
from sklearn.utils.validation import check_is_fitted

from calibrant.certificates.methods.registry import Method
from calibrant.classifiers.base import (
    FEWER_FOR_JUDGING,
    AroundModel,
    Asked,
    Verdict,
    check_both_classes,
    check_judging,
    draw_rows,
    effective_size,
    error_of,
    of_what,
    rows_of,
    rows_said,
    upper_of,
)
from calibrant.classifiers.clusters import LEAST_FOR_JUDGING, Folds, RowClusters
from calibrant.classifiers.targets import Targets, targets_of
from calibrant.core.errors import InputError
from calibrant.core.types import FloatArray
from calibrant.core.words import rounded_up, shown
from calibrant.repairs.class_recalibrator import ClassRecalibrator
from calibrant.repairs.guard import GuardedRecalibrator
from calibrant.repairs.one_vs_rest import OneVsRestRecalibrator
from calibrant.repairs.recalibrator import InputKind, Recalibrator
from calibrant.rows.checks import check_choice, check_confidence, check_number
from calibrant.rows.classes import QuestionsAsked
from calibrant.rows.models import take


class RecalibratedClassifier(AroundModel):
    """Fit any classifier and repair its calibration with a recalibrator, without wasting rows on it.

    A recalibrator must learn from forecasts of rows that the model has not seen. Cross-fitting gets them from the
    same rows: they are cut into ``cv`` parts, a copy of the model fitted on the others forecasts each part, and all
    these forecasts together fit one recalibrator. It is then put behind one model that is fitted on all rows (what
    scikit-learn calls ``ensemble=False``: one model and one map to store, explain and carry elsewhere, instead of one
    pair per part whose forecasts are averaged). With a model that is fitted already, all rows fit the recalibrator.

    **What is guaranteed.** Cross-fitted forecasts are not those of one fixed forecaster: each part has a model of its
    own, and the map ends up behind yet another. So the guarantee of the recalibrator does not carry over, and only
    rows kept aside from everything can tell how well the result is calibrated. Ask for that with ``max_error``. With a
    model fitted beforehand on other rows the recalibrator's own guarantee holds: for independent rows, or with
    ``groups`` for the forecasts of these clusters. ``guarantee_`` says in words which case this is.

    **Several classes, several labels.** With three classes or more, a recalibrator of events is put on every class
    against the others, as `OneVsRestRecalibrator` does it; those made for classes, `ClassTemperatureRecalibrator` for
    one, read all columns. Where a row may have several labels, given as columns of 0 and 1, every label has a map of
    its own.

    Parameters
    ----------
    estimator : classifier with ``predict_proba`` or ``decision_function``
        The model, or a whole pipeline. A model wrapped in ``FrozenEstimator`` of scikit-learn 1.6 or later counts as
        fitted, whatever ``cv`` says.
    recalibrator : Recalibrator or ClassRecalibrator, optional
        By default `GuardedRecalibrator`, which keeps Platt scaling unless it is visibly off and then steps back to
        isotonic regression. One with ``input_kind="score"`` reads what ``decision_function`` returns, or the
        probabilities where there is none; the others read ``predict_proba``. A model that has no ``predict_proba``
        needs the first kind, and the default is then of it.
    cv : int, splitter, list of pairs, or "prefit"
        Into how many parts the rows are cut, at random and with the classes in equal shares, or cluster by cluster
        where ``fit`` gets ``groups``; or a splitter of scikit-learn, for instance one that respects time; or the
        positions of the rows that fit and that are forecast, part by part. A row may be in no part, and then has no
        say in the recalibration, but not in two, and no model may forecast rows that it was fitted on, or other rows
        of their clusters. "prefit": ``estimator`` is fitted already and is used as it is; none of the rows may have
        been used to fit it.
    max_error : float in [0, 1], optional
        Keep rows aside and judge the result on them, as in `certify`: is its Cutoff error at most this?
    questions : {"confidence", "classwise", "top_label", "pairs", "subsets"}
        What the certificate is about with three classes or more, as in `certify`. It has no effect on two classes, nor
        where a row may have several labels: there every label is judged.
    confidence_level : float from 0.5 to below 1
        Of the certificate, or of the recalibrator's guarantee.
    method : {"adaptive", "hoeffding", "normal", "paper"}
        Of the certificate, as in `certify`. "exact" is refused, because it speaks of the forecasts at hand and not of
        those to come.
    split : float between 0 and 1
        Share of the rows, or of the clusters, kept aside, drawn without regard to their classes; without ``max_error``
        it has no effect.
    random_state : int, RandomState or None
        Draws the rows kept aside and the parts; an int gives the same ones at every fit. Clusters are drawn by what
        they hold, whatever their order and names.

    Attributes
    ----------
    estimator_ : classifier
        The fitted model.
    recalibrator_ : Recalibrator
        The fitted recalibrator; ``recalibrator_.to_sql`` and ``to_json`` carry it elsewhere. What it says about its
        own guarantee is about the forecasts it was fitted to: see above.
    response_method_ : str
        What the recalibrator reads: "predict_proba" or "decision_function".
    classes_ : array of shape (K,)
        The classes; of two, the forecasts recalibrated are those of the second. For several labels their numbers.
    certificate_ : Certificate, QuestionCertificates or None
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
        method: Method = "adaptive",
        split: float = 0.25,
        questions: QuestionsAsked = "confidence",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv
        self.max_error = max_error
        self.confidence_level = confidence_level
        self.method = method
        self.split = split
        self.questions = questions
        self.random_state = random_state

    def _fit(self, asked: Asked) -> None:
        X, y, weight, clusters, rows = asked.X, asked.y, asked.weight, asked.clusters, len(asked.y)
        fit_params, split_params = asked.fit_params, asked.split_params
        generator = check_random_state(self.random_state)
        X_fit, y_fit, kept = X, y, np.arange(rows)
        where, remedy = "for fitting", ""
        judging = folds = None
        if self.max_error is not None:
            X_fit, X_judge, y_fit, y_judge, kept, chosen = draw_rows(asked, self.split, generator)
            judging = X_judge, y_judge, chosen
            fit_params, split_params = rows_of(fit_params, kept, rows), rows_of(split_params, kept, rows)
            where, remedy = "drawn for fitting", FEWER_FOR_JUDGING
            clusters = None if clusters is None else clusters.take(kept)
        if self._is_given:
            model = self._given_model(X_fit, y_fit)
        else:
            check_both_classes(y_fit, where, remedy)
            folds = self._folds(X_fit, y_fit, clusters, kept, rows, generator, split_params)
            model = clone(self.estimator).fit(X_fit, y_fit, **fit_params)
        targets = targets_of(model, y, as_columns=isinstance(self.recalibrator, ClassRecalibrator))
        recalibrator, response_method = self._chosen(model, targets)
        if folds is None:
            response = targets.response(model, X_fit, response_method)
            forecast_rows = np.arange(kept.size)
        else:
            response, forecast_rows = self._cross_fitted(X_fit, y_fit, folds, targets, response_method, fit_params)
        happened = y_fit[forecast_rows]
        recalibrator.fit(
            response,
            happened == targets.classes[1] if targets.is_event else happened,
            sample_weight=None if weight is None else weight[kept[forecast_rows]],
        )
        certificate: Verdict | None = None
        if judging is not None:
            X_judge, y_judge, chosen = judging
            judge_weight = None if weight is None else weight[chosen]
            effective_size(judge_weight, len(y_judge))  # refuses weights that are all zero
            judged = _repaired(recalibrator, targets.response(model, X_judge, response_method))
            among = None if asked.clusters is None else asked.clusters.take(chosen)
            certificate = self._judge(targets_of(model, y), y_judge, judged, judge_weight, among, asked.level)
        self.estimator_ = model
        self._targets = targets
        self.recalibrator_ = recalibrator
        self.response_method_ = response_method
        self.classes_ = targets.classes
        self.certificate_: Any = certificate
        self.guarantee_ = self._guarantee(asked.level, clusters, weighted=weight is not None)
        self._take_names(model)

    def _probabilities(self, X: Any) -> FloatArray:
        return _repaired(self.recalibrator_, self._targets.response(self.estimator_, X, self.response_method_))

    def get_metadata_routing(self) -> Any:
        """Say which metadata the fits and the splitter ask for: weights and groups here, and whatever they request.

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
        if self.max_error is not None:
            check_number(self.max_error, "max_error", low=0.0, high=1.0)
        check_judging(self.split, self.method, self.questions)
        if self.recalibrator is not None and not isinstance(self.recalibrator, (Recalibrator, ClassRecalibrator)):
            raise InputError(
                f"recalibrator is {self.recalibrator!r}, not a recalibrator of calibrant",
                remedy="pass one, as in IsotonicRecalibrator(), or None for the guarded default",
            )
        if isinstance(self.recalibrator, ClassRecalibrator) and self.recalibrator.classes is not None:
            raise InputError(
                f"recalibrator has classes={self.recalibrator.classes!r}, and the classes are known from the model",
                remedy="leave classes out",
            )
        if isinstance(self.recalibrator, Recalibrator) and self.recalibrator.pos_label is not None:
            raise InputError(
                f"recalibrator has pos_label={self.recalibrator.pos_label!r}, and the classes are known from y: the "
                "second in sorted order counts as the event",
                remedy="leave pos_label out",
            )
        if isinstance(self.cv, str):
            check_choice(self.cv, "cv", ("prefit",))
        elif not (hasattr(self.cv, "split") or isinstance(self.cv, (list, tuple))):
            check_number(self.cv, "cv", low=2, whole=True)
        return check_confidence(self.confidence_level)

    def _check_clusters(self, level: float) -> None:
        if self.max_error is not None:
            super()._check_clusters(level)

    def _given_model(self, X: Any, y: npt.NDArray[Any]) -> Any:
        if self._is_frozen:
            return self.estimator.fit(X, y)  # fits nothing, but makes sure that the model is fitted
        check_is_fitted(self.estimator)
        return self.estimator

    def _folds(
        self,
        X: Any,
        y: npt.NDArray[Any],
        clusters: RowClusters | None,
        kept: npt.NDArray[Any],
        rows: int,
        generator: np.random.RandomState,
        split_params: dict[str, Any],
    ) -> Folds:
        """Return positions of the rows that fit a model, and of those that it forecasts, for each part."""
        found: Folds | None = None
        if hasattr(self.cv, "split"):
            found = list(self.cv.split(X, y, **split_params))
        elif isinstance(self.cv, (list, tuple)):
            # They speak of all rows, and those kept aside are not there any more.
            number = np.full(rows, -1)
            number[kept] = np.arange(kept.size)
            listed = [[number[positions] for positions in pair] for pair in self.cv]
            found = [(others[others >= 0], part[part >= 0]) for others, part in listed]
        elif clusters is not None:
            return clusters.folds(int(self.cv), generator)
        if found is None:
            return self._stratified(X, y, generator)
        if clusters is not None:
            for place, (others, part) in enumerate(found, start=1):
                clusters.check_apart(others, part, place)
        return found

    def _stratified(self, X: Any, y: npt.NDArray[Any], generator: np.random.RandomState) -> Folds:
        """Return parts with the classes in equal shares; several labels a row cannot be."""
        if y.ndim == 2:
            if len(y) < self.cv:
                raise InputError(
                    f"is {self.cv}, and there are only {len(y):,} rows for fitting", argument="cv", value=self.cv
                )
            return list(KFold(int(self.cv), shuffle=True, random_state=generator).split(X))
        labels, counts = (values.tolist() for values in np.unique(y, return_counts=True))
        rarer = counts.index(min(counts))
        if counts[rarer] < self.cv:
            fewer = f"use cv={counts[rarer]} or less" if counts[rarer] > 1 else "collect more"
            raise InputError(
                f"is {self.cv}, and only {counts[rarer]} of the {y.size:,} rows for fitting are of class "
                f"{labels[rarer]!r}, too few for one in every part",
                argument="cv",
                value=self.cv,
                remedy=fewer,
            )
        return list(StratifiedKFold(int(self.cv), shuffle=True, random_state=generator).split(X, y))

    def _chosen(self, model: Any, targets: Targets) -> tuple[Recalibrator | ClassRecalibrator, str]:
        """Return an unfitted recalibrator and the method of the model that it reads."""
        name = type(model).__name__
        # Asked after fitting: some models know only then.
        has_probabilities, has_scores = hasattr(model, "predict_proba"), hasattr(model, "decision_function")
        if not (has_probabilities or has_scores):
            raise InputError(
                f"{name} has neither predict_proba nor decision_function, so there is nothing to recalibrate",
                remedy="pass a classifier that has one of them",
            )
        recalibrator = self._made("probability" if has_probabilities else "score", targets)
        if recalibrator.input_kind == "score":
            if not has_scores and isinstance(self.recalibrator, ClassRecalibrator):
                raise InputError(
                    f"{name} has predict_proba but no decision_function, and {self.recalibrator!r} reads scores",
                    remedy="pass one with input_kind='probability'",
                )
            return recalibrator, "decision_function" if has_scores else "predict_proba"
        if not has_probabilities:
            raise InputError(
                f"{name} has a decision_function but no predict_proba, and {self.recalibrator!r} reads probabilities",
                remedy="pass one with input_kind='score', as in GuardedRecalibrator(input_kind='score')",
            )
        return recalibrator, "predict_proba"

    def _made(self, input_kind: InputKind, targets: Targets) -> Recalibrator | ClassRecalibrator:
        """Return an unfitted recalibrator of what the model forecasts, its own or the default."""
        if isinstance(self.recalibrator, ClassRecalibrator):
            if self.recalibrator.multilabel != targets.multilabel:
                raise InputError(
                    f"recalibrator has multilabel={self.recalibrator.multilabel}, and y has "
                    f"{'several labels' if targets.multilabel else 'one class'} a row",
                    remedy="pass one for such labels, as in OneVsRestRecalibrator(multilabel=True)"
                    if targets.multilabel
                    else "leave multilabel out",
                )
            made: ClassRecalibrator = clone(self.recalibrator).set_params(classes=targets.classes.tolist())
            if not getattr(made, "renormalize", True) and not targets.multilabel and targets.count > 2:
                raise InputError(
                    "recalibrator has renormalize=False, and the probabilities of a classifier must sum to 1",
                    remedy="leave renormalize out here, or use the recalibrator behind the model yourself",
                )
            return made
        each: Recalibrator = (
            GuardedRecalibrator(input_kind=input_kind) if self.recalibrator is None else clone(self.recalibrator)
        )
        if targets.is_event:
            return each
        return OneVsRestRecalibrator(
            each, input_kind=each.input_kind, multilabel=targets.multilabel, classes=targets.classes.tolist()
        )

    def _cross_fitted(
        self,
        X: Any,
        y: npt.NDArray[Any],
        folds: Folds,
        targets: Targets,
        response_method: str,
        fit_params: dict[str, Any],
    ) -> tuple[FloatArray, npt.NDArray[Any]]:
        """Return forecasts or scores by models that have not seen the row, and the positions of the rows."""
        responses, positions = [], []
        times_forecast = np.zeros(len(y), dtype=np.int64)
        for number, (others, part) in enumerate(folds, start=1):
            check_both_classes(y[others], f"that cv leaves for fitting the model of part {number}")
            seen = np.intersect1d(others, part)
            if seen.size:
                raise InputError(
                    f"has row {seen[0]} forecast by a model that was fitted on it, in part {number}",
                    argument="cv",
                    remedy="pass a splitter that keeps them apart, such as StratifiedKFold",
                )
            model = clone(self.estimator).fit(take(X, others), y[others], **rows_of(fit_params, others, len(y)))
            targets.check_part(model, number)
            responses.append(targets.response(model, take(X, part), response_method))
            positions.append(part)
            times_forecast[part] += 1
        if (times_forecast > 1).any():
            row = int(np.flatnonzero(times_forecast > 1)[0])
            raise InputError(
                f"cv puts row {row} into {times_forecast[row]} parts, and it would count as many times",
                remedy="pass a splitter that puts every row into one, such as StratifiedKFold",
            )
        return np.concatenate(responses), np.concatenate(positions)

    def _guarantee(self, level: float, clusters: RowClusters | None, *, weighted: bool) -> str:
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
            sentences.append(f"{also}{self._on_its_own(level, clusters)}")
            sentences.append("The model must have been fitted beforehand, on none of these rows.")
        return "\n".join(sentences)

    def _on_its_own(self, level: float, clusters: RowClusters | None) -> str:
        """Return what the recalibrator guarantees from the rows that it was fitted to, in these clusters."""
        if isinstance(self.recalibrator_, ClassRecalibrator):
            if clusters is not None:
                return "Nothing is guaranteed: of several classes no guarantee is known for rows in clusters."
            try:
                return str(self.recalibrator_.guarantee(level))
            except InputError as reason:
                return f"Nothing is guaranteed: {reason}."
        if clusters is None:
            return str(self.recalibrator_.guarantee(level))
        if clusters.count < LEAST_FOR_JUDGING:
            return "Nothing is guaranteed, because they are of one cluster."
        known = self.recalibrator_.guarantee(level, target="these forecasts", cluster=clusters.codes)
        more = (
            "" if self.certificate_ is not None else "\nOf other clusters only a certificate can speak: set max_error."
        )
        return f"{known}{more}"

    def _certified(self, certificate: Verdict, level: float) -> list[str]:
        """Return what the certificate says, and on what it rests."""
        allowed = shown(certificate.max_error)
        fitted = "the recalibration" if self._is_given else "the model or its recalibration"
        if certificate:
            limit, verdict = f"at most {allowed}", "it was certified"
        elif certificate.verdict == "refuted":
            limit, verdict = f"above {allowed}", f"at most {allowed} was refuted"
        else:
            limit, verdict = f"at most {rounded_up(upper_of(certificate))}", f"at most {allowed} could not be decided"
        reason = f"{verdict} on {rows_said(certificate)} that had no part in fitting {fitted} ({self.method} method)"
        every = of_what(certificate, self._targets, self.questions)
        known = f"{error_of('Cutoff calibration error', every)} {limit}"
        return self._in_words(certificate, level, known, reason)


def _repaired(recalibrator: Recalibrator | ClassRecalibrator, response: FloatArray) -> FloatArray:
    """Return a column of probabilities for every class or label."""
    forecast = recalibrator.predict(response)
    return np.stack([1.0 - forecast, forecast], axis=1) if forecast.ndim == 1 else forecast

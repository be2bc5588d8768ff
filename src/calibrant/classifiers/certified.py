"""The classifier that is kept only if its calibration is certified.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from calibrant.certificates.margins import constant_failure, constant_margin
from calibrant.certificates.methods.registry import METHODS, Method
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
    first_of,
    of_what,
    rows_of,
    rows_said,
)
from calibrant.classifiers.clusters import RowClusters
from calibrant.classifiers.targets import Targets, targets_of
from calibrant.core.errors import InputError
from calibrant.core.types import FloatArray
from calibrant.core.words import shown, significant_up
from calibrant.measures.judged import judged_measure
from calibrant.measures.registry import MEASURES, Measure
from calibrant.measures.savings import REDRAWING, over_thresholds
from calibrant.rows.checks import check_choice, check_confidence, check_number
from calibrant.rows.classes import QuestionsAsked

FALLBACKS = ("constant",)
_MEANS = {"subsets": lambda classes: 2 ** (classes - 1) - 1}
"""How many means of so many classes questions ask about, where it is not one per class."""


class CertifiedClassifier(AroundModel):
    """Fit any classifier, and keep it only if its calibration error is certified to be small.

    The rows are split at random. One part fits the model, the other judges it, as in `certify`: is its Cutoff
    calibration error, or another error named, at most ``max_error``? If that is certified the model is kept. If not,
    every forecast is the mean outcome of the judging part: useless for telling rows apart, but calibrated. Either way

        P(error of the result <= max_error) >= confidence_level

    for every population and every model: Corollary 4.1 of [1]_. Of 1 - confidence_level the constant takes what it
    needs, 2 exp(-2 m max_error^2) with m judging rows, and the certificate all the rest; the paper gives each half.

    Where rows come in clusters, several visits of one patient or flights of one day, name them: ``fit(X, y,
    groups=...)``. Whole clusters are then drawn for judging, and m is the number of clusters of equal size that would
    say as much, (sum m_c)^2 / sum m_c^2. Without ``groups`` the guarantee holds for independent rows only.

    **Several classes, several labels.** With three classes or more the error is that of the questions named, by default
    of the confidence in the top label; a model that is not certified is replaced by the shares of the classes among the
    judging rows, which take 2 J exp(-2 m max_error^2) of 1 - confidence_level, J the number of classes (of yes-or-no
    questions, for "subsets"). Where a row may have several labels, given as columns of 0 and 1, every label is judged,
    and the shares of K labels take 2 K exp(-2 m max_error^2).

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
        The model, or a whole pipeline. A model that is already fitted, wrapped in ``FrozenEstimator`` of scikit-learn
        1.6 or later, is judged on all rows; none of them may have been used to fit it.
    max_error : float in [0, 1]
        The largest error you can live with, as in `certify`. The mean of m rows is only known up to
        sqrt(ln(2 / delta) / (2 m)) with delta = 1 - confidence_level, and only more than that can be asked for.
        (The paper prints ln(1 / delta), but a mean can err to both sides.)
    confidence_level : float from 0.5 to below 1
        Of the whole procedure. The level of the certificate on its own is a little higher.
    split : float between 0 and 1
        Share of the rows, or of the clusters, kept for judging. They are drawn without regard to their classes:
        balanced parts would no longer be independent draws.
    method : {"adaptive", "hoeffding", "normal", "paper"}
        As in `certify`; "normal" makes the guarantee a large-sample one. "exact" is refused, because it speaks of the
        forecasts at hand and not of those to come.
    measure : {"cutoff", "smooth", "bounded_variation", "distance", "ece", "risk_gap"}
        The error that is judged, as in `certify`: with "risk_gap" the most that any re-drawing of the line between
        acting and not acting saves per case. For a constant none of these errors is above its distance from the event
        rate, so that the guarantee is the same.
    threshold : float, or the lowest and the highest of a range, optional
        For ``measure="risk_gap"``: the threshold, or the range of thresholds, that decisions use; else all of them.
    cost_false_positive, cost_false_negative : float, optional
        Costs in place of one threshold.
    questions : {"confidence", "classwise", "top_label", "pairs", "subsets"}
        What is judged of three classes or more, as in `certify`. It has no effect on two classes, where the error is
        that of the forecasts of the second, nor where a row may have several labels.
    fallback : {"constant"}
        What replaces a model that is not certified.
    random_state : int, RandomState or None
        Draws the split; an int gives the same one at every fit. Fix it beforehand: whoever tries several seeds and
        picks one has looked several times. Clusters are drawn by what they hold, whatever their order and names.

    Attributes
    ----------
    estimator_ : classifier
        The fitted model, kept for inspection even if it is not certified.
    certificate_ : Certificate or QuestionCertificates
        The verdict on the model, with the level confidence_level + 2 J exp(-2 m max_error^2) for m judging rows. J is
        the number of means that a constant has to get right: 1 for two classes, K for K classes or labels, and
        2^(K - 1) - 1 where ``questions="subsets"``. Weights and clusters count as the rows they are worth.
    fell_back_ : bool
        Whether the model was replaced by the constant.
    constant_ : float or array of shape (K,)
        The constant forecast for ``classes_[1]``, whether it was needed or not; of three classes or more, and of
        several labels, one for each.
    classes_ : array of shape (K,)
        The classes; of two, the forecasts judged are those of the second. For several labels their numbers.
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

    ``sample_weight`` counts for both parts, if the model's ``fit`` accepts it: weights fixed beforehand, as in
    `certify`.

    References
    ----------
    Corollary 4.1 of [1]_ for ``method="paper"``; with the other methods the same proof holds (docs/theory/verdicts.md).

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
        method: Method = "adaptive",
        measure: Measure = "cutoff",
        threshold: float | tuple[float, float] | None = None,
        cost_false_positive: float | None = None,
        cost_false_negative: float | None = None,
        questions: QuestionsAsked = "confidence",
        fallback: str = "constant",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.max_error = max_error
        self.confidence_level = confidence_level
        self.split = split
        self.method = method
        self.measure = measure
        self.threshold = threshold
        self.cost_false_positive = cost_false_positive
        self.cost_false_negative = cost_false_negative
        self.questions = questions
        self.fallback = fallback
        self.random_state = random_state

    def _fit(self, asked: Asked) -> None:
        X, y, weight, clusters = asked.X, asked.y, asked.weight, asked.clusters
        if self._is_given:
            model = self.estimator.fit(X, y)  # fits nothing, but makes sure that the model is fitted
            targets, share = targets_of(model, y), 1.0
            certificate_level = self._certificate_level(asked.level, len(y), weight, clusters, targets, share=share)
        else:
            X_fit, X, y_fit, y, kept, chosen = draw_rows(asked, self.split, check_random_state(self.random_state))
            weight = None if weight is None else weight[chosen]
            clusters = None if clusters is None else clusters.take(chosen)
            self._certificate_level(asked.level, len(y), weight, clusters, None, share=self.split)
            check_both_classes(y_fit, "drawn for fitting", FEWER_FOR_JUDGING)
            model = clone(self.estimator).fit(X_fit, y_fit, **rows_of(asked.fit_params, kept, len(asked.y)))
            targets = targets_of(model, y)
            certificate_level = self._certificate_level(
                asked.level, len(y), weight, clusters, targets, share=self.split
            )
        certificate = self._judge(targets, y, targets.forecasts(model, X), weight, clusters, certificate_level)
        shares = targets.shares(y, weight)
        self.estimator_ = model
        self._targets = targets
        self.classes_ = targets.classes
        self.certificate_: Any = certificate
        self.fell_back_ = not certificate
        self.constant_: Any = float(shares[1]) if targets.is_event else shares
        self.guarantee_ = self._guarantee(asked.level)
        self._take_names(model)

    def _probabilities(self, X: Any) -> FloatArray:
        forecasts = self._targets.forecasts(self.estimator_, X)
        if not self.fell_back_:
            return forecasts
        # The model is still asked, so that features it cannot read are an error either way.
        shares = [1.0 - self.constant_, self.constant_] if self._targets.is_event else self.constant_
        return np.tile(shares, (len(forecasts), 1))

    def _check_options(self) -> float:
        check_number(self.max_error, "max_error", low=0.0, high=1.0)
        check_judging(self.split, self.method, self.questions)
        judged_measure(self.measure, 2.0, self.threshold, self.cost_false_positive, self.cost_false_negative)
        METHODS[self.method].check_measure(self.measure)
        check_choice(self.fallback, "fallback", FALLBACKS)
        return check_confidence(self.confidence_level)

    def _judged_by(self) -> dict[str, Any]:
        names = ("measure", "threshold", "cost_false_positive", "cost_false_negative")
        return {name: getattr(self, name) for name in names}

    def _certificate_level(
        self,
        level: float,
        rows: int,
        weight: FloatArray | None,
        clusters: RowClusters | None,
        targets: Targets | None,
        *,
        share: float,
    ) -> float:
        """Return the level that is left for the certificate; refuse a limit that the constant could not keep to.

        Sums of outcomes of clusters lie between 0 and the weight of the cluster, as those of rows do.
        """
        effective = effective_size(weight, rows, clusters)
        means = 1 if targets is None else self._constants(targets)
        certificate_level = level + means * constant_failure(effective, self.max_error)
        if certificate_level < 1.0:
            return certificate_level
        smallest = constant_margin(effective, (1.0 - level) / means)
        units, unit = (rows, "rows") if clusters is None else (clusters.count, "clusters")
        remedy = f"since no number of {unit} is enough for 0"
        if self.max_error > 0.0:
            # Weights and sizes like these keep the share of rows, or clusters, that they are worth.
            needed = units * (smallest / self.max_error) ** 2 / share
            remedy = f"or collect about {math.ceil(needed):,} {unit} in all"
        worth = "" if clusters is None else f" in {clusters.count:,} clusters"
        if not math.isclose(units, effective):
            worth += f", worth {effective:,.1f} of equal weight"
        raise InputError(
            f"is {shown(self.max_error)}, no more than even a constant can guarantee from {rows:,} rows kept for "
            f"judging{worth} at confidence_level={self.confidence_level:g}",
            argument="max_error",
            value=self.max_error,
            remedy=f"allow max_error={min(1.0, math.floor(smallest * 1e4 + 1.0) / 1e4):g} or more, {remedy}",
        )

    def _constants(self, targets: Targets) -> int:
        """Return of how many means a constant is right about everything that is asked, if all of them are right.

        The confidence in the top label, which the rows choose, is off by no more than some class is; a pair by no more
        than one of its classes. Both sides of a yes-or-no question are off by the same, as two classes are.
        """
        if targets.is_event:
            return 1
        return targets.count if targets.multilabel else _MEANS.get(self.questions, int)(targets.count)

    def _guarantee(self, level: float) -> str:
        certificate = self.certificate_
        rows = rows_said(certificate)
        if not self._is_frozen:  # nobody but the user knows about a frozen one: it is among the assumptions
            rows += " that had no part in fitting it"
        if self.fell_back_:
            if self._targets.is_event:
                constant = f"their mean outcome, {self.constant_:.4g}"
            else:
                constant = f"the share of each {'label' if self._targets.multilabel else 'class'} among them"
            reason = (
                f"the model could not be certified on {rows} ({self.method} method), and every forecast is {constant}"
            )
        else:
            reason = f"the model was certified on {rows} ({self.method} method)"
        return "\n".join(self._in_words(certificate, level, self._promised(certificate), reason))

    def _promised(self, certificate: Verdict) -> str:
        """Say what holds of this classifier's forecasts, whether they are the model's or a constant."""
        limit, one = shown(self.max_error), first_of(certificate)
        every = of_what(certificate, self._targets, self.questions)
        if one.thresholds is None:
            return f"{error_of(MEASURES.words(self.measure), every)} at most {limit}"
        over = over_thresholds(one.thresholds, self.cost_false_positive, self.cost_false_negative)
        unit = one.cost_unit
        costs = "" if unit is None else f" ({significant_up(self.max_error * unit, 5)} in cost units)"
        return (
            f"no {REDRAWING} on this classifier's forecasts{every} saves more than {limit} per case{costs}, at {over},"
        )

"""Several models on the same rows: each with limits that hold together, so that one may be chosen after looking."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from calibrant.certificates.joint_levels import level_of_each
from calibrant.certificates.methods.registry import METHODS, Method
from calibrant.certificates.model_differences import ModelDifference
from calibrant.certificates.score_names import SCORES, ScoreName, needs_threshold
from calibrant.certificates.scores import scores_of
from calibrant.certificates.verdicts import certify, confidence_interval
from calibrant.comparisons.clusters import checked_clusters, clusters_of_errors, clusters_of_scores
from calibrant.comparisons.differences import (
    Question,
    clustered_differences,
    cutoff_differences,
    differences_of_limits,
    saving_differences,
    score_differences,
    score_limits,
)
from calibrant.comparisons.results import ComparedModel, ModelComparison
from calibrant.core.errors import CalibrantError, InputError
from calibrant.core.frames import frames_follow
from calibrant.core.threads import in_threads
from calibrant.core.types import IntArray
from calibrant.core.voices import Phrase
from calibrant.measures.registry import MEASURES, Measure
from calibrant.measures.savings import check_threshold_range
from calibrant.rows.checks import (
    Observations,
    check_choice,
    check_confidence,
    check_number,
    check_same_index,
    check_seed,
)
from calibrant.rows.costs import Costs, threshold_or_costs
from calibrant.rows.intake import are_clustered, given_source
from calibrant.rows.named import check_named, check_summaries
from calibrant.rows.paired import PairedColumns, PairedRows, check_clusters
from calibrant.rows.promised import as_observations, as_source
from calibrant.rows.refinement import some_table
from calibrant.rows.tally import Tally

Compared = Measure | ScoreName
"""What models may be compared by."""

_ROW_BY_ROW = ("cutoff", "risk_gap")
"""The calibration errors whose differences have limits of their own, by the adaptive method; ..."""

_BY_CLUSTER = ("cutoff",)
"""... and those among them that have where rows come in clusters."""


class ModelError(CalibrantError):
    """One of several models cannot be judged.

    Attributes
    ----------
    model : str
        Which.
    reason : CalibrantError
        Why.
    """

    def __init__(self, model: str, reason: CalibrantError) -> None:
        super().__init__(Phrase("model {model!r}: {why}", model=model, why=reason.phrase))
        self.model = model
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.model, self.reason)


@frames_follow
def compare_models(
    y_true: Any,
    y_prob: Any = None,
    *,
    measure: Compared = "cutoff",
    threshold: Any = None,
    margin: float | None = None,
    reference: str | None = None,
    cluster: Any = None,
    max_cluster_size: float | None = None,
    max_error: float | None = None,
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    variation: float = 2.0,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    rng: Any = 0,
) -> ModelComparison:
    """Compare several models on the same rows: their errors or scores, and every difference, with limits.

    The limits of all models hold together, so that whichever you choose after looking, its certificate stands; those of
    all differences do, too. Differences are judged row by row: rows on which two models go wrong alike say nothing for
    either, which two separate limits cannot know.

    Parameters
    ----------
    y_true : array-like of shape (n,), or dict of Tally or Scan
        Outcomes that all models are judged by, as in `certify`; or, on its own, a tally or a `scan` for each model's
        name, which may be of different rows: the limits of a difference then follow from those of the two errors.
    y_prob : dict of array-like of shape (n,)
        The forecasts of each model, by its name.
    measure : str
        What to compare: a calibration error as in `certify` ("cutoff", "risk_gap" and others), "brier", "log",
        "decision_risk" or "net_benefit". Differences of errors other than "cutoff" and "risk_gap" follow from those of
        the two errors; so do those of all by methods other than "adaptive", and of all but "cutoff" where rows come in
        clusters.
    threshold : float, tuple or array
        For "risk_gap" as in `certify`: one, or the lowest and the highest of a range. For "decision_risk" and
        "net_benefit" the threshold from which people act, or several, for all of which the limits hold together:
        ``[0.2, 0.3]`` is then these two, and for "risk_gap" everything between them, too.
    margin : float, optional
        By how much a model may be worse and still do: those that surely are not worse by more are "non-inferior". Fix
        it beforehand.
    reference : str, optional
        The model that all others are compared with. Fewer differences have narrower limits.
    cluster : array-like of shape (n,), optional
        A label per row that says which rows belong together, as in `certify`: clusters then count, not rows.
    max_cluster_size : float, optional
        The most rows that a cluster can have, stated beforehand, as in `certify`.
    max_error : float in [0, 1], optional
        The largest calibration error you can live with: each model gets a certificate, and of those certified the one
        with the lowest Brier score is chosen.
    confidence_level : float from 0.5 to below 1
        One minus the probability that any limit of a model is wrong, or any verdict; and that any of a difference is.
    method, variation, sample_weight, pos_label
        As in `certify`, the same for all models.
    cost_false_positive, cost_false_negative : float, optional
        Costs in place of one threshold.
    rng : int, Generator or None
        Draws random halves of the rows. Their order makes no difference.

    Returns
    -------
    ModelComparison
        Per model its limits, verdict and Brier score; the differences; the choice. Prints as the tables that
        ``calibrant compare`` prints.

    Raises
    ------
    ModelError
        When one of the models cannot be judged; it says which and why.

    See Also
    --------
    certify : one model.
    compare_recalibrators : several ways to repair one model.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p
    >>> found = compare_models(y, {"old": np.sqrt(p), "new": p}, max_error=0.05)
    >>> found.chosen, found["old"].certificate.verdict, found.differences[0].better
    ('new', 'refuted', 'new')
    >>> compare_models(y, {"old": np.sqrt(p), "new": p}, measure="brier").differences[0].verdict
    'worse'
    """
    check_choice(measure, "measure", (*MEASURES, *SCORES))
    level = check_confidence(confidence_level)
    limit = None if max_error is None else check_number(max_error, "max_error", low=0.0, high=1.0)
    allowed = None if margin is None else _check_margin(margin)
    largest = None if max_cluster_size is None else check_number(max_cluster_size, "max_cluster_size", low=1.0)
    if largest is not None and sample_weight is not None:
        raise InputError(
            "counts rows, and was given together with sample_weight",
            argument="max_cluster_size",
            remedy="leave out one of the two",
        )
    together = not isinstance(y_true, Mapping)
    given = _named_models(y_true, y_prob, sample_weight, cluster)
    if isinstance(y_true, PairedColumns):
        cluster = y_true.cluster
    if len(given) < 2:
        (name,) = given
        raise InputError(f"there is one model only, {name!r}, and nothing to compare it with", remedy="use certify")
    if reference is not None:
        check_choice(reference, "reference", tuple(given))
    question = Question(reference, allowed, level, check_seed(rng), largest)
    columns = {"sample_weight": sample_weight, "pos_label": pos_label}
    costs = {"cost_false_positive": cost_false_positive, "cost_false_negative": cost_false_negative}
    check_choice(method, "method", tuple(METHODS))
    if measure in SCORES:
        if limit is not None or not METHODS[method].pairs_rows:
            wrong = "method" if limit is None else "max_error"
            remedy = "leave it out, or compare calibration errors"
            raise InputError(f"is for calibration errors, not for measure={measure!r}", argument=wrong, remedy=remedy)
        if not together:
            remedy = "pass the outcomes, and a dict of forecasts for y_prob"
            raise InputError(f"measure={measure!r} compares models row by row", remedy=remedy)
        held = _checked(given, columns)
        cluster, notes = _clusters(held, cluster, largest)
        return _by_scores(_paired(held, cluster), measure, threshold, costs, question, notes)
    held = _checked(given, columns) if together else _summaries(given, columns)
    cluster, notes = _clusters(held, cluster, largest) if together else (cluster, ())
    settings = {
        "confidence_level": level_of_each(level, len(given)),
        "method": method,
        "measure": measure,
        "variation": variation,
        "threshold": threshold,
        **costs,
        "rng": question.seed,
    }
    if cluster is not None:
        settings |= {"cluster": cluster, "max_cluster_size": largest}
    models = _judged(held, limit, settings)
    differences: tuple[ModelDifference, ...] | None = None
    assumptions: tuple[str, ...] = ()
    clusters = getattr(next(iter(models.values())).interval, "clusters", None)
    if together and METHODS[method].pairs_rows and measure in (_ROW_BY_ROW if cluster is None else _BY_CLUSTER):
        rows = _paired(held, cluster)
        assumptions = question.assumed_of_errors(rows)
        differences = _row_by_row(rows, held, models, settings, question)
        if clusters is not None:
            wider = _wider(rows, models, settings, question)
            clusters = clusters_of_errors(clusters, rows, wider, question, question.each(list(models)) / 2.0)
    return ModelComparison(
        confidence_level=level,
        max_error=limit,
        chosen=ModelComparison.choice(tuple(models.values())),
        models=tuple(models.values()),
        differences=differences_of_limits(models, question) if differences is None else differences,
        measure=measure,
        reference=reference,
        margin=allowed,
        assumptions=assumptions,
        clusters=clusters,
        notes=notes,
    )


def _clusters(
    held: Mapping[str, Observations], cluster: Any, largest: float | None
) -> tuple[IntArray | None, tuple[str, ...]]:
    """Return the number of each row's cluster if they are any, and what is to be noted of them."""
    return (None, ()) if cluster is None else checked_clusters(next(iter(held.values())), cluster, largest)


def _check_margin(margin: Any) -> float:
    """Return by how much a model may be worse: an infinite margin would make every model do."""
    allowed = check_number(margin, "margin", low=0.0)
    if math.isinf(allowed):
        remedy = "pass a finite number, the most that a model may be worse by"
        raise InputError("is not finite", argument="margin", value=margin, remedy=remedy)
    return allowed


def _by_scores(
    rows: PairedRows,
    measure: str,
    threshold: Any,
    costs: dict[str, Any],
    question: Question,
    notes: tuple[str, ...],
) -> ModelComparison:
    """Compare means of scores."""
    thresholds, pair = _thresholds(measure, threshold, costs)
    scores = scores_of(measure, thresholds)
    names = list(rows.forecasts)
    models = tuple(
        ComparedModel(
            name,
            None,
            None,
            rows.mean(np.square(rows.outcome - rows.forecasts[name])),
            score_limits(rows, name, scores, question),
        )
        for name in names
    )
    return ModelComparison(
        confidence_level=question.level,
        max_error=None,
        chosen=None,
        models=models,
        differences=score_differences(rows, scores, question),
        measure=measure,
        reference=question.reference,
        margin=question.margin,
        assumptions=question.assumed_of_scores(rows, given=scores[0].given_forecasts),
        cost_false_positive=pair[0],
        cost_false_negative=pair[1],
        clusters=clusters_of_scores(rows, question, question.each(names, len(scores))),
        notes=notes,
    )


def _thresholds(measure: str, threshold: Any, costs: dict[str, Any]) -> tuple[tuple[float, ...], Costs]:
    """Return the thresholds that scores are asked about, and the costs in place of one."""
    if not needs_threshold(measure):
        for name, value in {"threshold": threshold, **costs}.items():
            if value is not None:
                raise InputError(f"means nothing for measure={measure!r}", argument=name, remedy="leave it out")
        return (), (None, None)
    at, pair = threshold_or_costs(threshold, *costs.values())
    return tuple(np.unique(at).tolist()), pair


def _row_by_row(
    rows: PairedRows,
    held: Mapping[str, Any],
    models: dict[str, ComparedModel],
    settings: dict[str, Any],
    question: Question,
) -> tuple[ModelDifference, ...]:
    """Return the differences of calibration errors on the same rows."""
    of_savings = MEASURES[settings["measure"]].thresholds is not None
    if not of_savings and rows.codes is None:
        return cutoff_differences(rows, models, question)
    wider = _wider(rows, models, settings, question)
    found = {name: confidence_interval(observed, **wider) for name, observed in held.items()}
    bounds = {name: (each.lower, each.upper) for name, each in found.items()}
    if not of_savings:
        return clustered_differences(rows, models, bounds, question)
    asked = (settings[name] for name in ("threshold", "cost_false_positive", "cost_false_negative"))
    return saving_differences(rows, models, bounds, check_threshold_range(*asked)[0], question)


def _wider(
    rows: PairedRows, models: Mapping[str, ComparedModel], settings: dict[str, Any], question: Question
) -> dict[str, Any]:
    """Return the settings of intervals from which limits of differences follow, half of whose errors they may make."""
    wider = {**settings, "confidence_level": 1.0 - question.each(list(models)) / 2.0}
    if rows.codes is not None:
        wider["max_cluster_size"] = question.max_cluster_size or float(np.bincount(rows.codes, rows.weight).max())
    return wider


def _named_models(y_true: Any, y_prob: Any, sample_weight: Any, cluster: Any) -> dict[str, tuple[Any, Any]]:
    """Return outcomes and forecasts of each model, or what stands in place of both."""
    if isinstance(y_true, PairedColumns):
        return {name: (held, y_prob) for name, held in y_true.columns.items()}
    if isinstance(y_true, Mapping):
        return {name: (held, y_prob) for name, held in check_summaries(y_true).items()}
    if not isinstance(y_prob, Mapping):
        raise InputError(
            f"is a {type(y_prob).__name__}",
            argument="y_prob",
            remedy="pass the forecasts of each model in a dict, as in compare_models(y_true, {'old': old, 'new': new})",
        )
    forecasts = check_named(y_prob, "y_prob")
    named = {f"y_prob[{name!r}]": values for name, values in forecasts.items()}
    check_same_index(y_true=y_true, **named, sample_weight=sample_weight, cluster=cluster)
    return {name: (y_true, values) for name, values in forecasts.items()}


def _checked(given: Mapping[str, tuple[Any, Any]], columns: dict[str, Any]) -> dict[str, Observations]:
    """Return the rows of each model as the gate lets them through."""
    found = {}
    for name, (y_true, y_prob) in given.items():
        with naming(name):
            found[name] = as_observations(y_true, y_prob, **columns)
    return found


def _summaries(given: Mapping[str, tuple[Any, Any]], columns: dict[str, Any]) -> dict[str, Any]:
    """Return what stands in place of the rows of each model, scanned once."""
    found = {}
    for name, (held, y_prob) in given.items():
        with naming(name):
            found[name] = held if are_clustered(held) else as_source(held, y_prob, **columns)
    return found


def _paired(held: Mapping[str, Any], cluster: Any) -> PairedRows:
    rows = PairedRows.of(held, cluster)
    check_clusters(rows)
    return rows


@contextmanager
def naming(model: str) -> Iterator[None]:
    """Let errors say which model they are about."""
    try:
        yield
    except CalibrantError as reason:
        raise ModelError(model, reason) from reason


def _judged(held: Mapping[str, Any], max_error: float | None, settings: dict[str, Any]) -> dict[str, ComparedModel]:
    """Return each model with its limits; side by side where there are many rows, which must be in memory."""

    def judge(name: str) -> ComparedModel:
        return _judge(name, held[name], max_error, settings)

    alone = "cluster" in settings or not all(isinstance(rows, Observations) for rows in held.values())
    rows = 0 if alone else min(each.y_prob.size for each in held.values())
    return dict(zip(held, in_threads(judge, held, rows=rows), strict=True))


def _judge(name: str, held: Any, max_error: float | None, settings: dict[str, Any]) -> ComparedModel:
    """Return the limits, the certificate where one is asked for, and the Brier score of one model."""
    with naming(name):
        rows = held
        if "cluster" not in settings and not are_clustered(held):
            source = as_source(held)
            rows = source if isinstance(source, Tally) else given_source(source)
        interval = confidence_interval(rows, **settings)
        certificate = None if max_error is None else certify(rows, max_error=max_error, **settings)
    return ComparedModel(name, interval, certificate, _brier(rows))


def _brier(rows: Any) -> float:
    """Return the mean of (y - p)^2, from totals where there are some."""
    if isinstance(rows, Observations):
        square = np.square(rows.y_true - rows.y_prob)
        return float(square.mean() if rows.sample_weight is None else np.average(square, weights=rows.sample_weight))
    table = some_table(rows)
    return float(table.residual_square.sum()) / table.weight_total

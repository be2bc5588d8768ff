"""Certificates: can one say, with a guarantee, that the calibration error is at most so much?

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args, overload

from calibrant.certificates.clusters import ClusterTarget, check_clusters
from calibrant.certificates.families import Opening, certify_family, interval_family
from calibrant.certificates.group_verdicts import certify_groups, check_scale, refuse_groups
from calibrant.certificates.joint_levels import delta_of_each
from calibrant.certificates.judging import Plan, check_plan, evaluate, interval_of, judge, judge_part
from calibrant.certificates.methods.registry import Method
from calibrant.certificates.question_results import QuestionCertificates, QuestionIntervals
from calibrant.certificates.results import Certificate, ConfidenceInterval, GroupCertificates, Yardstick
from calibrant.core.errors import CalibrationWarning
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, ClassLabel, Randomness
from calibrant.measures.judged import judged_measure
from calibrant.measures.registry import Measure
from calibrant.rows.asked import asked_of_classes, without_groups
from calibrant.rows.checks import Observations, check_choice, check_number, check_seed
from calibrant.rows.classes import FamilyAsked, QuestionsAsked, SingleAsked
from calibrant.rows.groups import are_grouped, by_group
from calibrant.rows.intake import GroupsLike, RowsLike, are_clustered, source_of
from calibrant.rows.masks import Scale
from calibrant.rows.promised import as_clustered, as_source, in_groups
from calibrant.rows.scanned_groups import GroupColumns
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally

Alternative = Literal["two-sided", "less", "greater"]
ALTERNATIVES: tuple[str, ...] = get_args(Alternative)


@overload
def certify(
    y_true: GroupsLike,
    *,
    max_error: float,
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    relative_to: Yardstick = "rows",
    rng: Randomness = 0,
) -> GroupCertificates: ...


@overload
def certify(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    max_error: float,
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    relative_to: Yardstick = "rows",
    by: None = None,
    classes: ArrayLike | None = None,
    questions: SingleAsked | None = None,
    multilabel: Literal[False] = False,
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
) -> Certificate: ...


@overload
def certify(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    max_error: float,
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    relative_to: Yardstick = "rows",
    by: ArrayLike,
    classes: ArrayLike | None = None,
    questions: SingleAsked | None = None,
    multilabel: Literal[False] = False,
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
) -> GroupCertificates: ...


@overload
def certify(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    max_error: float,
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    relative_to: Yardstick = "rows",
    classes: ArrayLike | None = None,
    questions: FamilyAsked,
    multilabel: bool = False,
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    sample_weight: ArrayLike | None = None,
    rng: Randomness = 0,
) -> QuestionCertificates: ...


@overload
def certify(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    max_error: float,
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    relative_to: Yardstick = "rows",
    classes: ArrayLike | None = None,
    questions: None = None,
    multilabel: Literal[True],
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    sample_weight: ArrayLike | None = None,
    rng: Randomness = 0,
) -> QuestionCertificates: ...


@overload
def certify(
    y_true: GroupColumns,
    *,
    max_error: float,
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    relative_to: Yardstick = "rows",
    scale: Scale | None = None,
    rng: Randomness = 0,
) -> QuestionCertificates: ...


@overload
def certify(
    y_true: ArrayLike | Observations,
    y_prob: ArrayLike | None = None,
    *,
    max_error: float,
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    relative_to: Yardstick = "rows",
    groups: Any,
    scale: Scale | None = None,
    classes: ArrayLike | None = None,
    questions: SingleAsked | None = None,
    multilabel: Literal[False] = False,
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
) -> QuestionCertificates: ...


@frames_follow
def certify(
    y_true: RowsLike | GroupsLike | GroupColumns,
    y_prob: ArrayLike | None = None,
    *,
    max_error: float,
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    relative_to: Yardstick = "rows",
    by: ArrayLike | None = None,
    groups: Any = None,
    scale: Scale | None = None,
    classes: ArrayLike | None = None,
    questions: QuestionsAsked | None = None,
    multilabel: bool = False,
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
) -> Certificate | GroupCertificates | QuestionCertificates:
    """Decide, with a guarantee, whether the calibration error is at most ``max_error``.

    The verdict is "certified" when an upper confidence limit of the error is at most ``max_error``, "refuted" when a
    lower one is above it, else "undecided". Each limit is wrong with probability at most 1 - confidence_level, so the
    verdict is too, for one look: rows, limit, method and level chosen beforehand, on rows that neither the model nor
    its recalibration has seen.

    Parameters
    ----------
    y_true : array-like of shape (n,), or Tally, or Scan
        Outcomes: 0/1, booleans, fractions in [0, 1], or labels with ``pos_label``;
        or, on its own, a tally or a `scan` of a file, table or cluster.
    y_prob : array-like of shape (n,), or (n, K) for several classes
        Forecast probabilities.
    max_error : float in [0, 1]
        The largest error you can live with. For Cutoff, 0.02 means: on no interval of forecasts do events and
        forecasts differ by more than 2 per 100 rows of the whole population. Where events are rare that is a lot: ask
        for a share of the events then (docs/how-to/choose-max-error.md).
    confidence_level : float from 0.5 to below 1
        One minus the probability of a wrong verdict.
    method : {"adaptive", "exact", "normal", "hoeffding", "paper"}
        - "adaptive": holds at every number of rows, speaks of the population, and is as sharp as the variance of the
          residuals allows. Fractions and weights too.
        - "exact": holds at every number of rows and is narrower, but it speaks of *these* forecasts (as if the same
          forecasts were issued again): binomial limits, or a bet where the forecasts tell outcomes apart so well that
          it is narrower. 0/1 outcomes, unit weights, Cutoff only.
        - "normal": large-sample; right for many rows only, and flagged when there are too few.
        - "hoeffding": margin sqrt(2 ln(1/delta) / n); simple, wide.
        - "paper": Proposition 4.1 of [1]_, margin (20 + sqrt(2 ln(1/delta))) / sqrt(n); very wide. Cutoff only.
    measure : {"cutoff", "smooth", "bounded_variation", "distance", "ece", "risk_gap"}
        The error to judge. "distance" is the distance from calibration. "ece" means something only when forecasts
        repeat: on nearly continuous ones its bound is true and useless, and a warning says so (Theorem 4.1 of [1]_).
        "risk_gap" is what people act on: the most that any re-drawing of the line between acting and not acting (any
        non-decreasing recalibration) saves per case, at the worst threshold. Its limits need far fewer rows, since good
        forecasts leave little to save on few rows near any threshold.
    variation : float, default 2
        Largest total variation of the weights, for ``measure="bounded_variation"``.
    threshold : float, or the lowest and the highest of a range, optional
        For ``measure="risk_gap"``: the threshold, or the range of thresholds, that decisions use. Without it the gap is
        the largest over all thresholds. Fix it beforehand.
    cost_false_positive, cost_false_negative : float, optional
        Costs in place of one threshold, as in `decision_risk`; words then also speak in these units.
    relative_to : {"rows", "events"}
        What ``max_error``, the estimate and the limits are shares of. With "events" 0.25 means: on no interval of
        forecasts do events and forecasts differ by more than a quarter of all events; the error is at most 0.25 times
        the population's event rate, which is not assumed to be known.
    by : array-like of shape (n,), optional
        A group per row: one certificate per group, and one verdict for "every group is at most ``max_error``". Choose
        the groups before looking at the rows: for groups found by looking nothing holds.
    groups : frame, dict of columns, or one column, optional
        Groups that may overlap, chosen before looking at the rows: a column of truth values is a group, a column of
        labels has a group for each label. One verdict for "every group is at most ``max_error``", with no correction
        for their number, and verdicts on single groups that hold together (docs/how-to/groups.md). For groups to be
        found by looking there is `worst_group`.
    scale : {"mass", "group"}, optional
        With ``groups``: whether errors are shares of all rows ("mass", as by default), so that small groups need few of
        them, or of the rows of each group.
    classes, questions, multilabel
        As in `cutoff_calibration_error`, for ``y_prob`` of shape (n, K). Several questions have one
        certificate each, and one verdict for "every question is at most ``max_error``".
    cluster : array-like of shape (n,), optional
        A label per row that says which rows belong together: a patient, a site, a day. Rows of one cluster may depend
        on each other in any way; the guarantee then counts clusters, not rows (docs/how-to/clusters.md).
    cluster_target : {"rows", "clusters"}
        Whether each row counts once, for clusters of these sizes, or each cluster, however many rows it has.
    max_cluster_size : float, optional
        The most rows that a cluster of the population can have, stated beforehand: limits then speak of a population
        of clusters whose sizes are a matter of chance, too.
    serial : int, default 0
        How many places apart, in the sorted order of their labels, clusters may depend on each other: 1 for days of
        which each may have to do with the next.
    sample_weight : array-like of shape (n,), optional
        Weights fixed beforehand: those computed from the rows, such as inverse propensities, are not covered. ``n_eff``
        says how many rows of equal weight they are worth. A row repeated is not two observations; counts of real
        observations enter as ``Tally.from_counts``.
    pos_label : label, optional
        The label in ``y_true`` that counts as the event, against all others.
    rng : int, Generator or None, default 0
        Draws the halves of the rows on which the adaptive method's lower limit is found and tested, sixteen times over,
        without looking at outcomes. Fix it beforehand: whoever tries several has looked several times. Where forecasts
        repeat, that limit holds over the choice of the seed (docs/theory/random-halves.md).

    Returns
    -------
    Certificate, or GroupCertificates with ``by``, or QuestionCertificates with ``groups`` and where several questions
    are asked of classes
        ``bool(certificate)`` is True when certified; ``str(certificate)`` is a few sentences for a report. Look at
        ``certificate.cautions`` too: they are not empty when the limit is so wide that the verdict says little.

    References
    ----------
    Propositions 4.1 and Theorem 4.1 of [1]_; the other methods and their proofs are this project's
    (docs/theory/certificates.md).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.random(2000)
    >>> y_true = rng.random(2000) < y_prob
    >>> certificate = certify(y_true, y_prob, max_error=0.05)
    >>> certificate.verdict, round(certificate.estimate, 4), round(certificate.upper, 4)
    ('certified', 0.0104, 0.0277)
    """
    kind = judged_measure(measure, variation, threshold, cost_false_positive, cost_false_negative)
    question = check_clusters(cluster is not None or are_clustered(y_true), cluster_target, max_cluster_size, serial)
    plan = check_plan(method, kind, confidence_level, relative_to, question)
    limit = check_number(max_error, "max_error", low=0.0, high=1.0)
    seed = check_seed(rng)
    share = check_scale(scale, in_groups=groups is not None or isinstance(y_true, GroupColumns))
    if isinstance(y_true, GroupColumns):
        given = {"groups": groups, "scale": share, "by": by, "cluster": cluster}
        return certify_groups(
            plan, limit, seed, y_true, y_prob, **given, sample_weight=sample_weight, pos_label=pos_label
        )
    family = asked_of_classes(y_true, y_prob, classes, questions, multilabel, sample_weight, pos_label)
    if family is not None:
        if groups is not None:
            in_groups_of_one = partial(certify_groups, plan, limit, seed, groups=groups, scale=share, by=by)
            return family.answered(
                lambda rows: in_groups_of_one(rows, cluster=cluster), lambda several: refuse_groups(several.kind)
            )
        return family.answered(
            lambda rows: _verdicts(plan, rows, None, by, cluster, None, None, limit, seed),
            lambda several: certify_family(
                plan, without_groups(several, by), limit, seed, opened=_column_opener(plan, cluster)
            ),
            error=kind.promising(kind.thresholds),
        )
    if groups is not None:
        given = {"groups": groups, "scale": share, "by": by, "cluster": cluster}
        return certify_groups(
            plan, limit, seed, y_true, y_prob, **given, sample_weight=sample_weight, pos_label=pos_label
        )
    return _verdicts(plan, y_true, y_prob, by, cluster, sample_weight, pos_label, limit, seed)


def _verdicts(
    plan: Plan,
    y_true: Any,
    y_prob: Any,
    by: Any,
    cluster: Any,
    sample_weight: Any,
    pos_label: Any,
    limit: float,
    seed: int,
) -> Certificate | GroupCertificates:
    """Return the verdict on all rows, or on each group."""
    if by is None and not are_grouped(y_true):
        source = _rows_asked(plan, y_true, y_prob, cluster, sample_weight, pos_label)
        found = judge(plan, source, limit, plan.delta, seed)
        _warn(found.caution)
        return found.certificate
    plan = replace(plan, parts="groups")
    rows = in_groups(y_true, y_prob, by=by, cluster=cluster, sample_weight=sample_weight, pos_label=pos_label)
    count = len(rows.groups)
    judged = by_group(
        rows, lambda each: judge_part(plan, _group_asked(plan, each), limit, count, seed), side_by_side=True
    )
    for each in judged:
        _warn(each.caution)
    certificates, uppers = tuple(each.certificate for each in judged), tuple(each.upper_alone for each in judged)
    return GroupCertificates(
        verdict=GroupCertificates.verdict_of(uppers, certificates, limit),
        max_error=limit,
        confidence_level=plan.confidence_level,
        groups=rows.groups,
        upper=uppers,
        certificates=certificates,
        relative_to=plan.relative_to,
    )


@overload
def confidence_interval(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    alternative: Alternative = "two-sided",
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    relative_to: Yardstick = "rows",
    classes: ArrayLike | None = None,
    questions: SingleAsked | None = None,
    multilabel: Literal[False] = False,
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
) -> ConfidenceInterval: ...


@overload
def confidence_interval(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    alternative: Alternative = "two-sided",
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    relative_to: Yardstick = "rows",
    classes: ArrayLike | None = None,
    questions: FamilyAsked,
    multilabel: bool = False,
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    sample_weight: ArrayLike | None = None,
    rng: Randomness = 0,
) -> QuestionIntervals: ...


@overload
def confidence_interval(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    confidence_level: float = 0.95,
    alternative: Alternative = "two-sided",
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    relative_to: Yardstick = "rows",
    classes: ArrayLike | None = None,
    questions: None = None,
    multilabel: Literal[True],
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    sample_weight: ArrayLike | None = None,
    rng: Randomness = 0,
) -> QuestionIntervals: ...


@frames_follow
def confidence_interval(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    alternative: Alternative = "two-sided",
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    relative_to: Yardstick = "rows",
    classes: ArrayLike | None = None,
    questions: QuestionsAsked | None = None,
    multilabel: bool = False,
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
) -> ConfidenceInterval | QuestionIntervals:
    """Return confidence limits for a calibration error, without a threshold.

    Parameters
    ----------
    y_true, y_prob, confidence_level, method, measure, variation, relative_to, sample_weight, pos_label, rng
        As in `certify`.
    classes, questions, multilabel
        As in `cutoff_calibration_error`, for ``y_prob`` of shape (n, K).
    cluster, cluster_target, max_cluster_size, serial
        As in `certify`, for rows in clusters.
    threshold, cost_false_positive, cost_false_negative
        As in `certify`, for ``measure="risk_gap"``.
    alternative : {"two-sided", "less", "greater"}
        Two limits that hold together with ``confidence_level``; an upper limit only ("the error is less than"); a lower
        limit only ("the error is greater than").

    Returns
    -------
    ConfidenceInterval, or QuestionIntervals
        The estimate, its limits and what they rest on; where several questions are asked, those of each.

    Examples
    --------
    >>> tally = Tally.from_counts(forecast=[0.2, 0.5, 0.8], rows=[400, 300, 300], events=[85, 141, 236])
    >>> print(confidence_interval(tally, alternative="less", method="exact"))
    With 95% confidence the Cutoff calibration error of these forecasts is at most 0.03433 (estimate 0.01300, 1,000
    rows, exact method).
    This assumes that given their forecasts the outcomes are independent; forecaster, limit, method and level were
    fixed without looking at these outcomes.
    """
    kind = judged_measure(measure, variation, threshold, cost_false_positive, cost_false_negative)
    question = check_clusters(cluster is not None or are_clustered(y_true), cluster_target, max_cluster_size, serial)
    plan = check_plan(method, kind, confidence_level, relative_to, question)
    check_choice(alternative, "alternative", ALTERNATIVES)
    seed = check_seed(rng)
    family = asked_of_classes(y_true, y_prob, classes, questions, multilabel, sample_weight, pos_label)
    if family is not None:
        return family.answered(
            lambda rows: _interval(plan, _rows_asked(plan, rows, None, cluster, None, None), alternative, seed),
            lambda several: interval_family(plan, several, alternative, seed, opened=_column_opener(plan, cluster)),
            error=kind.promising(kind.thresholds),
        )
    source = _rows_asked(plan, y_true, y_prob, cluster, sample_weight, pos_label)
    return _interval(plan, source, alternative, seed)


def _interval(plan: Plan, source: Tally | RowSource, alternative: str, seed: int) -> ConfidenceInterval:
    each = delta_of_each(plan.delta, 2) if alternative == "two-sided" else plan.delta
    found = evaluate(
        plan,
        source,
        seed,
        lower_delta=None if alternative == "less" else each,
        upper_delta=None if alternative == "greater" else each,
    )
    _warn(found.caution)
    return interval_of(plan, found, alternative)


def _rows_asked(
    plan: Plan, y_true: Any, y_prob: Any, cluster: Any, sample_weight: Any, pos_label: Any
) -> Tally | RowSource:
    """Return the rows, with their clusters where these count."""
    if plan.clusters is None:
        return as_source(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    return as_clustered(y_true, y_prob, cluster=cluster, sample_weight=sample_weight, pos_label=pos_label)


def _column_opener(plan: Plan, cluster: Any) -> Opening:
    """Return what makes a source of the rows of a question, with their clusters where these count."""
    if plan.clusters is None:
        return source_of
    return lambda rows: as_clustered(rows, cluster=cluster)


def _group_asked(plan: Plan, rows: Any) -> Tally | RowSource:
    return as_source(rows) if plan.clusters is None else as_clustered(rows)


def _warn(caution: str | None) -> None:
    """Warn whoever called the public function that calls the one that calls this one."""
    if caution is not None:
        warnings.warn(caution, CalibrationWarning, stacklevel=5)

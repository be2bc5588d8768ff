"""Before the data: how many rows a certificate takes, and what no procedure can promise about the ECE.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import count
from typing import Any, ClassVar

import numpy as np

from calibrant.certificates.cautions import cautions_on, saving_cautions
from calibrant.certificates.cluster_plans import HIGHEST_CLUSTER_POWER, ClusterPlan, ClustersAsked
from calibrant.certificates.clusters import CLUSTER_TARGETS, ClusterTarget, check_clusters
from calibrant.certificates.event_shares import RATE_SHARE, check_yardstick, of_events
from calibrant.certificates.limit_words import limit_said
from calibrant.certificates.methods.base import CertificateMethod
from calibrant.certificates.methods.registry import METHODS, Method
from calibrant.certificates.results import YARDSTICKS, Yardstick
from calibrant.certificates.samples import Law, Samples, draw, law_of, laws_of
from calibrant.core.binomial import at_least
from calibrant.core.chernoff import mean_interval
from calibrant.core.errors import InputError
from calibrant.core.results import UNIT, Result
from calibrant.core.types import ArrayLike, FloatArray
from calibrant.core.voices import Either, Option, Phrase
from calibrant.core.words import level_said, percent
from calibrant.measures.judged import JudgedMeasure, judged_measure
from calibrant.measures.registry import MEASURES, Measure
from calibrant.measures.savings import over_thresholds
from calibrant.rows.checks import (
    check_choice,
    check_confidence,
    check_forecasts,
    check_number,
    check_same_index,
    check_weights,
)
from calibrant.rows.costs import WithCosts

HIGHEST_POWER = 0.999
"""Beyond this too few of the simulated data sets are left to plan by."""

_MOST_ROWS = 2**53
_DRAWS, _LEVELS = 2000, 64  # simulated data sets, and distinct forecasts in each
_MORE_DRAWS, _FEWER_LEVELS = 8000, 32  # for a power above _USUAL_POWER
_USUAL_POWER = 0.99
_FEWER_DRAWS, _MODEST_POWER = 500, 0.95  # for errors whose limits are found one by one
_AT_ONCE = 250  # data sets whose numbers fit into a processor's cache
_USUAL_RANGE = 2.3  # of Brownian motion, in nine of ten cases and a little more
_DOUBT = 0.01  # chance that the power of a plan is below the promise because of the draws
_PATIENCE = 5  # trials that aim before the search halves what is left
_MANY_LEVELS = 1024  # for lines, which may be drawn between any two forecasts
_MOST_ERROR = 4.0  # as a share of events; of rows it is 1
_CLOSE = 200  # a plan is found to one part in so many


@dataclass(frozen=True)
class RowsNeeded(WithCosts, Result):
    """How many rows it takes to certify a calibrated forecaster.

    Attributes
    ----------
    rows : int
        Rows with which a calibrated forecaster is certified with probability ``power``.
    paper_rows : int or None
        The same with the margin of the paper's Proposition 4.1; None for errors that it does not cover.
    max_error, confidence_level, power : float
        What is to be certified, how surely, and how likely success should be.
    method : str
        The method planned for.
    brier : float
        Mean squared residual assumed.
    measure : str
        The error planned for.
    relative_to : str
        What ``max_error`` is a share of: "rows" or "events".
    thresholds : tuple of float or None
        The lowest and the highest threshold that a risk gap is about; None for other errors.
    cost_false_positive, cost_false_negative : float or None
        The costs that were translated into a threshold, if any.
    clusters : int or None
        Clusters that these rows are in, where rows of one cluster belong together; None for independent rows.
    cluster_size, intra_cluster_correlation : float or None
        Rows of a cluster, on average, and the correlation of two outcomes of one cluster, that were planned for.
    cluster_target : str
        What counts once: each of the "rows", or each of the "clusters".
    cautions : tuple of str
        Why a certificate of this limit would say little about forecasts of events this rare, and what to plan for
        instead; empty where it would not.
    """

    rows: int
    paper_rows: int | None
    max_error: float
    confidence_level: float
    power: float
    method: str
    brier: float
    measure: str = "cutoff"
    relative_to: str = "rows"
    thresholds: tuple[float, float] | None = None
    cost_false_positive: float | None = None
    cost_false_negative: float | None = None
    clusters: int | None = None
    cluster_size: float | None = None
    intra_cluster_correlation: float | None = None
    cluster_target: str = "rows"
    cautions: tuple[str, ...] = ()

    _ranges: ClassVar = dict.fromkeys(
        ("max_error", "confidence_level", "power", "brier", "intra_cluster_correlation"), UNIT
    )
    _words: ClassVar = {"measure": MEASURES, "relative_to": YARDSTICKS, "cluster_target": CLUSTER_TARGETS}

    def claim(self) -> str:
        """Say what is to be certified, in a few words."""
        limit = f"{MEASURES.words(self.measure)} of at most {limit_said(self.max_error, self.relative_to)}"
        if self.thresholds is None:
            return f"a {limit}"
        over = over_thresholds(self.thresholds, self.cost_false_positive, self.cost_false_negative)
        return f"a {limit} per case{self._limit_in_costs(self.max_error)}, at {over},"

    def __str__(self) -> str:
        level = level_said(self.confidence_level)
        paper = "" if self.paper_rows is None else f"; the paper's margin needs {self.paper_rows:,}"
        rows, alike = f"{self.rows:,} rows", ""
        if self.clusters is not None:
            counting = ", each counting once," if self.cluster_target == "clusters" else ""
            each = "row" if self.cluster_size == 1.0 else "rows"
            rows = f"{self.clusters:,} clusters of {self.cluster_size:.4g} {each} ({rows}){counting}"
            alike = f" and outcomes of one cluster have a correlation of {self.intra_cluster_correlation:.2g}"
        plan = (
            f"About {rows} certify {self.claim()} "
            f"with {level} confidence in {level_said(self.power)} of cases, if the forecaster is calibrated with "
            f"a Brier score of {self.brier:.4g}{alike} ({self.method} method{paper})."
        )
        return "\n".join([plan, *(f"Caution: {caution}" for caution in self.cautions)])


def rows_needed(
    max_error: float,
    *,
    confidence_level: float = 0.95,
    power: float = 0.9,
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    relative_to: Yardstick = "rows",
    brier: float | None = None,
    y_prob: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    cluster_size: int | None = None,
    intra_cluster_correlation: float | None = None,
    cluster: ArrayLike | None = None,
    y_true: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
) -> RowsNeeded:
    """Plan: how many rows does it take to certify a calibrated forecaster?

    Two thousand data sets of n rows are simulated, with forecasts like yours and outcomes that follow them, and the
    method's upper limit is computed for each. The answer is the fewest rows at which the limit stays below
    ``max_error`` so often that, chance in the simulation allowed for, the power is what was asked for: on rare events
    and on forecasts of every shape, and seldom more than a tenth above the fewest rows that would do. The same question
    has the same answer every time. Rare events come in whole numbers, so that a few rows more may lower the power
    slightly before they raise it.

    Parameters
    ----------
    max_error : float in (0, 1]
        The error to be certified, as in `certify`.
    confidence_level, method, variation, relative_to
        As in `certify`; a plan for a share of the events needs ``y_prob``, which says how many there will be.
    measure : {"cutoff", "smooth", "bounded_variation", "risk_gap"}
        The error to be certified. Limits of the other errors depend on how often forecasts repeat: there is no plan for
        them. For the risk gap pass ``y_prob``: it takes far fewer rows where forecasts differ than where they are
        alike, which a Brier score does not say.
    threshold, cost_false_positive, cost_false_negative
        As in `certify`, for ``measure="risk_gap"``.
    power : float above 0, up to 0.999
        How likely the certificate should be, if the forecaster is calibrated.
    brier : float in (0, 0.25]
        Mean of (y - p)^2 you expect. Forecasts of many shapes have the same score: the plan is for the harder of two,
        forecasts near one p, all distinct, and such forecasts near p and near 1 - p in equal parts.
    y_prob : array-like
        Or forecasts like those to come, which say more: the Brier score of a calibrated forecaster is the mean of
        p (1 - p).
    sample_weight : array-like, optional
        How many rows have each of them, or what share. A pilot sample of clusters takes none.
    cluster_size : int, optional
        Rows of each cluster, where rows come in clusters of which rows belong together: the plan is then for a number
        of clusters, each of so many rows. It needs ``intra_cluster_correlation``, and is for the Cutoff error.
    intra_cluster_correlation : float in [0, 1], optional
        How much outcomes of one cluster go together beyond what forecasts explain: 0.01 to 0.05 for patients of one
        site, more for visits of one patient. `check_independence` finds it from rows.
    cluster : array-like, optional
        Or a cluster for each forecast of ``y_prob``, a pilot sample: clusters to come have the sizes and forecasts of
        these, and the correlation that ``y_true`` shows, or the one that is named.
    y_true : array-like, optional
        Outcomes of a pilot sample.
    cluster_target, max_cluster_size, serial
        As in `certify`, for clusters.

    Returns
    -------
    RowsNeeded
        The number of rows, or of clusters, with what was asked and supposed.

    Examples
    --------
    >>> print(rows_needed(0.05, brier=1 / 6, method="hoeffding"))
    About 4,601 rows certify a Cutoff calibration error of at most 0.05 with 95% confidence in 90% of cases, if the
    forecaster is calibrated with a Brier score of 0.1667 (hoeffding method; the paper's margin needs 219,334).
    """
    limit = check_number(max_error, "max_error", low=0.0, high=1.0)
    if limit == 0.0:
        raise InputError(
            "is 0", argument="max_error", value=limit, remedy="no number of rows certifies an error of exactly 0"
        )
    level = check_confidence(confidence_level)
    chance = check_number(power, "power", low=0.0, high=1.0)
    if chance in (0.0, 1.0):
        raise InputError(
            f"is {chance:g}",
            argument="power",
            value=chance,
            remedy="choose how likely success should be, between 0 and 1, as in 0.9",
        )
    if chance > HIGHEST_POWER:
        raise InputError(
            f"is {chance:g}",
            argument="power",
            value=chance,
            remedy=f"plans are made for a power of up to {HIGHEST_POWER:g}",
        )
    check_choice(method, "method", tuple(METHODS))
    judged = judged_measure(measure, variation, threshold, cost_false_positive, cost_false_negative)
    _check_plannable(judged)
    check_yardstick(judged, relative_to)
    METHODS[method].check_measure(measure)
    METHODS[method].check_level(level)
    cutoff = judged.by_intervals
    asked = ClustersAsked(cluster_size, intra_cluster_correlation, cluster, y_true, y_prob, sample_weight)
    question = check_clusters(asked.given, cluster_target, max_cluster_size, serial)
    if question is not None:
        _check_clustered(judged, method, relative_to, chance)
    else:
        asked.refuse_rest()
    if (brier is None) == (y_prob is None):
        raise InputError("pass either brier= (the mean squared residual you expect) or y_prob= (forecasts like yours)")
    event_rate: float | None = None
    draws, levels = (_DRAWS, _LEVELS) if chance <= _USUAL_POWER else (_MORE_DRAWS, _FEWER_LEVELS)
    if not cutoff and chance <= _MODEST_POWER:
        draws = _FEWER_DRAWS
    if y_prob is not None:
        forecasts = check_forecasts(y_prob)
        weights = check_weights(sample_weight, forecasts.size)
        check_same_index(y_prob=y_prob, sample_weight=sample_weight)
        variance = float(np.average(forecasts * (1.0 - forecasts), weights=weights))
        event_rate = float(np.average(forecasts, weights=weights))
        laws: tuple[Law, ...] = (law_of(forecasts, weights, levels if judged.thresholds is None else _MANY_LEVELS),)
    elif relative_to == "events":
        raise InputError(
            Phrase(
                "{relative} needs to know how many events there will be, which a Brier score does not say",
                relative=Option("relative_to", "events"),
            ),
            remedy=Phrase("{how} forecasts like those to come", how=Either("pass y_prob=, that is", "name a FILE of")),
        )
    elif judged.thresholds is not None:
        raise InputError(
            Phrase(
                "{measure} needs to know how forecasts are spread, which a Brier score does not say",
                measure=Option("measure", measure),
            ),
            remedy=Phrase("{how} forecasts like those to come", how=Either("pass y_prob=, that is", "name a FILE of")),
        )
    elif sample_weight is not None:
        raise InputError(
            "was given without y_prob", argument="sample_weight", remedy="it says how many rows have each forecast"
        )
    else:
        variance = check_number(brier, "brier", low=0.0, high=0.25)
        laws = laws_of(variance, levels)
    if variance == 0.0:
        given = "brier is 0" if y_prob is None else "y_prob holds only 0 and 1"
        raise InputError(f"{given}: calibrated forecasts that are never wrong leave nothing to plan for")
    if question is not None:
        found = ClusterPlan(METHODS[method], question, limit, 1.0 - level, chance).of(asked, variance)
        return RowsNeeded(
            rows=found.rows,
            paper_rows=None,
            max_error=limit,
            confidence_level=level,
            power=chance,
            method=method,
            brier=variance,
            clusters=found.clusters,
            cluster_size=found.size,
            intra_cluster_correlation=found.correlation,
            cluster_target=question.target,
            cautions=_cautions(limit, event_rate, variance, judged, relative_to, clustered=True),
        )

    def fewest(name: str) -> int:
        plan = _Plan(METHODS[name], judged, relative_to, 1.0 - level)
        return _planned_rows(plan, laws, variance, limit, chance, draws)

    return RowsNeeded(
        rows=fewest(method),
        paper_rows=fewest("paper") if cutoff else None,
        measure=measure,
        max_error=limit,
        confidence_level=level,
        power=chance,
        method=method,
        brier=variance,
        relative_to=relative_to,
        thresholds=None if judged.thresholds is None else (judged.thresholds.low, judged.thresholds.high),
        cost_false_positive=judged.costs[0],
        cost_false_negative=judged.costs[1],
        cautions=_cautions(limit, event_rate, variance, judged, relative_to),
    )


def _cautions(
    limit: float,
    event_rate: float | None,
    variance: float,
    measure: JudgedMeasure,
    relative_to: str,
    *,
    clustered: bool = False,
) -> tuple[str, ...]:
    """Return why certificates of this limit would be cautioned, for calibrated forecasts with so many events."""
    if measure.thresholds is not None:
        assert event_rate is not None
        return saving_cautions(limit, event_rate, measure.thresholds)
    if event_rate is not None:
        return cautions_on(limit, event_rate, relative_to, rows_only=clustered)
    rarest = (1.0 - math.sqrt(1.0 - 4.0 * variance)) / 2.0  # no calibrated forecasts of rarer events have this score
    return tuple(
        Phrase(
            "Events may be as rare as {rarest}, by this Brier score. If so: {caution}",
            rarest=percent(rarest),
            caution=caution,
        )
        for caution in cautions_on(limit, rarest, relative_to, rows_only=clustered)
    )


@dataclass(frozen=True)
class _Plan:
    """What is planned for: whose limits, of which error, as a share of what."""

    method: CertificateMethod
    measure: JudgedMeasure
    relative_to: str
    delta: float

    def limits(self, samples: Samples) -> FloatArray:
        """Return the upper limit of each data set."""
        if self.relative_to == "events":
            found = self.method.planned_share(samples, self.delta) if self.measure.by_intervals else None
            if found is None:
                spent = RATE_SHARE * self.delta
                errors = replace(self, relative_to="rows", delta=self.delta - spent).limits(samples)
                rates = [mean_interval(float(events), samples.size, spent)[0] for events in samples.events.sum(axis=1)]
                found = np.array([of_events(*each) for each in zip(errors.tolist(), rates, strict=True)])
            return found
        if self.measure.thresholds is not None:
            found = self.method.planned_saving(samples, self.measure.thresholds, self.delta)
        else:
            found = self.method.planned(samples, self.delta) if self.measure.by_intervals else self._of_measure(samples)
        return np.minimum(found, 1.0)

    def _of_measure(self, samples: Samples) -> FloatArray:
        """Return the limits of an error that is found tally by tally.

        Weights of total variation M gain M/2 times what an interval gains where joined forecasts show too little.
        """
        measure = self.measure
        found = [
            measure.upper(tally, tally, measure.estimate(tally), self.delta, self.method) for tally in samples.tallies()
        ]
        return np.array(found) + (measure.factor - 1.0) * samples.inside / samples.size


@lru_cache(maxsize=64)  # whoever compares methods asks for the rows of the paper's margin again and again
def _planned_rows(plan: _Plan, laws: tuple[Law, ...], variance: float, limit: float, power: float, draws: int) -> int:
    """Return the rows that a plan needs for each of the laws, the harder one deciding."""
    wanted = _successes(draws, power)

    def reached(law: Law, rows: int) -> float:
        """Return the limit that is not exceeded as often as the power asks for."""
        limits = _limits(plan, draw(law, rows, draws))
        return min(float(np.partition(limits, wanted - 1)[wanted - 1]), _MOST_ERROR)

    aim = limit if plan.relative_to == "rows" else limit * float(laws[0].share @ laws[0].forecast)
    margin = _USUAL_RANGE * math.sqrt(variance) + plan.method.usual_margin(variance, plan.delta)
    rows = min(math.ceil(margin**2 / aim**2), _MOST_ROWS)
    for law in laws:
        rows = _fewest_rows(partial(reached, law), limit, rows, at_least=law is not laws[0])
    return rows


def _successes(draws: int, power: float) -> int:
    """Return how many of the draws must succeed for the power to be shown, with `_DOUBT`."""
    successes = np.arange(1, draws + 1)
    shown = at_least(successes, draws, power) <= _DOUBT  # if the power is only just what was asked for
    return int(successes[shown.argmax()])


def _check_clustered(measure: JudgedMeasure, method: str, relative_to: str, power: float) -> None:
    """Refuse what cannot be planned for rows in clusters."""
    METHODS[method].check_clusters()
    if not measure.by_intervals:
        raise InputError(
            Phrase("clusters can be planned for {cutoff} only", cutoff=Option("measure", "cutoff")),
            remedy=Phrase(
                "plan for it, or for independent rows times the design effect, 1 + (cluster size - 1) x correlation"
            ),
        )
    if relative_to != "rows":
        raise InputError(
            Phrase("clusters are covered for {rows} only", rows=Option("relative_to", "rows")),
            remedy="name the limit as a share of all rows",
        )
    if power > HIGHEST_CLUSTER_POWER:
        raise InputError(
            f"is {power:g}",
            argument="power",
            value=power,
            remedy=f"plans for clusters are made for a power of up to {HIGHEST_CLUSTER_POWER:g}",
        )


def _check_plannable(measure: JudgedMeasure) -> None:
    """Refuse errors that cannot be planned for."""
    if measure.plannable:
        return
    possible = ", ".join(repr(each) for each, kind in MEASURES.items() if kind.plannable)
    raise InputError(
        Phrase(
            "{measure} has no plan: {why}",
            measure=Option("measure", measure.name),
            why=measure.no_plan,
        ),
        remedy=f"plan for one of {possible}",
    )


def _limits(plan: _Plan, samples: Samples) -> FloatArray:
    """Return the upper limit of each data set, as many of them at once as fit into a processor's cache."""
    found = []
    for first in range(0, len(samples.rows), _AT_ONCE):
        lines = slice(first, first + _AT_ONCE)
        found.append(plan.limits(replace(samples, rows=samples.rows[lines], events=samples.events[lines])))
    return np.concatenate(found)


def _fewest_rows(reached: Callable[[int], float], limit: float, rows: int, *, at_least: bool) -> int:
    """Return the fewest rows, to one part in `_CLOSE`, at which the limit reached is at most the one asked for.

    The search begins at ``rows``, and is over if they are enough and no fewer are wanted (``at_least``).
    """
    low, high = 0, 2 * _MOST_ROWS  # too few, and enough
    before = None
    for trial in count():
        found = reached(rows)
        if found <= limit:
            if at_least and before is None:
                break
            high = rows
        else:
            low = rows
        if low == _MOST_ROWS:
            raise InputError(
                "is so small that more than 2^53 rows would be needed",
                argument="max_error",
                remedy="choose a larger one",
            )
        if high - low <= max(1, high // _CLOSE):
            return high
        # A limit falls like 1 / sqrt(rows), for few events faster: as fast as it did from the last trial to this.
        slope = 0.5
        if before is not None and before[1] != found:
            slope = min(max(math.log(before[1] / found) / math.log(rows / before[0]), 0.4), 1.2)
        aim = rows * (found / limit) ** (1.0 / slope) * (1.0 - 0.4 / _CLOSE if found <= limit else 1.0 + 0.4 / _CLOSE)
        if trial >= _PATIENCE:  # where whole numbers of events make it jump
            aim = math.sqrt(max(low, 1) * high)
        before = rows, found
        least, most = low + max(1, low // (2 * _CLOSE)), high - max(1, high // (2 * _CLOSE))
        rows = min(max(round(aim), least), max(most, low + 1), _MOST_ROWS)
    return rows


def ece_hardness_bound(rows: int, *, max_error: float, confidence_level: float, effective_variance: float) -> float:
    """Bound from below how often a procedure that guarantees a small ECE must return forecasts of few values.

    If some procedure guarantees ECE <= max_error with ``confidence_level`` for every population, then its forecasts
    have an effective support (`effective_support_size`) of at most rows^2 with probability at least
    1 - 2 e (max_error + delta + 1/rows) / effective_variance, cut at 0 (Theorem 4.1 of [1]_). Near 1 means: whoever
    guarantees a small ECE has given up continuous forecasts. At 0 the theorem says nothing, which happens quickly: it
    is about small errors and high confidence.

    Parameters
    ----------
    rows : int
        Rows the procedure learns from.
    max_error, confidence_level : float
        What it guarantees.
    effective_variance : float
        Of the population, see `effective_variance`.

    Returns
    -------
    float
        A probability; 0 where the theorem says nothing.

    Examples
    --------
    >>> round(ece_hardness_bound(10_000, max_error=0.001, confidence_level=0.999, effective_variance=0.1), 4)
    0.8858
    >>> ece_hardness_bound(10_000, max_error=0.05, confidence_level=0.95, effective_variance=0.25)
    0.0
    """
    number = check_number(rows, "rows", low=1, whole=True)
    error = check_number(max_error, "max_error", low=0.0, high=1.0)
    delta = 1.0 - check_confidence(confidence_level)
    variance = check_number(effective_variance, "effective_variance", low=0.0, high=0.25)
    if variance == 0.0:
        return 0.0
    return max(0.0, 1.0 - 2.0 * math.e * (error + delta + 1.0 / number) / variance)


def effective_variance(mean_outcome: Any, gamma: float = 0.05, *, sample_weight: ArrayLike | None = None) -> float:
    """Least outcome variance on any part of the population that has a share of at least gamma.

    inf E[Var(Y | X) 1{X in A}] over sets A with P(A) >= gamma: the sum of the smallest conditional variances that
    together carry a share gamma of the rows (the last row counts in part). It measures how much noise is left even
    where outcomes are most predictable, and decides how strongly Theorem 4.1 of [1]_ bites. (Var >= s everywhere makes
    it at least gamma s, not s as a remark in the paper has it.)

    Parameters
    ----------
    mean_outcome : array-like of shape (n,)
        The true event probability of each row: known in a simulation, an assumption otherwise.
    gamma : float in [0, 1]
        The share.
    sample_weight : array-like of shape (n,), optional
        Nonnegative weights.

    Returns
    -------
    float
        Between 0 and 1/4.

    Examples
    --------
    >>> effective_variance([0.5, 0.5, 0.0, 1.0], gamma=0.75)
    0.0625
    """
    means = check_forecasts(mean_outcome, name="mean_outcome")
    share = check_number(gamma, "gamma", low=0.0, high=1.0)
    weights = check_weights(sample_weight, means.size)
    check_same_index(mean_outcome=mean_outcome, sample_weight=sample_weight)
    weights = np.ones(means.size) if weights is None else weights
    variance = means * (1.0 - means)
    order = np.argsort(variance)
    carried = np.concatenate([[0.0], np.cumsum(weights[order])])
    collected = np.concatenate([[0.0], np.cumsum((weights * variance)[order])])
    return float(np.interp(share * carried[-1], carried, collected) / carried[-1])

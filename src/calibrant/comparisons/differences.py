"""Differences of models on the same rows: their limits, which hold together, and where the models differ most."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from calibrant.certificates.joint_levels import delta_of_each
from calibrant.certificates.model_differences import ModelDifference
from calibrant.certificates.pair_clusters import clustered_cutoff_limits
from calibrant.certificates.pair_savings import saving_limits
from calibrant.certificates.pairs import cutoff_limits
from calibrant.certificates.scores import Score
from calibrant.comparisons.places import decisions_apart, gap_apart, score_apart, worst_apart
from calibrant.comparisons.results import ComparedModel, ScoreLimits
from calibrant.core.words import counted
from calibrant.rows.paired import PairedRows
from calibrant.rows.savings import Thresholds

_FIXED = "the models, and what is asked of them, were fixed without looking at these rows"
_WEIGHTS = "the weights were fixed beforehand"


@dataclass(frozen=True)
class Question:
    """What is asked of every two models.

    Attributes
    ----------
    reference : str or None
        The model that all others are compared with.
    margin : float or None
        By how much a model may be worse.
    level : float
        With which all limits hold together.
    seed : int
        Of random halves.
    max_cluster_size : float or None
        The most rows that a cluster can have, where it was stated.
    """

    reference: str | None
    margin: float | None
    level: float
    seed: int
    max_cluster_size: float | None = None

    @property
    def delta(self) -> float:
        """How often any of all limits may be wrong."""
        return 1.0 - self.level

    def pairs(self, names: list[str]) -> list[tuple[str, str]]:
        """Return every two models, or each with the reference."""
        if self.reference is None:
            return list(combinations(names, 2))
        return [(name, self.reference) for name in names if name != self.reference]

    def each(self, names: list[str], times: int = 1) -> float:
        """Return how often each limit of each difference may be wrong, for all to hold together."""
        return delta_of_each(self.delta, 2 * times * len(self.pairs(names)))

    def assumed_of_scores(self, rows: PairedRows, *, given: bool) -> tuple[str, ...]:
        """Return what limits of means and of their differences rest on."""
        if rows.codes is None:
            drawn = "the rows are independent draws from the population"
            if given:
                drawn = (
                    "the outcomes are independent given the forecasts, and limits speak of rows with these forecasts"
                )
        else:
            drawn = "clusters are independent of each other, while rows of one cluster may have anything to do together"
            if given:
                drawn += ", and limits speak of rows with these forecasts"
            elif self.max_cluster_size is not None:
                drawn += f", and none has more than {counted(round(self.max_cluster_size), 'row')}"
        return (drawn, _FIXED, *([] if rows.weight is None else [_WEIGHTS]))

    def assumed_of_errors(self, rows: PairedRows) -> tuple[str, ...]:
        """Return what limits of differences of errors rest on beside what those of the models do."""
        if rows.codes is None:
            return ()
        most = "these" if self.max_cluster_size is None else counted(round(self.max_cluster_size), "row")
        return (f"for differences clusters are draws from one population of clusters, none larger than {most}",)


Bounds = dict[str, tuple[float, float]]
"""Limits of each model's error, each wrong with a quarter of the probability that a limit of a difference is."""


def cutoff_differences(
    rows: PairedRows, models: dict[str, ComparedModel], question: Question
) -> tuple[ModelDifference, ...]:
    """Return the differences of Cutoff errors, row by row."""
    delta = question.each(list(models))
    found = []
    for first, second in question.pairs(list(models)):
        lower, upper, *sums = cutoff_limits(rows, first, second, question.seed, delta)
        where = worst_apart(rows, first, second, *sums)
        found.append(_difference(models[first], models[second], (lower, upper), question, where))
    return tuple(found)


def clustered_differences(
    rows: PairedRows, models: dict[str, ComparedModel], bounds: Bounds, question: Question
) -> tuple[ModelDifference, ...]:
    """Return the differences of Cutoff errors, the smaller of limits cluster by cluster and of those of both errors."""
    delta = question.each(list(models)) / 2.0
    found = []
    for first, second in question.pairs(list(models)):
        joint = clustered_limits(rows, first, second, bounds, question, delta)
        found.append(_difference(models[first], models[second], joint, question, worst_apart(rows, first, second)))
    return tuple(found)


def clustered_limits(
    rows: PairedRows, first: str, second: str, bounds: Bounds, question: Question, delta: float
) -> tuple[float, float]:
    """Return the limits of one difference of Cutoff errors."""
    limits = clustered_cutoff_limits(rows, first, second, question.seed, delta, question.max_cluster_size)
    return _joint(limits, bounds[first], bounds[second])


def saving_differences(
    rows: PairedRows, models: dict[str, ComparedModel], bounds: Bounds, thresholds: Thresholds, question: Question
) -> tuple[ModelDifference, ...]:
    """Return the differences of risk gaps: the smaller of limits row by row, and of those of both gaps."""
    delta = question.each(list(models)) / 2.0
    found = []
    for first, second in question.pairs(list(models)):
        limits = saving_limits(rows, first, second, thresholds, question.seed, delta)
        joint = _joint(limits, bounds[first], bounds[second])
        where = gap_apart(rows, first, second, thresholds)
        found.append(_difference(models[first], models[second], joint, question, where))
    return tuple(found)


def _joint(limits: tuple[float, float], first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    return max(limits[0], first[0] - second[1]), min(limits[1], first[1] - second[0])


def _difference(
    first: ComparedModel, second: ComparedModel, limits: tuple[float, float], question: Question, where: str | None
) -> ModelDifference:
    """Return a difference of calibration errors on the same rows."""
    estimate = first.limits[0].estimate - second.limits[0].estimate
    return ModelDifference.between(
        first.name, second.name, estimate, limits, margin=question.margin, paired=True, where=where
    )


def differences_of_limits(models: dict[str, ComparedModel], question: Question) -> tuple[ModelDifference, ...]:
    """Return the differences that follow from the limits of both errors."""
    found = []
    for first, second in question.pairs(list(models)):
        one, other = models[first].limits[0], models[second].limits[0]
        limits = one.lower - other.upper, one.upper - other.lower
        found.append(
            ModelDifference.between(first, second, one.estimate - other.estimate, limits, margin=question.margin)
        )
    return tuple(found)


def score_limits(rows: PairedRows, name: str, scores: tuple[Score, ...], question: Question) -> tuple[ScoreLimits, ...]:
    """Return the scores of one model, whose limits hold together with those of all others."""
    delta = delta_of_each(question.delta, 2 * len(rows.forecasts) * len(scores))
    found = []
    for score in scores:
        estimate, lower, upper = score.of(rows, name).limits(rows, delta, question.max_cluster_size)
        found.append(ScoreLimits(estimate, lower, upper, rows.rows, score.threshold))
    return tuple(found)


def score_differences(rows: PairedRows, scores: tuple[Score, ...], question: Question) -> tuple[ModelDifference, ...]:
    """Return the differences of scores, row by row or cluster by cluster."""
    names = list(rows.forecasts)
    delta = question.each(names, len(scores))
    found = []
    for first, second in question.pairs(names):
        for score in scores:
            values = score.difference(rows, first, second)
            estimate, lower, upper = values.limits(rows, delta, question.max_cluster_size)
            if score.threshold is None:
                where = score_apart(rows, first, second, values.each)
            else:
                where = decisions_apart(rows, first, second, score.threshold)
            found.append(
                ModelDifference.between(
                    first,
                    second,
                    estimate,
                    (lower, upper),
                    margin=question.margin,
                    larger_is_better=score.larger_is_better,
                    paired=True,
                    threshold=score.threshold,
                    where=where,
                )
            )
    return tuple(found)

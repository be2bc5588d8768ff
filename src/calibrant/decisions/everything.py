"""All there is to say about acting on forecasts, at once: what it loses, what could be saved, what is guaranteed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, overload

import numpy as np

from calibrant.certificates.clusters import ClusterTarget, check_clusters
from calibrant.certificates.joint_levels import level_of_each
from calibrant.certificates.methods.registry import Method
from calibrant.core.frames import frames_follow
from calibrant.core.results import UNIT, PerGroup, Result
from calibrant.core.types import ArrayLike, ClassLabel, Label, Randomness
from calibrant.core.words import in_columns, level_said, percent, rounded_up
from calibrant.decisions.benefit_results import NetBenefit
from calibrant.decisions.benefits import with_known_limits
from calibrant.decisions.gaps import best_threshold, risk_gap
from calibrant.decisions.guarantees import DecisionGuarantee, decision_guarantee, limit_savings
from calibrant.decisions.results import (
    WRAPPERS,
    BestThreshold,
    DecisionRisk,
    RiskGap,
    Wrapper,
)
from calibrant.decisions.risks import decision_risk
from calibrant.measures.registry import MEASURES
from calibrant.measures.savings import REDRAWING
from calibrant.rows.checks import check_choice, check_confidence, check_seed
from calibrant.rows.costs import threshold_or_costs
from calibrant.rows.groups import are_grouped, by_group
from calibrant.rows.intake import GroupsLike, RowsLike, are_clustered, rows_of_clusters
from calibrant.rows.promised import as_clustered, as_source, as_tally, in_groups
from calibrant.rows.refinement import TooManyForecastsError
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally

_COLUMNS = ("threshold", "acted on", "loss", "net benefit", "could save", "best cutoff")


@dataclass(frozen=True)
class Decision(Result):
    """What acting from one threshold up loses, what could be saved, and what is guaranteed.

    Attributes
    ----------
    risk : DecisionRisk
        The mean loss on these rows.
    net_benefit : NetBenefit or None
        The same loss as decision curves show it, with those of acting on all rows and on none, and limits where the
        rows tell them; None at threshold 1, where it is not defined.
    gap : RiskGap or None
        What a better use of the same forecasts could save; None where the distinct forecasts are too many to tell.
    best_threshold : BestThreshold or None
        The cutoff that would have been best on these rows; None likewise.
    guarantee : DecisionGuarantee
        What no re-drawing of the line between acting and not acting saves in expectation, at this threshold; from a
        limit for all thresholds together, so that reading any of them is covered.
    """

    risk: DecisionRisk
    net_benefit: NetBenefit | None
    gap: RiskGap | None
    best_threshold: BestThreshold | None
    guarantee: DecisionGuarantee

    def __str__(self) -> str:
        return "\n".join(
            str(each) for each in (self.risk, self.net_benefit, self.gap, self.guarantee) if each is not None
        )

    def numbers(self) -> dict[str, float | None]:
        """Return the numbers behind the words; None where there is none (or where it would be best never to act)."""
        best = self.best_threshold
        return {
            "threshold": float(self.risk.threshold),
            "acted": float(self.risk.acted),
            "risk": float(self.risk.risk),
            "net_benefit": None if self.net_benefit is None else float(self.net_benefit.net_benefit),
            "gap": None if self.gap is None else self.gap.gap,
            "best_cutoff": None if best is None else best.cutoff,
            "guaranteed": self.guarantee.nondecreasing,
        }

    def cells(self) -> tuple[str, ...]:
        """Return the line of this threshold in a table."""
        best = self.best_threshold
        return (
            f"{self.risk.threshold:.4g}",
            percent(float(self.risk.acted)),
            f"{self.risk.risk:.5f}",
            "-" if self.net_benefit is None else f"{self.net_benefit.net_benefit:.5f}",
            "-" if self.gap is None else f"{self.gap.gap:.5f}",
            "-" if best is None else "never act" if best.cutoff is None else f"{best.cutoff:.4g}",
        )


@dataclass(frozen=True)
class Decisions(Result):
    """What acting on forecasts loses, at one or several thresholds, what could be saved, and what is guaranteed.

    Attributes
    ----------
    decisions : tuple of Decision
        One per threshold.
    guarantee : DecisionGuarantee
        What no re-drawing of the line saves in expectation, whatever the threshold.
    refusal : str or None
        Why what could be saved was left out, where it was.
    """

    decisions: tuple[Decision, ...]
    guarantee: DecisionGuarantee
    refusal: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.decisions:
            self._refuse("decisions", self.decisions, "not one of them")

    def frame(self, backend: Any = None) -> Any:
        """Return one row per threshold."""
        return self._framed(_transposed([each.numbers() for each in self.decisions]), backend)

    def table(self) -> str:
        """Write a line for each threshold."""
        return in_columns(_COLUMNS, [each.cells() for each in self.decisions])

    def __str__(self) -> str:
        if len(self.decisions) == 1:
            lines = [str(self.decisions[0])]
        else:
            lines = [
                "Acting on forecasts of at least the threshold, on these rows (losses per row; the best cutoff was "
                "chosen on them, so expect less of it on others):",
                self.table(),
                str(self.guarantee),
            ]
        return "\n".join(
            lines if self.refusal is None else [*lines, f"What could be saved is left out: {self.refusal}."]
        )


@dataclass(frozen=True)
class GroupDecisions(PerGroup[Decisions], Result):
    """What acting on forecasts loses in each group, what could be saved, and what is guaranteed in all together.

    Attributes
    ----------
    groups : tuple
        The groups' labels, sorted.
    decisions : tuple of Decisions
        Per group; each guarantee at level 1 - (1 - confidence_level) / (number of groups).
    confidence_level : float
        With which the guarantees of all groups hold together.
    """

    groups: tuple[Label, ...]
    decisions: tuple[Decisions, ...]
    confidence_level: float

    _parts: ClassVar = "decisions"
    _ranges: ClassVar = {"confidence_level": UNIT}

    def frame(self, backend: Any = None) -> Any:
        """Return one row per group and threshold."""
        return self._framed(_transposed([{"group": label, **each.numbers()} for label, each in self._lines()]), backend)

    def __str__(self) -> str:
        return self.said()

    def said(self, *, by: str | None = None) -> str:
        """Say what was found, in one line per group and threshold.

        Parameters
        ----------
        by : str, optional
            What the groups are groups of.
        """
        assumed = dict.fromkeys(words for each in self.decisions for words in each.guarantee.assumptions)
        return "\n".join([self.headline(by=by), self.table(), f"This assumes that {'; '.join(assumed)}."])

    def headline(self, *, by: str | None = None) -> str:
        """Say what the table shows."""
        of = "" if by is None else f" of {by!r}"
        limited = MEASURES.words(self.decisions[0].guarantee.measure)
        return (
            f"Per group{of}; the last column is the most that any {REDRAWING} saves in expectation (by the {limited}), "
            f"with {level_said(self.confidence_level)} confidence for all groups together:"
        )

    def table(self) -> str:
        """Write a line for each group and threshold."""
        lines = [
            (str(label), *each.cells(), f"at most {rounded_up(each.guarantee.nondecreasing)}")
            for label, each in self._lines()
        ]
        return in_columns(("group", *_COLUMNS, "guaranteed"), lines)

    def _lines(self) -> Iterator[tuple[Any, Decision]]:
        for label, found in self.pairs():
            for each in found.decisions:
                yield label, each


def _transposed(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


@overload
def decide(
    y_true: GroupsLike,
    *,
    threshold: ArrayLike | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    wrapper: Wrapper = "nondecreasing",
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    rng: Randomness = 0,
) -> GroupDecisions: ...


@overload
def decide(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    threshold: ArrayLike | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    wrapper: Wrapper = "nondecreasing",
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    by: None = None,
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
) -> Decisions: ...


@overload
def decide(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    threshold: ArrayLike | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    wrapper: Wrapper = "nondecreasing",
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    by: ArrayLike,
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
) -> GroupDecisions: ...


@frames_follow
def decide(
    y_true: RowsLike | GroupsLike,
    y_prob: ArrayLike | None = None,
    *,
    threshold: ArrayLike | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    wrapper: Wrapper = "nondecreasing",
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    by: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
) -> Decisions | GroupDecisions:
    """Say what acting on forecasts from a threshold up loses, what could be saved, and what is guaranteed.

    `decision_risk`, `net_benefit`, `risk_gap`, `best_threshold` and `decision_guarantee` in one go. All but the last
    are about these rows; the guarantee is about cases to come, if nothing changes, and so are the limits of net
    benefit, which hold for many rows.

    Parameters
    ----------
    y_true, y_prob, threshold, cost_false_positive, cost_false_negative, sample_weight, pos_label
        As in `decision_risk`: one threshold, several, or what the two mistakes cost.
    wrapper : {"nondecreasing", "monotone", "any"}
        The recalibrations to compare with, as in `risk_gap`.
    confidence_level, method, rng
        Of the upper limit behind the guarantee, as in `confidence_interval`: that of the risk gap over all thresholds
        together or, with the methods "exact" and "paper", that of the Cutoff calibration error.
    by : array-like of shape (n,), optional
        A group per row, chosen beforehand: an answer per group, the guarantees of all groups true together.
    cluster, cluster_target, max_cluster_size, serial
        As in `certify`, for rows in clusters: the guarantee then counts clusters. Losses are those of the rows.

    Returns
    -------
    Decisions, or GroupDecisions with ``by``
        Prints as sentences; ``frame()`` gives a line per threshold. Of a source with more distinct forecasts than fit
        in memory, what could be saved is left out and ``refusal`` says why; the rest is exact.

    See Also
    --------
    decision_risk, net_benefit, risk_gap, best_threshold, decision_guarantee : the parts.

    Examples
    --------
    >>> from calibrant import Tally
    >>> tumours = Tally.from_counts(forecast=[0.1, 0.4, 0.8], rows=[500, 300, 200], events=[70, 120, 150])
    >>> found = decide(tumours, threshold=[0.12, 0.5])
    >>> [(round(each.risk.risk, 4), round(each.gap.gap, 4)) for each in found.decisions]
    [(0.0892, 0.01), (0.12, 0.0)]
    >>> print(found)
    Acting on forecasts of at least the threshold, on these rows (losses per row; the best cutoff was chosen on them,
    so expect less of it on others):
      threshold  acted on     loss  net benefit  could save  best cutoff
      0.12          50.0%  0.08920      0.23864     0.01000  0
      0.5           20.0%  0.12000      0.10000     0.00000  0.5
    With 95% confidence no re-drawing of the line between acting and not acting ...
    """
    at, costs = threshold_or_costs(threshold, cost_false_positive, cost_false_negative)
    check_choice(wrapper, "wrapper", tuple(WRAPPERS))
    level = check_confidence(confidence_level)
    question = _Question(
        asked=({"cost_false_positive": costs[0], "cost_false_negative": costs[1]},)
        if costs[0] is not None
        else tuple({"threshold": each} for each in np.atleast_1d(at).tolist()),
        wrapper=wrapper,
        limits={"method": method, "rng": check_seed(rng)},
        clusters={"cluster_target": cluster_target, "max_cluster_size": max_cluster_size, "serial": serial},
        clustered=cluster is not None or are_clustered(y_true),
    )
    check_clusters(question.clustered, **question.clusters)
    if by is None and not are_grouped(y_true):
        columns = {"sample_weight": sample_weight, "pos_label": pos_label}
        if not question.clustered:
            return question.answer(level, y_true, y_prob, **columns)
        return question.answer(level, as_clustered(y_true, y_prob, cluster=cluster, **columns))
    rows = in_groups(y_true, y_prob, by=by, cluster=cluster, sample_weight=sample_weight, pos_label=pos_label)
    each_level = level_of_each(level, len(rows.groups))
    return GroupDecisions(rows.groups, by_group(rows, lambda each: question.answer(each_level, each)), level)


@dataclass(frozen=True)
class _Question:
    """What is asked of every group: fixed before any row is looked at."""

    asked: tuple[dict[str, Any], ...]
    wrapper: Wrapper
    limits: dict[str, Any]
    clusters: dict[str, Any]
    clustered: bool

    def answer(self, confidence_level: float, *rows: Any, **columns: Any) -> Decisions:
        refusal = None
        data: Tally | RowSource
        plain = (rows_of_clusters(rows[0]),) if self.clustered else rows
        try:
            data = as_tally(*plain, **columns)
        except TooManyForecastsError as error:
            data, refusal = as_source(*plain, **columns), error.phrase
        judged = rows[0] if self.clustered else data
        counted: Any = judged
        if self.clustered:
            question = check_clusters(True, **self.clusters)
            counted = data if question is None else question.rows(rows[0])
        interval = limit_savings(judged, confidence_level=confidence_level, **self.limits, **self.clusters)
        return Decisions(
            decisions=tuple(
                Decision(
                    risk=(risk := decision_risk(data, **asked)),
                    net_benefit=None
                    if risk.threshold == 1.0
                    else with_known_limits(
                        counted,
                        threshold=risk.threshold,
                        confidence_level=confidence_level,
                        serial=self.clusters["serial"],
                    ),
                    gap=None if refusal is not None else risk_gap(data, wrapper=self.wrapper, **asked),
                    best_threshold=None if refusal is not None else best_threshold(data, **asked),
                    guarantee=decision_guarantee(interval, **asked),
                )
                for asked in self.asked
            ),
            guarantee=decision_guarantee(interval),
            refusal=refusal,
        )

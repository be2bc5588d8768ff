"""Rows in clusters: what is asked of them, what they are worth, and how results say so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from calibrant.certificates.betting import HIGHEST_RATE
from calibrant.certificates.cluster_limits import ClusterLimits, Dependence
from calibrant.certificates.margins import VARIANCE_SHARE
from calibrant.core.errors import InputError
from calibrant.core.results import UNIT, Result
from calibrant.core.voices import Argument, Option, Phrase
from calibrant.core.words import counted, measured, percent
from calibrant.rows.checks import check_choice, check_number
from calibrant.rows.clusters import ClusteredSource
from calibrant.rows.grids import FIRST_GRID
from calibrant.rows.intake import few_in_memory, rows_of_clusters
from calibrant.rows.tally import Tally, Totals
from calibrant.rows.weights import effective_rows

ClusterTarget = Literal["rows", "clusters"]
CLUSTER_TARGETS: tuple[str, ...] = get_args(ClusterTarget)

FEW_CLUSTERS = "few_clusters"
"""The code of a caution that no outcomes could bring the limit low enough."""

LARGE_CLUSTER = "large_cluster"
"""The code of a caution that one cluster holds most of the rows."""

_LARGE = 0.5
_TELLING = 20  # clusters, of fewer of which the design effect may as well be half or twice what it comes out as
_MOST_SERIAL = 50


@dataclass(frozen=True)
class ClusterQuestion:
    """How clusters count, fixed before any row is looked at.

    Attributes
    ----------
    target : str
        What counts once: each of the "rows", or each of the "clusters".
    dependence : Dependence
        How large they can be, and how far neighbours depend on each other.
    """

    target: str
    dependence: Dependence

    @property
    def counts_rows(self) -> bool:
        """Whether clusters of one row each are independent rows, of which no more is said."""
        return self.dependence.max_size is None and self.dependence.serial == 0

    def limits(self, source: ClusteredSource, table: Totals) -> ClusterLimits:
        """Return what finds limits from the rows."""
        return ClusterLimits(source, table, self.dependence)

    def rows(self, source: ClusteredSource) -> ClusteredSource:
        """Return the rows with the weights that this target gives them; few come into memory."""
        if self.dependence.serial > 0:
            source.check_cluster_order()
        rows = few_in_memory(source)
        return rows.once_each() if self.target == "clusters" else rows


def check_clusters(clustered: bool, cluster_target: Any, max_cluster_size: Any, serial: Any) -> ClusterQuestion | None:
    """Return how clusters count; None for independent rows, of which no more may be said."""
    check_choice(cluster_target, "cluster_target", CLUSTER_TARGETS)
    apart = int(check_number(serial, "serial", low=0, high=_MOST_SERIAL, whole=True))
    most = None
    if max_cluster_size is not None:
        most = check_number(max_cluster_size, "max_cluster_size", low=1.0)
    if clustered:
        if most is not None and cluster_target == "clusters":
            raise InputError(
                Phrase(
                    "{size} is for {rows}, where large clusters count more",
                    size=Argument("max_cluster_size"),
                    rows=Option("cluster_target", "rows"),
                ),
                remedy="leave it out: each cluster counts once, however many rows it has",
            )
        return ClusterQuestion(cluster_target, Dependence(most, apart))
    given = {"max_cluster_size": most is not None, "serial": apart > 0, "cluster_target": cluster_target != "rows"}
    for name, is_given in given.items():
        if is_given:
            raise InputError(
                Phrase("{name} says something of clusters, and none were named", name=Argument(name)),
                remedy=Phrase("pass a label per row as {cluster}", cluster=Option("cluster")),
            )
    return None


@dataclass(frozen=True)
class Clusters(Result):
    """What the clusters of the rows are, and what their rows are worth.

    Attributes
    ----------
    count : int
        How many there are.
    largest_share : float
        The share of all rows, by weight, that the largest one holds.
    deff : float
        The design effect: how many times the variance of independent rows the sum of their residuals has, counted
        from the mean residual; forecasts that are off in some clusters only raise it, too.
    n_eff : float
        About how many independent rows would say as much; never more than there are.
    target : str
        What counts once: each of the "rows" (of clusters of these sizes), or each of the "clusters".
    max_size : float or None
        The largest size of a cluster of the population, where one was stated.
    serial : int
        How many places apart in the order of their labels clusters may depend on each other.
    least_limit : float
        The least that the upper limit could be, whatever the outcomes: clusters are few, or one is large.
    needed : int or None
        Where a verdict is undecided: about how many clusters like these would decide, in two digits, if the error is as
        estimated; None where these could certify nothing, whatever the outcomes, or the estimate is too close to the
        limit to say.
    """

    count: int
    largest_share: float
    deff: float
    n_eff: float
    target: str
    max_size: float | None = None
    serial: int = 0
    least_limit: float = 0.0
    needed: int | None = None

    _ranges: ClassVar = {"largest_share": UNIT, "least_limit": UNIT, "deff": (0.0, math.inf), "n_eff": (0.0, math.inf)}
    _words: ClassVar = {"target": CLUSTER_TARGETS}

    def __str__(self) -> str:
        worth = f"design effect {measured(self.deff, 1)}, worth about {self.n_eff:,.0f} independent rows"
        if not self.tell_worth:
            worth = "too few to tell how many independent rows theirs are worth"
        return f"{counted(self.count, 'cluster')}, the largest with {percent(self.largest_share)} of the rows; {worth}"

    @property
    def tell_worth(self) -> bool:
        """Whether they are enough to say how many independent rows would say as much."""
        return self.count >= _TELLING

    @property
    def of_whom(self) -> str:
        """Whom a limit speaks of, after "the population"."""
        if self.target == "clusters":
            return ", each cluster counting once,"
        if self.max_size is not None:
            return f" of clusters of at most {counted_size(self.max_size)}"
        return ", for clusters of these sizes,"

    def assumed(self, given: bool) -> str:
        """Say what is assumed of clusters; ``given`` says that forecasts are taken as fixed."""
        apart = "clusters are independent of each other"
        if self.serial:
            places = "two or more" if self.serial == 1 else f"{self.serial + 1} or more"
            apart = f"clusters {places} places apart in the order of their labels are independent"
        drawn = ""
        if given:
            drawn = ", given the forecasts"
        elif self.max_size is not None:
            drawn = f", draws from a population of clusters of at most {counted_size(self.max_size)}"
        elif self.target == "clusters":
            drawn = ", draws from a population of clusters"
        return f"{apart}{drawn}, while rows of one cluster may have anything to do with each other"


def one_row_each(rows: int) -> Phrase:
    """Say that clusters hold one row each."""
    return Phrase(
        "{cluster} tells all {rows:,} rows apart, so that they count as independent; name what several rows share",
        code="one_row_each",
        cluster=Option("cluster"),
        rows=rows,
    )


def counted_size(size: float) -> str:
    """Say how many rows a cluster has at most, or how much weight."""
    return counted(int(size), "row") if float(size).is_integer() else f"weight {size:g}"


def clusters_of(question: ClusterQuestion, limits: ClusterLimits, table: Totals, least: float) -> Clusters:
    """Return the facts about clusters, for a result."""
    deff = limits.design_effect
    rows = effective_rows(table)
    return Clusters(
        count=limits.count,
        largest_share=min(float(limits.rows.size.max()) / limits.total, 1.0),
        deff=deff,
        n_eff=rows / max(deff, 1.0),
        target=question.target,
        max_size=question.dependence.max_size,
        serial=question.dependence.serial,
        least_limit=least,
    )


def check_enough(question: ClusterQuestion, limits: ClusterLimits) -> None:
    """Refuse one cluster only, and clusters larger than what was stated."""
    if limits.count < 2:
        raise InputError(
            "holds one cluster only, and how clusters differ from each other cannot be told from one",
            argument="cluster",
            remedy="pass a label per row that tells clusters apart, or leave it out if the rows are independent",
        )
    stated, largest = question.dependence.max_size, float(limits.rows.size.max())
    if stated is not None and largest > stated * (1.0 + 1e-9):
        raise InputError(
            f"is {stated:g}, and a cluster here has {counted_size(largest)}",
            argument="max_cluster_size",
            value=stated,
            remedy="state the most that a cluster of the population can have, before looking at the rows",
        )


def open_clusters(question: ClusterQuestion, source: ClusteredSource) -> ClusterLimits:
    """Return what finds limits from rows in clusters, of which there must be enough."""
    rows = question.rows(source)
    plain = rows_of_clusters(rows)
    limits = question.limits(rows, plain if isinstance(plain, Tally) else rows.histogram(FIRST_GRID))
    check_enough(question, limits)
    return limits


def cluster_cautions(clusters: Clusters, max_error: float, enough: float) -> tuple[str, ...]:
    """Return why no verdict can be had from these clusters, or why it rests on one of them.

    ``enough`` is how many of equal size could be certified at best; infinity where no number can.
    """
    found = []
    would = f" It would take at least {enough:,} clusters, of equal size."
    if clusters.count >= enough:  # of which there are as many, so that it must be their sizes
        would = f" Their sizes differ too much: of equal size, {enough:,} could be enough."
    if clusters.least_limit > max_error:
        found.append(
            Phrase(
                "{count}, the largest with {share} of the rows, cannot certify {limit:g}, whatever the outcomes: no "
                "limit could be below {least}.{would}",
                code=FEW_CLUSTERS,
                count=counted(clusters.count, "cluster"),
                share=percent(clusters.largest_share),
                limit=max_error,
                least=_above(clusters.least_limit, max_error),
                would="" if math.isinf(enough) else would,
            )
        )
    if clusters.largest_share > _LARGE:
        found.append(
            Phrase(
                "One cluster holds {share} of the rows, so that these are hardly more than one observation. {remedy}",
                code=LARGE_CLUSTER,
                share=percent(clusters.largest_share),
                remedy=Phrase(
                    "Collect other clusters, or let each count once: {once}.",
                    once=Option("cluster_target", "clusters"),
                ),
            )
        )
    return tuple(found)


def _above(least: float, max_error: float) -> str:
    """Write what is above a limit with three decimals, or as many as show that it is."""
    return next(text for digits in range(3, 18) if float(text := f"{least:.{digits}f}") > max_error or digits == 17)


def enough_clusters(max_error: float, delta: float, serial: int = 0, *, drawn: bool = False) -> float:
    """Return how many clusters of equal size can be certified at best; infinity where no number can.

    Sizes that are drawn, with the most that was stated, take a few more.
    """
    if max_error <= 0.0:
        return math.inf
    exponent = (serial + 1) * math.log(1.0 / (delta * (1.0 - VARIANCE_SHARE)))
    sign = 1.0 if drawn else -1.0
    left = sign * math.log1p(sign * HIGHEST_RATE * max_error)
    return max(2, math.ceil(exponent / left))

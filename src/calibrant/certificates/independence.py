"""Before a verdict: do the rows of a cluster look independent of each other, and what hangs on it?"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import ClassVar

from calibrant.certificates.clusters import (
    Clusters,
    ClusterTarget,
    check_clusters,
    clusters_of,
    one_row_each,
    open_clusters,
)
from calibrant.certificates.judging import check_plan, evaluate
from calibrant.certificates.overdispersion import overdispersion_of
from calibrant.certificates.rejections import USUAL_LEVEL
from calibrant.core.errors import InputError
from calibrant.core.results import UNIT, Result
from calibrant.core.types import ArrayLike, ClassLabel
from calibrant.core.voices import Either
from calibrant.core.words import counted, level_said, measured, rounded_up
from calibrant.measures.registry import MEASURES
from calibrant.rows.clusters import ClusteredRows, ClusteredSource
from calibrant.rows.intake import RowsLike, are_clustered, few_in_memory, rows_of_clusters
from calibrant.rows.promised import as_clustered
from calibrant.rows.tally import Totals

_FEW_SQUARES = 30.0
_LEAST = 1e-12  # below, a law that rests on three moments says no more
_ASSUMED = (
    "the clusters were chosen without looking at the outcomes",
    "outcomes at neighbouring forecasts have about the same chances, whatever these are: that forecasts are off is no "
    "sign of dependence, unless they are off in some clusters and not in others",
)


@dataclass(frozen=True)
class IndependenceCheck(Result):
    """Whether rows of one cluster are more alike than independent rows would be, and what the limits would be.

    Attributes
    ----------
    rows : int
        Rows.
    pvalue : float
        How probable it is that sums over clusters differ so much, or more, if rows are independent given forecasts.
    correlation : float
        Of the outcomes of two rows of one cluster beyond what their forecasts explain; about 0 for independent rows.
    upper_rows, upper_clusters : float
        The upper limit of the Cutoff error as if rows were independent, and with clusters as what counts.
    confidence_level : float
        Of both limits.
    clusters : Clusters
        How many clusters there are, the largest share, the design effect and what the rows are worth.
    assumptions : tuple of str
        What the p-value rests on.
    notes : tuple of str
        What to keep in mind for these data.
    """

    rows: int
    pvalue: float
    correlation: float
    upper_rows: float
    upper_clusters: float
    confidence_level: float
    clusters: Clusters
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()

    _ranges: ClassVar = {
        **dict.fromkeys(("pvalue", "upper_rows", "upper_clusters", "confidence_level"), UNIT),
        "correlation": (-1.0, 1.0),
    }

    def __str__(self) -> str:
        return self.said(USUAL_LEVEL)

    def rejected(self, level: float = USUAL_LEVEL) -> bool:
        """Return whether rows show dependence at a level: when the p-value is at most that.

        Parameters
        ----------
        level : float
            How often independent rows may be taken for dependent ones.
        """
        return self.pvalue <= level

    def said(self, level: float, *, column: str = "COLUMN", remedy: str | None = None) -> str:
        """Say what was found at a level, what hangs on it, and what to do with the column that says who is in which.

        ``remedy`` is said in place of what to do, where that was done.
        """
        limits = self.limits()
        basis = f"This assumes that {'; '.join(self.assumptions)}."
        lines = [f"{self.finding(level)} {limits} {remedy or self.remedy(level, column=column)}", basis]
        return "\n".join(lines + [f"Note: {note}" for note in self.notes])

    def finding(self, level: float) -> str:
        """Say in one sentence whether rows of one cluster are alike."""
        alike = "rows of one cluster are more alike than independent rows would be"
        chance = f"{self.pvalue:.2g}" if self.pvalue >= _LEAST else f"below {_LEAST:g}"
        found = alike.capitalize() if self.rejected(level) else f"No sign that {alike}"
        # Forecasts that are off raise the design effect, too, which would be misread where rows show no dependence.
        deff = f", design effect {measured(self.clusters.deff, 1)}" if self.rejected(level) else ""
        return (
            f"{found} (p-value {chance}, correlation {self.correlation:.2g}, "
            f"{counted(self.rows, 'row')} in {counted(self.clusters.count, 'cluster')}{deff})."
        )

    def limits(self) -> str:
        """Say what upper limit rows give, and what limit clusters give."""
        return (
            f"With {level_said(self.confidence_level)} confidence the Cutoff calibration error is at most "
            f"{rounded_up(self.upper_rows)} if rows are independent, and at most {rounded_up(self.upper_clusters)} if "
            "only clusters are."
        )

    def remedy(self, level: float, *, column: str = "COLUMN") -> str:
        """Say what to do; who types commands is told the column to name."""
        call = Either("certify(..., cluster=...)", f"calibrant certify --cluster {shlex.quote(column)}")
        if self.rejected(level):
            return f"The first is not to be trusted: use {call}."
        return (
            "This does not show that rows are independent: too few clusters hide any dependence. If rows of a cluster "
            f"share what decides outcomes, use {call} all the same."
        )


def check_independence(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    *,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> IndependenceCheck:
    """Check whether rows of one cluster are more alike than independent rows would be.

    Verdicts on rows that are taken as independent are wrong far more often than they say where a patient has several
    visits, or a day many flights. Here outcomes are compared with those at neighbouring forecasts, their differences
    are added up by cluster, and the sum of squares of these sums with what independent rows would give. Forecasts that
    are off everywhere alike are no sign of dependence. The p-value is right for many rows; it is no proof of
    independence where it is large.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `certify`. Weights count for the limits and the design effect, not for the p-value.
    cluster : array-like of shape (n,)
        A label per row that says which rows may belong together: a patient, a site, a day.
    cluster_target, max_cluster_size, serial
        As in `certify`, for the limit with clusters.
    confidence_level : float
        Of the two upper limits of the Cutoff error, one for independent rows and one for clusters.

    Returns
    -------
    IndependenceCheck
        The p-value, how much alike rows of one cluster are, and both limits.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> day = np.repeat(np.arange(100), 30)
    >>> y_prob = rng.uniform(0.1, 0.5, size=3000)
    >>> weather = rng.uniform(-0.1, 0.1, size=100)[day]
    >>> found = check_independence(rng.random(3000) < y_prob + weather, y_prob, day)
    >>> found.rejected(), found.upper_clusters > found.upper_rows
    (True, True)
    """
    clustered = are_clustered(y_true)
    if cluster is None and not clustered:
        raise InputError("is missing: pass a label per row", argument="cluster")
    question = check_clusters(True, cluster_target, max_cluster_size, serial)
    assert question is not None
    plan = check_plan("adaptive", MEASURES["cutoff"], confidence_level, "rows", question)
    rows = as_clustered(y_true, y_prob, cluster=cluster, sample_weight=sample_weight, pos_label=pos_label)
    source = few_in_memory(rows)
    limits = open_clusters(question, source)
    alone = evaluate(replace(plan, clusters=None), rows_of_clusters(source), 0, upper_delta=plan.delta)
    together = evaluate(plan, source, 0, upper_delta=plan.delta)
    found = overdispersion_of(_unweighted(source, alone.table.unit_weights))
    clusters = together.clusters
    if clusters is None:
        clusters = clusters_of(question, limits, alone.table, limits.least_limit(plan.delta))
    return IndependenceCheck(
        rows=alone.table.row_total,
        pvalue=found.pvalue,
        correlation=found.correlation,
        upper_rows=alone.limits[1],
        upper_clusters=together.limits[1],
        confidence_level=plan.confidence_level,
        clusters=clusters,
        assumptions=_ASSUMED,
        notes=_notes(alone.table, clusters),
    )


def _unweighted(source: ClusteredSource, unit_weights: bool) -> ClusteredSource:
    """Return the rows without their weights, which play no part in whether they are independent."""
    if unit_weights:
        return source
    if isinstance(source, ClusteredRows):
        return ClusteredRows(replace(source.observations, sample_weight=None), source.codes)
    raise InputError(
        "was given for many rows of a scan, of which clusters are known with their weights only",
        argument="sample_weight",
        remedy="leave it out here, and name it where limits are asked for",
    )


def _notes(table: Totals, clusters: Clusters) -> tuple[str, ...]:
    if clusters.count == table.row_total:
        if clusters.serial == 0 and clusters.max_size is None:
            return (one_row_each(table.row_total),)
        return ("clusters hold one row each, so that nothing can be told of rows of one; name what several rows share",)
    squares = float(table.residual_square.sum()) / float(table.weight_max)
    if squares >= _FEW_SQUARES:
        return ()
    return (
        f"the squared residuals add up to {measured(squares, 1)}, below {_FEW_SQUARES:g}: the p-value is a rough guide "
        "here",
    )

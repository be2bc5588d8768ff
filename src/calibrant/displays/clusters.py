"""Rows in clusters as displays take them: a tally to draw, the clusters that bands count, and words for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from calibrant.certificates.cluster_limits import ClusterLimits
from calibrant.certificates.clusters import Clusters, check_clusters, check_enough
from calibrant.core.errors import InputError
from calibrant.core.voices import Option, Phrase
from calibrant.rows.clusters import ClusteredSource
from calibrant.rows.intake import are_clustered, as_clustered, as_tally, rows_of_clusters
from calibrant.rows.refinement import whole_tally
from calibrant.rows.tally import Tally


class Drawn(NamedTuple):
    """The rows to draw, with the weights by which they count, and their clusters; None for independent rows."""

    tally: Tally
    clusters: ClusterLimits | None


def rows_to_draw(
    y_true: Any,
    y_prob: Any = None,
    *,
    cluster: Any = None,
    cluster_target: str = "rows",
    serial: int = 0,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> Drawn:
    """Return the rows to draw; clusters of one row each are independent rows."""
    question = check_clusters(cluster is not None or are_clustered(y_true), cluster_target, None, serial)
    given = {"sample_weight": sample_weight, "pos_label": pos_label}
    if question is None:
        return Drawn(as_tally(y_true, y_prob, **given), None)
    rows: ClusteredSource = question.rows(as_clustered(y_true, y_prob, cluster=cluster, **given))
    tally = whole_tally(rows_of_clusters(rows))
    if question.counts_rows and rows.cluster_count == tally.row_total:
        return Drawn(tally, None)
    limits = question.limits(rows, tally)
    check_enough(question, limits)
    return Drawn(tally, limits)


def independent_said(clusters: Iterable[Clusters | None]) -> str:
    """Say what limits, each of rows in these clusters or in none, assume to be independent."""
    serial = {None if each is None else each.serial for each in clusters}
    words = ["independent rows"] if None in serial else []
    for apart in sorted(each for each in serial if each is not None):
        words.append("independent clusters" if not apart else f"clusters {apart + 1} or more places apart independent")
    return ", ".join(words)


def refuse_band(band: str, choice: str) -> InputError:
    """Return the error that a band is for independent rows only."""
    return InputError(
        Phrase("{band} is for independent rows, and these are in clusters", band=Option("band", band)),
        remedy=Phrase("use {choice}", choice=Option("band", choice)),
    )

"""A repair on trial: a recalibrator learns from half of the rows, or of the clusters, and the rest judges it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calibrant.core.errors import UndefinedError
from calibrant.core.types import FloatArray
from calibrant.measures.weighted import find_worst_interval
from calibrant.repairs.fits import Sample
from calibrant.repairs.ladder import guarded_map
from calibrant.reports.models import Model
from calibrant.reports.questions import Question, judge
from calibrant.reports.results import RepairTrial
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.intake import rows_of_clusters
from calibrant.rows.refinement import whole_tally
from calibrant.rows.tally import Tally

FEWEST_FOR_REPAIR = 40
"""With fewer rows neither half says anything."""

FEWEST_CLUSTERS = 2
"""With fewer clusters a half has no limits."""

Map = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class _Halves:
    """Rows to learn from, and rows to judge by, which are those of other clusters where there are any."""

    learned: Tally
    held_out: Tally | ClusteredRows
    clusters: tuple[int, int] | None = None


def try_repair(model: Model, tally: Tally, question: Question, level: float) -> RepairTrial:
    """Fit a recalibrator to a random half of the rows and judge the other half before and after it."""
    count = tally.row_total
    if count < FEWEST_FOR_REPAIR:
        raise UndefinedError(
            f"it takes at least {FEWEST_FOR_REPAIR} rows to learn from half of them, and there are {count}"
        )
    halves = _halves(model, tally, question)
    name, repair, ladder = guarded_map(Sample.of_tally(halves.learned), ends="inside")
    repaired = _moved(halves.held_out, repair._mapped)
    before, after = (_as_counted(each, question) for each in (halves.held_out, repaired))
    fitted_clusters, judged_clusters = halves.clusters or (None, None)
    return RepairTrial(
        recalibrator=name,
        ladder=ladder,
        fitted_rows=halves.learned.row_total,
        judged_rows=before.row_total,
        cutoff_before=find_worst_interval(before).error,
        cutoff_after=find_worst_interval(after).error,
        before=judge(halves.held_out, question, level),
        after=judge(repaired, question, level),
        brier_before=_brier(before),
        brier_after=_brier(after),
        rng=question.rng,
        fitted_clusters=fitted_clusters,
        judged_clusters=judged_clusters,
    )


def _halves(model: Model, tally: Tally, question: Question) -> _Halves:
    clusters, options = model.clusters, question.clusters
    if not isinstance(clusters, ClusteredRows) or options is None:
        return _Halves(*tally.halves(question.rng))
    count, between = clusters.cluster_count, options.serial
    first = (count - between) // 2
    if first < FEWEST_CLUSTERS:
        apart = f" and {between} between them" if between else ""
        raise UndefinedError(
            f"it takes {FEWEST_CLUSTERS} clusters to learn from, {FEWEST_CLUSTERS} others to judge by{apart}, and "
            f"there are {count}"
        )
    place = np.arange(count)
    if not between:
        place = np.random.default_rng(question.rng).permutation(count)
    # Neighbours that depend on each other must not be on both sides: then the first clusters teach the last.
    place = place[clusters.codes]
    learned = clusters.take(np.flatnonzero(place < first))
    held_out = clusters.take(np.flatnonzero(place >= first + between))
    return _Halves(_as_counted(learned, question), held_out, (learned.cluster_count, held_out.cluster_count))


def _as_counted(rows: Tally | ClusteredRows, question: Question) -> Tally:
    """Return rows with the weights by which they count."""
    if isinstance(rows, Tally):
        return rows
    once = question.clusters is not None and question.clusters.target == "clusters"
    return whole_tally(rows_of_clusters(rows.once_each() if once else rows))


def _brier(tally: Tally) -> float:
    return float(tally.residual_square.sum()) / tally.weight_total


def _moved(rows: Tally | ClusteredRows, mapped: Map) -> Tally | ClusteredRows:
    """Return rows with their forecasts moved by a map."""
    if isinstance(rows, ClusteredRows):
        return ClusteredRows(replace(rows.observations, y_prob=mapped(rows.observations.y_prob)), rows.codes)
    if rows.listed is None:
        return Tally.from_counts(mapped(rows.forecast), rows.rows, rows.events)
    return Tally.from_observations(replace(rows.listed, y_prob=mapped(rows.listed.y_prob)))

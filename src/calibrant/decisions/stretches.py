"""Rows between thresholds: totals of each stretch of forecasts, and how they vary from sample to sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.core.errors import UndefinedError
from calibrant.core.types import FloatArray, IntArray
from calibrant.measures.sampled import Censored
from calibrant.rows.checks import Observations
from calibrant.rows.clusters import Blocks, ClusteredRows, ClusteredSource
from calibrant.rows.grids import COARSE_GRID
from calibrant.rows.horizons import censoring_notes
from calibrant.rows.intake import RowsLike, are_clustered, as_clustered, as_observations, as_source
from calibrant.rows.named import SUMMARIES
from calibrant.rows.questions import QuestionSource
from calibrant.rows.refinement import refine
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals

_CHUNK = 2**20


@dataclass(frozen=True, eq=False)
class Stretches:
    """Totals of the rows of each stretch of forecasts: stretch k holds borders[k] <= p < borders[k + 1].

    Attributes
    ----------
    borders : array
        Where stretches begin, from 0 on, increasing; the last has no upper end.
    weight, outcome : array
        Sums of weights w, and of w y, in each stretch.
    from_here : array of int
        How many rows, or clusters, have a forecast of at least each border.
    events_below : array of int
        How many events, or clusters with any, have a forecast below each border.
    square : array of shape (2 m, 2 m) or None
        With v the m sums of w and then the m sums of w y of one independent unit (a row, or a cluster): the sum of
        v v' over units. None where only totals are known.
    rows : int
        How many rows, those included that were censored.
    clusters : int or None
        How many clusters; None for independent rows.
    counted : bool
        Whether rows are independent, of weight 1, with outcomes 0 and 1: then counts say all.
    drawn_from : Observations, ClusteredRows or None
        The rows one by one, to draw from again; None where only totals are known.
    notes : tuple of str
        What to keep in mind about these rows.
    """

    borders: FloatArray
    weight: FloatArray
    outcome: FloatArray
    from_here: IntArray
    events_below: IntArray
    square: FloatArray | None
    rows: int
    clusters: int | None
    counted: bool
    drawn_from: Observations | ClusteredRows | None
    notes: tuple[str, ...] = ()

    @property
    def mean_outcome(self) -> float:
        """Mean of the outcomes."""
        return float(self.outcome.sum() / self.weight.sum())


def stretches_of(
    borders: FloatArray,
    y_true: RowsLike,
    y_prob: Any = None,
    *,
    cluster: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> Stretches:
    """Add up rows, however they came, by stretch."""
    columns = {"sample_weight": sample_weight, "pos_label": pos_label}
    if cluster is not None or are_clustered(y_true):
        return _of_clusters(as_clustered(y_true, y_prob, cluster=cluster, **columns), borders)
    if not isinstance(y_true, (np.ndarray, Observations)) and isinstance(y_true, (*SUMMARIES, QuestionSource)):
        source = as_source(y_true, y_prob, **columns)
        if not isinstance(source, Tally) or source.listed is None:
            return _of_totals(split_at(source, borders), borders)
        return _of_rows(source.listed, borders)
    return _of_rows(as_observations(y_true, y_prob, **columns), borders)


def split_at(source: Tally | RowSource, thresholds: FloatArray) -> Totals:
    """Return ordered entries each of which lies wholly below, or wholly from, every threshold up."""
    ordered = np.sort(thresholds)

    def torn(table: Totals) -> IntArray:
        passed = (np.searchsorted(ordered, end, side="right") for end in (table.low, table.high))
        return np.flatnonzero(np.not_equal(*passed))

    return refine(source, torn, COARSE_GRID)


def totals_in(tally: Totals, borders: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sums of w and of w y of entries that no border divides, by stretch."""
    place = np.searchsorted(borders, tally.low, side="right") - 1
    return _added(place, tally.weight, borders.size), _added(place, tally.outcome, borders.size)


def _added(place: IntArray, values: FloatArray | IntArray, size: int) -> FloatArray:
    return np.bincount(place, values, size).astype(np.float64, copy=False)


def _of_totals(table: Totals, borders: FloatArray) -> Stretches:
    weight, outcome = totals_in(table, borders)
    place = np.searchsorted(borders, table.low, side="right") - 1
    rows = np.bincount(place, table.rows, borders.size).astype(np.int64)
    square = _by_stretch(weight, outcome, outcome) if table.counted else None
    return Stretches(
        borders=borders,
        weight=weight,
        outcome=outcome,
        from_here=_suffix(rows),
        events_below=_before(outcome),
        square=square,
        rows=table.row_total,
        clusters=None,
        counted=table.counted,
        drawn_from=None,
    )


def _of_rows(rows: Observations, borders: FloatArray) -> Stretches:
    given, blocks, size = rows.that_count(), Blocks(borders), borders.size
    counts, events, sums = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64), np.zeros((5, size))
    for begin in range(0, given.y_prob.size, _CHUNK):
        part = given.take(slice(begin, begin + _CHUNK))
        place, outcome = blocks(part.y_prob), part.y_true.astype(np.float64, copy=False)
        weight = np.ones(outcome.size) if part.sample_weight is None else part.sample_weight
        weighted = weight * outcome
        counts += np.bincount(place, minlength=size)
        events += np.bincount(place[outcome > 0.0], minlength=size)
        for total, each in zip(
            sums, (weight, weighted, weight * weight, weight * weighted, weighted * weighted), strict=True
        ):
            total += np.bincount(place, each, size)
    counted = given.binary_outcomes and given.sample_weight is None
    censored = Censored.of(rows)
    square = _by_stretch(*sums[2:]) if censored is None else _with_censoring(censored, borders)
    # The rows as they came are what is drawn from: some know more than their weights.
    return Stretches(
        borders=borders,
        weight=sums[0],
        outcome=sums[1],
        from_here=_suffix(counts),
        events_below=_before(events),
        square=square,
        rows=given.y_prob.size if censored is None else censored.rows.y_prob.size,
        clusters=None,
        counted=counted,
        drawn_from=rows,
        notes=() if censored is None else censoring_notes(censored.rows),
    )


def _of_clusters(rows: ClusteredSource, borders: FloatArray) -> Stretches:
    from scipy.sparse import csr_array

    sums, size = rows.cluster_sums(borders), borders.size
    places = np.concatenate([sums.block, sums.block + size])
    units = csr_array(
        (np.concatenate([sums.weight, sums.outcome]), (np.tile(sums.cluster, 2), places)), (sums.clusters, 2 * size)
    )
    last = np.zeros(sums.clusters, dtype=np.int64)
    np.maximum.at(last, sums.cluster, sums.block)
    first = np.full(sums.clusters, size)
    held = sums.outcome > 0.0
    np.minimum.at(first, sums.cluster[held], sums.block[held])
    censored = Censored.of(*rows.every) if isinstance(rows, ClusteredRows) else None
    square = (units.T @ units).toarray() if censored is None else _with_censoring(censored, borders)
    count, clusters = int(sums.rows.sum()), sums.clusters
    if censored is not None and censored.clusters is not None:  # censored rows count, through the weights of others
        count, clusters = censored.clusters.size, int(censored.clusters.max()) + 1
    return Stretches(
        borders=borders,
        weight=_added(sums.block, sums.weight, size),
        outcome=_added(sums.block, sums.outcome, size),
        from_here=_suffix(np.bincount(last, minlength=size)),
        events_below=_before(np.bincount(first, minlength=size + 1)[:size]),
        square=square,
        rows=count,
        clusters=clusters,
        counted=False,
        drawn_from=rows if isinstance(rows, ClusteredRows) else None,
        notes=() if censored is None else censoring_notes(censored.rows),
    )


def _by_stretch(weight_square: FloatArray, between: FloatArray, outcome_square: FloatArray) -> FloatArray:
    """Return sums of products over rows, each of which is in one stretch alone."""
    return np.block([[np.diag(weight_square), np.diag(between)], [np.diag(between), np.diag(outcome_square)]])


def _with_censoring(censored: Censored, borders: FloatArray) -> FloatArray:
    """Return sums of products over rows, or clusters, that move the sums of others through estimated weights too."""
    known = censored.rows.take(censored.places)
    place, weight = Blocks(borders)(known.y_prob), known.sample_weight
    assert weight is not None  # or there were nothing to estimate
    values = (weight, weight * known.y_true)
    moved = [censored.moved(np.where(place == k, each, 0.0)) for each in values for k in range(borders.size)]
    units = np.array(moved)
    return units @ units.T


def _suffix(counts: IntArray) -> IntArray:
    return np.cumsum(counts[::-1])[::-1]


def _before(counts: IntArray | FloatArray) -> IntArray:
    return (np.cumsum(counts) - counts).astype(np.int64)


class UnknownLimitsError(UndefinedError):
    """The rows do not tell how far a number may be off."""


def needs_rows() -> UnknownLimitsError:
    """Refuse what totals do not tell."""
    return UnknownLimitsError(
        "totals of weighted rows, or of fractional outcomes, do not tell how the rows vary",
        remedy="pass the arrays, or leave out confidence_level",
    )

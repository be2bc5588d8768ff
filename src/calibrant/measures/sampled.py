"""Rows as a sample: what limits rest on, and the ways to find them that measures share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.laws import limit_reach
from calibrant.core.types import FloatArray, IntArray, Randomness
from calibrant.measures.estimates import Estimate, bootstrap, have_no_width
from calibrant.rows.checks import Observations, check_choice, check_confidence
from calibrant.rows.clusters import ClusteredRows, ClusteredSource
from calibrant.rows.horizons import TAKEN_AS_FIXED, HorizonRows, censoring_notes
from calibrant.rows.intake import are_clustered, as_clustered, as_observations, as_tally
from calibrant.rows.refinement import Opened
from calibrant.rows.resamples import check_resamples
from calibrant.rows.tally import Tally


@dataclass(frozen=True, eq=False)
class Sampled:
    """Rows drawn from a population, alone or in clusters.

    A weight says how much a row stands for, not how often it was seen: limits count rows (or clusters), so that they
    do not depend on the unit of the weights. Rows that were seen several times are given as counts
    (`Tally.from_counts`) or one by one.

    Attributes
    ----------
    rows : Observations
        The rows, none of weight zero; weights that are all equal are left out. Independent 0/1 outcomes of equal
        weight are merged where they agree.
    times : array of int, or None
        How many rows each of the merged ones stands for; None where nothing is merged.
    clusters : array of int, or None
        The cluster of each row, numbered from 0.
    origin : Observations, ClusteredRows or Tally
        What resamples are drawn from.
    censored : Censored or None
        All rows, where some were censored and the weights of the others are estimated.
    """

    rows: Observations
    times: IntArray | None
    clusters: IntArray | None
    origin: Observations | ClusteredRows | Tally
    censored: Censored | None = None

    @cached_property
    def tally(self) -> Tally:
        """The tally of the rows."""
        if self.times is None:
            return Tally.from_observations(self.rows)
        return Tally.from_counts(self.rows.y_prob, self.times, self.times * self.rows.y_true)

    @cached_property
    def row_total(self) -> int:
        """How many rows there are."""
        return self.rows.y_prob.size if self.times is None else int(self.times.sum())

    @cached_property
    def cluster_count(self) -> int | None:
        """How many clusters there are; None for independent rows."""
        if self.clusters is None:
            return None
        clusters = self.clusters if self.censored is None or self.censored.clusters is None else self.censored.clusters
        return int(clusters.max()) + 1

    @property
    def why_not_counted(self) -> str | None:
        """What makes counts of events say less than all: clusters, weights or fractions; None where they say all."""
        if self.clusters is not None:
            return "in clusters"
        if self.censored is not None:
            return "weighted for those that were censored"
        if self.rows.sample_weight is not None:
            return "of different weights"
        return None if self.rows.binary_outcomes else "fractions of events"

    @property
    def weight(self) -> FloatArray:
        """The weight of each row, ones included."""
        weight = self.rows.sample_weight
        return np.ones(self.rows.y_prob.size) if weight is None else weight

    def take(self, positions: IntArray) -> Sampled:
        """Return some of the rows; resamples are still drawn from all of them."""
        codes = None if self.clusters is None else np.unique(self.clusters[positions], return_inverse=True)[1]
        if codes is not None and codes.max() == 0:
            raise _one_cluster()
        times = None if self.times is None else self.times[positions]
        censored = None if self.censored is None else self.censored.take(positions)
        return replace(self, rows=self.rows.take(positions), times=times, clusters=codes, censored=censored)

    def moved(self, added: FloatArray) -> FloatArray:
        """Return what each row, or each cluster, moves a number by, from what rows add to it with their weights.

        Where weights were estimated, rows also move the number through the weights of others, censored rows included.
        """
        if self.censored is not None:
            return self.censored.moved(added)
        if self.clusters is None:
            return added
        return np.bincount(self.clusters, weights=added).astype(np.float64, copy=False)

    def square(self, added: FloatArray) -> float:
        """Return the sum of squares of what each row, or each cluster, moves a number by."""
        moved = self.moved(added)
        return float(moved @ (moved if self.times is None else self.times * moved))

    def error(self, influence: FloatArray) -> float:
        """Return the standard error of a number that each row moves by its influence per unit of weight.

        Few rows, or clusters, vary less about their own mean than about the true one: by n / (n - 1), as everyone has
        it.
        """
        counted = self.weight if self.times is None else self.times
        total = float(counted.sum())
        apart = self.weight * (influence - float(counted @ influence) / total)
        count = self.row_total if self.cluster_count is None else self.cluster_count
        if count < 2:
            raise UndefinedError("one row says nothing about how much rows vary", remedy="collect more rows")
        return math.sqrt(self.square(apart / total) * count / (count - 1.0))

    @cached_property
    def effective_rows(self) -> float:
        """How many rows of equal weight say as much: (sum of weights)^2 / sum of their squares (Kish)."""
        weight = self.weight
        return float(self.row_total if self.times is not None else weight.sum() ** 2 / (weight @ weight))

    @property
    def notes(self) -> tuple[str, ...]:
        """What to keep in mind about these rows whatever is estimated."""
        if self.censored is not None:
            return censoring_notes(self.censored.rows)
        return (TAKEN_AS_FIXED,) if self.rows.weights_estimated else ()

    @property
    def few_clusters(self) -> float:
        """By how much squares of sums over clusters are enlarged: G / (G - 1); 1 for independent rows."""
        count = self.cluster_count
        return 1.0 if count is None else count / (count - 1.0)

    def quantile(self, level: float) -> float:
        """Return how many standard errors limits are away: those of a normal law, of Student's for clusters."""
        return limit_reach(level, self.cluster_count)

    @property
    def drawn(self) -> Observations | ClusteredRows:
        """The rows one by one, from which to draw."""
        found = self.origin.each_row() if isinstance(self.origin, Tally) else self.origin
        if found is None:
            raise _totals_only()
        return found


@dataclass(frozen=True, eq=False)
class Censored:
    """Rows of which some were censored, and which of them a sample holds.

    Attributes
    ----------
    rows : HorizonRows
        All rows.
    places : array of int
        Where the rows of the sample are among them.
    clusters : array of int, or None
        The cluster of each of all rows.
    """

    rows: HorizonRows
    places: IntArray
    clusters: IntArray | None

    @classmethod
    def of(cls, rows: Any, clusters: IntArray | None = None) -> Censored | None:
        """Return the rows of a horizon if their weights were estimated."""
        if not isinstance(rows, HorizonRows) or rows.sample_weight is None:
            return None
        return cls(rows, np.flatnonzero(rows.sample_weight), clusters)

    def take(self, positions: IntArray) -> Censored:
        """Return the same for some rows of the sample."""
        return replace(self, places=self.places[positions])

    def moved(self, added: FloatArray) -> FloatArray:
        """Return what each of all rows, or clusters, moves a number by that rows of the sample add to."""
        every = np.zeros(self.rows.time.size)
        every[self.places] = added
        moved = self.rows.incidence.with_censoring(every)
        if self.clusters is None:
            return moved
        return np.bincount(self.clusters, weights=moved).astype(np.float64, copy=False)


def sampled(
    y_true: Any, y_prob: Any = None, *, cluster: Any = None, sample_weight: Any = None, pos_label: Any = None
) -> Sampled:
    """Return the rows that limits rest on."""
    if cluster is not None or are_clustered(y_true):
        held = _in_memory(
            as_clustered(y_true, y_prob, cluster=cluster, sample_weight=sample_weight, pos_label=pos_label)
        )
        if held.cluster_count < 2:
            raise _one_cluster()
        censored = Censored.of(*held.every)
        return Sampled(_without_equal_weights(held.observations), None, held.codes, held, censored)
    if (censored := Censored.of(y_true)) is not None:
        return Sampled(
            as_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label).that_count(),
            None,
            None,
            y_true,
            censored,
        )
    tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label).with_unit_weights()
    origin = y_true if isinstance(y_true, Observations) else tally
    if tally.counted:
        count = np.stack([tally.rows - tally.events, tally.events], axis=1).ravel()
        held_some = np.flatnonzero(count)
        outcome = np.tile(np.array([0, 1], dtype=np.uint8), len(tally))[held_some]
        merged = Observations(
            outcome, np.repeat(tally.forecast, 2)[held_some], None, True, weights_estimated=tally.weights_estimated
        )
        found = Sampled(merged, count[held_some], None, origin)
        vars(found)["tally"] = tally  # which is there already
        return found
    if tally.listed is None:
        raise _totals_only()
    return Sampled(_without_equal_weights(tally.listed), None, None, origin)


def _totals_only() -> UndefinedError:
    return UndefinedError(
        "these limits need the rows one by one, and only totals are known here, or counts of more than 10 million",
        remedy="pass the arrays, or ask for the number alone",
    )


def _one_cluster() -> UndefinedError:
    return UndefinedError("holds one cluster only, and limits need at least two", argument="cluster")


def _in_memory(rows: ClusteredSource) -> ClusteredRows:
    if isinstance(rows, ClusteredRows):
        return rows
    opened = Opened(rows)
    if (count := opened.start().row_total) > opened.tally_limit:
        raise InputError(
            f"limits need the rows one by one, and {count:,} are too many to fetch",
            remedy="ask for the number alone, or for the limits of a sample of the clusters",
        )
    return ClusteredRows(*rows.fetch_clusters(np.array([0.0]), np.array([1.0])))


def _without_equal_weights(rows: Observations) -> Observations:
    weight = rows.sample_weight
    return rows if weight is None or weight.min() < weight.max() else replace(rows, sample_weight=None)


class Limits(NamedTuple):
    """Limits, how they were found, and what to keep in mind."""

    lower: float
    upper: float
    interval: str
    n_resamples: int | None = None
    notes: tuple[str, ...] = ()


Way: TypeAlias = Callable[[Sampled, float, float], Limits]
"""Finds limits from a sample, the number and the confidence level."""


def by_resampling(name: str, number: Callable[[Tally], float], *, n_resamples: Any, rng: Randomness) -> Way:
    """Return the way of percentiles over resamples of rows or clusters."""

    def way(sample: Sampled, _: float, level: float) -> Limits:
        count = check_resamples(n_resamples, level)
        found = bootstrap(sample.drawn, lambda tally: (number(tally),), n_resamples=count, rng=rng, label=name)
        return Limits(*found.limits(0, name, level), "bootstrap", count)

    return way


def estimated(
    name: str,
    sample: Sampled,
    number: Callable[[Tally], float],
    ways: Mapping[str, Way],
    *,
    interval: str,
    confidence_level: float,
) -> Estimate:
    """Return a number of a sample with its limits, found in one of several ways."""
    way = ways[check_choice(interval, "interval", tuple(ways))]
    level = check_confidence(confidence_level)
    value = number(sample.tally)
    found = way(sample, value, level)
    if have_no_width(found.lower, found.upper, value):
        raise UndefinedError(
            f"nothing in these rows shows how much {name.replace('_', ' ')} varies, so that limits would have no width",
            remedy="ask for the number alone, or collect more rows",
        )
    return Estimate(
        name=name,
        estimate=value,
        lower=found.lower,
        upper=found.upper,
        confidence_level=level,
        interval=found.interval,
        rows=sample.row_total,
        clusters=sample.cluster_count,
        n_resamples=found.n_resamples,
        notes=(*found.notes, *sample.notes),
    )

"""Rows that are dealt to parts, of which recalibrators see all but one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.certificates.results import ConfidenceInterval
from calibrant.certificates.verdicts import confidence_interval
from calibrant.core.errors import InputError
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, IntArray
from calibrant.core.words import counted
from calibrant.repairs.fits import Sample
from calibrant.rows.checks import Observations, check_same_index
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.intake import RowsLike
from calibrant.rows.promised import rows_to_fit
from calibrant.rows.splits import cluster_order, row_marks
from calibrant.rows.tally import Tally

MOST_ROWS = 10**9
"""numpy draws parts from fewer rows than this."""


@dataclass(frozen=True)
class Entries:
    """Rows in an order that depends on nothing but their content: by forecast, outcome, weight.

    Rows of unit weight with 0/1 outcomes are counted, others listed one by one. So are rows in clusters, which are
    numbered in an order drawn at random.
    """

    forecast: FloatArray
    outcome: FloatArray
    weight: FloatArray | None
    count: IntArray
    binary_outcomes: bool
    cluster: IntArray | None = None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.count.sum())

    @property
    def are_counts(self) -> bool:
        """Whether counts tell all about the rows."""
        return self.weight is None and self.binary_outcomes

    def deal(self, parts: int, generator: np.random.Generator) -> list[IntArray]:
        """Return how many rows of each entry fall into each part: a random deal into parts of equal size."""
        rows = self.rows
        if parts > rows:
            raise _too_many_parts(parts, rows, "row", "cut into parts")
        if rows >= MOST_ROWS:
            raise InputError(
                f"has {rows:,} rows, and fewer than {MOST_ROWS:,} can be dealt",
                argument="y_prob",
                remedy="draw a sample first",
            )
        if self.cluster is not None:
            return self._deal_clusters(self.cluster, parts)
        left, dealt = self.count.copy(), []
        for part in range(parts):
            size = (rows * (part + 1)) // parts - (rows * part) // parts
            drawn = generator.multivariate_hypergeometric(left, size, method="marginals")
            dealt.append(drawn)
            left -= drawn
        return dealt

    def _deal_clusters(self, cluster: IntArray, parts: int) -> list[IntArray]:
        """Return the rows of each part: clusters are numbered at random, so that turns are as good as draws."""
        clusters = int(cluster.max()) + 1
        if parts > clusters:
            raise _too_many_parts(parts, clusters, "cluster", "deal to parts")
        return [(cluster % parts == part).astype(np.int64) for part in range(parts)]

    def limits(self, forecast: FloatArray, tally: Tally, **asked: Any) -> ConfidenceInterval:
        """Return confidence limits for other forecasts of these entries, whose tally is given."""
        found: ConfidenceInterval
        if self.cluster is None:
            found = confidence_interval(tally, **asked)
        else:
            found = confidence_interval(
                self.outcome, forecast, sample_weight=self.weight, cluster=self.cluster, **asked
            )
        return found

    def part(self, count: IntArray) -> Entries:
        """Return so many rows of each entry."""
        kept = np.flatnonzero(count)
        return replace(
            self,
            forecast=self.forecast[kept],
            outcome=self.outcome[kept],
            weight=None if self.weight is None else self.weight[kept],
            count=count[kept],
            cluster=None if self.cluster is None else self.cluster[kept],
        )

    def without(self, parts: list[IntArray], held_out: int | None) -> Sample:
        """Return the rows of all parts, but of the one that is held out."""
        return Sample.of_tally((self if held_out is None else self.part(self.count - parts[held_out])).tally())

    def tally(self, forecast: FloatArray | None = None) -> Tally:
        """Return the tally of these rows, with new forecasts if there are any."""
        forecast = self.forecast if forecast is None else forecast
        if self.are_counts:
            return Tally.from_sound_counts(forecast, self.count, np.where(self.outcome > 0.0, self.count, 0))
        return Tally.from_observations(Observations(self.outcome, forecast, self.weight, self.binary_outcomes))


def pooled(parts: Sequence[Entries]) -> Entries:
    """Return the entries of parts, one part after the other."""
    first = parts[0]

    def joined(name: str) -> Any:
        return None if getattr(first, name) is None else np.concatenate([getattr(part, name) for part in parts])

    columns = ("forecast", "outcome", "weight", "count", "cluster")
    return Entries(**{name: joined(name) for name in columns}, binary_outcomes=first.binary_outcomes)


def as_entries(
    y_prob: RowsLike, y_true: ArrayLike | None, sample_weight: ArrayLike | None, pos_label: ClassLabel | None
) -> Entries:
    """Return independent rows, counted where counts say all."""
    rows = rows_to_fit(y_prob, y_true, sample_weight=sample_weight, pos_label=pos_label, call="compare_recalibrators")
    if isinstance(rows, Tally):
        if not (rows.unit_weights and rows.binary_outcomes):
            raise InputError(
                "is a Tally of fractions or weighted rows, which cannot be told apart to deal them to parts",
                argument="y_prob",
                remedy="pass the arrays",
            )
        return _counted(rows)
    weight, outcome, forecast = rows.sample_weight, rows.y_true.astype(np.float64), rows.y_prob + 0.0
    if rows.binary_outcomes and weight is None:
        return _counted(Tally.from_observations(rows))
    counted = np.ones(forecast.size, dtype=bool) if weight is None else weight > 0.0
    keys = (outcome, forecast) if weight is None else (weight, outcome, forecast)
    order = np.lexsort([key[counted] for key in keys])
    forecast, outcome = forecast[counted][order], outcome[counted][order]
    weight = None if weight is None else weight[counted][order]
    return Entries(forecast, outcome, weight, np.ones(order.size, dtype=np.int64), rows.binary_outcomes)


def in_clusters(
    y_prob: RowsLike,
    y_true: ArrayLike | None,
    sample_weight: ArrayLike | None,
    pos_label: ClassLabel | None,
    cluster: ArrayLike,
    generator: np.random.Generator,
) -> Entries:
    """Return the rows one by one, with the cluster of each, by a number that neither order nor names decide."""
    rows = rows_to_fit(y_prob, y_true, sample_weight=sample_weight, pos_label=pos_label, call="compare_recalibrators")
    if isinstance(rows, Tally):
        raise InputError(
            "was given together with a tally, whose rows can no longer be told apart",
            argument="cluster",
            remedy="pass the arrays",
        )
    check_same_index(y_true=y_true, cluster=cluster)
    clustered = ClusteredRows.of(rows, cluster)
    rows, codes = clustered.observations, clustered.codes
    weight, outcome, forecast = rows.sample_weight, rows.y_true.astype(np.float64), rows.y_prob + 0.0
    columns = [outcome, forecast] if weight is None else [weight, outcome, forecast]
    drawn = cluster_order(codes, row_marks(columns, codes.size), int(generator.integers(2**63)))
    number = np.empty(drawn.size, dtype=np.int64)
    number[drawn] = np.arange(drawn.size)
    order = np.lexsort([number[codes], *columns])
    return Entries(
        forecast[order],
        outcome[order],
        None if weight is None else weight[order],
        np.ones(order.size, dtype=np.int64),
        rows.binary_outcomes,
        number[codes][order],
    )


def _counted(tally: Tally) -> Entries:
    """Return two entries per forecast, non-events and events, as far as there are any."""
    events = tally.events
    count = np.stack([tally.rows - events, events], axis=1).ravel()
    outcome = np.tile([0.0, 1.0], len(tally))
    kept = count > 0
    return Entries(np.repeat(tally.forecast, 2)[kept], outcome[kept], None, count[kept], True)


def _too_many_parts(parts: int, count: int, thing: str, use: str) -> InputError:
    """Return the error that there are more parts than there is to deal to them; two parts are the fewest."""
    problem = f"is {parts}, and there {'is' if count == 1 else 'are'} only {counted(count, thing)} to {use}"
    remedy = "choose fewer parts" if count > 1 else f"collect more {thing}s: no number of parts will do"
    return InputError(problem, argument="cv", value=parts, remedy=remedy)

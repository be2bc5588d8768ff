"""Distinct forecasts in increasing order, with totals per forecast: where ties are merged, once and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.frames import FromFrames, frames_follow
from calibrant.core.isotonic import IsotonicFit, isotonic_fit
from calibrant.core.threads import total_of_products
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, IntArray
from calibrant.rows.checks import (
    Observations,
    check_counts,
    check_forecasts,
    check_observations,
    check_row_counts,
    check_same_index,
    check_totals,
)
from calibrant.rows.grids import coarse_spread
from calibrant.rows.runs import group_sizes, group_starts, grouped, in_order, prefix_sums
from calibrant.rows.splits import digest, seeded

ADDITIVE = (
    "rows",
    "weight",
    "weight_square",
    "residual",
    "residual_square",
    "weight_square_residual_square",
    "outcome",
)
"""The columns that add up when entries or parts are merged."""

_WEIGHT_COLUMNS = tuple(name for name in ADDITIVE if name.startswith("weight"))
"""Those that repeat other columns when all weights are 1."""

_MOST_LISTED = 10_000_000  # counts of more rows are not listed where they join rows that have to be


@dataclass(frozen=True, eq=False, repr=False)
class Totals(FromFrames):
    """Entries in increasing order of forecast, each with the totals of its rows.

    An entry is either one distinct forecast (``low == high``) or a stretch of forecasts whose rows were added up.
    With r = y - p the residual of a row and w its weight:

    Attributes
    ----------
    low, high : smallest and largest forecast of the entry
    rows : number of rows
    weight : sum of w (equal to ``rows`` for unit weights)
    weight_square : sum of w^2
    residual : sum of w r
    residual_square : sum of w r^2
    weight_square_residual_square : sum of w^2 r^2
    outcome : sum of w y
    weight_max : largest weight of a row
    unit_weights : whether every row has weight 1
    binary_outcomes : whether every outcome is 0 or 1
    listed : the rows one by one, in the order of forecast, outcome and weight, where totals cannot tell the rows of an
        entry apart (fractions, weights); None where counts say all, or where only totals are known
    weights_estimated : whether weights were estimated from the rows (`horizon`), so that no guarantee holds
    """

    low: FloatArray
    high: FloatArray
    rows: IntArray
    weight: FloatArray | IntArray
    weight_square: FloatArray | IntArray
    residual: FloatArray
    residual_square: FloatArray
    weight_square_residual_square: FloatArray
    outcome: FloatArray
    weight_max: float
    unit_weights: bool
    binary_outcomes: bool
    listed: Observations | None = field(default=None, kw_only=True)
    weights_estimated: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        self._lock()
        check_row_counts(self.rows, "rows")
        names = {id(getattr(self, name)): name for name in (*reversed(ADDITIVE), "high", "low")}
        del names[id(self.rows)]  # columns that unit weights make equal are one array
        check_totals({name: getattr(self, name) for name in reversed(names.values())})

    def _lock(self) -> None:
        """Let nobody write into the arrays: a summary that others share must not change under them."""
        for array in (*vars(self).values(), *(() if self.listed is None else vars(self.listed).values())):
            if isinstance(array, np.ndarray):
                array.setflags(write=False)

    def __len__(self) -> int:
        return int(self.low.size)

    @cached_property
    def row_total(self) -> int:
        """Number of rows."""
        return int(self.rows.sum())

    @property
    def counted(self) -> bool:
        """Whether counts of events say all there is to know: 0/1 outcomes of unit weight."""
        return self.unit_weights and self.binary_outcomes

    @cached_property
    def weight_total(self) -> float:
        """Sum of the weights; the number of rows for unit weights."""
        return float(self.weight.sum())

    @cached_property
    def residual_total(self) -> float:
        """Sum of w (y - p) over all rows."""
        return float(self.residual.sum())

    @cached_property
    def outcome_total(self) -> float:
        """Sum of w y over all rows; the number of events for 0/1 outcomes and unit weights."""
        return float(self.outcome.sum())

    @cached_property
    def coarse_spread_total(self) -> float:
        """Sum of w^2 p (1 - p) over all rows, for forecasts that every source tells apart."""
        return total_of_products(coarse_spread(self.low), self.weight_square)

    def forecast_total(self, begin: int = 0, end: int | None = None) -> float:
        """Sum of w p over the rows of entries begin to end.

        Where an entry is a stretch of forecasts it is outcomes minus residuals, which keeps fewer digits of forecasts
        that are tiny beside the event rate.
        """
        entries = slice(begin, end)
        if self.high is self.low:
            return total_of_products(self.weight[entries], self.low[entries])
        low, several = self.low[entries], self.high[entries] > self.low[entries]
        forecasts = np.where(several, self.outcome[entries] - self.residual[entries], self.weight[entries] * low)
        return float(forecasts.sum())

    def entries(self, positions: IntArray) -> Totals:
        """Return the entries at some positions."""
        return Totals(
            **{name: getattr(self, name)[positions] for name in ("low", "high", *ADDITIVE)},
            weight_max=self.weight_max,
            unit_weights=self.unit_weights,
            binary_outcomes=self.binary_outcomes,
            weights_estimated=self.weights_estimated,
        )

    def at_means(self) -> Tally:
        """Return the tally of other forecasts: each moved to the mean of those in its entry.

        Sums of residuals stay as they are, and so does every difference between entries.
        """
        mean = np.clip((self.outcome - self.residual) / self.weight, self.low, self.high)
        columns = {name: getattr(self, name) for name in ADDITIVE}
        return Tally(
            low=mean,
            high=mean,
            weight_max=self.weight_max,
            unit_weights=self.unit_weights,
            binary_outcomes=self.binary_outcomes,
            weights_estimated=self.weights_estimated,
            **columns,
        )

    def with_unit_weights(self) -> Self:
        """Return the totals with weights of 1 where all weights are equal, which changes no mean; otherwise itself."""
        if self.unit_weights or not np.allclose(self.weight, self.weight_max * self.rows, rtol=1e-12, atol=0.0):
            return self
        square = self.residual_square / self.weight_max
        return replace(
            self,
            weight=self.rows,
            weight_square=self.rows,
            residual=self.residual / self.weight_max,
            residual_square=square,
            weight_square_residual_square=square,
            outcome=self.outcome / self.weight_max,
            weight_max=1.0,
            unit_weights=True,
            listed=None if self.listed is None or self.binary_outcomes else replace(self.listed, sample_weight=None),
        )

    def residual_prefix(self) -> FloatArray:
        """Return the residual totals of the first 0, 1, ..., m entries: the curve whose range is the Cutoff error."""
        return prefix_sums(self.residual)


class Tally(Totals):
    """Distinct forecasts in increasing order, with the totals of the rows that share each.

    What `calibrant` computes is a function of a tally, or of cells that hold the same totals: equal forecasts are
    merged, so row order never matters. Two forecasts are equal when their float64 values are equal (0.0 and -0.0 too);
    rounding that makes 0.3 and 0.1 + 0.2 different numbers makes them different forecasts. Rows of weight zero are left
    out.

    Tallies of parts add up to the tally of the whole: ``Tally.from_arrays(...) + Tally.from_arrays(...)``.

    Attributes
    ----------
    rows : array of int
        Number of rows at each forecast.
    weight : array
        Sum of their weights: the number of rows, for unit weights.
    outcome : array
        Sum of weight times outcome.
    residual : array
        Sum of weight times outcome minus forecast.

    Examples
    --------
    >>> tally = Tally.from_arrays([0, 1, 1, 1], [0.5, 0.25, 0.5, 0.5])
    >>> tally.forecast, tally.rows, tally.events
    (array([0.25, 0.5 ]), array([1, 3]), array([1, 2]))
    >>> tally
    Tally(4 rows on 2 distinct forecasts from 0.25 to 0.5, 3 events)
    """

    @property
    def forecast(self) -> FloatArray:
        """The distinct forecasts, increasing."""
        return self.low

    @property
    def events(self) -> IntArray:
        """Number of events per forecast, for 0/1 outcomes of unit weight.

        Raises
        ------
        ValueError
            When outcomes are fractions or rows are weighted: then there is nothing to count.
        """
        if not self.counted:
            raise InputError("this tally has no event counts: its outcomes are fractions or its rows are weighted")
        return np.rint(self.outcome).astype(np.int64)

    @property
    def mean_outcome(self) -> FloatArray:
        """Weighted mean outcome at each forecast."""
        means: FloatArray = self.outcome / self.weight
        return means

    @cached_property
    def isotonic(self) -> IsotonicFit:
        """The isotonic regression of the outcomes."""
        return isotonic_fit(self.mean_outcome, self.weight)

    @classmethod
    @frames_follow
    def from_arrays(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: ClassLabel | None = None,
    ) -> Tally:
        """Build a tally from one outcome and one forecast per row.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Outcomes: 0/1, booleans, fractions in [0, 1], or labels together with ``pos_label``.
        y_prob : array-like of shape (n,)
            Forecast probabilities in [0, 1].
        sample_weight : array-like of shape (n,), optional
            Nonnegative weights.
        pos_label : label, optional
            The label in ``y_true`` that counts as the event, against all others.
        """
        observations = check_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, order=None)
        return cls.from_observations(observations)

    @classmethod
    @frames_follow
    def from_counts(cls, forecast: Any, rows: Any, events: Any) -> Tally:
        """Build a tally from counts of real observations: how many rows had each forecast, how many were events.

        Counts are observations, not weights: the tally is the one that listing every row would give. The same
        forecast may be listed more than once.

        Parameters
        ----------
        forecast : array-like
            Forecasts in [0, 1].
        rows, events : array-like
            How many rows had each of them, and of how many the event happened: whole numbers.

        Returns
        -------
        Tally
            Of as many rows as were counted.

        Examples
        --------
        >>> Tally.from_counts(forecast=[0.2, 0.7], rows=[100, 50], events=[22, 31])
        Tally(150 rows on 2 distinct forecasts from 0.2 to 0.7, 53 events)
        """
        values = check_forecasts(forecast, name="forecast")
        counted = check_counts(rows, "rows", values.size)
        occurred = check_counts(events, "events", values.size)
        check_same_index(forecast=forecast, rows=rows, events=events)
        too_many = np.flatnonzero(occurred > counted)
        if too_many.size:
            position = int(too_many[0])
            raise InputError(
                f"is {occurred[position]} but rows[{position}] is {counted[position]}",
                argument="events",
                position=position,
                value=occurred[position],
                remedy="there cannot be more events than rows",
            )
        if counted.sum() == 0:
            raise InputError("is 0 everywhere", argument="rows", remedy="at least one row is needed")
        kept = counted > 0
        return cls.from_sound_counts(values[kept], counted[kept], occurred[kept])

    @classmethod
    def from_sound_counts(cls, forecast: FloatArray, rows: IntArray, events: IntArray) -> Tally:
        """As `from_counts`, from counts of rows above 0 that need no check."""
        if not in_order(forecast):
            order = np.argsort(forecast, kind="stable")
            forecast, rows, events = forecast[order], rows[order], events[order]
        starts = group_starts(forecast)
        return cls._from_events(forecast[starts] + 0.0, grouped(rows, starts), grouped(events, starts))

    @classmethod
    def from_observations(cls, observations: Observations) -> Tally:
        """Build a tally from rows that have passed the gate."""
        y_true, y_prob, weight = observations.y_true, observations.y_prob, observations.sample_weight
        if observations.binary_outcomes and weight is None:
            return cls._from_binary(y_true, y_prob, observations.weights_estimated)
        if weight is not None and not weight.all():
            kept = np.flatnonzero(weight)
            y_true, y_prob, weight = y_true[kept], y_prob[kept], weight[kept]
        listed = observations.others(y_true, y_prob + 0.0, weight, observations.binary_outcomes)  # no -0.0
        return cls._from_ordered(listed.in_order())

    @classmethod
    def _from_ordered(cls, listed: Observations, finite: bool = False) -> Tally:
        """Build a tally from rows that `Observations.in_order` ordered, none of weight zero."""
        forecast, weight = listed.y_prob, listed.sample_weight
        outcome = listed.y_true.astype(np.float64, copy=False)
        residual = outcome - forecast
        starts = group_starts(forecast)
        rows = group_sizes(starts, forecast.size)
        if weight is None:
            return cls._build(
                forecast[starts],
                rows=rows,
                residual=grouped(residual, starts),
                residual_square=grouped(np.square(residual), starts),
                outcome=grouped(outcome, starts),
                binary_outcomes=listed.binary_outcomes,
                listed=listed,
                weights_estimated=listed.weights_estimated,
                finite=True,
            )
        weighted = weight * residual
        return cls._build(
            forecast[starts],
            rows=rows,
            weight=grouped(weight, starts),
            weight_square=grouped(np.square(weight), starts),
            residual=grouped(weighted, starts),
            residual_square=grouped(weighted * residual, starts),
            weight_square_residual_square=grouped(np.square(weighted), starts),
            outcome=grouped(weight * outcome, starts),
            weight_max=float(weight.max()),
            unit_weights=bool((weight == 1.0).all()),
            binary_outcomes=listed.binary_outcomes,
            listed=listed,
            weights_estimated=listed.weights_estimated,
            finite=finite,
        )

    @classmethod
    def _from_binary(cls, y_true: npt.NDArray[Any], y_prob: FloatArray, estimated: bool) -> Tally:
        """Sort forecast and outcome together in one 64-bit key: several times faster than sorting positions."""
        # In [0, 1] the two highest bits of a float64 are zero and its bits are in the order of its value, so the key
        # (bits, outcome) fits; adding 0.0 turns -0.0 into 0.0.
        keys = (y_prob + 0.0).view(np.uint64)
        keys <<= np.uint64(1)
        keys |= y_true.astype(np.uint64)
        if not in_order(keys):
            keys.sort()
        outcome = (keys & np.uint64(1)).astype(np.uint8)
        keys >>= np.uint64(1)
        starts = group_starts(keys)
        if starts.size == keys.size:  # no ties: nothing to add up
            return cls._from_events(keys.view(np.float64), np.ones(keys.size, dtype=np.int64), outcome, estimated)
        rows = group_sizes(starts, keys.size)
        return cls._from_events(
            keys[starts].view(np.float64), rows, grouped(outcome, starts, dtype=np.int64), estimated
        )

    @classmethod
    def _from_events(
        cls, forecast: FloatArray, rows: IntArray, events: npt.NDArray[Any], estimated: bool = False
    ) -> Tally:
        outcome = events.astype(np.float64)
        if rows.sum() == rows.size:  # single rows
            residual = outcome - forecast
            residual_square = np.square(residual)
        else:
            residual = outcome - rows * forecast
            residual_square = np.square(1.0 - forecast) * outcome + np.square(forecast) * (rows - outcome)
        return cls._build(
            forecast,
            rows=rows,
            residual=residual,
            residual_square=residual_square,
            outcome=outcome,
            binary_outcomes=True,
            weights_estimated=estimated,
            finite=True,
        )

    @classmethod
    def _build(
        cls,
        forecast: FloatArray,
        *,
        rows: IntArray,
        residual: FloatArray,
        residual_square: FloatArray,
        outcome: FloatArray,
        binary_outcomes: bool,
        weight: FloatArray | IntArray | None = None,
        weight_square: FloatArray | IntArray | None = None,
        weight_square_residual_square: FloatArray | None = None,
        weight_max: float = 1.0,
        unit_weights: bool = True,
        listed: Observations | None = None,
        weights_estimated: bool = False,
        finite: bool = False,
    ) -> Tally:
        """Fill in the columns that unit weights make equal to others, sharing the arrays.

        Totals are finite, and need no check, where weights are 1 or those of rows whose tally has been checked.
        """
        columns: dict[str, Any] = {
            "low": forecast,
            "high": forecast,
            "rows": rows,
            "weight": rows if weight is None else weight,
            "weight_square": rows if weight_square is None else weight_square,
            "residual": residual,
            "residual_square": residual_square,
            "weight_square_residual_square": (
                residual_square if weight_square_residual_square is None else weight_square_residual_square
            ),
            "outcome": outcome,
            "weight_max": weight_max,
            "unit_weights": unit_weights,
            "binary_outcomes": binary_outcomes,
            "listed": None if unit_weights and binary_outcomes else listed,
            "weights_estimated": weights_estimated,
        }
        if not finite:
            return cls(**columns)
        tally = cls.__new__(cls)
        vars(tally).update(columns)
        tally._lock()
        return tally

    def stretch(self, begin: int, end: int) -> Tally:
        """Return the tally of the rows of entries begin to end (exclusive), sharing the arrays."""
        entries = slice(begin, end)
        weighted = {} if self.unit_weights else {name: getattr(self, name)[entries] for name in _WEIGHT_COLUMNS}
        return self._build(
            self.forecast[entries],
            rows=self.rows[entries],
            residual=self.residual[entries],
            residual_square=self.residual_square[entries],
            outcome=self.outcome[entries],
            binary_outcomes=self.binary_outcomes,
            weight_max=self.weight_max,
            unit_weights=self.unit_weights,
            weights_estimated=self.weights_estimated,
            finite=True,
            **weighted,
        )

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the distinct forecasts, their rows and their outcome totals (see docs/how-to/report.md).

        Examples
        --------
        >>> one = Tally.from_arrays([0, 1, 1], [0.25, 0.5, 0.75])
        >>> one.fingerprint == Tally.from_arrays([1, 1, 0], [0.75, 0.5, 0.25]).fingerprint
        True
        >>> one.fingerprint == Tally.from_arrays([1, 1, 1], [0.75, 0.5, 0.25]).fingerprint
        False
        """
        columns = (self.outcome, *(() if self.counted else (self.weight, self.weight_square, self.residual_square)))
        return digest("calibrant tally 1", self.forecast, self.rows, *columns)

    @cached_property
    def _forecast_fingerprint(self) -> str:
        """The same without outcomes and weights."""
        return digest("calibrant forecasts 1", self.forecast, self.rows)

    def generator(self, seed: int, purpose: str) -> np.random.Generator:
        """Return random numbers of a seed, a purpose and a tally, for any order of its rows and unit of its weights."""
        if self.counted:
            return seeded(seed, purpose, self.fingerprint)
        means = np.round(self.mean_outcome, 12)  # weights in another unit may change the last digits
        return seeded(seed, purpose, digest("calibrant means 1", self.forecast, self.rows, means))

    def halves(self, seed: int) -> tuple[Tally, Tally]:
        """Send each row to one of two tallies by the toss of a coin: the first of `splits`."""
        return next(self.splits(seed))

    def splits(self, seed: int) -> Iterator[tuple[Tally, Tally]]:
        """Send each row to one of two tallies by the toss of a coin, again and again.

        The coin of a row whose forecast nobody shares follows from the seed and the forecasts alone: given the
        forecasts, the split is independent of the outcomes whatever the seed. Rows that share a forecast can be told
        apart by nothing but their outcomes, so that their coins follow from the seed and all of the data: over a
        random seed they are fair and independent of the outcomes, for a fixed seed they are others for every data set
        (docs/theory/random-halves.md). Row order plays no part.
        """
        if not self.counted and self.listed is None:
            raise UndefinedError(
                "this tally knows totals of fractions or weighted rows only, which cannot be told apart to split them",
                remedy="pass the arrays",
            )
        if self.counted:
            total = self.events
            for (rows,), (events,) in self.tosses(seed, 1):
                yield self._of_events(rows, events), self._of_events(self.rows - rows, total - events)
        for (heads,) in self.heads(seed, 1):
            yield self._of_rows(heads), self._of_rows(~heads)

    def tosses(self, seed: int, together: int) -> Iterator[tuple[IntArray, IntArray]]:
        """Return the rows and the events at each forecast of the first of two halves, for `splits` of counted rows.

        So many splits come together, each in a line of its own; how many changes none of them.
        """
        events, shared = self.events, self.rows > 1
        if not shared.any():  # the first half has the rows whose coins show heads
            generator = seeded(seed, "halves, forecasts", self._forecast_fingerprint)
            while True:
                coins = generator.integers(0, 2, size=(together, len(self)), dtype=np.int64)
                yield coins, coins * events
        counts = np.stack([events, self.rows - events])
        tied = self.generator(seed, "halves, ties")
        single = None if shared.all() else seeded(seed, "halves, forecasts", self._forecast_fingerprint)
        while True:
            heads = np.empty((together, *counts.shape), dtype=np.int64)
            if single is not None:
                np.multiply(counts, single.integers(0, 2, size=(together, 1, len(self)), dtype=np.int64), out=heads)
            heads[:, :, shared] = tied.binomial(counts[:, shared], 0.5, size=(together, 2, int(shared.sum())))
            yield heads.sum(axis=1), heads[:, 0]

    def heads(self, seed: int, together: int) -> Iterator[npt.NDArray[np.bool_]]:
        """Return which of the rows one by one go to the first of two halves, for `splits` of single rows."""
        shared = np.repeat(self.rows > 1, self.rows)
        tied = self.generator(seed, "halves, ties") if shared.any() else None
        single = seeded(seed, "halves, forecasts", self._forecast_fingerprint)
        while True:
            coins = single.integers(0, 2, size=(together, len(self)), dtype=np.int64)
            if tied is not None:
                coins = np.repeat(coins, self.rows, axis=1)
                coins[:, shared] = tied.integers(0, 2, size=(together, int(shared.sum())))
            yield coins == 1

    def _of_events(self, rows: IntArray, events: IntArray) -> Tally:
        """Return the tally of so many of the rows and events at each forecast."""
        kept = np.flatnonzero(rows)
        return self._from_events(self.forecast[kept], rows[kept], events[kept], self.weights_estimated)

    def _of_rows(self, kept: npt.NDArray[np.bool_]) -> Tally:
        """Return the tally of some of the rows listed, of which there may be none."""
        if self.listed is None or not kept.any():
            return self.stretch(0, 0)
        return self._from_ordered(self.listed.take(np.flatnonzero(kept)), finite=True)

    def each_row(self) -> Observations | None:
        """Return the rows one by one, unless only totals are known or counts are too many to list."""
        if not self.counted or self.row_total > _MOST_LISTED:
            return self.listed
        events = self.events
        count = np.stack([self.rows - events, events], axis=1).ravel()
        outcome = np.tile(np.array([0, 1], dtype=np.uint8), len(self))
        forecast = np.repeat(np.repeat(self.forecast, 2), count)
        return Observations(np.repeat(outcome, count), forecast, None, True, weights_estimated=self.weights_estimated)

    @frames_follow
    def __add__(self, other: Tally) -> Tally:
        """Merge two tallies of different rows into the tally of all of them."""
        if not isinstance(other, Tally):
            return NotImplemented
        rows = None if self.counted and other.counted else (self.each_row(), other.each_row())
        if rows is not None and rows[0] is not None and rows[1] is not None:
            return self.from_observations(rows[0].joined(rows[1]))
        forecast = np.concatenate([self.forecast, other.forecast])
        order = np.argsort(forecast, kind="stable")
        forecast = forecast[order]
        starts = group_starts(forecast)
        unit_weights = self.unit_weights and other.unit_weights
        merged: dict[str, Any] = {
            name: grouped(np.concatenate([getattr(self, name), getattr(other, name)])[order], starts)
            for name in ADDITIVE
            if not (unit_weights and name in _WEIGHT_COLUMNS)
        }
        return self._build(
            forecast[starts],
            weight_max=max(self.weight_max, other.weight_max),
            unit_weights=unit_weights,
            binary_outcomes=self.binary_outcomes and other.binary_outcomes,
            weights_estimated=self.weights_estimated or other.weights_estimated,
            **merged,
        )

    def __repr__(self) -> str:
        rows, distinct = self.row_total, len(self)
        spread = f"from {self.forecast[0]:g} to {self.forecast[-1]:g}" if distinct > 1 else f"at {self.forecast[0]:g}"
        forecasts = f"{distinct:,} distinct forecast{'s' if distinct > 1 else ''} {spread}"
        if not self.unit_weights:
            tail = f"total weight {self.weight_total:g}"
        elif self.binary_outcomes:
            tail = f"{round(self.outcome_total):,} events"
        else:
            tail = f"mean outcome {self.outcome_total / rows:.4g}"
        return f"Tally({rows:,} row{'s' if rows > 1 else ''} on {forecasts}, {tail})"

"""Monitors of many segments, and which of them are off: few of those flagged are flagged by mistake."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from calibrant.core.errors import CalibrantError, InputError
from calibrant.core.frames import FromFrames, frames_follow
from calibrant.core.types import ArrayLike, ClassLabel, Label
from calibrant.core.words import printable
from calibrant.monitors import state
from calibrant.monitors.batches import (
    GRID,
    Batches,
    as_cells,
    batches_of,
    is_one,
    outcomes_of,
    period_places,
    split_rows,
)
from calibrant.monitors.monitor import Monitor
from calibrant.monitors.periods import Ledger, OpenPeriod, PeriodLabel, due_after, is_after, period_label
from calibrant.monitors.results import Assumed, SegmentReadings, Unit, Watched, flagged_among
from calibrant.monitors.storage import Packer, Record, damaged, sealed, unsealed
from calibrant.monitors.waiting import check_ids
from calibrant.rows.cells import Cells
from calibrant.rows.checks import check_forecasts, check_labels, check_number, check_same_index
from calibrant.rows.groups import GroupedRows, GroupedSource, are_grouped, by_group
from calibrant.rows.intake import RowsLike
from calibrant.rows.promised import as_observations

FORMAT = "calibrant/monitors/1"

MOST_SEGMENTS = 500
"""Each keeps its own bets and totals, which take megabytes."""


class Monitors(FromFrames):
    """Watch many segments, each with a monitor of its own that is made when its label first appears.

    The more segments, the more of them look bad by chance. Those that a reading flags are chosen by their evidence
    together (e-BH of Wang and Ramdas, 2022): at any one time, of the segments flagged at most a share of
    ``false_discovery_rate`` is flagged by mistake, on average, whatever segments have to do with each other.

    Parameters
    ----------
    max_error, confidence_level, tolerance, periods_between_false_alarms, unit, assume, maturity, measure, threshold
        As in `Monitor`, for each segment by itself.
    false_discovery_rate : float
        The share of flagged segments that may be flagged by mistake, on average.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> monitors = Monitors(max_error=0.05, unit="row")
    >>> for day in range(1, 31):
    ...     y_prob, ward = rng.random(300), rng.choice(["east", "north", "west"], 300)
    ...     chance = np.where(ward == "west", np.sqrt(y_prob), y_prob)
    ...     monitors.update(rng.random(300) < chance, y_prob, segment=ward, period=day)
    >>> readings = monitors.read()
    >>> readings.flagged, readings["west"].alarm.since
    (('west',), 1)
    """

    def __init__(
        self,
        *,
        max_error: float,
        confidence_level: float = 0.95,
        tolerance: float = 0.0,
        periods_between_false_alarms: float | None = 1000,
        unit: Unit = "period",
        assume: Assumed = "one population",
        maturity: int = 0,
        measure: Watched = "cutoff",
        threshold: ArrayLike | None = None,
        false_discovery_rate: float = 0.05,
    ) -> None:
        self.false_discovery_rate = check_number(false_discovery_rate, "false_discovery_rate", low=1e-9, high=0.5)
        self._each = Monitor(
            max_error=max_error,
            confidence_level=confidence_level,
            tolerance=tolerance,
            periods_between_false_alarms=periods_between_false_alarms,
            unit=unit,
            assume=assume,
            maturity=maturity,
            measure=measure,
            threshold=threshold,
        )
        self._monitors: dict[Label, Monitor] = {}
        self._ledger = Ledger()
        self._late = 0

    # --- Rows come in ----------------------------------------------------------------------------------------------

    @frames_follow
    def update(
        self,
        y_true: RowsLike | GroupedSource | GroupedRows,
        y_prob: ArrayLike | None = None,
        *,
        segment: Any = None,
        period: Any = None,
        sample_weight: ArrayLike | None = None,
        pos_label: ClassLabel | None = None,
        batch: str | None = None,
    ) -> None:
        """Add a batch of rows, all of them or none.

        Parameters
        ----------
        y_true, y_prob, period, sample_weight, pos_label, batch
            As in `Monitor.update`; or in place of rows and segments what ``scan(..., by=...)`` returned.
        segment : label, or array-like of shape (n,)
            The segment of the rows, or of each row: a text or a number.
        """
        own = period is None
        named = self._ledger.next_name() if own else period
        parts = self._parts(y_true, y_prob, segment, named, sample_weight, pos_label)
        opened = self._opened(parts, batch, own=own)
        add: dict[Label, Callable[[], None]] = {}
        made = self._made(list(parts))
        for label, batches in parts.items():
            with _naming(label):
                add[label] = made[label]._prepared(batches, batch, own=own)
        for each in add.values():
            each()
        self._monitors.update(made)
        self._ledger.take(opened, own=own)
        self._remember()

    def _parts(
        self, y_true: Any, y_prob: Any, segment: Any, period: Any, sample_weight: Any, pos_label: Any
    ) -> dict[Label, Batches]:
        """Return the totals of rows by segment and period."""
        if are_grouped(y_true):
            if segment is not None:
                raise InputError("was given together with rows in groups", argument="segment", remedy="leave it out")
            label = period_label(period)
            return {
                group: [(label, cells)] for group, cells in zip(y_true.groups, by_group(y_true, as_cells), strict=True)
            }
        if segment is None:
            raise InputError("is missing: name the segment of the rows, or of each row", argument="segment")
        if is_one(segment):
            (label,), _ = check_labels([segment], "segment", 1)
            return {label: batches_of(y_true, y_prob, period, sample_weight, pos_label)}
        rows = as_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
        check_same_index(y_prob=y_prob, segment=segment)
        labels, members = check_labels(segment, "segment", rows.y_prob.size)
        place = np.empty(rows.y_prob.size, dtype=np.int64)
        for position, those in enumerate(members):
            place[those] = position
        periods: list[PeriodLabel] = []
        if is_one(period):
            periods, of_row = [period_label(period)], np.zeros(rows.y_prob.size, dtype=np.int64)
        else:
            check_same_index(y_prob=y_prob, period=period)
            periods, of_row = period_places(period, rows.y_prob.size)
        found: dict[Label, Batches] = {}
        for both, some in split_rows(rows, place * len(periods) + of_row):
            position, which = divmod(both, len(periods))
            found.setdefault(labels[position], []).append((periods[which], Cells.from_rows(some, GRID)))
        return found

    def _opened(self, parts: dict[Label, Batches], batch: str | None, *, own: bool) -> dict[PeriodLabel, OpenPeriod]:
        """Return the periods of a batch with its mark, which tells also batches of many small segments apart."""
        by_period: dict[PeriodLabel, dict[Label, Cells]] = {}
        for label, batches in parts.items():
            for period, cells in batches:
                by_period.setdefault(period, {})[label] = cells
        self._ledger.check(by_period, own=own)
        known = self._ledger.periods
        return {
            period: known.get(period, OpenPeriod()).marked(rows, period, batch) for period, rows in by_period.items()
        }

    def _made(self, labels: list[Label]) -> dict[Label, Monitor]:
        """Return the monitors of segments, new ones where there are none yet."""
        known = next(iter(self._monitors), labels[0] if labels else None)
        for label in labels:
            if _kind(label) is not _kind(known):
                raise InputError(
                    f"is {label!r}, and others are like {known!r}", argument="segment", remedy="use labels of one type"
                )
        count = len({*self._monitors, *labels})
        if count > MOST_SEGMENTS:
            raise InputError(
                f"has {count:,} different labels so far, and at most {MOST_SEGMENTS} segments are watched",
                argument="segment",
                remedy="watch larger segments, or several sets of them apart",
            )
        return {
            label: self._monitors[label] if label in self._monitors else Monitor(**self._each.options())
            for label in labels
        }

    @frames_follow
    def expect(self, y_prob: ArrayLike, *, ids: ArrayLike, segment: Any, period: Any) -> None:
        """Add forecasts whose labels come later; `observe` brings the labels under the same ids.

        Parameters
        ----------
        y_prob, ids, period
            As in `Monitor.expect`.
        segment : label, or array-like of shape (n,)
            The segment of all of these forecasts, or of each.
        """
        forecasts = check_forecasts(y_prob)
        names = check_ids(ids, forecasts.size)
        label = period_label(period)
        due_after(label, self._each.maturity)
        self._ledger.check([label], own=False)
        waiting = self._waiting()
        known = next((each for each in names if each in waiting), None)
        if known is not None:
            raise InputError(f"{known!r} has a forecast already that waits for its label", argument="ids", value=known)
        given = [segment] * forecasts.size if is_one(segment) else segment
        labels, members = check_labels(given, "segment", forecasts.size)
        made = self._made(labels)
        for each, those in zip(labels, members, strict=True):
            made[each].expect(forecasts[those], ids=[names[place] for place in those.tolist()], period=label)
        self._monitors.update(made)
        self._ledger.take({label: self._ledger.periods.get(label, OpenPeriod())}, own=False)
        self._remember()

    @frames_follow
    def observe(self, y_true: ArrayLike, *, ids: ArrayLike) -> None:
        """Add labels of forecasts that were passed to `expect`, of any segments, in any order.

        Parameters
        ----------
        y_true, ids
            As in `Monitor.observe`.
        """
        outcomes = outcomes_of(y_true)
        names = check_ids(ids, outcomes.size)
        waiting = self._waiting()
        known = [place for place, each in enumerate(names) if each in waiting]
        by_segment: dict[Label, list[int]] = {}
        for place in known:
            by_segment.setdefault(waiting[names[place]], []).append(place)
        for label, places in by_segment.items():
            self._monitors[label]._waiting.check([(names[place], float(outcomes[place])) for place in places])
        for label, places in by_segment.items():
            self._monitors[label].observe(outcomes[places], ids=[names[place] for place in places])
        self._late += len(names) - len(known)
        self._remember()

    def _waiting(self) -> dict[Any, Label]:
        """Return the segment of each id that waits for its label."""
        return {each: label for label, monitor in self._monitors.items() for each in monitor._waiting.periods}

    # --- What can be said -------------------------------------------------------------------------------------------

    @frames_follow
    def read(self, *, through: Any = None) -> SegmentReadings:
        """Close the periods so far, the same for all segments, and return what can be said of each.

        Parameters
        ----------
        through : int, str or date, optional
            As in `Monitor.read`. A segment may have no rows in a period.
        """
        end = self._ledger.due(self._each.maturity) if through is None else period_label(through)
        while end is not None and self._ledger.close_next(end) is not None:
            pass
        readings = {}
        for label in self.segments:
            monitor = self._monitors[label]
            monitor._close_through(end)
            if monitor._last is not None:
                readings[label] = monitor._last
        if not readings or self._ledger.closed is None:
            problem = "no period is complete" if self._ledger.periods else "no rows have come in"
            raise InputError(f"nothing can be read: {problem}", remedy="update() the monitors first")
        chosen = flagged_among([each.evidence for each in readings.values()], self.false_discovery_rate)
        return SegmentReadings(
            groups=tuple(readings),
            readings=tuple(readings.values()),
            flagged=tuple(label for label, is_chosen in zip(readings, chosen, strict=True) if is_chosen),
            period=self._ledger.closed,
            false_discovery_rate=self.false_discovery_rate,
            late=self._late,
        )

    @property
    def segments(self) -> tuple[Label, ...]:
        """The labels that have appeared, sorted."""
        labels: list[Any] = list(self._monitors)
        return tuple(sorted(labels))

    def __getitem__(self, segment: Any) -> Monitor:
        """Return the monitor of a segment."""
        return self._monitors[segment]

    def __len__(self) -> int:
        return len(self._monitors)

    def __iter__(self) -> Iterator[Label]:
        """Go through the labels of the segments, as through the keys of a dict."""
        return iter(self.segments)

    @property
    def history(self) -> Any:
        """What was said of each segment after each period, as a frame of the library of the last rows."""
        columns: dict[str, list[Any]] = {name: [] for name in ("segment", *state.HISTORY)}
        for label in self.segments:
            said = self._monitors[label]._history
            columns["segment"] += [label] * len(said["period"])
            for name, values in said.items():
                columns[name] += values
        return self._framed(columns)

    def reset(self, segment: Any = None) -> None:
        """Begin anew with the next period, as after a repair: one segment, or all of them.

        What that does to the promises is said in `Monitor.reset`.

        Parameters
        ----------
        segment : label, optional
            Which one; all of them unless given.
        """
        if segment is not None and segment not in self._monitors:
            raise InputError(f"is {segment!r}, of which no rows have come in", argument="segment")
        for label in self.segments if segment is None else (segment,):
            self._monitors[label].reset()

    # --- Parts together ---------------------------------------------------------------------------------------------

    def __add__(self, other: Monitors) -> Monitors:
        """Return monitors of the rows of both: shards of the same periods, of which at most one has been read."""
        if not isinstance(other, Monitors):
            return NotImplemented
        if self.options() != other.options():
            raise InputError("these monitors ask different questions", remedy=f"{self.options()} and {other.options()}")
        read, new = (self, other) if other._ledger.closed is None else (other, self)
        if new._ledger.closed is not None:
            raise InputError(
                f"both were read, up to {printable(self._ledger.closed)} and {printable(other._ledger.closed)}: limits "
                "and evidence of parts do not add up to those of the whole",
                remedy="add monitors before they are read, and read the sum",
            )
        found = deepcopy(read)
        found._ledger.join(new._ledger)
        twice = next((each for each in new._waiting() if each in read._waiting()), None)
        if twice is not None:
            raise InputError(f"both wait for the label of {twice!r}")
        made = found._made(list(new._monitors))
        for label, monitor in new._monitors.items():
            with _naming(label):
                found._monitors[label] = made[label] + monitor
        found._late += new._late
        return found

    # --- Kept elsewhere ---------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the whole state as text, from which `from_json` makes monitors that go on just like these."""
        packer = Packer()
        segments = [
            {"segment": label, "parts": state.plain(monitor._parts(), packer)}
            for label, monitor in self._monitors.items()
        ]
        content = {
            "options": self.options(),
            "ledger": state.plain_ledger(self._ledger, packer),
            "late": self._late,
            "segments": segments,
        }
        return sealed(FORMAT, {**content, "arrays": packer.table})

    @classmethod
    def from_json(cls, text: str) -> Monitors:
        """Return the monitors whose `to_json` gave the text; a text that is damaged or was changed is refused.

        Parameters
        ----------
        text : str
            What `to_json` returned.

        Returns
        -------
        Monitors
            They go on like those that were written.
        """
        found = unsealed(text, FORMAT).only("options", "ledger", "late", "segments", "arrays")
        monitors = state.with_options(cls, found.record("options"))
        monitors._ledger = state.rebuilt_ledger(found.record("ledger"))
        monitors._late = found.whole("late")
        stored = [each.only("segment", "parts") for each in found.records("segments")]
        labels = [_stored_label(each) for each in stored]
        if len(set(labels)) < len(labels):
            raise damaged("a segment is there twice")
        try:
            made = monitors._made(labels)
        except CalibrantError as error:
            raise damaged(f"its segments cannot be: {error}") from error
        for label, each in zip(labels, stored, strict=True):
            made[label]._become(each.record("parts"))
            monitors._check_ledger(made[label]._ledger)
        monitors._monitors = made
        if len(monitors._waiting()) < sum(len(each._waiting) for each in made.values()):
            raise damaged("two segments wait for the label of the same forecast")
        return monitors

    def _check_ledger(self, of_segment: Ledger) -> None:
        """Refuse a segment with periods that these monitors do not know."""
        ours, theirs = self._ledger.closed, of_segment.closed
        fits = theirs is None or (
            ours is not None and isinstance(ours, str) is isinstance(theirs, str) and not is_after(theirs, ours)
        )
        if not fits or not set(of_segment.periods) <= set(self._ledger.periods):
            raise damaged("the periods of its segments do not go together")

    def options(self) -> dict[str, Any]:
        """Return what the monitors were asked for."""
        return {**self._each.options(), "false_discovery_rate": self.false_discovery_rate}

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.options().items())
        return f"Monitors({said})"


def _kind(label: Any) -> type[Any]:
    """Return what labels have in common that can be sorted; true is no number."""
    return type(label) if isinstance(label, (str, bool)) else float


def _stored_label(found: Record) -> Label:
    label = found.value("segment")
    if not isinstance(label, (str, int, float)):
        found.refuse("segment", "no label")
    return label


@contextlib.contextmanager
def _naming(segment: Label) -> Iterator[None]:
    """Say in which segment something is wrong."""
    try:
        yield
    except CalibrantError as error:
        raise error.among(source=f"segment {printable(segment)}") from error

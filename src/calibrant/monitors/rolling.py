"""What to do after an alarm: repair forecasts by maps that are fitted to the last periods, again and again."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.core.errors import CalibrantError, InputError
from calibrant.core.frames import FromFrames, frames_follow
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray
from calibrant.core.words import counted, measured, printable
from calibrant.monitors import rolling_state, state
from calibrant.monitors.batches import GRID, is_one, period_places
from calibrant.monitors.monitor import Monitor
from calibrant.monitors.periods import PeriodLabel, due_after, is_after, period_label
from calibrant.monitors.refits import (
    BRAKING,
    Fitted,
    RecalibratorName,
    Score,
    Window,
    as_recalibrator,
    brier_of,
    check_window,
    cutoff_of,
    in_time,
    rows_for,
)
from calibrant.monitors.repaired import RollingReading
from calibrant.monitors.results import Alarm, Reading, Unit
from calibrant.monitors.storage import Packer, damaged, sealed, unsealed
from calibrant.repairs.guard import rebuilt_rung
from calibrant.repairs.recalibrator import Recalibrator, plain_params
from calibrant.rows.cells import Cells
from calibrant.rows.checks import Observations, check_forecasts, check_number, check_same_index
from calibrant.rows.hints import row_hints
from calibrant.rows.promised import as_observations
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Totals

ALARMS = 3
"""So many alarms about repaired forecasts within one window apply the brake."""

_WATCHED = ("max_error", "confidence_level", "tolerance", "periods_between_false_alarms", "unit", "maturity")
"""What may be asked of both monitors."""


class RollingRecalibrator(FromFrames):
    """Repair forecasts by a map that is fitted to the last periods, and fitted anew for each period.

    A map that is fitted once is good for cases like those it was fitted to; when these change, it can do harm. This one
    forgets what is older than its window. Every period is judged by the map of earlier periods only, as it would have
    been in use, and two monitors watch: one the forecasts as they are, one the forecasts that were issued.

    An alarm about repaired forecasts says that the window holds periods unlike the last ones: those before the change,
    as the alarm dates it, are left out of the window, as long as enough rows stay.

    Three such alarms within ``window`` periods say that the world changes faster than the window follows, and apply the
    brake: forecasts are issued as they are for ``window`` periods, after which nothing of the time of these alarms is
    left in the window, and repairs are tried again; if these soon fail too, the brake stays on twice as long as before.
    (Not the last map that raised no alarm: it is older than any other, and what has changed since made it wrong.)

    Parameters
    ----------
    recalibrator : {"isotonic", "platt", "guarded"} or Recalibrator
        What is fitted: isotonic regression kept off 0 and 1, a logistic curve of the logit, the ladder of
        `GuardedRecalibrator`, or any recalibrator of probabilities.
    window : int
        How many periods a map is fitted to at most, counting those that have rows. `compare_windows` says what windows
        of several lengths would have done.
    max_error : float
        The Cutoff calibration error that the verdicts of both monitors are about.
    min_rows : int, optional
        With fewer rows in the window forecasts stay as they are. By default so many that calibrated forecasts of
        independent rows stay below ``max_error`` in 95% of cases: 624 for 0.05, 3,899 for 0.02. Below that, a map may
        add more error by chance than is tolerated.
    confidence_level, tolerance, periods_between_false_alarms, unit
        As in `Monitor`. Both monitors assume "anything", since every period has a map of its own.
    maturity : int
        How many periods (days, where periods are dates) after its forecast a label is due. The map for a period is
        fitted to periods whose labels were due before it.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rolling = RollingRecalibrator("platt", window=5, max_error=0.05, unit="row")
    >>> for day in range(1, 31):
    ...     y_prob = rng.random(500)
    ...     issued = rolling.update(rng.random(500) < np.sqrt(y_prob), y_prob, period=day)
    >>> reading = rolling.read()
    >>> reading.before.alarm.period, reading.alarms, reading.status
    (1, (), 'repairing')
    >>> round(reading.cutoff_before, 3), round(reading.cutoff_after, 3)
    (0.167, 0.007)
    >>> rolling.predict([0.25, 0.5]).round(2)
    array([0.52, 0.72])
    """

    def __init__(
        self,
        recalibrator: RecalibratorName | Recalibrator = "isotonic",
        *,
        window: int,
        max_error: float,
        min_rows: int | None = None,
        confidence_level: float = 0.95,
        tolerance: float = 0.0,
        periods_between_false_alarms: float | None = 1000,
        unit: Unit = "period",
        maturity: int = 0,
    ) -> None:
        options: dict[str, Any] = {
            "max_error": max_error,
            "confidence_level": confidence_level,
            "tolerance": tolerance,
            "periods_between_false_alarms": periods_between_false_alarms,
            "unit": unit,
            "assume": "anything",
            "maturity": maturity,
        }
        self.before = Monitor(**options)
        self.after = Monitor(**options)
        least = rows_for(max_error) if min_rows is None else check_number(min_rows, "min_rows", low=2, whole=True)
        self._window = Window(as_recalibrator(recalibrator), check_window(window), int(least))
        self._scores = Score(self._window.size), Score(self._window.size)
        self._open: dict[PeriodLabel, tuple[Cells, Cells]] = {}  # forecasts as they are, and as they were issued
        self._maps: dict[PeriodLabel, Fitted] = {}  # of periods that are not closed
        self._next: Fitted | None = None  # what the window as it is leads to
        self._said: Reading | None = None  # of the monitor of forecasts that were issued, which begins anew at times
        self._alarms: list[Alarm] = []
        self._counted: list[int] = []  # when alarms that count for the brake went off
        self._brakes = 0
        self._brake_left = 0
        self._braked = (0, 0)  # for how long the last time, and after how many periods that was over
        self._history: dict[str, list[Any]] = {name: [] for name in rolling_state.HISTORY}

    # --- Rows come in -------------------------------------------------------------------------------------------------

    @frames_follow
    def update(
        self,
        y_true: ArrayLike | Observations,
        y_prob: ArrayLike | None = None,
        *,
        period: Any = None,
        sample_weight: ArrayLike | None = None,
        pos_label: ClassLabel | None = None,
        batch: str | None = None,
    ) -> FloatArray:
        """Add a batch of rows with their forecasts as they are, all of them or none.

        Parameters
        ----------
        y_true, y_prob, sample_weight, pos_label
            As in `certify`; rows, not totals. The forecasts are those before any repair.
        period : int, str, date, or array-like of them, optional
            The period of the rows, or of each row, as in `Monitor.update`. A period may come in several batches, all of
            which go through the map of that period. Periods that a map was fitted to take no more rows.
        batch : str, optional
            A name for the batch, as in `Monitor.update`.

        Returns
        -------
        array of shape (n,)
            The forecasts after the repair, in the order of the rows: what `predict` gave, or would have given, before
            the outcomes were known.
        """
        given: Any = y_true
        if isinstance(given, Totals) or (not isinstance(given, np.ndarray) and isinstance(given, RowSource)):
            raise InputError(
                "totals and scans have no rows whose forecasts could be repaired",
                remedy="pass outcomes and forecasts, as in update(y_true, y_prob)",
            )
        rows = as_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
        self._remember()
        if is_one(period):
            return self._add(rows, None if period is None else period_label(period), batch)
        check_same_index(y_prob=y_prob, period=period)
        labels, place = period_places(period, rows.y_prob.size)
        issued = np.empty(rows.y_prob.size)
        kept = deepcopy(self.__dict__)
        try:
            for label in in_time(labels):
                positions = np.flatnonzero(place == labels.index(label))
                issued[positions] = self._add(rows.take(positions).alone(), label, batch)
        except CalibrantError:
            self.__dict__.update(kept)
            raise
        return issued

    def _add(self, rows: Observations, period: PeriodLabel | None, batch: str | None) -> FloatArray:
        """Add rows of one period, and return their forecasts after the repair."""
        label = self.before._ledger.next_name() if period is None else period
        self.before._ledger.check([label], own=period is None)
        fitted = self._map_of(label)
        issued = fitted.applied(rows.y_prob)
        counting = rows.that_count()
        if not counting.y_prob.size:
            return issued
        raw = Cells.from_rows(counting, GRID)
        repaired = raw if fitted.map is None else Cells.from_rows(replace(rows, y_prob=issued).that_count(), GRID)
        self.before.update(raw, period=period, batch=batch)
        if fitted.map is not None or fitted.status == BRAKING:
            # Other rows may well be the same after a map that has few steps; the same rows were refused above.
            self.after.update(repaired, period=label, batch="")
        self._maps[label] = fitted
        known = self._open.get(label)
        self._open[label] = (raw, repaired) if known is None else (known[0] + raw, known[1] + repaired)
        return issued

    def predict(self, y_prob: ArrayLike, *, period: Any = None) -> FloatArray:
        """Return the repaired forecasts of the next period; those that stay as they are where nothing is repaired.

        The periods that the map is fitted to are closed: they take no more rows.

        Parameters
        ----------
        y_prob : array-like of shape (n,)
            Forecasts as they are.
        period : int, str or date, optional
            The period of the forecasts, the next by default. With ``maturity`` and periods that have names it must be
            said: which labels were due before it depends on it. Its rows go through this very map when they come in.
        """
        forecasts = check_forecasts(y_prob)
        if period is not None:
            label = period_label(period)
            self.before._ledger.check([label], own=False)
            self._maps[label] = self._map_of(label)
            return self._maps[label].applied(forecasts)
        if self.before.maturity and self.before._ledger.named:
            raise InputError(
                "is missing: with maturity, which labels were due depends on it",
                argument="period",
                remedy="say of which period these forecasts are",
            )
        return self._map_of(None).applied(forecasts)

    # --- Maps ---------------------------------------------------------------------------------------------------------

    def _map_of(self, period: PeriodLabel | None) -> Fitted:
        """Return what forecasts of a period go through; None for the period after the newest."""
        if period is not None and period in self._maps:
            return self._maps[period]
        made = next(reversed(in_time(self._maps)), None)
        if period is not None and made is not None and not is_after(period, made):
            raise InputError(
                f"is {printable(period)}, and a map was made for {printable(made)} already: one for an earlier period "
                "would know too much",
                argument="period",
                remedy="pass periods in their order, or predict() each before the next",
            )
        self._close_due(period)
        if self._scores[0].periods == 0:
            self._window.refuse_few()
        return self._upcoming()

    def _upcoming(self) -> Fitted:
        """Return what the next forecasts go through, given the periods that are closed."""
        if self._next is None:
            rows = self._window.rows
            self._next = Fitted(None, BRAKING, rows) if self._brake_left else self._window.fit()
        return self._next

    def _close_due(self, period: PeriodLabel | None = None) -> None:
        """Close the periods whose labels are due before a period, or before the one after the newest."""
        opened = in_time(self._open)
        for each in opened:
            due = due_after(each, self.before.maturity)
            if not is_after(due, opened[-1]) if period is None else is_after(period, due):
                self._close(each)

    def _close(self, period: PeriodLabel) -> None:
        """Judge a period, and let maps know of it."""
        raw, repaired = self._open.pop(period)
        fitted = self._maps[period]
        self._maps = {each: made for each, made in self._maps.items() if is_after(each, period)}
        before = self.before.read(through=period)
        alarm = None
        if fitted.map is not None or fitted.status == BRAKING:
            self._said = self.after.read(through=period)
            alarm = self._said.alarm
            self._scores[0].add(raw)
            self._scores[1].add(repaired)
        self._window.push(period, raw)
        self._next = None
        found = (
            period,
            raw.row_total,
            fitted.status,
            fitted.rows,
            cutoff_of(raw),
            cutoff_of(repaired),
            brier_of(raw),
            brier_of(repaired),
            before.alarm is not None,
            alarm is not None,
        )
        for name, value in zip(rolling_state.HISTORY, found, strict=True):
            self._history[name].append(value)
        self._brake(fitted, alarm, before)

    def _brake(self, fitted: Fitted, alarm: Alarm | None, before: Reading) -> None:
        """Count alarms of repaired forecasts, and apply or release the brake."""
        if alarm is not None:
            self._alarms.append(alarm)
            self.after.reset()
        now = len(self._history["period"])
        if self._brake_left:
            self._brake_left -= 1
            if self._brake_left == 0:
                self._braked = self._braked[0], now
                if alarm is None:
                    self.after.reset()  # what comes next goes through maps again
            return
        if alarm is not None and fitted.map is not None:
            size = self._window.size
            self._window.forget(period_label(alarm.since), self._window.min_rows * self._spread(before))
            self._counted = [*(when for when in self._counted if when > now - size), now]
            if len(self._counted) >= ALARMS:
                self._counted = []
                self._brakes += 1
                length, over = self._braked
                self._brake_left = 2 * length if length and now <= over + 2 * size else size
                self._braked = self._brake_left, now

    def _spread(self, before: Reading) -> float:
        """Return how many rows say as much as an independent one: rows of a period may share what decides them."""
        known = None if self.before.unit == "row" else before.overdispersion
        return max(known or 1.0, 1.0)

    # --- What can be said ---------------------------------------------------------------------------------------------

    @frames_follow
    def read(self) -> RollingReading:
        """Close the periods whose labels are due, and return what the repair did so far."""
        self._close_due()
        before = self.before._last
        if before is None:
            problem = "no period is complete" if self._open else "no rows have come in"
            raise InputError(f"nothing can be read: {problem}", remedy="update() first")
        raw, repaired = self._scores
        window = self._window
        return RollingReading(
            period=before.period,
            recalibrator=type(window.recalibrator).__name__,
            window=window.size,
            window_periods=len(window.periods),
            window_rows=window.rows,
            min_rows=window.min_rows,
            status=self._upcoming().status,
            periods=raw.periods,
            rows=0 if raw.cells is None else raw.cells.row_total,
            cutoff_before=raw.cutoff,
            cutoff_after=repaired.cutoff,
            cutoff_by_stretch_before=raw.cutoff_by_stretch,
            cutoff_by_stretch_after=repaired.cutoff_by_stretch,
            brier_before=raw.brier,
            brier_after=repaired.brier,
            before=before,
            after=self._said,
            alarms=tuple(self._alarms),
            brakes=self._brakes,
            brake_left=self._brake_left,
            notes=self._notes(before),
        )

    def _notes(self, before: Reading) -> tuple[str, ...]:
        raw, repaired = self._scores
        found = []
        spread = self._spread(before)
        if spread > 2.0:
            alone = counted(max(round(self._window.rows / spread), 1), "row")
            found.append(
                f"periods differ {measured(spread, 2)} times as much as independent rows would make them: the "
                f"{counted(self._window.rows, 'row')} of the window say about as much as {alone} would; "
                "compare_windows() says what a longer window would have done"
            )
        if raw.brier is not None and repaired.brier is not None and repaired.brier > raw.brier:
            found.append("by the Brier score the forecasts as they are were better than the repaired ones")
        if self._brakes > 1:
            found.append(
                "the brake was applied more than once: what forecasts are off by changes faster than this window "
                "follows; a shorter window, or a new model, may be what is needed"
            )
        return (*found, *(() if self.before.cells is None else row_hints(self.before.cells)))

    @property
    def history(self) -> Any:
        """What became of each period, as a frame of the library of the last rows: scores before and after, alarms."""
        return self._framed(dict(self._history))

    # --- Kept elsewhere -----------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the whole state as text, from which `from_json` makes a recalibrator that goes on just like this one.

        The text grows with the cells that hold rows in the periods of the window, not with rows; beside that it lists
        what became of each period.
        """
        packer = Packer()
        content = rolling_state.plain(self._parts(), packer)
        monitors = {name: state.plain(getattr(self, name)._parts(), packer) for name in ("before", "after")}
        stored = {"options": self._plain_options(), "parts": content, **monitors, "arrays": packer.table}
        return sealed(rolling_state.FORMAT, stored)

    @classmethod
    def from_json(cls, text: str) -> RollingRecalibrator:
        """Return what `to_json` was called on; a text that is damaged or was changed is refused.

        Parameters
        ----------
        text : str
            What `to_json` returned.

        Returns
        -------
        RollingRecalibrator
            It goes on like the one that was written.
        """
        found = unsealed(text, rolling_state.FORMAT).only("options", "parts", "before", "after", "arrays")
        options = found.record("options")
        try:
            kind = rebuilt_rung(options.value("recalibrator"))
            made = cls(**{**options.data, "recalibrator": kind})
        except (CalibrantError, TypeError) as error:
            raise damaged(f"its options cannot be: {error}") from error
        if made._plain_options() != options.data:
            raise damaged("its options are not complete")
        made.before._become(found.record("before"))
        made.after._become(found.record("after"))
        made._become(rolling_state.rebuilt(found.record("parts"), made._window))
        return made

    def _parts(self) -> rolling_state.RollingParts:
        return rolling_state.RollingParts(
            window=self._window.periods,
            scores=self._scores,
            open=self._open,
            maps=self._maps,
            said=self._said,
            alarms=self._alarms,
            counted=self._counted,
            brakes=self._brakes,
            brake_left=self._brake_left,
            braked=self._braked,
            history=self._history,
        )

    def _become(self, parts: rolling_state.RollingParts) -> None:
        """Take over what another one remembered, if it goes together with what its monitors remember."""
        periods, open_periods = len(parts.history["period"]), self.before._ledger.periods
        if set(parts.open) != set(open_periods) or len(self.before._history["period"]) != periods:
            raise damaged("its periods are not those of its monitors")
        self._window.periods = parts.window
        self._scores = parts.scores
        self._open = parts.open
        self._maps = parts.maps
        self._said = parts.said
        self._alarms = parts.alarms
        self._counted = parts.counted
        self._brakes = parts.brakes
        self._brake_left = parts.brake_left
        self._braked = parts.braked
        self._history = parts.history

    def _plain_options(self) -> dict[str, Any]:
        kind = self._window.recalibrator
        plain = {"type": type(kind).__name__, "params": plain_params(kind)}
        return {**self.options(), "recalibrator": plain}

    def options(self) -> dict[str, Any]:
        """Return what was asked for."""
        watched = self.before.options()
        own = {
            "recalibrator": self._window.recalibrator,
            "window": self._window.size,
            "min_rows": self._window.min_rows,
        }
        return own | {name: watched[name] for name in _WATCHED}

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.options().items())
        return f"RollingRecalibrator({said})"

"""A monitor: limits, verdicts and alarms for forecasts that keep coming, which stay right however often one looks."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.frames import FromFrames, frames_follow
from calibrant.core.types import ArrayLike, ClassLabel
from calibrant.core.voices import Option, Phrase
from calibrant.core.words import counted, printable
from calibrant.monitors import saying, state
from calibrant.monitors.batches import Batches, as_cells, batches_of, outcomes_of
from calibrant.monitors.evidence import Component, Evidence
from calibrant.monitors.families import BEGIN, BORDERS, END
from calibrant.monitors.periods import Ledger, OpenPeriod, PeriodLabel, due_after, period_label
from calibrant.monitors.questions import question_of
from calibrant.monitors.results import Alarm, Assumed, Reading, Unit, Watched
from calibrant.monitors.spread import Spread
from calibrant.monitors.storage import Packer, Record, sealed, unsealed
from calibrant.monitors.uppers import PeriodSums, upper_in_family
from calibrant.monitors.waiting import Waiting, check_ids
from calibrant.rows.cells import Cells
from calibrant.rows.checks import check_choice, check_confidence, check_forecasts, check_number
from calibrant.rows.hints import row_hints
from calibrant.rows.intake import RowsLike

_HIGHEST = 600.0  # logarithms of evidence above which nothing changes


class Monitor(FromFrames):
    """Watch forecasts of which more and more outcomes come in.

    Verdicts of `certify` are for one look: who reads them each day is wrong far more often than 5% of the time. Those
    of a monitor hold at all times together: with the confidence stated no limit is ever wrong, however often one reads
    it. An alarm says that forecasts are off by more than tolerated: if they never are, at least
    ``periods_between_false_alarms`` periods pass on average before the first.

    Parameters
    ----------
    max_error : float
        The Cutoff calibration error that the verdict is about.
    confidence_level : float
        How often each limit is never wrong.
    tolerance : float
        The error that is no reason for an alarm: alarms show that some period was off by more, given the past and its
        forecasts.
    periods_between_false_alarms : float or None
        How many periods pass on average before a false alarm, at least. None for an alarm that is false with
        probability at most ``1 - confidence_level``, ever, which takes longer to go off.
    unit : str
        What counts as one piece of evidence. "period": the mean of a period, so that its rows may have anything to do
        with each other; each period counts once, however many rows it has. "row": each row, which finds changes far
        sooner and is wrong if rows of a period share what decides outcomes.
    assume : str
        "one population": what to expect of a row, or period, stays the same, until an alarm says otherwise. "anything":
        limits are of the average error over what was to be expected each time, on intervals that begin and end at
        sixteenths (finer towards 0 and 1), and are wider.
    maturity : int
        How many periods (days, where periods are dates) after its forecast a label is due. A period counts when its
        labels are due, not when they arrive: events that are reported sooner than others would look too frequent.
    measure : str
        What is watched: "cutoff", or "risk_gap", what a decision maker would save by acting from another forecast on
        than the threshold. With periods as units the upper limit of the risk gap is that of the Cutoff error, which it
        is never above.
    threshold : float or pair of floats, optional
        For the risk gap: the threshold, or the lowest and the highest that decisions may use; by default all of them.

    Attributes
    ----------
    cells : Cells or None
        The totals of all rows that count, since the last reset.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor(max_error=0.05, unit="row")
    >>> for day in range(1, 31):
    ...     y_prob = rng.random(200)
    ...     chance = y_prob if day <= 20 else np.sqrt(y_prob)
    ...     monitor.update(rng.random(200) < chance, y_prob, period=day)
    ...     reading = monitor.read()
    >>> reading.verdict, reading.alarm.period, reading.alarm.since, reading.alarm.direction
    ('void', 21, 21, 'too low')
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
    ) -> None:
        self.max_error = check_number(max_error, "max_error", low=0.0, high=1.0)
        self.confidence_level = check_confidence(confidence_level)
        self.tolerance = check_number(tolerance, "tolerance", low=0.0, high=1.0)
        self.periods_between_false_alarms = periods_between_false_alarms
        if periods_between_false_alarms is not None:
            self.periods_between_false_alarms = check_number(
                periods_between_false_alarms, "periods_between_false_alarms", low=1.0, high=1e12
            )
        self.unit = check_choice(unit, "unit", ("period", "row"))
        self.assume = check_choice(assume, "assume", ("one population", "anything"))
        self.maturity = int(check_number(maturity, "maturity", low=0, high=1e6, whole=True))
        self.measure: str = measure
        self._question = question_of(measure, threshold)
        self.threshold = self._question.threshold
        if self.assume == "anything" and not self._question.any_dependence:
            raise InputError(
                "is 'anything', under which there is no upper limit of this measure",
                argument="assume",
                remedy=Phrase(
                    "use {one}, or {cutoff}, which no saving is above",
                    one=Option("assume", "one population"),
                    cutoff=Option("measure", "cutoff"),
                ),
            )
        self.epoch = 1
        self._ledger = Ledger()
        self._waiting = Waiting()
        self._history: dict[str, list[Any]] = {name: [] for name in state.HISTORY}
        self._last: Reading | None = None
        self._begin()

    def _begin(self) -> None:
        """Forget what was counted."""
        self.cells: Cells | None = None
        self._evidence = Evidence(self._question, self.unit, self.tolerance)
        self._sums = PeriodSums()
        self._spread = Spread()
        self._labels: dict[int, PeriodLabel] = {}
        self._limits = (0.0, 1.0)
        self._alarm: Alarm | None = None
        self._missing = 0

    # --- Rows come in ----------------------------------------------------------------------------------------------

    @frames_follow
    def update(
        self,
        y_true: RowsLike,
        y_prob: ArrayLike | None = None,
        *,
        period: Any = None,
        sample_weight: ArrayLike | None = None,
        pos_label: ClassLabel | None = None,
        batch: str | None = None,
    ) -> None:
        """Add a batch of rows, all of them or none.

        Parameters
        ----------
        y_true, y_prob, sample_weight, pos_label
            As in `certify`; or in place of both a `Tally`, `Cells` or what `scan` returned. Weights need periods as
            units.
        period : int, str, date, or array-like of them, optional
            The period of the rows, or of each row: a whole number or a date. Without it every batch is a period of its
            own. Periods may come in any order until they are read.
        batch : str, optional
            A name for the batch. The same name is taken once for a period; without a name, a batch of 20 rows or more
            with the very same numbers is refused in the same period, and among the last 100 where each batch is a
            period of its own. Of a batch whose name is empty nothing is remembered: for parts of a stream that cannot
            come twice, and whose names would be endless.
        """
        own = period is None
        label = self._ledger.next_name() if own else period
        self._prepared(batches_of(y_true, y_prob, label, sample_weight, pos_label), batch, own=own)()

    def _prepared(self, batches: Batches, batch: str | None, *, own: bool) -> Callable[[], None]:
        """Return what adds the rows of periods, after everything that could refuse some of them."""
        if self.unit == "row" and not all(cells.unit_weights for _, cells in batches):
            raise InputError(
                "was given to a monitor whose unit is the row: how large weights can become is unknown",
                argument="sample_weight",
                remedy=Phrase("use {unit}, whose means may be weighted", unit=Option("unit", "period")),
            )
        for label, _ in batches:
            due_after(label, self.maturity)
        joined = self._ledger.joined(batches, batch, own=own)

        def add() -> None:
            self._ledger.take(joined, own=own)
            self._remember()

        return add

    @frames_follow
    def expect(self, y_prob: ArrayLike, *, ids: ArrayLike, period: Any) -> None:
        """Add forecasts whose labels come later; `observe` brings the labels under the same ids.

        Parameters
        ----------
        y_prob : array-like of shape (n,)
            Forecast probabilities.
        ids : array-like of shape (n,)
            A name for each, a whole number or a text, none twice.
        period : int, str or date
            The period of all of these forecasts.
        """
        forecasts = check_forecasts(y_prob)
        label = period_label(period)
        due_after(label, self.maturity)
        self._ledger.check([label], own=False)
        self._waiting.expect(label, check_ids(ids, forecasts.size), forecasts)
        self._ledger.named = True
        self._ledger.periods.setdefault(label, OpenPeriod())
        self._remember()

    @frames_follow
    def observe(self, y_true: ArrayLike, *, ids: ArrayLike) -> None:
        """Add labels of forecasts that were passed to `expect`, in any order and in any number of parts.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            What happened: 0/1, booleans or fractions in [0, 1].
        ids : array-like of shape (n,)
            The ids of the forecasts that they belong to.
        """
        outcomes = outcomes_of(y_true)
        self._waiting.observe(check_ids(ids, outcomes.size), outcomes)
        self._remember()

    # --- What can be said -------------------------------------------------------------------------------------------

    @frames_follow
    def read(self, *, through: Any = None) -> Reading:
        """Close the periods so far, and return what can be said.

        Parameters
        ----------
        through : int, str or date, optional
            The last period to close; by default the newest one, or with ``maturity`` the newest whose labels are due.
            A period that is closed takes no more rows.
        """
        end = self._ledger.due(self.maturity) if through is None else period_label(through)
        self._close_through(end)
        if self._last is None:
            if self._missing:
                raise InputError(
                    f"nothing can be read: {counted(self._missing, 'forecast')} came due without any label",
                    remedy="observe() labels before they are due, under the ids that expect() was given",
                )
            problem = "no period is complete" if self._ledger.periods else "no rows have come in"
            raise InputError(f"nothing can be read: {problem}", remedy="update() the monitor first")
        return self._last

    def _close_through(self, end: PeriodLabel | None) -> None:
        while end is not None and (taken := self._ledger.close_next(end)) is not None:
            self._close(*taken)

    def _close(self, period: PeriodLabel, rows: OpenPeriod) -> None:
        """Count a period."""
        y_true, y_prob, missing = self._waiting.take(period)
        self._missing += missing
        cells = rows.cells
        if y_true.size:
            joined = as_cells(y_true, y_prob, None, None)
            cells = joined if cells is None else cells + joined
        if cells is None:
            return
        self._labels[self._evidence.periods] = period
        self._evidence.add(cells)
        if self.unit == "period":
            self._sums.add(cells)
        self._spread.add(cells)
        self.cells = cells if self.cells is None else self.cells + cells
        self._labels = {start: self._labels[start] for start in self._evidence.starts}
        self._last = self._look(period)
        alarm = self._last.alarm
        dated = {"alarm": alarm and alarm.period, "since": alarm and alarm.since}
        for name, values in self._history.items():
            values.append(dated[name] if name in dated else getattr(self._last, name))

    def _look(self, period: PeriodLabel) -> Reading:
        assert self.cells is not None
        delta = 1.0 - self.confidence_level
        one_population = self.assume == "one population"
        lower, upper = self._evidence.lower(delta, one_population=one_population), self._upper(delta)
        crossed = False
        if one_population:  # all limits so far are of one and the same error
            self._limits = max(lower, self._limits[0]), min(upper, self._limits[1])
            crossed = self._limits[0] > self._limits[1]
            lower, upper = (lower, max(upper, lower)) if crossed else self._limits
        ever = self.periods_between_false_alarms is None
        log_evidence, log_detector, largest = self._evidence.summary(ever=ever)
        gauge = log_evidence if ever else log_detector
        threshold = 1.0 / delta if self.periods_between_false_alarms is None else self.periods_between_false_alarms
        if self._alarm is None and gauge >= math.log(threshold):
            self._alarm = self._alarm_at(period, largest, threshold)
        totals = self.cells if self.unit == "row" else self._sums.cells
        assert totals is not None
        is_void = crossed or self._alarm is not None or (self.unit == "row" and self._spread.is_far)
        verdict = saying.verdict(lower, upper, self.max_error, is_void=is_void)
        late, estimate = self._waiting.late, min(self._question.estimate(totals), 1.0)
        facts = saying.Facts(
            self,
            self._spread,
            period,
            is_crossed=crossed,
            is_outside=one_population and not is_void and not lower <= estimate <= upper,
            missing=self._missing,
            late=late,
        )
        return Reading(
            period=period,
            periods=self._evidence.periods,
            rows=self.cells.row_total,
            epoch=self.epoch,
            unit=self.unit,
            assume=self.assume,
            measure=self.measure,
            estimate=estimate,
            lower=lower,
            upper=upper,
            max_error=self.max_error,
            tolerance=self.tolerance,
            confidence_level=self.confidence_level,
            verdict=verdict,
            evidence=math.exp(min(log_evidence, _HIGHEST)),
            detector=math.exp(min(gauge, _HIGHEST)),
            threshold=float(threshold),
            alarm=self._alarm,
            overdispersion=self._spread.overdispersion,
            alike=self._spread.alike,
            waiting=len(self._waiting),
            missing=self._missing,
            late=late,
            assumptions=saying.assumptions(facts),
            cautions=saying.cautions(self._question, self.max_error, totals),
            notes=(*saying.notes(facts), *row_hints(self.cells)),
        )

    def _upper(self, delta: float) -> float:
        assert self.cells is not None
        if self.assume == "anything":
            return upper_in_family(self._evidence, delta)
        if self.unit == "row":
            return self._question.upper_of_rows(self.cells, delta)
        # No saving is above the Cutoff error, of which this is the limit whatever is watched.
        return self._sums.upper(self._evidence.periods, delta)

    def _alarm_at(self, period: PeriodLabel, largest: Component, threshold: float) -> Alarm:
        return Alarm(
            period=period,
            since=self._labels[largest.start],
            low=float(BORDERS[BEGIN[largest.interval]]),
            high=float(BORDERS[END[largest.interval]]),
            direction="too low" if largest.sign > 0.0 else "too high",
            confirmed=largest.log_evidence >= math.log(threshold),
        )

    @property
    def last(self) -> Reading | None:
        """What was said last in this epoch."""
        return self._last

    @property
    def unread(self) -> tuple[PeriodLabel, ...]:
        """The periods that take more rows, the first one first."""
        return tuple(self._ledger.in_order())

    @property
    def open_periods(self) -> int:
        """How many periods take more rows: those that were not read yet."""
        return len(self._ledger.periods)

    @property
    def history(self) -> Any:
        """What was said after each period, as a frame of the library in which the last rows came in."""
        return self._framed(dict(self._history))

    def reset(self) -> None:
        """Begin anew with the next period, as after a repair or a new model.

        Evidence, limits and alarm start from nothing; what was said stays in the history. The promises hold for each
        epoch by itself: the upper limits of k epochs are all right with probability at least
        ``1 - k (1 - confidence_level)``, and so are the lower ones.
        Rows of periods that were not read yet, and forecasts that wait for labels, stay.
        """
        self._begin()
        self.epoch += 1
        self._last = None

    # --- Parts together ---------------------------------------------------------------------------------------------

    def __add__(self, other: Monitor) -> Monitor:
        """Return a monitor of the rows of both: shards of the same periods, of which at most one has been read.

        Totals of rows add up exactly; limits and evidence do not, so that periods that were read cannot be joined.
        """
        if not isinstance(other, Monitor):
            return NotImplemented
        if self.options() != other.options():
            raise InputError("these monitors ask different questions", remedy=f"{self.options()} and {other.options()}")
        read, new = (self, other) if other._ledger.closed is None else (other, self)
        if new._ledger.closed is not None:
            raise InputError(
                f"both monitors were read, up to {printable(self._ledger.closed)} and "
                f"{printable(other._ledger.closed)}: limits and evidence of parts do not add up to those of the whole",
                remedy="add monitors before they are read, and read the sum",
            )
        found = deepcopy(read)
        found._ledger.join(new._ledger)
        waiting = new._waiting
        for period, forecasts in waiting.forecasts.items():
            found._waiting.expect(period, list(forecasts), np.array(list(forecasts.values())))
        found._waiting.observe(list(waiting.labels), np.array(list(waiting.labels.values())))
        found._waiting.late += waiting.late
        return found

    # --- Kept elsewhere ---------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the whole state as text, from which `from_json` makes a monitor that goes on just like this one.

        The text grows with the cells that hold rows and with the logarithm of the number of periods, not with rows;
        beside that it lists what was said after each period, and forecasts that wait for their labels.

        Examples
        --------
        >>> monitor = Monitor(max_error=0.05)
        >>> monitor.update([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4], period="2026-01-31")
        >>> again = Monitor.from_json(monitor.to_json())
        >>> again.read() == monitor.read()
        True
        """
        packer = Packer()
        parts = state.plain(self._parts(), packer)
        return sealed(state.FORMAT, {"options": self.options(), "parts": parts, "arrays": packer.table})

    @classmethod
    def from_json(cls, text: str) -> Monitor:
        """Return the monitor whose `to_json` gave the text; a text that is damaged or was changed is refused.

        Parameters
        ----------
        text : str
            What `to_json` returned.

        Returns
        -------
        Monitor
            It goes on like the one that was written.
        """
        found = unsealed(text, state.FORMAT).only("options", "parts", "arrays")
        monitor = state.with_options(cls, found.record("options"))
        monitor._become(found.record("parts"))
        return monitor

    def _parts(self) -> state.Parts:
        return state.Parts(
            epoch=self.epoch,
            missing=self._missing,
            ledger=self._ledger,
            waiting=self._waiting,
            history=self._history,
            last=self._last,
            cells=self.cells,
            evidence=self._evidence,
            sums=self._sums,
            spread=self._spread,
            labels=self._labels,
            limits=self._limits,
        )

    def _become(self, stored: Record) -> None:
        """Take over what a monitor with the same options remembered."""
        parts = state.rebuilt(stored, Evidence(self._question, self.unit, self.tolerance))
        self.epoch = parts.epoch
        self.cells = parts.cells
        self._missing = parts.missing
        self._ledger = parts.ledger
        self._waiting = parts.waiting
        self._history = parts.history
        self._last = parts.last
        self._alarm = None if parts.last is None else parts.last.alarm
        self._evidence = parts.evidence
        self._sums = parts.sums
        self._spread = parts.spread
        self._labels = parts.labels
        self._limits = parts.limits

    def options(self) -> dict[str, Any]:
        """Return what the monitor was asked for."""
        names = (
            "max_error",
            "confidence_level",
            "tolerance",
            "periods_between_false_alarms",
            "unit",
            "assume",
            "maturity",
            "measure",
            "threshold",
        )
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.options().items())
        return f"Monitor({said})"

"""What a monitor said, period by period: the limits of the error, and the evidence that an alarm follows from."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, BoolArray, ClassLabel, FloatArray, IntArray, Label
from calibrant.core.words import counted, level_said, printable
from calibrant.displays.base import Display, dress, inches_below, write_beside
from calibrant.displays.palette import WORDS, Palette, Theme
from calibrant.displays.thinning import thinned
from calibrant.measures.registry import MEASURES
from calibrant.monitors.histories import MonitorHistory
from calibrant.monitors.monitor import Monitor
from calibrant.monitors.results import evidence_of
from calibrant.rows.intake import RowsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEW = 40  # periods, up to which each has a dot
_EVIDENCE = 1.45  # inches: the height of the axes of evidence
_APART = 0.3  # inches between the two axes
_TICKS = 6
_LONE = 0.1  # half of the width of the limits of a single period
_ROOM = 1.12
_BEYOND = 1e3  # times the threshold: where evidence leaves the axes
_LEAST = 1e-3  # evidence below which nothing is worth telling apart
_FORMATS = ("%Y-%m-%d", "%Y-%m-%dT%H", "%Y-%m-%d %H:%M", "%Y-%m")


@dataclass(eq=False, repr=False)
class MonitorDisplay(Display):
    """Plot what a monitor said after each period: the limits of the error above, the evidence below.

    Above: the limits, which hold at all times together, with the error that verdicts are about. Below, on a scale on
    which each step multiplies: the evidence that forecasts are off, with what an alarm takes. From the estimated begin
    of the change to the alarm both are shaded. After a reset everything begins anew.

    Use `from_monitor`, `from_predictions` or `from_history`; the constructor takes what they compute.

    Attributes
    ----------
    history : MonitorHistory
        What is drawn.
    place : array
        Where each period is drawn: in days since 1970 where all are dates, hours or months, else in order.
    dated : bool
        Whether places are days.
    limit : float or None
        ``max_error``, the error that verdicts are about, as it is drawn; None where nobody asked.
    ax_, evidence_ax_, figure_, limits_, void_limits_, estimate_, limit_, evidence_, threshold_, changes_, legend_
        What was drawn, after `plot`; ``changes_`` has one shade for each alarm, ``limits_`` and ``void_limits_`` may be
        None.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_prob, day = rng.random(9000), np.arange(9000) // 300 + 1
    >>> y_true = rng.random(9000) < np.where(day > 20, np.sqrt(y_prob), y_prob)
    >>> display = MonitorDisplay.from_predictions(y_true, y_prob, day, max_error=0.1, unit="row")
    >>> display.history.last_alarm
    (21, 21)
    """

    history: MonitorHistory
    place: FloatArray
    dated: bool
    limit: float | None

    @classmethod
    @frames_follow
    def from_monitor(
        cls, monitor: Monitor, *, theme: Theme = "light", legend: bool = True, ax: Axes | None = None
    ) -> Self:
        """Draw what a monitor has said so far.

        Parameters
        ----------
        monitor : Monitor
            One that was read; periods that were not read yet stay open.
        theme, legend, ax
            As in every display.
        """
        history = MonitorHistory.from_monitor(monitor)
        return cls.from_history(history).plot(theme=theme, legend=legend, ax=ax)

    @classmethod
    @frames_follow
    def from_history(cls, history: MonitorHistory, *, show_limit: bool = True) -> Self:
        """Make a display, not yet drawn, of what a monitor said; ``show_limit`` says whether to draw ``max_error``.

        Parameters
        ----------
        history : MonitorHistory
            What a monitor said, as `MonitorHistory.from_monitor` collects it.
        show_limit : bool
            Whether to draw ``max_error``.
        """
        days = _days(history.period)
        place = np.arange(len(history.period), dtype=np.float64) if days is None else days
        return cls(history, place, days is not None, history.max_error if show_limit else None)

    @classmethod
    @frames_follow
    def from_predictions(
        cls,
        y_true: RowsLike,
        y_prob: ArrayLike,
        period: ArrayLike,
        *,
        max_error: float,
        sample_weight: ArrayLike | None = None,
        pos_label: ClassLabel | None = None,
        theme: Theme = "light",
        legend: bool = True,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Let a monitor read rows period by period, and draw what it says.

        Parameters
        ----------
        y_true, y_prob, sample_weight, pos_label
            As in every display.
        period : array-like of shape (n,)
            The period of each row, a whole number or a date; `calibrant.monitors.period_of` makes them from times.
        max_error : float
            The Cutoff calibration error that verdicts are about.
        theme, legend, ax
            As in every display.
        **options
            What else `Monitor` takes: ``tolerance``, ``unit`` and so on.
        """
        monitor = Monitor(max_error=max_error, **options)
        monitor.update(y_true, y_prob, period=period, sample_weight=sample_weight, pos_label=pos_label)
        monitor.read()
        return cls.from_monitor(monitor, theme=theme, legend=legend, ax=ax)

    def plot(self, *, theme: Theme = "light", legend: bool = True, ax: Axes | None = None) -> Self:
        """Draw limits and evidence, one below the other.

        Parameters
        ----------
        theme, legend, ax
            As in every display.
        """
        ax, palette = self._begin(
            ax, theme, xlabel="", ylabel=MEASURES.words(self.history.measure), title=self._title(), height=7.0
        )
        below = _APART + _EVIDENCE
        lower = ax.inset_axes((0.0, -below, 1.0, _EVIDENCE), transform=inches_below(ax), sharex=ax)
        self.evidence_ax_ = lower
        dress(lower, palette)
        ax.tick_params(labelbottom=False)
        first, last = (_short(self.history.period[end]) for end in (0, -1))
        lower.set_xlabel(f"period, from {first} to {last}", color=palette.ink, fontsize=WORDS)
        lower.set_ylabel("evidence", color=palette.ink, fontsize=WORDS)
        self._draw_limits(ax, palette)
        self._draw_evidence(lower, palette)
        self._mark_changes((ax, lower), palette)
        self._part_epochs((ax, lower), palette)
        self._name_periods(lower)
        drawn = (
            self.limits_,
            self.void_limits_,
            self.estimate_,
            self.limit_,
            self.evidence_,
            self.threshold_,
            *self.changes_[:1],
        )
        self._explain(palette, legend, [each for each in drawn if each is not None], below=below + 0.55)
        return self

    def _title(self) -> str:
        history = self.history
        epoch = f"Epoch {history.epoch[-1]}: " if history.epoch[-1] > 1 else ""
        if history.is_doubted:
            return f"{epoch}No verdict, rows of a period share something"
        if history.last_alarm is not None:
            at, since = map(_short, history.last_alarm)
            alarm = f"{epoch}alarm at {at}: off since about {since}"
            return alarm[0].upper() + alarm[1:]
        said = "" if self.limit is None else f", {history.verdict[-1]}"
        if history.verdict[-1] == "void":
            said = ", but limits contradict each other"
        elif history.assume == "one population" and not history.lower[-1] <= history.estimate[-1] <= history.upper[-1]:
            said += f", but the {self._noun} is outside its limits"
        title = f"{epoch}no alarm in {counted(history.last_epoch.size, 'period')}{said}"
        return title[0].upper() + title[1:]

    @property
    def _noun(self) -> str:
        return {"cutoff": "error", "risk_gap": "risk gap"}[self.history.measure]

    def _draw_limits(self, ax: Axes, palette: Palette) -> None:
        history = self.history
        kept, parted = self._parts(history.estimate, history.upper, history.lower)
        x, void = self._dates(self.place[kept]), history.is_void[kept]
        level = level_said(history.confidence_level)
        whole = "at every period" if history.epoch[-1] == 1 else "at every period of its epoch"
        # A stretch is drawn from its first period to its last, void ones from the last period before them.
        begun = void | np.append(void[1:], False) & ~np.append(parted[1:], False)
        lone = kept.size == 1  # of which an area would have no width
        self.limits_, self.void_limits_ = (
            ax.fill_between(
                x + np.array([-_LONE, _LONE]) if lone else x,
                np.where(hidden | parted, np.nan, history.lower[kept]).repeat(1 + lone),
                np.where(hidden | parted, np.nan, history.upper[kept]).repeat(1 + lone),
                color=colour,
                linewidth=0.0,
                label=said,
                zorder=0.4,
            )
            if not hidden.all()
            else None
            for hidden, colour, said in (
                (void, palette.band, f"limits of the {self._noun}: with {level} confidence each is right {whole}"),
                (~begun, palette.grid, "limits that are void: what they rest on no longer holds"),
            )
        )
        (self.estimate_,) = ax.plot(
            x,
            np.where(parted, np.nan, history.estimate[kept]),
            color=palette.curve,
            linewidth=1.6,
            marker="." if kept.size <= _FEW else None,
            label=f"{self._noun} so far " + ("of the average period" if history.unit == "period" else "of all rows"),
        )
        self.limit_ = None
        if self.limit is not None:
            self.limit_ = ax.axhline(
                self.limit,
                color=palette.bound,
                linewidth=1.4,
                linestyle=(0, (4, 2)),
                label=f"the {self._noun} that verdicts are about, {self.limit:g}",
            )
        ends = history.upper[np.append(np.flatnonzero(np.diff(history.epoch)), -1)]
        most = max(history.estimate.max(), history.lower.max(), ends.max(), 1.5 * (self.limit or 0.0))
        ax.set_ylim(0.0, min(_ROOM * float(most), 1.02) or 1.0)  # limits of few periods exclude little: they leave it

    def _draw_evidence(self, ax: Axes, palette: Palette) -> None:
        from matplotlib.ticker import FuncFormatter

        history = self.history
        kept, parted = self._parts(np.log(np.maximum(history.detector, _LEAST)))
        (self.evidence_,) = ax.plot(
            self._dates(self.place[kept]),
            np.where(parted, np.nan, np.maximum(history.detector[kept], _LEAST)),
            color=palette.other,
            linewidth=1.6,
            marker="." if kept.size <= _FEW else None,
            label=f"below: {evidence_of(history.measure, history.tolerance)}",
        )
        self.threshold_ = ax.axhline(
            history.threshold,
            color=palette.refuted,
            linewidth=1.4,
            linestyle=(0, (1, 1)),
            label=f"below: what an alarm takes, {history.threshold:,.0f}",
        )
        ax.set_yscale("log")
        low, high = float(history.detector.min()), float(history.detector.max())
        top = max(min(high, _BEYOND * history.threshold), history.threshold)
        ax.set_ylim(max(min(low, 1.0), _LEAST) / 1.5, 3.0 * top)
        ax.minorticks_off()
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1.0 else f"{value:g}"))

    def _mark_changes(self, both: tuple[Axes, Axes], palette: Palette) -> None:
        """Shade what lies between the estimated begin of each change and the alarm, and name the alarm."""
        history, half = self.history, self._half()
        self.changes_ = []
        for at, since in zip(history.alarm.tolist(), history.since.tolist(), strict=True):
            ends = self._dates(np.array([self.place[since] - half, self.place[at] + half]))
            for ax in both:
                shade = ax.axvspan(ends[0], ends[1], color=palette.highlight_fill, linewidth=0.0, zorder=0.2)
                ax.axvline(ends[0], color=palette.highlight, linewidth=1.2, linestyle=(0, (1, 2)))
                ax.axvline(ends[1], color=palette.highlight, linewidth=1.2)
                if ax is both[0]:
                    shade.set_label("from about when forecasts went wrong, dotted, to the alarm")
                    self.changes_.append(shade)

    def _part_epochs(self, both: tuple[Axes, Axes], palette: Palette) -> None:
        history = self.history
        starts = np.flatnonzero(np.diff(history.epoch)) + 1
        for start in starts.tolist():
            border = self._dates(np.array([(self.place[start - 1] + self.place[start]) / 2.0]))[0]
            for ax in both:
                ax.axvline(border, color=palette.muted, linewidth=1.0)
            write_beside(
                both[0],
                f"reset, epoch {history.epoch[start]}",
                (border, 1.0),
                palette.muted,
                of_axes="x data",
                offset=(3.0, -2.0),
                align=("left", "top"),
            )

    def _name_periods(self, ax: Axes) -> None:
        """Let the axis below name periods: dates as a calendar does, others by their names."""
        half = self._half()
        ends = self._dates(np.array([self.place[0] - 2.0 * half, self.place[-1] + 2.0 * half]))
        ax.set_xlim(ends[0], ends[1])
        if self.dated:
            import matplotlib.dates

            calendar: Any = matplotlib.dates
            locator = calendar.AutoDateLocator(minticks=3, maxticks=_TICKS + 1)
            ax.xaxis.set_major_locator(locator)
            ax.xaxis.set_major_formatter(calendar.ConciseDateFormatter(locator, show_offset=False))
            return
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        names = [_short(each) for each in self.history.period]
        longest = max(map(len, names))
        ax.xaxis.set_major_locator(MaxNLocator(nbins=max(2, min(_TICKS, 40 // longest)), integer=True))
        ax.xaxis.set_major_formatter(
            FuncFormatter(lambda at, _: names[round(at)] if 0 <= round(at) < len(names) else "")
        )

    def _half(self) -> float:
        """Return half of the distance of neighbouring periods."""
        return 0.5 * float(np.median(np.diff(self.place))) if self.place.size > 1 else 0.5

    def _dates(self, place: FloatArray) -> FloatArray:
        """Return places as matplotlib counts them, whose days may begin elsewhere."""
        if not self.dated:
            return place
        import matplotlib.dates

        calendar: Any = matplotlib.dates
        numbers: FloatArray = calendar.date2num((place * 86_400.0).round().astype("M8[s]"))
        return numbers

    def _parts(self, *curves: FloatArray) -> tuple[IntArray, BoolArray]:
        """Return the periods to draw, with one more before each new epoch, and whether there is a gap in that place."""
        epoch = self.history.epoch
        kept: IntArray = np.unique(np.concatenate([thinned(curve, self.place) for curve in curves]))
        starts = np.flatnonzero(np.diff(epoch[kept])) + 1
        gaps = np.zeros(kept.size, dtype=np.bool_)
        return np.insert(kept, starts, kept[starts]), np.insert(gaps, starts, True)

    def _columns(self) -> dict[str, Any]:
        history = self.history
        return {
            "period": list(history.period),
            **{name: getattr(history, name) for name in ("epoch", "estimate", "lower", "upper")},
            "verdict": list(history.verdict),
            "evidence": history.detector,
        }


def _days(periods: tuple[Label, ...]) -> FloatArray | None:
    """Return the days since 1970 of periods that are all dates, hours or months; else None."""
    found = []
    for period in periods:
        moment = _moment(period)
        if moment is None:
            return None
        found.append((moment - dt.datetime(1970, 1, 1)) / dt.timedelta(days=1))
    days = np.array(found)
    return days if all(one < other for one, other in pairwise(days.tolist())) else None


def _moment(period: Label) -> dt.datetime | None:
    if not isinstance(period, str):
        return None
    for form in _FORMATS:
        try:
            return dt.datetime.strptime(period, form)
        except ValueError:
            continue
    return None


def _short(period: Label) -> str:
    """Return the name of a period, or what fits of it."""
    name = printable(period)
    return name if len(name) <= 16 else f"{name[:15]}…"

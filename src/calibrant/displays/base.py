"""What every display can do: start from an estimator, find axes to draw on, dress them, and show itself."""

from __future__ import annotations

import inspect
import io
import textwrap
from abc import ABC, abstractmethod
from types import FunctionType
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from calibrant.core.frames import frames_follow
from calibrant.core.results import Checked
from calibrant.core.types import ClassLabel, FloatArray
from calibrant.displays.palette import MARGIN, SMALL, TITLE, WORDS, Palette, Theme, palette_of
from calibrant.rows.checks import check_flag, check_same_index

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.transforms import Affine2DBase, Transform

LABEL_WIDTH = 74
"""Letters per line of a legend below a plot of the usual width."""

THRESHOLD_SAID = "decision threshold: act when the forecast is at least this"

_SHARED = {
    """y_true, y_prob, sample_weight, pos_label
    As in every display.""": """y_true : array-like of shape (n,), or Tally
    Outcomes: 0/1, booleans, fractions in [0, 1], or labels with ``pos_label``; or a tally on its own.
y_prob : array-like of shape (n,)
    Forecast probabilities.
sample_weight : array-like of shape (n,), optional
    Nonnegative weights.
pos_label : label, optional
    The label in ``y_true`` that counts as the event, against all others.""",
    """theme, legend, ax
    As in every display.""": """theme : {"light", "dark"}
    The colours, see ``calibrant.displays.palette.PALETTES``.
legend : bool
    Whether to say below the axes what is drawn.
ax : matplotlib Axes, optional
    Where to draw; by default on a new figure.""",
}

_PIXELS_PER_INCH = 144
_NARROW = 0.01


class Display(Checked, ABC):
    """A plot whose numbers are ready: `plot` draws them, `frame` returns them.

    Nothing global is touched: neither rcParams nor pyplot. Without ``ax`` a display draws on a figure of its own, which
    pyplot does not know of, so that nothing needs closing and no window is needed; a notebook shows the display that
    ends a cell, and ``display.figure_.savefig(...)`` writes it to a file. For a window, or to draw beside other things,
    pass axes of your own.

    Attributes
    ----------
    ax_, figure_
        The axes and the figure of the last call of `plot`.
    legend_
        The legend, below the axes; None with ``legend=False``.
    """

    ax_: Axes
    figure_: Figure
    legend_: Legend | None
    _own_figure: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Write out the parameters that displays share, so that ``help`` shows them in full."""
        super().__init_subclass__(**options)
        for member in vars(cls).values():
            function = getattr(member, "__func__", member)
            if isinstance(function, FunctionType) and function.__doc__ is not None:
                text = inspect.cleandoc(function.__doc__)
                for short, full in _SHARED.items():
                    text = text.replace(short, full)
                function.__doc__ = text

    @classmethod
    @abstractmethod
    def from_predictions(cls, *args: Any, **options: Any) -> Self:
        """Compute from outcomes and forecasts, and draw; every display says what it takes."""

    @classmethod
    @frames_follow
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, pos_label: ClassLabel | None = None, **options: Any
    ) -> Self:
        """Compute from a fitted classifier and rows that it has not seen, and draw.

        Parameters
        ----------
        estimator : classifier
            Fitted to two classes, with ``predict_proba``.
        X : array-like of shape (n, k)
            Features.
        y : array-like of shape (n,)
            Labels.
        pos_label : label, optional
            The class that counts as the event; by default the second of ``estimator.classes_``.
        **options
            Those of ``from_predictions``.
        """
        from calibrant.rows.models import event_forecasts, event_outcomes

        check_same_index(y=y, **{name: options.get(name) for name in ("sample_weight", "by", "cluster", "period")})
        forecasts, event = event_forecasts(estimator, X, y, pos_label)
        return cls.from_predictions(event_outcomes(y, event), forecasts, **options)

    def frame(self, backend: Any = None) -> Any:
        """Return the numbers that are drawn as a data frame."""
        return self._framed(self._columns(), backend)

    @abstractmethod
    def _columns(self) -> dict[str, Any]:
        """Return the numbers that are drawn, by the names of their columns."""

    def _begin(
        self, ax: Axes | None, theme: Theme, *, xlabel: str, ylabel: str, title: str, height: float = 5.2
    ) -> tuple[Axes, Palette]:
        """Return the axes, made ready for drawing, and the colours to draw in."""
        palette = palette_of(theme)
        self._own_figure = ax is None
        if ax is None:
            figure = new_figure(height)
            figure.set_facecolor(palette.paper)
            ax = figure.add_subplot()
        self.ax_, self.figure_, self.legend_ = ax, cast("Figure", ax.figure), None
        dress(ax, palette)
        ax.set_xlabel(xlabel, color=palette.ink, fontsize=WORDS)
        ax.set_ylabel(ylabel, color=palette.ink, fontsize=WORDS)
        ax.set_title(title, color=palette.ink, fontsize=TITLE, loc="left")
        return ax, palette

    def _explain(
        self, palette: Palette, legend: bool, handles: list[Any], *, below: float = 0.5, width: int = LABEL_WIDTH
    ) -> None:
        """Say so many inches below the axes what was drawn, in words that need room."""
        if not check_flag(legend, "legend"):
            return
        self.legend_ = self.ax_.legend(
            handles=handles,
            labels=[textwrap.fill(handle.get_label(), width) for handle in handles],
            loc="upper left",
            bbox_to_anchor=(0.0, -below),
            bbox_transform=inches_below(self.ax_),
            borderaxespad=0.0,
            borderpad=0.0,
            frameon=False,
            fontsize=SMALL,
            labelcolor=palette.ink,
        )

    def _repr_png_(self) -> tuple[bytes, dict[str, float]] | None:
        """Show the plot in a notebook, unless it is on axes that whoever made them shows."""
        if not self._own_figure:
            return None
        drawn = io.BytesIO()
        self.figure_.savefig(drawn, format="png", dpi=_PIXELS_PER_INCH)
        width, height = self.figure_.get_size_inches() * _PIXELS_PER_INCH / 2.0
        return drawn.getvalue(), {"width": float(width), "height": float(height)}


def new_figure(height: float, width: float = 6.4) -> Figure:
    """Return an empty figure, so many inches high and wide, that no window and no global state belongs to."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'calibrant[cli]'") from error
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=MARGIN, h_pad=MARGIN))


def dress(ax: Axes, palette: Palette) -> None:
    """Give axes the colours of a theme, and take away what carries no information."""
    ax.set_facecolor(palette.paper)
    ax.set_axisbelow(True)
    ax.grid(True, color=palette.grid, linewidth=0.8)
    ax.tick_params(which="both", colors=palette.muted, labelsize=SMALL)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(palette.muted)


def write_beside(
    ax: Axes,
    words: str,
    place: tuple[float, float],
    colour: str,
    *,
    offset: tuple[float, float] = (0.0, 0.0),
    align: tuple[str, str] = ("left", "bottom"),
    of_axes: str = "data",
) -> None:
    """Write words beside what they name, so many points away from a place.

    Parameters
    ----------
    ax, words, colour
        Where to write what, in which colour.
    place : tuple of float
        The place that is named.
    offset : tuple of float
        How far the words are from it, in points.
    align : tuple of str
        On which side of the words that point is, as matplotlib's ``ha`` and ``va`` say it.
    of_axes : {"data", "axes fraction", "x data", "y data"}
        Whether the place is in units of the data, in shares of the axes, or one of each.
    """
    blended = {"x data": ax.get_xaxis_transform(), "y data": ax.get_yaxis_transform()}
    ax.annotate(
        words,
        place,
        xycoords=blended.get(of_axes, of_axes),
        xytext=offset,
        textcoords="offset points",
        ha=align[0],
        va=align[1],
        fontsize=SMALL,
        color=colour,
    )


def inches_below(ax: Axes) -> Transform:
    """Return coordinates of which the first is a share of the width of axes, the second inches above their lower edge.

    Distances in inches do not depend on the height of the axes, so that a layout engine finds room for what is there.
    """
    from matplotlib.transforms import ScaledTranslation, blended_transform_factory

    inches = ax.figure.dpi_scale_trans + ScaledTranslation(0.0, 0.0, cast("Affine2DBase", ax.transAxes))
    return blended_transform_factory(ax.transAxes, inches)


def show_forecasts(ax: Axes, low: float, high: float) -> None:
    """Let the horizontal axis hold forecasts from one to another."""
    limits = forecast_limits(low, high)
    ax.set_xlim(*limits)
    if limits[1] - limits[0] < _NARROW:  # numbers with many zeros take room
        from matplotlib.ticker import MaxNLocator

        ax.xaxis.set_major_locator(MaxNLocator(nbins=4))


def forecast_limits(low: float, high: float) -> tuple[float, float]:
    """Return the limits of an axis of forecasts: from 0 to 1, or around forecasts that fill less than half of that."""
    margin = 0.02 * (high - low)
    if high == low or high - low >= 0.5:
        return -0.01, 1.01
    return low - margin, high + margin


def with_jumps(place: FloatArray, value: FloatArray, after: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the points of a line through the values at each place and, where it jumps there, the values just after."""
    twice = np.repeat(place, 2)
    both = np.stack([value, after], axis=1).ravel()
    different = np.ones(both.size, dtype=bool)
    different[1::2] = value != after
    return twice[different], both[different]

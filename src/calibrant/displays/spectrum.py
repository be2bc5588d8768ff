"""Weighted calibration error against the total variation of the weights: from mean bias to the ECE."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray
from calibrant.core.words import measured
from calibrant.displays.base import Display, write_beside
from calibrant.displays.palette import Palette, Theme
from calibrant.displays.thinning import thinned
from calibrant.measures.expected import continuity_note
from calibrant.measures.weighted import bounded_variation_spectrum, find_worst_interval
from calibrant.rows.intake import RowsLike, as_tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KNOTS = 1000  # kept of those that the curve has
_TALL = 10.0  # from so many times the Cutoff error up the ECE would flatten all else on a linear axis
_ROOM = 1.3  # height of the axes, in errors without limit: above the curve its end is named
_FOOT = 0.12  # a bias below such a part of the axes has no room for words below it
_GRID = 500  # points between them: on a logarithmic axis a straight line bends


@dataclass(eq=False, repr=False)
class SpectrumDisplay(Display):
    """Plot the calibration error against how finely somebody may look: from mean bias to the ECE.

    A weighted calibration error is the largest mean of w(p) (y - p) over weight functions w with values in [-1, 1]. The
    curve is that error when w may vary by at most M in total: M = 0 is the mean bias, the coarsest look; from M = 2 on
    it is at least the Cutoff calibration error; without limit it is the ECE plug-in, which on forecasts that hardly
    repeat measures noise (the legend then says so). A curve that rises early is off on a few broad ranges of
    forecasts; one that rises late shows what can hardly be told from chance.

    Use `from_predictions` or `from_estimator`; the constructor takes what they compute.

    Attributes
    ----------
    variation, error : array
        The curve: at most about 1,500 points, exact at each, among them both ends.
    cutoff : float
        The Cutoff calibration error.
    at_two : float
        The error at M = 2, as in `measure`.
    noisy : bool
        Whether forecasts repeat too seldom for the ECE plug-in to mean anything.
    ax_, figure_, line_, points_, cutoff_, legend_
        What was drawn, after `plot`.

    Examples
    --------
    >>> display = SpectrumDisplay.from_predictions([1, 1, 0, 0], [0.25, 0.25, 0.75, 0.75])
    >>> print(display.error[0], display.cutoff, display.at_two, display.error[-1])
    0.0 0.375 0.75 0.75
    """

    variation: FloatArray
    error: FloatArray
    cutoff: float
    at_two: float
    noisy: bool

    @classmethod
    @frames_follow
    def from_predictions(
        cls,
        y_true: RowsLike,
        y_prob: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: ClassLabel | None = None,
        theme: Theme = "light",
        legend: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Compute the curve, and draw it.

        Parameters
        ----------
        y_true, y_prob, sample_weight, pos_label
            As in every display.
        theme, legend, ax
            As in every display.
        """
        tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
        spectrum = bounded_variation_spectrum(tally)
        knots, error = spectrum.variation, spectrum.error
        kept = knots[thinned(error, np.arcsinh(knots), most_points=_KNOTS)]
        last = max(2.0 * float(knots[-1]), 4.0)  # beyond its last knot the curve is level
        grid = np.concatenate([np.linspace(0.0, 2.0, 20), np.geomspace(2.0, last, _GRID)])
        variation = np.union1d(kept, grid)
        display = cls(
            variation=variation,
            error=np.interp(variation, knots, error),
            cutoff=find_worst_interval(tally).error,
            at_two=spectrum.at(2.0),
            noisy=continuity_note(tally) is not None,
        )
        return display.plot(theme=theme, legend=legend, ax=ax)

    def plot(self, *, theme: Theme = "light", legend: bool = True, ax: Axes | None = None) -> Self:
        """Draw the curve.

        Parameters
        ----------
        theme, legend, ax
            As in every display.
        """
        finer, same = "The finer the look, the larger the error", "The error is the same, however fine the look"
        ax, palette = self._begin(
            ax,
            theme,
            xlabel="how finely somebody looks: variation M of the weights",
            ylabel="calibration error that is seen",
            title=finer if self.error[-1] > self.error[0] * (1.0 + 1e-9) else same,
        )
        self.cutoff_ = ax.axhline(
            self.cutoff,
            color=palette.bound,
            linewidth=1.3,
            linestyle=(0, (6, 2)),
            label="Cutoff calibration error: from M = 2 on the curve is at least this",
        )
        (self.line_,) = ax.plot(
            self.variation,
            self.error,
            color=palette.curve,
            linewidth=1.8,
            label="largest mean of weight times (outcome \N{MINUS SIGN} forecast) over weights from "
            "\N{MINUS SIGN}1 to 1 that rise and fall by at most M in total",
        )
        noise = "\nmostly noise: these forecasts hardly repeat" if self.noisy else ""
        marked = (
            (0.0, self.error[0], "o", f"mean bias {measured(float(self.error[0]))}"),
            (2.0, self.at_two, "D", f"M = 2: bounded-variation error {measured(self.at_two)}"),
            (self.variation[-1], self.error[-1], "s", f"ECE {measured(float(self.error[-1]))}, no limit{noise}"),
        )
        self.points_ = [
            ax.plot([place], [height], marker, color=palette.highlight, markersize=6, clip_on=False, label=label)[0]
            for place, height, marker, label in marked
        ]
        self._scale(ax)
        self._name(ax, palette)
        self._explain(palette, legend, [self.line_, self.points_[1], self.cutoff_])
        return self

    def _scale(self, ax: Axes) -> None:
        """Choose the axes so that neither a long tail nor an ECE far above flattens the rest."""
        last = float(self.variation[-1])
        ax.set_xscale("symlog", linthresh=2.0, linscale=0.5)
        powers = range(1, math.floor(math.log10(last)) + 1)
        words = ["10", "100", "1,000", *(f"$10^{{{power}}}$" for power in powers[3:])]
        ax.set_xticks([0.0, 2.0, *(10.0**power for power in powers)], ["0", "2", *words[: len(powers)]])
        ax.set_xticks([], minor=True)
        ax.set_xlim(0.0, last)
        if self.error[-1] > _TALL * self.cutoff > 0.0:
            ax.set_yscale("log")
            ax.set_ylabel(f"{ax.get_ylabel()} (logarithmic)")
            ax.set_ylim(max(0.5 * float(self.error[0]), self.cutoff / 50.0), 3.0 * float(self.error[-1]))
            self.points_[0].set_clip_on(True)  # a bias too small for the axis is not shown
        else:
            ax.set_ylim(0.0, _ROOM * float(max(self.error[-1], self.cutoff)) or 1.0)

    def _name(self, ax: Axes, palette: Palette) -> None:
        """Write at the ends and at the line what they are, on the side where a curve that rises leaves room."""
        bias, end = float(self.error[0]), float(self.error[-1])
        low, high = ax.get_ylim()
        foot = _FOOT * high if ax.get_yscale() == "linear" else low
        if bias >= low:
            write_beside(
                ax,
                str(self.points_[0].get_label()),
                (0.0, bias),
                palette.highlight,
                offset=(10.0, -2.0) if bias < foot else (6.0, -6.0),
                align=("left", "bottom" if bias < foot else "top"),
            )
        if end == 0.0:
            return
        write_beside(
            ax,
            str(self.points_[-1].get_label()),
            (float(self.variation[-1]), end),
            palette.highlight,
            offset=(-2.0, 7.0),
            align=("right", "bottom"),
        )
        write_beside(
            ax,
            f"Cutoff calibration error {measured(self.cutoff)}",
            (1.0, self.cutoff),
            palette.bound,
            offset=(-2.0, 3.0 if self.cutoff < foot else -4.0),
            align=("right", "bottom" if self.cutoff < foot else "top"),
            of_axes="y data",
        )

    def _columns(self) -> dict[str, Any]:
        return {"variation": self.variation, "error": self.error}

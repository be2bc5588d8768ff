"""The attributes diagram of forecast verification: event rates by bin, with what is skill and what is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, ClassLabel
from calibrant.core.words import percent
from calibrant.decisions.verification import BrierDecomposition, brier_decomposition
from calibrant.displays.base import Display
from calibrant.displays.palette import Theme
from calibrant.rows.intake import RowsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LARGEST, _SMALLEST = 220.0, 12.0  # points squared


@dataclass(eq=False, repr=False)
class AttributesDisplay(Display):
    """Plot event rates against mean forecasts of bins, with the lines and the area that say which bins add skill.

    On the diagonal forecasts are right (reliability 0); on the horizontal line they tell nothing apart (resolution 0).
    Half-way between the two, a bin takes as much from the Brier score as it adds: inside the shaded area it adds to the
    skill against the event rate of all rows, outside it takes away. Points are as large as their share of the rows.

    Use `from_predictions` or `from_estimator`; the constructor takes what they compute.

    Attributes
    ----------
    parts : BrierDecomposition
        The bins, and the parts of the Brier score.
    ax_, figure_, line_, points_, diagonal_, no_skill_, no_resolution_, skill_, legend_
        What was drawn, after `plot`.

    References
    ----------
    Hsu, Murphy (1986), The attributes diagram, International Journal of Forecasting 2.

    Examples
    --------
    >>> display = AttributesDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.1, 0.7, 0.9], n_bins=2)
    >>> display.parts.forecast, display.parts.rate
    (array([0.1, 0.8]), array([0., 1.]))
    """

    parts: BrierDecomposition

    @classmethod
    @frames_follow
    def from_predictions(
        cls,
        y_true: RowsLike,
        y_prob: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: ClassLabel | None = None,
        n_bins: int | None = 10,
        theme: Theme = "light",
        legend: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Compute the bins, and draw them.

        Parameters
        ----------
        y_true, y_prob, sample_weight, pos_label
            As in every display.
        n_bins : int or None
            Bins of equal width; None for one per distinct forecast.
        theme, legend, ax
            As in every display.
        """
        parts = brier_decomposition(y_true, y_prob, n_bins=n_bins, sample_weight=sample_weight, pos_label=pos_label)
        return cls(parts).plot(theme=theme, legend=legend, ax=ax)

    def plot(self, *, theme: Theme = "light", legend: bool = True, ax: Axes | None = None) -> Self:
        """Draw the event rate of each bin, and what to compare it with.

        Parameters
        ----------
        theme, legend, ax
            As in every display.
        """
        parts, rate = self.parts, self.parts.mean_outcome
        skill = "" if parts.skill is None else f", skill {percent(parts.skill)}"
        ax, palette = self._begin(
            ax,
            theme,
            xlabel="forecast, mean of each bin",
            ylabel="event rate",
            title=f"Reliability {parts.reliability:.4f}, resolution {parts.resolution:.4f}{skill}",
            height=6.0,
        )
        low, high = rate / 2.0, (1.0 + rate) / 2.0
        self.skill_ = ax.fill_between(
            [0.0, rate, rate, 1.0],
            [0.0, 0.0, rate, high],
            [low, rate, 1.0, 1.0],
            color=palette.band,
            linewidth=0.0,
            zorder=0.2,
            label="in here a bin adds to the skill",
        )
        (self.diagonal_,) = ax.plot(
            [0, 1], [0, 1], color=palette.muted, linewidth=1.2, linestyle=(0, (6, 2)), label="forecasts that are right"
        )
        (self.no_skill_,) = ax.plot(
            [0, 1],
            [low, high],
            color=palette.other,
            linewidth=1.2,
            label="no skill: half-way to the event rate of all rows",
        )
        said = f"event rate of all rows, {percent(rate)}: no resolution"
        self.no_resolution_ = ax.axhline(rate, color=palette.bound, linewidth=1.2, linestyle=(0, (1, 1.5)), label=said)
        ax.axvline(rate, color=palette.bound, linewidth=1.2, linestyle=(0, (1, 1.5)))
        (self.line_,) = ax.plot(parts.forecast, parts.rate, color=palette.curve, linewidth=1.4)
        self.points_ = ax.scatter(
            parts.forecast,
            parts.rate,
            s=_SMALLEST + _LARGEST * parts.share / parts.share.max(),
            color=palette.curve,
            zorder=3,
            clip_on=False,
            label="event rate of a bin; the area of a point is its share of the rows",
        )
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(-0.02, 1.02)
        handles = [self.points_, self.diagonal_, self.no_skill_, self.no_resolution_, self.skill_]
        self._explain(palette, legend, handles)
        return self

    def _columns(self) -> dict[str, Any]:
        return {"forecast": self.parts.forecast, "rate": self.parts.rate, "share": self.parts.share}

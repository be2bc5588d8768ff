"""Differences of models with their limits, one line for each: which of them is better, and what is not told apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calibrant.comparisons.results import ModelComparison
from calibrant.comparisons.side_by_side import Compared, compare_models
from calibrant.core.frames import frames_follow
from calibrant.core.types import FloatArray
from calibrant.core.words import level_said, printable
from calibrant.displays.base import Display
from calibrant.displays.palette import SMALL, Palette, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE = 0.42  # inches for each difference
_FRAME = 2.2  # inches for all that surrounds them
_WORDS_WIDE = 55  # letters: names of models take room beside the axes
_MARKERS = {"better": "o", "worse": "s", "non-inferior": "^", "not told apart": "D"}


@dataclass(eq=False, repr=False)
class DifferencesDisplay(Display):
    """Plot the difference of every two models with its limits, which hold together.

    A line that stays on one side of 0 says which of the two is better. Where a margin was named, a line that does not
    reach beyond it says that the first is not worse by more.

    Use `from_predictions` or `from_results`; the constructor takes what they compute.

    Attributes
    ----------
    names : tuple of str
        The two models of each difference, and the threshold where there are several.
    estimate, lower, upper : array
        The differences and their limits.
    verdict : tuple of str
        What the limits say of the first of the two.
    comparison : ModelComparison
        What all of it comes from.
    ax_, figure_, zero_, margin_, limits_, legend_
        What was drawn, after `plot`; ``margin_`` is None where no margin was named.

    Examples
    --------
    >>> display = DifferencesDisplay.from_predictions([0, 0, 1, 1], {"old": [0.4, 0.4, 0.6, 0.6], "new": [0, 0, 1, 1]})
    >>> display.names, display.verdict
    (('old - new',), ('not told apart',))
    """

    names: tuple[str, ...]
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    verdict: tuple[str, ...]
    comparison: ModelComparison

    @classmethod
    @frames_follow
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        measure: Compared = "cutoff",
        theme: Theme = "light",
        legend: bool = True,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Compare models, and draw their differences.

        Parameters
        ----------
        y_true, y_prob, measure
            Outcomes, and the forecasts of each model by its name, as in `compare_models`.
        theme, legend, ax
            As in every display.
        **options
            What else `compare_models` takes.
        """
        comparison = compare_models(y_true, y_prob, measure=measure, **options)
        return cls.from_results(comparison).plot(theme=theme, legend=legend, ax=ax)

    @classmethod
    @frames_follow
    def from_results(cls, comparison: ModelComparison) -> Self:
        """Make a display, not yet drawn, of a comparison.

        Parameters
        ----------
        comparison : ModelComparison
            What `compare_models` returned.
        """
        found = comparison.differences
        return cls(
            names=tuple(printable(each.cells()[0]) for each in found),
            estimate=np.array([each.estimate for each in found]),
            lower=np.array([each.lower for each in found]),
            upper=np.array([each.upper for each in found]),
            verdict=tuple(each.verdict for each in found),
            comparison=comparison,
        )

    def plot(self, *, theme: Theme = "light", legend: bool = True, ax: Axes | None = None) -> Self:
        """Draw a line for each difference, from limit to limit.

        Parameters
        ----------
        theme, legend, ax
            As in every display.
        """
        told = sum(each in ("better", "worse") for each in self.verdict)
        ax, palette = self._begin(
            ax,
            theme,
            xlabel=f"difference of the {self.comparison.measure_said}",
            ylabel="",
            title=f"{told} of {len(self.names)} differences are told apart from 0",
            height=_FRAME + _LINE * len(self.names),
        )
        place = np.arange(len(self.names))[::-1]
        self.zero_ = ax.axvline(0.0, color=palette.muted, linewidth=1.0, label="no difference")
        self.margin_ = self._draw_margin(ax, palette)
        self.limits_ = ax.hlines(
            place, self.lower, self.upper, color=self._colours(palette), linewidth=2.2, label=self._limits_said()
        )
        for k, verdict in enumerate(self.verdict):
            ax.plot(
                [self.estimate[k]], [place[k]], color=self._colours(palette)[k], marker=_MARKERS[verdict], markersize=7
            )
        ax.set_yticks(place, self.names, fontsize=SMALL)
        ax.set_ylim(-0.7, len(self.names) - 0.3)
        handles = [self.limits_, self.zero_, *([] if self.margin_ is None else [self.margin_])]
        self._explain(palette, legend, handles, width=_WORDS_WIDE)
        return self

    def _draw_margin(self, ax: Axes, palette: Palette) -> Any:
        margin = self.comparison.margin
        if margin is None:
            return None
        end = -margin if self.comparison.differences[0].larger_is_better else margin
        said = f"margin: the first of two may be worse by {margin:g}"
        return ax.axvline(end, color=palette.bound, linewidth=1.6, linestyle=(0, (6, 2)), label=said)

    def _colours(self, palette: Palette) -> list[str]:
        roles = {"better": palette.certified, "non-inferior": palette.certified, "worse": palette.refuted}
        return [roles.get(each, palette.undecided) for each in self.verdict]

    def _limits_said(self) -> str:
        level = level_said(self.comparison.confidence_level)
        better = "above" if self.comparison.differences[0].larger_is_better else "below"
        return (
            f"first minus second, with limits that hold together with {level} confidence: wholly {better} 0 the first "
            "is the better one"
        )

    def _columns(self) -> dict[str, Any]:
        return {
            "difference": list(self.names),
            "estimate": self.estimate,
            "lower": self.lower,
            "upper": self.upper,
            "verdict": list(self.verdict),
        }

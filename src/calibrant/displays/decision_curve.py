"""Net benefit against the decision threshold: decision curve analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray
from calibrant.decisions.benefits import net_benefit
from calibrant.displays.base import THRESHOLD_SAID, Display
from calibrant.displays.palette import Theme
from calibrant.displays.thinning import thinned
from calibrant.rows.checks import check_thresholds
from calibrant.rows.intake import RowsLike, as_tally
from calibrant.rows.tally import Tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class DecisionCurveDisplay(Display):
    """Plot the net benefit of acting on the forecasts, beside acting on every row and on none.

    Net benefit is the share of rows that are true positives, minus the share of false positives at the exchange rate
    tau/(1 - tau) of the threshold. Where the curve is above both others the forecasts help somebody with that
    threshold; where it is below the better of the two they do harm, and that stretch is shaded.

    Use `from_predictions` or `from_estimator`; the constructor takes what they compute.

    Attributes
    ----------
    threshold : array
        Decision thresholds, increasing.
    net_benefit, treat_all : array
        Net benefit of acting on the forecasts and of acting on every row; that of never acting is 0.
    mean_outcome : float
        Mean of the outcomes, the largest net benefit there is.
    ax_, figure_, line_, treat_all_, treat_none_, harm_, legend_
        What was drawn, after `plot`.

    References
    ----------
    Vickers, Elkin (2006), Decision curve analysis, Medical Decision Making 26.

    Examples
    --------
    >>> display = DecisionCurveDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], threshold=[0.2, 0.5])
    >>> display.net_benefit, display.treat_all
    (array([0.4375, 0.    ]), array([0.375, 0.   ]))
    """

    threshold: FloatArray
    net_benefit: FloatArray
    treat_all: FloatArray
    mean_outcome: float

    @classmethod
    def from_predictions(
        cls,
        y_true: RowsLike,
        y_prob: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: ClassLabel | None = None,
        threshold: ArrayLike | None = None,
        theme: Theme = "light",
        legend: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Compute the curve, and draw it.

        Parameters
        ----------
        y_true, y_prob, sample_weight, pos_label
            As in every display.
        threshold : array of floats in [0, 1), optional
            By default 99 steps: 0.01, 0.02, ..., 0.99, or up to the highest forecast where all are below 0.5. Choose
            those that somebody may decide by.
        theme, legend, ax
            As in every display.
        """
        tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
        at = _usual_thresholds(tally) if threshold is None else np.unique(check_thresholds(threshold))
        if at.size < 2:
            raise InputError(
                f"has one value, {at[0]:g}, and a curve needs two", argument="threshold", remedy="net_benefit takes one"
            )
        result = net_benefit(tally, threshold=at)
        place, benefit, treat_all = map(np.atleast_1d, (result.threshold, result.net_benefit, result.treat_all))
        kept = thinned(benefit, place)
        display = cls(
            threshold=place[kept],
            net_benefit=benefit[kept],
            treat_all=treat_all[kept],
            mean_outcome=result.mean_outcome,
        )
        return display.plot(theme=theme, legend=legend, ax=ax)

    @property
    def best_without(self) -> FloatArray:
        """Net benefit at each threshold of the better of acting on every row and on none."""
        return np.maximum(self.treat_all, 0.0)

    def plot(self, *, theme: Theme = "light", legend: bool = True, ax: Axes | None = None) -> Self:
        """Draw the curve beside those that need no forecast.

        Parameters
        ----------
        theme, legend, ax
            As in every display.
        """
        ax, palette = self._begin(
            ax,
            theme,
            xlabel=THRESHOLD_SAID,
            ylabel="net benefit (events found per row)",
            title="What acting on the forecasts brings, at each threshold",
        )
        self.treat_none_ = ax.axhline(
            0.0, color=palette.muted, linewidth=1.3, linestyle=(0, (1, 1.5)), label="act on no row"
        )
        (self.treat_all_,) = ax.plot(
            self.threshold,
            self.treat_all,
            color=palette.other,
            linewidth=1.5,
            linestyle=(0, (5, 2)),
            label="act on every row",
        )
        (self.line_,) = ax.plot(
            self.threshold,
            self.net_benefit,
            color=palette.curve,
            linewidth=1.8,
            label="act when the forecast is at least the threshold",
        )
        self.harm_ = ax.fill_between(
            self.threshold,
            self.net_benefit,
            self.best_without,
            where=(self.net_benefit < self.best_without).tolist(),
            interpolate=True,
            color=palette.highlight_fill,
            linewidth=0.0,
            zorder=0.2,
            label="here acting on every row, or on none, would have been better on these rows",
        )
        top = float(max(self.mean_outcome, self.net_benefit.max())) or 1.0
        # Acting on every row loses without limit as the threshold nears 1: what is far below zero tells nothing.
        ax.set_ylim(max(min(-0.1 * top, 1.1 * float(self.net_benefit.min())), -top), 1.08 * top)
        ax.set_xlim(self.threshold[0], self.threshold[-1])
        harm = [self.harm_] if (self.net_benefit < self.best_without).any() else []
        self._explain(palette, legend, [self.line_, self.treat_all_, self.treat_none_, *harm])
        return self

    def _columns(self) -> dict[str, Any]:
        return {"threshold": self.threshold, "net_benefit": self.net_benefit, "treat_all": self.treat_all}


def _usual_thresholds(tally: Tally) -> FloatArray:
    highest = float(tally.forecast[-1])
    return np.arange(1, 100) / 100.0 if not 0.0 < highest < 0.5 else np.linspace(highest / 99.0, highest, 99)

"""The running sum of residuals: a curve whose range is the Cutoff calibration error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from calibrant.certificates.clusters import ClusterTarget
from calibrant.certificates.variances import outcome_variance
from calibrant.core.errors import InputError
from calibrant.core.frames import frames_follow
from calibrant.core.laws import brownian_range
from calibrant.core.types import ArrayLike, BoolArray, ClassLabel, FloatArray, Randomness
from calibrant.core.words import level_said, measured, of_all, percent, significant, significant_up
from calibrant.displays.base import Display, show_forecasts
from calibrant.displays.classes import FORECAST, one_question
from calibrant.displays.clusters import refuse_band, rows_to_draw
from calibrant.displays.palette import Theme
from calibrant.displays.thinning import thinned
from calibrant.measures.results import WorstInterval, ends_said
from calibrant.measures.weighted import find_worst_interval
from calibrant.rows.checks import check_choice, check_confidence, check_seed
from calibrant.rows.intake import RowsLike
from calibrant.rows.resamples import check_resamples
from calibrant.rows.runs import prefix_sums
from calibrant.rows.tally import Tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AFFORDABLE_DRAWS = 10_000_000
"""Distinct forecasts times resamples up to which the null band is simulated: about a second."""

SIGNS = "signs of clusters"
"""Where the band of rows in clusters comes from."""

CLUSTER_DRAWS = 999
"""How often signs of clusters are drawn."""

_PART = 1 << 20  # draws at a time


@dataclass(eq=False, repr=False)
class CumulativeDisplay(Display):
    """Plot the running sum of residuals, outcome minus forecast, over forecasts in increasing order.

    Where the curve falls the forecasts are too high, where it rises too low, where it is level they are right. The
    residuals of an interval of forecasts add up to the difference of the curve's heights at its ends, so the largest
    difference, the range of the curve, is the Cutoff calibration error; the interval where it happens is shaded.

    The band is a strip as high as the range that the curve of calibrated forecasts stays within in 95% of cases, moved
    up or down to where it holds 0 and as much of the curve as goes. The curve leaves it exactly when
    `calibration_test`, with these draws or this law, rejects calibration at the 5% level. For rows in clusters the
    height is that of curves whose clusters have random signs, which is right for many clusters.

    Use `from_predictions` or `from_estimator`; the constructor takes what they compute.

    Attributes
    ----------
    forecast : array
        Forecasts at the points of the curve, thinned to about 2,000 points that keep every extreme; starts at 0 and
        ends at 1, with the lowest and the highest forecast next to these.
    share : array
        Share of the rows (of the weight) with forecasts up to there.
    deviation : array
        Sum of w (y - p) over those rows, divided by the weight of all rows.
    worst : WorstInterval
        Where the Cutoff calibration error is.
    worst_share : tuple of float
        Share of the rows below the worst interval, and up to its end.
    band_height : float or None
        Range that calibrated forecasts stay within with probability ``confidence_level``; None without a band.
    band_from : str
        "simulation", "large-sample law" or "signs of clusters".
    n_resamples : int
        Simulated data sets behind a simulated band.
    confidence_level : float
        Of the band.
    axis : str
        What the forecasts are: "forecast", or "confidence in the top label" of several classes.
    ax_, figure_, line_, band_, worst_, legend_
        What was drawn, after `plot`.

    Examples
    --------
    >>> display = CumulativeDisplay.from_predictions([0, 0, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.9])
    >>> print(f"{display.worst.error:.4f} {display.deviation.max() - display.deviation.min():.4f}")
    0.1833 0.1833
    >>> display.ax_.get_xlabel()
    'forecast'
    """

    forecast: FloatArray
    share: FloatArray
    deviation: FloatArray
    worst: WorstInterval
    worst_share: tuple[float, float]
    band_height: float | None
    band_from: str
    n_resamples: int
    confidence_level: float
    axis: str = FORECAST

    @classmethod
    @frames_follow
    def from_predictions(
        cls,
        y_true: RowsLike,
        y_prob: ArrayLike | None = None,
        *,
        cluster: ArrayLike | None = None,
        cluster_target: ClusterTarget = "rows",
        serial: int = 0,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        pos_label: ClassLabel | None = None,
        band: Literal["auto", "simulation", "large-sample law"] | None = "auto",
        confidence_level: float = 0.95,
        n_resamples: int = 999,
        rng: Randomness = 0,
        x: Literal["forecast", "share"] = "forecast",
        theme: Theme = "light",
        legend: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Compute the curve, its worst interval and the band, and draw them.

        Parameters
        ----------
        y_true, y_prob, sample_weight, pos_label
            As in every display.
        classes : array-like of shape (K,), optional
            The label of each column of ``y_prob`` of shape (n, K), which is drawn as the confidence in the top label.
        band : {"auto", "simulation", "large-sample law"} or None
            How the height of the band is found: outcomes drawn from the forecasts, which holds at every number of rows;
            or the range of Brownian motion. "auto" simulates 0/1 outcomes without weights on up to 10,000 distinct
            forecasts (with 999 resamples), and else takes the law; for rows in clusters it draws signs of clusters.
        cluster, cluster_target, serial
            As in `certify`, for rows in clusters.
        confidence_level : float
            How often calibrated forecasts stay in a strip as high as the band.
        n_resamples : int
            Simulated data sets.
        rng : int, Generator or None, default 0
            Where the random numbers of the simulation come from; with a seed they are others for every data set.
        x
            As in `plot`.
        theme, legend, ax
            As in every display.
        """
        chosen = None if band is None else check_choice(band, "band", ("auto", "simulation", "large-sample law"))
        level = check_confidence(confidence_level)
        resamples = check_resamples(n_resamples, level)
        seed = check_seed(rng)
        given, axis = one_question(y_true, y_prob, classes, sample_weight, pos_label)
        tally, clusters = rows_to_draw(**given, cluster=cluster, cluster_target=cluster_target, serial=serial)
        if clusters is not None and chosen is not None:
            if chosen != "auto":
                raise refuse_band(chosen, "auto")
            chosen = SIGNS
        counted = tally.binary_outcomes and tally.unit_weights
        if chosen == "simulation" and not counted:
            raise InputError(
                "band='simulation' needs outcomes of 0 or 1 without weights, whose law the forecasts determine",
                remedy="use band='large-sample law'",
            )
        if chosen == "auto":
            affordable = counted and len(tally) * resamples <= AFFORDABLE_DRAWS
            chosen = "simulation" if affordable else "large-sample law"
        height = None
        if clusters is not None and chosen is not None:
            height, resamples = clusters.noise_quantile(1.0 - level, seed), CLUSTER_DRAWS
        elif chosen == "simulation":
            height = _simulated_height(tally, level, resamples, tally.generator(seed, "band"))
        elif chosen is not None:
            sigma = math.sqrt(float(outcome_variance(tally).sum())) / tally.weight_total
            height = float(brownian_range.isf(1.0 - level)) * sigma
        display = cls(
            **_curve(tally),
            band_height=height,
            band_from=chosen or "none",
            n_resamples=resamples,
            confidence_level=level,
            axis=axis,
        )
        return display.plot(x=x, theme=theme, legend=legend, ax=ax)

    def plot(
        self,
        *,
        x: Literal["forecast", "share"] = "forecast",
        theme: Theme = "light",
        legend: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the curve, the worst interval and the band.

        Parameters
        ----------
        x : {"forecast", "share"}
            What the curve is drawn against: the forecast, or the share of rows with forecasts up to there, which gives
            every row the same room.
        theme, legend, ax
            As in every display.
        """
        against = check_choice(x, "x", ("forecast", "share"))
        whole = "all rows" if self.worst.unit_weights else "total weight"
        ax, palette = self._begin(
            ax,
            theme,
            xlabel=self.axis
            if against == "forecast"
            else f"share {of_all(self.worst.unit_weights)}, lowest forecasts first",
            ylabel=f"running sum of (outcome \N{MINUS SIGN} forecast) / {whole}",
            title="Where the error collects",
        )
        self.band_ = None
        if self.band_height is not None:
            low, high = self._band_ends(self.band_height)
            self.band_ = ax.axhspan(low, high, color=palette.band, linewidth=0.0, zorder=0.2, label=self._band_said())
        ends = (self.worst.low, self.worst.high) if against == "forecast" else self.worst_share
        self.worst_ = ax.axvspan(
            *ends,
            facecolor=palette.highlight_fill,
            edgecolor=palette.highlight,
            linewidth=1.0,
            alpha=0.65,
            zorder=0.3,
            label=self._worst_said(),
        )
        ax.axhline(0.0, color=palette.muted, linewidth=0.9, zorder=1.5)
        (self.line_,) = ax.plot(
            self.forecast if against == "forecast" else self.share,
            self.deviation,
            color=palette.curve,
            linewidth=1.6,
            drawstyle="steps-post" if against == "forecast" else "default",
            label="the running sum: falls where forecasts are too high, rises where too low",
        )
        show_forecasts(ax, *(self.forecast[[1, -2]] if against == "forecast" else (0.0, 1.0)))
        handles = [self.line_, self.worst_, *([] if self.band_ is None else [self.band_])]
        self._explain(palette, legend, handles)
        return self

    def _columns(self) -> dict[str, Any]:
        return {"forecast": self.forecast, "share": self.share, "deviation": self.deviation}

    def _band_ends(self, height: float) -> tuple[float, float]:
        """Return where the strip lies: around the curve or, if that is higher, around 0 and as much of it as goes."""
        low, high = float(self.deviation.min()), float(self.deviation.max())
        half = height / 2.0
        if high - low <= height:
            middle = (low + high) / 2.0
        elif high > -low:
            middle = max(low + half, 0.0)
        else:
            middle = min(high - half, 0.0)
        return middle - half, middle + half

    def _band_said(self) -> str:
        height = "" if self.band_height is None else significant_up(self.band_height, 3)
        found = {
            "simulation": f"{self.n_resamples:,} simulations",
            SIGNS: f"{self.n_resamples:,} draws of signs of clusters, for many of them",
        }.get(self.band_from, "large-sample law")
        return (
            f"what chance alone shows: the whole curve of calibrated forecasts stays in a strip this high, {height}, "
            f"in {level_said(self.confidence_level)} of cases ({found})"
        )

    def _worst_said(self) -> str:
        worst = self.worst
        if worst.direction == "none":
            return "worst interval: none, every interval of forecasts is right on average"
        if worst.low == worst.high:
            which = f"forecasts of exactly {significant(worst.low)}"
        else:
            which = "forecasts from {} to {}".format(*ends_said(worst.low, worst.high))
        return (
            f"worst interval: {which} are {worst.direction} by {measured(100.0 * abs(worst.bias), 2)} percentage "
            f"points on average ({percent(worst.share)} {of_all(worst.unit_weights)}); Cutoff calibration error "
            f"{measured(worst.error)}"
        )


def _curve(tally: Tally) -> dict[str, Any]:
    """Return the running sum with a start at forecast 0 and an end at forecast 1, thinned, and its worst interval."""
    total = tally.weight_total
    worst = find_worst_interval(tally)
    begin = int(np.searchsorted(tally.forecast, worst.low))
    end = int(np.searchsorted(tally.forecast, worst.high, side="right"))
    forecast = np.concatenate([[0.0], tally.forecast, [1.0]])
    share = prefix_sums(tally.weight) / total
    deviation = tally.residual_prefix() / total
    share, deviation = np.append(share, 1.0), np.append(deviation, deviation[-1])
    kept = thinned(deviation, forecast, share, keep=(1, begin, begin + 1, end, len(tally)))
    return {
        "forecast": forecast[kept],
        "share": share[kept],
        "deviation": deviation[kept],
        "worst": worst,
        "worst_share": (float(share[begin]), float(share[end])),
    }


def _simulated_height(tally: Tally, level: float, resamples: int, generator: np.random.Generator) -> float:
    """Return the range that the curve of calibrated forecasts exceeds in at most 1 - level of cases.

    A curve's range is above it exactly when (1 + ranges that reach it) / (1 + resamples) is at most 1 - level, the
    p-value of `calibration_test` with these draws.
    """
    expected = tally.rows * tally.forecast
    ranges = []
    draw = _events_drawn(tally, generator)
    at_a_time = max(1, _PART // len(tally))
    for start in range(0, resamples, at_a_time):
        size = (min(at_a_time, resamples - start), len(tally))
        curve = np.cumsum(draw(size) - expected, axis=1)
        ranges.append(np.maximum(curve.max(axis=1), 0.0) - np.minimum(curve.min(axis=1), 0.0))
    rank = math.ceil(level * (resamples + 1) - 1e-9)
    return float(np.sort(np.concatenate(ranges))[rank - 1]) / tally.weight_total


def _events_drawn(
    tally: Tally, generator: np.random.Generator
) -> Callable[[tuple[int, int]], npt.NDArray[np.int64] | BoolArray]:
    """Return what draws events at each forecast, as calibrated forecasts have them.

    Of single rows each takes one uniform number, compared with what `Generator.binomial` compares it with: the same
    events, several times as fast. A forecast of 0 takes none.
    """
    chance = tally.forecast
    if chance[0] == 0.0 or len(tally) < tally.row_total:
        return lambda size: generator.binomial(tally.rows, chance, size=size)
    rare = chance <= 0.5
    other = np.exp(np.log1p(-np.where(rare, chance, 1.0 - chance)))
    return lambda size: (generator.random(size) > other) == rare

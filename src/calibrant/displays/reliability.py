"""Event rate against forecast: the reliability diagram of any smoother, with bands that say what they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from calibrant.certificates.bands import RiskBands, risk_bands
from calibrant.certificates.clusters import ClusterTarget
from calibrant.core.errors import InputError
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, IntArray, Randomness
from calibrant.core.words import level_said
from calibrant.displays.base import (
    Display,
    dress,
    forecast_limits,
    inches_below,
    show_forecasts,
    write_beside,
)
from calibrant.displays.classes import FORECAST, one_question
from calibrant.displays.clusters import refuse_band, rows_to_draw
from calibrant.displays.palette import WORDS, Palette, Theme, palette_of
from calibrant.displays.reliability_bands import (
    Band,
    Stretch,
    clusters_band,
    confidence_band,
    consistency_band,
    stretches_off,
)
from calibrant.displays.thinning import thinned
from calibrant.measures.curve_results import CalibrationCurve
from calibrant.measures.curves import calibration_curve
from calibrant.measures.smoothers import SMOOTHERS, Scale, Smoother, SmootherName, check_smoother
from calibrant.rows.checks import check_choice, check_confidence, check_flag, check_number, check_seed
from calibrant.rows.intake import RowsLike
from calibrant.rows.resamples import check_resamples
from calibrant.rows.runs import prefix_sums
from calibrant.rows.tally import Tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import FillBetweenPolyCollection
    from matplotlib.container import ErrorbarContainer

SPIKES = 50
"""Up to this many distinct forecasts each gets a bar of its own; more are counted in as many bins."""

_BANDS = {False: ("consistency", "confidence"), True: ("pointwise", "simultaneous")}  # of smooth curves
_ROOM = 0.08  # above and below differences, as a part of the axes


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(Display):
    """Plot the event rate against the forecast, by isotonic regression or a smooth curve, with a band.

    On the diagonal forecasts are right; below it they are too high, above it too low. The curve is, unless another
    smoother is chosen, the isotonic regression of the outcomes on the forecasts (CORP): nothing to tune, and among all
    non-decreasing curves the one nearest to the outcomes.

    Two bands are on offer for it, and the legend says which one is drawn:

    - "consistency", around the diagonal: where the curve of *calibrated* forecasts would lie. Outcomes are drawn from
      the forecasts ``n_resamples`` times and the curve is fitted to each; the band holds the middle 95% at every
      forecast taken by itself (pointwise), so a calibrated forecaster's curve leaves it somewhere more often than that.
      More than 2,000 distinct forecasts are first joined into at most 2,000 groups of neighbours. With weights or
      fractional outcomes sums of outcomes are drawn from a normal law instead, a large-sample approximation. For rows
      in clusters the residuals of whole clusters get random signs, which is right for many clusters.
    - "confidence", around the curve: where the true event rate lies, at all forecasts together (simultaneous), with at
      least 95% confidence at every number of rows. It assumes that the event rate does not fall as the forecast rises,
      and that outcomes are independent given the forecasts. Clopper-Pearson limits on all runs of up to 420 groups of
      neighbours, each at 0.05 / (number of limits); a bootstrap would be narrower and is not valid for isotonic
      regression.

    Smooth curves (loess, lowess, splines: those of `calibration_curve`) have bands from resamples, around the curve:
    "pointwise", at each forecast by itself, or "simultaneous", at all forecasts together. They hold for many rows.

    Use `from_predictions` or `from_estimator`; the constructor takes what they compute.

    Attributes
    ----------
    forecast, rate : array
        The curve, linear between its points: the ends of the steps of the isotonic fit, or places on a smooth curve.
    smoother : str
        "isotonic", "loess", "lowess" or "splines".
    band : str or None
        "consistency", "confidence", "pointwise", "simultaneous" or None.
    band_forecast, band_lower, band_upper : array
        The band, linear between its points; empty without one.
    confidence_level : float
        Of the band.
    n_resamples : int
        Simulated data sets behind a consistency band, or resamples behind the band of a smooth curve.
    groups : int
        Groups of forecasts that the band was computed on; 0 where it was computed on rows.
    bar_low, bar_high, bar_rows : array
        The histogram: where each bar begins and ends, and its rows; ``bar_low == bar_high`` where every distinct
        forecast has a bar of its own.
    bins : RiskBands or None
        Event rates in bins of equal width, with limits that hold for all bins together.
    clusters : int or None
        How many clusters the band counts; None for independent rows.
    axis : str
        What the forecasts are: "forecast", or "confidence in the top label" of several classes.
    ax_, figure_, line_, band_, off_, bars_, bins_, histogram_ax_, legend_
        What was drawn, after `plot`.

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers, PNAS 118 (the curve
    and the consistency band); Dimitriadis, Duembgen, Henzi, Puke, Ziegel (2023), Honest calibration assessment for
    binary outcome predictions, Biometrika 110 (the idea of the confidence band).

    Examples
    --------
    >>> display = ReliabilityDisplay.from_predictions([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.9], band=None)
    >>> display.forecast, display.rate
    (array([0.1, 0.2, 0.3, 0.6, 0.7, 0.9]), array([0. , 0. , 0.5, 0.5, 1. , 1. ]))
    """

    forecast: FloatArray
    rate: FloatArray
    band: str | None
    band_forecast: FloatArray
    band_lower: FloatArray
    band_upper: FloatArray
    confidence_level: float
    n_resamples: int
    groups: int
    bar_low: FloatArray
    bar_high: FloatArray
    bar_rows: IntArray
    bins: RiskBands | None
    clusters: int | None = None
    axis: str = FORECAST
    smoother: str = "isotonic"

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
        smoother: SmootherName = "isotonic",
        span: float | None = None,
        knots: int | None = None,
        scale: Scale | None = None,
        band: Literal["auto", "consistency", "confidence", "pointwise", "simultaneous"] | None = "auto",
        confidence_level: float = 0.95,
        n_resamples: int = 399,
        rng: Randomness = 0,
        n_bins: int | None = None,
        difference: bool = False,
        histogram: bool = True,
        theme: Theme = "light",
        legend: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Compute the curve, its band and the histogram, and draw them.

        Parameters
        ----------
        y_true, y_prob, sample_weight, pos_label
            As in every display.
        classes : array-like of shape (K,), optional
            The label of each column of ``y_prob`` of shape (n, K), which is drawn as the confidence in the top label.
        smoother, span, knots, scale
            The curve, as in `calibration_curve`.
        band : {"auto", "consistency", "confidence", "pointwise", "simultaneous"} or None
            For an isotonic curve: where calibrated forecasts would lie, around the diagonal ("consistency", what
            "auto" means here); or where the true event rate lies, around the curve ("confidence", for 0/1 outcomes
            without weights or clusters only). For a smooth curve: where the true event rate lies, at each forecast by
            itself ("pointwise", what "auto" means here) or at all forecasts together ("simultaneous").
        cluster, cluster_target, serial
            As in `certify`, for rows in clusters.
        confidence_level : float
            Of the band.
        n_resamples : int
            Simulated data sets behind a consistency band, resamples behind that of a smooth curve.
        rng : int, Generator or None, default 0
            Where its random numbers come from; with a seed they are others for every data set.
        n_bins : int, optional
            Also draw the event rates in so many bins of equal width, with limits from `risk_bands` that hold for all
            bins together with ``confidence_level``.
        difference, histogram
            As in `plot`.
        theme, legend, ax
            As in every display.
        """
        curve = check_smoother(smoother, span, knots, scale)
        chosen = _check_band(band, curve.smoother)
        level = check_confidence(confidence_level)
        resamples = check_resamples(n_resamples, level)
        seed = check_seed(rng)
        bins = None if n_bins is None else int(check_number(n_bins, "n_bins", low=2, high=1000, whole=True))
        given, axis = one_question(y_true, y_prob, classes, sample_weight, pos_label)
        tally, clusters = rows_to_draw(**given, cluster=cluster, cluster_target=cluster_target, serial=serial)
        if clusters is not None and chosen == "confidence":
            raise refuse_band(chosen, "consistency")
        if chosen == "confidence" and not (tally.binary_outcomes and tally.unit_weights):
            raise InputError(
                "band='confidence' needs outcomes of 0 or 1 without weights, and these are fractions or weighted",
                remedy="use band='consistency' or None, or Tally.from_counts if the weights are counts of real "
                "observations",
            )
        limits = Band(np.empty(0), np.empty(0), np.empty(0), 0)
        if clusters is not None and chosen == "consistency":
            limits = clusters_band(tally, clusters, level, resamples, tally.generator(seed, "band"))
        elif chosen == "consistency":
            limits = consistency_band(tally, level, resamples, tally.generator(seed, "band"))
        elif chosen == "confidence":
            limits = confidence_band(tally, level)
        rows: Any = tally if clusters is None else clusters.source
        if curve.smoother.smooth:
            fitted = calibration_curve(
                **(given if clusters is None else {"y_true": rows}),
                smoother=smoother,
                span=span,
                knots=knots,
                scale=scale,
                band=chosen or "pointwise",
                confidence_level=None if chosen is None else level,
                n_resamples=resamples,
                rng=tally.generator(seed, "band"),
            )
            forecast, rate = fitted.forecast, fitted.rate
            if chosen is not None:
                limits = Band(forecast, fitted.lower, fitted.upper, 0)
        else:
            forecast, rate = _corners(tally)
        counted: dict[str, Any] = {} if clusters is None else {"cluster_target": cluster_target, "serial": serial}
        edges = None if bins is None else np.linspace(0.0, 1.0, bins + 1)[1:-1]
        bar_low, bar_high, bar_rows = _bars(tally)
        display = cls(
            forecast=forecast,
            rate=rate,
            band=chosen,
            band_forecast=limits.forecast,
            band_lower=limits.lower,
            band_upper=limits.upper,
            confidence_level=level,
            n_resamples=resamples,
            groups=limits.groups,
            bar_low=bar_low,
            bar_high=bar_high,
            bar_rows=bar_rows,
            bins=None if edges is None else risk_bands(rows, cutoffs=edges, confidence_level=level, **counted),
            clusters=None if clusters is None else clusters.count,
            axis=axis,
            smoother=curve.smoother.name,
        )
        return display.plot(difference=difference, histogram=histogram, theme=theme, legend=legend, ax=ax)

    @classmethod
    @frames_follow
    def from_results(cls, curve: CalibrationCurve, tally: Tally) -> Self:
        """Make a display, not yet drawn, of a curve computed before, above the histogram of a tally.

        Parameters
        ----------
        curve : CalibrationCurve
            What `calibration_curve` returned.
        tally : Tally
            The rows of the histogram.
        """
        bar_low, bar_high, bar_rows = _bars(tally)
        return cls(
            forecast=curve.forecast,
            rate=curve.rate,
            band=curve.band,
            band_forecast=np.empty(0) if curve.band is None else curve.forecast,
            band_lower=curve.lower,
            band_upper=curve.upper,
            confidence_level=curve.confidence_level or 0.0,
            n_resamples=curve.n_resamples or 0,
            groups=0,
            bar_low=bar_low,
            bar_high=bar_high,
            bar_rows=bar_rows,
            bins=None,
            clusters=curve.clusters,
            smoother=curve.smoother,
        )

    def plot(
        self,
        *,
        difference: bool = False,
        histogram: bool = True,
        theme: Theme = "light",
        legend: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the curve, the band, the bins and the histogram.

        Parameters
        ----------
        difference : bool
            Draw event rate minus forecast, so that the diagonal is level and small differences are seen.
        histogram : bool
            Draw the histogram of the forecasts below the axes.
        theme, legend, ax
            As in every display.
        """
        turned, below = check_flag(difference, "difference"), check_flag(histogram, "histogram")
        ax, palette = self._begin(
            ax,
            theme,
            xlabel="" if below else self.axis,
            ylabel=self._rate_said(turned),
            title=self._title(turned),
            height=6.0 if below else 5.2,
        )

        def shown(forecast: FloatArray, rate: FloatArray) -> FloatArray:
            return rate - forecast if turned else rate

        ends = np.array([0.0, 1.0])
        ax.plot(ends, shown(ends, ends), color=palette.muted, linewidth=1.0, linestyle=(0, (4, 2)), zorder=1.5)
        (self.line_,) = ax.plot(
            self.forecast,
            shown(self.forecast, self._drawn_rate()),
            color=palette.curve,
            linewidth=1.6,
            marker="." if self.forecast.size <= SPIKES else None,
            label=f"event rate by {SMOOTHERS[self.smoother].said}; dashed: perfect calibration",
            zorder=2.2,
        )
        self.band_ = None
        if self.band is not None:
            self.band_ = ax.fill_between(
                self.band_forecast,
                shown(self.band_forecast, self.band_lower),
                shown(self.band_forecast, self.band_upper),
                color=palette.band,
                linewidth=0.0,
                zorder=0.2,
                label=self._band_said(),
            )
        self.off_ = self._draw_off(ax, palette, shown)
        self.bins_ = None if self.bins is None else self._draw_bins(ax, palette, self.bins, shown)
        show_forecasts(ax, self.bar_low[0], self.bar_high[-1])
        if not turned:
            ax.set_ylim(*self._rate_limits())
        else:
            _name_sides(ax, palette)
        self.histogram_ax_ = self._draw_histogram(ax, theme) if below else None
        handles = [each for each in (self.line_, self.band_, self.off_, self.bins_) if each is not None]
        self._explain(palette, legend, handles, below=1.35 if below else 0.5)
        return self

    @property
    def stretches_off(self) -> list[Stretch]:
        """Forecasts that a confidence band shows to be too low or too high; none with another band."""
        if self.band != "confidence":
            return []
        return stretches_off(self.band_forecast, self.band_lower, self.band_upper)

    def _rate_said(self, turned: bool) -> str:
        """Say what the curve is the rate of."""
        plain = self.axis == FORECAST
        rate, forecast = ("event rate", "forecast") if plain else ("share of right top labels", "confidence")
        return f"{rate} \N{MINUS SIGN} {forecast}" if turned else rate

    def _title(self, turned: bool) -> str:
        """Say what the picture shows: with a confidence band, which forecasts are off."""
        if self.band != "confidence":
            words = ("Event rate minus forecast", "How often it happens, at each forecast")
            if self.axis != FORECAST:
                words = ("Right top labels minus confidence", "How often the top label is right, at each confidence")
            return words[0] if turned else words[1]
        off = self.stretches_off
        if len(off) <= 1:
            return str(off[0]) if off else "No forecasts are shown to be off"
        sides = {"Too low" if stretch.too_low else "Too high" for stretch in off}
        side = sides.pop() if len(sides) == 1 else "Off"
        return f"{side}: {len(off)} ranges of forecasts from {off[0].low:.3g} to {off[-1].high:.3g}"

    def _draw_off(
        self, ax: Axes, palette: Palette, shown: Callable[[FloatArray, FloatArray], FloatArray]
    ) -> FillBetweenPolyCollection | None:
        """Mark the forecasts that the band shows to be off."""
        off = self.stretches_off
        if not off:
            return None
        inside = np.zeros(self.band_forecast.size, dtype=bool)
        for stretch in off:
            inside |= (self.band_forecast >= stretch.low) & (self.band_forecast <= stretch.high)
        return ax.fill_between(
            self.band_forecast,
            shown(self.band_forecast, self.band_lower),
            shown(self.band_forecast, self.band_upper),
            where=inside.tolist(),
            color=palette.highlight_fill,
            edgecolor=palette.highlight,
            linewidth=0.8,
            zorder=0.3,
            label=f"here the whole band lies on one side of perfect calibration: these forecasts are off, with "
            f"{level_said(self.confidence_level)} confidence",
        )

    def _draw_bins(
        self, ax: Axes, palette: Palette, bins: RiskBands, shown: Callable[[FloatArray, FloatArray], FloatArray]
    ) -> ErrorbarContainer:
        """Draw the event rate of every bin that has rows, with its limits."""
        filled = bins.rows > 0
        mean, bias = bins.mean_forecast[filled], bins.bias[filled]
        return ax.errorbar(
            mean,
            shown(mean, bins.observed_rate[filled]),
            yerr=np.stack([bias - bins.lower[filled], bins.upper[filled] - bias]),
            color=palette.other,
            fmt="s",
            markersize=4.5,
            linewidth=1.2,
            capsize=3.0,
            label=f"event rate in {bins.rows.size} bins, limits that hold for all of them together with "
            f"{level_said(self.confidence_level)} confidence",
        )

    def _drawn_rate(self) -> FloatArray:
        """Return the curve as it is drawn: local fits overshoot now and then, and no rate is below 0 or above 1."""
        return np.clip(self.rate, 0.0, 1.0)

    def _rate_limits(self) -> tuple[float, float]:
        """Return the limits of the axis of event rates: those of forecasts, widened to hold the curve and the bins.

        At the ends, where few rows are, a band so wide that it would flatten all else may leave the axes.
        """
        low, high = forecast_limits(self.bar_low[0], self.bar_high[-1])
        inside = np.concatenate([[low, high], self._drawn_rate()])
        if self.bins is not None:
            filled = self.bins.rows > 0
            mean = self.bins.mean_forecast[filled]
            inside = np.concatenate([inside, mean + self.bins.lower[filled], mean + self.bins.upper[filled]])
        return forecast_limits(float(inside.min()), float(inside.max()))

    def _draw_histogram(self, ax: Axes, theme: Theme) -> Axes:
        """Draw the histogram on axes of its own, below those of the curve and sharing their forecasts."""
        from matplotlib.ticker import MaxNLocator, StrMethodFormatter

        palette = palette_of(theme)
        lower = ax.inset_axes((0.0, -0.85, 1.0, 0.7), transform=inches_below(ax), sharex=ax)
        dress(lower, palette)
        ax.tick_params(labelbottom=False)
        if np.array_equal(self.bar_low, self.bar_high):
            self.bars_: Any = lower.vlines(self.bar_low, 0.0, self.bar_rows, color=palette.bars, linewidth=2.5)
        else:
            edges = np.append(self.bar_low, self.bar_high[-1])  # one shape: fifty take a tenth of a page's time
            self.bars_ = lower.stairs(self.bar_rows, edges, fill=True, color=palette.bars)
        lower.set_ylim(bottom=0.0)
        lower.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
        lower.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        lower.set_xlabel(self.axis, color=palette.ink, fontsize=WORDS)
        lower.set_ylabel("rows", color=palette.ink, fontsize=WORDS)
        return lower

    def _columns(self) -> dict[str, Any]:
        nothing = np.full(self.forecast.size, np.nan)
        parts = [("curve", self.forecast, self.rate, nothing, nothing, nothing)]
        if self.band is not None:
            nothing = np.full(self.band_forecast.size, np.nan)
            parts.append(("band", self.band_forecast, nothing, self.band_lower, self.band_upper, nothing))
        if self.bins is not None:
            mean = self.bins.mean_forecast
            limits = mean + self.bins.lower, mean + self.bins.upper
            parts.append(("bins", mean, self.bins.observed_rate, *limits, self.bins.rows.astype(np.float64)))
        nothing = np.full(self.bar_low.size, np.nan)
        middle = (self.bar_low + self.bar_high) / 2.0
        parts.append(("histogram", middle, nothing, nothing, nothing, self.bar_rows.astype(np.float64)))
        names = ("forecast", "rate", "lower", "upper", "rows")
        columns = {name: np.concatenate([part[k] for part in parts]) for k, name in enumerate(names, start=1)}
        return {"part": np.repeat([part[0] for part in parts], [part[1].size for part in parts]), **columns}

    def _band_said(self) -> str:
        level = level_said(self.confidence_level)
        if self.band == "consistency" and self.clusters is not None:
            return (
                "consistency band: where the curve of calibrated forecasts, in clusters like these "
                f"{self.clusters:,}, lies in {level} of cases, pointwise: at each forecast by itself "
                f"({self.n_resamples:,} draws of signs of clusters, for many of them)"
            )
        if self.band == "consistency":
            return (
                f"consistency band: where the curve of calibrated forecasts lies in {level} of cases, pointwise: at "
                f"each forecast by itself ({self.n_resamples:,} simulations)"
            )
        if self.band == "confidence":
            return (
                f"confidence band: with {level} confidence the true event rate lies in it, at all forecasts together "
                "(independent rows, forecaster fixed beforehand, event rate not falling in the forecast)"
            )
        where = {"pointwise": "at each forecast by itself", "simultaneous": "at all forecasts together"}[str(self.band)]
        drawn = "" if self.clusters is None else f" of {self.clusters:,} clusters"
        return (
            f"{self.band} band: with about {level} confidence the event rate lies in it, {where} "
            f"({self.n_resamples:,} resamples{drawn}; for many rows, and an event rate as smooth as the curve)"
        )


def _check_band(band: Any, smoother: Smoother) -> Any:
    """Return the band to draw around a curve; None for none."""
    if band is None:
        return None
    asked = check_choice(band, "band", ("auto", *(name for names in _BANDS.values() for name in names)))
    fitting = _BANDS[smoother.smooth]
    if asked == "auto":
        return fitting[0]
    if asked not in fitting:
        raise InputError(
            f"{asked!r} is not one for smoother={smoother.name!r}",
            argument="band",
            value=asked,
            remedy=f"use {' or '.join(map(repr, fitting))}",
        )
    return asked


def _name_sides(ax: Axes, palette: Palette) -> None:
    """Say what the sides of zero mean, in room made for that above and below everything drawn."""
    low, high = ax.get_ylim()
    ax.set_ylim(low - _ROOM * (high - low), high + _ROOM * (high - low))
    for place, words, align in (
        ((0.985, 0.98), "above 0: forecasts too low", ("right", "top")),
        ((0.015, 0.02), "below 0: forecasts too high", ("left", "bottom")),
    ):
        write_beside(ax, words, place, palette.muted, align=align, of_axes="axes fraction")


def _corners(tally: Tally) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the steps of the isotonic regression: linear between them, it is the same curve."""
    level, borders = tally.isotonic
    ends, steps = np.unique(np.stack([borders[:-1], borders[1:] - 1], axis=1), return_index=True)
    forecast, rate = tally.forecast[ends], level[steps // 2]
    kept = thinned(rate, forecast)
    return forecast[kept], rate[kept]


def _bars(tally: Tally) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the bars of the histogram of the forecasts: begin, end and rows."""
    if len(tally) <= SPIKES:
        return tally.forecast, tally.forecast, tally.rows
    low, high = forecast_limits(float(tally.forecast[0]), float(tally.forecast[-1]))
    edges = np.linspace(max(low, 0.0), min(high, 1.0), SPIKES + 1)
    ends = np.append(np.searchsorted(tally.forecast, edges[:-1]), len(tally))
    return edges[:-1], edges[1:], np.diff(prefix_sums(tally.rows)[ends]).astype(np.int64)

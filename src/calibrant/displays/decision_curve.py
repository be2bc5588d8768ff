"""Net benefit against the decision threshold: decision curve analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, Randomness
from calibrant.core.words import level_said
from calibrant.decisions.benefit_limits import Interval
from calibrant.decisions.benefit_results import DecisionCurve, NetBenefit
from calibrant.decisions.benefits import decision_curve
from calibrant.displays.base import THRESHOLD_SAID, Display
from calibrant.displays.palette import Palette, Theme
from calibrant.displays.thinning import thinned
from calibrant.rows.checks import check_choice
from calibrant.rows.intake import RowsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Quantity = Literal["net_benefit", "standardized", "interventions_avoided"]


class _Shown(NamedTuple):
    """What a curve may show: its axis, and what treating all, none and perfectly has there."""

    label: str
    everybody: Callable[[NetBenefit], FloatArray]
    nobody: Callable[[NetBenefit], FloatArray]
    most: Callable[[NetBenefit], float]


_SHOWN: Mapping[str, _Shown] = {
    "net_benefit": _Shown(
        "net benefit (events found per row)",
        lambda each: np.atleast_1d(each.treat_all),
        lambda each: np.atleast_1d(each.treat_none),
        lambda each: each.event_rate,
    ),
    "standardized": _Shown(
        "standardised net benefit (1 is perfect)",
        lambda each: np.atleast_1d(each.treat_all) / each.event_rate,
        lambda each: np.atleast_1d(each.treat_none),
        lambda _: 1.0,
    ),
    "interventions_avoided": _Shown(
        "interventions avoided, net (per 100 rows)",
        lambda each: np.zeros(np.size(each.threshold)),
        lambda each: -100.0 * np.atleast_1d(each.treat_all) / _odds(each),
        lambda each: 100.0 * (1.0 - each.event_rate),
    ),
}

_LEAST_ODDS = 1e-6
_SEEN = 0.01  # of the height of the axes: what is thinner is not seen
_COLOURS = ("curve", "bound", "undecided", "refuted", "highlight")
_DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (4, 1.2, 1, 1.2)), (0, (2, 1)))


def _odds(each: NetBenefit) -> FloatArray:
    threshold = np.atleast_1d(each.threshold)
    return np.maximum(threshold / (1.0 - threshold), _LEAST_ODDS)


@dataclass(eq=False, repr=False)
class DecisionCurveDisplay(Display):
    """Plot the net benefit of acting on forecasts, beside treating all and treating none; for one model or several.

    Net benefit is the share of rows that are true positives, minus the share of false positives at the exchange rate
    tau/(1 - tau) of the threshold. Where a curve is above both others the forecasts help somebody with that threshold;
    where that of a single model is below the better of the two they do harm, and that stretch is shaded.

    What the forecasts of a single model gain over the better of the two has limits of its own, narrower than those of
    the curve, since all three rise and fall together from sample to sample. With a confidence level a bar on the axis
    marks the thresholds at which that gain is shown to be above 0, or below.

    Use `from_predictions`, `from_estimator` or `from_results`; the constructor takes what they compute.

    Attributes
    ----------
    curve : DecisionCurve
        The numbers that are drawn, with limits if a confidence level was given.
    quantity : str
        Which of them: "net_benefit", "standardized" or "interventions_avoided".
    ax_, figure_, lines_, bands_, treat_all_, treat_none_, harm_, shown_, threshold_, legend_
        What was drawn, after `plot`; ``shown_`` holds the bars of gains, and ``harm_`` and ``threshold_`` are None
        where there is nothing to draw.

    References
    ----------
    Vickers, Elkin (2006), Decision curve analysis, Medical Decision Making 26.

    Examples
    --------
    >>> display = DecisionCurveDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], thresholds=[0.2, 0.5])
    >>> display.curve["model"].net_benefit, display.curve["model"].treat_all
    (array([0.4375, 0.    ]), array([0.375, 0.   ]))
    """

    curve: DecisionCurve
    quantity: Quantity = "net_benefit"

    @classmethod
    @frames_follow
    def from_predictions(
        cls,
        y_true: RowsLike | Mapping[str, Any],
        y_prob: ArrayLike | Mapping[str, Any] | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: ClassLabel | None = None,
        threshold: float | None = None,
        thresholds: ArrayLike | None = None,
        quantity: Quantity = "net_benefit",
        prevalence: float | None = None,
        confidence_level: float | None = None,
        interval: Interval = "delta",
        band: bool = False,
        cluster: ArrayLike | None = None,
        n_resamples: int = 1000,
        rng: Randomness = 0,
        theme: Theme = "light",
        legend: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Compute the curves, and draw them.

        Forecasts of several models are a dict, by their names.

        Parameters
        ----------
        y_true, y_prob, sample_weight, pos_label
            As in every display.
        threshold : float in (0, 1), optional
            The threshold that you decide by: it is marked, and the curve goes from a quarter to four times its odds.
        thresholds : array of floats in [0, 1), optional
            At which thresholds instead. By default, and without ``threshold``, 0, 0.01, ..., 0.35. Choose those that
            somebody may decide by.
        quantity : {"net_benefit", "standardized", "interventions_avoided"}
            Net benefit in events per row, as a share of the most there is, or as rows of 100 that are spared.
        prevalence, confidence_level, interval, band, cluster, n_resamples, rng
            As in `decision_curve`: with a confidence level limits are shaded, with ``band=True`` those that hold at all
            thresholds together.
        theme, legend, ax
            As in every display.
        """
        curve = decision_curve(
            y_true,
            y_prob,
            threshold=threshold,
            thresholds=thresholds,
            prevalence=prevalence,
            confidence_level=confidence_level,
            interval=interval,
            band=band,
            cluster=cluster,
            n_resamples=n_resamples,
            sample_weight=sample_weight,
            pos_label=pos_label,
            rng=rng,
        )
        return cls.from_results(curve, quantity=quantity).plot(theme=theme, legend=legend, ax=ax)

    @classmethod
    @frames_follow
    def from_results(cls, curve: DecisionCurve, *, quantity: Quantity = "net_benefit") -> Self:
        """Make a display, not yet drawn, of curves computed before.

        Parameters
        ----------
        curve : DecisionCurve
            What `decision_curve` returned.
        quantity : {"net_benefit", "standardized", "interventions_avoided"}
            Net benefit in events per row, as a share of the most there is, or as rows of 100 that are spared.
        """
        check_choice(quantity, "quantity", tuple(_SHOWN))
        if curve.thresholds.size < 2:
            raise InputError(
                f"has one value, {curve.thresholds[0]:g}, and a curve needs two",
                argument="thresholds",
                remedy="net_benefit takes one",
            )
        if curve.curves[0].standardized is None and quantity == "standardized":
            raise InputError(
                "is a share of the event rate, and these rows have no events", argument="quantity", value=quantity
            )
        return cls(curve, quantity)

    def _values(self, model: NetBenefit, end: str = "") -> FloatArray | None:
        """Return what is drawn of a model, or the end of its limits: of those for all thresholds where there are."""
        name: str = self.quantity
        if end and name == "net_benefit" and model.band_lower is not None:
            name = "band"
        found = getattr(model, f"{name}{end}")
        return None if found is None else np.atleast_1d(found)

    def plot(self, *, theme: Theme = "light", legend: bool = True, ax: Axes | None = None) -> Self:
        """Draw the curves beside those that need no forecast.

        Parameters
        ----------
        theme, legend, ax
            As in every display.
        """
        shown, first, several = _SHOWN[self.quantity], self.curve.curves[0], len(self.curve) > 1
        ax, palette = self._begin(
            ax,
            theme,
            xlabel=THRESHOLD_SAID,
            ylabel=shown.label,
            title="What acting on the forecasts brings, at each threshold",
        )
        place = self.curve.thresholds
        nobody, everybody = shown.nobody(first), shown.everybody(first)
        (self.treat_none_,) = ax.plot(
            place, nobody, color=palette.muted, linewidth=1.3, linestyle=(0, (1, 1.5)), label="treat none"
        )
        (self.treat_all_,) = ax.plot(
            place, everybody, color=palette.other, linewidth=1.5, linestyle=(0, (5, 2)), label="treat all"
        )
        self.bands_ = [] if first.confidence_level is None else list(self._shade(ax, palette))
        self.lines_ = []
        for k, (name, model) in enumerate(self.curve.pairs()):
            value = self._required(model)
            kept = thinned(value, place)
            (line,) = ax.plot(
                place[kept],
                value[kept],
                color=_colour(palette, k),
                linestyle=_DASHES[k % len(_DASHES)],
                linewidth=1.8,
                label=name if several else "act when the forecast is at least the threshold",
            )
            self.lines_.append(line)
        best, value = np.maximum(nobody, everybody), self._required(first)
        self._set_limits(ax, shown.most(first))
        self.harm_ = None
        deep = _SEEN * float(np.ptp(ax.get_ylim()))
        if not several and float((best - value).max()) > deep:
            self.harm_ = ax.fill_between(
                place,
                value,
                best,
                where=(value < best).tolist(),
                interpolate=True,
                color=palette.highlight_fill,
                linewidth=0.0,
                zorder=0.4,
                label="here treating all, or none, would have been better on these rows",
            )
        self.shown_ = [] if several else list(self._mark_gains(ax, palette))
        self.threshold_ = None
        if self.curve.threshold is not None:
            said = f"your threshold, {self.curve.threshold:g}"
            self.threshold_ = ax.axvline(self.curve.threshold, color=palette.highlight, linewidth=1.2, label=said)
        extras = [each for each in (*self.bands_[:1], self.harm_, *self.shown_, self.threshold_) if each is not None]
        self._explain(palette, legend, [*self.lines_, self.treat_all_, self.treat_none_, *extras])
        return self

    def _required(self, model: NetBenefit) -> FloatArray:
        value = self._values(model)
        assert value is not None
        return value

    def _shade(self, ax: Axes, palette: Palette) -> Iterator[Any]:
        """Shade the limits of each model."""
        first, several = self.curve.curves[0], len(self.curve) > 1
        assert first.confidence_level is not None
        together = self.quantity == "net_benefit" and first.band_lower is not None
        level = level_said(first.confidence_level)
        said = f"{level} limits, {'at all thresholds together' if together else 'at each threshold by itself'}"
        for k, model in enumerate(self.curve.curves):
            lower, upper = (self._values(model, end) for end in ("_lower", "_upper"))
            if lower is None or upper is None:  # resamples without events have no share of the event rate
                continue
            colour = {"color": _colour(palette, k), "alpha": 0.18} if several else {"color": palette.band}
            yield ax.fill_between(
                self.curve.thresholds,
                lower,
                upper,
                linewidth=0.0,
                zorder=0.3,
                label=f"{said}, for each model" if several else said,
                **colour,
            )

    def _mark_gains(self, ax: Axes, palette: Palette) -> Iterator[Any]:
        """Mark, on the axis, the thresholds at which the limits of the gain are above 0 or below."""
        found = self.curve.curves[0]
        together = found.gain_band_lower is not None
        lower, upper = (
            (found.gain_band_lower, found.gain_band_upper) if together else (found.gain_lower, found.gain_upper)
        )
        if lower is None or upper is None or found.confidence_level is None:
            return
        how = "at all thresholds together" if together else "at each threshold by itself"
        said = f"than treating all or none ({level_said(found.confidence_level)} limits of the difference, {how})"
        place = self.curve.thresholds
        half = np.diff(place) / 2.0
        starts, ends = place - np.append(half[0], half), place + np.append(half, half[-1])
        sides = (("better", np.atleast_1d(lower) > 0.0, "curve"), ("worse", np.atleast_1d(upper) < 0.0, "refuted"))
        for word, inside, role in sides:
            if inside.any():
                yield ax.fill_between(
                    np.stack([starts, ends], axis=1).ravel(),
                    0.0,
                    0.022,
                    where=np.repeat(inside, 2).tolist(),
                    transform=ax.get_xaxis_transform(),
                    color=getattr(palette, role),
                    linewidth=0.0,
                    zorder=2.6,
                    label=f"here acting on the forecasts is shown to be {word} {said}",
                )

    def _set_limits(self, ax: Axes, most: float) -> None:
        """Leave out what tells nothing: acting on every row loses without limit as the threshold nears 1."""
        values = [self._required(each) for each in self.curve.curves]
        low, high = (float(turn(each)) for turn, each in ((np.min, values), (np.max, values)))
        ends = [self._values(each, "_upper") for each in self.curve.curves]
        high = max([most, high, *(float(each.max()) for each in ends if each is not None)]) or 1.0
        ax.set_ylim(max(min(-0.1 * high, 1.1 * low), -high), 1.08 * high)
        ax.set_xlim(self.curve.thresholds[0], self.curve.thresholds[-1])

    def _columns(self) -> dict[str, Any]:
        return self.curve.columns()


def _colour(palette: Palette, position: int) -> str:
    colour: str = getattr(palette, _COLOURS[position % len(_COLOURS)])
    return colour

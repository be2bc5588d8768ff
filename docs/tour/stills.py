"""Draw the still pictures of the tour and of the first page: ``python docs/tour/stills.py`` writes them beside it.

The tour's own pictures move; these are for readers without JavaScript, and start where the moving ones start. All
numbers are the library's.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import calibrant
from calibrant.displays.base import dress, new_figure
from calibrant.displays.palette import SMALL, TITLE, WORDS, Palette, Theme, palette_of

HERE = Path(__file__).parent
LEVELS = 200
LOOKS = 40
"""How many data sets of each size the picture of estimates shows."""


def large_digits() -> tuple[Any, Any]:
    """Return whether written digits are 5 or more, and what a random forest forecasts for those it has not seen."""
    X, digit = load_digits(return_X_y=True)
    X_fit, X, y_fit, y = train_test_split(X, digit >= 5, train_size=500, random_state=0)
    return y, RandomForestClassifier(random_state=0).fit(X_fit, y_fit).predict_proba(X)[:, 1]


def population(
    *, shift: float = 0.0, slope: float = 1.0, height: float = 0.0, waves: float = 1.0, levels: int = LEVELS
) -> tuple[Any, Any]:
    """Return true event rates and forecasts of the tour's forecaster, bent as its sliders say."""
    forecast = (np.arange(levels) + 0.5) / levels
    bent = 0.5 + slope * (forecast - 0.5) + shift + height * np.sin(2.0 * np.pi * waves * forecast)
    return np.clip(bent, 0.0, 1.0), forecast


def jittered(step: float) -> calibrant.Tally:
    """Return the paper's example 3.1: forecasts on either side of 75% that hint the wrong way round."""
    return calibrant.Tally.from_counts([0.75 - step, 0.75 + step], [3, 1], [3, 0])


def panels(count: int, theme: Theme, width: float = 7.4, height: float = 3.5) -> tuple[Figure, list[Axes], Palette]:
    """Return a figure with so many pictures side by side, in the colours of a theme."""
    palette = palette_of(theme)
    figure = new_figure(height, width)
    figure.set_facecolor(palette.paper)
    drawn = [figure.add_subplot(1, count, place + 1) for place in range(count)]
    for ax in drawn:
        dress(ax, palette)
    return figure, drawn, palette


def label(ax: Axes, palette: Palette, title: str, x: str, y: str = "") -> None:
    """Say what a picture shows, and what its axes are."""
    ax.set_title(title, color=palette.ink, fontsize=TITLE, loc="left")
    ax.set_xlabel(x, color=palette.ink, fontsize=WORDS)
    ax.set_ylabel(y, color=palette.ink, fontsize=WORDS)


def draw_map(theme: Theme) -> Figure:
    """Draw figures 1 and 2 of the paper in one, with the risk gap in its place."""
    palette = palette_of(theme)
    figure = new_figure(5.1, 5.8)
    figure.set_facecolor(palette.paper)
    ax = figure.add_subplot()
    ax.set(xlim=(-0.3, 10.3), ylim=(-4.4, 4.6), aspect="equal")
    ax.axis("off")
    places = {"distance": (1.0, 0.0), "Cutoff": (5.0, 0.0), "ECE": (9.0, 0.0), "risk gap": (5.0, -3.2)}
    colours = (palette.other, palette.curve, palette.bound, palette.highlight)
    for (name, place), colour in zip(places.items(), colours, strict=True):
        ax.add_patch(Circle(place, 0.95, facecolor=palette.paper, edgecolor=colour, linewidth=2.5))
        ax.text(*place, name, ha="center", va="center", color=palette.ink, fontsize=WORDS, fontweight="bold")

    def arrow(start: tuple[float, float], end: tuple[float, float], **style: Any) -> None:
        options = {"arrowstyle": "-|>", "mutation_scale": 14, "linewidth": 1.6, "color": palette.ink, **style}
        ax.add_patch(FancyArrowPatch(start, end, **options))

    def words(x: float, y: float, said: str, colour: str = palette.ink, **style: Any) -> None:
        ax.text(x, y, said, **{"ha": "center", "va": "center", "color": colour, "fontsize": SMALL, **style})

    arrow((8.05, 0.0), (5.95, 0.0))
    words(7.0, 0.55, "Cutoff\n≤ ECE")
    arrow((4.05, 0.0), (1.95, 0.0))
    words(3.0, 0.55, "distance² / 9\n≤ Cutoff")
    arrow((5.0, -0.95), (5.0, -2.25), arrowstyle="<|-|>")
    words(6.2, -3.2, "risk gap ≤ Cutoff,\nCutoff ≤ √(2 · risk gap)", ha="left")
    dashes = {"linestyle": (0, (4, 3)), "color": palette.muted, "linewidth": 1.2}
    arrow((1.5, -0.8), (8.5, -0.8), connectionstyle="arc3,rad=0.16", **dashes)
    words(1.6, -2.3, "dashed: only for forecasts\na fixed step apart", palette.muted)
    for low, high, level, said, colour in (
        (-0.1, 6.1, 1.4, "testable", palette.certified),
        (3.9, 10.1, 2.3, "actionable", palette.bound),
    ):
        ax.plot([low, low, high, high], [level - 0.2, level, level, level - 0.2], color=colour, linewidth=2.0)
        words((low + high) / 2, level + 0.33, said, colour, fontsize=TITLE)
    weights = {"distance": "smooth\nweights", "Cutoff": "weights of\nbounded variation", "ECE": "any\nweights"}
    for name, said in weights.items():
        words(places[name][0], 4.0, said, palette.muted)
    for x in (2.9, 7.2):
        words(x, 4.0, "⊆", palette.muted, fontsize=TITLE + 3)
    return figure


def draw_bend(theme: Theme) -> Figure:
    """Draw event rates of a forecaster that is too extreme, and where its error collects."""
    figure, (left, right), palette = panels(2, theme)
    rate, forecast = population(slope=0.7)
    found = calibrant.measure(rate, forecast)
    worst = found.worst_interval
    inside = (forecast >= worst.low) & (forecast <= worst.high)
    for ax in (left, right):
        ax.axvspan(worst.low, worst.high, color=palette.highlight_fill)
    left.fill_between(forecast, forecast, rate, color=palette.band)
    left.fill_between(forecast, forecast, rate, where=inside.tolist(), color=palette.highlight, alpha=0.45)
    left.plot([0, 1], [0, 1], "--", color=palette.muted, linewidth=1.2)
    left.plot(forecast, rate, color=palette.curve, linewidth=2)
    label(left, palette, "How often it happens", "forecast", "event rate")
    curve = np.concatenate([[0.0], np.cumsum(rate - forecast)]) / LEVELS
    right.axhline(0.0, linestyle="--", color=palette.muted, linewidth=1.2)
    right.plot(np.linspace(0.0, 1.0, curve.size), curve, color=palette.curve, linewidth=2)
    label(
        right, palette, f"Where the error collects: Cutoff {found.cutoff:.4f}", "forecast", "running sum of the error"
    )
    return figure


def draw_weights(theme: Theme) -> Figure:
    """Draw the best weights of three classes, and what each collects of the same error."""
    figure, drawn, palette = panels(3, theme)
    rate, forecast = population(height=0.15, waves=4)
    off, found = rate - forecast, calibrant.measure(rate, forecast)
    worst = found.worst_interval
    inside = (forecast >= worst.low) & (forecast <= worst.high)
    classes = (
        ("Smooth weights", found.smooth, calibrant.measures.smooth_witness(rate, forecast).weight),
        ("One interval", found.cutoff, np.where(inside, np.sign(off[inside].sum()), 0.0)),
        ("Any weights", found.ece, np.sign(off)),
    )
    for ax, (name, value, weight) in zip(drawn, classes, strict=True):
        ax.plot(forecast, -2.4 + 5 * off, color=palette.muted, linewidth=1)
        ax.fill_between(forecast, -2.4, -2.4 + 5 * np.maximum(weight * off, 0.0), color=palette.highlight, alpha=0.55)
        ax.fill_between(forecast, -2.4, -2.4 + 5 * np.minimum(weight * off, 0.0), color=palette.bars, alpha=0.55)
        ax.plot(forecast, weight, color=palette.curve, linewidth=2)
        ax.set(ylim=(-3.6, 1.25), yticks=[-2.4, -1.0, 0.0, 1.0], yticklabels=["0", "-1", "0", "1"])
        label(ax, palette, f"{name}: {value:.4f}", "forecast")
    drawn[0].set_ylabel("error x weight         weight", color=palette.ink, fontsize=WORDS)
    return figure


def draw_sample(theme: Theme) -> Figure:
    """Draw what the two plug-in errors of a calibrated forecaster do as rows become more."""
    figure, (ax,), palette = panels(1, theme, width=6.4, height=3.9)
    sizes = [10, 30, 100, 300, 1_000, 3_000, 10_000]
    rng = np.random.default_rng(0)
    errors = np.empty((2, len(sizes), LOOKS))
    for (place, rows), look in itertools.product(enumerate(sizes), range(LOOKS)):
        forecast = rng.random(rows)
        tally = calibrant.Tally.from_arrays(rng.random(rows) < forecast, forecast)
        found = calibrant.measure(tally)
        errors[:, place, look] = found.ece, found.cutoff
    for (low, middle, high), colour, name in zip(
        np.quantile(errors, [0.05, 0.5, 0.95], axis=2).transpose(1, 0, 2),
        (palette.bound, palette.curve),
        ("ECE plug-in", "Cutoff"),
        strict=True,
    ):
        ax.fill_between(sizes, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(sizes, middle, "o-", color=colour, markersize=4)
        ax.annotate(name, (sizes[-1], middle[-1]), (0, 12), textcoords="offset points", ha="right", color=colour)
    ax.set(xscale="log", yscale="log")
    title = f"A calibrated forecaster: both errors are 0 (middle 90% of {LOOKS} data sets)"
    label(ax, palette, title, "rows", "error on the rows")
    return figure


def draw_decision(theme: Theme) -> Figure:
    """Draw acting from 30%, the stretch that is decided wrongly, and what the best line saves at each threshold."""
    figure, (left, right), palette = panels(2, theme)
    rate, forecast = population(slope=0.5)
    threshold, cut = 0.3, 0.1
    stretch = (forecast >= cut) & (forecast < threshold)
    left.axvspan(threshold, 1.0, color=palette.band, alpha=0.45)
    left.axvspan(cut, threshold, color=palette.highlight_fill)
    left.fill_between(forecast, threshold, rate, where=stretch.tolist(), color=palette.highlight, alpha=0.45)
    left.plot([0, 1], [0, 1], "--", color=palette.muted, linewidth=1.2)
    left.axhline(threshold, linestyle=":", color=palette.ink, linewidth=1)
    left.axvline(threshold, color=palette.ink, linewidth=1.5)
    left.axvline(cut, linestyle="--", color=palette.highlight, linewidth=2)
    left.plot(forecast, rate, color=palette.curve, linewidth=2)
    left.set(ylim=(0.0, 1.0))
    left.text(threshold + 0.02, 0.03, "act", color=palette.ink, fontsize=SMALL)
    label(left, palette, "Act or not", "forecast", "event rate")
    thresholds = np.linspace(0.0, 1.0, 101)
    tally = calibrant.Tally.from_arrays(rate, forecast)
    gaps = np.array([calibrant.risk_gap(tally, threshold=float(at)).gap for at in thresholds])
    right.fill_between(thresholds, 0.0, gaps, color=palette.band)
    right.plot(thresholds, gaps, color=palette.curve, linewidth=2)
    right.axvline(threshold, color=palette.ink, linewidth=1.5)
    right.plot(threshold, gaps[30], "o", color=palette.highlight)
    label(right, palette, "What the best line saves", "threshold", "saved per case")
    return figure


def draw_jitter(theme: Theme) -> Figure:
    """Draw measures and savings of the paper's example as its two forecasts come closer."""
    figure, (ax,), palette = panels(1, theme, width=6.4, height=3.9)
    steps = np.geomspace(0.001, 0.1, 30)
    tallies = [jittered(float(step)) for step in steps]
    found = [calibrant.measure(tally) for tally in tallies]
    saved = [calibrant.risk_gap(tally, threshold=0.75).gap for tally in tallies]
    for name, values, colour, style, above in (
        ("ECE", [one.ece for one in found], palette.bound, "-", 6),
        ("Cutoff", [one.cutoff for one in found], palette.curve, "-", 6),
        ("saved by a better line, acting from 75%", saved, palette.highlight, "--", -14),
        ("distance", [one.distance.high for one in found], palette.other, "-", 6),
    ):
        ax.plot(100 * steps, values, style, color=colour, linewidth=2)
        ax.annotate(name, (0.1, values[0]), (2, above), textcoords="offset points", color=colour, fontsize=SMALL)
    ax.set(xscale="log", ylim=(0.0, 0.5))
    label(ax, palette, "Two forecasts, a hair apart", "points away from 75%", "error, or saved per case")
    return figure


def draw_wedge(theme: Theme) -> Figure:
    """Draw where the risk gap can be for a given Cutoff error, and where it is for more and more forecasts."""
    figure, (ax,), palette = panels(1, theme, width=6.4, height=3.9)
    cutoff = np.array([0.005, 0.5])
    ax.fill_between(cutoff, cutoff**2 / 2, cutoff, color=palette.band)
    ax.plot(cutoff, cutoff, color=palette.ink, linewidth=1.5)
    ax.plot(cutoff, cutoff**2 / 2, color=palette.ink, linewidth=1.5)
    found = [calibrant.measure(*population(shift=0.1, levels=levels)) for levels in (1, 2, 3, 5, 10, 20, 50, 100, 200)]
    ax.plot([one.cutoff for one in found], [one.risk_gap for one in found], "o--", color=palette.highlight)
    ax.set(xscale="log", yscale="log", xlim=(0.005, 0.5), ylim=(1e-5, 0.5))
    said: dict[str, Any] = {"color": palette.ink, "fontsize": SMALL}
    ax.text(0.03, 0.05, "risk gap = Cutoff", ha="right", **said)
    ax.text(0.04, 0.0004, "risk gap = Cutoff² / 2", ha="left", **said)
    ax.text(
        0.115,
        0.022,
        "from 1 forecast, at the top,\nto 200 different ones",
        ha="left",
        **{**said, "color": palette.highlight},
    )
    label(ax, palette, "Where the risk gap can be", "Cutoff", "risk gap")
    return figure


def draw_first(theme: Theme) -> Figure:
    """Draw the reliability diagram of the first page."""
    drawn = calibrant.ReliabilityDisplay.from_predictions(*large_digits(), theme=theme)
    assert isinstance(drawn.figure_, Figure)
    return drawn.figure_


PICTURES: dict[str, Callable[[Theme], Figure]] = {
    "first": draw_first,
    "map": draw_map,
    "bend": draw_bend,
    "weights": draw_weights,
    "sample": draw_sample,
    "decision": draw_decision,
    "jitter": draw_jitter,
    "wedge": draw_wedge,
}
"""What draws each picture, in a given theme."""


def draw(name: str, theme: Theme) -> bytes:
    """Return a picture as a PNG file of 256 colours."""
    drawn, small = io.BytesIO(), io.BytesIO()
    PICTURES[name](theme).savefig(drawn, format="png", dpi=110)
    Image.open(drawn).convert("RGB").quantize(256).save(small, format="png", optimize=True)
    return small.getvalue()


def main() -> None:
    """Write every picture, light and dark."""
    themes: tuple[Theme, ...] = ("light", "dark")
    for name, theme in itertools.product(PICTURES, themes):
        (HERE / f"{name}_{theme}.png").write_bytes(draw(name, theme))


if __name__ == "__main__":
    main()

"""Proposition 2.2: errors against weights of bounded variation lie between Cutoff and a multiple of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import calibrant
from calibrant.experiments.figures import COLOURS, WIDTH, headline, tidy, write_beside
from calibrant.experiments.populations import Population, middles, random_populations
from calibrant.experiments.reports import PAPER, PROJECT, Report, Settings, Statement, as_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 1_000
VARIATIONS = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
FORECASTS = 12
ROUNDING = 1e-12


def run(settings: Settings) -> Report:
    """Compare the error at several variations with Cutoff, on random forecasters and on the worst ones."""
    runs = settings.runs or RUNS
    drawn = random_populations(settings.generator(), runs, most=FORECASTS)
    rows: list[tuple[Any, ...]] = []
    for population in settings.track(drawn):
        spectrum = calibrant.measures.bounded_variation_spectrum(population.law())
        cutoff = population.cutoff()
        rows += [("random", variation, cutoff, spectrum.at(variation)) for variation in VARIATIONS]
    for variation in VARIATIONS:
        worst = _alternating(int(variation / 2.0) + 1)
        error = calibrant.measures.bounded_variation_calibration_error(worst.law(), variation=variation)
        rows.append(("alternating", variation, worst.cutoff(), error))
    names = ("kind", "variation", "cutoff", "error")
    table = as_table(names, rows)
    return Report(
        name="bounded-variation",
        title="Weights of bounded variation lie between Cutoff and a multiple of it",
        item="Proposition 2.2",
        settings=settings.record(runs),
        statements=_statements(table),
        table=table,
        findings={},
        size=(WIDTH, 4.2),
        draw=_draw,
    )


def _alternating(count: int) -> Population:
    """Return forecasts that are too low and too high in turn, by the same amount: Cutoff sees one of them."""
    forecast = middles(count)
    return Population.evenly("alternating", forecast, forecast + 0.5 / count * (-1.0) ** np.arange(count))


def _statements(table: dict[str, Any]) -> tuple[Statement, ...]:
    ratio = table["error"] / table["cutoff"]
    variation = table["variation"]
    even = (table["kind"] == "alternating") & (variation % 2.0 == 0.0)
    count = int((table["kind"] == "random").sum() / len(VARIATIONS))
    return (
        Statement(
            item="Proposition 2.2",
            source=PAPER,
            claim="Cutoff is at most the error against weights of variation M, for M >= 2",
            measured=f"smallest ratio {ratio.min():.3f} on {count:,} forecasters",
            holds=bool((ratio >= 1.0 - ROUNDING).all()),
        ),
        Statement(
            item="Proposition 2.2",
            source=PAPER,
            claim="that error is at most (M + 2) Cutoff",
            measured=f"largest share of the bound {(ratio / (variation + 2.0)).max():.3f}",
            holds=bool((ratio <= variation + 2.0 + ROUNDING).all()),
        ),
        Statement(
            item="Bounded variation",
            source=PROJECT,
            claim="and at most half of that, (M/2 + 1) Cutoff",
            measured=f"largest share of the bound {(ratio / (variation / 2.0 + 1.0)).max():.3f}",
            holds=bool((ratio <= (variation / 2.0 + 1.0) * (1.0 + 1e-9)).all()),
        ),
        Statement(
            item="Bounded variation",
            source=PROJECT,
            claim="which is best possible: forecasts wrong in turn attain it at even M",
            measured=f"share of the bound at least {(ratio / (variation / 2.0 + 1.0))[even].min():.6f}",
            holds=bool(np.allclose(ratio[even], variation[even] / 2.0 + 1.0)),
        ),
    )


def _draw(report: Report, figure: Figure) -> None:
    headline(figure, "Weights that vary by M see at most M/2 + 1 times Cutoff: half the paper's bound")
    axes = figure.subplots()
    grid = np.array([2.0, 12.0])
    axes.fill_between(grid, [1.0, 1.0], grid / 2.0 + 1.0, color=COLOURS.band, linewidth=0.0, zorder=0.2)
    variation = report.column("variation", kind="random")
    ratio = report.column("error", kind="random") / report.column("cutoff", kind="random")
    spread = 0.15 * (np.arange(variation.size) // len(VARIATIONS) % 21 - 10) / 10.0  # so that points stand apart
    axes.plot(variation + spread, ratio, color=COLOURS.curve, marker=".", linestyle="", markersize=2)
    axes.plot(grid, grid + 2.0, color=COLOURS.ink)
    axes.plot(grid, grid / 2.0 + 1.0, color=COLOURS.other, linestyle="--")
    axes.plot(grid, [1.0, 1.0], color=COLOURS.muted, linestyle=":")
    worst = report.column("error", kind="alternating") / report.column("cutoff", kind="alternating")
    axes.plot(VARIATIONS, worst, color=COLOURS.highlight, marker="X", linestyle="", markersize=7)
    for words, height, colour in (
        ("M + 2,\nthe paper's bound", 14.0, COLOURS.ink),
        ("M/2 + 1,\nour bound", 7.0, COLOURS.other),
        ("1: Cutoff itself", 1.0, COLOURS.muted),
    ):
        write_beside(axes, words, (12.0, height), colour, offset=(12.0, 0.0), align=("left", "center"))
    write_beside(
        axes,
        "worst forecasters reach it at even M",
        (8.0, 5.0),
        COLOURS.highlight,
        offset=(8.0, -6.0),
        align=("left", "top"),
    )
    write_beside(axes, "random forecasters", (10.0, 2.0), COLOURS.curve, align=("center", "bottom"))
    axes.set_xlim(1.5, 15.0)
    axes.set_ylim(0.0, 15.0)
    axes.set_xticks(VARIATIONS)
    tidy(axes, xlabel="total variation M that the weights may have", ylabel="error seen, as a multiple of Cutoff")

"""Section 2: the bias inside any band of forecasts is at most Cutoff over the share of the band."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import calibrant
from calibrant.experiments.figures import COLOURS, WIDTH, headline, tidy, write_beside
from calibrant.experiments.populations import Population, middles
from calibrant.experiments.reports import PAPER, PROJECT, Report, Settings, Statement, at_most_share

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 200
GRID = 120
ROWS = 3_000
LEVEL = 0.95
CUTOFFS = (0.1, 0.3, 0.6)
ROUNDING = 1e-12


def _population() -> Population:
    grid = middles(GRID)
    return Population.evenly("waves", grid, np.clip(grid + 0.15 * np.sin(6.0 * np.pi * grid), 0.0, 1.0))


def run(settings: Settings) -> Report:
    """Look at every band of a population, then at four risk bands of samples from it."""
    runs = settings.runs or RUNS
    generator = settings.generator()
    population = _population()
    share, bias = _every_band(population)
    cutoff = population.cutoff()
    truth = _bias_of_bands(population)
    wrong = np.array([_misses(population, generator, truth) for _ in settings.track(range(runs))])
    table = {"share": share, "bias": bias, "limit": np.minimum(cutoff / share, 1.0)}
    attained = float((bias * share).max() / cutoff)
    simultaneous, inherited = (float(wrong[:, column].mean()) for column in (0, 1))
    return Report(
        name="bands",
        title="Cutoff bounds the bias inside every risk band",
        item="Section 2",
        settings=settings.record(runs, rows=ROWS, cutoffs=list(CUTOFFS)),
        statements=(
            Statement(
                item="Section 2",
                source=PAPER,
                claim="the bias inside any band is at most Cutoff / P(band)",
                measured=f"largest share of the bound {attained:.6f} in {share.size:,} bands",
                holds=bool((bias * share <= cutoff + ROUNDING).all()),
            ),
            Statement(
                item="Section 2",
                source=PROJECT,
                claim="the worst interval attains it",
                measured=f"{attained:.6f} of the bound",
                holds=attained > 1.0 - 1e-9,
            ),
            Statement(
                item="Verdicts, groups, bands",
                source=PROJECT,
                claim=f"limits of the bias in {len(CUTOFFS) + 1} bands chosen in advance hold together in 95%",
                measured=f"some limit is wrong in {100 * simultaneous:.1f}% of {runs} samples of {ROWS:,} rows",
                holds=at_most_share(simultaneous, 1.0 - LEVEL, runs),
            ),
            Statement(
                item="Verdicts, groups, bands",
                source=PROJECT,
                claim="limits inherited from a certificate of Cutoff hold for all bands in 95% of samples",
                measured=f"some limit is wrong in {100 * inherited:.1f}% of them",
                holds=at_most_share(inherited, 1.0 - LEVEL, runs),
            ),
        ),
        table=table,
        findings={"cutoff": cutoff, "bias_of_bands": truth},
        size=(WIDTH, 3.8),
        draw=_draw,
    )


def _every_band(population: Population) -> tuple[Any, Any]:
    """Return share and size of the bias of all intervals of forecasts."""
    mass = np.concatenate([[0.0], np.cumsum(population.share)])
    residual = np.concatenate([[0.0], np.cumsum(population.share * (population.chance - population.forecast))])
    first, last = np.triu_indices(mass.size, k=1)
    share = mass[last] - mass[first]
    return share, np.abs(residual[last] - residual[first]) / share


def _bias_of_bands(population: Population) -> Any:
    """Return the bias of the population inside each of the bands that the cutoffs make."""
    band = np.searchsorted(CUTOFFS, population.forecast, side="right")
    residual = np.bincount(band, weights=population.share * (population.chance - population.forecast))
    return residual / np.bincount(band, weights=population.share)


def _misses(population: Population, generator: np.random.Generator, truth: Any) -> tuple[bool, bool]:
    """Return whether some limit of a sample misses the truth: those made for the bands, those from Cutoff."""
    bands = calibrant.risk_bands(population.sample(generator, ROWS), cutoffs=list(CUTOFFS), confidence_level=LEVEL)
    outside = (truth < bands.lower - ROUNDING) | (truth > bands.upper + ROUNDING)
    return bool(outside.any()), bool((np.abs(truth) > bands.inherited + ROUNDING).any())


def _draw(report: Report, figure: Figure) -> None:
    headline(figure, "No band is off by more than Cutoff divided by its share of all rows")
    axes = figure.subplots()
    share, bias = report.column("share"), report.column("bias")
    axes.plot(share, bias, color=COLOURS.curve, marker=".", linestyle="", markersize=1.5, rasterized=True)
    grid = np.geomspace(share.min(), 1.0, 200)
    axes.plot(grid, np.minimum(report.findings["cutoff"] / grid, 1.0), color=COLOURS.ink)
    worst = int(np.argmax(share * bias))
    axes.plot(share[worst], bias[worst], color=COLOURS.highlight, marker="X", linestyle="", markersize=8)
    axes.set_ylim(0.0, 0.3)
    write_beside(axes, "the limit: Cutoff / share of rows", (0.08, 0.2), COLOURS.ink, offset=(8.0, 0.0))
    write_beside(axes, "each dot: one band of forecasts", (0.22, 0.09), COLOURS.curve, offset=(8.0, 0.0))
    write_beside(
        axes,
        "the worst interval reaches it",
        (share[worst], bias[worst]),
        COLOURS.highlight,
        offset=(0.0, 10.0),
        align=("center", "bottom"),
    )
    tidy(axes, xlabel="share of all rows that lie in the band", ylabel="mean bias inside the band")

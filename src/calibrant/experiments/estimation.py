"""Proposition 4.1: how far the Cutoff error of n rows is from that of the population, and what may be promised."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

import calibrant
from calibrant.experiments.figures import COLOURS, WIDTH, against_rows, headline, tidy, write_beside
from calibrant.experiments.populations import Population, middles
from calibrant.experiments.reports import (
    PAPER,
    PROJECT,
    Report,
    Settings,
    Statement,
    as_table,
    at_most_share,
    rarely_exceeded,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 400
SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
COVERED_SIZES = (100, 1_000, 10_000)
DELTA = 0.05
GRID = 500
Method = Literal["paper", "hoeffding", "adaptive", "normal"]
METHODS: tuple[Method, ...] = get_args(Method)
PROMISED = {"paper": PAPER, "hoeffding": PROJECT, "adaptive": PROJECT}  # at every number of rows


def _populations() -> tuple[Population, ...]:
    grid = middles(GRID)
    rare = 0.1 * grid**2
    return (
        Population.evenly("calibrated", grid, grid),
        Population.evenly("calibrated, rare events", rare, rare),
        Population.evenly("too low by 0.1", 0.9 * grid, 0.9 * grid + 0.1),
        Population.evenly("overconfident", grid, 0.25 + 0.5 * grid),
        Population.evenly("waves", grid, np.clip(grid + 0.2 * np.sin(8.0 * np.pi * grid), 0.0, 1.0)),
    )


def run(settings: Settings) -> Report:
    """Draw samples of growing size from each population, and compare their errors with its own."""
    runs = settings.runs or RUNS
    generator = settings.generator()
    rows: list[tuple[Any, ...]] = []
    populations = _populations()
    for population in settings.track(populations):
        truth = population.cutoff()
        for size in SIZES:
            samples = [population.sample(generator, size) for _ in range(runs)]
            estimates = np.array([calibrant.cutoff_calibration_error(sample) for sample in samples])
            errors = np.abs(estimates - truth)
            covered = [_coverage(samples, truth, method) if size in COVERED_SIZES else math.nan for method in METHODS]
            rows.append(
                (
                    population.name,
                    size,
                    truth,
                    errors.mean(),
                    np.quantile(errors, 1.0 - DELTA),
                    (errors > paper_margin(size)).mean(),
                    (truth - estimates > upper_margin(size)).mean(),
                    (estimates - truth > lower_margin(size)).mean(),
                    *covered,
                )
            )
    names = (
        "forecaster",
        "rows",
        "cutoff",
        "mean_error",
        "error_95",
        "above_paper",
        "above_upper",
        "above_lower",
        *(f"coverage_{method}" for method in METHODS),
    )
    table = as_table(names, rows)
    slopes = {population.name: _slope(table, population.name) for population in populations}
    return Report(
        name="estimation",
        title="How well rows tell the Cutoff error of a forecaster",
        item="Proposition 4.1",
        settings=settings.record(runs, delta=DELTA),
        statements=_statements(table, slopes, runs),
        table=table,
        findings={"slopes": slopes},
        size=(WIDTH, 3.9),
        draw=_draw,
    )


def paper_margin(rows: Any) -> Any:
    """Return the paper's margin, for the error to both sides."""
    return (20.0 + math.sqrt(2.0 * math.log(1.0 / DELTA))) / np.sqrt(rows)


def upper_margin(rows: Any) -> Any:
    """Return this project's margin for how much less than the truth the rows may show."""
    return np.sqrt(2.0 * math.log(1.0 / DELTA) / np.asarray(rows))


def lower_margin(rows: Any) -> Any:
    """Return this project's margin for how much more than the truth the rows may show."""
    return (4.0 + math.sqrt(2.0 * math.log(2.0 / DELTA))) / np.sqrt(rows)


def _coverage(samples: list[calibrant.Tally], truth: float, method: Method) -> float:
    """Return how often an upper limit is at least the error of the population."""
    limits = [
        calibrant.confidence_interval(sample, confidence_level=1.0 - DELTA, alternative="less", method=method).upper
        for sample in samples
    ]
    return float(np.mean(np.array(limits) >= truth - 1e-12))


def _slope(table: dict[str, Any], name: str) -> float:
    kept = table["forecaster"] == name
    return float(np.polyfit(np.log(table["rows"][kept]), np.log(table["mean_error"][kept]), 1)[0])


def _statements(table: dict[str, Any], slopes: dict[str, float], runs: int) -> tuple[Statement, ...]:
    steepest, flattest = min(slopes.values()), max(slopes.values())

    def margin(item: str, source: str, column: str, claim: str) -> Statement:
        return rarely_exceeded(item, source, claim, table[column], delta=DELTA, runs=runs, of="samples")

    def coverage(method: str, source: str) -> Statement:
        least = float(np.nanmin(table[f"coverage_{method}"]))
        return Statement(
            item="Section 4",
            source=source,
            claim=f"the upper limit '{method}' is right in 95% of samples, for every forecaster and number of rows",
            measured=f"in {100 * least:.1f}% of {runs} where it does worst",
            holds=at_most_share(1.0 - least, DELTA, runs),
        )

    return (
        margin("Proposition 4.1", PAPER, "above_paper", "the error stays within (20 + sqrt(2 ln 20))/sqrt(n) in 95%"),
        Statement(
            item="Proposition 4.1",
            source=PAPER,
            claim="the error falls like 1/sqrt(n): a line of slope -1/2 in logarithms",
            measured=f"slopes from {steepest:.3f} to {flattest:.3f} for {len(slopes)} forecasters",
            # Few runs leave the slopes uncertain.
            holds=max(-0.5 - steepest, flattest + 0.5) < 0.1 + 0.5 / math.sqrt(runs),
        ),
        margin(
            "Upper limits", PROJECT, "above_upper", "rows show at most sqrt(2 ln 20 / n) less than the truth in 95%"
        ),
        margin("Lower limits", PROJECT, "above_lower", "and at most (4 + sqrt(2 ln 40))/sqrt(n) more"),
        *(coverage(method, source) for method, source in PROMISED.items()),
    )


def _draw(report: Report, figure: Figure) -> None:
    headline(figure, "100 times the rows measure the error 10 times better, well within what is proved")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_errors(report, left)
    _draw_coverage(report, right)


def _draw_errors(report: Report, axes: Any) -> None:
    """Draw how far the error of rows is from the truth, below what is proved about that."""
    sizes = np.array(SIZES)
    measured = np.array([report.column("error_95", forecaster=population.name) for population in _populations()])
    axes.fill_between(sizes, measured.min(axis=0), measured.max(axis=0), color=COLOURS.band, linewidth=0.0)
    for error in measured:
        axes.plot(sizes, error, color=COLOURS.curve, marker="o", markersize=2.5, linewidth=1)
    for margin, colour, style, words in (
        (paper_margin, COLOURS.ink, "-", "proved in\nthe paper"),
        (lower_margin, COLOURS.bound, "--", "ours, if rows\noverstate it"),
        (upper_margin, COLOURS.other, "-.", "ours, if rows\nunderstate it"),
    ):
        axes.plot(sizes, margin(sizes), color=colour, linestyle=style)
        write_beside(axes, words, (sizes[-1], margin(sizes[-1])), colour, offset=(6.0, 0.0), align=("left", "center"))
    end = (sizes[-1], np.sqrt(measured[:, -1].min() * measured[:, -1].max()))
    write_beside(axes, "measured, five\nforecasters", end, COLOURS.curve, offset=(6.0, 0.0), align=("left", "center"))
    against_rows(axes, ylabel="distance from the true error", title="How far off 95% of samples stay")
    axes.set_xlim(sizes[0] / 1.5, 50.0 * sizes[-1])
    axes.set_xticks([10.0**power for power in range(2, 6)])
    axes.minorticks_off()


def _draw_coverage(report: Report, axes: Any) -> None:
    """Draw for each method how often its upper limits hold, forecaster by forecaster."""
    promised = 100.0 * (1.0 - DELTA)
    axes.axvline(promised, color=COLOURS.ink, linewidth=1, linestyle=":")
    words = f"promised: {promised:g}%"
    write_beside(axes, words, (promised, -0.6), COLOURS.ink, offset=(4.0, 0.0), align=("left", "top"))
    lowest = promised
    for place, method in enumerate(METHODS):
        covered = 100.0 * report.column(f"coverage_{method}", rows=1_000)
        axes.plot(covered, np.full(covered.size, place), color=COLOURS.curve, marker="o", linestyle="", markersize=5)
        lowest = min(lowest, covered.min())
        write_beside(
            axes,
            f"at least {covered.min():.3g}%",
            (covered.min(), place),
            COLOURS.curve,
            offset=(-2.0, 7.0),
            align=("right" if covered.min() > 97.5 else "left", "bottom"),
        )
    axes.set_yticks(range(len(METHODS)), METHODS)
    axes.set_ylim(len(METHODS) - 0.5, -0.7)
    axes.set_xlim(lowest - 0.5, 100.4)
    tidy(axes, xlabel="% of limits, 1,000 rows", ylabel="method", title="How often upper limits hold")

"""Proposition 5.1: the Cutoff error that isotonic regression leaves, against the number of rows it is fitted to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import calibrant
from calibrant.experiments.figures import COLOURS, SERIES, WIDTH, against_rows, headline, shared_legend, write_beside
from calibrant.experiments.populations import Population, middles
from calibrant.experiments.reports import PAPER, PROJECT, Report, Settings, Statement, as_table, rarely_exceeded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 200
DELTA = 0.05
GRID = 500
SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)


def populations() -> tuple[Population, ...]:
    """Return forecasters of many kinds, monotone and not."""
    grid = middles(GRID)
    return (
        Population.evenly("calibrated", grid, grid),
        Population.evenly("overconfident", grid, 0.25 + 0.5 * grid),
        Population.evenly("one step", grid, np.where(grid < 0.5, 0.2, 0.8)),
        Population.evenly("upside down", grid, 1.0 - grid),
        Population.evenly("a parabola", grid, (1.0 - 2.0 * grid) ** 2),
    )


def run(settings: Settings) -> Report:
    """Recalibrate samples of growing size, and compute the error that is left in the population."""
    runs = settings.runs or RUNS
    generator = settings.generator()
    rows: list[tuple[Any, ...]] = []
    for population in settings.track(populations()):
        for size in SIZES:
            samples = [population.counts(generator, size) for _ in range(runs)]
            fits = [calibrant.IsotonicRecalibrator().fit(population.tally(*counts)) for counts in samples]
            errors = np.array([population.cutoff(fit.predict(population.forecast)) for fit in fits])
            promised = fits[0].guarantee(1.0 - DELTA)
            own = max(
                calibrant.cutoff_calibration_error(population.tally(*counts, forecast=fit.predict(population.forecast)))
                for fit, counts in zip(fits, samples, strict=True)
            )
            limits = promised.in_advance, promised.paper_in_advance
            above = [(errors > limit).mean() for limit in limits]
            rows.append((population.name, size, *np.quantile(errors, [0.5, 0.95]), *limits, *above, own))
    names = (
        "forecaster",
        "rows",
        "cutoff_median",
        "cutoff_95",
        "bound",
        "paper_bound",
        "above",
        "above_paper",
        "own_error",
    )
    table = as_table(names, rows)
    constant = float((table["cutoff_95"] * np.sqrt(table["rows"])).max())
    return Report(
        name="isotonic",
        title="Isotonic regression calibrates, whatever the population",
        item="Proposition 5.1",
        settings=settings.record(runs, delta=DELTA),
        statements=(
            _within("Proposition 5.1", PAPER, table["above_paper"], "(30 + 2 sqrt(2 ln 40))/sqrt(n)", runs),
            _within("All monotone maps at once", PROJECT, table["above"], "3 sqrt(ln(40 e)/(2 n))", runs),
            Statement(
                item="Proposition 5.1",
                source=PAPER,
                claim="on the rows it was fitted to, isotonic regression has no Cutoff error",
                measured=f"at most {table['own_error'].max():.1g}",
                holds=bool(table["own_error"].max() < 1e-9),
            ),
            Statement(
                item="Proposition 5.1",
                source=PROJECT,
                claim="the error really is of order 1/sqrt(n), with room below both bounds",
                measured=f"95% of errors are below {constant:.2f}/sqrt(n); the bounds are 4.59 and 35.4 over sqrt(n)",
                holds=constant < 4.59,
            ),
        ),
        table=table,
        findings={"constant_95": constant},
        size=(WIDTH, 4.4),
        draw=_draw,
    )


def _within(item: str, source: str, above: Any, bound: str, runs: int) -> Statement:
    claim = f"the Cutoff error left in the population is at most {bound} in 95% of cases"
    return rarely_exceeded(item, source, claim, above, delta=DELTA, runs=runs)


def _draw(report: Report, figure: Figure) -> None:
    headline(figure, "After isotonic regression the error falls like 1/√rows, whatever the truth")
    axes = figure.subplots()
    sizes = np.array(SIZES)
    for (colour, marker), population in zip(SERIES, populations(), strict=False):
        error = report.column("cutoff_95", forecaster=population.name)
        axes.plot(sizes, error, color=colour, marker=marker, markersize=4, linewidth=1, label=population.name)
    first = populations()[0].name
    for column, colour, style, words in (
        ("paper_bound", COLOURS.ink, "-", "proved in the paper"),
        ("bound", COLOURS.muted, "--", "our bound"),
    ):
        bound = report.column(column, forecaster=first)
        axes.plot(sizes, bound, color=colour, linestyle=style)
        write_beside(axes, words, (sizes[4], bound[4]), colour, offset=(4.0, 4.0))
    against_rows(axes, ylabel="Cutoff error that is left (95% of fits)")
    shared_legend(figure, np.array([axes]), columns=5)

"""Propositions 2.1 and A.1: how dCE, Cutoff and ECE bound each other, on random forecasters and where it is tight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import calibrant
from calibrant.experiments.figures import COLOURS, WIDTH, headline, tidy, write_beside
from calibrant.experiments.populations import Population, nearest_calibrated, random_populations
from calibrant.experiments.reports import PAPER, PROJECT, Report, Settings, Statement, as_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 2_000
ROUNDING = 1e-12

COUNTEREXAMPLE = Population(
    "counterexample",
    np.array([0.0, 0.1]),
    np.array([1.0, 0.05 / 0.95]),
    np.array([0.05, 0.95]),
)
"""Forecasts 0 and 0.1, events sure at 0: the constant 0.1 is calibrated and 0.005 away, and the ECE is 0.095."""


def run(settings: Settings) -> Report:
    """Compute all three errors of random forecasters, dCE by trying every calibrated predictor."""
    runs = settings.runs or RUNS
    drawn = random_populations(settings.generator(), runs)
    rows = [_errors(population) for population in settings.track([COUNTEREXAMPLE, *drawn])]
    names = ("gap", "distance", "smooth", "cutoff", "ece")
    table = as_table(names, rows)
    return Report(
        name="relations",
        title="How dCE, Cutoff and ECE bound each other",
        item="Propositions 2.1 and A.1",
        settings=settings.record(runs),
        statements=_statements(table),
        table=table,
        findings={"below_paper": float((_ratio(table) < _paper_factor(table["gap"]) - ROUNDING).mean())},
        size=(WIDTH, 3.9),
        draw=_draw,
    )


def _errors(population: Population) -> tuple[float, ...]:
    gap = float(np.diff(population.forecast).min())
    smooth = calibrant.smooth_calibration_error(population.law())
    return gap, nearest_calibrated(population)[1], smooth, population.cutoff(), population.ece()


def _ratio(table: dict[str, Any]) -> Any:
    return table["distance"] / table["ece"]


def _paper_factor(gap: Any) -> Any:
    return gap / (gap + 1.0)


def _our_factor(gap: Any) -> Any:
    return gap / (gap + 2.0)


def _statements(table: dict[str, Any]) -> tuple[Statement, ...]:
    count = len(table["gap"])

    def ordered(item: str, source: str, claim: str, small: Any, large: Any) -> Statement:
        return Statement(
            item=item,
            source=source,
            claim=claim,
            measured=f"largest ratio of the two sides {(small / large).max():.3f} on {count:,} forecasters",
            holds=bool((small <= large + ROUNDING).all()),
        )

    distance, cutoff, ece = table["distance"], table["cutoff"], table["ece"]
    paper = float(_paper_factor(table["gap"][0]) * ece[0])
    return (
        ordered("Proposition 2.1", PAPER, "dCE^2 / 9 <= Cutoff", distance**2 / 9.0, cutoff),
        ordered("Proposition 2.1", PAPER, "Cutoff <= ECE", cutoff, ece),
        ordered(
            "Proposition 2.1, proof", PAPER, "dCE <= 2 sqrt(Cutoff) + Cutoff", distance, 2.0 * np.sqrt(cutoff) + cutoff
        ),
        ordered("Section 2", PAPER, "smooth CE / 2 <= dCE", table["smooth"] / 2.0, distance),
        ordered("Bounded variation", PROJECT, "smooth CE <= 1.5 Cutoff", table["smooth"], 1.5 * cutoff),
        ordered(
            "Proposition A.1, corrected",
            PROJECT,
            "b/(b + 2) ECE <= dCE for forecasts at least b apart",
            _our_factor(table["gap"]) * ece,
            distance,
        ),
        Statement(
            item="Proposition A.1, as printed",
            source=PROJECT,
            claim="b/(b + 1) ECE <= dCE fails for forecasts 0 and 0.1 with events sure at 0",
            measured=f"dCE {distance[0]:.4f} is below b/(b + 1) ECE = {paper:.4f}",
            holds=bool(distance[0] < paper - ROUNDING and abs(distance[0] - 0.005) < 1e-12),
        ),
    )


def _draw(report: Report, figure: Figure) -> None:
    headline(figure, "dCE, Cutoff and ECE bound each other; one printed bound had to be corrected")
    left, right = figure.subplots(1, 2)
    cutoff, distance = report.column("cutoff"), report.column("distance")
    left.plot(cutoff, distance, color=COLOURS.curve, marker=".", linestyle="", markersize=3)
    grid = np.geomspace(max(cutoff.min(), 1e-5), 1.0, 100)
    left.plot(grid, 3.0 * np.sqrt(grid), color=COLOURS.ink)
    left.plot(grid, 2.0 * np.sqrt(grid) + grid, color=COLOURS.muted, linestyle="--")
    left.set_xscale("log")
    left.set_yscale("log")
    middle = 0.01
    write_beside(
        left,
        "dCE = 3 √Cutoff",
        (middle, 3.0 * np.sqrt(middle)),
        COLOURS.ink,
        offset=(-4.0, 4.0),
        align=("right", "bottom"),
    )
    write_beside(left, "2 √Cutoff\n+ Cutoff", (1.1e-4, 0.017), COLOURS.muted, align=("left", "top"))
    write_beside(
        left, "random forecasters", (0.98, 0.04), COLOURS.curve, align=("right", "bottom"), of_axes="axes fraction"
    )
    tidy(left, xlabel="Cutoff", ylabel="dCE", title="Proposition 2.1: dCE stays below")
    gap = report.column("gap")
    ratio = distance / report.column("ece")
    right.plot(gap[1:], ratio[1:], color=COLOURS.curve, marker=".", linestyle="", markersize=3)
    right.plot(gap[:1], ratio[:1], color=COLOURS.highlight, marker="X", linestyle="", markersize=8)
    grid = np.linspace(0.005, 1.0, 200)
    right.plot(grid, _paper_factor(grid), color=COLOURS.ink)
    right.plot(grid, _our_factor(grid), color=COLOURS.other, linestyle="--")
    right.set_xscale("log")
    right.set_yscale("log")
    write_beside(
        right, "b/(b + 1),\nas printed", (0.03, 0.03), COLOURS.ink, offset=(-4.0, 4.0), align=("right", "bottom")
    )
    write_beside(right, "b/(b + 2), corrected", (0.02, 0.01), COLOURS.other, offset=(6.0, -10.0), align=("left", "top"))
    write_beside(
        right, "counterexample", (gap[0], ratio[0]), COLOURS.highlight, offset=(9.0, -6.0), align=("left", "top")
    )
    tidy(
        right,
        xlabel="smallest gap b between forecasts",
        ylabel="dCE / ECE",
        title="Proposition A.1: dCE / ECE stays above",
    )

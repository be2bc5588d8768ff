"""The saving itself: certified directly its limit falls faster than Cutoff's, and both errors bound each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import calibrant
from calibrant.experiments.figures import (
    COLOURS,
    SERIES,
    WIDTH,
    against_rows,
    headline,
    shared_legend,
    tidy,
    write_beside,
)
from calibrant.experiments.populations import Population, middles, random_populations
from calibrant.experiments.reports import PAPER, PROJECT, Report, Settings, Statement, as_table, rarely_exceeded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 20
DELTA = 0.05
GRID = 1_000
SHIFT = 0.1
SIZES = (300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
FIRST = 1_000  # rows from which slopes are fitted: below, limits are near what no error exceeds
SHIFTS = np.geomspace(0.005, 0.4, 12)
RANDOM_PER_RUN = 50
MOST = 60  # forecasts of a random forecaster: with few of them Cutoff is hardly above the saving
ROUNDING = 1e-12
GOALS = (0.05, 0.01, 0.005)
ROUTES = {
    "direct": "the saving, directly",
    "cutoff": "through Cutoff",
    "paper": "through Cutoff, with the paper's margin",
}
UNIFORM, RARE, OFF, CONSTANT = "calibrated, uniform", "calibrated, rare events", "shifted by 0.1", "constant"
LABELS = {OFF: "shifted (left by 0.1)"}  # the right panel has shifts of every size


def populations() -> tuple[Population, ...]:
    """Return calibrated forecasters of three kinds, and one that is off by the same everywhere."""
    from scipy.stats import beta

    grid = middles(GRID)
    rare = beta.ppf(grid, 0.5, 20.0)
    return (
        Population.evenly(UNIFORM, grid, grid),
        Population.evenly(RARE, rare, rare),
        _shifted(OFF, SHIFT),
        Population.evenly(CONSTANT, [0.5], [0.5]),
    )


def _shifted(name: str, shift: float) -> Population:
    """Return uniform forecasts that are too low by the same everywhere."""
    forecast = middles(GRID) * (1.0 - shift)
    return Population.evenly(name, forecast, forecast + shift)


def run(settings: Settings) -> Report:
    """Limit the saving by both routes on samples of growing size, and compare it with Cutoff on random forecasters."""
    runs = settings.runs or RUNS
    generator = settings.generator()
    rows: list[tuple[Any, ...]] = []
    for population in populations():
        errors = _errors(population)
        for size in settings.track(SIZES):
            limits = np.array([_limits(population.sample(generator, size)) for _ in range(runs)])
            exceeded = (limits[:, 0] < errors[0] - ROUNDING).mean()
            above = limits.mean(axis=0) - np.array([errors[0], errors[1], errors[1]])
            enough = np.quantile(limits, 0.9, axis=0)
            rows.append(("limits", population.name, size, *errors, *limits.mean(axis=0), *above, *enough, exceeded))
    drawn = [("random", each) for each in random_populations(generator, RANDOM_PER_RUN * runs, most=MOST)]
    drawn += [("shifted", _shifted("shifted", shift)) for shift in SHIFTS.tolist()]
    drawn += [("constant", Population.evenly("constant", [0.5 - off], [0.5])) for off in SHIFTS.tolist()]
    nothing = (np.nan,) * (3 * len(ROUTES) + 1)
    rows += [("errors", kind, 0, *_errors(population), *nothing) for kind, population in settings.track(drawn)]
    columns = [f"{route}_{what}" for what in ("limit", "above", "90") for route in ROUTES]
    table = as_table(("part", "forecaster", "rows", "risk_gap", "cutoff", *columns, "exceeded"), rows)
    slopes = {name: {route: _slope(table, name, route) for route in ROUTES} for name in (UNIFORM, RARE, OFF, CONSTANT)}
    needed = {name: {route: _rows_needed(table, name, route) for route in ROUTES} for name in (UNIFORM, RARE, CONSTANT)}
    return Report(
        name="risk-gap",
        title="What re-drawing the line could save, certified directly",
        item="Section 3, the risk gap",
        settings=settings.record(runs, delta=DELTA),
        statements=(*_rates(table, slopes, needed, runs), *_equivalence(table)),
        table=table,
        findings={"slopes": slopes, "rows_to_certify": needed},
        size=(WIDTH, 4.2),
        draw=_draw,
    )


def _errors(population: Population) -> tuple[float, float]:
    return calibrant.decisions.risk_gap_curve(population.law()).largest_gap, population.cutoff()


def _limits(sample: calibrant.Tally) -> list[float]:
    """Return upper limits of the saving by each route: Cutoff is never below it."""
    return [
        calibrant.confidence_interval(
            sample, confidence_level=1.0 - DELTA, alternative="less", measure=measure, method=method
        ).upper
        for measure, method in _ASKED
    ]


_ASKED: tuple[tuple[Literal["risk_gap", "cutoff"], Literal["adaptive", "paper"]], ...] = (
    ("risk_gap", "adaptive"),
    ("cutoff", "adaptive"),
    ("cutoff", "paper"),
)


def _of(table: dict[str, Any], name: str, column: str) -> Any:
    return table[column][(table["part"] == "limits") & (table["forecaster"] == name)]


def _slope(table: dict[str, Any], name: str, route: str) -> float:
    """Return the slope of ln(limit minus truth) against ln(rows): -1/2 means four times the rows for half of it."""
    rows, above = _of(table, name, "rows"), _of(table, name, f"{route}_above")
    late = rows >= FIRST
    return float(np.polyfit(np.log(rows[late]), np.log(above[late]), 1)[0])


def _rows_needed(table: dict[str, Any], name: str, route: str) -> dict[str, int | None]:
    """Return about how many rows it takes to certify each goal in nine of ten samples; None where these are too few."""
    rows, limit = np.log(_of(table, name, "rows")), np.log(_of(table, name, f"{route}_90"))
    found: dict[str, int | None] = {}
    for goal in GOALS:
        within = limit[-1] <= np.log(goal) <= limit[0]
        found[str(goal)] = int(round(float(np.exp(np.interp(-np.log(goal), -limit, rows))), -1)) if within else None
    return found


def _rates(table: dict[str, Any], slopes: dict[str, Any], needed: dict[str, Any], runs: int) -> tuple[Statement, ...]:
    varied = [slopes[name]["direct"] for name in (UNIFORM, RARE)]
    through = [slopes[name][route] for name in (UNIFORM, RARE) for route in ("cutoff", "paper")]
    constant = [slopes[CONSTANT][route] for route in ("direct", "cutoff")]
    goal = str(GOALS[1])
    direct, other = (needed[UNIFORM][route][goal] for route in ("direct", "cutoff"))
    return (
        rarely_exceeded(
            "Upper limit by betting",
            PROJECT,
            "where something could be saved (shifted by 0.1), that is above its limit in at most 5% of samples",
            _of(table, OFF, "exceeded"),
            delta=DELTA,
            runs=runs,
            of="samples",
        ),
        Statement(
            item="The rate n^(-2/3)",
            source=PROJECT,
            claim="for calibrated forecasts that differ the limit falls nearly like n^(-2/3)",
            measured=f"slopes {varied[0]:.2f} (uniform) and {varied[1]:.2f} (rare events)",
            holds=all(-0.75 < slope < -0.6 for slope in varied),
        ),
        Statement(
            item="Proposition 4.1",
            source=PAPER,
            claim="through Cutoff it falls like n^(-1/2)",
            measured=f"slopes from {min(through):.2f} to {max(through):.2f}, with the paper's margin and with ours",
            holds=all(abs(slope + 0.5) < 0.05 for slope in through),
        ),
        Statement(
            item="The rate n^(-2/3)",
            source=PROJECT,
            claim="where all forecasts are the same nothing is gained, nor lost",
            measured=f"slopes {constant[0]:.2f} directly and {constant[1]:.2f} through Cutoff",
            holds=all(abs(slope + 0.5) < 0.08 for slope in constant),
        ),
        Statement(
            item="The rate n^(-2/3)",
            source=PROJECT,
            claim=f"a saving of at most {goal} takes a fraction of the rows (uniform forecasts, nine samples of ten)",
            measured=f"about {direct:,} rows directly, {other:,} through Cutoff",
            holds=direct < other / 3,
        ),
    )


def _equivalence(table: dict[str, Any]) -> tuple[Statement, ...]:
    known = table["part"] == "errors"
    gap, cutoff, kind = (table[name][known] for name in ("risk_gap", "cutoff", "forecaster"))
    upper = np.sqrt(2.0 * gap)
    shifted, constant = kind == "shifted", kind == "constant"
    ratio = (cutoff / upper)[shifted]
    return (
        Statement(
            item="Small exactly when Cutoff is",
            source=PROJECT,
            claim="no re-drawing of the line saves more than Cutoff",
            measured=f"largest ratio of the two sides {(gap / cutoff).max():.3f} on {gap.size:,} forecasters",
            holds=bool((gap <= cutoff + ROUNDING).all()),
        ),
        Statement(
            item="Small exactly when Cutoff is",
            source=PROJECT,
            claim="Cutoff is at most sqrt(2 G), where G is that saving at the worst threshold",
            measured=f"largest ratio of the two sides {(cutoff / upper).max():.3f} on {gap.size:,} forecasters",
            holds=bool((cutoff <= upper + ROUNDING).all()),
        ),
        Statement(
            item="Small exactly when Cutoff is",
            source=PROJECT,
            claim="both bounds are needed: constants attain the first, shifted forecasters come near the second",
            measured=f"shifted: ratios from {ratio.min():.2f} to {ratio.max():.2f}; constants: G is Cutoff to within "
            f"{np.abs(gap - cutoff)[constant].max():.0e}",
            holds=bool(ratio.min() > 0.7 and ratio.max() > 0.95 and np.abs(gap - cutoff)[constant].max() < ROUNDING),
        ),
    )


def _draw(report: Report, figure: Figure) -> None:
    headline(figure, "Certified directly, what could be saved is known from far fewer rows")
    left, right = figure.subplots(1, 2)
    _draw_limits(report, left)
    _draw_equivalence(report, right)
    shared_legend(figure, np.array([left, right]), columns=3)


def _draw_limits(report: Report, axes: Any) -> None:
    sizes = np.array(SIZES)
    for (colour, marker), name in zip(SERIES, (UNIFORM, RARE, OFF, CONSTANT), strict=False):
        for route, style, fill in (("direct", "-", colour), ("cutoff", ":", "none")):
            limit = report.column(f"{route}_limit", part="limits", forecaster=name)
            line = {"color": colour, "linestyle": style, "linewidth": 1.2, "marker": marker, "markerfacecolor": fill}
            axes.plot(sizes, limit, markersize=4, label=LABELS.get(name, name) if route == "direct" else None, **line)
    for style, words in (("-", ROUTES["direct"]), (":", ROUTES["cutoff"])):
        axes.plot([], [], color=COLOURS.ink, linestyle=style, linewidth=1.2, label=words)
    against_rows(axes, ylabel="upper limit of the saving per case", title="Calibrated: steeper than through Cutoff")


def _draw_equivalence(report: Report, axes: Any) -> None:
    kinds = (("random", (COLOURS.muted, ".")), ("shifted", SERIES[2]), ("constant", SERIES[3]))
    for kind, (colour, marker) in kinds:
        gap, cutoff = (report.column(name, part="errors", forecaster=kind) for name in ("risk_gap", "cutoff"))
        size = 3 if kind == "random" else 5
        label = "random forecasters" if kind == "random" else None  # the others have the marks of the left panel
        axes.plot(gap, cutoff, color=colour, marker=marker, linestyle="", markersize=size, label=label)
    gap = np.geomspace(1e-5, 1.0, 200)
    for bound in (gap, np.sqrt(2.0 * gap)):
        axes.plot(gap[bound <= 1.0], bound[bound <= 1.0], color=COLOURS.ink, linewidth=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1e-5, 1.3)
    axes.set_ylim(1e-4, 1.5)
    write_beside(axes, "Cutoff = √(2 G)", (1.4e-5, 0.06), COLOURS.ink, align=("left", "bottom"))
    write_beside(axes, "Cutoff = G", (1e-3, 1e-3), COLOURS.ink, offset=(4.0, -4.0), align=("left", "top"))
    tidy(axes, xlabel="most that could be saved per case, G", ylabel="Cutoff", title="Cutoff lies between curves of G")
    axes.minorticks_off()

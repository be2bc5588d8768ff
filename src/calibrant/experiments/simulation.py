"""The simulation of section 3.3: decisions made with logistic fits that are more and more the wrong shape.

The chance of an event is a mixture of a parabola and a straight line, alpha (1 - 2x)^2 + (1 - alpha) x. Each run draws
alpha and 500 rows, fits a logistic curve to them, and asks on 1,000 further points what better use of its forecasts
would save at the threshold 0.35. All quantities are computed with the true chances in place of outcomes.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

import calibrant
from calibrant.experiments.figures import ALPHA_MAP, COLOURS, SMALL, WIDTH, WORDS, headline, shared_legend, tidy
from calibrant.experiments.reports import PAPER, PROJECT, Report, Settings, Statement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 100
FITTED = 500
POPULATION = 1000
THRESHOLD = 0.35
ENOUGH_RUNS = 50

MEASURES = {"smooth": "smooth CE", "cutoff": "Cutoff", "ece": "ECE"}
GAPS = {"risk_gap": "risk gap", "monotone_risk_gap": "monotone risk gap"}
COLUMNS = ("alpha", *MEASURES, *GAPS, "nondecreasing_risk_gap")

ROUNDING = 1e-12
"""Bounds that hold with equality may be missed by this much in floating point."""


def run(settings: Settings) -> Report:
    """Draw all runs, and compare the gaps with the measures and their bounds."""
    runs = settings.runs or RUNS
    draws: Any = _authors_draws(settings.rng) if settings.stream == "authors" else _our_draws(settings)
    rows = np.array([_one_run(*next(draws)) for _ in settings.track(range(runs))])
    table = dict(zip(COLUMNS, rows.T, strict=True))
    correlations = {gap: {name: _spearman(table[name], table[gap]) for name in MEASURES} for gap in GAPS}
    best = {gap: {name: _gap_of_best_quarter(table, name, gap) for name in MEASURES} for gap in GAPS}
    return Report(
        name="simulation",
        title="Which calibration measure goes with better decisions?",
        item="Section 3.3, Figure 3, appendix B.5",
        settings=settings.record(runs, fitted_rows=FITTED, population_points=POPULATION, threshold=THRESHOLD),
        statements=_statements(table, correlations, best),
        table=table,
        findings={"correlations": correlations, "largest_gap_of_best_quarter": best},
        size=(WIDTH, 5.6),
        draw=_draw,
    )


def _authors_draws(seed: int) -> Any:
    """Draw as the authors' notebook does: their generator, in their order, so that every point is theirs."""
    # Their notebook uses numpy's legacy stream; a RandomState of the same seed gives it without the global one.
    stream = np.random.RandomState(seed)
    while True:
        fitted = stream.uniform(size=FITTED)
        population = stream.uniform(size=POPULATION)
        alpha = stream.uniform()
        outcomes = stream.binomial(n=1, p=_chance(fitted, alpha))
        yield fitted, population, alpha, outcomes


def _our_draws(settings: Settings) -> Any:
    generator = settings.generator()
    while True:
        alpha = generator.random()
        fitted, population = generator.random(FITTED), generator.random(POPULATION)
        yield fitted, population, alpha, (generator.random(FITTED) < _chance(fitted, alpha)).astype(int)


def _chance(x: Any, alpha: float) -> Any:
    """Return the chance of an event at x."""
    return alpha * (1.0 - 4.0 * x + 4.0 * x**2) + (1.0 - alpha) * x


def _one_run(fitted: Any, population: Any, alpha: float, outcomes: Any) -> list[float]:
    model = calibrant.PlattRecalibrator(smoothing=False).fit(fitted, outcomes)  # plain maximum likelihood
    points = calibrant.Tally.from_arrays(_chance(population, alpha), model.predict(population))
    with warnings.catch_warnings():
        # The warning is about estimating the ECE from outcomes; here the exact chances are known.
        warnings.simplefilter("ignore", calibrant.CalibrationWarning)
        ece = calibrant.expected_calibration_error(points)
    gaps = [
        calibrant.risk_gap(points, threshold=THRESHOLD, wrapper=wrapper).gap
        for wrapper in ("any", "monotone", "nondecreasing")
    ]
    cutoff = calibrant.cutoff_calibration_error(points)
    return [float(alpha), calibrant.smooth_calibration_error(points), cutoff, ece, *gaps]


def _spearman(first: Any, second: Any) -> float:
    """Return the correlation of the ranks, 0 where one of them does not vary."""
    from scipy.stats import rankdata

    ranks = rankdata(first), rankdata(second)
    if not (np.ptp(ranks[0]) and np.ptp(ranks[1])):
        return 0.0
    return float(np.corrcoef(*ranks)[0, 1])


def _gap_of_best_quarter(table: dict[str, Any], measure: str, gap: str) -> float:
    """Return the largest gap among the quarter of the runs that the measure likes best."""
    kept = np.argsort(table[measure], kind="stable")[: max(1, len(table[measure]) // 4)]
    return float(table[gap][kept].max())


def _statements(
    table: dict[str, Any], correlations: dict[str, dict[str, float]], best: dict[str, dict[str, float]]
) -> tuple[Statement, ...]:
    def bounded(item: str, source: str, gap: str, measure: str, factor: float, claim: str) -> Statement:
        limit = factor * table[measure]
        return Statement(
            item=item,
            source=source,
            claim=claim,
            measured=f"largest ratio of the two {(table[gap] / limit).max():.3f} in {len(limit)} runs",
            holds=bool((table[gap] <= limit + ROUNDING).all()),
        )

    def listed(numbers: dict[str, float], digits: int) -> str:
        return ", ".join(f"{MEASURES[name]} {value:.{digits}f}" for name, value in numbers.items())

    statements = [
        bounded("Proposition 3.1", PAPER, "risk_gap", "ece", 1.0, "the risk gap is at most the ECE"),
        bounded(
            "Proposition 3.2", PAPER, "monotone_risk_gap", "cutoff", 2.0, "the monotone risk gap is at most 2 Cutoff"
        ),
        bounded(
            "Non-decreasing wrappers",
            PROJECT,
            "nondecreasing_risk_gap",
            "cutoff",
            1.0,
            "the gap to non-decreasing wrappers is at most Cutoff",
        ),
    ]
    # A correlation of a handful of runs says nothing, so nothing is said of it.
    for gap, words in GAPS.items() if len(table["alpha"]) >= ENOUGH_RUNS else ():
        ranks = correlations[gap]
        statements.append(
            Statement(
                item="Section 3.3",
                source=PAPER,
                claim=f"the {words} goes with Cutoff and ECE, much less with dCE (as smooth CE)",
                measured=f"Spearman correlations: {listed(ranks, 2)}",
                holds=min(ranks["cutoff"], ranks["ece"]) > max(0.5, ranks["smooth"]),
            )
        )
        largest = best[gap]
        statements.append(
            Statement(
                item="Section 3.3",
                source=PAPER,
                claim=f"small Cutoff or ECE means a small {words}, and small dCE (as smooth CE) does not",
                measured=f"largest {words} in the quarter of runs smallest by each: {listed(largest, 4)}",
                holds=2.0 * max(largest["cutoff"], largest["ece"]) < largest["smooth"],
            )
        )
    return tuple(statements)


def _draw(report: Report, figure: Figure) -> None:
    headline(figure, "Small Cutoff or ECE goes with good decisions; small dCE tells nothing")
    panels = figure.subplots(2, 3, sharex=True, sharey=True)
    reach = 1.05 * max(report.table[name].max() for name in MEASURES)
    points: Any = None
    for axes_row, (gap, gap_words) in zip(panels, GAPS.items(), strict=True):
        for axes, (measure, words) in zip(axes_row, MEASURES.items(), strict=True):
            points = axes.scatter(
                report.table[measure],
                report.table[gap],
                c=report.table["alpha"],
                cmap=ALPHA_MAP,
                vmin=0.0,
                vmax=1.0,
                s=16,
                edgecolor=COLOURS.ink,
                linewidth=0.3,
            )
            for factor, colour, style, label in _proved(gap, measure):
                axes.plot([0.0, reach], [0.0, factor * reach], color=colour, linestyle=style, label=label)
            correlation = report.findings["correlations"][gap][measure]
            tidy(
                axes,
                xlabel={"smooth": f"{words} (for dCE)"}.get(measure, words),
                ylabel=gap_words if axes is axes_row[0] else "",
                title=f"rank correlation {correlation:.2f}",
            )
            axes.set_xlim(-0.01, reach)
            axes.set_ylim(-0.01, reach)
    shared_legend(figure, panels, columns=3)
    bar = figure.colorbar(points, ax=panels, shrink=0.7, aspect=30)
    bar.set_label("share of a parabola in the truth (0: the model fits)", fontsize=WORDS, color=COLOURS.ink)
    bar.ax.tick_params(labelsize=SMALL, colors=COLOURS.muted)
    bar.outline.set_visible(False)


def _proved(gap: str, measure: str) -> tuple[tuple[float, str, str, str], ...]:
    """Return slope, colour, line style and label of the bounds that are proved for a panel."""
    by_ece = ((1.0, COLOURS.other, "-", "proved: at most ECE"),)
    by_cutoff = (
        (2.0, COLOURS.curve, "-.", "proved: at most 2 Cutoff"),
        (1.0, COLOURS.highlight, "--", "at most Cutoff, if non-decreasing"),
    )
    return {"ece": by_ece, "cutoff": by_cutoff if gap == "monotone_risk_gap" else ()}.get(measure, ())

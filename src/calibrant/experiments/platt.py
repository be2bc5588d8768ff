"""Figure 4: a population on which Platt scaling is never calibrated, however many rows it sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import calibrant
from calibrant.experiments.figures import COLOURS, WIDTH, against_rows, headline, tidy, write_beside
from calibrant.experiments.populations import Population, nearest_calibrated
from calibrant.experiments.reports import PAPER, PROJECT, Report, Settings, Statement, as_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 200
SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)

FIGURE_4 = Population.evenly("sure at both ends", [0.0, 0.25, 0.5, 1.0], [1.0, 0.0, 0.0, 1.0])
"""Forecasts of 0, 1/4, 1/2 and 1, equally frequent; events are sure at 0 and 1, impossible between."""

INTERCEPT, SLOPE, DISTANCE = -0.405804, 0.930895, 0.0716219
"""What the authors' notebook prints for this population, to the digits given here."""


def run(settings: Settings) -> Report:
    """Fit the population itself, then samples of growing size."""
    runs = settings.runs or RUNS
    whole = calibrant.Tally.from_counts(FIGURE_4.forecast, rows=[1] * 4, events=FIGURE_4.chance.astype(int))
    curve = calibrant.PlattRecalibrator(smoothing=False).fit(whole)
    fitted = curve.predict(FIGURE_4.forecast)
    limit = FIGURE_4.cutoff(fitted)
    nearest, distance = nearest_calibrated(FIGURE_4, fitted)
    recalibrated = calibrant.Tally.from_arrays(FIGURE_4.chance, fitted)
    certain = calibrant.distance_from_calibration(recalibrated)
    table = _learned_errors(settings, runs)
    last = {name: float(table["cutoff_median"][table["recalibrator"] == name][-1]) for name in ("platt", "isotonic")}
    return Report(
        name="platt",
        title="Platt scaling stays wrong however many rows there are",
        item="Figure 4",
        settings=settings.record(runs),
        statements=(
            Statement(
                item="Figure 4",
                source=PAPER,
                claim=f"the population fit has intercept {INTERCEPT} and slope {SLOPE} (authors' notebook)",
                measured=f"{curve.intercept_:.6f} and {curve.slope_:.6f}",
                holds=abs(curve.intercept_ - INTERCEPT) < 1e-6 and abs(curve.slope_ - SLOPE) < 1e-6,
            ),
            Statement(
                item="Figure 4",
                source=PAPER,
                claim=f"the nearest calibrated predictor is the constant 0.5, {DISTANCE} away on average",
                measured=(
                    f"{distance:.7f}, the nearest of all 15 calibrated predictors on the four forecasts, is "
                    f"{' / '.join(f'{value:g}' for value in sorted(set(nearest)))}"
                ),
                holds=abs(distance - DISTANCE) < 1e-7 and bool(np.all(nearest == 0.5)),
            ),
            Statement(
                item="Figure 4",
                source=PAPER,
                claim="dCE of the recalibrated forecaster is above zero even with infinite data",
                measured=f"at least {certain.low:.4f} ({certain.low_from})",
                holds=certain.low > 0.001,
            ),
            Statement(
                item="Section 5",
                source=PROJECT,
                claim=f"the error of Platt scaling settles at {limit:.4f} as n grows, that of isotonic regression at 0",
                measured=f"medians at n = {SIZES[-1]:,}: {last['platt']:.4f} and {last['isotonic']:.4f}",
                holds=abs(last["platt"] - limit) < 0.01 and last["isotonic"] < 0.01,
            ),
        ),
        table=table,
        findings={
            "intercept": curve.intercept_,
            "slope": curve.slope_,
            "fitted": fitted,
            "nearest": nearest,
            "distance": distance,
            "distance_low": certain.low,
            "distance_high": certain.high,
            "limit": limit,
        },
        size=(WIDTH, 3.7),
        draw=_draw,
    )


def _learned_errors(settings: Settings, runs: int) -> dict[str, Any]:
    """Return the errors that recalibrators keep which learn from more and more rows."""
    generator = settings.generator()
    kinds = {"platt": calibrant.PlattRecalibrator, "isotonic": calibrant.IsotonicRecalibrator}
    rows: list[tuple[str, int, float, float, float]] = []
    for size in settings.track(SIZES):
        samples = [FIGURE_4.sample(generator, size) for _ in range(runs)]
        for name, kind in kinds.items():
            errors = [FIGURE_4.cutoff(kind().fit(sample).predict(FIGURE_4.forecast)) for sample in samples]
            rows.append((name, size, *np.quantile(errors, [0.05, 0.5, 0.95])))
    return as_table(("recalibrator", "rows", "cutoff_5", "cutoff_median", "cutoff_95"), rows)


def _draw(report: Report, figure: Figure) -> None:
    headline(figure, "More rows do not mend Platt scaling here; they do mend isotonic regression")
    left, right = figure.subplots(1, 2)
    grid = np.linspace(0.0, 1.0, 200)
    curve = 1.0 / (1.0 + np.exp(-(report.findings["slope"] * grid + report.findings["intercept"])))
    left.plot(grid, curve, color=COLOURS.curve)
    left.plot(FIGURE_4.forecast, report.findings["fitted"], color=COLOURS.curve, marker="o", linestyle="", markersize=4)
    left.plot(grid, np.full_like(grid, 0.5), color=COLOURS.other, linestyle="--")
    left.plot(FIGURE_4.forecast, FIGURE_4.chance, color=COLOURS.ink, marker="X", linestyle="")
    left.set_ylim(-0.08, 1.15)
    left.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0])
    write_beside(left, "chance of an event", (0.0, 1.0), COLOURS.ink, offset=(9.0, 0.0), align=("left", "center"))
    write_beside(left, "Platt scaling", (1.0, curve[-1]), COLOURS.curve, offset=(0.0, 6.0), align=("right", "bottom"))
    write_beside(
        left, "nearest calibrated\npredictor", (1.0, 0.5), COLOURS.other, offset=(0.0, -6.0), align=("right", "top")
    )
    tidy(left, xlabel="forecast", ylabel="recalibrated forecast", title="Figure 4, with infinitely many rows")
    for name, colour, marker in (("platt", COLOURS.curve, "o"), ("isotonic", COLOURS.highlight, "s")):
        size = report.column("rows", recalibrator=name)
        low, high = (report.column(f"cutoff_{level}", recalibrator=name) for level in (5, 95))
        median = report.column("cutoff_median", recalibrator=name)
        right.fill_between(size, low, high, color=colour, alpha=0.2, linewidth=0)
        right.plot(size, median, color=colour, marker=marker, markersize=4, linewidth=1)
    platt = (report.column("rows")[-1], report.findings["limit"])
    write_beside(right, "Platt scaling", platt, COLOURS.curve, offset=(0.0, -8.0), align=("right", "top"))
    write_beside(right, "isotonic regression", (0.03, 0.04), COLOURS.highlight, of_axes="axes fraction")
    right.axhline(report.findings["limit"], color=COLOURS.ink, linestyle=":", linewidth=1)
    against_rows(right, ylabel="Cutoff error (median, 5% to 95%)", title="Error left after learning from rows")

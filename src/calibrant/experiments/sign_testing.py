"""Proposition B.2: outcomes between 0 and 1, and the loss of guessing on which side of a value they fall."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

import calibrant
from calibrant.experiments.figures import COLOURS, WIDTH, headline, shared_legend
from calibrant.experiments.reports import PAPER, Report, Settings, Statement, as_table
from calibrant.experiments.savings import BOUNDS, label_panel, within_bounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 500
ROWS = 60
ROUNDING = 1e-12
REWARDING = 3
"""Of so many rows, one is a forecaster in the wrong order, where turning the rule round pays most."""


def run(settings: Settings) -> Report:
    """Compute on random rows with outcomes in [0, 1] what better rules would save, at a random threshold."""
    runs = settings.runs or RUNS
    generator = settings.generator()
    rows = [_gaps(generator, number) for number in settings.track(range(runs))]
    names = ("threshold", *BOUNDS, "cutoff", "ece", "identity")
    table = as_table(names, rows)
    return Report(
        name="sign-testing",
        title="The same bounds for guessing on which side of a value outcomes fall",
        item="Proposition B.2",
        settings=settings.record(runs),
        statements=_statements(table),
        table=table,
        findings={},
        size=(WIDTH, 3.5),
        draw=_draw,
    )


def _gaps(generator: np.random.Generator, number: int) -> list[float]:
    forecast = generator.choice(np.round(generator.random(6), 3), ROWS)
    centre = 1.0 - forecast if number % REWARDING == 0 else generator.random() * forecast + 0.3 * generator.random()
    outcome = np.clip(centre + 0.3 * generator.standard_normal(ROWS), 0.0, 1.0)
    threshold = float(generator.choice(np.unique(forecast))) if number % 2 else float(generator.random())
    with warnings.catch_warnings():
        # Few rows share a forecast: a warning to who wants to learn from them, while here they are the population.
        warnings.simplefilter("ignore", calibrant.CalibrationWarning)
        found = [
            calibrant.decisions.sign_testing_gap(outcome, forecast, threshold=threshold, wrapper=wrapper)
            for wrapper in BOUNDS
        ]
        ece = calibrant.expected_calibration_error(outcome, forecast)
    # The risk of the best rule, from the definition of the loss.
    acts = found[2].rule.acts(forecast)
    risk = np.where(acts, np.maximum(threshold - outcome, 0.0), np.maximum(outcome - threshold, 0.0)).mean()
    identity = abs(float(found[2].best_risk or 0.0) - float(risk))
    gaps = [result.gap for result in found]
    return [threshold, *gaps, calibrant.cutoff_calibration_error(outcome, forecast), ece, identity]


def _statements(table: dict[str, Any]) -> tuple[Statement, ...]:
    return (
        *within_bounds(table, "Proposition B.2", noun="rule", rounding=ROUNDING),
        Statement(
            item="Appendix B.4",
            source=PAPER,
            claim="the gap is the difference of two sign-testing risks",
            measured=f"largest difference from the definition of the loss {table['identity'].max():.1g}",
            holds=bool(table["identity"].max() < 1e-9),
        ),
    )


def _draw(report: Report, figure: Figure) -> None:
    headline(figure, "Guessing sides of a value: no recalibration saves more than is proved")
    panels = figure.subplots(1, 3)
    for axes, (wrapper, (measure, factor, _)) in zip(panels, BOUNDS.items(), strict=True):
        error, gap = report.column(measure), report.column(wrapper)
        axes.plot(error, gap, color=COLOURS.curve, marker=".", linestyle="", markersize=3, label="random rows")
        reach = error.max()
        axes.plot([0.0, reach], [0.0, factor * reach], color=COLOURS.ink, linewidth=1.2, label="proved bound")
        axes.set_ylim(-0.02 * gap.max(), 1.1 * max(gap.max(), reach))
        label_panel(axes, wrapper, reach, noun="rule", ylabel="saving per row")
    shared_legend(figure, panels, columns=3)

"""Proposition B.1: what recalibration saves in a proper score is bounded by the mass of its thresholds times Cutoff."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import calibrant
from calibrant.experiments.figures import COLOURS, SERIES, WIDTH, headline, shared_legend
from calibrant.experiments.populations import Population, random_populations
from calibrant.experiments.reports import PROJECT, Report, Settings, Statement, as_table
from calibrant.experiments.savings import BOUNDS, label_panel, within_bounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 500
ROUNDING = 1e-9
RARE = (1e-2, 1e-4, 1e-8, 1e-16, 1e-32, 1e-64)


def _scores() -> dict[str, calibrant.decisions.SchervishMeasure]:
    """Return proper scores whose thresholds have total mass 1, as the proposition asks."""
    return {
        "half the Brier score": calibrant.decisions.SchervishMeasure(density=np.ones_like),
        "mostly the middle": calibrant.decisions.SchervishMeasure(density=lambda t: 6.0 * t * (1.0 - t)),
        "three thresholds": calibrant.decisions.SchervishMeasure(atoms=[0.1, 0.35, 0.8], masses=[0.25, 0.5, 0.25]),
    }


def run(settings: Settings) -> Report:
    """Compute on random forecasters what each kind of recalibration would save in each score."""
    runs = settings.runs or RUNS
    rows: list[tuple[Any, ...]] = []
    scores = _scores()
    for population in settings.track(random_populations(settings.generator(), runs)):
        for name, score in scores.items():
            rows.append((name, *_savings(population, score), population.cutoff(), population.ece()))
    names = ("score", *BOUNDS, "cutoff", "ece")
    table = as_table(names, rows)
    logs = [_log_saving(forecast) for forecast in RARE]
    return Report(
        name="scoring-rules",
        title="What recalibration saves in a proper score",
        item="Proposition B.1",
        settings=settings.record(runs),
        statements=_statements(table, logs),
        table=table,
        findings={"log_loss_saving_over_cutoff": dict(zip(map(str, RARE), logs, strict=True))},
        size=(WIDTH, 3.6),
        draw=_draw,
    )


def _savings(population: Population, score: calibrant.decisions.SchervishMeasure) -> list[float]:
    """Return what the best map of each kind saves: any, monotone either way, non-decreasing."""
    rising = calibrant.decisions.score_decomposition(population.law(), score=score)
    # Turned round, the forecasts have the best falling map for their best rising one.
    turned = calibrant.decisions.score_decomposition(
        population.chance, 1.0 - population.forecast, score=score, sample_weight=population.share
    )
    best = _best(population, score)
    falling = turned.score - turned.miscalibration
    return [
        rising.score - best,
        rising.score - min(rising.score - rising.miscalibration, falling),
        rising.miscalibration,
    ]


def _best(population: Population, score: calibrant.decisions.SchervishMeasure) -> float:
    """Return the score of the true chances, which no map of the forecasts beats."""
    return calibrant.decisions.score_decomposition(
        population.chance, population.chance, score=score, sample_weight=population.share
    ).score


def _log_saving(forecast: float) -> float:
    """Return the saving in log loss over Cutoff when events have chance 0.01 and the forecast is far smaller."""
    result = calibrant.decisions.score_decomposition([0.01], [forecast], score="log")
    return result.miscalibration / (0.01 - forecast) if forecast < 0.01 else 0.0


def _statements(table: dict[str, Any], logs: list[float]) -> tuple[Statement, ...]:
    return (
        *within_bounds(table, "Proposition B.1", noun="map", rounding=ROUNDING),
        Statement(
            item="Decisions",
            source=PROJECT,
            claim="the log loss, whose thresholds have infinite mass, has no such bound",
            measured=f"the saving grows as the forecast shrinks, here to {max(logs):.0f} times Cutoff",
            holds=bool(np.all(np.diff(logs) > 0.0) and max(logs) > 100.0),
        ),
    )


def _draw(report: Report, figure: Figure) -> None:
    headline(figure, "Recalibration never saves more in a proper score than is proved")
    panels = figure.subplots(1, 3)
    for axes, (wrapper, (measure, factor, _)) in zip(panels, BOUNDS.items(), strict=True):
        for (colour, marker), name in zip(SERIES, _scores(), strict=False):
            error, saved = (report.column(column, score=name) for column in (measure, wrapper))
            axes.plot(error, saved, color=colour, marker=marker, linestyle="", markersize=2, label=name)
        reach = report.column(measure).max()
        axes.plot([0.0, reach], [0.0, factor * reach], color=COLOURS.ink, linewidth=1.2, label="proved bound")
        axes.set_ylim(-0.02, 1.05 * max(report.column(wrapper).max(), reach))
        label_panel(axes, wrapper, reach, noun="map", ylabel="saving per row")
    shared_legend(figure, panels, columns=3)

"""Example 3.1 and the examples of appendix A.4: forecasters whose errors are known exactly."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

import calibrant
from calibrant.experiments.figures import COLOURS, WIDTH, headline, shared_legend, tidy, write_beside
from calibrant.experiments.populations import middles
from calibrant.experiments.reports import PAPER, PROJECT, Report, Settings, Statement, as_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERTURBATIONS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.001)
SEPARATIONS = (0.8, 0.4, 0.2, 0.1, 0.05, 0.02)
STEPS = (2, 4, 8, 16, 32, 64, 128)
POINTS_PER_STEP = 64
MANY = 1000
"""Rows enough that nobody takes exact event rates for chance."""


def run(settings: Settings) -> Report:
    """Compute every example, and put the exact values beside the computed ones."""
    rows: list[tuple[str, float, str, float, float]] = []
    for perturbation in PERTURBATIONS:
        rows += [("perturbed constant", perturbation, *line) for line in _perturbed(perturbation)]
    rows += [("all equal", 0.0, *line) for line in _all_equal()]
    for separation in SEPARATIONS:
        rows += [("two forecasts", separation, *line) for line in _two_forecasts(separation)]
    for steps in settings.track(STEPS):
        rows += [("stairs", float(steps), *line) for line in _stairs(steps)]
    names = ("example", "parameter", "quantity", "exact", "computed")
    table = as_table(names, rows)
    slopes = {quantity: _slope(table, quantity) for quantity in ("cutoff", "distance_high", "distance_low")}
    return Report(
        name="examples",
        title="Forecasters whose errors are known exactly",
        item="Example 3.1, appendix A.4",
        settings=settings.record(None),
        statements=_statements(table, slopes),
        table=table,
        findings={"slopes": slopes},
        size=(WIDTH, 3.7),
        draw=_draw,
    )


def _ece(tally: calibrant.Tally) -> float:
    with warnings.catch_warnings():
        # The warning is about estimating the ECE from outcomes; here the exact chances are known.
        warnings.simplefilter("ignore", calibrant.CalibrationWarning)
        return calibrant.expected_calibration_error(tally)


def _perturbed(perturbation: float) -> list[tuple[str, float, float]]:
    """Compute Example 3.1: a calibrated 0.75, moved by a hair against the outcome, decides everything wrongly."""
    forecast = [0.75 + perturbation, 0.75 - perturbation]
    tally = calibrant.Tally.from_counts(forecast, rows=[MANY, 3 * MANY], events=[0, 3 * MANY])
    risk = calibrant.decision_risk(tally, threshold=0.75).risk
    gap = calibrant.risk_gap(tally, threshold=0.75, wrapper="any").gap
    return [
        ("ece", 0.375 + perturbation, _ece(tally)),
        ("cutoff", 0.1875 + 0.75 * perturbation, calibrant.cutoff_calibration_error(tally)),
        ("distance_high", perturbation, calibrant.distance_from_calibration(tally).high),
        ("risk", 0.375, float(risk)),
        ("best_risk", 0.0, float(risk) - gap),
    ]


def _all_equal() -> list[tuple[str, float, float]]:
    """Compute a certain forecast of what never happens: every error is 1."""
    tally = calibrant.Tally.from_counts([1.0], rows=[MANY], events=[0])
    distance = calibrant.distance_from_calibration(tally)
    return [
        ("ece", 1.0, _ece(tally)),
        ("cutoff", 1.0, calibrant.cutoff_calibration_error(tally)),
        ("distance_high", 1.0, distance.high),
        ("distance_low", 1.0, distance.low),
    ]


def _two_forecasts(separation: float) -> list[tuple[str, float, float]]:
    """Compute two forecasts around 0.5 in the wrong order: near to calibration, far from it in ECE."""
    forecast = [0.5 * (1.0 + separation), 0.5 * (1.0 - separation)]
    tally = calibrant.Tally.from_counts(forecast, rows=[MANY, MANY], events=[0, MANY])
    distance = calibrant.distance_from_calibration(tally)
    return [
        ("ece", 0.5 * (1.0 + separation), _ece(tally)),
        ("distance_high", 0.5 * separation, distance.high),
        ("ece_over_distance", 1.0 + 1.0 / separation, _ece(tally) / distance.high),
    ]


def _stairs(steps: int) -> list[tuple[str, float, float]]:
    """Compute uniform forecasts whose event rate climbs in steps: Cutoff sees the square of the step.

    Within half a step residuals are linear in the forecast, so the middles of equal parts give the exact integrals.
    """
    forecast = middles(2 * steps * POINTS_PER_STEP)
    step = np.floor(forecast * steps)
    chance = (step + 0.5) / steps
    tally = calibrant.Tally.from_arrays(chance, forecast)
    near = _paired(forecast, steps)
    return [
        ("cutoff", 1.0 / (8.0 * steps**2), calibrant.cutoff_calibration_error(tally)),
        ("ece", 1.0 / (4.0 * steps), _ece(tally)),
        ("distance_high", (1.0 + 1.0 / steps) / (8.0 * steps), float(np.abs(forecast - near).mean())),
        ("ece_of_neighbour", 0.0, _ece(calibrant.Tally.from_arrays(chance, near))),  # calibrated, so a bound
        ("distance_low", 1.0 / (24.0 * steps), _wave_bound(tally, steps)),
    ]


def _paired(forecast: Any, steps: int) -> Any:
    """Return calibrated forecasts near the given ones.

    In the middle half of a step the event rate itself. Elsewhere a point is paired with its mirror image on the other
    side of the nearest edge; the mean event rate of such a pair is the edge. At 0 and 1 there is nobody to pair with.
    """
    within = forecast * steps - np.floor(forecast * steps)
    edge = np.round(forecast * steps)
    alone = (np.abs(within - 0.5) < 0.25) | (edge == 0) | (edge == steps)
    return np.where(alone, (np.floor(forecast * steps) + 0.5) / steps, edge / steps)


def _wave_bound(tally: calibrant.Tally, steps: int) -> float:
    """Return a lower bound of the distance from calibration, from a wave that follows the stairs.

    Let w be a triangle wave of period 1 / steps and height 1. For calibrated g that depends on the forecast only,
    E[(Y - f) w(f)] = E[(Y - f) (w(f) - w(g))] + E[(g - f) w(g)], at most (slope of w / (2 steps) + 1) E|f - g|.
    """

    def wave(forecast: Any) -> Any:
        # From 0 in the middle of a step down to -1 at three quarters of it, and back to 0 at its edge.
        phase = np.asarray(forecast) * steps - np.floor(np.asarray(forecast) * steps) - 0.5
        return -np.sign(phase) * (1.0 - np.abs(4.0 * np.abs(phase) - 1.0))

    collected = calibrant.measures.weighted_calibration_error(tally, weight=wave)
    return abs(collected) / (4.0 * steps / (2.0 * steps) + 1.0)


def _slope(table: dict[str, Any], quantity: str) -> float:
    """Return the slope of a quantity of the stairs against their number, both as logarithms, in the finer half."""
    kept = (table["example"] == "stairs") & (table["quantity"] == quantity) & (table["parameter"] >= 8)
    return float(np.polyfit(np.log(table["parameter"][kept]), np.log(table["computed"][kept]), 1)[0])


def _statements(table: dict[str, Any], slopes: dict[str, float]) -> tuple[Statement, ...]:
    def exact(item: str, source: str, example: str, quantities: tuple[str, ...], claim: str) -> Statement:
        kept = (table["example"] == example) & np.isin(table["quantity"], quantities)
        error = np.abs(table["exact"] - table["computed"])[kept]
        relative = error / np.maximum(np.abs(table["exact"][kept]), 1.0)
        return Statement(
            item=item,
            source=source,
            claim=claim,
            measured=f"largest difference {error.max():.1g} in {kept.sum()} values",
            holds=bool((relative <= 1e-9).all()),
        )

    return (
        exact("Example 3.1", PAPER, "perturbed constant", ("ece",), "the ECE is 3/8 + epsilon"),
        exact("Example 3.1", PAPER, "perturbed constant", ("distance_high",), "dCE is at most epsilon"),
        exact("Example 3.1", PAPER, "perturbed constant", ("risk", "best_risk"), "acting loses 3/8, the best rule 0"),
        exact("Example 3.1", PROJECT, "perturbed constant", ("cutoff",), "Cutoff is 3/16 + 3 epsilon / 4"),
        exact(
            "Appendix A.4",
            PAPER,
            "all equal",
            ("ece", "cutoff", "distance_high", "distance_low"),
            "dCE, Cutoff and ECE are all 1 for a forecast of 1 of what never happens",
        ),
        exact("Appendix A.4", PAPER, "two forecasts", ("ece",), "the ECE is (1 + b) / 2 for two forecasts b apart"),
        exact("Appendix A.4", PAPER, "two forecasts", ("ece_over_distance",), "and (1 + 1/b) times the distance b / 2"),
        exact("Appendix A.4", PAPER, "stairs", ("cutoff",), "Cutoff is 1 / (8 N^2) for stairs of N steps"),
        Statement(
            item="Appendix A.4",
            source=PAPER,
            claim="dCE is of order 1 / N there, so Cutoff of order dCE squared",
            measured=(
                f"slopes against N, as logarithms: Cutoff {slopes['cutoff']:.3f}, limits of dCE "
                f"{slopes['distance_low']:.3f} and {slopes['distance_high']:.3f}"
            ),
            holds=abs(slopes["cutoff"] + 2.0) < 1e-6
            and abs(slopes["distance_low"] + 1.0) < 0.05
            and abs(slopes["distance_high"] + 1.0) < 0.05,
        ),
        exact(
            "Appendix A.4",
            PROJECT,
            "stairs",
            ("distance_high", "ece_of_neighbour", "distance_low"),
            "dCE lies between 1 / (24 N) and (1 + 1/N) / (8 N) if g sees the forecast only",
        ),
    )


def _draw(report: Report, figure: Figure) -> None:
    headline(figure, "Three forecasters show how far dCE, Cutoff and ECE can be apart")
    left, middle, right = figure.subplots(1, 3)
    _draw_perturbed(report, left)
    separation = np.array(SEPARATIONS)
    ratio = report.column("computed", example="two forecasts", quantity="ece_over_distance")
    middle.plot(1.0 / separation, 1.0 + 1.0 / separation, color=COLOURS.ink, linewidth=1, label="exact value")
    middle.plot(1.0 / separation, ratio, color=COLOURS.ink, marker="o", linestyle="", markersize=4, label="computed")
    write_beside(
        middle,
        "ECE / dCE =\n1 + 1/distance",
        (0.97, 0.05),
        COLOURS.ink,
        align=("right", "bottom"),
        of_axes="axes fraction",
    )
    middle.set_xlim(0.0, 55.0)
    middle.set_ylim(0.0, 55.0)
    tidy(middle, xlabel="1 / distance of two forecasts", ylabel="ECE / dCE", title="ECE many times dCE")
    _draw_stairs(report, right)
    shared_legend(figure, np.array([middle]), columns=2)


def _draw_perturbed(report: Report, axes: Any) -> None:
    """Draw Example 3.1: what stays large while dCE goes to zero."""
    for quantity, colour, marker in (
        ("ece", COLOURS.curve, "o"),
        ("risk", COLOURS.curve, "s"),
        ("cutoff", COLOURS.other, "^"),
        ("distance_high", COLOURS.highlight, "D"),
    ):
        _draw_exact_and_computed(report, axes, "perturbed constant", quantity, colour=colour, marker=marker)
    smallest = PERTURBATIONS[-1]
    write_beside(axes, "ECE, and the loss\nof acting", (smallest, 0.375), COLOURS.curve, offset=(0.0, 6.0))
    write_beside(axes, "Cutoff", (smallest, 0.1875), COLOURS.other, offset=(0.0, -6.0), align=("left", "top"))
    words, corner = "distance from\ncalibration (dCE)", (0.98, 0.03)
    write_beside(axes, words, corner, COLOURS.highlight, align=("right", "bottom"), of_axes="axes fraction")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(1e-4, 3.0)
    tidy(axes, xlabel="size of a perturbation", ylabel="error, or loss per row", title="dCE goes to 0, losses stay")


def _draw_stairs(report: Report, axes: Any) -> None:
    """Draw the stairs of appendix A.4: Cutoff falls like the square of dCE."""
    for quantity, colour, marker in (
        ("distance_high", COLOURS.highlight, "D"),
        ("distance_low", COLOURS.highlight, "v"),
        ("cutoff", COLOURS.other, "^"),
    ):
        _draw_exact_and_computed(report, axes, "stairs", quantity, colour=colour, marker=marker)
    steps = STEPS[3]
    write_beside(axes, "limits of dCE", (steps, 1.0 / (8.0 * steps)), COLOURS.highlight, offset=(-4.0, 9.0))
    place, align = (steps, 1.0 / (8.0 * steps**2)), ("right", "top")
    write_beside(axes, "Cutoff", place, COLOURS.other, offset=(-8.0, -4.0), align=align)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(STEPS[::2], [str(step) for step in STEPS[::2]])
    axes.minorticks_off()
    tidy(axes, xlabel="steps of a staircase", ylabel="error", title="Cutoff far below dCE")


def _draw_exact_and_computed(
    report: Report, axes: Any, example: str, quantity: str, *, colour: str, marker: str
) -> None:
    """Draw the exact values as a line, and the computed ones as points on it."""
    parameter, exact, computed = (
        report.column(name, example=example, quantity=quantity) for name in ("parameter", "exact", "computed")
    )
    axes.plot(parameter, exact, color=colour, linewidth=1)
    axes.plot(parameter, computed, color=colour, marker=marker, linestyle="", markersize=4)

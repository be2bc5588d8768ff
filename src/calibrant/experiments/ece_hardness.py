"""Theorem 4.1: no estimator sees the ECE of continuous forecasts, and who guarantees it gives up continuity.

Two worlds share the law of the forecasts, uniform on 2^40 values. In the calibrated one an event at forecast p has the
chance p, and the ECE is 0. In the hidden one every value has a fixed outcome, 0 or 1, chosen once by a hash such that a
share p of the values near p has outcome 1: the ECE is E[2 p (1 - p)] = 1/3. As long as no value occurs twice, rows of
the two worlds have the same law, so nothing computed from rows tells them apart.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

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
from calibrant.experiments.reports import PAPER, PROJECT, Report, Settings, Statement, as_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 100
VALUES = 2**40
SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000)
SUPPORT_SIZES = (25, 50, 100, 200)
SUPPORT_POINTS = 100_000
BINS = 15
GAMMA = 0.05
BOUND_ROWS = 10_000
VARIANCES = (0.25, 0.1, 0.01)
TRUE_ECE = 1.0 / 3.0


def run(settings: Settings) -> Report:
    """Look at both worlds through every estimator, then at how many values recalibrators return."""
    runs = settings.runs or RUNS
    generator = settings.generator()
    seen = [line for size in settings.track(SIZES) for line in _look(generator, size, runs)]
    supports = [line for size in settings.track(SUPPORT_SIZES) for line in _supports(generator, size, runs)]
    errors = np.geomspace(1e-6, 0.05, 60)
    curves = [
        ("bound", f"variance {variance:g}", "", error, _bound(error, variance))
        for variance in VARIANCES
        for error in errors
    ]
    names = ("part", "series", "estimator", "x", "value")
    table = as_table(names, [*seen, *supports, *curves])
    truth = _ece_of_hidden(generator)
    report = Report(
        name="ece-hardness",
        title="No estimator sees the ECE of continuous forecasts",
        item="Theorem 4.1",
        settings=settings.record(runs, values=VALUES, gamma=GAMMA),
        statements=(),
        table=table,
        findings={"ece_of_hidden": truth, "collision_chance": {str(size): _collision(size) for size in SIZES}},
        size=(WIDTH, 4.4),
        draw=_draw,
    )
    return Report(**{**vars(report), "statements": _statements(report, truth)})


def _hidden_outcome(value: Any) -> Any:
    """Return the fixed outcome of a value: 1 when its hash (splitmix64) is below its share of all hashes."""
    mixed = value + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return (mixed >> np.uint64(24)) < value  # both are now below 2^40


def _draw_rows(generator: np.random.Generator, size: int, world: str) -> tuple[Any, Any]:
    value = generator.integers(VALUES, size=size, dtype=np.uint64)
    forecast = (value.astype(float) + 0.5) / VALUES
    outcome = _hidden_outcome(value) if world == "hidden" else generator.random(size) < forecast
    return outcome, forecast


def _ece_of_hidden(generator: np.random.Generator) -> float:
    """Return the ECE of the hidden world, by averaging over values with their outcomes known."""
    outcome, forecast = _draw_rows(generator, 1_000_000, "hidden")
    return float(np.abs(outcome - forecast).mean())


def _collision(size: int) -> float:
    """Return the most by which the chance of any event can differ between rows of the two worlds."""
    return size * (size - 1) / 2.0 / VALUES


def _look(generator: np.random.Generator, size: int, runs: int) -> list[tuple[Any, ...]]:
    lines = []
    for world in ("calibrated", "hidden"):
        found: dict[str, list[float]] = {"binned ECE": [], "plug-in ECE": [], "Cutoff": []}
        for _ in range(runs):
            rows = _draw_rows(generator, size, world)
            with warnings.catch_warnings():
                # The plug-in warns that it measures noise here: that is what this experiment shows.
                warnings.simplefilter("ignore", calibrant.CalibrationWarning)
                found["plug-in ECE"].append(calibrant.expected_calibration_error(*rows))
            found["binned ECE"].append(calibrant.expected_calibration_error(*rows, n_bins=BINS))
            found["Cutoff"].append(calibrant.cutoff_calibration_error(*rows))
        lines += [("seen", world, estimator, size, float(np.mean(values))) for estimator, values in found.items()]
    return lines


def _supports(generator: np.random.Generator, size: int, runs: int) -> list[tuple[Any, ...]]:
    """Return how many values carry 95% of the forecasts after recalibration, at least, in some fits."""
    fresh = generator.random(SUPPORT_POINTS)
    found: dict[str, list[int]] = {"Platt": [], "isotonic": [], "binning": []}
    for _ in range(max(2, runs // 10)):
        outcome, forecast = _draw_rows(generator, size, "hidden")
        platt = calibrant.PlattRecalibrator().fit(forecast, outcome).predict(fresh)
        isotonic = calibrant.IsotonicRecalibrator().fit(forecast, outcome).predict(fresh)
        binned = _binned(forecast, outcome, fresh)
        for name, recalibrated in (("Platt", platt), ("isotonic", isotonic), ("binning", binned)):
            found[name].append(calibrant.measures.effective_support_size(recalibrated, GAMMA))
    # The fewest for Platt, to be sure that it is above n^2; the most for the others, to be sure that they are below.
    return [
        ("support", name, "", size, float(min(values) if name == "Platt" else max(values)))
        for name, values in found.items()
    ]


def _binned(forecast: Any, outcome: Any, fresh: Any) -> Any:
    """Recalibrate by the event rate in each of equally wide bins."""
    place = np.minimum((forecast * BINS).astype(int), BINS - 1)
    rows = np.bincount(place, minlength=BINS)
    events = np.bincount(place, weights=outcome, minlength=BINS)
    rate = np.where(rows > 0, events / np.maximum(rows, 1), 0.5)
    return rate[np.minimum((fresh * BINS).astype(int), BINS - 1)]


def _bound(error: float, variance: float) -> float:
    return calibrant.certificates.ece_hardness_bound(
        BOUND_ROWS, max_error=error, confidence_level=1.0 - error, effective_variance=variance
    )


def _statements(report: Report, truth: float) -> tuple[Statement, ...]:
    def seen(world: str, estimator: str) -> Any:
        return report.column("value", part="seen", series=world, estimator=estimator)

    binned, plug_in, cutoff = (seen("hidden", name) for name in ("binned ECE", "plug-in ECE", "Cutoff"))
    apart = max(
        float(np.abs(seen("hidden", name) - seen("calibrated", name)).max() / seen("calibrated", name).max())
        for name in ("binned ECE", "plug-in ECE", "Cutoff")
    )
    sizes = np.array(SUPPORT_SIZES)
    platt, isotonic, binning = (
        report.column("value", part="support", series=name) for name in ("Platt", "isotonic", "binning")
    )
    closed = max(0.0, 1.0 - 2.0 * math.e * (2e-3 + 1.0 / BOUND_ROWS) / 0.1)
    return (
        Statement(
            item="Section 4.2",
            source=PAPER,
            claim="binned ECE can be near 0 while the ECE is large",
            measured=f"binned ECE {binned[-1]:.4f} from {SIZES[-1]:,} rows of a forecaster with ECE {truth:.4f}",
            holds=binned[-1] < 0.05 and abs(truth - TRUE_ECE) < 0.005,
        ),
        Statement(
            item="Theorem 4.1",
            source=PAPER,
            claim="no estimator tells an ECE of 0 from one of 1/3",
            measured=(
                f"means of three estimators in the two worlds differ by at most {100 * apart:.0f}% of the largest; any "
                f"test differs by less than {_collision(SIZES[-1]):.4f} in its chance of saying yes"
            ),
            holds=apart < 0.1 + 1.0 / math.sqrt(report.settings["runs"]) and _collision(SIZES[-1]) < 0.001,
        ),
        Statement(
            item="Theorem 4.1",
            source=PROJECT,
            claim="the plug-in says 1/3 in both worlds, and is right in one of them by accident",
            measured=f"{plug_in[-1]:.4f} and {seen('calibrated', 'plug-in ECE')[-1]:.4f}",
            holds=max(abs(plug_in[-1] - TRUE_ECE), abs(seen("calibrated", "plug-in ECE")[-1] - TRUE_ECE)) < 0.01,
        ),
        Statement(
            item="Proposition 4.1",
            source=PAPER,
            claim="Cutoff is estimable: it goes to 0 in both worlds, where it is 0",
            measured=f"{cutoff[0]:.4f} at {SIZES[0]} rows, {cutoff[-1]:.4f} at {SIZES[-1]:,}",
            holds=cutoff[-1] < 0.02 < cutoff[0],
        ),
        Statement(
            item="Theorem 4.1",
            source=PAPER,
            claim="Platt scaling returns more than n^2 values, so it guarantees no ECE; isotonic and bins return few",
            measured=(
                f"at n = {sizes[-1]}: Platt at least {platt[-1]:,.0f}, isotonic {isotonic[-1]:.0f}, "
                f"binning {binning[-1]:.0f}, n^2 = {sizes[-1] ** 2:,}"
            ),
            holds=bool((platt > sizes**2).all() and (isotonic <= sizes).all() and (binning <= BINS).all()),
        ),
        Statement(
            item="Theorem 4.1",
            source=PAPER,
            claim="c = delta = 0.001, n = 10,000, variance 0.1: few values with a chance of at least 0.8858",
            measured=f"{_bound(1e-3, 0.1):.4f}",
            holds=abs(_bound(1e-3, 0.1) - closed) < 1e-12,
        ),
    )


def _draw(report: Report, figure: Figure) -> None:
    headline(figure, "No estimator sees the ECE of forecasts that hardly repeat")
    left, middle, right = figure.subplots(1, 3)
    _draw_worlds(report, left)
    sizes = np.array(SUPPORT_SIZES)
    for name, colour, marker, offset, side in (
        ("Platt", COLOURS.curve, "o", (0.0, -6.0), "top"),
        ("isotonic", COLOURS.highlight, "s", (0.0, -8.0), "top"),
        ("binning", COLOURS.bound, "D", (0.0, 8.0), "bottom"),
    ):
        value = report.column("value", part="support", series=name)
        middle.plot(sizes, value, color=colour, marker=marker, markersize=4, linewidth=1)
        write_beside(middle, name, (sizes[0], value[0]), colour, offset=offset, align=("left", side))
    middle.plot(sizes, sizes**2, color=COLOURS.ink, linestyle="--", linewidth=1)
    write_beside(
        middle, "rows squared", (sizes[1], sizes[1] ** 2), COLOURS.ink, offset=(4.0, -5.0), align=("left", "top")
    )
    against_rows(middle, ylabel="values that carry 95%", title="Values that forecasts take")
    middle.set_ylim(1.0, None)
    middle.set_xticks(sizes, [str(size) for size in sizes])
    middle.minorticks_off()
    for (colour, _), variance, style in zip(SERIES, VARIANCES, ("-", "--", "-."), strict=False):
        error, bound = (report.column(name, part="bound", series=f"variance {variance:g}") for name in ("x", "value"))
        right.plot(
            error, bound, color=colour, label=f"right panel: variance {variance:g} of the forecasts", linestyle=style
        )
    right.set_xscale("log")
    right.set_ylim(-0.03, 1.03)
    tidy(right, xlabel="ECE to be guaranteed", ylabel="chance of few values", title="Proved, 10,000 rows")
    shared_legend(figure, np.array([left, right]), columns=2)


def _draw_worlds(report: Report, axes: Any) -> None:
    """Draw what estimators see in two worlds that differ in their ECE alone."""
    for estimator, colour, marker in (
        ("plug-in ECE", COLOURS.highlight, "s"),
        ("binned ECE", COLOURS.curve, "o"),
        ("Cutoff", COLOURS.other, "^"),
    ):
        seen = {
            world: report.column("value", part="seen", series=world, estimator=estimator)
            for world in ("hidden", "calibrated")
        }
        axes.plot(SIZES, seen["hidden"], color=colour, marker=marker, markersize=4, linewidth=1)
        axes.plot(
            SIZES, seen["calibrated"], color=colour, marker=marker, markersize=8, markerfacecolor="none", linestyle=""
        )
        is_high = estimator == "plug-in ECE"
        at = 0 if is_high else 2 if estimator == "binned ECE" else 3
        write_beside(
            axes,
            estimator,
            (SIZES[at], seen["hidden"][at]),
            colour,
            offset=(0.0, -9.0) if is_high else (6.0, 3.0) if at == 2 else (-7.0, -5.0),
            align=("left", "top") if is_high else ("left", "bottom") if at == 2 else ("right", "top"),
        )
    axes.axhline(TRUE_ECE, color=COLOURS.ink, linestyle=":", linewidth=1)
    muted = {"color": COLOURS.muted, "marker": "o", "linestyle": ""}
    axes.plot([], [], markersize=4, label="left panel: a world of ECE 1/3 (dotted)", **muted)
    axes.plot([], [], markersize=8, markerfacecolor="none", label="left panel: a world of ECE 0", **muted)
    against_rows(axes, ylabel="mean estimate", title="Two worlds look alike")

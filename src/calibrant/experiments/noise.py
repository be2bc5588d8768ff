"""The footnote of section 3.2: noise makes a forecast of small dCE actionable, and what that costs.

Add to the forecast f an independent U, uniform on [-width, width]. For every sign function s, w(v) = E[s(v + U)] is
bounded by 1 and changes by at most 1/width per unit, so that E[s(f + U)(Y - f)] = E[w(f)(Y - f)] is at most
smooth CE / width (width <= 1), and E|f + U - f| = width / 2. Hence ECE(f + U) <= smooth CE / width + width / 2.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

import calibrant
from calibrant.experiments.figures import COLOURS, WIDTH, headline, tidy, write_beside
from calibrant.experiments.reports import PAPER, PROJECT, Report, Settings, Statement, as_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERTURBATION = 0.001
THRESHOLD = 0.75
WIDTHS = tuple(float(width) for width in np.geomspace(0.0005, 0.25, 19))
POINTS = 20_000
ROUNDING = 1e-9


def run(settings: Settings) -> Report:
    """Add noise of growing width to the forecasts of Example 3.1, and to calibrated ones."""
    forecast = np.array([THRESHOLD + PERTURBATION, THRESHOLD - PERTURBATION])
    share = np.array([0.25, 0.75])
    before = calibrant.Tally.from_counts(forecast, rows=[1000, 3000], events=[0, 3000])
    smooth = calibrant.smooth_calibration_error(before)
    rows = [(width, *_noisy(forecast, share, width, smooth)) for width in settings.track(WIDTHS)]
    names = ("width", "ece", "bound", "risk", "gap", "best_risk", "changed", "price")
    table = as_table(names, rows)
    gap = calibrant.risk_gap(before, threshold=THRESHOLD, wrapper="any").gap
    return Report(
        name="noise",
        title="Noise makes forecasts of small dCE actionable, at a price",
        item="Section 3.2, footnote",
        settings=settings.record(None),
        statements=_statements(table, smooth, gap),
        table=table,
        findings={"smooth": smooth, "gap_without_noise": gap},
        size=(WIDTH, 3.6),
        draw=_draw,
    )


def _noisy(forecast: Any, share: Any, width: float, smooth: float) -> list[float]:
    """Return what becomes of the two forecasts of Example 3.1, exactly up to a fine grid of noisy values."""
    grid = np.linspace(forecast.min() - width, forecast.max() + width, POINTS + 1)
    value = 0.5 * (grid[1:] + grid[:-1])
    # The share of each forecast's noisy values that falls between two grid points.
    falls = np.diff(np.clip((grid[None, :] - forecast[:, None]) / (2.0 * width) + 0.5, 0.0, 1.0), axis=1)
    weight = share @ falls
    seen = weight > 0.0
    chance = (share * np.array([0.0, 1.0])) @ falls / np.where(seen, weight, 1.0)
    kept = np.clip(value[seen], 0.0, 1.0), np.clip(chance[seen], 0.0, 1.0), weight[seen]
    tally = calibrant.Tally.from_arrays(kept[1], kept[0], sample_weight=kept[2])
    with warnings.catch_warnings():
        # Chances, not outcomes, stand behind every value: nothing is learned from single rows.
        warnings.simplefilter("ignore", calibrant.CalibrationWarning)
        ece = calibrant.expected_calibration_error(tally)
        gap = calibrant.risk_gap(tally, threshold=THRESHOLD, wrapper="any").gap
    risk = float(calibrant.decision_risk(tally, threshold=THRESHOLD).risk)
    acts = falls[:, value >= THRESHOLD].sum(axis=1)
    changed = float(share @ np.abs(acts - (forecast >= THRESHOLD)))
    return [ece, min(1.0, smooth / width + width / 2.0), risk, gap, risk - gap, changed, _price(width)]


def _price(width: float) -> float:
    """Return what noise loses on calibrated uniform forecasts: the mean of |f - t| where it changes the decision."""
    value = (np.arange(POINTS) + 0.5) / POINTS
    flips = np.maximum(0.0, 0.5 - np.abs(value - THRESHOLD) / (2.0 * width))
    return float((np.abs(value - THRESHOLD) * flips).mean())


def _statements(table: dict[str, Any], smooth: float, gap: float) -> tuple[Statement, ...]:
    best = int(np.argmin(table["ece"]))
    width = table["width"]
    wide = width >= 10.0 * PERTURBATION
    return (
        Statement(
            item="Section 3.2, footnote",
            source=PAPER,
            claim="a little noise makes a forecast of small dCE actionable: its ECE, and so its risk gap, are small",
            measured=(
                f"risk gap {gap:.3f} without noise; with noise of width {width[best]:.3f} the gap is "
                f"{table['gap'][best]:.4f} and the ECE {table['ece'][best]:.4f}"
            ),
            holds=bool(table["gap"][best] <= table["ece"][best] + ROUNDING and table["ece"][best] < gap / 5.0),
        ),
        Statement(
            item="Noise",
            source=PROJECT,
            claim="ECE after noise <= smooth CE / width + width / 2",
            measured=f"largest share of the bound {(table['ece'] / table['bound']).max():.3f} (smooth CE {smooth:.4f})",
            holds=bool((table["ece"] <= table["bound"] + ROUNDING).all()),
        ),
        Statement(
            item="Section 3.2, footnote",
            source=PAPER,
            claim="decisions made with noise can be quite different from those without",
            measured=f"from width {width[wide][0]:.3f} on, {100 * table['changed'][wide].min():.0f}% or more change",
            holds=bool(table["changed"][wide].min() > 0.4),
        ),
        Statement(
            item="Noise",
            source=PROJECT,
            claim="the price: what the forecasts knew is lost, the best attainable loss rises from 0 towards 3/16",
            measured=f"{table['best_risk'][0]:.4f} at width {width[0]:.4f}, {table['best_risk'][-1]:.4f} at the widest",
            holds=bool(table["best_risk"][0] < 0.001 and table["best_risk"][-1] > 0.18),
        ),
        Statement(
            item="Noise",
            source=PROJECT,
            claim="on calibrated uniform forecasts noise only harms: it loses width^2 / 6",
            measured=f"largest relative difference {np.abs(table['price'] / (width**2 / 6.0) - 1.0)[wide].max():.1g}",
            holds=bool(np.allclose(table["price"][wide], width[wide] ** 2 / 6.0, rtol=0.01)),
        ),
    )


def _draw(report: Report, figure: Figure) -> None:
    headline(figure, "Noise makes such forecasts safe to act on, and destroys what they knew")
    left, right = figure.subplots(1, 2)
    width = report.column("width")
    for name, colour, marker in (
        ("bound", COLOURS.ink, ""),
        ("ece", COLOURS.curve, "o"),
        ("gap", COLOURS.highlight, "s"),
    ):
        left.plot(width, report.column(name), color=colour, marker=marker, markersize=3, linewidth=1.2)
    left.set_xscale("log")
    left.set_ylim(-0.1, 0.95)
    bound, ece = report.column("bound"), report.column("ece")
    above, below = ("right", "bottom"), ("right", "top")
    shown = int(np.searchsorted(-bound, -0.6))
    write_beside(left, "proved bound of the ECE", (width[shown], bound[shown]), COLOURS.ink, offset=(8.0, 2.0))
    write_beside(left, "ECE", (width[-1], ece[-1]), COLOURS.curve, offset=(0.0, 10.0), align=above)
    write_beside(left, "risk gap", (width[-1], 0.0), COLOURS.highlight, offset=(0.0, -5.0), align=below)
    tidy(left, xlabel="width of the noise", ylabel="error, or loss per row", title="Errors and savings fall ...")
    for name, colour, marker, style in (
        ("changed", COLOURS.muted, "", "--"),
        ("risk", COLOURS.highlight, "s", "-"),
        ("best_risk", COLOURS.other, "^", "-"),
        ("price", COLOURS.bound, "", "-."),
    ):
        right.plot(
            width, report.column(name), color=colour, marker=marker, linestyle=style, markersize=3, linewidth=1.2
        )
    right.set_xscale("log")
    right.set_ylim(-0.02, 0.6)
    end = width[-1]
    write_beside(right, "decisions that change", (end, 0.5), COLOURS.muted, offset=(0.0, 4.0), align=above)
    write_beside(right, "loss of acting", (width[0], 0.375), COLOURS.highlight, offset=(0.0, 5.0))
    write_beside(right, "best attainable loss", (end, 0.18), COLOURS.other, offset=(0.0, -5.0), align=below)
    write_beside(right, "harm to calibrated forecasts", (end, 0.012), COLOURS.bound, offset=(0.0, 5.0), align=above)
    tidy(right, xlabel="width of the noise", ylabel="share of rows, or loss per row", title="... at this price")

"""The figures of a validation study: its calibration curve over the histogram of forecasts, and its decision curve."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibrant.core.words import level_said
from calibrant.decisions.benefit_results import DecisionCurve
from calibrant.displays.decision_curve import DecisionCurveDisplay
from calibrant.displays.reliability import ReliabilityDisplay
from calibrant.reports.figures import FIRST_SIZE, Drawing, Styles, drawn
from calibrant.rows.tally import Tally
from calibrant.validations.results import Validation

CURVES = {
    "isotonic": "isotonic regression",
    "loess": "loess",
    "lowess": "lowess",
    "splines": "restricted cubic splines",
}
"""What curves are called in a legend."""


def draw_validation(found: Validation, tally: Tally, styles: Styles) -> Iterator[Drawing]:
    """Draw what a study found; nothing is computed but the histogram."""
    if found.curve is not None:
        named = {"curve": f"event rate by {CURVES.get(found.smoother, found.smoother)}; dashed: perfect calibration"}
        if found.curve.band is not None and found.curve.confidence_level is not None:
            named["band"] = f"{level_said(found.curve.confidence_level)} limits of it, at each forecast by itself"
        _, curve = drawn(
            ReliabilityDisplay.from_results(found.curve, tally).plot,
            styles,
            prefix="study",
            name="curve",
            tab="Calibration curve",
            heading="Forecast against event rate",
            reading=(
                "On the dashed diagonal the forecasts are right; below it they are too high, above it too low. The "
                "bars say how many rows have which forecast."
            ),
            size=FIRST_SIZE,
            named=named,
        )
        yield curve
    if found.net_benefit is not None and np.size(found.net_benefit.threshold) > 1:
        _, benefit = drawn(
            DecisionCurveDisplay.from_results(DecisionCurve(("model",), (found.net_benefit,))).plot,
            styles,
            prefix="study",
            name="benefit",
            tab="Decision curve",
            heading="Is acting on the forecasts worth it?",
            reading=(
                "Net benefit counts the events acted on, per row, and takes off the false alarms at the rate that the "
                "threshold sets. Where the curve is above both others the forecasts help somebody with that threshold. "
                "All three rise and fall together from sample to sample: whether the forecasts add something, a bar on "
                "the axis says, not where the band ends."
            ),
        )
        yield benefit

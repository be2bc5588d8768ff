"""What experiments on savings share: the proved bounds for three kinds of maps, as statements and in figures."""

from __future__ import annotations

from typing import Any, Literal

from calibrant.experiments.figures import COLOURS, tidy
from calibrant.experiments.reports import PAPER, PROJECT, Statement

Wrapper = Literal["any", "monotone", "nondecreasing"]

BOUNDS: dict[Wrapper, tuple[str, float, str]] = {
    "any": ("ece", 1.0, "ECE"),
    "monotone": ("cutoff", 2.0, "Cutoff"),
    "nondecreasing": ("cutoff", 1.0, "Cutoff"),
}
"""For each kind: the column of the measure that bounds its saving, the factor, and the measure in words."""


def within_bounds(table: dict[str, Any], item: str, *, noun: str, rounding: float) -> tuple[Statement, ...]:
    """State that maps (or rules: the noun says which) of no kind save more than their bound."""

    def bounded(item: str, source: str, wrapper: Wrapper, claim: str) -> Statement:
        measure, factor, _ = BOUNDS[wrapper]
        bound = factor * table[measure]
        return Statement(
            item=item,
            source=source,
            claim=claim,
            measured=f"largest share of the bound {(table[wrapper] / bound).max():.3f} in {bound.size:,} cases",
            holds=bool((table[wrapper] <= bound + rounding).all()),
        )

    return (
        bounded(item, PAPER, "any", f"no {noun} at all saves more than the ECE"),
        bounded(item, PAPER, "monotone", f"no monotone {noun} saves more than 2 Cutoff"),
        bounded(
            "Non-decreasing wrappers", PROJECT, "nondecreasing", f"no non-decreasing {noun} saves more than Cutoff"
        ),
    )


def label_panel(axes: Any, wrapper: Wrapper, reach: float, *, noun: str, ylabel: str) -> None:
    """Label the panel of one kind of maps, and add Cutoff where the bound is twice that."""
    if wrapper == "monotone":
        axes.plot(
            [0.0, reach], [0.0, reach], color=COLOURS.muted, linestyle=":", linewidth=1, label="Cutoff, for comparison"
        )
    titles = {"any": f"any {noun}", "monotone": f"monotone {noun}s", "nondecreasing": f"non-decreasing {noun}s"}
    tidy(axes, xlabel=BOUNDS[wrapper][2], ylabel=ylabel if wrapper == "any" else "", title=titles[wrapper])

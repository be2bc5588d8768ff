"""How every picture looks: colours by the role they play, in a light and a dark theme, and three sizes of type.

Displays, the report and the figures of the experiments all take them from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calibrant.rows.checks import check_choice

Theme = Literal["light", "dark"]

TITLE = 11.0
"""Points: what a picture shows, in a sentence above it."""

WORDS = 10.0
"""Points: what the axes are."""

SMALL = 9.0
"""Points: ticks, legends, and words beside lines."""

MARGIN = 0.15
"""Inches of paper around a picture."""


@dataclass(frozen=True)
class Palette:
    """The colours of a theme; no two roles of a theme share one, so that a page can map each to a variable of its own.

    Attributes
    ----------
    paper : str
        Background.
    ink : str
        Titles, axis labels, words.
    muted : str
        Tick labels, spines, and lines to compare with: zero, the diagonal.
    grid : str
        Grid lines.
    curve : str
        What was measured on the rows.
    band : str
        Fill of a band: what chance alone would show, or where the truth lies.
    highlight, highlight_fill : str
        What to look at, as a line or words, and as an area: the worst interval, the largest gap.
    bound : str
        A limit that a guarantee or a user sets.
    other : str
        A second curve to compare with.
    bars : str
        The histogram of forecasts.
    certified, undecided, refuted : str
        Verdicts; each has a marker of its own too.
    """

    paper: str
    ink: str
    muted: str
    grid: str
    curve: str
    band: str
    highlight: str
    highlight_fill: str
    bound: str
    other: str
    bars: str
    certified: str
    undecided: str
    refuted: str


PALETTES = {
    "light": Palette(
        paper="#ffffff",
        ink="#1c2128",
        muted="#5b6470",
        grid="#e4e7eb",
        curve="#0060a8",
        band="#d3e1ee",
        highlight="#b84300",
        highlight_fill="#fbe5d6",
        bound="#7d1a5e",
        other="#00785a",
        bars="#8b96a3",
        certified="#007f66",
        undecided="#8f6400",
        refuted="#a3123a",
    ),
    "dark": Palette(
        paper="#14181d",
        ink="#eceff2",
        muted="#a3adb8",
        grid="#2b323a",
        curve="#6cb6f5",
        band="#24405a",
        highlight="#ff9a57",
        highlight_fill="#4a2c19",
        bound="#f0c9f7",
        other="#4fcfa5",
        bars="#6b7683",
        certified="#4ed1a9",
        undecided="#f0cf6a",
        refuted="#ff6b5e",
    ),
}
"""The palette of each theme, "light" and "dark": the one place where colours are chosen."""


def palette_of(theme: Theme) -> Palette:
    """Return the palette of a theme."""
    return PALETTES[check_choice(theme, "theme", tuple(PALETTES))]

"""How figures look: the colours, sizes of type and margin of the displays, and a few habits shared by all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from calibrant.displays.base import dress, new_figure, write_beside
from calibrant.displays.palette import MARGIN, PALETTES, SMALL, TITLE, WORDS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "ALPHA_MAP",
    "COLOURS",
    "SERIES",
    "SMALL",
    "WIDTH",
    "WORDS",
    "against_rows",
    "draw_figure",
    "headline",
    "shared_legend",
    "tidy",
    "write_beside",
]

COLOURS = PALETTES["light"]
"""The colours of the displays, by the role they play."""

SERIES = (
    (COLOURS.curve, "o"),
    (COLOURS.highlight, "s"),
    (COLOURS.other, "^"),
    (COLOURS.bound, "D"),
    (COLOURS.undecided, "v"),
)
"""A colour and a marker for each of several series: nothing is told by colour alone."""

ALPHA_MAP = "cividis"
"""A colour map that reads the same with every kind of colour vision, and in grey."""

WIDTH = 7.2
"""Inches: the width of a page."""

_GAP = 0.5 * MARGIN  # inches between headline, panels and legend


def draw_figure(draw: Callable[[Figure], None], *, width: float, height: float) -> Figure:
    """Return a new figure, drawn, with panels between the headline and the legend."""
    figure = new_figure(height, width)
    draw(figure)
    above, below = (
        sum(words.get_window_extent().height for words in edge) / (figure.dpi * height)
        for edge in (figure.texts, figure.legends)
    )
    margin, gap = MARGIN / height, _GAP / height
    top, bottom = margin + above, margin + below - (0.0 if figure.legends else gap)
    figure.set_layout_engine("constrained", w_pad=MARGIN, h_pad=_GAP, rect=(0.0, bottom, 1.0, 1.0 - top - bottom))
    return figure


def headline(figure: Figure, words: str) -> None:
    """Say above a figure what it shows."""
    across, up = _margins(figure)
    figure.text(across, 1.0 - up, words, ha="left", va="top", fontsize=TITLE, color=COLOURS.ink)


def _margins(figure: Figure) -> tuple[float, float]:
    """Return the margin of a figure as shares of its width and height."""
    return MARGIN / figure.get_figwidth(), MARGIN / figure.get_figheight()


def tidy(axes: Any, *, xlabel: str, ylabel: str, title: str | None = None) -> None:
    """Label axes and give them the look of the displays."""
    dress(axes, COLOURS)
    axes.set_xlabel(xlabel, fontsize=WORDS, color=COLOURS.ink)
    axes.set_ylabel(ylabel, fontsize=WORDS, color=COLOURS.ink)
    if title is not None:
        axes.set_title(title, fontsize=WORDS, color=COLOURS.ink, loc="left")


def shared_legend(figure: Figure, panels: Any, *, columns: int) -> None:
    """Put one legend below all panels, each label once."""
    entries = {
        label: line for axes in panels.flat for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    across, up = _margins(figure)
    figure.legend(
        entries.values(),
        entries.keys(),
        loc="lower left",
        bbox_to_anchor=(across, up),
        borderaxespad=0.0,
        borderpad=0.0,
        ncols=columns,
        fontsize=SMALL,
        labelcolor=COLOURS.ink,
        frameon=False,
    )


def against_rows(axes: Any, *, ylabel: str, title: str | None = None) -> None:
    """Make both axes logarithmic, with the number of rows on the lower one."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    tidy(axes, xlabel="rows", ylabel=ylabel, title=title)
    axes.minorticks_off()

"""How figures look: colours that everybody can tell apart, and a few habits shared by all of them."""

from __future__ import annotations

from typing import Any

BLACK = "#000000"
GREY = "#6E6E6E"
BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
PINK = "#CC79A7"
YELLOW = "#E69F00"
SKY = "#56B4E9"
"""The colours of Okabe and Ito (2008), which differ for every kind of colour vision and in print."""

SERIES = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "^"), (PINK, "D"), (YELLOW, "v"), (SKY, "P"))
"""A colour and a marker for each of several series: nothing is told by colour alone."""

ALPHA_MAP = "cividis"
"""A colour map that reads the same with every kind of colour vision, and in grey."""


def tidy(axes: Any, *, xlabel: str, ylabel: str, title: str | None = None) -> None:
    """Label axes and take away what carries no information."""
    axes.set_xlabel(xlabel, fontsize=9)
    axes.set_ylabel(ylabel, fontsize=9)
    if title is not None:
        axes.set_title(title, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)


def shared_legend(figure: Any, panels: Any, *, columns: int) -> None:
    """Put one legend below all panels, each label once."""
    entries = {
        label: line for axes in panels.flat for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        entries.values(), entries.keys(), loc="outside lower center", ncols=columns, fontsize=8, frameon=False
    )


def against_rows(axes: Any, *, ylabel: str, title: str | None = None) -> None:
    """Make both axes logarithmic, with the number of rows on the lower one."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    tidy(axes, xlabel="rows n", ylabel=ylabel, title=title)

"""Rows for plots, and what a plot holds; shared by the files that test displays."""

import functools
import io
import re
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from calibrant import Tally
from calibrant.displays.palette import MARGIN, SMALL, TITLE, WORDS


def rows(
    size: int = 300, seed: int = 0, *, ties: int | None = None
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
    """Return outcomes and forecasts that are somewhat too high."""
    rng = np.random.default_rng(seed)
    p = rng.random(size) if ties is None else rng.integers(1, ties, size) / ties
    return (rng.random(size) < p**1.3).astype(int), p


@functools.cache
def million() -> Tally:
    """Return the tally of a million rows whose forecasts are a little off."""
    rng = np.random.default_rng(5)
    p = rng.beta(0.7, 2.0, 10**6)
    return Tally.from_arrays(rng.random(p.size) < p + 0.03 * np.sin(6 * p), p)


def drawn_words(figure: Figure) -> list[Text]:
    """Return every text that a picture of a figure shows."""
    drawn: list[Text] = []
    draw = Text.draw

    def noted(text: Text, renderer: Any, *args: Any, **options: Any) -> None:
        if text.get_visible() and text.get_text().strip():
            drawn.append(text)
        draw(text, renderer, *args, **options)

    figure.draw_without_rendering()  # once, so that everything is in its place
    figure.set_layout_engine("none")  # and stays there: to find its place again takes longer than to draw it
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", noted)
        figure.draw_without_rendering()
    return list(dict.fromkeys(drawn))


def check_words(figure: Figure) -> None:
    """Assert that all words of a figure have one of three sizes, keep a margin, and leave each other room."""
    words = drawn_words(figure)
    assert {text.get_fontsize() for text in words} <= {SMALL, WORDS, TITLE}
    boxes = {text: Text.get_window_extent(text) for text in words}
    width, height = figure.get_size_inches() * figure.dpi
    margin = 0.5 * MARGIN * figure.dpi
    for text, box in boxes.items():
        said = text.get_text()
        assert margin <= box.x0 < box.x1 <= width - margin, said
        assert margin <= box.y0 < box.y1 <= height - margin, said
    for one, other in combinations(words, 2):
        first, second = boxes[one], boxes[other]
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        up = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert min(across, up) < 1.0, (one.get_text(), other.get_text())


def drawn_colours(figure: Figure) -> set[str]:
    """Return every colour that a picture of a figure holds."""
    picture = io.StringIO()
    figure.set_layout_engine("none")  # which would draw everything twice, in the same colours
    figure.savefig(picture, format="svg")
    return set(re.findall(r"#[0-9a-f]{6}\b", picture.getvalue()))

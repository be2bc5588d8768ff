"""Several classes: populations that tell questions apart, slow and obvious answers, and rows drawn from forecasts."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import brute_force
import numpy as np
import numpy.typing as npt

from calibrant.rows.classes import QuestionsAsked

Array = npt.NDArray[Any]

ASKED: tuple[QuestionsAsked, ...] = ("confidence", "classwise", "top_label", "pairs", "subsets")


def listed(*parts: tuple[tuple[float, ...], tuple[int, ...]]) -> tuple[Array, Array]:
    """Return classes and forecasts of rows: each part is a forecast and how many rows of each class have it."""
    y = np.concatenate([np.repeat(np.arange(len(counts)), counts) for _, counts in parts])
    p = np.concatenate([np.tile(forecast, (sum(counts), 1)) for forecast, counts in parts])
    return y, p


RIGHT_BY_CLASS = listed(
    ((0.33, 0.175, 0.175, 0.32), (130, 35, 35, 0)),
    ((0.33, 0.35, 0.0, 0.32), (2, 70, 0, 128)),
)
"""Every class is calibrated, and the confidence is off by 0.16."""

RIGHT_ON_TOP = listed(((0.5, 0.499, 0.001), (500, 0, 500)))
"""The top label is calibrated, and two classes are off by 0.499."""

RIGHT_ONE_BY_ONE = listed(
    ((0.31, 0.29, 0.2, 0.2), (51, 29, 20, 0)),
    ((0.31, 0.2, 0.29, 0.2), (11, 20, 29, 40)),
)
"""Every class and every top label is calibrated, and the first two classes together are off by 0.1."""


def columns(y: Array, p: Array, asked: str) -> Iterator[tuple[Array, Array]]:
    """Make outcomes and forecasts of every question, row by row."""
    count = p.shape[1]
    top = np.argmax(p, axis=1)
    if asked == "confidence":
        yield np.array(y == top, dtype=float), p[np.arange(y.size), top]
    elif asked == "classwise":
        for k in range(count):
            yield np.array(y == k, dtype=float), p[:, k]
    elif asked == "top_label":
        for k in range(count):
            mask = top == k
            yield np.where(mask, y == k, 0.0), np.where(mask, p[:, k], 0.0)
    elif asked == "pairs":
        for j, k in combinations(range(count), 2):
            yield (1.0 + (y == j) - (y == k)) / 2.0, (1.0 + p[:, j] - p[:, k]) / 2.0
    else:
        for size in range(1, count):
            for chosen in combinations(range(count), size):
                yield np.isin(y, chosen).astype(float), np.minimum(p[:, chosen].sum(axis=1), 1.0)


def largest(y: Array, p: Array, asked: str) -> float:
    """Return the largest Cutoff error of a question, over all intervals of all questions."""
    return max(brute_force.cutoff(outcome, forecast) for outcome, forecast in columns(y, p, asked))


def drawn(rng: np.random.Generator, p: Array) -> Array:
    """Draw a class per row from its probabilities."""
    return np.array((p.cumsum(axis=1) < rng.random((p.shape[0], 1))).sum(axis=1))


def some_rows(rng: np.random.Generator, rows: int, count: int, *, tied: bool = False) -> tuple[Array, Array]:
    """Return classes and forecasts that have little to do with them, every class with a row."""
    p: Array = rng.dirichlet(np.full(count, 0.7), rows)
    if tied:
        p = np.maximum(np.round(p * 4.0), 0.0)
        p[p.sum(axis=1) == 0.0, 0] = 1.0
        p /= p.sum(axis=1, keepdims=True)
    y = rng.integers(count, size=rows)
    y[:count] = np.arange(count)
    return y, p

"""Probabilities of several classes from linear parts: the softmax, and the most likely scaling of what goes into it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from calibrant.core.types import FloatArray, IntArray

_CHUNK = 1 << 16  # numbers that stay in the processor's cache from one operation to the next
_HELD = 1 << 21  # logits of fewer rows than these are kept from one step to the next, 16 MB of them
_STEPS = 200
_MOST_SHARP = 2.0**60  # by which logits are multiplied; beyond it every forecast is 0 or 1 to the last digit
_SETTLED = 1e-15  # relative length of a step that is the last
_CLOSE = 1e-9  # that of a Newton step in one number whose error is its square
_SURE = 1e-10  # squared step, in the likelihood's own metric, below which Newton steps need no check
_UNSEEN = 1e-10  # of the largest curvature: directions below this change no forecast at all
_FLATTENED = 1e-12  # of the curvature at the start: below this the likelihood rises for ever, or so little that it may
_ENOUGH_DESCENT = 1e-4

Logits = Callable[[slice], FloatArray]
"""Gives the logits of some rows, one column per class; minus infinity for a class that is ruled out."""


class Draws(NamedTuple):
    """What a scaling is fitted to: logits, the number of the class of each row, and weights (None for ones)."""

    logits: Logits
    codes: IntArray
    weight: FloatArray | None

    def parts(self) -> Iterator[tuple[FloatArray, IntArray, FloatArray]]:
        """Go through logits, classes and weights of some thousand rows at a time."""
        width = self.logits(slice(0, 1)).shape[1]
        step = max(1, _CHUNK // width)
        for begin in range(0, self.codes.size, step):
            part = slice(begin, begin + step)
            codes = self.codes[part]
            yield self.logits(part), codes, np.ones(codes.size) if self.weight is None else self.weight[part]

    def held(self) -> list[tuple[FloatArray, IntArray, FloatArray]] | _Again:
        """Return the parts, in memory where they are few."""
        width = self.logits(slice(0, 1)).shape[1]
        return list(self.parts()) if self.codes.size * width <= _HELD else _Again(self)


class _Again:
    """Parts that are computed anew each time."""

    def __init__(self, draws: Draws) -> None:
        self.draws = draws

    def __iter__(self) -> Iterator[tuple[FloatArray, IntArray, FloatArray]]:
        return self.draws.parts()


def softmax(linear: FloatArray) -> FloatArray:
    """Return exp(z_k) / sum_j exp(z_j) of every row, without overflow; minus infinity gives exactly 0."""
    with np.errstate(under="ignore"):
        rate: FloatArray = np.exp(linear - linear.max(axis=1, keepdims=True))
    rate /= rate.sum(axis=1, keepdims=True)
    return rate


def log_sum(linear: FloatArray) -> FloatArray:
    """Return ln(sum_j exp(z_j)) of every row, without overflow."""
    top = linear.max(axis=1)
    with np.errstate(under="ignore"):
        found: FloatArray = top + np.log(np.exp(linear - top[:, None]).sum(axis=1))
    return found


# --- Temperature ------------------------------------------------------------------------------------------------------


class Sharpness(NamedTuple):
    """By how much logits are multiplied, or why nothing is the most likely: "no better" than 0, or "no end"."""

    value: float
    problem: str | None


def fit_sharpness(draws: Draws) -> Sharpness:
    """Return the s > 0 for which softmax(s z) makes the classes that happened most likely; 1/s is the temperature.

    The mean negative log-likelihood is convex in s, with slope mean(E_q z - z_y) and second derivative mean(Var_q z),
    q = softmax(s z). The slope is brought to 0 by Newton steps, kept between values where it has different signs.
    """
    parts = draws.held()
    missed = total = reach = 0.0
    for logits, codes, weight in parts:
        finite = np.isfinite(logits)
        known = np.where(finite, logits, 0.0)
        chosen = _chosen(logits, codes)
        mean = known.sum(axis=1) / finite.sum(axis=1)
        total += float(weight @ (chosen - mean))
        reach += float(weight @ np.abs(chosen - mean))
        missed += float(weight @ (logits.max(axis=1) - chosen))
    if not total > 1e-12 * reach:
        return Sharpness(0.0, "no better")
    if missed <= 0.0:
        return Sharpness(math.inf, "no end")
    return _root(parts)


def _root(parts: Any) -> Sharpness:
    """Return where the slope, negative at 0 and rising, is 0."""
    low, high, at = 0.0, math.inf, 1.0
    for _ in range(_STEPS):
        slope, bend = _slope_and_bend(parts, at)
        if slope == 0.0:
            break
        low, high = (at, high) if slope < 0.0 else (low, at)
        there = at - slope / bend if bend > 0.0 else math.inf
        if not low < there < high:
            there = 2.0 * at if math.isinf(high) else at / 2.0 if low == 0.0 else math.sqrt(low * high)
        if math.isinf(high) and there > 4.0 * at:
            there = 4.0 * at
        if abs(there - at) <= _CLOSE * at:
            at = there
            break
        at = there
        if at > _MOST_SHARP:
            return Sharpness(math.inf, "no end")
    return Sharpness(at, None)


def _slope_and_bend(parts: Any, sharpness: float) -> tuple[float, float]:
    slope = bend = 0.0
    for logits, codes, weight in parts:
        rate = softmax(sharpness * logits)
        known = np.where(np.isfinite(logits), logits, 0.0)
        chosen = _chosen(logits, codes)
        mean = np.einsum("nk,nk->n", rate, known)
        slope += float(weight @ (mean - chosen))
        bend += float(weight @ np.einsum("nk,nk->n", rate, np.square(known - mean[:, None])))
    return slope, bend


def _chosen(values: FloatArray, codes: IntArray) -> FloatArray:
    found: FloatArray = values[np.arange(codes.size), codes]
    return found


# --- Vector scaling ---------------------------------------------------------------------------------------------------


class Scaling(NamedTuple):
    """Slopes and levels of softmax(slope_k z_k + level_k), the levels with mean 0, and whether the search settled."""

    slopes: FloatArray
    levels: FloatArray
    settled: bool


def fit_scaling(draws: Draws, targets: FloatArray) -> Scaling:
    """Return the slope and the level of each class that make the classes that happened most likely.

    ``targets`` has a row of probabilities for each class that may happen, which is what the row is taken for.

    The mean negative log-likelihood is convex. Logits are brought to mean 0 and mean square 1, class by class; then
    directions that change no forecast (a level for all classes, logits that are all the same) are left out, by the
    eigenvectors of the curvature at equal rates, in whose metric damped Newton steps are taken from the map that
    changes nothing. What the rows cannot tell stays as it was.
    """
    parts = draws.held()
    weight_total, centre, scale = _centre_and_scale(parts)
    search = _Search(parts, targets, weight_total, centre, scale)
    # slope z + level = (slope scale) x + (level + slope centre) for x = (z - centre) / scale
    found, settled = search.minimise(np.concatenate([scale, centre]))
    slopes = found[: centre.size] / scale
    levels = found[centre.size :] - slopes * centre
    return Scaling(slopes, levels - levels.mean(), settled)


def _centre_and_scale(parts: Any) -> tuple[float, FloatArray, FloatArray]:
    """Return the total weight, and mean and spread of the logits of each class."""
    total, sums, squares = 0.0, np.zeros(0), np.zeros(0)
    for logits, _, weight in parts:
        total += float(weight.sum())
        sums = weight @ logits + (sums if sums.size else 0.0)
    centre = sums / total
    for logits, _, weight in parts:
        squares = weight @ np.square(logits - centre) + (squares if squares.size else 0.0)
    scale = np.sqrt(squares / total)
    scale[scale <= _UNSEEN * np.abs(centre)] = 1.0  # rounding, or nothing at all
    return total, centre, scale


class _Search:
    """The mean negative log-likelihood of vector scaling, and the search for its minimum."""

    def __init__(self, parts: Any, targets: FloatArray, total: float, centre: FloatArray, scale: FloatArray) -> None:
        self.parts, self.targets = parts, targets
        self.total, self.centre, self.scale = total, centre, scale

    def _chunks(self, found: FloatArray) -> Iterator[tuple[FloatArray, FloatArray, IntArray, FloatArray]]:
        slopes, levels = np.split(found, 2)
        for logits, codes, weight in self.parts:
            column = (logits - self.centre) / self.scale
            yield column, column * slopes + levels, codes, weight

    def value_at(self, found: FloatArray) -> float:
        """Return the mean of ln(sum_k exp(u_k)) - sum_k t_k u_k."""
        total = 0.0
        for _, linear, codes, weight in self._chunks(found):
            total += float(weight @ (log_sum(linear) - np.einsum("nk,nk->n", self.targets[codes], linear)))
        return total / self.total

    def slope_and_bend(self, found: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the matrix of second derivatives."""
        classes = found.size // 2
        slope, bend = np.zeros(found.size), np.zeros((found.size, found.size))
        place = np.arange(classes)
        for column, linear, codes, weight in self._chunks(found):
            rate = softmax(linear)
            expected = weight[:, None] * rate
            columns = np.concatenate([rate * column, rate], axis=1)
            bend -= (weight[:, None] * columns).T @ columns
            bend[place, place] += np.einsum("nk,nk,nk->k", expected, column, column)
            crossed = np.einsum("nk,nk->k", expected, column)
            bend[place, place + classes] += crossed
            bend[place + classes, place] += crossed
            bend[place + classes, place + classes] += expected.sum(axis=0)
            expected -= weight[:, None] * self.targets[codes]
            slope += np.concatenate([np.einsum("nk,nk->k", expected, column), expected.sum(axis=0)])
        return slope / self.total, bend / self.total

    def minimise(self, start: FloatArray) -> tuple[FloatArray, bool]:
        """Return the best coefficients, and whether the search settled."""
        _, bend = self.slope_and_bend(np.zeros_like(start))
        curvature, direction = np.linalg.eigh(bend)
        seen = curvature > _UNSEEN * curvature[-1]
        if not seen.any():
            return start, True
        basis = direction[:, seen] / np.sqrt(curvature[seen])
        found, value = start, self.value_at(start)
        for _ in range(_STEPS):
            slope, bend = self.slope_and_bend(found)
            reduced, inner = basis.T @ slope, basis.T @ bend @ basis
            if not np.linalg.eigvalsh(inner)[0] > _FLATTENED:
                return found, False
            move = -np.linalg.solve(inner, reduced)
            step, decrement = basis @ move, float(-reduced @ move)
            if decrement <= _SURE:
                found = found + step
                if decrement <= _SURE**2 or float(np.abs(step).max()) <= _SETTLED * float(np.abs(found).max()):
                    return found, bool(np.abs(move).max() <= 1e-4)
                value = self.value_at(found)
                continue
            while not (lower := self.value_at(found + step)) <= value - _ENOUGH_DESCENT * decrement:
                step, decrement = step / 2.0, decrement / 2.0
                if float(np.abs(step).max()) <= _SETTLED * float(np.abs(found).max()):
                    return found, False
            found, value = found + step, lower
        return found, False

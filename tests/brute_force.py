"""Slow, obvious ways to compute the measures, and random rows to compare on. Nothing here uses calibrant."""

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from scipy.optimize import linprog

Array = npt.NDArray[Any]
Column = Array | Sequence[float]
Loss = Callable[[float, bool, float], float]


def merged(y: Column, p: Column, w: Column | None = None) -> tuple[Array, Array, Array, Array]:
    """Distinct forecasts, with total weight, residual and outcome, from a dictionary."""
    w = [1.0] * len(p) if w is None else w
    groups: dict[float, list[float]] = {}
    for outcome, forecast, weight in zip(y, p, w, strict=True):
        if weight > 0:
            total = groups.setdefault(float(forecast) + 0.0, [0.0, 0.0, 0.0])
            total[0] += weight
            total[1] += weight * (outcome - forecast)
            total[2] += weight * outcome
    forecasts = sorted(groups)
    columns = np.array([groups[forecast] for forecast in forecasts])
    return np.array(forecasts), columns[:, 0], columns[:, 1], columns[:, 2]


def cutoff(y: Column, p: Column, w: Column | None = None) -> float:
    """Try every interval of forecasts."""
    _, weight, residual, _ = merged(y, p, w)
    intervals = itertools.combinations(range(len(residual) + 1), 2)
    return float(max(abs(residual[i:j].sum()) for i, j in intervals) / weight.sum())


def ks(y: Column, p: Column, w: Column | None = None) -> float:
    """Try every interval that starts at the lowest forecast."""
    _, weight, residual, _ = merged(y, p, w)
    return float(max(abs(residual[:j].sum()) for j in range(1, len(residual) + 1)) / weight.sum())


def smooth(y: Column, p: Column, w: Column | None = None, lipschitz: float = 1.0) -> float:
    """Solve the linear program over 1-Lipschitz weights in [-1, 1]; or over L-Lipschitz ones."""
    forecast, weight, residual, _ = merged(y, p, w)
    size = len(forecast)
    rows = np.diff(np.eye(size), axis=0)
    options = {"A_ub": np.vstack([rows, -rows]), "b_ub": np.tile(lipschitz * np.diff(forecast), 2)} if size > 1 else {}
    return float(_maximum(residual, bounds=(-1, 1), **options) / weight.sum())


def bounded_variation(y: Column, p: Column, variation: float, w: Column | None = None) -> float:
    """Solve the linear program over weights in [-1, 1] of bounded total variation."""
    _, weight, residual, _ = merged(y, p, w)
    size = len(residual)
    if size == 1:
        return float(abs(residual[0]) / weight.sum())
    steps = np.diff(np.eye(size), axis=0)
    bound = np.eye(size - 1)
    rows = np.block([[steps, -bound], [-steps, -bound], [np.zeros((1, size)), np.ones((1, size - 1))]])
    limits = np.concatenate([np.zeros(2 * (size - 1)), [variation]])
    objective = np.concatenate([residual, np.zeros(size - 1)])
    bounds = [(-1, 1)] * size + [(0, None)] * (size - 1)
    return float(_maximum(objective, A_ub=rows, b_ub=limits, bounds=bounds) / weight.sum())


def _maximum(objective: Array, **constraints: Any) -> Any:
    # Scaled to size 1 and solved to the tightest tolerance: the default treats values below 1e-7 as zero.
    scale = np.abs(objective).max() or 1.0
    tight = {"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10}
    return -scale * linprog(-objective / scale, options=tight, **constraints).fun


def best_signs(y: Column, p: Column, changes: int, w: Column | None = None) -> float:
    """Try every pattern of signs with at most so many changes."""
    _, weight, residual, _ = merged(y, p, w)
    patterns = itertools.product([-1.0, 1.0], repeat=len(residual))
    allowed = (np.array(signs) for signs in patterns if np.count_nonzero(np.diff(signs)) <= changes)
    return float(max(float(signs @ residual) for signs in allowed) / weight.sum())


def decision_loss(y: float, acts: bool, threshold: float) -> float:
    """Loss of one row: the threshold for acting without an event, the rest for an event missed."""
    return threshold * (1 - y) if acts else (1 - threshold) * y


def sign_loss(y: float, acts: bool, threshold: float) -> float:
    """Loss of one row: its distance from the threshold, when that was guessed to be on the other side."""
    return abs(y - threshold) if acts != (y > threshold) else 0.0


def mean_loss(
    y: Column,
    p: Column,
    w: Column | None,
    acts: Callable[..., Any],
    threshold: float,
    loss: Loss = decision_loss,
) -> float:
    """Mean loss of a rule, row by row; ``acts`` says for a forecast whether to act."""
    w = [1.0] * len(p) if w is None else w
    pairs = zip(y, p, w, strict=True)
    return float(sum(weight * loss(outcome, acts(forecast), threshold) for outcome, forecast, weight in pairs) / sum(w))


def best_risk(
    y: Array, p: Array, threshold: float, wrapper: str, w: Array | None = None, loss: Loss = decision_loss
) -> float:
    """Try every cutoff, in one direction or both; or, for any wrapper, both actions at every distinct forecast."""
    if wrapper == "any":
        w = np.ones(len(p)) if w is None else w
        total = 0.0
        for forecast in set(p):
            here = p == forecast
            share = w[here].sum() / w.sum()
            if share > 0:
                never, always = (
                    mean_loss(y[here], p[here], w[here], rule, threshold, loss)
                    for rule in (lambda _: False, lambda _: True)
                )
                total += share * min(never, always)
        return total
    cuts = [*p, -1.0, 2.0]
    rules = [functools.partial(operator.le, cut) for cut in cuts]
    if wrapper == "monotone":
        rules += [functools.partial(operator.ge, cut) for cut in cuts]
    return min(mean_loss(y, p, w, rule, threshold, loss) for rule in rules)


def isotonic(y: Column, p: Column, w: Column | None = None) -> Array:
    """Non-decreasing least squares at each row's forecast, by the max-min formula over runs of forecasts."""
    forecast, weight, _, outcome = merged(y, p, w)
    size = len(forecast)
    mean = {(i, j): outcome[i:j].sum() / weight[i:j].sum() for i in range(size) for j in range(i + 1, size + 1)}
    fit = [max(min(mean[i, j] for j in range(k + 1, size + 1)) for i in range(k + 1)) for k in range(size)]
    return np.array([dict(zip(forecast, fit, strict=True))[q + 0.0] for q in p])


GRID = [0.0, 0.1, 0.25, 0.3, 0.5, 0.6, 0.75, 0.9, 1.0]
AWKWARD = [np.finfo(float).tiny, 2.0**-149, 1e-38, 2.0**-52, 2.0**-24, 1e-5, 1 / 3, 0.99999, 1.0 - 2.0**-53]


def _numbers(rng: np.random.Generator, size: int, on_grid: float) -> Array:
    """Numbers in [0, 1]: a share of the grid; the others are awkward, anywhere, or of any size down to 2^-1021."""
    anywhere = rng.random(size)
    any_size = np.ldexp(0.5 + anywhere / 2.0, -rng.integers(0, 1021, size))
    kind = rng.integers(0, 6, size)
    awkward = np.take(AWKWARD, rng.integers(0, len(AWKWARD), size))
    others = np.choose(kind, [awkward, any_size, *[anywhere] * 4])
    return np.where(rng.random(size) < on_grid, np.take(GRID, rng.integers(0, len(GRID), size)), others)


Rows = tuple[Array, Array, Array | None]
WEIGHTS = [0.0, 0.5, 1.0, 2.0, 3.7]
FEW = 6
NUMBER = st.one_of(st.sampled_from(GRID), st.floats(0.0, 1.0, allow_subnormal=False))
EITHER = st.booleans()
DISTINCT, ON_GRID = st.sampled_from([None] * 5 + [3, 1]), st.sampled_from([1.0, 0.5, 0.5, 0.0])
SEED = st.binary(min_size=8, max_size=8)
EVENT, WEIGHT = st.sampled_from([0.0, 1.0]), st.sampled_from(WEIGHTS)


@st.composite
def rows(draw: st.DrawFn, most: int = 30, weighted: bool | None = None, binary: bool | None = None) -> Rows:
    """Outcomes, forecasts and weights (None for unit ones): ties, fractions and the ends 0 and 1 included.

    More often than not a few rows, which Hypothesis draws number by number and so knows how to make odd, and small;
    else up to ``most``, of which it draws only what they are like and a seed: many numbers take long to draw.
    """
    is_binary = draw(EITHER) if binary is None else binary
    has_weights = draw(EITHER) if weighted is None else weighted
    if draw(EITHER):
        found = draw(_few_rows(min(most, FEW), has_weights, is_binary))
    else:
        found = draw(_seeded_rows(most, has_weights, is_binary))
    weights = found[2]
    if weights is not None and not weights.any():
        weights[0] = 1.0
    return found


@st.composite
def _few_rows(draw: st.DrawFn, most: int, has_weights: bool, is_binary: bool) -> Rows:
    size = draw(_whole_numbers(most))
    forecasts = draw(_lists(NUMBER, size))
    outcomes = draw(_lists(EVENT if is_binary else NUMBER, size))
    weights = draw(_lists(WEIGHT, size)) if has_weights else None
    return np.array(outcomes), np.array(forecasts), None if weights is None else np.array(weights)


# To make a strategy takes longer than to draw from it.
_whole_numbers = functools.cache(functools.partial(st.integers, 1))
_sizes = functools.cache(lambda most: st.sampled_from(range(1, most + 1)))


@functools.cache
def _lists(element: st.SearchStrategy[float], size: int) -> st.SearchStrategy[list[float]]:
    return st.lists(element, min_size=size, max_size=size)


@st.composite
def _seeded_rows(draw: st.DrawFn, most: int, has_weights: bool, is_binary: bool) -> Rows:
    size, distinct, on_grid = draw(_sizes(most)), draw(DISTINCT) or most, draw(ON_GRID)
    # Bytes, since Hypothesis at times copies one integer of an example into another: the same rows would come again.
    rng = np.random.default_rng([*draw(SEED)])
    forecasts = _numbers(rng, most, on_grid)[:size]
    if distinct < most:
        forecasts = np.resize(forecasts[:distinct], size)
    outcomes = (rng.random(most) < rng.random()).astype(float) if is_binary else _numbers(rng, most, on_grid)
    weights = np.take(WEIGHTS, rng.integers(0, len(WEIGHTS), most))[:size] if has_weights else None
    return outcomes[:size], forecasts, weights

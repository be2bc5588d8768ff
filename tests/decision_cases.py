"""What the tests of risks, gaps and scores share: rows, thresholds, certificates to start from."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import brute_force
import pytest
from hypothesis import strategies as st

from calibrant import Tally
from calibrant.certificates import ConfidenceInterval
from calibrant.decisions.results import Wrapper

WRAPPERS: list[Wrapper] = ["nondecreasing", "monotone", "any"]

thresholds = st.one_of(st.sampled_from(brute_force.GRID), st.floats(0.0, 1.0))


def refused(message: str) -> AbstractContextManager[Any]:
    return pytest.raises(ValueError, match=message)


def tallied(
    data: tuple[brute_force.Array, brute_force.Array, brute_force.Array | None],
) -> tuple[brute_force.Array, brute_force.Array, brute_force.Array | None, Tally]:
    """Rows of weight 0 dropped, and their tally: random fractions beside 0/1 forecasts look swapped to the gate."""
    y, p, w = data
    if w is not None:
        y, p, w = y[w > 0], p[w > 0], w[w > 0]
    return y, p, w, Tally.from_arrays(y, p, sample_weight=w)


def from_up(threshold: float) -> Callable[[float], bool]:
    return lambda forecast: forecast >= threshold


ASSUMPTIONS = ("rows are independent draws from one population", "the forecaster was fixed without looking at them")


def limit(
    measure: str = "cutoff",
    upper: float = 0.03,
    alternative: str = "less",
    target: str = "population",
    finite_sample: bool = True,
    confidence_level: float = 0.95,
    **more: Any,
) -> ConfidenceInterval:
    return ConfidenceInterval(
        measure=measure,
        estimate=0.01,
        lower=0.0,
        upper=upper,
        confidence_level=confidence_level,
        alternative=alternative,
        method="adaptive",
        rows=5000,
        n_eff=5000.0,
        target=target,
        finite_sample=finite_sample,
        assumptions=ASSUMPTIONS,
        **more,
    )


def direct_limit(thresholds: tuple[float, float] = (0.0, 1.0), **changes: Any) -> ConfidenceInterval:
    """Return a limit of the risk gap."""
    return limit("risk_gap", thresholds=thresholds, **changes)


ROWS = ([0, 1, 1, 0], [0.1, 0.4, 0.6, 0.9])

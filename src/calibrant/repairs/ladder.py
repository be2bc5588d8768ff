"""The rule of the guard: maps are tried in turn, and the first that is calibrated on its own rows is kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeVar

from calibrant.certificates.margins import paper_margin
from calibrant.core.errors import UndefinedError
from calibrant.core.laws import brownian_range
from calibrant.core.voices import Phrase
from calibrant.core.words import measured
from calibrant.measures.results import told_apart
from calibrant.repairs.fits import Sample
from calibrant.repairs.plain import ConstantMap, Ends, IsotonicMap, PlainMap, PlattMap, most_moved
from calibrant.repairs.results import ROUNDING, LadderRung

TOLERANCES = ("null-95", "paper")
NULL_LEVEL = 0.95

Rung = TypeVar("Rung", bound=PlainMap)


def climbed(
    rungs: Iterable[tuple[str, Rung]], sample: Sample, tolerance: str | float, fit: Callable[[Rung], float]
) -> tuple[Rung, tuple[LadderRung, ...]]:
    """Return the first map whose error on the rows it was fitted to is tolerated, and what was tried.

    ``rungs`` have names; ``fit`` fits one to the sample and returns its error there. The last one has no error on its
    own rows, or one that is tolerated, so that one is always kept.
    """
    found: list[LadderRung] = []
    for name, rung in rungs:
        try:
            error = fit(rung)
        except UndefinedError as problem:
            why = Phrase("it could not be fitted: {why}", why=problem.phrase)
            found.append(LadderRung(name, None, None, False, why))
            continue
        tolerated = _tolerated(rung, sample, tolerance)
        kept = error <= tolerated + ROUNDING
        comparison = "within" if kept else "above"
        said = measured(error, 4), measured(tolerated, 4)
        if said[0] == said[1] and not kept:
            said = told_apart(error, tolerated)
        reason = f"its error of {said[0]} on the fitting rows is {comparison} the tolerance of {said[1]}"
        found.append(LadderRung(name, error, tolerated, kept, reason))
        if kept:
            break
    return rung, tuple(found)


def guarded_map(sample: Sample, ends: Ends) -> tuple[str, PlainMap, tuple[LadderRung, ...]]:
    """Return what `GuardedRecalibrator` keeps of its own ladder, by its name there, as a map alone."""
    steps = IsotonicMap()
    steps.ends = ends
    rungs: list[tuple[str, PlainMap]] = [
        ("PlattRecalibrator", PlattMap()),
        ("IsotonicRecalibrator", steps),
        ("ConstantRecalibrator", ConstantMap()),
    ]
    kept, tried = climbed(rungs, sample, "null-95", lambda rung: rung._fit_map(sample)().cutoff)
    return tried[-1].recalibrator, kept, tried


def _tolerated(rung: PlainMap, sample: Sample, tolerance: str | float) -> float:
    least = moved_by_design(rung, sample.weight_total)
    if tolerance == "paper":
        return max(least, paper_margin(sample.weight_total, 1.0 - NULL_LEVEL))
    if tolerance == "null-95":
        forecast = rung._mapped(sample.value)
        return max(least, null_quantile(sample.mean(forecast * (1.0 - forecast)), sample.weight_total))
    return max(least, float(tolerance))


def moved_by_design(rung: PlainMap, weight_total: float) -> float:
    """Return the error on its own rows that a rung may have by design."""
    return most_moved(rung.ends, weight_total) if isinstance(rung, IsotonicMap) else 0.0


def null_quantile(variance: float, rows: float) -> float:
    """Return what the Cutoff error of calibrated forecasts stays below in 95% of cases, for many rows."""
    return _null_range() * math.sqrt(max(variance, 0.0) / rows)


@cache
def _null_range() -> float:
    return float(brownian_range.ppf(NULL_LEVEL))

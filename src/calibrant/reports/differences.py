"""Models of a report side by side: the differences of their errors on the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.comparisons.results import ModelComparison
from calibrant.comparisons.side_by_side import compare_models
from calibrant.reports.questions import Question
from calibrant.reports.results import Omission
from calibrant.rows.checks import check_codes
from calibrant.rows.paired import PairedColumns

ALL_PAIRS = 4
"""Up to so many models are compared two by two; of more, each is compared with the first."""

SECTION = "differences"

_NOT_THE_SAME = "models are compared row by row, which takes rows in memory that are the same for all of them"
_ONCE_EACH = "they are known where each row counts once, and not where each cluster does"
_NEIGHBOURS = "they have no limits where neighbouring clusters may depend on each other"


def compare(
    columns: PairedColumns | None, question: Question, count: int
) -> tuple[ModelComparison | None, tuple[Omission, ...]]:
    """Return the differences of some models, or why they are left out; nothing of a single one."""
    if count < 2:
        return None, ()
    reason = _refusal(columns, question)
    if reason or columns is None:
        return None, (Omission(SECTION, reason),)
    rows = _in_order(columns)
    clusters = question.clusters
    comparison = compare_models(
        rows,
        reference=next(iter(rows.columns)) if count > ALL_PAIRS else None,
        max_cluster_size=None if clusters is None else clusters.max_size,
        confidence_level=question.confidence_level,
        rng=question.rng,
    )
    return comparison, ()


def _refusal(columns: PairedColumns | None, question: Question) -> str:
    if columns is None:
        return _NOT_THE_SAME
    if question.clusters is None:
        return ""
    if question.clusters.target == "clusters":
        return _ONCE_EACH
    return _NEIGHBOURS if question.clusters.serial else ""


def _in_order(columns: PairedColumns) -> PairedColumns:
    """Return the rows in an order that follows from what they hold, so that not even rounding knows theirs."""
    held = columns.columns
    one = next(iter(held.values()))
    codes = None if columns.cluster is None else check_codes(columns.cluster, "cluster", one.y_prob.size)[0]
    keys: list[npt.NDArray[Any]] = [each.y_prob for each in held.values()]
    keys += [each for each in (one.y_true, one.sample_weight, codes) if each is not None]
    order = np.lexsort(keys[::-1])
    ordered = {name: each.take(order) for name, each in held.items()}
    return PairedColumns(ordered, None if codes is None else codes[order])

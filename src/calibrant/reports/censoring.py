"""Censored rows in a report: their weights are taken as they are, and every page says what that means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.measures.everything import of_censored
from calibrant.reports.results import ModelSummary, ReportSummary
from calibrant.rows.horizons import HorizonRows
from calibrant.rows.paired import PairedColumns

APPROXIMATE = (
    "Some outcomes were censored, and the weights that stand for them are estimates: limits and verdicts hold "
    "approximately, for many rows, without a guarantee."
)
"""What is said beside every promise on censored rows."""


def split_censored(y_true: Any, cluster: Any) -> tuple[Any, list[HorizonRows | None]]:
    """Return rows whose weights are taken as fixed, and what is known of the censored ones, model by model."""
    if isinstance(y_true, HorizonRows):
        return y_true.fixed(), [y_true]
    columns = y_true.columns if isinstance(y_true, PairedColumns) else y_true
    if not isinstance(columns, Mapping) or not any(isinstance(each, HorizonRows) for each in columns.values()):
        return y_true, []
    held: dict[str, HorizonRows] = {}
    first = next(iter(columns.values()))
    for name, rows in columns.items():
        if not (isinstance(rows, HorizonRows) and isinstance(first, HorizonRows) and _same(rows, first)):
            raise InputError(
                f"holds other rows for {name!r} than for the first model",
                argument="y_true",
                remedy="judge all models on the same rows and horizon, as rows.with_forecasts(y_prob) gives them",
            )
        held[name] = rows
    labels = y_true.cluster if isinstance(y_true, PairedColumns) else cluster
    return PairedColumns({name: rows.fixed() for name, rows in held.items()}, labels), list(held.values())


def _same(rows: HorizonRows, other: HorizonRows) -> bool:
    return rows.at == other.at and np.array_equal(rows.time, other.time) and bool(np.array_equal(rows.code, other.code))


def with_risks(summary: ReportSummary, censored: list[HorizonRows | None]) -> ReportSummary:
    """Return a summary that says of each model what is known of its censored rows."""
    if not censored:
        return summary
    models = tuple(_with_risk(*each) for each in zip(summary.models, censored, strict=True))
    return replace(summary, models=models)


def _with_risk(model: ModelSummary, rows: HorizonRows | None) -> ModelSummary:
    if rows is None:
        return model
    return replace(model, horizon=rows.outcome, measures=of_censored(model.measures, rows))


def notes_of(model: ModelSummary) -> tuple[str, ...]:
    """Return what the first screen says of censored rows, in sentences; or nothing."""
    risk = model.horizon
    if risk is None:
        return ()
    found = str(risk).split("\n")
    return (*found[:2], APPROXIMATE) if risk.censored else tuple(found)

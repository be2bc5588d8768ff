"""Censored rows in a report: their weights are taken as they are, and every page says what that means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from calibrant.certificates.methods.base import FIXED_WEIGHTS
from calibrant.certificates.results import Certificate, ConfidenceInterval
from calibrant.core.errors import InputError
from calibrant.decisions.guarantees import DecisionGuarantee
from calibrant.measures.everything import of_censored
from calibrant.reports.results import APPROXIMATE, ModelSummary, Omission, ReportSummary, joint_verdict
from calibrant.rows.horizons import HorizonRows
from calibrant.rows.paired import PairedColumns

_ESTIMATED = (
    "the weights of censored rows, which are estimates, are taken as they are, so that it holds approximately, for "
    "many rows, without a guarantee"
)
_LEFT_OUT = ("change", "worst_group")
_WHY = "its limits take weights as fixed, and those of censored rows are estimates"
_Promise = TypeVar("_Promise", Certificate, ConfidenceInterval, DecisionGuarantee)


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
    found = replace(summary, models=models, verdict=joint_verdict(model.verdict for model in models))
    if summary.comparison is None or not any(model.approximate for model in models):
        return found
    return replace(found, comparison=None, omissions=(*summary.omissions, Omission("differences", _WHY)))


def _with_risk(model: ModelSummary, rows: HorizonRows | None) -> ModelSummary:
    if rows is None:
        return model
    measures = of_censored(model.measures, rows)
    if not rows.weights_estimated:
        return replace(model, horizon=rows.outcome, measures=measures)
    kept: dict[str, Any] = {}
    if model.groups is not None:
        certificates = tuple(map(_approximate, model.groups.certificates))
        kept["groups"] = replace(model.groups, certificates=certificates)
    if model.group_limits is not None:
        kept["group_limits"] = replace(model.group_limits, limits=tuple(map(_approximate, model.group_limits.limits)))
    if model.repair is not None:
        before, after = (
            None if each is None else _approximate(each) for each in (model.repair.before, model.repair.after)
        )
        kept["repair"] = replace(model.repair, before=before, after=after)
    if model.decisions is not None:
        assumed = _assumed(model.decisions.assumptions)
        kept["decisions"] = replace(model.decisions, promise=_approximate(model.decisions.promise), assumptions=assumed)
    left_out = [name for name in _LEFT_OUT if getattr(model, name) is not None]
    kept |= dict.fromkeys(left_out)
    return replace(
        model,
        **kept,
        rows=measures.rows,
        distinct_forecasts=measures.distinct_forecasts,
        mean_forecast=measures.mean_forecast,
        verdict=None,
        certificate=None if model.certificate is None else _approximate(model.certificate),
        limits=None if model.limits is None else _approximate(model.limits),
        horizon=rows.outcome,
        measures=measures,
        omissions=(*model.omissions, *(Omission(name, _WHY) for name in left_out)),
    )


def _approximate(promise: _Promise) -> _Promise:
    """Return a promise that says of itself that it holds for many rows, and why."""
    return replace(promise, finite_sample=False, assumptions=_assumed(promise.assumptions))


def _assumed(assumptions: tuple[str, ...]) -> tuple[str, ...]:
    return (*(each for each in assumptions if not each.startswith(FIXED_WEIGHTS)), _ESTIMATED)


def notes_of(model: ModelSummary) -> tuple[str, ...]:
    """Return what the first screen says of censored rows, in sentences; or nothing."""
    risk = model.horizon
    if risk is None:
        return ()
    found = str(risk).split("\n")
    return (*found[:2], APPROXIMATE) if risk.censored else tuple(found)

"""Which columns of a table are meant: those that were named, or those whose names leave no doubt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from calibrant.cli.inputs import STAR, Source
from calibrant.cli.outputs import BadInput, remark

if TYPE_CHECKING:
    from calibrant.engines.files import Table

OUTCOME_NAMES = (
    *("y_true", "y", "y_test", "y_val", "y_valid", "y_actual", "y_obs", "y_observed", "label", "labels", "true_label"),
    *("target", "outcome", "actual", "truth", "ground_truth", "true", "observed", "event"),
)
"""Names by which a column of outcomes is recognised; case, spaces, hyphens and underscores do not count."""

FORECAST_NAMES = (
    *(
        "y_prob",
        "y_proba",
        "y_pred_proba",
        "y_pred_prob",
        "y_score",
        "p",
        "p_hat",
        "prob",
        "proba",
        "prob_1",
        "proba_1",
    ),
    *("probability", "probabilities", "predict_proba", "pred_proba", "pred_prob", "predicted_probability"),
    *("predicted_proba", "predicted_prob", "predicted_risk", "forecast", "score"),
)
"""Names by which a column of forecasts is recognised."""

PREDICTION_NAMES = ("y_pred", "y_hat", "pred", "prediction", "predictions", "predicted")
"""Names of forecasts or of classes predicted from them: they count where no column has one of `FORECAST_NAMES`."""

_NAMES = {"outcomes": OUTCOME_NAMES, "forecasts": (*FORECAST_NAMES, *PREDICTION_NAMES)}
_INDEX = re.compile(r"__index_level_\d+__")  # the labels of rows that pandas writes to Parquet: nothing of whom
_BETWEEN_WORDS = re.compile(r"[\s_-]+")


def choose_columns(source: Source, table: Table, *, outcomes: bool, models: Sequence[str] = ()) -> Source:
    """Fill in columns that were not named, where their names leave no doubt, and say so.

    ``models`` are further columns of forecasts that were named.
    """
    others = (source.weight, source.by, source.cluster, source.suspect, source.time, source.period)
    features = None if source.features is None else split_names(source.features, table)
    followed = None if source.horizon is None else source.horizon.time
    named = (source.y_true, source.y_prob, followed, *others, *models, *(features or ()))
    taken = list(dict.fromkeys(name for name in named if name is not None))
    pattern = next((name for name in (source.y_prob, *models) if name and STAR in name), None)
    if pattern is not None and pattern not in table.columns:
        raise BadInput(
            f"--y-prob {pattern!r} stands for several columns, and here a column holds the forecasts of one event; of "
            "several classes name the column of one, and its label with --pos-label (certify, measure, test take all)"
        )
    table.check_all(taken)
    y_true, y_prob = source.y_true, source.y_prob
    true_candidates = _candidates(table, taken, OUTCOME_NAMES) if outcomes else []
    prob_candidates = _candidates(table, taken, FORECAST_NAMES) or _candidates(table, taken, PREDICTION_NAMES)
    if y_true is None and len(true_candidates) == 1:
        y_true = true_candidates[0]
    if y_prob is None and len(prob_candidates) == 1:
        y_prob = prob_candidates[0]
    remaining = [name for name in table.columns if name not in (y_true, y_prob, *taken)]
    if len(table.columns) == 2 and len(remaining) == 1 and outcomes:  # of two columns, one tells the other
        y_true, y_prob = y_true or remaining[0], y_prob or remaining[0]
    doubts = [("outcomes", "--y-true", true_candidates)] if outcomes and y_true is None else []
    doubts += [("forecasts", "--y-prob", prob_candidates)] if y_prob is None else []
    if doubts:
        raise _doubted(table, doubts, _told(table))
    if y_true is not None and y_true in (y_prob, *models):
        raise BadInput(f"{table.name}: column {y_true!r} is named for outcomes and for forecasts both")
    for said, guess, what, option in (
        (source.y_true, y_true, "outcomes", "--y-true"),
        (source.y_prob, y_prob, "forecasts", "--y-prob"),
    ):
        if said is None and guess is not None:
            why = "the only one left" if guess in remaining else "by its name"
            remark(f"{what}: column {guess!r} of {table.name}, {why} ({option} chooses)", quiet=source.quiet)
    if features == ():
        rest = (y_true, y_prob, *taken)
        rest += tuple(name for name in table.columns if _INDEX.fullmatch(name))
        features = tuple(name for name in table.columns if name not in rest and name not in table.faults)
        if not features:
            raise BadInput(f"{table.name}: no column is left that says who a row is about; name one with --features")
        remark(f"features: {', '.join(map(repr, features))} (--features chooses)", quiet=source.quiet)
    return replace(source, y_true=y_true, y_prob=y_prob, features=features)


def split_names(named: Sequence[str], table: Table) -> tuple[str, ...]:
    """Return the columns that were named, several of them maybe with commas between, each once."""
    parts = [
        part.strip()
        for each in named
        for part in ([each] if each in table.columns else each.split(","))
        if part.strip()
    ]
    return tuple(dict.fromkeys(parts))


def _candidates(table: Table, taken: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns whose names are among those known: those that can be read, where there are any."""
    known = {_plain(name) for name in names}
    found = [name for name in table.columns if name not in taken and _plain(name) in known]
    return [name for name in found if name not in table.faults] or found


def _plain(name: str) -> str:
    return _BETWEEN_WORDS.sub("", name).casefold()


def _told(table: Table) -> dict[str, str]:
    """Return the columns that were named for something, each with the option that names it."""
    context = click.get_current_context(silent=True)
    told: dict[str, str] = {}
    for option in () if context is None else context.command.params:
        if context is not None and option.metavar in ("COLUMN", "COLUMNS"):
            value = context.params.get(str(option.name)) or ()
            named = split_names((value,) if isinstance(value, str) else value, table)
            told |= dict.fromkeys(named, max(option.opts, key=len))
    return told


def _doubted(table: Table, doubts: Sequence[tuple[str, str, Sequence[str]]], told: Mapping[str, str]) -> Exception:
    """Return the error that names every column that could not be told, and the candidates."""
    from calibrant.engines.formats import listed

    faults = [table.faults[name] for _, _, found in doubts for name in found if name in table.faults]
    if faults:  # as where files call the column differently
        return BadInput(f"{table.name}: {faults[0]}")
    said = []
    for what, option, found in doubts:
        why = f"{' and '.join(repr(name) for name in found)} all may be" if found else "no name says so"
        known = {_plain(name) for name in _NAMES[what]}
        taken = [f"{name!r} was named for {option}" for name, option in told.items() if _plain(name) in known]
        why = "; ".join(taken) if taken and not found else why
        said.append(f"which column holds the {what}? ({why}.) Name it with {option}")
    return BadInput(f"{table.name}: {', and '.join(said)}; the columns are {listed(table.columns)}")

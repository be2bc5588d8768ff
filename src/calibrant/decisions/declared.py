"""Declared decisions: several actions, several classes, any losses, and what exchanging actions could save.

A problem is a table of losses, one line per action and one column per class. The rule takes the action of least
expected loss under the forecast. Its *swap regret* is what doing b wherever the rule says a saves on average, with the
best b for every a: nothing, for calibrated forecasts.

.. [1] Zhao, Kim, Sahoo, Ma, Ermon (2021), Calibrating predictions to decisions: a novel approach to multi-class
   calibration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias, overload

import numpy as np

from calibrant.certificates.joint_levels import delta_of_each, level_of_each
from calibrant.certificates.methods.base import CertificateMethod
from calibrant.certificates.methods.registry import METHODS, Method
from calibrant.certificates.regrets import regret_estimate
from calibrant.certificates.results import in_order, verdict_of
from calibrant.core.errors import InputError
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, Label
from calibrant.core.voices import Option, Phrase
from calibrant.core.words import measured, printable
from calibrant.decisions.declared_results import (
    DecisionCertificate,
    DecisionCertificates,
    LossTable,
    RejectOption,
    Relabelling,
)
from calibrant.rows.actions import ActionTable, check_losses
from calibrant.rows.checks import check_choice, check_confidence, check_forecasts, check_number
from calibrant.rows.classes import ClassRows, check_classes_of
from calibrant.rows.promised import with_fixed_weights
from calibrant.rows.refinement import TOLERANCE

_FEW_NAMES = 5  # actions that are listed
_FEW_ROWS = 10  # per action taken, on which some other action looks better by chance
_WIDE, _SENSIBLE = 0.5, 0.25  # of what the forecasts are worth: a limit above the first says little, the second is one


LossesLike: TypeAlias = ArrayLike | LossTable | RejectOption
"""What users may pass for a table of losses; data frames have ``__array__``."""


@overload
def certify_decisions(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    losses: LossesLike,
    *,
    max_regret: float,
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> DecisionCertificate: ...


@overload
def certify_decisions(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    losses: Mapping[Any, LossesLike],
    *,
    max_regret: float | Mapping[Any, float],
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> DecisionCertificates: ...


@frames_follow
def certify_decisions(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    losses: LossesLike | Mapping[Any, LossesLike],
    *,
    max_regret: float | Mapping[Any, float],
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> DecisionCertificate | DecisionCertificates:
    """Decide, with a guarantee, whether acting on forecasts of several classes leaves no more than so much to save.

    The rule takes the action of least expected loss under the forecast; of several, the first. What could be saved is
    *swap regret*: sum over actions a of max over b of E[(L[a, Y] - L[b, Y]) 1{the rule says a}], the mean loss that
    doing b wherever the rule says a saves, with the best b for every a. Calibrated forecasts have none. The verdict is
    "certified" when an upper limit of it is at most ``max_regret``, "refuted" when a lower one is above that.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The class of each row.
    y_prob : array-like of shape (n, K)
        Forecast probabilities, a column per class. One column of shape (n,) is the probability of the second of two
        classes, as for other functions.
    losses : array-like of shape (A, K), data frame, LossTable, RejectOption, or dict of these
        A line per action and a column per class, in any unit; gains are negative losses. A pandas frame names actions
        by its index and classes by its columns, in any order. A dict holds several problems: one verdict on all of
        them together, which needs no correction for their number, and one on each.
    max_regret : float, or dict of float
        The largest saving per case that you can live with, in the unit of the losses; for several problems one limit
        for all or one for each.
    confidence_level : float from 0.5 to below 1
        One minus the probability of a wrong verdict.
    method : {"adaptive", "hoeffding"}
        "adaptive" bets at rates that follow how much is at stake: for good forecasts its limit falls as one over the
        number of rows. "hoeffding" has the margin sqrt(2 ln(1/delta) / n) times the largest difference in loss. Both
        hold at every number of rows.
    classes : array-like of shape (K,), optional
        The label of each column of ``y_prob``; by default a frame's column names, or the sorted labels in ``y_true``.
    sample_weight : array-like of shape (n,), optional
        Weights fixed beforehand.

    Returns
    -------
    DecisionCertificate, or DecisionCertificates for several problems
        Prints as sentences that name the better action where there was one; ``frame()`` has a line per action, or per
        problem. Regret of zero does not say that the forecasts are calibrated, only that for these losses no exchange
        of actions helps; rules that look at the forecasts again may do better.

    References
    ----------
    After the idea of [1]_; the limits and their proofs are this project's (docs/theory/decisions.md).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> chance = rng.dirichlet([1, 1, 1], size=2000)
    >>> weather = (chance.cumsum(axis=1) < rng.random((2000, 1))).sum(axis=1)
    >>> trip = [[0.0, 0.4, 1.0], [0.3, 0.2, 0.5], [0.6, 0.6, 0.0]]  # walk, bus or stay: in sun, cloud and rain
    >>> certificate = certify_decisions(weather, chance, trip, max_regret=0.02)
    >>> certificate.verdict, round(certificate.upper, 4)
    ('certified', 0.0027)
    """
    level = check_confidence(confidence_level)
    chosen = METHODS[check_choice(method, "method", tuple(METHODS))]
    chosen.check_regret()
    several = isinstance(losses, Mapping)
    problems: dict[Any, Any] = {None: losses}
    if isinstance(losses, Mapping):
        problems = {_plain(name): table for name, table in losses.items()}
    if not problems:
        raise InputError("is empty", argument="losses", remedy="pass one table of losses or more")
    limits = _limits(max_regret, list(problems), several=several)
    rows = class_rows(with_fixed_weights(y_true), y_prob, classes, sample_weight)
    tables = {name: as_losses(table, rows.classes, name) for name, table in problems.items()}
    delta = 1.0 - level
    if not several:
        return _judged(chosen, tables[None], rows, limits[None], level, delta)
    each_delta, each_level = delta_of_each(delta, len(problems)), level_of_each(level, len(problems))
    certificates, uppers = [], []
    for name, table in tables.items():
        found = _acted(table, rows)
        uppers.append(found.unit * chosen.upper_regret(found, delta))
        certificates.append(_judged(chosen, table, rows, limits[name], each_level, each_delta, found))
    return DecisionCertificates(
        verdict=DecisionCertificates.verdict_of(tuple(uppers), tuple(certificates)),
        confidence_level=level,
        problems=tuple(name if isinstance(name, (str, int, float)) else str(name) for name in tables),
        upper=tuple(uppers),
        certificates=tuple(certificates),
    )


def reject_option(*, cost: float, error_cost: float = 1.0) -> RejectOption:
    """Return the problem of naming a class or declining: the right name costs nothing, declining less than a wrong one.

    With calibrated forecasts it is best to name the likeliest class where its probability is at least
    1 - cost / error_cost, and to decline elsewhere. Pass it to `certify_decisions`, which knows the classes.

    Parameters
    ----------
    cost : float
        What declining costs, below ``error_cost``.
    error_cost : float, default 1
        What a wrong name costs.

    Returns
    -------
    RejectOption
        The problem, whatever the classes are.

    Examples
    --------
    >>> print(reject_option(cost=0.2))
    Name a class (a wrong one costs 1) or decline at 0.2: the likeliest class is named where its probability is at least
    0.8.
    >>> print(reject_option(cost=0.2).for_classes(("cat", "dog")))
      loss    cat  dog
      cat       0  1
      dog       1  0
      reject  0.2  0.2
    """
    error = check_number(error_cost, "error_cost", low=0.0)
    declined = check_number(cost, "cost", low=0.0, high=error)
    if not 0.0 < declined < error:
        raise InputError(
            f"is {declined:g}, not between 0 and the cost of an error, {error:g}",
            argument="cost",
            value=declined,
            remedy="free refusals, or ones as dear as an error, leave nothing to decide",
        )
    return RejectOption(declined, error)


# --- What was asked --------------------------------------------------------------------------------------------------


def _limits(max_regret: Any, names: list[Any], *, several: bool) -> dict[Any, float]:
    """Return the limit of each problem."""
    if not isinstance(max_regret, Mapping):
        limit = _limit(max_regret, "max_regret")
        return dict.fromkeys(names, limit)
    if not several:
        raise InputError(
            "has a limit per problem, and losses is one table", argument="max_regret", remedy="pass one number"
        )
    for name in names:
        if name not in max_regret:
            raise InputError(f"has no limit for {name!r}", argument="max_regret", remedy="pass one for every problem")
    for name in max_regret:
        if name not in names:
            raise InputError(
                f"has a limit for {name!r}, which is no problem",
                argument="max_regret",
                value=name,
                remedy="leave it out",
            )
    return {name: _limit(max_regret[name], f"max_regret[{name!r}]") for name in names}


def _limit(value: Any, name: str) -> float:
    limit = check_number(value, name, low=0.0)
    if math.isinf(limit):
        raise InputError("is infinite, which every forecast passes", argument=name, value=limit, remedy="pass a number")
    return limit


def as_losses(losses: Any, classes: tuple[Label, ...], problem: Any = None) -> LossTable:
    """Return a table of losses with its columns in the order of the classes."""
    name = "losses" if problem is None else f"losses[{problem!r}]"
    if isinstance(losses, (LossTable, RejectOption)):
        return losses.for_classes(classes)
    values = check_losses(losses, name)
    count, width = values.shape
    actions: tuple[Label, ...] = tuple(range(count))
    columns = getattr(losses, "columns", None)
    if columns is not None:
        index = getattr(losses, "index", None)
        actions = actions if index is None else tuple(_plain(label) for label in index)
        if len(set(actions)) < count:
            raise InputError("names an action twice in its index", argument=name, remedy="name each action once")
        known = tuple(_plain(label) for label in columns)
        return LossTable(actions, known, tuple(map(tuple, values.tolist()))).for_classes(classes)
    if width != len(classes):
        raise InputError(
            f"has {width} columns, and there are {len(classes)} classes",
            argument=name,
            value=width,
            remedy=f"pass one column per class, in this order: {', '.join(map(repr, classes))}",
        )
    return LossTable(actions, classes, tuple(map(tuple, values.tolist())))


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def class_rows(y_true: Any, y_prob: Any, classes: Any, sample_weight: Any) -> ClassRows:
    """Return checked rows; one column of forecasts is that of the second of two classes."""
    if np.ndim(y_prob) == 1:
        second = check_forecasts(y_prob)
        y_prob = np.column_stack([1.0 - second, second])
    return check_classes_of(y_true, y_prob, classes=classes, sample_weight=sample_weight)


# --- What was found --------------------------------------------------------------------------------------------------


def _acted(problem: LossTable, rows: ClassRows) -> ActionTable:
    losses, weight = problem.array(), rows.sample_weight
    if weight is None or weight.all():
        return ActionTable.of(losses, rows.places, rows.y_prob, weight)
    counts = np.flatnonzero(weight)
    return ActionTable.of(losses, rows.places[counts], rows.y_prob[counts], weight[counts])


def _judged(
    method: CertificateMethod,
    problem: LossTable,
    rows: ClassRows,
    limit: float,
    level: float,
    delta: float,
    table: ActionTable | None = None,
) -> DecisionCertificate:
    """Return the verdict on one problem."""
    found = _acted(problem, rows) if table is None else table
    unit, share = found.unit, found.outcome / found.total
    lower, upper = in_order(unit * method.lower_regret(found, delta), unit * method.upper_regret(found, delta))
    avoided = float(share.sum(axis=0) @ found.least)
    risk = avoided + unit * float((share * found.loss).sum())
    constant = avoided + unit * float((found.loss @ share.sum(axis=0)).min())
    return DecisionCertificate(
        verdict=verdict_of(lower, upper, limit),
        regret=unit * regret_estimate(found),
        lower=lower,
        upper=upper,
        max_regret=limit,
        confidence_level=level,
        method=method.name,
        rows=found.rows,
        n_eff=found.n_eff,
        problem=problem,
        taken=tuple(share.sum(axis=1).tolist()),
        risk=risk,
        constant_risk=constant,
        changes=_changes(problem, found),
        assumptions=_assumed(method, found),
        cautions=_cautions(limit, found, unit),
        notes=(*rows.notes(), *_notes(problem, found)),
    )


def _assumed(method: CertificateMethod, table: ActionTable) -> tuple[str, ...]:
    drawn, unseen, *others = method.assumptions(table)
    return (drawn, f"{unseen}, and so were the losses", *others)


def _changes(problem: LossTable, table: ActionTable) -> tuple[Relabelling, ...]:
    """Return for each action the one that would have lost least in its place, where that is another."""
    saved = table.saved / table.total
    share = table.outcome.sum(axis=1) / table.total
    better = [(float(line.max()), place, int(line.argmax())) for place, line in enumerate(saved)]
    kept = sorted((each for each in better if each[0] > TOLERANCE), key=lambda each: (-each[0], each[1]))
    return tuple(
        Relabelling(problem.actions[place], problem.actions[instead], float(share[place]), table.unit * gain)
        for gain, place, instead in kept
    )


def _cautions(limit: float, table: ActionTable, unit: float) -> tuple[str, ...]:
    """Return why a limit says nothing: the best single action loses no more than that, without any forecast."""
    frequency = table.outcome.sum(axis=0) / table.total
    worth = unit * float((table.loss @ frequency).min())  # a table of losses may be met by one action, always
    if worth <= 0.0:
        return (
            Phrase(
                "One and the same action loses least in every row of these: on them no forecast was needed.",
                code="one_action_is_best",
            ),
        )
    if limit <= _WIDE * worth:
        return ()
    return (
        Phrase(
            "Whoever knew each class beforehand would save {worth} per case against the best single action: a limit of "
            "{limit:g} is a large one. For a limit that means something use {sensible}.",
            code="wide_limit",
            worth=measured(worth, 4),
            limit=limit,
            sensible=Option("max_regret", float(f"{_SENSIBLE * worth:.2g}")),
        ),
    )


def _notes(problem: LossTable, table: ActionTable) -> tuple[str, ...]:
    """Return which actions the rule never takes, and where rows are too few for as many actions."""
    found: list[str] = []
    never = [action for action, count in zip(problem.actions, table.taken, strict=True) if count == 0]
    if never:
        said = "the rule says {never} on none of these rows"
        listed = " and ".join(map(printable, never)) if len(never) <= _FEW_NAMES else f"{len(never):,} of the actions"
        found.append(Phrase(said, code="never_taken", never=listed))
    usual = table.rows / int(np.count_nonzero(table.taken))
    if usual < _FEW_ROWS:
        said = (
            "the rule takes an action on {usual:.3g} rows on average, and the estimate has the best of {count:,} for "
            "each on the same rows: it is mostly chance; the limits hold"
        )
        found.append(Phrase(said, code="few_rows_per_action", usual=usual, count=len(problem.actions)))
    return tuple(found)

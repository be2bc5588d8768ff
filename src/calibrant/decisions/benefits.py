"""Net benefit: what acting on forecasts brings, beside treating all and treating none; decision curve analysis.

NB(tau) = share of true positives - share of false positives x tau/(1 - tau), in true positives per row.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, Randomness
from calibrant.decisions.benefit_limits import SPREADS, At, Benefits, Draws, Interval, Limits, benefits, limits_of
from calibrant.decisions.benefit_results import LIMITED, DecisionCurve, NetBenefit
from calibrant.decisions.stretches import Stretches, UnknownLimitsError, stretches_of
from calibrant.rows.checks import (
    check_choice,
    check_confidence,
    check_flag,
    check_number,
    check_thresholds,
)
from calibrant.rows.horizons import HorizonRows
from calibrant.rows.intake import RowsLike
from calibrant.rows.named import check_named, check_summaries
from calibrant.rows.resamples import check_resamples

_MOST_LIMITED = 1_000
"""Thresholds that may have limits: what is known of each pair of them has to fit in memory."""

_LEAST_ODDS = 1e-300  # events missed at the price of next to nothing: what they cost stays a number

_FEW = 10
"""Rows acted on, or events left alone, below which limits from many rows' theory are off (tests/guarantees)."""

_FEW_CLUSTERS = 20
"""Clusters below which resamples of them hold the truth less often than they say; docs/how-to/decide.md says."""


@frames_follow
def net_benefit(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    threshold: ArrayLike | None = None,
    thresholds: ArrayLike | None = None,
    prevalence: float | None = None,
    confidence_level: float | None = None,
    interval: Interval = "delta",
    band: bool = False,
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
) -> NetBenefit:
    """Net benefit over thresholds, with treating all and treating none: decision curve analysis.

    NB(tau) = share of true positives - share of false positives x tau/(1 - tau), in true positives per row. It is
    another way to write `decision_risk`: R(tau) = (1 - tau) (mean outcome - NB(tau)).

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `decision_risk`.
    threshold, thresholds : float in [0, 1), or array of them, optional
        From which forecast on people act; two names for one thing. By default 0, 0.01, ..., 0.35.
    prevalence : float in (0, 1), optional
        The event rate where the model is to be used, in place of that of the rows, as for case-control data: true
        positives are then its share of the events acted on, false ones those of the others.
    confidence_level : float from 0.5 to below 1, optional
        Gives limits, too, from theory for many rows.
    interval : {"delta", "bootstrap"}
        Limits by normal errors with standard errors from what each row adds, or percentiles over resamples.
    band : bool
        Whether to find also limits that hold at all thresholds together.
    cluster : array-like of shape (n,), optional
        A label per row that says which rows belong together: limits then count clusters (a sandwich with Student's
        errors, or whole clusters drawn again, which takes twenty or more).
    n_resamples : int
        Resamples for ``interval="bootstrap"``.
    rng : int, Generator or None
        Draws resamples, and the errors behind a band.

    Returns
    -------
    NetBenefit
        With floats for one threshold, arrays for several; ``frame()`` gives the table to plot. Limits of ``gain``, the
        difference from the better of treating all and none, say where the forecasts help.

    Notes
    -----
    With fewer than some ten rows acted on limits are too narrow, and so are those of the gain over treating all where
    fewer than ten events are left alone; notes say so. Where none is, the limits are those of a share of which nothing
    was seen (Clopper-Pearson), whichever its outcomes. docs/how-to/decide.md says how often limits hold in simulations.
    Rows of a `horizon` have limits that count that their weights are estimated.

    References
    ----------
    Vickers, Elkin (2006), Decision curve analysis; standardised net benefit: Kerr, Brown, Zhu, Janes (2016), Assessing
    the clinical impact of risk prediction models with decision curves. The limits of ``gain`` are this project's.

    Examples
    --------
    >>> print(net_benefit([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], threshold=0.2))
    At threshold 0.2 the net benefit is 0.43750 per row; that of treating all, the better of the two without forecasts,
    is 0.37500.
    >>> import numpy as np
    >>> p = np.random.default_rng(0).beta(1, 4, 2000)
    >>> y = np.random.default_rng(1).random(2000) < p
    >>> found = net_benefit(y, p, threshold=0.2, confidence_level=0.95)
    >>> [round(each, 3) for each in (found.gain, found.gain_lower, found.gain_upper)]
    [0.084, 0.07, 0.097]
    """
    at = _check_thresholds(threshold, thresholds)
    places = np.atleast_1d(at)
    rate = None if prevalence is None else _check_prevalence(prevalence)
    level = None if confidence_level is None else check_confidence(confidence_level)
    check_choice(interval, "interval", tuple(SPREADS))
    together = check_flag(band, "band")
    if level is not None:
        check_resamples(n_resamples, level)
        if places.size > _MOST_LIMITED:
            raise InputError(
                f"has {places.size:,} values, more than the {_MOST_LIMITED:,} that may have limits",
                argument="threshold" if thresholds is None else "thresholds",
                remedy="pass fewer, or leave out confidence_level",
            )
    elif together:
        raise InputError("needs confidence_level", argument="band", remedy="pass, say, confidence_level=0.95")
    borders = np.unique(np.append(0.0, places))
    table = stretches_of(borders, y_true, y_prob, cluster=cluster, sample_weight=sample_weight, pos_label=pos_label)
    if rate is not None and not 0.0 < table.mean_outcome < 1.0:
        raise UndefinedError(
            f"the outcomes of these rows are all {table.mean_outcome:g}, and a prevalence weighs events against others",
            remedy="collect rows of both outcomes, or leave out prevalence",
        )
    where = At(places, np.searchsorted(borders, places), rate)
    found = benefits(table.weight, table.outcome, where)
    limits = None
    if level is not None:
        limits = limits_of(
            found,
            table,
            where,
            interval=interval,
            confidence_level=level,
            band=together,
            draws=Draws(n_resamples, rng),
        )
    return _result(at, found, table, where, limits, level, interval)


@frames_follow
def decision_curve(
    y_true: Any,
    y_prob: Any = None,
    *,
    threshold: float | None = None,
    thresholds: ArrayLike | None = None,
    prevalence: float | None = None,
    confidence_level: float | None = None,
    interval: Interval = "delta",
    band: bool = False,
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
) -> DecisionCurve:
    """Net benefit of several models, or of one, at the same thresholds.

    Parameters
    ----------
    y_true : array-like of shape (n,), or Tally, or dict of them
        Outcomes, as in `net_benefit`; or, on its own, a tally or a `scan`, or one for each model's name. Rows of
        `horizon` go alone, or with a dict of forecasts for the same rows.
    y_prob : array-like of shape (n,), or dict or frame of them
        The forecasts, or those of each model by its name: the columns of a frame are models, not classes.
    threshold : float in (0, 1), optional
        The threshold that you decide by: the curve then goes from a quarter to four times its odds.
    thresholds : array of floats in [0, 1), optional
        At which thresholds instead. By default, and without ``threshold``, 0, 0.01, ..., 0.35.
    prevalence, confidence_level, interval, band, cluster, n_resamples, sample_weight, pos_label, rng
        As in `net_benefit`. The limits are each model's own; `compare_models` has those of differences between models.

    Returns
    -------
    DecisionCurve
        ``curve["name"]`` is the `NetBenefit` of a model; ``frame()`` has a row per model and threshold.

    Examples
    --------
    >>> curve = decision_curve([0, 0, 1, 1], {"old": [0.1, 0.6, 0.4, 0.9], "new": [0.1, 0.2, 0.7, 0.9]}, threshold=0.3)
    >>> float(curve["new"].net_benefit.max()), curve.best()[-1]
    (0.5, 'new')
    """
    one = None
    if threshold is not None:
        one = _check_one(threshold)
        if thresholds is None:
            thresholds = thresholds_around(one)
    if thresholds is not None:
        thresholds = np.unique(check_thresholds(thresholds, "thresholds"))
        if one is not None:
            thresholds = np.union1d(thresholds, [one])
    asked: dict[str, Any] = {
        "thresholds": thresholds,
        "prevalence": prevalence,
        "confidence_level": confidence_level,
        "interval": interval,
        "band": band,
        "cluster": cluster,
        "n_resamples": n_resamples,
        "sample_weight": sample_weight,
        "pos_label": pos_label,
        "rng": rng,
    }
    if isinstance(y_true, Mapping):
        if y_prob is not None:
            raise InputError(
                "was given together with a dict for y_true, which already holds it",
                argument="y_prob",
                remedy="pass outcomes and a dict of forecasts, or a dict of tallies alone",
            )
        given = {name: (held, None) for name, held in check_summaries(y_true).items()}
    elif (models := _models(y_prob)) is not None:
        named = check_named(models, "y_prob")
        if isinstance(y_true, HorizonRows):
            given = {name: (y_true.with_forecasts(held), None) for name, held in named.items()}
        else:
            given = {name: (y_true, held) for name, held in named.items()}
    else:
        given = {"model": (y_true, y_prob)}
    return DecisionCurve(tuple(given), tuple(net_benefit(*rows, **asked) for rows in given.values()), one)


def _models(y_prob: Any) -> Mapping[Any, Any] | None:
    """Return the forecasts of each model, from a dict or the columns of a frame; None where there is one alone."""
    if isinstance(y_prob, Mapping):
        return y_prob
    if hasattr(y_prob, "columns"):
        return {name: y_prob[name] for name in y_prob.columns}
    return None


def with_known_limits(
    rows: Any,
    *,
    threshold: ArrayLike,
    confidence_level: float,
    serial: int = 0,
    band: bool = False,
    rng: Randomness = 0,
) -> NetBenefit:
    """Return net benefit with limits where the rows tell them, and alone otherwise.

    They do not where all outcomes are the same, where there are totals of weighted rows alone, and where clusters so
    many places apart depend on each other.
    """
    if serial == 0:
        with suppress(UnknownLimitsError):
            return net_benefit(rows, threshold=threshold, confidence_level=confidence_level, band=band, rng=rng)
    return net_benefit(rows, threshold=threshold)


def usual_thresholds() -> FloatArray:
    """Return the thresholds at which decision curves are drawn unless others are asked for: 0, 0.01, ..., 0.35."""
    return np.arange(36) / 100.0


def thresholds_around(threshold: float, points: int = 99) -> FloatArray:
    """Return thresholds to draw a decision curve at: from a quarter to four times the odds of one.

    Examples
    --------
    >>> thresholds_around(0.1)[[0, -1]].round(3)
    array([0.027, 0.308])
    """
    odds = threshold / (1.0 - threshold)
    low, high = (factor * odds / (1.0 + factor * odds) for factor in (0.25, 4.0))
    return np.unique(np.append(np.linspace(low, high, points), threshold))


def _check_thresholds(threshold: Any, thresholds: Any) -> float | FloatArray:
    """Return the thresholds, under whichever of the two names they came."""
    if threshold is not None and thresholds is not None:
        raise InputError(
            "was given together with threshold, which says the same", argument="thresholds", remedy="leave out one"
        )
    name = "threshold" if thresholds is None else "thresholds"
    given = threshold if thresholds is None else thresholds
    at = usual_thresholds() if given is None else check_thresholds(given, name)
    if np.max(at) == 1.0:
        raise InputError(
            "is 1, where one false positive outweighs any number of true ones and net benefit is undefined",
            argument=name,
            remedy="keep it below 1, or use decision_risk",
        )
    return at


def _check_one(threshold: Any) -> float:
    at = check_thresholds(threshold)
    if not isinstance(at, float):
        raise InputError(
            f"has {at.size:,} values where one is needed",
            argument="threshold",
            remedy="pass them as thresholds",
        )
    if not 0.0 < at < 1.0:
        raise InputError(
            f"is {at:g}, and the curve around it needs a number between 0 and 1",
            argument="threshold",
            value=at,
            remedy="name the thresholds of the curve, as in thresholds=[0, 0.1, 0.2]",
        )
    return at


def _check_prevalence(prevalence: Any) -> float:
    rate = check_number(prevalence, "prevalence", low=0.0, high=1.0)
    if not 0.0 < rate < 1.0:
        raise InputError(
            f"is {rate:g}, and must lie between 0 and 1",
            argument="prevalence",
            value=rate,
            remedy="pass the event rate where the model is to be used, or leave it out",
        )
    return rate


def _result(
    at: float | FloatArray,
    found: Benefits,
    table: Stretches,
    where: At,
    limits: Limits | None,
    level: float | None,
    interval: str,
) -> NetBenefit:
    def given(values: FloatArray) -> float | FloatArray:
        return float(values[0]) if isinstance(at, float) else values

    per_hundred = np.where(where.odds > 0.0, 100.0 / np.maximum(where.odds, _LEAST_ODDS), 0.0)
    ends: dict[str, Any] = {}
    notes = list(table.notes)
    if limits is not None:
        for end, values in (("lower", limits.lower), ("upper", limits.upper)):
            held = {**values, "interventions_avoided": values["over_all"] * per_hundred}
            ends |= {f"{name}_{end}": given(held[name]) for name in LIMITED if name in held}
        notes += _notes(table, where)
        if limits.n_resamples is not None and table.clusters is not None and table.clusters < _FEW_CLUSTERS:
            notes.append(
                f"resamples of {table.clusters} clusters vary too little, and their limits are too narrow: take "
                "interval='delta'"
            )
        if "standardized" not in limits.lower:
            notes.append("too many resamples hold no event: the standardized net benefit has no limits")
    undefined = np.isnan(found.standardized).any()
    return NetBenefit(
        threshold=at,
        net_benefit=given(found.net_benefit),
        treat_all=given(found.treat_all),
        treat_none=given(np.zeros(where.threshold.size)),
        gain=given(np.minimum(found.net_benefit, found.over_all)),
        standardized=None if undefined else given(found.standardized),
        interventions_avoided=given(found.over_all * per_hundred),
        mean_outcome=table.mean_outcome,
        prevalence=where.prevalence,
        rows=table.rows,
        confidence_level=level,
        interval=None if level is None else interval,
        clusters=table.clusters,
        n_resamples=None if limits is None else limits.n_resamples,
        notes=tuple(notes),
        **ends,
    )


def _notes(table: Stretches, where: At) -> list[str]:
    """Say from which threshold on too few rows are acted on, and up to which too few events are left alone."""
    notes = []
    few = np.flatnonzero(table.from_here[where.first] < _FEW)
    if few.size > 0:
        what = "rows" if table.clusters is None else "clusters"
        lowest = float(where.threshold[few].min())
        notes.append(
            f"from threshold {lowest:.4g} up fewer than {_FEW} {what} are acted on: limits there are approximate"
        )
    few = np.flatnonzero((table.events_below[where.first] < _FEW) & (where.threshold > 0.0))
    if few.size > 0:
        what = "events" if table.clusters is None else "clusters with events"
        highest = float(where.threshold[few].max())
        notes.append(
            f"up to threshold {highest:.4g} fewer than {_FEW} {what} are left alone: limits of the gain over treating "
            "all, and of interventions avoided, are approximate there"
        )
    return notes

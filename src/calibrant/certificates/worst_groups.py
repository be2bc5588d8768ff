"""For whom is it wrong? The worst group among all half-lines and labels of given features, with a certificate."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.certificates.betting import growth_limit, interval_rates
from calibrant.certificates.group_evidence import named_groups, split_halves, split_lower_group
from calibrant.certificates.group_results import FoundGroup, WorstGroup
from calibrant.certificates.group_search import ALL, UNKNOWN, Cut, Growths, Looked, Scene
from calibrant.certificates.results import in_order, verdict_of
from calibrant.core.errors import InputError
from calibrant.core.frames import frames_follow
from calibrant.core.threads import in_threads
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, Randomness
from calibrant.core.words import printable
from calibrant.measures.weighted import find_worst_interval
from calibrant.rows.checks import Observations, check_confidence, check_number, check_seed
from calibrant.rows.features import Feature, check_features
from calibrant.rows.hints import row_hints
from calibrant.rows.named import SUMMARIES
from calibrant.rows.promised import as_observations
from calibrant.rows.tally import Tally
from calibrant.rows.weights import effective_rows

_ASSUMED = (
    "the rows are independent draws from the population",
    "forecaster, features, limit and level were fixed without looking at these rows (cuts and labels need not be)",
)
_WEIGHTS = "the weights were fixed beforehand"
_MANY_LABELS = 50


@frames_follow
def worst_group(
    y_true: ArrayLike | Observations,
    y_prob: ArrayLike | None = None,
    X: Any = None,
    *,
    max_error: float | None = None,
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
) -> WorstGroup:
    """Find for whom forecasts are wrong: the worst group and interval of forecasts, with limits for every group.

    The error is sup |E[1{row in G} (y - p) 1{p in I}]| over every interval I of forecasts and every group G: the
    half-lines {x <= a} and {x >= a} of each ordered feature, each label of the others, the rows without a value of a
    feature, and all rows. It is a share of *all* rows, so that tiny groups do not drown the others in noise; on these
    rows it is found exactly. Because it ranges over all cuts, the upper limit holds for every group at once with no
    correction, and for the one that was found by looking too.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `certify`; rows in arrays.
    X : array of shape (n, d), frame, or dict of columns
        Features of the rows, chosen beforehand: they need not be those of the model. Numbers, dates
        and ordered categories have an order, and so have texts that are all dates, as in "2026-01-31"; a time counts
        as the clock was written, in whatever time zone. Other texts, truth values and other categories are labels.
        Rows without a value are a group of their own, and in no half-line.
    max_error : float in [0, 1], optional
        The largest error you can live with; gives the result a verdict.
    confidence_level : float from 0.5 to below 1
        Of each limit, and of the verdict.
    rng : int, Generator or None, default 0
        Draws the halves of the rows of which one names a group and the other tests it, for the lower limit.

    Returns
    -------
    WorstGroup
        ``result.worst`` is the group in words and numbers, ``result.frame()`` the worst group of each feature.
        The estimate is the largest of many, so that it is above 0 for calibrated forecasts, too: whether some group is
        off is what ``result.lower`` says, and how much any can be ``result.upper``.

    References
    ----------
    This project's; the proof is in docs/theory/groups.md.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_prob, age = rng.random(2000), rng.integers(20, 90, size=2000)
    >>> y_true = rng.random(2000) < np.clip(y_prob + 0.25 * (age >= 70), 0, 1)
    >>> found = worst_group(y_true, y_prob, {"age": age}, max_error=0.02)
    >>> found.verdict, found.worst.group, found.worst.direction, round(found.error, 3)
    ('refuted', 'age >= 66', 'too low', 0.057)
    """
    level = check_confidence(confidence_level)
    limit = None if max_error is None else check_number(max_error, "max_error", low=0.0, high=1.0)
    rows, features = rows_with_features(y_true, y_prob, X, sample_weight=sample_weight, pos_label=pos_label)
    return worst_of_features(rows, features, limit, level, check_seed(rng))


def worst_of_features(
    rows: Observations, features: tuple[Feature, ...], limit: float | None, level: float, seed: int
) -> WorstGroup:
    """Return the worst group of rows and features that `rows_with_features` has checked."""
    delta = 1.0 - level
    scene = Scene.of(rows, features)
    tally = Tally.from_observations(scene.rows)
    rates = interval_rates(tally, delta)
    growths = Growths(scene, rates)
    halves = split_halves(scene, tally, seed)
    likely, *named = named_groups(scene, [np.ones(scene.size, dtype=np.bool_), *halves])
    growths.try_group(scene.members(likely))
    overall = _described(scene, Cut(ALL))

    def worst_of(place: int) -> FoundGroup:
        cut = _worst_of(scene, growths, place)
        return overall if cut.kind == ALL else _described(scene, cut)

    by_feature = tuple(in_threads(worst_of, range(len(features)), rows=scene.size))
    # A group must be worse than all rows together, by more than rounding.
    worst = max((overall, *by_feature), key=lambda each: round(each.error, 12))
    lower, upper = in_order(
        split_lower_group(scene, halves, named, delta), min(growth_limit(tally, rates, growths.largest, delta), 1.0)
    )
    return WorstGroup(
        verdict=None if limit is None else verdict_of(lower, upper, limit),
        worst=worst,
        lower=lower,
        upper=upper,
        max_error=limit,
        confidence_level=level,
        overall=overall.error,
        features=tuple(each.name for each in features),
        by_feature=by_feature,
        rows=scene.size,
        n_eff=effective_rows(tally),
        assumptions=_ASSUMED if tally.unit_weights else (*_ASSUMED, _WEIGHTS),
        notes=(*row_hints(tally), *_many_labels(features)),
    )


def rows_with_features(
    y_true: Any, y_prob: Any, X: Any, *, sample_weight: Any = None, pos_label: Any = None, argument: str = "X"
) -> tuple[Observations, tuple[Feature, ...]]:
    """Return checked rows with their features, without rows of weight zero; equal weights are weights of 1.

    ``argument`` is what the user calls the features.
    """
    if isinstance(y_true, SUMMARIES) and not isinstance(y_true, Observations):
        raise InputError(
            "holds rows whose features are not known",
            argument="y_true",
            remedy="pass outcomes, forecasts and features as arrays, as in worst_group(y_true, y_prob, X)",
        )
    rows = as_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    features = check_features(X, rows.y_prob.size, argument=argument, y_true=y_true, y_prob=y_prob)
    rows = Observations(rows.y_true, rows.y_prob + 0.0, rows.sample_weight, rows.binary_outcomes)  # no -0.0
    weight = rows.sample_weight
    if weight is None:
        return rows, features
    counting = np.flatnonzero(weight)
    if counting.size < weight.size:
        rows, features = rows.take(counting), tuple(each.taken(counting) for each in features)
        weight = weight[counting]
    if weight.min() == weight.max():
        rows = Observations(rows.y_true, rows.y_prob, None, rows.binary_outcomes)
    return rows, features


def _many_labels(features: tuple[Feature, ...]) -> list[str]:
    """Name the columns with so many labels that they may have an order which nobody told."""
    return [
        f"{printable(each.name)} was read as {each.values.size:,} labels, without an order; numbers, dates as in "
        "2026-01-31 and ordered categories have one."
        for each in features
        if not each.ordered and each.values.size > _MANY_LABELS
    ]


def _worst_of(scene: Scene, growths: Growths, place: int) -> Cut:
    """Return the worst group of a feature, after bets on all of its groups have been looked at."""
    feature = scene.features[place]
    best, cut = 0.0, Cut(ALL)
    if not feature.missing.all():
        looked = Looked(scene, place)
        looked.look()
        growths.look(looked)
        best, cut = looked.worst()
    if feature.missing.any():
        growths.try_group(feature.missing)
        unknown = Cut(UNKNOWN, place)
        if _described(scene, unknown).error * _total(scene) > best:
            cut = unknown
    return cut


def _total(scene: Scene) -> float:
    """Return the sum of weights in units of the largest, which gains are in."""
    weight = scene.rows.sample_weight
    return float(scene.size if weight is None else weight.sum() / weight.max())


def _described(scene: Scene, cut: Cut) -> FoundGroup:
    """Return a group with its worst interval."""
    members = np.flatnonzero(scene.members(cut))
    tally = Tally.from_observations(scene.rows.take(members).alone())
    interval = find_worst_interval(tally, with_chance=False)
    weight: FloatArray | None = scene.rows.sample_weight
    part = members.size / scene.size if weight is None else float(weight[members].sum() / weight.sum())
    feature = None if cut.feature is None else scene.features[cut.feature]
    return FoundGroup(
        feature=None if feature is None else feature.name,
        kind=cut.kind,
        value=None if feature is None or cut.place is None else feature.label(cut.place),
        low=interval.low,
        high=interval.high,
        direction=interval.direction,
        error=interval.error * part,
        rows=interval.rows,
        group_rows=members.size,
        share=interval.share * part,
        mean_forecast=interval.mean_forecast,
        mean_outcome=interval.mean_outcome,
    )

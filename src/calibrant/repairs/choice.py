"""Comparing recalibrators on rows that they have not seen, and saying which to use.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant.certificates.cautions import ONE_CLASS, cautions_on
from calibrant.certificates.clusters import Clusters
from calibrant.certificates.event_shares import event_rate_of
from calibrant.certificates.joint_levels import delta_of_each
from calibrant.certificates.model_differences import ModelDifference
from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.frames import frames_follow
from calibrant.core.progress import track
from calibrant.core.threads import one_thread
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, Randomness
from calibrant.core.voices import Either, Option, Phrase, joined
from calibrant.core.words import level_said, rounded, rounded_up
from calibrant.measures.savings import check_threshold_range
from calibrant.measures.weighted import smooth_calibration_error
from calibrant.repairs.apart import AS_IS, Apart, HeldOut, told_apart
from calibrant.repairs.class_choice import class_rows, compare_classes, refuse_decision
from calibrant.repairs.entries import Entries, as_entries, in_clusters, pooled
from calibrant.repairs.fits import Sample
from calibrant.repairs.guard import GuardedRecalibrator
from calibrant.repairs.maps import (
    BetaRecalibrator,
    ConstantRecalibrator,
    IsotonicRecalibrator,
    PlattRecalibrator,
    TemperatureRecalibrator,
)
from calibrant.repairs.recalibrator import Recalibrator
from calibrant.repairs.results import RecalibratorComparison, RecalibratorScores
from calibrant.rows.asked import are_classes
from calibrant.rows.checks import (
    check_confidence,
    check_flag,
    check_number,
    check_rng,
)
from calibrant.rows.classes import QuestionsAsked
from calibrant.rows.hints import row_hints
from calibrant.rows.intake import RowsLike
from calibrant.rows.tally import Tally


@frames_follow
def compare_recalibrators(
    y_prob: RowsLike,
    y_true: ArrayLike | None = None,
    *,
    candidates: Any = None,
    cv: int = 5,
    rng: Randomness = None,
    confidence_level: float = 0.95,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    classes: ArrayLike | None = None,
    questions: QuestionsAsked | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    progress: bool | None = None,
) -> Any:
    """Compare ways to recalibrate on rows they have not seen, and recommend one.

    The rows are cut at random into ``cv`` parts. Every candidate is fitted on all parts but one and judged on that one,
    in turn, and the held-out forecasts are pooled. They come from ``cv`` maps, one per part, so the numbers describe
    the way of recalibrating and not one map; the confidence limits treat the pooled rows as those of one fixed
    forecaster, which is exact for the forecasts as they are and approximate for the others. The guarantees are those
    of each candidate fitted to all rows.

    The recommendation looks at the Brier score, which counts calibration and discrimination both: the Cutoff error
    alone would favour the constant. Candidates within one standard error of the lowest score (of the difference, row
    by row) count as equally good. Among them the forecasts as they are come first, then candidates whose guarantee was
    there before the data, then the lowest score. Where some candidate has a finite held-out log loss, only those that
    have are considered: a probability of 0 for something that happens is a fault that the Brier score hardly sees.
    Where all outcomes are the same nothing is recommended: any map that forecasts them for everybody would win.

    Whether the recommended candidate is really better, than the forecasts as they are and than the next best, is said
    with limits for the difference of their Brier scores on the same held-out rows, which hold for whichever two
    candidates the rows pick out. They take the held-out forecasts for those of fixed forecasters, too.

    Parameters
    ----------
    y_prob : array-like of shape (n,) or (n, K), or Tally
        Forecast probabilities, of the event or with a column for each class; or a tally of 0/1 outcomes without
        weights, whose rows are dealt to the parts at random just as listed rows would be: the result is the same.
    y_true : array-like of shape (n,)
        Outcomes: 0/1, booleans, fractions in [0, 1], or labels with ``pos_label``.
    candidates : dict of name to recalibrator, optional
        By default Platt scaling of the forecast and of its logit, beta, temperature, isotonic, isotonic with
        ``ends="inside"``, guarded and the constant. "as is", which changes nothing, is always added. Of three classes
        or more: temperature, vector, isotonic of each class and of the top label, and a menu of temperatures.
    cv : int, default 5
        Number of parts.
    rng : int, Generator or None
        Draws the parts. Without it they are drawn anew, so that numbers differ a little from call to call, and so may
        the recommendation; pass a seed, as in ``rng=0``, for an answer that stays (the command line takes 0). With a
        seed the order of the rows makes no difference, nor do the names of clusters.
    confidence_level : float
        Of the limits of each candidate, and of each guarantee; of several classes, of all guarantees together, since
        they are not, as those of one event, about every monotone map at once.
    threshold : float, or the lowest and the highest of a range, optional
        The threshold, or the range of thresholds, that decisions use: what acting on each candidate still leaves to
        save there, its risk gap, stands beside its errors. Without it the gap is the largest over all thresholds.
    cost_false_positive, cost_false_negative : float, optional
        Costs in place of one threshold, as in `decision_risk`.
    classes : array-like of shape (K,), optional
        The labels of the columns; by default a frame's column names, or the sorted labels in ``y_true``.
    questions : {"confidence", "classwise", "top_label", "pairs", "subsets"}, optional
        Which Cutoff errors of several classes are compared, as in `certify`: "confidence" by default; without it two
        columns are forecasts of the second class.
    cluster : array-like of shape (n,), optional
        The cluster of each row, as in `certify`: the patient, the day, the site. Whole clusters are dealt to the parts,
        limits and standard errors count clusters, and the guarantees, which need independent rows, are left out.
    sample_weight : array-like of shape (n,), optional
        Nonnegative weights, fixed beforehand. No guarantee covers weighted rows.
    pos_label : label, optional
        The label in ``y_true`` that counts as the event, against all others.
    progress : bool, optional
        Whether to show on the terminal how far the work has come; by default when it takes long and there is a
        terminal.

    Returns
    -------
    RecalibratorComparison, or ClassRecalibratorComparison for several classes
        Prints as a table with the recommendation in words; ``frame()`` gives it as a data frame. A candidate that
        cannot be fitted to these rows stands in it without numbers, and a note says why.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.random(3000)
    >>> y_true = rng.random(3000) < np.where(y_prob > 0.5, 0.8, 0.2)  # a jump, which no smooth curve follows
    >>> comparison = compare_recalibrators(y_prob, y_true, rng=0)
    >>> comparison.recommended
    'isotonic inside'
    >>> round(comparison["as is"].cutoff, 2), round(comparison["isotonic inside"].cutoff, 2)
    (0.05, 0.01)
    """
    level = check_confidence(confidence_level)
    if are_classes(y_prob):
        refuse_decision(threshold, cost_false_positive, cost_false_negative)
        columns = class_rows(y_prob, y_true, classes, sample_weight, pos_label)
        if columns.value.shape[1] > 2 or questions is not None:
            return compare_classes(columns, candidates, cv, rng, level, questions, cluster, progress)
        y_prob, y_true, pos_label = columns.value[:, 1], columns.happened(1), None
    decision = {
        "threshold": threshold,
        "cost_false_positive": cost_false_positive,
        "cost_false_negative": cost_false_negative,
    }
    thresholds, costs = check_threshold_range(*decision.values())
    named = _check_candidates(candidates)
    generator, given = check_rng(rng), (y_prob, y_true, sample_weight, pos_label)
    asked = None if progress is None else check_flag(progress, "progress")
    entries = as_entries(*given) if cluster is None else in_clusters(*given, cluster, generator)
    count = int(check_number(cv, "cv", low=2, whole=True))
    dealt = entries.deal(count, generator)
    parts = [entries.part(each) for each in dealt]
    held_out = pooled(parts)
    trials = [_Trial(name, each, entries, parts, held_out) for name, each in {AS_IS: None, **named}.items()]
    # Part by part, so that what all candidates are fitted to is made once, and one of them held at a time.
    learned = lru_cache(maxsize=1)(partial(entries.without, dealt))
    steps = [(trial, part) for part in (*range(count), None) for trial in trials]
    with one_thread():
        for trial, part in track(steps, label="comparing recalibrators", shown=asked):
            if part is None:
                trial.judge(level, decision, trials[0], learned(part))
            else:
                trial.hold_out(part, learned(part))
    rows = HeldOut(held_out.outcome, held_out.count, held_out.weight, held_out.cluster)
    recommended, recommendation = _recommend(trials, rows, level)
    differences = _differences(trials, recommended, rows, level)
    if differences:
        recommendation = joined(" ", [recommendation, told_apart(differences, level)])
    return RecalibratorComparison(
        candidates=tuple(trial.scores for trial in trials),
        recommended=recommended,
        recommendation=recommendation,
        confidence_level=level,
        rows=entries.rows,
        cv=count,
        thresholds=(thresholds.low, thresholds.high),
        cost_false_positive=costs[0],
        cost_false_negative=costs[1],
        differences=differences,
        notes=_notes(trials, entries, count),
        clusters=trials[0].clusters,
    )


def default_candidates() -> dict[str, Recalibrator]:
    """Return the recalibrators compared unless others are named."""
    return {
        "platt": PlattRecalibrator(),
        "platt on logit": PlattRecalibrator(on="logit"),
        "beta": BetaRecalibrator(),
        "temperature": TemperatureRecalibrator(),
        "isotonic": IsotonicRecalibrator(),
        "isotonic inside": IsotonicRecalibrator(ends="inside"),
        "guarded": GuardedRecalibrator(),
        "constant": ConstantRecalibrator(),
    }


def _check_candidates(candidates: Any) -> dict[str, Recalibrator]:
    if candidates is None:
        return default_candidates()
    if not isinstance(candidates, Mapping) or not candidates:
        raise InputError(
            f"must be a dict of names to recalibrators, as in {{'platt': PlattRecalibrator()}}, got {candidates!r}",
            argument="candidates",
            value=candidates,
        )
    for name, recalibrator in candidates.items():
        if not isinstance(name, str) or name == AS_IS:
            raise InputError(
                f"has the name {name!r}",
                argument="candidates",
                remedy=f"names are words, and {AS_IS!r} is always there",
            )
        if not isinstance(recalibrator, Recalibrator):
            raise InputError(
                f"candidates[{name!r}] is {recalibrator!r}, not a recalibrator",
                remedy="pass an instance, as in PlattRecalibrator()",
            )
        if recalibrator.pos_label is not None:
            raise InputError(
                f"candidates[{name!r}] has pos_label={recalibrator.pos_label!r}",
                remedy="pass pos_label= to compare_recalibrators instead",
            )
    return dict(candidates)


class _Trial:
    """One candidate on its way through the parts."""

    def __init__(
        self,
        name: str,
        recalibrator: Recalibrator | None,
        entries: Entries,
        parts: list[Entries],
        held_out: Entries,
    ) -> None:
        self.recalibrator = recalibrator
        self.entries = entries
        self.parts = parts
        self.held_out = held_out  # all parts
        self.scores = RecalibratorScores(name)
        self.forecasts: list[FloatArray] = []
        """Held-out forecasts of the entries of each part."""
        self.clusters: Clusters | None = None

    @property
    def has_failed(self) -> bool:
        return self.scores.problem is not None

    def hold_out(self, part: int, others: Sample) -> None:
        """Fit the candidate to the other parts, and forecast this one."""
        forecast = self.parts[part].forecast
        if self.recalibrator is not None and not self.has_failed:
            fitted = self._fitted(others, for_good=False)
            forecast = forecast if fitted is None else fitted._mapped(forecast)
        self.forecasts.append(forecast)

    def judge(self, level: float, decision: dict[str, Any], as_is: _Trial, everything: Sample) -> None:
        """Score the held-out forecasts of all parts."""
        fitted = None if self.recalibrator is None or self.has_failed else self._fitted(everything, for_good=True)
        if self.has_failed:
            return
        forecast = np.concatenate(self.forecasts)
        tally = self.held_out.tally(forecast)
        interval = self.held_out.limits(forecast, tally, confidence_level=level)
        gap = self.held_out.limits(forecast, tally, confidence_level=level, measure="risk_gap", **decision)
        self.clusters = interval.clusters
        auc = _auc(part.tally(own) for part, own in zip(self.parts, self.forecasts, strict=True))
        auc_as_is = auc if self is as_is else as_is.scores.auc
        covered = fitted is not None and not fitted.weighted_ and self.entries.cluster is None
        guarantee = fitted.guarantee(level) if fitted is not None and covered else None
        everywhere = self.entries.forecast if fitted is None else fitted.predict(self.entries.forecast)
        self.scores = RecalibratorScores(
            name=self.scores.name,
            cutoff=interval.estimate,
            cutoff_lower=interval.lower,
            cutoff_upper=interval.upper,
            risk_gap=gap.estimate,
            risk_gap_lower=gap.lower,
            risk_gap_upper=gap.upper,
            smooth=smooth_calibration_error(tally),
            brier=float(tally.residual_square.sum()) / tally.weight_total,
            log_loss=_log_loss(tally),
            auc=auc,
            auc_lost=None if auc is None or auc_as_is is None else auc_as_is - auc,
            distinct_forecasts=int(np.unique(everywhere).size),
            guarantee=None if guarantee is None else guarantee.upper,
            guarantee_in_advance=None if guarantee is None else guarantee.in_advance,
        )

    def _fitted(self, sample: Sample, *, for_good: bool) -> Recalibrator | None:
        """Return the candidate fitted to a sample, or None after noting why that fails.

        What is not fitted for good forecasts other rows, and nobody asks for its errors or its guarantee.
        """
        fitted: Recalibrator = clone(self.recalibrator)
        fitted._check_params()
        try:
            if for_good:
                return fitted._fit_to(sample)
            fitted._fit_map(sample)
            return fitted
        except UndefinedError as problem:
            self.scores = RecalibratorScores(self.scores.name, problem=problem.phrase)
            return None


def _auc(tallies: Iterable[Tally]) -> float | None:
    """Return the share of pairs, event and non-event of one part, that the forecasts order rightly, ties half."""
    right = pairs = 0.0
    for tally in tallies:
        others = tally.weight - tally.outcome
        below = np.cumsum(others) - others / 2.0
        right += float(tally.outcome @ below)
        pairs += tally.outcome_total * float(others.sum())
    return right / pairs if pairs > 0.0 else None


def _log_loss(tally: Tally) -> float:
    from scipy.special import xlog1py, xlogy

    others = np.maximum(tally.weight - tally.outcome, 0.0)  # sums of weights may round below zero
    gain = xlogy(tally.outcome, tally.forecast) + xlog1py(others, -tally.forecast)
    return (0.0 - float(gain.sum())) / tally.weight_total  # no -0.0


def _recommend(trials: list[_Trial], rows: HeldOut, level: float) -> tuple[str | None, str]:
    """Return the name of the candidate to use, and why in words."""
    for why in cautions_on(1.0, event_rate_of(trials[0].entries.tally()), "rows"):
        if getattr(why, "code", "") == ONE_CLASS:
            return None, Phrase("Nothing is recommended. {why}", why=why)
    fitted = [trial for trial in trials if not trial.has_failed]
    considered = [trial for trial in fitted if trial.scores.log_loss != math.inf] or fitted
    lowest, best = min(fitted, key=_brier), min(considered, key=_brier)
    close = [trial for trial in considered if _is_as_good(trial, best, rows)]
    as_is = trials[0].scores
    if close[0] is trials[0]:
        rival = "" if best is trials[0] else f" (lowest: {best.scores.name}, {rounded(best.scores.brier)})"
        return AS_IS, Phrase(
            "Leave the forecasts as they are: no recalibrator{finite} lowers their Brier score, {brier}, by more than "
            "one standard error{rival}. Their Cutoff error is {cutoff}, at most {upper}; {certify} says whether that "
            "is good enough.",
            finite="" if _is_as_good(trials[0], lowest, rows) else " with a finite log loss",
            brier=rounded(as_is.brier),
            rival=rival,
            cutoff=rounded(as_is.cutoff),
            upper=rounded_up(as_is.cutoff_upper),
            certify=Either("certify()", "calibrant certify"),
        )
    promised = [trial for trial in close if trial.scores.guarantee_in_advance is not None]
    winner = min(promised or close, key=_brier)
    chosen = winner.scores
    rank = "the lowest" if chosen is best.scores else f"as low as the lowest, that of {best.scores.name}, up to noise"
    if lowest not in considered:
        rank += " of those with a finite log loss"
    words: list[str] = [
        f"Use {chosen.name}: its held-out Brier score, {rounded(chosen.brier)} against {rounded(as_is.brier)} as is, "
        f"is {rank}; its held-out Cutoff error is {rounded(chosen.cutoff)} against {rounded(as_is.cutoff)}."
    ]
    if chosen.guarantee is not None:
        promise: str = Phrase(
            "nothing was promised before the data: for that, {how}",
            how=Either(
                "put it on the ladder of a GuardedRecalibrator",
                Phrase("use {guarded}, which tries Platt scaling first", guarded=Option("method", "guarded")),
            ),
        )
        if chosen.guarantee_in_advance is not None:
            promise = f"before the data {rounded_up(chosen.guarantee_in_advance)} was promised"
        words.append(
            Phrase(
                "Fitted to all rows its Cutoff error is at most {bound} with {level} confidence; {promise}.",
                bound=rounded_up(chosen.guarantee),
                level=level_said(level),
                promise=promise,
            )
        )
    if chosen.log_loss == math.inf:
        words.append("Its log loss is infinite, since it gives a probability of 0 to something that happened.")
    if isinstance(winner.recalibrator, IsotonicRecalibrator) and winner.recalibrator.ends == "inside":
        python, command = "IsotonicRecalibrator(ends='inside')", "--method isotonic --ends inside"
        words.append(Phrase("This is {how}, which forecasts neither 0 nor 1.", how=Either(python, command)))
    if chosen.distinct_forecasts == 1:
        words.append("It is a constant: these forecasts tell rows apart no better than one number does.")
    return chosen.name, joined(" ", words)


def _brier(trial: _Trial) -> float:
    return math.inf if trial.scores.brier is None else trial.scores.brier


def _is_as_good(one: _Trial, best: _Trial, rows: HeldOut) -> bool:
    """Return whether a Brier score is within one standard error of the lowest, from the differences row by row."""
    return one is best or _apart(one, best, rows).is_within_noise()


def _apart(one: _Trial, other: _Trial, rows: HeldOut) -> Apart:
    return rows.apart(np.concatenate(one.forecasts), np.concatenate(other.forecasts))


def _differences(
    trials: list[_Trial], recommended: str | None, rows: HeldOut, level: float
) -> tuple[ModelDifference, ...]:
    """Return how the recommended candidate differs from the forecasts as they are, and from the next best."""
    if recommended is None:
        return ()
    fitted = {trial.scores.name: trial for trial in trials if not trial.has_failed}
    chosen = fitted.pop(recommended)
    if not fitted:
        return ()
    delta = delta_of_each(1.0 - level, (len(fitted) + 1) * len(fitted))
    next_best = min(fitted.values(), key=_brier).scores.name
    found = []
    for name in dict.fromkeys([*([AS_IS] if AS_IS in fitted else []), next_best]):
        apart = _apart(chosen, fitted[name], rows)
        found.append(ModelDifference.between(recommended, name, apart.mean, apart.limits(delta), paired=True))
    return tuple(found)


def _notes(trials: list[_Trial], entries: Entries, parts: int) -> tuple[str, ...]:
    kept = "the guarantees hold for every monotone map at once (all but the constant's), so they survive the choice"
    if entries.weight is not None:
        kept = "no guarantee covers weighted rows"
    if entries.cluster is not None:
        kept = "guarantees known from the number of rows alone need independent rows, and are left out"
    return (
        *row_hints(entries.tally()),
        f"the held-out forecasts of a recalibrator come from {parts} maps, one per part; its limits treat them as "
        "those of one fixed forecaster, which is exact for the forecasts as they are and approximate for the others",
        "whoever chooses by the held-out numbers has looked at these rows: certify the choice on fresh ones; " + kept,
        *(
            Phrase("{name} could not be fitted: {why}", name=trial.scores.name, why=trial.scores.problem)
            for trial in trials
            if trial.has_failed
        ),
    )

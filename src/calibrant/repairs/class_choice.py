"""Comparing recalibrators of several classes on rows that they have not seen, and saying which to use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant.certificates.verdicts import confidence_interval
from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.progress import track
from calibrant.core.types import FloatArray, IntArray
from calibrant.core.words import counted, level_said, printable, rounded, rounded_up
from calibrant.repairs.apart import AS_IS
from calibrant.repairs.class_maps import ClassTemperatureRecalibrator, VectorRecalibrator
from calibrant.repairs.class_recalibrator import ClassRecalibrator
from calibrant.repairs.class_results import ClassRecalibratorComparison, ClassRecalibratorScores
from calibrant.repairs.class_rows import FitRows, check_class_rows, top_places
from calibrant.repairs.maps import IsotonicRecalibrator
from calibrant.repairs.menus import MenuRecalibrator, brier_losses, log_losses
from calibrant.repairs.one_vs_rest import OneVsRestRecalibrator
from calibrant.repairs.top_label import TopLabelRecalibrator
from calibrant.rows.checks import check_choice, check_codes, check_flag, check_number, check_rng
from calibrant.rows.classes import DEFAULT, QUESTIONS
from calibrant.rows.splits import cluster_order, row_marks

_CLIP = 1e-6


def default_class_candidates() -> dict[str, ClassRecalibrator]:
    """Return the recalibrators of classes compared unless others are named."""
    return {
        "temperature": ClassTemperatureRecalibrator(clip=_CLIP),
        "vector": VectorRecalibrator(smoothing=True, clip=_CLIP),
        "isotonic inside": OneVsRestRecalibrator(IsotonicRecalibrator(ends="inside")),
        "top label": TopLabelRecalibrator(IsotonicRecalibrator(ends="inside")),
        "menu": MenuRecalibrator([ClassTemperatureRecalibrator(temperature=t, clip=_CLIP) for t in _few()]),
    }


def _few() -> list[float]:
    return [2.0 ** (k / 2.0) for k in range(-4, 7)]


def class_rows(y_prob: Any, y_true: Any, classes: Any, sample_weight: Any, pos_label: Any) -> FitRows:
    """Check rows of several classes; the event, if somebody names one, is the class of the second of two columns."""
    if y_true is None:
        raise InputError("is missing", argument="y_true", remedy="pass the class of each row")
    given = {"classes": classes, "sample_weight": sample_weight}
    rows = check_class_rows(y_prob, y_true, **given, scores=False, multilabel=False)
    if pos_label is not None and (len(rows.classes) > 2 or pos_label != rows.classes[1]):
        raise InputError(
            f"is {pos_label!r}, and the columns of y_prob are {rows.classes}",
            argument="pos_label",
            value=pos_label,
            remedy="leave it out, or pass the column of that class alone",
        )
    return rows


def refuse_decision(*given: Any) -> None:
    """Refuse thresholds and costs, which are about one event."""
    if any(each is not None for each in given):
        raise InputError(
            "was given, and several classes have no one line between acting and not acting",
            argument="threshold",
            remedy="leave thresholds and costs out, or pass the column of one class",
        )


def compare_classes(
    rows: FitRows,
    candidates: Any,
    cv: Any,
    rng: Any,
    level: float,
    questions: str | None,
    cluster: Any,
    progress: Any,
) -> ClassRecalibratorComparison:
    """Return the candidates side by side on held-out rows of several classes."""
    named = _check_candidates(candidates)
    kind = check_choice(DEFAULT if questions is None else questions, "questions", QUESTIONS)
    shown = None if progress is None else check_flag(progress, "progress")
    generator = check_rng(rng)
    parts = int(check_number(cv, "cv", low=2, whole=True))
    if rows.weight is not None and not rows.weight.all():
        kept = np.flatnonzero(rows.weight)
        cluster = None if cluster is None else np.asarray(cluster)[kept]
        rows = _taken(rows, kept)
    codes, count = np.arange(len(rows.value)), len(rows.value)
    if cluster is not None:
        codes, count = check_codes(cluster, "cluster", len(rows.value))
    if parts > count:
        units = counted(count, "row" if cluster is None else "cluster")
        raise InputError(
            f"is {parts}, and there are only {units} to deal to parts",
            argument="cv",
            value=parts,
            remedy="choose fewer parts",
        )
    part = _dealt(rows, codes, parts, generator)
    trials = [_Trial(name, each, rows, part, parts) for name, each in {AS_IS: None, **named}.items()]
    asked = {"confidence_level": level, "questions": kind, "cluster": None if cluster is None else codes}
    steps = [(trial, number) for trial in trials for number in range(parts)]
    for trial, number in track(steps, label="comparing recalibrators", shown=shown):
        trial.hold_out(number)
        if number == parts - 1:
            trial.judge(asked)
    if cluster is None:
        _promise(trials, level)
    recommended, recommendation = _recommend(trials, codes, level)
    problems = [f"{trial.scores.name} could not be fitted: {trial.scores.problem}" for trial in trials if trial.failed]
    return ClassRecalibratorComparison(
        candidates=tuple(trial.scores for trial in trials),
        recommended=recommended,
        recommendation=recommendation,
        question=kind,
        confidence_level=level,
        rows=rows.size,
        classes=rows.classes,
        cv=parts,
        clusters=None if cluster is None else count,
        notes=(
            f"the held-out forecasts of a recalibrator come from {parts} maps, one per part; its limits treat them as "
            "those of one fixed forecaster, which is exact for the forecasts as they are and approximate for others",
            "whoever chooses by the held-out numbers has looked at these rows: certify the choice on fresh ones",
            *problems,
        ),
    )


def _check_candidates(candidates: Any) -> dict[str, ClassRecalibrator]:
    if candidates is None:
        return default_class_candidates()
    if not isinstance(candidates, Mapping) or not candidates:
        raise InputError(
            f"must be a dict of names to recalibrators of classes, got {candidates!r}",
            argument="candidates",
            value=candidates,
        )
    for name, each in candidates.items():
        if not isinstance(name, str) or name == AS_IS:
            raise InputError(
                f"has the name {name!r}",
                argument="candidates",
                remedy=f"names are words, and {AS_IS!r} is always there",
            )
        is_one = isinstance(each, ClassRecalibrator) and not each.multilabel and each.classes is None
        if not is_one or each.input_kind != "probability" or not getattr(each, "renormalize", True):
            raise InputError(
                f"candidates[{name!r}] is {each!r}, and y_prob has the columns of several classes",
                remedy="pass a recalibrator of classes whose probabilities sum to 1, as in OneVsRestRecalibrator(), "
                "without classes=",
            )
    return dict(candidates)


def _dealt(rows: FitRows, codes: IntArray, parts: int, generator: np.random.Generator) -> IntArray:
    """Return the part of each row, whole clusters together: a random deal that neither order nor names decide."""
    columns = [*rows.value.T, rows.places, *([] if rows.weight is None else [rows.weight])]
    drawn = cluster_order(codes, row_marks(columns, len(rows.value)), int(generator.integers(2**63)))
    number = np.empty(drawn.size, dtype=np.int64)
    number[drawn] = np.arange(drawn.size)
    return number[codes] % parts


def _taken(rows: FitRows, where: IntArray) -> FitRows:
    weight = None if rows.weight is None else rows.weight[where]
    return FitRows(rows.value[where], rows.outcome[where], weight, rows.classes)


class _Trial:
    """One candidate on its way through the parts."""

    def __init__(
        self, name: str, recalibrator: ClassRecalibrator | None, rows: FitRows, part: IntArray, parts: int
    ) -> None:
        self.recalibrator, self.rows, self.part, self.parts = recalibrator, rows, part, parts
        self.scores = ClassRecalibratorScores(name)
        self.forecast = rows.value if recalibrator is None else np.empty_like(rows.value)
        self.whole: ClassRecalibrator | None = None  # what is fitted to all rows

    @property
    def failed(self) -> bool:
        return self.scores.problem is not None

    def hold_out(self, number: int) -> None:
        """Fit the candidate to the other parts, and forecast this one."""
        if self.recalibrator is None or self.failed:
            return
        fitted = self._fitted(np.flatnonzero(self.part != number))
        here = np.flatnonzero(self.part == number)
        if fitted is not None:
            self.forecast[here] = fitted._mapped(self.rows.value[here])

    def judge(self, asked: dict[str, Any]) -> None:
        """Score the held-out forecasts of all parts."""
        if self.recalibrator is not None and not self.failed:
            self.whole = self._fitted(np.arange(len(self.rows.value)))
        if self.failed:
            return
        rows, places = self.rows, self.rows.places
        labels = np.array(rows.classes)[places]
        given = {"classes": list(rows.classes), "sample_weight": rows.weight}
        interval: Any = confidence_interval(labels, self.forecast, **{**given, **asked})
        right = top_places(self.forecast, rows.classes) == places
        self.scores = ClassRecalibratorScores(
            name=self.scores.name,
            cutoff=interval.estimate,
            cutoff_lower=interval.lower,
            cutoff_upper=interval.upper,
            brier=_mean(brier_losses(self.forecast, places), rows.weight),
            log_loss=_mean(log_losses(self.forecast, places), rows.weight),
            accuracy=_mean(right.astype(np.float64), rows.weight),
        )

    def promise(self, level: float) -> None:
        """Note what is guaranteed at this level of the candidate fitted to all rows."""
        assert self.whole is not None
        fitted = self.whole
        if "confidence_level" in fitted.get_params(deep=False):  # a menu knows that of the level of its fit alone
            fitted = clone(fitted).set_params(confidence_level=level)._fit_to(self.rows)
        known = fitted.guarantee(level)
        self.scores = replace(
            self.scores,
            guarantee=known.upper,
            guaranteed_question=known.question,
            guarantee_in_advance=known.in_advance,
        )

    def _fitted(self, where: IntArray) -> ClassRecalibrator | None:
        """Return the candidate fitted to some of the rows, or None after noting why that fails."""
        assert self.recalibrator is not None
        fitted: ClassRecalibrator = clone(self.recalibrator).set_params(classes=list(self.rows.classes))
        fitted._check_params()
        try:
            return fitted._fit_to(_taken(self.rows, where))
        except UndefinedError as problem:
            self.scores = ClassRecalibratorScores(self.scores.name, problem=str(problem))
            return None


def _promise(trials: list[_Trial], level: float) -> None:
    """Note the guarantees of those that have one, each at its share of delta: one is chosen on the rows of the fit.

    A candidate that could not be fitted counts, since the rows decided that.
    """
    able = [trial for trial in trials if trial.whole is not None and trial.whole.guarantee_ is not None]
    shares = len(able) + sum(trial.failed for trial in trials)
    for trial in able:
        trial.promise(1.0 - (1.0 - level) / shares)


def _mean(values: FloatArray, weight: FloatArray | None) -> float:
    return float(np.average(values, weights=weight))


def _recommend(trials: list[_Trial], codes: IntArray, level: float) -> tuple[str | None, str]:
    """Return the name of the candidate to use, and why in words."""
    rows = trials[0].rows
    if (rows.places == rows.places[0]).all():
        only = printable(rows.classes[int(rows.places[0])])
        return None, (
            f"Nothing is recommended. All of these rows are of class {only}: on them forecasting it for everybody has "
            "no error. Collect rows of other classes."
        )
    fitted = [trial for trial in trials if not trial.failed]
    considered = [trial for trial in fitted if trial.scores.log_loss != math.inf] or fitted
    best = min(considered, key=_brier)
    close = [trial for trial in considered if trial is best or _within_noise(trial, best, codes)]
    as_is = trials[0].scores
    if close[0] is trials[0]:
        rival = "" if best is trials[0] else f" (lowest: {best.scores.name}, {rounded(best.scores.brier)})"
        return AS_IS, (
            f"Leave the forecasts as they are: no recalibrator lowers their Brier score, {rounded(as_is.brier)}, by "
            f"more than one standard error{rival}. Their Cutoff error is {rounded(as_is.cutoff)}, at most "
            f"{rounded_up(as_is.cutoff_upper)}; certify() says whether that is good enough."
        )
    promised = [trial for trial in close if trial.scores.guarantee is not None]
    chosen = min(promised or close, key=_brier).scores
    rank = "the lowest" if chosen is best.scores else f"as low as the lowest, that of {best.scores.name}, up to noise"
    words = (
        f"Use {chosen.name}: its held-out Brier score, {rounded(chosen.brier)} against {rounded(as_is.brier)} as is, "
        f"is {rank}; its held-out Cutoff error is {rounded(chosen.cutoff)} against {rounded(as_is.cutoff)}."
    )
    if chosen.guarantee is not None:
        words += (
            f" Fitted to all rows it has a bound of {rounded_up(chosen.guarantee)} with {level_said(level)} confidence "
            f"({chosen.guaranteed_question}), although it was chosen on them."
        )
    return chosen.name, words


def _brier(trial: _Trial) -> float:
    return math.inf if trial.scores.brier is None else trial.scores.brier


def _within_noise(one: _Trial, best: _Trial, codes: IntArray) -> bool:
    """Return whether a Brier score is within one standard error of the lowest, from differences by row or cluster."""
    rows = one.rows
    apart = brier_losses(one.forecast, rows.places) - brier_losses(best.forecast, rows.places)
    weight = np.ones(apart.size) if rows.weight is None else rows.weight
    mean = float(np.average(apart, weights=weight))
    by_cluster = np.bincount(codes, weights=weight * (apart - mean))
    return mean <= math.sqrt(float(by_cluster @ by_cluster)) / float(weight.sum())

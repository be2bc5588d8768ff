"""Proper scores taken apart: what recalibration could mend, what the forecasts tell apart, and the rest.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.results import UNIT, Result, as_frame
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray
from calibrant.decisions.gaps import noise_note
from calibrant.decisions.scores import SCORES, ProperScore, SchervishMeasure
from calibrant.measures.expected import plug_in_error
from calibrant.measures.results import PAPER, PROJECT, Relation
from calibrant.measures.smoothers import isotonic_curve
from calibrant.measures.weighted import cutoff_calibration_error
from calibrant.rows.intake import RowsLike, as_tally
from calibrant.rows.refinement import TOLERANCE
from calibrant.rows.tally import Tally


def score_decomposition(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    score: str | SchervishMeasure = "brier",
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> ScoreDecomposition:
    """Split a mean proper score into miscalibration, discrimination and uncertainty.

    With c the isotonic regression of the outcomes on the forecasts and m the mean outcome, and S the mean score:
    miscalibration = S(p) - S(c), discrimination = S(m) - S(c), uncertainty = S(m), so that
    S(p) = miscalibration - discrimination + uncertainty. Miscalibration is what the best non-decreasing recalibration
    would save on these rows; it is the integral of `risk_gap_curve` over the thresholds, weighted by the score's
    Schervish measure, and so at most that measure's total mass times the Cutoff calibration error: for the Brier and
    the spherical score, 2 Cutoff. The log loss weighs thresholds near 0 and 1 without limit, and has no such bound.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `decision_risk`. For outcomes between 0 and 1 the score is the expected one of an event with that
        probability (for Brier, the mean of (y - p)^2 + y (1 - y)).
    score : {"brier", "log", "spherical"} or SchervishMeasure
        (y - p)^2; -log of the chance given to what happened; 1 minus that chance over sqrt(p^2 + (1 - p)^2); or your
        own.

    Returns
    -------
    ScoreDecomposition
        With the skill against the base rate, and the bounds where they exist. A forecast of exactly 0 or 1 that turned
        out wrong has an infinite log loss; then the score and the miscalibration are infinite, and a note says so.

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers (CORP); Proposition
    B.1 of [1]_, whose factor 2 is 1 for non-decreasing recalibration (this project).

    Examples
    --------
    >>> print(score_decomposition([0, 0, 1, 1] * 10, [0.2, 0.3, 0.4, 0.9] * 10))
    Brier score 0.12500 = miscalibration 0.12500 - discrimination 0.25000 + uncertainty 0.25000; skill against the base
    rate 50.0%
    saving of non-decreasing recalibration <= mass 2 x Cutoff: 0.125 <= 0.35 holds (this project)
    saving of monotone recalibration <= 2 x mass 2 x Cutoff: 0.125 <= 0.7 holds (Rossellini et al. 2025, Prop. B.1)
    saving of any recalibration <= mass 2 x ECE: 0.125 <= 0.6 holds (Rossellini et al. 2025, Prop. B.1)
    """
    rule = _rule(score)
    if rule is None:
        known = ", ".join(repr(name) for name in SCORES)
        raise InputError(f"must be one of {known}, or a SchervishMeasure, got {score!r}", argument="score", value=score)
    tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    value, contradicted = _mean_score(rule, tally, tally.forecast)
    recalibrated, _ = _mean_score(rule, tally, isotonic_curve(tally))
    mean_outcome = tally.outcome_total / tally.weight_total
    uncertainty, _ = _mean_score(rule, tally, np.full(len(tally), mean_outcome))
    miscalibration = max(value - recalibrated, 0.0)
    notes = []
    bounds: tuple[Relation, ...] = ()
    if np.isfinite(rule.mass):
        bounds = _score_bounds(rule, tally, value, recalibrated)
        noise = noise_note(tally) if tally.binary_outcomes else None
        if noise is not None:
            notes.append(
                f"the saving of any recalibration compares each distinct forecast with {noise}, and says nothing about "
                "new rows"
            )
    else:
        notes.append(
            f"no calibration error bounds the miscalibration of the {rule.name} score: its weight on thresholds near 0 "
            "or 1 has no limit"
        )
    if contradicted > 0.0:
        notes.append(
            "outcomes contradicted forecasts of exactly 0 or 1, at infinite cost, so score and miscalibration are "
            "infinite; the other parts are not affected"
        )
    return ScoreDecomposition(
        name=rule.name,
        score=value,
        miscalibration=miscalibration,
        discrimination=max(uncertainty - recalibrated, 0.0),
        uncertainty=uncertainty,
        skill=1.0 - value / uncertainty if uncertainty > 0.0 else None,
        mass=rule.mass,
        bounds=bounds,
        contradicted=contradicted,
        notes=tuple(notes),
    )


def _rule(score: Any) -> ProperScore | SchervishMeasure | None:
    """Return the score that is meant, whatever was passed; None where none is."""
    if isinstance(score, SchervishMeasure):
        return score
    return SCORES.get(score) if isinstance(score, str) else None


def _mean_score(rule: ProperScore | SchervishMeasure, tally: Tally, forecast: FloatArray) -> tuple[float, float]:
    """Return the mean score of forecasts in place of a tally's own, and the share of the weight that costs infinity."""
    total = contradicted = 0.0
    for weight, loss in (
        (tally.outcome, rule.event_loss(forecast)),
        (tally.weight - tally.outcome, rule.nonevent_loss(forecast)),
    ):
        counts = weight > 0.0
        finite = np.isfinite(loss)
        total += float(weight[counts & finite] @ loss[counts & finite])
        contradicted += float(weight[counts & ~finite].sum())
    mean = np.inf if contradicted else total / tally.weight_total
    return float(mean), contradicted / tally.weight_total


def _score_bounds(
    rule: ProperScore | SchervishMeasure, tally: Tally, value: float, recalibrated: float
) -> tuple[Relation, ...]:
    """Return what the Cutoff error and the ECE say about the saving of three kinds of recalibration, checked."""
    turned, _ = _mean_score(rule, tally, isotonic_curve(tally, increasing=False))
    single, _ = _mean_score(rule, tally, tally.mean_outcome)
    monotone = min(recalibrated, turned)
    cutoff, mass = cutoff_calibration_error(tally), rule.mass
    shown, source = f"mass {mass:.4g}", f"{PAPER}, Prop. B.1"
    facts = [
        (f"non-decreasing recalibration <= {shown} x Cutoff", recalibrated, mass * cutoff, PROJECT),
        (f"monotone recalibration <= 2 x {shown} x Cutoff", monotone, 2.0 * mass * cutoff, source),
        (f"any recalibration <= {shown} x ECE", min(monotone, single), mass * plug_in_error(tally), source),
    ]
    slack = TOLERANCE * max(1.0, mass)
    return tuple(
        Relation(f"saving of {statement}", max(value - best, 0.0), bound, value - best <= bound + slack, reference)
        for statement, best, bound, reference in facts
    )


@dataclass(frozen=True)
class ScoreDecomposition(Result):
    """A mean proper score split into what recalibration could mend, what the forecasts tell apart, and the rest.

    score = miscalibration - discrimination + uncertainty; smaller scores are better.

    Attributes
    ----------
    name : str
        The score: "brier", "log", "spherical", or the name of your own.
    score : float
        Mean score of the forecasts; infinite when a sure forecast was wrong and the score punishes that without limit.
    miscalibration : float
        What the best non-decreasing recalibration of these rows (isotonic regression) would save; 0 is ideal.
    discrimination : float
        What the recalibrated forecasts save against the base rate; larger is better.
    uncertainty : float
        Score of the base rate, the same forecast for every row.
    skill : float or None
        1 - score/uncertainty: 1 is perfect, 0 as good as the base rate; None when the uncertainty is 0.
    mass : float
        Total mass of the score's Schervish measure; infinite for the log loss.
    bounds : tuple of Relation
        What theory says about the saving of non-decreasing, monotone and arbitrary recalibration, from the Cutoff
        calibration error and the ECE; empty when the mass is infinite, for then no such bound exists.
    contradicted : float
        Share of the weight on outcomes that cost infinitely much.
    notes : tuple of str
        What to keep in mind when reading the numbers.
    """

    name: str
    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    skill: float | None
    mass: float
    bounds: tuple[Relation, ...]
    contradicted: float
    notes: tuple[str, ...] = ()

    # Where a sure forecast was wrong, and where the measure of the score has no end.
    _may_be_infinite: ClassVar = ("score", "miscalibration", "skill", "mass")
    _ranges: ClassVar = {"contradicted": UNIT}

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, endless in (("score", self.contradicted > 0.0), ("mass", not self.bounds)):
            if (getattr(self, name) == math.inf) != endless:
                self._refuse(name, getattr(self, name), "which does not follow from contradicted and bounds")

    def frame(self) -> Any:
        """Return one row per component."""
        names = ["score", "miscalibration", "discrimination", "uncertainty", "skill"]
        return as_frame({"component": names, "value": [getattr(self, name) for name in names]})

    def __str__(self) -> str:
        notes = [f"Note: {note}" for note in self.notes]
        return "\n".join([self.finding(), *(str(bound) for bound in self.bounds), *notes])

    def finding(self) -> str:
        """Return the parts of the score in words, without bounds and notes."""
        name = "Brier" if self.name == "brier" else self.name
        skill = "undefined" if self.skill is None else f"{100.0 * self.skill:.1f}%"
        return (
            f"{name} score {self.score:.5f} = miscalibration {self.miscalibration:.5f} - discrimination "
            f"{self.discrimination:.5f} + uncertainty {self.uncertainty:.5f}; skill against the base rate {skill}"
        )

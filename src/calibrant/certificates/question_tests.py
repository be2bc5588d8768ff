"""Test perfect calibration of forecasts of several classes: draw a class per row from its forecast, again and again.

If the forecasts are calibrated each row's class follows the probabilities that were forecast for it, and so the joint
law of all questions is known, however they depend on each other. The statistic is the largest Cutoff error of a
question; the p-value is the share of drawn data sets, the real one among them, in which it is at least as large.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from calibrant.certificates.rejections import USUAL_LEVEL, CalibrationTest
from calibrant.core.progress import track
from calibrant.core.results import UNIT, Result
from calibrant.core.types import FloatArray, IntArray, Label
from calibrant.core.voices import Either
from calibrant.core.words import in_columns
from calibrant.measures.questions import OfQuestions
from calibrant.measures.weighted import cutoff_calibration_error
from calibrant.rows.checks import Observations
from calibrant.rows.questions import KINDS, ClassLaw, Questions
from calibrant.rows.refinement import TOLERANCE
from calibrant.rows.runs import group_starts
from calibrant.rows.splits import digest, seeded

AFFORDABLE_DRAWS = 2e9
"""Rows times questions times resamples up to which all are drawn: some ten seconds."""

_PART = 1 << 17  # classes drawn at a time: what stays in the processor's cache
_FEWEST = 16  # resamples at a time, so that those of a row are moved together

_ASSUMED = (
    "classes of different rows are independent given the forecasts",
    "the forecaster was fixed without looking at them",
    "the test was chosen beforehand and is done once",
)
_BY_NUMBER = ("bonferroni",)
_SEED = "the seed of the resamples was chosen beforehand too"


@dataclass(frozen=True)
class QuestionTests(OfQuestions, Result):
    """What a test of perfect calibration of forecasts of several classes, or labels, found.

    Attributes
    ----------
    kind : str
        What the questions are.
    questions : tuple
        What tells them apart.
    statistics : tuple of float
        Per question, the Cutoff calibration error of these rows.
    pvalues : tuple of float
        Per question, the p-value of its error by itself, as if nothing else had been asked.
    pvalue : float
        The joint p-value: how probable it is that the largest statistic is at least as large when the forecasts are
        perfectly calibrated; or, where that is not known, the smallest p-value times the number of questions.
    method : str
        "exact" (classes drawn from the forecasts, all questions at once) or "bonferroni" (one test per question).
    rows : int
        Rows.
    n_resamples : int or None
        Simulated data sets; None when nothing was simulated.
    assumptions : tuple of str
        What the p-value rests on.
    notes : tuple of str
        What to keep in mind for these data.
    """

    kind: str
    questions: tuple[Label, ...]
    statistics: tuple[float, ...]
    pvalues: tuple[float, ...]
    pvalue: float
    method: str
    rows: int
    n_resamples: int | None
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()

    _parts: ClassVar = "statistics"
    _ranges: ClassVar = dict.fromkeys(("pvalue", "pvalues", "statistics"), UNIT)
    _words: ClassVar = {"kind": KINDS, "method": ("exact", "bonferroni")}

    def _estimates(self) -> tuple[float, ...]:
        return self.statistics

    def rejected(self, level: float = USUAL_LEVEL) -> bool:
        """Return whether perfect calibration is rejected at a level: when the joint p-value is at most that.

        Parameters
        ----------
        level : float
            How often calibrated forecasts may be rejected.
        """
        return self.pvalue <= level

    def frame(self, backend: Any = None) -> Any:
        """Return one row per question."""
        return self._framed(
            {"question": list(self.questions), "statistic": self.statistics, "pvalue": self.pvalues}, backend
        )

    def finding(self, level: float = USUAL_LEVEL) -> str:
        """Say in one sentence whether perfect calibration is rejected at a level."""
        resamples = "" if self.n_resamples is None else f", {self.n_resamples:,} resamples"
        return (
            f"Perfect calibration of these forecasts is {'' if self.rejected(level) else 'not '}rejected at the "
            f"{100.0 * level:g}% level (p-value {self.pvalue:.4g} for {self._count_said()}, {self.rows:,} "
            f"rows{resamples})."
        )

    def __str__(self) -> str:
        how = "the smallest p-value times their number" if self.method in _BY_NUMBER else "the largest error of all"
        lines = [
            (str(self.questions[place]), f"{self.statistics[place]:.4g}", f"{self.pvalues[place]:.4g}")
            for place in self.shown_places()
        ]
        return "\n".join(
            [
                self.finding(),
                f"The largest Cutoff error is {self.estimate:.4g}, for {self.named_question(self.worst)}. A large "
                f"p-value is no certificate of calibration: only {Either('certify()', 'calibrant certify')} says how "
                "large the error may be.",
                f"This assumes that {'; '.join(self.assumptions)}.",
                *(f"Note: {note}" for note in self.notes),
                f"The joint p-value is about {how}; each question by itself:",
                in_columns((self.described.noun, "statistic", "p-value"), lines),
                *self._left_out(),
            ]
        )

    __repr__ = __str__


def joint_test(
    family: Questions, resamples: int, seed: int, shown: bool | None, single: Callable[[Observations], CalibrationTest]
) -> QuestionTests:
    """Return the joint test of several questions.

    Where the forecasts determine how outcomes depend on each other, and there are not too many of them, all questions
    are drawn together; else each is tested by itself, as ``single`` does, and the smallest p-value is multiplied.
    """
    law = family.law
    if law is not None and family.row_count * len(family) * resamples <= AFFORDABLE_DRAWS and law.unit_weights:
        return _drawn_test(family, law, resamples, seed, shown)
    tests = [single(rows) for rows in family]
    pvalues = tuple(each.pvalue for each in tests)
    return QuestionTests(
        kind=family.kind,
        questions=family.labels,
        statistics=tuple(each.statistic for each in tests),
        pvalues=pvalues,
        pvalue=min(len(family) * min(pvalues), 1.0),
        method="bonferroni",
        rows=family.row_count,
        n_resamples=tests[0].n_resamples,
        assumptions=tuple(dict.fromkeys(words for each in tests for words in each.assumptions)),
        notes=(*family.notes, *dict.fromkeys(note for each in tests for note in each.notes)),
    )


def _drawn_test(family: Questions, law: ClassLaw, resamples: int, seed: int, shown: bool | None) -> QuestionTests:
    """Draw a class per row from its forecast, so often, and compare the largest error of a question."""
    rows = family.row_count
    # Random numbers belong to forecasts, not to places: rows of one forecast are alike, in whatever order they come.
    order = np.lexsort(law.y_prob.T)
    marks = digest("classes", *(law.y_prob[order, place] for place in range(law.y_prob.shape[1])))
    rng = seeded(seed, "calibration test of classes", marks)
    observed = np.array([cutoff_calibration_error(column) for column in family])
    least = observed - TOLERANCE
    beyond, largest = np.zeros(len(family), dtype=np.int64), 0
    parts = _parts(resamples, max(_FEWEST, _PART // rows))
    for part in track(parts, total=len(parts), label="resampling", shown=shown):
        drawn = np.empty((rows, part), dtype=np.int16)
        drawn[order] = _classes(rng, law.y_prob, order, part)
        found = np.empty((len(family), part))
        for place, column in enumerate(family):
            found[place] = _errors(column.y_prob, law.outcome(place, drawn))
        beyond += np.count_nonzero(found >= least[:, np.newaxis], axis=1)
        largest += int(np.count_nonzero(found.max(axis=0) >= least.max()))
    return QuestionTests(
        kind=family.kind,
        questions=family.labels,
        statistics=tuple(observed.tolist()),
        pvalues=tuple(((1 + beyond) / (1 + resamples)).tolist()),
        pvalue=(1 + largest) / (1 + resamples),
        method="exact",
        rows=rows,
        n_resamples=resamples,
        assumptions=(*_ASSUMED, _SEED),
        notes=family.notes,
    )


def _parts(total: int, size: int) -> list[int]:
    return [min(size, total - begin) for begin in range(0, total, size)]


def _classes(rng: np.random.Generator, y_prob: npt.NDArray[Any], order: IntArray, part: int) -> npt.NDArray[np.int16]:
    """Draw the class of each row from its probabilities, so many times."""
    chance = rng.random((order.size, part)) * y_prob.sum(axis=1, dtype=np.float64)[order, np.newaxis]
    drawn = np.zeros(chance.shape, dtype=np.int16)
    passed = np.zeros(order.size)
    last = np.zeros(order.size, dtype=np.int16)
    for place in range(y_prob.shape[1]):
        likely = y_prob[order, place]
        last[likely > 0.0] = place
        passed += likely
        drawn += chance >= passed[:, np.newaxis]
    return np.minimum(drawn, last[:, np.newaxis])  # sums that end short by rounding reach no class of probability 0


def _errors(forecast: FloatArray, outcomes: npt.NDArray[Any]) -> FloatArray:
    """Return the Cutoff error of one forecast with several sets of outcomes, a column for each."""
    order = np.argsort(forecast, kind="stable")
    starts = group_starts(forecast[order])
    expected = np.cumsum(forecast[order])
    curve = np.cumsum(outcomes[order], axis=0, dtype=np.float64)
    curve -= expected[:, np.newaxis]
    if starts.size < order.size:  # of equal forecasts only the last counts
        curve = curve[np.append(starts[1:], order.size) - 1]
    spread: FloatArray = np.maximum(curve.max(axis=0), 0.0) - np.minimum(curve.min(axis=0), 0.0)
    return spread / order.size

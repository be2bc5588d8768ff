"""What is watched: the Cutoff calibration error, or what re-drawing the line between acting and not would save."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from calibrant.certificates.cautions import cautions_on, saving_cautions
from calibrant.certificates.saving_limits import usual_rate
from calibrant.core.errors import InputError
from calibrant.core.types import FloatArray
from calibrant.core.voices import Either, Option, Phrase
from calibrant.measures.savings import check_threshold_range, saving_of
from calibrant.monitors.evidence import Gains, period_gains, period_gains_of, period_means, rates_of, row_gains
from calibrant.monitors.families import (
    BEGIN,
    BORDERS,
    END,
    RATES,
    between_borders,
    log_shares,
    places,
    shares_of_intervals,
)
from calibrant.monitors.uppers import mixed_upper_of_rows, rate_of_rows, upper_of_rows
from calibrant.rows.cells import Cells
from calibrant.rows.savings import EVERY_THRESHOLD, Stretches, Thresholds, bet_score, bracket_redrawing
from calibrant.rows.tally import Totals

_NEAR = 1  # rates on each side of the best ones that are tried: each takes long


class Question(ABC):
    """A measure that evidence and limits are about.

    Attributes
    ----------
    name : str
        What users write.
    any_dependence : bool
        Whether there is an upper limit that rests on nothing.
    """

    name: ClassVar[str]
    any_dependence: ClassVar[bool]

    @property
    def threshold(self) -> float | list[float] | None:
        """The threshold, or the lowest and the highest, that was asked about; None for all, and where there is none."""
        return None

    @property
    @abstractmethod
    def log_shares(self) -> FloatArray:
        """The logarithm of the share of each sign and interval, at one rate, in the average of evidence."""

    @abstractmethod
    def row_gains(self, cells: Cells, tolerance: float) -> Gains:
        """Return what bets on rows gain."""

    @abstractmethod
    def period_gains(self, cells: Cells, tolerance: float) -> Gains:
        """Return what bets on the mean of a period gain."""

    @abstractmethod
    def upper_of_rows(self, cells: Cells, delta: float) -> float:
        """Return the upper limit for rows of one population, at all times together."""

    @abstractmethod
    def estimate(self, table: Totals) -> float:
        """Return its value on the rows, to within the width of a cell."""

    @abstractmethod
    def cautions(self, max_error: float, event_rate: float) -> tuple[str, ...]:
        """Return why a limit says nothing where events are this frequent, if so."""


class CutoffQuestion(Question):
    """The largest error on an interval of forecasts."""

    name = "cutoff"
    any_dependence = True

    @property
    def log_shares(self) -> FloatArray:
        """The same for both signs."""
        return log_shares()

    def row_gains(self, cells: Cells, tolerance: float) -> Gains:
        """Return what bets on rows gain."""
        return row_gains(cells, tolerance)

    def period_gains(self, cells: Cells, tolerance: float) -> Gains:
        """Return what bets on the mean of a period gain."""
        return period_gains(cells, tolerance)

    def upper_of_rows(self, cells: Cells, delta: float) -> float:
        """Return the upper limit for rows of one population, at all times together."""
        return upper_of_rows(cells, delta)

    def estimate(self, table: Totals) -> float:
        """Return the largest error on an interval of whole cells."""
        return float(np.ptp(np.append(0.0, np.cumsum(table.residual)))) / table.weight_total

    def cautions(self, max_error: float, event_rate: float) -> tuple[str, ...]:
        """Return why a limit says nothing where events are this frequent, if so."""
        return cautions_on(max_error, event_rate, "rows", rows_only=True)


@dataclass(frozen=True)
class SavingQuestion(Question):
    """The most that a decision maker would save by acting from another forecast on than the threshold.

    Each interval of the family stands for two redrawings: of the threshold at its upper end down to its lower one, so
    that more rows are acted on, and of the one at its lower end up.
    """

    thresholds: Thresholds

    name = "risk_gap"
    any_dependence = False

    @property
    def threshold(self) -> float | list[float] | None:
        """The threshold, or the lowest and the highest, that was asked about; None for all."""
        if self.thresholds == EVERY_THRESHOLD:
            return None
        low, high = self.thresholds
        return low if low == high else [low, high]

    @cached_property
    def log_shares(self) -> FloatArray:
        """None for redrawings of thresholds that nobody has."""
        low, high = self.thresholds
        allowed = np.stack([(each >= low) & (each <= high) for each in (BORDERS[END], BORDERS[BEGIN])])
        shares = np.where(allowed, shares_of_intervals(), 0.0)
        if not shares.any():
            said = f"{low:g}" if low == high else f"{low:g} to {high:g}"
            near = BORDERS[np.argsort(np.abs(BORDERS - (low + high) / 2.0))[:2]]
            raise InputError(
                f"covers no sixteenth (finer towards 0 and 1), where evidence is gathered: it is {said}",
                argument="threshold",
                remedy=Phrase(
                    "watch a range that holds one, such as {near}",
                    near=Either(f"({min(near):g}, {max(near):g})", f"{min(near):g}:{max(near):g}"),
                ),
            )
        with np.errstate(divide="ignore"):
            found: FloatArray = np.log(shares / (shares.sum() * RATES))
        return found

    def row_gains(self, cells: Cells, tolerance: float) -> Gains:
        """Return what bets on rows gain: ln(1 + x (y - t)), or with the other sign, of an outcome y and threshold t."""
        place = places(cells.index, cells.bits)
        counts = (
            np.bincount(place, weights=column, minlength=BORDERS.size - 1) for column in (cells.rows, cells.outcome)
        )
        rows, events = (between_borders(count.astype(np.float64, copy=False)) for count in counts)
        rate, others = rates_of("row")[:, None], rows - events
        down, up = BORDERS[END], BORDERS[BEGIN]
        more = events * np.log1p(rate * (1.0 - down)) + others * np.log1p(-rate * down)
        fewer = events * np.log1p(-rate * (1.0 - up)) + others * np.log1p(rate * up)
        allowed = cells.row_total * np.log1p(rates_of("row") * tolerance)
        return Gains(np.stack([more, fewer], axis=1) - allowed[:, None, None], np.zeros((RATES, 2, 1), dtype=np.bool_))

    def period_gains(self, cells: Cells, tolerance: float) -> Gains:
        """Return what bets on the mean of a period gain; at worst all rows, or none, are events."""
        events, share = period_means(cells, cells.outcome, cells.weight)
        down, up = BORDERS[END], BORDERS[BEGIN]
        won = np.stack([events - down * share, up * share - events])
        return period_gains_of(won, np.stack([down * share, (1.0 - up) * share]), tolerance)

    def upper_of_rows(self, cells: Cells, delta: float) -> float:
        """Return the upper limit for rows of one population, at all times together."""
        stretches = Stretches.of(cells)

        def grown(rates: FloatArray) -> FloatArray:
            ends = [bracket_redrawing(stretches, self.thresholds, bet_score(rate)) for rate in rates.tolist()]
            return np.array([most for _, most in ends])

        # Rows near the thresholds suit one rate, all rows another: the second keeps the limit below the Cutoff error's.
        best = usual_rate(stretches, self.thresholds, math.log(1.0 / delta))
        return mixed_upper_of_rows([best, rate_of_rows(cells, delta)], _NEAR, grown, cells, delta)

    def estimate(self, table: Totals) -> float:
        """Return the largest saving of lines between cells."""
        return saving_of(table, self.thresholds).saving

    def cautions(self, max_error: float, event_rate: float) -> tuple[str, ...]:
        """Return why a limit says nothing where events are this frequent, if so."""
        return saving_cautions(max_error, event_rate, self.thresholds)


def _cutoff(threshold: Any) -> Question:
    if threshold is not None:
        problem = Phrase("belongs to {gap}", gap=Option("measure", "risk_gap"))
        raise InputError(problem, argument="threshold", remedy="leave it out")
    return CutoffQuestion()


def _saving(threshold: Any) -> Question:
    return SavingQuestion(EVERY_THRESHOLD if threshold is None else check_threshold_range(threshold, None, None)[0])


_QUESTIONS: dict[str, Callable[[Any], Question]] = {CutoffQuestion.name: _cutoff, SavingQuestion.name: _saving}


def question_of(measure: Any, threshold: Any) -> Question:
    """Return what a monitor watches; other measures need more than the totals of a stream."""
    if not isinstance(measure, str) or measure not in _QUESTIONS:
        raise InputError(
            f"is {measure!r}, of which the totals of a stream do not tell enough",
            argument="measure",
            value=measure,
            remedy="pass 'cutoff' or 'risk_gap'; others are found from rows by measure() and certify(), for one look",
        )
    question = _QUESTIONS[measure](threshold)
    assert question.log_shares.size  # which refuses thresholds at which nothing can be watched
    return question

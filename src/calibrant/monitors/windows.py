"""Which window? What maps fitted to fewer or more of the last periods would have made of the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calibrant.core.errors import InputError
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, ClassLabel
from calibrant.core.words import counted
from calibrant.monitors.batches import GRID, period_places, split_rows
from calibrant.monitors.periods import PeriodLabel, due_after, is_after
from calibrant.monitors.refits import (
    RecalibratorName,
    Score,
    Window,
    as_recalibrator,
    check_window,
    in_time,
)
from calibrant.monitors.repaired import WindowComparison, WindowScores
from calibrant.repairs.recalibrator import Recalibrator
from calibrant.rows.cells import Cells
from calibrant.rows.checks import Observations, check_number
from calibrant.rows.promised import as_observations

_FEWEST_ROWS = 2


@frames_follow
def compare_windows(
    y_true: ArrayLike | Observations,
    y_prob: ArrayLike | None = None,
    *,
    period: ArrayLike,
    windows: Sequence[int],
    recalibrator: RecalibratorName | Recalibrator = "isotonic",
    maturity: int = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> WindowComparison:
    """Say how well rolling repairs with windows of several lengths would have done, on the same periods.

    Each period is repaired by a map of earlier periods only, and those after the longest window are judged. A long
    window leaves less to chance, a short one follows changes sooner; which matters more only the past can tell. Without
    the brake of `RollingRecalibrator`.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `certify`: past rows, with forecasts as they were before any repair.
    period : array-like of shape (n,)
        The period of each row: whole numbers or dates.
    windows : sequence of int
        Of how many periods each window is.
    recalibrator, maturity
        As in `RollingRecalibrator`.

    Returns
    -------
    WindowComparison
        Scores of the forecasts as they are and of each window, and which has the smallest Brier score.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> period = np.repeat(np.arange(160), 200)
    >>> y_prob = rng.random(32_000)
    >>> chance = np.where(period // 40 % 2, y_prob**0.5, y_prob**1.5)
    >>> print(compare_windows(rng.random(32_000) < chance, y_prob, period=period, windows=[2, 8, 40]))
    IsotonicRecalibrator, on 120 periods (24,000 rows):
      window  Cutoff error  by 2 periods  Brier score
      none          0.0795        0.1521  0.1881
      2             0.0124        0.0389  0.1659
      8             0.0151        0.0546  0.1682
      40            0.0505        0.1466  0.1914
    A window of 2 periods did best by the Brier score on these periods, which chose it: the next will be a little less
    kind.
    """
    rows = as_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    maturity = int(check_number(maturity, "maturity", low=0, high=1e6, whole=True))
    sizes = sorted({check_window(window) for window in windows})
    if not sizes:
        raise InputError("is empty", argument="windows", remedy="pass a few lengths, as in windows=[7, 14, 28]")
    labels, place = period_places(period, rows.y_prob.size)
    parts = {labels[each]: some for each, some in split_rows(rows, place)}
    order = in_time(parts)
    judged = _judged(order, max(sizes), maturity)
    kind, stretch = as_recalibrator(recalibrator), min(sizes)
    cells = {each: Cells.from_rows(parts[each], GRID) for each in order}
    as_they_are = Score(stretch)
    for each in judged:
        as_they_are.add(cells[each])
    found = [_scores(0, as_they_are)]
    for size in sizes:
        score = Score(stretch)
        window = Window(kind, size, _FEWEST_ROWS)
        known = 0
        for each in judged:
            while is_after(each, due_after(order[known], maturity)):
                window.push(order[known], cells[order[known]])
                known += 1
            fitted = window.fit()
            some = parts[each]
            issued = fitted.applied(some.y_prob)
            score.add(cells[each] if fitted.map is None else Cells.from_rows(replace(some, y_prob=issued), GRID))
        found.append(_scores(size, score))
    assert as_they_are.cells is not None
    return WindowComparison(
        recalibrator=type(kind).__name__,
        scores=tuple(found),
        best=min(found, key=lambda each: each.brier).window,
        periods=len(judged),
        rows=as_they_are.cells.row_total,
        stretch=stretch,
    )


def _judged(order: list[PeriodLabel], longest: int, maturity: int) -> list[PeriodLabel]:
    """Return the periods before which so many others were due."""
    judged = []
    known = 0
    for each in order:
        while is_after(each, due_after(order[known], maturity)):
            known += 1
        if known >= longest:
            judged.append(each)
    if not judged:
        raise InputError(
            f"has {counted(len(order), 'period')}, and none is after {counted(longest, 'period')} whose labels are in",
            argument="period",
            remedy="pass rows of more periods, or shorter windows",
        )
    return judged


def _scores(window: int, score: Score) -> WindowScores:
    cutoff, by_stretch, brier = score.cutoff, score.cutoff_by_stretch, score.brier
    assert cutoff is not None
    assert by_stretch is not None
    assert brier is not None
    return WindowScores(window=window, cutoff=cutoff, cutoff_by_stretch=by_stretch, brier=brier)

"""Spiegelhalter's test, which looks in one direction only."""

from __future__ import annotations

import math
from typing import overload

import numpy as np

from calibrant.certificates.hypotheses import ASYMPTOTIC, GIVEN_FORECASTS, MANY_ROWS, few_note, require_counts
from calibrant.certificates.rejections import CalibrationTest, GroupCalibrationTests
from calibrant.core.errors import UndefinedError
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, ClassLabel
from calibrant.core.voices import Argument, Phrase
from calibrant.rows.groups import GroupedRows, GroupedSource, are_grouped, by_group
from calibrant.rows.intake import GroupsLike, RowsLike
from calibrant.rows.promised import as_tally, in_groups
from calibrant.rows.tally import Tally


@overload
def spiegelhalter_test(y_true: GroupedSource | GroupedRows) -> GroupCalibrationTests: ...


@overload
def spiegelhalter_test(
    y_true: RowsLike, y_prob: ArrayLike | None = None, *, by: None = None, pos_label: ClassLabel | None = None
) -> CalibrationTest: ...


@overload
def spiegelhalter_test(
    y_true: RowsLike, y_prob: ArrayLike | None = None, *, by: ArrayLike, pos_label: ClassLabel | None = None
) -> GroupCalibrationTests: ...


@frames_follow
def spiegelhalter_test(
    y_true: RowsLike | GroupsLike,
    y_prob: ArrayLike | None = None,
    *,
    by: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> CalibrationTest | GroupCalibrationTests:
    """Test by Spiegelhalter's z whether the Brier score is what calibrated forecasts would have.

    z = sum of (y - p)(1 - 2p) / sqrt(sum of (1 - 2p)^2 p (1 - p)), standard normal when the forecasts are calibrated
    and the rows are many; the p-value is two-sided. A positive z says that forecasts are too extreme (rare events
    happen more often than forecast and common ones less often), a negative one that they are too timid.

    It looks in that one direction only. A forecaster who is too low everywhere can have z = 0, because errors at low
    and at high forecasts cancel: the example has forecasts of 20% and 80% where 30% and 90% happen, and
    `calibration_test` finds it.

    Parameters
    ----------
    y_true : array-like of shape (n,), or Tally
        Outcomes: 0/1, booleans, or labels with ``pos_label``; or a tally on its own.
    y_prob : array-like of shape (n,)
        Forecast probabilities.
    by : array-like of shape (n,), optional
        A group per row, as in `calibration_test`.
    pos_label : label, optional
        The label in ``y_true`` that counts as the event, against all others.

    Returns
    -------
    CalibrationTest, or GroupCalibrationTests with ``by``
        With ``statistic`` (z) and ``pvalue``.

    References
    ----------
    Spiegelhalter (1986), Probabilistic prediction in patient management and clinical trials, Statistics in Medicine 5.

    Examples
    --------
    >>> from calibrant import Tally, calibration_test
    >>> too_low = Tally.from_counts(forecast=[0.2, 0.8], rows=[500, 500], events=[150, 450])
    >>> abs(round(spiegelhalter_test(too_low).statistic, 9))
    0.0
    >>> calibration_test(too_low, rng=0).pvalue < 1e-6
    True
    """
    if by is None and not are_grouped(y_true):
        return _spiegelhalter(as_tally(y_true, y_prob, pos_label=pos_label))
    rows = in_groups(y_true, y_prob, by=by, pos_label=pos_label)
    return GroupCalibrationTests(rows.groups, by_group(rows, lambda each: _spiegelhalter(as_tally(each))))


def _spiegelhalter(tally: Tally) -> CalibrationTest:
    remedy = Phrase("use calibration_test with {asymptotic}", asymptotic=ASYMPTOTIC)
    require_counts(tally, "Spiegelhalter's z", remedy)
    forecast = tally.forecast
    direction = 1.0 - 2.0 * forecast
    variance = tally.rows * forecast * (1.0 - forecast)
    spread = float(np.square(direction) @ variance)
    if spread == 0.0:
        raise UndefinedError(
            Phrase(
                "Spiegelhalter's z is not defined when every {forecast} is 0, 0.5 or 1: calibrated outcomes would give "
                "0 / 0",
                forecast=Argument("y_prob"),
            ),
            remedy="use calibration_test",
        )
    z = float(direction @ tally.residual) / math.sqrt(spread)
    notes = (
        "this test looks in one direction only, forecasts that are too extreme or too timid: forecasts that are wrong "
        "in another way can pass it with z near 0, so read it beside calibration_test",
        *few_note(float(variance.sum())),
    )
    return CalibrationTest(
        test="spiegelhalter",
        statistic=z,
        pvalue=math.erfc(abs(z) / math.sqrt(2.0)),
        method="asymptotic",
        rows=tally.row_total,
        n_resamples=None,
        assumptions=(*GIVEN_FORECASTS, MANY_ROWS),
        notes=notes,
    )

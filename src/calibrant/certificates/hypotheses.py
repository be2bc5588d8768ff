"""Tests of the hypothesis that forecasts are perfectly calibrated.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal, get_args, overload

import numpy as np

from calibrant.certificates.cluster_tests import check_for_clusters, check_for_rows, clustered_test
from calibrant.certificates.clusters import ClusterQuestion, ClusterTarget, check_clusters
from calibrant.certificates.enumeration import enumerated_tail, is_enumerable
from calibrant.certificates.question_tests import QuestionTests, joint_test
from calibrant.certificates.rejections import CalibrationTest, GroupCalibrationTests
from calibrant.certificates.resampled_ranges import count_reaching
from calibrant.certificates.variances import variances
from calibrant.core.errors import InputError
from calibrant.core.frames import frames_follow
from calibrant.core.laws import brownian_range
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, Randomness
from calibrant.core.voices import Argument, Either, Option, Phrase
from calibrant.rows.asked import asked_of_classes, without_groups
from calibrant.rows.checks import check_choice, check_flag, check_number, check_seed
from calibrant.rows.classes import FamilyAsked, QuestionsAsked, SingleAsked
from calibrant.rows.groups import are_grouped, by_group
from calibrant.rows.hints import row_hints
from calibrant.rows.intake import GroupsLike, RowsLike, are_clustered
from calibrant.rows.promised import as_clustered, as_source, in_groups
from calibrant.rows.questions import Questions
from calibrant.rows.refinement import TOLERANCE, TooManyForecastsError, split_at_extremes, whole_tally
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals

TestMethod = Literal["auto", "exact", "asymptotic", "evidence"]
TEST_METHODS: tuple[str, ...] = get_args(TestMethod)

AFFORDABLE_DRAWS = 2e9
"""Rows times resamples up to which "auto" draws them all: a second or two of work."""

FEWEST_SEEDED = 999
"""Resamples that a fixed seed needs: an atom of the law with a p-value of 0.075 then passes for 0.05 at one seed in a
thousand only, and one of 0.0575 with the default number (docs/theory/random-halves.md)."""

FEW = 30.0
"""Below this sum of variances p (1 - p), weights relative to the largest, the large-sample law is a rough guide."""

COARSE_SHARE = 0.01
"""A repeated forecast that carries more than this share of the variance makes the large-sample test too cautious."""

GIVEN_FORECASTS = (
    "outcomes are independent given the forecasts",
    "the forecaster was fixed without looking at them",
    "the test was chosen beforehand and is done once",
)
_SEED = "the seed of the resamples was chosen beforehand too"
MANY_ROWS = "there are rows enough for the large-sample law"
_FIXED_WEIGHTS = "the weights were fixed without looking at the outcomes"
_JOINT = ("auto", "exact")
_EXACT, ASYMPTOTIC = Option("method", "exact"), Option("method", "asymptotic")


@overload
def calibration_test(
    y_true: GroupsLike,
    *,
    method: TestMethod = "auto",
    n_resamples: int = 9999,
    rng: Randomness = None,
    progress: bool | None = None,
) -> GroupCalibrationTests: ...


@overload
def calibration_test(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    method: TestMethod = "auto",
    n_resamples: int = 9999,
    rng: Randomness = None,
    by: None = None,
    classes: ArrayLike | None = None,
    questions: SingleAsked | None = None,
    multilabel: Literal[False] = False,
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    pos_label: ClassLabel | None = None,
    sample_weight: ArrayLike | None = None,
    progress: bool | None = None,
) -> CalibrationTest: ...


@overload
def calibration_test(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    method: TestMethod = "auto",
    n_resamples: int = 9999,
    rng: Randomness = None,
    by: ArrayLike,
    classes: ArrayLike | None = None,
    questions: SingleAsked | None = None,
    multilabel: Literal[False] = False,
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    pos_label: ClassLabel | None = None,
    sample_weight: ArrayLike | None = None,
    progress: bool | None = None,
) -> GroupCalibrationTests: ...


@overload
def calibration_test(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    method: TestMethod = "auto",
    n_resamples: int = 9999,
    rng: Randomness = None,
    classes: ArrayLike | None = None,
    questions: FamilyAsked,
    multilabel: bool = False,
    sample_weight: ArrayLike | None = None,
    progress: bool | None = None,
) -> QuestionTests: ...


@overload
def calibration_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    method: TestMethod = "auto",
    n_resamples: int = 9999,
    rng: Randomness = None,
    classes: ArrayLike | None = None,
    questions: None = None,
    multilabel: Literal[True],
    sample_weight: ArrayLike | None = None,
    progress: bool | None = None,
) -> QuestionTests: ...


@frames_follow
def calibration_test(
    y_true: RowsLike | GroupsLike,
    y_prob: ArrayLike | None = None,
    *,
    method: TestMethod = "auto",
    n_resamples: int = 9999,
    rng: Randomness = None,
    by: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    questions: QuestionsAsked | None = None,
    multilabel: bool = False,
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    pos_label: ClassLabel | None = None,
    sample_weight: ArrayLike | None = None,
    progress: bool | None = None,
) -> CalibrationTest | GroupCalibrationTests | QuestionTests:
    """Test whether the forecasts are perfectly calibrated, looking at every interval of forecasts at once.

    The statistic is the Cutoff calibration error T: the range of the residual curve S_k, the sum of (y - p) over the k
    smallest distinct forecasts with S_0 = 0, divided by the number of rows. If the forecasts are calibrated, each
    outcome is an event with the probability forecast, so the law of T is known:

    - "exact" goes through all counts of events at the distinct forecasts if there are up to a million possible ones,
      as there are for up to 19 rows or for a single forecast. Else it draws ``n_resamples`` = B sets of 0/1 outcomes
      from the forecasts and returns (1 + number of T* >= T) / (B + 1). It rejects calibrated forecasts with probability
      at most the level at every number of rows, ties or not; the resamples count among what is random.
    - "asymptotic" compares T / sigma, where sigma^2 = sum of w^2 p (1 - p) / (sum of w)^2, with the range of Brownian
      motion. It needs many rows, and is cautious (p-values too large) when forecasts repeat.

    With ``cluster`` the law of T is not known, because rows of one cluster may have anything to do with each other, and
    the exact test for independent rows rejects far too often:

    - "evidence" bets against calibration on whole clusters, over intervals fixed beforehand; the p-value is one over
      what the bets gained. It rejects calibrated forecasts with probability at most the level at every number of
      clusters, and is cautious.
    - "asymptotic" then gives the clusters random signs, ``n_resamples`` times (a wild bootstrap of the range). It needs
      many clusters, of which none stands out, and sees more.

    Parameters
    ----------
    y_true : array-like of shape (n,), or Tally, or Scan
        Outcomes: 0/1, booleans, fractions in [0, 1], or labels with ``pos_label``;
        or, on its own, a tally or a `scan` of a file, table or cluster.
    y_prob : array-like of shape (n,), or (n, K) for several classes
        Forecast probabilities.
    method : {"auto", "exact", "asymptotic", "evidence"}
        "auto" takes the exact test when outcomes are 0/1, rows have no weights and rows x resamples is at most 2e9, and
        the evidence for rows in clusters; the result says which test it took and why.
    n_resamples : int
        Simulated data sets of the exact test; the p-value is then at least 1 / (n_resamples + 1).
    rng : None, int or numpy.random.Generator
        Where the exact test's random numbers come from. Without it they are drawn anew, so that the p-value differs a
        little from call to call; pass a seed, as in ``rng=0``, for one that stays (the command line takes 0). With None
        or a generator the level holds exactly, over rows and resamples. With a seed the p-value is the same whatever
        the order of rows, with the same version of numpy; resamples are others for every data set, and the level holds
        over the choice of the seed: any one seed comes near it (docs/theory/random-halves.md), if there are 999
        resamples or more; fewer are refused. Choose it beforehand: whoever tries several has tested several times.
    by : array-like of shape (n,), optional
        A group per row, chosen beforehand: one test per group, and what they say together.
    classes, questions, multilabel
        As in `cutoff_calibration_error`, for ``y_prob`` of shape (n, K). Several questions are tested together: a
        class is drawn for each row from its forecast, and the largest error of a question is compared.
    cluster, cluster_target, max_cluster_size, serial
        As in `certify`, for rows in clusters.
    pos_label : label, optional
        The label in ``y_true`` that counts as the event, against all others.
    sample_weight : array-like of shape (n,), optional
        Nonnegative weights, fixed beforehand; not for the exact test.
    progress : bool, optional
        Show how far a long test has come; by default after two seconds, on a terminal only.

    Returns
    -------
    CalibrationTest, or GroupCalibrationTests with ``by``, or QuestionTests where several questions are asked of classes
        With ``statistic`` and ``pvalue``. A small p-value says that the forecasts are off, not by how much; a large
        one is no certificate of calibration, because too few rows hide any error.

    See Also
    --------
    cutoff_calibration_error : the statistic.
    spiegelhalter_test : a classical test that looks in one direction only.

    References
    ----------
    The statistic is Definition 2.1 of [1]_; the exact test and the weighted large-sample one are this project's.

    Examples
    --------
    >>> from calibrant import Tally
    >>> weather = Tally.from_counts(forecast=[0.2, 0.5, 0.8], rows=[100, 100, 100], events=[22, 47, 83])
    >>> found = calibration_test(weather, rng=0)
    >>> print(found)
    Perfect calibration of these forecasts is not rejected at the 5% level (p-value 0.9..., Cutoff calibration error
    0.01, 300 rows, 9,999 resamples). A large p-value is no certificate of
    calibration: too few rows hide any error, and only an upper limit for the error, as certify() gives, says how large
    it may be.
    This assumes that outcomes are independent given the forecasts; the forecaster was fixed without looking at them;
    the test was chosen beforehand and is done once; the seed of the resamples was chosen beforehand too.
    Note: the exact test was chosen: outcomes are 0/1, rows have no weights, and there are few enough of them to draw
    9,999 resamples
    >>> calibration_test(weather, method="asymptotic").pvalue > found.pvalue
    True
    >>> seasons = ["summer", "winter"] * 100
    >>> by_season = calibration_test([0, 1] * 100, [0.1, 0.8] * 100, by=seasons)
    >>> by_season.rejected(0.05), by_season["winter"].rows
    (('summer', 'winter'), 100)
    """
    chosen = check_choice(method, "method", TEST_METHODS)
    resamples = int(check_number(n_resamples, "n_resamples", low=1, high=1e8, whole=True))
    shown = None if progress is None else check_flag(progress, "progress")
    seed = check_seed(rng)
    family = asked_of_classes(y_true, y_prob, classes, questions, multilabel, sample_weight, pos_label)
    if family is not None:
        asked: dict[str, Any] = {"method": method, "n_resamples": n_resamples, "rng": rng, "progress": progress}
        return family.answered(
            lambda rows: calibration_test(
                rows,
                by=by,
                cluster=cluster,
                cluster_target=cluster_target,
                max_cluster_size=max_cluster_size,
                serial=serial,
                **asked,
            ),
            lambda several: _test_family(without_groups(several, by, cluster), asked),
        )
    question = check_clusters(cluster is not None or are_clustered(y_true), cluster_target, max_cluster_size, serial)
    if question is not None:
        check_for_clusters(chosen)
        return _clustered_tests(
            question, y_true, y_prob, by, cluster, sample_weight, pos_label, chosen, resamples, seed
        )
    check_for_rows(chosen)
    if resamples < FEWEST_SEEDED and chosen != "asymptotic" and isinstance(rng, (int, np.integer)):
        raise InputError(
            f"is {resamples:,}, too few for a fixed seed, rng={rng}: the p-values of one seed may all be too small "
            "together",
            argument="n_resamples",
            value=resamples,
            remedy=f"use n_resamples={FEWEST_SEEDED} or more, or rng=None for fresh random numbers",
        )
    settings = (chosen, resamples, seed, shown)
    if by is None and not are_grouped(y_true):
        source = as_source(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
        return _cutoff_test(source, *settings)
    rows = in_groups(y_true, y_prob, by=by, sample_weight=sample_weight, pos_label=pos_label)
    return GroupCalibrationTests(rows.groups, by_group(rows, lambda each: _cutoff_test(as_source(each), *settings)))


def _test_family(family: Questions, asked: dict[str, Any]) -> QuestionTests:
    """Return the test of several questions: drawn together, or one by one where only the large-sample law is wanted."""
    joint = family if asked["method"] in _JOINT else replace(family, law=None)
    resamples, seed = int(asked["n_resamples"]), check_seed(asked["rng"])
    return joint_test(joint, resamples, seed, asked["progress"], lambda rows: calibration_test(rows, **asked))


def _clustered_tests(
    question: ClusterQuestion,
    y_true: Any,
    y_prob: Any,
    by: Any,
    cluster: Any,
    sample_weight: Any,
    pos_label: Any,
    *settings: Any,
) -> CalibrationTest | GroupCalibrationTests:
    """Return the test of rows in clusters, or one for each group."""
    columns = {"cluster": cluster, "sample_weight": sample_weight, "pos_label": pos_label}
    if by is None and not are_grouped(y_true):
        return clustered_test(question, as_clustered(y_true, y_prob, **columns), *settings)
    rows = in_groups(y_true, y_prob, by=by, **columns)
    tests = by_group(rows, lambda each: clustered_test(question, as_clustered(each), *settings))
    return GroupCalibrationTests(rows.groups, tests)


def _cutoff_test(
    source: Tally | RowSource, chosen: str, resamples: int, seed: int, shown: bool | None
) -> CalibrationTest:
    try:
        table: Totals = whole_tally(source)
    except TooManyForecastsError:
        table = split_at_extremes(source)
    notes: tuple[str, ...] = ()
    if chosen == "auto":
        chosen, reason = _choose(table, resamples)
        notes = (reason,)
    elif chosen == "exact":
        remedy = Phrase("use {asymptotic}", asymptotic=ASYMPTOTIC)
        require_counts(table, Phrase("{exact}", exact=_EXACT), remedy)
    notes = (*notes, *row_hints(table, every_forecast=True))
    if chosen == "exact":
        return _exact(whole_tally(table if isinstance(table, Tally) else source), resamples, seed, shown, notes)
    return _asymptotic(table, notes)


def require_counts(tally: Totals, what: str, remedy: str) -> None:
    """Refuse fractions and weights, for a test whose law the forecasts determine."""
    if not tally.binary_outcomes:
        raise InputError(
            Phrase(
                "{what} needs outcomes that are 0 or 1, and {outcomes} holds fractions, whose law the forecasts do not "
                "determine",
                what=what,
                outcomes=Argument("y_true"),
            ),
            remedy=remedy,
        )
    if not tally.unit_weights:
        raise InputError(
            Phrase(
                "{what} needs rows without weights, and {weight} was given", what=what, weight=Argument("sample_weight")
            ),
            remedy=Phrase(
                "{remedy}{counts}",
                remedy=remedy,
                counts=Either(", or Tally.from_counts if the weights are counts of real observations"),
            ),
        )


def _choose(tally: Totals, resamples: int) -> tuple[str, str]:
    """Return the test that "auto" takes, and why."""
    rows = tally.row_total
    why: str
    if not tally.binary_outcomes:
        why = "outcomes are fractions, whose law the forecasts do not determine"
    elif not tally.unit_weights:
        why = "the rows are weighted"
    elif is_enumerable(tally):
        return "exact", (
            "the exact test was chosen: outcomes are 0/1, rows have no weights, and few enough counts of events are "
            "possible to go through all of them"
        )
    elif rows * resamples > AFFORDABLE_DRAWS:
        why = Phrase(
            "{rows:,} rows x {resamples:,} resamples would take long ({exact} does it, and fewer {option} make it "
            "quick)",
            rows=rows,
            resamples=resamples,
            exact=_EXACT,
            option=Argument("n_resamples"),
        )
    else:
        return "exact", (
            "the exact test was chosen: outcomes are 0/1, rows have no weights, and there are few enough of them to "
            f"draw {resamples:,} resamples"
        )
    return "asymptotic", Phrase("the large-sample test was chosen: {why}", why=why)


def _exact(tally: Tally, resamples: int, seed: int, shown: bool | None, notes: tuple[str, ...]) -> CalibrationTest:
    rows, forecast = tally.rows, tally.forecast
    expected = np.cumsum(rows * forecast)
    # The same arithmetic as for the resamples: equal counts give equal ranges to the last digit. The allowance is for
    # different counts whose ranges are equal but for rounding.
    curve = np.cumsum(tally.events) - expected
    observed = max(0.0, float(curve.max())) - min(0.0, float(curve.min()))
    least = observed - TOLERANCE * tally.row_total
    enumerated = is_enumerable(tally)
    if enumerated:
        pvalue = enumerated_tail(rows, forecast, expected, least)
    else:
        generator = tally.generator(seed, "calibration test")
        reaching = count_reaching(rows, forecast, expected, least, resamples, generator, shown)
        pvalue = (1 + reaching) / (1 + resamples)
    return CalibrationTest(
        test="cutoff",
        statistic=observed / tally.row_total,
        pvalue=pvalue,
        method="exact",
        rows=tally.row_total,
        n_resamples=None if enumerated else resamples,
        assumptions=GIVEN_FORECASTS if enumerated else (*GIVEN_FORECASTS, _SEED),
        notes=notes,
    )


def _asymptotic(table: Totals, notes: tuple[str, ...]) -> CalibrationTest:
    """Compare with the range of Brownian motion.

    In the order of the forecasts the residual curve is a sum of independent terms w (y - p) of variance w^2 p (1 - p):
    for many rows a Brownian motion that runs until the sum of those variances, so its range divided by the square root
    of that sum has the law of the range on [0, 1].
    """
    least, variance = variances(table)
    if not table.binary_outcomes:
        notes = (
            *notes,
            "outcomes are fractions, whose variance the forecasts do not determine: the squared residuals stand in for "
            "it",
        )
    total = float(variance.sum())
    curve = table.residual_prefix()
    observed = float(curve.max() - curve.min())
    if total > 0.0:
        pvalue = float(brownian_range.sf(observed / math.sqrt(total)))
        notes = (*notes, *few_note(total / table.weight_max**2), *_ties_note(table, variance / total))
        if least is not variance:
            smallest = float(brownian_range.sf(observed / math.sqrt(float(least.sum())))) if least.any() else 0.0
            notes = (
                *notes,
                "there are too many distinct forecasts to tell them all apart: the p-value of the rows lies between "
                f"{smallest:.10g} and {pvalue:.10g}, and the larger one is given",
            )
    else:
        pvalue = 1.0 if observed == 0.0 else 0.0
        notes = (
            *notes,
            "every forecast is 0 or 1, or every outcome equals its forecast: calibrated forecasts leave no room for "
            "chance, so the p-value is 1 if nothing is off and 0 otherwise",
        )
    weighted = () if table.unit_weights else (_FIXED_WEIGHTS,)
    return CalibrationTest(
        test="cutoff",
        statistic=observed / table.weight_total,
        pvalue=pvalue,
        method="asymptotic",
        rows=table.row_total,
        n_resamples=None,
        assumptions=(*GIVEN_FORECASTS, *weighted, MANY_ROWS),
        notes=notes,
    )


def few_note(information: float) -> tuple[str, ...]:
    """Say where variances add up to too little for a large-sample law."""
    if information >= FEW:
        return ()
    return (
        f"the outcomes' variances, p (1 - p) for one that is 0 or 1, add up to {information:.3g} only, less than "
        f"{FEW:g}: the large-sample p-value is a rough guide here",
    )


def _ties_note(table: Totals, share: FloatArray) -> tuple[str, ...]:
    tied = (table.rows > 1) & (table.low == table.high)
    heavy = int(np.count_nonzero((share > COARSE_SHARE) & tied))
    if not heavy:
        return ()
    which = "one forecast carries" if heavy == 1 else f"{heavy} forecasts carry"
    return (
        f"{which} more than {100.0 * COARSE_SHARE:g}% of the variance each: with such ties the large-sample "
        "p-value is too large, and the exact test sees more",
    )

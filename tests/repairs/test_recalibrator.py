"""What every recalibrator obeys: guarantees, weights, scores, bad input, scikit-learn's conventions, JSON and SQL."""

import copy
import functools
import inspect
import json
import math
import pickle
import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import pytest
import sklearn
from recalibration_cases import EVERYWHERE, FIGURE_4, P, Y, draw, guarantee_of
from scipy.special import expit
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from calibrant import (
    BetaRecalibrator,
    GuardedRecalibrator,
    IsotonicRecalibrator,
    PlattRecalibrator,
    Tally,
    TemperatureRecalibrator,
    cutoff_calibration_error,
)
from calibrant.certificates import brownian_range
from calibrant.certificates.margins import constant_margin, monotone_margin, paper_margin, paper_monotone_margin
from calibrant.core.results import Result
from calibrant.repairs import ConstantRecalibrator, LadderRung, RecalibrationGuarantee, Recalibrator

KINDS = {
    "isotonic": IsotonicRecalibrator(),
    "isotonic, linear": IsotonicRecalibrator(interpolation="linear"),
    "isotonic, inside": IsotonicRecalibrator(ends="inside"),
    "isotonic, linear and inside": IsotonicRecalibrator(interpolation="linear", ends="inside"),
    "Platt": PlattRecalibrator(),
    "Platt, not smoothed": PlattRecalibrator(smoothing=False),
    "Platt on the logit": PlattRecalibrator(on="logit"),
    "Platt on the logit, clipped": PlattRecalibrator(on="logit", clip=0.01),
    "beta": BetaRecalibrator(),
    "beta, clipped": BetaRecalibrator(clip=1e-3),
    "temperature": TemperatureRecalibrator(),
    "temperature, clipped": TemperatureRecalibrator(clip=1e-3),
    "constant": ConstantRecalibrator(),
    "guarded": GuardedRecalibrator(),
    "guarded, inside": GuardedRecalibrator(ends="inside"),
    "modified Platt": GuardedRecalibrator([PlattRecalibrator(), ConstantRecalibrator()], tolerance="paper"),
    "guarded, strict": GuardedRecalibrator([BetaRecalibrator(), ConstantRecalibrator()], tolerance=0.0),
}
SCORED = {
    "isotonic": IsotonicRecalibrator(input_kind="score"),
    "isotonic, linear": IsotonicRecalibrator(interpolation="linear", input_kind="score"),
    "isotonic, inside": IsotonicRecalibrator(ends="inside", input_kind="score"),
    "Platt": PlattRecalibrator(input_kind="score"),
    "guarded": GuardedRecalibrator(input_kind="score"),
    "modified Platt": GuardedRecalibrator(
        [PlattRecalibrator(input_kind="score"), ConstantRecalibrator()], input_kind="score"
    ),
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
every_scored = pytest.mark.parametrize("kind", SCORED.values(), ids=SCORED.keys())


WEIGHTS = np.random.default_rng(1).integers(0, 4, P.size)


@pytest.mark.parametrize("kind", ["uniform", "rare", "rounded", "fractions", "weights"])
def test_many_rows_give_what_their_tally_gives(kind):
    rng = np.random.default_rng([5, *kind.encode()])
    rows = 120_000
    p = rng.beta(0.5, 20, rows) if kind == "rare" else rng.random(rows)
    p = np.round(p, 2) if kind == "rounded" else p
    y = rng.beta(1 + p, 2 - p) if kind == "fractions" else rng.random(rows) < p**1.5
    weight = rng.integers(0, 3, rows) if kind == "weights" else None
    tally = Tally.from_arrays(y, p, sample_weight=weight)
    kinds = [
        IsotonicRecalibrator(),
        PlattRecalibrator(),
        PlattRecalibrator(on="logit", clip=1e-3),
        GuardedRecalibrator(),
    ]
    for recalibrator in [*kinds, BetaRecalibrator(clip=1e-3), TemperatureRecalibrator(clip=1e-3)]:
        many, summed = clone(recalibrator).fit(p, y, sample_weight=weight), clone(recalibrator).fit(tally)
        if isinstance(recalibrator, IsotonicRecalibrator):
            assert many.block_low_.tolist() == summed.block_low_.tolist()
        np.testing.assert_allclose(many.predict(p[:2_000]), summed.predict(p[:2_000]), rtol=0, atol=1e-12)
        assert many.fit_error_ == pytest.approx(summed.fit_error_, abs=1e-12)
        assert many.n_rows_ == summed.n_rows_
        assert (many.guarantee_ is None) == (kind == "weights")


# --- Guarantees -------------------------------------------------------------------------------------------------------


def test_isotonic_promises_its_bound_in_advance():
    guarantee = IsotonicRecalibrator().fit(P, Y).guarantee_
    rows = P.size
    assert isinstance(guarantee, RecalibrationGuarantee)
    assert guarantee.rows == rows
    assert guarantee.upper == guarantee.in_advance == 3 * math.sqrt((1 + math.log(2 / (1 - 0.95))) / (2 * rows))
    assert guarantee.upper <= 4.65 / math.sqrt(rows)
    assert guarantee.paper_margin == (30 + 2 * math.sqrt(2 * math.log(2 / (1 - 0.95)))) / math.sqrt(rows)
    assert guarantee.paper_upper == guarantee.paper_in_advance == 1.0  # 400 rows are few for the paper's constants
    assert "Before the data: this bound was promised" in str(guarantee)


def test_fractions_have_the_same_bound():
    fractions = np.random.default_rng(0).random(P.size)
    of_fractions, of_events = (guarantee_of(IsotonicRecalibrator().fit(P, outcomes)) for outcomes in (fractions, Y))
    assert of_fractions.upper == of_events.upper


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_other_levels(level):
    fitted = IsotonicRecalibrator().fit(FIGURE_4)
    guarantee = fitted.guarantee(level)
    assert guarantee.confidence_level == level
    assert guarantee.upper == monotone_margin(4_000, 1 - level)
    assert guarantee.paper_upper == paper_monotone_margin(4_000, 1 - level)
    assert fitted.guarantee() == fitted.guarantee_
    with pytest.raises(ValueError, match=r"confidence_level is 95; write 0.95 for 95%"):
        fitted.guarantee(95)


def test_platt_promises_nothing_in_advance_and_bounds_its_error_afterwards():
    fitted = PlattRecalibrator().fit(FIGURE_4)
    guarantee = guarantee_of(fitted)
    recalibrated = Tally.from_arrays(
        FIGURE_4.mean_outcome, fitted.predict(FIGURE_4.forecast), sample_weight=FIGURE_4.rows
    )
    assert guarantee.error == pytest.approx(cutoff_calibration_error(recalibrated), abs=1e-12)
    assert guarantee.error > 0.2
    assert guarantee.in_advance is None
    assert guarantee.paper_in_advance is None
    assert guarantee.upper == guarantee.error + monotone_margin(4_000, 1 - 0.95)
    assert guarantee.paper_upper == guarantee.error + paper_monotone_margin(4_000, 1 - 0.95)
    assert "Before the data: nothing was promised" in str(guarantee)


def test_a_constant_is_off_by_no_more_than_a_mean():
    fitted = ConstantRecalibrator().fit(P, Y)
    assert fitted.predict([0.1]).tolist() == [Y.mean()]
    assert guarantee_of(fitted).upper == guarantee_of(fitted).in_advance == constant_margin(P.size, 1 - 0.95)
    assert guarantee_of(fitted).upper == math.sqrt(math.log(2 / (1 - 0.95)) / (2 * P.size))
    # Whether a guard keeps it depends on the rows, so that there the uniform margin is due.
    guarded = GuardedRecalibrator([ConstantRecalibrator()]).fit(P, Y)
    assert guarantee_of(guarded).margin == monotone_margin(P.size, 1 - 0.95)


@pytest.mark.parametrize("tolerance", ["null-95", "paper", 0.03])
def test_the_guard_promises_isotonics_bound_plus_the_tolerance(tolerance):
    guarantee = guarantee_of(GuardedRecalibrator(tolerance=tolerance).fit(FIGURE_4))
    most = {
        "null-95": brownian_range.ppf(0.95) / 2 / math.sqrt(4_000),
        "paper": paper_margin(4_000, 0.05),
        0.03: 0.03,
    }[tolerance]
    assert guarantee.in_advance == pytest.approx(monotone_margin(4_000, 0.05) + most, rel=1e-12)
    assert guarantee.in_advance is not None
    assert guarantee.upper <= guarantee.in_advance


@every_kind
def test_weighted_rows_have_no_guarantee_and_the_error_says_what_to_do(kind):
    fitted = clone(kind).fit(P, Y, sample_weight=WEIGHTS)
    assert fitted.guarantee_ is None
    with pytest.raises(
        ValueError, match=r"sample_weight was given to fit, and no guarantee.*Tally.from_counts.*certify"
    ):
        fitted.guarantee()
    assert clone(kind).fit(P, Y, sample_weight=np.ones(P.size)).guarantee_ == clone(kind).fit(P, Y).guarantee_


@every_kind
def test_guarantees_are_results(kind):
    guarantee = clone(kind).fit(P, Y).guarantee_
    assert Result.from_json(guarantee.to_json()) == guarantee
    assert type(guarantee).from_dict(guarantee.to_dict()) == guarantee
    assert all(isinstance(rung, LadderRung) for rung in guarantee.ladder)
    assert guarantee.upper == min(1.0, guarantee.error + guarantee.margin)
    assert guarantee.upper < guarantee.paper_upper
    assert str(guarantee).startswith("With 95% confidence the Cutoff calibration error of the recalibrated forecaster")
    assert "independent draws" in str(guarantee)
    fitted = clone(kind).fit(P, Y)
    assert guarantee.error == pytest.approx(cutoff_calibration_error(Y, np.round(fitted.predict(P), 13)), abs=1e-10)


def test_few_rows_are_told_that_the_bound_says_nothing():
    guarantee = guarantee_of(IsotonicRecalibrator().fit([0.5], [1]))
    assert guarantee.upper == 1.0
    assert "too few rows" in str(guarantee)
    assert "on the 1 row it" in str(guarantee)


# --- What every map obeys ---------------------------------------------------------------------------------------------


@every_kind
def test_weights_are_repetitions(kind):
    weighted = clone(kind).fit(P, Y, sample_weight=WEIGHTS).predict(EVERYWHERE)
    repeated = clone(kind).fit(np.repeat(P, WEIGHTS), np.repeat(Y, WEIGHTS)).predict(EVERYWHERE)
    np.testing.assert_allclose(weighted, repeated, rtol=0, atol=1e-12)


@every_scored
def test_weights_are_repetitions_for_scores(kind):
    scores = 40 * P - 7
    weighted = clone(kind).fit(scores, Y, sample_weight=WEIGHTS).predict(scores)
    repeated = clone(kind).fit(np.repeat(scores, WEIGHTS), np.repeat(Y, WEIGHTS)).predict(scores)
    np.testing.assert_allclose(weighted, repeated, rtol=0, atol=1e-12)


@every_kind
def test_a_tally_gives_what_its_rows_give(kind):
    rows, tally = clone(kind).fit(P, Y), clone(kind).fit(Tally.from_arrays(Y, P))
    parts = clone(kind).fit(Tally.from_arrays(Y[:150], P[:150]) + Tally.from_arrays(Y[150:], P[150:]))
    for other in (tally, parts):
        assert rows.predict(EVERYWHERE).tolist() == other.predict(EVERYWHERE).tolist()
        assert rows.guarantee_ == other.guarantee_
    shuffled = np.random.default_rng(0).permutation(P.size)
    assert clone(kind).fit(P[shuffled], Y[shuffled]).predict(EVERYWHERE).tolist() == rows.predict(EVERYWHERE).tolist()


@every_kind
def test_maps_are_monotone_and_stay_inside(kind):
    for seed in range(4):
        p, y = draw(seed, rows=60)
        fitted = clone(kind).fit(p, y if seed % 2 or "temp" in type(kind).__name__.lower() else 1 - y)
        forecast = fitted.predict(np.concatenate([EVERYWHERE, [1e-300, 1 - 2**-53]]))
        assert ((forecast >= 0.0) & (forecast <= 1.0)).all()
        step = np.diff(forecast[: EVERYWHERE.size])
        direction = guarantee_of(fitted).direction
        assert (step >= 0.0).all() if direction == "increasing" else (step <= 0.0).all()
        assert direction != "constant" or (step == 0.0).all()


@every_scored
@pytest.mark.parametrize(
    ("scale", "shift"), [(1, 0), (1e6, -3e5), (1e-9, 0), (-50, 10), (1, 1e6), (1e-300, 0), (1e300, 1e299)]
)
def test_scores_of_any_scale(kind, scale, shift):
    scores = scale * P + shift
    fitted = clone(kind).fit(scores, Y)
    if scale > 0:  # an increasing change of scale changes nothing
        usual = clone(kind).set_params(input_kind="probability")
        if isinstance(kind, GuardedRecalibrator):
            usual = GuardedRecalibrator(kind.ladder and [PlattRecalibrator(), ConstantRecalibrator()])
        usual = usual.fit(P, Y)
        np.testing.assert_allclose(fitted.predict(scores), usual.predict(P), rtol=0, atol=1e-9)
    beyond = fitted.predict([scores.min() - 1e9, scores.max() + 1e9])
    assert ((beyond >= 0) & (beyond <= 1)).all()
    assert guarantee_of(fitted).rows == P.size
    if not isinstance(kind, PlattRecalibrator):
        return
    assert guarantee_of(fitted).direction == ("increasing" if scale > 0 else "decreasing")


def test_scores_far_from_zero_lose_no_digits():
    far = 1e6 + P * 2.0**-20  # exact in float64 up to a rounding of P's digits
    near = far - 1e6
    there, here = (PlattRecalibrator(input_kind="score").fit(scores, Y) for scores in (far, near))
    np.testing.assert_allclose(there.predict(far), here.predict(near), rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-305, 1e305])
def test_many_scores_of_any_scale(scale):
    # So many that the fit begins with pooled ones.
    rng = np.random.default_rng(0)
    scores = rng.normal(size=20_000)
    y = rng.random(20_000) < expit(scores)
    there, here = (PlattRecalibrator(input_kind="score").fit(unit * scores, y) for unit in (scale, 1.0))
    np.testing.assert_allclose(there.predict(scale * scores), here.predict(scores), rtol=0, atol=1e-9)


def test_scores_too_close_to_divide_by_are_refused():
    with pytest.raises(ValueError, match="scores that differ by less than float64 can divide by; scale the scores up"):
        PlattRecalibrator(input_kind="score").fit([0.0, 5e-324, 1e-323, 1.5e-323], [0, 1, 0, 1])


@every_scored
def test_scores_that_are_not_numbers_are_refused(kind):
    with pytest.raises(ValueError, match=r"y_prob\[1\] is inf; every value must be finite"):
        clone(kind).fit([1.0, np.inf], [0, 1])
    with pytest.raises(ValueError, match=r"y_prob reaches from .* too far for float64"):
        clone(kind).fit([-1e308, 1e308], [0, 1])
    with pytest.raises(ValueError, match=r"y_prob\[0\] is missing"):
        clone(kind).fit([-4.0, 2.0, 3.0], [0, 1, 0]).predict([np.nan])
    with pytest.raises(ValueError, match="y_true has 2 values and y_prob has 3"):
        clone(kind).fit([-4.0, 2.0, 3.0], [0, 1])


def test_a_tally_may_stand_for_scores():
    assert (
        PlattRecalibrator(input_kind="score").fit(Tally.from_arrays(Y, P)).slope_
        == PlattRecalibrator().fit(P, Y).slope_
    )


@every_kind
def test_series_lists_labels_and_booleans(kind):
    expected = clone(kind).fit(P, Y).predict(P).tolist()
    assert clone(kind).fit(pd.Series(P), pd.Series(Y)).predict(pd.Series(P)).tolist() == expected
    assert clone(kind).fit(P.tolist(), (Y == 1).tolist()).predict(P.tolist()).tolist() == expected
    labelled = clone(kind).set_params(pos_label="late")
    assert labelled.fit(P, np.where(Y == 1, "late", "on time")).predict(P).tolist() == expected


# --- Bad input --------------------------------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.2, 0.5], [0, 1, 1]), "y_true has 3 values and y_prob has 2"),
        (([], []), "y_prob is empty; at least one row is needed"),
        (([0.2, 1.5], [0, 1]), r"y_prob\[1\] is 1.5, outside \[0, 1\]"),
        (([0.2, math.nan], [0, 1]), r"y_prob\[1\] is missing"),
        (([0.2, 0.5], [0, 2]), r"y_true\[1\] is 2, outside \[0, 1\]"),
        (([0.2, 0.5], ["a", "b"]), "y_true.0. is 'a', a label and not a number .* pass pos_label="),
        (([0.2, 0.5],), r"y_true is missing: pass forecasts and outcomes, as in fit\(y_prob, y_true\)"),
        (([0.2, 0.5], [0, 1], [1.0]), "sample_weight has 1 values for 2 rows"),
        (([0.2, 0.5], [0, 1], [1.0, -1.0]), r"sample_weight\[1\] is -1; weights must not be negative"),
        (([[0.2, 0.8], [0.5, 0.5]], [0, 1]), r"pass one class's column, for two classes y_prob\[:, 1\]"),
        (([0, 1, 1], [0.2, 0.5, 0.9]), r"look swapped, the order is fit\(y_prob, y_true\)"),
        ((Tally.from_arrays(Y, P), Y), "y_true was given together with a Tally"),
        ((Tally.from_arrays(Y, P), None, WEIGHTS), "sample_weight was given together with a Tally"),
    ],
)
def test_bad_input_gets_a_message(kind, arguments, message):
    with pytest.raises(ValueError, match=message):
        clone(kind).fit(*arguments)


@every_kind
def test_nothing_works_before_fitting(kind):
    unfitted = clone(kind)
    name = type(kind).__name__
    for call in (lambda: unfitted.predict(P), unfitted.guarantee, unfitted.to_json, lambda: unfitted.to_sql("p")):
        with pytest.raises(NotFittedError, match=rf"this {name} is not fitted yet; call fit\(y_prob, y_true\) before"):
            call()
    with pytest.raises(ValueError, match=r"y_prob\[0\] is -0.1, outside"):
        unfitted.fit(P, Y).predict([-0.1])


@pytest.mark.parametrize(
    ("recalibrator", "message"),
    [
        (
            IsotonicRecalibrator().set_params(interpolation="cubic"),
            "interpolation must be one of 'step', 'linear', got 'cubic'",
        ),
        (IsotonicRecalibrator().set_params(input_kind="logit"), "input_kind must be one of 'probability', 'score'"),
        (PlattRecalibrator().set_params(on="score"), "on must be one of 'forecast', 'logit'"),
        (PlattRecalibrator().set_params(smoothing=1), "smoothing must be True or False, got 1"),
        (PlattRecalibrator(on="logit", input_kind="score"), "on='logit' needs probabilities"),
        (PlattRecalibrator(clip=1e-6), "clip is 1e-06, but on='forecast' takes no logarithm"),
        (PlattRecalibrator(on="logit", clip=0.5), "clip must be between 0 and 0.5, got 0.5"),
        (BetaRecalibrator(clip=0), "clip must be between 0 and 0.5, got 0"),
        (TemperatureRecalibrator().set_params(clip="a"), "clip must be a number, got 'a'"),
    ],
    ids=str,
)
def test_bad_options_get_a_message(recalibrator, message):
    with pytest.raises(ValueError, match=message):
        recalibrator.fit(P, Y)


def test_a_likelihood_that_is_nearly_flat_still_has_its_maximum_found():
    # Classes that overlap in one pair of rows out of thousands.
    p = np.concatenate([np.linspace(0.0, 0.5, 3_000), np.linspace(0.5001, 1.0, 3_000)])
    y = np.repeat([0, 1], 3_000)
    y[2_999], y[3_000] = 1, 0
    fitted = PlattRecalibrator(smoothing=False).fit(p, y)
    pull = y - fitted.predict(p)
    assert abs(pull.sum()) < 1e-8
    assert abs(pull @ p) < 1e-8
    assert fitted.slope_ > 100


# --- scikit-learn's conventions ---------------------------------------------------------------------------------------


@every_kind
def test_they_are_estimators(kind):
    assert isinstance(kind, BaseEstimator)
    assert isinstance(kind, Recalibrator)
    fitted = clone(kind)
    assert fitted.fit(P, Y) is fitted
    check_is_fitted(fitted)
    twin = clone(fitted)
    assert not hasattr(twin, "guarantee_")
    assert str(twin.get_params()) == str(kind.get_params())
    assert twin.set_params(**kind.get_params()) is twin
    parameters = inspect.signature(type(kind)).parameters
    assert all(
        name == "ladder" or parameter.kind is inspect.Parameter.KEYWORD_ONLY for name, parameter in parameters.items()
    )
    for copied in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert copied.predict(EVERYWHERE).tolist() == fitted.predict(EVERYWHERE).tolist()
        assert copied.guarantee_ == fitted.guarantee_
    assert type(kind).__name__ in repr(fitted)


@every_kind
def test_a_second_fit_forgets_the_first(kind):
    again = clone(kind).fit(P[:100], Y[:100], sample_weight=WEIGHTS[:100]).fit(P, Y)
    assert again.predict(EVERYWHERE).tolist() == clone(kind).fit(P, Y).predict(EVERYWHERE).tolist()
    assert again.guarantee_ == clone(kind).fit(P, Y).guarantee_


@every_kind
def test_weights_are_the_only_metadata_to_route(kind):
    with sklearn.config_context(enable_metadata_routing=True):
        asked = clone(kind).set_fit_request(sample_weight=True)
        assert asked.get_metadata_routing().fit.requests == {"sample_weight": True}
        assert asked.get_metadata_routing().predict.requests == {}
    assert list(inspect.signature(kind.fit).parameters) == ["y_prob", "y_true", "sample_weight"]


# --- JSON -------------------------------------------------------------------------------------------------------------


@every_kind
def test_json_carries_everything_over(kind):
    fitted = clone(kind).fit(P, Y)
    for home in (type(kind), Recalibrator):
        rebuilt = home.from_json(fitted.to_json())
        assert type(rebuilt) is type(kind)
        assert rebuilt.predict(EVERYWHERE).tolist() == fitted.predict(EVERYWHERE).tolist()
        assert rebuilt.guarantee_ == fitted.guarantee_
        assert rebuilt.guarantee(0.9) == fitted.guarantee(0.9)
        assert str(rebuilt.get_params()) == str(fitted.get_params())
        assert rebuilt.to_json() == fitted.to_json()
    weighted = Recalibrator.from_json(clone(kind).fit(P, Y, sample_weight=WEIGHTS).to_json())
    assert weighted.guarantee_ is None
    json.loads(fitted.to_json(), parse_constant=pytest.fail)


@every_scored
def test_json_of_scores(kind):
    fitted = clone(kind).fit(P - 5.0, Y)
    rebuilt = Recalibrator.from_json(fitted.to_json())
    assert rebuilt.predict(EVERYWHERE - 5.0).tolist() == fitted.predict(EVERYWHERE - 5.0).tolist()
    assert rebuilt.input_kind == "score"


def test_json_keeps_the_label_of_the_event():
    labels = np.where(Y == 1, "late", "on time")
    fitted = PlattRecalibrator(pos_label="late").fit(P, labels)
    assert PlattRecalibrator.from_json(fitted.to_json()).pos_label == "late"
    number = PlattRecalibrator(pos_label=np.int64(2)).fit(P, Y + 1)
    assert PlattRecalibrator.from_json(number.to_json()).pos_label == 2
    date = PlattRecalibrator(pos_label=np.datetime64("2025-01-02")).fit(
        P, np.array(["2025-01-01", "2025-01-02"], dtype="datetime64[D]")[Y]
    )
    with pytest.raises(ValueError, match=r"pos_label is .* which the JSON of a recalibrator cannot hold"):
        date.to_json()


@functools.cache
def written(kind):
    """The text of a recalibrator that was fitted."""
    return clone(KINDS[kind]).fit(P, Y).to_json()


def damaged(change, kind="Platt", replaced=("", "")):
    """Return what writes a recalibrator and damages the text, once the test runs."""

    def text():
        data = json.loads(written(kind))
        change(data)
        return json.dumps(data).replace(*replaced)

    return text


DAMAGED = {
    "cut": (lambda: written("Platt")[:-20], "text is not JSON"),
    "a list": (lambda: "[1, 2]", "text is JSON, but not a recalibrator"),
    "a result": (
        lambda: clone(KINDS["Platt"]).fit(P, Y).guarantee_.to_json(),
        "schema is 'calibrant/1', this version of",
    ),
    "NaN": (lambda: '{"schema": NaN}', "NaN is not a number"),
    "version": (
        damaged(lambda d: d.update(schema="calibrant-recalibrator/2")),
        "^this recalibrator was written by a newer version of calibrant .*; update calibrant",
    ),
    "type": (damaged(lambda d: d.update(type="Tally")), "type is 'Tally', not a Recalibrator"),
    "no type": (damaged(lambda d: d.pop("type")), "type is missing from this recalibrator"),
    "no fitted": (damaged(lambda d: d.pop("fitted")), "fitted is missing from this recalibrator"),
    "more": (damaged(lambda d: d.update(code="import os")), "'code' is unknown in this recalibrator"),
    "no slope": (damaged(lambda d: d["fitted"].pop("slope_")), "slope_ is missing from fitted of PlattRecalibrator"),
    "slope": (damaged(lambda d: d["fitted"].update(slope_="2")), "slope_ must be a number, got '2'"),
    "huge": (damaged(lambda d: d["fitted"].update(slope_=10**400)), "slope_ must be a number from"),
    "option": (damaged(lambda d: d["params"].update(on="x")), "on must be one of 'forecast', 'logit'"),
    "unknown option": (damaged(lambda d: d["params"].update(extra=1)), "'extra' is unknown in params of Platt"),
    "label": (damaged(lambda d: d["params"].update(pos_label=[1])), "pos_label is .1., which the JSON"),
    "rows": (damaged(lambda d: d["rows"].update(n_rows_=0)), "n_rows_ must be a whole number from 1"),
    "endless rows": (
        damaged(lambda d: d["rows"].update(n_rows_=0), replaced=('"n_rows_": 0', '"n_rows_": 1e999')),
        "n_rows_ must be a whole number from 1",
    ),
    "endless label": (
        damaged(lambda d: d["params"].update(pos_label=0), replaced=('"pos_label": 0', '"pos_label": 1e999')),
        "pos_label is inf, which the JSON",
    ),
    "flag": (damaged(lambda d: d["rows"].update(weighted_=1)), "weighted_ must be True or False, got 1"),
    "error": (damaged(lambda d: d["rows"].update(fit_error_=-1)), "fit_error_ must be a number from 0 to 1"),
    "no object": (damaged(lambda d: d.update(rows=3)), "rows of PlattRecalibrator is not an object"),
    "steps": (damaged(lambda d: d["fitted"]["block_value_"].reverse(), "isotonic"), "not in increasing order"),
    "outside": (damaged(lambda d: d["fitted"]["block_value_"].__setitem__(-1, 2), "isotonic"), "block_value_ is"),
    "length": (damaged(lambda d: d["fitted"]["block_low_"].pop(), "isotonic"), "must have the same length"),
    "no list": (
        damaged(lambda d: d["fitted"].update(block_low_=1), "isotonic"),
        "block_low_ must be a list of numbers",
    ),
    "beta": (damaged(lambda d: d["fitted"].update(a_=-1), "beta"), "neither can be negative"),
    "temperature": (damaged(lambda d: d["fitted"].update(temperature_=0), "temperature"), "temperature_ is 0"),
    "constant": (damaged(lambda d: d["fitted"].update(constant_=1.5), "constant"), "constant_ is .*1.5"),
    "kept": (
        damaged(lambda d: d["fitted"]["ladder_"][-1].update(kept=False), "guarded"),
        "^kept of this LadderRung is False, while error is",
    ),
    "rung not kept": (
        damaged(lambda d: d["fitted"]["ladder_"][-1].update(kept=False, error=0.9, tolerance=0.1), "guarded"),
        "does not end by keeping",
    ),
    "rung kept in spite of its error": (
        damaged(lambda d: d["fitted"]["ladder_"][-1].update(error=0.9, tolerance=0.1), "guarded"),
        "^kept of this LadderRung is True, while error is 0.9 and tolerance 0.1",
    ),
    "rung": (damaged(lambda d: d["fitted"].update(ladder_=[1]), "guarded"), "rebuilt from the dict"),
    "no rungs": (damaged(lambda d: d["fitted"].update(ladder_=[]), "guarded"), "ladder_ must be a list of rungs"),
    "rung's error": (
        damaged(lambda d: d["fitted"]["ladder_"][0].update(error="x"), "guarded"),
        "^error of this Ladder",
    ),
    "rung's tolerance": (
        damaged(lambda d: d["fitted"]["ladder_"][0].update(tolerance=10**400), "guarded"),
        "^tolerance of this LadderRung is 10+, not float",
    ),
    "no error of the rung kept": (
        damaged(lambda d: d["fitted"]["ladder_"][-1].update(error=None), "guarded"),
        "^error of this LadderRung is None, while tolerance is",
    ),
    "rung's kind": (
        damaged(lambda d: d["fitted"]["ladder_"][0].update(recalibrator=["x"]), "guarded"),
        "recalibrator of this LadderRung is .*, not str",
    ),
    "rung's reason": (
        damaged(lambda d: d["fitted"]["ladder_"][0].update(reason=None), "guarded"),
        "reason of this LadderRung is None, not str; pass what",
    ),
    "ladder": (damaged(lambda d: d["params"].update(ladder=3), "guarded"), "ladder must be a list of recalibrators"),
    "rung type": (
        damaged(lambda d: d["params"]["ladder"][0].update(type="os"), "modified Platt"),
        "type of a rung is 'os', not a recalibrator",
    ),
    "nested": (lambda: "[" * 100_000, "text is not JSON"),
    "not text": (lambda: b"{}", "text must be the string that to_json.. returned, got bytes"),
}


@pytest.mark.parametrize(("text", "message"), DAMAGED.values(), ids=DAMAGED.keys())
def test_damaged_or_foreign_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        Recalibrator.from_json(text())


def test_a_fresh_process_reads_every_kind():
    texts = [clone(kind).fit(P, Y).to_json() for kind in KINDS.values()]
    code = (
        "import json, sys, calibrant; [calibrant.repairs.Recalibrator.from_json(each) for each in json.load(sys.stdin)]"
    )
    subprocess.run([sys.executable, "-c", code], input=json.dumps(texts), text=True, check=True)


def test_one_kind_does_not_read_another():
    text = PlattRecalibrator().fit(P, Y).to_json()
    with pytest.raises(ValueError, match="type is 'PlattRecalibrator', not a IsotonicRecalibrator"):
        IsotonicRecalibrator.from_json(text)


# --- SQL --------------------------------------------------------------------------------------------------------------


@functools.cache
def database():
    return duckdb.connect()


def from_database(expression, column, values):
    frame = pd.DataFrame({column: values})
    with database().cursor() as cursor:
        cursor.register("rows", frame)
        return [value for (value,) in cursor.execute(f"SELECT {expression} FROM rows").fetchall()]


@every_kind
def test_the_database_gives_the_same_numbers(kind):
    # No temperature fits forecasts that point the wrong way.
    for outcome in (Y,) if isinstance(kind, TemperatureRecalibrator) else (Y, 1 - Y):
        fitted = clone(kind).fit(P, outcome)
        values = np.concatenate([EVERYWHERE, P, [1e-300, 5e-324, 1e-9, 1 - 2**-53]])
        found = from_database(fitted.to_sql("p"), "p", values)
        np.testing.assert_allclose(found, fitted.predict(values), rtol=0, atol=1e-12)
        assert from_database(fitted.to_sql("p"), "p", [-0.1, 1.1, math.inf, math.nan]) == [None] * 4


@every_scored
def test_the_database_gives_the_same_numbers_for_scores(kind):
    for scale in (1.0, -1e4, 1e-7):
        scores = scale * (P - 0.3)
        fitted = clone(kind).fit(scores, Y)
        values = np.concatenate([scores, scores[:-1] / 2 + scores[1:] / 2, [-1e300, 1e300, 0.0, 1e9, -1e9]])
        found = from_database(fitted.to_sql("s"), "s", values)
        np.testing.assert_allclose(found, fitted.predict(values), rtol=0, atol=1e-12)
        assert from_database(fitted.to_sql("s"), "s", [math.inf, -math.inf, math.nan]) == [None] * 3


@pytest.mark.parametrize("column", ["p", "two words", 'quo"te', "semi;colon -- drop", "Zürich", "select", "%s", "a.b"])
def test_any_column_name_is_safe(column):
    fitted = PlattRecalibrator().fit(P, Y)
    found = from_database(fitted.to_sql(column), column, EVERYWHERE)
    np.testing.assert_allclose(found, fitted.predict(EVERYWHERE), rtol=0, atol=1e-12)


@pytest.mark.parametrize("column", ["", 3, None, "a\0b"])
def test_a_column_without_a_name_is_refused(column):
    with pytest.raises(ValueError, match="column must be the name of a column"):
        PlattRecalibrator().fit(P, Y).to_sql(column)


@pytest.mark.parametrize("interpolation", ["step", "linear"])
def test_many_steps_fit_one_expression(interpolation):
    p = np.linspace(0.01, 0.99, 800)
    fitted = IsotonicRecalibrator(interpolation=interpolation).fit(p, p**2)  # every forecast is its own step
    assert fitted.block_value_.size == 800
    values = np.random.default_rng(0).random(3_000)
    np.testing.assert_allclose(
        from_database(fitted.to_sql("p"), "p", values), fitted.predict(values), rtol=0, atol=1e-12
    )


def test_other_column_types():
    fitted = BetaRecalibrator().fit(P, Y)
    narrow = EVERYWHERE.astype(np.float32)
    found = from_database(fitted.to_sql("p"), "p", narrow)
    np.testing.assert_allclose(found, fitted.predict(narrow), rtol=0, atol=1e-12)
    assert from_database(fitted.to_sql("p"), "p", np.array([0, 1])) == fitted.predict([0, 1]).tolist()
    with duckdb.connect() as database:
        ((value,),) = database.execute(f"SELECT {fitted.to_sql('p')} FROM (SELECT 0.25::DECIMAL(4, 2) AS p)").fetchall()
        assert value == pytest.approx(fitted.predict([0.25])[0], abs=1e-12)
        ((missing,),) = database.execute(f"SELECT {fitted.to_sql('p')} FROM (SELECT NULL::DOUBLE AS p)").fetchall()
        assert missing is None


# --- What the rows make one suspect -----------------------------------------------------------------------------------


def of_the_other_class(rows=600):
    rng = np.random.default_rng(0)
    p = rng.random(rows)
    return 1.0 - p, (rng.random(rows) < p).astype(int)


def test_notes_on_likely_mistakes_are_kept_in_json():
    p, y = of_the_other_class()
    fitted = GuardedRecalibrator().fit(p, y)
    rebuilt = Recalibrator.from_json(fitted.to_json())
    assert rebuilt.notes_ == fitted.notes_
    assert rebuilt.notes_[0].startswith("events are rarer where forecasts are higher")
    assert rebuilt.guarantee(0.9) == fitted.guarantee(0.9)
    document = json.loads(fitted.to_json())
    for damage in ("text", [1], None):
        document["rows"]["notes_"] = damage
        with pytest.raises(ValueError, match="notes_ must be a list of sentences"):
            Recalibrator.from_json(json.dumps(document))


def test_files_of_older_releases_have_no_notes():
    p, y = of_the_other_class()
    document = json.loads(IsotonicRecalibrator().fit(p, y).to_json())
    del document["rows"]["notes_"]
    rebuilt = Recalibrator.from_json(json.dumps(document))
    assert rebuilt.notes_ == ()
    assert rebuilt.predict(p).tolist() == IsotonicRecalibrator().fit(p, y).predict(p).tolist()


def test_weighted_rows_have_notes_without_a_guarantee():
    p, y = of_the_other_class()
    fitted = IsotonicRecalibrator().fit(p, y, np.random.default_rng(1).random(p.size))
    assert fitted.guarantee_ is None
    assert [getattr(note, "code", "") for note in fitted.notes_] == ["other_class"]


def test_of_scores_only_the_order_says_something():
    p, y = of_the_other_class()
    scored = IsotonicRecalibrator(input_kind="score")
    (note,) = scored.fit(20.0 * p - 3.0, y).notes_
    assert note.startswith("events are rarer where forecasts are higher")
    assert scored.fit(20.0 * p - 3.0, np.ones(p.size)).notes_ == ()
    assert scored.fit(np.array([0.0, 1.0] * 50), np.array([0, 1] * 50)).notes_ == ()

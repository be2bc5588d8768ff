"""Censored outcomes: weights, risks and their limits by slow and obvious ways, and what is refused."""

import ast
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.duration.survfunc as duration
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant import measures
from calibrant.decisions import decide
from calibrant.rows import promised
from calibrant.rows.cells import Cells
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.grids import Grid
from calibrant.rows.horizons import HorizonRows
from calibrant.rows.intake import in_groups
from calibrant.rows.memory import ArrayRows
from calibrant.rows.paired import PairedColumns
from calibrant.rows.refinement import Opened
from calibrant.rows.resamples import resampled
from calibrant.rows.tally import Tally

horizon: Any = calibrant.horizon  # whose weights may be None, which they are not here


certify_decisions: Any = calibrant.certify_decisions


def slow_weights(time, code, at):
    """The weights by their definition, row by row; events come before censorings at the same time."""

    def followed(before):
        chance = 1.0
        for moment in sorted(set(time)):
            if moment >= before:
                break
            at_risk = sum(t > moment or (t == moment and c == 0) for t, c in zip(time, code, strict=True))
            lost = sum(t == moment and c == 0 for t, c in zip(time, code, strict=True))
            chance *= 1.0 - lost / at_risk if lost else 1.0
        return chance

    found = []
    for t, c in zip(time, code, strict=True):
        if c != 0 and t <= at:
            found.append(1.0 / followed(t))
        else:
            found.append(0.0 if t < at else 1.0 / followed(at))
    return np.array(found)


def slow_risk(time, code, at):
    """The Aalen-Johansen estimate with the variance of Marubini and Valsecchi for events that may tie."""
    free, risk, steps = 1.0, 0.0, []
    for moment in sorted({t for t in time if t <= at}):
        at_risk = sum(t >= moment for t in time)
        ours, theirs = (sum(t == moment and c == kind for t, c in zip(time, code, strict=True)) for kind in (1, 2))
        risk += free * ours / at_risk
        steps.append((at_risk, ours, theirs, free, risk))
        free *= 1.0 - (ours + theirs) / at_risk
    square = 0.0
    for at_risk, ours, theirs, before, reached in steps:
        left = at_risk - ours - theirs
        down = (risk - reached) / left if left else 0.0
        up = before / at_risk - down
        square += (
            up**2 * ours * (at_risk - ours) + down**2 * theirs * (at_risk - theirs) + 2 * up * down * ours * theirs
        ) / at_risk
    return risk, square**0.5


FOLLOWED = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2), st.integers(0, 8)), min_size=1, max_size=14)


@given(FOLLOWED, st.sampled_from([0.0, 2.0, 3.5, 5.0]))
@settings(max_examples=150, deadline=None)
def test_weights_risk_and_its_error_are_those_of_the_definitions(rows, at):
    time, code, forecast = (list(column) for column in zip(*rows, strict=True))
    last = max(time)
    if last < at and any(t == last and c == 0 for t, c in zip(time, code, strict=True)):
        with pytest.raises(calibrant.InputError, match=rf"^at is .* the largest horizon .* is {last}$"):
            horizon(time, code, np.array(forecast) / 8.0, at=at, competing=2)
        return
    found = horizon(time, code, np.array(forecast) / 8.0, at=at, competing=2)
    weights = np.ones(len(time)) if found.sample_weight is None else found.sample_weight
    np.testing.assert_allclose(weights, slow_weights(time, code, at), rtol=1e-12)
    assert weights.sum() == pytest.approx(len(time), rel=1e-12)
    risk, error = slow_risk(time, code, at)
    assert found.risk == pytest.approx(risk, abs=1e-12)
    assert found.outcome.standard_error == pytest.approx(error, abs=1e-12)
    assert 0.0 <= found.risk_lower <= found.risk + 1e-12
    assert found.risk - 1e-12 <= found.risk_upper <= 1.0
    order = np.argsort(np.array(forecast), kind="stable")[::-1]
    again = horizon(np.array(time)[order], np.array(code)[order], found.y_prob[order], at=at, competing=2)
    assert again.risk == pytest.approx(found.risk, abs=1e-14)


def followed(size=400, seed=0, rivals=False, whole=False):
    """Rows with independent censoring."""
    rng = np.random.default_rng(seed)
    score = rng.normal(size=size)
    time, end = rng.exponential(5.0 * np.exp(-score / 2.0)), rng.exponential(6.0, size)
    code = np.where(time <= end, 1 + (rng.random(size) < 0.3) if rivals else 1, 0)
    seen = np.minimum(time, end)
    return np.ceil(seen) if whole else seen, code, 1.0 / (1.0 + np.exp(-score))


@pytest.mark.parametrize("whole", [False, True])
def test_another_package_agrees(whole):
    time, code, forecast = followed(whole=whole)
    found = horizon(time, code, forecast, at=4.0)
    with np.errstate(all="ignore"):
        other = duration.SurvfuncRight(time, code)
    place = np.searchsorted(other.surv_times, 4.0, side="right") - 1
    assert found.risk == pytest.approx(1.0 - other.surv_prob[place], abs=1e-14)
    assert found.outcome.standard_error == pytest.approx(other.surv_prob_se[place], abs=1e-14)
    time, code, forecast = followed(rivals=True, whole=whole)
    found = horizon(time, code, forecast, at=4.0, competing=2)
    with np.errstate(all="ignore"):
        other = duration.CumIncidenceRight(time, code)
    place = np.searchsorted(other.times, 4.0, side="right") - 1
    assert found.risk == pytest.approx(other.cinc[0][place], abs=1e-14)
    assert found.outcome.standard_error == pytest.approx(other.cinc_se[0][place], abs=1e-14)


def test_where_nobody_is_censored_before_the_horizon_rows_are_plain():
    time, _, forecast = followed()
    code = np.where(time > 2.5, 0, 1)  # all who are censored were seen at the horizon
    found = horizon(time, code, forecast, at=2.5)
    outcome = time <= 2.5
    assert found.sample_weight is None
    assert not found.weights_estimated
    assert found.outcome.censored == 0
    assert calibrant.measure(found) == calibrant.measure(outcome, forecast)
    assert calibrant.certify(found, max_error=0.2) == calibrant.certify(outcome, forecast, max_error=0.2)
    for of_rows in (measures.observed_expected_ratio, measures.auroc, measures.calibration_slope_intercept):
        assert of_rows(found, confidence_level=0.9) == of_rows(outcome, forecast, confidence_level=0.9)
    assert found.risk == outcome.mean()


def test_censoring_at_the_horizon_itself_hides_nothing():
    found = horizon([1, 2, 3, 5, 5], [1, 0, 1, 0, 0], [0.5] * 5, at=5)
    assert found.sample_weight.tolist() == pytest.approx([1.0, 0.0, 4 / 3, 4 / 3, 4 / 3])
    assert found.outcome.free == 2


def test_competing_events_may_be_named_in_several_ways():
    time, code, forecast = followed(rivals=True)
    by_code = horizon(time, code, forecast, at=3.0, competing=2)
    others = [
        horizon(time, code, forecast, at=3.0, competing=[2]),
        horizon(time, code == 1, forecast, at=3.0, competing=code == 2),
        horizon(time, pd.Series(code), pd.Series(forecast), at=3.0, competing=pd.Series(code == 2)),
        horizon(time, np.where(code == 2, 7, code), forecast, at=3.0, competing=[7, 9]),
    ]
    for other in others:
        assert other.sample_weight.tolist() == by_code.sample_weight.tolist()
        assert other.outcome == by_code.outcome
    assert by_code.outcome.estimator == "Aalen-Johansen"
    ignored = horizon(time, code == 1, forecast, at=3.0)  # as if rivals had only hidden the event
    assert ignored.risk > by_code.risk


@pytest.mark.parametrize("interval", ["log-log", "log", "plain"])
def test_limits_of_no_event_are_exact_ones_of_the_rows_that_were_followed(interval):
    found = horizon([1, 2, 9, 9, 9], [0, 0, 0, 0, 1], [0.1] * 5, at=5, interval=interval)
    assert (found.risk, found.risk_lower) == (0.0, 0.0)
    assert found.risk_upper == pytest.approx(1.0 - 0.025 ** (1 / 3))
    all_had = horizon([1, 2, 3], [1, 1, 1], [0.1] * 3, at=5, interval=interval, confidence_level=0.9)
    assert (all_had.risk, all_had.risk_upper) == (1.0, 1.0)
    assert all_had.risk_lower == pytest.approx(0.05 ** (1 / 3))


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (([1, 2], [1, 0], [0.5, 0.5]), {"at": 3}, r"^at is 3, and nobody was followed for so long: .* at 2; .* is 2$"),
        (([1, 2], [0, 0], [0.5, 0.5]), {"at": 9}, r"^at is 9, and nobody was followed for so long"),
        (([1, -2], [1, 0], [0.5, 0.5]), {"at": 1}, r"^time\[1\] is -2, before the start"),
        (([1, np.nan], [1, 0], [0.5, 0.5]), {"at": 1}, r"^time\[1\] is missing"),
        (([1, np.inf], [1, 0], [0.5, 0.5]), {"at": 1}, r"^time\[1\] is inf"),
        (([1], [1, 0], [0.5, 0.5]), {"at": 1}, r"^time has 1 values for 2 rows"),
        (([1, 2], [1], [0.5, 0.5]), {"at": 1}, r"^event has 1 values for 2 rows"),
        (([1, 2], [1, 2], [0.5, 0.5]), {"at": 1}, r"^event\[1\] is 2, a code that nothing is said about; .*competing"),
        (([1, 2], [1, 0.5], [0.5, 0.5]), {"at": 1}, r"^event\[1\] is 0.5, a code"),
        (([1, 2], [1, None], [0.5, 0.5]), {"at": 1}, r"^event\[1\] is missing"),
        (([1, 2], ["died", "left"], [0.5, 0.5]), {"at": 1}, r"^event holds texts such as 'died'"),
        (([1, 2], [1, 0], [0.5, 1.5]), {"at": 1}, r"^y_prob\[1\] is 1.5, outside"),
        (([1, 2], [1, 0], [0.5, 0.5]), {"at": -1}, r"^at must be a number from 0"),
        (([1, 2], [1, 0], [0.5, 0.5]), {"at": np.nan}, r"^at must be a number"),
        (([1, 2], [1, 0], [0.5, 0.5]), {"at": 1, "competing": 1}, r"^competing names the code 1, which means the ev"),
        (([1, 2], [1, 0], [0.5, 0.5]), {"at": 1, "competing": 0}, r"^competing names the code 0, which means cens"),
        (([1, 2], [1, 0], [0.5, 0.5]), {"at": 1, "competing": True}, r"^competing is one truth value"),
        (([1, 2], [1, 0], [0.5, 0.5]), {"at": 1, "competing": [True, False]}, r"^competing\[0\] says that a competing"),
        (([1, 2], [1, 0], [0.5, 0.5]), {"at": 1, "competing": [True]}, r"^competing has 1 values for 2 rows"),
        (([1, 2], [1, 0], [0.5, 0.5]), {"at": 1, "interval": "wald"}, r"^interval must be one of 'log-log'"),
        (([1, 2], [1, 0], [0.5, 0.5]), {"at": 1, "confidence_level": 95}, r"^confidence_level is 95"),
        (([], [], []), {"at": 1}, r"^y_prob is empty"),
    ],
)
def test_what_is_refused(rows, options, message):
    with pytest.raises(calibrant.InputError, match=message):
        horizon(*rows, **options)


def test_rows_in_another_order_by_their_labels_are_refused():
    time, code, forecast = followed(20)
    with pytest.raises(calibrant.InputError, match=r"^time\[0\] is labelled 0 and y_prob\[0\] is labelled 19"):
        horizon(pd.Series(time), code, pd.Series(forecast, index=range(19, -1, -1)), at=0.1)


def censored(size=400, seed=0, **options):
    return horizon(*followed(size, seed), at=3.0, **options)


GUARANTEES: dict[str, Any] = {
    "certify": lambda rows: calibrant.certify(rows, max_error=0.1),
    "certify by": lambda rows: calibrant.certify(rows, max_error=0.1, by=np.arange(400) % 2),
    "certify cluster": lambda rows: calibrant.certify(rows, max_error=0.1, cluster=np.arange(400) // 4),
    "certify groups": lambda rows: calibrant.certify(rows, max_error=0.1, groups=np.arange(400) % 2),
    "confidence_interval": calibrant.confidence_interval,
    "calibration_test": calibrant.calibration_test,
    "spiegelhalter_test": calibrant.certificates.spiegelhalter_test,
    "risk_bands": lambda rows: calibrant.risk_bands(rows, cutoffs=[0.5]),
    "worst_group": lambda rows: calibrant.worst_group(rows, X=np.arange(400.0)),
    "check_independence": lambda rows: calibrant.check_independence(rows, cluster=np.arange(400) // 4),
    "decide": lambda rows: decide(rows, threshold=0.5),
    "certify_decisions": lambda rows: certify_decisions(rows, None, [[0, 1], [1, 0]], max_regret=0.1),
    "compare_models": lambda rows: calibrant.compare_models(PairedColumns({"old": rows, "new": rows})),
    "Monitor": lambda rows: calibrant.Monitor(max_error=0.1).update(rows),
    "Monitor by period": lambda rows: calibrant.Monitor(max_error=0.1).update(rows, period=np.arange(400) // 100),
    "Monitors": lambda rows: calibrant.Monitors(max_error=0.1).update(rows, segment=np.arange(400) % 2, period=1),
    "RollingRecalibrator": lambda rows: calibrant.RollingRecalibrator(window=2, max_error=0.1).update(rows, period=1),
    "compare_windows": lambda rows: calibrant.monitors.compare_windows(rows, period=np.arange(400), windows=[2]),
    "compare_models of named rows": lambda rows: calibrant.compare_models({"old": rows, "new": rows}),
    "compare_recalibrators": calibrant.compare_recalibrators,
    "compare_recalibrators cluster": lambda rows: calibrant.compare_recalibrators(rows, cluster=np.arange(400) // 4),
    "CertificateDisplay": lambda rows: calibrant.CertificateDisplay.from_predictions(rows, max_error=0.1),
}


@pytest.mark.parametrize("name", GUARANTEES)
def test_whatever_gives_a_guarantee_refuses_estimated_weights(name):
    with pytest.raises(
        calibrant.CalibrantError, match=r"weights that were estimated .* no guarantee holds; .*fixed\(\)"
    ):
        GUARANTEES[name](censored())


SUMMARIES: dict[str, Any] = {
    "tally": Tally.from_observations,
    "merged": lambda rows: Tally.from_arrays([0, 1], [0.2, 0.4]) + Tally.from_observations(rows),
    "merged totals": lambda rows: Tally.from_observations(rows).stretch(0, 50) + Tally.from_arrays([0, 1], [0.2, 0.4]),
    "part": lambda rows: Tally.from_observations(rows).stretch(5, 200),
    "half": lambda rows: Tally.from_observations(rows).halves(0)[0],
    "means": lambda rows: Tally.from_observations(rows).at_means(),
    "some rows": lambda rows: rows.take(np.arange(300)),
    "joined rows": lambda rows: rows.fixed().joined(rows),
    "ordered rows": lambda rows: rows.that_count().in_order().alone(),
    "array rows": ArrayRows,
    "opened": lambda rows: Opened(ArrayRows(rows)),
    "clusters": lambda rows: ClusteredRows.of(rows, np.arange(400) // 4),
    "each cluster once": lambda rows: ClusteredRows.of(rows, np.arange(400) // 4).once_each(),
    "groups": lambda rows: in_groups(rows, by=np.arange(400) % 2),
    "groups of clusters": lambda rows: in_groups(rows, by=np.arange(400) % 2, cluster=np.arange(400) // 4),
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_summaries_remember_that_weights_were_estimated(name):
    summary = SUMMARIES[name](censored())
    assert summary.weights_estimated
    with pytest.raises(calibrant.CalibrantError, match=r"weights that were estimated .* no guarantee holds"):
        calibrant.certify(summary, max_error=0.2)


def test_cells_remember_it_in_a_file_and_monitors_refuse_them(tmp_path):
    rows = censored()
    cells = Cells.from_rows(rows, Grid(4, 0.0, 1.0))
    both = (cells + Cells.from_arrays([0, 1], [0.2, 0.4], bits=5)).coarsened(3)
    for each in (cells, both, ArrayRows(rows).histogram(Grid(3, 0.0, 1.0)), cells.entries(np.arange(3))):
        assert each.weights_estimated
    both.to_parquet(tmp_path / "cells.parquet")
    again = Cells.from_parquet(tmp_path / "cells.parquet")
    assert again.weights_estimated
    for asked in (
        lambda: calibrant.certificates.bracket(again, method="adaptive"),
        lambda: calibrant.Monitor(max_error=0.1).update(Cells.from_rows(rows, Grid(10, 0.0, 1.0))),
        lambda: calibrant.Monitor(max_error=0.1).update(Tally.from_observations(rows)),
    ):
        with pytest.raises(calibrant.InputError, match="no guarantee holds"):
            asked()


def test_ordinary_summaries_say_nothing_of_it(tmp_path):
    weighted = calibrant.Tally.from_arrays([0, 1, 1], [0.2, 0.4, 0.7], sample_weight=[1.0, 2.0, 3.0])
    known = horizon([1.0, 2.0, 3.0], [1, 1, 1], [0.2, 0.4, 0.7], at=2.5)
    for tally in (
        weighted,
        weighted + weighted,
        Tally.from_observations(known),
        Tally.from_observations(censored().fixed()),
    ):
        assert tally.weights_estimated is False
    Cells.from_tally(weighted, Grid(3, 0.0, 1.0)).to_parquet(tmp_path / "cells.parquet")
    assert b"weights_estimated" not in (tmp_path / "cells.parquet").read_bytes()
    assert not Cells.from_parquet(tmp_path / "cells.parquet").weights_estimated
    calibrant.certify(Tally.from_observations(known), max_error=0.9)


@pytest.mark.parametrize("room", ["certificates", "monitors", "comparisons"])
def test_rooms_that_give_guarantees_take_rows_through_the_door_that_refuses(room):
    doors = {name for name, value in vars(promised).items() if getattr(value, "__wrapped__", None) is not None}
    assert {"as_source", "as_tally", "as_clustered", "as_observations", "in_groups"} <= doors
    for file in (Path(calibrant.__file__).parent / room).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "calibrant.rows.intake":
                assert not doors & {each.name for each in node.names}, file.name


def test_with_weights_taken_as_they_are_certificates_say_what_holds_approximately():
    rows = censored()
    certificate = calibrant.certify(rows.fixed(), max_error=0.3)
    assert certificate.rows == rows.outcome.known
    assert any("weights were fixed beforehand" in words for words in certificate.assumptions)


def test_measures_say_how_many_rows_were_censored_and_take_the_risk_for_the_observed_share():
    rows = censored()
    found = calibrant.measure(rows)
    assert found.mean_outcome == pytest.approx(rows.risk, abs=1e-14)
    assert found.observed_expected_ratio == pytest.approx(rows.risk / rows.y_prob.mean(), abs=1e-14)
    assert found.rows == found.distinct_forecasts == 400
    assert found.mean_forecast == rows.y_prob.mean()
    assert found.calibration_in_the_large == rows.risk - rows.y_prob.mean()
    assert str(found.notes[0]).startswith(f"{rows.outcome.censored} of 400 rows were censored before 3 and count")
    halves = calibrant.measure(rows, by=np.arange(400) % 2)
    assert sum(each.weight_total for each in halves.measures) == pytest.approx(400.0)
    for part in (*halves.measures, calibrant.measure(Tally.from_observations(rows))):
        assert "some rows were censored: numbers are those of the others" in str(part.notes[0])


def test_measure_and_validate_give_the_same_numbers_the_same_names():
    rows = censored(200)
    found, study = calibrant.measure(rows), calibrant.validate(rows, n_resamples=40, smoother="isotonic")
    for name in ("rows", "mean_forecast", "calibration_in_the_large", "observed_expected_ratio", "cutoff", "brier"):
        assert getattr(found, name) == pytest.approx(getattr(study, name), rel=1e-12), name
    assert found.observed_expected_ratio == pytest.approx(found.mean_outcome / found.mean_forecast)
    assert found.calibration_in_the_large == pytest.approx(found.mean_outcome - found.mean_forecast)


def test_limits_from_a_summary_say_that_weights_are_taken_as_they_are():
    tally = Tally.from_observations(censored(200))
    (note,) = measures.brier_score(tally, confidence_level=0.9).notes
    assert "limits take them as they are" in str(note)
    study = calibrant.validate(tally, n_resamples=40, smoother="isotonic")
    assert study.cutoff_upper is None
    assert any("limits take them as they are" in note for note in study.notes)
    assert any("its guarantee takes fixed weights" in note for note in study.notes)


def test_what_is_put_down_to_chance_is_so_approximately():
    found = calibrant.worst_interval(censored(60))
    assert found.weights_estimated
    assert "chance shows, with weights, which are estimates, as they are." in str(found)
    assert "in about 95% of cases" in str(found)
    assert "which are estimates" in found.where()
    assert not calibrant.worst_interval(censored(60).fixed()).weights_estimated


def test_resamples_estimate_the_weights_anew_and_do_not_depend_on_the_order_of_rows():
    time, code, forecast = followed(60, whole=True)
    rows = horizon(time, code, forecast, at=3.0)
    mixed = np.random.default_rng(1).permutation(60)
    other = horizon(time[mixed], code[mixed], forecast[mixed], at=3.0)
    drawn = [list(resampled(each, 5, np.random.default_rng(2))) for each in (rows, other)]
    for first, second in zip(*drawn, strict=True):
        assert isinstance(first, HorizonRows)
        assert first.sample_weight is not None
        assert first.y_prob.size == 60
        np.testing.assert_array_equal(first.sample_weight, np.array(second.sample_weight))
        again = horizon(first.time, first.code, first.y_prob, at=3.0)
        np.testing.assert_allclose(first.sample_weight, again.sample_weight, rtol=1e-14)
        assert first.y_true.tolist() == again.y_true.tolist()


def test_resamples_of_clusters_keep_censored_rows():
    time, code, forecast = followed(60)
    rows = horizon(time, code, forecast, at=3.0)
    clusters = ClusteredRows.of(rows, np.arange(60) // 3)
    for sample in resampled(clusters, 3, np.random.default_rng(0)):
        assert isinstance(sample, HorizonRows)
        assert sample.sample_weight is not None
        assert sample.time.size == 60
        again = horizon(sample.time, sample.code, sample.y_prob, at=3.0)
        np.testing.assert_allclose(sample.sample_weight, again.sample_weight, rtol=1e-14)


def test_too_few_rows_beyond_the_horizon_are_said_to_be_too_few_for_resamples():
    time = np.append(np.arange(1.0, 40.0), 50.0)
    rows = horizon(time, np.arange(40) % 2, np.linspace(0.1, 0.9, 40), at=45.0)
    with pytest.raises(calibrant.InputError, match="many resamples of these rows say nothing: at is 45"):
        measures.brier_score(rows, confidence_level=0.95, interval="bootstrap")


def test_other_forecasts_for_the_same_rows():
    rows = censored()
    other = rows.with_forecasts(rows.y_prob**2)
    assert other.sample_weight is rows.sample_weight
    assert calibrant.measure(other).mean_forecast < calibrant.measure(rows).mean_forecast
    with pytest.raises(calibrant.InputError, match=r"^y_prob has 3 values for 400 rows"):
        rows.with_forecasts([0.1, 0.2, 0.3])
    with pytest.raises(calibrant.InputError, match="y_prob was given together with a set of checked rows"):
        calibrant.measure(rows, rows.y_prob)


def test_words():
    said = str(censored())
    assert said.startswith("Risk of the event by 3: ")
    assert "Kaplan-Meier" in said
    assert all(len(sentence.split()) <= 30 for sentence in said.replace("\n", ". ").split(". "))
    frame = censored().outcome.frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["risk"][0] == censored().risk
    assert dataclasses.fields(HorizonRows)[0].name == "y_true"


def test_the_frame_holds_each_row_with_its_weight_and_no_outcome_where_it_is_unknown():
    rows = horizon([1, 2, 3, 4, 3.5], [1, 0, 2, 1, 0], [0.9, 0.2, 0.6, 0.4, 0.3], at=3.5, competing=2)
    frame: Any = rows.frame()
    assert list(frame.columns) == ["time", "code", "outcome", "forecast", "weight"]
    assert frame["outcome"].isna().tolist() == [False, True, False, False, False]
    assert frame["outcome"].fillna(0).tolist() == [1, 0, 0, 0, 0]
    assert frame["weight"].tolist() == rows.sample_weight.tolist()
    assert frame["forecast"].tolist() == [0.9, 0.2, 0.6, 0.4, 0.3]
    known = horizon([1, 4], [1, 0], [0.9, 0.2], at=3).frame()
    assert known["weight"].tolist() == [1.0, 1.0]

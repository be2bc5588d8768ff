"""Everything about acting on forecasts in one go: the parts are those of the single functions."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from cli_cases import answer, call
from row_sources import ToyEngine
from table_cases import predictions, write

import calibrant
from calibrant.core.results import Result
from calibrant.decisions import Decisions, GroupDecisions, decide

COLUMNS = predictions(600, seed=2)
Y, P, W, WARD = (COLUMNS[name] for name in ("y", "p", "w", "ward"))
COSTS: dict[str, Any] = {"cost_false_positive": 1, "cost_false_negative": 4}
COUNTS = calibrant.Tally.from_counts(forecast=[0.1, 0.4, 0.8], rows=[500, 300, 200], events=[70, 120, 150])


def same_parts(found, rows, question, limit, wrapper="nondecreasing"):
    assert found.risk == calibrant.decision_risk(*rows, **question)
    at = found.risk.threshold
    level = limit.confidence_level
    benefit = None if at == 1.0 else calibrant.net_benefit(*rows, threshold=at, confidence_level=level)
    assert found.net_benefit == benefit
    assert found.gap == calibrant.risk_gap(*rows, wrapper=wrapper, **question)
    assert found.best_threshold == calibrant.best_threshold(*rows, **question)
    assert found.guarantee == calibrant.decision_guarantee(limit, **question)


@pytest.mark.parametrize("question", [{"threshold": 0.3}, COSTS], ids=["threshold", "costs"])
@pytest.mark.parametrize("method", ["adaptive", "hoeffding", "normal"])
@pytest.mark.parametrize("wrapper", ["nondecreasing", "monotone"])
def test_the_guarantee_is_a_limit_of_the_saving_itself_over_all_thresholds(question, wrapper, method):
    found = decide(Y, P, wrapper=wrapper, method=method, confidence_level=0.9, **question)
    limit = calibrant.confidence_interval(
        Y, P, measure="risk_gap", alternative="less", method=method, confidence_level=0.9
    )
    (each,) = found.decisions
    same_parts(each, (Y, P), question, limit, wrapper)
    assert each.guarantee.thresholds == (0.0, 1.0)
    assert each.guarantee.monotone == 2.0 * limit.upper
    assert found.guarantee == calibrant.decision_guarantee(limit)
    assert "the saving itself was limited" in str(found)


@pytest.mark.parametrize("method", ["exact", "paper"])
def test_where_a_method_has_no_limit_of_the_risk_gap_that_of_the_cutoff_error_serves(method):
    found = decide(COUNTS, threshold=0.3, method=method)
    limit = calibrant.confidence_interval(COUNTS, alternative="less", method=method)
    assert found.guarantee == calibrant.decision_guarantee(limit)
    assert (found.guarantee.measure, found.guarantee.is_direct) == ("cutoff", False)
    assert "It follows from Cutoff calibration error <= " in str(found)
    assert found.guarantee.monotone is not None


@pytest.mark.parametrize("question", [{"threshold": 0.3}, COSTS], ids=["threshold", "costs"])
def test_the_parts_are_those_of_the_single_functions(question):
    found = decide(Y, P, wrapper="monotone", method="exact", confidence_level=0.9, **question)
    limit = calibrant.confidence_interval(Y, P, alternative="less", method="exact", confidence_level=0.9)
    (each,) = found.decisions
    same_parts(each, (Y, P), question, limit, "monotone")
    assert found.guarantee == calibrant.decision_guarantee(limit)
    assert found.refusal is None
    assert str(found) == "\n".join(map(str, (each.risk, each.net_benefit, each.gap, each.guarantee)))


def test_several_thresholds_are_several_lines():
    thresholds = [0.1, 0.5, 1.0]
    found = decide(Y, P, threshold=thresholds)
    limit = calibrant.confidence_interval(Y, P, measure="risk_gap", alternative="less")
    for at, each in zip(thresholds, found.decisions, strict=True):
        same_parts(each, (Y, P), {"threshold": at}, limit)
    frame = found.frame()
    assert frame["threshold"].tolist() == thresholds
    assert frame["gap"].tolist() == [each.gap.gap for each in found.decisions if each.gap is not None]
    assert frame["net_benefit"].tolist()[:2] == [
        each.net_benefit.net_benefit for each in found.decisions if each.net_benefit is not None
    ]
    assert frame["guaranteed"].tolist() == [each.guarantee.nondecreasing for each in found.decisions]
    assert str(found).endswith(str(found.guarantee))


def test_the_guarantees_of_groups_hold_together():
    found = decide(Y, P, threshold=[0.2, 0.6], by=WARD, sample_weight=W)
    assert list(found) == ["north", "south", "west"]
    assert (len(found), found.confidence_level) == (3, 0.95)
    for ward in found:
        rows = ward == WARD
        alone = decide(Y[rows], P[rows], threshold=[0.2, 0.6], sample_weight=W[rows], confidence_level=1 - 0.05 / 3)
        assert found[ward] == alone
    assert found.frame()["group"].tolist() == ["north", "north", "south", "south", "west", "west"]
    assert str(found).startswith(
        "Per group; the last column is the most that any re-drawing of the line between acting and not acting saves in "
        "expectation (by the risk gap), with 95% confidence for all groups together:"
    )
    by_cutoff = decide(Y, P, threshold=0.2, by=WARD, method="exact")
    assert "in expectation (by the Cutoff calibration error), with 95%" in str(by_cutoff)
    assert found.said(by="ward").startswith("Per group of 'ward'; the last column")
    with pytest.raises(KeyError):
        found["east"]
    in_groups = calibrant.rows.in_groups(Y, P, by=WARD, sample_weight=W)
    assert decide(in_groups, threshold=[0.2, 0.6]) == found


def test_the_command_line_says_the_same(tmp_path):
    file = write(COLUMNS, tmp_path / "t.csv", "csv")
    options = ("--threshold", 0.2, "--threshold", 0.6, "--by", "ward")
    whole, groups = decide(Y, P, threshold=[0.2, 0.6]), decide(Y, P, threshold=[0.2, 0.6], by=WARD)
    assert call("decide", file, *options, "--verbose").stdout == f"{whole}\n\n{groups.said(by='ward')}\n"
    brief = call("decide", file, *options[:2]).stdout
    assert whole.decisions[0].guarantee.finding() in brief.splitlines()
    document = answer("decide", file, *options)

    def plain(decisions):
        content = decisions.to_dict()
        del content["schema"], content["type"]
        for each in content["decisions"]:
            del each["type"]
        return content

    assert document["result"] == plain(whole)
    assert document["groups"] == [{"group": ward, "result": plain(groups[ward])} for ward in groups]


def test_results_survive_json():
    for result in (decide(Y, P, threshold=[0.2, 0.6]), decide(Y, P, **COSTS, by=WARD)):
        for kind in (type(result), Result):
            assert kind.from_json(result.to_json()) == result


@pytest.mark.usefixtures("as_if_large")
def test_where_forecasts_are_too_many_the_rest_is_exact():
    rng = np.random.default_rng(0)
    p = rng.integers(1, 400, 3000) / 400 + 1e-9 * rng.random(3000)  # closer together than cells are wide
    y = rng.random(3000) < p
    found = decide(ToyEngine(y, p, fetch_limit=500, tally_limit=500), threshold=0.3)
    (each,) = found.decisions
    assert (each.gap, each.best_threshold) == (None, None)
    assert found.refusal is not None
    assert found.refusal.startswith("this needs every distinct forecast")
    assert str(found).endswith(f"What could be saved is left out: {found.refusal}.")
    assert each.risk.risk == pytest.approx(calibrant.decision_risk(y, p, threshold=0.3).risk, abs=1e-12)
    exact = calibrant.confidence_interval(y, p, measure="risk_gap", alternative="less")
    assert found.guarantee.upper == pytest.approx(exact.upper, abs=1e-12)
    assert found.guarantee.is_direct
    assert found.frame()["gap"].isna().all()
    assert Decisions.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"^threshold is missing"),
        ({"threshold": 0.2, **COSTS}, r"^threshold was given together with costs"),
        ({"threshold": []}, r"^threshold is empty"),
        ({"threshold": [0.2, 1.2]}, r"^threshold\[1\] is 1.2"),
        ({"threshold": 0.2, "wrapper": "none"}, r"^wrapper"),
        ({"threshold": 0.2, "confidence_level": 1.0}, r"^confidence_level"),
        ({"threshold": 0.2, "method": "none"}, r"^method"),
        ({"threshold": 0.2, "rng": -1}, r"^rng"),
        ({"threshold": 0.2, "by": ["a"]}, r"^by has 1 values for 600 rows"),
        ({"threshold": 0.2, "by": WARD, "method": "exact", "sample_weight": W}, r"^by group 'north': method='exact'"),
    ],
)
def test_bad_input_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        decide(Y, P, **options)


def test_results_that_do_not_fit_together_are_refused():
    groups = decide(Y, P, threshold=0.2, by=WARD)
    with pytest.raises(ValueError, match=r"^groups of this GroupDecisions is \('a',\), not as many as decisions"):
        dataclasses.replace(groups, groups=("a",))
    with pytest.raises(ValueError, match=r"^decisions of this Decisions is \(\), not one of them"):
        dataclasses.replace(groups["north"], decisions=())
    assert isinstance(groups, GroupDecisions)
    assert np.isfinite(groups.frame()["risk"]).all()

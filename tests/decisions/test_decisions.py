"""What risks, gaps, guarantees and scores have in common: ties, labels and weights, bad options, results as files."""

import json
from typing import Any

import numpy as np
import pytest
from decision_cases import ROWS, direct_limit, limit, refused

import calibrant
from calibrant import Tally
from calibrant.core.results import Result
from calibrant.decisions import SchervishMeasure

UNKNOWN: Any = "rising"


def test_ties_at_the_threshold_everywhere():
    y, p = [0, 0, 0, 1], [0.5, 0.5, 0.5, 0.5]
    assert calibrant.decision_risk(y, p, threshold=0.5).risk == 0.375  # acts
    assert calibrant.decisions.murphy_curve(y, p).risk_at(0.5) == 0.375
    curve = calibrant.decisions.risk_gap_curve(y, p)
    assert (curve.at(0.5), curve.at(np.nextafter(0.5, 1))) == (0.25, pytest.approx(0.0, abs=1e-15))
    assert calibrant.risk_gap(y, p, threshold=0.5).rule.kind == "never"
    assert calibrant.net_benefit(y, p, threshold=0.5).net_benefit == -0.5
    assert calibrant.decisions.sign_testing_risk(y, p, threshold=0.5).risk == 0.125  # p > y* does not act
    assert SchervishMeasure(atoms=[0.5], masses=[1]).loss(y, p).tolist() == [0.5, 0.5, 0.5, 0.0]


def test_labels_and_weights_reach_every_function():
    y, p, w = np.array(["no", "yes", "yes", "no"]), [0.2, 0.4, 0.9, 0.6], [1.0, 2.0, 0.5, 3.0]
    tally = Tally.from_arrays(y == "yes", p, sample_weight=w)
    options = {"sample_weight": w, "pos_label": "yes"}
    at = {"threshold": 0.5}
    asked: list[tuple[Any, dict[str, Any]]] = [
        (calibrant.decision_risk, at),
        (calibrant.risk_gap, at),
        (calibrant.decisions.risk_gap_curve, {}),
        (calibrant.decisions.murphy_curve, {}),
        (calibrant.decisions.sign_testing_risk, at),
        (calibrant.decisions.sign_testing_gap, at),
        (calibrant.decisions.score_decomposition, {"score": "log"}),
        (calibrant.net_benefit, {}),
        (calibrant.best_threshold, at),
    ]
    for function, more in asked:
        assert function(y, p, **options, **more).to_dict() == function(tally, **more).to_dict(), function


# --- Bad options ------------------------------------------------------------------------------------------------------

ONE_THRESHOLD = [calibrant.risk_gap, calibrant.best_threshold]


@pytest.mark.parametrize("function", [calibrant.decision_risk, *ONE_THRESHOLD])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"^threshold is missing: pass threshold=, or cost_false_positive= and cost_false_negative= in its place"),
        ({"threshold": 20}, r"^threshold must be a number from 0 to 1, got 20"),
        ({"threshold": -0.1}, r"^threshold must be a number from 0 to 1, got -0\.1"),
        ({"threshold": np.nan}, r"^threshold must be a number from 0 to 1, got nan"),
        ({"threshold": "0.5"}, r"^threshold must be a number, got '0\.5' of type str"),
        ({"threshold": True}, r"^threshold must be a number, got True of type bool"),
        ({"threshold": []}, r"^threshold is empty; pass one threshold or an array of them"),
        ({"threshold": [0.2, 20.0]}, r"^threshold\[1\] is 20, outside \[0, 1\]; .*divide percentages by 100"),
        ({"threshold": [0.2, np.nan]}, r"^threshold\[1\] is missing"),
        ({"threshold": [[0.2, 0.3]]}, r"^threshold has shape \(1, 2\)"),
        ({"threshold": ["a"]}, r"^threshold\[0\] is 'a' of type str, not a number"),
        ({"threshold": 0.5, "cost_false_positive": 1}, r"^threshold was given together with costs, which say the same"),
        ({"cost_false_positive": 1}, r"^cost_false_negative is missing: pass both costs, or threshold="),
        ({"cost_false_negative": 1}, r"^cost_false_positive is missing: pass both costs, or threshold="),
        ({"cost_false_positive": -1, "cost_false_negative": 1}, r"^cost_false_positive must be a number from 0 to 1e"),
        ({"cost_false_positive": 1, "cost_false_negative": np.inf}, r"^cost_false_negative must be a number from 0 to"),
        ({"cost_false_positive": 0, "cost_false_negative": 0}, r"^both costs are 0, so no decision matters"),
    ],
)
def test_thresholds_and_costs_that_make_no_sense_are_refused(function, options, message):
    with refused(message):
        function(*ROWS, **options)


@pytest.mark.parametrize("function", [*ONE_THRESHOLD, calibrant.decisions.sign_testing_gap])
def test_functions_of_one_threshold_say_where_to_go_with_more(function):
    with refused(r"^threshold has 2 values where one is needed: call it once for each; .*risk_gap_curve tells"):
        function(*ROWS, threshold=[0.2, 0.3])


NO_SCORE: Any = np.cos


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: calibrant.risk_gap(*ROWS, threshold=0.5, wrapper=UNKNOWN),
            r"^wrapper must be one of 'nondecreasing'",
        ),
        (
            lambda: calibrant.decisions.risk_gap_curve(*ROWS, wrapper="any"),
            r"^wrapper must be one of 'nondecreasing', 'monotone'",
        ),
        (
            lambda: calibrant.decisions.sign_testing_gap(*ROWS, threshold=2),
            r"^threshold must be a number from 0 to 1, got 2",
        ),
        (
            lambda: calibrant.decisions.sign_testing_risk(*ROWS, threshold=None),
            r"^threshold is missing: pass threshold=, or cost_false_positive=",
        ),
        (lambda: calibrant.net_benefit(*ROWS, threshold=[0.5, 1.0]), r"^threshold is 1, .*keep it below 1"),
        (
            lambda: calibrant.decisions.score_decomposition(*ROWS, score="crps"),
            r"^score must be one of 'brier', 'log', 'spheric",
        ),
        (
            lambda: calibrant.decisions.score_decomposition(*ROWS, score=NO_SCORE),
            r"^score must be one of .*or a SchervishMeasure",
        ),
        (
            lambda: calibrant.decisions.risk_gap_curve(*ROWS).at(1.5),
            r"^threshold must be a number from 0 to 1, got 1\.5",
        ),
        (lambda: calibrant.risk_gap(*ROWS, threshold=0.5).rule.acts([2.0]), r"^y_prob\[0\] is 2, outside"),
    ],
)
def test_other_options_that_do_not_fit_are_refused(call, message):
    with refused(message):
        call()


# --- Results ----------------------------------------------------------------------------------------------------------

ALL_RESULTS: dict[str, Any] = {
    "DecisionRisk": calibrant.decision_risk(*ROWS, threshold=0.5),
    "DecisionRisk of several": calibrant.decision_risk(*ROWS, threshold=[0.5, 0.7]),
    "DecisionRisk of costs": calibrant.decision_risk(*ROWS, cost_false_positive=1, cost_false_negative=4),
    "sign-testing DecisionRisk": calibrant.decisions.sign_testing_risk(*ROWS, threshold=0.5),
    "RiskGap": calibrant.risk_gap(*ROWS, threshold=0.3),
    "RiskGap with a set": calibrant.risk_gap(
        Tally.from_counts([0.2, 0.6], [20, 20], [15, 3]), threshold=0.5, wrapper="any"
    ),
    "sign-testing RiskGap": calibrant.decisions.sign_testing_gap(
        Tally.from_arrays([0.2, 0.8], [0.6, 0.3]), threshold=0.5
    ),
    "RiskGapCurve": calibrant.decisions.risk_gap_curve(*ROWS),
    "MurphyCurve": calibrant.decisions.murphy_curve(*ROWS),
    "BestThreshold": calibrant.best_threshold(*ROWS, threshold=0.3),
    "DecisionGuarantee": calibrant.decision_guarantee(limit(), threshold=0.3),
    "direct DecisionGuarantee": calibrant.decision_guarantee(direct_limit((0.1, 0.4)), threshold=0.3),
    "ScoreDecomposition": calibrant.decisions.score_decomposition(*ROWS),
    "NetBenefit": calibrant.net_benefit(*ROWS),
    "one NetBenefit": calibrant.net_benefit(*ROWS, threshold=0.25),
}


@pytest.mark.parametrize("result", ALL_RESULTS.values(), ids=ALL_RESULTS.keys())
def test_results_survive_a_file_and_read_the_same(result):
    content = json.loads(result.to_json())
    back: Any = Result.from_dict(content)
    assert type(back) is type(result)
    assert back == result
    assert back.to_dict() == result.to_dict()
    assert str(back) == str(result)
    assert "array(" not in repr(result)
    assert result._repr_html_().startswith("<pre ")
    with pytest.raises(AttributeError):
        result.threshold = 0.5


def test_frames_have_one_row_per_threshold():
    assert len(ALL_RESULTS["DecisionRisk"].frame()) == 1
    frame = ALL_RESULTS["DecisionRisk of several"].frame()
    assert list(frame.columns) == ["threshold", "risk", "false_positive", "false_negative", "acted"]
    assert len(frame) == 2
    curve = ALL_RESULTS["RiskGapCurve"]
    assert list(curve.frame().columns) == [
        "threshold",
        "risk",
        "risk_right",
        "constant_risk",
        "best_risk",
        "gap",
        "gap_right",
        "regret",
        "regret_right",
    ]
    assert len(curve.frame()) == curve.threshold.size
    gap = ALL_RESULTS["RiskGap"]
    assert gap.frame().to_dict("records") == [
        {
            "threshold": 0.3,
            "wrapper": "nondecreasing",
            "risk": gap.risk,
            "best_risk": gap.risk,
            "gap": 0.0,
            "bound": gap.bound.right,
        }
    ]
    best = ALL_RESULTS["BestThreshold"].frame()
    assert list(best.columns) == ["threshold", "cutoff", "cutoff_above", "risk", "best_risk", "saving", "changed"]
    assert best.cutoff.tolist() == [0.3]
    promised = ALL_RESULTS["DecisionGuarantee"].frame()
    assert promised.recalibration.tolist() == ["nondecreasing", "monotone", "any"]
    assert promised.upper[:2].tolist() == [0.03, 0.06]
    assert promised.upper.isna().tolist() == [False, False, True]
    direct = ALL_RESULTS["direct DecisionGuarantee"].frame()
    assert direct.upper[0] == 0.03
    assert direct.upper.isna().tolist() == [False, True, True]


def test_risks_in_words():
    assert str(ALL_RESULTS["DecisionRisk of costs"]) == (
        "At threshold 0.2 (a false positive costs 1, a false negative 4), acting from there up (on 75.0% of all rows) "
        "loses 0.05000 per row on average (0.25 in cost units): 0.05000 from false alarms and 0.00000 from missed "
        "events."
    )
    assert str(ALL_RESULTS["DecisionRisk of several"]) == (
        "mean decision loss at 2 thresholds from 0.5 to 0.7: between 0.25000 and 0.32500"
    )
    assert str(ALL_RESULTS["RiskGap"]).startswith(
        "At threshold 0.3, no non-decreasing recalibration of these forecasts lowers the mean decision loss on these "
        "rows, 0.07500.\ngap <= Cutoff: 0 <= 0.25 holds (this project)"
    )
    assert str(ALL_RESULTS["MurphyCurve"]).startswith("mean loss at every threshold, on 7 knots: at most 0.3")

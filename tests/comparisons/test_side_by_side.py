"""Models side by side: limits that hold together, the differences they imply, and the choice."""

import dataclasses
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_cases import answer, call
from table_cases import predictions, write

import calibrant
from calibrant import Tally, compare_models
from calibrant.comparisons import ModelComparison, ModelError
from calibrant.core.results import Result

COLUMNS = predictions(3000, seed=1)
Y, P, W = COLUMNS["y"], COLUMNS["p"], COLUMNS["w"]
MODELS = {"good": P, "bad": COLUMNS["worse"], "flat": np.full(P.size, 0.5)}


@pytest.fixture(scope="module")
def found():
    return compare_models(Y, MODELS, max_error=0.05)


def test_every_limit_is_that_of_certify_at_a_level_that_lets_one_choose(found):
    each_level = 1 - 0.05 / 3
    assert list(found) == list(MODELS)
    assert len(found) == 3
    for name, forecasts in MODELS.items():
        settings: dict[str, Any] = {"confidence_level": each_level, "rng": 0}
        assert found[name].interval == calibrant.confidence_interval(Y, forecasts, **settings)
        assert found[name].certificate == calibrant.certify(Y, forecasts, max_error=0.05, **settings)
        assert found[name].brier == pytest.approx(np.mean((Y - forecasts) ** 2))
    with pytest.raises(KeyError):
        found["other"]


@pytest.mark.parametrize("how", [{"method": "hoeffding"}, {"measure": "smooth"}])
def test_a_difference_follows_from_the_limits_of_both(how):
    found = compare_models(Y, MODELS, **how)
    pairs = [(each.first, each.second) for each in found.differences]
    assert pairs == [("good", "bad"), ("good", "flat"), ("bad", "flat")]
    assert "with limits that follow from those above" in str(found)
    for each in found.differences:
        first, second = found[each.first].interval, found[each.second].interval
        assert first is not None
        assert second is not None
        assert not each.paired
        assert (each.lower, each.upper) == (first.lower - second.upper, first.upper - second.lower)
        assert each.estimate == first.estimate - second.estimate
        assert each.lower <= each.estimate <= each.upper
    assert found.differences[0].better == "good"
    turned = compare_models(Y, {"bad": COLUMNS["worse"], "good": P}).differences[0]
    assert (turned.better, str(turned).startswith("bad - good: good is better calibrated")) == ("good", True)
    alike = compare_models(Y, {"one": P, "two": P}).differences[0]
    assert alike.better is None
    assert "not told apart" in str(alike)


def test_a_verdict_that_comes_before_both_limits_do_is_explained(found):
    assert found.ahead_said() == []
    one: Any = found["good"]
    between = (one.certificate.upper + one.interval.upper) / 2
    ahead = compare_models(Y, MODELS, max_error=between)
    assert ahead.certified == ("good",)
    assert "The verdict on good comes before the limits of the table show it" in str(ahead)


def test_of_the_certified_the_lowest_brier_score_is_chosen(found):
    assert (found.certified, found.chosen) == (("good", "flat"), "good")
    assert "Certified: good (flat too), an error of at most 0.05 with 95% confidence, having chosen among 3" in str(
        found
    )
    none = compare_models(Y, MODELS, max_error=0.001)
    assert (none.chosen, none.certified) == (None, ())
    assert "None of the 3 models is certified" in str(none)
    unasked = compare_models(Y, MODELS)
    assert (unasked.chosen, unasked.max_error, unasked["good"].certificate) == (None, None, None)
    assert "Certified" not in str(unasked)
    assert str(unasked["good"]).startswith("good (Brier score 0.1")


@pytest.mark.parametrize("asked", [{}, {"threshold": 0.3}, {"cost_false_positive": 1, "cost_false_negative": 4}])
def test_models_are_compared_by_what_acting_on_them_leaves_to_save(asked):
    settings: dict[str, Any] = {"measure": "risk_gap", **asked}
    result = compare_models(Y, MODELS, max_error=0.03, **settings)
    for name, forecasts in MODELS.items():
        each = {**settings, "confidence_level": 1 - 0.05 / 3, "rng": 0}
        assert result[name].interval == calibrant.confidence_interval(Y, forecasts, **each)
        assert result[name].certificate == calibrant.certify(Y, forecasts, max_error=0.03, **each)
    assert ModelComparison.from_json(result.to_json()) == result


def test_words_on_savings_name_the_thresholds():
    result = compare_models(Y, MODELS, max_error=0.03, measure="risk_gap", threshold=(0.2, 0.4))
    said = str(result)
    assert said.startswith("The risk gap at any threshold from 0.2 to 0.4 of 3 models, with limits that hold for all")
    assert (
        "Certified: good (flat too), a risk gap at any threshold from 0.2 to 0.4 of at most 0.03 per case with 95%"
        in said
    )
    assert "good leaves less to save" in said
    assert "better calibrated" not in said
    none = compare_models(Y, MODELS, max_error=0.001, measure="risk_gap")
    assert "None of the 3 models is certified to have a risk gap at any threshold of at most 0.001 per case." in str(
        none
    )
    with pytest.raises(ValueError, match="threshold is for measure='risk_gap' only"):
        compare_models(Y, MODELS, threshold=0.3)


@pytest.mark.parametrize("max_error", [None, 0.05])
def test_results_survive_json_and_become_a_frame(max_error):
    result = compare_models(Y, MODELS, max_error=max_error)
    for kind in (ModelComparison, Result):
        assert kind.from_json(result.to_json()) == result
    frame = result.frame()
    assert frame["model"].tolist() == list(MODELS)
    assert ("verdict" in frame) == (max_error is not None)
    assert frame["upper"].tolist() == [each.limits[0].upper for each in result.models]
    assert result.difference_frame()["verdict"].tolist() == [each.verdict for each in result.differences]


def test_the_command_line_says_the_same(found, tmp_path):
    file = write({"y": Y, "w": W, **MODELS}, tmp_path / "t.csv", "csv")
    named = ("--y-true", "y", "--y-prob", "good", "--y-prob", "bad", "--y-prob", "flat", "--max-error", 0.05)
    document = answer("compare", file, *named)
    assert document["chosen"] == found.chosen
    for said, each in zip(document["models"], found.models, strict=True):
        del said["input"]
        expected = {"type": "ComparedModel", **said}
        assert expected == {name: value for name, value in each.to_dict().items() if name != "schema"}
    assert document["differences"] == [vars(each) for each in found.differences]
    assert call("compare", file, *named, "--verbose").stdout == f"{found}\n"
    options = ("--weight", "w", "--measure", "smooth", "--method", "normal", "--confidence-level", 0.9, "--rng", 3)
    weighted = compare_models(
        Y, MODELS, max_error=0.05, sample_weight=W, measure="smooth", method="normal", confidence_level=0.9, rng=3
    )
    assert call("compare", file, *named, *options, "-v").stdout == f"{weighted}\n"


def test_models_of_different_rows_are_compared_by_their_tallies(found):
    tallies = {name: Tally.from_arrays(Y, forecasts) for name, forecasts in MODELS.items()}
    apart = compare_models(tallies, max_error=0.05)
    assert apart.models == found.models
    assert not any(each.paired for each in apart.differences)
    assert all(each.paired for each in found.differences)
    with pytest.raises(ModelError, match=r"^model 'good': y_prob was given together with a Tally"):
        compare_models(tallies, P)
    half = compare_models({"all": tallies["good"], "some": Tally.from_arrays(Y[::2], P[::2])})
    assert [each.limits[0].rows for each in half.models] == [3000, 1500]


@pytest.mark.usefixtures("as_if_large")
def test_many_rows_are_compared_as_few():
    large = compare_models(Y, MODELS, max_error=0.05, sample_weight=np.full(Y.size, 2.0))
    for name, forecasts in MODELS.items():
        expected = calibrant.certify(Y, forecasts, max_error=0.05, confidence_level=1 - 0.05 / 3)
        certificate = large[name].certificate
        assert certificate is not None
        assert certificate.upper == pytest.approx(expected.upper, abs=1e-12)
        assert large[name].brier == pytest.approx(np.mean((Y - forecasts) ** 2))


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ((Y, {"only": P}), {}, r"^there is one model only, 'only'"),
        ((Y, {}), {}, r"^y_prob is an empty dict"),
        ((Y, {"a": P, 3: P}), {}, r"^y_prob has the name 3; name each model"),
        ((Y, P), {}, r"^y_prob is a ndarray; pass the forecasts of each model in a dict"),
        ((Y,), {}, r"^y_prob is a NoneType; pass"),
        (
            ({"a": Y, "b": Y}, {"a": P}),
            {},
            r"^y_true\['a'\] is a ndarray; a dict in place of the outcomes holds a Tally",
        ),
        ((Y, {"a": P, "b": P[:-1]}), {}, r"^model 'b': y_true has 3,000 values and y_prob has 2,999"),
        ((Y, {"a": P, "b": 100 * P}), {}, r"^model 'b': y_prob\[\d+\] is .*percentages"),
        ((Y, {"a": P, "b": P}), {"max_error": 2}, r"^max_error"),
        ((Y, {"a": P, "b": P}), {"confidence_level": 95}, r"^confidence_level"),
        ((Y, {"a": P, "b": P}), {"rng": "x"}, r"^rng"),
        ((Y, {"a": P, "b": P}), {"method": "exact", "sample_weight": W}, r"^model 'a': method='exact' does not cover"),
    ],
)
def test_bad_input_is_refused(rows, options, message):
    with pytest.raises(ValueError, match=message):
        compare_models(*rows, **options)


def test_an_error_says_which_model_and_why():
    with pytest.raises(ModelError) as caught:
        compare_models(Y, {"a": P, "b": P + 1})
    assert caught.value.model == "b"
    assert str(caught.value.reason).startswith("y_prob[0] is ")


def test_forecasts_in_another_order_are_refused():
    outcomes = pd.Series(Y)
    with pytest.raises(ValueError, match=r"y_prob\['b'\]\[\d+\] is labelled"):
        compare_models(outcomes, {"a": pd.Series(P), "b": pd.Series(P)[::-1]})


def test_what_is_wrong_with_a_file_is_said_of_that_file(tmp_path):
    write({"y": Y, "p": P}, tmp_path / "good.csv", "csv")
    write({"outcome": Y / 2, "forecast": P}, tmp_path / "other.csv", "csv")
    found = call("compare", tmp_path / "good.csv", tmp_path / "other.csv", "--method", "exact", "-q")
    assert found.exit_code == 2
    assert found.stderr.startswith(f"Error: {tmp_path / 'other.csv'}: ")
    assert "column 'outcome' holds fractions" in found.stderr


def test_a_choice_that_the_certificates_do_not_make_is_refused(found):
    with pytest.raises(
        ValueError, match=r"^chosen of this ModelComparison is 'bad', while the certificates say 'good'"
    ):
        dataclasses.replace(found, chosen="bad")
    with pytest.raises(ValueError, match=r"^models of this ModelComparison is .*, fewer than two"):
        dataclasses.replace(found, models=found.models[:1])
    damaged = json.loads(found.to_json())
    damaged["differences"][0]["lower"] = 0.9
    with pytest.raises(ValueError, match=r"^lower of this ModelDifference is 0.9, above upper"):
        ModelComparison.from_dict(damaged)

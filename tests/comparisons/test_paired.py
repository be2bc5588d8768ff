"""Models on the same rows: differences row by row, verdicts with a margin, scores, clusters."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from cli_cases import answer, call
from paired_laws import LAWS, SAME
from table_cases import write

import calibrant
from calibrant import compare_models
from calibrant.certificates import pair_savings, pairs
from calibrant.certificates.unit_means import unit_mean_limits
from calibrant.comparisons import ModelComparison, ModelDifference
from calibrant.core.voices import Phrase
from calibrant.rows import paired
from calibrant.rows.checks import Observations
from calibrant.rows.paired import FEW_GROUPS, PairedRows, halves
from calibrant.rows.savings import EVERY_THRESHOLD

RNG = np.random.default_rng(11)
N = 1500
P = RNG.uniform(0.05, 0.95, N)
Y = (RNG.random(N) < P).astype(int)
W = RNG.random(N) + 0.5
SITE = np.arange(N) // 10
MODELS = {"off": np.clip(P + 0.1, 0, 1), "good": P, "coarse": np.round(P, 1)}
EVERY: list[dict[str, Any]] = [
    {},
    {"measure": "risk_gap", "threshold": (0.2, 0.6)},
    {"measure": "brier"},
    {"measure": "log"},
    {"measure": "decision_risk", "threshold": [0.3, 0.5]},
    {"measure": "net_benefit", "threshold": 0.3},
    {"sample_weight": W},
    {"measure": "brier", "sample_weight": W},
    {"measure": "brier", "cluster": SITE},
]


def rows_of(y, forecasts, weight=None, cluster=None, binary=True):
    columns = {name: Observations(np.asarray(y), each, weight, binary) for name, each in forecasts.items()}
    return PairedRows.of(columns, cluster)


@pytest.mark.parametrize("asked", EVERY, ids=str)
def test_differences_have_limits_and_survive_json(asked):
    models = {name: np.clip(each, 0.01, 0.99) for name, each in MODELS.items()}
    found = compare_models(Y, models, **asked)
    for each in found.differences:
        assert each.paired
        assert each.lower <= each.estimate + 1e-12
        assert each.estimate <= each.upper + 1e-12
        first, second = (
            next(limits for limits in found[name].limits if getattr(limits, "threshold", None) == each.threshold)
            for name in (each.first, each.second)
        )
        assert each.estimate == pytest.approx(first.estimate - second.estimate, abs=1e-12)
    assert ModelComparison.from_json(found.to_json()) == found
    assert len(found.difference_frame()) == len(found.differences)
    assert len(found.frame()) == sum(len(each.limits) for each in found.models)
    assert "hold together" in str(found)


@pytest.mark.parametrize("asked", EVERY, ids=str)
def test_the_order_of_rows_makes_no_difference(asked):
    order = np.random.default_rng(3).permutation(N)
    models = {name: np.clip(each, 0.01, 0.99) for name, each in MODELS.items()}
    turned = {name: each[order] for name, each in models.items()}
    columns = {name: asked[name][order] for name in ("sample_weight", "cluster") if name in asked}
    one, other = compare_models(Y, models, **asked), compare_models(Y[order], turned, **{**asked, **columns})
    for first, second in zip(one.differences, other.differences, strict=True):
        assert (first.lower, first.upper) == pytest.approx((second.lower, second.upper), abs=1e-12)


def both_ways(found):
    """Return every difference and its mirror image."""
    ways = {}
    for each in found.differences:
        ways[each.first, each.second] = each.estimate, each.lower, each.upper
        ways[each.second, each.first] = -each.estimate, -each.upper, -each.lower
    return ways


@pytest.mark.parametrize("asked", [{}, {"measure": "risk_gap"}, {"measure": "brier"}, {"cluster": SITE[:200]}], ids=str)
@pytest.mark.parametrize("names", [("off", "coarse"), ("off", "good", "coarse")], ids=len)
@pytest.mark.parametrize("digits", [17, 1])
def test_the_order_of_models_makes_no_difference(asked, names, digits):
    few = slice(0, 200)
    models = {name: MODELS[name][few].round(digits) for name in names}
    expected = both_ways(compare_models(Y[few], models, **asked))
    orders = list(itertools.permutations(names))[1:]
    for order in orders[::3] if asked else orders:  # all of them where it is cheap, or else a swap and a rotation
        assert both_ways(compare_models(Y[few], {name: models[name] for name in order}, **asked)) == expected


def test_neither_names_nor_order_of_many_models_tell_halves(monkeypatch):
    rows = rows_of(Y, MODELS)
    for order in itertools.permutations(MODELS.values()):
        np.testing.assert_array_equal(rows_of(Y, dict(zip("abc", order, strict=True))).groups(0), rows.groups(0))
    monkeypatch.setattr(pairs, "IN_ORDER_BELOW", 0)
    one, other = (pairs.cutoff_limits(rows, *names, 0, 0.05) for names in (("off", "good"), ("good", "off")))
    assert (one.lower, one.upper) == (-other.upper, -other.lower)


def test_names_of_clusters_make_no_difference():
    few, names = slice(0, 400), np.random.default_rng(4).permutation(40)
    models = {"off": MODELS["off"][few], "good": P[few]}
    one = compare_models(Y[few], models, cluster=SITE[few])
    other = compare_models(Y[few], models, cluster=[f"site {names[each]}" for each in SITE[few]])
    assert (one.differences[0].lower, one.differences[0].upper) == pytest.approx(
        (other.differences[0].lower, other.differences[0].upper), abs=1e-9
    )
    assert one.differences[0].upper - one.differences[0].lower > 0.2  # forty clusters say little
    assert "draws from one population of clusters, none larger than these" in str(one)
    stated = compare_models(
        Y[few], models, cluster=SITE[few], max_cluster_size=20, measure="decision_risk", threshold=0.3
    )
    assert "none has more than 20 rows" in str(stated)


def test_pairing_tells_apart_what_two_limits_do_not():
    rng = np.random.default_rng(5)
    p = rng.uniform(0.1, 0.9, 5000)
    y = rng.random(5000) < p
    models = {"worse": p + 0.06, "better": p + 0.03}
    paired = compare_models(y, models).differences[0]
    apart = compare_models({name: calibrant.Tally.from_arrays(y, each) for name, each in models.items()}).differences[0]
    assert (paired.verdict, paired.better) == ("worse", "better")
    assert apart.verdict == "not told apart"
    assert paired.where is not None
    assert paired.where.startswith("worse and better differ most on forecasts from ")


def test_verdicts_know_the_margin_and_the_reference():
    found = compare_models(Y, MODELS, measure="brier", margin=0.02, reference="good")
    assert [(each.first, each.second) for each in found.differences] == [("off", "good"), ("coarse", "good")]
    off, coarse = found.differences
    assert off.verdict == "worse"
    assert coarse.non_inferior == ("coarse", "good")
    assert "neither is worse by more than 0.02" in str(found) or coarse.verdict == "worse"
    assert found.difference("coarse", "good") is coarse
    with pytest.raises(KeyError):
        found.difference("good", "off")
    every = compare_models(Y, MODELS, measure="brier")
    assert every.difference("off", "good").upper > off.upper  # one limit of six instead of one of four
    benefit = compare_models(Y, MODELS, measure="net_benefit", threshold=0.3, margin=1.0).differences[0]
    assert (benefit.larger_is_better, benefit.non_inferior) == (True, ("off", "good"))


@pytest.mark.parametrize(
    ("lower", "upper", "margin", "larger", "verdict", "non_inferior"),
    [
        (-0.2, -0.1, None, False, "better", ()),
        (-0.2, -0.1, None, True, "worse", ()),
        (0.1, 0.2, None, False, "worse", ()),
        (0.1, 0.2, 0.3, False, "worse", ("a", "b")),
        (-0.1, 0.2, None, False, "not told apart", ()),
        (-0.1, 0.2, 0.3, False, "non-inferior", ("a", "b")),
        (-0.4, 0.2, 0.3, False, "non-inferior", ("a",)),
        (-0.2, 0.4, 0.3, False, "not told apart", ("b",)),
        (-0.2, 0.4, 0.3, True, "non-inferior", ("a",)),
    ],
)
def test_what_limits_say(lower, upper, margin, larger, verdict, non_inferior):
    found = ModelDifference.between("a", "b", 0.0, (lower, upper), margin=margin, larger_is_better=larger)
    assert (found.verdict, found.non_inferior) == (verdict, non_inferior)
    assert found.better == {"better": "a", "worse": "b"}.get(verdict)
    with pytest.raises(ValueError, match=r"^verdict of this ModelDifference is 'better', while the limits say"):
        ModelDifference("a", "b", 0.0, -0.1, 0.1, "better")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"measure": "auc"}, "^measure must be one of"),
        ({"reference": "none"}, "^reference must be one of"),
        ({"margin": -0.1}, "^margin must be"),
        ({"margin": np.inf}, "^margin is not finite; pass a finite number"),
        ({"measure": "brier", "threshold": 0.3}, "^threshold means nothing for measure='brier'"),
        ({"measure": "brier", "max_error": 0.1}, "^max_error is for calibration errors"),
        ({"measure": "brier", "method": "exact"}, "^method is for calibration errors"),
        ({"measure": "decision_risk"}, "^threshold is missing"),
        ({"measure": "net_benefit", "threshold": 1.0}, "^threshold is 1, where one false positive"),
        ({"measure": "log"}, "^model 'off' forecasts 0 or 1"),
        ({"measure": "brier", "cluster": np.zeros(N)}, "^cluster holds one label only"),
        ({"measure": "brier", "cluster": SITE[:-1]}, "^cluster has 1,499 values for 1,500 rows"),
        ({"measure": "brier", "cluster": [None, *SITE[1:]]}, r"^cluster\[0\] is"),
    ],
)
def test_bad_questions_are_refused(asked, message):
    with pytest.raises(ValueError, match=message):
        compare_models(Y, MODELS, **asked)


def test_scores_need_rows_and_gaps_of_clusters_follow_from_both():
    tallies = {name: calibrant.Tally.from_arrays(Y, each) for name, each in MODELS.items()}
    with pytest.raises(ValueError, match=r"^measure='brier' compares models row by row; pass the outcomes"):
        compare_models(tallies, measure="brier")
    few = slice(0, 300)
    gaps = compare_models(
        Y[few], {"off": MODELS["off"][few], "good": P[few]}, measure="risk_gap", cluster=SITE[few], threshold=0.4
    )
    assert not gaps.differences[0].paired


def test_scores_are_those_of_the_library():
    found = compare_models(Y, MODELS, measure="decision_risk", threshold=[0.3, 0.6])
    for name, forecasts in MODELS.items():
        for limits in found[name].scores:
            risk = calibrant.decision_risk(Y, forecasts, threshold=limits.threshold).risk
            assert limits.estimate == pytest.approx(risk)
    benefit = compare_models(Y, MODELS, measure="net_benefit", cost_false_positive=1, cost_false_negative=3)
    for name, forecasts in MODELS.items():
        assert benefit[name].scores[0].estimate == pytest.approx(
            calibrant.net_benefit(Y, forecasts, threshold=0.25).net_benefit
        )
    assert "a false positive costs 1, a false negative 3" in str(benefit)
    weighted = compare_models(Y, MODELS, measure="brier", sample_weight=W)
    assert weighted["off"].scores[0].estimate == pytest.approx(np.average((Y - MODELS["off"]) ** 2, weights=W))
    loss = compare_models(Y, {"a": P, "b": np.clip(MODELS["off"], 0, 0.99)}, measure="log")
    assert loss["a"].scores[0].estimate == pytest.approx(-np.mean(np.log(np.where(Y == 1, P, 1 - P))))


@pytest.mark.parametrize("cluster", [None, [0, 0, 1, 1, 2, 2, 3, 3]], ids=["rows", "clusters"])
def test_limits_of_scores_are_possible_scores(cluster):
    models = {"a": np.linspace(0.1, 0.9, 8), "b": np.linspace(0.9, 0.1, 8)}
    cases: list[tuple[dict[str, Any], float, float]] = [
        ({"measure": "brier"}, 0.0, 0.9**2),
        ({"measure": "log"}, 0.0, -np.log(0.1)),
        ({"measure": "decision_risk", "threshold": 0.3}, 0.0, 0.7),
        ({"measure": "net_benefit", "threshold": 0.3}, -3 / 7, 1.0),
    ]
    for asked, least, most in cases:
        for each in compare_models([0, 1] * 4, models, cluster=cluster, **asked).models:
            (limits,) = each.scores
            assert least - 1e-12 <= limits.lower <= limits.estimate <= limits.upper <= most + 1e-12


@pytest.mark.parametrize("weight", [None, W[:300]], ids=["rows", "weights"])
@pytest.mark.parametrize("asked", [{}, {"measure": "brier"}, {"measure": "risk_gap", "threshold": 0.4}], ids=str)
def test_clusters_are_named(asked, weight):
    few = slice(0, 300)
    models = {"off": MODELS["off"][few], "good": P[few]}
    found = compare_models(Y[few], models, cluster=SITE[few], sample_weight=weight, **asked)
    expected = calibrant.confidence_interval(Y[few], models["off"], cluster=SITE[few], sample_weight=weight).clusters
    assert found.clusters is not None
    assert expected is not None
    for name in ("count", "largest_share", "deff", "n_eff"):
        assert getattr(found.clusters, name) == pytest.approx(getattr(expected, name))
    assert str(found).count(f"The rows come in {found.clusters} (by the residuals of off).") == 1
    assert found.frame()["clusters"].tolist() == [30, 30]
    assert ModelComparison.from_json(found.to_json()) == found
    independent = compare_models(Y[few], models, sample_weight=weight, **asked)
    assert independent.clusters is None
    assert "clusters" not in independent.frame()


@pytest.mark.parametrize(("asked", "few", "enough"), [({}, 16, 40), ({"measure": "brier"}, 6, 16)], ids=str)
def test_clusters_too_few_to_say_anything_are_cautioned_about(asked, few, enough):
    for count in (few, enough):
        wrong = np.random.default_rng(0).uniform(0.0, 1e-3, 5 * count)
        models = {"wrong": wrong, "right": 1.0 - wrong}
        found = compare_models(np.ones(5 * count), models, cluster=np.repeat(np.arange(count), 5), **asked)
        codes = [getattr(caution, "code", "") for caution in found.cautions]
        assert codes == (["few_clusters"] if count == few else [])
        assert found.differences[0].verdict == ("not told apart" if count == few else "worse")
        assert (f"Caution: {few} clusters, the largest with" in str(found)) == (count == few)


@pytest.mark.parametrize("asked", [{}, {"measure": "brier"}, {"measure": "risk_gap", "threshold": 0.4}], ids=str)
def test_clusters_of_one_row_each_are_independent_rows(asked):
    few = slice(0, 300)
    models = {"off": MODELS["off"][few], "good": P[few]}
    apart = compare_models(Y[few], models, cluster=[f"row {place}" for place in range(300)], **asked)
    independent = compare_models(Y[few], models, **asked)
    assert [note.code for note in apart.notes if isinstance(note, Phrase)] == ["one_row_each"]
    assert "Note: cluster= tells all 300 rows apart" in str(apart)
    assert dataclasses.replace(apart, notes=()) == independent
    stated = compare_models(Y[few], models, cluster=np.arange(300), max_cluster_size=2, **asked)
    assert stated.clusters is not None
    assert stated.clusters.count == 300


def brute_growth(y, own, lost, rate):
    """Return the largest growth over all intervals and signs, one after another."""
    base = -np.log1p(rate * lost).sum()
    best = base
    for low, high in itertools.combinations_with_replacement(np.unique(own), 2):
        inside = (own >= low) & (own <= high)
        for sign in (1.0, -1.0):
            best = max(best, -np.log1p(-rate * (sign * (y - own) * inside - lost)).sum())
    return best


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_growth_is_that_of_the_best_interval(law):
    y, forecasts, _ = law.draw(np.random.default_rng(7), 40)
    rows = rows_of(y, forecasts)
    one, other = (pairs.Ordered.of(rows, name) for name in ("first", "second"))
    everywhere = np.ones(40, dtype=bool)
    lost = one.inside_worst(np.arange(40) < 20, 20.0)
    for rate in (0.05, 0.4):
        growth = pairs._growth_of(other, lost, everywhere)(rate)
        assert growth == pytest.approx(brute_growth(rows.outcome, rows.forecasts["second"], lost, rate))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_many_rows_have_limits_that_are_hardly_wider(law, monkeypatch):
    y, forecasts, _ = law.draw(np.random.default_rng(8), 6000)
    rows = rows_of(y, forecasts)
    few = pairs.cutoff_limits(rows, "first", "second", 0, 0.05)
    monkeypatch.setattr(pairs, "IN_ORDER_BELOW", 0)
    many = pairs.cutoff_limits(rows, "first", "second", 0, 0.05)
    assert many.upper - many.lower <= (2.0 if law is SAME else 1.4) * (few.upper - few.lower)
    assert many.residuals is not None
    np.testing.assert_allclose(
        many.residuals.sum(axis=1), [(rows.outcome - each).sum() for each in rows.forecasts.values()]
    )


def test_bounds_of_many_rows_are_never_below_the_growth():
    rng = np.random.default_rng(9)
    for law in LAWS:
        y, forecasts, _ = law.draw(rng, 300)
        rows = rows_of(y, forecasts)
        cells = pairs._Cells(rows, "first", "second", 0)
        groups = rows.groups(0, FEW_GROUPS)
        for half, worst in zip(cells.halves, cells.worst, strict=True):
            inside = (cells.models[0].cell // pairs._EACH >= worst[0].begin) & (
                cells.models[0].cell // pairs._EACH < worst[0].end
            )
            lost = worst[0].sign * (rows.outcome - rows.forecasts["first"]) * inside
            kept = half.second[groups]
            for rate in (0.02, 0.1, 0.4):
                bound = cells._bound(1, worst[0], half.second).growth(rate)
                exact = pairs._growth_of(pairs.Ordered.of(rows, "second"), lost, kept)(rate)
                assert exact <= bound + 1e-9


def test_halves_are_fair_and_know_no_order():
    rows = rows_of(Y, MODELS)
    counts = np.bincount(rows.groups(0), minlength=8) / N
    assert np.abs(counts - 1 / 8).max() < 5 * np.sqrt(1 / 8 / N)
    assert any(rows.groups(0) != rows.groups(1))
    constant = rows_of(Y, {"a": np.full(N, 0.4), "b": np.full(N, 0.6)})
    tied = np.bincount(constant.groups(0), minlength=8) / N
    assert np.abs(tied - 1 / 8).max() < 5 * np.sqrt(1 / 8 / N)
    clustered = rows_of(Y, MODELS, cluster=SITE)
    assert clustered.codes is not None
    for code in range(10):
        assert len(set(clustered.groups(0)[clustered.codes == code])) == 1
    for half in halves():
        assert half.first.sum() == half.second.sum() == 4


def test_halves_of_many_rows_are_those_of_few(monkeypatch):
    p = np.random.default_rng(12).random(30_000)
    p[:3000] = np.round(p[:3000], 1)
    p[3000:3010] = -0.0
    y = (p > 0.4).astype(float)
    for weight in (None, 1.0 + y):
        rows = rows_of(y, {"a": p, "b": np.sqrt(p), "c": np.round(p, 3)}, weight)
        few = rows.groups(3)
        with monkeypatch.context() as patched:
            patched.setattr(paired, "_MANY_ROWS", 12_000)
            many = rows_of(y, rows.forecasts, weight).groups(3)
        assert few.tolist() == many.tolist()


def test_gaps_of_many_rows_are_those_of_few(monkeypatch):
    y, forecasts, _ = LAWS[3].draw(np.random.default_rng(10), 3000)
    rows = rows_of(y, forecasts)
    few = pair_savings.saving_limits(rows, "first", "second", EVERY_THRESHOLD, 0, 0.05)
    monkeypatch.setattr(pair_savings, "CELLS_FROM_ROWS", 0)
    many = pair_savings.saving_limits(rows, "first", "second", EVERY_THRESHOLD, 0, 0.05)
    assert many == pytest.approx(few, abs=0.01)


def test_means_of_units():
    assert unit_mean_limits(np.zeros(10), None, 0.0, 0.05) == (0.0, 0.0)
    values = RNG.choice([-0.3, 0.0, 0.7], size=30_000)
    one = unit_mean_limits(values, None, 0.7, 0.05)
    distinct, count = np.unique(values, return_counts=True)
    assert unit_mean_limits(distinct, None, 0.7, 0.05, times=count) == pytest.approx(one)
    assert unit_mean_limits(values, np.ones(values.size), 0.7, 0.05) == pytest.approx(one, abs=2e-4)
    assert one[0] < values.mean() < one[1]
    wider = unit_mean_limits(values[:500], np.ones(500), 0.7, 0.05, largest=5.0)
    assert wider[1] - wider[0] > np.diff(unit_mean_limits(values[:500], np.ones(500), 0.7, 0.05))[0]
    turned = unit_mean_limits(-values[:500], None, 0.7, 0.05)
    assert turned == pytest.approx(tuple(-each for each in unit_mean_limits(values[:500], None, 0.7, 0.05)[::-1]))


def test_scores_are_not_followed_by_advice_on_certificates(tmp_path):
    file = write({"y": Y, **MODELS}, tmp_path / "t.csv", "csv")
    named = ("compare", file, "--y-true", "y", "--y-prob", "off", "--y-prob", "good")
    score = ("--measure", "brier")
    assert "Next: calibrant compare --max-error" in call(*named).stdout
    assert "Next: calibrant compare --reference --margin" in call(*named, *score).stdout
    said = call(*named, *score, "--reference", "good", "--margin", 0.5).stdout
    assert "Next: a model with good scores may still be off" in said
    assert "--max-error" not in said


def test_the_command_line_asks_what_python_asks(tmp_path):
    file = write({"y": Y, "site": SITE, **MODELS}, tmp_path / "t.csv", "csv")
    named = ("--y-true", "y", "--y-prob", "off", "--y-prob", "good", "--y-prob", "coarse")
    cases: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (
            ("--measure", "brier", "--margin", 0.02, "--reference", "good"),
            {"measure": "brier", "margin": 0.02, "reference": "good"},
        ),
        (
            ("--measure", "decision_risk", "--threshold", "0.3,0.5"),
            {"measure": "decision_risk", "threshold": [0.3, 0.5]},
        ),
        (("--measure", "brier", "--cluster", "site"), {"measure": "brier", "cluster": SITE}),
    ]
    for options, asked in cases:
        found = compare_models(Y, MODELS, **asked)
        document = answer("compare", file, *named, *options)
        assert document["differences"] == [vars(each) for each in found.differences]
        assert (document["clusters"] is None) == ("cluster" not in asked)
        assert ("The rows come in 150 clusters" in call("compare", file, *named, *options).stdout) == (
            "cluster" in asked
        )
        assert call("compare", file, *named, *options, "--verbose").stdout == f"{found}\n"
    for models, margin, code in ((named[:-2], 0.0001, 1), (named[:-2], 0.5, 0), (named[:2] + named[4:], 1e-9, 3)):
        options = ("--measure", "brier", "--reference", "good", "--margin", margin)
        assert call("compare", file, *models, *options).exit_code == code
    for options, message in (
        (("--measure", "brier", "--threshold", 0.3), "--threshold is for --measure risk_gap"),
        (("--measure", "net_benefit"), "--measure net_benefit needs --threshold"),
        (("--reference", "none"), "--reference 'none' is none of the models"),
        (("--threshold", "a"), "neither a threshold"),
        (
            ("--measure", "net_benefit", "--threshold", "0.2:0.4"),
            "--threshold 0.2:0.4 is a range, which means something for --measure risk_gap only; name several "
            "thresholds with commas, as in 0.2,0.4",
        ),
        (("--measure", "decision_risk", "--threshold", "0.2:0.4"), "--threshold 0.2:0.4 is a range"),
        (("--measure", "risk_gap", "--threshold", "0.2,0.4"), "or about a range, as in 0.2:0.4"),
        (("--margin", "inf"), "not finite"),
    ):
        refused = call("compare", file, *named, *options)
        assert refused.exit_code == 2
        assert message in refused.stderr
    other = write({"y": Y, "p": P}, tmp_path / "u.csv", "csv")
    refused = call("compare", file, other, "--y-true", "y", "--measure", "brier")
    assert refused.exit_code == 2


def test_a_stated_size_of_clusters_counts_rows_without_weights():
    p = np.linspace(0.1, 0.9, 40)
    options: dict[str, Any] = {"cluster": np.arange(40) // 4, "max_cluster_size": 5, "measure": "brier"}
    assert compare_models(p > 0.5, {"a": p, "b": p**2}, **options).differences
    with pytest.raises(ValueError, match="max_cluster_size counts rows, and was given together with sample_weight"):
        compare_models(p > 0.5, {"a": p, "b": p**2}, sample_weight=p, **options)

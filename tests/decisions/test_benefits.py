"""Net benefit with limits: against sums over rows, the sandwich of each row, and resamples; and what is refused."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from scipy.stats import t as t_law

import calibrant
from calibrant.core.errors import InputError, UndefinedError

net_benefit: Any = calibrant.net_benefit  # numbers are floats or arrays, as was asked
decision_curve: Any = calibrant.decisions.decision_curve

AT = np.array([0.05, 0.2, 0.4])
Z = norm.ppf(0.975)
NUMBERS = ("net_benefit", "treat_all", "gain", "standardized", "interventions_avoided")


def sample(n=600, seed=0):
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(1.2, 4.0, n), 2)
    y = (rng.random(n) < p).astype(int)
    return y, p, rng.integers(1, 4, n).astype(float), rng.integers(0, n // 5, n)


def influences(y, p, w, t, prevalence=None):
    """What each row adds to net benefit, treating all, their difference and the standardised one, by definition."""
    acts, odds, mean = p >= t, t / (1 - t), np.average(y, weights=w)
    if prevalence is None:
        benefit, everybody = acts * (y - odds * (1 - y)), y - odds * (1 - y)
        nb = np.average(benefit, weights=w)
        standard = (benefit - nb / mean * y) / mean
    else:
        found, vain = np.average(acts, weights=w * y), np.average(acts, weights=w * (1 - y))
        benefit = prevalence * y * (acts - found) / mean
        benefit = benefit - (1 - prevalence) * odds * (1 - y) * (acts - vain) / (1 - mean)
        everybody, standard = np.zeros(y.size), benefit / prevalence
    return benefit, everybody, benefit - everybody, standard


def standard_error(influence, weight, clusters=None):
    """The standard error of a number whose first-order error is the weighted mean of what each row adds to it."""
    share = weight / weight.sum()
    added = share * (influence - share @ influence)
    added = added if clusters is None else np.bincount(clusters, weights=added)
    return np.sqrt(added @ added)


@pytest.mark.parametrize("prevalence", [None, 0.05])
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_limits_by_the_delta_method_are_those_of_the_influence_of_each_row(weighted, clustered, prevalence):
    y, p, w, cluster = sample()
    given = {"sample_weight": w if weighted else None, "cluster": cluster if clustered else None}
    found = net_benefit(y, p, thresholds=AT, confidence_level=0.95, prevalence=prevalence, **given)
    codes = np.unique(cluster, return_inverse=True)[1] if clustered else None
    weight = w if weighted else np.ones(y.size)
    few = 1.0 if codes is None else codes.max() + 1.0
    reach = Z if codes is None else t_law.ppf(0.975, few - 1.0) * np.sqrt(few / (few - 1.0))
    for k, t in enumerate(AT):
        benefit, everybody, over, standard = (
            reach * standard_error(each, weight, codes) for each in influences(y, p, weight, t, prevalence)
        )
        centre, base = found.net_benefit[k], found.treat_all[k]
        assert found.net_benefit_lower[k] == pytest.approx(centre - benefit, abs=1e-12)
        assert found.net_benefit_upper[k] == pytest.approx(centre + benefit, abs=1e-12)
        assert found.treat_all_upper[k] == pytest.approx(base + everybody, abs=1e-12)
        assert found.standardized_lower[k] == pytest.approx(found.standardized[k] - standard, abs=1e-12)
        avoided = 100 * (1 - t) / t
        assert found.interventions_avoided[k] == pytest.approx(avoided * (centre - base), abs=1e-9)
        assert found.interventions_avoided_upper[k] == pytest.approx(avoided * (centre - base + over), abs=1e-9)
        assert found.gain[k] == pytest.approx(centre - max(base, 0.0), abs=1e-12)
        assert found.gain_lower[k] == pytest.approx(min(centre - benefit, centre - base - over), abs=1e-12)
        assert found.gain_upper[k] == pytest.approx(min(centre + benefit, centre - base + over), abs=1e-12)
    assert found.clusters == (None if codes is None else codes.max() + 1)
    assert found.rows == y.size


def test_a_prevalence_stands_in_for_the_event_rate():
    y, p, _, _ = sample()
    found = net_benefit(y, p, thresholds=AT, prevalence=0.03)
    for k, t in enumerate(AT):
        odds = t / (1 - t)
        sensitivity, false_alarms = (p[y == 1] >= t).mean(), (p[y == 0] >= t).mean()
        assert found.net_benefit[k] == pytest.approx(0.03 * sensitivity - 0.97 * odds * false_alarms)
        assert found.treat_all[k] == pytest.approx(0.03 - 0.97 * odds)
        assert found.standardized[k] == pytest.approx(found.net_benefit[k] / 0.03)
    assert found.event_rate == 0.03
    own = net_benefit(y, p, thresholds=AT)
    as_is = net_benefit(y, p, thresholds=AT, prevalence=float(y.mean()))
    np.testing.assert_allclose(as_is.net_benefit, own.net_benefit)
    # Twice as many controls: the same study of the same disease.
    twice = np.append(y, y[y == 0]), np.append(p, p[y == 0])
    np.testing.assert_allclose(net_benefit(*twice, thresholds=AT, prevalence=0.03).net_benefit, found.net_benefit)


@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"clustered": True}, {"prevalence": 0.05}], ids=repr)
def test_resamples_agree_with_the_delta_method_on_many_rows(options):
    y, p, w, cluster = sample(3000)
    asked = {
        "thresholds": AT,
        "confidence_level": 0.9,
        "band": True,
        "sample_weight": w if options.get("weighted") else None,
        "cluster": cluster if options.get("clustered") else None,
        "prevalence": options.get("prevalence"),
    }
    drawn = net_benefit(y, p, interval="bootstrap", n_resamples=400, **asked)
    normal = net_benefit(y, p, **asked)
    assert (drawn.n_resamples, normal.n_resamples) == (400, None)
    for name in (*NUMBERS, "band", "gain_band"):
        ends = [(getattr(each, f"{name}_lower"), getattr(each, f"{name}_upper")) for each in (drawn, normal)]
        wide = np.maximum(np.subtract(ends[1][1], ends[1][0]), 1e-9)
        assert np.max(np.abs(np.subtract(ends[0], ends[1])) / wide) < 0.2, name


def test_a_band_holds_the_limits_of_each_threshold_and_is_theirs_for_one():
    y, p, _, _ = sample()
    found = net_benefit(y, p, confidence_level=0.95, band=True)
    assert (found.band_lower <= found.net_benefit_lower + 1e-12).all()
    assert (found.gain_band_upper >= found.gain_upper - 1e-12).all()
    one = net_benefit(y, p, threshold=0.2, confidence_level=0.95, band=True)
    assert one.band_lower == pytest.approx(one.net_benefit_lower, abs=5e-4)  # 10,000 draws of normal errors
    reach = []
    for at in ([0.2, 0.21], [0.05, 0.5]):
        found = net_benefit(y, p, thresholds=at, confidence_level=0.95, band=True)
        reach.append(np.max((found.band_upper - found.net_benefit) / (found.net_benefit_upper - found.net_benefit)))
    assert 1.0 < reach[0] < reach[1] < 1.3  # neighbours err alike


def test_what_no_row_shows_has_the_limits_of_a_share_never_seen():
    y, p = np.array([0, 1] * 50), np.tile([0.1, 0.3], 50)
    unseen = 1 - 0.025 ** (1 / 100)
    above = net_benefit(y, p, threshold=0.5, confidence_level=0.95)
    assert (above.net_benefit, above.net_benefit_lower, above.net_benefit_upper) == pytest.approx((0, -unseen, unseen))
    assert above.notes == ("from threshold 0.5 up fewer than 10 rows are acted on: limits there are approximate",)
    below = net_benefit(y, p, threshold=0.05, confidence_level=0.95)
    assert below.interventions_avoided == 0.0
    assert below.interventions_avoided_lower == pytest.approx(-100 * 19 * unseen)
    assert below.gain_upper == pytest.approx(unseen / 19)
    assert below.notes == (
        "up to threshold 0.05 fewer than 10 events are left alone: limits of the gain over treating all, and of "
        "interventions avoided, are approximate there",
    )
    together = net_benefit(y, p, threshold=0.05, confidence_level=0.95, cluster=np.arange(100) // 2)
    assert "fewer than 10 clusters with events are left alone" in together.notes[0]
    sure = net_benefit(y, p, threshold=0.0, confidence_level=0.95)
    assert (sure.gain_lower, sure.gain, sure.gain_upper) == (0.0, 0.0, 0.0)
    resampled = net_benefit(y, p, threshold=0.5, confidence_level=0.95, interval="bootstrap", n_resamples=50)
    assert resampled.net_benefit_upper == pytest.approx(unseen)


def test_few_events_left_alone_are_noted_by_their_number_and_not_by_their_weight():
    p = np.repeat([0.1, 0.3, 0.6], 40)
    y = np.tile([0, 0, 0, 1], 30)  # ten events at each forecast
    asked = {"thresholds": [0.0, 0.2, 0.5], "confidence_level": 0.95}
    assert net_benefit(y, p, **asked).notes == ()
    y[3] = 0
    for weight in (None, np.full(120, 7.0), np.linspace(5, 6, 120)):
        assert "up to threshold 0.2 fewer than 10 events" in net_benefit(y, p, sample_weight=weight, **asked).notes[0]
    clusters = np.arange(120) // 4  # an event in each, but for one
    assert "up to threshold 0.2 fewer than 10 clusters" in net_benefit(y, p, cluster=clusters, **asked).notes[0]
    y[2] = 1
    assert net_benefit(y, p, cluster=clusters, **asked).notes == ()


def test_resamples_without_events_leave_the_standardized_benefit_alone_without_limits():
    y, p = np.zeros(60), np.linspace(0.01, 0.6, 60)
    y[[30, 50]] = 1
    asked: dict[str, Any] = {"thresholds": [0.1, 0.2], "confidence_level": 0.95, "interval": "bootstrap"}
    found = net_benefit(y, p, **asked)
    assert found.standardized is not None
    assert (found.standardized_lower, found.standardized_upper) == (None, None)
    assert (found.net_benefit_lower < found.net_benefit).all()
    assert "standardized net benefit has no limits" in found.notes[-1]
    y[:40:2] = 1
    many = net_benefit(y, p, **asked)
    assert (many.standardized_lower < many.standardized_upper).all()
    both = calibrant.decisions.DecisionCurve(("few", "many"), (found, many)).frame()
    assert both["standardized_lower"].isna().tolist() == [True, True, False, False]
    drawn: Any = calibrant.displays.DecisionCurveDisplay.from_predictions(
        np.where(np.arange(60) % 30 == 20, 1, 0), {"a": p, "b": np.sqrt(p)}, quantity="standardized", **asked
    )
    assert drawn.bands_ == []


def test_censored_rows_are_counted_and_said():
    rng = np.random.default_rng(3)
    p = rng.beta(1.5, 3, 400)
    time, left = -np.log(rng.random(400)) / -np.log1p(-p), rng.exponential(1.5, 400)
    rows = calibrant.horizon(np.minimum(time, left), time <= left, p, at=1.0)
    unknown = np.count_nonzero(rows.sample_weight == 0)
    asked: dict[str, Any] = {"threshold": 0.3, "confidence_level": 0.95}
    drawn: dict[str, Any] = {"interval": "bootstrap", "n_resamples": 50}
    together = net_benefit(rows, **asked, cluster=np.arange(400) // 2)
    for found in (together, net_benefit(rows, **asked), net_benefit(rows, **asked, **drawn)):
        assert found.rows == 400
        assert f"{unknown} of 400 rows were censored before 1" in str(found)
    assert together.clusters == 200
    few = net_benefit(rows, **asked, cluster=np.arange(400) // 25, **drawn)
    assert "resamples of 16 clusters vary too little" in few.notes[-1]
    # Censored rows move the weights of others: limits are not those of weights that were fixed beforehand.
    moved, fixed = (net_benefit(each, **asked) for each in (rows, rows.fixed()))
    assert moved.net_benefit == fixed.net_benefit
    assert abs(moved.net_benefit_lower - fixed.net_benefit_lower) > 1e-4
    again = net_benefit(rows, interval="bootstrap", **asked)
    wide = moved.net_benefit_upper - moved.net_benefit_lower
    assert wide == pytest.approx(again.net_benefit_upper - again.net_benefit_lower, rel=0.1)


def test_rows_weights_and_tallies_say_the_same():
    y, p, w, cluster = sample(300)
    asked = {"thresholds": AT, "confidence_level": 0.95, "band": True}
    base = net_benefit(y, p, **asked)
    order = np.random.default_rng(3).permutation(y.size)
    assert net_benefit(y[order], p[order], **asked) == base
    tallied = net_benefit(calibrant.Tally.from_arrays(y, p), **asked)
    scaled = net_benefit(y, p, sample_weight=np.full(y.size, 7.0), **asked)
    alone = net_benefit(y, p, cluster=np.arange(y.size), **asked)
    wider = t_law.ppf(0.975, 299) / Z * np.sqrt(300 / 299)  # as clusters of one row each, 300 are taken for few
    for name in (*NUMBERS, "band"):
        for other in (tallied, scaled):
            np.testing.assert_allclose(getattr(other, f"{name}_lower"), getattr(base, f"{name}_lower"), atol=1e-12)
        below = [
            getattr(each, "net_benefit" if name == "band" else name) - getattr(each, f"{name}_lower")
            for each in (base, alone)
        ]
        np.testing.assert_allclose(below[1], wider * below[0], rtol=0.02 if name == "band" else 1e-9, atol=1e-12)
    drawn = {"interval": "bootstrap", "n_resamples": 50, "sample_weight": w, **asked}
    assert net_benefit(y[order], p[order], **{**drawn, "sample_weight": w[order]}) == net_benefit(y, p, **drawn)
    # A weight of 2 counts a row twice in the number; a row listed twice in one cluster is known once.
    weighted = net_benefit(y, p, sample_weight=w, cluster=cluster, **asked)
    again = np.repeat(np.arange(y.size), w.astype(int))
    repeated = net_benefit(y[again], p[again], cluster=cluster[again], **asked)
    for name in NUMBERS:
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), atol=1e-12)
        np.testing.assert_allclose(getattr(weighted, f"{name}_lower"), getattr(repeated, f"{name}_lower"), atol=1e-10)


def test_fractional_outcomes_count_as_parts_of_events():
    y, p, w, _ = sample(200)
    chance = 0.8 * y + 0.1
    found = net_benefit(chance, p, threshold=0.2, confidence_level=0.95, sample_weight=w)
    benefit = influences(chance, p, w, 0.2)[0]
    assert found.net_benefit == pytest.approx(np.average(benefit, weights=w))
    assert found.net_benefit_upper - found.net_benefit == pytest.approx(Z * standard_error(benefit, w))


def test_models_may_be_columns_of_a_frame_and_forecasts_for_the_same_censored_rows():
    y, p, _, _ = sample(200)
    models = {"old": p**2, "new": p}  # which add up to nothing that classes would
    assert decision_curve(y, pd.DataFrame(models)) == decision_curve(y, models)
    rows = calibrant.horizon(np.arange(1.0, 201.0), y, p, at=150.0)
    each = {name: rows.with_forecasts(held) for name, held in models.items()}
    assert decision_curve(rows, models) == decision_curve(each)
    with pytest.raises(InputError, match=r"^y_prob has 3 values for 200 rows"):
        decision_curve(rows, {"short": p[:3]})


def test_several_models_share_outcomes_and_thresholds():
    y, p, _, _ = sample()
    curve = decision_curve(y, {"good": p, "constant": np.full(y.size, y.mean())}, confidence_level=0.95)
    assert curve["good"] == net_benefit(y, p, confidence_level=0.95)
    assert curve.thresholds.tolist() == (np.arange(36) / 100).tolist()
    assert set(curve.best()) <= {"good", "constant", "treat all", "treat none"}
    assert len(curve.frame()) == 72
    assert list(curve.frame()["model"][[0, 36]]) == ["good", "constant"]
    assert "good: net benefit at 36 thresholds" in str(curve)
    tallies = {name: calibrant.Tally.from_arrays(y, each) for name, each in (("a", p), ("b", np.sqrt(p)))}
    assert decision_curve(tallies, thresholds=AT)["a"] == decision_curve(tallies["a"], thresholds=AT)["model"]
    around = decision_curve(y, p, threshold=0.1)
    assert (around.threshold, 0.1 in around.thresholds.tolist()) == (0.1, True)
    assert around.thresholds[[0, -1]] == pytest.approx([1 / 37, 4 / 13])
    assert decision_curve(y, p, threshold=0.1, thresholds=[0.2, 0.3]).thresholds.tolist() == [0.1, 0.2, 0.3]


def test_words_say_where_the_forecasts_surely_help():
    y, p, _, _ = sample(3000)
    one = str(net_benefit(y, p, threshold=0.2, confidence_level=0.95))
    assert " per row (95% limits " in one
    assert " The forecasts add " in one
    by_itself = str(net_benefit(y, p, confidence_level=0.95))
    together = str(net_benefit(y, p, confidence_level=0.95, band=True))
    assert "what forecasts add to the better of the two, at each threshold by itself, lie above 0 at " in by_itself
    assert "what forecasts add to the better of the two, at all thresholds together, lie above 0 at " in together


ROWS = ([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: net_benefit(*ROWS, threshold=0.2, thresholds=0.3), r"^thresholds was given together with threshold"),
        (lambda: net_benefit(*ROWS, thresholds=[0.5, 1.0]), r"^thresholds is 1, .*keep it below 1"),
        (lambda: net_benefit(*ROWS, band=True), r"^band needs confidence_level"),
        (lambda: net_benefit(*ROWS, band=1, confidence_level=0.9), r"^band must be True or False"),
        (lambda: net_benefit(*ROWS, interval="wald"), r"^interval must be one of 'delta', 'bootstrap'"),
        (lambda: net_benefit(*ROWS, prevalence=0.0), r"^prevalence is 0, and must lie between 0 and 1"),
        (lambda: net_benefit(*ROWS, prevalence=7), r"^prevalence"),
        (lambda: net_benefit([0, 0], [0.1, 0.2], prevalence=0.1), "outcomes of these rows are all 0, and a prevalence"),
        (lambda: net_benefit([1, 1], [0.1, 0.2], confidence_level=0.9), "outcomes of these rows are all 1, and say"),
        (lambda: net_benefit([1], [0.1], confidence_level=0.9), "outcomes of these rows are all 1, and say"),
        (lambda: net_benefit(*ROWS, cluster=[1] * 4, confidence_level=0.9), "all rows are in one cluster"),
        (lambda: net_benefit(*ROWS, n_resamples=5, confidence_level=0.9), r"^n_resamples is 5, too few"),
        (lambda: net_benefit(*ROWS, thresholds=np.linspace(0, 0.9, 1001), confidence_level=0.9), "more than the 1,000"),
        (lambda: net_benefit([], []), "empty"),
        (lambda: net_benefit([0, np.nan], [0.1, 0.2]), r"^y_true\[1\] is missing"),
        (lambda: decision_curve(*ROWS, threshold=[0.1, 0.2]), r"^threshold has 2 values .*pass them as thresholds"),
        (lambda: decision_curve(*ROWS, threshold=0.0), r"^threshold is 0, and the curve around it"),
        (lambda: decision_curve(ROWS[0], {}), r"^y_prob is an empty dict"),
        (lambda: decision_curve({"a": calibrant.Tally.from_arrays(*ROWS)}, ROWS[1]), r"^y_prob was given together"),
        (lambda: decision_curve({"a": ROWS[1]}), r"^y_true\['a'\] is a list"),
    ],
)
def test_what_cannot_be_answered_is_refused(call, message):
    with pytest.raises((InputError, UndefinedError), match=message):
        call()


def test_totals_of_weighted_rows_have_numbers_and_no_limits():
    y, p, w, _ = sample(100)
    halves = [calibrant.Tally.from_arrays(y[s], p[s], sample_weight=w[s]) for s in (slice(50), slice(50, None))]
    assert net_benefit(sum(halves[1:], halves[0]), threshold=0.2, confidence_level=0.9).net_benefit_lower is not None
    no_rows = replace(halves[0], listed=None)
    assert net_benefit(no_rows, threshold=0.2).net_benefit == net_benefit(halves[0], threshold=0.2).net_benefit
    for interval in ("delta", "bootstrap"):
        with pytest.raises(UndefinedError, match=r"^totals of weighted rows, or of fractional outcomes, do not tell"):
            net_benefit(no_rows, threshold=0.2, confidence_level=0.9, interval=interval)


def test_constant_and_separated_forecasts_have_limits():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for p in (np.full(40, 0.2), np.tile([0.0, 1.0], 20)):
            found = net_benefit(np.tile([0, 1], 20), p, confidence_level=0.95, band=True, interval="bootstrap")
            assert np.isfinite(found.gain_band_lower).all()
            found = net_benefit(np.tile([0, 1], 20), p, confidence_level=0.95, band=True)
            assert (found.band_lower <= found.net_benefit).all()

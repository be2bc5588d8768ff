"""Certificates over thresholds and PIT values: computed by brute force, and what must not matter."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm, poisson
from threshold_cases import drawn, largest_growth, share_up_to, steps_of

import calibrant
from calibrant import InputError, pit_calibration, threshold_calibration_error
from calibrant.certificates import certify_thresholds
from calibrant.certificates.betting import bet_exponent, rates_between
from calibrant.certificates.pit import kuiper, kuiper_lower_margin, pit_margin
from calibrant.certificates.thresholds import _rates, threshold_upper
from calibrant.core.chernoff import chernoff_interval
from calibrant.rows.distributions import check_distributions

DELTA = 0.05


def pairs_by_hand(z, forecast_at, thresholds=None):
    """Means over pairs of F (1 - F) and of squared residuals at the threshold that another row's outcome names."""
    spread, square, rows = 0.0, 0.0, len(z)
    for other in range(rows):
        t = z[other]
        if thresholds is not None:
            t = min((each for each in thresholds if each >= t), default=max(thresholds))
        forecast = forecast_at(t)
        kept = np.arange(rows) != other
        spread += float((forecast * (1.0 - forecast))[kept].sum())
        square += float((((z <= t) - forecast) ** 2)[kept].sum())
    return spread / (rows * (rows - 1)), square / (rows * (rows - 1))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("thresholds", [None, [1.0, 2.5], [-3.0], [0.0, 9.0]])
def test_rates_follow_from_pairs_of_rows(seed, thresholds):
    z, ensemble = drawn(np.random.default_rng(seed), 11, 4)
    forecast_at = share_up_to(ensemble)
    by_hand = pairs_by_hand(z, forecast_at, thresholds)
    asked, _ = check_distributions(z, ensemble, None, None).at("all" if thresholds is None else thresholds)
    assert asked.spreads() == pytest.approx(by_hand, abs=1e-10)
    if thresholds is not None:
        functions, _ = check_distributions(z, None, None, forecast_at).at(thresholds)
        assert functions.spreads() == pytest.approx(by_hand, abs=1e-10)
    each = DELTA * 0.02 / 4
    ends = [
        np.array(chernoff_interval(scale * mean * 5, each)) / scale for scale, mean in zip((4, 1), by_hand, strict=True)
    ]
    expected = rates_between(ends[0] * 11 / 5, ends[1] * 11 / 5, 11, DELTA)
    np.testing.assert_allclose(_rates(asked, DELTA), expected, rtol=1e-9)


@pytest.mark.parametrize(("rows", "members", "seed"), [(1, 2, 0), (6, 1, 1), (9, 3, 2), (12, 4, 3)])
def test_the_upper_limit_by_brute_force(rows, members, seed):
    z, ensemble = drawn(np.random.default_rng(seed), rows, members)
    steps = steps_of(z, ensemble)
    forecast_at = share_up_to(ensemble)
    expected, thresholds = 0.0, np.unique(np.append(z, ensemble))
    for rate in _rates(steps, DELTA).tolist():
        growth = max(largest_growth((z <= t) - forecast_at(t), forecast_at(t), rate) for t in thresholds)
        expected = max(expected, -math.expm1(-(growth + bet_exponent(DELTA)) / rows) / rate)
    assert threshold_upper(steps, DELTA) == pytest.approx(min(expected, 1.0), abs=1e-12)
    functions, _ = check_distributions(z, None, None, forecast_at).at(thresholds)
    assert threshold_upper(functions, DELTA) == pytest.approx(min(expected, 1.0), abs=1e-12)


def test_a_list_and_all_thresholds_agree_where_the_list_has_all():
    z, ensemble = drawn(np.random.default_rng(0), 60, 3)
    asked: dict[str, Any] = {"max_error": 0.3, "rng": 3}
    one = certify_thresholds(z, ensemble=ensemble, **asked)
    other = certify_thresholds(z, ensemble=ensemble, thresholds=range(5), **asked)
    third = certify_thresholds(z, cdf=share_up_to(ensemble), thresholds=range(5), **asked)
    assert one.upper == other.upper == pytest.approx(third.upper, abs=1e-12)
    assert one.estimate == other.estimate == pytest.approx(third.estimate, abs=1e-12)
    assert one.lower == other.lower


@pytest.mark.parametrize("places", [4, 10**6])
def test_the_order_of_rows_and_members_plays_no_part(places):
    rng = np.random.default_rng(5)
    z, ensemble = drawn(rng, 80, 4, places=places)
    z = z + places / 4.0
    one = certify_thresholds(z, ensemble=ensemble, max_error=0.05)
    order = rng.permutation(80)
    other = certify_thresholds(z[order], ensemble=rng.permuted(ensemble, axis=1)[order], max_error=0.05)
    assert one == other
    assert one.lower > 0.0
    pit = pit_calibration(z, ensemble=ensemble)
    assert pit_calibration(z[order], ensemble=rng.permuted(ensemble, axis=1)[order]) == pit
    function: dict[str, Any] = {"cdf": share_up_to(ensemble), "thresholds": [1.0, 2.0, 3.0]}
    turned: dict[str, Any] = {"cdf": share_up_to(ensemble[order]), "thresholds": [1.0, 2.0, 3.0]}
    assert certify_thresholds(z, max_error=0.1, **function) == certify_thresholds(z[order], max_error=0.1, **turned)


def test_other_seeds_draw_other_halves_and_the_same_seed_the_same():
    z, ensemble = drawn(np.random.default_rng(1), 200, 4)
    one, two, again = (certify_thresholds(z + 1.0, ensemble=ensemble, max_error=0.1, rng=seed) for seed in (1, 2, 1))
    assert one == again
    assert one.lower != two.lower
    assert one.upper == two.upper


def test_verdicts_and_their_words():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=3000)
    z = mean + rng.normal(size=3000)
    levels = np.arange(1, 20) / 20
    good = certify_thresholds(z, quantiles=(levels, mean[:, None] + norm.ppf(levels)), max_error=0.05)
    assert good
    assert good.verdict == "certified"
    assert good.lower <= good.estimate <= good.upper <= 0.05
    assert str(good).startswith(
        "Certified: with 95% confidence the threshold calibration error of the population is at most 0.05. At any "
        "threshold no interval of forecasts is off by more than 5 per 100 rows."
    )
    assert good.cautions == ()
    bad = certify_thresholds(
        z + 0.6, cdf=lambda t: norm.cdf(t - mean), thresholds=np.linspace(-2, 2, 9), max_error=0.05
    )
    assert bad.verdict == "refuted"
    assert not bad
    assert bad.worst_interval.direction == "too high"
    assert "At some listed threshold an interval of forecasts is off" in str(bad)
    few = certify_thresholds(z[:30], ensemble=z[:30, None], max_error=0.05)
    assert few.verdict == "undecided"
    assert str(few).startswith("Undecided: these rows do not show whether")
    for each in (good, bad, few):
        assert all(len(line.split(". ")[0].split()) <= 30 for line in str(each).split("\n")[:1])
        assert "rule them out pass" in each.notes[0]
    wide = certify_thresholds(z[:30], ensemble=z[:30, None], max_error=0.4)
    assert "A limit of 40.0% is wide" in wide.cautions[0]
    assert list(good.frame().columns)[:4] == ["verdict", "estimate", "lower", "upper"]


def test_at_one_threshold_the_limit_is_near_that_of_a_binary_certificate():
    rng = np.random.default_rng(2)
    y_prob = rng.random(2000)
    z = (rng.random(2000) >= y_prob).astype(float)  # 0, that is at most 0, with the probability forecast
    ours = certify_thresholds(z, cdf=lambda _: y_prob, thresholds=[0.0], max_error=0.05)
    binary = calibrant.certify(z == 0.0, y_prob, max_error=0.05)
    assert ours.estimate == pytest.approx(binary.estimate, abs=1e-12)
    assert ours.upper == pytest.approx(binary.upper, rel=0.01)


# --- PIT values -------------------------------------------------------------------------------------------------------


def kuiper_by_hand(values):
    """The largest |share - length| over intervals whose ends are values or 0 and 1, open or closed."""
    ends = sorted({0.0, 1.0, *values})
    found = 0.0
    for place, low in enumerate(ends):
        for high in ends[place:]:
            closed = np.mean((values >= low) & (values <= high))
            inner = np.mean((values > low) & (values < high))
            from_0 = np.mean((values >= low) & (values < high)) if low == 0.0 else inner
            to_1 = np.mean((values > low) & (values <= high)) if high == 1.0 else inner
            found = max(found, *(abs(share - (high - low)) for share in (closed, inner, from_0, to_1)))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_kuiper_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    one, two = rng.uniform(0.4, 3.0, 2).tolist()
    values = rng.beta(one, two, size=int(rng.integers(1, 9)))
    if seed % 3 == 0:
        values = np.round(values, 1)
    found, low, high, sign = kuiper(values)
    assert found == pytest.approx(kuiper_by_hand(values), abs=1e-12)
    pit = pit_calibration(values, cdf=lambda z: z)
    assert (pit.estimate, pit.low, pit.high) == (found, low, high)
    assert sign * (pit.share - (high - low)) == pytest.approx(found, abs=1e-12)


def test_margins_of_pit_values():
    assert pit_margin(200, 0.05) == pytest.approx(math.sqrt(math.log(20) / 400))
    assert kuiper_lower_margin(200, 0.05) == pytest.approx(2 * math.sqrt(math.log(40) / 400))
    found = pit_calibration(np.linspace(0.0, 1.0, 2000) ** 2, cdf=lambda z: z, max_error=0.1)
    assert found.upper == pytest.approx(found.estimate + pit_margin(2000, 0.05))
    assert found.lower == pytest.approx(found.estimate - kuiper_lower_margin(2000, 0.05))
    assert found.verdict == "refuted"
    assert not found
    assert str(found).startswith(
        "Refuted: with 95% confidence some interval of PIT values holds a share that is off by"
    )
    assert "PIT values between 0.2" in str(found)
    assert "are too few: " in str(found)
    good = pit_calibration(np.linspace(0.0, 1.0, 5000), cdf=lambda z: z, max_error=0.1)
    assert good
    assert str(good).startswith("Certified:")
    assert str(pit_calibration([0.5], cdf=lambda z: z, max_error=0.1)).startswith("Undecided:")
    assert str(pit_calibration([0.5], cdf=lambda z: z)).startswith("How far PIT values are from uniform.")
    assert list(good.frame().columns) == ["low", "high", "share"]


def test_exchangeable_members_have_uniform_pit_values_and_ties_too():
    rng = np.random.default_rng(0)
    for places in (3, 10**9):  # with ties, and without
        table = rng.integers(0, places, (4000, 6)).astype(float)
        found = pit_calibration(table[:, 0], ensemble=table[:, 1:])
        assert found.randomised
        assert found.lower == 0.0
        assert found.estimate < 0.03
    # One quantile more often below than it says.
    mean = rng.normal(size=4000)
    levels = np.array([0.1, 0.5, 0.9])
    values = mean[:, None] + norm.ppf([0.1, 0.7, 0.9])
    found = pit_calibration(mean + rng.normal(size=4000), quantiles=(levels, values))
    assert found.estimate == pytest.approx(0.2, abs=0.03)
    assert min(abs(found.low - 0.5), abs(found.high - 0.5)) < 0.01  # where the step is


def test_outcomes_that_equal_quantiles_have_no_verdict():
    # No rain with probability 0.31, an exponential amount otherwise: true deciles, of which three are 0.
    rng = np.random.default_rng(0)
    z = np.where(rng.random(20_000) < 0.31, 0.0, rng.exponential(size=20_000))
    levels = np.arange(1, 10) / 10
    deciles = np.tile(-np.log(np.minimum(1.0, (1.0 - levels) / 0.69)), (z.size, 1))
    dry = int((z == 0.0).sum())
    with pytest.raises(ValueError, match=r"right forecasts could be refuted.* pass cdf= with cdf_before=") as caught:
        pit_calibration(z, quantiles=(levels, deciles), max_error=0.03)
    assert f"max_error asks for a verdict, and in {dry:,} rows (the first is row {int(z.argmin())}" in str(caught.value)
    found = pit_calibration(z, quantiles=(levels, deciles))
    assert found.verdict is None
    assert f"In {dry:,} rows the outcome equals a quantile of the row." in str(found)

    def cdf(amount):
        return 1.0 - 0.69 * np.exp(-amount)

    told = pit_calibration(z, cdf=cdf, cdf_before=lambda a: np.where(a > 0.0, cdf(a), 0.0), max_error=0.03)
    assert told.verdict == "certified"
    # Without ties nothing is withheld, and members may tie.
    wet = z[z > 0.0]
    apart = np.tile(-np.log(1.0 - levels), (wet.size, 1))
    assert len(pit_calibration(wet, quantiles=(levels, apart), max_error=0.03).notes) == 1
    assert pit_calibration(z, ensemble=rng.permutation(z)[:, None], max_error=0.1).verdict == "certified"


def test_counts_have_pit_values_between_two_functions():
    rng = np.random.default_rng(0)
    rate = rng.uniform(0.5, 4.0, 4000)
    z = rng.poisson(rate)
    found = pit_calibration(z, cdf=lambda k: poisson.cdf(k, rate), cdf_before=lambda k: poisson.cdf(k - 1, rate))
    assert found.estimate < 0.03
    assert found.randomised
    alone = pit_calibration(z, cdf=lambda k: poisson.cdf(k, rate))
    assert alone.estimate > 0.1
    assert not alone.randomised


# --- What neither says about the other --------------------------------------------------------------------------------


def test_uniform_pit_values_with_a_large_threshold_error():
    # Outcomes are uniform on [0, 1]. One half of the rows is told "uniform on [0, 2]", the other "uniform on [-1, 1]":
    # their PIT values fill [0, 1/2] and [1/2, 1] evenly.
    z = np.tile((np.arange(2000) + 0.5) / 2000, 2)
    low = np.repeat([0.0, -1.0], 2000)

    def cdf(t):
        return np.clip((t - low) / 2.0, 0.0, 1.0)

    pit = pit_calibration(z, cdf=cdf)
    assert pit.estimate < 0.001
    found = threshold_calibration_error(z, cdf=cdf, thresholds=[0.25, 0.5, 1.0])
    assert found.error == pytest.approx(0.25, abs=1e-3)
    assert found.threshold == 1.0


def test_no_threshold_error_with_pit_values_that_are_not_uniform():
    # Outcomes 1, 2, 3. Forecasts P(Z <= 1), P(Z <= 2) of (1/4, 1/2) and (1/4, 3/4), half of the rows each; the truth is
    # (1/2, 1/2) and (0, 3/4). At 1 both say 1/4, which is right for both together; at 2 each is right.
    z = np.array([1, 1, 3, 3, 2, 2, 2, 3] * 2)
    second = np.tile(np.repeat([0.5, 0.75], 4), 2)

    def cdf(t):
        t = np.broadcast_to(t, 16)
        return np.where(t < 1, 0.0, np.where(t < 2, 0.25, np.where(t < 3, second, 1.0)))

    assert threshold_calibration_error(z, cdf=cdf, thresholds=[0.0, 1.0, 2.0, 3.0]).error == 0.0
    # The law of U has density 1, 3/4, 5/4, 1 on the four quarters.
    below, above = cdf(z - 1), cdf(z)
    u = (below + (above - below) * (np.arange(4000)[:, None] + 0.5) / 4000).ravel()
    assert kuiper(u)[0] == pytest.approx(1 / 16, abs=1e-3)
    many = pit_calibration(
        np.tile(z, 500),
        cdf=lambda t: np.tile(cdf(t[:16]), 500),
        cdf_before=lambda t: np.tile(cdf(t[:16] - 1), 500),
    )
    assert many.lower > 0.01


@pytest.mark.parametrize("alone", [lambda k: [[0.2, 1.0][int(k)]] * 3, lambda t: [0.5 if t < 1.0 else 1.0] * 3])
def test_functions_of_one_threshold_are_told_that_outcomes_come_at_once(alone):
    with pytest.raises(InputError, match=r"cdf fails for an array of 3 .* all outcomes at once") as told:
        pit_calibration([0.0, 1.0, 1.0], cdf=alone)
    assert isinstance(told.value.__cause__, (TypeError, ValueError))
    with pytest.raises(InputError, match="cdf_before fails for an array of 3 outcomes"):
        pit_calibration([0.0, 1.0, 1.0], cdf=lambda z: z, cdf_before=alone)

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.stats import beta

from calibrant import Tally, cutoff_calibration_error
from calibrant.certificates import binomial_limits
from calibrant.certificates.betting import adaptive_upper, given_upper
from calibrant.certificates.binomial_limits import binomial_margin, binomial_upper, exact_upper, prefers_bet


def literal_margin(events, non_events, delta):
    """m CP(k, m) - k from scipy.stats, and l where k > m CP - 1: the definition, word for word."""
    rows = events + non_events
    limit = np.where(non_events > 0, rows * beta.isf(delta, events + 1, np.maximum(non_events, 1)), rows)
    return np.where(events > limit - 1, rows, limit) - events


def every_interval(y, p, delta):
    """Try all runs of distinct forecasts, with both signs."""
    y, p = np.asarray(y), np.asarray(p)
    forecasts = np.unique(p)
    rows = np.array([np.sum(p == v) for v in forecasts])
    events = np.array([np.sum(y[p == v]) for v in forecasts])
    prefix = [np.concatenate([[0], np.cumsum(column)]) for column in (events, rows - events, rows * forecasts)]
    begin, end = np.triu_indices(forecasts.size + 1, k=1)
    occurred, absent, expected = (column[end] - column[begin] for column in prefix)
    # Few pairs (events, non-events) are distinct: ask for the limit of each once.
    margin = np.full((y.size + 1, y.size + 1), np.nan)
    margin[occurred, absent] = margin[absent, occurred] = 0.0
    seen, unseen = np.nonzero(margin == 0.0)
    margin[seen, unseen] = literal_margin(seen, unseen, delta)
    above = occurred + margin[occurred, absent] - expected
    below = absent + margin[absent, occurred] - (occurred + absent - expected)
    return max(above.max(), below.max()) / y.size


def draw(rng, rows):
    """Random forecasts, from continuous to a single value, and outcomes that follow them or do not."""
    p = [
        rng.random(rows),
        rng.beta(0.5, 20, rows),
        rng.integers(0, 4, rows) / 3,
        rng.integers(0, 2, rows).astype(float),
        np.round(rng.random(rows), 1),
        np.full(rows, rng.choice([0.0, 0.3, 1.0])),
        0.5 + 1e-9 * rng.random(rows),
    ][rng.integers(7)]
    chance = [p, p**2, np.clip(p + 0.2, 0, 1), np.full(rows, rng.random()), np.zeros(rows), np.ones(rows)]
    return (rng.random(rows) < chance[rng.integers(6)]).astype(int), p


@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.05, 0.1, 0.2, 0.249])
def test_equals_the_largest_of_all_intervals(delta):
    rng = np.random.default_rng([21, round(1e6 * delta)])
    for _ in range(100):
        y, p = draw(rng, rng.choice([1, 2, 3, 5, 8, 9, 20, 63, 64, 65]))
        assert binomial_upper(Tally.from_arrays(y, p), delta) == pytest.approx(every_interval(y, p, delta), rel=2e-12)


@pytest.mark.parametrize("delta", [0.05, 0.2])
@pytest.mark.parametrize("rows", [200, 400])
def test_equals_the_largest_of_all_intervals_on_hundreds_of_rows(rows, delta):
    rng = np.random.default_rng([22, rows, round(100 * delta)])
    for _ in range(12):
        y, p = draw(rng, rows)
        assert binomial_upper(Tally.from_arrays(y, p), delta) == pytest.approx(every_interval(y, p, delta), rel=2e-12)


@pytest.mark.parametrize("kind", ["uniform", "rare"])
def test_equals_the_largest_of_all_intervals_on_3000_rows(kind):
    rng = np.random.default_rng(23)
    p = rng.random(3000) if kind == "uniform" else rng.beta(0.5, 20, 3000)
    y = (rng.random(3000) < p).astype(int)
    assert binomial_upper(Tally.from_arrays(y, p), 0.05) == pytest.approx(every_interval(y, p, 0.05), rel=2e-12)


def test_equals_the_largest_of_all_intervals_when_many_are_nearly_as_large():
    # Outcomes alternate around a jump, on a slope that pays exactly for the growth of the margin.
    rows, jump = 600, 70
    y = np.tile([0, 1], rows // 2)
    y[rows // 2 - jump : rows // 2] = 1
    p = 0.5 + 1.645 / 4 / np.sqrt(0.6 * rows) + 1e-12 * np.arange(rows)
    assert binomial_upper(Tally.from_arrays(y, p), 0.05) == pytest.approx(every_interval(y, p, 0.05), rel=2e-12)


def test_on_one_interval_is_the_clopper_pearson_limit():
    tally = Tally.from_counts([0.1], rows=[40], events=[9])
    assert binomial_upper(tally, 0.05) == pytest.approx(beta.ppf(0.95, 10, 31) - 0.1, rel=1e-12)
    without_events = Tally.from_counts([0.0], rows=[1000], events=[0])
    assert binomial_upper(without_events, 0.05) == pytest.approx(1 - 0.05**0.001, rel=1e-12)


@pytest.mark.parametrize(
    ("outcome", "forecast", "expected"), [(1, 0.3, 0.7), (0, 0.3, 0.7), (0, 0.0, 1.0), (1, 1.0, 1.0)]
)
def test_one_row_says_nothing(outcome, forecast, expected):
    # Whatever happened, the chance of an event may be 0 or 1.
    assert binomial_upper(Tally.from_arrays([outcome], [forecast]), 0.05) == expected


def test_is_the_same_for_the_complementary_event():
    rng = np.random.default_rng(24)
    for _ in range(20):
        p = rng.integers(0, 65, 80) / 64
        y = rng.integers(0, 2, 80)
        mirrored = binomial_upper(Tally.from_arrays(1 - y, 1 - p), 0.1)
        assert binomial_upper(Tally.from_arrays(y, p), 0.1) == pytest.approx(mirrored, rel=1e-12)


def test_lies_above_the_estimate_and_falls_with_delta():
    rng = np.random.default_rng(25)
    for _ in range(20):
        tally = Tally.from_arrays(*draw(rng, 150))
        limits = [binomial_upper(tally, delta) for delta in (1e-100, 1e-12, 0.01, 0.05, 0.25)]
        assert limits[0] <= 1.0
        assert limits == sorted(limits, reverse=True)
        assert limits[-1] >= cutoff_calibration_error(tally)


@pytest.mark.parametrize("kind", ["uniform", "rare", "square", "shifted", "spike", "oscillating", "tied", "no events"])
def test_looks_at_few_intervals(kind, monkeypatch):
    # 5 * 10^9 intervals of 10^5 rows: the limit is asked for a few hundred, and memory holds no more at a time.
    rng = np.random.default_rng(26)
    p = {"rare": rng.beta(0.5, 20, 100_000), "tied": np.full(100_000, 0.4)}.get(kind, rng.random(100_000))
    chance = {
        "square": p**2,
        "shifted": np.minimum(p + 0.1, 1.0),
        "spike": np.where((p > 0.5) & (p < 0.51), 1.0, p),
        "oscillating": p + 0.3 * np.sin(300 * p) * (np.abs(p - 0.5) < 0.2),
        "no events": np.zeros(p.size),
    }.get(kind, p)
    asked = []

    def counted(events, non_events, delta):
        asked.append(events.size)
        return binomial_margin(events, non_events, delta)

    monkeypatch.setattr(binomial_limits, "binomial_margin", counted)
    binomial_upper(Tally.from_arrays(rng.random(p.size) < chance, p), 0.05)
    assert sum(asked) < 20_000
    assert max(asked) <= 512


@pytest.mark.parametrize("delta", [1e-9, 0.001, 0.01, 0.05, 0.1, 0.2, 0.249])
def test_margin_follows_the_definition(delta):
    events, non_events = (grid.ravel() for grid in np.meshgrid(np.arange(70), np.arange(70)))
    expected = literal_margin(events, non_events, delta)
    kept = events + non_events > 0
    assert binomial_margin(events, non_events, delta)[kept] == pytest.approx(expected[kept], rel=1e-9)


@pytest.mark.parametrize("delta", [1e-100, 1e-12, 1e-6, 0.001, 0.01, 0.05, 0.1, 0.15, 0.2, 0.24, 0.25])
@pytest.mark.parametrize(
    "counts", [np.arange(160), np.unique(np.geomspace(1, 10**7, 150).astype(int)) + 1, 10**6 + np.arange(0, 2000, 20)]
)
def test_margin_grows_with_events_and_with_other_rows(counts, delta):
    events, non_events = np.meshgrid(counts, counts, indexing="ij")
    margin = binomial_margin(events.ravel(), non_events.ravel(), delta).reshape(events.shape)
    slack = 1e-12 * margin.max()
    assert np.diff(margin, axis=0).min() >= -slack
    assert np.diff(margin, axis=1).min() >= -slack
    # The rule about a margin below 1 takes effect for a single row without event, and only there.
    assert (margin[non_events > 1] >= 1.0 - 1e-12).all()
    assert (margin <= non_events).all()


def test_margin_is_not_monotone_beyond_the_largest_delta():
    # From there on the rule takes effect for two rows without event, too, if there are few events beside them.
    few, many = literal_margin(np.array([0, 100]), np.array([2, 2]), 0.26)
    assert few == 2.0
    assert many < 1.1


@pytest.mark.parametrize("delta", [1e-9, 0.05, 0.25])
@pytest.mark.parametrize(("few", "many"), [(0, 10**7), (1, 10**5), (5, 10**6), (29, 10**7), (200, 10**7), (400, 500)])
def test_margin_keeps_its_digits(few, many, delta):
    """Solve for the margin in 50 digits around the value returned."""

    def tail(count, rows, chance):  # P(Bin(rows, chance) <= count)
        term = (1 - chance) ** rows
        total = Decimal(0)
        for i in range(count + 1):
            total += term
            term *= Decimal(rows - i) / (i + 1) * chance / (1 - chance)
        return total

    def excess(margin, rare):
        if rare:
            return tail(few, few + many, (few + margin) / (few + many)) - Decimal(delta)
        return 1 - tail(few + 1, few + many + 2, (few + 2 - margin) / (few + many + 2)) - Decimal(delta)

    with localcontext() as context:
        context.prec = 50
        for rare, counts in ((True, (few, many)), (False, (many, few + 2))):
            events, non_events = (np.array([count]) for count in counts)
            margin = Decimal(float(binomial_margin(events, non_events, delta)[0]))
            step = margin * Decimal("1e-12")
            assert excess(margin - step, rare) > 0 > excess(margin + step, rare)


@pytest.mark.parametrize("delta", [0.2500001, 0.5, 1.0, 0.0, -0.1, 1e-200, float("nan")])
def test_refuses_a_delta_outside_its_proof(delta):
    with pytest.raises(ValueError, match=r"the exact limit needs confidence_level >= 0.75 and below 1 .*, got delta"):
        exact_upper(Tally.from_arrays([0, 1], [0.2, 0.7]), delta)


def test_refuses_fractions_and_weights():
    with pytest.raises(ValueError, match="no event counts"):
        exact_upper(Tally.from_arrays([0.5, 1.0], [0.2, 0.7]), 0.05)
    with pytest.raises(ValueError, match="no event counts"):
        exact_upper(Tally.from_arrays([0, 1], [0.2, 0.7], sample_weight=[1.0, 2.0]), 0.05)
    with pytest.raises(ValueError, match="no event counts"):  # where the forecasts choose a bet, too
        exact_upper(Tally.from_arrays(np.full(1000, 0.5), np.linspace(0.001, 0.999, 1000).round()), 0.05)


# --- Binomial limits or a bet ----------------------------------------------------------------------------------------


def sure(rows):
    """Forecasts that tell outcomes apart well: near 0 and near 1."""
    return beta.ppf((np.arange(rows) + 0.5) / rows, 0.02, 0.02)


def test_forecasts_that_discriminate_have_a_bet_that_equals_the_theorem_word_for_word():
    rng = np.random.default_rng(30)
    for delta in (0.01, 0.05, 0.2):
        for rows in (30, 60):
            p = sure(rows)
            y = (rng.random(rows) < 0.8 * p + 0.1).astype(float)
            variance, exponent = np.mean(p * (1 - p)), np.log(1 / delta)
            rate = min(0.9, 1 / (np.sqrt(rows * variance / (2 * exponent)) + 2 / 3 * (1 - 2.5 * variance)))
            forecasts = np.unique(p)
            sums = [
                -np.log(1 - rate * sign * (y - p)[(p >= low) & (p <= high)]).sum()
                for low in forecasts
                for high in forecasts[forecasts >= low]
                for sign in (1, -1)
            ]
            expected = (1 - np.exp(-(max(sums) + exponent) / rows)) / rate
            assert prefers_bet(*np.unique(p, return_counts=True), delta)
            assert exact_upper(Tally.from_arrays(y, p), delta) == pytest.approx(expected, rel=1e-12)


def test_the_forecasts_alone_choose():
    rng = np.random.default_rng(31)
    uniform, rows = rng.random(1000), np.ones(1000, dtype=int)
    assert prefers_bet(np.sort(sure(1000)), rows, 0.05)
    assert not prefers_bet(np.sort(uniform), rows, 0.05)
    assert not prefers_bet(np.array([0.3]), np.array([1000]), 0.05)
    for p, chosen in ((sure(1000), given_upper), (uniform, binomial_upper)):
        for chance in (p, 1 - p, np.zeros(1000), np.full(1000, 0.5)):
            tally = Tally.from_arrays(rng.random(1000) < chance, p)
            assert exact_upper(tally, 0.05) == chosen(tally, 0.05)


def test_the_choice_comes_near_the_narrower_of_the_two_and_stays_below_the_adaptive_limit():
    # Calibrated forecasts from those that know nearly everything to those that know nothing.
    rng = np.random.default_rng(32)
    for shape in (0.02, 0.1, 0.2, 0.3, 0.4, 0.7, 2.0, 50.0):
        for delta in (0.05, 0.005):
            p = rng.beta(shape, shape, 2000)
            tallies = [Tally.from_arrays(rng.random(2000) < p, p) for _ in range(8)]
            exact, binomial, bet, adaptive = (
                np.mean([limit(tally) for tally in tallies])
                for limit in (
                    lambda tally, delta=delta: exact_upper(tally, delta),
                    lambda tally, delta=delta: binomial_upper(tally, delta),
                    lambda tally, delta=delta: given_upper(tally, delta),
                    lambda tally, delta=delta: adaptive_upper(tally, tally, delta),
                )
            )
            assert exact <= 1.08 * min(binomial, bet)
            assert exact < adaptive
            assert exact in (binomial, bet)

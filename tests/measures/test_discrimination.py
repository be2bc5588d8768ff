from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from brute_force import rows
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.metrics import roc_auc_score

from calibrant import InputError, Tally, measures
from calibrant.core.errors import UndefinedError

auroc: Any = measures.auroc  # options come in dicts
RNG = np.random.default_rng(9)


def data(size=120, digits=2):
    p = RNG.random(size).round(digits)
    return (RNG.random(size) < p).astype(int), p


def placements(y, p, w):
    """For each row the share of rows of the other class that it is on the right side of, pair by pair."""
    order = (p[:, None] > p) + 0.5 * (p[:, None] == p)
    right = np.where(y[:, None] == 1, order, 1 - order)
    other = w * (y[:, None] != y)
    return (right * other).sum(axis=1) / other.sum(axis=1)


def ends(found):
    return found.lower, found.upper


@settings(max_examples=60)
@given(data=rows(binary=True))
def test_equals_a_count_of_pairs(data):
    y, p, w = data
    w = np.ones(len(p)) if w is None else w
    kept = w > 0
    y, p, w = y[kept], p[kept], w[kept]
    assume(0 < y.sum() < len(y))
    place = placements(y, p, w)
    assert auroc(y, p, sample_weight=w) == pytest.approx(np.average(place[y == 1], weights=w[y == 1]), abs=1e-12)


def test_equals_scikit_learn():
    y, p = data(5_000)
    w = RNG.exponential(size=5_000)
    assert auroc(y, p) == pytest.approx(roc_auc_score(y, p), abs=1e-13)
    assert auroc(y, p, sample_weight=w) == pytest.approx(roc_auc_score(y, p, sample_weight=w), abs=1e-13)


@pytest.mark.parametrize("weighted", [False, True])
def test_delong_from_all_pairs(weighted):
    y, p = data()
    w = RNG.exponential(size=y.size) if weighted else np.ones(y.size)
    found = auroc(y, p, confidence_level=0.9, sample_weight=w if weighted else None)
    place, variance = placements(y, p, w), 0.0
    for kind in (0, 1):
        share = w[y == kind] / w[y == kind].sum()
        apart = share * (place[y == kind] - found.estimate)
        variance += (apart**2).sum() * share.size / (share.size - 1)
    reach = norm.ppf(0.95) * np.sqrt(variance)
    assert ends(found) == pytest.approx((found.estimate - reach, found.estimate + reach), abs=1e-12)
    assert (found.name, found.interval, found.rows, found.notes) == ("auroc", "delong", 120, ())
    area = found.estimate
    found = auroc(y, p, confidence_level=0.9, interval="logit", sample_weight=w if weighted else None)
    logit = np.log(area / (1 - area)) + np.array([-1, 1]) * reach / (area * (1 - area))
    assert ends(found) == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-12)
    assert found.interval == "logit"


def test_clusters_by_the_formula_of_obuchowski():
    y, p = data()
    cluster = np.append(RNG.integers(0, 25, 118), [97, 98])
    y[-2:] = 0, 1  # clusters of one class
    found = auroc(y, p, confidence_level=0.9, cluster=cluster)
    place = placements(y, p, np.ones(120))
    code = np.unique(cluster, return_inverse=True)[1]
    sums, counts = [], []
    for kind in (1, 0):
        apart = np.where(y == kind, place - found.estimate, 0.0) / (y == kind).sum()
        sums.append(np.bincount(code, weights=apart))
        counts.append(np.unique(code[y == kind]).size)
    (on, off), (with_on, with_off), total = sums, counts, code.max() + 1
    variance = (
        with_on / (with_on - 1) * on @ on + with_off / (with_off - 1) * off @ off + 2 * total / (total - 1) * on @ off
    )
    reach = student.ppf(0.95, total - 1) * np.sqrt(variance)
    assert ends(found) == pytest.approx((found.estimate - reach, found.estimate + reach), abs=1e-12)
    assert (found.clusters, found.interval) == (total, "delong")


def test_counts_are_rows():
    counts = Tally.from_counts([0.2, 0.4, 0.7], [50, 30, 20], [15, 10, 17])
    y = np.repeat([1, 0, 1, 0, 1, 0], [15, 35, 10, 20, 17, 3])
    p = np.repeat([0.2, 0.4, 0.7], [50, 30, 20])
    for interval in ("delong", "logit"):
        one, other = (auroc(*each, confidence_level=0.9, interval=interval) for each in ((counts,), (y, p)))
        assert ends(one) == pytest.approx(ends(other), rel=1e-12)
    many = Tally.from_counts([0.2, 0.4, 0.7], [5 * 10**11, 3 * 10**11, 2 * 10**11], [10**11, 10**11, 10**11])
    assert auroc(many, confidence_level=0.9).upper - auroc(many) < 1e-5
    with pytest.raises(UndefinedError, match="counts of more than 10 million"):
        auroc(many, confidence_level=0.9, interval="bootstrap")


@pytest.mark.parametrize("interval", ["delong", "logit", "bootstrap"])
def test_a_ranking_without_exception_is_not_certain(interval):
    y, p = [0, 0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.2, 0.3, 0.4, 0.5, 0.6]
    found = auroc(y, p, confidence_level=0.95, interval=interval)
    assert (found.estimate, found.interval) == (1.0, "pairs")
    assert ends(found) == pytest.approx((0.025 ** (1 / 3), 1.0))
    assert found.notes == ("the ranking has no exception: the limits are those of 3 pairs that share no row",)
    upside_down = auroc(np.subtract(1, y), p, confidence_level=0.95, interval=interval)
    assert (upside_down.estimate, *ends(upside_down)) == pytest.approx((0.0, 0.0, 1 - 0.025 ** (1 / 3)))
    for options in ({"sample_weight": [1, 2, 1, 1.5, 1, 0.1, 1]}, {"cluster": [1, 1, 2, 2, 2, 3, 3]}):
        assert auroc(y, p, **options) == 1.0
        with pytest.raises(UndefinedError, match="separate the outcomes perfectly and rows are"):
            auroc(y, p, confidence_level=0.95, interval=interval, **options)


def test_resamples_of_rows_and_clusters():
    y, p = data(200)
    for cluster in (None, np.arange(200) // 2):
        delong = auroc(y, p, confidence_level=0.8, cluster=cluster)
        found = auroc(y, p, confidence_level=0.8, interval="bootstrap", n_resamples=200, cluster=cluster)
        assert ends(found) == pytest.approx(ends(delong), abs=0.02)
        assert (found.interval, found.n_resamples) == ("bootstrap", 200)


@settings(max_examples=25)
@given(data=rows(binary=True), seed=st.integers(0, 2**32 - 1))
def test_limits_hold_the_number_in_any_order_and_unit(data, seed):
    y, p, w = data
    try:
        found = auroc(y, p, sample_weight=w, confidence_level=0.9)
    except UndefinedError:
        assume(False)
    order = np.random.default_rng(seed).permutation(len(p))
    other = auroc(y[order], p[order], sample_weight=None if w is None else 8.0 * w[order], confidence_level=0.9)
    assert ends(other) == pytest.approx(ends(found), abs=1e-12)
    assert 0.0 <= found.lower <= found.estimate <= found.upper <= 1.0


@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        ([0, 0], [0.1, 0.2], "every outcome that counts here is 0; the area .* needs both kinds"),
        ([1, 1], [0.1, 0.2], "every outcome that counts here is 1"),
        ([0.5, 1], [0.1, 0.2], "y_true holds fractions"),
    ],
)
def test_says_why_there_is_none(y, p, message):
    for level in (None, 0.95):
        with pytest.raises(InputError, match=message):
            auroc(y, p, confidence_level=level)


@pytest.mark.parametrize("options", [{}, {"interval": "bootstrap", "n_resamples": 50}, {"cluster": [1, 1, 2, 2] * 4}])
def test_one_forecast_for_all_has_an_area_and_no_limits(options):
    y, p = [0, 1] * 8, [0.3] * 16
    assert auroc(y, p) == 0.5
    with pytest.raises(UndefinedError, match="nothing in these rows shows how much auroc varies"):
        auroc(y, p, confidence_level=0.95, **options)


def test_one_pair_is_one_pair():
    (note,) = auroc([0, 1], [0.3, 0.4], confidence_level=0.95).notes
    assert note == "the ranking has no exception: the limits are those of 1 pair of rows"


def by_exact_pairs(y, p, w, cluster=None):
    """The area and the square of its standard error, by counting all pairs with fractions: no sort, no rounding."""
    y, p, w = y.tolist(), p.tolist(), [Fraction(each) for each in w.tolist()]
    rows = range(len(y))

    def order(event, other):
        return Fraction((p[event] > p[other]) * 2 + (p[event] == p[other]), 2)

    sides = [[each for each in rows if y[each] == kind] for kind in (1, 0)]
    totals = [sum(w[each] for each in side) for side in sides]
    placed = [
        {one: sum(w[two] * order(one, two) for two in sides[1]) / totals[1] for one in sides[0]},
        {two: sum(w[one] * order(one, two) for one in sides[0]) / totals[0] for two in sides[1]},
    ]
    area = sum(w[one] * placed[0][one] for one in sides[0]) / totals[0]
    groups = list(rows) if cluster is None else cluster.tolist()
    sums: list[dict[Any, Fraction]] = [{}, {}]
    for kind, total in enumerate(totals):
        for each, place in placed[kind].items():
            sums[kind][groups[each]] = sums[kind].get(groups[each], Fraction(0)) + w[each] * (place - area) / total
    square = sum(sum(s * s for s in part.values()) * Fraction(len(part), len(part) - 1) for part in sums)
    if cluster is not None:
        count = len(set(groups))
        together = sum(sums[0].get(each, 0) * sums[1].get(each, 0) for each in set(groups))
        square += 2 * Fraction(count, count - 1) * together
    return float(area), float(square), len(set(groups))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(["rows", "weights", "clusters", "both"]))
def test_delong_and_obuchowski_equal_all_pairs_in_exact_arithmetic(seed, kind):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(6, 40))
    p = rng.integers(0, int(rng.integers(2, 30)), size) / 29.0  # from nearly all tied to few ties
    y = (rng.random(size) < 0.2 + 0.6 * p).astype(int)
    w = rng.integers(1, 9, size) / 4.0 if kind in ("weights", "both") else np.ones(size)
    cluster = rng.integers(0, max(size // 3, 2), size) if kind in ("clusters", "both") else None
    assume(0 < y.sum() < size)
    try:
        found = auroc(
            y, p, sample_weight=w if kind in ("weights", "both") else None, cluster=cluster, confidence_level=0.5
        )
    except UndefinedError:  # perfect, all tied, or too few of a kind: tested by themselves
        assume(False)
    assume(found.interval == "delong")  # which a perfect ranking has not
    area, square, count = by_exact_pairs(y, p, w, cluster)
    assert found.estimate == pytest.approx(area, abs=1e-14)
    away = norm.ppf(0.75) if cluster is None else student.ppf(0.75, count - 1)
    reach = away * np.sqrt(max(square, 0.0))
    near = 1e-12 if square > 1e-6 else 1e-7  # the root of rounding where events and non-events cancel
    assert ends(found) == pytest.approx((max(area - reach, 0.0), min(area + reach, 1.0)), abs=near)


def test_a_perfect_ranking_has_no_error_in_exact_arithmetic():
    """What DeLong's formula gives there, which is why its limits are not used."""
    y, p = np.repeat([0, 1], [5, 4]), np.array([1, 2, 2, 3, 3, 4, 5, 5, 6]) / 7.0
    for cluster in (None, np.array([0, 0, 1, 1, 2, 2, 3, 3, 0])):
        area, square, _ = by_exact_pairs(y, p, np.ones(9), cluster)
        assert (area, square) == (1.0, 0.0)
    found = auroc(y, p, confidence_level=0.95)
    assert (found.estimate, found.interval, found.upper) == (1.0, "pairs", 1.0)
    tied = p.copy()
    tied[5] = p[4]  # one tie between the classes, and it varies again
    area, square, _ = by_exact_pairs(y, tied, np.ones(9))
    found = auroc(y, tied, confidence_level=0.5)
    assert area == found.estimate == 1 - 2 * 0.5 / 20
    assert found.interval == "delong"
    assert found.lower == pytest.approx(area - norm.ppf(0.75) * np.sqrt(square), abs=1e-14)


def test_one_row_of_a_class_does_not_vary():
    for options in ({}, {"cluster": [1, 2, 3, 4]}):
        with pytest.raises(UndefinedError, match=r"at least two (rows|clusters) with an event"):
            auroc([0, 1, 0, 0], [0.1, 0.2, 0.3, 0.4], confidence_level=0.95, **options)

import decimal
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr, ndtri
from scipy.stats import t as student

from calibrant.core.laws import brownian_range, limit_reach

GRID = np.concatenate([np.linspace(0.09, 1.5, 48), np.linspace(1.5, 9.0, 48), [1.4999999, 1.5000001]])
PI = decimal.Decimal("3.14159265358979323846264338327950288419716939937510582097")


def series(x, term):
    """Sum a term over odd j to 60 digits; the first of the two series is enough for every x at that precision."""
    with decimal.localcontext(decimal.Context(prec=60, Emin=-(10**6), Emax=10**6)):
        x = decimal.Decimal(float(x))
        total = decimal.Decimal(0)
        for j in range(1, 400, 2):
            square = (j * PI) ** 2
            added = 8 * term(x, square) * (-square / (2 * x * x)).exp()
            total += added
            if j > 1 and abs(added) < abs(total) * decimal.Decimal("1e-58"):
                return total
    raise AssertionError("the series has not converged")


def relative(found, exact):
    return max(abs(float(decimal.Decimal(float(one)) / other - 1)) for one, other in zip(found, exact, strict=True))


def test_published_values():
    assert brownian_range.cdf([1, 2, 3]) == pytest.approx([0.063365, 0.818506, 0.989201], abs=5e-7)
    assert brownian_range.ppf([0.90, 0.95, 0.99]) == pytest.approx([2.2412, 2.4977, 3.0233], abs=5e-5)
    assert brownian_range.mean() == 2 * math.sqrt(2 / math.pi)


def test_values_agree_with_60_digits():
    lower = [series(x, lambda x, square: 1 / x**2 + 1 / square) for x in GRID]
    upper = [1 - value for value in lower]
    density = [series(x, lambda x, square: square / x**5 - 1 / x**3) for x in GRID]
    np.testing.assert_allclose(brownian_range.cdf(GRID), np.array(lower, dtype=float), rtol=0, atol=1e-15)
    np.testing.assert_allclose(brownian_range.sf(GRID), np.array(upper, dtype=float), rtol=0, atol=1e-15)
    assert relative(brownian_range.cdf(GRID), lower) < 2e-13
    assert relative(brownian_range.sf(GRID), upper) < 2e-13
    assert relative(brownian_range.pdf(GRID), density) < 2e-13


@pytest.mark.parametrize("x", [0.6, 1.0, 1.4, 1.6, 2.5, 4.0])
def test_it_is_the_range_of_a_motion_that_stays_between_two_walls(x):
    """P(range <= x) is the derivative of the integral, over where the lower wall is, of P(the motion stays inside)."""

    def stays(wall, width):
        images = 2.0 * width * np.arange(-40, 41)  # the method of images: another formula altogether
        inside = ndtr(width - wall + images) - ndtr(-wall + images)
        return float((inside - (ndtr(width + wall + images) - ndtr(wall + images))).sum())

    def integral(width):
        return quad(stays, 0.0, width, args=(width,), epsabs=1e-13, epsrel=1e-13)[0]

    step = 1e-3
    slope = (
        (8 * (integral(x + step) - integral(x - step)) - integral(x + 2 * step) + integral(x - 2 * step)) / 12 / step
    )
    assert brownian_range.cdf(x) == pytest.approx(slope, abs=1e-8)


def test_the_density_integrates_to_one_and_to_the_moments():
    def moment(power):
        return sum(quad(lambda x: x**power * brownian_range.pdf(x), *part)[0] for part in [(0, 1), (1, 2), (2, 12)])

    assert moment(0) == pytest.approx(1.0, abs=1e-10)
    assert moment(1) == pytest.approx(brownian_range.mean(), abs=1e-10)
    assert moment(2) - moment(1) ** 2 == pytest.approx(brownian_range.var(), abs=1e-9)
    assert brownian_range.std() ** 2 == pytest.approx(brownian_range.var(), rel=1e-15)


def test_the_far_tails_keep_their_digits():
    far = np.array([10.0, 20.0, 30.0, 37.0])
    np.testing.assert_allclose(brownian_range.sf(far), 8 * ndtr(-far), rtol=1e-12)
    assert brownian_range.cdf(0.1) == pytest.approx(8 * (100 + math.pi**-2) * math.exp(-50 * math.pi**2), rel=1e-12)


def test_quantiles_undo_probabilities():
    tail = 10.0 ** -np.arange(1, 300, 7.0)
    middle = np.linspace(0.001, 0.999, 999)
    for q in (tail, middle):
        np.testing.assert_allclose(brownian_range.cdf(brownian_range.ppf(q)), q, rtol=1e-12)
        np.testing.assert_allclose(brownian_range.sf(brownian_range.isf(q)), q, rtol=1e-12)
    np.testing.assert_allclose(brownian_range.ppf(middle), brownian_range.isf(1 - middle), rtol=1e-13)
    assert brownian_range.median() == brownian_range.ppf(0.5)
    assert (np.diff(brownian_range.ppf(np.linspace(0, 1, 10_001))) > 0).all()  # no step at the seam of the two series


def test_ends_and_what_lies_outside():
    assert brownian_range.cdf([-np.inf, -1, 0, 1e-300, 0.01, 100, np.inf]).tolist() == [0, 0, 0, 0, 0, 1, 1]
    assert brownian_range.sf([-np.inf, -1, 0, 1e-300, 0.01, 100, np.inf]).tolist() == [1, 1, 1, 1, 1, 0, 0]
    assert brownian_range.pdf([-np.inf, -1, 0, 1e-300, 0.01, 100, np.inf]).tolist() == [0] * 7
    assert brownian_range.ppf([0, 1]).tolist() == [0, np.inf]
    assert brownian_range.isf([0, 1]).tolist() == [np.inf, 0]
    for function in (brownian_range.cdf, brownian_range.sf, brownian_range.pdf):
        assert math.isnan(function(np.nan))
    for inverse in (brownian_range.ppf, brownian_range.isf):
        assert np.isnan(inverse([np.nan, -0.1, 1.1, np.inf])).all()


@pytest.mark.parametrize("name", ["cdf", "sf", "pdf", "ppf", "isf"])
def test_numbers_give_numbers_and_arrays_give_arrays(name):
    function = getattr(brownian_range, name)
    assert type(function(0.4)) is float
    assert type(function(np.float32(0.5))) is float
    assert function([[0.4, 0.5, 0.6]]).shape == (1, 3)
    assert function([]).shape == (0,)
    assert function([[0.4, 0.5]])[0, 1] == function(0.5)


def test_random_ranges():
    sample = brownian_range.rvs((100, 200), rng=3)
    assert sample.shape == (100, 200)
    error = brownian_range.std() / math.sqrt(sample.size)
    assert abs(sample.mean() - brownian_range.mean()) < 4 * error
    assert brownian_range.rvs(rng=np.random.default_rng(3)) == sample[0, 0]


def test_it_names_itself():
    assert repr(brownian_range) == brownian_range.__name__ == "brownian_range"


def test_few_values_are_those_among_many():
    x = np.linspace(1.5, 37.0, 3_000)
    few = [brownian_range.sf(each) for each in x.tolist()]
    np.testing.assert_allclose(few, brownian_range.sf(x), rtol=1e-12)


@pytest.mark.parametrize("level", [1e-6, 0.5, 0.95, 1 - 1e-9, np.nextafter(1.0, 0.0)])
def test_limits_reach_as_far_as_the_normal_law_and_students(level):
    tail = (1.0 - level) / 2.0  # not from above, where digits are lost
    assert limit_reach(level) == pytest.approx(-ndtri(tail), rel=1e-13)
    for clusters in (2, 5, 40):
        assert limit_reach(level, clusters) == pytest.approx(student(clusters - 1).isf(tail), rel=1e-9)

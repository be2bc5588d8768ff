import numpy as np
import pytest

import calibrant

RNG = np.random.default_rng(7)


def forecasts_and_outcomes(size=2_000, stretch=1.5):
    logit = RNG.normal(-1, 1.2, size)
    p = 1 / (1 + np.exp(-logit))
    y = RNG.random(size) < 1 / (1 + np.exp(0.3 - logit / stretch))
    return y.astype(float), p


class TestSlope:
    def test_equals_an_unpenalised_logistic_regression(self):
        from statsmodels.api import GLM, families

        y, p = forecasts_and_outcomes()
        w = RNG.integers(1, 5, y.size).astype(float)
        logit = np.log(p / (1 - p))
        design = np.column_stack([logit, np.ones_like(logit)])
        for weight in (None, w):
            freq = np.ones_like(y) if weight is None else weight
            full = GLM(y, design, family=families.Binomial(), freq_weights=freq).fit(tol=1e-14, maxiter=200)
            held = GLM(y, design[:, 1:], family=families.Binomial(), offset=logit, freq_weights=freq).fit(tol=1e-14)
            ours = calibrant.measures.calibration_slope_intercept(y, p, sample_weight=weight)
            assert (ours.slope, ours.intercept) == pytest.approx(tuple(full.params), abs=1e-9)
            assert ours.intercept_at_unit_slope == pytest.approx(held.params[0], abs=1e-9)

    def test_is_one_and_zero_where_outcomes_equal_forecasts(self):
        p = np.linspace(0.01, 0.99, 50)
        fit = calibrant.measures.calibration_slope_intercept(p, p)
        assert (fit.slope, fit.intercept, fit.intercept_at_unit_slope) == pytest.approx((1, 0, 0), abs=1e-9)

    def test_recovers_a_wild_recalibration(self):
        logit = np.linspace(-30, 30, 401)
        p, y = (1 / (1 + np.exp(-x)) for x in (logit, 0.02 * logit - 4))
        fit = calibrant.measures.calibration_slope_intercept(y, p)
        assert (fit.slope, fit.intercept) == pytest.approx((0.02, -4), abs=1e-7)

    def test_sure_forecasts_that_come_true_have_no_say(self):
        y, p = forecasts_and_outcomes(300)
        plain = calibrant.measures.calibration_slope_intercept(y, p)
        with_sure = calibrant.measures.calibration_slope_intercept(np.append(y, [0, 1]), np.append(p, [0.0, 1.0]))
        assert with_sure.slope == pytest.approx(plain.slope, abs=1e-12)

    def test_refuses_a_likelihood_too_flat_to_climb(self):
        tiny = 1e-300
        with pytest.raises(ValueError, match=r"does not settle.*numpy\.clip"):
            calibrant.measures.calibration_slope_intercept([1, 0, 1, 0], [tiny, 2 * tiny, 3 * tiny, 4 * tiny])

    @pytest.mark.parametrize(
        ("y", "p", "message"),
        [
            ([1, 0, 1], [0.0, 0.4, 0.6], "contradicts a forecast of exactly 0"),
            ([0, 0, 1], [0.2, 1.0, 0.6], "contradicts a forecast of exactly 1"),
            ([0, 1, 0], [0.3, 0.3, 0.3], "at least two distinct forecasts"),
            ([0, 0, 0], [0.3, 0.4, 0.5], "every outcome that counts here is 0"),
            ([1, 1, 1], [0.3, 0.4, 0.5], "every outcome that counts here is 1"),
            ([0, 0, 1], [0.3, 0.4, 0.5], "separate the outcomes perfectly"),
            ([1, 0, 0], [0.3, 0.4, 0.5], "separate the outcomes perfectly"),
            ([0, 0, 1, 1], [0.3, 0.4, 0.4, 0.5], "separate the outcomes perfectly"),
        ],
    )
    def test_says_why_no_finite_fit_exists(self, y, p, message):
        with pytest.raises(ValueError, match=message):
            calibrant.measures.calibration_slope_intercept(y, p)
        result = calibrant.measure(y, p)
        assert result.slope is None
        assert any(message in note for note in result.notes)


def test_observed_over_expected():
    y, p = forecasts_and_outcomes(500)
    w = RNG.random(500)
    assert calibrant.measures.observed_expected_ratio(y, p) == pytest.approx(y.sum() / p.sum())
    assert calibrant.measures.observed_expected_ratio(y, p, sample_weight=w) == pytest.approx((w @ y) / (w @ p))
    with pytest.raises(ValueError, match="y_prob is 0 everywhere"):
        calibrant.measures.observed_expected_ratio([0, 1], [0.0, 0.0])
    assert calibrant.measure([0, 1], [0.0, 0.0]).observed_expected_ratio is None

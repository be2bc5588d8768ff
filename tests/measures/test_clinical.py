import math

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import calibrant
from calibrant import Tally
from calibrant.measures import clinical

RNG = np.random.default_rng(7)


def forecasts_and_outcomes(size=2_000, stretch=1.5):
    logit = RNG.normal(-1, 1.2, size)
    p = 1 / (1 + np.exp(-logit))
    y = RNG.random(size) < 1 / (1 + np.exp(0.3 - logit / stretch))
    return y.astype(float), p


class TestCurveErrors:
    def test_isotonic_equals_scikit_learn_row_by_row(self):
        y, p = forecasts_and_outcomes(1_000)
        p = np.round(p, 2)  # scikit-learn does not merge ties the way a tally does unless asked: give it means
        tally = Tally.from_arrays(y, p)
        curve = IsotonicRegression().fit(tally.forecast, tally.mean_outcome, sample_weight=tally.weight).predict(p)
        distance = np.abs(curve - p)
        ours = calibrant.measures.integrated_calibration_index(y, p)
        assert ours.ici == pytest.approx(distance.mean(), abs=1e-9)
        assert ours.e50 == pytest.approx(np.quantile(distance, 0.5, method="inverted_cdf"), abs=1e-9)
        assert ours.e90 == pytest.approx(np.quantile(distance, 0.9, method="inverted_cdf"), abs=1e-9)
        assert ours.emax == pytest.approx(distance.max(), abs=1e-9)

    def test_loess_equals_direct_local_regression(self):
        y, p = forecasts_and_outcomes(200)
        span, count = 0.6, 120
        fitted = []
        for centre in p:
            distance = np.abs(p - centre)
            reach = np.sort(distance)[count - 1]
            weight = np.clip(1 - (distance / reach) ** 3, 0, None) ** 3
            fitted.append(np.polyval(np.polyfit(p - centre, y, 2, w=np.sqrt(weight)), 0.0))
        ours = calibrant.measures.integrated_calibration_index(y, p, smoother="loess", span=span)
        assert ours.ici == pytest.approx(np.abs(np.array(fitted) - p).mean(), abs=1e-9)

    def test_loess_weights_equal_repetition(self):
        y, p = forecasts_and_outcomes(150)
        times = RNG.integers(1, 4, 150)
        repeated = calibrant.measures.integrated_calibration_index(
            np.repeat(y, times), np.repeat(p, times), smoother="loess"
        )
        weighted = calibrant.measures.integrated_calibration_index(y, p, smoother="loess", sample_weight=times)
        assert weighted.ici == pytest.approx(repeated.ici, abs=1e-12)

    def test_pooling_many_forecasts_hardly_moves_the_loess_curve(self, monkeypatch):
        y, p = forecasts_and_outcomes(3_000)
        exact = calibrant.measures.integrated_calibration_index(y, p, smoother="loess")
        monkeypatch.setattr(clinical, "_LOESS_POINTS", 1_000)
        pooled = calibrant.measures.integrated_calibration_index(y, p, smoother="loess")
        assert pooled.ici == pytest.approx(exact.ici, abs=1e-4)

    def test_a_forecast_that_fills_the_span_is_its_own_curve(self):
        errors = calibrant.measures.integrated_calibration_index([0, 1, 1, 1, 0], [0.5] * 4 + [0.9], smoother="loess")
        assert errors.e50 == pytest.approx(0.25)

    def test_quantiles_of_distances_beyond_one_are_exact(self):
        values, weight = np.array([0.2, 7.0, 1.0, 1e12]), np.array([1.0, 1.0, 2.0, 1.0])
        assert [clinical._weighted_quantile(values, weight, share) for share in (0.2, 0.6, 0.8, 1.0)] == [
            0.2,
            1,
            7,
            1e12,
        ]

    def test_loess_sees_a_shift(self):
        p = RNG.random(5_000) * 0.6
        y = RNG.random(5_000) < p + 0.2
        errors = calibrant.measures.integrated_calibration_index(y, p, smoother="loess")
        assert errors.ici == pytest.approx(0.2, abs=0.03)
        assert math.isclose(errors.e50, 0.2, abs_tol=0.03)

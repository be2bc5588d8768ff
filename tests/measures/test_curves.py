"""Calibration curves: their distances from the diagonal, limits, bands, weights, clusters and refusals."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import calibrant
from calibrant import Tally
from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.local_regression import loess, lowess
from calibrant.core.logistic import Points
from calibrant.core.quantiles import quantiles
from calibrant.measures import curves
from calibrant.measures.smoothers import SMOOTHERS

RNG = np.random.default_rng(7)
NAMES = ("ici", "e50", "e90", "emax", "eci")


def forecasts_and_outcomes(size=2_000, stretch=1.5):
    logit = RNG.normal(-1, 1.2, size)
    p = 1 / (1 + np.exp(-logit))
    y = RNG.random(size) < 1 / (1 + np.exp(0.3 - logit / stretch))
    return y.astype(float), p


def index(*rows, **options):
    return calibrant.measures.integrated_calibration_index(*rows, **options)


def numbers(errors):
    return [getattr(errors, name) for name in NAMES]


class TestDistances:
    def test_isotonic_equals_scikit_learn_row_by_row(self):
        y, p = forecasts_and_outcomes(1_000)
        p = np.round(p, 2)  # scikit-learn does not merge ties the way a tally does unless asked: give it means
        tally = Tally.from_arrays(y, p)
        curve = IsotonicRegression().fit(tally.forecast, tally.mean_outcome, sample_weight=tally.weight).predict(p)
        distance = np.abs(curve - p)
        median, ninetieth = np.quantile(distance, [0.5, 0.9])
        expected = [distance.mean(), median, ninetieth, distance.max(), 100 * (distance**2).mean()]
        assert numbers(index(y, p)) == pytest.approx(expected, abs=1e-9)

    def test_worked_by_hand(self):
        # Isotonic: rates 0 at .1, 1/2 at .3 and .6, 1 at .9; distances .1, .2, .1, .1.
        errors = index([0, 1, 0, 1], [0.1, 0.3, 0.6, 0.9])
        # Type 7: sorted .1 .1 .1 .2; the 90th percentile is at 1 + 3 x .9 = 3.7, so .1 + .7 x .1.
        assert numbers(errors) == pytest.approx([0.125, 0.1, 0.17, 0.2, 1.75], abs=1e-12)

    @pytest.mark.parametrize("size", [3, 1000, 70_000])
    def test_quantiles_of_counts_are_those_of_repeated_rows(self, size):
        values, times = RNG.normal(size=size), RNG.integers(1, 4, size)
        shares = (0.0, 0.1, 0.5, 0.9, 1.0)
        expected = np.quantile(np.repeat(values, times), shares)
        assert quantiles(values, times.astype(float), shares) == pytest.approx(expected.tolist(), abs=1e-12)

    def test_loess_of_one_parabola_is_the_parabola(self):
        value = np.sort(RNG.random(300))
        outcome = 0.2 + 0.3 * value + 0.4 * value**2
        assert loess(Points(value, outcome), 0.5)(value) == pytest.approx(outcome, abs=1e-12)
        line = 0.1 + 0.5 * value
        assert lowess(Points(value, line), 0.3)(value) == pytest.approx(line, abs=1e-12)

    def test_a_forecast_that_fills_the_span_is_its_own_curve(self):
        errors = index([0, 1, 1, 1, 0], [0.5] * 4 + [0.9], smoother="loess")
        assert errors.e50 == pytest.approx(0.25)

    @pytest.mark.parametrize("smoother", ["loess", "lowess", "splines"])
    def test_every_smoother_sees_a_shift(self, smoother):
        p = 0.05 + RNG.random(5_000) * 0.6
        y = RNG.random(5_000) < p + 0.2
        errors = index(y, p, smoother=smoother)
        assert math.isclose(errors.ici, 0.2, abs_tol=0.03)
        assert math.isclose(errors.e50, 0.2, abs_tol=0.03)


class TestWeights:
    @pytest.mark.parametrize("smoother", SMOOTHERS)
    def test_whole_weights_are_repetitions(self, smoother):
        for size in (30, 300):
            y, p = forecasts_and_outcomes(size)
            p = p.round(2).clip(0.01, 0.99)
            times = RNG.integers(0, 4, size)
            repeated = index(np.repeat(y, times), np.repeat(p, times), smoother=smoother)
            weighted = index(y, p, smoother=smoother, sample_weight=times)
            assert numbers(weighted) == pytest.approx(numbers(repeated), abs=1e-9)

    @pytest.mark.parametrize("smoother", SMOOTHERS)
    def test_the_unit_of_other_weights_and_the_order_of_rows_do_not_matter(self, smoother):
        y, p = forecasts_and_outcomes(200)
        weight = RNG.random(200)
        order = RNG.permutation(200)
        found = index(y, p, smoother=smoother, sample_weight=weight)
        for factor in (0.01, 5.3):
            other = index(y[order], p[order], smoother=smoother, sample_weight=factor * weight[order])
            assert numbers(other) == pytest.approx(numbers(found), abs=1e-9)

    def test_forecasts_of_0_and_1_join_the_nearest_between(self):
        y, p = forecasts_and_outcomes(200)
        with_ends = np.append(p, [0.0, 0.0, 1.0])
        moved = np.append(p, [p.min(), p.min(), p.max()])
        outcome = np.append(y, [0, 1, 0])
        for smoother in ("lowess", "splines"):
            found = calibrant.measures.calibration_curve(outcome, with_ends, smoother=smoother, at=[0.0, 0.2, 1.0])
            other = calibrant.measures.calibration_curve(outcome, moved, smoother=smoother, at=[p.min(), 0.2, p.max()])
            assert found.rate == pytest.approx(other.rate, abs=1e-12)


class TestLimits:
    def test_without_a_level_there_are_none(self):
        errors = index(*forecasts_and_outcomes(50))
        assert errors.limits("ici") is None
        assert (errors.confidence_level, errors.interval, errors.n_resamples) == (None, None, None)

    @pytest.mark.parametrize("smoother", SMOOTHERS)
    def test_they_hold_the_number_and_the_default_seed_repeats(self, smoother):
        y, p = forecasts_and_outcomes(150)
        order = RNG.permutation(150)
        first = index(y, p, smoother=smoother, confidence_level=0.9, n_resamples=12)
        assert first == index(y[order], p[order], smoother=smoother, confidence_level=0.9, n_resamples=12)
        assert first != index(y, p, smoother=smoother, confidence_level=0.9, n_resamples=12, rng=1)
        for name in NAMES:
            lower, upper = first.limits(name)
            assert 0.0 <= lower <= getattr(first, name) <= upper
        assert numbers(first) == numbers(index(y, p, smoother=smoother))

    def test_percentile_limits_are_quantiles_of_curves_fitted_again(self):
        y, p = forecasts_and_outcomes(80)
        tally = Tally.from_arrays(y, p)
        found = index(tally, smoother="loess", confidence_level=0.9, n_resamples=30, interval="percentile", rng=3)
        generator, values = np.random.default_rng(3), []
        kinds = np.concatenate([tally.forecast[tally.events > 0], tally.forecast[tally.events < tally.rows]])
        outcome = np.repeat([1, 0], [int((tally.events > 0).sum()), int((tally.events < tally.rows).sum())])
        for _ in range(30):
            drawn = generator.integers(0, 80, 80)
            values.append(index(outcome[drawn], kinds[drawn], smoother="loess").ici)
        assert found.limits("ici") == pytest.approx(tuple(np.quantile(values, [0.05, 0.95])), abs=1e-12)

    def test_counts_of_many_rows_are_drawn_as_counts(self, monkeypatch):
        y, p = forecasts_and_outcomes(1_500)
        exact = index(y, p, confidence_level=0.9, n_resamples=99)
        monkeypatch.setattr(curves, "MANY_ROWS", 1_000)
        monkeypatch.setattr(curves, "MOST_GROUPS", 300)
        pooled = index(y, p, confidence_level=0.9, n_resamples=99)
        assert numbers(pooled) == numbers(exact)
        for name in ("ici", "e50"):
            assert pooled.limits(name) == pytest.approx(exact.limits(name), abs=0.012)

    def test_clusters_are_drawn_whole(self):
        y, p = forecasts_and_outcomes(60)
        copies = np.tile(y, 8), np.tile(p, 8)
        apart = index(*copies, smoother="loess", confidence_level=0.9, n_resamples=40)
        whole = index(
            *copies, smoother="loess", confidence_level=0.9, n_resamples=40, cluster=np.tile(np.arange(60), 8)
        )
        assert whole.clusters == 60
        width = np.subtract(*whole.limits("e90")), np.subtract(*apart.limits("e90"))
        assert abs(width[0]) > 1.5 * abs(width[1])
        alone = index(*copies, smoother="loess", cluster=np.tile(np.arange(60), 8))
        assert (alone.ici, alone.confidence_level) == (pytest.approx(apart.ici), None)

    def test_weighted_rows_and_fractions_are_drawn_as_rows(self):
        y, p = forecasts_and_outcomes(100)
        weight = RNG.random(100)
        arrays = index(y, p, sample_weight=weight, smoother="loess", confidence_level=0.9, n_resamples=30)
        tally = Tally.from_arrays(y, p, sample_weight=weight)
        assert arrays == index(tally, smoother="loess", confidence_level=0.9, n_resamples=30)
        with pytest.raises(ValueError, match="need rows, and of this tally only totals are known"):
            index(tally.stretch(0, 50), confidence_level=0.9)

    @pytest.mark.parametrize("smoother", ["isotonic", "loess"])
    def test_rows_that_do_not_vary_have_none(self, smoother):
        y = np.repeat([0, 1], 30)
        with pytest.raises(UndefinedError, match="nothing in these rows shows how much ICI varies"):
            calibrant.measures.integrated_calibration_index(
                y, y, smoother=smoother, confidence_level=0.95, n_resamples=40
            )

    def test_a_number_that_is_the_same_in_all_resamples_has_none(self):
        """100 rows without an event at 0.5 are the furthest from the diagonal whatever is drawn; the others vary."""
        y, p = np.append(np.zeros(100), np.arange(100) % 10 > 0), np.repeat([0.5, 0.9], 100)
        found = calibrant.measures.integrated_calibration_index(y, p, confidence_level=0.95, n_resamples=40)
        assert (found.emax, found.limits("emax")) == (0.5, None)
        assert found.limits("ici") is not None
        assert "Emax 0.50000  no limits" in str(found)
        assert type(found).from_dict(found.to_dict()) == found

    @pytest.mark.parametrize("cluster", [None, np.arange(49) % 25])
    def test_fewer_than_50_rows_have_none(self, cluster):
        y, p = forecasts_and_outcomes(50)
        options = {"smoother": "loess", "confidence_level": 0.95, "n_resamples": 40}
        assert index(y, p, **options).limits("ici") is not None
        with pytest.raises(UndefinedError, match="there are 49 rows, and limits of a curve's distances need"):
            index(y[:49], p[:49], cluster=cluster, **options)
        study = calibrant.validate(y[:49], p[:49], n_resamples=40)
        assert study.ici == pytest.approx(index(y[:49], p[:49], smoother="loess").ici)
        assert {study.ici_lower, study.ici_upper, study.emax_lower, study.emax_upper} == {None}
        assert sum("need at least 50" in note for note in study.notes) == 1

    @pytest.mark.parametrize("interval", curves.INTERVALS)
    def test_limits_of_distances_are_at_most_1(self, interval):
        """Curves of resamples may leave the range from 0 to 1, and distances be larger than any rate allows."""
        values = np.linspace(0.5, 1.4, 200)[:, None] * [1.0, 1.0, 1.0, 1.0, 100.0]
        estimate = np.array([0.3, 0.3, 0.7, 0.9, 70.0])
        lower, upper = curves.INTERVALS[interval](values, 0.1 * values, estimate, 0.95)
        assert upper[2:].tolist() == [1.0, 1.0, 100.0]
        assert (lower <= upper).all()
        found = index(*forecasts_and_outcomes(60), confidence_level=0.9, n_resamples=20)
        with pytest.raises(InputError, match=r"emax_upper of this CurveErrors is 1\.1"):
            replace(found, emax_upper=1.1)


class TestCurve:
    @pytest.mark.parametrize("smoother", ["loess", "lowess", "splines"])
    def test_a_simultaneous_band_is_wider_than_a_pointwise_one(self, smoother):
        y, p = forecasts_and_outcomes(150)
        options = {"smoother": smoother, "confidence_level": 0.9, "n_resamples": 25}
        narrow = calibrant.measures.calibration_curve(y, p, **options)
        wide = calibrant.measures.calibration_curve(y, p, band="simultaneous", **options)
        assert narrow.rate == pytest.approx(wide.rate)
        assert (wide.upper - wide.lower).mean() > 1.2 * (narrow.upper - narrow.lower).mean()
        assert (narrow.band, wide.band, narrow.rows) == ("pointwise", "simultaneous", 150)
        assert list(narrow.frame()) == ["forecast", "rate", "lower", "upper"]

    def test_distances_are_those_of_the_curve(self):
        y, p = forecasts_and_outcomes(100)
        for smoother in SMOOTHERS:
            options: dict[str, Any] = {"smoother": smoother, "at": p}
            curve = calibrant.measures.calibration_curve(y, p, **options)
            distance = np.abs(curve.rate - p)
            assert index(y, p, smoother=smoother).ici == pytest.approx(distance.mean(), abs=1e-12)
            assert curve.band is None
            assert list(curve.frame()) == ["forecast", "rate"]

    def test_isotonic_steps_are_drawn_at_their_ends(self):
        curve = calibrant.measures.calibration_curve([0, 1, 0, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.5], smoother="isotonic")
        assert curve.forecast.tolist() == [0.1, 0.2, 0.4, 0.5]
        assert curve.rate == pytest.approx([0, 1 / 3, 1 / 3, 1])

    def test_reads_as_a_sentence(self):
        y, p = forecasts_and_outcomes(60)
        said = str(calibrant.measures.calibration_curve(y, p, confidence_level=0.9, n_resamples=20))
        assert said.startswith("loess curve of 60 rows at ")
        assert "with a band that holds at each forecast by itself in 90% of cases (20 resamples)" in said
        said = str(index(y, p, smoother="loess", confidence_level=0.9, n_resamples=20, cluster=np.arange(60) // 2))
        assert said.startswith("loess curve, 90% limits (20 resamples of 30 clusters):\n  ICI  ")


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (
            ([0, 0, 0, 0, 0, 0], np.arange(1, 7) / 8),
            {"smoother": "splines"},
            "every outcome is the same, so that no logistic",
        ),
        (([0, 1, 0, 1], [0.0, 0.0, 1.0, 1.0]), {"smoother": "lowess"}, "every forecast is 0 or 1, where the logit is"),
        (
            ([0, 1, 0], [0.2, 0.4, 0.6]),
            {"smoother": "splines"},
            "need at least 3 knots, and these 3 distinct forecasts",
        ),
        (
            (np.arange(40) >= 20, np.arange(1, 41) / 41),
            {"smoother": "splines"},
            "the forecasts separate the outcomes perfectly, so that",
        ),
        (
            (np.arange(60) == 20, np.arange(1, 61) / 61),
            {"smoother": "splines", "confidence_level": 0.9, "n_resamples": 20},
            r"there is no splines curve in \d+ of 20 resamples",
        ),
    ],
    ids=["one class", "all certain", "few forecasts", "separated", "one event"],
)
def test_says_why_there_is_no_curve(rows, options, message):
    with pytest.raises(UndefinedError, match=message):
        index(*rows, **options)


@pytest.mark.parametrize("smoother", ["isotonic", "loess", "lowess"])
@pytest.mark.parametrize(
    "rows", [([1], [0.3]), ([0, 1], [0.3, 0.3]), ([0, 0], [0.1, 0.9]), ([0, 1, 1], [0.2, 0.2, 0.7])]
)
def test_tiny_rows_have_curves(smoother, rows):
    errors = index(*rows, smoother=smoother)
    assert all(math.isfinite(number) for number in numbers(errors))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smoother": "isotonic", "confidence_level": 0.9}, "confidence_level is for smooth curves: resamples do not"),
        ({"at": [0.5, 0.99]}, r"at\[1\] is 0\.99, and the forecasts of these rows are from 0\.25 to 0\.75"),
        ({"at": [0.5, 1.5]}, r"at\[1\] is 1\.5, outside"),
        ({"band": "exact"}, "band must be one of 'pointwise', 'simultaneous', got 'exact'"),
        ({"confidence_level": 95}, "confidence_level is 95; write 0.95"),
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        calibrant.measures.calibration_curve([0, 1, 0, 1, 1], [0.25, 0.25, 0.5, 0.75, 0.75], **options)

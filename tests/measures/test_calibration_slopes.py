from typing import Any

import numpy as np
import pytest
from brute_force import rows
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import chi2, norm
from scipy.stats import f as f_law
from scipy.stats import t as student

import calibrant
from calibrant import InputError, Tally
from calibrant.core.errors import UndefinedError
from calibrant.measures import CalibrationSlope

calibration_slope_intercept: Any = calibrant.measures.calibration_slope_intercept  # options come in dicts
intercept_at_unit_slope: Any = calibrant.measures.intercept_at_unit_slope
likelihood_ratio_tests: Any = calibrant.measures.likelihood_ratio_tests
RNG = np.random.default_rng(7)
NAMES = ("slope", "intercept", "intercept_at_unit_slope")


def forecasts_and_outcomes(size=2_000, stretch=1.5, rng=RNG):
    logit = rng.normal(-1, 1.2, size)
    p = 1 / (1 + np.exp(-logit))
    y = rng.random(size) < 1 / (1 + np.exp(0.3 - logit / stretch))
    return y.astype(float), p


def limits(fit):
    return np.array([[getattr(fit, f"{name}_{end}") for end in ("lower", "upper")] for name in NAMES])


def glm(y, p, weight=None, **options):
    """Fit both curves of statsmodels: (intercept, slope), and the intercept with the slope held at 1."""
    from statsmodels.api import GLM, families

    logit = np.log(p) - np.log1p(-p)
    design = np.column_stack([np.ones_like(logit), logit])
    kept = {"family": families.Binomial(), "freq_weights": weight}
    free = GLM(y, design, **kept).fit(tol=1e-14, maxiter=200, **options)
    held = GLM(y, design[:, :1], offset=logit, **kept).fit(tol=1e-14, maxiter=200, **options)
    return free, held


def cost(y, p, intercept, slope):
    """Minus twice the log-likelihood."""
    linear = intercept + slope * (np.log(p) - np.log1p(-p))
    return 2 * float((np.logaddexp(0, linear) - y * linear).sum())


def lowest(function):
    from scipy.optimize import minimize_scalar

    return minimize_scalar(function, bracket=(-1, 1), options={"xtol": 1e-12}).fun


class TestSlope:
    def test_equals_an_unpenalised_logistic_regression(self):
        y, p = forecasts_and_outcomes()
        w = RNG.integers(1, 5, y.size).astype(float)
        for weight in (None, w):
            free, held = glm(y, p, weight)
            ours = calibration_slope_intercept(y, p, sample_weight=weight)
            assert (ours.intercept, ours.slope) == pytest.approx(tuple(free.params), abs=1e-9)
            assert ours.intercept_at_unit_slope == pytest.approx(held.params[0], abs=1e-9)
            assert (ours.confidence_level, ours.slope_lower, ours.interval, ours.notes) == (None, None, None, ())

    def test_is_one_and_zero_where_outcomes_equal_forecasts(self):
        p = np.linspace(0.01, 0.99, 50)
        fit = calibration_slope_intercept(p, p)
        assert (fit.slope, fit.intercept, fit.intercept_at_unit_slope) == pytest.approx((1, 0, 0), abs=1e-9)

    def test_recovers_a_wild_recalibration(self):
        logit = np.linspace(-30, 30, 401)
        p, y = (1 / (1 + np.exp(-x)) for x in (logit, 0.02 * logit - 4))
        fit = calibration_slope_intercept(y, p)
        assert (fit.slope, fit.intercept) == pytest.approx((0.02, -4), abs=1e-7)

    def test_refuses_a_likelihood_too_flat_to_climb(self):
        tiny = 1e-300
        with pytest.raises(ValueError, match=r"does not settle.*numpy\.clip"):
            calibration_slope_intercept([1, 0, 1, 0], [tiny, 2 * tiny, 3 * tiny, 4 * tiny])

    @pytest.mark.parametrize("level", [None, 0.95])
    @pytest.mark.parametrize(
        ("y", "p", "message"),
        [
            ([1, 0, 1], [0.0, 1.0, 0.6], "at least two distinct forecasts"),
            ([1, 0, 1], [0.0, 1.0, 0.0], "at least two distinct forecasts"),
            ([1], [0.5], "at least two distinct forecasts"),
            ([0, 1, 0], [0.3, 0.3, 0.3], "at least two distinct forecasts"),
            ([0, 0, 0], [0.3, 0.4, 0.5], "every outcome that counts here is 0"),
            ([1, 1, 1], [0.3, 0.4, 0.5], "every outcome that counts here is 1"),
            ([0, 0, 1], [0.3, 0.4, 0.5], "separate the outcomes perfectly"),
            ([1, 0, 0], [0.3, 0.4, 0.5], "separate the outcomes perfectly"),
            ([0, 0, 1, 1], [0.3, 0.4, 0.4, 0.5], "separate the outcomes perfectly"),
        ],
    )
    def test_says_why_no_finite_fit_exists(self, y, p, message, level):
        with pytest.raises(UndefinedError, match=message):
            calibration_slope_intercept(y, p, confidence_level=level)
        with pytest.raises(UndefinedError, match=message):
            likelihood_ratio_tests(y, p)
        result = calibrant.measure(y, p)
        assert result.slope is None
        assert any(message in note for note in result.notes)


class TestExtremes:
    def test_rows_left_out_have_no_say_and_are_counted(self):
        y, p = forecasts_and_outcomes(300)
        plain = calibration_slope_intercept(y, p, confidence_level=0.9)
        more = np.append(y, [0, 1, 1, 0, 0]), np.append(p, [0.0, 1.0, 0.0, 1.0, 0.0])
        note = (
            "5 rows with a forecast of exactly 0 or 1 were left out of the slope, since the logit is infinite "
            "there. 2 outcomes contradict them: the forecasts are worse than the slope says."
        )
        found = calibration_slope_intercept(*more, confidence_level=0.9)
        for each in (found, calibration_slope_intercept(*more)):
            assert [getattr(each, name) for name in NAMES] == [getattr(plain, name) for name in NAMES]
            assert (each.left_out, each.contradicted, each.rows, each.notes) == (5, 2, 300, (note,))
        np.testing.assert_array_equal(limits(found), limits(plain))
        assert calibrant.measure(*more).slope == calibration_slope_intercept(*more)
        assert note in calibrant.measure(*more).notes

    def test_one_row_that_agrees_is_said_to(self):
        y, p = forecasts_and_outcomes(300)
        y, p = np.append(y, 0), np.append(p, 0)
        (note,) = calibration_slope_intercept(y, p).notes
        assert note not in calibrant.measure(y, p).notes  # it fits every positive slope
        assert note.startswith("1 row with a forecast of exactly 0 or 1 was left out")
        assert note.endswith(". No outcome contradicts them.")

    @pytest.mark.parametrize("weight", [None, [1.0, 2.0, 0.5, 1.0, 1.0, 3.0, 1.5]])
    def test_contradictions_are_rows_whatever_their_weights_and_fractions(self, weight):
        y, p = [0.5, 0, 0, 1, 0.25, 1, 0.5], [0.0, 0.0, 1.0, 1.0, 0.5, 0.25, 0.75]
        assert "4 rows" in (note := calibration_slope_intercept(y, p, sample_weight=weight).notes[0])
        assert "2 outcomes contradict" in note
        # Where only totals are known, all rows at a forecast that is wrong for some count.
        totals = Tally.from_arrays(y, p, sample_weight=weight).at_means()
        assert "4 outcomes contradict" in calibration_slope_intercept(totals).notes[0]

    def test_forecasts_are_pulled_inside_on_request(self):
        y, p = forecasts_and_outcomes(200)
        y, p = np.append(y, [0, 1, 0, 1]), np.append(p, [0.0, 0.0, 1.0, 1e-9])
        pulled = np.clip(p, 0.001, 0.999)
        other = calibration_slope_intercept(y, pulled, confidence_level=0.95)
        found = calibration_slope_intercept(y, p, extremes=0.001, confidence_level=0.95)
        np.testing.assert_array_equal(limits(found), limits(other))
        for each in (found, calibration_slope_intercept(y, p, extremes=0.001)):
            assert [getattr(each, name) for name in NAMES] == pytest.approx([getattr(other, name) for name in NAMES])
        assert likelihood_ratio_tests(y, p, extremes=0.001) == likelihood_ratio_tests(y, pulled)

    def test_they_are_refused_on_request(self):
        y, p = [0, 1, 0, 1, 0], [0.2, 0.3, 0.6, 0.7, 0.0]
        for level in (None, 0.95):
            with pytest.raises(UndefinedError, match=r"y_prob holds 1 forecast of exactly 0 or 1.*leave them out"):
                calibration_slope_intercept(y, p, extremes="refuse", confidence_level=level)
        assert calibration_slope_intercept(y[:4], p[:4], extremes="refuse").left_out == 0

    @pytest.mark.parametrize("rule", ["drop", 0.0, 0.5, -1, True, None, float("nan")])
    def test_the_rule_is_checked(self, rule):
        with pytest.raises(InputError, match="extremes"):
            calibration_slope_intercept([0, 1, 0, 1], [0.2, 0.3, 0.6, 0.7], extremes=rule)


class TestProfile:
    @pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
    def test_limits_are_where_the_likelihood_has_dropped(self, level):
        y, p = forecasts_and_outcomes(150)
        fit = calibration_slope_intercept(y, p, confidence_level=level)
        drop = chi2.ppf(level, 1)
        best = cost(y, p, fit.intercept, fit.slope)
        held = cost(y, p, fit.intercept_at_unit_slope, 1)
        for slope in (fit.slope_lower, fit.slope_upper):
            assert lowest(lambda a, b=slope: cost(y, p, a, b)) - best == pytest.approx(drop, abs=1e-8)
        for intercept in (fit.intercept_lower, fit.intercept_upper):
            assert lowest(lambda b, a=intercept: cost(y, p, a, b)) - best == pytest.approx(drop, abs=1e-8)
        for intercept in (fit.intercept_at_unit_slope_lower, fit.intercept_at_unit_slope_upper):
            assert cost(y, p, intercept, 1) - held == pytest.approx(drop, abs=1e-8)
        assert (limits(fit)[:, 0] < [getattr(fit, name) for name in NAMES]).all()
        assert (limits(fit)[:, 1] > [getattr(fit, name) for name in NAMES]).all()
        assert (fit.interval, fit.confidence_level, fit.rows, fit.clusters) == ("profile", level, 150, None)

    @pytest.mark.parametrize("apart", [1e-2, 1e-6, 1e-12])
    def test_limits_are_finite_however_near_to_separation(self, apart):
        """One pair out of order keeps every curve from being steep enough, though it may be very steep."""
        p = np.array([0.1, 0.2, 0.3, 0.5, 0.5 + apart, 0.7, 0.8, 0.9])
        y = np.array([0, 0, 0, 1, 0, 1, 1, 1])
        fit = calibration_slope_intercept(y, p, confidence_level=0.95)
        found = limits(fit)
        assert np.isfinite(found).all()
        best, drop = cost(y, p, fit.intercept, fit.slope), chi2.ppf(0.95, 1)

        def dropped(slope):
            middle = -slope * np.log((0.5 + apart / 2) / (0.5 - apart / 2))  # where the order is wrong
            from scipy.optimize import minimize_scalar

            return minimize_scalar(lambda a: cost(y, p, a, slope), bracket=(middle - 1, middle + 1)).fun - best

        assert dropped(fit.slope_upper) == pytest.approx(drop, abs=1e-6)
        assert fit.slope_upper > 2 * fit.slope

    def test_two_forecasts_and_two_rows_of_each(self):
        fit = calibration_slope_intercept([0, 1, 0, 1], [0.4, 0.4, 0.6, 0.6], confidence_level=0.95)
        # With rates of 1/2 at both: by symmetry the curve crosses 1/2 at 1/2 whatever its slope.
        drop = chi2.ppf(0.95, 1)
        logit = np.log(1.5)
        expected = brentq(
            lambda b: 4 * (np.logaddexp(0, b * logit) + np.logaddexp(0, -b * logit) - 2 * np.log(2)) - drop, 1e-9, 100
        )
        assert (fit.slope_lower, fit.slope_upper) == pytest.approx((-expected, expected), rel=1e-9)

    def test_many_forecasts_start_from_pooled_ones_and_end_at_the_same(self):
        y, p = forecasts_and_outcomes(20_000)
        fit = calibration_slope_intercept(y, p, confidence_level=0.95)
        best, drop = cost(y, p, fit.intercept, fit.slope), chi2.ppf(0.95, 1)
        for slope in (fit.slope_lower, fit.slope_upper):
            assert lowest(lambda a, b=slope: cost(y, p, a, b)) - best == pytest.approx(drop, abs=1e-6)
        wald = calibration_slope_intercept(y, p, confidence_level=0.95, interval="wald")
        np.testing.assert_allclose(limits(fit), limits(wald), atol=2e-3)

    def test_forecasts_far_from_half_and_close_together(self):
        p = np.array([1e-6, 1.1e-6, 1.2e-6, 1.3e-6])
        tally = Tally.from_counts(p, [10**6] * 4, [3, 0, 2, 1])
        fit = calibration_slope_intercept(tally, confidence_level=0.95)
        y = np.array([3, 0, 2, 1]) / 1e6
        best = 1e6 * cost(y, p, fit.intercept, fit.slope)
        for intercept in (fit.intercept_lower, fit.intercept_upper):
            middle = (intercept + 13) / 13.7

            def risen(b, a=intercept):
                return 1e6 * cost(y, p, a, b)

            from scipy.optimize import minimize_scalar

            least = minimize_scalar(risen, bracket=(middle - 0.01, middle + 0.01), options={"xtol": 1e-12}).fun
            assert least - best == pytest.approx(chi2.ppf(0.95, 1), abs=1e-5)

    def test_counts_are_rows(self):
        counts = Tally.from_counts([0.2, 0.4, 0.7], [50, 30, 20], [15, 10, 17])
        y = np.repeat([1, 0, 1, 0, 1, 0], [15, 35, 10, 20, 17, 3])
        p = np.repeat([0.2, 0.4, 0.7], [50, 30, 20])
        for interval in ("profile", "wald", "sandwich"):
            one, other = (
                calibration_slope_intercept(*each, confidence_level=0.95, interval=interval)
                for each in ((counts,), (y, p))
            )
            np.testing.assert_allclose(limits(one), limits(other), rtol=1e-12)
            assert one.rows == other.rows == 100
        many = Tally.from_counts([0.2, 0.4, 0.7], [5 * 10**11, 3 * 10**11, 2 * 10**11], [10**11, 10**11, 10**11])
        one, other = (
            calibration_slope_intercept(many, confidence_level=0.95, interval=interval)
            for interval in ("profile", "wald")
        )
        assert one.rows == 10**12
        np.testing.assert_allclose(limits(one), limits(other), atol=1e-10)

    @settings(max_examples=25, deadline=None)
    @given(data=rows(binary=True, weighted=False), seed=st.integers(0, 2**32 - 1))
    def test_limits_hold_the_estimate_in_any_order_of_rows(self, data, seed):
        y, p, _ = data
        try:
            fit = calibration_slope_intercept(y, p, confidence_level=0.9)
        except UndefinedError:
            assume(False)
        order = np.random.default_rng(seed).permutation(len(p))
        other = calibration_slope_intercept(y[order], p[order], confidence_level=0.9)
        np.testing.assert_array_equal(limits(fit), limits(other))
        estimate = np.array([getattr(fit, name) for name in NAMES])
        assert (limits(fit)[:, 0] <= estimate).all()
        assert (estimate <= limits(fit)[:, 1]).all()


class TestWald:
    def test_curvature_and_sandwich_equal_statsmodels(self):
        y, p = forecasts_and_outcomes(400)
        for interval, options in (("wald", {}), ("sandwich", {"cov_type": "HC0"})):
            free, held = glm(y, p, **options)
            few = 1.0 if interval == "wald" else student.ppf(0.95, 398) / norm.ppf(0.95) * np.sqrt(400 / 398)
            ours = limits(calibration_slope_intercept(y, p, confidence_level=0.9, interval=interval))
            theirs = np.array([*free.conf_int(0.1)[::-1], held.conf_int(0.1)[0]])
            np.testing.assert_allclose(ours.mean(axis=1), theirs.mean(axis=1), rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(ours @ [-1, 1], few * (theirs @ [-1, 1]), rtol=1e-7)

    @pytest.mark.parametrize("interval", ["profile", "wald", "sandwich"])
    def test_clusters_are_what_varies(self, interval):
        y, p = forecasts_and_outcomes(400)
        cluster = RNG.integers(0, 23, 400)
        fit = calibration_slope_intercept(y, p, confidence_level=0.9, interval=interval, cluster=cluster)
        options = {"cov_type": "cluster", "cov_kwds": {"groups": cluster, "use_correction": False}}
        free, held = glm(y, p, **options)
        count = np.unique(cluster).size
        away = student.ppf(0.95, count - 1) * np.sqrt(count / (count - 1))
        error = np.array([free.bse[1], free.bse[0], held.bse[0]])
        np.testing.assert_allclose(limits(fit) @ [-0.5, 0.5], away * error, rtol=1e-7)
        assert (fit.interval, fit.clusters) == ("sandwich", count)
        said = ("rows are in clusters, so the limits are those of the sandwich, which needs no likelihood",)
        assert fit.notes == (() if interval == "sandwich" else said)
        assert f"90% limits, sandwich, {count} clusters" in str(fit)

    def test_each_row_a_cluster_of_its_own_is_no_cluster(self):
        y, p = forecasts_and_outcomes(100)
        alone = calibration_slope_intercept(y, p, confidence_level=0.9, interval="sandwich")
        single = calibration_slope_intercept(y, p, confidence_level=0.9, cluster=np.arange(100))
        ratio = student.ppf(0.95, 99) / student.ppf(0.95, 98) * np.sqrt(98 / 99)  # one degree, or two coefficients
        np.testing.assert_allclose(limits(single) @ [-1, 1], ratio * (limits(alone) @ [-1, 1]), rtol=1e-10)

    def test_weights_are_no_counts(self):
        """The unit of weights does not matter, and equal ones are none; unequal ones need the sandwich."""
        y, p = forecasts_and_outcomes(300)
        plain = calibration_slope_intercept(y, p, confidence_level=0.9)
        np.testing.assert_allclose(
            limits(calibration_slope_intercept(y, p, confidence_level=0.9, sample_weight=np.full(300, 3.0))),
            limits(plain),
            rtol=1e-12,
        )
        w = RNG.integers(1, 4, 300).astype(float)
        fit = calibration_slope_intercept(y, p, confidence_level=0.9, sample_weight=w)
        assert fit.interval == "sandwich"
        assert fit.notes[0].startswith("rows are of different weights, so the limits are those of the sandwich")
        np.testing.assert_allclose(
            limits(calibration_slope_intercept(y, p, confidence_level=0.9, sample_weight=w / 7)),
            limits(fit),
            rtol=1e-10,
        )
        logit = np.log(p / (1 - p))
        design = np.column_stack([logit, np.ones(300)])
        rate = 1 / (1 + np.exp(-(fit.intercept + fit.slope * logit)))
        bread = np.linalg.inv(design.T @ (design * (w * rate * (1 - rate))[:, None]))
        score = design * (w * (y - rate))[:, None]
        error = np.sqrt(np.diag(bread @ score.T @ score @ bread))
        left = w.sum() ** 2 / (w**2).sum() - 2
        away = student.ppf(0.95, left) * np.sqrt((left + 2) / left)
        np.testing.assert_allclose(limits(fit)[:2] @ [-0.5, 0.5], away * error, rtol=1e-9)
        tests = likelihood_ratio_tests(y, p, sample_weight=w)
        at_p = calibration_slope_intercept(y, p, sample_weight=w, confidence_level=1 - tests.slope.pvalue)
        assert min(abs(end - 1) for end in (at_p.slope_lower, at_p.slope_upper)) < 1e-6  # limits and test agree
        assert tests.weak.pvalue == pytest.approx(f_law.sf(tests.weak.statistic / 2, 2, left), rel=1e-9)

    def test_weight_on_two_rows_says_nothing(self):
        with pytest.raises(UndefinedError, match="too few rows carry the weight"):
            calibration_slope_intercept(
                [0, 1, 0, 1],
                [0.2, 0.3, 0.6, 0.7],
                sample_weight=[1, 1e-6, 1e-6, 0.9],
                confidence_level=0.9,
            )

    def test_fractions_have_no_likelihood(self):
        y, p = forecasts_and_outcomes(300)
        fit = calibration_slope_intercept(0.5 * y + 0.25, p, confidence_level=0.9)
        assert fit.notes[0].startswith("rows are fractions of events")
        wald = calibration_slope_intercept(y, p, confidence_level=0.9)
        # Half as far from their mean, outcomes vary half as much.
        assert fit.slope_upper - fit.slope_lower < 0.7 * (wald.slope_upper - wald.slope_lower)

    def test_resamples_of_rows_and_clusters(self):
        y, p = forecasts_and_outcomes(200)
        y, p = np.append(y, 1), np.append(p, 0)
        wald = calibration_slope_intercept(y, p, confidence_level=0.8, interval="sandwich")
        options = {"confidence_level": 0.8, "interval": "bootstrap", "n_resamples": 60}
        for cluster in (None, np.arange(201) // 2):
            fit = calibration_slope_intercept(y, p, cluster=cluster, **options)
            np.testing.assert_allclose(limits(fit), limits(wald), atol=0.2)
            assert (fit.interval, fit.n_resamples, fit.left_out) == ("bootstrap", 60, 1)
            assert fit == calibration_slope_intercept(y, p, cluster=cluster, rng=0, **options)

    def test_too_few_resamples_or_clusters_are_refused(self):
        y, p = [0, 1, 0, 1], [0.2, 0.3, 0.6, 0.7]
        with pytest.raises(InputError, match="n_resamples is 5, too few"):
            calibration_slope_intercept(y, p, confidence_level=0.95, interval="bootstrap", n_resamples=5)
        with pytest.raises(UndefinedError, match="cluster holds one cluster only"):
            calibration_slope_intercept(y, p, confidence_level=0.95, cluster=[1, 1, 1, 1])
        with pytest.raises(UndefinedError, match="cluster holds one cluster only"):  # the other has forecasts of 0 only
            calibration_slope_intercept([*y, 0], [*p, 0.0], confidence_level=0.95, cluster=[1, 1, 1, 1, 2])
        with pytest.raises(UndefinedError, match=r"undefined in .* of 19 resamples"):
            calibration_slope_intercept(y, p, confidence_level=0.95, interval="bootstrap", n_resamples=19)

    def test_options_are_checked(self):
        y, p = [0, 1, 0, 1], [0.2, 0.3, 0.6, 0.7]
        with pytest.raises(InputError, match="interval"):
            calibration_slope_intercept(y, p, interval="score")
        with pytest.raises(InputError, match=r"confidence_level is 95; write 0\.95"):
            calibration_slope_intercept(y, p, confidence_level=95)
        totals = Tally.from_arrays(y, p, sample_weight=[1, 2, 3, 4]).at_means()
        with pytest.raises(UndefinedError, match="only totals are known here"):
            calibration_slope_intercept(totals, confidence_level=0.95)
        assert calibration_slope_intercept(y, p, cluster=[1, 1, 2, 2]) == calibration_slope_intercept(y, p)


class TestTests:
    def test_likelihood_ratios_are_differences_of_deviances(self):
        y, p = forecasts_and_outcomes(300)
        fit, tests = calibration_slope_intercept(y, p), likelihood_ratio_tests(y, p)
        zero, held = cost(y, p, 0, 1), cost(y, p, fit.intercept_at_unit_slope, 1)
        free = cost(y, p, fit.intercept, fit.slope)
        for found, statistic, degrees in (
            (tests.weak, zero - free, 2),
            (tests.in_the_large, zero - held, 1),
            (tests.slope, held - free, 1),
        ):
            assert found.statistic == pytest.approx(statistic, abs=1e-9)
            assert found.degrees_of_freedom == degrees
            assert found.pvalue == pytest.approx(chi2.sf(statistic, degrees), rel=1e-8)
        assert (tests.test, tests.rows, tests.clusters, tests.left_out) == ("likelihood ratio", 300, None, 0)
        frame = tests.frame()
        assert list(frame["test"]) == ["weak", "in_the_large", "slope"]
        assert list(frame["degrees_of_freedom"]) == [2, 1, 1]

    def test_robust_tests_agree_with_the_limits(self):
        y, p = forecasts_and_outcomes(400)
        cluster = np.arange(400) // 10
        tests = likelihood_ratio_tests(y, p, cluster=cluster)
        assert (tests.test, tests.clusters) == ("robust wald", 40)
        for name, found, ideal in (("slope", tests.slope, 1), ("intercept_at_unit_slope", tests.in_the_large, 0)):
            at_p = calibration_slope_intercept(y, p, cluster=cluster, confidence_level=max(1 - found.pvalue, 0.5))
            if found.pvalue <= 0.5:  # the limits of that level just reach the ideal
                near = getattr(at_p, f"{name}_lower"), getattr(at_p, f"{name}_upper")
                assert min(abs(end - ideal) for end in near) < 1e-6
        options = {"cov_type": "cluster", "cov_kwds": {"groups": cluster, "use_correction": False}}
        free, _ = glm(y, p, **options)
        apart = free.params - [0, 1]
        wald = apart @ np.linalg.solve(free.cov_params() * 40 / 39, apart)
        assert tests.weak.statistic == pytest.approx(wald, rel=1e-6)
        assert tests.weak.pvalue == pytest.approx(f_law.sf(wald * 38 / (2 * 39), 2, 38), rel=1e-6)

    def test_many_clusters_of_one_and_weights_are_near_the_likelihood(self):
        y, p = forecasts_and_outcomes(2_000, stretch=1.1)
        ratio = likelihood_ratio_tests(y, p)
        for options in ({"cluster": np.arange(2_000)}, {"sample_weight": np.where(np.arange(2_000) < 1, 1.001, 1.0)}):
            robust = likelihood_ratio_tests(y, p, **options)
            assert robust.test == "robust wald"
            assert robust.weak.statistic == pytest.approx(ratio.weak.statistic, rel=0.15)

    def test_what_is_left_out_is_said(self):
        y, p = forecasts_and_outcomes(100)
        tests = likelihood_ratio_tests(np.append(y, 1), np.append(p, 0))
        assert (tests.left_out, tests.rows) == (1, 100)
        assert "1 outcome contradicts them" in str(tests)

    def test_two_clusters_are_too_few(self):
        with pytest.raises(UndefinedError, match="cluster holds too few clusters"):
            likelihood_ratio_tests([0, 1, 0, 1], [0.2, 0.3, 0.6, 0.7], cluster=[1, 1, 2, 2])


def test_it_reads_as_a_sentence_and_a_frame():
    fit = CalibrationSlope(
        slope=0.9,
        intercept=-0.1,
        intercept_at_unit_slope=0.25,
        slope_lower=0.8,
        slope_upper=1.0,
        intercept_lower=-0.2,
        intercept_upper=0.0,
        intercept_at_unit_slope_lower=0.2,
        intercept_at_unit_slope_upper=0.3,
        confidence_level=0.95,
        interval="wald",
        notes=("so it is",),
    )
    assert str(fit) == (
        "calibration slope 0.9000 [0.8000 to 1.0000], intercept -0.1000 [-0.2000 to 0.0000] (with the slope held at 1: "
        "0.2500 [0.2000 to 0.3000]); 95% limits, wald\nNote: so it is"
    )
    assert fit.frame().values.tolist() == [
        ["slope", 0.9, 0.8, 1.0],
        ["intercept", -0.1, -0.2, 0.0],
        ["intercept_at_unit_slope", 0.25, 0.2, 0.3],
    ]


# --- The intercept with the slope held at 1, where there is no slope --------------------------------------------------

WITHOUT_SLOPE = {
    "one forecast for all rows": ([0, 1, 0, 0, 1, 0, 0, 0], [0.4] * 8),
    "separated": ([0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.4, 0.5, 0.7, 0.95]),
    "separated the wrong way": ([1, 1, 0, 0], [0.1, 0.3, 0.6, 0.8]),
}


def log_likelihood_at(intercept, y_true, y_prob):
    """The log-likelihood of logit(rate) = intercept + logit(p), written down anew."""
    rate = expit(intercept + logit(np.asarray(y_prob)))
    return float(np.sum(np.where(np.asarray(y_true) == 1, np.log(rate), np.log1p(-rate))))


@pytest.mark.parametrize(("y_true", "y_prob"), WITHOUT_SLOPE.values(), ids=WITHOUT_SLOPE.keys())
def test_the_intercept_at_slope_one_is_there_without_a_slope(y_true, y_prob):
    with pytest.raises(UndefinedError):
        calibration_slope_intercept(y_true, y_prob)
    found = intercept_at_unit_slope(y_true, y_prob, confidence_level=0.9)
    assert found.estimate == intercept_at_unit_slope(y_true, y_prob)
    assert expit(found.estimate + logit(np.array(y_prob))).sum() == pytest.approx(sum(y_true), abs=1e-9)  # its equation
    top = log_likelihood_at(found.estimate, y_true, y_prob)
    for limit in (found.lower, found.upper):
        assert 2.0 * (top - log_likelihood_at(limit, y_true, y_prob)) == pytest.approx(chi2.ppf(0.9, 1), rel=1e-6)
    assert found.lower < found.estimate < found.upper


@pytest.mark.parametrize(
    "options", [{}, {"interval": "wald"}, {"interval": "bootstrap"}, {"cluster": np.arange(60) // 3}]
)
def test_the_intercept_at_slope_one_is_that_of_the_slope_where_there_is_one(options):
    rng = np.random.default_rng(3)
    forecast = rng.random(60)
    outcome = rng.random(60) < forecast
    both = calibration_slope_intercept(outcome, forecast, confidence_level=0.95, n_resamples=100, **options)
    alone = intercept_at_unit_slope(outcome, forecast, confidence_level=0.95, n_resamples=100, **options)
    assert (alone.estimate, alone.interval) == (both.intercept_at_unit_slope, both.interval)
    ends = both.intercept_at_unit_slope_lower, both.intercept_at_unit_slope_upper
    assert (alone.lower, alone.upper) == pytest.approx(ends, rel=1e-12)


def test_the_intercept_at_slope_one_needs_both_outcomes_inside():
    with pytest.raises(UndefinedError, match="every outcome that counts here is 0; the intercept at slope 1 needs"):
        intercept_at_unit_slope([0, 0, 1], [0.2, 0.3, 1.0])
    with pytest.raises(UndefinedError, match="a forecast strictly between 0 and 1"):
        intercept_at_unit_slope([0, 1], [0.0, 1.0])


def test_validate_and_measure_say_the_intercept_at_slope_one_without_a_slope():
    outcome, forecast = [0, 1, 0, 0] * 15, [0.4] * 60
    study = calibrant.validate(outcome, forecast, n_resamples=50)
    alone = intercept_at_unit_slope(outcome, forecast, confidence_level=0.95)
    assert study.slope is None
    found = study.intercept_at_unit_slope, study.intercept_at_unit_slope_lower, study.intercept_at_unit_slope_upper
    assert found == pytest.approx((alone.estimate, alone.lower, alone.upper), rel=1e-9)
    assert found[0] == pytest.approx(logit(0.25) - logit(0.4))
    (note,) = [note for note in calibrant.measure(outcome, forecast).notes if "slope" in note]
    assert note.endswith("; the intercept at slope 1 is -0.6931")

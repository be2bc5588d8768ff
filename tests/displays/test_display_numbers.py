import math
from dataclasses import asdict, replace

import numpy as np
import pytest
from display_cases import check_words, drawn_colours, million, rows
from matplotlib.patches import Rectangle
from scipy.stats import binomtest
from sklearn.isotonic import IsotonicRegression

import calibrant
from calibrant import CertificateDisplay, CumulativeDisplay, ReliabilityDisplay, Tally
from calibrant.core.laws import brownian_range
from calibrant.displays import DecisionCurveDisplay, DifferencesDisplay, RiskGapDisplay, SpectrumDisplay
from calibrant.displays.cumulative import _events_drawn
from calibrant.displays.palette import PALETTES


def label_of(drawn):
    """What the legend says of something that was drawn."""
    assert drawn is not None
    return str(drawn.get_label())


def legend_of(display):
    """The texts of the legend."""
    assert display.legend_ is not None
    return [text.get_text().replace("\n", " ") for text in display.legend_.get_texts()]


def places_of(line):
    """Where a line was drawn, as two arrays."""
    return np.asarray(line.get_xdata()), np.asarray(line.get_ydata())


# --- Cumulative residuals ---------------------------------------------------------------------------------------------


def test_the_cumulative_curve_is_the_running_sum():
    y, p = rows(200, ties=17)
    display = CumulativeDisplay.from_predictions(y, p)
    for forecast, share, deviation in zip(display.forecast, display.share, display.deviation, strict=True):
        below = p <= forecast
        if forecast == 0.0:
            below[:] = False
        assert share == pytest.approx(below.mean())
        assert deviation == pytest.approx(np.where(below, y - p, 0.0).mean(), abs=1e-12)
    assert display.deviation.max() - display.deviation.min() == pytest.approx(calibrant.cutoff_calibration_error(y, p))
    np.testing.assert_array_equal(display.line_.get_xdata(), display.forecast)
    np.testing.assert_array_equal(display.line_.get_ydata(), display.deviation)


@pytest.mark.parametrize("ends", [(), (0.0,), (1e-12, 0.5, 1.0 - 1e-12, 1.0), (0.25, 0.25)])
def test_events_of_single_rows_are_those_that_a_binomial_law_draws(ends):
    p = np.sort([*np.random.default_rng(5).random(300), *ends])
    tally = Tally.from_arrays(np.zeros(p.size), p)
    drawn = _events_drawn(tally, np.random.default_rng(6))((50, len(tally)))
    np.testing.assert_array_equal(
        drawn, np.random.default_rng(6).binomial(tally.rows, tally.forecast, size=(50, len(tally)))
    )


@pytest.mark.parametrize("x", ["forecast", "share"])
def test_the_worst_interval_is_shaded_and_named(x):
    y, p = rows(200)
    worst = calibrant.worst_interval(y, p)
    display = CumulativeDisplay.from_predictions(y, p, x=x)
    shaded = display.worst_
    assert isinstance(shaded, Rectangle)
    ends = np.array([shaded.get_x(), shaded.get_x() + shaded.get_width()])
    expected = (worst.low, worst.high) if x == "forecast" else ((p < worst.low).mean(), (p <= worst.high).mean())
    np.testing.assert_allclose(ends, expected, atol=1e-12)
    # The curve's heights at those ends differ by the Cutoff error.
    if x == "share":
        gap = abs(
            np.interp(ends[1], display.share, display.deviation) - np.interp(ends[0], display.share, display.deviation)
        )
        assert gap == pytest.approx(worst.error)
    else:
        assert {worst.low, worst.high} <= set(places_of(display.line_)[0].tolist())
    said = " ".join(legend_of(display)).replace("\n", " ")
    assert f"forecasts from {worst.low:.4g} to {worst.high:.4g} are too high by" in said
    assert f"Cutoff calibration error {worst.error:.5f}" in said


def test_a_single_worst_forecast_and_no_error_are_named():
    exact = CumulativeDisplay.from_predictions([0, 0, 1, 1], [0.5, 0.5, 0.5, 0.5])
    assert exact.worst_.get_label() == "worst interval: none, every interval of forecasts is right on average"
    one = CumulativeDisplay.from_predictions([0, 0], [0.5, 0.5])
    assert label_of(one.worst_).startswith("worst interval: forecasts of exactly 0.5 are too high by 50.00 percentage")


def test_calibrated_forecasts_stay_in_a_strip_as_high_as_the_band():
    rng = np.random.default_rng(8)
    y, p = rows(60, ties=9)
    display = CumulativeDisplay.from_predictions(y, p, n_resamples=1999)
    assert display.band_from == "simulation"
    assert display.band_height is not None
    order = np.argsort(p)
    last = np.append(np.diff(p[order]) > 0, True)  # where a run of equal forecasts ends
    inside = 0
    for _ in range(3000):
        curve = np.cumsum((rng.random(60) < p)[order] - p[order])[last] / 60
        inside += max(curve.max(), 0.0) - min(curve.min(), 0.0) <= display.band_height + 1e-12
    assert 0.935 <= inside / 3000 <= 0.975  # draws of both, and jumps of the law


def test_the_band_of_many_rows_is_the_brownian_range():
    y, p = rows(20_000)
    display = CumulativeDisplay.from_predictions(y, p, confidence_level=0.9)
    assert display.band_from == "large-sample law"
    assert display.band_height == pytest.approx(brownian_range.ppf(0.9) * math.sqrt((p * (1 - p)).sum()) / 20_000)
    simulated = CumulativeDisplay.from_predictions(y, p, confidence_level=0.9, band="simulation", n_resamples=399)
    assert simulated.band_height == pytest.approx(display.band_height, rel=0.1)
    assert "large-sample law" in label_of(display.band_)
    assert "399 simulations" in label_of(simulated.band_)


@pytest.mark.parametrize("swing", [0.0, 0.3, -0.3])
@pytest.mark.parametrize("shift", [0.0, 0.1])
@pytest.mark.parametrize("share", [0.1, 0.7, 0.99, 1.01])
def test_the_curve_leaves_the_band_exactly_when_its_range_is_larger(swing, shift, share):
    p = (np.arange(200) + 0.5) / 200
    rate = np.clip(p + swing * np.sin(2 * np.pi * p) + shift, 0, 1)
    computed = CumulativeDisplay.from_predictions(np.random.default_rng(1).random(200) < rate, p)
    display = replace(computed, band_height=share * computed.worst.error).plot()
    assert display.band_ is not None
    low, high = display.band_.get_y(), display.band_.get_y() + display.band_.get_height()
    assert high - low == pytest.approx(display.band_height)
    assert low <= 1e-12
    assert high >= -1e-12
    inside = display.deviation.min() >= low - 1e-12 and display.deviation.max() <= high + 1e-12
    assert inside == (share > 1.0)


def test_no_band_is_drawn_when_none_is_asked_for():
    display = CumulativeDisplay.from_predictions(*rows(), band=None)
    assert display.band_ is None
    assert len(legend_of(display)) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"band": "exact"}, "band must be one of 'auto', 'simulation', 'large-sample law', got 'exact'"),
        ({"x": "rank"}, "x must be one of 'forecast', 'share', got 'rank'"),
        ({"n_resamples": 18}, r"n_resamples is 18, too few for a confidence_level of 0\.95; take at least 19"),
        (
            {"band": "simulation", "sample_weight": [1.0, 2.0]},
            "band='simulation' needs outcomes of 0 or 1 without weights",
        ),
    ],
)
def test_bad_options_of_the_cumulative_display_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        CumulativeDisplay.from_predictions([0, 1], [0.3, 0.6], **options)


# --- Reliability ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", [None, 12])
def test_the_reliability_curve_is_the_isotonic_regression(ties):
    y, p = rows(500, ties=ties)
    display = ReliabilityDisplay.from_predictions(y, p, band=None)
    fitted = IsotonicRegression().fit(p, y)
    np.testing.assert_allclose(np.interp(p, display.forecast, display.rate), fitted.predict(p), atol=1e-12)
    np.testing.assert_array_equal(display.line_.get_ydata(), display.rate)
    turned = display.plot(difference=True)
    np.testing.assert_array_equal(turned.line_.get_ydata(), display.rate - display.forecast)
    assert turned.ax_.get_ylabel() == "event rate \N{MINUS SIGN} forecast"


def test_the_consistency_band_holds_the_curves_of_calibrated_forecasts():
    y, p = rows(150, ties=6)
    display = ReliabilityDisplay.from_predictions(y, p, n_resamples=1999)
    values = np.unique(p)
    np.testing.assert_allclose(display.band_forecast, values)
    rng = np.random.default_rng(4)
    curves = np.array([IsotonicRegression().fit(p, rng.random(p.size) < p).predict(values) for _ in range(500)])
    inside = ((curves >= display.band_lower - 1e-9) & (curves <= display.band_upper + 1e-9)).mean(axis=0)
    assert (np.abs(inside - 0.95) < 0.04).all()
    assert "pointwise" in label_of(display.band_)
    again = ReliabilityDisplay.from_predictions(y, p, n_resamples=1999)
    np.testing.assert_array_equal(again.band_lower, display.band_lower)  # seeded


def test_the_normal_band_of_weighted_rows_is_near_the_binomial_one():
    y, p = rows(4000, ties=10)
    counted = ReliabilityDisplay.from_predictions(y, p)
    weighted = ReliabilityDisplay.from_predictions(y, p, sample_weight=np.full(4000, 3.0))
    np.testing.assert_allclose(weighted.band_lower, counted.band_lower, atol=0.02)
    np.testing.assert_allclose(weighted.band_upper, counted.band_upper, atol=0.02)


def test_a_band_of_joined_forecasts_is_near_that_of_all():
    rng = np.random.default_rng(6)
    p = np.round(rng.random(30_000), 4)  # about 9,500 distinct
    y = rng.random(p.size) < p
    joined = ReliabilityDisplay.from_predictions(y, p)
    assert 1000 < joined.groups <= 2000
    coarse = np.round(p, 3)
    exact = ReliabilityDisplay.from_predictions(y, coarse)
    assert exact.groups == np.unique(coarse).size
    at = np.linspace(0.05, 0.95, 19)
    for side in ("band_lower", "band_upper"):
        one = np.interp(at, joined.band_forecast, getattr(joined, side))
        other = np.interp(at, exact.band_forecast, getattr(exact, side))
        np.testing.assert_allclose(one, other, atol=0.02)


def _at(display, forecast, side):
    """Return a band's limit at a forecast: the tightest of the points drawn there."""
    values = getattr(display, f"band_{side}")[display.band_forecast == forecast]
    return values.max() if side == "lower" else values.min()


def test_the_confidence_band_is_the_best_of_exact_limits_on_all_runs():
    tally = Tally.from_counts(forecast=[0.2, 0.4, 0.6, 0.8], rows=[40, 30, 25, 50], events=[5, 15, 9, 44])
    display = ReliabilityDisplay.from_predictions(tally, band="confidence")
    level = 1 - 0.05 / 10  # ten runs; binomtest puts half of the error on each side
    limits = {}
    for first in range(4):
        for last in range(first, 4):
            run = slice(first, last + 1)
            found = binomtest(int(tally.events[run].sum()), int(tally.rows[run].sum())).proportion_ci(level, "exact")
            limits[first, last] = found
    for k, forecast in enumerate(tally.forecast):
        lower = max(limit.low for (_, last), limit in limits.items() if last <= k)
        upper = min(limit.high for (first, _), limit in limits.items() if first >= k)
        assert _at(display, forecast, "lower") == pytest.approx(lower, abs=1e-9)
        assert _at(display, forecast, "upper") == pytest.approx(upper, abs=1e-9)
    assert "at all forecasts together" in label_of(display.band_)
    assert "event rate not falling" in label_of(display.band_)


@pytest.mark.parametrize(
    ("rate", "sides", "title"),
    [
        (lambda p: 0.25 + 0.5 * p, [True, False], "Off: "),
        (lambda p: np.minimum(p + 0.2, 1.0), [True], "too low"),
        (lambda p: 0.5 * p, [False], "too high"),
        (lambda p: p, [], "No forecasts are shown to be off"),
    ],
    ids=["both sides", "too low", "too high", "calibrated"],
)
@pytest.mark.parametrize("difference", [False, True])
def test_forecasts_that_the_confidence_band_shows_to_be_off_are_marked(rate, sides, title, difference):
    rng = np.random.default_rng(0)
    p = rng.integers(0, 21, 4000) / 20
    y = rng.random(4000) < rate(p)
    display = ReliabilityDisplay.from_predictions(y, p, band="confidence", difference=difference)
    off = display.stretches_off
    assert list(dict.fromkeys(stretch.too_low for stretch in off)) == sides
    for forecast, lower, upper in zip(display.band_forecast, display.band_lower, display.band_upper, strict=True):
        inside = [stretch for stretch in off if stretch.low <= forecast <= stretch.high]
        if lower <= forecast <= upper:
            assert all(forecast in (stretch.low, stretch.high) for stretch in inside)  # a stair ends there
        else:
            assert [stretch.too_low for stretch in inside][:1] == [lower > forecast]
    assert title.lower() in display.ax_.get_title(loc="left").lower()
    assert (display.off_ is None) == (not off)
    assert any("these forecasts are off" in text for text in legend_of(display)) == bool(off)
    check_words(display.figure_)
    assert ReliabilityDisplay.from_predictions(y, p).stretches_off == []


def test_bins_are_those_of_risk_bands():
    y, p = rows(400)
    display = ReliabilityDisplay.from_predictions(y, p, n_bins=5)
    expected = calibrant.risk_bands(y, p, cutoffs=[0.2, 0.4, 0.6, 0.8])
    assert display.bins_ is not None
    points, _, (bar_lines, *_) = display.bins_.lines
    forecasts, rates = places_of(points)
    np.testing.assert_allclose(forecasts, expected.mean_forecast)
    np.testing.assert_allclose(rates, expected.observed_rate)
    bars = np.array(bar_lines.get_segments())[:, :, 1]
    np.testing.assert_allclose(bars[:, 0], expected.mean_forecast + expected.lower, atol=1e-12)
    np.testing.assert_allclose(bars[:, 1], expected.mean_forecast + expected.upper, atol=1e-12)
    assert "all of them together" in label_of(display.bins_)
    parts = display.frame().groupby("part")["forecast"].size()
    assert parts["bins"] == 5


@pytest.mark.parametrize("ties", [None, 12])
def test_the_histogram_counts_every_row(ties):
    y, p = rows(700, ties=ties)
    display = ReliabilityDisplay.from_predictions(y, p)
    assert display.bar_rows.sum() == 700
    for low, high, count in zip(display.bar_low, display.bar_high, display.bar_rows, strict=True):
        assert count == ((p == low) if low == high else (p >= low) & (p < high)).sum()
    assert display.histogram_ax_ is not None
    assert display.histogram_ax_.get_ylabel() == "rows"
    plain = display.plot(histogram=False)
    assert plain.histogram_ax_ is None
    assert plain.ax_.get_xlabel() == "forecast"


def test_narrow_forecasts_fill_the_axes():
    rng = np.random.default_rng(2)
    p = rng.beta(1, 60, 3000)
    display = ReliabilityDisplay.from_predictions(rng.random(3000) < p, p)
    low, high = display.ax_.get_xlim()
    assert high - low < 1.1 * (p.max() - p.min())
    assert display.bar_rows.sum() == 3000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"band": "bootstrap"},
            "band must be one of 'auto', 'consistency', 'confidence', 'pointwise', 'simultaneous', ",
        ),
        (
            {"band": "pointwise"},
            "band 'pointwise' is not one for smoother='isotonic'; use 'consistency' or 'confidence'",
        ),
        (
            {"band": "confidence", "smoother": "loess"},
            "band 'confidence' is not one for smoother='loess'; use 'pointwise' or 'simultaneous'",
        ),
        ({"band": "confidence", "sample_weight": [1, 2]}, "band='confidence' needs outcomes of 0 or 1 without weights"),
        ({"n_bins": 1}, "n_bins"),
        ({"difference": 1}, "difference must be True or False, got 1"),
        ({"histogram": "rug"}, "histogram must be True or False, got 'rug'"),
        ({"confidence_level": 0.99, "n_resamples": 98}, "n_resamples is 98, too few .* take at least 99"),
    ],
)
def test_bad_options_of_the_reliability_display_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ReliabilityDisplay.from_predictions([0, 1], [0.3, 0.6], **options)


# --- Decisions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrapper", ["nondecreasing", "monotone"])
def test_the_risk_gap_is_the_librarys(wrapper):
    y, p = rows(300)
    display = RiskGapDisplay.from_predictions(y, p, wrapper=wrapper, confidence_level=0.9, method="hoeffding")
    curve = calibrant.decisions.risk_gap_curve(y, p, wrapper=wrapper)
    first = np.append(True, np.diff(display.threshold) > 0)  # where it jumps, the value itself comes first
    np.testing.assert_allclose(display.gap[first], curve.at(display.threshold[first]), atol=1e-15)
    assert display.gap.max() == display.largest_gap == curve.largest_gap
    limit = calibrant.confidence_interval(
        y, p, measure="risk_gap", alternative="less", confidence_level=0.9, method="hoeffding"
    )
    assert display.guarantee == calibrant.decision_guarantee(limit)
    assert display.bound == pytest.approx(limit.upper if wrapper == "nondecreasing" else 2 * limit.upper)
    assert set(places_of(display.bound_)[1]) == {display.bound}
    assert display.gap.max() <= display.cutoff + 1e-12
    said = label_of(display.bound_)
    assert "with 90% confidence it saves at most" in said
    assert "at all thresholds together" in said
    assert "hoeffding method;" in said
    assert "independent rows" in said


@pytest.mark.parametrize("method", ["adaptive", "normal", "exact"])
def test_the_band_of_the_risk_gap_goes_from_the_curve_to_the_limit(method):
    y, p = rows(300)
    display = RiskGapDisplay.from_predictions(y, p, method=method)
    assert display.guarantee.is_direct == (method != "exact")
    assert ("exact method, by the Cutoff calibration error;" in label_of(display.bound_)) == (method == "exact")
    corners = np.asarray(display.band_.get_paths()[0].vertices)
    assert corners[:, 1].max() == display.bound >= display.gap.max()
    edge = set(map(tuple, corners.tolist()))
    curve = set(zip(display.threshold.tolist(), display.gap.tolist(), strict=True))
    limit = {(each, display.bound) for each in display.threshold.tolist()}
    assert edge == curve | limit
    assert "room for more in the population: from what these rows show up to the limit" in legend_of(display)


@pytest.mark.parametrize(("certified", "promised"), [((0.1, 0.3), None), (0.3, None), (None, 0.3)])
def test_a_guarantee_at_some_thresholds_is_not_drawn_at_all_of_them(certified, promised):
    y, p = rows(300)
    limit = calibrant.confidence_interval(y, p, measure="risk_gap", threshold=certified, alternative="less")
    curve = calibrant.decisions.risk_gap_curve(y, p)
    with pytest.raises(ValueError, match=r"^guarantee is for some thresholds, and the curve for all; take that of a"):
        RiskGapDisplay.from_results(curve, calibrant.decision_guarantee(limit, promised))


def test_the_risk_gap_fills_its_axes_and_says_where_the_bound_is():
    y, p = rows(300)
    far = RiskGapDisplay.from_predictions(y, p, method="hoeffding", wrapper="monotone")
    assert far.bound > 4 * far.largest_gap
    top = far.ax_.get_ylim()[1]
    assert far.largest_gap < top < 1.5 * far.largest_gap
    assert f"up to {far.largest_gap:.5f} per row" in far.ax_.get_title(loc="left")
    said = [text.get_text() for text in far.ax_.texts]
    assert f"{far.largest_gap:.5f}, at threshold {far.largest_gap_at:.3g}" in said
    assert any(text.startswith("limit: at most") and text.endswith("above this picture") for text in said)
    near = RiskGapDisplay.from_predictions([1] * 4000, np.full(4000, 0.1))
    assert near.largest_gap < near.bound < near.ax_.get_ylim()[1] < 1.5 * near.bound
    assert not any("above this picture" in text.get_text() for text in near.ax_.texts)
    none = RiskGapDisplay.from_predictions([0, 0, 1, 1], [0.0, 0.0, 1.0, 1.0])
    assert none.ax_.get_title(loc="left") == "Recalibration could save nothing on these rows"
    assert none.bound < none.ax_.get_ylim()[1]


def test_the_decision_curve_is_the_librarys():
    y, p = rows(300)
    display = DecisionCurveDisplay.from_predictions(y, p, confidence_level=0.9, band=True)
    expected = calibrant.net_benefit(y, p, confidence_level=0.9, band=True)
    assert display.curve["model"] == expected
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), expected.threshold)
    np.testing.assert_allclose(places_of(display.lines_[0])[1], np.asarray(expected.net_benefit))
    np.testing.assert_allclose(places_of(display.treat_all_)[1], np.asarray(expected.treat_all))
    assert set(places_of(display.treat_none_)[1]) == {0.0}
    assert display.ax_.get_ylim()[1] > np.max(np.asarray(expected.band_upper))
    assert set(np.asarray(expected.band_lower)) <= set(np.asarray(display.bands_[0].get_paths()[0].vertices)[:, 1])
    assert "90% limits, at all thresholds together" in legend_of(display)


@pytest.mark.parametrize("quantity", ["standardized", "interventions_avoided"])
def test_a_decision_curve_of_several_models_shows_the_number_asked_for(quantity):
    y, p = rows(300)
    models = {"old": np.sqrt(p), "new": p}
    display = DecisionCurveDisplay.from_predictions(
        y, models, threshold=0.3, thresholds=[0.4, 0.1, 0.2], quantity=quantity, confidence_level=0.9, band=True
    )
    for name, line in zip(models, display.lines_, strict=True):
        found = calibrant.net_benefit(y, models[name], thresholds=[0.1, 0.2, 0.3, 0.4])
        np.testing.assert_allclose(places_of(line), [found.threshold, getattr(found, quantity)])
        assert line.get_label() == name
    everybody, nobody = (
        calibrant.net_benefit(y, np.full(300, each), thresholds=[0.1, 0.2, 0.3, 0.4]) for each in (1.0, 0.0)
    )
    np.testing.assert_allclose(places_of(display.treat_all_)[1], getattr(everybody, quantity), atol=1e-9)
    np.testing.assert_allclose(places_of(display.treat_none_)[1], getattr(nobody, quantity), atol=1e-9)
    said = legend_of(display)
    assert "your threshold, 0.3" in said
    assert "90% limits, at each threshold by itself, for each model" in said
    assert display.harm_ is None


def test_a_bar_marks_where_the_gain_is_shown():
    y, p = rows(600)
    display = DecisionCurveDisplay.from_predictions(y, p**3, thresholds=np.arange(1, 60) / 60, confidence_level=0.9)
    found = display.curve["model"]
    better, worse = np.asarray(found.gain_lower) > 0, np.asarray(found.gain_upper) < 0
    assert better.any()
    assert worse.any()
    assert [bar.get_label().split(" than ")[0].split()[-1] for bar in display.shown_] == ["better", "worse"]
    for bar, inside in zip(display.shown_, (better, worse), strict=True):
        covered = np.zeros(inside.size, dtype=bool)
        for path in bar.get_paths():
            low, high = np.asarray(path.vertices)[:, 0].min(), np.asarray(path.vertices)[:, 0].max()
            covered |= (display.curve.thresholds > low) & (display.curve.thresholds < high)
        np.testing.assert_array_equal(covered, inside)
    assert DecisionCurveDisplay.from_predictions(y, p).shown_ == []


def test_a_smooth_curve_is_drawn_inside_the_rates_there_are():
    p = np.linspace(0.05, 0.95, 80)
    y = (p > 0.5).astype(int)
    display = ReliabilityDisplay.from_predictions(y, p, smoother="loess", band=None, histogram=False)
    assert display.rate.max() > 1.0
    assert places_of(display.line_)[1].min() >= 0.0
    assert places_of(display.line_)[1].max() <= 1.0


def test_where_forecasts_do_harm_is_shaded():
    good = DecisionCurveDisplay.from_predictions([0, 0, 1, 1], [0.0, 0.0, 1.0, 1.0])
    assert "better on these rows" not in " ".join(legend_of(good))
    bad = DecisionCurveDisplay.from_predictions([1, 1, 0, 0], [0.1, 0.2, 0.8, 0.9])
    assert "better on these rows" in " ".join(legend_of(bad))
    assert bad.harm_ is not None
    lowest = np.min(bad.curve["model"].net_benefit)
    assert np.asarray(bad.harm_.get_paths()[0].vertices)[:, 1].min() == pytest.approx(lowest)


@pytest.mark.parametrize(
    ("rows", "asked", "message"),
    [
        (([0, 1], [0.2, 0.7]), {"thresholds": [0.3]}, r"^thresholds has one value, 0\.3, and a curve needs two"),
        (([0, 1], [0.2, 0.7]), {"quantity": "gains"}, r"^quantity must be one of 'net_benefit'"),
        (([0, 0], [0.2, 0.7]), {"quantity": "standardized"}, r"^quantity is a share of the event rate"),
    ],
)
def test_a_decision_curve_that_cannot_be_drawn_is_refused(rows, asked, message):
    with pytest.raises(ValueError, match=message):
        DecisionCurveDisplay.from_predictions(*rows, **asked)


# --- Spectrum ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", [None, 8])
def test_the_spectrum_is_the_librarys(ties):
    y, p = rows(250, ties=ties)
    display = SpectrumDisplay.from_predictions(y, p)
    for k in range(0, display.variation.size, 20):
        expected = calibrant.measures.bounded_variation_calibration_error(y, p, variation=display.variation[k])
        assert display.error[k] == pytest.approx(expected, abs=1e-12)
    assert display.error[0] == pytest.approx(abs(calibrant.measures.calibration_in_the_large(y, p)))
    assert display.error[-1] == pytest.approx(
        calibrant.measures.bounded_variation_calibration_error(y, p, variation=math.inf)
    )
    assert display.cutoff == pytest.approx(calibrant.cutoff_calibration_error(y, p))
    assert display.ax_.get_xscale() == "symlog"
    said = label_of(display.points_[-1])
    assert ("mostly noise" in said) == (ties is None)
    beside = [text.get_text() for text in display.ax_.texts]
    assert said in beside
    assert f"mean bias {display.error[0]:.5f}" in beside
    assert f"Cutoff calibration error {display.cutoff:.5f}" in beside


def test_the_spectrum_writes_the_cutoff_error_as_measure_does():
    forecasts = Tally.from_counts(forecast=[0.2, 0.6], rows=[3, 3], events=[1, 3])  # 4/15, which is rounded upwards
    drawn = SpectrumDisplay.from_predictions(forecasts).ax_.texts
    (line,) = (line for line in str(calibrant.measure(forecasts)).splitlines() if line.split()[0] == "cutoff")
    assert f"Cutoff calibration error {line.split()[1]}" in [text.get_text() for text in drawn]


def test_errors_far_below_the_ece_are_not_flattened():
    y, p = rows(250)
    assert SpectrumDisplay.from_predictions(y, p).ax_.get_yscale() == "linear"
    display = SpectrumDisplay.from_predictions(million())
    assert display.ax_.get_yscale() == "log"
    low, high = display.ax_.get_ylim()
    assert low < display.cutoff < display.error[-1] < high
    check_words(display.figure_)
    assert drawn_colours(display.figure_) <= set(asdict(PALETTES["light"]).values())


# --- Certificates -----------------------------------------------------------------------------------------------------


def _three_models():
    y, p = rows(3000)
    calibrated = p**1.3
    return y, {"good": calibrated, "fair": 0.5 * (p + calibrated), "bad": np.where(p > 0.5, 0.99, 0.01)}


def test_verdicts_are_marked_and_written():
    y, models = _three_models()
    display = CertificateDisplay.from_predictions(y, models, max_error=0.045)
    verdicts = [getattr(each, "verdict", None) for each in display.certificates]
    assert set(verdicts) == {"certified", "undecided", "refuted"}
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == list(models)
    assert [text.get_text() for text in display.ax_.texts] == verdicts
    assert len({line.get_marker() for line in display.estimates_}) == 3
    for place, (name, line) in enumerate(zip(models, display.intervals_, strict=True)):
        expected = calibrant.certify(y, models[name], max_error=0.045, confidence_level=1 - 0.05 / 3)
        np.testing.assert_array_equal(line.get_xdata(), [expected.lower, expected.upper])
        np.testing.assert_array_equal(line.get_ydata(), [place, place])
    assert {x for line in display.bounds_ for x in places_of(line)[0]} == {0.045}
    assert "all upper limits hold together with 95% confidence" in display.limits_said
    assert list(display.frame()["verdict"]) == verdicts


def test_groups_are_drawn_with_their_joint_verdict():
    y, p = rows(2000)
    by = np.where(np.arange(2000) % 3 == 0, "north", "south")
    groups = calibrant.certify(y, p**1.3, max_error=0.1, by=by)
    display = CertificateDisplay.from_certificates(groups)
    assert display.names == ("north", "south")
    assert display.certificates == groups.certificates
    assert f"all groups together: {groups.verdict}" in display.ax_.get_title(loc="left")
    same = CertificateDisplay.from_predictions(y, p**1.3, max_error=0.1, by=by)
    assert same.frame().equals(display.frame())


@pytest.mark.parametrize(
    ("alternative", "promise"),
    [
        ("two-sided", "both hold together with 90% confidence"),
        ("less", "the upper one holds with 90% confidence, there is no lower one"),
        ("greater", "the lower one holds with 90% confidence, there is no upper one"),
    ],
)
def test_intervals_say_what_they_promise(alternative, promise):
    y, p = rows(500)
    interval = calibrant.confidence_interval(y, p, confidence_level=0.9, alternative=alternative)
    display = CertificateDisplay.from_certificates(interval)
    assert promise in display.limits_said
    assert not display.bounds_
    assert places_of(display.estimates_[0])[0].tolist() == [interval.estimate]
    assert display.frame()["verdict"].isna().all()


def test_results_at_hand_are_each_drawn_by_themselves():
    y, p = rows(500)
    named = {"strict": calibrant.certify(y, p, max_error=0.01), "lenient": calibrant.certify(y, p, max_error=0.4)}
    display = CertificateDisplay.from_certificates(named)
    assert [places_of(line)[0][0] for line in display.bounds_] == [0.01, 0.4]
    assert "each result by itself" in display.limits_said


def test_names_are_drawn_as_they_are():
    y, p = rows(200)
    certificate = calibrant.certify(y, p, max_error=0.2)
    named = {"$x^{": certificate, "<b>": certificate, "": certificate, 1: certificate, "1": certificate}
    display = CertificateDisplay.from_certificates(named)
    display.figure_.draw_without_rendering()
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["$x^{", "<b>", "", "1", "1"]


def test_long_names_leave_room_for_the_plot():
    y, p = rows(200)
    certificate = calibrant.certify(y, p, max_error=0.2)
    display = CertificateDisplay.from_certificates(
        {"a model with quite a long name, fitted in spring" * 2: certificate}
    )
    display.figure_.draw_without_rendering()
    assert display.ax_.get_position().width > 0.4


@pytest.mark.parametrize(
    ("certificates", "message"),
    [
        ([1], "certificates must be a Certificate, .* got list"),
        ({}, "certificates is an empty dict"),
        ({"a": 0.1}, r"certificates\['a'\] is a float; pass what certify or confidence_interval returned"),
    ],
)
def test_other_things_than_certificates_are_refused(certificates, message):
    with pytest.raises(ValueError, match=message):
        CertificateDisplay.from_certificates(certificates)


@pytest.mark.parametrize(
    ("option", "choices", "message"),
    [
        ("measure", ("cutoff", "smooth"), "different measures, 'cutoff' and 'smooth', which have no common axis"),
        ("method", ("adaptive", "exact"), "different targets, 'population' and 'these forecasts'"),
    ],
)
def test_what_has_no_common_axis_is_refused(option, choices, message):
    y, p = rows(100)
    named = {choice: calibrant.certify(y, p, max_error=0.1, **{option: choice}) for choice in choices}
    with pytest.raises(ValueError, match=message):
        CertificateDisplay.from_certificates(named)


def test_groups_and_models_are_asked_for_one_at_a_time():
    y, p = rows(100)
    with pytest.raises(ValueError, match="by was given without max_error"):
        CertificateDisplay.from_predictions(y, p, by=y)
    with pytest.raises(ValueError, match="by was given together with several models"):
        CertificateDisplay.from_predictions(y, {"a": p}, max_error=0.1, by=y)
    with pytest.raises(ValueError, match="y_prob is an empty dict"):
        CertificateDisplay.from_predictions(y, {})


# --- Differences of models --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [{}, {"measure": "net_benefit", "threshold": [0.2, 0.5], "margin": 0.02}])
def test_differences_are_drawn_from_limit_to_limit(asked):
    y, p = rows(600)
    models = {"as it is": p, "power": p**1.3, "coarse": np.round(p, 1)}
    display = DifferencesDisplay.from_predictions(y, models, **asked)
    found = calibrant.compare_models(y, models, **asked)
    assert display.comparison == found
    assert display.names == tuple(each.cells()[0] for each in found.differences)
    for place, segment, each in zip(
        range(len(found.differences))[::-1], display.limits_.get_segments(), found.differences, strict=True
    ):
        np.testing.assert_allclose(segment, [[each.lower, place], [each.upper, place]])
    assert (display.margin_ is None) == (found.margin is None)
    if display.margin_ is not None:
        assert places_of(display.margin_)[0][0] == -0.02  # less is worse
    assert display.frame()["verdict"].tolist() == [each.verdict for each in found.differences]
    check_words(display.figure_)
    dark = DifferencesDisplay.from_results(found).plot(theme="dark", legend=False)
    assert dark.legend_ is None
    assert drawn_colours(dark.figure_) <= set(asdict(PALETTES["dark"]).values())


@pytest.mark.parametrize("band", ["pointwise", "simultaneous"])
def test_a_smooth_curve_and_its_band_are_those_of_calibration_curve(band):
    y, p = rows()
    display = ReliabilityDisplay.from_predictions(y, p, smoother="loess", band=band, n_resamples=30, theme="dark")
    tally = Tally.from_arrays(y, p)
    curve = calibrant.measures.calibration_curve(
        y, p, band=band, confidence_level=0.95, n_resamples=30, rng=tally.generator(0, "band")
    )
    assert np.array_equal(display.forecast, curve.forecast)
    assert np.array_equal(display.rate, curve.rate)
    assert np.array_equal(display.band_lower, curve.lower)
    assert np.array_equal(display.band_upper, curve.upper)
    assert label_of(display.line_) == "event rate by loess; dashed: perfect calibration"
    assert f"{band} band: with about 95% confidence" in label_of(display.band_)
    assert display.stretches_off == []


def test_a_smooth_curve_of_clusters_draws_whole_ones():
    y, p = rows()
    cluster = np.arange(len(y)) // 5
    display = ReliabilityDisplay.from_predictions(y, p, cluster=cluster, smoother="splines", n_resamples=30)
    assert (display.band, display.clusters) == ("pointwise", cluster[-1] + 1)
    assert f"30 resamples of {cluster[-1] + 1:,} clusters" in label_of(display.band_)
    bare = ReliabilityDisplay.from_predictions(y, p, smoother="splines", band=None)
    assert (bare.band, bare.band_) == (None, None)
    assert np.array_equal(bare.rate, display.rate)

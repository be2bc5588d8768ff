"""Risk bands as users meet them: means, limits, words, and what is refused."""

import math

import numpy as np
import pytest

from calibrant import Tally, confidence_interval, risk_bands

RNG = np.random.default_rng(20)
PROB = RNG.random(1500)
TRUE = RNG.random(1500) < PROB
WEIGHT = RNG.exponential(size=1500)
LEVELS = PROB.round(1)  # forecasts that repeat


@pytest.mark.parametrize("weighted", [False, True])
def test_bands_hold_the_means_of_their_rows(weighted):
    weight = WEIGHT if weighted else np.ones(1500)
    bands = risk_bands(TRUE, LEVELS, cutoffs=[0.1, 0.55], sample_weight=WEIGHT if weighted else None)
    assert (bands.low.tolist(), bands.high.tolist()) == ([0.0, 0.1, 0.55], [0.1, 0.55, 1.0])
    inside = [LEVELS < 0.1, (LEVELS >= 0.1) & (LEVELS < 0.55), LEVELS >= 0.55]  # a border belongs to the band above
    assert bands.rows.tolist() == [each.sum() for each in inside]
    assert bands.share == pytest.approx([weight[each].sum() / weight.sum() for each in inside])
    assert bands.mean_forecast == pytest.approx([np.average(LEVELS[each], weights=weight[each]) for each in inside])
    assert bands.observed_rate == pytest.approx([np.average(TRUE[each], weights=weight[each]) for each in inside])
    assert bands.bias == pytest.approx(bands.observed_rate - bands.mean_forecast)
    assert (bands.lower < bands.bias).all()
    assert (bands.bias < bands.upper).all()
    assert (np.abs(bands.bias) <= bands.inherited).all()
    assert bands.rows.sum() == 1500


def test_bands_of_a_tally_are_those_of_its_rows():
    assert risk_bands(Tally.from_arrays(TRUE, PROB), cutoffs=[0.3]) == risk_bands(TRUE, PROB, cutoffs=[0.3])


def test_what_a_band_inherits_is_the_cutoff_limit_over_its_least_share():
    bands = risk_bands(TRUE, PROB, cutoffs=[0.1, 0.5])
    assert bands.cutoff_upper == confidence_interval(TRUE, PROB).upper  # half of delta; the rest is for the shares
    least = bands.cutoff_upper / bands.inherited
    assert (least < bands.share).all()
    assert (least > bands.share - 4 * np.sqrt(bands.share / 1500)).all()


def test_more_bands_and_more_confidence_mean_wider_limits():
    few, many = (risk_bands(TRUE, PROB, cutoffs=cutoffs) for cutoffs in ([0.5], [0.1, 0.2, 0.3, 0.4, 0.5]))
    assert many.upper[-1] > few.upper[-1]
    assert many.inherited[-1] > few.inherited[-1]
    surer = risk_bands(TRUE, PROB, cutoffs=[0.5], confidence_level=0.999)
    assert (surer.upper > few.upper).all()
    assert (surer.lower < few.lower).all()


def test_an_empty_band_says_so_and_has_no_numbers():
    bands = risk_bands(TRUE, PROB / 2, cutoffs=[0.25, 0.9])
    assert bands.rows[2] == 0
    assert np.isnan([bands.mean_forecast[2], bands.observed_rate[2], bands.bias[2]]).all()
    assert (bands.lower[2], bands.upper[2], bands.inherited[2]) == (-1.0, 1.0, 1.0)
    assert str(bands).splitlines()[-1].split() == ["[0.9,", "1]", "0", "no", "rows"]
    assert "nan" not in str(bands)
    assert bands.to_dict()["bias"][2] == "NaN"


def test_bands_read_as_a_table():
    tally = Tally.from_counts(forecast=[0.05, 0.3, 0.7], rows=[600, 300, 100], events=[31, 102, 71])
    bands = risk_bands(tally, cutoffs=[0.1, 0.5])
    first, assumed, heads, *lines = str(bands).splitlines()
    assert first == (
        "Bias of the population per band of forecasts; the limits hold for all 3 bands together with 95% confidence "
        "(1,000 rows)."
    )
    assert assumed == f"This assumes that {'; '.join(bands.assumptions)}."
    assert heads.split() == ["forecasts", "rows", "mean", "forecast", "observed", "bias", "from", "to", "inherited"]
    assert [line.split()[:6] for line in lines] == [
        ["[0,", "0.1)", "600", "5.0%", "5.2%", "+0.0017"],
        ["[0.1,", "0.5)", "300", "30.0%", "34.0%", "+0.0400"],
        ["[0.5,", "1]", "100", "70.0%", "71.0%", "+0.0100"],
    ]
    assert repr(bands) == str(bands)
    frame = bands.frame()
    assert frame["rows"].tolist() == [600, 300, 100]
    assert list(frame.columns)[:4] == ["low", "high", "rows", "share"]


@pytest.mark.parametrize(
    ("cutoffs", "message"),
    [
        ([0.5, 0.1], r"^cutoffs\[1\] is 0\.1, not above the one before; sort them"),
        ([0.1, 0.1], r"^cutoffs\[1\] is 0\.1, not above the one before"),
        ([0.0, 0.5], r"^cutoffs are the inner borders of bands from 0 to 1; leave out 0 and 1"),
        ([0.5, 1.0], r"^cutoffs are the inner borders of bands from 0 to 1; leave out 0 and 1"),
        ([10, 50], r"^cutoffs\[0\] is 10, outside \[0, 1\]; if these are percentages"),
        ([0.1, math.nan], r"^cutoffs\[1\] is missing"),
        (0.5, r"^cutoffs is one float, not an array"),
        ("high", r"^cutoffs is one str, not an array"),
        (None, r"^cutoffs is None"),
        ([], r"^cutoffs is empty"),
    ],
    ids=str,
)
def test_cutoffs_that_make_no_bands_are_refused(cutoffs, message):
    with pytest.raises(ValueError, match=message):
        risk_bands(TRUE, PROB, cutoffs=cutoffs)


def test_the_level_of_bands_is_a_level():
    with pytest.raises(ValueError, match=r"^confidence_level is 95; write 0\.95"):
        risk_bands(TRUE, PROB, cutoffs=[0.5], confidence_level=95)

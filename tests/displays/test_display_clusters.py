"""Bands and limits of displays for rows in clusters."""

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import calibrant

CertificateDisplay: Any = calibrant.CertificateDisplay
CumulativeDisplay: Any = calibrant.CumulativeDisplay
ReliabilityDisplay: Any = calibrant.ReliabilityDisplay
RiskGapDisplay: Any = calibrant.displays.RiskGapDisplay

COUNT, SIZE = 100, 20
RNG = np.random.default_rng(7)
SITE = np.repeat(np.arange(COUNT), SIZE)
Y_PROB = RNG.random(SITE.size)
SHIFT = RNG.choice([-0.4, 0.4], COUNT)[SITE]
Y_TRUE = (RNG.random(SITE.size) < np.clip(Y_PROB + SHIFT, 0.0, 1.0)).astype(int)


def test_bands_of_clusters_are_wider():
    alone = CumulativeDisplay.from_predictions(Y_TRUE, Y_PROB)
    clustered = CumulativeDisplay.from_predictions(Y_TRUE, Y_PROB, cluster=SITE)
    assert clustered.band_height > 1.5 * alone.band_height
    assert clustered.band_from == "signs of clusters"
    assert "999 draws of signs of clusters" in clustered.band_.get_label()
    plain = ReliabilityDisplay.from_predictions(Y_TRUE, Y_PROB)
    wide = ReliabilityDisplay.from_predictions(Y_TRUE, Y_PROB, cluster=SITE)
    assert wide.clusters == COUNT
    assert np.mean(wide.band_upper - wide.band_lower) > 1.3 * np.mean(plain.band_upper - plain.band_lower)
    assert "in clusters like these 100" in wide.band_.get_label()
    assert np.array_equal(plain.rate, wide.rate)


def test_neighbours_that_depend_widen_bands():
    one, two = (CumulativeDisplay.from_predictions(Y_TRUE, Y_PROB, cluster=SITE, serial=each) for each in (0, 1))
    assert two.band_height > 1.3 * one.band_height


def test_calibrated_clusters_stay_inside_as_often_as_said():
    """And rows taken as independent do not, which guards the simulation."""
    rng = np.random.default_rng(0)
    inside = {"clusters": 0, "rows": 0}
    runs, axes = 60, Figure().add_subplot()
    for _ in range(runs):
        y_prob = rng.uniform(0.2, 0.8, SITE.size)
        y_true = (rng.random(SITE.size) < y_prob + rng.choice([-0.15, 0.15], COUNT)[SITE]).astype(int)
        for name, options in (("clusters", {"cluster": SITE}), ("rows", {"band": "large-sample law"})):
            display = CumulativeDisplay.from_predictions(y_true, y_prob, **options, ax=axes, legend=False)
            inside[name] += display.worst.error <= display.band_height
    assert inside["clusters"] >= 0.88 * runs
    assert inside["rows"] <= 0.8 * runs


@pytest.mark.parametrize("display_type", [CumulativeDisplay, ReliabilityDisplay])
def test_neither_names_nor_order_of_clusters_change_a_band(display_type):
    names = np.random.default_rng(1).permutation(COUNT)[SITE]
    one, other = (display_type.from_predictions(Y_TRUE, Y_PROB, cluster=each).frame() for each in (SITE, names))
    assert np.allclose(one.to_numpy()[:, 1:].astype(float), other.to_numpy()[:, 1:].astype(float), equal_nan=True)


def test_each_cluster_may_count_once():
    uneven = np.minimum(SITE, 40)
    once = CumulativeDisplay.from_predictions(Y_TRUE, Y_PROB, cluster=uneven, cluster_target="clusters")
    size = np.bincount(uneven)
    weighted = CumulativeDisplay.from_predictions(Y_TRUE, Y_PROB, sample_weight=1.0 / size[uneven], band=None)
    assert once.worst.error == pytest.approx(weighted.worst.error)


def test_clusters_of_one_row_are_independent_rows():
    each = CumulativeDisplay.from_predictions(Y_TRUE, Y_PROB, cluster=np.arange(SITE.size))
    assert each.band_height == CumulativeDisplay.from_predictions(Y_TRUE, Y_PROB).band_height


def test_certificates_are_those_of_certify():
    asked: dict[str, Any] = {"max_error": 0.1, "cluster": SITE, "serial": 1}
    display = CertificateDisplay.from_predictions(Y_TRUE, Y_PROB, **asked)
    assert display.certificates == (calibrant.certify(Y_TRUE, Y_PROB, **asked),)
    assert "(clusters 2 or more places apart independent, forecaster fixed beforehand)" in display.limits_said
    groups = CertificateDisplay.from_predictions(Y_TRUE, Y_PROB, max_error=0.1, cluster=SITE, by=SITE % 2)
    assert "independent clusters, forecasters fixed beforehand" in groups.limits_said
    limits = CertificateDisplay.from_predictions(Y_TRUE, Y_PROB, cluster=SITE, cluster_target="clusters")
    assert limits.certificates[0].clusters.target == "clusters"


def test_the_limit_of_savings_counts_clusters():
    display = RiskGapDisplay.from_predictions(Y_TRUE, Y_PROB, cluster=SITE)
    limit = calibrant.confidence_interval(Y_TRUE, Y_PROB, cluster=SITE, measure="risk_gap", alternative="less")
    assert display.bound == limit.upper
    alone = RiskGapDisplay.from_predictions(Y_TRUE, Y_PROB)
    assert display.largest_gap == alone.largest_gap
    assert "independent rows, forecaster fixed beforehand" in alone.bound_.get_label()
    assert "independent clusters, forecaster fixed beforehand" in display.bound_.get_label()
    neighbours = RiskGapDisplay.from_predictions(Y_TRUE, Y_PROB, cluster=SITE, serial=1)
    assert "clusters 2 or more places apart independent" in neighbours.bound_.get_label()


def test_bins_have_limits_that_count_clusters():
    display = ReliabilityDisplay.from_predictions(Y_TRUE, Y_PROB, cluster=SITE, n_bins=4)
    bands = calibrant.risk_bands(Y_TRUE, Y_PROB, cutoffs=[0.25, 0.5, 0.75], cluster=SITE)
    assert np.allclose(display.bins.upper, bands.upper)
    alone = ReliabilityDisplay.from_predictions(Y_TRUE, Y_PROB, n_bins=4)
    assert (display.bins.upper - display.bins.lower > alone.bins.upper - alone.bins.lower).all()


@pytest.mark.parametrize(
    ("display_type", "options", "message"),
    [
        (CumulativeDisplay, {"band": "simulation"}, "band='simulation' is for independent rows, and these are in"),
        (ReliabilityDisplay, {"band": "confidence"}, "band='confidence' is for independent rows, and these are in"),
        (ReliabilityDisplay, {"cluster": np.zeros(SITE.size)}, "cluster holds one cluster only"),
        (RiskGapDisplay, {"cluster": None, "serial": 1}, "serial says something of clusters, and none were named"),
        (CertificateDisplay, {"method": "paper"}, "has no limits for rows in clusters"),
    ],
)
def test_what_has_no_form_for_clusters_is_refused(display_type, options, message):
    with pytest.raises(ValueError, match=message):
        display_type.from_predictions(Y_TRUE, Y_PROB, **{"cluster": SITE, **options})

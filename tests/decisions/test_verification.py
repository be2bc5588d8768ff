"""Murphy's decomposition in bins, by hand; limits of the parts of scores; what is refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant
from calibrant.core.errors import InputError, UndefinedError

brier_decomposition: Any = calibrant.decisions.brier_decomposition
score_decomposition: Any = calibrant.decisions.score_decomposition


def sample(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(1.5, 2.5, n), 2)
    return (rng.random(n) < p**1.3).astype(int), p, rng.integers(1, 4, n)


@given(st.lists(st.tuples(st.sampled_from([0, 1, 0.5]), st.floats(0, 1), st.integers(1, 3)), min_size=1, max_size=12))
def test_the_parts_are_those_of_the_definition_and_add_up(data):
    y, p, w = (np.array(each, dtype=float) for each in zip(*data, strict=True))
    mean = np.average(y, weights=w)
    for bins in (1, 4, None):
        found = brier_decomposition(calibrant.Tally.from_arrays(y, p, sample_weight=w), n_bins=bins)
        place = np.unique(p, return_inverse=True)[1] if bins is None else np.minimum((p * bins).astype(int), bins - 1)
        reliability = resolution = 0.0
        for k in np.unique(place):
            inside = place == k
            rate, forecast = (np.average(each[inside], weights=w[inside]) for each in (y, p))
            reliability += w[inside].sum() / w.sum() * (forecast - rate) ** 2
            resolution += w[inside].sum() / w.sum() * (rate - mean) ** 2
        score = np.average((1 - p) ** 2 * y + p**2 * (1 - y), weights=w)
        assert (found.brier, found.reliability, found.resolution) == pytest.approx((score, reliability, resolution))
        parts = found.reliability - found.resolution + found.uncertainty + found.within_bins
        assert parts == pytest.approx(found.brier)
        assert found.share.sum() == pytest.approx(1)
        if bins is None:
            assert found.within_bins == pytest.approx(0, abs=1e-12)


def test_known_values_of_a_forecaster_with_three_forecasts():
    # Rain: 10 of 100 at 0.1, 30 of 60 at 0.5, 36 of 40 at 0.9.
    tally = calibrant.Tally.from_counts([0.1, 0.5, 0.9], rows=[100, 60, 40], events=[10, 30, 36])
    found = brier_decomposition(tally, n_bins=None)
    assert found.reliability == pytest.approx(0)
    assert found.uncertainty == pytest.approx(0.38 * 0.62)
    assert found.resolution == pytest.approx(0.5 * 0.28**2 + 0.3 * 0.12**2 + 0.2 * 0.52**2)
    assert found == brier_decomposition(tally, n_bins=None, confidence_level=None)
    corp = score_decomposition(tally)
    assert (corp.miscalibration, corp.discrimination) == pytest.approx((found.reliability, found.resolution))
    assert "+0.00000 inside bins (a bin per distinct forecast)" in str(found)


@pytest.mark.parametrize("function", [brier_decomposition, score_decomposition])
def test_limits_hold_the_number_and_do_not_depend_on_the_order_of_rows(function):
    y, p, w = sample()
    asked = {"confidence_level": 0.9, "n_resamples": 100}
    found = function(y, p, **asked)
    order = np.random.default_rng(1).permutation(y.size)
    assert function(y[order], p[order], **asked) == found
    assert function(calibrant.Tally.from_arrays(y, p), **asked) == found
    frame = found.frame().set_index("component")
    assert (frame["lower"] <= frame["upper"]).all()
    assert frame.loc["uncertainty", "lower"] < found.uncertainty < frame.loc["uncertainty", "upper"]
    assert frame.loc["skill", "lower"] < found.skill < frame.loc["skill", "upper"]
    assert "90% limits, for many rows: " in str(found)
    clusters = function(y, p, cluster=np.arange(y.size) // 3, sample_weight=w, **asked)
    assert clusters.clusters == 100
    alone = function(y, p, cluster=np.arange(y.size))
    assert (alone.clusters, alone.uncertainty_lower) == (300, None)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: brier_decomposition([0, 1], [0.1, 0.9], n_bins=0), r"^n_bins"),
        (lambda: brier_decomposition([0, 0], [0.1, 0.9], confidence_level=0.9), "outcomes that are all the same"),
        (lambda: score_decomposition([0, 0], [0.1, 0.9], confidence_level=0.9), "outcomes that are all the same"),
        (
            lambda: score_decomposition([0, 1, 1], [1.0, 0.5, 0.2], score="log", confidence_level=0.9),
            "a score without end",
        ),
        (lambda: brier_decomposition([0, 1], [0.1, 0.9], confidence_level=0.9, n_resamples=3), r"^n_resamples is 3"),
    ],
)
def test_what_cannot_be_answered_is_refused(call, message):
    with pytest.raises((InputError, UndefinedError), match=message):
        call()


def test_displays_draw_the_parts():
    y, p, _ = sample()
    models = {"raw": p, "root": np.sqrt(p)}
    asked: dict[str, Any] = {"confidence_level": 0.9, "n_resamples": 20}
    display: Any = calibrant.displays.DecompositionDisplay.from_predictions(y, models, **asked)
    for k, name in enumerate(models):
        parts = score_decomposition(y, models[name], **asked)
        assert display.parts[k] == parts
        drawn = [bar.get_width() for bar in display.bars_[k]]
        assert drawn == [parts.score, parts.miscalibration, parts.discrimination, parts.uncertainty]
        ends = [segment[:, 0].tolist() for segment in display.whiskers_[k].get_segments()]
        assert ends[0] == [parts.score_lower, parts.score_upper]
    assert len(display.frame()) == 8
    found: Any = calibrant.displays.AttributesDisplay.from_predictions(y, p, n_bins=5)
    parts = brier_decomposition(y, p, n_bins=5)
    np.testing.assert_allclose(found.points_.get_offsets(), np.stack([parts.forecast, parts.rate], axis=1))
    assert found.no_skill_.get_ydata().tolist() == [parts.mean_outcome / 2, (1 + parts.mean_outcome) / 2]
    # A bin adds to the skill where its reliability is less than its resolution: (f - o)^2 < (o - m)^2.
    area = found.skill_.get_paths()[0]
    for f, o in ((0.9, 0.95), (0.9, 0.6), (0.1, 0.05), (0.1, 0.6), (0.6, 0.1)):
        inside = (f - o) ** 2 < (o - parts.mean_outcome) ** 2 and (f - parts.mean_outcome) * (
            o - parts.mean_outcome
        ) > 0
        assert area.contains_point((f, o)) == inside

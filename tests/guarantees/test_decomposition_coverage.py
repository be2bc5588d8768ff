"""How often limits of the parts of the Brier score hold the truth.

Measured with limits of 95% and 200 rows: score 94.5%, uncertainty 94%, skill 92.5% (200 runs, 400 resamples). What is
fitted, with 100 resamples, distinct forecasts, calibrated and not: miscalibration 98% to 100% and discrimination 96% to
100%, in ten bins reliability 96% to 100% and resolution 95% to 100%, with 200 rows (80 to 150 runs), 1,000 (50, 60)
and 4,000 (25). The others hold for many rows, with 200 a little less often than they say; the test allows for it.
"""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit
from simulated import allowed, replicates

import calibrant

LEVEL, RUNS, ROWS = 0.95, replicates(60), 200
PARTNER = {"miscalibration": "discrimination", "reliability": "resolution"}
functions: list[Any] = [calibrant.decisions.score_decomposition, calibrant.decisions.brier_decomposition]


def draw(rng, n):
    p = np.round(expit(rng.normal(-1.0, 1.2, n)), 2)
    return p, expit(0.3 + 0.7 * logit(np.clip(p, 0.005, 0.995)))


@pytest.mark.parametrize(("n", "runs"), [(200, 30), (2000, 18)])
def test_limits_of_calibrated_forecasts_hold_the_estimate_and_0(n, runs):
    """A fit finds more than there is, and in distinct forecasts more often the more rows there are."""
    above = dict.fromkeys(("miscalibration", "reliability"), 0)
    for run in range(runs):
        rng = np.random.default_rng([6, run])
        p = rng.beta(2.0, 4.0, n)
        y = rng.random(n) < p
        for function, name in zip(functions, above, strict=True):
            found = function(y, p, confidence_level=LEVEL, n_resamples=39)  # the largest of 39 is exceeded by 1 in 40
            frame = found.frame().set_index("component").loc[[name, PARTNER[name]]]
            assert (frame["lower"] <= frame["value"]).all()
            assert (frame["value"] <= frame["upper"]).all()
            above[name] += getattr(found, f"{name}_lower") > 0.0
    for name, count in above.items():
        assert count <= allowed(runs, (1 - LEVEL) / 2), name


def test_noise_in_clusters_is_not_taken_for_miscalibration():
    runs, above = 25, 0
    cluster = np.repeat(np.arange(20), 15)
    for run in range(runs):
        rng = np.random.default_rng([8, run])
        p = rng.beta(2.0, 4.0, cluster.size)
        # One chance for all rows of a cluster: forecasts are calibrated, and outcomes of a cluster alike.
        y = np.where(rng.random(cluster.size) < 0.5, rng.random(20)[cluster], rng.random(cluster.size)) < p
        found = calibrant.decisions.score_decomposition(y, p, cluster=cluster, confidence_level=LEVEL, n_resamples=39)
        assert found.miscalibration_lower is not None
        above += found.miscalibration_lower > 0.0
    assert above <= allowed(runs, (1 - LEVEL) / 2)


def test_limits_of_the_parts_of_the_brier_score():
    p, q = draw(np.random.default_rng(0), 500_000)
    mean = q.mean()
    whole = calibrant.Tally.from_arrays(q, p)
    score, uncertainty = np.mean((p - q) ** 2 + q * (1 - q)), mean * (1 - mean)
    bins = calibrant.decisions.brier_decomposition(whole)
    both = {"uncertainty": uncertainty, "skill": 1 - score / uncertainty}
    truths: list[dict[str, float]] = [
        {"score": score, "miscalibration": np.mean((p - q) ** 2), "discrimination": np.mean((q - mean) ** 2), **both},
        {"brier": score, "reliability": bins.reliability, "resolution": bins.resolution, **both},
    ]
    missed = [dict.fromkeys(truth, 0) for truth in truths]
    for run in range(RUNS):
        rng = np.random.default_rng([5, run])
        p, q = draw(rng, ROWS)
        y = rng.random(ROWS) < q
        for function, truth, misses in zip(functions, truths, missed, strict=True):
            found = function(y, p, confidence_level=LEVEL, n_resamples=60)
            for name, value in truth.items():
                misses[name] += not getattr(found, f"{name}_lower") <= value <= getattr(found, f"{name}_upper")
    for misses in missed:
        for name, count in misses.items():
            assert count <= allowed(RUNS, 2.0 * (1 - LEVEL)), name

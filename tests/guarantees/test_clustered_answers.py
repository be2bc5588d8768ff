"""Bands, tests, plans and the check of independence keep their promises where rows of a cluster go together.

Seeds are fixed and limits are binomial: a correct answer fails one of these with probability 1e-4. Answers
that take rows as independent must fail on the same data, or the data would show nothing.
"""

from collections.abc import Iterator
from itertools import accumulate, islice
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, binom
from simulated import FALSE_ALARM, allowed, replicates, runs_needed

from calibrant import calibration_test, check_independence, confidence_interval, risk_bands, rows_needed
from calibrant.certificates.clusters import enough_clusters
from calibrant.certificates.overdispersion import overdispersion_of
from calibrant.rows.intake import as_clustered


def shared_shocks(rng, p, code, share=0.5):
    """Calibrated outcomes: a row of a cluster follows the cluster's own chance with some probability, else its own."""
    own, common = rng.random(p.size), rng.random(code.max() + 1)[code]
    return np.where(rng.random(p.size) < share, common, own) < p


def most(level, replicates):
    return allowed(replicates, level)


# --- Tests of calibration ---------------------------------------------------------------------------------------------

CLUSTERS = {  # forecasts and clusters
    "60 of 20": lambda rng: (rng.random(1200), np.repeat(np.arange(60), 20)),
    "10 of 100": lambda rng: (rng.random(1000), np.repeat(np.arange(10), 100)),
    "300 of 4, rare": lambda rng: (rng.beta(0.5, 20.0, 1200), np.repeat(np.arange(300), 4)),
    "heavy tails": lambda rng: (
        rng.random(1200),
        np.repeat(np.arange(100), rng.multinomial(1100, rng.dirichlet(np.full(100, 0.3))) + 1),
    ),
}
REPLICATES = replicates(300)


def p_values(name, method) -> Iterator[float]:
    rng = np.random.default_rng([17, *name.encode()])
    while True:
        p, code = CLUSTERS[name](rng)
        y = shared_shocks(rng, p[: code.size], code)
        options = {"cluster": code, "method": method} if method != "rows" else {"method": "exact"}
        yield calibration_test(y, p[: code.size], **options, n_resamples=199, rng=rng).pvalue


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_evidence_rejects_calibrated_clusters_at_most_at_its_level(name):
    found, rejected = p_values(name, "evidence"), {0.01: 0, 0.05: 0, 0.2: 0}
    for _ in runs_needed(rejected, REPLICATES, lambda level: most(level, REPLICATES)):
        value = next(found)
        for level in rejected:
            rejected[level] += value <= level
    assert all(count <= most(level, REPLICATES) for level, count in rejected.items()), rejected


def test_the_bootstrap_of_many_clusters_rejects_not_much_more_often_than_its_level():
    found = np.array(list(islice(p_values("60 of 20", "asymptotic"), REPLICATES)))
    for level in (0.05, 0.2):
        assert (found <= level).sum() <= most(1.4 * level, REPLICATES)


@pytest.mark.parametrize("name", ["60 of 20", "10 of 100", "heavy tails"])
def test_the_exact_test_of_rows_rejects_them_far_too_often(name):
    found = islice(p_values(name, "rows"), REPLICATES)
    assert any(rejected > most(0.05, REPLICATES) for rejected in accumulate(value <= 0.05 for value in found))


def test_forecasts_that_are_off_are_found():
    rng = np.random.default_rng(4)
    code = np.repeat(np.arange(200), 10)
    found: dict[Any, int] = {"evidence": 0, "asymptotic": 0}
    for _ in range(30):
        p = rng.uniform(0.0, 0.8, 2000)
        y = shared_shocks(rng, p + 0.15, code, 0.3)
        for method in found:
            found[method] += calibration_test(y, p, cluster=code, method=method, n_resamples=199, rng=rng).rejected()
    assert min(found.values()) >= 28


# --- Bands ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"cluster_target": "clusters"}, {"max_cluster_size": 60}], ids=str)
def test_limits_of_bands_hold_together(options):
    rng = np.random.default_rng(5)
    replicates, missed, missed_by_rows = 80, 0, 0
    bias = np.array([0.0, 0.1, -0.1])
    for _ in range(replicates):
        code = np.repeat(np.arange(80), rng.integers(1, 60, 80))
        p = rng.uniform(0.1, 0.9, code.size).round(2)
        band = np.searchsorted([0.3, 0.6], p, side="right")
        y = shared_shocks(rng, p + bias[band], code, 0.6)
        bands = risk_bands(y, p, cutoffs=[0.3, 0.6], cluster=code, **options)
        rows = risk_bands(y, p, cutoffs=[0.3, 0.6])
        missed += not ((bands.lower <= bias) & (bias <= bands.upper) & (np.abs(bias) <= bands.inherited)).all()
        missed_by_rows += not ((rows.lower <= bias) & (bias <= rows.upper)).all()
    assert missed <= most(0.05, replicates)
    assert missed_by_rows > most(0.05, replicates)


# --- Plans ------------------------------------------------------------------------------------------------------------


def beta_binomial(rng, p, code, correlation):
    """Outcomes whose chances have a beta law in clusters, all of a cluster high or low together."""
    if correlation == 0.0:
        return rng.random(p.size) < p
    more = (1.0 - correlation) / correlation
    return rng.random(p.size) < beta.ppf(rng.random(code.max() + 1)[code], p * more, (1.0 - p) * more)


def certified(clusters, size, correlation, limit, **options) -> Iterator[bool]:
    rng = np.random.default_rng([clusters, size])
    code = np.repeat(np.arange(clusters), size)
    while True:
        p = rng.uniform(0.05, 0.6, code.size).round(2)
        y = beta_binomial(rng, p, code, correlation)
        yield confidence_interval(y, p, cluster=code, alternative="less", **options).upper <= limit


@pytest.mark.parametrize(
    ("size", "correlation", "limit", "method"),
    [(10, 0.1, 0.06, "adaptive"), (4, 0.0, 0.08, "adaptive"), (20, 0.1, 0.06, "normal"), (8, 0.4, 0.1, "exact")],
)
def test_the_clusters_planned_are_certified_about_as_often_as_promised(size, correlation, limit, method):
    y_prob = np.linspace(0.05, 0.6, 2000).round(2)
    plan = rows_needed(
        limit, y_prob=y_prob, cluster_size=size, intra_cluster_correlation=correlation, method=method, power=0.8
    )
    assert plan.clusters is not None
    count = 100
    kept, failed = certified(plan.clusters, size, correlation, limit, method=method), {"plan": 0}
    most_failed = count - int(binom.ppf(FALSE_ALARM, count, 0.76))
    for _ in runs_needed(failed, count, most_failed):
        failed["plan"] += not next(kept)
    assert failed["plan"] <= most_failed
    fewest = enough_clusters(limit, 0.05)
    assert plan.clusters >= fewest
    fewer = int(plan.clusters / 1.4)
    again = islice(certified(fewer, size, correlation, limit, method=method), count)
    # As soon as more than a fifth have failed the rest does not matter.
    assert fewer < fewest or any(failures > 0.2 * count for failures in accumulate(not each for each in again))


# --- Independence -----------------------------------------------------------------------------------------------------

ROWS = {  # forecasts, chances and clusters of independent rows
    "calibrated": lambda rng: (p := rng.random(600), p, np.repeat(np.arange(60), 10)),
    "far off": lambda rng: (p := rng.random(600), p**2, np.repeat(np.arange(60), 10)),
    "off, and forecasts of a cluster alike": lambda rng: (
        p := np.repeat(rng.uniform(0.1, 0.9, 60), 10) + rng.uniform(-0.1, 0.1, 600),
        p**2,
        np.repeat(np.arange(60), 10),
    ),
    "off, and clusters in the order of forecasts": lambda rng: (
        p := np.sort(rng.random(60_000)),
        p**2,
        np.arange(60_000) // 1500,
    ),
    "pairs": lambda rng: (p := rng.random(600), p, np.arange(600) // 2),
    "two clusters": lambda rng: (p := rng.random(600), p, np.arange(600) % 2),
    "rare events": lambda rng: (p := rng.beta(0.5, 20.0, 2000), p, np.arange(2000) // 10),
    "unequal sizes": lambda rng: (p := rng.random(600), p, (rng.random(600) ** 3 * 60).astype(int)),
}


@pytest.mark.parametrize("name", ROWS)
def test_independent_rows_show_dependence_no_more_often_than_the_level_says(name):
    rng = np.random.default_rng([18, *name.encode()])
    replicates = 150
    values = []
    for _ in range(replicates):
        p, chance, code = ROWS[name](rng)
        values.append(overdispersion_of(as_clustered(rng.random(p.size) < chance, p, cluster=code)).pvalue)
    # The law is one of three moments: a tenth more is allowed.
    for level in (0.01, 0.05, 0.2):
        assert np.less_equal(values, level).sum() <= most(1.1 * level, replicates)
    assert np.less_equal(values, 0.2).sum() >= binom.ppf(FALSE_ALARM, replicates, 0.1)


def test_rows_that_go_together_are_found():
    rng = np.random.default_rng(19)
    code = np.repeat(np.arange(60), 10)
    found = 0
    for _ in range(50):
        p = rng.random(600)
        found += check_independence(beta_binomial(rng, p, code, 0.15), p, code).rejected()
    assert found >= 45

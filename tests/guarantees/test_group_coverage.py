"""Limits of the worst group, and of groups fixed beforehand, are wrong as seldom as they say."""

import zlib

import numpy as np
import pytest
from simulated import allowed, replicates, runs_needed

import calibrant
from calibrant.certificates import group_evidence, group_search

LEVEL = 0.9
RUNS = replicates(200)


@pytest.fixture(autouse=True)
def _compiled_loops(monkeypatch):
    """Rows enter groups in compiled loops, as where they are many."""
    monkeypatch.setattr(group_search, "FEW", 0)
    monkeypatch.setattr(group_evidence, "FEW", 0)


def seeded(*key):
    return np.random.default_rng([zlib.crc32(str(part).encode()) for part in key])


def features(rng, rows):
    """A feature that matters in some populations, two that never do, and labels."""
    return {
        "x": rng.random(rows),
        "noise": rng.random(rows),
        "few": rng.integers(0, 5, rows),
        "label": rng.choice(["a", "b", "c"], rows),
    }


# How much more frequent events are than forecast, and the truth: the mean of that over the worst group and interval.
POPULATIONS = {
    "calibrated": (lambda rows: 0.0 * rows["x"], 0.0),
    "upper third too low": (lambda rows: 0.2 * (rows["x"] >= 0.7), 0.06),
    "halves cancel": (lambda rows: np.where(rows["x"] < 0.5, 0.1, -0.1), 0.05),
    "a label, few forecasts": (lambda rows: 0.2 * (rows["label"] == "b") * (rows["p"] > 0.5), 0.2 / 3 / 2),
    "all rows": (lambda rows: 0.08 + 0.0 * rows["x"], 0.08),
}


@pytest.mark.parametrize(("name", "rows"), [*((name, 120) for name in POPULATIONS), ("upper third too low", 600)])
def test_limits_of_the_worst_group(name, rows):
    shift, truth = POPULATIONS[name]
    rng, missed = seeded("worst group", name, rows), dict.fromkeys(("lower", "upper"), 0)
    most = allowed(RUNS, 1.0 - LEVEL)
    for run in runs_needed(missed, RUNS, most):
        X, p = features(rng, rows), 0.2 + 0.6 * rng.random(rows)
        y = rng.random(rows) < p + shift(X | {"p": p})
        found = calibrant.worst_group(y, p, X, confidence_level=LEVEL, rng=run)
        missed["lower"] += found.lower > truth
        missed["upper"] += found.upper < truth
    assert max(missed.values()) <= most


def test_cuts_chosen_by_looking_would_break_limits_of_fixed_ones():
    """The worst cut of calibrated forecasts looks far worse than any cut that was fixed beforehand would."""
    rng, surprising, runs = seeded("chosen"), 0, 25
    for _ in range(runs):
        X, p = features(rng, 400), rng.random(400)
        y = rng.random(400) < p
        found = calibrant.worst_group(y, p, {"x": X["x"], "noise": X["noise"]})
        inside = (p >= found.worst.low) & (p <= found.worst.high)
        if found.worst.kind != "all":
            column = X[found.worst.feature]
            inside &= column <= found.worst.value if found.worst.kind == "at most" else column >= found.worst.value
        residual = (y - p)[inside]
        surprising += abs(residual.sum()) > 1.645 * np.sqrt(np.square(residual).sum())  # for fixed ones, once in ten
    assert surprising > runs / 2


def overlapping(rng, rows):
    X = features(rng, rows)
    return {"high": X["x"] >= 0.7, "most": X["noise"] >= 0.2, "few": X["few"] == 0, "label": X["label"]}, X


@pytest.mark.parametrize("scale", ["mass", "group"])
@pytest.mark.parametrize("rows", [150])
def test_limits_of_overlapping_groups(scale, rows):
    """One of six groups is off: limits are seldom on the wrong side of its error."""
    truth = {"mass": 0.06, "group": 0.2}[scale]
    rng, missed = seeded("overlapping", scale, rows), dict.fromkeys(("lower", "upper", "single"), 0)
    most = allowed(RUNS, 1.0 - LEVEL)
    for run in runs_needed(missed, RUNS, most):
        groups, X = overlapping(rng, rows)
        p = 0.2 + 0.6 * rng.random(rows)
        y = rng.random(rows) < p + 0.2 * (X["x"] >= 0.7)
        found = calibrant.certify(y, p, max_error=truth, groups=groups, scale=scale, confidence_level=LEVEL, rng=run)
        missed["upper"] += found.joint_upper < truth
        missed["lower"] += found.joint_lower > truth
        missed["single"] += "refuted" in found.verdicts
    assert max(missed.values()) <= most


@pytest.mark.parametrize("scale", ["mass", "group"])
def test_single_verdicts_hold_together(scale):
    """Six groups sit exactly on the limit; to certify any of them, strictly below, or to refute any is an error."""
    rng, missed, rows = seeded("single", scale), {"certified": 0, "refuted": 0}, 300
    most = allowed(RUNS, 1.0 - LEVEL)
    for run in runs_needed(missed, RUNS, most):
        labels = rng.integers(0, 3, rows)
        p = 0.2 + 0.6 * rng.random(rows)
        y = rng.random(rows) < p + 0.15
        limit = {"mass": 0.15 / 3, "group": 0.15}[scale]
        found = calibrant.certify(
            y, p, max_error=limit - 1e-9, groups=labels, scale=scale, confidence_level=LEVEL, rng=run
        )
        missed["certified"] += "certified" in found.verdicts
        above = calibrant.certify(y, p, max_error=limit, groups=labels, scale=scale, confidence_level=LEVEL, rng=run)
        missed["refuted"] += "refuted" in above.verdicts
    assert max(missed.values()) <= most

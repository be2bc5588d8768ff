"""Limits for all questions about several classes hold together as often as they say, however many questions there are.

Populations are a few forecasts, each with the law of the class given it, so that every error is known exactly. The
upper limit of the largest error is tried where one question is off, where all are and where none is; lower limits and
single verdicts where very many questions could each be the one that is wrong.
"""

import zlib
from collections import Counter
from typing import Any, NamedTuple

import brute_force
import numpy as np
import pytest
from class_cases import drawn
from simulated import allowed, replicates, runs_needed

from calibrant import calibration_test, certify
from calibrant.rows.classes import class_questions

LEVEL = 0.9
RUNS = replicates(300)


class Population(NamedTuple):
    """Forecasts, the law of the class given each, and how often each is issued."""

    name: str
    forecast: Any
    truth: Any
    share: Any

    def __str__(self) -> str:
        return self.name

    def draw(self, rng: np.random.Generator, rows: int) -> tuple[Any, Any]:
        """Draw rows."""
        which = rng.choice(len(self.share), size=rows, p=self.share)
        return drawn(rng, np.array(self.truth)[which]), np.array(self.forecast)[which]

    def errors(self, asked: str) -> list[float]:
        """Return the exact error of each question: that of a table of all forecasts and classes, weighted."""
        forecast, truth, share = map(np.array, (self.forecast, self.truth, self.share))
        count = forecast.shape[1]
        y = np.tile(np.arange(count), len(share))
        weight = (truth * share[:, None]).ravel()
        kept = weight > 0.0
        p = np.repeat(forecast, count, axis=0)
        family = class_questions(y[kept], p[kept], questions=asked, classes=range(count))
        return [brute_force.cutoff(each.y_true.astype(float), each.y_prob, weight[kept]) for each in family]


_FAR = np.random.default_rng(7).dirichlet(np.ones(6), 12).round(2)
_FAR[:, 0] += 1.0 - _FAR.sum(axis=1)
_FAR = np.abs(_FAR) / np.abs(_FAR).sum(axis=1, keepdims=True)
POPULATIONS = (
    Population("calibrated", _FAR, _FAR, np.full(12, 1 / 12)),
    Population(
        "right by class",
        [[0.33, 0.175, 0.175, 0.32], [0.33, 0.35, 0.0, 0.32]],
        [[0.65, 0.175, 0.175, 0.0], [0.01, 0.35, 0.0, 0.64]],
        [0.5, 0.5],
    ),
    Population("all off", [[0.4, 0.3, 0.2, 0.1]], [[0.1, 0.2, 0.3, 0.4]], [1.0]),
    Population("rare", [[0.98, 0.01, 0.01], [0.9, 0.02, 0.08]], [[0.96, 0.03, 0.01], [0.9, 0.1, 0.0]], [0.8, 0.2]),
)


@pytest.mark.parametrize("asked", ["confidence", "classwise", "top_label", "subsets"])
@pytest.mark.parametrize("population", POPULATIONS, ids=str)
def test_limits_for_all_questions_hold_together(population, asked):
    errors = population.errors(asked)
    worst = max(errors)
    classes = range(np.array(population.forecast).shape[1])
    missed: Counter[str] = Counter(dict.fromkeys(("upper", "lower", "certified", "refuted"), 0))
    rng = np.random.default_rng(zlib.crc32(f"{population} {asked}".encode()))
    # The limit asked about is the one at which verdicts are most easily wrong: the error itself, from either side.
    limits = (max(worst - 1e-9, 0.0), worst)
    for run in runs_needed(missed, RUNS, allowed(RUNS, 1.0 - LEVEL)):
        y, p = population.draw(rng, (25, 120)[run % 2])
        limit = limits[run // 2 % 2]
        found: Any = certify(y, p, max_error=limit, questions=asked, classes=classes, confidence_level=LEVEL, rng=run)
        single = asked == "confidence"
        upper, lower = (found.upper, found.lower) if single else (found.joint_upper, found.joint_lower)
        missed["upper"] += upper < worst - 1e-12
        missed["lower"] += lower > worst + 1e-12
        verdicts = (found.verdict,) if single else found.verdicts
        pairs = list(zip(errors, verdicts, strict=True))
        missed["certified"] += any(error > limit and said == "certified" for error, said in pairs)
        missed["refuted"] += any(error <= limit and said == "refuted" for error, said in pairs)
    assert {name: n for name, n in missed.items() if n > allowed(RUNS, 1.0 - LEVEL)} == {}


@pytest.mark.parametrize("asked", ["classwise", "subsets"])
def test_calibrated_forecasts_are_rejected_no_more_often_than_the_level_says(asked):
    rng = np.random.default_rng(11)
    missed = Counter({"rejected": 0})
    for _ in runs_needed(missed, 200, allowed(200, 0.1)):
        p = rng.dirichlet(np.ones(4), 12).round(1)
        p[:, 0] += 1.0 - p.sum(axis=1)
        p = np.abs(p) / np.abs(p).sum(axis=1, keepdims=True)
        found = calibration_test(drawn(rng, p), p, questions=asked, classes=range(4), n_resamples=99, rng=rng)
        missed["rejected"] += found.pvalue <= 0.1
    assert missed["rejected"] <= allowed(200, 0.1)

"""Calibration curves against R 4.2.2 (rms 6.5, pmcalibration 0.2, CalibrationCurves 3.1), scikit-misc, statsmodels.

The rows are those of calibration_500.csv. In R, with y and p:

    s <- predict(loess(y ~ p)); e <- abs(s - p)
    mean(e); quantile(e, c(.5, .9)); max(e); 100 * mean((s - p)^2)       # the last is CalibrationCurves' ECI
    x <- qlogis(p); s <- approx(lowess(x, y, iter = 0), xout = x)$y       # pmcalibration(y, p, "lowess")
    s <- approx(lowess(p, y, iter = 0), xout = p)$y                       # rms::val.prob(p, y)
    s <- fitted(glm(y ~ rcs(qlogis(p), 5), family = binomial))            # pmcalibration(y, p, "rcs", nk = 5)
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrant
from calibrant import Tally
from calibrant.core.local_regression import loess, lowess
from calibrant.measures.smoothers import points_of, spline_knots

Y, P = np.loadtxt(Path(__file__).parent / "calibration_500.csv", delimiter=",", skiprows=1).T

IN_R: list[tuple[dict[str, Any], dict[str, float]]] = [
    (
        {"smoother": "loess"},
        {
            "ici": 0.0474744781725,
            "e50": 0.0502051670290,
            "e90": 0.0904702443122,
            "emax": 0.0965983039051,
            "eci": 0.3206405560,
        },
    ),
    ({"smoother": "lowess"}, {"ici": 0.05348197010043, "eci": 0.3741186260414}),
    ({"smoother": "lowess", "scale": "probability"}, {"ici": 0.04297421758645, "emax": 0.07714317105754}),
    ({"smoother": "splines"}, {"ici": 0.0491585538784, "emax": 0.0971054480794, "eci": 0.3190329731175}),
    ({"smoother": "splines", "knots": 3}, {"ici": 0.04173369303652, "emax": 0.08271589552051}),
    ({"smoother": "splines", "knots": 7}, {"ici": 0.0482355933859, "emax": 0.1004958556876}),
    ({"smoother": "splines", "scale": "probability"}, {"ici": 0.04776553218693, "emax": 0.1092598169499}),
]


@pytest.mark.parametrize(("options", "numbers"), IN_R, ids=lambda each: str(each)[:60])
def test_curves_are_those_of_r(options, numbers):
    errors = calibrant.measures.integrated_calibration_index(Y, P, **options)
    assert {name: getattr(errors, name) for name in numbers} == pytest.approx(numbers, rel=1e-9)


def rows(seed):
    """Return rows of many sizes and shapes, with ties or without, and a span."""
    rng = np.random.default_rng(seed)
    p = rng.random(rng.integers(8, 400)) ** rng.choice([0.5, 1.0, 2.0])
    if seed % 3 == 0:
        p = p.round(2)
    return (rng.random(p.size) < p).astype(float), p, float(rng.choice([0.4, 0.5, 0.75, 1.0]))


def test_loess_is_the_one_of_cleveland_and_grosse():
    from skmisc.loess import loess as theirs

    compared = 0
    for seed in range(60):
        y, p, span = rows(seed)
        fit = theirs(p, y, span=span, degree=2)
        try:
            fit.fit()
        except ValueError:  # it warns of what it cannot fit on rows with many ties
            continue
        curve = loess(points_of(Tally.from_arrays(y, p)), span)
        assert curve(p) == pytest.approx(fit.outputs.fitted_values, abs=1e-10), seed
        compared += 1
    assert compared > 50


def test_lowess_is_nearly_the_one_of_statsmodels():
    # Which gives rows beyond 0.999 of the reach a say, up to 2.7e-8 of that of the nearest ones, where R does not.
    from statsmodels.nonparametric.smoothers_lowess import lowess as theirs

    for seed in range(40):
        y, p, span = rows(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of ties
            expected = theirs(y, p, frac=span, it=0, delta=0.01 * np.ptp(p), return_sorted=False)
        assert lowess(points_of(Tally.from_arrays(y, p)), span)(p) == pytest.approx(expected, abs=1e-4), seed


STEPS = np.arange(1, 41)
FEW = STEPS * 0.6180339887498949 % 1.0  # rows by arithmetic alone
EVENTS = (STEPS * 0.4142135623730951 % 1.0 < FEW).astype(float)
LOWESS = [0.142033300303403, 0.275799798976123, 0.497366609615832, 0.747715893278366, 0.966186303872469]
LOESS = [0.136599460995545, 0.255341824723735, 0.486427721790336, 0.763446927548888, 0.976278891873912]
MANY = np.arange(1, 201) / 201 * 0.9 + 0.06


def test_lowess_of_few_rows_is_the_one_of_r():
    # i <- 1:40; p <- (i * 0.6180339887498949) %% 1; y <- as.numeric((i * 0.4142135623730951) %% 1 < p)
    # lowess(p, y, f = 2/3, iter = 0)$y[c(1, 10, 20, 30, 40)]; predict(loess(y ~ p), sort(p)[c(1, 10, 20, 30, 40)])
    points = points_of(Tally.from_arrays(EVENTS, FEW))
    at = np.sort(FEW)[[0, 9, 19, 29, 39]]
    assert lowess(points, 2 / 3)(at) == pytest.approx(LOWESS, abs=1e-13)
    assert loess(points, 0.75)(at) == pytest.approx(LOESS, abs=1e-13)


@pytest.mark.parametrize(
    ("p", "count", "knots"),
    [
        (FEW, 5, [-2.16080805941265, -1.02248543879305, -0.0162689681975113, 0.904425026480604, 1.8769254999429]),
        (
            np.concatenate([np.full(30, 0.05), MANY, np.full(20, 0.99)]),
            5,
            [-2.6747870152318, -2.05996192887984, 0.0400061372321109, 2.27698484641507, 3.0672722340244],
        ),
        (np.concatenate([np.full(30, 0.05), MANY]), 3, [-2.6747870152318, 0.0489650046279594, 1.87361502890895]),
        (np.repeat([0.1, 0.2, 0.3, 0.5, 0.7, 0.9], [5, 20, 3, 40, 9, 7]), 5, [*-np.log([4, 7 / 3]), 0, np.log(7 / 3)]),
    ],
    ids=["fewer than 100 rows", "many at both ends", "many at one end", "few values"],
)
def test_knots_are_those_of_hmisc(p, count, knots):
    # Hmisc::rcspline.eval(qlogis(p), nk = count, knots.only = TRUE)
    points = points_of(Tally.from_arrays(np.zeros(p.size), p))
    found = spline_knots(points._replace(value=np.log(points.value / (1 - points.value))), count)
    assert found == pytest.approx(np.array(knots), abs=1e-12)

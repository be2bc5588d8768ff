"""Forecasts of a real outcome at the gate: what is wrong is named with its place and its remedy."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import calibrant
from calibrant import InputError
from calibrant.rows.distributions import check_distributions

Z = [1.0, 2.0, 3.0]
MEMBERS = [[1.0, 2.0], [1.0, 3.0], [2.0, 4.0]]


def asked(z=Z, **given):
    return calibrant.threshold_calibration_error(z, **given)


BAD = {
    "nothing": ({}, "pass one of ensemble=, quantiles= and cdf=, got none of them"),
    "two kinds": (
        {"ensemble": MEMBERS, "cdf": norm.cdf},
        "pass one of ensemble=, quantiles= and cdf=, got ensemble= and cdf=",
    ),
    "missing outcome": ({"z": [1.0, np.nan, 2.0], "ensemble": MEMBERS}, r"z\[1\] is missing"),
    "infinite outcome": ({"z": [1.0, np.inf, 2.0], "ensemble": MEMBERS}, r"z\[1\] is inf; every value must be finite"),
    "missing member": (
        {"ensemble": [[1.0, 2.0], [1.0, np.nan], [1.0, 2.0]]},
        r"ensemble\[1\] has member 1 that is missing; every value must be a finite number",
    ),
    "infinite member": (
        {"ensemble": [[1.0, 2.0], [-np.inf, 1.0], [1.0, 2.0]]},
        r"ensemble\[1\] has member 0 that is -inf",
    ),
    "masked member": (
        {"ensemble": np.ma.masked_equal(MEMBERS, 4.0)},
        r"ensemble\[2\] has member 1 that is masked",
    ),
    "one dimension": (
        {"ensemble": Z},
        r"ensemble has shape \(3,\), not two dimensions; one member per row is ensemble.resh",
    ),
    "three dimensions": (
        {"ensemble": [[[1.0]]]},
        r"has shape \(1, 1, 1\), not two dimensions; pass a table with a line",
    ),
    "on its side": ({"ensemble": np.ones((2, 3))}, r"ensemble has 2 lines for 3 outcomes; pass ensemble.T"),
    "other rows": (
        {"ensemble": np.ones((5, 2))},
        "ensemble has 5 lines for 3 outcomes; pass a line of members per outcome",
    ),
    "no members": ({"ensemble": np.ones((3, 0))}, "ensemble has no members; at least one member is needed"),
    "words": ({"ensemble": [["a"], ["b"], ["c"]]}, "ensemble has dtype <U1, not numbers; convert it"),
    "ragged": ({"ensemble": [[1.0], [1.0, 2.0], [1.0]]}, "ensemble cannot be read as a table"),
    "not a pair": ({"quantiles": [0.1, 0.5, 0.9]}, "quantiles must be a pair of levels and values, got list; as in"),
    "level 1": (
        {"quantiles": ([0.5, 1.0], MEMBERS)},
        r"levels of quantiles\[1\] is 1, outside \(0, 1\); divide percentages",
    ),
    "level 0": ({"quantiles": ([0.0, 0.5], MEMBERS)}, r"levels of quantiles\[0\] is 0, outside"),
    "level missing": ({"quantiles": ([np.nan, 0.5], MEMBERS)}, r"levels of quantiles\[0\] is missing"),
    "levels fall": (
        {"quantiles": ([0.9, 0.1], MEMBERS)},
        r"levels of quantiles\[1\] is 0.1 after 0.9; sort the levels, and the columns",
    ),
    "levels repeat": ({"quantiles": ([0.5, 0.5], MEMBERS)}, r"levels of quantiles\[1\] is 0.5 after 0.5"),
    "one level": ({"quantiles": ([0.9], np.ones((3, 1)))}, "has one level, 0.9, which is no distribution"),
    "more levels": ({"quantiles": ([0.1, 0.5, 0.9], MEMBERS)}, "values of quantiles has 2 columns for 3 levels"),
    "crossed": (
        {"quantiles": ([0.1, 0.9], [[1.0, 2.0], [4.0, 3.0], [1.0, 2.0]])},
        r"values of quantiles\[1\] falls from 4 at level 0.1 to 3 at level 0.9; quantiles that cross",
    ),
    "no function": ({"cdf": MEMBERS, "thresholds": [1.0]}, "cdf must be a function of a threshold, got list"),
    "function everywhere": ({"cdf": norm.cdf}, "thresholds cannot be 'all' for cdf=, which may change anywhere"),
    "other word": (
        {"ensemble": MEMBERS, "thresholds": "some"},
        "thresholds must be 'all' or a list of numbers, got 'some'",
    ),
    "threshold missing": ({"ensemble": MEMBERS, "thresholds": [1.0, np.nan]}, r"thresholds\[1\] is missing"),
    "no thresholds": ({"ensemble": MEMBERS, "thresholds": []}, "thresholds is empty"),
    "above 1": (
        {"cdf": lambda _: np.array([0.1, 1.5, 0.2]), "thresholds": [1.0]},
        r"cdf\(1\)\[1\] is 1.5, outside \[0, 1\]",
    ),
    "not a number": ({"cdf": lambda _: np.array([0.1, np.nan, 0.2]), "thresholds": [1.0]}, r"cdf\(1\)\[1\] is missing"),
    "falls": (
        {"cdf": lambda t: np.array([0.5, 0.9 - 0.2 * t, 0.5]), "thresholds": [2.0, 1.0]},
        r"cdf\(2\)\[1\] is 0.5, below 0.7 at the lower threshold 1; a distribution function never falls",
    ),
    "other length": ({"cdf": lambda _: np.array([0.5]), "thresholds": [1.0]}, r"cdf\(1\) returned 1 values for 3 rows"),
    "a number": ({"cdf": lambda _: 0.5, "thresholds": [1.0]}, r"cdf\(1\) is one float, not an array"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_with_its_remedy(name):
    given, message = BAD[name]
    with pytest.raises(InputError, match=message):
        asked(**given)


def test_errors_hold_their_facts():
    with pytest.raises(InputError) as caught:
        asked(ensemble=[[1.0, 2.0], [1.0, np.inf], [1.0, 2.0]])
    assert (caught.value.argument, caught.value.position, caught.value.value) == ("ensemble", 1, np.inf)


def test_the_same_gate_stands_before_certificates():
    for function in (calibrant.pit_calibration, calibrant.certificates.certify_thresholds):
        with pytest.raises(InputError, match="got none of them"):
            function(Z, max_error=0.1)
    with pytest.raises(InputError, match="max_error must be a number from 0 to 1, got 2"):
        calibrant.certificates.certify_thresholds(Z, ensemble=MEMBERS, max_error=2)
    with pytest.raises(InputError, match=r"write 0\.95 for 95%"):
        calibrant.certificates.certify_thresholds(Z, ensemble=MEMBERS, max_error=0.1, confidence_level=95)


def test_numbers_too_far_apart_are_refused_and_zeros_are_one():
    with pytest.raises(InputError, match=r"ensemble and z reach from -1e\+308 to 3, too far for float64"):
        asked(ensemble=[[-1e308, 1.0], [1.0, 2.0], [1.0, 2.0]])
    one, other = (asked([0.0, 1.0], ensemble=[[zero, 1.0], [-zero, 2.0]]) for zero in (0.0, -0.0))
    assert one.to_json() == other.to_json()


PIT_BAD = {
    "without cdf": ({"ensemble": MEMBERS, "cdf_before": norm.cdf}, "cdf_before is a function that goes with cdf="),
    "no function": ({"cdf": norm.cdf, "cdf_before": 0.5}, "cdf_before is a function that goes with cdf="),
    "other length": ({"cdf": lambda z: z[:1] / 10}, r"cdf\(z\) returned 1 values for 3 outcomes"),
    "above 1": ({"cdf": lambda z: z}, r"cdf\(z\)\[1\] is 2, outside \[0, 1\]"),
    "other way round": (
        {"cdf": lambda z: z / 10, "cdf_before": lambda z: z / 5},
        r"cdf_before\(z\)\[0\] is 0.2, above cdf\(z\), which is 0.1",
    ),
}


@pytest.mark.parametrize("name", PIT_BAD)
def test_bad_functions_of_outcomes_are_named(name):
    given, message = PIT_BAD[name]
    with pytest.raises(InputError, match=message):
        calibrant.pit_calibration(Z, **given)


def test_frames_and_tensors_are_read_and_their_labels_compared():
    frame = pd.DataFrame(MEMBERS, index=[5, 6, 7])
    assert asked(pd.Series(Z, index=[5, 6, 7]), ensemble=frame) == asked(ensemble=MEMBERS)
    with pytest.raises(InputError, match="rows are paired by position"):
        asked(pd.Series(Z), ensemble=frame)
    whole = asked(z=[1, 2, 3], ensemble=np.array(MEMBERS, dtype=np.float32))
    assert whole == asked(ensemble=MEMBERS)


def test_what_is_read_is_not_changed():
    ensemble = np.array([[3.0, 1.0], [2.0, 1.0]])
    z = np.array([1.0, 2.0])
    for array in (ensemble, z):
        array.flags.writeable = False
    asked(z, ensemble=ensemble)
    assert ensemble.tolist() == [[3.0, 1.0], [2.0, 1.0]]


def test_step_functions_reach_from_0_to_1():
    levels = [0.05, 0.5, 0.9]
    found = check_distributions(Z, None, (levels, np.sort(np.ones((3, 3)), axis=1)), None)
    np.testing.assert_allclose(found.levels, [0.0, 0.275, 0.7, 1.0])
    assert check_distributions(Z, MEMBERS, None, None).stated.tolist() == [1 / 3, 2 / 3]

"""Tests of several groups at once: each at its share of the level."""

import dataclasses

import numpy as np
import pyarrow
import pytest
from cli_cases import answer, call
from table_cases import predictions, write

import calibrant
from calibrant.certificates import GroupCalibrationTests, spiegelhalter_test
from calibrant.core.results import Result

COLUMNS = predictions(900, seed=6)
Y, P, W, WARD = (COLUMNS[name] for name in ("y", "p", "w", "ward"))
WRONG = np.where(WARD == "south", COLUMNS["worse"], P)


def test_each_group_is_tested_as_if_it_were_alone():
    found = calibrant.calibration_test(Y, WRONG, by=WARD, rng=3)
    assert list(found) == ["north", "south", "west"]
    assert len(found) == 3
    for ward in found:
        rows = ward == WARD
        assert found[ward] == calibrant.calibration_test(Y[rows], WRONG[rows], rng=3)
    weighted = calibrant.calibration_test(Y, WRONG, by=WARD, sample_weight=W)
    west = WARD == "west"
    assert weighted["west"] == calibrant.calibration_test(Y[west], WRONG[west], sample_weight=W[west])
    direction = spiegelhalter_test(Y, WRONG, by=WARD)
    assert direction["west"] == spiegelhalter_test(Y[west], WRONG[west])
    with pytest.raises(KeyError):
        found["east"]


def test_the_level_is_shared_between_groups():
    found = calibrant.calibration_test(Y, WRONG, by=WARD, rng=3)
    assert found.rejected() == ("south",)
    assert found.pvalue == pytest.approx(3 * found["south"].pvalue)
    least = found["south"].pvalue
    assert found.rejected(3 * least) == ("south",)
    assert found.rejected(2.9 * least) == ()
    assert found.each_level(0.06) == pytest.approx(0.02)
    assert found["south"].rejected(least)
    assert not found["south"].rejected(0.9 * least)
    assert calibrant.calibration_test(Y, P, by=WARD, method="asymptotic").pvalue <= 1.0
    assert str(found).startswith(
        "Rejected: perfect calibration is rejected in south, at the 5% level for all 3 groups together (each at 1.67%)."
    )
    assert found.said(least).startswith("Not rejected: perfect calibration is not rejected in any of them, at the ")
    assert found.frame()["pvalue"].tolist() == [each.pvalue for each in found.tests]


@pytest.mark.parametrize("kind", ["cutoff", "spiegelhalter"])
def test_the_command_line_says_the_same(kind, tmp_path):
    file = write({**COLUMNS, "p": WRONG}, tmp_path / "t.csv", "csv")
    if kind == "cutoff":
        groups = calibrant.calibration_test(Y, WRONG, by=WARD, rng=0)
    else:
        groups = spiegelhalter_test(Y, WRONG, by=WARD)
    options = ("--by", "ward", "--test", kind, "--level", 0.1)
    assert call("test", file, *options, "--verbose").stdout == f"{groups.said(0.1, by='ward')}\n"
    document = answer("test", file, *options, exit_code=1)
    plain = [{name: value for name, value in each.to_dict().items() if name != "schema"} for each in groups.tests]
    assert [each["result"] for each in document["groups"]] == plain
    assert tuple(each["group"] for each in document["groups"] if each["rejected"]) == groups.rejected(0.1)


def test_groups_of_any_source_give_the_same():
    found = calibrant.calibration_test(Y, P, by=WARD, rng=0)
    assert calibrant.calibration_test(calibrant.rows.in_groups(Y, P, by=WARD), rng=0) == found
    table = pyarrow.table({"y": Y, "p": P, "ward": WARD})
    with calibrant.scan(table, y_true="y", y_prob="p", by="ward") as scanned:
        assert calibrant.calibration_test(scanned, rng=0) == found
        assert spiegelhalter_test(scanned).groups == found.groups


def test_results_survive_json():
    found = calibrant.calibration_test(Y, WRONG, by=WARD, rng=3)
    for kind in (GroupCalibrationTests, Result):
        assert kind.from_json(found.to_json()) == found
    with pytest.raises(ValueError, match=r"^groups of this GroupCalibrationTests is \('a',\), not as many as tests"):
        dataclasses.replace(found, groups=("a",))


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ((Y, P), {"by": ["a"]}, r"^by has 1 values for 900 rows"),
        ((Y, P), {"by": [None, *WARD[1:]]}, r"^by\[0\] is missing"),
        ((calibrant.Tally.from_arrays(Y, P),), {"by": WARD}, r"^by was given together with a tally"),
        ((Y, P), {"by": WARD, "sample_weight": W, "method": "exact"}, r"^by group 'north': method='exact' needs rows"),
        ((Y, P), {"by": WARD, "sample_weight": (WARD != "west") * W}, r"^by group 'west': sample_weight is zero every"),
    ],
)
def test_bad_groups_are_refused(rows, options, message):
    with pytest.raises(ValueError, match=message):
        calibrant.calibration_test(*rows, **options)

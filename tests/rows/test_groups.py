"""Rows in memory in groups, each of which any function takes."""

from typing import Any

import numpy as np
import pytest
from table_cases import predictions

import calibrant
from calibrant.rows import GroupedRows, by_group, in_groups
from calibrant.rows.runs import stable_order

COLUMNS = predictions(500, seed=8)
Y, P, W, WARD = (COLUMNS[name] for name in ("y", "p", "w", "ward"))


@pytest.mark.parametrize("most", [1, 7, 10**6, 2**62])
@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_positions_are_those_of_a_stable_sort(most, rows):
    keys = np.random.default_rng(rows).integers(0, most, rows)
    assert (stable_order(keys) == np.argsort(keys, kind="stable")).all()


def test_each_group_is_measured_as_if_it_were_alone():
    groups = in_groups(Y, P, by=WARD, sample_weight=W)
    assert isinstance(groups, GroupedRows)
    assert groups.groups == ("north", "south", "west")
    for ward, found in zip(groups.groups, by_group(groups, calibrant.measure), strict=True):
        rows = ward == WARD
        assert found == calibrant.measure(Y[rows], P[rows], sample_weight=W[rows])


def test_groups_of_numbers_written_as_texts_are_in_the_order_of_numbers(tmp_path):
    ward = (np.arange(Y.size) % 12 + 1).astype(str)
    wanted = tuple(map(str, range(1, 13)))
    found = calibrant.certify(Y, P, by=ward, max_error=0.3)
    assert found.groups == wanted
    file = tmp_path / "wards.csv"
    lines = [f"{y},{p!r},{each}" for y, p, each in zip(Y.tolist(), P.tolist(), ward, strict=True)]
    file.write_text("\n".join(["y,p,ward", *lines]))
    with calibrant.scan(file, y_true="y", y_prob="p", by="ward") as rows:
        assert rows.groups == wanted
        assert calibrant.certify(rows, max_error=0.3).upper == pytest.approx(found.upper, abs=1e-9)
    named = np.where(ward == "12", "twelve", ward)  # texts that are not all numbers stay in the order of texts
    assert in_groups(Y, P, by=named).groups == tuple(sorted(set(named.tolist())))


def test_a_group_whose_outcomes_are_events_counts_them_whatever_the_others_hold():
    mixed = np.where(WARD == "west", 0.25 + Y / 2, Y)
    groups: Any = in_groups(mixed, P, by=WARD)
    assert [source.binary_outcomes for source in groups.sources] == [True, True, False]
    north = WARD == "north"
    assert by_group(groups, calibrant.measure)[0] == calibrant.measure(Y[north], P[north])


def test_what_is_in_groups_stays_in_them():
    groups = in_groups(Y, P, by=WARD)
    assert in_groups(groups) is groups
    assert calibrant.certify(groups, max_error=0.3) == calibrant.certify(Y, P, by=WARD, max_error=0.3)
    assert calibrant.measure(groups) == calibrant.measure(Y, P, by=WARD)
    one_set: tuple[Any, ...] = (calibrant.cutoff_calibration_error, calibrant.confidence_interval)
    for function in one_set:
        with pytest.raises(ValueError, match=r"^this source holds rows in groups; pass it to measure or certify"):
            function(groups)


@pytest.mark.usefixtures("as_if_large")
def test_many_rows_in_groups_are_judged_as_few():
    heavy = calibrant.certify(in_groups(Y, P, by=WARD, sample_weight=np.full(Y.size, 3.0)), max_error=0.3)
    for ward in heavy:
        rows = ward == WARD
        alone = calibrant.certify(Y[rows], P[rows], max_error=0.3, confidence_level=1 - 0.05 / 3)
        assert heavy[ward].upper == pytest.approx(alone.upper, abs=1e-12)
        assert heavy[ward].n_eff == rows.sum()


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ((Y, P), {}, r"^by is missing"),
        ((Y, P), {"by": WARD[:-1]}, r"^by has 499 values for 500 rows"),
        ((Y, 10 * P), {"by": WARD}, r"^y_prob\[\d+\] is "),
        ((calibrant.Tally.from_arrays(Y, P),), {"by": WARD}, r"^by was given together with a tally"),
        ((in_groups(Y, P, by=WARD),), {"by": WARD}, r"^by was given together with rows that are in groups already"),
        ((in_groups(Y, P, by=WARD), P), {}, r"^y_prob was given together with a source of rows in groups"),
    ],
)
def test_bad_groups_are_refused(rows, options, message):
    with pytest.raises(ValueError, match=message):
        in_groups(*rows, **options)


def test_an_error_says_in_which_group():
    with pytest.raises(calibrant.InputError, match=r"^by group 'south': no") as caught:
        by_group(in_groups(Y, P, by=WARD), lambda rows: _refuse(rows, calibrant.InputError("no")))
    assert caught.value.group == "south"


def test_an_error_that_is_not_ours_stays_what_it_is_and_notes_the_group():
    wrong = KeyError("no")
    with pytest.raises(KeyError) as caught:
        by_group(in_groups(Y, P, by=WARD), lambda rows: _refuse(rows, wrong))
    assert caught.value is wrong
    assert wrong.__notes__ == ["by group 'south'"]


def _refuse(rows, error):
    if rows.row_total == int((WARD == "south").sum()):
        raise error

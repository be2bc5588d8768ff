"""Groups that were fixed beforehand and may overlap are columns like any other."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calibrant
from calibrant import certify

ROWS = 400
RNG = np.random.default_rng(8)
P = RNG.random(ROWS).round(2)
Y = (RNG.random(ROWS) < P**1.3).astype(int)
OLD, WARD = RNG.random(ROWS) < 0.4, RNG.choice(["north", "south", "west"], ROWS)
GROUPS = {"old": OLD, "ward": WARD, "all": np.ones(ROWS, dtype=bool)}
WEIGHT = RNG.exponential(size=ROWS)


def masks():
    return {"old": OLD, **{f"ward: {ward}": ward == WARD for ward in np.unique(WARD)}, "all": GROUPS["all"]}


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unit weights", "weights"])
@pytest.mark.parametrize("method", ["adaptive", "hoeffding", "normal"])
def test_mass_is_the_certificate_of_rows_outside_at_zero(method, weight):
    found = certify(Y, P, max_error=0.1, groups=GROUPS, method=method, sample_weight=weight)
    assert found.kind == "groups"
    assert not found.disjoint
    assert found.questions == tuple(masks())
    delta = 0.05 / len(masks())
    for label, mask in masks().items():
        alone = {"sample_weight": weight, "method": method}
        column = certify(Y * mask, P * mask, max_error=0.1, confidence_level=1 - delta, **alone)
        assert found[label].estimate == pytest.approx(column.estimate)
        if method == "adaptive":  # bets that serve several levels at once: a little wider, never narrower than at one
            assert column.upper - 1e-12 <= found[label].upper <= 1.2 * column.upper
        else:
            assert found[label].upper == pytest.approx(column.upper)
        assert found[label].lower == pytest.approx(column.lower)
        weights = np.ones(ROWS) if weight is None else weight
        own = calibrant.cutoff_calibration_error(Y[mask], P[mask], sample_weight=weights[mask])
        assert found[label].estimate == pytest.approx(own * weights[mask].sum() / weights.sum())
    whole = certify(Y, P, max_error=0.1, method=method, sample_weight=weight)
    assert found.upper[-1] == pytest.approx(whole.upper)


def test_within_groups_is_the_certificate_of_their_rows():
    found = certify(Y, P, max_error=0.2, groups=WARD, scale="group")
    by = certify(Y, P, max_error=0.2, by=WARD)
    assert (found.kind, found.disjoint) == ("within_groups", True)
    assert found.questions == by.groups
    assert found.upper == by.upper
    for each, other in zip(found.certificates, by.certificates, strict=True):
        assert (each.estimate, each.lower, each.rows) == (other.estimate, other.lower, other.rows)
        assert other.upper - 1e-12 <= each.upper <= 1.2 * other.upper  # from bets that serve several levels at once
    assert found.verdict == by.verdict
    overlapping = certify(Y, P, max_error=0.2, groups={"old": OLD, "ward": WARD}, scale="group")
    assert not overlapping.disjoint
    assert overlapping["old"].rows == OLD.sum()


@pytest.mark.parametrize("values", [[0, 1], [0.0, 1.0], ["0", "1"]])
def test_zero_and_one_are_named_with_their_column(values):
    old = np.array(values)[OLD.astype(int)]
    assert certify(Y, P, max_error=0.2, groups={"old": old}).questions == ("old: 0", "old: 1")
    assert certify(Y, P, max_error=0.2, groups=pd.Series(old, name="old")).questions == ("old: 0", "old: 1")
    assert list(map(str, certify(Y, P, max_error=0.2, groups=old).questions)) == ["0", "1"]  # which has no name
    assert certify(Y, P, max_error=0.2, groups={"ward": WARD}).questions == tuple(np.unique(WARD).tolist())


def test_lines_show_the_rows_of_each_group_and_not_all_rows():
    found = certify(Y, P, max_error=0.1, groups={"old": OLD, "ward": WARD})
    sizes = [int(mask.sum()) for label, mask in masks().items() if label != "all"]
    assert list(found.members or ()) == sizes == list(found.frame()["rows"])
    assert f"{sizes[0]:,} rows  estimate" in str(found)
    assert f"{ROWS} rows  estimate" not in str(found)
    table = pd.DataFrame({"y": Y, "p": P, "old": OLD, "ward": WARD})
    with calibrant.scan(table, y_true="y", y_prob="p", groups=["old", "ward"]) as rows:
        assert certify(rows, max_error=0.1).members == found.members
    assert certify(Y, P, max_error=0.1, groups=OLD, scale="group").members is None
    with pytest.raises(calibrant.InputError, match="members"):
        replace(found, members=(1,))


def test_every_kind_of_frame():
    found = certify(Y, P, max_error=0.1, groups=GROUPS)
    assert certify(Y, P, max_error=0.1, groups=pd.DataFrame(GROUPS)) == found
    assert certify(Y, P, max_error=0.1, groups=pl.DataFrame(GROUPS)) == found
    one = certify(Y, P, max_error=0.1, groups=pd.Series(OLD, name="old"))
    assert one.questions == ("old",)
    assert certify(Y, P, max_error=0.1, groups=list(WARD)).questions == ("north", "south", "west")
    numbers = certify(Y, P, max_error=0.1, groups=np.arange(ROWS) % 2)
    assert numbers.questions == (0, 1)
    flags = certify(Y, P, max_error=0.1, groups=np.column_stack([OLD, ~OLD]))
    assert flags.questions == ("x0", "x1")
    some = [None if k % 10 == 0 else ward for k, ward in enumerate(WARD)]
    assert certify(Y, P, max_error=0.1, groups=some).questions == ("north", "south", "west", "missing")


def test_clusters_count_where_all_rows_do():
    clusters = np.arange(ROWS) // 4
    found = certify(Y, P, max_error=0.2, groups=GROUPS, cluster=clusters)
    mask = OLD
    alone = certify(Y * mask, P * mask, max_error=0.2, cluster=clusters, confidence_level=1 - 0.05 / 5)
    assert found["old"].upper == pytest.approx(alone.upper)
    with pytest.raises(calibrant.InputError, match="scale='group'"):
        certify(Y, P, max_error=0.2, groups=GROUPS, cluster=clusters, scale="group")


def test_many_groups_cost_one_verdict_nothing():
    """The joint limit of calibrated forecasts hardly grows with the number of groups."""
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = rng.random(2000) < p
    many = certify(y, p, max_error=0.05, groups={f"g{k}": rng.random(2000) < rng.uniform(0.1, 0.9) for k in range(30)})
    assert many.verdict == "certified"
    assert many.joint_upper < 0.037
    assert "30 groups" in str(many)


BAD = {
    "empty": ({"none": np.zeros(ROWS, dtype=bool)}, "False everywhere"),
    "numbers": ({"age": RNG.random(ROWS)}, "which are no groups; .* worst_group"),
    "missing": ({"old": pd.array([True, None] * (ROWS // 2), dtype="boolean")}, "is missing; a truth value per row"),
    "many": ({"id": np.arange(2 * ROWS).repeat(5)[: 5 * ROWS]}, "has 2,000 values"),
    "twice": ({"ward": WARD, "ward: north": OLD}, "two groups named 'ward: north'"),
    "length": ({"old": OLD[:-1]}, r"groups\['old'\] has 399 values for 400 rows"),
    "none": ({}, "groups has no columns"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_groups(name):
    groups, message = BAD[name]
    with pytest.raises(calibrant.InputError, match=message):
        certify(Y, P, max_error=0.1, groups=groups)


def test_bad_companions():
    ask: Any = certify
    with pytest.raises(calibrant.InputError, match="scale must be one of 'mass', 'group'"):
        ask(Y, P, max_error=0.1, groups=WARD, scale="rows")
    with pytest.raises(calibrant.InputError, match="by was given together with groups"):
        ask(Y, P, max_error=0.1, groups=WARD, by=WARD)
    with pytest.raises(calibrant.InputError, match="not in arrays"):
        ask(calibrant.Tally.from_arrays(Y, P), max_error=0.1, groups=WARD)
    with pytest.raises(calibrant.InputError, match="together with several questions"):
        ask(Y, np.column_stack([1 - P, P]), max_error=0.1, groups=WARD, questions="classwise")
    one = ask(Y, np.column_stack([1 - P, P]), max_error=0.1, groups=WARD)
    assert one.questions == ("north", "south", "west")


def test_a_scale_is_for_groups_only():
    ask: Any = certify
    with pytest.raises(calibrant.InputError, match="scale must be one of 'mass', 'group', got 'nonsense'"):
        ask(Y, P, max_error=0.2, scale="nonsense")
    for scale in ("mass", "group"):
        for given in ({}, {"by": WARD}):
            with pytest.raises(calibrant.InputError, match="scale says what errors of groups= are shares of"):
                ask(Y, P, max_error=0.2, scale=scale, **given)
    assert ask(Y, P, max_error=0.2, groups=WARD, scale="mass") == ask(Y, P, max_error=0.2, groups=WARD)

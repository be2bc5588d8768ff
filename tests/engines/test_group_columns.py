"""Groups that overlap are judged where the rows are as they are in memory."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from spark_cases import needs_java, spark_frame

import calibrant
from calibrant import certify, scan
from calibrant.rows import GroupColumns


def drawn(rows, seed=0):
    rng = np.random.default_rng(seed)
    p = np.where(rng.random(rows) < 0.1, 1e-7 * rng.random(rows), rng.random(rows).round(3))  # some next to 0
    return pd.DataFrame(
        {
            "y": (rng.random(rows) < p**1.2).astype(int),
            "p": p,
            "old": rng.random(rows) < 0.4,
            "ward": rng.choice(["a", "b"], rows),
            "w": rng.random(rows),
        }
    )


def same(found, expected):
    assert found.questions == expected.questions
    assert (found.verdict, found.verdicts, found.kind) == (expected.verdict, expected.verdicts, expected.kind)
    assert (found.rows, found.disjoint) == (expected.rows, expected.disjoint)
    assert found.upper == pytest.approx(expected.upper, rel=1e-9)
    for one, other in zip(found.certificates, expected.certificates, strict=True):
        assert one.rows == other.rows
        assert one.estimate == pytest.approx(other.estimate, rel=1e-9)
        assert one.lower == pytest.approx(other.lower, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("scale", ["mass", "group"])
@pytest.mark.parametrize("rows", [2_000, 150_000])
def test_duckdb(rows, scale):
    frame = drawn(rows)
    expected = certify(frame["y"], frame["p"], max_error=0.05, groups=frame[["old", "ward"]], scale=scale)
    with scan(frame, y_true="y", y_prob="p", groups=["old", "ward"], fetch_limit=20_000) as held:
        assert isinstance(held, GroupColumns)
        same(certify(held, max_error=0.05, scale=scale), expected)


def test_one_column_within_groups_is_by():
    frame = drawn(2_000)
    with scan(frame, y_true="y", y_prob="p", groups=["ward"]) as held:
        found = certify(held, max_error=0.05, scale="group")
    assert found.disjoint
    assert found.questions == ("a", "b")


def test_what_is_refused():
    frame, ask, look = drawn(100), certify, scan
    columns: Any = {"y_true": "y", "y_prob": "p"}
    refused: dict[str, Any] = {
        "by was given together with groups": {"by": "ward", "groups": ["old"]},
        "groups names no column": {"groups": []},
        "has no column 'nobody'": {"groups": ["old", "nobody"]},
    }
    for message, options in refused.items():
        with pytest.raises(calibrant.CalibrantError, match=message):
            look(frame, **columns, **options)
    with (
        scan(frame, **columns, sample_weight="w", groups=["old"]) as weighted,
        pytest.raises(calibrant.InputError, match="weights of scanned rows"),
    ):
        certify(weighted, max_error=0.1)
    given: Any
    with (
        scan(frame, **columns, groups=["old"]) as given,
        pytest.raises(calibrant.InputError, match="name their groups already"),
    ):
        ask(given, max_error=0.1, groups=frame["ward"])
    with scan(frame, **columns) as given, pytest.raises(calibrant.InputError, match=r"scan\(..., groups="):
        ask(given, max_error=0.1, groups=frame["ward"])


@needs_java
def test_spark(spark):
    frame = drawn(1_000)
    expected = certify(frame["y"], frame["p"], max_error=0.05, groups=frame[["old", "ward"]])
    columns = {name: frame[name].to_numpy() for name in ("y", "p", "old", "ward")}
    with scan(spark_frame(spark, columns), y_true="y", y_prob="p", groups=["old", "ward"]) as held:
        same(certify(held, max_error=0.05), expected)

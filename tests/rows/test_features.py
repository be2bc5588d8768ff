"""Features that come as Python objects: what is equal, what has an order, and what is a label."""

from typing import Any

import numpy as np
import pytest

from calibrant.rows.features import MISSING, check_features

BIG = 2**60
COLUMNS: dict[str, Any] = {
    "whole numbers": ([BIG + 1, BIG, None, BIG + 1], [1, 0, MISSING, 1], True),
    "whole numbers and others": ([3, 0.5, None, 3.0], [1, 0, MISSING, 1], True),
    "zeros": ([0.0, -0.0, None, 1], [0, 0, MISSING, 1], True),
    "more than any float tells apart": ([BIG + 1, BIG, 0.5, BIG + 1], [2, 1, 0, 2], False),
    "more than 64 bits": ([2**70 + 1, 2**70, None, 2**70 + 1], [1, 0, MISSING, 1], False),
    "more than any float": ([10**400 + 1, 10**400, None, 1.0], [2, 1, MISSING, 0], False),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_objects_that_differ_are_kept_apart(name):
    held, codes, ordered = COLUMNS[name]
    (feature,) = check_features({"a": np.array(held, dtype=object)}, 4)
    assert feature.codes.tolist() == codes
    assert feature.ordered is ordered
    known = [(code, value) for code, value in zip(codes, held, strict=True) if value is not None]
    assert all(feature.label(code) == value for code, value in known)


def test_whole_numbers_stay_whole():
    (feature,) = check_features({"a": np.array([3, None, 5], dtype=object)}, 3)
    assert [str(feature.label(place)) for place in range(2)] == ["3", "5"]

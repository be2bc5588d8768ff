"""Clusters are drawn by a seed and what they hold: not by the order of rows, nor by names."""

import numpy as np
import pytest

from calibrant.rows.splits import cluster_order, row_marks


def numbered(labels):
    return np.unique(labels, return_inverse=True)[1]


def contents(order, codes, *columns):
    """What the clusters in this order hold, as sorted rows."""
    return [sorted(zip(*(column[codes == cluster] for column in columns), strict=True)) for cluster in order]


@pytest.mark.parametrize("values", [2, 1000])
def test_the_order_depends_on_what_clusters_hold(values):
    rng = np.random.default_rng(values)
    x, y = rng.integers(0, values, 600), rng.integers(0, 2, 600)
    codes = numbered(rng.integers(0, 150, 600))
    expected = contents(cluster_order(codes, row_marks([x, y], 600), 5), codes, x, y)
    moved, renamed = rng.permutation(600), rng.permutation(codes.max() + 1)
    x, y, codes = x[moved], y[moved], renamed[codes[moved]]
    marks = row_marks([x, y], 600)
    assert contents(cluster_order(codes, marks, 5), codes, x, y) == expected
    assert contents(cluster_order(codes, marks, 6), codes, x, y) != expected


def test_clusters_that_hold_the_same_are_drawn_each_for_itself():
    codes = np.arange(1000)
    marks = row_marks([codes % 2], 1000)
    first = [np.mean(cluster_order(codes, marks, seed)[:500] % 2) for seed in range(200)]
    # As many of each kind as a draw without replacement gives: a standard deviation of 1.6%.
    assert np.mean(first) == pytest.approx(0.5, abs=0.006)
    assert np.std(first) == pytest.approx(0.0158, rel=0.25)


def test_every_place_is_as_likely_as_any_other():
    codes = np.repeat(np.arange(5), [1, 2, 4, 8, 16])
    marks = row_marks([np.arange(codes.size) / 7.0], codes.size)
    places = np.array([np.argsort(cluster_order(codes, marks, seed)) for seed in range(2000)])
    for cluster in range(5):
        count = np.bincount(places[:, cluster], minlength=5)
        assert np.abs(count - 400).max() < 75  # four standard deviations


def test_marks_tell_rows_apart_and_know_one_zero_and_one_way_to_be_missing():
    other_nan = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
    marks = row_marks([np.array([0.0, -0.0, np.nan, other_nan, 1.0]), np.array([1, 1, 2, 2, 2])], 5)
    assert marks[0] == marks[1]
    assert marks[2] == marks[3]
    assert np.unique(marks).size == 3
    swapped = row_marks([np.array([0.0, 1.0]), np.array([1.0, 0.0])], 2)
    assert swapped[0] != swapped[1]

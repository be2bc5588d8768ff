"""Calls side by side return what calls in turn return."""

import math
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from calibrant.core.threads import in_threads, one_thread, total_of_products


@pytest.mark.parametrize("rows", [10, 10**6])
def test_results_come_in_order_and_the_first_error_is_raised(rows):
    assert in_threads(lambda number: number**2, range(5), rows=rows) == [0, 1, 4, 9, 16]

    def refuse(number):
        if number > 1:
            raise ValueError(str(number))

    with pytest.raises(ValueError, match=r"^2$"):
        in_threads(refuse, range(5), rows=rows)


def test_many_rows_are_shared_and_few_are_not():
    both = threading.Barrier(2, timeout=10.0)
    assert sorted(in_threads(lambda _: both.wait(), range(2), rows=10**6)) == [0, 1]
    here = threading.get_ident()
    assert in_threads(lambda _: threading.get_ident(), range(2), rows=10) == [here, here]


@pytest.mark.parametrize("size", [1, 8192, 8193, 50_000])
def test_products_are_added_up_piece_by_piece(size):
    rng = np.random.default_rng(size)
    one, other = rng.integers(1, 9, size), rng.random(size)
    expected = math.fsum(a * b for a, b in zip(one.tolist(), other.tolist(), strict=True))
    assert total_of_products(one, other) == pytest.approx(expected, rel=1e-13)


def test_linear_algebra_is_held_to_one_thread_and_let_go_again():
    def threads():
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]

    before = threads()
    assert before
    with one_thread():
        assert set(threads()) == {1}
    assert threads() == before

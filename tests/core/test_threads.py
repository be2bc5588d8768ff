"""Calls side by side return what calls in turn return."""

import threading

import pytest

from calibrant.core.threads import in_threads


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

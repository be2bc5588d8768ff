"""Docstrings of public functions: every argument, what comes back, and an example that runs."""

import inspect

import pytest
from numpydoc.docscrape import NumpyDocString
from public_names import EVERYWHERE, public

FUNCTIONS = [name for name in EVERYWHERE if inspect.isroutine(public(name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstring_has_every_argument_and_no_other_what_is_returned_and_an_example(name):
    said = NumpyDocString(inspect.getdoc(public(name)))
    described = [each.strip(" *") for entry in said["Parameters"] for each in entry.name.split(",")]
    assert sorted(described) == sorted(inspect.signature(public(name)).parameters)
    assert all(entry.desc for entry in said["Parameters"])
    assert said["Returns"] or said["Yields"]
    assert any(line.startswith(">>>") for line in said["Examples"])

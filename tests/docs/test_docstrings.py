"""Docstrings of what one calls: every argument and no other, what comes back, and an example that runs."""

import inspect

import pytest
from numpydoc.docscrape import NumpyDocString
from public_names import EVERYWHERE, public

FUNCTIONS = [name for name in EVERYWHERE if inspect.isroutine(public(name))]
CLASSES = [name for name in EVERYWHERE if inspect.isclass(public(name))]
MADE_BY_HAND = [name for name in CLASSES if "\nParameters\n" in str(inspect.getdoc(public(name)))]
"""Classes whose docstring names parameters: the others are made by functions, or by methods of their own."""


def methods():
    """Return the methods of public classes whose docstring names parameters."""
    for name in CLASSES:
        for each, value in vars(public(name)).items():
            method = getattr(value, "__func__", value)
            if inspect.isfunction(method) and each[0] != "_" and "\nParameters\n" in str(inspect.getdoc(method)):
                yield pytest.param(method, id=f"{name}.{each}")


def described(call):
    return [each.strip(" *") for entry in said(call)["Parameters"] for each in entry.name.split(",")]


def said(call):
    return NumpyDocString(inspect.getdoc(call))


@pytest.mark.parametrize("name", [*FUNCTIONS, *MADE_BY_HAND])
def test_docstring_has_every_argument_and_no_other_and_an_example(name):
    assert sorted(described(public(name))) == sorted(inspect.signature(public(name)).parameters)
    assert all(entry.desc for entry in said(public(name))["Parameters"])
    assert any(line.startswith(">>>") for line in said(public(name))["Examples"])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstring_of_a_function_says_what_comes_back(name):
    assert said(public(name))["Returns"] or said(public(name))["Yields"]


@pytest.mark.parametrize("method", [*methods()])
def test_docstring_of_a_method_has_every_argument_or_none(method):
    assert sorted(described(method)) == sorted(set(inspect.signature(method).parameters) - {"self", "cls"})

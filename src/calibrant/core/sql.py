"""Pieces of SQL that every engine reads alike: names, texts, numbers, and the curves that maps are written with."""

from __future__ import annotations

from typing import Any

from calibrant.core.types import FloatArray

_SURE_EXPONENT = 700.0  # beyond it a logistic function is 0 or 1 to all digits, and some engines refuse the exponential


def is_name(value: Any) -> bool:
    """Return whether a column can be called that: a text that is not empty and has no zero byte."""
    return isinstance(value, str) and value != "" and "\0" not in value


def quoted(name: str) -> str:
    """Write the name of a column so that SQL takes it as it is."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """Write a text so that SQL takes it as it is."""
    return "'" + text.replace("'", "''") + "'"


def number_literal(number: float) -> str:
    """Write a number so that every engine reads the same double: with an exponent, else some take it for a decimal.

    Examples
    --------
    >>> number_literal(0.1), number_literal(-1e-300)
    ('0.1e0', '(-1e-300)')
    """
    digits = repr(float(number))
    text = digits if "e" in digits else f"{digits}e0"
    return f"({text})" if text.startswith("-") else text


def expit_sql(linear: str) -> str:
    """Write the logistic function of an expression."""
    limit = number_literal(_SURE_EXPONENT)
    ends = f"WHEN {linear} > {limit} THEN 1e0 WHEN {linear} < -{limit} THEN 0e0"
    return f"CASE {ends} ELSE 1e0 / (1e0 + EXP(-({linear}))) END"


def clipped_sql(column: str, clip: float | None) -> str:
    """Write a column, moved as far from 0 and 1 as clip says."""
    if clip is None:
        return column
    low, high = number_literal(clip), number_literal(1.0 - clip)
    return f"(CASE WHEN {column} < {low} THEN {low} WHEN {column} > {high} THEN {high} ELSE {column} END)"


def with_ends_sql(column: str, curve: str, ends: FloatArray) -> str:
    """Add the limits of a curve at 0 and 1, where SQL has no logarithm."""
    at_zero, at_one = ends
    limits = f"WHEN {column} <= 0e0 THEN {number_literal(at_zero)} WHEN {column} >= 1e0 THEN {number_literal(at_one)}"
    return f"CASE {limits} ELSE {curve} END"

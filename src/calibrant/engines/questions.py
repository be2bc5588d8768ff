"""Questions about classes as SQL: of each row an outcome and a forecast, made of its label and several columns.

A question is a table of its own, which has these two columns beside those that were there: whatever is asked of one
column of forecasts is asked of it in the same words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from calibrant.core.sql import number_literal
from calibrant.engines.statements import Engine, label_text
from calibrant.rows.matrices import SUM_TOLERANCE

FORECAST = "calibrant_forecast"
OUTCOME = "calibrant_outcome"
"""What the columns of a question are called, so that no database needs quotes."""


@dataclass(frozen=True)
class ClassColumns:
    """The columns of several classes in an engine.

    Attributes
    ----------
    engine : Engine
        Where the rows are.
    y_true : str
        The column of labels.
    y_prob : tuple of str
        The columns of forecasts.
    ways : tuple of tuple of str
        How the engine writes the label of each column, in one or several ways; in none where no row has it.
    order : tuple of int
        The columns in the sorted order of their labels: of equal forecasts the first of these is the largest.
    """

    engine: Engine
    y_true: str
    y_prob: tuple[str, ...]
    ways: tuple[tuple[str, ...], ...]
    order: tuple[int, ...]

    def forecast(self, place: int) -> str:
        """Write the forecast of a class."""
        return self.engine.number(self.y_prob[place])

    def held(self, *places: int) -> str:
        """Write as a number whether a row is of one of some classes."""
        texts = ", ".join(self.engine.literal(text) for place in places for text in self.ways[place])
        if not texts:
            return "0e0"
        return f"CASE WHEN {label_text(self.engine, self.y_true)} IN ({texts}) THEN 1e0 ELSE 0e0 END"

    def is_top(self, place: int) -> str:
        """Write the condition that a class is the top label: above those that sort before it, not below the others."""
        before = self.order[: self.order.index(place)]
        after = self.order[len(before) + 1 :]
        own = self.forecast(place)
        compared = [f"{own} > {self.forecast(other)}" for other in before]
        return " AND ".join([*compared, *(f"{own} >= {self.forecast(other)}" for other in after)])

    def of_class(self, place: int) -> tuple[str, str]:
        """Write forecast and outcome of the question whether a row is of one class."""
        return self.forecast(place), self.held(place)

    def of_top(self) -> tuple[str, str]:
        """Write forecast and outcome of the question whether the top label is right."""
        best = f"greatest({', '.join(self.forecast(place) for place in range(len(self.y_prob)))})"
        *first, last = self.order
        cases = " ".join(f"WHEN {self.is_top(place)} THEN {self.held(place)}" for place in first)
        return best, f"CASE {cases} ELSE {self.held(last)} END"

    def of_top_label(self, place: int) -> tuple[str, str]:
        """Write the same where the top label is one class; on all other rows both are 0."""
        top = self.is_top(place)
        return (
            f"CASE WHEN {top} THEN {self.forecast(place)} ELSE 0e0 END",
            f"CASE WHEN {top} THEN {self.held(place)} ELSE 0e0 END",
        )

    def of_pair(self, one: int, other: int) -> tuple[str, str]:
        """Write forecast and outcome of the question which of two classes it is, as far as it is one of them."""
        return (
            f"(1e0 + {self.forecast(one)} - {self.forecast(other)}) / 2e0",
            f"(1e0 + {self.held(one)} - {self.held(other)}) / 2e0",
        )

    def of_subset(self, places: Sequence[int]) -> tuple[str, str]:
        """Write forecast and outcome of the question whether a row is of one of several classes."""
        return f"least({' + '.join(map(self.forecast, places))}, 1e0)", self.held(*places)

    def check_statement(self) -> str:
        """Write how many rows there are, in how many some forecast breaks a rule, and the mean forecast of each class.

        Also in how many others forecasts do not add up to 1.
        """
        places = range(len(self.y_prob))
        good = " AND ".join(f"p{place} BETWEEN 0 AND 1" for place in places)
        means = ", ".join(f"avg(p{place}) AS mean{place}" for place in places)
        return (
            f"SELECT count(*) AS n, sum(CASE WHEN {good} THEN 0 ELSE 1 END) AS broken, "
            f"sum(CASE WHEN {good} AND {self._off()} THEN 1 ELSE 0 END) AS off, {means} "
            f"FROM {self._forecasts()} AS given"
        )

    def off_statement(self) -> str:
        """Write the first row whose forecasts do not add up to 1."""
        number = self.engine.number_of_row()
        total = " + ".join(f"p{place}" for place in range(len(self.y_prob)))
        if number is None:
            return f"SELECT {total} AS total FROM {self._forecasts()} AS given WHERE {self._off()} LIMIT 1"
        rows = self._forecasts(f"{number} AS row_position")
        return (
            f"SELECT row_position, {total} AS total FROM {rows} AS given WHERE {self._off()} "
            "ORDER BY row_position LIMIT 1"
        )

    def tops_statement(self) -> str:
        """Write for each class in how many rows it is the top label."""
        counts = [f"sum(CASE WHEN {self.is_top(place)} THEN 1 ELSE 0 END) AS t{place}" for place in self.order]
        return f"SELECT {', '.join(counts)} FROM {self.engine.table}"

    def _forecasts(self, *more: str) -> str:
        fields = [f"{self.forecast(place)} AS p{place}" for place in range(len(self.y_prob))]
        return f"(SELECT {', '.join([*fields, *more])} FROM {self.engine.table})"

    def _off(self) -> str:
        total = " + ".join(f"p{place}" for place in range(len(self.y_prob)))
        return f"abs({total} - 1e0) > {number_literal(SUM_TOLERANCE)}"


class QuestionEngine(Engine):
    """One question about the rows of another engine, as a table with an outcome and a forecast for each row.

    Parameters
    ----------
    engine : Engine
        Where the rows are; it stays open.
    forecast, outcome : str
        What they are, in SQL.
    fractions : bool
        Whether outcomes can be other numbers than 0 and 1.
    others : sequence of str
        Columns that are needed besides: weights, groups, clusters.
    """

    def __init__(self, engine: Engine, forecast: str, outcome: str, *, fractions: bool, others: Sequence[str]) -> None:
        self._engine = engine
        self.name = engine.name
        self.text_type, self.short_type, self.long_type = engine.text_type, engine.short_type, engine.long_type
        self.numbers_cells, self.streams = engine.numbers_cells, engine.streams
        self.columns = {**engine.columns, FORECAST: "fraction", OUTCOME: "fraction" if fractions else "whole"}
        fields = [f"{forecast} AS {FORECAST}", f"{outcome} AS {OUTCOME}"]
        fields += [engine.quoted(name) for name in others]
        self.table = f"(SELECT {', '.join(fields)} FROM {engine.table}) AS asked_of"

    def run(self, statement: str) -> Mapping[str, npt.NDArray[Any]]:
        """Run one statement where the rows are."""
        return self._engine.run(statement)

    def batches(self, statement: str) -> Iterator[Any]:
        """Run one statement where the rows are, and hand over its result."""
        return self._engine.batches(statement)

    def quoted(self, name: str) -> str:
        """Write a column's name as the engine does; those of the question have no other."""
        return name if name in (FORECAST, OUTCOME) else self._engine.quoted(name)

    def literal(self, text: str) -> str:
        """Write a text as the engine does."""
        return self._engine.literal(text)

    def listed(self, names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        """Write a short table as the engine does."""
        return self._engine.listed(names, rows)

    def number(self, column: str) -> str:
        """Write a column as float64, which those of the question are."""
        if column in (FORECAST, OUTCOME):
            return f"CAST({column} AS DOUBLE)"
        return self._engine.number(column)

    def text(self, column: str) -> str:
        """Write a column as text."""
        return self._engine.text(column)

    def missing(self, number: str) -> str:
        """Write the condition that there is no number, as the engine does."""
        return self._engine.missing(number)

    def total(self, expression: str) -> str:
        """Write a sum of fractions as the engine does."""
        return self._engine.total(expression)

    def steady_total(self, expression: str, exponent: int) -> str:
        """Write a sum of bounded numbers as the engine does."""
        return self._engine.steady_total(expression, exponent)

"""The questions every engine is asked, as SQL: totals per cell, and the rows of a few stretches of forecasts.

They are plain enough for any database: sums, counts, smallest and largest under a GROUP BY, and a join with a short
list; of clusters also the rank of their labels. A row's cell is floor(p * 2^bits), which is exact, so that every engine
agrees on it. A row that breaks a rule has no cell, so that bad data is found by the scan that adds up good data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.sql import number_literal, quoted, text_literal
from calibrant.core.types import FloatArray
from calibrant.engines.formats import check_column
from calibrant.rows.grids import FIRST_BITS, Grid
from calibrant.rows.sources import FetchRequest, HistogramRequest

NUMBERS = ("whole", "fraction", "boolean", "written")
"""The kinds of columns that hold numbers, the last one perhaps."""

MISSING_WORDS = ("", "na", "n/a", "nan", "null", "none", "missing", "?", ".")
"""What stands in a text where there is no value, whatever its case."""

MISSING_LABELS = ("", "na", "n/a", "nan", "null")
"""What stands in a text file where an outcome has no label, whatever its case; none and missing may be labels."""

WHOLE = ("place", "first_cell", "block")
"""Columns of what is asked that hold keys, which would lose digits as fractions."""

SHORT_BITS = 16
"""How many bits the numbers have that are grouped the fastest."""

_LARGEST = "1.7976931348623157e308"
_MORE_CELLS = 2**10
_FEW_BLOCKS = 16
_BLOCK_RUNS = (1, 4, 16)
_EXACT_BITS = 52
_STEADY_BITS = 88  # which leaves room for 2^38 rows in one cell
_SMALL_BITS = 62
_FINEST_BITS = 1000  # of which float64 still holds a power of two


class Engine(ABC):
    """What a database must offer to be asked: a table, the kinds of its columns, and a way to run SQL.

    Derive from it, set ``name``, ``table`` and ``columns``, and write ``run``; override the rest where the database's
    SQL differs. docs/how-to/scale.md has an example.

    Attributes
    ----------
    name : str
        What to call the rows in messages.
    table : str
        The rows as SQL names them, after FROM.
    columns : mapping
        What each column holds: "whole", "fraction", "boolean" or "text", or else the database's name of its type;
        "written" for numbers or labels that a file holds as text.
    text_type : str
        What the database calls text.
    short_type : str
        The type in which whole numbers from 0 to 65,535 are grouped the fastest.
    long_type : str or None
        The type of whole numbers of 128 bits, and of their sums, where there is one.
    numbers_cells : bool
        Whether numbers of 16 bits are grouped and joined in an array, and what is none becomes null.
    streams : bool
        Whether rows are so many, and handed over so quickly by `batches`, that they are added up here.
    """

    name: str
    table: str
    columns: Mapping[str, str]
    text_type = "VARCHAR"
    short_type = "BIGINT"
    long_type: str | None = None
    numbers_cells = False
    streams = False

    @abstractmethod
    def run(self, statement: str) -> Mapping[str, npt.NDArray[Any]]:
        """Run one statement and return the columns of its result."""

    def batches(self, statement: str) -> Iterator[Any]:
        """Run one statement and hand over its result as record batches of Arrow; for engines that stream."""
        raise TypeError(f"{self.name} is not handed over in batches: {statement}")

    def check_column(self, name: str) -> None:
        """Refuse a column that the rows do not all have, where that is known."""
        check_column(self.name, self.columns, name)

    def quoted(self, name: str) -> str:
        """Write a column's name so that SQL takes it as it is."""
        return quoted(name)

    def literal(self, text: str) -> str:
        """Write a text so that SQL takes it as it is."""
        return text_literal(text)

    def listed(self, names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        """Write a short table by the name of ``asked``, to stand before SELECT."""
        values = ", ".join(f"({', '.join(row)})" for row in rows)
        return f"WITH asked({', '.join(names)}) AS (VALUES {values}) "

    def number(self, column: str) -> str:
        """Write a column as float64, so that nothing but its rows decides what is asked of it.

        Databases that pass over rows, or leave out a check, because of what a file says about its smallest and largest
        value need an expression here that they cannot see through. What is no number in a written column is null.
        """
        return f"CAST({self.quoted(column)} AS DOUBLE)"

    def text(self, column: str) -> str:
        """Write a column as text, in the same way."""
        name = self.quoted(column)
        return name if self.columns[column] in ("text", "written") else f"CAST({name} AS {self.text_type})"

    def missing(self, number: str) -> str:
        """Write the condition that there is no number: null or NaN."""
        return f"({number} IS NULL OR isnan({number}))"

    def total(self, expression: str) -> str:
        """Write a sum of fractions, such as loses the fewest digits if the database has several."""
        return f"sum({expression})"

    def steady_total(self, expression: str, exponent: int) -> str:
        """Write a sum of numbers of at most 2^-exponent, in whole numbers if these can be long enough.

        Such a sum is the same in whatever order the rows come, which depends on chance where several processors read.
        """
        if self.long_type is None:
            return f"sum({expression})"
        scale = number_literal(2.0 ** (_STEADY_BITS + exponent))
        return f"sum(TRY_CAST(({expression}) * {scale} AS {self.long_type})) / {scale}"

    def small_total(self, expression: str, exponent: int) -> str:
        """Write the same sum in whole numbers of 64 bits, whose sums are longer; for engines that number cells."""
        scale = number_literal(2.0 ** (_SMALL_BITS + exponent))
        return f"sum(TRY_CAST(({expression}) * {scale} AS BIGINT)) / {scale}"

    def place_of(self, text: str, labels: Sequence[str]) -> str:
        """Write the place of a text among labels, from 0 on; for engines that number cells."""
        listed = ", ".join(map(self.literal, labels))
        return f"enum_code(TRY_CAST({text} AS ENUM ({listed})))"

    def number_of_row(self) -> str | None:
        """Write the position of a row in its table, from 0 on; None where rows have no order."""
        return None

    def row_said(self, position: int) -> str:
        """Say which row a position is, as somebody would count who looks at the table."""
        return f"row {position + 1:,} (counted from 1)"

    def close(self) -> None:
        """Let go of what the engine holds open."""
        return


@dataclass(frozen=True)
class Roles:
    """Which column plays which part.

    Attributes
    ----------
    y_true, y_prob : names of columns
    sample_weight, by, cluster : names of columns, or None
    event : how the engine writes the label that counts as the event, in one or several ways; None where outcomes are
        numbers
    once_each : whether weights are divided by the sum of weights of their cluster
    made : whether outcomes and forecasts are made of several columns, as those of questions about classes are
    """

    y_true: str
    y_prob: str
    sample_weight: str | None = None
    by: str | None = None
    cluster: str | None = None
    event: tuple[str, ...] | None = None
    once_each: bool = False
    made: bool = False

    @property
    def weighted(self) -> bool:
        """Whether rows have weights, from a column or from the size of their cluster."""
        return self.sample_weight is not None or self.once_each

    def listed(self) -> dict[str, str]:
        """Return the columns in use, by their role, in the order in which they are checked."""
        roles = {
            "y_prob": self.y_prob,
            "y_true": self.y_true,
            "sample_weight": self.sample_weight,
            "by": self.by,
            "cluster": self.cluster,
        }
        return {role: column for role, column in roles.items() if column is not None}


def fetch_statement(
    engine: Engine, roles: Roles, asked: Sequence[FetchRequest], labels: Sequence[str], *, clusters: bool = False
) -> str:
    """Write the rows inside stretches of forecasts, with or without their clusters: one join with a list."""
    place = "place, " if labels else ""
    weight, where = (", w", " WHERE w > 0") if roles.weighted else ("", "")
    cluster, extra = (", c", [_cluster(engine, roles)]) if clusters else ("", [])
    stretches = [np.stack([request.low, request.high], axis=1) for request in asked]
    listed, joined = listed_stretches(engine, asked, stretches, labels, [])
    rows = given_rows(engine, roles, *extra)
    return f"{listed}SELECT {place}y, p{weight}{cluster} FROM {rows} AS given{joined}{where}"


def clusters_statement(engine: Engine, roles: Roles, most: int) -> str:
    """Write the labels of clusters in the engine's order, with how many rows have each and how many of those count."""
    counted = "sum(CASE WHEN w > 0 THEN 1 ELSE 0 END)" if roles.sample_weight is not None else "count(*)"
    rows = given_rows(engine, roles, _cluster(engine, roles))
    return f"SELECT c, count(*) AS n, {counted} AS counted FROM {rows} AS given GROUP BY c ORDER BY c LIMIT {most + 1}"


def cluster_sums_statement(engine: Engine, roles: Roles, borders: FloatArray) -> str:
    """Write the totals by cluster and block of forecasts: one GROUP BY.

    In place of its label, which may be long, an entry has the place of its cluster in the engine's order of labels.
    """
    listed, joined, block = _blocks(engine, borders)
    weight, where = (", w", " WHERE w > 0") if roles.weighted else ("", "")
    rows = given_rows(engine, roles, _cluster(engine, roles))
    keyed = f"SELECT c, {block} AS block, y, y - p AS r{weight} FROM {rows} AS given{joined}{where}"
    terms = {
        "outcome": "y",
        "above": "CASE WHEN r > 0 THEN r ELSE 0e0 END",
        "below": "CASE WHEN r < 0 THEN -r ELSE 0e0 END",
    }
    if roles.weighted:
        sums = {name: engine.total(f"w * ({term})") for name, term in terms.items()} | {"weight": engine.total("w")}
    else:
        sums = {name: engine.steady_total(term, 0) for name, term in terms.items()}
    added = ", ".join(f"{expression} AS {name}" for name, expression in sums.items())
    entries = f"SELECT c, block, count(*) AS n, {added} FROM ({keyed}) AS keyed GROUP BY c, block"
    place = "dense_rank() OVER (ORDER BY c) - 1"
    return f"{listed}SELECT {place} AS place, block, n, {', '.join(sums)} FROM ({entries}) AS entries"


def _blocks(engine: Engine, borders: FloatArray) -> tuple[str, str, str]:
    """Write a list of blocks, the join that finds the block of each row, and the block; the first two where needed.

    Few borders are compared with one by one. Many are listed with the cells that their blocks touch, as
    `listed_stretches` lists stretches.
    """
    if borders.size <= _FEW_BLOCKS:
        return "", "", _stepwise(borders[1:], [str(block) for block in range(borders.size)])
    blocks = np.stack([borders, np.append(np.nextafter(borders[1:], 0.0), 1.0)], axis=1)
    rows: list[tuple[str, ...]] = []
    keys, starts, place, block = [], [], 0, 0
    for own, grid in _block_grids(blocks):
        shift = place - int(own[0, 0] * grid.scale)
        for low, high in own.tolist():
            cells = range(int(low * grid.scale) + shift, int(high * grid.scale) + shift + 1)
            ends = (number_literal(low), number_literal(high))
            rows.extend((str(block), number_literal(cell), *ends) for cell in cells)
            block += 1
        place = int(own[-1, 1] * grid.scale) + shift + 1
        keys.append(f"floor(p * {number_literal(grid.scale)}) + {number_literal(shift)}")
        starts.append(own[0, 0])
    match = f"{_stepwise(np.array(starts[1:]), keys)} = cell AND p >= low_end AND p <= high_end"
    return engine.listed(("block", "cell", "low_end", "high_end"), rows), f" JOIN asked ON {match}", "block"


def _block_grids(blocks: FloatArray) -> list[tuple[FloatArray, Grid]]:
    """Return runs of neighbouring blocks, each with its grid, as many as it takes for a cell to touch few blocks.

    Where some blocks are far narrower than others, rows there would be compared with all of them on one grid for all.
    """
    runs: list[tuple[FloatArray, Grid]] = []
    for count in _BLOCK_RUNS:
        runs = [(own, matching_grid(own, more=len(own))) for own in np.array_split(blocks, count)]
        crowds = (np.unique(np.floor(own[:, 0] * grid.scale), return_counts=True)[1].max() for own, grid in runs)
        if max(crowds) <= _FEW_BLOCKS:
            break
    return runs


def _stepwise(borders: FloatArray, values: Sequence[str]) -> str:
    """Write which value holds from one border to the next, halving them; there is one value more than borders."""
    if borders.size == 0:
        return values[0]
    middle = borders.size // 2
    below = _stepwise(borders[:middle], values[: middle + 1])
    above = _stepwise(borders[middle + 1 :], values[middle + 1 :])
    return f"CASE WHEN p < {number_literal(borders[middle])} THEN {below} ELSE {above} END"


def listed_stretches(
    engine: Engine,
    asked: Sequence[HistogramRequest | FetchRequest],
    stretches: Sequence[FloatArray],
    labels: Sequence[str],
    places: Sequence[tuple[str, str]],
) -> tuple[str, str]:
    """Write a list of stretches for each request, and the join that keeps the rows inside them, each once.

    A stretch is listed with every cell of a grid that it touches, so that the join is one of equal numbers. ``places``
    are the scales and first cells of the requests' grids, where they differ.
    """
    grid = matching_grid(np.concatenate(stretches))
    names = ["place", "label"] * bool(labels) + ["scale", "first_cell"] * bool(places) + ["cell", "low_end", "high_end"]
    rows: list[tuple[str, ...]] = []
    for place, request in enumerate(asked):
        group = (str(place), engine.literal(labels[request.group])) if labels else ()
        own = (*group, *(places[place] if places else ()))
        for low, high in stretches[place].tolist():
            cells = range(int(low * grid.scale), int(high * grid.scale) + 1)
            ends = (number_literal(low), number_literal(high))
            rows.extend((*own, number_literal(cell), *ends) for cell in cells)
    match = f"floor(p * {number_literal(grid.scale)}) = cell AND p >= low_end AND p <= high_end"
    return engine.listed(names, rows), f" JOIN asked ON {match}{' AND g = label' if labels else ''}"


def count_statement(engine: Engine) -> str:
    """Write the number of rows."""
    return f"SELECT count(*) AS n FROM {engine.table}"


def label_text(engine: Engine, column: str) -> str:
    """Write what a column holds as text, where zero has no sign: 0.0 and -0.0 are one label, as in memory."""
    text = engine.text(column)
    if engine.columns[column] != "fraction":
        return text
    return f"CASE WHEN {engine.number(column)} = 0 THEN {engine.literal('0')} ELSE {text} END"


def labels_statement(engine: Engine, column: str, most: int) -> str:
    """Write the distinct values of a column as text, with how many rows have each; a few too many at most."""
    return (
        f"SELECT label, count(*) AS n FROM (SELECT {label_text(engine, column)} AS label FROM {engine.table}) AS given "
        f"GROUP BY label ORDER BY label LIMIT {most + 1}"
    )


def faults_statement(engine: Engine, roles: Roles) -> str:
    """Write how many rows break which rule, and how far the numbers reach."""
    parts = ["count(*) AS n"]
    for role, name in _short_names(roles).items():
        parts += [
            f"sum(CASE WHEN {_fault(engine, roles, role, fault)} THEN 1 ELSE 0 END) AS {name}_{fault}"
            for fault in FAULTS
            if fault != "unread" or _is_written(engine, roles, role)
        ]
        parts += [
            f"{least}(CASE WHEN NOT {engine.missing(name)} THEN {name} END) AS {name}_{end}"
            for least, end in (("min", "low"), ("max", "high"))
        ]
    return f"SELECT {', '.join(parts)} FROM {given_rows(engine, roles, *_written(engine, roles))} AS given"


def example_statement(engine: Engine, roles: Roles, role: str, fault: str) -> str:
    """Write the first row in which a column has a fault."""
    where = _fault(engine, roles, role, fault)
    number = engine.number_of_row()
    written = _written(engine, roles)
    fields = ", ".join([*_short_names(roles).values(), *(field.rpartition(" ")[2] for field in written)])
    if number is None:
        return f"SELECT {fields} FROM {given_rows(engine, roles, *written)} AS given WHERE {where} LIMIT 1"
    inner = given_rows(engine, roles, *written, f"{number} AS row_position")
    return f"SELECT row_position, {fields} FROM {inner} AS given WHERE {where} ORDER BY row_position LIMIT 1"


FAULTS = ("unread", "missing", "broken")
"""What can be wrong with a number: it is some other text, it is not there, or it breaks a rule."""


def _fault(engine: Engine, roles: Roles, role: str, fault: str) -> str:
    """Write the condition that a row has a fault."""
    name = _short_names(roles)[role]
    missing = engine.missing(name)
    if fault == "broken":
        return f"NOT {missing} AND NOT ({_rule(role)})"
    if not _is_written(engine, roles, role):
        return missing
    words = ", ".join(engine.literal(word) for word in MISSING_WORDS)
    unread = f"{name} IS NULL AND {name}_text IS NOT NULL AND lower(trim({name}_text)) NOT IN ({words})"
    return unread if fault == "unread" else f"{missing} AND NOT ({unread})"


def _is_written(engine: Engine, roles: Roles, role: str) -> bool:
    """Whether a column holds numbers as text."""
    is_label = role == "y_true" and roles.event is not None
    return engine.columns[roles.listed()[role]] == "written" and not is_label


def _written(engine: Engine, roles: Roles) -> list[str]:
    """Write the texts of the columns that hold numbers as text."""
    return [
        f"{engine.text(roles.listed()[role])} AS {name}_text"
        for role, name in _short_names(roles).items()
        if _is_written(engine, roles, role)
    ]


def matching_grid(stretches: FloatArray, more: int = _MORE_CELLS) -> Grid:
    """Return the grid by whose cells rows are matched with stretches: so fine that these touch some more cells.

    Not so fine, though, that float64 could not tell neighbouring cells apart.
    """
    bits = _EXACT_BITS - int(np.frexp(stretches.max())[1])
    width = float((stretches[:, 1] - stretches[:, 0]).sum())
    if width > 0.0:
        bits = min(bits, int(np.log2(len(stretches) + more) - np.log2(width)))
    return Grid(min(bits, _FINEST_BITS), 0.0, 1.0)


def is_whole(grid: Grid) -> bool:
    """Whether a grid covers all forecasts."""
    return grid.low <= 0.0 and grid.high >= 1.0


def first_cell(grid: Grid) -> int:
    """Return floor(low * 2^bits), which keys are counted from so that they stay small, however deep the grid."""
    return int(grid.low * grid.scale)


def scanned_grid(grid: Grid) -> Grid:
    """Return the grid to add up by: at least as fine as the first, which `moments` counts on."""
    return replace(grid, bits=max(grid.bits, FIRST_BITS))


def given_rows(engine: Engine, roles: Roles, *extra: str) -> str:
    """Write the table with the columns in use alone, as numbers p, y and w and a text g."""
    if roles.once_each:
        return _rows_once_each(engine, roles, *extra)
    if roles.event is None:
        outcome = engine.number(roles.y_true)
    else:
        label = label_text(engine, roles.y_true)
        events = ", ".join(engine.literal(text) for text in roles.event)
        event = f"CASE WHEN {label} IS NULL THEN NULL WHEN {label} IN ({events}) THEN 1 ELSE 0 END"
        outcome = f"CAST({event} AS DOUBLE)"
    fields = [f"{engine.number(roles.y_prob)} AS p", f"{outcome} AS y"]
    if roles.sample_weight is not None:
        fields.append(f"{engine.number(roles.sample_weight)} AS w")
    if roles.by is not None:
        fields.append(f"{label_text(engine, roles.by)} AS g")
    return f"(SELECT {', '.join([*fields, *extra])} FROM {engine.table})"


def _rows_once_each(engine: Engine, roles: Roles, *extra: str) -> str:
    """Write the rows with weights divided by the sum of weights of their cluster.

    A join with the sums takes memory for the clusters alone, where a window would hold the rows.
    """
    plain, cluster = replace(roles, once_each=False), _cluster(engine, roles)
    size, weight = "count(*)", "1e0 / cluster_size"
    if roles.sample_weight is not None:
        size, weight = engine.total("w"), "CASE WHEN w = 0 THEN w ELSE w / cluster_size END"
    sizes = (
        f"SELECT c AS of_cluster, {size} AS cluster_size FROM {given_rows(engine, plain, cluster)} AS given GROUP BY c"
    )
    names = ", ".join(field.rpartition(" ")[2] for field in extra)
    rows = given_rows(engine, plain, *dict.fromkeys([cluster, *extra]))
    return (
        f"(SELECT p, y, {weight} AS w{', ' if names else ''}{names} FROM {rows} AS given "
        f"JOIN ({sizes}) AS sizes ON c = of_cluster)"
    )


def _cluster(engine: Engine, roles: Roles) -> str:
    """Write the label of a row's cluster as text c."""
    assert roles.cluster is not None
    return f"{label_text(engine, roles.cluster)} AS c"


def _short_names(roles: Roles) -> dict[str, str]:
    names = {"y_prob": "p", "y_true": "y"}
    return names | {"sample_weight": "w"} if roles.sample_weight is not None else names


def _rule(role: str) -> str:
    return {
        "y_prob": "p BETWEEN 0 AND 1",
        "y_true": "y BETWEEN 0 AND 1",
        "sample_weight": f"w BETWEEN 0 AND {_LARGEST}",
    }[role]


def kept_rules(roles: Roles, besides: str | None = None) -> str:
    """Write the condition that a row keeps the rules, besides that of one role."""
    return " AND ".join(_rule(role) for role in _short_names(roles) if role != besides)


def weight_condition(roles: Roles) -> str:
    """Write the condition that a row counts: it has a weight, or breaks a rule and must be seen."""
    return f"CASE WHEN {kept_rules(roles)} AND w = 0 THEN 0 ELSE 1 END = 1"


def is_missing_label(text: str) -> bool:
    """Whether a text in place of a label of outcomes says that there is none."""
    return text.strip().lower() in MISSING_LABELS


def without_value(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which values of a column of a result are null, in whatever way the engine hands that over."""
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.getmaskarray(values)
    if values.dtype.kind == "O":
        return np.array([value is None for value in values], dtype=bool)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.size, dtype=bool)

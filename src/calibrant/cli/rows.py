"""From a file to rows: small files are read and checked, large ones are scanned where they are.

This is the only place where the command line reads predictions.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from calibrant.cli.class_rows import (
    ClassesRead,
    asked_said,
    choose_classes,
    facts_of_classes,
    read_classes,
    scan_classes,
)
from calibrant.cli.columns import choose_columns
from calibrant.cli.inputs import Source, explained, open_source, voice_of
from calibrant.cli.left_out import LeftOut, drop_missing, kinds_of, leave_out
from calibrant.cli.outputs import BadInput, working
from calibrant.core.errors import InputError

if TYPE_CHECKING:
    from calibrant.certificates.independence import IndependenceCheck
    from calibrant.engines.files import Table
    from calibrant.engines.handles import GroupedScan, Scan
    from calibrant.engines.statements import Engine
    from calibrant.rows.checks import Observations
    from calibrant.rows.sources import RowSource
    from calibrant.rows.tally import Tally

_WHOLE = re.compile(r"[+-]?\d+")
_DATED = re.compile(r"\d{4}(-?(Q[1-4]|W\d\d|\d\d)(-?\d{1,2})?([T ]\d\d[\d:.+Z -]*)?)?")  # from years to seconds

LARGE_BYTES = 100_000_000
"""Files that take more than this on disk are scanned where they are, and so is any file with ``--memory-limit``."""

BYTES_PER_ROW = 160
"""What a row takes while it is looked at on its own: read, sorted and tallied."""


class Rows(Protocol):
    """Rows of a file, in memory or not, and where they come from."""

    @property
    def source(self) -> Source:
        """With the columns that were taken."""
        ...

    @property
    def data(self) -> dict[str, Any]:
        """The arguments under which the library takes the rows."""
        ...

    @property
    def grouped(self) -> dict[str, Any]:
        """The same, with the groups where there are any."""
        ...

    @property
    def suspected(self) -> dict[str, Any]:
        """The same, with the labels whose rows may depend on each other as clusters; empty where none were named."""
        ...

    def facts(self) -> dict[str, Any]:
        """Return what a JSON document says about its input."""
        ...


@dataclass(frozen=True)
class RowsRead:
    """Checked rows in memory.

    Attributes
    ----------
    source : Source
        With the columns that were taken.
    format : str
        Of the file.
    observations : Observations
        What the gate let through, so that nothing has to be checked again.
    left_out : LeftOut
        The rows of the files that are not among them.
    by, cluster, suspect, period : array or None
        The group and the cluster of each row, the label whose rows may depend on each other, and the period.
    features : dict of arrays or None
        The columns that say who a row is about.
    labels : tuple
        The labels of the outcomes, where one of them is that of the event.
    """

    source: Source
    format: str
    observations: Observations
    left_out: LeftOut
    by: Any = None
    cluster: Any = None
    suspect: Any = None
    period: Any = None
    labels: tuple[Any, ...] = ()
    features: Mapping[str, Any] | None = None

    @property
    def data(self) -> dict[str, Any]:
        """The arguments under which the library takes rows, with their clusters where these were named."""
        return {"y_true": self.observations, **({} if self.cluster is None else {"cluster": self.cluster})}

    @property
    def grouped(self) -> dict[str, Any]:
        """The same, with the groups."""
        return {**self.data, "by": self.by}

    @property
    def suspected(self) -> dict[str, Any]:
        """The rows, with the labels whose rows may depend on each other as clusters."""
        return {} if self.suspect is None else {"y_true": self.observations, "cluster": self.suspect}

    def facts(self) -> dict[str, Any]:
        """Return what a JSON document says about its input."""
        return _facts(self.source, self.format, self.observations.y_prob.size, self.left_out, self.labels)


@dataclass(frozen=True)
class RowsScanned:
    """Rows that stay in their file, which is open; every question that the totals leave open scans it again."""

    source: Source
    table: Table
    engine: Engine
    left_out: LeftOut
    limits: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def scan(self) -> Scan:
        """All rows, of which nothing was asked yet, with their clusters where these were named."""
        from calibrant.engines.scans import scan

        with explained(self.source):
            asked: dict[str, Any] = {**self._asked(), "by": None, "cluster": self.source.cluster, "groups": None}
            found: Scan = scan(self.engine, **asked)
            return found

    @property
    def suspected(self) -> dict[str, Any]:
        """The rows, with the labels whose rows may depend on each other as clusters."""
        from calibrant.engines.scans import scan

        if self.source.suspect is None:
            return {}
        with explained(self.source):
            return {"y_true": scan(self.engine, by=None, cluster=self.source.suspect, groups=None, **self._asked())}

    def read(self, purpose: str) -> RowsRead:
        """Return the same rows in memory, for what needs all of them at once, unless there are too many."""
        _check_room(self.source, self.table, self.limits["tally_limit"], purpose)
        return _read(self.source, self.table, self.left_out)

    @cached_property
    def whole(self) -> Tally | RowSource:
        """All rows, after the scan that checks and adds them up."""
        from calibrant.rows.intake import given_source

        with explained(self.source):
            return given_source(self.scan)

    @cached_property
    def groups(self) -> GroupedScan:
        """The rows in groups, all of which every scan serves."""
        from calibrant.engines.scans import scan

        with explained(self.source):
            found: GroupedScan = scan(self.engine, by=str(self.source.by), cluster=None, groups=None, **self._asked())
            return found

    @property
    def data(self) -> dict[str, Any]:
        """The arguments under which the library takes rows."""
        return {"y_true": self.whole if self.source.cluster is None else self.scan}

    @property
    def grouped(self) -> dict[str, Any]:
        """The same, in groups if there are any."""
        return self.data if self.source.by is None else {"y_true": self.groups}

    def facts(self) -> dict[str, Any]:
        """Return what a JSON document says about its input."""
        from calibrant.engines.columns import count_rows
        from calibrant.rows.refinement import some_table

        # Rows of weight zero count as rows of the file, and are left out of the totals.
        count = some_table(self.whole).row_total if self.source.weight is None else count_rows(self.table)
        if self.source.pos_label is not None and not self.scan.labels:
            self.scan.cells(0)  # whose first scan finds the labels
        return _facts(self.source, self.table.format, count, self.left_out, self.scan.labels)

    def _asked(self) -> dict[str, Any]:
        """Return what a scan is asked for, with groups or without."""
        outcomes = str(self.source.y_true)
        return {
            "y_true": outcomes,
            "y_prob": str(self.source.y_prob),
            "sample_weight": self.source.weight,
            "pos_label": self._pos_label(outcomes),
            **self.limits,
        }

    def _pos_label(self, outcomes: str) -> Any:
        """Return the label of the event; in a text table, where columns have no type, the scan finds out what it is."""
        label = self.source.pos_label
        return label if self.table.is_text else _label(label, self.table.columns[outcomes])


def _facts(source: Source, file_format: str, rows: int, left_out: LeftOut, labels: Sequence[Any]) -> dict[str, Any]:
    from calibrant.rows.labels import against_the_rest

    notes = list(left_out.notes)
    if len(labels) > 2:
        notes.append(against_the_rest(labels, source.pos_label).said(voice_of(source)))
    over_time = {"time": source.time, "every": source.every, "period": source.period}
    return {
        "files": list(source.files),
        "format": file_format,
        "y_true": source.y_true,
        "y_prob": source.y_prob,
        "weight": source.weight,
        "by": source.by,
        "cluster": source.cluster,
        **{name: value for name, value in over_time.items() if value is not None},
        **({} if source.horizon is None else source.horizon.facts()),
        **({} if source.features is None else {"features": list(source.features)}),
        "pos_label": source.pos_label,
        "rows": rows,
        "left_out": left_out.rows,
        "notes": notes,
    }


def check_suspects(rows: Rows, confidence_level: float, clusters: Mapping[str, Any]) -> IndependenceCheck | None:
    """Return whether rows of a column's values look independent, where one was named; errors speak of that column."""
    import calibrant

    if rows.source.suspect is None:
        return None
    with explained(replace(rows.source, cluster=rows.source.suspect)):
        return calibrant.check_independence(**rows.suspected, confidence_level=confidence_level, **clusters)


@contextlib.contextmanager
def open_rows(source: Source) -> Iterator[Rows]:
    """Open the columns of a file as rows, or those of several classes; errors speak of its columns and rows."""
    if source.asked is None:
        with open_models(source, ()) as models:
            yield models[0]
        return
    with open_source(source) as table:
        chosen = choose_classes(source, table)
        if chosen.asked is None:
            with _open_models(chosen, table, ()) as models:
                yield models[0]
            return
        left_out = drop_missing(chosen, table, kinds_of([chosen]), list(chosen.asked.y_prob))
        if not is_large(source, table):
            yield _read_classes(chosen, table, left_out)
            return
        limits = _share_memory(source, table)
        if source.by is not None and source.cluster is not None:
            most = limits["tally_limit"] // len(chosen.asked.y_prob)
            _check_room(source, table, most, "judging groups of rows in clusters")
            yield _read_classes(chosen, table, left_out)
            return
        said = {**_facts(chosen, table.format, 0, left_out, ()), **facts_of_classes(chosen)}
        yield scan_classes(chosen, table, said, limits)


def _read_classes(source: Source, table: Table, left_out: LeftOut) -> ClassesRead:
    """Read the columns of several classes."""
    from calibrant.rows.asked import asked_of_classes

    given, classes, values = read_classes(source, table)
    count = len(given["y_prob"])
    with explained(source, table):
        family = asked_of_classes(**{"sample_weight": None, **given})  # while a row can still be named
        clusters, suspects = (
            None if name is None else _clusters(values[name], table, count) for name in (source.cluster, source.suspect)
        )
    facts = {
        **_facts(source, table.format, count, left_out, ()),
        **facts_of_classes(source),
        "classes": list(classes),
    }
    if family is not None and family.single:
        facts["notes"] = [*facts["notes"], asked_said(family.kind, family.labels, classes)]
    groups = None if source.by is None else values[source.by]
    return ClassesRead(source, given, facts, groups, clusters, suspects)


@contextlib.contextmanager
def open_models(source: Source, y_prob: Sequence[str]) -> Iterator[list[Rows]]:
    """Open one file with the forecasts of one or several models, one per column named."""
    twice = next((name for name in y_prob if y_prob.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"column {twice!r} of {source.name} was named twice; name each model once")
    with open_source(source) as table, _open_models(source, table, y_prob) as models:
        yield models


@contextlib.contextmanager
def _open_models(source: Source, table: Table, y_prob: Sequence[str]) -> Iterator[list[Rows]]:
    named = source if not y_prob else replace(source, y_prob=y_prob[0])
    first = choose_columns(named, table, outcomes=True, models=y_prob)
    chosen = [replace(first, y_prob=name) for name in y_prob or (first.y_prob,)]
    left_out = leave_out(chosen, table)  # of several models, the same rows
    if not is_large(source, table):
        yield [_read(each, table, left_out) for each in chosen]
        return
    limits = _share_memory(source, table)
    in_periods = source.time is not None or source.period is not None
    featured = source.features is not None
    censored = source.horizon is not None
    is_read = in_periods or featured or censored or (source.by is not None and source.cluster is not None)
    if is_read:
        purpose = "weighting rows for censored ones" if censored else "judging groups of rows in clusters"
        if in_periods or featured:
            purpose = "reading periods one by one" if in_periods else "looking at every group"
        _check_room(source, table, limits["tally_limit"], purpose)
    if is_read or (len(chosen) > 1 and _count(source, table) <= limits["tally_limit"]):  # models row by row
        yield [_read(each, table, left_out) for each in chosen]
        return
    yield [_scanned(each, table, left_out, limits) for each in chosen]


@contextlib.contextmanager
def open_all_rows(source: Source, purpose: str, *, featured: bool = False) -> Iterator[RowsRead]:
    """Open a file for what needs all rows at once, unless there are too many; ``featured`` ones lack no feature."""
    with open_source(source) as table:
        chosen = choose_columns(source, table, outcomes=True)
        needed = {name: "class" for name in (chosen.features or ()) if featured}
        left_out = drop_missing(chosen, table, {**needed, **kinds_of([chosen])}, [str(chosen.y_prob)])
        if is_large(source, table):
            _check_room(source, table, _share_memory(source, table)["tally_limit"], purpose)
        yield _read(chosen, table, left_out)


@dataclass(frozen=True)
class Batch:
    """Checked rows of a batch, and what its column of times or periods holds."""

    rows: RowsRead
    labels: Any
    row_said: Callable[[int], str]


@contextlib.contextmanager
def open_batch(
    source: Source, content: Any = None, *, may_lack_event: Callable[[Sequence[Any]], bool] | None = None
) -> Iterator[Batch]:
    """Open a file, or what came on a stream, as a batch; ``by`` names its column of times or periods.

    ``may_lack_event`` is asked about labels among which that of the event is not: whether all of them are of others.
    """
    from calibrant.engines.columns import read_columns

    with open_source(source, content) as table:
        chosen = choose_columns(source, table, outcomes=True)
        left_out = leave_out([chosen], table)
        rows = _read(replace(chosen, by=None), table, left_out, may_lack_event)
        labels = None
        if chosen.by is not None:
            labels = read_columns(table, [chosen.by])[chosen.by]
        yield Batch(replace(rows, source=chosen), labels, table.row_said)


def _count(source: Source, table: Table) -> int:
    """Return how many rows a file has."""
    from calibrant.engines.columns import count_rows

    with working(f"counting the rows of {table.name}", quiet=source.quiet, connection=table.connection):
        return count_rows(table)


def _check_room(source: Source, table: Table, most: int, purpose: str) -> None:
    """Refuse to look at all rows at once if there are more than memory is meant for."""
    count = _count(source, table)
    if count > most:
        raise BadInput(
            f"{table.name} has {count:,} rows; {purpose} looks at all of them at once, and memory is meant for "
            f"{most:,}: raise --memory-limit (to {_size_said(2 * count * BYTES_PER_ROW)}), or take a random "
            "sample of the rows"
        )


@dataclass(frozen=True)
class Forecasts:
    """A column of forecasts in an open table, and how many rows of it may be read."""

    source: Source
    table: Table
    left_out: LeftOut
    most: int

    def facts(self, rows: int) -> dict[str, Any]:
        """Return what a JSON document says about its input."""
        return {
            "files": list(self.source.files),
            "y_prob": self.source.y_prob,
            "rows": rows,
            "left_out": self.left_out.rows,
            "notes": list(self.left_out.notes),
        }


@contextlib.contextmanager
def open_forecasts(source: Source) -> Iterator[Forecasts]:
    """Open files for their forecasts alone."""
    with open_source(source) as table:
        chosen = choose_columns(source, table, outcomes=False)
        left_out = leave_out([chosen], table)
        yield Forecasts(chosen, table, left_out, _share_memory(source, table)["tally_limit"])


def is_large(source: Source, table: Table) -> bool:
    """Whether a file is scanned where it is instead of being read."""
    return source.memory_limit is not None or table.size > LARGE_BYTES


def _share_memory(source: Source, table: Table) -> dict[str, int]:
    """Give DuckDB half of the memory, and return how many rows the other half has room for."""
    from calibrant.engines.files import halve_memory
    from calibrant.rows.sources import FETCH_LIMIT, TALLY_LIMIT

    if source.memory_limit is None:
        return {"fetch_limit": FETCH_LIMIT, "tally_limit": TALLY_LIMIT}
    most = max(halve_memory(table) // BYTES_PER_ROW, 1)
    return {"fetch_limit": min(most, FETCH_LIMIT), "tally_limit": most}


def _size_said(size: int) -> str:
    """Write a size so that ``--memory-limit`` takes it, rounded up."""
    return f"{-(-size // 10**9)}GB" if size > 10**9 else f"{-(-size // 10**6)}MB"


def _scanned(source: Source, table: Table, left_out: LeftOut, limits: Mapping[str, int]) -> Rows:
    """Check what the columns are, and leave the rows where they are."""
    from calibrant.cli.scans import WatchedEngine
    from calibrant.engines.columns import check_columns

    names, numbers = _wanted(source)
    check_columns(table, names, numbers=numbers)
    return RowsScanned(source, table, WatchedEngine(table, quiet=source.quiet), left_out, limits)


def _wanted(source: Source) -> tuple[list[str], set[str]]:
    """Return the columns that are needed, and those among them that must hold numbers."""
    others = (source.weight, source.by, source.cluster, source.suspect, source.time, source.period)
    followed = None if source.horizon is None else source.horizon.time
    named = (source.y_true, source.y_prob, followed, *others)
    names = [name for name in named if name is not None]
    return names, {name for name in (source.y_prob, source.weight, followed) if name is not None}


def _read(
    source: Source,
    table: Table,
    left_out: LeftOut,
    may_lack_event: Callable[[Sequence[Any]], bool] | None = None,
) -> RowsRead:
    """Read the columns that were chosen, and let the one gate check them."""
    import numpy as np

    from calibrant.engines.columns import read_columns, read_features, written_labels
    from calibrant.engines.handles import MOST_GROUPS
    from calibrant.engines.statements import is_missing_label
    from calibrant.rows.checks import check_labels
    from calibrant.rows.intake import as_observations
    from calibrant.rows.labels import same_label

    names, numbers = _wanted(source)
    with working(f"reading {table.name}", quiet=source.quiet, connection=table.connection):
        outcomes = [str(source.y_true)] if source.pos_label is None else []
        named = (source.cluster, source.suspect, source.time, source.period)
        classes = [name for name in named if name is not None]
        if source.pos_label is not None and not is_missing_label(source.pos_label):
            classes.append(str(source.y_true))
        values = read_columns(table, names, numbers=numbers, outcomes=outcomes, classes=classes)
    y_true, y_prob = str(source.y_true), str(source.y_prob)
    labels, pos_label = values[y_true], _label(source.pos_label, table.columns[y_true])
    if table.is_text and source.pos_label is not None:
        texts, positions = np.unique(labels.astype(str), return_inverse=True)
        typed, pos_label = written_labels(texts.tolist(), source.pos_label)
        labels = np.array(typed)[positions]
    distinct = () if pos_label is None else tuple(np.unique(labels).tolist())
    lacks_event = (
        bool(distinct)
        and isinstance(pos_label, str) is isinstance(distinct[0], str)
        and not any(same_label(pos_label, label) for label in distinct)
    )
    if lacks_event and may_lack_event is not None and may_lack_event(distinct):
        labels, pos_label = np.zeros(len(labels), dtype=np.bool_), None
    with explained(source, table):
        weight = None if source.weight is None else values[source.weight]
        if source.horizon is not None:
            checked: Observations = source.horizon.rows(values, values[y_prob])
        else:
            checked = as_observations(labels, values[y_prob], sample_weight=weight, pos_label=pos_label)
        groups = None if source.by is None else values[source.by]
        if groups is not None:
            found, _ = check_labels(groups, "by", checked.y_prob.size)
            if len(found) > MOST_GROUPS:
                raise InputError(
                    f"has {len(found):,} different values, more than the {MOST_GROUPS:,} groups that can be judged "
                    "together",
                    argument="by",
                    remedy="choose another column",
                )
        clusters, suspects = (
            None if name is None else _clusters(values[name], table, checked.y_prob.size)
            for name in (source.cluster, source.suspect)
        )
        periods = _periods(source, values)
    features = None if source.features is None else read_features(table, source.features)
    return RowsRead(source, table.format, checked, left_out, groups, clusters, suspects, periods, distinct, features)


def _periods(source: Source, values: Mapping[str, Any]) -> Any:
    """Return the period of each row: that of its time, or as it is named."""
    from calibrant.rows.times import period_of

    if source.time is not None:
        return period_of(values[source.time], source.every or "day")
    if source.period is None:
        return None
    return named_periods(values[source.period], source.period)


def named_periods(labels: Any, column: str) -> Any:
    """Return names of periods: as numbers where all texts are whole numbers, and otherwise only those of dates."""
    texts = labels.astype(str) if labels.dtype.kind == "O" else labels
    if texts.dtype.kind != "U":
        return texts
    found = sorted(set(texts.tolist()))
    if all(_WHOLE.fullmatch(text) for text in found):
        return texts.astype("int64")
    odd = next((text for text in found if not _DATED.fullmatch(text)), None)
    if odd is not None:
        raise BadInput(
            f"column {column!r} holds {odd!r}, neither a whole number nor a date as in 2026-01-31: periods are read in "
            "their order, which other texts do not have; number them, or use --time with a column of times"
        )
    return texts


def _clusters(labels: Any, table: Table, rows: int) -> Any:
    """Return a label per row, in a text table its place in the order of numbers where all are numbers.

    Other texts stay what they are: where neighbours count, their order is looked at.
    """
    import numpy as np

    from calibrant.rows.checks import check_codes

    if not table.is_text:
        check_codes(labels, "cluster", rows)
        return labels
    written = labels.astype(str)
    texts, places = np.unique(written, return_inverse=True)
    try:
        numbers = texts.astype(np.float64)
    except ValueError:
        return written
    rank = np.empty(texts.size, dtype=np.int64)
    rank[np.argsort(numbers, kind="stable")] = np.arange(texts.size)
    return rank[places] if np.isfinite(numbers).all() else written


def _label(text: str | None, kind: str) -> Any:
    """Return the label that counts as the event, as a column of DuckDB's type would hold it."""
    from calibrant.engines.files import NUMBERS

    if text is None or not NUMBERS.fullmatch(kind):
        return text
    if kind == "BOOLEAN":
        words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        return words.get(text.lower(), text)
    try:
        return float(text)
    except ValueError:
        return text

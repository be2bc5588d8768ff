"""`scan`: rows that stay where they are, behind a handle that exact answers can ask."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, overload

from calibrant.core.errors import InputError
from calibrant.core.frames import LIBRARIES, frames_follow
from calibrant.core.types import ArrayLike
from calibrant.core.voices import Argument, Phrase
from calibrant.engines.class_scans import ClassScan, LabelScan
from calibrant.engines.clustered import ClusteredScan
from calibrant.engines.handles import GroupedScan, Scan
from calibrant.engines.statements import NUMBERS, Engine, Roles
from calibrant.rows.checks import LABEL_REMEDY, check_choice, check_flag, check_number
from calibrant.rows.classes import QUESTIONS, QuestionsAsked
from calibrant.rows.scanned_groups import GroupColumns
from calibrant.rows.sources import FETCH_LIMIT, TALLY_LIMIT

_ENGINES = ("duckdb", "spark")


@overload
def scan(
    source: Any,
    *,
    y_true: str,
    y_prob: str,
    sample_weight: str | None = ...,
    by: None = ...,
    cluster: None = ...,
    groups: None = ...,
    pos_label: Any = ...,
    engine: str | None = ...,
    memory_limit: str | None = ...,
    temp_directory: str | os.PathLike[str] | None = ...,
    fetch_limit: int = ...,
    tally_limit: int = ...,
) -> Scan: ...


@overload
def scan(
    source: Any,
    *,
    y_true: str,
    y_prob: str,
    sample_weight: str | None = ...,
    by: None = ...,
    cluster: str,
    groups: None = ...,
    pos_label: Any = ...,
    engine: str | None = ...,
    memory_limit: str | None = ...,
    temp_directory: str | os.PathLike[str] | None = ...,
    fetch_limit: int = ...,
    tally_limit: int = ...,
) -> ClusteredScan: ...


@overload
def scan(
    source: Any,
    *,
    y_true: str,
    y_prob: str,
    sample_weight: str | None = ...,
    by: str,
    cluster: None = ...,
    groups: None = ...,
    pos_label: Any = ...,
    engine: str | None = ...,
    memory_limit: str | None = ...,
    temp_directory: str | os.PathLike[str] | None = ...,
    fetch_limit: int = ...,
    tally_limit: int = ...,
) -> GroupedScan: ...


@overload
def scan(
    source: Any,
    *,
    y_true: str,
    y_prob: str,
    sample_weight: str | None = ...,
    by: None = ...,
    cluster: None = ...,
    groups: Sequence[str],
    pos_label: Any = ...,
    engine: str | None = ...,
    memory_limit: str | None = ...,
    temp_directory: str | os.PathLike[str] | None = ...,
    fetch_limit: int = ...,
    tally_limit: int = ...,
) -> GroupColumns: ...


@overload
def scan(
    source: Any,
    *,
    y_true: str | list[str] | tuple[str, ...],
    y_prob: list[str] | tuple[str, ...],
    sample_weight: str | None = ...,
    by: str | None = ...,
    cluster: str | None = ...,
    groups: None = ...,
    pos_label: Any = ...,
    classes: ArrayLike | None = ...,
    questions: QuestionsAsked | None = ...,
    multilabel: bool = ...,
    engine: str | None = ...,
    memory_limit: str | None = ...,
    temp_directory: str | os.PathLike[str] | None = ...,
    fetch_limit: int = ...,
    tally_limit: int = ...,
) -> ClassScan: ...


@frames_follow
def scan(
    source: Any,
    *,
    y_true: str | list[str] | tuple[str, ...],
    y_prob: str | list[str] | tuple[str, ...],
    sample_weight: str | None = None,
    by: str | None = None,
    cluster: str | None = None,
    groups: Sequence[str] | None = None,
    pos_label: Any = None,
    classes: ArrayLike | None = None,
    questions: QuestionsAsked | None = None,
    multilabel: bool = False,
    engine: str | None = None,
    memory_limit: str | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    fetch_limit: int = FETCH_LIMIT,
    tally_limit: int = TALLY_LIMIT,
) -> Scan | ClusteredScan | GroupedScan | GroupColumns | ClassScan:
    """Judge rows where they are: in files larger than memory, in a database, or on a cluster.

    Pass the handle in place of ``y_true`` to `certify`, `cutoff_calibration_error` and the others: the answer is the
    exact one, from a few scans in bounded memory. Nothing is read before it is asked for, except the names and types
    of the columns.

    Parameters
    ----------
    source : path, pattern or list of them; DuckDB relation, or (connection, table name); Ibis table; Spark or any frame
        Files are Parquet, CSV, TSV, Arrow, NPZ or JSON lines, as ``"scores/*.parquet"``. Tables and expressions of Ibis
        are read by their own connection, which has to be one to DuckDB. Frames are those of pandas, polars (lazy ones
        too), Arrow (tables and datasets) and whatever narwhals wraps. An `Engine` of your own is taken as it is:
        docs/how-to/scale.md shows how to write one.
    y_true, y_prob : str
        The columns that hold outcomes and forecasts. For several classes ``y_prob`` is a list, with a column for each.
    sample_weight : str, optional
        The column that holds weights.
    by : str, optional
        The column whose values split the rows into groups; every scan serves all groups. Labels from text files are
        texts as they stand there: "1" and "1.0" are two groups.
    cluster : str, optional
        The column whose values say which rows belong together, such as those of one patient or one day, where rows of
        different clusters are independent. Their order is that of the labels: as numbers where all of them are, else
        as texts, to which dates and times belong.
    groups : list of str, optional
        Columns of groups that may overlap, for ``certify(..., scale=...)``: of a column of truth values the rows that
        are true are a group, a column of labels has a group for each.
    pos_label : label, optional
        The value in ``y_true`` that counts as the event, against all others; in text files, its text or the number that
        it stands for.
    classes : array-like of shape (K,), optional
        The label of each column of a list ``y_prob``; by default columns are named after the labels, as they are or
        behind a beginning that all share, as p_cat and p_dog.
    questions, multilabel
        What is asked of several classes, as in `cutoff_calibration_error`; with ``multilabel`` both ``y_true`` and
        ``y_prob`` are lists.
    engine : {"duckdb", "spark"}, optional
        Which engine to use; by default the one that fits the source.
    memory_limit, temp_directory : str, optional
        The most memory that DuckDB may use, such as "2GB", and where it puts what does not fit.
    fetch_limit : int
        The most rows that are brought here at a time to be looked at one by one; where more matter, another scan cuts
        the cells that hold them finer first. Of several groups together it may be four times as many.
    tally_limit : int
        The most rows that are brought here for what needs every distinct forecast, such as the smooth error.

    Returns
    -------
    Scan, ClusteredScan when ``cluster`` is given, GroupedScan when ``by`` is given, GroupColumns with ``groups``, or
    ClassScan for several classes

    Examples
    --------
    >>> import pyarrow
    >>> from calibrant import cutoff_calibration_error
    >>> table = pyarrow.table({"label": [0, 1, 1, 1], "score": [0.25, 0.5, 0.75, 1.0]})
    >>> with scan(table, y_true="label", y_prob="score") as rows:
    ...     cutoff_calibration_error(rows)
    0.1875
    """
    if groups is not None:
        given = {
            "y_true": y_true,
            "y_prob": y_prob,
            "sample_weight": sample_weight,
            "pos_label": pos_label,
            "engine": engine,
            "memory_limit": memory_limit,
            "temp_directory": temp_directory,
            "fetch_limit": fetch_limit,
            "tally_limit": tally_limit,
        }
        return _scan_columns(source, groups, by, cluster, given)
    chosen = _engine(source, engine, memory_limit, None if temp_directory is None else os.fspath(temp_directory))
    try:
        limits = _limits(fetch_limit, tally_limit)
        named: dict[str, Any] = {"sample_weight": sample_weight, "by": by, "cluster": cluster}
        if isinstance(y_prob, (list, tuple)):
            asked = {"classes": classes, "questions": questions, "pos_label": pos_label, "limits": limits}
            return _classes_of(chosen, y_true, y_prob, named, asked, multilabel=multilabel)
        if isinstance(y_true, (list, tuple)):
            raise InputError(f"is {y_true!r}", argument="y_true", value=y_true, remedy="pass the name of a column")
        for name, value in (("classes", classes), ("questions", questions), ("multilabel", multilabel or None)):
            if value is not None:
                raise InputError(
                    Phrase("was given, but {prob} has no column per class", prob=Argument("y_prob")),
                    argument=name,
                    remedy="pass a list of columns, or leave it out",
                )
        roles = _checked(chosen, Roles(y_true, y_prob, **named))
        if pos_label is None and chosen.columns[y_true] not in NUMBERS:
            raise InputError(
                f"is of type {chosen.columns[y_true]}, labels and not numbers",
                argument="y_true",
                column=y_true,
                source=chosen.name,
                remedy=LABEL_REMEDY,
            )
        kind = GroupedScan if by is not None else Scan if cluster is None else ClusteredScan
        return kind(chosen, roles, pos_label, *limits)
    except BaseException:
        chosen.close()
        raise


def _scan_columns(source: Any, groups: Any, by: Any, cluster: Any, given: dict[str, Any]) -> GroupColumns:
    """Return the rows in the groups of each of several columns."""
    for name, column in (("by", by), ("cluster", cluster)):
        if column is not None:
            raise InputError(
                "was given together with groups",
                argument=name,
                remedy="leave it out, or read the columns and pass arrays",
            )
    if isinstance(given["y_prob"], (list, tuple)):
        raise InputError(
            "was given together with a column of forecasts per class",
            argument="groups",
            remedy="leave it out, or name the forecasts of one class",
        )
    names = [groups] if isinstance(groups, str) else list(groups)
    if not names or len(set(names)) < len(names):
        raise InputError(
            "names no column, or one twice", argument="groups", remedy="pass the names of columns, each once"
        )
    found: list[tuple[str, GroupedScan]] = []
    try:
        for name in names:
            found.append((name, scan(source, by=name, **given)))
    except BaseException:
        GroupColumns(tuple(found)).close()
        raise
    return GroupColumns(tuple(found))


def _limits(fetch_limit: int, tally_limit: int) -> tuple[int, int]:
    first, second = (
        int(check_number(limit, name, low=1, whole=True))
        for name, limit in (("fetch_limit", fetch_limit), ("tally_limit", tally_limit))
    )
    return first, second


def _classes_of(
    engine: Engine,
    y_true: Any,
    y_prob: Sequence[str],
    named: dict[str, Any],
    asked: dict[str, Any],
    *,
    multilabel: bool,
) -> ClassScan:
    """Return the handle of forecasts of several classes, or labels, after a look at their columns."""
    outcomes = list(y_true) if isinstance(y_true, (list, tuple)) else [y_true]
    if asked["classes"] is not None:
        asked["classes"] = list(asked["classes"])
    if asked["questions"] is not None:
        check_choice(asked["questions"], "questions", QUESTIONS)
    if not check_flag(multilabel, "multilabel"):
        if isinstance(y_true, (list, tuple)) or len(y_prob) < 2:
            raise InputError(
                f"names {len(y_prob):,} columns and {outcomes!r} is for the outcomes",
                argument="y_prob",
                remedy="pass two columns of forecasts or more, and the one column of labels as y_true",
            )
        outcomes *= len(y_prob)
    elif len(outcomes) != len(y_prob):
        raise InputError(
            f"names {len(outcomes):,} columns and y_prob {len(y_prob):,}",
            argument="y_true",
            remedy="pass a column of 0 and 1 for every label",
        )
    twice = next((name for place, name in enumerate(y_prob) if name in y_prob[:place]), None)
    if twice is not None:
        raise InputError(f"names {twice!r} twice", argument="y_prob", value=twice, remedy="name each class once")
    found = [_checked(engine, Roles(one, other, **named)) for one, other in zip(outcomes, y_prob, strict=True)]
    if multilabel:
        return LabelScan(engine, found[0], outcomes, y_prob, **asked)
    return ClassScan(engine, found[0], y_prob, **asked)


def _engine(source: Any, wanted: str | None, memory_limit: str | None, temp_directory: str | None) -> Engine:
    """Return the engine that fits a source, without importing libraries that the source does not come from."""
    if wanted is not None:
        check_choice(wanted, "engine", _ENGINES)
    if isinstance(source, Engine):
        return source
    library = type(source).__module__.partition(".")[0]
    if library == "narwhals":
        return _engine(source.to_native(), wanted, memory_limit, temp_directory)
    fitting = "spark" if library == "pyspark" else "duckdb"
    if wanted not in (None, fitting):
        raise InputError(
            f"is {wanted!r}, but a source of type {type(source).__name__} needs {fitting!r}",
            argument="engine",
            value=wanted,
            remedy="leave engine out",
        )
    is_ibis = library == "ibis"
    is_relation = is_ibis or library.startswith(("duckdb", "_duckdb"))
    is_table = isinstance(source, tuple) and len(source) == 2 and not isinstance(source[0], (str, os.PathLike))
    if (fitting == "spark" or is_relation or is_table) and (memory_limit is not None or temp_directory is not None):
        raise InputError(
            "memory_limit and temp_directory are for files and frames", remedy="set them on the session itself"
        )
    if fitting == "spark":
        from calibrant.engines.spark import SparkEngine

        return SparkEngine(source)
    from calibrant.engines.duckdb import DuckDBEngine

    if is_ibis:
        return DuckDBEngine.from_ibis(source)
    if is_relation and not hasattr(source, "alias"):
        raise InputError(
            f"is a {type(source).__name__}, not a table of it",
            argument="source",
            remedy="pass (connection, 'table'), or a relation, as in connection.sql('SELECT ...')",
        )
    if is_relation:
        return DuckDBEngine(source, f"the relation {source.alias!r}")
    if is_table:
        connection, name = source
        return DuckDBEngine(connection.table(name), name)
    if library in LIBRARIES:
        return DuckDBEngine.from_frame(source, memory_limit=memory_limit, temp_directory=temp_directory)
    if isinstance(source, (str, os.PathLike, Sequence)) or hasattr(source, "read"):
        return DuckDBEngine.from_files(source, memory_limit=memory_limit, temp_directory=temp_directory)
    raise InputError(
        f"is of type {type(source).__name__}",
        argument="source",
        remedy="pass a path, a DuckDB relation, an Ibis table, a Spark DataFrame or another frame",
    )


def _checked(engine: Engine, roles: Roles) -> Roles:
    """Check that the columns exist and can be what they are said to be."""
    if roles.by is not None and roles.cluster is not None:
        raise InputError(
            "was given together with by, and groups of a scan have no clusters",
            argument="cluster",
            remedy="scan the rows of one group at a time, or read the columns and pass arrays",
        )
    for role, column in roles.listed().items():
        if not isinstance(column, str):
            raise InputError(f"is {column!r}", argument=role, value=column, remedy="pass the name of a column")
        engine.check_column(column)
        kind = engine.columns[column]
        if role in ("y_prob", "sample_weight") and kind not in NUMBERS:
            raise InputError(
                f"is of type {kind}, not numbers",
                argument=role,
                column=column,
                source=engine.name,
                remedy="convert it to numbers first",
            )
        twice = next((other for other, name in roles.listed().items() if name == column and other != role), None)
        if role == "cluster" and twice is not None:
            raise InputError(
                Phrase("is also {other}", other=Argument(twice)),
                argument=role,
                column=column,
                source=engine.name,
                remedy="choose a column that says which rows belong together",
            )
    return roles

"""Databases in memory for one table each: made anew, or the one that the last table left.

To make one takes DuckDB longer than to read most files, so one is kept when its table is closed.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from calibrant.core.sql import text_literal
from calibrant.core.voices import Argument, Phrase
from calibrant.engines.formats import TableError, first_line

if TYPE_CHECKING:
    import duckdb

_MEMORY = "SELECT current_setting('memory_limit')"


class _Database(NamedTuple):
    connection: duckdb.DuckDBPyConnection
    memory: str  # its usual limit


_left: list[_Database] = []  # that nobody uses: one, unless several tables were closed at one moment


@contextlib.contextmanager
def connect(
    memory_limit: str | None, scratch: tempfile.TemporaryDirectory[str] | None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database in memory that may put what does not fit into a folder, and that downloads nothing."""
    database = _taken() or _made()
    connection = database.connection.cursor()  # what it is told of views and arrays ends with it
    try:
        connection.execute(f"SET temp_directory = {text_literal('' if scratch is None else scratch.name)}")
        _limit_memory(connection, memory_limit)
        yield connection
    finally:
        connection.close()
        if _left or not _is_as_new(database):
            database.connection.close()
        else:
            _left.append(database)


def _taken() -> _Database | None:
    try:
        return _left.pop()
    except IndexError:  # not asked before: another thread may take it in between
        return None


def _made() -> _Database:
    try:
        import duckdb
    except ImportError as missing:
        raise ImportError("reading files needs duckdb; install it with: pip install 'calibrant[cli]'") from missing
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false", "temp_directory": ""}
    )
    connection.execute("SET GLOBAL perfect_ht_threshold = 17")  # keys of 16 bits, and none, are added up in an array
    # What a file says about its own rows, such as their smallest and largest value, is not what they are: conditions
    # are not decided by it, and no rows are passed over.
    connection.execute("SET GLOBAL disabled_optimizers = 'statistics_propagation,filter_pushdown,join_filter_pushdown'")
    connection.execute("SET GLOBAL enable_external_file_cache = false")  # the system keeps what was read of files, too
    connection.execute("SET GLOBAL pandas_analyze_sample = 0")  # objects are text: a sample does not say what all are
    return _Database(connection, _answer(connection, _MEMORY))


def _limit_memory(connection: duckdb.DuckDBPyConnection, limit: str | None) -> None:
    import duckdb

    if limit is None:
        return
    try:
        connection.execute(f"SET memory_limit = {text_literal(limit)}")
    except duckdb.Error as error:
        raise TableError(
            Phrase("{named} is {given!r}: {why}", named=Argument("memory_limit"), given=limit, why=first_line(error)),
            remedy="write it like 500MB or 2GB",
        ) from error


def _is_as_new(database: _Database) -> bool:
    """Whether a database can be left to the next table: it has its usual memory, no folder, and is not broken.

    One whose memory was limited cannot: DuckDB 1.5 forgets the limit and stays short of memory all the same.
    """
    import duckdb

    try:
        database.connection.execute("SET temp_directory = ''")
        return _answer(database.connection, _MEMORY) == database.memory
    except duckdb.Error:
        return False


def _answer(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    (answer,) = connection.execute(query).fetchall()[0]
    return str(answer)


def _close_left() -> None:
    while _left:
        _left.pop().connection.close()


atexit.register(_close_left)
if hasattr(os, "register_at_fork"):  # the threads of a database do not come along
    os.register_at_fork(before=_close_left)

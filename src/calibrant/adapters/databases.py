"""A gate in SQL alone, for dbt and for whatever else takes a statement that must return no rows."""

from __future__ import annotations

import math

from calibrant.core.errors import InputError
from calibrant.core.sql import is_name, number_literal, quoted
from calibrant.rows.checks import check_confidence, check_number


def sql_test(table: str, *, y_true: str, y_prob: str, max_error: float, confidence_level: float = 0.95) -> str:
    """Return a SQL statement that finds no rows if forecasts are certified to be within a limit, and else says why.

    It is what ``certify(..., method="hoeffding")`` says, computed where the rows are: the Cutoff calibration error and
    Hoeffding's margin sqrt(2 ln(1/delta) / n), which needs nothing but the number of rows. That margin is wide: with n
    rows no limit below it can be certified, and the method that `certify` uses by default needs far fewer rows. The
    one row that comes back has the error, its upper limit, the limit asked for, the worst range of forecasts (above
    ``after``, up to ``through``), what was found, how many rows are bad (missing, no numbers, or outside [0, 1]), and
    how many there are. Errors are those of the other rows. It comes back, too, where the error of the rows is within
    the limit and they are too few to be sure: ``finding`` says which it is. A text that is no number is a bad row in
    SQLite; elsewhere the statement itself fails.

    Rows must be independent draws from the population, and the limit fixed without looking at them. A test that runs
    every day is another question: see `calibrant.Monitor`.

    Parameters
    ----------
    table : str
        What stands after FROM, as it is: a name, ``{{ ref('scores') }}`` for dbt, or a query in parentheses. Never pass
        a text from somebody you do not trust.
    y_true, y_prob : str
        The columns that hold outcomes and forecasts, both numbers.
    max_error : float
        The largest Cutoff error that is acceptable.
    confidence_level : float from 0.5 to below 1
        Of the certificate.

    Returns
    -------
    str
        One statement in standard SQL: sums, a window over the distinct forecasts, LIMIT and SQRT.

    Examples
    --------
    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> _ = connection.execute("CREATE TABLE scores AS SELECT i % 2 AS late, 0.5 AS score FROM range(10000) AS t(i)")
    >>> connection.execute(sql_test("scores", y_true="late", y_prob="score", max_error=0.05)).fetchall()
    []
    """
    for argument, name in (("table", table), ("y_true", y_true), ("y_prob", y_prob)):
        if not is_name(name):
            raise InputError(f"must be a name, got {name!r}", argument=argument, value=name)
    if y_true == y_prob:
        raise InputError(
            f"is {y_prob!r}, which is y_true: a column is never off itself",
            argument="y_prob",
            value=y_prob,
            remedy="name the column of forecasts",
        )
    limit = number_literal(check_number(max_error, "max_error", low=0.0, high=1.0))
    exponent = number_literal(2.0 * math.log(1.0 / (1.0 - check_confidence(confidence_level))))
    outcome, forecast = map(_number, (y_true, y_prob))
    return f"""\
WITH calibrant_given AS (
    SELECT {outcome} AS y, {forecast} AS p FROM {table}
),
calibrant_sound AS (
    SELECT y, p FROM calibrant_given WHERE y >= 0e0 AND y <= 1e0 AND p >= 0e0 AND p <= 1e0
),
calibrant_forecasts AS (
    SELECT p, SUM(y - p) AS residual, COUNT(*) AS n FROM calibrant_sound GROUP BY p
),
calibrant_curve AS (
    SELECT -1e0 AS p, 0e0 AS height, 0 AS n
    UNION ALL
    SELECT p, SUM(residual) OVER (ORDER BY p) AS height, n FROM calibrant_forecasts
),
calibrant_ends AS (
    SELECT
        (SELECT p FROM calibrant_curve ORDER BY height DESC, p LIMIT 1) AS top,
        (SELECT p FROM calibrant_curve ORDER BY height, p LIMIT 1) AS bottom,
        (SELECT COUNT(*) FROM calibrant_given) AS n_rows,
        (SELECT COUNT(*) FROM calibrant_given) - SUM(n) AS bad_rows,
        (MAX(height) - MIN(height)) / NULLIF(SUM(n), 0) AS error,
        SQRT({exponent} / NULLIF(SUM(n), 0)) AS margin
    FROM calibrant_curve
),
calibrant_found AS (
    SELECT *, CASE WHEN error + margin > 1e0 THEN 1e0 ELSE error + margin END AS upper FROM calibrant_ends
)
SELECT
    error,
    upper,
    {limit} AS max_error,
    CASE WHEN top < bottom THEN top ELSE bottom END AS after,
    CASE WHEN top < bottom THEN bottom ELSE top END AS through,
    CASE
        WHEN n_rows = 0 THEN 'there are no rows'
        WHEN bad_rows > 0 THEN 'some rows are missing, no numbers, or outside [0, 1]'
        WHEN error <= {limit} THEN 'not certified: within the limit on these rows, which are too few to be sure'
        WHEN top < bottom THEN 'above the limit on these rows: events are rarer than forecast'
        ELSE 'above the limit on these rows: events are more frequent than forecast'
    END AS finding,
    bad_rows,
    n_rows
FROM calibrant_found
WHERE bad_rows > 0 OR n_rows = 0 OR upper > {limit}
"""


def _number(column: str) -> str:
    """Return an expression for a column as a number, and NULL for what is none: SQLite casts any text to 0."""
    name = quoted(column)
    number = f"CAST({name} AS DOUBLE PRECISION)"
    return f"CASE WHEN {name} = {number} THEN {number} END"

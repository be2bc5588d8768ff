"""Numbers and names as people read them: digits that can be trusted, limits rounded outwards, nothing obeyed."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

_LONG = Context(prec=400)  # more digits than any number has
_ROUNDING = 1e-12  # what is smaller is the dust of sums
_FEW_ZEROS = 1e-7
_approximate: ContextVar[bool] = ContextVar("approximate", default=False)


def percent(share: float) -> str:
    """Write a probability or share as a percentage with as many digits as it deserves."""
    value = 100.0 * share
    digits = 1 if 1.0 <= abs(value) <= 99.0 or value in (0.0, 100.0) else 2
    return f"{measured(value, digits)}%"


def measured(value: float, digits: int = 5) -> str:
    """Write a measured value with so many decimals, or with two digits where these would hardly leave one.

    Examples
    --------
    >>> measured(0.0123456), measured(0.0000123456), measured(0.0)
    ('0.01235', '0.000012', '0.00000')
    """
    if _ROUNDING < abs(value) < 10.0 ** (1 - digits):
        return significant(value, 2)
    return f"{value if abs(value) > _ROUNDING else 0.0:.{digits}f}"


def significant(value: float, digits: int = 4) -> str:
    """Write a number with so many digits that tell, and without a power of ten unless that takes many zeros.

    Examples
    --------
    >>> significant(0.123456), significant(0.0000123456), significant(1.5e-12)
    ('0.1235', '0.00001235', '1.5e-12')
    """
    text = f"{value:.{digits}g}"
    return f"{Decimal(text):f}" if "e-" in text and abs(value) >= _FEW_ZEROS else text


def rounded(value: float | None, digits: int = 4, *, sign: str = "", missing: str = "-") -> str:
    """Write a number with so many decimals, and no minus before a zero; ``missing`` where there is none.

    Examples
    --------
    >>> rounded(0.12346), rounded(-0.00001, sign="+"), rounded(None)
    ('0.1235', '+0.0000', '-')
    """
    return missing if value is None else f"{round(value, digits) + 0.0:{sign}.{digits}f}"


def rounded_up(limit: float | None, digits: int = 4, *, sign: str = "", missing: str = "-") -> str:
    """Write an upper limit so that what is written is a limit too.

    Examples
    --------
    >>> rounded_up(0.123401), rounded_up(0.1234), rounded_up(-0.12349, sign="+")
    ('0.1235', '0.1234', '-0.1234')
    """
    return missing if limit is None else _with_decimals(limit, digits, ROUND_CEILING, sign)


def rounded_down(limit: float | None, digits: int = 4, *, sign: str = "", missing: str = "-") -> str:
    """Write a lower limit so that what is written is a limit too."""
    return missing if limit is None else _with_decimals(limit, digits, ROUND_FLOOR, sign)


def _with_decimals(limit: float, digits: int, rounding: str, sign: str) -> str:
    written = _as_named(limit).quantize(Decimal(1).scaleb(-digits), rounding, _LONG)
    return f"{float(written) + 0.0:{sign}.{digits}f}"


def _as_named(number: float) -> Decimal:
    """Return the shortest decimal that names a number, so that 0.1 stays 0.1 and not the next binary fraction."""
    return Decimal(repr(float(number)))


def hundredfold(share: float) -> str:
    """Write a hundred times a number with all its digits, and no others.

    Examples
    --------
    >>> hundredfold(0.07), hundredfold(0.12345), hundredfold(1.0)
    ('7', '12.345', '100')
    """
    return f"{_as_named(share).scaleb(2).normalize():f}"


def significant_up(limit: float, digits: int) -> str:
    """Write an upper limit of any size with so many digits, so that what is written is a limit too.

    Examples
    --------
    >>> significant_up(1234.51, 5), significant_up(0.000123451, 3)
    ('1234.6', '0.000124')
    """
    written = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(_as_named(limit))
    return f"{float(written):.{digits}g}"


def some_names(names: Sequence[Any], most: int = 10) -> str:
    """Write the first few of several names as they may be shown, and how many more there are.

    Examples
    --------
    >>> some_names(["a", "b"]), some_names(range(1, 13), 3)
    ('a, b', '1, 2, 3 and 9 more')
    """
    listed = ", ".join(printable(name) for name in names[:most])
    return f"{listed} and {len(names) - most:,} more" if len(names) > most else listed


def counted(number: int, thing: str) -> str:
    """Write how many things there are.

    Examples
    --------
    >>> counted(1, "row"), counted(1234, "row")
    ('1 row', '1,234 rows')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def of_all(unit_weights: bool) -> str:
    """Say what a share is a share of."""
    return "of all rows" if unit_weights else "of the weight"


@contextmanager
def approximately(approximate: bool = True) -> Iterator[None]:
    """Let the levels and verdicts that are written meanwhile say that they hold approximately, if they do.

    Examples
    --------
    >>> with approximately():
    ...     level_said(0.95), verdict_said("certified"), verdict_said("undecided")
    ('about 95%', 'certified, approximately', 'undecided')
    """
    token = _approximate.set(approximate)
    try:
        yield
    finally:
        _approximate.reset(token)


def verdict_said(verdict: str) -> str:
    """Write a verdict, which is one approximately where that is all there is to it; nothing decided is no claim."""
    return f"{verdict}, approximately" if _approximate.get() and verdict.lower() != "undecided" else verdict


def level_said(level: float) -> str:
    """Write a confidence level rounded down, with as many digits as it takes not to read like certainty.

    Examples
    --------
    >>> level_said(0.95), level_said(1 - 0.05 / 3), level_said(0.9999999)
    ('95%', '98.3%', '99.99999%')
    """
    about, text = "about " if _approximate.get() else "", percent(level).replace(".0%", "%")
    if text == "100.00%":
        return f"{about}{hundredfold(level)}%"
    digits = len(text.partition(".")[2]) - 1 if "." in text else 1
    return about + f"{rounded_down(round(100.0 * level, 10), digits)}%".replace(".0%", "%")


def shown(value: Any) -> str:
    """Write a number with all its digits, so that a value just outside a limit does not look like the limit.

    A text, such as the name of a period, stands as it is.
    """
    return printable(value) if isinstance(value, str) else repr(float(value)).removesuffix(".0")


def printable(value: object, *, lines: bool = False) -> str:
    r"""Return a text with every character escaped that a terminal obeys, that reorders a line or begins a new one.

    Names of groups, columns, models and files come from whoever wrote them: an escape sequence could wipe a screen, a
    line break add a verdict, a mark for text from right to left turn a number round. They are escaped as in Python.

    Parameters
    ----------
    value : object
        The text, or what ``str`` turns into one.
    lines : bool
        Whether line breaks stay, in a text of several lines.

    Examples
    --------
    >>> print(printable("north\nCertified: \x1b[32mall of them"))
    north\nCertified: \x1b[32mall of them
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(each if _is_plain(each) or (lines and each == "\n") else _escaped(each) for each in text)


def in_columns(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write rows of words and numbers in columns, the first one left-aligned and so is the last.

    Examples
    --------
    >>> print(in_columns(("ward", "rows", "verdict"), [("east", "2,000", "certified"), ("west", "90", "refuted")]))
      ward   rows  verdict
      east  2,000  certified
      west     90  refuted
    """
    cells = [[printable(cell) for cell in row] for row in (names, *rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(names))]
    last = len(names) - 1
    return "\n".join(
        "  "
        + "  ".join(
            cell.ljust(widths[k]) if k == 0 else cell if k == last else cell.rjust(widths[k])
            for k, cell in enumerate(row)
        ).rstrip()
        for row in cells
    )


def _is_plain(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"  # spaces of any width


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()

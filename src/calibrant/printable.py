"""Words from outside, written so that whoever shows them shows what they are and obeys nothing in them."""

from __future__ import annotations

import unicodedata


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


def _is_plain(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"  # spaces of any width


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()

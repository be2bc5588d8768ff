"""What goes wrong, and what is worth a warning: facts first, worded here and nowhere else."""

from __future__ import annotations

import copy
from typing import Any, Self

from calibrant.core.voices import PYTHON, Argument, Phrase, Voice


class CalibrationWarning(UserWarning):
    """A number was computed as asked, but it may not mean what it seems to mean."""


class CalibrantError(ValueError):
    """Something is wrong with what was asked or with the data, and calibrant says what.

    Parameters
    ----------
    problem : str
        What is wrong.
    remedy : str
        What to do about it.
    source : str
        The table that the rows stand in.
    joint : str
        What stands between problem and remedy.

    Attributes
    ----------
    problem, remedy, source : str
        As above; empty where there is nothing to say.
    group : object
        The group of rows that it is about, or None.

    Examples
    --------
    >>> import calibrant
    >>> try:
    ...     calibrant.measure([0, 1], [0.2, 70])
    ... except calibrant.CalibrantError as error:
    ...     error.problem, error.remedy
    ('is 70, outside [0, 1]', 'if these are percentages, divide by 100; if they are scores, apply a sigmoid first')
    """

    def __init__(self, problem: str, *, remedy: str = "", source: str = "", joint: str = "; ") -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
        self.source = source
        self.group: Any = None
        self.joint = joint

    @property
    def phrase(self) -> Phrase:
        """The whole message, with its facts."""
        return Phrase(
            f"{{source}}{{group}}{{finding}}{self.joint if self.remedy else ''}{{remedy}}",
            source=self.source and f"{self.source}: ",
            group="" if self.group is None else Phrase("{by} group {label!r}: ", by=Argument("by"), label=self.group),
            finding=self._finding(),
            remedy=self.remedy,
        )

    def _finding(self) -> str:
        """Say what is wrong with what."""
        return self.problem

    @property
    def is_placed(self) -> bool:
        """Whether the message says in which table it was found."""
        return bool(self.source)

    def said(self, voice: Voice) -> str:
        """Word the message for a voice."""
        return self.phrase.said(voice)

    def __str__(self) -> str:
        return self.said(PYTHON)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def among(self, *, source: str = "", group: Any = None) -> Self:
        """Return the same error, which says also in which table or group of rows it was found."""
        found = copy.copy(self)
        found.source = source or self.source
        found.group = self.group if group is None else group
        return found


class InputError(CalibrantError):
    """Something is wrong with an argument.

    Parameters
    ----------
    problem : str
        What is wrong; where an argument is named it comes before this in the message, and is not repeated in it.
    argument : str
        The argument.
    position : int
        The place of the first value that is wrong.
    value : object
        What it holds.
    column : str
        The column that stands for the argument.
    **context
        As in `CalibrantError`.

    Attributes
    ----------
    argument, column : str or None
        As above.
    position : int or None
        As above.
    value : object
        As above.

    Examples
    --------
    >>> import calibrant
    >>> try:
    ...     calibrant.measure([0, 1], [0.2, 70])
    ... except calibrant.InputError as error:
    ...     error.argument, error.position, error.value
    ('y_prob', 1, 70.0)
    """

    def __init__(
        self,
        problem: str,
        *,
        argument: str | None = None,
        position: int | None = None,
        value: Any = None,
        column: str | None = None,
        **context: str,
    ) -> None:
        super().__init__(problem, **context)
        self.argument = argument
        self.position = position
        self.value = value
        self.column = column

    def _finding(self) -> str:
        if self.argument is None:
            return self.problem
        named = Argument(self.argument, self.position, self.column)
        return Phrase("{named} {problem}", named=named, problem=self.problem)


class NewerError(InputError):
    """A newer version of calibrant wrote what is to be read: nothing is wrong with it."""


def refuse_newer(what: str, said: Any, form: str) -> None:
    """Refuse what a newer version of calibrant wrote, by the name of its form; other names pass."""
    family, _, version = form.rpartition("/")
    theirs, _, other = said.rpartition("/") if isinstance(said, str) else ("", "", "")
    if theirs == family and other.isascii() and other.isdigit() and len(other) < 9 and int(other) > int(version):
        raise NewerError(
            f"{what} was written by a newer version of calibrant ({said}); this one reads {form}",
            remedy="update calibrant, as in: pip install --upgrade calibrant",
        )


class UndefinedError(InputError):
    """What was asked for is not defined on these rows, and is on others: a report may leave it out."""

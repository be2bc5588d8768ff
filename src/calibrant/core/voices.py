"""Sentences that hold facts: what names an argument, an option or a call is worded for whoever reads it.

Those who write Python read ``y_prob[3]`` and ``pos_label=``, those who type commands read "column 'p', line 5," and
``--pos-label``. A sentence is written once, with facts where the two differ, and nobody rewrites it afterwards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Self


class Voice:
    """How those who write Python are spoken to; a class that derives from it speaks to others."""

    is_for_python = True

    def argument(self, name: str, position: int | None, column: str | None) -> str:
        """Name an argument, one of its values, or the column that stands for it."""
        named = name if column is None else f"{name} (column {column!r})"
        return named if position is None else f"{named}[{position}]"

    def option(self, name: str, value: str | float | None) -> str:
        """Say which option to pass, and what with."""
        return f"{name}=" if value is None else f"{name}={value!r}"


PYTHON = Voice()
_voice: ContextVar[Voice] = ContextVar("voice", default=PYTHON)


@contextmanager
def speaking(voice: Voice) -> Iterator[None]:
    """Let the sentences that are written meanwhile be in a voice."""
    token = _voice.set(voice)
    try:
        yield
    finally:
        _voice.reset(token)


class Fact(ABC):
    """What a sentence names, and each voice in its own way."""

    @abstractmethod
    def said(self, voice: Voice) -> str:
        """Word it."""

    def __str__(self) -> str:
        return self.said(_voice.get())


@dataclass(frozen=True)
class Argument(Fact):
    """An argument, or one of its values; with the column that stands for it where it is one of a table."""

    name: str
    position: int | None = None
    column: str | None = None

    def said(self, voice: Voice) -> str:
        """Word it."""
        return voice.argument(self.name, self.position, self.column)


@dataclass(frozen=True)
class Option(Fact):
    """An option that is to be passed, and the word or number to pass if it is known."""

    name: str
    value: str | float | None = None

    def said(self, voice: Voice) -> str:
        """Word it."""
        return voice.option(self.name, self.value)


@dataclass(frozen=True)
class Either(Fact):
    """A piece of Python, and what those who do not write it are told instead, which may be nothing."""

    python: str
    otherwise: str | Fact = ""  # a phrase is a string, too

    def said(self, voice: Voice) -> str:
        """Word it."""
        return said(self.python if voice.is_for_python else self.otherwise, voice)


class Phrase(str):
    """A sentence with its facts: a string in Python's words, which ``str`` and f-strings word for the current voice.

    Parameters
    ----------
    template : str
        The sentence, with a name in braces for each fact.
    code : str
        What the sentence is about, for programs.
    **facts
        What stands in the places of the names: facts, other phrases, or plain values.

    Examples
    --------
    >>> note = Phrase("{y} holds labels; pass {pos}", y=Argument("y_true"), pos=Option("pos_label"), code="labels")
    >>> print(note)
    y_true holds labels; pass pos_label=
    """

    code: str
    template: str
    facts: dict[str, Any]

    def __new__(cls, template: str, /, *, code: str = "", **facts: Any) -> Self:
        """Word the sentence for those who write Python."""
        phrase = super().__new__(cls, _worded(template, facts, PYTHON))
        phrase.code, phrase.template, phrase.facts = code, template, facts
        return phrase

    def said(self, voice: Voice) -> str:
        """Word the sentence."""
        return _worded(self.template, self.facts, voice)

    def __str__(self) -> str:
        return self.said(_voice.get())

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.template,), {"code": self.code, **self.facts}


def _worded(template: str, facts: dict[str, Any], voice: Voice) -> str:
    worded = {name: fact.said(voice) if isinstance(fact, (Fact, Phrase)) else fact for name, fact in facts.items()}
    return template.format(**worded)


def joined(between: str, texts: Iterable[str]) -> Phrase:
    """Return one phrase of several texts, phrases or not."""
    parts = {f"part{place}": text for place, text in enumerate(texts)}
    return Phrase(between.join(f"{{{name}}}" for name in parts), **parts)


def said(text: str | Fact, voice: Voice) -> str:
    """Word a phrase or a fact for a voice; any other text stays as it is."""
    return text.said(voice) if isinstance(text, (Fact, Phrase)) else text

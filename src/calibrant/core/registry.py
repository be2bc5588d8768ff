"""Choices that are objects: listed by name in one place, imported when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Generic, TypeVar

from calibrant.core.errors import InputError

Kind = TypeVar("Kind")


class Registry(Mapping[str, Kind]):
    """Objects by name, in the order in which people are told of them.

    Parameters
    ----------
    listed : mapping of str to str
        Every name, with a few words for people.
    load : callable
        Returns the object of a name; called once, when the object is first asked for, so that names and words alone
        cost nothing.
    """

    def __init__(self, listed: Mapping[Any, str], load: Callable[[str], Kind]) -> None:
        self._listed: dict[str, str] = dict(listed)
        self._load = load
        self._loaded: dict[str, Kind] = {}

    def __getitem__(self, name: str) -> Kind:
        if name not in self._listed:
            raise KeyError(name)
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._listed

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def words(self, name: str) -> str:
        """Return the few words for people."""
        return self._listed[name]

    def add(self, name: str, words: str, item: Kind) -> None:
        """List one more object, after all others."""
        if name in self._listed:
            raise InputError(f"{name!r} is listed already", remedy="choose another name")
        self._listed[name] = words
        self._loaded[name] = item

    def remove(self, name: str) -> None:
        """Take an object off the list."""
        del self._listed[name]
        self._loaded.pop(name, None)

    def where(self, fits: Callable[[Kind], bool]) -> Chosen[Kind]:
        """Return the names of the objects that fit, found anew whenever they are looked at."""
        return Chosen(self, fits)


class Chosen(Collection[str], Generic[Kind]):
    """The names of those objects of a registry that fit."""

    def __init__(self, registry: Registry[Kind], fits: Callable[[Kind], bool]) -> None:
        self._registry = registry
        self._fits = fits

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._registry and self._fits(self._registry[name])

    def __iter__(self) -> Iterator[str]:
        return (name for name, item in self._registry.items() if self._fits(item))

    def __len__(self) -> int:
        return sum(1 for _ in self)

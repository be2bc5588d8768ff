"""THE list of methods: what users write, and what they are told of it in a few words.

A method is the object ``METHOD`` in the module of its name. It is imported when it is first used, so that the choices
of the command line cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from calibrant.core.registry import Registry

if TYPE_CHECKING:
    from calibrant.certificates.methods.base import CertificateMethod

Method = Literal["adaptive", "exact", "normal", "hoeffding", "paper"]

_LISTED: Mapping[Method, str] = {
    "adaptive": "at every number of rows",
    "exact": "sharper, for these forecasts issued again",
    "normal": "for many rows only",
    "hoeffding": "wide",
    "paper": "very wide",
}


def _load(name: str) -> CertificateMethod:
    found: CertificateMethod = import_module(f"calibrant.certificates.methods.{name}").METHOD
    return found


METHODS: Registry[CertificateMethod] = Registry(_LISTED, _load)

POPULATION_METHODS = METHODS.where(lambda method: method.target == "population")
"""Those whose limits speak of rows to come."""

BRACKETED_METHODS = METHODS.where(lambda method: method.from_cells)
"""Those whose upper limit totals per cell contain between two ends."""

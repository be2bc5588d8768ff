"""What is wrong with the rows of a table, in one sentence: how many, which one for example, and what to do."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.voices import Argument, Phrase, joined
from calibrant.core.words import counted, shown
from calibrant.engines.formats import TableError
from calibrant.engines.statements import FAULTS, Engine, Roles, example_statement, faults_statement
from calibrant.rows.arrays import MISSING_REMEDY
from calibrant.rows.checks import LABEL_REMEDY, OUTCOME_REMEDY, WEIGHT_REMEDY, forecast_remedy

_NAMES = {"y_prob": "p", "y_true": "y", "sample_weight": "w"}
_WORDS = {"unread": "text", "missing": "missing", "broken": "out of range"}


def refuse_rows(engine: Engine, roles: Roles) -> NoReturn:
    """Raise the error that rows which break a rule deserve."""
    counts = {name: values[0] for name, values in engine.run(faults_statement(engine, roles)).items()}
    total = int(counts["n"])
    found = [
        (role, fault, int(counts[f"{name}_{fault}"]))
        for role, name in _NAMES.items()
        for fault in FAULTS
        if f"{name}_{fault}" in counts
    ]
    found = [(role, fault, count) for role, fault, count in found if count]
    if not found:
        raise TableError("changed while it was read", table=engine.name, remedy="ask again when nobody writes to it")
    role, fault, count = found[0]
    name = _NAMES[role]
    example = engine.run(example_statement(engine, roles, role, fault))
    place = engine.row_said(int(example["row_position"][0])) if "row_position" in example else "one of them"
    facts: dict[str, Any] = {"argument": role, "column": roles.listed()[role], "source": engine.name}
    if fault == "unread":
        raise _unread(str(example[f"{name}_text"][0]), place, count, facts)
    row = _row_said(roles, example)
    if fault == "missing":
        value, what, remedy = None, "missing", MISSING_REMEDY
    else:
        value = float(example[name][0])
        low, high = float(counts[f"{name}_low"]), float(counts[f"{name}_high"])
        what, remedy = _broken(role, value, low, high)
    others = (
        Phrase(
            "; {also} is {fault} in {rows}",
            also=Argument(also, column=roles.listed()[also]),
            fault=_WORDS[also_fault],
            rows=counted(many, "row"),
        )
        for also, also_fault, many in found[1:]
    )
    finding = f"is {what} in {count:,} of {counted(total, 'row')}, for example in {place}, {row}"
    raise InputError(joined("", (finding, *others)), value=value, remedy=remedy, **facts)


def _unread(text: str, place: str, count: int, facts: dict[str, Any]) -> InputError:
    """Say that a text is no number, and for outcomes that it may be a label."""
    if facts["argument"] == "y_true":
        remedy = Phrase("{how} (the first is {text!r} in {place})", how=LABEL_REMEDY, text=text, place=place)
        return InputError("is of type text, labels and not numbers", value=text, remedy=remedy, **facts)
    also = f" (and text in {count - 1:,} more)" if count > 1 else ""
    finding = f"is {text!r} in {place}{also}, text where a number is needed"
    return InputError(finding, value=text, remedy=text_remedy(text), **facts)


def text_remedy(text: str) -> str:
    """Say what to do about a text that is no number."""
    comma = ", with a decimal point" if re.fullmatch(r"-?\d*,\d+", text) else ""
    percent = ": divide percentages by 100" if text.endswith("%") else ""
    return f"write numbers{comma}{percent}, or choose another column"


def _broken(role: str, value: float, low: float, high: float) -> tuple[str, str]:
    if math.isinf(value):
        return "infinite", "every value must be finite"
    if role == "y_prob":
        return "outside [0, 1]", forecast_remedy(low, high)
    return ("outside [0, 1]", OUTCOME_REMEDY) if role == "y_true" else ("negative", WEIGHT_REMEDY)


def _row_said(roles: Roles, example: Mapping[str, npt.NDArray[Any]]) -> str:
    """Show the row: what its columns hold."""
    shown_row = [
        f"{roles.listed()[role]} = {_value_said(example[name])}" for role, name in _NAMES.items() if name in example
    ]
    return f"where {', '.join(shown_row)}"


def _value_said(values: npt.NDArray[Any]) -> str:
    value = values[0]
    if value is None or value is np.ma.masked or math.isnan(value):
        return "missing"
    return shown(value)

"""Names of periods, and the rows of those that are still open."""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.voices import Either, Option, Phrase
from calibrant.core.words import printable
from calibrant.monitors.families import LEAST_BITS
from calibrant.rows.cells import DEFAULT_BITS, Cells
from calibrant.rows.labels import check_order

PeriodLabel = int | str

LONGEST_NAME = 200
"""Names of periods are repeated in what is kept of each."""

_FOLLOWED = re.compile(r"\d{4}-\d{2}(-\d{2}(T\d{2})?)?")
"""How months, days and hours are named, which others follow."""

_UNORDERED = re.compile(r"\D+|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b.*")
"""Texts that do not sort as time goes by: names, as of months, and dates that begin with the day or the month."""

_FEW_ROWS = 20
"""Batches of fewer rows may well hold the same numbers twice."""

_ONCE = Phrase(
    "leave it out{how}", how=Either("; if they are other rows, give each batch a name of its own with batch=")
)
"""What to do with rows that seem to come twice."""

MOST_REMEMBERED = 100
"""Batches without a period of which the last ones are told from new ones."""


def period_label(value: Any) -> PeriodLabel:
    """Return the name of a period as a whole number or a text; dates as in 2026-01-31."""
    plain = value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value
    if isinstance(plain, np.datetime64):
        return _date_only(str(plain)) if not np.isnat(plain) else _bad(value)
    if isinstance(plain, (dt.datetime, dt.date)):
        return _date_only(plain.isoformat()) if plain == plain else _bad(value)
    if isinstance(plain, int) and not isinstance(plain, bool):
        return plain if abs(plain) < 2**63 else _bad("a huge number")
    if not isinstance(plain, str) or plain == "":
        return _bad(value)
    return _date_only(plain) if len(plain) <= LONGEST_NAME else _bad(f"{plain[:20]}...")


def _bad(value: Any) -> PeriodLabel:
    raise InputError(f"is {value!r}, which names no period", argument="period", remedy="pass a whole number or a date")


def _date_only(text: str) -> str:
    """Leave out a time of midnight, so that one day has one name; an hour, as in 2026-01-31T00, keeps its own."""
    day, _, time = text.replace(" ", "T").partition("T")
    return day if ":" in time and time.strip("0:.") == "" and len(day) == len("2026-01-31") else text


def due_after(period: PeriodLabel, maturity: int) -> PeriodLabel:
    """Return the period in which labels are due: so many later, counted in hours, days or months where it is one."""
    if maturity == 0:
        return period
    if isinstance(period, int):
        return period + maturity
    with contextlib.suppress(ValueError):
        if _FOLLOWED.fullmatch(period):
            return str(np.datetime64(period) + maturity)
    raise InputError(
        f"is {period!r}, of which no later period follows",
        argument="period",
        remedy=Phrase("with {maturity}, pass whole numbers or dates such as '2026-01-31'", maturity=Option("maturity")),
    )


def fingerprint(parts: Mapping[Any, Cells]) -> str | None:
    """Return what tells batches apart, whatever the order of their rows, part by part; None for few rows."""
    if sum(cells.row_total for cells in parts.values()) < _FEW_ROWS:
        return None
    found = hashlib.blake2b(digest_size=12)
    for name, cells in parts.items():
        found.update(f"{name!r} {len(cells)} ".encode())
        for column in (cells.index, cells.rows, cells.low, cells.high, cells.outcome):
            found.update(np.ascontiguousarray(column).tobytes())
    return found.hexdigest()


def on_grid(cells: Cells) -> Cells:
    """Return cells no finer than those of other rows; those too coarse to tell intervals apart are refused."""
    if cells.bits < LEAST_BITS:
        raise InputError(
            f"cells of a monitor are at most 2^-{LEAST_BITS} wide, these are 2^-{cells.bits}",
            remedy=f"make them with bits={DEFAULT_BITS}",
        )
    return cells.coarsened(DEFAULT_BITS)


@dataclass
class OpenPeriod:
    """The rows of a period to which more may come.

    Attributes
    ----------
    cells : Cells
        Their totals.
    batches : set of str
        Names or fingerprints of the batches that they came in.
    """

    cells: Cells | None = None
    batches: set[str] = field(default_factory=set)

    def joined(self, cells: Cells, period: PeriodLabel, batch: str | None) -> OpenPeriod:
        """Return the period with a batch more, which is taken once."""
        marked = self.marked({"": cells}, period, batch)
        marked.cells = cells if self.cells is None else self.cells + cells
        return marked

    def marked(self, parts: Mapping[Any, Cells], period: PeriodLabel, batch: str | None) -> OpenPeriod:
        """Return the period with the mark of a batch, refused if it is known, and the rows so far."""
        mark = fingerprint(parts) if batch is None else f"named {batch}" if batch else None
        if mark is not None and mark in self.batches:
            rows = sum(cells.row_total for cells in parts.values())
            alike = f"a batch of {rows:,} rows just like these"
            raise InputError(
                Phrase(
                    "{what} was added to period {period} before",
                    what=alike if batch is None else Either(f"the batch {batch!r}", alike),
                    period=printable(period),
                ),
                remedy=_ONCE,
            )
        return OpenPeriod(self.cells, self.batches if mark is None else {*self.batches, mark})


@dataclass
class Ledger:
    """The open periods, in any order, and the last one that was closed.

    Attributes
    ----------
    periods : dict
        The open periods.
    closed : int, str or None
        The last one that was closed.
    named : bool or None
        Whether periods were named by who passed the rows.
    recent : list of str
        Names or fingerprints of the last batches that are periods of their own.
    """

    periods: dict[PeriodLabel, OpenPeriod] = field(default_factory=dict)
    closed: PeriodLabel | None = None
    named: bool | None = None
    recent: list[str] = field(default_factory=list)

    def next_name(self) -> int:
        """Return the name of a period of its own for a batch without one."""
        if self.named:
            raise InputError(
                "is missing, although earlier rows came with it",
                argument="period",
                remedy="name it for all rows or none",
            )
        last = max([0, *(each for each in (*self.periods, self.closed) if isinstance(each, int))])
        return last + 1

    def check(self, periods: Collection[PeriodLabel], *, own: bool) -> None:
        """Refuse periods that were read, or whose place among the others and each other is unknown.

        ``own`` says that periods were not named by who passed the rows.
        """
        known = [each for each in (*self.periods, self.closed, *periods) if each is not None]
        for period in periods:
            if isinstance(known[0], str) != isinstance(period, str):
                raise InputError(
                    f"is {period!r}, and others are like {known[0]!r}: what comes first is unknown",
                    argument="period",
                    remedy="name all periods by numbers, or all by dates",
                )
            if own is self.named:
                raise InputError(
                    f"is {period!r}, although earlier rows came without",
                    argument="period",
                    remedy="name it for all rows or none",
                )
        if periods:
            in_order = sorted(set(known), key=_order)
            check_order(in_order, "period")
            odd = next((each for each in in_order if isinstance(each, str) and _UNORDERED.fullmatch(each)), None)
            if odd is not None and len(in_order) > 1:
                raise InputError(
                    f"{odd!r} is a text whose place among other periods nobody knows",
                    argument="period",
                    remedy="pass numbers, or dates such as '2026-01-31'",
                )
        for period in periods:
            if self.closed is not None and not is_after(period, self.closed):
                last = printable(self.closed)
                raise InputError(
                    f"period {printable(period)} was read and closed (the last one that was is {last})",
                    remedy="rows that come later would change what was said; pass rows of later periods",
                )

    def joined(
        self, batches: list[tuple[PeriodLabel, Cells]], batch: str | None, *, own: bool
    ) -> dict[PeriodLabel, OpenPeriod]:
        """Return the periods of batches of rows with these rows in them, after every check; nothing changes yet."""
        found: dict[PeriodLabel, OpenPeriod] = {}
        self.check([period for period, _ in batches], own=own)
        for period, cells in batches:
            found[period] = self.periods.get(period, OpenPeriod()).joined(cells, period, batch)
            if own and found[period].batches & set(self.recent):
                raise InputError(
                    f"a batch of {cells.row_total:,} rows just like these, or of the same name, was added before",
                    remedy=_ONCE,
                )
        return found

    def take(self, periods: dict[PeriodLabel, OpenPeriod], *, own: bool) -> None:
        """Put periods in the place of what was known of them."""
        if periods:
            self.named = not own
            self.periods.update(periods)
        if own:
            marks = [mark for rows in periods.values() for mark in sorted(rows.batches)]
            self.recent = [*self.recent, *marks][-MOST_REMEMBERED:]

    def join(self, other: Ledger) -> None:
        """Add the open periods of another ledger, none of whose batches is here already."""
        self.check(other.periods, own=not other.named)
        for period, rows in other.periods.items():
            mine = self.periods.get(period, OpenPeriod())
            if mine.batches & rows.batches:
                raise InputError(f"both monitors hold the same batch of rows in period {printable(period)}")
            cells = rows.cells if mine.cells is None else mine.cells if rows.cells is None else mine.cells + rows.cells
            self.periods[period] = OpenPeriod(cells, mine.batches | rows.batches)
        if self.named is None:
            self.named = other.named
        self.recent = [*self.recent, *other.recent][-MOST_REMEMBERED:]

    def in_order(self) -> list[PeriodLabel]:
        """Return the open periods, the first one first."""
        return sorted(self.periods, key=_order)

    def due(self, maturity: int) -> PeriodLabel | None:
        """Return the newest open period whose labels are due, if there is one."""
        periods = self.in_order()
        found = [each for each in periods if not is_after(due_after(each, maturity), periods[-1])]
        return found[-1] if found else None

    def close_next(self, through: PeriodLabel) -> tuple[PeriodLabel, OpenPeriod] | None:
        """Take out the first open period up to one; None when there is none."""
        first = next(iter(self.in_order()), None)
        if first is not None and isinstance(first, str) != isinstance(through, str):
            raise InputError(
                f"is {through!r}, and periods are like {first!r}",
                argument="through",
                remedy="name a period as they are",
            )
        if first is None or is_after(first, through):
            return None
        self.closed = first
        return first, self.periods.pop(first)


def is_after(one: Any, other: Any) -> bool:
    """Return whether a period comes after another."""
    return bool(one > other)


def _order(period: PeriodLabel) -> Any:
    return period

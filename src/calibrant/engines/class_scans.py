"""Forecasts of several classes that stay where they are: one scan for each question, each an ordinary one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.types import Label
from calibrant.core.voices import Option, Phrase
from calibrant.core.words import counted
from calibrant.engines.clustered import ClusteredScan
from calibrant.engines.faults import refuse_rows
from calibrant.engines.handles import MOST_GROUPS, GroupedScan, Handle, Scan
from calibrant.engines.questions import FORECAST, OUTCOME, ClassColumns, QuestionEngine
from calibrant.engines.statements import Engine, Roles, count_statement, is_missing_label
from calibrant.rows.asked import without_groups
from calibrant.rows.checks import check_choice, plain_label
from calibrant.rows.class_names import NamedClasses, name_classes
from calibrant.rows.classes import (
    DEFAULT,
    LABELS,
    QUESTIONS,
    empty_classes,
    never_on_top,
    pair_labels,
    pairs_of,
    small_classes,
    sorted_places,
    subset_labels,
    subsets_of,
)
from calibrant.rows.labels import listed_labels
from calibrant.rows.matrices import off_sum
from calibrant.rows.questions import Questions, QuestionSource

_KEPT = 16  # scans of questions, each of which keeps its first totals

Expression = tuple[str, str]


class ClassScan(Handle, QuestionSource):
    """Forecasts of several classes that stay where they are: pass it in place of ``y_true``.

    Made by `scan` with a list of columns of forecasts. The first question checks all rows; each question then is a scan
    of its own.

    Examples
    --------
    >>> import pyarrow
    >>> from calibrant import measure, scan
    >>> table = pyarrow.table({"fish": ["roach", "perch"], "p_perch": [0.25, 0.75], "p_roach": [0.75, 0.25]})
    >>> with scan(table, y_true="fish", y_prob=["p_perch", "p_roach"], questions="classwise") as rows:
    ...     measure(rows)["perch"].cutoff
    0.125
    """

    multilabel = False
    """Whether a row may have several labels."""

    def __init__(
        self,
        engine: Engine,
        roles: Roles,
        y_prob: Sequence[str],
        classes: Sequence[Any] | None,
        questions: str | None,
        pos_label: Any,
        limits: tuple[int, int],
    ) -> None:
        super().__init__(engine, roles, None, *limits)
        self.is_clustered = roles.cluster is not None
        self._y_prob = tuple(y_prob)
        self._classes = None if classes is None else list(classes)
        self._questions = questions
        self._event = pos_label
        self._made: dict[tuple[str, int], Any] = {}
        if any(is_missing_label(str(each)) for each in self._classes or ()):
            self._pos_label = ""  # whoever names a label such as NA means that text by it

    def asked(self, questions: str | None = None) -> Questions:
        """Return the questions, each column of which is a scan; others than at first if these are named."""
        wanted = self._questions if questions is None else questions
        kind = check_choice(DEFAULT if wanted is None else wanted, "questions", QUESTIONS)
        if wanted is None and len(self._y_prob) == 2:
            return self._event_question()
        if self._event is not None:
            raise InputError(
                f"names one event, and there are columns of {len(self._y_prob):,} classes",
                argument="pos_label",
                value=self._event,
                remedy="leave it out, or scan the column of that class alone",
            )
        labels, write, more = _FAMILIES[kind](self)
        found = self._family(kind, labels, write, more)
        single = kind == DEFAULT
        return replace(found, single=True) if single else without_groups(found, self._roles.by)

    @property
    def classes(self) -> tuple[Label, ...]:
        """The label of each column."""
        return self._named_classes.classes

    # --- Questions --------------------------------------------------------------------------------------------------

    def confidence(self) -> tuple[Sequence[Label], Callable[[int], Expression], tuple[str, ...]]:
        """Ask whether the top label is right."""
        return ("confidence",), lambda _: self._columns.of_top(), ()

    def classwise(self) -> tuple[Sequence[Label], Callable[[int], Expression], tuple[str, ...]]:
        """Ask whether a row is of each class."""
        means = np.array([float(self._checked[f"mean{place}"][0]) for place in range(len(self._y_prob))])
        most = np.maximum(self._counts / self._counts.sum(), means)
        return self.classes, self._columns.of_class, small_classes(most)

    def top_label(self) -> tuple[Sequence[Label], Callable[[int], Expression], tuple[str, ...]]:
        """Ask whether the top label is right where it is each class."""
        tops = self._run(self._columns.tops_statement())
        never = sum(int(values[0] or 0) == 0 for values in tops.values())
        return self.classes, self._columns.of_top_label, never_on_top(never, len(self._y_prob))

    def pairs(self) -> tuple[Sequence[Label], Callable[[int], Expression], tuple[str, ...]]:
        """Ask which of two classes it is."""
        pairs = pairs_of(len(self._y_prob))
        return pair_labels(self.classes), lambda place: self._columns.of_pair(*pairs[place]), ()

    def subsets(self) -> tuple[Sequence[Label], Callable[[int], Expression], tuple[str, ...]]:
        """Ask whether it is one of some classes."""
        chosen = subsets_of(len(self._y_prob))
        return subset_labels(self.classes), lambda place: self._columns.of_subset(chosen[place]), ()

    def _event_question(self) -> Questions:
        event = 1
        if self._event is not None:
            wanted = [place for place, label in enumerate(self.classes) if str(label) == str(plain_label(self._event))]
            if not wanted:
                raise InputError(
                    f"is {self._event!r}, which is not a class",
                    argument="pos_label",
                    value=self._event,
                    remedy=f"the classes are {listed_labels(self.classes)}",
                )
            event = wanted[0]
        found = self._family("event", (self.classes[event],), lambda _: self._columns.of_class(event), ())
        return replace(found, single=True, notes=())

    def _family(
        self, kind: str, labels: Sequence[Label], write: Callable[[int], Expression], more: tuple[str, ...]
    ) -> Questions:
        def make(place: int) -> Any:
            key = (kind, place)
            if key not in self._made:
                if len(self._made) >= _KEPT:
                    self._made.clear()
                self._made[key] = self._scan(*write(place), fractions=kind == "pairs")
            return self._made[key]

        rows = int(self._checked["n"][0])
        notes = (*empty_classes(self.classes, self._counts), *more)
        inside = _refuse_parts if kind == "top_label" else None
        return Questions(kind, tuple(labels), rows, make, notes=notes, inside=inside)

    def _scan(self, forecast: str, outcome: str, *, fractions: bool) -> Scan | GroupedScan:
        roles = self._roles
        others = [name for name in (roles.sample_weight, roles.by, roles.cluster) if name is not None]
        engine = QuestionEngine(
            self._engine, forecast, outcome, fractions=fractions, others=list(dict.fromkeys(others))
        )
        return self._opened(engine, replace(roles, y_true=OUTCOME, y_prob=FORECAST, made=True))

    def _opened(self, engine: Engine, roles: Roles) -> Scan | GroupedScan:
        kind = GroupedScan if roles.by is not None else Scan if roles.cluster is None else ClusteredScan
        found = kind(engine, roles, None, self.fetch_limit, self.tally_limit)
        found.count_with(self)
        return found

    # --- What is known of the rows ----------------------------------------------------------------------------------

    @cached_property
    def _texts(self) -> dict[Any, tuple[str, int]]:
        """The labels of the outcomes, how the engine writes them, and how many rows have them."""
        found = self._labels(self._roles.y_true)
        if len(found) > MOST_GROUPS:
            raise InputError(
                f"has more than {MOST_GROUPS:,} different labels",
                argument="y_true",
                column=self._roles.y_true,
                source=self._engine.name,
                remedy="choose the column of classes",
            )
        return {label: (text, self._label_counts[text]) for label, text in found}

    @cached_property
    def _named_classes(self) -> NamedClasses:
        written = self._engine.columns[self._roles.y_true] == "written"
        try:
            found = name_classes(self._y_prob, list(self._texts), self._classes, written=written)
        except InputError as error:
            raise error.among(source=self._engine.name) from error
        unknown = [label for label, meant in found.held.items() if meant not in found.classes]
        if unknown:
            raise InputError(
                f"holds {unknown[0]!r}, which is not one of the classes {listed_labels(found.classes)}",
                argument="y_true",
                value=unknown[0],
                column=self._roles.y_true,
                source=self._engine.name,
                remedy=Phrase("pass {classes} with the label of each column", classes=Option("classes")),
            )
        return found

    @cached_property
    def _counts(self) -> npt.NDArray[Any]:
        """How many rows each class has."""
        places = range(len(self._y_prob))
        return np.array([sum(self._texts[way][1] for way in self._named_classes.ways(place)) for place in places])

    @cached_property
    def _columns(self) -> ClassColumns:
        """The columns of the classes, as SQL."""
        named = self._named_classes
        ways = tuple(tuple(self._texts[way][0] for way in named.ways(place)) for place in range(len(self._y_prob)))
        order = tuple(sorted_places(named.classes))
        return ClassColumns(self._engine, self._roles.y_true, self._y_prob, ways, order)

    @cached_property
    def _checked(self) -> Mapping[str, npt.NDArray[Any]]:
        """What the scan found that checks all forecasts."""
        columns = self._columns
        found = self._run(columns.check_statement())
        if int(found["broken"][0] or 0):
            self._refuse_forecasts()
        if int(found["off"][0] or 0):
            example = self._run(columns.off_statement())
            place = self._engine.row_said(int(example["row_position"][0])) if "row_position" in example else "one row"
            rows = counted(int(found["n"][0]), "row")
            where = f" in {place}, one of {int(found['off'][0]):,} of {rows}"
            raise off_sum(float(example["total"][0]), len(self._y_prob), where, source=self._engine.name)
        return found

    def _refuse_forecasts(self) -> NoReturn:
        """Say what is wrong with the first column of forecasts in which something is."""
        event = tuple(text for text, _ in self._texts.values())
        plain = Roles(self._roles.y_true, self._y_prob[0], event=event)
        for column in self._y_prob:
            own = ClassColumns(self._engine, self._roles.y_true, (column,), (event,), (0,))
            if int(self._run(own.check_statement())["broken"][0]):
                refuse_rows(self._engine, replace(plain, y_prob=column))
        raise InputError("changed while it was read", source=self._engine.name, remedy="ask again")


class LabelScan(ClassScan):
    """Forecasts of several labels, of which a row may have any number; made by `scan` with ``multilabel``."""

    multilabel = True

    def __init__(
        self, engine: Engine, roles: Roles, y_true: Sequence[str], y_prob: Sequence[str], **asked: Any
    ) -> None:
        super().__init__(engine, roles, y_prob, **asked)
        self._y_true = tuple(y_true)

    def asked(self, questions: str | None = None) -> Questions:
        """Return the questions, one for each label."""
        wanted = self._questions if questions is None else questions
        if wanted not in (None, "classwise"):
            raise InputError(
                Phrase("{asked} needs rows of one class each", asked=Option("questions", wanted)),
                remedy=Phrase("leave out {multilabel}", multilabel=Option("multilabel", True)),
            )
        rows = int(self._run(count_statement(self._engine))["n"][0])
        labels = tuple(self._y_true if self._classes is None else map(plain_label, self._classes))

        def make(place: int) -> Any:
            return self._opened(
                self._engine, replace(self._roles, y_true=self._y_true[place], y_prob=self._y_prob[place])
            )

        return without_groups(Questions(LABELS, labels, rows, make), self._roles.by)


_FAMILIES: Mapping[str, Callable[[ClassScan], Any]] = {
    "confidence": ClassScan.confidence,
    "classwise": ClassScan.classwise,
    "top_label": ClassScan.top_label,
    "pairs": ClassScan.pairs,
    "subsets": ClassScan.subsets,
}


def _refuse_parts(place: int) -> NoReturn:
    del place
    raise InputError(
        "this needs the rows of each top label by themselves, and a scan answers about all rows",
        remedy="read the columns and pass arrays",
    )

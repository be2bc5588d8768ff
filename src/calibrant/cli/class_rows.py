"""Rows of a file with a column of forecasts for each of several classes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from calibrant.cli.columns import choose_columns
from calibrant.cli.inputs import STAR, ClassesAsked, Source, explained
from calibrant.cli.outputs import BadInput, working
from calibrant.core.words import printable

if TYPE_CHECKING:
    from calibrant.engines.class_scans import ClassScan
    from calibrant.engines.files import Table


def choose_classes(source: Source, table: Table) -> Source:
    """Fill in the columns of several classes that a pattern stands for, and the column of outcomes by its name.

    Where one column is meant after all, it is that of the forecasts of the event.
    """
    asked = source.asked
    assert asked is not None
    y_prob = _columns(table, asked.y_prob, "--y-prob")
    y_true = _columns(table, asked.y_true, "--y-true")
    if len(y_prob) == 1 and not asked.multilabel:
        if asked.y_prob != y_prob:
            raise BadInput(
                f"{table.name}: only column {y_prob[0]!r} is like {asked.y_prob[0]!r}; several classes take a column "
                "for each"
            )
        return replace(source, asked=None, y_prob=y_prob[0])
    found = choose_columns(
        replace(source, y_true=next(iter(y_true), source.y_true), y_prob=y_prob[0]), table, outcomes=True, models=y_prob
    )
    clash = next((name for name in y_true if name in y_prob), None)
    if clash is not None:
        raise BadInput(f"{table.name}: column {clash!r} is named for outcomes and for forecasts both")
    if asked.multilabel and len(y_true) != len(y_prob):
        raise BadInput(
            f"{table.name}: --y-true names {len(y_true):,} columns and --y-prob {len(y_prob):,}; name one of each for "
            "every label, in one order"
        )
    return replace(
        found,
        y_true=None if asked.multilabel else found.y_true,
        y_prob=None,
        asked=replace(asked, y_prob=y_prob, y_true=y_true),
    )


def _columns(table: Table, named: Sequence[str], option: str) -> tuple[str, ...]:
    """Return the columns that names and patterns stand for, each once."""
    found: list[str] = []
    for name in named:
        if STAR not in name or name in table.columns:
            table.check_column(name)
            alike = [name]
        else:
            pattern = re.compile(".*".join(map(re.escape, name.split(STAR))), re.DOTALL)
            alike = [column for column in table.columns if pattern.fullmatch(column)]
        if not alike:
            from calibrant.engines.formats import listed

            raise BadInput(f"{table.name}: {option} {name!r} fits no column; the columns are {listed(table.columns)}")
        twice = next((column for column in alike if column in found), None)
        if twice is not None:
            raise BadInput(f"column {twice!r} of {table.name} was named twice; name each class once")
        found += alike
    return tuple(found)


def kinds_of_classes(source: Source) -> dict[str, str]:
    """Return the columns that must have a value in every row, and of what kind."""
    asked = source.asked
    assert asked is not None
    kinds = dict.fromkeys((*asked.y_prob, *asked.y_true), "number")
    return kinds if source.y_true is None else {**kinds, source.y_true: _kind_of_labels(asked)}


def _kind_of_labels(asked: ClassesAsked) -> str:
    """Return how missing labels are told; whoever names a label such as NA means that text by it."""
    from calibrant.engines.statements import is_missing_label

    return "group" if any(map(is_missing_label, asked.classes or ())) else "class"


def facts_of_classes(source: Source) -> dict[str, Any]:
    """Return what a JSON document says about several classes."""
    asked = source.asked
    assert asked is not None
    return {
        "y_true": list(asked.y_true) if asked.multilabel else source.y_true,
        "y_prob": list(asked.y_prob),
        "questions": asked.questions,
        "multilabel": asked.multilabel,
    }


def asked_said(kind: str, labels: Sequence[Any], classes: Sequence[Any]) -> str:
    """Say which one question was asked of several classes."""
    if kind == "event":
        listed = " and ".join(map(printable, classes))
        return f"the event is {printable(labels[0])}, of the classes {listed} (--pos-label chooses)"
    return f"asked was the confidence in the top label, of {len(classes):,} classes (--questions asks others)"


@dataclass(frozen=True)
class ClassesRead:
    """Rows in memory, with a column of forecasts for each class.

    Attributes
    ----------
    source : Source
        With the columns that were taken.
    given : dict
        What the library is given, and which of its questions is asked.
    said : dict
        What a JSON document says about its input.
    by, cluster, suspect : array or None
        The group and the cluster of each row, and the label whose rows may depend on each other.
    """

    source: Source
    given: dict[str, Any]
    said: dict[str, Any]
    by: Any = None
    cluster: Any = None
    suspect: Any = None

    @property
    def data(self) -> dict[str, Any]:
        """The arguments under which the library takes rows, with their clusters where these were named."""
        return {**self.given, **({} if self.cluster is None else {"cluster": self.cluster})}

    @property
    def grouped(self) -> dict[str, Any]:
        """The same, with the groups."""
        return {**self.data, **({} if self.by is None else {"by": self.by})}

    @property
    def suspected(self) -> dict[str, Any]:
        """The rows of a single question, with the labels whose rows may depend on each other as clusters."""
        if self.suspect is None:
            return {}
        return {"y_true": single_question(self.source, **self.given), "cluster": self.suspect}

    def facts(self) -> dict[str, Any]:
        """Return what a JSON document says about its input."""
        return self.said


@dataclass(frozen=True)
class ClassesScanned:
    """Rows that stay in their file, which is open, with a column of forecasts for each class.

    Attributes
    ----------
    source : Source
        With the columns that were taken.
    scan : ClassScan
        The rows.
    suspects : callable or None
        Makes the same with the labels as clusters whose rows may depend on each other.
    said : dict
        What a JSON document says about its input, without what the first scan finds out.
    """

    source: Source
    scan: ClassScan
    suspects: Callable[[], ClassScan] | None
    said: dict[str, Any]

    @property
    def data(self) -> dict[str, Any]:
        """The arguments under which the library takes rows."""
        return {"y_true": self.scan}

    @property
    def grouped(self) -> dict[str, Any]:
        """The same: a scan knows its groups."""
        return self.data

    @property
    def suspected(self) -> dict[str, Any]:
        """The rows of a single question, with the labels whose rows may depend on each other as clusters."""
        return {} if self.suspects is None else {"y_true": single_question(self.source, self.suspects())}

    def facts(self) -> dict[str, Any]:
        """Return what a JSON document says about its input."""
        family = self.scan.asked()
        classes = family.labels if self.scan.multilabel else self.scan.classes
        notes = [*self.said["notes"], *([asked_said(family.kind, family.labels, classes)] if family.single else [])]
        return {**self.said, "rows": family.row_count, "notes": notes, "classes": list(classes)}


def single_question(source: Source, *given: Any, **asked: Any) -> Any:
    """Return the rows of the one question that was asked."""
    from calibrant.rows.asked import asked_of_classes

    names = ("y_prob", "classes", "questions", "multilabel", "sample_weight", "pos_label")
    defaults = {**dict.fromkeys(names), "multilabel": False}
    with explained(source):
        found = asked_of_classes(*given, **{**defaults, **asked})
    if found is None or not found.single:
        raise BadInput("--check-clusters looks at one question; ask for --questions confidence")
    return found.column(0)


def scan_classes(source: Source, table: Table, said: dict[str, Any], limits: Mapping[str, int]) -> ClassesScanned:
    """Leave the rows where they are, and ask about their columns of several classes."""
    from calibrant.cli.scans import WatchedEngine
    from calibrant.engines.columns import check_columns
    from calibrant.engines.scans import scan

    asked = source.asked
    assert asked is not None
    others = (source.weight, source.by, source.cluster, source.suspect)
    named = [*kinds_of_classes(source), *(name for name in others if name is not None)]
    numbers = [*asked.y_prob, *asked.y_true, *([] if source.weight is None else [source.weight])]
    check_columns(table, named, numbers=numbers)
    engine = WatchedEngine(table, quiet=source.quiet)

    settings: dict[str, Any] = {
        "y_true": list(asked.y_true) if asked.multilabel else source.y_true,
        "sample_weight": source.weight,
        "pos_label": source.pos_label,
        "classes": asked.classes,
        "questions": asked.questions,
        "multilabel": asked.multilabel,
        **limits,
    }

    def opened(by: str | None, cluster: str | None) -> ClassScan:
        return scan(engine, y_prob=asked.y_prob, by=by, cluster=cluster, **settings)

    with explained(source):
        whole = opened(source.by, source.cluster)
    suspects = None if source.suspect is None else lambda: opened(None, source.suspect)
    return ClassesScanned(source, whole, suspects, said)


def read_classes(source: Source, table: Table) -> tuple[dict[str, Any], tuple[Any, ...], dict[str, Any]]:
    """Return what the library is given, the class of each column, and all columns that were read."""
    import numpy as np

    from calibrant.engines.columns import read_columns
    from calibrant.rows.checks import check_forecasts

    asked = source.asked
    assert asked is not None
    others = [name for name in (source.by, source.weight, source.cluster, source.suspect) if name is not None]
    labels = [] if source.y_true is None else [source.y_true]
    texts = [name for name in (source.cluster, source.suspect) if name is not None]
    numbers = [*asked.y_prob, *asked.y_true, *([] if source.weight is None else [source.weight])]
    with working(f"reading {table.name}", quiet=source.quiet, connection=table.connection):
        values = read_columns(
            table,
            [*asked.y_prob, *asked.y_true, *labels, *others],
            numbers=numbers,
            classes=[*texts, *(labels if _kind_of_labels(asked) == "class" else [])],
        )
    rows = len(values[asked.y_prob[0]])
    forecasts = np.empty((rows, len(asked.y_prob)), order="F")
    for place, name in enumerate(asked.y_prob):
        with explained(replace(source, asked=None, y_prob=name), table):
            forecasts[:, place] = check_forecasts(values[name] if name in others else values.pop(name))
    given: dict[str, Any] = {"y_prob": forecasts, "questions": asked.questions, "multilabel": asked.multilabel}
    if source.weight is not None:
        given["sample_weight"] = values[source.weight]
    if asked.multilabel:
        given["y_true"] = np.stack([values[name].astype(np.float64) for name in asked.y_true], axis=1)
        labels = list(asked.classes or asked.y_true)
        return {**given, "classes": labels}, tuple(labels), values
    return _with_labels(source, table, given, values)


def _with_labels(
    source: Source, table: Table, given: dict[str, Any], values: dict[str, Any]
) -> tuple[dict[str, Any], tuple[Any, ...], dict[str, Any]]:
    import numpy as np

    from calibrant.rows.class_names import name_classes

    asked = source.asked
    assert asked is not None
    found = values[str(source.y_true)]
    distinct, places = np.unique(found.astype(str) if found.dtype.kind == "O" else found, return_inverse=True)
    with explained(source, table):
        named = name_classes(asked.y_prob, distinct.tolist(), asked.classes, written=table.is_text)
    classes = list(named.classes)
    held = np.array(list(named.held.values()))
    given |= {"y_true": held[places], "classes": classes}
    pos_label = source.pos_label
    if pos_label is not None:
        given["pos_label"] = next((each for each in classes if str(each) == pos_label), pos_label)
    return given, named.classes, values

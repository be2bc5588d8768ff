"""The door: whatever was passed in place of rows becomes a tally, or a source of rows, here and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike
from calibrant.rows.asked import event_question
from calibrant.rows.checks import Observations, check_labels, check_observations, check_weights, label_places
from calibrant.rows.clusters import ClusteredRows, ClusteredSource
from calibrant.rows.dimensions import laid_out
from calibrant.rows.given import given_tally, refuse_more
from calibrant.rows.groups import GroupedRows, GroupedSource, naming_group
from calibrant.rows.labels import reading_order
from calibrant.rows.matrices import shape_of
from calibrant.rows.memory import ArrayRows
from calibrant.rows.questions import QuestionSource
from calibrant.rows.refinement import Opened, whole_tally
from calibrant.rows.sources import FEW_ROWS, RowSource
from calibrant.rows.tally import Tally, Totals

RowsLike: TypeAlias = ArrayLike | Observations | Totals | RowSource | QuestionSource
"""What stands for rows: outcomes, beside forecasts; or on its own whatever holds both."""

GroupsLike: TypeAlias = GroupedSource | GroupedRows
"""Rows in groups, each judged by itself."""

SORT_BELOW_ROWS = FEW_ROWS
"""Below this many rows arrays are sorted at once."""


def as_source(
    y_true: Any, y_prob: Any = None, *, sample_weight: Any = None, pos_label: Any = None
) -> Tally | RowSource:
    """Return a tally for few rows, or a source of rows when adding them up by cell beats sorting them."""
    if isinstance(y_true, Totals):
        return given_tally(y_true, y_prob, sample_weight, pos_label)
    if not isinstance(y_true, np.ndarray) and isinstance(y_true, (RowSource, GroupedSource)):
        return given_source(y_true, y_prob, sample_weight, pos_label)
    if isinstance(y_true, GroupedRows):
        raise _in_groups()
    if isinstance(y_true, QuestionSource):
        return given_source(_one_question(y_true), y_prob, sample_weight, pos_label)
    return source_of(as_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label))


def as_clustered(
    y_true: Any,
    y_prob: Any = None,
    *,
    cluster: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> ClusteredSource:
    """Return rows with the cluster of each."""
    if are_clustered(y_true):
        refuse_more("source of rows", y_prob, sample_weight, pos_label)
        if cluster is not None:
            raise InputError(
                "was given together with rows that are in clusters already", argument="cluster", remedy="leave it out"
            )
        found: ClusteredSource = y_true
        return found
    if isinstance(y_true, Totals):
        raise InputError(
            "was given together with a tally, whose rows can no longer be told apart",
            argument="cluster",
            remedy="pass the arrays",
        )
    if not isinstance(y_true, np.ndarray) and isinstance(y_true, RowSource):
        raise InputError(
            "was given together with a source of rows",
            argument="cluster",
            remedy="name the clusters' column, as scan(..., cluster=...)",
        )
    given = laid_out(y_true, y_prob, sample_weight=sample_weight, cluster=cluster)
    rows = as_observations(
        given.y_true,
        given.y_prob,
        sample_weight=given.sample_weight,
        pos_label=pos_label,
        cluster=given.cluster,
    )
    return ClusteredRows.of(rows, given.cluster)


def are_clustered(rows: Any) -> bool:
    """Whether rows know their clusters already, as those of ``scan(..., cluster=...)`` do, or groups of such rows."""
    if isinstance(rows, GroupedRows):
        return are_clustered(rows.sources[0])
    if isinstance(rows, QuestionSource):
        return rows.is_clustered
    # Not by the protocol, which would ask a database how many clusters it has.
    return not isinstance(rows, (np.ndarray, Totals)) and callable(getattr(rows, "cluster_sums", None))


def as_tally(y_true: Any, y_prob: Any = None, *, sample_weight: Any = None, pos_label: Any = None) -> Tally:
    """Return the tally a measure works on: the one given, one built from arrays, or one of a source's rows."""
    # Arrays first: to ask whether something follows a protocol takes longer than to tally a few rows.
    if not isinstance(y_true, np.ndarray) and isinstance(
        y_true, (Totals, RowSource, GroupedSource, GroupedRows, QuestionSource)
    ):
        return whole_tally(as_source(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label))
    return Tally.from_observations(as_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label))


def as_observations(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    by: Any = None,
    cluster: Any = None,
    order: str | None = "(y_true, y_prob)",
) -> Observations:
    """Return rows as the gate lets them through; those that came through it before are not checked again."""
    if isinstance(y_true, Observations):
        refuse_more("set of checked rows", y_prob, sample_weight, pos_label)
        return y_true
    y_true, y_prob, sample_weight, by, cluster = laid_out(
        y_true, y_prob, sample_weight=sample_weight, by=by, cluster=cluster
    )
    columns = {"sample_weight": sample_weight, "by": by, "cluster": cluster}
    if shape_of(y_prob)[1:] == (2,):  # both columns of a binary model
        found: Observations = event_question(y_true, y_prob, pos_label=pos_label, **columns).column(0)
        return found
    return check_observations(y_true, y_prob, **columns, pos_label=pos_label, order=order)


def rows_to_fit(
    y_prob: Any, y_true: Any, *, sample_weight: Any, pos_label: Any, call: str, swapped: bool = False
) -> Tally | Observations:
    """Return what a map is fitted to by a call that takes forecasts first, or a summary in their place.

    ``swapped`` says that forecasts of nothing but 0 and 1 are no slip.
    """
    if isinstance(y_prob, (Totals, Observations)):
        if y_true is not None:
            held = "Tally" if isinstance(y_prob, Totals) else "set of checked rows"
            problem = f"was given together with a {held}, which already holds it"
            raise InputError(problem, argument="y_true", remedy=f"pass the {held} alone")
        if isinstance(y_prob, Totals):
            return given_tally(y_prob, None, sample_weight, pos_label)
        return as_observations(y_prob, None, sample_weight=sample_weight, pos_label=pos_label)
    if y_true is None:
        remedy = f"pass forecasts and outcomes, as in {call}(y_prob, y_true), or a Tally"
        raise InputError("is missing", argument="y_true", remedy=remedy, joint=": ")
    order = None if swapped else f"{call}(y_prob, y_true)"
    return as_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, order=order)


def given_source(
    source: RowSource | GroupedSource, y_prob: Any = None, sample_weight: Any = None, pos_label: Any = None
) -> Tally | Opened:
    """Return a source passed in place of arrays after its first scan, as a tally if it has few rows."""
    refuse_more("source of rows", y_prob, sample_weight, pos_label)
    if isinstance(source, GroupedSource):
        raise _in_groups()
    rows = source if isinstance(source, Opened) else Opened(source)
    table = rows.start()
    if table.row_total >= SORT_BELOW_ROWS:
        return rows
    if table.counted or table.row_total > rows.tally_limit:
        return whole_tally(rows)
    return rows.open_all()  # totals of fractions or weighted rows could not be split any more


def _one_question(rows: QuestionSource) -> RowSource:
    """Return the rows of the only question that was asked of several classes."""
    family = rows.asked()
    if not family.single:
        raise InputError(
            f"this source holds {len(family):,} questions",
            remedy="pass it to measure, certify, confidence_interval or calibration_test, or scan one class alone",
        )
    found: RowSource = family.column(0)
    return found


def _in_groups() -> InputError:
    remedy = "pass it to measure or certify, or any function of one group through by_group"
    return InputError("this source holds rows in groups", remedy=remedy)


@frames_follow
def in_groups(
    y_true: Any,
    y_prob: Any = None,
    *,
    by: Any = None,
    cluster: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> GroupedSource | GroupedRows:
    """Return rows in groups, each of which any function takes through `by_group`.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `certify`; or, on its own, what is in groups already, such as ``scan(..., by=...)``.
    by : array-like of shape (n,)
        A group per row.
    cluster : array-like of shape (n,), optional
        A cluster per row, which may have rows in several groups.

    Returns
    -------
    GroupedRows or GroupedSource
        The groups, and the rows of each: rows in memory, or those of a scan that stay where they are.

    Examples
    --------
    >>> from calibrant import cutoff_calibration_error
    >>> from calibrant.rows import by_group, in_groups
    >>> flights = in_groups([0, 1, 1, 1], [0.25, 0.5, 0.75, 1.0], by=["A", "A", "B", "B"])
    >>> flights.groups, by_group(flights, cutoff_calibration_error)
    (('A', 'B'), (0.25, 0.125))
    """
    if isinstance(y_true, (GroupedSource, GroupedRows)):
        refuse_more("source of rows in groups", y_prob, sample_weight, pos_label)
        if by is not None:
            raise InputError(
                "was given together with rows that are in groups already", argument="by", remedy="leave it out"
            )
        if cluster is not None:
            raise InputError(
                "was given together with rows that are in groups already",
                argument="cluster",
                remedy="pass arrays, with by and cluster both",
            )
        return y_true
    if isinstance(y_true, Totals):
        raise InputError(
            "was given together with a tally, whose rows can no longer be grouped",
            argument="by",
            remedy="pass the arrays",
        )
    if isinstance(y_true, RowSource):
        raise InputError(
            "was given together with a source of rows",
            argument="by",
            remedy="name the groups' column, as scan(..., by=...)",
        )
    if by is None:
        raise InputError("is missing: pass a group per row", argument="by")
    y_true, y_prob, sample_weight, by, cluster = laid_out(
        y_true, y_prob, sample_weight=sample_weight, by=by, cluster=cluster
    )
    rows = as_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, by=by, cluster=cluster)
    of_clusters = None if cluster is None else label_places(cluster, "cluster", rows.y_prob.size)
    labels, members = check_labels(by, "by", rows.y_prob.size)
    order = reading_order(labels)
    sources = []
    for label, positions in ((labels[place], members[place]) for place in order):
        with naming_group(label):
            those = rows.take(positions).alone()
            check_weights(those.sample_weight, positions.size)
            if of_clusters is None:
                sources.append(source_of(those))
            else:
                sources.append(ClusteredRows.at(those, of_clusters[1][positions], of_clusters[0]))
    return GroupedRows(tuple(labels[place] for place in order), tuple(sources))


def source_of(rows: Observations | RowSource) -> Tally | RowSource:
    """Return checked rows in the form that gives the quickest exact answers; rows of weight zero are left out."""
    if not isinstance(rows, Observations):
        return given_source(rows)
    rows = rows.that_count()
    return Tally.from_observations(rows) if rows.y_prob.size < SORT_BELOW_ROWS else ArrayRows(rows)


def few_in_memory(rows: ClusteredSource) -> ClusteredSource:
    """Return rows in clusters, in memory if they are few."""
    if isinstance(rows, ClusteredRows) or Opened(rows).start().row_total >= SORT_BELOW_ROWS:
        return rows
    return ClusteredRows(*rows.fetch_clusters(np.array([0.0]), np.array([1.0])))


def rows_of_clusters(rows: ClusteredSource) -> Tally | RowSource:
    """Return rows in clusters as a source of rows alone."""
    return source_of(rows.observations) if isinstance(rows, ClusteredRows) else given_source(rows)


def with_unit_weights(source: Tally | RowSource) -> Tally | Opened:
    """Return a source with weights of 1 where all weights are equal: a guarantee cannot depend on their size."""
    if isinstance(source, Tally):
        return source.with_unit_weights()
    if isinstance(source, Opened):
        return source.with_unit_weights()
    if isinstance(source, ArrayRows) and source.observations.sample_weight is not None:
        weight = source.observations.sample_weight
        if weight.min() == weight.max():
            source = ArrayRows(replace(source.observations, sample_weight=None))
    return Opened(source)

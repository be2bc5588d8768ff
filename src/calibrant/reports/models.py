"""The models of a report: their rows, with groups and clusters where there are any, and what tells data sets apart."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.types import IntArray
from calibrant.core.voices import Phrase
from calibrant.rows.checks import Observations, check_codes, check_labels, check_same_index, label_places
from calibrant.rows.clusters import ClusteredRows, ClusteredSource
from calibrant.rows.groups import GroupedSource, by_group
from calibrant.rows.intake import are_clustered, as_clustered, as_observations, as_source, as_tally, rows_of_clusters
from calibrant.rows.named import SUMMARIES, check_named, check_summaries
from calibrant.rows.paired import PairedColumns
from calibrant.rows.refinement import TooManyForecastsError, some_table, whole_tally
from calibrant.rows.runs import stable_order
from calibrant.rows.sources import TALLY_LIMIT, RowSource
from calibrant.rows.tally import Tally

ONE_MODEL = "model"
"""What a model is called when it is the only one and has no name."""

MOST_PERIODS = 5_000
"""Each period is read by itself, which takes its time."""


@dataclass(frozen=True)
class Periods:
    """The rows of a model with the period of each.

    ``labels`` are the distinct names of periods, in order, and ``place`` is the place of the period of each row among
    them.
    """

    rows: Observations
    labels: npt.NDArray[Any]
    place: IntArray


@dataclass(frozen=True)
class Model:
    """One model's forecasts and outcomes, in an order that depends on nothing but their content.

    ``tally`` is None, and ``refusal`` the reason, where the distinct forecasts are too many to hold. ``rows`` and
    ``labels`` (the group of each row) are None without groups. ``groups`` are the rows of a source in groups.
    ``clusters`` are the rows with the cluster of each, and ``codes`` its number where there are groups, too.
    ``weighted`` says that rows in clusters have weights of their own. ``periods`` are the rows with the period of each,
    where these were named, and ``featured`` the rows as they were given with their features.
    """

    name: str
    data: Tally | RowSource
    tally: Tally | None
    refusal: str = ""
    rows: Observations | None = None
    labels: npt.NDArray[Any] | None = None
    groups: GroupedSource | None = None
    clusters: ClusteredSource | None = None
    codes: IntArray | None = None
    weighted: bool = False
    periods: Periods | None = None
    featured: tuple[Observations, Any] | None = None

    @classmethod
    def of(cls, name: str, data: Tally | RowSource, groups: GroupedSource | None = None) -> Model:
        """Tell the distinct forecasts of a source apart, if they can be."""
        try:
            tally = whole_tally(data)
        except TooManyForecastsError as refusal:
            return cls(name, data, None, refusal.phrase, groups=groups)
        if tally.unit_weights and tally.binary_outcomes:  # sums made elsewhere, or of parts, may round otherwise
            tally = Tally.from_counts(tally.forecast, tally.rows, tally.events)
        return cls(name, tally, tally, groups=groups)

    @classmethod
    def of_clusters(cls, name: str, clusters: ClusteredSource, target: str, **grouped: Any) -> Model:
        """Return rows in clusters with the weights by which they count, if there are few enough to look at each."""
        table = some_table(rows_of_clusters(clusters))
        weighted = not table.unit_weights
        most = getattr(clusters, "tally_limit", TALLY_LIMIT)
        if not isinstance(clusters, ClusteredRows) and table.row_total <= most:
            rows, codes = clusters.fetch_clusters(np.array([0.0]), np.array([1.0]))
            order = _order_of(rows, codes)
            clusters = ClusteredRows(rows.take(order), codes[order])
        data = rows_of_clusters(clusters.once_each() if target == "clusters" else clusters)
        if isinstance(clusters, ClusteredRows):
            tally = whole_tally(data)
            return cls(name, tally, tally, clusters=clusters, weighted=weighted, **grouped)
        refusal = (
            f"rows in clusters are looked at one by one for it, and there are {table.row_total:,}, more than the "
            f"{most:,} that memory is meant for"
        )
        return cls(name, data, None, refusal, clusters=clusters, weighted=weighted, **grouped)

    @property
    def judged(self) -> Any:
        """What limits are found from."""
        return self.data if self.clusters is None else self.clusters

    @property
    def drawn(self) -> Tally | ClusteredRows | None:
        """What plots are drawn from; None where there is too much of it."""
        return self.clusters if isinstance(self.clusters, ClusteredRows) else self.tally


def any_clusters(y_true: Any, cluster: Any) -> bool:
    """Whether rows are in clusters; those of several models all are, or none."""
    if isinstance(y_true, PairedColumns):
        return y_true.cluster is not None
    held = list(y_true.values()) if isinstance(y_true, Mapping) else [y_true]
    found = [are_clustered(each) for each in held]
    if any(found) and not all(found):
        raise InputError(
            "holds rows in clusters for some models and without for others",
            argument="y_true",
            remedy="pass the rows of every model with their clusters",
        )
    return cluster is not None or any(found)


def find_models(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any,
    pos_label: Any,
    by: Any,
    cluster: Any,
    cluster_target: str,
    period: Any,
    name: str,
    features: Any = None,
) -> tuple[list[Model], PairedColumns | None]:
    """Return the models from whatever was passed as outcomes and forecasts, and their rows if they have the same."""
    given = {"sample_weight": sample_weight, "pos_label": pos_label}
    checked = PairedColumns({name: y_true}, cluster) if isinstance(y_true, Observations) else y_true
    if isinstance(checked, PairedColumns):
        named = check_named(dict(checked.columns), "y_true")
        held = {each: as_observations(rows, y_prob, **given) for each, rows in named.items()}
        return _models_of_rows(PairedColumns(held, checked.cluster), by, cluster_target, period, features)
    if isinstance(y_true, (Mapping, *SUMMARIES)):
        if features is not None:
            raise InputError(
                "was given together with a Tally or a source of rows, whose rows have no features",
                argument="features",
                remedy="pass the arrays, with the features of each row",
            )
        if period is not None:
            raise InputError(
                "was given together with a Tally or a source of rows, whose rows have no order in time",
                argument="period",
                remedy="pass the arrays, with the period of each row",
            )
        sources = check_summaries(y_true) if isinstance(y_true, Mapping) else {name: y_true}
        groups = by if isinstance(by, Mapping) else {} if by is None else {name: by}
        if any_clusters(y_true, cluster):
            if groups:
                raise _no_groups_of_clusters()
            found = {each: as_clustered(rows, y_prob, cluster=cluster, **given) for each, rows in sources.items()}
            return [Model.of_clusters(each, rows, cluster_target) for each, rows in found.items()], None
        if not all(isinstance(each, GroupedSource) for each in groups.values()):
            raise InputError(
                "was given together with a Tally, whose rows can no longer be grouped",
                argument="by",
                remedy="pass the arrays (or, for a source of rows, the same rows in groups, as scan(..., by=...) "
                "gives them)",
            )
        models = [Model.of(each, as_source(rows, y_prob, **given), groups.get(each)) for each, rows in sources.items()]
        return models, None
    forecasts = check_named(y_prob, "y_prob") if isinstance(y_prob, Mapping) else {name: y_prob}
    arguments = {
        f"y_prob[{each!r}]" if isinstance(y_prob, Mapping) else "y_prob": column for each, column in forecasts.items()
    }
    check_same_index(y_true=y_true, **arguments, sample_weight=sample_weight, by=by, cluster=cluster, period=period)
    held = {each: as_observations(y_true, column, **given) for each, column in forecasts.items()}
    return _models_of_rows(PairedColumns(held, cluster), by, cluster_target, period, features)


def fingerprint_of(model: Model, tally: Tally) -> str:
    """Return the fingerprint of the tally, with groups and clusters one of who is in which (docs/how-to/report.md)."""
    found = tally.fingerprint
    if isinstance(model.clusters, ClusteredRows):
        rows = model.clusters.observations
        digest = hashlib.sha256(b"calibrant clusters 1" + bytes.fromhex(found))
        for values in (rows.y_prob, rows.y_true, rows.sample_weight):
            digest.update(b"" if values is None else values.astype("<f8").tobytes())
        digest.update(model.clusters.codes.astype("<i8").tobytes())
        found = digest.hexdigest()
    if model.periods is not None:
        periods = model.periods
        parts = np.split(stable_order(periods.place), np.cumsum(np.bincount(periods.place))[:-1])
        prints = tuple(Tally.from_observations(periods.rows.take(part)).fingerprint for part in parts)
        found = _fingerprint_of_parts(
            b"calibrant periods 1", found, list(zip(periods.labels.tolist(), prints, strict=True))
        )
    named: list[tuple[Any, str]] = []
    if model.groups is not None:
        prints = by_group(model.groups, lambda rows: as_tally(rows).fingerprint)
        named = list(zip(model.groups.groups, prints, strict=True))
    elif model.rows is not None and model.labels is not None:
        labels, members = check_labels(model.labels, "by", model.labels.size)
        prints = tuple(Tally.from_observations(model.rows.take(positions)).fingerprint for positions in members)
        named = list(zip(labels, prints, strict=True))
    return _fingerprint_of_parts(b"calibrant groups 1", found, named) if named else found


def _fingerprint_of_parts(kind: bytes, whole: str, named: list[tuple[Any, str]]) -> str:
    """Return the fingerprint of rows and of their parts, each with its name."""
    digest = hashlib.sha256(kind + bytes.fromhex(whole))
    for name, each in sorted((str(label), each) for label, each in named):
        written = name.encode("utf-8", "surrogatepass")
        digest.update(len(written).to_bytes(8, "little") + written + bytes.fromhex(each))
    return digest.hexdigest()


def _models_of_rows(
    held: PairedColumns, by: Any, target: str, period: Any, features: Any
) -> tuple[list[Model], PairedColumns]:
    parts = {"by": by, "cluster": held.cluster, "target": target}
    models = [_model_of_rows(each, rows, **parts) for each, rows in held.columns.items()]
    if features is not None:
        given = zip(models, held.columns.values(), strict=True)
        models = [replace(model, featured=(rows, features)) for model, rows in given]
    if period is None:
        return models, held
    pairs = zip(models, held.columns.values(), strict=True)
    return [replace(model, periods=_in_periods(rows, period)) for model, rows in pairs], held


def _in_periods(rows: Observations, period: Any) -> Periods:
    labels, place = label_places(period, "period", rows.y_prob.size)
    if labels.size > MOST_PERIODS:
        raise InputError(
            f"has {labels.size:,} different values, more than the {MOST_PERIODS:,} periods that are read one by one",
            argument="period",
            remedy="take longer periods, such as days",
        )
    order = _order_of(rows, place)
    return Periods(rows.take(order), labels, place[order])


def _model_of_rows(name: str, rows: Observations, *, by: Any, cluster: Any, target: str) -> Model:
    if by is None and cluster is None:
        tally = Tally.from_observations(rows)
        return Model(name, tally, tally) if rows.sample_weight is None else Model.of(name, tally)
    codes = None if cluster is None else check_codes(cluster, "cluster", rows.y_prob.size)[0]
    labels = None if by is None else _labels_of(by, rows.y_prob.size)
    # Sums over groups and clusters depend on the order of the rows unless it is fixed.
    order = _order_of(rows, codes)
    rows = rows.take(order)
    grouped: dict[str, Any] = {} if labels is None else {"rows": rows, "labels": labels[order]}
    if codes is None:
        tally = Tally.from_observations(rows)
        return Model(name, tally, tally, **grouped)
    codes = codes[order]
    return Model.of_clusters(name, ClusteredRows.of(rows, codes), target, codes=codes, **grouped)


def _labels_of(by: Any, rows: int) -> npt.NDArray[Any]:
    distinct, members = check_labels(by, "by", rows)
    labels = np.empty(rows, dtype=object)
    for label, positions in zip(distinct, members, strict=True):
        labels[positions] = [label] * positions.size
    return labels


def _order_of(rows: Observations, codes: IntArray | None) -> IntArray:
    """Return the order of rows by what they hold, and by their cluster where there are any."""
    own = () if codes is None else (codes,)
    weight = () if rows.sample_weight is None else (rows.sample_weight,)
    return np.lexsort((*own, *weight, rows.y_true, rows.y_prob))


def _no_groups_of_clusters() -> InputError:
    return InputError(
        Phrase("was given together with a source of rows in clusters, whose groups it cannot judge"),
        argument="by",
        remedy="leave it out, or pass the arrays, with by and cluster both",
    )

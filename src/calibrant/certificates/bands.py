"""Risk bands: how far off the forecasts are within bands of them that were fixed beforehand.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, ClassVar, Literal, overload

import numpy as np

from calibrant.certificates.betting import adaptive_upper, mean_limits
from calibrant.certificates.cluster_bands import ClusteredBands
from calibrant.certificates.clusters import (
    FEW_CLUSTERS,
    ClusterQuestion,
    Clusters,
    ClusterTarget,
    check_clusters,
    clusters_of,
    one_row_each,
    open_clusters,
)
from calibrant.certificates.joint_levels import delta_of_each, level_of_each
from calibrant.certificates.methods.registry import METHODS
from calibrant.core.chernoff import chernoff_interval
from calibrant.core.errors import InputError
from calibrant.core.frames import frames_follow
from calibrant.core.results import UNIT, Result
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, IntArray, Label
from calibrant.core.voices import Phrase
from calibrant.core.words import counted, level_said, measured, percent, printable, rounded_down, rounded_up
from calibrant.measures.questions import OfQuestions
from calibrant.rows.asked import asked_of_classes
from calibrant.rows.checks import check_confidence, check_forecasts
from calibrant.rows.classes import FamilyAsked, QuestionsAsked, SingleAsked
from calibrant.rows.clusters import ClusteredSource
from calibrant.rows.intake import RowsLike, are_clustered, rows_of_clusters
from calibrant.rows.promised import as_clustered, as_tally, with_unit_weights
from calibrant.rows.questions import KINDS, Questions
from calibrant.rows.refinement import split_at_extremes
from calibrant.rows.tally import Tally

_WIDE = 0.1  # limits of a bias further apart than this say little of a band


@dataclass(frozen=True, eq=False)
class RiskBands(Result):
    """Bias per band of forecasts, with limits that hold for all bands together; arrays have one value per band.

    Attributes
    ----------
    low, high : array
        Borders: forecasts from ``low`` to below ``high`` (the last band includes 1).
    rows : array
        Rows in the band.
    share : array
        Their share of the weight.
    mean_forecast, observed_rate : array
        Weighted means in the band; NaN where it is empty.
    bias : array
        Observed rate minus mean forecast.
    lower, upper : array
        Limits for the population's bias, true for all bands together with ``confidence_level``.
    inherited : array
        Limits for the size of the bias that follow from the Cutoff error and the shares of the bands alone.
    cutoff_upper : float
        The upper limit of the Cutoff error behind it.
    confidence_level : float
        Of each of the two sets of limits.
    assumptions : tuple of str
        What the limits rest on.
    notes : tuple of str
        What to keep in mind for these data.
    clusters : Clusters or None
        What the clusters of the rows are, where they were named; None for independent rows.
    band_clusters : array or None
        How many clusters have rows in the band.
    """

    low: FloatArray
    high: FloatArray
    rows: IntArray
    share: FloatArray
    mean_forecast: FloatArray
    observed_rate: FloatArray
    bias: FloatArray
    lower: FloatArray
    upper: FloatArray
    inherited: FloatArray
    cutoff_upper: float
    confidence_level: float
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    clusters: Clusters | None = None
    band_clusters: IntArray | None = None

    _may_be_undefined: ClassVar = ("mean_forecast", "observed_rate", "bias")  # in a band without rows
    _ranges: ClassVar = {
        **dict.fromkeys(("low", "high", "share", "mean_forecast", "observed_rate"), UNIT),
        **dict.fromkeys(("inherited", "cutoff_upper", "confidence_level"), UNIT),
        **dict.fromkeys(("bias", "lower", "upper"), (-1.0, 1.0)),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if len({column.size for column in self._columns().values()}) > 1:
            self._refuse("rows", self.rows, "of another length than the other columns")
        self._check_order("lower", "upper")
        for name in self._may_be_undefined:
            lost = np.flatnonzero(np.isnan(getattr(self, name)) & (self.rows > 0))
            if lost.size:
                self._refuse(f"{name}[{lost[0]}]", math.nan, "though the band has rows")

    def frame(self, backend: Any = None) -> Any:
        """Return one row per band."""
        return self._framed(self._columns(), backend)

    def _columns(self) -> dict[str, Any]:
        listed = {field.name: getattr(self, field.name) for field in fields(self) if "Array" in str(field.type)}
        return {name: column for name, column in listed.items() if column is not None}

    def __str__(self) -> str:
        level = level_said(self.confidence_level)
        rows, whom, clusters = counted(int(self.rows.sum()), "row"), "the population", ""
        if self.clusters is not None:
            rows = f"{rows} in {counted(self.clusters.count, 'cluster')}"
            whom, clusters = f"{whom}{self.clusters.of_whom}", "  clusters"
        lines = [
            f"Bias of {whom} per band of forecasts; the limits hold for all {self.rows.size} bands together with "
            f"{level} confidence ({rows}).",
            f"This assumes that {'; '.join(self.assumptions)}.",
            *(f"Note: {note}" for note in self.notes),
            f"  forecasts            rows{clusters}   mean forecast  observed     bias     from       to  inherited",
        ]
        for k in range(self.rows.size):
            end = "]" if k == self.rows.size - 1 else ")"
            band = f"[{self.low[k]:g}, {self.high[k]:g}{end}"
            if self.rows[k] == 0:
                lines.append(f"  {band:<15} {0:>9}   no rows")
                continue
            held = "" if self.band_clusters is None else f" {self.band_clusters[k]:>9,}"
            lines.append(
                f"  {band:<15} {self.rows[k]:>9,}{held}  {percent(self.mean_forecast[k]):>14}  "
                f"{percent(self.observed_rate[k]):>8}  {self.bias[k]:+.4f}  {rounded_down(self.lower[k], sign='+')}  "
                f"{rounded_up(self.upper[k], sign='+')}  <= {rounded_up(self.inherited[k])}"
            )
        return "\n".join(lines)

    __repr__ = __str__


@dataclass(frozen=True)
class QuestionRiskBands(OfQuestions, Result):
    """Risk bands of each of several questions, with limits that hold for all bands of all questions together.

    Attributes
    ----------
    kind : str
        What the questions are.
    questions : tuple
        What tells them apart; those that are about no row are left out.
    bands : tuple of RiskBands
        Per question, of the rows that it is about.
    confidence_level : float
        With which all limits of the bias hold together, and so do all inherited ones.
    notes : tuple of str
        What to keep in mind about all of them.
    """

    kind: str
    questions: tuple[Label, ...]
    bands: tuple[RiskBands, ...]
    confidence_level: float
    notes: tuple[str, ...] = ()

    _parts: ClassVar = "bands"
    _ranges: ClassVar = {"confidence_level": UNIT}
    _words: ClassVar = {"kind": KINDS}

    def _estimates(self) -> tuple[float, ...]:
        return tuple(float(np.nanmax(np.abs(each.bias))) for each in self.bands)

    def frame(self, backend: Any = None) -> Any:
        """Return one row per question and band."""
        tables = [each._columns() for each in self.bands]
        names = [
            "low",
            "high",
            "rows",
            "share",
            "mean_forecast",
            "observed_rate",
            "bias",
            "lower",
            "upper",
            "inherited",
        ]
        label = [question for question, each in zip(self.questions, self.bands, strict=True) for _ in each.rows]
        return self._framed(
            {"question": label, **{name: np.concatenate([each[name] for each in tables]) for name in names}}, backend
        )

    def __str__(self) -> str:
        noun, level = self.described.noun, level_said(self.confidence_level)
        parts = [f"{noun} {printable(self.questions[place])}: {self.bands[place]}" for place in self.shown_places()]
        return "\n".join(
            [
                f"Bias per band of forecasts, for {self._count_said()}; all limits hold together with {level} "
                "confidence.",
                *self.promises(),
                *parts,
                *self._left_out(),
            ]
        )

    __repr__ = __str__


@overload
def risk_bands(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    cutoffs: ArrayLike,
    confidence_level: float = 0.95,
    classes: ArrayLike | None = None,
    questions: SingleAsked | None = None,
    multilabel: Literal[False] = False,
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> RiskBands: ...


@overload
def risk_bands(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    cutoffs: ArrayLike,
    confidence_level: float = 0.95,
    classes: ArrayLike | None = None,
    questions: FamilyAsked,
    multilabel: bool = False,
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    sample_weight: ArrayLike | None = None,
) -> QuestionRiskBands: ...


@overload
def risk_bands(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    cutoffs: ArrayLike,
    confidence_level: float = 0.95,
    classes: ArrayLike | None = None,
    questions: None = None,
    multilabel: Literal[True],
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    sample_weight: ArrayLike | None = None,
) -> QuestionRiskBands: ...


@frames_follow
def risk_bands(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    cutoffs: ArrayLike,
    confidence_level: float = 0.95,
    classes: ArrayLike | None = None,
    questions: QuestionsAsked | None = None,
    multilabel: bool = False,
    cluster: ArrayLike | None = None,
    cluster_target: ClusterTarget = "rows",
    max_cluster_size: float | None = None,
    serial: int = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> RiskBands | QuestionRiskBands:
    """Judge the forecasts band by band, for bands of forecasts fixed beforehand such as low, medium and high risk.

    Per band: rows, mean forecast, observed rate, and the bias (observed rate minus mean forecast) with limits that hold
    for all bands together. A second limit is what the bands inherit from the Cutoff error: |bias| is at most
    Cutoff / P(band) (section 2 of [1]_). Both speak of the population and hold at every number of rows.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `certify`.
    cutoffs : array-like
        Inner borders of the bands, increasing, without 0 and 1; a forecast equal to a border belongs to the band above.
    confidence_level : float
        With which all limits of the bias hold together, and so do all inherited ones.
    classes, questions, multilabel
        As in `cutoff_calibration_error`, for ``y_prob`` of shape (n, K). Several questions have bands each, and all
        their limits hold together; those of a top label speak of the rows on which it is on top.
    cluster, cluster_target, max_cluster_size, serial
        As in `certify`, for rows in clusters. The limits of a band then speak of clusters with as many rows in it as
        these have (or as large a share of theirs, where each cluster counts once), or of clusters of a population where
        ``max_cluster_size`` was stated, which takes many more.

    Returns
    -------
    RiskBands, or QuestionRiskBands
        One entry per band; where several questions are asked, the bands of each.

    Examples
    --------
    >>> from calibrant import Tally
    >>> tally = Tally.from_counts(forecast=[0.05, 0.3, 0.7], rows=[600, 300, 100], events=[31, 102, 71])
    >>> bands = risk_bands(tally, cutoffs=[0.1, 0.5])
    >>> bands.rows, bands.bias.round(4)
    (array([600, 300, 100]), array([0.0017, 0.04  , 0.01  ]))
    """
    level = check_confidence(confidence_level)
    borders = check_forecasts(cutoffs, name="cutoffs")
    if (np.diff(borders) <= 0.0).any():
        position = int(np.flatnonzero(np.diff(borders) <= 0.0)[0]) + 1
        raise InputError(
            f"is {borders[position]:g}, not above the one before",
            argument="cutoffs",
            position=position,
            value=borders[position],
            remedy="sort them",
        )
    if borders[0] == 0.0 or borders[-1] == 1.0:
        raise InputError("cutoffs are the inner borders of bands from 0 to 1", remedy="leave out 0 and 1 themselves")
    edges = np.concatenate([[0.0], borders, [1.0]])
    family = asked_of_classes(y_true, y_prob, classes, questions, multilabel, sample_weight, pos_label)
    clustered = (cluster_target, max_cluster_size, serial)
    if family is not None:
        return family.answered(
            lambda rows: _risk_bands(rows, None, edges, level, cluster, clustered, None, None),
            lambda several: _bands_of_each(several, edges, level, cluster, clustered),
        )
    return _risk_bands(y_true, y_prob, edges, level, cluster, clustered, sample_weight, pos_label)


def _risk_bands(
    y_true: Any,
    y_prob: Any,
    edges: FloatArray,
    level: float,
    cluster: Any,
    clustered: tuple[Any, ...],
    sample_weight: Any,
    pos_label: Any,
) -> RiskBands:
    """Return the bands of one column of forecasts."""
    question = check_clusters(cluster is not None or are_clustered(y_true), *clustered)
    if question is None:
        return _of_rows(as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label), edges, level)
    rows = question.rows(
        as_clustered(y_true, y_prob, cluster=cluster, sample_weight=sample_weight, pos_label=pos_label)
    )
    plain = rows_of_clusters(rows)
    if question.counts_rows and isinstance(plain, Tally) and rows.cluster_count == plain.row_total:
        return replace(_of_rows(plain, edges, level), notes=(one_row_each(plain.row_total),))
    return _of_clusters(question, rows, edges, level)


def _bands_of_each(
    family: Questions, edges: FloatArray, level: float, cluster: Any, clustered: tuple[Any, ...]
) -> QuestionRiskBands:
    """Return the bands of several questions, each of the rows that it is about."""
    each_level = level_of_each(level, len(family))
    labels, found = [], []
    for place, label in enumerate(family.labels):
        rows = family.own_rows(place)
        if rows.y_prob.size == 0:
            continue
        its = cluster if cluster is None or family.inside is None else np.asarray(cluster)[family.inside(place)]
        labels.append(label)
        found.append(_risk_bands(rows, None, edges, each_level, its, clustered, None, None))
    return QuestionRiskBands(family.kind, tuple(labels), tuple(found), level, family.notes)


def _of_rows(tally: Tally, edges: FloatArray, level: float) -> RiskBands:
    """Return the bands of independent rows."""
    tally = tally.with_unit_weights()
    ends = [0, *np.searchsorted(tally.forecast, edges[1:-1]).tolist(), len(tally)]
    bands = [tally.stretch(begin, end) for begin, end in pairwise(ends)]
    delta = 1.0 - level
    each_delta = delta_of_each(delta, 2 * len(bands))
    limits = np.array([mean_limits(band, each_delta) for band in bands])
    weight = np.array([band.weight_total for band in bands])
    share = weight / tally.weight_total
    upper = min(adaptive_upper(tally, tally, delta_of_each(delta, 2)), 1.0)
    # The population may have less of a band than the rows.
    counts = [chernoff_interval(each / tally.weight_max, each_delta)[0] for each in weight]
    least = np.array(counts) * tally.weight_max / tally.weight_total
    inside = np.where(weight > 0.0, weight, math.nan)
    mean_forecast = np.array([band.forecast_total() for band in bands]) / inside
    observed_rate = np.array([band.outcome_total for band in bands]) / inside
    return RiskBands(
        low=edges[:-1],
        high=edges[1:],
        rows=np.array([band.row_total for band in bands]),
        share=share,
        mean_forecast=mean_forecast,
        observed_rate=observed_rate,
        bias=observed_rate - mean_forecast,
        lower=limits[:, 0],
        upper=limits[:, 1],
        inherited=np.minimum(upper / np.maximum(least, 1e-300), 1.0),
        cutoff_upper=upper,
        confidence_level=level,
        assumptions=METHODS["adaptive"].assumptions(tally, parts="bands"),
    )


def _of_clusters(question: ClusterQuestion, source: ClusteredSource, edges: FloatArray, level: float) -> RiskBands:
    """Return the bands of rows in clusters."""
    limits = open_clusters(question, source)
    table = split_at_extremes(with_unit_weights(rows_of_clusters(limits.source)))
    bands = ClusteredBands.of(limits, edges)
    half = delta_of_each(1.0 - level, 2)
    each = delta_of_each(1.0 - level, 2 * bands.rows.size)
    upper = min(limits.bets(half), 1.0)
    clusters = clusters_of(question, limits, table, limits.least_limit(half))
    found = bands.bias_limits(each)
    weight = bands.weight.sum(axis=1)
    inside = np.where(weight > 0.0, weight, math.nan)
    bias, observed_rate = bands.residual.sum(axis=1) / inside, bands.outcome.sum(axis=1) / inside
    return RiskBands(
        low=edges[:-1],
        high=edges[1:],
        rows=bands.rows,
        share=weight / limits.total,
        mean_forecast=np.clip(observed_rate - bias, 0.0, 1.0),
        observed_rate=observed_rate,
        bias=bias,
        lower=found[:, 0],
        upper=found[:, 1],
        inherited=np.minimum(upper / np.maximum(bands.least_share(half), 1e-300), 1.0),
        cutoff_upper=upper,
        confidence_level=level,
        assumptions=METHODS["adaptive"].assumptions(table, parts="bands", clusters=clusters),
        notes=_few_clusters(bands, each),
        clusters=clusters,
        band_clusters=bands.clusters,
    )


def _few_clusters(bands: ClusteredBands, delta: float) -> tuple[str, ...]:
    """Say in which bands so few clusters have rows, or one so many, that limits are wide where all is as forecast."""
    least, last = bands.least_limits(delta), bands.rows.size - 1
    return tuple(
        Phrase(
            "in [{low:g}, {high:g}{end} there are {count}, too few or too unequal to say much: even if all were as "
            "forecast, a limit of the bias would be {least} away from 0",
            code=FEW_CLUSTERS,
            low=float(bands.edges[k]),
            high=float(bands.edges[k + 1]),
            end="]" if k == last else ")",
            count=counted(int(bands.clusters[k]), "cluster"),
            least=measured(float(least[k]), 2),
        )
        for k in np.flatnonzero(bands.rows).tolist()
        if least[k] > _WIDE
    )

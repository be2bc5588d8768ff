"""What a report says, computed through the library's own functions and free of any formatting.

Everything works from a `Tally`; rows are kept only where a tally cannot tell them apart (weights, fractions, groups). A
section that the data cannot support is left out and the reason recorded, so that the rest of the report stands.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

import calibrant
from calibrant.certificates import certify
from calibrant.decompositions import score_decomposition
from calibrant.overview import measure
from calibrant.results.certificates import Certificate, GroupCertificates
from calibrant.results.decompositions import ScoreDecomposition
from calibrant.results.measures import Measures
from calibrant.results.reports import DecisionTable, ModelSummary, Omission, RepairTrial, ReportSummary
from calibrant.risk_gaps import best_threshold, decision_guarantee, risk_gap_curve
from calibrant.risks import decision_risk, net_benefit
from calibrant.tally import Tally, Totals, as_tally
from calibrant.validation import FloatArray, Observations, check_labels, check_number, check_observations, check_rng

ONE_MODEL = "model"
"""What a model is called when it is the only one and has no name."""

FEWEST_FOR_REPAIR = 40
"""With fewer rows neither half says anything."""

GRID = 100
"""Thresholds are shown in steps of one in so many."""

_PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib")

Part = TypeVar("Part")
Map = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Source:
    """One model's forecasts and outcomes, in an order that depends on nothing but their content.

    ``rows`` and ``labels`` (the group of each row) are None where the tally says all that is needed.
    """

    name: str
    tally: Tally
    rows: Observations | None = None
    labels: npt.NDArray[Any] | None = None


@dataclass(frozen=True)
class Question:
    """What is asked of every model: fixed before any row is looked at."""

    max_error: float
    confidence_level: float
    method: str
    threshold: float
    seed: int

    @classmethod
    def checked(cls, *, max_error: Any, confidence_level: Any, method: str, threshold: Any, seed: Any) -> Question:
        """Check what `certify` does not check itself."""
        at = check_number(threshold, "threshold", low=0.0, high=1.0)
        if at in (0.0, 1.0):
            raise ValueError(f"threshold is {at:g}, where everybody or nobody is acted on; choose one between 0 and 1")
        if isinstance(seed, np.random.Generator) or seed is None:
            raise ValueError(f"seed must be a whole number, which the report can state, got {seed!r}")
        check_rng(seed)
        return cls(max_error, confidence_level, method, at, int(seed))


def find_sources(y_true: Any, y_prob: Any, *, sample_weight: Any, pos_label: Any, by: Any, name: str) -> list[Source]:
    """Return one source per model from whatever was passed as outcomes and forecasts."""
    if isinstance(y_true, (Totals, Mapping)):
        if by is not None:
            raise ValueError("by was given together with a Tally, whose rows can no longer be grouped; pass the arrays")
        tallies = _check_named(y_true, "y_true") if isinstance(y_true, Mapping) else {name: y_true}
        for model, tally in tallies.items():
            if not isinstance(tally, Totals):
                raise ValueError(
                    f"y_true[{model!r}] is a {type(tally).__name__}; a dict in place of the outcomes holds a Tally per "
                    "model, and forecasts of several models for the same outcomes go into a dict for y_prob"
                )
        return [
            Source(model, as_tally(tally, y_prob, sample_weight=sample_weight, pos_label=pos_label))
            for model, tally in tallies.items()
        ]
    forecasts = _check_named(y_prob, "y_prob") if isinstance(y_prob, Mapping) else {name: y_prob}
    return [
        _source_of_rows(model, check_observations(y_true, each, sample_weight=sample_weight, pos_label=pos_label), by)
        for model, each in forecasts.items()
    ]


def summarize(sources: list[Source], question: Question, *, title: str) -> ReportSummary:
    """Answer the question for every model, at levels that let one be chosen afterwards."""
    level = 1.0 - (1.0 - question.confidence_level) / len(sources) if len(sources) > 1 else question.confidence_level
    return ReportSummary(
        title=title,
        max_error=question.max_error,
        confidence_level=question.confidence_level,
        method=question.method,
        threshold=question.threshold,
        seed=question.seed,
        models=tuple(summarize_model(source, question, level) for source in sources),
        versions=_versions(),
    )


def summarize_model(source: Source, question: Question, level: float) -> ModelSummary:
    """Compute every section for one model, leaving out those that its data cannot support."""
    tally, omissions = source.tally, list[Omission]()

    def attempt(section: str, compute: Callable[[], Part]) -> Part | None:
        try:
            return compute()
        except ValueError as refusal:
            omissions.append(Omission(section, str(refusal)))
            return None

    certificate = judge(tally, question, level)
    measures: Measures | None = attempt("measures", lambda: measure(tally))
    score: ScoreDecomposition | None = attempt("score", lambda: score_decomposition(tally))
    decisions: DecisionTable | None = attempt("decisions", lambda: tabulate(tally, certificate, question.threshold))
    repair: RepairTrial | None = attempt("repair", lambda: try_repair(source, question, level))
    groups: GroupCertificates | None = None
    if source.rows is not None and source.labels is not None:
        groups = certify(
            source.rows.y_true,
            source.rows.y_prob,
            sample_weight=source.rows.sample_weight,
            by=source.labels,
            max_error=question.max_error,
            confidence_level=level,
            method=question.method,
            rng=question.seed,
        )
    return ModelSummary(
        name=source.name,
        rows=tally.row_total,
        distinct_forecasts=len(tally),
        weight_total=tally.weight_total,
        mean_forecast=tally.forecast_total() / tally.weight_total,
        mean_outcome=tally.outcome_total / tally.weight_total,
        fingerprint=fingerprint(tally),
        certificate=certificate,
        measures=measures,
        score=score,
        decisions=decisions,
        repair=repair,
        groups=groups,
        omissions=tuple(omissions),
    )


def judge(tally: Tally, question: Question, level: float) -> Certificate:
    """Return the verdict on one tally."""
    return certify(
        tally,
        max_error=question.max_error,
        confidence_level=level,
        method=question.method,
        rng=question.seed,
    )


def tabulate(tally: Tally, certificate: Certificate, threshold: float) -> DecisionTable:
    """Compute losses, savings and promises on a grid of thresholds that includes the one asked about."""
    grid: FloatArray = np.unique(np.append(np.arange(1, GRID) / GRID, threshold))
    risk = decision_risk(tally, threshold=grid)
    curve = risk_gap_curve(tally)
    promises = [decision_guarantee(certificate, at) for at in grid.tolist()]
    event_rate = risk.mean_outcome
    return DecisionTable(
        threshold=grid,
        acted=np.asarray(risk.acted),
        risk=np.asarray(risk.risk),
        false_positive=np.asarray(risk.false_positive),
        false_negative=np.asarray(risk.false_negative),
        constant_risk=np.minimum(grid * (1.0 - event_rate), (1.0 - grid) * event_rate),
        gap=np.asarray(curve.at(grid)),
        guarantee=np.array([promise.nondecreasing for promise in promises]),
        net_benefit=np.asarray(net_benefit(tally, threshold=grid).net_benefit),
        confidence_level=certificate.confidence_level,
        best=best_threshold(tally, threshold=threshold),
        assumptions=promises[0].assumptions,
    )


def try_repair(source: Source, question: Question, level: float) -> RepairTrial:
    """Fit a recalibrator to a random half of the rows and judge the other half before and after it."""
    from calibrant.guards import GuardedRecalibrator  # loads scikit-learn

    count = source.tally.row_total
    if count < FEWEST_FOR_REPAIR:
        raise ValueError(
            f"it takes at least {FEWEST_FOR_REPAIR} rows to learn from half of them, and there are {count}"
        )
    learned, held_out, moved = _halves(source, np.random.default_rng(question.seed))
    recalibrator = GuardedRecalibrator().fit(learned)
    tallies = held_out, moved(recalibrator.predict)
    before, after = (judge(tally, question, level) for tally in tallies)
    brier_before, brier_after = (float(tally.residual_square.sum()) / tally.weight_total for tally in tallies)
    return RepairTrial(
        recalibrator=type(recalibrator.recalibrator_).__name__,
        ladder=recalibrator.ladder_,
        fitted_rows=learned.row_total,
        judged_rows=held_out.row_total,
        before=before,
        after=after,
        brier_before=brier_before,
        brier_after=brier_after,
        seed=question.seed,
    )


def fingerprint(tally: Tally) -> str:
    """Return the SHA-256 of a tally: of its distinct forecasts, rows and outcome totals (see docs/report.md).

    Examples
    --------
    >>> one = Tally.from_arrays([0, 1, 1], [0.25, 0.5, 0.75])
    >>> fingerprint(one) == fingerprint(Tally.from_arrays([1, 1, 0], [0.75, 0.5, 0.25]))
    True
    >>> fingerprint(one) == fingerprint(Tally.from_arrays([1, 1, 1], [0.75, 0.5, 0.25]))
    False
    """
    digest = hashlib.sha256(b"calibrant tally 1")
    columns = [tally.forecast, tally.rows, tally.outcome]
    if not (tally.unit_weights and tally.binary_outcomes):
        columns += [tally.weight, tally.weight_square, tally.residual_square]
    for column in columns:
        digest.update(np.ascontiguousarray(column, dtype="<f8").tobytes())
    return digest.hexdigest()


def _check_named(models: Mapping[Any, Any], argument: str) -> dict[str, Any]:
    if not models:
        raise ValueError(f"{argument} is an empty dict; pass at least one model")
    for name in models:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"{argument} has the name {name!r}; name each model with a word")
    return dict(models)


def _source_of_rows(name: str, rows: Observations, by: Any) -> Source:
    counted = rows.binary_outcomes and rows.sample_weight is None
    if counted and by is None:
        return Source(name, Tally.from_observations(rows))
    labels: npt.NDArray[Any] | None = None
    if by is not None:
        distinct, members = check_labels(by, "by", rows.y_prob.size)
        labels = np.empty(rows.y_prob.size, dtype=object)
        for label, positions in zip(distinct, members, strict=True):
            labels[positions] = [label] * positions.size
    # Sums of fractions and random halves depend on the order of the rows unless it is fixed.
    keys = (rows.y_true, rows.y_prob) if rows.sample_weight is None else (rows.sample_weight, rows.y_true, rows.y_prob)
    order = np.lexsort(keys)
    rows = rows.take(order)
    return Source(name, Tally.from_observations(rows), rows, None if labels is None else labels[order])


def _halves(source: Source, generator: np.random.Generator) -> tuple[Tally, Tally, Callable[[Map], Tally]]:
    """Send each row to one of two halves by the toss of a coin.

    Returns both, and what gives the second half with its forecasts moved by a map.
    """
    tally, rows = source.tally, source.rows
    if tally.unit_weights and tally.binary_outcomes:
        learned, held_out = tally.halves(generator)
        return (
            learned,
            held_out,
            lambda map: Tally.from_counts(map(held_out.forecast), held_out.rows, held_out.events),
        )
    if rows is None:
        raise ValueError("a Tally of fractions or weighted rows cannot be told apart to split them; pass the arrays")
    heads = generator.random(rows.y_prob.size) < 0.5
    kept = rows.take(np.flatnonzero(~heads))
    return (
        Tally.from_observations(rows.take(np.flatnonzero(heads))),
        Tally.from_observations(kept),
        lambda map: Tally.from_observations(replace(kept, y_prob=map(kept.y_prob))),
    )


def _versions() -> tuple[str, ...]:
    found = [f"calibrant {calibrant.__version__}", f"Python {python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return tuple(found)

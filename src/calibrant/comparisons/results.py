"""Results of comparing models: the limits of each, their differences, and the choice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.certificates.clusters import FEW_CLUSTERS, Clusters
from calibrant.certificates.model_differences import ModelDifference
from calibrant.certificates.results import Certificate, ConfidenceInterval, error_said, verdict_of
from calibrant.certificates.score_names import SCORES
from calibrant.core.results import UNIT, Result
from calibrant.core.voices import Phrase
from calibrant.core.words import (
    counted,
    in_columns,
    level_said,
    measured,
    percent,
    printable,
    rounded_down,
    rounded_up,
    shown,
    some_names,
)
from calibrant.measures.registry import MEASURES
from calibrant.rows.costs import WithCosts, at_threshold

_BETTER = {
    "risk_gap": "leaves less to save",
    "brier": "scores better",
    "log": "scores better",
    "decision_risk": "loses less",
    "net_benefit": "gains more",
}

_NOTHING_TOLD = 0.5
"""Limits of differences, as a share of what is possible, that lie on both sides of 0."""


@dataclass(frozen=True)
class ScoreLimits(Result):
    """The mean score of one model, with limits.

    Attributes
    ----------
    estimate : float
        The mean on these rows.
    lower, upper : float
        Limits, true together with those of all other models and thresholds.
    rows : int
        Rows.
    threshold : float or None
        The threshold from which people act, for scores of decisions.
    """

    estimate: float
    lower: float
    upper: float
    rows: int
    threshold: float | None = None

    _ranges: ClassVar = {"threshold": UNIT}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_order("lower", "upper")

    def __str__(self) -> str:
        place = "" if self.threshold is None else f" at threshold {self.threshold:g}"
        return (
            f"{measured(self.estimate, 4)}{place} (from {rounded_down(self.lower)} to {rounded_up(self.upper)}, "
            f"{self.rows:,} rows)"
        )


@dataclass(frozen=True)
class ComparedModel(Result):
    """One of several models: limits for its error or its scores, its verdict, and how good its forecasts are.

    Attributes
    ----------
    name : str
        Of the model.
    interval : ConfidenceInterval or None
        Limits for its calibration error, true together with those of all other models; None where scores are compared.
    certificate : Certificate or None
        The verdict on it, true together with all others; None where no largest error was named.
    brier : float
        Mean of (y - p)^2, which counts calibration and sharpness both.
    scores : tuple of ScoreLimits
        Its scores, one for each threshold; empty where calibration errors are compared.
    """

    name: str
    interval: ConfidenceInterval | None
    certificate: Certificate | None
    brier: float
    scores: tuple[ScoreLimits, ...] = ()

    _ranges: ClassVar = {"brier": UNIT}

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.interval is None) != bool(self.scores):
            self._refuse("interval", self.interval, "while there is not one of it and scores")

    @property
    def limits(self) -> tuple[ConfidenceInterval | ScoreLimits, ...]:
        """The limits of its error, or those of its scores."""
        return self.scores if self.interval is None else (self.interval,)

    def __str__(self) -> str:
        judged = self.certificate or self.interval or "; ".join(map(str, self.scores))
        return f"{printable(self.name)} (Brier score {self.brier:.4f}): {judged}"


@dataclass(frozen=True)
class ModelComparison(WithCosts, Result):
    """Several models side by side, with limits that hold for all of them together.

    Attributes
    ----------
    confidence_level : float
        With which the limits of all models hold together, and so does the certificate of whichever model is chosen; and
        with which those of all differences do.
    max_error : float or None
        The largest error you can live with, where one was named.
    chosen : str or None
        Of the certified models the one with the lowest Brier score; None when none is certified, or was asked for.
    models : tuple of ComparedModel
        In the order given.
    differences : tuple of ModelDifference
        Of every two of them, or of each and the reference; at each threshold where there are several.
    measure : str
        What is compared: a calibration error, or "brier", "log", "decision_risk" or "net_benefit".
    reference : str or None
        The model that all others are compared with, where one was named.
    margin : float or None
        By how much a model may be worse, where that was named.
    assumptions : tuple of str
        What the limits of the differences rest on.
    cost_false_positive, cost_false_negative : float or None
        The costs that were translated into a threshold, if any.
    clusters : Clusters or None
        What the clusters of the rows are, by the residuals of the first model; None for independent rows. Its
        ``least_limit`` is about differences here: with 0.5 or more they cannot be told from 0, whatever the outcomes.
    notes : tuple of str
        What else there is to know of the rows.
    """

    confidence_level: float
    max_error: float | None
    chosen: str | None
    models: tuple[ComparedModel, ...]
    differences: tuple[ModelDifference, ...]
    measure: str
    reference: str | None = None
    margin: float | None = None
    assumptions: tuple[str, ...] = ()
    cost_false_positive: float | None = None
    cost_false_negative: float | None = None
    clusters: Clusters | None = None
    notes: tuple[str, ...] = ()

    _ranges: ClassVar = dict.fromkeys(("confidence_level", "max_error"), UNIT)
    _words: ClassVar = {"measure": (*MEASURES, *SCORES)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.models) < 2:
            self._refuse("models", self.models, "fewer than two")
        if self.chosen != self.choice(self.models):
            self._refuse("chosen", self.chosen, f"while the certificates say {self.choice(self.models)!r}")
        if self.reference is not None and self.reference not in list(self):
            self._refuse("reference", self.reference, f"not one of {', '.join(self)}")

    @staticmethod
    def choice(models: tuple[ComparedModel, ...]) -> str | None:
        """Return, of the certified models, the one with the lowest Brier score: one may choose any of them."""
        passed = [each for each in models if each.certificate]
        return min(passed, key=lambda each: each.brier).name if passed else None

    @property
    def certified(self) -> tuple[str, ...]:
        """The models that are certified."""
        return tuple(each.name for each in self.models if each.certificate)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Why the verdicts would mislead whoever reads nothing else; empty when they would not."""
        found = [each.certificate.cautions for each in self.models if each.certificate is not None]
        few = [] if self.clusters is None else _few_said(self.clusters)
        return tuple(dict.fromkeys([*few, *(caution for cautions in found for caution in cautions)]))

    def __getitem__(self, name: str) -> ComparedModel:
        """Return one of the models."""
        for each in self.models:
            if each.name == name:
                return each
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        """Go through the models' names, as through the keys of a dict."""
        return (each.name for each in self.models)

    def __len__(self) -> int:
        return len(self.models)

    def difference(self, first: str, second: str, *, threshold: float | None = None) -> ModelDifference:
        """Return what is known of the difference of two models, at a threshold where there are several.

        Parameters
        ----------
        first, second : str
            Names of the models.
        threshold : float, optional
            Which threshold, for net benefit at several.

        Returns
        -------
        ModelDifference
            The first model minus the second.
        """
        for each in self.differences:
            if (each.first, each.second) == (first, second) and threshold in (None, each.threshold):
                return each
        raise KeyError((first, second))

    def frame(self, backend: Any = None) -> Any:
        """Return one row per model, and threshold where there are several."""
        pairs = [(each, limits) for each in self.models for limits in each.limits]
        columns: dict[str, list[Any]] = {"model": [each.name for each, _ in pairs]}
        if self._at_thresholds:
            columns["threshold"] = [getattr(limits, "threshold", None) for _, limits in pairs]
        columns |= {
            name: [getattr(limits, name) for _, limits in pairs] for name in ("rows", "estimate", "lower", "upper")
        }
        if self.clusters is not None:
            columns["clusters"] = [self.clusters.count] * len(pairs)
        columns["brier"] = [each.brier for each, _ in pairs]
        if self.max_error is not None:
            columns["verdict"] = [_verdict(each) for each, _ in pairs]
        return self._framed(columns, backend)

    def difference_frame(self, backend: Any = None) -> Any:
        """Return one row per difference."""
        names = ("first", "second", "threshold", "estimate", "lower", "upper", "verdict", "paired", "where")
        return self._framed({name: [getattr(each, name) for each in self.differences] for name in names}, backend)

    def __str__(self) -> str:
        level = level_said(self.confidence_level)
        return "\n".join(
            [
                self.headline(),
                self.table(),
                *self.clusters_said(),
                "",
                self.difference_headline(),
                self.difference_table(),
                *self.places(),
                *([] if self.max_error is None else ["", self._choice_said(self.max_error, level)]),
                *self.ahead_said(),
                *(f"Caution: {caution}" for caution in self.cautions),
                f"This assumes that {'; '.join(self.assumed())}.",
                *self.remarks(),
            ]
        )

    def assumed(self) -> list[str]:
        """Return what the limits of the models and of their differences rest on."""
        own = [each.interval.assumptions for each in self.models if each.interval is not None]
        return list(dict.fromkeys([words for several in own for words in several] + list(self.assumptions)))

    def places(self) -> list[str]:
        """Say where models differ most, of every difference that was looked at."""
        return [printable(each.where) for each in self.differences if each.where]

    def remarks(self) -> list[str]:
        """Return the notes on the rows and on all models in words."""
        return [f"Note: {note}" for note in self.notes] + [
            f"Note on {printable(each.name)}: {note}"
            for each in self.models
            if each.interval is not None
            for note in each.interval.notes
        ]

    def clusters_said(self) -> list[str]:
        """Say in one line what the clusters are; nothing of independent rows."""
        if self.clusters is None:
            return []
        whose = f" (by the residuals of {printable(self.models[0].name)})" if self.clusters.tell_worth else ""
        return [f"The rows come in {self.clusters}{whose}."]

    @property
    def _at_thresholds(self) -> bool:
        return any(each.threshold is not None for each in self.differences)

    @property
    def measure_said(self) -> str:
        """The error or score in words, a risk gap with the thresholds that it is about."""
        interval = self.models[0].interval
        if interval is not None:
            return error_said(interval)
        name = SCORES[self.measure]
        thresholds = {each.threshold for each in self.differences if each.threshold is not None}
        if len(thresholds) == 1:
            (only,) = thresholds
            return f"{name} at {at_threshold(only, self.cost_false_positive, self.cost_false_negative)}"
        return name

    def headline(self) -> str:
        """Say what the table shows."""
        return (
            f"The {self.measure_said} of {len(self.models)} models, with limits that hold "
            f"for all of them together with {level_said(self.confidence_level)} confidence:"
        )

    def table(self) -> str:
        """Write a line for each model, and threshold where there are several."""
        several = len(self.models[0].limits) > 1
        rows = [
            (
                each.name if not several else f"{each.name} at {getattr(limits, 'threshold', 0.0):g}",
                f"{limits.rows:,}",
                measured(limits.estimate, 4),
                rounded_down(limits.lower),
                rounded_up(limits.upper),
                f"{each.brier:.4f}",
                _verdict(each),
            )
            for each in self.models
            for limits in each.limits
        ]
        last = "" if self.max_error is None else "verdict"
        return in_columns(("model", "rows", "estimate", "from", "to", "Brier", last), rows)

    def difference_headline(self) -> str:
        """Say what limits the differences have."""
        kind = "errors" if self.models[0].interval is not None else "scores"
        if not self.differences[0].paired:
            return f"Differences of the {kind}, with limits that follow from those above:"
        return f"Differences of the {kind} on the same rows, with limits that hold together:"

    def difference_table(self) -> str:
        """Write a line for every difference."""
        better = _BETTER.get(self.measure, "is better calibrated")
        rows = [each.cells(better=better) for each in self.differences]
        return in_columns(("difference", "estimate", "from", "to", ""), rows)

    def error_bounded(self, limit: float) -> str:
        """Say what a certified model is certified to have."""
        interval = self.models[0].interval
        if interval is not None and interval.thresholds is not None:
            return f"a {self.measure_said} of at most {shown(limit)} per case"
        return f"an error of at most {shown(limit)}"

    def ahead_said(self) -> list[str]:
        """Say which verdicts the two limits of the table do not show, if there are any."""
        ahead = [
            each.name
            for each in self.models
            if each.certificate is not None
            and each.interval is not None
            and each.certificate.verdict
            not in ("undecided", verdict_of(each.interval.lower, each.interval.upper, each.certificate.max_error))
        ]
        if not ahead:
            return []
        return [
            f"The verdict on {some_names(ahead)} comes before the limits of the table show it: a verdict takes one "
            "limit, and the table has two, which are wider because they hold together."
        ]

    def _choice_said(self, max_error: float, level: str) -> str:
        count = len(self.models)
        if self.chosen is None:
            return f"None of the {count} models is certified to have {self.error_bounded(max_error)}."
        others = [printable(name) for name in self.certified if name != self.chosen]
        too = f" ({', '.join(others)} too)" if others else ""
        return (
            f"Certified: {printable(self.chosen)}{too}, {self.error_bounded(max_error)} with {level} "
            f"confidence, having chosen among {count}. Of the certified models it has the lowest Brier score."
        )


def _few_said(clusters: Clusters) -> list[str]:
    """Say that clusters are too few, or one too large, to tell models apart."""
    if clusters.least_limit < _NOTHING_TOLD:
        return []
    return [
        Phrase(
            "{count}, the largest with {share} of the rows, cannot tell models apart. Were one right on every row and "
            "another wrong on every row, limits of their difference would still include 0. Collect more clusters.",
            code=FEW_CLUSTERS,
            count=counted(clusters.count, "cluster"),
            share=percent(clusters.largest_share),
        )
    ]


def _verdict(model: ComparedModel) -> str:
    return "" if model.certificate is None else model.certificate.verdict

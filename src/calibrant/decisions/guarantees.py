"""What a certificate promises about decisions.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.certificates.clusters import Clusters
from calibrant.certificates.methods.registry import METHODS, Method
from calibrant.certificates.results import Certificate, ConfidenceInterval
from calibrant.certificates.verdicts import confidence_interval
from calibrant.core.errors import InputError
from calibrant.core.frames import frames_follow
from calibrant.core.results import UNIT, Result
from calibrant.core.types import Randomness
from calibrant.core.words import level_said, rounded_up
from calibrant.decisions.results import WRAPPERS
from calibrant.measures.registry import MEASURES, Measure
from calibrant.measures.savings import REDRAWING, over_thresholds
from calibrant.rows.checks import check_choice
from calibrant.rows.costs import Costs, WithCosts, at_threshold, one_threshold
from calibrant.rows.savings import EVERY_THRESHOLD
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally


@dataclass(frozen=True)
class DecisionGuarantee(WithCosts, Result):
    """What a limit of the risk gap, or of a calibration error, says about decisions, with its confidence.

    Attributes
    ----------
    measure : str
        What was limited: "risk_gap" (the saving itself), "cutoff" or "ece".
    upper : float
        Its upper limit.
    threshold : float or None
        The threshold spoken of; None for all of them at once, or for all from ``thresholds``.
    nondecreasing : float
        No re-drawing of the line between acting and not acting, i.e. no non-decreasing recalibration, lowers the
        expected loss by more.
    monotone : float or None
        No monotone recalibration, rising or falling, lowers it by more; None where nothing is known (from the risk gap
        at some thresholds only).
    any : float or None
        No recalibration of any shape lowers it by more; None where nothing is known (from the risk gap and Cutoff).
    confidence_level : float
        Of all of these together: they follow from one limit.
    method : str
        How the limit was found.
    target : str
        Whom it speaks of: "population" or "these forecasts".
    finite_sample : bool
        Whether it holds at every number of rows, or only for many.
    assumptions : tuple of str
        What it rests on.
    cost_false_positive, cost_false_negative : float or None
        The costs that were translated into the threshold, if any; a bound times ``cost_unit`` is in cost units.
    notes : tuple of str
        What to keep in mind.
    thresholds : tuple of float or None
        The lowest and the highest threshold that the risk gap was limited for, all together; None for other measures.
    clusters : Clusters or None
        What the clusters of the rows are, where they were named; None for independent rows.
    """

    measure: str
    upper: float
    threshold: float | None
    nondecreasing: float
    monotone: float | None
    any: float | None
    confidence_level: float
    method: str
    target: str
    finite_sample: bool
    assumptions: tuple[str, ...]
    cost_false_positive: float | None = None
    cost_false_negative: float | None = None
    notes: tuple[str, ...] = ()
    thresholds: tuple[float, float] | None = None
    clusters: Clusters | None = None

    _ranges: ClassVar = dict.fromkeys(
        ("upper", "threshold", "nondecreasing", "monotone", "any", "confidence_level"), UNIT
    )
    _words: ClassVar = {"measure": MEASURES}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.thresholds is None or self.threshold is None:
            return
        low, high = self.thresholds
        if not low <= self.threshold <= high:
            self._refuse("threshold", self.threshold, f"while the limit is for those from {low:g} to {high:g}")

    @property
    def is_direct(self) -> bool:
        """Whether the saving itself was limited, not a calibration error that bounds it."""
        return self.thresholds is not None

    def frame(self, backend: Any = None) -> Any:
        """Return one row per kind of recalibration, with the most it can save (missing where nothing is known)."""
        return self._framed(
            {"recalibration": list(WRAPPERS), "upper": [getattr(self, name) for name in WRAPPERS]}, backend
        )

    def __str__(self) -> str:
        whom = (
            "in the population that the rows come from"
            if self.target == "population"
            else "averaged over these very forecasts, which says nothing of others from the same population"
        )
        counted = "rows"
        if self.clusters is not None:
            whom, counted = whom + self.clusters.of_whom.removesuffix(","), "clusters"
        how = "at every number of" if self.finite_sample else "approximately, for many"
        lines = [
            f"{self.finding()} This speaks of the expected loss {whom}.",
            f"{self.source()} It holds {how} {counted}, and assumes that {'; '.join(self.assumptions)}.",
        ]
        return "\n".join(lines + [f"Note: {note}" for note in self.notes])

    def finding(self) -> str:
        """Say what no recalibration saves, in one sentence."""
        level = level_said(self.confidence_level)
        if self.is_direct:
            return (
                f"With {level} confidence no {REDRAWING} saves more than {rounded_up(self.nondecreasing)} per case"
                f"{self._limit_in_costs(self.nondecreasing)}, at {self._where_directly()}."
            )
        shape, limits = WRAPPERS["nondecreasing"], f"by more than {self._said(self.nondecreasing)}"
        if self.any is not None:
            shape, limits = WRAPPERS["any"], f"by more than {self._said(self.any)}"
        elif self.monotone is not None:
            limits += f", and no monotone one, rising or falling, by more than {self._said(self.monotone)}"
        loss = f"the expected loss at {self._where()}"
        return f"With {level} confidence no {shape} of these forecasts lowers {loss} {limits}."

    def source(self) -> str:
        """Say what was limited: the saving itself, or a calibration error from which its limit follows."""
        limit = f"{MEASURES.words(self.measure)} <= {rounded_up(self.upper)}"
        if self.thresholds is None:
            return f"It follows from {limit} ({self.method} method)."
        turned = "It says nothing about rules that turn the forecasts round; a limit over all thresholds does."
        if self.monotone is not None:
            turned = f"Rules that turn the forecasts round save at most {self._said(self.monotone)} per case."
        return (
            "Every non-decreasing recalibration of these forecasts draws such a line, and the saving itself was "
            f"limited: {limit} at {over_thresholds(self.thresholds)} ({self.method} method). {turned}"
        )

    def _said(self, limit: float) -> str:
        return f"{rounded_up(limit)}{self._limit_in_costs(limit)}"

    def _where_directly(self) -> str:
        """Name all thresholds that were limited together, and the one spoken of among them."""
        low, high = self.thresholds or EVERY_THRESHOLD
        if self.threshold is None or low == high:
            return self._where()
        return f"{over_thresholds((low, high))}, so also at {self._where()}"

    def _where(self) -> str:
        if self.threshold is not None:
            return at_threshold(self.threshold, self.cost_false_positive, self.cost_false_negative)
        return over_thresholds(self.thresholds or EVERY_THRESHOLD)


@frames_follow
def decision_guarantee(
    certificate: Certificate | ConfidenceInterval,
    threshold: float | None = None,
    *,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
) -> DecisionGuarantee:
    """Turn an upper limit for the risk gap, or for a calibration error, into a promise about decisions.

    With a risk gap <= u: no non-decreasing recalibration lowers the expected loss by more than u, at the thresholds
    that were certified; where these are all thresholds, no monotone one by more than 2u. With Cutoff <= u, whatever the
    threshold: no non-decreasing recalibration lowers it by more than u, no monotone one by more than 2u. With ECE <= u
    no recalibration at all lowers it by more than u. At a given threshold tau nothing can save more than
    max(tau, 1 - tau) either. The risk gap is the saving itself, and its limit mostly far smaller than the others.

    Parameters
    ----------
    certificate : Certificate or ConfidenceInterval
        For the risk gap, the Cutoff calibration error or the ECE, with an upper limit; whatever its verdict, the limit
        holds.
    threshold : float in [0, 1], optional
        One threshold, among those of a certificate of the risk gap; without it (or costs) the guarantee is for all
        thresholds at once, or for those of the certificate.
    cost_false_positive, cost_false_negative : float, optional
        Costs in place of ``threshold``, as in `decision_risk`; the guarantee then also speaks in these units.

    Returns
    -------
    DecisionGuarantee
        Prints as sentences that name the confidence, what was limited, whom it speaks of and what it assumes.

    References
    ----------
    Propositions 3.1 and 3.2 of [1]_; the factor 1 for non-decreasing recalibration and all about the risk gap are this
    project's (docs/theory/savings.md).

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import confidence_interval
    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.random(2000)
    >>> y_true = rng.random(2000) < y_prob
    >>> direct = confidence_interval(y_true, y_prob, measure="risk_gap", alternative="less")
    >>> guarantee = decision_guarantee(direct, threshold=0.2)
    >>> round(guarantee.nondecreasing, 3), round(guarantee.monotone, 3)
    (0.012, 0.024)
    >>> by_cutoff = decision_guarantee(confidence_interval(y_true, y_prob, alternative="less"), threshold=0.2)
    >>> round(by_cutoff.nondecreasing, 3), round(by_cutoff.monotone, 3)
    (0.028, 0.055)
    """
    if not isinstance(certificate, (Certificate, ConfidenceInterval)):
        raise InputError(
            f"certificate must be a Certificate or ConfidenceInterval, got {type(certificate).__name__}",
            remedy="a number measured on some rows guarantees nothing about others",
        )
    measure = MEASURES[certificate.measure]
    if measure.savings is None:
        raise InputError(
            f"certificate.measure is {measure.name!r}, {measure.no_savings}", remedy="certify 'risk_gap' or 'cutoff'"
        )
    if isinstance(certificate, ConfidenceInterval) and certificate.alternative == "greater":
        raise InputError(
            "certificate has a lower limit only (alternative is 'greater'), and a guarantee needs an upper one: ask "
            "for alternative 'less' or 'two-sided'"
        )
    if certificate.relative_to != "rows":
        raise InputError(
            "certificate has limits that are shares of the events, and losses are counted per row",
            remedy="certify with relative_to='rows'",
        )
    at, costs = _threshold_of(certificate, threshold, cost_false_positive, cost_false_negative)
    low, high = (certificate.thresholds or EVERY_THRESHOLD) if at is None else (at, at)
    most = max(high, 1.0 - low)
    nondecreasing, monotone, general = measure.savings
    if certificate.thresholds is not None and certificate.thresholds != EVERY_THRESHOLD:
        monotone = None  # what a rule that turns forecasts round saves at a threshold is seen at others
    return DecisionGuarantee(
        measure=certificate.measure,
        upper=certificate.upper,
        threshold=at,
        nondecreasing=min(nondecreasing * certificate.upper, most),
        monotone=None if monotone is None else min(monotone * certificate.upper, most),
        any=None if general is None else min(general * certificate.upper, most),
        confidence_level=certificate.confidence_level,
        method=certificate.method,
        target=certificate.target,
        finite_sample=certificate.finite_sample,
        assumptions=certificate.assumptions,
        cost_false_positive=costs[0],
        cost_false_negative=costs[1],
        notes=certificate.notes,
        thresholds=certificate.thresholds,
        clusters=certificate.clusters,
    )


def _threshold_of(
    certificate: Certificate | ConfidenceInterval, threshold: float | None, vain: float | None, missed: float | None
) -> tuple[float | None, Costs]:
    """Return the one threshold to speak of, if there is one, and the costs it came from; refuse one not certified."""
    low, high = certificate.thresholds or EVERY_THRESHOLD
    if threshold is None and vain is None and missed is None:
        if low != high:
            return None, (None, None)
        if certificate.cost_false_positive is None or certificate.cost_false_negative is None:
            return low, (None, None)
        return low, (certificate.cost_false_positive, certificate.cost_false_negative)
    at, costs = one_threshold(threshold, vain, missed)
    if not low <= at <= high:
        certified = f"threshold {low:g} alone" if low == high else f"thresholds from {low:g} to {high:g} only"
        raise InputError(
            f"is {at:g}{'' if threshold is not None else ' by these costs'}, and the certificate is for {certified}",
            argument="threshold",
            value=at,
            remedy="certify the risk gap for a range that holds it, or without threshold= for all at once",
        )
    return at, costs


def limit_savings(
    data: Tally | RowSource, *, confidence_level: float, method: Method, rng: Randomness = 0, **clusters: Any
) -> ConfidenceInterval:
    """Return the upper limit that promises most about decisions, for all thresholds together.

    That of the risk gap, or that of the Cutoff error where the method has none of the risk gap. ``clusters`` are the
    options of `confidence_interval` for rows in clusters.
    """
    covered = METHODS[check_choice(method, "method", tuple(METHODS))].measures
    measure: Measure = "cutoff" if covered and "risk_gap" not in covered else "risk_gap"
    found: ConfidenceInterval = confidence_interval(
        data,
        measure=measure,
        alternative="less",
        confidence_level=confidence_level,
        method=method,
        rng=rng,
        **clusters,
    )
    return found

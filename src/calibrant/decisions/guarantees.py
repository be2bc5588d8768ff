"""What a certificate promises about decisions.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

from calibrant.certificates.results import Certificate, ConfidenceInterval
from calibrant.core.errors import InputError
from calibrant.decisions.results import DecisionGuarantee
from calibrant.measures.registry import MEASURES
from calibrant.rows.costs import Costs, one_threshold


def decision_guarantee(
    certificate: Certificate | ConfidenceInterval,
    threshold: float | None = None,
    *,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
) -> DecisionGuarantee:
    """Turn an upper limit for the calibration error into a promise about decisions.

    With Cutoff <= u, whatever the threshold: no non-decreasing recalibration lowers the expected loss by more than u,
    no monotone one by more than 2u. With ECE <= u no recalibration at all lowers it by more than u. At a given
    threshold tau nothing can save more than max(tau, 1 - tau) either.

    Parameters
    ----------
    certificate : Certificate or ConfidenceInterval
        For the Cutoff calibration error or the ECE, with an upper limit; whatever its verdict, the limit holds.
    threshold : float in [0, 1], optional
        One threshold; without it (or costs) the guarantee is for all thresholds at once.
    cost_false_positive, cost_false_negative : float, optional
        Costs in place of ``threshold``, as in `decision_risk`; the guarantee then also speaks in these units.

    Returns
    -------
    DecisionGuarantee
        Prints as sentences that name the confidence, whom it speaks of and what it assumes.

    References
    ----------
    Propositions 3.1 and 3.2 of [1]_; the factor 1 for non-decreasing recalibration is this project's.

    Examples
    --------
    >>> from calibrant.certificates import ConfidenceInterval
    >>> limit = ConfidenceInterval(
    ...     measure="cutoff", estimate=0.012, lower=0.0, upper=0.031, confidence_level=0.95, alternative="less",
    ...     method="adaptive", rows=5000, n_eff=5000.0, target="population", finite_sample=True,
    ...     assumptions=("rows are independent draws from one population",),
    ... )
    >>> guarantee = decision_guarantee(limit, threshold=0.2)
    >>> guarantee.nondecreasing, guarantee.monotone
    (0.031, 0.062)
    """
    if not isinstance(certificate, (Certificate, ConfidenceInterval)):
        raise InputError(
            f"certificate must be a Certificate or ConfidenceInterval, got {type(certificate).__name__}",
            remedy="a number measured on some rows guarantees nothing about others",
        )
    measure = MEASURES[certificate.measure]
    if measure.savings is None:
        raise InputError(f"certificate.measure is {measure.name!r}, {measure.no_savings}", remedy="certify 'cutoff'")
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
    at: float | None = None
    costs: Costs = (None, None)
    if not (threshold is None and cost_false_positive is None and cost_false_negative is None):
        at, costs = one_threshold(threshold, cost_false_positive, cost_false_negative)
    most = 1.0 if at is None else max(at, 1.0 - at)
    nondecreasing, monotone, general = measure.savings
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
    )

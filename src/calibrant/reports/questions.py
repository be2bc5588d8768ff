"""What a report asks of every model, and the verdict that answers it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibrant.certificates.clusters import ClusterTarget, check_clusters
from calibrant.certificates.methods.registry import Method
from calibrant.certificates.results import Certificate, Yardstick
from calibrant.certificates.verdicts import certify
from calibrant.core.errors import InputError
from calibrant.reports.results import ClusterOptions
from calibrant.rows.checks import check_number


@dataclass(frozen=True)
class Question:
    """What is asked of every model: fixed before any row is looked at.

    ``clusters`` says how clusters count; None for independent rows. ``tolerance`` is the error that is no reason for an
    alarm, where rows have periods.
    """

    max_error: float | None
    relative_to: Yardstick
    confidence_level: float
    method: Method
    threshold: float
    rng: int
    clusters: ClusterOptions | None = None
    tolerance: float = 0.0

    @classmethod
    def checked(
        cls,
        *,
        threshold: Any,
        rng: Any,
        clustered: bool,
        cluster_target: ClusterTarget,
        max_cluster_size: float | None,
        serial: int,
        tolerance: Any,
        **asked: Any,
    ) -> Question:
        """Check what `certify` does not check itself."""
        at = check_number(threshold, "threshold", low=0.0, high=1.0)
        if at in (0.0, 1.0):
            raise InputError(
                f"is {at:g}, where everybody or nobody is acted on",
                argument="threshold",
                value=at,
                remedy="choose one between 0 and 1",
            )
        counted = check_clusters(clustered, cluster_target, max_cluster_size, serial)
        clusters = None
        if counted is not None:
            clusters = ClusterOptions(counted.target, counted.dependence.max_size, counted.dependence.serial)
        seed = int(check_number(rng, "rng", low=0.0, whole=True))
        allowed = check_number(tolerance, "tolerance", low=0.0, high=1.0)
        return cls(threshold=at, rng=seed, clusters=clusters, tolerance=allowed, **asked)

    @property
    def clustering(self) -> dict[str, Any]:
        """What is passed on about clusters."""
        return {} if self.clusters is None else self.clusters.passed_on()

    def asked(self, level: float) -> dict[str, Any]:
        """Return what limits are asked for with, at a level."""
        return {**self.asked_of_rows(level), **self.clustering}

    def asked_of_rows(self, level: float) -> dict[str, Any]:
        """Return the same for rows that are taken as independent."""
        return {
            "confidence_level": level,
            "method": self.method,
            "relative_to": self.relative_to,
            "rng": self.rng,
        }


def judge(rows: Any, question: Question, level: float) -> Certificate | None:
    """Return the verdict, if a limit was asked about."""
    if question.max_error is None:
        return None
    certificate: Certificate = certify(rows, max_error=question.max_error, **question.asked(level))
    return certificate

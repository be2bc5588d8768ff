"""Tests of perfect calibration for rows in clusters: what bets on whole clusters gained, or a wild bootstrap of them.

No test is exact here: the forecasts say how probable each outcome is, and nothing of how outcomes of one cluster go
together. The proofs are in docs/theory/clusters.md.
"""

from __future__ import annotations

import math

import numpy as np

from calibrant.certificates.cluster_limits import ClusterLimits
from calibrant.certificates.clusters import ClusterQuestion, clusters_of, one_row_each, open_clusters
from calibrant.certificates.methods.normal import FEW_SQUARES
from calibrant.certificates.rejections import USUAL_LEVEL, CalibrationTest
from calibrant.core.errors import InputError
from calibrant.core.voices import Option, Phrase
from calibrant.core.words import counted
from calibrant.rows.clusters import ClusteredSource
from calibrant.rows.hints import row_hints
from calibrant.rows.intake import rows_of_clusters
from calibrant.rows.promised import with_unit_weights
from calibrant.rows.refinement import split_at_extremes

EVIDENCE = Option("method", "evidence")
_BOOTSTRAP = Option("method", "asymptotic")
_UNSEEN: tuple[str, ...] = (
    "the forecaster was fixed without looking at these rows",
    "the test was chosen beforehand and is done once",
)
_MANY_CLUSTERS = "there are clusters enough for the large-sample law"


def check_for_clusters(chosen: str) -> str:
    """Return the test of rows in clusters; refuse the exact one, which there is none of."""
    if chosen == "exact":
        raise InputError(
            Phrase(
                "{exact} needs independent rows: forecasts do not say how outcomes of one cluster go together",
                exact=Option("method", "exact"),
            ),
            remedy=Phrase(
                "use {evidence}, which holds at every number of clusters, or {bootstrap} for many",
                evidence=EVIDENCE,
                bootstrap=_BOOTSTRAP,
            ),
        )
    return "evidence" if chosen == "auto" else chosen


def check_for_rows(chosen: str) -> None:
    """Refuse the test of rows in clusters where there are none."""
    if chosen == "evidence":
        raise InputError(
            Phrase("{evidence} is for rows in clusters, and none were named", evidence=EVIDENCE),
            remedy=Phrase(
                "pass {cluster}, a label per row, or use {exact}",
                cluster=Option("cluster"),
                exact=Option("method", "exact"),
            ),
        )


def clustered_test(
    question: ClusterQuestion, source: ClusteredSource, chosen: str, resamples: int, seed: int
) -> CalibrationTest:
    """Test perfect calibration of rows in clusters.

    Parameters
    ----------
    question : ClusterQuestion
        How clusters count.
    source : ClusteredSource
        The rows.
    chosen : str
        "auto", "evidence" or "asymptotic".
    resamples, seed : int
        How often clusters are given random signs, for the large-sample test, and the seed of the signs.
    """
    kind = check_for_clusters(chosen)
    limits = open_clusters(question, source)
    table = split_at_extremes(with_unit_weights(rows_of_clusters(limits.source)))
    curve = table.residual_prefix()
    clusters = clusters_of(question, limits, table, 0.0)
    if kind == "evidence":
        pvalue, notes = min(1.0, math.exp(-limits.log_evidence())), _evidence_notes(limits)
        drawn, assumed = None, _UNSEEN
    else:
        pvalue, notes = _wild_bootstrap(limits, resamples, seed), _bootstrap_notes(limits)
        drawn, assumed = resamples, (*_UNSEEN, _MANY_CLUSTERS)
    if chosen == "auto":
        notes = (
            "the evidence of bets was chosen: it holds at every number of clusters, whatever their rows do",
            *notes,
        )
    if question.counts_rows and limits.count == table.row_total:
        notes = (one_row_each(table.row_total), *notes)
    return CalibrationTest(
        test="cutoff",
        statistic=float(curve.max() - curve.min()) / float(table.weight_total),
        pvalue=pvalue,
        method=kind,
        rows=table.row_total,
        n_resamples=drawn,
        assumptions=(clusters.assumed(given=False), *assumed),
        notes=(*notes, *row_hints(table)),
        clusters=clusters,
    )


def _wild_bootstrap(limits: ClusterLimits, resamples: int, seed: int) -> float:
    """Return how often clusters of random sign range as far as these, both between the same forecasts."""
    draws = limits.noise(seed, resamples)
    return (1 + int(np.count_nonzero(draws >= limits.border_error * (1.0 - 1e-12)))) / (1 + resamples)


def _bootstrap_notes(limits: ClusterLimits) -> tuple[str, ...]:
    resting = limits.participation()
    if resting >= FEW_SQUARES:
        return ()
    return (
        Phrase(
            "the spread between clusters rests on about {resting:.0f} of them, below {few:g}: the large-sample p-value "
            "is a rough guide here; {evidence} holds at every number of clusters",
            code="few_squares",
            resting=resting,
            few=FEW_SQUARES,
            evidence=EVIDENCE,
        ),
    )


def _evidence_notes(limits: ClusterLimits) -> tuple[str, ...]:
    most = limits.most_log_evidence()
    if most >= math.log(1.0 / USUAL_LEVEL):
        return ()
    return (
        Phrase(
            "{count} cannot reject anything at the {level:g}% level, whatever the outcomes: no p-value could be below "
            "{least:.2g}",
            code="few_clusters",
            count=counted(limits.count, "cluster"),
            level=100.0 * USUAL_LEVEL,
            least=math.exp(-most),
        ),
    )

"""What acting loses on rows in clusters, and what is guaranteed where clusters count."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from calibrant import certify, confidence_interval, decision_guarantee, scan
from calibrant.decisions import decide

RNG = np.random.default_rng(8)
LABEL = np.repeat(np.arange(80), 25)
P = RNG.uniform(0.2, 0.8, LABEL.size)
Y = (RNG.random(LABEL.size) < P + RNG.choice([-0.15, 0.15], 80)[LABEL]).astype(int)


def test_losses_are_those_of_rows_and_the_guarantee_counts_clusters():
    alone, found = decide(Y, P, threshold=0.4), decide(Y, P, threshold=0.4, cluster=LABEL)
    assert found.decisions[0].risk == alone.decisions[0].risk
    assert found.decisions[0].gap == alone.decisions[0].gap
    limit = confidence_interval(Y, P, measure="risk_gap", alternative="less", cluster=LABEL).upper
    assert found.guarantee.upper == limit > alone.guarantee.upper
    assert "clusters are independent of each other" in str(found)
    assert "every number of clusters" in str(found.guarantee)
    assert "rows come from, for clusters of these sizes." in str(found.guarantee)


@pytest.mark.parametrize("options", [{"serial": 1}, {"cluster_target": "clusters"}, {"max_cluster_size": 30}])
def test_options_of_clusters_are_passed_on(options):
    found = decide(Y, P, threshold=0.4, cluster=LABEL, **options).guarantee
    asked = {"measure": "risk_gap", "alternative": "less", "cluster": LABEL, **options}
    assert found.upper == confidence_interval(Y, P, **asked).upper
    with pytest.raises(ValueError, match="says something of clusters, and none were named"):
        decide(Y, P, threshold=0.4, **options)


def test_scans_and_groups_count_clusters_too():
    table = pa.table({"y": Y, "p": P, "site": LABEL})
    with scan(table, y_true="y", y_prob="p", cluster="site") as source:
        found = decide(source, threshold=0.4)
    assert found.guarantee.upper == pytest.approx(decide(Y, P, threshold=0.4, cluster=LABEL).guarantee.upper)
    by = np.where(P < 0.5, "low", "high")
    groups = decide(Y, P, threshold=0.4, by=by, cluster=LABEL)
    own = by == "low"
    alone = decide(Y[own], P[own], threshold=0.4, cluster=LABEL[own], confidence_level=0.975)
    assert groups["low"].guarantee.upper == pytest.approx(alone.guarantee.upper)


def test_a_guarantee_from_a_certificate_says_whom_it_speaks_of():
    certificate = certify(Y, P, max_error=0.2, measure="risk_gap", cluster=LABEL, cluster_target="clusters")
    found = decision_guarantee(certificate, threshold=0.4)
    assert found.clusters == certificate.clusters
    assert "in the population that the rows come from, each cluster counting once." in str(found)
    assert type(found).from_json(found.to_json()) == found

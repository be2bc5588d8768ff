"""Reports on rows in clusters: verdicts, bands and repairs count clusters, and the page says what they are worth."""

import html
import re
import shlex
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from result_cases import content

import calibrant
from calibrant import Tally
from calibrant.cli import main
from calibrant.reports import ClusterOptions, ReportSummary
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.intake import as_clustered

CalibrationReport: Any = calibrant.CalibrationReport

COUNT, SIZE = 120, 12
RNG = np.random.default_rng(3)
SITE = np.repeat(np.arange(COUNT), SIZE)
Y_PROB = RNG.random(COUNT * SIZE)
Y_TRUE = (RNG.random(COUNT * SIZE) < np.clip(Y_PROB + RNG.normal(0.0, 0.25, COUNT)[SITE], 0.0, 1.0)).astype(int)
HALF = np.where(SITE % 2, "odd", "even")
WEIGHT = RNG.integers(1, 4, SITE.size).astype(float)

LIMIT = 0.1


def reported(*, max_error: Any = LIMIT, **options: Any) -> Any:
    return CalibrationReport.from_predictions(Y_TRUE, Y_PROB, max_error=max_error, **{"cluster": SITE, **options})


@pytest.fixture(scope="module")
def report():
    return reported(title="Sites")


ASKED: dict[str, dict[str, Any]] = {
    "rows": {},
    "clusters": {"cluster_target": "clusters"},
    "largest": {"max_cluster_size": 20},
    "neighbours": {"serial": 1},
    "exact": {"method": "exact"},
    "weights": {"sample_weight": WEIGHT},
    "once each, of weighted rows": {"sample_weight": WEIGHT, "cluster_target": "clusters"},
}


@pytest.mark.parametrize("options", ASKED.values(), ids=ASKED.keys())
def test_verdicts_and_limits_are_those_of_certify(options):
    asked = {"cluster": SITE, **options}
    model = reported(**options).summary.models[0]
    expected = calibrant.certify(Y_TRUE, Y_PROB, max_error=LIMIT, **asked)
    assert model.certificate.upper == pytest.approx(expected.upper, rel=1e-12)
    assert model.certificate.clusters.count == COUNT
    assert model.certificate.verdict == expected.verdict
    assert model.measures.cutoff == pytest.approx(expected.estimate, rel=1e-9)  # the same rows, counted the same way
    free = reported(max_error=None, **options).summary.models[0]
    limits = calibrant.confidence_interval(Y_TRUE, Y_PROB, **asked)
    assert (free.limits.lower, free.limits.upper) == pytest.approx((limits.lower, limits.upper), rel=1e-12)


def test_groups_are_judged_by_clusters():
    asked: dict[str, Any] = {"cluster": SITE, "by": HALF, "serial": 1}
    model = reported(by=HALF, serial=1).summary.models[0]
    expected = calibrant.certify(Y_TRUE, Y_PROB, max_error=LIMIT, **asked)
    assert model.groups.upper == pytest.approx(expected.upper, rel=1e-12)
    assert [each.clusters.count for each in model.groups.certificates] == [COUNT // 2, COUNT // 2]
    free = reported(by=HALF, serial=1, max_error=None).summary.models[0]
    assert all(each.clusters.serial == 1 for each in free.group_limits.limits)


def test_what_decisions_are_promised_counts_clusters(report):
    table = report.summary.models[0].decisions
    limit = calibrant.confidence_interval(Y_TRUE, Y_PROB, cluster=SITE, measure="risk_gap", alternative="less")
    assert table.promise.upper == pytest.approx(limit.upper, rel=1e-12)
    assert any("clusters are independent" in each for each in table.assumptions)


def test_the_repair_learns_from_some_clusters_and_is_judged_on_others(report):
    repair = report.summary.models[0].repair
    assert (repair.fitted_clusters, repair.judged_clusters) == (COUNT // 2, COUNT // 2)
    assert repair.fitted_rows == repair.judged_rows == COUNT * SIZE // 2
    assert repair.after.clusters.count == COUNT // 2
    assert "Half of the clusters, with all their rows, were drawn by lot" in report.html()


@pytest.mark.usefixtures("without_plots")
def test_neighbours_that_depend_are_not_on_both_sides_of_a_repair():
    report = reported(serial=2)
    repair = report.summary.models[0].repair
    assert (repair.fitted_clusters, repair.judged_clusters) == (59, 59)
    assert (repair.fitted_rows, repair.judged_rows) == (59 * SIZE, 59 * SIZE)
    last = SITE >= 61
    alone = calibrant.certify(Y_TRUE[last], Y_PROB[last], max_error=LIMIT, cluster=SITE[last], serial=2)
    assert repair.before.upper == pytest.approx(alone.upper, rel=1e-12)
    assert "with 2 clusters left out in between" in report.html()


@pytest.mark.usefixtures("without_plots")
def test_too_few_clusters_for_a_repair_are_no_reason_to_have_no_report():
    few = SITE // 40
    summary = reported(cluster=few).summary
    assert [each.section for each in summary.models[0].omissions] == ["repair"]
    assert "and there are 3" in summary.models[0].omissions[0].reason
    headline = reported(cluster=few).html()
    assert re.search(r'<p class="caution">3 clusters, .* cannot certify 0.1', headline)
    assert "Judge rows of more clusters: many more rows of the same ones help little." in headline
    assert "Judge more rows" not in headline


@pytest.mark.parametrize("text", ["html", "markdown"])
def test_the_page_says_what_rows_are_worth_and_would_have_claimed(report, text):
    said = getattr(report, text)()
    model = report.summary.models[0]
    clusters = model.certificate.clusters
    assert f"The 1,440 rows are in 120 clusters, the largest with {100 / COUNT:.2f}% of them" in said
    assert f"worth about {clusters.n_eff:,.0f} independent rows (design effect {clusters.deff:.1f})" in said
    alone = calibrant.certify(Y_TRUE, Y_PROB, max_error=LIMIT)
    assert model.row_wise == (alone.lower, alone.upper)
    assert alone.verdict == "certified"
    assert "Had they been taken as independent, they would have said: certified, at most" in said
    assert "independent rows, and a model fixed" not in said
    assert "for cases to come in clusters of these sizes" in said


@pytest.mark.usefixtures("without_plots")
def test_the_page_says_how_clusters_count():
    said = reported(cluster_target="clusters").html()
    assert "for clusters to come, each counting once, if nothing changes" in said
    assert "1,440 rows in 120 clusters, each counting once" in said
    said = html.unescape(reported(max_cluster_size=20, serial=1, method="hoeffding").html())
    assert "--cluster clusters --max-cluster-size 20.0 --serial 1" in said
    assert "    max_cluster_size=20.0,\n    serial=1,\n" in said
    assert "in clusters of at most 20 rows" in said
    assert "clusters two or more apart are independent" in said
    assert "as far as a rule for many clusters applies" in reported(method="normal").markdown()


def test_bands_of_plots_count_clusters(report):
    assert "calibrated forecasts, in clusters like these, lies in 95% of cases" in report.html()
    assert "draws of signs of clusters" in report.html()


@pytest.mark.usefixtures("without_plots")
def test_without_clusters_nothing_is_said_of_them():
    plain = CalibrationReport.from_predictions(Y_TRUE, Y_PROB, max_error=LIMIT)
    assert plain.summary.clusters is None
    assert plain.summary.models[0].row_wise is None
    assert "cluster" not in re.sub(r"<(style|script).*?</\1>", "", plain.html(), flags=re.DOTALL).replace(
        "where there are clusters, of who is in which", ""
    )


def test_clusters_of_one_row_are_independent_rows():
    each = reported(cluster=np.arange(SITE.size)).summary.models[0]
    plain = CalibrationReport.from_predictions(Y_TRUE, Y_PROB, max_error=LIMIT).summary.models[0]
    assert each.certificate.upper == pytest.approx(plain.certificate.upper, rel=1e-12)
    assert each.row_wise is None
    assert "tells all 1,440 rows apart" in each.certificate.notes[0]


def test_neither_the_order_of_rows_nor_names_of_clusters_change_a_byte():
    order = np.random.default_rng(0).permutation(SITE.size)
    straight = reported(by=HALF)
    names = np.array([f"site {1000 + each}" for each in SITE])
    turned = CalibrationReport.from_predictions(
        Y_TRUE[order], Y_PROB[order], cluster=names[order], by=HALF[order], max_error=LIMIT
    )
    assert turned.json() == straight.json()
    assert content(turned._rows[0].observations) == content(straight._rows[0].observations)
    assert turned.html() == straight.html()


def test_who_is_in_which_cluster_changes_the_fingerprint():
    fingerprints = {
        reported(**options).summary.models[0].fingerprint
        for options in ({}, {"cluster": SITE // 2}, {"cluster": np.roll(SITE, 1)}, {"cluster_target": "clusters"})
    }
    plain = CalibrationReport.from_predictions(Y_TRUE, Y_PROB, max_error=LIMIT).summary.models[0].fingerprint
    assert len(fingerprints | {plain}) == 5


def test_the_json_reads_back(report):
    assert ReportSummary.from_json(report.json()) == report.summary
    assert str(report.summary.clusters) == "each of the rows counts once, clusters are independent"
    options = ClusterOptions("rows", 20.0, 2)
    assert str(options) == (
        "each of the rows counts once, clusters have at most 20 rows, clusters 3 or more apart are independent"
    )


CASES: dict[str, dict[str, Any]] = {
    "rows": {"serial": 1},
    "clusters": {"cluster_target": "clusters", "by": HALF},
    "weights": {"sample_weight": WEIGHT, "cluster_target": "clusters"},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_code_in_the_report_makes_it_again(case, tmp_path, monkeypatch, request):
    if "by" not in case:  # plots are of the same rows, which are those of the fingerprint
        request.getfixturevalue("without_plots")
    monkeypatch.chdir(tmp_path)
    report = reported(title="Sites", source="sites.npz", date="2026-03-31", name="y_prob", **case)
    codes = re.findall(r"<code>(.*?)</code>", report.html(), flags=re.DOTALL)
    python, shell = (html.unescape(code) for code in codes[:2])
    columns: dict[str, Any] = {
        "y_true": Y_TRUE,
        "y_prob": Y_PROB,
        "clusters": SITE,
        "groups": HALF,
        "sample_weight": WEIGHT,
    }
    names: dict[str, Any] = dict(columns)
    exec(python, names)
    assert names["report"].json() == report.json()
    np.savez("sites.npz", **columns)
    found = CliRunner().invoke(main, shlex.split(shell.replace("\\\n", ""))[1:])
    assert found.exit_code in (0, 1, 3), found.output
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report.html()


def test_rows_that_know_their_clusters_are_reported_like_arrays(report):
    source = as_clustered(Y_TRUE, Y_PROB, cluster=SITE)
    assert isinstance(source, ClusteredRows)
    known = CalibrationReport.from_predictions(source, max_error=LIMIT, title="Sites")
    assert known.summary.models[0].certificate.upper == pytest.approx(
        report.summary.models[0].certificate.upper, rel=1e-12
    )
    both = CalibrationReport.from_predictions({"a": source, "b": source}, max_error=LIMIT)
    assert [each.certificate.clusters.count for each in both.summary.models] == [COUNT, COUNT]


@pytest.mark.usefixtures("without_plots")
def test_groups_whose_rows_are_alike_are_noted():
    group = (SITE // 4).astype(str)  # as a report names groups: sums over clusters are taken in the order of names
    alike = CalibrationReport.from_predictions(Y_TRUE, Y_PROB, by=group, max_error=LIMIT)
    check = alike.summary.models[0].group_check
    assert check == calibrant.check_independence(Y_TRUE, Y_PROB, group)
    assert check.rejected()
    for text in (alike.html(), alike.markdown()):
        assert "Rows of one group are more alike than independent rows would be (design effect" in text
    mixed = np.random.default_rng(0).integers(0, 20, SITE.size)
    plain = CalibrationReport.from_predictions(Y_TRUE, Y_PROB, by=mixed)
    assert not plain.summary.models[0].group_check.rejected()
    assert "more alike" not in plain.html()
    for options in ({"by": np.zeros(SITE.size)}, {"by": SITE // 4, "cluster": SITE}, {}):
        found = CalibrationReport.from_predictions(Y_TRUE, Y_PROB, **options)
        assert found.summary.models[0].group_check is None


TALLY = Tally.from_arrays(Y_TRUE, Y_PROB)
BAD: dict[str, dict[str, Any]] = {
    "serial says something of clusters, and none were named": {"cluster": None, "serial": 1},
    "cluster has 1,439 values for 1,440 rows": {"cluster": SITE[:-1]},
    "cluster holds one cluster only": {"cluster": np.zeros(SITE.size)},
    r"cluster\[3\] is missing": {"cluster": [None if place == 3 else 1 for place in range(SITE.size)]},
    "cluster was given together with a tally": {"y_true": TALLY, "y_prob": None},
    "has no limits for rows in clusters": {"method": "paper"},
    "clusters are covered for relative_to='rows' only": {"relative_to": "events"},
    "some models and without for others": {
        "y_true": {"a": as_clustered(Y_TRUE, Y_PROB, cluster=SITE), "b": TALLY},
        "y_prob": None,
        "cluster": None,
    },
    "by was given together with a source of rows in clusters": {
        "y_true": as_clustered(Y_TRUE, Y_PROB, cluster=SITE),
        "y_prob": None,
        "cluster": None,
        "by": HALF,
    },
}


@pytest.mark.parametrize("message", BAD)
def test_bad_clusters_are_refused(message):
    asked = {"y_true": Y_TRUE, "y_prob": Y_PROB, "cluster": SITE, "max_error": LIMIT, **BAD[message]}
    with pytest.raises(ValueError, match=message):
        CalibrationReport.from_predictions(**asked)

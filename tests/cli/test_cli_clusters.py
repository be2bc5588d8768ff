"""Clusters on the command line: the column is read from every format, and verdicts count clusters."""

import json
import re
from typing import Any

import numpy as np
import pytest
from cli_cases import answer, call
from table_cases import FORMATS, predictions, write

import calibrant
from calibrant.cli.inputs import Source
from calibrant.cli.rows import open_rows
from calibrant.rows.intake import as_clustered

DATA = predictions(480, seed=2) | {"site": np.repeat(np.arange(60), 8)}
LIMIT = 0.1
ASKED = ("--max-error", LIMIT, "--cluster", "site")
BOTH = pytest.mark.parametrize("limit", [(), ("--memory-limit", "1GB")], ids=["read", "scanned"])


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write(DATA, tmp_path_factory.mktemp("clusters") / "t.csv", "csv")


def certified(**options) -> Any:
    return calibrant.certify(DATA["y"], DATA["p"], max_error=LIMIT, **{"cluster": DATA["site"], **options})


OPTIONS = {
    "rows": ((), {}),
    "clusters": (("--cluster-target", "clusters"), {"cluster_target": "clusters"}),
    "largest": (("--max-cluster-size", "10"), {"max_cluster_size": 10}),
    "neighbours": (("--serial", "1"), {"serial": 1}),
    "weights": (("--weight", "w"), {"sample_weight": DATA["w"]}),
    "groups": (("--by", "ward"), {"by": DATA["ward"]}),
}


@BOTH
@pytest.mark.parametrize(("typed", "passed"), OPTIONS.values(), ids=OPTIONS.keys())
def test_verdicts_are_the_librarys(typed, passed, limit, file):
    expected = certified(**passed)
    code = {"certified": 0, "refuted": 1, "undecided": 3}[expected.verdict]
    found = answer("certify", file, *ASKED, *typed, *limit, exit_code=code)
    assert found["input"]["cluster"] == "site"
    stored = json.loads(expected.to_json())
    assert found["result"]["upper"] == pytest.approx(stored["upper"], rel=1e-9)
    if "by" not in passed:
        told, facts = found["result"]["clusters"], stored["clusters"]
        assert {name: told[name] for name in ("count", "target", "max_size", "serial")} == {
            name: facts[name] for name in ("count", "target", "max_size", "serial")
        }
        assert told["deff"] == pytest.approx(facts["deff"], rel=1e-9)


@pytest.mark.parametrize("kind", FORMATS)
def test_the_column_is_read_from_every_format(kind, tmp_path):
    found = answer("certify", write(DATA, tmp_path / f"t.{kind}", kind), *ASKED, "--serial", "1", exit_code=3)
    assert found["result"]["clusters"]["count"] == 60
    assert found["result"]["upper"] == pytest.approx(certified(serial=1).upper, rel=1e-9)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_neighbours_follow_each_other_as_numbers_do(kind, tmp_path):
    """In a text file, too, the day after 9 is 10; texts that are no numbers come in the order of texts."""
    for labels, expected in (
        ([10, 9, 100, 9], [1, 0, 2, 0]),
        ([10.5, -9.25, 1e9, 2.0], [2, 0, 3, 1]),
        (["day 10", "day 9", "day 100", "day 9"], [0, 2, 1, 2]),
    ):
        columns = {"y": [0, 1, 1, 0], "p": [0.25, 0.5, 0.75, 0.5], "day": labels}
        source = Source((str(write(columns, tmp_path / f"t.{kind}", kind)),), "y", "p", cluster="day")
        with open_rows(source) as rows:
            found: Any = as_clustered(**rows.data)
        assert found.codes.tolist() == expected


@BOTH
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_texts_that_count_in_another_order_have_no_neighbours(kind, limit, tmp_path):
    """As in Python; numbers, written in a text file or not, have the order of numbers."""
    site = DATA["site"]
    texts = {"site": np.array([f"s{each}" for each in site]), "padded": np.array([f"s{each:02d}" for each in site])}
    path = write(DATA | texts | {"part": site / 16.0}, tmp_path / f"t.{kind}", kind)
    asked = ("certify", path, "--y-prob", "p", "--max-error", LIMIT, *limit, "--cluster")
    assert answer(*asked, "site")["result"]["clusters"]["count"] == 60
    refused = call(*asked, "site", "--serial", "1")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "column 'site' holds texts, of which 's19' comes before 's2'; pass numbers or dates" in refused.stderr
    for name in ("padded", "part"):
        found = answer(*asked, name, "--serial", "1", exit_code=3)
        assert found["result"]["upper"] == pytest.approx(certified(serial=1).upper, rel=1e-9)


@BOTH
@pytest.mark.parametrize("gone", ["", "NA"])
def test_a_row_without_a_cluster_is_an_error_that_names_it(gone, limit, tmp_path):
    path = tmp_path / "holes.csv"
    path.write_text(f"y,p,site\n1,0.5,a\n0,0.25,{gone}\n1,0.75,b\n0,0.5,b\n")
    found = call("certify", path, "--max-error", "0.9", "--cluster", "site", *limit)
    assert (found.exit_code, found.stdout) == (2, "")
    assert re.search(r"column 'site'.*(no value|missing).*--drop-missing$", found.stderr.strip())
    dropped = answer("certify", path, "--max-error", "1", "--cluster", "site", "--drop-missing", *limit)
    assert (dropped["input"]["rows"], dropped["input"]["left_out"]) == (3, 1)


BAD = {
    ("--serial", "1"): "--serial says something of clusters, and none were named",
    ("--cluster", "none"): "has no column 'none'",
    ("--cluster", "site", "--method", "paper"): "--method paper has no limits for rows in clusters",
    ("--cluster", "site", "--max-cluster-size", "3"): "--max-cluster-size is 3, and a cluster here has 8 rows",
    ("--cluster", "site", "--relative-to", "events"): "clusters are covered for --relative-to rows only",
    ("--cluster", "site", "--measure", "ece"): "clusters are covered for --measure cutoff",
    ("--cluster", "one"): "column 'one' holds one cluster only",
}


@pytest.mark.parametrize("options", BAD, ids=" ".join)
def test_bad_clusters_are_exit_code_2(options, tmp_path):
    path = write(DATA | {"one": np.zeros(480, dtype=int)}, tmp_path / "t.csv", "csv")
    for command in ("certify", "report"):
        if command == "report" and "--measure" in options:
            continue
        found = call(command, path, "--y-prob", "p", "--max-error", "0.2", *options)
        assert (found.exit_code, found.stdout) == (2, "")
        assert BAD[options] in found.stderr


def test_advice_speaks_of_clusters(file):
    said = call("certify", file, "--max-error", 0.06, "--cluster", "site").stdout
    assert "Next: judge rows of more clusters" in said
    assert "clusters like these would decide it" in said


def test_a_caution_names_no_option_that_clusters_do_not_go_with(tmp_path):
    rare = {"y": np.tile([1, 0, 0, 0, 0, 0, 0, 0], 60), "p": np.full(480, 0.125), "site": DATA["site"]}
    said = call("certify", write(rare, tmp_path / "r.csv", "csv"), *ASKED).stdout
    assert "For a limit that means something use --max-error 0.031." in said
    assert "--relative-to" not in said


def test_a_report_counts_clusters(file, tmp_path):
    out = tmp_path / "r.md"
    code = {"certified": 0, "refuted": 1, "undecided": 3}[certified(serial=1).verdict]
    found = answer("report", file, *ASKED, "--y-prob", "p", "--serial", "1", "--out", out, exit_code=code)
    assert found["result"]["clusters"] == {
        "type": "ClusterOptions",
        "target": "rows",
        "max_size": None,
        "serial": 1,
        "weighted": False,
    }
    assert found["result"]["models"][0]["certificate"]["upper"] == pytest.approx(certified(serial=1).upper, rel=1e-9)
    assert "480 rows are in 60 clusters" in out.read_text()
    said = call("report", file, *ASKED, "--y-prob", "p", "--out", out).stdout
    assert "Had they been taken as independent" in said
    both = answer("report", file, *ASKED, "--y-prob", "p", "--y-prob", "worse", "--out", out, exit_code=3)
    assert [each["certificate"]["clusters"]["count"] for each in both["result"]["models"]] == [60, 60]


# --- Do rows belong together? -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def alike(tmp_path_factory):
    """A file of rows that are alike within sites, and not within halves."""
    rng = np.random.default_rng(4)
    site = np.repeat(np.arange(80), 15)
    p = rng.uniform(0.3, 0.7, site.size).round(3)
    y = (rng.random(site.size) < p + rng.choice([-0.25, 0.25], 80)[site]).astype(int)
    columns = {"y": y, "p": p, "q": p**1.1, "site": site, "half": rng.integers(0, 40, site.size)}
    folder = tmp_path_factory.mktemp("alike")
    return write(columns, folder / "t.csv", "csv"), columns


@BOTH
def test_the_check_is_the_librarys(limit, alike):
    path, columns = alike
    asked = ("certify", path, "--y-prob", "p", "--max-error", "0.9", *limit)
    plain = answer(*asked)
    assert plain["check"] is None
    for name in ("site", "half"):
        found = answer(*asked, "--check-clusters", name)
        same = answer(*asked, "--cluster", "site") if name == "site" else plain
        assert found["result"]["upper"] == pytest.approx(same["result"]["upper"], rel=1e-9)
        expected = calibrant.check_independence(columns["y"], columns["p"], columns[name])
        for field in ("pvalue", "correlation", "upper_rows", "upper_clusters"):
            assert found["check"][field] == pytest.approx(getattr(expected, field), rel=1e-6, abs=1e-12)
        assert expected.rejected() == (name == "site")


def test_what_the_check_found_comes_before_advice(alike):
    path, _ = alike
    asked = ("certify", path, "--y-prob", "p", "--max-error", "0.2")
    lines = call(*asked, "--check-clusters", "site").stdout.splitlines()
    starts = [line.split(":")[0] for line in lines]
    assert starts.index("Caution") < starts.index("Next")
    said = "\n".join(lines)
    assert "more alike than independent rows would be" in said
    assert "The first is not to be trusted: the verdict counts clusters." in said
    other = call(*asked, "--check-clusters", "half").stdout
    assert "No sign that rows of one cluster are more alike" in other
    assert "This does not show that rows are independent" in other
    full = call(*asked, "--check-clusters", "site", "--verbose").stdout
    assert "more alike than independent rows" in full
    assert "the verdict counts clusters" in full


@BOTH
def test_a_verdict_on_rows_that_depend_counts_clusters(limit, alike):
    path, columns = alike
    check = calibrant.check_independence(columns["y"], columns["p"], columns["site"])
    between, above = (check.upper_rows + check.upper_clusters) / 2.0, check.upper_clusters + 0.01
    asked = ("certify", path, "--y-prob", "p", *limit, "--max-error")
    cases = (
        (between, 0, 3, "Undecided"),
        (above, 0, 0, "Certified"),
        (0.001, 1, 3, "Undecided"),
    )
    for max_error, alone, code, verdict in cases:
        assert call(*asked, max_error).exit_code == alone
        found = call(*asked, max_error, "--check-clusters", "site")
        named = call(*asked, max_error, "--cluster", "site")
        assert found.exit_code == named.exit_code == code
        lines, expected = found.stdout.splitlines(), named.stdout.splitlines()
        assert lines[0].startswith(verdict)
        assert [line for line in lines if line not in expected] == lines[-4:-2]  # what the check says, before advice
        full = call(*asked, max_error, "--check-clusters", "site", "--verbose").stdout
        assert full.startswith(verdict)
        document = answer(*asked, max_error, "--check-clusters", "site", exit_code=code)
        assert document["result"]["verdict"] == verdict.lower()
        assert document["result"]["clusters"]["count"] == 80
    assert call(*asked, between, "--check-clusters", "half").exit_code == 0
    named = call(*asked, above, "--check-clusters", "site", "--cluster", "site")
    assert (named.exit_code, "Caution: Rows of one cluster" in named.stdout) == (0, True)


@BOTH
def test_where_clusters_cannot_count_nothing_is_decided(limit, alike):
    path, columns = alike
    asked = ("certify", path, "--y-prob", "p", "--max-error", "0.9", *limit)
    for further in (("--relative-to", "events"), ("--measure", "smooth")):
        assert call(*asked, *further).exit_code == 0
        found = call(*asked, *further, "--check-clusters", "site")
        assert found.exit_code == 3
        assert found.stdout.startswith("Undecided: clusters have to count, and here they cannot: clusters are covered")
        assert "\nNext: calibrant certify --cluster site" in found.stdout
        document = answer(*asked, *further, "--check-clusters", "site", exit_code=3)
        assert (document["result"], document["check"]["type"]) == (None, "IndependenceCheck")
    by = call(*asked, "--by", "half", "--check-clusters", "site")
    expected = calibrant.certify(columns["y"], columns["p"], by=columns["half"], cluster=columns["site"], max_error=0.9)
    assert by.stdout.splitlines()[0] == expected.findings()[0]


@BOTH
def test_a_report_on_rows_that_depend_says_so_first(limit, alike, tmp_path):
    path, columns = alike
    check = calibrant.check_independence(columns["y"], columns["p"], columns["site"])
    between, above = (check.upper_rows + check.upper_clusters) / 2.0, check.upper_clusters + 0.01
    asked = ("--y-prob", "p", "--check-clusters", "site", *limit, "--out", tmp_path / "r.md", "--max-error")
    for max_error, code in ((between, 3), (above, 0), (0.001, 3)):
        found = call("report", path, *asked, max_error)
        assert found.exit_code == code
        lines = found.stdout.splitlines()[1:]  # after what was written
        assert lines[0].startswith("Caution: Rows of one cluster are more alike")
        assert lines.index("If rows were independent:") < len(lines) - 1
        full = call("report", path, *asked, max_error, "--verbose").stdout
        assert full.index("more alike than") < full.index("If rows were independent:\n")


def test_a_report_checks_every_model(alike, tmp_path):
    path, _ = alike
    asked = ("report", path, "--y-prob", "p", "--y-prob", "q", "--check-clusters", "site", "--out", tmp_path / "r.md")
    found = answer(*asked)
    assert [check["type"] for check in found["checks"]] == ["IndependenceCheck", "IndependenceCheck"]
    said = call(*asked).stdout
    assert "Model p: Caution: Rows of one cluster are more alike" in said
    assert "Model q: Caution: Rows of one cluster are more alike" in said


@BOTH
def test_a_check_of_a_column_that_is_none_names_it(limit, alike):
    path, _ = alike
    found = call("certify", path, "--y-prob", "p", "--max-error", "0.2", "--check-clusters", "none", *limit)
    assert (found.exit_code, found.stdout) == (2, "")
    assert "has no column 'none'" in found.stderr


@BOTH
def test_tests_and_plans_count_clusters(limit, alike):
    path, columns = alike
    cases: list[tuple[tuple[str, ...], dict[str, Any]]] = [
        ((), {}),
        (("--method", "asymptotic"), {"method": "asymptotic"}),
    ]
    for options, passed in cases:
        found = answer("test", path, "--y-prob", "p", "--cluster", "site", *options, *limit)
        expected = calibrant.calibration_test(columns["y"], columns["p"], cluster=columns["site"], rng=0, **passed)
        assert found["result"]["method"] == expected.method
        assert found["result"]["pvalue"] == pytest.approx(expected.pvalue, abs=0.02)
    refused = call("test", path, "--y-prob", "p", "--cluster", "site", "--test", "spiegelhalter")
    assert refused.exit_code == 2
    assert "--cluster does not go with --test spiegelhalter" in refused.stderr
    refused = call("test", path, "--y-prob", "p", "--cluster", "site", "--method", "exact")
    assert "--method exact needs independent rows" in refused.stderr


@pytest.mark.usefixtures("few_draws")
def test_a_plan_counts_clusters():
    asked = ("plan", "--max-error", "0.1", "--brier", "0.2", "--cluster-size", "20")
    found = answer(*asked, "--intra-cluster-correlation", "0.1")["result"]
    expected = calibrant.rows_needed(0.1, brier=0.2, cluster_size=20, intra_cluster_correlation=0.1)
    assert (found["clusters"], found["rows"]) == (expected.clusters, expected.rows)
    said = call(*asked, "--intra-cluster-correlation", "0.1").stdout
    assert f"About {expected.clusters:,} clusters of 20 rows" in said
    refused = call(*asked)
    assert refused.exit_code == 2
    assert "--intra-cluster-correlation is missing" in refused.stderr


@BOTH
@pytest.mark.usefixtures("few_draws")
def test_a_plan_takes_clusters_from_a_pilot_sample(limit, alike):
    path, columns = alike
    asked = ("plan", path, "--y-prob", "p", "--max-error", "0.1", "--cluster", "site", *limit)
    found = answer(*asked)
    expected = calibrant.rows_needed(0.1, y_prob=columns["p"], y_true=columns["y"], cluster=columns["site"])
    told = found["result"]
    assert (told["clusters"], told["rows"], told["cluster_size"]) == (expected.clusters, expected.rows, 15.0)
    assert told["intra_cluster_correlation"] == pytest.approx(expected.intra_cluster_correlation, rel=1e-9)
    assert (found["input"]["cluster"], found["input"]["rows"]) == ("site", 1200)
    assert f"About {expected.clusters:,} clusters of 15 rows" in call(*asked).stdout


@pytest.mark.usefixtures("few_draws")
def test_a_plan_takes_forecasts_of_clusters_from_a_file(alike):
    path, columns = alike
    sizes = ("--cluster-size", "20", "--intra-cluster-correlation", "0.1")
    found = answer("plan", path, "--y-prob", "p", "--max-error", "0.1", *sizes)["result"]
    expected = calibrant.rows_needed(0.1, y_prob=columns["p"], cluster_size=20, intra_cluster_correlation=0.1)
    assert (found["clusters"], found["rows"]) == (expected.clusters, expected.rows)


NO_PILOT = {
    ("{file}", "--y-true", "y"): "--y-true is for a pilot sample of clusters",
    ("{file}", "--pos-label", "1"): "--pos-label is for a pilot sample of clusters",
    ("--brier", "0.2", "--cluster", "site"): "--cluster names a column of a FILE",
    ("{file}", "--cluster", "site", "--intra-cluster-correlation", "0.1"): "leave --intra-cluster-correlation out",
    ("{file}", "--cluster", "site", "--cluster-size", "20"): "--cluster-size was given together with cluster",
    ("{file}", "--cluster", "none"): "has no column 'none'",
}


@pytest.mark.parametrize("options", NO_PILOT, ids=" ".join)
def test_a_plan_refuses_what_says_nothing_of_a_pilot_sample(options, alike):
    path, _ = alike
    typed = [str(path) if each == "{file}" else each for each in options]
    columns = ("--y-prob", "p") if str(path) in typed else ()
    found = call("plan", *typed, *columns, "--max-error", "0.1")
    assert (found.exit_code, found.stdout) == (2, "")
    assert NO_PILOT[options] in found.stderr


def test_models_are_compared_by_as_many_clusters_as_there_are(tmp_path):
    """Also by more than there may be groups."""
    rng = np.random.default_rng(6)
    p = rng.uniform(0.1, 0.9, 2600).round(2)
    columns = {"y": (rng.random(2600) < p).astype(int), "p": p, "q": np.sqrt(p), "case": np.arange(2600) // 2}
    path = write(columns, tmp_path / "t.csv", "csv")
    found = answer("compare", path, "--y-prob", "p", "--y-prob", "q", "--cluster", "case")
    assert [each["input"]["cluster"] for each in found["models"]] == ["case", "case"]
    expected = calibrant.compare_models(columns["y"], {"p": p, "q": columns["q"]}, cluster=columns["case"])
    assert found["differences"][0]["upper"] == pytest.approx(expected.differences[0].upper, rel=1e-9)


@BOTH
def test_repairs_are_chosen_and_promised_by_clusters(limit, file, tmp_path):
    out = tmp_path / "m.json"
    asked = (file, "--y-prob", "p", "--cluster", "site", *limit)
    found = answer("recalibrate", "choose", *asked, "--parts", "3")["result"]
    expected = calibrant.compare_recalibrators(DATA["p"], DATA["y"], cluster=DATA["site"], cv=3, rng=0)
    assert found["clusters"]["count"] == 60
    assert (found["recommended"], found["differences"][0]["upper"]) == (
        expected.recommended,
        pytest.approx(expected.differences[0].upper, abs=1e-9),
    )
    fitted = answer("recalibrate", "fit", *asked, "--out", out)
    model = calibrant.GuardedRecalibrator().fit(DATA["p"], DATA["y"])
    given = model.guarantee(target="these forecasts", cluster=DATA["site"])
    assert (fitted["result"], fitted["these_forecasts"]["upper"]) == (None, pytest.approx(given.upper, rel=1e-9))
    said = call("recalibrate", "fit", *asked, "--out", out).stdout
    assert "for these very ones issued again with new outcomes." in said
    assert "in the population" not in said
    assert "Of other clusters it says nothing: fit on half of them" in said
    assert str(given) in call("recalibrate", "fit", *asked, "--out", out, "--verbose").stdout

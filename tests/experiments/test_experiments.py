"""Every experiment at reduced size, the simulation in full against an independent version, and what is written."""

import csv
import dataclasses
import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from display_cases import check_words
from scipy.optimize import linprog

import calibrant
from calibrant.core import results
from calibrant.experiments import EXPERIMENTS, Report, Settings, Statement, run, write, write_index
from calibrant.experiments.populations import Population, middles, nearest_calibrated, partitions, random_populations
from calibrant.experiments.reports import SCHEMA, at_most_share

RUNS = 8


class Reports(dict[str, Report]):
    """Every experiment at reduced size, once it is asked for: workers that share these tests share the experiments."""

    def __missing__(self, name):
        self[name] = run(name, Settings(runs=RUNS))
        return self[name]


@pytest.fixture(scope="module")
def reports():
    return Reports()


@pytest.fixture(scope="module")
def authors():
    """The simulation in full, with the authors' random numbers."""
    return run("simulation", Settings(stream="authors"))


# --- Verdicts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_is_stated_is_measured(reports, name):
    report = reports[name]
    assert [str(statement) for statement in report.statements if not statement.holds] == []
    assert report.holds
    assert report.name == name
    assert len(report.statements) >= 3
    assert {statement.source for statement in report.statements} <= {"the paper", "this project"}
    for statement in report.statements:
        assert "nan" not in statement.measured
        assert "  " not in statement.claim + statement.measured


def test_the_simulation_with_the_authors_numbers_keeps_its_correlations(authors):
    assert authors.holds
    assert authors.settings["runs"] == len(authors.table["alpha"]) == 100
    # Found here, and confirmed by the independent version below; the published figure is an image.
    assert {
        gap: {measure: round(value, 2) for measure, value in values.items()}
        for gap, values in authors.findings["correlations"].items()
    } == {
        "risk_gap": {"smooth": 0.18, "cutoff": 0.96, "ece": 0.96},
        "monotone_risk_gap": {"smooth": 0.19, "cutoff": 0.85, "ece": 0.82},
    }


def smooth_by_linear_programming(chance, forecast):
    order = np.argsort(forecast)
    forecast, residual = forecast[order], (chance - forecast)[order]
    count = forecast.size
    steps = np.zeros((count - 1, count))
    steps[np.arange(count - 1), np.arange(count - 1)] = -1
    steps[np.arange(count - 1), np.arange(1, count)] = 1
    gaps = np.diff(forecast)
    found = linprog(-residual / count, np.vstack([steps, -steps]), np.concatenate([gaps, gaps]), bounds=(-1, 1))
    return -found.fun


def test_every_point_agrees_with_an_independent_version_of_appendix_b5(authors):
    import statsmodels.api as sm

    stream = np.random.RandomState(1)
    rows = []
    for number in range(100):
        x, population, alpha = stream.uniform(size=500), stream.uniform(size=1000), stream.uniform(size=1)
        # The chances must be those of the notebook to the last bit, for the draws to be the same.
        outcome = stream.binomial(1, alpha * (1 - 4 * x + 4 * x**2) + (1 - alpha) * x)
        fit = sm.Logit(outcome, sm.add_constant(x)).fit(disp=0)
        forecast = np.sort(fit.predict(sm.add_constant(population)))
        chance = ((1 - alpha) * population + alpha * (1 - 2 * population) ** 2)[
            np.argsort(fit.predict(sm.add_constant(population)))
        ]
        prefix = np.concatenate([[0], np.cumsum(chance - forecast)]) / 1000
        # What acting adds to the loss at each point; a monotone rule acts on the first or on the last few points.
        added = (0.35 - chance) / 1000
        sums = np.concatenate([[0], np.cumsum(added)])
        now = added[forecast >= 0.35].sum()
        best = min(sums.min(), (sums[-1] - sums).min())
        gaps = now - added[chance >= 0.35].sum(), now - best
        rows.append([alpha[0], np.ptp(prefix), np.abs(chance - forecast).mean(), *gaps])
        if number % 25 == 0:
            expected = smooth_by_linear_programming(chance, forecast)
            assert authors.table["smooth"][number] == pytest.approx(expected, abs=1e-7)
    names = ("alpha", "cutoff", "ece", "risk_gap", "monotone_risk_gap")
    for name, column in zip(names, np.transpose(rows), strict=True):
        assert authors.table[name] == pytest.approx(column, abs=1e-7), name


def test_the_authors_stream_leaves_numpys_global_one_alone(authors, monkeypatch):
    for name in ("seed", "set_state", "uniform", "random", "random_sample", "rand", "binomial"):
        monkeypatch.setattr(np.random, name, None)  # so that calling it would fail
    again = run("simulation", Settings(stream="authors", runs=3))
    assert (again.table["cutoff"] == authors.table["cutoff"][:3]).all()


def test_the_examples_have_their_exact_values(reports):
    report = reports["examples"]
    assert report.column("computed", example="stairs", quantity="cutoff") == pytest.approx(
        1 / (8 * np.array([2.0, 4, 8, 16, 32, 64, 128]) ** 2), rel=1e-9
    )
    assert report.findings["slopes"]["cutoff"] == pytest.approx(-2, abs=1e-9)


def test_figure_4_has_the_published_coefficients(reports):
    found = reports["platt"].findings
    assert (found["intercept"], found["slope"]) == pytest.approx((-0.405804, 0.930895), abs=1e-6)
    assert found["distance"] == pytest.approx(0.0716219, abs=1e-7)
    assert found["distance_low"] <= found["distance"] <= found["distance_high"] + 1e-12


def test_the_saving_is_certified_faster_than_cutoff(reports):
    report = reports["risk-gap"]
    slopes, needed = report.findings["slopes"], report.findings["rows_to_certify"]
    assert list(slopes) == ["calibrated, uniform", "calibrated, rare events", "shifted by 0.1", "constant"]
    for name in ("calibrated, uniform", "calibrated, rare events"):
        assert slopes[name]["direct"] < slopes[name]["cutoff"] - 0.1
    assert 300 < needed["calibrated, uniform"]["direct"]["0.05"] < 450
    assert needed["calibrated, uniform"]["direct"]["0.01"] < 4_500
    assert needed["calibrated, uniform"]["cutoff"]["0.01"] > 25_000
    assert needed["calibrated, uniform"]["paper"]["0.01"] is None  # a million rows are too few
    # Forecasts (1 - b)/1000 apart that are too low by b: the one just below the threshold gains b, the next less.
    gap, cutoff = (report.column(column, part="errors", forecaster="shifted") for column in ("risk_gap", "cutoff"))
    for each, shift in enumerate(np.geomspace(0.005, 0.4, 12)):
        gained = shift - np.arange(1_000) * (1 - shift) / 1_000
        assert cutoff[each] == pytest.approx(shift, abs=1e-12)
        assert gap[each] == pytest.approx(gained[gained > 0].sum() / 1_000, abs=1e-12)


def test_the_same_seed_gives_the_same_report_and_another_seed_another():
    first, again, other = (run("isotonic", Settings(rng=seed, runs=2)) for seed in (3, 3, 4))
    assert first.to_json() == again.to_json()
    assert first.to_json() != other.to_json()


# --- What the experiments rest on -------------------------------------------------------------------------------------


def test_pooling_four_things_has_fifteen_ways():
    assert [len(partitions(count)) for count in (1, 2, 3, 4, 5)] == [1, 2, 5, 15, 52]


def test_the_nearest_calibrated_predictor_is_calibrated_and_within_the_limits():
    for population in random_populations(np.random.default_rng(0), 40):
        nearest, distance = nearest_calibrated(population)
        for value in np.unique(nearest):
            pool = nearest == value
            assert population.share[pool] @ (population.chance - value)[pool] == pytest.approx(0, abs=1e-12)
        limits = calibrant.distance_from_calibration(population.law())
        assert limits.low - 1e-12 <= distance <= limits.high + 1e-12


def test_samples_come_from_the_population():
    population = Population.evenly("half", middles(4), np.array([0.0, 0.5, 0.5, 1.0]))
    sample = population.sample(np.random.default_rng(1), 40_000)
    assert sample.row_total == 40_000
    assert calibrant.cutoff_calibration_error(sample) == pytest.approx(population.cutoff(), abs=0.01)


def test_a_share_that_cannot_be_chance_is_noticed():
    assert at_most_share(0.05, 0.05, 400)
    assert at_most_share(0.09, 0.05, 400)
    assert not at_most_share(0.2, 0.05, 400)
    assert at_most_share(0.0, 0.05, 2)


# --- Reports ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_report_becomes_json_and_csv(reports, name):
    report = reports[name]
    summary = json.loads(report.to_json())
    assert summary["holds"] is True
    assert summary["settings"]["rng"] == 1
    lines = list(csv.reader(io.StringIO(report.to_csv())))
    assert lines[0] == list(report.table) == list(summary["data"])
    assert {len(line) for line in lines} == {len(report.table)}
    assert len(lines) - 1 == len(summary["data"][lines[0][0]]) > 5


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_figure_is_labelled_and_every_panel_can_be_read(reports, name):
    figure = reports[name].figure()
    check_words(figure)
    panels = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
    assert all(axes.get_xlabel() for axes in panels)
    assert panels[0].get_ylabel()
    assert figure.legends or all(axes.texts for axes in panels)  # a legend, or words beside the lines
    assert 0 < len(figure.texts[0].get_text()) < 90
    assert figure.get_size_inches()[0] <= 7.2  # the width of a page


def test_figures_do_not_load_pyplot():
    code = (
        "import sys; from calibrant.experiments import Settings, run; run('examples').figure(); "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_files_are_written_and_can_be_read(reports, tmp_path):
    written = write(reports["bands"], tmp_path / "new")
    assert [path.name for path in written] == ["bands.png", "bands.svg", "bands.csv", "bands.json"]
    assert written[0].read_bytes().startswith(b"\x89PNG")
    assert ElementTree.parse(written[1]).getroot().tag.endswith("svg")
    assert json.loads(written[3].read_text())["name"] == "bands"


def test_the_index_shows_every_statement_and_which_do_not_agree(reports, tmp_path):
    chosen = [reports["examples"], reports["platt"]]
    broken = dataclasses.replace(chosen[1], statements=(Statement("A | B", "the paper", "1 < 0", "1 is <not>", False),))
    page, text = write_index([chosen[0], broken], tmp_path)
    count = len(chosen[0].statements)
    for content in (page.read_text(), text.read_text()):
        assert f"{count} of {count + 1} statements agree" in content
        assert content.count("DOES NOT AGREE") == 1
        assert "examples.csv" in content
        assert f"calibrant reproduce platt --rng 1 --runs {RUNS} --out ." in content
        assert "calibrant reproduce examples --rng 1 --out ." in content
    assert "1 is &lt;not&gt;" in page.read_text()
    assert "A \\| B" in text.read_text()


def test_a_report_prints_what_is_stated_and_measured(reports):
    text = str(reports["platt"])
    assert text.startswith(
        "platt: Platt scaling stays wrong however many rows there are (Figure 4)\n  agrees: Figure 4"
    )
    assert "Measured: -0.405804 and 0.930895." in text


def test_titles_and_items_are_those_of_the_list(reports):
    for name, (item, title) in EXPERIMENTS.items():
        assert reports[name].title == title
        assert reports[name].item.startswith(item)


# --- Bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rng": -1}, "rng is -1; it must be at least 0"),
        ({"runs": 1}, "runs is 1; at least 2 are needed"),
        ({"stream": "theirs"}, "stream is 'theirs'; choose one of ours, authors"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Settings(**settings)


def test_unknown_experiments_and_streams_are_refused():
    with pytest.raises(ValueError, match="there is no experiment 'nonsense'; choose one of bands, relations"):
        run("nonsense")
    with pytest.raises(ValueError, match="stream='authors' is known for 'simulation' only"):
        run("platt", Settings(stream="authors"))


def test_reports_of_experiments_have_the_schema_of_results():
    # Experiments use public names only, and so write it again.
    assert results.SCHEMA == SCHEMA

"""Corollary 4.1: fit on one half, judge on the other, keep the model only if it is certified."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import calibrant
from calibrant.experiments.figures import COLOURS, WIDTH, headline, shared_legend, tidy
from calibrant.experiments.populations import Population, middles
from calibrant.experiments.reports import PAPER, PROJECT, Report, Settings, Statement, as_table, at_most_share

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 200
LIMIT = 0.1
DELTA = 0.025
GRID = 200
SIZES = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 120_000, 150_000, 200_000, 500_000)
Method = Literal["paper", "hoeffding", "adaptive"]
METHODS: dict[Method, str] = {
    "paper": "the paper's threshold",
    "hoeffding": "Hoeffding",
    "adaptive": "adaptive",
}
SOURCES = {"paper": PAPER, "hoeffding": PROJECT, "adaptive": PROJECT}


def _populations() -> dict[str, Population]:
    """Return features x with the chance of an event; the model is a logistic curve in x."""
    x = middles(GRID)
    return {
        "fits": Population.evenly("logistic truth", x, 1.0 / (1.0 + np.exp(3.0 - 6.0 * x))),
        # The likeliest logistic curve has a Cutoff error of 0.1086 here, just above the limit.
        "does not fit": Population.evenly("mostly a parabola", x, 0.85 * (1.0 - 2.0 * x) ** 2 + 0.15 * x),
    }


def run(settings: Settings) -> Report:
    """Go through both stages on samples of growing size, with the paper's threshold and with ours."""
    runs = settings.runs or RUNS
    generator = settings.generator()
    rows: list[tuple[Any, ...]] = []
    for case, population in _populations().items():
        for size in settings.track(SIZES):
            outcomes = np.array([_both_stages(population, generator, size) for _ in range(runs)])
            for position, method in enumerate(METHODS):
                rows.append((case, method, size, *outcomes[:, position].mean(axis=0)))
    names = ("case", "method", "rows", "kept", "within_limit", "kept_wrongly")
    table = as_table(names, rows)
    needed = {method: _rows_to_keep(table, method) for method in METHODS}
    return Report(
        name="two-stage",
        title="Keep a model only if it is certified",
        item="Corollary 4.1",
        settings=settings.record(runs, limit=LIMIT, delta=DELTA),
        statements=_statements(table, needed, runs),
        table=table,
        findings={"rows_to_keep": needed, "smallest_limit": {str(size): _smallest_limit(size) for size in SIZES}},
        size=(WIDTH, 3.9),
        draw=_draw,
    )


def _both_stages(population: Population, generator: np.random.Generator, size: int) -> list[tuple[bool, bool, bool]]:
    """Return for each method: was the model kept, is the result's error within the limit, was it kept wrongly?"""
    fitting = population.sample(generator, size - size // 2)
    model = calibrant.PlattRecalibrator(smoothing=False).fit(fitting)  # logistic regression on x
    forecast = model.predict(population.forecast)
    counted, events = population.counts(generator, size // 2)
    judging = population.tally(counted, events, forecast=forecast)
    constant = events.sum() / counted.sum()
    error_of_model = population.cutoff(forecast)
    error_of_constant = abs(float(population.share @ population.chance) - constant)
    found = []
    for method in METHODS:
        upper = calibrant.confidence_interval(
            judging, confidence_level=1.0 - DELTA, alternative="less", method=method
        ).upper
        kept = upper <= LIMIT
        within = (error_of_model if kept else error_of_constant) <= LIMIT
        found.append((kept, within, kept and not within))
    return found


def _smallest_limit(size: int) -> float:
    """Return the smallest limit that the mean outcome of the second half can promise."""
    return math.sqrt(math.log(2.0 / DELTA) / (2.0 * (size // 2)))


def _rows_to_keep(table: dict[str, Any], method: str) -> int | None:
    """Return the smallest size from which on a model that fits is kept nine times out of ten."""
    kept = (table["case"] == "fits") & (table["method"] == method) & (table["kept"] >= 0.9)
    return int(table["rows"][kept].min()) if kept.any() else None


def _statements(table: dict[str, Any], needed: dict[Method, int | None], runs: int) -> tuple[Statement, ...]:
    promised = np.array([_smallest_limit(size) <= LIMIT for size in table["rows"]])
    statements = []
    for method, words in METHODS.items():
        least = float(table["within_limit"][promised & (table["method"] == method)].min())
        statements.append(
            Statement(
                item="Corollary 4.1",
                source=SOURCES[method],
                claim=f"Cutoff of the result is at most {LIMIT} in {100 * (1 - 2 * DELTA):g}% of cases, with {words}",
                measured=f"in {100 * least:.1f}% of {runs} where it does worst",
                holds=at_most_share(1.0 - least, 2.0 * DELTA, runs),
            )
        )
    wrong = float(table["kept_wrongly"].max())
    statements.append(
        Statement(
            item="Corollary 4.1",
            source=PAPER,
            claim="a model whose error is above the limit is hardly ever kept",
            measured=f"kept in {100 * wrong:.1f}% of {runs} where it is kept most, with an error just above the limit",
            holds=at_most_share(wrong, DELTA, runs),
        )
    )
    statements.append(
        Statement(
            item="Two stages",
            source=PROJECT,
            claim="without the 20, a model that fits is kept with less than a fiftieth of the rows",
            measured=", ".join(f"{words} {needed[method] or 0:,}" for method, words in METHODS.items())
            + " rows to keep it in 90% of cases",
            holds=needed["adaptive"] is not None
            and (needed["paper"] is None or 50 * needed["adaptive"] <= needed["paper"]),
        )
    )
    return tuple(statements)


def _draw(report: Report, figure: Figure) -> None:
    headline(figure, "A model that fits is kept once there are rows enough, a wrong one never")
    panels = figure.subplots(1, 2, sharey=True)
    styles: dict[Method, tuple[str, str]] = {
        "paper": (COLOURS.ink, "o"),
        "hoeffding": (COLOURS.highlight, "s"),
        "adaptive": (COLOURS.curve, "^"),
    }
    titles = {"fits": "The model fits", "does not fit": "The model does not fit"}
    for axes, (case, title) in zip(panels, titles.items(), strict=True):
        for method, (colour, marker) in styles.items():
            size = report.column("rows", case=case, method=method)
            kept = report.column("kept", case=case, method=method)
            axes.plot(
                size, kept, color=colour, marker=marker, markersize=4, linewidth=1, label=f"kept: {METHODS[method]}"
            )
            within = report.column("within_limit", case=case, method=method)
            axes.plot(size, within, color=COLOURS.other, marker=marker, markersize=3, linewidth=0.8, linestyle="--")
        axes.plot([], [], color=COLOURS.other, linestyle="--", label=f"Cutoff of the result at most {LIMIT}")
        axes.axhline(1.0 - 2.0 * DELTA, color=COLOURS.ink, linestyle=":", linewidth=0.8, label="promised for that")
        axes.set_xscale("log")
        tidy(axes, xlabel="rows", ylabel="share of runs" if case == "fits" else "", title=title)
    shared_legend(figure, panels, columns=3)

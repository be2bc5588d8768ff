"""How the page about a validation study looks: words and numbers for its templates, and its figures."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np

from calibrant.core.words import level_said, printable, rounded
from calibrant.decisions.benefits import usual_thresholds
from calibrant.reports.figures import Styles
from calibrant.reports.models import ONE_MODEL
from calibrant.reports.pages import Verbatim, drawings_shown, filled_markdown, filled_page
from calibrant.reports.validation_figures import draw_validation
from calibrant.reports.validation_results import ValidationSummary
from calibrant.rows.tally import Tally
from calibrant.validations.findings import findings_of
from calibrant.validations.results import Validation

FIRST = ("observed_expected_ratio", "intercept_at_unit_slope", "slope", "ici", "auroc", "brier_scaled", "cutoff")
"""The statistics beside the curve, on the first screen."""

SHORT = {"auroc": "AUROC", "cutoff": "Cutoff error", "brier_scaled": "Scaled Brier"}
"""Shorter names for there."""

WAYS = {
    "exact": "exact binomial limits of the number of events",
    "poisson": "exact Poisson limits of the number of events",
    "profile": "profile likelihood",
    "sandwich": "sandwich standard errors",
    "wald": "standard errors on the logarithmic scale",
    "normal": "standard errors from what each row adds",
    "delong": "DeLong's standard error",
    "pairs": "pairs that share no row, since the ranking has no exception",
    "delta": "standard errors from what each row adds",
    "corrected": "resamples of the rows, less the noise that makes distances larger",
    "percentile": "quantiles over resamples of the rows",
    "greenwood": "Greenwood's limits of the risk, over the mean forecast",
    "bootstrap": "quantiles over resamples of the rows",
    "guarantee": "a guarantee at every number of rows (docs/certify.md)",
}
"""How limits were found, for people."""

_THRESHOLDS = 12


def render_validation(summary: ValidationSummary, tally: Tally) -> str:
    """Return the page: one file, complete, that loads nothing from elsewhere."""
    styles = Styles()
    drawn = drawings_shown(draw_validation(summary.validation, tally, styles))
    return filled_page(
        "validation.html.j2", styles, summary, drawings={each["name"]: each for each in drawn}, **_view(summary)
    )


def render_validation_markdown(summary: ValidationSummary) -> str:
    """Return the page without its plots as Markdown."""
    table = Verbatim(summary.validation.to_markdown())
    return filled_markdown("validation.md.j2", **_view(summary), table=table)


def _view(summary: ValidationSummary) -> dict[str, Any]:
    """Return everything that templates place, in words."""
    found = summary.validation
    said = findings_of(found)
    lines = [_row(line) for line in found.table()]
    return {
        "summary": summary,
        "unnamed": ONE_MODEL,
        "about": found.headline(),
        "level": level_said(found.confidence_level),
        "state": said.state,
        "label": said.label,
        "headline": f"{said.headline[:1].upper()}{said.headline[1:]}",
        "lines": said.lines,
        "next_step": f"{said.next_step[:1].upper()}{said.next_step[1:]}",
        "notes": [f"{note}." for note in found.notes],
        "first": [{**line, "title": SHORT.get(line["name"], line["title"])} for line in lines if line["name"] in FIRST],
        "statistics": lines,
        "tests": _tests(found),
        "benefit": _benefit(found),
        "papers": [
            {"tab": "Markdown", "heading": "As Markdown, for word processors", "code": f"{found.to_markdown()}\n"},
            {"tab": "LaTeX", "heading": "As LaTeX", "code": f"{found.to_latex()}\n"},
        ],
        "known": sum(item.answer is not None for item in summary.items),
        "method": _method(found),
        "ways": _ways(summary),
        "facts": [
            ("Data fingerprint", summary.fingerprint, True),
            ("Rows", f"{found.rows:,}", False),
            ("Seed", str(found.rng), False),
            ("Versions", ", ".join(summary.versions), False),
        ],
    }


def _row(line: Any) -> dict[str, str]:
    estimate, limits = line.written(3)
    return {
        "name": line.name,
        "title": line.title,
        "estimate": estimate,
        "limits": limits,
        "ideal": "-" if line.ideal is None else f"{line.ideal:g}",
        "way": "-" if line.interval is None else line.interval,
        "meaning": line.meaning,
    }


def _tests(found: Validation) -> list[dict[str, str]]:
    if found.tests is None:
        return []
    named = (
        ("Weak calibration", "intercept 0 and slope 1", found.tests.weak),
        ("Calibration in the large", "intercept 0 where the slope is 1", found.tests.in_the_large),
        ("Slope", "slope 1, whatever the intercept", found.tests.slope),
    )
    return [
        {
            "title": title,
            "meaning": meaning,
            "statistic": rounded(test.statistic, 2),
            "degrees": str(test.degrees_of_freedom),
            "pvalue": "below 0.001" if test.pvalue < 0.001 else rounded(test.pvalue, 3),
        }
        for title, meaning, test in named
    ]


def _benefit(found: Validation) -> list[dict[str, str]]:
    """Return net benefit at some of the thresholds."""
    benefit = found.net_benefit
    if benefit is None:
        return []
    at = np.atleast_1d(benefit.threshold)
    places = np.unique(np.linspace(0, at.size - 1, min(at.size, _THRESHOLDS)).round().astype(int)).tolist()
    rows = []
    for place in places:
        number, everybody, gain, avoided = (
            float(np.atleast_1d(each)[place])
            for each in (benefit.net_benefit, benefit.treat_all, benefit.gain, benefit.interventions_avoided)
        )
        limits = "-"
        if benefit.net_benefit_lower is not None and benefit.net_benefit_upper is not None:
            ends = (benefit.net_benefit_lower, benefit.net_benefit_upper)
            limits = " to ".join(rounded(float(np.atleast_1d(end)[place]), 3) for end in ends)
        rows.append(
            {
                "threshold": f"{at[place]:.3g}",
                "net_benefit": rounded(number, 3),
                "limits": limits,
                "treat_all": rounded(everybody, 3),
                "gain": rounded(gain, 3, sign="+"),
                "avoided": rounded(avoided, 1),
            }
        )
    return rows


def _method(found: Validation) -> list[str]:
    level = level_said(found.confidence_level)
    ways: dict[str, list[str]] = {}
    for line in found.table():
        if line.interval is not None:
            ways.setdefault(line.interval, []).append(line.title)
    lines = [f"{', '.join(titles)}: {WAYS.get(way, way)}." for way, titles in ways.items()]
    who = "rows" if found.clusters is None else "clusters"
    return [
        f"Each pair of {level} limits holds by itself, for many {who}, not all of them together; those of the Cutoff "
        f"calibration error hold at every number of {who}.",
        *lines,
        f"The calibration curve is {_article(found.smoother)}; ICI, E50, E90, Emax and ECI are distances of it from "
        "the diagonal, over the rows. Noise alone makes them larger than 0.",
        f"All of this assumes that {who} are independent, and that the model was fixed without looking at these "
        "outcomes.",
    ]


def _article(smoother: str) -> str:
    return {
        "isotonic": "an isotonic regression",
        "loess": "a loess curve, local parabolas on three quarters of the rows, as R's loess",
        "lowess": "a lowess curve, local lines on two thirds of the rows, as R's lowess",
        "splines": "a logistic regression on restricted cubic splines with five knots",
    }.get(smoother, smoother)


def _thresholds(found: Validation) -> list[float] | None:
    """Return the thresholds of net benefit, where they are not the usual ones."""
    if found.net_benefit is None or np.array_equal(found.net_benefit.threshold, usual_thresholds()):
        return None
    at: list[float] = np.atleast_1d(found.net_benefit.threshold).tolist()
    return at


def _ways(summary: ValidationSummary) -> list[dict[str, str]]:
    """Return code that makes the page again, from data that the reader has."""
    found = summary.validation
    options: dict[str, Any] = {
        "smoother": found.smoother,
        "confidence_level": found.confidence_level,
        "n_resamples": found.n_resamples,
        "extremes": found.extremes,
        "max_error": None if found.certificate is None else found.certificate.max_error,
        "rng": found.rng,
        "thresholds": _thresholds(found),
    }
    named = {"title": summary.title, "name": summary.name, "source": summary.source, "date": summary.date}
    given = {option: value for option, value in {**options, **named}.items() if value is not None}
    rows = "y_true,\n    y_prob,\n"
    if found.horizon is not None:
        rows = f"calibrant.horizon(time, event, y_prob, at={found.horizon!r}),\n"
    columns = ("cluster", found.clusters is not None), ("sample_weight", found.weighted and found.horizon is None)
    held = "".join(f"    {name}={name},\n" for name, there in columns if there)
    listed = "".join(f"    {option}={value!r},\n" for option, value in given.items())
    code = (
        "import calibrant\n\n"
        f"report = calibrant.ValidationReport.from_predictions(\n    {rows}{held}{listed})\n"
        'report.write_html("validation.html")\nreport.validation.frame()\n'
    )
    typed = {option: value for option, value in given.items() if option not in ("name", "source")}
    typed |= {"thresholds": ",".join(map(str, given["thresholds"]))} if "thresholds" in given else {}
    typed["resamples"] = typed.pop("n_resamples")
    typed["extremes"] = str(typed["extremes"]).replace("_", "-")
    line = [
        f"calibrant validate {shlex.quote(printable(summary.source or 'predictions.csv'))}",
        *(["--y-true y_true --y-prob y_prob"] if found.horizon is None else []),
        *([f"--time time --event event --at {found.horizon:g} --y-prob y_prob"] if found.horizon is not None else []),
        *(["--cluster cluster"] if found.clusters is not None else []),
        *(["--weight sample_weight"] if found.weighted and found.horizon is None else []),
        *(f"--{option.replace('_', '-')} {shlex.quote(str(value))}" for option, value in typed.items()),
        "--out validation.html",
    ]
    return [
        {"tab": "Python", "heading": "In Python", "code": code},
        {"tab": "Command line", "heading": "On the command line", "code": " \\\n    ".join(line) + "\n"},
    ]

"""How the page about a validation study looks: words and numbers for its templates, and its figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.core.types import FloatArray
from calibrant.core.words import level_said, rounded
from calibrant.reports.figures import Styles
from calibrant.reports.models import ONE_MODEL
from calibrant.reports.pages import Verbatim, drawings_shown, filled_markdown, filled_page
from calibrant.reports.validation_again import ways_to_validate_again
from calibrant.reports.validation_figures import draw_validation
from calibrant.reports.validation_results import ValidationSummary
from calibrant.rows.tally import Tally
from calibrant.validations.findings import findings_of
from calibrant.validations.results import Validation

FIRST = ("calibration_in_the_large", "observed_expected_ratio", "slope", "ici", "auroc", "brier_scaled", "cutoff")
"""The statistics beside the curve, on the first screen."""

SHORT = {"cutoff": "Cutoff error", "brier_scaled": "Scaled Brier"}
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
    "guarantee": "a guarantee at every number of rows (docs/how-to/certify.md)",
}
"""How limits were found, for people."""

MANY_THRESHOLDS = 12
"""More are too many for a table, which then has the round ones."""

ROUND = 0.05
"""What round thresholds are multiples of."""


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
        "benefit_said": (
            "Each pair of limits in this table holds at its threshold by itself; the band of the figure and the bar "
            "on its axis hold at all thresholds together."
        ),
        "papers": [
            {"tab": "Markdown", "heading": "As Markdown, for word processors", "code": f"{found.to_markdown()}\n"},
            {"tab": "LaTeX", "heading": "As LaTeX", "code": f"{found.to_latex()}\n"},
        ],
        "known": sum(item.answer is not None for item in summary.items),
        "method": _method(found),
        "ways": ways_to_validate_again(summary),
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
    """Return net benefit, and what it gains, at round thresholds."""
    benefit = found.net_benefit
    if benefit is None:
        return []
    frame = benefit.columns()

    def limits(name: str, place: int) -> str:
        if f"{name}_lower" not in frame:
            return "-"
        return " to ".join(rounded(float(frame[f"{name}_{end}"][place]), 3) for end in ("lower", "upper"))

    return [
        {
            "threshold": f"{frame['threshold'][place]:.3g}",
            "net_benefit": rounded(float(frame["net_benefit"][place]), 3),
            "limits": limits("net_benefit", place),
            "treat_all": rounded(float(frame["treat_all"][place]), 3),
            "gain": rounded(float(frame["gain"][place]), 3, sign="+"),
            "gain_limits": limits("gain", place),
            "avoided": rounded(float(frame["interventions_avoided"][place]), 1),
        }
        for place in _shown_thresholds(frame["threshold"])
    ]


def _shown_thresholds(at: FloatArray) -> list[int]:
    """Return which thresholds a table shows: all if they are few, else round ones, else some from end to end."""
    if at.size <= MANY_THRESHOLDS:
        return list(range(at.size))
    is_round = np.abs(at / ROUND - np.round(at / ROUND)) < 1e-9
    if 3 <= np.count_nonzero(is_round) <= 2 * MANY_THRESHOLDS:
        places = np.flatnonzero(is_round)
    else:
        places = np.unique(np.linspace(0, at.size - 1, MANY_THRESHOLDS).round().astype(int))
    found: list[int] = places.tolist()
    return found


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

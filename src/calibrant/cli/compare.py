"""``calibrant compare``: several models side by side, and which of them is certified."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import combinations
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.inputs import Source, explained, takes_rows
from calibrant.cli.options import takes_limits
from calibrant.cli.outputs import DONE, NOT_SHOWN, BadInput, Command, Show, table
from calibrant.cli.rows import Rows, open_models
from calibrant.core.words import printable

if TYPE_CHECKING:
    from calibrant.certificates.results import Certificate, ConfidenceInterval


@click.command(
    "compare",
    short_help="Several models, and which are certified.",
    cls=Command,
    examples="""
    calibrant compare preds.csv --y-true y --y-prob old --y-prob new --max-error 0.05
    calibrant compare january.parquet february.parquet --y-true y --y-prob p
    """,
)
@click.option(
    "--max-error",
    type=click.FloatRange(0.0, 1.0),
    help="Certify each model against this, so that one may be chosen; exit with 1 when none is certified.",
)
@takes_limits
@takes_rows(by=False, files=True, models=True)
def command(
    sources: list[Source], show: Show, y_prob: tuple[str, ...], max_error: float | None, limits: dict[str, Any]
) -> None:
    """Compare models: several columns of forecasts in one FILE, or several FILEs, or both.

    Every limit is computed at 1 - (1 - confidence level) / K for K models, so that all of them hold together: whichever
    model you choose after looking, its certificate stands. The interval of a difference follows from the limits of the
    two errors. All of it assumes independent rows and models fixed without looking at them.
    """
    with ExitStack() as held:
        models = [rows for source in sources for rows in held.enter_context(open_models(source, y_prob))]
        if len(models) < 2:
            raise BadInput("there is one model only; name several columns with --y-prob, or several files")
        names = _names(models)
        confidence_level = limits["confidence_level"]
        each_level = 1.0 - (1.0 - confidence_level) / len(models)
        found = [_judged(rows, {**limits, "confidence_level": each_level}, max_error) for rows in models]
        facts = [rows.facts() for rows in models]
    differences = _differences(names, [interval for interval, _, _ in found])
    certificates = {name: each for name, (_, each, _) in zip(names, found, strict=True) if each is not None}
    passed = [name for name, each in certificates.items() if each]
    # Among the certified, all of which one may choose, the best forecasts: the lowest Brier score counts both virtues.
    brier = {name: score for name, (_, _, score) in zip(names, found, strict=True)}
    chosen = min(passed, key=brier.__getitem__) if passed else None
    lines = [_table(names, found, limits["measure"], confidence_level), "", _difference_table(differences)]
    if max_error is not None:
        lines += ["", _choice(chosen, passed, max_error, confidence_level, len(models))]
    lines.append(f"This assumes that {'; '.join(found[0][0].assumptions)}.")
    show.answer(
        "\n".join(lines),
        exit_code=DONE if max_error is None or passed else NOT_SHOWN,
        confidence_level=confidence_level,
        max_error=max_error,
        chosen=chosen,
        models=[
            {"name": name, "input": each, "interval": interval, "certificate": certificate, "brier": score}
            for name, each, (interval, certificate, score) in zip(names, facts, found, strict=True)
        ],
        differences=differences,
    )


def _names(models: list[Rows]) -> list[str]:
    """Name each model by what sets it apart: its column, its file, or both."""
    files = {rows.source.file for rows in models}
    columns = {rows.source.y_prob for rows in models}
    names = []
    for rows in models:
        parts = [rows.source.name] if len(files) > 1 else []
        if len(columns) > 1 or not parts:
            parts.append(str(rows.source.y_prob))
        names.append(" ".join(parts))
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise BadInput(f"the model {repeated!r} was named twice")
    return names


def _judged(
    rows: Rows, settings: dict[str, Any], max_error: float | None
) -> tuple[ConfidenceInterval, Certificate | None, float]:
    """Return limits, a certificate where one is asked for, and the Brier score of one model."""
    import calibrant
    from calibrant.rows.intake import as_source
    from calibrant.rows.refinement import some_table

    with explained(rows.source):
        interval = calibrant.confidence_interval(**rows.data, **settings)
        certificate = None if max_error is None else calibrant.certify(**rows.data, max_error=max_error, **settings)
        table = some_table(as_source(**{"y_prob": None, "sample_weight": None, "pos_label": None, **rows.data}))
        return interval, certificate, float(table.residual_square.sum()) / table.weight_total


def _differences(names: list[str], intervals: list[ConfidenceInterval]) -> list[dict[str, Any]]:
    """Return what the limits of two errors say about their difference."""
    return [
        {
            "first": names[i],
            "second": names[j],
            "estimate": intervals[i].estimate - intervals[j].estimate,
            "lower": intervals[i].lower - intervals[j].upper,
            "upper": intervals[i].upper - intervals[j].lower,
        }
        for i, j in combinations(range(len(names)), 2)
    ]


def _table(names: list[str], found: list[tuple[Any, Any, float]], measure: str, confidence_level: float) -> str:
    from calibrant.certificates.results import MEASURE_NAMES
    from calibrant.core.words import level_said, measured, rounded_down, rounded_up

    rows = []
    for name, (interval, certificate, brier) in zip(names, found, strict=True):
        limits = (measured(interval.estimate, 4), rounded_down(interval.lower), rounded_up(interval.upper))
        verdict = "" if certificate is None else certificate.verdict
        rows.append((name, f"{interval.n:,}", *limits, f"{brier:.4f}", verdict))
    title = (
        f"The {MEASURE_NAMES[measure]} of {len(names)} models, with limits that hold for all of them together with "
        f"{level_said(confidence_level)} confidence:"
    )
    last = "verdict" if rows[0][-1] else ""
    return "\n".join([title, table(("model", "rows", "estimate", "from", "to", "Brier", last), rows)])


def _difference_table(differences: list[dict[str, Any]]) -> str:
    from calibrant.core.words import rounded_down, rounded_up

    rows = []
    for each in differences:
        sure = each["lower"] > 0.0 or each["upper"] < 0.0
        better = each["second"] if each["lower"] > 0.0 else each["first"]
        rows.append(
            (
                f"{each['first']} - {each['second']}",
                f"{each['estimate']:+.4f}",
                rounded_down(each["lower"]),
                rounded_up(each["upper"]),
                f"{better} is better calibrated" if sure else "not told apart",
            )
        )
    title = "Differences of the errors, with limits that follow from those above:"
    return "\n".join([title, table(("difference", "estimate", "from", "to", ""), rows)])


def _choice(chosen: str | None, passed: list[str], max_error: float, level: float, count: int) -> str:
    from calibrant.core.words import level_said, shown

    if chosen is None:
        return f"None of the {count} models is certified to have an error of at most {shown(max_error)}."
    others = f" ({', '.join(printable(name) for name in passed if name != chosen)} too)" if len(passed) > 1 else ""
    return (
        f"Certified: {printable(chosen)}{others}, an error of at most {shown(max_error)} with {level_said(level)} "
        f"confidence, having chosen among {count}. Of the certified models it has the lowest Brier score. (Verdicts "
        "are one-sided, so that they may come a little before the limits shown do.)"
    )

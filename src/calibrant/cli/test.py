"""``calibrant test``: are the forecasts perfectly calibrated?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.inputs import Source, explained, takes_rows
from calibrant.cli.options import SEED
from calibrant.cli.outputs import DONE, NOT_SHOWN, BadInput, Command, Show, table
from calibrant.cli.rows import open_rows
from calibrant.core.words import printable

if TYPE_CHECKING:
    from calibrant.certificates.results import CalibrationTest


@click.command(
    "test",
    short_help="Are the forecasts perfectly calibrated?",
    cls=Command,
    examples="""
    calibrant test preds.csv
    calibrant test preds.csv --y-true label --y-prob score --level 0.01
    calibrant test preds.csv --test spiegelhalter --json
    """,
)
@click.option(
    "--test",
    "kind",
    type=click.Choice(["cutoff", "spiegelhalter"]),
    default="cutoff",
    show_default=True,
    help="cutoff looks at every interval of forecasts, spiegelhalter in one direction only.",
)
@click.option(
    "--method",
    type=click.Choice(["auto", "exact", "asymptotic"]),
    default="auto",
    show_default=True,
    help="For the cutoff test: by simulation, or by its law for many rows.",
)
@click.option(
    "--level",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Reject when the p-value is at most this.",
)
@click.option(
    "--resamples",
    type=click.IntRange(min=999),
    default=9999,
    show_default=True,
    help="Simulated data sets, for exact where not all outcomes can be gone through.",
)
@SEED
@takes_rows()
def command(source: Source, show: Show, kind: str, method: str, level: float, resamples: int, seed: int) -> None:
    """Test whether the forecasts are perfectly calibrated.

    The exit code is 1 when that is rejected. A rejection says that the forecasts are off, not by how much, and with
    many rows a harmless error is rejected too; no rejection is no proof of calibration. To say that the error is
    small, use "calibrant certify". With --by, each group is tested at the level divided by the number of groups.
    """
    if kind == "spiegelhalter" and source.weight is not None:
        raise BadInput("--weight does not go with --test spiegelhalter, which knows no weights")
    with open_rows(source) as rows, explained(rows.source):
        found = rows.by_group(lambda data: _tested(data, kind, method, resamples, seed))
        whole = _tested(rows.data, kind, method, resamples, seed)
        facts = rows.facts()
    each_level = level / max(len(found), 1)
    rejected = [label for label, each in found if each.pvalue <= each_level]
    if found:
        text = _per_group(found, rejected, each_level, level, rows.source.by)
    else:
        rejected = [None] if whole.pvalue <= level else []
        said = whole.said(level)
        text = f"{'Rejected' if rejected else 'Not rejected'}: {said[0].lower()}{said[1:]}"
    show.answer(
        text,
        exit_code=NOT_SHOWN if rejected else DONE,
        input=facts,
        level=level,
        rejected=bool(rejected),
        result=whole,
        groups=[{"group": label, "rejected": each.pvalue <= each_level, "result": each} for label, each in found],
    )


def _tested(data: dict[str, Any], kind: str, method: str, resamples: int, seed: int) -> CalibrationTest:
    import calibrant

    if kind == "spiegelhalter":
        return calibrant.certificates.spiegelhalter_test(data["y_true"], data.get("y_prob"))
    return calibrant.calibration_test(**data, method=method, n_resamples=resamples, rng=seed)


def _per_group(
    found: list[tuple[Any, CalibrationTest]], rejected: list[Any], each_level: float, level: float, by: str | None
) -> str:
    rows = [
        (
            str(label),
            f"{each.n:,}",
            f"{each.statistic:.4g}",
            f"{each.pvalue:.4g}",
            "rejected" if label in rejected else "not rejected",
        )
        for label, each in found
    ]
    verdict = "Rejected" if rejected else "Not rejected"
    which = f" in {', '.join(printable(label) for label in rejected)}" if rejected else " in any of them"
    said = "is rejected" if rejected else "is not rejected"
    return "\n".join(
        [
            f"{verdict}: perfect calibration {said}{which}, at the {100.0 * level:g}% level for all {len(found)} "
            f"groups of {by!r} together (each at {100.0 * each_level:.3g}%).",
            table(("group", "rows", "statistic", "p-value", "verdict"), rows),
            f"This assumes that {'; '.join(found[0][1].assumptions)}.",
        ]
    )

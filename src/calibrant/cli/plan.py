"""``calibrant plan``: how many rows will a certificate take?"""

from __future__ import annotations

from typing import Any

import click

from calibrant.cli.answers import plan_said
from calibrant.cli.inputs import Source, explained, takes_rows
from calibrant.cli.options import CONFIDENCE_LEVEL, LIMIT_METHOD, RELATIVE_TO, takes_clusters, takes_measure
from calibrant.cli.outputs import BadInput, Command, Show, working
from calibrant.cli.rows import open_all_rows, open_forecasts


@click.command(
    "plan",
    short_help="How many rows will a certificate take?",
    cls=Command,
    examples="""
    calibrant plan --max-error 0.05 --brier 0.15
    calibrant plan preds.csv --max-error 0.02 --power 0.8
    calibrant plan preds.csv --max-error 0.05 --cluster-size 20 --intra-cluster-correlation 0.05
    calibrant plan visits.csv --max-error 0.05 --cluster patient
    calibrant plan preds.csv --max-error 0.25 --relative-to events
    calibrant plan preds.csv --max-error 0.01 --measure risk_gap --threshold 0.1:0.3
    """,
)
@click.option(
    "--max-error",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    required=True,
    help="The error that is to be certified.",
)
@click.option("--brier", type=click.FloatRange(0.0, 0.25, min_open=True), help="The mean of (y - p)^2 you expect.")
@click.option(
    "--power",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    help="How likely the certificate should be, if the forecasts are calibrated.",
)
@click.option(
    "--cluster-size",
    type=click.IntRange(min=1),
    help="Rows of each cluster, where rows of one belong together: the plan is then for a number of clusters.",
)
@click.option(
    "--intra-cluster-correlation",
    type=click.FloatRange(0.0, 1.0),
    help="With --cluster-size, how much outcomes of one cluster go together beyond what forecasts explain: 0.01 to "
    "0.05 for patients of one site, more for visits of one patient.",
)
@takes_clusters
@CONFIDENCE_LEVEL
@LIMIT_METHOD
@takes_measure
@RELATIVE_TO
@takes_rows(required=False, weights=False, by=False, clusters=True)
def command(
    source: Source,
    show: Show,
    max_error: float,
    brier: float | None,
    power: float,
    confidence_level: float,
    method: str,
    judged: dict[str, Any],
    relative_to: str,
    cluster_size: int | None,
    intra_cluster_correlation: float | None,
    clusters: dict[str, Any],
) -> None:
    """Plan how many rows it takes to certify forecasts that are calibrated.

    How spread out the forecasts are decides it: name FILEs with forecasts like those to come (no outcomes needed),
    or the Brier score you expect with --brier. With --cluster FILEs are a pilot sample, with outcomes: clusters to come
    have the sizes and forecasts of these, and outcomes that go together as much.
    """
    import calibrant

    if bool(source.files) == (brier is not None):
        raise BadInput("name either a FILE of forecasts like those to come, or the Brier score you expect with --brier")
    _check_pilot(source, intra_cluster_correlation)
    question: dict[str, Any] = {
        "confidence_level": confidence_level,
        "power": power,
        "method": method,
        "relative_to": relative_to,
        "cluster_size": cluster_size,
        "intra_cluster_correlation": intra_cluster_correlation,
        **clusters,
        **judged,
    }
    if not source.files:
        with explained(Source(("--brier",))), working("simulating data sets", quiet=source.quiet):
            result = calibrant.rows_needed(max_error, brier=brier, **question)
        show.answer(show.words(plan_said(result), result), input=None, result=result)
    if source.cluster is not None:
        _plan_with_pilot(source, show, max_error, question)
    from calibrant.engines.columns import count_forecasts, mean_variance

    with open_forecasts(source) as forecasts, explained(forecasts.source, forecasts.table):
        table, column, most = forecasts.table, str(forecasts.source.y_prob), forecasts.most
        with working(f"counting the forecasts of {table.name}", quiet=source.quiet, connection=table.connection):
            distinct, rows = count_forecasts(table, column, most)
        if distinct.size > most:
            raise BadInput(
                f"{table.name}: column {column!r} has more than {most:,} distinct forecasts, too many to plan "
                "with; raise --memory-limit, round the forecasts, or plan with their mean p (1 - p) alone: --brier "
                f"{mean_variance(table, column):.6g}"
            )
        with working("simulating data sets", quiet=source.quiet):
            result = calibrant.rows_needed(max_error, y_prob=distinct, sample_weight=rows, **question)
    said = show.words(plan_said(result), result)
    show.answer(said, input=forecasts.facts(int(rows.sum())), result=result)


def _check_pilot(source: Source, correlation: float | None) -> None:
    """Refuse what speaks of a pilot sample where there is none, and what one says already."""
    if source.cluster is None:
        for option, value in (("--y-true", source.y_true), ("--pos-label", source.pos_label)):
            if value is not None:
                raise BadInput(
                    f"{option} is for a pilot sample of clusters; name their column with --cluster, or leave it out"
                )
        return
    if not source.files:
        raise BadInput("--cluster names a column of a FILE; name one, or use --cluster-size")
    if correlation is not None:
        raise BadInput(
            "with --cluster the outcomes of FILE say how much they go together; leave --intra-cluster-correlation out, "
            "or name --cluster-size in place of --cluster"
        )


def _plan_with_pilot(source: Source, show: Show, max_error: float, question: dict[str, Any]) -> None:
    """Plan for clusters like those of a file, and end with the answer."""
    import calibrant

    with open_all_rows(source, "planning with clusters") as rows:
        observed = rows.observations
        with explained(rows.source), working("simulating data sets", quiet=source.quiet):
            result = calibrant.rows_needed(
                max_error, y_prob=observed.y_prob, y_true=observed.y_true, cluster=rows.cluster, **question
            )
    show.answer(show.words(plan_said(result), result), input=rows.facts(), result=result)

"""Options that several commands share, with the same meaning in each."""

from __future__ import annotations

import click

CONFIDENCE_LEVEL = click.option(
    "--confidence-level",
    type=click.FloatRange(0.5, 1.0, max_open=True),
    default=0.95,
    show_default=True,
    help="One minus the probability of being wrong.",
)
LIMIT_METHOD = click.option(
    "--method",
    type=click.Choice(["adaptive", "exact", "normal", "hoeffding", "paper"]),
    default="adaptive",
    show_default=True,
    help="How limits are found. adaptive: at every number of rows; exact: sharper, for these forecasts issued again; "
    "normal: for many rows only; hoeffding: wide; paper: very wide.",
)
MEASURE = click.option(
    "--measure",
    type=click.Choice(["cutoff", "smooth", "bounded_variation", "distance", "ece"]),
    default="cutoff",
    show_default=True,
    help="The error to judge.",
)
VARIATION = click.option(
    "--variation",
    type=click.FloatRange(min=0.0),
    default=2.0,
    show_default=True,
    help="Largest total variation of the weights, for --measure bounded_variation.",
)
SEED = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of the random numbers: fix it beforehand.",
)
THRESHOLDS = click.option(
    "--threshold",
    type=click.FloatRange(0.0, 1.0),
    multiple=True,
    help="Act on forecasts of at least this; may be given several times.",
)
COSTS = (
    click.option("--cost-false-positive", type=click.FloatRange(min=0.0), help="What acting in vain costs."),
    click.option("--cost-false-negative", type=click.FloatRange(min=0.0), help="What a missed event costs."),
)

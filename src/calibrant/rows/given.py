"""What was given in place of arrays: summaries are taken as they are, and nothing beside them is ignored."""

from __future__ import annotations

from calibrant.core.errors import InputError
from calibrant.core.types import ArrayLike, ClassLabel
from calibrant.rows.tally import Tally, Totals


def given_tally(
    summary: Totals, y_prob: ArrayLike | None, sample_weight: ArrayLike | None, pos_label: ClassLabel | None
) -> Tally:
    """Return a tally passed in place of arrays, refusing what it already holds instead of ignoring it."""
    if not isinstance(summary, Tally):
        raise InputError(
            f"a {type(summary).__name__} object holds totals of stretches of forecasts, too coarse for an exact "
            "measure",
            remedy="pass a Tally, or the arrays (certificates.bracket says what cells alone can tell)",
        )
    refuse_more("Tally", y_prob, sample_weight, pos_label)
    return summary


def refuse_more(
    given: str, y_prob: ArrayLike | None, sample_weight: ArrayLike | None, pos_label: ClassLabel | None
) -> None:
    """Refuse arrays beside a summary or source that already holds them."""
    for name, value in (("y_prob", y_prob), ("sample_weight", sample_weight), ("pos_label", pos_label)):
        if value is not None:
            problem = f"was given together with a {given}, which already holds it"
            raise InputError(problem, argument=name, remedy=f"pass the {given} alone")

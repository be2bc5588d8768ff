"""Options of comparisons: what models are compared by, and how."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import click

from calibrant.certificates.score_names import SCORES, needs_threshold
from calibrant.cli.options import CONFIDENCE_LEVEL, COSTS, LIMIT_METHOD, SEED, VARIATION, with_options
from calibrant.cli.outputs import BadInput
from calibrant.measures.registry import MEASURES

Function = TypeVar("Function", bound=Callable[..., Any])

_ASKED = ("threshold", "cost_false_positive", "cost_false_negative")


class _Range(NamedTuple):
    """Every threshold from the lowest to the highest, which two thresholds are not."""

    low: float
    high: float


def _thresholds(_: click.Context, __: click.Parameter, value: str | None) -> float | tuple[float, ...] | None:
    """Read one threshold, the lowest and the highest of a range with a colon between them, or several with commas."""
    if value is None:
        return None
    ends = value.split(":") if ":" in value else value.split(",")
    try:
        found = tuple(float(end) for end in ends)
    except ValueError:
        found = ()
    if not found or not all(0.0 <= end <= 1.0 for end in found) or (":" in value and len(found) != 2):
        raise click.BadParameter(
            f"{value!r} is neither a threshold from 0 to 1, as in 0.3, nor several, as in 0.1,0.3, nor a range, as in "
            "0.1:0.3."
        )
    if ":" in value:
        return _Range(*found)
    return found[0] if len(found) == 1 else found


_MEASURE = click.option(
    "--measure",
    type=click.Choice([*MEASURES, *SCORES]),
    default="cutoff",
    show_default=True,
    metavar="MEASURE",
    help=f"What to compare: a calibration error ({', '.join(MEASURES)}), or a score of the forecasts or of decisions "
    f"({', '.join(SCORES)}).",
)
_THRESHOLD = click.option(
    "--threshold",
    callback=_thresholds,
    metavar="AT|AT,AT|LOW:HIGH",
    help="For decision_risk and net_benefit: the threshold from which people act, or several, as in 0.1,0.3. For a "
    "risk gap: one, or a range, as in 0.1:0.3. Fix it beforehand.",
)
_MARGIN = click.option(
    "--margin",
    type=click.FloatRange(min=0.0),
    help="By how much a model may be worse and still do. Fix it beforehand.",
)
_REFERENCE = click.option("--reference", metavar="MODEL", help="Compare all others with this model only.")


def takes_comparison(function: Function) -> Function:
    """Add the options that say what models are compared by; the function gets them as ``asked``, to be passed on."""

    @functools.wraps(function)
    def run(*given: Any, **named: Any) -> Any:
        names = ("measure", "variation", *_ASKED, "margin", "reference", "confidence_level", "method", "rng")
        asked = {name: named.pop(name) for name in names}
        _check(asked)
        return function(*given, asked=asked, **named)

    options = (_MEASURE, VARIATION, _THRESHOLD, *COSTS, _MARGIN, _REFERENCE, CONFIDENCE_LEVEL, LIMIT_METHOD, SEED)
    return cast(Function, with_options(run, *options))


def _check(asked: dict[str, Any]) -> None:
    """Refuse what does not go together."""
    measure, given = asked["measure"], tuple(name for name in _ASKED if asked[name] is not None)
    if given not in ((), _ASKED[:1], _ASKED[1:]):
        raise BadInput(
            "name thresholds with --threshold, or both --cost-false-positive and --cost-false-negative in place of one"
        )
    decides = needs_threshold(measure) if measure in SCORES else MEASURES[measure].thresholds is not None
    if given and not decides:
        option = f"--{given[0].replace('_', '-')}"
        raise BadInput(f"{option} is for --measure risk_gap, decision_risk and net_benefit; leave it out")
    if not given and measure in SCORES and decides:
        raise BadInput(f"--measure {measure} needs --threshold, the forecast from which people act")
    at = asked["threshold"]
    if isinstance(at, _Range) and measure in SCORES:
        raise BadInput(
            f"--threshold {at.low:g}:{at.high:g} is a range, which means something for --measure risk_gap only; name "
            f"several thresholds with commas, as in {at.low:g},{at.high:g}"
        )
    if isinstance(at, tuple) and not isinstance(at, _Range) and measure not in SCORES:
        raise BadInput(
            f"--threshold names {len(at)} thresholds, and a risk gap is about one, or about a range, as in "
            f"{min(at):g}:{max(at):g}"
        )

"""A reading as Prometheus takes it: the text format of OpenMetrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.core.errors import InputError
from calibrant.monitors.results import VERDICTS, Reading

_PREFIX = "calibrant_"
_GAUGES = {
    "{measure}_estimate": ("estimate", "What was measured so far."),
    "{measure}_lower": ("lower", "Lower limit of it, right at all times together with the confidence level."),
    "{measure}_upper": ("upper", "Upper limit of it, right at all times together with the confidence level."),
    "max_error": ("max_error", "The error that the verdict is about."),
    "tolerance": ("tolerance", "The error that is no reason for an alarm."),
    "confidence_level": ("confidence_level", "How often each limit is never wrong."),
    "evidence": ("evidence", "Evidence against an error within the tolerance at all times."),
    "detector": ("detector", "What the alarm follows from."),
    "detector_threshold": ("threshold", "What the detector must reach for an alarm."),
    "overdispersion": ("overdispersion", "How much periods differ, over what independent rows would show."),
    "neighbour_correlation": ("alike", "Correlation of the mean residuals of neighbouring periods."),
    "periods": ("periods", "Periods that count since the last reset."),
    "rows": ("rows", "Rows that count since the last reset."),
    "epoch": ("epoch", "1, and one more after each reset."),
    "labels_waiting": ("waiting", "Forecasts whose label is not due yet."),
    "labels_missing": ("missing", "Forecasts whose label was missing when it was due."),
    "cautions": ("cautions", "Reasons why the verdict says little, such as a limit that is wide for rare events."),
    "notes": ("notes", "Notes on the rows so far: likely mistakes, and what the limits rest on."),
    "labels_late": ("late", "Labels that no forecast waited for, or no longer."),
}


def openmetrics(
    reading: Reading | None, *, labels: Mapping[str, str] | None = None, counts: Mapping[str, int] | None = None
) -> str:
    r"""Return a reading in the text format that Prometheus and OpenMetrics share, gauges only.

    Parameters
    ----------
    reading : Reading or None
        What a monitor said; None before its first period is complete.
    labels : mapping, optional
        Names and values that go to each number, such as that of the model.
    counts : mapping, optional
        Further numbers by their names.

    Returns
    -------
    str
        Lines of text, ended by ``# EOF``.

    Examples
    --------
    >>> from calibrant.monitors import Monitor, openmetrics
    >>> monitor = Monitor(max_error=0.1)
    >>> monitor.update([0, 1] * 50, [0.25, 0.75] * 50)
    >>> print(openmetrics(monitor.read(), labels={"model": "churn"}))
    # HELP calibrant_cutoff_estimate What was measured so far.
    # TYPE calibrant_cutoff_estimate gauge
    calibrant_cutoff_estimate{model="churn"} 0.125
    ...
    # EOF
    """
    own = dict(labels or {})
    for name in own:
        if not (name.isascii() and name.isidentifier()) or name.startswith("__") or name == "verdict":
            raise InputError(f"{name!r} is no name of a label", argument="labels", remedy="use letters and underscores")
    lines: list[str] = []

    def gauge(name: str, text: str, samples: list[tuple[dict[str, str], Any]]) -> None:
        lines.extend((f"# HELP {_PREFIX}{name} {text}", f"# TYPE {_PREFIX}{name} gauge"))
        lines.extend(f"{_PREFIX}{name}{_labelled({**own, **more})} {float(value)!r}" for more, value in samples)

    if reading is not None:
        for name, (fact, text) in _GAUGES.items():
            value = getattr(reading, fact)
            value = len(value) if isinstance(value, tuple) else value
            if value is not None:
                gauge(name.format(measure=reading.measure), text, [({}, value)])
        gauge("alarm", "1 after an alarm, until the monitor is reset.", [({}, reading.alarm is not None)])
        verdicts = [({"verdict": each}, each == reading.verdict) for each in VERDICTS]
        gauge("verdict", "1 for the verdict, 0 for the others.", verdicts)
    for name, count in (counts or {}).items():
        gauge(name, f"{name.replace('_', ' ').capitalize()}.", [({}, count)])
    return "\n".join([*lines, "# EOF"]) + "\n"


def _labelled(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    escaped = {
        name: value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"') for name, value in labels.items()
    }
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped.items()) + "}"

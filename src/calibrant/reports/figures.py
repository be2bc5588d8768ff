"""Plots for a page: SVG without identifiers, styles or colours of its own, so that one drawing serves light and dark.

The displays draw; here their SVG is rewritten. Each style becomes a class that all drawings share, each colour of the
palette a CSS variable, each font size a size in the page's own font.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from xml.etree import ElementTree

from calibrant.certificates.clusters import check_clusters
from calibrant.core.words import level_said, measured, rounded_up
from calibrant.decisions.benefit_results import DecisionCurve
from calibrant.decisions.benefits import thresholds_around, with_known_limits
from calibrant.decisions.gaps import risk_gap_curve
from calibrant.displays.base import Display
from calibrant.displays.clusters import rows_to_draw
from calibrant.displays.cumulative import CumulativeDisplay
from calibrant.displays.decision_curve import DecisionCurveDisplay
from calibrant.displays.monitor import MonitorDisplay
from calibrant.displays.palette import PALETTES, SMALL, Palette
from calibrant.displays.reliability import ReliabilityDisplay
from calibrant.displays.risk_gap import RiskGapDisplay
from calibrant.reports.headlines import holds_for
from calibrant.reports.results import ChangeOverTime, ModelSummary, ReportSummary
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.tally import Tally

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AnyDisplay = TypeVar("AnyDisplay", bound=Display)

NEEDED = "the report needs jinja2 and matplotlib: pip install 'calibrant[cli]'"

SIZE = (5.6, 3.7)
"""Inches, at 72 units per inch."""

FIRST_SIZE = (5.6, 4.3)
"""Of the plot beside the verdict."""

TALL_SIZE = (5.6, 5.2)
"""Of two plots, one below the other."""

CHANCE_LEVEL = 0.95
"""Of the band that says what chance alone shows."""

CURVE_POINTS = 200
"""Thresholds of a decision curve."""

_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"


@dataclass(frozen=True)
class Entry:
    """A line of a legend: "line", "area" or "point", the role that its colour plays, and what it stands for."""

    kind: str
    role: str
    text: str


@dataclass(frozen=True)
class Drawing:
    """A plot ready for the page.

    ``name`` and ``tab`` tell it from others of the same model, ``heading`` and ``reading`` say what it is and how to
    read it.
    """

    name: str
    tab: str
    heading: str
    reading: str
    svg: str
    legend: tuple[Entry, ...]


class Styles:
    """The styles that drawings use, each with a class of its own."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        light = PALETTES["light"]
        self._variables = {getattr(light, role): f"var(--plot-{role})" for role in roles()}

    def name_of(self, style: str) -> str:
        """Return the class of a style as matplotlib wrote it."""
        rules = dict(rule.split(": ", 1) for rule in style.split("; ") if rule)
        fonts = [rules.pop(name) for name in ("font", "font-size", "font-family") if name in rules]
        if fonts:  # the page has a font of its own, and sizes that suit its width
            is_small = re.search(rf"\b{SMALL:g}px", " ".join(fonts)) is not None
            rules["font-size"] = "var(--plot-ticks)" if is_small else "var(--plot-words)"
        text = ";".join(f"{name}:{self._variables.get(value.lower(), value)}" for name, value in sorted(rules.items()))
        return self._names.setdefault(text, f"p{len(self._names)}")

    def css(self) -> str:
        """Return the rules of all classes."""
        return "\n".join(f".plot .{name} {{ {text} }}" for text, name in self._names.items())


def roles() -> list[str]:
    """Return the roles that colours play in displays."""
    return [field.name for field in fields(Palette)]


def palette_css(theme: str) -> str:
    """Return the variables of a theme."""
    palette = PALETTES[theme]
    return " ".join(f"--plot-{role}: {getattr(palette, role)};" for role in roles() if role != "paper")


def draw_model(
    model: ModelSummary, rows: Tally | ClusteredRows, styles: Styles, *, summary: ReportSummary, prefix: str
) -> Iterator[Drawing]:
    """Draw the plots of one model."""
    rng, threshold, clusters = summary.rng, summary.threshold, summary.clusters
    counted: dict[str, Any] = {}
    if clusters is not None:
        counted = {"cluster_target": clusters.target, "serial": clusters.serial}
    tally = rows if isinstance(rows, Tally) else rows_to_draw(rows, **counted).tally
    named = _rate_and_chance(model)
    forecast, rate = _names(model)
    turned = "{} \N{MINUS SIGN} {}".format
    axes_named = {
        "forecast": forecast.lower(),
        "event rate": rate,
        turned("event rate", "forecast"): turned(rate, forecast.lower()),
    }
    error = measured(model.measures.worst_interval.error, 4)
    display, reliability = drawn(
        partial(ReliabilityDisplay.from_predictions, rows, rng=rng, confidence_level=CHANCE_LEVEL, **counted),
        styles,
        prefix=prefix,
        name="reliability",
        tab="Reliability",
        heading=f"{forecast} against {rate}",
        reading="On the dashed diagonal the forecasts are right; below it they are too high, above it too low.",
        size=FIRST_SIZE,
        named=named,
        axes_named=axes_named,
    )
    yield reliability
    _, cumulative = drawn(
        partial(CumulativeDisplay.from_predictions, rows, rng=rng, **counted),
        styles,
        prefix=prefix,
        name="cumulative",
        tab="Cumulative",
        heading="Where the error collects",
        reading=(
            "Read from left to right: the curve adds up outcome minus forecast over the rows, in order of forecast. "
            "Where it falls the forecasts are too high, where it rises too low, where it is level right. The height "
            f"from its lowest to its highest point is the Cutoff calibration error, {error}."
        ),
        axes_named=axes_named,
    )
    yield cumulative
    _, difference = drawn(
        partial(display.plot, difference=True),
        styles,
        prefix=prefix,
        name="difference",
        tab="Difference",
        heading=f"{rate[0].upper()}{rate[1:]} minus {forecast.lower()}",
        reading="The reliability diagram with its diagonal laid flat, so that small differences can be seen.",
        named=named,
        axes_named=axes_named,
    )
    yield difference
    question = None if clusters is None else check_clusters(True, clusters.target, None, clusters.serial)
    found = with_known_limits(
        rows if question is None or isinstance(rows, Tally) else question.rows(rows),
        threshold=thresholds_around(threshold, CURVE_POINTS),
        confidence_level=CHANCE_LEVEL,
        serial=0 if clusters is None else clusters.serial,
        band=True,
        rng=rng,
    )
    _, benefit = drawn(
        DecisionCurveDisplay.from_results(DecisionCurve(("model",), (found,))).plot,
        styles,
        prefix=prefix,
        name="benefit",
        tab="Decision curve",
        heading="Is acting on the forecasts worth it?",
        reading=(
            "Net benefit counts the events acted on, per row, and takes off the false alarms at the rate that the "
            "threshold sets. Where the curve is above both others the forecasts help."
            + ("" if found.band_lower is None else " The band says how far it may be off, by theory for many rows.")
        ),
        marked=threshold,
    )
    yield benefit
    if model.decisions is None:
        return
    promise = model.decisions.promise
    _, gap = drawn(
        RiskGapDisplay.from_results(risk_gap_curve(tally), promise).plot,
        styles,
        prefix=prefix,
        name="gap",
        tab="Risk gap",
        heading="What recalibration could save",
        reading=(
            "Per row and on average, at every threshold from which somebody might act. The limit holds "
            f"{holds_for(promise.target, clusters)}, with {level_said(promise.confidence_level)} confidence at all "
            "thresholds together. The band below it is room for more in the population."
        ),
        marked=threshold,
        named={
            "curve": "saved on these rows by the best recalibration that keeps the order of the forecasts",
            "bound": f"limit: at most {rounded_up(promise.nondecreasing)}, at any threshold",
        },
    )
    yield gap


def draw_change(change: ChangeOverTime, styles: Styles, *, prefix: str, asked: bool) -> Drawing:
    """Draw what was said period by period, with the limit if one was asked about."""
    _, drawing = drawn(
        MonitorDisplay.from_history(change.history, show_limit=asked).plot,
        styles,
        prefix=prefix,
        name="change",
        tab="Over time",
        heading="Limits and evidence, period by period",
        reading=(
            "Above: the error of all periods so far, with limits that become narrower as periods come in. Below: the "
            "evidence that forecasts are off, on a scale on which each step multiplies. Where it reaches the dotted "
            "line there is an alarm."
        ),
        size=TALL_SIZE,
    )
    return drawing


def _names(model: ModelSummary) -> tuple[str, str]:
    """Return what forecasts and event rates are called: of several classes, they are about the top label."""
    return ("Confidence", "share of right top labels") if model.has_classes else ("Forecast", "event rate")


def _rate_and_chance(model: ModelSummary) -> dict[str, str]:
    """Word the legend of a curve of event rates and of what chance alone shows."""
    like = "" if model.judged.clusters is None else ", in clusters like these,"
    level = level_said(CHANCE_LEVEL)
    forecast, rate = _names(model)
    return {
        "curve": f"{rate}, by {forecast.lower()}",
        "band": f"where the curve of calibrated forecasts{like} lies in {level} of cases, at each forecast",
    }


def drawn(
    plot: Callable[..., AnyDisplay],
    styles: Styles,
    *,
    prefix: str,
    name: str,
    tab: str,
    heading: str,
    reading: str,
    marked: float | None = None,
    size: tuple[float, float] = SIZE,
    named: Mapping[str, str] | None = None,
    axes_named: Mapping[str, str] | None = None,
) -> tuple[AnyDisplay, Drawing]:
    """Let a display draw, and return it and what it drew.

    ``named`` words what colours stand for, and ``axes_named`` has other words for what stands along the axes.
    """
    try:
        import matplotlib.style
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(NEEDED) from error
    settings = {"svg.fonttype": "none", "svg.hashsalt": f"calibrant {prefix} {name}"}
    # Whatever somebody has set for plots of their own has no say in a report, and is back afterwards.
    with matplotlib.style.context(["default", settings]):
        figure = Figure(figsize=size, dpi=72, layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        display = plot(ax=axes, legend=False)
        axes.set_title("", loc="left")
        words = axes_named or {}
        for each in (axes, *_below(axes)):
            each.set_xlabel(words.get(each.get_xlabel(), each.get_xlabel()))
            each.set_ylabel(words.get(each.get_ylabel(), each.get_ylabel()))
        _lay_out(figure)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    root = _rewritten(
        written.getvalue(), styles, prefix=f"{prefix}-{name}", title=heading, description=reading, size=size
    )
    if marked is not None:
        root.append(_marker(axes, marked))
    drawing = Drawing(
        name=name,
        tab=tab,
        heading=heading,
        reading=reading,
        svg=ElementTree.tostring(root, encoding="unicode"),
        legend=tuple(entry for each in (axes, *_below(axes)) for entry in _legend(each, named)),
    )
    return display, drawing


def _lay_out(figure: Figure) -> None:
    """Find room for all words, once: writing a figure that still has a layout engine draws everything twice."""
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.execute(figure)
    figure.set_layout_engine(None)


def _marker(axes: Axes, threshold: float) -> ElementTree.Element:
    """Return a line at a threshold, with what it takes to move it to another: where which thresholds lie."""
    place, (low, high) = axes.get_position(), axes.get_xlim()
    width, height = (72.0 * side for side in SIZE)
    at = f"{width * (place.x0 + (threshold - low) / (high - low) * place.width):.2f}"
    ends = {"x1": at, "x2": at, "y1": f"{height * (1.0 - place.y1):.2f}", "y2": f"{height * (1.0 - place.y0):.2f}"}
    scale = {"data-from": f"{width * place.x0:.2f}", "data-to": f"{width * place.x1:.2f}"}
    scale |= {"data-low": repr(float(low)), "data-high": repr(float(high))}
    return ElementTree.Element("line", {"class": "marker", **ends, **scale})


def _rewritten(
    text: str, styles: Styles, *, prefix: str, title: str, description: str, size: tuple[float, float]
) -> ElementTree.Element:
    """Return an SVG that can stand inside a page beside others."""
    root = ElementTree.fromstring(text)
    linked = {value[1:] for element in root.iter() for value in [element.get(_LINK, "")] if value}
    linked |= set(re.findall(r"url\(#([^)]+)\)", text))
    names = {name: f"{prefix}-{number}" for number, name in enumerate(sorted(linked))}
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{_SVG}metadata", f"{_SVG}style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        attributes = dict(element.attrib)
        element.attrib.clear()
        if attributes.get("id") in names:
            element.set("id", names[attributes["id"]])
        for name, value in attributes.items():
            if name == "style":
                turned = element.tag == "text" and "rotate(-90" in attributes.get("transform", "")
                element.set("class", styles.name_of(value) + (" sideways" if turned else ""))
            elif name == _LINK:
                element.set("href", f"#{names[value[1:]]}")
            elif name == "clip-path":
                element.set(name, f"url(#{names[value[5:-1]]})")
            elif name != "id":
                element.set(name, value)
    width, height = (72.0 * side for side in size)
    root.attrib = {
        "viewBox": f"0 0 {width:g} {height:g}",
        "class": "plot",
        "role": "img",
        "aria-labelledby": f"{prefix}-title {prefix}-description",
    }
    for tag, words in (("desc", description), ("title", title)):
        said = ElementTree.Element(tag, id=f"{prefix}-{'title' if tag == 'title' else 'description'}")
        said.text = words
        root.insert(0, said)
    return root


def _below(axes: Axes) -> list[Axes]:
    """Return the axes that stand below others and belong to them."""
    from matplotlib.axes import Axes

    return [each for each in axes.child_axes if isinstance(each, Axes)]


def _legend(axes: Axes, named: Mapping[str, str] | None) -> Iterator[Entry]:
    """Return what the artists on the axes stand for, in the order they were drawn."""
    from matplotlib.colors import to_hex

    role_of = {getattr(PALETTES["light"], role): role for role in roles()}
    for artist, text in zip(*axes.get_legend_handles_labels(), strict=True):
        kind, colour = _look(artist)
        role = role_of[to_hex(colour)]
        yield Entry(kind, role, (named or {}).get(role, text))


def _look(artist: Artist) -> tuple[str, Any]:
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if isinstance(artist, Line2D):
        is_point = artist.get_linestyle() == "None"
        is_dashed = artist.is_dashed()
        return "point" if is_point else "dashed" if is_dashed else "line", artist.get_color()
    assert isinstance(artist, (Collection, Patch))
    return "area", artist.get_facecolor()

import importlib.util
import inspect
import re
import subprocess
import sys
from dataclasses import asdict, fields
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from display_cases import check_words, drawn_colours, million, rows
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression

import calibrant
from calibrant import CertificateDisplay, CumulativeDisplay, ReliabilityDisplay, Tally
from calibrant.displays import (
    AttributesDisplay,
    DecisionCurveDisplay,
    DecompositionDisplay,
    RiskGapDisplay,
    SpectrumDisplay,
)
from calibrant.displays.palette import PALETTES, Palette
from calibrant.displays.thinning import MOST_POINTS, thinned

ALL: list[Any] = [
    AttributesDisplay,
    CertificateDisplay,
    CumulativeDisplay,
    DecisionCurveDisplay,
    DecompositionDisplay,
    ReliabilityDisplay,
    RiskGapDisplay,
    SpectrumDisplay,
]
every_display = pytest.mark.parametrize("display_type", ALL)
DOCS = Path(__file__).parents[2] / "docs" / "displays"


# --- Thinning ---------------------------------------------------------------------------------------------------------


@given(
    values=st.lists(st.integers(-5, 5), min_size=1, max_size=400),
    most=st.integers(4, 60),
    seed=st.integers(0, 2**32 - 1),
    data=st.data(),
)
def test_thinning_keeps_the_range_of_every_stretch(values, most, seed, data):
    value = np.array(values, dtype=float)
    rng = np.random.default_rng(seed)
    places = [np.sort(rng.random(value.size) ** 3), np.arange(value.size) / value.size]
    keep = data.draw(st.lists(st.integers(0, value.size - 1), max_size=3))
    kept = thinned(value, *places, keep=keep, most_points=most)
    assert (np.diff(kept) > 0).all()
    assert {0, value.size - 1, *keep} <= set(kept.tolist())
    assert value[kept].min() == value.min()
    assert value[kept].max() == value.max()
    if value.size <= most:
        assert kept.size == value.size
        return
    stretches = most // 4
    assert kept.size <= most + 2 + len(keep)
    for place in places:
        borders = np.linspace(place[0], place[-1], stretches + 1)[1:-1]
        number = np.searchsorted(borders, place, side="right")
        for stretch in np.unique(number):
            inside = number == stretch
            survivors = value[kept][inside[kept]]
            assert survivors.min() == value[inside].min()
            assert survivors.max() == value[inside].max()


# --- What all displays share ------------------------------------------------------------------------------------------


@every_display
def test_a_tally_and_an_estimator_give_what_the_forecasts_give(display_type):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 2))
    y = np.where(rng.random(400) < 1 / (1 + np.exp(-2 * X[:, 0])), "yes", "no")
    model = LogisticRegression().fit(X[:200], y[:200])
    from_model = display_type.from_estimator(model, X[200:], y[200:])
    p = model.predict_proba(X[200:])[:, 1]
    from_rows = display_type.from_predictions(y[200:], p, pos_label="yes")
    from_tally = display_type.from_predictions(Tally.from_arrays(y[200:], p, pos_label="yes"))
    assert from_model.frame().equals(from_rows.frame())
    assert from_tally.frame().equals(from_rows.frame())
    turned = display_type.from_estimator(model, X[200:], y[200:], pos_label="no")
    expected = display_type.from_predictions(y[200:], model.predict_proba(X[200:])[:, 0], pos_label="no")
    assert turned.frame().equals(expected.frame())


@every_display
def test_axes_are_respected_and_others_left_alone(display_type):
    figure = Figure()
    left, right = figure.subplots(1, 2)
    display = display_type.from_predictions(*rows(), ax=right)
    assert display.ax_ is right
    assert display.figure_ is figure
    assert not left.lines
    assert right.lines
    assert display._repr_png_() is None  # whoever made the figure shows it
    again = display.plot()
    assert again is display
    assert display.ax_ is not right
    picture, size = display._repr_png_()
    assert picture.startswith(b"\x89PNG")
    assert size["width"] == pytest.approx(72 * display.figure_.get_size_inches()[0])


@every_display
@pytest.mark.parametrize("theme", PALETTES)
def test_every_colour_comes_from_the_palette(display_type, theme):
    display = display_type.from_predictions(*rows(), theme=theme)
    assert drawn_colours(display.figure_) <= set(asdict(PALETTES[theme]).values())


@every_display
def test_axes_have_words_and_the_legend_says_what_is_drawn(display_type):
    display = display_type.from_predictions(*rows())
    labelled = getattr(display, "histogram_ax_", None) or display.ax_
    assert len(labelled.get_xlabel()) > 5
    assert display.ax_.get_ylabel() or display_type in (CertificateDisplay, DecompositionDisplay)  # rows have names
    assert 0 < len(display.ax_.get_title(loc="left")) < 60
    assert len(display.legend_.get_texts()) >= 2
    assert display.plot(legend=False).legend_ is None
    assert display.ax_.get_legend() is None


@every_display
def test_the_legend_stays_inside_the_figure(display_type):
    display = display_type.from_predictions(*rows())
    display.figure_.draw_without_rendering()
    box = display.legend_.get_window_extent()
    width, height = display.figure_.get_size_inches() * display.figure_.dpi
    assert 0 <= box.x0 < box.x1 <= width
    assert 0 <= box.y0 < box.y1 <= height


@every_display
@pytest.mark.parametrize(
    ("y", "p"),
    [rows(), rows(ties=8), ([0, 1, 1, 0, 1], [0.5] * 5), ([0, 0, 1, 1], [0.0, 0.0, 1.0, 1.0])],
    ids=["some", "ties", "one forecast", "perfect"],
)
def test_words_have_three_sizes_and_room(display_type, y, p):
    display = display_type.from_predictions(y, p)
    check_words(display.figure_)
    assert len(display.frame()) >= 1


@every_display
def test_a_million_rows_are_thinned_and_extremes_stay(display_type):
    display = display_type.from_predictions(million())
    assert len(display.frame()) <= 3 * MOST_POINTS + 10
    if display_type is CumulativeDisplay:
        assert display.forecast.size <= MOST_POINTS + 10
        spread = display.deviation.max() - display.deviation.min()
        assert spread == calibrant.cutoff_calibration_error(million())
        worst = calibrant.worst_interval(million())
        assert {worst.low, worst.high} <= set(display.forecast.tolist())
    elif display_type is RiskGapDisplay:
        assert display.gap.size <= MOST_POINTS + 2
        assert display.gap.max() == pytest.approx(display.largest_gap, abs=1e-15)
    elif display_type is SpectrumDisplay:
        assert display.variation.size <= MOST_POINTS


@every_display
@pytest.mark.parametrize("size", [1, 2])
def test_few_rows_are_drawn(display_type, size):
    y, p = rows(size)
    display = display_type.from_predictions(y, p)
    display.figure_.draw_without_rendering()
    assert len(display.frame()) >= 1


@pytest.mark.parametrize("display_type", [CumulativeDisplay, ReliabilityDisplay])
def test_forecasts_of_rare_events_have_room_for_their_ticks(display_type):
    y, p = rows()
    display = display_type.from_predictions(y, 1e-4 * p)
    axes = getattr(display, "histogram_ax_", None) or display.ax_
    display.figure_.draw_without_rendering()
    low, high = axes.get_xlim()
    ticks = [label for label in axes.get_xticklabels() if low <= label.get_position()[0] <= high]
    boxes = [tick.get_window_extent() for tick in ticks if tick.get_text()]
    assert len(boxes) >= 3
    for left, right in pairwise(boxes):
        assert right.x0 - left.x1 > 0.3 * left.height


def test_small_event_rates_fill_their_axis():
    rng = np.random.default_rng(0)
    p = 0.002 * rng.random(40_000)
    display = ReliabilityDisplay.from_predictions(rng.random(40_000) < p, p, n_bins=100)
    low, high = display.ax_.get_ylim()
    assert -0.01 < low < 0.0
    assert max(p.max(), display.rate.max()) < high < 0.1
    usual = ReliabilityDisplay.from_predictions(*rows())
    assert usual.ax_.get_ylim() == (-0.01, 1.01)
    assert usual.plot(difference=True).ax_.get_ylim()[0] < -0.02


@every_display
@pytest.mark.parametrize("y", [[0, 1, 1, 0], [0.2, 0.9, 0.4, 0.0]])
def test_weights_and_fractions_are_drawn(display_type, y):
    p, weight = [0.1, 0.8, 0.6, 0.4], [1.0, 2.0, 0.5, 3.0]
    display = display_type.from_predictions(y, p, sample_weight=weight)
    display.figure_.draw_without_rendering()
    scaled = display_type.from_predictions(y, p, sample_weight=[2 * w for w in weight])
    one, other = display.frame(), scaled.frame()
    for column in one:
        if one[column].dtype.kind == "f":
            np.testing.assert_allclose(one[column], other[column], atol=1e-12)


@every_display
def test_bad_input_is_refused(display_type):
    y, p = rows(20)
    with pytest.raises(ValueError, match=r"y_prob\[0\] is 1\.5, outside \[0, 1\]"):
        display_type.from_predictions([1], [1.5])
    with pytest.raises(ValueError, match="theme must be one of 'light', 'dark', got 'blue'"):
        display_type.from_predictions(y, p, theme="blue")
    with pytest.raises(ValueError, match="legend must be True or False, got 'below'"):
        display_type.from_predictions(y, p, legend="below")
    model = LogisticRegression().fit(p[:, None], y)
    with pytest.raises(ValueError, match=r"pos_label is 3, which is not a class of the estimator; its classes are"):
        display_type.from_estimator(model, p[:, None], y, pos_label=3)


@every_display
def test_help_says_what_every_parameter_is(display_type):
    for method, parameters in (
        (display_type.from_predictions, ("y_true :", "theme :", "legend :", "ax :")),
        (display_type.plot, ("theme :", "legend :", "ax :")),
    ):
        text = inspect.getdoc(method) or ""
        assert "As in every display" not in text
        assert all(f"\n{parameter}" in text for parameter in parameters)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"plots need matplotlib: pip install 'calibrant\[cli\]'"):
        CumulativeDisplay.from_predictions(*rows(10))


def test_global_state_is_left_alone():
    before = dict(matplotlib.rcParams)
    for display_type in ALL:
        display_type.from_predictions(*rows(30), theme="dark")._repr_png_()
    assert dict(matplotlib.rcParams) == before
    code = (
        "import sys, calibrant\n"
        "for name in dir(calibrant):\n"
        "    if name.endswith('Display'):\n"
        "        over_time = {'period': [1, 2, 3], 'max_error': 0.1} if name == 'MonitorDisplay' else {}\n"
        "        kind = getattr(calibrant.displays, name)\n"
        "        kind.from_predictions([0, 1, 1], [0.2, 0.5, 0.7], **over_time)._repr_png_()\n"
        "assert 'matplotlib.figure' in sys.modules\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- Colours ----------------------------------------------------------------------------------------------------------


def _linear(colour):
    value = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def _contrast(one, other):
    """Return the contrast of two colours as the web's accessibility guidelines define it."""
    light, dark = sorted((float(_linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _seen(colour, matrix):
    """Return a colour in CIELAB as somebody with that colour vision sees it."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(np.array(matrix) @ _linear(colour), 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


# Machado, Oliveira, Fernandes (2009), full strength.
VISION = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


@pytest.mark.parametrize("theme", PALETTES)
def test_colours_can_be_read_and_told_apart(theme):
    palette = PALETTES[theme]
    colours = asdict(palette)
    assert len(set(colours.values())) == len(fields(Palette))
    for role in ("ink", "muted", "curve", "highlight", "bound", "other", "certified", "undecided", "refuted"):
        assert _contrast(colours[role], palette.paper) >= 4.5, role
    for role in ("ink", "muted", "curve"):  # drawn over areas too
        assert _contrast(colours[role], palette.band) >= 3.0, role
        assert _contrast(colours[role], palette.highlight_fill) >= 3.0, role
    together = ("curve", "highlight", "bound"), ("curve", "other"), ("band", "highlight_fill")
    verdicts = ("certified", "undecided", "refuted", "bound")
    for one, other in (pair for group in (*together, verdicts) for pair in combinations(group, 2)):
        for name, matrix in VISION.items():
            apart = np.linalg.norm(_seen(colours[one], matrix) - _seen(colours[other], matrix))
            assert apart > 12.0, (one, other, name, apart)


# --- The pages --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pictures():
    """Return the script that draws the pictures, as a module."""
    found = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@every_display
def test_every_display_has_a_page_with_pictures(display_type, pictures):
    name = display_type.__module__.rpartition(".")[2]
    page = (DOCS / f"{name}.md").read_text()
    assert f"{display_type.__name__}.from_predictions" in page
    assert f"[`{display_type.__name__}`]({name}.md)" in (DOCS / "index.md").read_text()
    shown = re.findall(r'(?:src|srcset)="(\w+)_(light|dark)\.png"', page)
    assert {(name, theme) for theme in PALETTES} <= set(shown)
    for picture, theme in shown:
        stored = (DOCS / f"{picture}_{theme}.png").read_bytes()
        assert stored.startswith(b"\x89PNG")
        assert len(stored) < 60_000
        assert picture in pictures.PICTURES


def test_the_pictures_can_be_drawn_again_to_the_last_byte(pictures):
    drawn = pictures.draw("risk_gap", "dark")
    assert drawn == pictures.draw("risk_gap", "dark")
    width_and_height = slice(16, 24)
    assert drawn[width_and_height] == (DOCS / "risk_gap_dark.png").read_bytes()[width_and_height]
    assert sorted(file.stem for file in DOCS.glob("*.png")) == sorted(
        f"{name}_{theme}" for name in pictures.PICTURES for theme in PALETTES
    )

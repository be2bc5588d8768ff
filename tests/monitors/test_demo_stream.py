"""The part of the demo that watches and repairs, on a year that is made up: examples/flights.py tells what it finds."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from calibrant.core.logistic import expit, logit

EXAMPLE = Path(__file__).parents[2] / "examples" / "flights.py"


@pytest.fixture(scope="module")
def demo():
    spec = importlib.util.spec_from_file_location("flights_demo", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def season(winter):
    """Flights of 122 days in any order, forecast too high until November and off by so much then."""
    rng = np.random.default_rng(0)
    days = np.repeat(np.arange("2013-09-01", "2014-01-01", dtype="datetime64[D]").astype(str), 60)
    y_prob = expit(rng.normal(-1.0, 1.0, days.size))
    shift = np.where(days < "2013-11-01", -1.0, winter)
    y_true = (rng.random(days.size) < expit(logit(y_prob) + shift)).astype(np.int64)
    order = rng.permutation(days.size)
    return y_true[order], y_prob[order], days[order]


def test_a_winter_that_breaks_the_repair_of_autumn(demo, capsys):
    y_true, y_prob, days = season(winter=1.0)
    demo.watch(y_true, y_prob, days)
    watched = capsys.readouterr().out
    assert "Read on 2013-" in watched
    assert "are too high since about 2013-09-0" in watched
    demo.repair_daily(y_true, y_prob, days)
    told = capsys.readouterr().out
    assert "The repair of autumn makes winter worse" in told
    assert "The one that is learned anew does better than both." in told
    assert "repaired every day, by the last 14 days" in told
    assert "Forecasts as they are: an alarm at 2013-" in told
    assert "A window of 7 periods did best" in told


def test_a_winter_like_autumn(demo, capsys):
    y_true, y_prob, days = season(winter=-1.0)
    demo.repair_daily(y_true, y_prob, days)
    told = capsys.readouterr().out
    assert "The repair of autumn helps in winter." in told
    assert "which cancels" not in told


def test_a_stream_without_an_alarm(demo, capsys):
    y_true, y_prob, days = season(winter=0.0)
    late = days >= "2013-11-20"
    demo.watch(y_true[late], y_prob[late], days[late])
    assert "Read on 2013-12-31. No alarm" in capsys.readouterr().out

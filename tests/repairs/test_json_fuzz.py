"""A recalibrator from a text that was changed is refused with a sentence, or is a map as good as any."""

import copy
import json
import random
import string
from typing import Any

import numpy as np
import pytest
from class_repair_cases import MAPS, quietly, rows_of_classes

import calibrant

KINDS = {
    "isotonic": calibrant.IsotonicRecalibrator(),
    "isotonic linear": calibrant.IsotonicRecalibrator(interpolation="linear"),
    "isotonic inside": calibrant.IsotonicRecalibrator(ends="inside"),
    "isotonic scores": calibrant.IsotonicRecalibrator(input_kind="score"),
    "platt": calibrant.PlattRecalibrator(),
    "platt logit": calibrant.PlattRecalibrator(on="logit", clip=1e-6),
    "beta": calibrant.BetaRecalibrator(),
    "temperature": calibrant.TemperatureRecalibrator(clip=1e-3),
    "constant": calibrant.repairs.ConstantRecalibrator(),
    "guarded": calibrant.GuardedRecalibrator(),
}
CLASS_KINDS = {
    **{name: MAPS[name] for name in ("temperature, clipped", "vector", "isotonic", "guarded", "top label")},
    "menu": calibrant.repairs.MenuRecalibrator(),
}
TEXTS_PER_KIND = 400
NUMBERS = [0, -1, 1, 2, -0.0, 0.5, 1e-320, 5e-324, 1e308, -1e308, 1e999, -1e999, 2**63, 10**400, 1 + 1e-16, 0.1 + 1e-17]
OTHERS: list[Any] = [
    None,
    True,
    False,
    "",
    "0.5",
    "NaN",
    "isotonic",
    "score",
    "step",
    "linear",
    "exact",
    "inside",
    [],
    {},
    [[]],
    [0.1, 0.1],
    "\u2028",
]
FORECASTS = np.array([0.0, 5e-324, 1e-300, 1e-9, *np.linspace(0.001, 0.999, 199), 1.0 - 1e-12, 1.0 - 2**-53, 1.0])
SCORES = np.array([-8e307, -1e9, *np.linspace(-3.0, 3.0, 99), 1e9, 8e307])


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(3)
    p = rng.random(80)
    y = rng.random(80) < p
    return {
        name: kind.fit(p if kind.input_kind == "probability" else 6.0 * p - 3.0, y).to_json()
        for name, kind in KINDS.items()
    }


def places(value, path=()):
    """Every place in a document: the keys and positions that lead there."""
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*path, key))


def changed_value(value, rng):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return rng.choice(NUMBERS + OTHERS)
    near = [-value, 2 * value, value * 0.75 if abs(value) < 1e300 else 0.75, rng.uniform(-2.0, 2.0)]
    return rng.choice([*near, rng.choice(NUMBERS), rng.choice(OTHERS)])


def changed_document(text, rng):
    """A document with a few values exchanged, or parts removed, repeated, swapped or renamed."""
    data = json.loads(text)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        path = rng.choice([path for path in places(data) if path])
        holder = data
        for key in path[:-1]:
            holder = holder[key]
        key = path[-1]
        action = rng.choice(["value", "value", "value", "value", "remove", "rename", "repeat", "swap"])
        if action == "value":
            holder[key] = copy.deepcopy(changed_value(holder[key], rng))
        elif action == "remove":
            del holder[key]
        elif action == "rename" and isinstance(holder, dict):
            holder[rng.choice([str(key).upper(), f"{key}_", "", "constructor"])] = holder.pop(key)
        elif isinstance(holder, list) and action == "repeat":
            holder.insert(key, holder[key])
        elif isinstance(holder, list):
            rng.shuffle(holder)
    return json.dumps(data)


def changed_text(text, rng):
    """A text with a few characters exchanged, removed, doubled or cut off."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        place = rng.randrange(max(len(text), 1))
        other = rng.choice([*string.digits, *'-+.eE"{}[],: \\\0', "NaN", "Infinity", "\ud800"])
        before, after = text[:place], text[place + 1 :]
        text = rng.choice([before + other + after, before + after, before + other + text[place:], before or text])
    return text


@pytest.mark.parametrize("name", KINDS)
def test_a_changed_text_is_refused_or_gives_a_map(texts, name):
    rng = random.Random(name)
    accepted = 0
    for number in range(TEXTS_PER_KIND):
        text = (changed_document if number % 3 else changed_text)(texts[name], rng)
        try:
            found = calibrant.repairs.Recalibrator.from_json(text)
        except ValueError:
            continue
        accepted += 1
        repaired = found.predict(SCORES if found.input_kind == "score" else FORECASTS)
        steps = np.diff(repaired)
        assert ((repaired >= 0.0) & (repaired <= 1.0)).all(), text
        assert (steps >= 0.0).all() or (steps <= 0.0).all(), text
        again = calibrant.repairs.Recalibrator.from_json(found.to_json())
        assert again.predict(SCORES if found.input_kind == "score" else FORECASTS).tolist() == repaired.tolist(), text
        assert found.to_sql("p").startswith('CASE WHEN "p" >= '), text
        if not found.weighted_:
            assert 0.0 <= found.guarantee().upper <= 1.0, text
    assert 0 < accepted < TEXTS_PER_KIND


@pytest.mark.parametrize("name", CLASS_KINDS)
def test_a_changed_text_of_classes_is_refused_or_gives_probabilities(name):
    y_prob, y, _ = rows_of_classes(0, rows=60, classes=3)
    text = CLASS_KINDS[name].fit(y_prob, y).to_json()
    rng = random.Random(name)
    accepted = 0
    for number in range(TEXTS_PER_KIND // 4):
        changed = (changed_document if number % 3 else changed_text)(text, rng)
        try:
            found = calibrant.repairs.ClassRecalibrator.from_json(changed)
        except ValueError:
            continue
        accepted += 1
        count = len(found.classes_)
        given = y_prob if count == 3 else np.full((1, count), 1.0 / count)
        given = np.log(given) if found.input_kind == "score" else given
        repaired = quietly(found, given)
        assert ((repaired >= 0.0) & (repaired <= 1.0)).all(), changed
        again = calibrant.repairs.ClassRecalibrator.from_json(found.to_json())
        assert quietly(again, given).tolist() == repaired.tolist(), changed
        assert len(found.to_sql([f"p{k}" for k in range(count)])) == count, changed
        if found.guarantee_ is not None:
            assert 0.0 <= found.guarantee_.upper <= 1.0, changed
    assert 0 < accepted < TEXTS_PER_KIND // 4

"""`CalibrationMetric`: batches and processes add up, with torch where it is installed."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import calibrant
from calibrant.adapters import CalibrationMetric

SOURCE = Path(calibrant.__file__).parents[1]


def batches(count=6, size=500, seed=0):
    """Forecasts that are somewhat too high, and their outcomes."""
    rng = np.random.default_rng(seed)
    forecast = rng.random((count, size))
    return [(each, rng.random(size) < each**1.1) for each in forecast]


def filled(given, **options):
    metric = CalibrationMetric(**options)
    for preds, target in given:
        metric.update(preds, target)
    return metric


def join_group(monkeypatch, size, all_gather_object):
    """Let torch say that there are so many processes, which exchange their states so."""
    group: Any = SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: True,
        get_world_size=lambda _: size,
        get_rank=lambda group: -1 if group == "others" else 0,
        all_gather_object=all_gather_object,
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(distributed=group))


def test_the_bracket_contains_the_error_and_the_limit_is_that_of_certify():
    given = batches(60)
    found = filled(given).compute()
    preds, target = (np.concatenate(column) for column in zip(*given, strict=True))
    exact = calibrant.certify(target, preds, max_error=0.1)
    assert found["error_low"] <= exact.estimate <= found["error_high"]
    assert found["error_high"] - found["error_low"] < 2**-10
    assert exact.upper <= found["upper"] <= exact.upper + 2**-10
    assert found["rows"] == 30_000
    finer = filled(given, bits=16).compute()
    assert finer["error_high"] - finer["error_low"] < found["error_high"] - found["error_low"]
    assert filled(given, confidence_level=0.99).compute()["upper"] > found["upper"]


def test_parts_merged_are_the_whole():
    given = batches()
    whole = filled(given).compute()
    first, second, third = filled(given[:1]), filled(given[1:4]), filled(given[4:])
    assert (first + second + third).compute() == pytest.approx(whole, abs=1e-12)
    assert first.compute()["rows"] == 500  # a sum is a metric of its own
    assert first.merge_state([second, CalibrationMetric(), third]) is first
    assert first.compute() == pytest.approx(whole, abs=1e-12)


def test_a_reset_forgets():
    metric = filled(batches())
    metric.reset()
    with pytest.raises(ValueError, match=r"^no rows were added; call update\(\) before compute\(\)$"):
        metric.compute()
    metric.update([0.5, 0.6], [0, 1])
    assert metric.compute()["rows"] == 2


def test_the_state_does_not_grow():
    metric = filled(batches(40))
    assert len(metric.cells) <= 2**12
    before = len(json.dumps(metric.state_dict()))
    for preds, target in batches(40, seed=1):
        metric.update(preds, target)
    assert len(json.dumps(metric.state_dict())) < 1.1 * before


@pytest.mark.parametrize("weighted", [False, True])
def test_a_state_survives_json(weighted):
    metric = CalibrationMetric()
    for preds, target in batches(2):
        metric.update(preds, target, np.linspace(0.5, 2.0, 500) if weighted else None)
    twin = CalibrationMetric().load_state_dict(json.loads(json.dumps(metric.state_dict())))
    assert twin.compute() == metric.compute()
    twin.update([0.5], [1])  # and goes on
    empty = CalibrationMetric().state_dict()
    assert CalibrationMetric().load_state_dict(empty).state_dict() == empty


def damaged(**changes):
    state = filled(batches(1)).state_dict()
    return {**state, **changes}


def changed(**columns):
    return damaged(cells={**damaged()["cells"], **columns})


def without(column):
    return {name: values for name, values in damaged()["cells"].items() if name != column}


CELLS = len(damaged()["cells"]["index"])


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "^state is not what state_dict"),
        ([1], "^state is not what state_dict"),
        (damaged(format="calibrant/metric/0"), "^state is not what state_dict"),
        (damaged(format=np.array([1, 2])), "^state is not what state_dict"),
        (
            damaged(format="calibrant/metric/2"),
            r"^state was written by a newer version of calibrant \(calibrant/metric/2\); .*; update calibrant",
        ),
        ({name: value for name, value in damaged().items() if name != "classes"}, "^state is not what state_dict"),
        (damaged(classes=None), "^state is damaged"),
        (damaged(classes=1), "^state is damaged: classes "),
        (damaged(classes=2.5), "^state is damaged: classes "),
        (damaged(classes=10**30), "^state is damaged: classes "),
        (damaged(bits=13), "^bits is 12 here and 13 there"),
        (damaged(bits=np.array([12, 12])), "^bits is 12 here and "),
        (damaged(cells={}), "^state is damaged: its cells lack columns; pass what state_dict"),
        (damaged(cells=[1, 2]), "^state is damaged: its cells lack columns"),
        (damaged(cells=np.array([1, 2])), "^state is damaged: its cells lack columns"),
        (damaged(cells=without("weight")), "^state is damaged: its cells lack columns"),
        (damaged(cells=without("bits")), "^state is damaged: it has the facts"),
        (changed(weight=1.5), "^state is damaged: its column weight is no list of numbers"),
        (changed(weight=[10**30]), "^state is damaged: its column weight is no list of numbers"),
        (changed(weight=[[1.0], [1.0, 2.0]]), "^state is damaged: its column weight is no list of numbers"),
        (changed(rows=[1.5]), "^state is damaged: its column rows is no list of whole numbers"),
        (changed(outcome=True), "^state is damaged: its column outcome is no list of numbers"),
        (changed(outcome=[0.0, 1.0]), r"^state is damaged: its column outcome holds 2 numbers, and index \d+; "),
        (changed(outcome=[math.nan] * CELLS), r"^state is damaged: outcome\[0\] is nan, not a finite number"),
        (changed(outcome=[-1.0] * CELLS), r"^state is damaged: outcome\[0\]"),
        (changed(bits=13), "^state is damaged: "),
    ],
)
def test_a_damaged_state_is_refused_and_changes_nothing(state, message):
    metric = filled(batches(1))
    before = metric.compute()
    with pytest.raises(calibrant.InputError, match=message):
        metric.load_state_dict(state)
    assert metric.compute() == before


@pytest.mark.parametrize(
    ("preds", "target", "message"),
    [
        ([0.5, 1.2], [0, 1], r"^preds\[1\] is 1.2, outside \[0, 1\]; .* apply a sigmoid first$"),
        ([0.5, float("nan")], [0, 1], r"^preds\[1\] is missing"),
        ([0.5, 0.6], [0, 2], r"^target\[1\] is 2"),
        ([0.5, 0.6], [0], r"^target has 1 value"),
        ([0, 1], [0.2, 0.7], r"^preds are all 0 or 1, and target are not; pass forecasts first"),
        ([[0.2, 0.3, 0.5]], [3], r"^target\[0\] is 3, and preds has columns 0 to 2"),
        ([[0.2, 0.3, 0.5]], [-100], r"^target\[0\] is -100, .*leave out rows without one, such as padding$"),
        (None, [1], r"^preds is None; pass both, as in update\(preds, target\)$"),
        ([0.5], None, r"^target is None; pass both"),
        ([[0.2, 0.3, 0.5]], [[0, 1, 0]], r"^target has shape \(1, 3\)"),
        ([[0.2, 0.3, 0.1]], [1], r"^preds\[0\] adds up to 0.6 .*; pass probabilities: "),
        ([[2.0, -3.0, 0.1]], [1], r"^preds\[0\] is 2 in column 0, .*: apply a softmax "),
        ([0.5, 0.6], [1, -1], r"^target\[1\] is -1, outside \[0, 1\]; pass 0 and 1, or booleans"),
        ([0.5, 0.6], ["no", "yes"], r"^target\[0\] is 'no', a label .*; pass 0 and 1, or booleans"),
        ([], [1], r"^preds is empty"),
        ([0.5], [], r"^target is empty"),
    ],
)
def test_a_bad_batch_is_refused_in_the_words_of_the_loop(preds, target, message):
    metric = filled(batches(1))
    before = metric.compute()
    with pytest.raises(calibrant.InputError, match=message):
        metric.update(preds, target)
    assert metric.compute() == before


def test_metrics_that_differ_do_not_add_up():
    with pytest.raises(calibrant.InputError, match=r"^bits is 12 here and 14 there; use the same everywhere$"):
        CalibrationMetric().merge_state([CalibrationMetric(bits=14)])
    with pytest.raises(calibrant.InputError, match=r"^confidence_level is 0.95 here and 0.9 there; use the same"):
        CalibrationMetric() + CalibrationMetric(confidence_level=0.9)
    with pytest.raises(calibrant.InputError, match=r"^metrics hold a dict, not a CalibrationMetric"):
        CalibrationMetric().merge_state(cast(Any, [{}]))
    for one in (CalibrationMetric(), None):
        with pytest.raises(calibrant.InputError, match=r"^metrics are one \w+, not a list; pass a list of metrics$"):
            CalibrationMetric().merge_state(cast(Any, one))
    with pytest.raises(TypeError):
        CalibrationMetric() + cast(Any, 1)
    with pytest.raises(calibrant.InputError, match=r"^bits .*8"):
        CalibrationMetric(bits=8)


def softmaxed(classes, size=300, seed=0):
    """A batch of forecasts of some classes, and the numbers of those that came true."""
    rng = np.random.default_rng(seed)
    odds = np.exp(rng.normal(size=(size, classes)))
    return odds / odds.sum(axis=1, keepdims=True), rng.integers(0, classes, size)


EVENT, THREE, FOUR = "an event", "the top label of 3 classes", "the top label of 4 classes"
MIXED = [
    pytest.param(batches(1), [softmaxed(3)], EVENT, THREE, id="event and classes"),
    pytest.param([softmaxed(3)], batches(1), THREE, EVENT, id="classes and event"),
    pytest.param([softmaxed(3)], [softmaxed(2)], THREE, EVENT, id="classes and two columns"),
    pytest.param([softmaxed(3)], [softmaxed(4)], THREE, FOUR, id="three and four"),
]


@pytest.mark.parametrize(("first", "second", "before", "after"), MIXED)
def test_batches_about_different_questions_do_not_add_up(first, second, before, after):
    metric = filled(first)
    kept = metric.state_dict()
    message = (
        rf"^preds are about {after}, and the rows before about {before}; use a metric for each, or reset\(\) first$"
    )
    with pytest.raises(calibrant.InputError, match=message):
        metric.update(*second[0])
    loaded = CalibrationMetric().load_state_dict(json.loads(json.dumps(kept)))
    with pytest.raises(calibrant.InputError, match=message):
        loaded.update(*second[0])  # a checkpoint knows what it is about
    assert metric.state_dict() == kept == loaded.state_dict()
    metric.reset()
    metric.update(*second[0])
    assert metric.state_dict() == filled(second).state_dict()
    assert metric.load_state_dict(kept).state_dict() == kept  # which replaces, and adds nothing


@pytest.mark.parametrize(("first", "second", "before", "after"), MIXED)
def test_metrics_about_different_questions_do_not_add_up(first, second, before, after, monkeypatch):
    one, other = filled(first), filled(second)
    kept = one.state_dict()
    message = rf"^metrics are about {before} here and about {after} there; add up those of one question, "
    with pytest.raises(calibrant.InputError, match=message):
        one + other
    with pytest.raises(calibrant.InputError, match=message):
        one.merge_state([CalibrationMetric(), filled(first), other])
    with pytest.raises(calibrant.InputError, match=message):
        CalibrationMetric().merge_state([one, other])

    def all_gather_object(states, own, group):
        del group
        states[:] = [own, {**own, **other.state_dict()}]

    join_group(monkeypatch, 2, all_gather_object)
    with pytest.raises(calibrant.InputError, match=message):
        one.synced()
    assert one.state_dict() == kept


def test_one_column_and_two_are_about_the_same_event():
    preds, target = softmaxed(2)
    both = filled([(preds, target), (preds[:, 1], target), (preds[:, 1:], target)])
    assert both.compute()["rows"] == 900
    (many, labels), (more, others) = softmaxed(3), softmaxed(3, seed=1)
    assert (filled([(many, labels)]) + filled([(more, others)])).compute()["rows"] == 600


def test_columns_and_classes_are_asked_as_certify_asks_them():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(300, 3))
    preds = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    target = rng.integers(0, 3, 300)
    metric = filled([(preds, target)])
    error = calibrant.cutoff_calibration_error(target, preds, classes=[0, 1, 2])
    assert metric.compute()["error_low"] <= error <= metric.compute()["error_high"]
    two = np.stack([1 - preds[:, 0], preds[:, 0]], axis=1)
    column = filled([(preds[:, :1], (target == 0)[:, None])])  # as the last layer of a network gives it
    assert filled([(two, (target == 0).astype(int))]).compute() == column.compute()


def test_without_a_group_of_processes_there_is_one(monkeypatch):
    metric = filled(batches(1))
    alone = metric.synced()
    assert alone is not metric
    assert alone.compute() == metric.compute()
    absent = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(distributed=absent))
    assert metric.synced().compute() == metric.compute()


def test_a_group_of_processes_adds_up(monkeypatch):
    parts = [filled(batches(2)), CalibrationMetric(), filled(batches(1, seed=1))]

    def all_gather_object(states, own, group):
        assert own == {"confidence_level": 0.95, **parts[0].state_dict()}
        assert group == "some"
        states[:] = json.loads(json.dumps([{**own, **part.state_dict()} for part in parts]))

    join_group(monkeypatch, 3, all_gather_object)
    assert parts[0].synced("some").compute() == (parts[0] + parts[2]).compute()
    assert parts[0].compute()["rows"] == 1000
    with pytest.raises(calibrant.InputError, match=r"^group does not have this process; call synced\(\) in those of "):
        parts[0].synced("others")


def test_processes_with_different_confidence_do_not_add_up(monkeypatch):
    def all_gather_object(states, own, group):
        del group
        states[:] = [own, {**own, "confidence_level": 0.99}]

    join_group(monkeypatch, 2, all_gather_object)
    with pytest.raises(calibrant.InputError, match=r"^confidence_level is 0.95 here and 0.99 there; use the same"):
        filled(batches(1)).synced()


@pytest.mark.parametrize("shape", [(0,), (0, 1), (0, 3)])
def test_an_empty_batch_adds_nothing(shape):
    for metric in (CalibrationMetric(), filled(batches(1))):
        before = metric.state_dict()
        metric.update(np.empty(shape), np.empty(0, dtype=int))
        metric.update(np.empty(shape), np.empty(0, dtype=int), np.empty(0))
        assert metric.state_dict() == before


def test_an_empty_list_adds_nothing():
    metric = filled(batches(1))
    before = metric.state_dict()
    metric.update([], [])
    metric.update([], [], [])
    assert metric.state_dict() == before
    with pytest.raises(calibrant.InputError, match=r"^preds is empty"):
        metric.update([], [], [1.0])


@pytest.mark.parametrize("mask", [[0.0, 0.0], [0, 0], [False, False]])
def test_a_batch_of_weight_zero_adds_nothing_and_is_checked(mask):
    for metric in (CalibrationMetric(), filled(batches(1))):
        before = metric.state_dict()
        metric.update([0.2, 0.7], [0, 1], mask)
        metric.update(np.array([[0.2], [0.7]]), [0, 1], np.array(mask)[:, None])
        assert metric.state_dict() == before
        with pytest.raises(calibrant.InputError, match=r"^preds\[1\] is 1.7, outside \[0, 1\]"):
            metric.update([0.2, 1.7], [0, 1], mask)
        with pytest.raises(calibrant.InputError, match=r"^sample_weight has 2 values"):
            metric.update([0.2, 0.7, 0.9], [0, 1, 1], mask)
    with pytest.raises(calibrant.InputError, match=r"^preds are about the top label of 3 classes"):
        metric.update([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], [0, 1], mask)
    kept = filled(batches(1))
    kept.update([0.2, 0.7, 0.4], [0, 1, 1], [True, False, True])
    assert kept.compute()["rows"] == 502


def test_sum_adds_metrics_up():
    parts = [filled(batches(1, seed=seed)) for seed in range(3)]
    total: Any = sum(parts)
    assert total.compute() == (parts[0] + parts[1] + parts[2]).compute()
    assert parts[0].compute()["rows"] == filled(batches(1)).compute()["rows"]


def test_torch_is_not_imported():
    code = """
import sys
from calibrant.adapters import CalibrationMetric
metric = CalibrationMetric()
metric.update([0.5, 0.6], [0, 1])
metric.synced().compute()
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(SOURCE)}, check=True)


# --- With torch -------------------------------------------------------------------------------------------------------

PROCESS = """
import json, sys
import torch
from calibrant.adapters import CalibrationMetric

rank = int(sys.argv[1])
torch.distributed.init_process_group("gloo", init_method=sys.argv[2], rank=rank, world_size=2)
generator = torch.Generator().manual_seed(rank)
metric = CalibrationMetric()
for _ in range(rank + 1):
    preds = torch.rand(400, generator=generator)
    metric.update(preds, torch.rand(400, generator=generator) < preds)
print(json.dumps([metric.state_dict(), metric.synced().state_dict(), metric.compute()["rows"]]))
torch.distributed.destroy_process_group()
"""


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="torch is not installed: a download of several hundred MB")


@pytest.mark.parametrize("precision", ["float64", "float32", "bfloat16"])
def test_tensors_are_read_as_arrays(torch, precision):
    preds = torch.rand(500, generator=torch.Generator().manual_seed(0)).to(getattr(torch, precision))
    target = torch.rand(500, generator=torch.Generator().manual_seed(1)) < preds
    expected = filled([(preds.double().numpy(), target.numpy())]).compute()
    preds.requires_grad_()
    assert filled([(preds, target)]).compute() == expected
    assert filled([(preds[:, None], target[:, None].long())]).compute() == expected


def test_logits_are_refused_and_softmax_is_not(torch):
    logits = torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
    target = torch.randint(0, 4, (200,), generator=torch.Generator().manual_seed(1))
    metric = CalibrationMetric()
    with pytest.raises(calibrant.InputError, match=r"^preds\[0\]"):
        metric.update(logits, target)
    metric.update(logits.softmax(dim=1), target)
    with pytest.raises(calibrant.InputError, match=r"adds up to .*softmax\(logits.float\(\), 1\)"):
        metric.update(logits.bfloat16().softmax(dim=1), target)
    assert metric.compute()["rows"] == 200


def test_a_checkpoint_takes_the_state(torch, tmp_path):
    metric = filled(batches(1))
    torch.save(metric.state_dict(), tmp_path / "checkpoint.pt")
    stored = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert CalibrationMetric().load_state_dict(stored).compute() == metric.compute()


@pytest.mark.usefixtures("torch")
def test_two_processes_get_the_same_total(tmp_path):
    meeting = (tmp_path / "meeting").as_uri()
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "GLOO_SOCKET_IFNAME": "lo"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(rank), meeting], env=environment, stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    said = [process.communicate()[0] for process in processes]
    (first, total, rows), (second, same, more) = (json.loads(each) for each in said)
    assert total == same
    assert (rows, more) == (400, 800)
    apart = [CalibrationMetric().load_state_dict(state) for state in (first, second)]
    assert CalibrationMetric().load_state_dict(total).compute() == (apart[0] + apart[1]).compute()

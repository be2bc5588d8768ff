"""Recalibrators as ONNX, for scoring where there is no Python: one small graph of standard operators in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.types import FloatArray

if TYPE_CHECKING:
    from calibrant.repairs.maps import (
        BetaRecalibrator,
        ConstantRecalibrator,
        IsotonicRecalibrator,
        PlattRecalibrator,
        TemperatureRecalibrator,
    )
    from calibrant.repairs.recalibrator import Recalibrator

_OPERATORS = 17  # a version that every onnxruntime since 2022 reads
_FORMAT = 8


def to_onnx(recalibrator: Recalibrator) -> Any:
    """Return a fitted recalibrator as an ONNX model, whose output is that of `predict` but for last digits.

    Input ``y_prob`` and output ``probability`` are vectors of float64, of any length. Where `predict` would refuse a
    value (missing, not finite, outside [0, 1]) the output is NaN.

    Parameters
    ----------
    recalibrator : Recalibrator
        Isotonic, Platt, beta, temperature or constant, or guarded; fitted.

    Returns
    -------
    onnx.ModelProto
        ``onnx.save(model, path)`` writes it; ``model.SerializeToString()`` is what onnxruntime takes.

    Examples
    --------
    >>> from calibrant import IsotonicRecalibrator
    >>> import onnxruntime
    >>> recalibrator = IsotonicRecalibrator().fit([0.1, 0.2, 0.3, 0.7, 0.8], [0, 1, 0, 1, 1])
    >>> session = onnxruntime.InferenceSession(to_onnx(recalibrator).SerializeToString())
    >>> session.run(None, {"y_prob": np.array([0.0, 0.25, 0.5, 0.7])})[0]
    array([0. , 0.5, 0.5, 1. ])
    """
    try:
        import onnx
    except ImportError as missing:
        raise ImportError("to_onnx needs onnx; install it with: pip install onnx") from missing
    # Here, so that nobody else loads scikit-learn for them; whoever has a recalibrator has loaded it.
    from calibrant.repairs.class_recalibrator import ClassRecalibrator
    from calibrant.repairs.guard import GuardedRecalibrator

    if isinstance(recalibrator, ClassRecalibrator):
        raise InputError(
            f"is a {type(recalibrator).__name__}, which maps several classes and has no ONNX graph",
            argument="recalibrator",
            remedy="score in a database, by its to_sql(columns), or in Python, by its predict()",
        )
    kept: Any = recalibrator
    if isinstance(kept, GuardedRecalibrator):
        kept._check_fitted("to_onnx")
        kept = kept.recalibrator_
    write = next((write for kind, write in _maps() if isinstance(kept, kind)), None)
    if write is None:
        raise InputError(
            f"is {type(kept).__name__}, which has no ONNX graph",
            argument="recalibrator",
            remedy="pass a fitted isotonic, Platt, beta, temperature, constant or guarded recalibrator, such as the "
            "recalibrator_ of a RecalibratedClassifier",
        )
    kept._check_fitted("to_onnx")
    graph = _Graph(onnx.helper, onnx.numpy_helper)
    found = write(graph, kept, "y_prob")
    graph.add("Where", graph.between("y_prob", *kept._range), found, graph.constant(np.nan), output="probability")
    ends = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, ["rows"])
        for name in ("y_prob", "probability")
    ]
    made = onnx.helper.make_graph(graph.nodes, type(recalibrator).__name__, ends[:1], ends[1:], graph.constants)
    model = onnx.helper.make_model(
        made, producer_name="calibrant", opset_imports=[onnx.helper.make_opsetid("", _OPERATORS)], ir_version=_FORMAT
    )
    onnx.checker.check_model(model, full_check=True)
    return model


class _Graph:
    """Nodes and constants in the making."""

    def __init__(self, helper: Any, numpy_helper: Any) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._helper, self._numpy_helper = helper, numpy_helper

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node, and return the name of its output."""
        name = output or f"step_{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any, kind: type[Any] = np.float64) -> str:
        """Add a constant, and return its name."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self._numpy_helper.from_array(np.asarray(value, dtype=kind), name))
        return name

    def between(self, value: str, low: float, high: float) -> str:
        """Add whether a value is one from low to high, which NaN is not."""
        reached = self.add("GreaterOrEqual", value, self.constant(low))
        return self.add("And", reached, self.add("LessOrEqual", value, self.constant(high)))

    def linear(self, value: str, slope: float, centre: float, level: float) -> str:
        """Add slope (value - centre) + level."""
        moved = self.add("Sub", value, self.constant(centre))
        return self.add("Add", self.add("Mul", moved, self.constant(slope)), self.constant(level))

    def logarithms(self, value: str, clip: float | None) -> tuple[str, str]:
        """Add ln p and ln(1 - p)."""
        if clip is not None:
            value = self.add("Clip", value, self.constant(clip), self.constant(1.0 - clip))
        return self.add("Log", value), self.add("Log", self.add("Sub", self.constant(1.0), value))

    def expit(self, linear: str) -> str:
        """Add 1 / (1 + exp(-z)) as `predict` computes it: Sigmoid loses the digits of what is close to 0."""
        one = self.constant(1.0)
        odds = self.add("Exp", self.add("Neg", self.add("Abs", linear)))
        share = self.add("Where", self.add("GreaterOrEqual", linear, self.constant(0.0)), one, odds)
        return self.add("Div", share, self.add("Add", one, odds))

    def place_among(self, borders: FloatArray, value: str) -> str:
        """Add how many of rising borders a value reaches, found by halving: memory grows with the rows alone."""
        rounds = int(borders.size).bit_length()
        padded = self.constant(np.append(borders, np.full(2**rounds - 1 - borders.size, np.nan)))  # reached by nothing
        place = self.add("Expand", self.constant(0, np.int64), self.add("Shape", value))
        for power in range(rounds - 1, -1, -1):
            farther = self.add("Add", place, self.constant(2**power, np.int64))
            border = self.add("Gather", padded, self.add("Sub", farther, self.constant(1, np.int64)))
            place = self.add("Where", self.add("GreaterOrEqual", value, border), farther, place)
        return place

    def everywhere(self, number: float, value: str) -> str:
        """Add a number for every row."""
        return self.add("Expand", self.constant(number), self.add("Shape", value))


def _isotonic(graph: _Graph, fitted: IsotonicRecalibrator, value: str) -> str:
    low, high, step = fitted.block_low_, fitted.block_high_, fitted.block_value_
    if step.size == 1:
        return graph.everywhere(float(step[0]), value)
    block = graph.place_among(low[1:], value)

    def at_block(numbers: FloatArray) -> str:
        return graph.add("Gather", graph.constant(numbers), block)

    result = at_block(step)
    if fitted.interpolation == "step":
        return result
    # After the last step nothing rises; its width of 1 divides nothing.
    width, rise = np.append(low[1:] - high[:-1], 1.0), np.append(np.diff(step), 0.0)
    beyond = graph.add("Sub", value, at_block(high))
    share = graph.add("Div", graph.add("Max", beyond, graph.constant(0.0)), at_block(width))
    return graph.add("Add", result, graph.add("Mul", share, at_block(rise)))


def _platt(graph: _Graph, fitted: PlattRecalibrator, value: str) -> str:
    if fitted.slope_ == 0.0:
        return graph.everywhere(float(fitted.predict([0.5])[0]), value)
    if fitted.on == "logit":
        value = graph.add("Sub", *graph.logarithms(value, fitted.clip))
    return graph.expit(graph.linear(value, fitted.slope_, fitted.centre_, fitted.level_))


def _beta(graph: _Graph, fitted: BetaRecalibrator, value: str) -> str:
    linear = graph.everywhere(fitted.c_, value)
    for slope, logarithm in zip((fitted.a_, -fitted.b_), graph.logarithms(value, fitted.clip), strict=True):
        if slope != 0.0:
            linear = graph.add("Add", linear, graph.add("Mul", logarithm, graph.constant(slope)))
    return graph.expit(linear)


def _temperature(graph: _Graph, fitted: TemperatureRecalibrator, value: str) -> str:
    logit = graph.add("Sub", *graph.logarithms(value, fitted.clip))
    return graph.expit(graph.add("Div", logit, graph.constant(fitted.temperature_)))


def _constant(graph: _Graph, fitted: ConstantRecalibrator, value: str) -> str:
    return graph.everywhere(fitted.constant_, value)


def _maps() -> Iterator[tuple[type[Any], Callable[[_Graph, Any, str], str]]]:
    """Return what can be written, and what writes it."""
    from calibrant.repairs import maps

    yield maps.IsotonicRecalibrator, _isotonic
    yield maps.PlattRecalibrator, _platt
    yield maps.BetaRecalibrator, _beta
    yield maps.TemperatureRecalibrator, _temperature
    yield maps.ConstantRecalibrator, _constant

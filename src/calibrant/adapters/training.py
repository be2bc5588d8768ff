"""Calibration batch by batch, as training loops see rows: totals of constant size that add up.

Tensors are read as arrays; torch itself is looked up only among what is already imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np

from calibrant.adapters.options import InTool
from calibrant.core.errors import CalibrantError, InputError, UndefinedError, refuse_newer
from calibrant.core.voices import Option, Phrase
from calibrant.rows.asked import asked_of_classes
from calibrant.rows.cells import CELL_COLUMNS, CELL_FACTS, Cells
from calibrant.rows.checks import MOST_ROWS, Observations, check_confidence, check_number, check_observations
from calibrant.rows.grids import Grid
from calibrant.rows.matrices import shape_of

_FORMAT = "calibrant/metric/1"
_WHOLE = ("index", "rows")


class CalibrationMetric:
    """The Cutoff calibration error over batches, with its upper confidence limit: ``update``, ``compute``, ``reset``.

    For evaluation loops of torch, or any others that see rows in batches. What is kept are totals on 2^bits cells of
    forecasts, however many rows there are; metrics of other batches or processes add up with ``+``, `merge_state` or
    `synced`. torch is never imported: tensors on any device are read as arrays, and so are numpy arrays and lists.

    Batches are looked at once, so the error is known up to a bracket, whose width shrinks as ``bits`` grow. The limit
    holds for rows that the model was neither trained nor selected on, looked at once. On training rows, or when
    computed after every epoch to pick the best one, it is a number to follow, and not a guarantee.

    Parameters
    ----------
    confidence_level : float from 0.5 to below 1
        Of the upper limit.
    bits : int from 12 to 20, default 12
        Cells have width 2^-bits. Each takes some 100 bytes if it holds rows, and 0.1 microseconds per batch.

    See Also
    --------
    calibrant.certify : the exact answer, where all rows are at hand.
    calibrant.Monitor : limits that hold at every look, for a model in use.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> metric = CalibrationMetric()
    >>> for _ in range(10):
    ...     preds = rng.random(1000)
    ...     metric.update(preds, rng.random(1000) < preds)
    >>> {name: round(value, 4) for name, value in metric.compute().items()}
    {'error_low': ..., 'error_high': ..., 'upper': ..., 'rows': 10000}
    """

    def __init__(self, *, confidence_level: float = 0.95, bits: int = 12) -> None:
        self.confidence_level = check_confidence(confidence_level)
        self.bits = int(check_number(bits, "bits", low=12, high=20, whole=True))
        self._cells: Cells | None = None
        self._classes: int | None = None  # of the rows so far: two are one event, more a top label

    def update(self, preds: Any, target: Any, sample_weight: Any = None) -> None:
        """Add a batch; an empty one adds nothing, nor does one of weight zero, and one that is refused changes nothing.

        Parameters
        ----------
        preds : tensor or array-like of shape (n,), (n, 1) or (n, K)
            Forecast probabilities, not logits. Of two columns the second is that of the event; of more, the confidence
            in the top label is judged. Those are different questions: all batches have the same number of classes.
            Columns add up to 1 within 0.001, for which bfloat16 is too coarse: pass ``softmax(logits.float(), 1)``.
        target : tensor or array-like of shape (n,) or (n, 1)
            Outcomes: 0/1, booleans or fractions; the number of the class for K columns.
        sample_weight : tensor or array-like of shape (n,) or (n, 1), optional
            Weights fixed beforehand. Rows of weight zero do not count, and are checked like others: what padding fills
            is left out before, as in ``preds[mask], target[mask]``.
        """
        for name, values in (("preds", preds), ("target", target)):
            if values is None:
                raise InputError("is None", argument=name, remedy="pass both, as in update(preds, target)")
        given: list[Any] = [None if each is None else _flat(each) for each in (target, preds, sample_weight)]
        if all(map(_is_empty, given[: 2 if sample_weight is None else 3])):
            return  # as masks leave it
        is_masked = _is_zero(given[2])
        if is_masked:
            given[2] = np.ones(len(given[2]))  # its rows are checked like others
        try:
            rows = _checked(*given)
        except InputError as error:
            raise InputError(_in_loops(error), position=error.position, value=error.value) from None
        classes = _classes_in(given[1])
        if self._classes not in (None, classes):
            raise InputError(
                f"are about {_about(classes)}, and the rows before about {_about(self._classes)}",
                argument="preds",
                remedy="use a metric for each, or reset() first",
            )
        if is_masked:
            return
        batch = Cells.from_rows(rows, Grid(self.bits, 0.0, 1.0))
        self._cells = batch if self._cells is None else self._cells + batch
        self._classes = classes

    def compute(self) -> dict[str, float]:
        """Return what is known of all rows so far, ready to be logged.

        Returns
        -------
        dict
            ``error_low`` and ``error_high`` contain the Cutoff calibration error of these rows. ``upper`` is an upper
            limit of the population's at the confidence level (`certify` with all rows finds one that is no larger).
            ``rows`` is how many there were.
        """
        from calibrant.certificates.brackets import bracket

        cells = self.cells
        error = bracket(cells)
        limit = bracket(cells, method="adaptive", confidence_level=self.confidence_level)
        return {"error_low": error.low, "error_high": error.high, "upper": limit.high, "rows": cells.row_total}

    def reset(self) -> None:
        """Forget all rows, as at the start of an epoch."""
        self._cells = self._classes = None

    @property
    def cells(self) -> Cells:
        """The totals, for whatever else is made of them: ``bracket(metric.cells, measure="smooth")``."""
        if self._cells is None:
            raise UndefinedError("no rows were added", remedy="call update() before compute()")
        return self._cells

    def __add__(self, other: CalibrationMetric) -> CalibrationMetric:
        if not isinstance(other, CalibrationMetric):
            return NotImplemented
        return self._twin().merge_state([self, other])

    def __radd__(self, start: int) -> CalibrationMetric:
        return self._twin().merge_state([self]) if start == 0 else NotImplemented  # as sum() begins

    def __repr__(self) -> str:
        rows = 0 if self._cells is None else self._cells.row_total
        return f"CalibrationMetric({rows:,} rows, confidence_level={self.confidence_level}, bits={self.bits})"

    def merge_state(self, metrics: Iterable[CalibrationMetric]) -> Self:
        """Add the rows of other metrics to those of this one, and return it; all are about as many classes."""
        if not isinstance(metrics, Iterable):
            raise InputError(
                f"are one {type(metrics).__name__}, not a list", argument="metrics", remedy="pass a list of metrics"
            )
        merged: list[CalibrationMetric] = [self, *metrics]
        for each in merged:
            self._check_like(each)
        held = [(each._cells, each._classes) for each in merged if each._cells is not None]
        if not held:
            return self
        first, classes = held[0]
        for _, others in held:
            if others != classes:
                raise InputError(
                    f"are about {_about(classes)} here and about {_about(others)} there",
                    argument="metrics",
                    remedy="add up those of one question, and keep a metric for each",
                )
        self._cells = sum((cells for cells, _ in held[1:]), start=first)
        self._classes = classes
        return self

    def synced(self, group: Any = None) -> CalibrationMetric:
        """Return a metric of the rows of all processes of a group; this one keeps its own rows only.

        Every process of the group has to call it, and each gets the same. Without torch.distributed, or where no group
        was started, there is one process, and its rows are all rows.

        Parameters
        ----------
        group : torch.distributed.ProcessGroup, optional
            The default group where left out.
        """
        distributed = getattr(sys.modules.get("torch"), "distributed", None)
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return self._twin().merge_state([self])
        if distributed.get_rank(group) < 0:
            raise InputError(
                "does not have this process", argument="group", remedy="call synced() in those of the group"
            )
        states: list[Any] = [None] * distributed.get_world_size(group)
        own = {"confidence_level": self.confidence_level, **self.state_dict()}
        distributed.all_gather_object(states, own, group=group)
        for state in states:
            self._check_same("confidence_level", state["confidence_level"])
        return self._twin().merge_state([self._twin().load_state_dict(state) for state in states])

    def state_dict(self) -> dict[str, Any]:
        """Return the totals as lists and numbers, which ``torch.save`` and ``json.dump`` take as they are."""
        state: dict[str, Any] = {"format": _FORMAT, "bits": self.bits, "classes": self._classes, "cells": None}
        if self._cells is not None:
            facts = (*CELL_FACTS, *(("weights_estimated",) if self._cells.weights_estimated else ()))
            state["cells"] = {name: getattr(self._cells, name) for name in facts}
            state["cells"].update({name: getattr(self._cells, name).tolist() for name in CELL_COLUMNS})
        return state

    def load_state_dict(self, state: Any) -> Self:
        """Replace the totals by those of `state_dict`, and return the metric; what no rows can have is refused."""
        fields = {"bits", "classes", "cells"}
        said = state.get("format") if isinstance(state, Mapping) else None
        refuse_newer("state", said, _FORMAT)
        if not isinstance(said, str) or said != _FORMAT or not fields <= state.keys():
            raise InputError("is not what state_dict() returned", argument="state", remedy=f"its format is {_FORMAT}")
        self._check_same("bits", state["bits"])
        held = state["cells"]
        if held is None:
            self.reset()
            return self
        try:
            classes = int(check_number(state["classes"], "classes", low=2, high=MOST_ROWS, whole=True))
            loaded = _restored(held)
        except CalibrantError as error:
            raise InputError(
                f"is damaged: {error}", argument="state", remedy="pass what state_dict() returned"
            ) from error
        self._check_same("bits", loaded.bits)
        self._cells, self._classes = loaded, classes
        return self

    def _twin(self) -> CalibrationMetric:
        """Return an empty metric with the same settings."""
        return CalibrationMetric(confidence_level=self.confidence_level, bits=self.bits)

    def _check_like(self, other: Any) -> None:
        if not isinstance(other, CalibrationMetric):
            raise InputError(
                f"hold a {type(other).__name__}, not a CalibrationMetric",
                argument="metrics",
                remedy="pass a list of metrics",
            )
        self._check_same("bits", other.bits)
        self._check_same("confidence_level", other.confidence_level)

    def _check_same(self, setting: str, other: Any) -> None:
        own = getattr(self, setting)
        if not isinstance(other, (int, float)) or other != own:
            raise InputError(f"is {own} here and {other} there", argument=setting, remedy="use the same everywhere")


def _restored(held: Any) -> Cells:
    """Return the cells of a state; what cannot be read as their columns is refused."""
    if not isinstance(held, Mapping) or not held.keys() >= set(CELL_COLUMNS):
        raise InputError("its cells lack columns")
    columns = {}
    for name in CELL_COLUMNS:
        try:
            columns[name] = column = np.array(held[name])
        except (TypeError, ValueError, RuntimeError):  # lists of different lengths, tensors of another device
            column = np.empty(())
        if column.ndim != 1 or column.dtype.kind not in ("i" if name in _WHOLE else "if"):
            raise InputError(f"its column {name} is no list of {'whole ' if name in _WHOLE else ''}numbers")
    sizes = {name: column.size for name, column in columns.items()}
    other = next((name for name, size in sizes.items() if size != sizes["index"]), None)
    if other is not None:
        raise InputError(f"its column {other} holds {sizes[other]:,} numbers, and index {sizes['index']:,}")
    return Cells.from_columns({name: value for name, value in held.items() if name not in columns}, columns)


_BATCH = InTool(y_prob="preds", y_true="target")
_REMEDIES = {
    "y_true": "pass 0 and 1, or booleans, as in target == event",
    "y_prob": "pass probabilities: one for each row, or those of softmax(logits.float(), 1), a column for every class",
}


def _in_loops(error: InputError) -> str:
    """Word what is wrong with a batch; where the gate names an option that `update` lacks, say what to pass instead."""
    facts = error.remedy.facts.values() if isinstance(error.remedy, Phrase) else ()
    if error.argument in _REMEDIES and any(isinstance(fact, Option) for fact in facts):
        error.remedy = _REMEDIES[error.argument]
    return error.said(_BATCH)


def _flat(values: Any) -> Any:
    """Return what the gate reads: arrays for tensors of any device and precision, one dimension for one column."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.double() if values.is_floating_point() else values  # numpy knows no bfloat16
    return np.asarray(values).reshape(-1) if shape_of(values)[1:] == (1,) else values


def _is_empty(values: Any) -> bool:
    return shape_of(values)[:1] == (0,) or (isinstance(values, (list, tuple)) and not values)


def _is_zero(weight: Any) -> bool:
    """Whether no row of a batch counts."""
    if weight is None or _is_empty(weight):
        return False
    values = np.asarray(weight)
    return values.ndim == 1 and values.dtype.kind in "biuf" and not values.any()


def _classes_in(preds: Any) -> int:
    """Return how many classes a batch is about; one column and two are about an event, which happens or does not."""
    return max((2, *shape_of(preds)[1:]))


def _about(classes: int | None) -> str:
    return "an event" if classes == 2 else f"the top label of {classes:,} classes"


def _checked(target: Any, preds: Any, weight: Any) -> Observations:
    """Return the rows of a batch, or those of the question that is asked of several classes."""
    shape = shape_of(preds)
    if len(shape) == 2:
        _check_numbers_of_classes(target, shape[1])
        family = asked_of_classes(target, preds, range(shape[1]), None, False, weight)
        if family is not None:
            (column,) = family
            rows: Observations = column
            return rows
    rows = check_observations(target, preds, sample_weight=weight, order=None)
    if not rows.binary_outcomes and bool(((rows.y_prob == 0.0) | (rows.y_prob == 1.0)).all()):
        raise InputError(
            "are all 0 or 1, and target are not",
            argument="y_prob",
            remedy="pass forecasts first, as in update(preds, target)",
        )
    return rows


def _check_numbers_of_classes(target: Any, count: int) -> None:
    labels = np.asarray(target)
    if labels.dtype.kind not in "iu" or labels.ndim != 1:
        raise InputError(
            f"has shape {labels.shape} and dtype {labels.dtype}, and preds has {count} columns",
            argument="y_true",
            remedy="pass the number of the class of each row, a whole number",
        )
    wrong = np.flatnonzero((labels < 0) | (labels >= count))
    if wrong.size:
        raise InputError(
            f"is {labels[wrong[0]]}, and preds has columns 0 to {count - 1}",
            argument="y_true",
            position=int(wrong[0]),
            value=int(labels[wrong[0]]),
            remedy="pass the number of the column of each row's class, and leave out rows without one, such as padding",
        )

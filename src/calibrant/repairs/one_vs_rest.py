"""Each class against the others, repaired by a map of its own.

.. [1] Zadrozny, Elkan (2002), Transforming classifier scores into accurate multiclass probability estimates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.sql import number_literal
from calibrant.core.types import ClassLabel, FloatArray
from calibrant.core.words import rounded_up
from calibrant.repairs.class_recalibrator import ASSUMED, ClassRecalibrator
from calibrant.repairs.class_results import ClassGuarantee
from calibrant.repairs.class_rows import FitRows
from calibrant.repairs.guard import rebuilt_rung
from calibrant.repairs.maps import IsotonicRecalibrator
from calibrant.repairs.recalibrator import GuaranteedMeasure, GuaranteeTarget, InputKind, Recalibrator, plain_params
from calibrant.repairs.results import MEASURES
from calibrant.rows.checks import check_flag


class AroundRecalibrator(ClassRecalibrator):
    """What recalibrators of classes share that are made of recalibrators of events."""

    recalibrator: Recalibrator | None

    def _check_params(self) -> None:
        if self.recalibrator is None:
            return
        if not isinstance(self.recalibrator, Recalibrator):
            raise InputError(
                f"is {self.recalibrator!r}, not a recalibrator of events",
                argument="recalibrator",
                value=self.recalibrator,
                remedy="pass an instance, as in IsotonicRecalibrator()",
            )
        if self.recalibrator.pos_label is not None:
            raise InputError(
                f"has pos_label={self.recalibrator.pos_label!r}, and the classes are told apart here",
                argument="recalibrator",
                remedy="leave pos_label out",
            )

    def _new_map(self) -> Recalibrator:
        """Return an unfitted recalibrator of events that reads what this one reads."""
        if self.recalibrator is None:
            return IsotonicRecalibrator(input_kind=self.input_kind)
        made: Recalibrator = clone(self.recalibrator)
        return made

    def _plain(self, name: str, value: Any) -> Any:
        if name == "recalibrator" and value is not None:
            return {"type": type(value).__name__, "params": plain_params(value)}
        return super()._plain(name, value)

    @classmethod
    def _rebuilt_param(cls, name: str, value: Any) -> Any:
        if name == "recalibrator" and value is not None:
            return rebuilt_rung(value)
        return super()._rebuilt_param(name, value)


class OneVsRestRecalibrator(AroundRecalibrator):
    """Recalibrate every class against all others by a map of its own, isotonic regression unless another is named.

    The rows of class k are events of its column, all other rows are not; K maps are fitted to the K columns. The new
    columns need not sum to 1, so that by default every row is divided by its sum afterwards.

    **What dividing does.** Not renormalised, K isotonic maps have with probability 1 - delta, all classes together, a
    Cutoff calibration error of at most 3 sqrt(ln(2 e K / delta) / (2 n)), known before any data. Dividing each row by
    its sum can undo that, however close the sums are to 1: classes that were calibrated one by one can then be off by
    0.25 (docs/theory/class-repairs.md has the example). So ``renormalize=True`` has no guarantee from its fitting
    rows: the guarantee of the maps is void for their quotients, and the result must be certified again, on rows kept
    aside. Keep ``renormalize=False`` where the guarantee matters more than sums of 1.

    For two classes there is one map, that of the second class, and the first class gets the rest: the guarantee stays,
    without the K.

    Parameters
    ----------
    recalibrator : Recalibrator, optional
        The map of each class: any recalibrator of events, by default `IsotonicRecalibrator`.
    renormalize : bool, default True
        Whether rows are divided by their sums; a row whose new probabilities are all 0 gets equal ones.
    multilabel : bool, default False
        Whether a row may be of several classes at once, or of none: ``y_true`` is then an array of 0 and 1 with the
        columns of ``y_prob``, rows need not sum to 1, and nothing is ever divided.
    input_kind : {"probability", "score"}
        Whether ``y_prob`` holds probabilities, or scores of any scale. A map of your own must say the same.
    classes : sequence of labels, optional
        The labels of the columns; by default those in ``y_true``, sorted.

    Attributes
    ----------
    maps_ : tuple of Recalibrator
        The fitted map of each class; for two classes that of the second alone.
    classes_ : tuple
        The labels, in the order of the columns.
    guarantee_ : ClassGuarantee or None
        What holds with 95% confidence; None where rows are divided by their sums, and after a fit with weights.
    n_rows_, weighted_
        About the fitting rows.

    References
    ----------
    [1]_; the guarantee and the counterexample are this project's.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.dirichlet([1.0, 1.0, 1.0], 2000)
    >>> y_true = [rng.choice(3, p=row**2 / (row**2).sum()) for row in y_prob]  # surer than forecast
    >>> OneVsRestRecalibrator().fit(y_prob, y_true).predict([[0.6, 0.3, 0.1]]).round(2)
    array([[0.76, 0.22, 0.02]])
    >>> print(OneVsRestRecalibrator(renormalize=False).fit(y_prob, y_true).guarantee().finding())
    With 95% confidence the Cutoff calibration error of every class against the rest is at most 0.1142 in the
    population: 0.0000 on the 2,000 rows it was fitted to, and at most 0.1142 more elsewhere.
    """

    _fitted: ClassVar = ("maps_",)

    def __init__(
        self,
        recalibrator: Recalibrator | None = None,
        *,
        renormalize: bool = True,
        multilabel: bool = False,
        input_kind: InputKind = "probability",
        classes: Sequence[ClassLabel] | None = None,
    ) -> None:
        self.recalibrator = recalibrator
        self.renormalize = renormalize
        self.multilabel = multilabel
        self.input_kind = input_kind
        self.classes = classes

    def _check_params(self) -> None:
        check_flag(self.renormalize, "renormalize")
        check_flag(self.multilabel, "multilabel")
        super()._check_params()
        if self.recalibrator is not None and self._new_map().input_kind != self.input_kind:
            raise InputError(
                f"takes input_kind={self.recalibrator.input_kind!r}, and this one input_kind={self.input_kind!r}",
                argument="recalibrator",
                remedy="set both alike",
            )

    def _fit_map(self, rows: FitRows) -> None:
        columns = range(len(rows.classes)) if self._has_all_maps else [1]
        fitted = []
        for k in columns:
            try:
                fitted.append(self._new_map().fit(rows.value[:, k], rows.happened(k), sample_weight=rows.weight))
            except UndefinedError as problem:
                raise UndefinedError(
                    f"class {rows.classes[k]!r} against the others: {problem.problem}", remedy=problem.remedy
                ) from problem
        self.maps_ = tuple(fitted)

    def _map(self, value: FloatArray) -> FloatArray:
        if not self._has_all_maps:
            event = self.maps_[0]._map(value[:, 1])
            return np.stack([1.0 - event, event], axis=1)
        found = np.stack([each._map(value[:, k]) for k, each in enumerate(self.maps_)], axis=1)
        if not self._divides:
            return found
        total = found.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            divided: FloatArray = np.where(total > 0.0, found / total, 1.0 / found.shape[1])
        return divided

    def _sql(self, columns: list[str]) -> list[str]:
        if not self._has_all_maps:
            event = self.maps_[0]._sql(columns[1])
            return [f"1e0 - ({event})", event]
        found = [each._sql(column) for each, column in zip(self.maps_, columns, strict=True)]
        if not self._divides:
            return found
        total = " + ".join(f"({each})" for each in found)
        equal = number_literal(1.0 / len(found))
        return [f"CASE WHEN {total} > 0e0 THEN ({each}) / ({total}) ELSE {equal} END" for each in found]

    @property
    def _has_all_maps(self) -> bool:
        """Whether every class has a map; of two classes the first gets what the second leaves."""
        return self.multilabel or len(self.classes_) > 2

    @property
    def _divides(self) -> bool:
        return self.renormalize and self._has_all_maps and not self.multilabel

    def _refuse_guarantee(self) -> None:
        if self._divides:
            raise InputError(
                "is True, and dividing each row by its sum can undo what was guaranteed of each class, however close "
                "the sums are to 1",
                argument="renormalize",
                remedy="certify() the result again, on rows kept aside, or use renormalize=False",
            )

    def _guarantee(self, level: float, measure: GuaranteedMeasure, target: GuaranteeTarget) -> ClassGuarantee:
        each = 1.0 - (1.0 - level) / len(self.maps_)
        found = [fitted._guarantee(each, measure, target, None) for fitted in self.maps_]
        worst = max(found, key=lambda one: one.upper)
        advance = [one.in_advance for one in found if one.in_advance is not None]
        in_advance = max(advance) if len(advance) == len(found) else None
        if in_advance is None:
            promise = (
                "nothing was promised, because maps of this shape can stay miscalibrated however many rows there are; "
                "the bound is known only now that the errors on the fitting rows are"
            )
        else:
            bound = "this bound" if in_advance == worst.upper else f"a bound of {rounded_up(in_advance)}"
            promise = f"{bound} was promised, from the numbers of rows and classes alone"
            if self.recalibrator is None:
                promise += f", because isotonic regression has no {MEASURES[measure]} on the rows it is fitted to"
        notes = [f"class {label!r}: {note}" for label, one in self._named(found) for note in one.notes]
        return ClassGuarantee(
            recalibrator=type(self).__name__,
            question="multilabel" if self.multilabel else "classwise",
            upper=worst.upper,
            error=worst.error,
            margin=worst.margin,
            in_advance=in_advance,
            confidence_level=level,
            rows=self.n_rows_,
            classes=self.classes_,
            promise=promise,
            measure=measure,
            target=target,
            assumptions=ASSUMED[target],
            notes=tuple(notes),
        )

    def _named(self, values: Sequence[Any]) -> list[tuple[Any, Any]]:
        """Return what there is of each map beside the label of its class."""
        labels = self.classes_ if self._has_all_maps else self.classes_[1:]
        return list(zip(labels, values, strict=True))

    def _restored(self, name: str, value: Any) -> tuple[Recalibrator, ...]:
        wanted = len(self.classes_) if self._has_all_maps else 1
        if not isinstance(value, list) or len(value) != wanted:
            raise InputError(f"must be a list of {wanted} maps", argument=name, remedy="the text is damaged")
        return tuple(Recalibrator._from_dict(each) for each in value)

    def _check_state(self) -> None:
        for fitted in self.maps_:
            wanted = type(self._new_map())
            if type(fitted) is not wanted or fitted.input_kind != self.input_kind:
                raise InputError(
                    f"holds a {type(fitted).__name__} in place of {wanted.__name__}",
                    argument="maps_",
                    remedy="the text is damaged",
                )

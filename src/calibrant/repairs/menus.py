"""A menu of repairs fixed beforehand, one of which is chosen on the very rows that bound its error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from sklearn.base import clone

from calibrant.certificates.families import interval_family
from calibrant.certificates.judging import check_plan
from calibrant.core.errors import InputError
from calibrant.core.types import ClassLabel, FloatArray, IntArray
from calibrant.measures.judged import judged_measure
from calibrant.repairs.class_maps import ClassTemperatureRecalibrator
from calibrant.repairs.class_recalibrator import ASSUMED, ClassRecalibrator
from calibrant.repairs.class_results import ClassGuarantee
from calibrant.repairs.class_rows import FitRows
from calibrant.repairs.documents import check_fields
from calibrant.repairs.recalibrator import GuaranteedMeasure, GuaranteeTarget
from calibrant.rows.checks import check_choice, check_confidence, check_number
from calibrant.rows.classes import QUESTIONS, QuestionsAsked

Rule = Literal["log_loss", "brier"]
RULES: tuple[str, ...] = get_args(Rule)

_BOUNDED, _TARGETS = ("cutoff",), ("population",)
"""What a menu has a bound of, and for whom."""

GRID = 2.0 ** (np.arange(-12, 19) / 6.0)
"""Temperatures of the default menu: 31 from a quarter to 8, each an eighth above the one before, 1 among them."""


class MenuRecalibrator(ClassRecalibrator):
    """Choose one of several maps that were fixed beforehand, on the very rows that then bound its error.

    The maps of the menu, J of them, must have been fixed without looking at the rows: a grid of temperatures, or
    repairs that were fitted to other rows. Then one may be chosen by any rule whatever, here the lowest log loss or
    Brier score, and the upper limit of the chosen one, computed from the same rows at delta/J in place of delta, holds
    with probability 1 - delta. No shape is asked of the maps: temperature scaling, which has no guarantee of its own
    with three classes or more, has one here. The price is ln(J) in place of rows kept aside.

    Parameters
    ----------
    menu : sequence of ClassRecalibrator, optional
        Maps fixed beforehand: temperatures that are named, ``ClassTemperatureRecalibrator(temperature=2.0)``, and
        recalibrators that were fitted to other rows. By default 31 temperatures from 1/4 to 8, of which 1 changes
        nothing.
    rule : {"log_loss", "brier"}
        How one is chosen: the lowest mean of -ln(probability given to what happened), or of the squared distance
        between probabilities and what happened. Of equal ones the first is taken.
    questions : {"confidence", "classwise", "top_label", "pairs", "subsets"}
        Which error is bounded, as in `certify`; of several questions the largest.
    confidence_level : float from 0.5 to below 1
        Of the bound, which is computed by ``fit``.
    classes : sequence of labels, optional
        The labels of the columns; by default those in ``y_true``, sorted.

    Attributes
    ----------
    recalibrator_ : ClassRecalibrator
        The map that was chosen.
    number_ : int
        Its place in the menu.
    scores_ : array of shape (J,)
        The log loss, or the Brier score, of each map on these rows.
    questions_, confidence_level_ : str, float
        Which error ``fit`` bounded, and how surely; parameters that are set afterwards count from the next fit on.
    classes_ : tuple
        The labels, in the order of the columns.
    guarantee_ : ClassGuarantee or None
        The bound on the error of the chosen map; None after a fit with weights.
    n_rows_, weighted_
        About the rows.

    References
    ----------
    This project's (docs/theory/class-repairs.md).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.dirichlet([0.3, 0.3, 0.3], 2000)
    >>> y_true = [rng.choice(3, p=row**0.5 / (row**0.5).sum()) for row in y_prob]  # less sure than forecast
    >>> recalibrator = MenuRecalibrator().fit(y_prob, y_true)
    >>> recalibrator.recalibrator_.temperature_, round(recalibrator.guarantee_.upper, 3)
    (2.0, 0.048)
    """

    _fitted: ClassVar = (
        "recalibrator_",
        "number_",
        "scores_",
        "estimate_",
        "upper_",
        "questions_",
        "confidence_level_",
    )

    def __init__(
        self,
        menu: Sequence[ClassRecalibrator] | None = None,
        *,
        rule: Rule = "log_loss",
        questions: QuestionsAsked = "confidence",
        confidence_level: float = 0.95,
        classes: Sequence[ClassLabel] | None = None,
    ) -> None:
        self.menu = menu
        self.rule = rule
        self.questions = questions
        self.confidence_level = confidence_level
        self.classes = classes

    def guarantee(
        self,
        confidence_level: float | None = None,
        *,
        measure: GuaranteedMeasure = "cutoff",
        target: GuaranteeTarget = "population",
    ) -> ClassGuarantee:
        """Return the bound on the error of the chosen map, at the level that the fit was asked for.

        Parameters
        ----------
        confidence_level : float, optional
            That of the fit; no other one is known after the fit.
        measure : {"cutoff"}
            The Cutoff calibration error.
        target : {"population"}
            Cases to come from the same population.

        Returns
        -------
        ClassGuarantee
            The bound, and what it rests on.
        """
        self._check_fitted("guarantee")
        level = check_confidence(self.confidence_level_ if confidence_level is None else confidence_level)
        check_choice(measure, "measure", _BOUNDED)
        check_choice(target, "target", _TARGETS)
        if level != self.confidence_level_:
            raise InputError(
                "a menu bounds the error at the confidence level of its fit",
                remedy=f"fit again with MenuRecalibrator(confidence_level={level:g})",
            )
        return super().guarantee(level)

    def __sklearn_clone__(self) -> MenuRecalibrator:
        # The maps of the menu are fixed: a copy that forgot what they were fitted to would have another menu.
        return type(self)(**self.get_params(deep=False))

    def _check_params(self) -> None:
        check_choice(self.rule, "rule", RULES)
        check_choice(self.questions, "questions", QUESTIONS)
        check_confidence(self.confidence_level)
        if self.menu is None:
            return
        if not isinstance(self.menu, (list, tuple)) or not self.menu:
            raise InputError(
                f"must be a list of recalibrators of classes, got {self.menu!r}", argument="menu", value=self.menu
            )
        for position, each in enumerate(self.menu):
            if not isinstance(each, ClassRecalibrator) or each.multilabel or each.input_kind != self.input_kind:
                raise InputError(
                    f"is {each!r}, not a recalibrator of the probabilities of classes",
                    argument="menu",
                    position=position,
                    value=each,
                    remedy="pass such as ClassTemperatureRecalibrator(temperature=2.0)",
                )
            if getattr(each, "temperature", None) is None and not hasattr(each, "guarantee_"):
                raise InputError(
                    f"is {each!r}, which is not fixed yet",
                    argument="menu",
                    position=position,
                    value=each,
                    remedy="fit it to other rows first, or name its temperature: maps that are fitted to these rows "
                    "are not fixed beforehand",
                )

    def _fit_map(self, rows: FitRows) -> None:
        places = rows.places
        best, chosen = None, rows.value
        scores: list[float] = []
        counts = slice(None) if rows.weight is None else np.flatnonzero(rows.weight)  # others may be impossible
        for each in self._dishes(rows):
            forecast = each._mapped(rows.value)
            loss = _LOSSES[self.rule](forecast, places)[counts]
            score = float(np.average(loss, weights=None if rows.weight is None else rows.weight[counts]))
            if best is None or score < min(scores):
                best, chosen, self.number_ = each, forecast, len(scores)
            scores.append(score)
        assert best is not None
        self.recalibrator_, self.scores_ = best, np.array(scores)
        self.questions_, self.confidence_level_ = self.questions, float(self.confidence_level)
        level = 1.0 - (1.0 - self.confidence_level_) / len(scores)
        plan = check_plan("adaptive", judged_measure("cutoff", 2.0, None, None, None), level, "rows", None)
        questions = rows.asked(chosen).family(self.questions_)
        found = interval_family(plan, questions, "less", seed=0)
        self.estimate_, self.upper_ = found.estimate, min(1.0, max(found.upper, found.estimate))

    def _dishes(self, rows: FitRows) -> list[ClassRecalibrator]:
        """Return the maps to choose from, those that are not fitted with the classes that these rows have."""
        if self.menu is None:
            made: Sequence[ClassRecalibrator] = [ClassTemperatureRecalibrator(temperature=float(t)) for t in GRID]
        else:
            made = self.menu
        found = []
        for position, each in enumerate(made):
            if getattr(each, "temperature", None) is not None:
                each = clone(each).set_params(classes=list(rows.classes))._fit_to(rows)
            elif tuple(each.classes_) != tuple(rows.classes):
                raise InputError(
                    f"was fitted to the classes {each.classes_}, and these rows have {rows.classes}",
                    argument="menu",
                    position=position,
                    remedy="pass classes= to the recalibrator, or a menu for these classes",
                )
            found.append(each)
        return found

    def _map(self, value: FloatArray) -> FloatArray:
        return self.recalibrator_._map(value)

    def _sql(self, columns: list[str]) -> list[str]:
        return self.recalibrator_._sql(columns)

    def _refuse_guarantee(self) -> None:
        pass

    def _guarantee(self, level: float, measure: GuaranteedMeasure, target: GuaranteeTarget) -> ClassGuarantee:
        del level  # that of the fit
        whom, fixed = ASSUMED[target]
        return ClassGuarantee(
            recalibrator=type(self).__name__,
            question=self.questions_,
            upper=self.upper_,
            error=self.estimate_,
            margin=self.upper_ - self.estimate_,
            in_advance=None,
            confidence_level=self.confidence_level_,
            rows=self.n_rows_,
            classes=self.classes_,
            promise="nothing was promised, since a menu may hold no good map; the bound is that of the map that was "
            "chosen, with the confidence shared by all of them",
            measure=measure,
            target=target,
            choices=self.scores_.size,
            assumptions=(whom, f"{fixed}, and so were the maps of the menu"),
        )

    def _to_dict(self) -> dict[str, Any]:
        data = super()._to_dict()
        # An infinite loss, where something happened that was ruled out, is no number in JSON.
        data["fitted"]["scores_"] = [float(each) if np.isfinite(each) else None for each in self.scores_]
        return data

    def _plain(self, name: str, value: Any) -> Any:
        if name == "menu" and value is not None:
            return [_plain_map(each) for each in value]
        return super()._plain(name, value)

    @classmethod
    def _rebuilt_param(cls, name: str, value: Any) -> Any:
        if name == "menu" and value is not None:
            if not isinstance(value, list):
                raise InputError(f"must be a list, got {value!r}", argument=name, remedy="the text is damaged")
            return [_rebuilt(each) for each in value]
        return super()._rebuilt_param(name, value)

    def _restored(self, name: str, value: Any) -> Any:
        if name == "recalibrator_":
            return ClassRecalibrator._from_dict(value)
        if name == "scores_":
            if not isinstance(value, list) or not value:
                raise InputError(f"must be a list of numbers, got {value!r}", argument=name)
            return np.array([np.inf if each is None else check_number(each, name, low=0.0) for each in value])
        if name == "number_":
            return int(check_number(value, name, low=0, whole=True))
        if name == "questions_":
            return check_choice(value, name, QUESTIONS)
        if name == "confidence_level_":
            return check_confidence(value)
        return check_number(value, name, low=0.0, high=1.0)

    def _check_state(self) -> None:
        count = GRID.size if self.menu is None else len(self.menu)
        if self.scores_.size != count or self.number_ >= count or self.scores_[self.number_] > self.scores_.min():
            raise InputError("does not say what was chosen", argument="scores_", remedy="the text is damaged")
        if tuple(self.recalibrator_.classes_) != tuple(self.classes_) or self.estimate_ > self.upper_:
            raise InputError("is not what was chosen", argument="recalibrator_", remedy="the text is damaged")


def _plain_map(recalibrator: ClassRecalibrator) -> dict[str, Any]:
    """Return a map of the menu as JSON holds it, with what was fitted where it was."""
    if hasattr(recalibrator, "guarantee_"):
        return recalibrator._to_dict()
    return {"type": type(recalibrator).__name__, "params": recalibrator._plain_params()}


def _rebuilt(data: Any) -> ClassRecalibrator:
    if isinstance(data, dict) and "fitted" in data:
        return ClassRecalibrator._from_dict(data)
    check_fields(data, ("type", "params"), "a map of the menu")
    check_choice(data["type"], "type of a map of the menu", (ClassTemperatureRecalibrator.__name__,))
    return ClassTemperatureRecalibrator._from_params(data["params"])


def log_losses(forecast: FloatArray, places: IntArray) -> FloatArray:
    """Return -ln(probability given to what happened), row by row."""
    with np.errstate(divide="ignore"):
        loss: FloatArray = 0.0 - np.log(forecast[np.arange(places.size), places])
    return loss


def brier_losses(forecast: FloatArray, places: IntArray) -> FloatArray:
    """Return the squared distance between the probabilities and what happened, row by row."""
    given = forecast[np.arange(places.size), places]
    loss: FloatArray = np.square(forecast).sum(axis=1) - 2.0 * given + 1.0
    return loss


_LOSSES = {"log_loss": log_losses, "brier": brier_losses}

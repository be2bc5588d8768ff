"""The guard: try maps in turn, and keep the first that is calibrated on its own rows.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from sklearn.base import clone

from calibrant.certificates.margins import paper_margin
from calibrant.core.errors import InputError
from calibrant.core.types import ClassLabel, FloatArray
from calibrant.core.words import rounded_up
from calibrant.repairs.documents import check_fields
from calibrant.repairs.fits import FindErrors, FitErrors, Sample
from calibrant.repairs.ladder import NULL_LEVEL, TOLERANCES, climbed, moved_by_design, null_quantile
from calibrant.repairs.maps import ConstantRecalibrator, IsotonicRecalibrator, PlattRecalibrator
from calibrant.repairs.plain import ENDS, Ends
from calibrant.repairs.recalibrator import INPUTS, KINDS, InputKind, Recalibrator, kinds
from calibrant.repairs.results import LadderRung
from calibrant.rows.checks import check_choice, check_number


class GuardedRecalibrator(Recalibrator):
    """Try recalibrators in turn, and keep the first that is calibrated on its own rows: modified Platt, generalised.

    A rung of the ladder is kept when the Cutoff error of its forecasts, on the rows it was fitted to, is within the
    tolerance. The last rung has no error there, so that something is always kept, and the error in the population is
    bounded before any data is seen: isotonic regression's bound plus the tolerance. The risk gap is at most the Cutoff
    error, so that the same tolerance serves ``guarantee(measure="risk_gap")``. With the ladder
    ``[PlattRecalibrator(), ConstantRecalibrator()]`` and ``tolerance="paper"`` it is the modified Platt scaling of
    appendix D.2 of [1]_.

    Parameters
    ----------
    ladder : list of recalibrators, optional
        In the order to try; by default Platt, isotonic, constant. The last one must be isotonic or constant.
    tolerance : {"null-95", "paper"} or float
        The largest Cutoff error with which a rung is kept. "null-95" is what calibrated forecasts stay below in 95% of
        cases (for many rows), x sqrt(mean of h (1 - h) / n) with x the 95% quantile of the range of Brownian motion: it
        notices a curve that does not fit. "paper" is (20 + sqrt(2 ln 20)) / sqrt(n), some twenty times as much: it
        notices only gross misfits, and those only with many rows (below 500 rows it is above 1). Half a row, 1/(2n), is
        tolerated of isotonic regression with ``ends="inside"`` in any case. Rows in clusters vary more than "null-95"
        takes into account: the guard then steps back to isotonic regression sooner, and what it guarantees,
        ``guarantee(target="these forecasts", cluster=...)``, holds all the same.
    ends : {"exact", "inside"}
        Whether isotonic regression of the default ladder may forecast 0 and 1, as in `IsotonicRecalibrator`; rungs of a
        ladder of your own say so themselves.
    input_kind : {"probability", "score"}
        Whether ``y_prob`` holds probabilities, or scores of any scale. A ladder of your own must say the same.
    pos_label : label, optional
        The label in ``y_true`` that counts as the event, against all others.

    Attributes
    ----------
    recalibrator_ : Recalibrator
        The rung that was kept, fitted.
    ladder_ : tuple of LadderRung
        What was tried, with error, tolerance and the reason for keeping it or not.
    guarantee_, fit_error_, fit_risk_gap_, fit_brier_, n_rows_, weighted_, notes_
        As in `IsotonicRecalibrator`. With weights, the tolerance takes their sum for the number of rows.

    References
    ----------
    Appendix D.2 of [1]_; the ladder and the tolerance "null-95" are this project's.

    Examples
    --------
    The logistic curve cannot follow events that are sure at both ends and rare between (figure 4 of [1]_):

    >>> y_prob, y_true = [0.0, 0.25, 0.5, 1.0] * 100, [1, 0, 0, 1] * 100
    >>> recalibrator = GuardedRecalibrator().fit(y_prob, y_true)
    >>> for rung in recalibrator.ladder_:
    ...     print(rung)
    PlattRecalibrator: not kept, its error of 0.2430 on the fitting rows is above the tolerance of 0.0616
    IsotonicRecalibrator: kept, its error of 0.0000 on the fitting rows is within the tolerance of 0.0510
    """

    _fitted: ClassVar = ("recalibrator_", "ladder_")

    def __init__(
        self,
        ladder: Sequence[Recalibrator] | None = None,
        *,
        tolerance: str | float = "null-95",
        ends: Ends = "exact",
        input_kind: InputKind = "probability",
        pos_label: ClassLabel | None = None,
    ) -> None:
        self.ladder = ladder
        self.tolerance = tolerance
        self.ends = ends
        self.input_kind = input_kind
        self.pos_label = pos_label

    def _check_params(self) -> None:
        check_choice(self.input_kind, "input_kind", INPUTS)
        check_choice(self.ends, "ends", ENDS)
        if isinstance(self.tolerance, str):
            check_choice(self.tolerance, "tolerance", TOLERANCES)
        else:
            check_number(self.tolerance, "tolerance", low=0.0, high=1.0)
        if self.ladder is None:
            return
        if self.ends != "exact":
            raise InputError(
                f"is {self.ends!r} beside a ladder of your own",
                argument="ends",
                value=self.ends,
                remedy=f"set it on the rung, as in IsotonicRecalibrator(ends={self.ends!r})",
            )
        if not isinstance(self.ladder, (list, tuple)) or not self.ladder:
            raise InputError(
                f"must be a list of recalibrators, got {self.ladder!r}", argument="ladder", value=self.ladder
            )
        for position, rung in enumerate(self.ladder):
            if not any(isinstance(rung, kind) for kind in kinds().values()):
                raise InputError(
                    f"is {rung!r}, not a recalibrator",
                    argument="ladder",
                    position=position,
                    value=rung,
                    remedy="pass instances, as in [PlattRecalibrator(), ConstantRecalibrator()]",
                )
            if not isinstance(rung, ConstantRecalibrator) and rung.input_kind != self.input_kind:
                raise InputError(
                    f"takes input_kind={rung.input_kind!r} and the guard input_kind={self.input_kind!r}",
                    argument="ladder",
                    position=position,
                    remedy="set both alike",
                )
            if rung.pos_label is not None:
                raise InputError(
                    f"has pos_label={rung.pos_label!r}",
                    argument="ladder",
                    position=position,
                    remedy="pass pos_label= to the guard instead, which reads the outcomes for all rungs",
                )
        if not isinstance(self.ladder[-1], (IsotonicRecalibrator, ConstantRecalibrator)):
            raise InputError(
                f"ends with {type(self.ladder[-1]).__name__}, which may miss the tolerance too",
                argument="ladder",
                remedy="end it with IsotonicRecalibrator() or ConstantRecalibrator(), which cannot",
            )

    def _rungs(self) -> Sequence[Recalibrator]:
        if self.ladder is not None:
            return self.ladder
        return [
            PlattRecalibrator(input_kind=self.input_kind),
            IsotonicRecalibrator(ends=self.ends, input_kind=self.input_kind),
            ConstantRecalibrator(),
        ]

    def _fit_map(self, sample: Sample) -> FindErrors:
        fitted: Recalibrator
        tried = ((type(rung).__name__, clone(rung)) for rung in self._rungs())
        fitted, self.ladder_ = climbed(tried, sample, self.tolerance, lambda rung: rung._fit_to(sample).fit_error_)
        self.recalibrator_ = fitted
        return lambda: FitErrors(fitted.fit_error_, fitted.fit_risk_gap_, fitted.fit_brier_)

    def _promise(self, measure: str) -> tuple[float | None, str]:
        del measure  # no risk gap is above the Cutoff error, which is within the tolerance
        if self.tolerance == "paper":
            most = paper_margin(self.n_rows_, 1.0 - NULL_LEVEL)
        elif self.tolerance == "null-95":
            most = null_quantile(0.25, self.n_rows_)
        else:
            most = float(self.tolerance)
        most = max(most, *(moved_by_design(rung, self.n_rows_) for rung in self._rungs()))
        return most, (
            "the guard promised, from the {known} alone, isotonic regression's bound plus the tolerance, which "
            f"is at most {rounded_up(most)}"
        )

    def _ladder_found(self) -> tuple[LadderRung, ...]:
        return self.ladder_

    def _map(self, value: FloatArray) -> FloatArray:
        return self.recalibrator_._map(value)

    def _sql(self, column: str) -> str:
        return self.recalibrator_._sql(column)

    @property
    def _direction(self) -> str:
        return self.recalibrator_._direction

    @classmethod
    def _from_params(cls, params: Any) -> Self:
        if isinstance(params, dict) and isinstance(params.get("ladder"), list):
            params = {**params, "ladder": [rebuilt_rung(rung) for rung in params["ladder"]]}
        return super()._from_params(params)

    def _restored(self, name: str, value: Any) -> Any:
        if name == "recalibrator_":
            return Recalibrator._from_dict(value)
        if not isinstance(value, list) or not value:
            raise InputError(f"must be a list of rungs, got {value!r}", argument=name, value=value)
        return tuple(LadderRung.from_dict(rung) for rung in value)

    def _check_state(self) -> None:
        kept, tried = type(self.recalibrator_).__name__, self.ladder_
        for rung in tried:
            check_choice(rung.recalibrator, "recalibrator of a rung", KINDS)
        if [rung.kept for rung in tried] != [False] * (len(tried) - 1) + [True] or tried[-1].recalibrator != kept:
            raise InputError(
                f"ladder_ does not end by keeping {kept}, which recalibrator_ is", remedy="the text is damaged"
            )


def rebuilt_rung(data: Any) -> Recalibrator:
    """Return a recalibrator, not fitted, from its type and parameters."""
    check_fields(data, ("type", "params"), "a rung of the ladder")
    kind = kinds().get(str(data["type"]))
    if kind is None:
        raise InputError(
            f"of a rung is {data['type']!r}, not a recalibrator", argument="type", remedy="the text is damaged"
        )
    rung: Recalibrator = kind._from_params(data["params"])
    return rung

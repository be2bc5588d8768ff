"""Several models on the same rows: each with limits that hold together, so that one may be chosen after looking."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from calibrant.certificates.joint_levels import level_of_each
from calibrant.certificates.methods.registry import Method
from calibrant.certificates.verdicts import certify, confidence_interval
from calibrant.comparisons.results import ComparedModel, ModelComparison, ModelDifference
from calibrant.core.errors import CalibrantError, InputError
from calibrant.core.voices import Phrase
from calibrant.measures.registry import Measure
from calibrant.rows.checks import check_confidence, check_number, check_same_index, check_seed
from calibrant.rows.intake import as_source, given_source
from calibrant.rows.named import check_named, check_summaries
from calibrant.rows.refinement import some_table
from calibrant.rows.tally import Tally


class ModelError(CalibrantError):
    """One of several models cannot be judged.

    Attributes
    ----------
    model : str
        Which.
    reason : CalibrantError
        Why.
    """

    def __init__(self, model: str, reason: CalibrantError) -> None:
        super().__init__(Phrase("model {model!r}: {why}", model=model, why=reason.phrase))
        self.model = model
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.model, self.reason)


def compare_models(
    y_true: Any,
    y_prob: Any = None,
    *,
    max_error: float | None = None,
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    rng: Any = 0,
) -> ModelComparison:
    """Compare the calibration errors of several models, and choose among those that are certified.

    Every limit is computed at 1 - (1 - confidence level) / K for K models, so that all of them hold together: whichever
    model you choose after looking, its certificate stands. The limits of a difference follow from those of the two
    errors. All of it assumes independent rows and models fixed without looking at them.

    Parameters
    ----------
    y_true : array-like of shape (n,), or dict of Tally or Scan
        Outcomes that all models are judged by, as in `certify`; or, on its own, a tally or a `scan` for each model's
        name, which may be of different rows.
    y_prob : dict of array-like of shape (n,)
        The forecasts of each model, by its name.
    max_error : float in [0, 1], optional
        The largest error you can live with: each model gets a certificate, and of those certified the one with the
        lowest Brier score is chosen.
    confidence_level : float from 0.5 to below 1
        One minus the probability that any limit is wrong, or any verdict.
    method, measure, variation, sample_weight, pos_label, rng
        As in `certify`, the same for all models.
    threshold, cost_false_positive, cost_false_negative
        As in `certify`, for ``measure="risk_gap"``.

    Returns
    -------
    ModelComparison
        Per model its limits, verdict and Brier score; the differences; the choice. Prints as the tables that
        ``calibrant compare`` prints.

    Raises
    ------
    ModelError
        When one of the models cannot be judged; it says which and why.

    See Also
    --------
    certify : one model.
    compare_recalibrators : several ways to repair one model.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p
    >>> found = compare_models(y, {"old": np.sqrt(p), "new": p}, max_error=0.05)
    >>> found.chosen, found["old"].certificate.verdict, found.differences[0].better
    ('new', 'refuted', 'new')
    """
    level = check_confidence(confidence_level)
    limit = None if max_error is None else check_number(max_error, "max_error", low=0.0, high=1.0)
    given = _named_models(y_true, y_prob, sample_weight)
    if len(given) < 2:
        (name,) = given
        raise InputError(f"there is one model only, {name!r}, and nothing to compare it with", remedy="use certify")
    each_level = level_of_each(level, len(given))
    settings = {
        "confidence_level": each_level,
        "method": method,
        "measure": measure,
        "variation": variation,
        "threshold": threshold,
        "cost_false_positive": cost_false_positive,
        "cost_false_negative": cost_false_negative,
        "rng": check_seed(rng),
    }
    columns = {"sample_weight": sample_weight, "pos_label": pos_label}
    models = tuple(_judge(name, *rows, columns, limit, settings) for name, rows in given.items())
    return ModelComparison(
        confidence_level=level,
        max_error=limit,
        chosen=ModelComparison.choice(models),
        models=models,
        differences=tuple(ModelDifference.of(*pair) for pair in combinations(models, 2)),
    )


def _named_models(y_true: Any, y_prob: Any, sample_weight: Any) -> dict[str, tuple[Any, Any]]:
    """Return outcomes and forecasts of each model, or what stands in place of both."""
    if isinstance(y_true, Mapping):
        return {name: (held, y_prob) for name, held in check_summaries(y_true).items()}
    if not isinstance(y_prob, Mapping):
        raise InputError(
            f"is a {type(y_prob).__name__}",
            argument="y_prob",
            remedy="pass the forecasts of each model in a dict, as in compare_models(y_true, {'old': old, 'new': new})",
        )
    forecasts = check_named(y_prob, "y_prob")
    named = {f"y_prob[{name!r}]": values for name, values in forecasts.items()}
    check_same_index(y_true=y_true, **named, sample_weight=sample_weight)
    return {name: (y_true, values) for name, values in forecasts.items()}


def _judge(
    name: str, y_true: Any, y_prob: Any, columns: dict[str, Any], max_error: float | None, settings: dict[str, Any]
) -> ComparedModel:
    """Return the limits, the certificate where one is asked for, and the Brier score of one model."""
    try:
        source = as_source(y_true, y_prob, **columns)
        rows = source if isinstance(source, Tally) else given_source(source)
        interval = confidence_interval(rows, **settings)
        certificate = None if max_error is None else certify(rows, max_error=max_error, **settings)
    except CalibrantError as reason:
        raise ModelError(name, reason) from reason
    table = some_table(rows)
    return ComparedModel(name, interval, certificate, float(table.residual_square.sum()) / table.weight_total)

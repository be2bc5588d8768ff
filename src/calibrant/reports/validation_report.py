"""The page about a validation study: verdict, table and curve first, then decisions, TRIPOD+AI and how it was done."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Any

from calibrant.core.frames import frames_follow
from calibrant.reports.documents import Document
from calibrant.reports.models import ONE_MODEL
from calibrant.reports.summary import versions
from calibrant.reports.tripod import tripod_items
from calibrant.reports.validation_results import StudyFile, ValidationSummary
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.horizons import HorizonRows
from calibrant.rows.incidence import HorizonRisk
from calibrant.rows.tally import Tally
from calibrant.validations.results import Validation
from calibrant.validations.studies import opened, validate_sample

TITLE = "Validation of a prediction model"


@dataclass(frozen=True, eq=False, repr=False)
class ValidationReport(Document):
    """A page about a validation study: what `validate` found, with figures and the items of TRIPOD+AI.

    Make one with `from_predictions` or `from_estimator`. The page is one file that works offline, with and without
    JavaScript; the same data, options and version give the same bytes.

    Attributes
    ----------
    summary : ValidationSummary
        Everything the page says, as numbers and words; ``summary.validation`` is the result of `validate`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.random(300)
    >>> y_true = rng.random(300) < y_prob
    >>> report = ValidationReport.from_predictions(y_true, y_prob, n_resamples=50, title="Sepsis within a day")
    >>> print(report.markdown()[:21])
    # Sepsis within a day
    """

    summary: ValidationSummary
    _tally: Tally = field(repr=False)

    @classmethod
    @frames_follow
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        title: str = TITLE,
        name: str = ONE_MODEL,
        source: str | None = None,
        date: datetime.date | str | None = None,
        left_out: str | None = None,
        file: StudyFile | None = None,
        cluster: Any = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        **options: Any,
    ) -> ValidationReport:
        """Validate forecasts, and put what was found on a page.

        Parameters
        ----------
        y_true, y_prob, cluster, sample_weight, pos_label
            As in `validate`.
        title : str
            The page's title.
        name : str
            The model's name.
        source : str, optional
            Where the rows came from, such as the name of a file; the page names it.
        date : date or str, optional
            The day of the study, which names it. It is never looked up: the same call gives the same bytes tomorrow.
        left_out : str, optional
            What was left out of the rows beforehand, and why: the page says so.
        file : StudyFile, optional
            Which columns of which file the rows are: the page then says how to make it again from there.
        **options
            Those of `validate`.
        """
        sample = opened(y_true, y_prob, cluster=cluster, sample_weight=sample_weight, pos_label=pos_label)
        return cls._of(
            validate_sample(sample, **options),
            sample.tally,
            risk=_risk_of(sample.origin),
            file=file,
            title=str(title),
            name=str(name),
            source=None if source is None else str(source),
            date=None if date is None else str(date),
            left_out=left_out,
        )

    @classmethod
    def _of(cls, found: Validation, tally: Tally, **named: Any) -> ValidationReport:
        made = versions()
        told = {name: named[name] for name in ("source", "left_out", "risk", "file")}
        items = tripod_items(found, versions=made, **told)
        summary = ValidationSummary(
            validation=found, items=items, fingerprint=tally.fingerprint, versions=made, **named
        )
        return cls(summary, tally)

    @classmethod
    @frames_follow
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, pos_label: Any = None, **options: Any
    ) -> ValidationReport:
        """Validate a fitted classifier on rows that it has not seen.

        Parameters
        ----------
        estimator : classifier
            Fitted to two classes, with ``predict_proba``.
        X : array-like of shape (n, k)
            Features.
        y : array-like of shape (n,)
            Labels.
        pos_label : label, optional
            The class that counts as the event; by default the second of ``classes_``.
        **options
            Those of `from_predictions`.
        """
        from calibrant.rows.models import event_forecasts, event_outcomes

        forecasts, event = event_forecasts(estimator, X, y, pos_label)
        options = {"name": type(estimator).__name__, **options}
        return cls.from_predictions(event_outcomes(y, event), forecasts, **options)

    @property
    def validation(self) -> Validation:
        """What `validate` found."""
        return self.summary.validation

    def _rendered(self) -> str:
        from calibrant.reports.validation_pages import render_validation

        return render_validation(self.summary, self._tally)

    def markdown(self) -> str:
        """Return the page without its plots as Markdown, for a manuscript or a ticket."""
        from calibrant.reports.validation_pages import render_validation_markdown

        return render_validation_markdown(self.summary)


def _risk_of(origin: Any) -> HorizonRisk | None:
    """Return the risk at the horizon of rows that are about one."""
    rows = origin.every[0] if isinstance(origin, ClusteredRows) else origin
    return rows.outcome if isinstance(rows, HorizonRows) else None

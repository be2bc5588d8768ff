"""The report as a user meets it: from predictions or a classifier to a page, Markdown or JSON."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from calibrant.certificates.clusters import ClusterTarget
from calibrant.certificates.methods.registry import Method
from calibrant.certificates.question_results import QuestionCertificates
from calibrant.certificates.results import Yardstick
from calibrant.core.errors import InputError
from calibrant.core.frames import frames_follow
from calibrant.reports.censoring import split_censored, with_risks
from calibrant.reports.class_sections import judge_classes, split_classes
from calibrant.reports.documents import Document
from calibrant.reports.models import ONE_MODEL, any_clusters, find_models
from calibrant.reports.questions import Question
from calibrant.reports.results import ReportSummary
from calibrant.reports.summary import summarize
from calibrant.rows.checks import check_same_index
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.paired import PairedColumns
from calibrant.rows.tally import Tally

TITLE = "Can these forecasts be trusted?"


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationReport(Document):
    """A report on forecasts for people: the verdict in words, plots, measures, decisions, a repair, groups.

    Make one with `from_predictions` or `from_estimator`. The page is one file that works offline, with and without
    JavaScript; the same data, options and version give the same bytes (docs/how-to/report.md says of which scans this
    is so).

    Attributes
    ----------
    summary : ReportSummary
        Everything the report says, as numbers; ``summary.models`` has one entry per model.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.random(2000)
    >>> y_true = rng.random(2000) < y_prob
    >>> report = CalibrationReport.from_predictions(y_true, y_prob, max_error=0.05, title="Rain tomorrow")
    >>> report.certified, round(report.summary.models[0].certificate.upper, 4)
    (True, 0.0277)
    >>> print(report.markdown()[:15])
    # Rain tomorrow
    """

    summary: ReportSummary
    _rows: tuple[Tally | ClusteredRows | None, ...] = field(repr=False)

    @classmethod
    @frames_follow
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        classes: Any = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        by: Any = None,
        cluster: Any = None,
        cluster_target: ClusterTarget = "rows",
        max_cluster_size: float | None = None,
        serial: int = 0,
        features: Any = None,
        period: Any = None,
        tolerance: float = 0.0,
        max_error: float | None = None,
        relative_to: Yardstick = "rows",
        confidence_level: float = 0.95,
        method: Method = "adaptive",
        threshold: float = 0.5,
        rng: int = 0,
        title: str = TITLE,
        name: str = ONE_MODEL,
        source: str | None = None,
        date: datetime.date | str | None = None,
    ) -> CalibrationReport:
        """Judge forecasts on rows that the model has not seen.

        Parameters
        ----------
        y_true : array-like of shape (n,), Tally, or dict of name to Tally
            Outcomes: 0/1, booleans, fractions in [0, 1], or two labels with ``pos_label``. A tally, or a source of rows
            such as a scanned file, holds the forecasts too; a dict of them stands for several models. Censored rows
            come from `horizon`: their weights are estimates, and the report says that its limits are approximate.
        y_prob : array-like of shape (n,), or dict of name to array-like
            Forecast probabilities; a dict for several models judged on the same outcomes, and compared row by row.
        classes : array-like of shape (K,), optional
            The label of each column of ``y_prob`` of shape (n, K), as in `certify`. The page is about the confidence in
            the top label then, and a section has a line for each class.
        sample_weight : array-like of shape (n,), optional
            Weights fixed beforehand, as in `certify`.
        pos_label : label, optional
            The label in ``y_true`` that counts as the event.
        by : array-like of shape (n,), optional
            A group per row, for a verdict per group. For a source, the same rows in groups, as ``scan(..., by=...)``
            gives them; a dict of them for several models.
        cluster : array-like of shape (n,), optional
            A label per row that says which rows belong together, as in `certify`: verdicts, limits, bands and the
            halves of the repair then count clusters (docs/how-to/clusters.md). A source of rows knows them already, as
            ``scan(..., cluster=...)``.
        cluster_target, max_cluster_size, serial
            As in `certify`, for rows in clusters. Where each cluster counts once, all numbers count rows by that.
        features : array of shape (n, d), frame, or dict of columns, optional
            Who each row is about, as in `worst_group`: then a section says for whom forecasts are wrong. Choose them
            beforehand.
        period : array-like of shape (n,), optional
            The period of each row, a whole number or a date, as in `Monitor`: then a section says whether anything has
            changed. `calibrant.monitors.period_of` makes days, weeks or months of times.
        tolerance : float in [0, 1], default 0
            The error that is no reason for an alarm, where periods are given.
        max_error : float in [0, 1], optional
            The largest Cutoff calibration error you can live with (docs/how-to/choose-max-error.md). Without it the
            report shows limits, and no verdict.
        relative_to : {"rows", "events"}
            What ``max_error``, errors and limits are shares of, as in `certify`.
        confidence_level : float, default 0.95
            Of the verdict; of all verdicts together when there are several models.
        method : {"adaptive", "exact", "normal", "hoeffding", "paper"}
            As in `certify`.
        threshold : float between 0 and 1, default 0.5
            The decision threshold shown first.
        rng : int, default 0
            Of everything random: the halves of the repair, and what `certify` and the plots draw. Fix it beforehand.
        title : str
            The report's title.
        name : str
            The model's name, when there is one only.
        source : str, optional
            Where the rows came from, such as the name of a file; the report names it.
        date : date or str, optional
            The day of the report, which names it. It is never looked up: the same call gives the same bytes tomorrow.
        """
        question = Question.checked(
            max_error=max_error,
            relative_to=relative_to,
            confidence_level=confidence_level,
            method=method,
            threshold=threshold,
            rng=rng,
            clustered=any_clusters(y_true, cluster),
            cluster_target=cluster_target,
            max_cluster_size=max_cluster_size,
            serial=serial,
            tolerance=tolerance,
        )
        y_true, censored = split_censored(y_true, cluster)
        cluster = None if isinstance(y_true, PairedColumns) and censored else cluster
        rows, several = split_classes(y_true, y_prob, classes, {"sample_weight": sample_weight, "pos_label": pos_label})
        models, columns = find_models(
            **rows,
            by=by,
            cluster=cluster,
            cluster_target=cluster_target,
            period=period,
            name=str(name),
            features=features,
        )
        named = {"source": None if source is None else str(source), "date": None if date is None else str(date)}
        summary = summarize(models, columns, question, title=str(title), **named)
        if several:
            found = judge_classes(y_true, y_prob, classes, question, sample_weight, cluster)
            part: dict[str, Any] = {"classes" if isinstance(found, QuestionCertificates) else "class_limits": found}
            summary = replace(summary, models=(replace(summary.models[0], **part),))
        return cls(with_risks(summary, censored), tuple(model.drawn for model in models))

    @classmethod
    @frames_follow
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, pos_label: Any = None, **options: Any
    ) -> CalibrationReport:
        """Judge a fitted classifier, or a dict of name to classifier, on rows that it has not seen.

        Parameters
        ----------
        estimator : classifier, or dict of name to classifier
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

        check_same_index(
            y=y, **{name: options.get(name) for name in ("sample_weight", "by", "cluster", "features", "period")}
        )
        if isinstance(estimator, Mapping):
            found = {name: event_forecasts(each, X, y, pos_label) for name, each in estimator.items()}
            forecasts: Any = {name: forecast for name, (forecast, _) in found.items()}
            events = dict.fromkeys(event for _, event in found.values())
            if len(events) > 1:
                said = " and ".join(map(repr, events))
                raise InputError(
                    f"the classifiers forecast different events, {said}", remedy="say which one with pos_label"
                )
            event = next(iter(events), pos_label)
        else:
            forecasts, event = event_forecasts(estimator, X, y, pos_label)
            options = {"name": type(estimator).__name__, **options}
        return cls.from_predictions(event_outcomes(y, event), forecasts, **options)

    @property
    def certified(self) -> bool:
        """Whether every model is certified to be within ``max_error``, as a whole and in every group.

        Never so for censored rows, whose weights are estimates: what the report says of them holds approximately.
        """
        return self.verdict == "certified"

    @property
    def verdict(self) -> str | None:
        """The verdict on everything at once: "certified", "refuted" or "undecided".

        None without ``max_error``, and for censored rows, of which there is no guarantee.
        """
        return self.summary.verdict

    def _rendered(self) -> str:
        from calibrant.reports.pages import render_html

        return render_html(self.summary, self._rows)

    def markdown(self) -> str:
        """Return the report without its plots as Markdown, for a pull request or a ticket."""
        from calibrant.reports.pages import render_markdown

        return render_markdown(self.summary)

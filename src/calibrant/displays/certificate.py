"""Estimates, limits and verdicts, for one or several models or groups."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from calibrant.certificates.clusters import ClusterTarget
from calibrant.certificates.joint_levels import level_of_each
from calibrant.certificates.methods.registry import Method
from calibrant.certificates.results import Certificate, ConfidenceInterval, GroupCertificates, Yardstick
from calibrant.certificates.verdicts import certify, confidence_interval
from calibrant.core.errors import InputError
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, ClassLabel, Randomness
from calibrant.core.words import level_said
from calibrant.displays.base import LABEL_WIDTH, Display
from calibrant.displays.classes import CONFIDENCE
from calibrant.displays.clusters import independent_said
from calibrant.displays.palette import SMALL, Palette, Theme
from calibrant.measures.questions import OfQuestions
from calibrant.measures.registry import MEASURES, Measure
from calibrant.rows.checks import check_confidence, check_same_index
from calibrant.rows.classes import QuestionsAsked
from calibrant.rows.intake import RowsLike
from calibrant.rows.matrices import has_columns, shape_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Certified = Certificate | ConfidenceInterval

MARKERS = {"certified": "o", "undecided": "D", "refuted": "X", "interval": "s"}
"""What each verdict is drawn with, so that nothing is told by colour alone."""

_BEYOND = 1.1  # where a limit that excludes nothing ends, beside the largest number
_NAME_WIDTH = 26  # letters; longer names take several lines

MOST_QUESTIONS = 12
"""Of more questions than this those with the largest errors are drawn."""

_WORDS = {
    "certified": "certified: the upper limit is within what is allowed",
    "undecided": "undecided: what is allowed lies between the limits",
    "refuted": "refuted: the lower limit is above what is allowed",
    "interval": "estimate on these rows",
}


@dataclass(eq=False, repr=False)
class CertificateDisplay(Display):
    """Plot estimate, limits and what is allowed, for one or several models or groups, marked by verdict.

    Use `from_certificates` for results at hand, `from_predictions` or `from_estimator` to compute them; the constructor
    takes names and results.

    Attributes
    ----------
    names : tuple of str
        One per result, drawn from top to bottom.
    certificates : tuple of Certificate or ConfidenceInterval
        What is drawn.
    limits_said : str
        What the limits promise, and with what confidence.
    joint_verdict : str or None
        The verdict for all groups or questions together, in words.
    ax_, figure_, intervals_, estimates_, bounds_, legend_
        What was drawn, after `plot`: ``intervals_`` one line per result, ``estimates_`` one line of markers per
        verdict, ``bounds_`` the lines at ``max_error``.

    Examples
    --------
    >>> from calibrant import Tally
    >>> tally = Tally.from_counts(forecast=[0.2, 0.5, 0.8], rows=[400, 300, 300], events=[85, 141, 236])
    >>> display = CertificateDisplay.from_predictions(tally, max_error=0.1)
    >>> display.certificates[0].verdict
    'certified'
    >>> display.frame()[["name", "verdict"]].to_dict("list")
    {'name': ['forecasts'], 'verdict': ['certified']}
    """

    names: tuple[str, ...]
    certificates: tuple[Certified, ...]
    limits_said: str
    joint_verdict: str | None = None

    @classmethod
    @frames_follow
    def from_certificates(
        cls,
        certificates: Any,
        *,
        theme: Theme = "light",
        legend: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Draw results that were computed before.

        Parameters
        ----------
        certificates : Certificate, ConfidenceInterval, GroupCertificates, QuestionCertificates, or dict of name to one
            of the first two. For one measure: different errors have no common axis. Of more than 12 questions those
            with the largest errors are drawn.
        theme, legend, ax
            As in every display.
        """
        if isinstance(certificates, OfQuestions):
            display = cls._of_questions(certificates)
        elif isinstance(certificates, GroupCertificates):
            groups = dict(zip(certificates.groups, certificates.certificates, strict=True))
            display = cls._of(
                groups,
                _together(list(groups.values()), certificates.confidence_level),
                f"all groups together: {certificates.verdict}",
            )
        else:
            named = _check_named(certificates)
            display = cls._of(named, _limits_said(list(named.values())))
        return display.plot(theme=theme, legend=legend, ax=ax)

    @classmethod
    @frames_follow
    def from_predictions(
        cls,
        y_true: RowsLike,
        y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        max_error: float | None = None,
        confidence_level: float = 0.95,
        method: Method = "adaptive",
        measure: Measure = "cutoff",
        relative_to: Yardstick = "rows",
        by: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        questions: QuestionsAsked | None = None,
        cluster: ArrayLike | None = None,
        cluster_target: ClusterTarget = "rows",
        max_cluster_size: float | None = None,
        serial: int = 0,
        sample_weight: ArrayLike | None = None,
        pos_label: ClassLabel | None = None,
        rng: Randomness = 0,
        theme: Theme = "light",
        legend: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Compute certificates, or confidence intervals without ``max_error``, and draw them.

        Parameters
        ----------
        y_true : array-like of shape (n,), or Tally
            Outcomes, as in `certify`.
        y_prob : array-like of shape (n,), or dict of name to array-like
            Forecast probabilities, of one model or of several by name. For K models each limit is computed at
            1 - (1 - confidence_level) / K, so that all hold together whichever model is chosen afterwards.
        max_error, confidence_level, method, measure, relative_to, by, sample_weight, pos_label, rng
            As in `certify`.
        classes, questions
            As in `certify`, for ``y_prob`` of shape (n, K): one line for the confidence in the top label, or one for
            each class, pair or subset.
        cluster, cluster_target, max_cluster_size, serial
            As in `certify`, for rows in clusters.
        theme, legend, ax
            As in every display.
        """
        options: dict[str, Any] = {
            "method": method,
            "measure": measure,
            "relative_to": relative_to,
            "cluster": cluster,
            "cluster_target": cluster_target,
            "max_cluster_size": max_cluster_size,
            "serial": serial,
            "sample_weight": sample_weight,
            "pos_label": pos_label,
            "rng": rng,
        }
        level = check_confidence(confidence_level)
        if by is not None:
            if max_error is None:
                raise InputError(
                    "was given without max_error", argument="by", remedy="pass the largest error that a group may have"
                )
            if isinstance(y_prob, Mapping):
                raise InputError(
                    "was given together with several models", argument="by", remedy="draw one model's groups at a time"
                )
            groups = certify(y_true, y_prob, max_error=max_error, confidence_level=level, by=by, **options)
            return cls.from_certificates(groups, theme=theme, legend=legend, ax=ax)
        if not isinstance(y_prob, Mapping) and (has_columns(y_prob) or questions is not None or classes is not None):
            options |= {"classes": classes, "questions": questions, "confidence_level": level}
            asked: Any = (
                confidence_interval(y_true, y_prob, **options)
                if max_error is None
                else certify(y_true, y_prob, max_error=max_error, **options)
            )
            if isinstance(asked, Certificate | ConfidenceInterval):
                asked = {"forecasts" if shape_of(y_prob)[1] == 2 and questions is None else CONFIDENCE: asked}
            return cls.from_certificates(asked, theme=theme, legend=legend, ax=ax)
        models = y_prob if isinstance(y_prob, Mapping) else {"forecasts": y_prob}
        if not models:
            raise InputError("is an empty dict", argument="y_prob", remedy="pass at least one model's forecasts")
        check_same_index(y_true=y_true, **{f"y_prob[{name!r}]": held for name, held in models.items()})
        each = level_of_each(level, len(models))
        named: dict[Any, Certified] = {
            name: confidence_interval(y_true, forecasts, confidence_level=each, **options)
            if max_error is None
            else certify(y_true, forecasts, max_error=max_error, confidence_level=each, **options)
            for name, forecasts in models.items()
        }
        said = _limits_said(list(named.values()))
        if len(models) > 1:
            said = _together(list(named.values()), level)
        return cls._of(named, said).plot(theme=theme, legend=legend, ax=ax)

    @classmethod
    def _of(cls, named: Mapping[Any, Certified], said: str, joint: str | None = None) -> Self:
        return cls(tuple(map(str, named)), tuple(named.values()), said, joint)

    @classmethod
    def _of_questions(cls, found: OfQuestions) -> Self:
        """Draw the questions with the largest errors, all where they are few."""
        labels, parts = found.labels, [each for _, each in found.pairs()]
        places = found.shown_places(MOST_QUESTIONS)
        said = _together(parts, getattr(found, "confidence_level", parts[0].confidence_level))
        if len(places) < len(parts):
            said = f"{said}; the {len(places)} of {len(parts):,} {found.described.plural} with the largest errors"
        verdict = getattr(found, "verdict", None)
        joint = None if verdict is None else f"all {found.described.plural} together: {verdict}"
        return cls._of({labels[place]: parts[place] for place in places}, said, joint)

    def plot(self, *, theme: Theme = "light", legend: bool = True, ax: Axes | None = None) -> Self:
        """Draw the results from top to bottom.

        Parameters
        ----------
        theme, legend, ax
            As in every display.
        """
        from matplotlib.lines import Line2D

        first = self.certificates[0]
        whom = "of the population" if first.target == "population" else "of these forecasts"
        whom += "" if first.relative_to == "rows" else ", as a share of the event rate"
        title = "Certificate" if isinstance(first, Certificate) else "Confidence interval"
        title += "" if len(self.names) == 1 else "s"
        count = len(self.names)
        ax, palette = self._begin(
            ax,
            theme,
            xlabel=f"{MEASURES.words(first.measure)} {whom}",
            ylabel="",
            title=title if self.joint_verdict is None else f"{title}; {self.joint_verdict}",
            height=min(2.6 + 0.34 * count, 40.0),
        )
        colours = {name: getattr(palette, name, palette.curve) for name in MARKERS}
        self._draw_intervals(ax, colours)
        self._draw_estimates(ax, palette, colours)
        self._draw_largest_allowed(ax, palette)
        names = [textwrap.fill(name, _NAME_WIDTH) for name in self.names]
        ax.set_yticks(range(count), names, parse_math=False)  # a name is a name, whatever signs it holds
        ax.tick_params(axis="y", labelcolor=palette.ink, length=0)
        ax.grid(False, axis="y")
        ax.set_ylim(count - 0.5, -0.5)
        ax.set_xlim(left=min(0.0, ax.get_xlim()[0]))
        limits = Line2D([], [], color=palette.muted, linewidth=2.0, marker="|", markersize=10, label=self.limits_said)
        # Names take room beside the axes that the words below them lack.
        longest = max(len(line) for name in names for line in name.splitlines() or [""])
        width = LABEL_WIDTH - math.ceil(1.2 * longest)
        self._explain(palette, legend, [*self.estimates_, limits, *self.bounds_[:1]], width=width)
        return self

    def _draw_intervals(self, ax: Axes, colours: Mapping[str, str]) -> None:
        self.intervals_ = []
        reach = _BEYOND * max(value for each in self.certificates for value in _ends(each) if math.isfinite(value))
        for place, each in enumerate(self.certificates):
            verdict = _verdict(each)
            endless = math.isinf(each.upper)
            (interval,) = ax.plot(
                [each.lower, reach if endless else each.upper],
                [place, place],
                color=colours[verdict],
                linewidth=2.0,
                marker="|",
                markersize=10,
                markevery=[0] if endless else None,
            )
            self.intervals_.append(interval)
            if endless:
                ax.plot([reach], [place], marker=">", color=colours[verdict], markersize=7)
            ax.annotate(
                "" if verdict == "interval" else verdict,
                (1.0, place),
                xycoords=ax.get_yaxis_transform(),
                xytext=(6, 0),
                textcoords="offset points",
                verticalalignment="center",
                color=colours[verdict],
                fontsize=SMALL,
            )

    def _draw_estimates(self, ax: Axes, palette: Palette, colours: Mapping[str, str]) -> None:
        verdicts = [_verdict(each) for each in self.certificates]
        self.estimates_ = [
            ax.plot(
                [
                    each.estimate if math.isfinite(each.estimate) else math.nan  # none to draw
                    for each, verdict in zip(self.certificates, verdicts, strict=True)
                    if verdict == name
                ],
                [place for place, verdict in enumerate(verdicts) if verdict == name],
                MARKERS[name],
                color=colours[name],
                markersize=9,
                markeredgecolor=palette.paper,
                markeredgewidth=0.7,
                label=_WORDS[name],
            )[0]
            for name in MARKERS
            if name in verdicts
        ]

    def _draw_largest_allowed(self, ax: Axes, palette: Palette) -> None:
        self.bounds_ = []
        for place, each in enumerate(self.certificates):
            if isinstance(each, Certificate):
                (bound,) = ax.plot(
                    [each.max_error, each.max_error],
                    [place - 0.5, place + 0.5],
                    color=palette.bound,
                    linewidth=1.5,
                    linestyle=(0, (4, 2)),
                    label="largest error allowed",
                )
                self.bounds_.append(bound)

    def _columns(self) -> dict[str, Any]:
        names = ("rows", "estimate", "lower", "upper", "confidence_level")
        return {
            "name": list(self.names),
            **{name: [getattr(each, name) for each in self.certificates] for name in names},
            "max_error": [getattr(each, "max_error", None) for each in self.certificates],
            "verdict": [getattr(each, "verdict", None) for each in self.certificates],
        }


def _ends(each: Certified) -> tuple[float, ...]:
    return each.lower, each.estimate, each.upper, getattr(each, "max_error", 0.0)


def _verdict(each: Certified) -> str:
    return each.verdict if isinstance(each, Certificate) else "interval"


def _together(certificates: list[Certified], level: float) -> str:
    return (
        f"limits: all upper limits hold together with {level_said(level)} confidence, and so do all lower ones "
        f"({independent_said(each.clusters for each in certificates)}, forecasters fixed beforehand)"
    )


def _limits_said(certificates: list[Certified]) -> str:
    """Say what the limits of results promise, each result by itself."""
    words = dict.fromkeys(map(_promise, certificates))
    alone = ", each result by itself" if len(certificates) > 1 else ""
    independent = independent_said(each.clusters for each in certificates)
    return f"limits: {'; '.join(words)}{alone} ({independent}, forecaster fixed beforehand)"


def _promise(each: Certified) -> str:
    level = level_said(each.confidence_level)
    if isinstance(each, Certificate):
        return f"the upper one holds with {level} confidence, and so does the lower one"
    return {
        "two-sided": f"both hold together with {level} confidence",
        "less": f"the upper one holds with {level} confidence, there is no lower one",
        "greater": f"the lower one holds with {level} confidence, there is no upper one",
    }[each.alternative]


def _check_named(certificates: Any) -> Mapping[Any, Certified]:
    """Return results by name, after making sure that they can share an axis."""
    if isinstance(certificates, (Certificate, ConfidenceInterval)):
        certificates = {"forecasts": certificates}
    if not isinstance(certificates, Mapping):
        raise InputError(
            "must be a Certificate, a ConfidenceInterval, a GroupCertificates or a dict of name to one of the first "
            f"two, got {type(certificates).__name__}",
            argument="certificates",
        )
    if not certificates:
        raise InputError("is an empty dict", argument="certificates", remedy="pass at least one result")
    for name, each in certificates.items():
        if not isinstance(each, (Certificate, ConfidenceInterval)):
            raise InputError(
                f"certificates[{name!r}] is a {type(each).__name__}",
                remedy="pass what certify or confidence_interval returned",
            )
    for what in ("measure", "target"):
        found = sorted({getattr(each, what) for each in certificates.values()})
        if len(found) > 1:
            raise InputError(
                f"certificates speak of different {what}s, {found[0]!r} and {found[1]!r}, which have no common axis",
                remedy="draw them apart",
            )
    if len({each.relative_to for each in certificates.values()}) > 1:
        raise InputError(
            "certificates are shares of the rows and shares of the events, which have no common axis",
            remedy="draw them apart",
        )
    return certificates

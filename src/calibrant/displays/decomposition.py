"""The parts of a proper score as bars, for one model or several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, Randomness
from calibrant.core.words import level_said
from calibrant.decisions.decompositions import ScoreDecomposition, score_decomposition
from calibrant.decisions.scores import SchervishMeasure
from calibrant.displays.base import Display
from calibrant.displays.palette import SMALL, Palette, Theme
from calibrant.rows.intake import RowsLike
from calibrant.rows.named import check_named, check_summaries

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTS = {
    "score": "score: the lower the better",
    "miscalibration": "miscalibration: what recalibration could mend",
    "discrimination": "discrimination: what the forecasts tell apart, taken off",
    "uncertainty": "uncertainty: the score of the event rate",
}
_COLOURS = ("curve", "other", "bound", "undecided", "refuted", "certified")
_HEIGHT = 0.8  # of the bars of one part together, of the room that it has


@dataclass(eq=False, repr=False)
class DecompositionDisplay(Display):
    """Plot the parts of a proper score as bars: score = miscalibration - discrimination + uncertainty.

    Use `from_predictions`, `from_estimator` or `from_results`; the constructor takes what they compute.

    Attributes
    ----------
    models : tuple of str
        The models' names.
    parts : tuple of ScoreDecomposition
        The parts of the score of each, with limits if a confidence level was given.
    ax_, figure_, bars_, whiskers_, legend_
        What was drawn, after `plot`; a list of bars per model, and of lines from limit to limit.

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers (CORP).

    Examples
    --------
    >>> display = DecompositionDisplay.from_predictions([0, 0, 1, 1] * 10, [0.2, 0.3, 0.4, 0.9] * 10)
    >>> display.parts[0].miscalibration, display.parts[0].uncertainty
    (0.125, 0.25)
    """

    models: tuple[str, ...]
    parts: tuple[ScoreDecomposition, ...]

    @classmethod
    @frames_follow
    def from_predictions(
        cls,
        y_true: RowsLike | Mapping[str, Any],
        y_prob: ArrayLike | Mapping[str, Any] | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: ClassLabel | None = None,
        score: str | SchervishMeasure = "brier",
        confidence_level: float | None = None,
        cluster: ArrayLike | None = None,
        n_resamples: int = 1000,
        rng: Randomness = 0,
        theme: Theme = "light",
        legend: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Compute the parts, and draw them.

        Forecasts of several models are a dict, by their names.

        Parameters
        ----------
        y_true, y_prob, sample_weight, pos_label
            As in every display.
        score, confidence_level, cluster, n_resamples, rng
            As in `score_decomposition`.
        theme, legend, ax
            As in every display.
        """
        given: dict[str, Any]
        if isinstance(y_true, Mapping):
            given = {name: (held,) for name, held in check_summaries(y_true).items()}
        elif isinstance(y_prob, Mapping):
            given = {name: (y_true, held) for name, held in check_named(y_prob, "y_prob").items()}
        else:
            given = {"model": (y_true, y_prob)}
        found = {
            name: score_decomposition(
                *rows,
                score=score,
                confidence_level=confidence_level,
                cluster=cluster,
                n_resamples=n_resamples,
                sample_weight=sample_weight,
                pos_label=pos_label,
                rng=rng,
            )
            for name, rows in given.items()
        }
        return cls.from_results(found).plot(theme=theme, legend=legend, ax=ax)

    @classmethod
    @frames_follow
    def from_results(cls, parts: Mapping[str, ScoreDecomposition]) -> Self:
        """Make a display, not yet drawn, of decompositions computed before, by the names of their models.

        Parameters
        ----------
        parts : dict of name to ScoreDecomposition
            What `score_decomposition` returned for each model.
        """
        return cls(tuple(check_named(parts, "parts")), tuple(parts.values()))

    def plot(self, *, theme: Theme = "light", legend: bool = True, ax: Axes | None = None) -> Self:
        """Draw a group of bars for each part, and a bar in it for each model.

        Parameters
        ----------
        theme, legend, ax
            As in every display.
        """
        count = len(self.models)
        name = "Brier" if self.parts[0].name == "brier" else self.parts[0].name
        ax, palette = self._begin(
            ax,
            theme,
            xlabel=f"mean {name} score, and its parts",
            ylabel="",
            title=f"{name} score = miscalibration - discrimination + uncertainty",
            height=1.9 + 0.55 * len(PARTS) + 0.3 * count,
        )
        middle = np.arange(len(PARTS))[::-1].astype(np.float64)
        step = _HEIGHT / count
        self.bars_, self.whiskers_ = [], []
        for k, (model, parts) in enumerate(zip(self.models, self.parts, strict=True)):
            place = middle + _HEIGHT / 2.0 - (k + 0.5) * step
            colour = getattr(palette, _COLOURS[k % len(_COLOURS)])
            self.bars_.append(ax.barh(place, self._values(parts), 0.9 * step, color=colour, label=model))
            if parts.confidence_level is not None:
                self.whiskers_.append(self._whiskers(ax, palette, parts, place))
        ax.set_yticks(middle, [text.partition(":")[0] for text in PARTS], fontsize=SMALL)
        ax.grid(False, axis="y")
        ax.axvline(0.0, color=palette.muted, linewidth=1.0)
        several = [bars[0] for bars in self.bars_] if count > 1 else []
        for bars, model in zip(several, self.models, strict=False):
            bars.set_label(model)
        self._explain(palette, legend, [*several, *self.whiskers_[:1], *self._explained(palette)])
        return self

    def _values(self, parts: ScoreDecomposition, end: str = "") -> FloatArray:
        found: FloatArray = np.array([getattr(parts, f"{name}{end}") for name in PARTS])
        return np.where(np.isfinite(found), found, 0.0)  # a score without end has no bar

    def _whiskers(self, ax: Axes, palette: Palette, parts: ScoreDecomposition, place: FloatArray) -> Any:
        assert parts.confidence_level is not None
        lower, upper = (self._values(parts, end) for end in ("_lower", "_upper"))
        said = f"{level_said(parts.confidence_level)} limits, for many rows"
        return ax.hlines(place, lower, upper, color=palette.ink, linewidth=1.3, label=said)

    def _explained(self, palette: Palette) -> list[Any]:
        from matplotlib.lines import Line2D

        return [Line2D([], [], linestyle="none", color=palette.ink, label=text) for text in PARTS.values()]

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {
            "model": [model for model in self.models for _ in PARTS],
            "component": list(PARTS) * len(self.models),
            "value": [getattr(parts, name) for parts in self.parts for name in PARTS],
        }
        if self.parts[0].confidence_level is not None:
            for end in ("lower", "upper"):
                columns[end] = [getattr(parts, f"{name}_{end}") for parts in self.parts for name in PARTS]
        return columns

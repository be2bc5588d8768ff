"""What recalibration could save at every threshold, and what is certified that it cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from calibrant.certificates.clusters import ClusterTarget, check_clusters
from calibrant.certificates.methods.registry import Method
from calibrant.core.errors import InputError
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray
from calibrant.core.words import level_said, measured, rounded_up
from calibrant.decisions.gaps import risk_gap_curve
from calibrant.decisions.guarantees import DecisionGuarantee, decision_guarantee, limit_savings
from calibrant.decisions.results import WRAPPERS, RiskGapCurve, Wrapper
from calibrant.displays.base import THRESHOLD_SAID, Display, with_jumps, write_beside
from calibrant.displays.clusters import independent_said
from calibrant.displays.palette import Palette, Theme
from calibrant.displays.thinning import thinned
from calibrant.measures.registry import MEASURES
from calibrant.rows.intake import RowsLike, are_clustered, as_clustered, as_tally, rows_of_clusters
from calibrant.rows.refinement import whole_tally
from calibrant.rows.savings import EVERY_THRESHOLD

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NEAR = 4.0  # a limit up to so many times the largest gap is drawn as a line
_ROOM = 1.4  # height of the axes, in largest gaps, when the limit is further up


@dataclass(eq=False, repr=False)
class RiskGapDisplay(Display):
    """Plot what recalibration could save at every decision threshold, with the certified limit above it.

    Somebody acts when the forecast is at least tau. The curve is the mean loss of that minus the smallest mean loss
    that a recalibration of the same forecasts attains on these rows; it cannot exceed the Cutoff calibration error of
    the rows. The limit is about rows to come, if nothing changes: with the stated confidence no recalibration lowers
    the *expected* loss by more, at all thresholds together, so that it may be read at any of them. The band from the
    curve to the limit is room for more in the population. It assumes rows, or clusters, drawn independently from the
    population, a forecaster, a method and a level fixed without looking at them.

    Use `from_predictions` or `from_estimator`; the constructor takes what they compute.

    Attributes
    ----------
    threshold, gap : array
        The curve, thinned to about 2,000 points that keep every extreme; where it jumps there are two points at one
        threshold.
    largest_gap, largest_gap_at : float
        Its largest value, and the lowest threshold where, or just above which, it is reached.
    cutoff : float
        The Cutoff calibration error of these rows; twice it for "monotone" wrappers. No gap on these rows is larger.
    wrapper : str
        The recalibrations allowed: "nondecreasing" or "monotone".
    guarantee : DecisionGuarantee
        What is certified, and by a limit of which measure.
    ax_, figure_, line_, band_, bound_, largest_, legend_
        What was drawn, after `plot`; a limit far above the curve is out of sight, and an arrow points to it.

    Examples
    --------
    >>> display = RiskGapDisplay.from_predictions([0, 0, 1, 1], [0.2, 0.3, 0.4, 0.9])
    >>> round(display.largest_gap, 4), round(float(display.gap.max()), 4)
    (0.15, 0.15)
    """

    threshold: FloatArray
    gap: FloatArray
    largest_gap: float
    largest_gap_at: float
    cutoff: float
    wrapper: Wrapper
    guarantee: DecisionGuarantee

    @classmethod
    @frames_follow
    def from_predictions(
        cls,
        y_true: RowsLike,
        y_prob: ArrayLike | None = None,
        *,
        cluster: ArrayLike | None = None,
        cluster_target: ClusterTarget = "rows",
        max_cluster_size: float | None = None,
        serial: int = 0,
        sample_weight: ArrayLike | None = None,
        pos_label: ClassLabel | None = None,
        wrapper: Wrapper = "nondecreasing",
        confidence_level: float = 0.95,
        method: Method = "adaptive",
        theme: Theme = "light",
        legend: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Compute the curve and the limit, and draw them.

        Parameters
        ----------
        y_true, y_prob, sample_weight, pos_label
            As in every display.
        wrapper : {"nondecreasing", "monotone"}
            The recalibrations allowed, as in `risk_gap_curve`.
        confidence_level, method
            Of the upper limit, as in `certify`: that of the risk gap over all thresholds together or, with the methods
            "exact" and "paper", that of the Cutoff calibration error; twice that for "monotone".
        cluster, cluster_target, max_cluster_size, serial
            Of the limit, as in `certify`, for rows in clusters.
        theme, legend, ax
            As in every display.
        """
        options: dict[str, Any] = {
            "cluster_target": cluster_target,
            "max_cluster_size": max_cluster_size,
            "serial": serial,
        }
        given = {"sample_weight": sample_weight, "pos_label": pos_label}
        question = check_clusters(cluster is not None or are_clustered(y_true), **options)
        if question is None:
            rows: Any = as_tally(y_true, y_prob, **given)
            curve = risk_gap_curve(rows, wrapper=wrapper)
        else:
            rows = as_clustered(y_true, y_prob, cluster=cluster, **given)
            curve = risk_gap_curve(whole_tally(rows_of_clusters(question.rows(rows))), wrapper=wrapper)
        limit = limit_savings(rows, confidence_level=confidence_level, method=method, **options)
        display = cls.from_results(curve, decision_guarantee(limit))
        return display.plot(theme=theme, legend=legend, ax=ax)

    @classmethod
    @frames_follow
    def from_results(cls, curve: RiskGapCurve, guarantee: DecisionGuarantee) -> Self:
        """Make a display, not yet drawn, of a curve and a guarantee computed before.

        Parameters
        ----------
        curve : RiskGapCurve
            What `risk_gap_curve` returned.
        guarantee : DecisionGuarantee
            What `decision_guarantee` returned.
        """
        if guarantee.threshold is not None or guarantee.thresholds not in (None, EVERY_THRESHOLD):
            raise InputError(
                "is for some thresholds, and the curve for all",
                argument="guarantee",
                remedy="take that of a certificate over all thresholds, without threshold=",
            )
        threshold, gap = with_jumps(curve.threshold, curve.gap, curve.gap_right)
        kept = thinned(gap, threshold)
        return cls(
            threshold=threshold[kept],
            gap=gap[kept],
            largest_gap=curve.largest_gap,
            largest_gap_at=curve.largest_gap_at,
            cutoff=curve.bound.right,
            wrapper=curve.wrapper,
            guarantee=guarantee,
        )

    @property
    def bound(self) -> float:
        """What is certified: with the stated confidence no recalibration of this kind saves more at any threshold."""
        return float(getattr(self.guarantee, self.wrapper))

    def plot(self, *, theme: Theme = "light", legend: bool = True, ax: Axes | None = None) -> Self:
        """Draw the curve, the limit, and the band between them.

        Parameters
        ----------
        theme, legend, ax
            As in every display.
        """
        saved = measured(self.largest_gap)
        ax, palette = self._begin(
            ax,
            theme,
            xlabel=THRESHOLD_SAID,
            ylabel="loss per row that recalibration could save",
            title=f"On these rows recalibration saves up to {saved} per row"
            if self.largest_gap > 0.0
            else "Recalibration could save nothing on these rows",
        )
        self.bound_ = ax.axhline(
            self.bound, color=palette.bound, linewidth=1.8, linestyle=(0, (6, 2)), label=self._bound_said()
        )
        self.band_ = ax.fill_between(
            self.threshold,
            self.gap,
            self.bound,
            color=palette.band,
            linewidth=0.0,
            zorder=0.2,
            label="room for more in the population: from what these rows show up to the limit",
        )
        (self.line_,) = ax.plot(
            self.threshold,
            self.gap,
            color=palette.curve,
            linewidth=1.6,
            label=f"saved by the best {WRAPPERS[self.wrapper]} on these rows (at threshold tau an action without an "
            "event loses tau, a missed event 1 \N{MINUS SIGN} tau)",
        )
        (self.largest_,) = ax.plot(
            [self.largest_gap_at],
            [self.largest_gap],
            color=palette.highlight,
            marker="o",
            markersize=6,
            linestyle="none",
            clip_on=False,
        )
        ax.set_xlim(0.0, 1.0)
        if self.largest_gap > 0.0:
            self._name_largest(ax, palette)
        self._name_bound(ax, palette)
        self._explain(palette, legend, [self.line_, self.bound_, self.band_])
        return self

    def _name_largest(self, ax: Axes, palette: Palette) -> None:
        """Write the largest saving beside its point, towards the middle of the axes."""
        is_left = self.largest_gap_at < 0.5
        write_beside(
            ax,
            f"{measured(self.largest_gap)}, at threshold {self.largest_gap_at:.3g}",
            (self.largest_gap_at, self.largest_gap),
            palette.highlight,
            offset=(7.0 if is_left else -7.0, 4.0),
            align=("left" if is_left else "right", "bottom"),
        )

    def _name_bound(self, ax: Axes, palette: Palette) -> None:
        """Let the curve fill the axes; name the limit at its line or, when it is far above, at an arrow that points up.

        The room above the curve, where the limit is named, is free of it.
        """
        is_near = self.bound <= _NEAR * self.largest_gap or self.largest_gap == 0.0
        ax.set_ylim(0.0, max(1.15 * self.bound if is_near else 0.0, _ROOM * self.largest_gap) or 1.0)
        promise, align = f"limit: at most {rounded_up(self.bound)}", ("right", "bottom")
        if is_near:
            place, offset = (1.0, self.bound), (-2.0, 3.0)
            write_beside(ax, promise, place, palette.bound, offset=offset, align=align, of_axes="y data")
            return
        words = f"{promise}, above this picture"
        write_beside(ax, words, (0.94, 0.9), palette.bound, align=align, of_axes="axes fraction")
        ax.annotate(
            "",
            (0.97, 1.0),
            xycoords="axes fraction",
            xytext=(0.97, 0.88),
            textcoords="axes fraction",
            arrowprops={"arrowstyle": "-|>", "color": palette.bound, "linewidth": 1.8, "shrinkA": 0, "shrinkB": 0},
        )

    def _columns(self) -> dict[str, Any]:
        return {"threshold": self.threshold, "gap": self.gap}

    def _bound_said(self) -> str:
        promise = self.guarantee
        whom = "in the population" if promise.target == "population" else "for these forecasts"
        rows = "" if promise.finite_sample else f", for many {'rows' if promise.clusters is None else 'clusters'}"
        level, bound = level_said(promise.confidence_level), rounded_up(self.bound)
        way = "" if promise.is_direct else f", by the {MEASURES.words(promise.measure)}"
        return (
            f"certified: with {level} confidence it saves at most {bound} {whom}, at all thresholds together "
            f"({promise.method} method{way}{rows}; {independent_said([promise.clusters])}, forecaster fixed beforehand)"
        )

"""What every method is: whom its limits speak of, what it covers, how it finds them, and what they rest on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from calibrant.certificates.cluster_limits import ClusterLimits
from calibrant.certificates.cluster_savings import SavingLimits
from calibrant.certificates.clusters import Clusters, enough_clusters
from calibrant.certificates.joint_levels import delta_of_each
from calibrant.certificates.margins import hoeffding_margin
from calibrant.certificates.methods.registry import METHODS
from calibrant.certificates.samples import Samples
from calibrant.certificates.saving_limits import lower_saving_margin, saving_margin, split_lower_saving
from calibrant.core.errors import InputError
from calibrant.core.types import FloatArray, IntArray
from calibrant.core.voices import Argument, Either, Option, Phrase
from calibrant.measures.judged import WeightedMeasure
from calibrant.measures.results import WorstInterval
from calibrant.rows.actions import ActionTable
from calibrant.rows.savings import SAVING, Score, Stretches, Thresholds, largest_redrawing
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals
from calibrant.rows.weights import effective_rows

FIXED_WEIGHTS = "the weights were fixed beforehand"
"""What guarantees for weighted rows rest on."""


class CertificateMethod(ABC):
    """A way to find confidence limits of a calibration error.

    All limits are one-sided and wrong with probability at most delta. A method whose margin follows from the number of
    rows alone is a `MarginMethod`, which has less to say.

    Attributes
    ----------
    name : str
        What users write.
    sentence : str
        What a report says of it.
    target : str
        Whom its limits speak of: "population" or "these forecasts".
    finite_sample : bool
        Whether they hold at every number of rows.
    measures : tuple of str
        The measures that it is proved for; empty for all of them.
    least_level : float
        The lowest confidence level that it is proved for.
    covers_weights, covers_fractions : bool
        Whether it is proved for rows of unequal weight, and for outcomes between 0 and 1.
    from_cells : bool
        Whether `bracket` finds its upper limit between two ends from totals per cell.
    no_clusters : str
        Why it has no limits for rows in clusters; empty where it has.
    pairs_rows : bool
        Whether two models on the same rows are compared row by row with it.
    covers_regret : bool
        Whether it has limits of the regret of declared decisions.
    levels_at_once : bool
        Whether `uppers` finds limits at several levels for little more than the price of one.
    """

    name: ClassVar[str]
    sentence: ClassVar[str]
    target: ClassVar[str] = "population"
    finite_sample: ClassVar[bool] = True
    measures: ClassVar[tuple[str, ...]] = ()
    least_level: ClassVar[float] = 0.5
    covers_weights: ClassVar[bool] = True
    covers_fractions: ClassVar[bool] = True
    from_cells: ClassVar[bool] = True
    no_clusters: ClassVar[str] = ""
    pairs_rows: ClassVar[bool] = False
    covers_regret: ClassVar[bool] = False
    levels_at_once: ClassVar[bool] = False

    _drawn: ClassVar[str] = "the rows are independent draws from the population"
    _unseen: ClassVar[str] = "forecaster, limit, method and level were fixed without looking at these rows"
    _besides: ClassVar[tuple[str, ...]] = ()

    # --- What it covers ---------------------------------------------------------------------------------------------

    def check_measure(self, measure: str) -> None:
        """Refuse a measure that the method has no proof for."""
        if self.measures and measure not in self.measures:
            first, *others = self.measures
            raise InputError(
                Phrase(
                    "{method} covers {covered}{others} only, got {measure}",
                    method=Option("method", self.name),
                    covered=Option("measure", first),
                    others="".join(f" and {each!r}" for each in others),
                    measure=Option("measure", measure),
                ),
                remedy=Phrase("use {methods}", methods=_general_methods()),
            )

    def check_clusters(self) -> None:
        """Refuse rows in clusters that the method has no proof for."""
        if self.no_clusters:
            raise InputError(
                Phrase(
                    "{method} has no limits for rows in clusters: {why}",
                    method=Option("method", self.name),
                    why=self.no_clusters,
                ),
                remedy=Phrase("use {adaptive}", adaptive=Option("method", "adaptive")),
            )

    def check_regret(self) -> None:
        """Refuse declared decisions, where the method has no limits of their regret."""
        if not self.covers_regret:
            known = " or ".join(map(repr, METHODS.where(lambda method: method.covers_regret)))
            raise InputError(
                Phrase("{method} has no limits of regret", method=Option("method", self.name)), remedy=f"use {known}"
            )

    def check_level(self, level: float) -> None:
        """Refuse a confidence level that the method has no proof for."""
        if level < self.least_level:
            raise InputError(
                Phrase(
                    "{method} needs a {level} of at least {least:g}, got {given:g}",
                    method=Option("method", self.name),
                    level=Argument("confidence_level"),
                    least=self.least_level,
                    given=level,
                )
            )

    def check_covers(self, table: Totals) -> None:
        """Refuse rows that the method has no proof for."""
        if not (self.covers_weights or table.unit_weights):
            raise InputError(
                Phrase(
                    "{method} does not cover {weight}",
                    method=Option("method", self.name),
                    weight=Argument("sample_weight"),
                ),
                remedy=Phrase(
                    "use {methods}{counts}",
                    methods=_general_methods(),
                    counts=Either(", or Tally.from_counts if the weights are counts of real observations"),
                ),
            )
        if not (self.covers_fractions or table.binary_outcomes):
            raise InputError(
                Phrase(
                    "{method} needs outcomes of 0 or 1, and {outcomes} holds fractions",
                    method=Option("method", self.name),
                    outcomes=Argument("y_true"),
                ),
                remedy=Phrase("use {adaptive}, or 'normal' for many rows", adaptive=Option("method", "adaptive")),
            )

    # --- Limits -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def upper(self, source: Tally | RowSource, table: Totals, estimate: float, delta: float) -> float:
        """Return an upper limit of the Cutoff error; ``table`` holds the totals of all rows, however coarse."""

    def uppers(
        self,
        source: Tally | RowSource,
        table: Totals,
        estimate: float,
        delta: float,
        family: int,
        parts: Sequence[int],
    ) -> tuple[float, ...]:
        """Return upper limits of one of a family of Cutoff errors, at delta over each of several numbers up to theirs.

        Limits at stricter levels must be no smaller: claims that hold at a level hold at all larger ones.
        """
        del family
        return tuple(self.upper(source, table, estimate, delta_of_each(delta, each)) for each in parts)

    def upper_share(self, source: Tally | RowSource, table: Totals, delta: float) -> float | None:
        """Return an upper limit of the Cutoff error as a share of the event rate; None where two limits are divided."""
        del source, table, delta
        return None

    def saving_scores(self, table: Totals, thresholds: Thresholds, delta: float) -> list[Score]:
        """Return the scores whose best redrawings `upper_saving` needs, besides the saving itself."""
        del table, thresholds, delta
        return []

    def upper_saving(
        self, source: Tally | RowSource, table: Totals, thresholds: Thresholds, estimate: float, delta: float
    ) -> float:
        """Return an upper limit of the risk gap over some thresholds: the estimate plus Hoeffding's margin.

        ``table`` was split where the best redrawings of `saving_scores` may begin and end.
        """
        del source, thresholds
        return estimate + saving_margin(effective_rows(table), delta)

    def lower_saving(
        self,
        source: Tally | RowSource,
        table: Totals,
        thresholds: Thresholds,
        estimate: float,
        delta: float,
        seed: int,
    ) -> float:
        """Return a lower limit of the risk gap: what random halves of the rows say of each other's best line."""
        return split_lower_saving(source, table, thresholds, estimate, delta, seed)

    def bracket_saving(
        self, table: Totals, bits: int, thresholds: Thresholds, delta: float, low: float, high: float
    ) -> tuple[float, float]:
        """Return two ends that contain `upper_saving`, from cells of width 2^-bits and two ends of the risk gap."""
        del bits, thresholds
        more = saving_margin(effective_rows(table), delta)
        return low + more, high + more

    def upper_of_clusters(self, limits: ClusterLimits, estimate: float, delta: float) -> float:
        """Return an upper limit of the Cutoff error from rows in clusters: 1 where the method knows none."""
        del limits, estimate, delta
        return 1.0

    def lower_of_clusters(self, limits: ClusterLimits, estimate: float, delta: float, seed: int) -> float:
        """Return a lower limit of the Cutoff error from rows in clusters: bets on intervals fixed beforehand."""
        del seed
        return limits.lower(estimate, delta)

    def least_of_clusters(self, limits: ClusterLimits, delta: float) -> float:
        """Return the least that an upper limit from these clusters could be, whatever the outcomes."""
        del limits, delta
        return 0.0

    def upper_saving_of_clusters(self, limits: SavingLimits, estimate: float, delta: float) -> float:
        """Return an upper limit of the risk gap from rows in clusters: 1 where the method knows none."""
        del limits, estimate, delta
        return 1.0

    def least_saving_of_clusters(self, limits: SavingLimits, delta: float) -> float:
        """Return the least that an upper limit of the risk gap could be, whatever the outcomes."""
        del limits, delta
        return 0.0

    def enough_clusters(self, limit: float, delta: float, clusters: Clusters, *, saving: bool) -> float:
        """Return how many clusters of equal size can be certified at best, by bets; infinity where no number can."""
        del saving
        return enough_clusters(limit, delta, clusters.serial, drawn=clusters.max_size is not None)

    def upper_regret(self, table: ActionTable, delta: float) -> float:
        """Return an upper limit of swap regret, in units of the table: 1 where the method knows none."""
        del table, delta
        return 1.0

    def lower_regret(self, table: ActionTable, delta: float) -> float:
        """Return a lower limit of swap regret, in units of the table: 0 where the method knows none."""
        del table, delta
        return 0.0

    @abstractmethod
    def lower_margin(self, table: Totals, delta: float, factor: float) -> float:
        """Return how far an error of the rows can be above the population's, for weights of total variation M.

        ``factor`` is 1 + M/2: how many times the deviation of intervals the deviation of such weights can be.
        """

    def ends(self, delta: float) -> tuple[Callable[[Totals], IntArray], ...]:
        """Return what says which entries `upper` must open, so that they are opened in one go with the others."""
        del delta  # most limits look at the error alone
        return ()

    def mean_margin(self, table: Totals, delta: float) -> float:
        """Return how far the mean of w(p) (y - p) for one weight function can be off, to one side."""
        return hoeffding_margin(effective_rows(table), delta)

    def upper_of(self, table: Totals, error: float, delta: float) -> float:
        """Return the upper limit of any weighted calibration error from its value on the rows."""
        return error + self.mean_margin(table, delta)

    def bias_lower(self, tally: Tally, delta: float) -> float:
        """Return a lower limit of the size of the mean bias, which may have either sign."""
        bias = abs(tally.residual_total) / tally.weight_total
        return bias - self.mean_margin(tally, delta_of_each(delta, 2))

    def lower(
        self,
        measure: WeightedMeasure,
        source: Tally | RowSource,
        table: Totals,
        estimate: float,
        worst: WorstInterval,
        delta: float,
        seed: int,
    ) -> float:
        """Return a lower limit of a measure, from its estimate and the worst interval of the rows."""
        del seed  # for methods that leave something to chance
        return measure.lower(source, table, estimate, worst.error, delta, self)

    def bracket(self, table: Totals, bits: int, delta: float, low: float, high: float) -> tuple[float, float]:
        """Return two ends that contain `upper`, from cells of width 2^-bits and from two ends of the Cutoff error."""
        del table, bits, delta, high  # where no more is known
        return low, 1.0

    # --- Plans ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def planned(self, samples: Samples, delta: float) -> FloatArray:
        """Return the upper limit of the Cutoff error of each simulated data set, or a close stand-in."""

    def planned_saving(self, samples: Samples, thresholds: Thresholds, delta: float) -> FloatArray:
        """Return `upper_saving` of each simulated data set, or a close stand-in."""
        found = []
        for tally in samples.tallies():
            best = largest_redrawing(Stretches.of(tally), thresholds, SAVING)
            found.append(self.upper_saving(tally, tally, thresholds, best.score / samples.size, delta))
        return np.array(found)

    def planned_share(self, samples: Samples, delta: float) -> FloatArray | None:
        """Return `upper_share` of each simulated data set; None where two limits are divided."""
        del samples, delta
        return None

    @abstractmethod
    def usual_margin(self, variance: float, delta: float) -> float:
        """Return about sqrt(n) times the margin, where residuals have so much variance: a search begins there."""

    # --- Words ------------------------------------------------------------------------------------------------------

    def assumptions(
        self, table: Totals | ActionTable, *, parts: str | None = None, clusters: Clusters | None = None
    ) -> tuple[str, ...]:
        """Return what the limits rest on, for the words of a result; parts are "groups" or "bands"."""
        drawn = self._drawn if clusters is None else clusters.assumed(given=self.target != "population")
        listed = [drawn, self._unseen]
        if parts is not None:
            found = f"(for {parts} found by looking nothing holds)"
            listed.append(f"the {parts} were chosen without looking at these rows {found}")
        if not table.unit_weights and (clusters is None or clusters.target == "rows"):
            listed.append(
                f"{FIXED_WEIGHTS} (weights computed from the rows, such as inverse propensities, are not covered)"
            )
        return (*listed, *self._besides)

    def notes(self, table: Totals, worst: WorstInterval) -> tuple[str, ...]:
        """Return what to keep in mind about the limits of these rows."""
        del table, worst  # most methods hold whatever the rows are
        return ()

    def saving_notes(self, table: Totals, thresholds: Thresholds, delta: float) -> tuple[str, ...]:
        """Return what to keep in mind about limits of the risk gap."""
        del table, thresholds, delta
        return ()

    def cluster_notes(self, limits: ClusterLimits) -> tuple[str, ...]:
        """Return what to keep in mind about limits from rows in clusters."""
        del limits
        return ()


class MarginMethod(CertificateMethod):
    """A method whose upper margin follows from the number of rows and the level alone."""

    @abstractmethod
    def margin(self, rows: float, delta: float) -> float:
        """Return the upper margin, for so many rows of equal weight."""

    def upper(self, source: Tally | RowSource, table: Totals, estimate: float, delta: float) -> float:
        """Return the estimate plus the margin."""
        del source
        return estimate + self.mean_margin(table, delta)

    def lower_saving(
        self,
        source: Tally | RowSource,
        table: Totals,
        thresholds: Thresholds,
        estimate: float,
        delta: float,
        seed: int,
    ) -> float:
        """Return the estimate minus a margin that holds for all lines at once."""
        del source, thresholds, seed
        return estimate - lower_saving_margin(table, delta)

    def mean_margin(self, table: Totals, delta: float) -> float:
        """Return the margin for as many rows of equal weight as these are worth."""
        return self.margin(effective_rows(table), delta)

    def bracket(self, table: Totals, bits: int, delta: float, low: float, high: float) -> tuple[float, float]:
        """Return the two ends of the error plus the margin."""
        del bits
        more = self.mean_margin(table, delta)
        return low + more, high + more

    def planned(self, samples: Samples, delta: float) -> FloatArray:
        """Return the error of each data set plus the margin."""
        limits: FloatArray = samples.largest / samples.size + self.margin(samples.size, delta)
        return limits

    def usual_margin(self, variance: float, delta: float) -> float:
        """Return sqrt(n) times the margin, whatever the variance."""
        del variance
        return self.margin(1.0, delta)


def _general_methods() -> Phrase:
    """Name the methods that cover every measure and every weight."""
    first, *some, last = sorted(METHODS.where(lambda method: method.covers_weights and not method.measures))
    others = "".join(f", {each!r}" for each in some)
    return Phrase("{first}{others} or {last!r}", first=Option("method", first), others=others, last=last)

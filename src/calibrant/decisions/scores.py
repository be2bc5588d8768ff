"""Proper scores as mixtures of threshold losses: the Schervish representation.

The loss at threshold tau is tau for acting (p >= tau) without an event and 1 - tau for an event missed. A measure nu on
the thresholds mixes these losses into the score S(y, p) = integral of loss(y, 1{p >= tau}; tau) d nu(tau), that is

    S(0, p) = integral of tau over tau <= p,        S(1, p) = integral of 1 - tau over tau > p,

and every proper score is one of these (Schervish 1989). The Brier score has the density 2, the log loss
1 / (tau (1 - tau)), the spherical score (tau^2 + (1 - tau)^2)^(-3/2). For an outcome between 0 and 1 the score is the
expected one, (1 - y) S(0, p) + y S(1, p).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.types import ArrayLike, FloatArray
from calibrant.rows.checks import check_forecasts, check_masses, check_outcomes, check_same_index, check_thresholds
from calibrant.rows.intake import RowsLike

Loss = Callable[[FloatArray], FloatArray]

_NODES = 16
_LEFT_OCTAVES = 500  # tau^-2 is still finite at 2^-500
_RIGHT_OCTAVES = 53  # no float64 lies between 1 - 2^-53 and 1
_JUDGED_OCTAVE = 20  # near 1 the octaves beyond this one have too few floats to judge how a density grows
_DIVERGES = 0.999  # octaves that shrink by less than this never add up to a finite number
_SETTLED = 1e-15
_NARROWEST = 2.0**-50
_MOST_PANELS = 100_000
_CHUNK = 1 << 15


@dataclass(frozen=True)
class ProperScore:
    """A score with known losses: what an event and a non-event cost at each forecast, and its measure's total mass."""

    name: str
    mass: float
    event_loss: Loss
    nonevent_loss: Loss


def _log_loss(chance: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):  # a sure forecast that turns out wrong costs infinitely much
        loss: FloatArray = 0.0 - np.log(chance)  # no -0.0
    return loss


def _log_loss_of_complement(chance: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        loss: FloatArray = 0.0 - np.log1p(-chance)
    return loss


def _spherical_loss(chance: FloatArray) -> FloatArray:
    loss: FloatArray = 1.0 - chance / np.hypot(chance, 1.0 - chance)
    return loss


SCORES = {
    "brier": ProperScore("brier", 2.0, lambda p: np.square(1.0 - p), np.square),
    "log": ProperScore("log", math.inf, _log_loss, _log_loss_of_complement),
    "spherical": ProperScore("spherical", 2.0, _spherical_loss, lambda p: _spherical_loss(1.0 - p)),
}
"""The scores known by name."""


class SchervishMeasure:
    """A proper score of your own: how much each decision threshold matters to you.

    Give thresholds with masses (atoms), a density on (0, 1), or both. One atom of mass 1 is the loss of one threshold;
    a density of 2 everywhere is the Brier score.

    Parameters
    ----------
    atoms : array-like, optional
        Thresholds in [0, 1].
    masses : array-like, optional
        One positive mass for each atom.
    density : callable, optional
        Takes an array of thresholds strictly between 0 and 1 and returns nonnegative values. It may have jumps and may
        grow towards 0 and 1 (towards 1, where thresholds have fewer digits, losses keep fewer); a spike so narrow that
        sampling misses it belongs among the atoms.
    name : str
        What results call the score.

    Attributes
    ----------
    mass : float
        Total mass: sum of the masses plus the integral of the density, ``math.inf`` when that diverges (numerically: a
        density that grows like a power above 0.998 of the distance to an end counts as divergent).

    References
    ----------
    Schervish (1989), A general method for comparing probability assessors; appendix B.3 of Rossellini et al. (2025).

    Examples
    --------
    >>> screening = SchervishMeasure(atoms=[0.1, 0.2], masses=[3, 1])  # two decisions, one made three times as often
    >>> screening.mass
    4.0
    >>> print(screening.loss([0, 1], [0.15, 0.15]).round(3))
    [0.3 0.8]
    >>> round(SchervishMeasure(density=lambda t: 6 * t * (1 - t)).mass, 9)
    1.0
    """

    def __init__(
        self,
        *,
        atoms: Any = None,
        masses: Any = None,
        density: Callable[[FloatArray], Any] | None = None,
        name: str = "custom",
    ) -> None:
        if not isinstance(name, str):
            raise InputError(f"must be a string, got {name!r}", argument="name", value=name)
        if atoms is None and density is None:
            raise InputError("a Schervish measure needs atoms with masses, a density, or both", remedy="it got neither")
        if (atoms is None) != (masses is None):
            missing = "masses" if masses is None else "atoms"
            raise InputError(f"{missing} is missing: pass atoms and masses together, one mass for each atom")
        place, mass = np.empty(0), np.empty(0)
        if atoms is not None:
            place = np.atleast_1d(check_thresholds(atoms, "atoms"))
            mass = check_masses(masses, place.size)
            check_same_index(atoms=atoms, masses=masses)
            order = np.argsort(place, kind="stable")
            place, mass = place[order], mass[order]
        if density is not None and not callable(density):
            raise InputError(
                f"must be a function of thresholds, got {density!r}",
                argument="density",
                value=density,
                remedy="point masses: atoms= and masses=",
            )
        self.name = name
        self._atoms = place
        self._nonevent_atoms = np.concatenate([[0.0], np.cumsum(place * mass)])
        self._event_atoms = np.concatenate([np.cumsum(((1.0 - place) * mass)[::-1])[::-1], [0.0]])
        self._integral = None if density is None else _DensityIntegral(density)
        self.mass = float(mass.sum()) + (0.0 if self._integral is None else self._integral.mass)

    def event_loss(self, forecast: FloatArray) -> FloatArray:
        """Return what an event costs at each forecast: the mass of 1 - tau over thresholds above it."""
        loss: FloatArray = self._event_atoms[np.searchsorted(self._atoms, forecast, side="right")]
        return loss if self._integral is None else loss + self._integral.above(forecast)

    def nonevent_loss(self, forecast: FloatArray) -> FloatArray:
        """Return what a non-event costs at each forecast: the mass of tau over thresholds up to it."""
        loss: FloatArray = self._nonevent_atoms[np.searchsorted(self._atoms, forecast, side="right")]
        return loss if self._integral is None else loss + self._integral.up_to(forecast)

    def loss(self, y_true: RowsLike, y_prob: ArrayLike) -> FloatArray:
        """Return the score of each row, smaller is better; `score_decomposition` gives its mean and its parts.

        Parameters
        ----------
        y_true, y_prob : array-like of shape (n,)
            Outcomes in [0, 1], and forecast probabilities.

        Returns
        -------
        array of shape (n,)
            The score of each row.
        """
        forecast = check_forecasts(y_prob)
        outcome = check_outcomes(y_true, forecast.size)
        check_same_index(y_true=y_true, y_prob=y_prob)
        total = np.zeros(forecast.size)
        for share, loss in ((outcome, self.event_loss(forecast)), (1.0 - outcome, self.nonevent_loss(forecast))):
            total += np.multiply(share, loss, where=share > 0.0, out=np.zeros(forecast.size))  # 0 x inf is 0 here
        return total

    def __repr__(self) -> str:
        parts = [f"{self._atoms.size} atoms"] if self._atoms.size else []
        parts += ["a density"] if self._integral is not None else []
        return f"SchervishMeasure({' and '.join(parts)}, total mass {self.mass:g})"


class _DensityIntegral:
    """Integrals of tau nu(tau) up to a forecast and of (1 - tau) nu(tau) above it, for a density nu on (0, 1).

    The panels halve towards both ends, where a density may grow, and elsewhere until halving changes nothing, which
    closes in on jumps; what lies beyond the last panels is the sum of a geometric series.
    """

    def __init__(self, density: Callable[[FloatArray], Any]) -> None:
        self._density = density
        self._node, self._node_weight = np.polynomial.legendre.leggauss(_NODES)
        left = _powers(_LEFT_OCTAVES, 1)
        edges = np.concatenate([left, 1.0 - _powers(_RIGHT_OCTAVES, 2)[::-1]])
        low, high, parts = self._settle(edges[:-1], edges[1:])
        start = self._tail(left[:3], octaves_away=1)
        judged = 1.0 - _powers(_JUDGED_OCTAVE + 2, _JUDGED_OCTAVE)
        end = self._tail(judged, octaves_away=_RIGHT_OCTAVES - _JUDGED_OCTAVE - 1)
        if math.isinf(start[0]) or math.isinf(end[1]):
            side, forecasts = ("0", "above 0") if math.isinf(start[0]) else ("1", "below 1")
            raise InputError(
                f"density grows so fast towards {side} that every forecast {forecasts} costs infinitely much",
                remedy="it must stay below c/tau^2 near 0 and c/(1 - tau)^2 near 1",
            )
        self._edge = np.append(low, high[-1])
        self._up_to = np.cumsum(np.concatenate([[start[0]], parts[0]]))
        self._above = np.cumsum(np.concatenate([[end[1]], parts[1][::-1]]))[::-1]
        self._whole = (float(self._up_to[-1]) + end[0], float(self._above[0]) + start[1])
        self.mass = sum(self._whole)

    def up_to(self, forecast: FloatArray) -> FloatArray:
        """Return the integral of tau nu(tau) from 0 to each forecast."""
        return self._read(forecast, self._up_to[:-1], 0, at_zero=0.0, at_one=self._whole[0])

    def above(self, forecast: FloatArray) -> FloatArray:
        """Return the integral of (1 - tau) nu(tau) from each forecast to 1."""
        return self._read(forecast, self._above[1:], 1, at_zero=self._whole[1], at_one=0.0)

    def _read(self, forecast: FloatArray, known: FloatArray, side: int, *, at_zero: float, at_one: float) -> FloatArray:
        values = np.where(forecast == 0.0, at_zero, at_one)
        inside = np.flatnonzero((forecast > 0.0) & (forecast < 1.0))
        for begin in range(0, inside.size, _CHUNK):
            rows = inside[begin : begin + _CHUNK]
            at = forecast[rows]
            if at.min() < self._edge[0]:
                raise InputError(
                    f"holds {at.min():g}, nearer to 0 than a density can be integrated",
                    argument="y_prob",
                    remedy="round it to 0 or give the measure as atoms",
                )
            panel = np.minimum(np.searchsorted(self._edge, at, side="right") - 1, known.size - 1)
            ends = (self._edge[panel], at) if side == 0 else (at, self._edge[panel + 1])
            values[rows] = known[panel] + self._integrate(*ends)[side]
        return values

    def _integrate(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the integrals of tau nu and (1 - tau) nu over panels, by Gauss-Legendre quadrature."""
        half = (high - low) / 2.0
        tau = low[:, None] + half[:, None] * (1.0 + self._node)
        with np.errstate(all="ignore"):  # what comes out is checked instead
            returned = np.asarray(self._density(tau.ravel()))
        if returned.dtype.kind not in "biuf":
            raise InputError(
                f"returned dtype {returned.dtype}, not real numbers",
                argument="density",
                remedy="it must return one per threshold",
            )
        if returned.shape not in ((), (tau.size,)):
            raise InputError(
                f"returned an array of shape {returned.shape} for {tau.size} thresholds",
                argument="density",
                remedy="it must return one value for each",
            )
        value = np.broadcast_to(returned, tau.size).reshape(tau.shape)
        bad = np.flatnonzero(~((value >= 0.0) & (value < np.inf)))
        if bad.size:
            raise InputError(
                f"density({tau.flat[bad[0]]:g}) is {value.flat[bad[0]]:g}",
                remedy="it must be finite and not negative at every threshold strictly between 0 and 1",
            )
        weighted = value * self._node_weight
        return np.stack([(weighted * tau).sum(axis=1), (weighted * (1.0 - tau)).sum(axis=1)]) * half

    def _settle(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Halve panels until halving changes nothing; return their ends and integrals, in order."""
        whole = self._integrate(low, high)
        done: list[FloatArray] = []
        while low.size:
            middle = (low + high) / 2.0
            first, second = self._integrate(low, middle), self._integrate(middle, high)
            scale = max(float(whole.sum()) + sum(float(part[2:].sum()) for part in done), 1e-300)
            # Near 1 neighbouring floats are far apart beside their distance to 1, which no halving can mend.
            noise = whole * (np.finfo(float).eps / (1.0 - high))
            rough = (np.abs(first + second - whole) > _SETTLED * scale + noise).any(axis=0)
            rough &= high - low > _NARROWEST
            done.append(np.vstack([low, high, whole])[:, ~rough])
            if 2 * np.count_nonzero(rough) > _MOST_PANELS:
                raise InputError(
                    "is too rough to integrate",
                    argument="density",
                    remedy="give its narrow parts as atoms= with masses=",
                )
            low, high = np.concatenate([low[rough], middle[rough]]), np.concatenate([middle[rough], high[rough]])
            whole = np.concatenate([first[:, rough], second[:, rough]], axis=1)
        panels = np.concatenate(done, axis=1)
        panels = panels[:, np.argsort(panels[0])]
        return panels[0], panels[1], panels[2:]

    def _tail(self, edges: FloatArray, *, octaves_away: int) -> tuple[float, float]:
        """Sum the octaves beyond the panels, from how the two octaves between three edges, outermost first, shrink."""
        ends = np.sort(np.stack([edges[:-1], edges[1:]]), axis=0)
        outer, inner = self._integrate(*ends).T
        sums = []
        for last, before in zip(outer, inner, strict=True):
            ratio = last / before if before > 0.0 else 0.0
            sums.append(math.inf if ratio >= _DIVERGES else float(last * ratio**octaves_away / (1.0 - ratio)))
        return sums[0], sums[1]


def _powers(most: int, least: int) -> FloatArray:
    """Return 2^-most, ..., 2^-least."""
    return np.ldexp(1.0, -np.arange(most, least - 1, -1))

"""Rows in clusters, and what every interval of their forecasts gives, by trying all of them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.certificates.cluster_limits import ClusterLimits, Dependence
from calibrant.rows.checks import Observations
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.tally import Tally

Array = npt.NDArray[Any]


def cluster_limits(
    y: Array, p: Array, label: Array, w: Array | None = None, *, once: bool = False, **dependence: Any
) -> ClusterLimits:
    """Return the limits for these rows; ``once`` lets each cluster count once."""
    outcome = np.asarray(y, dtype=float)
    seen = Observations(outcome, np.asarray(p, dtype=float), w, bool(np.isin(outcome, (0.0, 1.0)).all()))
    rows = ClusteredRows.of(seen, label)
    if once:
        rows = rows.once_each()
    return ClusterLimits(rows, Tally.from_observations(rows.observations), Dependence(**dependence))


def interval_sums(y: Array, p: Array, label: Array, w: Array | None = None) -> tuple[Array, Array]:
    """Return T_c(I), a line for each interval I with the empty one among them, and the sizes of clusters."""
    w = np.ones(p.size) if w is None else w
    y, p, label, w = y[w > 0], p[w > 0], label[w > 0], w[w > 0]
    values, place = np.unique(p, return_inverse=True)
    names, code = np.unique(label, return_inverse=True)
    curve = np.zeros((values.size + 1, names.size))
    np.add.at(curve, (place + 1, code), w * (y - p))
    curve = curve.cumsum(axis=0)
    first, last = np.triu_indices(values.size + 1)
    return curve[last] - curve[first], np.bincount(code, weights=w)

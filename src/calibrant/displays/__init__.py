"""Plots in the manner of scikit-learn: `from_predictions` or `from_estimator` computes, `plot` only draws.

One module per display; `palette` holds every colour, `thinning` makes curves of many rows small without moving their
extremes, `base` is what all displays can do.
"""

from __future__ import annotations

from calibrant.core.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)

"""Plots in the manner of scikit-learn: `from_predictions` or `from_estimator` computes, `plot` only draws.

One module per display; `palette` holds every colour, `thinning` makes curves of many rows small without moving their
extremes, `base` is what all displays can do.
"""

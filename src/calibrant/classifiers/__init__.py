"""Classifiers in the manner of scikit-learn that certify or recalibrate themselves."""

from __future__ import annotations

from calibrant.core.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)

"""Rows and classifiers that the tests of classifiers share."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from calibrant.classifiers.certified import CertifiedClassifier

try:
    from sklearn.frozen import FrozenEstimator as FrozenEstimator
except ImportError:
    FrozenEstimator = None

needs_frozen = pytest.mark.skipif(FrozenEstimator is None, reason="scikit-learn before 1.6 has no frozen models")

FEATURES, LABELS = make_classification(n_samples=1200, flip_y=0.2, random_state=1)
WEIGHTS = np.random.default_rng(2).gamma(4.0, size=1200)


def certified(estimator: Any = None, **options: Any) -> CertifiedClassifier:
    """A classifier that keeps its model: the limit is easy to meet."""
    options = {"max_error": 0.2, "random_state": 0, **options}
    return CertifiedClassifier(LogisticRegression() if estimator is None else estimator, **options)


def halves(*arrays: Any, judging: int = 600, seed: int = 0) -> Any:
    """The same split, by other means."""
    return train_test_split(*arrays, test_size=judging, random_state=seed)

"""Draw the pictures of these pages: ``python docs/displays/pictures.py`` writes them beside this file.

They come from data that scikit-learn brings along, so that anybody can draw them again; drawn twice with the same
versions they are the same to the last byte.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import calibrant

HERE = Path(__file__).parent


def tumours() -> tuple[Any, Any]:
    """Return whether tumours are malignant, and what naive Bayes forecasts for patients it has not seen."""
    X, benign = load_breast_cancer(return_X_y=True)
    malignant = benign == 0
    model = GaussianNB().fit(X[::2, :5], malignant[::2])
    return malignant[1::2], model.predict_proba(X[1::2, :5])[:, 1]


def digits() -> tuple[Any, dict[str, Any]]:
    """Return whether written digits are 5 or more, and what three models forecast for those they have not seen."""
    X, digit = load_digits(return_X_y=True)
    large = digit >= 5
    models = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
        "one tree": DecisionTreeClassifier(min_samples_leaf=10, random_state=0),
        "random forest": RandomForestClassifier(random_state=0),
    }
    fitted = {name: model.fit(X[::2], large[::2]) for name, model in models.items()}
    return large[1::2], {name: model.predict_proba(X[1::2])[:, 1] for name, model in fitted.items()}


def days() -> tuple[Any, Any, Any]:
    """Return outcomes, forecasts and days of a model that forecasts too low from the 61st of 90 days on."""
    rng = np.random.default_rng(0)
    place = np.arange(90 * 200) // 200
    y_prob = rng.random(place.size)
    y_true = rng.random(place.size) < np.where(place >= 60, np.sqrt(y_prob), y_prob)
    return y_true, y_prob, (np.datetime64("2026-01-01") + place).astype(str)


PICTURES: dict[str, Callable[[str], Any]] = {
    "cumulative": lambda theme: calibrant.CumulativeDisplay.from_predictions(*tumours(), theme=theme),
    "reliability": lambda theme: calibrant.ReliabilityDisplay.from_predictions(*tumours(), theme=theme),
    "reliability_confidence": lambda theme: calibrant.ReliabilityDisplay.from_predictions(
        *tumours(), band="confidence", difference=True, theme=theme
    ),
    "risk_gap": lambda theme: calibrant.displays.RiskGapDisplay.from_predictions(*tumours(), theme=theme),
    "decision_curve": lambda theme: calibrant.displays.DecisionCurveDisplay.from_predictions(
        *tumours(), thresholds=np.arange(1, 100) / 200, confidence_level=0.95, band=True, theme=theme
    ),
    "decision_curve_models": lambda theme: calibrant.displays.DecisionCurveDisplay.from_predictions(
        *digits(), thresholds=np.arange(1, 91) / 100, confidence_level=0.95, theme=theme
    ),
    "decomposition": lambda theme: calibrant.displays.DecompositionDisplay.from_predictions(
        *digits(), confidence_level=0.95, theme=theme
    ),
    "attributes": lambda theme: calibrant.displays.AttributesDisplay.from_predictions(
        digits()[0], digits()[1]["random forest"], theme=theme
    ),
    "spectrum": lambda theme: calibrant.displays.SpectrumDisplay.from_predictions(*tumours(), theme=theme),
    "monitor": lambda theme: calibrant.MonitorDisplay.from_predictions(*days(), max_error=0.1, theme=theme),
    "certificate": lambda theme: calibrant.CertificateDisplay.from_predictions(*digits(), max_error=0.048, theme=theme),
}
"""What draws each picture, in a given theme."""


def draw(name: str, theme: str) -> bytes:
    """Return a picture as a PNG file of 256 colours: fewer would blend the colours of thin lines into each other."""
    drawn, small = io.BytesIO(), io.BytesIO()
    PICTURES[name](theme).figure_.savefig(drawn, format="png", dpi=110)
    Image.open(drawn).convert("RGB").quantize(256).save(small, format="png", optimize=True)
    return small.getvalue()


def main() -> None:
    """Write every picture, light and dark."""
    for name in PICTURES:
        for theme in ("light", "dark"):
            (HERE / f"{name}_{theme}.png").write_bytes(draw(name, theme))


if __name__ == "__main__":
    main()

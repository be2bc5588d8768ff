"""
What is my Brier score made of?
===============================

A score mixes what recalibration could mend with what the forecasts cannot tell apart. Taken apart, it says whether to
repair the model or to look for better features.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant

# %%
# Is a handwritten digit 5 or more? Two models learn from every second one.
X, digit = load_digits(return_X_y=True)
large = digit >= 5
models = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    "random forest": RandomForestClassifier(50, random_state=0),
}
forecasts = {name: model.fit(X[::2], large[::2]).predict_proba(X[1::2])[:, 1] for name, model in models.items()}

# %%
# The forest tells digits apart far better, and half of its Brier score is miscalibration: it shies away from 0 and 1.
for name, p in forecasts.items():
    print(f"{name}: {calibrant.decisions.score_decomposition(large[1::2], p).finding()}")

# %%
# Miscalibration is what a monotone repair could take away on these rows. :doc:`How to decide </how-to/decide>` has
# other scores, and your own mix of thresholds.
figure, ax = plt.subplots(figsize=(6.4, 5.2), layout="constrained")
calibrant.displays.DecompositionDisplay.from_predictions(
    large[1::2], forecasts, confidence_level=0.95, n_resamples=200, ax=ax
)
plt.show()

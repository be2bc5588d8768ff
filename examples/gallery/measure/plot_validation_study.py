"""
A validation study in one call
==============================

A model is to be used on later patients. Clinical readers expect calibration in the large, O/E, slope, a flexible curve,
ICI, discrimination and net benefit, each with limits.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant

# %%
# Four features of the first 280 breast masses make a model; the later 289 validate it.
data = load_breast_cancer(as_frame=True)
X = data.data[["mean texture", "mean smoothness", "mean symmetry", "mean fractal dimension"]]
y = (data.target == 0).astype(int)  # malignant
early, late = slice(0, 280), slice(280, None)
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[early], y[early])
p = model.predict_proba(X[late])[:, 1]

# %%
# The model ranks well and its slope is right, but malignant masses are rarer among later patients than it expects.
study = calibrant.validate(y[late], p, n_resamples=100)
print(study)

# %%
# The same curve as a picture: most of it lies below the diagonal. Moving the intercept would do. :doc:`A
# validation study </how-to/validate>` says which limits these are, and writes the page for a manuscript.
figure, ax = plt.subplots(figsize=(6.4, 6.6), layout="constrained")
calibrant.ReliabilityDisplay.from_predictions(y[late], p, smoother="loess", n_resamples=100, ax=ax)
plt.show()

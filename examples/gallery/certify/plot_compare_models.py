"""
Which of two models is better?
==============================

Two models forecast the same people. Both find the same cases hard, and limits of the *difference*, row by row, know
that.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from statsmodels.datasets import fair

import calibrant

# %%
# Half of the women of the survey of Fair (1978) fit three models, the other half judge them.
survey = fair.load_pandas().data
y = (survey.pop("affairs") > 0).to_numpy()
X = survey.to_numpy()
fit = np.random.default_rng(0).random(y.size) < 0.5
models = {
    "logistic": LogisticRegression(max_iter=1000),
    "naive Bayes": GaussianNB(),
    "boosting": HistGradientBoostingClassifier(max_iter=100, random_state=0),
}
forecasts = {name: model.fit(X[fit], y[fit]).predict_proba(X[~fit])[:, 1] for name, model in models.items()}

# %%
# The Brier score counts both calibration and how well cases are told apart.
found = calibrant.compare_models(y[~fit], forecasts, measure="brier")
print(found)

# %%
# Limits that stay on one side of 0 tell models apart, and all of them hold together. :doc:`How to compare models
# </how-to/compare>` has the other things to compare: calibration errors, risk gaps, net benefit.
figure, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
calibrant.displays.DifferencesDisplay.from_results(found).plot(ax=ax)
plt.show()

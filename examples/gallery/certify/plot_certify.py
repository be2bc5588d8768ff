"""
Is my classifier calibrated?
============================

When a model says 80%, does it happen 80% of the time? A certificate answers for cases to come: certified, refuted or
undecided, with a stated confidence.
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.datasets import anes96

import calibrant

# %%
# Who votes for Dole rather than Clinton? The American national election study of 1996, which ships with statsmodels,
# asked 944 people. A logistic regression of age, education, income and how people place themselves from left to right
# learns from 300 of them. Neither it nor anybody who tuned it has seen the others.
people = anes96.load_pandas().data.sample(frac=1, random_state=0)
X, y = people[["age", "educ", "income", "selfLR"]], people["vote"] == 1
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:300], y[:300])
y, p = y[300:], model.predict_proba(X[300:])[:, 1]

# %%
# The limit is fixed before looking: on no interval of forecasts may votes and forecasts differ by more than 10 per 100
# people of all.
certificate = calibrant.certify(y, p, max_error=0.1)
print(certificate)

# %%
# The reliability diagram shows the event rate at each forecast, where calibrated forecasts would lie, and how the
# forecasts are spread. :doc:`How to certify </how-to/certify>` says what is guaranteed, and under which assumptions.
figure, ax = plt.subplots(figsize=(6.4, 6.6), layout="constrained")
calibrant.ReliabilityDisplay.from_predictions(y, p, ax=ax)
plt.show()

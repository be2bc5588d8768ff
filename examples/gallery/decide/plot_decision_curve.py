"""
Is acting on the forecasts worth it?
====================================

A decision curve compares a model with treating everybody and treating nobody, at every threshold. With limits it also
says where the rows cannot tell.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.datasets import fair

import calibrant

# %%
# Somebody offers counselling to couples, and it pays only where an affair is likely enough. A logistic regression
# learns from half of the women in the survey of Fair (1978).
survey = fair.load_pandas().data
y = (survey.pop("affairs") > 0).to_numpy()
fit = np.random.default_rng(0).random(y.size) < 0.5
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(survey[fit], y[fit])
y, p = y[~fit], model.predict_proba(survey[~fit])[:, 1]

# %%
# At a threshold of 0.3, an offer in vain costs 3/7 of what a missed couple costs.
print(calibrant.net_benefit(y, p, threshold=0.3, confidence_level=0.95))

# %%
# Over all thresholds, with a band that holds at all of them together. Up to a threshold of about 0.14 nothing shows
# that the model is better than an offer to everybody. :doc:`How to decide </how-to/decide>` says how often such limits
# hold.
figure, ax = plt.subplots(figsize=(6.4, 5.6), layout="constrained")
calibrant.displays.DecisionCurveDisplay.from_predictions(
    y, p, thresholds=np.arange(2, 81) / 100, confidence_level=0.95, band=True, ax=ax
)
plt.show()

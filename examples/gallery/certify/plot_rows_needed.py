"""
How many rows does it take?
===========================

Before rows are collected, the planner says how many certify a limit. Too few rows are not wrong, they are undecided.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.datasets import randhie

import calibrant

# %%
# A logistic regression forecasts who sees a doctor in a year (the RAND health insurance experiment). A small pilot
# knows what forecasts look like; no outcomes are needed.
# Some rows are years of one person, and the table does not say which: here they count as independent. Where you know
# it, pass ``cluster=`` (:doc:`Rows that are not independent </how-to/clusters>`).
people = randhie.load_pandas().data.sample(frac=1, random_state=0)
y = (people.pop("mdvis") > 0).to_numpy()
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(people[:6000], y[:6000])
pilot = model.predict_proba(people[6000:6500])[:, 1]
print(calibrant.rows_needed(0.05, y_prob=pilot))

# %%
# Whoever acts on the forecasts asks for less, and needs fewer rows: what does re-drawing the line between acting and
# not acting save?
print(calibrant.rows_needed(0.05, y_prob=pilot, measure="risk_gap"))

# %%
# What samples of several sizes would have said, each of rows of its own, so that each is one look:
named, start = {}, 6500
for rows in (200, 500, 1000, 2000, 5000):
    part = slice(start, start + rows)
    forecasts = model.predict_proba(people[part])[:, 1]
    named[f"{rows:,} rows"] = calibrant.certify(y[part], forecasts, max_error=0.05)
    start += rows
print(np.array([each.verdict for each in named.values()]))

# %%
# Limits narrow as one over the square root of the rows. :doc:`How to certify </how-to/certify>` compares methods.
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
calibrant.CertificateDisplay.from_certificates(named, ax=ax)
plt.show()

"""
Watch a stream, with an alarm
=============================

A verdict is for one look. A monitor may be read every week: its limits hold at all times together, and its alarm has a
known rate of false ones.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.datasets import randhie

import calibrant

# %%
# An insurer forecasts who sees a doctor more than twice in a year, from the terms of the contract alone; the data are
# those of the RAND health insurance experiment. A third of the people with few chronic diseases fits the model.
# Some rows are years of one person, and the table does not say which: here they count as independent. Where you know
# it, pass ``cluster=`` (:doc:`Rows that are not independent </how-to/clusters>`).
people = randhie.load_pandas().data
y = (people["mdvis"] > 2).to_numpy()
terms = people[["lncoins", "idp", "lpi", "fmde"]]
healthy = (people["disea"] <= 20).to_numpy()  # an index of chronic diseases
rng = np.random.default_rng(0)
learned = healthy & (rng.random(y.size) < 1 / 3)
p = make_pipeline(StandardScaler(), LogisticRegression()).fit(terms[learned], y[learned]).predict_proba(terms)[:, 1]

# %%
# Rows come in week by week, drawn from those that the model has not seen. From week 30 on, the plan is open to
# everybody, and a third of those who join have many chronic diseases. The contract does not tell.
well, others = np.flatnonzero(healthy & ~learned), np.flatnonzero(~healthy)
monitor = calibrant.Monitor(max_error=0.1, unit="row")
for week in range(1, 53):
    joined = 0 if week < 30 else 50
    rows = np.concatenate([rng.choice(well, 150 - joined), rng.choice(others, joined)])
    monitor.update(y[rows], p[rows], period=week)
print(monitor.read())

# %%
# Above, the limits of the error so far; below, the evidence that something is off, and what an alarm takes. :doc:`How
# to watch </how-to/watch>` says what an alarm promises, and has recipes for schedules.
figure, ax = plt.subplots(figsize=(6.4, 7.0), layout="constrained")
calibrant.MonitorDisplay.from_monitor(monitor, ax=ax)
plt.show()

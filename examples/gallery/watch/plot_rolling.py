"""
After an alarm: repair again and again
======================================

A repair that is fitted once is good for cases like those it was fitted to. A rolling repair is fitted anew for each
week, to the last weeks only, and each week is judged by the map of earlier ones.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.datasets import randhie

import calibrant

# %%
# The insurer of :ref:`the previous example <sphx_glr_gallery_watch_plot_alarm.py>`, with more people: from week 15 on
# half of those who join have many chronic diseases, which the contract does not tell.
# Some rows are years of one person, and the table does not say which: here they count as independent. Where you know
# it, pass ``cluster=`` (:doc:`Rows that are not independent </how-to/clusters>`).
people = randhie.load_pandas().data
y = (people["mdvis"] > 2).to_numpy()
terms = people[["lncoins", "idp", "lpi", "fmde"]]
healthy = (people["disea"] <= 20).to_numpy()  # an index of chronic diseases
rng = np.random.default_rng(0)
learned = healthy & (rng.random(y.size) < 1 / 3)
p = make_pipeline(StandardScaler(), LogisticRegression()).fit(terms[learned], y[learned]).predict_proba(terms)[:, 1]
well, others = np.flatnonzero(healthy & ~learned), np.flatnonzero(~healthy)

# %%
# ``update`` takes a week's forecasts as they are with their outcomes, and returns what was issued for them.
rolling = calibrant.RollingRecalibrator("isotonic", window=6, max_error=0.05, unit="row")
weeks, outcomes, as_they_are, issued = [], [], [], []
for week in range(1, 41):
    joined = 0 if week < 15 else 200
    rows = np.concatenate([rng.choice(well, 400 - joined), rng.choice(others, joined)])
    issued.append(rolling.update(y[rows], p[rows], period=week))
    weeks.append(np.full(rows.size, week))
    outcomes.append(y[rows])
    as_they_are.append(p[rows])
print(rolling.read())

# %%
# The weeks after the change, as they were forecast and as they were issued. :doc:`After an alarm </how-to/rolling>`
# says how long a window should be.
changed = np.concatenate(weeks) >= 15
figure, axes = plt.subplots(1, 2, figsize=(10.0, 5.0), sharex=True, sharey=True, layout="constrained")
for ax, forecasts, name in zip(axes, (as_they_are, issued), ("as they are", "repaired every week"), strict=True):
    y_true, y_prob = np.concatenate(outcomes)[changed], np.concatenate(forecasts)[changed]
    calibrant.CumulativeDisplay.from_predictions(y_true, y_prob, legend=False, ax=ax)
    ax.set_title(f"{name}: Cutoff error {calibrant.cutoff_calibration_error(y_true, y_prob):.4f}", loc="left")
axes[1].set_ylabel("")
plt.show()

"""
Repair with a guarantee
=======================

Isotonic regression learns how to change forecasts, and comes with a bound on what is left: known before the data, and
with no rows kept aside.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.naive_bayes import GaussianNB
from statsmodels.datasets import randhie

import calibrant

# %%
# Who sees a doctor in a year? Three random parts of the RAND health insurance experiment: one fits naive Bayes, one
# repairs it, one is new to both.
# Some rows are years of one person, and the table does not say which: here they count as independent. Where you know
# it, pass ``cluster=`` (:doc:`Rows that are not independent </how-to/clusters>`).
people = randhie.load_pandas().data
y = (people.pop("mdvis") > 0).to_numpy()
part = np.random.default_rng(0).integers(0, 3, y.size)
model = GaussianNB().fit(people[part == 0], y[part == 0])
p = model.predict_proba(people)[:, 1]
repair = calibrant.IsotonicRecalibrator().fit(p[part == 1], y[part == 1])
print(repair.guarantee_)

# %%
# The rows that are new to both can say more, since they judge one map and not all monotone ones:
y_new, before, after = y[part == 2], p[part == 2], repair.predict(p[part == 2])
print(calibrant.certify(y_new, after, max_error=0.05))

# %%
# New rows before and after. The curve of the repaired forecasts stays within what chance shows, the shaded strip.
# :doc:`How to repair forecasts </how-to/repair>` has the other repairs, clusters, JSON and SQL.
figure, axes = plt.subplots(1, 2, figsize=(10.0, 5.0), sharex=True, sharey=True, layout="constrained")
for ax, forecasts, when in zip(axes, (before, after), ("before", "after"), strict=True):
    calibrant.CumulativeDisplay.from_predictions(y_new, forecasts, legend=False, ax=ax)
    error = calibrant.cutoff_calibration_error(y_new, forecasts)
    ax.set_title(f"{when}: Cutoff error {error:.4f}", loc="left")
axes[1].set_ylabel("")
plt.show()

"""
How to choose max_error
=======================

An error of 0.05 is 5 per 100 of *all* rows. Where events are rare that is a lot, and a limit that passes may say next
to nothing.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.naive_bayes import GaussianNB
from statsmodels.datasets import randhie

import calibrant

# %%
# Who sees a doctor more than fifteen times in a year? About one in fifty of the RAND health insurance experiment. Naive
# Bayes learns from a third of the rows.
# Some rows are years of one person, and the table does not say which: here they count as independent. Where you know
# it, pass ``cluster=`` (:doc:`Rows that are not independent </how-to/clusters>`).
people = randhie.load_pandas().data
y = (people.pop("mdvis") > 15).to_numpy()
learned = np.random.default_rng(0).random(y.size) < 1 / 3
model = GaussianNB().fit(people[learned], y[learned])
y, p = y[~learned], model.predict_proba(people[~learned])[:, 1]
print(f"{y.mean():.1%} are events; the mean forecast is {p.mean():.1%}")

# %%
# A limit of 0.07 passes, and the caution says what it is worth.
careless = calibrant.certify(y, p, max_error=0.07)
print(careless)

# %%
# As a share of the events, the same rows say what is wrong: forecasts promise far more events than there are.
asked_right = calibrant.certify(y, p, max_error=0.25, relative_to="events")
print(asked_right)

# %%
# The curve of events minus forecasts falls from 0.02 up: a sixth of the rows, 22 points too high. :doc:`How to choose
# max_error </how-to/choose-max-error>` has three ways to a limit that fits: from points and cases, from events, and
# from decisions.
figure, ax = plt.subplots(figsize=(6.4, 5.4), layout="constrained")
calibrant.CumulativeDisplay.from_predictions(y, p, ax=ax)
plt.show()

"""
Where is my model wrong?
========================

One number says that something is wrong; the worst interval says where. The data are 20,190 person-years of the RAND
health insurance experiment, which ship with statsmodels, and the question is who sees a doctor at all in a year.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.naive_bayes import GaussianNB
from statsmodels.datasets import randhie

import calibrant

# %%
# Naive Bayes learns from a third of the rows. The others judge it.
# Some rows are years of one person, and the table does not say which: here they count as independent. Where you know
# it, pass ``cluster=`` (:doc:`Rows that are not independent </how-to/clusters>`).
people = randhie.load_pandas().data
y = (people.pop("mdvis") > 0).to_numpy()
learned = np.random.default_rng(0).random(y.size) < 1 / 3
model = GaussianNB().fit(people[learned], y[learned])
y, p = y[~learned], model.predict_proba(people[~learned])[:, 1]

# %%
# On average the model is a little too low. That hides more than half of what is wrong: too low in the middle and too
# high at the top cancel.
print(f"event rate minus mean forecast: {calibrant.measures.calibration_in_the_large(y, p):+.4f}")
print(calibrant.worst_interval(y, p))

# %%
# The curve adds up events minus forecasts from the smallest forecast to the largest. Where it rises, forecasts are too
# low; where it falls, too high. Its highest and its lowest point are the ends of the worst interval, and their distance
# is the Cutoff calibration error. Calibrated forecasts would stay within a strip as high as the shaded one. :doc:`How
# to measure </how-to/measure>` has the other numbers.
figure, ax = plt.subplots(figsize=(6.4, 5.2), layout="constrained")
calibrant.CumulativeDisplay.from_predictions(y, p, ax=ax)
plt.show()

"""
Outcomes that are censored
==========================

Will this patient die within a year? Of somebody who was last seen after five months nobody knows. Leaving such rows out
biases every number; :func:`calibrant.horizon` gives weights to the others instead.
"""

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import heart
from statsmodels.duration.hazard_regression import PHReg

import calibrant

# %%
# Survival after 69 heart transplants in Stanford, from statsmodels. A proportional hazards model of age learns from
# every third patient and forecasts death within a year for the others.
patients = heart.load_pandas().data
days, died, age = (patients[name].to_numpy() for name in ("survival", "censors", "age"))
learned = np.arange(days.size) % 3 == 0
model = PHReg(days[learned], age[learned, None], status=died[learned]).fit()
times, hazard, _ = model.baseline_cumulative_hazard[0]
risk = -np.expm1(-hazard[times <= 365].max() * np.exp(model.params[0] * age))

# %%
# Who had the event, who is known to be free of it, and who was lost from sight:
rows = calibrant.horizon(days[~learned], died[~learned], risk[~learned], at=365)
print(rows)
print(calibrant.measures.observed_expected_ratio(rows, confidence_level=0.95))

# %%
# The rows go wherever outcomes go, into curves too. Forty-six patients say little, and the band says so. :doc:`Outcomes
# that are censored </how-to/censored>` has competing risks, and what holds only approximately.
figure, ax = plt.subplots(figsize=(6.4, 6.6), layout="constrained")
calibrant.ReliabilityDisplay.from_predictions(rows, smoother="splines", n_resamples=200, ax=ax)
plt.show()

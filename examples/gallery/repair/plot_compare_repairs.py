"""
Which repair?
=============

Platt, beta, temperature, isotonic: each suits another mistake. ``compare_recalibrators`` judges all of them on rows
that they have not seen, and recommends one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.naive_bayes import GaussianNB
from statsmodels.datasets import randhie

import calibrant

# %%
# Naive Bayes forecasts who sees a doctor in a year, from the RAND health insurance experiment.
# Some rows are years of one person, and the table does not say which: here they count as independent. Where you know
# it, pass ``cluster=`` (:doc:`Rows that are not independent </how-to/clusters>`).
people = randhie.load_pandas().data
y = (people.pop("mdvis") > 0).to_numpy()
part = np.random.default_rng(0).integers(0, 3, y.size)
p = GaussianNB().fit(people[part == 0], y[part == 0]).predict_proba(people)[:, 1]
fit, new = part == 1, part == 2
print(calibrant.compare_recalibrators(p[fit], y[fit], rng=0))

# %%
# On new rows, four of them with limits that hold together. Temperature scaling cannot shift forecasts, and makes these
# worse. :doc:`How to repair forecasts </how-to/repair>` says which repair suits which mistake.
repairs = {
    "isotonic": calibrant.IsotonicRecalibrator(),
    "beta": calibrant.BetaRecalibrator(),
    "Platt": calibrant.PlattRecalibrator(),
    "temperature": calibrant.TemperatureRecalibrator(),
}
repaired = {name: repair.fit(p[fit], y[fit]).predict(p[new]) for name, repair in repairs.items()}
figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
calibrant.CertificateDisplay.from_predictions(y[new], {"as is": p[new], **repaired}, max_error=0.05, ax=ax)
plt.show()

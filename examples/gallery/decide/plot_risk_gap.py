"""
What does a decision lose?
==========================

Act when the forecast passes a threshold. If forecasts are wrong, another line between acting and not acting would do
better: by how much, is the risk gap.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB

import calibrant

# %%
# The event is a malignant tumour, and to act is to send the patient to a biopsy. Naive Bayes on five measurements
# learns from every other patient.
X, benign = load_breast_cancer(return_X_y=True)
malignant = benign == 0
model = GaussianNB().fit(X[::2, :5], malignant[::2])
y, p = malignant[1::2], model.predict_proba(X[1::2, :5])[:, 1]

# %%
# Say that a cancer missed is nine times as bad as a needless biopsy. On these rows:
print(calibrant.decision_risk(y, p, cost_false_positive=1, cost_false_negative=9))
print(calibrant.best_threshold(y, p, cost_false_positive=1, cost_false_negative=9))

# %%
# And for patients to come, whatever their threshold:
print(calibrant.confidence_interval(y, p, measure="risk_gap", alternative="less"))

# %%
# The gap at every threshold, and what is certified for all of them. The model is too sure of itself near 0, so low
# thresholds lose most. :doc:`How to decide </how-to/decide>` explains costs, guarantees and several actions.
figure, ax = plt.subplots(figsize=(6.4, 5.4), layout="constrained")
calibrant.displays.RiskGapDisplay.from_predictions(y, p, ax=ax)
plt.show()

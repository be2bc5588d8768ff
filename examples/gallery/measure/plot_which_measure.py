"""
Which measure?
==============

ECE, Cutoff, smooth error, mean bias: they differ in how finely they look. One picture has them all, from mean bias on
the left to the ECE on the right.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB

import calibrant

# %%
# Naive Bayes on five measurements of breast masses; it learns from every other patient, and the rest judge it.
X, benign = load_breast_cancer(return_X_y=True)
malignant = benign == 0
model = GaussianNB().fit(X[::2, :5], malignant[::2])
y, p = malignant[1::2], model.predict_proba(X[1::2, :5])[:, 1]
found = calibrant.measure(y, p, spectrum=True)
print(found)

# %%
# A calibration error is the largest mean of weight times (outcome minus forecast) over a class of weights. The wider
# the class, the larger the error, and the more of it is noise: here nearly every forecast is different, and the right
# end compares each with a single outcome. Cutoff can be estimated from rows and bounds what decisions lose, which is
# why it is the default. :doc:`How to measure </how-to/measure>` has a table of questions and measures.
figure, ax = plt.subplots(figsize=(6.4, 5.0), layout="constrained")
calibrant.displays.SpectrumDisplay.from_predictions(y, p, ax=ax)
plt.show()

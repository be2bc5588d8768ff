"""
Several classes
===============

With ten classes there are several questions: is the top label right as often as its probability says, and does every
class come as often as forecast? The answers have little to do with each other.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

import calibrant

# %%
# Naive Bayes reads handwritten digits, and learns from every second one.
X, digit = load_digits(return_X_y=True)
learned = np.arange(digit.size) % 2 == 0
model = GaussianNB(var_smoothing=0.1).fit(X[learned], digit[learned])
y, p = digit[~learned], model.predict_proba(X[~learned])

# %%
# It is right on 91% of the digits, and promises more: the confidence in the top label is refuted.
confidence = calibrant.certify(y, p, max_error=0.02, classes=model.classes_)
print(confidence)

# %%
# Class by class the errors are small, which says nothing of the top label.
classwise = calibrant.certify(y, p, max_error=0.05, questions="classwise", classes=model.classes_)
print(classwise)

# %%
# All ten limits hold together. :doc:`Several classes </how-to/classes>` says what each question promises.
figure, ax = plt.subplots(figsize=(6.4, 5.6), layout="constrained")
calibrant.CertificateDisplay.from_certificates(classwise, ax=ax)
plt.show()

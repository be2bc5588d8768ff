"""
A classifier that certifies itself
==================================

``CertifiedClassifier`` wraps any scikit-learn model or pipeline. It keeps rows aside, certifies the model on them, and
falls back to the mean outcome where that fails.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.datasets import fair

import calibrant

# %%
# The survey of Fair (1978), from statsmodels: who had an affair? Preprocessing and model go inside, so that rows that
# judge have had no say in either.
survey = fair.load_pandas().data
y = (survey.pop("affairs") > 0).to_numpy().astype(int)
fit = np.random.default_rng(0).random(y.size) < 2 / 3
pipelines = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    "naive Bayes": make_pipeline(StandardScaler(), GaussianNB()),
}
models = {
    name: calibrant.CertifiedClassifier(pipeline, max_error=0.06, random_state=0).fit(survey[fit], y[fit])
    for name, pipeline in pipelines.items()
}
for name, model in models.items():
    print(f"{name}: {'fell back to the mean' if model.fell_back_ else 'kept'}. {model.certificate_.finding()}")

# %%
# The two certificates, each from the rows that its classifier kept aside. Undecided is not certified. Behind
# ``predict_proba`` the second one now forecasts the mean outcome: calibrated, and of no use to tell people apart.
# Repair comes first there: :doc:`How to repair forecasts </how-to/repair>`.
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
calibrant.CertificateDisplay.from_certificates({name: model.certificate_ for name, model in models.items()}, ax=ax)
plt.show()

"""
For whom is it wrong?
=====================

Forecasts that are right for all can be wrong for some, where errors of two groups cancel. ``worst_group`` looks at
every half-line and label of the features that it is given, and its limits hold for all of them at once.
"""

import matplotlib.pyplot as plt
import statsmodels.api as sm
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant

# %%
# 6,366 married women told a magazine in 1974 about their marriages, and whether they had affairs (Fair 1978, from
# statsmodels). The model knows age, years of marriage, education and religion, and not how good the marriage is.
survey = sm.datasets.fair.load_pandas().data.sample(frac=1, random_state=0)
y = survey.pop("affairs") > 0
known = ["age", "yrs_married", "educ", "religious"]
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(survey[known][2000:], y[2000:])
X, y = survey[:2000], y[:2000]
p = model.predict_proba(X[known])[:, 1]

# %%
# All women together are forecast well; the worst group is found by looking at all of them.
print(calibrant.certify(y, p, max_error=0.05).finding())
print(calibrant.worst_group(y, p, X, max_error=0.025))

# %%
# Groups that were fixed beforehand have certificates of their own, here within their own rows. :doc:`For whom is it
# wrong? </how-to/groups>` says which scale means what.
happy = X["rate_marriage"].map(lambda rating: "happy" if rating >= 4 else "less happy")
groups = calibrant.certify(y, p, max_error=0.1, by=happy)
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
calibrant.CertificateDisplay.from_certificates(groups, ax=ax)
plt.show()

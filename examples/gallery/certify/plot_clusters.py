"""
Rows that belong together
=========================

Students of one school district share teachers, books and neighbours. Counted as independent they promise far too much;
with ``cluster=`` districts are what counts.
"""

import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm

import calibrant

# %%
# 303 school districts in California, from statsmodels: how many students are above the national median in mathematics.
# A regression learns from every third district and forecasts the 189,747 students of the others.
districts = sm.datasets.star98.load_pandas().data
X = sm.add_constant(districts[["LOWINC", "PERASIAN", "PERBLACK", "PERHISP", "PTRATIO"]])
learned = np.arange(len(districts)) % 3 == 0
counts = districts[["NABOVE", "NBELOW"]].astype(int)
model = sm.GLM(counts[learned], X[learned], family=sm.families.Binomial()).fit()
above, below = counts[~learned].to_numpy().T
district = np.concatenate([np.repeat(np.arange(above.size), above), np.repeat(np.arange(below.size), below)])
y = np.repeat([1, 0], [above.sum(), below.sum()])
p = model.predict(X[~learned]).to_numpy()[district]

# %%
# Do students of one district resemble each other more than forecasts explain?
print(calibrant.check_independence(y, p, district))

# %%
# Counted once each, 202 districts still certify 0.05, with a limit nearly twice as large:
certificate = calibrant.certify(y, p, max_error=0.05, cluster=district, cluster_target="clusters")
print(certificate)

# %%
# Three ways to count the same rows. One district holds a fifth of all students, so that for districts of these sizes
# next to nothing is known. :doc:`Rows that are not independent </how-to/clusters>` says which question is which.
named = {
    "students, independent": calibrant.certify(y, p, max_error=0.05),
    "each district once": certificate,
    "districts of these sizes": calibrant.certify(y, p, max_error=0.05, cluster=district),
}
figure, ax = plt.subplots(figsize=(8.0, 4.4), layout="constrained")
calibrant.CertificateDisplay.from_certificates(named, ax=ax)
plt.show()

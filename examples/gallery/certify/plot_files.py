"""
Rows that stay in files
=======================

``scan`` leaves rows where they are, in Parquet or CSV files, in DuckDB or on Spark, and answers as for arrays. What is
held in memory does not grow with the number of rows.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.datasets import randhie

import calibrant

# %%
# Forecasts of who sees a doctor in a year, written to two Parquet files as two jobs would do.
# Some rows are years of one person, and the table does not say which: here they count as independent. Where you know
# it, pass ``cluster=`` (:doc:`Rows that are not independent </how-to/clusters>`).
people = randhie.load_pandas().data.sample(frac=1, random_state=0)
y = (people.pop("mdvis") > 0).to_numpy()
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(people[:6000], y[:6000])
table = people[6000:].assign(saw_doctor=y[6000:], forecast=model.predict_proba(people[6000:])[:, 1])
table["health"] = np.select(
    [table["hlthp"] == 1, table["hlthf"] == 1, table["hlthg"] == 1], ["poor", "fair", "good"], "excellent"
)
folder = tempfile.TemporaryDirectory()
table[:7000].to_parquet(Path(folder.name) / "first.parquet")
table[7000:].to_parquet(Path(folder.name) / "second.parquet")

# %%
# Name the columns, and pass the scan in place of arrays.
pattern = Path(folder.name) / "*.parquet"
with calibrant.scan(pattern, y_true="saw_doctor", y_prob="forecast") as rows:
    print(calibrant.certify(rows, max_error=0.05))
    print(f"{rows.scans} scans, {rows.rows_fetched:,} of {len(table):,} rows fetched")

# %%
# A column of groups is served by the same scans. The health that people report is in the model, and yet those in poor
# health are too few to tell. :doc:`More rows than memory </how-to/scale>` has the cost at 100 million rows.
with calibrant.scan(pattern, y_true="saw_doctor", y_prob="forecast", by="health") as groups:
    certificates = calibrant.certify(groups, max_error=0.1)
folder.cleanup()
figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
calibrant.CertificateDisplay.from_certificates(certificates, ax=ax)
plt.show()

"""
Forecasts of an amount
======================

The outcome is a number and the forecast a distribution, here an ensemble of fifty values. Two questions can be asked:
does it cover as often as it says (PIT values), and is "at most t" right for every threshold t?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import calibrant
from calibrant.displays.palette import PALETTES

# %%
# A linear regression is fitted to 200 diabetes patients; quantiles of its past errors, added to a new prediction, make
# an ensemble. The other 242 patients judge it.
data = load_diabetes()
order = np.random.default_rng(0).permutation(data.target.size)
past, new = order[:200], order[200:]
x = np.column_stack([np.ones(data.target.size), data.data])
predicted = x @ np.linalg.lstsq(x[past], data.target[past], rcond=None)[0]
errors = np.quantile(data.target[past] - predicted[past], (np.arange(50) + 0.5) / 50)
outcome, ensemble = data.target[new], predicted[new, None] + errors

# %%
# At every threshold at once, the worst one is named:
found = calibrant.threshold_calibration_error(outcome, ensemble=ensemble)
print(found)

# %%
# Somebody who trusts the regression too much might make the ensemble four times narrower. PIT values tell at once: most
# outcomes then lie outside of what was forecast.
narrow = predicted[new, None] + errors / 4
pit = {"as it is": ensemble, "four times narrower": narrow}
covered = {name: calibrant.pit_calibration(outcome, ensemble=each, max_error=0.25) for name, each in pit.items()}
for name, each in covered.items():
    print(f"{name}: {each.finding()}")

# %%
# Left, shares of PIT values in tenths of [0, 1]: even ones are right. Right, the worst threshold as a yes/no forecast.
# :doc:`Forecasts of an amount </how-to/distributions>` says why neither question answers the other.
figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.8), layout="constrained")
tenths = np.arange(10) / 10
colours = PALETTES["light"]
left.bar(tenths + 0.005, covered["as it is"].shares, 0.045, align="edge", color=colours.curve, label="as it is")
left.bar(
    tenths + 0.05,
    covered["four times narrower"].shares,
    0.045,
    align="edge",
    color=colours.highlight,
    label="four times narrower",
)
left.axhline(0.1, color="black", linewidth=0.8, linestyle="--")
left.set(xlabel="PIT value", ylabel="share of outcomes")
left.set_title("Do they cover as they say?", loc="left")
left.legend(frameon=False)
below, chance = outcome <= found.threshold, (ensemble <= found.threshold).mean(axis=1)
calibrant.ReliabilityDisplay.from_predictions(below, chance, histogram=False, legend=False, ax=right)
right.set_title(f"At most {found.threshold:.0f}: how often it happens, at each forecast", loc="left")
plt.show()

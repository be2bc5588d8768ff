"""
The paper's simulation in one picture
=====================================

Which measure goes with bad decisions? Rossellini, Soloff, Barber, Ren and Willett (2025) fit a logistic curve to a
truth that is more and more a parabola, and compare three calibration errors with what acting on the fit loses.
"""

import matplotlib.pyplot as plt

from calibrant.experiments import Settings, run

# %%
# Every experiment of the paper is one call away, says what was stated and what was measured, and whether they agree.
# Forty runs instead of a hundred are enough for the picture.
report = run("simulation", Settings(runs=40))
for statement in report.statements:
    print(statement)

# %%
# Points that rise to the right: the measure goes with bad decisions. Cutoff and ECE do; the smooth error, which stands
# for the distance from calibration, does not. :doc:`The paper, reproduced </reproduce>` has all the others.
figure = plt.figure(figsize=report.size)
report.draw(report, figure)
figure.set_layout_engine("constrained", rect=(0.0, 0.08, 1.0, 0.84))  # between the headline and the legend
plt.show()

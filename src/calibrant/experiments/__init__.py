"""The paper's figures, examples and theorems, checked one by one: what is stated, what was measured, do they agree?

Each experiment is a module with a function ``run(settings)`` that returns a frozen `Report`. They use nothing but the
public names of calibrant, as any reader could, and draw their figures without touching matplotlib's global state.

>>> from calibrant.experiments import Settings, run
>>> report = run("examples", Settings())
>>> report.holds
True

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from calibrant.experiments.reports import Report, Settings, Statement
from calibrant.experiments.runner import EXPERIMENTS, run, write, write_index

__all__ = ["EXPERIMENTS", "Report", "Settings", "Statement", "run", "write", "write_index"]

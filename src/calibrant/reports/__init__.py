"""The report: one offline page, or Markdown or JSON, that says whether forecasts can be trusted and why.

`summary` computes what is said, `figures` draws the plots, `pages` turns both into text, `calibration_report` is what
a user meets.
"""

from __future__ import annotations

from calibrant.core.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)

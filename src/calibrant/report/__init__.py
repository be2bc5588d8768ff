"""The report: one offline page, or Markdown or JSON, that says whether forecasts can be trusted and why.

`summary` computes what is said, `figures` draws the plots, `pages` turns both into text, `calibration_report` is what
a user meets.
"""

"""Errors and limits as people read them: limits rounded outwards, large shares without digits after the point."""

from __future__ import annotations

import math

from calibrant.core.words import measured, rounded_down, rounded_up, shown

_LARGE = 100.0  # a share from which on digits after the point say nothing


def estimate_said(estimate: float, digits: int = 4) -> str:
    """Write the error of the rows."""
    if math.isinf(estimate):
        return "infinite, since the rows have no events"
    return measured(estimate, digits) if estimate < _LARGE else f"{estimate:,.0f}"


def short_estimate(estimate: float) -> str:
    """Write the error of the rows where there is little room."""
    return "none" if math.isinf(estimate) else estimate_said(estimate)


def lower_said(limit: float, digits: int = 4) -> str:
    """Write a lower limit."""
    return rounded_down(limit, digits) if limit < _LARGE else f"{math.floor(limit):,}"


def upper_said(limit: float, digits: int = 4) -> str:
    """Write an upper limit."""
    if math.isinf(limit):
        return "any number"
    return rounded_up(limit, digits) if limit < _LARGE else f"{math.ceil(limit):,}"


def limit_said(limit: float, relative_to: str) -> str:
    """Write the limit asked about, with what it is a share of."""
    return shown(limit) if relative_to == "rows" else f"{shown(limit)} times the event rate"

"""What goes wrong, and what is worth a warning."""

from __future__ import annotations


class CalibrationWarning(UserWarning):
    """A number was computed as asked, but it may not mean what it seems to mean."""

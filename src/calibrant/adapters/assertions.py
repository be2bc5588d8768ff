"""Assertions for test suites: a model that is not certified fails a test, and the verdict says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Judged(NamedTuple):
    """What an assertion found, and the question that it asked, for whoever keeps records."""

    certificate: Any
    y_true: Any
    y_prob: Any
    options: dict[str, Any]


LISTENERS: list[Callable[[Judged], object]] = []
"""Called with every verdict, whatever it is, before an assertion fails; the pytest plugin is one."""


def assert_certified(y_true: Any, y_prob: Any = None, *, max_error: float, **options: Any) -> Any:
    """Fail unless the calibration error is certified to be at most ``max_error``.

    For tests of models, under pytest, unittest or anything else that counts an AssertionError as a failure. Its message
    is the certificate in words: whether the limit is refuted (the error is above it) or undecided (these rows cannot
    tell, and about how many would), the numbers, and where forecasts are worst.

    The guarantee is that of `certify`, and so is what it rests on: rows that the model has not seen, and one look. A
    suite that runs again on the same rows after every change of the model looks again (docs/how-to/ci-gate.md).

    Parameters
    ----------
    y_true : array-like of shape (n,), or Tally, or Scan
        Outcomes, as in `certify`.
    y_prob : array-like of shape (n,) or (n, K)
        Forecast probabilities.
    max_error : float in [0, 1]
        The largest error you can live with (docs/how-to/choose-max-error.md).
    **options
        Those of `certify`: ``confidence_level``, ``method``, ``measure``, ``by``, ``cluster`` and so on.

    Returns
    -------
    Certificate, or GroupCertificates or QuestionCertificates
        What `certify` returns; certified.

    Raises
    ------
    AssertionError
        If the verdict is "refuted" or "undecided".

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.random(2000)
    >>> y_true = rng.random(2000) < y_prob
    >>> certificate = assert_certified(y_true, y_prob, max_error=0.05)
    >>> assert_certified(y_true, y_prob, max_error=0.02)
    Traceback (most recent call last):
        ...
    AssertionError: Undecided: these rows do not show whether the Cutoff calibration error of the population is above or
    below 0.02...
    """
    __tracebackhide__ = True  # pytest then points at the line of the test
    from calibrant.certificates.verdicts import certify
    from calibrant.core.errors import CalibrantError

    try:
        certificate = certify(y_true, y_prob, max_error=max_error, **options)
    except CalibrantError as error:
        raise error.with_traceback(None) from None  # it says what is wrong with the rows; how it was found is no help
    judged = Judged(certificate, y_true, y_prob, {"max_error": max_error, **options})
    for listener in tuple(LISTENERS):
        listener(judged)
    if not certificate:
        raise AssertionError(str(certificate))
    return certificate

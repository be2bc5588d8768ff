"""What pytest loads where calibrant is installed: it keeps the verdicts of `assert_certified`.

Each verdict becomes a property of its test, which ``--junitxml`` writes down. With ``--calibrant-report=DIR`` each is
also written to a folder, as JSON and as a page, and listed at the end of the run. pytest starts with this module
whatever it tests: nothing heavy is imported before somebody asserts something.
"""

from __future__ import annotations

import contextlib
import re
import zlib
from collections.abc import Generator, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import count
from numbers import Integral
from pathlib import Path
from typing import Any

import pytest

from calibrant.adapters.assertions import LISTENERS, Judged

_PROPERTY = "calibrant"
_FOLDER = "calibrant_report"
_PLACE = pytest.StashKey[Path]()
_LONGEST_NAME = 120

_ON_A_PAGE = {
    "classes",
    "cluster",
    "cluster_target",
    "confidence_level",
    "max_cluster_size",
    "max_error",
    "method",
    "pos_label",
    "relative_to",
    "rng",
    "sample_weight",
    "serial",
}
"""Options of `certify` that the report has, too; for any other the page would answer another question."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer a folder for reports."""
    parser.getgroup("calibrant", "calibration of models").addoption(
        "--calibrant-report",
        metavar="DIR",
        dest=_FOLDER,
        help="write a report of every assert_certified to this folder, and list the verdicts at the end",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a folder that nothing could be written to before any test runs."""
    folder = config.getoption(_FOLDER)
    if folder is None:
        return
    if not folder.strip():
        raise pytest.UsageError(
            "--calibrant-report is an empty text; name the folder of the reports, as in --calibrant-report=reports"
        )
    missing = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if missing:
        raise pytest.UsageError(
            f"--calibrant-report needs {' and '.join(missing)}; install them, as in: pip install 'calibrant[cli]'"
        )
    place = config.stash[_PLACE] = config.invocation_params.dir / folder  # tests may be in another folder meanwhile
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise pytest.UsageError(f"--calibrant-report: cannot make the folder {folder}: {error.strerror}") from error


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Listen to the assertions of one test and of the fixtures that are made for it."""
    troubles: list[str] = []
    keep = partial(_keep, item, count(1), troubles)
    LISTENERS.append(keep)
    try:
        return (yield)
    finally:
        LISTENERS.remove(keep)
        for trouble in troubles:  # said outside of the test, where it cannot be an error in place of a verdict
            with contextlib.suppress(pytest.PytestWarning):
                item.warn(pytest.PytestWarning(trouble))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """List the verdicts, those of other processes included."""
    if config.getoption(_FOLDER) is None:
        return
    kept: dict[str, list[str]] = {}
    for report in (each for reports in terminalreporter.stats.values() for each in reports):
        lines = [value for name, value in getattr(report, "user_properties", ()) if name == _PROPERTY]
        if len(lines) > len(kept.get(report.nodeid, ())):  # the report on a fixture has less than the one on the test
            kept[report.nodeid] = lines
    terminalreporter.section("calibrant")
    for test, lines in kept.items():
        terminalreporter.write_line(test)
        for line in lines:
            terminalreporter.write_line(f"  {line}")
    if not kept:
        terminalreporter.write_line("no test called assert_certified")


def _keep(item: pytest.Item, places: Iterator[int], troubles: list[str], judged: Judged) -> None:
    """Keep a verdict as properties of its test, in words, and in the folder, if there is one."""
    found = judged.certificate
    said = (("Caution", found.cautions), ("Note", getattr(found, "notes", ())))  # groups have notes of their own
    lines = [str(found).splitlines()[0], *(f"{what}: {each}" for what, listed in said for each in listed)]
    folder = item.config.stash.get(_PLACE, None)
    place = next(places)
    if folder is not None:
        name = re.sub(r"[^\w.]+", "-", item.nodeid)[:_LONGEST_NAME].strip("-")
        # Names that look alike once cleaned belong to different tests, which may run in different processes.
        stem = f"{name}-{zlib.crc32(item.nodeid.encode()):08x}{f'-{place}' if place > 1 else ''}"
        try:
            for line in _written(judged, folder / stem, Path(item.config.getoption(_FOLDER)) / stem, item.nodeid):
                lines.append(line)
        except Exception as error:  # whatever it is, the verdict stands
            troubles.append(f"--calibrant-report: {type(error).__name__}: {error}")
            lines.append(f"(not written: {type(error).__name__}: {error})")
    item.user_properties.extend((_PROPERTY, line) for line in lines)


def _written(judged: Judged, path: Path, said: Path, test: str) -> Iterator[str]:
    """Write what was found; return what the user calls the files, or why there is no page."""
    from calibrant.core.files import replacing

    record = f"{path.name}.json"
    with replacing(path.with_name(record)) as unfinished:
        unfinished.write_text(judged.certificate.to_json() + "\n", encoding="utf-8")
    yield str(said.with_name(record))
    unknown = _unknown_to_a_page(judged)
    if unknown:
        yield f"(no page, which does not cover {', '.join(unknown)})"
        return
    from calibrant.reports.calibration_report import CalibrationReport

    options = {name: value for name, value in judged.options.items() if name in _ON_A_PAGE}
    report = CalibrationReport.from_predictions(judged.y_true, judged.y_prob, **options, title=test)
    page = f"{path.name}.html"
    report.write_html(path.with_name(page))
    yield str(said.with_name(page))


def _unknown_to_a_page(judged: Judged) -> list[str]:
    """Return the options that make the question another one than a page answers."""
    import inspect

    from calibrant.certificates.verdicts import certify

    defaults = {name: each.default for name, each in inspect.signature(certify).parameters.items()}

    def is_default(name: str, value: Any) -> bool:  # a value may be an array only where the default is None
        return value is defaults[name] or (defaults[name] is not None and bool(value == defaults[name]))

    others = {name: value for name, value in judged.options.items() if name not in _ON_A_PAGE}
    unknown = [name for name, value in others.items() if not is_default(name, value)]
    if others.get("questions") == "confidence" and _page_asks_for_confidence(judged):
        unknown.remove("questions")
    if not isinstance(judged.options.get("rng", 0), Integral):
        unknown.append("rng that is no whole number")
    return unknown or ([] if hasattr(judged.certificate, "worst_interval") else ["verdicts on several parts"])


def _page_asks_for_confidence(judged: Judged) -> bool:
    """Whether a page asks how often the top label is right: of two classes it asks for the second one."""
    from calibrant.rows.asked import asked_of_classes

    asked = asked_of_classes(judged.y_true, judged.y_prob, judged.options.get("classes"), None, False)
    return asked is not None and asked.kind == "confidence"

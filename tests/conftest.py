import gc
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings

# Libraries are loaded where they are used: the process that hands out the tests runs none of them.

# The same examples every time in CI, so that a failure there can be repeated; fresh ones on a developer's machine.
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=100)
settings.register_profile("local", deadline=None, max_examples=100)
settings.load_profile("ci" if os.environ.get("CI") else "local")


# What collecting the tests creates is no garbage before they end, and looking through it again and again takes time.
gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)  # a fourteenth of the usual searches, which took 4% of the time
    gc.enable()
    for module in dict.fromkeys(item.module for item in session.items if isinstance(item, pytest.Function)):
        _GENERATORS[module] = [
            (value.bit_generator, value.bit_generator.state, value.bit_generator.jumped().state)
            for value in vars(module).values()
            if type(value).__name__ == "Generator" and hasattr(value, "bit_generator")
        ]


_GENERATORS: dict[Any, list[tuple[Any, Any, Any]]] = {}
"""The random generators of each module of tests, and their states before a test is prepared and before it runs."""


# Every test draws the same numbers, whichever tests of its module came before it in the same process.
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for generator, prepared, _ in _GENERATORS.get(getattr(item, "module", None), ()):
        generator.state = prepared


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    for generator, _, run in _GENERATORS.get(getattr(item, "module", None), ()):
        generator.state = run


def pytest_unconfigure() -> None:
    gc.unfreeze()  # so that the interpreter finds at its end what libraries want to have back


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples in docstrings of the library only, which have a subclass of Module: it takes seconds."""
    found = yield
    return [each for each in found if type(each) is pytest.Module]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests that need Spark first: neighbours run in one process, and only that one has to start it."""
    items.sort(key=lambda item: "spark" not in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session", autouse=True)
def _loops_compiled_early() -> None:
    """Run loops compiled from a few hundred entries on, not many thousands: they are loaded once for all tests.

    What they give plain is the same to the last bit, which tests/core/test_kernels.py holds them to.
    """
    from calibrant.core import kernels

    kernels.PLAIN_LIMIT = 256


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, for pages; the tests of a module share it."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("needs Chromium: no chromium or google-chrome on the PATH")
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield launched
        launched.close()


@pytest.fixture
def usual_signals() -> Iterator[None]:
    """Signals as on a terminal, for this process and those it starts: under nohup and the like some are ignored."""
    usual: dict[str, Any] = {"SIGINT": signal.default_int_handler, "SIGTERM": signal.SIG_DFL, "SIGHUP": signal.SIG_DFL}
    before = {name: signal.signal(signal.Signals[name], handler) for name, handler in usual.items()}
    yield
    for name, handler in before.items():
        signal.signal(signal.Signals[name], handler)


@pytest.fixture
def routing() -> Iterator[None]:
    """Metadata routing of scikit-learn, which is off unless asked for."""
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def as_if_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat a few thousand rows as too many to sort; the finest cells that the betting rates need."""
    from row_sources import first_grid

    from calibrant.engines import Scan
    from calibrant.rows.grids import Grid

    monkeypatch.setattr("calibrant.rows.intake.SORT_BELOW_ROWS", 0)
    monkeypatch.setattr("calibrant.certificates.methods.adaptive.SPLIT_BELOW_ROWS", 0)
    monkeypatch.setattr("calibrant.certificates.saving_limits.SPLIT_BELOW_ROWS", 0)
    monkeypatch.setattr("calibrant.certificates.saving_limits.CELLS_FROM_ROWS", 0)
    monkeypatch.setattr(Scan, "first_grid", Grid(12, 0.0, 1.0))
    first_grid(monkeypatch, 12)


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan by few simulated samples, where it does not matter how well the plan keeps its promise."""
    from calibrant.certificates import planning

    monkeypatch.setattr("calibrant.certificates.cluster_plans._DRAWS", 20)
    monkeypatch.setattr(planning, "_DRAWS", 200)
    monkeypatch.setattr(planning, "_FEWER_DRAWS", 50)


@pytest.fixture
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the plots of a page, where only its words are looked at: they take most of its time."""
    monkeypatch.setattr("calibrant.reports.pages.draw_model", lambda *_, **__: ())


@pytest.fixture
def without_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let monitors compute no limits, where only alarms are looked at: they play no part in them, and take longer."""
    monkeypatch.setattr("calibrant.monitors.monitor.Monitor._upper", lambda *_: 1.0)
    monkeypatch.setattr("calibrant.monitors.evidence.Evidence.lower", lambda *_, **__: 0.0)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Start Spark once, on two threads of this machine and nothing else."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark warns of versions of its own dependencies
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        from pyspark.sql import SparkSession

        options = {
            "spark.driver.bindAddress": "127.0.0.1",
            # A session of a minute never earns back what these cost: a second compiler, parallel collectors, and checks
            # of classes that everybody uses.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
            "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        builder = SparkSession.builder.master("local[2]").appName("calibrant")
        for name, value in options.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture(autouse=True)
def _signals_as_they_were() -> Iterator[None]:
    """Restore what signals do: the program ignores those that it was ended by, and here the process goes on."""
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    handlers = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in handlers.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)

"""What is compared, section by section, and the targets of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Literal

import numpy as np
from baselines import argsort_cutoff, isotonic_fit, linear_program, memory_copy, packed_cutoff, resample_cutoff
from forecasts import SEED, FloatArray, distributions, draw_events, nearly_calibrated, ten_classes, uniform
from peers import (
    AUROC_PEERS,
    BINS,
    CLASS_PEERS,
    CUTOFF_PEERS,
    ECE_PEERS,
    LOESS_PEERS,
    SMOOTH_PEERS,
    Peer,
)
from racing import Bench, Contender, clock, progress, quietly, run_python
from tables import Absent, Target, comparison, duration, megabytes

import calibrant
from calibrant import experiments
from calibrant.certificates.methods.registry import Method
from calibrant.measures.registry import Measure

TOO_SLOW_SECONDS = 60.0
FRESH_PROCESSES = 10
AUTHORS_SECONDS = 18 * 60 + 28.0  # as the progress bar of their public notebook shows, on a machine of their own
REPRODUCE_SECONDS = 60.0  # "under a minute", as the documentation says
SHIFTS = (("calibrated", 0.0), ("miscalibrated", 0.1))


def cutoff(bench: Bench) -> None:
    """Cutoff error against sorting and against reading the data once."""
    most_extra, slowest = (0, ""), (0.0, "")
    for name, forecast, outcome in distributions(bench.rows):
        for y_true in (outcome, outcome.astype(bool)):
            label = f"{name}, y as {y_true.dtype}"
            ours, argsort, packed, copy = bench.race(
                "Cutoff error from arrays",
                label,
                bench.rows,
                [
                    Contender("calibrant", partial(calibrant.cutoff_calibration_error, y_true, forecast)),
                    Contender("argsort + cumsum", partial(argsort_cutoff, y_true, forecast)),
                    Contender("packed sort", partial(packed_cutoff, y_true, forecast)),
                    memory_copy(forecast, y_true),
                ],
            )
            if name == "uniform":
                bench.want_faster(f"Cutoff error against argsort + cumsum, {label}", argsort.seconds / ours.seconds, 10)
                bench.want_at_most(f"Cutoff error against one memory copy, {label}", ours.seconds / copy.seconds, 10)
            most_extra = max(most_extra, (ours.extra_bytes, label))
            slowest = max(slowest, (ours.seconds / packed.seconds, label))
    extra, label = most_extra
    bench.targets.append(
        Target(f"Cutoff error, most extra memory ({label}): at most 100 MB", megabytes(extra), extra <= 100e6)
    )
    ratio, label = slowest
    bench.want_at_most(f"Cutoff error against packed sort, slowest ({label})", ratio, 1.2)


def cutoff_weighted(bench: Bench) -> None:
    """Cutoff error where a row does not fit one sort key."""
    forecast, _ = uniform(bench.rows)
    random = np.random.default_rng(SEED + 1)
    outcome, weight = random.random(bench.rows), random.exponential(size=bench.rows)
    ours, argsort, _ = bench.race(
        "Cutoff error with weights and fractional outcomes",
        "uniform",
        bench.rows,
        [
            Contender(
                "calibrant", partial(calibrant.cutoff_calibration_error, outcome, forecast, sample_weight=weight)
            ),
            Contender("argsort + cumsum", partial(argsort_cutoff, outcome, forecast, weight)),
            memory_copy(forecast, outcome, weight),
        ],
    )
    bench.want_faster("Cutoff error with weights and fractions against argsort", argsort.seconds / ours.seconds, 3)


def certificates(bench: Bench) -> None:
    """Certificates against sorting the data once."""

    def upper(certificate: Any) -> float:
        return float(certificate.upper)

    slowest = (0.0, "")
    for name, forecast, outcome in distributions(bench.rows):
        ours, packed, _ = bench.race(
            "Adaptive certificate (value: upper limit)",
            name,
            bench.rows,
            [
                Contender("calibrant", partial(calibrant.certify, outcome, forecast, max_error=0.01), upper),
                Contender("packed sort", partial(packed_cutoff, outcome, forecast), value=None),
                memory_copy(forecast, outcome),
            ],
        )
        slowest = max(slowest, (ours.seconds / packed.seconds, name))
    ratio, name = slowest
    bench.want_at_most(f"adaptive certificate against packed sort, slowest ({name})", ratio, 3)
    slowest = (0.0, "")
    for name, forecast, outcome in distributions(bench.rows // 100):
        exact = partial(calibrant.certify, outcome, forecast, max_error=0.01, method="exact")
        ours, _ = bench.race(
            "Exact certificate (value: upper limit)",
            name,
            forecast.size,
            [
                Contender("calibrant", exact, upper),
                Contender("packed sort", partial(packed_cutoff, outcome, forecast), value=None),
            ],
        )
        slowest = max(slowest, (ours.seconds, name))
    seconds, name = slowest
    aim = f"exact certificate of {bench.rows // 100:,} rows, slowest ({name}): at most 5 s"
    bench.targets.append(Target(aim, duration(seconds), seconds <= 5.0))


def classes(bench: Bench) -> None:
    """Certificates of ten classes against ten certificates of one column each, and the confidence against one."""
    count, rows = 10, min(bench.rows, 10**6)
    p, y = ten_classes(rows)
    top = (y == p.argmax(axis=1), p.max(axis=1))

    def largest() -> float:
        return max(calibrant.certify(y == k, p[:, k], max_error=0.01).upper for k in range(count))

    ours, ten = bench.race(
        "Certificates of ten classes (value: upper limit of the largest error)",
        "classwise",
        rows,
        [
            Contender(
                "calibrant",
                partial(calibrant.certify, y, p, max_error=0.01, questions="classwise"),
                lambda found: float(found.joint_upper),
            ),
            Contender("ten binary certificates", largest, value=None),
        ],
    )
    bench.want_at_most("certificates of ten classes against ten binary ones", ours.seconds / ten.seconds, 1.3)
    ours, one = bench.race(
        "Certificate of the confidence (value: upper limit)",
        "confidence",
        rows,
        [
            Contender("calibrant", partial(calibrant.certify, y, p, max_error=0.01), lambda found: float(found.upper)),
            Contender("one binary certificate", partial(calibrant.certify, *top, max_error=0.01), value=None),
        ],
    )
    bench.want_at_most("certificate of the confidence against a binary one", ours.seconds / one.seconds, 2.0)


SAVING_MEMORY = 600_000_000


def savings(bench: Bench) -> None:
    """The limit of the risk gap against sorting the forecasts and merging ties once."""
    title = "Adaptive limit of the risk gap (value: the limit)"
    extra = 0
    for rows in (bench.rows // 10, bench.rows):
        forecast, outcome = uniform(rows)
        limit = partial(calibrant.confidence_interval, measure="risk_gap", alternative="less")
        ours, sort, tally = bench.race(
            title,
            "uniform",
            rows,
            [
                Contender("calibrant", partial(limit, outcome, forecast), lambda found: float(found.upper)),
                Contender("np.sort of the forecasts", partial(np.sort, forecast), value=None),
                Contender("one tally", partial(calibrant.Tally.from_arrays, outcome, forecast), value=None),
            ],
        )
        against, extra = 4.0 * sort.seconds + tally.seconds, ours.extra_bytes
        aim = f"limit of the risk gap at {rows:,} rows against four sorts and a tally"
        bench.want_at_most(aim, ours.seconds / against, 1)
    aim = f"limit of the risk gap at {bench.rows:,} rows: at most 600 MB extra"
    bench.targets.append(Target(aim, f"{extra / 1e6:,.0f} MB", extra <= SAVING_MEMORY))


CLUSTERED = ((10, 100_000, 20.0), (1, 1_000, 10.0))
"""By what share of the rows, in how many clusters, how many times the time of independent rows is allowed."""
CLUSTER_MEMORY = 1_000_000_000


def clusters(bench: Bench) -> None:
    """A certificate for rows in clusters against one for independent rows, sharing shocks of mean 0."""
    title = "Certificate of rows in clusters (value: the upper limit)"
    for share, count, times in CLUSTERED:
        rows = bench.rows // share
        random = np.random.default_rng(SEED)
        label = random.integers(0, count, rows)
        forecast = random.uniform(0.2, 0.8, rows)
        outcome = (random.random(rows) < forecast + random.normal(0.0, 0.05, count)[label]).astype(np.uint8)
        judge = partial(calibrant.certify, outcome, forecast, max_error=0.05)
        ours, alone = bench.race(
            title,
            f"{count:,} clusters",
            rows,
            [
                Contender("calibrant", partial(judge, cluster=label), lambda found: float(found.upper)),
                Contender("the same for independent rows", judge, lambda found: float(found.upper)),
            ],
        )
        aim = f"certificate of {rows:,} rows in {count:,} clusters against independent rows"
        bench.want_at_most(aim, ours.seconds / alone.seconds, times)
        aim = f"certificate of {rows:,} rows in {count:,} clusters: below 1 GB extra"
        bench.targets.append(Target(aim, f"{ours.extra_bytes / 1e6:,.0f} MB", ours.extra_bytes < CLUSTER_MEMORY))


def comparisons(bench: Bench) -> None:
    """Two models on the same rows against sorting as many numbers."""
    rows = bench.rows // 10
    forecast, outcome = uniform(rows)
    other = np.clip(forecast + 0.02 * np.random.default_rng(SEED).standard_normal(rows), 0.0, 1.0)
    models = {"one": forecast, "other": other}
    compare = partial(calibrant.compare_models, outcome, models)
    ours, sort = bench.race(
        "Two models side by side (value: the upper limit of the difference)",
        "uniform",
        rows,
        [
            Contender("calibrant", compare, lambda found: found.differences[0].upper),
            Contender("np.sort of as many doubles", partial(np.sort, forecast), value=None),
        ],
    )
    bench.want_at_most(f"two models at {rows:,} rows against one sort", ours.seconds / sort.seconds, 12)


ENSEMBLE = (10_000, 50)
"""Rows, and members of each, of forecasts of an amount."""


def thresholds(bench: Bench) -> None:
    """All thresholds of an ensemble against sorting its members once."""
    rows, members = ENSEMBLE
    rng = np.random.default_rng(SEED)
    mean = rng.normal(size=rows)
    outcome = mean + rng.normal(size=rows)
    ensemble = mean[:, None] + rng.normal(size=(rows, members))
    ours, certificate, sort = bench.race(
        "An ensemble at all thresholds (value: the error, and its limit)",
        f"{members} members",
        rows,
        [
            Contender("calibrant", partial(calibrant.threshold_calibration_error, outcome, ensemble=ensemble)),
            Contender(
                "its certificate",
                partial(calibrant.certificates.certify_thresholds, outcome, ensemble=ensemble, max_error=0.05),
                lambda found: float(found.upper),
            ),
            Contender("np.sort of all members", partial(np.sort, ensemble.ravel()), value=None),
        ],
    )
    aim = f"{rows:,} ensembles of {members} members at all thresholds against sorting all members"
    bench.want_at_most(aim, ours.seconds / sort.seconds, 30)
    aim = "a certificate of them, with its sixteen pairs of halves, against one search"
    bench.want_at_most(aim, certificate.seconds / ours.seconds, 20)


def monitors(bench: Bench) -> None:
    """A batch of a stream against counting rows and events by cell, and a reading."""
    rows = bench.rows // 10
    forecast, outcome = uniform(rows)
    cells = 2**16

    def update() -> Any:
        monitor = calibrant.Monitor(max_error=0.05, unit="row")
        monitor.update(outcome, forecast, period=1)
        return monitor

    def count() -> float:
        place = np.minimum((forecast * cells).astype(np.int64), cells - 1)
        return float(np.bincount(place, minlength=cells).max() + np.bincount(place, weights=outcome).max())

    ours, counting = bench.race(
        "A batch of a stream (value: open periods)",
        "uniform",
        rows,
        [
            Contender("calibrant", update, lambda monitor: float(monitor.open_periods)),
            Contender("two np.bincount", count, value=None),
        ],
    )
    bench.want_at_most(f"a batch of {rows:,} rows against two np.bincount", ours.seconds / counting.seconds, 3)
    aim = f"batches of {rows:,} rows: at least 10 million rows a second"
    bench.targets.append(Target(aim, f"{rows / ours.seconds / 1e6:,.1f} million", rows / ours.seconds >= 1e7))
    full = calibrant.rows.Cells.from_arrays(outcome, forecast)

    def read() -> float:
        monitor = calibrant.Monitor(max_error=0.05, unit="row")
        monitor.update(full, period=1)
        return float(monitor.read().upper)

    (reading,) = bench.race(
        f"Reading of a stream in {cells:,} cells (value: the upper limit)",
        "uniform",
        rows,
        [Contender("calibrant", read)],
    )
    bench.targets.append(Target("a reading below 50 ms", f"{reading.seconds * 1e3:.0f} ms", reading.seconds < 0.05))


def calibration_tests(bench: Bench) -> None:
    """The exact test of calibration against drawing outcomes with numpy."""
    forecast, outcome = uniform(bench.rows // 10)
    resamples = 1000
    test = partial(calibrant.calibration_test, method="exact", n_resamples=resamples, rng=SEED)
    ours, numpy = bench.race(
        f"Exact test of calibration, {resamples:,} resamples (value: p-value)",
        "uniform",
        forecast.size,
        [
            Contender("calibrant", partial(test, outcome, forecast), lambda found: found.pvalue),
            Contender("numpy, in batches", partial(resample_cutoff, outcome, forecast, resamples), once=True),
        ],
    )
    bench.want_faster("exact test of calibration against numpy", numpy.seconds / ours.seconds, 8)


def recalibrators(bench: Bench) -> None:
    """Isotonic and Platt fits, guarantee included, beside scikit-learn's."""
    # Private, but the public way to it, CalibratedClassifierCV, wraps a model around it.
    sigmoid = getattr(import_module("sklearn.calibration"), "_SigmoidCalibration", None)
    isotonic = import_module("sklearn.isotonic").IsotonicRegression
    middle = np.array([0.5])

    def at_half(fitted: Any) -> float:
        return float(fitted.predict(middle)[0])

    for name, forecast, outcome in distributions(bench.rows):
        if name not in ("uniform", "beta(.05, 5)", "two decimals"):
            continue
        title = "Isotonic fit (value: what 0.5 becomes)"
        ours, theirs = bench.race(
            title,
            name,
            bench.rows,
            [
                Contender("calibrant", partial(calibrant.IsotonicRecalibrator().fit, forecast, outcome), at_half),
                Contender("scikit-learn", partial(isotonic(out_of_bounds="clip").fit, forecast, outcome), at_half),
            ],
        )
        bench.want_faster(f"isotonic fit against scikit-learn, {name}", theirs.seconds / ours.seconds, 5)
        title = "Platt fit (value: what 0.5 becomes)"
        platt = Contender("calibrant", partial(calibrant.PlattRecalibrator().fit, forecast, outcome), at_half)
        if sigmoid is None:
            bench.race(title, name, bench.rows, [platt])
            bench.tables[title].append(Absent(bench.rows, "scikit-learn", "has moved its sigmoid calibration"))
            continue
        ours, theirs = bench.race(
            title,
            name,
            bench.rows,
            [platt, Contender("scikit-learn", partial(sigmoid().fit, forecast, outcome), at_half)],
        )
        bench.want_faster(f"Platt fit against scikit-learn, {name}", theirs.seconds / ours.seconds, 3)


def smooth(bench: Bench) -> None:
    """Smooth error against sorting the forecasts, and on fewer rows against a solver."""
    title = "Smooth error"
    for name, shift in SHIFTS:
        forecast, outcome = uniform(bench.rows, shift)
        ours, sort = bench.race(
            title,
            name,
            bench.rows,
            [
                Contender("calibrant", partial(calibrant.smooth_calibration_error, outcome, forecast)),
                Contender("np.sort of forecasts", partial(np.sort, forecast), value=None),
            ],
        )
        bench.want_at_most(f"smooth error against np.sort, {name}", ours.seconds / sort.seconds, 12)
    for name, shift in SHIFTS:
        forecast, outcome = uniform(bench.rows // 100, shift)
        ours, defined, tuned = bench.race(
            title,
            name,
            forecast.size,
            [
                Contender("calibrant", partial(calibrant.smooth_calibration_error, outcome, forecast)),
                Contender("HiGHS, as defined", partial(linear_program, outcome, forecast, outcome.size), once=True),
                Contender("HiGHS, tuned form", partial(linear_program, outcome, forecast, 1), once=True),
            ],
        )
        aim = "smooth error against a linear program"
        bench.want_faster(f"{aim} as defined, {name}", defined.seconds / ours.seconds, 1000)
        bench.want_faster(f"{aim} in the solver's quickest form, {name}", tuned.seconds / ours.seconds, 1000)


def overview(bench: Bench) -> None:
    """Everything at once against sorting positions."""
    for name, shift in SHIFTS:
        forecast, outcome = uniform(bench.rows // 10, shift)
        ours, argsort = bench.race(
            "measure(), every measure at once (value: Cutoff error)",
            name,
            forecast.size,
            [
                Contender("calibrant", partial(calibrant.measure, outcome, forecast), lambda result: result.cutoff),
                Contender("np.argsort of forecasts", partial(np.argsort, forecast), value=None),
            ],
        )
        bench.want_at_most(f"measure() against np.argsort, {name}", ours.seconds / argsort.seconds, 5)


def decisions(bench: Bench) -> None:
    """What recalibration could save at every threshold, against a sort and the isotonic regression it rests on."""
    for name, shift in SHIFTS:
        forecast, events = uniform(bench.rows // 10, shift)
        oracle = np.minimum(forecast + shift, 1.0)  # the chances themselves: every forecast becomes a step of its own
        for kind, outcome in ((name, events), (f"{name}, oracle outcomes", oracle)):
            for wrapper in ("nondecreasing", "monotone"):
                data = f"{kind}, {wrapper}"
                ours, fit, sort = bench.race(
                    "risk_gap_curve(), every threshold at once (value: largest gap)",
                    data,
                    forecast.size,
                    [
                        Contender(
                            "calibrant",
                            partial(calibrant.decisions.risk_gap_curve, outcome, forecast, wrapper=wrapper),
                            lambda curve: curve.largest_gap,
                        ),
                        isotonic_fit(forecast, outcome),
                        Contender("np.sort of forecasts", partial(np.sort, forecast), value=None),
                    ],
                )
                ratio = ours.seconds / (fit.seconds + sort.seconds)
                bench.want_at_most(f"risk_gap_curve() against isotonic fit + sort, {data}", ratio, 5)


def simulation(bench: Bench) -> None:
    """The paper's simulation, 100 runs, against the time that the authors' notebook shows for it."""
    (ours,) = bench.race(
        "The paper's simulation (value: Spearman correlation of risk gap and Cutoff error)",
        "reproduce simulation, 100 runs",
        100 * (500 + 1000),
        [
            Contender(
                "calibrant",
                partial(experiments.run, "simulation", experiments.Settings(stream="authors")),
                lambda report: report.findings["correlations"]["risk_gap"]["cutoff"],
            )
        ],
    )
    bench.want_faster(
        "The simulation on one core against the authors' 18 min 28 s", AUTHORS_SECONDS / ours.seconds, 300
    )


def binned_peers(bench: Bench) -> None:
    """Binned ECE beside the packages that offer it, or the curve behind it."""
    strategies: tuple[tuple[Literal["uniform", "quantile"], str], ...] = (
        ("uniform", "equal width"),
        ("quantile", "equal weight"),
    )
    for strategy, words in strategies:
        ece = partial(calibrant.expected_calibration_error, n_bins=BINS, strategy=strategy)
        beside_peers(bench, f"ECE of {BINS} bins of {words}", ece, ECE_PEERS[strategy])


def class_peers(bench: Bench) -> None:
    """ECE of the confidence in the top label of ten classes beside the packages that offer it, or one by label."""
    ece = partial(calibrant.expected_calibration_error, n_bins=BINS)
    beside_peers(bench, f"ECE of the confidence in ten classes, {BINS} bins", ece, CLASS_PEERS, draw=ten_classes)


def validation_peers(bench: Bench) -> None:
    """AUROC with limits beside the area alone, ICI by loess beside R's own code, and a whole study beside sorting."""

    def area(outcome: FloatArray, forecast: FloatArray) -> float:
        return float(calibrant.measures.auroc(outcome, forecast, confidence_level=0.95).estimate)

    def index(outcome: FloatArray, forecast: FloatArray) -> float:
        return calibrant.measures.integrated_calibration_index(outcome, forecast, smoother="loess").ici

    beside_peers(bench, "AUROC with DeLong's limits", area, AUROC_PEERS)
    beside_peers(bench, "ICI by loess", index, LOESS_PEERS)
    rows = 10_000
    forecast, outcome = nearly_calibrated(rows)
    bench.race(
        "A validation study of 500 resamples (value: ICI)",
        "nearly calibrated",
        rows,
        [
            Contender("calibrant", partial(calibrant.validate, outcome, forecast), lambda found: float(found.ici)),
            Contender("500 np.sort of the forecasts", lambda: [np.sort(forecast) for _ in range(500)], value=None),
        ],
    )


def cutoff_peers(bench: Bench) -> None:
    """Cutoff error beside the packages that offer the same statistic."""
    beside_peers(bench, "Cutoff error beside peers", calibrant.cutoff_calibration_error, CUTOFF_PEERS)


def smooth_peers(bench: Bench) -> None:
    """Smooth error beside a kernel-smoothed ECE: another number for the same purpose."""
    title = "Smooth error beside a related number"
    beside_peers(bench, title, calibrant.smooth_calibration_error, SMOOTH_PEERS)


def beside_peers(
    bench: Bench,
    title: str,
    ours: Callable[..., float],
    peers: Sequence[Peer],
    draw: Callable[[int], tuple[FloatArray, FloatArray]] = nearly_calibrated,
) -> None:
    """Race one of our measures with its peers on growing data, leaving out those that have become too slow."""
    expected_seconds: dict[str, float] = {}
    least_lead: dict[str, float] = {}
    for rows in (bench.rows // 100, bench.rows // 10, bench.rows):
        forecast, outcome = draw(rows)
        contenders = [Contender("calibrant", partial(ours, outcome, forecast))]
        absent = []
        for peer in peers:
            seconds = expected_seconds.get(peer.name, 0.0)
            if seconds > TOO_SLOW_SECONDS:
                absent.append(Absent(rows, peer.name, f"left out: would take about {duration(seconds)}"))
                continue
            try:
                call, value = quietly(partial(peer.prepare, forecast, outcome))()
            except ImportError:
                absent.append(Absent(rows, peer.name, "not installed"))
                continue
            contenders.append(Contender(peer.name, quietly(call), value))
        first, *others = bench.race(title, "nearly calibrated", rows, contenders)
        bench.tables[title].extend(absent)
        for entry in others:
            expected_seconds[entry.name] = 10.0 * entry.seconds
            lead = entry.seconds / first.seconds
            least_lead[entry.name] = min(lead, least_lead.get(entry.name, lead))
    for name, lead in least_lead.items():
        bench.targets.append(Target(f"{title}: ahead of {name} at every size", comparison(lead), lead > 1.0))


CERTIFIED: dict[str, tuple[float, Callable[[np.random.Generator, int], FloatArray]]] = {
    "<= 0.05, uniform": (0.05, lambda random, rows: random.random(rows)),
    "<= 0.02, rare": (0.02, lambda random, rows: random.beta(0.5, 20.0, rows)),
}


SAVED: dict[str, tuple[float, Callable[[np.random.Generator, int], FloatArray]]] = {
    "saving <= 0.05, uniform": CERTIFIED["<= 0.05, uniform"],
    "saving <= 0.01, uniform": (0.01, lambda random, rows: random.random(rows)),
    "saving <= 0.005, rare": (0.005, lambda random, rows: random.beta(0.5, 20.0, rows)),
}
SAVED_ROWS = (450, 4500, 6000)


def saving_power(bench: Bench) -> None:
    """How many rows it takes to certify that nothing can be saved, directly and through the Cutoff error."""
    routes: dict[str, Measure] = {"directly": "risk_gap", "through Cutoff": "cutoff"}
    for route, measure in routes.items():
        progress(f"rows that certify a saving: {route}")
        bench.saving_power[route] = {
            case: rows_that_certify("adaptive", *SAVED[case], measure=measure) for case in SAVED
        }
    for case, limit in zip(SAVED, SAVED_ROWS, strict=True):
        rows = bench.saving_power["directly"][case]
        bench.targets.append(Target(f"rows to certify a {case}: at most {limit:,}", f"{rows:,}", rows <= limit))


def power(bench: Bench) -> None:
    """How many rows each method needs to certify a calibrated forecaster in nine cases of ten."""
    methods: tuple[Method, ...] = ("exact", "normal", "adaptive", "hoeffding", "paper")
    for method in methods:
        progress(f"rows that certify: {method}")
        bench.power[method] = {case: rows_that_certify(method, *CERTIFIED[case]) for case in CERTIFIED}
    for method, case, limit in (
        ("adaptive", "<= 0.05, uniform", 1500),
        ("adaptive", "<= 0.02, rare", 1800),
        ("exact", "<= 0.05, uniform", 1200),
    ):
        rows = bench.power[method][case]
        aim = f"rows to certify {case} with the {method} method: at most {limit:,}"
        bench.targets.append(Target(aim, f"{rows:,}", rows <= limit))


def worst_groups(bench: Bench) -> None:
    """The worst group of many features, with its limits, against sorting each of the features once."""
    rows, features = 100_000, 20
    random = np.random.default_rng(SEED)
    forecast, columns = random.random(rows), random.random((features, rows))
    outcome = draw_events(random, forecast)
    ours, sorts = bench.race(
        "Worst group",
        f"{features} features",
        rows,
        [
            Contender("calibrant", partial(calibrant.worst_group, outcome, forecast, columns.T), value=None),
            Contender("one sort of each feature", lambda: [np.sort(column) for column in columns], value=None),
        ],
    )
    bench.want_at_most(f"worst group of {features} features against a sort of each", ours.seconds / sorts.seconds, 20)


def rows_that_certify(
    method: Method,
    limit: float,
    draw: Callable[[np.random.Generator, int], FloatArray],
    chance: float = 0.9,
    measure: Measure = "cutoff",
) -> int:
    """Search for the number of rows at which the upper limit stays below ``limit`` with the given chance."""
    random = np.random.default_rng(SEED)
    rows = calibrant.rows_needed(limit, y_prob=draw(random, 10_000), method=method, measure=measure, power=chance).rows
    power = 1.5 if measure == "risk_gap" else 2.0  # limits shrink as 1 / sqrt(rows), those of savings faster
    for runs in (100, 400, 2000):
        # Where rows are many, they say nearly the same every time.
        runs = runs if rows < 20_000 else min(runs, 400) if rows < 50_000 else 20
        uppers = []
        for _ in range(runs):
            forecast = draw(random, rows)
            tally = calibrant.Tally.from_arrays(draw_events(random, forecast), forecast)
            found = calibrant.confidence_interval(tally, alternative="less", method=method, measure=measure)
            uppers.append(found.upper)
        rows = round(rows * (float(np.quantile(uppers, chance)) / limit) ** power)
    return rows


def fresh_processes(bench: Bench) -> None:
    """Time importing, a whole process that measures a little data, and one that checks the whole paper."""
    progress("fresh processes")
    rows = 1000
    data = f"[i * 7919 % {rows} < i for i in range({rows})], [(i + 0.5) / {rows} for i in range({rows})]"
    import_clock = "from time import perf_counter as now; start = now(); import {}; print(now() - start)"
    calls: dict[str, Callable[[], float]] = {
        "import calibrant": lambda: float(run_python(import_clock.format("calibrant"))),
        "import numpy": lambda: float(run_python(import_clock.format("numpy"))),
        "Python alone, start to exit": lambda: clock(partial(run_python, "pass")),
        f"measure() of {rows:,} rows, start to exit": lambda: clock(
            partial(run_python, f"import calibrant; calibrant.measure({data})")
        ),
        f"certify() of {rows:,} rows, start to exit": lambda: clock(
            partial(run_python, f"import calibrant; calibrant.certify({data}, max_error=0.1)")
        ),
    }
    rounds = [{name: call() for name, call in calls.items()} for _ in range(FRESH_PROCESSES)]
    bench.processes = {name: min(times[name] for times in rounds) for name in calls}
    ours, numpy, _, *whole = bench.processes.values()
    bench.want_at_most("import calibrant against import numpy", ours / numpy, 2)
    for what, seconds in zip(("measures", "certifies"), whole, strict=True):
        aim = f"a fresh process {what} {rows:,} rows: at most 1.5 s"
        bench.targets.append(Target(aim, duration(seconds), seconds <= 1.5))
    progress("calibrant reproduce all")
    every = "from calibrant import experiments as e; print(all([e.run(name).holds for name in e.EXPERIMENTS]))"
    seconds = clock(partial(run_python, every))
    bench.processes["calibrant reproduce all, start to exit"] = seconds
    bench.want_at_most("calibrant reproduce all against the minute it may take", seconds / REPRODUCE_SECONDS, 1)

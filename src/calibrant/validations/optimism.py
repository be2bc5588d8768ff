"""Optimism: by how much a model looks better on the rows that it was fitted to, and its numbers without that."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import CalibrantError, InputError, UndefinedError
from calibrant.core.frames import frames_follow
from calibrant.core.progress import track
from calibrant.core.types import ArrayLike, BoolArray, ClassLabel, FloatArray, IntArray, Randomness
from calibrant.core.words import counted
from calibrant.measures.discrimination import auroc
from calibrant.measures.smoothers import SmootherName
from calibrant.rows.checks import (
    LABEL_REMEDY,
    check_choice,
    check_codes,
    check_number,
    check_same_index,
    check_seed,
)
from calibrant.rows.intake import as_tally
from calibrant.rows.resamples import MOST_UNDEFINED
from calibrant.rows.runs import group_sizes, stable_order
from calibrant.validations.optimism_results import InternalValidation, OptimismCorrected
from calibrant.validations.statistics import STATISTICS, Plan, check_settings

Resampling = Literal["bootstrap", "cross_validation"]

_SEEDS = 2**31 - 1  # what scikit-learn takes
_AT_A_TIME = 8  # jobs that are handed to each worker together
_MEMORISED = 0.1  # of AUROC: in simulations regressions stay below, and models whose correction fails do not


@frames_follow
def internal_validation(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    resampling: Resampling = "bootstrap",
    n_resamples: int = 200,
    cv: int = 10,
    repeats: int = 1,
    statistics: Sequence[str] | None = None,
    thresholds: ArrayLike | None = None,
    smoother: SmootherName = "loess",
    cluster: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> InternalValidation:
    """Say how good a model is on new rows, from the rows that it was fitted to: numbers corrected for optimism.

    A model looks better on the rows that it was fitted to than on others. Harrell's bootstrap measures by how much:
    rows are drawn with replacement, the model is fitted to them again (every step of it: pass a pipeline), and its
    numbers there (*training*) are compared with those of the same fit on all rows (*test*). For each statistic S

        optimism = mean over resamples of S(fit of resample, resample) - S(fit of resample, all rows)
        corrected = S(fit of all rows, all rows) - optimism

    Cross-validation forecasts each row by a fit to the other folds: ``corrected`` is the statistic of these forecasts,
    all folds taken together, averaged over repeats. It is there also where the fit of all rows separates them, so that
    it has no slope.

    The bootstrap is for models with few parameters for their rows, as regressions are. A model that memorises its rows
    (a forest or tree grown to the end, boosting, the nearest neighbour) knows most of "all rows" from the resample, and
    too little is taken off: a forest on 200 rows with a true AUROC of 0.69 is "corrected" from 1.00 to 0.93. Where the
    fits rank rows that were left out of their resample much worse than ``corrected`` says (AUROC lower by more than
    0.1), a note says so: take ``resampling="cross_validation"`` there.

    Parameters
    ----------
    estimator : classifier
        Any with ``fit`` and ``predict_proba``, in the manner of scikit-learn; it is cloned, and not changed. Seeds
        that it leaves open (``random_state=None``) are set for each fit, so that the answer is the same every time.
    X : array-like, frame or sparse matrix of shape (n, n_features)
        Features.
    y : array-like of shape (n,)
        The class of each row, one of two.
    resampling : {"bootstrap", "cross_validation"}
        How fits that have not seen all rows are made; "cross_validation" for models that memorise.
    n_resamples : int, default 200
        Resamples of the bootstrap.
    cv, repeats : int
        Folds of the cross-validation, and how many times the rows are divided anew.
    statistics : sequence of str, optional
        Which ones, by the names of `validate`; all of them by default.
    thresholds : array-like of floats strictly between 0 and 1, optional
        Also correct the net benefit at these thresholds.
    smoother : {"isotonic", "loess", "lowess", "splines"}
        The calibration curve behind ICI, E50, E90, Emax and ECI.
    cluster : array-like of shape (n,), optional
        A label per row that says which rows belong together: clusters are drawn, or divided into folds, as a whole.
    pos_label : label, optional
        The class that counts as the event; needed unless ``y`` holds 0 and 1, or truth values.
    rng : int, Generator or None, default 0
        Where resamples, folds and open seeds of the estimator come from.
    n_jobs : int, optional
        Processes that fit at the same time, as in scikit-learn; the answer does not depend on it.
    progress : bool, optional
        Whether to show a line on how far it is; by default on a terminal.

    Returns
    -------
    InternalValidation
        An `OptimismCorrected` for each statistic: ``found["auroc"].corrected``.

    References
    ----------
    Efron, Gong (1983), A leisurely look at the bootstrap, the jackknife, and cross-validation; Harrell, Lee, Mark
    (1996), Multivariable prognostic models; Steyerberg et al. (2001), Internal validation of predictive models. The
    numbers are those of ``rms::validate`` in R for the same resamples.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 8))
    >>> y = rng.random(100) < 1 / (1 + np.exp(-X[:, 0]))
    >>> found = internal_validation(LogisticRegression(C=1e6), X, y, n_resamples=50, statistics=["auroc", "slope"])
    >>> round(found["auroc"].apparent, 3), round(found["auroc"].corrected, 3), round(found["slope"].corrected, 2)
    (0.807, 0.742, 0.7)
    """
    kind = RESAMPLINGS[check_choice(resampling, "resampling", tuple(RESAMPLINGS))]
    plan = Plan(_chosen(statistics), check_settings(smoother, "leave_out", thresholds))
    study = _Study.of(estimator, X, y, pos_label, cluster)
    sizes = _Sizes(
        int(check_number(n_resamples, "n_resamples", low=2, high=1e6, whole=True)),
        int(check_number(cv, "cv", low=2, high=1e6, whole=True)),
        int(check_number(repeats, "repeats", low=1, high=1e5, whole=True)),
    )
    workers = None if n_jobs is None else int(check_number(n_jobs, "n_jobs", low=-1e6, high=1e6, whole=True))
    return kind.corrected(study, plan, sizes, check_seed(rng), _Team(workers, progress))


class _Sizes(NamedTuple):
    resamples: int
    folds: int
    repeats: int


def _chosen(statistics: Sequence[str] | None) -> tuple[str, ...]:
    if statistics is None:
        return tuple(STATISTICS)
    named = (statistics,) if isinstance(statistics, str) else tuple(statistics)
    return tuple(check_choice(name, "statistics", tuple(STATISTICS)) for name in named)


@dataclass(frozen=True)
class _Study:
    """The rows of a study, and the model that is fitted to them."""

    estimator: Any
    X: Any
    labels: npt.NDArray[Any]
    events: BoolArray
    event: Any
    clusters: IntArray | None

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, pos_label: Any, cluster: Any) -> _Study:
        from sklearn.utils import indexable

        from calibrant.rows.models import check_classes

        _check_order(estimator, y)
        check_same_index(X=X, y=y, cluster=cluster)
        try:
            labels = check_classes(y)
        except InputError:
            raise
        except ValueError as error:
            raise _unusable_classes(y) from error
        try:
            features, labels = indexable(X, labels)
        except (TypeError, ValueError) as error:
            raise _unusable_features(estimator, X, labels.size, error) from error
        classes = np.unique(labels).tolist()
        if len(classes) < 2:
            raise InputError(
                f"has one class only, {classes[0]!r}", argument="y", remedy="a model and its validation need both"
            )
        if pos_label is None and classes != [0, 1]:
            raise InputError(
                f"holds the labels {classes[0]!r} and {classes[1]!r}, and nothing says which is the event",
                argument="y",
                remedy=LABEL_REMEDY,
            )
        event = classes[1] if pos_label is None else pos_label
        if event not in classes:
            raise InputError(
                f"is {event!r}, which is no class of y",
                argument="pos_label",
                value=event,
                remedy=f"pass one of {classes}",
            )
        codes = None if cluster is None else check_codes(cluster, "cluster", labels.size)[0]
        return cls(estimator, features, labels, labels == event, event, codes)

    @property
    def rows(self) -> int:
        return self.labels.size

    @property
    def cluster_count(self) -> int | None:
        return None if self.clusters is None else int(self.clusters.max()) + 1

    def fitted(self, positions: IntArray | None, seed: int) -> Any:
        """Fit a clone of the model to some of the rows, or to all."""
        from sklearn.base import clone

        from calibrant.rows.models import take

        model = clone(self.estimator)
        _set_seeds(model, seed)
        rows, labels = self.X, self.labels
        if positions is not None:
            rows, labels = take(rows, positions), labels[positions]
        try:
            return model.fit(rows, labels)
        except CalibrantError:
            raise
        except (TypeError, ValueError) as error:
            raise _unusable_features(self.estimator, self.X, self.labels.size, error) from error

    def forecasts(self, model: Any, positions: IntArray | None = None) -> FloatArray:
        """Forecast the event on some of the rows, or on all."""
        from calibrant.rows.models import event_forecasts, take

        if positions is None:
            return event_forecasts(model, self.X, self.labels, self.event)[0]
        return event_forecasts(model, take(self.X, positions), self.labels[positions], self.event)[0]

    def has_both(self, positions: IntArray) -> bool:
        """Whether rows of both classes are among some."""
        share = float(self.events[positions].mean())
        return 0.0 < share < 1.0


def _check_order(estimator: Any, y: Any) -> None:
    """Refuse a model, features and classes in another order."""
    remedy = "pass the model first, then features, then classes, as in internal_validation(model, X, y)"
    if isinstance(estimator, type) or not callable(getattr(estimator, "fit", None)):
        what = f"the class {estimator.__name__}" if isinstance(estimator, type) else f"a {type(estimator).__name__}"
        raise InputError(f"is {what}, not a model that can be fitted", argument="estimator", remedy=remedy)
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) > 1 and shape[1] != 1:
        raise InputError(f"has the shape {tuple(shape)}, and one class per row is needed", argument="y", remedy=remedy)


def _unusable_classes(y: Any) -> InputError:
    """Say why ``y`` holds no class per row."""
    values = np.asarray(y)
    if values.ndim == 1 and values.dtype.kind == "f":
        odd = values[np.isfinite(values) & (values != np.round(values))]
        if odd.size:
            return InputError(
                f"holds numbers such as {odd[0]:g}, which are no classes",
                argument="y",
                value=float(odd[0]),
                remedy="pass the class of each row, as in y > 0.5 where y was forecast or measured",
            )
    return InputError(
        f"has the shape {values.shape}, and one class per row is needed",
        argument="y",
        remedy="pass the class of each row, one of two",
    )


def _unusable_features(estimator: Any, X: Any, rows: int, error: Exception) -> InputError:
    """Say why a model could not be fitted to features; what models can take differs, so that one has to try."""
    name = type(estimator).__name__
    pipeline = "in a pipeline with the model, so that it is part of what is validated"
    shape: tuple[int, ...] = getattr(X, "shape", None) or np.shape(np.asarray(X, dtype=object))
    if not shape or shape[0] != rows:
        had = f"has {counted(shape[0], 'row')}" if shape else f"is {X!r}"
        remedy = "pass a row of features for each class in y"
        return InputError(f"{had}, and y has {rows:,}", argument="X", remedy=remedy)
    said = str(error).strip()
    reason = said.lower()  # what a pipeline takes is no fault, though it stands in X
    if len(shape) != 2 and ("array" in reason or "dim" in reason):
        return InputError(
            f"has the shape {tuple(shape)}, and {name} takes a table with a column for each feature",
            argument="X",
            remedy="pass one of shape (n, features), as X.reshape(-1, 1) where there is a single feature",
        )
    columns = {column: np.asarray(X[column]) for column in X.columns} if hasattr(X, "columns") else {}
    if not columns and isinstance(X, (np.ndarray, list, tuple)):
        table = np.asarray(X)
        columns = {place: table[:, place] for place in range(shape[1])}
    for column, values in columns.items():
        numbers = [each for each in values.tolist() if isinstance(each, float)]
        texts = [each for each in values.tolist() if isinstance(each, str)]
        fault = partial(InputError, argument="X", column=str(column))
        if texts and "string" in reason:
            remedy = f"turn texts into numbers (OneHotEncoder) {pipeline}"
            return fault(f"holds texts such as {texts[0]!r}, which {name} cannot take", remedy=remedy)
        if "nan" in reason and any(map(math.isnan, numbers)):
            remedy = f"fill them in (SimpleImputer) {pipeline}; or drop these rows"
            return fault(f"lacks values, which {name} needs", remedy=remedy)
        if "infinity" in reason and any(map(math.isinf, numbers)):
            return fault(f"holds infinite values, which {name} cannot take", remedy="replace them")
    return InputError(
        f"could not be fitted to X and y: {said.splitlines()[0] if said else type(error).__name__}",
        argument="estimator",
        remedy="fit it to these rows by itself to see where that comes from",
    )


def _numbers(plan: Plan, events: BoolArray, forecasts: FloatArray) -> FloatArray:
    return np.array(plan(as_tally(events, forecasts)), dtype=np.float64)


def _set_seeds(model: Any, seed: int) -> None:
    """Set the seeds that a model leaves open, in the order of their names."""
    if not hasattr(model, "get_params"):
        return
    settings = model.get_params(deep=True)
    opened = sorted(name for name, value in settings.items() if name.endswith("random_state") and value is None)
    drawn = np.random.default_rng(seed).integers(0, _SEEDS, size=len(opened))
    if opened:
        model.set_params(**dict(zip(opened, drawn.tolist(), strict=True)))


class _Team(NamedTuple):
    """Who does the work, and whether they are watched."""

    workers: int | None
    progress: bool | None

    def each(self, work: Callable[..., Any], jobs: Iterable[Any], total: int, label: str) -> Iterator[Any]:
        """Do a piece of work for each job, and pass on what comes of it in their order."""
        return track(self._done(work, jobs), total=total, label=label, shown=self.progress)

    def _done(self, work: Callable[..., Any], jobs: Iterable[Any]) -> Iterator[Any]:
        from joblib import Parallel, delayed, effective_n_jobs  # which scikit-learn brings along

        workers = effective_n_jobs(self.workers)
        if workers == 1:
            yield from (work(*job) for job in jobs)
            return
        waiting = iter(jobs)
        with Parallel(n_jobs=self.workers) as parallel:
            # Some jobs at a time, so that one sees how far it is.
            while some := list(itertools.islice(waiting, _AT_A_TIME * workers)):
                yield from parallel(delayed(work)(*job) for job in some)


class _Bootstrap:
    """Harrell's correction: what a fit to a resample loses on all rows."""

    def corrected(self, study: _Study, plan: Plan, sizes: _Sizes, seed: int, team: _Team) -> InternalValidation:
        generators = [np.random.default_rng(each) for each in np.random.SeedSequence(seed).spawn(sizes.resamples)]
        drawn = [_drawn(study, generator) for generator in generators]
        seeds = [int(generator.integers(_SEEDS)) for generator in generators]
        return bootstrap_corrected(study, plan, drawn, seeds, seed, team)


def bootstrap_corrected(
    study: _Study, plan: Plan, drawn: Sequence[IntArray], seeds: Sequence[int], seed: int, team: _Team
) -> InternalValidation:
    """Correct by resamples that are drawn already."""
    forecasts = study.forecasts(study.fitted(None, seed % _SEEDS))
    apparent = _numbers(plan, study.events, forecasts)
    jobs = ((study, plan, *job) for job in zip(drawn, seeds, strict=True))
    found = list(team.each(_trained_and_tested, jobs, len(drawn), "fitting to resamples"))
    training, test, areas = (np.array(each) for each in zip(*found, strict=True))
    parts = tuple(_part(name, apparent[k], training[:, k], test[:, k]) for k, name in enumerate(plan.names))
    notes = _memorised(float(_area(study.events, forecasts)), areas)
    return _result("bootstrap", study, plan, parts, notes, n_resamples=len(drawn))


def _memorised(apparent: float, areas: FloatArray) -> tuple[str, ...]:
    """Note where fits rank rows that they have not seen much worse than the correction says."""
    areas = areas[~np.isnan(areas).any(axis=1)]
    if not areas.size:
        return ()
    training, test, unseen = areas.mean(axis=0)
    corrected = apparent - (training - test)
    if corrected - unseen <= _MEMORISED:
        return ()
    return (
        f"the model memorises its rows, and the bootstrap takes too little off: AUROC corrected is {corrected:.2f}, "
        f"and {unseen:.2f} on rows that were left out of the resamples; use resampling='cross_validation'",
    )


def _drawn(study: _Study, generator: np.random.Generator) -> IntArray:
    """Draw as many rows as there are, or as many clusters, each with all its rows."""
    if study.clusters is None:
        return generator.integers(0, study.rows, study.rows)
    order = stable_order(study.clusters)
    count = int(study.clusters.max()) + 1
    starts = np.searchsorted(study.clusters[order], np.arange(count))
    sizes = group_sizes(starts, order.size)
    parts = [order[starts[each] : starts[each] + sizes[each]] for each in generator.integers(0, count, count)]
    return np.concatenate(parts)


def _trained_and_tested(
    study: _Study, plan: Plan, positions: IntArray, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the statistics of a fit to a resample, on the resample and on all rows; NaN where no fit is possible.

    Also its AUROC on both, and on the rows that were not drawn.
    """
    if not study.has_both(positions):
        undefined = np.full(len(plan.names), np.nan)
        return undefined, undefined, np.full(3, np.nan)
    model = study.fitted(positions, seed)
    forecasts = study.forecasts(model)
    drawn, unseen = (study.events[positions], study.forecasts(model, positions)), np.ones(study.rows, dtype=bool)
    unseen[positions] = False
    areas = [_area(*drawn), _area(study.events, forecasts), _area(study.events[unseen], forecasts[unseen])]
    return _numbers(plan, *drawn), _numbers(plan, study.events, forecasts), np.array(areas)


def _area(events: BoolArray, forecasts: FloatArray) -> float:
    """Return the AUROC; NaN where it is undefined."""
    if not 0 < np.count_nonzero(events) < events.size:
        return np.nan
    return auroc(events, forecasts)


def _part(name: str, apparent: float, training: FloatArray, test: FloatArray) -> OptimismCorrected:
    """Correct one statistic; where it is undefined on rows that were fitted to, only that of other rows is known."""
    usable = ~np.isnan(training - test)
    failed = int(np.count_nonzero(~usable))
    looks = None if np.isnan(apparent) else float(apparent)
    if looks is None or failed > MOST_UNDEFINED * usable.size:
        return OptimismCorrected(name, looks, test=_mean_of_most(test), n_failed=failed)
    optimism = float((training - test)[usable].mean())
    return OptimismCorrected(
        name=name,
        apparent=looks,
        training=float(training[usable].mean()),
        test=float(test[usable].mean()),
        optimism=optimism,
        corrected=looks - optimism,
        n_failed=failed,
    )


def _mean_of_most(values: FloatArray) -> float | None:
    """Return the mean of the values that are defined; None where too many are not."""
    missing = np.isnan(values)
    return None if np.count_nonzero(missing) > MOST_UNDEFINED * values.size else float(values[~missing].mean())


class _CrossValidation:
    """Each row is forecast by a fit to the other folds."""

    def corrected(self, study: _Study, plan: Plan, sizes: _Sizes, seed: int, team: _Team) -> InternalValidation:
        generators = [np.random.default_rng(each) for each in np.random.SeedSequence(seed).spawn(sizes.repeats)]
        divided = [_folds(study, sizes.folds, generator) for generator in generators]
        seeds = [generator.integers(_SEEDS, size=sizes.folds).tolist() for generator in generators]
        return cross_corrected(study, plan, divided, seeds, seed, team)


def cross_corrected(
    study: _Study, plan: Plan, divided: Sequence[IntArray], seeds: Sequence[Sequence[int]], seed: int, team: _Team
) -> InternalValidation:
    """Correct by folds that are dealt already: the fold of each row, for each repeat."""
    apparent = _numbers(plan, study.events, study.forecasts(study.fitted(None, seed % _SEEDS)))
    repeats, count = len(divided), len(seeds[0])
    jobs = (
        (study, np.flatnonzero(folds != fold), np.flatnonzero(folds == fold), seeds[repeat][fold])
        for repeat, folds in enumerate(divided)
        for fold in range(count)
    )
    made = list(team.each(_forecast_others, jobs, repeats * count, "fitting to folds"))
    tested = np.empty((repeats, len(plan.names)))
    for repeat, folds in enumerate(divided):
        forecasts = np.empty(study.rows)
        for fold in range(count):
            forecasts[folds == fold] = made[repeat * count + fold]
        tested[repeat] = _numbers(plan, study.events, forecasts)
    parts = tuple(_held_out(name, apparent[k], tested[:, k]) for k, name in enumerate(plan.names))
    return _result("cross_validation", study, plan, parts, folds=count, repeats=repeats)


def _held_out(name: str, apparent: float, test: FloatArray) -> OptimismCorrected:
    """Return one statistic of rows that were not fitted to, which needs no apparent value."""
    looks, found = None if np.isnan(apparent) else float(apparent), _mean_of_most(test)
    return OptimismCorrected(
        name=name,
        apparent=looks,
        training=looks,
        test=found,
        optimism=None if looks is None or found is None else looks - found,
        corrected=found,
        n_failed=int(np.count_nonzero(np.isnan(test))),
    )


def _folds(study: _Study, count: int, generator: np.random.Generator) -> IntArray:
    """Deal the rows of each class, or whole clusters, to folds in random order; return the fold of each row."""
    folds = np.empty(study.rows, dtype=np.int64)
    if study.clusters is not None:
        clusters = int(study.clusters.max()) + 1
        _check_folds(count, clusters, "cluster")
        dealt = np.empty(clusters, dtype=np.int64)
        dealt[generator.permutation(clusters)] = np.arange(clusters) % count
        folds = dealt[study.clusters]
    else:
        rarest = int(min(study.events.sum(), (~study.events).sum()))
        _check_folds(count, rarest, "row of the rarer class")
        order = np.concatenate([generator.permutation(np.flatnonzero(study.events == each)) for each in (True, False)])
        folds[order] = np.arange(study.rows) % count
    for fold in range(count):
        if not study.has_both(np.flatnonzero(folds != fold)):
            raise UndefinedError(
                "all rows of one class are in one fold, so that there is nothing to fit to in the others",
                remedy="take fewer folds, or resampling='bootstrap'",
            )
    return folds


def _check_folds(count: int, available: int, what: str) -> None:
    if count > available:
        plural = what.replace("row ", "rows ") if what.startswith("row") else f"{what}s"
        said = f"1 {what}" if available == 1 else f"{available:,} {plural}"
        raise InputError(
            f"is {count}, and there {'is' if available == 1 else 'are'} {said}",
            argument="cv",
            value=count,
            remedy="take fewer folds, or resampling='bootstrap'",
        )


def _forecast_others(study: _Study, fitting: IntArray, judging: IntArray, seed: int) -> FloatArray:
    return study.forecasts(study.fitted(fitting, seed), judging)


RESAMPLINGS: dict[str, _Bootstrap | _CrossValidation] = {
    "bootstrap": _Bootstrap(),
    "cross_validation": _CrossValidation(),
}


def _result(
    resampling: str,
    study: _Study,
    plan: Plan,
    parts: tuple[OptimismCorrected, ...],
    cautions: tuple[str, ...] = (),
    **sizes: int,
) -> InternalValidation:
    notes = list(cautions)
    lost = [part for part in parts if part.corrected is None]
    if separated := [part.name for part in lost if part.test is not None]:
        notes.append(
            f"no corrected value of {', '.join(separated)}: undefined on rows that the model was fitted to, as where "
            "it separates them; use resampling='cross_validation'"
        )
    if nowhere := [part.name for part in lost if part.test is None]:
        notes.append(f"no corrected value of {', '.join(nowhere)}: undefined in too many of the fits")
    if alone := [part.name for part in parts if part.apparent is None and part.corrected is not None]:
        notes.append(
            f"no apparent value of {', '.join(alone)}: undefined on rows that the model was fitted to, as where it "
            "separates them; cross-validation needs none"
        )
    failed = max((part.n_failed for part in parts if part.corrected is not None), default=0)
    if failed and "n_resamples" in sizes:
        notes.append(f"in up to {counted(failed, 'resample')} a statistic is undefined; the others stand for them")
    return InternalValidation(
        names=plan.names,
        parts=parts,
        resampling=resampling,
        rows=study.rows,
        events=int(study.events.sum()),
        clusters=study.cluster_count,
        smoother=plan.settings.smoother,
        estimator=type(study.estimator).__name__,
        notes=tuple(notes),
        **sizes,
    )

"""Both classifiers before the checks that scikit-learn has for every estimator."""

import pytest
import sklearn
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from calibrant.classifiers.certified import CertifiedClassifier
from calibrant.classifiers.recalibrated import RecalibratedClassifier
from calibrant.core.errors import InputError
from calibrant.repairs.maps import PlattRecalibrator

SPLIT = "a weight is not a repetition here: rows removed or repeated change which rows are drawn for judging"
PARTS = "nor here: they change which rows are drawn for which part, unless the parts are given (from 1.6 on they are)"

EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": SPLIT,
    "check_sample_weight_equivalence_on_sparse_data": SPLIT,
    "check_sample_weights_invariance": SPLIT,  # the name before scikit-learn 1.6
}
EXPECTED_WITHOUT_JUDGING = {
    "check_sample_weights_invariance": PARTS,
}
if sklearn.__version__.startswith("1.6"):
    SWAPPED = "the check takes the class of the first row for the first one, and that differs between its two fits"
    EXPECTED_WITHOUT_JUDGING["check_sample_weight_equivalence_on_dense_data"] = SWAPPED
    EXPECTED_WITHOUT_JUDGING["check_sample_weight_equivalence_on_sparse_data"] = SWAPPED
if sklearn.__version__.startswith(("1.4", "1.5")):
    NO_DEFAULT = "there is no default for the model, nor for max_error: nobody else knows which error you can live with"
    EXPECTED_FAILURES["check_parameters_default_constructible"] = NO_DEFAULT
    EXPECTED_WITHOUT_JUDGING["check_parameters_default_constructible"] = NO_DEFAULT
EXPECTED_OF_BOTH = {}
if sklearn.__version__.startswith("1.4"):
    EXPECTED_OF_BOTH["check_estimators_dtypes"] = "of its 20 rows so few are of one class that 12 hold 1, of 2 parts"


# A list, because older versions of scikit-learn pass a generator, which newer ones of pytest warn of.
CHECKS = parametrize_with_checks(
    [
        CertifiedClassifier(LogisticRegression(), max_error=1, random_state=0),
        RecalibratedClassifier(LogisticRegression(), cv=2, random_state=0),
        RecalibratedClassifier(
            RidgeClassifier(), PlattRecalibrator(input_kind="score"), cv=2, max_error=1, split=0.4, random_state=0
        ),
    ]
)
FOREST = RandomForestClassifier(n_estimators=5, max_depth=1, random_state=0)
OF_LABELS = parametrize_with_checks(
    [
        CertifiedClassifier(FOREST, max_error=1, random_state=0),
        RecalibratedClassifier(FOREST, PlattRecalibrator(), cv=2, random_state=0),
    ]
)


@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_scikit_learns_checks(estimator, check):
    name = check.func.__name__
    expected = EXPECTED_WITHOUT_JUDGING if estimator.max_error is None else EXPECTED_FAILURES
    if estimator.max_error is not None and getattr(estimator, "cv", None) is not None:
        expected = {**expected, **EXPECTED_OF_BOTH}
    # Weights of 1 make no difference, and the older check asks that too.
    if name in expected and check.keywords.get("kind") != "ones":
        with pytest.raises((AssertionError, TypeError, InputError)):
            check(estimator)
    else:
        check(estimator)


@pytest.mark.parametrize(
    OF_LABELS.args[0],
    [pair for pair in OF_LABELS.args[1] if "multilabel" in str(pair)],
    **{name: value for name, value in OF_LABELS.kwargs.items() if name == "ids"},
)
def test_scikit_learns_checks_of_several_labels(estimator, check):
    check(estimator)

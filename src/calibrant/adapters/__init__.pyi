from calibrant.adapters.assertions import assert_certified as assert_certified
from calibrant.adapters.scoring import (
    get_scorer as get_scorer,
)
from calibrant.adapters.scoring import (
    scorer_names as scorer_names,
)
from calibrant.adapters.training import CalibrationMetric as CalibrationMetric

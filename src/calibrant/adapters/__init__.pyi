from calibrant.adapters.assertions import assert_certified as assert_certified
from calibrant.adapters.databases import sql_test as sql_test
from calibrant.adapters.exports import to_onnx as to_onnx
from calibrant.adapters.scoring import (
    get_scorer as get_scorer,
)
from calibrant.adapters.scoring import (
    scorer_names as scorer_names,
)
from calibrant.adapters.tracking import (
    log_calibration as log_calibration,
)
from calibrant.adapters.tracking import (
    mlflow_metric as mlflow_metric,
)
from calibrant.adapters.training import CalibrationMetric as CalibrationMetric

from calibrant.certificates.model_differences import (
    ModelDifference as ModelDifference,
)
from calibrant.comparisons.results import (
    ComparedModel as ComparedModel,
)
from calibrant.comparisons.results import (
    ModelComparison as ModelComparison,
)
from calibrant.comparisons.results import (
    ScoreLimits as ScoreLimits,
)
from calibrant.comparisons.side_by_side import (
    ModelError as ModelError,
)
from calibrant.comparisons.side_by_side import (
    compare_models as compare_models,
)

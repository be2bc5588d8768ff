from calibrant.validations.optimism import internal_validation as internal_validation
from calibrant.validations.optimism_results import (
    InternalValidation as InternalValidation,
)
from calibrant.validations.optimism_results import (
    OptimismCorrected as OptimismCorrected,
)
from calibrant.validations.results import Validation as Validation
from calibrant.validations.studies import validate as validate

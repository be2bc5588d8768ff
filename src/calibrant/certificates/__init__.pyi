from calibrant.certificates.bands import QuestionRiskBands as QuestionRiskBands
from calibrant.certificates.bands import RiskBands as RiskBands
from calibrant.certificates.bands import risk_bands as risk_bands
from calibrant.certificates.brackets import bracket as bracket
from calibrant.certificates.clusters import Clusters as Clusters
from calibrant.certificates.hypotheses import calibration_test as calibration_test
from calibrant.certificates.independence import (
    IndependenceCheck as IndependenceCheck,
)
from calibrant.certificates.independence import (
    check_independence as check_independence,
)
from calibrant.certificates.planning import (
    RowsNeeded as RowsNeeded,
)
from calibrant.certificates.planning import (
    ece_hardness_bound as ece_hardness_bound,
)
from calibrant.certificates.planning import (
    effective_variance as effective_variance,
)
from calibrant.certificates.planning import (
    rows_needed as rows_needed,
)
from calibrant.certificates.question_results import (
    QuestionCertificates as QuestionCertificates,
)
from calibrant.certificates.question_results import (
    QuestionIntervals as QuestionIntervals,
)
from calibrant.certificates.question_tests import QuestionTests as QuestionTests
from calibrant.certificates.rejections import (
    CalibrationTest as CalibrationTest,
)
from calibrant.certificates.rejections import (
    GroupCalibrationTests as GroupCalibrationTests,
)
from calibrant.certificates.results import (
    Certificate as Certificate,
)
from calibrant.certificates.results import (
    ConfidenceInterval as ConfidenceInterval,
)
from calibrant.certificates.results import (
    GroupCertificates as GroupCertificates,
)
from calibrant.certificates.spiegelhalter import spiegelhalter_test as spiegelhalter_test
from calibrant.certificates.verdicts import (
    certify as certify,
)
from calibrant.certificates.verdicts import (
    confidence_interval as confidence_interval,
)
from calibrant.core.laws import brownian_range as brownian_range

from calibrant import (
    adapters as adapters,
)
from calibrant import (
    certificates as certificates,
)
from calibrant import (
    classifiers as classifiers,
)
from calibrant import (
    comparisons as comparisons,
)
from calibrant import (
    decisions as decisions,
)
from calibrant import (
    displays as displays,
)
from calibrant import (
    engines as engines,
)
from calibrant import (
    measures as measures,
)
from calibrant import (
    monitors as monitors,
)
from calibrant import (
    repairs as repairs,
)
from calibrant import (
    reports as reports,
)
from calibrant import (
    rows as rows,
)
from calibrant import (
    validations as validations,
)
from calibrant.certificates.bands import risk_bands as risk_bands
from calibrant.certificates.hypotheses import calibration_test as calibration_test
from calibrant.certificates.independence import check_independence as check_independence
from calibrant.certificates.pit import pit_calibration as pit_calibration
from calibrant.certificates.planning import rows_needed as rows_needed
from calibrant.certificates.verdicts import (
    certify as certify,
)
from calibrant.certificates.verdicts import (
    confidence_interval as confidence_interval,
)
from calibrant.certificates.worst_groups import worst_group as worst_group
from calibrant.classifiers.certified import CertifiedClassifier as CertifiedClassifier
from calibrant.classifiers.recalibrated import RecalibratedClassifier as RecalibratedClassifier
from calibrant.comparisons.side_by_side import compare_models as compare_models
from calibrant.core.errors import (
    CalibrantError as CalibrantError,
)
from calibrant.core.errors import (
    CalibrationWarning as CalibrationWarning,
)
from calibrant.core.errors import (
    InputError as InputError,
)
from calibrant.decisions.benefits import net_benefit as net_benefit
from calibrant.decisions.declared import certify_decisions as certify_decisions
from calibrant.decisions.gaps import (
    best_threshold as best_threshold,
)
from calibrant.decisions.gaps import (
    risk_gap as risk_gap,
)
from calibrant.decisions.guarantees import decision_guarantee as decision_guarantee
from calibrant.decisions.risks import (
    decision_risk as decision_risk,
)
from calibrant.displays.certificate import CertificateDisplay as CertificateDisplay
from calibrant.displays.cumulative import CumulativeDisplay as CumulativeDisplay
from calibrant.displays.monitor import MonitorDisplay as MonitorDisplay
from calibrant.displays.reliability import ReliabilityDisplay as ReliabilityDisplay
from calibrant.engines.scans import scan as scan
from calibrant.measures.distance import distance_from_calibration as distance_from_calibration
from calibrant.measures.everything import measure as measure
from calibrant.measures.expected import expected_calibration_error as expected_calibration_error
from calibrant.measures.thresholds import threshold_calibration_error as threshold_calibration_error
from calibrant.measures.weighted import (
    cutoff_calibration_error as cutoff_calibration_error,
)
from calibrant.measures.weighted import (
    smooth_calibration_error as smooth_calibration_error,
)
from calibrant.measures.weighted import (
    worst_interval as worst_interval,
)
from calibrant.monitors.monitor import Monitor as Monitor
from calibrant.monitors.rolling import RollingRecalibrator as RollingRecalibrator
from calibrant.monitors.segments import Monitors as Monitors
from calibrant.repairs.choice import compare_recalibrators as compare_recalibrators
from calibrant.repairs.guard import GuardedRecalibrator as GuardedRecalibrator
from calibrant.repairs.maps import (
    BetaRecalibrator as BetaRecalibrator,
)
from calibrant.repairs.maps import (
    IsotonicRecalibrator as IsotonicRecalibrator,
)
from calibrant.repairs.maps import (
    PlattRecalibrator as PlattRecalibrator,
)
from calibrant.repairs.maps import (
    TemperatureRecalibrator as TemperatureRecalibrator,
)
from calibrant.reports.calibration_report import CalibrationReport as CalibrationReport
from calibrant.reports.validation_report import ValidationReport as ValidationReport
from calibrant.rows.cells import Cells as Cells
from calibrant.rows.horizons import horizon as horizon
from calibrant.rows.tally import Tally as Tally
from calibrant.validations.optimism import internal_validation as internal_validation
from calibrant.validations.studies import validate as validate

__version__: str

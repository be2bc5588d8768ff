from calibrant.reports.calibration_report import CalibrationReport as CalibrationReport
from calibrant.reports.results import (
    ChangeOverTime as ChangeOverTime,
)
from calibrant.reports.results import (
    ClusterOptions as ClusterOptions,
)
from calibrant.reports.results import (
    DecisionTable as DecisionTable,
)
from calibrant.reports.results import (
    GroupLimits as GroupLimits,
)
from calibrant.reports.results import (
    ModelSummary as ModelSummary,
)
from calibrant.reports.results import (
    Omission as Omission,
)
from calibrant.reports.results import (
    RepairTrial as RepairTrial,
)
from calibrant.reports.results import (
    ReportSummary as ReportSummary,
)
from calibrant.reports.validation_report import ValidationReport as ValidationReport
from calibrant.reports.validation_results import (
    StudyFile as StudyFile,
)
from calibrant.reports.validation_results import (
    TripodItem as TripodItem,
)
from calibrant.reports.validation_results import (
    ValidationSummary as ValidationSummary,
)

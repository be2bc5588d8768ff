from calibrant.repairs.choice import compare_recalibrators as compare_recalibrators
from calibrant.repairs.guard import GuardedRecalibrator as GuardedRecalibrator
from calibrant.repairs.maps import (
    BetaRecalibrator as BetaRecalibrator,
)
from calibrant.repairs.maps import (
    ConstantRecalibrator as ConstantRecalibrator,
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
from calibrant.repairs.recalibrator import Recalibrator as Recalibrator
from calibrant.repairs.results import (
    LadderRung as LadderRung,
)
from calibrant.repairs.results import (
    RecalibrationGuarantee as RecalibrationGuarantee,
)
from calibrant.repairs.results import (
    RecalibratorComparison as RecalibratorComparison,
)
from calibrant.repairs.results import (
    RecalibratorScores as RecalibratorScores,
)

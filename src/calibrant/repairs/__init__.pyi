from calibrant.repairs.choice import compare_recalibrators as compare_recalibrators
from calibrant.repairs.class_maps import (
    ClassTemperatureRecalibrator as ClassTemperatureRecalibrator,
)
from calibrant.repairs.class_maps import (
    VectorRecalibrator as VectorRecalibrator,
)
from calibrant.repairs.class_recalibrator import ClassRecalibrator as ClassRecalibrator
from calibrant.repairs.class_results import (
    ClassGuarantee as ClassGuarantee,
)
from calibrant.repairs.class_results import (
    ClassRecalibratorComparison as ClassRecalibratorComparison,
)
from calibrant.repairs.class_results import (
    ClassRecalibratorScores as ClassRecalibratorScores,
)
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
from calibrant.repairs.menus import MenuRecalibrator as MenuRecalibrator
from calibrant.repairs.one_vs_rest import OneVsRestRecalibrator as OneVsRestRecalibrator
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
from calibrant.repairs.top_label import TopLabelRecalibrator as TopLabelRecalibrator

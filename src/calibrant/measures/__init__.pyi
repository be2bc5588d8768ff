from calibrant.measures.brier import brier_score as brier_score
from calibrant.measures.brier import scaled_brier_score as scaled_brier_score
from calibrant.measures.curve_results import (
    CalibrationCurve as CalibrationCurve,
)
from calibrant.measures.curve_results import (
    CurveErrors as CurveErrors,
)
from calibrant.measures.curves import (
    calibration_curve as calibration_curve,
)
from calibrant.measures.curves import (
    integrated_calibration_index as integrated_calibration_index,
)
from calibrant.measures.discrimination import auroc as auroc
from calibrant.measures.distance import distance_from_calibration as distance_from_calibration
from calibrant.measures.estimates import Estimate as Estimate
from calibrant.measures.everything import measure as measure
from calibrant.measures.expected import (
    effective_support_size as effective_support_size,
)
from calibrant.measures.expected import (
    expected_calibration_error as expected_calibration_error,
)
from calibrant.measures.groups import GroupMeasures as GroupMeasures
from calibrant.measures.hazards import cox_slope as cox_slope
from calibrant.measures.questions import (
    QuestionMeasures as QuestionMeasures,
)
from calibrant.measures.questions import (
    QuestionWorstIntervals as QuestionWorstIntervals,
)
from calibrant.measures.ratios import observed_expected_ratio as observed_expected_ratio
from calibrant.measures.results import (
    Bracket as Bracket,
)
from calibrant.measures.results import (
    CalibrationDistance as CalibrationDistance,
)
from calibrant.measures.results import (
    Measures as Measures,
)
from calibrant.measures.results import (
    Relation as Relation,
)
from calibrant.measures.results import (
    Spectrum as Spectrum,
)
from calibrant.measures.results import (
    Witness as Witness,
)
from calibrant.measures.results import (
    WorstInterval as WorstInterval,
)
from calibrant.measures.savings import (
    LargestSaving as LargestSaving,
)
from calibrant.measures.slope_results import CalibrationSlope as CalibrationSlope
from calibrant.measures.slope_results import CalibrationTests as CalibrationTests
from calibrant.measures.slope_results import ChiSquareTest as ChiSquareTest
from calibrant.measures.slopes import calibration_slope_intercept as calibration_slope_intercept
from calibrant.measures.slopes import intercept_at_unit_slope as intercept_at_unit_slope
from calibrant.measures.slopes import likelihood_ratio_tests as likelihood_ratio_tests
from calibrant.measures.threshold_results import ThresholdCalibration as ThresholdCalibration
from calibrant.measures.thresholds import threshold_calibration_error as threshold_calibration_error
from calibrant.measures.weighted import (
    bounded_variation_calibration_error as bounded_variation_calibration_error,
)
from calibrant.measures.weighted import (
    bounded_variation_spectrum as bounded_variation_spectrum,
)
from calibrant.measures.weighted import (
    bounded_variation_witness as bounded_variation_witness,
)
from calibrant.measures.weighted import (
    calibration_in_the_large as calibration_in_the_large,
)
from calibrant.measures.weighted import (
    cutoff_calibration_error as cutoff_calibration_error,
)
from calibrant.measures.weighted import (
    ks_calibration_error as ks_calibration_error,
)
from calibrant.measures.weighted import (
    smooth_calibration_error as smooth_calibration_error,
)
from calibrant.measures.weighted import (
    smooth_witness as smooth_witness,
)
from calibrant.measures.weighted import (
    weighted_calibration_error as weighted_calibration_error,
)
from calibrant.measures.weighted import (
    worst_interval as worst_interval,
)

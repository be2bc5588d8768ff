from calibrant.decisions.affine import affine_costs as affine_costs
from calibrant.decisions.benefit_results import (
    DecisionCurve as DecisionCurve,
)
from calibrant.decisions.benefit_results import (
    NetBenefit as NetBenefit,
)
from calibrant.decisions.benefits import (
    decision_curve as decision_curve,
)
from calibrant.decisions.benefits import (
    net_benefit as net_benefit,
)
from calibrant.decisions.declared import (
    certify_decisions as certify_decisions,
)
from calibrant.decisions.declared import (
    reject_option as reject_option,
)
from calibrant.decisions.declared_results import (
    DecisionCertificate as DecisionCertificate,
)
from calibrant.decisions.declared_results import (
    DecisionCertificates as DecisionCertificates,
)
from calibrant.decisions.declared_results import (
    LossTable as LossTable,
)
from calibrant.decisions.declared_results import (
    RejectOption as RejectOption,
)
from calibrant.decisions.declared_results import (
    Relabelling as Relabelling,
)
from calibrant.decisions.decompositions import (
    ScoreDecomposition as ScoreDecomposition,
)
from calibrant.decisions.decompositions import (
    score_decomposition as score_decomposition,
)
from calibrant.decisions.everything import (
    Decision as Decision,
)
from calibrant.decisions.everything import (
    Decisions as Decisions,
)
from calibrant.decisions.everything import (
    GroupDecisions as GroupDecisions,
)
from calibrant.decisions.everything import (
    decide as decide,
)
from calibrant.decisions.gaps import (
    best_threshold as best_threshold,
)
from calibrant.decisions.gaps import (
    risk_gap as risk_gap,
)
from calibrant.decisions.gaps import (
    risk_gap_curve as risk_gap_curve,
)
from calibrant.decisions.gaps import (
    sign_testing_gap as sign_testing_gap,
)
from calibrant.decisions.guarantees import (
    DecisionGuarantee as DecisionGuarantee,
)
from calibrant.decisions.guarantees import (
    decision_guarantee as decision_guarantee,
)
from calibrant.decisions.results import (
    BestThreshold as BestThreshold,
)
from calibrant.decisions.results import (
    DecisionRisk as DecisionRisk,
)
from calibrant.decisions.results import (
    DecisionRule as DecisionRule,
)
from calibrant.decisions.results import (
    MurphyCurve as MurphyCurve,
)
from calibrant.decisions.results import (
    RiskGap as RiskGap,
)
from calibrant.decisions.results import (
    RiskGapCurve as RiskGapCurve,
)
from calibrant.decisions.risks import (
    decision_risk as decision_risk,
)
from calibrant.decisions.risks import (
    murphy_curve as murphy_curve,
)
from calibrant.decisions.risks import (
    sign_testing_risk as sign_testing_risk,
)
from calibrant.decisions.scores import SchervishMeasure as SchervishMeasure
from calibrant.decisions.two_actions import (
    TwoActionQuestion as TwoActionQuestion,
)
from calibrant.decisions.two_actions import (
    two_action_question as two_action_question,
)
from calibrant.decisions.verification import (
    BrierDecomposition as BrierDecomposition,
)
from calibrant.decisions.verification import (
    brier_decomposition as brier_decomposition,
)

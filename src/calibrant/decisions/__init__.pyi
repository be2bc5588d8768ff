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
    NetBenefit as NetBenefit,
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
    net_benefit as net_benefit,
)
from calibrant.decisions.risks import (
    sign_testing_risk as sign_testing_risk,
)
from calibrant.decisions.scores import SchervishMeasure as SchervishMeasure

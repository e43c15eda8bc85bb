"""Who wins the race: learning times of candidate gatings, and where the winner changes.

The package is not called `contest`, so that `nr.contest` remains the function.
"""

from neuralrace.contests.contest import Contest as Contest
from neuralrace.contests.contest import contest as contest
from neuralrace.contests.joint import Joint as Joint
from neuralrace.contests.leads import Lead as Lead
from neuralrace.contests.leads import leads as leads
from neuralrace.contests.patterns import PatternRanking as PatternRanking
from neuralrace.contests.patterns import growth_rates as growth_rates
from neuralrace.contests.patterns import rank_patterns as rank_patterns
from neuralrace.contests.phases import PhaseDiagram as PhaseDiagram
from neuralrace.contests.phases import phase_diagram as phase_diagram
from neuralrace.contests.times import Candidates as Candidates
from neuralrace.contests.times import Entrant as Entrant
from neuralrace.contests.times import expected_start as expected_start
from neuralrace.contests.verdicts import Check as Check
from neuralrace.contests.verdicts import Kept as Kept

__all__ = [
    "Candidates",
    "Check",
    "Contest",
    "Entrant",
    "Joint",
    "Kept",
    "Lead",
    "PatternRanking",
    "PhaseDiagram",
    "contest",
    "expected_start",
    "growth_rates",
    "leads",
    "phase_diagram",
    "rank_patterns",
]

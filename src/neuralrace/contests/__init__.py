"""Who wins the race: learning times of gatings, paths of one network, and where winners change.

The package is not called `contest`, so that `nr.contest` remains the function.
"""

from neuralrace.contests.contest import Contest, contest
from neuralrace.contests.joint import Joint
from neuralrace.contests.outcome import Lead, leads
from neuralrace.contests.paths import PathRace
from neuralrace.contests.patterns import PatternRanking, growth_rates, rank_patterns
from neuralrace.contests.phases import PhaseDiagram, phase_diagram
from neuralrace.contests.times import Candidates, Entrant, expected_start, moments
from neuralrace.contests.verdicts import Check, Kept

__all__ = [
    "Candidates",
    "Check",
    "Contest",
    "Entrant",
    "Joint",
    "Kept",
    "Lead",
    "PathRace",
    "PatternRanking",
    "PhaseDiagram",
    "contest",
    "expected_start",
    "growth_rates",
    "leads",
    "moments",
    "phase_diagram",
    "rank_patterns",
]

"""Who wins the race: learning times of candidate gatings, and where the winner changes.

The room is not called `contest`, so that importing it leaves `nr.contest` the function.
"""

from neuralrace.contests.contest import Contest as Contest
from neuralrace.contests.contest import contest as contest
from neuralrace.contests.joint import Joint as Joint
from neuralrace.contests.patterns import PatternRanking as PatternRanking
from neuralrace.contests.patterns import rank_patterns as rank_patterns
from neuralrace.contests.phases import PhaseDiagram as PhaseDiagram
from neuralrace.contests.phases import phase_diagram as phase_diagram

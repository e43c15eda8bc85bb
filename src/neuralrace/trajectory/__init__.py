"""What any run or solution returns; save, load, compare, join."""

from neuralrace.trajectory.compare import Comparison as Comparison
from neuralrace.trajectory.compare import compare as compare
from neuralrace.trajectory.names import check_name as check_name
from neuralrace.trajectory.run import Trajectory as Trajectory
from neuralrace.trajectory.run import join as join
from neuralrace.trajectory.run import load as load
from neuralrace.trajectory.run import member as member

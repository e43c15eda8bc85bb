"""What any run or solution returns; save, load, select, combine, compare."""

from neuralrace.trajectory.compare import Comparison as Comparison
from neuralrace.trajectory.compare import compare as compare
from neuralrace.trajectory.compare import momentum_error as momentum_error
from neuralrace.trajectory.curves import crossing_time as crossing_time
from neuralrace.trajectory.curves import half_time as half_time
from neuralrace.trajectory.files import load as load
from neuralrace.trajectory.files import save_table as save_table
from neuralrace.trajectory.labelled import concat as concat
from neuralrace.trajectory.labelled import join as join
from neuralrace.trajectory.metadata import check_name as check_name
from neuralrace.trajectory.metadata import versions as versions
from neuralrace.trajectory.run import Trajectory as Trajectory
from neuralrace.trajectory.run import check_single as check_single

__all__ = [
    "Comparison",
    "Trajectory",
    "compare",
    "concat",
    "crossing_time",
    "half_time",
    "join",
    "load",
    "momentum_error",
    "save_table",
    "versions",
]

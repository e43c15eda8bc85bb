"""Gated deep linear networks, the neural race reduction, and ReLU networks as gated ones.

`import neuralrace as nr` makes every public name available; each is imported where it is first
used, so that the import itself, and commands that need no arrays, stay quick.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from neuralrace import analysis as analysis
    from neuralrace import behaviour as behaviour
    from neuralrace import compression as compression
    from neuralrace import contests as contests
    from neuralrace import dataset as dataset
    from neuralrace import dynamics as dynamics
    from neuralrace import explanation as explanation
    from neuralrace import explorer as explorer
    from neuralrace import linear as linear
    from neuralrace import losses as losses
    from neuralrace import plot as plot
    from neuralrace import reduction as reduction
    from neuralrace import reln as reln
    from neuralrace import report as report
    from neuralrace import statistics as statistics
    from neuralrace import study as study
    from neuralrace import sweeps as sweeps
    from neuralrace import tasks as tasks
    from neuralrace import trajectory as trajectory
    from neuralrace.architecture import Architecture as Architecture
    from neuralrace.architecture import Path as Path
    from neuralrace.compression import compress as compress
    from neuralrace.contests import Contest as Contest
    from neuralrace.contests import PhaseDiagram as PhaseDiagram
    from neuralrace.contests import contest as contest
    from neuralrace.contests import phase_diagram as phase_diagram
    from neuralrace.contests import rank_patterns as rank_patterns
    from neuralrace.dataset import Dataset as Dataset
    from neuralrace.dataset import pathways as pathways
    from neuralrace.dynamics import StoppedError as StoppedError
    from neuralrace.dynamics import flow as flow
    from neuralrace.dynamics import flow_ensemble as flow_ensemble
    from neuralrace.dynamics import train as train
    from neuralrace.dynamics import train_ensemble as train_ensemble
    from neuralrace.errors import NeuralRaceError as NeuralRaceError
    from neuralrace.explanation import explain as explain
    from neuralrace.explanation import predict as predict
    from neuralrace.explorer import explore as explore
    from neuralrace.gdln import GDLN as GDLN
    from neuralrace.gdln import Network as Network
    from neuralrace.interop import TorchRecorder as TorchRecorder
    from neuralrace.interop import from_equinox as from_equinox
    from neuralrace.interop import from_file as from_file
    from neuralrace.interop import from_flax as from_flax
    from neuralrace.interop import from_layers as from_layers
    from neuralrace.interop import from_recording as from_recording
    from neuralrace.interop import from_torch as from_torch
    from neuralrace.interop import live as live
    from neuralrace.interop import save_weights as save_weights
    from neuralrace.interop import to_torch as to_torch
    from neuralrace.learned import LearnedGates as LearnedGates
    from neuralrace.reduction import Race as Race
    from neuralrace.reduction import reduce as reduce
    from neuralrace.relu import ReLUNetwork as ReLUNetwork
    from neuralrace.statistics import PathStatistics as PathStatistics
    from neuralrace.statistics import path_statistics as path_statistics
    from neuralrace.study import Study as Study
    from neuralrace.sweeps import Sweep as Sweep
    from neuralrace.sweeps import open_sweep as open_sweep
    from neuralrace.sweeps import sweep as sweep
    from neuralrace.trajectory import Trajectory as Trajectory
    from neuralrace.trajectory import compare as compare
    from neuralrace.trajectory import concat as concat
    from neuralrace.trajectory import join as join
    from neuralrace.trajectory import load as load

_HOME = {
    "Architecture": "architecture",
    "Path": "architecture",
    "compress": "compression",
    "Contest": "contests",
    "PhaseDiagram": "contests",
    "contest": "contests",
    "phase_diagram": "contests",
    "rank_patterns": "contests",
    "Dataset": "dataset",
    "pathways": "dataset",
    "StoppedError": "dynamics",
    "flow": "dynamics",
    "flow_ensemble": "dynamics",
    "train": "dynamics",
    "train_ensemble": "dynamics",
    "NeuralRaceError": "errors",
    "explain": "explanation",
    "predict": "explanation",
    "explore": "explorer",
    "GDLN": "gdln",
    "Network": "gdln",
    "LearnedGates": "learned",
    "TorchRecorder": "interop",
    "from_equinox": "interop",
    "from_file": "interop",
    "from_flax": "interop",
    "from_layers": "interop",
    "from_recording": "interop",
    "from_torch": "interop",
    "live": "interop",
    "save_weights": "interop",
    "to_torch": "interop",
    "Race": "reduction",
    "reduce": "reduction",
    "ReLUNetwork": "relu",
    "PathStatistics": "statistics",
    "path_statistics": "statistics",
    "Study": "study",
    "Sweep": "sweeps",
    "open_sweep": "sweeps",
    "sweep": "sweeps",
    "Trajectory": "trajectory",
    "compare": "trajectory",
    "concat": "trajectory",
    "join": "trajectory",
    "load": "trajectory",
}

_ROOMS = (
    "analysis",
    "behaviour",
    "compression",
    "contests",
    "dataset",
    "dynamics",
    "explanation",
    "explorer",
    "linear",
    "losses",
    "plot",
    "reduction",
    "reln",
    "report",
    "statistics",
    "study",
    "sweeps",
    "tasks",
    "trajectory",
)

__all__ = [*_HOME, *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return _import_module(f"neuralrace.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'neuralrace' has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(f"neuralrace.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Gated deep linear networks, the neural race reduction, and ReLU networks as gated ones.

`import neuralrace as nr` makes every public name available; each is imported where it is first
used, so that the import itself, and commands that need no arrays, stay quick.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from neuralrace.architecture import Architecture as Architecture
    from neuralrace.architecture import Path as Path
    from neuralrace.dataset import Dataset as Dataset
    from neuralrace.dataset import GateClasses as GateClasses
    from neuralrace.dataset import pathways as pathways
    from neuralrace.errors import NeuralRaceError as NeuralRaceError
    from neuralrace.gdln import GDLN as GDLN
    from neuralrace.gdln import Network as Network
    from neuralrace.relu import ReLUNetwork as ReLUNetwork

_HOME = {
    "Architecture": "architecture",
    "Path": "architecture",
    "Dataset": "dataset",
    "GateClasses": "dataset",
    "pathways": "dataset",
    "NeuralRaceError": "errors",
    "GDLN": "gdln",
    "Network": "gdln",
    "ReLUNetwork": "relu",
}

__all__ = list(_HOME)  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'neuralrace' has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(f"neuralrace.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

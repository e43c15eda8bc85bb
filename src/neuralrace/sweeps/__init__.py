"""Sweeps: a function over a grid of cells, in this process or on a cluster, that can be resumed.

`nr.sweep` computes batches of cells that are fixed by the sweep alone, and keeps them as one
labelled dataset. The same call continues after a kill at any moment.
"""

from neuralrace.sweeps.cell_file import CellFile as CellFile
from neuralrace.sweeps.cells import Failure as Failure
from neuralrace.sweeps.definition import Definition as Definition
from neuralrace.sweeps.store import Status as Status
from neuralrace.sweeps.store import status as status
from neuralrace.sweeps.sweep import Sweep as Sweep
from neuralrace.sweeps.sweep import open_sweep as open_sweep
from neuralrace.sweeps.sweep import sweep as sweep
from neuralrace.sweeps.trained import train_relu as train_relu

__all__ = [
    "CellFile",
    "Definition",
    "Failure",
    "Status",
    "Sweep",
    "open_sweep",
    "status",
    "sweep",
    "train_relu",
]

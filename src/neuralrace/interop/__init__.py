"""Networks and runs from PyTorch, Equinox, Flax and files, and back."""

from neuralrace.interop.files import from_file, save_weights
from neuralrace.interop.jax_in import from_equinox, from_flax
from neuralrace.interop.layers import from_layers
from neuralrace.interop.recorder import TorchRecorder, from_recording
from neuralrace.interop.torch_in import from_torch
from neuralrace.interop.torch_out import to_torch
from neuralrace.interop.watched import Expected, Watched
from neuralrace.interop.watching import Live, live

__all__ = [
    "Expected",
    "Live",
    "TorchRecorder",
    "Watched",
    "from_equinox",
    "from_file",
    "from_flax",
    "from_layers",
    "from_recording",
    "from_torch",
    "live",
    "save_weights",
    "to_torch",
]

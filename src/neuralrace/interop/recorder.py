"""Weights written to disk while a model trains in PyTorch, and the run they make."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np

from neuralrace.checks import file_path, writable_folder, write_whole
from neuralrace.dataset import Sampled
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, require
from neuralrace.gdln import Network
from neuralrace.interop.files import read_bytes, read_network, save_weights
from neuralrace.interop.runs import Moment, Trained, imported_run
from neuralrace.interop.torch_in import (
    TorchModule,
    arrays_of,
    check_against,
    network_of_torch,
)
from neuralrace.interop.torch_out import known_network
from neuralrace.losses import SampleLoss
from neuralrace.trajectory import Trajectory
from neuralrace.types import Count, Whole

ABOUT = "recording.json"
"""The file of a recording that says what it is of."""

FORMAT = "neuralrace recording 1"
"""The first entry of that file."""


class TorchRecorder:
    """Writes the weights of a model to disk while it trains in your own loop.

    The initial weights are written at once, then those after every `every` calls of `step`: one
    small `.safetensors` file each, written whole or not at all. Nothing is kept in memory.
    `nr.from_recording(folder, data)` reads them as a run. Dropout may be switched on, and the model
    may be on any device: weights are copied from there.

    **Arguments:** `model`, as in `nr.from_torch`; `data`, on which the run will be looked at;
    `every`, the number of steps between two records; `folder`, where they go; `resume_at`, the
    step at which a loop that was interrupted goes on: records after it are dropped, since the loop
    repeats them. `leak` as in `nr.from_torch`.

    ```python
    >>> import tempfile, numpy as np, neuralrace as nr
    >>> class Model:  # stands in for a model of torch.nn, such as nn.Linear(2, 1)
    ...     training, _modules, _parameters = True, {}, {}
    ...     def __init__(self): self.w = np.zeros((1, 2))
    ...     def state_dict(self): return {"weight": self.w}
    ...     def __call__(self, x): return x @ self.w.T
    >>> Linear = type("Linear", (Model,), {})
    >>> model, folder = Linear(), tempfile.mkdtemp()
    >>> data = nr.Dataset({"x": [[1.0, 1.0]]}, {"y": [[1.0]]})
    >>> recorder = nr.TorchRecorder(model, data, every=2, folder=folder)
    >>> for _ in range(4):
    ...     model.w += 0.1  # loss.backward(); optimizer.step()
    ...     recorder.step()
    >>> net, run = nr.from_recording(folder, data)
    >>> run.steps.tolist(), run.outputs["y"][:, 0, 0].round(3).tolist()
    ([0, 2, 4], [0.0, 0.4, 0.8])

    ```
    """

    @door
    def __init__(
        self,
        model: TorchModule,
        data: Sampled,
        every: Count = 50,
        *,
        folder: str | os.PathLike[str],
        resume_at: Whole | None = None,
        leak: float | None = None,
    ) -> None:
        self.every = int(every)
        self.folder = file_path(folder, "folder='recording'")
        self._model, self._leak, self._data = model, leak, data
        net, weights = self._now()
        if not has_active_dropout(model):
            check_against(model, net, weights, data)
        self.net: Network = known_network(net, "are recorded", "use Linear and ReLU")
        self.count = 0
        writable_folder(self.folder)
        if resume_at is not None:
            self._resume(int(resume_at), weights)
        elif (self.folder / ABOUT).exists() or records(self.folder):
            raise NeuralRaceError(
                f"the folder {str(self.folder)!r} has a recording already",
                got=f"{len(records(self.folder))} records",
                wanted="an empty folder",
                fix="choose another folder, or go on with resume_at=<step>",
            )
        else:
            about = {"format": FORMAT, "every": self.every, "data": data.digest()}
            write_whole(self.folder / ABOUT, json.dumps(about).encode())
            self.record()

    def step(self) -> None:
        """Call this after every step of the optimizer."""
        self.count += 1
        if self.count % self.every == 0:
            self.record()

    def record(self) -> Path:
        """Write the weights now, whatever the step; useful after the last one."""
        net, weights = self._now()
        require(
            net == self.net,
            "the model changed its layers while it was recorded",
            got=f"sizes {dict(net.arch.sizes)}",
            wanted=f"sizes {dict(self.net.arch.sizes)}",
            fix="record every model into its own folder",
        )
        return save_weights(net, weights, self.folder / f"step-{self.count:09d}.safetensors")

    def _now(self) -> tuple[Network, dict[str, np.ndarray]]:
        arrays = arrays_of(self._model.state_dict(), "the model", anywhere=True)
        return network_of_torch(self._model, arrays, self._leak, self._data, training=True)

    def _resume(self, step: int, weights: dict[str, np.ndarray]) -> None:
        """Go on from a step; what was recorded there must be what the model has now."""
        there = records(self.folder)
        _about(self.folder)
        if not there or min(there) > step:
            raise NeuralRaceError(
                f"there is no recording up to step {step} to continue",
                got=f"records of steps {sorted(there)[:5]}",
                wanted="records up to the step at which training goes on",
                fix="leave out resume_at for a new recording",
            )
        before = max(k for k in there if k <= step)
        net, recorded = read_network(there[before], None)
        same = net == self.net and (
            before < step or all(np.array_equal(recorded[e], w) for e, w in weights.items())
        )
        require(
            same,
            f"the model is not what was recorded at step {before}",
            got="other layers" if net != self.net else "other weights",
            wanted="the model with the weights of that step",
            fix="load the checkpoint of that step into the model before you make the recorder",
        )
        for k, path in there.items():
            if k > step:
                path.unlink()
        self.count = step


@door
def from_recording(
    folder: str | os.PathLike[str],
    data: Sampled,
    *,
    loss: str | SampleLoss = "squared",
    learning_rate: float | None = None,
    batch_size: Count | None = None,
    other_data: bool = False,
) -> tuple[Network, Trajectory]:
    """The run that a `TorchRecorder` wrote to a folder.

    **Arguments:** `data`, that of the recorder; with `other_data=True` any other that fits the
    network, such as a part of it; `loss`, `learning_rate` and `batch_size` as in
    `nr.from_torch`.

    **Returns:** the network and its `Trajectory`, whose time is the number of the step. An example
    is in `TorchRecorder`.

    ```python
    >>> import neuralrace as nr
    >>> try:
    ...     nr.from_recording("no such folder", nr.tasks.xor())
    ... except nr.NeuralRaceError as error:
    ...     print(error.what)
    'no such folder' has no recording

    ```
    """
    place = file_path(folder, "nr.from_recording('recording', data)")
    about, there = _about(place), records(place)
    if not other_data and about.get("data") != data.digest():
        raise NeuralRaceError(
            "data is not that of the recording",
            got=f"data with the digest {data.digest()}",
            wanted=f"{about.get('data')}",
            fix="pass the dataset of the recorder, or other_data=True to look at the run on others",
        )
    if not there:
        raise _no_recording(place)
    steps = sorted(there)
    moments = [Moment(f"the record of step {k}", *read_network(there[k], None)) for k in steps]
    return imported_run(moments, data, steps, Trained("PyTorch", loss, learning_rate, batch_size))


def records(folder: Path) -> dict[int, Path]:
    """The files of a recording by step."""
    found = {}
    for path in folder.glob("step-*.safetensors"):
        match = re.fullmatch(r"step-(\d{9,})\.safetensors", path.name)
        if match:
            found[int(match[1])] = path
    return found


def _about(folder: Path) -> dict[str, object]:
    """What the folder says it is, or an error."""
    if not (folder / ABOUT).is_file():
        raise _no_recording(folder)
    try:
        about = json.loads(read_bytes(folder / ABOUT))
    except ValueError:
        about = None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise _no_recording(folder)
    return about


def _no_recording(folder: Path) -> NeuralRaceError:
    return NeuralRaceError(
        f"{str(folder)!r} has no recording",
        got="no such folder" if not folder.is_dir() else f"no valid {ABOUT} with records",
        wanted="a folder that a TorchRecorder wrote",
        fix="make one with nr.TorchRecorder(model, data, folder=…); for single files nr.from_file",
    )


def has_active_dropout(model: TorchModule) -> bool:
    """Whether the outputs of the model depend on chance now."""
    own = "Dropout" in type(model).__name__ and model.training and getattr(model, "p", 0.5) > 0
    return own or any(has_active_dropout(m) for m in model._modules.values() if m is not None)

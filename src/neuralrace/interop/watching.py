"""Theory over a running training: what the user's process does, which is little."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from neuralrace.checks import file_path, writable_folder, write_whole
from neuralrace.dataset import Sampled
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, require, warn_user
from neuralrace.gdln import Network
from neuralrace.interop.files import save_weights
from neuralrace.interop.recorder import ABOUT, FORMAT, has_active_dropout, records
from neuralrace.interop.torch_in import (
    TorchModule,
    arrays_of,
    check_against,
    network_of_torch,
)
from neuralrace.interop.torch_out import known_network
from neuralrace.interop.watch import END, PAGE, PLAN, RESULT, ROWS, TOLD, Plan
from neuralrace.interop.watched import COLUMNS, Watched
from neuralrace.tolerances import DENSE, LIVE_SHARE
from neuralrace.types import Count, Positive
from neuralrace.weights import WeightsLike, checked_weights

Reader = Callable[[WeightsLike | None, int], "tuple[Network, WeightsLike] | None"]
"""The network and its weights at a step, from what the loop passed; None where nobody knows."""

SECOND = 1.0
"""A picture in a notebook is drawn again at most this often, in seconds."""


@door
def live(
    model: TorchModule | Network,
    data: Sampled,
    every: Count | None = None,
    *,
    weights: WeightsLike | None = None,
    learning_rate: Positive | None = None,
    steps: Count | None = None,
    loss: str = "squared",
    leak: float | None = None,
    predict: bool = True,
    folder: str | os.PathLike[str] | None = None,
    log: object = None,
) -> Live:
    """Theory over a running training: the measured loss on the predicted one, step by step.

    Call `step()` after every step of the optimizer. From time to time it writes the weights to a
    folder. A second process reads them there, computes once what theory expects of this network
    from its first weights, and keeps a page that shows both, `page`; in a notebook the picture is
    drawn below the cell. Nothing here raises into your loop: what fails is said once, by a warning,
    and recording goes on.

    *What is expected.* Of a ReLU network with one hidden layer, the wide limit between simulated
    networks of its width and its spread of first weights (`nr.predict`). Of linear, gated and
    linear recurrent networks, the race from these very weights (`nr.reduce`). Of any other one
    nothing, and a sentence says why. It is that of plain gradient descent on all samples with the
    loss ½⟨‖y − ŷ‖²⟩: `learning_rate` is the rate of that loss, as in `nr.from_torch`.

    **Arguments:** `model`, as in `nr.from_torch`, or a network of this package, whose first
    `weights` are then passed; `data`, on which the loss is measured; `every`, the number of steps
    between two records, by default as many as keep the time spent here below 5 % of the time
    since the start, or of the whole training at first, when more is seen; `learning_rate` and
    `steps`, how long the training will last, without which nothing is predicted; `loss`,
    `"squared"` or `"cross_entropy"`; `leak` as in `nr.from_torch`;
    `predict=False` leaves the prediction out; `folder`, where everything goes, a new one by
    default; `log`, where every row of the table goes, too: a `SummaryWriter` of TensorBoard (or
    whatever has `add_scalar`), a run of wandb (whatever has `log`), a path that ends in `.csv`, or
    a function of a dictionary. Rows that are logged before the prediction is there lack it; the
    table of the result is complete.

    **Returns** a `Live`. `close()` waits until the page is complete.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> data, net = nr.tasks.extended_xor(0.4), nr.ReLUNetwork((3, 16, 1))
    >>> weights = net.init(0, scale=0.01)
    >>> watching = nr.live(net, data, every=20, weights=weights, predict=False)
    >>> for _ in range(3):
    ...     weights = nr.train(net, weights, data, learning_rate=0.1, steps=20).final
    ...     watching.step(weights=weights, by=20)
    >>> watching.close().frame()["step"].tolist()
    [0, 20, 40, 60]

    ```
    """
    return Live(
        model, data, every, weights, learning_rate, steps, loss, leak, predict, folder, log
    )  # fmt: skip


class Live:
    """A training that is watched, see `live`.

    `folder` holds the records, `page` is the page to open in a browser, `count` the step. An
    instance may be the `callback` of `nr.train`, which passes the loss alone.

    ```python
    >>> import neuralrace as nr
    >>> data, net = nr.tasks.extended_xor(0.4), nr.ReLUNetwork((3, 16, 1))
    >>> weights = net.init(0, scale=0.01)
    >>> watching = nr.live(net, data, every=20, weights=weights, predict=False)
    >>> run = nr.train(net, weights, data, learning_rate=0.1, steps=20, callback=watching)
    >>> isinstance(watching, nr.interop.Live), watching.close().steps.tolist()
    (True, [0, 20])

    ```
    """

    def __init__(
        self,
        model: TorchModule | Network,
        data: Sampled,
        every: Count | None,
        weights: WeightsLike | None,
        learning_rate: Positive | None,
        steps: Count | None,
        loss: str,
        leak: float | None,
        predict: bool,
        folder: str | os.PathLike[str] | None,
        log: object,
    ) -> None:
        require(
            loss in ("squared", "cross_entropy"),
            "loss is not one that is known here",
            got=f"loss = {loss!r:.60}",
            wanted="loss='squared' or loss='cross_entropy'",
            fix="pass your own loss to step(loss), and leave this one out",
        )
        self._read, why = _reader(model, data, weights, leak)
        self._log = _logger(log)
        self.folder = (
            Path(tempfile.mkdtemp(prefix="neuralrace-live-"))
            if folder is None
            else file_path(folder, "folder='live'")
        )
        writable_folder(self.folder)
        require(
            not (self.folder / PLAN).exists() and not records(self.folder),
            "folder holds a recording already",
            got=str(self.folder),
            wanted="an empty folder",
            fix="choose another folder, or leave folder out",
        )
        self.every, self.page, self.count, self._steps = every, self.folder / PAGE, 0, steps
        self._failures: set[str] = set()
        self._passed, self._shown, self._drawn = 0, None, 0.0
        self._latest: tuple[float | None, WeightsLike | None] = (None, None)
        self._first: tuple[float, int] | None = None
        about = {"format": FORMAT, "every": every or 0, "data": data.digest()}
        write_whole(self.folder / ABOUT, json.dumps(about).encode())
        Plan(data, loss, learning_rate, steps, predict, why).save(self.folder / PLAN)
        self._begun, self._spent, self._last, self._cost = time.perf_counter(), 0.0, 0, 0.0
        self._record(None, None)
        self._process = _watcher(self.folder)

    def step(self, loss: Any = None, *, weights: WeightsLike | None = None, by: int = 1) -> None:
        """Call this after every step of the optimizer, or after `by` steps.

        `loss`, a number or a tensor with one, is what your loop computed; `weights` those of a
        network of this package, which its model does not hold.
        """
        begun = time.perf_counter()
        try:
            self.count += by
            self._latest = (loss if isinstance(loss, float | int) else None, weights)
            if self._is_due(begun):
                self._last = self.count  # whatever fails below: the next record is not due yet
                self._record(loss, weights)
                self._pass_on()
                self._cost = max(self._cost, time.perf_counter() - begun)
        except Exception as error:  # whatever fails here must not end the user's training
            self._failed(error)
        finally:
            self._spent += time.perf_counter() - begun

    def __call__(self, step: int, loss: float) -> None:
        """The form of a `callback` of `nr.train`."""
        self.step(loss, by=int(step) - self.count)

    @property
    def overhead(self) -> float:
        """The part of the time since the start that was spent here."""
        return self._spent / max(time.perf_counter() - self._begun, 1e-9)

    def close(self, wait: bool = True) -> Watched | None:
        """The training has ended. Waits until the last record is drawn, and returns the result.

        The second process ends by itself; with `wait=False` this does not wait for it, and returns
        None. The prediction is waited for, too.
        """
        try:
            if self._last != self.count:
                self._last = self.count
                self._record(*self._latest)
            (self.folder / END).touch()
            if not wait:
                return None
            self._process.wait()
            self._pass_on(last=True)
        except Exception as error:
            self._failed(error)
        return self.result()

    def result(self) -> Watched:
        """What is known by now, as a table, sentences and a picture."""
        path = self.folder / RESULT
        return Watched.load(path) if path.exists() else Watched({})

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *error: object) -> None:
        self.close(wait=error[0] is None)

    def lightning(self) -> Any:
        """A callback for a `Trainer` of Lightning, which has to be installed."""
        base = _installed("lightning.pytorch", "pytorch_lightning").Callback
        return type(
            "LiveCallback", (base,),
            {
                "on_train_batch_end": lambda _, trainer, module, outputs, *rest: self.step(
                    outputs.get("loss") if isinstance(outputs, Mapping) else outputs
                ),
                "on_train_end": lambda *_: self.close(),
            },
        )()  # fmt: skip

    def transformers(self) -> Any:
        """A callback for a `Trainer` of Hugging Face's transformers, which has to be installed."""
        base = _installed("transformers").TrainerCallback
        return type(
            "LiveCallback", (base,),
            {
                "on_step_end": lambda *_, **rest: self.step(),
                "on_train_end": lambda *_, **rest: self.close() and None,
            },
        )()  # fmt: skip

    def _is_due(self, now: float) -> bool:
        if self.every is not None:
            return self.count // self.every > self._last // self.every
        so_far, spent = now - self._begun, self._spent + self._cost
        if self._first is None:  # warm: what comes before tells nothing of the steps to come
            self._first = now - self._spent, self.count
        warm, count = self._first
        lasts = (now - self._spent - warm) / max(self.count - count, 1) * (self._steps or 0)
        early = self.count > DENSE * self._last and spent <= LIVE_SHARE / 2 * lasts
        return early or spent <= LIVE_SHARE * so_far

    def _record(self, loss: Any, weights: WeightsLike | None) -> None:
        """Write the weights, and what the loop said, to the folder."""
        said = {"step": self.count, "seconds": time.perf_counter() - self._begun}
        if loss is not None:
            said["told"] = float(loss.detach() if hasattr(loss, "detach") else loss)
        known = None if self._read is None else self._read(weights, self.count)
        if known is not None:
            save_weights(*known, self.folder / f"step-{self.count:09d}.safetensors")
        with (self.folder / TOLD).open("a") as file:
            file.write(json.dumps(said) + "\n")

    def _pass_on(self, last: bool = False) -> None:
        """Send new rows to the log, and the picture to the notebook."""
        path = self.folder / ROWS
        if self._process.poll() not in (None, 0):
            raise RuntimeError(f"the watching process ended; see {self.folder / 'watch.log'}")
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        whole = [line for line in lines if line.endswith(b"\n")]
        for line in whole[self._passed :]:
            self._passed += 1
            self._log(json.loads(line))
        now = time.perf_counter()
        if len(whole) and (last or now - self._drawn > SECOND):
            self._drawn = now
            self._shown = _show(self.page, self._shown)

    def _failed(self, error: Exception) -> None:
        """Say once what failed; the training goes on, and so does recording."""
        said = f"{type(error).__name__}: {error}".partition("\n")[0]
        if said not in self._failures:
            self._failures.add(said)
            warn_user(f"nr.live: step {self.count}: {said}. The training goes on.")


def _reader(
    model: TorchModule | Network, data: Sampled, weights: WeightsLike | None, leak: float | None
) -> tuple[Reader | None, str]:
    """How to read the weights of the model; where they cannot be read, None and the reason."""
    if isinstance(model, Network):
        if weights is None:
            raise NeuralRaceError(
                "weights are missing: a network of this package holds none",
                got="weights = None",
                wanted="its first weights, a matrix for every edge",
                fix="weights = net.init(0, scale=0.01); nr.live(net, data, weights=weights)",
            )
        known_network(model, "are watched", "use nr.train's callback for others")
        return _of_ours(model, checked_weights(model.arch, weights)), ""
    torch = lambda now, step: network_of_torch(
        model, arrays_of(model.state_dict(), "the model", anywhere=True), leak, data, training=True
    )
    try:
        net, first = torch(None, 0)
        known_network(net, "are watched", "")
        if not has_active_dropout(model):
            check_against(model, net, first, data)
    except NeuralRaceError as error:
        return None, f"the model cannot be read: {error.what} (got: {error.got})"
    return torch, ""


def _of_ours(net: Network, first: WeightsLike) -> Reader:
    """Reads a network of this package, which has its first weights and those that are passed."""

    def read(now: WeightsLike | None, step: int) -> tuple[Network, WeightsLike] | None:
        there = first if step == 0 else now
        return None if there is None else (net, there)

    return read


def _logger(log: Any) -> Callable[[dict[str, float]], object]:
    """How a row of the table is logged, by what the object can do."""
    numbers = lambda row: {f"neuralrace/{k}": v for k, v in row.items() if k != "step"}
    if log is None:
        return lambda row: None
    if isinstance(log, str | os.PathLike):
        path = file_path(log, "log='live.csv'")
        return lambda row: _append(path, row)
    if hasattr(log, "add_scalar"):
        return lambda row: [log.add_scalar(k, v, int(row["step"])) for k, v in numbers(row).items()]
    if hasattr(log, "log"):
        return lambda row: log.log({"neuralrace/step": row["step"], **numbers(row)})
    if callable(log):
        return log
    raise NeuralRaceError(
        "log is not something that numbers can be sent to",
        got=type(log).__name__,
        wanted="a SummaryWriter, a wandb run, a path that ends in .csv, or a function",
        fix="log='live.csv'",
    )


def _append(path: Path, row: Mapping[str, float]) -> None:
    import pandas

    table = pandas.DataFrame([row], columns=[*COLUMNS])
    table.to_csv(path, mode="a", header=not path.exists(), index=False)


def _watcher(folder: Path) -> subprocess.Popen[bytes]:
    """The second process. It computes on the CPU, behind everything else."""
    run = "from neuralrace.interop.watch import main; main()"
    command = [sys.executable, "-c", run, str(folder), str(os.getpid())]
    source = str(Path(__file__).parents[2])
    paths = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": paths, "MPLBACKEND": "agg"}
    with (folder / "watch.log").open("wb") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )


def _show(page: Path, shown: Any) -> Any:
    """Draw the page in a notebook, in the place where it was drawn before; nothing elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or getattr(shell, "kernel", None) is None or not page.exists():
        return shown
    display = ipython.display  # type: ignore[union-attr]
    body = display.HTML(page.read_text().partition("<body>")[2].partition("</body>")[0])
    if shown is None:
        return display.display(body, display_id=True)
    shown.update(body)
    return shown


def _installed(*names: str) -> Any:
    from importlib import import_module

    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise NeuralRaceError(
        f"{names[0]} is not installed",
        got="an ImportError",
        wanted=" or ".join(names),
        fix="install it, or call step() in your own callback",
    )

"""What several answers share: the contest, the trained networks, the prediction; each made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, final

import jax
import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.contests import Contest, contest
from neuralrace.dataset import Dataset
from neuralrace.dynamics import train, train_ensemble
from neuralrace.errors import check_kind
from neuralrace.gdln import GDLN, Network
from neuralrace.reduction import Race, reduce
from neuralrace.reln import Discovery, discover, evidence
from neuralrace.study.build import UNGATED, Problem
from neuralrace.study.options import (
    contest_options,
    discover_options,
    learning_rate,
    plain,
    training_options,
)
from neuralrace.text import numbered
from neuralrace.trajectory import Trajectory, concat

TRAINED = ("train", "discover", "certify", "explain")
"""Questions for which ReLU networks are trained."""

NEED_WEIGHTS = ("discover", "explain")
"""Questions that look at the weights of the ReLU networks over time."""


@final
class Work:
    """The computations of one study, each made when it is first asked for.

    `problem` is what `Study.check` returns.

    ```python
    >>> import neuralrace as nr
    >>> study = nr.Study.of(questions=["contest"], task={"builtin": "xor"},
    ...                     gatings={"xor": {"each": "sample"}})
    >>> nr.study.Work(study.check()).contest.winner
    'xor'

    ```
    """

    def __init__(
        self,
        problem: Problem,
        tell: Callable[[str], None] = lambda line: None,
        seeds: list[int] | None = None,
        relu: Trajectory | None = None,
        *,
        reducing: Callable[..., Race] = reduce,
        rtol: float | None = None,
    ) -> None:
        """`seeds` are those of a cell of a sweep; `relu` are its networks, where they are known.

        `reducing` is called in place of `reduce`, for example to remember reductions. `rtol` is the
        tolerance of races that the contest solves.
        """
        check_kind("problem", problem, Problem, "pass what study.check() returns")
        self.problem, self.settings, self.tell = problem, problem.settings, tell
        self.reducing, self.rtol = reducing, rtol
        self.seeds: int | list[int] = self.settings.training.seeds if seeds is None else seeds
        if relu is not None:
            self.__dict__["_relu_runs"] = relu

    def asks(self, *questions: str) -> bool:
        """Whether one of these questions is asked."""
        return any(question in self.settings.questions for question in questions)

    # ---- theory --------------------------------------------------------------------------------

    @cached_property
    def contest(self) -> Contest:
        """All gatings, or the aligned gates alone where there is none."""
        options: dict[str, Any] = contest_options(self.settings) | {"rtol": self.rtol}
        how = {name: options[name] for name in ("tolerance",) if name in options}
        with (self.problem.place / "gatings").blamed():
            races = {n: self.reducing(*p, **how) for n, p in self.problem.candidates.items()}
            key = self.settings.training.key
            return contest(races or self.problem.data, key=key, leads=False, **options)

    @cached_property
    def followed(self) -> str:
        """The gating that is predicted and certified."""
        chosen = self.settings.predict.gating
        if chosen is not None:
            return chosen
        if len(self.problem.candidates) == 1:
            return next(iter(self.problem.candidates))
        if self.contest.winner is None:
            raise (self.problem.place / "contest" / "criterion").error(
                "no gating reaches the criterion, so there is no winner to follow",
                got=", ".join(f"{n}: {e.lateness}" for n, e in self.contest.entrants.items()),
                wanted="a criterion that a gating reaches, or the name of the gating to follow",
                fix='set [contest] criterion higher, or [predict] gating = "NAME"',
            )
        return self.contest.winner

    @property
    def gated_network(self) -> tuple[Architecture, Dataset]:
        """The gated network that is followed, with its data."""
        return self.problem.candidates[self.followed]

    @cached_property
    def race(self) -> Race:
        """The reduction of the gating that is followed."""
        with (self.problem.place / "gatings" / self.followed).blamed():
            return self.reducing(*self.gated_network, tolerance=self.settings.reduce.tolerance)

    @cached_property
    def reduced(self) -> dict[str, Race]:
        """The reduction of every gating, or of the graph where there is none."""
        candidates = dict(self.problem.candidates)
        if not candidates:
            candidates = {UNGATED: (self.problem.relu.arch, self.problem.data)}
        found = {}
        for name, pair in candidates.items():
            with (self.problem.place / "gatings" / name).blamed():
                found[name] = self.reducing(*pair, tolerance=self.settings.reduce.tolerance)
        return found

    # ---- simulation ----------------------------------------------------------------------------

    @property
    def keys(self) -> tuple[jax.Array, jax.Array]:
        """Of the ReLU networks and of the gated ones."""
        first, second = jax.random.split(jax.random.key(self.settings.training.key))
        return first, second

    def start_keys(self, key: jax.Array) -> list[jax.Array]:
        """The key of every network's initial weights, as `train_ensemble` has them."""
        if isinstance(self.seeds, int):
            return list(jax.random.split(key, self.seeds))
        return [jax.random.fold_in(key, seed) for seed in self.seeds]

    @property
    def count(self) -> int:
        """How many networks of each kind are trained."""
        return self.seeds if isinstance(self.seeds, int) else len(self.seeds)

    @property
    def relu(self) -> Trajectory:
        """The ReLU networks on the task, an ensemble over seeds."""
        return self._finite(self._relu_runs)

    @cached_property
    def _relu_runs(self) -> Trajectory:
        """They are trained once, also where they diverge and several questions are refused."""
        count = self.count
        self.tell(f"training {numbered(count, 'ReLU network', '1')} …")
        net, data = self.problem.relu, self.narrow(self.problem.data)
        return self._trained(net, data, self.keys[0], self.relu_record(data), "relu")

    def relu_record(self, data: Dataset) -> dict[str, Any]:
        """What the questions need of the ReLU networks."""
        record: dict[str, Any] = dict.fromkeys(self.settings.training.record, True)
        if self.asks(*NEED_WEIGHTS):
            record["weights"] = True
        return record | (evidence(self.problem.relu, data) if self.asks("certify") else {})

    @property
    def gated(self) -> Trajectory:
        """Gated networks with the gating that is followed, an ensemble over seeds."""
        return self._finite(self._gated_runs)

    @cached_property
    def _gated_runs(self) -> Trajectory:
        count = self.count
        self.tell(f"training {numbered(count, 'gated network', '1')}: {self.followed} …")
        arch, data = self.gated_network
        net, data = GDLN(arch), self.narrow(data)
        record: dict[str, Any] = dict.fromkeys(self.settings.training.record, True)
        record.pop("activity", None)  # gates are given
        if self.asks("certify"):
            record |= evidence(net, data)
        return self._trained(net, data, self.keys[1], record, "gated")

    @cached_property
    def predicted(self) -> tuple[Trajectory, ...]:
        """The race from the initial weights of each gated network."""
        net, network = GDLN(self.gated_network[0]), self.settings.network
        found = []
        for key in self.start_keys(self.keys[1]):
            weights = net.init(key, network.scale, network.kind, dtype=self.dtype)
            start = self.race.start({e: np.asarray(w, np.float64) for e, w in weights.items()})
            rate = learning_rate(self.settings.training)
            found.append(self.race.solve(times=self.gated.time, start=start, learning_rate=rate))
        return tuple(found)

    def _trained(
        self, net: Network, data: Dataset, key: jax.Array, record: dict[str, Any], name: str
    ) -> Trajectory:
        training = self.settings.training
        options = plain(training_options(self.problem)) | {"record": record, "seeds": self.seeds}
        if self.problem.evaluated:
            others = self.problem.evaluated.items()
            options["evaluate"] = {n: self.narrow(d) for n, d in others}
        if training.checkpoint is not None:
            folder = self.problem.document.folder / training.checkpoint / name
            options["checkpoint"] = folder
            if training.checkpoint_every is not None:
                options["checkpoint_every"] = training.checkpoint_every
        with (self.problem.place / "training").blamed():
            if training.compress is None or name == "relu":
                return train_ensemble(net, data, key=key, **options)
            return self._one_by_one(net, data, key, options)

    def _finite(self, runs: Trajectory) -> Trajectory:
        """The runs, or an error where one of them diverged: no answer would mean anything."""
        gone = ~np.isfinite(np.atleast_2d(runs.loss))
        if gone.any():
            first = float(runs.time[gone.any(axis=0).argmax()])
            own = self.settings.training.optimizer
            how = f"learning rate {learning_rate(self.settings.training):g}"
            how = how if own is None else f"the optimizer {own.name}"
            key = "learning_rate" if own is None else "optimizer"
            raise (self.problem.place / "training" / key).error(
                f"the loss of {gone.any(axis=1).sum()} of {len(gone)} networks became infinite",
                got=f"{how}; not finite from t = {first:.4g} on",
                wanted="a descent that converges",
                fix="a smaller learning rate, or smaller initial weights",
            )
        return runs

    def _one_by_one(
        self, net: Network, data: Dataset, key: jax.Array, options: dict[str, Any]
    ) -> Trajectory:
        """Single runs side by side: `compress` is an option of these alone."""
        _, scale, kind = (options.pop(name) for name in ("seeds", "scale", "kind"))
        options.pop("members_at_once", None)
        dtype = options.pop("dtype", None)
        runs = []
        for each in self.start_keys(key):
            start = net.init(each, scale, kind, dtype=dtype)
            more = dict(options, compress=self.settings.training.compress)
            if "batch_size" in options:
                more["key"] = jax.random.fold_in(each, 1)
            runs.append(train(net, start, data, **more))
        return concat(runs, "seed")

    @cached_property
    def discovered(self) -> Discovery:
        """The gates in the activity of the ReLU networks."""
        runs = members(self.relu)[: self.settings.discover.networks]
        self.tell(f"looking for gates in {numbered(len(runs), 'ReLU network', '1')} …")
        with (self.problem.place / "discover").blamed():
            data = self.narrow(self.problem.data)
            return discover(runs, data, **discover_options(self.settings))

    # ---- precision -----------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        dtype = self.settings.training.dtype
        return None if dtype == "float64" else dtype

    def narrow(self, data: Dataset) -> Dataset:
        """The data in the precision of the training."""
        return narrowed(data, self.settings.training.dtype)


def narrowed(data: Dataset, dtype: str) -> Dataset:
    """The data with inputs, targets and gates in another precision; labels are kept."""
    if dtype == "float64":
        return data
    cut = lambda arrays: {name: np.asarray(a, dtype) for name, a in arrays.items()}
    return Dataset(cut(data.x), cut(data.y), cut(data.gates), data.sample_weight, data.labels)


def members(runs: Trajectory) -> list[Trajectory]:
    """The single runs of an ensemble over seeds."""
    return [runs.isel(seed=i) for i in range(len(runs.axes["seed"]))]

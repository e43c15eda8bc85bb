"""One task through the whole arc: contest, prediction, ReLU networks, gates found, certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import jax
import numpy as np

from neuralrace.contests import Candidates, Contest, contest
from neuralrace.dataset import Dataset
from neuralrace.dynamics import train_ensemble
from neuralrace.errors import NeuralRaceError, check_kind, listed
from neuralrace.gdln import GDLN
from neuralrace.reduction import Race
from neuralrace.reln import Activity, Certificate, Discovery, activity, certify, discover, evidence
from neuralrace.relu import ReLUNetwork
from neuralrace.trajectory import Comparison, Trajectory, compare, crossing_time
from neuralrace.types import Key


@final
@dataclass(frozen=True, eq=False)
class Arc:
    """What was predicted and what was seen on one task; made by `arc`.

    `contest` has the candidates' predicted learning times; `relu` and `gated` are ensembles over
    seeds of the ReLU network and of the gated network with the winning gating; `predicted` is the
    winner's race from the initial weights of each gated run. `found` is what `nr.reln.discover`
    makes of the ReLU networks' activity, `certificates` has one for each seed, with the next seed
    of the ReLU network, if there is one, as floor.
    """

    task: str
    base: Dataset
    contest: Contest
    relu: Trajectory
    gated: Trajectory
    predicted: tuple[Trajectory, ...]
    found: Discovery
    certificates: tuple[Certificate, ...]

    # ---- who, and against whom -----------------------------------------------------------------

    @property
    def winner(self) -> str:
        return str(self.contest.winner)

    @property
    def second(self) -> str:
        """The candidate that is predicted to come after the winner."""
        return sorted(self.contest.times, key=self.contest.times.__getitem__)[1]

    @property
    def race(self) -> Race:
        return self.contest.entrants[self.winner].race

    @cached_property
    def behind(self) -> Trajectory:
        """The predicted loss of the second, from where random weights start it on average."""
        entrant = self.contest.entrants[self.second]
        rate = float(self.relu.settings["learning_rate"])
        return entrant.race.solve(times=self.relu.time, start=entrant.start, learning_rate=rate)

    @cached_property
    def equations(self) -> str:
        """The winner's race in LaTeX."""
        return self.race.latex()

    @property
    def relu_times(self) -> np.ndarray:
        """When each ReLU network's loss falls to the winner's criterion; NaN if it never does."""
        return crossing_time(
            self.relu.time, self.relu.loss, self.contest.entrants[self.winner].criterion
        )

    # ---- how far apart -------------------------------------------------------------------------

    @cached_property
    def theory(self) -> tuple[Comparison, ...]:
        """The gated network against its prediction, seed by seed."""
        return tuple(
            compare(run, solved)
            for run, solved in zip(members(self.gated), self.predicted, strict=True)
        )

    @cached_property
    def follows(self) -> tuple[Comparison, ...]:
        """The ReLU network against the prediction, seed by seed."""
        return tuple(
            compare(run, solved)
            for run, solved in zip(members(self.relu), self.predicted, strict=True)
        )

    @property
    def floor(self) -> float | None:
        """Two seeds of the ReLU network from each other: mean |ΔL|/L(0); None with one seed."""
        apart = [c.floor.loss.mean for c in self.certificates if c.floor]
        return float(np.mean(apart)) if apart else None

    # ---- gates ---------------------------------------------------------------------------------

    @cached_property
    def activity(self) -> Activity:
        """That of the first ReLU network."""
        return activity(self.relu.isel(seed=0), self.base)

    @property
    def prototypes(self) -> dict[str, np.ndarray]:
        """The winning gating's patterns over the samples, by pathway."""
        arch, data = self.contest.candidates[self.winner]
        ones = np.ones(data.n_samples)
        return {v: np.asarray(data.gates.get(v, ones)) > 0.5 for v in arch.hidden}

    @property
    def recovered(self) -> tuple[int, int, int]:
        """How many patterns were found, how many the gating has, and how many are in both."""
        found = {tuple(p > 0.5) for patterns in self.found.patterns.values() for p in patterns}
        wanted = {tuple(p) for p in self.prototypes.values()}
        return len(found), len(wanted), len(found & wanted)


def arc(
    task: str,
    base: Dataset,
    candidates: Candidates,
    *,
    hidden: int,
    scale: float,
    learning_rate: float,
    steps: int,
    key: Key,
    seeds: int = 2,
    record_every: int = 1,
    criterion: float = 0.2,
    relative: bool = False,
    most: int = 6,
    discover_in: int | None = None,
    dtype: Any = None,
) -> Arc:
    """Take a task and candidate gatings of it through the whole arc; nothing is fitted.

    1. `nr.contest`: which candidate learns first? 2. Its race, from the initial weights of a gated
    network that is then trained, predicts that network's loss. 3. ReLU networks with `hidden`
    neurons and the same `scale` are trained on the same task. 4. `nr.reln.discover` finds gates in
    their activity, their number by the elbow. 5. `nr.reln.certify` compares outputs.

    **Arguments:** `base`, the task without gates, one input `x` and one output `y`, for the ReLU
    networks; `candidates`, `{name: (arch, data)}`, at least two, of the same samples in the same
    order; `scale`, the standard deviation of all initial weights; `criterion` and `relative` as in
    `nr.contest`; `most`, as in `nr.reln.discover`, which looks at the first `discover_in` seeds
    (all by default). Seeds of both networks are independent.

    ```python
    >>> import jax, neuralrace as nr
    >>> from neuralrace.demo import arc
    >>> data = nr.tasks.extended_xor(1.2)
    >>> gatings = {"linear": nr.tasks.linear_pathways(data, total=32),
    ...            "xor": nr.tasks.xor_pathways(data, total=32)}
    >>> found = arc("XoR", data, gatings, hidden=32, scale=1e-3, learning_rate=0.1, steps=200,
    ...             key=jax.random.key(0), most=3)
    >>> found.winner, found.second, found.recovered
    ('linear', 'xor', (2, 2, 2))

    ```
    """
    _check(base, candidates)
    held = contest(candidates, scale=scale, criterion=criterion, relative=relative)
    if held.winner is None:
        raise NeuralRaceError(
            "no candidate reaches the criterion, so there is no winner to follow",
            got=str(held),
            wanted=f"a candidate whose loss falls to criterion={criterion:g}",
            fix="a higher criterion, relative=True, or a gating that can learn the task",
        )
    arch, data = candidates[held.winner]
    net = GDLN(arch)
    relu_net = ReLUNetwork((base.x["x"].shape[1], hidden, base.y["y"].shape[1]))
    relu_key, gated_key = jax.random.split(key)
    options: dict[str, Any] = {
        "seeds": seeds,
        "scale": scale,
        "learning_rate": learning_rate,
        "steps": steps,
        "record_every": record_every,
        "dtype": dtype,
    }
    record = {"weights": True} | evidence(relu_net, as_type(base, dtype))
    relu = train_ensemble(relu_net, as_type(base, dtype), key=relu_key, record=record, **options)
    narrow = as_type(data, dtype)
    gated = train_ensemble(net, narrow, key=gated_key, record=evidence(net, narrow), **options)
    race = held.entrants[held.winner].race
    predicted = []
    for seed_key in jax.random.split(gated_key, seeds):
        weights = net.init(seed_key, scale, dtype=dtype)
        start = race.start({e: np.asarray(w, np.float64) for e, w in weights.items()})
        predicted.append(race.solve(times=relu.time, start=start, learning_rate=learning_rate))
    runs, mates = members(relu), members(gated)
    return Arc(
        task=task,
        base=base,
        contest=held,
        relu=relu,
        gated=gated,
        predicted=tuple(predicted),
        found=discover(runs[:discover_in], as_type(base, dtype), "elbow", most=most),
        certificates=tuple(
            certify(run, mate, floor=runs[(i + 1) % seeds] if seeds > 1 else None)
            for i, (run, mate) in enumerate(zip(runs, mates, strict=True))
        ),
    )


def _check(base: Any, candidates: Any) -> None:
    """Raise where a ReLU network cannot be trained on the task, or no second could be named."""
    check_kind("base", base, Dataset, "pass the task itself, without a gating")
    if set(base.x) != {"x"} or set(base.y) != {"y"}:
        raise NeuralRaceError(
            "the ReLU networks of the arc have one input and one output",
            got=f"x for {listed(base.x)}, y for {listed(base.y)}",
            wanted="x for 'x' alone, y for 'y' alone",
            fix="put the inputs side by side, nr.Dataset({'x': np.hstack([*base.x.values()])}, …); "
            "the task of the candidates may keep them apart",
        )
    if not isinstance(candidates, Mapping) or len(candidates) < 2:
        raise NeuralRaceError(
            "a contest has a winner and a second",
            got=listed(candidates) if isinstance(candidates, Mapping) else repr(candidates),
            wanted="{name: (arch, data)} of at least two candidates",
            fix="add another gating of the same task",
        )


def members(runs: Trajectory) -> list[Trajectory]:
    """The single runs of an ensemble over seeds."""
    return [runs.isel(seed=i) for i in range(len(runs.axes["seed"]))]


def as_type(data: Dataset, dtype: Any) -> Dataset:
    """The data in the type of the weights, so that nothing is narrowed on the way."""
    if dtype is None:
        return data
    cut = lambda values: {name: np.asarray(v, dtype) for name, v in values.items()}
    return Dataset(cut(data.x), cut(data.y), cut(data.gates), data.sample_weight, data.labels)

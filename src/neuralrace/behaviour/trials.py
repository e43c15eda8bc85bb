"""Trial by trial: many animals, each with its own stimuli, choices and rewards."""

from __future__ import annotations

from typing import cast, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from neuralrace.behaviour.agent import Agent
from neuralrace.behaviour.policies import fault
from neuralrace.checks import check_known, random_key
from neuralrace.dataset import Sampled
from neuralrace.door import door
from neuralrace.dynamics import (
    Batch,
    Members,
    NetworkSystem,
    Record,
    State,
    Stepper,
    StoppedError,
    System,
    take_steps,
)
from neuralrace.dynamics.setup import pose, recording_steps
from neuralrace.dynamics.train import key_data
from neuralrace.progress import progress
from neuralrace.tolerances import MODERATE
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike, Count, Key, NotNegative, Positive, WeightsLike
from neuralrace.weights import checked_weights


@final
class Trials(Stepper):
    """One trial per step; trial k draws by `jax.random.fold_in(key, k)`. Its memory counts them."""

    rate: Array
    key: Array

    def begin(self, state: State) -> Array:
        return jnp.zeros((), jnp.int32)

    def step(
        self, system: System, state: State, memory: PyTree, batch: Batch | None = None
    ) -> tuple[Float[Array, ""], State, PyTree]:
        system = cast(NetworkSystem, system)
        agent = cast(Agent, system.net)
        _, change = agent.trial(state, system.data, self.rate, jax.random.fold_in(self.key, memory))
        return system.loss(state), jax.tree.map(jnp.add, state, change), memory + 1


@door
def train_by_trials(
    agent: Agent,
    data: Sampled,
    *,
    key: Key = 0,
    learning_rate: Positive,
    trials: Count,
    animals: Count = 1,
    scale: NotNegative = 0.1,
    weights: WeightsLike | None = None,
    record_every: Count = 1,
    record_at: ArrayLike | None = None,
    record: Record | None = None,
) -> Trajectory:
    """Many animals that learn trial by trial, in one compiled program.

    In every trial a stimulus, a choice and a reward are drawn, and the edges move by
    `learning_rate` times what `Agent` says of the choice taken. Its average over trials is what
    `nr.flow` follows: with time = `learning_rate` · trials the two share one axis.

    **Arguments:** `key`, a JAX key or an integer: animal i starts from
    `agent.init(jax.random.split(key, animals)[i], scale)` (as the members of `nr.flow_ensemble`
    with that many seeds do) and draws its trials by `fold_in(that key, 1)`; `weights`, one start
    for all animals instead; `record_every`, `record_at` and `record` as in `nr.train`.

    **Returns:** a `Trajectory` with the axis `animal`. Its `loss` is the *expected* one at the
    recorded weights; `values["choices"]`, always recorded, are the probabilities of the choices
    (N, choices).

    **Raises:** `StoppedError` where an animal's weights stop being finite, or where the policy
    turns out not to be a distribution at the values that were learned.

    ```python
    >>> from neuralrace.behaviour import decision_task, deep_agent, train_by_trials
    >>> run = train_by_trials(deep_agent(), decision_task(), key=0, learning_rate=0.1,
    ...                       trials=3000, animals=4, record_every=1000)
    >>> run.loss.shape, run.values["choices"].shape, run.time[-1].round(6)
    ((4, 4), (4, 4, 8, 2), np.float64(300.0))

    ```
    """
    rate = float(learning_rate)
    stops = recording_steps(trials, record_every, record_at)
    keys = jax.random.split(random_key(key, "drawing trials"), animals)
    if weights is None:
        starts = jax.vmap(lambda k: agent.init(k, scale))(keys)
    else:
        one = checked_weights(agent.arch, weights)
        check_known("the initial weights", one)
        starts = {edge: jnp.broadcast_to(w, (animals, *w.shape)) for edge, w in one.items()}
    first = {edge: w[0] for edge, w in starts.items()}
    recorded = {"choices": agent.choices} | dict(record or {})
    problem = pose(agent, first, data, record=recorded)
    starts = {edge: w.astype(problem.dtype) for edge, w in starts.items()}
    method = Trials(
        jnp.full(animals, rate, problem.dtype),
        jax.vmap(lambda k: jax.random.fold_in(k, 1))(keys),
    )
    with progress(int(stops[-1]), "trials") as advance:
        past = [0]

        def seen(step: int, loss: float) -> None:
            advance(float(step - past[0]))
            past[0] = step

        members = Members(animals, None, 0)
        done = take_steps(problem.system, starts, method, stops, members=members, seen=seen)
    told = {
        "method": "trials",
        "clock": "flow",
        "learning_rate": rate,
        "trials": int(stops[-1]),
        "key": key_data(key),
    }
    run = Trajectory(
        rate * done.stops,
        done.loss,
        values=done.values,
        final=done.final,
        axes={"animal": np.arange(animals)},
        steps=done.stops,
        **problem.provenance(told),
    )
    wrong = _fault_of_policy(run, animals)
    if wrong is not None:
        raise StoppedError(
            run,
            "the policy is not a distribution at values that were learned",
            got=wrong,
            wanted="probabilities: none negative, each row with sum 1",
            fix="a policy for all values, such as behaviour.Softmax(5.0)",
        )
    bad = ~np.isfinite(run.loss)
    if bad.any():
        raise StoppedError(
            run,
            f"the learning rate is too large: {int(bad.any(axis=1).sum())} of {animals} animals "
            "have weights that are not finite",
            got=f"a loss that is not finite by trial {run.steps[bad.any(axis=0)].min()}"
            if run.steps is not None
            else "a loss that is not finite",
            wanted="weights that stay finite",
            fix=f"a learning rate below {rate:g}; what was computed is in error.trajectory",
        )
    return run


def _fault_of_policy(run: Trajectory, animals: Count) -> str | None:
    """What is wrong with the choices of animals whose weights did not diverge, if anything."""
    weights = [np.abs(np.asarray(w)).reshape(animals, -1).max(axis=1) for w in run.final.values()]
    choices = np.asarray(run.values["choices"], float)[np.max(weights, axis=0) < MODERATE]
    rows = choices.reshape(-1, choices.shape[-1])
    return fault(rows, rows.shape)

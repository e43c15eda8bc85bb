"""Better gates than those of Algorithm 1: real-valued ones, trained so that outputs agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from neuralrace.checks import plain_array
from neuralrace.compression import step_work
from neuralrace.door import door
from neuralrace.dynamics import (
    Descent,
    NetworkSystem,
    Optimized,
    System,
    take_steps,
    unrolled_steps,
)
from neuralrace.dynamics.setup import as_arrays
from neuralrace.errors import NeuralRaceError, whole_number
from neuralrace.gdln import GDLN
from neuralrace.progress import progress
from neuralrace.reln.explained.discovery import Discovery
from neuralrace.reln.observed.runs import descent_of, first_weights, network_of, weights_of
from neuralrace.trajectory import compare
from neuralrace.types import Count, Positive


@door
def refine(
    found: Discovery,
    *,
    fit_to: int | Sequence[int] = (0,),
    iterations: Count = 100,
    rate: Positive = 0.02,
) -> Discovery:
    """Train the gates of the pathways, as real numbers, until the gated network follows better.

    `discover` never looks at the curve it is to match. This does: the K · N gates of each layer
    are moved down the gradient of

        E = (1/T) ∫ ⟨‖o_ReLU(t) − o_GDLN(t)‖²⟩ dt / 2 L(0),

    taken through the whole training of the gated network (back through every step of descent),
    by Adam. Pathways, their neurons and start values stay as they were found. Because this is a
    fit, judge it on runs that it has not seen: those not in `fit_to`.

    **Arguments:** `found`, of `discover`, whose runs recorded their weights at equal intervals;
    `fit_to`, which of its runs to fit; `iterations` and `rate` of Adam. One iteration costs about
    four trainings.

    **Returns:** a `Discovery` with the best gates that were met; `followed` is measured again for
    every run.

    ```python
    >>> import jax, neuralrace as nr
    >>> data, relu = nr.tasks.extended_xor(0.4), nr.ReLUNetwork((3, 32, 1))
    >>> many = nr.train_ensemble(relu, data, key=jax.random.key(0), seeds=2, scale=1e-3,
    ...                          learning_rate=0.1, steps=200, record_every=20,
    ...                          record={"weights": True})
    >>> found = nr.reln.discover(many, data, pathways=3)
    >>> better = nr.reln.refine(found, iterations=20)
    >>> better.followed[1].mean < found.followed[1].mean  # a run that it has not seen
    True

    ```
    """
    fix = "for example fit_to=(0, 1)"
    some = plain_array("fit_to", fit_to, wanted="numbers of runs", fix=fix)
    chosen = [
        whole_number("a run to fit", i, least=0, fix="count from 0")
        for i in np.atleast_1d(some).tolist()
    ]
    if not chosen or max(chosen) >= len(found.runs):
        raise NeuralRaceError(
            "the gates must be fitted to some of the runs",
            got=f"fit_to = {tuple(chosen)}",
            wanted=f"numbers from 0 to {len(found.runs) - 1}",
            fix="fit_to=(0,) leaves all others to judge by",
        )
    objective = _Objective.of(found, chosen)
    gates = {node: jnp.asarray(p, objective.dtype) for node, p in found.patterns.items()}
    with progress(iterations, "gates", "iterations") as advance:
        past = [0]

        def seen(step: int, loss: float) -> None:
            advance(float(step - past[-1]))
            past.append(step)

        import optax

        adam = Optimized(optax.adam(rate, b1=0.9, b2=0.99))
        done = take_steps(objective, gates, adam, np.arange(iterations + 1), seen=seen)
    least = int(np.argmin(done.loss))
    best = jax.tree.map(lambda leaf: leaf[least], done.values["gates"])
    layers = {
        node: replace(each, pattern=np.asarray(best[node], np.float64))
        for node, each in found.layers.items()
    }
    draft = replace(found, layers=layers, followed=(), curve={})
    every = tuple(compare(run, draft.train(i)) for i, run in enumerate(found.runs))
    return replace(draft, followed=every)


@final
class _Objective(System):
    """E as something that learns: its state is the gates of the pathways.

    Leaves with a leading axis have one entry per run: the start, the pathway of every neuron, the
    learning rate, and the outputs to follow.
    """

    net: GDLN = eqx.field(static=True)
    gap: int = eqx.field(static=True)
    data: Any
    start: Any
    member: Any
    rate: Any
    wanted: Any
    scale: Any

    @staticmethod
    def of(found: Discovery, chosen: list[int]) -> _Objective:
        """The objective for some of the runs of a discovery."""
        runs = [found.runs[i] for i in chosen]
        gaps = np.unique(np.concatenate([np.diff(descent_of(run)[1]) for run in runs]))
        if len(gaps) != 1:
            raise NeuralRaceError(
                "the runs must be recorded at equal intervals",
                got=f"{gaps[0]} to {gaps[-1]} steps from one record to the next",
                wanted="record_every, a divisor of the number of steps",
                fix="train again with record_every=…",
            )
        relu = network_of(runs[0])
        stacked = lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves])
        start = jax.tree.map(stacked, *(first_weights(run) for run in runs))
        dtype = jnp.result_type(*start.values())
        seen = [jax.tree.map(jnp.asarray, weights_of(run)) for run in runs]
        outputs = jax.jit(jax.vmap(lambda w: relu(w, found.base)))
        return _Objective(
            net=GDLN(relu.arch),
            gap=int(gaps[0]),
            data=as_arrays(found.base.gated({}), dtype),
            start=start,
            member={
                node: jnp.asarray(each.member[np.array(chosen)])
                for node, each in found.layers.items()
            },
            rate=jnp.asarray([descent_of(run)[0] for run in runs], dtype),
            wanted=jax.tree.map(stacked, *(outputs(weights) for weights in seen)),
            scale=jnp.asarray(2 * np.mean([run.loss[0] for run in runs]), dtype),
        )

    @property
    def dtype(self) -> Any:
        return jnp.result_type(*self.start.values())

    def loss(self, state: Any) -> Any:
        def of_one_run(start: Any, member: Any, rate: Any, wanted: Any) -> Any:
            neurons = {node: state[node][member[node]].T for node in state}
            data = self.data.gated(neurons)
            learner = NetworkSystem(self.net, data)

            @jax.checkpoint
            def stop(w: Any, target: Any) -> Any:
                o = self.net(w, data)
                square = sum(((o[v] - target[v]) ** 2).sum(axis=1) for v in o)
                miss = jnp.dot(data.probability, square)
                return unrolled_steps(learner, w, Descent(rate), self.gap), miss

            return jax.lax.scan(stop, start, wanted)[1].mean()

        each = jax.vmap(of_one_run)(self.start, self.member, self.rate, self.wanted)
        return each.mean() / self.scale

    def observe(self, state: Any) -> dict[str, Any]:
        return {"gates": state}

    def work(self, members: int = 1) -> float:
        """Four trainings, back through every step included."""
        steps = self.gap * len(next(iter(self.wanted.values()))[0])
        return 4 * steps * step_work(self.net.arch, self.data.n_samples) * len(self.rate)

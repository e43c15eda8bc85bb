"""Better gates than those of Algorithm 1: real-valued ones, trained so that outputs agree."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neuralrace.errors import NeuralRaceError, check_kind, whole_number
from neuralrace.gdln import GDLN
from neuralrace.progress import progress
from neuralrace.reln.discovery import Discovery
from neuralrace.reln.runs import descent_of, first_weights, network_of, weights_of
from neuralrace.trajectory import compare


def refine(
    found: Any, *, fit_to: Any = (0,), iterations: int = 100, rate: float = 0.02
) -> Discovery:
    """Train the gates of the pathways, as real numbers, until the gated network follows better.

    `discover` never looks at the curve it is to match. This does: the K · N gates of each layer
    are moved down the gradient of

        E = (1/T) ∫ ⟨‖o_ReLU(t) − o_GDLN(t)‖²⟩ dt / 2 L(0),

    taken through the whole training of the gated network (back through every step of descent),
    by Adam. Pathways, their neurons and start values stay as they were found. Because this is a
    fit, judge it on runs that it has not seen: those not in `fit_to`.

    **Arguments:** `found`, of `discover`, whose runs recorded their weights at equal distances;
    `fit_to`, which of its runs to fit; `iterations` and `rate` of Adam. One iteration costs about
    four trainings.

    **Returns:** a `Discovery` with the best gates met, `followed` measured anew for every run.

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
    check_kind("found", found, Discovery, "pass what nr.reln.discover returned")
    iterations = whole_number("iterations", iterations, fix="for example iterations=100")
    chosen = [
        whole_number("a run to fit", i, least=0, fix="count from 0")
        for i in np.atleast_1d(np.asarray(fit_to)).tolist()
    ]
    if not chosen or max(chosen) >= len(found.runs):
        raise NeuralRaceError(
            "the gates must be fitted to some of the runs",
            got=f"fit_to = {tuple(chosen)}",
            wanted=f"numbers from 0 to {len(found.runs) - 1}",
            fix="fit_to=(0,) leaves all others to judge by",
        )
    objective = _Objective(found, chosen)
    gates = {node: jnp.asarray(p, objective.dtype) for node, p in found.patterns.items()}
    first = second = jax.tree.map(jnp.zeros_like, gates)
    best, least = gates, np.inf
    with progress(iterations, "gates", "iterations") as advance:
        for i in range(1, iterations + 1):
            value, slope = objective(gates)
            if float(value) < least:
                best, least = gates, float(value)
            first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
            second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, slope)
            step = lambda g, m, v, i=i: (  # noqa: E731
                g - rate * (m / (1 - 0.9**i)) / (jnp.sqrt(v / (1 - 0.99**i)) + 1e-8)
            )
            gates = jax.tree.map(step, gates, first, second)
            advance(1)
    layers = {
        node: replace(each, pattern=np.asarray(best[node], np.float64))
        for node, each in found.layers.items()
    }
    draft = replace(found, layers=layers, followed=(), curve={})
    every = tuple(compare(run, draft.train(i)) for i, run in enumerate(found.runs))
    return replace(draft, followed=every)


class _Objective:
    """E and its gradient, as a function of the gates of the pathways."""

    def __init__(self, found: Discovery, chosen: list[int]) -> None:
        runs = [found.runs[i] for i in chosen]
        self.rate, steps = descent_of(runs[0])
        gaps = np.unique(np.diff(steps))
        if len(gaps) != 1:
            raise NeuralRaceError(
                "the runs must be recorded at equal distances",
                got=f"{gaps[0]} to {gaps[-1]} steps from one record to the next",
                wanted="record_every, a divisor of the number of steps",
                fix="train again with record_every=…",
            )
        relu = network_of(runs[0])
        self.net, self.gap = GDLN(relu.arch), int(gaps[0])
        stacked = lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves])  # noqa: E731
        self.start = jax.tree.map(stacked, *(first_weights(run) for run in runs))
        self.dtype = jnp.result_type(*self.start.values())
        self.data = found.base.gated({})
        self.member = {
            node: jnp.asarray(each.member[np.array(chosen)]) for node, each in found.layers.items()
        }
        seen = [jax.tree.map(jnp.asarray, weights_of(run)) for run in runs]
        outputs = jax.jit(jax.vmap(lambda w: relu(w, found.base)))
        self.wanted = jax.tree.map(stacked, *(outputs(weights) for weights in seen))
        self.scale = 2 * float(np.mean([run.loss[0] for run in runs]))

    @functools.cached_property
    def _compiled(self) -> Any:
        return jax.jit(jax.value_and_grad(self._value))

    def __call__(self, gates: Any) -> Any:
        return self._compiled(gates)

    def _value(self, gates: Any) -> Any:
        def of_one_run(start: Any, member: Any, wanted: Any) -> Any:
            neurons = {node: gates[node][member[node]].T for node in gates}
            data = self.data.gated(neurons)

            def step(w: Any, _: Any) -> Any:
                return jax.tree.map(
                    lambda a, v: a + jnp.asarray(self.rate, a.dtype) * v,
                    w,
                    self.net.velocity(w, data),
                ), None

            @jax.checkpoint
            def stop(w: Any, target: Any) -> Any:
                o = self.net(w, data)
                square = sum(((o[v] - target[v]) ** 2).sum(axis=1) for v in o)
                miss = jnp.dot(jnp.asarray(self.data.probability, self.dtype), square)
                return jax.lax.scan(step, w, None, length=self.gap)[0], miss

            return jax.lax.scan(stop, start, wanted)[1].mean()

        return jax.vmap(of_one_run)(self.start, self.member, self.wanted).mean() / self.scale

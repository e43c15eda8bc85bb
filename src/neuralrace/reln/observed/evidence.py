"""What certificates compare: hidden similarity while a network trains, and a copy of its gates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset, Sampled
from neuralrace.door import door
from neuralrace.dynamics import Descent, NetworkSystem, Record, System, take_steps
from neuralrace.dynamics.setup import pose
from neuralrace.dynamics.train import diverged
from neuralrace.gdln import GDLN, Network
from neuralrace.reln.observed.runs import (
    check_trained_on,
    descent_of,
    gates_over_time,
    recorded_weights,
    relu_of,
)
from neuralrace.relu import ReLUNetwork
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike

SIMILARITY = "similarity"
"""The name under which `evidence` records the hidden similarity structure."""


@door
def evidence(net: Network, data: Sampled) -> dict[str, bool | Callable[..., dict[str, jax.Array]]]:
    """What `certify` looks at, as a record for `nr.train`: outputs and hidden similarity.

    The similarity of layer d is K_nm = √(p_n p_m) Σ_v h_v(x_n)·h_v(x_m), over all hidden nodes v
    at depth d (edges on the longest way from an input), p the weights of the samples: pathways
    side by side are one layer. Shape `(N, N)` at each time.

    ```python
    >>> import jax, neuralrace as nr
    >>> data, relu = nr.tasks.xor(), nr.ReLUNetwork((2, 16, 1))
    >>> run = nr.train(relu, relu.init(jax.random.key(0)), data, learning_rate=0.1, steps=10,
    ...                record=nr.reln.evidence(relu, data))
    >>> run.values["similarity"]["layer1"].shape
    (11, 4, 4)

    ```
    """
    return {"outputs": True, SIMILARITY: Similarity(net, data, _content(data))}


@final
@dataclass(frozen=True)
class Similarity:
    """Hidden similarity as a function of the weights, equal to any other of the same content.

    Being equal, two of them share one compiled program.
    """

    net: Network
    data: Dataset = field(compare=False)
    content: bytes

    def __call__(self, weights: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        return self.on(weights, self.data)

    def on(self, weights: Mapping[str, jax.Array], data: Dataset) -> dict[str, jax.Array]:
        """The same on other data, such as the same samples with other gates."""
        h = self.net.responses(weights, data)
        root = jnp.sqrt(jnp.asarray(data.probability))[:, None]
        found = {}
        for layer, nodes in hidden_layers(self.net.arch).items():
            side_by_side = jnp.concatenate([h[v] for v in nodes], axis=1)
            scaled = side_by_side * jnp.asarray(root, side_by_side.dtype)
            found[layer] = scaled @ scaled.T
        return found


def _content(data: Dataset) -> bytes:
    """A digest of all that hidden values depend on: inputs, gates and sample weights."""
    digest = blake2b()
    named = {**data.x, **{f"gate {name}": g for name, g in data.gates.items()}}
    for name, values in (*sorted(named.items()), ("weights", data.probability)):
        array = np.ascontiguousarray(values)
        digest.update(f"{name} {array.shape} {array.dtype}".encode())
        digest.update(array.data)
    return digest.digest()


def hidden_layers(arch: Architecture) -> dict[str, tuple[str, ...]]:
    """The hidden nodes by depth: `layer1`, `layer2`, …

    The depth of a node is the number of edges on the longest way to it.
    """
    depth: dict[str, int] = {}
    for node in arch.order:
        sources = (arch.edges[e][0] for e in arch.incoming.get(node, ()))
        depth[node] = 1 + max((depth[s] for s in sources), default=-1)
    levels = sorted({depth[v] for v in arch.hidden})
    return {f"layer{d}": tuple(v for v in arch.hidden if depth[v] == d) for d in levels}


@door
def copied_gates(
    run: Trajectory,
    data: Sampled,
    *,
    gates: Mapping[str, ArrayLike] | None = None,
    record: Record | None = None,
) -> Trajectory:
    """A GDLN whose gates are copied from the ReLU network at every recorded moment.

    It starts from the ReLU network's first weights and then learns by itself, with gates that are
    renewed at each recorded moment of `run` and held in between. Recorded at every step this is
    MHS's trivial ReLN (§3, after Definition 3.1): exact to rounding, and
    useful only as a check. Recorded less often, it shows how good gates in stages are without a
    new start.

    **Arguments:** `run`, of `nr.train` with a `ReLUNetwork` and `record={"weights": True}`;
    `gates`, by default those of the ReLU network, on or off; other gates of every neuron,
    `{node: (T, N, size)}`, may be fractions, such as those of `nr.reln.sliding_over`;
    `record`, as that of `nr.train`, for the gated network; outputs are always recorded. With
    `nr.reln.evidence(nr.GDLN(relu.arch), data)` the similarity is that of the copied gates.

    **Returns:** a `Trajectory` with the times of `run`.

    ```python
    >>> import jax, neuralrace as nr
    >>> data, relu = nr.tasks.xor(), nr.ReLUNetwork((2, 32, 1))
    >>> run = nr.train(relu, relu.init(jax.random.key(0), scale=0.01), data, learning_rate=0.1,
    ...                steps=200, record={"weights": True, "outputs": True})
    >>> nr.compare(run, nr.reln.copied_gates(run, data)).max < 1e-6
    True

    ```
    """
    recorded_weights(run)
    check_trained_on(run, data)
    rate, steps = descent_of(run)
    relu = relu_of(run)
    net, path = GDLN(relu.arch), run.values["weights"]
    first = {e: path[e][0] for e in net.arch.matrices}
    gated = data.gated({n: np.ones((data.n_samples, net.arch.sizes[n])) for n in net.arch.hidden})
    of_copied = lambda f: f.on if isinstance(f, Similarity) else f
    wanted = {"outputs": True} | {n: of_copied(f) for n, f in (record or {}).items()}
    problem = pose(net, first, gated, record=wanted)
    moments = path if gates is None else gates_over_time(run, data, gates)
    moments = {name: jnp.asarray(each, problem.dtype) for name, each in moments.items()}
    copying = _Copying(relu if gates is None else None, problem.system)
    method = Descent(jnp.asarray(rate, problem.dtype))
    done = take_steps(copying, problem.weights, method, steps, moments=moments)
    told = {
        "method": "gradient descent",
        "gates": "copied from a ReLU network at recorded moments" if gates is None else "as given",
        "learning_rate": rate,
        "steps": int(steps[-1]),
        "data": run.settings.get("data"),
    }
    followed = Trajectory(
        run.time[: len(done.stops)],
        done.loss,
        values=done.values,
        final=done.final,
        steps=done.stops,
        **problem.provenance(told),
    )
    if done.stopped is not None:
        raise diverged(followed, done.stopped, rate)
    return followed


@final
class _Copying(System):
    """A gated network whose gates change at each recorded moment.

    A moment is the weights of the ReLU network whose gates are copied, or the gates themselves.
    """

    relu: ReLUNetwork | None = eqx.field(static=True)
    system: NetworkSystem

    def during(self, moment: Any) -> NetworkSystem:
        data = self.system.data
        gated = data.gated(moment if self.relu is None else self.relu.activity(moment, data))
        return eqx.tree_at(lambda s: (s.data, s.view.data), self.system, (gated, gated))

    def loss(self, state: Any) -> Any:
        return self.system.loss(state)

    def loss_and_step(self, state: Any, rate: Any, batch: Any = None) -> Any:
        return self.system.loss_and_step(state, rate, batch)

"""A gated network whose gates are copied from a ReLU network while both train."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from neuralrace.checks import by_name
from neuralrace.dataset import Dataset
from neuralrace.dynamics import Descent, NetworkSystem, Record, System, take_steps
from neuralrace.dynamics.setup import pose
from neuralrace.dynamics.train import diverged
from neuralrace.errors import check_kind
from neuralrace.gdln import GDLN
from neuralrace.reln.observed.runs import (
    check_trained_on,
    descent_of,
    gates_over_time,
    recorded_weights,
    relu_of,
)
from neuralrace.reln.observed.similarity import Similarity
from neuralrace.relu import ReLUNetwork
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike


def copied_gates(
    run: Trajectory,
    data: Dataset,
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
    check_kind("data", data, Dataset, "pass the dataset that the network was trained on")
    check_trained_on(run, data)
    rate, steps = descent_of(run)
    relu = relu_of(run)
    net, path = GDLN(relu.arch), run.values["weights"]
    first = {e: path[e][0] for e in net.arch.edges}
    gated = data.gated({n: np.ones((data.n_samples, net.arch.sizes[n])) for n in net.arch.hidden})
    if record is not None:
        by_name("record", record, "for example record={'weights': True}")
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

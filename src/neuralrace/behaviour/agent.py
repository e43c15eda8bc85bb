"""A network that chooses and is rewarded, each of whose edges names the loss that trains it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from neuralrace.architecture import Architecture
from neuralrace.behaviour.policies import (
    Softmax,
    check_policy,
    described,
    from_description,
)
from neuralrace.checks import by_name, entries, is_traced, real_number
from neuralrace.dataset import Dataset, check_unweighed
from neuralrace.door import door
from neuralrace.dynamics import Batch
from neuralrace.dynamics.systems import chosen
from neuralrace.errors import NeuralRaceError, listed, require, spelled
from neuralrace.gdln import GDLN, Network
from neuralrace.losses import SampleLoss, checked_loss, squared
from neuralrace.types import Weights, WeightsLike
from neuralrace.weights import check_untied, checked_weights, one_number

PerEdge = Mapping[str, float] | float
"""One number for all edges, or one for each of some edges."""


@final
@dataclass(frozen=True)
class Agent(Network):
    """A network that gives values to choices, and learns from the reward of the one it takes.

    Every output node v has one neuron per choice; Q^tot = Σ_v h_v is what the policy π sees. A loss
    ℓ compares the reward R of the choice c that was taken with the values of some output nodes,
    L_ℓ = ½ (R − Σ_{v∈ℓ} h_{v,c})², and edge e moves by

        dW_e/dt = r_e ( −∂L_ℓ(e)/∂W_e − d_e W_e ),

    ℓ(e) the loss that trains it, r_e its rate, d_e its decay (Talk, "A Deep RL Neural Network";
    rates and decay are ours). The policy is not differentiated: values learn to predict rewards.
    Only the choice taken learns. With several losses this is the gradient of no single function.

    **On average.** The data is a `Dataset`: `x` the stimuli; `sample_weight` how often each occurs;
    `y`, the same for all output nodes, the probability that each choice is rewarded with 1. An
    agent is a `Network` whose `loss_and_step` takes the exact expectation over stimuli, choices and
    rewards, so that `nr.flow` and `nr.train` follow the average. Its `loss` is ⟨½ (R − Q^tot_c)²⟩.

    **Arguments:** `arch`; `losses`, name → output nodes whose sum is compared with the reward;
    `trained_by`, edge → name of a loss, for every edge; `policy`, `Softmax`, `EpsilonGreedy` or any
    function from values (N, choices) to probabilities; `rates` and `decay`, one number for all
    edges or `{edge: number}` (edges left out have rate 1 and decay 0).

    ```python
    >>> import neuralrace as nr
    >>> from neuralrace.behaviour import Agent, Softmax
    >>> arch = nr.Architecture({"left": 1, "right": 1, "q": 2},
    ...                        {"l": ("left", "q"), "r": ("right", "q")})
    >>> agent = Agent(arch, {"total": ["q"]}, {"l": "total", "r": "total"}, Softmax(5.0))
    >>> task = nr.Dataset({"left": [[1.0], [0.0]], "right": [[0.0], [1.0]]},
    ...                   {"q": [[1.0, 0.0], [0.0, 1.0]]})
    >>> run = nr.flow(agent, agent.init(0, scale=0.0), task, times=[0, 20],
    ...               record={"choices": agent.choices})
    >>> run.values["choices"][-1].round(2)
    array([[0.99, 0.01],
           [0.01, 0.99]])

    ```
    """

    losses: Any = field(default=())
    trained_by: Any = field(default=())
    policy: Any = field(default_factory=Softmax)
    rates: Any = 1.0
    decay: Any = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_untied(self.arch, "learning from rewards")
        sizes = {self.arch.sizes[v] for v in self.arch.outputs}
        require(
            len(sizes) == 1 and sizes != {1},
            "every output node needs one neuron per choice",
            got=f"sizes { {v: self.arch.sizes[v] for v in self.arch.outputs} }",
            wanted="one number of at least 2 for all output nodes",
            fix="give every output node as many neurons as there are choices",
        )
        losses = _checked_losses(self.arch, self.losses)
        trained = _checked_edges(self.arch, losses, self.trained_by)
        check_policy(self.policy, self.n_choices)
        put = object.__setattr__
        put(self, "losses", tuple(losses.items()))
        put(self, "trained_by", tuple(trained.items()))
        put(self, "rates", _per_edge(self.arch, "rate", self.rates, 1.0))
        put(self, "decay", _per_edge(self.arch, "decay", self.decay, 0.0))

    @property
    def n_choices(self) -> int:
        """How many choices there are."""
        return self.arch.sizes[self.arch.outputs[0]]

    # ---- what it does --------------------------------------------------------------------------

    @door
    def responses(self, weights: WeightsLike, data: Dataset) -> dict[str, Array]:
        """The response of every node: the network is linear."""
        return self._linear.responses(weights, data)

    @door
    def choices(self, weights: WeightsLike, data: Dataset) -> Float[Array, "N choices"]:
        """The probability of every choice on every stimulus, π(Q^tot); can be recorded."""
        outputs = self(weights, data)
        return self.policy(sum(outputs.values(), jnp.zeros(())))

    @door
    def loss(
        self, weights: WeightsLike, data: Dataset, loss: str | SampleLoss = squared
    ) -> Float[Array, ""]:
        """⟨½ (R − Q^tot_c)²⟩ over stimuli, choices and rewards."""
        _check_own_losses(loss)
        arrays = checked_weights(self.arch, weights)
        seen = _Experience(data, self.choices(arrays, data), self._reward(data, arrays))
        return self._error(arrays, seen, self.arch.outputs)

    # ---- how it learns -------------------------------------------------------------------------

    @door
    def loss_and_step(
        self, weights: WeightsLike, data: Dataset, rate: float | Array, loss: SampleLoss = squared
    ) -> tuple[Float[Array, ""], Weights]:
        """The loss, and what every edge learns on average, times the rate."""
        _check_own_losses(loss)
        arrays = checked_weights(self.arch, weights)
        seen = _Experience(data, self.choices(arrays, data), self._reward(data, arrays))
        return self._taught(arrays, seen, rate)

    @door
    def trial(
        self, weights: WeightsLike, data: Dataset, rate: float | Array, key: Array
    ) -> tuple[Float[Array, ""], Weights]:
        """One trial: a stimulus, a choice and a reward are drawn, and the choice taken learns.

        **Returns:** ½ (R − Q^tot_c)² of this trial, and the change of every edge.
        """
        arrays = checked_weights(self.arch, weights)
        dtype = jnp.result_type(*arrays.values())
        data = jax.tree.map(jnp.asarray, data)
        draw = jax.random.uniform(key, (3,), dtype)
        stimulus = _drawn(draw[0], jnp.asarray(data.probability, dtype))
        shown = chosen(data, Batch(stimulus[None], jnp.ones(1, dtype)))
        choice = _drawn(draw[1], self.choices(arrays, shown)[0])
        acting = jax.nn.one_hot(choice, self.n_choices, dtype=dtype)[None]
        reward = (draw[2] < self._reward(shown, arrays)).astype(dtype)
        return self._taught(arrays, _Experience(shown, acting, reward), rate)

    @door
    def check(self, data: Dataset) -> None:
        """Raise where the data is no task with rewards: see `Agent`."""
        check_rewards(data)
        self._reward(data)

    def _reward(self, data: Dataset, arrays: Weights | None = None) -> Float[Array, "N choices"]:
        """The probability that each choice is rewarded, in the precision of the weights."""
        reward = jnp.asarray(next(iter(data.y.values())))
        require(
            reward.ndim == 2 and reward.shape[1] == self.n_choices,
            "there must be one reward per choice",
            got=f"rewards of shape {reward.shape} for {self.n_choices} choices",
            wanted=f"shape (N, {self.n_choices})",
            fix="a column of y for every choice",
        )
        return reward if arrays is None else reward.astype(jnp.result_type(*arrays.values()))

    def _taught(
        self, arrays: Weights, seen: _Experience, rate: float | Array
    ) -> tuple[Float[Array, ""], Weights]:
        rate = one_number("the rate", rate, "for example rate=0.1")
        rates, decay = dict(self.rates), dict(self.decay)
        slopes = {
            name: jax.grad(self._error)(arrays, seen, outputs) for name, outputs in self.losses
        }
        step = {
            edge: -rate * rates[edge] * (slopes[name][edge] + decay[edge] * arrays[edge])
            for edge, name in self.trained_by
        }
        return self._error(arrays, seen, self.arch.outputs), step

    def _error(self, arrays: Weights, seen: _Experience, outputs: Sequence[str]) -> Array:
        """⟨½ (R − Σ_v h_{v,c})²⟩, R being 1 with the probability in `seen.reward`, else 0."""
        found = self(arrays, seen.data)
        q = sum((found[v] for v in outputs), jnp.zeros(()))
        each = seen.reward * (1 - q) ** 2 + (1 - seen.reward) * q**2
        weight = jnp.asarray(seen.data.probability, q.dtype)
        return jnp.dot(weight, jnp.sum(seen.acting * each, axis=1)) / 2

    @cached_property
    def _linear(self) -> GDLN:
        return GDLN(self.arch)

    # ---- files ---------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """What a file holds; a policy that is a function of one's own cannot be written."""
        told = {name: getattr(self, name) for name in ("losses", "trained_by", "rates", "decay")}
        return {"arch": self.arch.describe(), "policy": described(self.policy)} | told

    @classmethod
    @door
    def from_description(cls, description: Mapping[str, Any]) -> Agent:
        """The agent that `describe` described."""
        told = {name: dict(description[name]) for name in ("losses", "trained_by")}
        numbers = {name: dict(description[name]) for name in ("rates", "decay")}
        return cls(
            Architecture.from_description(description["arch"]),
            **told,
            **numbers,
            policy=from_description(description["policy"]),
        )


@dataclass(frozen=True, eq=False)
class _Experience:
    """Stimuli, the probability that each choice was taken, and that it was rewarded."""

    data: Dataset
    acting: Float[Array, "N choices"]
    reward: Float[Array, "N choices"]


def _drawn(uniform: Array, probability: Float[Array, " K"]) -> Array:
    """The index that a uniform number stands for."""
    below = jnp.sum(uniform >= jnp.cumsum(probability))
    return jnp.minimum(below, len(probability) - 1)


# ---- checks -------------------------------------------------------------------------------------


def _check_own_losses(loss: object) -> None:
    if checked_loss(loss) is not squared:  # type: ignore[arg-type]
        raise NeuralRaceError(
            "an agent has losses of its own",
            got=f"loss={loss!r}" if isinstance(loss, str) else "loss, a function",
            wanted="the squared errors of the reward that its edges name",
            fix="leave loss out; pass losses and trained_by to Agent",
        )


def _checked_losses(arch: Architecture, given: Any) -> dict[str, tuple[str, ...]]:
    fix = "for example losses={'total': ['q_stim', 'q_const'], 'stim': ['q_stim']}"
    given = dict(given) if isinstance(given, tuple) else given
    found = {}
    for name, outputs in by_name("losses", given, fix).items():
        nodes = tuple(entries(f"loss {name!r}", outputs, fix))
        stray = [v for v in nodes if v not in arch.outputs]
        if not nodes or stray or len(set(nodes)) < len(nodes):
            raise NeuralRaceError(
                f"loss {name!r} has no reward to compare with",
                got=f"nodes {listed(nodes)}",
                wanted=f"one or more of the output nodes {listed(arch.outputs)}, each once",
                fix=spelled(stray[0], arch.outputs, fix) if stray else fix,
            )
        found[name] = nodes
    return found


def _checked_edges(
    arch: Architecture, losses: Mapping[str, tuple[str, ...]], given: Any
) -> dict[str, str]:
    fix = "for example trained_by={'W1': 'total', 'W2': 'stim'}"
    given = dict(given) if isinstance(given, tuple) else given
    given = by_name("trained_by", given, fix)
    missing = [edge for edge in arch.edges if edge not in given]
    if missing:
        raise NeuralRaceError(
            f"edge {missing[0]!r} has no loss that trains it",
            got=f"losses for {listed(given)}",
            wanted=f"one loss for each of {listed(arch.edges)}",
            fix=f"trained_by={{{missing[0]!r}: {next(iter(losses), 'total')!r}, …}}",
        )
    for edge, name in given.items():
        if edge not in arch.edges or not isinstance(name, str) or name not in losses:
            known = losses if edge in arch.edges else arch.edges
            odd = name if edge in arch.edges else edge
            raise NeuralRaceError(
                f"trained_by names {odd!r}, which is no {'loss' if known is losses else 'edge'}",
                got=f"{edge!r}: {name!r}",
                wanted=f"one of {listed(known)}",
                fix=spelled(odd, known, fix),
            )
        require(
            any(arch.path_count(edge=edge, target=v) for v in losses[name]),
            f"edge {edge!r} cannot learn from loss {name!r}",
            got=f"a loss of {listed(losses[name])}, to which no path from {edge!r} leads",
            wanted="a loss of an output node that the edge leads to",
            fix=fix,
        )
    return {edge: given[edge] for edge in arch.edges}


def _per_edge(
    arch: Architecture, what: str, given: Any, default: float
) -> tuple[tuple[str, float], ...]:
    """One number for every edge, from one number or from those of some edges."""
    given = dict(given) if isinstance(given, tuple) else given
    fix = f"one {what} for all edges, or {{edge: {what}}}"
    numbers = given if isinstance(given, Mapping) else dict.fromkeys(arch.edges, given)
    for edge in by_name(f"the {what}s", numbers, fix):
        if edge not in arch.edges:
            raise NeuralRaceError(
                f"there is a {what} for {edge!r}, which is no edge",
                got=listed(numbers),
                wanted=f"some of {listed(arch.edges)}",
                fix=spelled(edge, arch.edges, fix),
            )
    return tuple(
        (edge, real_number(f"the {what} of {edge!r}", numbers.get(edge, default), least=0, fix=fix))
        for edge in arch.edges
    )


def check_rewards(data: Dataset) -> None:
    """Raise where a dataset is no task with rewards; arrays that JAX is tracing are not read."""
    check_unweighed(data, "learning from rewards")
    if any(map(is_traced, data.y.values())) or is_traced(data.sample_weight):
        return
    tables = {node: np.asarray(y) for node, y in data.y.items()}
    node, first = next(iter(tables.items()))
    fix = "y = {output node: probability that each choice is rewarded}, the same for all nodes"
    for other, table in tables.items():
        require(
            table.shape == first.shape and (table == first).all(),
            f"the rewards of {node!r} and {other!r} differ",
            got=f"{node!r} of shape {first.shape}, {other!r} of shape {table.shape}",
            wanted="one reward for each choice, whatever predicts it",
            fix=fix,
        )
    require(
        ((first >= 0) & (first <= 1)).all(),
        "rewards must be probabilities",
        got=f"entries from {first.min():.4g} to {first.max():.4g}",
        wanted="numbers from 0 to 1: how often a choice is rewarded with 1",
        fix=fix,
    )
    require(
        first.any(),
        "the losses have no reward: no choice is ever rewarded",
        got="rewards of 0 for every stimulus and choice",
        wanted="at least one choice that is rewarded",
        fix=fix,
    )
    never = np.flatnonzero(np.asarray(data.probability) <= 0)
    if never.size:
        raise NeuralRaceError(
            f"stimulus {never[0] + 1} never occurs",
            got=f"a weight of 0 for {never.size} of {data.n_samples} stimuli",
            wanted="a positive weight for every stimulus",
            fix="leave them out: data.take(np.flatnonzero(data.sample_weight))",
        )

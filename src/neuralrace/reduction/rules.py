"""Whether an update rule keeps the blocks of a race, tested on random weights and gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.door import door
from neuralrace.dynamics.functions import ByCode
from neuralrace.dynamics.methods import Optimized, Stepper
from neuralrace.dynamics.systems import Batch, State, System
from neuralrace.errors import NeuralRaceError, require
from neuralrace.results import Result, Sentence, framed
from neuralrace.tolerances import EQUAL
from neuralrace.types import Matrix

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas
    from optax import GradientTransformation

STEPS = 3
"""The number of steps that a rule takes in a test: what it remembers counts."""

SCALES = (1e-6, 1.0, 1e6)
"""The sizes of gradients at which a rule is tested, with weights of size 1."""

SMALL_WEIGHTS = 1e-6
"""The size of weights at which a rule is tested besides, with gradients of size 1.

Beside larger weights, rounding would hide the updates.
"""

BESIDE = (1e-3, 1.0, 1e3)
"""The size of one block beside the other in the tests."""

SIZES = ((2, 3), (3, 1), (1, 2))
"""The numbers of directions that nodes have in the two blocks of the tests, in turn."""

Weights: TypeAlias = dict[str, Matrix]
"""The matrices of a network by edge or tie."""


class Property(Enum):
    """What a rule must have so that blocks learn by it as the network does.

    ```python
    >>> from neuralrace.reduction import Property
    >>> [each.name for each in Property]
    ['ROTATIONS', 'BLOCKS', 'PADDING']

    ```
    """

    ROTATIONS = "commutes with rotations of every node"
    BLOCKS = "treats blocks one by one"
    PADDING = "is not changed by zeros around a block"


@final
@dataclass(frozen=True, eq=False, repr=False)
class RuleCheck(Result):
    """How far a rule is from keeping the blocks; see `keeps_blocks`.

    `gaps` has, for every property, the largest difference between an update and what the property
    asks for, relative to the update of its block; it counts as rounding up to `tolerance`.

    ```python
    >>> import optax, neuralrace as nr
    >>> adam = nr.reduction.keeps_blocks(optax.adam(0.01))
    >>> adam.holds, [each.name for each in adam.fails]
    (False, ['ROTATIONS'])

    ```
    """

    gaps: Mapping[Property, float]
    tolerance: float = EQUAL

    @property
    def fails(self) -> tuple[Property, ...]:
        """The properties that the rule lacks."""
        return tuple(p for p, gap in self.gaps.items() if not gap <= self.tolerance)

    @property
    def holds(self) -> bool:
        """Whether the rule has all the properties, to rounding, in every test."""
        return not self.fails

    def frame(self) -> pandas.DataFrame:
        """One row per property: `property`, the largest `gap`, and whether it `holds`."""
        rows = [
            {"property": p, "gap": gap, "holds": p not in self.fails}
            for p, gap in self.gaps.items()
        ]
        return framed(["property", "gap", "holds"], rows)

    def sentences(self) -> tuple[Sentence, ...]:
        """Whether the rule keeps the blocks, and what it lacks."""
        if self.holds:
            return (Sentence("keeps", "The rule keeps the blocks in every test."),)
        lacks = "; ".join(
            f"it does not hold that it {p.value} (off by {self.gaps[p]:.2g})" for p in self.fails
        )
        return (Sentence("keeps", f"The rule does not keep the blocks: {lacks}."),)

    @door
    def plot(self, *, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """The gap of every property, with the tolerance; returns the axes."""
        from neuralrace.plot.curves import axes_or_new

        ax = axes_or_new(ax)
        names = [p.name.lower() for p in self.gaps]
        ax.bar(names, [max(gap, np.finfo(float).eps) for gap in self.gaps.values()])
        ax.axhline(self.tolerance, linestyle="--", color="0.5")
        ax.set(yscale="log", ylabel="relative gap")
        return ax


@door
def keeps_blocks(
    optimizer: GradientTransformation | Stepper, arch: Architecture | None = None
) -> RuleCheck:
    """Test whether an update rule keeps the blocks of the race.

    A rule U(W, G) of weights W and gradients G keeps them if it commutes with rotations of every
    node, U(R W Q, R G Q) = R U(W, G) Q, if what a block moves by does not depend on the others, and
    if zeros around a block leave its updates as they are. Then each block learns by the rule as if
    it were alone. This is tested, not proved: on random block-diagonal weights *and* gradients,
    over three steps with the rule's own memory (what it does later is not seen), for gradients
    of sizes from 1e-6 to 1e6, weights of size 1 and 1e-6, and blocks of unequal size.

    **Arguments:** `arch` is the network whose edges the rule is to know by name, by default a chain
    of the edges W1 and W2.

    ```python
    >>> import optax, neuralrace as nr
    >>> nr.reduction.keeps_blocks(optax.sgd(0.1, momentum=0.9)).holds
    True
    >>> print(nr.reduction.keeps_blocks(optax.clip_by_global_norm(100.0)).fails)
    (<Property.BLOCKS: 'treats blocks one by one'>,)

    ```
    """
    arch = arch or Architecture.chain(1, 1, 1)
    of = arch.class_of
    ends = tuple((e, of[s], of[t]) for e, (s, t) in arch.matrix_ends.items())
    if isinstance(optimizer, Stepper):
        return _checked(optimizer, ends)
    return _remembered(ByCode(optimizer), ends)


def check_keeps_blocks(
    optimizer: GradientTransformation | Stepper | None, arch: Architecture
) -> None:
    """Raise where blocks do not learn by a rule as the network does."""
    if optimizer is None:
        return
    check = keeps_blocks(optimizer, arch)
    require(
        check.holds,
        "the optimizer does not keep the blocks of the race",
        got=check.sentences()[0].text,
        wanted=f"a rule that {', '.join(p.value for p in Property)}",
        fix="optax.sgd with momentum or not, optax.add_decayed_weights before it, or "
        "nr.dynamics.muon; nr.train trains the network itself by any optimizer",
    )


@lru_cache(maxsize=64)
def _remembered(
    optimizer: ByCode[GradientTransformation], ends: tuple[tuple[str, str, str], ...]
) -> RuleCheck:
    return _checked(Optimized(optimizer), ends)


@final
class _Slope(System):
    """A loss with this gradient everywhere: Σ_e ⟨G_e, W_e⟩, which adds up over blocks."""

    gradient: Mapping[str, jax.Array]

    def loss(self, state: State) -> jax.Array:
        return sum((jnp.vdot(g, state[e]) for e, g in self.gradient.items()), jnp.zeros(()))

    def loss_and_step(
        self, state: State, rate: float | jax.Array, batch: Batch | None = None
    ) -> tuple[jax.Array, State]:
        return self.loss(state), {e: -rate * g for e, g in self.gradient.items()}


def _checked(method: Stepper, ends: tuple[tuple[str, str, str], ...]) -> RuleCheck:
    rng, learn = np.random.default_rng(0), jax.jit(partial(_updates, method))
    nodes = dict.fromkeys(v for _, *two in ends for v in two)
    nodes = {v: np.array(SIZES[i % len(SIZES)]) for i, v in enumerate(nodes)}
    gaps = dict.fromkeys(Property, 0.0)
    sizes = [(1.0, scale) for scale in SCALES] + [(SMALL_WEIGHTS, 1.0)]
    for (of_weights, of_gradients), beside in itertools.product(sizes, BESIDE):
        drawn = lambda block, scale: {
            e: scale * rng.normal(size=(nodes[t][block], nodes[s][block])) for e, s, t in ends
        }
        ours, others = (
            [drawn(b, size * of_weights), *(drawn(b, size * of_gradients) for _ in range(STEPS))]
            for b, size in ((0, 1.0), (1, beside))
        )
        nothing = [{e: np.zeros_like(w) for e, w in each.items()} for each in others]
        both = [_joined(a, b) for a, b in zip(ours, others, strict=True)]
        padded = [_joined(a, b) for a, b in zip(ours, nothing, strict=True)]
        turn = {v: _rotation(rng, int(n.sum())) for v, n in nodes.items()}
        turned = [{e: turn[t] @ w[e] @ turn[s].T for e, s, t in ends} for w in both]
        runs = (_taken(learn, each) for each in (ours, padded, both, turned))
        for alone, in_zeros, beside_others, rotated in zip(*runs, strict=True):
            for e, s, t in ends:
                first = slice(nodes[t][0]), slice(nodes[s][0])
                size = np.abs(alone[e]).max(), np.abs(beside_others[e]).max()
                own = np.zeros_like(in_zeros[e])
                own[first] = alone[e]
                rest = beside_others[e].copy()
                rest[first] = 0.0
                rest[first[0].stop :, first[1].stop :] = 0.0
                back = turn[t].T @ rotated[e] @ turn[s]
                mixed = beside_others[e][first] - in_zeros[e][first]
                found = {
                    Property.PADDING: _relative(in_zeros[e] - own, size[0]),
                    Property.BLOCKS: _relative(mixed, size[0]) + _relative(rest, size[1]),
                    Property.ROTATIONS: _relative(back - beside_others[e], size[1]),
                }
                gaps = {p: np.fmax(gap, found[p]) for p, gap in gaps.items()}
    return RuleCheck({p: float(gap) for p, gap in gaps.items()})


def _relative(gap: np.ndarray, size: float) -> float:
    """The largest entry of a difference as a part of the size; infinite where it is not finite."""
    largest = np.abs(gap).max(initial=0.0)
    if not np.isfinite(largest):
        return np.inf
    return float(largest / size) if size else np.inf if largest else 0.0


def _joined(a: Weights, b: Weights) -> Weights:
    """Two blocks on the diagonal of one matrix for every edge."""
    found = {}
    for e, w in a.items():
        found[e] = np.zeros(np.add(w.shape, b[e].shape))
        found[e][: len(w), : w.shape[1]] = w
        found[e][len(w) :, w.shape[1] :] = b[e]
    return found


def _rotation(rng: np.random.Generator, n: int) -> Matrix:
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


def _updates(method: Stepper, first: State, gradients: Sequence[State]) -> list[State]:
    """What the weights move by in every step."""
    memory, found, state = method.begin(first), [], first
    for gradient in gradients:
        _, after, memory = method.step(_Slope(gradient), state, memory)
        found.append({e: after[e] - state[e] for e in state})
        state = after
    return found


def _taken(learn: Callable[..., list[State]], draws: list[Weights]) -> list[Weights]:
    """What weights, the first of the draws, move by with the others as gradients."""
    with jax.enable_x64(True):
        first, *gradients = ({e: jnp.asarray(w) for e, w in draw.items()} for draw in draws)
        try:
            return jax.tree.map(np.asarray, learn(first, gradients))
        except NeuralRaceError:
            raise
        except Exception as error:
            raise NeuralRaceError(
                "the optimizer cannot take a step with the weights of this race",
                got=f"{type(error).__name__}: {str(error).partition(chr(10))[0]:.200}",
                wanted=f"a rule for weights by edge, {{{', '.join(map(repr, first))}}}",
                fix="name every edge that the optimizer tells apart",
            ) from error

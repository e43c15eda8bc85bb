"""What an optimizer's steps mean in time: found by trying it on gradients that are known.

Descent with rates η₁, η₂, … moves along the flow by their sum. With momentum μ each gradient is
applied again μ, μ², … times as large in later steps, altogether η/(1 − μ): about the flow at that
time, as long as the gradient changes slowly. Nothing of the kind holds for other optimizers.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from neuralrace.dynamics.fingerprint import Known

if TYPE_CHECKING:
    from optax import GradientTransformation

CLOSE = 1e-9
"""Two responses of an optimizer that differ by less, relatively, count as equal."""

FEW = 3
"""Rows and columns of the weights, and steps at the true shapes, that an optimizer is tried on."""

LARGE = 1e12
"""How much larger gradients are tried too, to see where they are clipped."""

CHUNK = 1024
"""Steps of an optimizer that are tried together, which bounds the memory of a long schedule."""

Shapes: TypeAlias = Mapping[str, tuple[int, ...]]
"""The shape of the weights of every edge."""


@final
@dataclass(frozen=True, eq=False)
class Clock:
    """How steps are turned into time.

    `kind` is "flow" (time is the sum of the rates), "approximate flow" (momentum) or "steps".
    `rates` holds the rate of every step, or a single rate that all steps share; None for "steps".
    """

    kind: str
    rates: Float[np.ndarray, " steps_or_one"] | None = None
    momentum: float = 0.0

    def time(self, stops: Int[np.ndarray, " T"]) -> Float[np.ndarray, " T"]:
        """The time at some steps."""
        if self.rates is None:
            return stops.astype(float)
        if self.rate is not None:
            return self.rate / (1 - self.momentum) * stops
        passed = np.concatenate([[0.0], np.cumsum(self.rates)]) / (1 - self.momentum)
        return passed[stops]

    @property
    def rate(self) -> float | None:
        """The learning rate, where it is the same at every step."""
        if self.rates is None or len(self.rates) == 0:
            return None
        first = float(f"{self.rates[0]:.12g}")  # responses are rounded
        return first if bool((np.abs(self.rates - first) <= CLOSE * abs(first)).all()) else None

    @property
    def name(self) -> str:
        """What kind of optimizer this is: "descent", "momentum" or "other"."""
        return {"flow": "descent", "approximate flow": "momentum"}.get(self.kind, "other")


def clock_of(transformation: GradientTransformation, shapes: Shapes, steps: int) -> Clock:
    """The clock of an optax transformation over a run of `steps` steps.

    The transformation is tried on weights of a few rows and columns: on a constant gradient, on
    one that varies in time, on the same 10¹² times as large, and at other weights; then for the
    first steps on weights of the true shapes. Plain descent and momentum, with any schedule, are
    recognised by their responses: the same multiple of the gradient in every entry. Any other
    response leaves only the number of steps as a clock.

    The first steps show which it is. A transformation that carries nothing but arrays of the
    weights' shapes cannot count its steps, so its rate is constant. Schedules are read `CHUNK`
    steps at a time, and checked in the same way to the end.
    """
    small = {edge: tuple(min(n, FEW) for n in shape) for edge, shape in shapes.items()}
    known = Known(transformation)
    try:
        with jax.enable_x64(True):
            _, true = next(_responses(known, shapes, FEW))
            return _recognised(known, small, steps, true)
    except (TypeError, ValueError):  # an optimizer that needs more than gradients
        return Clock("steps")


@final
@dataclass(frozen=True)
class _Momentum:
    """Descent with momentum. `past` is its memory of the constant and of the varying gradient."""

    momentum: float
    nesterov: bool
    past: tuple[float, float] = (0.0, 0.0)

    def read(
        self, one: np.ndarray, some: np.ndarray, vary: np.ndarray, close: float
    ) -> tuple[np.ndarray, _Momentum] | None:
        """The rates that explain some responses, and the model after them; None if none do."""
        constant, past = self._filtered(np.ones(len(vary)), self.past[0])
        varying, later = self._filtered(vary, self.past[1])
        rates = -one / constant
        if (np.abs(some + rates * varying) > close).any():
            return None
        return rates, replace(self, past=(past, later))

    def _filtered(self, gradients: np.ndarray, past: float) -> tuple[np.ndarray, float]:
        """Σ_k μ^k g_{t−k}, the memory of momentum; Nesterov's looks one step ahead."""
        from scipy.signal import lfilter

        begin = [self.momentum * past]
        memory = lfilter([1.0], [1.0, -self.momentum], gradients, zi=begin)[0]
        ahead = gradients + self.momentum * memory if self.nesterov else memory
        return ahead, float(memory[-1])


def _recognised(
    known: Known[GradientTransformation],
    shapes: Shapes,
    steps: int,
    true: Float[np.ndarray, "4 few edges"],
) -> Clock:
    """The clock by the responses at small shapes; `true` are the first ones at the true shapes."""
    rates: list[np.ndarray] = []
    models: list[_Momentum] = []
    largest = np.zeros(4)
    for low, (vary, found) in zip(range(0, steps, CHUNK), _responses(known, shapes, CHUNK)):  # noqa: B905
        vary, found = vary[: steps - low], found[:, : steps - low]
        largest = np.maximum(largest, np.abs(found).max(axis=(1, 2)))
        one, some, large, elsewhere = found
        pairs = [(one, one[:, :1], 0), (elsewhere, some, 1), (large, LARGE * some, 2)]
        if low == 0:
            pairs.append((true[1, : len(some)], some[:FEW], 1))
        if not all((np.abs(a - b) <= CLOSE * largest[run]).all() for a, b, run in pairs):
            return Clock("steps")
        one, some = one[:, 0], some[:, 0]
        if low == 0:
            models = _candidates(one, some, vary)
        read = (model.read(one, some, vary, CLOSE * largest[1]) for model in models)
        fitting = next((found for found in read if found is not None), None)
        if fitting is None:
            return Clock("steps")
        rates.append(fitting[0])
        models = [fitting[1]]
        if low == 0 and np.ptp(rates[0]) <= CLOSE * largest[0] and not _counts(known, shapes):
            rates = [rates[0][:1]]
            break
    if largest[0] == 0:
        return Clock("steps")
    momentum = models[0].momentum
    return Clock("approximate flow" if momentum else "flow", np.concatenate(rates), momentum)


def _counts(known: Known[GradientTransformation], shapes: Shapes) -> bool:
    """Whether a transformation may count its steps: it carries more than arrays like weights."""
    weights = {edge: jax.ShapeDtypeStruct(shape, float) for edge, shape in shapes.items()}
    memory = jax.tree.leaves(jax.eval_shape(known.value.init, weights))
    return not {leaf.shape for leaf in memory} <= set(shapes.values())


def _responses(
    known: Known[GradientTransformation], shapes: Shapes, length: int
) -> Iterator[tuple[Float[np.ndarray, " steps"], Float[np.ndarray, "4 steps edges"]]]:
    """Gradients that vary, and what multiple of its gradient each edge moves by, at every step.

    That many steps at a time, without end. A response that is no multiple of the gradient is NaN.
    """
    rng = np.random.default_rng(1)
    pattern = {edge: jnp.asarray(rng.normal(size=shape) + 2.0) for edge, shape in shapes.items()}
    at = jnp.array([0.0, 0.0, 0.0, 1.0])
    memory = jax.vmap(lambda a: known.value.init(_filled(pattern, a)))(at)
    rng = np.random.default_rng(0)
    while True:
        vary = rng.normal(size=length) + 3.0
        runs = jnp.stack([jnp.ones(length), vary, LARGE * vary, vary])
        memory, found = _tried(known, pattern, memory, runs, at)
        yield vary, np.asarray(found, np.float64)


def _filled(pattern: PyTree, value: Array) -> PyTree:
    return jax.tree.map(lambda p: jnp.full(p.shape, value), pattern)


@functools.partial(jax.jit, static_argnums=0)
def _tried(
    known: Known[GradientTransformation],
    pattern: dict[str, Array],
    memory: PyTree,
    runs: Float[Array, "4 steps"],
    at: Float[Array, " 4"],
) -> tuple[PyTree, Float[Array, "4 steps edges"]]:
    def one(memory: PyTree, gradients: Array, at: Array) -> tuple[PyTree, Array]:
        weights = _filled(pattern, at)

        def step(memory: PyTree, g: Array) -> tuple[PyTree, Array]:
            gradient = jax.tree.map(lambda p: g * p, pattern)
            change: PyTree
            change, memory = known.value.update(gradient, memory, weights)
            return memory, jnp.stack([multiple(change[e], pattern[e]) for e in pattern])

        return jax.lax.scan(step, memory, gradients)

    def multiple(change: Array, pattern: Array) -> Array:
        each = change / pattern
        fine = jnp.max(jnp.abs(each - each.mean())) <= CLOSE * jnp.max(jnp.abs(each))
        return jnp.where(fine, each.mean(), jnp.nan)

    return jax.vmap(one)(memory, runs, at)


def _candidates(one: np.ndarray, some: np.ndarray, random: np.ndarray) -> list[_Momentum]:
    """The momenta that would explain the second step: none, heavy ball, Nesterov's."""
    found = [(0.0, False)]
    if len(one) >= 2 and one[1] != 0:
        a, b, q = random[0], random[1], some[1] / one[1]
        if q != a:
            found.append((float((b - q) / (q - a)), False))
            roots = np.roots([a - q, b - q, b - q])
            found += [(float(root.real), True) for root in roots if abs(root.imag) < CLOSE]
    digits = 10  # that float64 keeps after two differences
    rounded = [(round(m, digits), nesterov) for m, nesterov in found]
    return [_Momentum(m, nesterov) for m, nesterov in rounded if 0 <= m < 1]

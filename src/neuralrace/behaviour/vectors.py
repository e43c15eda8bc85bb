"""The average learning of an agent as a vector field: weights as one row, velocity, Jacobian."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from itertools import islice, permutations, product

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from neuralrace.behaviour.agent import Agent
from neuralrace.dataset import Dataset
from neuralrace.tolerances import (
    DAMPING,
    FIRST_DAMPING,
    IMPLICIT_CHANGE,
    IMPLICIT_STEP,
    NEUTRAL,
    SYMMETRIC,
)


def rounding(values: np.ndarray) -> float:
    """The size below which one of these eigenvalues, or singular values, counts as zero."""
    return NEUTRAL * max(1.0, float(np.abs(values).max(initial=0.0)))


def flat(agent: Agent, weights: Mapping[str, np.ndarray]) -> Float[np.ndarray, " n"]:
    """All weights as one row, edge after edge."""
    return np.concatenate([np.asarray(weights[e], float).ravel() for e in agent.arch.edges])


def shaped(agent: Agent, row: Array) -> dict[str, Array]:
    """A row as weights by edge."""
    shapes = agent.arch.shapes
    ends = np.cumsum([rows * columns for rows, columns in shapes.values()])
    parts = jnp.split(row, ends[:-1])
    return {e: part.reshape(shapes[e]) for e, part in zip(shapes, parts, strict=True)}


def places(agent: Agent) -> dict[str, np.ndarray]:
    """Where the entries of every edge are in the row."""
    count = sum(rows * columns for rows, columns in agent.arch.shapes.values())
    return {e: np.asarray(part).ravel() for e, part in shaped(agent, jnp.arange(count)).items()}


def _velocity(agent: Agent, data: Dataset, row: Array) -> Array:
    moved = agent.velocity(shaped(agent, row), data)
    return jnp.concatenate([moved[edge].ravel() for edge in agent.arch.edges])


@functools.partial(jax.jit, static_argnums=0)
def velocity(agent: Agent, data: Dataset, row: Float[Array, " n"]) -> Float[Array, " n"]:
    """dW/dt on average, as a row."""
    return _velocity(agent, data, row)


@functools.partial(jax.jit, static_argnums=0)
def jacobian(agent: Agent, data: Dataset, row: Float[Array, " n"]) -> Float[Array, "n n"]:
    """The derivative of the velocity with respect to the weights."""
    return jax.jacfwd(functools.partial(_velocity, agent, data))(row)


@functools.partial(jax.jit, static_argnums=0)
def values(
    agent: Agent, data: Dataset, rows: Float[Array, "K n"]
) -> Float[Array, "K outputs N choices"]:
    """The values that each output node gives to the choices on every stimulus, for many weights."""

    def one(row: Array) -> Array:
        found = agent(shaped(agent, row), data)
        return jnp.stack([found[node] for node in agent.arch.outputs])

    return jax.vmap(one)(rows)


@functools.partial(jax.jit, static_argnums=(0, 4))
def roots(
    agent: Agent,
    data: Dataset,
    rows: Float[Array, "K n"],
    relaxed: Bool[Array, " K"],
    steps: int = 300,
) -> tuple[Float[Array, "K n"], Float[Array, " K"]]:
    """Where the velocity v vanishes, from many starts, by two methods.

    1. Starts that are `relaxed` first follow the flow, by implicit steps (1/δ − J) Δ = v, J the
       Jacobian, with a duration δ that grows as v falls: they end where learning would rest.
    2. All then follow Levenberg and Marquardt: (JᵀJ + μ) Δ = −Jᵀv, taken where it makes v smaller;
       μ then falls, otherwise it rises. Near a root this is Newton's method; on a family of roots
       it leads to the nearest one.

    **Returns:** the ends of twice `steps` steps, and the largest entry of the velocity there.
    """
    field = functools.partial(_velocity, agent, data)
    unit = jnp.eye(rows.shape[1])

    def known(row: Array) -> tuple[Array, Array]:
        v = field(row)
        return v, v

    measured = jax.jacfwd(known, has_aux=True)

    def step(count: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        row, v, J, damping, relaxing = carry
        flowing = relaxing & (count < steps)
        # about the change of weights by an implicit step
        duration = jnp.clip(IMPLICIT_CHANGE / jnp.linalg.norm(v), *IMPLICIT_STEP)
        matrix = jnp.where(flowing, unit / duration - J, J.T @ J + damping * unit)
        tried = row + jnp.linalg.solve(matrix, jnp.where(flowing, v, -J.T @ v))
        slope, moved = measured(tried)
        better = flowing | (jnp.sum(moved**2) < jnp.sum(v**2))
        after = (tried, moved, slope)
        kept = jax.tree.map(lambda new, old: jnp.where(better, new, old), after, (row, v, J))
        damping = jnp.where(flowing, damping, jnp.where(better, damping / 5, damping * 4))
        return *kept, jnp.clip(damping, *DAMPING), relaxing

    def one(row: Array, relaxing: Array) -> tuple[Array, Array]:
        J, v = measured(row)
        start = (row, v, J, jnp.asarray(FIRST_DAMPING, row.dtype), relaxing)
        row, v, *_ = jax.lax.fori_loop(0, 2 * steps, step, start)
        return row, jnp.max(jnp.abs(v))

    return jax.vmap(one)(rows, relaxed)


def symmetries(agent: Agent, data: Dataset) -> list[Int[np.ndarray, " n"]]:
    """Orders of the weights under which the average learning of an agent looks the same.

    Input nodes among each other, hidden nodes and choices are exchanged, such as left and right.
    An exchange P counts if v(P W) = P v(W) for the velocity v at random weights W: this asks at
    once whether task, teaching signals, rates and decay are symmetric.
    """
    arch = agent.arch
    orders = (
        permutations(arch.inputs),
        permutations(arch.hidden),
        permutations(range(agent.n_choices)),
    )
    rows = np.random.default_rng(0).normal(size=(2, sum(map(len, places(agent).values()))))
    moved = [np.asarray(velocity(agent, data, jnp.asarray(row))) for row in rows]
    found = []
    for inputs, hidden, choices in islice(product(*orders), 500):  # at most so many are tried
        renamed = dict(zip((*arch.inputs, *arch.hidden), (*inputs, *hidden), strict=True))
        order = _order(agent, renamed, choices)
        if order is None or (order == np.arange(len(order))).all():
            continue
        if all(
            np.abs(np.asarray(velocity(agent, data, jnp.asarray(row[order]))) - v[order]).max()
            <= SYMMETRIC
            for row, v in zip(rows, moved, strict=True)
        ):
            found.append(order)
    return found


def _order(agent: Agent, renamed: dict[str, str], choices: Sequence[int]) -> np.ndarray | None:
    """Where each weight comes from if nodes and choices are renamed; None if the graph differs."""
    arch, where = agent.arch, places(agent)
    by_ends = {ends: edge for edge, ends in arch.edges.items()}
    if len(by_ends) < len(arch.edges):
        return None
    parts = []
    for source, target in arch.edges.values():
        twin = by_ends.get((renamed[source], renamed.get(target, target)))
        if twin is None:
            return None
        shape = arch.sizes[target], arch.sizes[source]
        if where[twin].size != shape[0] * shape[1]:
            return None
        table = where[twin].reshape(shape)
        parts.append((table[list(choices)] if target in arch.outputs else table).ravel())
    return np.concatenate(parts)

"""Symmetries of average learning: exchanges of nodes and of choices that change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, permutations, product

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from neuralrace.behaviour.agent import Agent
from neuralrace.behaviour.vectors import places, velocity
from neuralrace.dataset import Dataset
from neuralrace.tolerances import SYMMETRIC


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

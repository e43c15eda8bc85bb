"""Shared bases: the finest block form that all statistics of a gated task have in common.

The papers assume orthogonal bases that make every Σ^yx(p) and Σ^x(j,p) diagonal (NRR Eqs. 7–8,
MHS Assumption 2.1.1). Here they are found, and where the matrices do not commute the finest
common *blocks* are. A symmetric T_v at every input and output node with T_a M = M T_b for each
matrix M between nodes a and b is a symmetry of all of them; the eigenvectors of a random one
separate the blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int

from neuralrace.reduction.mixtures import Family, Mixer

DENSE_LIMIT = 3000
"""Unknowns up to which all symmetries are found at once; above, random ones by projection."""

ROUNDING, SILENT = 1e-7, 1e-11
"""What is zero in double precision: the root of an eigenvalue, and a singular value."""

GAP, LOOSE, TRIES = 0.2, 100.0, 3
"""A relative step that counts as a gap; how far from a symmetry, in tolerances, still to try; how
often."""

FIRST_DRAWS, CHECK_DRAWS, MAX_ROUNDS = 3, 2, 40
"""Mixtures drawn at first, drawn to check the blocks and then added, and how often at the most."""


@final
@dataclass(frozen=True)
class SharedBasis:
    """Orthonormal directions at every input and output node, sorted into blocks.

    Column i of `directions[v]` belongs to block `block[v][i]`; blocks count from 0 to `count − 1`.
    What `directions` leaves out of a node's space is silent: no statistic touches it. `residual`
    is the largest coupling between different blocks, relative to the largest statistic of its
    kind, over every mixture that was drawn.
    """

    directions: Mapping[str, Float[np.ndarray, "_ _"]]
    block: Mapping[str, Int[np.ndarray, " _"]]
    count: int
    residual: float

    def of(self, block: int) -> dict[str, Float[np.ndarray, "_ _"]]:
        """The directions of one block, by node; nodes that have none are left out."""
        found = {v: self.directions[v][:, self.block[v] == block] for v in self.directions}
        return {v: d for v, d in found.items() if d.shape[1]}


def shared_basis(mixer: Mixer, tolerance: float, seed: int = 0) -> SharedBasis:
    """The finest blocks whose couplings to each other stay below `tolerance`.

    Draws mixtures of the statistics until fresh ones agree with the blocks found from the others.
    """
    rng = np.random.default_rng(seed)
    family = mixer.family(rng, FIRST_DRAWS)
    found = _blocks(family, _sizes(mixer), tolerance, rng)
    for _ in range(MAX_ROUNDS):
        fresh = mixer.family(rng, CHECK_DRAWS)
        family = family.joined(fresh)
        if _left_out(fresh, found) <= tolerance:
            break
        found = _blocks(family, _sizes(mixer), tolerance, rng)
    return replace(found, residual=_left_out(family, found))


def _left_out(family: Family, basis: SharedBasis) -> float:
    """The largest coupling between blocks, or into directions called silent."""
    return max(
        _outside(_couplings(family.in_basis(basis.directions)), basis), _silence(family, basis)
    )


def _sizes(mixer: Mixer) -> dict[str, int]:
    return {v: mixer.arch.sizes[v] for v in (*mixer.arch.inputs, *mixer.arch.outputs)}


def _blocks(
    family: Family, sizes: Mapping[str, int], tolerance: float, rng: np.random.Generator
) -> SharedBasis:
    """The finest blocks of these matrices over a few cut-offs and random symmetries.

    Of equally fine ones, those that drop the least: near symmetries differ in what they leave over.
    """
    audible = _audible(family, sizes)
    inner = family.in_basis(audible)
    widths = {v: a.shape[1] for v, a in audible.items()}
    found = []
    for turns in _symmetry_bases(inner, widths, tolerance, rng):
        coupling = _couplings(inner.in_basis(turns))
        directions = {v: audible[v] @ turns[v] for v in audible}
        basis = SharedBasis(directions, *_components(coupling, widths, tolerance), residual=0.0)
        found.append(replace(basis, residual=_outside(coupling, basis)))
    return min(found, key=lambda basis: (-basis.count, max(basis.residual, ROUNDING)))


def _audible(family: Family, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """At each node, an orthonormal basis of the directions that some statistic touches."""
    touched: dict[str, list[np.ndarray]] = {v: [np.zeros((n, 1))] for v, n in sizes.items()}
    for (a, b), stack in family.pairs():
        touched[a].append(np.moveaxis(stack, 0, 1).reshape(sizes[a], -1))
        touched[b].append(np.moveaxis(stack, 2, 0).reshape(sizes[b], -1))
    found = {}
    for v, parts in touched.items():
        u, s, _ = np.linalg.svd(np.concatenate(parts, axis=1), full_matrices=False)
        found[v] = u[:, s > SILENT * max(1.0, s[0])]
    return found


def _silence(family: Family, basis: SharedBasis) -> float:
    """The largest part of a statistic that falls into directions called silent."""
    worst = 0.0
    for (a, b), stack in family.pairs():
        left, right = basis.directions[a], basis.directions[b]
        seen = left @ (left.T @ stack @ right) @ right.T
        worst = max(worst, float(np.linalg.norm(stack - seen, axis=(1, 2)).max(initial=0.0)))
    return worst


def _couplings(family: Family) -> dict[tuple[str, str], np.ndarray]:
    """The largest entry, over all matrices, between every two directions."""
    found: dict[tuple[str, str], np.ndarray] = {}
    for pair, stack in family.pairs():
        found[pair] = np.abs(stack).max(axis=0)
    return found


def _components(
    coupling: Mapping[tuple[str, str], np.ndarray], widths: Mapping[str, int], tolerance: float
) -> tuple[dict[str, np.ndarray], int]:
    """Directions joined by couplings above the tolerance, directly or through others."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    start = dict(zip(widths, np.cumsum([0, *widths.values()]).tolist(), strict=False))
    total = sum(widths.values())
    rows, columns = [np.zeros(0, int)], [np.zeros(0, int)]
    for (a, b), size in coupling.items():
        i, j = np.nonzero(size > tolerance)
        rows.append(start[a] + i)
        columns.append(start[b] + j)
    ends = np.concatenate(rows), np.concatenate(columns)
    graph = coo_matrix((np.ones(len(ends[0])), ends), shape=(total, total))
    count, label = connected_components(graph, directed=False)
    return {v: label[start[v] : start[v] + n] for v, n in widths.items()}, int(count)


def _outside(coupling: Mapping[tuple[str, str], np.ndarray], basis: SharedBasis) -> float:
    """The largest coupling between different blocks."""
    worst = 0.0
    for (a, b), size in coupling.items():
        apart = basis.block[a][:, None] != basis.block[b][None, :]
        worst = max(worst, float(size[apart].max(initial=0.0)))
    return worst


# ---- symmetries --------------------------------------------------------------------------------


def _symmetry_bases(
    family: Family, widths: Mapping[str, int], tolerance: float, rng: np.random.Generator
) -> list[dict[str, np.ndarray]]:
    """Eigenvectors, at every node, of random symmetries of the family."""
    unknowns = sum(n * (n + 1) // 2 for n in widths.values())
    if unknowns <= DENSE_LIMIT:
        draws = _symmetries(family, widths, tolerance, rng)
    else:
        draws = [_projected_symmetry(family, widths, rng) for _ in range(2)]
    return [{v: np.linalg.eigh(t)[1] for v, t in draw.items()} for draw in draws]


def _symmetries(
    family: Family, widths: Mapping[str, int], tolerance: float, rng: np.random.Generator
) -> list[dict[str, np.ndarray]]:
    """Random elements of the near null space of Σ_M ‖T_a M − M T_b‖², for a few cut-offs."""
    lengths = {v: n * (n + 1) // 2 for v, n in widths.items()}
    start = dict(zip(lengths, np.cumsum([0, *lengths.values()]).tolist(), strict=False))
    total = sum(lengths.values())
    form = np.zeros((total, total))

    def add(a: str, b: str, matrix: np.ndarray) -> None:
        form[start[a] : start[a] + lengths[a], start[b] : start[b] + lengths[b]] += matrix

    left: dict[str, np.ndarray] = {v: np.zeros((n, n)) for v, n in widths.items()}
    for (a, b), stack in family.pairs():
        left[a] += np.einsum("kij,klj->il", stack, stack)
        left[b] += np.einsum("kij,kil->jl", stack, stack)
        if widths[a] and widths[b]:
            basis_a, basis_b = _symmetric_basis(widths[a]), _symmetric_basis(widths[b])
            mapped = np.einsum("kij,jlq,kml->imq", stack, basis_b, stack, optimize=True)
            cross = np.tensordot(basis_a, mapped, axes=([0, 1], [0, 1]))
            add(a, b, -cross)
            add(b, a, -cross.T)
    for v, gram in left.items():
        if widths[v]:
            basis = _symmetric_basis(widths[v])
            twice = np.tensordot(
                basis, np.tensordot(gram, basis, axes=(1, 0)), axes=([0, 1], [0, 1])
            )
            add(v, v, (twice + twice.T) / 2)
    if not total:
        return [{v: np.eye(n) for v, n in widths.items()}]
    values, vectors = np.linalg.eigh(form)
    breach = np.maximum(np.sqrt(np.maximum(values, 0.0)) / max(1.0, np.sqrt(values[-1])), ROUNDING)
    found = []
    for null in _null_spaces(breach, vectors, tolerance):
        z = null @ rng.normal(size=null.shape[1])
        found.append(
            {
                v: _symmetric_basis(n) @ z[start[v] : start[v] + lengths[v]]
                for v, n in widths.items()
            }
        )
    return found or [{v: np.eye(n) for v, n in widths.items()}]


def _null_spaces(breach: np.ndarray, vectors: np.ndarray, tolerance: float) -> Iterator[np.ndarray]:
    """Spaces of near symmetries, cut off wherever there is a gap in how far they are from one.

    Each is yielded several times, for a random element may have nearly equal eigenvalues.
    """
    for k in np.flatnonzero(np.diff(np.append(breach, np.inf)) > GAP * breach):
        if breach[k] <= max(ROUNDING, LOOSE * tolerance):
            yield from [vectors[:, : k + 1]] * TRIES


@lru_cache(maxsize=32)
def _symmetric_basis(n: int) -> Float[np.ndarray, "n n q"]:
    """An orthonormal basis of the symmetric n × n matrices, along the last axis."""
    rows, columns = np.triu_indices(n)
    basis = np.zeros((n, n, len(rows)))
    index = np.arange(len(rows))
    size = np.where(rows == columns, 1.0, np.sqrt(0.5))
    basis[rows, columns, index] = size
    basis[columns, rows, index] = size
    return basis


def _projected_symmetry(
    family: Family, widths: Mapping[str, int], rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """A random symmetric T minus what breaks the symmetry, found by least squares (LSMR)."""
    from scipy.sparse.linalg import LinearOperator, lsmr

    stacks = list(family.pairs())
    ends = np.cumsum([0, *(n * n for n in widths.values())])
    cuts = np.cumsum([0, *(stack.size for _, stack in stacks)])

    def opened(z: np.ndarray) -> dict[str, np.ndarray]:
        parts = {
            v: z[ends[i] : ends[i + 1]].reshape(n, n) for i, (v, n) in enumerate(widths.items())
        }
        return {v: (t + t.T) / 2 for v, t in parts.items()}

    def breach(z: np.ndarray) -> np.ndarray:
        T = opened(z)
        return np.concatenate([(T[a] @ m - m @ T[b]).ravel() for (a, b), m in stacks])

    def adjoint(r: np.ndarray) -> np.ndarray:
        found = {v: np.zeros((n, n)) for v, n in widths.items()}
        for i, ((a, b), m) in enumerate(stacks):
            part = r[cuts[i] : cuts[i + 1]].reshape(m.shape)
            found[a] += np.einsum("kij,klj->il", part, m)
            found[b] -= np.einsum("kij,kil->jl", m, part)
        return np.concatenate([((t + t.T) / 2).ravel() for t in found.values()])

    make: Any = LinearOperator
    operator = make((int(cuts[-1]), int(ends[-1])), matvec=breach, rmatvec=adjoint, dtype=float)
    z = rng.normal(size=int(ends[-1]))
    correction = lsmr(operator, breach(z), atol=1e-15, btol=1e-15, maxiter=5000)[0]
    return opened(z - correction)

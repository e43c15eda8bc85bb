"""Random mixtures of the path statistics, without listing a single path.

Give every edge a random scalar and run the gated forward pass once for each gate class: T_ts(c) is
then a random combination of the gates g_p(c) of all paths from input s to output t, and
Σ_c T_ts(c) C_c^yx the same combination of all Σ^yx(p). Enough such mixtures span what the paths
span, at a cost that follows edges and gate classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from neuralrace.architecture import Architecture
from neuralrace.statistics import ClassFactor

Pair = tuple[str, str]
Stack = Float[np.ndarray, "_ _ _"]


def edge_depths(arch: Architecture) -> dict[str, int]:
    """How many edges lie before each edge on the longest way to it."""
    at = dict.fromkeys(arch.sizes, 0)
    for node in arch.order:
        for edge in arch.incoming[node]:
            at[node] = max(at[node], at[arch.edges[edge][0]] + 1)
    return {edge: at[source] for edge, (source, _) in arch.edges.items()}


@final
@dataclass(frozen=True)
class Family:
    """Matrices that a shared basis must bring to block form, by the nodes they join.

    `yx[t, s]` holds mixtures of Σ^yx(p), shape `(k, |t|, |s|)`; `xx[s, r]` mixtures of Σ^x(j,p),
    shape `(k, |s|, |r|)`, s ≤ r. In every draw, the largest matrix of each kind has Frobenius norm
    1 (each kind by itself: they have different units).
    """

    yx: Mapping[Pair, Stack]
    xx: Mapping[Pair, Stack]

    def pairs(self) -> Iterator[tuple[Pair, Stack]]:
        yield from self.yx.items()
        yield from self.xx.items()

    def joined(self, other: Family) -> Family:
        """The matrices of both."""
        return Family(_united(self.yx, other.yx), _united(self.xx, other.xx))

    def in_basis(self, basis: Mapping[str, np.ndarray]) -> Family:
        """The same matrices between the directions in the columns of `basis[v]`."""
        turned = [
            {(a, b): basis[a].T @ m @ basis[b] for (a, b), m in stack.items()}
            for stack in (self.yx, self.xx)
        ]
        return Family(*turned)


def _united(left: Mapping[Pair, Stack], right: Mapping[Pair, Stack]) -> dict[Pair, Stack]:
    found = dict(left)
    for pair, stack in right.items():
        found[pair] = np.concatenate([found[pair], stack]) if pair in found else stack
    return found


@final
@dataclass(frozen=True)
class Mixer:
    """Draws mixtures of the statistics of a gated dataset; gates must be per node or edge."""

    arch: Architecture
    factor: ClassFactor

    def family(self, rng: np.random.Generator, draws: int, scaled: bool = True) -> Family:
        """`draws` fresh mixtures of every kind; `scaled=False` leaves them in their units."""
        yx: dict[Pair, list[np.ndarray]] = {}
        xx: dict[Pair, list[np.ndarray]] = {}
        for _ in range(draws):
            left, right = (self.path_sums(self.scalars(rng)) for _ in range(2))
            for found, drawn in ((yx, self.yx(left)), (xx, self._xx(left, right, rng))):
                largest = max((float(np.linalg.norm(m)) for m in drawn.values()), default=0.0)
                largest = largest if scaled else 1.0
                for key, matrix in drawn.items():
                    found.setdefault(key, []).append(matrix / (largest or 1.0))
        return Family(
            {key: np.stack(stack) for key, stack in yx.items()},
            {key: np.stack(stack) for key, stack in xx.items()},
        )

    def scalars(self, rng: np.random.Generator) -> dict[str, float]:
        """A random scalar for every edge, away from zero and nearer to ±1 where paths are long.

        The logarithms of products along paths then have mean 0 and standard deviation 1/√3 at most,
        however long a path is: none is drawn too faintly.
        """
        edges = sorted(self.arch.edges)
        spread = 1 / np.sqrt(1 + max(edge_depths(self.arch).values()))
        values = np.exp(rng.uniform(-spread, spread, len(edges)))
        signs = rng.choice([-1.0, 1.0], len(edges))
        return dict(zip(edges, (values * signs).tolist(), strict=True))

    def path_sums(self, scalars: Mapping[str, float]) -> dict[Pair, np.ndarray]:
        """T_ts(c) = Σ_p g_p(c) Π_{e∈p} scalar_e over the paths from s to t: `{(t, s): (C,)}`."""
        gates, edges = self.factor.gates, self.arch.edges
        sums: dict[Pair, np.ndarray] = {}
        for source in self.arch.inputs:
            at = {source: np.ones(self.factor.count)}
            for node in self.arch.order:
                for edge in self.arch.incoming[node]:
                    before = edges[edge][0]
                    if before in at and scalars[edge] != 0:
                        flow = scalars[edge] * at[before] * gates.get(edge, 1.0)
                        at[node] = at[node] + flow if node in at else flow
                if node in at and node in gates:
                    at[node] = at[node] * gates[node]
                if node in at and not at[node].any():
                    del at[node]
            sums |= {(t, source): at[t] for t in self.arch.outputs if t in at}
        return sums

    def yx(self, sums: Mapping[Pair, np.ndarray]) -> dict[Pair, np.ndarray]:
        """Σ_c T_ts(c) C_c^yx for every pair of an output and an input."""
        found = {}
        for (t, s), T in sums.items():
            rows, weight = self._rows(T)
            found[t, s] = (weight[:, None] * self.factor.y[t][rows]).T @ self.factor.x[s][rows]
        return found

    def _xx(
        self,
        left: Mapping[Pair, np.ndarray],
        right: Mapping[Pair, np.ndarray],
        rng: np.random.Generator,
    ) -> dict[Pair, np.ndarray]:
        """Σ_c T_ts(c) T'_tr(c) C_c^xx for inputs s ≤ r, mixed over the outputs t they share."""
        found: dict[Pair, np.ndarray] = {}
        for t in self.arch.outputs:
            coefficient = rng.normal()
            ends = [s for s in self.arch.inputs if (t, s) in left and (t, s) in right]
            if not ends:
                continue
            on = np.array([left[t, s] != 0 for s in ends], np.float32).reshape(len(ends), -1)
            for i, k in np.argwhere(np.triu(on @ on.T)):
                s, r = sorted((ends[i], ends[k]))
                rows, weight = self._rows(coefficient * left[t, s] * right[t, r])
                matrix = (weight[:, None] * self.factor.x[s][rows]).T @ self.factor.x[r][rows]
                found[s, r] = found.get((s, r), 0.0) + matrix
        return found

    def _rows(self, by_class: np.ndarray) -> tuple[np.ndarray | slice, np.ndarray]:
        """The rows of the classes where this is not zero, and its value on each."""
        on = np.flatnonzero(by_class)
        if len(on) == len(by_class):
            return slice(None), by_class[self.factor.row_class]
        start = self.factor.start
        counts = start[on + 1] - start[on]
        skipped = start[on] - np.concatenate([[0], np.cumsum(counts)[:-1]])
        return np.arange(counts.sum()) + np.repeat(skipped, counts), np.repeat(by_class[on], counts)

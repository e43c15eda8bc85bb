"""The span of what paths give an output, against ranks in rational numbers."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import neuralrace as nr


def exact_rank(rows):
    """The rank of a matrix of fractions, by elimination."""
    rows, rank = [list(r) for r in rows], 0
    for k in range(len(rows[0]) if rows else 0):
        at = next((i for i in range(rank, len(rows)) if rows[i][k]), None)
        if at is None:
            continue
        rows[rank], rows[at] = rows[at], rows[rank]
        for i in range(rank + 1, len(rows)):
            if rows[i][k]:
                f = rows[i][k] / rows[rank][k]
                rows[i] = [a - f * b for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def path_gates(edges, gates, n):
    """The product of the gates of every path from x to y, in fractions."""
    found, waiting = [], [("x", [Fraction(1)] * n)]
    while waiting:
        node, g = waiting.pop()
        if node == "y":
            found.append(g)
        for e, (s, t) in edges.items():
            if s == node:
                here = [gates.get(k, [1] * n) for k in (e, t)]
                both = (Fraction(float(a)) * Fraction(float(b)) for a, b in zip(*here, strict=True))
                waiting.append((t, [a * b for a, b in zip(g, both, strict=True)]))
    return found


@pytest.mark.parametrize("span", [1, 5, 10])
def test_gates_of_any_size_span_what_they_span_in_rational_numbers(span):
    rng = np.random.default_rng(span)
    for _ in range(60):
        n, layers = int(rng.integers(3, 7)), int(rng.integers(1, 5))
        nodes = ["x", *(f"h{i}" for i in range(layers)), "y"]
        edges = {}
        for s, t in pairwise(nodes):
            for k in range(int(rng.integers(1, 4))):
                edges[f"{s}{t}{k}"] = (s, t)
        gates = {e: 2.0 ** rng.integers(-span, span + 1, n) * (rng.random(n) < 0.8) for e in edges}
        arch = nr.Architecture(dict.fromkeys(nodes, 1), edges)
        y = rng.normal(size=(n, 1))
        data = nr.Dataset({"x": np.ones((n, 1))}, {"y": y}, gates)
        paths = path_gates(edges, gates, n)
        found = nr.path_statistics(arch, data).reachable["y"].shape[1]
        assert found == exact_rank(paths), (edges, gates)

"""Claims of the talk on the structure of what is learned, and its progressive differentiation."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

import neuralrace as nr
from evidence import Basis, Claim, Measure
from papers.figure import Table, settings_of
from papers.talk.claims.reads import read


def model_covariances(flip: float, variance: float) -> dict[str, np.ndarray]:
    """Covariances of the sixteen items of each world, from the graph and not from its symmetry.

    Gaussian features have the precision L + I/variance, L the Laplacian of the graph (couplings 1);
    on the tree, the correlation of two items is (1 − 2 flip)² for each level below their last
    common node.
    """
    place = np.arange(16)
    step = np.abs(place[:, None] - place)
    row, column = (np.abs(i[:, None] - i) for i in np.divmod(place, 4))
    below = np.array([[int(a ^ b).bit_length() for a in place] for b in place])
    cluster = np.repeat([16, 17, 18], (6, 5, 5))
    tied = np.zeros((19, 19))
    tied[place, cluster] = tied[cluster, place] = 1

    def field(near: np.ndarray) -> np.ndarray:
        near = near.astype(float)
        laplacian = np.diag(near.sum(axis=0)) - near
        return np.linalg.inv(laplacian + np.eye(len(near)) / variance)[:16, :16]

    return {
        "tree": (1 - 2 * flip) ** (2.0 * below),
        "partition": field(tied),
        "ring": field((step == 1) | (step == 15)),
        "chain": field(step == 1),
        "grid": field(row + column == 1),
    }


def symmetry_gap(table: Table) -> float:
    """Eigenvalues from symmetry against the graphs' covariances: largest relative difference."""
    s = settings_of(table)
    graphs = model_covariances(s["flip"], s["variance"])
    found = [
        np.linalg.eigvalsh(graphs[str(name)])[::-1] / values - 1
        for name, values in zip(table["world"].to_numpy(), table["values"].to_numpy(), strict=True)
    ]
    return float(np.abs(found).max())


def sample_error(table: Table) -> np.ndarray:
    """(world, features): relative error of sampled eigenvalues, root mean square over draws."""
    return np.sqrt((table["error"] ** 2).mean("seed").to_numpy())


def sample_rate(table: Table) -> float:
    """The largest deviation from −½ of the exponent of the error against the number of features."""
    error, number = sample_error(table), table["features"].to_numpy()
    slope = np.log(error[:, -1] / error[:, 0]) / np.log(number[-1] / number[0])
    return float(np.abs(slope + 0.5).max())


def level_times(table: Table, name: str) -> np.ndarray:
    """(level,): when half of each level of the tree is learned."""
    return nr.trajectory.crossing_time(
        table["time"].to_numpy(), table[name].to_numpy(), 0.5, rising=True
    )


def level_gap(name: str) -> Callable[[Table], float]:
    """Simulated over predicted times of the levels: largest difference from 1."""

    def measured(table: Table) -> float:
        return float(np.abs(level_times(table, "simulated") / level_times(table, name) - 1).max())

    return measured


def _sampled(table: Table) -> tuple[nr.tasks.World, np.ndarray, np.ndarray]:
    """The tree, with singular values and item vectors (as rows) of features drawn from it."""
    s = settings_of(table)
    world = nr.tasks.tree_world(tuple(s["branching"]), flip=s["flip"])
    y = np.asarray(world.dataset(s["features"], key=s["key"]).y["y"])
    return world, *np.linalg.svd(y.T, full_matrices=False)[1:]


def decay(table: Table) -> float:
    """The largest singular value of a level over the smallest one above it, worst level."""
    world, values, _ = _sampled(table)
    levels = [values[world.levels == k] for k in range(world.levels.max() + 1)]
    return max(float(below.max() / above.min()) for above, below in pairwise(levels))


def mirror(table: Table) -> float:
    """The smallest share of any level's contrasts in the singular vectors of its rank."""
    world, _, vectors = _sampled(table)
    parts = []
    for level in range(world.levels.max() + 1):
        mine = world.levels == level
        overlap = vectors[mine] @ world.vectors[:, mine]
        parts.append(np.linalg.svd(overlap, compute_uv=False).min() ** 2)
    return float(min(parts))


CLAIMS = (
    Claim(
        "talk/structures-known",
        "“Analytic link”, “Learning diverse structures”",
        "With many features only the singular value decomposition of the items' correlations "
        "matters, and it is known exactly for partitions, trees, rings and grids.",
        "Sixteen items: eigenvalues from symmetry against those of the covariance computed from "
        "the graph; and eigenvalues of sampled features, by their number.",
        (
            Measure(
                "symmetry",
                "from symmetry against the graph, worst relative difference",
                read("structures", symmetry_gap),
                most=1e-10,
                rests=Basis.THEOREM,
            ),
            Measure(
                "sample-rate",
                "sampled features, exponent of the error, difference from −½, worst world",
                read("structures", sample_rate),
                most=0.1,
            ),
            Measure(
                "sample-error",
                "sampled features, error at the largest number, worst world",
                read("structures", lambda t: sample_error(t)[:, -1].max()),
                most=0.05,
            ),
        ),
        inferred=True,
    ),
    Claim(
        "talk/differentiation-must",
        "“Progressive differentiation”",
        "Singular vectors mirror a hierarchy and singular values decay with its levels, so these "
        "networks must differentiate progressively.",
        "Features drawn from a binary tree of three levels: their singular values and vectors by "
        "level, and the half-time of each level from small random weights, simulated and "
        "predicted from those weights.",
        (
            Measure(
                "decay",
                "a level's largest singular value over the smallest of the level above, worst",
                read("differentiation", decay),
                most=0.95,
                origin=1.0,
            ),
            Measure(
                "levels",
                "smallest share of a level in the singular vectors of its rank",
                read("differentiation", mirror),
                least=0.95,
                origin=1.0,
            ),
            Measure(
                "order",
                "half-time of a level over that of the level above, smallest",
                read(
                    "differentiation",
                    lambda t: np.exp(np.diff(np.log(level_times(t, "simulated"))).min()),
                ),
                least=1.1,
                origin=1.0,
            ),
            Measure(
                "times",
                "simulated against predicted times, worst level",
                read("differentiation", level_gap("predicted")),
                most=0.05,
            ),
        ),
        inferred=True,
    ),
)

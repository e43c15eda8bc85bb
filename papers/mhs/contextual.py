"""Common parts of the figures on contextual tasks: trained networks, races, and distances.

The settings are those of `papers.mhs.table`, which also defines the widths of the
pathways.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import neuralrace as nr
from papers.figure import Setting, Settings, Table

if TYPE_CHECKING:
    from neuralrace.types import Key
    from papers.mhs.table import Case

SCRIPTS = "the authors' scripts"
"""The source of settings that are not in the paper."""

STRUCTURES = ("hierarchy", "ring", "crossed")
"""The structure of each of the three contexts of MHS §4 (Fig. 3)."""

COMMON = {
    "init": Setting(
        0.005,
        "standard deviation of the initial weights, times the number of hidden neurons of the "
        "ReLU network",
        "the authors' scripts; MHS Table 1 says 1e-7 for the deviation itself",
    ),
    "step": Setting(0.001, "gradient step on the loss summed over samples", "MHS Table 1"),
    "steps": Setting(8000, "gradient steps", "MHS Table 1"),
    "every": Setting(20, "steps between recordings", "ours"),
    "rule": Setting(
        "sign",
        "how wide the pathways are; see papers.mhs.table",
        "ours, from the ReLU network's width alone; --set rule=authors uses MHS Table 1's 100",
        choices=("sign", "equal", "half", "authors"),
    ),
    "key": Setting(0, "random key of the first draw", "ours"),
}
"""Settings of every figure that trains on the contextual tasks."""


def case(settings: Settings, task: Mapping[str, Any], *hidden: int) -> Case:
    """The task with a ReLU network of these hidden layers, and the descent of the settings."""
    from papers.mhs import table

    return table.Case(
        "",
        dict(task),
        hidden,
        settings["init"] / hidden[0],
        steps=settings["steps"],
        step=settings["step"],
        seeds=settings["seeds"],
    )


def relu_runs(case: Case, key: Key, every: int, record: Any = None) -> nr.Trajectory:
    """ReLU networks in float32, one for every seed: an ensemble.

    They record what `certify` compares, unless another `record` is given.
    """
    import jax.numpy as jnp

    from papers.mhs.table import narrowed

    data = narrowed(nr.tasks.contextual(joined=True, **case.task))
    net = nr.ReLUNetwork((data.x["x"].shape[1], *case.hidden, data.y["y"].shape[1]))
    return nr.train_ensemble(
        net,
        data,
        key=key,
        seeds=case.seeds,
        scale=case.scale,
        learning_rate=case.learning_rate,
        steps=case.steps,
        record_every=every,
        record=nr.reln.evidence(net, data) if record is None else record,
        dtype=jnp.float32,
    )


def gated_runs(
    arch: nr.Architecture, data: nr.Dataset, case: Case, key: Key, every: int
) -> list[nr.Trajectory]:
    """The gated network in float32 from equally small weights, one run for every seed.

    They record what `certify` compares, and the map of every pathway (`pathway_maps`).
    """
    import jax
    import jax.numpy as jnp

    from papers.mhs.table import narrowed

    net, data = nr.GDLN(arch), narrowed(data)
    record = {**nr.reln.evidence(net, data), "maps": pathway_maps(arch)}
    return [
        nr.train(
            net,
            net.init(each, case.scale, dtype=jnp.float32),
            data,
            learning_rate=case.learning_rate,
            steps=case.steps,
            record_every=every,
            record=record,
        )
        for each in jax.random.split(key, case.seeds)
    ]


def pathway_maps(arch: nr.Architecture) -> Any:
    """A recording function: the map of each hidden node's pathway, all inputs side by side."""

    def maps(weights: Mapping[str, Any]) -> dict[str, Any]:
        import jax.numpy as jnp

        return {
            v: weights[arch.outgoing[v][0]]
            @ jnp.concatenate([weights[e] for e in arch.incoming[v]], axis=1)
            for v in arch.hidden
        }

    return maps


def predicted_maps(arch: nr.Architecture, solution: nr.Trajectory) -> dict[str, list[np.ndarray]]:
    """The same for a solved race, block by block: `(T, outputs, inputs)` in the block's bases."""
    found: dict[str, list[np.ndarray]] = {v: [] for v in arch.hidden}
    for block in solution.values["variables"].values():
        for v in arch.hidden:
            reads = [block[e] for e in arch.incoming[v] if e in block]
            if reads and arch.outgoing[v][0] in block:
                found[v].append(block[arch.outgoing[v][0]] @ np.concatenate(reads, axis=2))
    return found


def strengths(maps: Sequence[np.ndarray], modes: int) -> np.ndarray:
    """`(T, modes)`: the largest singular values of block-diagonal maps, in falling order."""
    values = [np.linalg.svd(np.asarray(m, float), compute_uv=False) for m in maps]
    joined = -np.sort(-np.concatenate(values, axis=-1), axis=-1)[..., :modes]
    room = modes - joined.shape[-1]
    return np.pad(joined, [(0, 0)] * (joined.ndim - 1) + [(0, max(room, 0))])


def distances(kernels: np.ndarray) -> np.ndarray:
    """Distances between samples `(…, N, N)` from their inner products, for `analysis.mds`."""
    k = np.asarray(kernels, float)
    square = np.einsum("...nn->...n", k)
    return np.sqrt(np.maximum(square[..., :, None] + square[..., None, :] - 2 * k, 0.0))


def final_activity(case: Case, run: nr.Trajectory) -> tuple[nr.Dataset, nr.reln.Activity]:
    """The task, and the patterns of a ReLU network's neurons at the end of a run."""
    data = nr.tasks.contextual(joined=True, **case.task)
    last = {e: np.asarray(w)[None] for e, w in run.final.items()}
    end = nr.Trajectory(run.time[-1:], run.loss[-1:], values={"weights": last}, net=run.net)
    return data, nr.reln.activity(end, data)


def shares_by_number(case: Case, run: nr.Trajectory, node: str = "h") -> list[float]:
    """The share of a layer's final weight nearest to patterns of one, two, … all contexts."""
    data, found = final_activity(case, run)
    shares = found.shares(nr.reln.subsets(data), node).rounded
    contexts = len(np.unique(data.labels["context"]))
    number = [contexts if name == "all" else len(name.split("_")) for name in shares]
    return [
        float(sum(share[-1] for k, share in zip(number, shares.values(), strict=True) if k == n))
        for n in range(1, contexts + 1)
    ]


def contexts_on(share: np.ndarray) -> np.ndarray:
    """In how many contexts a neuron is on, mean over the weight, from shares (…, number)."""
    numbers = np.arange(1, share.shape[-1] + 1)
    return np.nansum(share * numbers, axis=-1) / np.nansum(share, axis=-1)


def gaps(table: Table, reference: str, other: str) -> list[nr.trajectory.Comparison]:
    """The comparisons of two losses `(seed, time)` of a figure, seed by seed."""
    time = table["time"].to_numpy()
    return [
        nr.compare(nr.Trajectory(time, a), nr.Trajectory(time, b))
        for a, b in zip(table[reference].to_numpy(), table[other].to_numpy(), strict=True)
    ]


def floor(table: Table, name: str) -> list[nr.trajectory.Comparison]:
    """The comparisons of every run with every other; none if there is only one."""
    time, loss = table["time"].to_numpy(), table[name].to_numpy()
    runs = [nr.Trajectory(time, each) for each in loss]
    return [nr.compare(a, b) for i, a in enumerate(runs) for b in runs[:i]]


def mean_and_max(found: Sequence[nr.trajectory.Comparison]) -> str:
    """The mean over seeds of the mean and of the largest discrepancy, as text."""
    if not found:
        return "one seed alone"
    mean, largest = (np.mean([getattr(c, name) for c in found]) for name in ("mean", "max"))
    return f"{100 * mean:.2g} % (at most {100 * largest:.2g} %)"


def apart(time: np.ndarray, reference: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Mean |ΔL|/L(0) of losses (…, T) at common times, as `nr.compare` has it, many at once."""
    gap = np.trapezoid(np.abs(reference - other), time, axis=-1) / (time[-1] - time[0])
    return np.asarray(gap / reference[..., 0])


def seed_floor(table: Table, name: str) -> float:
    """Mean |ΔL|/L(0) between two seeds, over all pairs; NaN without a pair.

    A seed that was drawn twice is no pair with itself.
    """
    time, loss = table["time"].to_numpy(), table[name].to_numpy()
    i, j = np.tril_indices(len(loss), -1)
    found = apart(time, loss[i], loss[j])
    found = found[found > 0]
    return float(found.mean()) if found.size else float("nan")


def positions(kernel: np.ndarray) -> np.ndarray:
    """The positions (…, N, N) of N samples in all dimensions, from their inner products."""
    centred = kernel - kernel.mean(axis=-1, keepdims=True)
    centred = centred - centred.mean(axis=-2, keepdims=True)
    value, vector = np.linalg.eigh(centred)
    return vector * np.sqrt(np.maximum(value, 0.0))[..., None, :]


def disparity(first: np.ndarray, second: np.ndarray) -> float:
    """1 − (Σσ)² of the centred positions (N, d) of unit size, σ the singular values of AᵀB."""
    units = []
    for places in (first, second):
        centred = places - places.mean(axis=0)
        units.append(centred / max(np.linalg.norm(centred), 1e-300))
    return float(1 - np.linalg.svd(units[0].T @ units[1], compute_uv=False).sum() ** 2)

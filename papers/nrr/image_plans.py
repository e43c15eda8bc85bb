"""Plans of cells of NRR §5: which are computed on a GPU, or on a processor in minutes.

`python -m papers cells must white --out FILE --minutes 9` computes the cells of these plans one by
one, and goes on from there when it is called again. The figures read them from
`papers/nrr/data/images.jsonl`, which is such a file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

import neuralrace as nr
from evidence.tables import made as made_here
from neuralrace.sweeps import CellFile
from papers.nrr.image_routes import SHARES, Cell, Made
from papers.nrr.image_routing import image_routing
from papers.nrr.routing import train_routing
from papers.nrr.transition import MAKE

FEW = 3
"""Seeds of cells that take long and are drawn only."""

SOME = 5
"""Seeds of cells that take long and that claims are measured on: the fewest that settle one."""

FEATURES = 2000.0
"""Flow time of features of CIFAR-10: their variance is several times that of pixels of MNIST."""

LITTLE: dict[str, Any] = {
    "images": "digits",
    "M": 10,
    "hidden": 64,
    "batch": 32,
    "seeds": 5,
    "time": 1000.0,
}
"""What cells on a processor have in common: digits, few domains, narrow networks."""

WIDTHS = (16, 64)
"""Hidden widths of the races on a processor: δ = (2H)^−½ is .18 and .09."""

WIDEST = 256
"""The largest of them, δ = .04, for one choice of routes: it takes minutes."""

LAZY = 20_000
"""Steps after which cells with large initial weights end: curvature makes their steps tiny."""


@final
@dataclass(frozen=True)
class Planned:
    """A cell of a plan: how often it records, its most steps, the images of a step."""

    plan: str
    cell: Cell
    every: int = 1000
    most: int = 1_000_000
    batch: int = 512

    def is_in(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of a file is this cell, of the same plan."""
        return row.get("plan") == self.plan and self.cell.is_that_of(row)


def planned(plan: str, method: str, K: int, **given: Any) -> Planned:
    """A cell of a plan, and how it is trained."""
    how = {name: given.pop(name) for name in ("every", "most", "batch") if name in given}
    return Planned(plan, Cell(method, K, given.pop("M", 40), **given), **how)


def plans(seeds: int) -> dict[str, list[Planned]]:
    """What can be run, by name; the most valuable first."""
    both = ("circulant", "random")
    most = lambda gain: LAZY if gain > 1 else 1_000_000
    few = (2, 3, 4, 6, 8)
    ours = {"seeds": seeds}
    domains = [max(1, round(40 * share)) for share in SHARES]
    hundred = [max(1, round(100 * share)) for share in SHARES]
    some: dict[str, Any] = {"seeds": SOME}
    cifar: dict[str, Any] = {"images": "cifar10", "inputs": "rotated"}
    found = {
        "must": [
            planned("must", m, K, **ours) for m in ("statistics", "race", "cross") for K in domains
        ],
        "authors": [
            planned("authors", m, 8, time=2000.0, seeds=2) for m in ("cross", "authors")
        ],
        "routes": [
            planned("routes", m, K, routes=r, **ours)
            for m in ("statistics", "cross") for r in both for K in few
        ],
        "rotated": [
            planned("rotated", m, K, inputs="rotated", **ours)
            for m in ("statistics", "cross") for K in domains
        ],
        "white": [planned("white", "white", K, **ours) for K in domains],
        "plateau": [
            planned("plateau", m, 10, scale=g, every=100, **ours)
            for m in ("race", "statistics") for g in (0.1, 0.03, 0.02, 0.0125, 0.01, 0.001)
        ],
        "scales": [
            planned("scales", m, 10, scale=g, most=most(g), **ours)
            for m in ("race", "statistics") for g in (1.0, 10.0)  # the others are in "plateau"
        ] + [
            planned("scales", "cross", 10, scale=g, seeds=SOME, most=most(g))
            for g in (0.01, 0.001, 0.1, 1.0, 10.0)
        ],
        "scales_race": [
            planned("scales_race", "race", 10, scale=g, most=most(g), **ours, **w)
            for w in ({"M": 100}, {"inputs": "rotated"}) for g in (0.01, 0.001, 0.1, 1.0, 10.0)
        ],
        "leaky": [
            planned("leaky", "cross", K, leak=0.01, seeds=SOME) for K in (10, 4, 16, 8, 2, 24, 32)
        ],
        "leaky_rotated": [
            planned("leaky_rotated", "cross", K, inputs="rotated", leak=0.01, seeds=FEW)
            for K in (10, 4, 16, 8, 2, 24, 32)
        ],
        "rotated_last": [planned("rotated_last", "cross", 32, inputs="rotated", seeds=FEW)],
        "cifar": [
            planned("cifar", "race", K, **cifar, **ours) for K in domains
        ] + [
            planned("cifar", "statistics", K, time=FEATURES, most=LAZY, **cifar, seeds=SOME)
            for K in (16, 4, 8, 2, 24, 32)
        ] + [
            planned("cifar", "cross", K, time=FEATURES, most=3 * LAZY, every=2000, **some, **cifar)
            for K in (16, 4, 8, 24, 2, 32)
        ],
        "cifar_long": [
            planned("cifar_long", m, K, **cifar, seeds=SOME)
            for m in ("statistics", "cross") for K in (16, 4, 8, 24, 2, 32)
        ],
        "wide": [
            planned("wide", "race", K, inputs=i, images=name, hidden=1024, **ours)
            for name, i in (("cifar10", "rotated"), ("mnist", "permuted")) for K in domains
        ],
        "race_hundred": [planned("race_hundred", "race", K, M=100, **ours) for K in hundred]
        + [planned("race_hundred", "race", K, inputs="rotated", **ours) for K in domains],
        "hundred": [
            planned("hundred", m, K, M=100, time=15000.0, **ours)
            for m in ("statistics", "race", "cross") for K in hundred
        ],
        "transition": [
            planned("transition", "race", max(1, round(M * share)), M=M, routes=r, **ours)
            for M in (10, 40, 100) for r in both for share in (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6)
            if round(M * share) >= 1
        ],
        "equal": [planned("equal", "equal", 4, M=10, seeds=1)],
    }  # fmt: skip
    found |= processor_plans()
    small = {"M": 10, "time": 200.0, "seeds": 2, "scale": 0.3, "hidden": 32}
    found["quick"] = [
        planned("quick", m, 4, images="digits", **small)
        for m in ("statistics", "white", "race", "cross", "authors")
    ]
    return found


def processor_plans() -> dict[str, list[Planned]]:
    """The same questions at a size that a processor answers in minutes."""
    few: dict[str, Any] = {"M": 10, "time": 1875.0}  # T / M is that of M = 40 with T = 7500
    return {
        "widths": [
            planned("widths", "race", K, hidden=H, routes=r, seeds=SOME, **few)
            for H in WIDTHS for r, K in (("circulant", 2), ("circulant", 3), ("random", 3))
        ] + [planned("widths", "race", 2, hidden=WIDEST, seeds=SOME, **few)],
        "starts": [
            planned("starts", "race", 2, M=10, hidden=64, scale=g, seeds=SOME, time=187.5 / g)
            for g in (0.3, 0.1, 0.03, 0.01)
        ],
        "starts_test": [
            planned("starts_test", "race", K, M=10, routes=r, hidden=64, scale=g, seeds=SOME,
                 time=187.5 / g)
            for r, K, g in (("circulant", 3, 1.0), ("circulant", 3, 0.3), ("circulant", 3, 0.03),
                            ("circulant", 4, 1.0), ("random", 3, 0.3))
        ],
        "plateau_cross": [
            planned("plateau_cross", "cross", 10, scale=0.01, seeds=SOME, batch=64, every=1875)
        ],
        "digits_gains": [
            planned("digits_gains", m, 5, scale=g, every=20, **LITTLE | {"time": round(60 / g, 1)})
            for m, gains in (("statistics", (0.3, 0.1, 0.03, 0.01)), ("cross", (0.3, 0.1, 0.03)))
            for g in gains
        ] + [
            planned("digits_gains", "cross", 5, scale=0.01, every=100, most=3000,
                 **LITTLE | {"time": 6000.0})
        ],
        "digits": [
            planned("digits", "statistics", K, routes=r, **LITTLE)
            for r, K in [("circulant", K) for K in (1, 2, 3, 4, 6, 8)] + [("random", 3)]
        ] + [
            planned("digits", "statistics", K, inputs="rotated", **LITTLE) for K in (2, 4, 6, 8)
        ],
        "digits_leaky": [
            planned("digits_leaky", "cross", K, leak=0.01, **LITTLE | {"M": 12, "time": 1800.0})
            for K in (3, 6, 4, 2)
        ],
        "digits_cross": [
            planned("digits_cross", "cross", K, routes=r, **LITTLE)
            for r, K in (("circulant", 2), ("circulant", 3), ("random", 3), ("circulant", 4))
        ],
        "digits_rotated": [
            planned("digits_rotated", "cross", K, inputs="rotated", **LITTLE) for K in (8, 4)
        ],
        "digits_linear": [planned("digits_linear", "cross", 3, **LITTLE | {"M": 12})],
    }  # fmt: skip


def equal(cell: Cell, made: Made, steps: int = 1000, rate: float = 0.5) -> dict[str, Any]:
    """Gradients and a run by moments, against the same from all images, in float64."""
    from papers.nrr.routing import routing_system

    with jax.enable_x64(True):
        task = image_routing(made.images(cell.images), cell.M, cell.K)
        moments = task.moments()
        system = routing_system(moments, dtype="float64")
        basis = jnp.asarray(moments.basis[0])
        x = jnp.asarray(task.images.train, float) - jnp.asarray(task.mean)
        y = jax.nn.one_hot(task.images.labels, task.classes, dtype=float)
        z, y = x @ basis.T, y - y.mean(axis=0)
        parts = max(1, len(z) // 5000)
        z, y = (a[: parts * (len(a) // parts)].reshape(parts, -1, a.shape[1]) for a in (z, y))
        share = system.routes / jnp.sum(system.routes)
        if z.shape[0] * z.shape[1] != len(x):
            raise SystemExit("the number of images must be a multiple of their parts")

        def lost(w: Any, pair: Any) -> Any:
            x, y = pair
            second = jnp.einsum("bd,ihd,kh->bik", x, w["encoders"], w["hidden"])
            answers = jnp.einsum("bik,jck->bijc", second, w["decoders"])
            each = jnp.sum((answers - y[:, None, None]) ** 2, axis=-1) / 2
            return jnp.sum(jnp.mean(each, axis=0) * share)

        @jax.jit
        def by_images(w: Any) -> Any:
            total = jax.tree.map(jnp.zeros_like, (jnp.zeros(()), w))
            add = lambda t, pair: (
                jax.tree.map(jnp.add, t, jax.value_and_grad(lost)(w, pair)), None
            )  # fmt: skip
            return jax.tree.map(lambda a: a / parts, jax.lax.scan(add, total, (z, y))[0])

        by_moments = jax.jit(lambda w: system.loss_and_step(w, -1.0))
        keys = jax.random.split(jax.random.key(0), 3)
        H = cell.hidden
        w = {
            "encoders": 0.03 * jax.random.normal(keys[0], (cell.M, H, z.shape[2])),
            "hidden": 0.06 * jax.random.normal(keys[1], (H, H)),
            "decoders": 0.06 * jax.random.normal(keys[2], (cell.M, task.classes, H)),
        }
        gap = lambda a, b: max(
            float(jnp.abs(a[k] - b[k]).max() / jnp.abs(a[k]).max()) for k in a
        )  # fmt: skip
        (_, first), (_, second) = by_images(w), by_moments(w)
        at_start, other, losses = gap(first, second), w, []
        for _ in range(steps):
            (la, ga), (lb, gb) = by_images(w), by_moments(other)
            w = jax.tree.map(lambda a, g: a - rate * g, w, ga)
            other = jax.tree.map(lambda a, g: a - rate * g, other, gb)
            losses.append((la, lb))
        la, lb = np.array([[float(a), float(b)] for a, b in losses]).T
        at_end = gap(w, other)
    return {
        "image_count": len(x), "run_steps": steps, "gradient_gap": at_start,
        "loss_gap": float(np.abs(la / lb - 1).max()), "weight_gap": at_end,
        "loss_first_last": [float(la[0]), float(la[-1])],
    }  # fmt: skip


def measured(planned: Planned, made: Made) -> dict[str, Any]:
    """Train all seeds of a cell; accuracy at the end, and along the way."""
    cell, routes = planned.cell, MAKE[planned.cell.routes](planned.cell.M, planned.cell.K)
    if cell.method == "equal":
        return equal(cell, made)
    task = made(cell)
    how: dict[str, Any] = {"record_every": planned.every, "steps": planned.most}
    if cell.method in ("cross", "authors"):
        how["products"] = "bfloat16" if jax.default_backend() == "gpu" else "float32"
    if cell.method == "cross":
        size = min(planned.batch, len(task.images.train))
        how |= {"batch_size": size, "sampled": 4, "leak": cell.leak}
    if cell.method == "authors":
        import optax

        steps = round(cell.time * 0.1 / RATE)
        how |= {"batch_size": 8, "sampled": None, "optimizer": optax.sgd(RATE, momentum=0.9)}
        how |= {"steps": steps, "record_every": max(1, steps // 10)}
    begin = time.perf_counter()
    run = train_routing(
        task, time=cell.time, routes=[routes], scale=cell.scale, seeds=cell.seeds,
        hidden=cell.hidden, **how,
    )  # fmt: skip
    seconds = time.perf_counter() - begin
    values = {name: np.asarray(v)[0] for name, v in run.values.items()}
    loss, ends = np.asarray(run.loss)[0], np.asarray(run.steps)
    moving = float((np.diff(values["elapsed"], axis=1).max(axis=0) > 0).sum()) * (
        float(ends[1]) if len(ends) > 1 else 1.0
    )
    return {
        "ratio": nr.tasks.route_ratio(routes),
        "trained": values["trained"][:, -1].round(5).tolist(),
        "untrained": values["untrained"][:, -1].round(5).tolist(),
        "loss": loss[:, -1].round(6).tolist(),
        "elapsed": values["elapsed"][:, -1].round(2).tolist(),
        "steps": int(ends[-1]),
        "seconds": round(seconds, 2),
        "us_per_step_and_run": round(1e6 * seconds / max(moving, 1.0) / cell.seeds, 1),
        "course": {name: v.mean(axis=0).round(4).tolist() for name, v in values.items()}
        | {"loss": loss.mean(axis=0).round(5).tolist()},
    }


RATE = 1e-3
"""The learning rate of the authors' protocol."""


def compute(
    names: Iterable[str],
    out: Path,
    *,
    minutes: float = 9.0,
    data: str | None = None,
    tell: Callable[[str], None] = print,
) -> int:
    """Add the cells of these plans that are missing in a file, until the minutes are over.

    Returns how many are still missing.
    """
    known = plans(10)
    cells = [each for name in names for each in known[name]]
    file, made, end = CellFile(out), Made(data), time.monotonic() + 60 * minutes
    missing = [each for each in cells if not any(map(each.is_in, file))]
    while missing and time.monotonic() < end:
        each = missing.pop(0)
        row = measured(each, made)
        file.add({"plan": each.plan, **asdict(each.cell)}, row, **made_here())
        tell(f"{each.plan} {each.cell}: {told(row)}")
    return len(missing)


def told(row: Mapping[str, Any]) -> str:
    """A result in one line: numbers, and means over seeds."""
    plain = {k: np.mean(v) for k, v in row.items() if not isinstance(v, dict)}
    return ", ".join(f"{name} {value:.4g}" for name, value in plain.items())

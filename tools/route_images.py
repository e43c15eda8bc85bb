"""Routing with real images at full size (NRR §5), cell by cell, for a given number of minutes.

    PYTHONPATH=src python tools/route_images.py --data FOLDER --out FOLDER --minutes 9 must white

Each cell is one method, one choice of routes and all seeds. Its numbers are appended to
`cells.jsonl` in the folder as soon as it is done, with device and commit, and a second call goes on
from there. Needs nothing but JAX, equinox, optax, SciPy and scikit-learn.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from origin import origin

from neuralrace import tasks
from papers.nrr.features import read_features, residual_features
from papers.nrr.image_routing import image_routing
from papers.nrr.routing import train_routing

SHARES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
"""K/M of the trained routes."""

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


@dataclasses.dataclass(frozen=True)
class Cell:
    """One method on one choice of routes, with all its seeds."""

    plan: str
    method: str
    K: int
    M: int = 40
    inputs: str = "permuted"
    routes: str = "circulant"
    scale: float = 0.1
    time: float = 7500.0
    seeds: int = 10
    hidden: int = 128
    leak: float = 1.0
    span: float = 180.0
    images: str = "mnist"
    most: int = 1_000_000
    every: int = 1000
    batch: int = 512


def plans(seeds: int) -> dict[str, list[Cell]]:
    """What can be run, by name; the most valuable first."""
    both = ("circulant", "random")
    few = (2, 3, 4, 6, 8)
    ours = {"seeds": seeds}
    domains = [max(1, round(40 * share)) for share in SHARES]
    hundred = [max(1, round(100 * share)) for share in SHARES]
    cifar: dict[str, Any] = {"images": "cifar10", "inputs": "rotated"}
    found = {
        "must": [
            Cell("must", m, K, **ours) for m in ("statistics", "race", "cross") for K in domains
        ],
        "authors": [
            Cell("authors", m, 8, time=2000.0, seeds=2) for m in ("cross", "authors")
        ],
        "routes": [
            Cell("routes", m, K, routes=r, **ours)
            for m in ("statistics", "cross") for r in both for K in few
        ],
        "rotated": [
            Cell("rotated", m, K, inputs="rotated", **ours)
            for m in ("statistics", "cross") for K in domains
        ],
        "white": [Cell("white", "white", K, **ours) for K in domains],
        "plateau": [
            Cell("plateau", m, 10, scale=g, every=100, **ours)
            for m in ("race", "statistics") for g in (0.1, 0.03, 0.02, 0.0125, 0.01, 0.001)
        ],
        "scales": [
            Cell("scales", m, 10, scale=g, most=LAZY if g > 1 else 1_000_000, **ours)
            for m in ("race", "statistics") for g in (1.0, 10.0)  # the others are in "plateau"
        ] + [
            Cell("scales", "cross", 10, scale=g, seeds=SOME, most=LAZY if g > 1 else 1_000_000)
            for g in (0.01, 0.001, 0.1, 1.0, 10.0)
        ],
        "scales_race": [
            Cell("scales_race", "race", 10, scale=g, most=LAZY if g > 1 else 1_000_000, **ours, **w)
            for w in ({"M": 100}, {"inputs": "rotated"}) for g in (0.01, 0.001, 0.1, 1.0, 10.0)
        ],
        "leaky": [
            Cell("leaky", "cross", K, leak=0.01, seeds=SOME) for K in (10, 4, 16, 8, 2, 24, 32)
        ],
        "leaky_rotated": [
            Cell("leaky_rotated", "cross", K, inputs="rotated", leak=0.01, seeds=FEW)
            for K in (10, 4, 16, 8, 2, 24, 32)
        ],
        "rotated_last": [Cell("rotated_last", "cross", 32, inputs="rotated", seeds=FEW)],
        "cifar": [
            Cell("cifar", "race", K, **cifar, **ours) for K in domains
        ] + [
            Cell("cifar", "statistics", K, time=FEATURES, most=LAZY, **cifar, seeds=SOME)
            for K in (16, 4, 8, 2, 24, 32)
        ] + [
            Cell("cifar", "cross", K, time=FEATURES, most=3 * LAZY, every=2000, **cifar, seeds=SOME)
            for K in (16, 4, 8, 24, 2, 32)
        ],
        "cifar_long": [
            Cell("cifar_long", m, K, **cifar, seeds=SOME)
            for m in ("statistics", "cross") for K in (16, 4, 8, 24, 2, 32)
        ],
        "wide": [
            Cell("wide", "race", K, inputs=i, images=name, hidden=1024, **ours)
            for name, i in (("cifar10", "rotated"), ("mnist", "permuted")) for K in domains
        ],
        "race_hundred": [Cell("race_hundred", "race", K, M=100, **ours) for K in hundred]
        + [Cell("race_hundred", "race", K, inputs="rotated", **ours) for K in domains],
        "hundred": [
            Cell("hundred", m, K, M=100, time=15000.0, **ours)
            for m in ("statistics", "race", "cross") for K in hundred
        ],
        "transition": [
            Cell("transition", "race", max(1, round(M * share)), M=M, routes=r, **ours)
            for M in (10, 40, 100) for r in both for share in (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6)
            if round(M * share) >= 1
        ],
        "equal": [Cell("equal", "equal", 4, M=10, seeds=1)],
    }  # fmt: skip
    found |= processor_plans()
    small = {"M": 10, "time": 200.0, "seeds": 2, "scale": 0.3, "hidden": 32}
    found["quick"] = [
        Cell("quick", m, 4, images="digits", **small)
        for m in ("statistics", "white", "race", "cross", "authors")
    ]
    return found


def processor_plans() -> dict[str, list[Cell]]:
    """The same questions at a size that a processor answers in minutes."""
    few: dict[str, Any] = {"M": 10, "time": 1875.0}  # T / M is that of M = 40 with T = 7500
    return {
        "widths": [
            Cell("widths", "race", K, hidden=H, routes=r, seeds=SOME, **few)
            for H in WIDTHS for r, K in (("circulant", 2), ("circulant", 3), ("random", 3))
        ] + [Cell("widths", "race", 2, hidden=WIDEST, seeds=SOME, **few)],
        "starts": [
            Cell("starts", "race", 2, M=10, hidden=64, scale=g, seeds=SOME, time=187.5 / g)
            for g in (0.3, 0.1, 0.03, 0.01)
        ],
        "starts_test": [
            Cell("starts_test", "race", K, M=10, routes=r, hidden=64, scale=g, seeds=SOME,
                 time=187.5 / g)
            for r, K, g in (("circulant", 3, 1.0), ("circulant", 3, 0.3), ("circulant", 3, 0.03),
                            ("circulant", 4, 1.0), ("random", 3, 0.3))
        ],
        "plateau_cross": [
            Cell("plateau_cross", "cross", 10, scale=0.01, seeds=SOME, batch=64, every=1875)
        ],
        "digits_gains": [
            Cell("digits_gains", m, 5, scale=g, every=20, **LITTLE | {"time": round(60 / g, 1)})
            for m, gains in (("statistics", (0.3, 0.1, 0.03, 0.01)), ("cross", (0.3, 0.1, 0.03)))
            for g in gains
        ] + [
            Cell("digits_gains", "cross", 5, scale=0.01, every=100, most=3000,
                 **LITTLE | {"time": 6000.0})
        ],
        "digits": [
            Cell("digits", "statistics", K, routes=r, **LITTLE)
            for r, K in [("circulant", K) for K in (1, 2, 3, 4, 6, 8)] + [("random", 3)]
        ] + [
            Cell("digits", "statistics", K, inputs="rotated", **LITTLE) for K in (2, 4, 6, 8)
        ],
        "digits_leaky": [
            Cell("digits_leaky", "cross", K, leak=0.01, **LITTLE | {"M": 12, "time": 1800.0})
            for K in (3, 6, 4, 2)
        ],
        "digits_cross": [
            Cell("digits_cross", "cross", K, routes=r, **LITTLE)
            for r, K in (("circulant", 2), ("circulant", 3), ("random", 3), ("circulant", 4))
        ],
        "digits_rotated": [
            Cell("digits_rotated", "cross", K, inputs="rotated", **LITTLE) for K in (8, 4)
        ],
        "digits_linear": [Cell("digits_linear", "cross", 3, **LITTLE | {"M": 12})],
    }  # fmt: skip


class Tasks:
    """Images, tasks and moments, each made once."""

    def __init__(self, data: str | None, train: int | None, test: int | None) -> None:
        self.data, self.sizes, self.made = data, (train, test), {}

    def __call__(self, cell: Cell) -> Any:
        kind = (cell.images, cell.M, cell.inputs, cell.span)
        task = self._kept(kind, lambda: self._task(cell))
        if cell.method in ("cross", "authors"):
            return task
        if cell.method == "statistics":
            return self._kept((*kind, "raw"), task.moments)
        white = self._kept((*kind, "white"), lambda: task.moments(whiten=True))
        return white if cell.method == "white" else white.class_modes()

    def largest(self, cell: Cell) -> float:
        """The largest variance of the inputs of any domain."""
        return self.made[cell.images, cell.M, cell.inputs, cell.span].largest_variance

    def images(self, name: str) -> Any:
        """The images of this name, or features by their path; as many as are asked for."""
        own = name.endswith(".npz")
        read = lambda: read_features(name) if own else tasks.images(name, self.data)
        return self._kept(name, lambda: read().take(*self.sizes))

    def _task(self, cell: Cell) -> Any:
        features = residual_features() if cell.images == "cifar10" else None
        return image_routing(
            self.images(cell.images), cell.M, 1,
            inputs=cell.inputs, span=cell.span, features=features,
        )  # fmt: skip

    def _kept(self, name: Any, make: Any) -> Any:
        if name not in self.made:
            begin = time.perf_counter()
            self.made[name] = make()
            sys.stdout.write(f"{name}: made in {time.perf_counter() - begin:.1f} s\n")
        return self.made[name]


def routes_of(cell: Cell) -> np.ndarray:
    """The trained routes of a cell."""
    make = {"circulant": tasks.circulant_routes, "random": tasks.random_routes}
    return make[cell.routes](cell.M, cell.K)


def measured(cell: Cell, made: Tasks, rate: float, products: str) -> dict[str, Any]:
    """Train all seeds of a cell; accuracy at the end, and along the way."""
    task, routes = made(cell), routes_of(cell)
    how: dict[str, Any] = {"record_every": cell.every, "steps": cell.most}
    if cell.method == "cross":
        size = min(cell.batch, len(task.images.train))
        how |= {"batch_size": size, "sampled": 4, "leak": cell.leak, "products": products}
    if cell.method == "authors":
        import optax

        steps = round(cell.time * 0.1 / rate)
        how = {"batch_size": 8, "sampled": None, "optimizer": optax.sgd(rate, momentum=0.9)}
        how |= {"steps": steps, "record_every": max(1, steps // 10), "products": products}
    begin = time.perf_counter()
    run = train_routing(
        task, time=cell.time, routes=[routes], scale=cell.scale, seeds=cell.seeds,
        hidden=cell.hidden, **how,
    )  # fmt: skip
    seconds = time.perf_counter() - begin
    values = {name: np.asarray(v)[0] for name, v in run.values.items()}
    ended = values["elapsed"][:, -1]
    moving = float((np.diff(values["elapsed"], axis=1).max(axis=0) > 0).sum()) * (
        float(run.steps[1]) if len(run.steps) > 1 else 1.0
    )
    variance = {"largest_variance": made.largest(cell)} if cell.images == "cifar10" else {}
    return dataclasses.asdict(cell) | variance | {
        "ratio": tasks.route_ratio(routes),
        "trained": values["trained"][:, -1].round(5).tolist(),
        "untrained": values["untrained"][:, -1].round(5).tolist(),
        "loss": np.asarray(run.loss)[0, :, -1].round(6).tolist(),
        "elapsed": ended.round(2).tolist(),
        "steps": int(run.steps[-1]),
        "seconds": round(seconds, 2),
        "us_per_step_and_run": round(1e6 * seconds / max(moving, 1.0) / cell.seeds, 1),
        "course": {
            name: v.mean(axis=0).round(4).tolist() for name, v in values.items()
        } | {"loss": np.asarray(run.loss)[0].mean(axis=0).round(5).tolist()},
    }  # fmt: skip


def equal(cell: Cell, made: Tasks, steps: int = 1000, rate: float = 0.5) -> dict[str, Any]:
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
    return dataclasses.asdict(cell) | {
        "image_count": len(x), "run_steps": steps, "gradient_gap": at_start,
        "loss_gap": float(np.abs(la / lb - 1).max()), "weight_gap": at_end,
        "loss_first_last": [float(la[0]), float(la[-1])],
    }  # fmt: skip


def done_before(path: Path) -> Iterator[dict[str, Any]]:
    """The cells that an earlier call has finished."""
    if path.exists():
        for line in path.read_text().splitlines():
            yield json.loads(line)


def told(row: dict[str, Any]) -> str:
    """A cell in one line."""
    if row["method"] == "equal":
        keys = ("image_count", "run_steps", "gradient_gap", "loss_gap", "weight_gap")
        return "equal: " + ", ".join(f"{k} {row[k]}" for k in keys)
    mean, sd = (lambda n, f=f: float(f(row[n])) for f in (np.mean, np.std))
    note = "  sd > .05" if max(sd("trained"), sd("untrained")) > 0.05 else ""
    return (
        f"{row['plan']:10} {row['images']:7} {row['method']:10} {row['inputs']:8} "
        f"{row['routes']:9} M={row['M']:3} K={row['K']:2} K/M={row['K'] / row['M']:.2f} "
        f"s2/s1={row['ratio']:.3f} "
        f"gain={row['scale']:g} leak={row['leak']:g} T={np.mean(row['elapsed']):.0f} "
        f"trained {mean('trained'):.4f} ± {sd('trained'):.4f} "
        f"untrained {mean('untrained'):.4f} ± {sd('untrained'):.4f} "
        f"loss {mean('loss'):.4f} steps {row['steps']} {row['seconds']:.1f} s "
        f"{row['us_per_step_and_run']:.0f} us{note}"
    )


def main() -> None:
    """Run the cells of the plans that are named, until the minutes are over."""
    known = plans(10)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=list(known), metavar="PLAN", help=str([*known]))
    parser.add_argument("--data", default=None)
    parser.add_argument("--features", default=None, help="file of features in place of images")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--train", type=int, default=None, help="training images; all by default")
    parser.add_argument("--tests", type=int, default=None, help="test images; all by default")
    parser.add_argument("--commit", default=None, help="where there is no repository")
    parser.add_argument("--rate", type=float, default=1e-3, help="of the authors' protocol")
    parser.add_argument("--products", default="bfloat16")
    given = parser.parse_args()
    begin = time.monotonic()
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / "cells.jsonl"
    rows = list(done_before(path))
    usual = {f.name: f.default for f in dataclasses.fields(Cell)}  # of fields that rows may lack
    seen = {json.dumps([row.get(f, usual[f]) for f in usual]) for row in rows}
    source = origin(given.commit)
    sys.stdout.write(f"{source}\n")
    made = Tasks(given.data, given.train, given.tests)
    cells = [cell for name in given.names for cell in plans(given.seeds)[name]]
    if given.features:
        cells = [dataclasses.replace(cell, images=given.features) for cell in cells]
    for cell in cells:
        if json.dumps([getattr(cell, f) for f in usual]) in seen:
            continue
        if time.monotonic() - begin > 60 * given.minutes:
            sys.stdout.write("the minutes are over; the same call goes on from here\n")
            break
        if cell.method == "equal":
            row = equal(cell, made)
        else:
            row = measured(cell, made, given.rate, given.products)
        row = source | row
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        sys.stdout.write(told(row) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

"""Claims about the graph, the data and the two networks."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import neuralrace as nr
from benchmarks import foundation as bench
from evidence.own.cases import brute_force_outputs, random_architecture, random_case
from evidence.promise import Measurement, at_most, claim

SECTION = "Foundation"
ROOT = Path(__file__).parents[2]


@claim(
    "foundation/forward",
    SECTION,
    "forward pass = brute-force sum over paths, 200 random gated graphs",
    "largest relative difference ≤ 1e-10",
    most=1e-10,
)
def forward(full: bool) -> Iterator[float]:
    rng = np.random.default_rng(0)
    for _ in range(200 if full else 30):
        case = random_case(rng)
        found, wanted = nr.GDLN(case.arch)(case.weights, case.data), brute_force_outputs(case)
        for node, value in wanted.items():
            yield float(np.abs(found[node] - value).max() / (1 + np.abs(value).max()))


@claim(
    "foundation/relu-gated",
    SECTION,
    "a ReLU network (depth 1–3 and random graphs, leak, bias) = the GDLN gated by its activity",
    "largest relative difference ≤ 1e-12",
    most=1e-12,
)
def relu_is_gated(full: bool) -> Iterator[float]:
    rng = np.random.default_rng(1)
    for trial in range(120 if full else 8):
        depth = trial % 4
        arch = (
            nr.Architecture.chain(3, *rng.integers(1, 9, depth), 2)
            if depth
            else random_architecture(rng)
        )
        relu = nr.ReLUNetwork(arch, leak=float(rng.choice([0, 0.1])), bias=bool(rng.integers(2)))
        weights = relu.init(jax.random.key(trial))
        data = nr.Dataset(
            {v: rng.normal(size=(11, arch.sizes[v])) for v in arch.inputs},
            {v: rng.normal(size=(11, arch.sizes[v])) for v in arch.outputs},
        )
        gated = nr.GDLN(relu.arch)(weights, data.gated(relu.activity(weights, data)))
        for node, value in relu(weights, data).items():
            yield float(jnp.abs(gated[node] - value).max() / (1 + jnp.abs(value).max()))


def ladder(layers: int, size: int = 4) -> nr.Architecture:
    """A chain in which every two neighbours are joined by two parallel edges: 2^layers paths."""
    names = ["x", *(f"h{i}" for i in range(1, layers)), "y"]
    steps = list(pairwise(names))
    edges = {f"{side}{i}": ends for i, ends in enumerate(steps) for side in "ab"}
    return nr.Architecture(dict.fromkeys(names, size), edges)


@claim(
    "foundation/ladder-gradient",
    SECTION,
    "ladder of 40 layers with two parallel edges: path_count() exact; loss and gradient against "
    "the merged chain",
    "2^40 paths; relative difference ≤ 1e-10",
)
def ladder_gradient(full: bool) -> Measurement:
    layers, size = 40, 4
    arch = ladder(layers, size)
    chain = nr.Architecture.chain(*[size] * (layers + 1))
    rng = np.random.default_rng(2)
    scale = 0.5 / np.sqrt(size)
    weights = {e: scale * rng.normal(size=(size, size)) for e in arch.edges}
    merged = {f"W{i + 1}": weights[f"a{i}"] + weights[f"b{i}"] for i in range(layers)}
    data = nr.Dataset({"x": rng.normal(size=(9, size))}, {"y": rng.normal(size=(9, size))})
    loss, grad = jax.value_and_grad(nr.GDLN(arch).loss)(weights, data)
    want_loss, want = jax.value_and_grad(nr.GDLN(chain).loss)(merged, data)
    worst = abs(float(loss / want_loss) - 1)
    for i in range(layers):
        for side in "ab":
            w = want[f"W{i + 1}"]
            worst = np.maximum(
                worst, float(jnp.abs(grad[f"{side}{i}"] - w).max() / jnp.abs(w).max())
            )
    exact = arch.path_count() == 2**40 and arch.path_count(edge="a7") == 2**39
    return Measurement(f"{arch.path_count()} paths; {worst:.2g}", exact and worst <= 1e-10)


@claim(
    "foundation/ladder-cost",
    SECTION,
    "one gradient of the ladder: 40 layers against 20",
    "at most 2.4 times (benchmark)",
    timing=True,
)
def ladder_cost(full: bool) -> Measurement:
    return at_most(bench.ladder_ratio(repeats=200 if full else 5), 2.4)


@claim(
    "foundation/import",
    SECTION,
    "`import neuralrace` with every public name, against `import jax, equinox`",
    "at most 1.4 times (benchmark)",
    timing=True,
)
def import_cost(full: bool) -> Measurement:
    return at_most(bench.import_ratio(repeats=7 if full else 1), 1.4)


@claim(
    "foundation/fresh-clone",
    SECTION,
    "`make demo` and `make test` pass in a fresh clone in an empty folder",
    "both exit with 0",
    slow=True,
)
def fresh_clone(full: bool) -> Measurement:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "-q", str(ROOT), folder], check=True)
        codes = {
            name: subprocess.run(["make", name], cwd=folder, capture_output=True).returncode
            for name in ("demo", "test")
        }
    text = ", ".join(f"{name} exits with {code}" for name, code in codes.items())
    return Measurement(text, not any(codes.values()))

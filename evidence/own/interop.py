"""Claims about networks and runs from PyTorch and from files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

import neuralrace as nr
from evidence.promise import Measurement, at_most, claim
from neuralrace import losses

SECTION = "Networks from elsewhere"
FIXTURES = Path(__file__).parents[2] / "tests" / "fixtures"
"""The folder with networks that were recorded in PyTorch."""

NETWORKS = 20
"""The number of recorded networks."""


def _part(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _arrays(name: str) -> dict[str, np.ndarray]:
    with np.load(FIXTURES / name) as file:
        return {key: file[key] for key in file.files}


def _worst(kind: str, numbers: range) -> float:
    """The largest difference of outputs, losses and gradients from those of PyTorch."""
    every, worst = _arrays("torch_networks.npz"), 0.0
    for number in numbers:
        case = _part(every, f"{kind}/{number}/")
        data = nr.Dataset({"x": case["x"]}, {"y": case["y"]})
        state = _part(case, "state/")
        for name, measure in (("squared", losses.squared), ("cross_entropy", losses.cross_entropy)):
            net, run = nr.from_torch(state, data, leak=float(case["leak"]), loss=name)
            step = jax.jit(lambda w, n=net, d=data, m=measure: n.loss_and_step(w, d, 1.0, m)[1])
            gradient = {edge: -np.asarray(g) for edge, g in step(run.final).items()}
            other, wanted = nr.from_layers(_pairs(_part(case, f"grad/{name}/")))
            assert other.arch == net.arch
            gaps = [np.abs(gradient[edge] - g).max() for edge, g in wanted.items()]
            gaps += [np.abs(run.outputs["y"][0] - case["outputs"]).max()]  # type: ignore[index]
            worst = np.max(
                [worst, *map(float, gaps), abs(float(run.loss[0] - case[f"loss/{name}"]))]
            )
    return worst


def _pairs(state: dict[str, np.ndarray]) -> list[tuple[np.ndarray, np.ndarray | None]]:
    layers = dict.fromkeys(key.split(".")[0] for key in state)
    return [(state[f"{name}.weight"], state.get(f"{name}.bias")) for name in layers]


@claim(
    "elsewhere/torch-gradients",
    SECTION,
    "20 random networks of PyTorch (depth 1–4, leaky, with and without biases), imported in "
    "float32 and float64: outputs, both losses and their gradients against PyTorch's own",
    "≤ 1e-6 in float32, ≤ 1e-12 in float64",
)
def outputs_and_gradients(full: bool) -> Measurement:
    numbers = range(NETWORKS) if full else range(2, 4)
    single, double = _worst("float32", numbers), _worst("float64", numbers)
    met = single <= 1e-6 and double <= 1e-12
    return Measurement(f"{single:.2g} in float32, {double:.2g} in float64", met)


@claim(
    "elsewhere/adam",
    SECTION,
    "200 steps of Adam on cross-entropy, recorded in PyTorch in float64, against "
    "nr.train(optimizer=optax.adam(…)) from the same start: weights at every record",
    "≤ 1e-8",
)
def adam(full: bool) -> Measurement:
    arrays = _arrays("torch_adam.npz")
    data = nr.Dataset({"x": arrays.pop("x")}, {"y": arrays.pop("y")})
    steps = sorted({int(key.split("/")[0]) for key in arrays})
    states = [_part(arrays, f"{step}/") for step in steps]
    net, run = nr.from_torch(states, data, times=steps, loss="cross_entropy")
    theirs = run.values["weights"]
    again = nr.train(
        net,
        {edge: w[0] for edge, w in theirs.items()},
        data,
        optimizer=optax.adam(0.01),
        loss="cross_entropy",
        steps=steps[-1],
        record_at=steps,
        record={"weights": True},
    )
    ours = again.values["weights"]
    return at_most(max(float(np.abs(ours[e] - theirs[e]).max()) for e in theirs), 1e-8)


@claim(
    "elsewhere/round-trip",
    SECTION,
    "weights of random graphs written to .safetensors and .npz and read again, float32 and "
    "float64: networks and bits that differ",
    "none",
)
def round_trip(full: bool) -> Measurement:
    wrong = tried = 0
    for seed in range(20 if full else 1):
        random = np.random.default_rng(seed)
        arch = _random_graph(random)
        data = nr.Dataset(
            {v: random.normal(size=(4, arch.sizes[v])) for v in arch.inputs},
            {v: random.normal(size=(4, arch.sizes[v])) for v in arch.outputs},
        )
        for net in (nr.ReLUNetwork(arch, leak=float(random.uniform(0, 0.5))), nr.GDLN(arch)):
            for dtype in (jnp.float32, jnp.float64):
                weights = net.init(seed, dtype=dtype)
                for suffix in ("safetensors", "npz"):
                    path = Path(tempfile.mkdtemp()) / f"net.{suffix}"
                    again, run = nr.from_file(nr.save_weights(net, weights, path), data)
                    bits = [
                        run.final[e].tobytes() == np.asarray(weights[e]).tobytes() for e in weights
                    ]
                    tried, wrong = tried + 1, wrong + (again != net or not all(bits))
    return Measurement(f"{wrong} of {tried}", wrong == 0)


def _random_graph(random: np.random.Generator) -> nr.Architecture:
    """Inputs, hidden layers and outputs with random sizes, names and edges that skip layers."""
    depth = int(random.integers(1, 4))
    layers = [
        [_random_name(random) for _ in range(random.integers(1, 4))] for _ in range(depth + 2)
    ]
    pairs: set[tuple[str, str]] = set()
    for k, layer in enumerate(layers[1:], 1):
        pairs |= {(str(random.choice(layers[k - 1])), node) for node in layer}
        pairs |= {(node, str(random.choice(layer))) for node in layers[k - 1]}
        if k > 1:
            pairs.add((str(random.choice(layers[k - 2])), str(random.choice(layer))))
    names = ["file", *(_random_name(random) for _ in range(len(pairs) - 1))]
    sizes = {node: int(random.integers(1, 6)) for layer in layers for node in layer}
    return nr.Architecture(sizes, dict(zip(names, sorted(pairs), strict=True)))


def _random_name(random: np.random.Generator) -> str:
    """Eight random letters, digits and underscores, a letter first."""
    letters = "abcxyzABCXYZ"
    every = list(letters + "0123456789_")
    return "".join([str(random.choice(list(letters))), *map(str, random.choice(every, 7))])

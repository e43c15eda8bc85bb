"""Claims about shared weights: recurrent networks, tied autoencoders and tied chains."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import numpy as np

import neuralrace as nr
from evidence.promise import Measurement, at_most, claim

SECTION = "Shared weights"

FADING = ((3.0, 2.0, 1.0), (0.9, 0.7, 0.5))
"""Strengths and decays of three modes."""


def gaussian(arch: nr.Architecture, scale: float, seed: int) -> dict[str, np.ndarray]:
    """Gaussian weights by NumPy."""
    rng = np.random.default_rng(seed)
    return {name: scale * rng.normal(size=shape) for name, shape in arch.shapes.items()}


def off(
    arch: nr.Architecture, data: nr.Dataset, weights: Mapping, times: np.ndarray
) -> tuple[float, float, nr.Trajectory]:
    """Mean and largest |ΔL| / L(0) of the race from these weights, and the flow beside it."""
    race = nr.reduce(arch, data)
    predicted = race.solve(times=times, start=race.start(weights)).loss
    trained = nr.flow(nr.GDLN(arch), weights, data, times=times, rtol=1e-8)
    gap = np.abs(predicted - trained.loss) / trained.loss[0]
    return float(gap.mean()), float(gap.max()), trained


@claim(
    "shared/recurrent",
    SECTION,
    "a recurrent network 5 → 40 → 4, T = 6, from Gaussian weights of standard deviation 1e-3: the "
    "race against the flow, five seeds",
    "mean ≤ .005 % and largest ≤ .5 % of L(0)",
)
def recurrent(full: bool) -> Measurement:
    arch = nr.Architecture.recurrent(5, 40, 4, steps=6)
    data = nr.tasks.sequence_teacher(5, 4, 6, *FADING)
    times = np.linspace(0, 12, 121)
    each = [off(arch, data, gaussian(arch, 1e-3, k), times)[:2] for k in range(5 if full else 1)]
    mean, most = np.max(each, axis=0)
    text = f"{100 * mean:.2g} % on average, {100 * most:.2g} % at most, in the worst seed"
    return Measurement(text, bool(mean <= 5e-5 and most <= 5e-3))


@claim(
    "shared/recurrent-other",
    SECTION,
    "the same with four modes of strengths 1, .8, .6, .4 and decays .9, .7, .5, .3, as "
    "`nr.tasks.sequence_teacher` has them",
    "mean ≤ .005 % and largest ≤ .5 % of L(0)",
)
def recurrent_other(full: bool) -> Measurement:
    arch = nr.Architecture.recurrent(5, 40, 4, steps=6)
    data = nr.tasks.sequence_teacher()
    times = np.linspace(0, 40, 201)
    each = [off(arch, data, gaussian(arch, 1e-3, k), times)[:2] for k in range(5 if full else 1)]
    mean, most = np.max(each, axis=0)
    text = f"{100 * mean:.2g} % on average, {100 * most:.2g} % at most, in the worst seed"
    note = (
        "modes of nearly equal speed disturb each other; accuracy=1e-4 follows the network itself"
    )
    return Measurement(text, bool(mean <= 5e-5 and most <= 5e-3), note)


@claim(
    "shared/recurrent-alone",
    SECTION,
    "the same with modes solved one by one, and with W_h = 0 at the start in place of a random one",
    "reported: what W_h adds at random accounts for less than half of the error",
)
def recurrent_alone(full: bool) -> Measurement:
    arch, data = nr.Architecture.recurrent(5, 40, 4, steps=6), nr.tasks.sequence_teacher()
    race, times, found = nr.reduce(arch, data), np.linspace(0, 40, 201), []
    for seed in range(5 if full else 1):
        weights = gaussian(arch, 1e-3, seed)
        for given in (weights, weights | {"Wh": 0.0 * weights["Wh"]}):
            run = race.solve(times=times, start=given, accuracy=None)
            loss = nr.flow(nr.GDLN(arch), given, data, times=times, rtol=1e-8).loss
            found.append(float(np.abs(run.loss - loss).mean() / loss[0]))
    own, without = np.reshape(found, (-1, 2)).T
    text = f"{100 * own.max():.2g} % on average in the worst seed, {100 * without.max():.2g} %"
    return Measurement(f"{text} with W_h = 0", bool((own < 2 * without).all()))


@claim(
    "shared/tied-chain",
    SECTION,
    "x = y = 1, y = V W³ U x, all three .3 along one direction: when half of the initial loss is "
    "left, and the same with three matrices",
    "t = 5.80 tied, 11.94 untied",
)
def tied_chain(full: bool) -> Measurement:
    sizes = dict.fromkeys(("x", "h1", "h2", "h3", "h4", "y"), 1)
    names = ("U", "a", "b", "c", "V")
    edges = dict(zip(names, zip([*sizes], [*sizes][1:], strict=False), strict=True))
    data, times = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]}), np.linspace(0, 15, 3001)
    found = []
    for ties in ({"W": ("a", "b", "c")}, {}):
        run = nr.reduce(nr.Architecture(sizes, edges, ties), data).solve(times=times, start=0.3)
        # the loss of this start is ½(1 − .3⁵)²
        half = (1 - 0.3**5) ** 2 / 4
        found.append(float(nr.trajectory.crossing_time(times, run.loss, half)))
    text = " tied, ".join(f"{t:.2f}" for t in found) + " untied"
    return Measurement(text, text == "5.80 tied, 11.94 untied")


@claim(
    "shared/autoencoder",
    SECTION,
    "a tied autoencoder 6 → 20 → 6 from Gaussian weights of standard deviation 1e-4: every mode "
    "against 1/(1 + (1/a₀ − 1)e^(−4lt)), with a₀ from the initial weights",
    "within .01 at all times",
)
def autoencoder(full: bool) -> Measurement:
    arch, variance = nr.Architecture.autoencoder(6, 20), np.array([4.0, 2.5, 1.5, 1.0, 0.6, 0.4])
    times, worst = np.linspace(0, 15, 151), 0.0
    for seed in range(5 if full else 1):
        turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(6, 6)))[0]
        x = np.sqrt(6 * variance)[:, None] * turn.T
        data, weights = nr.Dataset({"x": x}, {"y": x}), gaussian(arch, 1e-4, seed)
        first = np.array([w["W1"][0, 0] ** 2 for w in nr.reduce(arch, data).start(weights).weights])
        run = nr.flow(
            nr.GDLN(arch), weights, data, times=times, rtol=1e-9, record={"weights": True}
        )
        w = np.asarray(run.values["weights"]["W1"]) @ turn
        grown = 1 / (1 + (1 / first - 1) * np.exp(-4 * np.outer(times, variance)))
        worst = np.maximum(worst, float(np.abs((w**2).sum(axis=1) - grown).max()))
    return at_most(worst, 0.01)


@claim(
    "shared/delay",
    SECTION,
    "a delay (two fading modes of which the last input says nothing), with W_h small, and near one "
    "half of the identity, and the modes without a delay near one half of the identity: the race "
    "against the flow, T = 4, σ = 1e-2, the worst of three seeds each",
    "mean ≤ .1 % of L(0), and at most half of L(0) is left at the end",
)
def delay(full: bool) -> Measurement:
    fading = nr.tasks.sequence_teacher(2, 2, 4, (2.0, 1.0), (0.9, 0.6))
    last = np.linalg.lstsq(fading.x["x4"], fading.y["y"], rcond=None)[0]
    delayed = nr.Dataset(fading.x, {"y": fading.y["y"] - fading.x["x4"] @ last})
    arch, found = nr.Architecture.recurrent(2, 16, 2, steps=4), []
    for data, near, end in ((delayed, 0.0, 150.0), (delayed, 0.5, 30.0), (fading, 0.5, 20.0)):
        for seed in range(3 if full else 1):
            weights = gaussian(arch, 1e-2, seed)
            weights["Wh"] += near * np.eye(16)
            mean, _, run = off(arch, data, weights, np.linspace(0, end, 61))
            found.append((mean, run.loss[-1] / run.loss[0]))
    worst, left = np.max(found, axis=0)
    text = f"{100 * worst:.2g} %; at most {100 * left:.0f} % of L(0) are left at the end"
    return Measurement(text, bool(worst <= 1e-3 and left <= 0.5))


@claim(
    "shared/torch-start",
    SECTION,
    "a recurrent network 5 → 40 → 4, T = 6, from Gaussian weights of standard deviation 1e-4 to .1 "
    "and at PyTorch's own start: the error that the solution states, of its modes one by one and "
    "its own, against the flow, five seeds",
    "both within 1e-6 of the error found",
)
def torch_start(full: bool) -> Measurement:
    arch = nr.Architecture.recurrent(5, 40, 4, steps=6)
    data, times = nr.tasks.sequence_teacher(5, 4, 6, *FADING), np.linspace(0, 12, 61)
    net, race = nr.GDLN(arch), nr.reduce(arch, data)
    worst, alone = 0.0, []
    for seed in range(5 if full else 1):
        torch = {n: np.asarray(w, float) for n, w in net.init(seed, 1.0, kind="torch").items()}
        scales = (1e-4, 1e-3, 1e-2, 0.1) if full else (1e-3,)
        for weights in (*(gaussian(arch, scale, seed) for scale in scales), torch):
            runs = [race.solve(times=times, start=weights, accuracy=a) for a in (None, 5e-3)]
            loss = nr.flow(net, weights, data, times=times, rtol=1e-10).loss
            found = [float(np.abs(run.loss - loss).max() / loss[0]) for run in runs]
            said = [runs[1].settings[name] for name in ("error_alone", "error")]
            worst = max(worst, *(abs(f - s) for f, s in zip(found, said, strict=True)))
        alone.append(said[0])
    text = f"stated within {worst:.1g}; at PyTorch's start modes one by one are off by up to "
    return Measurement(text + f"{100 * max(alone):.2g} %", worst <= 1e-6)


@claim(
    "shared/steps-cost",
    SECTION,
    "work of one step of training for T = 25, 50, 100 time steps, as the compiler counts it, 64 "
    "hidden neurons, and the number of weights",
    "grows linearly in T, within 5 %; the weights do not grow",
)
def steps_cost(full: bool) -> Measurement:
    work, sizes = [], set()
    for steps in (25, 50, 100) if full else (5, 10, 20):
        net = nr.GDLN(nr.Architecture.recurrent(3, 64, 2, steps))
        weights = net.init(0, scale=0.1)
        data = nr.tasks.sequences(np.ones((8, steps, 3)), np.ones((8, 2)))
        step = jax.jit(lambda w, net=net, data=data: net.loss_and_step(w, data, 0.1))
        work.append(step.lower(weights).compile().cost_analysis()["flops"])
        sizes.add(sum(w.size for w in weights.values()))
    ratio = (work[2] - work[1]) / (work[1] - work[0])
    return Measurement(
        f"{ratio / 2:.3f} times linear", abs(ratio / 2 - 1) <= 0.05 and len(sizes) == 1
    )

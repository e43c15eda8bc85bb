"""The race under other update rules than plain descent."""

from __future__ import annotations

import itertools
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import jax
import numpy as np
import optax

import neuralrace as nr
from evidence.own.cases import random_architecture, random_gate
from evidence.promise import Measurement, at_most, claim

STRENGTHS = (4.0, 3.0, 2.0, 1.5, 1.0, 0.5)
"""The singular values of Σ^yx in a task of six modes."""

RULES: dict[str, dict[str, Any]] = {
    "momentum": {"learning_rate": 0.02, "momentum": 0.9},
    "decay": {"learning_rate": 0.05, "weight_decay": 0.1},
    "decay and momentum": {"learning_rate": 0.02, "momentum": 0.5, "weight_decay": 0.2},
    "rates": {"learning_rate": 0.05, "rates": {"e0": 0.3, "e1": 2.0}},
    "nesterov": {"optimizer": optax.sgd(0.02, momentum=0.9, nesterov=True)},
    "muon": {"optimizer": nr.dynamics.muon(0.01, momentum=0.5)},
    "adam": {"optimizer": optax.adam(0.01)},
    "clipping": {"optimizer": optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(0.1))},
}
"""Eight rules; the last two do not keep the blocks."""

REFUSED = ("adam", "clipping")
"""The rules that must be refused."""

STEPS = 60
"""The number of steps of every run."""


def random_race(seed: int) -> nr.Race | None:
    """An exact race of a random graph with gates and room for all directions, or None."""
    rng = np.random.default_rng(seed)
    arch = random_architecture(rng, max_size=3)
    arch = arch.with_sizes({v: 24 if v in arch.hidden else n for v, n in arch.sizes.items()})
    count = 5
    gates = {v: random_gate(rng, "binary", count, 1) for v in arch.hidden if rng.integers(3) == 0}
    x = {v: rng.normal(size=(count, arch.sizes[v])) for v in arch.inputs}
    y = {v: rng.normal(size=(count, arch.sizes[v])) for v in arch.outputs}
    race = nr.reduce(arch, nr.Dataset(x, y, gates))
    return race if race.is_exact and race.blocks else None


def gap_to_training(race: nr.Race, **rule: Any) -> float:
    """The largest difference in loss from training at full size, as a part of the initial loss."""
    weights = race.weights(race.solve(times=[0.0, 1e-3], start=0.2), 0.0)
    with jax.enable_x64(True):
        run = nr.train(nr.GDLN(race.arch), weights, race.data, steps=STEPS, **rule)
    solved = race.solve(times=run.time, start=weights, **rule)
    return float(np.abs(solved.loss - run.loss).max() / run.loss[0])


def is_refused(race: nr.Race, **rule: Any) -> bool:
    """Whether a rule is refused."""
    try:
        race.solve(times=[0, 1], start=0.1, **rule)
    except nr.NeuralRaceError:
        return True
    return False


def modes_of(strengths: tuple[float, ...] = STRENGTHS, hidden: int = 24) -> nr.Race:
    """The race of a chain whose Σ^yx has these singular values, with white inputs."""
    n = len(strengths)
    data = nr.Dataset(
        {"x": np.sqrt(n) * np.eye(n)}, {"y": np.sqrt(n) * np.diag(np.array(strengths))}
    )
    return nr.reduce(nr.Architecture.chain(n, hidden, n), data)


def plain_loop(
    race: nr.Race, weights: Any, rate: float, steps: int, mu: float, decay: float
) -> np.ndarray:
    """The loss of a chain of two edges under momentum and weight decay, in plain NumPy."""
    x, y = np.asarray(race.data.x["x"]), np.asarray(race.data.y["y"])
    w, v = [np.asarray(weights["W1"]), np.asarray(weights["W2"])], [np.zeros(()), np.zeros(())]
    losses = []
    for _ in range(steps + 1):
        error = y - x @ w[0].T @ w[1].T
        losses.append(0.5 * (error**2).sum() / len(x))
        slopes = [-(error @ w[1]).T @ x / len(x), -error.T @ (x @ w[0].T) / len(x)]
        v = [mu * a + g + decay * b for a, g, b in zip(v, slopes, w, strict=True)]
        w = [a - rate * b for a, b in zip(w, v, strict=True)]
    return np.array(losses)


def momentum_gap(decay: float, weights: Any, steps: int) -> float:
    """The largest difference in loss between race and loop with momentum .9, over L(0)."""
    race = modes_of()
    losses = plain_loop(race, weights, 0.01, steps, 0.9, decay)
    times = 0.1 * np.arange(steps + 1)
    rule: Any = {"learning_rate": 0.01, "momentum": 0.9, "weight_decay": decay}
    solved = race.solve(times=times, start=weights, **rule)
    return float(np.abs(solved.loss - losses).max() / losses[0])


@claim(
    "rules/decay",
    "Other rules",
    "With weight decay .3, modes of s = 4, 3, 2, 1.5, 1, .5 end at s − .3, by the closed form and "
    "by integration of the network",
    "≤ 1e-6",
)
def decay_finals(full: bool) -> Measurement:
    race, wanted = modes_of(), np.array(STRENGTHS) - 0.3
    form = race.closed_form(1e-2, weight_decay=0.3)
    finals = np.array([mode.final for mode in form.modes.values()])
    net = nr.GDLN(race.arch)
    with jax.enable_x64(True):
        start = race.weights(race.solve(times=[0.0, 1e-3], start=1e-2), 0.0)
        run = nr.flow(net, start, race.data, times=[0.0, 150.0], weight_decay=0.3)
    maps = np.diag(np.asarray(run.final["W2"]) @ np.asarray(run.final["W1"]))
    return at_most(float(max(np.abs(finals - wanted).max(), np.abs(maps - wanted).max())), 1e-6)


@claim(
    "rules/momentum",
    "Other rules",
    "Momentum .9, with weight decay .05 and without, against a NumPy loop on the full network from "
    "decoupled weights: largest difference in loss over L(0)",
    "≤ 1e-6",
)
def momentum(full: bool) -> Measurement:
    race = modes_of()
    weights = race.weights(race.solve(times=[0.0, 1e-3], start=1e-2), 0.0)
    return at_most(max(momentum_gap(decay, weights, 600) for decay in (0.0, 0.05)), 1e-6)


UNDERDAMPED = (
    "Plain descent from the same five starts differs by .0001 to .0012. At a rate of .01 momentum "
    ".9 is underdamped (ημs/(1 − μ)² = 3.6): small weights grow nearer to √s than to s, modes "
    "follow each other sooner, and what one leaves of the next counts more. In the worst start the "
    "difference is .0066 at a rate of .01, .0037 at .003 and .0017 at .0005; it falls with σ, too."
)
"""Why a start from random weights is less exact under momentum."""


@claim(
    "rules/momentum-random",
    "Other rules",
    "The same from random weights (σ = 1e-3), which the race approximates, over 5 draws",
    "≤ .002",
)
def momentum_random(full: bool) -> Measurement:
    net = nr.GDLN(modes_of().arch)
    with jax.enable_x64(True):
        drawn = [net.init(seed, scale=1e-3, dtype=np.float64) for seed in range(5 if full else 1)]
    worst = max(momentum_gap(decay, w, 1500) for w in drawn for decay in (0.0, 0.05))
    return at_most(worst, 2e-3, UNDERDAMPED)


@claim(
    "rules/muon",
    "Other rules",
    "Muon from a small start learns 90 % of modes of s = .5, 1, 1.5, 2, 3, 4 at √(.9 s): the "
    "largest relative difference, of blocks and of a random network (σ = 1e-3)",
    "≤ .01",
)
def muon_times(full: bool) -> Measurement:
    race, rate, steps = modes_of(), 1e-3, 2200
    rule = nr.dynamics.muon(rate)
    with jax.enable_x64(True):
        start = nr.GDLN(race.arch).init(0, scale=1e-5, dtype=np.float64)
        run = nr.train(
            nr.GDLN(race.arch), start, race.data, optimizer=rule, steps=steps,
            record={"weights": True},
        )  # fmt: skip
    maps = np.einsum("tij,tjk->tik", run.values["weights"]["W2"], run.values["weights"]["W1"])
    solved = race.solve(times=np.arange(steps + 1), start=1e-4, optimizer=rule)
    gaps = []
    for i, (block, s) in enumerate(zip(race.blocks, STRENGTHS, strict=True)):
        for strength in (maps[:, i, i], solved.values["pathways"][block.name]["W1-W2"]):
            time = rate * float(np.argmax(strength >= 0.9 * s))
            gaps.append(abs(time / np.sqrt(0.9 * s) - 1))
    return at_most(max(gaps), 0.01)


def graph_gaps(seed: int) -> list[float]:
    """The gap to training of the race of a seed, for every rule; infinite for a wrong refusal."""
    found = []
    with jax.enable_x64(True):
        race = random_race(seed)
        if race is None:  # never where the seed comes from `exact_seeds`
            return [np.nan]
        for name, rule in RULES.items():
            if "rates" in rule:
                rates = {e: r for e, r in rule["rates"].items() if e in race.arch.edges}
                rule = rule | {"rates": rates}
            if name in REFUSED:
                found.append(0.0 if is_refused(race, **rule) else np.inf)
            else:
                found.append(gap_to_training(race, **rule))
    return found


def exact_seeds(count: int) -> list[int]:
    """The first seeds that give exact races."""
    seeds = itertools.count()
    return list(itertools.islice((s for s in seeds if random_race(s) is not None), count))


@claim(
    "rules/graphs",
    "Other rules",
    "40 random graphs × 8 rules: the loss of those accepted against training at full size, over "
    "L(0); those that do not keep the blocks are refused",
    "≤ 1e-8",
)
def graphs(full: bool) -> Measurement:
    seeds = exact_seeds(40 if full else 2)
    if not full:
        return at_most(max(map(np.max, map(graph_gaps, seeds))), 1e-8)
    # processes that begin anew, since a program that uses JAX must not be forked
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return at_most(float(np.max(list(pool.map(graph_gaps, seeds)))), 1e-8)

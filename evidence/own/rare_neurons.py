"""Claims about rare neurons: when types of neurons warn, and how often networks lack them."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.stats import binomtest

import neuralrace as nr
from evidence.promise import Measurement, claim

SECTION = "Sliding gates and types of neurons"
tasks = nr.tasks
RATE = 0.1
STEPS = 20_000
WIDTH = 100


def on_a_line(x, y) -> nr.Dataset:
    """Samples on a line with a second input, by default 1, and positive targets."""
    x = np.asarray(x, float)
    columns = x if x.ndim == 2 else np.stack([x, np.ones_like(x)], axis=1)
    return nr.Dataset({"x": columns}, {"y": np.asarray(y, float).reshape(-1, 1)})


BENT = on_a_line([[-1, 1], [-0.2, 1], [0.3, 1.2]], [1, 0.25, 1.2])
"""Three points that one ReLU neuron for all of them does not interpolate."""


def bent_at_random(seed: int) -> nr.Dataset:
    """A few samples on a line with positive targets; not all seeds have a spurious minimum."""
    random = np.random.default_rng(seed)
    many = int(random.integers(3, 6))
    x = np.sort(random.uniform(-1.5, 1.5, many))
    second = np.ones(many) + 0.2 * random.random(many) * (random.random() < 0.5)
    return on_a_line(np.stack([x, second], axis=1), random.uniform(0.1, 1.5, many))


SPURIOUS = {
    "bent": BENT,
    "symmetric": on_a_line([-1, 0, 1], [1, 0.2, 1]),
    "four": on_a_line([-1, -0.3, 0.2, 0.9], [1, 0.4, 0.3, 1.1]),
    "random 1": bent_at_random(1),
    "random 9": bent_at_random(9),
    "random 20": bent_at_random(20),
}
"""From σ = 1e-6, most of 16 networks of width 100 end above the prediction, on each."""

ORDINARY = {
    "XoR": (tasks.xor(), 1e-4),
    "XoR .4": (tasks.extended_xor(0.4), 2e-5),
    "XoR 1.2": (tasks.extended_xor(1.2), 1e-4),
    "2 contexts": (tasks.contextual(contexts=2, items=4, joined=True), 1e-4),
    "3 contexts": (tasks.contextual(contexts=3, items=4, joined=True), 1e-4),
    "decision": (tasks.context_decision(cue=1.0), 1e-3),
    "decision .5": (tasks.context_decision(cue=0.5), 1e-4),
    "Gaussian": (tasks.gaussian(20, 5, 3, key=0), 1e-3),
    "Gaussian 8": (tasks.gaussian(30, 8, 2, key=1), 1e-4),
    "ring": (tasks.ring_classification(12, 3), 1e-3),
    "inference": (tasks.transitive_inference(5), 1e-3),
    "teacher": (tasks.teacher(), 1e-3),
}
"""Tasks on which networks learn all that the wide limit learns, with their scales."""


def predicted(data: nr.Dataset, scale: float, rate: float, steps: int) -> nr.reln.NeuronTypes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # aligning takes longer than learning
        return nr.reln.types(
            data, width=WIDTH, scale=scale, learning_rate=rate, steps=steps, types=1, key=0
        )


@claim(
    "types/rare-neurons",
    SECTION,
    "types of neurons warn that a network may lack rare ones: on 6 tasks with a spurious minimum "
    f"(width {WIDTH}, σ = 1e-6), and on 12 ordinary tasks",
    "6 of 6, and 0 of 12",
)
def rare(full: bool) -> Measurement:
    spurious = SPURIOUS if full else {"bent": BENT}
    ordinary = ORDINARY if full else {"XoR .4": ORDINARY["XoR .4"]}
    chances = {}
    for name, data in spurious.items():
        rest = predicted(data, 1e-6, RATE, STEPS).rare
        if rest is not None:
            chances[name] = rest.chance
    false = []
    for name, (data, scale) in ordinary.items():
        rate = 0.02 / nr.reln.aligned_patterns(data, key=0).fastest
        if predicted(data, scale, rate, 5000).rare is not None:
            false.append(name)
    told = ", ".join(f"{name} {100 * chance:.0f} %" for name, chance in chances.items())
    text = f"{len(chances)} of {len(spurious)} (chances {told}), {len(false)} of {len(ordinary)}"
    met = len(chances) == len(spurious) and not false
    return Measurement(text, met, f"Warnings on ordinary tasks: {', '.join(false)}." * bool(false))


@claim(
    "types/rare-chances",
    SECTION,
    f"the chance that a network of width {WIDTH} lacks rare neurons, on three bent points, against "
    "16 trained networks, from σ = 1e-6 and 1e-3",
    "within the 99 % interval of the share of networks that end above half of the rest's level",
    slow=True,
)
def chances(full: bool) -> Measurement:
    text, met = [], True
    for scale in (1e-6, 1e-3):
        many = nr.train_ensemble(
            nr.ReLUNetwork((2, WIDTH, 1)), BENT, key=0, seeds=16, scale=scale,
            learning_rate=RATE, steps=STEPS, record_every=STEPS,
        )  # fmt: skip
        rest = predicted(BENT, scale, RATE, STEPS).rests[0]
        stuck = int((many.loss[:, -1] / many.loss[:, 0] > rest.level / 2).sum())
        ends = binomtest(stuck, 16).proportion_ci(0.99)
        met &= bool(ends.low <= rest.chance <= ends.high)
        text.append(f"σ = {scale:g}: {100 * rest.chance:.0f} %, {stuck} of 16")
    return Measurement("; ".join(text), met)

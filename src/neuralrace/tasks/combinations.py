"""Items in contexts and roles, with combinations that are held out: systematic generalisation."""

from __future__ import annotations

import itertools

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.checks import generator
from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.errors import listed, require
from neuralrace.types import Count, Inside, Key, Several

CLASSES = ("item", "context", "role")
"""The labels of a combination, which are also its inputs."""


@door
def combinations(
    items: Several = 6,
    contexts: Several = 3,
    roles: Several = 2,
    features: Count = 4,
    held_out: Inside = 0.25,
    key: Key = 0,
) -> Dataset:
    """Every item in every context and role; some combinations are to be held out of training.

    In context c, item i has `features` random features f_c(i) of ±1, which are wanted in the part
    of the output that belongs to the role: y = e_role ⊗ f_c(i). So a combination that was never
    seen follows from others, in which the same item in the same context has another role, if a
    network learns features apart from roles. A map of the inputs that only adds up cannot.

    **Arguments:** how many `items`, `contexts`, `roles` and `features`; `held_out`, about which
    share of the combinations is to be held out, drawn by `key`. Every pair of an item, a context
    and a role remains in some combination that is not.

    **Returns:** inputs `item`, `context` and `role`, one-hot; `y` of roles · features; labels
    `item`, `context`, `role` (1, 2, …) and `held_out` (0 or 1). `split_held_out` splits it.

    **Gatings:** `modular`.

    ```python
    >>> from neuralrace import tasks
    >>> data = tasks.combinations()
    >>> data.n_samples, int(data.labels["held_out"].sum()), data.y["y"].shape
    (36, 9, (36, 8))

    ```
    """
    rng = generator(key, "drawing the combinations")
    shown = rng.choice([-1.0, 1.0], size=(contexts, items, features))
    every = np.array(list(itertools.product(range(items), range(contexts), range(roles))))
    pairs = [every[:, [a, b]] for a, b in ((0, 1), (0, 2), (1, 2))]
    kept, wanted = np.ones(len(every), bool), round(held_out * len(every))
    for row in rng.permutation(len(every)):
        alone = [kept[(pair == pair[row]).all(axis=1)].sum() < 2 for pair in pairs]
        if (~kept).sum() < wanted and not any(alone):
            kept[row] = False
    require(
        wanted and (~kept).sum() == wanted,
        "held_out leaves pairs that are never seen, or holds out nothing",
        got=f"held_out={held_out:g} of {len(every)} combinations",
        wanted=f"from {1 / len(every):.2g} to {(~kept).mean():.2g} with this key",
        fix="a smaller share, more roles, or another key",
    )
    i, c, r = every.T
    y = (np.eye(roles)[r][:, :, None] * shown[c, i][:, None]).reshape(len(every), -1)
    inputs = {"item": np.eye(items)[i], "context": np.eye(contexts)[c], "role": np.eye(roles)[r]}
    labels = dict(zip(CLASSES, (every + 1).T, strict=True)) | {"held_out": (~kept).astype(int)}
    return Dataset(inputs, {"y": y}, labels=labels)


@door
def split_held_out(data: Dataset) -> tuple[Dataset, Dataset]:
    """The combinations to train on, and those that are held out, as `nr.train(evaluate=…)` takes.

    How systematic a network is: 1 − L(held out)/½⟨‖y‖²⟩, 1 if it knows what was held out, 0 if it
    does no better than an output of zero, negative if it is wrong with confidence.

    ```python
    >>> from neuralrace import tasks
    >>> seen, new = tasks.split_held_out(tasks.combinations())
    >>> seen.n_samples, new.n_samples
    (27, 9)

    ```
    """
    require(
        "held_out" in data.labels,
        "data have no label 'held_out'",
        got=f"labels {listed(data.labels)}",
        wanted="data of tasks.combinations",
        fix="data = tasks.combinations()",
    )
    return data.take(data.mask(held_out=0)), data.take(data.mask(held_out=1))


@door
def modular(data: Dataset, hidden: Count = 32, gated: bool = True) -> tuple[Architecture, Dataset]:
    """Modules for contexts and for roles, which meet in one representation.

    The item is read by a module per context, and the output is written by a module per role; only
    edges from the item and to the output are learned. With `gated`, each module is on in its
    context or role. Without, gates are left to `nr.LearnedGates`. Only the item is an input.

    ```python
    >>> from neuralrace import tasks
    >>> arch, data = tasks.modular(tasks.combinations(), hidden=16)
    >>> arch.hidden, sorted(data.gates)[:2]
    (('context1', 'context2', 'context3', 'shared', 'role1', 'role2'), ['context1', 'context2'])

    ```
    """
    require(
        set(CLASSES) <= set(data.labels) and "item" in data.x,
        "modular is about items in contexts and roles",
        got=f"labels {listed(data.labels)}, x for {listed(data.x)}",
        wanted="data of tasks.combinations",
        fix="data = tasks.combinations()",
    )
    of = {name: np.unique(np.asarray(data.labels[name])).tolist() for name in ("context", "role")}
    nodes = {name: [f"{name}{value}" for value in values] for name, values in of.items()}
    inner = [*nodes["context"], "shared", *nodes["role"]]
    sizes = {"item": data.x["item"].shape[1], **dict.fromkeys(inner, hidden)}
    edges = {f"item_{c}": ("item", c) for c in nodes["context"]}
    edges |= {f"{c}_shared": (c, "shared") for c in nodes["context"]}
    edges |= {f"shared_{r}": ("shared", r) for r in nodes["role"]}
    edges |= {f"{r}_y": (r, "y") for r in nodes["role"]}
    frozen = {e: 1.0 for e, ends in edges.items() if "shared" in ends}
    arch = Architecture({**sizes, "y": data.y["y"].shape[1]}, edges, frozen=frozen)
    gates = {
        node: (np.asarray(data.labels[name]) == value).astype(float)
        for name, values in of.items()
        for node, value in zip(nodes[name], values, strict=True)
    }
    labels = {name: np.asarray(label) for name, label in data.labels.items()}
    item = {"item": data.x["item"]}
    return arch, Dataset(item, data.y, gates if gated else {}, data.sample_weight, labels)

"""Small tasks that are not in the papers: decisions by context, parity, order, sectors, teachers.

They serve to study whether a ReLU network keeps a gating.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Literal

import numpy as np

from neuralrace.checks import generator, real_array
from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, require, whole_number
from neuralrace.types import ArrayLike, Count, Finite, Key, Several

MOST_BITS = 20
"""The most bits of `parity`: a million samples."""


@door
def context_decision(levels: int | ArrayLike = 4, cue: Finite = 1.0) -> Dataset:
    """Two streams and a cue: report the sign of the stream that the cue asks for.

    A sample shows the values of both streams and a one-hot context of size `cue`. The target is
    +1 or −1, the sign of stream 1 in context 1 and of stream 2 in context 2 (a noiseless version
    of the task of Mante, Sussillo, Shenoy & Newsome 2013).

    **Arguments:** `levels`, how many values each stream takes, an even number (4 means −1, −½, ½
    and 1), or the values themselves. `cue`, the size of the context features.

    **Returns:** `x["x"]` of shape `(2 L², 4)` and `y["y"]` of shape `(2 L², 1)`, context 1 first;
    labels `context` (1 or 2) and `answer` (whether the target is positive).

    **Gatings:** by answer and by context (`natural_gatings`). A ReLU network keeps neither: see
    docs/kept.md.

    ```python
    >>> from neuralrace import tasks
    >>> data = tasks.context_decision(cue=3.0)
    >>> data.x["x"].shape, data.x["x"][0].round(2), data.y["y"][0]
    ((32, 4), array([-1., -1.,  3.,  0.]), array([-1.]))

    ```
    """
    wanted = "an even number of levels, or the levels themselves"
    values = real_array("levels", levels, wanted=wanted, fix="for example levels=4")
    if not values.ndim:
        count = whole_number("levels", levels, least=2, fix="for example levels=4")
        positive = np.arange(1, count // 2 + 1) / (count // 2)
        values = np.concatenate([-positive[::-1], [0.0] * (count % 2), positive])
    require(
        not (
            values.ndim != 1
            or len(values) < 2
            or not np.isfinite(values).all()
            or (values == 0).any()
        ),
        "a stream needs values that have a sign",
        got=f"levels = {levels!r}",
        wanted="an even number, or two or more finite values other than 0",
        fix="levels=4, or levels=(-1, -0.5, 0.5, 1)",
    )
    streams = np.array(list(product(values, values)))
    context = np.repeat([0, 1], len(streams))
    x = np.hstack([np.tile(streams, (2, 1)), cue * np.eye(2)[context]])
    y = np.sign(x[np.arange(len(x)), context])[:, None]
    return Dataset({"x": x}, {"y": y}, labels={"context": context + 1, "answer": y[:, 0] > 0})


@door
def parity(bits: Count = 3) -> Dataset:
    """The product of signs: 2^n samples at (±1, …, ±1), target x₁ x₂ ⋯ xₙ.

    For an odd number of bits, three or more, a small ReLU network without bias never starts to
    learn: relu(z) = z/2 + |z|/2, and the target is uncorrelated with every linear and every even
    function.

    **Returns:** `x["x"]` of shape `(2ⁿ, n)` and `y["y"]` of shape `(2ⁿ, 1)`; label `answer`.

    **Gatings:** one pathway per sample, or per side of the first bit (`natural_gatings`).

    ```python
    >>> from neuralrace import tasks
    >>> tasks.parity(2).y["y"][:, 0]
    array([ 1., -1., -1.,  1.])

    ```
    """
    require(
        bits <= MOST_BITS,
        "there are too many bits",
        got=f"bits = {bits}",
        wanted=f"at most {MOST_BITS}, which is 2^{MOST_BITS} samples",
        fix="for example bits=3",
    )
    x = np.array(list(product((-1.0, 1.0), repeat=bits)))
    y = x.prod(axis=1, keepdims=True)
    return Dataset({"x": x}, {"y": y}, labels={"answer": y[:, 0] > 0})


@door
def transitive_inference(
    items: Several = 6, *, pairs: Literal["adjacent", "all"] = "adjacent"
) -> Dataset:
    """Transitive inference: which of two items ranks higher, trained on neighbours in rank.

    A sample shows two one-hot items side by side, in both orders; the target is +1 where the first
    ranks higher (has the smaller number) and −1 otherwise.

    **Arguments:** `items`, how many are ranked; `pairs`, `"adjacent"` for neighbours in rank, the
    usual training set, or `"all"`.

    **Returns:** `x["x"]` of shape `(N, 2 · items)` and `y["y"]` of shape `(N, 1)`; labels `first`
    and `second` (the items, counted from 1) and `answer`.

    **Gatings:** one pathway per sample or per answer (`natural_gatings`).

    ```python
    >>> from neuralrace import tasks
    >>> data = tasks.transitive_inference(6)
    >>> data.x["x"].shape, data.y["y"][:3, 0]
    ((10, 12), array([ 1., -1.,  1.]))

    ```
    """
    reach = 1 if pairs == "adjacent" else items
    shown = np.array(
        [
            pair
            for i in range(items)
            for j in range(i + 1, min(items, i + reach + 1))
            for pair in ((i, j), (j, i))
        ]
    )
    first, second = shown.T
    y = np.where(first < second, 1.0, -1.0)[:, None]
    return Dataset(
        {"x": np.hstack([np.eye(items)[first], np.eye(items)[second]])},
        {"y": y},
        labels={"first": first + 1, "second": second + 1, "answer": y[:, 0] > 0},
    )


@door
def ring_classification(points: Count = 24, classes: Several = 3) -> Dataset:
    """Points on a circle, sorted into sectors of equal size.

    **Arguments:** `points`, evenly on the unit circle, half a step away from the first axis;
    `classes`, the number of sectors, which must divide the number of points.

    **Returns:** `x["x"]` of shape `(points, 2)`, one-hot `y["y"]` of shape `(points, classes)`;
    label `answer`, the sector counted from 1.

    **Gatings:** one pathway per sector, `answer` of `natural_gatings`.

    ```python
    >>> from neuralrace import tasks
    >>> data = tasks.ring_classification(24)
    >>> data.x["x"].shape, data.y["y"].sum(axis=0)
    ((24, 2), array([8., 8., 8.]))

    ```
    """
    if points < classes or points % classes:
        raise NeuralRaceError(
            "the points cannot be divided equally among the classes",
            got=f"{points} points, {classes} classes",
            wanted=f"a multiple of {classes}",
            fix=f"use points={points - points % classes + classes}",
        )
    angle = 2 * math.pi * (np.arange(points) + 0.5) / points
    answer = np.arange(points) * classes // points
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return Dataset({"x": x}, {"y": np.eye(classes)[answer]}, labels={"answer": answer + 1})


@door
def teacher(
    samples: Count = 20, inputs: Count = 5, outputs: Count = 3, hidden: Count = 3, *, key: Key = 0
) -> Dataset:
    """A random ReLU network as teacher: Gaussian inputs, its outputs as targets.

    The teacher's weights are Gaussian, divided by the square root of each neuron's number of
    inputs. `key` (a JAX key or an integer) draws inputs and weights. `hidden` is the teacher's
    width.

    **Gatings:** `natural_gatings`, or the activity of the teacher's own neurons.

    ```python
    >>> from neuralrace import tasks
    >>> data = tasks.teacher(key=1)
    >>> data.x["x"].shape, data.y["y"].shape
    ((20, 5), (20, 3))

    ```
    """
    rng = generator(key)
    x = rng.normal(size=(samples, inputs))
    first = rng.normal(size=(inputs, hidden)) / math.sqrt(inputs)
    second = rng.normal(size=(hidden, outputs)) / math.sqrt(hidden)
    return Dataset({"x": x}, {"y": np.maximum(x @ first, 0) @ second})


@door
def gaussian(
    samples: Count = 20, inputs: Count = 5, outputs: Count = 3, *, key: Key = 0
) -> Dataset:
    """Random inputs with random targets, all independent standard Gaussians.

    `key` (a JAX key or an integer) draws both.

    **Gatings:** no obvious one. `natural_gatings` gives candidates, and `reln.aligned` the gates
    that small neurons align to.

    ```python
    >>> from neuralrace import tasks
    >>> data = tasks.gaussian(key=0)
    >>> data.x["x"].shape, data.y["y"].shape
    ((20, 5), (20, 3))

    ```
    """
    rng = generator(key)
    x = rng.normal(size=(samples, inputs))
    return Dataset({"x": x}, {"y": rng.normal(size=(samples, outputs))})

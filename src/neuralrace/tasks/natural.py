"""Gatings that one would try first, and the labels that gatings need."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int, Shaped

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset, Sampled, pathways
from neuralrace.door import door
from neuralrace.errors import listed, require
from neuralrace.types import Count

Gating = tuple[Architecture, Dataset]


@door
def answers(data: Sampled) -> Int[np.ndarray, " N"]:
    """The correct answer to each sample, counted from 0.

    This is the label `answer` if there is one. Otherwise, with one output, it is whether the target
    is positive, or above its mean if all targets have the same sign. With several outputs, it is
    the output that is furthest above its mean over samples.

    ```python
    >>> from neuralrace import tasks
    >>> tasks.answers(tasks.xor())
    array([0, 1, 1, 0])

    ```
    """
    if "answer" in data.labels:
        return np.unique(np.asarray(data.labels["answer"]), return_inverse=True)[1]
    y = np.concatenate([np.asarray(a, np.float64) for a in data.y.values()], axis=1)
    if y.shape[1] > 1:
        chosen = np.argmax(y - np.asarray(data.probability) @ y, axis=1)
        return np.unique(chosen, return_inverse=True)[1]
    on = y[:, 0] > 0
    return (on if 0 < on.sum() < len(on) else y[:, 0] > y.mean()).astype(int)


@door
def natural_gatings(data: Sampled, width: Count = 200) -> dict[str, Gating]:
    """The gatings one would try first, each with about `width` neurons in total.

    `sample` has one pathway per sample. `answer` has one per answer (`answers`). `context` has one
    per value of the label `context`; without that label, `side` has one for each sign of the first
    input feature. `common_answer` has the pathways of `answer` and one that is always on. Neurons
    are divided equally, with at least one per pathway. A gating with only one distinct pathway (one
    answer for all samples) is left out.

    They are candidates for `nr.contest`, which also says whether a ReLU network would keep them.

    ```python
    >>> from neuralrace import tasks
    >>> gatings = tasks.natural_gatings(tasks.context_decision())
    >>> list(gatings), gatings["context"][0].hidden
    (['sample', 'answer', 'context', 'common_answer'], ('context1', 'context2'))

    ```
    """
    answer = answers(data)
    by_answer = {f"answer{a}": answer == a for a in np.unique(answer)}
    masks = {"sample": dict(data.one_per_sample()), "answer": by_answer}
    if "context" in data.labels:
        context = np.unique(np.asarray(data.labels["context"]), return_inverse=True)[1]
        masks["context"] = {f"context{c + 1}": context == c for c in np.unique(context)}
    else:
        positive = np.asarray(next(iter(data.x.values())))[:, 0] > 0
        masks["side"] = {"positive": positive, "negative": ~positive}
    masks = {name: found for name, found in masks.items() if _differ(found)}
    gatings = {
        name: pathways(data, found, hidden=max(1, width // len(found)))
        for name, found in masks.items()
    }
    if "answer" in masks:
        found = {"common": None, **by_answer}
        gatings["common_answer"] = pathways(data, found, hidden=max(1, width // len(found)))
    return gatings


def _differ(masks: dict[str, np.ndarray]) -> bool:
    """Whether there are several pathways, each of which is on somewhere."""
    return len(masks) > 1 and all(mask.any() for mask in masks.values())


def label(data: Dataset, name: str, task: str) -> Shaped[np.ndarray, " N"]:
    """The label `name` of every sample, or an error that says which task has it."""
    require(
        name in data.labels,
        f"this gating needs the label {name!r}",
        got=f"labels {listed(data.labels)}",
        wanted=f"a dataset such as that of {task}",
        fix=f"pass labels={{{name!r}: …}} to the Dataset, or use nr.pathways with masks",
    )
    return np.asarray(data.labels[name])

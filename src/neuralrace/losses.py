"""What a network is trained to make small: one loss per sample, from outputs and targets.

The loss of a dataset is the weighted mean of the losses of its samples.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from neuralrace.architecture import Architecture
from neuralrace.checks import by_name
from neuralrace.dataset import Dataset, Sampled, is_concrete
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require

__all__ = [
    "accuracy",
    "cross_entropy",
    "squared",
]

Outputs = Mapping[str, Array]
"""The outputs or targets of every output node: `{node: (N, size)}`."""

SampleLoss = Callable[[Outputs, Outputs], Float[Array, " N"]]
"""A function of outputs and targets that gives one loss per sample."""


def squared(outputs: Outputs, targets: Outputs) -> Float[Array, " N"]:
    """½ Σ_v ‖y_v − h_v‖² of every sample, v the output nodes (NRR Eq. 1).

    ```python
    >>> import jax.numpy as jnp
    >>> from neuralrace.losses import squared
    >>> squared({"y": jnp.zeros((2, 1))}, {"y": jnp.array([[1.0], [2.0]])}).tolist()
    [0.5, 2.0]

    ```
    """
    _check_pairs(outputs, targets)
    each = [jnp.sum((targets[v] - h) ** 2, axis=1) for v, h in sorted(outputs.items())]
    return functools.reduce(jnp.add, each) / 2


def cross_entropy(outputs: Outputs, targets: Outputs) -> Float[Array, " N"]:
    """−Σ_v Σ_k y_vk log softmax(h_v)_k of every sample, v the output nodes.

    The targets of every node are one-hot rows: one where the class is, zero elsewhere.

    ```python
    >>> import jax.numpy as jnp
    >>> from neuralrace.losses import cross_entropy
    >>> cross_entropy({"y": jnp.zeros((1, 2))}, {"y": jnp.array([[1.0, 0.0]])}).round(4).tolist()
    [0.6931]

    ```
    """
    _check_pairs(outputs, targets)
    each = [
        jnp.sum(targets[v] * jax.nn.log_softmax(h, axis=1), axis=1)
        for v, h in sorted(outputs.items())
    ]
    return -functools.reduce(jnp.add, each)


def _check_pairs(outputs: Any, targets: Any) -> None:
    """Raise where outputs and targets are not matrices of equal shapes for the same nodes."""
    fix = "both are {node: array of shape (N, size)}"
    shapes = [
        {
            node: getattr(value, "shape", None)
            for node, value in by_name(what, given, fix).items()
            if getattr(getattr(value, "dtype", None), "kind", "") in ("f", "i", "u", "b", "V")
        }
        for what, given in (("outputs", outputs), ("targets", targets))
    ]
    fine = shapes[0] and all(shape is not None and len(shape) == 2 for shape in shapes[0].values())
    if not fine or len(shapes[0]) != len(outputs) or shapes[0] != shapes[1]:
        raise NeuralRaceError(
            "outputs and targets do not fit each other",
            got=f"outputs {shapes[0]}, targets {shapes[1]}",
            wanted="arrays of equal shapes (N, size) for the same nodes",
            fix=fix,
        )


LOSSES: dict[str, SampleLoss] = {"squared": squared, "cross_entropy": cross_entropy}


ELSEWHERE = {
    "squared": ("mse", "mseloss", "meansquarederror", "l2", "l2loss"),
    "cross_entropy": ("ce", "crossentropy", "crossentropyloss"),
}
"""What losses are called in other libraries, in small letters alone."""

DIFFERENCES = {
    "squared": "loss='squared' is ½‖y − ŷ‖² per sample; MSELoss over K outputs is 2/K of it",
    "cross_entropy": "loss='cross_entropy' is torch's CrossEntropyLoss, of logits",
}
"""How a loss here differs from that of PyTorch."""

FUNCTION = "a function takes two dictionaries {node: (N, size)} and returns (N,) losses"


def checked_loss(loss: str | SampleLoss) -> SampleLoss:
    """The loss that a name or a function stands for, or an error that lists the names."""
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]
    if not callable(loss) or _is_of_torch(loss):
        name = getattr(loss, "__name__", type(loss).__name__)
        said = loss if isinstance(loss, str) else str(name)
        plain = re.sub("[^a-z0-9]", "", said.lower())
        meant = next((DIFFERENCES[name] for name, some in ELSEWHERE.items() if plain in some), None)
        raise NeuralRaceError(
            f"unknown loss {said!r}",
            got=repr(loss) if isinstance(loss, str) else f"{said}, {loss!r:.80}",
            wanted=f"one of {listed(LOSSES)}, or a function of outputs and targets",
            fix=meant or FUNCTION,
        )
    return loss  # type: ignore[return-value]


def _is_of_torch(loss: object) -> bool:
    """Whether a loss is a function or module of PyTorch, which knows tensors alone, or a class."""
    home = str(getattr(loss, "__module__", "")).partition(".")[0]
    return isinstance(loss, type) or hasattr(loss, "state_dict") or home == "torch"


def called(loss: SampleLoss, outputs: Outputs, targets: Outputs) -> object:
    """What a loss gives for all samples, or an error where a user's function fails."""
    try:
        return loss(outputs, targets)
    except NeuralRaceError:
        raise
    except Exception as error:
        raise NeuralRaceError(
            f"the loss ({loss_name(loss)}) cannot be computed from outputs and targets",
            got=f"{type(error).__name__}: {error}"[:200],
            wanted=f"one of {listed(LOSSES)}, or a function of outputs and targets",
            fix=FUNCTION,
        ) from error


def loss_name(loss: SampleLoss) -> str:
    """What a loss is called in settings and messages."""
    named = (name for name, function in LOSSES.items() if function is loss)
    return next(named, None) or f"function {getattr(loss, '__qualname__', type(loss).__name__)}"


def check_sample_losses(loss: SampleLoss, found: object, samples: int) -> None:
    """Raise where a user's loss does not give one number per sample."""
    if getattr(found, "shape", None) != (samples,):
        raise NeuralRaceError(
            f"the loss ({loss_name(loss)}) must give one number per sample",
            got=f"shape {getattr(found, 'shape', type(found).__name__)} for {samples} samples",
            wanted=f"shape ({samples},), one loss for each",
            fix="sum over features (axis=1) and not over samples: the mean is taken here",
        )


# ---- classes ------------------------------------------------------------------------------------


def with_classes(arch: Architecture, data: Dataset) -> Dataset:
    """Targets for cross-entropy: one-hot rows as they are, class indices as one-hot rows.

    Class indices are a single column of whole numbers below the size of their node.
    """
    y: dict[str, Any] = {}
    for node, target in data.y.items():
        size = arch.sizes.get(node, target.shape[1])
        if target.shape[1] == 1 and size > 1:
            if is_concrete(target):
                _check_indices(node, np.asarray(target), size)
            y[node] = jax.nn.one_hot(jnp.asarray(target)[:, 0].astype(int), size)
            y[node] = np.asarray(y[node], target.dtype) if is_concrete(target) else y[node]
        else:
            if is_concrete(target) and not one_hot_rows(np.asarray(target)):
                raise _no_classes(node, f"rows such as {np.asarray(target)[0].tolist()!r:.60}")
            y[node] = target
    return replace(data, y=y)


def _check_indices(node: str, target: np.ndarray, size: int) -> None:
    low, high = target.min(), target.max()
    if (target != np.floor(target)).any() or low < 0 or high >= size:
        raise _no_classes(node, f"one column with values from {low:g} to {high:g}")


def _no_classes(node: str, got: str) -> NeuralRaceError:
    return NeuralRaceError(
        f"the targets of {node!r} are not classes",
        got=got,
        wanted="one-hot rows, or one column of class indices 0, 1, … below the node's size",
        fix="np.eye(classes)[indices] makes one-hot rows; for other targets use loss='squared'",
    )


def one_hot_rows(target: np.ndarray) -> bool:
    """Whether every row has a single one among zeros, in two columns or more."""
    if target.shape[1] < 2:
        return False
    return bool(((target == 0) | (target == 1)).all() and (target.sum(axis=1) == 1).all())


def class_middles(*datasets: Dataset) -> dict[str, float | None] | None:
    """What tells the classes of some datasets of one task apart; None where targets are no classes.

    By output node: None for one-hot rows, where the largest output decides, or the midpoint of two
    values of a single output. A test set may have samples of one class alone: both values are then
    known from the training targets. Values are compared in the precision of the last dataset.
    """
    found: dict[str, float | None] = {}
    if any(data.is_population for data in datasets):
        return None
    for node in datasets[0].y:
        targets = [np.asarray(data.y[node]) for data in datasets]
        if all(map(one_hot_rows, targets)):
            found[node] = None
            continue
        kind = targets[-1].dtype  # 0.1 in two precisions is one value
        values = np.unique(np.concatenate([np.unique(rows).astype(kind) for rows in targets]))
        if any(rows.shape[1] != 1 for rows in targets) or len(values) != 2:
            return None
        found[node] = float(values.mean())
    return found


@door
def accuracy(outputs: Outputs, data: Sampled) -> Float[Array, ""]:
    """The weighted share of samples whose class is right at every output node.

    With one-hot targets the largest output decides; with a single output that has two target
    values, the value that is nearer.

    ```python
    >>> import jax.numpy as jnp, neuralrace as nr
    >>> data = nr.Dataset({"x": [[1.0], [2.0]]}, {"y": [[1.0, 0.0], [0.0, 1.0]]})
    >>> float(nr.losses.accuracy({"y": jnp.array([[0.9, 0.2], [0.6, 0.5]])}, data))
    0.5

    ```
    """
    odd = [node for node in outputs if node not in data.y]
    require(
        not odd,
        "outputs has a node that data has no targets of",
        got=listed(odd),
        wanted=listed(data.y),
        fix="pass the outputs of the network for this dataset",
    )
    return share_right(outputs, data, {})


def share_right(
    outputs: Outputs, data: Dataset, middles: Mapping[str, float | None]
) -> Float[Array, ""]:
    """See `accuracy`. `middles` has the midpoints of classes that `data` may have one of alone."""
    right: Any = True
    for node, h in outputs.items():
        target = jnp.asarray(data.y[node], h.dtype)
        if h.shape[1] > 1:
            right &= jnp.argmax(h, axis=1) == jnp.argmax(target, axis=1)
        else:
            given = middles.get(node)
            between = (jnp.min(target) + jnp.max(target)) / 2 if given is None else given
            right &= (h[:, 0] > between) == (target[:, 0] > between)
    share = jnp.dot(jnp.asarray(data.probability), jnp.asarray(right, jnp.result_type(float)))
    return jnp.minimum(share, 1.0)  # rounding

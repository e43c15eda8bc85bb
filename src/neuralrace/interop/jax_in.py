"""Networks from Equinox and Flax, read without importing either."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias, cast

import jax
import numpy as np

from neuralrace.dataset import Dataset, Sampled
from neuralrace.door import door
from neuralrace.errors import require
from neuralrace.gdln import Network
from neuralrace.interop.layers import Layer, checked_layer, network_of_layers
from neuralrace.interop.runs import Moment, Trained, imported_run
from neuralrace.interop.structure import (
    Linear,
    Piece,
    Slope,
    check_same,
    hidden_slope,
    refused,
    slope_of,
)
from neuralrace.losses import SampleLoss
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike, Count, Finite, Positive

Model: TypeAlias = Callable[..., object]
"""A model of Equinox or Flax: something that can be called."""


@door
def from_equinox(
    models: Model | Sequence[Model],
    data: Sampled,
    times: ArrayLike | None = None,
    *,
    leak: Finite | None = None,
    loss: str | SampleLoss = "squared",
    learning_rate: Positive | None = None,
    batch_size: Count | None = None,
) -> tuple[Network, Trajectory]:
    """A network of Equinox and its run: one model, or several over training.

    **What can be read:** `eqx.nn.MLP`, `eqx.nn.Sequential`, and modules with `eqx.nn.Linear`
    layers that are applied in the order of their fields. Activation functions are recognised by
    what they compute. The model is run on the first 16 samples: an import that computes something
    else is refused. **Arguments** and what is returned are as in `nr.from_torch`.

    ```python
    >>> import equinox as eqx, jax, neuralrace as nr
    >>> data = nr.tasks.xor()
    >>> net, run = nr.from_equinox(eqx.nn.MLP(2, 1, 8, depth=1, key=jax.random.key(0)), data)
    >>> net.arch.hidden, net.leak, run.outputs["y"].shape
    (('h',), 0.0, (1, 4, 1))

    ```
    """
    trained = Trained("Equinox", loss, learning_rate, batch_size)
    return imported_models(models, data, times, leak, trained, jax.vmap)


@door
def from_flax(
    models: Model | Sequence[Model],
    data: Sampled,
    times: ArrayLike | None = None,
    *,
    leak: Finite | None = None,
    loss: str | SampleLoss = "squared",
    learning_rate: Positive | None = None,
    batch_size: Count | None = None,
) -> tuple[Network, Trajectory]:
    """A network of Flax's `nnx` and its run: one model, or several over training.

    **What can be read:** `nnx.Sequential`, and modules with `nnx.Linear` layers that are applied
    in the order in which they were assigned, with ReLU between them. The model is run on the first
    16 samples: an import that computes something else is refused. For several moments pass copies
    (`nnx.clone(model)`). **Arguments** and what is returned are as in `nr.from_torch`.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> class Linear:  # stands in for nnx.Linear(2, 1, rngs=…)
    ...     kernel, bias = np.ones((2, 1)), None
    ...     def __call__(self, x): return x @ self.kernel
    >>> net, run = nr.from_flax(Linear(), nr.tasks.xor())
    >>> run.outputs["y"].shape
    (1, 4, 1)

    ```
    """
    trained = Trained("Flax", loss, learning_rate, batch_size)
    return imported_models(models, data, times, leak, trained, lambda model: model)


def imported_models(
    models: Model | Sequence[Model],
    data: Dataset,
    times: ArrayLike | None,
    leak: float | None,
    trained: Trained,
    batched: Callable[[Model], Model],
) -> tuple[Network, Trajectory]:
    """A network and its run from models that can be called; `batched` calls one on all samples."""
    given = list(models) if isinstance(models, list | tuple) else [models]
    require(
        given and all(callable(model) for model in given),
        f"this is not a model of {trained.source}",
        got=f"{type(models).__name__} {models!r:.60}",
        wanted="a model that can be called, or a list of them",
        fix="pass the model itself, with its parameters",
    )
    require(
        len({id(model) for model in given}) >= len(given),
        "two checkpoints are the same model",
        got="one object more than once",
        wanted="a copy of the model at every moment",
        fix="models.append(nnx.clone(model)) in Flax; in Equinox every update is a new model",
    )
    read = []
    for k, model in enumerate(given, 1):
        net, weights = network_of_model(cast(Model, model), leak)
        with jax.enable_x64(next(iter(weights.values())).dtype == np.float64):
            check_same(net, weights, data, batched(cast(Model, model)))
        read.append(Moment(f"checkpoint {k}", net, weights))
    return imported_run(read, data, times, trained)


def network_of_model(model: Model, leak: float | None) -> tuple[Network, dict[str, np.ndarray]]:
    found = list(_walk(model, ""))
    tied = [id(f.weight) for f in found if isinstance(f, _Shared)]
    layers = [f.layer for f in found if isinstance(f, _Shared)]
    require(
        len(set(tied)) >= len(tied),
        "the model has tied weights",
        got="one matrix in two layers",
        wanted="weights of their own for every layer",
        fix="untie them, which is what JAX does as soon as they learn; or give the graph as "
        "nr.Architecture(…, ties=…), and the weights over time to nr.Trajectory.from_weights",
    )
    pieces: list[Piece] = [Linear(f.layer.name) if isinstance(f, _Shared) else f for f in found]
    visible = type(model).__module__.startswith(("equinox.", "flax."))
    return network_of_layers(layers, hidden_slope(pieces, leak, visible))


class _Shared:
    """A layer, and the array it was read from, by which tied weights are known."""

    def __init__(self, layer: Layer, weight: object) -> None:
        self.layer, self.weight = layer, weight


def _walk(part: Any, name: str) -> Iterator[_Shared | Slope]:
    """The layers and activations of a model in the order in which they are stored."""
    kind = type(part).__name__
    label = name or "model"
    if kind == "Linear" and (hasattr(part, "weight") or hasattr(part, "kernel")):
        flax = hasattr(part, "kernel")
        raw = getattr(part, "kernel" if flax else "weight")
        weight, bias = _numbers(raw), _numbers(getattr(part, "bias", None))
        assert weight is not None
        yield _Shared(checked_layer(f"layer {label!r}", weight.T if flax else weight, bias), raw)
    elif kind == "MLP" and hasattr(part, "layers") and hasattr(part, "activation"):
        *hidden, last = tuple(part.layers)
        for k, layer in enumerate(hidden):
            yield from _walk(layer, f"{name}.layers.{k}".removeprefix("."))
            yield slope_of(f"activation {k}", part.activation)
        yield from _walk(last, f"{name}.layers.{len(hidden)}".removeprefix("."))
        final = slope_of("final_activation", getattr(part, "final_activation", lambda x: x))
        if final.below != 1:
            yield final
    elif kind in ("Sequential", "List", "list", "tuple"):
        parts = part if kind in ("list", "tuple", "List") else part.layers
        for k, each in enumerate(parts):
            yield from _walk(each, f"{name}.{k}".removeprefix("."))
    elif kind in ("Identity", "NoneType"):
        return
    elif kind == "Dropout":
        quiet = getattr(part, "deterministic", False) or getattr(part, "inference", False)
        rate = getattr(part, "rate", getattr(part, "p", 0.5))
        if not quiet and rate:
            raise refused(label, kind, "is switched on")
    elif kind == "Lambda" and hasattr(part, "fn"):
        yield slope_of(label, part.fn)
    elif (children := _children(part)) is not None:
        for child, each in children.items():
            yield from _walk(each, f"{name}.{child}".removeprefix("."))
    elif callable(part):
        yield slope_of(label, part)
    else:
        raise refused(label, kind)


def _children(part: object) -> Mapping[str, object] | None:
    """The parts of a module of the user's own; None where it is a function.

    Settings such as numbers and names, and streams of random numbers, are left out.
    """
    if is_dataclass(part) and not isinstance(part, type):
        named = {field.name: getattr(part, field.name, None) for field in fields(part)}
    elif any(base.__module__.startswith("flax.") for base in type(part).__mro__):
        named = {k: v for k, v in vars(part).items() if not k.startswith("_")}
    else:
        return None
    if type(part).__module__.startswith(("flax.", "equinox.nn")):
        raise refused(type(part).__name__, type(part).__name__)
    settings = (int, float, str, bool, type(None))
    return {
        name: value
        for name, value in named.items()
        if not isinstance(value, settings) and "Rng" not in type(value).__name__
    }


def _numbers(value: object) -> np.ndarray | None:
    """The array of a parameter, however it is wrapped; None where there is none."""
    inner = getattr(value, "get_value", None)
    plain = inner() if callable(inner) else getattr(value, "value", value)
    return None if plain is None else np.asarray(plain)

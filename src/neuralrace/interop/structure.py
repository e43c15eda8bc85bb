"""What a model of another library is made of: its layers by name, and what rectifies them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError, require
from neuralrace.gdln import Network
from neuralrace.interop.cells import has_steps, sequences_in, steps_read
from neuralrace.interop.runs import outputs_of
from neuralrace.tolerances import EQUAL, TINY

PROBES = np.array([-1e3, -7.0, -1.0, -1e-3, 0.0, 1e-3, 1.0, 7.0, 1e3], np.float32)
"""Where an activation function is looked at to find its slope below zero."""

ADVICE = {
    "BatchNorm": "for a trained model in eval mode, fold it into the Linear layer before it",
    "LayerNorm": "train without it: its scale depends on the sample, which no gate expresses",
    "Conv": "use Linear layers on flattened inputs, which compute the same but learn "
    "otherwise; a linear one over positions in a row is nr.Architecture.convolution(…)",
    "Pool": "use Linear layers on flattened inputs",
    "Attention": "only feed-forward chains of Linear layers can be represented",
    "Transformer": "only feed-forward chains of Linear layers can be represented",
    "Embedding": "pass one-hot inputs to a Linear layer",
    "RNN": "one nn.RNN(…, nonlinearity='relu') of one layer in one direction, then one nn.Linear; "
    "the data from nr.tasks.sequences(x, y)",
    "LSTM": "its gates multiply, as no piecewise linear network does; nn.RNN with ReLU is read",
    "GRU": "its gates multiply, as no piecewise linear network does; nn.RNN with ReLU is read",
    "Softmax": "leave it out: import the logits, with loss='cross_entropy'",
    "Dropout": "call model.eval() first: the import then has the weights without dropout",
    "PReLU": "use LeakyReLU: a slope that is trained cannot be represented",
}
"""What would work in place of a layer that cannot be represented, by a part of its name."""

OTHERWISE = (
    "Linear, ReLU, LeakyReLU, RNN with ReLU, Identity, Flatten and Dropout in eval mode can be "
    "represented"
)


@dataclass(frozen=True)
class Linear:
    """A fully connected layer, by its name in the model."""

    name: str


@dataclass(frozen=True)
class Slope:
    """A rectifier: z for z > 0, and `below` · z elsewhere."""

    name: str
    below: float


@dataclass(frozen=True)
class Recurrence:
    """A recurrent layer with ReLU, by its name in the model."""

    name: str


Piece = Linear | Slope | Recurrence


def refused(name: str, kind: str, why: str = "cannot be represented") -> NeuralRaceError:
    """The error for a layer of a kind that has no place here."""
    found = next((text for part, text in ADVICE.items() if part.lower() in kind.lower()), None)
    return NeuralRaceError(
        f"layer {name!r} {why}",
        got=kind,
        wanted="fully connected layers, with the same ReLU or LeakyReLU between all of them",
        fix=found or OTHERWISE,
    )


def hidden_slope(pieces: Sequence[Piece], leak: float | None, visible: bool) -> float:
    """The one slope below zero of all hidden layers; 1 where nothing is rectified.

    `visible` says that the pieces are applied in this order. Otherwise the model's own code says
    where it rectifies: the slope is that of its activations, or `leak`, or that of ReLU.
    """
    places = [k for k, piece in enumerate(pieces) if isinstance(piece, Linear)]
    require(
        places,
        "the model has no fully connected layer",
        got="no Linear layer",
        wanted="at least one",
        fix=OTHERWISE,
    )
    anywhere = {piece.name: piece.below for piece in pieces if isinstance(piece, Slope)}
    slopes = _slopes_between(pieces, places) if visible else anywhere
    seen = set(slopes.values())
    if len(seen) > 1 or (leak is not None and seen and leak not in seen):
        raise NeuralRaceError(
            "the hidden layers do not all have the same slope below zero",
            got=", ".join(f"{name!r}: {slope:g}" for name, slope in slopes.items())
            + ("" if leak is None else f"; leak={leak:g}"),
            wanted="one slope for all (0 for ReLU, 1 for none)",
            fix="use the same activation after every layer but the last"
            if len(seen) > 1
            else "leave out leak: the slope is read from the model",
        )
    if seen:
        return seen.pop()
    return 1.0 if len(places) == 1 else leak or 0.0


def _slopes_between(pieces: Sequence[Piece], places: Sequence[int]) -> dict[str, float]:
    """The slope after every fully connected layer but the last; 1 where there is no activation."""
    for k, piece in enumerate(pieces):
        if isinstance(piece, Slope) and not places[0] < k < places[-1]:
            where = "before the first" if k < places[0] else "after the last"
            raise refused(
                piece.name, f"an activation {where} Linear layer", "has no place in the network"
            )
    slopes: dict[str, float] = {}
    for low, high in pairwise(places):
        between = [p for p in pieces[low + 1 : high] if isinstance(p, Slope)]
        if len(between) > 1:
            raise refused(
                between[1].name, "a second activation in a row", "follows another activation"
            )
        slopes[pieces[low].name] = between[0].below if between else 1.0
    return slopes


def slope_of(name: str, function: Callable[[np.ndarray], object]) -> Slope:
    """The slope of an activation function below zero, found by calling it."""
    kind = str(getattr(function, "__name__", type(function).__name__))
    try:
        found = np.asarray(function(PROBES), np.float32)
        below = float(found[2] / PROBES[2])
        same = np.allclose(found, np.where(PROBES > 0, PROBES, below * PROBES), rtol=EQUAL)
    except Exception as error:
        raise refused(name, kind, "cannot be called on numbers") from error
    if not same:
        raise refused(name, kind)
    exact = getattr(function, "keywords", {}).get("negative_slope")
    if isinstance(exact, float) and np.float32(exact) == np.float32(below):
        return Slope(name, exact)
    shortest = float(str(np.float32(below)))  # that reads as this number: 0.01, not 0.0099999998
    return Slope(name, shortest + 0.0)  # not −0


def check_same(
    net: Network,
    weights: dict[str, np.ndarray],
    data: Dataset,
    run: Callable[[np.ndarray], object],
    *,
    batch_first: bool = True,
) -> None:
    """Run the model on a few samples: raise where the imported network computes something else.

    The two may differ by √ε of the largest output, ε the rounding of the weights.
    """
    few = data.take(slice(0, 16))
    dtype = np.result_type(*weights.values())
    mine = np.stack(list(outputs_of(net, weights, few).values()), axis=1)
    read = steps_read(few) if has_steps(few) else []
    if read:
        x = sequences_in(few)
    else:
        (x,) = (np.asarray(x) for node, x in few.x.items() if node in net.arch.sizes)
    turned = lambda a: a.swapaxes(0, 1) if read and a.ndim == 3 else a
    x = x if batch_first else turned(x)
    try:
        theirs = np.asarray(run(np.asarray(x, dtype)))
    except Exception as error:
        raise NeuralRaceError(
            "the model cannot be run on the inputs of the data",
            got=f"{type(error).__name__}: {error}"[:200],
            wanted=f"outputs for inputs of shape {x.shape}",
            fix="pass the inputs as they enter the first layer, flattened",
        ) from error
    theirs = theirs if batch_first else turned(theirs)
    every = theirs.ndim == 3 and bool(read)
    theirs = theirs[:, [t for t in read if t < theirs.shape[1]]] if every else theirs[:, None]
    size = max(float(np.abs(mine).max()), TINY)
    apart = float(np.abs(mine - theirs).max()) if mine.shape == theirs.shape else np.inf
    if not apart <= np.sqrt(np.finfo(dtype).eps) * size:
        raise NeuralRaceError(
            "the imported network does not compute what the model computes",
            got=f"outputs of shape {mine.shape} and {theirs.shape}"
            + (f" that differ by up to {apart:.3g}" if np.isfinite(apart) else ""),
            wanted="the same outputs on the first samples of the data",
            fix="the model's own code does more than its layers in order, with ReLU between them: "
            "pass leak=… for another slope, or write it as a sequence of layers",
        )

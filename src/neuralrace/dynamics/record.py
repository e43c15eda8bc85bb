"""What to record of a run: built-in values, functions of the weights, loss on other data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, final

import jax
from jaxtyping import PyTree

from neuralrace.dataset import Dataset, require_samples
from neuralrace.dynamics.functions import ByCode
from neuralrace.errors import NeuralRaceError, listed
from neuralrace.gdln import Network
from neuralrace.losses import SampleLoss, share_right, squared
from neuralrace.trajectory import check_name
from neuralrace.types import Weights

RecordFunction: TypeAlias = Callable[..., object]
"""A function of the weights, or of the weights and the data, that returns arrays."""

Record: TypeAlias = Mapping[str, bool | RecordFunction]
"""What to record: `{"outputs": True, "weights": True, "activity": True, name: f}`.

A function takes the weights, or the weights and the data.
"""

RESERVED = ("outputs", "weights", "activity", "loss", "time", "steps", "final")
"""What a trajectory names by itself, so that nothing else can."""


@final
@dataclass(frozen=True)
class Function:
    """A recording function, and whether it takes the data besides the weights."""

    call: ByCode[RecordFunction]
    takes_data: bool


Middles: TypeAlias = tuple[tuple[str, float | None], ...]
"""What tells classes apart by output node, as a value that can be hashed."""


@final
@dataclass(frozen=True)
class Recorder:
    """What to record of the weights, as a hashable value that can be static under `jit`.

    `evaluated` names the further datasets, and says of each what tells its classes apart
    (see `class_middles`); None where its targets are no classes.
    """

    net: Network
    what: tuple[tuple[str, Function | None], ...] = ()
    evaluated: tuple[tuple[str, Middles | None], ...] = ()
    measure: SampleLoss = squared

    def __call__(
        self, weights: Weights, data: Dataset | None, evaluations: Mapping[str, Dataset]
    ) -> dict[str, PyTree]:
        values: dict[str, PyTree] = {}
        for name, function in self.what:
            if function is not None:
                given = (weights, data) if function.takes_data else (weights,)
                values[name] = function.call(*given)
            elif name == "weights":
                values[name] = weights
            elif name == "outputs":
                assert data is not None
                values[name] = self.net(weights, data)
            else:
                values[name] = self.net.activity(weights, data)  # type: ignore[attr-defined]
        for name, middles in self.evaluated:
            other = evaluations[name]
            values[name] = {"loss": self.net.loss(weights, other, self.measure)}
            if middles is not None:
                outputs = self.net(weights, other)
                values[name]["accuracy"] = share_right(outputs, other, dict(middles))
        return values


def make_recorder(
    net: Network,
    record: Record | None,
    weights: Weights,
    data: Dataset,
    evaluations: Mapping[str, Dataset] | None = None,
    classes: Mapping[str, Middles | None] | None = None,
    measure: SampleLoss = squared,
) -> Recorder:
    """Check a record and try it once, without computing anything."""
    evaluations, classes = evaluations or {}, classes or {}
    built_in = ("outputs", "weights", *(["activity"] if hasattr(net, "activity") else []))
    what: list[tuple[str, Function | None]] = []
    for name, value in (record or {}).items():
        if callable(value):
            check_record_name(name, {}, "a recording function")
            what.append((name, Function(ByCode(value), _takes_data(value))))
        elif name not in built_in:
            raise NeuralRaceError(
                f"cannot record {name!r}",
                got=f"{name!r}: {value!r}",
                wanted=f"{listed(built_in)}: True, or a name with a function of the weights",
                fix="for example record={'outputs': True, 'norm': lambda w: jnp.sum(w['W1']**2)}",
            )
        elif value:
            if name != "weights":
                require_samples(data, f"data of which {name} are recorded")
            what.append((name, None))
    for name in evaluations:
        check_record_name(name, record or {}, "an evaluation set")
    tested = tuple((name, classes[name]) for name in evaluations)
    recorder = Recorder(net, tuple(what), tested, measure)
    names = [name for name, function in what if function is not None]
    if not names:
        return recorder
    try:  # a new function each time: JAX remembers the shapes of one that it has seen
        first, again = (
            jax.eval_shape(lambda *given: recorder(*given), weights, data, evaluations)
            for _ in range(2)
        )
    except NeuralRaceError:
        raise
    except Exception as error:
        message = str(error).partition("\n")[0]
        raise _unrecordable(names, f"{type(error).__name__}: {message}") from error
    if first != again:
        raise _unrecordable(names, "shapes that differ from call to call")
    if not _is_named(first):
        raise _unrecordable(names, "a value that is neither an array nor a dictionary of arrays")
    return recorder


def check_record_name(name: str, taken: Mapping[str, object], what: str) -> None:
    """Raise where a value cannot have this name, in a trajectory or in a file."""
    if name in RESERVED or name in taken or (isinstance(name, str) and "." in name):
        raise NeuralRaceError(
            f"{what} cannot be called {name!r}",
            got=repr(name),
            wanted=f"a name without dots, other than {', '.join((*RESERVED, *taken))}",
            fix="choose another name",
        )
    check_name(name)


def _takes_data(function: RecordFunction) -> bool:
    """Whether a recording function wants the data: whether it needs two arguments."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions do not say
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.kind in positional and p.default is p.empty]
    return len(needed) == 2


def _unrecordable(names: list[str], got: str) -> NeuralRaceError:
    return NeuralRaceError(
        f"the recording functions {listed(names)} cannot be compiled",
        got=got,
        wanted="functions f(weights) or f(weights, data) made of jax.numpy, returning arrays of "
        "fixed shapes, or dictionaries of them with names without dots",
        fix="use jnp.where instead of indexing with a mask, jnp instead of np, and no state",
    )


def _is_named(value: PyTree) -> bool:
    """Whether this is an array, or nested dictionaries of arrays that a file can name."""
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and "." not in k and _is_named(v) for k, v in value.items())
    return hasattr(value, "shape")

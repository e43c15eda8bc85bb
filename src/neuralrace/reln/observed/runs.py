"""What runs must have before gates are found in them: weights, steps, network and data."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from neuralrace.checks import real_array
from neuralrace.dataset import Dataset, zero_loss
from neuralrace.dynamics import train
from neuralrace.errors import NeuralRaceError, check_kind, listed, whole_number
from neuralrace.gdln import GDLN, Network
from neuralrace.losses import LOSSES
from neuralrace.relu import ReLUNetwork
from neuralrace.trajectory import Trajectory, check_single
from neuralrace.types import ArrayLike

RUNS = "pass what nr.train or nr.train_ensemble returned"
"""Where runs come from."""


ONE_MOMENT = "a single recorded moment"
"""The reason why nothing can follow a run of which there is one moment alone."""


def network_of(run: Trajectory) -> Network:
    """The network of a run, or an error where it is not known."""
    if run.net is None:
        raise NeuralRaceError(
            "the network of the run is not known",
            got="a trajectory without a network",
            wanted="what nr.train or nr.train_ensemble returned",
            fix="pass net= to the Trajectory, if you made it yourself",
        )
    return run.net


def weights_of(run: Trajectory) -> dict[str, np.ndarray]:
    """The weights of a run over time, or an error where they were not recorded."""
    if "weights" not in run.values:
        raise NeuralRaceError(
            "the run did not record its weights",
            got=f"records of {listed(run.values)}",
            wanted="'weights'",
            fix="train with record={'weights': True}; record_every or record_at saves memory",
        )
    return run.values["weights"]


def relu_of(run: Trajectory) -> ReLUNetwork:
    """The ReLU network of a run, or an error where it is another network."""
    check_kind("the network of the run", run.net, ReLUNetwork, "train a nr.ReLUNetwork")
    assert isinstance(run.net, ReLUNetwork)
    return run.net


def recorded_weights(run: Trajectory) -> dict[str, Float[np.ndarray, "T target source"]]:
    """The weights over time of a single run of a ReLU network, in float64, or an error."""
    return {e: np.asarray(w, np.float64) for e, w in single_weights(run).items()}


def single_weights(run: Trajectory) -> dict[str, np.ndarray]:
    """The weights over time of a single run of a ReLU network as recorded, or an error."""
    relu_of(run)
    check_single("run", run)
    return weights_of(run)


def first_weights(run: Trajectory) -> dict[str, np.ndarray]:
    """The weights of a run at its first recorded moment."""
    return {e: np.asarray(w[0]) for e, w in weights_of(run).items()}


def leak_of(run: Trajectory) -> float:
    """The slope of the neurons of a run that are off; 0 where it is not a ReLU network."""
    return run.net.leak if isinstance(run.net, ReLUNetwork) else 0.0


def law_of(run: Trajectory) -> dict[str, Any]:
    """The weight decay and the rates of edges that a run was trained with, as `nr.train` takes."""
    return {
        name: run.settings[name] for name in ("weight_decay", "rates") if run.settings.get(name)
    }


def not_descent(run: Trajectory, *, law: bool = False) -> str | None:
    """What keeps another network from taking the steps of a run; None where nothing does.

    Other optimizers, schedules, mini-batches, losses other than the squared one, and runs that were
    trained elsewhere in a way that is not known. So do weight decay and rates of edges, unless the
    other network has the same `law`.
    """
    settings = run.settings
    rate = settings.get("learning_rate")
    return (
        f"a run by {settings.get('method', 'an unknown method')}"
        if settings.get("method") != "gradient descent"
        else f"a run with {settings['optimizer']}"
        if settings.get("optimizer", "descent") != "descent"
        else f"batches of {settings['batch_size']} samples"
        if "batch_size" in settings
        else f"the loss {settings['loss']!r}"
        if settings.get("loss", "squared") != "squared"
        else f"learning rate {rate}"
        if not isinstance(rate, float)
        else " and ".join(f"{name}={value}" for name, value in law_of(run).items())
        if law_of(run) and not law
        else ONE_MOMENT
        if len(run.time) < 2
        else None
    )


def descent_of(run: Trajectory, *, law: bool = False) -> tuple[float, np.ndarray]:
    """The learning rate of a run by gradient descent, and the step of every recorded moment.

    Raises where another network could not take the same steps; see `not_descent`.
    """
    rate, steps, reason = run.settings.get("learning_rate"), run.steps, not_descent(run, law=law)
    if reason is not None:
        raise NeuralRaceError(
            "a gated network cannot take the steps of this run",
            got=reason,
            wanted="gradient descent on all samples with one learning rate and the squared loss",
            fix="keep two or more recorded moments, the first of the run among them"
            if reason == ONE_MOMENT
            else "train the network with nr.train(…, learning_rate=…, record={'weights': True})",
        )
    rate = float(rate)  # type: ignore[arg-type]
    return rate, np.rint(run.time / rate).astype(int) if steps is None else np.asarray(steps)


def single_runs(runs: Trajectory | Iterable[Trajectory]) -> tuple[Trajectory, ...]:
    """Runs of one network, one by one, each with its weights recorded."""
    singles: list[Trajectory] = []
    for run in [runs] if isinstance(runs, Trajectory) else runs:
        if set(run.axes) - {"seed"}:
            raise NeuralRaceError(
                "the runs must be of one network on one dataset",
                got=f"an ensemble over {listed(run.axes)}",
                wanted="single runs, or an ensemble over seeds alone",
                fix="pick one place on the other axes: [run.isel(seed=i, …) for i in …]",
            )
        seeds = len(run.axes["seed"]) if run.axes else 0
        singles += [run.isel(seed=i) for i in range(seeds)] if run.axes else [run]
    if not singles or any(run.net != singles[0].net for run in singles):
        raise NeuralRaceError(
            "the runs must be of one network",
            got=f"{len(singles)} runs, of {len({run.net for run in singles})} networks",
            wanted="one or more runs of the same network",
            fix="call discover once for every network",
        )
    if any(not np.array_equal(run.time, singles[0].time) for run in singles):
        raise NeuralRaceError(
            "the runs must be recorded at the same times",
            got=f"{sorted({len(run.time) for run in singles})} recorded moments",
            wanted="one learning rate, one number of steps and one record_every",
            fix="train them with the same settings; nr.train_ensemble does",
        )
    return tuple(singles)


def gates_over_time(
    run: Trajectory, data: Dataset, gates: Mapping[str, ArrayLike]
) -> dict[str, Float[np.ndarray, "T N size"]]:
    """Gates of every neuron at every recorded moment, fractions or not, or an error."""
    arch = network_of(run).arch
    fix = "for example gates=nr.reln.sliding_over(run, data)"
    if set(gates) != set(arch.hidden):
        raise NeuralRaceError(
            "gates must be given for every hidden node and for nothing else",
            got=f"gates for {listed(gates)}",
            wanted=f"gates for {listed(arch.hidden)}",
            fix=fix,
        )
    checked = {}
    for node, given in gates.items():
        form = (len(run.time), data.n_samples, arch.sizes[node])
        array = real_array(f"gates of {node!r}", given, wanted=f"shape {form}", fix=fix)
        if array.shape != form:
            raise NeuralRaceError(
                f"the gates of {node!r} do not fit the run",
                got=f"shape {array.shape}",
                wanted=f"shape {form}: recorded moments, samples, neurons",
                fix=fix,
            )
        checked[node] = array
    return checked


def followed_by(run: Trajectory, gated: Dataset, **options: Any) -> Trajectory:
    """A GDLN with these gates, trained from the first recorded weights of a run as the run was.

    Its steps and times are those of the run, which need not begin at step 0. `options` go to
    `train`, which counts steps from the first recorded moment.
    """
    rate, stops = descent_of(run, law=True)
    weights = {e: jnp.asarray(w) for e, w in first_weights(run).items()}
    begin = int(stops[0])
    steps = int(stops[-1]) - begin
    settings: dict[str, Any] = {"learning_rate": rate, "steps": steps, **law_of(run)}
    if "record_every" not in options:
        last = whole_number(
            "steps", options.get("steps", settings["steps"]), least=1, fix="for example steps=100"
        )
        settings["record_at"] = np.append(stops[stops - begin < last] - begin, last)
    found = train(GDLN(network_of(run).arch), weights, gated, **(settings | options))
    if not begin:
        return found
    assert found.steps is not None  # training counts steps
    return dataclasses.replace(found, time=found.time + rate * begin, steps=found.steps + begin)


def check_trained_on(run: Trajectory, data: Dataset) -> None:
    """Raise where a single run cannot have been trained on `data`.

    A run knows the digest of its data. Where the digest differs, the samples may still be the same
    in another order. Then records of single samples must have the same number of them, and the
    weights at the first and the last recorded moment must have the loss that was recorded, to √ε
    of the largest of these losses and of ½⟨‖y‖²⟩, ε the coarsest rounding of its numbers.
    """
    if run.settings.get("data") in (data.digest(), data.gated({}).digest()):
        return
    fix = "pass the dataset of nr.train, with its sample weights; its order does not matter"
    for what in ("outputs", "activity"):
        for node, value in run.values.get(what, {}).items():
            if value.shape[1] != data.n_samples:
                raise NeuralRaceError(
                    "data is not what the run was trained on",
                    got=f"{data.n_samples} samples",
                    wanted=f"{value.shape[1]}, as in the recorded {what} of {node!r}",
                    fix=fix,
                )
    net, told = network_of(run), run.settings.get("loss", "squared")
    if told not in LOSSES:
        raise NeuralRaceError(
            "it cannot be checked that data is what the run was trained on",
            got=f"other data than the run's, and the loss {told!r}",
            wanted="the dataset of nr.train itself",
            fix=fix,
        )
    recorded = [run.loss, *weights_of(run).values()]
    rounding = max(float(jnp.finfo(array.dtype).eps) for array in recorded) ** 0.5
    silent = zero_loss(data)
    broken = np.flatnonzero(~np.isfinite(run.loss))
    if len(broken):
        raise NeuralRaceError(
            "the run diverged",
            got=f"a loss of {run.loss[broken[0]]:g} at t = {run.time[broken[0]]:g}",
            wanted="a run whose loss is finite at every recorded moment",
            fix="train with a smaller learning rate, or cut the run before it diverges",
        )
    for k in (0, -1):
        with jax.enable_x64(True):
            weights = {e: jnp.asarray(w[k], jnp.float64) for e, w in weights_of(run).items()}
            here = float(net.loss(weights, data, LOSSES[told]))
        there = float(run.loss[k])
        if not abs(here - there) <= rounding * max(float(run.loss[0]), there, silent):
            raise NeuralRaceError(
                "data is not what the run was trained on",
                got=f"a loss of {here:.6g} on it with the weights at t = {run.time[k]:g}",
                wanted=f"{there:.6g}, the loss that the run recorded there "
                f"({abs(here - there):.2g} apart)",
                fix=fix,
            )

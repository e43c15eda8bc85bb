"""One small valid call of every public function, constructor and method."""

from __future__ import annotations

import functools
import importlib.util
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np

import neuralrace as nr
from neuralrace import analysis, linear, losses, reln, tasks


@dataclass(frozen=True)
class Call:
    """A function with valid arguments."""

    name: str
    function: Callable[..., Any]
    positional: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)


RESULTS = {
    *("reln.AlignedPatterns", "reln.Consistency", "reln.Event", "reln.NeuronTypes"),
    *("reln.SlidingGates", "reln.Symmetries", "reln.TypeStage", "reln.TypeStages"),
    *(
        "Contest",
        "contests.Entrant",
        "contests.Joint",
        "contests.Lead",
        "contests.PatternRanking",
        "PhaseDiagram",
    ),
    *("StoppedError", "NeuralRaceError", "Network", "Race", "PathStatistics"),
    *("analysis.Modes", "analysis.Scaling"),
    *("linear.Balance", "linear.Escape", "linear.Saddle", "linear.Saddles", "linear.Plateau"),
    *("linear.Visit", "reln.Activity", "reln.Certificate", "reln.Clusters", "reln.Discovery"),
    *("reln.Horizons", "reln.Patterns", "reln.Sampling", "reln.Shares", "reln.Stages"),
    "reln.Switches",
    *("explanation.Explanation", "explanation.Row"),
    *("sweeps.Definition", "sweeps.Failure", "sweeps.Status", "Sweep"),
    *("study.Answer", "study.Result", "study.Rewritten", "study.StudyError", "study.SweepResult"),
    *("tasks.World", "tasks.Images", "study.Problem"),
}
"""Classes that functions return and users read; their methods are called, not their constructors.

Errors and the base class of networks are among them.
"""


def gatings(delta: float) -> dict[str, Any]:
    """Two candidates for the two calls that compare gatings."""
    data = tasks.extended_xor(delta)
    return {"linear": tasks.linear_pathways(data, 4), "xor": tasks.xor_pathways(data, 4)}


class Frame(dict):
    """The part of a table that `Dataset.from_frame` reads."""

    columns = property(lambda self: list(self))

    def __len__(self) -> int:
        return 2


@functools.cache
def things() -> SimpleNamespace:
    """Small networks, data and results that the calls share."""
    key = jax.random.key(0)
    arch = nr.Architecture.chain(2, 2, 2)
    net, relu = nr.GDLN(arch), nr.ReLUNetwork((2, 3, 2))
    data = nr.Dataset(
        {"x": np.eye(2)}, {"y": np.diag([3.0, 1.0])}, labels={"context": np.array([1, 2])}
    )
    weights = linear.balanced_weights(net, 0.0, scale=0.1, aligned_to=data)
    record: Any = {"weights": True, "outputs": True}
    run = nr.train(net, weights, data, learning_rate=0.1, steps=2, record=record)
    relu_weights = relu.init(key)
    relu_run = nr.train(relu, relu_weights, data, learning_rate=0.1, steps=2, record=record)
    folder = Path(tempfile.mkdtemp(prefix="calls"))
    race = nr.reduce(arch, data)
    routes, others = tasks.routing(M=2, K=1)
    routed, routes = tasks.routing_pathways(routes, hidden=2)
    assert others is not None
    form = race.closed_form(0.1)
    return SimpleNamespace(
        key=key,
        arch=arch,
        net=net,
        relu=relu,
        data=data,
        weights=weights,
        run=run,
        relu_weights=relu_weights,
        relu_run=relu_run,
        folder=folder,
        file=run.save(folder / "run.nc"),
        race=race,
        solution=race.solve(times=[0.0, 1.0, 2.0], start=0.1),
        form=form,
        mode=next(iter(form.modes.values())),
        exact=nr.linear.lambda_balanced(net, weights, data, times=[0.0, 1.0, 2.0]),
        statistics=nr.path_statistics(arch, data),
        contest=nr.contest(gatings(0.5), scale=1e-2),
        phases=nr.phase_diagram(gatings, "delta", [0.5, 1.0], scale=1e-2, precision=0.1),
        routed=nr.GDLN(routed),
        routes=routes,
        others=tasks.routing_pathways(others, hidden=2)[1],
        saddles=linear.saddles(net, data),
        activity=reln.activity(relu_run, data),
        found=reln.discover(relu_run, data, pathways=2),
        horizons=reln.horizons(relu_run, data),
        explained=nr.explain(
            relu_run,
            {"mine": nr.pathways(data, {"a": None}, hidden=2)},
            data=data,
            seeds=1,
            train=False,
            rows=["gatings"],
        ),
        contextual=tasks.contextual(2, 2),
        classes=tasks.contextual_classification(2),
    )


@functools.cache
def valid_calls() -> tuple[Call, ...]:
    """Every call, by its public name."""
    every = (*_foundation(), *_runs(), *_theory(), *_contests(), *_analysis(), *_linear())
    return (
        *every,
        *_reln(),
        *_explanation(),
        *_tasks(),
        *_losses(),
        *_interop(),
        *_sweeps(),
        *_study(),
    )


def _call(name: str, function: Callable[..., Any], *positional: Any, **named: Any) -> Call:
    return Call(name, function, positional, named)


def _foundation() -> Iterator[Call]:
    t = things()
    yield _call("Architecture", nr.Architecture, {"x": 1, "y": 1}, {"W": ("x", "y")})
    yield _call("Architecture.chain", nr.Architecture.chain, 2, 2, 1)
    yield _call("Architecture.layered", nr.Architecture.layered, {"x": 1}, {"y": 1})
    yield _call(
        "Architecture.parallel",
        nr.Architecture.parallel,
        {"x": 1},
        {"a": 1},
        {"y": 1},
        reads={"a": ["x"]},
        writes={"a": ["y"]},
    )
    yield _call(
        "Architecture.routing", nr.Architecture.routing, 2, inputs=1, hidden=1, outputs=1, P=1
    )
    yield _call("Architecture.path_count", t.arch.path_count, edge="W1", source="x", target="y")
    yield _call("Architecture.paths", t.arch.paths, 10)
    yield _call("Architecture.from_networkx", nr.Architecture.from_networkx, t.arch.to_networkx())
    yield _call("Architecture.draw", t.arch.draw, t.data)
    yield _call("Path", nr.Path, ("W",), "x", "y")
    yield _call("Path.before", nr.Path(("W",), "x", "y").before, "W")
    yield _call("Path.after", nr.Path(("W",), "x", "y").after, "W")
    yield _call(
        "Dataset",
        nr.Dataset,
        {"x": np.eye(2)},
        {"y": np.ones((2, 1))},
        gates={"h": np.array([1.0, 0.0])},
        sample_weight=np.array([0.5, 0.5]),
        labels={"item": np.array([1, 2])},
    )
    frame = Frame(a=np.array([1.0, 2.0]), b=np.array([1.0, 0.0]))
    yield _call(
        "Dataset.from_frame", nr.Dataset.from_frame, frame, ["a"], ["b"], ["a"], sample_weight="b"
    )
    yield _call("Dataset.gated", t.data.gated, {"h": np.array([1.0, 0.0])})
    yield _call("Dataset.mask", t.data.mask, context=1)
    yield _call("Dataset.take", t.data.take, np.array([0, 1]))
    yield _call("Dataset.sorted_by", t.data.sorted_by, "context")
    yield _call("Dataset.one_per_sample", t.data.one_per_sample, "sample")
    yield _call(
        "pathways",
        nr.pathways,
        t.data,
        {"a": None, "b": np.array([1.0, 0.0])},
        hidden={"a": 2, "b": 2},
        inputs={"a": ["x"]},
        outputs={"b": ["y"]},
    )
    yield _call("GDLN", nr.GDLN, t.arch)
    yield _call("GDLN.__call__", t.net, t.weights, t.data)
    yield _call("GDLN.responses", t.net.responses, t.weights, t.data)
    yield _call("GDLN.loss", t.net.loss, t.weights, t.data, losses.squared)
    yield _call("GDLN.velocity", t.net.velocity, t.weights, t.data)
    yield _call("GDLN.loss_and_step", t.net.loss_and_step, t.weights, t.data, 0.1, losses.squared)
    yield _call("GDLN.init", t.net.init, t.key, scale=0.1, kind="gaussian", dtype=np.float64)
    yield _call("ReLUNetwork", nr.ReLUNetwork, (2, 3, 2), leak=0.1, bias=True)
    yield _call("ReLUNetwork.responses", t.relu.responses, t.relu_weights, t.data)
    yield _call("ReLUNetwork.activity", t.relu.activity, t.relu_weights, t.data)
    yield _call("compress", nr.compress, t.net, t.weights, t.data, samples=True, width=True)


def _runs() -> Iterator[Call]:
    t = things()
    yield _call(
        "Trajectory",
        nr.Trajectory,
        [0.0, 1.0],
        [2.0, 1.0],
        values={"outputs": {"y": np.zeros((2, 4, 1))}},
        final={"W1": np.ones((2, 2)), "W2": np.ones((2, 2))},
        net=t.net,
        steps=[0, 1],
        sample_weight=np.full(4, 0.25),
        settings={"a": 1},
    )
    every = {"W1": np.ones((2, 2, 2)), "W2": np.ones((2, 2, 2))}
    yield _call(
        "Trajectory.from_weights", nr.Trajectory.from_weights, t.net, every, t.data, [0.0, 1.0]
    )
    yield _call("Trajectory.plot", t.run.plot, "loss", color="k", label="a", log=True)
    yield _call("Trajectory.isel", t.run.isel, time=0)
    yield _call("Trajectory.sel", t.run.sel, time=0.1, method="nearest")
    yield _call("Trajectory.save", t.run.save, t.folder / "again.nc")
    yield _call("compare", nr.compare, t.run, t.run, sample_weight=np.array([0.5, 0.5]))
    yield _call("concat", nr.concat, [t.run, t.run], ("seed", [0, 1]))
    yield _call("join", nr.join, t.run, t.run)
    yield _call("load", nr.load, t.file)
    shared: dict[str, Any] = {"loss": "squared", "evaluate": {"test": t.data}}
    shared["record"] = {"weights": True}
    yield _call(
        "flow",
        nr.flow,
        t.net,
        t.weights,
        t.data,
        times=[0.0, 1.0],
        rtol=1e-4,
        atol=1e-6,
        until=nr.dynamics.Until(loss=1e-3, stationary=1e-3),
        max_steps=100,
        compress=False,
        **shared,
    )
    yield _call(
        "flow_ensemble",
        nr.flow_ensemble,
        t.net,
        t.data,
        key=t.key,
        times=[0.0, 1.0],
        seeds=1,
        scale=0.1,
        kind="gaussian",
        rtol=1e-4,
        atol=1e-6,
        max_steps=100,
        axis=None,
        members_at_once=1,
        dtype=np.float64,
        **shared,
    )
    steps: dict[str, Any] = {"learning_rate": 0.1, "steps": 2, "record_every": 1, **shared}
    steps |= {"until": 1e-3, "callback": lambda *seen: None}
    yield _call(
        "train",
        nr.train,
        t.net,
        t.weights,
        t.data,
        batch_size=1,
        key=t.key,
        record_at=[1, 2],
        compress=False,
        checkpoint=t.folder / "train.ckpt",
        checkpoint_every=1,
        **steps,
    )
    yield _call(
        "train_ensemble",
        nr.train_ensemble,
        t.net,
        t.data,
        key=t.key,
        seeds=1,
        scale=0.1,
        kind="gaussian",
        optimizer=None,
        batch_size=1,
        record_at=[1, 2],
        axis=None,
        members_at_once=1,
        dtype=np.float64,
        **steps,
    )


def _theory() -> Iterator[Call]:
    t = things()
    yield _call("path_statistics", nr.path_statistics, t.arch, t.data, 10)
    yield _call("PathStatistics.velocity", t.statistics.velocity, t.weights)
    yield _call("PathStatistics.loss", t.statistics.loss, t.weights)
    yield _call("reduce", nr.reduce, t.arch, t.data, tolerance=1e-8)
    yield _call("Race.start", t.race.start, 0.1)
    yield _call("Race.start of weights", t.race.start, t.weights)
    yield _call("Race.solve", t.race.solve, times=[0.0, 1.0], start=0.1, learning_rate=0.1)
    yield _call("Race.weights", t.race.weights, t.solution, 1.0, t.key)
    yield _call("Race.variables", t.race.variables, 0.1)
    yield _call("Race.equations", t.race.equations, 0.1)
    yield _call("Race.latex", t.race.latex, 0.1, full=True)
    yield _call("Race.conserved", t.race.conserved, 0.1)
    yield _call("Race.closed_form", t.race.closed_form, 0.1)
    yield _call("Race.describe", t.race.describe, full=True)
    yield _call("Block.named", t.race.blocks[0].named, "first")
    yield _call("Variable.described", t.race.variables()[0].described, True)
    yield _call("ClosedForm.value", t.form.value, [0.0, 1.0])
    yield _call("ClosedForm.loss", t.form.loss, [0.0, 1.0])
    yield _call("ClosedForm.time_to", t.form.time_to, 0.5)
    yield _call("ClosedForm.time_to_loss", t.form.time_to_loss, 0.5)
    yield _call("ModeForm.value", t.mode.value, [0.0, 1.0])
    yield _call("ModeForm.variables", t.mode.variables, [0.0, 1.0])
    yield _call("ModeForm.loss", t.mode.loss, [0.0, 1.0])
    yield _call("ModeForm.time_to", t.mode.time_to, 0.5)
    yield _call(
        "linear.deep_limit", nr.linear.deep_limit, [0.0, 1.0], s=1.0, d=1.0, start=0.05, depth=100
    )


def _contests() -> Iterator[Call]:
    t = things()
    options: dict[str, Any] = {"criterion": 0.2, "relative": False, "longest": 1e3}
    options["tolerance"] = 1e-8
    yield _call("contest", nr.contest, gatings(0.5), scale=1e-2, **options)
    yield _call("contest from a start", nr.contest, gatings(0.5), start=1e-2)
    every = np.array([[1.0, 0.0], [1.0, 1.0]])
    yield _call("rank_patterns", nr.rank_patterns, t.data, every, key=0)
    yield _call("Contest.joint", t.contest.joint, key=t.key, times=[0.0, 1.0], seeds=1)
    yield _call("Contest.plot", t.contest.plot, ax=None)
    yield _call(
        "phase_diagram",
        nr.phase_diagram,
        gatings,
        "delta",
        [0.5, 0.6],
        scale=1e-2,
        precision=0.1,
        **options,
    )
    yield _call("PhaseDiagram.winner_at", t.phases.winner_at, 0.7)
    yield _call("PhaseDiagram.plot", t.phases.plot, ax=None)
    yield _call("contests.growth_rates", nr.contests.growth_rates, t.data, every)
    two = {"early": [1, 0.6, 0.5], "late": [1, 1, 0.4]}
    yield _call("contests.leads", nr.contests.leads, [0, 1, 2], two)
    yield _call("contests.expected_start", nr.contests.expected_start, t.race, 0.1)
    yield _call("PatternRanking.plot", nr.rank_patterns(t.data, every).plot, 2)


def _analysis() -> Iterator[Call]:
    t = things()
    matrices = np.array([np.diag([3.0, 1.0]), np.diag([1.0, 2.0])])
    bases = {"x": np.eye(2), "y": np.eye(2)}
    groups = [1, 2]
    yield _call("analysis.alignment", analysis.alignment, t.net, t.weights, bases, groups=None)
    yield _call("analysis.alignment in groups", analysis.alignment, t.net, t.weights, bases, groups)
    yield _call("analysis.diagonal_share", analysis.diagonal_share, np.eye(2), np.eye(2), np.eye(2))
    yield _call("analysis.follow_modes", analysis.follow_modes, matrices, modes=1, tie=1e-6)
    yield _call("analysis.hidden", analysis.hidden, t.net, t.weights, t.data, "h")
    yield _call("analysis.kernel_distance", analysis.kernel_distance, np.eye(2), np.eye(2))
    many = t.run.values["weights"]
    yield _call("analysis.kernel_travel", analysis.kernel_travel, t.net, many, t.data)
    yield _call("analysis.mds", analysis.mds, np.eye(3), dimensions=2, reference=None)
    yield _call("analysis.mds of distances", analysis.mds, distances=1 - np.eye(3))
    yield _call("analysis.projected", analysis.projected, np.eye(2), left=np.eye(2), right=None)
    yield _call("dataset.zero_loss", nr.dataset.zero_loss, t.data)
    yield _call("analysis.similarity", analysis.similarity, np.eye(2), kind="cosine")
    yield _call("analysis.singular_values", analysis.singular_values, matrices, modes=1, tie=1e-6)
    yield _call("analysis.tangent_kernel", analysis.tangent_kernel, t.net, t.weights, t.data)


def _linear() -> Iterator[Call]:
    t = things()
    yield _call("linear.aligned_weights", linear.aligned_weights, t.net, t.data, 0.5, key=0)
    yield _call("linear.balance", linear.balance, t.net, t.weights)
    yield _call(
        "linear.balanced_weights",
        linear.balanced_weights,
        t.net,
        0.5,
        scale=0.1,
        key=0,
        aligned_to=t.data,
    )
    yield _call("linear.grown_weights", linear.grown_weights, t.net, t.weights, t.data)
    times = [0.0, 1.0]
    exact: dict[str, Any] = {"times": times, "tolerance": 1e-6}
    yield _call(
        "linear.lambda_balanced", nr.linear.lambda_balanced, t.net, t.weights, t.data, **exact
    )
    yield _call(
        "linear.task_sequence", linear.task_sequence, t.net, t.weights, [t.data, t.data], **exact
    )
    yield _call("linear.chain_time", linear.chain_time, 3, s=1.0, start=0.1, d=1.0, fraction=0.5)
    yield _call("linear.leading_time", linear.leading_time, 4, s=1.0, start=0.1)
    vectors = np.eye(2)
    yield _call("linear.mode_strengths", linear.mode_strengths, t.exact, t.data, vectors=vectors)
    yield _call("linear.saddles", linear.saddles, t.net, t.data, modes=1)
    yield _call("linear.Saddles.weights", t.saddles.weights, (1,))
    escape = t.saddles[(1,)].escapes[0]
    yield _call("linear.Saddles.direction", t.saddles.direction, (1,), escape)
    yield _call("linear.Saddles.distances", t.saddles.distances, np.zeros((1, 2, 2)))
    yield _call("linear.Saddles.visits", t.saddles.visits, t.exact, within=0.1)
    yield _call("linear.maps_of", linear.maps_of, t.exact)
    yield _call("linear.plateaus", linear.plateaus, t.exact, least=0.1, slope=1e-3)


def _explanation() -> Iterator[Call]:
    t = things()
    yield _call(
        "explain",
        nr.explain,
        t.relu_run,
        {"mine": nr.pathways(t.data, {"a": None}, hidden=2)},
        data=t.data,
        width=None,
        scale=None,
        learning_rate=None,
        steps=None,
        seeds=1,
        train=False,
        rows=["gatings"],
        types=2,
        stages=2,
        most=2,
        neurons=10,
        key=0,
    )
    yield _call("explanation.Explanation.times_floor", t.explained.times_floor, "mine")
    yield _call("explanation.Explanation.plot", t.explained.plot, log=True)


def _reln() -> Iterator[Call]:
    t = things()
    yield _call("reln.activity", reln.activity, t.relu_run, t.data, boundary=1e-3)
    prototypes = {"first": np.array([1.0, 0.0])}
    yield _call("reln.Activity.index", t.activity.index, 0.1)
    yield _call("reln.Activity.gates", t.activity.gates, 0.1)
    yield _call("reln.Activity.counted", t.activity.counted, "h", 0.01)
    yield _call("reln.Activity.shares", t.activity.shares, prototypes, "h", least=0.01)
    yield _call("reln.Activity.changed", t.activity.changed, 0.0, 0.1, "h", least=0.01)
    yield _call("reln.Activity.switches", t.activity.switches, "h")
    yield _call("reln.Activity.plot", t.activity.plot, prototypes, "h")
    yield _call("reln.Shares.together", t.activity.shares(prototypes).together, {"all": ["first"]})
    yield _call("reln.Switches.mean", t.activity.switches("h").mean, np.ones(3))
    yield _call("reln.certify", reln.certify, t.run, t.run, floor=t.run)
    yield _call("reln.Certificate.holds", reln.certify(t.run, t.run).holds, 1e-8)
    yield _call("reln.Certificate.plot", reln.certify(t.run, t.run).plot, log=True)
    yield _call("reln.copied_gates", reln.copied_gates, t.relu_run, t.data, gates=None, record=None)
    yield _call("reln.sliding_over", reln.sliding_over, t.relu_run, t.data)
    yield _call(
        "reln.discover",
        reln.discover,
        t.relu_run,
        t.data,
        pathways=2,
        weighted=True,
        rounded=True,
        boundary=1e-3,
        most=2,
        key=0,
    )
    yield _call("reln.Discovery.gates", t.found.gates, 0)
    yield _call("reln.Discovery.network", t.found.network, 0)
    yield _call("reln.Discovery.train", t.found.train, 0, learning_rate=0.1, steps=2)
    yield _call("reln.Discovery.plot", t.found.plot, "h", label="context")
    yield _call(
        "reln.draw_activity",
        reln.draw_activity,
        t.activity,
        prototypes,
        "h",
        at=[0.1],
        samples={"a": 0},
        least=0.01,
    )
    yield _call("reln.elbow", reln.elbow, [0.8, 0.18, 0.09])
    yield _call("reln.evidence", reln.evidence, t.relu, t.data)
    yield _call(
        "reln.horizons",
        reln.horizons,
        t.relu_run,
        t.data,
        tolerance=0.05,
        measure="outputs",
        boundary=1e-3,
        gates=None,
    )
    yield _call("reln.Horizons.reach", t.horizons.reach, 0.05)
    yield _call("reln.Horizons.stages", t.horizons.stages, 0.05)
    yield _call("reln.Horizons.plot", t.horizons.plot, 0.05)
    x = np.array([[1.0, 0.0], [0.0, 1.0]])
    yield _call("reln.is_implementable", reln.is_implementable, [1, 0], x, True, closed=False)
    yield _call("reln.pattern_count", reln.pattern_count, x, True)
    yield _call("reln.patterns", reln.patterns, x, True, closed=False, limit=100)
    yield _call(
        "reln.sample_patterns", reln.sample_patterns, x, count=2, key=0, bias=False, draws=100
    )
    yield _call("reln.refine", reln.refine, t.found, fit_to=(0,), iterations=1, rate=0.02)
    yield _call("reln.subsets", reln.subsets, t.data, "context")
    xor = tasks.extended_xor(0.8)
    yield _call("reln.aligned_patterns", reln.aligned_patterns, xor, key=0, neurons=20, leak=0.0)
    yield _call("reln.aligned", reln.aligned, xor, width=8, key=0, stages=1, neurons=20)
    gated = tasks.xor_pathways(xor, 8)
    yield _call("reln.consistency", reln.consistency, *gated, scale=1e-2, key=0, leak=0.0)
    yield from _types(xor)


def _types(xor: nr.Dataset) -> Iterator[Call]:
    """Sliding gates, stages and types."""
    t = things()
    net = nr.ReLUNetwork((3, 4, 1))
    weights = net.init(0, scale=0.3)
    given = (net, weights, xor)
    found = reln.sliding_gates(*given, learning_rate=0.1)
    yield _call("reln.sliding_gates", reln.sliding_gates, *given, learning_rate=0.1)
    yield _call("reln.SlidingGates.share", found.share, "h")
    every = {"weights": True}
    run = nr.train(*given, learning_rate=0.1, steps=20, record=every)
    yield _call("reln.staged", reln.staged, run, xor, stages=2, gates="sliding")
    yield _call("reln.symmetries", reln.symmetries, xor)
    same = reln.symmetries(xor)
    yield _call("reln.Symmetries.inputs", same.inputs, same.elements[0])
    yield _call("reln.Symmetries.outputs", same.outputs, same.elements[0])
    named = {"width": 8, "scale": 1e-3, "learning_rate": 0.1, "steps": 200, "types": 1}
    yield _call("reln.types", reln.types, xor, **named, key=t.key, neurons=20, leak=0.0)
    types = reln.types(xor, **named, neurons=20)
    yield _call("reln.NeuronTypes.stages", types.stages, 0.05)
    yield _call("reln.NeuronTypes.plot", types.plot)


def _tasks() -> Iterator[Call]:
    t = things()
    for gating in ("all_but_one", "all_subsets", "common_and_all_but_one", "common_and_single"):
        yield _call(f"tasks.{gating}", getattr(tasks, gating), t.contextual, 2)
    for gating in ("pathway_per_context", "single_pathway"):
        yield _call(f"tasks.{gating}", getattr(tasks, gating), t.classes, 2)
    yield _call("tasks.chain_world", tasks.chain_world, 3, coupling=1.0, variance=10.0)
    yield _call("tasks.ring_world", tasks.ring_world, 4, coupling=1.0, variance=10.0)
    yield _call("tasks.grid_world", tasks.grid_world, 2, 2, coupling=1.0, variance=10.0)
    yield _call("tasks.partition_world", tasks.partition_world, (2, 1), coupling=1.0, variance=9.0)
    yield _call("tasks.tree_world", tasks.tree_world, 2, depth=2, flip=0.1)
    yield _call("tasks.World.features", tasks.ring_world(4).features, 2, key=0)
    yield _call("tasks.World.dataset", tasks.ring_world(4).dataset, features=2, key=0)
    yield _call("tasks.circulant_routes", tasks.circulant_routes, 3, 2)
    yield _call("tasks.random_routes", tasks.random_routes, 4, 2, key=0)
    yield _call("tasks.route_ratio", tasks.route_ratio, tasks.circulant_routes(3, 2))
    yield _call("tasks.route_matrix", tasks.route_matrix, [(1, 1), (2, 1)], 2)
    digits = tasks.images("digits").take(40, 10)
    yield _call("tasks.images", tasks.images, "digits")
    yield _call("tasks.Images.take", digits.take, 20, 5)
    idx = Path(tempfile.mkdtemp()) / "labels-idx1-ubyte"
    idx.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 1, 2]))
    yield _call("tasks.read_idx", tasks.read_idx, idx)
    yield _call(
        "tasks.contextual",
        tasks.contextual,
        2,
        4,
        structures=["crossed", "hierarchy"],
        common=np.eye(4),
        context_scale=1.0,
        joined=True,
    )
    yield _call(
        "tasks.contextual_classification",
        tasks.contextual_classification,
        2,
        bound=1.0,
        order=2,
        samples=4,
        key=0,
    )
    levels = [2.0, 1.0, 1.0]
    for name in ("hierarchy", "crossed_hierarchy"):
        yield _call(f"tasks.{name}", getattr(tasks, name), 2, depth=2, amplitudes=levels)
    yield _call("tasks.extended_xor", tasks.extended_xor, 0.5, sign=1.0)
    yield _call("tasks.xor", tasks.xor, 1.0)
    yield _call("tasks.context_decision", tasks.context_decision, 2, cue=1.0)
    yield _call("tasks.parity", tasks.parity, 2)
    yield _call("tasks.transitive_inference", tasks.transitive_inference, 3, pairs="adjacent")
    yield _call("tasks.ring_classification", tasks.ring_classification, 6, 3)
    yield _call("tasks.teacher", tasks.teacher, 4, 2, 1, 2, key=0)
    yield _call("tasks.gaussian", tasks.gaussian, 4, 2, 1, key=0)
    yield _call("tasks.answers", tasks.answers, tasks.parity(2))
    yield _call("tasks.natural_gatings", tasks.natural_gatings, tasks.parity(2), 4)
    yield _call("tasks.xor_pathways", tasks.xor_pathways, tasks.xor(), 4)
    yield _call("tasks.linear_pathways", tasks.linear_pathways, tasks.extended_xor(0.5), 4)
    yield _call("tasks.partition", tasks.partition, (2, 1))
    yield _call("tasks.random_tree", tasks.random_tree, 3, key=0)
    yield _call("tasks.ring", tasks.ring, [0.0, 0.5, 1.0, 0.5], rows=2)
    yield _call("tasks.structure", tasks.structure, "hierarchy", items=4)
    yield _call("tasks.routing", tasks.routing, 2, 1, routes=[(1, 1)], distractors=True, key=1)
    yield _call("tasks.routing_pathways", tasks.routing_pathways, t.routes, P=1, hidden=2)


def _losses() -> Iterator[Call]:
    outputs, classes = {"y": np.zeros((2, 2))}, {"y": np.eye(2)}
    yield _call("losses.squared", losses.squared, outputs, classes)
    yield _call("losses.cross_entropy", losses.cross_entropy, outputs, classes)


class Linear:
    """The part of a PyTorch or Equinox layer that is read."""

    training = False
    _modules: dict[str, Any] = {}
    _parameters: dict[str, Any] = {}
    weight = np.array([[1.0, 0.5], [0.0, 1.0]])

    def state_dict(self) -> dict[str, np.ndarray]:
        return {"weight": self.weight}

    def __call__(self, x: Any) -> Any:
        return self.weight @ x


class Dense:
    """The part of a Flax layer that is read."""

    kernel, bias = np.ones((2, 2)), None

    def __call__(self, x: Any) -> Any:
        return x @ self.kernel


Dense.__name__ = "Linear"


def _interop() -> Iterator[Call]:
    t = things()
    layer = np.ones((2, 2))
    state = {"0.weight": layer, "0.bias": np.zeros(2), "2.weight": 2 * layer}
    told: dict[str, Any] = {"loss": "squared", "learning_rate": 0.1, "batch_size": 2}
    yield _call("from_layers", nr.from_layers, [(layer, np.zeros(2)), (layer, None)], leak=0.1)
    yield _call("from_torch", nr.from_torch, state, t.data, [3], leak=0.1, **told)
    yield _call("from_torch of a model", nr.from_torch, Linear(), t.data)
    yield _call("from_equinox", nr.from_equinox, Linear(), t.data, [3], leak=None, **told)
    yield _call("from_flax", nr.from_flax, Dense(), t.data, [3], leak=None, **told)
    path = nr.save_weights(t.relu, t.relu_weights, t.folder / "net.safetensors")
    yield _call("from_file", nr.from_file, path, t.data, [3], leak=None, **told)
    yield _call("save_weights", nr.save_weights, t.net, t.weights, t.folder / "net.npz")
    yield _call("TorchRecorder", _recorder, Linear(), t.data, 2, leak=None)
    folder = t.folder / "recording"
    nr.TorchRecorder(Linear(), t.data, 2, folder=folder)  # pyright: ignore
    yield _call("from_recording", nr.from_recording, folder, t.data, other_data=False, **told)
    stepped = nr.TorchRecorder(Linear(), t.data, 2, folder=t.folder / "stepped")  # pyright: ignore
    yield _call("TorchRecorder.step", stepped.step)
    if importlib.util.find_spec("torch"):
        yield _call("to_torch", nr.to_torch, t.net, t.weights, t.data)
    else:
        RESULTS.add("to_torch")  # no call succeeds without PyTorch


def squares(cells: Any, power: int = 2) -> list[dict[str, Any]]:
    """What the sweep of the table computes."""
    return [{"power": np.ones(2) * cell["x"] ** power} for cell in cells]


def _sweeps() -> Iterator[Call]:
    t = things()
    axes = {"x": [1.0, 2.0], "seed": [0, 1, 2]}
    labels: dict[str, Any] = {"dims": {"power": ["time"]}, "coords": {"time": [0.0, 1.0]}}
    yield _call(
        "sweep", nr.sweep, squares, axes, settings={"power": 3}, batch=2, **labels, workers=0
    )
    store = t.folder / "sweep.zarr"
    found = nr.sweep(squares, axes, batch={"x": 1}, **labels, store=store)
    one = nr.sweep("verification.valid_calls:flat", axes)
    yield _call("open_sweep", nr.open_sweep, store)
    yield _call("sweeps.status", nr.sweeps.status, store)
    yield _call("Sweep.plot", one.plot, "y", over="x", ax=None)
    cells = [{"delta": 0.5, "seed": 0}, {"delta": 1.0, "seed": 3}]
    how: dict[str, Any] = {"task": "extended_xor", "steps": 3, "hidden": 4, "scale": 0.1}
    how |= {"learning_rate": 0.1, "criterion": 0.2, "key": 0, "parameters": {"sign": 1.0}}
    yield _call("sweeps.train_relu", nr.sweeps.train_relu, cells, **how)
    assert found.missing == 0


def _study() -> Iterator[Call]:
    t = things()
    table, masks = t.folder / "table.csv", t.folder / "masks.csv"
    table.write_text("a,b,kind\n1,2,pear\n3,1,fig\n")
    masks.write_text("left,right\n1,0\n0,1\n")
    task = {"builtin": "extended_xor", "parameters": {"delta": 1.2}}
    gatings = {"xor": {"each": "sample"}}
    sections: dict[str, Any] = {"questions": ["reduce"], "task": task, "gatings": gatings}
    study = nr.Study.of(**sections, sweep={"over": {"task.parameters.delta": [0.5, 1.0]}})
    yield _call("Study", nr.Study.of, **sections)
    yield _call("Study.load", nr.Study.load, study.save(t.folder / "study.toml"))
    yield _call("Study.save", study.save, t.folder / "saved.toml")
    yield _call("Study.changed", study.changed, {"training.steps": 5}, source="here")
    yield _call("Study.run", study.run)
    yield _call("Study.sweep", study.sweep, workers=0)
    read: dict[str, Any] = {"x": ["a"], "y": ["b"], "labels": ["kind"], "standardise": True}
    yield _call("study.read_task", nr.study.read_task, table, **read)
    yield _call("study.read_table", nr.study.read_table, table)
    yield _call("study.read_masks", nr.study.read_masks, masks)
    study.run().report(t.folder / "report")
    yield _call("study.write_again", nr.study.write_again, t.folder / "report")
    yield _call("study.new_study", _new_study, csv=table)
    yield _call("study.value_of", nr.study.value_of, "0.5")
    yield _call("study.Work", nr.study.Work, study.check())
    pair = tasks.xor_pathways(tasks.xor())
    found, times = nr.contest({"xor": pair}), np.arange(3.0)
    yield _call("study.contest_places", nr.study.contest_places, found)
    losses = {"xor": np.ones(3)}
    yield _call("study.contest_sentences", nr.study.contest_sentences, found, times, losses)
    yield _call("study.race_sentence", nr.study.race_sentence, nr.reduce(*pair))
    yield _call("study.feature_names", nr.study.feature_names, study.check())
    yield _call("explore", nr.explore, pair)


def _new_study(csv: Any) -> Path:
    """A study in a new folder: an existing one is not overwritten."""
    return nr.study.new_study(Path(tempfile.mkdtemp(prefix="calls")) / "study.toml", csv)


def flat(cells: Any) -> list[dict[str, Any]]:
    """One number per cell, for a picture."""
    return [{"y": cell["x"]} for cell in cells]


def _recorder(*positional: Any, **named: Any) -> nr.TorchRecorder:
    """A recorder into a new folder, since a folder holds one recording."""
    return nr.TorchRecorder(*positional, **named, folder=tempfile.mkdtemp(prefix="calls"))

"""What is computed for the questions of a study, as steps that are run or printed as a script.

Steps are run by `Work`, which makes each when it is first asked for, and printed by `script_of`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax

from neuralrace.dataset import Dataset, zero_loss
from neuralrace.study.build import UNGATED, Problem, graph_of, neurons, recurrent_call
from neuralrace.study.naming import feature_names
from neuralrace.study.places import Place
from neuralrace.study.questions import QUESTIONS, TRAINED
from neuralrace.study.steps import Call, Each, Given, Item, Merged, Name, code, value
from neuralrace.text import numbered

if TYPE_CHECKING:
    from neuralrace.study.model import Settings, Training

RATE = 0.1
"""The learning rate of a study that names neither a rate nor an optimizer."""

CRITERION = 0.2
"""The loss that counts as learned, as in `nr.contest` (MHS Fig. 2d)."""


class Step(NamedTuple):
    """A step with its heading in the script, the lines that print it, and the key to blame.

    `told` is said when it begins, where it takes long; `work` in it is the `Work` that runs it.
    """

    makes: Any
    heading: str = ""
    shown: tuple[str, ...] = ()
    key: str = ""
    told: str = ""


Seeds = int | Sequence[int]
"""How many networks are trained, or the numbers that their initial weights are drawn from."""


def _relu_prediction(problem: Problem, seeds: Seeds) -> Step:
    made = Call("nr.predict", Name("data"), **relu_options(problem))
    heading = "what will a ReLU network do? None of its width is trained for the wide limit"
    return Step(made, heading, ("print(relu_prediction)",), "relu", "predicting the ReLU network")


def _contest(problem: Problem, seeds: Seeds) -> Step:
    settings = problem.settings
    options = contest_options(settings) | {"key": settings.training.key} | _checked(settings)
    task = Name("gatings" if problem.candidates else "data")
    shown = "print(who)" if settings.contest.check else "print(who.winner, who.times)"
    heading = "which gating learns first? Nothing is trained"
    return Step(Call("nr.contest", task, **options), heading, (shown,), "gatings")


def _checked(settings: Settings) -> dict[str, Any]:
    return {"check": True} if settings.contest.check else {}


def _races(problem: Problem, seeds: Seeds) -> Step:
    arch = f"{code(relu_call(problem))}.arch" if _is_chain(problem) else "graph"
    alone = (Given(problem.relu.arch, arch), Name("data"))
    pairs = Name("gatings") if problem.candidates else {UNGATED: alone}
    shown = ("for name, race in races.items():", '    print(name, race, sep="\\n")')
    heading = "the neural race reduction of every gating"
    each = Each(_reduced(problem), "pair", pairs, "name")
    return Step(each, heading, shown * _asks(problem, "reduce"), "gatings")


def _reduced(problem: Problem) -> Call:
    return Call("nr.reduce", Name("*pair"), tolerance=problem.settings.reduce.tolerance)


def _modes(problem: Problem, seeds: Seeds) -> Step:
    made = Each(Call("race.modes", **modes_options(problem)), "race", Name("races"), "name")
    shown = ("for name, table in modes.items():", '    print(name, table, sep="\\n")')
    return Step(made, "which distinctions are learned first?", shown, "modes")


def _relu_runs(problem: Problem, seeds: Seeds) -> Step:
    made = _trained(problem, seeds, "relu", "samples", 0)
    told = f"training {numbered(count_of(seeds), 'ReLU network', '1')}"
    return Step(made, "", ("print(relu_runs.loss[:, -1])",), "training", told)


def _pair(problem: Problem, seeds: Seeds) -> Step:
    name = problem.settings.predict.gating
    alone = next(iter(problem.candidates)) if len(problem.candidates) == 1 else None
    chosen = name or alone or Name("who.winner")
    return Step(Item(Name("gatings"), chosen), "gated networks")


def _gated_runs(problem: Problem, seeds: Seeds) -> Step:
    told = f"training {numbered(count_of(seeds), 'gated network', '1')}: {{work.followed}}"
    return Step(_trained(problem, seeds, "net", "gated_samples", 1), key="training", told=told)


def _race(problem: Problem, seeds: Seeds) -> Step:
    heading = "their prediction, from the initial weights, with nothing fitted"
    return Step(_reduced(problem), heading)


def _predicted(problem: Problem, seeds: Seeds) -> Step:
    double = Call("np.asarray", Name("weight"), Name("np.float64"))
    weights = Each(double, "weight", _init(problem, "net"), "edge")
    made = Call(
        "race.solve",
        times=Name("gated_runs.time"),
        start=Call("race.start", weights),
        learning_rate=learning_rate(problem.settings.training),
        **_changed(problem.settings.training, "momentum", "weight_decay"),
    )
    those = ("gated_runs", *("relu_runs",) * _asks(problem, *TRAINED))
    compared = (f"    print(nr.compare({runs}.isel(seed=seed), solved))" for runs in those)
    shown = ("for seed, solved in enumerate(predicted):", *compared)
    return Step(Each(made, "key", start_keys(problem, seeds, 1)), "", shown)


def _types(problem: Problem, seeds: Seeds) -> Step:
    made = Call("nr.reln.types", Name("data"), **types_options(problem.settings))
    shown, told = ("print(types)",), "following types of neurons"
    return Step(made, "types of neurons", shown, "types", told)


def _runs(problem: Problem, seeds: Seeds) -> Step:
    count = min(problem.settings.discover.networks or count_of(seeds), count_of(seeds))
    one = Call("relu_runs.isel", seed=Name("seed"))
    made = Each(one, "seed", Given(range(count), f"range({count})"))
    return Step(made, "gates found in the activity of the ReLU networks")


def _found(problem: Problem, seeds: Seeds) -> Step:
    options = discover_options(problem.settings)
    made = Call("nr.reln.discover", Name("runs"), Name("samples"), **options)
    told = "looking for gates in the ReLU networks"
    return Step(made, "", ("print(found)",), "discover", told)


def _certificates(problem: Problem, seeds: Seeds) -> Step:
    count = count_of(seeds)
    of = lambda runs, seed: Call(f"{runs}.isel", seed=Name(seed))
    made = Call(
        "nr.reln.certify",
        of("relu_runs", "seed"),
        of("gated_runs", "seed"),
        floor=of("relu_runs", "other") if count > 1 else None,
    )
    pairs = [(seed, (seed + 1) % count) for seed in range(count)]
    heading = "is the gated network the same function? The other seed is the floor"
    return Step(Each(made, "seed, other", pairs), heading, ("print(certificates[0])",), "questions")


def _explanation(problem: Problem, seeds: Seeds) -> Step:
    task = Name("gatings") if problem.candidates else None
    options = explain_options(problem.settings)
    made = Call("nr.explain", Name("relu_runs"), task, data=Name("samples"), **options)
    heading = "which small model explains the ReLU networks?"
    return Step(made, heading, ("print(explanation)",), "explain", "comparing explanations")


def _phases(problem: Problem, seeds: Seeds) -> Step:
    settings, options = problem.settings, problem.settings.phase_diagram
    assert options is not None
    arguments = contest_options(settings) | {"precision": options.precision} | _checked(settings)
    made = Call("nr.phase_diagram", Name("candidates"), options.called, Name("values"), **arguments)
    shown = "print(phases)" if settings.contest.check else "print(phases.crossovers)"
    told = f"the contest at {len(options.points)} values"
    return Step(made, "", (shown,), "phase_diagram", told)


def _many(problem: Problem, seeds: Seeds) -> Step:
    options = problem.settings.phase_diagram
    assert options is not None
    values = Name("networks_at")
    made = Call(
        "nr.train_ensemble",
        Name("relu"),
        Each(narrowed(problem, Call("task", Name("value"))), "value", values),
        axis=("value", values),
        key=key_of(problem, 0),
        **(training_options(problem) | {"seeds": options.networks}),
    )
    told = "training ReLU networks at values of the phase diagram"
    return Step(made, key="phase_diagram.networks", told=told)


def _learning_times(problem: Problem, seeds: Seeds) -> Step:
    contest = problem.settings.contest
    level: Any = CRITERION if contest.criterion is None else contest.criterion
    if contest.relative:
        zero = Call("nr.dataset.zero_loss", Call("task", Name("value")))
        level = Call("np.multiply", level, zero)
    made = Call("nr.trajectory.crossing_time", Name("many.time"), Name("loss"), level)
    over = Call("zip", Name("many.loss"), Name("networks_at"), strict=True)
    return Step(Each(made, "loss, value", over), "", ("print(learning_times)",), "phase_diagram")


STEPS: Mapping[str, Callable[[Problem, Seeds], Step]] = {
    "relu_prediction": _relu_prediction,
    "who": _contest,
    "races": _races,
    "modes": _modes,
    "phases": _phases,
    "relu": lambda problem, seeds: Step(relu_call(problem), "ReLU networks"),
    "samples": lambda problem, seeds: Step(narrowed(problem, Name("data"))),
    "many": _many,
    "learning_times": _learning_times,
    "relu_runs": _relu_runs,
    "pair": _pair,
    "net": lambda problem, seeds: Step(Call("nr.GDLN", Item(Name("pair"), 0))),
    "gated_samples": lambda problem, seeds: Step(narrowed(problem, Item(Name("pair"), 1))),
    "gated_runs": _gated_runs,
    "race": _race,
    "predicted": _predicted,
    "types": _types,
    "runs": _runs,
    "found": _found,
    "certificates": _certificates,
    "explanation": _explanation,
}
"""Every step by the name of what it makes, in the order of the script."""


def needed(problem: Problem) -> list[str]:
    """The steps of the questions of a study, in their order."""
    settings = problem.settings
    names = {step for question in settings.answerable for step in QUESTIONS[question].steps}
    if "pair" in names and settings.predict.gating is None and len(problem.candidates) > 1:
        names.add("who")  # the gating that is followed is the winner
    if "phases" in names and settings.phase_diagram and settings.phase_diagram.networks:
        names |= {"relu", "many", "learning_times"}
    return [name for name in STEPS if name in names]


# ---- parts of steps -----------------------------------------------------------------------------


def _asks(problem: Problem, *questions: str) -> bool:
    return bool({*questions} & {*problem.settings.answerable})


def count_of(seeds: Seeds) -> int:
    """How many networks there are."""
    return seeds if isinstance(seeds, int) else len(seeds)


def _is_chain(problem: Problem) -> bool:
    """Whether the network is layers in a row, from one input to one output of the usual names."""
    data = problem.data
    return problem.settings.network.in_a_row and [*data.x, *data.y] == ["x", "y"]


def relu_call(problem: Problem) -> Given:
    """The ReLU network."""
    network, arch = problem.settings.network, graph_of(problem.settings, problem.data)
    options = _changed(network, "leak", "bias")
    sizes = Given(None, repr(tuple(arch.sizes.values()))) if _is_chain(problem) else Name("graph")
    return Given(problem.relu, code(Call("nr.ReLUNetwork", sizes, **options)))


def graph_call(problem: Problem) -> Call | Item | None:
    """The graph, where the network is no plain chain."""
    if _is_chain(problem):
        return None
    if problem.settings.network.recurrent:
        return recurrent_call(problem.settings)
    arch = graph_of(problem.settings, problem.data)
    return Call("nr.Architecture", **arch.describe())


def narrowed(problem: Problem, data: Any) -> Any:
    """Data in the precision of the training."""
    return data if problem.settings.training.dtype == "float64" else Call("narrow", data)


def key_of(problem: Problem, which: int) -> Given:
    """The key of the ReLU networks, 0, or that of the gated ones, 1."""
    number = problem.settings.training.key
    key = jax.random.split(jax.random.key(number))[which]
    return Given(key, f"jax.random.split(jax.random.key({number}))[{which}]")


def start_keys(problem: Problem, seeds: Seeds, which: int) -> Given:
    """The key of every network's initial weights, as `train_ensemble` has them."""
    key = key_of(problem, which)
    if isinstance(seeds, int):
        return Given([*jax.random.split(key.value, seeds)], f"jax.random.split({key}, {seeds})")
    keys = [jax.random.fold_in(key.value, seed) for seed in seeds]
    return Given(keys, f"[jax.random.fold_in({key}, seed) for seed in {list(seeds)}]")


def _init(problem: Problem, net: str) -> Call:
    network, training = problem.settings.network, problem.settings.training
    options = {"scale": network.scale, "kind": network.kind} | _changed(training, "dtype")
    return Call(f"{net}.init", Name("key"), **options)


def record_of(problem: Problem, net: str, data: str) -> Any:
    """What the questions need of networks."""
    names = dict.fromkeys(problem.settings.training.record, True)
    if net != "relu":
        names.pop("activity", None)  # gates are given
    elif any(QUESTIONS[question].weights for question in problem.settings.questions):
        names["weights"] = True
    evidence = Call("nr.reln.evidence", Name(net), Name(data))
    return Merged(tuple(filter(None, [names, evidence if _asks(problem, "certify") else None])))


def _trained(problem: Problem, seeds: Seeds, net: str, data: str, which: int) -> Any:
    training = problem.settings.training
    options = training_options(problem) | {"seeds": seeds}
    record = record_of(problem, net, data)
    options |= {"record": record} if record.parts else {}
    if problem.evaluated:
        tasks = {n: Given(d, code(problem.calls[f"training.evaluate.{n}"]))
                 for n, d in problem.evaluated.items()}  # fmt: skip
        options["evaluate"] = {name: narrowed(problem, task) for name, task in tasks.items()}
    if training.checkpoint is not None:
        inside = str(Path(training.checkpoint) / ("gated" if which else "relu"))
        options["checkpoint"] = Given(problem.document.folder / inside, f"HERE / {inside!r}")
        options |= _changed(training, "checkpoint_every")
    if training.compress is None or which == 0:
        key = key_of(problem, which)
        return Call("nr.train_ensemble", Name(net), Name(data), key=key, **options)
    # single runs side by side: `compress` is an option of these alone
    for name in ("seeds", "scale", "kind", "members_at_once", "dtype"):
        options.pop(name, None)
    if "batch_size" in options:
        options["key"] = Call("jax.random.fold_in", Name("key"), 1)
    options["compress"] = training.compress
    one = Call("nr.train", Name(net), _init(problem, net), Name(data), **options)
    return Call("nr.concat", Each(one, "key", start_keys(problem, seeds, which)), "seed")


# ---- arguments of the library's functions -------------------------------------------------------


def plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options to call a function with."""
    return {name: v.value if isinstance(v, Given) else v for name, v in options.items()}


def training_options(problem: Problem) -> dict[str, Any]:
    """Arguments of `nr.train_ensemble` but for network, data, key and record."""
    training, network = problem.settings.training, problem.settings.network
    options: dict[str, Any] = {
        "seeds": training.seeds,
        "scale": network.scale,
        "kind": network.kind,
        "steps": training.steps,
    }
    if training.optimizer is None:
        options["learning_rate"] = learning_rate(training)
    else:
        options["optimizer"] = optimizer_of(training, problem.place / "training")
    if training.record_at is not None:
        options["record_at"] = list(training.record_at)
    else:
        options["record_every"] = training.every
    names = ("momentum", "weight_decay", "batch_size", "loss", "until", "members_at_once", "dtype")
    return options | _changed(training, *names)


def _changed(section: Any, *names: str) -> dict[str, Any]:
    """Those of these keys of a section whose values are not the default ones."""
    usual = type(section).model_fields
    there = {name: getattr(section, name) for name in names}
    return {name: value for name, value in there.items() if value != usual[name].default}


def criterion(settings: Settings, data: Dataset) -> float:
    """The loss that counts as learned on this task."""
    options = settings.contest
    level = CRITERION if options.criterion is None else options.criterion
    return level * float(zero_loss(data)) if options.relative else level


def learning_rate(training: Training) -> float:
    """The step of gradient descent."""
    return RATE if training.learning_rate is None else training.learning_rate


def optimizer_of(training: Training, place: Place) -> Given:
    """The optimizer of optax that a study names."""
    import optax

    assert training.optimizer is not None
    here, chosen = place / "optimizer", training.optimizer
    known = [
        name
        for name, function in vars(optax).items()
        if inspect.isfunction(function)
        and "learning_rate" in inspect.signature(function).parameters
        and not name.startswith("_")
    ]
    if chosen.name not in known:
        raise (here / "name").unknown("optimizer", chosen.name, known)
    function = getattr(optax, chosen.name)
    arguments = {**(chosen.model_extra or {})}
    names = list(inspect.signature(function).parameters)
    for name in arguments:
        if name not in names:
            raise (here / name).unknown(f"argument of {chosen.name}", name, names)
    arguments.setdefault("learning_rate", RATE)
    made = Call(f"optax.{chosen.name}", **arguments)
    with here.blamed():
        return Given(value(made, {"optax": optax}.__getitem__), code(made))


def contest_options(settings: Settings) -> dict[str, Any]:
    """Arguments of `nr.contest` and `nr.phase_diagram`."""
    contest, network = settings.contest, settings.network
    options = _changed(contest, "start") or {"scale": network.scale}
    options |= _changed(contest, "criterion", "relative", "longest", "tolerance")
    options |= _changed(settings.training, "weight_decay")
    return options | {"width": contest.width or neurons(settings)} | _changed(network, "leak")


def modes_options(problem: Problem) -> dict[str, Any]:
    """Arguments of `Race.modes`."""
    settings, chosen = problem.settings, problem.settings.modes
    start: dict[str, Any] = {"scale": settings.network.scale, "seeds": chosen.seeds}
    start |= {"key": settings.training.key}
    decay = _changed(settings.training, "weight_decay")
    names = {node: n for node, n in feature_names(problem).items() if node in problem.data.y}
    options = _changed(settings.contest, "start") or start
    options |= _changed(chosen, "items", "least") | decay
    return options | ({"names": names} if names else {})


def discover_options(settings: Settings) -> dict[str, Any]:
    """Arguments of `nr.reln.discover`."""
    chosen = settings.discover
    options: dict[str, Any] = {"pathways": chosen.pathways, "most": chosen.most}
    return options | _changed(chosen, "weighted", "rounded", "boundary")


def relu_options(problem: Problem) -> dict[str, Any]:
    """Arguments of `nr.predict` beside the data, or an error that says what it does not know."""
    settings, place = problem.settings, problem.place
    network, training, options = settings.network, settings.training, settings.relu
    known, own = "'relu' is known for", network.kind == "torch" and network.scale == 1
    for ok, key, what, got, wanted in (
        (network.in_a_row, "network", "layers in a row", "a graph, or a recurrent network",
         "one width"),
        (network.kind == "gaussian" or own, "network.kind", "Gaussian weights and PyTorch's start",
         f"kind = {network.kind!r}, scale = {network.scale:g}",
         "kind = 'gaussian', or kind = 'torch' with scale = 1"),
        (training.optimizer is None, "training.optimizer", "plain gradient descent",
         "an optimizer", "learning_rate in place of optimizer"),
        (training.is_plain or not training.is_descent, "training", "the squared loss alone",
         f"momentum = {training.momentum:g}, weight_decay = {training.weight_decay:g}",
         "neither"),
        (training.batch_size is None, "training.batch_size", "descent on all samples",
         f"batch_size = {training.batch_size}", "no batch_size"),
    ):  # fmt: skip
        fix = "leave out 'relu', or change this key"
        (place / key).require(ok, f"{known} {what}", got=got, wanted=wanted, fix=fix)
    widths = network.widths * (network.depth or 1)
    return {
        "width": widths[0] if len(widths) == 1 else [*widths],
        **({"init": "torch"} if own else {"scale": network.scale}),
        "learning_rate": learning_rate(training),
        "steps": training.steps,
        "criterion": criterion(settings, problem.data) / float(zero_loss(problem.data)),
        **_changed(network, "bias", "leak"),
        **_changed(training, "loss"),
        **_changed(options, "networks", "neurons"),
        "key": training.key,
    }


def types_options(settings: Settings) -> dict[str, Any]:
    """Arguments of `nr.reln.types`."""
    return {
        "width": settings.network.widths[0],
        "scale": settings.network.scale,
        "learning_rate": learning_rate(settings.training),
        "steps": settings.training.steps,
        "types": settings.types.types,
        "neurons": settings.types.neurons,
        "key": settings.training.key,
        **_changed(settings.network, "leak"),
    }


def explain_options(settings: Settings) -> dict[str, Any]:
    """Arguments of `nr.explain` beside run, gatings and data."""
    explain, training = settings.explain, settings.training
    there = {name: getattr(explain, name) for name in ("types", "stages", "most", "neurons")}
    return {"rows": list(explain.rows), **there, "seeds": training.seeds, "key": training.key}

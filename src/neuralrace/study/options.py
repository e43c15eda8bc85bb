"""What a study passes to the library's functions: the same arguments to run and to write down."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, final

from neuralrace.study.build import Problem, neurons
from neuralrace.study.naming import feature_names
from neuralrace.study.places import Place

if TYPE_CHECKING:
    from neuralrace.study.model import Settings, Training

RATE = 0.1
"""The learning rate of a study that names neither a rate nor an optimizer."""

CRITERION = 0.2
"""The loss that counts as learned, as in `nr.contest` (MHS Fig. 2d)."""


@final
class Raw:
    """A value with the code that makes it, for scripts."""

    def __init__(self, value: Any, code: str) -> None:
        self.value, self.code = value, code

    def __repr__(self) -> str:
        return self.code


def plain(options: dict[str, Any]) -> dict[str, Any]:
    """Options to call a function with."""
    return {k: v.value if isinstance(v, Raw) else v for k, v in options.items()}


def training_options(problem: Problem) -> dict[str, Any]:
    """Arguments of `nr.train_ensemble` but for network, data, key and record."""
    settings = problem.settings
    training, network = settings.training, settings.network
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
    if training.batch_size is not None:
        options["batch_size"] = training.batch_size
    if training.loss != "squared":
        options["loss"] = training.loss
    if training.until is not None:
        options["until"] = training.until
    if training.members_at_once is not None:
        options["members_at_once"] = training.members_at_once
    if training.dtype != "float64":
        options["dtype"] = training.dtype
    return options


def learning_rate(training: Training) -> float:
    """The step of gradient descent."""
    return RATE if training.learning_rate is None else training.learning_rate


def optimizer_of(training: Training, place: Place) -> Raw:
    """The optimizer of optax that a study names."""
    import optax

    assert training.optimizer is not None
    here, given = place / "optimizer", training.optimizer
    known = [
        name
        for name, value in vars(optax).items()
        if inspect.isfunction(value)
        and "learning_rate" in inspect.signature(value).parameters
        and not name.startswith("_")
    ]
    if given.name not in known:
        raise (here / "name").unknown("optimizer", given.name, known)
    function = getattr(optax, given.name)
    arguments = dict(given.model_extra or {})
    names = list(inspect.signature(function).parameters)
    for name in arguments:
        if name not in names:
            raise (here / name).unknown(f"argument of {given.name}", name, names)
    arguments.setdefault("learning_rate", RATE)
    with here.blamed():
        made = function(**arguments)
    said = ", ".join(f"{k}={v!r}" for k, v in arguments.items())
    return Raw(made, f"optax.{given.name}({said})")


def contest_options(settings: Settings) -> dict[str, Any]:
    """Arguments of `nr.contest` and `nr.phase_diagram`."""
    contest = settings.contest
    options: dict[str, Any] = {}
    if contest.start is not None:
        options["start"] = contest.start
    else:
        options["scale"] = settings.network.scale
    if contest.criterion is not None:
        options["criterion"] = contest.criterion
    if contest.relative:
        options["relative"] = True
    if "longest" in contest.model_fields_set:
        options["longest"] = contest.longest
    if contest.tolerance is not None:
        options["tolerance"] = contest.tolerance
    options["width"] = neurons(settings) if contest.width is None else contest.width
    return options | ({"leak": settings.network.leak} if settings.network.leak else {})


def modes_options(problem: Problem) -> dict[str, Any]:
    """Arguments of `Race.modes`."""
    settings, given = problem.settings, problem.settings.modes
    options: dict[str, Any] = {"start": settings.contest.start}
    if settings.contest.start is None:
        options = {"scale": settings.network.scale, "seeds": given.seeds}
        options["key"] = settings.training.key
    if given.items is not None:
        options["items"] = given.items
    if "least" in given.model_fields_set:
        options["least"] = given.least
    names = {node: n for node, n in feature_names(problem).items() if node in problem.data.y}
    return options | ({"names": names} if names else {})


def discover_options(settings: Settings) -> dict[str, Any]:
    """Arguments of `nr.reln.discover`."""
    found = settings.discover
    options: dict[str, Any] = {"pathways": found.pathways, "most": found.most}
    for name in ("weighted", "rounded", "boundary"):
        if name in found.model_fields_set:
            options[name] = getattr(found, name)
    return options


def types_options(settings: Settings) -> dict[str, Any]:
    """Arguments of `nr.reln.types`."""
    options: dict[str, Any] = {
        "width": settings.network.widths[0],
        "scale": settings.network.scale,
        "learning_rate": learning_rate(settings.training),
        "steps": settings.training.steps,
        "types": settings.types.types,
        "neurons": settings.types.neurons,
        "key": settings.training.key,
    }
    return options | ({"leak": settings.network.leak} if settings.network.leak else {})


def explain_options(settings: Settings) -> dict[str, Any]:
    """Arguments of `nr.explain` beside run, gatings and data."""
    explain = settings.explain
    return {
        "rows": list(explain.rows),
        "types": explain.types,
        "stages": explain.stages,
        "most": explain.most,
        "neurons": explain.neurons,
        "seeds": settings.training.seeds,
        "key": settings.training.key,
    }

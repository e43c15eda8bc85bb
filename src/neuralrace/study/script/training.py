"""Trained networks, their predictions and their gates, as code."""

from __future__ import annotations

from neuralrace.study.build import Problem
from neuralrace.study.options import (
    Raw,
    discover_options,
    explain_options,
    learning_rate,
    training_options,
    types_options,
)
from neuralrace.study.script.code import call, heading, indented, mapping
from neuralrace.study.script.task import narrowed, network_code, task_code
from neuralrace.study.work import NEED_WEIGHTS, TRAINED


def key_code(problem: Problem, which: int) -> str:
    return f"jax.random.split(jax.random.key({problem.settings.training.key}))[{which}]"


def _record(problem: Problem, net: str, data: str, relu: bool) -> Raw:
    settings = problem.settings
    names = dict.fromkeys([*settings.training.record])
    if relu and set(NEED_WEIGHTS) & set(settings.questions):
        names["weights"] = None
    if not relu:
        names.pop("activity", None)
    parts = [f"{{{', '.join(f'{n!r}: True' for n in names)}}}"] if names else []
    parts += [f"nr.reln.evidence({net}, {data})"] * ("certify" in settings.questions)
    return Raw(None, " | ".join(parts) or "None")


def _trained(problem: Problem, net: str, data: str, which: int) -> str:
    options = training_options(problem)
    options["record"] = _record(problem, net, data, relu=which == 0)
    if problem.evaluated:
        tasks = problem.settings.training.evaluate
        codes = {n: narrowed(problem, task_code(problem, task)) for n, task in tasks.items()}
        options["evaluate"] = Raw(None, mapping(codes))
    key = key_code(problem, which)
    if which == 0 or problem.settings.training.compress is None:
        return call("nr.train_ensemble", net, data, key=Raw(None, key), **options)
    seeds, scale, kind = (options.pop(name) for name in ("seeds", "scale", "kind"))
    options.pop("members_at_once", None)
    dtype = options.pop("dtype", None)
    init = call(f"{net}.init", "key", scale=scale, kind=kind, dtype=dtype)
    if "batch_size" in options:
        options["key"] = Raw(None, "jax.random.fold_in(key, 1)")
    compress = problem.settings.training.compress
    one = call("nr.train", net, init, data, compress=compress, **options)
    each = f"{one}\nfor key in jax.random.split({key}, {seeds})"
    return f'nr.concat(\n    [\n{indented(each, 8)}\n    ],\n    "seed",\n)'


def training_lines(problem: Problem) -> list[str]:
    settings, asked = problem.settings, set(problem.settings.questions)
    lines: list[str] = []
    if asked & set(TRAINED):
        lines += [
            *heading("ReLU networks"),
            f"relu = {network_code(problem)}",
            f"samples = {narrowed(problem, 'data')}",
            f"relu_runs = {_trained(problem, 'relu', 'samples', 0)}",
            "print(relu_runs.loss[:, -1])",
        ]
    if asked & {"predict", "certify"}:
        name = settings.predict.gating
        alone = next(iter(problem.candidates)) if len(problem.candidates) == 1 else None
        followed = repr(name or alone) if name or alone else "who.winner"
        lines += [
            *heading("gated networks"),
            f"arch, gated_data = gatings[{followed}]",
            "net = nr.GDLN(arch)",
            f"gated_samples = {narrowed(problem, 'gated_data')}",
            f"gated_runs = {_trained(problem, 'net', 'gated_samples', 1)}",
        ]
    if "predict" in asked:
        lines += _prediction(problem)
    return lines


def _prediction(problem: Problem) -> list[str]:
    settings = problem.settings
    network, training = settings.network, settings.training
    dtype = None if training.dtype == "float64" else training.dtype
    init = call("net.init", "key", scale=network.scale, kind=network.kind, dtype=dtype)
    rate = learning_rate(training)
    lines = [
        *heading("their prediction, from the initial weights, with nothing fitted"),
        f"race = nr.reduce(arch, gated_data, tolerance={settings.reduce.tolerance!r})",
        "predicted = []",
        f"for key in jax.random.split({key_code(problem, 1)}, {training.seeds}):",
        f"    weights = {init}",
        "    weights = {edge: np.asarray(w, np.float64) for edge, w in weights.items()}",
        "    start = race.start(weights)",
        f"    solved = race.solve(times=gated_runs.time, start=start, learning_rate={rate!r})",
        "    predicted.append(solved)",
        "for seed, solved in enumerate(predicted):",
        "    print(nr.compare(gated_runs.isel(seed=seed), solved))",
    ]
    if set(TRAINED) & set(settings.questions):
        lines.append("    print(nr.compare(relu_runs.isel(seed=seed), solved))")
    return lines


def gates_lines(problem: Problem) -> list[str]:
    settings, asked = problem.settings, set(problem.settings.questions)
    seeds = settings.training.seeds
    lines: list[str] = []
    if "types" in asked:
        made = call("nr.reln.types", "data", **types_options(settings))
        lines += [*heading("types of neurons"), f"types = {made}", "print(types)"]
    if "discover" in asked:
        looked = min(settings.discover.networks or seeds, seeds)
        made = call("nr.reln.discover", "runs", "samples", **discover_options(settings))
        lines += [
            *heading("gates found in the activity of the ReLU networks"),
            f"runs = [relu_runs.isel(seed=seed) for seed in range({looked})]",
            f"found = {made}",
            "print(found)",
        ]
    if "certify" in asked:
        floor = f"relu_runs.isel(seed=(seed + 1) % {seeds})" if seeds > 1 else "None"
        one = call(
            "nr.reln.certify",
            "relu_runs.isel(seed=seed)",
            "gated_runs.isel(seed=seed)",
            floor=Raw(None, floor),
        )
        lines += [
            *heading("is the gated network the same function?"),
            f"certificates = [\n{indented(one)}\n    for seed in range({seeds})\n]",
            "print(certificates[0])",
        ]
    if "explain" in asked:
        task = "gatings" if problem.candidates else "None"
        options = {"data": Raw(None, "samples"), **explain_options(settings)}
        made = call("nr.explain", "relu_runs", task, **options)
        lines += [
            *heading("which small model explains the ReLU networks?"),
            f"explanation = {made}",
            "print(explanation)",
        ]
    return lines

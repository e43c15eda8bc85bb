"""A study as a Python script: the same computations, written with the library's public names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralrace import __version__
from neuralrace.study import expressions
from neuralrace.study.build import (
    SAMPLE,
    UNGATED,
    Problem,
    chain_parts,
    ends_of,
    graph_of,
    hidden_widths,
    masks_of,
    pathway_names,
    pathway_widths,
)
from neuralrace.study.copies import copies, own_modules
from neuralrace.study.files import read_table
from neuralrace.study.grid import spread
from neuralrace.study.options import (
    Raw,
    contest_options,
    discover_options,
    explain_options,
    learning_rate,
    training_options,
    types_options,
)
from neuralrace.study.work import NEED_WEIGHTS

if TYPE_CHECKING:
    from neuralrace.study.model import Gating, Settings, Task

WIDTH = 88
"""Columns of a line; a call that is longer is broken at its arguments."""

TRAINED = ("train", "discover", "certify", "explain")
"""Questions for which ReLU networks are trained."""


def script_of(problem: Problem) -> str:
    """The whole script."""
    settings = problem.settings
    body = [
        *_task_lines(problem),
        *_gating_lines(problem),
        *_theory_lines(problem),
        *_phase_lines(problem),
        *_training_lines(problem),
        *_gates_lines(problem),
    ]
    text = "\n".join(body)
    own = own_modules(problem)
    title = _one_line(settings.title or Path(problem.document.file).stem)
    head = [
        f'"""{title}. Made from a study by neuralrace {__version__}."""',
        "",
        *(["import sys"] if own else []),
        *(["from pathlib import Path"] if "HERE" in text or own else []),
        *([""] if own or "HERE" in text else []),
        "import jax",
        *(["import numpy as np"] if "np." in text else []),
        *(["import optax"] if "optax." in text else []),
        "",
        "import neuralrace as nr",
        "",
        'jax.config.update("jax_enable_x64", True)',
        *(
            ["HERE = Path(__file__).parent  # the files of the study lie beside this script"]
            * ("HERE" in text or bool(own))
        ),
    ]
    if own:
        head += ["sys.path.insert(0, str(HERE))", ""]
        head += [f"import {name}  # noqa: E402" for name in own]
    return "\n".join([*head, *body, ""])


# ---- writing code -------------------------------------------------------------------------------


def call(function: str, *arguments: str, **options: Any) -> str:
    """A call, on one line where it fits.

    ```python
    >>> from neuralrace.study.script import call
    >>> call("nr.reduce", "arch", "data", tolerance=1e-8)
    'nr.reduce(arch, data, tolerance=1e-08)'

    ```
    """
    parts = [*arguments, *(f"{name}={value!r}" for name, value in options.items())]
    one = f"{function}({', '.join(parts)})"
    if len(one) <= WIDTH and "\n" not in one:
        return one
    return f"{function}(\n" + "".join(f"{_indented(part)},\n" for part in parts) + ")"


def mapping(entries: Mapping[str, str]) -> str:
    """A dictionary of code by name, on one line where it fits."""
    parts = [f"{name!r}: {value}" for name, value in entries.items()]
    one = "{" + ", ".join(parts) + "}"
    if len(one) <= WIDTH - 8 and "\n" not in one:
        return one
    return "{\n" + "".join(f"{_indented(part)},\n" for part in parts) + "}"


def _indented(text: str, by: int = 4) -> str:
    return "\n".join(" " * by + line for line in text.split("\n"))


def _heading(text: str) -> list[str]:
    return ["", f"# {_one_line(text)}"]


def _one_line(text: str) -> str:
    """Text of the user's for a comment or a docstring: it cannot end either."""
    return " ".join(text.split()).replace("\\", "/").replace('"', "'")


# ---- task, network, gatings ---------------------------------------------------------------------


def _task_lines(problem: Problem) -> list[str]:
    settings = problem.settings
    lines = [*_heading("the task"), f"data = {task_code(problem, settings.task)}"]
    if settings.training.dtype != "float64":
        kind = settings.training.dtype
        lines += [
            "",
            "",
            "def narrow(data):",
            f'    """The data in {kind}, as the networks are trained."""',
            f"    cut = lambda arrays: {{n: np.asarray(a, {kind!r}) for n, a in arrays.items()}}",
            "    weight, labels = data.sample_weight, data.labels",
            "    return nr.Dataset(cut(data.x), cut(data.y), cut(data.gates), weight, labels)",
            "",
        ]
    return lines


def task_code(problem: Problem, task: Task) -> str:
    """The dataset of a task."""
    if task.file is not None:
        options: dict[str, Any] = {
            "x": _columns(task.x, "x"),
            "y": _columns(task.y, "y"),
            "labels": list(task.labels),
        }
        options |= {} if task.weight is None else {"weight": task.weight}
        options |= {"standardise": True} if task.standardise else {}
        options |= {"scale": dict(task.scale)} if task.scale else {}
        return call("nr.study.read_task", _copy(problem, task.file), **options)
    if task.python is not None:
        module, _, function = task.python.partition(":")
        return call(f"{module}.{function}", **task.parameters)
    made = call(f"nr.tasks.{task.builtin}", **task.parameters)
    return f"{made}[0]  # the trained routes" if task.builtin == "routing" else made


def _copy(problem: Problem, file: str) -> str:
    """The path of the copy of a file."""
    return f"HERE / {copies(problem)[problem.document.folder / file]!r}"


def _columns(columns: Mapping[str, tuple[str, ...]], node: str) -> dict[str, list[str]]:
    return {name or node: list(names) for name, names in columns.items()}


def _network_code(problem: Problem) -> str:
    settings, data = problem.settings, problem.data
    network = settings.network
    options: dict[str, Any] = {"leak": network.leak} if network.leak else {}
    options |= {"bias": True} if network.bias else {}
    plain = network.graph is None and [*data.x, *data.y] == ["x", "y"]
    if plain:
        ends = data.x["x"].shape[1], data.y["y"].shape[1]
        sizes = (ends[0], *hidden_widths(settings), ends[1])
        return call("nr.ReLUNetwork", repr(sizes), **options)
    return call("nr.ReLUNetwork", "graph", **options)


def _graph_lines(problem: Problem) -> list[str]:
    """The graph, where the network is no plain chain."""
    settings, data = problem.settings, problem.data
    if settings.network.graph is not None:
        arch = graph_of(settings, data)
        sizes, edges = dict(arch.sizes), dict(arch.edges)
    elif [*data.x, *data.y] == ["x", "y"]:
        return []
    else:
        sizes, edges = chain_parts(data, hidden_widths(settings))
    return [f"graph = {call('nr.Architecture', sizes=sizes, edges=edges)}"]


def _gating_lines(problem: Problem) -> list[str]:
    lines = _graph_lines(problem)
    if problem.candidates:
        lines += _heading("which pathway is on for which sample")
        if problem.settings.task.file is not None and _uses_columns(problem):
            file = _copy(problem, problem.settings.task.file)
            lines.append(f"table = nr.study.read_table({file})")
        codes = gating_codes(problem, problem.settings)
        lines.append(f"gatings = {mapping(codes)}")
    return lines


def gating_codes(problem: Problem, settings: Settings) -> dict[str, str]:
    """The code of every gating by name."""
    return {n: _gating_code(problem, g, settings) for n, g in settings.gatings.items()}


def _gating_code(problem: Problem, gating: Gating, settings: Settings) -> str:
    if gating.builtin is not None:
        return call(f"nr.tasks.{gating.builtin}", "data", **gating.parameters)
    if gating.python is not None:
        module, _, function = gating.python.partition(":")
        return call(f"{module}.{function}", "data", **gating.parameters)
    if gating.gates is not None:
        gates = {n: t for n, t in gating.gates.items() if t.strip() != expressions.ALWAYS}
        codes = mapping({n: _mask_code(problem, t) for n, t in gates.items()})
        return f"(graph, data.gated({codes}))"
    folder, place = problem.document.folder, problem.place
    masks = masks_of(gating, settings, problem.data, folder, place)
    widths = pathway_widths(gating, settings, masks)
    if gating.file is not None:
        code = f"nr.study.read_masks({_copy(problem, gating.file)})"
    elif gating.masks is not None:
        code = mapping({n: _mask_code(problem, text) for n, text in gating.masks.items()})
    else:
        code = _each_code(problem, str(gating.each))
    return call("nr.pathways", "data", code, hidden=widths, **ends_of(gating))


def _each_code(problem: Problem, label: str) -> str:
    if label == SAMPLE and label not in problem.data.labels:
        return "data.one_per_sample()"
    values = np.unique(np.asarray(problem.data.labels[label]))
    code = f"np.asarray(data.labels[{label!r}])"
    names = pathway_names(label, values)
    return mapping({name: f"{code} == {value!r}" for name, value in names.items()})


def _mask_code(problem: Problem, text: str) -> str:
    tree = expressions.parse(text)
    return "None" if tree is None else expressions.code(tree, lambda name: _spelled(problem, name))


def _spelled(problem: Problem, name: expressions.Name) -> str:
    """The code of a label, a column or a node."""
    data = problem.data
    if name.name in data.labels:
        return f"np.asarray(data.labels[{name.name!r}])"
    if name.name in {**data.x, **data.y} and not _is_column(problem, name.name):
        end = "x" if name.name in data.x else "y"
        return f"data.{end}[{name.name!r}][:, {name.column or 0}]"
    if name.name == SAMPLE and not _is_column(problem, SAMPLE):
        return "np.arange(1, data.n_samples + 1)"
    return f"table[{name.name!r}]"


def _is_column(problem: Problem, name: str) -> bool:
    task, folder = problem.settings.task, problem.document.folder
    if task.file is None:
        return False
    column = read_table(folder / task.file).get(name)
    return column is not None and column.ndim == 1


def _uses_columns(problem: Problem) -> bool:
    codes = "".join(gating_codes(problem, problem.settings).values())
    return "table[" in codes


# ---- theory -------------------------------------------------------------------------------------


def _theory_lines(problem: Problem) -> list[str]:
    settings, asked = problem.settings, problem.settings.questions
    lines: list[str] = []
    if "contest" in asked or _needs_winner(problem):
        options = contest_options(settings) | {"key": settings.training.key}
        if settings.contest.width is not None:
            options["width"] = settings.contest.width
        task = "gatings" if problem.candidates else "data"
        lines += _heading("which gating learns first? Nothing is trained")
        lines.append(f"who = {call('nr.contest', task, **options)}")
        lines.append("print(who)" if settings.contest.check else "print(who.winner, who.times)")
    if "reduce" in asked:
        tolerance = settings.reduce.tolerance
        lines += _heading("the neural race reduction of every gating")
        pairs = "gatings" if problem.candidates else f"{{{UNGATED!r}: (graph, data)}}"
        lines.append("races = {")
        lines.append(f"    name: nr.reduce(*pair, tolerance={tolerance!r})")
        lines += [f"    for name, pair in {pairs}.items()", "}"]
        lines += ["for name, race in races.items():", '    print(name, race, sep="\\n")']
    return lines


def _needs_winner(problem: Problem) -> bool:
    settings = problem.settings
    follows = bool({"predict", "certify"} & set(settings.questions))
    return follows and settings.predict.gating is None and len(problem.candidates) > 1


def _phase_lines(problem: Problem) -> list[str]:
    settings = problem.settings
    options = settings.phase_diagram
    if "phase_diagram" not in settings.questions or options is None:
        return []
    varied = with_raw(settings, options.key.split("."), Raw(None, "value"))
    values = spread(options.values)
    name = options.name or options.key.rpartition(".")[2]
    arguments = contest_options(settings) | {"precision": options.precision}
    lines = [
        *_heading(f"where does the winner change with {name}?"),
        "def task(value):",
        f"    return {_indented(task_code(problem, varied.task)).strip()}",
        "",
        "",
        "def candidates(value):",
        "    data = task(value)",
        f"    return {_indented(mapping(gating_codes(problem, varied))).strip()}",
        "",
        "",
        f"values = {values!r}",
        f"phases = {call('nr.phase_diagram', 'candidates', repr(name), 'values', **arguments)}",
        "print(phases)" if settings.contest.check else "print(phases.crossovers)",
    ]
    if options.networks:
        chosen = "values" if options.networks_at is None else repr(list(options.networks_at))
        trained = training_options(problem) | {"seeds": options.networks}
        lines += [
            f"relu = {_network_code(problem)}",
            f"networks_at = {chosen}",
            "many = "
            + call(
                "nr.train_ensemble",
                "relu",
                f"[{_narrowed(problem, 'task(value)')} for value in networks_at]",
                axis=Raw(None, '("value", networks_at)'),
                key=Raw(None, _keys(problem, 0)),
                **trained,
            ),
            "learning_times = [",
            f"    nr.trajectory.crossing_time(many.time, loss, {_criterion_code(settings)})",
            "    for loss, value in zip(many.loss, networks_at, strict=True)",
            "]",
            "print(learning_times)",
        ]
    return lines


def with_raw(model: Any, path: list[str], raw: Raw) -> Any:
    """Settings with a piece of code in place of one value; nothing is checked."""
    first, *rest = path
    if isinstance(model, Mapping):
        return {**model, first: with_raw(model[first], rest, raw) if rest else raw}
    inner = with_raw(getattr(model, first), rest, raw) if rest else raw
    return model.model_copy(update={first: inner})


def _criterion_code(settings: Settings) -> str:
    level = settings.contest.criterion
    text = repr(0.2 if level is None else level)
    return f"{text} * nr.dataset.zero_loss(task(value))" if settings.contest.relative else text


# ---- simulation ---------------------------------------------------------------------------------


def _keys(problem: Problem, which: int) -> str:
    return f"jax.random.split(jax.random.key({problem.settings.training.key}))[{which}]"


def _narrowed(problem: Problem, code: str) -> str:
    return code if problem.settings.training.dtype == "float64" else f"narrow({code})"


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
        codes = {n: _narrowed(problem, task_code(problem, task)) for n, task in tasks.items()}
        options["evaluate"] = Raw(None, mapping(codes))
    key = _keys(problem, which)
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
    return f'nr.concat(\n    [\n{_indented(each, 8)}\n    ],\n    "seed",\n)'


def _training_lines(problem: Problem) -> list[str]:
    settings, asked = problem.settings, set(problem.settings.questions)
    lines: list[str] = []
    if asked & set(TRAINED):
        lines += [
            *_heading("ReLU networks"),
            f"relu = {_network_code(problem)}",
            f"samples = {_narrowed(problem, 'data')}",
            f"relu_runs = {_trained(problem, 'relu', 'samples', 0)}",
            "print(relu_runs.loss[:, -1])",
        ]
    if asked & {"predict", "certify"}:
        name = settings.predict.gating
        alone = next(iter(problem.candidates)) if len(problem.candidates) == 1 else None
        followed = repr(name or alone) if name or alone else "who.winner"
        lines += [
            *_heading("gated networks"),
            f"arch, gated_data = gatings[{followed}]",
            "net = nr.GDLN(arch)",
            f"gated_samples = {_narrowed(problem, 'gated_data')}",
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
        *_heading("their prediction, from the initial weights, with nothing fitted"),
        f"race = nr.reduce(arch, gated_data, tolerance={settings.reduce.tolerance!r})",
        "predicted = []",
        f"for key in jax.random.split({_keys(problem, 1)}, {training.seeds}):",
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


# ---- gates --------------------------------------------------------------------------------------


def _gates_lines(problem: Problem) -> list[str]:
    settings, asked = problem.settings, set(problem.settings.questions)
    seeds = settings.training.seeds
    lines: list[str] = []
    if "types" in asked:
        made = call("nr.reln.types", "data", **types_options(settings))
        lines += [*_heading("types of neurons"), f"types = {made}", "print(types)"]
    if "discover" in asked:
        looked = min(settings.discover.networks or seeds, seeds)
        made = call("nr.reln.discover", "runs", "samples", **discover_options(settings))
        lines += [
            *_heading("gates found in the activity of the ReLU networks"),
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
            *_heading("is the gated network the same function?"),
            f"certificates = [\n{_indented(one)}\n    for seed in range({seeds})\n]",
            "print(certificates[0])",
        ]
    if "explain" in asked:
        task = "gatings" if problem.candidates else "None"
        options = {"data": Raw(None, "samples"), **explain_options(settings)}
        made = call("nr.explain", "relu_runs", task, **options)
        lines += [
            *_heading("which small model explains the ReLU networks?"),
            f"explanation = {made}",
            "print(explanation)",
        ]
    return lines


NAMES = {
    "contest": "who",
    "reduce": "races",
    "phase_diagram": "phases",
    "train": "relu_runs",
    "predict": "predicted",
    "types": "types",
    "discover": "found",
    "certify": "certificates",
    "explain": "explanation",
}
"""What the script calls the answer to each question."""

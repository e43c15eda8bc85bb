"""From settings to the library's own objects: the task, the network, the gatings."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

import neuralrace
from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset
from neuralrace.relu import ReLUNetwork
from neuralrace.study import expressions
from neuralrace.study.copies import copies_of
from neuralrace.study.document import Document
from neuralrace.study.files import read_masks, read_table, read_task
from neuralrace.study.places import Place, StudyError, collected, raise_all, together
from neuralrace.study.steps import Call, Given, Item, Name, code, value
from neuralrace.study.targets import GATINGS, TASKS, builtin, called, own

if TYPE_CHECKING:
    from neuralrace.study.model import Gating, Settings, Task

SAMPLE = "sample"
"""`each = "sample"` means one pathway per sample, unless there is a label of that name.

In a mask it is the number of the sample, counted from 1, unless something else has that name."""

UNGATED = "graph"
"""The name of a graph without gates, where a study has no gatings."""


@final
@dataclass(frozen=True, eq=False)
class Problem:
    """A task with its network and gatings, ready for questions.

    `candidates` are `{gating: (arch, data)}`; `evaluated` are the other tasks by name. `calls` are
    the steps that make them, by their keys in the study.

    ```python
    >>> import neuralrace as nr
    >>> study = nr.Study.of(questions=["reduce"], task={"builtin": "xor"},
    ...                     gatings={"xor": {"each": "sample"}})
    >>> problem = study.check()
    >>> problem.data.n_samples, list(problem.candidates)
    (4, ['xor'])

    ```
    """

    settings: Settings
    document: Document
    data: Dataset
    relu: ReLUNetwork
    candidates: Mapping[str, tuple[Architecture, Dataset]]
    evaluated: Mapping[str, Dataset]
    calls: Mapping[str, Any]

    @property
    def place(self) -> Place:
        return self.document.place

    @property
    def refused(self) -> dict[str, StudyError]:
        """Questions that cannot be answered, and why."""
        return {name: rule.error(self.place) for name, rule in self.settings.refused.items()}

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was built, one line per part."""
        data, arch = self.data, self.relu.arch
        ends = [f"{n} ({a.shape[1]})" for n, a in (*data.x.items(), *data.y.items())]
        labels = f", labels {', '.join(data.labels)}" if data.labels else ""
        lines = [f"task: {data.n_samples} samples, {', '.join(ends)}{labels}"]
        nodes = ", ".join(f"{node} ({arch.sizes[node]})" for node in arch.hidden)
        lines.append(f"network: hidden {nodes}")
        for name, (graph, _) in self.candidates.items():
            widths = ", ".join(f"{node} ({graph.sizes[node]})" for node in graph.hidden)
            lines.append(f"gating {name}: {widths:.200}")
        lines.append(f"questions: {', '.join(self.settings.answerable)}")
        lines += [f"{name} is left out: {error.reason}" for name, error in self.refused.items()]
        if self.settings.sweep is not None:
            lines.append(sweep_sentence(self.settings))
        return tuple(lines)


def sweep_sentence(settings: Settings) -> str:
    """What a sweep computes: its cells, what is varied, seeds and batches."""
    from neuralrace.sweeps import Definition

    sweep = settings.sweep
    assert sweep is not None
    axes = {**{key: len(values) for key, values in sweep.axes.items()}, "seed": sweep.seeds}
    batches = Definition.count(axes, sweep.batch)
    told = " × ".join(f"{name} ({count})" for name, count in axes.items())
    many = f"{batches} batches" if batches > 1 else "one batch"
    return f"sweep: {math.prod(axes.values())} cells, {told}, in {many} of at most {sweep.batch}"


def build(settings: Settings, document: Document) -> Problem:
    """Everything that a study names, or an error with every key at fault."""
    place, folder = document.place, document.folder
    files = copies_of(settings, folder)
    errors: list[StudyError] = []
    evaluated: dict[str, Dataset] = {}
    calls: dict[str, Any] = {}
    for name, task in settings.training.evaluate.items():
        key = f"training.evaluate.{name}"
        with collected(errors):
            calls[key] = task_call(task, folder, files)
            evaluated[name] = task_of(task, calls[key], folder, Place(place.file, key))
    try:
        calls["task"] = task_call(settings.task, folder, files)
        data = task_of(settings.task, calls["task"], folder, place / "task")
        with (place / "network").blamed():
            arch = graph_of(settings, data)
            relu = ReLUNetwork(arch, leak=settings.network.leak, bias=settings.network.bias)
    except StudyError as error:  # gatings need both
        raise together([*errors, error]) from error
    candidates: dict[str, tuple[Architecture, Dataset]] = {}
    for name, gating in settings.gatings.items():
        key = f"gatings.{name}"
        with collected(errors):
            where = Place(place.file, key)
            call = gating_call(gating, settings, data, folder, files, where)
            candidates[name] = gating_of(gating, call, data, arch, folder, where)
            calls[key] = call
    raise_all(errors)
    return Problem(settings, document, data, relu, candidates, evaluated, calls)


# ---- the task -----------------------------------------------------------------------------------


def task_call(task: Task, folder: Path, files: Mapping[Path, str]) -> Any:
    """The step that makes a task."""
    if task.python is not None:
        return Call(task.python.replace(":", "."), **task.parameters)
    if task.builtin is not None:
        made = Call(f"nr.tasks.{task.builtin}", **task.parameters)
        return Item(made, 0) if task.builtin == "routing" else made  # the trained routes
    if task.file is None:
        return None
    columns = lambda end, node: {name or node: list(names) for name, names in end.items()}
    options: dict[str, Any] = {"x": columns(task.x, "x"), "y": columns(task.y, "y")}
    groups = {name: list(columns) for name, columns in task.groups.items()}
    extra = {"weight": task.weight, "standardise": task.standardise, "scale": dict(task.scale)}
    extra |= {"labels": list(task.labels), "groups": groups}
    options |= {n: each for n, each in extra.items() if each or n == "labels"}
    return Call("nr.study.read_task", copied(task.file, folder, files), **options)


def copied(file: str, folder: Path, files: Mapping[Path, str]) -> Given:
    """The path of a file here, and in code that of its copy."""
    return Given(folder / file, f"HERE / {files[folder / file]!r}")


def task_of(task: Task, call: Any, folder: Path, place: Place) -> Dataset:
    """The dataset that a task names, without gates."""
    if task.file is not None:
        with (place / "file").blamed():
            read_table(folder / task.file)
        with place.blamed():
            return read_task(*value(list(call.arguments), _none), **value(call.options, _none))
    if task.builtin is not None:
        function = builtin(task.builtin, TASKS, "task", place / "builtin")
    else:
        function = own(str(task.python), folder, place / "python")
    made = called(function, (), task.parameters, place)
    if isinstance(made, tuple) and made:
        made = made[0]  # trained and untrained routes
    if not isinstance(made, Dataset):
        raise (place / "python").error(
            "the function returns no task",
            got=f"{type(made).__name__} {made!r:.60}",
            wanted="an nr.Dataset",
            fix="return nr.Dataset({'x': inputs}, {'y': targets}, labels={…})",
        )
    return made.gated({})


def _none(name: str) -> Any:
    """What names stand for where there are none."""
    raise KeyError(name)


def names_of(task: Task, folder: Path, data: Dataset) -> dict[str, Given]:
    """What masks may name: labels, columns of the task's file, nodes; else `sample`, its number."""
    columns = {} if task.file is None else read_table(folder / task.file)
    ends = {"x": data.x, "y": data.y}
    return {
        SAMPLE: Given(np.arange(1, data.n_samples + 1), "np.arange(1, data.n_samples + 1)"),
        **{
            name: Given(np.asarray(node), f"data.{end}[{name!r}]")
            for end, nodes in ends.items()
            for name, node in nodes.items()
        },
        **{n: Given(c, f"table[{n!r}]") for n, c in columns.items() if c.ndim == 1},
        **{
            name: Given(np.asarray(label), f"np.asarray(data.labels[{name!r}])")
            for name, label in data.labels.items()
        },
    }


# ---- the network --------------------------------------------------------------------------------


def hidden_widths(settings: Settings) -> tuple[int, ...]:
    """The widths of the hidden layers."""
    network = settings.network
    return network.widths * (network.depth or 1)


def neurons(settings: Settings) -> int:
    """How many neurons the ReLU network has in its first hidden layer, or in its widest node.

    Pathways divide them equally by default, and the reference of a contest has as many.
    """
    graph = settings.network.graph
    return hidden_widths(settings)[0] if graph is None else max(graph.sizes.values())


def graph_of(settings: Settings, data: Dataset) -> Architecture:
    """The graph of the ReLU network: the user's own, recurrent, a chain, or layers of nodes."""
    graph = settings.network.graph
    ends = {n: a.shape[1] for n, a in {**data.x, **data.y}.items()}
    if graph is not None:
        named = {end for pair in graph.edges.values() for end in pair}
        sizes = {n: s for n, s in ends.items() if n in named} | graph.sizes
        return Architecture(sizes=sizes, edges=dict(graph.edges))
    if settings.network.recurrent:
        return value(recurrent_call(settings), {"data": data, "nr": neuralrace}.__getitem__)
    return Architecture(*chain_parts(data, hidden_widths(settings)))


def recurrent_call(settings: Settings) -> Item:
    """The step that makes a recurrent network for a task of sequences."""
    made = Call("nr.tasks.common_pathway", Name("data"), hidden=hidden_widths(settings)[0])
    return Item(made, 0)


def chain_parts(
    data: Dataset, widths: tuple[int, ...]
) -> tuple[dict[str, int], dict[str, tuple[str, str]]]:
    """Sizes and edges of hidden layers in a row, between all inputs and all outputs."""
    x = {n: a.shape[1] for n, a in data.x.items()}
    y = {n: a.shape[1] for n, a in data.y.items()}
    hidden = {f"h{i + 1}" if len(widths) > 1 else "h": w for i, w in enumerate(widths)}
    if len(x) == len(y) == 1:
        row = [*x, *hidden, *y]
        edges = {f"W{i + 1}": pair for i, pair in enumerate(pairwise(row))}
    else:
        layers = [list(x), *([node] for node in hidden), list(y)]
        edges = {
            f"{source}_{target}": (source, target)
            for low, high in pairwise(layers)
            for source in low
            for target in high
        }
    return {**x, **hidden, **y}, edges


# ---- the gatings --------------------------------------------------------------------------------


def gating_call(
    gating: Gating,
    settings: Settings,
    data: Dataset,
    folder: Path,
    files: Mapping[Path, str],
    place: Place,
) -> Any:
    """The step that makes the gated network of a gating, and the task with its gates."""
    if gating.builtin is not None:
        return Call(f"nr.tasks.{gating.builtin}", Name("data"), **gating.parameters)
    if gating.python is not None:
        return Call(gating.python.replace(":", "."), Name("data"), **gating.parameters)
    if gating.gates is not None:
        gates = _evaluated(gating.gates, settings, data, folder, place / "gates")
        there = {name: mask for name, mask in gates.items() if mask.value is not None}
        return Name("graph"), Call("data.gated", there)
    masks = masks_of(gating, settings, data, folder, files, place)
    widths = pathway_widths(gating, settings, masks.value)
    return Call("nr.pathways", Name("data"), masks, hidden=widths, **ends_of(gating))


def gating_of(
    gating: Gating, call: Any, data: Dataset, arch: Architecture, folder: Path, place: Place
) -> tuple[Architecture, Dataset]:
    """The gated network of a gating, and the task with its gates."""
    if gating.builtin is not None or gating.python is not None:
        return _called_gating(gating, data, folder, place)
    made = {"data": data, "graph": arch, "nr": neuralrace}.__getitem__
    with (place / "gates" if gating.gates is not None else place).blamed():
        arch, data = value(call, made)
    if gating.gates is not None:
        _check_gates(arch, data, place / "gates")
    return arch, data


def masks_of(
    gating: Gating,
    settings: Settings,
    data: Dataset,
    folder: Path,
    files: Mapping[Path, str],
    place: Place,
) -> Given:
    """For each pathway where it is on: a mask, or None for always."""
    if gating.masks is not None:
        (place / "masks").require(
            gating.masks,
            "there are no pathways",
            got="masks = {}",
            wanted="one expression per pathway",
            fix='for example masks = { one = "context == 1" }',
        )
        masks = _evaluated(gating.masks, settings, data, folder, place / "masks")
        return Given(value(masks, _none), code(masks))
    if gating.each is not None:
        return _each(gating.each, data, place / "each")
    with (place / "file").blamed():
        masks = read_masks(folder / str(gating.file))
    for name, mask in masks.items():
        _check_mask(mask, data, place / "file", name)
    path = copied(str(gating.file), folder, files)
    return Given(masks, code(Call("nr.study.read_masks", path)))


def pathway_widths(
    gating: Gating, settings: Settings, masks: Mapping[str, Any]
) -> int | dict[str, int]:
    """Neurons of each pathway; by default those of the hidden layers, divided equally."""
    if gating.hidden is not None:
        return gating.hidden
    return max(1, neurons(settings) // max(1, len(masks)))


def ends_of(gating: Gating) -> dict[str, dict[str, tuple[str, ...]]]:
    """Which pathways do not read all inputs, or do not write all outputs."""
    ends = {"inputs": dict(gating.inputs), "outputs": dict(gating.outputs)}
    return {name: those for name, those in ends.items() if those}


def _called_gating(
    gating: Gating, data: Dataset, folder: Path, place: Place
) -> tuple[Architecture, Dataset]:
    if gating.builtin is not None:
        key = place / "builtin"
        function = builtin(gating.builtin, GATINGS, "gating", key)
    else:
        key = place / "python"
        function = own(str(gating.python), folder, key)
    made = called(function, (data,), gating.parameters, place)
    pair = made if isinstance(made, tuple) and len(made) == 2 else (None, None)
    if not isinstance(pair[0], Architecture) or not isinstance(pair[1], Dataset):
        raise key.error(
            "the function returns no gating",
            got=f"{type(made).__name__} {made!r:.60}",
            wanted="(arch, data): an nr.Architecture and an nr.Dataset with gates",
            fix="return nr.pathways(data, masks, hidden=100)",
        )
    return pair[0], pair[1]


def _evaluated(
    masks: Mapping[str, Any], settings: Settings, data: Dataset, folder: Path, place: Place
) -> dict[str, Given]:
    names = names_of(settings.task, folder, data)
    arrays = {name: each.value for name, each in names.items()}
    found: dict[str, Given] = {}
    errors: list[StudyError] = []
    for name, text in masks.items():
        with collected(errors), (place / name).blamed():
            tree = expressions.parse(text)
            found[name] = Given(None, "None")
            if tree is not None:
                mask = expressions.evaluate(tree, arrays)
                _check_mask(mask, data, place / name, name)
                found[name] = Given(mask, expressions.code(tree, lambda n: _spelled(n, names)))
    raise_all(errors)
    return found


def _spelled(name: expressions.Name, names: Mapping[str, Given]) -> str:
    """The code of a label, a column or a node."""
    array = names[name.name]
    return array.code if array.value.ndim == 1 else f"{array.code}[:, {name.column or 0}]"


def _each(label: str, data: Dataset, place: Place) -> Given:
    if label == SAMPLE and label not in data.labels:
        return Given(data.one_per_sample(), "data.one_per_sample()")
    if label not in data.labels:
        raise place.unknown("label", label, [*data.labels, SAMPLE])
    values, array = np.asarray(data.labels[label]), f"np.asarray(data.labels[{label!r}])"
    masks = {
        name: Given(values == each, f"{array} == {each!r}")
        for name, each in pathway_names(label, np.unique(values)).items()
    }
    return Given(value(masks, _none), code(masks))


def pathway_names(label: str, values: np.ndarray) -> dict[str, Any]:
    """A name for the pathway of each value of a label: an identifier that no other value has.

    ```python
    >>> import numpy as np
    >>> from neuralrace.study.build import pathway_names
    >>> pathway_names("size", np.array([-0.5, 1.0]))
    {'size_m0_5': -0.5, 'size1': 1.0}
    >>> list(pathway_names("kind", np.array(["p+", "p-"])))
    ['kind_p_', 'kind_p__2']

    ```
    """
    found: dict[str, Any] = {}
    for each in values.tolist():
        text = f"{each:g}" if isinstance(each, float) else str(each)
        text = f"_m{text[1:]}" if text[:1] == "-" else text
        text = f"_{text}" if text[:1].isalpha() else text
        first = re.sub(r"[^A-Za-z0-9_]", "_", f"{label}{text}")
        first = first if first[:1].isalpha() else f"p{first}"
        name, number = first, 2
        while name in found:
            name, number = f"{first}_{number}", number + 1
        found[name] = each
    return found


def _check_mask(mask: np.ndarray, data: Dataset, place: Place, name: str) -> None:
    place.require(
        mask.shape == (data.n_samples,),
        f"the mask {name!r} does not fit the task",
        got=f"{len(mask)} values",
        wanted=f"{data.n_samples}, one per sample",
        fix="write one row per sample, in the order of the task",
    )
    if not mask.any():
        raise place.error(
            f"the pathway {name!r} is on for no sample",
            got=f"a mask of {data.n_samples} samples that is nowhere on",
            wanted="at least one sample",
            fix="check the values: " + "; ".join(_values(data)),
        )


def _values(data: Dataset) -> list[str]:
    """The values that each label has, for a message."""
    said = []
    for name, label in data.labels.items():
        values = np.unique(np.asarray(label)).tolist()
        rest = " …" if len(values) > 6 else ""
        said.append(f"{name} is one of {', '.join(map(repr, values[:6]))}{rest}")
    return said or ["the task has no labels"]


def _check_gates(arch: Architecture, data: Dataset, place: Place) -> None:
    known = [*arch.sizes, *arch.edges]
    for name in data.gates:
        if name not in known:
            raise (place / name).unknown("node or edge", name, known)

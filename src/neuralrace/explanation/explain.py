"""All explanations of one ReLU network that the package can make, compared with it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import final

import jax
import numpy as np
from jaxtyping import Int

from neuralrace.architecture import Architecture
from neuralrace.checks import by_name, list_of_names, one_of, random_key, real_number, switch
from neuralrace.contests.times import Candidates, check_one_task, checked_candidate
from neuralrace.dataset import Dataset, matched
from neuralrace.dynamics import train as trained
from neuralrace.dynamics import train_ensemble
from neuralrace.errors import NeuralRaceError, check_kind, listed, whole_number
from neuralrace.explanation.patterns import of_patterns
from neuralrace.explanation.table import GATING, NARROW, STAGED, TYPES, Explanation, Row
from neuralrace.gdln import GDLN, Network
from neuralrace.progress import progress
from neuralrace.reduction import reduce
from neuralrace.reln import aligned, consistency, discover, staged
from neuralrace.reln import types as types_of
from neuralrace.reln.observed.runs import (
    check_trained_on,
    descent_of,
    first_weights,
    not_descent,
    relu_of,
    single_runs,
    single_weights,
)
from neuralrace.relu import ReLUNetwork
from neuralrace.trajectory import Trajectory, compare
from neuralrace.types import Key

ROWS = ("gatings", "discovered", "aligned", "staged", "types", "narrow")
"""What can be in the table; `gatings` are the user's own."""

COMPARED = ("discovered", "staged", "narrow")
"""Rows that need a trained ReLU network, so that there are none with predictions only."""

FOLLOW = ("discovered", "staged")
"""Rows that start from the first recorded weights of the run."""

RECORDS = 200
"""About how often a network that is trained here is recorded, half of it evenly in log time."""


def explain(
    run_or_data: Trajectory | Dataset,
    gatings: Candidates | None = None,
    *,
    data: Dataset | None = None,
    width: int | None = None,
    scale: float | None = None,
    learning_rate: float | None = None,
    steps: int | None = None,
    seeds: int = 5,
    train: bool = True,
    rows: Sequence[str] = ROWS,
    types: int = 8,
    stages: int = 64,
    most: int = 6,
    neurons: int = 2000,
    key: Key = 0,
) -> Explanation:
    """Which small model explains a ReLU network: all of them in one table, best first.

    | row | what it is |
    |---|---|
    | your gatings | gated networks from random weights with the scale of the network |
    | `discovered` | gates found in the first network (`reln.discover`, number by the elbow) |
    | `aligned` | gates that small neurons align to (`reln.aligned`), predicted |
    | `staged` | the first network's own gates, constant in stages (`reln.staged`) |
    | `types` | self-gated types of neurons (`reln.types`), predicted |
    | `narrow` | a ReLU network of as many neurons as types, with the same total strength |

    For each: the errors of loss, mean |ΔL| / L(0), and outputs, mean distance over √(2 L(0)), the
    same in units of the distance of two seeds of the network, the share of its gates that a ReLU
    network would keep (`reln.consistency`), and how many numbers evolve, after reduction where
    there is one. Errors are means over all networks that are explained, and over `seeds` random
    starts of the gatings and of the narrow network; `discovered` and `staged` follow the first
    network from its own start and are compared with it alone.

    **Given data** it trains `seeds` networks, and says so. **Given a run**, it explains that run:
    width, scale and step are those of the run. The distance of seeds is that of the other members
    where the run is an ensemble over seeds, else that of `seeds − 1` networks trained here. With
    `train=False` no ReLU network is trained: data gives predictions only, and a run is compared
    without a distance of seeds.

    **Arguments:** `run_or_data`, the task, or a run of a `ReLUNetwork` with
    `record={"weights": True}`, and then `data`, the dataset it was trained on. `gatings`,
    `{name: (arch, data)}`. For data alone, `width` of one hidden layer, `scale`, the standard
    deviation of all initial weights, `learning_rate` and `steps`. `rows`, which rows to make:
    fewer are faster. `types`, how many types, and neurons of the narrow network; `stages`, how
    many stages; `most`, the most pathways to try; `neurons`, how many the wide limit behind the
    types follows. `key`, a JAX key or an integer, draws everything random.

    **A run by another optimizer, in batches, on another loss or of one checkpoint** cannot be
    followed by another network. Your gatings and `most` discovered pathways are then compared by
    the patterns of its neurons alone; all else is left out, and the reason is told.

    **Assumes** one hidden layer for `staged`, `types` and `narrow`; they are left out otherwise.
    A row that cannot be made is left out, and the reason is told.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.tasks.extended_xor(0.4)
    >>> found = nr.explain(data, {"xor": nr.tasks.xor_pathways(data)}, width=64, scale=1e-4,
    ...                    learning_rate=0.1, steps=400, seeds=2, rows=["gatings", "narrow"],
    ...                    types=4)
    >>> sorted(row.name for row in found.rows)
    ['narrow network of 4 neurons', 'xor']
    >>> found["xor"].variables, found["xor"].loss < 0.05
    (8, True)

    ```
    """
    asked = _Asked(
        rows=_checked_rows(rows, gatings),
        types=whole_number("the number of types", types, fix="for example types=8"),
        stages=whole_number("the number of stages", stages, fix="for example stages=64"),
        most=whole_number("most", most, fix="for example most=6"),
        neurons=whole_number("the number of neurons", neurons, fix="for example neurons=2000"),
        seeds=whole_number("seeds", seeds, fix="for example seeds=5"),
        key=random_key(key, "explain"),
    )
    train = switch("train", train)
    given = {
        "width": width, "scale": scale, "learning_rate": learning_rate, "steps": steps
    }  # fmt: skip
    if isinstance(run_or_data, Dataset):
        question = _of_data(run_or_data, data, given, asked, train)
    else:
        runs, task = _checked_run(run_or_data, data, given)
        reason = not_descent(runs[0])
        if reason is not None:
            named = {} if gatings is None else gatings
            check_one_task({"data": (relu_of(runs[0]).arch, task), **named})
            return of_patterns(runs[0], task, reason, asked.rows, named, asked.most, asked.key)
        question = _of_run(runs, task, asked, train)
    named = {} if gatings is None else gatings
    check_one_task({"data": (question.net.arch, question.data), **named})
    return _table(question, asked, named)


@final
@dataclass(frozen=True, eq=False)
class _Asked:
    """The options of `explain`, checked."""

    rows: tuple[str, ...]
    types: int
    stages: int
    most: int
    neurons: int
    seeds: int
    key: jax.Array


@final
@dataclass(frozen=True, eq=False)
class _Question:
    """The network to explain: `runs` of it, `others` to measure the distance of seeds by."""

    net: ReLUNetwork
    data: Dataset
    scale: float
    rate: float
    stops: Int[np.ndarray, " T"]
    runs: tuple[Trajectory, ...]
    others: tuple[Trajectory, ...]
    made: str

    @property
    def begins_late(self) -> bool:
        """Whether the run was first recorded after step 0, so that its start is not known."""
        return bool(self.stops[0] > 0)

    @property
    def width(self) -> int:
        return self.net.arch.sizes[self.net.arch.hidden[0]]

    @property
    def floor(self) -> tuple[float, float] | None:
        """The mean distance of two seeds, in loss and in outputs."""
        alone = len(self.runs) == 1
        pairs = [(self.runs[0], b) for b in self.others] if alone else combinations(self.runs, 2)
        found = _mean_distance(pairs)
        return None if found is None or found[1] is None else (found[0], found[1])

    def row(
        self,
        name: str,
        kind: str,
        many: Sequence[Trajectory],
        variables: int,
        runs: Sequence[Trajectory],
    ) -> Row:
        """A row with its errors: the mean over pairs of its runs and those it is compared with."""
        loss, outputs = _mean_distance(product(runs, many)) or (None, None)
        return Row(name, kind, many[0], variables, loss, outputs)

    def gating(
        self,
        name: str,
        arch: Architecture,
        data: Dataset,
        asked: _Asked,
        follows: tuple[Trajectory, ...] = (),
    ) -> Row:
        """The row of a gating: it `follows` the first network, or starts from random weights."""
        many = follows or self.ensemble(GDLN(arch), data, self.scale, asked)
        runs = self.runs[:1] if follows else self.runs
        made = self.row(name, GATING, many, _variables(arch, data), runs)
        return replace(made, kept=_kept(arch, data, self.scale, self.net.leak, asked.key))

    def ensemble(
        self, net: Network, data: Dataset, scale: float, asked: _Asked
    ) -> list[Trajectory]:
        """Networks from random weights, trained as the one to explain."""
        many = train_ensemble(
            net,
            data,
            key=asked.key,
            seeds=asked.seeds,
            scale=scale,
            learning_rate=self.rate,
            steps=int(self.stops[-1]),
            record_at=self.stops,
            record={"outputs": True},
        )
        return [many.isel(seed=i) for i in range(asked.seeds)]


# ---- what is asked ------------------------------------------------------------------------------


def _checked_rows(rows: Sequence[str], gatings: Candidates | None) -> tuple[str, ...]:
    names = list_of_names("rows", rows)
    for name in names:
        one_of("row", name, ROWS, "leave out rows for all of them")
    if gatings is not None:
        by_name("gatings", gatings, "pass {name: (arch, data)}")
        for name, pair in gatings.items():
            checked_candidate(name, pair)
        taken = [name for name in gatings if name in ROWS]
        if taken:
            raise NeuralRaceError(
                "a gating has the name of another row",
                got=listed(taken),
                wanted=f"names other than {listed(ROWS)}",
                fix="rename it",
            )
    return tuple(names)


def _of_data(
    task: Dataset,
    data: Dataset | None,
    given: Mapping[str, float | None],
    asked: _Asked,
    train: bool,
) -> _Question:
    """Networks trained here, or none."""
    missing = [name for name, value in given.items() if value is None]
    if missing or data is not None:
        raise NeuralRaceError(
            "explain needs to know the network" if missing else "data was given twice",
            got=f"data without {listed(missing)}" if missing else "a dataset and data=",
            wanted="width=, scale=, learning_rate= and steps= with data, data= with a run",
            fix="nr.explain(data, width=100, scale=1e-4, learning_rate=0.1, steps=1000)",
        )
    task = task.gated({})
    width = whole_number("the width", given["width"], fix="for example width=100")
    scale = real_number("scale", given["scale"], above=0, fix="for example scale=1e-4")
    rate = real_number("learning_rate", given["learning_rate"], above=0, fix="learning_rate=0.1")
    steps = whole_number("steps", given["steps"], fix="for example steps=1000")
    net = ReLUNetwork(_one_layer(task, width))
    half = RECORDS // 2
    stops = np.append(np.linspace(0, steps, half + 1), np.geomspace(1, steps, half))
    stops = np.unique(stops.round().astype(int))
    question = _Question(net, task, scale, rate, stops, (), (), "Predictions; nothing was trained.")
    if not train:
        return question
    first = trained(
        net,
        net.init(jax.random.fold_in(asked.key, 1), scale=scale),
        task,
        learning_rate=rate,
        steps=steps,
        record_at=stops,
        record={"outputs": True, "weights": True},
    )
    more = replace(asked, seeds=asked.seeds - 1)
    others = question.ensemble(net, task, scale, more) if more.seeds else []
    many = "1 ReLU network" if asked.seeds == 1 else f"{asked.seeds} ReLU networks"
    were = "was" if asked.seeds == 1 else "were"
    made = f"{many} of width {width} {were} trained on this data."
    return replace(question, runs=(first, *others), made=made)


def _checked_run(
    run: Trajectory, data: Dataset | None, given: Mapping[str, float | None]
) -> tuple[tuple[Trajectory, ...], Dataset]:
    """The runs of an ensemble, or the one that was given, and their data, checked."""
    check_kind("run_or_data", run, Trajectory, "pass a run of nr.train, or a Dataset")
    twice = [name for name, value in given.items() if value is not None]
    if data is None or twice:
        raise NeuralRaceError(
            "a run needs its data" if data is None else "the run knows its own settings",
            got="no data=" if data is None else f"{listed(twice)} besides a run",
            wanted="the run and data=, the dataset that it was trained on",
            fix="nr.explain(run, data=data)",
        )
    check_kind("data", data, Dataset, "pass the dataset that the network was trained on")
    runs = single_runs(run)
    single_weights(runs[0])
    check_trained_on(runs[0], data)
    return runs, data.gated({})


def _of_run(runs: tuple[Trajectory, ...], task: Dataset, asked: _Asked, train: bool) -> _Question:
    """The first run, and others to compare it with."""
    first, *others = runs
    net = relu_of(first)
    rate, stops = descent_of(first)
    entries = np.concatenate([np.ravel(w) for w in first_weights(first).values()])
    entries = entries[entries != 0]  # biases may start at zero
    if not len(entries):
        raise NeuralRaceError(
            "the weights of the run are all zero at first, so that nothing moves",
            got="a scale of 0",
            wanted="a run from random weights",
            fix="start from net.init(key, scale=1e-3)",
        )
    scale = float(np.sqrt(np.mean(entries**2)))
    known = [_with_outputs(each, net, task) for each in (first, *others)]
    question = _Question(net, task, scale, rate, stops, tuple(known[:1]), tuple(known[1:]), "")
    many = len(first.time)
    made = f"One run of a ReLU network, recorded at {many} moments"
    if others:
        made += f"; the distance of seeds is that of the {len(others)} other members."
    elif question.begins_late:
        made += f", from step {stops[0]} on; its start is not known, so that no seed was trained."
    elif train and asked.seeds > 1:
        more = question.ensemble(net, task, scale, replace(asked, seeds=asked.seeds - 1))
        question = replace(question, others=tuple(more))
        many = f"{len(more)} more seed" + ("s were" if len(more) > 1 else " was")
        made += f"; {many} trained to know how far seeds are apart."
    else:
        made += "; no other seed was trained."
    return replace(question, made=made)


def _with_outputs(run: Trajectory, net: ReLUNetwork, data: Dataset) -> Trajectory:
    """The run with its outputs, computed from its weights where it did not record them."""
    if run.outputs is not None:
        return run
    seen = Trajectory.from_weights(net, run.values["weights"], data, run.time)
    values = {**run.values, "outputs": seen.values["outputs"]}
    return Trajectory(
        run.time, run.loss, values=values, final=run.final, net=run.net, steps=run.steps,
        sample_weight=run.sample_weight, settings=run.settings,
    )  # fmt: skip


def _one_layer(task: Dataset, width: int) -> Architecture:
    """One hidden layer between all inputs and all outputs."""
    sizes = {v: np.shape(a)[1] for v, a in task.x.items()} | {"h": width}
    sizes |= {v: np.shape(a)[1] for v, a in task.y.items()}
    edges = {f"{v}_h": (v, "h") for v in task.x} | {f"h_{v}": ("h", v) for v in task.y}
    return Architecture(sizes, edges)


# ---- rows ---------------------------------------------------------------------------------------


def _table(question: _Question, asked: _Asked, gatings: Candidates) -> Explanation:
    """Make every row that can be made, best first."""
    wanted = [row for row in asked.rows if question.runs or row not in COMPARED]
    jobs = [(name, "gatings") for name in gatings if "gatings" in wanted]
    jobs += [(row, row) for row in wanted if row != "gatings"]
    made: list[Row] = []
    left_out: dict[str, str] = {}
    remarks: list[str] = []
    with progress(len(jobs), "explaining", "rows") as advance:
        for name, row in jobs:
            try:
                one, said = _row(question, asked, name, row, gatings)
            except NeuralRaceError as error:
                left_out[name] = error.what
            else:
                made.append(one)
                remarks += said
            advance(1)
    best = lambda row: (row.error, row.half_time)
    return Explanation(
        rows=tuple(sorted(made, key=best)),
        floor=question.floor if question.runs else None,
        runs=question.runs,
        made=question.made,
        left_out=left_out,
        remarks=tuple(remarks),
    )


def _row(
    question: _Question, asked: _Asked, name: str, row: str, gatings: Candidates
) -> tuple[Row, tuple[str, ...]]:
    """One row, and what to say of it."""
    data, net, runs = question.data, question.net, question.runs
    task = matched(net.arch, data)
    if question.begins_late and row not in FOLLOW:
        raise NeuralRaceError(
            "it starts from random weights, and the scale of the run's own start is not known",
            got=f"a run that was first recorded at step {question.stops[0]}",
            wanted="a run recorded from step 0 on",
            fix="import the initial weights too",
        )
    if row == "gatings":
        return question.gating(name, *gatings[name], asked), ()
    if row == "aligned":
        pair = aligned(task, width=_neurons(net.arch), key=asked.key, leak=net.leak)
        return question.gating(name, *pair, asked), ()
    if row == "discovered":
        found = discover(runs[0], data, "elbow", most=asked.most, key=asked.key)
        count = sum(map(len, found.layers.values()))
        label = f"{count} discovered pathway" + "s" * (count > 1)
        run = found.train(record={"outputs": True})
        made = question.gating(label, found.arch, found.data, asked, (run,))
        said = f"No elbow: one pathway is about as good as {asked.most}."
        return replace(made, found=found), (said,) * (found.has_elbow is False)
    if len(net.arch.hidden) != 1:
        raise NeuralRaceError(
            "it is known for one hidden layer only",
            got=f"hidden nodes {listed(net.arch.hidden)}",
            wanted="one",
            fix="leave out this row",
        )
    if row == "staged":
        run = staged(runs[0], data, stages=asked.stages)
        label = f"its own gates in {asked.stages} stages"
        return question.row(label, STAGED, (run,), _weights(net.arch), runs[:1]), ()
    if row == "types":
        found = types_of(
            task,
            width=question.width,
            scale=question.scale,
            learning_rate=question.rate,
            steps=int(question.stops[-1]),
            types=asked.types,
            neurons=asked.neurons,
            leak=net.leak,
            key=asked.key,
        )
        numbers = len(found) * (found.w.shape[-1] + found.a.shape[-1])
        label = f"{len(found)} type{'s' * (len(found) != 1)} of neurons"
        made = question.row(label, TYPES, (found.trajectory,), numbers, runs)
        return replace(made, found=found), ()
    few = min(asked.types, question.width)
    sizes = {v: few if v in net.arch.hidden else n for v, n in net.arch.sizes.items()}
    narrow = ReLUNetwork(Architecture(sizes, dict(net.arch.edges)), leak=net.leak)
    strength = question.scale * (question.width / few) ** 0.5
    many = question.ensemble(narrow, task, strength, asked)
    label = f"narrow network of {few} neurons"
    return question.row(label, NARROW, many, _weights(narrow.arch), runs), ()


def _mean_distance(
    pairs: Iterable[tuple[Trajectory, Trajectory]],
) -> tuple[float, float | None] | None:
    """The mean distance of pairs of runs in loss and in outputs; None where there are none."""
    found = [compare(a, b) for a, b in pairs]
    if not found:
        return None
    outputs = [each.outputs for each in found]
    known = [each for each in outputs if each is not None]
    loss = float(np.mean([each.mean for each in found]))
    return loss, float(np.mean(known)) if len(known) == len(found) else None


def _neurons(arch: Architecture) -> int:
    return sum(arch.sizes[v] for v in arch.hidden)


def _weights(arch: Architecture) -> int:
    """How many weights a network has."""
    return sum(arch.sizes[s] * arch.sizes[t] for s, t in arch.edges.values())


def _variables(arch: Architecture, data: Dataset) -> int:
    """How many weights the blocks of a gating have after its reduction."""
    return sum(_weights(block.arch) for block in reduce(arch, data).blocks)


def _kept(arch: Architecture, data: Dataset, scale: float, leak: float, key: Key) -> float | None:
    """The kept share, or None where it cannot be asked for, such as with gates on inputs.

    It is measured here whatever the scale; warnings that scales are large are for predictions.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return consistency(arch, data, scale=scale, leak=leak, key=key).share
    except NeuralRaceError:
        return None

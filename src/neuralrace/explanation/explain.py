"""All explanations of one ReLU network that the package can make, compared with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from neuralrace.architecture import BIAS, Architecture
from neuralrace.checks import one_of, random_key
from neuralrace.contests.times import Candidates, check_one_task, checked_candidate
from neuralrace.dataset import Dataset, Sampled, matched
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.explanation.question import (
    Asked,
    Question,
    checked_run,
    hidden_layers,
    neuron_count,
    of_data,
    of_run,
    weight_count,
)
from neuralrace.explanation.table import GATING, NARROW, STAGED, TYPES, Explanation, Row
from neuralrace.progress import progress
from neuralrace.reln import Activity, activity, aligned, discover, staged
from neuralrace.reln import types as types_of
from neuralrace.reln.explained.discovery import PATHWAYS, no_elbow
from neuralrace.reln.observed.runs import not_descent, relu_of
from neuralrace.relu import ReLUNetwork
from neuralrace.text import numbered, several
from neuralrace.trajectory import Trajectory
from neuralrace.types import Count, Key, Positive, Scale
from neuralrace.weights import check_untied

ROWS = ("gatings", "discovered", "aligned", "staged", "types", "narrow")
"""What can be in the table; `gatings` are the user's own."""

COMPARED = ("discovered", "staged", "narrow")
"""Rows that need a trained ReLU network, so that there are none with predictions only."""

FOLLOW = ("discovered", "staged")
"""Rows that start from the first recorded weights of the run."""

FOLLOWING = ("loss", "outputs", "kept gates")
"""Columns that need a network that follows the run, or its dynamics."""


@door
def explain(
    run_or_data: Trajectory | Sampled,
    gatings: Candidates | None = None,
    *,
    data: Sampled | None = None,
    width: Count | None = None,
    scale: Scale | None = None,
    learning_rate: Positive | None = None,
    steps: Count | None = None,
    seeds: Count = 5,
    train: bool = True,
    rows: Sequence[str] = ROWS,
    types: Count = 8,
    stages: Count = 64,
    most: Count = 6,
    neurons: Count = 2000,
    key: Key = 0,
) -> Explanation:
    """Which small model explains a ReLU network: all of them in one table, best first.

    | row | what it is |
    |---|---|
    | your gatings | gated networks from random weights as spread as those of the network |
    | `discovered` | gates found in the first network (`reln.discover`, number by the elbow) |
    | `aligned` | gates that small neurons align to (`reln.aligned`), predicted |
    | `staged` | the first network's own gates, constant in stages (`reln.staged`) |
    | `types` | self-gated types of neurons (`reln.types`), predicted |
    | `narrow` | a ReLU network of as many neurons per layer as types, as strong in all |

    For each: the errors of loss, mean |ΔL| / L(0), and outputs, mean distance over √(2 L(0)), the
    same in units of the distance of two seeds of the network, the share of its gates that a ReLU
    network would keep (`reln.consistency`), and how many numbers evolve, after reduction where
    there is one. Errors are means over all networks that are explained, and over `seeds` random
    starts of the gatings and of the narrow network; `discovered` and `staged` follow the first
    network from its own start and are compared with it alone.

    **Given data** it trains `seeds` networks, and says so. **Given a run**, it explains that run:
    width and step are those of the run, and so is the spread of initial weights, the root mean
    square of the first weights of every edge, biases among them (`aligned`'s kept share and `types`
    know one spread alone: the root mean square over edges, biases aside). The distance of seeds is
    that of the other members where the run is an ensemble over seeds, else that of `seeds − 1`
    networks trained here. With `train=False` no ReLU network is trained: data gives predictions
    only, and a run is compared without a distance of seeds.

    **Arguments:** `run_or_data`, the task, or a run of a `ReLUNetwork` with
    `record={"weights": True}`, and then `data`, the dataset it was trained on. `gatings`,
    `{name: (arch, data)}`. For data alone, `width` of one hidden layer, `scale`, the standard
    deviation of all initial weights, `learning_rate` and `steps`. `rows`, which rows to make:
    fewer are faster. `types`, how many types, and neurons of the narrow network; `stages`, how
    many stages; `most`, the most pathways to try; `neurons`, how many the wide limit behind the
    types follows. `key`, a JAX key or an integer, draws everything random.

    **A run with momentum or Adam, in batches, on another loss or of one checkpoint** cannot be
    followed by another network: the theory is about gradient flow, which plain descent on all
    samples follows. Your gatings and four discovered pathways (or `most`) are then compared by the
    patterns of its neurons alone, on which part of the samples they differ; all else is left out,
    and the reason is told. Train the same network from the same first weights by plain descent to
    have that compared.

    **A row is advised** only where its outputs are about as near as those of another seed, and
    nothing speaks against it: a loss more than 3 times as far away as that of a seed, a half-time
    that is off by more than 15 %, or for a gating a kept share below .85 or one that is not known
    (`Explanation.doubt`).

    **Deeper networks** are explained by gatings that are as deep (`nr.pathways(…, depth=2)`), by
    discovered pathways and by the narrow network; `aligned`, `staged` and `types` are known for one
    hidden layer. The narrow network is the one to look at first: grouping the neurons of a deep
    network does worse. Its own gates are in words among the sentences where it is advised, and in
    `Row.found`.

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
    asked = Asked(
        rows=_checked_rows(rows, gatings),
        types=types,
        stages=stages,
        most=most,
        neurons=neurons,
        seeds=seeds,
        key=key,
    )
    random_key(key, "explain")  # only checked: all that is asked for here draws from the same key
    given = {
        "width": width, "scale": scale, "learning_rate": learning_rate, "steps": steps
    }  # fmt: skip
    if isinstance(run_or_data, Dataset):
        question = of_data(run_or_data, data, given, asked, train)
    else:
        runs, task = checked_run(run_or_data, data, given)
        reason = not_descent(runs[0])
        if reason is not None:
            named = {} if gatings is None else gatings
            check_one_task({"data": (relu_of(runs[0]).arch, task), **named})
            return _by_patterns(runs[0], task, reason, asked.rows, named, asked.most, asked.key)
        question = of_run(runs, task, asked, train)
    named = {} if gatings is None else gatings
    check_one_task({"data": (question.net.arch, question.data), **named})
    return _table(question, asked, named)


def _checked_rows(rows: Sequence[str], gatings: Candidates | None) -> tuple[str, ...]:
    for name in rows:
        one_of("row", name, ROWS, "leave out rows for all of them")
    if gatings is not None:
        for name, pair in gatings.items():
            checked_candidate(name, pair)
        taken = [name for name in gatings if name in ROWS]
        require(
            not taken,
            "a gating has the name of another row",
            got=listed(taken),
            wanted=f"names other than {listed(ROWS)}",
            fix="rename it",
        )
    return tuple(rows)


def _table(question: Question, asked: Asked, gatings: Candidates) -> Explanation:
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
    remarks += _without_direct(question.net, made)
    late = lambda row: math.inf if math.isnan(row.half_time) else row.half_time
    best = lambda row: (row.error, late(row))
    return Explanation(
        rows=tuple(sorted(made, key=best)),
        floor=question.floor if question.runs else None,
        runs=question.runs,
        made=question.made,
        left_out=left_out,
        remarks=tuple(remarks),
    )


def _without_direct(net: ReLUNetwork, made: Sequence[Row]) -> list[str]:
    """Which rows lack the edges by which inputs reach outputs past all hidden nodes, if any."""
    arch = net.arch
    direct = [e for e in arch.edges.values() if e[0] in arch.inputs and e[1] in arch.outputs]
    runs = {row.name: row.trajectory for row in made if row.trajectory is not None}
    graphs = {name: run.net.arch.edges.values() if run.net else () for name, run in runs.items()}
    lack = [name for name, edges in graphs.items() if not set(direct) <= set(edges)]
    if not lack:
        return []
    biases = all(source == BIAS for source, _ in direct)
    what = "an output bias" if biases else "edges from inputs straight to outputs"
    return [f"The network has {what}; not so {several(lack)}."]


def _row(
    question: Question, asked: Asked, name: str, row: str, gatings: Candidates
) -> tuple[Row, tuple[str, ...]]:
    """One row, and what to say of it."""
    data, net, runs = question.data, question.net, question.runs
    task = matched(net.arch, data)
    require(
        not question.begins_late or row in FOLLOW,
        "it starts from random weights, and the scale of the run's own start is not known",
        got=f"a run that was first recorded at step {question.stops[0]}",
        wanted="a run recorded from step 0 on",
        fix="import the initial weights too",
    )
    if row == "gatings":
        arch, gated = gatings[name]
        _check_depth(net.arch, hidden_layers(arch))
        return question.gating(name, arch, gated, asked), ()
    if row == "aligned":
        check_untied(net.arch, "the row 'aligned'")
        _check_depth(net.arch, 1)
        pair = aligned(task, width=neuron_count(net.arch), key=asked.key, leak=net.leak)
        return question.gating(name, *pair, asked), ()
    if row == "discovered":
        found = discover(runs[0], data, "elbow", most=asked.most, key=asked.key)
        run = found.train(record={"outputs": True})
        made = question.gating(found.name, found.arch, found.data, asked, (run,))
        said = f"The error does not tell how many pathways to take: {no_elbow(found.curve)}."
        return replace(made, found=found), (said,) * (found.has_elbow is False)
    if row == "narrow":
        few, spreads = question.narrow(asked.types)
        many = question.ensemble(few, task, spreads, asked, weights=True)
        count = max(few.arch.sizes[v] for v in few.arch.hidden)
        label = f"narrow network of {numbered(count, 'neuron', '1')}"
        label += " per layer" * (len(few.arch.hidden) > 1)
        made = question.row(label, NARROW, many, weight_count(few.arch), runs)
        last = many[0].isel(time=[-1])
        own = discover(last, data, {v: few.arch.sizes[v] for v in few.arch.hidden}, key=asked.key)
        return replace(made, found=own), ()
    check_untied(net.arch, f"the row {row!r}")
    _check_depth(net.arch, 1)
    if row == "staged":
        run = staged(runs[0], data, stages=asked.stages)
        label = f"its own gates in {asked.stages} stages"
        return question.row(label, STAGED, (run,), weight_count(net.arch), runs[:1]), ()
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
    label = f"{numbered(len(found), 'type', '1')} of neurons"
    made = question.row(label, TYPES, (found.trajectory,), numbers, runs)
    rare = () if found.rare is None else (str(found.rare),)
    return replace(made, found=found), rare


def _check_depth(arch: Architecture, layers: int) -> None:
    """Raise where an explanation has not as many hidden layers as the network."""
    own = hidden_layers(arch)
    require(
        own == layers,
        f"it has {numbered(layers, 'hidden layer')}, and the network has {own}",
        got=f"hidden nodes {listed(arch.hidden)}",
        wanted=f"a network with {numbered(layers, 'hidden layer')}",
        fix="gate every layer: nr.pathways(data, masks, hidden=20, depth=2)",
    )


def _by_patterns(
    run: Trajectory,
    data: Dataset,
    reason: str,
    rows: Sequence[str],
    gatings: Candidates,
    most: int,
    key: Key,
) -> Explanation:
    """Gatings by how nearly the neurons have their patterns; the rest is left out, with `reason`.

    A neuron is compared with the nearest pathway of a gating at every recorded moment, counted by
    its part of the weight of its layer. Averages are over moments and hidden nodes. All samples
    count alike, whatever their weights, but for those of weight 0, which do not count.
    """
    counts = np.asarray(data.probability) > 0
    jobs: list[tuple[str, Callable[[], Row]]] = []
    if "discovered" in rows:
        jobs.append(("discovered", lambda: _discovered(run, data, int(counts.sum()), most, key)))
    if "gatings" in rows and gatings:
        seen = activity(run, data.take(counts), boundary=0.0)
        jobs += [
            (name, partial(_compared, name, arch, gated.take(counts), seen))
            for name, (arch, gated) in gatings.items()
        ]
    one = len(run.time) == 1
    why = (
        "they compare runs, and there is one recorded moment alone"
        if one
        else f"no other network can take the steps of this run ({reason})"
    )
    left_out = dict.fromkeys(FOLLOWING, why)
    left_out |= {row: why for row in rows if row not in ("discovered", "gatings")}
    made: list[Row] = []
    for name, job in jobs:
        try:
            made.append(job())
        except NeuralRaceError as error:
            left_out[name] = error.what
    what = "what is compared is only which neurons are on for which samples"
    made_of = (
        f"one checkpoint: {what}."
        if one
        else f"recorded at {len(run.time)} moments: {reason}. The theory is about plain gradient "
        f"descent on all samples (gradient flow), so that {what}, at these moments."
    )
    return Explanation(
        rows=tuple(sorted(made, key=lambda row: row.error)),
        floor=None,
        runs=(run,),
        made=f"One run of a ReLU network, {made_of}",
        left_out=left_out,
    )


def _discovered(run: Trajectory, data: Dataset, counted: int, most: int, key: Key) -> Row:
    """As many pathways as `discover` takes by itself: the elbow needs networks that follow."""
    found = discover(run, data, min(PATHWAYS, most), key=key)
    apart = [each.share @ each.mismatch / counted for each in found.layers.values()]
    return Row(found.name, GATING, None, None, differ=float(np.mean(apart)), found=found)


def _compared(name: str, arch: Architecture, gated: Dataset, seen: Activity) -> Row:
    """A gating of the user's own, for one hidden layer."""
    require(
        len(seen.on) == 1,
        "its patterns are known for one hidden layer only",
        got=f"hidden nodes {listed(seen.on)}",
        wanted="one",
        fix="leave out this gating",
    )
    on_edges = [edge for edge in gated.gates if edge not in arch.hidden]
    columns = [np.asarray(gated.gates.get(node, np.ones(gated.n_samples))) for node in arch.hidden]
    every = np.concatenate([c.reshape(gated.n_samples, -1) for c in columns], axis=1)
    require(
        not on_edges and np.isin(every, (0, 1)).all(),
        "patterns of neurons are compared with gates of zero and one on hidden nodes",
        got=f"gates of {listed(on_edges)}" if on_edges else "fractions",
        wanted="gates of hidden nodes, 0 or 1",
        fix="leave out this gating",
    )
    table = np.unique(every.astype(bool), axis=1).T
    weighed = seen.counted(next(iter(seen.on)), 0.0).any(axis=1)
    require(
        weighed.any(),
        "no neuron has any weight",
        got="weights of zero, or not finite, at every recorded moment",
        wanted="a network with incoming and outgoing weights",
        fix="import the weights of a network that has learned",
    )
    shares = seen.shares({str(k): row for k, row in enumerate(table)}, least=0.0)
    apart = shares.distance[weighed].mean() / shares.samples
    return Row(name, GATING, None, None, differ=float(apart))

"""Where a race starts: from actual weights, with nothing fitted, or from one number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from numbers import Real
from textwrap import shorten
from typing import Any, TypeAlias, final

import jax
import numpy as np

from neuralrace.checks import check_known
from neuralrace.dataset import zero_loss
from neuralrace.door import door
from neuralrace.errors import listed, require
from neuralrace.gdln import GDLN
from neuralrace.reduction.block import Block
from neuralrace.reduction.find_blocks import hidden_room, places_of
from neuralrace.reduction.mixtures import Mixer, longest_path
from neuralrace.reduction.scipy_solver import NetworkFlow
from neuralrace.reduction.tied_start import average_tied_start, tied_start
from neuralrace.reduction.together import Together, sharing
from neuralrace.reduction.two_edge_start import average_start, two_edge_start
from neuralrace.statistics import SplitNetwork, class_factor
from neuralrace.text import percent
from neuralrace.tolerances import ALONE, EQUAL, LARGE_START, MIXED, ROUNDING, TINY
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike, Matrix, WeightsLike
from neuralrace.weights import check_finite, checked_weights

LARGE_HOLDS = "What follows holds from the part of the start that grows, alone."
"""What is said of times from a start that is too large for them to be known."""

MOST_TOGETHER = 2000
"""Blocks are followed together from the beginning if they have at most this many weights then."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Start:
    """Initial weights of every block of a race; see `Race.start`.

    `weights[i]` are the weights of block i, `{edge: (|t|, |s|)}`. `alignment` is the share of the
    squared norm of the weights at the network's inputs and outputs that the start carries, less the
    part in which blocks share hidden directions. It is 1 if the weights are decoupled already (MHS
    Assumption 2.1.2), and small for wide random weights, of which only the growing half along the
    modes matters. It does not depend on the scale of the weights. `gap` does: it is the distance of
    the race's loss at the start from that of the network, as a part of the latter, and a prediction
    of the loss is off by at least this at t = 0; from a scale, of what the network has on average.
    Both are `None` for a start that was not made from weights. `data` is the digest of the data of
    its race; a start made by hand has none, and can be used with any race that it fits. `halved`
    are the places of the blocks that start from the growing half of their modes alone; `network`
    holds the weights of the network that they are from, at the time `since` before this start, to
    go back to where the other half matters. `noise` is how much random shared weights within a
    class of hidden nodes, such as W_h of a recurrent network, may add to the growth of a mode, as a
    part of it. `mixing` is the part by which modes that share hidden directions are estimated to
    disturb each other beyond what the start takes into account; it is infinite where this is not
    known. Blocks at the places `joined` are followed together from the network's weights from the
    beginning, so that nothing is left to estimate. `is_measured` says that weights are shared and
    something of them is left out: nothing is estimated then, and `Race.solve` measures how far the
    blocks are off.

    ```python
    >>> import neuralrace as nr
    >>> race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
    >>> race.start(0.01)
    Start(4 blocks; aligned, 0.01)
    >>> race.start(0.01).weights[0]["x_sample1"]
    array([[0.01]])

    ```
    """

    weights: tuple[dict[str, Matrix], ...]
    alignment: float | None
    description: str
    data: str | None = None
    gap: float | None = None
    halved: frozenset[int] = frozenset()
    network: Mapping[str, Matrix] | None = None
    since: float = 0.0
    noise: float | None = None
    mixing: float = 0.0
    joined: frozenset[int] = frozenset()
    is_measured: bool = False

    @property
    def is_large(self) -> bool:
        """Whether the weights are too large for their growing half to stand for them (`gap`).

        Where it is measured, that makes no difference: `Race.solve` follows the network.
        """
        return self.gap is not None and self.gap > LARGE_START and not self.is_measured

    @property
    def is_exact(self) -> bool:
        """Whether nothing that it leaves out of the weights matters (`gap`, `mixing`)."""
        return self.mixing <= MIXED and (self.gap is None or self.gap <= MIXED)

    @door
    def is_whole(self, block: int) -> bool:
        """Whether a block that started from a half was solved with the whole since."""
        return any(w.size > 1 for w in self.weights[block].values())

    def __repr__(self) -> str:
        blocks = f"{len(self.weights)} block{'s' * (len(self.weights) != 1)}"
        parts = [blocks, shorten(self.description, 120, placeholder=" …")]
        parts += [] if self.alignment is None else [f"alignment {self.alignment:.3g}"]
        parts += [] if self.gap is None else [f"initial loss off by {100 * self.gap:.2g} %"]
        return f"Start({'; '.join(parts)})"


StartLike: TypeAlias = Start | float | WeightsLike
"""Where a race may start: a `Start`, one number, one per edge, or the weights of the network."""


StartsLike: TypeAlias = StartLike | Sequence[StartLike] | ArrayLike
"""One start or many: a sequence of them, or weights with one more axis in front."""


def many_starts(start: StartsLike) -> list[StartLike] | StartLike:
    """The starts one by one where there are many, or the one."""
    if isinstance(start, Mapping):
        shapes = {e: np.shape(w) for e, w in start.items()}
        axes = {len(shape) for shape in shapes.values()}
        if 3 not in axes:
            return start
        counts = {shape[0] for shape in shapes.values() if shape}
        require(
            axes == {3} and len(counts) == 1 and 0 not in counts,
            "start is not a batch of weights",
            got=", ".join(f"{e}: shape {shape}" for e, shape in shapes.items()),
            wanted="shape (n, target, source) for every edge, with one n",
            fix="the final weights of nr.train_ensemble over seeds are such a batch",
        )
        return [{e: np.asarray(w)[i] for e, w in start.items()} for i in range(counts.pop())]
    given: Any = start
    if isinstance(given, list | tuple) or len(getattr(given, "shape", ())) == 1:
        starts = list(np.asarray(given)) if hasattr(given, "shape") else list(given)
        require(
            len(starts),
            "start holds no start",
            got="an empty sequence",
            wanted="one start or more",
            fix="for example start=[0.01, 0.02]",
        )
        return starts
    return given


def check_start_known(start: object) -> None:
    """Raise where JAX is tracing a start or a part of it: that is for `Race.system`."""
    if isinstance(start, np.ndarray | float | int):
        return
    parts = start.weights if isinstance(start, Start) else start
    parts = list(parts.values()) if isinstance(parts, Mapping) else parts
    if isinstance(parts, list | tuple):
        for part in parts:
            check_start_known(part)
    else:
        fix = (
            "race.system(start) of a known start is a pytree for grad, vmap and jit: change its b0"
        )
        check_known("start", {"start": parts}, fix)


def start_from_number(blocks: Sequence[Block], whole: SplitNetwork, value: Any) -> Start:
    """Aligned weights in which every singular value of an edge is `value`, or `value[edge]`."""
    edges = {e for block in blocks for e in block.arch.matrices}
    by_edge: dict[str, Any] = dict.fromkeys(edges, value)
    if isinstance(value, Mapping):
        by_edge = dict(value)
    numbers = all(isinstance(b, Real) and isfinite(b) for b in by_edge.values())
    require(
        not (not numbers or not edges <= set(by_edge)),
        "a start is a finite number, one for every edge, or the weights of the network",
        got=f"numbers for {listed(by_edge)}"
        if isinstance(value, Mapping)
        else f"{type(value).__name__} {value!r:.80}",
        wanted=f"a number, or {{edge: number}} or {{edge: matrix}} for {listed(edges)}",
        fix="race.start(0.01), or race.start(net.init(key, scale=1e-3))",
    )
    _check_size(blocks, [abs(float(b)) for b in by_edge.values()])
    weights = [{e: float(by_edge[e]) * w for e, w in b.aligned.items()} for b in blocks]
    return Start(_with_room(blocks, whole, weights), None, f"aligned, {value}")


def _with_room(
    blocks: Sequence[Block], whole: SplitNetwork, weights: Sequence[Mapping[str, Matrix]]
) -> tuple[dict[str, Matrix], ...]:
    """Aligned weights without the hidden directions for which stronger blocks leave no neuron.

    They start at 0 and stay there: a neuron without incoming and outgoing weights learns nothing.
    """
    found, of = [dict(w) for w in weights], places_of(whole)
    for i, node, n, left in hidden_room(whole, blocks):
        for edge, (s, t) in blocks[i].arch.matrix_ends.items() if left < n else ():
            w = found[i][edge].copy()
            if of[t] == node:
                w[left:] = 0.0
            if of[s] == node:
                w[:, left:] = 0.0
            found[i][edge] = w
    return tuple(found)


def _check_size(blocks: Sequence[Block], sizes: Sequence[float]) -> None:
    """Raise where the loss or a path at a start of edges of these sizes is out of float64's range.

    A path of D edges of strength b carries b^D, and the loss has its square, times a moment of the
    data. Edges that start at 0 stay there, or are driven by the others.
    """
    depth = max((longest_path(block.arch) for block in blocks), default=1)
    bound = np.finfo(np.float64).max ** (1 / (2 * depth + 2))
    largest, smallest = max(sizes, default=0.0), min((b for b in sizes if b), default=1.0)
    least = TINY ** (1 / depth)
    require(
        not (depth > 1 and smallest < least),
        "start is so small that the strength of a path would be 0 in float64",
        got=f"weights of size {smallest:.3g}",
        wanted=f"at least {least:.3g}, with paths of {depth} edges, or exactly 0",
        fix="start=1e-6 is small; with two edges per path, a start that is smaller by a factor "
        "f delays a mode by log(f)/s",
    )
    require(
        not largest > bound,
        "the start is so large that the loss would overflow",
        got=f"weights of size {largest:.3g}",
        wanted=f"at most {bound:.3g}, with paths of {depth} edges",
        fix="start small: race.start(0.01); the scale that is learned is about 1",
    )


def start_from_weights(
    blocks: Sequence[Block], whole: SplitNetwork, constant: float, weights: WeightsLike
) -> Start:
    """The start of a race from actual initial weights; `constant` is the loss outside blocks."""
    given = checked_weights(whole.whole, weights)
    check_finite(given)
    parts = whole.split(weights)
    _check_size(blocks, [float(np.abs(w).max(initial=0.0)) for w in parts.values()])
    found = [block.restricted(parts) for block in blocks]
    tied = bool(whole.arch.ties or whole.arch.frozen)
    two = [i for i, b in enumerate(blocks) if not tied and b.arch.path_lengths == {2}]
    apart = [] if tied else [b for i, b in enumerate(blocks) if i not in two]
    shared = _overlap(apart, found, blocks)
    for i, node, _, left in hidden_room(whole, blocks):
        if not left and not tied and i not in two:
            ends, of = blocks[i].arch.edges.items(), places_of(whole)
            gone = (e for e, (s, t) in ends if node in (of[s], of[t]))
            found[i] |= {e: np.zeros_like(found[i][e]) for e in gone}
    halved = set()
    growing, halves, mixing = two_edge_start([blocks[i] for i in two], [found[i] for i in two])
    for i, weights_i, is_half in zip(two, growing, halves, strict=True):
        found[i] = weights_i
        halved |= {i} if is_half else set()
    noise = None
    if tied:
        _check_free(whole, found, parts)
        found, halved, noise = tied_start(blocks, found, whole.arch)
    ends = set(_end_edges(whole))
    carried = sum(float((w**2).sum()) for f in found for e, w in f.items() if e in ends)
    total = sum(float((parts[e] ** 2).sum()) for e in ends)
    how = "from weights: two-edge pathways by what is orthogonal to faster modes"
    if tied:
        how = "from weights: what is orthogonal to faster modes, with shared weights"
        how += "" if noise is None else f", random ones adding {percent(noise)} to growth"
    elif len(two) < len(blocks):
        how += ", others restricted to the directions of each block"
    alignment = min(1.0, carried / total) * (1 - shared) if total else None
    with jax.enable_x64(True):
        loss = float(GDLN(whole.arch).loss(parts, whole.data))
    gap = abs(constant + _initial_loss(blocks, found) - loss) / loss if loss else None
    measured = tied and bool(halved or (alignment is not None and alignment < 1 - EQUAL))
    network = parts if halved or measured or mixing else None
    mixing = ALONE if measured else np.inf if shared > EQUAL else mixing
    start = Start(tuple(found), alignment, how, None, gap, frozenset(halved), network)
    return replace(start, noise=noise, mixing=mixing, is_measured=measured)


def joined(blocks: Sequence[Block], whole: SplitNetwork, constant: float, start: Start) -> Start:
    """The same start with blocks of two-edge paths followed together, where that is affordable.

    It is returned as it is where what it leaves out makes no difference, or other parts do.
    """
    if start.is_exact or start.is_large or start.is_measured or start.network is None:
        return start
    groups = sharing(blocks, range(len(blocks)))
    made = [Together.of([blocks[i] for i in group], whole) for group in groups]
    begun = [together.begin(start.network) for together in made]
    if sum(w.size for weights in begun for w in weights.values()) > MOST_TOGETHER:
        return start
    places = frozenset(i for group in groups for i in group)
    apart = [i for i in range(len(blocks)) if i not in places]
    parts = [*(blocks[i] for i in apart), *(together.whole for together in made)]
    loss = constant + _initial_loss(parts, [*(start.weights[i] for i in apart), *begun])
    loss -= sum(together.unreached for together in made)
    with jax.enable_x64(True):
        wanted = float(GDLN(whole.arch).loss(dict(start.network), whole.data))
    mixing = start.mixing if apart else 0.0
    return replace(start, gap=abs(loss / wanted - 1), mixing=mixing, joined=places)


def _check_free(
    whole: SplitNetwork, found: Sequence[Mapping[str, Matrix]], parts: Mapping[str, Matrix]
) -> None:
    """Raise where hidden directions are those of an input or output, and weights couple blocks."""
    of = whole.arch.class_of
    fixed = {of[v] for v in whole.arch.hidden} & {
        of[v] for v in (*whole.arch.inputs, *whole.arch.outputs)
    }
    kept, size = (
        sum(float((w**2).sum()) for each in weights for w in each.values())
        for weights in (found, [parts])
    )
    require(
        not fixed or kept >= (1 - ROUNDING) * size,
        "weights start a race only where hidden directions can be chosen freely",
        got=f"the hidden nodes of {listed(fixed)} share weights with an input or an output",
        wanted="weights that do not couple the blocks, or a number",
        fix="race.start(0.01), or nr.flow of the network itself",
    )


def later(blocks: Sequence[Block], start: Start, solution: Trajectory, when: int = -1) -> Start:
    """A start at the state of a solution at one of its times."""
    at = solution.values["variables"]
    now = tuple({e: w[when] for e, w in at[block.name].items()} for block in blocks)
    how = f"the race at t = {solution.time[when]:g}"
    since = start.since + float(solution.time[when])
    start = replace(start, weights=now, since=since)
    return replace(start, alignment=None, description=how, data=None, gap=None)


def _initial_loss(blocks: Sequence[Block], weights: Sequence[Mapping[str, Matrix]]) -> float:
    """The sum of the losses of all blocks at these weights."""
    flows = (
        NetworkFlow(block.arch, w, block.data) for block, w in zip(blocks, weights, strict=True)
    )
    return sum(float(flow.losses(flow.start[None]).sum()) for flow in flows)


def start_from_scale(
    blocks: Sequence[Block], whole: SplitNetwork, constant: float, scale: float
) -> Start | None:
    """Where random weights of this standard deviation start a race on average.

    `constant` is the loss outside blocks. None where some pathway has other than two edges, unless
    it shares weights in a way for which an average is known (`average_tied_start`).
    """
    arch, noise = whole.arch, None
    if arch.ties or arch.frozen:
        both = [average_tied_start(block, arch, arch.sizes, scale) for block in blocks]
        found = [None if each is None else each[0] for each in both]
        noise = max((each[1] for each in both if each is not None), default=None)
    else:
        found = [average_start(block, arch.sizes, scale) for block in blocks]
    known = tuple(weights for weights in found if weights is not None)
    if len(known) < len(blocks):
        return None
    known = _with_room(blocks, whole, known)
    loss = _average_loss(whole, scale)
    gap = abs(constant + _initial_loss(blocks, known) - loss) / loss if loss else None
    how = f"the average of random weights of standard deviation {scale:g}"
    mixing = 0.0 if noise is None else np.inf
    return Start(known, None, how, gap=gap, noise=noise, mixing=mixing)


def _average_loss(whole: SplitNetwork, scale: float) -> float:
    """The loss of a network at Gaussian weights of this standard deviation σ, on average.

    Independent weights have no part in common: E‖h_t‖² is the sum of |t| σ² g_e² E‖h_s‖² over the
    edges e = (s, t), times g_t². Targets are not correlated with it. Weights that are shared count
    as independent, which changes this in higher orders of σ alone.
    """
    factor, arch = class_factor(whole.data), whole.arch
    squared = replace(factor, gates={name: g**2 for name, g in factor.gates.items()})
    spread = {e: arch.sizes[t] * scale**2 for e, (_, t) in arch.edges.items()}
    shown = {
        s: np.bincount(factor.row_class, (x**2).sum(axis=1), factor.count)
        for s, x in factor.x.items()
    }
    sums = Mixer(arch, squared).path_sums(spread)
    return zero_loss(whole.data) + sum(float(T @ shown[s]) for (_, s), T in sums.items()) / 2


def _overlap(
    deep: Sequence[Block], weights: Sequence[Mapping[str, Matrix]], blocks: Sequence[Block]
) -> float:
    """How far blocks share hidden directions: the part of all inner products between two blocks.

    The inner products are of the weights from inputs into, and to outputs from, each hidden node.
    The result is 0 if every block has its own directions, as the race assumes.
    """
    index = {id(block): i for i, block in enumerate(blocks)}
    within = between = 0.0
    for node in dict.fromkeys(v for block in deep for v in block.arch.hidden):
        for into in (True, False):
            seen = []
            for block in (b for b in deep if node in b.arch.sizes):
                arch, mine = block.arch, weights[index[id(block)]]
                edges = arch.incoming[node] if into else arch.outgoing[node]
                ends = [e for e in edges if arch.edges[e][0 if into else 1] in block.basis]
                seen += [[mine[e] if into else mine[e].T for e in ends]] if ends else []
            columns = [np.concatenate(parts, axis=1) for parts in seen]
            for i, a in enumerate(columns):
                within += float(np.linalg.norm(a.T @ a) ** 2)
                between += sum(2 * float(np.linalg.norm(a.T @ b) ** 2) for b in columns[i + 1 :])
    return between / (within + between) if between else 0.0


def _end_edges(whole: SplitNetwork) -> list[str]:
    """The matrices of edges that touch an input or an output."""
    ends, of = {*whole.arch.inputs, *whole.arch.outputs}, whole.arch.matrix_of
    touching = (e for e, (s, t) in whole.arch.edges.items() if s in ends or t in ends)
    return list(dict.fromkeys(of[e][0] for e in touching if e in of))

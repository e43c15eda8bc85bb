"""The neural race reduction: a gated network as a sum of small independent ones (NRR §3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from neuralrace.architecture import Architecture
from neuralrace.checks import write_whole
from neuralrace.dataset import Dataset, check_targets
from neuralrace.door import door
from neuralrace.errors import listed, require
from neuralrace.reduction.find_blocks import find_blocks
from neuralrace.reduction.modes import ModeTable, modes_of
from neuralrace.reduction.page import RacePage, race_page
from neuralrace.reduction.solution import Solvable
from neuralrace.reduction.start import StartLike
from neuralrace.reduction.symbolic import Symbolic
from neuralrace.reduction.words import (
    HEADINGS,
    block_frame,
    draw_blocks,
    printed_rows,
    sentences,
)
from neuralrace.results import SENTENCES, Sentence, framed
from neuralrace.statistics import threads_for
from neuralrace.statistics.nodes import split_neurons
from neuralrace.text import table_lines
from neuralrace.tolerances import EXACT, PROMINENT, SMALL_START
from neuralrace.types import Inside, Key, NotNegative, Positive, Scale, Whole

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas


@final
@dataclass(frozen=True, eq=False, repr=False)
class Race(Solvable, Symbolic):
    """A gated network reduced to blocks that learn independently; see `reduce`.

    `split` is the network after nodes with gates per neuron are split, so that every gate is on a
    whole node; blocks refer to its nodes. `blocks` are ordered by their drive, the largest singular
    value of Σ^yx. `constant` is the loss outside all blocks, which no weights can remove; what
    a tolerance dropped is `dropped_loss` instead. `silent`
    counts, for every input and output node, the directions without a signal: weights along them
    learn nothing. (Weights along silent inputs that vary do decay; the race ignores this, and it
    matters only for large initial weights.) `exactness` says whether the reduction is exact, and if
    not, why; `residual` and `faint` are two of its parts. Directions smaller than 1e-6 of their
    node are judged as if they had that size; features smaller than others by 1e13 count as zero.

    ```python
    >>> import neuralrace as nr
    >>> race = nr.reduce(*nr.tasks.routing_pathways(nr.tasks.routing(M=7, K=4)[0]))
    >>> race  # doctest: +ELLIPSIS
    Race(4 blocks, 4 of them scalar; residual ...)
    >>> race.is_decoupled, len(race.blocks), race.residual < 1e-8
    (True, 4, True)

    ```
    """

    @door
    def modes(
        self,
        start: StartLike | None = None,
        *,
        scale: Scale | None = None,
        items: str | None = None,
        names: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        seeds: Whole = 0,
        key: Key = 0,
        least: Inside = PROMINENT,
        weight_decay: NotNegative | None = None,
    ) -> ModeTable:
        """Which distinctions are learned, in which order, when, and how sure that is.

        Each mode has a drive s, the singular value of Σ^yx, and grows as a logistic function of
        time to its final strength s/d, d being the variance of the inputs along it; from strength
        a₀ it is half there at t = ln(s/(d a₀) − 1) / (2s), so that stronger distinctions come
        first (NRR Eq. 21; Saxe, McClelland & Ganguli 2019, Eq. 6, for items and properties). Other
        depths use their own closed form. A mode of a recurrent network, for which size and lateness
        of its inputs count, is solved: `final` is the strength of its strongest path, and it is
        half there when three quarters of the fall of its loss are done. Items stand on the two
        sides of a mode by the sign of their inputs along its input singular vector, and outputs by
        the sign of its output singular vector. Half-times assume gradient flow; in training, t is
        `learning_rate` times the number of steps.

        **Arguments:** `start` is as in `race.start`; or `scale` is the standard deviation of
        random weights, from which an average start is known for pathways of two edges. `items`
        is the label that names the samples, by default the first label that is text; samples of
        one name are averaged. Where there is none, input features are named. `names` are those of
        the outputs, or `{output node: names}`. `seeds` is the number of random starts of the
        network with this `scale`, drawn from `key`, whose half-times say which neighbours in the
        order are ties. Items and outputs smaller than `least` of the largest are not named.
        `weight_decay` λ takes λ from the drive of two-edge pathways, so that those with s ≤ λ end
        at 0 and have no half-time.

        ```python
        >>> import numpy as np, neuralrace as nr
        >>> items = ["pine", "rose", "robin", "salmon"]
        >>> y = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1]]
        >>> data = nr.Dataset({"x": np.eye(4)}, {"y": y}, labels={"item": items})
        >>> race = nr.reduce(nr.Architecture.chain(4, 32, 4), data)
        >>> print(race.modes(scale=1e-3, names=["grow", "roots", "move", "swim"]))
        First what all share (t = 9.54), then salmon, robin against pine, rose (t = 15.1), then \
robin against salmon (t = 32.9).
        mode        s   final  half time  items                             outputs
        mode1   0.627   2.508      9.539  what all share                    +grow, +move, +roots
        mode2  0.3787   1.515      15.13  salmon, robin against pine, rose  −roots, +move, +swim
        mode3  0.1612  0.6448      32.89  robin against salmon              −swim, +move
        pine and rose are the same to this network: they are never told apart.
        Start: the average of random weights of standard deviation 0.001. Named: loadings of at \
least 0.33 of the largest in the mode. Half-time: to half of the final strength.

        ```
        """
        law = self._law(weight_decay, None)
        return modes_of(self, start, scale, items, names, seeds, key, least, law)

    @door
    def to_html(
        self,
        path: str | Path | None = None,
        *,
        start: StartLike = SMALL_START,
        until: Positive | None = None,
    ) -> RacePage:
        """One page with the equations, sliders and curves, solved in the browser; returns its text.

        It needs no server, no network and no installation: the equations as MathML, sliders for the
        drive S, the brake D and the start of every mode and for weight decay, and the loss and the
        strengths of the paths, by the method of Dormand and Prince. A notebook shows it by itself.
        Modes with the same equations and numbers share sliders. Blocks with too many variables to
        be written out are left out, and the page says so; it compares the others with `race.solve`.

        **Arguments:** with a `path` the text is also written there. `start` is that of
        `race.start`. Curves end at `until`, by default where the loss has settled, and later under
        weight decay, by the growth rate that it leaves.

        ```python
        >>> import neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
        >>> text = race.to_html(start=1e-3)
        >>> text.count("<fieldset>"), "<math" in text, "://" in text
        (2, True, False)

        ```
        """
        page = race_page(self, self.start(start), until)
        if path is not None:
            write_whole(Path(path), page.encode())
        return page

    def __repr__(self) -> str:
        count, scalar = len(self.blocks), sum(block.is_scalar for block in self.blocks)
        blocks = f"{count} block{'s' * (count != 1)}, {scalar} of them scalar"
        return f"Race({blocks}; residual {self.residual:.1e})"

    def frame(self) -> pandas.DataFrame:
        """One row per block, the strongest first.

        `block` is its name; `inputs` and `outputs`, how many directions it has at its ends; `s`,
        its drive; `growth_rate`, at which small weights grow; `scalar`, whether it is a mode;
        `weights`, how many numbers its network has; `loss`, its loss at zero weights; and
        `copy_of`, the first block that it equals.

        ```python
        >>> import neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
        >>> race.frame()[["block", "inputs", "s", "scalar"]].round(4).to_numpy().tolist()[0]
        ['mode1', 1, 0.3536, True]

        ```
        """
        return block_frame(self)

    def sentences(self) -> tuple[Sentence, ...]:
        """What the blocks are and how exact they are, and what else is worth a remark.

        ```python
        >>> import neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
        >>> race.sentences()[0].text
        '4 independent blocks, all of them scalar modes; exact (no coupling above 1e-08).'

        ```
        """
        return tuple(sentences(self))

    @door
    def plot(self, *, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """The drive of every block, the strongest first; returns the axes.

        Modes are filled dots, and blocks that are no modes are open ones.

        ```python
        >>> import neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
        >>> race.plot().get_ylabel()
        'drive s'

        ```
        """
        return draw_blocks(self, ax)

    def _printed(self) -> pandas.DataFrame | None:
        rows = [dict(zip(HEADINGS, row, strict=True)) for row in printed_rows(self)]
        return framed(HEADINGS, rows) if rows else None

    def __str__(self) -> str:  # as every result, but without pandas, which takes long to import
        return self.describe()

    @door
    def describe(self, *, full: bool = False) -> str:
        """The text that `print(race)` shows; with `full`, all modes and variables with all edges.

        ```python
        >>> import neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.routing_pathways(nr.tasks.routing(M=2, K=2)[0]))
        >>> "B1: 4 edges (in1, in2, out1, …)" in str(race)
        True
        >>> "B1: 4 edges (in1, in2, out1, out2)" in race.describe(full=True)
        True

        ```
        """
        first, *others = (sentence.text for sentence in sentences(self, full))
        left = len(others) - SENTENCES + 1
        if not full and left > 0:
            others[SENTENCES - 1 :] = [f"({left} more: sentences())"]
        rows = printed_rows(self, full)
        return "\n".join([first, *(table_lines(HEADINGS, rows) if rows else []), *others])


def _check_shared(arch: Architecture, tolerance: float) -> None:
    """Raise where shared or frozen weights are of a kind that the reduction does not know."""
    matrices = [e for e, value in arch.frozen.items() if not isinstance(value, float)]
    require(
        not matrices,
        "an edge that is frozen as a matrix fixes directions of hidden nodes, which do not reduce",
        got=f"frozen {listed(matrices)}",
        wanted="edges that are frozen as multiples of the identity",
        fix="nr.train and nr.flow know such networks",
    )
    require(
        tolerance <= EXACT or not (arch.ties or arch.frozen),
        "approximate reductions are not known for networks with shared or frozen weights",
        got=f"tolerance {tolerance:g}",
        wanted=f"an exact reduction, {EXACT:g}",
        fix="leave out tolerance",
    )


@door
def reduce(arch: Architecture, data: Dataset, *, tolerance: Inside = EXACT) -> Race:
    """The neural race reduction of any graph, gating and data (NRR Eqs. 7–10), found automatically.

    First, parts of the network that learn independently are separated. Then orthogonal bases at the
    input and output nodes are found that bring all statistics of a part to the finest common
    block-diagonal form. Scalar blocks are the papers' modes, each a network with one neuron per
    node; where the statistics do not commute, small matrix blocks remain, and the reduction still
    holds exactly. No path is listed: the cost grows with the edges and gate classes.

    **Arguments:** couplings between blocks smaller than `tolerance` are dropped, each relative to
    the sizes of the two directions it couples, |M_ij| against √(M_ii M_jj), so that the units of
    nodes and features do not matter. The default drops only rounding; a larger tolerance makes an
    approximate reduction, which says so (`is_exact`, `residual`) and also drops directions smaller
    than the tolerance, relative to their node.

    ```python
    >>> import neuralrace as nr
    >>> print(nr.reduce(*nr.tasks.linear_pathways(nr.tasks.extended_xor(1.0))))
    2 independent blocks, all of them scalar modes; exact (no coupling above 1e-08).
    block  directions  s    variables                             closed form
    mode1  x 1 → y 1   0.5  B1: 2 edges (x_positive, positive_y)  logistic
    mode2  x 1 → y 1   0.5  B1: 2 edges (x_negative, negative_y)  logistic
    s: largest singular value of Σ^yx in the block; B: a variable that its edges share
    silent directions: x 2

    ```
    """
    _check_shared(arch, tolerance)
    with threads_for(max(arch.sizes.values())):
        whole = split_neurons(arch, data)
        check_targets(arch, data)
        found = find_blocks(whole, tolerance)
    return Race(
        arch, data, whole, found.blocks, found.constant, found.silent, tolerance, found.exactness
    )

"""Items with properties in several contexts (MHS §4–5), and the gatings by context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.architecture import Architecture
from neuralrace.checks import check_subsets, real_array
from neuralrace.dataset import Dataset, pathways
from neuralrace.door import door
from neuralrace.errors import listed, require
from neuralrace.tasks.natural import label
from neuralrace.tasks.structures import structure
from neuralrace.types import Count, Finite, Several

Matrix = str | Float[np.ndarray, "_ _"]
"""A structure: the name of one of MHS's, or a matrix of shape (properties, items)."""


@door
def contextual(
    contexts: Several | None = None,
    items: Count | None = None,
    structures: Matrix | Sequence[Matrix] = "hierarchy",
    common: Matrix = "hierarchy",
    context_scale: Finite = 1.0,
    joined: bool = False,
) -> Dataset:
    """Every item in every context; some properties hold in all contexts, some in one (MHS Fig. 3).

    A sample shows a one-hot item and a one-hot context. Its target has C + 1 blocks of rows:
    `common`, wanted in every context, and then one block per context, which holds that context's
    structure in that context and zeros in the others.

    `contextual(structures=("hierarchy", "ring", "crossed"))` is the task of MHS §4;
    `contextual(contexts=3)`, and 4 and 5, are the tasks of MHS §5, with the same structure
    throughout.

    **Arguments:** `contexts` is C, by default the number of structures, or 3. `items`, the number
    of items, by default that of the matrices given, or 8. `structures`, one for all contexts or one
    for each: names (`"hierarchy"`, `"ring"`, `"crossed"`, see `structure`) or matrices of shape
    `(properties, items)`. `common`, likewise. `context_scale` is the size of the context features
    (1 in MHS; its scripts have 1.1 for C = 4 and 1.35 for C = 5). `joined=True` gives one input
    node `x` with the items' features and then the contexts', for a plain `ReLUNetwork((11, 700,
    60))`.

    **Returns:** C · items samples, all items of context 1 first: `x["item"]` of shape
    `(N, items)` and `x["context"]` of shape `(N, C)`, or `x["x"]`; `y["y"]` of shape `(N, rows)`
    with 60 rows for C = 3; labels `item` and `context`, counted from 1.

    **Gatings:** `common_and_all_but_one`, which MHS finds in ReLU networks, `common_and_single`,
    `all_subsets` and `all_but_one`.

    ```python
    >>> from neuralrace import tasks
    >>> data = tasks.contextual(structures=("hierarchy", "ring", "crossed"))
    >>> data.x["item"].shape, data.x["context"].shape, data.y["y"].shape
    ((24, 8), (24, 3), (24, 60))
    >>> tasks.contextual(contexts=4, joined=True).x["x"].shape
    (32, 12)

    ```
    """
    blocks = _matrices([common, *_of_each_context(structures, contexts)], items)
    number, count = len(blocks) - 1, blocks[0].shape[1]
    item = np.tile(np.eye(count), (number, 1))
    context = np.repeat(context_scale * np.eye(number), count, axis=0)
    everywhere = [np.tile(blocks[0].T, (number, 1))]
    somewhere = [np.kron(c[:, None], b.T) for c, b in zip(np.eye(number), blocks[1:], strict=True)]
    return Dataset(
        x={"x": np.hstack([item, context])} if joined else {"item": item, "context": context},
        y={"y": np.hstack(everywhere + somewhere)},
        labels={
            "item": np.tile(np.arange(1, count + 1), number),
            "context": np.repeat(np.arange(1, number + 1), count),
        },
    )


@door
def common_and_all_but_one(data: Dataset, hidden: int = 100) -> tuple[Architecture, Dataset]:
    """A pathway that is always on, and for each context one that is off only there (MHS Fig. 3).

    `common` reads all inputs; `not1` … `notC` read the items only. This is the gating that MHS
    finds in ReLU networks. `hidden` is the width of each pathway (MHS Table 1: 100).

    ```python
    >>> from neuralrace import tasks
    >>> arch, data = tasks.common_and_all_but_one(tasks.contextual(contexts=3, items=2))
    >>> arch.hidden, data.gates["not1"]
    (('common', 'not1', 'not2', 'not3'), array([0., 0., 1., 1., 1., 1.]))

    ```
    """
    context = _contexts(data)
    return _common_and(data, {f"not{c}": context != c for c in np.unique(context)}, hidden)


@door
def all_but_one(data: Dataset, hidden: int = 100) -> tuple[Architecture, Dataset]:
    """Only the contextual pathways of `common_and_all_but_one`, on the rest of the targets.

    Targets are replaced by the residual of a learned common pathway (`Dataset.residual`). In this
    setting MHS App. F and G solve the contextual pathways.

    ```python
    >>> from neuralrace import tasks
    >>> arch, data = tasks.all_but_one(tasks.contextual(contexts=3, items=2))
    >>> arch.hidden, arch.inputs
    (('not1', 'not2', 'not3'), ('item',))

    ```
    """
    context = _contexts(data)
    masks = {f"not{c}": context != c for c in np.unique(context)}
    _check_items(data)
    return pathways(data.residual(), masks, hidden=hidden, inputs=dict.fromkeys(masks, ("item",)))


@door
def common_and_single(data: Dataset, hidden: int = 100) -> tuple[Architecture, Dataset]:
    """A pathway that is always on, and for each context one that is on only there.

    "GDLN Single" of MHS Fig. 4a: `common` reads all inputs; `only1` … `onlyC` read the items
    only. `hidden` is the width of each pathway (MHS Table 1: 100).

    ```python
    >>> from neuralrace import tasks
    >>> arch, data = tasks.common_and_single(tasks.contextual(contexts=3, items=2))
    >>> arch.hidden, data.gates["only1"]
    (('common', 'only1', 'only2', 'only3'), array([1., 1., 0., 0., 0., 0.]))

    ```
    """
    context = _contexts(data)
    return _common_and(data, {f"only{c}": context == c for c in np.unique(context)}, hidden)


@door
def all_subsets(data: Dataset, hidden: int = 100) -> tuple[Architecture, Dataset]:
    """A pathway that is always on, and one for every smaller set of contexts.

    "GDLN Single and Double Modules" of MHS Table 1 (7 modules for C = 3; 2^C − 1 in general).
    `common` reads all inputs; `in1`, `in2`, …, `in1_2`, … read the items only and are on in the
    contexts named. `hidden` is the width of each pathway (MHS Table 1: 100). More than 12
    contexts are refused.

    ```python
    >>> from neuralrace import tasks
    >>> arch, data = tasks.all_subsets(tasks.contextual(contexts=3))
    >>> arch.hidden
    ('common', 'in1', 'in2', 'in3', 'in1_2', 'in1_3', 'in2_3')

    ```
    """
    context = _contexts(data)
    names = np.unique(context).tolist()
    check_subsets("the label 'context'", len(names))
    subsets = [s for size in range(1, len(names)) for s in combinations(names, size)]
    masks = {"in" + "_".join(map(str, s)): np.isin(context, s) for s in subsets}
    return _common_and(data, masks, hidden)


def _contexts(data: Dataset) -> np.ndarray:
    return label(data, "context", "tasks.contextual()")


def _common_and(
    data: Dataset, masks: Mapping[str, Bool[np.ndarray, " N"]], hidden: int
) -> tuple[Architecture, Dataset]:
    _check_items(data)
    reads = dict.fromkeys(masks, ("item",))
    return pathways(data, {"common": None, **masks}, hidden=hidden, inputs=reads)


def _check_items(data: Dataset) -> None:
    require(
        "item" in data.x,
        "the contextual pathways read only the items, but there is no input node 'item'",
        got=f"x for {listed(data.x)}",
        wanted="x for 'item' and 'context'",
        fix="make the data with tasks.contextual(…, joined=False)",
    )


def _of_each_context(structures: Matrix | Sequence[Matrix], contexts: int | None) -> list[Matrix]:
    """The structure of every context, at least two of them."""
    if isinstance(structures, str):
        given: list[Matrix] = [structures]
    elif isinstance(structures, np.ndarray) and structures.ndim == 2:
        given = [structures]
    else:
        given = list(structures)
        contexts = len(given) if contexts is None else contexts
    contexts = 3 if contexts is None else contexts
    require(
        contexts > 1 and len(given) in (1, contexts),
        "every context needs a structure",
        got=f"{len(given)} structures for {contexts} contexts",
        wanted=f"{contexts} structures, or one for all, and two or more contexts",
        fix="leave out contexts, or give one structure for each",
    )
    return given if len(given) == contexts else given * contexts


def _matrices(blocks: Sequence[Matrix], items: int | None) -> list[Float[np.ndarray, "_ _"]]:
    """The blocks as matrices over one number of items: the common one, then every context's."""
    names = ["common", *(f"the structure of context {c}" for c in range(1, len(blocks)))]
    fix = "name one of MHS's structures, or pass a matrix (properties, items)"
    given = [
        block if isinstance(block, str) else real_array(name, block, fix=fix)
        for name, block in zip(names, blocks, strict=True)
    ]
    counts = [block.shape[1] for block in given if not isinstance(block, str) and block.ndim == 2]
    count = next(iter(counts), 8) if items is None else items
    matrices = []
    for name, block in zip(names, given, strict=True):
        matrix = structure(block, count) if isinstance(block, str) else block
        require(
            matrix.ndim == 2 and matrix.size and matrix.shape[1] == count,
            f"{name} does not fit the task",
            got=f"shape {matrix.shape}",
            wanted=f"shape (properties, {count}), as there are {count} items",
            fix="a column is an item: give every structure as many columns, or omit items",
        )
        matrices.append(matrix)
    return matrices

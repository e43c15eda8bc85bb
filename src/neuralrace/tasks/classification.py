"""Nonlinear contextual classification (NRR App. A.2): the context selects the input to report."""

from __future__ import annotations

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.checks import generator
from neuralrace.dataset import Dataset, pathways
from neuralrace.door import door
from neuralrace.errors import whole_number
from neuralrace.tasks.natural import label
from neuralrace.tolerances import NOISE
from neuralrace.types import Count, Key, Positive, Several


@door
def contextual_classification(
    contexts: Count = 2,
    bound: Positive = 1.0,
    order: Several = 2,
    samples: int | None = None,
    *,
    key: Key = 0,
) -> Dataset:
    """Report the component of the input that the context asks for (NRR App. A.2).

    Inputs are uniform on [−bound, bound]^C, contexts c = 1 … C are equally likely, and the
    target is `y = x_c`. The context is not shown to the network; it only sets the gates.

    By default the uniform distribution is replaced by the nodes and weights of the Gauss–Legendre
    rule with `order` nodes per axis, in each context. Its moments are exact up to degree 2 ·
    `order` − 1 in every component, and a gated linear network depends on none above degree 2. So
    with two nodes (±1/√3, equal weights) the statistics of NRR Eqs. 24–29 are exact. A ReLU network
    depends on higher moments: raise `order`, or pass `samples`.

    **Arguments:** `contexts` is C, also the number of inputs, 2 in NRR; `bound`, 1 in NRR; `order`,
    see above; `samples` draws that many at random instead, with the contexts in turn; `key` (a JAX
    key or an integer) draws them.

    **Returns:** `x["x"]` of shape `(N, C)` and `y["y"]` of shape `(N, 1)`, with
    N = C · order^C or `samples`; sample weights for an `order` above 2; label `context`,
    counted from 1.

    **Gatings:** `single_pathway` and `pathway_per_context`.

    ```python
    >>> from neuralrace import tasks
    >>> data = tasks.contextual_classification()
    >>> (data.y["y"].T @ data.x["x"] / data.n_samples).round(6)  # NRR Eq. 24
    array([[0.166667, 0.166667]])

    ```
    """
    rng = generator(key)
    if samples is None:
        x, weight = _gauss_legendre(contexts, order)
        context = np.repeat(np.arange(contexts), len(x))
        x, weight = np.tile(x, (contexts, 1)), np.tile(weight, contexts)
    else:
        samples = whole_number(
            "the number of samples", samples, least=contexts, fix="give every context at least one"
        )
        x = rng.uniform(-1.0, 1.0, (samples, contexts))
        context, weight = np.arange(samples) % contexts, np.ones(samples)
    x = bound * x
    return Dataset(
        x={"x": x},
        y={"y": x[np.arange(len(x)), context][:, None]},
        sample_weight=None if np.ptp(weight) < NOISE else weight,
        labels={"context": context + 1},
    )


def _gauss_legendre(axes: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes `(order^axes, axes)` and weights of the product rule on [−1, 1]^axes."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    grid = np.meshgrid(*[nodes] * axes, indexing="ij")
    product = np.meshgrid(*[weights / 2] * axes, indexing="ij")
    return np.stack([g.ravel() for g in grid], axis=1), np.prod(product, axis=0).ravel()


@door
def single_pathway(data: Dataset, hidden: int = 100) -> tuple[Architecture, Dataset]:
    """One pathway that is always on: a deep linear network (NRR Eqs. 24–25).

    It is named `common`. `hidden` is its width, which NRR does not state.

    ```python
    >>> from neuralrace import tasks
    >>> arch, data = tasks.single_pathway(tasks.contextual_classification())
    >>> arch.hidden, data.gates
    (('common',), {})

    ```
    """
    return pathways(data, {"common": None}, hidden=hidden)


@door
def pathway_per_context(data: Dataset, hidden: int = 100) -> tuple[Architecture, Dataset]:
    """One pathway for each context, on only there (NRR Eqs. 26–29).

    They are named `only1` … `onlyC`. `hidden` is the width of each, which NRR does not state.

    ```python
    >>> from neuralrace import tasks
    >>> arch, data = tasks.pathway_per_context(tasks.contextual_classification())
    >>> arch.hidden, data.gates["only2"]
    (('only1', 'only2'), array([0., 0., 0., 0., 1., 1., 1., 1.]))

    ```
    """
    context = label(data, "context", "tasks.contextual_classification()")
    return pathways(data, {f"only{c}": context == c for c in np.unique(context)}, hidden=hidden)

"""Whether items are represented alike in different domains (NRR Fig. 4g and 6c)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from jaxtyping import Bool, Float, Shaped

from neuralrace.analysis import similarity
from neuralrace.checks import plain_array, real_array
from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError, check_kind, listed
from neuralrace.types import ArrayLike


@final
@dataclass(frozen=True, eq=False)
class DomainSimilarity:
    """How alike items are represented within a domain and across domains; see `domain_similarity`.

    `within` `(…, I, I)`: two items of one domain, mean over domains. `across` `(…, I, I)`: an item
    of one domain and one of another, mean over pairs of domains. `by_domain` `(…, D, D)`: the same
    item in two domains, mean over items. `shared` `(…)`: one number, 1 if every item has the same
    representation in all domains, 0 if its representations are unrelated. `spread` `(…)`: samples
    of one item in one domain are averaged first; this is the share of the squared activity that the
    average removes.

    ```python
    >>> from papers.nrr.domains import domain_similarity
    >>> found = domain_similarity([[1.0, 0.0], [0.0, 1.0]], domain=[1, 2], item=[1, 1])
    >>> found.within, found.across, float(found.shared)
    (array([[1.]]), array([[0.]]), 0.0)

    ```
    """

    domains: Shaped[np.ndarray, " D"]
    items: Shaped[np.ndarray, " I"]
    within: Float[np.ndarray, "*runs I I"]
    across: Float[np.ndarray, "*runs I I"]
    by_domain: Float[np.ndarray, "*runs D D"]
    shared: Float[np.ndarray, "*runs"]
    spread: Float[np.ndarray, "*runs"]


def domain_similarity(
    hidden: ArrayLike,
    domain: ArrayLike,
    item: ArrayLike,
    kind: Literal["inner", "cosine", "correlation", "distance"] = "inner",
    pairs: ArrayLike | None = None,
) -> DomainSimilarity:
    """How alike the same items are represented in different domains (NRR §4, Fig. 4g and 6c).

    A representation is shared if an item evokes the same activity in every domain; `across` then
    equals `within`. As one number, with h_a the activity of an item in domain a,

        shared = Σ h_a · h_b / Σ ½ (‖h_a‖² + ‖h_b‖²) ≤ 1,

    with sums over items and pairs of domains a ≠ b. It is 1 only if h_a = h_b throughout.

    **Arguments:** `hidden` of shape `(…, N, size)`; `domain` and `item`, shape `(N,)`, say which
    item each sample shows and in which domain (`data.labels["input"]`, `data.labels["item"]` of
    `tasks.routing`). Every item must occur in every domain; samples that agree in both are
    averaged. `kind` is as in `similarity` and does not affect `shared`. `pairs`, a boolean matrix
    `(D, D)`, restricts `across` and `shared` to some pairs of domains, for example to those that
    never met: `~domains_that_met(trained)`.

    ```python
    >>> import neuralrace as nr
    >>> from papers.nrr.domains import domain_similarity
    >>> trained, _ = nr.tasks.routing(M=3, K=2)
    >>> where = {"domain": trained.labels["input"], "item": trained.labels["item"]}
    >>> shown = sum(trained.x.values())  # the item, whatever the domain
    >>> float(domain_similarity(shown, **where).shared)
    1.0

    ```
    """
    h = real_array("hidden", hidden, wanted="an array of shape (…, N, size)", fix="hidden['h']")
    if h.ndim < 2 or not np.isfinite(h).all():
        raise NeuralRaceError(
            "hidden must have one row of finite numbers per sample",
            got=f"shape {h.shape}, {int((~np.isfinite(h)).sum())} numbers that are not finite",
            wanted="finite numbers of shape (…, N, size)",
            fix="leave out the runs that diverged",
        )
    places = [_labels(name, v, h.shape[-2]) for name, v in (("domain", domain), ("item", item))]
    (domains, d), (items, i) = (np.unique(v, return_inverse=True) for v in places)
    D, I = len(domains), len(items)  # noqa: E741
    sample_of = np.arange(D * I)[:, None] == d * I + i
    count = sample_of.sum(axis=1)
    if not count.all() or D < 2:
        missing = int(np.argmin(count))
        raise NeuralRaceError(
            "every item must be shown in every domain" if D > 1 else "there is one domain only",
            got=f"{D} domains and {I} items"
            + (f", none of item {items[missing % I]} in domain {domains[missing // I]}" * (D > 1)),
            wanted="at least two domains, and a sample of each item in each of them",
            fix="domain and item are labels of the samples, such as data.labels['input'] and "
            "data.labels['item']; leave out items that some domain lacks",
        )
    mean = (sample_of / count[:, None]) @ h
    kept = (mean**2).sum(axis=-1) @ count
    alike = similarity(mean, kind).reshape(*h.shape[:-2], D, I, D, I)
    chosen = _pairs(pairs, D)
    a, b = np.nonzero(chosen)
    product = similarity(mean).reshape(*h.shape[:-2], D, I, D, I)
    product = np.einsum("...aibi->...ab", product)
    square = np.diagonal(product, axis1=-2, axis2=-1)
    return DomainSimilarity(
        domains=domains,
        items=items,
        within=np.einsum("...aiaj->...ij", alike) / D,
        across=np.einsum("...aibj,ab->...ij", alike, chosen / len(a)),
        by_domain=np.einsum("...aibi->...ab", alike) / I,
        shared=_ratio(
            product[..., a, b].sum(axis=-1), (square[..., a] + square[..., b]).sum(axis=-1) / 2
        ),
        spread=np.asarray(1 - _ratio(kept, (h**2).sum(axis=(-2, -1)))),
    )


def domains_that_met(trained: Dataset) -> Bool[np.ndarray, "D D"]:
    """Which pairs of input domains were trained with a common output domain (NRR Fig. 4g).

    With the circulant routes of NRR Fig. 4d, any two input domains have a common output if 2K > M,
    as for M = 7, K = 4. With a smaller K, some domains never met.

    ```python
    >>> import neuralrace as nr
    >>> from papers.nrr.domains import domains_that_met
    >>> [int((~domains_that_met(nr.tasks.routing(7, K)[0])).sum()) for K in (2, 3, 4)]
    [28, 14, 0]

    ```
    """
    check_kind("trained", trained, Dataset, "pass the first dataset of tasks.routing()")
    lacking = sorted({"input", "output"} - set(trained.labels))
    if lacking:
        raise NeuralRaceError(
            f"the samples have no label {lacking[0]!r}",
            got=f"labels {listed(trained.labels)}",
            wanted="the labels 'input' and 'output', domains of the route of each sample",
            fix="use data of tasks.routing, or pass such labels to the Dataset",
        )
    ends = (np.unique(trained.labels[v], return_inverse=True)[1] for v in ("input", "output"))
    source, target = ends
    routes = np.zeros((source.max() + 1, target.max() + 1), int)
    routes[source, target] = 1
    return routes @ routes.T > 0


def _ratio(part: ArrayLike, whole: ArrayLike) -> np.ndarray:
    """`part / whole`, NaN where the whole is zero."""
    part, whole = np.asarray(part), np.asarray(whole)
    return np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole != 0)


def _labels(name: str, values: ArrayLike, n: int) -> Shaped[np.ndarray, " N"]:
    fix = "use the labels of the dataset that the activity was computed on"
    labels = plain_array(name, values, wanted=f"shape ({n},): one label per sample", fix=fix)
    if labels.shape != (n,) or labels.dtype.kind not in "fiubU":
        raise NeuralRaceError(
            f"{name} does not fit the samples",
            got=f"shape {labels.shape} of {labels.dtype}",
            wanted=f"shape ({n},): one label per sample, a number or a name",
            fix=fix,
        )
    return labels


def _pairs(pairs: ArrayLike | None, D: int) -> Bool[np.ndarray, "D D"]:
    """Which pairs of different domains are selected, in both orders."""
    fix = "domains_that_met(trained) has this form"
    wanted = f"a boolean matrix of shape ({D}, {D})"
    given = np.ones((D, D), bool) if pairs is None else pairs
    given = plain_array("pairs", given, wanted=wanted, fix=fix)
    if given.shape != (D, D) or given.dtype != bool:
        raise NeuralRaceError(
            "pairs does not fit the domains",
            got=f"shape {given.shape} of dtype {given.dtype}",
            wanted=wanted,
            fix=fix,
        )
    chosen = (given | given.T) & ~np.eye(D, dtype=bool)
    if not chosen.any():
        raise NeuralRaceError(
            "pairs names no two different domains",
            got="no such pair",
            wanted="at least one pair of different domains",
            fix="with M circulant routes of K outputs each, all domains met if 2K > M; "
            "train fewer routes, or leave out pairs",
        )
    return chosen

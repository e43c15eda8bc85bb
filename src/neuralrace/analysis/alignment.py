"""How closely the weights have the form R_t B R_sᵀ in bases of the data (NRR Eq. 9)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.analysis.checks import finite_array, ratio, weights_of_runs
from neuralrace.architecture import Architecture
from neuralrace.checks import plain_array
from neuralrace.errors import NeuralRaceError, check_kind, listed
from neuralrace.gdln import Network
from neuralrace.tolerances import EQUAL
from neuralrace.types import ArrayLike, WeightsLike


def alignment(
    net: Network,
    weights: WeightsLike,
    bases: Mapping[str, ArrayLike],
    groups: ArrayLike | None = None,
) -> dict[str, Float[np.ndarray, "*runs"]]:
    """How closely each W_e has the form R_t B_e R_sᵀ with B_e diagonal: 1 if it does exactly.

    The race reduction assumes this form (NRR §3, "decoupled" weights). At input and output nodes,
    R_v is given by the data; at hidden nodes it may have any orthonormal columns. The latter are
    read off the weights: column k of R_v is the direction into which the incoming edges send the
    k-th columns of their sources, made orthonormal (the polar factor). The value for an edge is

        Σ_k (R_tᵀ W_e R_s)_kk² / ‖W_e‖²,

    the share of its squared norm on the diagonal; weights outside the bases lower it.

    **Arguments:** `weights[edge]` of shape `(…, |t|, |s|)`. `bases[v]` of shape `(size, K)` for
    every input and output node: orthonormal columns, with column k the same mode at every node, and
    zero if a node lacks it. For a race, use `np.hstack([block.basis[v] for block in race.blocks])`;
    otherwise the singular vectors of Σ^yx. `groups` `(K,)`: columns with the same label count as
    one block, since modes of equal strength may mix.

    **Returns:** `{edge: (…)}`; NaN where all weights of an edge are zero.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(2, 3, 2))
    >>> weights = {"W1": np.eye(3, 2), "W2": [[2.0, 0.0, 0.0], [1.0, 1.0, 0.0]]}
    >>> nr.analysis.alignment(net, weights, {"x": np.eye(2), "y": np.eye(2)})
    {'W1': array(1.), 'W2': array(0.83333333)}

    ```
    """
    check_kind("net", net, Network, "pass the network first: alignment(net, weights, bases)")
    arch = net.arch
    lead, stacked = weights_of_runs(arch, weights)
    known: dict[str, np.ndarray] = checked_bases(arch, bases)
    K = next(iter(known.values())).shape[1]
    mask = _same_group(groups, K)
    for node in arch.order:
        if node not in known:
            sent = [stacked[e] @ known[arch.edges[e][0]] for e in arch.incoming[node]]
            known[node] = _polar(_main_directions(np.stack(sent, axis=-1)))
    found = {}
    for edge, (s, t) in arch.edges.items():
        found[edge] = _share(stacked[edge], known[t], known[s], mask).reshape(lead)
    return found


def diagonal_share(
    matrix: ArrayLike,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Float[np.ndarray, "*runs"]:
    """The share of the squared norm of one matrix W on the diagonal of LᵀWR; see `alignment`.

    If one basis is left out, the orthonormal basis that fits W best is used (the polar factor of W
    R, or of Wᵀ L). The share is then 1 if W maps the given directions to orthogonal ones.

    **Arguments:** `matrix` `(…, m, n)`, `left` `(m, K)`, `right` `(n, K)`; `groups` as in
    `alignment`.

    ```python
    >>> import numpy as np
    >>> from neuralrace import analysis
    >>> turned = np.array([[0.0, -2.0], [1.0, 0.0]])
    >>> [round(float(analysis.diagonal_share(turned, l, np.eye(2))), 6) for l in (np.eye(2), None)]
    [0.0, 1.0]

    ```
    """
    w = finite_array("the matrix", matrix, "(…, m, n)")
    if left is None and right is None:
        raise NeuralRaceError(
            "diagonal_share needs a basis",
            got="neither left nor right",
            wanted="at least one of them",
            fix="every matrix is diagonal in its own singular vectors",
        )
    l = None if left is None else _checked_basis("left", left, w.shape[-2])  # noqa: E741
    r = None if right is None else _checked_basis("right", right, w.shape[-1])
    if l is None:
        l = _polar(w @ r)  # noqa: E741
    if r is None:
        r = _polar(np.swapaxes(w, -1, -2) @ l)
    if l.shape[-1] != r.shape[-1]:
        raise _unequal({"left": l.shape[-1], "right": r.shape[-1]})
    return _share(w, l, r, _same_group(groups, r.shape[-1]))


def _share(w: np.ndarray, left: np.ndarray, right: np.ndarray, mask: np.ndarray) -> np.ndarray:
    turned = np.swapaxes(left, -1, -2) @ w @ right
    return ratio((turned**2 * mask).sum(axis=(-2, -1)), (w**2).sum(axis=(-2, -1)))


def _polar(matrix: np.ndarray) -> np.ndarray:
    """The nearest matrix with orthonormal columns (rows, where these are fewer)."""
    u, _, vt = np.linalg.svd(matrix, full_matrices=False)
    return u @ vt


def _main_directions(sent: np.ndarray) -> np.ndarray:
    """For vectors (…, size, K, edges): the main direction over edges for each k, with its size.

    Edges may carry a mode with opposite signs; their sum would cancel, but the main direction
    remains.
    """
    u, s, _ = np.linalg.svd(np.moveaxis(sent, -2, -3), full_matrices=False)
    return np.moveaxis(u[..., 0] * s[..., :1], -2, -1)


def checked_bases(arch: Architecture, bases: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
    ends = (*arch.inputs, *arch.outputs)
    if not isinstance(bases, Mapping) or set(bases) != set(ends):
        raise NeuralRaceError(
            "bases are given for every input and output node",
            got=f"bases for {listed(bases)}"
            if isinstance(bases, Mapping)
            else type(bases).__name__,
            wanted=f"bases for {listed(ends)}",
            fix="for a race: {v: np.hstack([b.basis[v] for b in race.blocks]) for v in …}",
        )
    known = {v: _checked_basis(f"of node {v!r}", bases[v], arch.sizes[v]) for v in ends}
    if len({b.shape[1] for b in known.values()}) > 1:
        raise _unequal({v: b.shape[1] for v, b in known.items()})
    return known


def _unequal(columns: Mapping[str, int]) -> NeuralRaceError:
    return NeuralRaceError(
        "the bases have different numbers of modes",
        got=", ".join(f"{v} {k}" for v, k in columns.items()),
        wanted="the same number of columns in each; column k is the same mode everywhere",
        fix="give a node that lacks a mode a column of zeros",
    )


def _checked_basis(name: str, basis: ArrayLike, size: int) -> Float[np.ndarray, "size K"]:
    b = finite_array(f"the basis {name}", basis, "(size, K)")
    if b.ndim != 2 or len(b) != size:
        raise NeuralRaceError(
            f"the basis {name} has the wrong shape",
            got=f"shape {b.shape}",
            wanted=f"shape ({size}, K)",
            fix="directions are columns: transpose a basis with one direction per row",
        )
    gram = b.T @ b
    off = float(np.abs(gram - np.diag(np.round(np.diag(gram)).clip(0, 1))).max())
    if off > EQUAL:
        raise NeuralRaceError(
            f"the basis {name} is not orthonormal",
            got=f"columns off by {off:.2g}",
            wanted="orthonormal columns, or columns of zeros",
            fix="take singular vectors, or orthonormalise with np.linalg.qr",
        )
    return b


def _same_group(groups: ArrayLike | None, K: int) -> Bool[np.ndarray, "K K"]:
    fix = "modes with the same label count as one block"
    labels = np.arange(K) if groups is None else groups
    labels = plain_array("groups", labels, wanted=f"shape ({K},): one label per mode", fix=fix)
    if labels.shape != (K,):
        raise NeuralRaceError(
            "groups does not fit the bases",
            got=f"shape {labels.shape}",
            wanted=f"shape ({K},): one label per mode",
            fix=fix,
        )
    return labels[:, None] == labels

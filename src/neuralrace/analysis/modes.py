"""Modes: singular values over time, and how closely weights have the form of NRR Eq. 9."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final, overload

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.analysis.representations import finite_array, ratio, weights_of_runs
from neuralrace.architecture import Architecture
from neuralrace.checks import plain_array
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.gdln import Network
from neuralrace.tolerances import EQUAL
from neuralrace.types import ArrayLike, Count, NotNegative, WeightsLike
from neuralrace.weights import check_untied


@final
@dataclass(frozen=True, eq=False)
class Modes:
    """Singular triples tracked over time; see `follow_modes`.

    `values` `(…, T, k)`; `left` `(…, T, m, k)` and `right` `(…, T, n, k)`, the singular vectors in
    columns; `overlap` `(…, T, k)`: (u·u′)(v·v′) with the same mode at the next time; it is 1 if the
    mode does not rotate, and at the last time.

    ```python
    >>> import numpy as np
    >>> from neuralrace import analysis
    >>> found = analysis.follow_modes([np.diag([3.0, 1.0]), np.diag([1.0, 2.0])])
    >>> found.values, found.overlap.min() > 0.999
    (array([[1., 3.],
           [2., 1.]]), np.True_)

    ```
    """

    values: Float[np.ndarray, "*runs k"]
    left: Float[np.ndarray, "*runs m k"]
    right: Float[np.ndarray, "*runs n k"]
    overlap: Float[np.ndarray, "*runs k"]


@overload
def singular_values(
    weights: WeightsLike, modes: int | None = None, tie: float = EQUAL
) -> dict[str, np.ndarray]: ...
@overload
def singular_values(
    weights: ArrayLike, modes: int | None = None, tie: float = EQUAL
) -> np.ndarray: ...
@door
def singular_values(
    weights: ArrayLike | WeightsLike, modes: int | None = None, tie: float = EQUAL
) -> np.ndarray | dict[str, np.ndarray]:
    """The singular values of weight matrices over time, mode by mode (NRR Fig. 4f).

    Sorting at each time would swap two modes wherever their strengths cross. Here each value stays
    with its singular vectors; `follow_modes` also returns these vectors, and how certain the
    assignment is.

    **Arguments:** `weights`, an array `(…, T, m, n)`, or `{edge: array}` such as
    `run.values["weights"]`; `modes`, how many to keep, the largest at the last time (all by
    default). A single matrix `(m, n)` gives its values, largest first.

    **Returns:** an array `(…, T, modes)`, or a dictionary of them. Modes are in order of their
    strength at the last time.

    ```python
    >>> import numpy as np
    >>> from neuralrace import analysis
    >>> analysis.singular_values([np.diag([3.0, 1.0]), np.diag([1.0, 2.0])])
    array([[1., 3.],
           [2., 1.]])

    ```
    """
    if isinstance(weights, Mapping):
        return {edge: follow_modes(w, modes, tie).values for edge, w in weights.items()}
    return follow_modes(weights, modes, tie).values


@door
def follow_modes(weights: ArrayLike, modes: Count | None = None, tie: NotNegative = EQUAL) -> Modes:
    """The singular triples (u, s, v) of a matrix over time, each tracked continuously.

    Modes are numbered by strength at the last time, where learning has separated them (an
    orthogonal start has equal singular values), and tracked backwards: from time t + 1 to t, modes
    are assigned one to one so that the sum of their overlaps (u·u′)(v·v′) is largest. If values are
    equal (at the start, or at a crossing that falls on a recorded time), every rotation of their
    vectors is equally valid. The one nearest to the next time's vectors is taken, so that modes
    keep their identity through a crossing.

    Times must be close enough that a mode rotates by less than half the angle to another mode.
    `overlap` shows where this is in doubt, as it is for modes that have not been learned.

    **Arguments:** `weights` `(…, T, m, n)`, or one matrix `(m, n)`; `modes` as in
    `singular_values`; `tie`: values closer than this share of the largest count as equal.

    ```python
    >>> import numpy as np
    >>> from neuralrace import analysis
    >>> grow = np.linspace(0, 1, 5)[:, None, None]
    >>> crossing = (1 - grow) * np.diag([2.0, 1.0]) + grow * np.diag([1.0, 2.0])
    >>> analysis.follow_modes(crossing).values[:, 0]  # equal at the third time
    array([1.  , 1.25, 1.5 , 1.75, 2.  ])

    ```
    """
    w = finite_array("the weights", weights, "(m, n)")
    most = min(w.shape[-2:])
    kept = most if modes is None else modes
    require(
        not kept > most,
        "there are fewer modes",
        got=f"modes = {kept} of matrices of shape {w.shape[-2:]}",
        wanted=f"at most {most}",
        fix="leave it out for all",
    )
    runs = w.reshape(-1, *w.shape[-3:]) if w.ndim > 2 else w[None, None]
    found = [_follow(*np.linalg.svd(run, full_matrices=False), kept, tie) for run in runs]
    values, left, right, overlap = (np.stack(part) for part in zip(*found, strict=True))
    lead, (m, n) = w.shape[:-2], w.shape[-2:]
    return Modes(
        values.reshape(*lead, kept),
        left.reshape(*lead, m, kept),
        right.reshape(*lead, n, kept),
        overlap.reshape(*lead, kept),
    )


def _follow(
    u: np.ndarray, s: np.ndarray, vt: np.ndarray, kept: int, tie: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The triples of one run, u (T, m, k), s (T, k), vt (T, k, n), from the last time back."""
    from scipy.optimize import linear_sum_assignment

    v = np.swapaxes(vt, -1, -2)
    values = s[:, :kept].copy()
    left, right = u[:, :, :kept].copy(), v[:, :, :kept].copy()
    overlap = np.ones_like(values)
    for t in reversed(range(len(s) - 1)):
        first = np.concatenate([[True], s[t, :-1] - s[t, 1:] > tie * s[t, 0]])
        start, cluster = np.flatnonzero(first), np.cumsum(first) - 1
        here_u, here_v = u[t].T @ left[t + 1], v[t].T @ right[t + 1]
        score = np.add.reduceat(here_u * here_v, start, axis=0)[cluster]
        rows, columns = linear_sum_assignment(score, maximize=True)
        place = rows[np.argsort(columns)]
        sign = np.where(here_u[place, np.arange(kept)] + here_v[place, np.arange(kept)] < 0, -1, 1)
        values[t], left[t], right[t] = s[t, place], u[t][:, place] * sign, v[t][:, place] * sign
        for c in np.flatnonzero(np.bincount(cluster) > 1):
            equal = np.flatnonzero(cluster == c)
            members = np.flatnonzero(cluster[place] == c)
            if len(members):
                a, _, b = np.linalg.svd(
                    (here_u + here_v)[np.ix_(equal, members)], full_matrices=False
                )
                turn = a @ b
                values[t, members] = s[t, equal] @ turn**2
                left[t][:, members], right[t][:, members] = (x[t][:, equal] @ turn for x in (u, v))
        overlap[t] = np.einsum("ik,ik->k", left[t], left[t + 1]) * np.einsum(
            "ik,ik->k", right[t], right[t + 1]
        )
    return values, left, right, overlap


@door
def projected(
    weights: ArrayLike, left: ArrayLike | None = None, right: ArrayLike | None = None
) -> Float[np.ndarray, "*runs k"]:
    """The strength of given modes in weight matrices W: l_kᵀ W r_k.

    With only one basis, the length of the image of each direction: ‖W r_k‖, or ‖Wᵀ l_k‖.

    **Arguments:** `weights` `(…, m, n)`; `left` `(m, k)` and `right` `(n, k)`, or one of them,
    with the directions in their columns.

    ```python
    >>> import numpy as np
    >>> from neuralrace import analysis
    >>> analysis.projected([[0.0, 2.0], [3.0, 0.0]], left=[[0.0], [1.0]], right=[[1.0], [0.0]])
    array([3.])

    ```
    """
    w = finite_array("the weights", weights, "(…, m, n)")
    require(
        not (left is None and right is None),
        "projected needs a basis",
        got="neither left nor right",
        wanted="at least one of them",
        fix="without a basis use analysis.singular_values",
    )
    l, r = (  # noqa: E741
        None if b is None else finite_array(name, b, "(size, k)")
        for name, b in (("left", left), ("right", right))
    )
    for name, basis, size in (("left", l, w.shape[-2]), ("right", r, w.shape[-1])):
        odd = basis is not None and (basis.ndim != 2 or len(basis) != size)
        if basis is not None and (odd or (l is not None and l.shape[-1] != basis.shape[-1])):
            raise NeuralRaceError(
                f"the {name} basis does not fit the weights",
                got=f"shape {basis.shape} for weights of shape {w.shape}",
                wanted=f"shape ({size}, k), k the same for both bases",
                fix="directions are columns: transpose a basis with one direction per row",
            )
    if l is None:
        return np.linalg.norm(w @ r, axis=-2)
    if r is None:
        return np.linalg.norm(np.swapaxes(w, -1, -2) @ l, axis=-2)
    return np.einsum("mk,...mn,nk->...k", l, w, r, optimize=True)


@door
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
    arch = net.arch
    check_untied(arch, "alignment")
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


@door
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
    require(
        not (left is None and right is None),
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
    require(
        not (not isinstance(bases, Mapping) or set(bases) != set(ends)),
        "bases are given for every input and output node",
        got=f"bases for {listed(bases)}" if isinstance(bases, Mapping) else type(bases).__name__,
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
    require(
        not (b.ndim != 2 or len(b) != size),
        f"the basis {name} has the wrong shape",
        got=f"shape {b.shape}",
        wanted=f"shape ({size}, K)",
        fix="directions are columns: transpose a basis with one direction per row",
    )
    gram = b.T @ b
    off = float(np.abs(gram - np.diag(np.round(np.diag(gram)).clip(0, 1))).max())
    require(
        not off > EQUAL,
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
    require(
        labels.shape == (K,),
        "groups does not fit the bases",
        got=f"shape {labels.shape}",
        wanted=f"shape ({K},): one label per mode",
        fix=fix,
    )
    return labels[:, None] == labels

"""Singular values of weight matrices over time, tracked by their singular vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final, overload

import numpy as np
from jaxtyping import Float

from neuralrace.analysis.checks import finite_array
from neuralrace.checks import real_number
from neuralrace.errors import NeuralRaceError, whole_number
from neuralrace.tolerances import EQUAL
from neuralrace.types import ArrayLike, WeightsLike


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


def follow_modes(weights: ArrayLike, modes: int | None = None, tie: float = EQUAL) -> Modes:
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
    tie = real_number("tie", tie, least=0, fix="tie=1e-6 of the largest value")
    most = min(w.shape[-2:])
    kept = most if modes is None else whole_number("modes", modes, fix="leave it out for all")
    if kept > most:
        raise NeuralRaceError(
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
    if left is None and right is None:
        raise NeuralRaceError(
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

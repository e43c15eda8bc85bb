"""The exact solution of two-edge linear networks from λ-balanced weights, for any sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from neuralrace.dataset import Dataset, matched
from neuralrace.door import door
from neuralrace.dynamics.flow import checked_times
from neuralrace.errors import require
from neuralrace.gdln import GDLN
from neuralrace.linear.balanced import balance
from neuralrace.linear.chain import LinearTask, chain_edges, chain_weights, linear_task
from neuralrace.tolerances import EQUAL, LARGEST_LOG
from neuralrace.trajectory import Trajectory, join
from neuralrace.types import ArrayLike, Positive, WeightsLike


@door
def lambda_balanced(
    net: GDLN,
    weights: WeightsLike,
    data: Dataset,
    *,
    times: ArrayLike,
    tolerance: Positive = EQUAL,
) -> Trajectory:
    """Gradient flow of a two-edge linear network, exactly (Talk eqs 13–15; Dominé et al. 2025).

    Assumes `weights` with W₂ᵀW₂ − W₁W₁ᵀ = λI and white inputs, Σ^x = d I; any sizes, and any λ that
    they permit. With Q = [W₁ᵀ; W₂], Σ = Σ^yx and F = [[−λ/2 I, Σᵀ], [Σ, λ/2 I]] (for d = 1, τ = 1),

        QQᵀ(t) = e^{Ft}Q₀ (I + Q₀ᵀ Φ(t) Q₀)⁻¹ Q₀ᵀe^{Ft},   Φ(t) = ∫₀ᵗ e^{2Fs} ds,

    which holds for all sizes without distinguishing cases. The map W₂W₁, the similarity of inputs
    W₁ᵀW₁ and of outputs W₂W₂ᵀ, and the tangent kernel follow from it. It is evaluated by a
    factorisation that is stable at all times and for every λ, including zero. The weights
    themselves are determined up to a rotation of the hidden neurons, which changes none of these.

    **Arguments:** `net`, an ungated chain of two edges; `weights`, such as those of
    `linear.balanced_weights`; `data`, with white inputs (for instance, as many orthogonal inputs of
    equal norm as there are dimensions); `times`, increasing and not negative; `tolerance`, the
    largest relative deviation from balance and from whiteness that counts as rounding. With a
    larger tolerance, the result is an approximation; the deviations found are in `settings`.

    **Returns:** a `Trajectory` with `values` `map` (T, outputs, inputs), `input_similarity` (T,
    inputs, inputs), `output_similarity` (T, outputs, outputs), `kernel_distance` (T,), the distance
    of the tangent kernel on the samples from the kernel at t = 0 (as `analysis.kernel_travel`), and
    `weights`, rotated to be as close as possible to the previous ones. Every analysis of these
    weights that does not distinguish hidden neurons, including the tangent kernel, is correct.

    **Raises:** `NeuralRaceError` with the deviation where the weights are not λ-balanced or the
    inputs not white.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(3, 4, 2))
    >>> data = nr.Dataset({"x": np.eye(3)}, {"y": 3 * np.eye(3)[:, :2]})
    >>> weights = nr.linear.balanced_weights(net, 0.0, scale=0.01, aligned_to=data)
    >>> run = nr.linear.lambda_balanced(net, weights, data, times=[0, 2, 4, 1e4])
    >>> run.loss.round(4), round(run.settings["lambda"], 12)
    (array([2.98  , 2.1451, 0.0249, 0.    ]), 0.0)

    ```
    """
    task = linear_task(net, data, edges=2)
    found = balance(net, weights)
    times = checked_times(times)
    _check_assumptions(found.lam, found.deviation, task.whiteness, tolerance)
    first, second = chain_weights(net, weights)
    n = first.shape[1]
    states = BalancedFlow.of(first, second, task, found.lam).states(times)
    Q = _turned(states, np.concatenate([first.T, second]))
    inputs, outputs = Q[:, :n], Q[:, n:]
    edges = chain_edges(net)
    weights_then = {edges[0]: inputs.swapaxes(1, 2), edges[1]: outputs}
    maps = outputs @ inputs.swapaxes(1, 2)
    similar = (inputs @ inputs.swapaxes(1, 2), outputs @ outputs.swapaxes(1, 2))
    x = np.asarray(matched(net.arch, data).x[net.arch.inputs[0]], np.float64)
    return Trajectory(
        times,
        task.loss(maps),
        values={
            "weights": weights_then,
            "map": maps,
            "input_similarity": similar[0],
            "output_similarity": similar[1],
            "kernel_distance": kernel_distances((first.T @ first, second @ second.T), similar, x),
        },
        final={edge: w[-1] for edge, w in weights_then.items()},
        net=net,
        settings={
            "method": "closed form",
            "solution": "lambda-balanced",
            "lambda": found.lam,
            "balance_deviation": found.deviation,
            "whiteness_deviation": task.whiteness,
        },
    )


@door
def task_sequence(
    net: GDLN,
    weights: WeightsLike,
    tasks: Sequence[Dataset],
    *,
    times: ArrayLike,
    tolerance: Positive = EQUAL,
) -> Trajectory:
    """A sequence of tasks, each solved exactly from where the previous one ended.

    λ is conserved, and the solution of a task needs its start only up to a rotation of the hidden
    neurons, so `lambda_balanced` can be applied task by task (Braun et al. 2022; Dominé et al.
    2025).

    **Arguments:** as `lambda_balanced`, with `tasks` the datasets in their order, and `times` for
    every task, counted from its beginning.

    **Returns:** a `Trajectory` on one time axis. `loss` is the loss on the task being learned; at a
    change of task, the loss on the task that ends is kept. `values` are as in `lambda_balanced`
    (the kernel's distance is from the beginning of each task), with `task_loss` (T, K), the loss on
    each of the K tasks: a loss that rises after its task has ended shows forgetting.
    `settings["changes"]` are the times at which the task changed.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> net = nr.GDLN(nr.Architecture.chain(2, 2, 2))
    >>> tasks = [nr.Dataset({"x": np.eye(2)}, {"y": y}) for y in (np.eye(2), np.eye(2)[::-1])]
    >>> weights = nr.linear.balanced_weights(net, 0.5, scale=0.1)
    >>> run = nr.linear.task_sequence(net, weights, tasks, times=[0, 20, 40])
    >>> run.time, run.values["task_loss"][[2, 4]].round(6)
    (array([ 0., 20., 40., 60., 80.]), array([[0., 1.],
           [1., 0.]]))

    ```
    """
    _check_tasks(tasks)
    times = checked_times(times)
    given = times if times[0] == 0 else np.concatenate([[0.0], times])
    seen = [linear_task(net, data, edges=2) for data in tasks]
    parts = []
    for data in tasks:
        start = parts[-1].final if parts else weights
        parts.append(lambda_balanced(net, start, data, times=given, tolerance=tolerance))
    whole = join(*parts)
    losses = np.stack([task.loss(whole.values["map"]) for task in seen], axis=1)
    return Trajectory(
        whole.time,
        whole.loss,
        values=whole.values | {"task_loss": losses},
        final=whole.final,
        net=net,
        settings=parts[-1].settings
        | {"tasks": len(tasks), "changes": [given[-1] * k for k in range(1, len(tasks))]},
    )


@final
@dataclass(frozen=True, eq=False)
class BalancedFlow:
    """dQ/dt = FQ − ½QQᵀQ in the eigenbasis of F, up to a rotation of the hidden neurons.

    `root` is √d: for Σ^x = d I, √d Q flows as Q does for white inputs of unit variance.
    """

    rates: Float[np.ndarray, " n"]
    basis: Float[np.ndarray, "n n"]
    start: Float[np.ndarray, "n hidden"]
    root: float

    @classmethod
    def of(
        cls, first: np.ndarray, second: np.ndarray, task: LinearTask, lam: float
    ) -> BalancedFlow:
        """The flow of the weights W₁, W₂ on a task with white inputs."""
        root = np.sqrt(task.variance)
        half = lam * task.variance / 2
        n, m = len(task.x), len(task.yx)
        F = np.block([[-half * np.eye(n), task.yx.T], [task.yx, half * np.eye(m)]])
        rates, basis = np.linalg.eigh(F)
        return cls(rates, basis, root * basis.T @ np.concatenate([first.T, second]), root)

    def states(self, times: np.ndarray) -> Float[np.ndarray, "T n hidden"]:
        """Q with the correct QQᵀ at increasing times, one step from each to the next."""
        state, now, found = self.start, 0.0, []
        for time in times:
            if time > now:
                state = self._step(state, time - now)
            now = time
            found.append(self.basis @ state / self.root)
        return np.stack(found)

    def _step(self, state: np.ndarray, span: float) -> np.ndarray:
        """The solution after a time `span`, however long.

        With φ = (e^{2fΔ} − 1)/2f and the QR factorisation [√φ∘Q̂; I] = [O₁; O₂]R, the formula
        becomes Q̂(Δ) = √(2f/(1 − e^{−2fΔ})) ∘ O₁: every factor that could overflow has cancelled.
        """
        z = 2 * self.rates * span
        log_grown = (np.log(span) + _log_relative_growth(z)) / 2
        log_shrink = -(np.log(span) + _log_relative_growth(-z)) / 2
        rows = np.concatenate([state, np.eye(state.shape[1])])
        scale = np.concatenate([log_grown, np.zeros(state.shape[1])])
        factor = _orthonormal(rows, scale)
        return np.exp(log_shrink)[:, None] * factor[: len(state)]


def _orthonormal(rows: np.ndarray, log_scale: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the columns of e^{log_scale} ∘ rows, accurate in every row.

    Rows differ by many orders of magnitude. If none overflows, sorting them by size and pivoting
    the columns of a QR factorisation keeps each row accurate (Cox & Higham 1998). Otherwise the
    columns are first eliminated by their largest entries, in logarithms: in D B = (D L D₁⁻¹)(D₁ U),
    the first factor has the same column space, and no entry above one.
    """
    from scipy.linalg import qr

    if np.abs(log_scale).max() <= LARGEST_LOG:
        scaled = np.exp(log_scale)[:, None] * rows
    else:
        scaled = _eliminated(rows, log_scale)
    order = np.argsort(-np.abs(scaled).max(axis=1), kind="stable")
    factor = qr(scaled[order], mode="economic", pivoting=True)[0]
    unsorted = np.empty_like(factor)
    unsorted[order] = factor
    return unsorted


def _eliminated(rows: np.ndarray, log_scale: np.ndarray) -> np.ndarray:
    """D L D₁⁻¹ of `_orthonormal`, by Gaussian elimination with complete pivoting."""
    rest, found = rows.copy(), np.zeros_like(rows)
    free = list(range(rows.shape[1]))
    live = np.ones(len(rows), bool)
    for step in range(rows.shape[1]):
        with np.errstate(divide="ignore"):
            size = np.log(np.abs(rest[:, free])) + np.where(live, log_scale, -np.inf)[:, None]
        row, at = np.unravel_index(int(np.argmax(size)), size.shape)
        column = free.pop(int(at))
        ratio = rest[:, column] / rest[row, column]
        found[:, step] = ratio * np.exp(np.where(live, log_scale - log_scale[row], -np.inf))
        rest -= np.outer(ratio, rest[row])
        rest[row], live[row] = 0.0, False
    return found


def _log_relative_growth(z: np.ndarray) -> np.ndarray:
    """log((e^z − 1)/z), zero at z = 0, for z of any size."""
    size = np.abs(z)
    safe = np.where(size > 0, size, 1.0)
    found = np.where(size > 0, np.log(-np.expm1(-safe) / safe), 0.0)
    return found + np.maximum(z, 0.0)


def _turned(states: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Each state rotated to be nearest to the previous one (orthogonal Procrustes problem)."""
    from scipy.linalg import orthogonal_procrustes

    found = []
    for Q in states:
        before = Q @ orthogonal_procrustes(Q, before)[0]
        found.append(before)
    return np.stack(found)


def _check_assumptions(lam: float, deviation: float, whiteness: float, tolerance: float) -> None:
    require(
        not deviation > tolerance,
        "the weights are not λ-balanced",
        got=f"W₂ᵀW₂ − W₁W₁ᵀ = {lam:.4g} I up to a deviation of {deviation:.3g} of the weights",
        wanted=f"λ I up to {tolerance:g}",
        fix="linear.balanced_weights makes such weights, linear.grown_weights those that small "
        "random ones grow into; a larger tolerance= takes these as they are, approximately",
    )
    require(
        not whiteness > tolerance,
        "the inputs are not white",
        got=f"⟨x xᵀ⟩ = d I up to a deviation of {whiteness:.3g} of d",
        wanted=f"d I up to {tolerance:g}",
        fix="whiten the inputs, or use nr.flow; a larger tolerance= takes these as they are, "
        "approximately",
    )


def _check_tasks(tasks: Sequence[Dataset]) -> None:
    require(
        tasks,
        "there are no tasks",
        got=tasks,
        wanted="at least one dataset",
        fix="tasks=[first, …]",
    )
    shapes = [
        [{name: v.shape[1] for name, v in side.items()} for side in (data.x, data.y)]
        for data in tasks
    ]
    for k, shape in enumerate(shapes):
        require(
            shape == shapes[0],
            f"task {k + 1} has other inputs or outputs than the first",
            got=f"inputs {shape[0]}, outputs {shape[1]}",
            wanted=f"inputs {shapes[0][0]}, outputs {shapes[0][1]}",
            fix="all tasks of a sequence are learned by one network: give them equal shapes",
        )


def kernel_distances(
    start: tuple[np.ndarray, np.ndarray],
    later: tuple[np.ndarray, np.ndarray],
    x: np.ndarray,
) -> Float[np.ndarray, " T"]:
    """1 − ⟨K₀, K⟩ / (‖K₀‖ ‖K‖) over time, from the similarities, without forming a kernel.

    The kernel of f(x) = W₂W₁x on samples X is K = XAXᵀ ⊗ I + XXᵀ ⊗ B with A = W₁ᵀW₁, B = W₂W₂ᵀ;
    `start` and `later` are (A, B), the later ones over time. As in `analysis.kernel_distance`, it
    is 0 if the kernel only changes its size, at most 1, and NaN if a kernel is zero.
    """
    gram, second = x @ x.T, x.T @ x
    moment = x.T @ gram @ x
    square = float((gram**2).sum())

    def inner(
        a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]
    ) -> np.ndarray | np.floating:
        """⟨K_a, K_b⟩, term by term."""
        (A, B), (C, D) = a, b
        return (
            B.shape[-1] * _dot(A @ second, (C @ second).swapaxes(-1, -2))
            + _dot(A, moment) * np.trace(D, axis1=-2, axis2=-1)
            + _dot(C, moment) * np.trace(B, axis1=-2, axis2=-1)
            + _dot(B, D) * square
        )

    norms = np.sqrt(inner(start, start) * inner(later, later))
    cosine = np.divide(inner(start, later), norms, out=np.full_like(norms, np.nan), where=norms > 0)
    return np.maximum(1 - cosine, 0.0)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray | np.floating:
    return (a * b).sum(axis=(-2, -1))

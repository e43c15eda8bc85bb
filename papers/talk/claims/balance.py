"""Claims of the talk on λ-balanced weights: exact solution, rich and lazy, task sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Basis, Claim, Measure
from papers.figure import Table, settings_of
from papers.talk.claims.reads import first_over_steepest, gap, read


def slide_loss(table: Table, *, corrected: bool, until: float = 2.0) -> float:
    """Eqs 13–15 of the talk against flows: largest difference of loss relative to L(0), all λ.

    With F = [[−λ/2 I, Σᵀ], [Σ, λ/2 I]] they are QQᵀ = Z A⁻¹ Zᵀ, Z = e^{Ft}Q₀ and A = I + Q₀ᵀΦQ₀; in
    F's eigenbasis Φ is (e^{2ft} − 1)/2f, but the talk prints (e^{ft} − 1)/f for the directions
    outside all modes, where f = ±λ/2. Times go up to `until`: as written, the equations lose digits
    later.
    """
    from papers.talk.regimes import task

    s = settings_of(table)
    net, data = task(s["sizes"], s["seed"])
    x, y = np.asarray(data.x["x"]), np.asarray(data.y["y"])
    sigma = y.T @ x / len(x)
    n = x.shape[1]
    worst = 0.0
    for lam, simulated in zip(s["lambdas"], table["simulated"].to_numpy(), strict=True):
        start = nr.linear.balanced_weights(net, lam, scale=s["scale"], key=s["seed"])
        Q = np.concatenate([start["W1"].T, start["W2"]])
        half = np.full(len(Q), lam / 2)
        half[:n] *= -1
        F = np.diag(half)
        F[n:, :n], F[:n, n:] = sigma, sigma.T
        f, E = np.linalg.eigh(F)
        outside = np.abs(f) <= abs(lam) / 2 * (1 + 1e-9) + 1e-12
        for t, loss in zip(table["time"].to_numpy(), simulated, strict=True):
            if t > until:
                break
            rate = np.where(outside & (not corrected), f, 2 * f)
            still = np.abs(rate) < 1e-9
            phi = np.where(still, t, np.expm1(rate * t) / np.where(still, 1.0, rate))
            Z = np.exp(f * t)[:, None] * (E.T @ Q)
            A = np.eye(Q.shape[1]) + (E.T @ Q).T @ (phi[:, None] * (E.T @ Q))
            whole = E @ Z @ np.linalg.solve(A, (E @ Z).T)
            error = ((x @ whole[:n, n:] - y) ** 2).sum(axis=1).mean() / 2
            worst = max(worst, float(abs(error - loss) / simulated[0]))
    return worst


def bend(which: Callable[[np.ndarray], Any]) -> Callable[[Table], float]:
    """The initial slope of the loss over the steepest, at the λ whose index `which` picks."""

    def measured(table: Table) -> float:
        place = int(which(table["lam"].to_numpy()))
        return float(first_over_steepest(table["exact"].to_numpy())[place])

    return measured


def travel(table: Table, shape: str, lam: Callable[..., Any], scale: int = 0) -> float:
    """Mean final kernel distance for a shape, the λ that `lam` picks, and a scale."""
    mean = table["distance"].mean("seed").sel(shape=shape).isel(scale=scale)
    return float(mean.isel(lam=int(lam(table["lam"].to_numpy()))))


def most_balanced(lams: np.ndarray) -> Any:
    """The index of the λ nearest to zero."""
    return np.abs(lams).argmin()


def delay(table: Table) -> float:
    """Half-time of the kernel over half-time of the loss, at the largest λ relative to λ = 0."""
    from papers.talk.delayed_rich import half_times

    learned, turned = half_times(table)
    lams = table["lam"].to_numpy()
    ratio = turned / learned
    return float(ratio[lams.argmax()] / ratio[most_balanced(lams)])


def final_kernel(which: Callable[[np.ndarray], Any]) -> Callable[[Table], float]:
    """Final kernel distance of `delayed_rich`, at the λ that `which` picks."""
    return lambda table: float(table["kernel"].to_numpy()[int(which(table["lam"].to_numpy())), -1])


def _changes(table: Table) -> list[int]:
    """The time indices at which tasks end: at each change, and at the end."""
    time = table["time"].to_numpy()
    return [*np.searchsorted(time, table["changes"].to_numpy()).tolist(), len(time) - 1]


def left_to_learn(table: Table) -> float:
    """The loss on a task when the next one begins, relative to zero output, worst task."""
    from papers.talk.regimes import task

    s = settings_of(table)
    shares = []
    for k, at in enumerate(_changes(table)):
        silent = nr.dataset.zero_loss(task(s["sizes"], s["seed"] + k)[1])
        shares.append(float(table["exact"].to_numpy()[k, at] / silent))
    return max(shares)


def forgetting_gap(table: Table) -> float:
    """The rise of the first task's loss after it ends: exact over simulated, minus 1."""
    first = _changes(table)[0]
    rises = [
        float(table[name].to_numpy()[0, -1] - table[name].to_numpy()[0, first])
        for name in ("exact", "simulated")
    ]
    return abs(rises[0] / rises[1] - 1)


CLAIMS = (
    Claim(
        "talk/partitioned-solution",
        "“Partitioned solution”, eqs 13–15",
        "Learning from λ-balanced weights is solved exactly, for any sizes.",
        "The solution against flows: the loss of a 5–4–4 network at four λ, and the loss and "
        "tangent kernel of a 4–4–8 network; and eqs 13–15 written out, as printed and corrected, "
        "up to t = 2.",
        (
            Measure(
                "loss-5-4-4",
                "5–4–4, largest difference of loss, relative to L(0)",
                read("lambda_trajectories", gap("exact", "simulated")),
                most=1e-8,
                rests=Basis.THEOREM,
            ),
            Measure(
                "loss-4-4-8",
                "4–4–8, largest difference of loss, relative to L(0)",
                read("delayed_rich", gap("loss", "simulated")),
                most=1e-8,
                rests=Basis.THEOREM,
            ),
            Measure(
                "kernel-4-4-8",
                "4–4–8, largest difference of kernel distance, relative",
                read("delayed_rich", gap("kernel", "travel")),
                most=1e-6,
                rests=Basis.THEOREM,
            ),
            Measure(
                "slide-corrected",
                "eqs 13–15, last term of eq. 15 corrected: difference of loss, relative to L(0)",
                read("lambda_trajectories", lambda t: slide_loss(t, corrected=True)),
                most=1e-8,
                rests=Basis.THEOREM,
            ),
            Measure(
                "slide-printed",
                "eqs 13–15 as printed: difference of loss, relative to L(0)",
                read("lambda_trajectories", lambda t: slide_loss(t, corrected=False)),
                most=1e-8,
                rests=Basis.THEOREM,
                scale="log",
                otherwise="As printed, the last term of eq. 15 is wrong for unequal sizes and λ ≠ "
                "0, by {:.1%} of the initial loss here (geometric mean). The correct term is "
                "(e^(2λ⊥t/τ) − I)/(2λ⊥).",
            ),
        ),
        inferred=True,
    ),
    Claim(
        "talk/exponential-to-sigmoidal",
        "“From exponential to sigmoidal dynamics”",
        "The relative scale of the layers takes learning from exponential to sigmoidal curves.",
        "One initial map, which λ divides differently between the layers: the initial slope of "
        "the loss over its steepest slope, 1 for an exponential.",
        (
            Measure(
                "balanced",
                "λ nearest to zero",
                read("lambda_trajectories", bend(most_balanced)),
                most=0.5,
            ),
            Measure(
                "smallest",
                "smallest λ",
                read("lambda_trajectories", bend(np.argmin)),
                least=0.99,
                origin=1.0,
            ),
            Measure(
                "largest",
                "largest λ",
                read("lambda_trajectories", bend(np.argmax)),
                least=0.99,
                origin=1.0,
            ),
        ),
        inferred=True,
    ),
    Claim(
        "talk/rich-and-lazy",
        "“Rich and lazy learning”",
        "Small balanced weights learn richly; unbalanced or large ones lazily.",
        "Distance between the final and the initial tangent kernel, square networks, mean over "
        "seeds, by λ and the singular values of the initial map.",
        (
            Measure(
                "balanced",
                "λ = 0, smallest scale",
                read("regimes", lambda t: travel(t, "square", most_balanced)),
                least=0.05,
            ),
            Measure(
                "imbalanced",
                "largest |λ|, smallest scale, over that",
                read(
                    "regimes",
                    lambda t: (
                        max(travel(t, "square", end) for end in (np.argmin, np.argmax))
                        / travel(t, "square", most_balanced)
                    ),
                ),
                most=0.2,
            ),
            Measure(
                "large-scale",
                "λ = 0, largest scale, over that",
                read(
                    "regimes",
                    lambda t: (
                        travel(t, "square", most_balanced, -1) / travel(t, "square", most_balanced)
                    ),
                ),
                most=0.2,
                otherwise="Large weights alone are not lazy: at λ = 0, the kernel moves {:.0%} as "
                "far from the largest scale as from the smallest. Balanced weights end at W₁ᵀW₁ = "
                "V S Vᵀ whatever their scale; λ decides.",
            ),
        ),
        inferred=True,
    ),
    Claim(
        "talk/architecture-and-regime",
        "“Architecture and learning regime”",
        "Which sign of λ is lazy depends on the architecture: positive for a funnel, negative for "
        "an inverted funnel, either for a square network.",
        "Final kernel distance from the smallest scale, at the largest |λ| of either sign, "
        "relative to λ = 0; mean over seeds.",
        (
            *(
                Measure(
                    f"{shape}-{'positive' if sign == '>' else 'negative'}",
                    f"{shape}, λ {sign} 0",
                    read(
                        "regimes",
                        lambda t, shape=shape, end=end: (
                            travel(t, shape, end) / travel(t, shape, most_balanced)
                        ),
                    ),
                    least=None if lazy else 0.2,
                    most=0.2 if lazy else None,
                )
                for shape, sign, end, lazy in (
                    ("funnel", ">", np.argmax, True),
                    ("funnel", "<", np.argmin, False),
                    ("square", ">", np.argmax, True),
                    ("square", "<", np.argmin, True),
                    ("inverted", ">", np.argmax, False),
                    ("inverted", "<", np.argmin, True),
                )
            ),
        ),
        inferred=True,
    ),
    Claim(
        "talk/delayed-rich",
        "“Delayed rich regime”",
        "If the larger layer does not reach every direction that the task needs, learning starts "
        "lazily and the representation changes later.",
        "A 4–4–8 network, λ = −8 … 8: the half-time of the kernel's movement over the half-time "
        "of the loss, and final kernel distances.",
        (
            Measure(
                "delay",
                "half-times, kernel over loss, largest λ relative to λ = 0",
                read("delayed_rich", delay),
                least=2.0,
                origin=1.0,
                scale="log",
            ),
            Measure(
                "kernel-largest",
                "kernel distance at the end, largest λ",
                read("delayed_rich", final_kernel(np.argmax)),
                least=0.05,
            ),
            Measure(
                "kernel-smallest",
                "kernel distance at the end, smallest λ over largest",
                read(
                    "delayed_rich",
                    lambda t: final_kernel(np.argmin)(t) / final_kernel(np.argmax)(t),
                ),
                most=0.2,
                scale="log",
            ),
        ),
        inferred=True,
    ),
    Claim(
        "talk/continual-exact",
        "“Exact continual learning dynamics”",
        "A sequence of tasks is solved exactly, including forgetting.",
        "Three tasks, one after another: the loss on each at all times, exact against the flow; "
        "the loss on a task when the next one begins, relative to zero output; the rise of the "
        "first task's loss after it ends.",
        (
            Measure(
                "loss",
                "largest difference of loss, relative to the largest loss",
                read("continual", gap("exact", "simulated")),
                most=1e-8,
                rests=Basis.THEOREM,
            ),
            Measure(
                "learned",
                "loss on a task when the next begins, relative to zero output, worst task",
                read("continual", left_to_learn),
                most=0.01,
                otherwise="In the given time, {:.1%} of the worst task is not learned; the "
                "solution is exact all the same.",
            ),
            Measure(
                "forgetting",
                "forgetting of the first task: exact over simulated, minus 1",
                read("continual", forgetting_gap),
                most=1e-6,
                rests=Basis.THEOREM,
            ),
        ),
        inferred=True,
    ),
)

"""Claims of MHS §3: a ReLN always exists, and extended XoR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from evidence import FLOOR, Basis, Claim, Measure, Read, Tables
from papers.figure import Table, settings_of
from papers.mhs.claims.measurements import copied_and_frozen, nonlinear_boundary
from papers.mhs.contextual import apart, seed_floor

CROSSOVER = float(np.sqrt(2 / 3))
"""The Δ at which both gatings grow equally fast (MHS Eq. 26)."""

DELTAS = (0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4)
"""The values of Δ at which decision boundaries are measured."""


def _copies(tables: Tables) -> dict[str, list[float]]:
    sizes = {"seeds": 2, "steps": 200} if tables.quick else {"seeds": 5, "steps": 4000}
    return tables.once(copied_and_frozen, **sizes)


def _frozen_over_floor(task: str) -> Read:
    """The distance with constant gates over that of another seed of the ReLU network."""

    def read(tables: Tables) -> np.ndarray:
        found = _copies(tables)
        return np.array(found[f"frozen{task}"]) / np.mean(found[f"floor{task}"])

    return read


def _times(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """For each Δ, the mean learning time of the ReLU networks, and the times of both gatings."""
    from neuralrace.trajectory import crossing_time

    level = settings_of(table)["criterion"]
    time = table["time"].to_numpy()
    relu, gated = (crossing_time(time, table[n].to_numpy(), level) for n in ("relu", "predicted"))
    return np.nanmean(relu, axis=1), np.where(np.isfinite(gated), gated, np.inf)


def _late(tables: Tables) -> float:
    relu, gated = _times(tables("mhs/fig2"))
    return float(np.abs(relu / gated.min(axis=1) - 1).max())


def loss_gaps(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """For each Δ, mean |ΔL|/L(0) between the ReLU networks and the faster and slower gating."""
    relu, predicted = (table[name].to_numpy() for name in ("relu", "predicted"))
    each = apart(table["time"].to_numpy(), relu[:, :, None], predicted[:, None])
    gaps = each.mean(axis=1)  # (Δ, gating)
    faster = _times(table)[1].argmin(axis=1)
    rows = np.arange(len(gaps))
    return gaps[rows, faster], gaps[rows, 1 - faster]


def _losses(of: Callable[[np.ndarray, np.ndarray], Any]) -> Read:
    return lambda tables: float(of(*loss_gaps(tables("mhs/fig2"))))


def _over_floor(tables: Tables) -> float:
    """At the worst Δ, the distance from the faster gating over that of two ReLU networks."""
    table = tables("mhs/fig2")
    floors = [seed_floor(table.isel(delta=k), "relu") for k in range(table.sizes["delta"])]
    return float((loss_gaps(table)[0] / np.array(floors)).max())


def _crossing(starts: str) -> Read:
    """How far the predicted crossover is above √(2/3)."""
    return lambda tables: float(tables("mhs/fig2")["crossing"].sel(starts=starts)) - CROSSOVER


def _growth(tables: Tables) -> float:
    table = tables("mhs/fig2")
    delta = table["delta"].to_numpy()
    formula = np.stack([delta / 2, np.sqrt(1 / 8 + delta**2 / 16)], axis=1)
    return float(np.abs(table["growth"].to_numpy() - formula).max())


def _gates_change(tables: Tables) -> float:
    from papers.mhs.fig2 import boundary

    table = tables("mhs/fig2")
    share = table["share"].mean("seed").to_numpy()
    return boundary(table["delta"].to_numpy(), share[:, 0], share[:, 1])


def _bent(tables: Tables) -> dict[str, list[float]]:
    return tables.once(nonlinear_boundary, deltas=DELTAS, seeds=2 if tables.quick else 10)


def plane_from(bent: dict[str, list[float]], level: float) -> float:
    """The Δ at which the share not decided by x₃ falls to a level, interpolated on a log scale."""
    delta = np.array([float(name) for name in bent])
    part = np.log(np.maximum([np.mean(shares) for shares in bent.values()], 1e-9))
    if part[-1] > np.log(level):
        return float("inf")
    return float(np.interp(-np.log(level), -part, delta))


CLAIMS = (
    Claim(
        "mhs/always-a-reln",
        "§3, Definition 3.1",
        "For any ReLU network and task there is a GDLN with the same outputs at all times on all "
        "samples.",
        "Gates copied from the ReLU network at every step, on extended XoR and the contextual "
        "task, one and two hidden layers. Then gates that are constant in time, as in the "
        "definition: each neuron's gates at the end of training, from the same initial weights; "
        "mean |ΔL| / L(0) over that of another seed.",
        (
            Measure(
                "copied",
                "copied gates: largest distance of outputs relative to the initial error √(2 L(0))",
                lambda tables: max(_copies(tables)["copied"]),
                most=1e-10,
                rests=Basis.THEOREM,
            ),
            Measure(
                "constant-xor",
                "constant gates, extended XoR, Δ = 0.4, over another seed",
                _frozen_over_floor("_xor"),
                most=FLOOR,
                rests=Basis.SEEDS,
                otherwise="On extended XoR, each neuron's final gates from the start give a loss "
                "that is {:.1f} times as far away as another seed.",
            ),
            Measure(
                "constant-contextual",
                "constant gates, contextual task, over another seed",
                _frozen_over_floor(""),
                most=FLOOR,
                rests=Basis.SEEDS,
                otherwise="On the contextual task this needs gates that change with time, which §3 "
                "allows and Definition 3.1 does not have: with each neuron's final gates from the "
                "start, the loss is {:.0f} times as far away as another seed.",
            ),
        ),
        quote="This definition is not specific to the tasks considered in this work and it is "
        "always possible to obtain a ReLN for a given ReLU network and task.",
    ),
    Claim(
        "mhs/xor-faster-gating",
        "§3, Fig. 2d, e",
        "On extended XoR a ReLU network follows the faster of the linear and the XoR gating at "
        "every Δ.",
        "ReLU networks with the settings of Fig. 2 against both gatings, which have equal total "
        "width and start at the average of equally small weights; nothing is fitted. Worst Δ of "
        "the grid.",
        (
            Measure(
                "time",
                "learning time, relative difference from the faster",
                _late,
                most=0.05,
                pooled=True,
            ),
            Measure(
                "loss",
                "mean |ΔL| / L(0) from the faster",
                _losses(lambda fast, slow: fast.max()),
                most=0.05,
                pooled=True,
            ),
            Measure(
                "nearer",
                "share of the Δ at which the faster is nearer than the slower",
                _losses(lambda fast, slow: (fast < slow).mean()),
                least=1.0,
                pooled=True,
                rests=Basis.PAPER,
            ),
            Measure(
                "over-floor",
                "distance from the faster over that of another seed, worst Δ",
                _over_floor,
                most=FLOOR,
                rests=Basis.SEEDS,
                otherwise="At the worst Δ it is {:.1f} times as far away as another seed.",
            ),
        ),
        quote="across the spectrum of Δs, one of these GDLNs always closely matches the ReLU "
        "network dynamics […] ReLU networks behave like the faster GDLN",
    ),
    Claim(
        "mhs/xor-crossover",
        "§3, Fig. 2d, App. C, Eq. 26",
        "Which gating is faster changes at Δ = √(2/3).",
        "Growth rates against Δ/2 and √(1/8 + Δ²/16), and where the predicted times to loss 0.2 "
        "are equal (a root of their difference), minus √(2/3).",
        (
            Measure(
                "rates", "growth rates, largest difference", _growth, most=1e-9, rests=Basis.THEOREM
            ),
            Measure(
                "crossing-width",
                "Δ of equal times minus √(2/3), gatings of equal total width",
                _crossing("width"),
                least=-1e-5,
                most=1e-5,
                rests=Basis.THEOREM,
            ),
            Measure(
                "crossing-start",
                "Δ of equal times minus √(2/3), pathways of equal start",
                _crossing("start"),
                least=-1e-2,
                most=1e-2,
                otherwise="This holds for equal total width. If every pathway has the same start, "
                "whatever its width, the times cross at √(2/3) {:+.3f}.",
                rests=Basis.THEOREM,
            ),
        ),
        quote="Which gating structure is fastest changes at Δ = √(2/3)",
    ),
    Claim(
        "mhs/xor-boundary",
        "§3",
        "√(2/3) is about where trained ReLU networks change from a nonlinear to a linear decision "
        "boundary, well before the task ceases to be separable.",
        "The share of the box |x₁|, |x₂| ≤ 1, |x₃| ≤ Δ that trained networks do not decide by the "
        "sign of x₃; and the Δ at which the final weight in neurons with exactly the linear "
        "patterns overtakes the weight in those with exactly the XoR patterns (Fig. 2).",
        (
            Measure(
                "bent-small",
                "share not decided by x₃, Δ = 0.4",
                lambda t: _bent(t)["0.4"],
                least=0.1,
                form=".2g",
            ),
            Measure(
                "bent-large",
                "share not decided by x₃, Δ = 1.4",
                lambda t: _bent(t)["1.4"],
                most=0.01,
            ),
            Measure(
                "gates-change",
                "Δ at which the gates change",
                _gates_change,
                least=0.7,
                most=0.95,
                origin=CROSSOVER,
                pooled=True,
            ),
            Measure(
                "gates-crossover",
                "Δ at which the gates change, minus √(2/3)",
                lambda t: _gates_change(t) - CROSSOVER,
                least=-0.02,
                most=0.02,
                pooled=True,
                otherwise="Judged by their gates, networks change at Δ = √(2/3) {:+.3f}.",
            ),
            Measure(
                "plane-from",
                "Δ from which less than 1 % is not decided by x₃",
                lambda t: plane_from(_bent(t), 0.01),
                most=CROSSOVER + 0.05,
                pooled=True,
                otherwise="The boundary straightens gradually: it is the plane, up to 1 % of the "
                "box, from Δ = {:.2f} on.",
            ),
        ),
        quote="This crossover point is Δ = √(2/3) […], which marks the approximate point at which "
        "a ReLU network switches from a linear decision boundary to a nonlinear boundary […] well "
        "before the problem becomes nonlinearly separable.",
    ),
)

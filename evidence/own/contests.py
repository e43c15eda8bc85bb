"""Claims about contests: crossovers, joint training, and the table of MHS's contextual tasks."""

from __future__ import annotations

import numpy as np

import neuralrace as nr
from evidence.promise import Measurement, claim
from papers.mhs import table

SECTION = "Contests"
CROSSING = np.sqrt(2 / 3)
"""The Δ at which both gatings grow equally fast (MHS Eq. 26)."""


def gatings(delta: float) -> dict:
    data = nr.tasks.extended_xor(delta)
    return {"linear": nr.tasks.linear_pathways(data), "xor": nr.tasks.xor_pathways(data)}


@claim(
    "contests/crossover",
    SECTION,
    "extended XoR at equal total width: the crossover found by the phase diagram, and the winner "
    "at every Δ in 0 … 2 with |Δ/√(2/3) − 1| > 5 %",
    "√(2/3) to 1e-6; XoR gating below, linear above, at every one",
)
def crossover(full: bool) -> Measurement:
    values = np.linspace(0, 2, 81 if full else 6)
    phases = nr.phase_diagram(gatings, "delta", values, scale=1e-3)
    apart = np.abs(values / CROSSING - 1) > 0.05
    right = np.where(values < CROSSING, "xor", "linear") == np.array(phases.winners)
    error = np.inf
    if len(phases.crossovers) == 1:
        error = abs(phases.crossovers[0].value - CROSSING)
    return Measurement(
        f"{error:.1e} off; {int(right[apart].sum())} of {int(apart.sum())} right",
        bool(error <= 1e-6 and right[apart].all()),
    )


@claim(
    "contests/together",
    SECTION,
    "extended XoR, both gatings trained together from one random start (σ = 1e-3 and 1e-6, 2 "
    "seeds): who supplies most of the targets",
    "the predicted winner at Δ = .3, .6, .75, .9, 1.1, 1.6",
    slow=True,
)
def together(full: bool) -> Measurement:
    text, fine = [], True
    for scale in (1e-3, 1e-6):
        shares = []
        for delta in (0.3, 0.6, 0.75, 0.9, 1.1, 1.6):
            found = nr.contest(gatings(delta), scale=scale)
            times = np.linspace(0, 4 * max(found.times.values()), 101)
            joint = found.joint(seeds=2, times=times)
            fine &= all(winner == found.winner for winner in joint.winners)
            shares.append(f"{joint.carried['linear'][:, -1].mean():.3f}")
        text.append(f"σ = {scale:g}: linear part {', '.join(shares)}")
    return Measurement("; ".join(text), bool(fine))


ROWS = (
    ("gated", "sign"),
    ("predicted", "sign"),
    ("gated", "equal"),
    ("gated", "half"),
    ("gated", "authors"),
    ("single", "sign"),
)
"""The rows of the table that are measured: what, and the rule of widths."""

FITTED = {"different": 0.0108, "C3": 0.0108, "C4": 0.0025, "C5": 0.0089}
"""Mean |ΔL|/L(0) of the authors' predictions, with starts and overlaps fitted by hand."""


NOTE = (
    "Mean ± sd (mean of the largest) of |ΔL|/L(0) over 5 seeds. The rules for the widths were "
    "written down before any curve was seen; the decision to predict with `sign` was made after "
    "first curves of all columns had been seen. A fifth rule, H/4 for every pathway, was measured "
    "once and not kept (.0107, .0044, .0079, .0112). Why the floor is not reached: see "
    "docs/contest.md."
)
"""The note on every column of the table."""


def measured_column(name: str) -> Measurement:
    rows = table.column(table.CASES[name], rows=ROWS)
    names = {"gated": "trained", "predicted": "predicted", "single": "single", "floor": "floor"}
    text = "; ".join(f"{names[what]} {rule}: {row}" for (what, rule), row in rows.items())
    return Measurement(text.replace(" :", ":"), rows["predicted", "sign"].mean < FITTED[name], NOTE)


def _register(name: str) -> None:
    @claim(
        f"contests/table-{name.lower()}",
        SECTION,
        f"the table of MHS §4–5, {table.CASES[name].title}: the ReLU network against common + "
        "all-but-one, trained and predicted with nothing fitted, and common + single",
        f"prediction below the authors' fitted {FITTED[name]:.4f}",
        slow=True,
    )
    def measure(full: bool) -> Measurement:
        return measured_column(name)


for _name in FITTED:
    _register(_name)

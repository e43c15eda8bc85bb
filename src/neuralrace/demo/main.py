"""The demo: the extended XoR and a task with three contexts, through the whole arc."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from neuralrace import tasks
from neuralrace.checks import writable_folder
from neuralrace.contests import Candidates, PhaseDiagram, phase_diagram
from neuralrace.demo import pictures, sentences
from neuralrace.demo.arc import Arc, arc
from neuralrace.demo.page import Part, Step, page, png
from neuralrace.dynamics import train_ensemble
from neuralrace.papers.mhs import table
from neuralrace.relu import ReLUNetwork
from neuralrace.trajectory import crossing_time


@final
@dataclass(frozen=True)
class Settings:
    """What the demo runs. Extended XoR: width and criterion of MHS Fig. 2, initial standard
    deviation and step of our own. Contexts: MHS §5 with C = 3, as the authors' script has it.

    `values` are those of Δ at which the contest is held, every second with trained networks;
    `deltas`, one on either side of the crossover, are taken through the whole arc.
    """

    values: tuple[float, ...] = tuple(np.linspace(0, 2, 21).round(12).tolist())
    deltas: tuple[float, ...] = (0.4, 1.2)
    total: int = 128
    scale: float = 1e-3
    learning_rate: float = 0.05
    steps: int = 600
    seeds: int = 5
    contextual: Any = table.SETTINGS["C3"]
    contextual_seeds: int = 2
    share: float = 0.1
    most: int = 8


QUICK = Settings(
    values=(0.0, 0.5, 1.0, 1.5, 2.0),
    total=32,
    learning_rate=0.1,
    steps=300,
    seeds=2,
    contextual=replace(
        table.SETTINGS["C3"],
        task={"contexts": 3, "items": 4},
        hidden=(96,),
        scale=1e-4,
        step=0.004,
        steps=1600,
    ),
    most=5,
)
"""Smaller networks and fewer of them: the same report in seconds, with larger gaps."""


@final
@dataclass(frozen=True)
class Demo:
    """What the demo found: the sentences that sum it up, the page, and the overview picture."""

    sentences: tuple[str, ...]
    report: Path
    picture: Path


def demo(
    out: Path,
    *,
    quick: bool = False,
    settings: Settings | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Demo:
    """Run everything in float64 (the contextual networks in float32) and write the report.

    **Arguments:** `out`, a folder for `report.html`, `overview.png` and `equations.tex`; `tell` is
    called with a line at every stage.
    """
    begin = time.perf_counter()
    settings = settings or (QUICK if quick else Settings())
    with jax.enable_x64(True):
        tell("The extended XoR: who learns first?")
        found, deltas, times = xor_phases(settings)
        xor = []
        for delta in settings.deltas:
            tell(f"The extended XoR at Δ = {delta:g}: prediction, ReLU networks, gates …")
            xor.append(xor_arc(settings, delta))
        tell("Three contexts: contest, prediction, ReLU networks, gates …")
        contexts = contextual_arc(settings)
    tell("The report …")
    writable_folder(out)
    parts = [xor_part(found, deltas, times, xor), contextual_part(contexts)]
    first = png(pictures.overview(found, deltas, times, xor[0], contexts))
    about = (
        f"Made by `neuralrace demo{' --quick' * quick}` in {time.perf_counter() - begin:.0f} s. "
        f"XoR: {settings.total} neurons, initial standard deviation {settings.scale:g}, learning "
        f"rate {settings.learning_rate:g}, {settings.seeds} seeds. Contexts: "
        f"{settings.contextual.hidden[0]} neurons, {settings.contextual.scale:.3g}, "
        f"{settings.contextual.learning_rate:g}, {settings.contextual_seeds} seeds; half of the "
        f"neurons to the common pathway, the rest divided equally. Distances are mean |ΔL| over "
        f"time, as a share of the initial loss."
    )
    (out / "report.html").write_text(page(first, parts, about), encoding="utf-8")
    (out / "overview.png").write_bytes(first)
    equations = [f"% {each.task}, {each.winner}\n{each.equations}\n" for each in (*xor, contexts)]
    (out / "equations.tex").write_text("\n".join(equations), encoding="utf-8")
    lines = [
        f"{step.title}. {name}: {sentence}"
        for part in parts
        for step in part.steps
        for name, sentence in step.sentences.items()
    ]
    return Demo(tuple(lines), out / "report.html", out / "overview.png")


# ---- the extended XoR ---------------------------------------------------------------------------


def xor_gatings(delta: float, total: int) -> Candidates:
    """The two gatings of MHS Fig. 2, at equal total width."""
    data = tasks.extended_xor(delta)
    return {
        "linear": tasks.linear_pathways(data, total),
        "XoR": tasks.xor_pathways(data, total),
    }


def xor_phases(settings: Settings) -> tuple[PhaseDiagram, np.ndarray, np.ndarray]:
    """The phase diagram, the values at which ReLU networks were trained, and their times."""
    found = phase_diagram(
        lambda delta: xor_gatings(delta, settings.total),
        "Δ",
        settings.values,
        scale=settings.scale,
    )
    deltas = np.asarray(settings.values)[::2]
    many = train_ensemble(
        ReLUNetwork((3, settings.total, 1)),
        [tasks.extended_xor(float(delta)) for delta in deltas],
        axis=("delta", deltas),
        key=jax.random.key(0),
        seeds=min(settings.seeds, 3),
        scale=settings.scale,
        learning_rate=settings.learning_rate,
        steps=settings.steps,
    )
    return found, deltas, crossing_time(many.time, many.loss, 0.2)


def xor_arc(settings: Settings, delta: float) -> Arc:
    """The extended XoR at one Δ."""
    return arc(
        f"Δ = {delta:g}",
        tasks.extended_xor(delta),
        xor_gatings(delta, settings.total),
        hidden=settings.total,
        scale=settings.scale,
        learning_rate=settings.learning_rate,
        steps=settings.steps,
        record_every=4,
        seeds=settings.seeds,
        key=jax.random.key(1),
        most=settings.most,
    )


def xor_part(found: PhaseDiagram, deltas: np.ndarray, times: np.ndarray, arcs: list[Arc]) -> Part:
    """The extended XoR on the page."""
    by = lambda sentence: {each.task: sentence(each) for each in arcs}
    phases = {"Over Δ": sentences.on_phases(found, deltas, times)}
    return Part(
        "Extended XoR",
        "Four points, the exclusive-or of two coordinates, with a third coordinate ±Δ by which "
        "they can be told apart linearly (MHS Eqs. 11–12). A network may give each point a "
        "pathway (the XoR gating) or each class (the linear gating).",
        (
            Step(
                "Contest",
                "Which gating learns first? The learning time of each from its closed form, "
                "and of trained ReLU networks (circles).",
                phases | by(sentences.on_contest),
                png(pictures.contests(found, deltas, times, arcs)),
            ),
            *_steps(arcs),
        ),
    )


# ---- three contexts -----------------------------------------------------------------------------


def contextual_arc(settings: Settings) -> Arc:
    """Items with properties in three contexts: pathways off in one context, or on in one alone."""
    setting = settings.contextual
    return arc(
        "Three contexts",
        tasks.contextual(joined=True, **setting.task),
        {
            "all-but-one": table.gated_network(setting, "gated", "sign"),
            "single": table.gated_network(setting, "single", "sign"),
        },
        hidden=setting.hidden[0],
        scale=setting.scale,
        learning_rate=setting.learning_rate,
        steps=setting.steps,
        record_every=setting.steps // 200,
        seeds=settings.contextual_seeds,
        key=jax.random.key(0),
        criterion=settings.share,
        relative=True,
        most=settings.most,
        discover_in=1,
        dtype=jnp.float32,
    )


def contextual_part(found: Arc) -> Part:
    """Three contexts on the page."""
    return Part(
        "Three contexts",
        "Each item has properties that hold in every context and properties that hold in one (MHS "
        "§5). Beside a common pathway, a network may have pathways that are off in one context "
        "(all-but-one) or on in one alone (single).",
        (
            Step(
                "Contest",
                "Which gating learns first? The races of both, solved; dots mark "
                "when the loss is down to a tenth.",
                {found.task: sentences.on_contest(found)},
                png(pictures.contest(found)),
            ),
            *_steps([found]),
        ),
    )


def _steps(arcs: list[Arc]) -> tuple[Step, ...]:
    """What follows on the contest."""
    by = lambda sentence: {each.task: sentence(each) for each in arcs}
    equations = {f"{each.task}: the race, and its equations in LaTeX": _race(each) for each in arcs}
    return (
        Step(
            "Prediction and simulation",
            "What will the loss do? The winning gating, its reduced equations solved from the "
            "initial weights, and trained networks.",
            by(sentences.on_prediction),
            png(pictures.prediction(arcs)),
            equations,
        ),
        Step(
            "Gates found",
            "Which gates does the ReLU network use? Patterns of activity, clustered; the number of "
            "pathways at the elbow; and which part of the weight is nearest to (bands) or exactly "
            "on (dashed) the patterns of the gating over time.",
            by(sentences.on_gates),
            png(pictures.gates(arcs)),
        ),
        Step(
            "Certificate",
            "Is it the same function? The distance of the outputs over time, next to that of "
            "another seed of the ReLU network.",
            by(sentences.on_certificate),
            png(pictures.certificates(arcs)),
            {
                f"{each.task}: the certificate of the first seed": str(each.certificates[0])
                for each in arcs
            },
        ),
    )


def _race(found: Arc) -> str:
    return f"{found.race}\n\n{found.equations}"

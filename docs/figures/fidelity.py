"""The last picture of docs/reln.md: methods that follow a ReLU network better than Algorithm 1.

Everything is measured again, in a few minutes; the numbers are written next to this file.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import neuralrace as nr
from neuralrace.plot import COLOURS, style

FOLDER = Path(__file__).parents[1] / "img"
NUMBERS = Path(__file__).with_name("reln_fidelity.json")
"""The file with the measured numbers."""


@dataclass(frozen=True)
class Settings:
    """Three contexts with different structures, a smaller network and larger steps than MHS's."""

    hidden: int = 100
    scale: float = 1e-4
    learning_rate: float = 0.096
    steps: int = 1500
    record_every: int = 30
    seeds: int = 5
    fit_to: tuple[int, ...] = (0, 1)
    iterations: int = 60
    clustered: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    trained: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    staged: tuple[int, ...] = (1, 2, 3, 4, 6, 8)


def measure(s: Settings) -> dict[str, Any]:
    """Mean |ΔL| / L(0) by method and number of pathways, on seeds that were not used for fits."""
    data = nr.tasks.contextual(structures=("hierarchy", "ring", "crossed"), joined=True)
    sizes = data.x["x"].shape[1], s.hidden, data.y["y"].shape[1]
    many = nr.train_ensemble(
        nr.ReLUNetwork(sizes), data, key=jax.random.key(0), seeds=s.seeds, scale=s.scale,
        learning_rate=s.learning_rate, steps=s.steps, record_every=s.record_every,
        record={"weights": True}, dtype=jnp.float32,
    )  # fmt: skip
    runs = [many.isel(seed=i) for i in range(s.seeds)]
    judges = [i for i in range(s.seeds) if i not in s.fit_to]

    def judged(found: nr.reln.Discovery) -> float:
        return float(np.mean([found.followed[i].mean for i in judges]))

    def clustered(**options: Any) -> dict[int, nr.reln.Discovery]:
        return {k: nr.reln.discover(runs, data, k, **options) for k in s.clustered}

    plain = clustered()
    kinds = {
        "Algorithm 1": plain,
        "Algorithm 1, as published": clustered(weighted=False),
        "Algorithm 1, real-valued": clustered(rounded=False),
        "gates trained": {
            k: nr.reln.refine(plain[k], fit_to=s.fit_to, iterations=s.iterations) for k in s.trained
        },
    }
    curves = {name: {k: judged(each) for k, each in kind.items()} for name, kind in kinds.items()}
    for count, word in ((2, "two"), (4, "four")):
        gaps = {k: in_stages(runs, data, k, count) for k in s.staged}
        curves[f"{word} stages, started anew"] = {k: gap[judges].mean() for k, gap in gaps.items()}
    apart = [nr.compare(runs[i], runs[j]).mean for i in judges for j in judges if i != j]
    least = min(float(kinds["gates trained"][k].patterns["h"].min()) for k in s.trained)
    return {"another seed": float(np.mean(apart)), "least trained gate": least, "curves": curves}


def in_stages(
    runs: list[nr.Trajectory], data: nr.Dataset, pathways: int, stages: int
) -> np.ndarray:
    """Mean |ΔL| / L(0) of every run, with each stage clustered and restarted separately.

    In each stage the mean loss of the runs falls by the same amount.
    """
    loss = np.mean([run.loss for run in runs], axis=0)
    levels = np.linspace(loss[0], loss[-1], stages + 1)
    at = [int(np.abs(loss - level).argmin()) for level in levels]
    total = np.zeros(len(runs))
    for a, b in itertools.pairwise(at):
        parts = [part(run, a, b) for run in runs]
        found = nr.reln.discover(parts, data, pathways)
        gaps = [each.mean * p.loss[0] for each, p in zip(found.followed, parts, strict=True)]
        total += np.array(gaps) * (runs[0].time[b] - runs[0].time[a])
    return total / (runs[0].time[-1] * np.array([run.loss[0] for run in runs]))


def part(run: nr.Trajectory, a: int, b: int) -> nr.Trajectory:
    """A run from one recorded moment to another, as if it had started there."""
    weights = {edge: w[a : b + 1] for edge, w in run.values["weights"].items()}
    return nr.Trajectory(
        run.time[a : b + 1] - run.time[a], run.loss[a : b + 1], values={"weights": weights},
        net=run.net, settings=run.settings,
    )  # fmt: skip


LOOKS = {
    "Algorithm 1": ("o-", COLOURS["theory"]),
    "Algorithm 1, as published": ("o--", "#0072B2"),
    "Algorithm 1, real-valued": ("o:", COLOURS["neutral"]),
    "two stages, started anew": ("^--", "#D55E00"),
    "four stages, started anew": ("v:", "#D55E00"),
    "gates trained": ("D-", COLOURS["contextual"]),
}
"""Line style and colour of each method."""


def draw(measured: dict[str, Any]) -> Figure:
    """Discrepancy against number of pathways, for Algorithm 1 and the alternatives."""
    figure, ax = plt.subplots(figsize=(5.6, 3.6))
    for name, (line, colour) in LOOKS.items():
        curve: dict[int, float] = measured["curves"][name]
        ax.plot(list(curve), list(curve.values()), line, color=colour, label=name)
    floor = measured["another seed"]
    ax.axhline(floor, color=COLOURS["relu"], linewidth=4, zorder=1)
    ax.text(8, floor * 1.1, "another seed of the ReLU network", ha="right")
    ax.set(xlabel="pathways K", ylabel="mean |ΔL| / L(0)", yscale="log", ylim=(1e-3, 0.2))
    ax.legend(loc="upper right", fontsize="small")
    return figure


def rounded(tree: Any) -> Any:
    """The same nested data with numbers rounded to three digits."""
    if isinstance(tree, dict):
        return {name: rounded(value) for name, value in tree.items()}
    return float(f"{tree:.3g}")


USUAL = Settings()
"""The settings of the picture in the documentation."""


def main(folder: Path = FOLDER, settings: Settings = USUAL) -> None:
    """Write `reln_fidelity.png` into the folder, and the numbers next to this file."""
    measured = measure(settings)
    kept = {"settings": asdict(settings)} | rounded(measured)
    NUMBERS.write_text(json.dumps(kept, indent=1) + "\n")
    folder.mkdir(parents=True, exist_ok=True)
    with style():
        figure = draw(measured)
        figure.savefig(folder / "reln_fidelity.png", dpi=150, pil_kwargs={"optimize": True})
        plt.close(figure)

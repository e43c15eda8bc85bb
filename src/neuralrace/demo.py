"""The main job in small: XoR as a gated linear network and as a ReLU network, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

import jax
import numpy as np

from neuralrace import tasks
from neuralrace.dynamics import train, train_ensemble
from neuralrace.gdln import GDLN
from neuralrace.plot import draw_curves, style
from neuralrace.reduction import reduce
from neuralrace.relu import ReLUNetwork
from neuralrace.trajectory import compare, member


@final
@dataclass(frozen=True)
class Demo:
    """What the demo found: the sentence that sums it up, and the picture."""

    sentence: str
    picture: Path


def demo(
    out: Path,
    *,
    total: int = 128,
    scale: float = 2e-4,
    learning_rate: float = 0.4,
    steps: int = 200,
    seeds: int = 10,
) -> Demo:
    """XoR by ReLU networks, by a four-pathway GDLN, and by the race that predicts it (NRR Fig. 3c).

    Defaults are NRR's: N_h = 128 neurons, σ₀ = 2e-4, τ = 5/2, ten repetitions.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    out.mkdir(parents=True, exist_ok=True)
    key = jax.random.key(0)
    data = tasks.xor()
    relu = train_ensemble(
        ReLUNetwork((2, total, 1)),
        data,
        key=key,
        seeds=seeds,
        scale=scale,
        learning_rate=learning_rate,
        steps=steps,
    )
    arch, gated = tasks.xor_pathways(data, total=total)
    net = GDLN(arch)
    weights = net.init(key, scale)
    run = train(net, weights, gated, learning_rate=learning_rate, steps=steps)
    race = reduce(arch, gated)
    predicted = race.solve(times=run.time, start=race.start(weights), learning_rate=learning_rate)
    found = [compare(run, member(relu, seed=seed)) for seed in range(seeds)]
    sentence = (
        f"A gated linear network with one pathway for each point of XoR reduces to "
        f"{len(race.blocks)} independent modes; from its initial weights they predict its loss "
        f"with a mean |ΔL| / L(0) of {compare(run, predicted).mean:.1e}, and {seeds} ReLU networks "
        f"of {total} neurons follow it within {np.mean([c.mean for c in found]):.1%} on average "
        f"({np.mean([c.mean_after_shift for c in found]):.2%} once each is shifted in time)."
    )
    with style():
        figure, (left, right) = pyplot.subplots(
            1, 2, figsize=(7.2, 2.8), width_ratios=(1, 1.15), layout="constrained"
        )
        arch.draw(gated, ax=left)
        left.set_title("four pathways, one for each point", fontsize=9)
        draw_curves(relu.time, {"ReLU networks": relu.loss}, kind="relu", ax=right)
        draw_curves(run.time, {"gated linear network": run.loss}, ax=right)
        draw_curves(predicted.time, {"predicted race": predicted.loss}, kind="theory", ax=right)
        right.set_title("loss on XoR", fontsize=9)
        figure.savefig(out / "xor.png", dpi=200)
        pyplot.close(figure)
    (out / "equations.tex").write_text(race.latex() + "\n")
    return Demo(sentence, out / "xor.png")

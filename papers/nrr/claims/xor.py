"""Claims of NRR §3 on XoR."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evidence import Claim, Measure, Tables
from papers.figure import Table
from papers.nrr import fig3


def _shifted(tables: Tables) -> np.ndarray:
    """Mean |ΔL| / L(0) between ReLU networks and the mean predicted GDLN after a shift in time."""
    return np.array([c.mean_after_shift for c in fig3.tracks(tables("nrr/fig3"))])


def activity_types(table: Table, margin: float = 1e-3) -> dict[tuple[bool, ...], float]:
    """The share of the ReLU networks' strength ‖w_in‖‖w_out‖ in each pattern of activity.

    A neuron is on for a sample if `z > margin ‖w‖‖x‖`: at the corners of XoR, a neuron that points
    to one sample is exactly at its threshold for two others.
    """
    reads, x = table["reads"].to_numpy(), table["x"].to_numpy()
    size = np.linalg.norm(reads, axis=-1)
    strength = size * np.abs(table["writes"].to_numpy())
    bar = margin * size[..., None] * np.linalg.norm(x, axis=-1)
    on = (reads @ x.T > bar).reshape(-1, len(x))
    share: dict[tuple[bool, ...], float] = {}
    for pattern, weight in zip(map(tuple, on.tolist()), strength.ravel(), strict=True):
        share[pattern] = share.get(pattern, 0.0) + float(weight / strength.sum())
    return share


def _on_for_one(tables: Tables) -> float:
    types = activity_types(tables("nrr/fig3"))
    return sum(share for pattern, share in types.items() if sum(pattern) == 1)


CLAIMS = (
    Claim(
        "nrr/xor-dynamics",
        "§3, Fig. 3c, App. A.1",
        "From small weights, ReLU networks on XoR follow the loss of a GDLN with a pathway for "
        "each sample.",
        "ReLU networks of 128 neurons against the race from the GDLN's own small weights; mean "
        "|ΔL| / L(0) over the run, mean over seeds.",
        (
            fig3.MEASURES["tracks"].on("nrr/fig3"),
            Measure("shifted", "mean |ΔL| / L(0) after a shift in time", _shifted, most=0.01),
            replace(
                fig3.MEASURES["tracks"],
                id="unshifted",
                what="mean |ΔL| / L(0) without a shift, with the threshold for the shape",
                most=0.01,
            ).on(
                "nrr/fig3",
                otherwise="The shape is that of the GDLN, but when the loss falls depends on the "
                "random initial weights: without a shift in time, the mean difference is {:.2%} "
                "of the initial loss.",
            ),
        ),
        quote="Simulations of ReLU dynamics from small weights (red, 10 repetitions) closely track "
        "analytical solutions in the GDLN.",
    ),
    Claim(
        "nrr/xor-cell-types",
        "Fig. 3a",
        "The neurons of a ReLU network trained on XoR fall into four functional types, one for "
        "each sample.",
        "Shares of the strength ‖w_in‖‖w_out‖ in neurons whose weights point within 20° of a "
        "sample, and in neurons that are on for exactly one sample (z > 1e-3 ‖w‖‖x‖), all seeds "
        "together.",
        (
            fig3.MEASURES["types"].on("nrr/fig3"),
            fig3.MEASURES["weakest"].on("nrr/fig3"),
            Measure(
                "one-sample",
                "strength in neurons that are on for only one sample",
                _on_for_one,
                least=0.95,
                otherwise="Judged by activity, only {:.0%} of the strength is in neurons that are "
                "on for only one sample: a neuron that points nearly, but not exactly, to a "
                "corner also responds weakly to a neighbouring one. The four types are types of "
                "direction.",
            ),
        ),
        quote="Input-to-hidden weights from ReLU simulations (magenta) reveal four functional cell "
        "types.",
    ),
)

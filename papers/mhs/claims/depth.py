"""Claims of MHS §6 and App. B: two hidden layers, and Algorithm 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Basis, Claim, Measure, Read, Remark, Tables
from papers.figure import Table
from papers.mhs import depth

RUNS = {"seeds": 5, "at_once": 5}
"""Fig. 6, with fewer runs if it is not stored at full size."""


def _depth(of: Callable[[Table], Any]) -> Read:
    return lambda tables: of(tables.at_hand("mhs/fig6", **RUNS))


def _measure(name: str, otherwise: str = "") -> Measure:
    """A number of Fig. 6 with its bound."""
    measure = depth.MEASURES[name]
    return replace(measure, read=_depth(measure.read), otherwise=otherwise)


def _many() -> Measure:
    return Measure(
        "runs",
        "runs of each network",
        _depth(lambda t: t.sizes["seed"]),
        least=100,
        form=".0f",
        otherwise="Measured on {:.0f} runs of each network, not on the paper's 100.",
        rests=Basis.PAPER,
    )


FIRST = Remark(
    "Of the first layer's final weight, {:.1%} is on for every sample. A neuron is on for {:.0%} "
    "of the samples on average, and {:.0%} of the weight is nearer to all-on than to any other "
    "context pattern.",
    (
        _depth(lambda t: t["always"][:, 0].to_numpy()),
        _depth(lambda t: t["often"][:, 0].to_numpy()),
        _depth(depth.MEASURES["everywhere"].read),
    ),
)
"""What the first of two layers does."""

SECOND = Remark(
    "Of the second layer's final weight, {:.0%}, {:.0%} and {:.0%} is nearest to patterns that are "
    "on in one, two and all contexts.",
    tuple(_depth(depth.share(1, n)) for n in (1, 2, 3)),
)
"""What the second of two layers does."""

ONE_LAYER = Remark(
    "Which gates neurons keep, slide along or make was measured with one hidden layer, on the task "
    "of §4: see `implementable`."
)
"""Says where gates are looked at neuron by neuron."""

TIMING = Remark(
    "The loss of the ReLU networks has fallen to half at epoch {:.0f} ± {:.0f} (standard deviation "
    "over runs), that of the ReLN with pathways in stages at {:.0f} ± {:.0f}, and with pathways "
    "open from the start at {:.0f} ± {:.0f}.",
    tuple(
        _depth(lambda t, n=n, of=of: of(depth.half_epochs(t, n)))
        for n in ("relu", "staged", "gated")
        for of in (np.nanmean, np.nanstd)
    ),
)
"""When the loss falls, and by how much runs differ in it."""


# ---- Algorithm 1 --------------------------------------------------------------------------------


def _gating(context: np.ndarray) -> np.ndarray:
    """The patterns of the gating of §4: on in all contexts, and in all but one."""
    return np.stack([np.ones(len(context), bool), *(context != c for c in np.unique(context))])


def samples_off(centroid: np.ndarray, context: np.ndarray) -> int:
    """On how many samples the worst rounded centroid differs from its pattern in the gating.

    Centroids are paired with the patterns as well as possible.
    """
    wanted = _gating(context)
    if len(centroid) != len(wanted):
        return len(context)
    apart = ((centroid > 0.5)[:, None] != wanted).sum(axis=-1)
    pairs = permutations(range(len(wanted)))
    return int(min(max(apart[k, p] for k, p in enumerate(order)) for order in pairs))


def _four(tables: Tables) -> float:
    table = tables("mhs/fig8")
    centroid = table["centroid"].sel(clusters=4).dropna("cluster").to_numpy()
    return samples_off(centroid, table["context"].to_numpy())


def _exact(tables: Tables) -> float:
    """How many patterns of the gating of §4 are rounded centroids of four clusters."""
    table = tables("mhs/fig8")
    found = table["centroid"].sel(clusters=4).dropna("cluster").to_numpy() > 0.5
    return sum(bool((found == p).all(axis=1).any()) for p in _gating(table["context"].to_numpy()))


def _common_found(tables: Tables) -> float:
    """The share of values of K for which some centroid rounds to all-on."""
    centroids = tables("mhs/fig8")["centroid"].to_numpy()
    return float(np.mean([(c > 0.5).all(axis=1).any() for c in centroids]))


def _errors(tables: Tables) -> np.ndarray:
    """(K, seeds): the error of the GDLN from each number of clusters."""
    return tables("mhs/fig9")["discrepancy"].to_numpy()


CLAIMS = (
    Claim(
        "mhs/depth-first-layer",
        "§6, Fig. 6",
        "With two hidden layers the first does not gate: its neurons are on for all samples.",
        "Final weight ‖w_in‖‖w_out‖ of the first layer: in neurons that are on for every sample, "
        "and in those whose nearest context pattern is all-on.",
        (
            _measure("always"),
            _measure("everywhere"),
            _many(),
        ),
        quote="the ReLU network does not use the first layer for gating and instead all neurons "
        "are active for all datapoints.",
        instead=(FIRST, SECOND, ONE_LAYER),
    ),
    Claim(
        "mhs/depth-second-layer",
        "§6, Fig. 6",
        "The second layer keeps a common pathway, and its contextual pathways are on in two of "
        "three contexts.",
        "Final weight of the second layer by nearest context pattern. “Relatively similar” has no "
        "number. Both bounds are ours: what patterns drawn by chance would give. Three of the "
        "seven patterns are on in two contexts and three in one, which makes a half, and one is on "
        "in all, which makes a seventh. They were set when the numbers were known, and decide "
        "nothing.",
        (
            _measure("two"),
            _measure("common"),
            _measure("one", "{:.0%} of the weight is nearest to single contexts."),
            _many(),
        ),
        quote="the gating strategy of the network remains relatively similar as the contextual "
        "pathways are active in two out of the three contexts. Similarly the common pathway "
        "remains.",
        instead=(SECOND, ONE_LAYER),
    ),
    Claim(
        "mhs/depth-follows",
        "§6, Fig. 6b",
        "The stereotypical ReLN follows the stereotypical ReLU network.",
        "The runs nearest to the mean of each. The paper's ReLN begins to learn at epoch 500 and "
        "opens its contextual pathways at epoch 12000, by hand; beside it, one whose pathways are "
        "open from the start. Mean |ΔL| / L(0). Outputs are compared at plateaus that both losses "
        "have: after the first drop and above 1 % of L(0), the loss falls by less than .1 % of "
        "L(0) per 100 epochs, for 500 epochs or more, and both losses are equal to 1 % of L(0). "
        "The rule was set with the stored losses in view, so that the outputs decide nothing; "
        "limits show what it leaves out. Outputs were kept for the two stereotypes alone: there is "
        "no other seed to compare them with, as “exact agreement” would need.",
        (
            _measure("loss, staged"),
            _measure(
                "over runs, staged",
                "With its stages set by hand, it is {:.1f} times as far away as another run of "
                "the ReLU network.",
            ),
            _measure("loss, gated", "Without epochs set by hand, it follows to {:.1%}."),
            _measure("outputs, staged"),
            _measure(
                "outputs, gated",
                "Without epochs set by hand, outputs at plateaus that both have differ by {:.1%} "
                "of the size of the targets.",
            ),
            _measure(
                "outputs, twice the slope",
                "Where the loss falls slowly but is no plateau by this rule, outputs can differ: "
                "by {:.0%} of the size of the targets if it may fall twice as fast.",
            ),
            _measure(
                "outputs, half",
                "Inside a drop, at half the initial loss, outputs differ by {:.0%} of the size of "
                "the targets.",
            ),
            _measure(
                "plateaus",
                "The ReLN has {:.0%} of the plateaus of the ReLU network.",
            ),
            _many(),
        ),
        quote="We see close agreement between the ReLU network and GDLN stereotypical trajectories "
        "[…] when comparing samples from both networks at plateaus in the loss trajectories we see "
        "exact agreement between the outputs.",
        instead=(TIMING, FIRST),
    ),
    Claim(
        "mhs/depth-variance",
        "§6, Fig. 6b",
        "Runs now differ, and ReLN and ReLU network have the same variance profiles.",
        "Standard deviation of the loss over runs relative to L(0), mean over time; correlation of "
        "the two profiles over time; for the paper's ReLN, whose pathways open at epochs set by "
        "hand, and for one whose pathways are open from the start.",
        (
            _measure("spread"),
            _measure("spread, staged"),
            _measure("profiles, staged"),
            _measure(
                "spread, gated",
                "Without epochs set by hand, the ReLN has {:.2f} times the spread of the ReLU "
                "network.",
            ),
            _measure(
                "profiles, gated",
                "Without epochs set by hand, the two spreads correlate by {:.2f} over time.",
            ),
            _many(),
        ),
        quote="there is now variance in the trajectories of both networks […] we also see the same "
        "variance profiles across the various runs.",
        instead=(TIMING,),
    ),
    Claim(
        "mhs/algorithm-1",
        "App. B, Fig. 8",
        "K-means with K = 4 on the activity of ReLU networks finds the gating of §4; with 2 and 3 "
        "it finds the common pathway.",
        "Activity every 100 epochs, five trainings, all neurons weighted equally; rounded "
        "centroids.",
        (
            Measure(
                "common-found",
                "share of K = 2, 3, 4 with a centroid that is on for all samples",
                _common_found,
                least=1,
                rests=Basis.PAPER,
            ),
            Measure(
                "four-wrong",
                "K = 4: samples of 24 on which the worst centroid is wrong",
                _four,
                most=2,
                form=".0f",
            ),
            Measure(
                "four-exact",
                "K = 4: the exact gating",
                _four,
                most=0,
                form=".0f",
                rests=Basis.PAPER,
                otherwise="With these trainings, one centroid rounds to a pattern that is wrong "
                "on {:.0f} of 24 samples.",
            ),
        ),
        quote="all of the clusterings find a common pathway […] when using 4-clusters the exact "
        "gating pattern used in Section 4 emerges.",
        instead=(
            Remark("With 4 clusters, {:.0f} of the four patterns of §4 are found.", (_exact,)),
        ),
    ),
    Claim(
        "mhs/elbow",
        "App. B, Fig. 9",
        "The error of the GDLN that is built from K clusters has its elbow at K = 4.",
        "Mean |ΔL| / L(0) of the GDLN from each run's own initial weights, K = 1 … 8; the elbow "
        "by `nr.reln.elbow`, and by ratios: the gain of the fourth cluster against that of a "
        "fifth.",
        (
            Measure(
                "four-over-three",
                "error with 4 over error with 3",
                lambda t: _errors(t)[3] / _errors(t)[2],
                most=0.75,
            ),
            Measure(
                "five-over-four",
                "error with 5 over error with 4",
                lambda t: _errors(t)[4] / _errors(t)[3],
                least=0.75,
            ),
            Measure(
                "elbow",
                "elbow",
                lambda t: nr.reln.elbow(_errors(t).mean(axis=1).tolist()),
                least=4,
                most=4,
                form=".0f",
                rests=Basis.PAPER,
                otherwise="By the library's rule for the elbow, gain against number of clusters, "
                "it is at {:.0f}: there is no sharp bend.",
            ),
        ),
        quote="We show this elbow in Figure 9 and see that the 4-Cluster model is the appropriate "
        "choice for the elbow, as expected.",
    ),
)

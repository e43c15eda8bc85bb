"""Claims of NRR §3, §4 and App. C on what the reduction says: statistics, quantities, ratios."""

from __future__ import annotations

from typing import Any

import numpy as np

from evidence import Basis, Claim, Measure, Read, Remark, once
from papers.nrr.claims import identities


def _trained(K: int) -> Read:
    """|B₂ / (√M B₁) − 1| of the strongest mode, M = 5, one number per seed."""

    def read(tables: Any) -> np.ndarray:
        found = tables.once(identities.ratios_trained, M=5, seeds=5, steps=600)
        return np.abs(np.array(found[str(K)]) - 1)

    return read


CLAIMS = (
    Claim(
        "nrr/path-statistics",
        "§3, Eqs. 2–6",
        "Of the data, gradient descent sees only the correlations Σ^yx(p) and Σ^x(j, p) of paths.",
        "20 random problems with real gates on nodes and edges. In each class of samples with "
        "equal gates, all samples are mixed by a rotation, which keeps every correlation: the "
        "largest difference of the weights after 200 steps, relative to how far they moved; and "
        "the smallest, if targets are mixed by another rotation, which changes Σ^yx alone.",
        (
            Measure(
                "same-correlations",
                "other samples, equal correlations: largest difference",
                once(identities.other_samples, "same", problems=20),
                most=1e-9,
                rests=Basis.THEOREM,
            ),
            Measure(
                "samples-differ",
                "how much the samples differ, relative to their size, smallest",
                once(identities.other_samples, "samples", problems=20),
                least=0.1,
            ),
            Measure(
                "other-correlations",
                "other correlations: smallest difference",
                once(identities.other_samples, "other", problems=20),
                least=0.01,
            ),
        ),
        quote="Remarkably, no other statistics of the dataset are considered by the gradient "
        "descent dynamics.",
    ),
    Claim(
        "nrr/conserved",
        "§4, before Eq. 15",
        "While a mode is learned, M B₁² − B₂² keeps its initial value: B₁ is the mode's singular "
        "value in every encoder and decoder, B₂ that in the shared hidden layer, M the number of "
        "domains on each side.",
        "The reduced dynamics (Eqs. 13, 14) of 20 routing tasks with random M and K. As the paper "
        "assumes, all encoders and decoders start alike; B₁ and B₂ start at different random "
        "values. The largest change of M B₁² − B₂² over modes and 600 steps of time, relative to "
        "the final B₂² of the strongest mode.",
        (
            Measure(
                "flow",
                "gradient flow: largest change of M B₁² − B₂²",
                once(identities.conserved_quantity, "flow", problems=20),
                most=1e-6,
                rests=Basis.THEOREM,
            ),
        ),
        quote="We note that the quantity MB₁² − B₂² is conserved under the dynamics.",
        remarks=(
            Remark(
                "Gradient descent with the step of Fig. 4 lets it drift by up to {:.1%}; the "
                "dynamics of the paper are those of gradient flow.",
                (once(identities.conserved_quantity, "steps", problems=20),),
            ),
        ),
    ),
    Claim(
        "nrr/ratio-sharing",
        "App. C, Eqs. 51, 56",
        "The ratio of hidden to outer singular values tends to √M whatever K is, and to P^¼ if P "
        "paths share a hidden edge.",
        "The race from starts of 0.01: the final ratio for M = 6, every K and every P. Beside it, "
        "networks with M = 5 from orthogonal weights × 0.2: the strongest mode, for small K.",
        (
            Measure(
                "root-m",
                "over √M, every K and mode: largest difference from 1",
                once(identities.ratios_in_theory, "root_M", M=6, start=0.01),
                most=1e-3,
                rests=Basis.THEOREM,
            ),
            Measure(
                "by-k",
                "how much it varies with K",
                once(identities.ratios_in_theory, "by_K", M=6, start=0.01),
                most=1e-6,
                rests=Basis.THEOREM,
            ),
            Measure(
                "by-p",
                "over P^¼, every P and mode: largest difference from 1",
                once(identities.ratios_in_theory, "by_P", M=6, start=0.01),
                most=1e-3,
                rests=Basis.THEOREM,
            ),
            Measure(
                "trained-k3",
                "trained from random weights, K = 3 of M = 5: difference from 1",
                _trained(3),
                most=0.05,
            ),
            Measure(
                "trained-k1",
                "trained from random weights, K = 1 of M = 5: difference from 1",
                _trained(1),
                most=0.05,
                otherwise="With K = 1 this needs weights that share a direction from the start. "
                "From random weights the ratio is {:.0%} away: the routes have no domain in "
                "common, and nothing makes them share.",
            ),
        ),
        quote="the shared portion of the pathway changes more by a factor √M (and this ratio does "
        "not depend on K). […] This ratio scales from 1 to √M as the number of shared paths goes "
        "from P = 1 (no sharing) to P = M² (full sharing).",
    ),
    Claim(
        "nrr/decoupling",
        "§4.2",
        "From small random weights, the weights rapidly become decoupled.",
        "The routing network of Fig. 4: the share of the squared weights of all edges that has "
        "the form of Eq. 9 in the bases of the data, at the start and when the strongest hidden "
        "singular value has half its final size; from orthogonal weights × 0.02, and × 0.2 as in "
        "Fig. 4.",
        (
            Measure(
                "start",
                "at the start",
                once(identities.decoupling, "first", seeds=5, steps=3000, scale=0.02),
                most=0.2,
            ),
            Measure(
                "half-small",
                "strongest mode half learned, × 0.02",
                once(identities.decoupling, "half", seeds=5, steps=3000, scale=0.02),
                least=0.9,
                origin=1.0,
            ),
            Measure(
                "half-usual",
                "strongest mode half learned, × 0.2",
                once(identities.decoupling, "half", seeds=5, steps=500, scale=0.2),
                least=0.9,
                origin=1.0,
                otherwise="From the weights of Fig. 4, only {:.0%} of the squared weights are "
                "decoupled at that moment: the initial weights that no mode uses stay as they are.",
            ),
        ),
        quote="the dynamics from small random weights track the trajectory predicted for "
        "maximally shared representation, suggesting that the full solution dynamics rapidly "
        "converge to the submanifold of decoupled weights.",
    ),
    Claim(
        "nrr/distractors",
        "§4",
        "Inputs on domains that a route does not use are ignored, which no linear network can do.",
        "Routing with M = 5, K = 3 and random items on all other input domains: descent with and "
        "without them; and the best linear map from all inputs without gates, relative to zero "
        "output.",
        (
            Measure(
                "loss",
                "largest |ΔL| / L(0) with and without distractors",
                once(identities.distractors, "apart", seeds=5, steps=200),
                most=1e-9,
                rests=Basis.THEOREM,
            ),
            Measure(
                "linear",
                "loss of the best linear map, relative to zero output",
                once(identities.distractors, "linear", seeds=5, steps=200),
                least=0.05,
            ),
        ),
        quote="We emphasize that this task is fundamentally nonlinear, because inputs on "
        "irrelevant input domains must be ignored.",
    ),
)

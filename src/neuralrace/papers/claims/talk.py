"""The claims of the first two parts of Saxe's talk, *Models of representation learning dynamics*.

The third part is NRR. Not measured, for want of a figure here: what mice do, and what the relative
scale of layers does to convolutional networks and to grokking.
"""

from __future__ import annotations

import numpy as np

from neuralrace.papers.claims import talk_reads as reads
from neuralrace.papers.claims.claim import Claim, Measure
from neuralrace.papers.claims.talk_reads import read

_OTHER_RATE = {"d": 2.0, "depths": (1,)}
"""A chain of one edge with λ = 2, s = 1: where the rates as printed differ from the right ones."""

CLAIMS = (
    Claim(
        "talk/trajectories-by-depth",
        "“Analytic learning trajectory”",
        "A shallow chain learns exponentially, a deep one along a sigmoid, a very deep one after a "
        "long wait; each along a known formula.",
        "Closed forms against flows of chains of D = 1, 2, 10 edges from a₀ = 0.05; the first "
        "change over the largest (1 for an exponential), and the time to half over the time from "
        "10 to 90 %, for each depth and the limit of many edges.",
        (
            Measure(
                "closed forms against flows, largest difference over s/λ",
                read("depth", reads.gap("exact", "simulated")),
                most=1e-6,
            ),
            Measure(
                "first change over the largest, D = 1",
                read("depth", lambda t: reads.first_over_steepest(reads.depth_curves(t))[0]),
                least=0.99,
            ),
            Measure(
                "the same, largest of the deeper ones",
                read("depth", lambda t: reads.first_over_steepest(reads.depth_curves(t))[1:].max()),
                most=0.5,
            ),
            Measure(
                "wait over rise, least factor from one depth to the next",
                read("depth", reads.sharper_chains),
                least=1.1,
            ),
            Measure(
                "D = 1 as printed, λ = 2, s = 1: largest difference over s/λ",
                read("depth", lambda t: reads.as_printed(t, "shallow"), **_OTHER_RATE),
                most=1e-6,
                otherwise="The rate printed for D = 1, e^(−t/τ), is right for λ = 1; with λ = 2 it "
                "is off by up to {:.0%} of s/λ. Right is e^(−λt/τ).",
            ),
            Measure(
                "D → ∞ as printed, λ = 2, s = 1: largest difference over s/λ",
                read("depth", lambda t: reads.as_printed(t, "limit"), **_OTHER_RATE),
                most=1e-6,
                otherwise="The exponent printed for many edges, … − t/τ, is right for s² = λ; with "
                "λ = 2, s = 1 it is off by up to {:.0%} of s/λ. Right is … − (s²/λ) t/τ, in "
                "units τ/D.",
            ),
            Measure(
                "time to half, deepest chain over the limit",
                read("depth", reads.deep_over_limit),
                least=0.9,
                most=1.1,
                otherwise="The formula headed D ≥ 3 is the limit of many edges: the deepest chain "
                "here is at half after {:.2f} of the time it gives.",
            ),
        ),
    ),
    Claim(
        "talk/saddle-by-depth",
        "“Error surface”",
        "Depth introduces a saddle point, and descent slows beside it.",
        "The chain of two edges: its stationary point at zero, and a descent that passes by.",
        (
            Measure(
                "directions of escape at zero",
                read("error_surface", lambda t: t["index"]),
                least=1,
                most=1,
            ),
            Measure(
                "curvature over −s, distance from 1",
                read(
                    "error_surface",
                    lambda t: abs(float(t["curvature"]) / reads.settings_of(t)["s"] + 1),
                ),
                most=1e-9,
            ),
            Measure(
                "slowest step before half of the loss is gone, over the fastest",
                read("error_surface", reads.slowing),
                most=0.5,
            ),
            Measure(
                "last loss over first",
                read("error_surface", lambda t: t["path_loss"][-1] / t["path_loss"][0]),
                most=1e-6,
            ),
        ),
    ),
    Claim(
        "talk/several-chains",
        "“Full networks act like several 1D chains”",
        "A deep linear network learns each mode as a chain of scalars does.",
        "Strengths of the modes of flows from small aligned weights against closed forms of "
        "chains, D = 1, 2, 3; and, from small random weights, times to half of the levels of a "
        "tree against chains that start at the expected strength and learn infinitely many "
        "features.",
        (
            Measure(
                "aligned starts: largest difference of a mode's strength",
                read("stages", reads.gap("exact", "simulated")),
                most=1e-6,
            ),
            Measure(
                "random starts: times to half, worst level, over those of chains, − 1",
                read("differentiation", reads.level_gap("limit")),
                most=0.05,
                otherwise="From random weights, with features drawn, chains that know only width "
                "and scale are an approximation: the worst level of a tree is {:.1%} off in time.",
            ),
        ),
    ),
    Claim(
        "talk/stages-by-depth",
        "“Depth introduces stage-like transitions”",
        "In a shallow network all modes learn at once, in a deep one each waits and then "
        "transitions.",
        "Modes of singular values 4, 2, 1, by depth: time to half of the way from its start of the "
        "weakest over that of the strongest; and by what factor each edge raises the time to half "
        "over the time from 10 to 90 %, least of all modes and depths.",
        (
            Measure(
                "weakest over strongest, shallow",
                read("stages", reads.apart(0)),
                least=0.95,
                most=1.05,
            ),
            Measure("weakest over strongest, deepest", read("stages", reads.apart(-1)), least=1.5),
            Measure("sharper with each edge by", read("stages", reads.sharper), least=1.1),
        ),
    ),
    Claim(
        "talk/speed-small-random",
        "“Training speed”, “Effect of initialization”",
        "From small random weights the time to learn grows exponentially with depth, as 1/b₀^D.",
        "Time to half of the loss (units τ/D) of networks with 8 neurons a layer, D = 2 … 6, "
        "b₀ = 0.5, mean of the seeds; and chains of 6 edges by their closed form.",
        (
            Measure(
                "least factor from one depth to the next",
                read("training_speed", lambda t: reads.growth(t).min()),
                least=1.3,
            ),
            Measure(
                "mean factor from one depth to the next, over 1/b₀",
                read(
                    "training_speed",
                    lambda t: (
                        np.exp(np.log(reads.growth(t)).mean()) * reads.settings_of(t)["random"]
                    ),
                ),
                least=0.8,
                most=1.25,
                otherwise="Each edge costs {:.2f} times the factor 1/b₀: of a random product b₀^D "
                "is only the scale, and its directions differ in strength.",
            ),
            Measure(
                "exponent of 1/b₀ in the time of a chain of 6 edges",
                lambda tables: reads.exponent(),
                least=5.5,
                most=6.5,
                otherwise="From small aligned starts 1/b₀^D is a bound: the exponent is D − 2, "
                "measured {:.2f} at D = 6, with t = τ b₀^(2−D)/((D−2)s).",
            ),
        ),
    ),
    Claim(
        "talk/speed-pretrained",
        "“Effect of initialization”",
        "From pretrained weights the time to learn grows at most linearly with depth, as D/b₀².",
        "Networks from balanced aligned weights, their closed form, and its growth with depth over "
        "that of D: with a fixed product b₀^D (to D = 100), and with layers of fixed b₀ = 0.8 "
        "(D = 2 … 6).",
        (
            Measure(
                "networks against the closed form of a chain, worst depth",
                read("training_speed", reads.pretrained_off),
                most=1e-3,
            ),
            Measure(
                "growth over that of D, fixed product",
                read("training_speed", reads.rise_of_fixed_product),
                most=1.0,
            ),
            Measure(
                "growth over that of D, fixed strength of a layer",
                read("training_speed", reads.rise_over_depth),
                most=1.0,
                otherwise="It is so if pretraining leaves a product that does not fall with depth. "
                "From layers of a fixed b₀ < 1 the time grows faster than D, here {:.2f} times as "
                "much, and as b₀^(2−D) in the end: D/b₀² is then no bound.",
            ),
        ),
    ),
    Claim(
        "talk/speed-orthogonal",
        "“Effect of initialization”",
        "From orthogonal weights the time to learn does not depend on depth.",
        "Networks with 8 neurons a layer, D = 2 … 6, mean of the seeds, units τ/D.",
        (
            Measure(
                "largest time over smallest",
                read("training_speed", reads.spread_of_orthogonal),
                most=1.5,
            ),
            Measure(
                "deepest over shallowest",
                read(
                    "training_speed",
                    lambda t: (
                        reads.mean_time(t, "orthogonal")[-1] / reads.mean_time(t, "orthogonal")[0]
                    ),
                ),
                least=0.9,
                most=1.1,
                otherwise="There is a weak dependence: the deepest network takes {:.2f} times as "
                "long as the shallowest.",
            ),
        ),
    ),
    Claim(
        "talk/structures-known",
        "“Analytic link”, “Learning diverse structures”",
        "With many features only the singular value decomposition of the items' correlations "
        "matters, and it is known exactly for partitions, trees, rings and grids.",
        "Sixteen items: eigenvalues from symmetry against those of the covariance made from the "
        "graph; and eigenvalues of features drawn, by their number.",
        (
            Measure(
                "from symmetry against the graph, worst relative difference",
                read("structures", reads.symmetry_gap),
                most=1e-10,
            ),
            Measure(
                "drawn features, exponent of the error, distance from −½, worst world",
                read("structures", reads.sample_rate),
                most=0.1,
            ),
            Measure(
                "drawn features, error at the largest number, worst world",
                read("structures", lambda t: reads.sample_error(t)[:, -1].max()),
                most=0.05,
            ),
        ),
    ),
    Claim(
        "talk/differentiation-must",
        "“Progressive differentiation”",
        "Singular vectors mirror a hierarchy and singular values decay with its levels, so that "
        "these networks must differentiate progressively.",
        "Features drawn from a binary tree of three levels: their singular values and vectors by "
        "level, and times to half of each level from small random weights, simulated and "
        "predicted from those weights.",
        (
            Measure(
                "a level's largest singular value over the least of the level above, worst",
                read("differentiation", reads.decay),
                most=0.95,
            ),
            Measure(
                "least part of a level in the singular vectors of its rank",
                read("differentiation", reads.mirror),
                least=0.95,
            ),
            Measure(
                "time to half of a level over that of the level above, least",
                read(
                    "differentiation",
                    lambda t: np.exp(np.diff(np.log(reads.level_times(t, "simulated"))).min()),
                ),
                least=1.1,
            ),
            Measure(
                "times against those predicted, worst level",
                read("differentiation", reads.level_gap("predicted")),
                most=0.05,
            ),
        ),
    ),
    Claim(
        "talk/saddles-visited",
        "“Depth introduces a hierarchy of saddle points”, “Dynamics pass near …”",
        "There is a hierarchy of saddle points, and learning passes near them one after another.",
        "Five modes, starts of 1e-6, plateaus found from the loss alone: those within a tenth of "
        "the least singular value of a listed saddle with its loss to 1 %.",
        (
            Measure(
                "share of plateaus at a listed saddle",
                read("saddles", reads.share_at_saddles),
                least=1,
            ),
            Measure(
                "fewest saddles that a run rests at", read("saddles", reads.fewest_saddles), least=3
            ),
            Measure(
                "share of steps to a saddle with fewer ways out",
                read("saddles", reads.downward),
                least=1,
            ),
        ),
    ),
    Claim(
        "talk/variability",
        "“Individual variability amidst structure”",
        "Runs differ from one another, and yet all pass the same structured set of saddles.",
        "The same runs: the largest difference of loss between two at one time, over L(0); and "
        "the saddles at which they rest.",
        (
            Measure(
                "largest difference between runs", read("saddles", reads.between_runs), least=0.1
            ),
            Measure(
                "share of plateaus at a listed saddle",
                read("saddles", reads.share_at_saddles),
                least=1,
            ),
            Measure(
                "most saddles with equally many learned modes that runs rest at",
                read("saddles", reads.ways),
                least=2,
                otherwise="Here runs differ in when and how long they rest, not in the order: they "
                "rest at {:.0f} saddle for each number of learned modes. Separated singular values "
                "and small starts fix the order.",
            ),
        ),
    ),
    Claim(
        "talk/partitioned-solution",
        "“Partitioned solution”, eqs 13–15",
        "Learning from λ-balanced weights is solved exactly, for any sizes.",
        "The solution against flows: loss at four λ of a 5–4–4 network, loss and tangent kernel of "
        "a 4–4–8 network; and eqs 13–15 written out, as printed and mended, up to t = 2.",
        (
            Measure(
                "5–4–4, largest difference of loss over L(0)",
                read("lambda_trajectories", reads.gap("exact", "simulated")),
                most=1e-8,
            ),
            Measure(
                "4–4–8, largest difference of loss over L(0)",
                read("delayed_rich", reads.gap("loss", "simulated")),
                most=1e-8,
            ),
            Measure(
                "4–4–8, largest difference of kernel distance, relative",
                read("delayed_rich", reads.gap("kernel", "travel")),
                most=1e-6,
            ),
            Measure(
                "eqs 13–15, last term of eq. 15 mended: difference of loss over L(0)",
                read("lambda_trajectories", lambda t: reads.slide_loss(t, mended=True)),
                most=1e-8,
            ),
            Measure(
                "eqs 13–15 as printed: difference of loss over L(0)",
                read("lambda_trajectories", lambda t: reads.slide_loss(t, mended=False)),
                most=1e-8,
                otherwise="As printed, the last term of eq. 15 is wrong for unequal sizes and "
                "λ ≠ 0, by up to {:.1%} of the initial loss here. Right is "
                "(e^(2λ⊥t/τ) − I)/(2λ⊥).",
            ),
        ),
    ),
    Claim(
        "talk/exponential-to-sigmoidal",
        "“From exponential to sigmoidal dynamics”",
        "The relative scale of the layers takes learning from exponential to sigmoidal curves.",
        "One initial map, shared differently by λ: the first fall of the loss over its steepest, "
        "1 for an exponential.",
        (
            Measure(
                "λ nearest to zero",
                read("lambda_trajectories", reads.bend(reads.most_balanced)),
                most=0.5,
            ),
            Measure("smallest λ", read("lambda_trajectories", reads.bend(np.argmin)), least=0.99),
            Measure("largest λ", read("lambda_trajectories", reads.bend(np.argmax)), least=0.99),
        ),
    ),
    Claim(
        "talk/rich-and-lazy",
        "“Rich and lazy learning”",
        "Small balanced weights learn richly; unbalanced or large ones lazily.",
        "Distance of the tangent kernel at the end from that at the start, square networks, mean "
        "of the seeds, by λ and the singular values of the initial map.",
        (
            Measure(
                "λ = 0, smallest scale",
                read("regimes", lambda t: reads.travel(t, "square", reads.most_balanced)),
                least=0.05,
            ),
            Measure(
                "largest |λ|, smallest scale, over that",
                read(
                    "regimes",
                    lambda t: (
                        max(reads.travel(t, "square", end) for end in (np.argmin, np.argmax))
                        / reads.travel(t, "square", reads.most_balanced)
                    ),
                ),
                most=0.2,
            ),
            Measure(
                "λ = 0, largest scale, over that",
                read(
                    "regimes",
                    lambda t: (
                        reads.travel(t, "square", reads.most_balanced, -1)
                        / reads.travel(t, "square", reads.most_balanced)
                    ),
                ),
                most=0.2,
                otherwise="Large weights alone are not lazy: from the largest scale the kernel "
                "goes {:.0%} of that way at λ = 0. Balanced weights end at W₁ᵀW₁ = V S Vᵀ whatever "
                "their scale; it is λ that decides.",
            ),
        ),
    ),
    Claim(
        "talk/architecture-and-regime",
        "“Architecture and learning regime”",
        "Which sign of λ is lazy depends on the architecture: positive for a funnel, negative for "
        "an inverted funnel, either for a square network.",
        "Kernel distance at the end, smallest scale, largest |λ| of either sign, over that at "
        "λ = 0; mean of the seeds.",
        (
            *(
                Measure(
                    f"{shape}, λ {sign} 0",
                    read(
                        "regimes",
                        lambda t, shape=shape, end=end: (
                            reads.travel(t, shape, end)
                            / reads.travel(t, shape, reads.most_balanced)
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
    ),
    Claim(
        "talk/delayed-rich",
        "“Delayed rich regime”",
        "Where the larger layer does not reach all that the task needs, learning starts lazily and "
        "the representation turns later.",
        "A 4–4–8 network, λ = −8 … 8: time of half of the kernel's way over time of half of the "
        "fall of the loss, and kernel distances at the end.",
        (
            Measure(
                "half-times, kernel over loss, largest λ over λ = 0",
                read("delayed_rich", reads.delay),
                least=2.0,
            ),
            Measure(
                "kernel distance at the end, largest λ",
                read("delayed_rich", reads.final_kernel(np.argmax)),
                least=0.05,
            ),
            Measure(
                "kernel distance at the end, smallest λ over largest",
                read(
                    "delayed_rich",
                    lambda t: reads.final_kernel(np.argmin)(t) / reads.final_kernel(np.argmax)(t),
                ),
                most=0.2,
            ),
        ),
    ),
    Claim(
        "talk/continual-exact",
        "“Exact continual learning dynamics”",
        "A sequence of tasks is solved exactly, with what is forgotten.",
        "Three tasks, one after another: the loss on each at all times, exact against the flow; "
        "what is left of a task when the next comes, over a silent network's loss; the rise of "
        "the first task's loss after its turn.",
        (
            Measure(
                "largest difference of loss over the largest loss",
                read("continual", reads.gap("exact", "simulated")),
                most=1e-8,
            ),
            Measure(
                "left of a task when the next comes, worst",
                read("continual", reads.left_to_learn),
                most=0.01,
                otherwise="In the time given {:.1%} of the worst task is left to learn; the "
                "solution is exact all the same.",
            ),
            Measure(
                "what is forgotten of the first task, exact over simulated, − 1",
                read("continual", reads.forgetting_gap),
                most=1e-6,
            ),
        ),
    ),
)

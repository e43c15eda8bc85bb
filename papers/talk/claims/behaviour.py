"""Claims of the talk on animals that learn a decision task, measured on simulated ones.

"Model captures behavior" is not judged: there are no data of animals here, and nothing is fitted.
"""

from __future__ import annotations

from evidence import Claim
from papers.talk import decisions, deep_and_shallow, saddle_graph

DECISIONS, GRAPH, DEPTH = (
    {name: measure.on(figure) for name, measure in module.MEASURES.items()}
    for figure, module in (
        ("talk/decisions", decisions),
        ("talk/saddle_graph", saddle_graph),
        ("talk/deep_and_shallow", deep_and_shallow),
    )
)
"""The measures of the three figures."""

CLAIMS = (
    Claim(
        "talk/decisions-diverse",
        "“Mice exhibit diverse learning trajectories”, “from naïve to expert”",
        "Animals of the deep network begin with different strategies, and end alike.",
        "200 simulated animals, trial by trial, from small random weights: which side they first "
        "use, and whether they use both in the end. The parameters are ours.",
        (DECISIONS["left"], DECISIONS["right"], DECISIONS["both"]),
        inferred=True,
    ),
    Claim(
        "talk/decisions-systematic",
        "“Learning trajectories are individually diverse but systematic”",
        "The early strategy of an animal predicts its later one, through depth.",
        "The same animals: the rank correlation of the difference of use of the two sides, when "
        "the mean accuracy has made a quarter and three quarters of its improvement; the same for "
        "a network without the first layer; and the same against the end of learning.",
        (DECISIONS["deep"], DECISIONS["deeper"], DECISIONS["end"]),
        inferred=True,
    ),
    Claim(
        "talk/decisions-saddles",
        "“Dynamics pass near a hierarchy of saddle points”",
        "Strategies are stationary points of average learning, and animals pass near several.",
        "All stationary points and the routes between them; 100 animals that follow the average. "
        "An animal passes a point where it is nearer than half the distance to the next point. A "
        "step that skips a point, along two routes in a row, does not count as along the graph. "
        "The bound of a half was set after trial runs.",
        tuple(GRAPH.values()),
        inferred=True,
    ),
    Claim(
        "talk/decisions-depth",
        "“Saddle points arise through depth”",
        "Without the first layer there are no saddles, and the sides are learned together.",
        "Stationary points of both networks at β = 10 (at β = 20 the policy makes saddles in "
        "both), and how far the stimulus value of one side runs ahead of the other, in animals "
        "that learn on average.",
        tuple(DEPTH.values()),
        inferred=True,
    ),
)

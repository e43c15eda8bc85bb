"""Claims of the talk on the saddles that learning passes, and on learning to make decisions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from evidence import Basis, Claim, Measure
from papers.figure import Table
from papers.talk import decisions, deep_and_shallow, saddle_graph
from papers.talk.claims.reads import read


def share_at_saddles(table: Table) -> float:
    """The share of all plateaus that lie at a listed point and have its loss within 1 %."""
    from papers.talk.saddles import matched

    hits = matched(table)
    return sum(hits) / len(hits) if hits else float("nan")


def sequences(table: Table) -> list[tuple[int, ...]]:
    """The listed points at which each run rests, in order."""
    from papers.talk.saddles import stays

    return [tuple(point for point, _, _ in run) for run in stays(table)]


def fewest_saddles(table: Table) -> float:
    """The smallest number of different saddles (points with a way out) at which a run rests."""
    index = table["index"].to_numpy()
    return float(min(sum(index[p] > 0 for p in set(run)) for run in sequences(table)))


def downward(table: Table) -> float:
    """The share of steps from saddle to saddle that reduce the number of ways out."""
    index = table["index"].to_numpy()
    steps = [index[b] < index[a] for run in sequences(table) for a, b in pairwise(run)]
    return float(np.mean(steps)) if steps else float("nan")


def ways(table: Table) -> float:
    """The most saddles with equally many learned modes at which runs rest: 1 if all go one way."""
    names = [str(name) for name in table["point"].to_numpy()]
    rested = {names[point] for run in sequences(table) for point in run}
    sizes = [sum(map(str.isalnum, name.strip("{}").split(", "))) for name in rested]
    return float(max(map(sizes.count, sizes)))


def between_runs(table: Table) -> float:
    """The largest difference of loss between two runs at one time, over the initial loss."""
    loss = table["loss"].to_numpy()
    return float((loss.max(axis=0) - loss.min(axis=0)).max() / loss[:, 0].max())


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
        "talk/saddles-visited",
        "“Depth introduces a hierarchy of saddle points”, “Dynamics pass near …”",
        "There is a hierarchy of saddle points, and learning passes near them one after another.",
        "Five modes, initial weights of 1e-6, plateaus found from the loss alone: the share of "
        "those within a tenth of the smallest singular value of a listed saddle and with its loss "
        "within 1 %.",
        (
            Measure(
                "plateaus",
                "share of plateaus at a listed saddle",
                read("saddles", share_at_saddles),
                least=1,
                rests=Basis.PAPER,
            ),
            Measure(
                "fewest",
                "fewest saddles that a run rests at",
                read("saddles", fewest_saddles),
                least=3,
            ),
            Measure(
                "downward",
                "share of steps that lead to a saddle with fewer ways out",
                read("saddles", downward),
                least=1,
                rests=Basis.PAPER,
            ),
        ),
        inferred=True,
    ),
    Claim(
        "talk/variability",
        "“Individual variability amidst structure”",
        "Runs differ from one another, and yet all pass the same structured set of saddles.",
        "The same runs: the largest difference of loss between two at one time, over L(0); and "
        "the saddles at which they rest.",
        (
            Measure(
                "between-runs",
                "largest difference between runs",
                read("saddles", between_runs),
                least=0.1,
            ),
            Measure(
                "plateaus",
                "share of plateaus at a listed saddle",
                read("saddles", share_at_saddles),
                least=1,
                rests=Basis.PAPER,
            ),
            Measure(
                "ways",
                "largest number of saddles with equally many learned modes at which runs rest",
                read("saddles", ways),
                least=2,
                otherwise="Here runs differ in when and how long they rest, not in the order of "
                "saddles: they rest at {:.0f} saddle for each number of learned modes. Separate "
                "singular values and small starts fix the order.",
            ),
        ),
        inferred=True,
    ),
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

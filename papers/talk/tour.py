"""The slides of the talk *Models of representation learning dynamics*, in their order."""

from __future__ import annotations

from papers.tour import Stop, Tour

LINEAR = (
    Stop(
        "Depth complicates learning dynamics",
        "talk/depth",
        "One number per layer: a chain of linear neurons. A shallow chain learns exponentially; a "
        "deep one waits and then learns along a sigmoid.",
        claims=("talk/trajectories-by-depth",),
    ),
    Stop(
        "Error surface",
        "talk/error_surface",
        "The loss of a chain of two weights, and paths of gradient descent on it.",
        "Depth introduces a saddle point",
        ("talk/saddle-by-depth",),
    ),
    Stop(
        "Depth introduces stage-like transitions",
        "talk/stages",
        "A full network learns each mode of its task as a chain would, one after another.",
        "Full networks act like several 1D chains",
        ("talk/several-chains", "talk/stages-by-depth"),
    ),
    Stop(
        "Training speed and the effect of initialization",
        "talk/training_speed",
        "The time in which the loss halves, against depth, for three kinds of initial weights.",
        "Deep learning speed is highly sensitive to initial conditions",
        ("talk/speed-small-random", "talk/speed-pretrained", "talk/speed-orthogonal"),
    ),
    Stop(
        "Learning diverse structures",
        "talk/structures",
        "Worlds that generate data: trees, partitions, rings and grids, and their modes.",
        claims=("talk/structures-known",),
    ),
    Stop(
        "Progressive differentiation",
        "talk/differentiation",
        "Items of a hierarchy move apart level by level, broad distinctions first.",
        "These networks must exhibit progressive differentiation",
        ("talk/differentiation-must",),
    ),
    Stop(
        "A hierarchy of saddle points",
        "talk/saddles",
        "Every subset of modes is a stationary point. Learning passes near some of them, and runs "
        "differ in which.",
        "Depth introduces a hierarchy of saddle points",
        ("talk/saddles-visited", "talk/variability"),
    ),
    Stop(
        "Learning to make perceptual decisions from naïve to expert",
        "talk/decisions",
        "A stimulus on the left or right, a choice, a reward. Simulated animals pass through "
        "different strategies, and come to use both sides. Nothing is fitted: there are no data of "
        "animals here.",
        "Learning trajectories are individually diverse but systematic",
        ("talk/decisions-diverse", "talk/decisions-systematic"),
    ),
    Stop(
        "Dynamics pass near a hierarchy of saddle points",
        "talk/saddle_graph",
        "Strategies are stationary points of average learning: which leads to which, and which "
        "ones animals pass.",
        claims=("talk/decisions-saddles",),
    ),
    Stop(
        "Saddle points arise through depth",
        "talk/deep_and_shallow",
        "The same animals without the first layer: architecture, stationary points, behaviour and "
        "neural trajectories.",
        claims=("talk/decisions-depth",),
    ),
)
"""Part one: deep linear network dynamics from small weights."""

INITIAL = (
    Stop(
        "From exponential to sigmoidal dynamics",
        "talk/lambda_trajectories",
        "The exact solution from λ-balanced weights: λ says how the scale is divided between two "
        "layers.",
        claims=("talk/partitioned-solution", "talk/exponential-to-sigmoidal"),
    ),
    Stop(
        "Rich and lazy learning; architecture and learning regime",
        "talk/regimes",
        "How far the tangent kernel moves, over λ, initial scale and the shape of the network.",
        claims=("talk/rich-and-lazy", "talk/architecture-and-regime"),
    ),
    Stop(
        "Delayed rich regime",
        "talk/delayed_rich",
        "Where the larger layer does not reach every direction, learning starts lazily and turns "
        "rich later.",
        claims=("talk/delayed-rich",),
    ),
    Stop(
        "Exact continual learning dynamics",
        "talk/continual",
        "Three tasks, one after another, with forgetting: exact and simulated.",
        claims=("talk/continual-exact",),
    ),
    Stop(
        "Relative scale in practice: early layers",
        "talk/early_layers",
        "A convolutional network whose first layer is made smaller and whose last layer is made "
        "larger by the same factor. Its initial outputs stay the same; its first filters do not.",
        "Promotes interpretability of early layers in CNNs",
        ("talk/early-layers",),
    ),
    Stop(
        "Relative scale in practice: grokking",
        "talk/grokking",
        "Modular addition is fitted long before it generalises. How long depends on how the scale "
        "is divided between embedding and readout.",
        "Decreases the time to grokking in modular arithmetic",
        ("talk/grokking",),
    ),
)
"""Part two: lazy, rich, and beyond."""

RACE = (
    Stop(
        "Gated deep linear networks",
        "nrr/fig2",
        "A network that is linear but for gates on its nodes and edges. The gradient of an edge is "
        "a sum over all paths through it.",
        "When active, each pathway behaves like a deep linear network",
    ),
    Stop(
        "The XoR problem",
        "nrr/fig3",
        "Four pathways, each open for one sample, learn as a ReLU network does.",
        claims=("nrr/xor-dynamics", "nrr/xor-cell-types"),
    ),
    Stop(
        "Which gating structures?",
        "talk/gating_structures",
        "Four gatings of one task. Each has its own input-output correlations and its own race. "
        "Being the fastest is not enough: a ReLU network must also keep the gates.",
        "The one which learns fastest dominates the solution",
        ("talk/fastest-dominates",),
    ),
    Stop(
        "The neural race: edge sharing",
        "talk/edge_sharing",
        "Pathways that more routes share learn faster.",
        "Edge sharing (more pathways through edge generally faster)",
        ("talk/edge-sharing", "nrr/shared-wins"),
    ),
    Stop(
        "Transition to nonlinearity",
        "talk/transition",
        "A third coordinate ±Δ makes XoR linearly separable. ReLU networks still choose the "
        "nonlinear gates as long as these learn faster.",
        "Nonlinear representations emerge before they are strictly necessary",
        ("talk/nonlinear-early", "mhs/xor-crossover"),
    ),
    Stop(
        "Context-dependent processing: the task",
        "mhs/fig3",
        "Items in three contexts; a common pathway and three that are each open in two contexts.",
        claims=("mhs/balance",),
    ),
    Stop(
        "Context-dependent processing: ReLU networks and their races",
        "mhs/fig4",
        "The loss of ReLU networks, of the gated network that is to represent them, of its race, "
        "and of a gating by single contexts; singular values and hidden representations.",
        claims=("mhs/contextual-loss", "mhs/race-predicts"),
    ),
    Stop(
        "Routing network: dynamics of abstraction",
        "nrr/fig4",
        "Domains of one hierarchical structure, of which only some pairs are trained. All input "
        "domains come to share one representation.",
        claims=("nrr/theory-random", "nrr/shared-representation", "nrr/zero-shot"),
    ),
    Stop(
        "Race dynamics favor shared structure",
        "nrr/fig5",
        "The more routes share a pathway, the sooner it is learned; and how many routes must be "
        "trained before the others work too.",
        claims=("nrr/shared-wins", "nrr/forty-percent"),
    ),
    Stop(
        "Initialization dependence: rich and lazy routing",
        "nrr/fig6",
        "From small weights, networks share a representation and untrained routes work. From "
        "large weights each route is learned by itself.",
        claims=("nrr/small-starts", "nrr/two-regimes"),
    ),
)
"""Part three: nonlinear networks and the neural race reduction."""

TOUR = Tour(
    name="talk/tour",
    title="Models of representation learning dynamics: the talk, computed anew",
    question="How do depth, initialization and gating decide what a network learns, and when?",
    stops=(*LINEAR, *INITIAL, *RACE),
)

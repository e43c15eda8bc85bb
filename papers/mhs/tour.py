"""The slides of *Make Haste Slowly*, in their order."""

from __future__ import annotations

from papers.tour import Stop, Tour

TOUR = Tour(
    name="mhs/tour",
    title="Make Haste Slowly: the slides, computed anew",
    question="Can the learning of finite ReLU networks be described by gated linear networks?",
    stops=(
        Stop(
            "Main idea: a ReLU network as a gated deep linear network",
            "mhs/fig1",
            "A gated network is linear but for gates on its nodes and edges. Its gradient is a "
            "sum over paths, and each path learns like a linear network from the samples on "
            "which it is open. A ReLU network is at every moment such a network, with its own "
            "activity as gates.",
            claims=("mhs/always-a-reln",),
        ),
        Stop(
            "Setting 1: extended XoR",
            "mhs/fig2",
            "XoR with a third coordinate ±Δ that separates the classes linearly. Two gatings can "
            "solve it, one along the linear structure and one along XoR. Which of them learns "
            "faster changes at Δ = √(2/3).",
            "Finding 1: ReLU networks will sometimes choose nonlinear solution even when a linear "
            "option is possible but always favours the fastest learner.",
            ("mhs/finding-1",),
        ),
        Stop(
            "Setting 2: the contextual task",
            "mhs/fig3",
            "Items in three contexts. Some properties are wanted in every context, others in one "
            "only. The gated network has a common pathway and three that are each open in two "
            "contexts; together they give the right outputs, and without one of them errors "
            "appear.",
            claims=("mhs/balance",),
        ),
        Stop(
            "Setting 2: comparison of loss dynamics",
            "mhs/fig4",
            "The loss of ReLU networks, of the gated network that is to represent them, of its "
            "race with nothing fitted, and of a gating by single contexts; then singular values "
            "and hidden representations.",
            "Finding 2: ReLU networks in this setting have a preference towards structured "
            "mixed-selectivity due to the learning speed boost.",
            ("mhs/finding-2",),
        ),
        Stop(
            "Setting 3: more contexts",
            "mhs/fig5",
            "The same hierarchy in three, four and five contexts, with closed forms for every "
            "pathway.",
            "Finding 3: ReLU networks still prefer structured mixed-selective representations as "
            "the number of contexts grows.",
            ("mhs/finding-3",),
        ),
        Stop(
            "Setting 4: depth",
            "mhs/fig6",
            "A second hidden layer. Many runs of the ReLU network, of the gated network with all "
            "pathways open from the start, and of the same with pathways opened in stages.",
            "Finding 4: Additional hidden layers makes the network dynamics inconsistent. We can "
            "still design a GDLN which fits the distribution of dynamics.",
            ("mhs/finding-4",),
        ),
        Stop(
            "Finding the gates: Algorithm 1",
            "mhs/fig8",
            "K-means on the activity of ReLU networks, sampled throughout training: the centroids "
            "are candidates for gates.",
            "Finding 5: We provide a preliminary algorithm to identify ReLNs from ReLU Networks.",
            ("mhs/finding-5",),
        ),
        Stop(
            "Finding the gates: how many clusters",
            "mhs/fig9",
            "The error of the gated network that is built from K clusters, against K.",
            claims=("mhs/elbow",),
        ),
    ),
)

"""What changed against an earlier ledger, and why."""

from __future__ import annotations

from collections.abc import Sequence

from papers.claims.claim import Entry, Verdict
from papers.record import table_lines

COMMIT = "dae8073"
"""The commit whose page is compared with."""

BEFORE = {
    name: verdict
    for verdict, names in {
        Verdict.HOLDS: (
            "nrr/xor-dynamics",
            "nrr/theory-exact",
            "nrr/theory-random",
            "nrr/zero-shot",
            "nrr/shared-wins",
            "nrr/two-regimes",
            "nrr/contexts",
            "mhs/xor-faster-gating",
            "mhs/race-predicts",
            "mhs/elbow",
            "talk/saddle-by-depth",
            "talk/stages-by-depth",
            "talk/structures-known",
            "talk/differentiation-must",
            "talk/saddles-visited",
            "talk/exponential-to-sigmoidal",
            "talk/architecture-and-regime",
            "talk/delayed-rich",
            "talk/continual-exact",
        ),
        Verdict.QUALIFIED: (
            "nrr/xor-cell-types",
            "nrr/root-M",
            "nrr/shared-representation",
            "nrr/forty-percent",
            "nrr/small-starts",
            "mhs/always-a-reln",
            "mhs/xor-crossover",
            "mhs/xor-boundary",
            "mhs/contextual-loss",
            "mhs/more-contexts",
            "mhs/closed-forms",
            "mhs/interlacing",
            "mhs/depth-follows",
            "mhs/algorithm-1",
            "talk/trajectories-by-depth",
            "talk/several-chains",
            "talk/speed-small-random",
            "talk/speed-pretrained",
            "talk/speed-orthogonal",
            "talk/variability",
            "talk/partitioned-solution",
            "talk/rich-and-lazy",
        ),
        Verdict.FAILS: (
            "mhs/contextual-outputs",
            "mhs/contextual-representation",
            "mhs/constant-gates",
            "mhs/context-pure",
            "mhs/initial-scale",
            "mhs/implementable",
            "mhs/fastest",
            "mhs/unique",
            "mhs/single-inactive",
            "mhs/depth-first-layer",
            "mhs/depth-second-layer",
            "mhs/depth-variance",
        ),
    }.items()
    for name in names
}
"""The verdicts of that page, of all its claims."""

WITHDRAWN = {
    "mhs/constant-gates": (
        "withdrawn: MHS §4 has the *ReLN's* gating constant, and says that the ReLU network "
        "learns its own; `gates-learned` has what it says"
    ),
    "mhs/initial-scale": "withdrawn: an entry of a table; it is in the errata",
}
"""Claims that are no longer in the ledger, and why."""

WHY = {
    "mhs/always-a-reln": "five seeds; constant gates are judged against another seed",
    "mhs/xor-faster-gating": (
        "a limit relative to the seed floor is new; the spread of the floor counts, and the "
        "worst Δ is not clearly further away than another seed"
    ),
    "mhs/contextual-loss": (
        "judged by the widths of MHS Table 1, with a row for each of three other rules and "
        "the authors' own network beside it; “unable to imitate” means further away, without "
        "a factor of ours"
    ),
    "mhs/contextual-outputs": (
        "the paper speaks of samples of the outputs at some epochs; equal outputs at all "
        "times are part of Proposition 4.2 and measured in `same-at-all-times`; widths of "
        "MHS Table 1"
    ),
    "mhs/contextual-representation": (
        "the sentence is about relative positions: these are compared in all dimensions, and "
        "the two dimensions of the figure and all similarities are limits; widths of MHS "
        "Table 1"
    ),
    "mhs/race-predicts": "widths of MHS Table 1, and a row for each of three other rules",
    "mhs/context-pure": (
        "“context specific” means on in one context only; that gates depend on the item is a limit"
    ),
    "mhs/more-contexts": (
        "five seeds in place of three; context features as in the authors' scripts, and "
        "those of the text as limits; “increases” means any increase. With 5 contexts, the "
        "scripts' setting was chosen when its number was known, and decides nothing; loss, growth "
        "and 4 contexts come out alike with either"
    ),
    "mhs/closed-forms": (
        "five seeds in place of one; closed forms are compared with trained pathways, no "
        "longer with another theory; the common pathway is judged as well; changed with the "
        "numbers of Fig. 5 in view"
    ),
    "mhs/implementable": "five seeds in place of two; the rest is enumeration",
    "mhs/interlacing": (
        "the paper writes “only positive terms”: entries of both signs are a remark in `fastest`"
    ),
    "mhs/fastest": (
        "five seeds in place of one; the mixed gating of `unique`, whose speed was known, is "
        "one more measure"
    ),
    "mhs/unique": (
        "it failed on .954 ≥ 1, which was within chance, and compared networks of different "
        "weights and widths; rivals now have the same widths and initial weights, five "
        "seeds. They alone would leave the claim standing, but a search found a mixed gating "
        "that is nearer; it was added with its number known. Equality at all times is an "
        "entry of its own, `same-at-all-times`"
    ),
    "mhs/single-inactive": (
        "measured on the authors' own network, five seeds in place of one; judged by the "
        "rise of the loss without these pathways, with a bound set before it was known; "
        "norms, which were known, and training jointly are limits"
    ),
    "mhs/depth-first-layer": "the spread over runs is shown",
    "mhs/depth-second-layer": (
        "two contexts and a common pathway are to have more weight than by chance, a half "
        "and a seventh; these bounds are ours as well and were set with the numbers in view, "
        "so that they decide nothing"
    ),
    "mhs/depth-follows": (
        "the paper opens pathways in stages: that network is measured, the other is a limit; "
        "one bound of 5 % in place of 2, 5 and 10 %; outputs are compared at plateaus, of "
        "which the paper speaks, by a rule that was set with the numbers in view and decides "
        "nothing"
    ),
    "mhs/depth-variance": (
        "the paper opens pathways in stages: that network is measured, the other is a limit; "
        "numbers over all runs have intervals, and one bound lies inside"
    ),
    "mhs/algorithm-1": "five trainings in place of three",
    "mhs/elbow": "five trainings in place of three",
    "nrr/root-M": "the mean over seeds with its interval, in place of the median",
    "nrr/shared-representation": (
        "the mean over seeds with its interval, in place of the worst or median seed"
    ),
    "nrr/two-regimes": "the mean over seeds; one bound for large scales, .2, in place of .2 and .5",
    "talk/several-chains": (
        "five draws in place of one: the number of its limit is within what seeds differ by"
    ),
    "talk/differentiation-must": "five draws in place of one",
    "talk/exponential-to-sigmoidal": "five draws in place of one",
    "talk/delayed-rich": (
        "five draws in place of one; the interval of a skewed ratio is that of its logarithm"
    ),
}
"""For each claim whose reading, bounds or number of seeds changed: what, and why."""

_IMAGES = (
    "new; which cells it rests on was chosen after it was known which have enough seeds, in the "
    "commit that reports their numbers"
)

NEW = dict.fromkeys(
    ("nrr/images-trained", "nrr/images-40-percent", "nrr/images-leaky"), _IMAGES
) | {
    "mhs/depth-reuse": (
        "new; first judged by each layer alone, and refuted; the sentence is about the "
        "network, and its mean over layers was known when this was changed"
    ),
    "mhs/same-at-all-times": (
        "new; was a part of `unique`, where its numbers, which were known, were limits"
    ),
    "mhs/variance-timing": (
        "new; first read as if all drops followed the first alike, and refuted; §6 lays the "
        "variance to the later, contextual ones. Levels and one bound were set with the "
        "numbers in view, and decide nothing"
    ),
    "nrr/conserved": "new; descent in steps is a remark and no limit: the paper speaks of the flow",
    "talk/grokking": (
        "new; first refuted by the word “decreases”: which scales are compared is our choice, and "
        "only twice as long would refute it. The number was known when this was changed; it is "
        "between, and decides nothing"
    ),
    "nrr/images-scale": (
        "new; gains of .01 and .001 were limits at first, and the claim held with a "
        "qualification; “all scales” includes them, and their numbers were known when this "
        "was changed"
    ),
}
"""What to know of claims that the earlier ledger did not have; others that are new need no word."""


def change_lines(entries: Sequence[Entry]) -> list[str]:
    """A table of what changed, with the verdicts of these entries.

    A claim with another verdict than before is there even if no reason is given.
    """
    now = {entry.claim.name: entry.verdict for entry in entries}
    listed = [n for n in now if n in WHY or (n in BEFORE and now[n] is not BEFORE[n])]
    rows = [(n, BEFORE[n].value, _marked(n, now[n]), WHY.get(n, "")) for n in listed]
    rows += [(n, "–", now[n].value, why) for n, why in NEW.items() if n in now]
    rows += [(n, BEFORE[n].value, "–", why) for n, why in WITHDRAWN.items()]
    return table_lines(("claim", f"at {COMMIT}", "now", "why"), rows)


def _marked(name: str, verdict: Verdict) -> str:
    """The verdict, in bold if it is another than before."""
    return verdict.value if verdict is BEFORE[name] else f"**{verdict.value}**"

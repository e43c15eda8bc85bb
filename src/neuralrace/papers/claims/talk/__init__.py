"""The claims of Saxe's talk, *Models of representation learning dynamics*.

Of the third part, which is NRR, only what its slides add is here. Two topics are not measured,
because no figure here covers them: the behaviour of mice, and the effect of the relative scale of
layers on convolutional networks and on grokking.
"""

from neuralrace.papers.claims.talk import balance, depth, race, saddles, speed, structure

CLAIMS = (
    *depth.CLAIMS,
    *speed.CLAIMS,
    *structure.CLAIMS,
    *saddles.CLAIMS,
    *balance.CLAIMS,
    *race.CLAIMS,
)
"""The claims in the order of the talk."""

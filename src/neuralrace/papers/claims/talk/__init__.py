"""The claims of the first two parts of Saxe's talk, *Models of representation learning dynamics*.

The third part is NRR. Two topics are not measured, because no figure here covers them: the
behaviour of mice, and the effect of the relative scale of layers on convolutional networks and on
grokking.
"""

from neuralrace.papers.claims.talk import balance, depth, saddles, speed, structure

CLAIMS = (*depth.CLAIMS, *speed.CLAIMS, *structure.CLAIMS, *saddles.CLAIMS, *balance.CLAIMS)
"""The claims in the order of the talk."""

"""The claims of the first two parts of Saxe's talk, *Models of representation learning dynamics*.

The third part is NRR. What the talk says of mice is measured on simulated animals. One topic is not
measured, because no figure here covers it: the effect of the relative scale of layers on
convolutional networks and on grokking.
"""

from neuralrace.papers.claims.talk import balance, behaviour, depth, saddles, speed, structure

CLAIMS = (
    *depth.CLAIMS,
    *speed.CLAIMS,
    *structure.CLAIMS,
    *saddles.CLAIMS,
    *behaviour.CLAIMS,
    *balance.CLAIMS,
)
"""The claims in the order of the talk."""

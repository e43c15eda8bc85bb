"""The claims of the first two parts of Saxe's talk, *Models of representation learning dynamics*.

The third part is NRR. Not measured, for want of a figure here: what mice do, and what the relative
scale of layers does to convolutional networks and to grokking.
"""

from neuralrace.papers.claims.talk import balance, depth, saddles, speed, structure

CLAIMS = (*depth.CLAIMS, *speed.CLAIMS, *structure.CLAIMS, *saddles.CLAIMS, *balance.CLAIMS)
"""In the order of the talk."""

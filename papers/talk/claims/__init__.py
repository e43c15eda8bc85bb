"""The claims of Saxe's talk, *Models of representation learning dynamics*.

Most of its third part is NRR and MHS, and measured there. What it says of mice is measured on
simulated animals.
"""

from papers.talk.claims import (
    balance,
    depth,
    practice,
    rates,
    saddles,
    speed,
    structure,
)

CLAIMS = (
    *depth.CLAIMS,
    *speed.CLAIMS,
    *structure.CLAIMS,
    *saddles.CLAIMS,
    *balance.CLAIMS,
    *practice.CLAIMS,
    *rates.CLAIMS,
)
"""The claims in the order of the talk."""

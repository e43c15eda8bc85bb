"""The claims of Jarvis, Klein, Rosman and Saxe, *Make Haste Slowly* (ICLR 2025)."""

from papers.mhs.claims import (
    balance,
    contextual,
    depth,
    findings,
    gatings,
    layers,
    linear,
    xor,
)

CLAIMS = (
    *xor.CLAIMS,
    *balance.CLAIMS,
    *contextual.CLAIMS,
    *gatings.CLAIMS,
    *depth.CLAIMS,
    *layers.CLAIMS,
    *linear.CLAIMS,
    *findings.CLAIMS,
)
"""The claims of §3, then §4–5 (what networks do, which gatings there are), then §6, App. A, B
and H, and the findings of the slides."""

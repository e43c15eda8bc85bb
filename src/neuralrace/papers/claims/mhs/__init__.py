"""The claims of Jarvis, Klein, Rosman and Saxe, *Make Haste Slowly* (ICLR 2025)."""

from neuralrace.papers.claims.mhs import contextual, depth, gatings, xor

CLAIMS = (*xor.CLAIMS, *contextual.CLAIMS, *gatings.CLAIMS, *depth.CLAIMS)
"""§3, then §4–5 by what networks do, by which gatings there are, and §6 with App. B."""

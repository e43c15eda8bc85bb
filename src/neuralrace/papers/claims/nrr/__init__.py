"""The claims of Saxe, Sodhani and Lewallen, *The Neural Race Reduction* (ICML 2022)."""

from neuralrace.papers.claims.nrr import contexts, images, reuse, routing, xor

CLAIMS = (*xor.CLAIMS, *routing.CLAIMS, *reuse.CLAIMS, *images.CLAIMS, *contexts.CLAIMS)
"""The claims of §3, §4 in its order, §5, and App. A.2."""

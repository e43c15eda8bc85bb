"""The claims of Saxe, Sodhani and Lewallen, *The Neural Race Reduction* (ICML 2022)."""

from neuralrace.papers.claims.nrr import contexts, reuse, routing, theory, xor

CLAIMS = (*xor.CLAIMS, *theory.CLAIMS, *routing.CLAIMS, *reuse.CLAIMS, *contexts.CLAIMS)
"""The claims of §3, of the theory, of §4 in its order, and App. A.2."""

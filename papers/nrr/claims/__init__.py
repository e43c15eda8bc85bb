"""The claims of Saxe, Sodhani and Lewallen, *The Neural Race Reduction* (ICML 2022)."""

from papers.nrr.claims import contexts, images, reuse, routing, theory, xor

CLAIMS = (
    *xor.CLAIMS,
    *theory.CLAIMS,
    *routing.CLAIMS,
    *reuse.CLAIMS,
    *images.CLAIMS,
    *contexts.CLAIMS,
)
"""The claims of §3, of the theory, of §4 in its order, of §5, and of App. A.2."""

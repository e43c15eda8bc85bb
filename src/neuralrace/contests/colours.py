"""The colours of candidates, other ones than those of pathways, simulations and ReLU networks."""

from __future__ import annotations

from collections.abc import Iterable

from neuralrace.plot import cycle_colour

ORDER = (5, 3, 4, 7, 2, 6, 0, 1)
"""The style's colours in the order of candidates; pathways have them from the first on."""


def candidate_colours(names: Iterable[str]) -> dict[str, str]:
    """The colour of each candidate.

    ```python
    >>> candidate_colours(["linear", "xor"])
    {'linear': '#D55E00', 'xor': '#7A1460'}

    ```
    """
    return {name: cycle_colour(ORDER[i % len(ORDER)]) for i, name in enumerate(names)}

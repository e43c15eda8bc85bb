"""Which colour and which dashes a curve has, wherever it is drawn: one rule for files and pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from neuralrace.door import door

SHADES: Mapping[str, float] = MappingProxyType({"relu": 0.6, "simulation": 0.25, "theory": -0.55})
"""How far a colour of the cycle is mixed with white (above 0) or black, by kind of curve."""

DASHES = (
    (3.2, 1.6),
    (8.0, 1.6),
    (1.2, 1.4),
    (8.0, 1.6, 1.2, 1.6),
    (3.2, 4.0),
    (8.0, 1.6, 1.2, 1.6, 1.2, 1.6),
    (1.2, 4.0),
    (8.0, 1.6, 3.2, 1.6),
)
"""The dashes of theories without a simulation of the same name, so that grey tells them apart."""


@door
def colour_places(curves: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """The place in the cycle of colours of each curve, given by kind and name, in order.

    A name has one place in all kinds; a new name has the first place that is free in its kind.

    ```python
    >>> from neuralrace.plot import colour_places
    >>> colour_places([("simulation", "a"), ("simulation", "b"), ("theory", "b")])
    {('simulation', 'a'): 0, ('simulation', 'b'): 1, ('theory', 'b'): 1}

    ```
    """
    found: dict[tuple[str, str], int] = {}
    for kind, name in curves:
        elsewhere = [place for (_, other), place in found.items() if other == name]
        taken = {place for (other, _), place in found.items() if other == kind}
        free = next(i for i in range(len(taken) + 1) if i not in taken)
        found.setdefault((kind, name), elsewhere[0] if elsewhere else free)
    return found


@door
def is_lone(curve: tuple[str, str], curves: Sequence[tuple[str, str]]) -> bool:
    """Whether a curve is the only one of its kind, which then has the colour of its role.

    ```python
    >>> from neuralrace.plot import is_lone
    >>> curves = [("relu", "a"), ("theory", "b"), ("theory", "c")]
    >>> [is_lone(curve, curves) for curve in curves]
    [True, False, False]

    ```
    """
    return len({name for kind, name in curves if kind == curve[0]}) == 1


@door
def is_unpaired(curve: tuple[str, str], curves: Sequence[tuple[str, str]]) -> bool:
    """Whether a curve is one of several theories, and none of its name was simulated.

    It then has its colour as it is, and dashes of its own.

    ```python
    >>> from neuralrace.plot import is_unpaired
    >>> curves = [("simulation", "a"), ("theory", "a"), ("theory", "b")]
    >>> [is_unpaired(curve, curves) for curve in curves]
    [False, False, True]

    ```
    """
    paired = any(name == curve[1] and kind != "theory" for kind, name in curves)
    return curve[0] == "theory" and not paired and not is_lone(curve, curves)

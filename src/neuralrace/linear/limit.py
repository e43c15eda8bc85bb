"""The limit of chains of very many edges."""

from __future__ import annotations

import numpy as np

from neuralrace.checks import real_array, real_number
from neuralrace.errors import NeuralRaceError
from neuralrace.types import ArrayLike


def deep_limit(
    t: ArrayLike, *, s: float, d: float, start: float, depth: float
) -> np.ndarray | np.floating:
    """The strength of a balanced chain of many edges, D → ∞ with a₀ fixed, by Lambert's W.

    `a = (s/d) / (1 + W[(r₀ − 1) e^{r₀ − 1 − D (s²/d) t}])`, `r₀ = s/(d a₀)` (the talk's limit with
    its rate corrected). It is evaluated through Wright's ω, since e^{r₀} overflows. The limit is
    approached slowly: at D = 100, learning is still 4 % faster than this.

    ```python
    >>> import neuralrace as nr
    >>> nr.linear.deep_limit([0.0, 1.0], s=1.0, d=1.0, start=0.05, depth=100).round(3)
    array([0.05, 1.  ])

    ```
    """
    from scipy.special import wrightomega

    s, d, start, depth = (
        real_number(name, value, fix="for example s=1.0, d=1.0, start=0.05, depth=100")
        for name, value in (("s", s), ("d", d), ("start", start), ("depth", depth))
    )
    time = real_array("t", t, wanted="a time, or an array of them", fix="for example t=[0.0, 1.0]")
    if not (s > 0 and d > 0 and 0 < start < s / d and depth > 0):
        raise NeuralRaceError(
            "the limit of many edges needs a start between zero and the fixed point",
            got=f"s = {s:g}, d = {d:g}, start = {start:g}, depth = {depth:g}",
            wanted="positive s, d and depth, and 0 < start < s/d",
            fix="for other starts solve the chain of finite depth",
        )
    r0 = s / (d * start)
    argument = np.log(r0 - 1) + r0 - 1 - depth * s * (s / d) * time
    return (s / d) / (1 + np.real(wrightomega(argument)))

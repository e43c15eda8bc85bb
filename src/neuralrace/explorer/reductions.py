"""Reductions that are kept from one request to the next.

Most sliders leave the task and the gates as they are: the start, the criterion, the learning rate.
The race of every gating is then the same, and so is everything that it has worked out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import final

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset
from neuralrace.explorer.limits import GATINGS
from neuralrace.reduction import Race, reduce


@final
@dataclass(frozen=True)
class _Question:
    """What a reduction depends on; the data count by their fingerprint, which leaves out labels."""

    arch: Architecture
    digest: str
    tolerance: float | None
    data: Dataset = field(compare=False)


def reduced(arch: Architecture, data: Dataset, *, tolerance: float | None = None) -> Race:
    """The same as `nr.reduce`, but what was reduced before is given again.

    The labels of `race.data` may be those of an equal task that was asked for earlier.

    ```python
    >>> import neuralrace as nr
    >>> from neuralrace.explorer.reductions import reduced
    >>> data = nr.tasks.extended_xor(0.5)
    >>> race = reduced(*nr.tasks.xor_pathways(data))
    >>> race is reduced(*nr.tasks.xor_pathways(nr.tasks.extended_xor(0.5)))
    True
    >>> race is reduced(*nr.tasks.xor_pathways(nr.tasks.extended_xor(0.6)))
    False

    ```
    """
    return _reduced(_Question(arch, data.digest(), tolerance, data))


@lru_cache(maxsize=2 * GATINGS)
def _reduced(question: _Question) -> Race:
    """The races of two states with as many gatings as there may be."""
    options = {} if question.tolerance is None else {"tolerance": question.tolerance}
    return reduce(question.arch, question.data, **options)

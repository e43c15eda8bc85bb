"""A chain of edges from an input node to an output node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed


@final
@dataclass(frozen=True)
class Path:
    """A chain of edges from an input node to an output node (NRR §3).

    `W_p` is the ordered product of the matrices of `edges`, `g_p` the product of every gate on the
    way, those of both ends included.

    ```python
    >>> import neuralrace as nr
    >>> path = nr.Architecture.chain(2, 8, 8, 1).paths()[0]
    >>> path.before("W2"), path.after("W2")
    (('W1',), ('W3',))

    ```
    """

    edges: tuple[str, ...]
    source: str
    target: str

    @door
    def before(self, edge: str) -> tuple[str, ...]:
        """The edges that precede `edge`: s̄(p, e) of NRR Eq. 3."""
        return self.edges[: self._index(edge)]

    @door
    def after(self, edge: str) -> tuple[str, ...]:
        """The edges that follow `edge`: t̄(p, e) of NRR Eq. 3."""
        return self.edges[self._index(edge) + 1 :]

    def _index(self, edge: str) -> int:
        if not isinstance(edge, str) or edge not in self.edges:
            raise NeuralRaceError(
                f"edge {edge!r} is not on this path",
                got=repr(edge),
                wanted=f"one of {listed(self.edges)}",
                fix="ask only for edges of path.edges",
            )
        return self.edges.index(edge)

    def __str__(self) -> str:
        return f"{self.source} -[{' '.join(self.edges)}]-> {self.target}"

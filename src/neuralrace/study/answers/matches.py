"""The gatings of a study against the patterns found in ReLU networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from neuralrace.reln import Discovery
from neuralrace.results import SHARE, Result, Sentence, framed
from neuralrace.study.work import Work
from neuralrace.text import numbered, percent, several

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes


@final
@dataclass(frozen=True)
class Match:
    """How a gating's patterns fit those found in ReLU networks.

    `common` of its `patterns` are among those `found`. `differ` is the part of the samples on which
    a pattern found differs from the nearest of the gating's, on average over the weight.
    """

    name: str
    patterns: int
    found: int
    common: int
    differ: float

    @property
    def is_exact(self) -> bool:
        """Whether the patterns found are those of the gating, no more and no less."""
        return self.common == self.patterns == self.found


def match_patterns(name: str, patterns: np.ndarray, found: np.ndarray, share: np.ndarray) -> Match:
    """Patterns found, (K, N) with their shares of the weight, against those of a gating, (P, N).

    ```python
    >>> import numpy as np
    >>> from neuralrace.study.answers.matches import match_patterns
    >>> sides = np.array([[1, 1, 0, 0], [0, 0, 1, 1]])
    >>> found = np.array([[1, 1, 0, 0], [0, 1, 1, 1]])
    >>> fit = match_patterns("sides", sides, found, np.array([0.5, 0.5]))
    >>> fit.common, fit.differ
    (1, 0.125)

    ```
    """
    own, there = (np.asarray(p) > 0.5 for p in (patterns, found))
    away = (there[:, None, :] != own[None, :, :]).mean(axis=2)
    wanted, seen = ({tuple(p) for p in those} for those in (own, there))
    differ = float(share @ away.min(axis=1) / share.sum())
    return Match(name, len(wanted), len(seen), len(wanted & seen), differ)


@final
@dataclass(frozen=True)
class Matches(Result):
    """The gatings of a study against the patterns found, the nearest first."""

    matches: list[Match]

    CAPTION: ClassVar[str] = (
        "The gatings of the study against the patterns found: the part of the samples on which a "
        "pattern found differs from the nearest one of the gating, on average over the weight"
    )

    def frame(self) -> pandas.DataFrame:
        """One row per gating."""
        columns = ("gating", "patterns", "found", "differ")
        rows = ((m.name, m.patterns, m.common, m.differ) for m in self.matches)
        return framed(columns, (dict(zip(columns, row, strict=True)) for row in rows),
                      {"differ": SHARE})  # fmt: skip

    def sentences(self) -> tuple[Sentence, ...]:
        """Which gating the patterns found are nearest to, in one sentence; none without gatings."""
        return tuple(nearest_sentences(self.matches))

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """A bar for each gating."""
        return self.frame().plot.bar("gating", "differ", ax=ax)


def matched_gatings(work: Work, found: Discovery) -> Matches:
    """Every gating of the study against the patterns found."""
    matches: list[Match] = []
    clusters = next(iter(found.layers.values()))
    comparable = len(found.layers) == 1 and work.settings.network.in_a_row
    for name, (arch, data) in work.problem.candidates.items() if comparable else ():
        ones = np.ones(data.n_samples)
        own = np.stack([np.asarray(data.gates.get(v, ones)) for v in arch.hidden])
        matches.append(match_patterns(name, own, clusters.pattern, clusters.share))
    return Matches(sorted(matches, key=lambda m: (not m.is_exact, m.differ)))


def nearest_sentences(matches: list[Match]) -> list[Sentence]:
    """Which gating the patterns found are nearest to, in one sentence; none without gatings."""
    if not matches:
        return []
    best, *others = matches
    if best.is_exact:
        names = several([match.name for match in matches if match.is_exact])
        text = (
            f"These, each the majority of a group of neurons, are exactly the "
            f"{numbered(best.patterns, 'pattern')} of {names}; whether single neurons keep them "
            "while they learn is what the check of a contest says."
        )
        return [Sentence("nearest", text)]
    tied = [m.name for m in matches if m.differ == best.differ]
    near = f"{best.name} is the nearest of the gatings" if others else f"Beside {best.name}"
    if len(tied) > 1:
        near = f"{several(tied)} are equally near"
    text = (
        f"{near}: a pattern found differs from the nearest one of {best.name} on "
        f"{percent(best.differ)} of the samples on average, and {best.common} of its "
        f"{best.patterns} {'is' if best.common == 1 else 'are'} found"
    )
    rest = [f"{m.name}: {percent(m.differ)}, {m.common} of {m.patterns}" for m in others]
    return [Sentence("nearest", f"{text} ({'; '.join(rest)})." if rest else f"{text}.")]

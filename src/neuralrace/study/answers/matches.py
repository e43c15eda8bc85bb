"""The gatings of a study against the patterns found in ReLU networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from neuralrace.reln import Discovery
from neuralrace.report import Table
from neuralrace.results import Sentence
from neuralrace.study.work import Work
from neuralrace.text import numbered, percent, several


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


def matched_gatings(work: Work, found: Discovery) -> list[Match]:
    """Every gating of the study against the patterns found, the nearest first."""
    if len(found.layers) != 1 or work.settings.network.graph is not None:
        return []
    clusters = next(iter(found.layers.values()))
    matches = []
    for name, (arch, data) in work.problem.candidates.items():
        ones = np.ones(data.n_samples)
        own = np.stack([np.asarray(data.gates.get(v, ones)) for v in arch.hidden])
        matches.append(match_patterns(name, own, clusters.pattern, clusters.share))
    return sorted(matches, key=lambda m: (not m.is_exact, m.differ))


def nearest_sentences(matches: list[Match]) -> list[Sentence]:
    """Which gating the patterns found are nearest to, in one sentence; none without gatings."""
    if not matches:
        return []
    best, *others = matches
    if best.is_exact:
        text = f"These are exactly the {numbered(best.patterns, 'pattern')} of {best.name}."
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


def match_table(matches: list[Match]) -> Table:
    """The same for every gating."""
    rows = [[m.name, m.patterns, m.common, m.differ] for m in matches]
    head = ["gating", "patterns", "of these found", "samples that differ"]
    caption = (
        "The gatings of the study against the patterns found. The last column is the part of the "
        "samples on which a pattern found differs from the nearest one of the gating, on average "
        "over the weight"
    )
    return Table(head, rows, caption, "gates_and_gatings.csv")

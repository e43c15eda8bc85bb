"""Single pathways by their gate pattern, ranked by how fast they first grow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Float, Int

from neuralrace.checks import plain_array, real_array
from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError, check_kind, listed, whole_number
from neuralrace.plot import cycle_colour, draw_matrix, style
from neuralrace.types import ArrayLike

if TYPE_CHECKING:
    import matplotlib.figure

MOST = 100_000
"""Above so many patterns a random sample of them is ranked."""

AT_ONCE = 4_000_000
"""So many entries of Σ^yx are held at a time."""


@final
@dataclass(frozen=True, eq=False)
class PatternRanking:
    """Gate patterns by early growth rate, fastest first; made by `contest(data, patterns=…)`.

    A pathway that is on where its pattern g says grows, while small, along the leading mode of
    Σ^yx = ⟨g y xᵀ⟩ (NRR Eq. 4), its weights as e^{st} with s the largest singular value: `growth`,
    of shape `(K,)`. `patterns`, of shape `(K, N)`, are in that order, `index` says which of the
    `given` patterns each one is. Above 100 000 patterns a random sample is ranked (`is_sampled`).

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> data = nr.tasks.extended_xor(1.0)
    >>> every = np.array([[n >> k & 1 for k in range(4)] for n in range(1, 16)])
    >>> ranking = nr.contest(data, patterns=every)
    >>> ranking.patterns[0].tolist(), ranking.growth[:2].round(3).tolist()
    ([1.0, 1.0, 1.0, 1.0], [1.0, 0.829])

    ```
    """

    patterns: Float[np.ndarray, "K N"]
    growth: Float[np.ndarray, " K"]
    index: Int[np.ndarray, " K"]
    given: int

    @property
    def is_sampled(self) -> bool:
        """Whether only a random sample of the given patterns was ranked."""
        return len(self.growth) < self.given

    def __str__(self) -> str:
        many = f"{len(self.growth)} pattern{'s' * (len(self.growth) != 1)} by early growth rate"
        if self.is_sampled:
            many += f", a random sample of the {self.given} given"
        lines = [many + ", fastest first:"]
        for rate, pattern, index in zip(self.growth[:10], self.patterns, self.index, strict=False):
            shown = "".join("█" if g == 1 else "·" if g == 0 else "▒" for g in pattern[:100])
            lines.append(f"  {rate:<10.4g} {shown}  (pattern {index})")
        if len(self.growth) > 10:
            lines.append(f"  … down to {self.growth[-1]:.4g}")
        return "\n".join(lines)

    def plot(self, most: int = 20) -> matplotlib.figure.Figure:
        """The fastest patterns, a row each, and their growth rates beside them."""
        import matplotlib.pyplot as plt

        most = whole_number("most", most, fix="the number of patterns to show")
        shown = self.patterns[:most]
        with style():
            figure, (left, right) = plt.subplots(
                1, 2, figsize=(6.4, 0.8 + 0.14 * max(len(shown), 8)), width_ratios=(2, 1)
            )
            draw_matrix(shown, columns="sample", title="on where dark", ax=left)
            left.set_ylabel("pattern, fastest first")
            place = np.arange(len(shown))
            right.barh(place, self.growth[:most], color=cycle_colour(0), height=0.7)
            right.set(ylim=(len(shown) - 0.5, -0.5), yticks=[], xlabel="early growth rate")
        return figure


def rank_patterns(base: Any, patterns: Any, *, seed: int = 0) -> PatternRanking:
    """Rank patterns of shape `(P, N)` on a base dataset; the sample, if any, is drawn by `seed`."""
    check_kind("data", base, Dataset, "contest(data, patterns=…) takes one ungated Dataset")
    if base.gates:
        raise NeuralRaceError(
            "patterns are ranked on data without gates",
            got=f"gates on {listed(base.gates)}",
            wanted="an ungated Dataset",
            fix="data.gated({}) removes them",
        )
    fix = "a row is a pattern: transpose what has a pattern a column"
    form = f"shape (P, {base.n_samples}), a gate for every sample"
    patterns = plain_array("patterns", patterns, wanted=form, fix=fix)
    if patterns.ndim != 2 or patterns.shape[1] != base.n_samples or not len(patterns):
        raise NeuralRaceError(
            "the patterns do not fit the data",
            got=f"shape {patterns.shape}",
            wanted=form,
            fix=fix,
        )
    if patterns.dtype.kind not in "biuf" or not np.isfinite(patterns).all():
        raise NeuralRaceError(
            "a pattern holds finite numbers or booleans",
            got="infinite numbers or NaN" if patterns.dtype.kind == "f" else repr(patterns.dtype),
            wanted="usually 0 and 1, for off and on",
            fix="relu.activity(weights, data)['h'].T > 0",
        )
    given = len(patterns)
    index = np.arange(given)
    if given > MOST:
        index = np.sort(np.random.default_rng(seed).choice(given, MOST, replace=False))
    growth = growth_rates(base, patterns[index])
    order = np.argsort(-growth, kind="stable")
    chosen = patterns[index[order]].astype(np.float64)
    return PatternRanking(chosen, growth[order], index[order], given)


def growth_rates(base: Dataset, patterns: ArrayLike) -> np.ndarray:
    """The largest singular value of ⟨g y xᵀ⟩ for every pattern g, many at a time.

    Targets are first turned into as few directions as they span, which leaves singular values as
    they are; the value is then the root of the largest eigenvalue of the smaller Gram matrix.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> data = nr.Dataset({"x": np.eye(2)}, {"y": np.diag([2.0, 1.0])})
    >>> nr.contests.growth_rates(data, np.array([[1, 1], [0, 1]])).round(9).tolist()
    [1.0, 0.5]

    ```
    """
    check_kind("data", base, Dataset, "pass the ungated dataset first")
    wanted = f"(P, {base.n_samples}), one row per pattern"
    masks = real_array("patterns", patterns, wanted=wanted, fix="pass nr.reln.patterns(X)")
    if masks.ndim != 2 or masks.shape[1] != base.n_samples:
        raise NeuralRaceError(
            "the patterns do not fit the data",
            got=f"shape {masks.shape}",
            wanted=wanted,
            fix="pass nr.reln.patterns(X), or gates of your own for the same samples",
        )
    x = np.concatenate([np.asarray(a, np.float64) for a in base.x.values()], axis=1)
    y = np.concatenate([np.asarray(a, np.float64) for a in base.y.values()], axis=1)
    x, y = (a if a.shape[1] <= a.shape[0] else np.linalg.qr(a.T)[1].T for a in (x, y))
    a, b = (x, y) if x.shape[1] <= y.shape[1] else (y, x)
    weighted = np.asarray(base.probability, np.float64)[:, None] * a
    products = (weighted[:, :, None] * b[:, None, :]).reshape(len(a), -1)
    found = np.empty(len(masks))
    chunk = max(1, AT_ONCE // products.shape[1])
    for low in range(0, len(masks), chunk):
        part = masks[low : low + chunk]
        each = (part @ products).reshape(len(part), a.shape[1], b.shape[1])
        gram = each @ each.swapaxes(1, 2)
        found[low : low + chunk] = np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[:, -1], 0.0))
    return found

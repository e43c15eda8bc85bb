"""Single pathways by their gate pattern, ranked by how fast they first grow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float, Int

from neuralrace.checks import generator, plain_array, real_array
from neuralrace.dataset import Sampled, check_unweighed
from neuralrace.door import door
from neuralrace.errors import listed, require
from neuralrace.plot import cycle_colour, draw_matrix, letter_panels, style
from neuralrace.text import numbered
from neuralrace.types import ArrayLike, Count, Key

if TYPE_CHECKING:
    import matplotlib.figure

MOST = 100_000
"""The most patterns that are ranked; of more, a random sample of this size is."""

AT_ONCE = 4_000_000
"""The number of entries of Σ^yx held in memory at a time."""


@final
@dataclass(frozen=True, eq=False)
class PatternRanking:
    """Gate patterns by early growth rate, fastest first; made by `rank_patterns`.

    A small pathway with gate pattern g grows along the leading mode of Σ^yx = ⟨g y xᵀ⟩ (NRR Eq. 4).
    Its weights grow as e^{st}, with s the largest singular value: `growth`, of shape `(K,)`.
    `patterns`, of shape `(K, N)`, are in the same order; `index` gives the position of each among
    the `given` patterns. Above 100 000 patterns a random sample is ranked (`is_sampled`).

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> data = nr.tasks.extended_xor(1.0)
    >>> every = np.array([[n >> k & 1 for k in range(4)] for n in range(1, 16)])
    >>> ranking = nr.rank_patterns(data, every)
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
        many = f"{numbered(len(self.growth), 'pattern', '1')} by early growth rate"
        if self.is_sampled:
            many += f", a random sample of the {self.given} given"
        lines = [many + ", fastest first:"]
        for rate, pattern, index in zip(self.growth[:10], self.patterns, self.index, strict=False):
            shown = "".join("█" if g == 1 else "·" if g == 0 else "▒" for g in pattern[:100])
            lines.append(f"  {rate:<10.4g} {shown}  (pattern {index})")
        if len(self.growth) > 10:
            lines.append(f"  … down to {self.growth[-1]:.4g}")
        return "\n".join(lines)

    @door
    def plot(
        self, most: Count = 20, *, samples: Mapping[str, int] | None = None
    ) -> matplotlib.figure.Figure:
        """The fastest patterns, one row each, and the growth rates of all beside them.

        `most` is the number of patterns to show; `samples` names groups of neighbouring samples,
        name to how many.
        """
        import matplotlib.pyplot as plt

        fastest = self.patterns[:most]
        colour = cycle_colour(0)
        with style():
            figure, (left, right) = plt.subplots(
                1, 2, figsize=(6.4, 0.8 + 0.14 * max(len(fastest), 8)), width_ratios=(2, 1)
            )
            title = f"the {len(fastest)} fastest: on where dark"
            if samples:
                draw_matrix(fastest, title=title, blocks={"columns": samples}, ax=left)
            else:
                draw_matrix(fastest, title=title, columns="sample", ax=left)
            left.set_ylabel("pattern, fastest first")
            rank = np.arange(1, len(self.growth) + 1)
            right.plot(rank, self.growth, color=colour, drawstyle="steps-mid")
            named = {"label": f"the {len(fastest)} shown"} if len(rank) > len(fastest) else {}
            right.plot(rank[:most], self.growth[:most], "o", color=colour, markersize=3, **named)
            right.set(ylim=(0, None), xlabel="pattern, fastest first", ylabel="early growth rate")
            if named:
                right.set_title(f"all {len(rank)} patterns")
                right.legend()
            letter_panels(figure)
        return figure


@door
def rank_patterns(base: Sampled, patterns: ArrayLike, *, key: Key = 0) -> PatternRanking:
    """Rank gate patterns by how fast a single small pathway with these gates grows.

    The growth rate of a pattern g is the largest singular value of Σ^yx = ⟨g y xᵀ⟩ (NRR Eq. 4).
    It says which pathway leads early on. It does not say when the task is learned, nor whether a
    ReLU network keeps the gates: for that see `contest`.

    **Arguments:** `base`, an ungated dataset of N samples. `patterns`, of shape `(P, N)`, one row
    per pattern, such as those of `reln.patterns`. `key` (a JAX key or an integer) draws the sample
    that is ranked if there are more than 100 000.

    ```python
    >>> import neuralrace as nr
    >>> print(nr.rank_patterns(nr.tasks.xor(), [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]]))
    3 patterns by early growth rate, fastest first:
      0.5        ██··  (pattern 1)
      0.3536     █···  (pattern 0)
      0          ····  (pattern 2)

    ```
    """
    require(
        not base.gates,
        "patterns are ranked on data without gates",
        got=f"gates on {listed(base.gates)}",
        wanted="an ungated Dataset",
        fix="data.gated({}) removes them",
    )
    fix = "one row per pattern: transpose an array with one column per pattern"
    form = f"shape (P, {base.n_samples}), one gate per sample"
    given = plain_array("patterns", patterns, wanted=form, fix=fix)
    require(
        given.ndim == 2 and given.shape[1] == base.n_samples and len(given),
        "the patterns do not fit the data",
        got=f"shape {given.shape}",
        wanted=form,
        fix=fix,
    )
    require(
        given.dtype.kind in "biuf" and np.isfinite(given).all(),
        "a pattern holds finite numbers or booleans",
        got="infinite numbers or NaN" if given.dtype.kind == "f" else repr(given.dtype),
        wanted="usually 0 and 1, for off and on",
        fix="relu.activity(weights, data)['h'].T > 0",
    )
    index = np.arange(len(given))
    rng = generator(key, "rank_patterns")
    if len(given) > MOST:
        index = np.sort(rng.choice(len(given), MOST, replace=False))
    growth = growth_rates(base, given[index])
    order = np.argsort(-growth, kind="stable")
    chosen = given[index[order]].astype(np.float64)
    return PatternRanking(chosen, growth[order], index[order], len(given))


@door
def growth_rates(base: Sampled, patterns: ArrayLike) -> np.ndarray:
    """The largest singular value of ⟨g y xᵀ⟩ for every pattern g, many at a time.

    Targets are first rotated into as few directions as they span, which does not change singular
    values. The value is then the root of the largest eigenvalue of the smaller Gram matrix.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> data = nr.Dataset({"x": np.eye(2)}, {"y": np.diag([2.0, 1.0])})
    >>> nr.contests.growth_rates(data, np.array([[1, 1], [0, 1]])).round(9).tolist()
    [1.0, 0.5]

    ```
    """
    wanted = f"(P, {base.n_samples}), one row per pattern"
    masks = real_array("patterns", patterns, wanted=wanted, fix="pass nr.reln.patterns(X)")
    require(
        masks.ndim == 2 and masks.shape[1] == base.n_samples,
        "the patterns do not fit the data",
        got=f"shape {masks.shape}",
        wanted=wanted,
        fix="pass nr.reln.patterns(X), or gates of your own for the same samples",
    )
    check_unweighed(base, "the growth rates of patterns")
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

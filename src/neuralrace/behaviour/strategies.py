"""What choices say of an animal: how often it is right, which stimuli it uses, its strategy.

All definitions here are ours. They need the labels `side` and `contrast` of `decision_task`. At
contrast 0 nothing tells the side: choices there say what an animal does without a stimulus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.checks import generator, real_array
from neuralrace.dataset import Dataset, Sampled
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.tolerances import CERTAIN, EQUAL
from neuralrace.types import ArrayLike, Count, Inside, Key

STRATEGIES = ("naive", "left", "right", "balanced", "expert")
"""The strategies: no stimuli used, those of one side, of both sides, and few errors on both."""


@door
def correct(choices: ArrayLike, data: Sampled) -> Float[np.ndarray, "*shape N"]:
    """The probability of the rewarded choice on every stimulus.

    That is the choice that is rewarded most often; where several are, any of them.

    ```python
    >>> import numpy as np
    >>> from neuralrace.behaviour import correct, decision_task
    >>> correct(np.full((4, 2), 0.5), decision_task((0.5, 1.0)))
    array([0.5, 0.5, 0.5, 0.5])

    ```
    """
    best = _rewarded(data)
    wanted = f"shape (…, {best.shape[0]}, {best.shape[1]})"
    fix = "run.values['choices'] of train_by_trials, or of record={'choices': agent.choices}"
    p = real_array("choices", choices, wanted=wanted, fix=fix)
    require(
        p.ndim >= 2 and p.shape[-2:] == best.shape,
        "the choices do not fit the stimuli",
        got=f"shape {p.shape}",
        wanted=wanted,
        fix=fix,
    )
    if not ((p >= 0) & (p <= 1 + EQUAL)).all() or not np.allclose(p.sum(axis=-1), 1, atol=CERTAIN):
        raise NeuralRaceError(
            "the choices are not probabilities",
            got=f"entries from {p.min():.4g} to {p.max():.4g}",
            wanted="numbers from 0 to 1, with sum 1 on every stimulus",
            fix=fix,
        )
    return np.where(best, p, 0).sum(axis=-1)


@door
def sensitivity(choices: ArrayLike, data: Sampled) -> dict[str, Float[np.ndarray, "*shape"]]:
    """How much choices depend on the stimuli of each side: `{"left": …, "right": …}`.

    The probability of the choice of that side at its highest contrast, minus that at its lowest, or
    at contrast 0 where the task has such trials; several stimuli of one contrast are averaged, each
    as often as it occurs. An animal that ignores a side has 0 there, however
    often it happens to be right.

    ```python
    >>> import numpy as np
    >>> from neuralrace.behaviour import decision_task, sensitivity
    >>> p = np.array([0.5, 0.9, 0.7, 0.7])  # correct on the left (0.5, 1), on the right (0.5, 1)
    >>> choices = np.stack([np.r_[p[:2], 1 - p[2:]], np.r_[1 - p[:2], p[2:]]], axis=-1)
    >>> found = sensitivity(choices, decision_task((0.5, 1.0)))
    >>> round(float(found["left"]), 3), round(float(found["right"]), 3)
    (0.4, 0.0)

    ```
    """
    correct(choices, data)  # checks both
    p, best = np.asarray(choices, float), _rewarded(data)
    side, contrast = _labels(data)
    found = {}
    for name in ("left", "right"):
        here = np.flatnonzero((side == name) | (contrast == 0))
        if len(np.unique(contrast[here])) < 2:
            raise NeuralRaceError(
                "sensitivity needs two contrasts on each side",
                got=f"{len(np.unique(contrast[here]))} on the {name}",
                wanted="at least two",
                fix="for example decision_task((0.25, 1.0))",
            )
        high, low = (here[contrast[here] == at(contrast[here])] for at in (np.max, np.min))
        chosen = lambda rows, high=high: np.average(
            np.where(best[high[0]], p[..., rows, :], 0).sum(axis=-1),
            axis=-1,
            weights=np.asarray(data.probability)[rows],
        )
        found[name] = np.asarray(chosen(high) - chosen(low))
    return found


@door
def strategies(
    choices: ArrayLike, data: Sampled, *, used: Inside = 0.1, expert: Inside = 0.75
) -> np.ndarray:
    """The strategy behind choices: `naive`, `left`, `right`, `balanced` or `expert`.

    Experts are those that choose correctly with probability at least `expert` on the stimuli of
    either side, but for those of contrast 0, which nobody can tell. Of the others, a side is used
    if its `sensitivity` is at least `used`: animals that use one side are named after it, those
    that use both are balanced.

    **Note:** sensitivity is small where even the lowest contrast is clear. An animal that is right
    at all contrasts of one side, and not an expert, counts as not using it. Trials of contrast 0,
    such as of `decision_task((0, 0.5, 1))`, avoid this.

    ```python
    >>> import numpy as np
    >>> from neuralrace.behaviour import decision_task, strategies
    >>> str(strategies(np.full((4, 2), 0.5), decision_task((0.5, 1.0))))
    'naive'

    ```
    """
    sides = sensitivity(choices, data)
    left, right = (sides[name] >= used for name in ("left", "right"))
    one = np.where(left, "left", np.where(right, "right", "naive"))
    named = np.where(left & right, "balanced", one)
    right_choice, (side, contrast) = correct(choices, data), _labels(data)
    share, often = np.asarray(data.probability), []
    for name in sides:
        seen = (side == name) & (contrast > 0)
        often.append(right_choice[..., seen] @ share[seen] / share[seen].sum())
    return np.where(np.minimum(*often) >= expert, "expert", named)


@final
@dataclass(frozen=True)
class Correlation:
    """A rank correlation with the ends of its confidence interval, over `count` animals.

    ```python
    >>> from neuralrace.behaviour import rank_correlation
    >>> found = rank_correlation([1.0, 2.0, 3.0, 4.0], [9.0, 7.0, 5.0, 3.0])
    >>> found.value, found.count, found.low <= found.value <= found.high
    (-1.0, 4, True)

    ```
    """

    value: float
    low: float
    high: float
    count: int


@door
def rank_correlation(
    early: ArrayLike,
    late: ArrayLike,
    *,
    key: Key = 0,
    resamples: Count = 2000,
    confidence: Inside = 0.95,
) -> Correlation:
    """Spearman's rank correlation of two numbers per animal, with a confidence interval.

    The interval is that of the percentiles over `resamples` draws of animals with replacement. A
    number that is equal for all animals has correlation 0 with everything.

    ```python
    >>> import numpy as np
    >>> from neuralrace.behaviour import rank_correlation
    >>> found = rank_correlation(np.arange(50.0), np.arange(50.0) ** 3)
    >>> found.value, found.low > 0.99
    (1.0, True)

    ```
    """
    from scipy.stats import rankdata

    fix = "two rows of finite numbers, one per animal"
    pair = [
        real_array(name, value, wanted="shape (animals,)", fix=fix)
        for name, value in (("early", early), ("late", late))
    ]
    require(
        pair[0].ndim == 1 and pair[0].shape == pair[1].shape and len(pair[0]) >= 3,
        "early and late must have one number per animal",
        got=f"shapes {pair[0].shape} and {pair[1].shape}",
        wanted="two equal shapes (animals,), at least 3",
        fix=fix,
    )
    require(
        all(np.isfinite(row).all() for row in pair),
        "early and late must be finite",
        got="NaN or infinity",
        wanted=fix,
        fix=fix,
    )
    both = np.stack(pair)
    index = generator(key).integers(0, both.shape[1], (resamples, both.shape[1]))

    def spearman(rows: np.ndarray) -> np.ndarray:
        ranks = rankdata(rows, axis=-1)
        ranks = ranks - ranks.mean(axis=-1, keepdims=True)
        size = np.sqrt((ranks**2).sum(axis=-1)).prod(axis=0)
        product = ranks.prod(axis=0).sum(axis=-1)
        return np.divide(product, size, out=np.zeros_like(product), where=size > 0)

    tails = [50 * (1 - confidence), 50 * (1 + confidence)]
    low, high = np.percentile(spearman(both[:, index]), tails)
    value = float(spearman(both[:, None])[0])
    return Correlation(round(value, 12), float(low), float(high), both.shape[1])


# ---- what a task says of itself -----------------------------------------------------------------


def _rewarded(data: Dataset) -> Bool[np.ndarray, "N choices"]:
    """Which choices are rewarded most, for every stimulus."""
    reward = np.asarray(next(iter(data.y.values())))
    return reward == reward.max(axis=1, keepdims=True)


def _labels(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    missing = [name for name in ("side", "contrast") if name not in data.labels]
    if missing:
        raise NeuralRaceError(
            f"the task has no label {missing[0]!r}",
            got=f"labels {listed(data.labels)}",
            wanted="labels 'side' and 'contrast'",
            fix="behaviour.decision_task(), or labels={'side': …, 'contrast': …}",
        )
    return np.asarray(data.labels["side"]), np.asarray(data.labels["contrast"])

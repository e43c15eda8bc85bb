"""The task of the talk's mice, and networks for it: deep and shallow, with their teaching signals.

The talk shows the losses and that stimuli and a constant feed the values of two choices. Everything
else is ours: one cortical node per side, the contrasts, the policy, rates and decay.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.behaviour.agent import Agent, PerEdge
from neuralrace.behaviour.policies import Policy, Softmax
from neuralrace.checks import real_array
from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.errors import require
from neuralrace.types import ArrayLike, Count, Inside, PositiveShare

SIDES: tuple[str, ...] = ("left", "right")
"""Where a stimulus appears, and the two choices, in this order."""

CONTRASTS = (0.125, 0.25, 0.5, 1.0)
"""Contrasts of the stimuli; ours, in steps of two as is usual in this kind of task."""

VALUES: tuple[str, ...] = ("q_stim", "q_const")
"""The output nodes: what stimuli and the constant contribute to the values of the choices."""


@door
def decision_task(
    contrasts: ArrayLike = CONTRASTS, *, left: Inside = 0.5, reliability: PositiveShare = 1.0
) -> Dataset:
    """A stimulus on the left or right; the choice of its side is rewarded (Talk).

    **Arguments:** `contrasts` of the stimuli, from 0 to 1, equally frequent; `left`, the share of
    stimuli on the left; `reliability`, the probability that the correct choice is rewarded. The
    wrong one never is. A stimulus of contrast 0 cannot be seen: a side is drawn for it too, and its
    choice rewarded, so that it says what an animal does without a stimulus.

    **Returns:** a `Dataset` with inputs `left` and `right` (the contrast there, else 0) and
    `constant` (1), one row per stimulus, left ones first; the probability that each choice (left,
    right) is rewarded, for the output nodes `q_stim` and `q_const`; labels `side` and `contrast`.

    ```python
    >>> from neuralrace.behaviour import decision_task
    >>> task = decision_task((0.5, 1.0), left=0.6)
    >>> task.x["left"].ravel(), task.y["q_stim"][0], task.probability.round(2)
    (array([0.5, 1. , 0. , 0. ]), array([1., 0.]), array([0.3, 0.3, 0.2, 0.2]))

    ```
    """
    wanted = "different numbers from 0 to 1, one of them above 0"
    fix = f"for example contrasts={CONTRASTS}"
    levels = np.atleast_1d(real_array("contrasts", contrasts, wanted=wanted, fix=fix))
    fine = levels.ndim == 1 and bool(((levels >= 0) & (levels <= 1)).all() and (levels > 0).any())
    require(
        fine and len(np.unique(levels)) >= levels.size,
        "contrasts are out of range",
        got=np.array2string(levels, threshold=8),
        wanted=wanted,
        fix=fix,
    )
    side = np.repeat([0, 1], len(levels))
    contrast = np.tile(levels, 2)
    reward = reliability * np.eye(2)[side]
    return Dataset(
        {
            "left": (contrast * (side == 0))[:, None],
            "right": (contrast * (side == 1))[:, None],
            "constant": np.ones((len(side), 1)),
        },
        dict.fromkeys(VALUES, reward),
        sample_weight=np.where(side == 0, left, 1 - left) / len(levels),
        labels={"side": np.array(SIDES)[side], "contrast": contrast},
    )


@door
def deep_agent(
    *,
    neurons: Count = 1,
    signals: Literal["three", "one"] = "three",
    policy: Policy | None = None,
    rates: PerEdge = 1.0,
    decay: PerEdge = 0.0,
) -> Agent:
    """Stimuli through a first layer ("cortex"), and a constant, to the values of two choices.

    Q^tot = Q^stim + Q^const (Talk, "A Deep RL Neural Network"). Each side has its own cortical
    node of `neurons` neurons (ours): edges `see_left`, `see_right` into it, `from_left`,
    `from_right` from it to `q_stim`, and `from_constant` to `q_const`.

    **Arguments:** `signals="three"`: ½ (R − Q^tot_c)² trains the first layer, ½ (R − Q^stim_c)² the
    stimulus associations, ½ (R − Q^const_c)² the constant ones, as the talk says; `"one"`: the
    first of these trains all edges. `policy`, `rates` and `decay` as in `Agent`; `Softmax(5.0)` by
    default.

    **Note:** with three signals and no decay no learned association is at rest. The association
    of a side with the wrong choice, which is never rewarded, rests at 0. If that with the correct
    choice and the first layer both stood still, ⟨π (R − Q^stim) x⟩ and ⟨π (R − Q^tot) x⟩ would be 0
    for it, x the contrast and π its probability, and hence Q^const, which predicts a positive
    reward. Instead the associations grow without bound and the first layer fades, at equal values.
    A small decay makes them rest.

    ```python
    >>> from neuralrace.behaviour import deep_agent
    >>> agent = deep_agent(decay=0.01)
    >>> agent.arch.hidden, dict(agent.trained_by)["see_left"], dict(agent.trained_by)["from_left"]
    (('cortex_left', 'cortex_right'), 'total', 'stim')

    ```
    """
    arch = Architecture(
        dict.fromkeys((*SIDES, "constant"), 1)
        | {f"cortex_{side}": neurons for side in SIDES}
        | dict.fromkeys(VALUES, 2),
        {f"see_{side}": (side, f"cortex_{side}") for side in SIDES}
        | {f"from_{side}": (f"cortex_{side}", "q_stim") for side in SIDES}
        | {"from_constant": ("constant", "q_const")},
    )
    first = {f"see_{side}": "total" for side in SIDES}
    return _agent(arch, first, signals, policy, rates, decay)


@door
def shallow_agent(
    *,
    signals: Literal["three", "one"] = "three",
    policy: Policy | None = None,
    rates: PerEdge = 1.0,
    decay: PerEdge = 0.0,
) -> Agent:
    """The same without the first layer: edges `from_left`, `from_right` and `from_constant`.

    Arguments as those of `deep_agent`. "Three" signals are two here: no first layer needs a third.

    ```python
    >>> from neuralrace.behaviour import shallow_agent
    >>> shallow_agent().arch.hidden
    ()

    ```
    """
    arch = Architecture(
        dict.fromkeys((*SIDES, "constant"), 1) | dict.fromkeys(VALUES, 2),
        {f"from_{side}": (side, "q_stim") for side in SIDES}
        | {"from_constant": ("constant", "q_const")},
    )
    return _agent(arch, {}, signals, policy, rates, decay)


def _agent(
    arch: Architecture,
    first: dict[str, str],
    signals: str,
    policy: Policy | None,
    rates: Any,
    decay: Any,
) -> Agent:
    trained = first | {f"from_{side}": "stim" for side in SIDES} | {"from_constant": "const"}
    if signals == "one":
        trained = dict.fromkeys(arch.edges, "total")
    losses = {"total": VALUES, "stim": VALUES[:1], "const": VALUES[1:]}
    return Agent(arch, losses, trained, policy or Softmax(), rates, decay)

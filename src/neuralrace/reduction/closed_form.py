"""Closed forms of merged races, recognised from their equations and not from a task's name.

Every case known to be solvable has one shape: with M = Π_k b_k^{n_k} the strength of a pathway,

    db_k/dt = γ_k (M / b_k) (S − D M)   for every variable k,

so that b_k²/γ_k − b_l²/γ_l is conserved and b_k² = b_k(0)² + γ_k z for one scalar z with
dz/dt = 2 M (S − D M). Chains of any depth, balanced or not, the C contexts, routing and P-shared
routing are all of this kind; they differ in the powers n_k and the rates γ_k alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Float

from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, require
from neuralrace.reduction.mode_form import SHOWN, ModeForm, Values
from neuralrace.tolerances import ALL_LEARNED, NOT_BEGUN, ROUNDING, TINY, UNREACHED
from neuralrace.types import ArrayLike, Finite

DIVISIONS = 64
"""The number of pieces into which the time span around the criterion is divided repeatedly."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class ClosedForm:
    """The closed form of a race: one `ModeForm` per block that has one, and their total loss.

    `without` names the blocks for which no closed form is known. Where there are any, the loss of
    the race is not known in closed form either, and asking for it is an error. `dropped` is the
    loss that a tolerance dropped (`Race.dropped_loss`): it stays, although it can be learned.

    ```python
    >>> import neuralrace as nr
    >>> race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
    >>> form = race.closed_form(race.start(0.01))
    >>> form.modes["mode1"].kind, float(form.time_to_loss(0.2).round(2))
    ('logistic', 11.77)
    >>> nr.reduce(*nr.tasks.linear_pathways(nr.tasks.extended_xor(1.0))).closed_form(0.01)
    ClosedForm of 2 modes
      mode1: logistic, 2 edges, s = 0.5, d = 0.5, strength 0.0001 → 1
      mode2: logistic, 2 edges, s = 0.5, d = 0.5, strength 0.0001 → 1

    ```
    """

    modes: Mapping[str, ModeForm]
    constant: float
    without: tuple[str, ...] = ()
    dropped: float = 0.0

    @property
    def is_complete(self) -> bool:
        """Whether every block has a closed form, and there are blocks at all."""
        return bool(self.modes) and not self.without

    def _check_complete(self) -> None:
        if not self.is_complete:
            known = f"closed forms of {len(self.modes)} blocks"
            raise NeuralRaceError(
                "the loss of this race is not known in closed form",
                got=f"{known}, and none of {_some(self.without)}" if self.without else known,
                wanted="a closed form of every block (form.is_complete)",
                fix="race.solve(times=…, start=…) solves any race; form.modes has the modes known",
            )

    def __repr__(self) -> str:
        count = len(self.modes)
        lines = [f"ClosedForm of {count} mode{'s' * (count != 1)}"]
        lines += [f"  {name}: {mode}" for name, mode in list(self.modes.items())[:SHOWN]]
        lines += [f"  … and {count - SHOWN} more"] if count > SHOWN else []
        lines += [f"  none known of {_some(self.without)}"] if self.without else []
        if self.constant:
            lines.append(f"  loss outside all blocks: {self.constant:.4g}")
        if self.dropped:
            lines.append(f"  loss that the tolerance dropped: {self.dropped:.4g}")
        return "\n".join(lines)

    @door
    def value(self, t: ArrayLike) -> dict[str, Values]:
        """The pathway strength of every mode at the times t."""
        return {name: mode.value(t) for name, mode in self.modes.items()}

    @door
    def loss(self, t: ArrayLike) -> Values:
        """The loss at the times t."""
        self._check_complete()
        losses = [count * mode.loss(t) for mode, count in self._distinct]
        return self.constant + self.dropped + np.sum(losses, axis=0)

    @cached_property
    def _distinct(self) -> list[tuple[ModeForm, int]]:
        """Modes with the same equations and starts, once, and how many there are of each."""
        groups: dict[object, list[ModeForm]] = {}
        for mode in self.modes.values():
            groups.setdefault((mode.system.digits, mode.start), []).append(mode)
        return [(group[0], len(group)) for group in groups.values()]

    @door
    def time_to(self, value: ArrayLike) -> dict[str, Values]:
        """The time at which each mode's strength reaches a value."""
        return {name: mode.time_to(value) for name, mode in self.modes.items()}

    @door
    def time_to_loss(self, criterion: Finite) -> np.ndarray:
        """The time at which the loss falls to a criterion; infinite if it never does.

        NaN where it is not known: what lies between the criterion and the last loss of the modes is
        what a tolerance `dropped`.
        """
        self._check_complete()
        least = self.constant + sum(
            count * float(mode.system.loss_at(_at_rest(mode))) for mode, count in self._distinct
        )
        start = float(self.loss(np.zeros(())))
        if criterion >= start:
            return np.asarray(0.0)
        if criterion <= least + UNREACHED * start:
            return np.asarray(np.inf)
        if criterion <= least + self.dropped + UNREACHED * start:
            return np.asarray(np.nan)
        times = self._doubling_times()
        loss = np.asarray(self.loss(times))
        require(
            not loss[-1] > criterion,
            "the loss did not reach the criterion",
            got=f"{loss[-1]:.4g} at t = {times[-1]:.1g}",
            wanted=f"{criterion:g}",
            fix="choose a criterion further above the final loss",
        )
        while True:  # the span between the two times around the criterion is divided
            k = max(1, int(np.argmax(loss <= criterion)))
            low, high = float(times[k - 1]), float(times[k])
            if high - low <= ROUNDING * high:
                share = (loss[k - 1] - criterion) / max(loss[k - 1] - loss[k], TINY)
                return np.asarray(low + min(share, 1.0) * (high - low))
            times = np.linspace(low, high, DIVISIONS + 1)
            loss = np.asarray(self.loss(times))

    def _doubling_times(self) -> Float[np.ndarray, " T"]:
        """Zero, then times that double, from long before the first mode to long after the last.

        The time scale of each mode is the time it takes to go half its way.
        """
        half = [float(m.time_to((m.initial + m.final) / 2)) for m, _ in self._distinct]
        half = [time for time in half if 0 < time < np.inf] or [1.0]
        first, last = min(half) * NOT_BEGUN, max(half) * ALL_LEARNED
        count = int(np.ceil(np.log2(last) - np.log2(first)))
        return np.concatenate([[0.0], first * 2.0 ** np.arange(count + 1)])


def _some(names: tuple[str, ...]) -> str:
    """All names, or the first few and the number of the others."""
    more = f", … and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _at_rest(mode: ModeForm) -> np.ndarray:
    """The variables at the end of learning."""
    if mode.race.depth == 1:
        return np.array([mode.final])
    z = mode._growth(np.asarray(mode.final))
    return np.sqrt(np.array(mode.start) ** 2 + z * np.array(mode.race.rates))

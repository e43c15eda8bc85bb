"""Claims about learning times: what is said never to learn, and what rounding would decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.integrate import solve_ivp

import neuralrace as nr
from evidence.promise import Measurement, claim

SECTION = "Contests"
UNITS = 20
"""Hidden neurons of every pathway."""

SCALE = 1e-3
"""The standard deviation of random weights."""


LEFT = 0.1
"""The part of what can be learned that is left at the criterion."""


def nearly_learned(
    x: Float[np.ndarray, "N I"], y: Float[np.ndarray, "N O"], masks: Float[np.ndarray, "P N"]
) -> float:
    """The loss at which this part is left; the best linear maps of all pathways learn the rest.

    Infinite where there is nothing to learn.
    """
    table = np.concatenate([mask[:, None] * x for mask in masks], axis=1)
    rest = y - table @ np.linalg.lstsq(table, y, rcond=None)[0]
    least, zero = ((values**2).sum(axis=1).mean() / 2 for values in (rest, y))
    return float(least + LEFT * (zero - least)) if zero > 1.000001 * least else np.inf


@dataclass(frozen=True)
class Task:
    """Samples, each along one direction of inputs and outputs, and pathways that overlap."""

    x: Float[np.ndarray, "N I"]
    y: Float[np.ndarray, "N O"]
    masks: Float[np.ndarray, "P N"]
    reads: Float[np.ndarray, "P H I"]
    writes: Float[np.ndarray, "P O H"]
    turns: bool

    def pair(self) -> tuple[nr.Architecture, nr.Dataset]:
        masks = {f"m{p}": mask for p, mask in enumerate(self.masks)}
        return nr.pathways(nr.Dataset({"x": self.x}, {"y": self.y}), masks, hidden=UNITS)

    def weights(self) -> dict[str, np.ndarray]:
        count = range(len(self.masks))
        return {f"x_m{p}": self.reads[p] for p in count} | {
            f"m{p}_y": self.writes[p] for p in count
        }

    @property
    def criterion(self) -> float:
        return nearly_learned(self.x, self.y, self.masks)

    def reaches(self, criterion: float, end: float) -> float:
        """When the loss of the whole network falls to the criterion; infinite if not by the end."""
        shapes = self.reads.shape, self.writes.shape
        cut = self.reads.size

        def errors(reads: np.ndarray, writes: np.ndarray) -> np.ndarray:
            paths = np.einsum("poh,phi->poi", writes, reads)
            return self.y - np.einsum("pn,poi,ni->no", self.masks, paths, self.x)

        def velocity(_: float, state: np.ndarray) -> np.ndarray:
            reads, writes = state[:cut].reshape(shapes[0]), state[cut:].reshape(shapes[1])
            rest = errors(reads, writes)
            drive = np.einsum("pn,no,ni->poi", self.masks, rest, self.x) / len(self.x)
            change = (
                np.einsum("poh,poi->phi", writes, drive), np.einsum("poi,phi->poh", drive, reads)
            )  # fmt: skip
            return np.concatenate([part.ravel() for part in change])

        def above(_: float, state: np.ndarray) -> float:
            rest = errors(state[:cut].reshape(shapes[0]), state[cut:].reshape(shapes[1]))
            return float((rest**2).sum(axis=1).mean() / 2 - criterion)

        above.terminal = True  # type: ignore[attr-defined]
        begin = np.concatenate([self.reads.ravel(), self.writes.ravel()])
        found = solve_ivp(velocity, (0, end), begin, "DOP853", events=above, rtol=1e-8, atol=1e-14)
        return float(found.t_events[0][0]) if len(found.t_events[0]) else np.inf


def random_task(rng: np.random.Generator) -> Task:
    """One to three directions, so that blocks are scalar; two or three pathways that overlap."""
    directions, pathways = int(rng.integers(1, 4)), int(rng.integers(2, 4))
    samples = 3 * directions
    turn = [np.linalg.qr(rng.normal(size=(directions, directions)))[0] for _ in range(2)]
    along = np.tile(np.arange(directions), 3)
    strengths = rng.choice([0.5, 1.0, 2.0], samples), 1 + 2 * rng.normal(size=samples)
    x, y = (s[:, None] * basis[along] for s, basis in zip(strengths, turn, strict=True))
    masks = (rng.random((pathways, samples)) < 0.5).astype(float)
    masks[0] = 1.0
    masks[range(pathways), rng.integers(samples, size=pathways)] = 1.0
    turns = False
    for k in range(directions):
        here = along == k
        table = masks[:, here].T * strengths[0][here][:, None]
        best = np.linalg.lstsq(table, strengths[1][here], rcond=None)[0]
        turns |= bool((best * (table.T @ strengths[1][here]) < 0).any())
    size = (pathways, UNITS, directions)
    reads, writes = SCALE * rng.normal(size=size), SCALE * rng.normal(size=size)
    return Task(x, y, masks, reads, writes.swapaxes(1, 2), turns)


@claim(
    "contests/never",
    SECTION,
    "contests over scalar blocks with overlapping pathways, from actual weights of "
    f"{UNITS} units (σ = {SCALE:g}), until 10 % of what can be learned is left: the predicted time "
    "against SciPy's solution of the whole network",
    "60 of 60 without a false never; known times within 5 %",
)
def never(full: bool) -> Measurement:
    rng, count = np.random.default_rng(36), 60 if full else 6
    false = unknown = turns = 0
    errors = []
    for _ in range(count):
        task = random_task(rng)
        criterion = task.criterion
        found = nr.contest(
            {"c": task.pair()}, start={"c": task.weights()}, criterion=criterion, leads=False
        ).entrants["c"]
        assert all(block.is_scalar for block in found.race.blocks)
        turns += task.turns
        if np.isfinite(found.time):
            errors.append(abs(task.reaches(criterion, 1.5 * found.time) / found.time - 1))
        elif found.is_unknown:
            unknown += 1
        else:
            false += np.isfinite(task.reaches(criterion, 1e4 / found.strength))
    text = f"{false} of {count} falsely never; {unknown} unknown; times off by at most "
    text += f"{100 * max(errors):.2g} %, {100 * float(np.median(errors)):.1g} % in the median; in "
    text += f"{turns} a pathway ends on the side opposite to its first Σ^yx"
    return Measurement(text, bool(false == 0 and max(errors) <= 0.05))


def matrix_races(rng: np.random.Generator, count: int) -> Iterator[tuple[nr.Race, float]]:
    """Races of matrix blocks that often rest at saddles, and the criteria of their contests."""
    made = 0
    while made < count:
        samples, inputs = rng.integers(4, 7), rng.integers(2, 4)
        outputs, pathways = rng.integers(1, 3), rng.integers(2, 4)
        x = rng.integers(-1, 2, (samples, inputs)).astype(float)
        y = rng.integers(-2, 3, (samples, outputs)).astype(float)
        masks = (rng.random((pathways, samples)) < 0.6).astype(float)
        masks[0], masks[range(pathways), rng.integers(samples, size=pathways)] = 1.0, 1.0
        named = {f"m{p}": mask for p, mask in enumerate(masks)}
        criterion = nearly_learned(x, y, masks)
        if np.isfinite(criterion):
            made += 1
            pair = nr.pathways(nr.Dataset({"x": x}, {"y": y}), named, hidden=4)
            yield nr.reduce(*pair), criterion


@claim(
    "contests/tolerances",
    SECTION,
    "random contests over matrix blocks, from an aligned start of 0.01 and from actual weights: "
    "the printed time with a relative tolerance of 1e-8 and of 1e-12",
    "no known time moves by more than its last printed digit, of four; some rest at saddles",
)
def tolerances(full: bool) -> Measurement:
    rng, count = np.random.default_rng(777), 40 if full else 20
    known = unknown = moved = 0
    worst = 0.0
    for key, (race, criterion) in enumerate(matrix_races(rng, count)):
        weights = nr.GDLN(race.arch).init(key, scale=0.01)
        for start in (0.01, {"c": {e: np.asarray(w, float) for e, w in weights.items()}}):
            loose, tight = (
                nr.contest(
                    {"c": race}, start=start, criterion=criterion, rtol=rtol, leads=False
                ).entrants["c"]
                for rtol in (1e-8, 1e-12)
            )  # fmt: skip
            if loose.is_unknown or tight.is_unknown:
                unknown += 1
                moved += loose.is_unknown != tight.is_unknown
                continue
            known += 1
            digits = abs(loose.time - tight.time) / 10 ** (np.floor(np.log10(tight.time)) - 3)
            worst = np.maximum(worst, float(digits))
    text = f"at most {worst:.2g} of the last digit over {known} times; {unknown} unknown, {moved} "
    text += "of them with one tolerance alone"
    return Measurement(text, bool(worst <= 1 and moved == 0 and unknown > 0))

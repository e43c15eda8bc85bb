"""Claims about learning from rewards: trials and their average, stationary points, strategies.

Numbers of the model (contrasts, policy, decay, initial weights) are ours, chosen after looking at
stationary points and 50 trial animals; nothing is fitted, and there are no data of animals here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import xarray

import neuralrace as nr
import papers
from evidence.promise import Measurement, at_most, claim
from neuralrace import behaviour
from papers.talk import decisions

SECTION = "Behaviour"

BETA, DECAY = 10.0, 0.01
"""Inverse temperature of the policy, and decay of the weights, as in the talk's figures."""

GREEDY = 20.0
"""A greedier policy, at which it makes stationary points of its own."""

CONTRASTS = np.array([0.125, 0.25, 0.5, 1.0])
"""Contrasts on either side."""

NEVER = 1e-6
"""A choice that is less likely counts as never taken; see `behaviour.stationary_points`."""


def task() -> nr.Dataset:
    return behaviour.decision_task(CONTRASTS)


def agent(kind: str = "deep", beta: float = BETA) -> behaviour.Agent:
    make = behaviour.deep_agent if kind == "deep" else behaviour.shallow_agent
    return make(policy=behaviour.Softmax(beta), decay=DECAY)


@cache
def points(kind: str = "deep", beta: float = BETA) -> behaviour.StationaryPoints:
    return behaviour.stationary_points(agent(kind, beta), task())


# ---- an independent average: the equations of the talk, written out ------------------------------


REWARD = np.eye(2)[:, :, None]
"""The reward of each choice (second axis) for stimuli of each side (first axis)."""


def chosen(stim: np.ndarray, b: np.ndarray, beta: float) -> np.ndarray:
    """The probability of both choices: softmax of two values; axes as in `REWARD`."""
    gap = np.clip(beta * (stim[:, 0] - stim[:, 1] + b[0] - b[1]), -500, 500)
    first = 1 / (1 + np.exp(-gap))
    return np.stack([first, 1 - first], axis=1)


def deep_by_hand(w: np.ndarray, beta: float = BETA) -> np.ndarray:
    """d/dt of (u_L, u_R, a_L (2), a_R (2), b (2)); stimuli are equally likely."""
    u, a, b = w[:2, None, None], w[2:6].reshape(2, 2, 1), w[6:]
    stim = u * a * CONTRASTS
    p = 0.5 / len(CONTRASTS) * chosen(stim, b, beta)
    to_u = (p * (REWARD - stim - b[:, None]) * a * CONTRASTS).sum(axis=(1, 2))
    to_a = (p * (REWARD - stim) * u * CONTRASTS).sum(axis=2)
    to_b = (p * (REWARD - b[:, None])).sum(axis=(0, 2))
    return np.concatenate([to_u, to_a.ravel(), to_b]) - DECAY * w


def shallow_by_hand(w: np.ndarray, beta: float = BETA) -> np.ndarray:
    """d/dt of (a_L (2), a_R (2), b (2))."""
    a, b = w[:4].reshape(2, 2, 1), w[4:]
    stim = a * CONTRASTS
    p = 0.5 / len(CONTRASTS) * chosen(stim, b, beta)
    to_a = (p * (REWARD - stim) * CONTRASTS).sum(axis=2)
    to_b = (p * (REWARD - b[:, None])).sum(axis=(0, 2))
    return np.concatenate([to_a.ravel(), to_b]) - DECAY * w


def values_by_hand(kind: str, w: np.ndarray) -> dict[str, np.ndarray]:
    """The values (stimuli, choices) of both outputs, left stimuli first."""
    seen, rest = (w[:2], w[2:]) if kind == "deep" else (np.ones(2), w)
    sides = [seen[k] * CONTRASTS[:, None] * rest[2 * k : 2 * k + 2] for k in (0, 1)]
    constant = np.broadcast_to(rest[4:], (2 * len(CONTRASTS), 2))
    return {"q_stim": np.concatenate(sides), "q_const": constant}


BY_HAND = {"deep": (deep_by_hand, 8), "shallow": (shallow_by_hand, 6)}
"""The average by hand, and its number of weights."""


def weights_of(kind: str, row: np.ndarray) -> dict[str, np.ndarray]:
    """A row of weights by hand as those of the agent."""
    rest = row[2:] if kind == "deep" else row
    named = {"from_left": rest[:2], "from_right": rest[2:4], "from_constant": rest[4:]}
    named |= {"see_left": row[:1], "see_right": row[1:2]} if kind == "deep" else {}
    return {edge: w[:, None] for edge, w in named.items()}


@claim(
    "behaviour/average",
    SECTION,
    "average learning is the talk's equations, written out by hand",
    "≤ 1e-12",
)
def average(full: bool) -> Measurement:
    rng, worst = np.random.default_rng(0), 0.0
    for kind, (velocity, size) in BY_HAND.items():
        for _ in range(50 if full else 5):
            row = rng.normal(size=size)
            found = agent(kind).velocity(weights_of(kind, row), task())
            wanted = weights_of(kind, velocity(row))
            worst = np.max([worst, *(float(np.abs(found[e] - w).max()) for e, w in wanted.items())])
    return at_most(worst, 1e-12)


# ---- trials and their average --------------------------------------------------------------------

RATES = (0.02, 0.01, 0.005, 0.0025)
"""Learning rates; each is half of the one before."""

BEFORE = 10.0
"""A time before the first saddle is left, which takes about 30 from these weights."""


def at_first_saddle() -> dict[str, np.ndarray]:
    """The point at which nothing is learned but the constant, plus random weights of 0.01.

    A first attempt, from small random weights alone, missed both exponents. From there chance
    differences of the two constants first grow about tenfold, since a choice that is taken more
    often learns faster: far smaller rates would be needed for the law.
    """
    small = agent().init(0, scale=0.01)
    naive = points().points[0].weights
    return {edge: np.asarray(w) + naive[edge] for edge, w in small.items()}


@cache
def exponents(full: bool) -> tuple[float, float]:
    """The slopes of log ‖W − W_flow‖ at `BEFORE` against log rate: one animal, mean of animals."""
    rates, animals = (RATES, 8000) if full else (RATES[:3], 2000)
    deep, data = agent(), task()
    start = at_first_saddle()
    end = nr.flow(deep, start, data, times=[BEFORE]).final
    one, mean = [], []
    for rate in rates:
        run = behaviour.train_by_trials(
            deep, data, key=1, learning_rate=rate, trials=round(BEFORE / rate), animals=animals,
            weights=start, record_at=[0],
        )  # fmt: skip
        gaps = [(np.asarray(run.final[e]) - end[e]).reshape(animals, -1) for e in end]
        gap = np.concatenate(gaps, axis=1)
        one.append(np.sqrt((gap**2).sum(axis=1).mean()))
        mean.append(np.linalg.norm(gap.mean(axis=0)))
    slopes = [float(np.polyfit(np.log(rates), np.log(gaps), 1)[0]) for gaps in (one, mean)]
    return slopes[0], slopes[1]


@claim(
    "behaviour/one-animal",
    SECTION,
    "one animal deviates from average learning by the square root of the learning rate, from the "
    "first saddle until before it is left",
    "exponent within 0.1 of 0.5",
)
def one_animal(full: bool) -> Measurement:
    found = exponents(full)[0]
    return Measurement(f"{found:.3f}", abs(found - 0.5) <= 0.1)


@claim(
    "behaviour/mean-of-animals",
    SECTION,
    "the mean of animals deviates from average learning by the learning rate, from the first "
    "saddle until before it is left",
    "exponent within 0.2 of 1",
)
def mean_of_animals(full: bool) -> Measurement:
    found = exponents(full)[1]
    return Measurement(f"{found:.3f}", abs(found - 1.0) <= 0.2)


# ---- stationary points ---------------------------------------------------------------------------


@claim(
    "behaviour/stationary",
    SECTION,
    "every stationary point listed is one, by the equations by hand",
    "≤ 1e-10",
    most=1e-10,
)
def are_stationary(full: bool) -> Iterator[float]:
    for kind, (velocity, _) in BY_HAND.items():
        edges = ("see_left", "see_right") if kind == "deep" else ()
        order = (*edges, "from_left", "from_right", "from_constant")
        for point in points(kind).points:
            row = np.concatenate([np.ravel(point.weights[e]) for e in order])
            yield float(np.abs(velocity(row)).max())


def searched(kind: str, beta: float, starts: int) -> tuple[int, int, set[int]]:
    """Powell's method from random starts, on the equations by hand, against the list.

    **Returns:** how many ends are stationary points, how many of them are not listed, and which
    listed ones they are.
    """
    from scipy.optimize import root

    velocity, size = BY_HAND[kind]
    rng, ends = np.random.default_rng(7), []
    for _ in range(starts):
        start = np.exp(rng.uniform(np.log(0.1), np.log(3))) * rng.normal(size=size)
        found = root(velocity, start, args=(beta,), method="hybr", options={"xtol": 1e-13})
        if np.abs(found.fun).max() <= 1e-10:
            ends.append(found.x)
    values = [values_by_hand(kind, end) for end in ends]
    total = np.sum([list(v.values()) for v in values], axis=1)  # (ends, stimuli, choices)
    taken = chosen(np.moveaxis(total, 2, 1), np.zeros(2), beta).mean(axis=2)
    kept = [v for v, least in zip(values, taken.min(axis=1), strict=True) if least >= NEVER]
    far = points(kind, beta).distances({v: np.array([one[v] for one in kept]) for v in kept[0]})
    listed = far.min(axis=1) <= 1e-5
    return len(kept), int((~listed).sum()), {int(k) for k in far[listed].argmin(axis=1)}


def against_search(beta: float, starts: dict[str, int]) -> Measurement:
    """Both networks: no end that is not listed, and every listed point reached."""
    told, met = [], True
    for kind, many in starts.items():
        ended, others, reached = searched(kind, beta, many)
        count = len(points(kind, beta).points)
        told.append(
            f"{kind}: {others} others in {ended} ends of {many} starts, "
            f"{len(reached)} of {count} points reached"
        )
        met = met and others == 0 and len(reached) == count
    return Measurement("; ".join(told), met)


@claim(
    "behaviour/none-missed",
    SECTION,
    "no stationary point is missed by the list: Powell's method from 10⁴ random starts (10³ for "
    "the shallow network), on the equations by hand",
    "0 others, all points reached",
)
def none_missed(full: bool) -> Measurement:
    starts = {"deep": 10_000, "shallow": 1000} if full else {"deep": 300, "shallow": 100}
    return against_search(BETA, starts)


@claim(
    "behaviour/none-missed-greedy",
    SECTION,
    "the same at β = 20, where the policy makes points of its own, from 5000 random starts (2000 "
    "for the shallow network)",
    "0 others, all points reached",
    slow=True,
)
def none_missed_greedy(full: bool) -> Measurement:
    return against_search(GREEDY, {"deep": 5000, "shallow": 2000})


@claim(
    "behaviour/plateaus",
    SECTION,
    "every plateau of 100 animals on average is at a listed stationary point: values that move "
    "slower than 0.001 for 10 units of time, from weights of 0.001",
    "all within 0.05",
)
def plateaus(full: bool) -> Measurement:
    animals = 100 if full else 5
    run = nr.flow_ensemble(
        agent(), task(), key=0, seeds=animals, scale=1e-3, times=np.linspace(0, 400, 801),
        record={"outputs": True},
    )  # fmt: skip
    rests = [rest for mine in points().rests(run, speed=1e-3, least=10.0) for rest in mine]
    worst = max(rest.distance for rest in rests)
    seen = len({rest.point for rest in rests})
    text = f"{len(rests)} plateaus at {seen} points, worst {worst:.3g}"
    return Measurement(text, worst <= 0.05 and len(rests) >= 2 * animals)


def unstable(beta: float) -> list[int]:
    """How many stationary points are unstable, deep and shallow."""
    return [sum(p.index > 0 for p in points(kind, beta).points) for kind in ("deep", "shallow")]


@claim(
    "behaviour/saddles",
    SECTION,
    "at β = 10 the deep network has a saddle for no side, one for each side, and no other unstable "
    "point; the shallow network has none",
    "3 and 0",
)
def saddles_come_with_depth(full: bool) -> Measurement:
    counts = unstable(BETA)
    return Measurement(f"{counts[0]} and {counts[1]}", counts == [3, 0])


@claim(
    "behaviour/saddles-greedy",
    SECTION,
    "saddles come with depth alone also at β = 20: the shallow network has none",
    "more than 0, and 0",
    slow=True,
)
def saddles_come_with_depth_alone(full: bool) -> Measurement:
    deep, shallow = unstable(GREEDY)
    note = (
        "A greedy policy makes saddles of its own, in either network: they part animals that "
        "learn both choices from those that always take the same one."
    )
    met = deep > 0 and shallow == 0
    return Measurement(f"{deep} and {shallow}", met, "" if met else note)


@claim(
    "behaviour/without-decay",
    SECTION,
    "with three signals and no decay, nothing that is learned is at rest: the only stationary "
    "point has silent stimuli",
    "1 point, 0 learned nodes",
)
def without_decay(full: bool) -> Measurement:
    still = behaviour.deep_agent(policy=behaviour.Softmax(BETA))
    found = behaviour.stationary_points(still, task()).points
    nodes = sum(len(point.learned) for point in found)
    return Measurement(f"{len(found)} point, {nodes} learned nodes", len(found) == 1 and not nodes)


# ---- early and late strategies -------------------------------------------------------------------


@cache
def _decisions(**changes: object) -> xarray.Dataset:
    """The table of the figure talk/decisions at its default settings, or with some changed."""
    figure = papers.find("talk/decisions")
    return figure.run(figure.resolve(changes=changes))


def compared(table: xarray.Dataset) -> Measurement:
    """Early and late, deep against shallow: met where the intervals are apart."""
    text = ", ".join(f"{kind} {decisions.told(table, kind)}" for kind in ("deep", "shallow"))
    gap = decisions.part(table, "deep", "low") - decisions.part(table, "shallow", "high")
    return Measurement(text, gap > 0)


WHAT = (
    "rank correlation over 200 animals of right minus left use, at a quarter and at three quarters "
    "of the mean improvement"
)
"""What early and late mean. The two times differ between the networks; see talk/decisions."""


@claim(
    "behaviour/early-late",
    SECTION,
    f"early strategy predicts late strategy in the deep network: {WHAT}",
    "95 % interval above 0",
    slow=True,
)
def deep_predicts(full: bool) -> Measurement:
    table = _decisions()
    return Measurement(decisions.told(table, "deep"), decisions.part(table, "deep", "low") > 0)


@claim(
    "behaviour/early-late-depth",
    SECTION,
    "early strategy predicts late strategy more in the deep network than in the shallow one: the "
    "same for both",
    "95 % intervals apart",
    slow=True,
)
def deeper_predicts_more(full: bool) -> Measurement:
    return compared(_decisions())


@claim(
    "behaviour/early-late-zero-contrast",
    SECTION,
    "the same in a task that also shows contrast 0: use is measured against such trials, and does "
    "not vanish where the lowest contrast is clear",
    "95 % intervals apart",
    slow=True,
)
def deeper_predicts_more_against_zero(full: bool) -> Measurement:
    return compared(_decisions(contrasts=(0.0, *CONTRASTS.tolist())))


@claim(
    "behaviour/early-end",
    SECTION,
    "early strategy predicts strategy at the end of learning in the deep network: the same rank "
    "correlation, with the last moment",
    "95 % interval above 0",
    slow=True,
)
def deep_predicts_the_end(full: bool) -> Measurement:
    table = _decisions()
    met = bool(np.asarray(decisions.MEASURES["end"].read(table)) > 0)
    note = "Early strategy predicts that of a while later; the correlation decays with the lag."
    return Measurement(decisions.told(table, "deep", "end"), met, "" if met else note)

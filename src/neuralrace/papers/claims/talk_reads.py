"""How the numbers of the talk's claims are read from the data of its figures."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

import neuralrace as nr
from neuralrace.papers.claims.claim import Tables
from neuralrace.papers.figure import settings_of

if TYPE_CHECKING:
    import xarray

Read = Callable[[Tables], float]


def read(name: str, of: Callable[[xarray.Dataset], Any], **changes: Any) -> Read:
    """A number made of the data of one figure."""
    return lambda tables: float(of(tables(f"talk/{name}", **changes)))


def gap(one: str, other: str) -> Callable[[xarray.Dataset], float]:
    """The largest difference of two curves over the largest value of the first."""
    return lambda table: float(np.abs(table[one] - table[other]).max() / np.abs(table[one]).max())


# ---- depth --------------------------------------------------------------------------------------


def first_over_steepest(curves: np.ndarray) -> np.ndarray:
    """(K,): the first change of each curve (K, T) over its largest: 1 for an exponential."""
    changes = np.abs(np.diff(curves, axis=1))
    return changes[:, 0] / changes.max(axis=1)


def wait_over_rise(time: np.ndarray, curves: np.ndarray) -> np.ndarray:
    """(K,): the time to half of curves (K, T) that go to 1, over that from 10 to 90 %."""
    low, half, high = (nr.linear.crossing_times(time, curves.T, f) for f in (0.1, 0.5, 0.9))
    return half / (high - low)


def depth_curves(table: xarray.Dataset) -> np.ndarray:
    """Every depth and the limit, over the final strength."""
    s = settings_of(table)
    return np.stack([*table["exact"].to_numpy(), table["limit"].to_numpy()]) * s["d"] / s["s"]


def sharper_chains(table: xarray.Dataset) -> float:
    """The least factor of `wait_over_rise` from one depth to the next, the limit being the last."""
    sharp = wait_over_rise(table["time"].to_numpy(), depth_curves(table))
    return float((sharp[1:] / sharp[:-1]).min())


def deep_over_limit(table: xarray.Dataset) -> float:
    """The time to half of the deepest chain over that of the limit, both in units τ/D."""
    times = nr.linear.crossing_times(table["time"].to_numpy(), depth_curves(table).T)
    return float(times[-2] / times[-1])


def as_printed(table: xarray.Dataset, which: str) -> float:
    """How far the rate printed for D = 1 or in the limit of many edges leads, over s/λ."""
    s = settings_of(table)
    time, final = table["time"].to_numpy(), s["s"] / s["d"]
    if which == "shallow":
        right, left_over = table["exact"].to_numpy()[0], np.exp(-time)
        printed = final * (1 - left_over) + s["start"] * left_over
    else:  # … − t/τ in place of … − (s²/λ) t/τ: time runs too fast by λ/s²
        right = table["limit"].to_numpy()
        printed = nr.deep_limit(
            time * s["d"] / s["s"] ** 2, s=s["s"], d=s["d"], start=s["start"], depth=1
        )
    return float(np.abs(printed - right).max() / final)


def slowing(table: xarray.Dataset) -> float:
    """The slowest step of the descent before half of the loss is gone, over the fastest of all."""
    speed = np.linalg.norm(np.diff(table["path"].to_numpy(), axis=0), axis=1)
    loss = table["path_loss"].to_numpy()
    return float(speed[: int((loss <= loss[0] / 2).argmax())].min() / speed.max())


def apart(depth: int) -> Callable[[xarray.Dataset], float]:
    """Of the way from its start, the time to half of the weakest mode over the strongest's."""

    def measured(table: xarray.Dataset) -> float:
        curves = table["simulated"].to_numpy()[depth]
        gone = (curves - curves[0]) / (1 - curves[0])
        times = nr.linear.crossing_times(table["at"].to_numpy()[depth], gone)
        return float(times[-1] / times[0])

    return measured


def sharper(table: xarray.Dataset) -> float:
    """By how much another edge sharpens the transitions, least of all modes and depths."""
    from neuralrace.papers.talk.stages import sharpness

    sharp = sharpness(table)
    return float((sharp[1:] / sharp[:-1]).min())


# ---- training speed -----------------------------------------------------------------------------


def mean_time(table: xarray.Dataset, kind: str) -> np.ndarray:
    """(depth,): mean time to half of the loss, in units τ/D."""
    return table["time"].sel(kind=kind).mean("seed").to_numpy()


def growth(table: xarray.Dataset) -> np.ndarray:
    """By how much each further edge multiplies the time from small random weights."""
    times = mean_time(table, "small random")
    return times[1:] / times[:-1]


def exponent(depth: int = 6, start: float = 1e-3) -> float:
    """The exponent of 1/b₀ in the time that a balanced chain needs, from small b₀."""
    slow, fast = (nr.linear.chain_time(depth, s=1.0, start=b) for b in (start, 2 * start))
    return float(np.log2(slow / fast))


def pretrained_off(table: xarray.Dataset) -> float:
    """The times of pretrained-like networks against the closed form, worst depth."""
    from neuralrace.papers.talk.training_speed import pretrained_time

    s = settings_of(table)
    exact = np.array([d * pretrained_time(d, s["pretrained"]) for d in s["depths"]])
    return float(np.abs(mean_time(table, "pretrained-like") / exact - 1).max())


def rise_over_depth(table: xarray.Dataset) -> float:
    """Growth of the time from layers of fixed strength over that of D, shallowest to deepest."""
    times, depths = mean_time(table, "pretrained-like"), table["depth"].to_numpy()
    return float(times[-1] / times[0] * depths[0] / depths[-1])


def rise_of_fixed_product(table: xarray.Dataset, deepest: int = 100) -> float:
    """The same for chains of one product b₀^D, that of the shallowest network; most of all D."""
    from neuralrace.papers.talk.training_speed import pretrained_time

    s = settings_of(table)
    shallow = s["depths"][0]
    depths = np.arange(shallow, deepest + 1)
    product = s["pretrained"] ** shallow
    times = np.array([D * pretrained_time(int(D), product ** (1 / D)) for D in depths])
    return float((times[1:] / times[0] * shallow / depths[1:]).max())


def spread_of_orthogonal(table: xarray.Dataset) -> float:
    """The largest mean time over the smallest, from orthogonal weights."""
    times = mean_time(table, "orthogonal")
    return float(times.max() / times.min())


# ---- structure ----------------------------------------------------------------------------------


def model_covariances(flip: float, variance: float) -> dict[str, np.ndarray]:
    """Covariances of the sixteen items of each world from the graph itself, without its symmetry.

    Gaussian features have the precision L + I/variance, L the Laplacian of the graph (couplings 1);
    on the tree items agree as (1 − 2 flip)² for each level below their last common node.
    """
    place = np.arange(16)
    step = np.abs(place[:, None] - place)
    row, column = (np.abs(i[:, None] - i) for i in np.divmod(place, 4))
    below = np.array([[int(a ^ b).bit_length() for a in place] for b in place])
    cluster = np.repeat([16, 17, 18], (6, 5, 5))
    tied = np.zeros((19, 19))
    tied[place, cluster] = tied[cluster, place] = 1

    def field(near: np.ndarray) -> np.ndarray:
        near = near.astype(float)
        laplacian = np.diag(near.sum(axis=0)) - near
        return np.linalg.inv(laplacian + np.eye(len(near)) / variance)[:16, :16]

    return {
        "tree": (1 - 2 * flip) ** (2.0 * below),
        "partition": field(tied),
        "ring": field((step == 1) | (step == 15)),
        "chain": field(step == 1),
        "grid": field(row + column == 1),
    }


def symmetry_gap(table: xarray.Dataset) -> float:
    """Eigenvalues from symmetry against those of the graphs' covariances, worst, relative."""
    s = settings_of(table)
    graphs = model_covariances(s["flip"], s["variance"])
    found = [
        np.linalg.eigvalsh(graphs[str(name)])[::-1] / values - 1
        for name, values in zip(table["world"].to_numpy(), table["values"].to_numpy(), strict=True)
    ]
    return float(np.abs(found).max())


def sample_error(table: xarray.Dataset) -> np.ndarray:
    """(world, features): relative error of sampled eigenvalues, root mean square of the draws."""
    return np.sqrt((table["error"] ** 2).mean("seed").to_numpy())


def sample_rate(table: xarray.Dataset) -> float:
    """How far the exponent of the error against the number of features is from −½, worst world."""
    error, number = sample_error(table), table["features"].to_numpy()
    slope = np.log(error[:, -1] / error[:, 0]) / np.log(number[-1] / number[0])
    return float(np.abs(slope + 0.5).max())


def level_times(table: xarray.Dataset, name: str) -> np.ndarray:
    """(level,): when half of each level of the tree is learned."""
    return nr.linear.crossing_times(table["time"].to_numpy(), table[name].to_numpy().T)


def level_gap(name: str) -> Callable[[xarray.Dataset], float]:
    """Times of the levels, simulated over those predicted, worst distance from 1."""

    def measured(table: xarray.Dataset) -> float:
        return float(np.abs(level_times(table, "simulated") / level_times(table, name) - 1).max())

    return measured


def _sampled(table: xarray.Dataset) -> tuple[nr.tasks.World, np.ndarray, np.ndarray]:
    """The tree, and singular values and item vectors (as rows) of the features drawn from it."""
    s = settings_of(table)
    world = nr.tasks.tree_world(tuple(s["branching"]), flip=s["flip"])
    y = np.asarray(world.dataset(s["features"], seed=s["key"]).y["y"])
    return world, *np.linalg.svd(y.T, full_matrices=False)[1:]


def decay(table: xarray.Dataset) -> float:
    """The largest singular value of a level over the smallest of the level above, worst level."""
    world, values, _ = _sampled(table)
    levels = [values[world.levels == k] for k in range(world.levels.max() + 1)]
    return max(float(below.max() / above.min()) for above, below in pairwise(levels))


def mirror(table: xarray.Dataset) -> float:
    """The least part (squared) of any level's contrasts in the singular vectors of its rank."""
    world, _, vectors = _sampled(table)
    parts = []
    for level in range(world.levels.max() + 1):
        mine = world.levels == level
        overlap = vectors[mine] @ world.vectors[:, mine]
        parts.append(np.linalg.svd(overlap, compute_uv=False).min() ** 2)
    return float(min(parts))


# ---- saddles ------------------------------------------------------------------------------------


def share_at_saddles(table: xarray.Dataset) -> float:
    """The share of all plateaus that lie at a listed point with its loss within 1 %."""
    from neuralrace.papers.talk.saddles import matched

    hits = matched(table)
    return sum(hits) / len(hits) if hits else float("nan")


def sequences(table: xarray.Dataset) -> list[tuple[int, ...]]:
    """The listed points at which each run rests, in order."""
    from neuralrace.papers.talk.saddles import stays

    return [tuple(point for point, _, _ in run) for run in stays(table)]


def fewest_saddles(table: xarray.Dataset) -> float:
    """The least number of different saddles (points with a way out) at which a run rests."""
    index = table["index"].to_numpy()
    return float(min(sum(index[p] > 0 for p in set(run)) for run in sequences(table)))


def downward(table: xarray.Dataset) -> float:
    """The share of steps from saddle to saddle after which fewer ways out are left."""
    index = table["index"].to_numpy()
    steps = [index[b] < index[a] for run in sequences(table) for a, b in pairwise(run)]
    return float(np.mean(steps)) if steps else float("nan")


def ways(table: xarray.Dataset) -> float:
    """The most saddles with equally many learned modes at which runs rest: 1 if all go one way."""
    names = [str(name) for name in table["point"].to_numpy()]
    rested = {names[point] for run in sequences(table) for point in run}
    sizes = [sum(map(str.isalnum, name.strip("{}").split(", "))) for name in rested]
    return float(max(map(sizes.count, sizes)))


def between_runs(table: xarray.Dataset) -> float:
    """The largest difference of loss between two runs at one time, over the initial loss."""
    loss = table["loss"].to_numpy()
    return float((loss.max(axis=0) - loss.min(axis=0)).max() / loss[:, 0].max())


# ---- λ ------------------------------------------------------------------------------------------


def slide_loss(table: xarray.Dataset, *, mended: bool, until: float = 2.0) -> float:
    """Eqs 13–15 of the talk against flows, largest difference of loss over L(0), all λ.

    With F = [[−λ/2 I, Σᵀ], [Σ, λ/2 I]] they are QQᵀ = Z A⁻¹ Zᵀ, Z = e^{Ft}Q₀ and A = I + Q₀ᵀΦQ₀;
    in F's eigenbasis Φ is (e^{2ft} − 1)/2f, and as printed (e^{ft} − 1)/f for the directions that
    are in no mode, where f = ±λ/2. Times up to `until`: as written they lose digits later on.
    """
    from neuralrace.papers.talk.lambda_trajectories import task

    s = settings_of(table)
    net, data = task(s["sizes"], s["seed"])
    x, y = np.asarray(data.x["x"]), np.asarray(data.y["y"])
    sigma = y.T @ x / len(x)
    n = x.shape[1]
    worst = 0.0
    for lam, simulated in zip(s["lambdas"], table["simulated"].to_numpy(), strict=True):
        start = nr.linear.balanced_weights(net, lam, scale=s["scale"], seed=s["seed"])
        Q = np.concatenate([start["W1"].T, start["W2"]])
        half = np.full(len(Q), lam / 2)
        half[:n] *= -1
        F = np.diag(half)
        F[n:, :n], F[:n, n:] = sigma, sigma.T
        f, E = np.linalg.eigh(F)
        outside = np.abs(f) <= abs(lam) / 2 * (1 + 1e-9) + 1e-12
        for t, loss in zip(table["time"].to_numpy(), simulated, strict=True):
            if t > until:
                break
            rate = np.where(outside & (not mended), f, 2 * f)
            still = np.abs(rate) < 1e-9
            phi = np.where(still, t, np.expm1(rate * t) / np.where(still, 1.0, rate))
            Z = np.exp(f * t)[:, None] * (E.T @ Q)
            A = np.eye(Q.shape[1]) + (E.T @ Q).T @ (phi[:, None] * (E.T @ Q))
            whole = E @ Z @ np.linalg.solve(A, (E @ Z).T)
            error = ((x @ whole[:n, n:] - y) ** 2).sum(axis=1).mean() / 2
            worst = max(worst, float(abs(error - loss) / simulated[0]))
    return worst


def bend(which: Callable[[np.ndarray], Any]) -> Callable[[xarray.Dataset], float]:
    """First fall of the loss over its steepest, at the λ that `which` picks (by its place)."""

    def measured(table: xarray.Dataset) -> float:
        place = int(which(table["lam"].to_numpy()))
        return float(first_over_steepest(table["exact"].to_numpy())[place])

    return measured


def travel(table: xarray.Dataset, shape: str, lam: Callable[..., Any], scale: int = 0) -> float:
    """Mean kernel distance at the end, at a shape, the λ that `lam` picks and a scale."""
    mean = table["distance"].mean("seed").sel(shape=shape).isel(scale=scale)
    return float(mean.isel(lam=int(lam(table["lam"].to_numpy()))))


def most_balanced(lams: np.ndarray) -> Any:
    """The place of the λ nearest to zero."""
    return np.abs(lams).argmin()


def delay(table: xarray.Dataset) -> float:
    """Half of the kernel's way over half of the loss, in time, at the largest λ over that at 0."""
    from neuralrace.papers.talk.delayed_rich import half_times

    learned, turned = half_times(table)
    lams = table["lam"].to_numpy()
    ratio = turned / learned
    return float(ratio[lams.argmax()] / ratio[most_balanced(lams)])


def final_kernel(which: Callable[[np.ndarray], Any]) -> Callable[[xarray.Dataset], float]:
    """Kernel distance at the end of `delayed_rich`, at the λ that `which` picks."""
    return lambda table: float(table["kernel"].to_numpy()[int(which(table["lam"].to_numpy())), -1])


# ---- continual learning -------------------------------------------------------------------------


def _changes(table: xarray.Dataset) -> list[int]:
    """The places in time at which a task is the last: of each change, and the end."""
    time = table["time"].to_numpy()
    return [*np.searchsorted(time, table["changes"].to_numpy()), len(time) - 1]


def left_to_learn(table: xarray.Dataset) -> float:
    """The loss on a task when the next one comes, over that of a silent network, worst task."""
    from neuralrace.papers.talk.regimes import task

    s = settings_of(table)
    shares = []
    for k, at in enumerate(_changes(table)):
        y = np.asarray(task(s["sizes"], s["seed"] + k)[1].y["y"])
        silent = (y**2).sum(axis=1).mean() / 2
        shares.append(float(table["exact"].to_numpy()[k, at] / silent))
    return max(shares)


def forgetting_gap(table: xarray.Dataset) -> float:
    """The rise of the first task's loss from its change to the end, exact over simulated, − 1."""
    first = _changes(table)[0]
    rises = [
        float(table[name].to_numpy()[0, -1] - table[name].to_numpy()[0, first])
        for name in ("exact", "simulated")
    ]
    return abs(rises[0] / rises[1] - 1)

"""Claims of the talk on the time to learn, by depth and initial weights."""

from __future__ import annotations

import numpy as np

import neuralrace as nr
from evidence import Basis, Claim, Measure
from papers.figure import Table, settings_of
from papers.talk.claims.reads import read


def mean_time(table: Table, kind: str) -> np.ndarray:
    """(depth,): mean time in which the loss halves, in units of τ/D."""
    return table["time"].sel(kind=kind).mean("seed").to_numpy()


def growth(table: Table) -> np.ndarray:
    """The factor by which each further edge multiplies the time from small random weights."""
    times = mean_time(table, "small random")
    return times[1:] / times[:-1]


def exponent(depth: int = 6, start: float = 1e-3) -> float:
    """The exponent of 1/b₀ in the time that a balanced chain needs, from small b₀."""
    slow, fast = (nr.linear.chain_time(depth, s=1.0, start=b) for b in (start, 2 * start))
    return float(np.log2(slow / fast))


def pretrained_off(table: Table) -> float:
    """The times of pretrained-like networks against the closed form, worst depth."""
    from papers.talk.training_speed import pretrained_time

    s = settings_of(table)
    exact = np.array([d * pretrained_time(d, s["pretrained"]) for d in s["depths"]])
    return float(np.abs(mean_time(table, "pretrained-like") / exact - 1).max())


def rise_over_depth(table: Table) -> float:
    """Growth of the time from layers of fixed strength, relative to the growth of D."""
    times, depths = mean_time(table, "pretrained-like"), table["depth"].to_numpy()
    return float(times[-1] / times[0] * depths[0] / depths[-1])


def rise_of_fixed_product(table: Table, deepest: int = 100) -> float:
    """The same for chains with the product b₀^D of the shallowest network; largest over D."""
    from papers.talk.training_speed import pretrained_time

    s = settings_of(table)
    shallow = s["depths"][0]
    depths = np.arange(shallow, deepest + 1)
    product = s["pretrained"] ** shallow
    times = np.array([D * pretrained_time(int(D), product ** (1 / D)) for D in depths])
    return float((times[1:] / times[0] * shallow / depths[1:]).max())


def spread_of_orthogonal(table: Table) -> float:
    """The largest mean time over the smallest, from orthogonal weights."""
    times = mean_time(table, "orthogonal")
    return float(times.max() / times.min())


CLAIMS = (
    Claim(
        "talk/speed-small-random",
        "“Training speed”, “Effect of initialization”",
        "From small random weights the time to learn grows exponentially with depth, as 1/b₀^D.",
        "Time in which the loss halves (units of τ/D) for networks with 8 neurons per layer, D = "
        "2 … 6, b₀ = 0.5, mean over seeds; and for chains of 6 edges by their closed form.",
        (
            Measure(
                "factor-least",
                "smallest factor from one depth to the next",
                read("training_speed", lambda t: growth(t).min()),
                least=1.3,
                origin=1.0,
            ),
            Measure(
                "factor-mean",
                "mean factor from one depth to the next, relative to 1/b₀",
                read(
                    "training_speed",
                    lambda t: np.exp(np.log(growth(t)).mean()) * settings_of(t)["random"],
                ),
                least=0.8,
                origin=1.0,
                most=1.25,
                otherwise="Each edge costs {:.2f} times the factor 1/b₀: b₀^D is only the scale "
                "of a random product, whose directions differ in strength.",
            ),
            Measure(
                "exponent",
                "exponent of 1/b₀ in the time of a chain of 6 edges",
                lambda tables: exponent(),
                least=5.5,
                most=6.5,
                otherwise="From small aligned starts 1/b₀^D is a bound: the exponent is D − 2, "
                "measured {:.2f} at D = 6, with t = τ b₀^(2−D)/((D−2)s).",
            ),
        ),
        inferred=True,
    ),
    Claim(
        "talk/speed-pretrained",
        "“Effect of initialization”",
        "From pretrained weights the time to learn grows at most linearly with depth, as D/b₀².",
        "Networks from balanced aligned weights against their closed form, and its growth with "
        "depth relative to the growth of D: with a fixed product b₀^D (up to D = 100), and with "
        "layers of fixed b₀ = 0.8 (D = 2 … 6).",
        (
            Measure(
                "closed-form",
                "networks against the closed form of a chain, worst depth",
                read("training_speed", pretrained_off),
                most=1e-3,
            ),
            Measure(
                "fixed-product",
                "growth relative to D, fixed product",
                read("training_speed", rise_of_fixed_product),
                most=1.0,
                rests=Basis.THEOREM,
            ),
            Measure(
                "fixed-layer",
                "growth relative to D, fixed strength of a layer",
                read("training_speed", rise_over_depth),
                most=1.0,
                otherwise="This holds if the product of pretrained weights does not fall with "
                "depth. From layers with a fixed b₀ < 1, the time grows faster than D, here "
                "{:.2f} times as much, and eventually as b₀^(2−D), so D/b₀² is not a bound.",
            ),
        ),
        inferred=True,
    ),
    Claim(
        "talk/speed-orthogonal",
        "“Effect of initialization”",
        "From orthogonal weights the time to learn does not depend on depth.",
        "Networks with 8 neurons per layer, D = 2 … 6, mean over seeds, units of τ/D.",
        (
            Measure(
                "spread",
                "largest time over smallest",
                read("training_speed", spread_of_orthogonal),
                most=1.5,
                origin=1.0,
            ),
            Measure(
                "deepest",
                "deepest over shallowest",
                read(
                    "training_speed",
                    lambda t: mean_time(t, "orthogonal")[-1] / mean_time(t, "orthogonal")[0],
                ),
                least=0.9,
                origin=1.0,
                most=1.1,
                otherwise="There is a weak dependence: the deepest network takes {:.2f} times as "
                "long as the shallowest.",
            ),
        ),
        inferred=True,
    ),
)

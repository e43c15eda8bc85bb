"""The claims of Saxe, Sodhani and Lewallen, *The Neural Race Reduction* (ICML 2022)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import neuralrace as nr
from neuralrace.papers.claims.claim import Claim, Measure, Tables
from neuralrace.papers.figure import settings_of

if TYPE_CHECKING:
    import xarray

Read = Callable[[Tables], float]


# ---- XoR ----------------------------------------------------------------------------------------


def _relu_gap(shifted: bool) -> Read:
    """Mean |ΔL| / L(0) of ReLU networks against the mean predicted GDLN, mean of the seeds."""

    def read(tables: Tables) -> float:
        table = tables("nrr/fig3")
        time = table["time"].to_numpy()
        theory = nr.Trajectory(time, table["predicted"].to_numpy().mean(axis=0))
        found = [nr.compare(theory, nr.Trajectory(time, run)) for run in table["relu"].to_numpy()]
        return float(np.mean([c.mean_after_shift if shifted else c.mean for c in found]))

    return read


def activity_types(table: xarray.Dataset, margin: float = 1e-3) -> dict[tuple[bool, ...], float]:
    """The share of the ReLU networks' strength ‖w_in‖‖w_out‖ in each pattern of activity.

    A neuron is on for a sample where `z > margin ‖w‖‖x‖`: at the corners of XoR a neuron that
    points to one sample is exactly at its threshold for two others.
    """
    reads, x = table["reads"].to_numpy(), table["x"].to_numpy()
    size = np.linalg.norm(reads, axis=-1)
    strength = size * np.abs(table["writes"].to_numpy())
    bar = margin * size[..., None] * np.linalg.norm(x, axis=-1)
    on = (reads @ x.T > bar).reshape(-1, len(x))
    share: dict[tuple[bool, ...], float] = {}
    for pattern, weight in zip(map(tuple, on.tolist()), strength.ravel(), strict=True):
        share[pattern] = share.get(pattern, 0.0) + float(weight / strength.sum())
    return share


def _by_direction(read: Callable[[np.ndarray], float]) -> Read:
    def measured(tables: Tables) -> float:
        from neuralrace.papers.nrr.fig3 import cell_types

        table = tables("nrr/fig3")
        return float(read(cell_types(table, settings_of(table)["within"])))

    return measured


def _on_for_one(tables: Tables) -> float:
    types = activity_types(tables("nrr/fig3"))
    return sum(share for pattern, share in types.items() if sum(pattern) == 1)


# ---- routing ------------------------------------------------------------------------------------


def _theory_gap(init: str | None = None) -> Read:
    """Mean |ΔL| / L(0), worst seed, of the race from the actual weights against their descent."""

    def read(tables: Tables) -> float:
        table = tables("nrr/fig4") if init is None else tables("nrr/fig4", init=init)
        time = table["time"].to_numpy()
        pairs = zip(table["loss"].to_numpy(), table["loss_predicted"].to_numpy(), strict=True)
        return max(
            nr.compare(nr.Trajectory(time, run), nr.Trajectory(time, theory)).mean
            for run, theory in pairs
        )

    return read


def _decoupled_gap(tables: Tables) -> float:
    table = tables("nrr/fig4")
    decoupled = table["decoupled"].to_numpy()
    return float(np.abs(decoupled - table["by_hand"].to_numpy()).max() / decoupled[0])


def _decoupled_strengths(tables: Tables) -> float:
    table = tables("nrr/fig5")
    return float(np.abs(table["theory"].to_numpy() - table["decoupled"].to_numpy()).max())


def _root_M(of_seeds: Callable[..., Any], init: str | None = None) -> Read:
    """The relative distance of hidden / √(in · out) from √M, of the worst mode."""

    def read(tables: Tables) -> float:
        table = tables("nrr/fig4") if init is None else tables("nrr/fig4", init=init)
        ratio = table["hidden_end"].to_numpy() / table["ends_end"].to_numpy()
        off = np.abs(ratio / np.sqrt(settings_of(table)["M"]) - 1)
        return float(of_seeds(off, axis=0).max())

    return read


def _never_met(tables: Tables) -> float:
    """How many pairs of input domains of Fig. 4 are never trained with a common output."""
    met = tables("nrr/fig4")["met"].to_numpy().astype(bool)
    return float((~met).sum() // 2)


def _apart(tables: Tables) -> float:
    """Sharing between domains that never met, at the largest K that has such, median seed."""
    apart = tables("nrr/fig5")["apart"].to_numpy()
    there = np.flatnonzero(np.isfinite(apart).all(axis=1))
    return float(np.median(apart[there[-1]])) if len(there) else float("nan")


# ---- the race -----------------------------------------------------------------------------------


def _half_time_ratio(name: str) -> Read:
    """The largest ratio of half-times from one P to the next: below 1 if each is faster."""

    def read(tables: Tables) -> float:
        from neuralrace.papers.nrr.fig5 import half_times

        times = half_times(tables("nrr/fig5"), name)
        return float((times[1:] / times[:-1]).max())

    return read


def shared_against_dedicated(M: int, start: float) -> float:
    """The share of the final strength in the shared pathway when it races dedicated ones.

    One network with both: a pathway shared by all M² routes and one for each route alone, all from
    equal decoupled starts, every route trained. By the race; the least share over the modes.
    """
    trained, _ = nr.tasks.routing(M, M)
    shared, data = nr.tasks.routing_pathways(trained)
    dedicated, _ = nr.tasks.routing_pathways(trained, P=1)
    arch = nr.Architecture({**shared.sizes, **dedicated.sizes}, {**shared.edges, **dedicated.edges})
    race = nr.reduce(arch, data)
    end = race.solve(times=[0.0, 100.0], start=start).values["variables"]
    shares = []
    for mode in end.values():
        products = [
            abs(float(np.prod([mode[e][-1, 0, 0] for e in edges])))
            for edges in (("in1", "hidden", "out1"), ("in1_1_1", "hidden1_1", "out1_1_1"))
        ]
        shares.append(products[0] / sum(products))
    return min(shares)


def _shared_wins(tables: Tables) -> float:
    s = settings_of(tables("nrr/fig5"))
    return shared_against_dedicated(s["M"], s["scale"])


# ---- generalisation -----------------------------------------------------------------------------


def _generalising(of: Callable[[np.ndarray, np.ndarray], Any], **changes: Any) -> Read:
    """A number made of the shares of seeds that generalise and of K/M."""

    def read(tables: Tables) -> float:
        from neuralrace.papers.nrr.fig5 import generalising

        table = tables("nrr/fig5", **changes)
        fraction = table["K"].to_numpy() / settings_of(table)["M"]
        return float(of(generalising(table), fraction))

    return read


def _converged(tables: Tables) -> float:
    from neuralrace.papers.nrr.fig5 import converged

    return float(converged(tables("nrr/fig5")).mean())


def _scales(of: Callable[[xarray.Dataset], Any]) -> Read:
    return lambda tables: float(of(tables("nrr/fig6")))


def _untrained(which: int) -> Read:
    return _scales(lambda t: np.median(t["untrained"].to_numpy()[which]))


def _rest(which: int) -> Read:
    def median(table: xarray.Dataset) -> float:
        from neuralrace.papers.nrr.fig6 import resting

        return float(np.median([resting(run) for run in table["loss"].to_numpy()[which]]))

    return _scales(median)


def _width_of_change(tables: Tables) -> float:
    from neuralrace.papers.nrr.fig6 import crossing

    table = tables("nrr/fig6")
    return crossing(table, 0.5) / crossing(table, 0.01)


def _change_at(level: float) -> Read:
    def at(table: xarray.Dataset) -> float:
        from neuralrace.papers.nrr.fig6 import crossing

        return crossing(table, level)

    return _scales(at)


# ---- App. A.2 -----------------------------------------------------------------------------------


def _end(name: str, wanted: list[list[float]]) -> Read:
    """The largest distance of any entry of the total weights from where they should end."""

    def read(tables: Tables) -> float:
        totals = tables("nrr/appendix_a2")[f"{name}_total"].to_numpy()[:, :, -1]
        return float(np.abs(totals - np.array(wanted)).max())

    return read


CLAIMS = (
    Claim(
        "nrr/xor-dynamics",
        "§3, Fig. 3c, App. A.1",
        "From small weights, ReLU networks on XoR follow the loss of a GDLN with a pathway for "
        "each sample.",
        "ReLU networks of 128 neurons against the race from the GDLN's own small weights; mean "
        "|ΔL| / L(0) over the run, mean of the seeds.",
        (
            Measure("mean |ΔL| / L(0)", _relu_gap(False), most=0.05),
            Measure("mean |ΔL| / L(0) after a shift in time", _relu_gap(True), most=0.01),
            Measure(
                "mean |ΔL| / L(0), without a shift, as close as the shape",
                _relu_gap(False),
                most=0.01,
                otherwise="The shape is that of the GDLN, but the moment of the fall depends on "
                "the draw of the initial weights: without a shift in time the mean difference is "
                "{:.2%} of the initial loss.",
            ),
        ),
    ),
    Claim(
        "nrr/xor-cell-types",
        "Fig. 3a",
        "The neurons of a ReLU network trained on XoR fall into four functional types, one for "
        "each sample.",
        "Shares of the strength ‖w_in‖‖w_out‖ in neurons that point to within 20° of a sample, "
        "and in neurons that are on for exactly one sample (z > 1e-3 ‖w‖‖x‖), all seeds together.",
        (
            Measure("strength within 20° of a sample", _by_direction(np.sum), least=0.95),
            Measure("strength of the least of the four types", _by_direction(np.min), least=0.05),
            Measure(
                "strength in neurons that are on for one sample alone",
                _on_for_one,
                least=0.95,
                otherwise="By the pattern of activity only {:.0%} of the strength is in neurons "
                "on for one sample alone: a neuron that points nearly, but not exactly, to a "
                "corner also answers, weakly, to a neighbouring one. The four types are types of "
                "direction.",
            ),
        ),
    ),
    Claim(
        "nrr/theory-exact",
        "Fig. 4e, Fig. 5b, Eqs. 10, 15–17",
        "From decoupled initial weights the race equals the simulated network.",
        "Descent of the full network from decoupled weights against the race with the same step: "
        "loss of Fig. 4, and strengths for every P of Fig. 5.",
        (
            Measure("largest |ΔL| / L(0), Fig. 4", _decoupled_gap, most=1e-6),
            Measure("largest difference of a strength, Fig. 5", _decoupled_strengths, most=1e-6),
        ),
    ),
    Claim(
        "nrr/theory-random",
        "§4, Fig. 4e",
        "From small random weights the reduction is a good approximation.",
        "The race from the actual initial weights, nothing fitted, against their descent; mean "
        "|ΔL| / L(0), worst seed, for orthogonal starts (the authors' scripts) and Xavier's "
        "(the text).",
        (
            Measure("orthogonal start × 0.2", _theory_gap(), most=0.02),
            Measure(
                "Xavier start × 0.2",
                _theory_gap("xavier"),
                most=0.02,
                otherwise="From the Xavier start of the paper's text the worst seed is {:.1%} of "
                "the initial loss away on average.",
            ),
        ),
    ),
    Claim(
        "nrr/root-M",
        "Fig. 4f, Eq. 51",
        "The singular values of the shared layer end √M larger than those of the others.",
        "Hidden singular values over √(in · out), over √M, at the end: the relative distance "
        "from 1 of the worst mode.",
        (
            Measure("orthogonal start × 0.2, median seed", _root_M(np.median), most=0.04),
            Measure(
                "orthogonal start × 0.2, worst seed",
                _root_M(np.max),
                most=0.04,
                otherwise="In the worst seed the worst mode is {:.1%} away: √M is the limit of "
                "vanishing initial weights, and weak modes are furthest from it.",
            ),
            Measure(
                "Xavier start × 0.2, worst seed",
                _root_M(np.max, "xavier"),
                most=0.04,
                otherwise="From Xavier starts the worst mode of the worst seed is {:.1%} away.",
            ),
        ),
    ),
    Claim(
        "nrr/shared-representation",
        "§4.1, Fig. 4g",
        "All input domains come to share one representation, even those never trained with a "
        "common output.",
        "Σ h_a·h_b over Σ ½(‖h_a‖² + ‖h_b‖²) of the first hidden layer over items and pairs of "
        "domains: 1 if the same. All pairs in Fig. 4 (worst seed); pairs that never met in "
        "Fig. 5c, at the largest K where there are any (median seed).",
        (
            Measure(
                "all pairs, M = 7, K = 4",
                lambda tables: float(tables("nrr/fig4")["shared"].min()),
                least=0.95,
            ),
            Measure("pairs that never met, Fig. 5c", _apart, least=0.9),
            Measure(
                "all pairs, M = 7, K = 4, Xavier start",
                lambda tables: float(tables("nrr/fig4", init="xavier")["shared"].min()),
                least=0.95,
                otherwise="From Xavier starts the worst seed shares {:.2f} of 1: a trace of the "
                "domain remains in the activity.",
            ),
            Measure(
                "pairs that never met in Fig. 4",
                _never_met,
                least=1,
                otherwise="In the setting of Fig. 4 itself there are {:.0f} such pairs: with "
                "circulant routes any two inputs have a common output if 2K > M. It is true where "
                "such pairs exist, as the measure on Fig. 5c shows.",
            ),
        ),
    ),
    Claim(
        "nrr/zero-shot",
        "§4.1, Fig. 4h",
        "The network generalises perfectly to routes that were never trained.",
        "Error on untrained routes over that of a silent network, M = 7, K = 4, worst seed.",
        (
            Measure(
                "orthogonal start × 0.2",
                lambda tables: float(tables("nrr/fig4")["untrained_share"].max()),
                most=1e-3,
            ),
            Measure(
                "Xavier start × 0.2",
                lambda tables: float(tables("nrr/fig4", init="xavier")["untrained_share"].max()),
                most=1e-3,
                otherwise="After the same number of steps from Xavier starts, the worst seed has "
                "{:.2%} of a silent network's error left.",
            ),
        ),
    ),
    Claim(
        "nrr/shared-wins",
        "§4.2, Fig. 5b, Eqs. 16–17",
        "Pathways learn faster the more routes they carry, so that in one network the most shared "
        "ones dominate.",
        "Ratio of the times to half the final strength from each P of 1, 4, 25, 100 to the next; "
        "then a network with a shared and with dedicated pathways, from equal decoupled starts.",
        (
            Measure("largest ratio of half-times, race", _half_time_ratio("theory"), most=0.9),
            Measure(
                "largest ratio of half-times, random weights", _half_time_ratio("random"), most=0.9
            ),
            Measure("final strength in the shared pathway, least mode", _shared_wins, least=0.95),
        ),
    ),
    Claim(
        "nrr/forty-percent",
        "§4.2, Fig. 5c",
        "Untrained routes work reliably once each input is trained with about 40 % of the outputs.",
        "Networks with M = 10 trained to convergence; the share of seeds whose error on untrained "
        "routes is below 1 % of a silent network's, for every K.",
        (
            Measure("runs that converged", _converged, least=1.0),
            Measure(
                "least share of seeds that generalise, K/M ≥ 0.4",
                _generalising(lambda good, share: good[share >= 0.4].min()),
                least=0.9,
            ),
            Measure(
                "largest share of seeds that generalise, K/M ≤ 0.2",
                _generalising(lambda good, share: good[share <= 0.2].max()),
                most=0.1,
            ),
            Measure(
                "M = 5, K = 2, which is 40 %: share of seeds that generalise",
                _generalising(lambda good, share: good[0], M=5, K=(2,), P=(1,)),
                least=0.9,
                otherwise="It is no constant fraction: with M = 5 domains, 40 % are K = 2 outputs "
                "an input, and {:.0%} of the seeds generalise.",
            ),
            Measure(
                "M = 16, K = 4, which is 25 %: share of seeds that generalise",
                _generalising(lambda good, share: good[0], M=16, K=(4,), P=(1,)),
                most=0.5,
                otherwise="With M = 16 domains 25 % are enough: K = 4 outputs an input, and {:.0%} "
                "of the seeds generalise. The number of outputs counts more than their fraction.",
            ),
        ),
    ),
    Claim(
        "nrr/small-starts",
        "§4.3, Fig. 6b",
        "Trained routes are learned from any initial scale; untrained ones work from small scales "
        "only.",
        "Errors over a silent network's after 700 steps, σ₀ = 0.2 … 2.5; and where the median "
        "error on untrained routes passes 1 % and 50 %.",
        (
            Measure(
                "trained routes, worst seed of any scale",
                _scales(lambda t: t["trained"].max()),
                most=1e-3,
            ),
            Measure("untrained routes, smallest scale, median", _untrained(0), most=0.01),
            Measure("untrained routes, largest scale, median", _untrained(-1), least=0.5),
            Measure(
                "scale of 50 % error over scale of 1 %",
                _width_of_change,
                most=1.5,
                otherwise="The change is gradual: between 1 % and 50 % of a silent network's error "
                "lies a factor of {:.1f} in scale.",
            ),
            Measure("scale at which it passes 1 %", _change_at(0.01), least=0.2, most=2.5),
            Measure("scale at which it passes 50 %", _change_at(0.5), least=0.2, most=2.5),
        ),
    ),
    Claim(
        "nrr/two-regimes",
        "§4.3, Fig. 6a, c",
        "Small scales learn in stages and share a representation; large ones decay exponentially "
        "and keep a random one for each domain.",
        "Share of the time in which the loss rests on a plateau (falls by less than 5 % of itself "
        "over 5 % of the time, with more than 1 % of its start left), and how far domains share a "
        "representation; medians of the seeds.",
        (
            Measure("rest, smallest scale", _rest(0), least=0.2),
            Measure("rest, largest scale", _rest(-1), most=0.02),
            Measure(
                "sharing, smallest scale",
                _scales(lambda t: np.median(t["shared"].to_numpy()[0])),
                least=0.95,
            ),
            Measure(
                "sharing, largest scale",
                _scales(lambda t: np.median(t["shared"].to_numpy()[-1])),
                most=0.2,
            ),
        ),
    ),
    Claim(
        "nrr/contexts",
        "App. A.2, Eqs. 24–29",
        "One pathway converges to [½ ½], two pathways, one for each context, to [1 0] and [0 1].",
        "Total weights of every pathway at the end: the largest distance of any entry, worst seed.",
        (
            Measure("one pathway", _end("single", [[0.5, 0.5]]), most=0.005),
            Measure("two pathways", _end("two", [[1.0, 0.0], [0.0, 1.0]]), most=0.005),
        ),
    ),
)

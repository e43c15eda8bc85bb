"""Claims of NRR §4.2 and §4.3: which pathways win, and when untrained routes work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Basis, Claim, Measure, Read, Tables
from papers.figure import Table, settings_of
from papers.nrr import fig6


def _half_time_ratio(name: str) -> Read:
    """The largest ratio of half-times from one P to the next: below 1 if each is faster."""

    def read(tables: Tables) -> float:
        from papers.nrr.fig5 import half_times

        times = half_times(tables("nrr/fig5"), name)
        return float((times[1:] / times[:-1]).max())

    return read


def shared_against_dedicated(M: int, start: float) -> float:
    """The share of the final strength in the shared pathway when it races dedicated ones.

    One network has both: a pathway shared by all M² routes and a dedicated one for each route, all
    from equal decoupled starts, with every route trained. The race is solved, and the smallest
    share over the modes is returned.
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


def _generalising(of: Callable[[np.ndarray, np.ndarray], Any], **changes: Any) -> Read:
    """Read a number from K/M and the shares of seeds that generalise."""

    def read(tables: Tables) -> float:
        from papers.nrr.fig5 import generalising

        table = tables("nrr/fig5", **changes)
        fraction = table["K"].to_numpy() / settings_of(table)["M"]
        return float(of(generalising(table), fraction))

    return read


def _converged(tables: Tables) -> float:
    from papers.nrr.fig5 import converged

    return float(converged(tables("nrr/fig5")).mean())


def _scales(of: Callable[[Table], Any]) -> Read:
    return lambda tables: float(of(tables("nrr/fig6")))


def _width_of_change(tables: Tables) -> float:
    from papers.nrr.fig6 import crossing

    table = tables("nrr/fig6")
    return crossing(table, 0.5) / crossing(table, 0.01)


def _change_at(level: float) -> Read:
    def at(table: Table) -> float:
        from papers.nrr.fig6 import crossing

        return crossing(table, level)

    return _scales(at)


CLAIMS = (
    Claim(
        "nrr/shared-wins",
        "§4.2, Fig. 5b, Eqs. 16–17",
        "Pathways learn faster the more routes they carry, so in one network the most shared ones "
        "dominate.",
        "Ratio of the times to half the final strength between successive P = 1, 4, 25, 100, below "
        "1 if more sharing is faster; then "
        "a network with a shared and dedicated pathways, from equal decoupled starts.",
        (
            Measure(
                "half-times-race",
                "largest ratio of half-times, race",
                _half_time_ratio("theory"),
                most=1.0,
                rests=Basis.THEOREM,
            ),
            Measure(
                "half-times-random",
                "largest ratio of half-times, random weights",
                _half_time_ratio("random"),
                most=1.0,
                rests=Basis.PAPER,
            ),
            Measure(
                "shared-strength",
                "share of the final strength in the shared pathway, smallest over modes",
                _shared_wins,
                least=0.95,
                origin=1.0,
            ),
        ),
        quote="Networks that share more structure learn faster. Consequently, in a single network "
        "where subparts share structure to different degrees, the maximally shared dynamics "
        "dominate the race between pathways.",
    ),
    Claim(
        "nrr/forty-percent",
        "§4.2, Fig. 5c",
        "Untrained routes work reliably once each input is trained with about 40 % of the outputs.",
        "Networks with M = 10 trained to convergence; for every K, the share of seeds whose error "
        "on untrained routes is below 1 % of the error of zero output.",
        (
            Measure("converged", "runs that converged", _converged, least=1.0, rests=Basis.PAPER),
            Measure(
                "enough",
                "smallest share of seeds that generalise, K/M ≥ 0.4",
                _generalising(lambda good, share: good[share >= 0.4].min()),
                least=0.9,
                origin=1.0,
            ),
            Measure(
                "few",
                "largest share of seeds that generalise, K/M ≤ 0.2",
                _generalising(lambda good, share: good[share <= 0.2].max()),
                most=0.1,
            ),
            Measure(
                "m5-k2",
                "M = 5, K = 2, which is 40 %: share of seeds that generalise",
                _generalising(lambda good, share: good[0], M=5, K=(2,), P=(1,)),
                least=0.9,
                otherwise="This holds for M = 10. With M = 5 domains, 40 % means K = 2 outputs "
                "per input, and {:.0%} of the seeds generalise.",
            ),
        ),
        quote="When ∼ 40% of output domains are trained with each input, the shared structure "
        "solutions are sufficiently faster to reliably dominate the race and yield generalization "
        "to untrained domains.",
    ),
    Claim(
        "nrr/small-starts",
        "§4.3, Fig. 6b",
        "Trained routes are learned from any initial scale; untrained ones work from small scales "
        "only.",
        "Errors relative to zero output after 700 steps, σ₀ = 0.2 … 2.5; and the scales at which "
        "the median error on untrained routes passes 1 % and 50 %.",
        (
            fig6.MEASURES["trained"].on("nrr/fig6"),
            fig6.MEASURES["untrained, smallest"].on("nrr/fig6"),
            fig6.MEASURES["untrained, largest"].on("nrr/fig6"),
            Measure(
                "width-of-change",
                "scale of 50 % error over scale of 1 %",
                _width_of_change,
                most=1.5,
                otherwise="The change is gradual: from 1 % to 50 % of the error of zero output, "
                "the scale grows by a factor of {:.1f}.",
            ),
            Measure(
                "passes-1", "scale at which it passes 1 %", _change_at(0.01), least=0.2, most=2.5
            ),
            Measure(
                "passes-50", "scale at which it passes 50 %", _change_at(0.5), least=0.2, most=2.5
            ),
        ),
        quote="While performance on trained domains is excellent for all scales, zero-shot "
        "generalization only emerges in the neural race regime.",
    ),
    Claim(
        "nrr/two-regimes",
        "§4.3, Fig. 6a, c",
        "From small scales, networks learn in stages and share a representation; from large ones, "
        "the loss decays exponentially and each domain keeps its own random representation.",
        "Share of the time that the loss spends on a plateau (it falls by less than 5 % of itself "
        "over 5 % of the time, and is above 1 % of its initial value), and how far domains share "
        "a representation.",
        (
            fig6.MEASURES["rest, smallest"].on("nrr/fig6"),
            fig6.MEASURES["rest, largest"].on("nrr/fig6"),
            fig6.MEASURES["shared, smallest"].on("nrr/fig6"),
            fig6.MEASURES["shared, largest"].on("nrr/fig6"),
        ),
        quote="Small σ_0 yields pathway race dynamics with stage-like drops through training. "
        "Large σ_0 yields NTK-like dynamics with rapid, exponential learning curves.",
    ),
)

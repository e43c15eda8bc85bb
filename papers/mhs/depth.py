"""The numbers of MHS Fig. 6 with their bounds, and its ReLN whose pathways open in stages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

import neuralrace as nr
from evidence import FLOOR, Basis, Measure
from papers.figure import Table
from papers.mhs.contextual import apart

if TYPE_CHECKING:
    from neuralrace.types import Key

RELNS = {"staged": "pathways opened in stages, as in the paper", "gated": "all open from the start"}
"""The two ReLNs of Fig. 6."""


def stereotype(loss: np.ndarray) -> int:
    """The index of the run `(runs, T)` nearest to the mean over runs, by squared distance."""
    return int(((loss - loss.mean(axis=0)) ** 2).sum(axis=1).argmin())


def stereotypes(table: Table, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The losses of the stereotypical ReLU network and of a stereotypical ReLN."""
    ours, theirs = table["relu"].to_numpy(), table[name].to_numpy()
    return ours[stereotype(ours)], theirs[stereotype(theirs)]


def typical_apart(name: str) -> Callable[[Table], float]:
    """Mean |ΔL|/L(0) between the stereotypical ReLU network and a stereotypical ReLN."""

    def of(table: Table) -> float:
        return float(apart(table["time"].to_numpy(), *stereotypes(table, name)))

    return of


def runs_apart(table: Table) -> float:
    """Mean |ΔL|/L(0) between the stereotypical ReLU network and the other runs.

    A run that was drawn twice is not another run.
    """
    loss = table["relu"].to_numpy()
    found = apart(table["time"].to_numpy(), loss[stereotype(loss)], loss)
    return float(found[found > 0].mean())


def spread(table: Table, name: str) -> float:
    """Standard deviation of the loss over runs relative to L(0), mean over time."""
    loss = table[name].to_numpy()
    return float(loss.std(axis=0).mean() / loss[:, 0].mean())


def profiles(table: Table, name: str) -> float:
    """The correlation over time of the spread of a ReLN and of the ReLU network."""
    a, b = (table[n].std("seed").to_numpy() for n in ("relu", name))
    return float(np.corrcoef(a, b)[0, 1])


SLOPE = 1e-5
"""On a plateau the loss falls by less than this share of L(0) per epoch."""

LEAST = 500
"""The fewest epochs that count as a plateau."""

SAME = 0.01
"""Plateaus are shared if their losses differ by less than this share of L(0)."""


def plateaus(table: Table, loss: np.ndarray, slope: float = SLOPE) -> list[nr.linear.Plateau]:
    """The plateaus of a run after its first drop and above 1 % of the initial loss, in epochs.

    Before the first drop nothing is learned, and below 1 % everything is.
    """
    run = nr.Trajectory(table["step"].to_numpy().astype(float), loss)
    found = nr.linear.plateaus(run, least=LEAST, slope=slope)
    return [p for p in found if 0.01 < p.loss / loss[0] < 0.99]


def shared_plateaus(
    table: Table, name: str, slope: float = SLOPE
) -> list[tuple[nr.linear.Plateau, nr.linear.Plateau]]:
    """The plateaus of the stereotypical ReLU network, each with that of a stereotypical ReLN.

    A pair has the same loss; plateaus without a partner are left out.
    """
    losses = stereotypes(table, name)
    ours, theirs = (plateaus(table, loss, slope) for loss in losses)
    near = lambda p: min(theirs, key=lambda q: abs(p.loss - q.loss), default=p)
    pairs = [(p, near(p)) for p in ours] if theirs else []
    return [(p, q) for p, q in pairs if abs(p.loss - q.loss) < SAME * losses[0][0]]


def plateaus_shared(table: Table, name: str) -> float:
    """The share of the stereotypical ReLU network's plateaus that a stereotypical ReLN has too."""
    ours = plateaus(table, stereotypes(table, name)[0])
    return len(shared_plateaus(table, name)) / len(ours) if ours else np.nan


def plateau_outputs(table: Table, name: str, slope: float = SLOPE) -> float:
    """Distance of the stereotypes' outputs at shared plateaus, relative to ‖Y‖; the worst one.

    Outputs are taken where each loss falls least. NaN if no plateau is shared.
    """
    step = table["step"].to_numpy()
    at = [
        [int(np.searchsorted(step, each.at)) for each in pair]
        for pair in shared_plateaus(table, name, slope)
    ]
    return max((_outputs_apart(table, name, *each) for each in at), default=np.nan)


def half_outputs(table: Table, name: str) -> float:
    """Distance of the stereotypes' outputs at half the initial loss of each, relative to ‖Y‖."""
    losses = stereotypes(table, name)
    return _outputs_apart(table, name, *(int((run <= 0.5 * run[0]).argmax()) for run in losses))


def _outputs_apart(table: Table, name: str, ours: int, theirs: int) -> float:
    outputs = table["outputs"].to_numpy()
    other = table["staged_outputs"].to_numpy() if name == "staged" else outputs[1]
    size = np.sqrt(2 * stereotypes(table, name)[0][0] * outputs.shape[2])  # L = ‖Y − O‖² / 2N
    return float(np.linalg.norm(outputs[0, ours] - other[theirs]) / size)


def share(layer: int, number: int) -> Callable[[Table], np.ndarray]:
    """The share of a layer's final weight nearest to patterns on in that many contexts, by run."""
    return lambda table: table["share"][:, layer, number - 1].to_numpy()


def _everywhere(table: Table) -> np.ndarray:
    """The share of the first layer's weight nearest to all contexts, by run."""
    return table["share"][:, 0, -1].to_numpy()


def _common(table: Table) -> np.ndarray:
    """The share of the second layer's weight nearest to all contexts, by run."""
    return table["share"][:, 1, -1].to_numpy()


def _two_of_one_or_two(table: Table) -> np.ndarray:
    """The share of two contexts in the second layer's weight nearest to one or two, by run."""
    one, two = (share(1, n)(table) for n in (1, 2))
    return two / (one + two)


def half_epochs(table: Table, name: str) -> np.ndarray:
    """The epoch at which each run falls to half of its initial loss."""
    loss = table[name].to_numpy()
    return nr.trajectory.crossing_time(table["step"].to_numpy(), loss / loss[:, :1], 0.5)


MEASURES = {  # outputs were kept for the stereotypes alone: their seeds cannot be drawn again
    "always": Measure(
        "always",
        "first layer: final weight in neurons that are on for every sample",
        lambda t: t["always"][:, 0].to_numpy(),
        least=0.95,
        origin=1.0,
        words="all neurons are active for all datapoints",
    ),
    "everywhere": Measure(
        "everywhere",
        "first layer: final weight nearest to all contexts",
        _everywhere,
        least=0.9,
        origin=1.0,
    ),
    "two": Measure(
        "two",
        "second layer: two contexts, as a share of one or two",
        _two_of_one_or_two,
        least=0.5,
        seen=True,
        words="active in two out of the three contexts",
    ),
    "common": Measure(
        "common",
        "second layer: all contexts, a common pathway",
        _common,
        least=1 / 7,
        seen=True,
        words="the common pathway remains",
    ),
    "one": Measure("one", "second layer: one context", share(1, 1), most=0.1),
    **{
        f"loss, {name}": Measure(
            f"loss-{name}",
            f"stereotypical ReLN against stereotypical ReLU network, {title}: mean |ΔL| / L(0)",
            typical_apart(name),
            most=0.05,
            pooled=True,
            words="close agreement" if name == "staged" else "",
        )
        for name, title in RELNS.items()
    },
    **{
        f"over runs, {name}": Measure(
            f"over-runs-{name}",
            f"the same over other runs of the ReLU network, {title}",
            lambda t, name=name: typical_apart(name)(t) / runs_apart(t),
            most=FLOOR,
            rests=Basis.SEEDS,
        )
        for name, title in RELNS.items()
    },
    **{
        f"outputs, {name}": Measure(
            f"outputs-{name}",
            "outputs of the stereotypes at plateaus that both have, relative to the size of the "
            f"targets, worst plateau, {title}",
            lambda t, name=name: plateau_outputs(t, name),
            most=0.1,
            seen=True,
            words="exact agreement between the outputs" if name == "staged" else "",
        )
        for name, title in RELNS.items()
    },
    "outputs, twice the slope": Measure(
        "outputs-slope",
        f"the same if the loss may fall twice as fast on a plateau, {RELNS['staged']}",
        lambda t: plateau_outputs(t, "staged", 2 * SLOPE),
        most=0.1,
    ),
    "outputs, half": Measure(
        "outputs-half",
        "outputs of the stereotypes where both have half the initial loss, inside a drop, relative "
        f"to the size of the targets, {RELNS['staged']}",
        lambda t: half_outputs(t, "staged"),
        most=0.1,
    ),
    "plateaus": Measure(
        "plateaus",
        "share of the plateaus of the stereotypical ReLU network that the ReLN has too, "
        f"{RELNS['staged']}",
        lambda t: plateaus_shared(t, "staged"),
        least=1.0,
        rests=Basis.PAPER,
        words="positions of the plateaus in loss are all consistent",
    ),
    "spread": Measure(
        "spread",
        "ReLU networks: standard deviation of the loss over runs / L(0), mean over time",
        lambda t: spread(t, "relu"),
        least=0.002,
        pooled=True,
    ),
    **{
        f"spread, {name}": Measure(
            f"spread-{name}",
            f"spread, ReLN over ReLU network, {title}",
            lambda t, name=name: spread(t, name) / spread(t, "relu"),
            least=0.5,
            most=2.0,
            origin=1.0,
            pooled=True,
            words="the same variance profiles" if name == "staged" else "",
        )
        for name, title in RELNS.items()
    },
    **{
        f"profiles, {name}": Measure(
            f"profiles-{name}",
            f"correlation of the two spreads over time, {title}",
            lambda t, name=name: profiles(t, name),
            least=0.5,
            pooled=True,
            words="the same variance profiles" if name == "staged" else "",
        )
        for name, title in RELNS.items()
    },
}
"""The numbers with their bounds."""


ALWAYS_OPEN = ("shared", "common")
"""Hidden nodes that are never closed: the first layer, and the common pathway."""


def closed(data: nr.Dataset, arch: nr.Architecture) -> nr.Dataset:
    """The data with all contextual pathways gated off."""
    off = {v: np.zeros(data.n_samples) for v in arch.hidden if v not in ALWAYS_OPEN}
    return data.gated({**data.gates, **off})


def staged_runs(
    arch: nr.Architecture,
    data: nr.Dataset,
    *,
    at: Int[np.ndarray, " T"],
    begins: int,
    opens: int,
    key: Key,
    **how: Any,
) -> tuple[Float[np.ndarray, "seeds T"], Float[np.ndarray, "seeds T samples outputs"]]:
    """The losses and outputs of a gated network that learns in stages, at the epochs `at`.

    Nothing is learned before epoch `begins`. From there the common pathway learns with all
    contextual pathways closed, and from epoch `opens` they learn together. Both epochs are the
    authors' choice, made by hand. `how` goes to `train_ensemble`; the initial weights are those
    of an ensemble with the same key whose pathways are open from the start.
    """
    if not 0 <= begins < opens:
        raise nr.NeuralRaceError(
            "the stages of the gated network are out of order",
            got=f"learning begins at epoch {begins}, contextual pathways open at {opens}",
            wanted="0 ≤ begins < opens",
            fix="for example --set begins=500 --set opens=12000",
        )
    net = nr.GDLN(arch)
    change, own = opens - begins, np.unique(np.maximum(at - begins, 0))
    stages = []
    for gated, low, high in ((closed(data, arch), 0, change), (data, change, int(own[-1]))):
        stop = min(high, int(own[-1]))
        if stop > low or not stages:
            inside = own[(own >= low) & (own <= stop)] - low
            more = {"weights": stages[-1].final} if stages else {}
            stages.append(
                nr.train_ensemble(
                    net,
                    gated,
                    key=key,
                    steps=max(stop - low, 1),
                    record_at=np.unique([0, *inside, max(stop - low, 1)]),
                    record={"outputs": True},
                    **how,
                    **more,
                )
            )
    whole = nr.join(*stages)
    index = np.searchsorted(np.asarray(whole.steps), np.maximum(at - begins, 0))
    outputs = np.asarray(whole.values["outputs"]["y"], np.float32)
    return whole.loss[:, index], outputs[:, index]

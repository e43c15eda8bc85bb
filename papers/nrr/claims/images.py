"""Claims of NRR §5 and App. D on routing with images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from evidence import Claim, Measure, Read, Remark, Tables
from papers.figure import Table, TooSlow
from papers.nrr.image_routes import rows_of, stored_rows
from papers.nrr.transition import transferred

CROSS = {"method": "cross", "routes": "circulant"}
"""Networks as the authors trained them: cross-entropy, circulant routes."""

PERMUTED = CROSS | {"inputs": "permuted"}
ROTATED = CROSS | {"inputs": "rotated"}
RACE = ROTATED | {"method": "race"}
PIXELS = PERMUTED | {"method": "statistics", "M": 40}

CELLS = (
    "Ten seeds, on an NVIDIA H200: of the cells that were run, those that have as many were chosen "
    "for that."
)
"""Which of the stored cells an entry rests on."""


def cells(tables: Tables, figure: str, **wanted: Any) -> Table | None:
    """The cells of a figure with these values; None if there are none, as for want of a GPU.

    `share` picks K/M and `scale` the gain. Images are those of the figure's setting, unless named.
    """
    try:
        table = tables(figure)
    except TooSlow:
        return None
    share, up_to = wanted.pop("share", None), wanted.pop("up_to", 1.0)
    rows = rows_of(table, **{"images": _usual(table)} | wanted)
    if share is not None:
        rows = rows.isel(cell=np.flatnonzero(np.isclose(rows["share"].to_numpy(), share)))
    rows = rows.isel(cell=np.flatnonzero(rows["share"].to_numpy() <= up_to))
    return rows if rows.sizes["cell"] else None


def _usual(table: Table) -> str:
    """The images of most cells."""
    names, counts = np.unique(table["images"].to_numpy().astype(str), return_counts=True)
    return str(names[counts.argmax()])


def _per_seed(of: Callable[[np.ndarray, np.ndarray], Any], figure: str, **wanted: Any) -> Read:
    """One number per seed, of the trained and untrained accuracy of all cells with these values."""

    def read(tables: Tables) -> Any:
        rows = cells(tables, figure, **wanted)
        if rows is None:
            return float("nan")
        few = int(rows["seeds"].min())
        return of(*(rows[name].to_numpy()[:, :few] for name in ("trained", "untrained")))

    return read


def least_trained(figure: str, **wanted: Any) -> Read:
    """The accuracy of trained routes of each seed, in the cell where it is least."""
    return _per_seed(lambda trained, untrained: trained.min(axis=0), figure, **wanted)


def transfer(figure: str, **wanted: Any) -> Read:
    """Accuracy of untrained routes of each seed: 0 at chance, 1 if it is that of trained ones."""
    of = lambda trained, untrained: transferred(trained[0], untrained[0])
    return _per_seed(of, figure, **wanted)


def _gained(tables: Tables) -> Any:
    """The transfer from a gain of .1 less that from a gain of 10, seed by seed."""
    small, large = (np.asarray(transfer("nrr/fig10", scale=g, **RACE)(tables)) for g in (0.1, 10.0))
    count = min(small.size, large.size)
    return (small.reshape(-1)[:count] - large.reshape(-1)[:count]) if count > 1 else float("nan")


def _good_scales(tables: Tables) -> Any:
    """The least accuracy of trained routes of each seed, over gains .1 and 1."""
    rows = cells(tables, "nrr/fig10", **RACE)
    if rows is None:
        return float("nan")
    rows = rows.isel(cell=np.flatnonzero(np.isin(rows["scale"].to_numpy(), (0.1, 1.0))))
    if not rows.sizes["cell"]:
        return float("nan")
    return rows["trained"].to_numpy()[:, : int(rows["seeds"].min())].min(axis=0)


def small(plan: str, **wanted: Any) -> np.ndarray:
    """The transfer of every seed of a cell that was computed on a processor, as stored."""
    rows = (row for row in stored_rows() if row["plan"] == plan)
    (row,) = (row for row in rows if all(row[k] == v for k, v in wanted.items()))
    return transferred(row["trained"], row["untrained"])


CLAIMS = (
    Claim(
        "nrr/images-trained",
        "§5.1, Figs 7b, c and 8",
        "Routes that are trained classify images well, however few of them there are.",
        "Accuracy on test images of trained routes, at the worst share: K/M = .05, .1, .2, .4, .6 "
        "and .8, for rotated MNIST up to .6. M = 40, circulant routes, 128 hidden neurons, a gain "
        "of .1, the authors' flow time of 7500; cross-entropy, and for CIFAR-10 the race of the "
        f"class modes. {CELLS} Rotated MNIST at .8 has three seeds (.908). Not run: M = 100 "
        "with cross-entropy, as in Fig. 7c, but at three shares, where trained routes reach .911 "
        "and more, and CIFAR-10 with cross-entropy on more than three seeds or to the authors' "
        "flow time.",
        (
            Measure(
                "mnist-permuted",
                "MNIST, permuted",
                least_trained("nrr/fig8", **PERMUTED),
                least=0.85,
                origin=1.0,
            ),
            Measure(
                "mnist-rotated",
                "MNIST, rotated",
                least_trained("nrr/fig8", up_to=0.6, **ROTATED),
                least=0.85,
                origin=1.0,
            ),
            Measure(
                "cifar10-rotated",
                "features of CIFAR-10, rotated",
                least_trained("nrr/fig8", images="cifar10", **RACE),
                least=0.7,
                origin=1.0,
                otherwise="On features of rotated CIFAR-10 trained routes reach {:.2f} by the "
                "race, whose end is that of least squares. Cross-entropy was run with three seeds, "
                "and not to the authors' flow time.",
            ),
        ),
        quote="Training accuracy is always high",
    ),
    Claim(
        "nrr/images-40-percent",
        "§5.1, Figs 7 and 8, captions",
        "Untrained routes are as good as trained ones once about 40 % of the routes are trained.",
        "Transfer: accuracy of untrained routes above chance, divided by that of trained ones. M = "
        "40, circulant routes, 128 hidden neurons, a gain of .1, the authors' flow time of 7500; "
        f"cross-entropy, and for M = 100 and CIFAR-10 the race of the class modes. {CELLS} Between "
        "K/M = .2 and .4 nothing was run: where in between transfer becomes as good as training, "
        "these numbers do not say.",
        (
            Measure(
                "mnist-permuted-40",
                "MNIST, permuted, K/M = .4",
                transfer("nrr/fig8", share=0.4, **PERMUTED),
                least=0.95,
                origin=1.0,
            ),
            Measure(
                "mnist-rotated-40",
                "MNIST, rotated, K/M = .4",
                transfer("nrr/fig8", share=0.4, **ROTATED),
                least=0.95,
                origin=1.0,
            ),
            Measure(
                "mnist-permuted-10",
                "MNIST, permuted, K/M = .1",
                transfer("nrr/fig8", share=0.1, **PERMUTED),
                most=0.5,
            ),
            Measure(
                "mnist-permuted-m100",
                "MNIST, permuted, M = 100, K/M = .4, race",
                transfer("nrr/fig8", share=0.4, M=100, **PERMUTED | {"method": "race"}),
                least=0.95,
                origin=1.0,
                otherwise="With M = 100 the transfer at 40 % is {:.2f}.",
            ),
            Measure(
                "cifar10-rotated-40",
                "features of CIFAR-10, rotated, K/M = .4, race",
                transfer("nrr/fig8", share=0.4, images="cifar10", **RACE),
                least=0.95,
                origin=1.0,
                otherwise="On features of rotated CIFAR-10 the transfer at 40 % is {:.2f}.",
            ),
            Measure(
                "random-routes-10",
                "MNIST, permuted, random regular routes, K/M = .1",
                transfer("nrr/fig7", share=0.1, **PERMUTED | {"routes": "random"}),
                most=0.5,
                otherwise="40 % is a property of the circulant routes that the authors train. With "
                "random regular ones, 10 % are enough for a transfer of {:.2f}.",
            ),
        ),
        quote="zero-shot transfer to untrained pathways becomes as good as the training "
        "performance when ≈ 40% of pathways are trained",
        remarks=(
            Remark(
                "At K/M = .2 the transfer is {:.2f} (permuted) and {:.2f} (rotated). All from a "
                "gain of .1. The initial scale matters as much: with M = 10 and 40 % of "
                "circulant routes, by the race, the transfer from a gain of 1 is {:.2f}; with 20 % "
                "it is {:.2f} from a gain of .1 and {:.2f} from .01, each given its time.",
                (
                    transfer("nrr/fig8", share=0.2, **PERMUTED),
                    transfer("nrr/fig8", share=0.2, **ROTATED),
                    lambda tables: small("starts_test", K=4),
                    lambda tables: small("starts", scale=0.1),
                    lambda tables: small("starts", scale=0.01),
                ),
            ),
        ),
    ),
    Claim(
        "nrr/images-leaky",
        "App. D, Fig. 9, caption",
        "In leaky ReLU networks untrained routes are as good as trained ones once about 25 % of "
        "the routes are trained.",
        "MNIST, permuted, M = 40, K = 4 and 10, cross-entropy, slope .01 below 0 in both hidden "
        "layers of 128 neurons, a gain of .1, the authors' flow time of 7500. (The published code "
        "adds no nonlinearity at one layer.) Transfer as above. Five seeds at every share, three "
        "with rotated inputs, on an NVIDIA H200. The bounds were set when K = 10 alone had been "
        "run.",
        (
            Measure(
                "trained",
                "trained accuracy at K/M = .25",
                least_trained("nrr/fig9", share=0.25, **PERMUTED),
                least=0.85,
                origin=1.0,
            ),
            Measure(
                "transfer",
                "transfer at K/M = .25",
                transfer("nrr/fig9", share=0.25, **PERMUTED),
                least=0.95,
                origin=1.0,
            ),
            Measure(
                "transfer-10",
                "transfer at K/M = .1, below the paper's share",
                transfer("nrr/fig9", share=0.1, **PERMUTED),
                most=0.95,
                otherwise="At K/M = .1 the transfer is {:.2f} already.",
            ),
            Measure(
                "transfer-rotated",
                "transfer at K/M = .25, rotated inputs",
                transfer("nrr/fig9", share=0.25, **ROTATED),
                least=0.95,
                origin=1.0,
                otherwise="With rotated inputs, the transfer at K/M = .25 is {:.2f}.",
            ),
        ),
        quote="The training accuracy is always high while zero-shot transfer to untrained pathways "
        "becomes as good as the training performance when ≈ 25% of pathways are trained.",
        remarks=(
            Remark(
                "At K/M = .2 the transfer is {:.2f}, at .4 {:.2f}. On small images of digits (M = "
                "12, 64 hidden neurons, five seeds, on a processor) it is {:.2f} on average and "
                "{:.2f} for the worst seed at K/M = .25, {:.2f} at .33, and {:.2f} at .5.",
                (
                    transfer("nrr/fig9", share=0.2, **PERMUTED),
                    transfer("nrr/fig9", share=0.4, **PERMUTED),
                    lambda tables: small("digits_leaky", K=3),
                    lambda tables: small("digits_leaky", K=3).min(),
                    lambda tables: small("digits_leaky", K=4),
                    lambda tables: small("digits_leaky", K=6),
                ),
            ),
        ),
    ),
    Claim(
        "nrr/images-scale",
        "§5.1, Fig. 7d; App. D, Fig. 10",
        "Trained routes are good from every initial scale; untrained ones only from small ones.",
        "MNIST, M = 40, K = 10, to the authors' flow time (rate × steps / (1 − momentum)), gains "
        "10, 1, .1, .01 and .001 of Xavier's weights. Inputs are rotated and the network is "
        "the race of the class modes. For a gain of .01 also permuted pixels: squared loss, and "
        "cross-entropy, as the authors' networks have it (five seeds, batches of 64). The other "
        "cells have ten seeds, and were chosen for that. The bounds were kept when gains of .01 "
        "and .001, which had been limits, became measures, with their numbers in view; the cell "
        "with cross-entropy was run after that.",
        (
            Measure(
                "trained-usual",
                "trained accuracy at gains .1 and 1, the worse",
                _good_scales,
                least=0.8,
                origin=1.0,
            ),
            Measure(
                "transfer-small-large",
                "transfer at gain .1 less transfer at gain 10",
                _gained,
                least=0.5,
            ),
            Measure(
                "trained-01",
                "trained accuracy at gain .01",
                least_trained("nrr/fig10", scale=0.01, **RACE),
                least=0.8,
                origin=1.0,
            ),
            Measure(
                "trained-01-squared",
                "trained accuracy at gain .01, squared loss on permuted pixels",
                least_trained("nrr/fig10", scale=0.01, **PIXELS),
                least=0.8,
                origin=1.0,
            ),
            Measure(
                "trained-01-cross",
                "trained accuracy at gain .01, cross-entropy on permuted pixels",
                least_trained("nrr/fig10", scale=0.01, **PERMUTED | {"M": 40}),
                least=0.8,
                origin=1.0,
            ),
            Measure(
                "trained-001",
                "trained accuracy at gain .001",
                least_trained("nrr/fig10", scale=0.001, **RACE),
                least=0.8,
                origin=1.0,
            ),
            Measure(
                "trained-10",
                "trained accuracy at gain 10",
                least_trained("nrr/fig10", scale=10.0, **RACE),
                least=0.8,
                origin=1.0,
                otherwise="From a gain of 10 trained routes reach {:.2f} in 20 000 steps, which "
                "curvature makes so small that they end far from the flow time.",
            ),
        ),
        instead=(
            Remark(
                "Untrained routes need small weights, as the paper says. But small weights also "
                "need time, ∝ 1 / gain: from a gain of .01 the loss has not begun to fall at the "
                "authors' flow time, and trained routes reach {:.2f} (race), {:.2f} (squared loss "
                "on pixels) and {:.2f} (cross-entropy), against {:.2f} from gains of .1 and 1.",
                (
                    least_trained("nrr/fig10", scale=0.01, **RACE),
                    least_trained("nrr/fig10", scale=0.01, **PIXELS),
                    least_trained("nrr/fig10", scale=0.01, **PERMUTED | {"M": 40}),
                    _good_scales,
                ),
            ),
        ),
        quote="While performance on trained domains is good for all scales, zero-shot "
        "generalization only emerges at small inits.",
    ),
)

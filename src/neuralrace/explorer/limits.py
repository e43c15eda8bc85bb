"""How much the explorer takes on: every size, count and time, each with its own sentence."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGE = 1_000_000
"""Bytes of a message from a page."""

TABLE = 250_000
"""Characters of a table that is dropped on the page."""

VIEW = 20_000
"""Characters of what a page keeps in the state for itself."""

TEXT = 4_000
"""Characters of any other text in a state."""

VALUES = 100_000
"""Values in a state, those in lists included."""

DEPTH = 8
"""Tables inside tables."""

NESTED = 32
"""Lists and objects inside each other in a message."""

SAMPLES = 1024
"""Samples of a task."""

FEATURES = 512
"""Numbers of all inputs and outputs of one sample."""

WIDTH = 2048
"""Neurons of a hidden layer or a pathway."""

LAYERS = 4
"""Hidden layers."""

NODES = 160
"""Nodes of a graph."""

EDGES = 600
"""Edges of a graph."""

GATINGS = 8
"""Candidate gatings."""

PATHWAYS = 64
"""Pathways of a gating."""

STEPS = 50_000
"""Steps of training."""

SEEDS = 8
"""Networks that are trained."""

WORK = 4e11
"""Steps × networks × weights × samples of a training: some minutes of one processor."""

RECORDED = 3e7
"""Numbers that are recorded while networks are trained for `discover` and reports."""

KEY = 2**31 - 1
"""The largest key of random numbers."""

LONGEST = 1e6
"""How long a race can be followed, in units of one over its largest strength."""

START = 100.0
"""The largest initial weights: from larger ones a race takes for ever to be solved."""

PHASES = 61
"""Values along one axis of a phase diagram."""

CELLS = 700
"""Contests of a phase diagram over two numbers."""

REPORT = 30_000_000
"""Bytes of a report."""

CLIENTS = 64
"""Pages that may be connected at a time."""

POSTS = 16
"""Requests without a page that are answered at a time."""

WAITING = 512
"""Messages that wait for a page to take them; a page that takes none for so long is let go."""

WORKER = 2.5e9
"""Bytes of memory after which a worker is replaced by a fresh one."""

SECONDS: Mapping[str, float] = {
    "data": 10,
    "predict": 20,
    "equations": 30,
    "kept": 60,
    "aligned": 60,
    "python": 20,
    "study": 20,
    "csv": 20,
    "tasks": 20,
    "train": 300,
    "types": 120,
    "discover": 300,
    "phases": 300,
    "report": 600,
}
"""How long each kind of request may take."""

OPTIONS: Mapping[str, tuple[float, str]] = {
    "training.steps": (STEPS, "the number of steps"),
    "training.seeds": (SEEDS, "the number of networks"),
    "training.key": (KEY, "the key"),
    "training.record_every": (STEPS, "the number of steps"),
    "contest.longest": (LONGEST, "the longest time"),
    "contest.start": (START, "the start"),
    "contest.width": (WIDTH, "the number of neurons"),
    "network.scale": (START, "the standard deviation"),
    "network.depth": (LAYERS, "the number of hidden layers"),
    "network.widths": (WIDTH, "the width of a hidden layer"),
    "network.graph.sizes": (WIDTH, "the width of a hidden node"),
    "gatings.*.hidden": (WIDTH, "the width of a pathway"),
    "discover.pathways": (16, "the number of pathways"),
    "discover.most": (12, "the number of pathways"),
    "types.types": (32, "the number of types"),
    "types.neurons": (5000, "the number of neurons"),
    "explain.types": (32, "the number of types"),
    "explain.stages": (128, "the number of stages"),
    "explain.most": (12, "the number of pathways"),
    "explain.neurons": (5000, "the number of neurons"),
    "phase_diagram.networks": (SEEDS, "the number of networks"),
}
"""The largest value of settings that cost time or memory, and what they are.

`*` is every name of a table. Of several numbers each is meant.
"""

SIZES: Mapping[str, tuple[int, str]] = {
    "gatings": (GATINGS, "gatings"),
    "gatings.*.masks": (PATHWAYS, "pathways"),
    "gatings.*.gates": (NODES, "gates"),
    "network.widths": (LAYERS, "hidden layers"),
    "network.graph.sizes": (NODES, "hidden nodes"),
    "network.graph.edges": (EDGES, "edges"),
    "training.record_at": (1000, "records"),
}
"""The largest number of entries of settings, and what they are."""


def table_of_limits() -> dict[str, float]:
    """What a page says of limits before it asks."""
    return {
        "samples": SAMPLES,
        "steps": STEPS,
        "seeds": SEEDS,
        "width": WIDTH,
        "layers": LAYERS,
        "gatings": GATINGS,
        "pathways": PATHWAYS,
        "table": TABLE,
        "phases": PHASES,
        "cells": CELLS,
        "message": MESSAGE,
        "view": VIEW,
    }

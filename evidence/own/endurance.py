"""Claims about exact compression, checkpoints and speed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time

import numpy as np

import neuralrace as nr
from benchmarks import compression as bench
from evidence.own.cases import wide_case
from evidence.promise import Measurement, claim

SECTION = "Speed and endurance"


@claim(
    "endurance/compressed",
    SECTION,
    "compressed and full descents on 50 random graphs with several gate classes, real gates, "
    "gates per neuron, several inputs and outputs, 2000 steps",
    "losses equal to 1e-12 of L(0), recovered weights to 1e-8",
)
def compressed(full: bool) -> Measurement:
    rng = np.random.default_rng(7)
    loss_gap = weight_gap = 0.0
    graphs = 0
    work = []
    while graphs < (50 if full else 2):
        case = wide_case(rng)
        net = nr.GDLN(case.arch)
        small = nr.compress(net, case.weights, case.data)
        if not case.arch.hidden:
            continue
        graphs += 1
        work.append(small.work)
        settings = {"learning_rate": 0.01, "steps": 2000 if full else 200, "compress": False}
        whole = nr.train(net, case.weights, case.data, **settings)
        part = nr.train(small.net, small.weights, small.data, **settings)
        loss_gap = max(loss_gap, np.abs(part.loss - whole.loss).max() / whole.loss[0])
        back = small.lift(part.final)
        weight_gap = max(
            weight_gap, *(float(np.abs(back[e] - w).max()) for e, w in whole.final.items())
        )
    return Measurement(
        f"{loss_gap:.1g} of L(0), weights {weight_gap:.1g} ({graphs} graphs; work left: "
        f"{min(work):.0%} to {max(work):.0%})",
        bool(loss_gap <= 1e-12 and weight_gap <= 1e-8 and min(work) < 0.5),
    )


def _sizes(ratio: bench.Ratio) -> str:
    return (
        f"{ratio.flow:.2f} (compressing took {ratio.small:.2g} s and {ratio.large:.2g} s; "
        f"flow with all that goes before and after: {ratio.whole:.1f} times)"
    )


@claim(
    "endurance/samples",
    SECTION,
    "flow with 10⁶ samples over flow with 10³ (two gate classes), once compressed",
    "at most 1.5 times (benchmark)",
    timing=True,
)
def many_samples(full: bool) -> Measurement:
    ratio = bench.samples(10**3, 10**6 if full else 10**4)
    middle = bench.samples(10**3, 10**5).large if full else 0.0
    text = _sizes(ratio) + (f"; {middle:.2g} s for 10⁵" if full else "")
    return Measurement(text, ratio.flow <= 1.5)


@claim(
    "endurance/wide-layer",
    SECTION,
    "flow of one hidden layer of width 20 000 over width 200, once compressed",
    "at most 1.5 times (benchmark)",
    timing=True,
)
def wide_layer(full: bool) -> Measurement:
    ratio = bench.widths((200,), (20_000 if full else 1000,))
    return Measurement(_sizes(ratio), ratio.flow <= 1.5)


@claim(
    "endurance/wide-layers",
    SECTION,
    "flow of two adjacent orthogonal layers of width 2000 over width 200, once compressed",
    "at most 1.5 times (benchmark)",
    timing=True,
)
def wide_layers(full: bool) -> Measurement:
    ratio = bench.widths((200, 200), (2000, 2000) if full else (300, 300))
    return Measurement(_sizes(ratio), ratio.flow <= 1.5)


KILLED = """
import hashlib, sys, jax, numpy as np, optax, neuralrace as nr
kind, folder = sys.argv[1:]
if kind == "relu":
    net, data = nr.ReLUNetwork((11, 700, 60)), nr.tasks.contextual(joined=True)
    weights = net.init(jax.random.key(0), scale=0.005 / 700)
elif kind == "adam":  # mini-batches and cross-entropy
    net, data = nr.ReLUNetwork((11, 300, 60)), nr.tasks.contextual(joined=True)
    data = nr.Dataset(data.x, {"y": np.eye(60)[np.arange(24)]})
    weights = net.init(jax.random.key(0), scale=0.05)
else:  # a gated network, simulated in compressed form
    arch, data = nr.tasks.common_and_all_but_one(nr.tasks.contextual(), hidden=400)
    net = nr.GDLN(arch)
    weights = net.init(jax.random.key(0), scale=0.005 / 700)
print("started", flush=True)
how = {"learning_rate": 0.024, "steps": 4000}
if kind == "adam":
    how = {"optimizer": optax.adam(1e-3), "batch_size": 5, "key": 1, "loss": "cross_entropy",
           "steps": 20_000}
run = nr.train(net, weights, data, **how, record_every=7,
               record={"outputs": True}, checkpoint=folder, checkpoint_every=100)
digest = hashlib.sha256(run.loss.tobytes())
for leaf in jax.tree.leaves((run.values, run.final)):
    digest.update(np.asarray(leaf).tobytes())
print(run.settings["compression"], digest.hexdigest(), sep=";", flush=True)
"""
"""A script with a checkpointed run, which is killed and started again."""


KINDS = ("adam", "relu", "gated")
"""The kinds of runs in `KILLED`."""


def _start(kind: str, folder: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", "-c", KILLED, kind, folder]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def _whole_run(kind: str, folder: str) -> tuple[str, float]:
    """The final result of an undisturbed run, and the seconds it takes."""
    process = _start(kind, folder)
    begun = time.perf_counter()
    return process.communicate()[0].strip(), time.perf_counter() - begun


@claim(
    "endurance/killed",
    SECTION,
    "50 SIGKILLs at random moments of checkpointed runs (Adam with mini-batches and cross-entropy; "
    "a ReLU network by descent; a gated one, compressed): how the restarts end",
    "every one bit-identical",
    slow=True,
)
def killed(full: bool) -> Measurement:
    rng = np.random.default_rng(0)
    kills = ends = equal = 0
    with tempfile.TemporaryDirectory() as root:
        whole = {kind: _whole_run(kind, f"{root}/{kind}") for kind in KINDS}
        while kills < 50:
            kind = KINDS[ends % 3]
            wanted, seconds = whole[kind]
            while True:
                process = _start(kind, f"{root}/{kind}-{ends}")
                try:
                    found = process.communicate(timeout=rng.uniform(0, seconds))[0]
                    break
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
                    kills += 1
            ends += 1
            equal += found.strip() == wanted
    compression = whole["gated"][0].split(";")[0]
    return Measurement(
        f"{equal} of {ends} runs bit-identical after {kills} kills in all (gated: {compression})",
        equal == ends and compression != "none",
    )

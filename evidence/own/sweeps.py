"""Sweeps: the same bits wherever they are computed, and kills of workers and main process."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import neuralrace as nr
from benchmarks import sweeps as bench
from evidence.promise import Measurement, claim

SECTION = "Sweeps"
BATCH = 10
"""Cells of a batch in the sweep that is killed."""

IN_FLIGHT = {"main": 4, "worker": 2}
"""Batches that a kill may cost: two per worker are under way."""


def noted(cells: Sequence[Mapping[str, Any]], folder: str) -> list[dict[str, Any]]:
    """Sums of random numbers; every call is noted in a file."""
    with (Path(folder) / "calls").open("a") as file:
        file.write(f"{cells[0]['seed']}\n")
    time.sleep(0.25)
    draws = [np.random.default_rng(cell["seed"]).normal(size=(40, 40)) for cell in cells]
    return [{"trace": np.trace(d @ d.T), "sums": d.sum(axis=0)} for d in draws]


def content(store: str) -> dict[str, bytes]:
    """Every file of a store, but for how long it took."""
    paths = (path for path in sorted(Path(store).rglob("*")) if path.name != ".seconds")
    files = (path for path in paths if path.is_file())
    return {str(path.relative_to(store)): path.read_bytes() for path in files}


@claim(
    "sweeps/same-bits",
    SECTION,
    "a sweep of 1000 XoR networks (Δ × seeds) in the process, on 1 and on 2 dask workers: "
    "the three stores, file by file",
    "identical",
    slow=True,
)
def same_bits(full: bool) -> Measurement:
    axes = {"delta": np.linspace(0, 2, 20 if full else 4), "seed": range(50 if full else 5)}
    stores = []
    with tempfile.TemporaryDirectory() as root:
        for workers in (0, 1, 2):
            store = f"{root}/{workers}.zarr"
            nr.sweep(
                "neuralrace.sweeps:train_relu", axes, settings=bench.XOR, batch=50,
                store=store, workers=workers,
            )  # fmt: skip
            stores.append(content(store))
    same = stores[0] == stores[1] == stores[2]
    return Measurement(
        f"{'identical' if same else 'different'}: {len(stores[0])} files each, "
        f"{len(axes['delta']) * len(axes['seed'])} cells",
        same and len(stores[0]) > 10,
    )


def _main(store: str, folder: str, cells: str) -> None:
    nr.sweep(
        "evidence.own.sweeps:noted", {"seed": range(int(cells))}, settings={"folder": folder},
        batch=BATCH, store=store, workers=2,
    )  # fmt: skip


def _calls(folder: str) -> int:
    path = Path(folder) / "calls"
    return len(path.read_text().split()) if path.exists() else 0


def _workers(pid: int) -> list[Any]:
    """The worker processes of a main process; dask starts them anew when they die."""
    import psutil

    family = psutil.Process(pid).children(recursive=True)
    return [child for child in family if "spawn_main" in " ".join(child.cmdline())]


def _shaken(command: list[str], folder: str, rng: random.Random) -> bool:
    """One life of the main process: two workers are killed, then it is. Whether all happened."""
    import psutil

    before = _calls(folder)
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while _calls(folder) == before:
        if process.poll() is not None:
            return False
        time.sleep(0.01)
    for _ in range(2):
        time.sleep(rng.uniform(0, 0.5))
        while not (workers := _workers(process.pid)):
            time.sleep(0.01)
        rng.choice(workers).kill()
    time.sleep(rng.uniform(0, 0.5))
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    psutil.wait_procs(family, timeout=60)
    return True


@claim(
    "sweeps/killed",
    SECTION,
    "a sweep of 1000 cells on 2 workers through 20 SIGKILLs of workers and 10 of the main process, "
    "at random moments: the store, file by file, and batches computed more than once",
    "identical to an undisturbed one; at most 4 batches again per kill of the main process, "
    "2 per kill of a worker",
    slow=True,
)
def killed(full: bool) -> Measurement:
    cells, rounds = (1000, 10) if full else (100, 1)
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as root:
        store, folder = f"{root}/s.zarr", root
        command = [sys.executable, "-W", "ignore", "-m", "evidence.own.sweeps"]
        command += [store, folder, str(cells)]
        done = [_shaken(command, folder, rng) for _ in range(rounds)]
        subprocess.run(command, check=True)
        calls, batches = _calls(folder), cells // BATCH
        found = nr.open_sweep(store)
        os.remove(f"{root}/calls")
        fresh = f"{root}/t.zarr"
        subprocess.run([*command[:5], fresh, folder, str(cells)], check=True)
        same = content(store) == content(fresh)
    again, allowed = calls - batches, rounds * (IN_FLIGHT["main"] + 2 * IN_FLIGHT["worker"])
    return Measurement(
        f"{'identical' if same else 'different'}, {found.missing} cells missing, "
        f"{len(found.failed)} failed; {again} of {batches} batches again "
        f"({2 * sum(done)} kills of workers, {sum(done)} of the main process)",
        same and all(done) and 0 <= again <= allowed and not found.missing and not found.failed,
    )


def _crowd() -> str:
    """What to say of a time that was taken while other programs used the cores."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    crowded = load > cores / 2
    return f"Other programs were running: load {load:.1f} on {cores} cores." if crowded else ""


@claim(
    "sweeps/overhead",
    SECTION,
    "milliseconds of a batch beside its cells: in the process, on two workers",
    "at most 20 (benchmark)",
    timing=True,
    slow=True,
)
def overhead(full: bool) -> Measurement:
    note = _crowd()
    here, there = (bench.overhead(workers, 500 if full else 50) for workers in (0, 2))
    return Measurement(f"{here:.1f} and {there:.1f}", max(here, there) <= 20, note)


@claim(
    "sweeps/second-worker",
    SECTION,
    "throughput of two workers over one, on batches of 1 s",
    "at least 1.7 times (benchmark)",
    timing=True,
    slow=True,
)
def second_worker(full: bool) -> Measurement:
    note = _crowd()
    ratio = bench.second_worker(12 if full else 4)
    return Measurement(f"{ratio:.2f}", ratio >= 1.7, note)


@claim(
    "sweeps/xor-cells",
    SECTION,
    "seconds for 10 000 XoR networks (100 Δ × 100 seeds, MHS Fig. 2: 128 neurons, 150 steps) on "
    "two workers, all included",
    "under 60 (benchmark)",
    timing=True,
    slow=True,
)
def xor_cells(full: bool) -> Measurement:
    note = _crowd()
    seconds = bench.xor_sweep(*((100, 100) if full else (10, 10)))
    return Measurement(f"{seconds:.1f}", seconds < 60, note)


if __name__ == "__main__":
    _main(*sys.argv[1:])

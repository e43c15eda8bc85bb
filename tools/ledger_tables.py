"""Compute the data of the ledger of claims side by side, in slices of a few minutes.

`python -m papers claims --from FOLDER` computes what it needs, one thing after another, and keeps
it in FOLDER/ledger. This script fills the same folder with several processes, for a machine with
many cores, and stops after some minutes; repeated, it goes on with what is missing. It needs none
of the packages that draw, store netCDF or make up the command line.

    PYTHONPATH=src python tools/ledger_tables.py --out out/ledger --minutes 8 --processes 8
    PYTHONPATH=src python tools/ledger_tables.py --out out/ledger --list
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

RULES = ("equal", "half", "authors")
"""The rules for the widths of pathways besides the default."""

ON_GPU = ("mhs/fig6",)
"""The jobs that use a GPU if there is one; the others run on processor cores, in full float32."""

FIGURES: dict[str, tuple[str, dict[str, Any]]] = {
    "mhs/fig6": ("mhs/fig6", {}),
    "mhs/fig9": ("mhs/fig9", {}),
    "mhs/fig5": ("mhs/fig5", {}),
    "mhs/fig4": ("mhs/fig4", {}),
    **{f"mhs/fig4 {rule}": ("mhs/fig4", {"rule": rule}) for rule in RULES},
    "mhs/fig8": ("mhs/fig8", {}),
    "nrr/fig5": ("nrr/fig5", {}),
    "nrr/fig5 small": ("nrr/fig5", {"M": 5, "K": (2,), "P": (1,)}),
    "mhs/fig2": ("mhs/fig2", {}),
    "mhs/fig3": ("mhs/fig3", {}),
    "nrr/fig3": ("nrr/fig3", {}),
    "nrr/fig4": ("nrr/fig4", {}),
    "nrr/fig4 xavier": ("nrr/fig4", {"init": "xavier"}),
    "nrr/fig6": ("nrr/fig6", {}),
}
"""The figures that take longest, by the name of the job; what is missing here is computed last."""

MEASUREMENTS = (
    "own_network",
    "rivals",
    "mixed_gating",
    "other_gating",
    "competition",
    "explained",
    "gates_over_time",
)
"""Measurements on the task of MHS §4."""


def jobs() -> tuple[str, ...]:
    """The names of all jobs, those that take longest first."""
    rest = ("closed_forms_trained", "rest of mhs/xor", "growth_on_residual")
    return (*FIGURES, "mhs/fig5 scaled", *MEASUREMENTS, *rest)


def say(text: str) -> None:
    """Write a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def compute(name: str, folder: Path) -> None:
    """Compute one job, unless its result is there."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from evidence import Tables, ledger
    from papers.mhs.claims import closed, contextual, measurements, networks, reads

    folder.mkdir(parents=True, exist_ok=True)
    tables = Tables(folder=folder, tell=say)
    if name in FIGURES:
        figure, changes = FIGURES[name]
        tables(figure, **changes)
    elif name == "mhs/fig5 scaled":
        tables("mhs/fig5", **contextual.SCALED)
    elif name in MEASUREMENTS:
        reads.measurement(tables, getattr(networks, name))
    elif name == "closed_forms_trained":
        tables.once(closed.closed_forms_trained, seeds=5, steps=8000)
    elif name == "growth_on_residual":
        tables.once(measurements.growth_on_residual, items=8)
    else:
        for claim in ledger("mhs/always-a-reln", "mhs/xor-boundary"):
            claim.measure(tables)


def side_by_side(names: list[str], folder: Path, minutes: float, processes: int) -> list[str]:
    """Run jobs in processes of their own until the time is over; the names of those not done."""
    end = time.monotonic() + 60 * minutes
    folder.mkdir(parents=True, exist_ok=True)
    waiting, running, left = list(names), {}, []
    free = _slots(processes)
    while (waiting or running) and time.monotonic() < end:
        while waiting and free:
            name, cores = waiting.pop(0), free.pop()
            running[name] = (_started(name, folder, cores), cores, time.monotonic())
        for name, (process, cores, begin) in list(running.items()):
            code = process.poll()
            if code is not None:
                del running[name]
                free.append(cores)
                took = time.monotonic() - begin
                say(f"{'done' if code == 0 else 'FAILED'}: {name} ({took:.0f} s)")
                left += [name] * (code != 0)
        time.sleep(0.2)
    for process, _, _ in running.values():
        process.terminate()
    return [*left, *running, *waiting]


def _slots(processes: int) -> list[set[int]]:
    """The cores of this machine, divided among the processes."""
    cores = sorted(os.sched_getaffinity(0))
    return [set(cores[k::processes]) or {cores[k % len(cores)]} for k in range(processes)]


def _started(name: str, folder: Path, cores: set[int]) -> subprocess.Popen[bytes]:
    """A process for one job on these cores; on a GPU only where that is meant."""
    few = {"OPENBLAS_NUM_THREADS": str(len(cores)), "OMP_NUM_THREADS": str(len(cores))}
    where = {} if name in ON_GPU else {"JAX_PLATFORMS": "cpu"}
    log = (folder / f"{name.replace('/', '_').replace(' ', '_')}.log").open("wb")
    command = [sys.executable, "-W", "ignore", __file__, "--out", str(folder), "--one", name]
    process = subprocess.Popen(
        command, env=os.environ | few | where, stdout=log, stderr=subprocess.STDOUT
    )
    os.sched_setaffinity(process.pid, cores)
    return process


def main() -> None:
    """Read the command line."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("names", nargs="*", help="jobs; all if none is named")
    options.add_argument("--out", type=Path, default=Path("out/ledger"))
    options.add_argument("--minutes", type=float, default=8.0)
    options.add_argument("--processes", type=int, default=8)
    options.add_argument("--list", action="store_true", help="name the jobs and stop")
    options.add_argument("--one", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.list:
        say("\n".join(jobs()))
    elif given.one:
        compute(given.one, given.out)
    else:
        names = given.names or list(jobs())
        left = side_by_side(names, given.out, given.minutes, given.processes)
        say("left: " + (", ".join(left) or "nothing"))


if __name__ == "__main__":
    main()

"""Who computes the batches: this process, or workers of dask on this machine or a cluster."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

from neuralrace.checks import by_name
from neuralrace.errors import NeuralRaceError, install_extra, require, warn_user, whole_number
from neuralrace.sweeps.cells import Result, run_cells, run_named
from neuralrace.sweeps.definition import Definition, Function, check_importable

DEATHS = 3
"""How many workers may die on one batch before it is suspected, and then given up."""

ALONE = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NPROC": "1",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}
"""The environment of a worker: one thread for OpenBLAS, OpenMP, MKL and XLA (`NPROC`)."""

CONNECTING = 10.0
"""Seconds in which a scheduler must answer."""

ATTENTION = 0.5
"""Seconds between looks at how many workers there are."""


@runtime_checkable
class Engine(Protocol):
    """Computes batches in any order, and says how many cells are under way."""

    running: int

    def batches(self, todo: list[int]) -> Iterator[tuple[int, list[Result | str] | None]]:
        """Each batch with its results; None for one whose workers died."""
        ...


class InProcess:
    """One batch after the other, here."""

    def __init__(self, definition: Definition, function: Function) -> None:
        self.definition, self.function = definition, function
        self.running = math.prod(definition.batch)

    def batches(self, todo: list[int]) -> Iterator[tuple[int, list[Result | str] | None]]:
        """Each batch with its results."""
        for batch in todo:
            cells: list[Any] = self.definition.cells_of(batch)
            self.running = len(cells)
            yield batch, run_cells(self.function, cells, self.definition.settings)


class OnWorkers:
    """Batches on the workers of a dask client.

    Only a few batches per worker are under way at any time, so that little is computed again
    when this process is killed.
    """

    def __init__(self, definition: Definition, client: Any) -> None:
        self.definition, self.client = definition, client
        self.running = 0

    def batches(self, todo: list[int]) -> Iterator[tuple[int, list[Result | str] | None]]:
        """Each batch with its results; None for one whose workers died.

        dask suspects all batches that wait at a worker that dies. Suspects are therefore tried
        again at the end, one at a time: only those that kill workers on their own are given up.
        """
        suspects = []
        for batch, found in self._computed(todo, alone=False):
            if found is None:
                suspects.append(batch)
            else:
                yield batch, found
        yield from self._computed(suspects, alone=True)

    def _computed(
        self, todo: list[int], alone: bool
    ) -> Iterator[tuple[int, list[Result | str] | None]]:
        from distributed import as_completed

        left, at = iter(todo), {}
        queue = as_completed([], loop=self.client.loop, raise_errors=False)
        threads, looked = 1, -ATTENTION
        for _ in todo:
            if time.monotonic() - looked > ATTENTION:
                threads, looked = sum(self.client.nthreads().values()) or 1, time.monotonic()
            most = 1 if alone else 2 * threads  # one is computed, the next is ready
            while len(at) < most and (batch := next(left, None)) is not None:
                future = self._submitted(batch)
                at[future] = batch
                queue.add(future)
            self.running = min(threads, len(at)) * math.prod(self.definition.batch)
            future = next(queue)
            yield at.pop(future), self._result(future)
            future.release()

    def _submitted(self, batch: int) -> Any:
        told = self.definition
        return self.client.submit(
            run_named,
            told.function,
            told.cells_of(batch),
            told.settings,
            told.float64,
            key=f"batch-{batch}-{uuid.uuid4().hex}",
            pure=False,
            priority=-batch,
        )

    def _result(self, future: Any) -> list[Result | str] | None:
        from distributed import KilledWorker

        if future.status == "finished":
            return future.result()
        if future.status == "error":
            error = future.exception()
            if isinstance(error, KilledWorker):
                return None
            raise error
        raise NeuralRaceError(
            "the connection to the scheduler was lost",
            got=f"a batch that is {future.status}",
            wanted="a scheduler that runs",
            fix="run the same call again: only what is missing is computed",
        )


# ---- which engine -------------------------------------------------------------------------------


@contextmanager
def engine_of(
    definition: Definition,
    function: Function,
    workers: int | None,
    scheduler: str | None,
    slurm: Mapping[str, Any] | None,
) -> Iterator[Engine]:
    """The engine that the options of a sweep ask for, closed at the end."""
    if not (workers or scheduler or slurm is not None):
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):  # as workers do, so that NumPy's bits are the same
            yield InProcess(definition, function)
        return
    check_importable(function)
    _check_not_inherited()
    with contextlib.ExitStack() as stack:
        from dask import config
        from distributed import Client

        settings = {"distributed.scheduler.allowed-failures": DEATHS}
        stack.enter_context(config.set(settings))
        where: Any = scheduler
        if slurm is not None:
            where = stack.enter_context(_slurm_cluster(slurm, workers or 1))
        elif scheduler is None:
            where = stack.enter_context(_local_cluster(workers or 1))
        try:
            client = stack.enter_context(Client(where, timeout=CONNECTING, set_as_default=False))
        except (OSError, ValueError) as error:
            raise NeuralRaceError(
                f"there is no scheduler at {scheduler!r}",
                got=f"{type(error).__name__}: {error}"[:200],
                wanted="the address of a running dask scheduler",
                fix="start one with `dask scheduler`, and pass what it prints: tcp://…:8786",
            ) from error
        yield OnWorkers(definition, client)


def check_engine(workers: Any, scheduler: Any, slurm: Any) -> None:
    """Raise where the options of an engine contradict each other, or name nothing."""
    if workers is not None:
        whole_number("workers", workers, least=0, fix="for example workers=2; 0 is this process")
    require(
        scheduler is None or (isinstance(scheduler, str) and scheduler),
        "scheduler must be an address",
        got=f"{scheduler!r:.80}",
        wanted="text",
        fix="for example scheduler='tcp://127.0.0.1:8786'",
    )
    if slurm is not None:
        by_name("slurm", slurm, "for example slurm={'partition': 'cpu', 'cores': 8}")
        whole_number("slurm cores", slurm.get("cores", 1), fix="for example cores=8")
    require(
        not (scheduler is not None and (workers is not None or slurm is not None)),
        "a scheduler has workers of its own",
        got=f"scheduler={scheduler!r}, workers={workers!r}, slurm={slurm!r}",
        wanted="scheduler alone, or workers, or slurm",
        fix="leave out the others",
    )
    if workers or scheduler is not None or slurm is not None:
        needed = ["distributed"] + (["dask_jobqueue"] if slurm is not None else [])
        need_packages(*needed)


def need_packages(*modules: str) -> None:
    """Raise where a package of the extra `study` is not installed."""
    from importlib.util import find_spec

    for module in modules:
        require(
            find_spec(module) is not None,
            f"this needs the package {module.replace('_', '-')!r}",
            got="it is not installed",
            wanted="the extra `study`",
            fix=install_extra("study"),
        )


def _local_cluster(workers: int) -> Any:
    """Worker processes on this machine, one thread each; a nanny starts those anew that die."""
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,  # type: ignore[arg-type]
        silence_logs="CRITICAL",  # type: ignore[arg-type]
        env=dict(ALONE),
    )


@contextmanager
def _slurm_cluster(slurm: Mapping[str, Any], jobs: int) -> Iterator[Any]:
    """Jobs of SLURM, with one worker process per core; a job that ends is replaced."""
    from dask_jobqueue.slurm import SLURMCluster

    options = dict(slurm)
    cores = int(options.pop("cores", 1))
    if "partition" in options:
        options["queue"] = options.pop("partition")
    prologue = [f"export {name}={value}" for name, value in ALONE.items()]
    options["job_script_prologue"] = [*prologue, *options.get("job_script_prologue", ())]
    memory = options.pop("memory", f"{MEMORY * cores} GiB")
    with SLURMCluster(cores=cores, processes=cores, memory=memory, **options) as cluster:
        over = threading.Event()
        thread = threading.Thread(target=_replace_jobs, args=(cluster, jobs, over), daemon=True)
        thread.start()
        try:
            yield cluster
        finally:
            over.set()
            thread.join()


def _replace_jobs(cluster: Any, jobs: int, over: threading.Event) -> None:
    """Keep that many jobs: one that ended, by its time limit for example, is submitted again.

    dask-jobqueue notices no jobs that end, so SLURM is asked. Jobs that always end are not
    submitted forever.
    """
    lost = 0
    while lost <= LOST * jobs:
        cluster.scale(jobs=jobs)
        if over.wait(LOOKING):
            return
        asked = subprocess.run(["squeue", "--me", "-h", "-o", "%i"], capture_output=True, text=True)
        there = asked.stdout.split()
        for name, job in [*cluster.workers.items()]:
            if asked.returncode == 0 and job.job_id and job.job_id not in there:
                lost += 1
                cluster.workers.pop(name, None)
                cluster.sync(job.close)
    warn_user(f"{lost} jobs of SLURM ended; no more are submitted. Their logs say why.")


LOOKING = 10.0
"""Seconds between looks at the jobs of SLURM."""

LOST = 10
"""How many times a job of SLURM is submitted again."""

MEMORY = 2
"""GiB per core that a job of SLURM asks for where `memory` is left out."""


def _check_not_inherited() -> None:
    """Raise where a worker process imports the script that started it, and would start more."""
    require(
        not getattr(multiprocessing.current_process(), "_inheriting", False),
        "a worker imports the script that started it",
        got="nr.sweep(…, workers=…) at the top of a script",
        wanted="nr.sweep(…) where only the script itself runs it",
        fix='put it below a line `if __name__ == "__main__":`',
    )

"""Functions that the tests of sweeps compute, where worker processes can import them."""

import os
import signal
import time
from pathlib import Path

import numpy as np


def moments(cells, size=50):
    """Sums that depend on their order in the last bits."""
    found = []
    for cell in cells:
        draws = np.random.default_rng(cell["seed"]).normal(cell["mean"], size=(size, size))
        found.append({"trace": np.trace(draws @ draws.T), "rows": draws.sum(axis=1)[:3]})
    return found


def odd_ones_fail(cells):
    """Raises as a whole where any cell has an odd number."""
    odd = [cell["x"] for cell in cells if cell["x"] % 2]
    if odd:
        raise ValueError(f"{odd[0]} is odd")
    return [{"half": cell["x"] // 2} for cell in cells]


def noted(cells, folder, seconds=0.0):
    """Notes every call in a file, then takes its time, or waits while a file holds it up."""
    with (Path(folder) / "calls").open("a") as file:
        file.write(f"{cells[0]['x']}\n")
    time.sleep(seconds)
    while (Path(folder) / f"hold-{cells[0]['x']}").exists():
        time.sleep(0.01)
    return [{"square": float(cell["x"]) ** 2} for cell in cells]


def dies_once(cells, folder):
    """The first process that computes a batch is killed by it."""
    for cell in cells:
        mark = Path(folder) / f"died-{cell['x']}"
        if cell["x"] % 3 == 0 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return [{"square": float(cell["x"]) ** 2} for cell in cells]


def short(cells):
    """Returns too little."""
    return cells[1:]


def always_dies(cells, victim):
    """Kills every process that computes the victim."""
    if any(cell["x"] == victim for cell in cells):
        os.kill(os.getpid(), signal.SIGKILL)
    return [{"square": float(cell["x"]) ** 2} for cell in cells]

"""A trajectory as an `xarray.Dataset` and back; everything labelled goes through this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralrace.gdln import Network
from neuralrace.trajectory.names import flat, nested
from neuralrace.trajectory.run import Source, Trajectory

if TYPE_CHECKING:
    import xarray

FINAL = "final."
"""What stands before the names of the weights at the end."""

OWN = ("loss", "sample_weight")
"""The variables of a table that are not recorded values."""


def to_table(run: Trajectory) -> xarray.Dataset:
    """The arrays of a trajectory by name, each dimension named; see `Trajectory.to_xarray`."""
    import xarray

    lead = tuple(run.axes)
    variables: dict[str, Any] = {"loss": ((*lead, "time"), run.loss)}
    variables |= {n: _dims(n, v, (*lead, "time")) for n, v in flat(run.values).items()}
    variables |= {n: _dims(n, v, lead) for n, v in flat(run.final, FINAL).items()}
    if run.sample_weight is not None:
        along = lead if run.sample_weight.ndim > 1 else ()
        variables["sample_weight"] = ((*along, "sample"), run.sample_weight)
    coordinates: dict[str, Any] = {"time": run.time, **run.axes}
    if run.steps is not None:
        coordinates["steps"] = ("time", run.steps)
    return xarray.Dataset(variables, coordinates)


def _dims(name: str, value: np.ndarray, lead: tuple[str, ...]) -> tuple[tuple[str, ...], Any]:
    own = tuple(f"{name}.{i}" for i in range(value.ndim - len(lead)))
    return (*lead, *own), value


def from_table(
    table: xarray.Dataset,
    settings: Mapping[str, Any],
    net: Network | None = None,
    source: Source | None = None,
) -> Trajectory:
    """The trajectory of these arrays; the opposite of `to_table`."""
    arrays = {str(name): v.to_numpy() for name, v in table.data_vars.items() if name not in OWN}
    final = {k.removeprefix(FINAL): v for k, v in arrays.items() if k.startswith(FINAL)}
    return Trajectory(
        table["time"].to_numpy(),
        table["loss"].to_numpy(),
        values=nested({k: v for k, v in arrays.items() if not k.startswith(FINAL)}),
        final=nested(final),
        net=net,
        axes={str(d): table[d].to_numpy() for d in table["loss"].dims if d != "time"},
        steps=table["steps"].to_numpy() if "steps" in table.coords else None,
        sample_weight=table["sample_weight"].to_numpy() if "sample_weight" in table else None,
        settings=settings,
        source=source,
    )

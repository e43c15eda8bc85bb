"""Trajectories as tables and files: whole or not at all, and checked when they are read."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.checks import file_path, write_whole
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, require, warn_user
from neuralrace.gdln import GDLN, Network
from neuralrace.relu import ReLUNetwork
from neuralrace.trajectory.labelled import from_table, to_table
from neuralrace.trajectory.run import Trajectory

if TYPE_CHECKING:
    import xarray

FORMAT = "neuralrace trajectory 2"
"""What is written. Version 1 had neither a checksum nor steps, sample weights and clocks."""

FORMATS = ("neuralrace trajectory 1", FORMAT)
"""What can be read."""


def _to_file(run: Trajectory) -> xarray.Dataset:
    """The table of a trajectory as a file holds it: with its settings, its network and a format.

    A float type that netCDF does not have, such as bfloat16, is stored as float32.
    """
    table = to_table(run)
    narrow = {str(n): v.dtype.name for n, v in table.data_vars.items() if v.dtype.kind == "V"}
    return table.assign({name: table[name].astype(np.float32) for name in narrow}).assign_attrs(
        format=FORMAT,
        settings=json.dumps(run.settings),
        net=json.dumps(network_described(run.net)),
        narrow=json.dumps(narrow),
    )


def save(run: Trajectory, path: Path) -> Path:
    """Write a trajectory, with a checksum of the whole file at its end."""
    return save_table(_to_file(run), path, signed=True)


@door
def save_table(table: xarray.Dataset, path: Path, signed: bool = False) -> Path:
    """Write a table to a netCDF file, whole or not at all.

    The file is made in memory: HDF5 cannot close a file that does not fit on the disk, and takes
    the interpreter with it. `signed` adds the checksum that `load` verifies.

    ```python
    >>> import tempfile, xarray
    >>> from pathlib import Path
    >>> from neuralrace.trajectory import save_table
    >>> table = xarray.Dataset({"x": ("n", [1.0, 2.0])})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_table(table, Path(folder) / "x.nc").name
    'x.nc'

    ```
    """
    content: Any = table.to_netcdf(engine="h5netcdf")
    return write_whole(path, bytes(content) + (_signature(content) if signed else b""))


@door
def load(path: str | os.PathLike[str]) -> Trajectory:
    """Read a trajectory that `Trajectory.save` wrote; a damaged file is an error.

    Files of version 0.1.0 are read too. A network of your own class comes back if the class is
    already imported and JSON can hold its description (see `Network.describe`). Otherwise
    `run.net` is None, with a warning. No code that a file names is ever imported.

    ```python
    >>> import tempfile, neuralrace as nr
    >>> path = nr.Trajectory([0, 1], [1.0, 0.5]).save(f"{tempfile.mkdtemp()}/run.nc")
    >>> nr.load(path).time
    array([0., 1.])

    ```
    """
    import xarray

    file = file_path(path, "nr.load('run.nc')")
    try:
        content, signed = _verified(file.read_bytes())
        with xarray.open_dataset(io.BytesIO(content), engine="h5netcdf") as opened:
            table = opened.load()
    except FileNotFoundError:
        raise
    except Exception as error:
        raise _not_a_trajectory(path, f"{type(error).__name__}: {error}") from error
    if table.attrs.get("format") not in FORMATS:
        raise _not_a_trajectory(path, f"format {table.attrs.get('format')!r}")
    if table.attrs["format"] == FORMAT and not signed:
        raise _not_a_trajectory(path, "a file without its checksum")
    try:
        return _from_file(table)
    except Exception as error:
        got = error.what if isinstance(error, NeuralRaceError) else repr(error)
        raise _not_a_trajectory(path, got) from error


def _not_a_trajectory(path: Any, got: str) -> NeuralRaceError:
    return NeuralRaceError(
        f"{str(path)!r} is not a trajectory, or it is damaged",
        got=got,
        wanted=f"a netCDF file of format {FORMAT!r}",
        fix="load what Trajectory.save wrote",
    )


def _from_file(table: xarray.Dataset) -> Trajectory:
    require(
        "time" in table.coords,
        "it has no time",
        got="-",
        wanted="a coordinate 'time'",
        fix="-",
    )
    for name, narrow in json.loads(table.attrs.get("narrow", "{}")).items():
        table[name] = table[name].astype(jnp.dtype(narrow))
    settings = json.loads(table.attrs["settings"])
    if table.attrs["format"] != FORMAT:
        settings["clock"] = "steps" if settings.pop("time", "") == "steps" else "flow"
    return from_table(table, settings, _rebuilt(json.loads(table.attrs["net"])))


SIGNED = b"neuralrace checksum "
"""What stands before the checksum in the last bytes of a file. HDF5 does not read that far."""


def _signature(content: Any) -> bytes:
    return SIGNED + hashlib.blake2b(content, digest_size=16).hexdigest().encode()


def _verified(file: bytes) -> tuple[bytes, bool]:
    """The content of a file and whether it is signed; an error if it was changed since.

    Done before HDF5 sees the file, which may crash on a damaged one.
    """
    length = len(_signature(b""))
    content, signature = file[:-length], file[-length:]
    if not signature.startswith(SIGNED):
        return file, False
    if signature != _signature(content):
        raise ValueError("the content does not match its checksum")
    return content, True


def network_described(net: Network | None) -> dict[str, Any] | None:
    """What JSON can hold of a network."""
    if net is None:
        return None
    graph = net.arch.describe()
    if type(net) is GDLN:
        return graph
    if type(net) is ReLUNetwork:
        return graph | {"leak": net.leak}
    described = {"class": f"{type(net).__module__}:{type(net).__qualname__}"}
    try:
        return described | {"description": json.loads(json.dumps(net.describe()))}
    except (TypeError, ValueError):  # a field that JSON cannot hold
        return described


def _rebuilt(described: dict[str, Any] | None) -> Network | None:
    if described is None:
        return None
    if "class" in described:
        return _rebuilt_own(described)
    arch = Architecture.from_description(described)
    return ReLUNetwork(arch, leak=described["leak"]) if "leak" in described else GDLN(arch)


def _rebuilt_own(described: dict[str, Any]) -> Network | None:
    """A network of a class of the user's, if that class is imported and knows how."""
    module, _, qualname = described["class"].partition(":")
    found: Any = sys.modules.get(module)
    for name in qualname.split("."):
        found = getattr(found, name, None)
    known = isinstance(found, type) and issubclass(found, Network)
    if known and "description" in described:
        return found.from_description(described["description"])
    warn_user(
        f"the trajectory's network, of class {described['class']!r}, is not restored: run.net is "
        "None. Import the module of the class before nr.load. If its fields are more than numbers "
        "and text, the class needs describe(), which returns what JSON can hold, and "
        "from_description(…)."
    )
    return None

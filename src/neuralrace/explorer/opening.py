"""Files that are dropped on the page: tables, studies, and archives of a study with its table."""

from __future__ import annotations

import base64
import io
import lzma
import posixpath
import re
import tomllib
import unicodedata
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

from neuralrace.errors import NeuralRaceError
from neuralrace.explorer import bounds, limits
from neuralrace.explorer.state import wrong

MEMBERS = 1000
"""Files of an archive that are looked at; a saved study has three, a report some dozens."""

BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    RuntimeError,  # encrypted; NotImplementedError, for odd compressions, is one too
    EOFError,
    OSError,
    ValueError,  # not base64, not UTF-8
)
"""What reading an archive raises that is none, or is damaged."""


def table_name(name: str) -> str:
    """The name of a table as a state may have it: other characters become "_".

    ```python
    >>> from neuralrace.explorer.opening import table_name
    >>> table_name("files/größe (1).CSV")
    'gro_e _1_.csv'

    ```
    """
    stem = re.sub(r"\.csv$", "", posixpath.basename(name), flags=re.IGNORECASE)
    plain = [c for c in unicodedata.normalize("NFKD", stem) if not unicodedata.combining(c)]
    stem = re.sub(r"[^A-Za-z0-9_ -]", "_", "".join(plain))[:60]
    return f"{'' if re.match('[A-Za-z0-9_]', stem) else 'table'}{stem}.csv"


def opened(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table with a name that a state may have."""
    name = table.get("name")
    return {"name": table_name(name) if isinstance(name, str) else name, "text": table.get("text")}


def parsed(text: str) -> dict[str, Any]:
    """The content of a study's text."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise wrong(
            "toml",
            "this is not valid TOML",
            f"{error}"[:200],
            "one key = value per line",
            "text stands in quotes, lists in [ ], tables in { }",
        ) from error


def with_table(state: Mapping[str, Any], table: Any) -> dict[str, Any]:
    """The state of a study with the table that it names, if that is the one."""
    task, known = state.get("task"), opened(table if isinstance(table, Mapping) else {})
    file = task.get("file") if isinstance(task, Mapping) else None
    if not isinstance(task, Mapping) or not isinstance(file, str):
        return dict(state)
    if table_name(file) != known["name"]:
        return dict(state)
    return {**state, "task": {**task, "file": known["name"]}, "table": known}


def unpacked(archive: Any) -> tuple[str, dict[str, str] | None]:
    """The study of an archive in base64, and the table that it names, if it is there."""
    try:
        data = base64.b64decode(archive, validate=True) if isinstance(archive, str) else b""
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            names = file.namelist()
            if len(names) > MEMBERS:
                raise bounds.too_much("zip", "this archive", f"{len(names)} files", MEMBERS)
            studies = sorted((n for n in names if n.endswith(".toml")), key=_place)
            if not studies:
                raise _none(", ".join(names[:6]) or "an empty archive")
            text = _read(file, studies[0])
            task = parsed(text).get("task")
            table = task.get("file") if isinstance(task, Mapping) else None
            if not isinstance(table, str):
                return text, None
            path = posixpath.normpath(posixpath.join(posixpath.dirname(studies[0]), table))
            return text, {"name": table, "text": _read(file, path)} if path in names else None
    except NeuralRaceError:
        raise
    except BROKEN as error:
        raise _none(f"{type(error).__name__}: {error}"[:200]) from error


def _place(name: str) -> tuple[bool, int, str]:
    """Archives of a report have one study as well, in a folder."""
    return posixpath.basename(name) != "study.toml", name.count("/"), name


def _read(file: zipfile.ZipFile, name: str) -> str:
    with file.open(name) as member:
        data = member.read(4 * limits.TABLE + 1)  # at most four bytes a character
    if len(data) > 4 * limits.TABLE:
        raise bounds.too_much("zip", f"{name:.60}", "a larger file", f"{limits.TABLE} characters")
    return data.decode("utf-8")


def _none(got: str) -> Exception:
    return wrong(
        "zip",
        "this archive holds no study",
        got,
        "study.toml, and the table that it reads",
        "drop the study.zip that Save study writes",
    )

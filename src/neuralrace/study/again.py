"""The report of a folder again, from what was computed: of a sweep also before it is complete."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from neuralrace.checks import file_path, writable_folder
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, require
from neuralrace.report import File, Page, Picture, from_json, write
from neuralrace.study.document import Document, read_document
from neuralrace.study.result import KEPT
from neuralrace.study.study import Study
from neuralrace.study.sweeping import SEED, STORE, WORDS, SweepResult, answer_cells
from neuralrace.sweeps import Sweep, open_sweep

TOML = "study.toml"
"""The study in the folder of its report."""


@final
@dataclass(frozen=True)
class Rewritten:
    """A report that was written again; see `write_again`.

    `pictures` counts those that stay as they were drawn; `missing` and `failed` are cells of a
    sweep.

    ```python
    >>> import tempfile, neuralrace as nr
    >>> study = nr.Study.of(questions=["reduce"], task={"builtin": "xor"},
    ...                     gatings={"xor": {"each": "sample"}})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = study.run().report(folder)
    ...     again = nr.study.write_again(folder)
    ...     again.page == page, again.missing, again.failed
    (True, 0, 0)

    ```
    """

    page: Path
    pictures: int = 0
    missing: int = 0
    failed: int = 0


@door
def write_again(folder: str | Path, out: str | Path | None = None) -> Rewritten:
    """Write the report of a folder again, from what was computed; nothing is trained or solved.

    Of a sweep, the cells that are done are shown, also while it runs. Of a single study, text,
    tables and curves are written again; pictures stay as they were drawn.

    **Arguments:** `folder` is that of the report, `out` another one to write to.

    ```python
    >>> import tempfile
    >>> import neuralrace as nr
    >>> from neuralrace.study import write_again
    >>> study = nr.Study.of(questions=["reduce"], task={"builtin": "xor"},
    ...                     gatings={"xor": {"each": "sample"}})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = study.run().report(folder)
    ...     before = page.read_text()
    ...     write_again(folder).page.read_text() == before
    True

    ```
    """
    folder = file_path(folder, "out/study")
    out = folder if out is None else file_path(out, "out/study")
    store = folder if (folder / "zarr.json").exists() else folder / STORE
    if store.exists():
        found = read_sweep(store)
        page = found.report(out, command=f"neuralrace run {TOML}")
        return Rewritten(page, 0, found.sweep.missing, len(found.sweep.failed))
    page = _kept(folder)
    if out.resolve() != folder.resolve():
        _copy(page, folder, writable_folder(out))
    pictures = sum(isinstance(part, Picture) for part in page.parts())
    return Rewritten(write(page, out), pictures)


def read_sweep(store: Path) -> SweepResult:
    """What a sweep of a study has found so far, from its store alone."""
    found = open_sweep(store)
    require(
        found.definition.function.endswith(f":{answer_cells.__name__}"),
        f"the sweep in {str(store)!r} is not that of a study",
        got=f"the function {found.definition.function!r}",
        wanted="a store that `neuralrace run` made",
        fix="nr.open_sweep reads any sweep, and Sweep.plot draws it",
    )
    return SweepResult(Study(_document(found, store.parent)), found)


def _document(found: Sweep, folder: Path) -> Document:
    """The study as the folder has it, if that is the one of the store; else as the store has it."""
    kept: dict[str, Any] = dict(found.definition.settings["study"])
    place = Path(found.definition.settings["folder"])
    if (folder / TOML).exists():
        written = read_document(folder / TOML).content
        same = {k: v for k, v in written.items() if k not in WORDS}
        if json.dumps(same, sort_keys=True) == json.dumps(kept, sort_keys=True):
            return Document(written, TOML, place)
        kept |= {k: written[k] for k in ("title", "about") if k in written}
    axes = {name: list(values) for name, values in found.definition.axes.items()}
    seeds = len(axes.pop(SEED))
    return Document({**kept, "sweep": {"over": axes, "seeds": seeds}}, TOML, place)


def _kept(folder: Path) -> Page:
    try:
        text = (folder / KEPT).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NeuralRaceError(
            f"{str(folder)!r} is not the folder of a report",
            got=f"neither {STORE} nor a {KEPT} that can be read",
            wanted="a folder that `neuralrace run` wrote",
            fix="name that folder, such as out/study, or run the study first",
        ) from error
    return from_json(text)


def _copy(page: Page, folder: Path, out: Path) -> None:
    """The files beside a page into another folder."""
    linked = [part for part in page.parts() if isinstance(part, File)]
    for file in [*page.files, *linked]:
        source, target = folder / file.name, out / file.name
        require(
            source.is_file(),
            f"the report in {str(folder)!r} has lost its file {file.name!r}",
            got="no such file",
            wanted="the whole folder, as it was written",
            fix="copy the file back, or run the study again",
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)

"""The files that a study needs, and their copies in the folder of a report.

Tables and masks go into a folder of their own, so that none has the name of a file of the report.
Modules keep their path, because they are imported by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralrace.report import File
from neuralrace.study.document import to_toml
from neuralrace.study.targets import own_file

if TYPE_CHECKING:
    from neuralrace.study.build import Problem
    from neuralrace.study.model import Settings

FOLDER = "files"
"""Where copies of tables and masks lie, below the folder of the report."""

STUDY, SCRIPT = "study.toml", "study.py"
"""The study and its script in the folder of a report."""


def copies(problem: Problem) -> dict[Path, str]:
    """Every file that the study reads, with the name of its copy."""
    return copies_of(problem.settings, problem.document.folder)


def copies_of(settings: Settings, folder: Path) -> dict[Path, str]:
    """Every file that a study with these settings reads, with the name of its copy."""
    tasks = (settings.task, *settings.training.evaluate.values())
    tables = [each.file for each in (*tasks, *settings.gatings.values())]
    found: dict[Path, str] = {}
    for table in dict.fromkeys(table for table in tables if table is not None):
        name, number = Path(table).name, 2
        while f"{FOLDER}/{name}" in found.values():
            name, number = f"{Path(table).stem}_{number}{Path(table).suffix}", number + 1
        found[folder / table] = f"{FOLDER}/{name}"
    for module in own_modules(settings):
        file = own_file(module, folder)
        if file is not None:
            found[file] = "/".join(module.split(".")) + ".py"
    return found


def own_modules(settings: Settings) -> list[str]:
    """The modules whose functions the study names."""
    tasks = (settings.task, *settings.training.evaluate.values())
    targets = [each.python for each in (*tasks, *settings.gatings.values())]
    return list(dict.fromkeys(target.partition(":")[0] for target in targets if target))


def check_modules(problem: Problem) -> None:
    """Raise where a module of the study has the name of the script in its report."""
    problem.place.require(
        SCRIPT not in copies(problem).values(),
        "a module beside the study has the name of the script in its report",
        got=SCRIPT,
        wanted="another name",
        fix="rename the module, and change `python` in the study",
    )


def copied_files(problem: Problem) -> list[File]:
    """The study, changed to read the copies, and the copies themselves."""
    names = copies(problem)
    content = _with_copies(problem.document.content, problem.document.folder, names)
    study = File(STUDY, "the study itself", to_toml(content))
    return [
        study,
        *(File(name, "used by the study", path.read_bytes()) for path, name in names.items()),
    ]


def originals(problem: Problem) -> list[Path]:
    """What a report must not overwrite: the study's own file and all that it reads."""
    return [Path(problem.document.file), *copies(problem)]


def _with_copies(content: Any, folder: Path, names: Mapping[Path, str]) -> Any:
    """The document with the names of the copies wherever a section has a file."""
    found = {}
    for key, value in content.items():
        if isinstance(value, Mapping):
            found[key] = _with_copies(value, folder, names)
        elif key == "file" and isinstance(value, str):
            found[key] = names.get(folder / value, value)
        else:
            found[key] = value
    return found

"""A page into a folder, with its data files beside it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from neuralrace import __version__
from neuralrace.checks import file_path, not_overwritten, put_file, writable_folder
from neuralrace.errors import check_kind, require
from neuralrace.plot import current_look
from neuralrace.report.chart import drawings
from neuralrace.report.markup import html, picture_width
from neuralrace.report.page import (
    PAGE,
    Curves,
    File,
    Page,
    Part,
    Picture,
    Provenance,
    Section,
    Table,
)


def write(page: Page, folder: str | os.PathLike[str], *, keep: Sequence[Path] = ()) -> Path:
    """Write a report: `index.html` in the folder, and its data files beside it.

    The page needs no network and can be opened from the file system. The same page gives the same
    bytes. Files whose content is not given must be in the folder already. Inside a block of
    `neuralrace.plot.look`, pictures and curves are also written as files of its formats. `keep` are
    files that must not change: an error is raised where the page would overwrite one, before
    anything is written.

    **Returns** the path of the page.

    ```python
    >>> import tempfile
    >>> from neuralrace import report
    >>> table = report.Table(("gating", "time"), [("xor", 1.25)], file="contest.csv")
    >>> page = report.Page("XoR", sections=[report.Section("Contest", [table])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(path.name for path in report.write(page, folder).parent.iterdir())
    ['contest.csv', 'index.html']

    ```
    """
    check_kind("page", page, Page, "for example Page('My study', answer=['…'])")
    target = writable_folder(file_path(folder, "report.write(page, 'out/report')"))
    page = _with_copies(page)
    contents = _contents(page)
    for name, content in {**contents, PAGE: b""}.items():
        path = target / name
        if content is not None and not (path.is_file() and path.read_bytes() == content):
            not_overwritten(path, keep)
    for name, content in contents.items():
        path = target / name
        if content is None:
            require(
                path.is_file(),
                f"the page links a file {name!r} that is not there",
                got="no content, and no such file in the folder of the page",
                wanted="the content, or the file",
                fix=f"File({name!r}, about, content), or save the file there first",
            )
            continue
        put_file(path, content)
    return put_file(target / PAGE, html(page, _widths(page, target)).encode())


def _widths(page: Page, folder: Path) -> dict[str, float]:
    """The widths of the pictures that are files beside the page."""
    found = {}
    for part in page.parts():
        if isinstance(part, Picture) and isinstance(part.source, str):
            with (folder / part.source).open("rb") as file:
                found[part.source] = picture_width(file.read(5000))
    return found


def _contents(page: Page) -> dict[str, bytes | None]:
    """What goes into each file that the page links; None for a file that is there already."""
    found: dict[str, bytes | None] = {}
    for name, content in _linked(page):
        data = content.encode() if isinstance(content, str) else content
        require(
            data is None or found.get(name, data) in (None, data),
            f"two things are to go into the same file {name!r}",
            got="two contents that differ",
            wanted="a name of its own for each file",
            fix="rename one of them",
        )
        found[name] = found.get(name) if data is None else data
    return found


def _linked(page: Page) -> Iterator[tuple[str, bytes | str | None]]:
    for part in page.parts():
        match part:
            case Table() | Curves() if part.file:
                yield part.file, part.csv()
            case Picture() if isinstance(part.source, str):
                yield part.source, None
            case File():
                yield part.name, part.content
            case _:
                pass
    yield from ((file.name, file.content) for file in page.files)


# ---- pictures and curves also as files ----------------------------------------------------------


def _with_copies(page: Page) -> Page:
    """The page with links under every picture and all curves to the same as files.

    They are called `figure_1.pdf`, `figure_2.pdf`, … in the order of the page. Pictures that are
    files already stay as they are. A picture that was made outside of the look has no PDF and no
    PNG: it is an SVG file.
    """
    if not current_look().formats:
        return page
    numbers = count(1)
    sections = [replace(s, parts=list(_copied(s.parts, numbers))) for s in page.sections]
    return replace(page, sections=sections)


def _copied(parts: Sequence[Part], numbers: Iterator[int]) -> Iterator[Part]:
    for part in parts:
        if isinstance(part, Section):
            yield replace(part, parts=list(_copied(part.parts, numbers)))
            continue
        yield part
        if isinstance(part, Curves):
            copies = drawings(part, current_look().formats)
        elif isinstance(part, Picture) and isinstance(part.source, bytes):
            own = "png" if part.source.startswith(b"\x89PNG") else "svg"
            there = {**part.copies, own: part.source}
            copies = {kind: there[kind] for kind in current_look().formats if kind in there}
        else:
            continue
        name = f"figure_{next(numbers)}"  # also of one without copies: a name stays the same
        yield from (File(f"{name}.{kind}", "", data) for kind, data in copies.items())


# ---- how the numbers of this process come about -------------------------------------------------


def provenance(
    *,
    seeds: Sequence[int] | str = (),
    command: str = "",
    seconds: float | None = None,
    date: str | None = None,
) -> Provenance:
    """What is known of this process: version, commit, date, devices and packages.

    **Arguments:** `seeds` are numbers or words. `date` is any text; without one it is now. A page
    is the same to the byte only with the same date.

    ```python
    >>> from neuralrace import report
    >>> made = report.provenance(seeds=(0, 1), date="2026-01-31")
    >>> made.date, made.seeds, "jax" in made.packages
    ('2026-01-31', (0, 1), True)

    ```
    """
    import jax

    from neuralrace.trajectory import versions

    kinds = [f"{device.device_kind} ({device.platform})" for device in jax.devices()]
    counted = {kind: kinds.count(kind) for kind in kinds}
    return Provenance(
        version=__version__,
        commit=commit(Path(__file__).parents[1]),
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC") if date is None else date,
        seeds=seeds if isinstance(seeds, str) else tuple(seeds),
        devices=tuple(k if n == 1 else f"{n} × {k}" for k, n in counted.items()),
        packages={name: v for name, v in versions().items() if name != "neuralrace"},
        command=command,
        seconds=seconds,
    )


def commit(folder: Path) -> str:
    """The commit of a package's source, with a plus where it has changed since; else nothing.

    A package that is only installed inside somebody's repository is not tracked there: no commit.
    """
    source = folder / "__init__.py"
    if _git(folder, "ls-files", "--error-unmatch", str(source)) is None:
        return ""
    head = _git(folder, "rev-parse", "--short", "HEAD")
    if not head:
        return ""
    return head + ("+" if _git(folder, "status", "--porcelain", "--", str(folder)) else "")


def _git(folder: Path, *words: str) -> str | None:
    """What git prints, or None where it fails or is not there."""
    try:
        run = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stdout.strip() if run.returncode == 0 else None

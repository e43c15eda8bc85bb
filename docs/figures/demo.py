"""The picture of README.md: the overview of the demo."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from neuralrace.demo import demo

from docs.figures import FOLDER


def main(folder: Path = FOLDER) -> None:
    """Run the demo and write its overview as `demo.png` into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as out:
        (folder / "demo.png").write_bytes(demo(Path(out)).picture.read_bytes())

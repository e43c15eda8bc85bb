"""The explorer inside a notebook: the same page, whose messages are answered by the kernel."""

from __future__ import annotations

import queue
import shutil
import tempfile
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from neuralrace.errors import NeuralRaceError, install_extra, require
from neuralrace.explorer.page import bundle, styles
from neuralrace.explorer.trust import Trust


@final
class Answerer:
    """Answers the messages of a notebook in threads: quick kinds in one, all others in another.

    A newer request of a kind cancels the older. It is the same handler as that of the server.
    """

    def __init__(self, trust: Trust, send: Any) -> None:
        self._trust, self._send = trust, send
        self._latest: dict[str, object] = {}
        self._lock = threading.Lock()
        self._lines: dict[bool, queue.Queue[Any]] = {True: queue.Queue(), False: queue.Queue()}
        self._threads: list[threading.Thread] = []

    def hear(self, message: Any) -> None:
        """Take one message of the page."""
        from neuralrace.explorer.limits import KINDS
        from neuralrace.explorer.messages import error_of, kind_of, number_of

        if isinstance(message, Mapping) and message.get("kind") == "cancel":
            with self._lock:
                self._latest.pop(str(message.get("of")), None)
            return
        try:
            kind = kind_of(message)
        except NeuralRaceError as error:
            self._send({"id": number_of(message), "kind": None, "error": error_of(error)})
            return
        wanted = object()
        with self._lock:
            self._latest[kind] = wanted
        if not self._threads:
            for line in self._lines.values():
                self._threads.append(threading.Thread(target=self._work, args=(line,), daemon=True))
                self._threads[-1].start()
        self._lines[KINDS[kind].lane == "quick"].put((message, kind, wanted))

    def _work(self, line: queue.Queue[Any]) -> None:
        import jax

        while True:
            message, kind, wanted = line.get()
            with jax.enable_x64(True):  # of this thread alone
                self._answer(message, kind, wanted)
            line.task_done()

    def _answer(self, message: Any, kind: str, wanted: object) -> None:
        from neuralrace.explorer.handler import CancelledError, answered

        def send(answer: dict[str, Any]) -> None:
            with self._lock:
                current = self._latest.get(kind) is wanted
            if not current and "part" in answer:
                raise CancelledError
            if not current:
                answer = {"id": answer["id"], "kind": kind, "cancelled": True}
            self._send(answer)

        if self._latest.get(kind) is wanted:
            answered(message, self._trust, send)
        else:
            self._send({"id": message.get("id"), "kind": kind, "cancelled": True})

    def wait(self) -> None:
        """Until all messages that were heard are answered."""
        for line in self._lines.values():
            line.join()


def explore(what: Any = None) -> Any:
    """The explorer inside a notebook: draw gates, move sliders, and watch the race.

    It is the page of `neuralrace explore`, computed by the kernel of the notebook. Tried in
    JupyterLab.

    **Arguments:** `what`, a `Study`, or a pair `(arch, data)` such as `nr.pathways` returns; the
    extended XoR by default. Functions that the study names are called: it is yours.

    **Returns** a widget. `widget.state` is the state of the page, and `widget.study()` the study
    that it shows.

    ```python
    >>> import neuralrace as nr
    >>> page = nr.explore(nr.tasks.xor_pathways(nr.tasks.xor()))
    >>> list(page.state["gatings"]["given"]["masks"])
    ['sample1', 'sample2', 'sample3', 'sample4']
    >>> page.study().settings.task.file
    'given.csv'

    ```
    """
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise NeuralRaceError(
            "the explorer in a notebook needs another package",
            got=str(error),
            wanted="anywidget",
            fix=install_extra("explore"),
        ) from error
    from neuralrace.explorer.state import first_state, questions_of, study_of

    folder = Path(tempfile.mkdtemp(prefix="neuralrace-"))
    try:
        state, trust = _begin(what, folder)
    except NeuralRaceError:
        folder.rmdir()
        raise
    shown = first_state(trust) if state is None else state

    class Explorer(anywidget.AnyWidget):
        """The explorer as a widget."""

        _esm = bundle()
        _css = styles()
        state = traitlets.Dict(shown).tag(sync=True)

        def __init__(self) -> None:
            super().__init__()
            self.answerer = Answerer(trust, self.send)
            self.on_msg(lambda widget, message, buffers: self.answerer.hear(message))

        def study(self, questions: list[str] | None = None) -> Any:
            """The study of what the page shows, with its own questions by default."""
            return study_of(self.state, questions or questions_of(self.state), trust)

    made = Explorer()
    weakref.finalize(made, shutil.rmtree, folder, ignore_errors=True)
    return made


def _begin(what: Any, tables: Path) -> tuple[dict[str, Any] | None, Trust]:
    """The first state of a page, and what it may name."""
    from neuralrace.architecture import Architecture
    from neuralrace.dataset import Dataset
    from neuralrace.study import Study

    if what is None:
        return None, Trust(tables)
    if isinstance(what, Study):
        document = what.document
        return None, Trust(tables, document.content, Path(document.folder).resolve(), True)
    if isinstance(what, tuple) and len(what) == 2:
        arch, data = what
        if isinstance(arch, Architecture) and isinstance(data, Dataset):
            from neuralrace.explorer.showing import state_of_pair

            require(
                not data.is_population,
                "the explorer shows samples and trains ReLU networks on the data",
                got=data,
                wanted="a Dataset of samples",
                fix="a population has second moments alone: draw samples from the distribution",
            )
            return state_of_pair(arch, data), Trust(tables)
    raise NeuralRaceError(
        "this cannot be explored",
        got=f"{type(what).__name__} {what!r:.60}",
        wanted="a Study, or a pair (arch, data)",
        fix="nr.explore(nr.Study.load('study.toml')), or nr.explore(nr.pathways(data, masks, 64))",
    )

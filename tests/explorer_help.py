"""What tests of the explorer share: states, and workers that are threads."""

import asyncio
import pickle
import threading

from neuralrace.explorer.handler import CancelledError, answered
from neuralrace.explorer.messages import Message, dumps


def xor_state(delta=0.5, **sections):
    """The extended XoR with its two gatings."""
    return {
        "task": {"builtin": "extended_xor", "parameters": {"delta": delta}},
        "network": {"widths": 32, "scale": 1e-3},
        "gatings": {
            "linear": {"builtin": "linear_pathways", "parameters": {"total": 32}},
            "xor": {"builtin": "xor_pathways", "parameters": {"total": 32}},
        },
        "training": {"learning_rate": 0.1, "steps": 60, "seeds": 2, "key": 0},
        "contest": {"criterion": 0.2},
        **sections,
    }


def ask(kind, trust, **message):
    """All messages of an answer."""
    said = []
    answered({"id": 1, "kind": kind, **message}, trust, said.append)
    assert "part" not in said[-1] and all("part" in each for each in said[:-1])
    dumps(said)  # every message is JSON
    return said


def result(kind, trust, **message):
    """The result of an answer that is no error."""
    end = ask(kind, trust, **message)[-1]
    assert "result" in end, end
    return end["result"]


def error(kind, trust, **message):
    """The error of an answer."""
    end = ask(kind, trust, **message)[-1]
    assert "error" in end, str(end)[:300]
    assert set(end["error"]) == {"what", "got", "wanted", "fix", "key"}
    assert "Traceback" not in str(end)
    return end["error"]


class ThreadWorker:
    """A worker that answers in a thread of this process, by any function."""

    function = staticmethod(answered)

    def __init__(self, trust, heard, lost, urgent):
        self.ready = asyncio.Event()
        self.ready.set()
        self._trust, self._heard, self._lost = trust, heard, lost
        self._loop = asyncio.get_running_loop()
        self.stopped = self.killed = None

    def ask(self, number, message):
        self.stopped = None
        message = pickle.loads(pickle.dumps(message))  # as through the pipe to a process

        def send(answer):
            said = Message.of(answer)
            if self.stopped == number and not said.last:
                raise CancelledError
            if not self.killed:
                self._loop.call_soon_threadsafe(self._heard, number, said)

        arguments = (message, self._trust, send)
        threading.Thread(target=type(self).function, args=arguments, daemon=True).start()

    def stop(self, number):
        self.stopped = number

    def kill(self):
        self.killed = True
        self._loop.call_soon_threadsafe(self._lost, self)

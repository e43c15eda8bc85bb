"""The package's own error, and `refuses`, with which other tests check what is refused."""

import contextlib
import json
import pickle
import re
import subprocess
import sys

import pytest

import neuralrace as nr
from neuralrace.errors import listed


@contextlib.contextmanager
def says(what, *, got, wanted, fix=""):
    """The block raises the package's error, with these words in these parts of its message."""
    with pytest.raises(nr.NeuralRaceError) as caught:
        yield
    error = caught.value
    assert isinstance(error, ValueError)
    for part, words in (("what", what), ("got", got), ("wanted", wanted), ("fix", fix)):
        text = str(getattr(error, part))
        assert text, f"the error has an empty {part}"
        assert words in text, f"{part} is {text!r}, without {words!r}"
        assert text in str(error)


@contextlib.contextmanager
def refuses(*names):
    """The block raises the package's error, complete, and its message names these."""
    with pytest.raises(nr.NeuralRaceError) as caught:
        yield
    error = caught.value
    assert all(str(part) for part in (error.what, error.got, error.wanted, error.fix))
    for name in names:
        assert re.search(rf"(?<!\w){re.escape(name)}(?!\w)", str(error)), f"no {name!r} in: {error}"


def test_message_has_all_four_parts_in_order():
    error = nr.NeuralRaceError("node 'h' is odd", got=3, wanted="an even size", fix="add one")
    lines = str(error).splitlines()
    assert lines == [
        "node 'h' is odd.",
        "  got:    3",
        "  wanted: an even size",
        "  fix:    add one",
    ]
    assert (error.what, error.got, error.wanted, error.fix) == (
        "node 'h' is odd",
        3,
        "an even size",
        "add one",
    )


def test_every_part_is_required():
    with pytest.raises(TypeError):
        nr.NeuralRaceError("something is wrong", got=1, wanted=2)  # type: ignore[call-arg]


def test_is_a_value_error_and_survives_pickling():
    error = nr.NeuralRaceError("w", got=(1, 2), wanted="x", fix="f")
    assert isinstance(error, ValueError)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is nr.NeuralRaceError
    assert str(again) == str(error)


def test_listed_sorts_and_quotes():
    assert listed({"b", "a"}) == "'a', 'b'"
    assert listed([]) == "-"


def test_says_fails_when_the_words_are_elsewhere():
    def wrong():
        raise nr.NeuralRaceError("node 'h'", got="3", wanted="4", fix="f")

    with says("node 'h'", got="3", wanted="4"):
        wrong()
    with pytest.raises(AssertionError, match="without '4'"), says("node 'h'", got="4", wanted="3"):
        wrong()


UNCHECKED = """
import json
import jax, networkx, numpy as np
import neuralrace as nr

x, y = {"x": np.zeros((3, 2))}, {"y": np.zeros((3, 1))}
net = nr.GDLN(nr.Architecture.chain(2, 4, 1))
calls = {
    "sizes": lambda: nr.Architecture([2, 3], {"W": ("x", "y")}),
    "edges": lambda: nr.Architecture({"x": 1, "y": 1}, [("x", "y")]),
    "name": lambda: nr.Architecture({"x": 1, 3: 1}, {"W": ("x", 3)}),
    "ends str": lambda: nr.Architecture({"x": 1, "y": 1}, {"W": "xy"}),
    "ends three": lambda: nr.Architecture({"x": 1, "y": 1}, {"W": ("x", "y", "y")}),
    "ends int": lambda: nr.Architecture({"x": 1, "y": 1}, {"W": 5}),
    "chain": lambda: nr.Architecture.chain(2, 2.5, 1),
    "layer": lambda: nr.Architecture.layered({"x": 1}, ["h"]),
    "x array": lambda: nr.Dataset(x["x"], y),
    "gates array": lambda: nr.Dataset(x, y, gates=np.array([1, 0, 1])),
    "gates number": lambda: nr.Dataset(x, y, gates=0),
    "labels list": lambda: nr.Dataset(x, y, labels=[1, 2, 3]),
    "x name": lambda: net(net.init(jax.random.key(0)), nr.Dataset({1: x["x"]}, y)),
    "weights": lambda: net([np.zeros((4, 2))], nr.Dataset(x, y)),
    "width": lambda: nr.pathways(nr.Dataset(x, y), {"h": None}, 2.5),
}
found = {}
for name, call in calls.items():
    try:
        found[name] = ["nothing was raised", repr(call())]
    except Exception as error:
        found[name] = [type(error).__name__, str(error)]
print(json.dumps(found))
"""


def test_messages_where_types_are_not_checked():
    """What the type checks of the tests stop first has a message of ours in ordinary use."""
    shown = subprocess.run([sys.executable, "-c", UNCHECKED], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    words = {
        "sizes": ("sizes", "list"),
        "edges": ("edges", "list"),
        "name": ("sizes", "int 3"),
        "ends str": ("edge 'W'", "'xy'", "(source node, target node)"),
        "ends three": ("edge 'W'", "('x', 'y', 'y')"),
        "ends int": ("edge 'W'", "5"),
        "chain": ("the size of node 'h'", "2.5", "at least 1"),
        "layer": ("a layer", "list"),
        "x array": ("x is", "ndarray"),
        "gates array": ("gates is", "ndarray"),
        "gates number": ("gates is", "int"),
        "labels list": ("labels is", "list"),
        "x name": ("x is", "{1: "),
        "weights": ("weights", "list"),
        "width": ("hidden", "2.5", "at least 1"),
    }
    assert set(found) == set(words)
    for name, (kind, message) in found.items():
        assert kind == "NeuralRaceError", f"{name}: {kind}: {message}"
        for word in words[name]:
            assert word in message, f"{name}: {word!r} is not in {message!r}"

"""A study as it is written: TOML in, dotted keys, changes with where they came from, TOML out."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, time
from pathlib import Path
from typing import Any, final

from neuralrace.checks import file_path
from neuralrace.errors import NeuralRaceError
from neuralrace.study.places import Place, StudyError

LARGEST = 10_000_000
"""Bytes of a study. A longer one is a mistake: tables of data have their own files."""

LIMITS: Mapping[str, float] = {
    "width": 2048,
    "layers": 4,
    "nodes": 160,
    "edges": 600,
    "gatings": 8,
    "pathways": 64,
    "steps": 50_000,
    "seeds": 8,
    "key": 2**31 - 1,
    "longest": 1e6,
    "start": 100.0,
}
"""Neurons of a hidden layer or a pathway; hidden layers; nodes and edges of a graph; candidate
gatings; pathways of a gating; steps of training; networks that are trained; the largest key of
random numbers; how long a race is followed, in units of one over its largest strength; and the
largest initial weights, since from larger ones a race takes for ever to be solved.
"""

NOTEBOOK = "the study"
"""What a study is called that was made in Python and has no file."""


@final
@dataclass(frozen=True)
class Document:
    """What stands in a study, not yet checked.

    `file` is how it is called in messages, `folder` what its paths are relative to, and `sources`
    says where a key came from if not from the file. One that is `limited` is only as large as the
    explorer takes on.
    """

    content: Mapping[str, Any]
    file: str = NOTEBOOK
    folder: Path = Path()
    sources: Mapping[str, str] = field(default_factory=dict)
    limited: bool = False

    @property
    def place(self) -> Place:
        return Place(self.file)

    def has(self, key: str) -> bool:
        """Whether the dotted key is written down."""
        value: Any = self.content
        for part in key.split("."):
            if not isinstance(value, Mapping) or part not in value:
                return False
            value = value[part]
        return True

    def changed(self, changes: Mapping[str, Any], source: str) -> Document:
        """With other values for some dotted keys.

        ```python
        >>> from neuralrace.study.document import Document
        >>> made = Document({"task": {"builtin": "xor"}}).changed({"network.scale": 0.1}, "--set")
        >>> made.content, made.sources
        ({'task': {'builtin': 'xor'}, 'network': {'scale': 0.1}}, {'network.scale': '--set'})

        ```
        """
        content: Any = dict(self.content)
        for key, value in changes.items():
            content = _with(content, key, key.split("."), value, Place(self.file, key))
        return replace(
            self, content=content, sources={**self.sources, **dict.fromkeys(changes, source)}
        )


def _with(content: Any, key: str, parts: list[str], value: Any, place: Place) -> dict[str, Any]:
    place.require(
        isinstance(content, Mapping) and all(parts),
        f"{key!r} is no dotted key of a study",
        got=repr(key),
        wanted="section.key, such as training.steps",
        fix="check the spelling",
    )
    first, *rest = parts
    inner = _with(content.get(first, {}), key, rest, value, place) if rest else value
    return {**content, first: inner}


def read_document(path: object) -> Document:
    """The document in a TOML file; a syntax error names the line."""
    path = file_path(path, "study.toml")
    place = Place(str(path))
    try:
        data = path.read_bytes()
        if len(data) > LARGEST:
            raise OSError(0, f"a file of {len(data)} bytes")
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no text in UTF-8"
        raise place.error(
            "this study cannot be read",
            got=reason or type(error).__name__,
            wanted="a TOML file",
            fix="check the name; `neuralrace new` writes a study to begin with",
        ) from error
    try:
        return Document(tomllib.loads(text), str(path), path.parent)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _syntax(place, text, error) from error


def _syntax(place: Place, text: str, error: Exception) -> StudyError:
    found = re.search(r"\(at (?:line (\d+), column (\d+)|end of document)\)", str(error))
    lines = text.splitlines() or [""]
    line = int(found[1]) if found and found[1] else len(lines)
    said = re.sub(r"\s*\(at .*\)", "", str(error))
    return Place(place.file, f"line {line}").error(
        f"this is not valid TOML: {said[:1].lower()}{said[1:]}",
        got=f"{lines[min(line, len(lines)) - 1].strip()!r:.100}",
        wanted="one key = value per line",
        fix="text stands in quotes, lists in [ ], tables in { }; look also at the line before",
    )


def value_of(text: str) -> Any:
    """What is typed after `--set key=`: a TOML value, or else text.

    ```python
    >>> from neuralrace.study.document import value_of
    >>> value_of("0.5"), value_of("[1, 2]"), value_of("adam")
    (0.5, [1, 2], 'adam')

    ```
    """
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


# ---- writing ------------------------------------------------------------------------------------


def to_toml(content: Mapping[str, Any]) -> str:
    """The document as TOML.

    ```python
    >>> from neuralrace.study.document import to_toml
    >>> print(to_toml({"title": "XoR", "task": {"builtin": "xor"}}))
    title = "XoR"
    <BLANKLINE>
    [task]
    builtin = "xor"
    <BLANKLINE>

    ```
    """
    import tomli_w

    return tomli_w.dumps(_writable(content))


def _writable(value: Any) -> Any:
    """A value of which TOML can hold all parts; keys without a value are left out."""
    if hasattr(value, "tolist"):  # arrays and NumPy's numbers
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _writable(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_writable(inner) for inner in value]
    if isinstance(value, bool | int | float | str | date | time):  # a datetime is a date as well
        return value
    raise NeuralRaceError(
        "this cannot be written into a study",
        got=f"{type(value).__name__} {value!r:.60}",
        wanted="numbers, texts, true or false, lists and tables of these",
        fix="name a function of yours instead: python = 'module:function'",
    )


def toml_value(value: Any) -> str:
    """A value as it is written after `key =`, on one line.

    ```python
    >>> from neuralrace.study.document import toml_value
    >>> toml_value({"name": "adam", "steps": [1, 2]})
    '{ name = "adam", steps = [1, 2] }'

    ```
    """
    if isinstance(value, Mapping):
        bare = lambda name: name if re.fullmatch("[A-Za-z0-9_-]+", name) else toml_value(name)
        pairs = (f"{bare(name)} = {toml_value(inner)}" for name, inner in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return to_toml({"value": value}).removeprefix("value = ").rstrip("\n")

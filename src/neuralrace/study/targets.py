"""Functions that a study names: those of `nr.tasks`, and the user's own as `module:function`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from neuralrace import tasks
from neuralrace.study.places import Place
from neuralrace.study.steps import value

TASKS = (
    "context_decision",
    "contextual",
    "contextual_classification",
    "cued_accumulation",
    "delayed_report",
    "extended_xor",
    "gaussian",
    "integration",
    "parity",
    "ring_classification",
    "routing",
    "sequence_teacher",
    "teacher",
    "transitive_inference",
    "xor",
)
"""The functions of `nr.tasks` that return a dataset."""

GATINGS = (
    "all_but_one",
    "all_subsets",
    "common_and_all_but_one",
    "common_and_single",
    "common_pathway",
    "linear_pathways",
    "pathway_per_context",
    "pathway_per_cue",
    "routing_pathways",
    "xor_pathways",
)
"""The functions of `nr.tasks` that gate a dataset."""


def builtin(name: str, known: tuple[str, ...], what: str, place: Place) -> Callable[..., Any]:
    """A function of `nr.tasks` by its name."""
    if name not in known:
        raise place.unknown(what, name, known)
    return getattr(tasks, name)


def own(target: str, folder: Path, place: Place) -> Callable[..., Any]:
    """The function `module:function`; a module beside the study comes before an installed one."""
    name, sign, attribute = target.partition(":")
    parts = [*name.split("."), attribute]
    place.require(
        sign and all(part.isidentifier() for part in parts),
        "this names no function",
        got=repr(target),
        wanted="module:function",
        fix="for example my_task:make, for `def make():` in my_task.py",
    )
    try:
        module = _module(name, folder)
    except (Exception, SystemExit) as error:
        raise place.error(
            f"the module {name!r} cannot be imported",
            got=f"{type(error).__name__}: {error}"[:300],
            wanted=f"{name}.py beside the study, or an installed module",
            fix="run `python -c 'import …'` in the folder of the study to see why",
        ) from error
    function = getattr(module, attribute, None)
    if not callable(function):
        there = [n for n, v in vars(module).items() if inspect.isfunction(v)]
        raise place.unknown(f"function of {name!r}", attribute, there)
    return function


def _module(name: str, folder: Path) -> Any:
    file = own_file(name, folder)
    if file is None:
        return importlib.import_module(name)
    # by its path, so that two studies may each have a my_task.py
    spec = importlib.util.spec_from_file_location(name.rpartition(".")[2], file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no module")
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    sys.path.insert(0, str(folder.resolve()))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = before
    return module


def own_file(name: str, folder: Path) -> Path | None:
    """The file of a module beside the study, or None."""
    file = folder.joinpath(*name.split(".")).with_suffix(".py")
    return file if file.is_file() else None


def called(
    function: Callable[..., Any], arguments: tuple, parameters: Mapping[str, Any], place: Place
) -> Any:
    """The function's value; parameters that it does not have are errors of their own keys."""
    here = place / "parameters"
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = None
    if signature is not None:
        taken = [*signature.parameters.values()]
        several = any(p.kind is p.VAR_KEYWORD for p in taken)
        named = [p.name for p in taken[len(arguments) :] if p.kind not in (p.VAR_POSITIONAL,)]
        for name in parameters:
            if name not in named and not several:
                raise (here / name).unknown("parameter", name, named)
        needed = [p for p in taken[len(arguments) :] if p.default is p.empty]
        needed = [p.name for p in needed if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        missing = [name for name in needed if name not in parameters]
        if missing:
            raise (here / missing[0]).error(
                "this parameter is missing",
                got=f"parameters {', '.join(parameters) or '–'}",
                wanted=f"a value for {', '.join(missing)}",
                fix=f"for example parameters = {{ {missing[0]} = 1 }}",
            )
    try:
        with here.blamed("try the function by itself, in Python"):
            return function(*arguments, **value(dict(parameters), {}.__getitem__))
    except SystemExit as error:
        raise place.error(
            "the function ended the program",
            got=f"SystemExit: {error}",
            wanted="a function that returns its value",
            fix="remove the call of exit()",
        ) from error

"""What a page offers: tasks, their parameters with bounds, gatings, and a state to begin with.

A parameter of a builtin task is a slider here, and a bound: a task is made only from values that
the table allows, so that no request can ask for more samples than fit into memory.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, final

from neuralrace import tasks
from neuralrace.explorer.limits import too_much
from neuralrace.study import LIMITS, StudyError

Kind = Literal["number", "integer", "switch", "choice"]


@final
@dataclass(frozen=True)
class Parameter:
    """A parameter of a task or gating: a slider from `least` to `most`, or a few choices.

    `limit` is the largest value that may be typed, `most` by default. A choice of `several` may
    also be a list of choices; `several` numbers are a list with a slider for each.
    """

    name: str
    kind: Kind
    default: Any
    least: float = 0.0
    most: float = 1.0
    step: float = 1.0
    about: str = ""
    label: str = ""
    choices: tuple[Any, ...] = ()
    limit: float | None = None
    several: bool = False

    def described(self) -> list[dict[str, Any]]:
        """The parameter for a page: one entry, or one for each of several numbers."""
        if self.several and self.kind == "number":
            each = [
                replace(self, name=f"{self.name}.{k}", label=f"{self.label} {k + 1}", default=value)
                for k, value in enumerate(self.default)
            ]
            return [entry for one in each for entry in replace(one, several=False).described()]
        found: dict[str, Any] = {
            "name": self.name,
            "label": self.label or self.name.replace("_", " "),
            "kind": self.kind,
            "default": self.default,
            "about": self.about,
        }
        if self.kind in ("number", "integer"):
            found |= {"min": self.least, "max": self.most, "step": self.step}
        if self.kind == "choice":
            found["choices"] = list(self.choices)
        return [found]

    def check(self, value: Any, key: str) -> None:
        """Raise where a value is not allowed."""
        if self.several and self.kind == "number":
            if not isinstance(value, list) or not 0 < len(value) <= len(self.default):
                raise StudyError(
                    "the page",
                    key,
                    f"{self.name} cannot be this",
                    got=f"{value!r:.60}",
                    wanted=f"a list of 1 to {len(self.default)} numbers",
                    fix=f"for example {list(self.default)!r}",
                )
            for k, one in enumerate(value):
                replace(self, several=False, default=self.default[k]).check(one, f"{key}.{k}")
            return
        if self.kind == "choice":
            many = value if isinstance(value, list) and self.several else [value]
            fine = 0 < len(many) <= 6 and all(v in self.choices for v in many)
            wanted = f"one of {', '.join(map(str, self.choices))}"
        elif self.kind == "switch":
            fine, wanted = isinstance(value, bool), "true or false"
        else:
            kinds = int if self.kind == "integer" else (int, float)
            most = self.most if self.limit is None else self.limit
            fine = isinstance(value, kinds) and not isinstance(value, bool)
            if fine and value > most:
                raise too_much(key, f"{self.label or self.name}", value, f"{most:g}")
            fine = fine and value >= self.least
            wanted = f"{'a whole number' if self.kind == 'integer' else 'a number'} "
            wanted += f"from {self.least:g} to {most:g}"
        if not fine:
            raise StudyError(
                "the page",
                key,
                f"{self.name} cannot be this",
                got=f"{value!r:.60}",
                wanted=wanted,
                fix=f"for example {self.default!r}",
            )


def _number(
    name: str,
    default: float | tuple[float, ...],
    least: float,
    most: float,
    step: float,
    **more: Any,
):
    return Parameter(name, "number", default, least, most, step, **more)


def _count(name: str, default: int, least: int, most: int, about: str = "", **more: Any):
    return Parameter(name, "integer", default, least, most, more.pop("step", 1), about, **more)


_STRUCTURES = ("hierarchy", "ring", "crossed")
_SIGN = Parameter("sign", "choice", 1.0, choices=(1.0, -1.0), about="swaps the two answers")
_KEY = _count(
    "key", 0, 0, 99, "which random draw of the task", label="task seed", limit=LIMITS["key"]
)
_TOTAL = _count("total", 128, 4, 512, "neurons of all pathways together", step=4,
                limit=LIMITS["width"], label="neurons in all")  # fmt: skip
_HIDDEN = _count("hidden", 64, 1, 256, "neurons of each pathway",
                 limit=LIMITS["width"], label="neurons each")  # fmt: skip

_STEPS = _count("steps", 6, 2, 12, "time steps", label="steps T")
_INPUTS = _count("inputs", 1, 1, 6, "numbers that are seen at every step")

PARAMETERS: Mapping[str, tuple[Parameter, ...]] = {
    "extended_xor": (
        _number("delta", 0.5, 0, 2, 0.005, label="Δ", limit=1e3,
                about="size of the coordinate that separates the answers"),
        _SIGN,
    ),
    "xor": (_SIGN,),
    "contextual": (
        _count("contexts", 3, 1, 6, "how many contexts", label="contexts C"),
        _count("items", 8, 2, 16, "how many items"),
        Parameter("structures", "choice", "hierarchy", choices=_STRUCTURES, several=True,
                  about="what holds in one context"),
        Parameter("common", "choice", "hierarchy", choices=_STRUCTURES,
                  about="what holds in every context"),
        _number("context_scale", 1.0, 0.05, 3, 0.05, about="size of the context features",
                limit=1e3),
        Parameter("joined", "switch", False, about="items and contexts in one input node"),
    ),
    "contextual_classification": (
        _count("contexts", 2, 1, 4, "how many contexts"),
        _number("bound", 1.0, 0.1, 3, 0.1, about="inputs lie between −bound and bound", limit=1e3),
        _count("order", 2, 1, 4, "nodes of the Gauss–Legendre rule per axis"),
    ),
    "context_decision": (
        _count("levels", 4, 2, 12, "values of each stream", step=2),
        _number("cue", 1.0, 0, 3, 0.05, about="size of the context features", limit=1e3),
    ),
    "parity": (_count("bits", 3, 1, 7, "how many signs"),),
    "transitive_inference": (
        _count("items", 6, 3, 16, "how many items are ranked"),
        Parameter("pairs", "choice", "adjacent", choices=("adjacent", "all"),
                  about="which pairs are shown"),
    ),
    "ring_classification": (
        _count("points", 24, 4, 96, "points on the circle"),
        _count("classes", 3, 2, 8, "how many classes"),
    ),
    "teacher": (
        _count("samples", 20, 2, 200, "how many samples"),
        _count("inputs", 5, 1, 20, "size of the input"),
        _count("outputs", 3, 1, 10, "size of the output"),
        _count("hidden", 3, 1, 20, "neurons of the teacher"),
        _KEY,
    ),
    "gaussian": (
        _count("samples", 20, 2, 200, "how many samples"),
        _count("inputs", 5, 1, 20, "size of the input"),
        _count("outputs", 3, 1, 10, "size of the output"),
        _KEY,
    ),
    "routing": (
        _count("M", 7, 2, 10, "input domains, and output domains", label="domains M"),
        _count("K", 4, 1, 10, "trained outputs of each input domain", label="routes K"),
        Parameter("distractors", "switch", False, about="other domains show random items"),
        _KEY,
    ),
    "integration": (
        _STEPS,
        _INPUTS,
        _number("keep", 1.0, 0, 1.2, 0.02, label="decay", limit=10,
                about="how much of the sum is kept from step to step"),
    ),
    "sequence_teacher": (
        _STEPS,
        _count("inputs", 5, 4, 8, "numbers that are seen at every step"),
        _count("outputs", 4, 4, 8, "size of the output"),
        _number("strengths", (1.0, 0.8, 0.6, 0.4), 0, 4, 0.05, label="size of mode",
                limit=1e3, several=True, about="how much a mode asks for of the last input, c"),
        _number("decays", (0.9, 0.7, 0.5, 0.3), 0, 1.2, 0.02, label="decay of mode",
                limit=10, several=True, about="how much of an input counts a step later, λ"),
        _KEY,
    ),
    "delayed_report": (
        _STEPS,
        _INPUTS,
        _count("shown", 1, 1, 2, "the step that is to be reported"),
        Parameter("distractors", "switch", False, about="other steps show inputs too"),
    ),
    "cued_accumulation": (
        _count("steps", 8, 2, 12, "time steps", label="steps T"),
        _count("channels", 2, 1, 3, "how many channels run at once"),
        _number("cue", 1.0, 0, 3, 0.05, about="size of the cue", limit=1e3),
    ),
}  # fmt: skip
"""The parameters of every builtin task."""

GATING_PARAMETERS: Mapping[str, tuple[Parameter, ...]] = {
    "linear_pathways": (_TOTAL,),
    "xor_pathways": (_TOTAL,),
    "common_and_all_but_one": (_HIDDEN,),
    "common_and_single": (_HIDDEN,),
    "all_but_one": (_HIDDEN,),
    "all_subsets": (_HIDDEN,),
    "pathway_per_context": (_HIDDEN,),
    "common_pathway": (_HIDDEN,),
    "pathway_per_cue": (_HIDDEN,),
    "routing_pathways": (
        Parameter("P", "choice", 1, choices=tuple(k * k for k in range(1, 11)),
                  label="routes per pathway",
                  about="how many routes share a pathway; all by default"),
        _HIDDEN,
    ),
}  # fmt: skip
"""The parameters of every builtin gating."""

_XOR = ("linear_pathways", "xor_pathways")
_CONTEXT = ("common_and_all_but_one", "common_and_single", "all_but_one", "all_subsets")
_SHORT = {
    "linear_pathways": "linear",
    "xor_pathways": "xor",
    "common_and_all_but_one": "all_but_one",
    "common_and_single": "single",
    "all_but_one": "all_but_one_alone",
    "all_subsets": "all_subsets",
    "pathway_per_context": "per_context",
    "routing_pathways": "routes",
    "common_pathway": "common",
    "pathway_per_cue": "per_cue",
}

GATINGS: Mapping[str, tuple[str, ...]] = {
    "extended_xor": _XOR,
    "xor": _XOR,
    "contextual": _CONTEXT,
    "contextual_classification": ("pathway_per_context",),
    "routing": ("routing_pathways",),
    "integration": ("common_pathway",),
    "sequence_teacher": ("common_pathway",),
    "delayed_report": ("common_pathway",),
    "cued_accumulation": ("common_pathway", "pathway_per_cue"),
}
"""The builtin gatings of every task that has some."""

LABELS: Mapping[str, tuple[str, ...]] = {
    "extended_xor": ("sample",),
    "xor": ("sample",),
    "contextual": ("context",),
    "contextual_classification": ("context",),
    "context_decision": ("answer", "context"),
    "parity": ("answer", "sample"),
    "transitive_inference": ("answer", "sample"),
    "ring_classification": ("answer", "sample"),
    "teacher": ("sample",),
    "gaussian": ("sample",),
}
"""Labels of every task for which one pathway per value is offered."""

TITLES: Mapping[str, str] = {
    "extended_xor": "Extended XoR",
    "xor": "XoR",
    "contextual": "Items in contexts",
    "contextual_classification": "Report one component",
    "context_decision": "Two streams and a cue",
    "parity": "Parity",
    "transitive_inference": "Transitive inference",
    "ring_classification": "Classes on a ring",
    "teacher": "A ReLU teacher",
    "gaussian": "Random targets",
    "routing": "Routing between domains",
    "integration": "A sum over time",
    "sequence_teacher": "Sequences that fade",
    "delayed_report": "A report after a delay",
    "cued_accumulation": "A cue says what to add up",
}
"""Every task, in the order in which a page lists them."""

SEQUENCES = ("integration", "sequence_teacher", "delayed_report", "cued_accumulation")
"""The tasks of recurrent networks."""


def check_builtin(section: Mapping[str, Any], key: str) -> None:
    """Raise where a builtin task or gating would be made from a value that is not allowed."""
    name, given = section.get("builtin"), section.get("parameters")
    table = GATING_PARAMETERS if key.startswith("gatings.") else PARAMETERS
    if not isinstance(name, str) or name not in table or not isinstance(given, Mapping):
        return  # the study says in its own words what is wrong
    known = {parameter.name: parameter for parameter in table[name]}
    for parameter, value in given.items():
        if parameter not in known:
            raise StudyError(
                "the page",
                f"{key}.parameters.{parameter}",
                f"the explorer has no parameter {parameter!r:.40} of {name}",
                got=f"{parameter!r:.40}",
                wanted=f"one of {', '.join(known) or '–'}",
                fix="leave it out, or run the study on the command line",
            )
        known[parameter].check(value, f"{key}.parameters.{parameter}")


def first_sentence(name: str) -> str:
    """The first sentence of the docstring of a function of `nr.tasks`, as a page shows it.

    ```python
    >>> from neuralrace.explorer.catalogue import first_sentence
    >>> first_sentence("xor")
    'Exclusive-or of two signs (NRR App. A.1, Fig. 3a).'

    ```
    """
    text = " ".join((inspect.getdoc(getattr(tasks, name)) or "").split("\n\n")[0].split())
    return re.sub(r"`([^`]*)`", lambda code: _SHORT.get(code[1], code[1]), text)


def called(task: Any, key: str) -> str:
    """What a page calls the number at a dotted key of a state with a builtin task.

    ```python
    >>> from neuralrace.explorer.catalogue import called
    >>> called("extended_xor", "task.parameters.delta"), called("xor", "network.scale")
    ('Δ', 'σ')
    >>> called(None, "task.scale.size")
    'scale of size'

    ```
    """
    name = key.rpartition(".")[2]
    if key.startswith("task.scale."):
        return f"scale of {name}"
    known = PARAMETERS.get(task, ()) if isinstance(task, str) else ()
    labels = {f"task.parameters.{p.name}": p.label for p in known} | {"network.scale": "σ"}
    return labels.get(key) or name.replace("_", " ")


def offered(task: str) -> list[dict[str, Any]]:
    """The gatings that a page offers for a task; `gating` is what to write into the state."""
    found: list[dict[str, Any]] = []
    for name in GATINGS.get(task, ()):
        parameters = GATING_PARAMETERS[name]
        values = {p.name: p.default for p in parameters if p.name != "P"}
        found.append(
            {
                "name": name,
                "short": _SHORT[name],
                "about": first_sentence(name),
                "parameters": [entry for p in parameters for entry in p.described()],
                "gating": {"builtin": name, "parameters": values},
            }
        )
    for label in LABELS.get(task, ()):
        about = "One pathway per sample." if label == "sample" else f"One pathway per {label}."
        made = {"name": f"each {label}", "short": f"by_{label}", "about": about, "parameters": []}
        found.append({**made, "gating": {"each": label}})
    if task == "routing" or task in SEQUENCES:
        return found  # masks are gates of one hidden layer
    always = {"name": "always on", "short": "whole", "about": "One pathway that is always on."}
    made = {"masks": {"all": "always"}}
    return [*found, {**always, "parameters": [], "gating": made}]


def default_state(task: str) -> dict[str, Any]:
    """A whole state to begin with, for a task."""
    values = {p.name: p.default for p in PARAMETERS[task] if p.name not in ("sign", "key")}
    values = {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
    if task == "contextual":
        values = {"contexts": 3, "items": 8, "context_scale": 1.0}
    if task == "routing":
        values = {"M": 7, "K": 4}
    state: dict[str, Any] = {
        "title": TITLES[task],
        "task": {"builtin": task, "parameters": values} if values else {"builtin": task},
        "network": {"widths": 128, "scale": 1e-3},
        "gatings": {},
        "training": {"learning_rate": 0.05, "steps": 600, "seeds": 2, "key": 0},
        "contest": {"criterion": 0.5, "relative": True},
    }
    gatings = state["gatings"]
    for gating in offered(task)[:2]:
        gatings[gating["short"]] = gating["gating"]
    if task in ("extended_xor", "xor"):
        state["contest"] = {"criterion": 0.2}
    elif task == "contextual":
        for gating in gatings.values():
            gating["parameters"] = {"hidden": 48}
        state["network"] = {"widths": 192, "scale": 3e-5}
        state["training"] |= {"learning_rate": 0.048, "steps": 3200, "seeds": 1}
        state["contest"] = {"criterion": 0.1, "relative": True}
    elif task == "routing":
        shared = {"builtin": "routing_pathways", "parameters": {"hidden": 64}}
        dedicated = {"builtin": "routing_pathways", "parameters": {"hidden": 64, "P": 1}}
        state["gatings"] = {"shared": shared, "dedicated": dedicated}
        state["network"] = {"widths": [64, 64], "scale": 0.02}
        state["training"] |= {"steps": 2000, "seeds": 1}
        state["contest"] = {"criterion": 0.1, "relative": True, "start": 0.05}
    elif task in SEQUENCES:
        for gating in gatings.values():
            gating["parameters"] = {"hidden": 40}
        state["network"] = {"widths": 40, "recurrent": True, "scale": 1e-3}
        state["training"] |= {"learning_rate": 0.01, "steps": 3000, "seeds": 1}
        cued = task == "cued_accumulation"  # a common pathway can learn half of it
        state["contest"] = {"criterion": 0.6 if cued else 0.5, "relative": True}
        if task == "delayed_report":
            state["contest"]["start"] = 0.3  # from small random weights nothing grows
    else:
        state["training"] |= {"learning_rate": 0.1, "steps": 1000}
    return state


def catalogue() -> list[dict[str, Any]]:
    """All tasks for a page."""
    return [
        {
            "name": name,
            "title": title,
            "about": first_sentence(name),
            "parameters": [entry for p in PARAMETERS[name] for entry in p.described()],
            "gatings": offered(name),
            "state": default_state(name),
        }
        for name, title in TITLES.items()
    ]

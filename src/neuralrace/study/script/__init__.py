"""A study as a Python script: the same computations, written with the library's public names."""

from __future__ import annotations

from pathlib import Path

from neuralrace import __version__
from neuralrace.study.build import Problem
from neuralrace.study.copies import own_modules
from neuralrace.study.script.code import one_line
from neuralrace.study.script.task import gating_lines, task_lines
from neuralrace.study.script.theory import phase_lines, theory_lines
from neuralrace.study.script.training import gates_lines, training_lines

NAMES = {
    "contest": "who",
    "reduce": "races",
    "modes": "modes",
    "phase_diagram": "phases",
    "train": "relu_runs",
    "predict": "predicted",
    "types": "types",
    "discover": "found",
    "certify": "certificates",
    "explain": "explanation",
}
"""What the script calls the answer to each question."""


def script_of(problem: Problem) -> str:
    """The whole script."""
    settings = problem.settings
    body = [
        *task_lines(problem),
        *gating_lines(problem),
        *theory_lines(problem),
        *phase_lines(problem),
        *training_lines(problem),
        *gates_lines(problem),
    ]
    text = "\n".join(body)
    own = own_modules(problem)
    title = one_line(settings.title or Path(problem.document.file).stem)
    head = [
        f'"""{title}. Made from a study by neuralrace {__version__}."""',
        "",
        *(["import sys"] if own else []),
        *(["from pathlib import Path"] if "HERE" in text or own else []),
        *([""] if own or "HERE" in text else []),
        "import jax",
        *(["import numpy as np"] if "np." in text else []),
        *(["import optax"] if "optax." in text else []),
        "",
        "import neuralrace as nr",
        "",
        'jax.config.update("jax_enable_x64", True)',
        *(
            ["HERE = Path(__file__).parent  # the files of the study lie beside this script"]
            * ("HERE" in text or bool(own))
        ),
    ]
    if own:
        head += ["sys.path.insert(0, str(HERE))", ""]
        head += [f"import {name}  # noqa: E402" for name in own]
    return "\n".join([*head, *body, ""])

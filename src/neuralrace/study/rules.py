"""What the sections of a study must follow together, above all what each question needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from neuralrace.errors import spelled
from neuralrace.study.questions import QUESTIONS
from neuralrace.study.sections import Rule

if TYPE_CHECKING:
    from neuralrace.study.model import Settings

TAKEN = ("aligned", "wide", "types", "trained")
"""Names that no gating can have: the reference of a contest, and whose times a sweep has."""


def rules_of_gatings(settings: Settings) -> Iterator[Rule]:
    """What names and gates of gatings must follow."""
    chosen = settings.predict.gating
    for name, gating in settings.gatings.items():
        yield Rule(
            re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) and name not in TAKEN,
            f"gatings.{name}",
            f"{name!r:.60} cannot be the name of a gating",
            f"{name!r:.60}",
            f"letters, digits and _, a letter first; none of {', '.join(TAKEN)}",
            "rename it, for example [gatings.by_context]",
        )
        yield Rule(
            gating.gates is None or not settings.network.in_a_row,
            f"gatings.{name}.gates",
            "gates belong to the nodes and edges of a graph",
            "gates without [network.graph]",
            "a graph, or masks for pathways",
            "add [network.graph], or write masks in place of gates",
        )
    yield Rule(
        chosen is None or chosen in settings.gatings,
        "predict.gating",
        f"there is no gating {chosen!r:.80}",
        f"{chosen!r:.80}",
        f"one of {', '.join(settings.gatings)}",
        spelled(chosen, settings.gatings, "choose one of these, or leave it out"),
    )


def rules_of_questions(settings: Settings) -> Iterator[Rule]:
    """What each question needs of the other sections."""
    asked, network, training = settings.questions, settings.network, settings.training
    loss, start = training.loss, settings.contest.start
    of_these = lambda *questions: [question for question in questions if question in asked]
    needing = lambda need: [q for q in asked if need in QUESTIONS[q].needs]
    several, one = network.layers > 1, (network.widths or (100,))[0]
    masked = [name for name, gating in settings.gatings.items() if gating.is_masked]
    twice = [question for i, question in enumerate(asked) if question in asked[:i]]
    how = "an optimizer" if training.optimizer else loss
    yield Rule(
        settings.sweep is None or training.checkpoint is None,
        "training.checkpoint",
        "all cells of a sweep would use the same checkpoint",
        repr(training.checkpoint),
        "no checkpoint: a sweep continues from its own store",
        "leave out checkpoint",
    )
    yield Rule(
        not twice,
        "questions",
        "a question is asked twice",
        ", ".join(twice),
        "each once",
        "leave one out",
    )
    yield Rule(
        settings.phase_diagram or "phase_diagram" not in asked,
        "phase_diagram",
        "a phase diagram needs to know what is varied",
        "no section [phase_diagram]",
        "the key that is varied, and its values",
        'add [phase_diagram] with key = "task.parameters.delta" and values = [0, 1, 2]',
    )
    for question in needing("gatings"):
        graph = question == "reduce" and not network.in_a_row
        yield Rule(
            settings.gatings or graph,
            "questions",
            f"{question!r} is about gatings, and there are none",
            "no section [gatings.NAME]",
            "at least one gating" + " or a [network.graph]" * (question == "reduce"),
            'add [gatings.one] with masks = { all = "always" }',
            question,
        )
    for question in needing("descent"):
        yield Rule(
            training.is_descent,
            "questions",
            f"{question!r} is known for gradient descent on the squared loss",
            how,
            "learning_rate in place of optimizer, and loss = 'squared'",
            f"leave out {question!r}, or change [training]",
            question,
        )
    more = f"momentum = {training.momentum:g}, weight_decay = {training.weight_decay:g}"
    for question in of_these("types", "explain"):
        yield Rule(
            training.is_plain or not training.is_descent,
            "questions",
            f"{question!r} is known for descent without momentum and weight decay",
            more,
            "neither in [training]",
            f"leave out {question!r}, or change [training]",
            question,
        )
    for question in of_these("contest", "phase_diagram") if settings.contest.check else ():
        yield Rule(
            not training.weight_decay,
            "contest.check",
            "whether networks with weight decay would keep the gates of a contest is not known",
            f"weight_decay = {training.weight_decay:g}, and {question!r} with its check",
            "check = false in [contest], which leaves times and winner",
            "write check = false, or leave out weight_decay",
            question,
        )
    yield Rule(
        loss == "squared" or "certify" not in asked,
        "questions",
        "'certify' measures outputs in units of the squared loss",
        loss,
        "loss = 'squared'",
        "leave out 'certify', or change [training]",
        "certify",
    )
    yield Rule(
        training.is_plain or "discover" not in asked or settings.discover.pathways != "elbow",
        "discover.pathways",
        "how many pathways it takes is decided by gated networks that follow gradient descent "
        "on the squared loss",
        how,
        "the number of pathways",
        "for example pathways = 4 in [discover], or change [training]",
        "discover",
    )
    for question in needing("gaussian"):
        yield Rule(
            network.kind == "gaussian" or (start is not None and question != "types"),
            "questions",
            f"{question!r} is known for Gaussian initial weights",
            f"network.kind = {network.kind!r}",
            "kind = 'gaussian' in [network]",
            f"leave out kind, or {question!r}",
            question,
        )
    yield Rule(
        not network.bias or "types" not in asked,
        "questions",
        "'types' is known for networks without a bias",
        "bias = true",
        "a column of ones in the task in its place",
        "leave out bias, or 'types'",
        "types",
    )
    for question in of_these("contest", "phase_diagram") if settings.contest.check else ():
        yield Rule(
            not network.bias,
            "contest.check",
            "whether networks with output biases would keep the gates of a contest is not known",
            f"bias = true, and the question {question!r} with its check",
            "check = false in [contest], which leaves times and winner",
            "write check = false; or leave out bias and add a column of ones to the task, "
            "which is a bias of the hidden neurons",
            question,
        )
    for question in [q for q in asked if QUESTIONS[q].gated] if masked else ():
        yield Rule(
            not several,
            f"gatings.{masked[0]}",
            "pathways by masks have one hidden layer, and the network has several",
            f"{network.layers} hidden layers, and the question {question!r}",
            "one hidden layer, or the gates of a graph",
            ("leave out depth" if network.depth else f"write widths = {one}")
            + ", or write a [network.graph] with gates = { node = 'expression' }",
            question,
        )
    yield Rule(
        not several or start is not None or "modes" not in asked,
        "questions",
        "'modes' knows the average start of one hidden layer",
        "several hidden layers",
        "one width in [network], or an aligned start",
        "write widths = 64, or start = 0.1 in [contest]",
        "modes",
    )
    for question in needing("layer"):
        yield Rule(
            not several and network.in_a_row,
            "questions",
            f"{question!r} is known for one hidden layer",
            "several hidden layers" if network.in_a_row else "a graph, or a recurrent network",
            "one width in [network]",
            f"leave out {question!r}, or write widths = 128",
            question,
        )

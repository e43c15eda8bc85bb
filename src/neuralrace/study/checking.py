"""From a document to settings: kinds and keys by pydantic, then what must fit together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from neuralrace.errors import NeuralRaceError, install_extra, nearest_name
from neuralrace.study.document import Document, toml_value
from neuralrace.study.places import Place, StudyError, nearest, raise_all, together

if TYPE_CHECKING:
    from neuralrace.study.model import Settings

SEE = "`neuralrace new` writes a study with every section; docs/studies.md has every key"


def settings_of(document: Document) -> Settings:
    """The settings of a study, or an error with all that is wrong in it, by file and key."""
    model = need_pydantic()
    from pydantic import ValidationError

    try:
        settings = model.Settings.model_validate(dict(document.content))
    except ValidationError as error:
        raise together(_invalid(document, error)) from error
    checks = (_task, _network, _gatings, _training, _contest, _questions)
    raise_all(wrong for check in checks for wrong in check(settings, document.place))
    return settings


def need_pydantic() -> Any:
    """The models; pydantic is part of the extra `study`."""
    try:
        from neuralrace.study import model
    except ImportError as error:
        raise NeuralRaceError(
            "studies need another package",
            got=str(error),
            wanted="pydantic",
            fix=install_extra("study"),
        ) from error
    return model


# ---- what pydantic found ------------------------------------------------------------------------


def _invalid(document: Document, error: Any) -> Iterator[StudyError]:
    """Every key that is unknown, missing or of another kind, the unknown ones first."""
    problems: dict[str, list[dict[str, Any]]] = {}
    for wrong in error.errors(include_url=False):
        problems.setdefault(_key(document, wrong), []).append(wrong)
    unknown = [key for key, those in problems.items() if those[0]["type"] == "extra_forbidden"]
    meant = {f"{_section(key)}{nearest_name(_name(key), _fields(_section(key)[:-1]))}"
             for key in unknown}  # fmt: skip
    for key in sorted(problems, key=lambda k: k not in unknown):
        # a value of several possible kinds is one problem: that of the kind it is nearest to
        inner = any(other.startswith(f"{key}.") for other in problems)
        # what is missing is often the same key, misspelled
        misspelled = problems[key][0]["type"] == "missing" and key in meant
        if not inner and not misspelled:
            yield _invalid_key(Place(document.file, key), problems[key])


def _section(key: str) -> str:
    """What stands before the last part of a key, with its dot."""
    return key[: key.rfind(".") + 1]


def _name(key: str) -> str:
    return key.rpartition(".")[2]


WANTED = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "model_type": "a table",
    "string_type": "a text",
    "tuple_type": "a list",
}
"""What pydantic's kinds are called in TOML."""


def _invalid_key(place: Place, problems: list[dict[str, Any]]) -> StudyError:
    """What pydantic found at one key."""
    key, first = place.key, problems[0]
    match first["type"]:
        case "extra_forbidden":
            name = _name(key)
            known = list(_fields(_section(key)[:-1]))
            return place.error(
                f"there is no key {name!r}",
                got=f"{name} = {first['input']!r:.60}",
                wanted=f"one of {', '.join(known)}",
                fix=nearest(name, known) or f"leave it out; {SEE}",
            )
        case "missing":
            return place.error(
                "this key is missing",
                got=f"no {key!r}",
                wanted=_about(key) or "a value",
                fix=f"add it{_example(key)}",
            )
    kinds = [str(WANTED.get(each["type"], each["msg"])) for each in problems]
    wanted = " or ".join(dict.fromkeys(kinds))
    value = first["input"]
    close = ""
    if first["type"] == "literal_error":
        close = nearest(str(value), first["ctx"]["expected"].replace("'", "").split(", "))
    about = _about(key)
    return place.error(
        f"{_entry(first)} is not valid",
        got=f"{type(value).__name__} {value!r:.80}",
        wanted=wanted + (f": {about}" if about else ""),
        fix=close or f"change it{_example(key)}",
    )


def _key(document: Document, found: Mapping[str, Any]) -> str:
    """The dotted key of a problem: as much of pydantic's place as stands in the document."""
    value: Any = document.content
    parts: list[str] = []
    for part in found["loc"]:
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, Mapping) and _inside(value, str(part)) is not None:
            value = _inside(value, str(part))  # tables in tables
        elif found["type"] == "missing" and part == found["loc"][-1]:
            pass
        else:
            continue
        parts.append(str(part))
    return ".".join(parts)


def _inside(value: Any, key: str) -> Any:
    """What stands at a dotted key; None where nothing does."""
    for piece in key.split("."):
        value = value.get(piece) if isinstance(value, Mapping) else None
    return value


def _entry(found: Mapping[str, Any]) -> str:
    """Which entry of a list is at fault, counted from 1."""
    places = [part for part in found["loc"] if isinstance(part, int)]
    return f"entry {places[-1] + 1}" if places else "this value"


def _fields(key: str) -> Mapping[str, Any]:
    """The fields of the section at a dotted key."""
    from pydantic import BaseModel

    def models(annotation: Any) -> Iterator[type[BaseModel]]:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield annotation
        for inner in getattr(annotation, "__args__", ()):
            yield from models(inner)

    model = need_pydantic()
    if key.startswith("sweep.over."):
        return model.fields_of(model.Spread)
    current: type[BaseModel] = model.Settings
    below: list[type[BaseModel]] = []
    for part in key.split(".") if key else ():
        if part in model.fields_of(current) and not below:
            found = list(models(model.fields_of(current)[part].annotation))
            is_table = "dict" in str(model.fields_of(current)[part].annotation)
            if found and is_table:  # {name: section}: the next part is a name
                below = found
            elif found:
                current = found[0]
            else:
                return {}
        elif below:
            current, below = below[0], []
        else:
            return {}
    return model.fields_of(current)


def _field(key: str) -> Any:
    parts = key.split(".")
    while parts:
        field = _fields(".".join(parts[:-1])).get(parts[-1])
        if field is not None:
            return field
        parts.pop()
    return None


def _about(key: str) -> str:
    field = _field(key)
    return "" if field is None else field.description or ""


def _example(key: str) -> str:
    section, _, last = key.rpartition(".")
    field = _fields(section).get(last)
    if field is None or not field.examples:
        return f"; {SEE}"
    return f", for example {last} = {toml_value(field.examples[0])}"


# ---- what must fit together ---------------------------------------------------------------------


def _one_of(
    section: Any, keys: Sequence[str], place: Place, example: str
) -> tuple[str, list[StudyError]]:
    """The one of these keys that is there; what is wrong if there are several or none."""
    there = [key for key in keys if getattr(section, key) is not None]
    if len(there) == 1:
        return there[0], []
    error = place.error(
        "several of these keys are given" if there else "one of these keys is needed",
        got=", ".join(there) or "none of them",
        wanted=f"exactly one of {', '.join(keys)}",
        fix=f"keep one of {', '.join(there)}" if there else f"for example {example}",
    )
    return "", [error]


def _only_with(
    section: Any, keys: Sequence[str], used: bool, place: Place, why: str
) -> Iterator[StudyError]:
    for key in keys if not used else ():
        if key in section.model_fields_set:
            yield (place / key).error(
                "this key has no meaning here",
                got=f"{key} = {getattr(section, key)!r:.60}",
                wanted=why,
                fix=f"leave out {key}",
            )


def _check_task(task: Any, place: Place) -> Iterator[StudyError]:
    """A task by itself: where it comes from, and what goes with that."""
    ways, example = ("builtin", "file", "python"), 'builtin = "extended_xor"'
    source, wrong = _one_of(task, ways, place, example)
    yield from wrong
    if wrong:
        return
    called = source != "file"
    yield from _only_with(task, ["parameters"], called, place, "`builtin` or `python` with it")
    columns = ["x", "y", "labels", "weight", "standardise", "scale", "groups"]
    yield from _only_with(task, columns, source == "file", place, "`file` with it")
    shown, wanted = ([n for names in end.values() for n in names] for end in (task.x, task.y))
    both = [name for name in shown if name in wanted]
    if both:
        yield (place / "x").error(
            "a column is an input and a target",
            got=", ".join(both),
            wanted="each column in x or in y",
            fix="leave it out of one of them; masks may name any column",
        )


def _task(settings: Settings, place: Place) -> Iterator[StudyError]:
    yield from _check_task(settings.task, place / "task")
    for name, task in settings.training.evaluate.items():
        yield from _check_task(task, place / "training" / "evaluate" / name)


def _network(settings: Settings, place: Place) -> Iterator[StudyError]:
    network, here = settings.network, place / "network"
    given = network.model_fields_set
    if network.depth is not None and len(network.widths) > 1:
        yield (here / "depth").error(
            "there are as many layers as widths",
            got=f"depth = {network.depth}, widths = {list(network.widths)}",
            wanted="one width with a depth, or a list of widths",
            fix="leave out depth",
        )
    if not network.widths:
        yield (here / "widths").error(
            "the network has no hidden layer",
            got="widths = []",
            wanted="at least one width",
            fix="for example widths = 128",
        )
    if network.graph is not None:
        for key in ("widths", "depth"):
            if key in given:
                yield (here / key).error(
                    "a graph has its own sizes",
                    got=f"{key} and graph",
                    wanted="one of them",
                    fix=f"leave out {key}, or the graph",
                )


def _gatings(settings: Settings, place: Place) -> Iterator[StudyError]:
    ways = ("masks", "each", "file", "builtin", "gates", "python")
    for name, gating in settings.gatings.items():
        here = place / "gatings" / name
        if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) or name == "aligned":
            yield here.error(
                f"{name!r:.60} cannot be the name of a gating",
                got=f"{name!r:.60}",
                wanted="letters, digits and _, a letter first; 'aligned' is the reference",
                fix="rename it, for example [gatings.by_context]",
            )
        way, wrong = _one_of(gating, ways, here, 'masks = { one = "context == 1" }')
        yield from wrong
        if wrong:
            continue
        called = way in ("builtin", "python")
        yield from _only_with(gating, ["parameters"], called, here, "`builtin` or `python` with it")
        yield from _only_with(
            gating,
            ["hidden", "inputs", "outputs"],
            _is_masked(gating),
            here,
            "`masks`, `each` or `file` with it",
        )
        if way == "gates" and settings.network.graph is None:
            yield (here / "gates").error(
                "gates belong to the nodes and edges of a graph",
                got="gates without [network.graph]",
                wanted="a graph, or masks for pathways",
                fix="add [network.graph], or write masks in place of gates",
            )
    chosen = settings.predict.gating
    if chosen is not None and chosen not in settings.gatings:
        yield (place / "predict" / "gating").unknown("gating", chosen, settings.gatings)


def _is_masked(gating: Any) -> bool:
    """Whether a gating says for each pathway where it is on."""
    return any(getattr(gating, way) is not None for way in ("masks", "each", "file"))


def _training(settings: Settings, place: Place) -> Iterator[StudyError]:
    training, here = settings.training, place / "training"
    if training.learning_rate is not None and training.optimizer is not None:
        yield (here / "learning_rate").error(
            "an optimizer has its own learning rate",
            got="learning_rate and optimizer",
            wanted="one of them",
            fix='write optimizer = { name = "adam", learning_rate = 0.01 }',
        )
    if training.record_at is not None and training.record_every is not None:
        yield (here / "record_at").error(
            "record_every and record_at both say when to record",
            got="record_every and record_at",
            wanted="one of them",
            fix="leave out record_every",
        )


def _contest(settings: Settings, place: Place) -> Iterator[StudyError]:
    options = settings.contest
    if options.relative and options.criterion is not None and options.criterion >= 1:
        yield (place / "contest" / "criterion").error(
            "a relative criterion is a share of the loss of answering zero",
            got=f"criterion = {options.criterion:g}, relative = true",
            wanted="a share below 1",
            fix="for example criterion = 0.5; or leave out relative",
        )


ABOUT_GATINGS = ("contest", "reduce", "modes", "predict", "certify", "phase_diagram")
"""Questions about the gatings of a study."""

NEED_DESCENT = ("predict", "types", "explain")
"""Questions whose theory is that of gradient descent on the squared loss."""


def _questions(settings: Settings, place: Place) -> Iterator[StudyError]:
    asked, here = settings.questions, place / "questions"
    twice = [q for i, q in enumerate(asked) if q in asked[:i]]
    if twice:
        yield here.error(
            "a question is asked twice", got=twice[0], wanted="each once", fix="leave one out"
        )
    if "phase_diagram" in asked and settings.phase_diagram is None:
        yield (place / "phase_diagram").error(
            "a phase diagram needs to know what is varied",
            got="no section [phase_diagram]",
            wanted="the key that is varied, and its values",
            fix='add [phase_diagram] with key = "task.parameters.delta" and values = [0, 1, 2]',
        )
    for question in ("predict", "certify", "phase_diagram"):
        if question in asked and not settings.gatings:
            yield here.error(
                f"{question!r} is about gatings, and there are none",
                got="no section [gatings.NAME]",
                wanted="at least one gating",
                fix='add [gatings.one] with masks = { all = "always" }',
            )
    if "reduce" in asked and not settings.gatings and settings.network.graph is None:
        yield here.error(
            "'reduce' is about a gating or a graph",
            got="neither [gatings.NAME] nor [network.graph]",
            wanted="at least one of them",
            fix='add [gatings.one] with masks = { all = "always" }',
        )
    loss, optimizer = settings.training.loss, settings.training.optimizer
    how = "an optimizer" if optimizer else loss
    for question in NEED_DESCENT:
        if question in asked and (optimizer is not None or loss != "squared"):
            yield here.error(
                f"{question!r} is known for gradient descent on the squared loss",
                got=how,
                wanted="learning_rate in place of optimizer, and loss = 'squared'",
                fix=f"leave out {question!r}, or change [training]",
            )
    if "certify" in asked and loss != "squared":
        yield here.error(
            "'certify' measures outputs in units of the squared loss",
            got=loss,
            wanted="loss = 'squared'",
            fix="leave out 'certify', or change [training]",
        )
    elbow = settings.discover.pathways == "elbow"
    if "discover" in asked and elbow and (optimizer is not None or loss != "squared"):
        yield (place / "discover" / "pathways").error(
            "how many pathways it takes is decided by gated networks that follow gradient descent "
            "on the squared loss",
            got=how,
            wanted="the number of pathways",
            fix="for example pathways = 4 in [discover], or change [training]",
        )
    for question in ("contest", "phase_diagram", "modes", "types"):
        given = settings.contest.start is not None and question != "types"
        if question in asked and settings.network.kind != "gaussian" and not given:
            yield here.error(
                f"{question!r} is known for Gaussian initial weights",
                got=f"network.kind = {settings.network.kind!r}",
                wanted="kind = 'gaussian' in [network]",
                fix=f"leave out kind, or {question!r}",
            )
    if "types" in asked and settings.network.bias:
        yield here.error(
            "'types' is known for networks without a bias",
            got="bias = true",
            wanted="a column of ones in the task in its place",
            fix="leave out bias, or 'types'",
        )
    checked = [q for q in ("contest", "phase_diagram") if q in asked and settings.contest.check]
    if checked and settings.network.bias:
        raise (place / "contest" / "check").error(
            "whether networks with output biases would keep the gates of a contest is not known",
            got=f"bias = true, and the question {checked[0]!r} with its check",
            wanted="check = false in [contest], which leaves times and winner",
            fix="write check = false; or leave out bias and add a column of ones to the task, "
            "which is a bias of the hidden neurons",
        )
    several = len(settings.network.widths) > 1 or (settings.network.depth or 1) > 1
    masked = [name for name, gating in settings.gatings.items() if _is_masked(gating)]
    about = [question for question in asked if question in ABOUT_GATINGS]
    width = settings.network.widths[0] if settings.network.widths else 100
    one = f"write widths = {width}" if settings.network.depth is None else "leave out depth"
    if several and masked and about:
        yield (place / "gatings" / masked[0]).error(
            "pathways by masks have one hidden layer, and the network has several",
            got=f"{len(settings.network.widths) * (settings.network.depth or 1)} hidden layers, "
            f"and the question {about[0]!r}",
            wanted="one hidden layer, or the gates of a graph",
            fix=f"{one}, or write a [network.graph] with gates = {{ node = 'expression' }}",
        )
    if "modes" in asked and several and settings.contest.start is None:
        yield here.error(
            "'modes' knows the average start of one hidden layer",
            got="several hidden layers",
            wanted="one width in [network], or an aligned start",
            fix="write widths = 64, or start = 0.1 in [contest]",
        )
    for question in ("types", "explain"):
        if question in asked and (several or settings.network.graph is not None):
            yield here.error(
                f"{question!r} is known for one hidden layer",
                got="a graph" if settings.network.graph else "several hidden layers",
                wanted="one width in [network]",
                fix=f"leave out {question!r}, or write widths = 128",
            )

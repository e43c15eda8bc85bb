"""From a document to settings, and from what pydantic found to errors by file and key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from neuralrace.errors import NeuralRaceError, install_extra, nearest_name, spelled
from neuralrace.study.document import Document, toml_value
from neuralrace.study.places import Place, StudyError, together

if TYPE_CHECKING:
    from neuralrace.study.model import Settings

SEE = "`neuralrace new` writes a study with every section; docs/studies.md has every key"


def settings_of(document: Document) -> Settings:
    """The settings of a study, or an error with all that is wrong in it, by file and key."""
    model = need_pydantic()
    from pydantic import ValidationError

    try:
        return model.Settings.model_validate(dict(document.content), context=document.limited)
    except ValidationError as error:
        raise together(_invalid(document, error)) from error


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
    """Every key that is unknown, missing or of another kind, the unknown ones first; then what does
    not fit together."""
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
        if not inner and not misspelled and problems[key][0]["type"] != "broken":
            yield _invalid_key(Place(document.file, key), problems[key])
    for wrong in problems.get("", ()):
        rules = wrong.get("ctx", {}).get("rules", ())
        yield from (rule.error(document.place) for rule in rules)


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
                fix=spelled(name, known, f"leave it out; {SEE}"),
            )
        case "limit":
            return place.error(
                f"{first['ctx']['what']} is more than the explorer takes on",
                got=first["ctx"]["amount"],
                wanted=f"at most {first['ctx']['most']}",
                fix="take less; the command line has no such limit",
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
    expected = first.get("ctx", {}).get("expected", "").replace("'", "").split(", ")
    about = _about(key)
    return place.error(
        f"{_entry(first)} is not valid",
        got=f"{type(value).__name__} {value!r:.80}",
        wanted=wanted + (f": {about}" if about else ""),
        fix=spelled(str(value), expected, f"change it{_example(key)}"),
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
    if key.startswith("sweep.over."):  # whose names have dots
        key = "sweep.over.name"
    return _fields_in(need_pydantic().Settings, key.split(".") if key else [])


def _fields_in(section: Any, parts: Sequence[str]) -> Mapping[str, Any]:
    if not parts:
        return section.model_fields
    field = section.model_fields.get(parts[0])
    inner = next(_sections_in(field.annotation), None) if field else None
    if inner is None:
        return {}
    # in {name: section} the next part is a name
    return _fields_in(inner, parts[2 if "dict" in str(field.annotation) else 1 :])


def _sections_in(annotation: Any) -> Iterator[Any]:
    """The models of sections that a kind of value names."""
    if hasattr(annotation, "model_fields"):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from _sections_in(inner)


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

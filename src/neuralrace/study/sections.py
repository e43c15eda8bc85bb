"""What the sections of a study are made of: kinds of values, limits and rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PositiveInt,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from neuralrace.study.places import Place, StudyError
from neuralrace.text import dotted


def as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _one_or_more(value: Any) -> Any:
    return as_tuple(value) if isinstance(value, list | tuple) else (value,)


def _columns(value: Any) -> Any:
    """A list of columns is one node, whose name is filled in by the reader: ''."""
    if isinstance(value, str):
        return {"": (value,)}
    if isinstance(value, list | tuple):
        return {"": tuple(value)}
    if isinstance(value, dict):
        return {node: _one_or_more(names) for node, names in value.items()}
    return value


def _ends(value: Any) -> Any:
    return {k: as_tuple(v) for k, v in value.items()} if isinstance(value, dict) else value


def flat(value: Any) -> Any:
    """Tables in tables as dotted keys: `task.steps = 1` and `"task.steps" = 1` mean the same."""
    spread = ("start", "stop", "count")
    return dict(dotted(value, leaves=spread)) if isinstance(value, dict) else value


_NAMES = {"type": "array", "items": {"type": "string"}}

Names: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(as_tuple)]
Columns: TypeAlias = Annotated[
    dict[str, tuple[str, ...]],
    BeforeValidator(_columns),
    WithJsonSchema({"anyOf": [_NAMES, {"type": "object", "additionalProperties": _NAMES}]}),
]
Widths: TypeAlias = Annotated[
    tuple[PositiveInt, ...],
    BeforeValidator(_one_or_more),
    WithJsonSchema(
        {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}
    ),
]
Numbers: TypeAlias = Annotated[tuple[float, ...], BeforeValidator(as_tuple)]
Ends: TypeAlias = Annotated[dict[str, tuple[str, ...]], BeforeValidator(_ends)]
Mask: TypeAlias = (
    str | Annotated[tuple[Literal[0, 1], ...], BeforeValidator(as_tuple), Field(min_length=1)]
)
Edges: TypeAlias = Annotated[dict[str, tuple[str, str]], BeforeValidator(_ends)]


class Limit(NamedTuple):
    """The largest value that the explorer takes on, or of several values, or `entries` of them.

    It holds for documents that are `limited`, and for no others.
    """

    most: float
    what: str
    entries: bool = False

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.with_info_after_validator_function(self._checked, handler(source))

    def _checked(self, value: Any, info: Any) -> Any:
        several = [*value.values()] if isinstance(value, dict) else value
        several = several if isinstance(several, list | tuple) else [value]
        numbers = [each for each in several if isinstance(each, int | float)]
        amount = len(several) if self.entries else max(numbers, default=0)
        if info.context and value is not None and amount > self.most:
            what = f"the number of {self.what}" if self.entries else self.what
            said = {"what": what, "amount": amount, "most": f"{self.most:g}"}
            raise PydanticCustomError("limit", "a smaller one", said)
        return value


class Rule(NamedTuple):
    """What must hold of a section; where it does not, `key` of the section is at fault.

    A rule of one `question` leaves that out of the study; one of none ends it.
    """

    holds: object
    key: str
    problem: str
    got: object
    wanted: str
    fix: str
    question: str = ""

    def error(self, place: Place) -> StudyError:
        """The error of a study that breaks it."""
        at = Place(place.file, self.key)
        return at.error(self.problem, got=self.got, wanted=self.wanted, fix=self.fix)


class Section(BaseModel):
    """A table of a study: strict about kinds, closed to unknown keys, frozen."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    def rules(self) -> Sequence[Rule]:
        """What its keys must follow together."""
        return ()

    def broken(self, at: str = "") -> Iterator[Rule]:
        """The rules that it and the sections inside it break, the inner ones first.

        `at` is what stands before its keys.
        """
        for name, inner in self:
            several = inner.items() if isinstance(inner, dict) else [("", inner)]
            for key, section in several:
                if isinstance(section, Section):
                    yield from section.broken(f"{at}{name}.{key}{'.' * bool(key)}")
        yield from (
            rule._replace(key=f"{at}{rule.key}".removesuffix("."))
            for rule in self.rules()
            if not rule.holds
        )

    def given(self, *names: str) -> list[str]:
        """Those of these keys that have a value."""
        return [name for name in names if getattr(self, name) is not None]

    def exactly_one(self, ways: Sequence[str], example: str) -> Rule:
        """One of these keys is given, and no other."""
        there = self.given(*ways)
        return Rule(
            len(there) == 1,
            "",
            "several of these keys are given" if there else "one of these keys is needed",
            ", ".join(there) or "none of them",
            f"exactly one of {', '.join(ways)}",
            f"keep one of {', '.join(there)}" if there else f"for example {example}",
        )

    def only_with(self, ways: Sequence[str], *keys: str) -> list[Rule]:
        """These keys are written down only beside one of those ways."""
        meant = len(self.given(*ways)) > 0
        return [
            Rule(
                meant or key not in self.model_fields_set,
                key,
                "this key has no meaning here",
                f"{key} = {getattr(self, key)!r:.60}",
                f"{' or '.join(f'`{way}`' for way in ways)} with it",
                f"leave out {key}",
            )
            for key in keys
        ]

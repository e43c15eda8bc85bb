"""Which samples a pathway is on for, written as an expression on their labels.

`context in [1, 3] and not size > 2` is parsed into a small tree of our own. Nothing is ever
evaluated as Python: names, numbers, texts, comparisons, `in`, `and`, `or`, `not` are all there is.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from neuralrace.errors import NeuralRaceError
from neuralrace.study.places import nearest

LONGEST = 1000
"""Characters of an expression. A longer one belongs in a file of masks."""

ALWAYS = "always"
"""The expression of a pathway that is on for every sample."""

Value: TypeAlias = int | float | str | bool

_COMPARISONS: Mapping[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
}

_SINGLE = re.compile(r"(?<![=!<>])=(?!=)")
"""A single `=`, which compares nothing."""

GRAMMAR = "comparisons of labels, such as context in [1, 3] and not size > 2"
EXAMPLE = "write it with ==, !=, <, <=, >, >=, in, not in, and, or, not and brackets"


@final
@dataclass(frozen=True)
class Name:
    """A label, a column or a node; `column` is that of a node with several, counted from 0."""

    name: str
    column: int | None = None

    def __str__(self) -> str:
        return self.name if self.column is None else f"{self.name}[{self.column}]"


@final
@dataclass(frozen=True)
class Compare:
    """`left sign right`, one comparison; a side is a name or a value."""

    sign: str
    left: Name | Value
    right: Name | Value


@final
@dataclass(frozen=True)
class Among:
    """A name whose value is one of those listed."""

    left: Name
    values: tuple[Value, ...]


@final
@dataclass(frozen=True)
class Not:
    """Where another expression is false."""

    inner: Expression


@final
@dataclass(frozen=True)
class AllOf:
    """Where all parts are true."""

    parts: tuple[Expression, ...]


@final
@dataclass(frozen=True)
class AnyOf:
    """Where at least one part is true."""

    parts: tuple[Expression, ...]


Expression: TypeAlias = Compare | Among | Not | AllOf | AnyOf


# ---- parsing ------------------------------------------------------------------------------------


def parse(text: str) -> Expression | None:
    """The tree of an expression; None for `always`.

    ```python
    >>> from neuralrace.study.expressions import parse
    >>> parse("context in [1, 3]")
    Among(left=Name(name='context', column=None), values=(1, 3))

    ```
    """
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
        long = isinstance(text, str) and len(text) > LONGEST
        raise NeuralRaceError(
            "a mask is too long" if long else "a mask is an expression",
            got=f"{len(text)} characters" if long else f"{text!r:.80}",
            wanted=f"at most {LONGEST} characters" if long else f"{GRAMMAR}, or {ALWAYS!r}",
            fix="put the masks into a file: file = 'masks.csv'" if long else EXAMPLE,
        )
    if text.strip() == ALWAYS:
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        return _boolean(tree, text)
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        if isinstance(error, NeuralRaceError):
            raise
        at = getattr(error, "offset", None)
        raise NeuralRaceError(
            f"the mask {text!r:.80} cannot be read",
            got=f"{error.args[0] if error.args else 'too deep'}"
            + (f" at character {at}" if at else ""),
            wanted=GRAMMAR,
            fix="did you mean ==, which compares?" if _SINGLE.search(text) else EXAMPLE,
        ) from error


def _boolean(node: ast.expr, text: str) -> Expression:
    if isinstance(node, ast.BoolOp):
        parts = tuple(_boolean(part, text) for part in node.values)
        return AllOf(parts) if isinstance(node.op, ast.And) else AnyOf(parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return Not(_boolean(node.operand, text))
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        found = [
            _comparison(sign, left, right, text)
            for sign, left, right in zip(node.ops, sides[:-1], sides[1:], strict=True)
        ]
        return found[0] if len(found) == 1 else AllOf(tuple(found))
    if isinstance(node, ast.Name | ast.Subscript):
        return Compare("!=", _name(node, text), 0)
    raise _not_allowed(node, text)


def _comparison(sign: ast.cmpop, left: ast.expr, right: ast.expr, text: str) -> Expression:
    if isinstance(sign, ast.In | ast.NotIn):
        if not isinstance(right, ast.List | ast.Tuple | ast.Set):
            raise _not_allowed(right, text)
        among = Among(_name(left, text), tuple(_constant(v, text) for v in right.elts))
        return among if isinstance(sign, ast.In) else Not(among)
    if type(sign) not in _COMPARISONS:
        raise _not_allowed(sign, text)
    sides = _side(left, text), _side(right, text)
    if not any(isinstance(side, Name) for side in sides):
        raise NeuralRaceError(
            f"the mask {text!r:.80} compares nothing of the samples",
            got=ast.unparse(ast.Compare(left, [sign], [right])),
            wanted="a label on at least one side",
            fix="name a label, such as context == 1",
        )
    return Compare(_COMPARISONS[type(sign)][0], *sides)


def _side(node: ast.expr, text: str) -> Name | Value:
    return (
        _name(node, text) if isinstance(node, ast.Name | ast.Subscript) else _constant(node, text)
    )


def _name(node: ast.expr, text: str) -> Name:
    if isinstance(node, ast.Name):
        return Name(node.id)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        index = node.slice
        if isinstance(index, ast.Constant) and type(index.value) is int:
            return Name(node.value.id, index.value)
    raise _not_allowed(node, text)


def _constant(node: ast.expr, text: str) -> Value:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _constant(node.operand, text)
        if isinstance(value, int | float):
            return -value if isinstance(node.op, ast.USub) else value
    raise _not_allowed(node, text)


def _not_allowed(node: ast.AST, text: str) -> NeuralRaceError:
    try:
        part = ast.unparse(node)
    except (AttributeError, RecursionError):
        part = type(node).__name__
    return NeuralRaceError(
        f"the mask {text!r:.80} has a part that is not allowed",
        got=f"{part:.80}" or type(node).__name__,
        wanted=GRAMMAR,
        fix=EXAMPLE,
    )


# ---- reading it on samples ----------------------------------------------------------------------


def evaluate(expression: Expression, names: Mapping[str, np.ndarray]) -> np.ndarray:
    """The samples for which it is true: a mask of shape `(N,)`.

    `names` has one value per sample for labels and columns, and `(N, size)` for nodes.

    ```python
    >>> import numpy as np
    >>> from neuralrace.study.expressions import evaluate, parse
    >>> names = {"context": np.array([1, 2, 3]), "x": np.array([[0.5], [-1.0], [2.0]])}
    >>> evaluate(parse("context in [1, 2] and x > 0"), names)
    array([ True, False, False])

    ```
    """
    match expression:
        case Compare(sign, left, right):
            signs = dict(_COMPARISONS.values())
            sides = [_read(s, names) if isinstance(s, Name) else s for s in (left, right)]
            _check_kinds(expression, *sides)
            return np.asarray(signs[sign](*sides), bool)
        case Among(left, values):
            array = _read(left, names)
            for value in values:
                _check_kinds(expression, array, value)
            return np.isin(array, list(values))
        case Not(inner):
            return ~evaluate(inner, names)
        case AllOf(parts):
            return np.logical_and.reduce([evaluate(part, names) for part in parts])
        case AnyOf(parts):
            return np.logical_or.reduce([evaluate(part, names) for part in parts])


def _read(name: Name, names: Mapping[str, np.ndarray]) -> np.ndarray:
    if name.name not in names:
        raise NeuralRaceError(
            f"there is no label {name.name!r}",
            got=repr(name.name),
            wanted=f"one of {', '.join(names)}",
            fix=nearest(name.name, names) or "name a label of the task, a column or a node",
        )
    array = np.asarray(names[name.name])
    if array.ndim == 1 and name.column is None:
        return array
    columns = array.shape[1] if array.ndim == 2 else 0
    column = 0 if name.column is None and columns == 1 else name.column
    if column is None or not 0 <= column < columns:
        raise NeuralRaceError(
            f"{name.name!r} has {columns or 'no'} columns",
            got=str(name),
            wanted=f"{name.name}[0] … {name.name}[{columns - 1}]" if columns else name.name,
            fix="columns are counted from 0" if columns else "leave out the brackets",
        )
    return array[:, column]


def _check_kinds(expression: Expression, left: Any, right: Any) -> None:
    """Raise where text is compared with numbers: that is never true, and never meant."""
    texts = [np.asarray(side).dtype.kind in "US" for side in (left, right)]
    if texts[0] != texts[1]:
        raise NeuralRaceError(
            "text is compared with a number",
            got=code(expression),
            wanted="text for labels that are text, numbers for others",
            fix="write text in quotes, and numbers without",
        )


# ---- writing it down ----------------------------------------------------------------------------


def code(expression: Expression, spell: Callable[[Name], str] = str) -> str:
    """The expression in NumPy; `spell` writes the code that stands for a name.

    ```python
    >>> from neuralrace.study.expressions import code, parse
    >>> code(parse("context in [1, 3] and not size > 2"))
    'np.isin(context, [1, 3]) & ~(size > 2)'

    ```
    """

    def side(value: Name | Value) -> str:
        return spell(value) if isinstance(value, Name) else repr(value)

    def bracketed(part: Expression) -> str:
        text = code(part, spell)
        return text if isinstance(part, Among | Not) else f"({text})"

    match expression:
        case Compare(sign, left, right):
            return f"{side(left)} {sign} {side(right)}"
        case Among(left, values):
            return f"np.isin({side(left)}, {list(values)!r})"
        case Not(inner):
            return f"~{bracketed(inner)}"
        case AllOf(parts):
            return " & ".join(map(bracketed, parts))
        case AnyOf(parts):
            return " | ".join(map(bracketed, parts))


def names_in(expression: Expression) -> Iterator[Name]:
    """Every name in the expression, in the order in which it stands there."""
    match expression:
        case Compare(_, left, right):
            yield from (side for side in (left, right) if isinstance(side, Name))
        case Among(left, _):
            yield left
        case Not(inner):
            yield from names_in(inner)
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from names_in(part)

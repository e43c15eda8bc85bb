"""Which samples a pathway is on for, written as an expression on their labels.

`context in [1, 3] and not size > 2` is parsed by Python's own parser, and its tree is checked:
names, numbers, texts, comparisons, `in`, `and`, `or`, `not` are all that is allowed. Nothing is
ever evaluated as Python.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from neuralrace.errors import NeuralRaceError, require, spelled

LONGEST = 1000
"""Characters of an expression. A longer one belongs in a file of masks."""

ALWAYS = "always"
"""The expression of a pathway that is on for every sample."""

Value: TypeAlias = int | float | str | bool

SIGNS: Mapping[type, tuple[str, Callable[[Any, Any], Any]]] = {
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


class Name(NamedTuple):
    """A label, a column or a node; `column` is that of a node with several, counted from 0."""

    name: str
    column: int | None = None

    def __str__(self) -> str:
        return self.name if self.column is None else f"{self.name}[{self.column}]"


# ---- parsing ------------------------------------------------------------------------------------


def parse(text: str | tuple[int, ...]) -> ast.expr | None:
    """The tree of an expression, with allowed parts alone; None for `always`.

    Where it is a list, with 0 or 1 for every sample, the tree is that list.

    ```python
    >>> import ast
    >>> from neuralrace.study.expressions import parse
    >>> ast.unparse(parse("context in [1, 3]"))
    'context in [1, 3]'

    ```
    """
    if isinstance(text, tuple):
        return None if all(text) else ast.List([ast.Constant(on) for on in text])
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
        _check(tree, text)
    except NeuralRaceError:
        raise
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        at = getattr(error, "offset", None)
        raise NeuralRaceError(
            f"the mask {text!r:.80} cannot be read",
            got=f"{error.args[0] if error.args else 'too deep'}"
            + (f" at character {at}" if at else ""),
            wanted=GRAMMAR,
            fix="did you mean ==, which compares?" if _SINGLE.search(text) else EXAMPLE,
        ) from error
    return tree


def _check(node: ast.expr, text: str) -> None:
    """Raise where a tree has a part that is not allowed."""
    match node:
        case ast.BoolOp(values=parts):
            for part in parts:
                _check(part, text)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            _check(inner, text)
        case ast.Compare(left=left, ops=signs, comparators=others):
            for sign, (one, other) in zip(signs, pairwise([left, *others]), strict=True):
                _check_comparison(sign, one, other, text)
        case _ if _name(node) is None:
            raise _not_allowed(node, text)


def _check_comparison(sign: ast.cmpop, left: ast.expr, right: ast.expr, text: str) -> None:
    if isinstance(sign, ast.In | ast.NotIn):
        listed = right.elts if isinstance(right, ast.List | ast.Tuple | ast.Set) else [right, left]
        odd = [each for each in listed if _constant(each) is None]
        odd += [left] if _name(left) is None else []
    else:
        sides = (left, right)
        odd: list[Any] = [s for s in sides if _name(s) is None and _constant(s) is None]
        odd += [] if type(sign) in SIGNS else [sign]
        if not odd and not any(map(_name, sides)):
            raise NeuralRaceError(
                f"the mask {text!r:.80} compares nothing of the samples",
                got=ast.unparse(ast.Compare(left, [sign], [right])),
                wanted="a label on at least one side",
                fix="name a label, such as context == 1",
            )
    if odd:
        raise _not_allowed(odd[0], text)


def _name(node: ast.expr) -> Name | None:
    """The label, column or node that a part names; None where it is something else."""
    match node:
        case ast.Name(id=name):
            return Name(name)
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int(column))):
            return None if isinstance(column, bool) else Name(name, column)
    return None


def _constant(node: ast.expr) -> Value | None:
    """The number or text that a part is; None where it is something else."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
    return value if isinstance(value, int | float | str) else None


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


def evaluate(node: ast.expr, names: Mapping[str, np.ndarray]) -> np.ndarray:
    """The samples for which an expression is true: a mask of shape `(N,)`.

    `names` has one value per sample for labels and columns, and `(N, size)` for nodes.

    ```python
    >>> import numpy as np
    >>> from neuralrace.study.expressions import evaluate, parse
    >>> names = {"context": np.array([1, 2, 3]), "x": np.array([[0.5], [-1.0], [2.0]])}
    >>> evaluate(parse("context in [1, 2] and x > 0"), names)
    array([ True, False, False])

    ```
    """
    match node:
        case ast.BoolOp(op=op, values=parts):
            join = np.logical_and if isinstance(op, ast.And) else np.logical_or
            return join.reduce([evaluate(part, names) for part in parts])
        case ast.UnaryOp(operand=inner):
            return ~evaluate(inner, names)
        case ast.Compare(left=left, ops=signs, comparators=others):
            pairs = zip(signs, pairwise([left, *others]), strict=True)
            return np.logical_and.reduce([_compared(s, *sides, names) for s, sides in pairs])
        case ast.List(elts=listed):
            return np.array([_constant(on) for on in listed], bool)
    return _compared(ast.NotEq(), node, ast.Constant(0), names)


def _compared(
    sign: ast.cmpop, left: ast.expr, right: ast.expr, names: Mapping[str, np.ndarray]
) -> np.ndarray:
    """One comparison; text and numbers are never equal, and never meant to be compared."""
    read = lambda node: _constant(node) if (name := _name(node)) is None else _read(name, names)
    among = isinstance(right, ast.List | ast.Tuple | ast.Set)
    one: Any = read(left)
    others: list[Any] = [read(each) for each in right.elts] if among else [read(right)]
    is_text = [np.asarray(value).dtype.kind in "US" for value in (one, *others)]
    if len(set(is_text)) > 1:
        raise NeuralRaceError(
            "text is compared with a number",
            got=ast.unparse(ast.Compare(left, [sign], [right])),
            wanted="text for labels that are text, numbers for others",
            fix="write text in quotes, and numbers without",
        )
    if among:
        return np.isin(one, others, invert=isinstance(sign, ast.NotIn))
    return np.asarray(SIGNS[type(sign)][1](one, others[0]), bool)


def _read(name: Name, names: Mapping[str, np.ndarray]) -> np.ndarray:
    if name.name not in names:
        raise NeuralRaceError(
            f"there is no label {name.name!r}",
            got=repr(name.name),
            wanted=f"one of {', '.join(names)}",
            fix=spelled(name.name, names, "name a label of the task, a column or a node"),
        )
    array = np.asarray(names[name.name])
    if array.ndim == 1 and name.column is None:
        return array
    columns = array.shape[1] if array.ndim == 2 else 0
    column = 0 if name.column is None and columns == 1 else name.column
    require(
        column is not None and 0 <= column < columns,
        f"{name.name!r} has {columns or 'no'} columns",
        got=str(name),
        wanted=f"{name.name}[0] … {name.name}[{columns - 1}]" if columns else name.name,
        fix="columns are counted from 0" if columns else "leave out the brackets",
    )
    return array[:, column]


# ---- writing it down ----------------------------------------------------------------------------


def code(node: ast.expr, spell: Callable[[Name], str] = str) -> str:
    """The expression in NumPy; `spell` writes the code that stands for a name.

    ```python
    >>> from neuralrace.study.expressions import code, parse
    >>> code(parse("context in [1, 3] and not size > 2"))
    'np.isin(context, [1, 3]) & ~(size > 2)'

    ```
    """

    def bracketed(part: ast.expr) -> str:
        alone = isinstance(part, ast.UnaryOp)
        if isinstance(part, ast.Compare) and len(part.ops) == 1:
            alone = isinstance(part.ops[0], ast.In | ast.NotIn)
        return code(part, spell) if alone else f"({code(part, spell)})"

    def side(part: ast.expr) -> str:
        name = _name(part)
        return repr(_constant(part)) if name is None else spell(name)

    def compared(sign: ast.cmpop, left: ast.expr, right: ast.expr) -> str:
        if not isinstance(right, ast.List | ast.Tuple | ast.Set):
            return f"{side(left)} {SIGNS[type(sign)][0]} {side(right)}"
        text = f"np.isin({side(left)}, [{', '.join(map(side, right.elts))}])"
        return f"~{text}" if isinstance(sign, ast.NotIn) else text

    match node:
        case ast.BoolOp(op=op, values=parts):
            return (" & " if isinstance(op, ast.And) else " | ").join(map(bracketed, parts))
        case ast.UnaryOp(operand=inner):
            return f"~{bracketed(inner)}"
        case ast.Compare(left=left, ops=signs, comparators=others):
            pairs = zip(signs, pairwise([left, *others]), strict=True)
            said = [compared(sign, *sides) for sign, sides in pairs]
            return said[0] if len(said) == 1 else " & ".join(f"({text})" for text in said)
        case ast.List():
            return f"np.array({ast.unparse(node)}, bool)"
    return f"{side(node)} != 0"

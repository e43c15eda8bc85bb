"""SymPy expressions as MathML, which browsers typeset without help."""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import cache
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from neuralrace.errors import require

if TYPE_CHECKING:
    import sympy
    from sympy.printing.mathml import MathMLPresentationPrinter

__all__ = ["Typeset", "formula", "rounded"]

ELEMENTS = {"math", "mi", "mn", "mo", "mrow", "mfrac", "msup", "msub", "msubsup", "msqrt"}
ELEMENTS |= {"mroot", "mtext", "mtable", "mtr", "mtd", "munder", "mover", "munderover", "mspace"}
ELEMENTS |= {"mfenced", "mstyle", "menclose", "mpadded"}
"""The elements of MathML that a formula may have; none of them can run or load anything."""

EXPONENTIAL = "exponential function"
"""A name that no symbol has, which stands for e to the power of its argument."""

BETTER = {
    "<mo>-</mo>": "<mo>−</mo>",
    "<mo>&dd;</mo>": '<mspace width="0.2em"/><mi mathvariant="normal">d</mi>',
}
"""Signs of SymPy's printer that fonts draw poorly, and those to use instead."""


class Typeset(str):
    """A formula that is MathML already, as `formula` made it before."""


def formula(expressions: Any) -> str:
    """Expressions or equations of SymPy as MathML, one below the other, equality signs aligned.

    A function of time is written by its name alone, as in `Race.latex`. The LaTeX of the formula
    stands beside it, for reading aloud and for copying.

    ```python
    >>> import sympy
    >>> from neuralrace.mathml import formula
    >>> "<mfrac>" in formula(sympy.Symbol("a") / sympy.Symbol("b"))
    True

    ```
    """
    import sympy

    if isinstance(expressions, Typeset):
        return _checked(expressions)
    listed = isinstance(expressions, Sequence) and not isinstance(expressions, str)
    several = expressions if listed else [expressions]
    for one in several:
        require(
            isinstance(one, sympy.Basic) and several,
            "an equation is an expression of SymPy",
            got=f"{type(one).__name__} {one!r:.80}",
            wanted="a SymPy expression or equation, or a list of them",
            fix="for example Equation(race.equations()['mode1'])",
        )
    rows = "".join(f"<mtr>{_row(one)}</mtr>" for one in several)
    latex = html.escape(r" \\ ".join(_latex(one) for one in several))
    table = f'<mtable displaystyle="true">{rows}</mtable>'
    return f'<math display="block" alttext="{latex}">{table}</math>'


def rounded(equation: sympy.Eq) -> Any:
    """An equation as it is read: its decimal numbers to a few digits.

    ```python
    >>> import sympy
    >>> from neuralrace.mathml import rounded
    >>> rounded(sympy.Eq(sympy.Symbol("b"), sympy.Float(1.23456)))
    Eq(b, 1.23)

    ```
    """
    import sympy

    long = {number: sympy.Float(number, 3) for number in equation.atoms(sympy.Float)}
    return equation.xreplace(long)


def _checked(given: Typeset) -> str:
    """MathML of before, which must have no other elements, and be closed where it ends."""
    require(
        (given.startswith("<math ") and given.endswith("</math>") and _is_plain(given)),
        "formula is not one that was typeset before",
        got=f"{str(given)!r:.80}",
        wanted="MathML",
        fix="give the expression of SymPy",
    )
    return str(given)


def _row(expression: Any) -> str:
    """One line of a table of formulas: left side, sign and right side in cells of their own."""
    import sympy

    if isinstance(expression, sympy.Eq):
        left, right = _mathml(expression.lhs), _mathml(expression.rhs)
        return f"<mtd>{left}</mtd><mtd><mo>=</mo></mtd><mtd>{right}</mtd>"
    return f'<mtd columnspan="3">{_mathml(expression)}</mtd>'


def _latex(expression: Any) -> str:
    import sympy

    return sympy.latex(expression).replace(r"{\left(t \right)}", "")


def _mathml(expression: Any) -> str:
    """An expression as MathML; as LaTeX where SymPy writes something that is not plain MathML."""
    import sympy

    exponential = sympy.Function(EXPONENTIAL)  # SymPy's own would go below the line of a fraction
    kept = expression.replace(sympy.exp, exponential)
    try:
        text = _printer().doprint(kept)
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        text = ""
    for sign, better in BETTER.items():
        text = text.replace(sign, better)
    return text if text and _is_plain(text) else f"<mtext>{html.escape(_latex(expression))}</mtext>"


@cache
def _printer() -> MathMLPresentationPrinter:
    """SymPy's printer; names are escaped, and f(t) and its derivative are written as in papers."""
    from sympy import Derivative, Dummy, Symbol
    from sympy.printing.mathml import MathMLPresentationPrinter

    class Printer(MathMLPresentationPrinter):
        def _print_Symbol(self, sym: Any, style: str = "plain") -> Any:
            return super()._print_Symbol(Symbol(html.escape(sym.name, quote=False)), style)

        _print_Dummy = _print_Symbol

        def _print_AppliedUndef(self, expr: Any) -> Any:
            if expr.func.__name__ == EXPONENTIAL:
                return self._element("msup", self._letter("e"), self._print(expr.args[0]))
            return self._print(Dummy(expr.func.__name__))

        def _print_Pow(self, e: Any) -> Any:
            power = super()._print_Pow(e)
            if power.nodeName != "msup":
                return power
            base, exponent = power.childNodes
            if base.nodeName == "msub":  # index and power above each other
                return self._element("msubsup", *base.childNodes, exponent)
            if base.nodeName in ("msup", "msubsup"):
                left, right = self._element("mo", "("), self._element("mo", ")")
                return self._element("msup", self._element("mrow", left, base, right), exponent)
            return power

        def _as_ordered_terms(self, expr: Any, order: Any = None) -> Any:
            terms = super()._as_ordered_terms(expr, order)
            return sorted(terms, key=lambda term: term.could_extract_minus_sign())  # S − D B

        def _print_Derivative(self, e: Any) -> Any:
            below = []
            for variable, count in e.variable_count:
                below += [self._letter("d"), self._print(variable**count)]
            order = sum(count for _, count in e.variable_count)
            d = self._letter("d")
            above = d if order == 1 else self._element("msup", d, self._print(order))
            return self._element(
                "mfrac",
                self._element("mrow", above, self._print(e.expr)),
                self._element("mrow", *below),
            )

        def _element(self, name: str, *children: Any) -> Any:
            made = self.dom.createElement(name)
            for child in list(children):
                text = isinstance(child, str)
                made.appendChild(self.dom.createTextNode(child) if text else child)
            return made

        def _letter(self, letter: str) -> Any:
            """An upright letter."""
            made = self._element("mi", letter)
            made.setAttribute("mathvariant", "normal")
            return made

        def parenthesize(self, item: Any, level: int, strict: bool = False) -> Any:
            if isinstance(item, Derivative):
                return self._print(item)
            return super().parenthesize(item, level, strict)

    return Printer()


def _is_plain(text: str) -> bool:
    """Whether a text has elements of MathML alone, and none that can run or load anything."""
    found = _Elements()
    found.feed(text)
    found.close()
    return found.plain


class _Elements(HTMLParser):
    """Looks at every element and attribute of a text."""

    plain = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        odd = any(name.startswith("on") or name in ("href", "src", "style") for name, _ in attrs)
        self.plain = self.plain and tag in ELEMENTS and not odd

    def handle_comment(self, data: str) -> None:
        self.plain = False

    def handle_decl(self, decl: str) -> None:
        self.plain = False

    def handle_pi(self, data: str) -> None:
        self.plain = False

"""Every Python block of README.md and docs/**/*.md is run, in order, in one namespace per file.

A block with prompts is a doctest. A `text` block that follows a Python block is what that prints:
the words must be the same, line breaks aside, and numbers agree to their last digit.
`python -m tests.test_docs PAGE …` writes what is printed today into pages.
"""

import ast
import contextlib
import doctest
import inspect
import io
import operator
import re
import sys
import tempfile
import textwrap
from pathlib import Path

import jax
import pytest

import neuralrace as nr

ROOT = Path(__file__).parent.parent
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SLOW = {"contest", "dynamics", "kept", "reduction", "reln", "report", "sweeps", "types"}
SLOW |= {"behaviour", "cluster", "first_pathway", "one_task", "own_gating", "torch_network"}
SLOW |= {"analysis", "attention", "linear", "pytorch", "README", "recurrent", "tasks", "tolerance"}
SLOW |= {"optimizers"}
"""Pages whose examples take long."""

FENCE = re.compile(
    r"^```python\b[^\n]*\n(?P<code>.*?)^```[ \t]*$(?:\n+^```text\n(?P<text>.*?)^```[ \t]*$)?",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"[-+−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def python_blocks(text: str) -> list[tuple[int, str]]:
    """Each block with the number of lines that stand before its first."""
    return [(text.count("\n", 0, m.start("code")), m["code"]) for m in FENCE.finditer(text)]


def run_blocks(path: Path) -> dict:
    """Run the blocks of a file in order and compare what they print. Returns their names."""
    namespace: dict = {"__name__": "__main__"}
    for match, before, printed in printed_blocks(path, namespace):
        if match["text"] is not None:
            assert same_text(match["text"], printed), (
                f"{path.name}, line {before}: printed was\n{printed}"
            )
    return namespace


def printed_blocks(path: Path, namespace: dict):
    """Each block, the number of lines before it, and what it prints when run."""
    text = path.read_text()
    for match in FENCE.finditer(text):
        before, code = text.count("\n", 0, match.start("code")), match["code"]
        printed = io.StringIO()
        if ">>>" in code:
            run_prompts(code, namespace, path, before)
        else:
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * before + code, str(path), "exec"), namespace)
        yield match, before, printed.getvalue()


def same_text(shown: str, printed: str) -> bool:
    """Whether two texts have the same words, and numbers that agree to the last digit shown."""
    words = [NUMBER.sub("#", " ".join(text.split())) for text in (shown, printed)]
    if words[0] != words[1]:
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(_same_number(*pair) for pair in pairs)


def _same_number(shown: str, printed: str) -> bool:
    digits, _, power = shown.replace("−", "-").partition("e")
    unit = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    whole = float(unit == 1 and "e" not in shown)  # counts are exact
    apart = abs(float(shown.replace("−", "-")) - float(printed.replace("−", "-")))
    return apart <= (0.0 if whole else 1.01 * unit)


def rewrite(path: Path) -> None:
    """Write what the blocks of a page print today into the page, wrapped as a paragraph is."""
    text, new = path.read_text(), ""
    done = 0
    for match, _, printed in printed_blocks(path, {"__name__": "__main__"}):
        if match["text"] is not None and not same_text(match["text"], printed):
            one_line = printed.count("\n") == 1
            wrapped = textwrap.fill(printed, 103) + "\n" if one_line else printed
            new += text[done : match.start("text")] + wrapped
            done = match.end("text")
    path.write_text(new + text[done:])


def run_prompts(code: str, namespace: dict, path: Path, before: int) -> None:
    test = doctest.DocTestParser().get_doctest(code, namespace, path.name, str(path), before)
    shown = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=shown.write, clear_globs=False)
    namespace.update(test.globs)
    assert not runner.failures, shown.getvalue()


@pytest.fixture(autouse=True)
def _apart(tmp_path, monkeypatch):
    """Files land in an empty folder, and JAX's precision comes back as it was."""
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    x64 = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", x64)
    plt.close("all")


PAGES = [
    pytest.param(
        path,
        id=str(path.relative_to(ROOT)),
        marks=[pytest.mark.slow] if path.stem in SLOW else [],
    )
    for path in FILES
]


@pytest.mark.parametrize("path", PAGES)
def test_blocks_run(path):
    run_blocks(path)


# ---- the collector ------------------------------------------------------------------------------

PAGE = """# A page

```python
a = 1
```

Text with `a = 5` in it.

```bash
make nonsense
```

```python title="second"
b = a + 1
open("left.txt", "w").close()
```

```python
>>> b
2
>>> c = b * 10

```

```
a = "not Python"
```

```python
d = c + a
```
"""


@pytest.fixture
def page(tmp_path):
    def write(text):
        path = tmp_path / "page.md"
        path.write_text(text)
        return path

    return write


def test_blocks_are_found_with_their_lines():
    blocks = python_blocks(PAGE)
    assert [before for before, _ in blocks] == [3, 13, 18, 29]
    lines = PAGE.splitlines()
    for before, code in blocks:
        assert code.splitlines()[0] == lines[before]
    assert "nonsense" not in "".join(code for _, code in blocks)


def test_blocks_share_one_namespace_and_write_where_they_stand(page, tmp_path):
    names = run_blocks(page(PAGE))
    assert (names["a"], names["b"], names["c"], names["d"]) == (1, 2, 20, 21)
    assert (tmp_path / "left.txt").exists()


def test_a_failing_block_fails_at_its_line(page):
    path = page(PAGE + "\n```python\nx = 1\nraise KeyError('here')\n```\n")
    with pytest.raises(KeyError, match="here") as caught:
        run_blocks(path)
    last = caught.traceback[-1]
    assert str(last.path) == str(path)
    assert path.read_text().splitlines()[last.lineno] == "raise KeyError('here')"


def test_a_failing_example_fails(page):
    with pytest.raises(AssertionError, match="Expected"):
        run_blocks(page("```python\n>>> 1 + 1\n3\n```\n"))
    with pytest.raises(AssertionError, match="NameError"):
        run_blocks(page("```python\n>>> nothing\n```\n"))


def test_what_is_printed_is_compared(page):
    block = "```python\nprint('two words, 1.25 and 3')\n```\n\n```text\n{}\n```\n"
    run_blocks(page(block.format("two\nwords, 1.25 and 3")))
    run_blocks(page(block.format("two words, 1.26 and 3")))
    for wrong in ("two word, 1.25 and 3", "two words, 1.28 and 3", "two words, 1.25 and 4", ""):
        with pytest.raises(AssertionError, match="printed was"):
            run_blocks(page(block.format(wrong)))


def test_a_page_is_rewritten_with_what_is_printed(page):
    path = page("# A\n\n```python\nprint('new')\n```\n\n```text\nold\n```\n\nEnd.\n")
    rewrite(path)
    assert path.read_text().endswith("```text\nnew\n```\n\nEnd.\n")
    run_blocks(path)


def test_slow_pages_exist():
    assert {path.stem for path in FILES} >= SLOW


def test_a_block_that_does_not_parse_fails(page):
    with pytest.raises(SyntaxError):
        run_blocks(page("```python\nif:\n```\n"))


def test_every_fence_opened_is_closed():
    for path in FILES:
        fences = re.findall(r"^```", path.read_text(), re.MULTILINE)
        assert len(fences) % 2 == 0, f"{path.name} has an open fence"


CALL = re.compile(r"`(nr\.[\w.]+\([^`]*\))`")


def test_calls_in_the_text_have_the_arguments_that_are_needed():
    """Calls between backticks: `…` stands for all other arguments, or for any value."""
    seen = 0
    for path in FILES:
        text = re.sub(r"(?ms)^[ \t]*```.*?```", "", path.read_text())
        for found in CALL.finditer(text):
            said = " ".join(found[1].replace("…", "...").split())
            for call in ast.walk(ast.parse(said, mode="eval")):
                name = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
                if not re.fullmatch(r"nr(\.\w+)+", name):
                    continue
                given = [ast.unparse(a) for a in call.args]
                some = "..." in given or not given
                signature = inspect.signature(operator.attrgetter(name[3:])(nr))
                named = {k.arg: None for k in call.keywords}
                try:
                    bind = signature.bind_partial if some else signature.bind
                    bind(*[a for a in given if a != "..."], **named)
                except TypeError as error:
                    pytest.fail(f"{path.name}: `{said}`: {error}")
                seen += 1
    assert seen > 40


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    for name in sys.argv[1:]:
        page = Path(name).resolve()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            rewrite(page)

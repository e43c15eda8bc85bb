"""Every Python block of README.md and docs/*.md is run, in order, in one namespace a file."""

import doctest
import io
import re
from pathlib import Path

import jax
import pytest

ROOT = Path(__file__).parent.parent
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```python\b[^\n]*\n(?P<code>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def python_blocks(text: str) -> list[tuple[int, str]]:
    """Each block with the number of lines that stand before its first."""
    return [(text.count("\n", 0, m.start("code")), m["code"]) for m in FENCE.finditer(text)]


def run_blocks(path: Path) -> dict:
    """Run the blocks of a file in order; blocks with prompts as doctests. Returns their names."""
    namespace: dict = {"__name__": "__main__"}
    for before, code in python_blocks(path.read_text()):
        if ">>>" in code:
            run_prompts(code, namespace, path, before)
        else:
            exec(compile("\n" * before + code, str(path), "exec"), namespace)
    return namespace


def run_prompts(code: str, namespace: dict, path: Path, before: int) -> None:
    test = doctest.DocTestParser().get_doctest(code, namespace, path.name, str(path), before)
    shown = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=shown.write, clear_globs=False)
    namespace.update(test.globs)
    assert not runner.failures, shown.getvalue()


@pytest.fixture(autouse=True)
def _apart(tmp_path, monkeypatch):
    """Files land in a folder of their own, and JAX's precision comes back as it was."""
    monkeypatch.chdir(tmp_path)
    x64 = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", x64)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
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


def test_a_block_that_does_not_parse_fails(page):
    with pytest.raises(SyntaxError):
        run_blocks(page("```python\nif:\n```\n"))


def test_every_fence_opened_is_closed():
    for path in FILES:
        fences = re.findall(r"^```", path.read_text(), re.MULTILINE)
        assert len(fences) % 2 == 0, f"{path.name} has an open fence"

"""Links of the documentation: `python -m tools.links` lists those that lead out of it.

`python -m tools.links SITE` also checks the links of a built site: every page, file and heading
that a page links to must be there. The exit code is 1 where one is not.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```[ \t]*$", re.MULTILINE | re.DOTALL)


def sources() -> list[Path]:
    """The pages in Markdown: those of the site, and those of the repository."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def links(path: Path) -> list[str]:
    """The targets of all links of a page, blocks of code aside."""
    return LINK.findall(FENCE.sub("", path.read_text()))


def external() -> dict[str, list[str]]:
    """Every address outside the repository, with the pages that link to it."""
    found: dict[str, list[str]] = {}
    for path in sources():
        for link in links(path):
            if urlsplit(link).scheme:
                found.setdefault(link, []).append(str(path.relative_to(ROOT)))
    return dict(sorted(found.items()))


def dead_in_sources() -> list[str]:
    """Links between pages whose file is not there; pages that Sphinx writes count as there."""
    found = []
    for path in sources():
        for link in links(path):
            parts = urlsplit(link)
            if parts.scheme or not parts.path or "reference/" in parts.path:
                continue
            if not (path.parent / unquote(parts.path)).exists():
                found.append(f"{path.relative_to(ROOT)}: {link}")
    return found


class _Page(HTMLParser):
    """The links of a page, and the names that can be linked to on it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if key == "id" or (tag == "a" and key == "name"):
                self.names.add(value or "")
            elif key in ("href", "src") and value:
                self.links.append(value)


def dead_in_site(folder: Path) -> list[str]:
    """Links of a built site that lead nowhere: a missing file, or a missing heading."""
    files = (path for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts)
    pages = {path: _Page(path.read_text()) for path in files}
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link in ("#", ""):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            name, known = unquote(parts.fragment), pages.get(target)
            if not target.exists() or (name and known is not None and name not in known.names):
                found.append(f"{path.relative_to(folder)}: {link}")
    return found


def main(arguments: list[str]) -> int:
    """List external links, and tell dead ones of the sources and of a built site."""
    dead = dead_in_sources() + [d for site in arguments for d in dead_in_site(Path(site).resolve())]
    lines = [f"{link}  ({', '.join(sorted(set(pages)))})" for link, pages in external().items()]
    lines += [f"dead: {link}" for link in dead]
    sys.stdout.write(
        "\n".join([*lines, f"{len(lines) - len(dead)} external links; {len(dead)} dead"]) + "\n"
    )
    return int(bool(dead))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

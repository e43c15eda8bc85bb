"""A report as one HTML file that needs nothing beside it: pictures are part of it."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@final
@dataclass(frozen=True)
class Step:
    """A step of the arc: what is asked, the picture, the sentences that sum it up by task.

    `folded` maps titles to plain text that is shown on demand.
    """

    title: str
    asks: str
    sentences: Mapping[str, str]
    picture: bytes
    folded: Mapping[str, str] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class Part:
    """A task: what it is, and the steps through it."""

    title: str
    about: str
    steps: Sequence[Step]


def png(figure: Figure, dpi: int = 200) -> bytes:
    """The figure as a PNG; it is closed."""
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, pil_kwargs={"optimize": True})
    plt.close(figure)
    return buffer.getvalue()


def page(overview: bytes, parts: Sequence[Part], about: str) -> str:
    """The whole report as HTML; `about` says how it was made.

    ```python
    >>> from neuralrace.demo.page import Part, Step, page
    >>> step = Step("Contest", "Who is first?", {"XoR": "xor < linear."}, b"PNG")
    >>> text = page(b"PNG", [Part("XoR", "A task.", [step])], "made now")
    >>> "xor &lt; linear." in text, text.count('src="data:image/png;base64,UE5H"')
    (True, 2)

    ```
    """
    entries = "".join(
        f'<li><a href="#part{i}">{_text(p.title)}</a></li>' for i, p in enumerate(parts)
    )
    filled = {
        "style": _STYLE,
        "entries": entries,
        "overview": _image(overview, "The whole arc on both tasks"),
        "parts": "\n".join(_part(i, part) for i, part in enumerate(parts)),
        "about": _text(about),
    }
    text = _PAGE
    for name, value in filled.items():
        text = text.replace("{" + name + "}", value)
    return text


def _part(number: int, part: Part) -> str:
    steps = "\n".join(_step(i + 1, step) for i, step in enumerate(part.steps))
    return (
        f'<section id="part{number}"><h2>{_text(part.title)}</h2>\n<p class="about">'
        f"{_text(part.about)}</p>\n{steps}\n</section>"
    )


def _step(number: int, step: Step) -> str:
    sentences = "".join(
        f"<p><b>{_text(name)}.</b> {_text(sentence)}</p>"
        for name, sentence in step.sentences.items()
    )
    folded = "".join(
        f"<details><summary>{_text(title)}</summary><pre>{_text(text)}</pre></details>"
        for title, text in step.folded.items()
    )
    return (
        f'<article><h3><span class="number">{number}</span> {_text(step.title)}</h3>'
        f'<p class="asks">{_text(step.asks)}</p>{_image(step.picture, step.title)}'
        f'<div class="found">{sentences}</div>{folded}</article>'
    )


def _image(picture: bytes, alt: str) -> str:
    data = base64.b64encode(picture).decode()
    return f'<img alt="{_text(alt)}" src="data:image/png;base64,{data}">'


def _text(text: str) -> str:
    return html.escape(text)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>neuralrace: which gated network is a ReLU network?</title>
<style>{style}</style></head>
<body><header><h1>Which gated network is a ReLU network?</h1>
<p>A ReLU network gates its own neurons. <i>Make Haste Slowly</i> (Jarvis, Klein, Rosman &amp;
Saxe, 2025) says which gates it comes to: those of the pathways that learn fastest. Here that is put
to the test on two tasks. Candidate gatings are raced in theory; the winner’s learning is predicted
from its reduced equations and its initial weights, and nothing is fitted; ReLU networks are
trained; gates are looked for in their activity; and how far the gated network is from them is
measured.</p>
<nav><ul>{entries}</ul></nav></header>
<main>
<figure>{overview}<figcaption>Above the extended XoR, below the task with three contexts. Wide and
yellow: ReLU networks; blue: gated networks; dashed: what was predicted of them; dotted: the gating
that comes second.</figcaption></figure>
{parts}
</main>
<footer>{about}</footer></body></html>
"""
_STYLE = """
:root { color-scheme: light; }
body { margin: 0 auto; padding: 2rem 1.2rem 3rem; max-width: 54rem; color: #1a1a1a;
  background: #fff; font: 17px/1.55 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
h1 { margin: 0; font-size: 1.8rem; line-height: 1.2; }
h2 { margin: 3rem 0 .3rem; font-size: 1.45rem; }
h3 { margin: 0; font-size: 1.1rem; } a { color: #00598c; }
nav ul { display: flex; flex-wrap: wrap; gap: .4rem; padding: 0; list-style: none; }
nav a { display: block; padding: .15rem .8rem; border: 1px solid #ccc; border-radius: 1rem;
  text-decoration: none; }
article { margin: 1.4rem 0; padding: 1rem 1.2rem; border: 1px solid #ddd; border-radius: .5rem; }
.number { display: inline-block; width: 1.6em; margin-right: .3em; border-radius: 50%;
  background: #00598c; color: #fff; text-align: center; font-size: .9em; line-height: 1.6em; }
.asks, .about, figcaption, footer { color: #444; } .asks { margin: .3rem 0 0; }
.found { border-left: 4px solid #009e73; padding-left: .9rem; } .found p { margin: .5rem 0; }
figure { margin: 1.5rem 0; } figcaption, footer { font-size: .9rem; }
img { display: block; width: 100%; height: auto; margin: .8rem auto; }
details { margin-top: .6rem; } summary { cursor: pointer; color: #00598c; }
pre { overflow-x: auto; padding: .7rem; background: #f6f6f3; font-size: .8rem; }
footer { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: .8rem; }
@media (max-width: 40rem) { article { padding: .8rem .6rem; } body { padding: 1rem .7rem; } }
"""

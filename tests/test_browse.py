"""The check of a built site in a browser: every kind of fault is found, and nothing else."""

import urllib.request

import pytest

from tests.test_errors import refuses, says
from tools import browse

PAGES = {
    "clean": "<p>nothing is wrong</p><img src='dot.gif'>",
    "wide": "<div style='width: 3000px'>wide</div>",
    "picture": "<img src='missing.png'>",
    "at_load": "<script>throw new Error('broken at load')</script>",
    "after_load": "<script>onload = () => setTimeout(() => { late() }, 250)</script>",
    "said": "<script>console.error('a complaint')</script>",
    "file": "<script src='missing.js'></script>",
    "restless": "<script>setInterval(() => fetch('dot.gif?' + Math.random()), 100)</script>",
    "_static/theirs": "<script>throw new Error('not ours')</script>",
}
FOUND = {
    "wide": "wider than the window",
    "picture": "no picture http://127.0.0.1:{port}/missing.png",
    "at_load": "broken at load",
    "after_load": "late is not defined",
    "said": "a complaint (http://127.0.0.1:{port}/said.html)",
    "file": "Failed to load resource: the server responded with a status of 404 (File not found) "
    "(http://127.0.0.1:{port}/missing.js)",
    "restless": "not at rest after 3 s",
}
DOT = bytes.fromhex(
    "47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b"
)


@pytest.fixture
def site(tmp_path):
    (tmp_path / "_static").mkdir()
    (tmp_path / "dot.gif").write_bytes(DOT)
    for name, body in PAGES.items():
        (tmp_path / f"{name}.html").write_text(f"<!doctype html><body>{body}")
    return tmp_path


def test_pages_are_those_of_the_site(site):
    assert browse.pages(site) == sorted(f"{name}.html" for name in ("clean", *FOUND))


def test_a_folder_without_pages_is_an_error(tmp_path, capsys):
    with says("there are no pages", got="without HTML", wanted="built site", fix="make docs"):
        browse.pages(tmp_path)
    with refuses("typo"):
        browse.pages(tmp_path / "typo")
    for arguments, told in (([], "required: folder"), ([str(tmp_path)], "there are no pages")):
        with pytest.raises(SystemExit) as ended:
            browse.main(arguments)
        assert ended.value.code == 2
        assert told in capsys.readouterr().err


def test_a_machine_without_a_browser_is_told(monkeypatch):
    pytest.importorskip("playwright")
    monkeypatch.setattr(browse.shutil, "which", lambda _: None)
    with (
        says("no browser", got="chromium", wanted="chromium", fix="install"),
        browse.browser(),
    ):
        pass


def test_a_server_ends_where_its_block_fails(tmp_path):
    seen = []

    def failing():
        with browse.served(tmp_path) as address:
            seen.append(address)
            assert urllib.request.urlopen(address).status == 200
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(*seen)


@pytest.mark.browser
def test_every_fault_is_found_and_a_clean_page_has_none(site, chromium):
    with browse.served(site) as address:
        port = address.split(":")[2].strip("/")
        found = browse.faults(chromium, address, browse.pages(site), widths=[390], patience=3000)
    wanted = {
        f"{name}.html at 390 pixels, {scheme}: {text.format(port=port)}"
        for name, text in FOUND.items()
        for scheme in browse.SCHEMES
    }
    assert set(found) == wanted and len(found) == len(wanted)


@pytest.mark.browser
def test_an_address_that_does_not_answer_is_a_fault(site, chromium):
    with browse.served(site) as address:
        pass
    found = browse.faults(chromium, address, ["clean.html"], widths=[390], schemes=["light"])
    assert len(found) == 1 and "ERR_CONNECTION_REFUSED" in found[0]
    assert browse.hits(chromium, address, ["word"]) == {"word": 0}


@pytest.mark.browser
def test_the_search_of_a_site_is_asked(tmp_path, chromium):
    """A search page that finds every word of one letter, and never answers for `never`."""
    (tmp_path / "search.html").write_text(
        "<!doctype html><p class='search-summary'></p><div id='search-results'></div><script>"
        "const q = new URLSearchParams(location.search).get('q'), all = q.length < 2;"
        "if (q != 'never') document.querySelector('p').textContent = "
        "all ? 'Search finished' : 'Your search did not match any documents';"
        "if (all) document.querySelector('div').innerHTML = '<ul class=search><li>1<li>2</ul>'"
        "</script>"
    )
    with browse.served(tmp_path) as address:
        found = browse.hits(chromium, address, ["a", "many words", "never"], patience=1000)
    assert found == {"a": 2, "many words": 0, "never": 0}

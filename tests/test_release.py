"""What a release needs beside code: a citation that tools can read, metadata, a changelog."""

import datetime
import re
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import neuralrace as nr

ROOT = Path(__file__).parent.parent
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# What version 1.2.0 of the Citation File Format allows, as far as it is used here.
TOP = {"abstract", "authors", "cff-version", "date-released", "doi", "keywords", "license"}
TOP |= {"message", "references", "repository-code", "title", "type", "url", "version"}
REFERENCE = {"authors", "collection-title", "collection-type", "conference", "date-released", "doi"}
REFERENCE |= {"end", "issue", "journal", "notes", "pages", "publisher", "start", "title", "type"}
REFERENCE |= {"url", "volume", "year"}
TYPES = {"article", "book", "conference-paper", "generic", "slides", "software"}
PERSON = {"affiliation", "family-names", "given-names", "orcid", "name-particle", "name-suffix"}
ENTITY = {"name", "website", "city", "country"}


def test_the_citation_file_has_what_the_format_needs():
    assert CITATION["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(CITATION) <= TOP
    assert CITATION["type"] in ("software", "dataset")
    assert CITATION["license"] == PROJECT["license"]
    assert CITATION["version"] == nr.__version__
    if "date-released" in CITATION:
        assert isinstance(CITATION["date-released"], datetime.date)


@pytest.mark.parametrize("entry", CITATION["references"], ids=lambda entry: entry["title"][:30])
def test_a_reference_has_what_the_format_needs(entry):
    assert {"authors", "title", "type"} <= set(entry) <= REFERENCE
    assert entry["type"] in TYPES
    assert re.match(r"10\.\d{4,}/", entry.get("doi", "10.0000/"))
    assert re.match(r"https?://", entry.get("url", "https://"))
    assert all(isinstance(entry.get(key, 0), int) for key in ("year", "volume", "start", "end"))
    for inside in ("conference", "publisher"):
        assert inside not in entry or "name" in entry[inside]


def test_authors_are_people_or_entities():
    for entry in (CITATION, *CITATION["references"]):
        assert entry["authors"]
        for author in entry["authors"]:
            assert set(author) <= (ENTITY if "name" in author else PERSON), author


def test_the_metadata_says_who_it_is_for_and_where_it_runs():
    kinds = PROJECT["classifiers"]
    assert len(kinds) == len(set(kinds))
    for wanted in ("Development Status", "Intended Audience", "Operating System", "Typing"):
        assert any(kind.startswith(f"{wanted} ::") for kind in kinds), wanted
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert f"Programming Language :: Python :: {oldest}" in kinds
    assert not any(kind.startswith("License ::") for kind in kinds)  # `license` says it
    assert all(url.startswith("https://") for url in PROJECT["urls"].values())


def test_the_changelog_has_the_usual_form():
    text = (ROOT / "CHANGELOG.md").read_text()
    assert "keepachangelog.com" in text
    assert "semver.org" in text
    versions = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert versions[0] == "Unreleased"
    kinds = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    for version in versions[1:]:
        assert re.fullmatch(r"\[?\d+\.\d+\.\d+\]? - \d{4}-\d\d-\d\d", version), version


# ---- installing ---------------------------------------------------------------------------------


def test_nobody_is_sent_to_an_index_that_does_not_have_the_package():
    """Without a release, `pip install neuralrace` finds nothing, or another package."""
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    sent = {}
    for file in files:
        found = re.findall(r"pip install '?neuralrace.*", file.read_text(), re.MULTILINE)
        if found and file.name not in ("install.md", "faq.md"):  # these say that it is not there
            sent[file.name] = found
    assert sent == {}


def test_the_versions_of_python_that_were_tried_are_those_of_the_metadata():
    from tools import release_check

    versions = release_check.supported(PROJECT)
    assert versions[0] == PROJECT["requires-python"].removeprefix(">=")
    page = (ROOT / "docs/start/install.md").read_text()
    assert f"Python | {', '.join(versions[:-1])} and {versions[-1]}" in page
    assert f"JAX | {release_check.oldest_jax(PROJECT)} or later" in page


def test_the_smoke_test_knows_every_file_that_is_no_python():
    """Files of the explorer's page aside, of which it tries some."""
    from tools import smoke

    source = ROOT / "src" / "neuralrace"
    others = {str(file.relative_to(source)) for file in source.rglob("*") if file.is_file()}
    others = {n for n in others if not n.endswith((".py", ".pyc")) and "explorer/web" not in n}
    assert others <= set(smoke.DATA)
    assert all((source / name).is_file() for name in smoke.DATA)


def test_the_wheel_has_the_package_alone_and_is_small(tmp_path):
    from tools import release_check

    (wheel,) = release_check.build(ROOT, tmp_path, "wheel")
    release_check.check_wheel(wheel)
    with zipfile.ZipFile(wheel, "a") as packed:
        packed.writestr("papers/nrr/fig4.py", "")
    with pytest.raises(ValueError, match="papers"):
        release_check.check_wheel(wheel)

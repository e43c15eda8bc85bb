"""Numbers that are kept from an earlier ledger, since their tables are not at hand."""

import json
from dataclasses import replace

import pytest
import xarray
from click.testing import CliRunner

from neuralrace.errors import NeuralRaceError
from papers import find
from papers.claims import Claim, Ledger, Measure, Tables, Verdict
from papers.claims.sources import Origin
from papers.commands import commands
from tests.test_errors import says


def made(_, name, changes):
    """A figure with one number per seed."""
    table = xarray.Dataset({"gap": ("seed", [0.3] * 10)})
    figure = replace(find(name), compute=lambda _: table, agreement=lambda _: ())
    return figure.run(figure.resolve(changes=changes))


def at_hand(tables):
    return tables.at_hand("nrr/appendix_a2", key=7)["gap"].to_numpy()


def claim(most=0.1, id="gap", what="the gap", name="nrr/far", read=at_hand):
    measure = Measure(id, what, read, most=most)
    return Claim(name, "here", "It is so.", "By eye.", (measure,), "so")


NEAR = claim(name="nrr/near", what="another gap", read=lambda tables: 0.0)
CLAIMS = (claim(), NEAR)


@pytest.fixture
def page(tmp_path, monkeypatch):
    """A page of two claims, one of which rests on a table that is not at hand."""
    monkeypatch.setattr("papers.claims.page.PAPERS", {"nrr": "A paper"})
    monkeypatch.setattr("papers.claims.ledger", lambda *names: tuple(
        each for each in CLAIMS if not names or each.name in names or "nrr" in names))  # fmt: skip
    monkeypatch.setattr(Tables, "_made", made)
    far, near = CLAIMS[0].judged([0.05]), CLAIMS[1].judged([0.0])
    far = replace(far, tables=("big.npz",), instead=("It was so.",))
    origins = {"big.npz": Origin("abc1234", device="a fast one"), "other.npz": Origin("def")}
    path = tmp_path / "claims.md"
    whole = Ledger((far, near), origins=origins)
    path.write_text(whole.page())
    path.with_suffix(".json").write_text(json.dumps(whole.kept()))
    return path


def asked(*arguments):
    found = CliRunner().invoke(commands, ["claims", *map(str, arguments)])
    if found.exception:
        raise found.exception
    return found.output


def test_a_kept_entry_has_its_old_number_and_the_page_says_so(page):
    asked("--out", page, "--keep", "nrr/far")
    text, kept = page.read_text(), json.loads(page.with_suffix(".json").read_text())
    assert "Not measured again: `nrr/far`." in text and "`nrr/near`" not in text
    assert "rest on `big.npz` (abc1234, a fast one)" in text and "other.npz" not in text
    assert kept["claims"]["nrr/far"]["found"] == {"gap": [0.05, 0.05, 0.05, None]}
    assert Ledger.restored(kept, CLAIMS).page() == text
    # kept once more, it still says where its numbers come from
    asked("--out", page, "--keep", "nrr/far")
    assert page.read_text() == text


def test_smaller_settings_do_not_replace_the_numbers_of_a_page(page):
    before = page.read_text(), page.with_suffix(".json").read_text()
    with says("nrr/appendix_a2 is not stored at full size", got="no file", wanted="smaller",
              fix="--keep"):  # fmt: skip
        asked("--out", page)
    assert (page.read_text(), page.with_suffix(".json").read_text()) == before
    assert "does not hold: nrr/far" in asked()  # without a page, they are enough
    page.with_suffix(".json").unlink()
    asked("--out", page)
    assert json.loads(page.with_suffix(".json").read_text())["claims"]["nrr/far"]["found"]


def test_figures_that_are_not_stored_are_told_before_anything_is_measured(page, monkeypatch):
    def never(_):
        raise AssertionError("it was measured")

    far = [replace(claim(name=f"nrr/{n}"), at_hand=("nrr/appendix_a2",)) for n in ("far", "out")]
    claims = (claim(name="nrr/near", what="another gap", read=never), *far)
    monkeypatch.setattr("papers.claims.ledger", lambda *names: tuple(
        each for each in claims if not names or each.name in names))  # fmt: skip
    with says("nrr/appendix_a2 is not stored", got="no file", wanted="smaller", fix="nrr/out"):
        asked("--out", page, "--keep", "nrr/far")
    with says("is not stored", got="", wanted="", fix='KEEP="…"`, with nrr/far nrr/out'):
        asked("--out", page)
    with pytest.raises(AssertionError, match="measured"):
        asked()  # without a page, smaller settings are enough


def test_a_claim_that_is_not_asked_for_cannot_be_kept(page, monkeypatch):
    other = claim(name="mhs/far")
    monkeypatch.setattr("papers.claims.ledger", lambda *names: tuple(
        each for each in (*CLAIMS, other) if each.name.startswith(names)))  # fmt: skip
    before = page.read_text()
    with says("only claims that are asked for", got="mhs/far", wanted="papers", fix="mhs as well"):
        asked("nrr", "--out", page, "--keep", "mhs/far")
    assert page.read_text() == before


def test_today_s_bounds_judge_kept_numbers(page, monkeypatch):
    monkeypatch.setattr("papers.claims.ledger", lambda *_: (claim(most=0.01),))
    kept = json.loads(page.with_suffix(".json").read_text())
    (entry,) = Ledger.earlier(kept, [claim(most=0.01)]).entries
    assert entry.verdict is Verdict.FAILS and entry.found[0].value == 0.05
    said = lambda most: Ledger.earlier(kept, [claim(most=most)]).page()
    assert "It was so." in said(0.01) and "It was so." not in said(0.1)


@pytest.mark.parametrize(
    ("other", "lost"),
    [(claim(id="another"), "another"), (claim(name="nrr/new"), "the whole entry")],
)
def test_a_number_that_is_not_there_cannot_be_kept(page, other, lost):
    kept = json.loads(page.with_suffix(".json").read_text())
    with says(f"{other.name}'", got=lost, wanted="under its id", fix="measure the claim again"):
        Ledger.earlier(kept, [other])
    assert Ledger.restored(kept, [other]).entries == ()


def test_a_number_is_kept_in_other_words(page):
    kept = json.loads(page.with_suffix(".json").read_text())
    other = replace(claim(what="in other words"), says="It is still so.", how="By ear.")
    (entry,) = Ledger.earlier(kept, [other]).entries
    assert entry.found[0].value == 0.05 and entry.pairs[0][0].what == "in other words"


def test_nothing_can_be_kept_without_a_page_at_full_size(page):
    keep = ("--keep", "nrr/far")
    for where, got in (((), "no --out"), (("--out", page, "--quick"), "--quick")):
        with says("no numbers to keep", got=got, wanted="full size", fix="--out"):
            asked(*where, *keep)
    page.with_suffix(".json").unlink()
    with pytest.raises(NeuralRaceError, match="no numbers to keep"):
        asked("--out", page, *keep)


def test_an_entry_names_the_tables_it_was_read_from(page):
    tables = Tables()
    twice = lambda seeds: {"gap": [0.1] * seeds}
    both = claim(read=lambda t: [*t("nrr/appendix_a2", key=7)["gap"].to_numpy(),
                                 *t.once(twice, seeds=6)["gap"]])  # fmt: skip
    for one in (both, replace(both, name="nrr/again")):  # the second reads what is remembered
        files = one.measure(tables).tables
        assert [file.partition("-")[0] for file in files] == ["nrr_appendix_a2", "<lambda>"]
    assert NEAR.measure(tables).tables == ()

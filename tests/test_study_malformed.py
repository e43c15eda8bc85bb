"""Studies that are wrong: each is answered by a message with file, key and fix, no traceback."""

import pickle
import sys
import textwrap

import jax
import numpy as np
import optax
import pytest

import neuralrace as nr
from neuralrace import cli

GOOD = """
questions = ["contest"]
[task]
builtin = "extended_xor"
parameters = { delta = 0.4 }
[gatings.linear]
masks = { positive = "y > 0", negative = "y < 0" }
"""
CSV = 'questions = ["contest"]\n[task]\nfile = "my.csv"\nx = ["a", "b"]\ny = ["c"]\n'
GRAPH = '[network.graph]\nsizes = { h = 4 }\nedges = { W1 = ["x", "h"], W2 = ["h", "y"] }\n'


def xor(*lines, questions='["contest"]'):
    """A study of the extended XoR with these lines added."""
    task = '[task]\nbuiltin = "extended_xor"\nparameters = { delta = 0.4 }\n'
    return f"questions = {questions}\n{task}" + "\n".join(lines)


def python(target, *lines):
    return f'questions = ["train"]\n[task]\npython = "{target}"\n' + "\n".join(lines)


MASK = '[gatings.a]\nmasks = { one = "%s" }'

BAD = {
    # not TOML
    "no file": (None, "", "cannot be read"),
    "empty": ("", "questions", "missing"),
    "no TOML": ("questions = [", "line 1", "not valid TOML"),
    "unquoted text": ("questions = contest", "line 1", "not valid TOML"),
    "key twice": ('title = "a"\ntitle = "b"', "line 2", "not valid TOML"),
    "half a table": ('questions = ["contest"]\n[task\nbuiltin = "xor"', "line 2", "not valid TOML"),
    "no UTF-8": (b"title = '\xff\xfe'", "", "cannot be read"),
    # keys and kinds
    "unknown section": (GOOD + "[trainig]\nsteps = 5", "trainig", "'training'"),
    "unknown key": (GOOD + "[training]\nstep = 5", "training.step", "'steps'"),
    "unknown key of a gating": (xor("[gatings.a]\nmask = {}"), "gatings.a.mask", "'masks'"),
    "no task": ('questions = ["contest"]', "task", "missing"),
    "no questions": ('[task]\nbuiltin = "xor"', "questions", "missing"),
    "empty questions": (xor(questions="[]"), "questions", "at least 1"),
    "unknown question": (xor(questions='["contst"]'), "questions: entry 1", "'contest'"),
    "question twice": (xor(questions='["train", "train"]'), "questions", "twice"),
    "questions as text": (xor(questions='"contest"'), "questions", "a list"),
    "text for a number": (GOOD + '[training]\nsteps = "many"', "training.steps", "whole number"),
    "number for text": (GOOD.replace('"extended_xor"', "3"), "task.builtin", "a text"),
    "float for a count": (GOOD + "[training]\nsteps = 2.5", "training.steps", "whole number"),
    "switch for a number": (GOOD + "[training]\nsteps = true", "training.steps", "whole number"),
    "negative": (GOOD + "[training]\nsteps = -5", "training.steps", "greater than 0"),
    "not finite": (GOOD + "[network]\nscale = inf", "network.scale", "finite"),
    "nan": (GOOD + "[network]\nscale = nan", "network.scale", "finite"),
    "text for a table": (GOOD + 'network = "big"', "gatings.linear.network", "no key"),
    "a table that is a list": ("network = [1]\n" + GOOD, "network", "a table"),
    # the task
    "no such task": (GOOD.replace("extended_xor", "extended_xr"), "task.builtin", "extended_xor"),
    "no source": ('questions = ["train"]\n[task]\n', "task", "exactly one"),
    "two sources": (GOOD.replace("[task]", '[task]\nfile = "my.csv"'), "task", "exactly one"),
    "unknown parameter": (GOOD.replace("delta", "dleta"), "task.parameters.dleta", "'delta'"),
    "missing parameter": (
        'questions = ["train"]\n[task]\nbuiltin = "extended_xor"',
        "task.parameters.delta",
        "missing",
    ),
    "parameter of a wrong kind": (GOOD.replace("0.4", '"big"'), "task.parameters", "number"),
    "missing file": (CSV.replace("my.csv", "mine.csv"), "task.file", "'my.csv'"),
    "file of another kind": (CSV.replace("my.csv", "my.xlsx"), "task.file", ".csv"),
    "a folder": (CSV.replace("my.csv", "folder.csv"), "task.file", "no file"),
    "broken npz": (CSV.replace("my.csv", "broken.npz"), "task.file", "cannot be read"),
    "no rows": (CSV.replace("my.csv", "empty.csv"), "task.file", "no rows"),
    "missing values": (
        CSV.replace("my.csv", "holes.csv"),
        "task.file",
        "sample 2 (line 3 of the file)\n",
    ),
    "no such column": (CSV.replace('"b"', '"bb"'), "task", "no column"),
    "no targets": (CSV.replace('y = ["c"]', ""), "task", "targets"),
    "no such label": (CSV + 'labels = ["context"]', "task", "no column"),
    "columns without a file": (GOOD.replace("[task]", '[task]\nx = ["a"]'), "task.x", "`file`"),
    "no function": (python("own"), "task.python", "module:function"),
    "no module": (python("nowhere:make"), "task.python", "cannot be imported"),
    "no such function": (python("own:mak"), "task.python", "'make'"),
    "a module that raises": (python("broken:make"), "task.python", "ZeroDivisionError"),
    "a function that raises": (python("own:fails"), "task.parameters", "KeyError"),
    "a function that exits": (python("own:exits"), "task", "ended the program"),
    "a function of no task": (python("own:nothing"), "task.python", "nr.Dataset"),
    # the network
    "depth and widths": (
        GOOD + "[network]\nwidths = [4, 4]\ndepth = 2",
        "network.depth",
        "as many layers",
    ),
    "masks and two layers": (
        xor("[network]\ndepth = 2", MASK % "always"),
        "gatings.a",
        "one hidden layer, and the network has several",
    ),
    "width of nothing": (GOOD + "[network]\nwidths = [8, 0]", "network.widths: entry 2", "greater"),
    "no layers": (GOOD + "[network]\nwidths = []", "network.widths", "at least one"),
    "graph and widths": (
        xor("[network]\nwidths = 4", GRAPH),
        "network.widths",
        "its own sizes",
    ),
    "a cycle": (xor(GRAPH.replace("W2 =", 'W3 = ["h", "h"], W2 =')), "network", "h"),
    "a longer cycle": (
        xor(
            GRAPH.replace("h = 4", "h = 4, k = 4").replace(
                "W2 =", 'W3 = ["h", "k"], W4 = ["k", "h"], W2 ='
            )
        ),
        "network",
        "cycle",
    ),
    "an edge to nowhere": (xor(GRAPH.replace('["h", "y"]', '["h", "z"]')), "network", "'z'"),
    "an edge with one end": (xor(GRAPH.replace('["h", "y"]', '["h"]')), "network.graph", "W2"),
    # gatings
    "no label": (xor(MASK % "contxt == 1"), "gatings.a.masks.one", "no label 'contxt'"),
    "nearest label": (xor(MASK % "positiv == 1"), "gatings.a.masks.one", "'positive'"),
    "nowhere on": (xor(MASK % "sample == 9"), "gatings.a.masks.one", "no sample"),
    "text and number": (xor(MASK % "sample == 'one'"), "gatings.a.masks.one", "in quotes"),
    "a call": (xor(MASK % "__import__('os').system('ls')"), "gatings.a.masks.one", "not allowed"),
    "an attribute": (xor(MASK % "x.shape == 1"), "gatings.a.masks.one", "not allowed"),
    "arithmetic": (xor(MASK % "sample % 2 == 0"), "gatings.a.masks.one", "not allowed"),
    "half an expression": (xor(MASK % "sample =="), "gatings.a.masks.one", "cannot be read"),
    "brackets": (xor(MASK % ("(" * 300)), "gatings.a.masks.one", "cannot be read"),
    "deep": (xor(MASK % ("not " * 200 + "y > 3")), "gatings.a.masks.one", "no sample"),
    "long": (xor(MASK % ("sample == 1 or " * 200)), "gatings.a.masks.one", "too long"),
    "no expression": (xor(MASK % " "), "gatings.a.masks.one", "expression"),
    "a column too many": (xor(MASK % "x[3] > 0"), "gatings.a.masks.one", "3 columns"),
    "a node of several columns": (xor(MASK % "x > 0"), "gatings.a.masks.one", "x[0]"),
    "no masks": (xor("[gatings.a]\nmasks = {}"), "gatings.a.masks", "no pathways"),
    "no gating": (xor("[gatings.a]\n"), "gatings.a", "exactly one"),
    "two gatings": (xor('[gatings.a]\neach = "sample"\nfile = "m.csv"'), "gatings.a", "exactly"),
    "masks of another length": (xor('[gatings.a]\nfile = "my.csv"'), "gatings.a.file", "4, one"),
    "masks of text": (xor('[gatings.a]\nfile = "text.csv"'), "gatings.a.file", "number"),
    "each of no label": (xor('[gatings.a]\neach = "sampel"'), "gatings.a.each", "'sample'"),
    "no such gating": (
        xor('[gatings.a]\nbuiltin = "xor_pathway"'),
        "gatings.a.builtin",
        "'xor_pathways'",
    ),
    "widths of others": (
        xor(MASK % "always", "hidden = { two = 3 }"),
        "gatings.a",
        "'two'",
    ),
    "name of a node": (xor('[gatings.a]\nmasks = { x = "always" }'), "gatings.a", "rename"),
    "gates without a graph": (xor('[gatings.a]\ngates = { h = "always" }'), "gatings.a.gates", "g"),
    "gates of no node": (
        xor(GRAPH, '[gatings.a]\ngates = { k = "y > 0" }'),
        "gatings.a.gates.k",
        "node or edge",
    ),
    # questions and their options
    "predict without gatings": (xor(questions='["predict"]'), "questions", "[gatings"),
    "phases of nothing": (GOOD.replace("contest", "phase_diagram", 1), "phase_diagram", "varied"),
    "predict nobody": (GOOD + '[predict]\ngating = "linaer"', "predict.gating", "'linear'"),
    "theory of Adam": (
        GOOD.replace("contest", "predict", 1) + '[training]\noptimizer = { name = "adam" }',
        "questions",
        "gradient descent",
    ),
    "types of a deep network": (
        xor("[network]\nwidths = [4, 4]", questions='["types"]'),
        "questions",
        "one hidden layer",
    ),
    "types with a bias": (
        xor("[network]\nbias = true", questions='["types"]'),
        "questions",
        "column of ones",
    ),
    "optimizer and rate": (
        GOOD + '[training]\nlearning_rate = 0.1\noptimizer = { name = "adam" }',
        "training.learning_rate",
        "one of them",
    ),
    "no such optimizer": (
        GOOD + '[training]\noptimizer = { name = "adamm" }',
        "training.optimizer.name",
        "'adam'",
    ),
    "optimizer of other arguments": (
        GOOD + '[training]\noptimizer = { name = "adam", rate = 0.1 }',
        "training.optimizer.rate",
        "learning_rate",
    ),
    # sweeps
    "a sweep over nothing": (GOOD + "[sweep]\nover = {}", "sweep.over", "varies nothing"),
    "a sweep over no key": (
        GOOD + '[sweep.over]\n"training.stepps" = [1, 2]',
        "sweep.over.training.stepps",
        "'steps'",
    ),
    "a sweep over no parameter": (
        GOOD + "[sweep.over]\ntask.parameters.dlta = [1, 2]",
        "sweep.over.task.parameters.dlta",
        "'delta'",
    ),
    "a sweep over a wrong value": (
        GOOD + '[sweep.over]\n"training.steps" = [10, 2.5]',
        "sweep.over.training.steps",
        "2.5",
    ),
    "a sweep without values": (
        GOOD + '[sweep.over]\n"training.steps" = []',
        "sweep.over.training.steps",
        "no values",
    ),
    "a sweep backwards": (
        GOOD + '[sweep.over]\n"network.scale" = { start = 2, stop = 1, count = 3 }',
        "sweep.over.network.scale",
        "start below stop",
    ),
    "a sweep of one end": (
        GOOD + '[sweep.over]\n"network.scale" = { start = 2, count = 3 }',
        "sweep.over.network.scale.stop",
        "missing",
    ),
    "a sweep over itself": (
        GOOD + '[sweep.over]\n"sweep.seeds" = [1, 2]',
        "sweep.over.sweep.seeds",
        "cannot be varied",
    ),
    "phases backwards": (
        GOOD + '[phase_diagram]\nkey = "task.parameters.delta"\nvalues = [1, 0]',
        "phase_diagram.values",
        "increase",
    ),
    "phases over no key": (
        GOOD + '[phase_diagram]\nkey = "task.parameters.dleta"\nvalues = [0, 1]',
        "phase_diagram.key",
        "'delta'",
    ),
    "spread without count": (
        GOOD + '[sweep.over]\n"network.scale" = { start = 0.1, stop = 1.0 }',
        "sweep.over.network.scale.count: this key is missing.",
        "for example count = 21",
    ),
    "phases without count": (
        GOOD
        + '[phase_diagram]\nkey = "task.parameters.delta"\nvalues = { start = 0.0, stop = 1.0 }',
        "phase_diagram.values.count: this key is missing.",
        "how many values",
    ),
    "cause of a syntax error": (
        "questions = [",
        "line 1: this is not valid TOML: ",
        "invalid value",
    ),
    "large relative criterion": (
        GOOD + "[contest]\ncriterion = 50\nrelative = true",
        "contest.criterion",
        "a share below 1",
    ),
    "single equals sign": (xor(MASK % "sample = 1"), "gatings.a.masks.one", "did you mean =="),
    "semicolons": (CSV.replace("my.csv", "semicolons.csv"), "task.file", "semicolons"),
    "input and target": (CSV.replace('"b"]', '"c"]'), "task.x", "an input and a target"),
    "quick over no key": (GOOD + '[quick]\n"training.stps" = 3', "quick", "'steps'"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    (folder / "my.csv").write_text("a,b,c\n1,2,3\n4,5,6\n7,8,9\n")
    (folder / "text.csv").write_text("a\nyes\nno\nyes\nno\n")
    (folder / "empty.csv").write_text("a,b,c\n")
    (folder / "holes.csv").write_text("a,b,c\n1,2,3\n4,,6\n")
    (folder / "semicolons.csv").write_text("a;b;c\n1,5;2;3\n")
    (folder / "my.xlsx").write_text("")
    (folder / "broken.npz").write_text("no archive")
    (folder / "folder.csv").mkdir()
    (folder / "broken.py").write_text("1 / 0\n")
    own = """
        import sys
        def make(): ...
        def fails(): raise KeyError("nothing there")
        def exits(): sys.exit(3)
        def nothing(): return 5
    """
    (folder / "own.py").write_text(textwrap.dedent(own))
    return folder


@pytest.mark.parametrize("name", BAD)
def test_a_study_that_is_wrong_is_told_what_where_and_how_to_fix_it(name, folder, monkeypatch):
    text, key, word = BAD[name]
    path = folder / "study.toml"
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    monkeypatch.setattr(sys, "argv", ["neuralrace", "check", str(path)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    said = str(caught.value.code)
    assert said.startswith(f"error: {path}, {key}" if key else f"error: {path}: "), said
    heads, parts = said.splitlines()[::4], [said.splitlines()[i::4] for i in (1, 2, 3)]
    assert all(head.removeprefix("error: ").startswith(str(path)) for head in heads), said
    for name, those in zip(["got", "wanted", "fix"], parts, strict=True):
        assert len(those) == len(heads), said
        assert all(part.startswith(f"  {name}:") for part in those), said
        assert all(part.partition(":")[2].strip() for part in those), said
    assert word in said, said
    assert "Traceback" not in said


WRONG = {
    "kinds of values": (
        'questions = "contest"\n[task]\nbuildin = "xor"\n'
        "[network]\nscale = -1\n[training]\nsteps = 2.5",
        ["task.buildin", "questions", "network.scale", "training.steps"],
    ),
    "what must fit together": (
        xor(
            "[network]\ndepth = 2\nwidths = [4, 4]\nbias = true",
            '[training]\nrecord_at = [1]\nrecord_every = 2\noptimizer = { name = "adam" }',
            "[gatings.a]",
            '[gatings.b]\nmasks = { one = "always" }\nparameters = { total = 3 }',
            questions='["types", "predict"]',
        ),
        ["network.depth", "gatings.a", "gatings.b.parameters", "training.record_at", "questions",
         "questions", "questions", "gatings.b", "questions"],
    ),
    "what is built": (
        xor(
            '[gatings.a]\nmasks = { one = "x[3] > 0", two = "sample == 9", three = "always" }',
            '[gatings.b]\neach = "sampel"',
            '[training.evaluate.other]\nbuiltin = "xr"',
        ),
        ["training.evaluate.other.builtin", "gatings.a.masks.one", "gatings.a.masks.two",
         "gatings.b.each"],
    ),
    "sweeps": (
        GOOD + '[sweep.over]\n"training.steps" = [10, 2.5]\n"training.stps" = [1, 2]\n'
        '[quick]\n"network.scle" = 3',
        ["sweep.over.training.steps", "sweep.over.training.stps", "quick"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_all_that_is_wrong_is_told_at_once(name, folder):
    """One error has every key at fault, in its message and one by one; it can be pickled."""
    text, keys = WRONG[name]
    (folder / "wrong.toml").write_text(text)
    with pytest.raises(nr.study.StudyError) as caught:
        nr.Study.load(folder / "wrong.toml").check()
    error = caught.value
    assert [error.key, *(other.key for other in error.others)] == keys
    heads = [f"{error.file}, {key}: " for key in keys]
    assert all(
        line.startswith(h) for line, h in zip(str(error).splitlines()[::4], heads, strict=True)
    )
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and [e.key for e in again.others] == keys[1:]


def test_a_fix_names_nothing_that_was_not_given(folder):
    for lines in ("widths = [6, 6]", "widths = 6\ndepth = 2"):
        (folder / "deep.toml").write_text(xor(f"[network]\n{lines}", MASK % "always"))
        with pytest.raises(nr.study.StudyError) as caught:
            nr.Study.load(folder / "deep.toml")
        assert caught.value.key == "gatings.a"
        assert ("depth" in caught.value.fix) == ("depth" in lines)


ADAM = {"steps": 20, "seeds": 2, "optimizer": {"name": "adam", "learning_rate": 0.01}}


def test_gates_of_networks_trained_by_adam_are_found():
    study = {"task": {"builtin": "extended_xor", "parameters": {"delta": 0.4}}, "training": ADAM}
    study |= {"network": {"widths": 8, "scale": 0.1}, "discover": {"pathways": 2}}
    made = nr.Study.of(questions=["discover"], **study)
    found = made.run()["discover"].value
    runs = nr.train_ensemble(
        nr.ReLUNetwork((3, 8, 1)), nr.tasks.extended_xor(0.4), seeds=2, steps=20, scale=0.1,
        key=jax.random.split(jax.random.key(0))[0], optimizer=optax.adam(0.01),
        record={"weights": True},
    )  # fmt: skip
    own = nr.reln.discover(
        [runs.isel(seed=i) for i in range(2)], nr.tasks.extended_xor(0.4), pathways=2
    )
    np.testing.assert_array_equal(found.patterns["h"], own.patterns["h"])
    with pytest.raises(nr.study.StudyError) as caught:
        made.changed({"discover.pathways": "elbow"})
    assert caught.value.key == "discover.pathways"


@pytest.mark.slow
def test_networks_trained_by_adam_are_certified():
    certified = nr.Study.of(
        questions=["certify"],
        task={"builtin": "extended_xor", "parameters": {"delta": 0.4}},
        network={"widths": 8, "scale": 0.1},
        training=ADAM,
        gatings={"xor": {"each": "sample"}},
    ).run()["certify"]
    assert 0 < certified.numbers["outputs_distance"] < 1


def test_the_study_that_the_others_are_made_of_is_right(folder, monkeypatch, capsys):
    path = folder / "good.toml"
    for text in (GOOD, CSV, xor(GRAPH), xor(MASK % "sample in [1, 2] and not x[0] > 0")):
        path.write_text(text)
        monkeypatch.setattr(sys, "argv", ["neuralrace", "check", str(path)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        assert caught.value.code == 0, caught.value.code
        assert "task: " in capsys.readouterr().out
    assert len(BAD) >= 60

"""Studies: masks, what is built, answers, the script that does the same, reports and sweeps."""

import json
import re
import runpy
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import neuralrace as nr
from neuralrace import cli, report
from neuralrace.study import expressions
from neuralrace.study.answers.gates import in_order, match_patterns, nearest_sentences
from neuralrace.study.document import Document, to_toml
from neuralrace.study.page import page_of, settings_with_sources
from neuralrace.study.questions import QUESTIONS
from neuralrace.study.sweeping import answer_cells
from tests.test_errors import refuses, says
from tests.test_house import HEAVY, in_a_fresh_process

ROOT = Path(__file__).parent.parent
STUDIES = sorted((ROOT / "examples" / "studies").glob("*.toml"))


def xor(questions, **sections):
    """A small study of the extended XoR."""
    base = {
        "task": {"builtin": "extended_xor", "parameters": {"delta": 0.4}},
        "network": {"widths": 16, "scale": 1e-2},
        "gatings": {
            "linear": {"masks": {"positive": "y > 0", "negative": "y < 0"}},
            "xor": {"each": "sample"},
        },
        "training": {"steps": 60, "learning_rate": 0.2, "record_every": 4},
        "contest": {"check": False},
    }
    return nr.Study.of(questions=questions, **(base | sections))


def run(*arguments):
    result = CliRunner().invoke(cli.commands, [str(a) for a in arguments])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_decay_and_momentum_of_training_reach_races_and_contests():
    rule = {"steps": 60, "learning_rate": 0.05, "momentum": 0.5, "weight_decay": 0.03}
    training = {"training": rule | {"record_every": 4}}
    result = xor(["contest", "predict"], **training, predict={"gating": "xor"}).run()
    task = nr.tasks.extended_xor(0.4)
    alone = nr.contest({"xor": nr.tasks.xor_pathways(task, 16)}, scale=1e-2, weight_decay=0.03)
    assert result.numbers["time_xor"] == pytest.approx(alone.times["xor"], rel=1e-6)
    assert result.numbers["prediction_error"] < 1e-2
    for question in ("types", "explain"):
        with refuses(question):
            xor([question], **training)
    with refuses("contest.check"):
        xor(["contest"], **training, contest={"check": True})


# ---- masks --------------------------------------------------------------------------------------

COLUMNS = {
    "context": np.array([1, 2, 3, 1, 2]),
    "size": np.array([-1.0, 0.5, 2.0, 0.0, 2.5]),
    "kind": np.array(["pear", "fig", "fig", "plum", "pear"]),
}
NUMBER = st.integers(-1, 3)
ATOM = st.one_of(
    st.builds(
        "{} {} {}".format,
        st.sampled_from(["context", "size"]),
        st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
        NUMBER,
    ),
    st.builds("{} < {} <= {}".format, NUMBER, st.just("size"), NUMBER),
    st.builds("kind {} {!r}".format, st.sampled_from(["==", "!="]), st.sampled_from(["fig", "x"])),
    st.builds(
        "context {} {}".format, st.sampled_from(["in", "not in"]), st.lists(NUMBER, max_size=3)
    ),
    st.just("kind in ['pear', 'plum']"),
)
MASK = st.recursive(
    ATOM,
    lambda inner: st.one_of(
        st.builds("not ({})".format, inner),
        st.builds("({}) and ({})".format, inner, inner),
        st.builds("({}) or ({})".format, inner, inner),
    ),
    max_leaves=6,
)


@given(MASK)
@settings(max_examples=60, deadline=None)
def test_a_mask_says_what_python_says_of_every_sample(text):
    """Row by row with Python's own rules, and the NumPy code that scripts have for it."""
    tree = expressions.parse(text)
    found = expressions.evaluate(tree, COLUMNS)
    rows = [{n: c[i].item() for n, c in COLUMNS.items()} for i in range(5)]
    np.testing.assert_array_equal(found, [bool(eval(text, {}, row)) for row in rows])
    np.testing.assert_array_equal(eval(expressions.code(tree), {"np": np}, COLUMNS), found)


def test_always_and_columns_of_nodes():
    assert expressions.parse(" always ") is None
    names = {"x": np.array([[1.0, -2.0], [3.0, 4.0]])}
    read = lambda text: expressions.evaluate(expressions.parse(text), names).tolist()
    assert read("x[1] > 0") == [False, True]
    with refuses("x"):
        read("x[2] > 0")


# ---- what is built ------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    """One table in three kinds of files: two inputs, a text target, a label and a weight."""
    columns = {
        "a": np.array([1.0, 2.0, 3.0, 6.0]),
        "b": np.array([0.0, 1.0, 0.0, 1.0]),
        "kind": np.array(["yes", "no", "no", "yes"]),
        "w": np.array([1.0, 1.0, 1.0, 3.0]),
    }
    rows = ["a,b,kind,w", *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (tmp_path / "my.csv").write_text("\n".join(rows) + "\n")
    np.savez(tmp_path / "my.npz", **columns)
    data = xarray.Dataset({name: ("sample", column) for name, column in columns.items()})
    data.to_netcdf(tmp_path / "my.nc", engine="h5netcdf")
    return tmp_path


@pytest.mark.parametrize("kind", ["csv", "npz", "nc"])
def test_a_task_from_a_file(table, kind):
    data = nr.study.read_task(
        table / f"my.{kind}", x={"in": ["a", "b"]}, y=["kind"], labels=["kind"], weight="w"
    )
    np.testing.assert_array_equal(data.x["in"], [[1, 0], [2, 1], [3, 0], [6, 1]])
    np.testing.assert_array_equal(data.y["y"], [[0, 1], [1, 0], [1, 0], [0, 1]])  # no, yes
    np.testing.assert_allclose(data.sample_weight, [1 / 6, 1 / 6, 1 / 6, 1 / 2])
    assert data.mask(kind="yes").tolist() == [True, False, False, True]
    scaled = nr.study.read_task(table / f"my.{kind}", x=["a"], y=["b"], standardise=True)
    np.testing.assert_allclose(scaled.x["x"][:, 0], (np.array([1, 2, 3, 6]) - 3) / np.sqrt(3.5))


def test_every_way_to_name_a_gating_gives_the_same(tmp_path):
    """XoR's pathways by masks, by a label, by a file, by a builtin and by a function."""
    (tmp_path / "masks.csv").write_text("a,b,c,d\n1,0,0,0\n0,1,0,0\n0,0,1,0\n0,0,0,1\n")
    (tmp_path / "own.py").write_text(
        "import neuralrace as nr\n"
        "def gating(data, width):\n"
        "    return nr.pathways(data, data.one_per_sample(), hidden=width)\n"
    )
    ways = {
        "masks": {"masks": {n: f"sample == {i + 1}" for i, n in enumerate("abcd")}},
        "each": {"each": "sample"},
        "file": {"file": "masks.csv", "hidden": 4},
        "builtin": {"builtin": "xor_pathways", "parameters": {"total": 16}},
        "python": {"python": "own:gating", "parameters": {"width": 4}},
    }
    content = dict(xor(["contest"], gatings=ways).document.content)
    problem = nr.Study(Document(content, folder=tmp_path)).check()
    for arch, data in problem.candidates.values():
        assert [arch.sizes[v] for v in arch.hidden] == [4, 4, 4, 4]
        np.testing.assert_array_equal([data.gates[v] for v in arch.hidden], np.eye(4))


def test_networks_of_a_study():
    made = lambda **network: xor(["train"], network=network).check().relu
    assert made(widths=5, depth=2).arch == nr.Architecture.chain(3, 5, 5, 1)
    assert made(widths=[5, 6]).arch == nr.Architecture.chain(3, 5, 6, 1)
    assert made(widths=5, leak=0.1, bias=True) == nr.ReLUNetwork((3, 5, 1), leak=0.1, bias=True)
    graph = {"sizes": {"h": 4}, "edges": {"A": ["x", "h"], "B": ["h", "y"], "skip": ["x", "y"]}}
    arch = made(graph=graph).arch
    assert dict(arch.edges)["skip"] == ("x", "y") and dict(arch.sizes) == {"x": 3, "y": 1, "h": 4}
    several = xor(["train"], task={"builtin": "contextual", "parameters": {"items": 4}}, gatings={})
    assert several.check().relu.arch.inputs == ("item", "context")


def test_a_study_is_saved_and_loaded(tmp_path):
    study = xor(["contest", "train"], title='A "quoted" title', about="two\nlines")
    again = nr.Study.load(study.save(tmp_path / "study.toml"))
    assert again.settings == study.settings
    with says("cannot be written", got="Dataset", wanted="numbers", fix="python ="):
        to_toml({"task": [nr.tasks.xor()]})


# ---- answers, and the script that does the same -------------------------------------------------


def texts(sentences):
    """The texts of sentences, in their order."""
    return tuple(said.text for said in sentences)


def same(left, right):
    """The same numbers, in whatever objects they are."""
    np.testing.assert_array_equal(np.asarray(left), np.asarray(right))


def check_script(result, folder):
    """Run the script beside its files, and compare every answer with the result's."""
    import matplotlib.pyplot as plt

    result.report(folder)
    plt.close("all")
    names = runpy.run_path(str(folder / "study.py"))
    for question, answer in result.answers.items():
        found = names[QUESTIONS[question].steps[-1]]
        match question:
            case "relu":
                same(found.trajectory.loss, answer.value.trajectory.loss)
                same(found.networks, answer.value.networks)
            case "contest":
                assert found.times == answer.value.times
            case "reduce":
                assert {n: r.latex() for n, r in found.items()} == {
                    n: r.latex() for n, r in answer.value.items()
                }
            case "modes":
                for name, table in answer.value.items():
                    same(found[name].half_time, table.half_time)
                    same(found[name].seed_times, table.seed_times)
                    assert found[name].outputs == table.outputs
            case "train":
                same(found.loss, answer.value.loss)
            case "predict":
                same(names["gated_runs"].loss, answer.value[0].loss)
                for mine, own in zip(found, answer.value[1], strict=True):
                    same(mine.loss, own.loss)
            case "discover":
                same(found.patterns["h"], answer.value.patterns["h"])
                assert found.discrepancy == answer.value.discrepancy
            case "certify":
                for mine, own in zip(found, answer.value, strict=True):
                    same(mine.outputs, own.outputs)
            case "phase_diagram":
                assert found.crossovers == answer.value[0].crossovers
                if answer.value[1] is not None:
                    same(names["learning_times"], answer.value[1][1])
            case "types":
                same(found.trajectory.loss, answer.value.trajectory.loss)
            case "explain":
                assert [r.error for r in found.rows] == [r.error for r in answer.value.rows]
    return names


@pytest.mark.slow
def test_answers_and_the_script_have_the_same_numbers(tmp_path):
    training = {"steps": 60, "learning_rate": 0.2, "record_every": 4, "seeds": 1}
    result = xor(["predict", "contest"], training=training).run()
    assert list(result.answers) == ["contest", "predict"]
    times = result["contest"].value.times
    assert result["contest"].frame()["time"].to_list() == sorted(times.values())
    assert result.numbers["time_xor"] == times["xor"]
    assert result["predict"].numbers["prediction_error"] < 1e-2
    assert "xor is predicted to learn first" in texts(result.sentences())[0]
    names = check_script(result, tmp_path)
    assert names["net"].arch == result.problem.candidates["xor"][0]
    with xarray.open_dataset(tmp_path / "gated_networks.nc", engine="h5netcdf") as saved:
        same(saved["loss"], result["predict"].value[0].loss)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("questions", "sections"),
    [
        (["modes", "reduce"], {"modes": {"seeds": 2}}),
        (["relu"], {"relu": {"networks": 2, "neurons": 60, "types": False}}),
        (["discover", "train"], {"discover": {"most": 3, "networks": 1}}),
        (["certify", "predict"], {"training": {"steps": 40, "seeds": 2}}),
        (
            ["types"],
            {
                "types": {"types": 2, "neurons": 60},
                "network": {"widths": 16, "scale": 1e-4},
                "training": {"steps": 200, "learning_rate": 0.2},
            },
        ),
        (["explain"], {"explain": {"rows": ["gatings", "narrow"], "types": 4}}),
        (
            ["phase_diagram"],
            {
                "phase_diagram": {
                    "key": "task.parameters.delta",
                    "values": [0.4, 1.2],
                    "networks": 1,
                }
            },
        ),
        (
            ["predict", "train"],
            {
                "training": {"steps": 40, "dtype": "float32", "seeds": 1, "record": ["outputs"]},
                "predict": {"gating": "linear"},
            },
        ),
        (["predict"], {"training": {"steps": 40, "compress": True, "seeds": 2}}),
        (
            ["train"],
            {
                "training": {
                    "steps": 40,
                    "optimizer": {"name": "adam", "learning_rate": 0.01},
                    "evaluate": {"other": {"builtin": "extended_xor", "parameters": {"delta": 1}}},
                    "until": 0.3,
                },
                "network": {"widths": [6, 6], "bias": True, "leak": 0.1, "scale": 0.3},
            },
        ),
    ],
)
def test_the_script_of_every_question(questions, sections, tmp_path):
    check_script(xor(questions, **sections).run(), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table", pytest.param("module", marks=pytest.mark.slow)])
def test_the_script_of_a_table_and_of_a_module(name, table, tmp_path):
    (tmp_path / "own.py").write_text(
        "import neuralrace as nr\n\ndef make(delta):\n    return nr.tasks.extended_xor(delta)\n"
    )
    csv = {"file": "my.csv", "x": ["a", "b"], "y": ["kind"], "labels": ["kind"], "weight": "w"}
    gatings = {
        "low": {"masks": {"low": "a < 3 and kind != 'x'", "rest": "a >= 3"}},
        "kinds": {"each": "kind", "hidden": {"kind_no": 3, "kind_yes": 4}},
    }
    own = {"python": "own:make", "parameters": {"delta": 0.4}}
    tasks = {"table": (csv, gatings), "module": (own, {"xor": {"each": "sample"}})}
    task, those = tasks[name]
    content = dict(xor(["reduce", "train"], task=task, gatings=those).document.content)
    result = nr.Study(Document(content, folder=tmp_path)).run()
    names = check_script(result, tmp_path / "out")
    for gating, pair in result.problem.candidates.items():
        assert names["gatings"][gating][0] == pair[0]
        assert names["gatings"][gating][1].digest() == pair[1].digest()


def test_a_question_that_is_refused_is_left_out_of_the_report_with_its_reason(tmp_path):
    """A network of one neuron cannot have two types: the other questions are answered."""
    types = {"types": 2, "neurons": 40}
    study = xor(["reduce", "types"], network={"widths": 1}, types=types, contest={"start": 0.1})
    result = study.run()
    assert list(result.answers) == ["reduce"] and list(result.refused) == ["types"]
    assert any(
        "types is left out: there cannot be more types" in s for s in texts(result.sentences())
    )
    file, out = study.save(tmp_path / "study.toml"), tmp_path / "out"
    found = CliRunner().invoke(cli.commands, ["run", str(file), "--out", str(out)])
    assert found.exit_code == 3 and "types is left out" in found.stdout
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "What is left out, and why" in page and "more types than neurons" in page
    with pytest.raises(nr.study.StudyError, match="more types than neurons"):
        result["types"]
    assert "nr.reln.types" not in result.script


def test_a_question_that_was_not_asked():
    result = xor(["reduce"]).run()
    with says("did not ask 'redce'", got="'redce'", wanted="reduce", fix="'reduce'?"):
        result["redce"].frame()


def test_no_winner_is_an_error_of_the_criterion():
    with pytest.raises(nr.study.StudyError) as caught:
        xor(["predict"], contest={"criterion": 1e-30, "check": False, "longest": 1.0}).run()
    assert caught.value.key == "contest.criterion" and "[predict] gating" in caught.value.fix


@pytest.fixture
def two_parts(tmp_path):
    """A target that is linear in two inputs, and a weaker one that is their product."""
    rows = [f"{a},{b},{a},{0.6 * a * b}" for a in (-1, 1) for b in (-1, 1)]
    (tmp_path / "my.csv").write_text("\n".join(["a,b,first,second", *rows]) + "\n")
    gatings = {"whole": {"masks": {"all": "always"}}, "cases": {"each": "sample"}}
    task = {"file": "my.csv", "x": ["a", "b"], "y": ["first", "second"]}
    return lambda questions, **more: nr.Study(
        Document(
            dict(xor(questions, task=task, gatings=gatings, **more).document.content),
            folder=tmp_path,
        )
    )


def test_a_contest_says_where_the_lead_changes_and_what_the_winner_cannot_learn(two_parts):
    """`whole` learns the linear target first; of the product, ½ · .6² = .18, it learns nothing."""
    result = two_parts(["contest"], contest={"criterion": 0.4, "check": False}).run()
    first, limit, lead = texts(result["contest"].top)
    assert first.startswith("whole is predicted to learn first")
    level = float(re.fullmatch(r"At losses between \S+ and (0\.\d+) cases leads\.", lead)[1])
    assert 0.18 <= level < 0.25
    assert limit == (
        "whole cannot learn the whole task: no weights bring its loss below 0.18, 26 % of the "
        "initial loss; cases can get to 0."
    )
    table = result["contest"].frame().set_index("candidate")
    assert table["least_loss"].to_dict() == pytest.approx({"whole": 0.18, "cases": 0.0})
    below = two_parts(["contest"], contest={"criterion": 0.15, "check": False}).run()
    first, lead = texts(below["contest"].top)
    assert first.startswith("cases is predicted to learn first")
    assert lead.startswith(f"At losses between {level:.2g} and ")


def test_an_exact_reduction_to_matrices_is_no_test_of_a_prediction():
    """In blocks of matrices the recursion is the network's own; only ReLU networks test it."""
    coupled = {"halves": {"masks": {"left": "x[0] > 0", "right": "x[0] < 0", "all": "always"}}}
    training = {"steps": 20, "learning_rate": 0.2, "record_every": 4, "seeds": 2}
    answer = xor(["predict", "train"], gatings=coupled, training=training).run()["predict"]
    assert answer.numbers["prediction_error"] < 1e-6
    assert texts(answer.sentences())[1].startswith(
        "The reduction is exact, so this is a check of the comp"
    )
    assert [said[:15] for said in texts(answer.top)] == ["2 ReLU networks"]


def test_gatings_are_matched_with_patterns_by_the_nearest_and_by_weight():
    found = np.array([[1, 1, 0, 0], [0, 1, 1, 1], [1, 1, 1, 1]])
    share = np.array([0.5, 0.3, 0.2])
    sides = match_patterns("sides", np.array([[1, 1, 0, 0], [0, 0, 1, 1]]), found, share)
    assert (sides.patterns, sides.common) == (2, 1)
    assert sides.differ == pytest.approx(0.3 * 1 / 4 + 0.2 * 2 / 4)
    whole = match_patterns("whole", np.ones((1, 4)), found, share)
    assert whole.differ == pytest.approx(0.5 * 2 / 4 + 0.3 * 1 / 4)
    (said,) = texts(nearest_sentences([sides, whole]))
    assert said == (
        "sides is the nearest of the gatings: a pattern found differs from the nearest one of "
        "sides on 18 % of the samples on average, and 1 of its 2 is found (whole: 32 %, 1 of 1)."
    )
    assert nearest_sentences([sides, sides])[0].text.startswith("sides and sides are equally near")
    same = match_patterns("same", found[::-1], found, share)
    [said] = texts(nearest_sentences([same]))
    assert "3 patterns of same" in said
    assert nearest_sentences([]) == []


@pytest.mark.slow
def test_an_explanation_says_which_network_it_is_of_and_what_was_trained():
    training = {"steps": 20, "learning_rate": 0.2, "record_every": 4, "seeds": 3}
    explain = {"rows": ["gatings", "narrow"], "types": 2}
    answer = xor(["explain"], training=training, explain=explain).run()["explain"]
    (rows,) = (part for part in answer.parts if isinstance(part, report.Table))
    assert "network 1 of 3" in rows.caption
    assert np.isfinite([answer.numbers[f"error_{name}"] for name in ("xor", "narrow")]).all()
    (curves,) = (part for part in answer.parts if isinstance(part, report.Curves))
    kinds = {curve.name: curve.kind for curve in curves.curves}
    assert kinds == {
        "ReLU networks": "relu",
        "linear": "simulation",
        "xor": "simulation",
        "narrow network of 2 neurons": "relu",
    }


@pytest.mark.parametrize(
    ("label", "neighbours"),
    [(None, False), ([1, 1, 2], True), (["b", "a"], True), ([1, 2, 1], False)],
)
def test_samples_are_grouped_by_a_label_in_the_order_of_which_they_stand(label, neighbours):
    assert in_order(label) is neighbours


# ---- the page -----------------------------------------------------------------------------------


def test_every_setting_says_where_it_came_from(tmp_path):
    path = tmp_path / "study.toml"
    study = xor(["train"], quick={"network.scale": 0.05})
    study.save(path)
    study = nr.Study.load(path).quick().changed({"training.steps": 8}, "--set")
    sources = {s.name: (s.value, s.source) for s in settings_with_sources(study)}
    assert sources["training.steps"] == (8, "--set")
    assert sources["network.scale"] == (0.05, "quick")
    assert sources["network.widths"] == ([16], path.name)
    assert sources["training.seeds"] == (2, "default")
    assert sources["task.parameters"][1] == path.name
    assert not any(name.startswith(("explain", "sweep", "quick")) for name in sources)
    graph = nr.Study.load(ROOT / "examples/studies/routing.toml")
    shown = {setting.name: setting for setting in settings_with_sources(graph)}
    assert "network.widths" not in shown and "network.graph.sizes" in shown
    assert shown["task.parameters"].is_default  # there is no default to compare with


def test_settings_and_seeds_read_as_they_are_meant(two_parts):
    study = two_parts(["contest"], contest={"criterion": 0.4, "check": False})
    shown = {setting.name: setting.value for setting in settings_with_sources(study)}
    assert shown["task.x"] == ["a", "b"]
    several = xor(["contest"], task={"file": "t.csv", "x": {"in": ["a", "b"]}, "y": ["c"]})
    shown = {setting.name: setting.value for setting in settings_with_sources(several)}
    assert shown["task.x"] == "in = [a, b]"
    assert page_of(study.run()).provenance.seeds == "2, drawn from key 0"


def test_the_page_has_the_answers_and_links_files_that_are_there(tmp_path):
    result = xor(["contest", "train"], title="<b>XoR</b> & more").run()
    page = page_of(result, "neuralrace run x.toml")
    assert page.answer[0] == texts(result["contest"].sentences())[0]
    index = result.report(tmp_path / "out", command="neuralrace run x.toml")
    text = index.read_text(encoding="utf-8")
    assert "&lt;b&gt;XoR&lt;/b&gt; &amp; more" in text and "<b>XoR</b>" not in text
    linked = set(re.findall(r'href="([^"#:]+)"', text))
    assert {"study.py", "study.toml", "contest.csv", "relu_networks.nc"} <= linked
    assert all((tmp_path / "out" / name).exists() for name in linked)
    assert "neuralrace run x.toml" in text


# ---- sweeps -------------------------------------------------------------------------------------


def test_cells_together_are_the_cells_alone():
    """One program for all cells of a batch, or one program each: the same numbers."""
    study = xor(["train"], training={"steps": 30, "learning_rate": 0.2})
    content = dict(study.document.content)
    cells = [
        {"task.parameters.delta": delta, "network.scale": scale, "seed": seed}
        for delta in (0.4, 1.2)
        for scale in (0.1, 0.3)
        for seed in (0, 3)
    ]
    together = answer_cells(cells, study=content, folder=".")
    alone = [answer_cells([cell], study=content, folder=".")[0] for cell in cells]
    for one, other in zip(together, alone, strict=True):
        assert one.keys() == other.keys()
        np.testing.assert_allclose(list(one.values()), list(other.values()), rtol=1e-10)
    assert len({found["final_loss"] for found in together}) == len(cells)


def test_a_sweep_goes_on_and_tells_what_failed(tmp_path):
    pytest.importorskip("zarr")
    study = xor(
        ["contest"],
        sweep={"over": {"task.parameters.delta": [0.4, 1.2]}, "seeds": 2, "batch": 2},
    )
    found = study.sweep(store=tmp_path / "s.zarr")
    assert found.sweep.missing == 0 and found.sweep.data["time_xor"].shape == (2, 2)
    alone = xor(["contest"]).run().numbers["time_xor"]
    assert found.sweep.data["time_xor"].values[0, 0] == alone
    again = study.sweep(store=tmp_path / "s.zarr")
    xarray.testing.assert_identical(again.sweep.data, found.sweep.data)
    page = found.report(tmp_path / "out").read_text(encoding="utf-8")
    assert "Sweep of 4 cells" in page and (tmp_path / "out" / "cells.csv").exists()


@pytest.mark.slow
def test_a_cell_that_fails_has_its_error_in_its_place():
    content = dict(xor(["predict"]).document.content)
    bad = {"contest.criterion": 1e-30, "contest.longest": 1.0, "seed": 0}
    good = {"contest.criterion": 0.3, "contest.longest": 1e5, "seed": 0}
    first, second = answer_cells([bad, good], study=content, folder=".")
    assert isinstance(first, nr.NeuralRaceError) and second["prediction_error"] < 1e-2


def test_a_study_without_a_sweep_says_so():
    with says("has no sweep", got="no section", wanted="dotted keys", fix="[sweep.over]"):
        xor(["contest"]).sweep()


# ---- the command line ---------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["--help"], ["run", "--help"], ["check", "--help"]])
def test_help_imports_nothing_heavy(command):
    heavy = (*HEAVY, "pydantic", "dask", "zarr")
    code = (
        "import sys\nfrom neuralrace.cli import commands\n"
        f"try:\n    commands({command})\nexcept SystemExit:\n    pass\n"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    assert in_a_fresh_process(code).splitlines()[-1] == "[]"


def test_run_writes_a_report_and_prints_the_answers(tmp_path):
    path = xor(["contest"]).save(tmp_path / "study.toml")
    output = run("run", path, "--out", tmp_path / "out", "--set", "task.parameters.delta=1.2")
    assert "• linear is predicted to learn first" in output
    page = tmp_path / "out" / "index.html"
    assert page.resolve().as_uri() in output
    assert "--set task.parameters.delta=1.2" in page.read_text(encoding="utf-8")
    numbers = json.loads(run("run", path, "--out", tmp_path / "out", "--json"))
    assert numbers["time_xor"] < numbers["time_linear"]
    with says("no sweep to share", got="--workers", wanted="[sweep]", fix="leave them out"):
        run("run", path, "--out", tmp_path / "out", "--workers", "2")


def test_a_sweep_from_the_command_line(tmp_path):
    pytest.importorskip("zarr")
    study = xor(["contest"], sweep={"over": {"task.parameters.delta": [0.4, 1.2]}, "batch": 1})
    path = study.save(tmp_path / "study.toml")
    output = run("run", path, "--out", tmp_path / "out", "--seeds", "2")
    assert "Sweep of 4 cells" in output and "4 done, 0 failed" in output
    assert "4 cells: 4 done" in run("status", tmp_path / "out")
    told = "sweep: 2 cells, task.parameters.delta (2) × seed (1), in 2 batches of at most 1"
    assert told in run("check", path)
    with says("no sweep in", got="no such folder", wanted="out/NAME", fix="neuralrace run"):
        run("status", tmp_path / "other")


def test_a_sweep_that_was_stopped_says_how_to_go_on(tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    study = xor(["contest"], sweep={"over": {"task.parameters.delta": [0.4, 1.2]}, "batch": 1})
    path, calls = study.save(tmp_path / "study.toml"), []

    def stops(cells, **settings):
        calls.append(cells)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return [{"time_xor": 1.0}]

    monkeypatch.setattr("neuralrace.study.sweeping.answer_cells", stops)
    with pytest.raises(SystemExit):
        run("run", path, "--out", tmp_path / "out", "--set", "network.scale=0.01")
    said = run("status", tmp_path / "out")
    assert "1 done, 0 running, 0 failed, 1 missing; stopped" in said
    command = f"neuralrace run {path} --set network.scale=0.01 --out {tmp_path / 'out'}"
    assert said.splitlines()[-1].strip() == command


def test_the_schema_knows_every_section():
    schema = json.loads(run("check", "--schema"))
    assert set(schema["required"]) == {"questions", "task"}
    assert {"gatings", "training", "sweep"} <= set(schema["properties"])
    with says("no study was named", got="no file", wanted="TOML", fix="neuralrace new"):
        run("check")


def test_a_new_study_can_be_checked_and_is_not_overwritten(tmp_path):
    output = run("new", tmp_path / "a.toml")
    assert "neuralrace run" in output
    assert "gating xor: sample1 (25)" in run("check", tmp_path / "a.toml")
    with says("exists already", got="a file", wanted="not taken", fix="another name"):
        run("new", tmp_path / "a.toml")


@pytest.mark.slow
def test_a_table_becomes_a_report_in_three_commands(tmp_path):
    shutil.copy(ROOT / "examples/studies/my_csv.csv", tmp_path / "my.csv")
    run("new", tmp_path / "my.toml", "--csv", tmp_path / "my.csv")
    assert "task: 30 samples" in run("check", tmp_path / "my.toml")
    options = ["--set", 'questions=["contest"]', "--set", "contest.check=false"]
    run("run", tmp_path / "my.toml", "--quick", "--out", tmp_path / "out", *options)
    assert (tmp_path / "out" / "index.html").exists()
    assert (tmp_path / "out" / "files" / "my.csv").exists()


def test_a_new_study_of_a_table_takes_columns_for_what_they_are(tmp_path):
    """A counter of rows and a name per row are no inputs; a text with few values is one."""
    rows = [
        f"{i + 1},p{i},{i % 5 / 4},{i % 4},{['motion', 'colour'][i % 2]},{'abcdefghij'[i % 10]},"
        f"fixed,{i % 3}"
        for i in range(32)
    ]
    head = "trial,subject,strength,side,context,letter,constant,choice"
    (tmp_path / "my.csv").write_text("\n".join([head, *rows]) + "\n")
    path = nr.study.new_study(tmp_path / "my.toml", tmp_path / "my.csv")
    task, text = nr.Study.load(path).settings.task, path.read_text()
    assert task.x == {"": ("strength", "side", "context", "letter")}
    assert task.labels == ("side", "context")
    assert "# Left out: 'trial', it counts the rows." in text
    assert "# Left out: 'subject', every row has another value." in text
    assert "# Left out: 'constant', all its values are the same." in text
    assert "phase_diagram" not in text
    problem = nr.Study.load(path).check()
    assert problem.data.x["x"].shape == (32, 1 + 2 + 1 + 10)
    assert list(problem.candidates) == ["one", "by_context"]


def test_a_column_is_scaled_after_it_is_standardised(table):
    columns = {"x": ["a", "kind"], "y": ["b"], "standardise": True}
    plain = nr.study.read_task(table / "my.csv", **columns)
    half = nr.study.read_task(table / "my.csv", **columns, scale={"kind": 0.5})
    np.testing.assert_array_equal(half.x["x"][:, 0], plain.x["x"][:, 0])
    assert plain.x["x"].shape[1] > 2
    np.testing.assert_array_equal(half.x["x"][:, 1:], plain.x["x"][:, 1:] / 2)
    twice = nr.study.read_task(table / "my.csv", **columns, scale={"b": 2.0})
    np.testing.assert_array_equal(twice.y["y"], 2 * plain.y["y"])
    np.testing.assert_array_equal(twice.x["x"], plain.x["x"])
    with says("no input or target column", got="'e'", wanted="a, kind, b", fix="column of x or y"):
        nr.study.read_task(table / "my.csv", **columns, scale={"e": 2.0})


def test_signs_and_codes_are_not_standardised(tmp_path):
    rng = np.random.default_rng(0)
    level, sign, code = rng.normal(3, 2, 12), rng.choice([-1, 1], 12), np.arange(12) % 3
    rows = [
        f"{a},{s},{int(c == 0)},{'pqr'[c]},{a * s}"
        for a, s, c in zip(level, sign, code, strict=True)
    ]
    (tmp_path / "my.csv").write_text("level,sign,first,kind,y\n" + "\n".join(rows) + "\n")
    data = nr.study.read_task(tmp_path / "my.csv", x=["level", "sign", "first", "kind"], y=["y"],
                              standardise=True)  # fmt: skip
    x = data.x["x"]
    np.testing.assert_allclose([x[:, 0].mean(), x[:, 0].std()], [0, 1], atol=1e-12)
    np.testing.assert_array_equal(x[:, 1], sign)
    np.testing.assert_array_equal(x[:, 2], code == 0)
    assert set(np.unique(x[:, 3:])) == {0.0, 1.0}


def test_a_group_of_columns_is_scaled_at_once_and_varied_by_a_sweep(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(8, 3))
    rows = [",".join(map(str, [*each, each.sum()])) for each in x]
    (tmp_path / "my.csv").write_text("a,b,c,y\n" + "\n".join(rows) + "\n")
    options = {"x": ["a", "b", "c"], "y": ["y"], "groups": {"cue": ["b", "c"]}}
    data = nr.study.read_task(tmp_path / "my.csv", **options, scale={"cue": 0.5, "c": 3.0})
    np.testing.assert_allclose(data.x["x"], x * [1, 0.5, 1.5])
    with refuses("que"):
        nr.study.read_task(tmp_path / "my.csv", **options, scale={"que": 0.5})
    for groups in ({"cue": ["d"]}, {"a": ["b"]}):
        with pytest.raises(nr.NeuralRaceError):
            nr.study.read_task(tmp_path / "my.csv", **(options | {"groups": groups}))
    study = nr.Study.of(
        questions=["contest"],
        task={"file": str(tmp_path / "my.csv"), **options},
        gatings={"one": {"masks": {"all": "always"}}},
        contest={"check": False, "criterion": 0.9, "relative": True},
        sweep={"over": {"task.scale.cue": [0.5, 2.0]}},
    )
    times = study.sweep().sweep.data["time_one"].values.ravel()
    assert times[1] < times[0]


def test_a_sweep_varies_how_strong_a_column_is(table):
    task = {"file": str(table / "my.csv"), "x": ["a"], "y": ["b"]}
    gatings = {"one": {"masks": {"all": "always"}}}
    study = nr.Study.of(
        questions=["contest"],
        task=task,
        gatings=gatings,
        contest={"check": False, "criterion": 0.99, "relative": True},
        sweep={"over": {"task.scale.a": [1.0, 2.0]}},
    )
    assert study.sweep().sweep.missing == 0
    times = study.sweep().sweep.data["time_one"].values.ravel()
    assert times[1] < times[0]
    assert "scale={'a': 2.0}" in study.changed({"task.scale.a": 2.0, "sweep": None}).run().script


# ---- the studies that ship ----------------------------------------------------------------------


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_study_of_the_examples_is_right_and_listed(path):
    nr.Study.load(path).check()
    nr.Study.load(path).quick().check()
    assert f"examples/studies/{path.name}" in (ROOT / "docs" / "studies.md").read_text()


def test_the_studies_that_ship():
    names = {path.stem for path in STUDIES}
    assert names == {
        "demo",
        "xor_transition",
        "context_decision",
        "routing",
        "my_csv",
        "rule",
        "rule_strength",
        "recurrent",
    }


FIRST = {
    "demo": "all_but_one",
    "xor_transition": "xor",
    "context_decision": "answer",
    "my_csv": "one",
    "rule": "by_rule",
}
"""The gating that each study of the examples must find to learn first."""


@pytest.mark.slow
@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_study_of_the_examples_finds_what_it_should(path):
    with jax.enable_x64(True):
        result = nr.Study.load(path).quick().run()
    found = {question: answer.value for question, answer in result.answers.items()}
    if path.stem == "routing":
        (race,) = found["reduce"].values()
        assert race.is_exact and len(race.blocks) == 4
        assert all(block.is_scalar for block in race.blocks)
        return
    if path.stem == "recurrent":
        (race,) = found["reduce"].values()
        assert race.is_exact and len(race.blocks) == 3
        return
    if path.stem in FIRST:
        assert found["contest"].winner == FIRST[path.stem]
    if path.stem == "context_decision":  # a ReLU network would not keep the gates of the winner
        kept = found["contest"].kept
        assert kept["answer"] < 0.9 < kept["aligned"]
    if path.stem == "xor_transition":
        diagram, _ = found["phase_diagram"]
        assert [c.value for c in diagram.crossovers] == pytest.approx([(2 / 3) ** 0.5], abs=1e-3)
    if "relu" in found:
        assert np.isfinite(found["relu"].time_to(0.5).mean)


def test_the_reference_of_keys_is_current():
    from docs import study_keys

    assert study_keys.PAGE.read_text() == study_keys.page(), "`python -m docs.study_keys` writes it"


@pytest.mark.slow
def test_the_reference_of_a_contest_has_as_many_neurons_as_the_network():
    """Whatever the candidates: its time is that of aligned gates of the network's own width."""

    def found(widths, total):
        made = nr.Study.of(
            questions=["contest"],
            task={"builtin": "extended_xor", "parameters": {"delta": 0.5}},
            network={"widths": widths, "scale": 1e-3},
            gatings={"xor": {"builtin": "xor_pathways", "parameters": {"total": total}}},
        )
        return made, nr.study.Work(made.check()).contest.check().reference.time

    times = {size: found(size, 16)[1] for size in (32, 64)}
    for size, time in times.items():
        alone = nr.contest(nr.tasks.extended_xor(0.5), scale=1e-3, criterion=0.2, width=size)
        assert time == pytest.approx(alone.times["aligned"], rel=1e-9)
        assert found(size, 128)[1] == time  # wider candidates change nothing
    assert times[64] < times[32]
    assert "width=64" in found(64, 16)[0].script()
    own = found(64, 16)[0].changed({"contest.width": 32})
    assert nr.study.Work(own.check()).contest.check().reference.time == times[32]


def test_the_files_of_a_study_work_elsewhere(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,1\n")
    task = {"file": "t.csv", "x": ["a"], "y": ["b"]}
    files = nr.Study.of(folder=tmp_path, questions=["train"], task=task).files()
    assert list(files) == ["study.toml", "study.py", "files/t.csv"]
    for name, content in files.items():
        path = tmp_path / "elsewhere" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    assert nr.Study.load(tmp_path / "elsewhere" / "study.toml").check().data.n_samples == 2


def test_a_recurrent_network_has_the_steps_of_its_task():
    sections = {
        "task": {"builtin": "cued_accumulation", "parameters": {"steps": 3}},
        "network": {"widths": 8, "recurrent": True},
        "gatings": {"cue": {"builtin": "pathway_per_cue", "parameters": {"hidden": 8}}},
    }
    study = nr.Study.of(questions=["reduce", "contest"], **sections)
    problem = study.check()
    arch = problem.relu.arch
    assert dict(arch.shapes) == {"common_Wx": (8, 4), "common_Wh": (8, 8), "common_Wy": (1, 8)}
    assert arch.path_count() == 3
    assert "common_pathway" in study.script()
    for network in ({"widths": [8, 8], "recurrent": True}, {"depth": 2, "recurrent": True}):
        with pytest.raises(nr.NeuralRaceError) as caught:
            _ = nr.Study.of(questions=["reduce"], **{**sections, "network": network}).check()
        assert "recurrent" in str(caught.value)
    with pytest.raises(nr.NeuralRaceError) as caught:
        _ = nr.Study.of(questions=["types"], **sections).check()
    assert "types" in str(caught.value)

"""Cells in one file: what is added is found, whatever happened to the file before."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuralrace.sweeps import CellFile
from tests.test_errors import refuses

NUMBERS = st.one_of(st.integers(-9, 9), st.floats(-9, 9), st.text(max_size=3), st.none())
CELLS = st.dictionaries(st.sampled_from("abc"), NUMBERS, min_size=1)


@settings(max_examples=50, deadline=None)
@given(cells=st.lists(CELLS, max_size=6))
def test_the_last_row_with_all_the_values_is_found(cells, tmp_path_factory):
    path = tmp_path_factory.mktemp("cells") / "cells.jsonl"
    for number, cell in enumerate(cells):
        CellFile(path).add(cell, {"number": number})
    for cell in cells:
        fits = [k for k, other in enumerate(cells) if cell.items() <= other.items()]
        assert CellFile(path).find(cell)["number"] == fits[-1]
    assert CellFile(path).find({"d": 0}) is None


@pytest.mark.parametrize("kind", ["float32", "int64", "bool", "complex128", "<U3"])
def test_arrays_come_back_as_they_were(tmp_path, kind):
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(kind)
    for file in (CellFile(), CellFile(tmp_path / "cells.jsonl")):
        file.add({"k": (1, 2)}, {"deep": {"array": array}, "one": np.float64(0.5)})
        row = file.find({"k": [1, 2]})
        assert row["deep"]["array"].dtype == array.dtype and row["one"] == 0.5
        np.testing.assert_array_equal(row["deep"]["array"], array)


def test_a_line_that_a_crash_cut_off_is_skipped_and_can_be_computed_again(tmp_path):
    path = tmp_path / "cells.jsonl"
    file = CellFile(path)
    file.add({"k": 0}, {"x": 1})
    file.add({"k": 1}, {"x": 2})
    path.write_bytes(path.read_bytes()[:-4])
    again = CellFile(path)
    assert again.find({"k": 0})["x"] == 1 and again.find({"k": 1}) is None
    again.add({"k": 1}, {"x": 3})
    assert again.find({"k": 1})["x"] == 3 == CellFile(path).find({"k": 1})["x"]


def test_processes_may_share_a_file(tmp_path):
    path = tmp_path / "cells.jsonl"
    code = (
        "import sys; from neuralrace.sweeps import CellFile; file = CellFile(sys.argv[1]);"
        "[file.add({'process': sys.argv[2], 'k': k}, {'text': 'x' * 5000}) for k in range(40)]"
    )
    command = [sys.executable, "-c", code, str(path)]
    both = [subprocess.Popen([*command, name]) for name in ("a", "b")]
    reader = CellFile(path)
    while any(each.poll() is None for each in both):
        assert all(len(row["text"]) == 5000 for row in reader)
    assert len(list(reader)) == 80 == len(path.read_text().splitlines())
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_a_name_that_stands_twice_is_refused():
    with refuses("seed"):
        CellFile().add({"seed": 0}, {"seed": 1})


def test_what_is_no_number_text_or_array_is_refused():
    with pytest.raises(TypeError, match="object"):
        CellFile().add({"k": 0}, {"x": object()})

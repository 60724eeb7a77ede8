"""`make conformance-onnx` over cases of its own: both layouts, what agrees, what is listed, what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scripts import onnx_conformance
from scripts.onnx_cases import cases_of, run_case
from scripts.onnx_conformance import Suite, main
from tests.onnx.models import model, node, tensor

DOUBLE = model([node("Add", "x x", "y")], {"x": [2]}, {"y": [2]})
ONE_TWO = np.asarray([1, 2], np.float32)


def standard_case(folder: Path, name: str, output: list[float]) -> None:
    data = folder / name / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / name / "model.onnx").write_bytes(DOUBLE)
    (data / "input_0.pb").write_bytes(tensor("x", ONE_TWO))
    (data / "output_0.pb").write_bytes(tensor("y", np.asarray(output, np.float32)))


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """One case that agrees, two that do not, and one that does within a tolerance of its own."""
    for name, output in (("right", [2, 4.0]), ("wrong", [2, 5.0]), ("listed", [3, 4.0]), ("rough", [2, 4.1])):
        standard_case(tmp_path / "cases", name, output)
    (tmp_path / "cases" / "rough" / "tolerance").write_text("0.1 0\n")
    return tmp_path / "cases"


def test_cases_of_the_standard(cases: Path) -> None:
    found = {case.name: run_case(case, "cpu") for case in cases_of([cases])}
    assert {name: outcome for name, (outcome, _) in found.items()} == {
        "listed": "wrong",
        "right": "ok",
        "rough": "ok",
        "wrong": "wrong",
    }
    assert "Mismatched elements: 1 / 2" in found["wrong"][1]
    assert [case.name for case in cases_of([cases], "^r")] == ["right", "rough"]


def test_models_of_opencv(tmp_path: Path) -> None:
    for name in ("models", "data"):
        (tmp_path / name).mkdir()
    add = model([node("Add", "a b", "y")], {"a": [2], "b": [2]}, {"y": None})
    for name, data in (("m", DOUBLE), ("m_1", add), ("m_2", DOUBLE), ("none", DOUBLE)):
        (tmp_path / "models" / f"{name}.onnx").write_bytes(data)
    arrays = {
        "input_m": ONE_TWO,
        "output_m": 2 * ONE_TWO[None],
        "input_m_1_0": ONE_TWO,
        "input_m_1_1": 3 * ONE_TWO,
        "output_m_1": 4 * ONE_TWO,
        "input_m_2_0_0": ONE_TWO,
        "output_m_2_0": 2 * ONE_TWO,
        "input_m_2_1_0": ONE_TWO,
        "output_m_2_1": 3 * ONE_TWO,
    }
    for name, array in arrays.items():
        np.save(tmp_path / "data" / f"{name}.npy", array)
    found = {case.name: run_case(case, "cpu")[0] for case in cases_of([tmp_path])}
    assert found == {"m": "ok", "m_1": "ok", "m_2": "wrong", "none": "no data"}


def run(cases: Path, listed: str, patch: pytest.MonkeyPatch, least: int, *more: str) -> int:
    path = cases.parent / "onnx.txt"
    path.write_text(listed)
    patch.setattr(onnx_conformance, "LIST", path)
    patch.setattr(onnx_conformance, "SUITES", (Suite("small", "1", {"cpu": least}),))
    patch.setattr(onnx_conformance, "_folders", lambda suite: [cases])
    return main(["--device", "cpu", *more])


def test_what_is_told(
    cases: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = "both | listed | because it is so\ncpu | right | because it was so\n"
    assert run(cases, listed, monkeypatch, 2) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("small on cpu: wrong: wrong: Not equal to tolerance")
    assert "cpu: agrees, though listed: right" in lines
    assert lines[-1].split()[:7] == ["small", "cpu", "2", "1", "1", "4", "2"]
    assert run(cases, listed + "cpu | wrong | because it is so\n", monkeypatch, 2) == 0
    capsys.readouterr()
    assert run(cases, listed + "cpu | wrong | because it is so\n", monkeypatch, 3) == 1
    assert "small on cpu: 2 agree, and 3 must" in capsys.readouterr().out


def test_lists_that_are_not_right(
    cases: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(cases, "both | listed | why\n", monkeypatch, 1) == 2
    assert run(cases, "both | a case | because it is so\n", monkeypatch, 1) == 2
    assert "'a case' names no test: the name of a case" in capsys.readouterr().out

"""`webgrad kernels`: a script's variants, needless ones, JSON, files; the templates without a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import webgrad as wg
from webgrad.cli import kernels, main

SCRIPT = """import sys
import webgrad as wg

x = wg.ones((5, 31)) * len(sys.argv)
print("sum", (wg.exp(x) @ x.T).sum().item() > 0, sys.argv[1:])
"""


@pytest.fixture
def script(tmp_path: Path) -> Any:
    path = tmp_path / "work.py"
    path.write_text(SCRIPT, encoding="utf-8")
    yield str(path)
    wg.set_default_device(None)


@pytest.mark.gpu
def test_a_script(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "--device", "webgpu", script, "--its", "own"]) == 0
    text = capsys.readouterr().out
    assert "sum True ['--its', 'own']" in text
    assert "contract" in text
    assert "work.py:5" in text
    assert "variants, " in text
    assert "needless: none" in text


@pytest.mark.gpu
def test_json_and_files(script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "texts"
    assert main(["kernels", "--json", "--device", "webgpu", "--dump", str(folder), script]) == 0
    report = json.loads(capsys.readouterr().out)  # what the script prints is on stderr
    names = {each["file"] for each in report["variants"]}
    assert names == {each.name for each in folder.iterdir()}
    assert all(each["launches"] >= 1 for each in report["variants"])
    assert report["findings"] == []


def test_templates_without_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels"]) == 0
    text = capsys.readouterr().out
    assert "matmul.pwgsl" in text
    assert "variants of 9 templates" in text
    assert main(["kernels", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["templates"]
    assert any(each["name"] == "scatter.pwgsl" and each["variants"] > 10 for each in rows)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--device", "cpu", "work.py"], "GPUs only"),
        (["--dump", "folder"], "name a script or a model"),
    ],
)
def test_mistakes(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothere.py"], "there is no script nothere.py"),
        (["minilm", "more"], "takes no arguments: more"),
        (["--dump", "/dev/null/x", "nothere.py"], "--dump: the folder"),
    ],
)
def test_mistakes_in_what_is_run(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kernels", "--device", "webgpu", *arguments]) == 2
    assert words in capsys.readouterr().err
    wg.set_default_device(None)


@pytest.mark.gpu
def test_what_the_driver_prints(script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "driver"
    assert main(["kernels", "--json", "--device", "webgpu", "--driver-output", str(folder), script]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["adapter"]["name"]
    names = {Path(each["file"]).stem for each in report["variants"]}
    assert {each.stem for each in folder.iterdir()} == names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--all", "x.py"], "--all runs a list of its own, and not x.py"),
        (["--gpu", "navi31"], "--gpu needs something to run: name a script or a model, or --all"),
        (["--driver-output", "folder"], "--driver-output needs something to run"),
        (["--gpu", "navi31", "--device", "webgpu", "--all"], "--gpu opens devices of its own"),
        (["--gpu", "voodoo2", "--all"], "there is no GPU 'voodoo2' to ask about"),
    ],
)
def test_options_that_do_not_go_together(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kernels", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.gpu
def test_a_list_of_families(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(
        kernels, "prepared", lambda device: {"ones": lambda: wg.eval(wg.ones(3, device=device) * wg.e)}
    )
    assert main(["kernels", "--all", "--json", "--device", "webgpu"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [each["family"] for each in report["variants"]] == ["ones"]
    assert report["findings"] == []

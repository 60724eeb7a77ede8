"""`webgrad export` of ONNX models: which page they get, what is baked in, names, labels and pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.onnx.models import encode, model, node
from webgrad.cli import main

CHANNELS = np.asarray([[1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)


def write(path: Path, nodes: list[bytes], inputs: dict[str, Any], output: Any, **more: Any) -> None:
    facts = more.pop("metadata", {})
    props = [encode("Entry", key=key, value=value) for key, value in facts.items()]
    path.write_bytes(model(nodes, inputs, {"y:0": output}, metadata_props=props, **more))


def classifier(path: Path, *last: bytes, **metadata: str) -> None:
    """The mean of each channel, as three scores."""
    nodes = [node("ReduceMean", "x", "m", axes=[2, 3], keepdims=0), node("MatMul", "m w", "s")]
    nodes += list(last) or [node("Identity", "s", "y:0")]
    sides = {"x": ["batch", 3, "h", "w"]}
    write(path, nodes, sides, ["batch", 3], weights={"w": CHANNELS}, metadata=metadata, opset=17)


def facts_of(folder: Path, name: str = "page.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    return found


def test_a_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [node("Gather", "table ids", "rows", axis=0), node("Reshape", "rows shape", "y:0")]
    inputs = {"ids": ("int64", ["n"]), "shape": ("int64", [2])}
    write(tmp_path / "m.onnx", nodes, inputs, None, weights={"table": np.ones((9, 2), np.float32)})
    out = tmp_path / "out"
    arguments = ["--shape", "ids=4", "--input", "shape=1,-1", "--name", "Mine"]
    assert main(["export", str(tmp_path / "m.onnx"), str(out), *arguments]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{out / 'index.html'}\n"
    assert printed.err.startswith("planning for ids [4]; shape as given\n")
    [run] = facts_of(out, "plan.json")["functions"].values()
    assert {name: (each["dtype"], each["shape"]) for name, each in run["inputs"].items()} == {
        "ids": ("int32", [4])
    }
    assert run["outputs"]["y_0"]["shape"] == [1, 8]
    assert facts_of(out) == {"title": "Mine", "pictures": {}}


def test_a_picture_that_gives_no_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "m.onnx", [node("Neg", "x", "y:0")], {"x": [1, 3, "h", "w"]}, None)
    options = ["--shape", "x=1,3,20,24", "--mean", "0.5", "--std", "0.5,0.25,0.5", "--json"]
    assert main(["export", str(tmp_path / "m.onnx"), str(tmp_path / "out"), *options]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "form"
    facts = facts_of(tmp_path / "out")["pictures"]["x"]
    assert (facts["height"], facts["width"], facts["layout"]) == (20, 24, "channels-first")
    assert (facts["mean"], facts["std"]) == ([0.5] * 3, [0.5, 0.25, 0.5])
    assert {each.name for each in (tmp_path / "out").iterdir()} >= {"camera.js", "picture_input.js"}


@pytest.mark.parametrize(
    "metadata",
    [{"names": "{0: 'a', 1: \"b c\", 2: 'd'}"}, {"character": "a\nb c\nd"}, {"labels": "a, b c, d"}],
)
def test_labels_of_the_model(
    metadata: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    classifier(tmp_path / "m.onnx", **metadata)
    assert main(["export", str(tmp_path / "m.onnx"), str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "classifier"
    facts = facts_of(tmp_path / "out")
    assert facts["labels"] == ["a", "b c", "d"]
    assert (facts["height"], facts["width"], facts["scores"]) == (64, 64, "logits")


def test_labels_of_a_file_and_scores_that_are_shares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    classifier(tmp_path / "m.onnx", node("Softmax", "s", "y:0", axis=-1), names="a, b")
    (tmp_path / "names").write_text("x\ny\nz\n", encoding="utf-8")
    command = ["export", str(tmp_path / "m.onnx"), str(tmp_path / "out")]
    assert main([*command, "--labels", str(tmp_path / "names")]) == 0
    facts = facts_of(tmp_path / "out")
    assert (facts["labels"], facts["scores"]) == (["x", "y", "z"], "shares")
    assert main([*command, "--labels", str(tmp_path / "none")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    (tmp_path / "names").write_text("x\ny\n", encoding="utf-8")
    assert main([*command, "--labels", str(tmp_path / "names")]) == 2
    assert "there are 2 labels, and run gives 3 scores" in capsys.readouterr().err
    assert main([*command]) == 0  # its own labels do not fit: a form
    assert "pictures" in facts_of(tmp_path / "out")


def test_what_is_not_for_onnx_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    classifier(tmp_path / "m.onnx")
    with pytest.raises(SystemExit):
        main(["export", str(tmp_path / "m.onnx"), str(tmp_path / "out"), "--context", "9"])
    assert "--context is for models that write" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["export", "minilm", str(tmp_path / "out"), "--labels", "x"])
    assert "--labels and --input are for ONNX models" in capsys.readouterr().err

"""The commands for ONNX models: what they show, take from files, write, and refuse."""

from __future__ import annotations

import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.io.test_pictures import png
from tests.onnx.models import model, node
from webgrad.cli import main
from webgrad.cli.onnx_check import differences

WEIGHT = np.asarray([[1, 2], [3, 4]], np.float32)


@pytest.fixture
def scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model of two inputs, in the folder that commands run in."""
    nodes = [node("Mul", "x w", "p"), node("Add", "p bias", "y"), node("Neg", "y", "z/z")]
    inputs = {"x": ["n", 2, 2], "bias": [1]}
    outputs = {"y": ["n", 2, 2], "z/z": None}
    (tmp_path / "m.onnx").write_bytes(model(nodes, inputs, outputs, {"w": WEIGHT}, producer_name="hand"))
    monkeypatch.chdir(tmp_path)
    return "m.onnx"


@pytest.fixture
def picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model that gives back a picture of 2 × 3 pixels."""
    sides = {"x": [1, 3, 2, 3]}
    (tmp_path / "p.onnx").write_bytes(model([node("Identity", "x", "y")], sides, {"y": None}))
    monkeypatch.chdir(tmp_path)
    return "p.onnx"


def test_what_a_model_takes(scale: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", scale, "--device", "cpu"]) == 0
    text = capsys.readouterr().out
    assert "  x: float32[n, 2, 2]\n  bias: float32[1]\n" in text
    assert f"give them: webgrad run {scale} --input x=file.npy --input bias=1 --output out/" in text


def test_running_on_files(scale: str, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", np.ones((3, 2, 2)))
    given = ["--input", "x=x.npy", "--input", "bias=0.5", "--output", "out", "--device", "cpu"]
    assert main(["run", scale, *given]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(
        "y: float32[3, 2, 2] from 1.5 to 4.5: 1.5, 2.5, 3.5, 4.5, 1.5, 2.5, … → out/y.npy\n"
    )
    assert "on cpu, compiling included" in printed.err
    np.testing.assert_array_equal(np.load("out/y.npy"), np.broadcast_to(WEIGHT + 0.5, (3, 2, 2)))
    np.testing.assert_array_equal(np.load("out/z_z.npy"), -np.load("out/y.npy"))
    assert main(["run", scale, *given, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["outputs"]
    assert rows[0] == {"name": "y", "dtype": "float32", "shape": [3, 2, 2], "file": "out/y.npy"}


def test_pictures(picture: str) -> None:
    pixels = np.arange(18).reshape(2, 3, 3) * 10
    Path("a.png").write_bytes(png(pixels, 8, 2))
    options = ["--mean", "0.5,0,0", "--std", "0.5", "--output", "out", "--device", "cpu"]
    assert main(["run", picture, "--input", "a.png", *options]) == 0
    mean = np.asarray([0.5, 0, 0]).reshape(3, 1, 1)
    expected = (pixels.transpose(2, 0, 1)[None] / 255 - mean) / 0.5
    np.testing.assert_allclose(np.load("out/y.npy"), expected, rtol=1e-5)
    Path("a.png").write_bytes(png(np.full((9, 5, 3), 51), 8, 2))  # another size: made to fit
    assert main(["run", picture, "--input", "a.png", "--output", "out", "--device", "cpu"]) == 0
    np.testing.assert_allclose(np.load("out/y.npy"), np.full((1, 3, 2, 3), 0.2), rtol=1e-5)


@pytest.mark.parametrize("sides", [["n"], [1, "n"], [1, 8, 1], None])
def test_sounds(sides: list[Any] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.onnx").write_bytes(model([node("Identity", "x", "y")], {"x": ("float32", sides)}, {"y": None}))
    with wave.open("a.wav", "wb") as file:
        file.setparams((2, 2, 8000, 0, "NONE", ""))
        file.writeframes(np.asarray([[8192, 0], [-16384, -16384], [0, 0]], "<i2").tobytes())
    assert main(["run", "s.onnx", "--input", "a.wav", "--output", "out", "--device", "cpu"]) == 0
    found = np.load("out/y.npy")
    assert found.shape == ((1, 8, 1) if sides == [1, 8, 1] else (3,) if sides == ["n"] else (1, 3))
    assert found.reshape(-1).tolist() == [0.125, -0.5, *([0] * (found.size - 2))]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--input x=x.npy", "there is no --input for bias: float32[1]"),
        ("--input y=x.npy", "the model has no input 'y', only x, bias"),
        ("--input x.npy", "say of which input: NAME=…, of x, bias"),
        ("--input x=one,two", "give a file (.npy, .wav, .png, .jpg …), or numbers"),
        ("--input bias=1,2", "bias: float32[1] does not hold 2 numbers"),
        ("--input bias=none.npy", "none.npy"),
        ("--input bias=a.png", "bias: float32[1] is no picture"),
        ("--input x=c.npy", "c.npy is of complex128, and x: float32[n, 2, 2] is wanted"),
    ],
)
@pytest.mark.usefixtures("scale")
def test_inputs_that_are_not_right(arguments: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", np.ones((1, 2, 2)))
    np.save("c.npy", np.ones((1, 2, 2), complex))
    assert main(["run", "m.onnx", "--device", "cpu", *arguments.split()]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_models_of_other_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "minilm"]) == 2
    assert "minilm is no ONNX model" in capsys.readouterr().err
    assert main(["info", "minilm"]) == 2
    assert "minilm is no ONNX model; of others: webgrad models minilm" in capsys.readouterr().err


def test_info(scale: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", scale, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["producer"], facts["parameters"], facts["nodes"]) == ("hand", 4, 3)
    assert facts["operators"] == {"Mul": 1, "Add": 1, "Neg": 1}
    assert main(["info", scale]) == 0
    text = capsys.readouterr().out
    assert "made by        hand" in text
    assert "x: float32[n, 2, 2]" in text


@pytest.mark.gpu
def test_check(scale: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", scale, "--shape", "x=3,2,2", "--device", "webgpu"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("cpu: all operators of 3 nodes are known and run on x [3, 2, 2], bias [1]\n")
    assert "webgpu:0: y: float32[3, 2, 2], off by" in text
    assert main(["check", scale, "--device", "webgpu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"]


def test_differences() -> None:
    one = {"y": np.asarray([0.0, 10.0])}
    for found, largest in (([0.0, 10.001], 1e-4), ([0.5, 10.0], 0.05), ([np.nan, 10.0], np.inf)):
        [difference] = differences({"y": np.asarray(found)}, one)
        assert difference.largest == pytest.approx(largest)
        assert difference.ok == (largest == 1e-4)
    assert not differences({"y": np.zeros(3)}, one)[0].ok
    assert not differences({"y": np.zeros(2, np.float32)}, one)[0].ok


@pytest.mark.usefixtures("scale")
def test_operators_that_are_not_there_are_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    Path("u.onnx").write_bytes(model([node("Nothing", "x", "y")], {"x": [1]}, {"y": None}))
    assert main(["check", "u.onnx", "--device", "cpu"]) == 2
    assert "1 × Nothing (version 18)" in capsys.readouterr().err


def test_bench(scale: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["--runs", "2", "--device", "cpu"]
    assert main(["bench", scale, *options]) == 0
    assert " ms a call" in capsys.readouterr().out
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    assert main(["bench", scale, *options, "--against", "onnxruntime"]) == 2
    assert "it is not installed here: pip install onnxruntime" in capsys.readouterr().err


def test_profile(scale: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", scale, "--no-files", "--device", "cpu", "--runs", "2", "--json"]) == 0
    assert [each["count"] for each in json.loads(capsys.readouterr().out)["kernels"]] == [2]

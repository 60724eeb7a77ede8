"""The examples run as a user runs them, on a little of made-up data."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import webgrad as wg

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *options: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / name), *map(str, options)]
    environment = os.environ | {"PYTHONPATH": str(EXAMPLES.parent), "WEBGRAD_DEVICE": "cpu"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_linear_regression(tmp_path: Path) -> None:
    done = run("linear_regression.py", folder=tmp_path)
    assert done.stdout == "y = 3.0 x + 0.5\n", done.stderr


def test_the_readme_has_the_same_linear_regression() -> None:
    code = (EXAMPLES / "linear_regression.py").read_text("utf-8").partition("\n\n")[2]
    assert code in (EXAMPLES.parent / "README.md").read_text("utf-8")


@pytest.fixture
def clothes(tmp_path: Path) -> Path:
    """Pictures whose class is the brightest of ten stripes."""
    random = np.random.default_rng(0)
    for name, count in (("train", 256), ("t10k", 64)):
        labels = random.integers(0, 10, count, np.uint8)
        images = random.integers(0, 60, (count, 28, 28), np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[:, 2 * label : 2 * label + 2] += 190
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            head = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
            (tmp_path / f"{name}-{kind}-ubyte").write_bytes(head + array.tobytes())
    return tmp_path


def test_fashion_mnist(clothes: Path) -> None:
    options = [
        "--data",
        ".",
        "--epochs",
        "3",
        "--batch",
        "32",
        "--losses",
        "losses.json",
        "--checkpoint",
        "run.safetensors",
    ]
    done = run("fashion_mnist.py", *options, folder=clothes)
    assert done.returncode == 0, done.stderr
    assert "epoch 3/3 24" not in done.stderr
    assert "8/8  loss " in done.stderr
    [accuracy] = re.findall(r"^all +([\d.]+)%", done.stdout, re.MULTILINE)
    assert float(accuracy) > 60
    assert len(re.findall(r"^[A-Z].*%", done.stdout, re.MULTILINE)) == 10
    assert len(json.loads((clothes / "losses.json").read_text())) == 24
    picture = ElementTree.parse(clothes / "confusion.svg").getroot()
    counts = [int(each.text or 0) for each in picture.findall(".//{*}text") if (each.text or "").isdigit()]
    assert sum(counts) == 64
    again = run("fashion_mnist.py", *options, folder=clothes)  # nothing is left to do
    assert re.findall(r"^all +([\d.]+)%", again.stdout, re.MULTILINE) == [accuracy]


def test_char_gpt(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text("the cat sat on the mat. " * 60)
    options = "--text story.txt --steps 60 --batch 8 --context 16 --width 16 --layers 1 --heads 2 --rate 0.01"
    files = ["--curve", "curve.svg", "--checkpoint", "gpt.safetensors"]
    done = run("char_gpt.py", *options.split(), *files, "--sample", "30", "--start", "the", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    [loss] = re.findall(r"60 steps in .* minutes: loss ([\d.]+)", done.stdout)
    assert float(loss) < 2.0
    sample = done.stdout.splitlines()[-1]
    assert sample.startswith("the")
    assert len(sample) == 33
    assert set(sample) <= set("the cat sat on the mat. ")
    assert len(ElementTree.parse(tmp_path / "curve.svg").findall(".//{*}path")) >= 3
    wanted = [each if each != "60" else "0" for each in options.split()]
    only = run(
        "char_gpt.py",
        *wanted,
        "--checkpoint",
        "gpt.safetensors",
        "--sample",
        "30",
        "--start",
        "the",
        folder=tmp_path,
    )
    assert only.stdout.splitlines()[-1] == sample, "the model is the one of the checkpoint"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("fashion_mnist.py --picture no/matrix.svg", "argument --picture: there is no folder no"),
        ("fashion_mnist.py --data no", "error: no: there is no such file or folder"),
        ("fashion_mnist.py --epochs 0", "argument --epochs: an integer, 1 or more, not '0'"),
        ("char_gpt.py --text no.txt", "error: no.txt cannot be read"),
        ("char_gpt.py --heads 3", "--width 128 cannot be dealt out to --heads 3"),
        ("char_gpt.py --steps some", "argument --steps: an integer, 0 or more, not 'some'"),
    ],
)
def test_mistakes_in_a_command_are_one_line(command: str, message: str, tmp_path: Path) -> None:
    done = run(*command.split(), folder=tmp_path)
    assert done.returncode
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_diffusion(clothes: Path) -> None:
    files = [
        "--checkpoint",
        "run.safetensors",
        "--model",
        "model",
        "--samples",
        "all.png",
        "--curve",
        "c.svg",
    ]
    done = run("diffusion.py", "--quick", "--data", ".", *files, folder=clothes)
    assert done.returncode == 0, done.stderr
    assert "4/4  loss " in done.stderr
    assert "4 steps; loss " in done.stdout
    pipe = wg.diffusion.load(clothes / "model")
    assert pipe(1, classes="boot", guidance=2.0, steps=2, seed=0).shape == (1, 28, 28, 1)
    assert wg.io.read_picture(clothes / "all.png").shape == (10 * 56, 56, 3)
    assert len(ElementTree.parse(clothes / "c.svg").findall(".//{*}path")) >= 3
    weights = clothes / "model" / "unet" / "diffusion_pytorch_model.safetensors"
    before = weights.read_bytes()
    again = run("diffusion.py", "--quick", "--data", ".", *files, folder=clothes)  # nothing is left to do
    assert "going on after step 4" in again.stderr
    assert weights.read_bytes() == before

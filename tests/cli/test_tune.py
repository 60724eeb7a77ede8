"""`webgrad tune`: the list of what was measured, and clearing it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tuning.test_entries import ENTRY, KEY, SLOW
from webgrad import config
from webgrad.cli import main
from webgrad.cli import tune as command
from webgrad.tuning.entries import Entries, Entry


@pytest.fixture
def folder(clean_environment: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache."""
    clean_environment.setenv("WEBGRAD_CACHE", str(tmp_path))
    clean_environment.setenv("COLUMNS", "200")
    config.reload()
    return tmp_path / "tuning"


def test_an_empty_list(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune"]) == 0
    assert capsys.readouterr().out == f"0 entries in {folder}\n"
    assert not folder.exists()


@pytest.mark.parametrize("arguments", [["tune"], ["tune", "--list"]])
def test_a_list(arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = Entries(folder)
    entries.keep(ENTRY)
    entries.keep(Entry(KEY | {"adapter": "Radeon", "shapes": [[]]}, ENTRY.candidates, SLOW))
    (folder / "rows-0.json").write_text("{", "utf-8")
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"3 entries in {folder}\n")
    assert "4×8 4: threads 64, rows 1, 4.00 × the default, 0.500 ms\n" in text
    assert "Radeon, Mesa 25.0.7\n" in text
    assert "(): threads 1, rows 4, the default, 2.000 ms\n" in text
    assert "damaged: it will be measured anew\n" in text


def test_clearing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Entries(folder).keep(ENTRY)
    assert main(["tune", "--clear"]) == 0
    assert capsys.readouterr().out == f"1 entries removed from {folder}\n"
    assert list(folder.iterdir()) == []


def test_without_a_home(folder: Path, clean_environment: pytest.MonkeyPatch) -> None:
    clean_environment.setattr(command, "entries_folder", lambda: None)
    assert main(["tune"]) == 2


def test_what_cannot_be_cleared(
    folder: Path, clean_environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied")

    Entries(folder).keep(ENTRY)
    clean_environment.setattr(Path, "unlink", refused)
    assert main(["tune", "--clear"]) == 2
    assert f"{folder} cannot be cleared: Permission denied." in capsys.readouterr().err

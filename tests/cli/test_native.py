"""`webgrad native`: what is kept on disk, and clearing it."""

from __future__ import annotations

from pathlib import Path

import pytest

from webgrad import config
from webgrad.cli import main
from webgrad.cli import native as command
from webgrad.native.objects import Objects, key_of


@pytest.fixture
def folder(clean_environment: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache."""
    clean_environment.setenv("WEBGRAD_CACHE", str(tmp_path))
    clean_environment.setenv("COLUMNS", "200")
    config.reload()
    return tmp_path / "native"


def test_nothing_is_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["native"]) == 0
    assert capsys.readouterr().out.startswith(f"0 files in {folder}\n")
    assert not folder.exists()


@pytest.mark.parametrize("arguments", [["native"], ["native", "--list"]])
def test_what_is_kept(arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Objects(folder, 1 << 20).keep(key_of("a"), bytes(5000))
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"1 files in {folder}\n")
    assert "KiB of 256 MiB\n" in text


def test_switched_off(
    folder: Path, clean_environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clean_environment.setenv("WEBGRAD_NATIVE", "0")
    clean_environment.setenv("WEBGRAD_NATIVE_CACHE", "0")
    config.reload()
    assert main(["native"]) == 0
    text = capsys.readouterr().out
    assert "no native code here" in text
    assert "nothing is kept" in text


def test_clearing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Objects(folder, 1 << 20).keep(key_of("a"), bytes(5000))
    assert main(["native", "--clear"]) == 0
    assert capsys.readouterr().out == f"1 files removed from {folder}\n"
    assert list(folder.iterdir()) == []


def test_without_a_home(folder: Path, clean_environment: pytest.MonkeyPatch) -> None:
    clean_environment.setattr(command, "objects", lambda: Objects(None, 1))
    assert main(["native"]) == 2


def test_what_cannot_be_cleared(
    folder: Path, clean_environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied")

    Objects(folder, 1 << 20).keep(key_of("a"), bytes(5000))
    clean_environment.setattr(Path, "unlink", refused)
    assert main(["native", "--clear"]) == 2
    assert f"{folder} cannot be cleared: Permission denied." in capsys.readouterr().err

"""The virtual environment's stamp, and what is said where none can be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import setup
from scripts.setup import fingerprint, is_current


def test_the_fingerprint_follows_the_project_file(tmp_path: Path) -> None:
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text("one", encoding="utf-8")
    first = fingerprint(pyproject)
    assert fingerprint(pyproject) == first
    pyproject.write_text("two", encoding="utf-8")
    assert fingerprint(pyproject) != first


@pytest.mark.parametrize(
    ("text", "dev", "current"),
    [
        ('{"fingerprint": "abc", "dev": true}', True, True),
        ('{"fingerprint": "abc", "dev": true}', False, True),
        ('{"fingerprint": "abc", "dev": false}', True, False),
        ('{"fingerprint": "abd", "dev": true}', False, False),
        ("not json", False, False),
        ("", False, False),
    ],
)
def test_the_stamp(text: str, dev: bool, current: bool, tmp_path: Path) -> None:
    stamp = tmp_path / "stamp"
    stamp.write_text(text, encoding="utf-8")
    assert is_current(stamp, "abc", dev=dev) == current


def test_no_stamp_is_not_current(tmp_path: Path) -> None:
    assert not is_current(tmp_path / "none", "abc", dev=False)


def test_without_the_venv_module_and_without_root_it_names_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup, "VENV", tmp_path / "venv")
    monkeypatch.setattr(setup, "venv_python", lambda: tmp_path / "venv" / "python")
    monkeypatch.setattr("scripts.setup.importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(setup, "apt_prefix", lambda: None)
    assert setup.main([]) == 1
    assert "apt-get install python3-venv" in capsys.readouterr().out

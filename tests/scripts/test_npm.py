"""When npm's packages are installed, and what is said where they cannot be; npm is a stand-in here."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scripts import npm
from scripts.npm import FOLDER, ensure_packages, lacking


def run_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch, found: str | None = "/usr/bin/npm", code: int = 0
) -> list[list[str]]:
    """A folder with a lock; the commands that will be run there."""
    (folder / "package-lock.json").write_text("{}", encoding="utf-8")
    commands: list[list[str]] = []

    def run(command: list[str], **more: Any) -> subprocess.CompletedProcess[bytes]:
        commands.append(command)
        (folder / "node_modules").mkdir(exist_ok=True)
        return subprocess.CompletedProcess(command, code)

    monkeypatch.setattr("scripts.npm.shutil.which", lambda name: found)
    monkeypatch.setattr("scripts.npm.subprocess.run", run)
    return commands


def test_the_few_first_and_then_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands = run_in(tmp_path, monkeypatch)
    for everything in (False, False, True, True, False):
        ensure_packages(tmp_path, everything=everything)
    assert [command[-1] for command in commands] == ["--omit=dev", str(tmp_path)]
    (tmp_path / "package-lock.json").write_text('{"changed": true}', encoding="utf-8")
    ensure_packages(tmp_path)
    assert len(commands) == 3


@pytest.mark.parametrize(
    ("found", "words"), [(None, "npm is not on PATH"), ("/usr/bin/npm", "npm ci failed")]
)
def test_what_cannot_be_installed_is_told(
    found: str | None,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    run_in(tmp_path, monkeypatch, found, code=1)
    ensure_packages(tmp_path)
    assert words in capsys.readouterr().out
    assert not (tmp_path / "node_modules" / ".webgrad-stamp").exists()


def test_what_is_lacking(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(npm, "find", lambda name: "/usr/bin/node")
    assert "npm ci --prefix scripts/web" in lacking("webgpu", tmp_path)
    (tmp_path / "node_modules" / "webgpu").mkdir(parents=True)
    assert lacking("webgpu", tmp_path) == ""
    monkeypatch.setattr(npm, "find", lambda name: None)
    assert "node was not found" in lacking("webgpu", tmp_path)


def test_the_lock_is_that_of_the_packages_and_names_no_host() -> None:
    text = (FOLDER / "package-lock.json").read_text(encoding="utf-8")
    wanted = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    lock = json.loads(text)["packages"]
    assert re.findall(r"https?:|resolved", text) == []
    for kind in ("dependencies", "devDependencies"):
        assert lock[""][kind] == wanted[kind]
        versions = {name: lock[f"node_modules/{name}"]["version"] for name in wanted[kind]}
        assert versions == wanted[kind]

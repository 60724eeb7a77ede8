"""The environment for the cross-check against torch is made once, and what fails ends it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from scripts import torch_tests


def watched(monkeypatch: pytest.MonkeyPatch, failing: str = "nothing") -> list[list[str]]:
    """The commands that would run; those with a certain word fail."""
    ran: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        return subprocess.CompletedProcess(command, 3 if failing in command else 0)

    monkeypatch.setattr("scripts.torch_tests.subprocess.run", run)
    return ran


def test_it_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran = watched(monkeypatch)
    assert torch_tests.ensure(tmp_path) == 0
    assert [torch_tests.TORCH in command for command in ran] == [False, True, False]
    assert torch_tests.ensure(tmp_path) == 0
    assert len(ran) == 3


def test_without_torch_it_says_where_it_looked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = watched(monkeypatch, torch_tests.TORCH)
    assert torch_tests.ensure(tmp_path) == 3
    assert "download.pytorch.org" in ran[-1][-1]
    assert torch_tests.WHEELS in capsys.readouterr().out


def test_arguments_go_to_pytest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran = watched(monkeypatch)
    monkeypatch.setattr(torch_tests, "FOLDER", tmp_path)
    assert torch_tests.main(["-k", "LSTM"]) == 0
    assert ran[-1][1:] == ["-m", "pytest", "tests/torch", "-k", "LSTM"]

"""The environments for cross-checks have torch too; tests of minutes run in them."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scripts import peer_tests, torch_tests


@pytest.mark.parametrize("name", peer_tests.SUITES)
def test_it_is_made_with_torch_and_run(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("subprocess.run", run)
    suite = dataclasses.replace(peer_tests.SUITES[name], folder=tmp_path)
    monkeypatch.setattr(peer_tests, "SUITES", {name: suite})
    assert peer_tests.main([name, "-k", "gemma"]) == 0
    assert torch_tests.TORCH in ran[1]
    assert set(suite.packages) <= set(ran[2])
    assert ran[-1][1:5] == ["-m", "pytest", "-m", ""]
    assert ran[-1][-2:] == ["-k", "gemma"]
    assert peer_tests.main([name]) == 0
    assert len(ran) == 5  # made once, run twice


def test_another_version_is_another_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("subprocess.run", lambda command, **_: subprocess.CompletedProcess(command, 0))
    made: list[str] = []
    monkeypatch.setattr("scripts.environments.say", made.append)
    for packages in (("a==1",), ("a==1",), ("a==2",)):
        assert torch_tests.ensure(tmp_path, packages) == 0
    assert len(made) == 2

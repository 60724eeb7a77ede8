"""The Makefile's targets: every one is there, and its steps stop at the first failure."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts import tasks
from scripts.system import ROOT
from scripts.tasks import TARGETS, main, run_environment
from tests.limits import HANG


def test_the_makefile_has_every_target() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    listed = re.search(r"^TARGETS := (.*)$", text, re.MULTILINE)
    assert listed is not None
    assert listed[1].split() == list(TARGETS)
    assert [name for name in TARGETS if f"#   make {name} " not in text] == []


def test_the_first_failing_step_ends_a_target(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, list[str]]] = []

    def step(name: str, code: int) -> tasks.Step:
        def run(arguments: Sequence[str]) -> int:
            ran.append((name, list(arguments)))
            return code

        return run

    monkeypatch.setattr(tasks, "TARGETS", {"x": (step("a", 0), step("b", 3), step("c", 0))})
    assert main(["x", "-k", "name"]) == 3
    assert ran == [("a", ["-k", "name"]), ("b", ["-k", "name"])]


@pytest.mark.skipif(sys.platform == "win32", reason="a signal cannot be sent to oneself there")
def test_ctrl_c_is_left_to_the_command_of_the_demo(capfd: pytest.CaptureFixture[str]) -> None:
    # As at a terminal, both get it; the command goes on, and so must the one that waits for it.
    command = (
        "import os, signal, time\n"
        "try:\n    os.kill(os.getppid(), signal.SIGINT); os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(600)\n"
        "except KeyboardInterrupt:\n    time.sleep(0.5); print('went on', flush=True)\n"
    )

    def run(arguments: Sequence[str]) -> int:
        return subprocess.run([sys.executable, "-c", command], check=False).returncode

    before = signal.getsignal(signal.SIGINT)
    assert tasks.with_its_own_interrupts(run)([]) == 0
    assert capfd.readouterr().out == "went on\n"
    assert signal.getsignal(signal.SIGINT) is before


def test_no_target_lists_them_and_an_unknown_one_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert main(["unheard-of"]) == 2
    assert capsys.readouterr().out.count("the targets are demo test check") == 2


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LP_NUM_THREADS", "2")
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    environment = run_environment({"LP_NUM_THREADS": "0", "OTHER": "1"})
    assert (environment["LP_NUM_THREADS"], environment["OTHER"]) == ("2", "1")
    assert environment["XDG_RUNTIME_DIR"]


def test_work_beside_other_steps_is_waited_for() -> None:
    may_end, ended = threading.Event(), threading.Event()

    def work() -> None:
        may_end.wait(HANG)
        ended.set()

    begin, finish = tasks.beside(work)
    assert begin([]) == 0
    assert not ended.is_set()
    may_end.set()
    assert finish([]) == 0
    assert ended.is_set()


def test_bytecode_of_a_run_is_shared_where_none_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    with tasks.shared_bytecode() as environment:
        assert not environment["PYTHONDONTWRITEBYTECODE"]
        assert Path(environment["PYTHONPYCACHEPREFIX"]).is_dir()
    assert not Path(environment["PYTHONPYCACHEPREFIX"]).exists()
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE")
    with tasks.shared_bytecode() as environment:
        assert environment == {}

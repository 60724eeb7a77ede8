"""The command in a clumsy shell: closed streams, full disks, odd settings, signals. One line each time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from webgrad.cli import COMMANDS, main
from webgrad.cli.options import MOST
from webgrad.startup import is_command

FULL = Path("/dev/full")
POSIX = pytest.mark.skipif(os.name != "posix", reason="this is how POSIX shells do it")


def run(shell: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A line of a shell in which $WEBGRAD is the command."""
    command = f"'{sys.executable}' -m webgrad.cli"
    return subprocess.run(
        ["sh", "-c", shell.replace("$WEBGRAD", command)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


@POSIX
def test_closed_output_is_told() -> None:
    found = run("$WEBGRAD tune >&-")
    assert found.returncode == 2
    assert found.stderr == "webgrad: standard output is closed: there is nowhere to write to\n"


@POSIX
def test_other_closed_streams_are_not_missed(tmp_path: Path) -> None:
    found = run("$WEBGRAD tune 2>&- <&-", WEBGRAD_CACHE=str(tmp_path))
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout
    assert run("$WEBGRAD nonsense 2>&-").returncode == 2


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("buffered", ["", "1"])
def test_a_full_disk_is_told(buffered: str) -> None:
    found = run("$WEBGRAD --version >/dev/full", PYTHONUNBUFFERED=buffered)
    assert found.returncode == 2
    assert found.stderr == "webgrad: the output could not be written: No space left on device\n"


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_tells_of_a_full_disk(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def tell(line: str, code: int) -> int:
        told.append(line)
        return code

    with FULL.open("w", encoding="utf-8") as full, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", full)
        patched.setattr("webgrad.cli._tell", tell)
        assert main([command, "--help"]) == 2
    assert told == [f"webgrad {command}: the output could not be written: No space left on device"]


@POSIX
def test_letters_that_a_terminal_lacks_are_replaced(tmp_path: Path) -> None:
    found = run("$WEBGRAD --help", PYTHONIOENCODING="ascii", LC_ALL="C")
    assert found.returncode == 0
    assert "Traceback" not in found.stderr
    found = run("$WEBGRAD models show 'm\udcff.gguf'", WEBGRAD_CACHE=str(tmp_path))
    assert (found.returncode, len(found.stderr.splitlines())) == (2, 1)


@POSIX
@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "large", "deep"])
def test_settings_that_are_no_text_file_are_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "webgrad.toml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.write_text("#" * (2 << 20) if kind == "large" else "graph = " + "[" * 100_000)
    found = run("$WEBGRAD info", WEBGRAD_CONFIG=str(path))
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert str(path) in found.stderr


@POSIX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_command_quietly(number: signal.Signals, tmp_path: Path) -> None:
    """The server says its address when it is up: from then on it only waits."""
    (tmp_path / "index.html").write_text("here", encoding="utf-8")
    command = [sys.executable, "-m", "webgrad.cli", "serve-static", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(number)
        _, told = process.communicate()
    assert process.returncode in (0, 128 + number)
    assert "Traceback" not in told


@POSIX
def test_ctrl_c_while_modules_are_imported() -> None:
    """The first import that is slow sends the signal; the process has been started as the command is."""
    code = (
        "import os, signal, sys; sys.orig_argv = ['python', 'bin/webgrad', 'info']\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'webgrad.dtypes': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "import webgrad.cli\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (130, "")


def test_only_the_command_takes_the_signal_over() -> None:
    assert is_command(["/usr/bin/python3", "/usr/local/bin/webgrad", "chat"])
    assert is_command(["python", "-X", "dev", "-m", "webgrad.cli", "info"])
    assert not is_command(["python", "-m", "pytest", "webgrad"])
    assert not is_command(["python", "train.py", "webgrad"])
    assert not is_command(["python"])


NUMBERS = ("nan", "inf", "-1", "1e99", "99999999999999999999", "9" * 5000, "", "one")
OPTIONS = {
    "generate": ("--top-k", "--max-tokens", "--context"),
    "embed": ("--batch-size",),
    "bench": ("--runs", "--prompt-tokens", "--tokens"),
    "check": ("--steps",),
    "profile": ("--kernels",),
    "record": ("--limit",),
    "replay": ("--repeat",),
    "export": ("--context",),
    "serve-static": ("--port",),
}


@pytest.mark.parametrize("text", NUMBERS, ids=lambda text: text[:24] or "empty")
@pytest.mark.parametrize("command", OPTIONS)
def test_numbers_out_of_range_name_the_option(
    command: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in OPTIONS[command]:
        with pytest.raises(SystemExit) as end:
            main([command, f"{option}={text}", "x", "y"])
        told = capsys.readouterr().err
        assert end.value.code == 2
        assert told.startswith(f"webgrad {command}: argument {option}: ")
        assert told.count("\n") == 1
        assert len(told) < 250
        assert f"to {MOST}" in told or "65535" in told

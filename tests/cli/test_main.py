"""The command line: commands, versions, errors, and a closed pipe."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import webgrad
from webgrad.cli import COMMANDS, GROUPS, main

ROOT = Path(__file__).parents[2]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"webgrad {webgrad.__version__}\n"


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert [name for name in COMMANDS if f"\n  {name} " not in text] == []


def test_no_command_is_answered_with_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert capsys.readouterr().err.startswith("usage: webgrad")


@pytest.mark.parametrize(
    ("word", "hint"), [("inform", "did you mean info?"), ("xyzzy", f"there are {', '.join(COMMANDS)}.")]
)
def test_an_unknown_command(word: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word]) == 2
    assert capsys.readouterr().err == f"webgrad: there is no command {word!r}; {hint}\n"


def test_every_command_is_in_one_group() -> None:
    listed = [name for names in GROUPS.values() for name in names]
    assert len(listed) == len(set(listed))
    assert set(COMMANDS) <= set(listed)


def test_ctrl_c_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("webgrad.cli.info.collect", lambda device: interrupted())
    assert main(["info"]) == 130
    assert capsys.readouterr() == ("", "\n")


def test_options_go_to_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["info", "--help"])
    assert "--json" in capsys.readouterr().out


def test_an_error_is_a_message_and_an_exit_code(
    clean_environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clean_environment.setenv("WEBGRAD_ENCODER", "quick")
    assert main(["info"]) == 2
    expected = "webgrad info: WEBGRAD_ENCODER: 'quick' is not allowed here; it must be fast or plain.\n"
    assert capsys.readouterr().err == expected


def test_help_is_quick_and_needs_no_gpu() -> None:
    code = "import sys, webgrad.cli\nwebgrad.cli._parser()\nsys.exit('wgpu' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="pipes close differently there")
def test_a_reader_that_has_seen_enough() -> None:
    command = f"'{sys.executable}' -m webgrad.cli info --json | head -n 1"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("{\n", "")


def test_a_wrong_setting_is_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "webgrad.cli", "info"],
        cwd=ROOT,
        env=os.environ | {"WEBGRAD_QUEUE": "many"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("webgrad info: WEBGRAD_QUEUE: 'many' is not allowed here")
    assert done.stderr.count("\n") == 1

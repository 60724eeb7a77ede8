"""The command line: commands, versions, errors, and a closed pipe."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import webgrad
from webgrad.cli import COMMANDS, main

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


@pytest.mark.parametrize("arguments", [[], ["inform"]])
def test_no_command_or_an_unknown_one(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: webgrad" in capsys.readouterr().err


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

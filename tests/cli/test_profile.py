"""`webgrad profile script.py`: the table, the files, and the script's own exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from webgrad.cli import main

SCRIPT = """
import sys
import webgrad as wg
print(sys.argv[1:], __name__, float((wg.ones((20, 20)) @ wg.ones((20, 20))).sum()))
sys.exit(3)
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "work.py"
    path.write_text(SCRIPT, "utf-8")
    return path


def test_a_script_with_arguments_of_its_own(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "work.py", "--json", "x"]) == 3
    text = capsys.readouterr().out
    assert "['--json', 'x'] __main__ 8000.0" in text
    assert "of it explained" in text
    assert "matmul" in text
    assert "work.py:4" in text
    trace = json.loads(script.with_name("work.trace.json").read_text("utf-8"))
    assert any(each.get("cat") == "kernel" for each in trace["traceEvents"])
    assert script.with_name("work.profile.html").is_file()


def test_json_and_no_files(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--json", "--no-files", "work.py"]) == 3
    shown = capsys.readouterr()
    assert json.loads(shown.out)["kernels"][0]["line"] == "work.py:4"
    assert "__main__ 8000.0" in shown.err  # what the script prints
    assert sorted(each.name for each in script.parent.iterdir()) == ["work.py"]


def test_an_error_of_the_script_is_shown_as_python_shows_it(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text("def broken():\n    raise KeyError('here')\nbroken()\n", "utf-8")
    assert main(["profile", "--no-files", "work.py"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("Traceback (most recent call last):\n")
    assert "line 2, in broken" in error
    assert error.endswith("KeyError: 'here'\n")
    assert "runpy" not in error
    assert "running.py" not in error


def test_after_ctrl_c_the_table_is_shown(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.write_text(SCRIPT.replace("sys.exit(3)", "raise KeyboardInterrupt"), "utf-8")
    assert main(["profile", "--no-files", "work.py"]) == 130
    assert "work.py:4" in capsys.readouterr().out


def test_a_missing_script(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "none.py"]) == 2
    assert list(script.parent.iterdir()) == [script]
    assert capsys.readouterr().err == (
        "webgrad profile: there is no script none.py: give the path of a Python file\n"
    )

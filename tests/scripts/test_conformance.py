"""`make conformance` over a small suite of its own: what it needs, what it counts, what it calls wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import conformance
from scripts.conformance import Run, SuiteError, check_suite, main, problems
from scripts.conformance_report import Counts, counts_of

CONFTEST = """
import pytest

def pytest_addoption(parser):
    parser.addoption("--max-examples", type=int)
    parser.addoption("--disable-deadline", action="store_true")
    parser.addoption("--skips-file")
    parser.addoption("--xfails-file")

def pytest_collection_modifyitems(config, items):
    for name, mark in (("--skips-file", pytest.mark.skip), ("--xfails-file", pytest.mark.xfail)):
        listed = open(config.getoption(name)).read().split()
        for item in items:
            if item.nodeid in listed:
                item.add_marker(mark)
"""
TESTS = """
import os, pytest

def test_passes(request):
    assert os.environ["ARRAY_API_TESTS_MODULE"] == "webgrad"
    assert os.environ["ARRAY_API_TESTS_VERSION"] == "2025.12"
    assert os.environ["ARRAY_API_TESTS_SKIP_DTYPES"] == ""
    assert request.config.getoption("--max-examples") == 7
    import webgrad
    assert webgrad.default_device().name == "cpu"

def test_fails():
    assert False

def test_is_listed():
    assert False

def test_passes_after_all():
    pass

def test_is_left_out():
    pass

@pytest.fixture
def broken():
    yield
    raise ValueError

def test_fails_at_its_end(broken):
    pass
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with six tests, and lists for them; results go to a folder of their own."""
    folder = tmp_path / "suite"
    (folder / "array_api_tests").mkdir(parents=True)
    (folder / "array-api" / "src" / "array_api_stubs" / "_2025_12").mkdir(parents=True)
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (folder / "array_api_tests" / "test_some.py").write_text(TESTS, encoding="utf-8")
    lists = tmp_path / "lists"
    lists.mkdir()
    line = "{} | array_api_tests/test_some.py::{} | because it is so\n"
    skips = line.format("cpu", "test_is_left_out") + line.format("webgpu", "test_passes")
    xfails = line.format("both", "test_is_listed") + line.format("both", "test_passes_after_all")
    (lists / "skips.txt").write_text(skips, encoding="utf-8")
    (lists / "xfails.txt").write_text(xfails, encoding="utf-8")
    monkeypatch.setattr(conformance, "LISTS", lists)
    monkeypatch.setattr(conformance, "RESULTS", tmp_path / "results")
    return folder


def run(suite: Path, *more: str) -> int:
    return main(["--suite", str(suite), "--here", "--device", "cpu", "--max-examples", "7", *more])


def test_what_failed_is_counted_and_named(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(suite.rglob("*"))
    assert run(suite) == 1
    text = capsys.readouterr().out
    assert "cpu: failed: array_api_tests/test_some.py::test_fails\n" in text
    assert "cpu: failed: array_api_tests/test_some.py::test_fails_at_its_end\n" in text
    assert (
        "cpu: passed, though expected to fail: array_api_tests/test_some.py::test_passes_after_all\n" in text
    )
    row = next(line for line in text.splitlines() if line.startswith("cpu  "))
    assert row.split()[:7] == ["cpu", "1", "2", "1", "1", "1", "40.00%"]
    assert sorted(suite.rglob("*")) == files


def test_what_is_listed_must_be_there(suite: Path) -> None:
    counts = Counts(1, {"passed": ["array_api_tests/test_some.py::test_is_listed"]})
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    finished = Run("cpu", ended, suite, suite, 0.0)
    file = "array_api_tests/test_some.py"
    assert list(problems(finished, counts, whole=True)) == [
        f"listed in conformance/skips.txt, but not in the suite: {file}::test_is_left_out",
        f"listed in conformance/xfails.txt, but not in the suite: {file}::test_passes_after_all",
    ]
    assert list(problems(finished, counts, whole=False)) == []


def test_a_run_that_breaks_off_is_no_success(
    suite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(conformance, "missing_types", lambda python, device: "")
    path = suite / "array_api_tests" / "test_some.py"
    path.write_text("import os\ndef test_passes(): os._exit(0)\n", encoding="utf-8")
    assert run(suite, "array_api_tests") == 1
    assert "cpu: ended early, with code 0: see " in capsys.readouterr().out


def test_lists_without_reasons_are_refused(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (conformance.LISTS / "skips.txt").write_text(
        "array_api_tests/test_some.py::test_fails\n", encoding="utf-8"
    )
    assert run(suite) == 2
    assert "skips.txt, line 1" in capsys.readouterr().out


def test_a_device_that_is_not_there(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--suite", str(suite), "--here", "--device", "no such one"]) == 2
    assert "the device no such one cannot be used" in capsys.readouterr().out


def test_what_a_suite_must_have(
    suite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_suite(str(suite)) == suite.resolve()
    monkeypatch.delenv("SUITE", raising=False)
    assert main([]) == 2
    assert "say where the suite is: make conformance SUITE=<checkout>" in capsys.readouterr().out
    with pytest.raises(
        SuiteError, match=r"is no checkout of data-apis/array-api-tests\. To get it: git clone"
    ):
        check_suite(str(suite / "array-api"))
    (suite / "array-api" / "src" / "array_api_stubs" / "_2025_12").rmdir()
    with pytest.raises(SuiteError, match=r"lacks the standard 2025\.12 itself.*git submodule update --init"):
        check_suite(str(suite))


def test_notes_that_are_being_written(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    assert counts_of(path) == Counts(0)
    path.write_text('{"collected": 2}\n{"test": "a", "outcome": "passed"}\n{"tes', encoding="utf-8")
    assert counts_of(path) == Counts(2, {"passed": ["a"]})

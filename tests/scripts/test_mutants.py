"""The table of faults is alive: each row's text is there once, and means something else afterwards."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from scripts import mutants
from scripts.mutants import FUZZ, MEMORY, Copies, bounded, mutated, stages, tried
from scripts.mutants_table import FAULTS, Fault
from scripts.system import ROOT


def test_there_are_about_a_hundred_of_all_stages() -> None:
    folders = {Path(each.file).parts[1] for each in FAULTS}
    assert len(FAULTS) >= 100
    assert {"ops", "cpu", "schedule", "lower", "runtime", "kernels", "wgsl"} <= folders
    assert len({(each.file, each.old, each.new) for each in FAULTS}) == len(FAULTS)
    assert folders <= FUZZ.keys()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: f"{each.file}: {each.what}")
def test_a_row_fits_its_file(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    changed = mutated(fault, text)
    assert changed != text
    if fault.file.endswith(".py"):
        ast.parse(changed)
    for each in [*fault.tests, *stages(fault)[0]]:
        assert (ROOT / each).exists(), each


def test_text_that_is_not_there_once_is_an_error() -> None:
    fault = Fault("webgrad/x.py", "a + b", "a - b", "minus")
    with pytest.raises(ValueError, match=r"occurs 0 times"):
        mutated(fault, "a * b")
    with pytest.raises(ValueError, match=r"occurs 2 times"):
        mutated(fault, "a + b; a + b")


def small_tree(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Fault:
    """A project of one function and two tests, one of which fails anyway."""
    for each in ("webgrad/ops", "tests/ops", "scripts", "docs", "examples", "benchmarks"):
        (folder / each).mkdir(parents=True)
    (folder / "webgrad/__init__.py").touch()
    (folder / "webgrad/ops/__init__.py").touch()
    (folder / "webgrad/ops/sums.py").write_text("def plus(a, b):\n    return a + b\n")
    test = "from webgrad.ops.sums import plus\n\ndef test_broken():\n    assert False\n\n"
    (folder / "tests/ops/test_sums.py").write_text(test + "def test_plus():\n    assert plus(1, 2) == 3\n")
    monkeypatch.setattr(mutants, "ROOT", folder)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # every run then begins sooner
    monkeypatch.setattr(stages, "__defaults__", (folder,))
    return Fault("webgrad/ops/sums.py", "a + b", "a - b", "minus")


posix = pytest.mark.skipif(sys.platform == "win32", reason="limits of processor time are POSIX")


@posix
def test_the_test_that_finds_a_fault_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = small_tree(tmp_path / "tree", monkeypatch)
    copies = Copies(tmp_path)
    copies.add(0)
    found, by_fuzz, _ = tried(fault, copies, fuzz=False)
    assert found == "tests/ops/test_sums.py::test_plus"  # and not the one that fails without the fault too
    assert by_fuzz == ""
    assert "a + b" in (tmp_path / "copy0/webgrad/ops/sums.py").read_text()
    assert "a + b" in (tmp_path / "tree/webgrad/ops/sums.py").read_text()


@posix
def test_a_fault_that_no_test_sees_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = small_tree(tmp_path / "tree", monkeypatch)
    copies = Copies(tmp_path)
    copies.add(0)
    harmless = Fault(fault.file, "def plus(a, b):", "def plus(a, b, c=0):", "nothing")
    assert tried(harmless, copies, fuzz=False)[0] == ""


@posix
def test_a_test_that_fails_in_every_copy_finds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = small_tree(tmp_path / "tree", monkeypatch)
    here = f"def test_home():\n    assert {str(tmp_path / 'tree')!r} in __file__\n"
    (tmp_path / "tree/tests/ops/test_sums.py").write_text(here)  # passes in the tree itself, in no copy of it
    copies = Copies(tmp_path)
    copies.add(0)
    assert tried(fault, copies, fuzz=False)[0] == ""


@posix
@pytest.mark.parametrize("anyway", [False, True])
def test_a_run_that_is_ended_finds_a_fault_if_it_ends_without(
    anyway: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = small_tree(tmp_path / "tree", monkeypatch)
    killed = "import os\nfrom webgrad.ops.sums import plus\n\ndef test_plus():\n"
    killed += f"    if {anyway} or plus(1, 2) != 3:\n        os.kill(os.getpid(), 9)\n"
    (tmp_path / "tree/tests/ops/test_sums.py").write_text(killed)
    copies = Copies(tmp_path)
    copies.add(0)
    found, _, _ = tried(fault, copies, fuzz=False, first_only=True)
    assert found == ("" if anyway else "did not end: signal 9")


@posix
def test_a_run_has_limits_of_time_and_memory(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text("print('begun', flush=True)\nwhile True:\n    pass\n")
    code, output = bounded(["endless"], tmp_path, 1)
    assert code < 0
    assert output == "begun\n"
    (tmp_path / "large.py").write_text(f"bytearray({2 * MEMORY})\n")
    code, output = bounded(["large"], tmp_path, 60)
    if sys.platform == "linux":  # where the limit is one
        assert (code, output.splitlines()[-1]) == (1, "MemoryError")


@posix
def test_the_random_program_that_finds_a_fault_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = small_tree(tmp_path / "tree", monkeypatch)
    fuzz = """
import sys
from webgrad.ops.sums import plus

def option(name):
    return sys.argv[sys.argv.index(name) + 1]

part, first, count = option("--only"), int(option("--seed")), int(option("--count"))
wrong = {20} if part == "gpu-programs" else set()
if plus(1, 2) != 3 and part == "gpu-programs":
    wrong.add(30)
for seed in sorted(wrong & set(range(first, first + count))):
    print(f"FAILED: {part}, seed {seed}: wrong")
    sys.exit(1)
"""
    (tmp_path / "tree/scripts/__init__.py").touch()
    (tmp_path / "tree/scripts/fuzz.py").write_text(fuzz)
    copies = Copies(tmp_path)
    copies.add(0)
    found, by_fuzz, _ = tried(fault, copies, fuzz=True, tests=False)
    assert (found, by_fuzz) == ("", "gpu-programs, seed 30")  # and not the seed that is wrong without it too

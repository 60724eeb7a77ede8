"""`webgrad replay`: its table, its JSON and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tools.recording.recordings import X, write
from webgrad.cli import main

pytestmark = pytest.mark.gpu
DEVICE = ("--device", "webgpu:0")


def test_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(write(tmp_path / "run.zip")), *DEVICE, "--repeat", "1"]) == 0
    heading, table = capsys.readouterr().out.split("\nkernel")
    assert "recorded on an adapter, vulkan" in heading
    assert "script.py:7" in table
    assert "3 dispatches, 1 distinct: 1 equal" in table


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(write(tmp_path / "run.zip")), *DEVICE, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["right"] is True
    assert report["device"] == "webgpu:0"
    assert report["counts"]["equal"] == 1
    (row,) = report["rows"]
    assert (row["kernel"], row["count"], row["outcome"], row["error"]) == ("double", 3, "equal", 0)
    assert report["seconds"] == pytest.approx(3 * row["seconds"])


def test_what_differs_gives_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path / "run.zip", y=X))
    assert main(["replay", path, *DEVICE]) == 1
    assert "differs in 63 elements from 1 on" in capsys.readouterr().out
    assert main(["replay", path, *DEVICE, "--no-verify"]) == 0


def test_what_cannot_be_read_gives_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.zip"
    assert main(["replay", str(path), *DEVICE]) == 2
    path.write_bytes(b"PK and nothing else")
    assert main(["replay", str(path), *DEVICE]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(each.startswith("webgrad replay: ") and str(path) in each for each in lines)


def test_the_cpu_runs_no_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(write(tmp_path / "run.zip")), "--device", "cpu"]) == 2
    assert "of GPU kernels, and the device is the cpu" in capsys.readouterr().err


def test_a_pattern_that_no_kernel_has_gives_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(write(tmp_path / "run.zip")), *DEVICE, "--only", "half*"]) == 2
    assert "no kernel has a name like 'half*': nothing was run" in capsys.readouterr().err

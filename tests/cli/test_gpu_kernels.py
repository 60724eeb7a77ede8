"""`webgrad kernels --gpu`: a table for a GPU, and what is said where a run or a driver gives nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import webgrad as wg
from tests.missing import need_compiler
from webgrad.cli import gpu_kernels, main
from webgrad.cli.gpu_kernels import Inspection, Kernel, inspect, table
from webgrad.tools.gpus.listing import Instruction, Statistics, hot_loop
from webgrad.tools.gpus.table import GPUS

LOOP = hot_loop(["a", Instruction("vector", 1), Instruction("branch", target="a")])
MADE = Statistics(60, 0, 0, 8192, 24, 32, 64, 1672, {"vector": 406, "wait": 86}, LOOP)
FOUND = Inspection(GPUS["navi31"], "Mesa 25", (Kernel("matmul", "contract", 1, "", MADE),), 0)


def test_the_table() -> None:
    head, _, titles, row = table(FOUND).splitlines()
    assert head == "navi31: Radeon RX 7900 XTX, RDNA 3, as compiled by RADV (Mesa 25)"
    assert titles.split()[:3] == ["kernel", "registers", "spills"]
    assert " ".join(row.split()) == "contract 60 0 0 8,192 24/32 of 64 1,672 406 0 0 0 0 86 2 1 50% matmul"


def test_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(gpu_kernels, "inspect", lambda *_, **__: FOUND)
    assert main(["kernels", "--gpu", "navi31", "--json", "--all"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["navi31"]["kernels"]
    assert kernel["statistics"]["loop"]["instructions"] == 2


def test_a_run_that_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_kernels, "environment", lambda gpu: {})
    with pytest.raises(wg.DeviceError, match="the run on navi31 ended with code 2 before its kernels"):
        inspect(GPUS["navi31"], ["no-such-script.py"])


@pytest.mark.gpu
def test_output_of_another_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "work.py"
    script.write_text("import webgrad as wg\nwg.eval(wg.ones(3) * 2)\n", encoding="utf-8")
    monkeypatch.setattr(gpu_kernels, "environment", lambda gpu: {})
    with pytest.raises(wg.DeviceError, match=r"what RADV prints of .* on navi31 is not understood"):
        inspect(GPUS["navi31"], [str(script)])


def test_a_script_on_a_gpu(
    pytestconfig: pytest.Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_compiler(pytestconfig, "navi10")
    script = tmp_path / "work.py"
    script.write_text(
        "import webgrad as wg\nwg.eval(wg.ones((5, 31)) @ wg.ones((31, 7)))\nraise SystemExit(3)", "utf-8"
    )
    folders = ["--dump", str(tmp_path / "texts"), "--driver-output", str(tmp_path / "driver")]
    assert main(["kernels", "--gpu", "navi10", *folders, str(script)]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("navi10: Radeon RX 5700 XT, RDNA, as compiled by RADV (Mesa")
    assert "work.py:2" in lines[3]
    stems = [{each.stem for each in (tmp_path / name / "navi10").iterdir()} for name in ("texts", "driver")]
    assert stems[0] == stems[1] != set()

"""WEBGRAD_DEBUG: each level writes what it is named after, and nothing is written that was not asked for."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import webgrad as wg
from tests.limits import HANG
from tests.runtime.helpers import bench
from webgrad.config import LEVELS
from webgrad.errors import ConfigError
from webgrad.native.compiler import functions, is_available
from webgrad.native.text import Function
from webgrad.observing import observe
from webgrad.runtime.webgpu import Device
from webgrad.tools.debug import Debug, Dump, params_of, text_name
from webgrad.tuning.entries import Candidate, Entry
from webgrad.wgsl import program_from_source

PAGE = Path(__file__).parents[2] / "docs" / "debugging.md"


def work(device: Device | wg.CpuDevice, seed: int) -> None:
    """Two kernels of a shape that no other test has: their plan is made here."""
    x = wg.asarray(np.ones((19, 100 + seed), np.float32), device=device)
    np.testing.assert_allclose(wg.exp(wg.softmax(x, axis=-1) @ x.T).numpy(), np.e, rtol=1e-4)


def written(device: Device | wg.CpuDevice, seed: int, *levels: str) -> list[str]:
    stream = io.StringIO()
    with observe(Debug(frozenset(levels), stream)):
        work(device, seed)
    return stream.getvalue().splitlines()


@pytest.mark.gpu
def test_every_line_names_its_level_and_every_level_is_asked_for() -> None:
    device = bench().device
    for seed, level in enumerate(("schedule", "ir", "wgsl", "launches", "memory")):
        lines = written(device, seed, level)
        assert lines
        assert all(line.startswith(f"webgrad[{level}] ") for line in lines)
    assert written(device, 10) == []


@pytest.mark.gpu
def test_a_schedule_says_what_is_stored_why_and_where_it_was_made() -> None:
    text = "\n".join(written(bench().device, 20, "schedule"))
    assert "plan 1 on webgpu" in text
    assert "2 kernels" in text
    assert "stores" in text
    assert "read by 2" in text
    assert "it was asked for" in text
    assert f"{__file__}:" in text


def test_the_cpu_has_a_schedule_and_launches() -> None:
    lines = written(wg.open_device("cpu"), 30, "schedule", "launches")
    assert any(line.startswith("webgrad[schedule] plan 1 on cpu") for line in lines)
    assert any(line.startswith("webgrad[launches] cpu contract_matmul") and " µs" in line for line in lines)


@pytest.mark.gpu
def test_launches_have_their_cause_grid_and_parameters() -> None:
    head, first, second = written(bench().device, 40, "launches")
    assert "cause read: 2 launches" in head
    assert "rows_max" in first
    assert "grid " in first
    assert "params " in second
    assert "p0 " in second


@pytest.mark.gpu
def test_memory_is_told_after_each_flush() -> None:
    (line,) = written(bench().device, 50, "memory")
    assert "live " in line
    assert "pooled " in line
    assert "buffers made" in line


@pytest.mark.gpu
def test_texts_are_shown_once_and_dumped_to_files(tmp_path: Path) -> None:
    device = bench().device
    stream = io.StringIO()
    with observe(Debug(frozenset({"wgsl"}), stream, Dump(tmp_path / "new" / "texts"))):
        work(device, 60)
        work(device, 60)
    files = sorted((tmp_path / "new" / "texts").iterdir())
    assert len(files) == 2
    assert all(file.name.startswith(("rows_", "contract_")) for file in files)
    assert stream.getvalue().count("webgrad[wgsl] // ") == 2
    assert "@compute" in files[0].read_text(encoding="utf-8")


def test_a_folder_that_cannot_be_made_is_a_config_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="WEBGRAD_DUMP"):
        Dump(tmp_path / "file" / "folder")


def test_a_closed_stream_ends_nothing() -> None:
    stream = io.StringIO()
    stream.close()
    Debug(frozenset(LEVELS), stream).say("memory", "anything")


@pytest.mark.gpu
def test_a_device_says_why_and_what_it_has() -> None:
    stream = io.StringIO()
    with observe(Debug(frozenset({"device"}), stream)):
        private = bench()
        device = private.device
        kept = private.upload(np.ones(4, np.float32), keep=True)
        device.queue.context.native.destroy()
        with pytest.raises(wg.DeviceLostError):
            private.numbers(private.scale(kept, 2))
        np.testing.assert_array_equal(private.numbers(private.scale(kept, 2)), 2)
    text = stream.getvalue()
    assert f"webgrad[device] {device.name} was lost" in text
    assert f"webgrad[device] {device.name} was opened again" in text
    assert f"{device.name}: {device.info.name}, because " in text
    assert "max-buffer-size" in text
    assert "budget: " in text


def test_trouble_and_tuning_are_told() -> None:
    stream = io.StringIO()
    debug = Debug(frozenset({"device", "tune"}), stream)
    debug.troubled("webgpu:0", "was lost")
    slow, quick, wrong = ((("rows", number),) for number in (1, 2, 4))
    key = {"kernel": "contract_matmul", "shapes": [[4, 4]]}
    candidates = (Candidate(slow, 2e-3), Candidate(quick, 1e-3), Candidate(wrong, None, "no time"))
    debug.tuned(wg.open_device("cpu"), Entry(key, candidates, quick))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "webgrad[device] webgpu:0 was lost"
    assert lines[1] == "webgrad[tune] contract_matmul [4, 4] on cpu: 2.00 × the default"
    assert lines[3] == "webgrad[tune] →     1000.0 µs  rows 2"
    assert "no time" in lines[4]


def test_native_code_is_written_and_dumped(tmp_path: Path) -> None:
    if not is_available():
        pytest.skip("no native code here")
    stream = io.StringIO()
    f = Function("run", [("ptr", "fields")], "i64")
    with observe(Debug(frozenset({"llvm"}), stream, Dump(tmp_path))):
        for _ in range(2):
            functions(f.module(last="ret i64 90210"), ["run"], "the answer")
    lines = stream.getvalue().splitlines()
    assert lines[0] == "webgrad[llvm] ; the answer"
    assert sum("ret i64 90210" in line for line in lines) == 1
    texts = {path.suffix: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert texts.keys() == {".ll", ".s"}
    assert texts[".ll"].startswith("; the answer\n")
    assert "90210" in texts[".s"]


def test_parameters_are_read_by_their_types() -> None:
    source = """
    struct Params { count: u32, factor: f32, wide: vec2<u32> }
    @group(0) @binding(0) var<storage, read_write> y: array<f32>;
    var<uniform> p: Params;
    @compute @workgroup_size(1) fn main() { y[p.count] = p.factor + f32(p.wide.x); }
    """
    program = program_from_source(source)
    params = np.array([7], np.uint32).tobytes() + np.array([0.5], np.float32).tobytes() + bytes(8)
    assert list(params_of(program, params)) == ["count 7", "factor 0.5", "wide 0x0000000000000000"]
    assert text_name(program).rpartition("-")[2].isalnum()


def test_the_variable_turns_it_on_when_a_device_is_opened(tmp_path: Path) -> None:
    code = "import webgrad as wg; print((wg.ones((3, 5)) + 1).sum().item())"
    environment = {**os.environ, "WEBGRAD_DEVICE": "cpu", "WEBGRAD_DEBUG": "device,schedule"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG,
    )
    assert done.stdout.strip() == "30.0"
    assert done.stderr.startswith("webgrad[device] cpu: ")
    assert "webgrad[schedule] plan 1 on cpu" in done.stderr


def test_every_level_is_documented_with_its_output() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for level in LEVELS:
        assert f"## {level}" in page
        assert f"webgrad[{level}] " in page

"""`make bench`: the workloads, the processes it talks to, its table and its plot; nothing is timed here."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NAMES = ("workloads", "worker", "runners", "results", "plot", "start", "run")


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The scripts as modules, which import each other by their plain names."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if name in NAMES:
            del sys.modules[name]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(BENCHMARKS / "run.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=BENCHMARKS.parent,
        env={**os.environ, "PYTHONPATH": str(BENCHMARKS.parent), "BENCH_PEERS": "/nowhere", **environment},
    )


def test_a_run_from_end_to_end(tmp_path: Path) -> None:
    done = run("--quick", "--only", "attention,matvec_4bit", "--devices", "cpu", "--results", str(tmp_path))
    assert "torch is not installed" in done.stdout, done.stderr
    assert done.returncode == 0, done.stdout  # however slow this machine is
    kept = json.loads((tmp_path / "latest.json").read_text(encoding="utf-8"))
    row = kept["figures"]["attention"]
    assert set(row) == {"webgrad cpu", "numpy"}
    for each in row.values():
        assert 0 < each["min"] <= each["median"]
        assert each["runs"] >= 2
        assert each["error"] < 2e-4
    assert "missing" in kept["figures"]["matvec_4bit"]["numpy"]
    assert kept["machine"]["webgrad cpu"]["library"].startswith("webgrad")
    table = (tmp_path / "latest.md").read_text(encoding="utf-8")
    assert "| attention 8 × 128 × 64, causal |" in table
    assert "NumPy has no 4-bit numbers" in table
    ElementTree.parse(tmp_path / "latest.svg")


@pytest.mark.gpu
def test_unfused_ops_and_the_same_encoded_raw(tmp_path: Path) -> None:
    arguments = ["--only", "tiny,tiny_raw", "--devices", "webgpu:0", "--peers", "none"]
    done = run("--quick", *arguments, "--results", str(tmp_path), LP_NUM_THREADS="0")
    figures = json.loads((tmp_path / "latest.json").read_text(encoding="utf-8"))["figures"]
    for name in ("tiny", "tiny_raw"):
        assert "median" in figures[name]["webgrad webgpu:0"], done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "fast"], "there is no workload 'fast'; there are matmul_256"),
        (["--peers", "cuda"], "there is no runner 'cuda'; there are webgrad webgpu:0"),
    ],
)
def test_what_is_not_known(arguments: list[str], words: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert words in done.stderr


FAKE = """
from worker import Missing, serve
import numpy as np
def build(name, inputs):
    if name == "sort":
        raise Missing("it cannot")
    if name == "sum":
        raise ValueError("no")
    print("noise")
    factor = 1.5 if name == "softmax" else 1
    answer = inputs["x"].cumsum(dtype=np.float64) if name == "cumsum" else factor * inputs["x"]
    return lambda: answer, lambda result: result
serve(build, {"library": "fake 1"})
"""


def test_a_worker_answers_and_says_what_went_wrong(
    scripts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runners = scripts("runners")
    (tmp_path / "peers").mkdir()
    (tmp_path / "peers" / "fake.py").write_text(FAKE, encoding="utf-8")
    for name in ("worker", "workloads"):
        (tmp_path / f"{name}.py").write_text((BENCHMARKS / f"{name}.py").read_text(encoding="utf-8"), "utf-8")
    monkeypatch.setattr(runners, "HERE", tmp_path)
    folder = tmp_path / "inputs"
    folder.mkdir()
    np.save(folder / "x", np.arange(8, dtype=np.float32))
    np.save(folder / "answer", np.arange(8, dtype=np.float32))
    worker = runners.Worker(runners.Runner("fake", "fake"))
    try:
        assert worker.about == {"library": "fake 1"}
        answer = worker.ask(prepare="gelu", folder=str(folder))
        assert answer["error"] == 0
        assert len(worker.ask(run="gelu", seconds=0.001)["times"]) >= 1
        assert worker.ask(prepare="softmax", folder=str(folder))["error"] == pytest.approx(0.5)
        assert worker.ask(prepare="sort", folder=str(folder)) == {"missing": "it cannot"}
        assert worker.ask(prepare="sum", folder=str(folder)) == {"failed": "ValueError: no"}
        assert "KeyError" in worker.ask(run="sum", seconds=0)["failed"]
        assert worker.ask(drop="gelu") == {}
        assert "noise" in worker.log()
    finally:
        worker.close()
    ended = runners.Worker(runners.Runner("fake", "absent"))
    assert "No such file" in ended.problem
    assert not ended.alive
    assert "the process ended" in ended.ask(run="gelu", seconds=0)["failed"]
    ended.close()


def test_each_peer_is_installed_by_the_python_of_its_environment(
    scripts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runners = scripts("runners")
    installs: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        if command[1:3] == ["-m", "venv"]:
            venv.create(command[3], symlinks=os.name != "nt")
        else:
            installs.append([command[0], *command[command.index("install") + 1 :]])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("scripts.environments.subprocess.run", run)
    monkeypatch.setenv("BENCH_PEERS", str(tmp_path))
    peers = [each for each in runners.RUNNERS.values() if each.environment]
    assert [each.python for each in peers] == [None] * len(peers)
    assert runners.make_peers() == 0
    assert runners.make_peers() == 0  # nothing is left to do
    asked = {command[0]: set(command) for command in installs}  # the last of each, with all its packages
    for each in peers:
        assert each.python.is_file()
        assert asked[str(each.python)] >= set(runners.PEERS[each.environment])
    assert len(installs) == len(peers) + 1  # torch is asked for by itself before


def test_lines_and_their_goals(scripts: Any) -> None:
    results, plot = scripts("results"), scripts("plot")

    def figure(seconds: float) -> dict[str, float]:
        made: dict[str, float] = results.figure([seconds, seconds, 3 * seconds], 0.0, 0.0)
        return made

    ours, cpu = "webgrad webgpu:0", "webgrad cpu"
    figures = {
        "softmax": {
            ours: figure(0.02),
            cpu: figure(0.03),
            "tinygrad": figure(0.07),
            "onnxruntime": figure(0.06),
            "torch": figure(0.02),
            "numpy": figure(0.1),
        },
        "sort": {ours: figure(0.05), "tinygrad": {"missing": "no"}},
        "tiny": {ours: figure(0.01)},
        "tiny_raw": {ours: figure(0.0095)},
        "conv": {ours: {"wrong": "off"}, "tinygrad": figure(0.05)},
    }
    found = {each.title: each for each in results.lines(figures)}
    softmax = found["softmax 4096²"]
    assert (softmax.other, softmax.reached) == ("onnxruntime", True)
    assert softmax.ratio == pytest.approx(3)
    assert found["cpu: softmax 4096²"].reached is False
    assert found["sort of 1 Mi"].reached is False
    assert found["1,000 tiny ops, unfused"].reached is True
    assert found["conv 3×3, 64→64, 56²"].reached is None
    text = results.markdown(list(found.values()), figures, {"date": "today", "numpy": {"library": "NumPy 2"}})
    assert "| softmax 4096² | 20.0 | onnxruntime | 60.0 | 3.00 × | ≥ 2 × | reached |" in text
    assert "- webgrad webgpu:0, conv 3×3, 64→64, 56²: wrong, off" in text
    drawing = ElementTree.fromstring(plot.svg(list(found.values())))
    texts = [each.text or "" for each in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert "softmax 4096²" in texts
    assert "conv 3×3, 64→64, 56²" not in texts


def test_workloads_are_the_same_every_time_and_answers_are_finite(scripts: Any) -> None:
    workloads = scripts("workloads")
    for name in ("matmul_256", "layer_norm", "conv", "block", "attention", "decode", "tiny"):
        work = workloads.WORKLOADS[name]
        inputs, again = work.inputs(), work.inputs()
        for key, value in inputs.items():
            np.testing.assert_array_equal(value, again[key])
        assert np.isfinite(work.answer(inputs)).all(), name


def test_blocks_of_four_bits(scripts: Any) -> None:
    workloads = scripts("workloads")
    codes = np.arange(64, dtype=np.uint8).reshape(2, 32) % 16
    scales = np.array([[0.5], [2.0]], np.float16)
    data = np.frombuffer(workloads.packed_q4_0(codes, scales), np.uint8).reshape(2, 18)
    np.testing.assert_array_equal(data[:, :2].copy().view(np.float16), scales)
    np.testing.assert_array_equal(data[:, 2:] & 15, codes[:, :16])
    np.testing.assert_array_equal(data[:, 2:] >> 4, codes[:, 16:])


def test_a_part_does_not_replace_the_results_of_a_whole_run(scripts: Any) -> None:
    bench = scripts("run")
    whole = bench.options([]).results
    assert (
        bench.options(["--quick"]).results == bench.options(["--only", "softmax"]).results == whole / "parts"
    )
    assert bench.options(["--quick", "--results", "here"]).results == Path("here")

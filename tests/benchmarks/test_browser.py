"""`make bench-browser`: its goals, its table and its ONNX files; and webgrad's side of it in Chromium."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.limits import HANG

BROWSER = Path(__file__).parents[2] / "benchmarks" / "browser"
NAMES = ("bundles", "models", "run", "serving", "work")


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The scripts as modules, which import each other by their plain names."""
    monkeypatch.syspath_prepend(str(BROWSER))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if name in NAMES:
            del sys.modules[name]


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and the place behind it, as protobuf writes them."""
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a protobuf message: numbers and bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            yield key >> 3, data[at : at + value]
            at += value
        else:
            yield key >> 3, value


def listed(data: bytes, field: int) -> list[Any]:
    return [value for number, value in fields(data) if number == field]


def test_every_way_to_write_the_block_is_a_whole_graph(scripts: Any) -> None:
    arrays = scripts("work").WORK["block"].inputs()
    ways = scripts("models").models("block", arrays)
    assert list(ways) == ["plain", "masked", "grouped"]
    for model in ways.values():
        (graph,) = listed(model, 7)
        known = {"", *(text.decode() for each in listed(graph, 11) for text in listed(each, 1))}
        assert known == {"", "x"}
        known |= {text.decode() for each in listed(graph, 5) for text in listed(each, 8)}
        for node in listed(graph, 1):  # in order: each reads what is there by then
            assert {text.decode() for text in listed(node, 1)} <= known
            known |= {text.decode() for text in listed(node, 2)}
        assert "y" in known


def test_weights_are_kept_as_they_are(scripts: Any) -> None:
    arrays = scripts("work").WORK["block"].inputs()
    (graph,) = listed(scripts("models").models("block", arrays)["plain"], 7)
    tensors = {listed(each, 8)[0].decode(): each for each in listed(graph, 5)}
    for name in scripts("work").WEIGHTS:
        assert tuple(listed(tensors[name], 1)) == arrays[name].shape
        np.testing.assert_array_equal(
            np.frombuffer(listed(tensors[name], 9)[0], np.float32), arrays[name].ravel()
        )


def figures(ours: float, best: float, host: float) -> dict[str, Any]:
    peers = {"tfjs": {"median": 9.0, "min": 9.0}, "jax-js": {"median": best, "min": best}}
    row = {"webgrad": {"median": ours, "min": ours}, "onnxruntime-web": {"wrong": "off by 1"}, **peers}
    return {"matmul": row, "host_cost": {"webgrad": {"median": host, "min": host}}}


def test_goals_are_the_best_peer_and_a_microsecond(scripts: Any) -> None:
    run = scripts("run")
    assert run.missed(figures(1.0, 2.0, 0.5)) == []
    assert run.missed(figures(2.5, 2.0, 1.5)) == [
        "matmul 1024: as quick as the best peer",
        "host cost of a dispatch ≤ 1 µs",
    ]
    assert run.missed({"matmul": {"webgrad": {"failed": "…"}}}) == ["matmul 1024: as quick as the best peer"]


def test_the_table_says_who_is_wrong(scripts: Any) -> None:
    text = scripts("run").markdown({"browser": "Chromium"}, figures(1.0, 2.0, 0.5))
    assert "| matmul 1024 | 1.0 (1.0) | wrong | 9.0 (9.0) | 2.0 (2.0) | 2.00 × |" in text
    assert "- onnxruntime-web, matmul 1024: wrong, off by 1" in text
    assert "0.50 µs" in text


@pytest.mark.web
def test_webgrad_is_right_in_chromium_and_a_dispatch_costs_less_than_a_microsecond(tmp_path: Path) -> None:
    words = ("--only", "block,host_cost", "--candidates", "webgrad", "--rounds", "2", "--seconds", "0.1")
    command = [sys.executable, str(BROWSER / "run.py"), *words, "--results", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG)
    assert done.returncode == 0, done.stdout + done.stderr
    kept = json.loads((tmp_path / "browser.json").read_text(encoding="utf-8"))["figures"]
    assert kept["block"]["webgrad"]["error"] < 1e-5
    assert kept["host_cost"]["webgrad"]["min"] <= 1

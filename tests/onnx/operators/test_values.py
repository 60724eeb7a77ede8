"""What all operators ask of values: types that a device lacks, axes, moves of what no tensor holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import model, node
from webgrad.onnx.operators import values


@pytest.fixture
def _no_int64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "has_type", lambda device, name: name not in ("int64", "uint64"))


def load(tmp_path: Path, nodes: list[bytes], inputs: str, outputs: str, **more: Any) -> wg.onnx.Model:
    path = tmp_path / "m.onnx"
    types = dict.fromkeys(inputs.split()), dict.fromkeys(outputs.split())
    path.write_bytes(model(nodes, *types, **more))
    return wg.onnx.load(path, device="cpu")


@pytest.mark.usefixtures("_no_int64")
def test_a_device_without_int64_counts_with_int32(tmp_path: Path) -> None:
    nodes = [node("Gather", "table ids", "x"), node("ArgMax", "x", "y", axis=1), node("Add", "y one", "z")]
    weights = {"table": np.eye(4, dtype=np.float32), "one": np.array([1], np.int64)}
    found = load(tmp_path, nodes, "ids", "y z", weights=weights)(np.array([2, 0, -1]))
    assert found["y"].dtype == found["z"].dtype == wg.int32
    assert found["z"].numpy().tolist() == [[3], [1], [4]]


@pytest.mark.usefixtures("_no_int64")
def test_numbers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(wg.DTypeError, match="has no int64, and numbers from 3 to 4294967296 do not fit"):
        load(tmp_path, [node("Neg", "x", "y")], "x", "y")(np.array([1 << 32, 3]))


def test_axes_that_are_not_there() -> None:
    assert values.axes_of([-1, 0], 3) == (2, 0)
    with pytest.raises(wg.AxisError, match="axis 3 is not among the 3"):
        values.axes_of([3], 3)


def test_texts_move_as_numbers_do(tmp_path: Path) -> None:
    texts = np.array([["a", "b"], ["c", "d"]], object)
    nodes = [
        node("Transpose", "x", "t"),
        node("Concat", "t x", "c", axis=0),
        node("Gather", "c rows", "g", axis=0),
        node("Reshape", "g flat", "y"),
    ]
    weights = {"rows": np.array([3, 0]), "flat": np.array([-1])}
    inputs = {"x": ("string", [2, 2])}
    path = tmp_path / "m.onnx"
    path.write_bytes(model(nodes, inputs, {"y": ("string", [4])}, weights=weights))
    assert list(wg.onnx.load(path, device="cpu")(texts)["y"]) == ["c", "d", "a", "c"]

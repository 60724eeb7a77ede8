"""Inputs that an operator takes as arrays where their numbers are known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import model, node
from webgrad.onnx.operators import table

seen: list[type] = []


@pytest.fixture(autouse=True)
def _of_its_own() -> Iterator[None]:
    @wg.onnx.operator("Scaled", domain="tests.known", known="factor")
    def scaled(x: Any, factor: Any) -> Any:
        seen.append(type(factor))
        return x * wg.asarray(factor, device=x.device)

    yield
    del table._ROWS["tests.known", "Scaled"]
    seen.clear()


def test_a_known_input_is_an_array_and_a_computed_one_a_tensor(tmp_path: Path) -> None:
    nodes = [
        node("Constant", "", "two", value=np.asarray(2, np.float32)),
        node("Scaled", "x two", "y", domain="tests.known"),
        node("Scaled", "y x", "z", domain="tests.known"),
    ]
    opsets = {"": 18, "tests.known": 1}
    path = tmp_path / "m.onnx"
    path.write_bytes(model(nodes, {"x": [2]}, {"z": [2]}, opset=opsets))
    found = wg.onnx.load(path, device="cpu")(np.array([3, 5], np.float32))
    np.testing.assert_array_equal(found["z"].numpy(), [18, 50])
    assert seen == [np.ndarray, wg.Tensor]


def test_known_names_inputs_that_there_are() -> None:
    with pytest.raises(ValueError, match="there are no inputs"):
        wg.onnx.operator("Wrong", domain="tests.known", known="nothing")(lambda x: x)

"""ai.onnx.preview.training: gradients and steps of optimisers, against what is worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import webgrad as wg
from tests.onnx.models import model, node

Array = npt.NDArray[Any]
TRAINING = "ai.onnx.preview.training"
OPSETS = {"": 18, TRAINING: 1}


def run(tmp_path: Path, nodes: list[bytes], outputs: str, **inputs: Array) -> list[Array]:
    path = tmp_path / "m.onnx"
    types = {name: (each.dtype.name, list(each.shape)) for name, each in inputs.items()}
    path.write_bytes(model(nodes, types, dict.fromkeys(outputs.split()), opset=OPSETS))
    found = wg.onnx.load(path, device="cpu")(**inputs)
    return [each.numpy() for each in found.values()]


def test_gradient_of_a_value_of_the_graph(tmp_path: Path) -> None:
    nodes = [
        node("Mul", "a b", "c"),
        node("Mul", "c a", "y"),
        node("Gradient", "a b", "da db", domain=TRAINING, xs=["a", "b"], y="y"),
    ]
    a, b = np.array([2.0, 3.0], np.float32), np.array([5.0, 7.0], np.float32)
    da, db = run(tmp_path, nodes, "da db", a=a, b=b)
    np.testing.assert_allclose(da, 2 * a * b)
    np.testing.assert_allclose(db, a * a)


def test_gradient_at_other_values_than_those_of_the_graph(tmp_path: Path) -> None:
    nodes = [
        node("Mul", "a a", "y"),
        node("Gradient", "b", "dy", domain=TRAINING, xs=["a"], y="y"),
    ]
    a, b = np.array([2.0], np.float32), np.array([10.0], np.float32)
    np.testing.assert_allclose(run(tmp_path, nodes, "dy", a=a, b=b), [[20.0]])


def test_second_order_gradient(tmp_path: Path) -> None:
    nodes = [
        node("Mul", "a a", "s"),
        node("Mul", "s a", "y"),
        node("Gradient", "a", "first", domain=TRAINING, xs=["a"], y="y"),
        node("Gradient", "a", "second", domain=TRAINING, xs=["a"], y="first"),
    ]
    found = run(tmp_path, nodes, "second", a=np.array([2.0, -3.0], np.float32))
    np.testing.assert_allclose(found, [[12.0, -18.0]])


def test_gradient_of_what_no_node_computes(tmp_path: Path) -> None:
    nodes = [node("Gradient", "a", "d", domain=TRAINING, xs=["a"], y="z")]
    with pytest.raises(wg.ModelFileError, match="no node of its graph computes z"):
        run(tmp_path, nodes, "d", a=np.ones(2, np.float32))


@pytest.mark.parametrize("step", [0, 3])
def test_momentum_counts_the_first_gradient_in_full(tmp_path: Path, step: int) -> None:
    settings: dict[str, Any] = {"alpha": 0.5, "beta": 0.25, "norm_coefficient": 0.0, "mode": "standard"}
    nodes = [node("Momentum", "r t x g v", "x2 v2", domain=TRAINING, **settings)]
    x, g, v = (np.array(each, np.float32) for each in ([1.0, 2.0], [4.0, 8.0], [2.0, 6.0]))
    rate, at = np.array(0.1, np.float32), np.array(step, np.int64)
    new, speed = run(tmp_path, nodes, "x2 v2", r=rate, t=at, x=x, g=g, v=v)
    expected = 0.5 * v + (0.25 if step else 1) * g
    np.testing.assert_allclose(speed, expected)
    np.testing.assert_allclose(new, x - 0.1 * expected, rtol=1e-6)


def test_adam_of_several_tensors_is_adam_of_each(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    groups = {f"{kind}{at}": random.random(at + 1, np.float32) for kind in "xgvh" for at in range(2)}
    rate, step = np.array(0.1, np.float32), np.array(2, np.int64)
    both = [node("Adam", "r t x0 x1 g0 g1 v0 v1 h0 h1", "a0 a1 b0 b1 c0 c1", domain=TRAINING)]
    found = run(tmp_path, both, "a0 a1 b0 b1 c0 c1", r=rate, t=step, **groups)
    for at in range(2):
        each = [node("Adam", "r t x g v h", "a b c", domain=TRAINING)]
        own = {kind: groups[f"{kind}{at}"] for kind in "xgvh"}
        for alone, together in zip(
            run(tmp_path, each, "a b c", r=rate, t=step, **own), found[at::2], strict=True
        ):
            np.testing.assert_array_equal(alone, together)

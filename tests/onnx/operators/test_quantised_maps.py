"""com.microsoft's operators over codes: what comes of unpacking, computing and rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import loaded, model, node

GENERATOR = np.random.default_rng(6)
OPSETS = {"": 18, "com.microsoft": 1}
A_SCALE, B_SCALE, Y_SCALE = np.float32(0.03), np.float32(0.07), np.float32(0.0517)
A_ZERO, B_ZERO, Y_ZERO = np.uint8(101), np.uint8(7), np.uint8(90)
WEIGHTS = {"as": A_SCALE, "az": A_ZERO, "bs": B_SCALE, "bz": B_ZERO, "ys": Y_SCALE, "yz": Y_ZERO}


def codes(*shape: int) -> Any:
    return GENERATOR.integers(0, 256, shape, np.uint8)


def ran(tmp_path: Path, kind: str, names: str, inputs: dict[str, Any], **attributes: Any) -> Any:
    types = {name: (each.dtype.name, list(each.shape)) for name, each in inputs.items()}
    nodes = [node(kind, names, "y", domain="com.microsoft", **attributes)]
    m = loaded(tmp_path, model(nodes, types, {"y": None}, WEIGHTS, opset=OPSETS))
    m(**inputs)
    return m(**inputs)["y"].numpy()


def rounded(values: Any) -> Any:
    return np.clip(np.rint(values / np.float64(Y_SCALE)) + Y_ZERO, 0, 255).astype(np.uint8)


def real(a: Any, scale: Any, zero: Any) -> Any:
    return (a.astype(np.float64) - zero) * scale


@pytest.mark.parametrize(("kind", "function"), [("QLinearAdd", np.add), ("QLinearMul", np.multiply)])
def test_two_inputs(tmp_path: Path, kind: str, function: Any) -> None:
    a, b = codes(2, 3, 4), codes(3, 1)
    found = ran(tmp_path, kind, "a as az b bs bz ys yz", {"a": a, "b": b})
    assert np.array_equal(found, rounded(function(real(a, A_SCALE, A_ZERO), real(b, B_SCALE, B_ZERO))))


def test_one_input(tmp_path: Path) -> None:
    a = codes(3, 7)
    values = real(a, A_SCALE, A_ZERO)
    found = ran(tmp_path, "QLinearSigmoid", "a as az ys yz", {"a": a})
    assert np.array_equal(found, rounded(1 / (1 + np.exp(-values))))
    found = ran(tmp_path, "QLinearLeakyRelu", "a as az ys yz", {"a": a}, alpha=0.25)
    assert np.array_equal(found, rounded(np.where(values < 0, values * 0.25, values)))


@pytest.mark.parametrize(("opset", "axis"), [(13, 1), (12, 1)])
def test_softmax_of_an_axis_or_of_all_from_it_on(tmp_path: Path, opset: int, axis: int) -> None:
    a = codes(2, 3, 4)
    powers = np.exp(real(a, A_SCALE, A_ZERO))
    sums = powers.sum(axis if opset == 13 else (1, 2), keepdims=True)
    found = ran(tmp_path, "QLinearSoftmax", "a as az ys yz", {"a": a}, axis=axis, opset=opset)
    assert np.array_equal(found, rounded(powers / sums))


def test_parts_of_several_scales(tmp_path: Path) -> None:
    a, b, c = codes(2, 3), codes(2, 4), GENERATOR.integers(0, 2, (2, 3)).astype(bool)
    joined = ran(tmp_path, "QLinearConcat", "ys yz a as az b bs bz", {"a": a, "b": b}, axis=1)
    parts = [real(a, A_SCALE, A_ZERO), real(b, B_SCALE, B_ZERO)]
    assert np.array_equal(joined, rounded(np.concatenate(parts, 1)))
    chosen = ran(tmp_path, "QLinearWhere", "c a as az b bs bz ys yz", {"c": c, "a": a, "b": b[:, :3].copy()})
    assert np.array_equal(chosen, rounded(np.where(c, parts[0], parts[1][:, :3])))


def test_means(tmp_path: Path) -> None:
    a = codes(2, 3, 4, 5)
    values = real(a, A_SCALE, A_ZERO)
    for last, axes in ((0, (2, 3)), (1, (1, 2))):
        found = ran(tmp_path, "QLinearGlobalAveragePool", "a as az ys yz", {"a": a}, channels_last=last)
        assert np.array_equal(found, rounded(values.mean(axes, keepdims=True)))
    found = ran(tmp_path, "QLinearReduceMean", "a as az ys yz", {"a": a}, axes=[1, 3], keepdims=0)
    assert np.array_equal(found, rounded(values.mean((1, 3))))


def test_products_with_float_results(tmp_path: Path) -> None:
    a, b = codes(3, 600), GENERATOR.integers(-128, 128, (600, 4)).astype(np.int8)
    whole = (a.astype(np.int64) - A_ZERO) @ b.astype(np.int64)
    found = ran(tmp_path, "MatMulIntegerToFloat", "a b as bs az", {"a": a, "b": b})
    np.testing.assert_allclose(found, whole * (A_SCALE * B_SCALE), rtol=1e-6)
    found = ran(tmp_path, "QGemm", "a as az b bs -", {"a": a, "b": b}, alpha=0.5)
    np.testing.assert_allclose(found, whole * (A_SCALE * B_SCALE) * 0.5, rtol=1e-6)


def test_floats_become_codes_for_a_product(tmp_path: Path) -> None:
    x = GENERATOR.standard_normal((3, 50), np.float32)
    b = GENERATOR.integers(-128, 128, (50, 4)).astype(np.int8)
    scale = (x.max() - x.min()) / np.float32(255)
    zero = np.rint(-x.min() / scale)
    whole = (np.clip(np.rint(x / scale) + zero, 0, 255) - zero) @ b.astype(np.float64)
    found = ran(tmp_path, "DynamicQuantizeMatMul", "x b bs", {"x": x, "b": b})
    np.testing.assert_allclose(found, whole * scale * B_SCALE, rtol=1e-5)


def test_attention_of_codes_is_that_of_their_numbers(tmp_path: Path) -> None:
    x, weight = codes(2, 5, 16), codes(16, 48)
    bias = GENERATOR.standard_normal(48, np.float32)
    inputs = {"a": x, "b": weight, "c": bias}
    found = ran(tmp_path, "QAttention", "a b c as bs - az bz", inputs, num_heads=2)
    projected = real(x, A_SCALE, A_ZERO) @ real(weight, B_SCALE, B_ZERO) + bias
    heads = projected.reshape(2, 5, 3, 2, 8).transpose(2, 0, 3, 1, 4).astype(np.float32)
    q, k, v = (wg.asarray(each, device="cpu") for each in heads)
    expected = wg.scaled_dot_product_attention(q, k, v).permute(0, 2, 1, 3).reshape((2, 5, 16))
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-4)

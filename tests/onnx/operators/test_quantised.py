"""Codes: their rounding, bounds and layouts; products of them exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.onnx.models import floats, loaded, model, node
from webgrad.arrays import ml_dtypes

GENERATOR = np.random.default_rng(23)


def codes(dtype: Any, *shape: int) -> Any:
    info = np.iinfo(dtype)
    return GENERATOR.integers(info.min, info.max, shape, dtype, endpoint=True)


def test_codes_are_rounded_to_even_and_held_within_their_type(tmp_path: Path) -> None:
    weights = {"s": np.float32(2), "z": np.uint8(10)}
    m = loaded(tmp_path, model([node("QuantizeLinear", "x s z", "y")], {"x": [6]}, {"y": None}, weights))
    found = m(floats(1, 3, 5, -1, 1000, -1000))["y"].numpy()
    assert found.dtype == np.uint8
    assert found.tolist() == [10, 12, 12, 10, 255, 0]


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2"])
def test_codes_of_few_bits(tmp_path: Path, name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    weights = {"s": np.float32(1), "z": np.zeros((), dtype)}
    nodes = [node("QuantizeLinear", "x s z", "y"), node("DequantizeLinear", "y s z", "back")]
    m = loaded(tmp_path, model(nodes, {"x": [4]}, {"y": None, "back": None}, weights, opset=25))
    out = m(floats(-100, -1, 1, 100))
    bits, signed = int(name[-1]), not name.startswith("u")
    least, largest = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    expected = np.clip([-100, -1, 1, 100], least, largest).tolist()
    assert out["y"].dtype == dtype
    assert out["y"].astype(int).tolist() == expected
    assert out["back"].tolist() == expected


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scales_along_an_axis(tmp_path: Path, axis: int) -> None:
    x = codes(np.int8, 2, 3)
    scale = floats(0.5, 2, 4)[: x.shape[axis]]
    zero = np.asarray([1, -2, 3], np.int8)[: x.shape[axis]]
    nodes = [node("DequantizeLinear", "x s z", "y", axis=axis)]
    m = loaded(tmp_path, model(nodes, {"x": ("int8", [2, 3])}, {"y": None}, {"s": scale, "z": zero}))
    place = (-1, 1) if axis == 0 else (1, -1)
    expected = (x.astype(np.float32) - zero.reshape(place)) * scale.reshape(place)
    assert m(x)["y"].tolist() == expected.tolist()


@pytest.mark.parametrize("axis", [0, 1])
def test_scales_of_blocks_of_which_the_last_is_short(tmp_path: Path, axis: int) -> None:
    x = codes(np.int8, 5, 4) if axis == 0 else codes(np.int8, 4, 5)
    blocks = (3, 4) if axis == 0 else (4, 3)
    scale = np.exp2(GENERATOR.integers(-3, 3, blocks)).astype(np.float32)
    nodes = [node("DequantizeLinear", "x s", "y", axis=axis, block_size=2)]
    m = loaded(tmp_path, model(nodes, {"x": ("int8", list(x.shape))}, {"y": None}, {"s": scale}, opset=21))
    spread = np.repeat(scale, 2, axis)
    spread = spread[:5] if axis == 0 else spread[:, :5]
    assert m(x)["y"].tolist() == (x * spread).tolist()


@pytest.mark.parametrize("types", [(np.uint8, np.int8), (np.uint8, np.uint8), (np.int8, np.int8)])
@pytest.mark.parametrize("size", [7, 700])
def test_long_products_of_codes_are_exact(tmp_path: Path, types: Any, size: int) -> None:
    """Extreme codes: their sums pass what float32 holds."""
    a = np.full((2, 3, size), np.iinfo(types[0]).max, types[0])
    b = np.full((size, 4), np.iinfo(types[1]).max, types[1])
    a[:, 1], b[:, 2] = codes(types[0], 2, size), codes(types[1], size)
    a_zero, b_zero = types[0](3), codes(types[1], 4)
    nodes = [node("MatMulInteger", "a b az bz", "y"), node("MatMulInteger", "a b", "plain")]
    inputs = {"a": (types[0], [2, 3, size]), "b": (types[1], [size, 4])}
    m = loaded(tmp_path, model(nodes, inputs, {"y": None, "plain": None}, {"az": a_zero, "bz": b_zero}))
    wide_a, wide_b = a.astype(np.int64), b.astype(np.int64)
    out = m(a, b)
    assert out["y"].numpy().dtype == np.int32
    assert np.array_equal(out["y"].numpy(), (wide_a - int(a_zero)) @ (wide_b - b_zero))
    assert np.array_equal(out["plain"].numpy(), wide_a @ wide_b)


@pytest.mark.parametrize("group", [1, 2])
def test_convolutions_of_codes_are_exact(tmp_path: Path, group: int) -> None:
    """Over so many channels that they are taken in parts, padded with the zero point."""
    x = np.full((1, 60 * group, 4, 5), 255, np.uint8)
    weight = np.full((2, 60, 3, 3), -128, np.int8)
    x[0, ::7], weight[1, ::5] = 3, 100
    nodes = [node("ConvInteger", "x w z", "y", pads=[1, 1, 1, 1], group=group)]
    weights = {"w": weight, "z": np.uint8(2)}
    m = loaded(tmp_path, model(nodes, {"x": ("uint8", list(x.shape))}, {"y": None}, weights))
    wide = np.pad(x.astype(np.int64) - 2, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))
    windows = windows.reshape(group, 60, 4, 5, 3, 3)
    parts = weight.astype(np.int64).reshape(group, 2 // group, 60, 3, 3)
    expected = np.einsum("gchwij,gocij->gohw", windows, parts).reshape(1, 2, 4, 5)
    assert np.array_equal(m(x)["y"].numpy(), expected)


def test_a_range_of_equal_numbers_has_a_scale(tmp_path: Path) -> None:
    outputs = {"y": None, "s": None, "z": None}
    m = loaded(tmp_path, model([node("DynamicQuantizeLinear", "x", "y s z")], {"x": [3]}, outputs))
    out = m(floats(0, 0, 0))
    assert out["y"].tolist() == [0, 0, 0]
    assert out["s"].item() == 1
    out = m(floats(-1, 0, 1.55))
    assert out["s"].item() == pytest.approx(0.01)
    assert (out["z"].item(), out["y"].tolist()) == (100, [0, 100, 255])
    out = m(floats(-1, float("nan"), 1.55))  # counts as 0
    assert (out["z"].item(), out["y"].tolist()) == (100, [0, 100, 255])

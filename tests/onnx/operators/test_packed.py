"""Weights of few bits: unpacked as their layout says, and as GGUF's blocks where these say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import loaded, model, node

GENERATOR = np.random.default_rng(4)
OPSETS = {"": 18, "com.microsoft": 1}
ROWS, SIZE = 6, 32


def bytes_of(codes: Any, bits: int) -> Any:
    """Codes along the last axis in bytes, the first in the lowest bits."""
    each = 8 // bits
    groups = codes.reshape(*codes.shape[:-1], -1, each).astype(np.uint8)
    return np.bitwise_or.reduce(groups << (np.arange(each) * bits).astype(np.uint8), axis=-1)


def products(tmp_path: Path, weights: dict[str, Any], **attributes: Any) -> wg.onnx.Model:
    names = " ".join(each if each in weights else "-" for each in ("b", "s", "z", "g", "c"))
    nodes = [node("MatMulNBits", f"x {names}", "y", domain="com.microsoft", N=ROWS, **attributes)]
    return loaded(tmp_path, model(nodes, {"x": [2, attributes["K"]]}, {"y": None}, weights, opset=OPSETS))


def packed_inputs(model: wg.onnx.Model) -> list[Any]:
    return [each for each in model._program._values.values() if isinstance(each, wg.QuantisedTensor)]


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("columns", [64, 80])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_products_of_blocks(tmp_path: Path, bits: int, columns: int, has_zeros: bool) -> None:
    """Whole ones, and a last block that is longer than what is left."""
    blocks = -(-columns // SIZE)
    codes = GENERATOR.integers(0, 1 << bits, (ROWS, blocks, SIZE))
    scales = GENERATOR.random((ROWS, blocks), np.float32)
    zeros = np.full((ROWS, blocks), 1 << (bits - 1))
    weights = {"b": bytes_of(codes, bits), "s": scales, "c": GENERATOR.random(ROWS, np.float32)}
    if has_zeros:
        zeros = GENERATOR.integers(0, 1 << bits, (ROWS, blocks))
        padded = np.zeros((ROWS, -(-blocks * bits // 8) * 8 // bits), int)
        padded[:, :blocks] = zeros
        weights["z"] = bytes_of(padded, bits)
    m = products(tmp_path, weights, K=columns, bits=bits, block_size=SIZE)
    x = GENERATOR.random((2, columns), np.float32)
    dense = ((codes - zeros[..., None]) * scales[..., None]).reshape(ROWS, -1)[:, :columns]
    np.testing.assert_allclose(m(x)["y"].numpy(), x @ dense.T + weights["c"], rtol=1e-4, atol=1e-4)
    assert not packed_inputs(m)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("size", [32, 64])
def test_what_gguf_says_exactly_becomes_its_blocks(tmp_path: Path, bits: int, size: int) -> None:
    """Scales that float16 holds, and zero points in the middle."""
    codes = GENERATOR.integers(0, 1 << bits, (ROWS, 128 // size, size))
    scales = GENERATOR.random((ROWS, 128 // size)).astype(np.float16).astype(np.float32)
    weights = {"b": bytes_of(codes, bits), "s": scales}
    m = products(tmp_path, weights, K=128, bits=bits, block_size=size)
    x = GENERATOR.random((2, 128), np.float32)
    dense = ((codes - (1 << (bits - 1))) * scales[..., None]).reshape(ROWS, -1)
    (blocks,) = packed_inputs(m)
    assert np.array_equal(blocks.dequantise().numpy(), dense.astype(np.float32))
    np.testing.assert_allclose(m(x)["y"].numpy(), x @ dense.T, rtol=1e-4, atol=1e-4)
    m.state_dict()  # from here on the weights as the file has them
    np.testing.assert_allclose(m(x)["y"].numpy(), x @ dense.T, rtol=1e-4, atol=1e-4)


def test_columns_in_any_order_of_groups(tmp_path: Path) -> None:
    codes = GENERATOR.integers(0, 16, (ROWS, 2, SIZE))
    scales, zeros = GENERATOR.random((ROWS, 2), np.float32), GENERATOR.integers(0, 16, (ROWS, 2))
    groups = GENERATOR.integers(0, 2, 64).astype(np.int32)
    weights = {"b": bytes_of(codes, 4), "s": scales, "z": bytes_of(zeros, 4), "g": groups}
    m = products(tmp_path, weights, K=64, bits=4, block_size=SIZE)
    x = GENERATOR.random((2, 64), np.float32)
    dense = (codes.reshape(ROWS, 64) - zeros[:, groups]) * scales[:, groups]
    np.testing.assert_allclose(m(x)["y"].numpy(), x @ dense.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bits", [4, 8])
def test_gathered_rows_alone_are_unpacked(tmp_path: Path, bits: int) -> None:
    codes, zeros = GENERATOR.integers(0, 1 << bits, (5, 32)), GENERATOR.integers(0, 1 << bits, (5, 2))
    scales = GENERATOR.random((5, 2), np.float32)
    weights = {"d": bytes_of(codes, bits), "s": scales, "z": bytes_of(zeros, bits)}
    kinds: Any = {"bits": bits, "block_size": 16, "gather_axis": 0, "quantize_axis": 1}
    nodes = [node("GatherBlockQuantized", "d i s z", "y", domain="com.microsoft", **kinds)]
    m = loaded(tmp_path, model(nodes, {"i": ("int64", [2, 2])}, {"y": None}, weights, opset=OPSETS))
    at = np.asarray([[4, 0], [-1, 2]])
    dense = (codes - np.repeat(zeros, 16, 1)) * np.repeat(scales, 16, 1)
    np.testing.assert_allclose(m(at)["y"].numpy(), dense[at].astype(np.float32), rtol=1e-6)

"""Quantised tensors: weights, rows, products and quantising, on the cpu, on a GPU, and as other devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import webgrad as wg
from tests.ops.block_reference import WEIGHTS, dequantise, random_blocks
from tests.properties.helpers import on
from tests.properties.running import profiled
from webgrad.errors import ArgumentError, DeviceError, DTypeError, IndexingError, ShapeError
from webgrad.ops.blocks import FORMATS

Array = np.ndarray[Any, Any]
EPSILON = float(np.finfo(np.float32).eps)
DEVICES = [pytest.param("cpu"), pytest.param("webgpu", marks=pytest.mark.gpu)]
OTHERS: dict[str, dict[str, Any]] = {
    "discrete": {"kind": "discrete", "subgroup_size": 0},
    "no subgroups": {"kind": "software", "subgroup_size": 0},
    "subgroups of four": {"kind": "software", "subgroup_size": 4},
}


def made(name: str, shape: tuple[int, ...], device: Any, scale: float | None = 0.01) -> tuple[Any, Array]:
    """A quantised tensor, and its weights."""
    data = random_blocks(name, shape, 5, scale=scale)
    return wg.from_blocks(data, name, shape, device=device), dequantise(data, name, shape)


def normal(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def assert_product(got: Array, x: Array, weights: Array, slack: float = 8) -> None:
    """Within a few roundings of the products' sizes."""
    wide_x, wide_w = x.astype(np.float64), weights.astype(np.float64).T
    assert got.shape == (*x.shape[:-1], weights.shape[0])
    allowed = np.abs(wide_x) @ np.abs(wide_w) * EPSILON * slack
    assert np.all(np.abs(got - wide_x @ wide_w) <= allowed)


# Weights and rows


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", FORMATS)
def test_weights_rows_and_blocks(name: str, device: str) -> None:
    shape = (5, 3 * WEIGHTS[name])
    data = random_blocks(name, shape)
    q, want = (
        wg.from_blocks(data.tobytes(), name.lower(), shape, device=on(device)),
        dequantise(data, name, shape),
    )
    got = q.dequantise().numpy()
    np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))
    ids = wg.asarray([[4, 0], [4, 2]], device=on(device))
    np.testing.assert_array_equal(q[ids].numpy(), want[[[4, 0], [4, 2]]])
    assert q.to_blocks() == data.tobytes()
    assert (q.format, q.shape, q.ndim, q.size, len(q)) == (name, shape, 2, want.size, 5)
    assert q.nbytes - 3 <= len(data) <= q.nbytes


@pytest.mark.parametrize("device", DEVICES)
def test_rows_by_other_keys(device: str) -> None:
    q, want = made("Q4_0", (6, 64), on(device))
    np.testing.assert_array_equal((q.dequantise().T + 1).numpy(), want.T + 1)
    np.testing.assert_array_equal(q[2].numpy(), want[2])
    np.testing.assert_array_equal(q[-1].numpy(), want[-1])
    np.testing.assert_array_equal(q[[1, -2]].numpy(), want[[1, -2]])
    np.testing.assert_array_equal(q[1:3, ::2].numpy(), want[1:3, ::2])
    np.testing.assert_array_equal(q.take(np.array([], np.int32)).numpy(), want[:0])
    np.testing.assert_array_equal(q[wg.asarray([-1, 99], device=on(device))].numpy(), want[[5, 5]])
    chosen = np.arange(6) % 2 == 0
    for mask in (chosen, chosen.tolist(), wg.asarray(chosen, device=on(device))):
        np.testing.assert_array_equal(q[mask].numpy(), want[chosen])
    with pytest.raises(IndexingError, match="index 6 is out of range"):
        q[[0, 6]]
    with pytest.raises(IndexingError, match="not an array of indices"):
        q[[0, [6]]]


def test_numpy_takes_the_weights_at_once() -> None:
    q, want = made("Q4_0", (6, 64), on("cpu"))
    with patch.object(type(q), "__getitem__", side_effect=AssertionError):
        np.testing.assert_array_equal(np.asarray(q), want)
        assert np.asarray(q, np.float64).dtype == np.float64


@pytest.mark.parametrize("device", DEVICES)
def test_weights_on_the_left(device: str) -> None:
    q, want = made("Q4_0", (6, 64), on(device))
    for left, exact, side in ((q, want, 64), (q.T, want.T, 6)):
        ones = wg.ones((side, 2), device=on(device))
        np.testing.assert_allclose((left @ ones).numpy(), exact @ np.ones((side, 2)), rtol=1e-4, atol=1e-4)


@pytest.mark.gpu
def test_rows_touch_only_what_they_need() -> None:
    """One kernel, which stores as much as it is asked for."""
    q, _ = made("Q8_0", (4096, 64), on("webgpu"))
    plan = wg.explain(q[[7, 8]])
    assert len(plan.kernels) == 1
    assert "decode" in str(plan)


@pytest.mark.parametrize("device", DEVICES)
def test_more_axes(device: str) -> None:
    q, want = made("Q4_1", (3, 5, 64), on(device))
    np.testing.assert_array_equal(q.dequantise().numpy(), want)
    x = normal(3, 2, 64)
    got = (wg.asarray(x, device=on(device)) @ q.T).numpy()
    np.testing.assert_allclose(got, x @ want.transpose(0, 2, 1), rtol=1e-4, atol=1e-4)
    assert q.T.shape == (3, 64, 5)
    with pytest.raises(IndexingError, match="3 dimensions"):
        q.take([0])


@pytest.mark.parametrize("device", DEVICES)
def test_empty(device: str) -> None:
    q = wg.from_blocks(b"", "Q6_K", (0, 256), device=on(device))
    assert q.dequantise().numpy().shape == (0, 256)
    assert (wg.ones((2, 256), device=on(device)) @ q.T).shape == (2, 0)
    assert q.to_blocks() == b""
    filled, _ = made("Q4_0", (3, 32), on(device))
    assert (wg.ones((0, 32), device=on(device)) @ filled.T).numpy().shape == (0, 3)


# Products


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", FORMATS)
def test_products(name: str, device: str) -> None:
    q, weights = made(name, (37, 3 * WEIGHTS[name]), on(device))
    for rows in (1, 2, 3, 11) if name in ("Q4_1", "Q6_K") else (1, 3):
        x = normal(rows, q.shape[1])
        assert_product((wg.asarray(x, device=on(device)) @ q.T).numpy(), x, weights)


@pytest.mark.gpu
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(("name", "rows"), [("Q4_0", 1), ("Q5_1", 3), ("Q3_K", 2), ("Q6_K", 3), ("Q4_K", 20)])
def test_products_as_on_other_devices(name: str, rows: int, other: str) -> None:
    device = profiled(**OTHERS[other])
    q, weights = made(name, (18, 3 * WEIGHTS[name]), device)
    x = normal(rows, q.shape[1])
    assert_product((wg.asarray(x, device=device) @ q.T).numpy(), x, weights)


@pytest.mark.gpu
def test_weights_in_several_bindings() -> None:
    device = profiled(max_binding_bytes=4096)
    q, weights = made("Q8_0", (40, 192), device)
    x = normal(1, 192)
    assert_product((wg.asarray(x, device=device) @ q.T).numpy(), x, weights)
    np.testing.assert_array_equal(q.take([39, 0]).numpy(), weights[[39, 0]])


@pytest.mark.parametrize("device", DEVICES)
def test_products_of_large_matrices(device: str) -> None:
    """Several chunks on the cpu; many workgroups on a GPU."""
    data = random_blocks("Q8_0", (2100, 2080), 5, scale=0.01)
    q = wg.from_blocks(data, "Q8_0", (2100, 2080), device=on(device))
    weights = q.dequantise().numpy()
    for rows in (1, 5):
        x = normal(rows, 2080)
        assert_product((wg.asarray(x, device=on(device)) @ q.T).numpy(), x, weights, 16)


@pytest.mark.parametrize("device", DEVICES)
def test_shapes_of_products(device: str) -> None:
    where = on(device)
    q, weights = made("Q4_0", (12, 64), where)
    vector, stack = normal(64), normal(2, 3, 64)
    assert_product((wg.asarray(vector, device=where) @ q.T).numpy(), vector, weights)
    assert_product((wg.asarray(stack, device=where) @ q.T).numpy(), stack, weights)
    assert_product((stack @ q.T).numpy(), stack, weights)
    turned = wg.asarray(np.ascontiguousarray(stack[0].T), device=where).T
    assert_product((turned @ q.T).numpy(), stack[0], weights)
    assert_product((wg.asarray(stack[:, 1:2], device=where) @ q.T).numpy(), stack[:, 1:2], weights)
    straight = normal(4, 12)
    got = (wg.asarray(straight, device=where) @ q).numpy()
    np.testing.assert_allclose(got, straight @ weights, rtol=1e-4, atol=1e-4)
    got = (q @ wg.asarray(stack[0].T.copy(), device=where)).numpy()
    np.testing.assert_allclose(got, weights @ stack[0].T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [wg.float16, wg.bfloat16])
def test_halves_are_computed_in_float32(dtype: Any, device: str) -> None:
    q, weights = made("Q4_K", (9, 256), on(device))
    x = wg.asarray(normal(3, 256), device=on(device)).astype(dtype)
    got = x @ q.T
    assert got.dtype is dtype
    exact = x.numpy().astype(np.float32).astype(np.float64) @ weights.astype(np.float64).T
    np.testing.assert_allclose(got.numpy().astype(np.float64), exact, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows", [1, 4])
def test_what_comes_before_and_after_is_fused(rows: int, device: str) -> None:
    where = on(device)
    q, weights = made("Q4_0", (24, 64), where)
    x, bias, residual = normal(rows, 64), normal(24), normal(rows, 24)
    parts = [wg.asarray(each, device=where) for each in (x, bias, residual)]
    result = wg.relu(wg.quantised_linear(parts[0] * 2, q, parts[1])) + parts[2]
    if device == "webgpu":
        assert len(wg.explain(result).kernels) == 1
    want = np.maximum(2 * x @ weights.T + bias, 0) + residual
    np.testing.assert_allclose(result.numpy(), want, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(
        wg.linear(parts[0], q, parts[1]).numpy(), wg.quantised_linear(parts[0], q, parts[1]).numpy()
    )


@pytest.mark.parametrize("device", DEVICES)
def test_products_of_weights_that_are_still_to_be_quantised(device: str) -> None:
    x, weights = normal(2, 64), normal(6, 64)
    q = wg.quantise(wg.asarray(weights, device=on(device)), "Q8_0")
    got = (wg.asarray(x, device=on(device)) @ q.T).numpy()
    assert_product(got, x, q.dequantise().numpy())
    np.testing.assert_allclose(got, x @ weights.T, rtol=0.05, atol=0.2)


@pytest.mark.gpu
def test_to_another_device_and_back() -> None:
    q, want = made("Q3_K", (2, 256), "cpu")
    there = q.to_device(on("webgpu"))
    assert there.device is on("webgpu")
    assert there.to_device(on("webgpu")) is there
    np.testing.assert_array_equal(there.dequantise().numpy(), want)
    assert there.to_device("cpu").to_blocks() == q.to_blocks()


# Quantising: what GGUF's reference gives, bit for bit


def q8_0(x: Array) -> bytes:
    largest = np.max(np.abs(x))
    d = np.float32(largest / np.float32(127))
    scaled = x * (np.float32(1) / d if d else np.float32(0))
    whole = [int(np.copysign(np.floor(abs(float(each)) + 0.5), each)) for each in scaled]
    return np.float16(d).tobytes() + np.array(whole, np.int8).tobytes()


def nibbles(quants: list[int]) -> bytes:
    return bytes(quants[at] | quants[at + 16] << 4 for at in range(16))


def q4_0(x: Array) -> bytes:
    largest = np.float32(0)
    for each in x:
        if abs(each) > abs(largest):
            largest = each
    d = np.float32(largest / np.float32(-8))
    scaled = x * (np.float32(1) / d if d else np.float32(0))
    return np.float16(d).tobytes() + nibbles([min(15, int(each + np.float32(8.5))) for each in scaled])


def q4_1(x: Array) -> bytes:
    least, most = x[0], x[0]
    for each in x:
        least, most = (each if each < least else least), (each if each > most else most)
    d = np.float32((most - least) / np.float32(15))
    scaled = (x - least) * (np.float32(1) / d if d else np.float32(0))
    quants = [min(15, int(each + np.float32(0.5))) for each in scaled]
    return np.float16(d).tobytes() + np.float16(least).tobytes() + nibbles(quants)


REFERENCES: dict[str, Callable[[Array], bytes]] = {"Q8_0": q8_0, "Q4_0": q4_0, "Q4_1": q4_1}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", REFERENCES)
def test_quantising_is_that_of_gguf(name: str, device: str) -> None:
    x = normal(7, 96) * np.float32(3)
    x[0] = 0
    x[1, :32] = -0.0
    x[2, :32] = 2.5
    x[3, ::2] = -x[3, 1::2]  # as large on both sides: the first counts
    x[4, :64] = np.arange(-32, 32, dtype=np.float32) / 2  # halves
    x[5] *= np.float32(1e-6)  # scales that float16 holds as subnormals
    x[6, :32] *= np.float32(1e3)
    q = wg.quantise(wg.asarray(x, device=on(device)), name.lower())
    want = b"".join(REFERENCES[name](block) for block in x.reshape(-1, 32))
    assert q.to_blocks() == want
    assert q.format == name


@pytest.mark.parametrize("device", DEVICES)
def test_quantising_other_inputs(device: str) -> None:
    x = wg.asarray(normal(2, 32), device=on(device)).astype(wg.float16)
    assert wg.quantise(x, "Q8_0").to_blocks() == b"".join(map(q8_0, x.numpy().astype(np.float32)))
    assert wg.quantise(wg.zeros((0, 32), device=on(device)), "Q4_0").shape == (0, 32)
    with pytest.raises(DTypeError, match="int32"):
        wg.quantise(wg.ones((2, 32), dtype=wg.int32), "Q4_0")
    with pytest.raises(ShapeError, match=r"32 weights.*\(2, 33\)"):
        wg.quantise(wg.ones((2, 33)), "Q4_0")
    with pytest.raises(ArgumentError, match=r"Q6_K.*Q8_0, Q4_0, Q4_1"):
        wg.quantise(wg.ones((2, 256)), "q6_k")


# Errors and looks


def test_unknown_formats_are_refused() -> None:
    with pytest.raises(
        ArgumentError, match=r"'IQ2_XS'.*Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K"
    ):
        wg.from_blocks(b"", "IQ2_XS", (1, 256))
    with pytest.raises(ArgumentError, match="not a int"):
        wg.from_blocks(b"", 2, (1, 256))  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"256 weights.*\(2, 64\)"):
        wg.from_blocks(bytes(100), "Q4_K", (2, 64))
    with pytest.raises(ShapeError, match=r"36 bytes.*35 were given"):
        wg.from_blocks(bytes(35), "Q4_0", (2, 32))
    with pytest.raises(ShapeError, match=r"\(\)"):
        wg.from_blocks(bytes(18), "Q4_0", ())
    with pytest.raises(DTypeError, match="bytes"):
        wg.from_blocks("text", "Q4_0", (1, 32))


@pytest.mark.gpu
def test_wrong_operands_are_refused() -> None:
    q, _ = made("Q4_0", (4, 64), "cpu")
    with pytest.raises(ShapeError, match="matmul of"):
        wg.ones((2, 32)) @ q.T
    with pytest.raises(DTypeError, match=r"int32.*Q4_0"):
        wg.ones((2, 64), dtype=wg.int32) @ q.T
    with pytest.raises(TypeError, match="unsupported operand"):
        "text" @ q.T
    with pytest.raises(DeviceError, match="to_device"):
        wg.ones((2, 64), device=on("webgpu")) @ q.T
    with pytest.raises(ShapeError, match=r"\(2, 32\).*\(4, 64\)"):
        wg.quantised_linear(wg.ones((2, 32)), q)
    with pytest.raises(ShapeError, match=r"bias \(3, 1, 4\).*4 outputs"):
        wg.quantised_linear(wg.ones((2, 64)), q, wg.ones((3, 1, 4)))
    with pytest.raises(ShapeError, match=r"the bias \(3,\) must be one number for each of the 4 outputs"):
        wg.linear(wg.ones((2, 64)), q, wg.ones(3))
    with pytest.raises(DTypeError, match=r"einsum .* not a QuantisedTensor: unpack it with \.dequantise"):
        wg.einsum("ik,jk->ij", wg.ones((2, 64)), q)
    with pytest.raises(DTypeError, match=r"webgrad\.linear"):
        wg.quantised_linear(wg.ones((2, 32)), wg.ones((4, 32)))  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="one axis"):
        _ = wg.from_blocks(bytes(18), "Q4_0", (32,)).T


def test_looks() -> None:
    q, want = made("Q6_K", (4, 512), "cpu")
    assert repr(q) == "QuantisedTensor(Q6_K, shape=(4, 512), device='cpu', 1.6 KiB)"
    assert repr(q.T).endswith(".T")
    assert q.T.T is q
    np.testing.assert_array_equal(q.T.dequantise().numpy(), want.T)

"""Batches: right results on every device, the contract by its counters, and errors before anything is
submitted."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import webgrad as wg
from tests.properties.limited import limited

gpu = pytest.mark.gpu
DEVICES = [pytest.param("webgpu", marks=gpu), "cpu"]
FLOATS = [np.float32, np.float16, ml_dtypes.bfloat16]
Ndarray = np.ndarray[Any, Any]

UNARY: dict[str, Callable[[Ndarray], Ndarray]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2))),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "silu": lambda x: x / (1 + np.exp(-x)),
}
BINARY: dict[str, Callable[[Ndarray, Ndarray], Ndarray]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
}


def tolerance(dtype: Any) -> float:
    return {2: 1e-2, 4: 2e-6}[np.dtype(dtype).itemsize]


def near(found: Ndarray, expected: Ndarray, dtype: Any) -> None:
    assert found.dtype == dtype
    assert found.shape == expected.shape
    limit = tolerance(dtype)
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=limit, atol=limit)


def run(device: str, record: Callable[[wg.Batch], wg.BatchArray]) -> Ndarray:
    batch = wg.Batch(device)
    result = record(batch)
    batch.execute()
    return batch.read(result)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", UNARY)
def test_unary(device: str, op: str, dtype: Any) -> None:
    x = np.linspace(-6, 6, 3 * 7 * 11).reshape(3, 7, 11).astype(dtype)
    found = run(device, lambda batch: getattr(batch, op)(batch.upload(x)))
    near(found, UNARY[op](x.astype(np.float64)), dtype)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize("shape", [(6, 8), (8,), (1,), ()])
def test_binary_with_rows_and_scalars(device: str, op: str, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    a = random.standard_normal((6, 8), np.float32)
    b = random.standard_normal(shape, np.float32) + np.float32(3)
    found = run(device, lambda batch: getattr(batch, op)(batch.upload(a), batch.upload(b)))
    near(found, BINARY[op](a.astype(np.float64), b.astype(np.float64)), np.float32)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int16, np.uint16, np.int8, np.uint8])
@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_integers_wrap(device: str, op: str, dtype: Any) -> None:
    limits = np.iinfo(dtype)
    a = np.array([limits.min, limits.max, 1, 5, 100], dtype)
    b = np.array([1, 2, 3, limits.max, 77], dtype)
    found = run(device, lambda batch: getattr(batch, op)(batch.upload(a), batch.upload(b)))
    with np.errstate(over="ignore"):
        assert np.array_equal(found, BINARY[op](a, b))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("shape", "n"), [((5, 7), 3), ((64, 32), 48), ((1, 16), 64), ((2, 3, 8), 4), ((9,), 5)]
)
@pytest.mark.parametrize("transposed", [False, True])
def test_matmul(device: str, shape: tuple[int, ...], n: int, transposed: bool) -> None:
    random = np.random.default_rng(1)
    a, b = random.standard_normal(shape, np.float32), random.standard_normal((shape[-1], n), np.float32)
    given_b = np.ascontiguousarray(b.T) if transposed else b
    found = run(
        device, lambda batch: batch.matmul(batch.upload(a), batch.upload(given_b), transposed=transposed)
    )
    assert found.shape == (*shape[:-1], n)
    np.testing.assert_allclose(found, a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_softmax_dot_and_scale(device: str) -> None:
    x = np.random.default_rng(2).standard_normal((13, 37), np.float32) * 5
    batch = wg.Batch(device)
    value = batch.upload(x)
    soft, dot, scaled = batch.softmax(value), batch.dot(value, value), batch.scale(value, -0.25)
    batch.execute()
    exponents = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    near(batch.read(soft), exponents / exponents.sum(-1, keepdims=True), np.float32)
    assert batch.read(dot).shape == ()
    np.testing.assert_allclose(batch.read(dot), (x.astype(np.float64) ** 2).sum(), rtol=1e-5)
    assert np.array_equal(batch.read(scaled), x * np.float32(-0.25))


@pytest.mark.parametrize("device", DEVICES)
def test_special_values(device: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38], np.float32)
    at_infinity = {"relu": np.inf, "gelu": np.inf, "sigmoid": 1, "tanh": 1, "silu": np.inf}
    at_minus_infinity = {"relu": 0, "gelu": 0, "sigmoid": 0, "tanh": -1, "silu": 0}
    at_zero = {"relu": 0, "gelu": 0, "sigmoid": 0.5, "tanh": 0, "silu": 0}
    for op in UNARY:
        found = run(device, lambda batch, op=op: getattr(batch, op)(batch.upload(x)))  # type: ignore[misc]
        large = at_infinity[op] if op in ("sigmoid", "tanh") else np.float32(3e38)
        least, zero = at_minus_infinity[op], at_zero[op]
        expected = np.array([np.nan, at_infinity[op], least, zero, zero, large, least], np.float32)
        np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=op)


@pytest.mark.parametrize("device", DEVICES)
def test_empty_and_zero_dimensional(device: str) -> None:
    empty = np.zeros((0, 4), np.float32)
    assert run(device, lambda batch: batch.relu(batch.upload(empty))).shape == (0, 4)
    found = run(
        device, lambda batch: batch.matmul(batch.upload(np.ones((3, 0), np.float32)), batch.upload(empty))
    )
    assert np.array_equal(found, np.zeros((3, 4), np.float32))
    assert run(device, lambda batch: batch.tanh(batch.upload(np.float32(0)))) == 0
    assert run(device, lambda batch: batch.dot(batch.upload(empty), batch.upload(empty))) == 0


@gpu
def test_arrays_larger_than_a_binding_are_done_in_parts() -> None:
    limit = 1 << 20  # tests/properties/test_large.py goes beyond the real one
    x = np.arange(limit // 4 + 5, dtype=np.float32)
    with limited(binding=limit) as device:
        batch = wg.Batch(device)
        value = batch.upload(x)
        result = batch.add(batch.scale(value, 0.5), batch.upload(np.array([1], np.float32)))
        batch.execute()
        assert np.array_equal(batch.read(result), x * np.float32(0.5) + 1)
        soft = batch.softmax(batch.scale(value, 1 / limit))
        batch.execute()
        exponents = np.exp(x.astype(np.float64) / limit)
        np.testing.assert_allclose(batch.read(soft), exponents / exponents.sum(), rtol=1e-5)


# The contract


@gpu
def test_one_submission_per_execute_and_pipelines_compiled_once() -> None:
    device = wg.open_device("webgpu")
    x = np.ones((16, 16), np.float32)

    def once() -> None:
        batch = wg.Batch(device)
        value = batch.upload(x)
        for _ in range(40):
            value = batch.silu(batch.add(batch.matmul(value, batch.upload(x / 16)), value))
        before = wg.stats("webgpu")["submissions"]
        batch.execute()
        assert wg.stats("webgpu")["submissions"] == before + 1
        assert batch.execute() is not None  # nothing recorded: nothing submitted
        assert wg.stats("webgpu")["submissions"] == before + 1
        batch.read(value)

    once()
    compiled = wg.stats("webgpu")["pipelines_compiled"]
    once()
    once()
    assert wg.stats("webgpu")["pipelines_compiled"] == compiled


@gpu
def test_repeated_batch_creates_nothing() -> None:
    device = wg.open_device("webgpu")
    x = np.ones((8, 8), np.float32)

    def once() -> None:
        batch = wg.Batch(device)
        value = batch.upload(x)
        result = batch.relu(batch.mul(batch.gelu(value), value))
        batch.execute()
        batch.read(result)

    for _ in range(3):
        once()
    before = device.stats()
    once()
    after = device.stats()
    for name in ("pipelines_compiled", "bind_groups_created", "buffers_created", "queues_resolved"):
        assert after[name] == before[name], name
    assert after["commands"] == before["commands"] + 1  # all of it is one kernel


@pytest.mark.parametrize("device", DEVICES)
def test_read_before_execute_is_an_error(device: str) -> None:
    batch = wg.Batch(device)
    result = batch.relu(batch.upload(np.array([-1, 2], np.float32)))
    with pytest.raises(wg.BatchError, match="execute"):
        batch.read(result)
    batch.execute()
    assert batch.read(result).tolist() == [0, 2]
    again = batch.scale(result, 2.0)
    with pytest.raises(wg.BatchError, match="execute"):
        batch.read(again)
    batch.execute()
    assert batch.read(again).tolist() == [0, 4]


WRONG: list[tuple[str, type[Exception], Callable[[wg.Batch, wg.BatchArray], object]]] = [
    ("sizes", wg.ShapeError, lambda batch, x: batch.add(x, batch.upload(np.ones(3, np.float32)))),
    (
        "inner sizes",
        wg.ShapeError,
        lambda batch, x: batch.matmul(x, batch.upload(np.ones((5, 2), np.float32))),
    ),
    ("no axis", wg.ShapeError, lambda batch, x: batch.softmax(batch.upload(np.float32(1)))),
    ("dot sizes", wg.ShapeError, lambda batch, x: batch.dot(x, batch.upload(np.ones(4, np.float32)))),
    ("dtypes differ", wg.DTypeError, lambda batch, x: batch.add(x, batch.upload(np.ones((2, 4), np.int32)))),
    ("float64", wg.DTypeError, lambda batch, x: batch.upload(np.ones(3))),
    ("objects", wg.DTypeError, lambda batch, x: batch.upload([object()])),
    ("big-endian", wg.DTypeError, lambda batch, x: batch.upload(np.ones(3, ">f4"))),
    ("gelu of integers", wg.DTypeError, lambda batch, x: batch.gelu(batch.upload(np.ones(3, np.int32)))),
    ("not a value", wg.BufferError, lambda batch, x: batch.relu(np.ones(3))),  # type: ignore[arg-type]
    ("scale by array", wg.DTypeError, lambda batch, x: batch.scale(x, x)),  # type: ignore[arg-type]
    (
        "another batch's",
        wg.ForeignBufferError,
        lambda batch, x: batch.relu(wg.Batch(batch.device).upload(np.float32(1))),
    ),
    ("import of nothing", wg.ForeignBufferError, lambda batch, x: batch.import_buffer(None)),  # type: ignore[arg-type]
    (
        "import before execute",
        wg.BatchError,
        lambda batch, x: wg.Batch(batch.device).import_buffer(batch.relu(x)),
    ),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("name", "error", "misuse"), WRONG, ids=[row[0] for row in WRONG])
def test_misuse_is_an_error_before_anything_is_submitted(
    device: str, name: str, error: type[Exception], misuse: Callable[[wg.Batch, wg.BatchArray], object]
) -> None:
    batch = wg.Batch(device)
    x = batch.upload(np.ones((2, 4), np.float32))
    before = batch.device.stats()["submissions"]
    with pytest.raises(error):
        misuse(batch, x)
    assert batch.device.stats()["submissions"] == before
    result = batch.scale(x, 3.0)
    batch.execute()
    assert np.array_equal(batch.read(result), np.full((2, 4), 3, np.float32))


@gpu
def test_values_of_other_devices_are_foreign() -> None:
    cpu, other = wg.Batch("cpu"), wg.Batch("webgpu")
    value = cpu.upload(np.array([1], np.float32))
    with pytest.raises(wg.ForeignBufferError, match="upload"):
        other.import_buffer(value)


@pytest.mark.parametrize("device", DEVICES)
def test_import_of_another_batch(device: str) -> None:
    first, second = wg.Batch(device), wg.Batch(device)
    value = first.scale(first.upload(np.array([1, 2], np.float32)), 2.0)
    first.execute()
    result = second.add(second.import_buffer(value), second.upload(np.array([10, 20], np.float32)))
    second.execute()
    assert second.read(result).tolist() == [12, 24]
    assert first.read(value).tolist() == [2, 4]


@gpu
def test_import_of_a_device_buffer() -> None:
    device = wg.open_device("webgpu")
    assert isinstance(device, wg.Device)
    buffer = device.upload(np.arange(6, dtype=np.float32))
    batch = wg.Batch(device)
    value = batch.import_buffer(buffer, (2, 3))
    result = batch.scale(value, 2.0)
    batch.execute()
    assert batch.read(result).tolist() == [[0, 2, 4], [6, 8, 10]]
    with pytest.raises(wg.ShapeError):
        batch.import_buffer(buffer, (2, 2))


@pytest.mark.parametrize("device", DEVICES)
def test_read_async(device: str) -> None:
    batch = wg.Batch(device)
    result = batch.scale(batch.upload(np.array([1, 2, 3], np.float32)), 2.0)
    batch.execute()
    assert asyncio.run(batch.read_async(result)).tolist() == [2, 4, 6]


@gpu
@settings(max_examples=25)
@given(
    st.lists(st.sampled_from(["relu", "tanh", "add", "mul", "sub", "scale", "drop", "execute"]), max_size=25),
    st.data(),
)
def test_any_sequence_gives_the_same_on_gpu_and_cpu(ops: list[str], data: st.DataObject) -> None:
    batches = [wg.Batch("webgpu"), wg.Batch("cpu")]
    x = np.linspace(-1, 1, 37, dtype=np.float32)
    values = [[batch.upload(x)] for batch in batches]
    for op in ops:
        count = len(values[0])
        first, second = (data.draw(st.integers(0, count - 1)) for _ in range(2))
        for batch, held in zip(batches, values, strict=True):
            if op == "execute":
                batch.execute()
            elif op == "drop" and count > 1:
                del held[first]
            elif op in ("relu", "tanh"):
                held.append(getattr(batch, op)(held[first]))
            elif op == "scale":
                held.append(batch.scale(held[first], 0.5))
            elif op in BINARY:
                held.append(getattr(batch, op)(held[first], held[second]))
    for batch in batches:
        batch.execute()
    for on_gpu, on_cpu in zip(*values, strict=True):
        np.testing.assert_allclose(batches[0].read(on_gpu), batches[1].read(on_cpu), rtol=1e-5, atol=1e-6)


@gpu
def test_a_freed_buffer_stops_the_batch_before_anything_is_recorded() -> None:
    device = wg.open_device("webgpu")
    assert isinstance(device, wg.Device)
    batch = wg.Batch(device)
    buffer = device.upload(np.ones(4, np.float32))
    value = batch.relu(batch.import_buffer(buffer))
    result = batch.add(value, value)
    buffer.free()
    for _ in range(2):
        with pytest.raises(wg.StaleBufferError):
            batch.execute()
        with pytest.raises(wg.BatchError, match="execute"):
            batch.read(result)
    assert device.queue.waiting == 0
    with pytest.raises(wg.StaleBufferError):
        batch.import_buffer(buffer)


@pytest.mark.parametrize("device", DEVICES)
def test_import_sees_a_value_otherwise_or_refuses(device: str) -> None:
    first, second = wg.Batch(device), wg.Batch(device)
    value = first.upload(np.arange(8, dtype=np.float32))
    assert second.read(second.import_buffer(value, (2, 4))).shape == (2, 4)
    assert second.read(second.import_buffer(value, dtype=np.int32)).dtype == np.int32
    for shape in ((4, 4), (-2, -4), (2.0, 4), "8"):
        with pytest.raises(wg.ShapeError):
            second.import_buffer(value, shape)  # type: ignore[arg-type]


@pytest.mark.parametrize("device", DEVICES)
def test_limits_and_empty_rows(device: str) -> None:
    x = np.array([-np.inf, -200], np.float32)
    assert run(device, lambda batch: batch.gelu(batch.upload(x))).tolist() == [0, 0]
    assert run(device, lambda batch: batch.silu(batch.upload(x))).tolist() == [0, 0]
    empty = np.zeros((3, 0), np.float32)
    assert run(device, lambda batch: batch.softmax(batch.upload(empty))).shape == (3, 0)
    found = run(device, lambda batch: batch.add(batch.upload(empty), batch.upload(np.zeros(0, np.float32))))
    assert found.shape == (3, 0)

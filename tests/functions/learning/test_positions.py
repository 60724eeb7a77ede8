"""Rotary embedding against complex multiplication in float64: both layouts, offsets, parts, and mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.graph.helpers import nodes_under
from webgrad import dtypes
from webgrad.errors import ArgumentError, DTypeError, ShapeError
from webgrad.functions.array.creation import asarray
from webgrad.functions.learning.positions import apply_rotary, rotary_angles, rotary_embedding
from webgrad.tensor import Tensor

Array = np.ndarray[Any, Any]


def on_cpu(values: Any, dtype: Any = None) -> Tensor:
    return asarray(values, dtype, device="cpu")


def numbers(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def turned(x: Array, positions: Array, interleaved: bool, dims: int, base: float = 10000.0) -> Array:
    """Each pair as a complex number, multiplied by e^(i·angle)."""
    angles = positions[..., None] * base ** (-2 * np.arange(dims // 2) / dims)
    head, rest = x[..., :dims].astype(np.float64), x[..., dims:]
    if interleaved:
        result = (head[..., 0::2] + 1j * head[..., 1::2]) * np.exp(1j * angles)
        pairs = np.stack([result.real, result.imag], -1).reshape(head.shape)
    else:
        result = (head[..., : dims // 2] + 1j * head[..., dims // 2 :]) * np.exp(1j * angles)
        pairs = np.concatenate([result.real, result.imag], -1)
    return np.concatenate([pairs, rest], -1)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("dims", [None, 2, 6, 0])
@pytest.mark.parametrize("shape", [(5, 8), (2, 5, 8), (2, 3, 5, 8), (0, 8), (1, 8)])
def test_rotary_embedding(shape: tuple[int, ...], dims: int | None, interleaved: bool) -> None:
    x = numbers(*shape)
    result = rotary_embedding(on_cpu(x), interleaved=interleaved, dims=dims).numpy()
    positions = np.arange(shape[-2], dtype=np.float64)
    expected = turned(x, positions, interleaved, 8 if dims is None else dims)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("interleaved", [False, True])
def test_offsets_and_positions(interleaved: bool) -> None:
    x = numbers(2, 3, 4, 8)
    expected = turned(x, np.arange(7.0, 11.0), interleaved, 8, 500.0)
    options: dict[str, Any] = {"interleaved": interleaved, "base": 500.0}
    for result in (
        rotary_embedding(on_cpu(x), offset=7, **options),
        rotary_embedding(on_cpu(x), offset=on_cpu(7), **options),
        rotary_embedding(on_cpu(x), on_cpu([7, 8, 9, 10]), **options),
        rotary_embedding(on_cpu(x), on_cpu([7.0, 8.0, 9.0, 10.0]), **options),
    ):
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_positions_of_their_own_for_each_sample() -> None:
    x = numbers(2, 3, 4, 8)
    positions = np.array([[0, 1, 2, 3], [5, 6, 0, 1]])[:, None]
    result = rotary_embedding(on_cpu(x), on_cpu(positions, dtypes.int32)).numpy()
    np.testing.assert_allclose(result, turned(x, positions, False, 8), rtol=1e-5, atol=1e-5)


def test_far_positions() -> None:
    x = numbers(1, 128)
    result = rotary_embedding(on_cpu(x), offset=100_000).numpy()
    np.testing.assert_allclose(result, turned(x, np.array([100_000.0]), False, 128), atol=0.05)
    angles = rotary_angles(on_cpu([8191]), 128).numpy()
    np.testing.assert_allclose(angles, [8191 * 10000.0 ** (-np.arange(64) / 64)], rtol=1e-6)


def test_turning_keeps_lengths_and_depends_on_distance_only() -> None:
    query, key = numbers(1, 64), numbers(2, 64)[:1]

    def turn(x: Array, at: int) -> Array:
        return np.asarray(rotary_embedding(on_cpu(x), offset=at).numpy()[0])

    assert float(np.linalg.norm(turn(query, 9))) == pytest.approx(float(np.linalg.norm(query)), rel=1e-5)
    near, far = turn(query, 5) @ turn(key, 3), turn(query, 105) @ turn(key, 103)
    assert float(near) == pytest.approx(float(far), rel=1e-3)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16])
def test_small_floats_are_turned_wide(dtype: dtypes.DType) -> None:
    x = on_cpu(numbers(6, 8), dtype)
    result = rotary_embedding(x)
    assert result.dtype is dtype
    wide = rotary_embedding(x.astype(dtypes.float32)).numpy()
    np.testing.assert_array_equal(result.numpy(), wide.astype(dtype.numpy))


def test_it_is_movement_and_arithmetic_only() -> None:
    for interleaved in (False, True):
        nodes = nodes_under([rotary_embedding(on_cpu(numbers(4, 8)), interleaved=interleaved).node])
        assert {node.sig.kind for node in nodes} <= {"leaf", "scalar", "iota", "cast", "map", "move"}


@pytest.mark.parametrize("interleaved", [False, True])
def test_apply_rotary(interleaved: bool) -> None:
    x, angles = numbers(2, 3, 4, 8), np.random.default_rng(3).random((4, 3))
    result = apply_rotary(
        on_cpu(x),
        on_cpu(np.cos(angles), dtypes.float32),
        on_cpu(np.sin(angles), dtypes.float32),
        interleaved,
    ).numpy()
    # angles of position 1 and base 1 would all be equal; so each pair is turned alone
    expected = x.astype(np.float64).copy()
    for pair in range(3):
        first, second = (2 * pair, 2 * pair + 1) if interleaved else (pair, pair + 3)
        a, b = x[..., first].astype(np.float64), x[..., second].astype(np.float64)
        expected[..., first] = a * np.cos(angles[:, pair]) - b * np.sin(angles[:, pair])
        expected[..., second] = b * np.cos(angles[:, pair]) + a * np.sin(angles[:, pair])
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


X = on_cpu(np.ones((4, 8), np.float32))
HALF = on_cpu(np.ones((4, 4), np.float32))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rotary_embedding(on_cpu([1.0, 2.0])), "needs two axes or more"),
        (lambda: rotary_embedding(X, dims=3), "3 of the 8 features"),
        (lambda: rotary_embedding(X, dims=10), "10 of the 8 features"),
        (lambda: rotary_embedding(on_cpu(np.ones((2, 5), np.float32))), "5 of the 5 features"),
        (lambda: rotary_embedding(X, on_cpu([1, 2])), "rotary_embedding"),
        (lambda: rotary_embedding(X, on_cpu(np.zeros((2, 4), np.int32))), "do not broadcast to"),
        (lambda: rotary_embedding(X, base=0.0), "base is a positive number"),
        (lambda: apply_rotary(X, HALF, on_cpu([1.0])), "have one shape"),
        (lambda: apply_rotary(X, X, X), "at most 4 pairs"),
        (lambda: apply_rotary(X, on_cpu(1.0), on_cpu(1.0)), "apply_rotary"),
    ],
)
def test_mistakes(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((ArgumentError, ShapeError), match=message):
        call()


def test_mistaken_dtypes() -> None:
    with pytest.raises(DTypeError, match="apply_rotary is not offered for int32"):
        rotary_embedding(on_cpu([[1, 2]]))
    with pytest.raises(DTypeError, match="rotary_angles is not offered for bool"):
        rotary_embedding(X, on_cpu([True] * 4))
    with pytest.raises(DTypeError, match="rotary_embedding takes a webgrad tensor"):
        rotary_embedding([[1.0, 2.0]])  # type: ignore[arg-type]

"""Max pooling backwards: values come back to their places, and mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.errors import ArgumentError, DTypeError, ShapeError

Array = np.ndarray[Any, Any]


def put_back(values: Array, places: Array, sides: tuple[int, ...]) -> Array:
    result = np.zeros((*values.shape[:2], int(np.prod(sides))), values.dtype)
    for at in np.ndindex(*values.shape):
        result[(*at[:2], places[at])] = values[at]
    return result.reshape(*values.shape[:2], *sides)


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding"),
    [
        ((2, 3, 6, 8), (2, 2), None, (0, 0)),
        ((1, 2, 7, 9), (3, 3), (2, 2), (1, 1)),
        ((2, 2, 9), (2,), (2,), (0,)),
        ((1, 2, 4, 4, 6), (2, 2, 3), None, (0, 0, 0)),
        ((0, 2, 4, 4), (2, 2), None, (0, 0)),
    ],
)
def test_values_come_back(shape: Any, kernel: Any, stride: Any, padding: Any, device: str) -> None:
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    name = f"{len(kernel)}d"
    pooled = getattr(wg, f"max_pool{name}")(
        wg.asarray(x, device=device), kernel, stride, padding, return_indices=True
    )
    found = getattr(wg, f"max_unpool{name}")(*pooled, kernel, stride, padding, output_size=shape[2:])
    values, places = (each.numpy() for each in pooled)
    np.testing.assert_array_equal(found.numpy(), put_back(values, places, shape[2:]))


def test_the_size_without_being_told() -> None:
    values, places = wg.max_pool2d(wg.arange(36.0).reshape((1, 6, 6)), 2, return_indices=True)
    found = wg.max_unpool2d(values, places, 2)
    assert found.shape == (1, 6, 6)
    np.testing.assert_array_equal(found.numpy()[0, 1::2, 1::2], values.numpy()[0])


def test_mistakes() -> None:
    values, places = wg.max_pool2d(wg.zeros((1, 6, 6)), 2, return_indices=True)
    with pytest.raises(ShapeError, match="must have one shape"):
        wg.max_unpool2d(values, places[:, :2], 2)
    with pytest.raises(DTypeError, match="its indices"):
        wg.max_unpool2d(values, values, 2)
    with pytest.raises(ArgumentError, match=r"output_size \(9, 9\) has no such windows"):
        wg.max_unpool2d(values, places, 2, output_size=(9, 9))
    with pytest.raises(ShapeError, match=r"padding \(5, 5\) nothing is left"):
        wg.max_unpool2d(values, places, 2, padding=5)
    with pytest.raises(ShapeError, match="takes x as"):
        wg.max_unpool3d(values[0], places[0], 2)

"""Adaptive pooling against plain slices: sizes that divide and that do not, places, NaN, and mistakes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.errors import ArgumentError, ShapeError

Array = np.ndarray[Any, Any]
DEVICES = [pytest.param("cpu"), pytest.param("webgpu", marks=pytest.mark.gpu)]
CASES: list[tuple[tuple[int, ...], Any]] = [
    ((2, 3, 8, 6), (4, 3)),
    ((2, 3, 8, 6), (1, 1)),
    ((1, 2, 7, 10), (3, 4)),
    ((1, 2, 6, 10), (3, 4)),
    ((1, 2, 3, 4), (5, 7)),
    ((2, 2, 9), 4),
    ((1, 2, 4, 5, 6), (2, 3, None)),
    ((0, 2, 6, 6), (2, 4)),
]


def windows(x: Array, wanted: tuple[int, ...]) -> Any:
    """For every place of the result the slices of x that it is made of."""
    for at in np.ndindex(*wanted):
        yield (
            at,
            tuple(
                slice(place * side // number, math.ceil((place + 1) * side / number))
                for place, side, number in zip(at, x.shape[2:], wanted, strict=True)
            ),
        )


def expected(x: Array, wanted: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Means, the largest, and their places."""
    shape = (*x.shape[:2], *wanted)
    mean, largest, places = np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64)
    plane = np.arange(math.prod(x.shape[2:])).reshape(x.shape[2:])
    for at, spans in windows(x, wanted):
        part = x[(slice(None), slice(None), *spans)]
        part = part.reshape(*x.shape[:2], math.prod(part.shape[2:]))
        mean[(slice(None), slice(None), *at)] = part.astype(np.float64).mean(-1)
        largest[(slice(None), slice(None), *at)] = part.max(-1)
        places[(slice(None), slice(None), *at)] = plane[spans].ravel()[part.argmax(-1)]
    return mean, largest, places


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("shape", "size"), CASES)
def test_adaptive_pools(shape: tuple[int, ...], size: Any, device: str) -> None:
    count = len(shape) - 2
    given = size if isinstance(size, tuple) else (size,)
    wanted = tuple(side if each is None else each for each, side in zip(given, shape[2:], strict=True))
    x = np.random.default_rng(1).integers(-9, 9, shape).astype(np.float32)
    mean, largest, places = expected(x, wanted)
    data = wg.asarray(x, device=device)
    found = getattr(wg, f"adaptive_avg_pool{count}d")(data, size)
    np.testing.assert_allclose(found.numpy(), mean, rtol=1e-5, atol=1e-6)
    pool = getattr(wg, f"adaptive_max_pool{count}d")
    np.testing.assert_array_equal(pool(data, size).numpy(), largest)
    values, index = pool(data, size, return_indices=True)
    np.testing.assert_array_equal(values.numpy(), largest)
    np.testing.assert_array_equal(index.numpy(), places)


def test_special_values_stay_in_their_windows() -> None:
    x = np.zeros((1, 1, 7), np.float32)
    x[0, 0, 0], x[0, 0, 6] = np.nan, np.inf
    data = wg.asarray(x)
    np.testing.assert_array_equal(wg.adaptive_avg_pool1d(data, 3).numpy()[0, 0], [np.nan, 0, np.inf])
    np.testing.assert_array_equal(wg.adaptive_max_pool1d(data, 3).numpy()[0, 0], [np.nan, 0, np.inf])


def test_halves_and_no_batch() -> None:
    x = wg.ones((4, 6, 6), dtype=wg.float16)
    assert wg.adaptive_avg_pool2d(x, (4, 3)).dtype is wg.float16
    assert wg.adaptive_avg_pool2d(x, (4, 3)).shape == (4, 4, 3)
    assert wg.adaptive_max_pool2d(x, 2, return_indices=True)[1].shape == (4, 2, 2)


@pytest.mark.gpu
def test_a_global_mean_is_one_kernel() -> None:
    x = wg.ones((2, 4, 16, 16), device="webgpu")
    text = str(wg.explain(wg.adaptive_avg_pool2d(x + 1, 1)))
    assert text.startswith("1 kernel ")


def test_mistakes() -> None:
    x = wg.ones((1, 4, 6, 6))
    with pytest.raises(ArgumentError, match="one for each of 2 axes"):
        wg.adaptive_avg_pool2d(x, (1, 1, 1))
    with pytest.raises(ArgumentError, match="output_size is 1 or more"):
        wg.adaptive_max_pool2d(x, 0)
    with pytest.raises(ShapeError, match="takes x as"):
        wg.adaptive_avg_pool3d(x[0, 0], 1)
    with pytest.raises(ShapeError, match="nothing to pool"):
        wg.adaptive_avg_pool2d(x[..., :0], 1)

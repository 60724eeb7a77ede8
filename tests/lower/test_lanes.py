"""What lanes compute, here and on lesser processors: windows over padding, concats, elements that a
lane computes together, rows added to computed places.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import config
from webgrad.evaluate.evaluate import clear_plans
from webgrad.native.compiler import is_available
from webgrad.native.processor import chosen
from webgrad.ops import primitives
from webgrad.ops.table import TABLE

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True, params=["", "x86-64-v2"])
def processor(request: pytest.FixtureRequest) -> Iterator[None]:
    """Code for this machine and for lesser ones, where it can run."""
    if not is_available():
        pytest.skip("no native code here: llvmlite is not installed, or switched off")
    clear_plans()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEBGRAD_COMPILE", "always")
        if request.param:
            patch.setenv("WEBGRAD_PROCESSOR", request.param)
        config.reload()
        try:
            chosen()
        except wg.errors.ConfigError:
            pytest.skip("another kind of processor")
        yield
    config.reload()
    clear_plans()


def drawn(*shape: int, dtype: Any = np.float32) -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def on_cpu(array: Array) -> wg.Tensor:
    return wg.asarray(array, device="cpu")


def windows_of(x: Array, kernel: int, stride: int, padding: int, dilation: int, value: float) -> Array:
    """(N, C, windows, elements)"""
    around = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    padded = np.pad(x.astype(np.float64), around, constant_values=value)
    span = dilation * (kernel - 1) + 1
    found = np.lib.stride_tricks.sliding_window_view(padded, (span, span), (2, 3))
    return np.asarray(found[:, :, ::stride, ::stride, ::dilation, ::dilation])


# kernel, stride, padding, dilation, height, width: rows shorter and longer than vectors, windows as large as
# the image, interiors of no, one and several vectors
GEOMETRIES = [
    (3, 1, 1, 1, 5, 56),
    (3, 2, 1, 1, 13, 37),
    (2, 2, 0, 1, 8, 66),
    (7, 1, 3, 1, 7, 33),
    (3, 1, 2, 2, 6, 21),
]


@pytest.mark.parametrize(("kernel", "stride", "padding", "dilation", "height", "width"), GEOMETRIES)
def test_depthwise_windows(
    kernel: int, stride: int, padding: int, dilation: int, height: int, width: int
) -> None:
    x, w = drawn(2, 3, height, width), drawn(3, 1, kernel, kernel)
    found = wg.conv2d(on_cpu(x), on_cpu(w), stride=stride, padding=padding, dilation=dilation, groups=3)
    windows = windows_of(x, kernel, stride, padding, dilation, 0)
    want = np.einsum("nchwij,cij->nchw", windows, w[:, 0].astype(np.float64))
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("kernel", "stride", "padding", "dilation", "height", "width"), GEOMETRIES)
def test_largest_of_windows(
    kernel: int, stride: int, padding: int, dilation: int, height: int, width: int
) -> None:
    if padding > kernel // 2:
        pytest.skip("padding of more than half a window")
    x = drawn(2, 3, height, width)
    x[0, 0, 0, :3] = np.nan, np.inf, -np.inf
    found = wg.max_pool2d(on_cpu(x), kernel, stride=stride, padding=padding, dilation=dilation)
    windows = windows_of(x, kernel, stride, padding, dilation, -np.inf)
    np.testing.assert_array_equal(found.numpy(), windows.max((-1, -2)).astype(np.float32))


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (4, 4, 0)])
@pytest.mark.parametrize("size", [8, 40])
def test_the_gradient_of_the_largest(kernel: int, stride: int, padding: int, size: int) -> None:
    x = RNG.permutation(2 * 3 * size * size).reshape(2, 3, size, size).astype(np.float32)
    counts = windows_of(x, kernel, stride, padding, 1, -np.inf)
    g = drawn(*counts.shape[:4])
    found = wg.grad(lambda x: (wg.max_pool2d(x, kernel, stride=stride, padding=padding) * on_cpu(g)).sum())(
        on_cpu(x)
    )
    want = np.zeros(x.shape)
    flat = counts.reshape(*counts.shape[:4], -1).max(-1)
    for place in np.ndindex(*g.shape):
        hit = np.argwhere(x[place[:2]] == flat[place])[0]
        want[(*place[:2], *hit)] += g[place]
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "int8", "int64"])
@pytest.mark.parametrize(("times", "width"), [(2, 5), (2, 33), (4, 8), (4, 33), (3, 20)])
def test_repeated_elements(dtype: str, times: int, width: int) -> None:
    x = (drawn(6, width) * 9).astype(dtype)
    repeated = wg.where(on_cpu(x) == 0, on_cpu(x), on_cpu(x)).reshape((6, width, 1))
    found = wg.broadcast_to(repeated, (6, width, times)).reshape((6, width * times)) * 1
    np.testing.assert_array_equal(found.numpy(), (np.repeat(x, times, 1) * 1))


SHAPES = [
    ([(3, 40), (5, 40), (1, 40)], 0),
    ([(3, 40), (3, 9), (3, 17)], 1),
    ([(2, 3, 8), (2, 5, 8), (2, 1, 8)], 1),
    ([(33,), (70,), (8,)], 0),
    ([(1, 5), (7, 5), (2, 5)], 0),
    ([(9, 3), (20, 3), (0, 3)], 0),
]


@pytest.mark.parametrize(("shapes", "axis"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_concats_of_concats(shapes: list[tuple[int, ...]], axis: int, dtype: str) -> None:
    parts = [(drawn(*shape) * 9).astype(dtype) for shape in shapes]
    first, second, third = map(on_cpu, parts)
    inner = wg.concat([first + first, second], axis=axis)
    found = wg.concat([inner, -third], axis=axis)
    want = np.concatenate([parts[0] + parts[0], parts[1], -parts[2]], axis)
    np.testing.assert_array_equal(found.numpy(), want)
    flat = wg.concat([inner, -third], axis=axis).reshape((-1,))
    np.testing.assert_array_equal(flat.numpy(), want.reshape(-1))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize(
    ("rows", "columns", "count"), [(50, 16, 400), (7, 100, 3), (90, 257, 700), (5, 600, 0)]
)
def test_rows_added_in_their_order(dtype: str, rows: int, columns: int, count: int) -> None:
    base, updates = ((drawn(n, columns) * 9).astype(dtype) for n in (rows, count))
    for kind in ("int32", "uint8"):
        low = 0 if kind == "uint8" else -3
        index = RNG.integers(low, min(rows + 3, 100), count).astype(kind)
        want = base.copy()
        np.add.at(want, np.clip(index.astype(np.int64), 0, rows - 1), updates)
        nodes = [on_cpu(each).node for each in (base, index, updates)]
        found = wg.Tensor(primitives.scatter(TABLE["scatter_add"], *nodes))
        np.testing.assert_array_equal(found.numpy(), want)

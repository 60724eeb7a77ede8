"""Pooling against plain loops, on the cpu and on a GPU: every option, special values, places, mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.convolution.windows_reference import pool
from webgrad.errors import ArgumentError, DTypeError, ShapeError

Array = np.ndarray[Any, Any]
# x, kernel, stride, padding, dilation, ceil_mode
CASES: dict[str, tuple[Any, ...]] = {
    "halves": ((2, 3, 8, 8), (2, 2), None, (0, 0), (1, 1), False),
    "overlap": ((1, 2, 9, 8), (3, 3), (2, 2), (1, 1), (1, 1), False),
    "one apart": ((1, 2, 6, 5), (3, 2), (1, 1), (1, 0), (1, 1), False),
    "ceil": ((2, 2, 7, 6), (2, 3), (2, 2), (1, 1), (1, 1), True),
    "ceil beyond the end": ((1, 1, 5, 4), (2, 2), (3, 3), (1, 1), (1, 1), True),
    "ceil, larger than x": ((1, 2, 3, 6), (4, 1), (4, 1), (0, 0), (1, 1), True),
    "dilated": ((1, 2, 9, 9), (3, 2), (2, 1), (1, 1), (2, 3), False),
    "large windows": ((1, 2, 11, 12), (5, 5), (2, 1), (2, 2), (1, 1), False),
    "stride beyond the kernel": ((1, 2, 10, 9), (2, 1), (4, 3), (0, 0), (1, 1), False),
    "one axis": ((2, 3, 11), (4,), (3,), (2,), (1,), True),
    "three axes": ((1, 2, 5, 4, 6), (2, 2, 3), None, (1, 0, 1), (1, 1, 1), False),
    "empty batch": ((0, 3, 4, 4), (2, 2), None, (0, 0), (1, 1), False),
}
ON_GPUS = ("overlap", "ceil", "dilated", "large windows", "one axis", "three axes")
EVERYWHERE = [
    *[pytest.param(name, "cpu") for name in CASES],
    *[pytest.param(name, "webgpu", marks=pytest.mark.gpu) for name in ON_GPUS],
]


def drawn(shape: tuple[int, ...]) -> Array:
    """Whole numbers, so that many are equal, some of them special."""
    generator = np.random.default_rng(len(shape))
    x = generator.integers(-4, 4, shape).astype(np.float32)
    x[generator.random(shape) < 0.1] = -np.inf
    return x


@pytest.mark.parametrize(("name", "device"), EVERYWHERE)
def test_max_pools(name: str, device: str) -> None:
    shape, kernel, stride, padding, dilation, ceil = CASES[name]
    for special in (False, True):
        x = drawn(shape)
        if special:
            x[np.random.default_rng(1).random(shape) < 0.1] = np.nan
        largest, places, *_ = pool(x, kernel, stride or kernel, padding, dilation, ceil)
        function = getattr(wg, f"max_pool{len(kernel)}d")
        data = wg.asarray(x, device=device)
        np.testing.assert_array_equal(
            function(data, kernel, stride, padding, dilation, ceil).numpy(), largest
        )
        values, found = function(data, kernel, stride, padding, dilation, ceil, return_indices=True)
        assert found.dtype is wg.int32
        np.testing.assert_array_equal(values.numpy(), largest)
        np.testing.assert_array_equal(found.numpy(), places)


@pytest.mark.parametrize(("name", "device"), [each for each in EVERYWHERE if each.values[0] != "dilated"])
@pytest.mark.parametrize("include", [True, False])
def test_avg_pools(name: str, device: str, include: bool) -> None:
    shape, kernel, stride, padding, dilation, ceil = CASES[name]
    x = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    _, _, total, inside, near = pool(x, kernel, stride or kernel, padding, dilation, ceil)
    function = getattr(wg, f"avg_pool{len(kernel)}d")
    found = function(wg.asarray(x, device=device), kernel, stride, padding, ceil, include)
    np.testing.assert_allclose(found.numpy(), total / (near if include else inside), rtol=1e-5, atol=1e-5)


def test_a_divisor_of_ones_own() -> None:
    x = wg.arange(16.0).reshape((1, 4, 4))
    np.testing.assert_allclose(
        wg.avg_pool2d(x, 2, divisor_override=8).numpy(), wg.avg_pool2d(x, 2).numpy() / 2
    )


def test_an_infinity_does_not_spread() -> None:
    x = np.zeros((1, 1, 8), np.float32)
    x[0, 0, 0] = np.inf
    assert wg.avg_pool1d(wg.asarray(x), 2).tolist() == [[[np.inf, 0, 0, 0]]]
    assert wg.max_pool1d(wg.asarray(-x), 2, padding=1).tolist() == [[[-np.inf, 0, 0, 0, 0]]]


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("dtype", [wg.float16, wg.bfloat16, wg.int8, wg.uint32], ids=str)
def test_dtypes(dtype: wg.DType, device: str) -> None:
    x = (np.arange(70) * 37 % 50).reshape(1, 2, 5, 7).astype(dtype.numpy)
    data = wg.asarray(x, device=device)
    largest, places, total, *_ = pool(x, (2, 3), (1, 2), (1, 1), (1, 1), False)
    values, found = wg.max_pool2d(data, (2, 3), (1, 2), 1, return_indices=True)
    assert values.dtype is dtype
    np.testing.assert_array_equal(values.numpy().astype(np.float64), largest)
    np.testing.assert_array_equal(found.numpy(), places)
    if dtype.kind == "f":
        mean = wg.avg_pool2d(data, (2, 3), (1, 2), 1)
        assert mean.dtype is dtype
        np.testing.assert_allclose(mean.numpy().astype(np.float64), total / 6, rtol=2**-7)


@pytest.mark.parametrize("stride", [None, 1])
def test_large_pools_go_by_blocks(stride: int | None) -> None:
    x = np.random.default_rng(4).normal(size=(3, 16, 40, 42)).astype(np.float32)
    step = stride or 2
    view = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))[:, :, ::step, ::step]
    data = wg.asarray(x, device="cpu")
    np.testing.assert_array_equal(wg.max_pool2d(data, 2, stride).numpy(), view.max((4, 5)))
    np.testing.assert_allclose(
        wg.avg_pool2d(wg.relu(data), 2, stride).numpy(), np.maximum(view, 0).mean((4, 5)), rtol=1e-5
    )


@pytest.mark.gpu
def test_a_pool_is_one_kernel_with_what_is_before_and_after_it() -> None:
    x = wg.asarray(drawn((1, 4, 8, 8)), device="webgpu")
    texts = [
        str(wg.explain(wg.max_pool2d(wg.relu(x), 3, 2, 1) * 2)),
        str(wg.explain(wg.avg_pool2d(x, 3, 2, 1, count_include_pad=False))),
        str(wg.explain(wg.max_pool2d(x, 3, 2, 1, return_indices=True)[1])),
    ]
    assert [text.partition(" on ")[0] for text in texts] == ["1 kernel"] * 3


def test_without_a_batch() -> None:
    x = wg.asarray(drawn((3, 6, 6)))
    assert wg.max_pool2d(x, 2).shape == (3, 3, 3)
    assert [each.shape for each in wg.max_pool2d(x, 2, return_indices=True)] == [(3, 3, 3)] * 2
    assert wg.avg_pool1d(x[0], 2).shape == (6, 3)


X = np.zeros((1, 4, 6, 6), np.float32)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"x": X[0, 0]}, ShapeError, r"max_pool2d takes x as .*not \(6, 6\)"),
        ({"kernel_size": 0}, ArgumentError, "kernel_size is 1 or more"),
        ({"kernel_size": (2, 2, 2)}, ArgumentError, "one for each of 2 axes"),
        ({"kernel_size": 7}, ShapeError, r"kernel of \(7, 7\) does not fit into \(6, 6\)"),
        ({"padding": 2}, ArgumentError, "more than half"),
        ({"stride": -1}, ArgumentError, "stride is 1 or more"),
        ({"x": X > 0}, DTypeError, "max_pool2d is not offered for bool"),
    ],
)
def test_mistakes(options: dict[str, Any], error: type[Exception], words: str) -> None:
    arguments: dict[str, Any] = {"x": X, "kernel_size": 3} | options
    with pytest.raises(error, match=words):
        wg.max_pool2d(wg.asarray(arguments.pop("x")), **arguments)


def test_mistakes_of_means() -> None:
    with pytest.raises(DTypeError, match="avg_pool2d is not offered for int32"):
        wg.avg_pool2d(wg.ones((1, 4, 4), dtype=wg.int32), 2)
    with pytest.raises(ArgumentError, match="divisor_override is not 0"):
        wg.avg_pool2d(wg.asarray(X), 2, divisor_override=0)

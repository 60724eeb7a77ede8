"""Gradients of pooling against plain loops: the first largest element, or all elements, of every window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.convolution.windows_reference import pool
from tests.functions.devices import place

Array = np.ndarray[Any, Any]
Sides = tuple[int, ...]
# the shape of x, kernel, stride, padding, dilation, ceil_mode
CASES: dict[str, tuple[Sides, Sides, Sides, Sides, Sides, bool]] = {
    "side by side": ((2, 3, 8, 8), (2, 2), (2, 2), (0, 0), (1, 1), False),
    "odd sizes": ((2, 2, 7, 9), (2, 3), (2, 3), (0, 0), (1, 1), False),
    "side by side, padded": ((1, 2, 9, 7), (2, 3), (2, 3), (1, 1), (1, 1), False),
    "overlapping": ((2, 2, 9, 10), (3, 3), (2, 2), (1, 1), (1, 1), False),
    "one apart": ((1, 2, 6, 7), (3, 2), (1, 1), (1, 0), (1, 1), False),
    "rounded up": ((1, 2, 9, 11), (3, 2), (2, 3), (1, 0), (1, 1), True),
    "dilated": ((1, 2, 11, 10), (3, 2), (2, 2), (1, 1), (2, 3), True),
    "with gaps": ((1, 2, 11, 10), (1, 2), (3, 4), (0, 0), (1, 1), False),
    "all": ((2, 2, 5, 5), (5, 5), (5, 5), (0, 0), (1, 1), False),
    "line": ((2, 3, 12), (3,), (2,), (1,), (1,), True),
    "long windows": ((1, 2, 60), (40,), (3,), (2,), (1,), False),
    "volume": ((1, 2, 5, 4, 6), (2, 3, 2), (2, 1, 2), (0, 1, 1), (1, 1, 1), False),
    "empty batch": ((0, 2, 6, 6), (2, 2), (2, 2), (0, 0), (1, 1), False),
}
ON_GPUS = ("side by side", "overlapping", "dilated")
EVERYWHERE = [
    *[pytest.param(name, "cpu") for name in CASES],
    *[pytest.param(name, "software", marks=pytest.mark.gpu) for name in ON_GPUS],
    pytest.param("overlapping", "discrete", marks=pytest.mark.gpu),
]


def drawn(*shape: int) -> Array:
    """With few different values, so that windows have several that are equal; some have nothing but -inf."""
    values = np.random.default_rng(sum(shape)).integers(-3, 3, shape).astype(np.float32)
    values[values == -3] = -np.inf
    values[:, :1] = np.where(values[:, :1] < 2, -np.inf, values[:, :1])
    return values


@pytest.mark.parametrize("return_indices", [False, True])
@pytest.mark.parametrize(("name", "kind"), EVERYWHERE)
def test_max(name: str, kind: str, return_indices: bool) -> None:
    shape, kernel, stride, padding, dilation, ceil = CASES[name]
    values = drawn(*shape)
    _, places, *_ = pool(values, kernel, stride, padding, dilation, ceil)
    g = np.asarray(np.random.default_rng(1).normal(size=places.shape), np.float32)
    expected = np.zeros((*shape[:2], int(np.prod(shape[2:]))))
    for at in np.ndindex(*places.shape):
        expected[(*at[:2], places[at])] += g[at]
    x = place(kind, values).requires_grad_()
    function = getattr(wg, f"max_pool{len(kernel)}d")
    result = function(x, kernel, stride, padding, dilation, ceil, return_indices)
    (result[0] if return_indices else result).backward(place(kind, g))
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), expected.reshape(shape), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize(("name", "kind"), EVERYWHERE)
def test_average(name: str, kind: str, include: bool) -> None:
    shape, kernel, stride, padding, dilation, ceil = CASES[name]
    if set(dilation) != {1}:
        return
    *_, inside, near = pool(drawn(*shape), kernel, stride, padding, dilation, ceil)
    g = np.random.default_rng(1).standard_normal(inside.shape, np.float32)
    share = g / (near if include else inside)
    expected = np.zeros(shape)
    for at in np.ndindex(*inside.shape):
        spans = [
            slice(max(0, window * step - around), max(0, window * step - around + size))
            for window, step, around, size in zip(at[2:], stride, padding, kernel, strict=True)
        ]
        expected[(*at[:2], *spans)] += share[at]
    x = place(kind, drawn(*shape)).requires_grad_()
    function = getattr(wg, f"avg_pool{len(kernel)}d")
    function(x, kernel, stride, padding, ceil_mode=ceil, count_include_pad=include).backward(place(kind, g))
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_the_first_of_equal_ones_gets_it() -> None:
    x = wg.asarray([[[0.0, 5.0, 5.0, 5.0], [5.0, 0.0, 5.0, 5.0]]]).requires_grad_()
    wg.max_pool2d(x, 2).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[[0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]]


def test_adaptive_windows_side_by_side() -> None:
    values = drawn(2, 2, 6, 4)
    x, y = wg.asarray(values).requires_grad_(), wg.asarray(values).requires_grad_()
    wg.adaptive_max_pool2d(x, (2, 2)).sum().backward()
    wg.max_pool2d(y, (3, 2)).sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    assert x.grad.tolist() == y.grad.tolist()


def test_large_gradients_stay_where_they_belong() -> None:
    x = wg.asarray([[[1.0, 2.0, 4.0, 3.0]]]).requires_grad_()
    wg.max_pool1d(x, 2).backward(wg.asarray([[[np.inf, np.nan]]]))
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), [[[0, np.inf, np.nan, 0]]])


def test_second_derivatives() -> None:
    """Both are linear in the gradient that comes in; of x itself a pool has none."""
    x = wg.asarray(np.random.default_rng(2).normal(size=(1, 1, 6, 6)), device="cpu")
    for function in (lambda x: wg.max_pool2d(x, 3, 2, 1), lambda x: wg.avg_pool2d(x, 3, 2, 1)):
        slope = wg.grad(lambda x, f=function: (f(x) ** 3).sum())
        found = wg.grad(lambda x, s=slope: (s(x) ** 2).sum())(x).numpy()
        way = np.random.default_rng(3).normal(size=x.shape)
        ends = [
            (slope(x + sign * 1e-5 * wg.asarray(way, device="cpu")) ** 2).sum().item() for sign in (1, -1)
        ]
        np.testing.assert_allclose((found * way).sum(), (ends[0] - ends[1]) / 2e-5, rtol=1e-6)


def test_what_was_put_back_is_taken_again() -> None:
    x = wg.asarray([[[1.0, 2.0], [3.0, 4.0]]]).requires_grad_()
    places = wg.asarray([[[1, 3], [8, 10]]])
    result = wg.max_unpool2d(x, places, 2)
    result.backward(wg.arange(16.0).reshape((1, 4, 4)))
    assert x.grad is not None
    assert x.grad.tolist() == [[[1.0, 3.0], [8.0, 10.0]]]


@pytest.mark.gpu
@pytest.mark.parametrize(("kernel", "stride"), [(2, 2), (3, 2)])
def test_nothing_is_larger_than_the_images(kernel: int, stride: int) -> None:
    """The places of the largest, then their gradients: two kernels, and no patches between them."""
    x = place("software", drawn(2, 3, 16, 16))
    explanation = wg.explain(wg.grad(lambda x: wg.max_pool2d(x, kernel, stride).sum())(x))
    assert len(explanation.kernels) == 2
    assert max(each.bytes_written for each in explanation.kernels) == 4 * x.size

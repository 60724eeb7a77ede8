"""Gradients at zeros, ties and NaN beyond the table of kinks (`kinks.py`), and in half precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg

INF = math.inf


def gradient(function: Callable[[Any], Any], x: Any, **more: Any) -> Any:
    """By all elements of x."""
    return wg.grad(lambda x: function(x).sum())(wg.asarray(x, **more)).tolist()


def asking(x: wg.Tensor) -> Any:
    """A tensor that asks for a gradient."""
    return x.requires_grad_()


@pytest.mark.parametrize(
    ("function", "x", "wanted"),
    [
        (wg.prod, [0.0, 2.0, 3.0], [6, 0, 0]),
        (wg.prod, [0.0, 2.0, 0.0], [0, 0, 0]),
        (lambda x: wg.cumprod(x, axis=0), [2.0, 0.0, 3.0], [1, 8, 0]),
        (lambda x: x**2, [0.0, 2.0], [0, 4]),
        (lambda x: x * wg.abs(x), [-1.0, -0.0, 0.0, 2.0], [2, 0, 0, 4]),
        (lambda x: x**x, [2.0], pytest.approx([4 * (1 + math.log(2))])),
    ],
)
def test_factors_that_are_zero(function: Any, x: Any, wanted: Any) -> None:
    assert gradient(function, x) == wanted


def test_two_that_are_equal_share_the_gradient() -> None:
    a, b = asking(wg.asarray([1.0, 2.0])), asking(wg.asarray([1.0, 3.0]))
    wg.maximum(a, b).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([0.5, 0.0], [0.5, 1.0])


def test_a_number_that_asks_for_a_gradient_is_no_constant() -> None:
    """The host knows it, but rules must not take it for fixed."""
    a, b = asking(wg.full((), 2.0)), asking(wg.full((), 2.0))
    wg.maximum(a, b).backward()
    assert (a.grad.item(), b.grad.item()) == (0.5, 0.5)
    mixed = wg.grad(lambda b: wg.grad(lambda a: a**b)(wg.asarray(2.0)))(wg.full((), 3.0))
    assert mixed.item() == pytest.approx(4 + 12 * math.log(2))


def test_scatter_max_shares_among_all_that_are_largest() -> None:
    base = asking(wg.asarray([[2.0], [5.0]]))
    updates = asking(wg.asarray([[2.0], [2.0], [1.0]]))
    wg.index_max(base, np.array([0, 0, 1]), updates).sum().backward()
    assert base.grad.tolist() == [[pytest.approx(1 / 3)], [1.0]]
    assert updates.grad.tolist() == [[pytest.approx(1 / 3)], [pytest.approx(1 / 3)], [0.0]]


def test_scatter_set_counts_only_what_stayed() -> None:
    base, updates = asking(wg.zeros((3,))), asking(wg.asarray([1.0, 2.0, 3.0]))
    wg.index_set(base, np.array([1, 1, 0]), updates).sum().backward()
    assert (base.grad.tolist(), updates.grad.tolist()) == ([0, 0, 1], [0, 1, 1])


def test_an_index_of_a_small_type_reaches_beyond_it_in_the_gradient() -> None:
    """The last place of a long axis does not fit the index's type."""
    x, index = asking(wg.zeros((300,))), wg.asarray(np.array([3, 3, 100], np.int8))
    (wg.take(x, index, axis=0).sum() + wg.take_along_axis(x, index[:1], axis=0).sum()).backward()
    assert {at: value for at, value in enumerate(x.grad.tolist()) if value} == {3: 3.0, 100: 1.0}


# NaN


def test_a_masked_nan_stays_out_if_it_is_masked_before() -> None:
    """As everywhere: 0 times NaN is NaN, so what is masked must be masked before it is computed as well."""
    x = [-1.0, 0.0, 2.0]
    safe = gradient(lambda x: wg.where(x > 0, wg.log(wg.where(x > 0, x, 1.0)), 0.0), x)
    assert safe == [0.0, 0.0, 0.5]


def test_a_masked_logarithm_has_no_nan() -> None:
    """The gradient of log is g / x, and g is 0 where the mask is: only 0 / 0 is not a number."""
    found = gradient(lambda x: wg.where(x > 0, wg.log(x), 0.0), [-1.0, 2.0])
    assert found == [0.0, 0.5]
    assert math.isnan(gradient(lambda x: wg.where(x > 0, wg.log(x), 0.0), [0.0])[0])


def test_nan_goes_where_it_belongs_and_no_further() -> None:
    x = asking(wg.asarray([[1.0, math.nan], [2.0, 3.0]]))
    (x * x).sum(axis=1).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[2.0, math.nan], [4.0, 6.0]])


def test_certain_probabilities_have_finite_gradients() -> None:
    """What a sigmoid gives far out is 0 or 1 exactly, where logarithms end."""
    x = asking(wg.asarray([-200.0, 200.0, 200.0]))
    loss = wg.binary_cross_entropy(wg.sigmoid(x), wg.asarray([1.0, 0.0, 1.0]), reduction="sum")
    loss.backward()
    assert loss.item() == 200.0
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


# Half precision


@pytest.mark.parametrize("dtype", [wg.float16, wg.bfloat16], ids=str)
def test_gradients_have_the_dtype_of_their_tensor(dtype: wg.DType) -> None:
    x = asking(wg.asarray([1.0, 2.0, 3.0], dtype=dtype))
    w = asking(wg.asarray([[1.0, 2.0, 3.0], [0.5, 0.5, 0.5]]))
    (w @ x.astype(wg.float32)).sum().backward()
    assert (x.grad.dtype, w.grad.dtype) == (dtype, wg.float32)
    assert x.grad.tolist() == [1.5, 2.5, 3.5]
    y = asking(wg.asarray([1.0, 2.0], dtype=dtype))
    (wg.softmax(y) * y + y.mean() + y.take(wg.asarray([0, 0, 1])).sum()).sum().backward()
    assert y.grad.dtype is dtype


def test_half_precision_overflows_to_infinity() -> None:
    x = asking(wg.asarray([300.0], dtype=wg.float16))
    (x.astype(wg.float32) * 1e6).sum().backward()
    assert x.grad.tolist() == [INF]


def test_many_small_gradients_of_half_precision_are_added_in_float32() -> None:
    x = asking(wg.ones((1,), dtype=wg.float16))
    wg.take(x, wg.zeros((5000,), dtype=wg.int32), axis=0).sum(dtype=wg.float32).backward()
    assert x.grad.tolist() == [5000.0]
    y = asking(wg.ones((1,), dtype=wg.float16))
    wg.broadcast_to(y, (5000,)).astype(wg.float32).sum().backward()
    assert y.grad.tolist() == [5000.0]

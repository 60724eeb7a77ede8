"""PyTorch's names of functions: what they compute, and what they refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import webgrad as wg

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
SAME: dict[str, tuple[Any, Any]] = {
    "cat": (lambda x: wg.cat([x, x], 1), np.concatenate([X, X], 1)),
    "unbind": (lambda x: x.unbind(1)[2], X[:, 2]),
    "amax": (lambda x: x.amax(1), X.max(1)),
    "amin": (lambda x: wg.amin(x, (0, 1)), X.min()),
    "sub": (lambda x: x.sub(2), X - 2),
    "mul": (lambda x: x.mul(x), X * X),
    "div": (lambda x: x.div(4), X / 4),
    "neg": (lambda x: x.neg(), -X),
    "pow": (lambda x: x.pow(2), X**2),
    "eq": (lambda x: x.eq(1), X == 1),
    "ne": (lambda x: x.ne(1), X != 1),
    "gt": (lambda x: x.gt(1), X > 1),
    "ge": (lambda x: x.ge(1), X >= 1),
    "lt": (lambda x: x.lt(1), X < 1),
    "le": (lambda x: wg.le(x, 1), X <= 1),
    "mm": (lambda x: x.mm(x.t()), X @ X.T),
    "bmm": (lambda x: wg.bmm(x[None], x.T[None]), (X @ X.T)[None]),
    "gather": (lambda x: x.gather(1, wg.asarray([[3, 0], [1, 1]])), [[-2, -5], [0, 0]]),
    "index_select": (lambda x: x.index_select(0, wg.asarray([2, 0])), X[[2, 0]]),
    "masked_fill": (lambda x: x.masked_fill(x > 0, -1.5), np.where(X > 0, np.float32(-1.5), X)),
    "masked_fill, broadcast": (
        lambda x: wg.masked_fill(x, wg.asarray([True, False, True, False]), float("-inf")),
        np.where([True, False, True, False], -np.inf, X),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_functions(name: str) -> None:
    function, want = SAME[name]
    np.testing.assert_array_equal(function(wg.asarray(X)).numpy(), want)


def test_gradients_go_through_them() -> None:
    x = wg.tensor(X, requires_grad=True)
    index = wg.asarray([[3, 3], [1, 0]])
    (x.gather(1, index) * 2 + x.masked_fill(x > 0, 0.0).sum()).sum().backward()
    want = np.where(X > 0, 0.0, 4.0)
    np.add.at(want, (np.array([[0], [1]]), index.numpy()), 2.0)
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), want)


def test_a_filled_tensor_keeps_its_dtype() -> None:
    assert wg.masked_fill(wg.asarray(X).half(), wg.asarray(X) > 0, -1e9).dtype is wg.float16
    assert wg.masked_fill(wg.asarray(X).half(), wg.asarray(X) > 0, wg.asarray(2.0)).dtype is wg.float16


def test_what_does_not_fit_is_refused() -> None:
    x = wg.asarray(X)
    with pytest.raises(wg.ShapeError, match=r"gather along axis 1: an index of shape \(4, 1\) for x"):
        x.gather(1, wg.zeros((4, 1), dtype=wg.int32))
    with pytest.raises(wg.ShapeError, match="it must have as many axes"):
        x.gather(0, wg.zeros(3, dtype=wg.int32))
    with pytest.raises(
        wg.ShapeError, match=r"mm of shapes \(3, 4\) and \(1, 4, 3\): .* two tensors of 2 axes"
    ):
        x.mm(x.T[None])
    with pytest.raises(wg.ShapeError, match="as many matrices each"):
        wg.bmm(wg.ones((2, 3, 4)), wg.ones((1, 4, 3)))
    with pytest.raises(wg.IndexingError, match="use integers"):
        x.index_select(0, [0.5])


@pytest.mark.parametrize("value", [2, 0.5, True, wg.asarray(3)])
def test_masked_fill_of_bools_gives_bools(value: Any) -> None:
    found = wg.masked_fill(wg.asarray([False, False]), wg.asarray([True, False]), value)
    assert found.dtype is wg.bool
    assert found.tolist() == [True, False]


def test_masked_fill_stays_in_the_dtype() -> None:
    x, mask = wg.asarray([1, 2]), wg.asarray([True, False])
    assert wg.masked_fill(x, mask, 7.0).tolist() == [7, 2]
    assert wg.masked_fill(x, mask, np.float64(7.0)).dtype is x.dtype
    for value in (math.inf, 1 << 40, 1j):
        with pytest.raises(wg.DTypeError, match=r"masked_fill: .* int32"):
            wg.masked_fill(x, mask, value)


def test_pairs_and_products() -> None:
    values = np.array([[1, 5, -2], [4, 0, 3]], np.float32)
    x = wg.asarray(values, device="cpu")
    for pair, first, second in (
        (wg.std_mean(x, dim=1, unbiased=True), values.std(1, ddof=1), values.mean(1)),
        (wg.var_mean(x, 0, keepdim=True), values.var(0, keepdims=True), values.mean(0, keepdims=True)),
        (wg.aminmax(x, dim=0), values.min(0), values.max(0)),
    ):
        np.testing.assert_allclose(pair[0].numpy(), first, rtol=1e-6)
        np.testing.assert_allclose(pair[1].numpy(), second, rtol=1e-6)
    np.testing.assert_allclose(wg.mv(x, x[0]).numpy(), values @ values[0])
    np.testing.assert_allclose(wg.addcmul(x, x, x, value=0.5).numpy(), values + 0.5 * values * values)
    np.testing.assert_allclose(
        wg.addcdiv(x, x, x * x + 1, value=2).numpy(), values + 2 * values / (values**2 + 1)
    )
    with pytest.raises(wg.ShapeError, match="mv of shapes"):
        wg.mv(x, x)


def test_bucketize() -> None:
    edges = wg.asarray(np.array([0, 1, 2], np.float32), device="cpu")
    x = wg.asarray(np.array([[-1, 0, 0.5], [1, 2, 9]], np.float32), device="cpu")
    assert wg.bucketize(x, edges).tolist() == [[0, 0, 1], [1, 2, 3]]
    assert wg.bucketize(x, edges, right=True).tolist() == [[0, 1, 1], [2, 3, 3]]

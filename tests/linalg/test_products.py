"""Products, traces and norms against NumPy, on both devices; nothing of them goes through the host."""

from __future__ import annotations

import itertools
import math
from typing import Any, cast

import numpy as np
import pytest

import webgrad as wg
from tests.linalg.helpers import BOTH, close, numbers, place
from webgrad import linalg


@BOTH
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_products_on_the_device(kind: str, dtype: Any) -> None:
    a, b = numbers(2, 4, 3, dtype=dtype), numbers(4, 3, dtype=dtype, seed=1)
    square = numbers(2, 3, 3, dtype=dtype)
    x, y, z = place(kind, a), place(kind, b), place(kind, square)
    before = x.device.stats()["host_round_trips"]
    results = [
        (linalg.cross(x, y), np.cross(a, b)),
        (linalg.cross(x.mT, y.mT, axis=-2), np.moveaxis(np.cross(a, b), -1, -2)),
        (linalg.diagonal(x, offset=-1), np.diagonal(a, -1, -2, -1)),
        (linalg.trace(x, offset=1), np.trace(a, 1, -2, -1)),
        (linalg.matrix_power(z, 5), np.linalg.matrix_power(square, 5)),
        (linalg.matrix_power(z, 0), np.broadcast_to(np.eye(3, dtype=dtype), (2, 3, 3))),
        (linalg.matmul(x, z), a @ square),
        (linalg.vecdot(x, y), np.sum(np.conj(a) * b, axis=-1)),
        (linalg.outer(y[0], y[1]), np.outer(b[0], b[1])),
        (linalg.tensordot(x, y, axes=((2,), (1,))), np.tensordot(a, b, ((2,), (1,)))),
    ]
    wg.eval([found for found, _ in results])
    assert x.device.stats()["host_round_trips"] == before
    for found, wanted in results:
        close(found, wanted)


@BOTH
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf])
def test_matrix_norms(kind: str, dtype: Any, ord: Any) -> None:
    a = numbers(2, 4, 3, dtype=dtype)
    x = place(kind, a)
    wanted = np.linalg.norm(a, ord, axis=(-2, -1))
    found = linalg.matrix_norm(x, ord=ord)
    assert found.dtype is wg.float32
    close(found, wanted)
    assert linalg.matrix_norm(x, ord=ord, keepdims=True).shape == (2, 1, 1)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 0), (0, 2, 3)])
def test_norms_of_empty_matrices(shape: tuple[int, ...]) -> None:
    x = place("cpu", np.zeros(shape))
    for ord in ("fro", "nuc", 1, 2, math.inf):
        close(linalg.matrix_norm(x, ord=ord), np.zeros(shape[:-2]))


@pytest.mark.parametrize(
    ("shape", "ord", "axis"),
    [
        ((4,), None, None),
        ((2, 3, 4), None, None),
        ((4,), 3, None),
        ((3, 4), 1, None),
        ((2, 3, 4), 1, 1),
        ((2, 3, 4), 2, (0, 2)),
        ((2, 3, 4), None, (2, 0)),
        ((2, 3, 4), "nuc", (-1, 0)),
        ((2, 3, 4), math.inf, (2, 1)),
    ],
)
def test_norm(shape: tuple[int, ...], ord: Any, axis: Any) -> None:
    a = numbers(*shape)
    for keepdims in (False, True):
        wanted = np.linalg.norm(a, ord, axis=axis, keepdims=keepdims)
        close(linalg.norm(place("cpu", a), ord, axis, keepdims), wanted)


def test_multi_dot() -> None:
    sizes = [7, 2, 9, 3, 8]
    factors = [numbers(*each, seed=at) for at, each in enumerate(itertools.pairwise(sizes))]
    tensors = [place("cpu", each) for each in factors]
    close(linalg.multi_dot(tensors), np.linalg.multi_dot(factors))
    row, column = numbers(7), numbers(8)
    ends = linalg.multi_dot([place("cpu", row), *tensors, place("cpu", column)])
    close(ends, np.linalg.multi_dot([row, *factors, column]))


def test_multi_dot_takes_the_cheapest_order() -> None:
    from webgrad.linalg.products import _cuts

    assert _cuts([10, 100, 5, 50])[0, 2] == 1  # (a b) c: 7,500 multiplications, not 75,000
    assert _cuts([50, 5, 100, 10])[0, 2] == 0


@BOTH
def test_the_gradient_of_the_identity_is_zero(kind: str) -> None:
    x = place(kind, numbers(2, 3, 3)).requires_grad_()
    linalg.matrix_power(x, 0).sum().backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), np.zeros((2, 3, 3)))


@BOTH
def test_integers_where_sums_and_products_are_enough(kind: str) -> None:
    x = place(kind, np.asarray([[1, 2], [3, 4]], np.int32))
    assert linalg.matrix_power(x, 3).tolist() == [[37, 54], [81, 118]]
    assert linalg.trace(x).item() == 5
    three = place(kind, np.asarray([1, 2, 3], np.int32))
    assert linalg.cross(three, three + 1).tolist() == [-1, 2, -1]


def test_halves_stay_halves() -> None:
    x = place("cpu", numbers(3, 3, dtype=np.float16))
    for ord in ("fro", 1, 2):
        found = linalg.matrix_norm(x, ord=ord)
        assert found.dtype is wg.float16
        np.testing.assert_allclose(found.item(), np.linalg.norm(x.numpy().astype(np.float64), ord), rtol=2e-3)
    assert linalg.norm(x).dtype is wg.float16


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: linalg.cross(x, x), wg.ShapeError, "three"),
        (lambda x: linalg.cross(x, x, axis=-3), wg.AxisError, "axis -3"),
        (lambda x: linalg.cross(x, x, axis=cast(Any, "a")), wg.AxisError, "axis 'a'"),
        (lambda x: linalg.cross(x[:1] > 0, x), wg.DTypeError, "bool"),
        (lambda x: linalg.trace(x[0]), wg.ShapeError, "rows and columns"),
        (lambda x: linalg.diagonal(x[0]), wg.ShapeError, "rows and columns"),
        (lambda x: linalg.matrix_power(x, cast(Any, 0.5)), wg.ArgumentError, "integer"),
        (lambda x: linalg.matrix_power(x[:2], 2), wg.ShapeError, "2 rows and 4 columns"),
        (lambda x: linalg.matrix_norm(x, ord=3), wg.ArgumentError, "'nuc'"),
        (lambda x: linalg.matrix_norm(x, ord="max"), wg.ArgumentError, "'max'"),
        (lambda x: linalg.matrix_norm(x.astype(wg.int32)), wg.DTypeError, "astype"),
        (lambda x: linalg.norm(x[None], 1), wg.ShapeError, "which axis"),
        (lambda x: linalg.norm(x, 1, cast(Any, (0, 1, 2))), wg.AxisError, "two for matrices"),
        (lambda x: linalg.multi_dot([x]), wg.ArgumentError, "two tensors"),
        (lambda x: linalg.multi_dot([x, x[:2]]), wg.ShapeError, "multi_dot"),
        (lambda x: linalg.trace(cast(Any, 3.0)), wg.DTypeError, "asarray"),
    ],
)
def test_mistakes(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(place("cpu", numbers(4, 4)))

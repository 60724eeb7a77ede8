"""Triangles from elimination: they give the matrix again, with its pivots; solutions; gradients; edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.linalg.helpers import BOTH, adjoint, check_slope, close, numbers, place, read
from webgrad import linalg

KINDS = pytest.mark.parametrize("dtype", [np.float32, np.complex64])
SHAPES = pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 3, 5), (1, 1), (2, 70, 70)])


@BOTH
@KINDS
@SHAPES
def test_factors_give_the_matrix(kind: str, dtype: Any, shape: tuple[int, ...]) -> None:
    a = numbers(*shape, dtype=dtype)
    for pivot in (True, False):
        b = a if pivot else (a + 20 * np.eye(shape[-2], shape[-1])).astype(dtype)
        p, low, up = read(*linalg.lu(place(kind, b), pivot=pivot))
        least = min(shape[-2:])
        assert (low.shape[-2:], up.shape[-2:]) == ((shape[-2], least), (least, shape[-1]))
        close(p @ low @ up, b, 1e-4)
        np.testing.assert_array_equal(low, np.tril(low))
        np.testing.assert_array_equal(up, np.triu(up))
        if pivot and dtype is np.float32:
            assert np.abs(low).max() <= 1


def test_pivots_are_lapacks() -> None:
    x = place("cpu", np.asarray([[1.0, 2.0], [3.0, 4.0]], np.float32))
    compact, pivots = linalg.lu_factor(x)
    assert pivots.tolist() == [2, 2]
    close(compact, [[3.0, 4.0], [1 / 3, 2 / 3]])
    assert linalg.lu_factor(x, pivot=False).pivots.tolist() == [1, 2]
    singular = linalg.lu_factor(place("cpu", np.zeros((2, 2), np.float32)))
    assert singular.LU.tolist() == [[0, 0], [0, 0]]


@KINDS
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_solutions(dtype: Any, transposed: bool, left: bool) -> None:
    a, b = numbers(2, 4, 4, dtype=dtype), numbers(4, 3, dtype=dtype)
    whole = adjoint(a) if transposed else a
    factors = linalg.lu_factor(place("cpu", a))
    right = b if left else b.T.copy()
    found = linalg.lu_solve(*factors, place("cpu", right), left=left, adjoint=transposed).numpy()
    close(whole @ found if left else found @ whole, np.broadcast_to(right, found.shape), 1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 3, 5)])
def test_gradients(dtype: Any, shape: tuple[int, ...]) -> None:
    check_slope(lambda x: linalg.lu(x)[1:], numbers(*shape, dtype=dtype), order=1 + (shape == (3, 3)))


def test_gradients_of_solutions() -> None:
    a, b = numbers(3, 3, dtype=np.float64), numbers(3, 2, dtype=np.float64)
    check_slope(lambda x, y: linalg.lu_solve(*linalg.lu_factor(x), y), a, b)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 3), (0, 2, 3)])
def test_empty_matrices(shape: tuple[int, ...]) -> None:
    p, low, up = linalg.lu(place("cpu", np.zeros(shape, np.float32)))
    least = min(shape[-2:])
    assert p.shape == (*shape[:-1], shape[-2])
    assert (low.shape, up.shape) == ((*shape[:-1], least), (*shape[:-2], least, shape[-1]))


def test_what_does_not_fit() -> None:
    with pytest.raises(wg.ShapeError, match="lu_factor"):
        linalg.lu_factor(wg.ones(3))
    with pytest.raises(wg.DTypeError, match="lu_factor"):
        linalg.lu_factor(wg.ones((3, 3), dtype=wg.int32))

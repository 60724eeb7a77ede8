"""Triangular systems on either side, their gradients, zeros on the diagonal; Cholesky's solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.linalg.helpers import BOTH, adjoint, check_slope, close, numbers, place, positive
from webgrad import linalg

KINDS = pytest.mark.parametrize("dtype", [np.float32, np.complex64])
UPPER = pytest.mark.parametrize("upper", [False, True])


def triangle(a: Any, upper: bool, unit: bool) -> Any:
    one = np.triu(a, 1) if upper else np.tril(a, -1)
    diagonal = np.ones(a.shape[-1]) if unit else np.diagonal(a, axis1=-2, axis2=-1)
    return one + diagonal[..., None] * np.eye(a.shape[-1])


@BOTH
@KINDS
@UPPER
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_solutions(kind: str, dtype: Any, upper: bool, unit: bool, left: bool) -> None:
    a = numbers(2, 5, 5, dtype=dtype) + 3 * np.eye(5, dtype=dtype)
    b = numbers(5, 3, dtype=dtype) if left else numbers(3, 5, dtype=dtype)
    found = linalg.solve_triangular(
        place(kind, a), place(kind, b), upper=upper, left=left, unitriangular=unit
    ).numpy()
    whole = triangle(a, upper, unit)
    close(whole @ found if left else found @ whole, np.broadcast_to(b, found.shape), 1e-3)


@UPPER
def test_long_triangles(upper: bool) -> None:
    a = numbers(100, 100, dtype=np.float64) / 100 + np.eye(100)
    b = numbers(100, 2, dtype=np.float64)
    found = linalg.solve_triangular(place("cpu", a), place("cpu", b), upper=upper).numpy()
    close(triangle(a, upper, False) @ found, b, 1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize(("upper", "unit", "left"), [(0, 0, 1), (1, 1, 1), (1, 0, 0)])
def test_gradients(dtype: Any, upper: int, unit: int, left: int) -> None:
    a = numbers(3, 3, dtype=dtype) + 3 * np.eye(3, dtype=dtype)
    b = numbers(2, 3, 3, dtype=dtype)
    check_slope(
        lambda x, y: linalg.solve_triangular(
            x, y, upper=bool(upper), left=bool(left), unitriangular=bool(unit)
        ),
        a,
        b,
    )


@BOTH
def test_a_zero_on_the_diagonal_is_no_error(kind: str) -> None:
    a = place(kind, np.asarray([[0.0, 0.0], [1.0, 1.0]], np.float32))
    found = linalg.solve_triangular(a, place(kind, np.ones((2, 1), np.float32)), upper=False)
    assert found[0].item() == np.inf


@KINDS
@UPPER
def test_by_choleskys_factor(dtype: Any, upper: bool) -> None:
    a, b = positive(2, 3, 3, dtype=dtype), numbers(3, 2, dtype=dtype)
    factor = linalg.cholesky(place("cpu", a), upper=upper)
    close(a @ linalg.cholesky_solve(place("cpu", b), factor, upper=upper).numpy(), np.stack([b, b]), 1e-4)
    close(linalg.cholesky_inverse(factor, upper=upper), np.linalg.inv(a), 1e-4)
    inverse = linalg.cholesky_inverse(factor, upper=upper).numpy()
    close(inverse, adjoint(inverse))


def test_results_with_info() -> None:
    a = np.stack([np.diag([1.0, 2.0, 3.0]), np.diag([1.0, -2.0, 3.0]), np.diag([1.0, 2.0, 0.0])])
    x = place("cpu", a.astype(np.float32))
    factor, info = linalg.cholesky_ex(x)
    assert info.tolist() == [0, 2, 3]
    close(factor[0], np.sqrt(a[0]))
    inverse, info = linalg.inv_ex(x)
    assert info.tolist() == [0, 0, 3]
    close(inverse[:2], np.linalg.inv(a[:2]))
    assert np.isnan(inverse[2].numpy()).all()
    solution, info = linalg.solve_ex(x, wg.ones((3, 1)))
    assert info.tolist() == [0, 0, 3]
    close(solution[0, :, 0], 1 / np.arange(1, 4))


def test_what_does_not_fit() -> None:
    with pytest.raises(wg.ShapeError, match="solve_triangular"):
        linalg.solve_triangular(wg.ones((3, 3)), wg.ones((2, 1)), upper=True)
    with pytest.raises(wg.ShapeError, match="square"):
        linalg.solve_triangular(wg.ones((3, 2)), wg.ones((3, 1)), upper=True)

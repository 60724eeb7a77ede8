"""Functions of whole matrices against their definitions; factors of low rank; gradients of eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.linalg.helpers import BOTH, check_slope, close, numbers, place
from webgrad import linalg


def exponential(a: Any) -> Any:
    """By eigenvalues."""
    values, vectors = np.linalg.eig(a.astype(np.complex128))
    return (vectors * np.exp(values)[..., None, :]) @ np.linalg.inv(vectors)


@BOTH
def test_exponentials_of_matrices(kind: str) -> None:
    a = numbers(4, 3, 3) * np.asarray([0.0, 0.3, 1.0, 4.0], np.float32)[:, None, None]
    wanted = exponential(a + 1e-7).real
    found = linalg.matrix_exp(place(kind, a)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())
    close(found[0], np.eye(3))


def test_exponentials_are_exact_in_double_precision() -> None:
    a = numbers(3, 3, dtype=np.complex128) * 3
    np.testing.assert_allclose(linalg.matrix_exp(place("cpu", a)).numpy(), exponential(a), rtol=1e-11)
    check_slope(linalg.matrix_exp, numbers(3, 3, dtype=np.float64), order=1)
    assert linalg.matrix_exp(wg.zeros((0, 2, 2))).shape == (0, 2, 2)


@pytest.mark.parametrize("p", [None, 2, -2, "fro", "nuc", 1, -1, np.inf, -np.inf])
def test_condition(p: Any) -> None:
    a = numbers(2, 3, 3)
    close(linalg.cond(place("cpu", a), p), np.linalg.cond(a, p), 1e-4)


def test_condition_of_singular_matrices() -> None:
    x = place("cpu", np.diag([1.0, 0.0]).astype(np.float32))
    assert linalg.cond(x, 1).item() == linalg.cond(x).item() == np.inf
    assert linalg.cond(wg.zeros((2, 0, 0))).tolist() == [0, 0]


def test_tensors_as_matrices() -> None:
    a = numbers(2, 3, 6)
    close(linalg.tensorinv(place("cpu", a)), np.linalg.tensorinv(a), 1e-4)
    b = numbers(2, 3)
    close(linalg.tensorsolve(place("cpu", a), place("cpu", b)), np.linalg.tensorsolve(a, b), 1e-4)
    c = numbers(2, 6, 3)
    found = linalg.tensorsolve(place("cpu", c), place("cpu", numbers(2, 3)), (1,))
    close(found, np.linalg.tensorsolve(c, numbers(2, 3), (1,)), 1e-4)
    with pytest.raises(wg.ShapeError, match="tensorinv"):
        linalg.tensorinv(wg.ones((2, 3)), 1)
    with pytest.raises(wg.ArgumentError, match="positive integer"):
        linalg.tensorinv(wg.ones((2, 3)), 0)
    with pytest.raises(wg.ShapeError, match="tensorsolve"):
        linalg.tensorsolve(wg.ones((2, 3)), wg.ones(3))


@pytest.mark.parametrize("shape", [(9, 6), (6, 9), (2, 8, 8)])
def test_low_rank(shape: tuple[int, ...]) -> None:
    left, right = numbers(*shape[:-1], 3), numbers(*shape[:-2], 3, shape[-1])
    a = (left @ right).astype(np.float32)
    u, s, vh = linalg.svd_lowrank(place("cpu", a), 4)
    close((u.numpy() * s.numpy()[..., None, :]) @ vh.numpy(), a, 1e-4)
    close(s, np.linalg.svd(a, compute_uv=False)[..., :4], 1e-4)
    u, s, vh = linalg.pca_lowrank(place("cpu", a))
    away = a - a.mean(-2, keepdims=True)
    close((u.numpy() * s.numpy()[..., None, :]) @ vh.numpy(), away, 1e-4)
    with pytest.raises(wg.ArgumentError, match="svd_lowrank"):
        linalg.svd_lowrank(wg.ones((2, 3)), 3)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_gradients_of_eigenvalues(dtype: Any) -> None:
    a = numbers(4, 4, dtype=dtype)
    check_slope(linalg.eigvals, a, order=1)

    def turned(x: wg.Tensor) -> Any:  # without the vectors' phases
        values, vectors = linalg.eig(x)
        return values, wg.abs(vectors)

    check_slope(turned, a, order=2 if dtype is np.float64 else 1)


def test_what_counts_as_zero() -> None:
    x = place("cpu", np.diag([4.0, 1.0, 0.01]).astype(np.float32))
    assert linalg.matrix_rank(x, atol=0.5).item() == 2
    assert linalg.matrix_rank(x, atol=0.5, rtol=0.5).item() == 1
    close(linalg.pinv(x, atol=0.5), np.diag([0.25, 1.0, 0.0]))
    lower = place("cpu", np.asarray([[1.0, 9.0], [0.5, 2.0]], np.float32))
    close(linalg.pinv(lower, hermitian=True), np.linalg.inv([[1.0, 0.5], [0.5, 2.0]]))
    assert linalg.matrix_rank(lower, hermitian=True).item() == 2

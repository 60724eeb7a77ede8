"""Reflections: Q from them is NumPy's, products with it, and the gradients of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.linalg.helpers import adjoint, check_slope, close, numbers, place
from webgrad import linalg

KINDS = pytest.mark.parametrize("dtype", [np.float32, np.complex64])


@KINDS
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (2, 4, 4)])
def test_products_of_reflections_are_the_orthogonal_factor(dtype: Any, shape: tuple[int, ...]) -> None:
    a = numbers(*shape, dtype=dtype)
    compact, tau = linalg.geqrf(place("cpu", a))
    found = linalg.householder_product(compact, tau).numpy()
    q, r = np.linalg.qr(a)
    close(found, q)
    close(np.triu(compact.numpy())[..., : shape[-1], :], r, 1e-4)
    whole, _ = np.linalg.qr(a, "complete")
    b = numbers(*shape[:-2], shape[-2], 2, dtype=dtype)
    for transpose in (False, True):
        by = adjoint(whole) if transpose else whole
        close(linalg.ormqr(compact, tau, place("cpu", b), transpose=transpose), by @ b, 1e-4)
        turned = place("cpu", np.ascontiguousarray(b.swapaxes(-1, -2)))
        beside = linalg.ormqr(compact, tau, turned, left=False, transpose=transpose)
        close(beside, b.swapaxes(-1, -2) @ by, 1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_gradients(dtype: Any) -> None:
    a, tau, b = numbers(4, 3, dtype=dtype), numbers(3, dtype=dtype), numbers(4, 2, dtype=dtype)
    check_slope(linalg.householder_product, a, tau, order=1)
    check_slope(lambda x, y, z: linalg.ormqr(x, y, z, transpose=True), a, tau, b, order=1)


def test_what_does_not_fit() -> None:
    with pytest.raises(wg.ShapeError, match="householder_product"):
        linalg.householder_product(wg.ones((2, 3)), wg.ones(2))
    with pytest.raises(wg.ShapeError, match="tau"):
        linalg.householder_product(wg.ones((3, 2)), wg.ones(3))
    with pytest.raises(wg.ShapeError, match="ormqr"):
        linalg.ormqr(wg.ones((3, 2)), wg.ones(2), wg.ones((2, 2)))

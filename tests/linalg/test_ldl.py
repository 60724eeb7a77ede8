"""Factors of symmetric matrices: solutions by them, blocks of two rows, and LAPACK's pivots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.linalg.helpers import adjoint, close, numbers, place
from webgrad import linalg


@pytest.mark.parametrize(
    ("dtype", "hermitian"), [(np.float64, False), (np.complex128, False), (np.complex128, True)]
)
@pytest.mark.parametrize("seed", range(4))
def test_solutions(dtype: Any, hermitian: bool, seed: int) -> None:
    a = numbers(2, 7, 7, dtype=dtype, seed=seed)
    a = a + (adjoint(a) if hermitian else a.swapaxes(-1, -2))
    a[..., range(7), range(7)] *= 0.1  # so that there are blocks of two rows
    b = numbers(7, 2, dtype=dtype)
    factors, pivots = linalg.ldl_factor(place("cpu", np.tril(a)), hermitian=hermitian)
    assert (pivots.numpy() < 0).any()
    found = linalg.ldl_solve(factors, pivots, place("cpu", b), hermitian=hermitian).numpy()
    close(a @ found, np.stack([b, b]), 1e-8)


def test_pivots() -> None:
    factors, pivots = linalg.ldl_factor(place("cpu", np.asarray([[0.0, 0.0], [1.0, 0.0]], np.float32)))
    assert pivots.tolist() == [-2, -2]  # one block of both rows
    assert factors.tolist() == [[0.0, 0.0], [1.0, 0.0]]
    assert linalg.ldl_factor(wg.eye(2)).pivots.tolist() == [1, 2]
    with pytest.raises(wg.ShapeError, match="ldl_solve"):
        linalg.ldl_solve(factors, pivots, wg.ones((3, 1)))

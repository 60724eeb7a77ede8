"""Products of matrices against NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.onnx.operators.single import run_one

GENERATOR = np.random.default_rng(9)


def drawn(*shape: int) -> Any:
    return GENERATOR.standard_normal(shape, np.float32)


@pytest.mark.parametrize(
    ("a", "b"),
    [((3,), (3,)), ((3,), (2, 3, 4)), ((2, 4, 3), (3,)), ((2, 1, 4, 3), (5, 3, 2)), ((0, 3), (3, 2))],
)
def test_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = drawn(*a), drawn(*b)
    found = run_one("MatMul", x, y)
    assert found.shape == (x @ y).shape
    np.testing.assert_allclose(found, x @ y, 1e-4, 1e-5)


def test_products_of_integers_are_exact() -> None:
    x, y = GENERATOR.integers(-(1 << 20), 1 << 20, (2, 3, 4)), GENERATOR.integers(-(1 << 20), 1 << 20, (4, 5))
    np.testing.assert_array_equal(run_one("MatMul", x, y), x @ y)
    np.testing.assert_array_equal(run_one("Gemm", x[0], y, y[:3]), x[0] @ y + y[:3])


@pytest.mark.parametrize(
    ("of_a", "of_b", "alpha", "beta"), list(itertools.product((0, 1), (0, 1), (1.0, 0.5), (1.0, 2.0)))
)
def test_gemm(of_a: int, of_b: int, alpha: float, beta: float) -> None:
    a, b, c = drawn(3, 4), drawn(4, 5), drawn(5)
    given = (a.T.copy() if of_a else a, b.T.copy() if of_b else b, c)
    found = run_one("Gemm", *given, transA=of_a, transB=of_b, alpha=alpha, beta=beta)
    np.testing.assert_allclose(found, alpha * (a @ b) + beta * c, 1e-4, 1e-5)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 1), (3, 5)])
def test_what_gemm_adds_broadcasts(shape: tuple[int, ...]) -> None:
    a, b, c = drawn(3, 4), drawn(4, 5), drawn(*shape) if shape else np.float32(2)
    np.testing.assert_allclose(run_one("Gemm", a, b, np.asarray(c)), a @ b + c, 1e-4, 1e-5)
    np.testing.assert_allclose(
        run_one("Gemm", a, b, np.asarray(c), opset=6, broadcast=1), a @ b + c, 1e-4, 1e-5
    )


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        (" i j , j k ", [(3, 4), (4, 5)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]),
        ("ii->i", [(3, 3)]),
        ("...ii->...i", [(2, 3, 3)]),
        ("ij->", [(3, 4)]),
        ("abc,cd,def->abef", [(2, 3, 4), (4, 5), (5, 2, 3)]),
        ("->", [()]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [np.asarray(drawn(*shape), np.float32) for shape in shapes]
    found = run_one("Einsum", *arrays, equation=equation)
    np.testing.assert_allclose(found, np.einsum(equation, *arrays), 1e-4, 1e-5)

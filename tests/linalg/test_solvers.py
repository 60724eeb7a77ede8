"""Inverses, solutions, determinants and Cholesky's factor against NumPy; their gradients; what is refused."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

import webgrad as wg
from tests.linalg.helpers import BOTH, adjoint, check_slope, close, numbers, place, positive
from webgrad import linalg

KINDS = pytest.mark.parametrize("dtype", [np.float32, np.complex64])
WIDE = pytest.mark.parametrize("dtype", [np.float64, np.complex128])


@BOTH
@KINDS
def test_inverses_and_solutions(kind: str, dtype: Any) -> None:
    a, b = positive(2, 3, 3, dtype=dtype), numbers(3, 2, dtype=dtype)
    x, y = place(kind, a), place(kind, b)
    found = linalg.inv(x)
    assert (found.dtype, found.device) == (x.dtype, x.device)
    close(found, np.linalg.inv(a))
    close(linalg.solve(x, y), np.linalg.inv(a) @ b)
    close(linalg.solve(x, y[:, 0]), np.linalg.inv(a) @ b[:, 0])
    close(linalg.solve(x[0], wg.stack([y, y])[:, None]), np.stack([np.linalg.inv(a[0]) @ b] * 2)[:, None])
    close(linalg.matrix_power(x, -2), np.linalg.matrix_power(a, -2))


@BOTH
@KINDS
def test_determinants(kind: str, dtype: Any) -> None:
    a = numbers(2, 3, 3, dtype=dtype)
    x = place(kind, a)
    close(linalg.det(x), np.linalg.det(a))
    sign, size = linalg.slogdet(x)
    assert (sign.dtype, size.dtype) == (x.dtype, wg.float32)
    close(sign, np.linalg.slogdet(a)[0])
    close(size, np.linalg.slogdet(a)[1])


@BOTH
@KINDS
def test_cholesky(kind: str, dtype: Any) -> None:
    a = positive(2, 3, 3, dtype=dtype)
    x = place(kind, a)
    close(linalg.cholesky(x), np.linalg.cholesky(a))
    close(linalg.cholesky(x, upper=True), adjoint(np.linalg.cholesky(a)))


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 4, 3)])
def test_least_squares(shape: tuple[int, ...]) -> None:
    a, b = numbers(*shape, dtype=np.float64), numbers(*shape[:-1], 2, dtype=np.float64)
    found = linalg.lstsq(place("cpu", a), place("cpu", b))
    wanted = np.linalg.pinv(a) @ b
    close(found.solution, wanted)
    close(found.residuals, np.sum((a @ wanted - b) ** 2, axis=-2))
    close(found.rank, np.linalg.matrix_rank(a))
    close(found.singular_values, np.linalg.svd(a, compute_uv=False))


def test_least_squares_of_a_vector_is_numpys() -> None:
    a, b = numbers(5, 3, dtype=np.float64), numbers(5, dtype=np.float64)
    solution, residual, rank, values = np.linalg.lstsq(a, b, rcond=None)
    found = linalg.lstsq(place("cpu", a), place("cpu", b))
    close(found.solution, solution)
    close(found.residuals, residual[0])
    assert found.rank.item() == rank
    close(found.singular_values, values)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3)])
def test_empty_matrices(shape: tuple[int, ...]) -> None:
    a = np.zeros(shape, np.float32)
    x = place("cpu", a)
    close(linalg.inv(x), a)
    close(linalg.cholesky(x), a)
    close(linalg.det(x), np.ones(shape[:-2]))
    close(linalg.slogdet(x).logabsdet, np.zeros(shape[:-2]))
    assert linalg.solve(x, wg.ones((shape[-1], 2), device="cpu")).shape == (*shape[:-1], 2)
    several = wg.ones((4, shape[-1], 2), device="cpu")
    assert linalg.solve(wg.eye(shape[-1], device="cpu"), several).shape == several.shape
    assert linalg.solve(wg.eye(3, device="cpu"), wg.ones((4, 3, 0), device="cpu")).shape == (4, 3, 0)


def test_halves_are_computed_in_float32() -> None:
    for dtype in (wg.float16, wg.bfloat16):
        x = place("cpu", positive(3, 3)).astype(dtype)
        exact = np.linalg.inv(x.astype(wg.float32).numpy())
        found = linalg.inv(x)
        assert found.dtype is dtype
        np.testing.assert_array_equal(found.numpy(), exact.astype(dtype.numpy))
        assert linalg.solve(x, x).dtype is dtype
        assert linalg.solve(x, x.astype(wg.float32)).dtype is wg.float32
        assert {each.dtype for each in linalg.slogdet(x)} == {dtype}


# Gradients


@WIDE
@pytest.mark.parametrize(
    "function",
    [
        linalg.inv,
        linalg.det,
        lambda x: linalg.slogdet(x)[x.dtype.kind == "f" :],  # the sign of a real number has no slope
        lambda x: linalg.cholesky(x @ adjoint(x)),
        lambda x: linalg.cholesky(x @ adjoint(x), upper=True),
        lambda x: linalg.matrix_power(x, -2),
    ],
)
def test_gradients(function: Any, dtype: Any) -> None:
    check_slope(function, numbers(2, 3, 3, dtype=dtype))


@WIDE
def test_gradients_of_two(dtype: Any) -> None:
    a, b = numbers(2, 3, 3, dtype=dtype), numbers(3, 2, dtype=dtype)
    check_slope(linalg.solve, a, b)
    check_slope(linalg.solve, a, b[:, 0], order=1)
    check_slope(linalg.solve, a[0], a, order=1)
    check_slope(lambda x, y: linalg.lstsq(x, y)[:2], numbers(4, 3, dtype=dtype), numbers(4, 2, dtype=dtype))


@WIDE
def test_the_gradient_of_a_determinant_that_is_zero(dtype: Any) -> None:
    a = numbers(4, 3, dtype=dtype)
    check_slope(linalg.det, np.asarray([[1, 2, 3], [2, 4, 6], [1, 0, 1]], dtype), order=1)
    check_slope(linalg.det, a @ a.T[:, [0, 1, 2, 2]], order=1)


def test_the_slope_of_a_logarithm_of_zero_is_no_number() -> None:
    x = place("cpu", np.stack([np.ones((2, 2)), np.eye(2)]))
    found = wg.grad(lambda x: wg.sum(linalg.slogdet(x).logabsdet))(x).numpy()
    assert np.isnan(found[0]).all()
    np.testing.assert_array_equal(found[1], np.eye(2))


def test_gradients_are_those_of_the_value_at_the_call() -> None:
    x = place("cpu", 2 * np.eye(2)).requires_grad_()
    total = wg.sum(linalg.det(x))
    with wg.no_grad():
        x *= 3
    total.backward()
    assert x.grad is not None
    close(x.grad, 2 * np.eye(2))


@BOTH
def test_gradients_are_computed_on_the_device(kind: str) -> None:
    x = place(kind, positive(3, 3)).requires_grad_()
    total = wg.sum(linalg.inv(x)) + wg.sum(linalg.cholesky(x)) + linalg.det(x)
    before = x.device.stats()["host_round_trips"]
    total.backward()
    wg.eval(x.grad)
    assert x.device.stats()["host_round_trips"] == before


# Mistakes


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: linalg.inv(x[:2]), wg.ShapeError, "2 rows and 3 columns"),
        (lambda x: linalg.det(x[0]), wg.ShapeError, "rows and columns"),
        (lambda x: linalg.inv(x.astype(wg.int32)), wg.DTypeError, r"linalg.inv.*int32.*astype"),
        (lambda x: linalg.cholesky(x > 0), wg.DTypeError, "bool"),
        (lambda x: linalg.solve(x, x[0, 0]), wg.ShapeError, "as many rows"),
        (lambda x: linalg.solve(x, x[:2]), wg.ShapeError, "as many rows"),
        (lambda x: linalg.lstsq(x, x[:2]), wg.ShapeError, "as many rows"),
        (lambda x: linalg.solve(wg.stack([x, x]), wg.stack([x, x, x])), wg.ShapeError, "broadcast"),
        (lambda x: linalg.solve(x, cast(Any, 1.0)), wg.DTypeError, "asarray"),
    ],
)
def test_mistakes(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(place("cpu", numbers(3, 3)))


@pytest.mark.gpu
def test_two_devices() -> None:
    with pytest.raises(wg.DeviceError, match="to_device"):
        linalg.solve(place("cpu", np.eye(2)), place("software", np.ones(2, np.float32)))


def test_parameters_have_gradients() -> None:
    values = np.array([[2.0, 1.0], [0.5, 3.0]], np.float32)
    weights = wg.nn.Parameter(values)
    wg.log(wg.linalg.det(weights)).backward()
    assert weights.grad is not None
    np.testing.assert_allclose(weights.grad.numpy(), np.linalg.inv(values).T, rtol=1e-5)

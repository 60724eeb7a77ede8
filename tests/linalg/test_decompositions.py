"""Factors of matrices: they give the matrix again, as NumPy's do; their gradients; what has none."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

import webgrad as wg
from tests.linalg.helpers import BOTH, adjoint, check_slope, close, numbers, place, positive, read
from webgrad import linalg

KINDS = pytest.mark.parametrize("dtype", [np.float32, np.complex64])
WIDE = pytest.mark.parametrize("dtype", [np.float64, np.complex128])
SHAPES = pytest.mark.parametrize("shape", [(3, 3), (4, 3), (2, 3, 4)])


@BOTH
@KINDS
def test_eigenvalues(kind: str, dtype: Any) -> None:
    a = numbers(2, 3, 3, dtype=dtype)
    x = place(kind, a)
    found = linalg.eig(x)
    assert found.eigenvalues.dtype is found.eigenvectors.dtype is wg.complex64
    values, vectors = read(*found)
    close(a @ vectors, vectors * values[..., None, :], 1e-4)
    close(linalg.eigvals(x), values)
    assert linalg.eigvals(place(kind, np.eye(2, dtype=dtype))).dtype is wg.complex64


@BOTH
@KINDS
def test_eigenvalues_of_hermitian_matrices(kind: str, dtype: Any) -> None:
    a = positive(2, 3, 3, dtype=dtype)
    x = place(kind, a)
    found = linalg.eigh(x)
    assert (found.eigenvalues.dtype, found.eigenvectors.dtype) == (wg.float32, x.dtype)
    values, vectors = read(*found)
    close(vectors @ (values[..., :, None] * adjoint(vectors)), a, 1e-4)
    close(adjoint(vectors) @ vectors, np.broadcast_to(np.eye(3), (2, 3, 3)))
    close(linalg.eigvalsh(x), values, 1e-4)


@BOTH
@KINDS
@SHAPES
def test_qr(kind: str, dtype: Any, shape: tuple[int, ...]) -> None:
    a = numbers(*shape, dtype=dtype)
    x = place(kind, a)
    rows, columns = shape[-2:]
    for mode, count in (("reduced", min(rows, columns)), ("complete", rows)):
        q, r = read(*linalg.qr(x, mode=mode))
        assert (q.shape[-2:], r.shape[-2:]) == ((rows, count), (count, columns))
        close(q @ r, a)
        close(adjoint(q) @ q, np.broadcast_to(np.eye(count), (*shape[:-2], count, count)))
        np.testing.assert_array_equal(r, np.triu(r))


@BOTH
@KINDS
@SHAPES
def test_svd(kind: str, dtype: Any, shape: tuple[int, ...]) -> None:
    a = numbers(*shape, dtype=dtype)
    x = place(kind, a)
    rows, columns = shape[-2:]
    least = min(rows, columns)
    found = linalg.svd(x, full_matrices=False)
    assert (found.U.dtype, found.S.dtype, found.Vh.dtype) == (x.dtype, wg.float32, x.dtype)
    u, s, vh = read(*found)
    close((u * s[..., None, :]) @ vh, a)
    close(s, np.linalg.svd(a, compute_uv=False))
    close(linalg.svdvals(x), s)
    u, s, vh = read(*linalg.svd(x))
    assert (u.shape[-2:], vh.shape[-2:]) == ((rows, rows), (columns, columns))
    close((u[..., :least] * s[..., None, :]) @ vh[..., :least, :], a)


@BOTH
@KINDS
@SHAPES
def test_pseudo_inverses_and_ranks(kind: str, dtype: Any, shape: tuple[int, ...]) -> None:
    a = numbers(*shape, dtype=dtype)
    x = place(kind, a)
    close(linalg.pinv(x), np.linalg.pinv(a))
    assert (linalg.matrix_rank(x).numpy() == min(shape[-2:])).all()
    poor = a[..., :1] @ a[..., :1, :]
    y = place(kind, poor)
    assert (linalg.matrix_rank(y).numpy() == 1).all()
    close(linalg.pinv(y), np.linalg.pinv(poor, 1e-5), 1e-4)


def test_tolerances_of_ranks() -> None:
    x = place("cpu", np.stack([np.diag([1.0, 0.1, 0.01])] * 2))
    each = place("cpu", np.asarray([0.05, 0.5]))
    assert linalg.matrix_rank(x, rtol=0.05).tolist() == [2, 2]
    assert linalg.matrix_rank(x, rtol=each).tolist() == [2, 1]
    close(linalg.pinv(x, rtol=each), np.stack([np.diag([1.0, 10.0, 0]), np.diag([1.0, 0, 0])]))
    # the last one is as near to 0 as float16 can tell, and not float32
    small = place("cpu", np.diag([1.0, 1e-3]).astype(np.float32))
    assert (linalg.matrix_rank(small).item(), linalg.matrix_rank(small.astype(wg.float16)).item()) == (2, 1)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 3), (0, 2, 3)])
def test_empty_matrices(shape: tuple[int, ...]) -> None:
    a = np.zeros(shape, np.float32)
    x = place("cpu", a)
    for found, wanted in (
        (linalg.svd(x), np.linalg.svd(a)),
        (linalg.svd(x, full_matrices=False), np.linalg.svd(a, full_matrices=False)),
        (linalg.qr(x), np.linalg.qr(a)),
        (linalg.qr(x, mode="complete"), np.linalg.qr(a, "complete")),
    ):
        assert [each.shape for each in found] == [each.shape for each in wanted]
    assert linalg.pinv(x).shape == (*shape[:-2], shape[-1], shape[-2])
    assert wg.grad(lambda x: wg.sum(linalg.svd(x).U))(x).shape == shape
    assert linalg.matrix_rank(x).tolist() == np.zeros(shape[:-2]).tolist()


def test_halves_are_computed_in_float32() -> None:
    x = place("cpu", positive(3, 3)).astype(wg.float16)
    results = [*linalg.eigh(x), *linalg.qr(x), *linalg.svd(x), linalg.svdvals(x), linalg.pinv(x)]
    assert {each.dtype for each in results} == {wg.float16}
    assert linalg.eigvals(x).dtype is wg.complex64


# Gradients


def symmetric(x: wg.Tensor) -> wg.Tensor:
    turned: wg.Tensor = adjoint(x)
    return (x + turned) * 0.5


def squares(x: wg.Tensor) -> wg.Tensor:
    return wg.real(x * wg.conj(x))


def eigh_results(x: wg.Tensor) -> tuple[Any, ...]:
    """What does not depend on the phases of vectors, which are arbitrary."""
    values, vectors = linalg.eigh(symmetric(x))
    return values, squares(vectors), vectors @ (values[..., :, None] ** 3 * adjoint(vectors))


def svd_results(x: wg.Tensor) -> tuple[Any, ...]:
    u, s, vh = linalg.svd(x, full_matrices=False)
    return s, squares(u), squares(vh), u @ (s[..., :, None] ** 2 * vh), u @ vh


@WIDE
def test_gradients_of_eigenvalues(dtype: Any) -> None:
    a = numbers(2, 3, 3, dtype=dtype)
    check_slope(eigh_results, a)
    check_slope(lambda x: linalg.eigvalsh(symmetric(x)), a)


@WIDE
@SHAPES
def test_gradients_of_factors(dtype: Any, shape: tuple[int, ...]) -> None:
    a = numbers(*shape, dtype=dtype)
    order = 2 if dtype is np.float64 or shape == (4, 3) else 1  # a second of complex numbers takes a second
    check_slope(linalg.qr, a, order=order)
    check_slope(svd_results, a, order=order)
    check_slope(linalg.svdvals, a, order=order)
    check_slope(linalg.pinv, a, order=order)
    check_slope(lambda x: linalg.matrix_norm(x, ord="nuc"), a, order=1)


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 3, 2)])
def test_gradients_of_the_vectors_that_full_matrices_shares(shape: tuple[int, ...]) -> None:
    def results(x: wg.Tensor) -> tuple[Any, ...]:
        u, s, vh = linalg.svd(x)
        return s, squares(u[..., :2]), squares(vh[..., :2, :])

    check_slope(results, numbers(*shape, dtype=np.float64))


def test_gradients_of_some_of_the_results() -> None:
    a = numbers(3, 3, dtype=np.float64)
    check_slope(lambda x: linalg.svd(x).U, a)
    check_slope(lambda x: linalg.svd(x).Vh, a)
    check_slope(lambda x: linalg.qr(x).Q, a)
    check_slope(lambda x: linalg.qr(x).R, a)
    check_slope(lambda x: linalg.eigh(symmetric(x)).eigenvectors, a)


def test_gradients_through_a_whole_svd() -> None:
    a = numbers(4, 3, dtype=np.float64)
    check_slope(lambda x: tuple(linalg.svd(x))[1:], a)
    check_slope(lambda x: tuple(linalg.svd(x.mT))[:2], a)
    for matrices, at in ((a, 0), (a.T, 2)):
        x = place("cpu", matrices)
        with pytest.raises(wg.GradientError, match="full_matrices=False"):
            wg.grad(lambda x, at=at: wg.sum(linalg.svd(x)[at]))(x)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (linalg.geqrf, "linalg.qr"),
        (linalg.ldl_factor, "linalg.solve"),
        (lambda x: linalg.qr(x[:, :3], mode="complete"), "mode='reduced'"),
    ],
)
def test_what_has_no_gradient_says_so_at_the_call(call: Any, words: str) -> None:
    x = place("cpu", numbers(4, 4)).requires_grad_()
    with pytest.raises(wg.GradientError, match=words):
        call(x)
    call(x.detach())
    with wg.no_grad():
        call(x)


def test_ranks_are_integers_and_have_no_gradient() -> None:
    x = place("cpu", numbers(3, 3)).requires_grad_()
    rank = linalg.matrix_rank(x)
    assert not rank.requires_grad
    with pytest.raises(wg.GradientError):
        wg.grad(linalg.matrix_rank)(x)


# Mistakes


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: linalg.qr(x, mode="raw"), wg.ArgumentError, "'raw'"),
        (lambda x: linalg.eigh(x[:2]), wg.ShapeError, "square"),
        (lambda x: linalg.svd(x[0]), wg.ShapeError, "rows and columns"),
        (lambda x: linalg.svdvals(x.astype(wg.int8)), wg.DTypeError, "int8"),
        (lambda x: linalg.pinv(x, rtol=cast(Any, "1e-3")), wg.ArgumentError, "rtol"),
        (lambda x: linalg.matrix_rank(x, rtol=True), wg.ArgumentError, "rtol"),
        (lambda x: linalg.pinv(x, rtol=x[0]), wg.ShapeError, r"linalg.pinv: rtol of shape \(3,\)"),
        (lambda x: linalg.matrix_rank(x, rtol=wg.ones(2)), wg.ShapeError, r"rtol of shape \(2,\)"),
    ],
)
def test_mistakes(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(place("cpu", numbers(3, 3)))

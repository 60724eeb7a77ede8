"""Systems of equations and determinants: cholesky, det, inv, slogdet, solve, and those that never raise.

In: stacks of matrices. Out: tensors that LAPACK computed on the host, or kernels of a GPU. Gradients are
products on the device: what they need beyond the results is computed together with them, where a gradient may
be asked for. A gradient that is itself to have one is made of these functions again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import webgrad as wg
from webgrad import Tensor

from ..arrays import Array, np
from . import small
from .host import each_or_nan, on_host
from .lu import eliminated
from .matrices import adjoint, alike, asks_for_gradient, given, identity, restored, square, wide

__all__ = [
    "CholeskyFactor",
    "Inverse",
    "SlogDet",
    "Solution",
    "cholesky",
    "cholesky_ex",
    "det",
    "inv",
    "inv_ex",
    "slogdet",
    "solve",
    "solve_ex",
]


class SlogDet(NamedTuple):
    """A determinant as its sign, or phase, and the logarithm of its size."""

    sign: Tensor
    logabsdet: Tensor


class Inverse(NamedTuple):
    """An inverse, and 0, or which pivot of elimination is 0."""

    inverse: Tensor
    info: Tensor


class Solution(NamedTuple):
    """A solution, and 0, or which pivot of elimination is 0."""

    result: Tensor
    info: Tensor


class CholeskyFactor(NamedTuple):
    """A triangle, and 0, or of how many rows the first part is that is not positive definite."""

    L: Tensor
    info: Tensor


# Inverses


def inv(x: Tensor, /) -> Tensor:
    """The inverses of square matrices.

    >>> wg.linalg.inv(wg.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return restored(_inverse(square("inv", x), True)[0], x)


def inv_ex(x: Tensor, /) -> Inverse:
    """The inverses of square matrices, and 0, or which pivot is 0: singular ones are NaN, and no error.

    >>> wg.linalg.inv_ex(wg.asarray([[2.0, 0.0], [0.0, 0.0]])).info.item()
    2
    """
    inverse, info = _inverse(square("inv_ex", x), False)
    return Inverse(restored(inverse, x), info)


@wg.custom_gradient
def _inverse(x: Tensor, strict: bool) -> Any:
    if small.fits_elimination(x):
        result, info = small.inverse(x)
    else:
        result, info = on_host("inv", lambda a: _examined(np.linalg.inv, _first_zero, strict, a), x)

    def pull(g: Tensor, _: Tensor | None) -> Tensor:
        turned = adjoint(_inverse(x, strict)[0] if wg.is_grad_enabled() else result)
        return -(turned @ g @ turned)

    return (result, info), pull


def _examined(
    compute: Callable[[Array], Array], place: Callable[[Array], int], strict: bool, a: Array
) -> tuple[Array, Array]:
    """What NumPy computes, and zeros; unless `strict` NaN where it cannot, and the place that it fails at."""
    info = np.zeros(a.shape[:-2], np.int32)
    if strict:
        return compute(a), info
    found = each_or_nan(compute, a)
    for at in np.argwhere(np.isnan(found).any(axis=(-2, -1))):
        info[tuple(at)] = place(a[tuple(at)])
    return found, info


def _first_zero(a: Array) -> int:
    """The first pivot that is 0, counted from 1."""
    zeros = np.flatnonzero(np.diagonal(eliminated(a, True)[0]) == 0)
    return int(zeros[0]) + 1 if zeros.size else 0


def _first_negative(a: Array) -> int:
    """How many rows the first part of a matrix has that is not positive definite."""
    least, most = 0, len(a)
    while most - least > 1:
        middle = (least + most) // 2
        fine = np.isfinite(each_or_nan(np.linalg.cholesky, a[:middle, :middle])).all()
        least, most = (middle, most) if fine else (least, middle)
    return most


# Solutions


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution X of x1 @ X = x2, where x2 is one vector or matrices of columns.

    >>> wg.linalg.solve(wg.asarray([[2.0, 0.0], [0.0, 4.0]]), wg.asarray([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    return _any_solution("solve", x1, x2, True)[0]


def solve_ex(x1: Tensor, x2: Tensor, /) -> Solution:
    """`solve`, and 0, or which pivot is 0: of singular matrices it is NaN, and no error.

    >>> wg.linalg.solve_ex(wg.asarray([[2.0, 0.0], [0.0, 4.0]]), wg.asarray([2.0, 2.0])).info.item()
    0
    """
    return Solution(*_any_solution("solve_ex", x1, x2, False))


def _any_solution(name: str, x1: Any, x2: Any, strict: bool) -> tuple[Tensor, Tensor]:
    first, second = given(name, x1), given(name, x2)
    a, b = square(name, first), wide(name, second)
    is_vector = b.ndim == 1
    if b.ndim == 0 or b.shape[0 if is_vector else -2] != a.shape[-1]:
        raise wg.ShapeError(
            f"linalg.{name} of {a.shape} and {b.shape}: the second is a vector, or matrices, with as many "
            f"rows as the first, {a.shape[-1]}"
        )
    a, b = alike(name, a, b)
    found, info = _solved(name, a, b[:, None] if is_vector else b, strict)
    found = found.astype(wg.promote(first.dtype, second.dtype), copy=False)
    return (found[..., 0] if is_vector else found), info


def _solved(name: str, a: Tensor, b: Tensor, strict: bool) -> tuple[Tensor, Tensor]:
    """The solutions for stacks that broadcast; one matrix is factored once for a whole stack of others."""
    if a.ndim == 2 and b.ndim > 2:
        columns = wg.moveaxis(b, -2, 0)
        found, info = _solution(a, wg.reshape(columns, (b.shape[-2], -1 if b.size else 0)), strict)
        return wg.moveaxis(wg.reshape(found, columns.shape), 0, -2), info
    stack = _broadcast(name, a.shape[:-2], b.shape[:-2])
    a, b = (wg.broadcast_to(each, (*stack, *each.shape[-2:])) for each in (a, b))
    found, info = _solution(a, b, strict)
    return found, info


def _broadcast(name: str, first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(first, second)
    except ValueError:
        raise wg.ShapeError(
            f"linalg.{name}: stacks of {first} and of {second} matrices do not broadcast: counted from the "
            "last, sizes must be equal or 1"
        ) from None


@wg.custom_gradient
def _solution(a: Tensor, b: Tensor, strict: bool) -> Any:
    wanted = asks_for_gradient(a) or asks_for_gradient(b)

    def compute(left: Array, right: Array) -> tuple[Array, ...]:
        if strict and not wanted:
            return np.linalg.solve(left, right), np.zeros(left.shape[:-2], np.int32)
        inverse, info = _examined(np.linalg.inv, _first_zero, strict, left)
        found = np.linalg.solve(left, right) if not info.any() else inverse @ right
        return (found, info, inverse)

    if small.fits_elimination(a, b):
        result, info = small.solved(a, b)
        kept = [small.inverse(a)[0]] if wanted else []
    else:
        result, info, *kept = on_host("solve", compute, a, b)

    def pull(g: Tensor, _: Tensor | None) -> tuple[Tensor, Tensor]:
        inverse, solution = kept[0], result
        if wg.is_grad_enabled():
            inverse = _inverse(a, strict)[0]
            solution = inverse @ b
        by_b = adjoint(inverse) @ g
        return -(by_b @ adjoint(solution)), by_b

    return (result, info), pull


# Determinants


def det(x: Tensor, /) -> Tensor:
    """The determinants of square matrices. Singular matrices have a gradient too.

    >>> round(wg.linalg.det(wg.asarray([[1.0, 2.0], [3.0, 4.0]])).item(), 4)
    -2.0
    """
    return restored(_determinant(square("det", x)), x)


@wg.custom_gradient
def _determinant(x: Tensor) -> Any:
    wanted = asks_for_gradient(x)

    def compute(a: Array) -> tuple[Array, ...]:
        found = np.linalg.det(a)
        return (found, each_or_nan(_cofactors, a)) if wanted else (found,)

    if small.fits(x):
        result, kept = small.determinant(x), [small.cofactors(x)] if wanted else []
    else:
        result, *kept = on_host("det", compute, x)

    def pull(g: Tensor) -> Tensor:
        if not wg.is_grad_enabled():
            return g[..., None, None] * kept[0]
        whole = adjoint(_determinant(x)[..., None, None])
        return g[..., None, None] * whole * adjoint(_inverse(x, True)[0])

    return result, pull


def _cofactors(a: Array) -> Array:
    """By how much the determinant grows with each element, conjugated; for singular matrices too.

    The determinant is that of U times that of Vh times the product of all singular values.
    """
    u, s, vh = np.linalg.svd(a)
    ones = np.ones_like(s[..., :1])
    before = np.cumprod(np.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
    after = np.cumprod(np.concatenate([ones, s[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    phase = np.conj(np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
    return np.asarray(phase * (u * (before * after)[..., None, :]) @ vh, a.dtype)


def slogdet(x: Tensor, /) -> SlogDet:
    """The sign of a determinant and the logarithm of its absolute value.

    Where the determinant is 0 the sign is 0 and the logarithm -inf; gradients are NaN there.

    >>> sign, size = wg.linalg.slogdet(wg.asarray([[1.0, 2.0], [3.0, 4.0]]))
    >>> sign.item(), round(size.item(), 4)
    (-1.0, 0.6931)
    """
    sign, size = _logarithm(square("slogdet", x))
    return SlogDet(restored(sign, x), restored(size, x))


@wg.custom_gradient
def _logarithm(x: Tensor) -> Any:
    wanted = asks_for_gradient(x)

    def compute(a: Array) -> tuple[Array, ...]:
        sign, size = np.linalg.slogdet(a)
        return (sign, size, each_or_nan(np.linalg.inv, a)) if wanted else (sign, size)

    if small.fits_elimination(x):
        sign, size = small.logarithm(x)
        kept = [small.inverse(x)[0]] if wanted else []
    else:
        sign, size, *kept = on_host("slogdet", compute, x)

    def pull(by_sign: Tensor | None, by_size: Tensor | None) -> Tensor:
        again = wg.is_grad_enabled()
        inverse = adjoint(_inverse(x, True)[0] if again else kept[0])
        factor = wg.zeros_like(size) if by_size is None else by_size
        if by_sign is not None and x.dtype.kind == "c":  # a phase turns; a sign of a real number does not
            phase = _logarithm(x)[0] if again else sign
            factor = wg.complex(factor, wg.imag(wg.conj(phase) * by_sign))
        return factor[..., None, None] * inverse

    return (sign, size), pull


# Cholesky's factor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The lower triangle L of positive definite matrices L @ L^H, or the upper one L^H.

    Only the lower triangle of x is looked at; its gradient is a symmetric matrix.

    >>> wg.linalg.cholesky(wg.asarray([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    lower = _cholesky(square("cholesky", x), True)[0]
    return restored(adjoint(lower) if upper else lower, x)


def cholesky_ex(x: Tensor, /, *, upper: bool = False) -> CholeskyFactor:
    """`cholesky`, and 0; or NaN, and of how many rows the first part is that is not positive definite.

    >>> wg.linalg.cholesky_ex(wg.asarray([[4.0, 2.0], [2.0, 1.0]])).info.item()
    2
    """
    lower, info = _cholesky(square("cholesky_ex", x), False)
    return CholeskyFactor(restored(adjoint(lower) if upper else lower, x), info)


@wg.custom_gradient
def _cholesky(x: Tensor, strict: bool) -> Any:
    wanted = asks_for_gradient(x)

    def compute(a: Array) -> tuple[Array, ...]:
        found, info = _examined(np.linalg.cholesky, _first_negative, strict, a)
        return (found, info, each_or_nan(np.linalg.inv, found)) if wanted else (found, info)

    if small.fits(x):
        result, info = small.cholesky(x)
        one = wg.broadcast_to(wg.eye(x.shape[-1], dtype=x.dtype, device=x.device), x.shape)
        kept = [small.substituted(result, one, False, False)] if wanted else []
    else:
        result, info, *kept = on_host("cholesky", compute, x)

    def pull(g: Tensor, _: Tensor | None) -> Tensor:
        lower, inverse = (result, *kept)
        if wg.is_grad_enabled():
            lower = _cholesky(x, strict)[0]
            inverse = _inverse(lower, strict)[0]
        inner = wg.tril(adjoint(lower) @ g)
        inner = wg.where(identity(inner), inner * 0.5, inner)
        outer = adjoint(inverse) @ inner @ inverse
        return (outer + adjoint(outer)) * 0.5

    return (result, info), pull

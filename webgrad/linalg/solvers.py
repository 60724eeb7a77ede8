"""Systems of equations and determinants: cholesky, det, inv, lstsq, slogdet, solve.

In: stacks of matrices. Out: tensors that NumPy's LAPACK computed on the host. Their gradients are products on
the device: what they need beyond the results is computed together with them, where a gradient may be asked
for. A gradient that is itself to have one is made of these functions again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import webgrad as wg
from webgrad import Tensor

from ..arrays import Array, np
from .decompositions import pinv, rank_and_values
from .host import each_or_nan, on_host
from .matrices import adjoint, asks_for_gradient, given, identity, ready, restored, square, wide

__all__ = ["LeastSquares", "SlogDet", "cholesky", "det", "inv", "lstsq", "slogdet", "solve"]


class SlogDet(NamedTuple):
    """A determinant as its sign, or phase, and the logarithm of its size."""

    sign: Tensor
    logabsdet: Tensor


class LeastSquares(NamedTuple):
    """What is nearest to a solution, how far it is away, and what that was computed from."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def _inverses(a: Array) -> Array:
    return each_or_nan(np.linalg.inv, a)


# Inverses and solutions


def inv(x: Tensor, /) -> Tensor:
    """The inverses of square matrices; computed on the host.

    >>> wg.linalg.inv(wg.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return restored(_inverse(square("inv", x)), x)


@wg.custom_gradient
def _inverse(x: Tensor) -> Any:
    (result,) = on_host("inv", lambda a: (np.linalg.inv(a),), x)

    def pull(g: Tensor) -> Tensor:
        turned = adjoint(_inverse(x) if wg.is_grad_enabled() else result)
        return -(turned @ g @ turned)

    return result, pull


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution X of x1 @ X = x2, where x2 is one vector or matrices of columns; computed on the host.

    >>> wg.linalg.solve(wg.asarray([[2.0, 0.0], [0.0, 4.0]]), wg.asarray([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    first, second = given("solve", x1), given("solve", x2)
    a, b = square("solve", first), wide("solve", second)
    is_vector = b.ndim == 1
    if b.ndim == 0 or b.shape[0 if is_vector else -2] != a.shape[-1]:
        raise wg.ShapeError(
            f"linalg.solve of {a.shape} and {b.shape}: the second is a vector, or matrices, with as many "
            f"rows as the first, {a.shape[-1]}"
        )
    if a.device is not b.device:
        raise wg.DeviceError(
            f"linalg.solve: the matrices are on {a.device.name}, what they shall give on {b.device.name}: "
            "move one with to_device"
        )
    computed = wg.promote(a.dtype, b.dtype)
    a, b = a.astype(computed, copy=False), b.astype(computed, copy=False)
    if is_vector:
        b = b[:, None]
    result = _solved(a, b).astype(wg.promote(first.dtype, second.dtype), copy=False)
    return result[..., 0] if is_vector else result


def _solved(a: Tensor, b: Tensor) -> Tensor:
    """The solutions for stacks that broadcast; one matrix is factored once for a whole stack of others."""
    if a.ndim == 2 and b.ndim > 2:
        columns = wg.moveaxis(b, -2, 0)
        solution = _solution(a, wg.reshape(columns, (b.shape[-2], -1 if b.size else 0)))
        turned: Tensor = wg.moveaxis(wg.reshape(solution, columns.shape), 0, -2)
        return turned
    stack = _broadcast(a.shape[:-2], b.shape[:-2])
    a, b = (wg.broadcast_to(each, (*stack, *each.shape[-2:])) for each in (a, b))
    result: Tensor = _solution(a, b)
    return result


def _broadcast(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(first, second)
    except ValueError:
        raise wg.ShapeError(
            f"linalg.solve: stacks of {first} and of {second} matrices do not broadcast: counted from the "
            "last, sizes must be equal or 1"
        ) from None


@wg.custom_gradient
def _solution(a: Tensor, b: Tensor) -> Any:
    wanted = asks_for_gradient(a) or asks_for_gradient(b)

    def compute(left: Array, right: Array) -> tuple[Array, ...]:
        found = np.linalg.solve(left, right)
        return (found, np.linalg.inv(left)) if wanted else (found,)

    result, *kept = on_host("solve", compute, a, b)

    def pull(g: Tensor) -> tuple[Tensor, Tensor]:
        inverse, solution = kept[0], result
        if wg.is_grad_enabled():
            inverse = _inverse(a)
            solution = inverse @ b
        by_b = adjoint(inverse) @ g
        return -(by_b @ adjoint(solution)), by_b

    return result, pull


def lstsq(x1: Tensor, x2: Tensor, /, *, rtol: float | None = None) -> LeastSquares:
    """The X of least squares (x1 @ X - x2)**2, and of these the smallest; computed by `pinv`, on the host.

    Singular values up to `rtol` times the largest count as 0. It works for stacks of matrices, and gradients
    go through the solution and the residuals.

    >>> a, b = wg.asarray([[1.0], [1.0]]), wg.asarray([1.0, 3.0])
    >>> [round(each, 4) for each in wg.linalg.lstsq(a, b).solution.tolist()]
    [2.0]
    """
    a, b = ready("lstsq", x1), wide("lstsq", given("lstsq", x2))
    is_vector = b.ndim == 1
    if b.ndim == 0 or b.shape[0 if is_vector else -2] != a.shape[-2]:
        raise wg.ShapeError(
            f"linalg.lstsq of {a.shape} and {b.shape}: the second is a vector, or matrices, with as many "
            f"rows as the first, {a.shape[-2]}"
        )
    columns = b[:, None] if is_vector else b
    solution = pinv(a, rtol=rtol) @ columns
    missed = wg.abs(a @ solution - columns)
    residuals = wg.sum(missed * missed, axis=-2)
    if is_vector:
        solution, residuals = solution[..., 0], residuals[..., 0]
    rank, values = rank_and_values("lstsq", a, a, rtol)
    return LeastSquares(restored(solution, x1), restored(residuals, x1), rank, restored(values, x1))


# Determinants


def det(x: Tensor, /) -> Tensor:
    """The determinants of square matrices; computed on the host. Singular matrices have a gradient too.

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

    result, *kept = on_host("det", compute, x)

    def pull(g: Tensor) -> Tensor:
        if not wg.is_grad_enabled():
            return g[..., None, None] * kept[0]
        whole = adjoint(_determinant(x)[..., None, None])
        return g[..., None, None] * whole * adjoint(_inverse(x))

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
    """The sign of a determinant and the logarithm of its absolute value; computed on the host.

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
        return (sign, size, _inverses(a)) if wanted else (sign, size)

    sign, size, *kept = on_host("slogdet", compute, x)

    def pull(by_sign: Tensor | None, by_size: Tensor | None) -> Tensor:
        again = wg.is_grad_enabled()
        inverse = adjoint(_inverse(x) if again else kept[0])
        factor = wg.zeros_like(size) if by_size is None else by_size
        if by_sign is not None and x.dtype.kind == "c":  # a phase turns; a sign of a real number does not
            phase = _logarithm(x)[0] if again else sign
            factor = wg.complex(factor, wg.imag(wg.conj(phase) * by_sign))
        return factor[..., None, None] * inverse

    return (sign, size), pull


# Cholesky's factor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The lower triangle L of positive definite matrices L @ L^H, or the upper one L^H; computed on the host.

    Only the lower triangle of x is looked at; its gradient is a symmetric matrix.

    >>> wg.linalg.cholesky(wg.asarray([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    lower = _cholesky(square("cholesky", x))
    return restored(adjoint(lower) if upper else lower, x)


@wg.custom_gradient
def _cholesky(x: Tensor) -> Any:
    wanted = asks_for_gradient(x)

    def compute(a: Array) -> tuple[Array, ...]:
        found = np.linalg.cholesky(a)
        return (found, np.linalg.inv(found)) if wanted else (found,)

    result, *kept = on_host("cholesky", compute, x)

    def pull(g: Tensor) -> Tensor:
        lower, inverse = (result, *kept)
        if wg.is_grad_enabled():
            lower = _cholesky(x)
            inverse = _inverse(lower)
        inner = wg.tril(adjoint(lower) @ g)
        inner = wg.where(identity(inner), inner * 0.5, inner)
        outer = adjoint(inverse) @ inner @ inverse
        return (outer + adjoint(outer)) * 0.5

    return result, pull

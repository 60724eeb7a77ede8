"""Systems with triangular matrices: solve_triangular, and what follows from Cholesky's factor.

In: stacks of matrices that broadcast, of which one triangle is looked at. Out: tensors with gradients of any
order, which are solutions with the same triangle.
"""

from __future__ import annotations

import builtins
from typing import Any

import webgrad as wg
from webgrad import Tensor

from ..arrays import Array, np
from . import small
from .host import on_host
from .matrices import adjoint, alike, given, refuse_oblong, restored, square, stacked, wide

__all__ = ["cholesky_inverse", "cholesky_solve", "solve_triangular", "substituted", "triangle_of"]

BLOCK = 32  # rows that are solved one by one before a product takes them all away


def solve_triangular(
    x1: Tensor, x2: Tensor, /, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """The X of x1 @ X = x2, or of X @ x1 = x2 with `left=False`, where x1 is a triangle.

    The other triangle of x1 is not looked at; nor is its diagonal with `unitriangular`, which counts as ones.
    A zero on the diagonal gives infinities and NaN, and no error.

    >>> a = wg.asarray([[2.0, 1.0], [0.0, 4.0]])
    >>> wg.linalg.solve_triangular(a, wg.asarray([[4.0], [8.0]]), upper=True).tolist()
    [[1.0], [2.0]]
    """
    a, b = square("solve_triangular", x1), wide("solve_triangular", stacked("solve_triangular", x2))
    a, b = alike("solve_triangular", a, b)
    if b.shape[-2 if left else -1] != a.shape[-1]:
        raise wg.ShapeError(
            f"linalg.solve_triangular of {a.shape} and {b.shape}: the second has as many "
            f"{'rows' if left else 'columns'} as the first, {a.shape[-1]}"
        )
    if not left:
        found = _solution(a.mT, b.mT, not upper, unitriangular).mT
    else:
        found = _solution(a, b, upper, unitriangular)
    return restored(found, x2)


def _solution(a: Tensor, b: Tensor, upper: bool, unit: bool) -> Tensor:
    """The solution for stacks that broadcast."""
    stack = wg.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (wg.broadcast_to(each, (*stack, *each.shape[-2:])) for each in (a, b))
    found: Tensor = _substitution(a, b, builtins.bool(upper), builtins.bool(unit))
    return found


@wg.custom_gradient
def _substitution(a: Tensor, b: Tensor, upper: bool, unit: bool) -> Any:
    if small.fits_elimination(a, b):
        result = small.substituted(a, b, upper, unit)
    else:
        (result,) = on_host(
            "solve_triangular", lambda left, right: (substituted(left, right, upper, unit),), a, b
        )

    def pull(g: Tensor) -> tuple[Tensor, Tensor]:
        by_b = _substitution(adjoint(a), g, not upper, unit)
        solution = _substitution(a, b, upper, unit) if wg.is_grad_enabled() else result
        return -triangle_of(by_b @ adjoint(solution), upper, unit), by_b

    return result, pull


def triangle_of(x: Tensor, upper: bool, strict: bool) -> Tensor:
    """One triangle of matrices, with the diagonal or without."""
    return wg.triu(x, int(strict)) if upper else wg.tril(x, -int(strict))


def substituted(a: Array, b: Array, upper: bool, unit: bool = False) -> Array:
    """The solution by substitution, row by row within blocks, for arrays of one stack."""
    if upper:  # the last row is the first then
        turned = substituted(a[..., ::-1, ::-1], b[..., ::-1, :], False, unit)
        return np.ascontiguousarray(turned[..., ::-1, :])
    x = np.array(b, order="C")
    for start in range(0, a.shape[-1], BLOCK):
        end = min(start + BLOCK, a.shape[-1])
        if start:
            x[..., start:end, :] -= a[..., start:end, :start] @ x[..., :start, :]
        for row in range(start, end):
            if row > start:
                x[..., row, :] -= (a[..., row : row + 1, start:row] @ x[..., start:row, :])[..., 0, :]
            if not unit:
                x[..., row, :] /= a[..., row, row, None]
    return x


# By Cholesky's factor


def cholesky_solve(x1: Tensor, x2: Tensor, /, *, upper: bool = False) -> Tensor:
    """The X of A @ X = x1, where x2 is Cholesky's factor of A: L of L @ L^H, or U of U^H @ U.

    >>> lower = wg.linalg.cholesky(wg.asarray([[4.0, 0.0], [0.0, 9.0]]))
    >>> wg.linalg.cholesky_solve(wg.asarray([[4.0], [18.0]]), lower).tolist()
    [[1.0], [2.0]]
    """
    factor = given("cholesky_solve", x2)
    first, second = (adjoint(factor), factor) if upper else (factor, adjoint(factor))
    halfway = solve_triangular(first, x1, upper=False)
    return solve_triangular(second, halfway, upper=True)


def cholesky_inverse(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The inverse of A, where x is Cholesky's factor of it: L of L @ L^H, or U of U^H @ U.

    >>> lower = wg.linalg.cholesky(wg.asarray([[4.0, 0.0], [0.0, 2.0]]))
    >>> [[round(each, 4) for each in row] for row in wg.linalg.cholesky_inverse(lower).tolist()]
    [[0.25, 0.0], [0.0, 0.5]]
    """
    factor = stacked("cholesky_inverse", x)
    refuse_oblong("cholesky_inverse", factor)
    lower = adjoint(factor) if upper else factor
    one = wg.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    inverse = solve_triangular(lower, one, upper=False)
    return adjoint(inverse) @ inverse

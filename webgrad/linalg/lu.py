"""Triangles from Gauss's elimination: lu_factor, lu, lu_unpack, lu_solve.

In: stacks of matrices of any shape. Out: L and U in one matrix, and LAPACK's pivots: row i was swapped with
row pivots[i] - 1, from the first on. Gradients are solutions with the triangles.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import webgrad as wg
from webgrad import Tensor

from ..arrays import Array, np
from . import small
from .host import on_host
from .matrices import adjoint, given, ready, restored, square
from .triangles import solve_triangular, substituted

__all__ = ["LU", "LUFactor", "eliminated", "lu", "lu_factor", "lu_solve", "lu_unpack", "pivot_sizes"]

BLOCK = 64  # columns that are eliminated one by one before a product takes them from the others


class LUFactor(NamedTuple):
    """L below the diagonal (its own is ones) and U from it on, and the rows that were swapped."""

    LU: Tensor
    pivots: Tensor


class LU(NamedTuple):
    """A permutation, a lower triangle with ones on its diagonal, and an upper one."""

    P: Tensor
    L: Tensor
    U: Tensor


def lu_factor(x: Tensor, /, *, pivot: bool = True) -> LUFactor:
    """The triangles L and U with x = P @ L @ U in one matrix, and pivots from 1.

    A singular matrix has a zero on the diagonal of U, and is no error.

    >>> wg.linalg.lu_factor(wg.asarray([[1.0, 2.0], [2.0, 2.0]])).LU.tolist()
    [[2.0, 2.0], [0.5, 1.0]]
    """
    compact, pivots = _elimination(ready("lu_factor", x), bool(pivot))
    return LUFactor(restored(compact, x), pivots)


def lu(x: Tensor, /, *, pivot: bool = True) -> LU:
    """P, L and U with x = P @ L @ U.

    >>> wg.linalg.lu(wg.asarray([[1.0, 2.0], [2.0, 2.0]])).P.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return lu_unpack(*lu_factor(x, pivot=pivot))


def lu_unpack(x: Tensor, pivots: Tensor, /) -> LU:
    """P, L and U of what `lu_factor` gives.

    >>> wg.linalg.lu_unpack(*wg.linalg.lu_factor(wg.asarray([[4.0, 8.0], [2.0, 6.0]]))).L.tolist()
    [[1.0, 0.0], [0.5, 1.0]]
    """
    compact = given("lu_unpack", x)
    rows, columns = compact.shape[-2:]
    least = min(rows, columns)
    one = wg.eye(rows, least, dtype=compact.dtype, device=compact.device)
    order = permutation(pivots, rows)
    places = wg.arange(rows, dtype=order.dtype, device=compact.device)
    swaps = (places[:, None] == order[..., None, :]).astype(compact.dtype)
    return LU(swaps, wg.tril(compact[..., :least], -1) + one, wg.triu(compact[..., :least, :]))


def permutation(pivots: Tensor, rows: int) -> Tensor:
    """Which row of a matrix each row of L @ U is: all swaps together."""

    def compute(given: Array) -> tuple[Array, ...]:
        swaps = given.reshape(math.prod(given.shape[:-1]), given.shape[-1]).astype(np.int64) - 1
        order = np.tile(np.arange(rows, dtype=np.int32), (len(swaps), 1))
        every = np.arange(len(swaps))
        for at in range(swaps.shape[-1]):
            other = swaps[:, at]
            here, there = order[:, at].copy(), order[every, other]
            order[:, at], order[every, other] = there, here
        return (order.reshape(*given.shape[:-1], rows),)

    if small.fits_pivots(pivots, rows):
        order: Tensor = small.permuted(pivots, rows)
    else:
        (order,) = on_host("lu_unpack", compute, pivots)
    return order


@wg.custom_gradient
def _elimination(x: Tensor, pivot: bool) -> Any:
    if small.fits_elimination(x):
        compact, pivots = small.eliminated(x, pivot)
    else:
        compact, pivots = on_host("lu_factor", lambda a: eliminated(a, pivot), x)

    def pull(g: Tensor, _: Tensor | None) -> Tensor:
        again = _elimination(x, pivot)[0] if wg.is_grad_enabled() else compact
        inner = _through_triangles(again, g)
        back = wg.argsort(permutation(pivots, x.shape[-2]), axis=-1)
        return wg.take_along_axis(inner, wg.broadcast_to(back[..., None], inner.shape), -2)

    return (compact, pivots), pull


def _through_triangles(compact: Tensor, g: Tensor) -> Tensor:
    """The gradient of L and U, by the rows of L @ U."""
    rows, columns = compact.shape[-2:]
    least = min(rows, columns)
    corner, by_corner = compact[..., :least, :least], g[..., :least, :least]
    lower, upper = wg.tril(corner, -1) + wg.eye(least, dtype=g.dtype, device=g.device), wg.triu(corner)
    by_lower, by_upper = wg.tril(by_corner, -1), wg.triu(by_corner)
    beyond: list[Tensor] = []
    if rows > columns:  # L goes on below: what is there is divided by U
        below = compact[..., least:, :]
        by_below = solve_triangular(adjoint(upper), g[..., least:, :], upper=False, left=False)
        by_upper = by_upper - wg.triu(adjoint(below) @ by_below)
        beyond = [by_below]
    elif columns > rows:  # U goes on beside: what is there is divided by L
        beside = compact[..., least:]
        by_beside = solve_triangular(adjoint(lower), g[..., least:], upper=True, unitriangular=True)
        by_lower = by_lower - wg.tril(by_beside @ adjoint(beside), -1)
        beyond = [by_beside]
    inner = wg.tril(adjoint(lower) @ by_lower, -1) + wg.triu(by_upper @ adjoint(upper))
    inner = solve_triangular(adjoint(lower), inner, upper=True, unitriangular=True)
    inner = solve_triangular(adjoint(upper), inner, upper=False, left=False)
    return wg.concat([inner, *beyond], axis=-2 if rows > columns else -1)


def eliminated(a: Array, pivot: bool) -> tuple[Array, Array]:
    """L and U in one array, and pivots; of a stack all matrices together."""
    rows, columns = a.shape[-2:]
    least = min(rows, columns)
    x = np.array(a.reshape(math.prod(a.shape[:-2]), rows, columns), order="C")
    every = np.arange(len(x))
    pivots = np.empty((len(x), least), np.int32)
    for start in range(0, least, BLOCK):
        end = min(start + BLOCK, least)
        for at in range(start, end):
            found = np.full(len(x), at)
            if pivot:
                found = np.argmax(pivot_sizes(x[:, at:, at]), axis=-1) + at
                here = x[:, at].copy()
                x[:, at] = x[every, found]
                x[every, found] = here
            pivots[:, at] = found + 1
            by = x[:, at, at]
            x[:, at + 1 :, at] /= np.where(by == 0, 1, by)[:, None]  # all of them are 0 then
            x[:, at + 1 :, at + 1 : end] -= x[:, at + 1 :, at, None] * x[:, at, None, at + 1 : end]
        if end < columns:
            x[:, start:end, end:] = substituted(
                x[:, start:end, start:end], x[:, start:end, end:], False, True
            )
            x[:, end:, end:] -= x[:, end:, start:end] @ x[:, start:end, end:]
    return x.reshape(a.shape), pivots.reshape(*a.shape[:-2], least)


def pivot_sizes(a: Array) -> Array:
    """How large numbers are, as LAPACK chooses pivots: of complex ones the sum of the parts' sizes."""
    return np.abs(a.real) + np.abs(a.imag) if a.dtype.kind == "c" else np.abs(a)


def lu_solve(
    x1: Tensor, pivots: Tensor, x2: Tensor, /, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """The X of A @ X = x2, or of X @ A = x2 with `left=False`, by `lu_factor` of A; with `adjoint` of A^H.

    >>> compact, pivots = wg.linalg.lu_factor(wg.asarray([[0.0, 2.0], [4.0, 0.0]]))
    >>> wg.linalg.lu_solve(compact, pivots, wg.asarray([[2.0], [8.0]])).tolist()
    [[2.0], [1.0]]
    """
    compact, b = square("lu_solve", x1), given("lu_solve", x2)
    if not left:  # the same of adjoints
        found = lu_solve(compact, pivots, _adjoint(b), adjoint=not adjoint)
        return _adjoint(found)
    order = permutation(pivots, compact.shape[-1])
    if adjoint:
        halfway = solve_triangular(_adjoint(compact), b, upper=False)
        found = solve_triangular(_adjoint(compact), halfway, upper=True, unitriangular=True)
        return _rows(found, wg.argsort(order, axis=-1))
    halfway = solve_triangular(compact, _rows(b, order), upper=False, unitriangular=True)
    return solve_triangular(compact, halfway, upper=True)


_adjoint = adjoint


def _rows(x: Tensor, order: Tensor) -> Tensor:
    """Rows of matrices in another order."""
    stack = wg.broadcast_shapes(order.shape[:-1], x.shape[:-2])
    shape = (*stack, *x.shape[-2:])
    places = wg.broadcast_to(order[..., None], shape)
    return wg.take_along_axis(wg.broadcast_to(x, shape), places, -2)

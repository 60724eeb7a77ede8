"""Factors of symmetric matrices that need not be positive: ldl_factor and ldl_solve, by Bunch and Kaufman.

In: stacks of symmetric or Hermitian matrices, of which the lower triangle is looked at. Out: L below blocks
of one or two rows on the diagonal, and LAPACK's pivots: a negative one belongs to a block of two. Computed
on the host, matrix by matrix; neither has a gradient.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import webgrad as wg
from webgrad import Tensor

from ..arrays import Array, np
from .host import on_host
from .lu import pivot_sizes
from .matrices import alike, given, refuse_gradient, restored, square, wide

__all__ = ["LDLFactor", "ldl_factor", "ldl_solve"]

GROWTH = (1 + math.sqrt(17)) / 8  # the pivot's least part of the largest element that keeps growth least


class LDLFactor(NamedTuple):
    """L and the blocks of D in one matrix, and the rows that were swapped."""

    LD: Tensor
    pivots: Tensor


def ldl_factor(x: Tensor, /, *, hermitian: bool = False) -> LDLFactor:
    """L and D of x = P L D L^T P^T in one matrix, and pivots; L^H with `hermitian`. Computed on the host.

    It has no gradient; `solve` has.

    >>> wg.linalg.ldl_factor(wg.asarray([[4.0, 2.0], [2.0, 3.0]])).LD.tolist()
    [[4.0, 0.0], [0.5, 2.0]]
    """
    matrices = square("ldl_factor", x)
    refuse_gradient("ldl_factor", matrices, "use linalg.solve or linalg.eigh")

    def compute(a: Array) -> tuple[Array, Array]:
        found = np.tril(a)
        pivots = np.zeros(a.shape[:-1], np.int32)
        for place in np.ndindex(a.shape[:-2]):
            _factor(found[place], pivots[place], hermitian)
        return found, pivots

    found, pivots = on_host("ldl_factor", compute, matrices)
    return LDLFactor(restored(found, x), pivots)


def _factor(a: Array, pivots: Array, hermitian: bool) -> None:
    """L and D in the place of one matrix."""
    at, count = 0, len(a)
    while at < count:
        pivot, size = _pivot(a, at)
        if pivot != at + size - 1:
            _swap(a, at, size, pivot, hermitian)
        end = at + size
        block, below = _block(a, at, size, hermitian), a[end:, at:end]
        if block.any():
            scaled = below @ np.linalg.inv(block)
            other = below.conj() if hermitian else below
            a[end:, end:] -= np.tril(scaled @ other.T)
            a[end:, at:end] = scaled
        pivots[at:end] = pivot + 1 if size == 1 else -(pivot + 1)
        at = end


def _pivot(a: Array, at: int) -> tuple[int, int]:
    """The row to swap with, and whether the block has one row or two."""
    sizes = pivot_sizes(a)
    own = sizes[at, at]
    column = sizes[at + 1 :, at]
    largest = column.max(initial=0)
    if own >= GROWTH * largest:
        return at, 1
    row = at + 1 + int(column.argmax())
    beside = max(sizes[row, at:row].max(initial=0), sizes[row + 1 :, row].max(initial=0))
    if own * beside >= GROWTH * largest * largest:
        return at, 1
    return row, 1 if sizes[row, row] >= GROWTH * beside else 2


def _swap(a: Array, at: int, size: int, pivot: int, hermitian: bool) -> None:
    """Two rows and columns of the lower triangle, exchanged."""
    row = at + size - 1
    a[pivot + 1 :, [row, pivot]] = a[pivot + 1 :, [pivot, row]]
    between = a[row + 1 : pivot, row].copy()
    a[row + 1 : pivot, row] = a[pivot, row + 1 : pivot]
    a[pivot, row + 1 : pivot] = between
    a[[row, pivot], [row, pivot]] = a[[pivot, row], [pivot, row]]
    if hermitian:
        for part in (a[row + 1 : pivot, row], a[pivot, row + 1 : pivot], a[pivot : pivot + 1, row]):
            np.conjugate(part, out=part)
    if size == 2:
        a[[row, pivot], at] = a[[pivot, row], at]


def _block(a: Array, at: int, size: int, hermitian: bool) -> Array:
    """One block of D, whole."""
    if size == 1:
        block = a[at : at + 1, at : at + 1].copy()
    else:
        other = a[at + 1, at].conj() if hermitian else a[at + 1, at]
        block = np.array([[a[at, at], other], [a[at + 1, at], a[at + 1, at + 1]]])
    if hermitian:
        np.fill_diagonal(block, block.diagonal().real)
    return block


def ldl_solve(x1: Tensor, pivots: Tensor, x2: Tensor, /, *, hermitian: bool = False) -> Tensor:
    """The X of A @ X = x2, by `ldl_factor` of A; computed on the host.

    >>> factors = wg.linalg.ldl_factor(wg.asarray([[4.0, 0.0], [0.0, 2.0]]))
    >>> wg.linalg.ldl_solve(*factors, wg.asarray([[4.0], [4.0]])).tolist()
    [[1.0], [2.0]]
    """
    a, b = square("ldl_solve", x1), wide("ldl_solve", given("ldl_solve", x2))
    refuse_gradient("ldl_solve", a, "use linalg.solve")
    refuse_gradient("ldl_solve", b, "use linalg.solve")
    a, b = alike("ldl_solve", a, b)
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise wg.ShapeError(
            f"linalg.ldl_solve of {a.shape} and {b.shape}: the second has as many rows as the first"
        )

    def compute(factors: Array, right: Array, swaps: Array) -> tuple[Array, ...]:
        stack = np.broadcast_shapes(factors.shape[:-2], right.shape[:-2])
        found = np.array(np.broadcast_to(right, (*stack, *right.shape[-2:])))
        factors = np.broadcast_to(factors, (*stack, *factors.shape[-2:]))
        swaps = np.broadcast_to(swaps, (*stack, swaps.shape[-1]))
        for place in np.ndindex(stack):
            _solve(factors[place], swaps[place], found[place], hermitian)
        return (found,)

    (found,) = on_host("ldl_solve", compute, a, b, pivots)
    return restored(found, x2)


def _solve(a: Array, pivots: Array, b: Array, hermitian: bool) -> None:
    """The solution in the place of b."""
    blocks = []  # where each begins, how many rows it has, and which row was swapped
    at = 0
    while at < len(a):
        size = 1 if pivots[at] > 0 else 2
        blocks.append((at, at + size, abs(int(pivots[at])) - 1))
        at += size
    for begin, end, other in blocks:
        b[[end - 1, other]] = b[[other, end - 1]]
        b[end:] -= a[end:, begin:end] @ b[begin:end]
        b[begin:end] = np.linalg.inv(_block(a, begin, end - begin, hermitian)) @ b[begin:end]
    for begin, end, other in reversed(blocks):
        lower = a[end:, begin:end]
        b[begin:end] -= (lower.conj() if hermitian else lower).T @ b[end:]
        b[[end - 1, other]] = b[[other, end - 1]]

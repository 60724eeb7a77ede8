"""Functions of whole matrices: matrix_exp, cond, tensorinv, tensorsolve; and factors of low rank.

In: tensors. Out: tensors that are composed of other functions of this package, so that gradients are theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import webgrad as wg
from webgrad import Tensor

from ..arrays import np
from .decompositions import SVD, qr, svd, svdvals
from .host import read
from .matrices import adjoint, given, ready, restored, square, wide
from .products import matrix_norm
from .solvers import inv, inv_ex, solve

__all__ = ["cond", "matrix_exp", "pca_lowrank", "svd_lowrank", "tensorinv", "tensorsolve"]

TAYLOR = 16  # the degree of the series, for a norm of 1/2: what is left out is 2e-20 of the result


def matrix_exp(x: Tensor, /) -> Tensor:
    """The exponentials of square matrices: 1 + x + x @ x / 2 + …

    Products on the device: the series of x / 2^s, squared s times. Norms are read on the host, to know s.

    >>> wg.linalg.matrix_exp(wg.zeros((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    matrices = square("matrix_exp", x)
    if not matrices.size:
        return restored(matrices, x)
    norms = read("matrix_exp", matrix_norm(matrices.detach(), ord=1))
    sizes = np.where(np.isfinite(norms), norms, 0.0)
    with np.errstate(divide="ignore"):
        halvings = np.maximum(np.ceil(np.log2(sizes) + 1), 0).astype(np.int32)
    scales = wg.asarray(np.ldexp(1.0, -halvings).astype(norms.dtype), device=matrices.device)
    result = _series(matrices * scales[..., None, None])
    counts = wg.asarray(halvings, device=matrices.device)[..., None, None]
    for squared in range(int(halvings.max())):
        result = wg.where(counts > squared, result @ result, result)
    return restored(result, x)


def _series(x: Tensor) -> Tensor:
    """Taylor's series of the exponential, of powers up to the fourth."""
    one = wg.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    square = x @ x
    powers = [one, x, square, square @ x]
    fourth = square @ square
    total: Any = fourth / math.factorial(TAYLOR)
    for start in range(TAYLOR - 4, -1, -4):
        part = sum(
            (powers[at] / math.factorial(start + at) for at in range(1, 4)), one / math.factorial(start)
        )
        total = part + (fourth @ total if start < TAYLOR - 4 else total)
    return wg.asarray(total)


def cond(x: Tensor, p: Any = None, /) -> Tensor:
    """How much a matrix may enlarge relative errors: its norm times that of its inverse.

    p is an order of `matrix_norm`; without one it is 2, the largest singular value by the smallest, of any
    matrix. Singular matrices give infinity.

    >>> wg.linalg.cond(wg.asarray([[4.0, 0.0], [0.0, 2.0]])).item()
    2.0
    """
    if p is None or p in (2, -2):
        matrices = ready("cond", x)
        values = svdvals(matrices)
        if not values.shape[-1]:
            return restored(wg.zeros(values.shape[:-1], dtype=values.dtype, device=values.device), x)
        first, last = values[..., 0], values[..., -1]
        return restored(first / last if p != -2 else last / first, x)
    matrices = square("cond", x)
    inverse, info = inv_ex(matrices)
    product = matrix_norm(matrices, ord=p) * matrix_norm(inverse, ord=p)
    return restored(wg.where(info == 0, product, math.inf), x)


def tensorinv(x: Tensor, /, ind: int = 2) -> Tensor:
    """The inverse of a tensor as a matrix, whose first `ind` axes count rows, and the others columns.

    >>> wg.linalg.tensorinv(wg.eye(6).reshape((2, 3, 6)), ind=2).shape
    (6, 2, 3)
    """
    a = given("tensorinv", x)
    if not hasattr(ind, "__index__") or ind <= 0:
        raise wg.ArgumentError(
            f"linalg.tensorinv: Expected a strictly positive integer for 'ind', got {ind!r}"
        )
    rows, columns = tuple(a.shape[:ind]), tuple(a.shape[ind:])
    if math.prod(rows) != math.prod(columns):
        raise wg.ShapeError(
            f"linalg.tensorinv of {tuple(a.shape)} with ind={ind}: Expected self to satisfy the requirement "
            "prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{math.prod(columns)} != {math.prod(rows)}"
        )
    inverse = inv(wg.reshape(a, (math.prod(rows), math.prod(columns))))
    return wg.reshape(inverse, (*columns, *rows))


def tensorsolve(x1: Tensor, x2: Tensor, /, axes: Sequence[int] | None = None) -> Tensor:
    """The X with tensordot(x1, X, X.ndim) = x2; `axes` of x1 are moved to its end first.

    >>> wg.linalg.tensorsolve(wg.eye(6).reshape((2, 3, 6)), wg.ones((2, 3))).shape
    (6,)
    """
    a, b = given("tensorsolve", x1), given("tensorsolve", x2)
    if axes is not None:
        a = wg.moveaxis(a, tuple(axes), tuple(range(a.ndim - len(axes), a.ndim)))
    shape = tuple(a.shape[b.ndim :])
    if b.size != math.prod(shape) or a.size != b.size * b.size:
        raise wg.ShapeError(
            f"linalg.tensorsolve of {tuple(a.shape)} and {tuple(b.shape)}: Expected self to satisfy the "
            "requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim])"
        )
    found = solve(wg.reshape(a, (b.size, b.size)), wg.reshape(b, (b.size,)))
    return wg.reshape(found, shape)


# Of low rank


def svd_lowrank(x: Tensor, /, q: int = 6, *, niter: int = 2, mean: Tensor | None = None) -> SVD:
    """The first q singular values of x, or of x - mean, and their vectors, about: by random projections.

    Each of `niter` turns makes them better; x is only multiplied with thin matrices.

    >>> wg.linalg.svd_lowrank(wg.ones((5, 4)), q=2).S.shape
    (2,)
    """
    matrices = wide("svd_lowrank", ready("svd_lowrank", x))
    if mean is not None:
        matrices = matrices - wg.broadcast_to(mean, matrices.shape)
    rows, columns = matrices.shape[-2:]
    if not 0 <= q <= min(rows, columns):
        raise wg.ArgumentError(
            f"linalg.svd_lowrank: q(={q}) must be a non-negative integer and not greater than min(m, n)="
            f"{min(rows, columns)}"
        )
    turned = matrices if rows >= columns else adjoint(matrices)
    start = wg.random.randn(turned.shape[-1], q, dtype=wg.real(turned).dtype, device=turned.device)
    basis = qr(turned @ start.astype(turned.dtype)).Q
    for _ in range(niter):
        basis = qr(adjoint(turned) @ basis).Q
        basis = qr(turned @ basis).Q
    u, s, vh = svd(adjoint(basis) @ turned, full_matrices=False)
    left = basis @ u
    return SVD(left, s, vh) if rows >= columns else SVD(adjoint(vh), s, adjoint(left))


def pca_lowrank(x: Tensor, /, q: int | None = None, *, center: bool = True, niter: int = 2) -> SVD:
    """`svd_lowrank` of rows less their mean: principal components are the rows of Vh. q is 6 or less.

    >>> wg.linalg.pca_lowrank(wg.ones((5, 4)), q=2).Vh.shape
    (2, 4)
    """
    matrices = ready("pca_lowrank", x)
    count = min(6, *matrices.shape[-2:]) if q is None else q
    mean = wg.mean(matrices, axis=-2, keepdims=True) if center else None
    return svd_lowrank(matrices, count, niter=niter, mean=mean)

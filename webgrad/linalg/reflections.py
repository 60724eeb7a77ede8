"""Householder's reflections: geqrf, and products with what it gives, householder_product and ormqr.

In: matrices whose columns, below the diagonal, are vectors v with v[i] = 1 above them, and factors tau. Out:
products with Q = (1 - tau[0] v0 v0^H) (1 - tau[1] v1 v1^H) …, composed of a few products and a triangular
solution, with their gradients: all reflections together are 1 - V T V^H, where T is a triangle.
"""

from __future__ import annotations

from typing import NamedTuple

import webgrad as wg
from webgrad import Tensor

from ..arrays import Array, np
from . import small
from .host import on_host
from .matrices import adjoint, given, ready, refuse_gradient, restored, wide
from .triangles import solve_triangular

__all__ = ["Reflections", "geqrf", "householder_product", "ormqr"]


class Reflections(NamedTuple):
    """R from the diagonal on and the vectors of reflections below it, and their factors."""

    a: Tensor
    tau: Tensor


def geqrf(x: Tensor, /) -> Reflections:
    """The triangle R and the reflections whose product is Q, as LAPACK has them.

    It has no gradient; `qr` has.

    >>> [round(abs(each), 4) for each in wg.linalg.geqrf(wg.asarray([[3.0], [4.0]])).a[0].tolist()]
    [5.0]
    """
    matrices = ready("geqrf", x)
    refuse_gradient("geqrf", matrices, "use linalg.qr")

    def compute(a: Array) -> tuple[Array, Array]:
        compact, tau = np.linalg.qr(a, "raw")
        return compact.swapaxes(-1, -2).astype(a.dtype), tau.astype(a.dtype)

    found, tau = small.reflected(matrices) if small.fits(matrices) else on_host("geqrf", compute, matrices)
    return Reflections(restored(found, x), restored(tau, x))


def householder_product(x: Tensor, tau: Tensor, /) -> Tensor:
    """The first columns, as many as x has, of the product of the reflections that `geqrf` gives.

    >>> wg.linalg.householder_product(wg.asarray([[5.0], [0.0]]), wg.asarray([2.0])).tolist()
    [[-1.0], [0.0]]
    """
    name = "householder_product"
    matrices, factors = ready(name, x), wide(name, given(name, tau))
    rows, columns = matrices.shape[-2:]
    if rows < columns:
        raise wg.ShapeError(
            f"linalg.{name}: input.shape[-2] must be greater than or equal to input.shape[-1], not "
            f"{matrices.shape}"
        )
    vectors = _vectors(name, matrices, factors)
    one = wg.eye(rows, columns, dtype=matrices.dtype, device=matrices.device)
    turned = _triangle(vectors, factors, adjoint(vectors)[..., :columns])
    return restored(one - vectors @ turned, x)


def ormqr(x: Tensor, tau: Tensor, other: Tensor, /, *, left: bool = True, transpose: bool = False) -> Tensor:
    """Q @ other, or other @ Q with `left=False`, of the whole Q of `geqrf`; with `transpose` of its adjoint.

    >>> wg.linalg.ormqr(wg.asarray([[5.0], [0.0]]), wg.asarray([2.0]), wg.ones((2, 1))).tolist()
    [[-1.0], [1.0]]
    """
    matrices, factors = ready("ormqr", x), wide("ormqr", given("ormqr", tau))
    b = ready("ormqr", other)
    if b.shape[-2 if left else -1] != matrices.shape[-2]:
        raise wg.ShapeError(
            f"linalg.ormqr of {matrices.shape} and {b.shape}: the other has as many "
            f"{'rows' if left else 'columns'} as the first has rows, {matrices.shape[-2]}"
        )
    if not left:  # the adjoint of Q^H @ other^H
        return adjoint(ormqr(x, tau, adjoint(b), transpose=not transpose))
    vectors = _vectors("ormqr", matrices, factors)
    along = adjoint(vectors) @ b
    turned = _back(vectors, factors, along) if transpose else _triangle(vectors, factors, along)
    return restored(b - vectors @ turned, other)


def _vectors(name: str, x: Tensor, tau: Tensor) -> Tensor:
    """The vectors as columns: ones on the diagonal, zeros above it."""
    count = tau.shape[-1]
    if tau.ndim != x.ndim - 1 or count > x.shape[-1] or tau.shape[:-1] != x.shape[:-2]:
        raise wg.ShapeError(
            f"linalg.{name}: tau of {tau.shape} has no factor for each column of {x.shape}, or for the first "
            "ones"
        )
    one = wg.eye(x.shape[-2], count, dtype=x.dtype, device=x.device)
    return wg.tril(x[..., :count], -1) + one


def _mixed(vectors: Tensor, tau: Tensor) -> Tensor:
    """1 + S D, where S are products of each vector with later ones, and D has tau on its diagonal."""
    one = wg.eye(tau.shape[-1], dtype=tau.dtype, device=tau.device)
    return wg.triu(adjoint(vectors) @ vectors, 1) * tau[..., None, :] + one


def _triangle(vectors: Tensor, tau: Tensor, x: Tensor) -> Tensor:
    """T @ x, for T = D (1 + S D)^-1."""
    return tau[..., None] * solve_triangular(_mixed(vectors, tau), x, upper=True, unitriangular=True)


def _back(vectors: Tensor, tau: Tensor, x: Tensor) -> Tensor:
    """T^H @ x."""
    scaled = wg.conj(tau)[..., None] * x if tau.dtype.kind == "c" else tau[..., None] * x
    return solve_triangular(adjoint(_mixed(vectors, tau)), scaled, upper=False, unitriangular=True)

"""Linear algebra of torch itself and its tensors, by names older than torch.linalg's.

In: matrices along the last two dimensions. Out: tensors, or named tuples of them.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import webgrad as wg

from . import linalg
from .binding import bind

__all__ = ["functions"]

ROWS = """
[function method out]
cholesky(input, upper=False) = th.cholesky(input, upper=upper)
cholesky_inverse(input, upper=False) = la.cholesky_inverse(input, upper=upper)
cholesky_solve(input, input2, upper=False) = la.cholesky_solve(input, input2, upper=upper)
geqrf(input) = la.geqrf(input)
inverse(input) = th.inv(input)
lu_solve(input, LU_data, LU_pivots) = la.lu_solve(LU_data, LU_pivots, input)
matrix_power(input, n) = la.matrix_power(input, n)
orgqr(input, tau) = la.householder_product(input, tau)
ormqr(input, tau, other, left=True, transpose=False) = la.ormqr(input, tau, other, left=left,
    transpose=transpose)
qr(input, some=True) = la.qr(input, mode="reduced" if some else "complete")
svd(input, some=True, compute_uv=True) = factors(input, some, compute_uv)
triangular_solve(input, A, upper=True, transpose=False, unitriangular=False) = triangular(input, A, upper,
    transpose, unitriangular)

[function method]
det(input) = la.det(input)
logdet(input) = logarithm(la.slogdet(input))
matrix_exp(input) = la.matrix_exp(input)
pinverse(input, rcond=1e-15) = la.pinv(input, rtol=rcond)
slogdet(input) = la.slogdet(input)
lu(input, pivot=True, get_infos=False) = eliminated(input, pivot, get_infos)

[function out]
chain_matmul(*matrices) = chained(matrices)
lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True) = unpacked(LU_data, LU_pivots,
    unpack_data, unpack_pivots)

[function]
svd_lowrank(A, q=6, niter=2, M=None) = of_low_rank(la.svd_lowrank(A, q, niter=niter, mean=M))
pca_lowrank(A, q=None, center=True, niter=2) = of_low_rank(la.pca_lowrank(A, q, center=center, niter=niter))
lobpcg(A, *others, **options) = refused("lobpcg", "torch.linalg.eigh gives all eigenvalues")
"""
la: Any = wg.linalg
th: Any = linalg
SVD = namedtuple("SVD", "U S V")
TriangularSolution = namedtuple("TriangularSolution", "solution cloned_coefficient")


def refused(name: str, instead: str) -> Any:
    """No result: what there is instead."""
    raise NotImplementedError(f"torch.{name} is not offered: {instead}")


def adjoint(x: Any) -> Any:
    """The conjugate transpose."""
    return wg.conj(x).mT if x.dtype.kind == "c" else x.mT


def factors(x: Any, some: bool, compute_uv: bool) -> Any:
    """torch.svd: V and not its adjoint; zeros for vectors that are not asked for."""
    if not compute_uv:
        rows, columns = x.shape[-2:]
        values = la.svdvals(x)
        empty = [wg.zeros((*x.shape[:-2], n, n), dtype=x.dtype, device=x.device) for n in (rows, columns)]
        return SVD(empty[0], values, empty[1])
    u, s, vh = la.svd(x, full_matrices=not some)
    return SVD(u, s, adjoint(vh))


def of_low_rank(found: Any) -> Any:
    """V and not its adjoint."""
    return found[0], found[1], adjoint(found[2])


def triangular(b: Any, a: Any, upper: bool, transpose: bool, unit: bool) -> Any:
    """torch.triangular_solve: the solution, and the matrices."""
    given = a.mT if transpose else a
    found = la.solve_triangular(given, b, upper=upper != transpose, unitriangular=unit)
    return TriangularSolution(found, a.clone())


def logarithm(found: Any) -> Any:
    """The logarithm of a determinant: NaN of a negative one; of complex ones it has a phase."""
    sign, size = found
    if sign.dtype.kind == "c":
        return wg.log(sign) + size
    return wg.where(sign == -1, wg.nan, size)


def eliminated(x: Any, pivot: bool, get_infos: bool) -> Any:
    """torch.lu: the factors as one matrix and pivots; and where a pivot is 0."""
    found = th.lu_factor_ex(x, pivot=pivot)
    return tuple(found) if get_infos else tuple(found[:2])


def chained(matrices: Any) -> Any:
    """The product of several matrices; of one it is itself."""
    if len(matrices) == 1 and isinstance(matrices[0], list | tuple):
        matrices = matrices[0]
    return la.multi_dot(matrices) if len(matrices) > 1 else matrices[0]


def unpacked(compact: Any, pivots: Any, data: bool, permuted: bool) -> Any:
    """P, L and U; what is not asked for is empty."""
    found = la.lu_unpack(compact, pivots)
    empty = wg.zeros((0,), dtype=compact.dtype, device=compact.device)
    return type(found)(found.P if permuted else empty, found.L if data else empty, found.U if data else empty)


functions: dict[str, Any] = bind(ROWS, globals())

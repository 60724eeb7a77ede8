"""torch.linalg: the functions of `webgrad.linalg` by torch's names and signatures.

In: tensors of floats or complex numbers, matrices along the last two dimensions. Out: tensors, or named
tuples of them. `driver` names a routine of LAPACK or cuSOLVER: it is taken, and the results are the same.
"""

from __future__ import annotations

import contextlib
import functools
from collections import namedtuple
from typing import Any

import webgrad as wg

from .binding import absent, bind
from .promotion import cast, matched
from .reductions import axes, counted, index

__all__ = ["LinAlgError"]

ROWS = """
[function out]
cholesky(A, *, upper=False) = sure("cholesky", A.mH if upper else A, upper=upper)
cholesky_ex(A, *, upper=False, check_errors=False) = checked("cholesky", la.cholesky_ex(A.mH if upper else A,
    upper=upper), check_errors)
cond(A, p=None) = la.cond(A, p)
cross(input, other, *, dim=-1) = la.cross(*of_one_rank(input, other), axis=dim)
det(A) = la.det(A)
eig(A) = la.eig(A)
eigh(A, UPLO="L") = la.eigh(lower(A, UPLO))
eigvals(A) = la.eigvals(A)
eigvalsh(A, UPLO="L") = la.eigvalsh(lower(A, UPLO))
householder_product(A, tau) = la.householder_product(A, tau)
inv(A) = sure("inv", A)
inv_ex(A, *, check_errors=False) = checked("inv", la.inv_ex(A), check_errors)
ldl_factor(A, *, hermitian=False) = la.ldl_factor(A, hermitian=hermitian)
ldl_factor_ex(A, *, hermitian=False, check_errors=False) = with_info("ldl_factor", LDLFactorEx,
    la.ldl_factor(A, hermitian=hermitian), check_errors)
ldl_solve(LD, pivots, B, *, hermitian=False) = la.ldl_solve(LD, pivots, B, hermitian=hermitian)
lu(A, *, pivot=True) = la.lu(A, pivot=pivot)
lu_factor(A, *, pivot=True) = la.lu_factor(A, pivot=pivot)
lu_factor_ex(A, *, pivot=True, check_errors=False) = with_info("lu_factor", LUFactorEx, la.lu_factor(A,
    pivot=pivot), check_errors)
lu_solve(LU, pivots, B, *, left=True, adjoint=False) = la.lu_solve(LU, pivots, B, left=left, adjoint=adjoint)
matmul(input, other) = wg.matmul(input, other)
matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None) = la.norm(cast(A, dtype), ord,
    tuple(dim), keepdim)
matrix_power(A, n) = la.matrix_power(A, n)
matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None) = index(la.matrix_rank(A, atol=tol if
    atol is None else atol, rtol=rtol, hermitian=hermitian))
multi_dot(tensors) = la.multi_dot(tensors)
norm(input, ord=None, dim=None, keepdim=False, *, dtype=None) = norm_of(cast(input, dtype), ord, dim, keepdim)
pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None) = la.pinv(A, atol=atol, rtol=rcond if rtol is
    None else rtol, hermitian=hermitian)
qr(A, mode="reduced") = triangle_only(A) if mode == "r" else la.qr(A, mode=mode)
slogdet(A) = la.slogdet(A)
solve(A, B, *, left=True) = solution(functools.partial(sure, "solve"), A, B, left)
solve_ex(A, B, *, left=True, check_errors=False) = checked("solve", solution(la.solve_ex, A, B, left),
    check_errors)
solve_triangular(A, B, *, upper, left=True, unitriangular=False) = la.solve_triangular(A, B, upper=upper,
    left=left, unitriangular=unitriangular)
svd(A, full_matrices=True, *, driver=None) = la.svd(A, full_matrices=full_matrices)
svdvals(A, *, driver=None) = la.svdvals(A)
tensorinv(A, ind=2) = la.tensorinv(A, ind)
tensorsolve(A, B, dims=None) = la.tensorsolve(A, B, dims)
vecdot(x, y, *, dim=-1) = wg.vecdot(*matched(x, y), axis=dim)
vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None) = wg.vector_norm(cast(x, dtype),
    axis=axes(dim), keepdims=keepdim, ord=ord)

[function]
diagonal(A, *, offset=0, dim1=-2, dim2=-1) = wg.diagonal(A, offset, dim1, dim2)
lstsq(A, B, rcond=None, *, driver=None) = nearest(A, B, rcond, driver)
matrix_exp(A) = la.matrix_exp(A)
vander(x, N=None) = wg.vander(wg.reshape(counted(x, None), tuple(x.shape) or (1,)), N, increasing=True)
"""
la: Any = wg.linalg
LinAlgError = wg.LinearAlgebraError
LUFactorEx = namedtuple("LUFactorEx", "LU pivots info")
LDLFactorEx = namedtuple("LDLFactorEx", "LD pivots info")
REASONS = {"cholesky": "not positive definite"}
DRIVERS = (None, "gels", "gelsy", "gelsd", "gelss")


def of_one_rank(x: Any, other: Any) -> tuple[Any, Any]:
    """Two tensors with as many dimensions, promoted."""
    if x.ndim != other.ndim:
        raise RuntimeError(
            f"linalg.cross: inputs must have the same number of dimensions, not {x.ndim} and {other.ndim}"
        )
    return matched(x, other)


def lower(x: Any, uplo: str) -> Any:
    """The triangle that is looked at as the lower one."""
    if uplo.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {uplo}")
    return x.mH if uplo.upper() == "U" else x


def checked(name: str, found: Any, check: bool = True) -> Any:
    """Results with `info`, which is read and must be 0 where the program asks for that."""
    if check and wg.any(found.info != 0).item():
        raise LinAlgError(
            f"linalg.{name}: a matrix is {REASONS.get(name, 'singular')}; info = {found.info.tolist()}"
        )
    return found


def sure(name: str, x: Any, *others: Any, **options: Any) -> Any:
    """inv, solve or cholesky: where a GPU's kernels give NaN, info is read, and is an error as in torch."""
    if not x.device.is_gpu:
        return getattr(la, name)(x, *others, **options)
    found = getattr(la, f"{name}_ex")(x, *others, **options)
    with contextlib.suppress(wg.CaptureError):  # a captured function reads nothing, and goes on with NaN
        checked(name, found)
    return found[0]


def with_info(name: str, kind: Any, factors: Any, check: bool) -> Any:
    """Factors, and 0 or the first zero on the diagonal of the second one."""
    zeros = la.diagonal(factors[0]).detach() == 0
    first = wg.argmax(zeros.astype(wg.int32), axis=-1).astype(wg.int32) + 1 if zeros.shape[-1] else 0
    info = wg.where(wg.any(zeros, axis=-1), first, wg.asarray(0, dtype=wg.int32, device=zeros.device))
    return checked(name, kind(*factors, info), check)


def norm_of(x: Any, ord: Any, dim: Any, keepdim: bool) -> Any:
    """Of one dimension a vector's norm, of two a matrix's."""
    if isinstance(dim, list | tuple):
        dim = dim[0] if len(dim) == 1 else tuple(dim)
    if dim is None or ord is not None or not isinstance(dim, tuple):
        return la.norm(x, ord, dim, keepdim)
    return wg.vector_norm(x, axis=axes(dim), keepdims=keepdim)


def triangle_only(x: Any) -> Any:
    """R alone; Q is empty."""
    empty = wg.zeros((0,), dtype=x.dtype, device=x.device)
    return la.qr(x)._replace(Q=empty)


def solution(solve: Any, a: Any, b: Any, left: bool) -> Any:
    """The solution for matrices, or for a vector for each of the matrices."""
    is_vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and tuple(b.shape) == tuple(a.shape[:-1]))
    if is_vector:
        b = b[..., None]
    elif not left:
        a, b = a.mT, b.mT
    found = solve(a, b)
    x, *info = found if isinstance(found, tuple) else (found,)
    x = x[..., 0] if is_vector else x if left else x.mT
    return type(found)(x, *info) if info else x


def nearest(a: Any, b: Any, rcond: Any, driver: Any) -> Any:
    """lstsq: residuals where there are more rows than columns, ranks and singular values by driver."""
    if driver not in DRIVERS:
        raise RuntimeError(
            "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), but got "
            f"{driver}"
        )
    is_vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and tuple(b.shape) == tuple(a.shape[:-1]))
    found = la.lstsq(a, b[..., None] if is_vector else b, rtol=rcond)
    empty = wg.zeros((0,), dtype=found.singular_values.dtype, device=a.device)
    rows, columns = a.shape[-2:]
    return type(found)(
        found.solution[..., 0] if is_vector else found.solution,
        found.residuals if rows > columns else empty,
        empty.astype(wg.int32) if driver == "gels" else found.rank,
        found.singular_values if driver in ("gelsd", "gelss") else empty,
    )


_functions = bind(ROWS, globals())
globals().update(_functions)
__all__ += _functions
__getattr__ = absent(__name__, __all__)

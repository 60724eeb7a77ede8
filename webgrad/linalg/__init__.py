"""Linear algebra, by the names of the array API standard: `webgrad.linalg`.

In: tensors. Out: tensors on the same device. Products, norms and sums are computed there, when they are
needed; so are factorisations of float32 matrices of at most 32 rows and columns on a GPU. All others are
computed by NumPy's LAPACK on the host: they wait, `webgrad.stats()` counts their round trips, and a captured
function cannot contain them.
"""

from __future__ import annotations

from webgrad import (
    LinearAlgebraError,
    matmul,
    matrix_transpose,
    outer,
    tensordot,
    vecdot,
    vector_norm,
)
from webgrad.functions.spellings import all_spelled

from .decompositions import qr, svd, svdvals
from .eigenvalues import eig, eigh, eigvals, eigvalsh
from .functions import cond, matrix_exp, pca_lowrank, svd_lowrank, tensorinv, tensorsolve
from .ldl import ldl_factor, ldl_solve
from .lu import lu, lu_factor, lu_solve, lu_unpack
from .products import cross, diagonal, matrix_norm, matrix_power, multi_dot, norm, trace
from .ranks import lstsq, matrix_rank, pinv
from .reflections import geqrf, householder_product, ormqr
from .solvers import cholesky, cholesky_ex, det, inv, inv_ex, slogdet, solve, solve_ex
from .triangles import cholesky_inverse, cholesky_solve, solve_triangular

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cholesky_inverse", "cholesky_solve", "cond", "cross", "det",
    "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "geqrf", "householder_product", "inv", "inv_ex",
    "ldl_factor", "ldl_solve", "lstsq", "lu", "lu_factor", "lu_solve", "lu_unpack", "matmul", "matrix_exp",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "ormqr", "outer",
    "pca_lowrank", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svd_lowrank",
    "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip

LinAlgError = LinearAlgebraError  # by NumPy's and PyTorch's name
globals().update(all_spelled(__all__, globals()))

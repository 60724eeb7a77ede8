"""Linear algebra, by the names of the array API standard: `webgrad.linalg`.

In: tensors. Out: tensors on the same device. Products, norms and sums are computed there, when they are
needed. Factorisations (cholesky, det, eig, eigh, inv, lstsq, pinv, qr, slogdet, solve, svd, and what is made
of them) are computed by NumPy's LAPACK on the host: they wait, `webgrad.stats()` counts their round trips,
and a captured function cannot contain them.
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

from .decompositions import eig, eigh, eigvals, eigvalsh, matrix_rank, pinv, qr, svd, svdvals
from .products import cross, diagonal, matrix_norm, matrix_power, multi_dot, norm, trace
from .solvers import cholesky, det, inv, lstsq, slogdet, solve

__all__ = [
    "LinAlgError",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

LinAlgError = LinearAlgebraError  # by NumPy's and PyTorch's name
globals().update(all_spelled(__all__, globals()))

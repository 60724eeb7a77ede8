# made by `python -m scripts.stubs`
# ruff: noqa: I001, E501  (in the order of their homes, a line each)

from builtins import bool as _bool
from builtins import int as _int
from builtins import tuple as _tuple
from typing import Any as _Any
from webgrad import Tensor
from .decompositions import qr as qr
from .decompositions import svd as svd
from .decompositions import svdvals as svdvals
from .eigenvalues import eig as eig
from .eigenvalues import eigh as eigh
from .eigenvalues import eigvals as eigvals
from .eigenvalues import eigvalsh as eigvalsh
from .functions import cond as cond
from .functions import matrix_exp as matrix_exp
from .functions import pca_lowrank as pca_lowrank
from .functions import svd_lowrank as svd_lowrank
from .functions import tensorinv as tensorinv
from .functions import tensorsolve as tensorsolve
from .ldl import ldl_factor as ldl_factor
from .ldl import ldl_solve as ldl_solve
from .lu import lu as lu
from .lu import lu_factor as lu_factor
from .lu import lu_solve as lu_solve
from .lu import lu_unpack as lu_unpack
from .products import diagonal as diagonal
from .products import matrix_power as matrix_power
from .products import multi_dot as multi_dot
from .products import trace as trace
from .ranks import lstsq as lstsq
from .ranks import matrix_rank as matrix_rank
from .ranks import pinv as pinv
from .reflections import geqrf as geqrf
from .reflections import householder_product as householder_product
from .reflections import ormqr as ormqr
from .solvers import cholesky as cholesky
from .solvers import cholesky_ex as cholesky_ex
from .solvers import det as det
from .solvers import inv as inv
from .solvers import inv_ex as inv_ex
from .solvers import slogdet as slogdet
from .solvers import solve as solve
from .solvers import solve_ex as solve_ex
from .triangles import cholesky_inverse as cholesky_inverse
from .triangles import cholesky_solve as cholesky_solve
from .triangles import solve_triangular as solve_triangular
from webgrad import LinearAlgebraError as _LinearAlgebraError
from webgrad import matmul as matmul
from webgrad import matrix_transpose as matrix_transpose
from webgrad import outer as outer
from webgrad import tensordot as tensordot
from webgrad import vecdot as vecdot
from webgrad import vector_norm as vector_norm

LinAlgError = _LinearAlgebraError
__all__: list[str]

# fmt: off
def cross(x1: Tensor, x2: Tensor, /, *, axis: _int = ..., dim: _int = ...) -> Tensor: ...
def matrix_norm(x: Tensor, /, *, keepdims: _bool = ..., ord: _Any = ..., keepdim: _bool = ...) -> Tensor: ...
def norm(x: Tensor, /, ord: _Any = ..., axis: _int | _tuple[_int, _int] | None = ..., keepdims: _bool = ..., *, dim: _int | _tuple[_int, _int] | None = ..., keepdim: _bool = ...) -> Tensor: ...

# made by `python -m scripts.stubs`
# ruff: noqa: I001, E501  (in the order of their homes, a line each)

from builtins import bool as _bool
from builtins import int as _int
from builtins import tuple as _tuple
from typing import Any as _Any
from webgrad import Tensor
from .decompositions import eig as eig
from .decompositions import eigh as eigh
from .decompositions import eigvals as eigvals
from .decompositions import eigvalsh as eigvalsh
from .decompositions import matrix_rank as matrix_rank
from .decompositions import pinv as pinv
from .decompositions import qr as qr
from .decompositions import svd as svd
from .decompositions import svdvals as svdvals
from .products import diagonal as diagonal
from .products import matrix_power as matrix_power
from .products import multi_dot as multi_dot
from .products import trace as trace
from .solvers import cholesky as cholesky
from .solvers import det as det
from .solvers import inv as inv
from .solvers import lstsq as lstsq
from .solvers import slogdet as slogdet
from .solvers import solve as solve
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

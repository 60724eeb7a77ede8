"""Eigenvalues and eigenvectors: eig and eigvals of any square matrices, eigh and eigvalsh of symmetric ones.

In: stacks of square matrices. Out: tensors that LAPACK computed on the host, or kernels of a GPU. Gradients
are products on the device, of the factors themselves; where eigenvalues are equal, those by eigenvectors
are not finite.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import webgrad as wg
from webgrad import Tensor

from ..arrays import Array, np
from . import small
from .host import each_or_nan, on_host
from .matrices import (
    adjoint,
    asks_for_gradient,
    on_diagonal,
    reciprocal_gaps,
    restored,
    square,
)

__all__ = ["Eig", "Eigh", "eig", "eigh", "eigvals", "eigvalsh"]


class Eig(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class Eigh(NamedTuple):
    """Eigenvalues in ascending order, and orthonormal eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


# Of any square matrix


def eig(x: Tensor, /) -> Eig:
    """The eigenvalues and eigenvectors of square matrices, as complex numbers.

    Eigenvectors are of length 1, and may be turned by any phase: a loss must not depend on it.

    >>> wg.imag(wg.linalg.eig(wg.asarray([[0.0, -1.0], [1.0, 0.0]])).eigenvalues).tolist()
    [1.0, -1.0]
    """
    return Eig(*_eigensystem(square("eig", x)))


def eigvals(x: Tensor, /) -> Tensor:
    """The eigenvalues of square matrices, as complex numbers.

    >>> wg.real(wg.linalg.eigvals(wg.asarray([[2.0, 0.0], [0.0, 3.0]]))).tolist()
    [2.0, 3.0]
    """
    x = square("eigvals", x)
    if asks_for_gradient(x) or small.fits_elimination(x):
        found: Tensor = _eigensystem(x)[0]
        return found
    (values,) = on_host("eigvals", lambda a: (_complex(np.linalg.eigvals(a)),), x)
    return values


def _complex(a: Array) -> Array:
    """LAPACK's results are real where all of them happen to be."""
    return a.astype(np.result_type(a.dtype, np.complex64), copy=False)


@wg.custom_gradient
def _eigensystem(x: Tensor) -> Any:
    wanted = asks_for_gradient(x)

    def compute(a: Array) -> tuple[Array, ...]:
        values, vectors = map(_complex, np.linalg.eig(a))
        return (values, vectors, each_or_nan(np.linalg.inv, vectors)) if wanted else (values, vectors)

    if small.fits_elimination(x):
        values, vectors = small.general_eigensystem(x)
        kept = [small.inverse(vectors)[0]] if wanted else []
    else:
        values, vectors, *kept = on_host("eig", compute, x)

    def pull(by_values: Tensor | None, by_vectors: Tensor | None) -> Tensor:
        if wg.is_grad_enabled():
            again, turned = _eigensystem(x)
            back = _through_eig(again, turned, wg.linalg.inv(turned), by_values, by_vectors)
        else:
            back = _through_eig(values, vectors, kept[0], by_values, by_vectors)
        return back if x.dtype.kind == "c" else wg.real(back)

    return (values, vectors), pull


def _through_eig(
    values: Tensor, vectors: Tensor, inverse: Tensor, by_values: Tensor | None, by_vectors: Tensor | None
) -> Tensor:
    inner: Any = 0.0 if by_values is None else on_diagonal(by_values, vectors)
    if by_vectors is not None:
        turn = adjoint(vectors) @ by_vectors
        # vectors keep their length
        along = wg.real(wg.linalg.diagonal(turn)).astype(vectors.dtype)
        turn = turn - adjoint(vectors) @ (vectors * along[..., None, :])
        inner = inner + turn * wg.conj(reciprocal_gaps(values))
    found: Tensor = adjoint(inverse) @ inner @ adjoint(vectors)
    return found


# Of symmetric ones


def eigh(x: Tensor, /) -> Eigh:
    """The eigenvalues and eigenvectors of symmetric (Hermitian) matrices.

    Only the lower triangle of x is looked at.

    >>> wg.linalg.eigh(wg.asarray([[3.0, 0.0], [0.0, 2.0]])).eigenvalues.tolist()
    [2.0, 3.0]
    """
    values, vectors = _symmetric_eigensystem(square("eigh", x))
    return Eigh(restored(values, x), restored(vectors, x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of symmetric (Hermitian) matrices, in ascending order.

    >>> wg.linalg.eigvalsh(wg.asarray([[3.0, 0.0], [0.0, 2.0]])).tolist()
    [2.0, 3.0]
    """
    matrices = square("eigvalsh", x)
    if asks_for_gradient(matrices) or small.fits(matrices):
        return restored(_symmetric_eigensystem(matrices)[0], x)
    (values,) = on_host("eigvalsh", lambda a: (np.linalg.eigvalsh(a),), matrices)
    return restored(values, x)


@wg.custom_gradient
def _symmetric_eigensystem(x: Tensor) -> Any:
    found = small.eigensystem(x) if small.fits(x) else on_host("eigh", lambda a: tuple(np.linalg.eigh(a)), x)

    def pull(by_values: Tensor | None, by_vectors: Tensor | None) -> Tensor:
        values, vectors = _symmetric_eigensystem(x) if wg.is_grad_enabled() else found
        inner = wg.zeros_like(x) if by_values is None else on_diagonal(by_values, x)
        if by_vectors is not None:
            # Vectors only turn, so what is skew of this counts; then the gradient is symmetric, as x is.
            turn = adjoint(vectors) @ by_vectors
            inner = inner + 0.5 * (turn - adjoint(turn)) * reciprocal_gaps(values)
        return vectors @ inner @ adjoint(vectors)

    return found, pull

"""Factors of matrices: eig, eigh, qr and svd, and what is made of their values: pinv, matrix_rank.

In: stacks of matrices. Out: tensors that NumPy's LAPACK computed on the host. Gradients are products on the
device, of the factors themselves. Where factors are not unique (equal eigenvalues or singular values) those
of vectors are not finite, and where a function has none it says so at the call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import webgrad as wg
from webgrad import Tensor

from ..arrays import Array, np
from .host import each_or_nan, on_host, read
from .matrices import (
    adjoint,
    asks_for_gradient,
    identity,
    ready,
    refuse_gradient,
    restored,
    square,
)

__all__ = [
    "QR",
    "SVD",
    "Eig",
    "Eigh",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "matrix_rank",
    "pinv",
    "qr",
    "svd",
    "svdvals",
]


# from 1 to the next number


class Eig(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class Eigh(NamedTuple):
    """Eigenvalues in ascending order, and orthonormal eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QR(NamedTuple):
    """Orthonormal columns, and an upper triangle."""

    Q: Tensor
    R: Tensor


class SVD(NamedTuple):
    """Left singular vectors as columns, singular values in descending order, right ones as rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


# Eigenvalues of any square matrix


def eig(x: Tensor, /) -> Eig:
    """The eigenvalues and eigenvectors of square matrices, as complex numbers; computed on the host.

    It has no gradient; `eigh` has.

    >>> wg.imag(wg.linalg.eig(wg.asarray([[0.0, -1.0], [1.0, 0.0]])).eigenvalues).tolist()
    [1.0, -1.0]
    """
    x = square("eig", x)
    refuse_gradient("eig", x, "use linalg.eigh, where matrices are symmetric")
    values, vectors = on_host("eig", lambda a: tuple(map(_complex, np.linalg.eig(a))), x)
    return Eig(values, vectors)


def eigvals(x: Tensor, /) -> Tensor:
    """The eigenvalues of square matrices, as complex numbers; computed on the host, without a gradient.

    >>> wg.real(wg.linalg.eigvals(wg.asarray([[2.0, 0.0], [0.0, 3.0]]))).tolist()
    [2.0, 3.0]
    """
    x = square("eigvals", x)
    refuse_gradient("eigvals", x, "use linalg.eigvalsh, where matrices are symmetric")
    (values,) = on_host("eigvals", lambda a: (_complex(np.linalg.eigvals(a)),), x)
    return values


def _complex(a: Array) -> Array:
    """LAPACK's results are real where all of them happen to be."""
    return a.astype(np.result_type(a.dtype, np.complex64), copy=False)


# Of symmetric ones


def eigh(x: Tensor, /) -> Eigh:
    """The eigenvalues and eigenvectors of symmetric (Hermitian) matrices; computed on the host.

    Only the lower triangle of x is looked at.

    >>> wg.linalg.eigh(wg.asarray([[3.0, 0.0], [0.0, 2.0]])).eigenvalues.tolist()
    [2.0, 3.0]
    """
    values, vectors = _eigensystem(square("eigh", x))
    return Eigh(restored(values, x), restored(vectors, x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of symmetric (Hermitian) matrices, in ascending order; computed on the host.

    >>> wg.linalg.eigvalsh(wg.asarray([[3.0, 0.0], [0.0, 2.0]])).tolist()
    [2.0, 3.0]
    """
    matrices = square("eigvalsh", x)
    if asks_for_gradient(matrices):
        return restored(_eigensystem(matrices)[0], x)
    (values,) = on_host("eigvalsh", lambda a: (np.linalg.eigvalsh(a),), matrices)
    return restored(values, x)


@wg.custom_gradient
def _eigensystem(x: Tensor) -> Any:
    found = on_host("eigh", lambda a: tuple(np.linalg.eigh(a)), x)

    def pull(by_values: Tensor | None, by_vectors: Tensor | None) -> Tensor:
        values, vectors = _eigensystem(x) if wg.is_grad_enabled() else found
        inner = wg.zeros_like(x) if by_values is None else _on_diagonal(by_values, x)
        if by_vectors is not None:
            # Vectors only turn, so what is skew of this counts; then the gradient is symmetric, as x is.
            turn = adjoint(vectors) @ by_vectors
            inner = inner + 0.5 * (turn - adjoint(turn)) * _reciprocal_gaps(values)
        return vectors @ inner @ adjoint(vectors)

    return found, pull


def _on_diagonal(values: Tensor, like: Tensor) -> Tensor:
    """Diagonal matrices of vectors along the last axis."""
    return wg.where(identity(values), values[..., None, :], 0.0).astype(like.dtype, copy=False)


def _reciprocal_gaps(values: Tensor) -> Tensor:
    """1 / (values[j] - values[i]), and 0 on the diagonal; infinite where two are equal."""
    diagonal = identity(values)
    gaps = values[..., None, :] - values[..., :, None]
    return wg.where(diagonal, 0.0, 1.0 / wg.where(diagonal, 1.0, gaps))


# QR


def qr(x: Tensor, /, *, mode: str = "reduced") -> QR:
    """Orthonormal columns Q and an upper triangle R with x = Q @ R; computed on the host.

    Of `mode="complete"` Q is square; where x has more rows than columns that has no gradient.

    >>> [round(abs(each), 4) for each in wg.linalg.qr(wg.asarray([[3.0], [4.0]])).R.tolist()[0]]
    [5.0]
    """
    matrices = ready("qr", x)
    rows, columns = matrices.shape[-2:]
    if mode not in ("reduced", "complete"):
        raise wg.ArgumentError(f"linalg.qr: mode is 'reduced' or 'complete', not {mode!r}")
    if mode == "complete" and rows > columns:
        refuse_gradient("qr(mode='complete')", matrices, "use mode='reduced'")
        q, r = on_host("qr", lambda a: tuple(np.linalg.qr(a, "complete")), matrices)
    else:
        q, r = _orthogonal_triangle(matrices)
    return QR(restored(q, x), restored(r, x))


@wg.custom_gradient
def _orthogonal_triangle(x: Tensor) -> Any:
    wanted = asks_for_gradient(x)
    rows = x.shape[-2]

    def compute(a: Array) -> tuple[Array, ...]:
        q, r = np.linalg.qr(a)
        # of the columns that Q is made of
        return (q, r, each_or_nan(np.linalg.inv, r[..., :rows])) if wanted else (q, r)

    q, r, *kept = on_host("qr", compute, x)

    def pull(by_q: Tensor | None, by_r: Tensor | None) -> Tensor:
        if not wg.is_grad_enabled():
            return _through_qr(x, q, r, kept[0], by_q, by_r)
        again_q, again_r = _orthogonal_triangle(x)
        return _through_qr(x, again_q, again_r, wg.linalg.inv(again_r[..., :rows]), by_q, by_r)

    return (q, r), pull


def _through_qr(
    x: Tensor, q: Tensor, r: Tensor, inverse: Tensor, by_q: Tensor | None, by_r: Tensor | None
) -> Tensor:
    """The gradient of Q and R; of a wide x the columns beyond the rows are only Q times theirs of R."""
    rows = x.shape[-2]
    by_q = wg.zeros_like(q) if by_q is None else by_q
    by_r = wg.zeros_like(r) if by_r is None else by_r
    if x.shape[-1] <= rows:
        return _through_tall_qr(q, r, inverse, by_q, by_r)
    beyond = by_r[..., rows:]
    by_q = by_q + x[..., rows:] @ adjoint(beyond)
    first = _through_tall_qr(q, r[..., :rows], inverse, by_q, by_r[..., :rows])
    return wg.concat([first, q @ beyond], axis=-1)


def _through_tall_qr(q: Tensor, r: Tensor, inverse: Tensor, by_q: Tensor, by_r: Tensor) -> Tensor:
    inner = wg.triu(by_r @ adjoint(r) - adjoint(q) @ by_q)
    both = inner + adjoint(inner)
    both = wg.where(identity(both), both * 0.5, both)
    return (by_q + q @ both) @ adjoint(inverse)


# Singular values


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVD:
    """Singular vectors U and Vh and values S with x = U @ diag(S) @ Vh; computed on the host.

    With `full_matrices=False` U has min(rows, columns) columns, and Vh as many rows. The further ones are
    arbitrary, so no gradient goes through those.

    >>> wg.linalg.svd(wg.asarray([[0.0, 2.0], [3.0, 0.0]])).S.tolist()
    [3.0, 2.0]
    """
    matrices = ready("svd", x)
    u, s, vh, *others = _singular(matrices, bool(full_matrices))
    if others and matrices.shape[-2] > matrices.shape[-1]:
        u = wg.concat([u, *others], axis=-1)
    elif others:
        vh = wg.concat([vh, *others], axis=-2)
    return SVD(*(restored(each, x) for each in (u, s, vh)))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of matrices, in descending order; computed on the host.

    >>> wg.linalg.svdvals(wg.asarray([[0.0, 2.0], [3.0, 0.0]])).tolist()
    [3.0, 2.0]
    """
    matrices = ready("svdvals", x)
    if asks_for_gradient(matrices):
        return restored(_singular(matrices, False)[1], x)
    (values,) = on_host("svdvals", lambda a: (np.linalg.svd(a, compute_uv=False),), matrices)
    return restored(values, x)


@wg.custom_gradient
def _singular(x: Tensor, full: bool) -> Any:
    """U, S and Vh; where a gradient may be asked for, what `full` adds to U or Vh stands alone, last."""
    apart = asks_for_gradient(x) and full and x.shape[-2] != x.shape[-1]

    def compute(a: Array) -> tuple[Array, ...]:
        u, s, vh = np.linalg.svd(a, full_matrices=full)
        if not apart:
            return u, s, vh
        least = s.shape[-1]
        others = u[..., least:] if u.shape[-1] > least else vh[..., least:, :]
        return u[..., :least], s, vh[..., :least, :], others

    found = on_host("svd", compute, x)

    def pull(
        by_u: Tensor | None, by_s: Tensor | None, by_vh: Tensor | None, by_others: Tensor | None = None
    ) -> Tensor:
        # Zeros come from U[:, :k] and the like, which do not depend on what the others are.
        if by_others is not None and read("svd", by_others.detach()).any():
            raise wg.GradientError(
                f"linalg.svd of {x.shape} with full_matrices=True: the last columns of U, or rows of Vh, "
                "are any that are orthogonal to the others, so they have no gradient: use full_matrices=False"
            )
        u, s, vh, *_ = _singular(x, full) if wg.is_grad_enabled() else found
        return _through_svd(u, s, vh, by_u, by_s, by_vh)

    return found, pull


def _through_svd(
    u: Tensor, s: Tensor, vh: Tensor, by_u: Tensor | None, by_s: Tensor | None, by_vh: Tensor | None
) -> Tensor:
    """The gradient of U, S and Vh of min(rows, columns) vectors."""
    inner = wg.zeros_like(u[..., : s.shape[-1], :]) if by_s is None else _on_diagonal(by_s, u)
    if by_u is None and by_vh is None:
        return u @ inner @ vh
    across, down = s[..., None, :], s[..., :, None]
    gaps = _reciprocal_gaps(s * s)
    beside: list[Tensor] = []
    if by_u is not None:
        turned = adjoint(u) @ by_u
        inner = inner + (turned - adjoint(turned)) * gaps * across
        if u.dtype.kind == "c":  # a phase that goes from a column of U to the row of Vh
            turns = wg.imag(wg.linalg.diagonal(turned)) / s
            inner = inner + _on_diagonal(wg.complex(wg.zeros_like(turns), turns), u)
        if u.shape[-2] > s.shape[-1]:
            beside.append(((by_u - u @ turned) / across) @ vh)
    if by_vh is not None:
        turned = vh @ adjoint(by_vh)
        inner = inner + down * ((turned - adjoint(turned)) * gaps)
        if vh.shape[-1] > s.shape[-1]:
            beside.append(u @ ((by_vh - adjoint(turned) @ vh) / down))
    result = u @ inner @ vh
    for each in beside:
        result = result + each
    return result


# What is made of singular values


def _fits(shape: tuple[int, ...], stack: tuple[int, ...]) -> bool:
    try:
        return bool(wg.broadcast_shapes(shape, stack) == stack)
    except wg.ShapeError:
        return False


def _tolerance(name: str, x: Any, matrices: Tensor, rtol: Any) -> Any:
    """What a singular value is compared with, as a part of the largest one: a number, or a tensor of them."""
    if rtol is None:
        dtype = x.dtype if isinstance(x, Tensor) else matrices.dtype
        return max(matrices.shape[-2:]) * wg.finfo(dtype).eps
    if isinstance(rtol, bool | str) or not (isinstance(rtol, int | float) or hasattr(rtol, "shape")):
        raise wg.ArgumentError(
            f"linalg.{name}: rtol is a number, or a tensor of one for each matrix, not {rtol!r}"
        )
    if hasattr(rtol, "shape") and not _fits(rtol.shape, matrices.shape[:-2]):
        raise wg.ShapeError(
            f"linalg.{name}: rtol of shape {rtol.shape} has no number for each of the matrices, of shape "
            f"{matrices.shape[:-2]}: give one number, or reshape it"
        )
    return rtol


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """How many singular values are larger than `rtol` times the largest one; they are computed on the host.

    Without a number it is max(rows, columns) times the distance from 1 to the next number of the dtype.

    >>> wg.linalg.matrix_rank(wg.asarray([[1.0, 2.0], [2.0, 4.0]])).item()
    1
    """
    return rank_and_values("matrix_rank", x, ready("matrix_rank", x), rtol)[0]


def rank_and_values(op: str, x: Any, matrices: Tensor, rtol: Any) -> tuple[Tensor, Tensor]:
    """The rank of matrices, which are x in a dtype to compute in, and the singular values it goes by."""
    tolerance = _tolerance(op, x, matrices, rtol)
    values = svdvals(matrices.detach())
    largest = values[..., :1]
    if hasattr(tolerance, "shape"):
        tolerance = wg.asarray(tolerance, device=values.device)[..., None]
    return wg.count_nonzero(values > largest * tolerance, axis=-1), values


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The pseudo-inverses of matrices; computed on the host.

    Singular values up to `rtol` times the largest count as 0; without a number as `matrix_rank` has it.

    >>> wg.linalg.pinv(wg.asarray([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    matrices = ready("pinv", x)
    tolerance = _tolerance("pinv", x, matrices, rtol)
    if isinstance(tolerance, Tensor):
        tolerance = tolerance.numpy()
    return restored(_pseudo_inverse(matrices, tolerance), x)


@wg.custom_gradient
def _pseudo_inverse(x: Tensor, rtol: Any) -> Any:
    (result,) = on_host("pinv", lambda a: (np.linalg.pinv(a, rtol),), x)

    def pull(g: Tensor) -> Tensor:
        p = _pseudo_inverse(x, rtol) if wg.is_grad_enabled() else result
        turned, back = adjoint(p), adjoint(g)
        left, right = back @ p, p @ back
        through = turned @ g @ turned
        return (left - x @ (p @ left)) @ turned + turned @ (right - (right @ p) @ x) - through

    return result, pull

"""Orthogonal factors of matrices: qr and svd.

In: stacks of matrices. Out: tensors that LAPACK computed on the host, or kernels of a GPU. Gradients are
products on the device, of the factors themselves. Where singular values are equal, those by vectors are not
finite, and where a function has none it says so at the call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import webgrad as wg
from webgrad import Tensor

from ..arrays import Array, np
from . import small
from .host import each_or_nan, on_host, read
from .matrices import (
    adjoint,
    asks_for_gradient,
    identity,
    on_diagonal,
    ready,
    reciprocal_gaps,
    refuse_gradient,
    restored,
)

__all__ = ["QR", "SVD", "qr", "svd", "svdvals"]


class QR(NamedTuple):
    """Orthonormal columns, and an upper triangle."""

    Q: Tensor
    R: Tensor


class SVD(NamedTuple):
    """Left singular vectors as columns, singular values in descending order, right ones as rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


# QR


def qr(x: Tensor, /, *, mode: str = "reduced") -> QR:
    """Orthonormal columns Q and an upper triangle R with x = Q @ R.

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
        if small.fits(matrices):
            q, r = _reflected(matrices, rows)
        else:
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

    if small.fits(x):
        q, r = _reflected(x, min(x.shape[-2:]))
        kept = [small.inverse(r[..., :rows])[0]] if wanted else []
    else:
        q, r, *kept = on_host("qr", compute, x)

    def pull(by_q: Tensor | None, by_r: Tensor | None) -> Tensor:
        if not wg.is_grad_enabled():
            return _through_qr(x, q, r, kept[0], by_q, by_r)
        again_q, again_r = _orthogonal_triangle(x)
        return _through_qr(x, again_q, again_r, wg.linalg.inv(again_r[..., :rows]), by_q, by_r)

    return (q, r), pull


def _reflected(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The first columns of Q, and as many rows of R, on the device."""
    compact, tau = small.reflected(x)
    return small.orthogonal(compact, tau, count), wg.triu(compact[..., :count, :])


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
    """Singular vectors U and Vh and values S with x = U @ diag(S) @ Vh.

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
    """The singular values of matrices, in descending order.

    >>> wg.linalg.svdvals(wg.asarray([[0.0, 2.0], [3.0, 0.0]])).tolist()
    [3.0, 2.0]
    """
    matrices = ready("svdvals", x)
    if asks_for_gradient(matrices) or small.fits(matrices):
        return restored(_singular(matrices, False)[1], x)
    (values,) = on_host("svdvals", lambda a: (np.linalg.svd(a, compute_uv=False),), matrices)
    return restored(values, x)


@wg.custom_gradient
def _singular(x: Tensor, full: bool) -> Any:
    """U, S and Vh; where a gradient may be asked for, what `full` adds to U or Vh stands alone, last."""
    apart = asks_for_gradient(x) and full and x.shape[-2] != x.shape[-1]

    def parts(u: Any, s: Any, vh: Any) -> tuple[Any, ...]:
        if not apart:
            return u, s, vh
        least = s.shape[-1]
        others = u[..., least:] if u.shape[-1] > least else vh[..., least:, :]
        return u[..., :least], s, vh[..., :least, :], others

    if small.fits(x):
        found = parts(*small.singular(x, full))
    else:
        found = on_host("svd", lambda a: parts(*np.linalg.svd(a, full_matrices=full)), x)

    def pull(
        by_u: Tensor | None, by_s: Tensor | None, by_vh: Tensor | None, by_others: Tensor | None = None
    ) -> Tensor:
        if not x.size:
            return wg.zeros_like(x)
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
    inner = wg.zeros_like(u[..., : s.shape[-1], :]) if by_s is None else on_diagonal(by_s, u)
    if by_u is None and by_vh is None:
        return u @ inner @ vh
    across, down = s[..., None, :], s[..., :, None]
    gaps = reciprocal_gaps(s * s)
    beside: list[Tensor] = []
    if by_u is not None:
        turned = adjoint(u) @ by_u
        inner = inner + (turned - adjoint(turned)) * gaps * across
        if u.dtype.kind == "c":  # a phase that goes from a column of U to the row of Vh
            turns = wg.imag(wg.linalg.diagonal(turned)) / s
            inner = inner + on_diagonal(wg.complex(wg.zeros_like(turns), turns), u)
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

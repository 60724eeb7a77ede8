"""What is made of singular values: matrix_rank, pinv and lstsq.

In: stacks of matrices, and what counts as 0: as a part of the largest singular value, or as a number. Out:
tensors, composed of `svd` and `svdvals`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import webgrad as wg
from webgrad import Tensor

from .decompositions import svd, svdvals
from .matrices import adjoint, alike, given, ready, restored, square, wide

__all__ = ["LeastSquares", "lstsq", "matrix_rank", "pinv"]


class LeastSquares(NamedTuple):
    """What is nearest to a solution, how far it is away, and what that was computed from."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def _fits(shape: tuple[int, ...], stack: tuple[int, ...]) -> bool:
    try:
        return bool(wg.broadcast_shapes(shape, stack) == stack)
    except wg.ShapeError:
        return False


def _tolerance(name: str, which: str, matrices: Tensor, given: Any, default: float) -> Any:
    """A number, or a tensor of one for each matrix."""
    if given is None:
        return default
    if isinstance(given, bool | str) or not (isinstance(given, int | float) or hasattr(given, "shape")):
        raise wg.ArgumentError(
            f"linalg.{name}: {which} is a number, or a tensor of one for each matrix, not {given!r}"
        )
    if not hasattr(given, "shape"):
        return float(given)
    if not _fits(given.shape, matrices.shape[:-2]):
        raise wg.ShapeError(
            f"linalg.{name}: {which} of shape {given.shape} has no number for each of the matrices, of shape "
            f"{matrices.shape[:-2]}: give one number, or reshape it"
        )
    numbers = wg.asarray(given).detach().astype(wg.real(matrices).dtype).to_device(matrices.device)
    return numbers[..., None]


def _counting(name: str, x: Any, matrices: Tensor, rtol: Any, atol: Any = None) -> Callable[[Tensor], Tensor]:
    """A function of singular values: which of them count, as bools."""
    dtype = x.dtype if isinstance(x, Tensor) else matrices.dtype
    own = max(matrices.shape[-2:]) * wg.finfo(dtype).eps if atol is None else 0.0
    part = _tolerance(name, "rtol", matrices, rtol, own)
    least = _tolerance(name, "atol", matrices, atol, 0.0)

    def counts(values: Tensor) -> Tensor:
        if not values.shape[-1]:
            return wg.zeros(values.shape, dtype=wg.bool, device=values.device)
        return values > wg.maximum(values[..., :1] * part, least)

    return counts


@wg.custom_gradient
def _mirrored(x: Tensor) -> Any:
    """Symmetric (Hermitian) matrices of lower triangles; the gradient is symmetric too."""
    lower = wg.tril(x, -1)
    return wg.tril(x) + adjoint(lower), lambda g: (g + adjoint(g)) * 0.5


def matrix_rank(
    x: Tensor,
    /,
    *,
    rtol: float | Tensor | None = None,
    atol: float | Tensor | None = None,
    hermitian: bool = False,
) -> Tensor:
    """How many singular values are larger than `rtol` times the largest one, and than `atol`.

    Where neither is given `rtol` is max(rows, columns) times the distance from 1 to the next number of the
    dtype. With `hermitian` only the lower triangle is looked at.

    >>> wg.linalg.matrix_rank(wg.asarray([[1.0, 2.0], [2.0, 4.0]])).item()
    1
    """
    matrices = (square if hermitian else ready)("matrix_rank", x).detach()
    counts = _counting("matrix_rank", x, matrices, rtol, atol)
    values = svdvals(_mirrored(matrices) if hermitian else matrices)
    return wg.count_nonzero(counts(values), axis=-1)


def pinv(
    x: Tensor,
    /,
    *,
    rtol: float | Tensor | None = None,
    atol: float | Tensor | None = None,
    hermitian: bool = False,
) -> Tensor:
    """The pseudo-inverses of matrices.

    Singular values up to `rtol` times the largest, or up to `atol`, count as 0, as `matrix_rank` has it.

    >>> wg.linalg.pinv(wg.asarray([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    matrices = (square if hermitian else ready)("pinv", x)
    counts = _counting("pinv", x, matrices, rtol, atol)
    return restored(_pseudo_inverse(_mirrored(matrices) if hermitian else matrices, counts), x)


@wg.custom_gradient
def _pseudo_inverse(x: Tensor, counts: Callable[[Tensor], Tensor]) -> Any:
    with wg.no_grad():
        u, s, vh = svd(x, full_matrices=False)
        there = counts(s)
        inverse = wg.where(there, 1.0 / wg.where(there, s, 1.0), 0.0)
        result = (adjoint(vh) * inverse[..., None, :]) @ adjoint(u)

    def pull(g: Tensor) -> Tensor:
        p = _pseudo_inverse(x, counts) if wg.is_grad_enabled() else result
        turned, back = adjoint(p), adjoint(g)
        left, right = back @ p, p @ back
        through = turned @ g @ turned
        return (left - x @ (p @ left)) @ turned + turned @ (right - (right @ p) @ x) - through

    return result, pull


def lstsq(x1: Tensor, x2: Tensor, /, *, rtol: float | None = None) -> LeastSquares:
    """The X of least squares (x1 @ X - x2)**2, and of these the smallest; computed by `pinv`.

    Singular values up to `rtol` times the largest count as 0. It works for stacks of matrices, and gradients
    go through the solution and the residuals.

    >>> a, b = wg.asarray([[1.0], [1.0]]), wg.asarray([1.0, 3.0])
    >>> [round(each, 4) for each in wg.linalg.lstsq(a, b).solution.tolist()]
    [2.0]
    """
    a, b = ready("lstsq", x1), wide("lstsq", given("lstsq", x2))
    is_vector = b.ndim == 1
    if b.ndim == 0 or b.shape[0 if is_vector else -2] != a.shape[-2]:
        raise wg.ShapeError(
            f"linalg.lstsq of {a.shape} and {b.shape}: the second is a vector, or matrices, with as many "
            f"rows as the first, {a.shape[-2]}"
        )
    a, b = alike("lstsq", a, b)
    columns = b[:, None] if is_vector else b
    solution = pinv(a, rtol=rtol) @ columns
    missed = wg.abs(a @ solution - columns)
    residuals = wg.sum(missed * missed, axis=-2)
    if is_vector:
        solution, residuals = solution[..., 0], residuals[..., 0]
    values = svdvals(a)
    rank = wg.count_nonzero(_counting("lstsq", x1, a, rtol)(values.detach()), axis=-1)
    return LeastSquares(restored(solution, x1), restored(residuals, x1), rank, restored(values, x1))

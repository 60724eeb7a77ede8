"""Small matrices on a GPU: factorisations as kernels of `webgrad.kernel`, lazy and without a round trip.

In: stacks of float32 matrices of at most 32 rows and columns, on a GPU (`fits` says so); of complex64 ones
for some (`fits_elimination`). Out: lazy tensors. A workgroup has one matrix in its memory. The invariant:
every loop has an end that the numbers in a matrix do not decide, and what has no result (a matrix that is
singular, or has NaN or infinities) is NaN.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import webgrad as wg
from webgrad import Tensor

__all__ = [
    "cholesky",
    "cofactors",
    "determinant",
    "eigensystem",
    "eliminated",
    "fits",
    "fits_elimination",
    "fits_pivots",
    "general_eigensystem",
    "inverse",
    "logarithm",
    "orthogonal",
    "permuted",
    "reflected",
    "singular",
    "solved",
    "substituted",
]

Function = TypeVar("Function", bound=Callable[..., Any])
SIDE = 32  # the most rows and columns
LANES = {"software": 8}  # threads to a matrix, by the kind of adapter
MOST_GROUPS = 65_535
MOST_SWEEPS = 30  # of Jacobi's rotations: about 5 to 9 are needed
MOST_STEPS = 30  # of shifted QR for each eigenvalue: about 3 are needed
FOLDER = Path(__file__).parent / "kernels"


def fits(*matrices: Tensor) -> bool:
    """Whether real matrices are factored where they are."""
    return _all_small(matrices, (wg.float32,))


def fits_elimination(*matrices: Tensor) -> bool:
    """The same of what is made of triangles, and of eigenvalues: of complex matrices too."""
    return _all_small(matrices, (wg.float32, wg.complex64))


def _all_small(matrices: tuple[Tensor, ...], dtypes: tuple[Any, ...]) -> bool:
    first = matrices[0]
    return (
        first.device.is_gpu
        and first.dtype in dtypes
        and all(each.dtype is first.dtype and each.size > 0 for each in matrices)
        and max(first.shape[-2:]) <= SIDE
    )


def fits_pivots(pivots: Tensor, rows: int) -> bool:
    """The same of the pivots of matrices with so many rows."""
    on_gpu = pivots.device.is_gpu and pivots.dtype is wg.int32
    return bool(on_gpu and pivots.size > 0 and rows <= SIDE)


Shape = tuple[int, ...]
FLOAT, INTEGER = True, False
# kernel → the shapes of its results, by those of its arguments, and whether they have numbers as those have
RESULTS: dict[str, Callable[..., list[tuple[Shape, bool]]]] = {
    "lu": lambda x, rows, columns, **_: [(x, FLOAT), ((*x[:-2], min(rows, columns)), INTEGER)],
    "permutation": lambda pivots, rows, **_: [((*pivots[:-1], rows), INTEGER)],
    "cholesky": lambda x, **_: [(x, FLOAT), (x[:-2], INTEGER)],
    "substitution": lambda x, b, **_: [(b, FLOAT)],
    "reflections": lambda x, rows, columns, **_: [(x, FLOAT), ((*x[:-2], min(rows, columns)), FLOAT)],
    "orthogonal": lambda x, tau, rows, count, **_: [((*x[:-2], rows, count), FLOAT)],
    "schur": lambda x, **_: [(x, FLOAT), (x, FLOAT), (x[:-2], INTEGER)],
    "eigenvectors": lambda t, **_: [(t, FLOAT)],
    "jacobi": lambda x, columns, **_: [((*x[:-2], columns, columns), FLOAT)],
}


def _results(name: str, is_complex: bool) -> Callable[..., list[tuple[Shape, Any]]]:
    """The results of a kernel, complex numbers as pairs along a last axis."""
    pair = (2,) if is_complex else ()

    def results(*tensors: Tensor, **sizes: Any) -> list[tuple[Shape, Any]]:
        shapes = [
            tuple(each.shape[: each.ndim - len(pair)] if each.dtype is wg.float32 else each.shape)
            for each in tensors
        ]
        return [
            ((*shape, *pair), wg.float32) if is_float else (shape, wg.int32)
            for shape, is_float in RESULTS[name](*shapes, **sizes)
        ]

    return results


@functools.lru_cache(maxsize=64)
def _kernel(name: str, lanes: int, is_complex: bool, device: str) -> wg.Kernel:
    """A kernel of this folder for one kind of adapter."""
    source = "".join((FOLDER / f"{each}.pwgsl").read_text("utf-8") for each in ("common", name))
    return wg.kernel(
        source,
        label=f"linalg {name}",
        defines={"LANES": lanes, "SIDE": SIDE, "COMPLEX": int(is_complex)},
        results=_results(name, is_complex),
        device=device,
    )


def _launched(name: str, *tensors: Tensor, **sizes: Any) -> Any:
    """The results of a kernel, a workgroup for each matrix."""
    device, is_complex = tensors[0].device, tensors[0].dtype.kind == "c"
    kernel = _kernel(name, LANES.get(device.profile.kind, SIDE), is_complex, device.name)
    given = [wg.view_as_real(each) if each.dtype.kind == "c" else each for each in tensors]
    found = kernel(*given, grid=min(sizes["batch"], MOST_GROUPS), **sizes)
    if not is_complex:
        return found
    results = found if isinstance(found, tuple) else (found,)
    back = tuple(wg.view_as_complex(each) if each.dtype is wg.float32 else each for each in results)
    return back if isinstance(found, tuple) else back[0]


def _stack(x: Tensor) -> Shape:
    return tuple(x.shape[:-2])


def _sizes(x: Tensor) -> dict[str, int]:
    return {"batch": math.prod(_stack(x)), "rows": x.shape[-2], "columns": x.shape[-1]}


def _finite(x: Tensor) -> Tensor:
    """Which matrices have neither NaN nor infinities, to be broadcast to matrices."""
    return wg.all(wg.isfinite(x), axis=(-2, -1), keepdims=True)


def _or_nan(there: Tensor, x: Tensor) -> Tensor:
    """Matrices where they are there, NaN elsewhere."""
    return wg.where(there, x, math.nan).astype(x.dtype, copy=False)


def _scaled(x: Tensor) -> tuple[Tensor, Tensor]:
    """Matrices whose largest element is 1, so that squares neither overflow nor vanish, and what it was."""
    largest = wg.max(wg.abs(x), axis=(-2, -1), keepdims=True)
    scale = wg.where(wg.isfinite(largest) & (largest > 0), largest, 1.0)
    return x / scale, scale


def _untracked(function: Function) -> Function:
    """The function without a history, and in float32 whatever autocast says."""

    @functools.wraps(function)
    def computed(*args: Any) -> Any:
        with wg.no_grad(), wg.amp.autocast(enabled=False):
            return function(*args)

    return cast(Function, computed)


# Triangles


@_untracked
def eliminated(x: Tensor, pivot: bool) -> tuple[Tensor, Tensor]:
    """L and U in one, and LAPACK's pivots."""
    compact, pivots = _launched("lu", x, **_sizes(x), pivot=int(pivot))
    return _or_nan(_finite(x), compact), pivots


@_untracked
def permuted(pivots: Tensor, rows: int) -> Tensor:
    """Which row each row was."""
    order: Tensor = _launched(
        "permutation", pivots, batch=math.prod(pivots.shape[:-1]), rows=rows, count=pivots.shape[-1]
    )
    return order


@_untracked
def cholesky(x: Tensor) -> tuple[Tensor, Tensor]:
    """Lower triangles, and 0 or the size of the first part that is not positive definite."""
    lower, info = _launched("cholesky", x, batch=math.prod(_stack(x)), count=x.shape[-1])
    return wg.where(_finite(x) & (info == 0)[..., None, None], lower, math.nan), info


@_untracked
def substituted(a: Tensor, b: Tensor, upper: bool, unit: bool) -> Tensor:
    """The solution with a triangle; stacks are the same."""
    sizes = {"batch": math.prod(_stack(a)), "count": a.shape[-1], "columns": b.shape[-1]}
    found: Tensor = _launched("substitution", a, b, **sizes, upper=int(upper), unit=int(unit))
    return found


# Solutions and determinants


@_untracked
def solved(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The solution of a system of equations, and 0 or which pivot is 0; stacks are the same."""
    compact, pivots = eliminated(a, True)
    order = permuted(pivots, a.shape[-1])
    halfway = substituted(compact, _rows(b, order), False, True)
    zeros = wg.linalg.diagonal(compact) == 0
    first = wg.argmax(zeros.astype(wg.int32), axis=-1).astype(wg.int32) + 1
    info = wg.where(wg.any(zeros, axis=-1), first, wg.zeros_like(first))
    return _or_nan((info == 0)[..., None, None], substituted(compact, halfway, True, False)), info


def _rows(x: Tensor, order: Tensor) -> Tensor:
    """Rows of matrices in another order."""
    return wg.take_along_axis(x, wg.broadcast_to(order[..., None], x.shape), -2)


def inverse(x: Tensor) -> tuple[Tensor, Tensor]:
    """The inverse, and 0 or which pivot is 0."""
    one = wg.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    found: tuple[Tensor, Tensor] = solved(x, wg.broadcast_to(one, x.shape))
    return found


def _factors(x: Tensor) -> tuple[Tensor, Tensor]:
    """The numbers whose product is a determinant: the diagonal of U, and the sign of the permutation."""
    compact, pivots = eliminated(x, True)
    places = wg.arange(1, x.shape[-1] + 1, dtype=wg.int32, device=x.device)
    swaps = wg.count_nonzero(pivots != places, axis=-1)
    return wg.linalg.diagonal(compact), wg.where(swaps % 2 == 1, -1.0, 1.0)


@_untracked
def determinant(x: Tensor) -> Tensor:
    """The determinant."""
    diagonal, sign = _factors(x)
    return wg.prod(diagonal, axis=-1) * sign


@_untracked
def logarithm(x: Tensor) -> tuple[Tensor, Tensor]:
    """The sign of a determinant, which is 0 where that is, and the logarithm of its size."""
    diagonal, sign = _factors(x)
    return wg.prod(wg.sign(diagonal), axis=-1) * sign, wg.sum(wg.log(wg.abs(diagonal)), axis=-1)


@_untracked
def cofactors(x: Tensor) -> Tensor:
    """By how much the determinant grows with each element; for singular matrices too.

    The determinant is that of U times that of Vh times the product of all singular values.
    """
    u, s, vh = singular(x, False)
    ones = wg.ones((*s.shape[:-1], 1), device=s.device)
    before = wg.cumprod(wg.concat([ones, s[..., :-1]], axis=-1), axis=-1)
    after = wg.flip(wg.cumprod(wg.concat([ones, wg.flip(s, axis=-1)[..., :-1]], axis=-1), axis=-1), axis=-1)
    turn = (logarithm(u)[0] * logarithm(vh)[0])[..., None, None]
    return turn * ((u * (before * after)[..., None, :]) @ vh)


# Orthogonal factors


@_untracked
def reflected(x: Tensor) -> tuple[Tensor, Tensor]:
    """R and reflections in one, and their factors."""
    scaled, scale = _scaled(x)
    compact, tau = _launched("reflections", scaled, **_sizes(x))
    above = wg.triu(wg.ones(x.shape[-2:], dtype=wg.bool, device=x.device))
    found = wg.where(above, compact * scale, compact)
    return _or_nan(_finite(x), found), tau


@_untracked
def orthogonal(compact: Tensor, tau: Tensor, count: int) -> Tensor:
    """The first columns of the product of reflections."""
    q: Tensor = _launched("orthogonal", compact, tau, **_sizes(compact), count=count)
    return _or_nan(_finite(compact), q)


def _rotations(x: Tensor) -> Tensor:
    """The orthogonal V for which x @ V has orthogonal columns."""
    tolerance = math.sqrt(x.shape[-2]) * wg.finfo(wg.float32).eps
    v: Tensor = _launched("jacobi", x, **_sizes(x), sweeps=MOST_SWEEPS, tolerance=tolerance)
    return v @ (1.5 * wg.eye(v.shape[-1], device=v.device) - 0.5 * (v.mT @ v))  # Newton's step to orthogonal


def _columns(x: Tensor, order: Tensor) -> Tensor:
    """Columns of matrices in another order."""
    return wg.take_along_axis(x, wg.broadcast_to(order[..., None, :], x.shape), -1)


@_untracked
def general_eigensystem(x: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues of any square matrices, and eigenvectors of length 1 whose largest number is real."""
    there = _finite(x)
    scaled, scale = _scaled(wg.where(there, x, 0.0))
    count = x.shape[-1]
    sizes = {"batch": math.prod(_stack(x)), "count": count}
    triangle, z, left = _launched("schur", scaled.astype(wg.complex64), **sizes, steps=MOST_STEPS * count)
    vectors = z @ _launched("eigenvectors", triangle, **sizes)
    lengths = wg.abs(vectors)
    largest = wg.argmax(lengths, axis=-2, keepdims=True)
    phase = wg.take_along_axis(vectors, largest, -2)
    vectors = vectors * (wg.conj(phase) / (wg.abs(phase) * wg.vector_norm(lengths, axis=-2, keepdims=True)))
    values = wg.linalg.diagonal(triangle)
    if x.dtype.kind != "c":  # what is rounding of a real one is none of it
        rounding = 4 * count * wg.finfo(wg.float32).eps * wg.vector_norm(scaled, axis=(-2, -1))[..., None]
        parts = wg.real(values), wg.imag(values)
        values = wg.complex(parts[0], wg.where(wg.abs(parts[1]) <= rounding, 0.0, parts[1]))
    there = there & (left == 0)[..., None, None]
    return _or_nan(there[..., 0], values * scale[..., 0]), _or_nan(there, vectors)


@_untracked
def eigensystem(x: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues in ascending order and eigenvectors of symmetric matrices, of their lower triangles."""
    scaled, scale = _scaled(wg.tril(x) + wg.tril(x, -1).mT)
    # the columns of a matrix without negative eigenvalues turn to its eigenvectors
    bound = wg.max(wg.sum(wg.abs(scaled), axis=-1, keepdims=True), axis=-2, keepdims=True)
    v = _rotations(scaled + bound * wg.eye(x.shape[-1], device=x.device))
    values = wg.sum(v * (scaled @ v), axis=-2)
    order = wg.argsort(values, axis=-1)
    values = wg.take_along_axis(values, order, -1) * scale[..., 0]
    there = _finite(wg.tril(x))
    return _or_nan(there[..., 0], values), _or_nan(there, _columns(v, order))


@_untracked
def singular(x: Tensor, full: bool) -> tuple[Tensor, Tensor, Tensor]:
    """U, singular values in descending order, and Vh; of all rows and columns where they are to be `full`."""
    if x.shape[-2] < x.shape[-1]:
        v, s, uh = singular(x.mT, full)
        return uh.mT, s, v.mT
    scaled, scale = _scaled(x)
    v = _rotations(scaled)
    lengths = wg.vector_norm(scaled @ v, axis=-2)
    order = wg.argsort(lengths, axis=-1, descending=True)
    v = _columns(v, order)
    # the orthogonal factor of orthogonal columns is these, and what completes them where some are 0
    compact, tau = _launched("reflections", scaled @ v, **_sizes(x))
    u = orthogonal(compact, tau, x.shape[-2] if full else x.shape[-1])
    signs = wg.where(wg.linalg.diagonal(compact) < 0, -1.0, 1.0)
    if full:
        signs = wg.concat([signs, wg.ones((*_stack(x), x.shape[-2] - x.shape[-1]), device=x.device)], -1)
    there = _finite(x)
    s = _or_nan(there[..., 0], wg.take_along_axis(lengths, order, -1) * scale[..., 0])
    return _or_nan(there, u * signs[..., None, :]), s, _or_nan(there, v.mT)

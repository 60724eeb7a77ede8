"""Matrices by a pattern, and tensors put together by one: blocks, powers, triangles, Kronecker's product.

In: tensors or sizes. Out: tensors.
"""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ...errors import ArgumentError, ShapeError
from ...runtime.device import DeviceLike
from ...tensor import Tensor
from .creation import arange, as_tensor, full_like, linspace
from .elementwise import exp, pow, where
from .indexing import nonzero
from .manipulation import concat, pad, stack
from .reshaping import expand_dims, flip, reshape, swapaxes


def kron(a: Tensor, b: Tensor) -> Tensor:
    """Kronecker's product: every element of a times the whole of b, in a's arrangement.

    >>> wg.kron(wg.asarray([1, 10]), wg.asarray([1, 2])).tolist()
    [1, 2, 10, 20]
    """
    a, b = as_tensor("kron", a), as_tensor("kron", b)
    rank = max(a.ndim, b.ndim)
    first, second = ((1,) * (rank - each.ndim) + tuple(each.shape) for each in (a, b))
    outer = [size for each in first for size in (each, 1)]
    inner = [size for each in second for size in (1, each)]
    found = reshape(a, outer) * reshape(b, inner)
    return reshape(found, [one * other for one, other in zip(first, second, strict=True)])


def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of one that is otherwise zero; vectors are rows.

    >>> wg.block_diag(wg.asarray([[1, 2]]), wg.asarray([[3]])).tolist()
    [[1, 2, 0], [0, 0, 3]]
    """
    given = [as_tensor("block_diag", each) for each in tensors]
    if any(each.ndim > 2 for each in given):
        raise ShapeError("block_diag takes matrices, vectors and numbers: two dimensions at most")
    blocks = [reshape(each, (1, -1)) if each.ndim < 2 else each for each in given]
    columns = sum(each.shape[1] for each in blocks)
    rows, done = [], 0
    for each in blocks:
        rows.append(pad(each, ((0, 0), (done, columns - done - each.shape[1]))))
        done += each.shape[1]
    return concat(rows) if rows else reshape(arange(0, dtype=dtypes.float32), (1, 0))


def vander(x: Tensor, N: int | None = None, *, increasing: bool = False) -> Tensor:
    """The powers of numbers, a row for each: N - 1 down to 0, or 0 up to N - 1 where they are increasing.

    >>> wg.vander(wg.asarray([1, 2, 3]), increasing=True).tolist()
    [[1, 1, 1], [1, 2, 4], [1, 3, 9]]
    """
    x = as_tensor("vander", x)
    if x.ndim < 1:
        raise ShapeError("vander takes numbers of one dimension or more, not a single one")
    count = x.shape[-1] if N is None else N
    powers = [(x == x).astype(x.dtype)]
    for _ in range(count - 1):
        powers.append(powers[-1] * x)
    found = stack(powers[:count], -1) if count else reshape(x, (*x.shape, 1))[..., :0]
    return found if increasing else flip(found, -1)


def tril_indices(row: int, col: int | None = None, offset: int = 0, *, device: DeviceLike = None) -> Tensor:
    """The rows and columns of what is on a diagonal of a matrix or below it, as two rows.

    >>> wg.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    return _places(row, col, lambda i, j: j - i <= offset, device)


def triu_indices(row: int, col: int | None = None, offset: int = 0, *, device: DeviceLike = None) -> Tensor:
    """The rows and columns of what is on a diagonal of a matrix or above it, as two rows.

    >>> wg.triu_indices(2, 2).tolist()
    [[0, 0, 1], [0, 1, 1]]
    """
    return _places(row, col, lambda i, j: j - i >= offset, device)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None, *, device: DeviceLike = None) -> Tensor:
    """Ones on a diagonal of a matrix and below it, else zeros.

    >>> wg.tri(2, 3).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    """
    rows = expand_dims(arange(N, device=device), 1)
    columns = expand_dims(arange(N if M is None else M, device=device), 0)
    return (columns - rows <= k).astype(dtypes.float32 if dtype is None else dtype)


def logspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: Any = None,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """Powers of a base, whose exponents are at equal distances.

    >>> wg.logspace(0, 2, 3).tolist()
    [1.0, 10.0, 100.0]
    """
    exponents = linspace(start, stop, num, dtype, device=device, endpoint=endpoint)
    return pow(full_like(exponents, base), exponents)


def geomspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """Numbers from one to another, each the same multiple of the one before.

    >>> print(wg.geomspace(1, 8, 4).numpy().round(4))
    [1. 2. 4. 8.]
    """
    if start * stop <= 0:
        raise ArgumentError(f"geomspace from {start} to {stop}: both are above zero, or both below")
    line = linspace(0.0, math.log(stop / start), num, dtype, device=device, endpoint=endpoint)
    found = exp(line) * start
    last = arange(found.shape[0], device=found.device) == (num - 1 if endpoint else num)
    return where(last & (num > 1), stop, found)  # the end itself, not nearly


def _places(row: int, col: int | None, chosen: Any, device: DeviceLike) -> Tensor:
    rows = expand_dims(arange(row, device=device), 1)
    columns = expand_dims(arange(row if col is None else col, device=device), 0)
    return stack(nonzero(chosen(rows, columns)))


def rot90(x: Tensor, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """Turned by k quarters, from the first of two axes towards the second.

    >>> wg.rot90(wg.asarray([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    x = as_tensor("rot90", x)
    first, second = axes
    if x.ndim < 2 or first % x.ndim == second % x.ndim:
        raise ShapeError(f"rot90 of shape {x.shape} needs two different axes, not {axes}")
    turned = {0: +x, 1: flip(swapaxes(x, first, second), first), 2: flip(x, (first, second))}
    turned[3] = flip(swapaxes(x, first, second), second)
    return turned[k % 4]

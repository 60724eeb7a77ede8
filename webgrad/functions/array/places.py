"""Places and choices, by NumPy's names: grids of indices, `select`, `choose`, and writes such as `put`.

In: tensors. Out: tensors. What writes changes its first argument and gives nothing, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...errors import ArgumentError, DTypeError, ShapeError
from ...ops.shapes import check_kind, normalise_axis
from ...runtime.device import DeviceLike
from ...tensor import Tensor
from . import elementwise
from .creation import arange, as_shape, as_tensor, meshgrid
from .elementwise import clip, where
from .indexing import nonzero, take
from .manipulation import diag, diagonal, stack
from .pieces import beside
from .reductions import sum as total
from .reshaping import broadcast_to, flatten, reshape
from .scatters import index_set, scatter_set


def indices(
    dimensions: Sequence[int], dtype: Any = None, sparse: bool = False, *, device: DeviceLike = None
) -> Any:
    """The index of every element of a shape along each axis, in one tensor; `sparse`: as a tuple.

    >>> wg.indices((2, 2)).tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    sizes = as_shape("indices", dimensions)
    lines = [arange(size, dtype=dtype, device=device) for size in sizes]
    if not sizes:
        raise ShapeError("indices of a shape without axes: there are none")
    return ix_(*lines) if sparse else stack(list(meshgrid(*lines, indexing="ij")))


def ix_(*lines: Tensor) -> tuple[Tensor, ...]:
    """Lines of indices, or masks, such that x[wg.ix_(rows, columns)] is where they cross.

    >>> wg.arange(6).reshape(2, 3)[wg.ix_(wg.asarray([0, 1]), wg.asarray([0, 2]))].tolist()
    [[0, 2], [3, 5]]
    """
    found = []
    for number, each in enumerate(lines):
        line = as_tensor("ix_", each)
        if line.ndim != 1:
            raise ShapeError(f"ix_ takes tensors of one dimension, not of shape {line.shape}")
        line = nonzero(line)[0] if line.dtype is dtypes.bool else line
        found.append(reshape(line, (1,) * number + (-1,) + (1,) * (len(lines) - number - 1)))
    return tuple(found)


def diag_indices(n: int, ndim: int = 2, *, device: DeviceLike = None) -> tuple[Tensor, ...]:
    """The indices of the diagonal of a square matrix, or of a cube of more axes.

    >>> wg.arange(4).reshape(2, 2)[wg.diag_indices(2)].tolist()
    [0, 3]
    """
    return (arange(n, device=device),) * ndim


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Indices of a flattened tensor as indices along its axes.

    >>> [each.tolist() for each in wg.unravel_index(wg.asarray([1, 5]), (2, 3))]
    [[0, 1], [1, 2]]
    """
    rest = as_tensor("unravel_index", indices)
    check_kind("unravel_index", "iu", rest.dtype)
    found = []
    for size in reversed(as_shape("unravel_index", shape)):
        found.append(rest % size)
        rest = rest // size
    return tuple(reversed(found))


def ravel_multi_index(multi_index: Sequence[Tensor], dims: Sequence[int]) -> Tensor:
    """Indices along axes as indices of the flattened tensor.

    >>> wg.ravel_multi_index((wg.asarray([0, 1]), wg.asarray([1, 2])), (2, 3)).tolist()
    [1, 5]
    """
    sizes = as_shape("ravel_multi_index", dims)
    if len(multi_index) != len(sizes):
        raise ShapeError(f"ravel_multi_index: {len(multi_index)} indices for {len(sizes)} axes")
    found = as_tensor("ravel_multi_index", multi_index[0])
    for each, size in zip(multi_index[1:], sizes[1:], strict=True):
        found = found * size + each
    return found


def flatnonzero(x: Tensor) -> Tensor:
    """The indices in the flattened tensor of what is not zero; computes x, and waits.

    >>> wg.flatnonzero(wg.asarray([[0, 1], [2, 0]])).tolist()
    [1, 2]
    """
    return nonzero(flatten(as_tensor("flatnonzero", x)))[0]


def argwhere(x: Tensor) -> Tensor:
    """The indices of what is not zero, a row for each; computes x, and waits.

    >>> wg.argwhere(wg.asarray([[0, 1], [2, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    x = as_tensor("argwhere", x)
    if not x.shape:
        return nonzero(reshape(x, (1,)))[0].reshape(-1, 1)[:, :0]
    return stack(list(nonzero(x)), 1)


def extract(condition: Any, x: Tensor) -> Tensor:
    """The elements where a condition holds, as a line; computes the condition, and waits.

    >>> wg.extract(wg.asarray([True, False, True]), wg.asarray([1, 2, 3])).tolist()
    [1, 3]
    """
    x = as_tensor("extract", x)
    return take(flatten(x), flatnonzero(beside(x, condition)))


def compress(condition: Any, x: Tensor, axis: int | None = None) -> Tensor:
    """The slices of an axis where a condition of one dimension holds; of the flattened tensor without one.

    >>> wg.compress([True, False], wg.asarray([[1, 2], [3, 4]]), axis=0).tolist()
    [[1, 2]]
    """
    x = as_tensor("compress", x)
    flags = beside(x, condition)
    if flags.ndim != 1:
        raise ShapeError(f"compress: a condition has one dimension, not the shape {flags.shape}")
    return take(x, nonzero(flags)[0], axis)


def select(conditions: Sequence[Tensor], choices: Sequence[Any], default: Any = 0) -> Tensor:
    """Elements of the first choice whose condition holds, else a default.

    >>> x = wg.arange(5)
    >>> wg.select([x < 2, x > 2], [x, x * 10], -1).tolist()
    [0, 1, -1, 30, 40]
    """
    if len(conditions) != len(choices) or not conditions:
        raise ArgumentError(f"select: {len(conditions)} conditions for {len(choices)} choices")
    found = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        if as_tensor("select", condition).dtype is not dtypes.bool:
            raise DTypeError(f"select: conditions are bools, not {condition.dtype.name}")
        found = where(condition, choice, found)
    return found  # type: ignore[no-any-return]


def choose(x: Tensor, choices: Sequence[Any], mode: str = "clip") -> Tensor:
    """From several choices the one whose number an element of x is; `mode` "wrap" counts on from the end.

    A check of the numbers would have to wait: they are kept in range.

    >>> wg.choose(wg.asarray([0, 1, 1]), [wg.asarray([1, 2, 3]), wg.asarray([10, 20, 30])]).tolist()
    [1, 20, 30]
    """
    x = as_tensor("choose", x)
    check_kind("choose", "iu", x.dtype)
    if mode not in ("clip", "wrap") or not len(choices):
        raise ArgumentError(
            f"choose: mode is 'clip' or 'wrap', and there are choices, not {mode!r} of {len(choices)}"
        )
    last = len(choices) - 1
    number = x % len(choices) if mode == "wrap" else clip(x, 0, last)
    found: Any = choices[last]
    for each in reversed(range(last)):
        found = where(number == each, choices[each], found)
    return found if last else where(number == 0, found, found)


# Writes


def put(x: Tensor, indices: Any, values: Any) -> None:
    """Write values, as often as they are needed, at indices of the flattened tensor, in place.

    >>> x = wg.zeros(4)
    >>> wg.put(x, [0, 2], [1.0, 3.0])
    >>> x.tolist()
    [1.0, 0.0, 3.0, 0.0]
    """
    where_to, given = flatten(beside(x, indices)), flatten(beside(x, values))
    if not given.size:
        return
    repeated = take(given, arange(where_to.size, device=x.device) % given.size).astype(x.dtype)
    x[...] = reshape(index_set(flatten(x), where_to, repeated), x.shape)


def put_along_axis(x: Tensor, indices: Any, values: Any, axis: int) -> None:
    """Write values at an index for each along an axis, in place: what `take_along_axis` reads.

    >>> x = wg.asarray([[1, 2], [3, 4]])
    >>> wg.put_along_axis(x, wg.asarray([[1], [0]]), 9, axis=1)
    >>> x.tolist()
    [[1, 9], [9, 4]]
    """
    at = normalise_axis("put_along_axis", axis, x.ndim)
    index = beside(x, indices)
    others = (*x.shape[:at], index.shape[at], *x.shape[at + 1 :])
    index = broadcast_to(index, others)
    x[...] = scatter_set(x, index, broadcast_to(beside(x, values), others).astype(x.dtype), at)


def putmask(x: Tensor, mask: Any, values: Any) -> None:
    """Write values where a mask is true, in place; fewer values than elements are repeated.

    >>> x = wg.arange(4)
    >>> wg.putmask(x, x > 1, -x)
    >>> x.tolist()
    [0, 1, -2, -3]
    """
    given = flatten(beside(x, values))
    if not given.size:
        return
    spread = take(given, arange(x.size, device=x.device) % given.size)
    x[...] = where(beside(x, mask), reshape(spread, x.shape).astype(x.dtype), x)


def copyto(x: Tensor, source: Any, where: Any = True) -> None:
    """Write the elements of another tensor, broadcast, in place; only where a mask is true, if there is one.

    >>> x = wg.zeros(3)
    >>> wg.copyto(x, 5.0, where=wg.asarray([True, False, True]))
    >>> x.tolist()
    [5.0, 0.0, 5.0]
    """
    given = broadcast_to(beside(x, source).astype(x.dtype), x.shape)
    x[...] = given if where is True else elementwise.where(beside(x, where), given, x)


def fill_diagonal(x: Tensor, value: Any) -> None:
    """Write a number, or a line of numbers, on the diagonal of a matrix, in place.

    >>> x = wg.zeros((2, 2))
    >>> wg.fill_diagonal(x, 5.0)
    >>> x.tolist()
    [[5.0, 0.0], [0.0, 5.0]]
    """
    if x.ndim != 2:
        raise ShapeError(f"fill_diagonal takes a matrix, not a tensor of shape {x.shape}")
    diagonal(x)[...] = value


# Diagonals


def trace(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1, *, dtype: Any = None) -> Tensor:
    """The sum along a diagonal of two axes; `wg.linalg.trace` takes the last two.

    >>> wg.trace(wg.asarray([[1, 2], [3, 4]])).item()
    5
    """
    return total(diagonal(x, offset, axis1, axis2), -1, dtype=dtype)


def diagflat(x: Tensor, k: int = 0) -> Tensor:
    """The flattened elements on a diagonal of a matrix of zeros.

    >>> wg.diagflat(wg.asarray([[1, 2]])).tolist()
    [[1, 0], [0, 2]]
    """
    return diag(flatten(as_tensor("diagflat", x)), k)

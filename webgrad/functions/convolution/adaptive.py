"""Adaptive pooling: as many windows as asked for, that cover x and are as equal in length as they can be.

In: x (N, C, …) or (C, …), and the size of the result. Out: folds over windows, moved where all have one
length, else taken by places that the host knows.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from ... import dtypes
from ...errors import ArgumentError, ShapeError
from ...gradients.order import untaken_along
from ...gradients.own import own_gradient
from ...gradients.pooling import plane, side_by_side, to_first_largest
from ...graph.node import Node
from ...ops import primitives
from ...ops.host_arrays import host_array
from ...ops.shapes import check_kind
from ...tensor import Tensor
from ..array.creation import as_tensor, asarray
from ..array.elementwise import where
from ..array.reductions import converted, floating, fold
from ..pure import pure
from .pooling import first_largest
from .windows import Sizes, batched, per_axis, unbatched


def _adaptive(op: str, count: int, x: Any, output_size: Any) -> tuple[Tensor, Sizes, bool]:
    data, was_batched = batched(op, as_tensor(op, x), count)
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * count
    sizes = data.shape[2:]
    if len(given) != count:
        raise ArgumentError(
            f"{op}: output_size is one number, or one for each of {count} axes, not {given!r}"
        )
    wanted = tuple(
        length if each is None else per_axis(op, "output_size", each, 1)[0]
        for each, length in zip(given, sizes, strict=True)
    )
    if 0 in sizes:
        raise ShapeError(f"{op}: there is nothing to pool in a tensor of shape {data.shape}")
    return data, wanted, was_batched


@lru_cache(maxsize=128)
def _stretches(length: int, wanted: int) -> tuple[Any, Any]:
    """The places of every window (elements, windows), in shorter ones the last repeated; and lengths."""
    windows = [range(at * length // wanted, -(-(at + 1) * length // wanted)) for at in range(wanted)]
    lengths = [len(each) for each in windows]
    places = [[each[min(at, len(each) - 1)] for each in windows] for at in range(max(lengths))]
    return host_array("pooling", places, dtypes.int32), host_array("pooling", lengths, dtypes.float32)


def _stretched(x: Node, axis: int, wanted: int) -> Node:
    """An axis as two, the elements of a window and the windows."""
    shape = x.sig.shape
    length = shape[axis]
    if length % wanted == 0:
        split = primitives.reshape(x, (*shape[:axis], wanted, length // wanted, *shape[axis + 1 :]))
        order = list(range(len(shape) + 1))
        order[axis : axis + 2] = [axis + 1, axis]
        return primitives.permute(split, tuple(order))
    places = asarray(_stretches(length, wanted)[0], device=x.sig.device)
    return primitives.take(x, places.node, axis)


def _arranged(x: Node, wanted: Sizes) -> Node:
    """(…, sizes) as (…, elements of a window, windows)."""
    first = len(x.sig.shape) - len(wanted)
    for at in reversed(range(len(wanted))):
        x = _stretched(x, first + at, wanted[at])
    axes = range(first, first + 2 * len(wanted))
    return primitives.permute(x, (*range(first), *axes[::2], *axes[1::2]))


def _adaptive_avg_pool(op: str, count: int, x: Any, output_size: Any) -> Tensor:
    """Axes whose windows are all of one length in one fold, then each of the others."""
    data, wanted, was_batched = _adaptive(op, count, x, output_size)
    wide = floating(op, data)
    sizes = data.shape[2:]
    even = tuple(length if length % number else number for length, number in zip(sizes, wanted, strict=True))
    if even != sizes:
        elements = Tensor(_arranged(wide.node, even))
        size = math.prod(sizes) // math.prod(even)
        wide = fold("sum", elements, tuple(range(2, 2 + count))) / size
    for at, (length, number) in enumerate(zip(sizes, wanted, strict=True)):
        if length % number:
            wide = _uneven_mean(wide, 2 + at, number)
    return unbatched(converted(wide, data.dtype), was_batched)


def _uneven_mean(x: Tensor, axis: int, wanted: int) -> Tensor:
    places, lengths = _stretches(x.shape[axis], wanted)
    numbers = asarray(lengths, device=x.device).reshape((-1, *[1] * (x.ndim - 1 - axis)))
    taken = Tensor(primitives.take(x.node, asarray(places, device=x.device).node, axis))
    index = Tensor(primitives.iota(places.shape[0], dtypes.float32, x.node.sig.device))
    within = Tensor(primitives.reshape(index.node, (places.shape[0], *[1] * (x.ndim - axis)))) < numbers
    return fold("sum", where(within, taken, 0), (axis,)) / converted(numbers, x.dtype)


def _adaptive_max_pool(op: str, count: int, x: Any, output_size: Any, return_indices: bool) -> Any:
    data, wanted, was_batched = _adaptive(op, count, x, output_size)
    check_kind(op, "iuf", data.dtype)

    own, sizes = Tensor(data.node), data.shape[2:]

    def both() -> tuple[Tensor, Tensor]:
        taps, places = (Tensor(_arranged(each, wanted)) for each in (own.node, plane(own)))
        return first_largest(taps, places, count, math.prod(sizes))

    def back(g: Tensor) -> Tensor:
        if all(length % number == 0 for length, number in zip(sizes, wanted, strict=True)):
            return to_first_largest(own, g, side_by_side(sizes, wanted))
        return _to_uneven(g, both()[1], data.shape)

    def largest() -> Tensor:
        taps = Tensor(_arranged(own.node, wanted))
        return fold("max", taps, tuple(range(2, 2 + count)))

    values = unbatched(own_gradient(largest, (own, back)), was_batched)
    return (values, unbatched(both()[1], was_batched)) if return_indices else values


def _to_uneven(g: Tensor, places: Tensor, shape: Sizes) -> Tensor:
    """g to the places in the plane that are named for each window; windows may share elements."""
    windows = (*shape[:2], math.prod(g.shape[2:]))
    flat, index = (Tensor(primitives.reshape(each.node, windows)) for each in (g, places))
    planes = (*shape[:2], math.prod(shape[2:]))
    return Tensor(primitives.reshape(untaken_along(flat, planes, index, 2).node, shape))


# The public functions


@pure
def adaptive_avg_pool1d(x: Tensor, output_size: Any) -> Tensor:
    """The means of windows over x (N, C, L), so many that the result has the size asked for.

    >>> wg.adaptive_avg_pool1d(wg.asarray([[1.0, 2.0, 6.0]]), 2).tolist()
    [[1.5, 4.0]]
    """
    return _adaptive_avg_pool("adaptive_avg_pool1d", 1, x, output_size)


@pure
def adaptive_avg_pool2d(x: Tensor, output_size: Any) -> Tensor:
    """The means of windows over x (N, C, H, W), so many that the result has the size asked for.

    >>> wg.adaptive_avg_pool2d(wg.arange(16.0).reshape((1, 4, 4)), 1).tolist()
    [[[7.5]]]
    """
    return _adaptive_avg_pool("adaptive_avg_pool2d", 2, x, output_size)


@pure
def adaptive_avg_pool3d(x: Tensor, output_size: Any) -> Tensor:
    """The means of windows over x (N, C, D, H, W), so many that the result has the size asked for.

    >>> wg.adaptive_avg_pool3d(wg.ones((2, 4, 6, 6)), (2, None, 3)).shape
    (2, 2, 6, 3)
    """
    return _adaptive_avg_pool("adaptive_avg_pool3d", 3, x, output_size)


@pure
def adaptive_max_pool1d(x: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The largest elements of windows over x (N, C, L), so many that the result has the size asked for.

    >>> wg.adaptive_max_pool1d(wg.asarray([[1.0, 2.0, 6.0]]), 2).tolist()
    [[2.0, 6.0]]
    """
    return _adaptive_max_pool("adaptive_max_pool1d", 1, x, output_size, return_indices)


@pure
def adaptive_max_pool2d(x: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The largest elements of windows over x (N, C, H, W), so many that the result has the size asked for.

    >>> wg.adaptive_max_pool2d(wg.arange(16.0).reshape((1, 4, 4)), 2).tolist()
    [[[5.0, 7.0], [13.0, 15.0]]]
    """
    return _adaptive_max_pool("adaptive_max_pool2d", 2, x, output_size, return_indices)


@pure
def adaptive_max_pool3d(x: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The largest elements of windows over x (N, C, D, H, W), so many that the result has the size asked for.

    >>> wg.adaptive_max_pool3d(wg.ones((2, 4, 6, 6)), (2, None, 3)).shape
    (2, 2, 6, 3)
    """
    return _adaptive_max_pool("adaptive_max_pool3d", 3, x, output_size, return_indices)

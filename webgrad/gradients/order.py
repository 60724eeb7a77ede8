"""Gradients of what goes by order and place: scatters, running totals, products of many, sorts.

In: tensors, as the rules of the table give them. Out: tensors of an input's shape.
"""

from __future__ import annotations

import math

from .. import dtypes
from ..functions.array.elementwise import where
from ..functions.array.reshaping import axis_slice
from ..functions.array.scans import cumulative_max, cumulative_prod, cumulative_sum
from ..graph.node import Node
from ..ops import primitives
from ..ops.table import TABLE
from ..tensor import Tensor

Shape = tuple[int, ...]


# Gathers


def scattered(rows: Node, index: Node, count: int) -> Node:
    """Rows added to zeros; those of half precision in float32. Indices are clamped, as a gather's are."""
    dtype = rows.sig.dtype
    wide = primitives.cast(rows, dtypes.float32) if dtype.is_half else rows
    base = primitives.expand(_zero(wide), (count, rows.sig.shape[1]))
    inside = _inside(Tensor(index), count)
    return primitives.cast(primitives.scatter(TABLE["scatter_add"], base, inside.node, wide), dtype)


def _inside(index: Tensor, count: int) -> Tensor:
    """Places clamped, as int32 where their own type may not hold the last one."""
    wide = index.astype(dtypes.int32) if index.dtype.is_packed else index
    return wide.clip(0, max(count - 1, 0))


def _zero(like: Node) -> Node:
    return primitives.constant("gradient", 0, like.sig.dtype, like.sig.device)


def untaken(g: Tensor, shape: Shape, index: Tensor, axis: int) -> Tensor:
    """What was taken from an axis, added up where it came from."""
    rank = index.ndim
    order = (*range(axis, axis + rank), *range(axis), *range(axis + rank, g.ndim))
    others = (*shape[:axis], *shape[axis + 1 :])
    rows = primitives.reshape(primitives.permute(g.node, order), (index.size, math.prod(others)))
    total = scattered(rows, primitives.reshape(index.node, (index.size,)), shape[axis])
    back = (*range(1, axis + 1), 0, *range(axis + 1, len(shape)))
    return Tensor(primitives.permute(primitives.reshape(total, (shape[axis], *others)), back))


def untaken_along(g: Tensor, whole: Shape, index: Tensor, axis: int) -> Tensor:
    """What was taken along an axis of a tensor of g's other sizes, added up where it came from.

    One element of each row is put there by comparing places, which is a map like any other.
    """
    if g.shape[axis] == 1:
        inside = _inside(index, whole[axis])
        count = primitives.cast(_count(whole[axis], index).node, inside.dtype)
        at = Tensor(primitives.reshape(count, (whole[axis], *[1] * (g.ndim - 1 - axis))))
        return where(at == inside, g, 0.0)
    places = _places(index, g.shape, whole, axis)
    rows = primitives.reshape(g.node, (g.size, 1))
    total = scattered(rows, primitives.reshape(places.node, (g.size,)), math.prod(whole))
    return Tensor(primitives.reshape(total, whole))


def _places(index: Tensor, shape: Shape, whole: Shape, axis: int) -> Tensor:
    """Where in a flat tensor of the shape `whole` the elements lie that an index names along an axis."""
    inside = _inside(index, whole[axis]).astype(dtypes.int32)
    places = Tensor(primitives.expand(inside.node, shape)) * math.prod(whole[axis + 1 :])
    for at, size in enumerate(whole):
        if at != axis and size > 1:
            steps = _count(size, index) * math.prod(whole[at + 1 :])
            places = places + Tensor(primitives.reshape(steps.node, (size, *[1] * (len(whole) - 1 - at))))
    return places


def _count(length: int, beside: Tensor) -> Tensor:
    return Tensor(primitives.iota(length, dtypes.int32, beside.node.sig.device))


# Scatters: base (rows, columns), index (count,), updates (count, columns)


def rows_of(g: Tensor, index: Tensor) -> Tensor:
    """What became of each update."""
    return Tensor(primitives.take(g.node, index.node, 0))


def kept_rows(g: Tensor, index: Tensor) -> Tensor:
    """g where nothing was written."""
    none = primitives.expand(_zero(g.node), (index.size, g.shape[1]))
    return Tensor(primitives.scatter(TABLE["scatter_set"], g.node, index.node, none))


def last_rows(g: Tensor, index: Tensor) -> Tensor:
    """g for the updates that stayed: of several to a row, the last."""
    count = _count(index.size, index)
    column = primitives.reshape(count.node, (index.size, 1))
    base = primitives.expand(_zero(column), (g.shape[0], 1))
    last = primitives.scatter(TABLE["scatter_set"], base, index.node, column)
    stayed = Tensor(primitives.take(last, index.node, 0)) == Tensor(column)
    return where(stayed, rows_of(g, index), 0.0)


def _shares(g: Tensor, y: Tensor, base: Tensor, index: Tensor, updates: Tensor) -> Tensor:
    """g over the number of values that equal the largest."""
    hits = (updates == rows_of(y, index)).astype(g.dtype)
    count = Tensor(scattered(hits.node, index.node, base.shape[0])) + (base == y).astype(g.dtype)
    return g / count


def largest_base(g: Tensor, y: Tensor, base: Tensor, index: Tensor, updates: Tensor) -> Tensor:
    """Of a scatter of maxima by its base; equal ones share it."""
    return where(base == y, _shares(g, y, base, index, updates), 0.0)


def largest_update(g: Tensor, y: Tensor, base: Tensor, index: Tensor, updates: Tensor) -> Tensor:
    """The same by its updates."""
    return where(updates == rows_of(y, index), rows_of(_shares(g, y, base, index, updates), index), 0.0)


# Running totals


def _backwards(x: Tensor, axis: int) -> Tensor:
    return Tensor(primitives.flip(x.node, (axis,)))


def sum_to_come(g: Tensor, axis: int) -> Tensor:
    """The sum of each element and all behind it."""
    return _backwards(cumulative_sum(_backwards(g, axis), axis=axis), axis)


def running_product(g: Tensor, y: Tensor, a: Tensor, axis: int) -> Tensor:
    """Of running products: what is to come, without the factor itself.

    Division takes the factor out where it is not 0. For the first 0 of a line it is put out by a 1 instead;
    behind that every product has a 0 in it.
    """
    none = a == 0
    first = none & (cumulative_sum(none.astype(dtypes.int32), axis=axis) == 1)
    without = cumulative_prod(where(first, 1.0, a), axis=axis)
    divided = where(none, 0.0, sum_to_come(g * y, axis) / where(none, 1.0, a))
    return where(first, sum_to_come(g * without, axis), divided)


def running_extreme(g: Tensor, y: Tensor, a: Tensor, axis: int) -> Tensor:
    """Of running maxima or minima: to the last element that was one."""
    count = _count(a.shape[axis], a)
    places = Tensor(primitives.reshape(count.node, (a.shape[axis], *[1] * (a.ndim - 1 - axis))))
    return untaken_along(g, a.shape, cumulative_max(where(a == y, places, 0), axis=axis), axis)


def others_product(g: Tensor, a: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Of a product by each factor: the product of the others, those before it times those behind it."""
    stay = tuple(at for at in range(a.ndim) if at not in axes)
    order = (*stay, *axes)
    sizes = tuple(a.shape[at] for at in stay)
    line = primitives.reshape(
        primitives.permute(a.node, order), (*sizes, math.prod(a.shape[at] for at in axes))
    )
    before, behind = (
        _before(Tensor(line)),
        _backwards(_before(_backwards(Tensor(line), len(sizes))), len(sizes)),
    )
    part = Tensor(primitives.reshape(g.node, (*sizes, 1))) * before * behind
    whole = primitives.reshape(part.node, tuple(a.shape[at] for at in order))
    return Tensor(primitives.permute(whole, tuple(order.index(at) for at in range(a.ndim))))


def _before(line: Tensor) -> Tensor:
    """The product of what is before each element of the last axis."""
    if line.shape[-1] == 0:
        return line
    whole = cumulative_prod(line, axis=line.ndim - 1)
    cut = axis_slice(whole.node, -1, 0, line.shape[-1] - 1)
    return Tensor(primitives.pad(cut, (*[(0, 0)] * (line.ndim - 1), (1, 0)), 1))

"""Gradients of ops with indices and order: gathers, scatters, scans, products, sorts.

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
    """A scatter-add of rows to zeros; half precision in float32. Indices are clamped, as a gather's are."""
    dtype = rows.sig.dtype
    wide = primitives.cast(rows, dtypes.float32) if dtype.is_half else rows
    base = primitives.expand(_zero(wide), (count, rows.sig.shape[1]))
    inside = _clamped(Tensor(index), count)
    return primitives.cast(primitives.scatter(TABLE["scatter_add"], base, inside.node, wide), dtype)


def _clamped(index: Tensor, count: int) -> Tensor:
    """Indices clamped to the axis, as int32 where their dtype may not hold the last one."""
    wide = index.astype(dtypes.int32) if index.dtype.is_packed else index
    return wide.clip(0, max(count - 1, 0))


def _zero(like: Node) -> Node:
    return primitives.constant("gradient", 0, like.sig.dtype, like.sig.device)


def untaken(g: Tensor, shape: Shape, index: Tensor, axis: int) -> Tensor:
    """The gradient of `take`: each slice added to where it was taken from."""
    rank = index.ndim
    order = (*range(axis, axis + rank), *range(axis), *range(axis + rank, g.ndim))
    others = (*shape[:axis], *shape[axis + 1 :])
    rows = primitives.reshape(primitives.permute(g.node, order), (index.size, math.prod(others)))
    total = scattered(rows, primitives.reshape(index.node, (index.size,)), shape[axis])
    back = (*range(1, axis + 1), 0, *range(axis + 1, len(shape)))
    return Tensor(primitives.permute(primitives.reshape(total, (shape[axis], *others)), back))


def untaken_along(g: Tensor, whole: Shape, index: Tensor, axis: int) -> Tensor:
    """The gradient of `take_along`: elements added to where they were taken from, in shape `whole`.

    For one element per row indices are compared, which is a map and fuses.
    """
    if g.shape[axis] == 1:
        inside = _clamped(index, whole[axis])
        count = primitives.cast(_count(whole[axis], index).node, inside.dtype)
        at = Tensor(primitives.reshape(count, (whole[axis], *[1] * (g.ndim - 1 - axis))))
        return where(at == inside, g, 0.0)
    indices = _flat_indices(index, g.shape, whole, axis)
    rows = primitives.reshape(g.node, (g.size, 1))
    total = scattered(rows, primitives.reshape(indices.node, (g.size,)), math.prod(whole))
    return Tensor(primitives.reshape(total, whole))


def _flat_indices(index: Tensor, shape: Shape, whole: Shape, axis: int) -> Tensor:
    """The flat indices, in a tensor of shape `whole`, of the elements that an index selects along an axis."""
    inside = _clamped(index, whole[axis]).astype(dtypes.int32)
    indices = Tensor(primitives.expand(inside.node, shape)) * math.prod(whole[axis + 1 :])
    for at, size in enumerate(whole):
        if at != axis and size > 1:
            steps = _count(size, index) * math.prod(whole[at + 1 :])
            indices = indices + Tensor(primitives.reshape(steps.node, (size, *[1] * (len(whole) - 1 - at))))
    return indices


def _count(length: int, beside: Tensor) -> Tensor:
    return Tensor(primitives.iota(length, dtypes.int32, beside.node.sig.device))


# Scatters: base (rows, columns), index (count,), updates (count, columns)


def rows_of(g: Tensor, index: Tensor) -> Tensor:
    """The gradient of each update: g at its row."""
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
    """The gradient of a maximum scatter with respect to its base; equal values share it."""
    return where(base == y, _shares(g, y, base, index, updates), 0.0)


def largest_update(g: Tensor, y: Tensor, base: Tensor, index: Tensor, updates: Tensor) -> Tensor:
    """The gradient of a maximum scatter with respect to its updates."""
    return where(updates == rows_of(y, index), rows_of(_shares(g, y, base, index, updates), index), 0.0)


# Running totals


def _backwards(x: Tensor, axis: int) -> Tensor:
    return Tensor(primitives.flip(x.node, (axis,)))


def sum_to_come(g: Tensor, axis: int) -> Tensor:
    """The sum of each element and all after it."""
    return _backwards(cumulative_sum(_backwards(g, axis), axis=axis), axis)


def running_product(g: Tensor, y: Tensor, a: Tensor, axis: int) -> Tensor:
    """The gradient of running products: for each factor the sum of later products without that factor.

    Where the factor is not 0, a division removes it. The first 0 of a line is replaced by 1 instead; after it
    every product contains a 0.
    """
    none = a == 0
    first = none & (cumulative_sum(none.astype(dtypes.int32), axis=axis) == 1)
    without = cumulative_prod(where(first, 1.0, a), axis=axis)
    divided = where(none, 0.0, sum_to_come(g * y, axis) / where(none, 1.0, a))
    return where(first, sum_to_come(g * without, axis), divided)


def running_extreme(g: Tensor, y: Tensor, a: Tensor, axis: int) -> Tensor:
    """The gradient of running maxima or minima goes to the latest element that was one."""
    count = _count(a.shape[axis], a)
    indices = Tensor(primitives.reshape(count.node, (a.shape[axis], *[1] * (a.ndim - 1 - axis))))
    return untaken_along(g, a.shape, cumulative_max(where(a == y, indices, 0), axis=axis), axis)


def others_product(g: Tensor, a: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The gradient of a product with respect to each factor: those before it times those after it."""
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
    """For each element of the last axis the product of those before it."""
    if line.shape[-1] == 0:
        return line
    whole = cumulative_prod(line, axis=line.ndim - 1)
    cut = axis_slice(whole.node, -1, 0, line.shape[-1] - 1)
    return Tensor(primitives.pad(cut, (*[(0, 0)] * (line.ndim - 1), (1, 0)), 1))

"""Elements by their indices and by masks: reading, and writing as a function or in place.

In: tensors, a dimension, integer or bool tensors. Out: tensors.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import webgrad as wg

from .binding import bind
from .defaults import dtype_of, integer_of
from .promotion import matched, wrapped
from .reductions import index as integers
from .shapes_of import axis_of
from .tensor import Array, adopt

__all__ = ["functions"]

ROWS = """
[function method out]
gather(input, dim, index, *, sparse_grad=False) = gathered(input, dim, index)
index_select(input, dim, index) = wg.index_select(input, dim, index.reshape(-1)) if input.ndim else
    input.clone()
take(input, index) = wg.reshape(input, (-1,))[index]
take_along_dim(input, indices, dim=None) = along(input, indices, dim)
masked_select(input, mask) = masked(input, mask)

[function method]
nonzero(input, *, as_tuple=False) = places(input, as_tuple)
argwhere(input) = places(input, False)
nonzero_static(input, *, size, fill_value=-1, out=None) = places_in(input, size, fill_value)

[function method in_place]
scatter(input, dim, index, src=None, *, value=None, reduce=None) = scattered(input, dim, index, src, value,
    reduce)
scatter_add(input, dim, index, src) = by_elements(SUMS, input, dim, index, src)
scatter_reduce(input, dim, index, src, reduce, *, include_self=True) = reduced(by_elements, input, dim, index,
    src, reduce, include_self)
index_add(input, dim, index, source, *, alpha=1) = by_slices(SUMS, input, dim, index, source if alpha == 1
    else source * alpha)
index_reduce(input, dim, index, source, reduce, *, include_self=True) = reduced(by_slices, input, dim, index,
    source, reduce, include_self)
index_copy(input, dim, index, source) = by_slices(COPIES, input, dim, index, source)
index_fill(input, dim, index, value) = by_slices(COPIES, input, dim, index, number_of("index_fill",
    value))
masked_fill(input, mask, value) = wg.masked_fill(*wide(input, mask), wrapped(number_of("masked_fill", value),
    input.dtype))
masked_scatter(input, mask, source) = filled(input, mask, source)
index_put(input, indices, values, accumulate=False) = put(input, indices, values, accumulate)
put(input, index, source, accumulate=False) = put_flat(input, index, source, accumulate)

[function]
unravel_index(indices, shape) = unravelled(indices, shape)
segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None)
    = segments(data, reduce, lengths, offsets, axis, initial)
_unsafe_masked_index(input, mask, indices, fill) = wg.where(mask, input[tuple(indices)], fill)
_unsafe_masked_index_put_accumulate(input, mask, indices, values) = put(input, indices, wg.where(mask, values,
    0), True)
"""


def gathered(x: Any, dim: int, index: Any) -> Any:
    """Elements of a dimension, by an index for each."""
    if index.dtype.kind not in "iu":
        raise RuntimeError("gather(): Expected dtype int64 for index")
    axis_of(dim, x.ndim)
    if not index.numel():
        return wg.reshape(wg.reshape(x, (-1,))[:0], tuple(index.shape))
    if not x.ndim or not index.ndim:
        return wg.reshape(wg.gather(wg.reshape(x, (-1,)), 0, wg.reshape(index, (-1,))), tuple(index.shape))
    return wg.gather(x, dim, index)


def along(x: Any, indices: Any, dim: int | None) -> Any:
    """Elements of a dimension by indices that broadcast; of all elements in order where none is given."""
    if dim is None:
        return wg.take_along_axis(wg.reshape(x, (-1,)), wg.reshape(indices, (-1,)), 0)
    return wg.take_along_axis(x, indices, dim)


def masked(x: Any, mask: Any) -> Any:
    """The elements where the mask is true, in order."""
    x, mask = wg.broadcast_arrays(x, mask)
    return x[mask]


def places(x: Any, as_tuple: bool) -> Any:
    """Indices of what is not zero: a row each, or a tensor for each dimension."""
    if not x.ndim:
        found = integers(wg.nonzero(x.reshape(1))[0])
        return (found,) if as_tuple else wg.zeros((found.shape[0], 0), dtype=integer_of(x.device))
    each = [integers(one) for one in wg.nonzero(x)]
    return tuple(each) if as_tuple else wg.stack(each, axis=1)


def places_in(x: Any, size: int, fill_value: int) -> Any:
    """The first indices of what is not zero, and a number for those that are not there."""
    found = places(x, False)[:size]
    rows = size - found.shape[0]
    if not x.ndim:
        return wg.zeros((size, 0), dtype=found.dtype, device=x.device)
    return wg.pad(found, ((0, rows), (0, 0)), constant_values=fill_value) if rows else found


def corner(src: Any, index: Any) -> Any:
    """As much of the updates as there are indices."""
    if not isinstance(src, Array) or tuple(src.shape) == tuple(index.shape):
        return src
    return src[tuple(slice(0, size) for size in index.shape)]


class Writing(NamedTuple):
    """One way to write, by slices and by single elements; bools have another for what numbers add."""

    slices: Any
    elements: Any
    bools: Any = None


SUMS = Writing(wg.index_add, wg.scatter_add, Writing(wg.index_max, wg.scatter_max))
COPIES = Writing(wg.index_set, wg.scatter_set)
PRODUCTS = Writing(wg.index_multiply, wg.scatter_multiply, Writing(wg.index_min, wg.scatter_min))
WRITINGS = {
    "sum": SUMS,
    "mean": SUMS,
    "prod": PRODUCTS,
    "amax": Writing(wg.index_max, wg.scatter_max),
    "amin": Writing(wg.index_min, wg.scatter_min),
}


def number_of(name: str, value: Any) -> Any:
    """A number from a tensor without dimensions."""
    if isinstance(value, Array) and value.ndim:
        raise RuntimeError(
            f"{name} only supports a 0-dimensional value tensor, but got one with {value.ndim} dimension(s)."
        )
    return value


def prepared(writing: Writing, x: Any, source: Any) -> tuple[Any, Any]:
    """How a dtype is written, and what is written, in that dtype."""
    way = writing.bools if writing.bools and x.dtype is wg.bool else writing
    if isinstance(source, Array):
        if source.dtype is not x.dtype and source.ndim:
            raise RuntimeError(
                f"self ({x.dtype.name}) and source ({source.dtype.name}) must have the same dtype: convert"
            )
        return way, source.astype(x.dtype, copy=False)
    if x.dtype.kind in "iu" and not isinstance(source, complex):
        return way, wrapped(int(source), x.dtype)
    return way, bool(source) if x.dtype is wg.bool else source


def by_slices(writing: Writing, x: Any, dim: int, index: Any, source: Any) -> Any:
    """x with slices of a dimension written; what has no dimensions has one of size 1 here."""
    if not x.ndim:
        given = wg.reshape(source, (-1,)) if isinstance(source, Array) else source
        return wg.reshape(by_slices(writing, x.reshape(1), dim, index, given), ())
    way, source = prepared(writing, x, source)
    index = wg.reshape(index, (-1,))
    if isinstance(source, Array):
        shape = [*x.shape]
        shape[axis_of(dim, x.ndim)] = index.shape[0]
        if source.ndim and list(source.shape) != shape:
            raise RuntimeError(
                f"source of shape {list(source.shape)} for slices of shape {shape}: these must be equal"
            )
    return way.slices(x, index, source, axis=dim)


def by_elements(writing: Writing, x: Any, dim: int, index: Any, source: Any) -> Any:
    """x with single elements written: the first ones, where there are fewer indices than elements."""
    if not x.ndim or not index.ndim:
        given = wg.reshape(source, (-1,)) if isinstance(source, Array) else source
        line = by_elements(writing, x.reshape(-1), dim, index.reshape(-1), given)
        return wg.reshape(line, tuple(x.shape))
    way, source = prepared(writing, x, source)
    source = corner(source, index)
    dim = axis_of(dim, x.ndim)
    if index.ndim != x.ndim or any(
        one > size for at, (one, size) in enumerate(zip(index.shape, x.shape, strict=False)) if at != dim
    ):
        raise RuntimeError(
            f"Expected index {list(index.shape)} to be no larger than self {list(x.shape)} apart from "
            f"dimension {dim}"
        )
    there = tuple(slice(None) if at == dim else slice(0, size) for at, size in enumerate(index.shape))
    if not index.numel():
        return x.clone()
    part = x[there]
    found = way.elements(part, index, source, axis=dim)
    if tuple(part.shape) == tuple(x.shape):
        return found
    changed = x.clone()
    changed[there] = found
    return changed


def scattered(x: Any, dim: int, index: Any, src: Any, value: Any, reduce: str | None) -> Any:
    """torch's scatter, which also adds and multiplies."""
    ways = {None: COPIES, "add": SUMS, "multiply": PRODUCTS}
    if reduce not in ways:
        raise RuntimeError("reduce argument must be either add or multiply.")
    return by_elements(ways[reduce], x, dim, index, src if src is not None else value)


def reduced(write: Any, x: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool) -> Any:
    """x with what is written to its elements folded into them, or without their own values."""
    if reduce not in WRITINGS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.")
    start = x
    if not include_self:
        written = write(COPIES, wg.zeros_like(x, dtype=wg.bool), dim, index, True)
        start = wg.masked_fill(x, written, neutral(reduce, x.dtype))
    found = write(WRITINGS[reduce], start, dim, index, src)
    if reduce != "mean":
        return found
    count = write(
        SUMS,
        wg.full_like(x, int(include_self), dtype=wg.int32),
        dim,
        index,
        wg.ones_like(src, dtype=wg.int32),
    )
    count = wg.clip(count, 1, None).astype(x.dtype)
    return found / count if x.dtype.kind in "fc" else found // count


def neutral(reduce: str, dtype: Any) -> Any:
    """What changes nothing: where elements do not count themselves they begin with it."""
    if reduce in ("sum", "mean", "prod"):
        return int(reduce == "prod")
    if dtype.kind == "f":
        return -math.inf if reduce == "amax" else math.inf
    if dtype.kind == "b":
        return reduce == "amin"
    return wg.iinfo(dtype).min if reduce == "amax" else wg.iinfo(dtype).max


def put_flat(x: Any, index: Any, source: Any, accumulate: bool) -> Any:
    """x with elements written at their places in order."""
    flat, values = wg.reshape(x, (-1,)), wg.reshape(source, (-1,))
    found = by_slices(SUMS if accumulate else COPIES, flat, 0, index, values)
    return wg.reshape(found, tuple(x.shape))


def unravelled(indices: Any, shape: Any) -> Any:
    """Places in order as places along each dimension."""
    sizes = (shape,) if isinstance(shape, int) else tuple(int(each) for each in shape)
    found = []
    rest = integers(indices)
    for size in reversed(sizes):
        found.append(rest % size)
        rest = rest // size
    return tuple(reversed(found))


def segments(data: Any, reduce: str, lengths: Any, offsets: Any, axis: int, initial: Any) -> Any:
    """Folds of runs along a dimension; lengths or offsets say where these are, for each line."""
    how = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if lengths is None:
        if offsets is None:
            raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
        lengths = offsets[..., 1:] - offsets[..., :-1]
    outer, rest = tuple(data.shape[:axis]), tuple(data.shape[axis + 1 :])
    count, size = lengths.shape[-1], data.shape[axis]
    at = wg.expand(wg.arange(size, device=data.device), (*outer, size))
    place = wg.searchsorted(wg.cumsum(lengths, -1), at, side="right")  # behind the last run: in one more
    column = wg.expand(wg.reshape(place, (*outer, size, *[1] * len(rest))), tuple(data.shape))
    start = neutral(how, data.dtype) if initial is None else initial
    base = wg.full((*outer, count + 1, *rest), start, dtype=data.dtype, device=data.device)
    found = by_elements(WRITINGS[how], base, axis, column, data)
    found = found[(*[slice(None)] * axis, slice(0, count))]
    if how != "mean":
        return found
    number = wg.reshape(lengths, (*outer, count, *[1] * len(rest)))
    nothing = math.nan if initial is None else initial
    return wg.where(number == 0, nothing, found / wg.clip(number, 1, None).astype(data.dtype))


def wide(x: Any, mask: Any) -> tuple[Any, Any]:
    """A tensor and a mask of one shape."""
    return (x, mask) if tuple(mask.shape) == tuple(x.shape) else tuple(wg.broadcast_arrays(x, mask))  # type: ignore[return-value]


def filled(x: Any, mask: Any, source: Any) -> Any:
    """The next element of the source wherever the mask is true."""
    x, mask = wide(x, mask)
    if source.dtype is not x.dtype:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes")
    if source.numel() < mask.numel() and source.numel() < wg.count_nonzero(mask).item():
        raise RuntimeError(
            "masked_scatter: expected number of elements in source to be >= number of ones in mask"
        )
    order = wg.cumsum(wg.reshape(mask, (-1,)).astype(wg.int32), 0) - 1
    values = wg.take(wg.reshape(source, (-1,)), wg.clip(order, 0, max(0, source.numel() - 1)))
    return wg.where(mask, wg.reshape(values, tuple(x.shape)), x)


def put(x: Any, indices: Any, values: Any, accumulate: bool) -> Any:
    """x with values at indices, added to what is there or instead of it."""
    if not accumulate:
        changed = x.clone()
        changed[tuple(indices)] = values
        return changed
    flat = wg.reshape(wg.arange(x.numel(), device=x.device), tuple(x.shape))[tuple(indices)]
    updates = wg.expand(values.astype(x.dtype), tuple(flat.shape))
    return put_flat(x, flat, updates, True)


def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """Elements of one tensor where the condition holds, else of the other; alone, where it holds."""
    if input is None and other is None:
        return adopt(places(condition, True))
    if isinstance(input, Array) or isinstance(other, Array):
        if not isinstance(input, Array):
            other, input = matched(other, input)
        else:
            input, other = matched(input, other)
        return adopt(wg.where(condition, input, other))
    kind = dtype_of(max(type(input), type(other), key=(bool, int, float, complex).index), condition.device)
    return adopt(wg.where(condition, wg.full((), input, kind, device=condition.device), other))


functions = bind(ROWS, globals()) | {"where": where}

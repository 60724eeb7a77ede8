"""Elements by their indices and by masks: reading, and writing as a function or in place.

In: tensors, a dimension, integer or bool tensors. Out: tensors.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg

from .binding import bind
from .defaults import dtype_of, integer_of
from .promotion import matched
from .reductions import index as integers
from .tensor import Array, adopt

__all__ = ["functions"]

ROWS = """
[function method out]
gather(input, dim, index, *, sparse_grad=False) = wg.gather(input, dim, index) if input.ndim else
    input.reshape(1)[index]
index_select(input, dim, index) = wg.index_select(input, dim, index.reshape(-1)) if input.ndim else
    input.clone()
take(input, index) = wg.reshape(input, (-1,))[index]
take_along_dim(input, indices, dim=None) = along(input, indices, dim)
masked_select(input, mask) = masked(input, mask)

[function method]
nonzero(input, *, as_tuple=False) = places(input, as_tuple)
argwhere(input) = places(input, False)
searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None, out=None) =
    at(wg.searchsorted(sorted_sequence, input, side=side or ("right" if right else "left"), sorter=sorter),
    out_int32)
bincount(input, weights=None, minlength=0) = wg.bincount(input, weights, minlength) if weights is not None
    else integers(wg.bincount(input, None, minlength))
isin(elements, test_elements, *, assume_unique=False, invert=False) = wg.isin(elements, test_elements,
    invert=invert)

[function method in_place]
scatter(input, dim, index, src=None, *, value=None, reduce=None) = scattered(input, dim, index, src, value,
    reduce)
scatter_add(input, dim, index, src) = wg.scatter_add(input, index, corner(src, index), axis=dim)
index_add(input, dim, index, source, *, alpha=1) = wg.index_add(input, index, source if alpha == 1 else
    source * alpha, axis=dim)
index_copy(input, dim, index, source) = wg.index_set(input, index, source, axis=dim)
index_fill(input, dim, index, value) = wg.index_set(input, index, value, axis=dim)
masked_fill(input, mask, value) = wg.masked_fill(*wide(input, mask), value)
masked_scatter(input, mask, source) = filled(input, mask, source)
index_put(input, indices, values, accumulate=False) = put(input, indices, values, accumulate)

[function]
bucketize(input, boundaries, *, out_int32=False, right=False) = at(wg.searchsorted(boundaries, input,
    side="right" if right else "left"), out_int32)
"""


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


def at(found: Any, narrow: bool) -> Any:
    """Places as torch's integers, or of 32 bits."""
    return found.astype(wg.int32) if narrow else integers(found)


def corner(src: Any, index: Any) -> Any:
    """As much of the updates as there are indices."""
    if not isinstance(src, Array) or tuple(src.shape) == tuple(index.shape):
        return src
    return src[tuple(slice(0, size) for size in index.shape)]


def scattered(x: Any, dim: int, index: Any, src: Any, value: Any, reduce: str | None) -> Any:
    """torch's scatter, which also adds and multiplies."""
    updates = corner(src if src is not None else value, index)
    if reduce is None:
        return wg.scatter(x, index, updates, axis=dim)
    if reduce == "add":
        return wg.scatter_add(x, index, updates, axis=dim)
    raise RuntimeError(f"scatter: reduce={reduce!r} is not there: use 'add', or scatter_reduce with 'prod'")


def wide(x: Any, mask: Any) -> tuple[Any, Any]:
    """A tensor and a mask of one shape."""
    return (x, mask) if tuple(mask.shape) == tuple(x.shape) else tuple(wg.broadcast_arrays(x, mask))  # type: ignore[return-value]


def filled(x: Any, mask: Any, source: Any) -> Any:
    """The next element of the source wherever the mask is true."""
    x, mask = wide(x, mask)
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
    added = wg.index_add(wg.reshape(x, (-1,)), wg.reshape(flat, (-1,)), wg.reshape(updates, (-1,)), axis=0)
    return wg.reshape(added, tuple(x.shape))


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

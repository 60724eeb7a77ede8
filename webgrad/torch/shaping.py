"""Shapes, order and parts: views, permutations, joins, splits, repetitions.

In: tensors. Out: views where torch gives views, and new tensors otherwise.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import webgrad as wg

from .binding import bind
from .creation import sizes
from .shapes_of import Size
from .tensor import Array

__all__ = ["functions"]

ROWS = """
[method]
view(input, *shape) = viewed(input, shape)
view_as(input, other) = viewed(input, other.shape)
reshape_as(input, other) = wg.reshape(input, tuple(other.shape))
expand(input, *size, implicit=False) = wg.expand(input, sizes(size))
expand_as(input, other) = wg.expand(input, tuple(other.shape))
repeat(input, *repeats) = repeated(input, sizes(repeats))
resize_(input, *size, memory_format=None) = resized(input, sizes(size))

[function method]
reshape(input, *shape) = wg.reshape(input, sizes(shape))
permute(input, *dims) = wg.permute_dims(input, positive(input, sizes(dims)))
transpose swapaxes swapdims(input, dim0, dim1) = wg.swapaxes(input, dim0, dim1) if input.ndim else input
t(input) = wg.Tensor.t(input)
adjoint(input) = input.mH
flatten(input, start_dim=0, end_dim=-1) = wg.flatten(input, start_dim, end_dim)
ravel(input) = wg.reshape(input, (-1,))
squeeze(input, dim=None) = squeezed(input, dim)
unsqueeze(input, dim) = wg.unsqueeze(input, dim)
movedim moveaxis(input, source, destination) = wg.moveaxis(input, source, destination)
broadcast_to(input, size) = wg.expand(input, tuple(size))
narrow(input, dim, start, length) = narrowed(input, dim, int(start), length)
select(input, dim, index) = taken(input, dim, index)
unbind(input, dim=0) = tuple(wg.unbind(input, dim))
chunk(input, chunks, dim=0) = tuple(wg.chunk(input, chunks, dim))
split(input, split_size_or_sections, dim=0) = cut(input, split_size_or_sections, dim)
split_with_sizes(input, split_sizes, dim=0) = cut(input, split_sizes, dim)
tensor_split(input, indices_or_sections, dim=0) = divided(input, indices_or_sections, dim)
flip(input, *dims) = wg.flip(input, sizes(dims))
fliplr(input) = wg.flip(input, 1)
flipud(input) = wg.flip(input, 0)
roll(input, shifts, dims=None) = wg.roll(input, shifts, dims)
tile(input, *dims) = wg.tile(input, sizes(dims))
diagonal(input, offset=0, dim1=0, dim2=1) = wg.diagonal(input, offset, dim1, dim2)
diag(input, diagonal=0) = wg.diag(input, diagonal)
diagflat(input, offset=0) = wg.diag(wg.reshape(input, (-1,)), offset)
repeat_interleave(input, repeats, dim=None, *, output_size=None) = wg.repeat_interleave(input, repeats, dim)
unflatten(input, dim, sizes) = unflattened(input, dim, sizes)
clone(input, *, memory_format=None) = input.__pos__()
detach(input) = wg.Tensor.detach(input)

[function method in_place]
tril(input, diagonal=0) = wg.tril(input, diagonal)
triu(input, diagonal=0) = wg.triu(input, diagonal)

[function out]
cat concat concatenate(tensors, dim=0) = joined(tensors, dim)
stack(tensors, dim=0) = wg.stack(alike(tensors), axis=dim)
hstack(tensors) = wg.hstack(alike(tensors))
vstack row_stack(tensors) = wg.vstack(alike(tensors))

[function]
meshgrid(*tensors, indexing="ij") = wg.meshgrid(*several(tensors), indexing=indexing)
broadcast_tensors(*tensors) = tuple(wg.broadcast_arrays(*several(tensors)))
broadcast_shapes(*shapes) = size_of(wg.broadcast_shapes(*shapes))
atleast_1d(*tensors) = each_of(tensors, lambda x: x if x.ndim else x.reshape(1))
atleast_2d(*tensors) = each_of(tensors, lambda x: x if x.ndim > 1 else x.reshape(1, -1))
"""


def several(tensors: Any) -> Any:
    """Tensors one by one, or as one sequence."""
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], tuple | list) else tensors


def each_of(tensors: Any, function: Any) -> Any:
    """A function of one tensor, or of each of several."""
    given = several(tensors)
    return function(given[0]) if len(given) == 1 and given is tensors else tuple(map(function, given))


def size_of(shape: Any) -> Any:
    """A shape as torch has it."""
    return Size(shape)


def positive(x: Any, dims: tuple[int, ...]) -> tuple[int, ...]:
    """Dimensions counted from the start."""
    return tuple(each + x.ndim if each < 0 else each for each in dims)


def viewed(x: Any, shape: Any) -> Any:
    """Another shape, or the same bits in another dtype, as a view."""
    if len(shape) == 1 and not isinstance(shape[0], int | tuple | list):
        return (
            wg.bitcast(x, shape[0]) if not isinstance(shape[0], Array) else wg.Tensor.view(x, int(shape[0]))
        )
    return wg.Tensor.view(x, sizes(tuple(shape)))


def repeated(x: Any, times: tuple[int, ...]) -> Any:
    """Copies along each dimension, and new ones in front."""
    if len(times) < x.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        )
    return wg.tile(x, times)


def resized(x: Any, shape: tuple[int, ...]) -> Any:
    """The first elements in another shape; what is new is zero."""
    flat = wg.reshape(x, (-1,))
    missing = wg.zeros(shape, dtype=x.dtype, device=x.device).numel() - flat.numel()
    more = wg.zeros((max(missing, 0),), dtype=x.dtype, device=x.device)
    x.data = wg.reshape(wg.concat([flat, more])[: flat.numel() + missing], shape)
    return x


def squeezed(x: Any, dim: Any) -> Any:
    """Without dimensions of size 1: all, or those named that have it."""
    if dim is None:
        return wg.squeeze(x)
    named = [dim] if isinstance(dim, int) else list(dim)
    if not x.ndim:
        return x.view(())
    for each in named:
        x.size(each)  # which says that a dimension is out of range
    single = tuple(each for each in named if x.shape[each] == 1)
    return wg.squeeze(x, single) if single else wg.Tensor.view(x, tuple(x.shape))


def narrowed(x: Any, dim: int, start: int, length: int) -> Any:
    """A part of a dimension."""
    size = x.size(dim)
    if start < 0:
        start += size
    if not 0 <= start <= size or start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return x[(*[slice(None)] * (dim % x.ndim), slice(start, start + length))]


def taken(x: Any, dim: int, index: Any) -> Any:
    """One slice of a dimension."""
    x.size(dim)
    return x[(*[slice(None)] * (dim % x.ndim), int(index))]


def cut(x: Any, lengths: Any, dim: int) -> Any:
    """Pieces of so many elements, or of these lengths."""
    size = x.size(dim)
    if isinstance(lengths, int):
        if not lengths and size:
            raise RuntimeError("split expects split_size be non-negative, and positive for what is not empty")
        ends = list(range(lengths, size, lengths)) if lengths else []
    else:
        ends = list(accumulate(int(each) for each in lengths))
        if (ends[-1] if ends else 0) != size:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at "
                f"dimension {dim}), but got split_sizes={list(lengths)}"
            )
        ends = ends[:-1]
    return tuple(wg.split(x, ends, axis=dim)) if ends else (x.view(x.shape),)


def divided(x: Any, at: Any, dim: int) -> Any:
    """So many pieces, as equal as can be, or pieces that begin at these indices."""
    if isinstance(at, Array):
        at = at.tolist()
    if isinstance(at, int):
        size, length = x.size(dim), x.size(dim) // at
        ends = [each * length + min(each, size % at) for each in range(1, at)]
    else:
        ends = list(at)
    return tuple(wg.split(x, ends, axis=dim)) if ends else (x.view(x.shape),)


def unflattened(x: Any, dim: int, parts: Any) -> Any:
    """One dimension as several."""
    dim = dim % x.ndim
    return wg.Tensor.view(x, (*x.shape[:dim], *parts, *x.shape[dim + 1 :]))


def alike(tensors: Any) -> list[Any]:
    """Tensors of one dtype, to which all of them promote."""
    given = list(tensors)
    if not given:
        raise RuntimeError("expected a non-empty list of Tensors")
    kinds = {each.dtype for each in given}
    if len(kinds) == 1:
        return given
    wanted = given[0].dtype
    for each in given[1:]:
        wanted = wg.promote(wanted, each.dtype)
    return [each.astype(wanted) for each in given]


def joined(tensors: Any, dim: int) -> Any:
    """Tensors one after the other; an empty one of one dimension counts for nothing."""
    given = alike(tensors)
    kept = [each for each in given if tuple(each.shape) != (0,)]
    return wg.concat(kept or given, axis=dim)


functions = bind(ROWS, globals())

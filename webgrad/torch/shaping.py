"""Shapes, order and parts: views, permutations, joins, splits, repetitions.

In: tensors. Out: views where torch gives views, and new tensors otherwise.
"""

from __future__ import annotations

from itertools import accumulate, combinations, combinations_with_replacement
from typing import Any

import webgrad as wg

from .binding import bind
from .creation import sizes
from .pointwise import functions as _elements
from .reductions import counted
from .shapes_of import Size, axis_of
from .tensor import Array, written

__all__ = ["functions"]

ROWS = """
[method]
unfold(input, dimension, size, step) = unfolded(input, dimension, size, step)
_slice(input, dim=0, start=None, end=None, step=1) = sliced(input, dim, start, end, step)
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
movedim moveaxis(input, source, destination) = wg.moveaxis(input, source, destination) if input.ndim else
    input.view(())
broadcast_to(input, size) = wg.expand(input, tuple(size))
narrow(input, dim, start, length) = narrowed(input, dim, int(start), length)
select(input, dim, index) = taken(input, dim, index)
unbind(input, dim=0) = tuple(wg.unbind(input, dim))
chunk unsafe_chunk(input, chunks, dim=0) = tuple(wg.chunk(input, chunks, dim))
split unsafe_split(input, split_size_or_sections=None, dim=0, *, split_size=None) = cut(input,
    split_size if split_size_or_sections is None else split_size_or_sections, dim)
split_with_sizes unsafe_split_with_sizes(input, split_sizes, dim=0) = cut(input, split_sizes, dim)
tensor_split(input, indices_or_sections, dim=0) = divided(input, indices_or_sections, dim)
hsplit(input, indices_or_sections) = parted("hsplit", input, indices_or_sections, 1, 0 if input.ndim < 2 else
    1)
vsplit(input, indices_or_sections) = parted("vsplit", input, indices_or_sections, 2, 0)
dsplit(input, indices_or_sections) = parted("dsplit", input, indices_or_sections, 3, 2)
flip(input, *dims) = wg.flip(input, sizes(dims))
fliplr(input) = wg.flip(input, 1)
flipud(input) = wg.flip(input, 0)
roll(input, shifts, dims=None) = rolled(input, shifts, dims)
rot90(input, k=1, dims=(0, 1)) = wg.rot90(input, k, tuple(dims))
tile(input, *dims) = wg.tile(input, sizes(dims))
diagonal(input, offset=0, dim1=0, dim2=1) = wg.diagonal(input, offset, dim1, dim2)
diag(input, diagonal=0) = wg.diag(input, diagonal)
diag_embed(input, offset=0, dim1=-2, dim2=-1) = embedded(input, offset, dim1, dim2)
diagonal_scatter(input, src, offset=0, dim1=0, dim2=1) = changed(input, "diagonal", src, offset, dim1, dim2)
select_scatter(input, src, dim, index) = changed(input, "select", src, dim, index)
slice_scatter(input, src, dim=0, start=None, end=None, step=1) = changed(input, "_slice", src, dim, start,
    end, step)
as_strided_scatter(input, src, size, stride, storage_offset=None) = changed(input, "as_strided", src, size,
    stride, storage_offset)
as_strided(input, size, stride, storage_offset=None) = laid_out(input, size, stride, storage_offset)
unfold_copy(input, dimension, size, step) = unfolded(input, dimension, size, step).clone()
trace(input) = wg.sum(counted(matrix("trace", input).diagonal(), None))
diagflat(input, offset=0) = wg.diag(wg.reshape(input, (-1,)), offset)
repeat_interleave(input, repeats, dim=None, *, output_size=None) = wg.repeat_interleave(input, repeats, dim)
unflatten(input, dim, sizes) = unflattened(input, dim, sizes)
clone(input, *, memory_format=None) = input.__pos__()
constant_pad_nd(input, pad, value=0) = padded(input, list(pad), value)
detach(input) = wg.Tensor.detach(input)

[function method in_place]
tril(input, diagonal=0) = wg.tril(input, diagonal)
triu(input, diagonal=0) = wg.triu(input, diagonal)

[function out]
cat concat concatenate(tensors, dim=0) = joined(tensors, dim)
stack(tensors, dim=0) = wg.stack(alike(tensors), axis=dim)
hstack(tensors) = wg.hstack(alike(tensors))
vstack row_stack(tensors) = wg.vstack(alike(tensors))
dstack(tensors) = wg.concat([deep(each) for each in alike(tensors)], 2)
column_stack(tensors) = wg.hstack([each if each.ndim > 1 else each.reshape(-1, 1) for each in alike(tensors)])

[function]
block_diag(*tensors) = wg.block_diag(*alike(several(tensors)))
cartesian_prod(*tensors) = product_of(several(tensors))
combinations(input, r=2, with_replacement=False) = chosen(input, r, with_replacement)
atleast_3d(*tensors) = each_of(tensors, deep)
_chunk_cat(tensors, dim, num_chunks, *, out=None) = chunks_joined(tensors, dim, num_chunks)
meshgrid(*tensors, indexing="ij") = wg.meshgrid(*several(tensors), indexing=indexing)
broadcast_tensors(*tensors) = tuple(wg.broadcast_arrays(*several(tensors)))
broadcast_shapes(*shapes) = size_of(wg.broadcast_shapes(*([each] if isinstance(each, int) else each for each
    in shapes)))
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


def deep(x: Any) -> Any:
    """With three dimensions at least."""
    return x if x.ndim > 2 else wg.reshape(x, ((1, 1, 1), (1, -1, 1), (*x.shape, 1))[x.ndim])


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
    if not 0 <= start <= size:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-size}, {size}], but got {start})"
        )
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return x[(*[slice(None)] * axis_of(dim, x.ndim), slice(start, start + length))]


def taken(x: Any, dim: int, index: Any) -> Any:
    """One slice of a dimension."""
    x.size(dim)
    return x[(*[slice(None)] * axis_of(dim, x.ndim), int(index))]


def cut(x: Any, lengths: Any, dim: int) -> Any:
    """Pieces of so many elements, or of these lengths."""
    if lengths is None:
        raise TypeError("split() needs split_size_or_sections: the size of the pieces, or their sizes")
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


def rolled(x: Any, shifts: Any, dims: Any) -> Any:
    """Shifted along dimensions, by as many numbers."""
    many = [
        len(each) if isinstance(each, tuple | list) else 1 for each in (shifts, () if dims is None else dims)
    ]
    if not many[0]:
        raise RuntimeError("`shifts` required")
    if many[1] and many[0] != many[1]:
        raise RuntimeError(f"shifts and dimensions must align. shifts: {many[0]}, dims:{many[1]}")
    return wg.roll(x, shifts, dims if many[1] else None)


def parted(name: str, x: Any, at: Any, least: int, dim: int) -> Any:
    """Equal pieces, or pieces that begin at indices."""
    if x.ndim < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {x.ndim} "
            "dimensions!"
        )
    if isinstance(at, int) and (at < 1 or x.shape[dim] % at):
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
            f"{x.shape[dim]} is not divisible by the split_size {at}!"
        )
    return divided(x, at, dim)


def matrix(name: str, x: Any) -> Any:
    """What has two dimensions."""
    if x.ndim != 2:
        raise RuntimeError(f"{name}: expected a matrix, but got tensor with dim {x.ndim}")
    return x


def embedded(x: Any, offset: int, dim1: int, dim2: int) -> Any:
    """The last dimension as the diagonals of matrices."""
    rank = x.ndim + 1
    first, second = axis_of(dim1, rank), axis_of(dim2, rank)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = x.shape[-1] + abs(offset)
    found = wg.zeros((*x.shape[:-1], size, size), dtype=x.dtype, device=x.device)
    wg.diagonal(found, offset, -2, -1)[...] = x
    return wg.moveaxis(found, (-2, -1), (first, second))


def changed(x: Any, part: str, src: Any, *where: Any) -> Any:
    """A copy of x with other values in a part of it: what a method gives a view of."""
    found = x.clone()
    view = getattr(found, part)(*where)
    if tuple(view.shape) != tuple(src.shape):
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, "
            f"slice size = {list(view.shape)}"
        )
    view[...] = src
    return found


def sliced(x: Any, dim: int, start: Any, end: Any, step: int) -> Any:
    """x[start:end:step] of a dimension."""
    x.size(dim)
    return x[(*[slice(None)] * axis_of(dim, x.ndim), slice(start, end, step))]


def laid_out(x: Any, size: Any, stride: Any, offset: int | None) -> Any:
    """A view by distances in memory; the offset counts from where the memory begins that x is a view of."""
    begins = wg.memory_layout(x).offset
    first = 0 if offset is None else offset - begins
    if first < 0:
        raise RuntimeError(
            f"as_strided from the element {offset} of the memory of which this tensor is a view from "
            f"{begins} on: call it with the tensor that it is a view of"
        )
    return wg.as_strided(x, sizes((size,)), sizes((stride,)), first)


def unfolded(x: Any, dim: int, size: int, step: int) -> Any:
    """Windows along a dimension, whose elements are a new last one."""
    if not x.ndim:
        return wg.sliding_windows(x.reshape(1), size, step)[0]
    if size > x.size(dim):
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {x.size(dim)} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return wg.sliding_windows(x, size, step, dim)


def padded(x: Any, widths: list[int], value: Any) -> Any:
    """Numbers before and after each dimension, from the last one on; a negative width cuts."""
    ends = list(zip(widths[::2], widths[1::2], strict=True))
    before_after = [(0, 0)] * (x.ndim - len(ends)) + ends[::-1]
    kept = tuple(
        slice(max(0, -low), size - max(0, -high))
        for size, (low, high) in zip(x.shape, before_after, strict=True)
    )
    grown = [(max(0, low), max(0, high)) for low, high in before_after]
    return wg.pad(x[kept], grown, constant_values=value)


def product_of(tensors: Any) -> Any:
    """All choices of an element of each, as rows."""
    if any(each.ndim != 1 for each in tensors):
        raise RuntimeError("Expect a 1D vector, but got another shape: cartesian_prod takes vectors")
    if len(tensors) == 1:
        return tensors[0]
    grids = wg.meshgrid(*alike(tensors), indexing="ij")
    return wg.stack([wg.reshape(each, (-1,)) for each in grids], axis=1)


def chosen(x: Any, r: int, again: bool) -> Any:
    """All choices of r elements, in order, as rows."""
    if x.ndim != 1 or r < 0:
        raise RuntimeError(f"combinations expects a vector and r >= 0, not {x.ndim} dimensions and {r}")
    if not r:
        return x[:0]
    pick = combinations_with_replacement if again else combinations
    rows = list(pick(range(x.shape[0]), r))
    if not rows:
        return wg.reshape(x[:0], (0, r))
    return wg.take(x, wg.asarray(rows, dtype=wg.int32, device=x.device), axis=0)


def chunks_joined(tensors: Any, dim: int, count: int) -> Any:
    """Each tensor in so many equal pieces along a dimension, flattened behind it, and all joined."""
    dim = axis_of(dim, tensors[0].ndim)
    pieces = []
    for x in alike(tensors):
        size = -(-x.shape[dim] // count)
        widths = [(0, 0)] * x.ndim
        widths[dim] = (0, size * count - x.shape[dim])
        pieces.append(wg.reshape(wg.pad(x, widths), (*x.shape[:dim], count, -1)))
    return wg.concat(pieces, axis=dim + 1)


def copying(function: Any, name: str) -> Any:
    """A function whose results are no views."""

    def copies(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        if isinstance(found, tuple):
            found = tuple(each.clone() for each in found)
        else:
            found = found.clone()
        return found if out is None else written(out, found, True)

    copies.__name__ = copies.__qualname__ = name
    copies.__doc__ = f"{function.__name__}, whose results are copies."
    copies.__dict__["forms"] = frozenset({"function", *(["method"] if name == "narrow_copy" else [])})
    return copies


def unflattened(x: Any, dim: int, parts: Any) -> Any:
    """One dimension as several."""
    dim = axis_of(dim, x.ndim)
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


_COPIES = (
    "alias as_strided detach diagonal expand narrow permute select slice split split_with_sizes squeeze t "
    "transpose unbind unsqueeze view view_as_complex view_as_real"
)
functions = bind(ROWS, globals())
_viewing = functions | _elements | {"alias": functions["clone"], "slice": functions["_slice"]}
functions |= {f"{name}_copy": copying(_viewing[name], f"{name}_copy") for name in _COPIES.split()}

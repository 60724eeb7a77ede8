"""Operators that ask for shapes, or give elements another shape or order."""

from __future__ import annotations

import math
from typing import Any

import webgrad as wg

from ...arrays import np
from .table import Call, operator
from .values import axes_of, bounded, moves, whole

__all__: list[str] = []


@operator("Shape", 1, known="x")
def shape(x: Any, *, start: int = 0, end: int | None = None) -> Any:
    return np.asarray(x.shape[start:end], np.int64)


@operator("Size", known="x")
def size(x: Any) -> Any:
    return np.asarray(math.prod(x.shape), np.int64)


@operator("Reshape", 5, host="shape")
@moves
def reshape(x: Any, shape: Any, *, allowzero: int = 0) -> Any:
    """Where the shape has 0, the size stays, unless zeros are allowed; -1 is what is left by the others."""
    sizes = [int(each) for each in shape]
    kept = [] if allowzero else [at for at, each in enumerate(sizes) if each == 0]
    if sizes.count(-1) > 1:
        raise wg.ShapeError(f"Reshape of {tuple(x.shape)} to {sizes}: only one size may be left to find")
    if -1 in sizes:
        left = math.prod(each for at, each in enumerate(x.shape) if at not in kept)
        taken = math.prod(each for at, each in enumerate(sizes) if at not in kept and each != -1)
        if not taken or left % taken:
            raise wg.ShapeError(f"Reshape of {tuple(x.shape)} to {sizes} leaves nothing to find -1 from")
        sizes[sizes.index(-1)] = left // taken
    for at in kept:
        sizes[at] = x.shape[at]
    return wg.reshape(x, tuple(sizes))


@operator("Reshape", 1)
def reshape_by_attribute(x: Any, *, shape: Any, consumed_inputs: Any = ()) -> Any:
    return reshape(x, np.asarray(shape))


@operator("Flatten")
@moves
def flatten(x: Any, *, axis: int = 1) -> Any:
    axis = axis + x.ndim if axis < 0 else axis
    return wg.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@operator("Squeeze", 13, host="axes")
@moves
def squeeze(x: Any, axes: Any = None) -> Any:
    ones = [at for at, each in enumerate(x.shape) if each == 1]
    gone = ones if axes is None else axes_of(axes, x.ndim)
    if not set(gone) <= set(ones):
        raise wg.ShapeError(f"Squeeze takes away axes of size 1, not {gone} of {tuple(x.shape)}")
    return wg.reshape(x, tuple(each for at, each in enumerate(x.shape) if at not in gone))


@operator("Squeeze", 1)
def squeeze_by_attribute(x: Any, *, axes: Any = None) -> Any:
    return squeeze(x, axes)


@operator("Unsqueeze", 13, host="axes")
@moves
def unsqueeze(x: Any, axes: Any) -> Any:
    rank = x.ndim + np.asarray(axes).size
    new = axes_of(axes, rank)
    if len(set(new)) < len(new):
        raise wg.AxisError(f"Unsqueeze is given an axis twice: {[int(each) for each in axes]}")
    rest = iter(x.shape)
    return wg.reshape(x, tuple(1 if at in new else next(rest) for at in range(rank)))


@operator("Unsqueeze", 1)
def unsqueeze_by_attribute(x: Any, *, axes: Any) -> Any:
    return unsqueeze(x, axes)


@operator("Transpose")
@moves
def transpose(x: Any, *, perm: Any = None) -> Any:
    return wg.permute_dims(x, tuple(reversed(range(x.ndim))) if perm is None else tuple(perm))


@operator("Concat", 4)
@moves
def concat(*x: Any, axis: int) -> Any:
    return wg.concat(x, axis=axis)


@operator("Concat", 1)
def concat_channels(*x: Any, axis: int = 1) -> Any:
    return concat(*x, axis=axis)


@operator("Split", 13, host="sizes")
@moves
def split(x: Any, sizes: Any = None, *, axis: int = 0, num_outputs: int | None = None, call: Call) -> Any:
    """Parts of given sizes, or of equal ones, the last of which may be smaller."""
    whole = x.shape[axis]
    if sizes is None:
        count = bounded(num_outputs or call.outputs)
        part = -(-whole // count)
        sizes = [max(min(part, whole - at * part), 0) for at in range(count)]
    sizes = [int(each) for each in sizes]
    if sum(sizes) != whole or min(sizes) < 0:
        raise wg.ShapeError(f"Split makes parts of {sizes}, which are not the {whole} of axis {axis}")
    ends = np.cumsum(sizes)[:-1].tolist()
    return tuple(wg.split(x, ends, axis=axis))


@operator("Split", 1)
def split_by_attribute(
    x: Any, sizes: Any = None, *, split: Any = None, axis: int = 0, call: Call
) -> Any:  # the second input is of version 1
    given = split if sizes is None else call.host(sizes)
    return _split(x, given, axis=axis, call=call)


_split = split


@operator("Slice", 10, host="starts ends axes steps")
@moves
def slice_axes(x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    """As Python slices, whose rules for bounds out of range and from the end are the standard's."""
    chosen = [slice(None)] * x.ndim
    places = range(len(starts)) if axes is None else axes_of(axes, x.ndim)
    steps = [1] * len(starts) if steps is None else steps
    for at, start, end, step in zip(places, starts, ends, steps, strict=True):
        chosen[at] = slice(int(start), int(end), int(step))
    return x[tuple(chosen)]


@operator("Slice", 1)
def slice_by_attributes(x: Any, *, starts: Any, ends: Any, axes: Any = None) -> Any:
    return slice_axes(x, starts, ends, axes)


@operator("Tile", 6, host="repeats")
@moves
def tile(x: Any, repeats: Any) -> Any:
    return wg.tile(x, [int(each) for each in repeats])


@operator("Tile", 1, host="tiles axis")
def tile_axis(x: Any, tiles: Any, axis: Any) -> Any:
    repeats = [1] * x.ndim
    repeats[whole(axis)] = whole(tiles)
    return tile(x, repeats)


@operator("Expand", 8, host="shape")
@moves
def expand(x: Any, shape: Any) -> Any:
    return wg.broadcast_to(x, wg.broadcast_shapes(tuple(x.shape), tuple(int(each) for each in shape)))


@operator("Trilu", 14, host="k")
@moves
def triangle(x: Any, k: Any = None, *, upper: int = 1) -> Any:
    reach = max(x.shape[-2:]) + 1
    diagonal = 0 if k is None else min(max(whole(k), -reach), reach)
    return (wg.triu if upper else wg.tril)(x, diagonal)


# Padding


@operator("Pad", 11, host="pads value axes")
@moves
def pad(x: Any, pads: Any, value: Any = None, axes: Any = None, *, mode: str = "constant") -> Any:
    """Widths before all named axes, then those after them; negative ones take elements away."""
    places = range(x.ndim) if axes is None else axes_of(axes, x.ndim)
    widths = [(0, 0)] * x.ndim
    for at, before, after in zip(places, pads[: len(places)], pads[len(places) :], strict=True):
        widths[at] = int(before), int(after)
    x = x[
        tuple(
            slice(max(-before, 0), x.shape[at] - max(-after, 0)) for at, (before, after) in enumerate(widths)
        )
    ]
    widths = [(max(before, 0), max(after, 0)) for before, after in widths]
    if mode == "constant":
        return wg.pad(x, widths, constant_values=0 if value is None or not value.size else value.item())
    for axis, (before, after) in enumerate(widths):
        if before or after:
            bounded(x.shape[axis] + before + after)
            places = np.pad(np.arange(x.shape[axis]), (before, after), mode=mode)  # type: ignore[call-overload]
            x = wg.take(x, wg.asarray(places.astype(np.int32), device=x.device), axis=axis)
    return x


@operator("Pad", 2)
def pad_by_attributes(x: Any, *, pads: Any, value: float = 0.0, mode: str = "constant") -> Any:
    return pad(x, pads, np.asarray(value), mode=mode)


@operator("Pad", 1)
def pad_by_paddings(x: Any, *, paddings: Any, value: float = 0.0, mode: str = "constant") -> Any:
    return pad(x, paddings, np.asarray(value), mode=mode)

"""Moves: what makes a tensor's view of it, with the layout of the result in memory and the way back.

In: a node and an argument. Out: the node of the view. A row says what shape and strides a move gives, how its
elements are put back, and whether it may show one element several times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes
from ..graph.node import Node, scalar
from . import primitives
from .primitives import elementwise
from .table import TABLE

Shape = tuple[int, ...]
Span = tuple[int, int, int]  # start, stop, step; of windows: axis, size, step
Pattern = tuple[Shape, Shape, int]  # a shape, the distances of elements along its axes, the first one's place
Move = tuple[Callable[[Node, Any], Node], Any]  # a primitive, and its argument after the node


def contiguous(shape: Shape) -> tuple[int, ...]:
    """The strides of a shape whose elements are in order."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))


def is_dense(shape: Shape, strides: Sequence[int]) -> bool:
    """Whether elements are contiguous, in order."""
    plain = contiguous(shape)
    return 0 in shape or all(size == 1 or a == b for size, a, b in zip(shape, strides, plain, strict=True))


def _reshaped(shape: Shape, strides: Sequence[int], new: Shape) -> tuple[int, ...] | None:
    """The strides of another shape over the same memory; None where it needs a copy.

    Axes that follow each other without a gap are one run of memory; each new axis is within one run.
    """
    if 0 in shape:
        return contiguous(new)
    runs: list[tuple[int, int]] = []  # (elements, stride of the last of them)
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * stride:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    found: list[int] = []
    left, step = 1, 1
    for size in reversed(new):
        if size > 1:
            if left == 1:
                left, step = runs.pop()
            if left % size:
                return None
        found.append(step)
        left //= size
        step *= size
    return tuple(reversed(found))


# The moves that primitives do not have


def as_parts(x: Node, _: None = None) -> Node:
    """Complex numbers as pairs of floats."""
    return primitives.as_real(x)


def as_numbers(x: Node, _: None = None) -> Node:
    """Pairs of floats as complex numbers."""
    return primitives.as_complex(x)


def one_part(x: Node, which: int) -> Node:
    """The real (0) or the imaginary (1) parts of complex numbers."""
    return primitives.parts(x)[which]


def _from_one_part(x: Node, which: int, _: Shape) -> Node:
    zero = primitives.constant("write", 0, x.sig.dtype, x.sig.device)
    return primitives.join(zero, x) if which else primitives.join(x, zero)


def diagonal(x: Node, ranges: Span) -> Node:
    """Elements of the last two axes, flattened, from start to stop by a step."""
    *outer, rows, columns = x.sig.shape
    flat = primitives.reshape(x, (*outer, rows * columns))
    return primitives.slice_(flat, (*((0, size, 1) for size in outer), ranges))


def _from_diagonal(x: Node, ranges: Span, shape: Shape) -> Node:
    flat = (*shape[:-2], shape[-2] * shape[-1])
    return primitives.reshape(spread(x, (*((0, size, 1) for size in shape[:-2]), ranges), flat), shape)


def spread(x: Node, ranges: Sequence[Span], sizes: Shape) -> Node:
    """The inverse of a slice by (start, stop, step) ranges: zeros around and between the elements."""
    if any(step > 1 for _, _, step in ranges):
        pairs = [(len(range(*each)), each[2]) for each in ranges]
        apart = primitives.reshape(x, tuple(size for count, _ in pairs for size in (count, 1)))
        apart = primitives.pad(apart, tuple(each for _, step in pairs for each in ((0, 0), (0, step - 1))))
        flat = primitives.reshape(apart, tuple(count * step for count, step in pairs))
        x = primitives.slice_(flat, tuple((0, stop - start, 1) for start, stop, _ in ranges))
    return primitives.pad(
        x, tuple((start, size - stop) for (start, stop, _), size in zip(ranges, sizes, strict=True))
    )


def windows(x: Node, spans: Span) -> Node:
    """Windows along an axis, of some size and so many steps apart; a new last axis has their elements."""
    return primitives.window(x, *spans)


def _from_windows(x: Node, spans: Span, shape: Shape) -> Node:
    axis, size, step = spans  # no two windows overlap: such writes were refused before
    count, rank = x.sig.shape[axis], len(shape)
    axes = range(rank)
    x = primitives.permute(x, (*axes[: axis + 1], rank, *axes[axis + 1 :]))
    x = primitives.pad(x, tuple((0, step - size if each == axis + 1 else 0) for each in range(rank + 1)))
    x = primitives.reshape(x, (*shape[:axis], count * step, *shape[axis + 1 :]))
    length = min(count * step, shape[axis])
    x = primitives.slice_(x, tuple((0, length if each == axis else shape[each], 1) for each in axes))
    return primitives.pad(x, tuple((0, shape[axis] - length if each == axis else 0) for each in axes))


def strided(x: Node, pattern: Pattern) -> Node:
    """Elements by their distances in memory."""
    return primitives.take(primitives.reshape(x, (x.sig.size,)), _places(pattern, x.sig.device), 0)


def _from_strided(x: Node, pattern: Pattern, shape: Shape) -> Node:
    size = math.prod(shape)
    zero = primitives.constant("write", 0, x.sig.dtype, x.sig.device)
    places = primitives.reshape(_places(pattern, x.sig.device), (x.sig.size,))
    column = primitives.reshape(x, (x.sig.size, 1))
    base = primitives.expand(primitives.reshape(zero, (1, 1)), (size, 1))
    return primitives.reshape(primitives.scatter(TABLE["scatter_set"], base, places, column), shape)


def _places(pattern: Pattern, device: Any) -> Node:
    """The places of elements in memory."""
    shape, strides, offset = pattern
    total = scalar(offset, dtypes.int32, device)
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        if size > 1 and stride:
            steps = elementwise(TABLE["multiply"], primitives.iota(size, dtypes.int32, device), stride)
            line = primitives.reshape(steps, (size, *[1] * (len(shape) - axis - 1)))
            total = elementwise(TABLE["add"], total, line)
    return primitives.expand(total, shape)


def overlap(shape: Shape, strides: Sequence[int]) -> bool:
    """Whether elements may share a place in memory: whether a stride is within what smaller ones reach."""
    reach = 0
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size > 1 and stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def _inverse(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(axes.index(axis) for axis in range(len(axes)))


def _count(each: Span) -> int:
    return len(range(*each))


def _windows_in(shape: Shape, spans: Span) -> int:
    axis, size, step = spans
    return (shape[axis] - size) // step + 1


def _over(values: Sequence[int], at: int, value: int) -> tuple[int, ...]:
    return (*values[:at], value, *values[at + 1 :])


def _expanded_strides(shape: Shape, strides: Sequence[int], new: Shape) -> tuple[int, ...]:
    kept = [0 if size == 1 else stride for size, stride in zip(shape, strides, strict=True)]
    return (*[0] * (len(new) - len(shape)), *kept)


# One row per move: its shape and strides, and its inverse, which puts elements back.
SHAPES: dict[Any, Callable[[Shape, Any], Shape]] = {
    primitives.reshape: lambda shape, new: new,
    primitives.expand: lambda shape, new: new,
    primitives.permute: lambda shape, axes: tuple(shape[axis] for axis in axes),
    primitives.flip: lambda shape, axes: shape,
    primitives.slice_: lambda shape, ranges: tuple(map(_count, ranges)),
    diagonal: lambda shape, ranges: (*shape[:-2], _count(ranges)),
    as_parts: lambda shape, _: (*shape, 2),
    one_part: lambda shape, _: shape,
    as_numbers: lambda shape, _: shape[:-1],
    windows: lambda shape, spans: (*_over(shape, spans[0], _windows_in(shape, spans)), spans[1]),
    strided: lambda shape, pattern: pattern[0],
}
STRIDES: dict[Any, Callable[[Shape, Any, Any], tuple[int, ...] | None]] = {
    primitives.reshape: _reshaped,
    primitives.expand: _expanded_strides,
    primitives.permute: lambda shape, strides, axes: tuple(strides[axis] for axis in axes),
    primitives.flip: lambda shape, strides, axes: tuple(
        -stride if axis in axes else stride for axis, stride in enumerate(strides)
    ),
    primitives.slice_: lambda shape, strides, ranges: tuple(
        stride * step for stride, (_, _, step) in zip(strides, ranges, strict=True)
    ),
    diagonal: lambda shape, strides, ranges: (*strides[:-2], strides[-2] + strides[-1]),
    as_parts: lambda shape, strides, _: (*(2 * stride for stride in strides), 1),
    one_part: lambda shape, strides, _: tuple(2 * stride for stride in strides),
    as_numbers: lambda shape, strides, _: tuple(stride // 2 for stride in strides[:-1]),
    windows: lambda shape, strides, spans: (
        *_over(strides, spans[0], strides[spans[0]] * spans[2]),
        strides[spans[0]],
    ),
    strided: lambda shape, strides, pattern: pattern[1] if is_dense(shape, strides) else None,
}
_Offset = Callable[[Shape, Sequence[int], Any, int], int]  # of shape, strides, argument and the offset before
OFFSETS: dict[Any, _Offset] = {
    primitives.flip: lambda shape, strides, axes, at: (
        at + sum((shape[axis] - 1) * strides[axis] for axis in axes)
    ),
    primitives.slice_: lambda shape, strides, ranges, at: (
        at + sum(stride * start for stride, (start, _, _) in zip(strides, ranges, strict=True))
    ),
    diagonal: lambda shape, strides, ranges, at: (
        at
        + sum(each * stride for each, stride in zip(divmod(ranges[0], shape[-1]), strides[-2:], strict=True))
    ),
    as_parts: lambda shape, strides, _, at: 2 * at,
    one_part: lambda shape, strides, which, at: 2 * at + which,
    as_numbers: lambda shape, strides, _, at: at // 2,
    strided: lambda shape, strides, pattern, at: at + pattern[2],
}
BACK: dict[Any, Callable[[Node, Any, Shape], Node]] = {
    primitives.reshape: lambda x, _, shape: primitives.reshape(x, shape),
    primitives.expand: lambda x, _, shape: primitives.reshape(
        x, shape
    ),  # a write to repeated elements was refused before
    primitives.permute: lambda x, axes, shape: primitives.permute(x, _inverse(axes)),
    primitives.flip: lambda x, axes, shape: primitives.flip(x, axes),
    primitives.slice_: spread,
    diagonal: _from_diagonal,
    as_parts: lambda x, _, shape: as_numbers(x),
    one_part: _from_one_part,
    as_numbers: lambda x, _, shape: as_parts(x),
    windows: _from_windows,
    strided: _from_strided,
}
# The moves that may repeat elements: whether they do.
REPEATS: dict[Any, Callable[[Any, Shape], bool]] = {
    primitives.expand: lambda new, shape: math.prod(new) != math.prod(shape),
    windows: lambda spans, shape: spans[1] > spans[2] and _windows_in(shape, spans) > 1,
    strided: lambda pattern, shape: overlap(pattern[0], pattern[1]),
}

"""Windows over the last axes of a tensor: the common ground of convolution and pooling, unfold and fold.

In: a tensor (N, C, …) or (C, …), and kernel, stride, padding and dilation, one number or one for each axis.
Out: windows as movement nodes, which copy nothing: where an element of a window lies is computed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ... import dtypes
from ...errors import ArgumentError, ShapeError
from ...graph.node import Node
from ...ops import primitives
from ...ops.host_arrays import host_array
from ...ops.shapes import check_kind
from ...tensor import Tensor
from ..array.creation import as_tensor, asarray
from ..array.elementwise import where
from ..array.reductions import converted, widened
from ..array.reductions import fold as folded
from ..array.reshaping import wholes
from ..pure import pure

Sizes = tuple[int, ...]
Widths = tuple[tuple[int, int], ...]
PerAxis = int | Sequence[int]


# What the user gives, checked


def per_axis(op: str, what: str, value: Any, count: int, least: int = 1) -> Sizes:
    """A number for each of some axes, or one for all of them."""
    found = wholes(op, what, value)
    if len(found) == 1:
        found *= count
    if len(found) != count:
        raise ArgumentError(f"{op}: {what} is one number, or one for each of {count} axes, not {value!r}")
    if min(found) < least:
        raise ArgumentError(f"{op}: {what} is {least} or more, not {value!r}")
    return found


def batched(op: str, x: Tensor, count: int) -> tuple[Tensor, bool]:
    """x as (N, C, …) with `count` axes after the channels, and whether it was so already."""
    if x.ndim not in (count + 1, count + 2):
        axes = ("L", "H, W", "D, H, W")[count - 1]
        raise ShapeError(f"{op} takes x as (N, C, {axes}) or (C, {axes}), not {x.shape}: reshape it")
    if x.ndim == count + 2:
        return x, True
    return Tensor(primitives.reshape(x.node, (1, *x.shape))), False


def unbatched(x: Tensor, was_batched: bool) -> Tensor:
    """x without its first axis, where that was added."""
    return x if was_batched else Tensor(primitives.reshape(x.node, x.shape[1:]))


def spans(kernel: Sizes, dilation: Sizes) -> Sizes:
    """From the first to the last element of a window."""
    return tuple(each * (size - 1) + 1 for size, each in zip(kernel, dilation, strict=True))


def check_inside(op: str, x: Tensor, sizes: Sizes, kernel: Sizes, dilation: Sizes) -> None:
    """Refuse windows that are larger than what they go over, `sizes` with padding."""
    if any(span > length for span, length in zip(spans(kernel, dilation), sizes, strict=True)):
        wide = "" if set(dilation) == {1} else f" with dilation {dilation}"
        raise ShapeError(
            f"{op} of {x.shape}: a kernel of {kernel}{wide} does not fit into {sizes} elements, padding "
            "included; pad more, or take a smaller kernel"
        )


# Windows


def taps_first(x: Node, kernel: Sizes, stride: Sizes, dilation: Sizes) -> Node:
    """(…, sizes) as (…, elements of a window, windows), each with as many axes as the kernel has."""
    rank, count = len(x.sig.shape), len(kernel)
    first = rank - count
    for at, each in enumerate(zip(kernel, stride, dilation, strict=True)):
        x = primitives.window(x, first + at, *each)
    return primitives.permute(x, (*range(first), *range(rank, rank + count), *range(first, rank)))


def cropped_or_padded(x: Node, widths: Widths, value: Any = 0) -> Node:
    """More elements, or with negative widths fewer, at both ends of the last axes."""
    rank = len(x.sig.shape) - len(widths)
    ranges = [
        (max(0, -before), length - max(0, -after), 1)
        for length, (before, after) in zip(x.sig.shape[rank:], widths, strict=True)
    ]
    whole = [(0, length, 1) for length in x.sig.shape[:rank]]
    x = primitives.slice_(x, (*whole, *ranges))
    around = [(max(0, before), max(0, after)) for before, after in widths]
    return primitives.pad(x, (*[(0, 0)] * rank, *around), value)


@pure
def unfold(
    x: Tensor,
    kernel_size: PerAxis,
    dilation: PerAxis = 1,
    padding: PerAxis = 0,
    stride: PerAxis = 1,
) -> Tensor:
    """The windows of images (N, C, H, W) as columns: (N, C × elements of a window, windows).

    >>> wg.unfold(wg.arange(9.0).reshape((1, 1, 3, 3)), 2).tolist()
    [[[0.0, 1.0, 3.0, 4.0], [1.0, 2.0, 4.0, 5.0], [3.0, 4.0, 6.0, 7.0], [4.0, 5.0, 7.0, 8.0]]]
    """
    op = "unfold"
    x, was_batched = batched(op, as_tensor(op, x), 2)
    kernel, steps, apart, around = _window_arguments(op, kernel_size, stride, dilation, padding)
    sizes = tuple(length + 2 * each for length, each in zip(x.shape[2:], around, strict=True))
    check_inside(op, x, sizes, kernel, apart)
    node = cropped_or_padded(x.node, tuple((each, each) for each in around))
    columns = taps_first(node, kernel, steps, apart)
    shape = columns.sig.shape
    result = primitives.reshape(columns, (shape[0], math.prod(shape[1:4]), math.prod(shape[4:])))
    return unbatched(Tensor(result), was_batched)


def _window_arguments(
    op: str, kernel_size: Any, stride: Any, dilation: Any, padding: Any
) -> tuple[Sizes, Sizes, Sizes, Sizes]:
    return (
        per_axis(op, "kernel_size", kernel_size, 2),
        per_axis(op, "stride", stride, 2),
        per_axis(op, "dilation", dilation, 2),
        per_axis(op, "padding", padding, 2, least=0),
    )


@pure
def fold(
    x: Tensor,
    output_size: PerAxis,
    kernel_size: PerAxis,
    dilation: PerAxis = 1,
    padding: PerAxis = 0,
    stride: PerAxis = 1,
) -> Tensor:
    """Columns (N, C × elements of a window, windows) added up to images (N, C, H, W): unfold backwards.

    >>> wg.fold(wg.ones((1, 4, 4)), 3, 2).tolist()
    [[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]]
    """
    op = "fold"
    x = as_tensor(op, x)
    check_kind(op, "iuf", x.dtype)
    if x.ndim not in (2, 3):
        raise ShapeError(f"{op} takes columns (N, C × kernel, windows) or without N, not {x.shape}")
    columns = x if x.ndim == 3 else Tensor(primitives.reshape(x.node, (1, *x.shape)))
    kernel, steps, apart, around = _window_arguments(op, kernel_size, stride, dilation, padding)
    sizes = per_axis(op, "output_size", output_size, 2)
    counts = tuple(
        (length + 2 * each - span) // step + 1
        for length, each, span, step in zip(sizes, around, spans(kernel, apart), steps, strict=True)
    )
    _check_columns(op, x, columns, sizes, kernel, counts)
    channels = columns.shape[1] // math.prod(kernel)
    wide = widened(columns)
    apart_by_axis = primitives.reshape(wide.node, (columns.shape[0], channels, *kernel, *counts))
    node = primitives.permute(apart_by_axis, (0, 1, 2, 4, 3, 5))
    shape = node.sig.shape
    wide = Tensor(primitives.reshape(node, (*shape[:2], shape[2] * shape[3], shape[4] * shape[5])))
    for at in range(2):
        places = _places(sizes[at], kernel[at], steps[at], apart[at], around[at], counts[at])
        wide = _summed(wide, 2 + at, *places)
    return unbatched(converted(wide, x.dtype), x.ndim == 3)


def _check_columns(op: str, x: Tensor, columns: Tensor, sizes: Sizes, kernel: Sizes, counts: Sizes) -> None:
    taps = math.prod(kernel)
    if min(counts) < 1 or columns.shape[1] % taps or columns.shape[2] != math.prod(counts):
        windows = " × ".join(map(str, counts)) if min(counts) > 0 else "no"
        raise ShapeError(
            f"{op} of {x.shape} to {sizes}: a kernel of {kernel} has {windows} windows there, so x must be "
            f"(N, C × {taps}, {max(0, math.prod(counts))}); check output_size, stride, padding and dilation"
        )


@lru_cache(maxsize=128)
def _places(length: int, size: int, stride: int, dilation: int, padding: int, count: int) -> tuple[Any, bool]:
    """Which elements of which windows an output element is the sum of: (terms, length) of t · count + window.

    Where there are fewer terms than elsewhere, -1; and whether that is anywhere.
    """
    terms: list[list[int]] = [[] for _ in range(length)]
    for tap, window in itertools.product(range(size), range(count)):
        place = window * stride + tap * dilation - padding
        if 0 <= place < length:
            terms[place].append(tap * count + window)
    most = max(1, max(map(len, terms)))
    table = [[each[at] if at < len(each) else -1 for each in terms] for at in range(most)]
    return host_array("fold", table, dtypes.int32), any(len(each) < most for each in terms)


def _summed(x: Tensor, axis: int, table: Any, gaps: bool) -> Tensor:
    """The sums of those elements of an axis that a table names."""
    places = asarray(table, device=x.device)
    terms = Tensor(primitives.take(x.node, places.node, axis))
    if gaps:
        inside = Tensor(primitives.reshape(places.node, (*table.shape, *[1] * (x.ndim - 1 - axis)))) >= 0
        terms = where(inside, terms, 0)
    return folded("sum", terms, (axis,))

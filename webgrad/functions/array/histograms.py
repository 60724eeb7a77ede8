"""Counting: how often integers occur, and how many values fall between edges.

In: tensors of values, weights of the same shape. Out: counts (int32) or sums of weights, and edges. Shapes
must be known without waiting: only `bincount` without `length` reads its values first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from operator import index
from typing import Any

from ... import dtypes
from ...arrays import np
from ...errors import ArgumentError, DeviceError, DTypeError, ShapeError
from ...graph.node import Node, make
from ...ops import primitives
from ...ops.shapes import check_kind
from ...ops.table import TABLE
from ...tensor import Tensor
from .creation import arange, as_tensor, asarray
from .elementwise import isnan, minimum, where
from .reductions import max as largest
from .reductions import min as smallest
from .reductions import sum as total
from .scatters import write_rows

MAX_COUNTS = (1 << 31) - 2  # one more bin is for numbers that are not counted


def bincount(
    x: Tensor, weights: Tensor | None = None, minlength: int = 0, *, length: int | None = None
) -> Tensor:
    """How often each integer occurs in x, or the sum of its weights; of one dimension.

    The result has one element more than the largest number, `minlength` at least: x is read for that. With
    `length` it has that length, nothing is read, and numbers outside are not counted.

    >>> wg.bincount(wg.asarray([1, 1, 3])).tolist()
    [0, 2, 0, 1]
    """
    x = as_tensor("bincount", x)
    check_kind("bincount", "biu", x.dtype)
    if x.ndim != 1:
        raise ShapeError(f"bincount takes a tensor of one dimension, not of shape {x.shape}")
    least = _whole("bincount: minlength", minlength)
    if length is None:
        size = max(least, _needed(x))
        _check_count(size)
        return _bin_counts("bincount", x, weights, x, size)
    size = max(least, _whole("bincount: length", length))
    _check_count(size)
    bins_of = _unsigned(x.astype(dtypes.int32) if x.dtype.is_packed else x)
    return _bin_counts("bincount", minimum(bins_of, size), weights, x, size, outside=True)


def _check_count(size: int) -> None:
    if size > MAX_COUNTS:
        raise ArgumentError(
            f"bincount: counts of the numbers below {size:,} are more than a tensor may have elements; give "
            "a smaller length, beyond which nothing is counted"
        )


def histogram(
    x: Tensor,
    bins: int | Sequence[float] | Tensor = 10,
    range: tuple[float, float] | None = None,
    weights: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    """How many elements of x lie between edges, and the edges, one more than there are bins.

    `bins` are a number of bins of equal width over `range` (without it, from x's smallest to its largest
    element, without NaN), or their edges in rising order. A bin includes its left edge, the last one both.
    Values outside, and NaN, are not counted. With `density` the result is a probability density: its
    integral is 1.

    >>> [each.tolist() for each in wg.histogram(wg.asarray([1.0, 2.0, 2.5, 9.0]), 2, range=(0, 4))]
    [[1, 2], [0.0, 2.0, 4.0]]
    """
    x = as_tensor("histogram", x)
    check_kind("histogram", "biuf", x.dtype)
    values = (x if x.dtype is dtypes.float64 else x.astype(dtypes.float32)).reshape(-1)
    even = not isinstance(bins, (Sequence, Tensor, np.ndarray))
    count = _whole("histogram: bins", bins) if even else 0
    if even and not count:
        raise ArgumentError("histogram: the number of bins must be 1 or more")
    edges = _even(values, count, range) if even else _edges_from(bins, values)
    count = edges.size - 1
    primitives.check_device("histogram", values.node, edges.node)
    if weights is None:
        counts = Tensor(make(TABLE["counts_between"], (values.node, edges.node), (even,)))
    else:
        column = as_tensor("histogram", weights)
        if column.shape != x.shape:
            raise ShapeError(f"histogram: weights of shape {column.shape} for elements of shape {x.shape}")
        places = Tensor(make(TABLE["bin_places"], (values.node, edges.node), (even,)))
        counts = _bin_counts("histogram", places, column.reshape(-1), values, count, outside=True)
    if density:
        widths = edges[1:] - edges[:-1]
        heights = counts.astype(edges.dtype)
        counts = heights / (total(heights) * widths)
    return counts, edges


def histogramdd(
    x: Tensor,
    bins: int | Sequence[Any] = 10,
    range: Sequence[tuple[float, float]] | None = None,
    weights: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, list[Tensor]]:
    """How many points, the rows of x, lie in boxes, and the edges of these along each axis.

    `bins` are as `histogram` takes them, for all axes or for each, and `range` has a pair for each.

    >>> counts, _ = wg.histogramdd(wg.asarray([[0.5, 0.5], [1.5, 0.2]]), 2, range=[(0, 2), (0, 1)])
    >>> counts.tolist()
    [[0, 1], [1, 0]]
    """
    x = as_tensor("histogramdd", x)
    check_kind("histogramdd", "biuf", x.dtype)
    if x.ndim != 2:
        raise ShapeError(f"histogramdd takes points as rows, two dimensions, not the shape {x.shape}")
    each = [bins] * x.shape[1] if isinstance(bins, int) else list(bins)
    spans = [None] * x.shape[1] if range is None else list(range)
    if not len(each) == len(spans) == x.shape[1]:
        raise ArgumentError(f"histogramdd: bins and range for each of {x.shape[1]} axes, not {len(each)}")
    values = x if x.dtype is dtypes.float64 else x.astype(dtypes.float32)
    edges, place, inside = [], None, None
    for column, (many, span) in enumerate(zip(each, spans, strict=True)):
        line = values[:, column]
        even = isinstance(many, int)
        found = _even(line, _whole("histogramdd: bins", many), span) if even else _edges_from(many, line)
        edges.append(found)
        count = found.size - 1
        at = Tensor(make(TABLE["bin_places"], (line.node, found.node), (even,)))
        there = at < count
        inside = there if inside is None else inside & there
        place = minimum(at, count - 1) if place is None else place * count + minimum(at, count - 1)
    sizes = [each.size - 1 for each in edges]
    total_size = math.prod(sizes)
    if place is None or inside is None:
        raise ShapeError("histogramdd of points without coordinates")
    where_counted = where(inside, place, total_size)
    counts = _bin_counts("histogramdd", where_counted, weights, where_counted, total_size, outside=True)
    counts = counts.reshape(sizes)
    if density:
        counts = counts.astype(values.dtype) / total(counts).astype(values.dtype)
        for axis, found in enumerate(edges):
            ones = [1] * len(sizes)
            ones[axis] = -1
            counts = counts / (found[1:] - found[:-1]).reshape(ones)
    return counts, edges


def _whole(what: str, number: Any) -> int:
    try:
        found = index(number)
    except TypeError:
        raise ArgumentError(f"{what} must be an integer, not {number!r}") from None
    if found < 0:
        raise ArgumentError(f"{what} is 0 or more, not {found}")
    return found


def _unsigned(x: Tensor) -> Tensor:
    """Without a sign: negative numbers become larger than all others."""
    if x.dtype.kind != "i":
        return x
    return Tensor(make(TABLE["bitcast"], (x.node,), (dtypes.as_dtype(f"uint{x.dtype.bits}"),)))


def _needed(x: Tensor) -> int:
    """One more than the largest element, which is read."""
    if not x.size:
        return 0
    high = int(largest(_unsigned(x)).item())
    if x.dtype.kind == "i" and high > x.dtype.limits[1]:
        low = int(smallest(x).item())
        raise ArgumentError(
            f"bincount counts integers from 0 on, and x has {low}; give a length to leave it out"
        )
    return high + 1


def _bin_counts(
    op: str, bins_of: Tensor, weights: Tensor | None, x: Tensor, size: int, *, outside: bool = False
) -> Tensor:
    """The sums of weights (or ones) for the bins 0 to size - 1; with `outside`, bin `size` is for what is not
    counted.
    """
    rows = size + 1 if outside else size
    if weights is None:
        ones = primitives.expand(primitives.constant(op, 1, dtypes.int32, x.device), (x.size, 1))
        return _bin_sums(op, bins_of, ones, rows)[:size]
    weights = as_tensor(op, weights)
    if weights.device is not x.device:
        raise DeviceError(
            f"{op}: x is on {x.device.name}, the weights on {weights.device.name}: move one with to_device"
        )
    if weights.shape != x.shape:
        raise ShapeError(f"{op}: weights of shape {weights.shape} for elements of shape {x.shape}")
    if weights.dtype.kind == "b":
        raise DTypeError(f"{op}: weights are numbers, not bool: convert them with astype")
    return _bin_sums(op, bins_of, weights.node, rows)[:size]


def _bin_sums(op: str, bins_of: Tensor, values: Node, rows: int) -> Tensor:
    start = primitives.constant(op, 0, values.sig.dtype, values.sig.device)
    column = primitives.reshape(values, (bins_of.size, 1))
    at = bins_of.node if bins_of.dtype.kind in "iu" else primitives.cast(bins_of.node, dtypes.int32)
    sums = write_rows(op, "add", primitives.expand(start, (rows, 1)), at, column)
    return Tensor(primitives.reshape(sums, (rows,)))


# Edges


def _edges_from(bins: Any, values: Tensor) -> Tensor:
    if not isinstance(bins, Tensor):
        try:
            edges = [float(each) for each in bins]
        except TypeError:
            edges = []
        if len(edges) < 2 or not all(low <= high for low, high in pairwise(edges)):
            raise ArgumentError("histogram: edges must be two numbers or more, in rising order")
        return asarray(edges, values.dtype, device=values.device)
    if bins.ndim != 1 or bins.size < 2:
        raise ShapeError(f"histogram: edges have one dimension and two elements or more, not {bins.shape}")
    return bins.astype(values.dtype)


def _even(values: Tensor, count: int, range: tuple[float, float] | None) -> Tensor:
    """Edges at equal distances; the second half from the other end, so that the last is exact."""
    device, dtype = values.device, values.dtype
    low: Tensor | float
    high: Tensor | float
    if range is not None:
        low, high = map(float, range)
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise ArgumentError(f"histogram: range must be two finite numbers in rising order, not {range!r}")
        low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
    elif not values.size:
        low, high = 0.0, 1.0
    else:
        missing = isnan(values)  # not counted, so not in the range either
        low, high = smallest(where(missing, math.inf, values)), largest(where(missing, -math.inf, values))
        alone = low == high
        low, high = where(alone, low - 0.5, low), where(alone, high + 0.5, high)
    steps = arange(count + 1, dtype=dtype, device=device)
    # Multiplied first: what is an integer then stays one.
    rising, falling = low + (high - low) * steps / count, high - (high - low) * (count - steps) / count
    return where(steps < count / 2, rising, falling)

"""Running totals along an axis: sums, products, maxima, minima; and their inverse, differences.

In: a tensor and one axis. Out: a tensor of the same shape, or one longer with the start value. Floats
are added in short runs, then the sums of the runs, on every device.
"""

from __future__ import annotations

from functools import partial
from operator import index
from typing import Any

from ... import dtypes
from ...dtypes import as_dtype
from ...errors import AxisError, DTypeError, ShapeError
from ...graph.node import Node
from ...ops import primitives
from ...ops.host_arrays import check_dtype
from ...ops.primitives import elementwise
from ...ops.shapes import check_kind, normalise_axis
from ...ops.table import TABLE
from ...tensor import Tensor
from ..pure import pure
from .creation import as_tensor
from .elementwise import logaddexp
from .manipulation import concat
from .reductions import ACCUMULATORS, compute_dtype
from .reshaping import axis_slice, of_one, part


@pure
def cumulative_sum(
    x: Tensor, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Each element and all before it along an axis, added up; the axis may be left out in one dimension.

    Sums of bool, int8 and int16 are int32, of uint8 and uint16 uint32; `dtype` asks for another. 16-bit
    floats are added in float32. With `include_initial` a 0 comes first, and the result is one longer.

    >>> wg.cumulative_sum(wg.asarray([1, 2, 3])).tolist()
    [1, 3, 6]
    """
    return _total("cumulative_sum", x, axis, dtype, include_initial)


@pure
def cumulative_prod(
    x: Tensor, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Each element and all before it along an axis, multiplied; dtypes as in cumulative_sum.

    >>> wg.cumulative_prod(wg.asarray([1.0, 2.0, 3.0]), include_initial=True).tolist()
    [1.0, 1.0, 2.0, 6.0]
    """
    return _total("cumulative_prod", x, axis, dtype, include_initial)


@pure
def cumsum(x: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    """`cumulative_sum`, by NumPy's and PyTorch's name.

    >>> wg.cumsum(wg.asarray([[1, 2], [3, 4]]), axis=0).tolist()
    [[1, 2], [4, 6]]
    """
    return _total("cumsum", x, axis, dtype, False)


@pure
def cumprod(x: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    """`cumulative_prod`, by NumPy's and PyTorch's name.

    >>> wg.cumprod(wg.asarray([1, 2, 3]), 0).tolist()
    [1, 2, 6]
    """
    return _total("cumprod", x, axis, dtype, False)


@pure
def cumulative_max(x: Tensor, axis: int | None = None) -> Tensor:
    """The largest element so far along an axis; from a NaN on everything is NaN.

    >>> wg.cumulative_max(wg.asarray([1, 3, 2, 5])).tolist()
    [1, 3, 3, 5]
    """
    return _extreme("cumulative_max", x, axis)


def cummax(x: Tensor, axis: int | None = None) -> Tensor:
    """`cumulative_max`; only the values of PyTorch's function of this name.

    >>> wg.cummax(wg.asarray([1, 3, 2])).tolist()
    [1, 3, 3]
    """
    return _extreme("cummax", x, axis)


@pure
def cumulative_min(x: Tensor, axis: int | None = None) -> Tensor:
    """The smallest element so far along an axis; from a NaN on everything is NaN.

    >>> wg.cumulative_min(wg.asarray([3, 4, 1, 2])).tolist()
    [3, 3, 1, 1]
    """
    return _extreme("cumulative_min", x, axis)


def cummin(x: Tensor, axis: int | None = None) -> Tensor:
    """`cumulative_min`; only the values of PyTorch's function of this name.

    >>> wg.cummin(wg.asarray([3, 1, 2])).tolist()
    [3, 1, 1]
    """
    return _extreme("cummin", x, axis)


def logcumsumexp(x: Tensor, axis: int | None = None) -> Tensor:
    """log of the sum of exp of the elements so far along an axis, without overflow.

    >>> [round(each, 2) for each in wg.logcumsumexp(wg.asarray([1000.0, 1000.0, 1001.0])).tolist()]
    [1000.0, 1000.69, 1001.55]
    """
    x = as_tensor("logcumsumexp", x)
    check_kind("logcumsumexp", "fc", x.dtype)
    if not x.ndim:
        return of_one(logcumsumexp, x, axis)
    along = _axis("logcumsumexp", x, axis)
    wide = x.astype(compute_dtype(x.dtype), copy=False)
    size, step = x.shape[along], 1
    while step < size:  # sums of 2, 4, 8 … elements that follow each other
        before, after = part(wide, along, 0, size - step), part(wide, along, step, size)
        wide = concat([part(wide, along, 0, step), logaddexp(after, before)], along)
        step *= 2
    return wide.astype(x.dtype)


_ROWS = {
    "cumsum": "cumulative_sum",
    "cumprod": "cumulative_prod",
    "cummax": "cumulative_max",
    "cummin": "cumulative_min",
}


def _total(op: str, x: Tensor, axis: int | None, dtype: Any, include_initial: bool) -> Tensor:
    x = as_tensor(op, x)
    if not x.shape and not include_initial:
        return of_one(partial(_total, op), x, axis, dtype, False)
    along = _axis(op, x, axis)
    wanted = ACCUMULATORS.get(x.dtype, x.dtype) if dtype is None else as_dtype(dtype)
    if wanted.kind == "b":
        raise DTypeError(f"{op} gives numbers, not {wanted.name}: leave dtype out, or ask for int32")
    check_dtype(op, wanted, x.device)
    node = primitives.scan(TABLE[_ROWS.get(op, op)], primitives.cast(x.node, compute_dtype(wanted)), along)
    if include_initial:
        node = _shifted(node, along, 0 if _ROWS.get(op, op) == "cumulative_sum" else 1)
    return Tensor(primitives.cast(node, wanted))


def _extreme(op: str, x: Tensor, axis: int | None) -> Tensor:
    x = as_tensor(op, x)
    if not x.shape:
        return of_one(partial(_extreme, op), x, axis)
    along = _axis(op, x, axis)
    computed = dtypes.uint8 if x.dtype.kind == "b" else compute_dtype(x.dtype)
    node = primitives.scan(TABLE[_ROWS.get(op, op)], primitives.cast(x.node, computed), along)
    return Tensor(primitives.cast(node, x.dtype))


def _axis(op: str, x: Tensor, axis: int | None) -> int:
    if axis is None:
        if x.ndim == 1:
            return 0
        raise AxisError(
            f"{op} of a tensor of shape {x.shape}: give an axis; for all elements reshape to (-1,)"
        )
    return normalise_axis(op, axis, x.ndim)


def _shifted(x: Node, axis: int, first: Any) -> Node:
    """x with `first` prepended along an axis."""
    widths = tuple((int(each == axis), 0) for each in range(len(x.sig.shape)))
    return primitives.pad(x, widths, first)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def diff(
    x: Tensor, n: int = 1, axis: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Each element minus the one before it, n times over; of bools, whether they differ.

    `prepend` and `append` are put before and after x along the axis first.

    >>> wg.diff(wg.asarray([1, 4, 9, 16])).tolist()
    [3, 5, 7]
    """
    x = as_tensor("diff", x)
    along = normalise_axis("diff", axis, x.ndim)
    if not hasattr(n, "__index__") or n < 0:
        raise ShapeError(f"diff: n must be an integer, 0 or more, not {n!r}")
    check_kind("diff", "biufc", x.dtype)
    parts = [as_tensor("diff", each).node for each in (prepend, x, append) if each is not None]
    for each in parts:
        if _without(each.sig.shape, along) != _without(x.shape, along) or len(each.sig.shape) != x.ndim:
            raise ShapeError(
                f"diff: prepend and append need the shape of x {x.shape} except along axis {along}, not "
                f"{each.sig.shape}: reshape it"
            )
    if n == 0:
        return Tensor(x.node)
    node = primitives.concat(parts, along) if len(parts) > 1 else x.node
    op = TABLE["not_equal"] if node.sig.dtype.kind == "b" else TABLE["subtract"]
    for _ in range(min(index(n), node.sig.shape[along])):
        size = node.sig.shape[along]
        node = elementwise(op, axis_slice(node, along, 1, size), axis_slice(node, along, 0, size - 1))
    return Tensor(node)

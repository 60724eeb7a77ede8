"""Creation: tensors from the host's values, and from nothing but a shape.

In: NumPy arrays, lists, numbers, other libraries' arrays, shapes. Out: Tensors on a device. The invariant:
constants and sequences (zeros, arange, …) take no memory; kernels compute them where they are used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import Any

from ... import dtypes
from ...arrays import np
from ...dtypes import DType, as_dtype
from ...errors import ArgumentError, BufferError, DTypeError, ShapeError
from ...graph.node import Node
from ...graph.trace import is_runtime
from ...ops import primitives
from ...ops.host_arrays import check_dtype, host_array
from ...ops.primitives import elementwise
from ...ops.table import TABLE
from ...runtime.device import AnyDevice, DeviceLike, open_device
from ...tensor import Tensor
from .interop import move, place

Shape = int | Sequence[int]
Number = bool | int | float
_DEFAULTS = {bool: dtypes.bool, int: dtypes.int32, float: dtypes.float32, complex: dtypes.complex64}


# Checks that other functions share


def as_tensor(op: str, value: Any) -> Tensor:
    """The argument of an op, which must be a tensor: the op could not know the device of anything else."""
    if isinstance(value, Tensor):
        return value
    way = f"make one with webgrad.asarray({_short(value)})"
    if hasattr(value, "dequantise"):
        way = "unpack it with .dequantise(); x @ q.T, webgrad.linear and q[ids] take it as it is"
    raise DTypeError(f"{op} takes a webgrad tensor, not a {type(value).__name__}: {way}")


def _short(value: Any) -> str:
    shown = repr(value) if isinstance(value, (bool, int, float, list, tuple)) else "…"
    return shown if len(shown) <= 40 else "…"


def as_shape(op: str, shape: Shape) -> tuple[int, ...]:
    """A shape as a tuple, from one size or a sequence of sizes."""
    try:
        sizes = tuple(map(index, shape)) if isinstance(shape, (tuple, list, np.ndarray)) else (index(shape),)  # type: ignore[arg-type]
    except TypeError:
        raise ShapeError(f"{op}: {shape!r} is not a shape: give integers, such as (2, 3)") from None
    if any(size < 0 for size in sizes):
        raise ShapeError(f"{op}: a shape has no negative sizes, not {sizes}")
    if any(size >= 1 << 63 for size in sizes):
        raise ShapeError(f"{op}: a size of {max(sizes)} is too large: work in smaller parts")
    return sizes


def as_number(op: str, value: Any) -> Number:
    """A real number of Python or NumPy, as a Python number."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (bool, int, float)):
        raise DTypeError(f"{op} takes a real number here, not {_named(value)}")
    return value


def as_any_number(op: str, value: Any) -> Any:
    """A real or complex number of Python or NumPy, as a Python number."""
    return complex(value) if isinstance(value, (complex, np.complexfloating)) else as_number(op, value)


def _named(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"{value!r}"
    traced = "; numbers given to a captured function are tensors: name it in webgrad.jit(..., static=...)"
    return f"a tensor of shape {value.shape}{traced if is_runtime(value.node.storage) else ''}"


# From values


def asarray(obj: Any, dtype: Any = None, *, device: DeviceLike = None, copy: bool | None = None) -> Tensor:
    """A tensor of the values of an array, nested lists, a number, a buffer, or what NumPy or DLPack reads.

    Lists of floats become float32, of ints int32; arrays keep their dtype. The values are copied; on the cpu,
    `copy=False` shares a contiguous array's memory, which must then not be written to.

    >>> wg.asarray([[1, 2], [3, 4]]).dtype
    webgrad.int32
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(obj, Tensor):
        target = obj.device if device is None else open_device(device)
        changes = target is not obj.device or (wanted is not None and wanted is not obj.dtype)
        if copy is False and changes:
            raise BufferError(
                f"asarray: copy=False is impossible for a tensor of {obj.dtype.name} on "
                f"{obj.device.name} as {(wanted or obj.dtype).name} on {target.name}"
            )
        there = move(obj, target)
        if wanted is not None and wanted is not there.dtype:
            check_dtype("asarray", wanted, there.device)
            return Tensor(primitives.cast(there.node, wanted))
        return Tensor(there.node) if copy else there
    array = host_array("asarray", obj, wanted)
    if copy is False and not (isinstance(obj, np.ndarray) and _is_same(array, obj)):
        raise BufferError(
            f"asarray: copy=False shares the memory of a NumPy array of the dtype asked for, and a "
            f"{type(obj).__name__} had to be converted to {array.dtype.name}"
        )
    return place("asarray", array, open_device(device), copy=copy)


def _is_same(array: Any, value: Any) -> bool:
    return array is value or np.may_share_memory(array, value)


def tensor(
    value: Any, dtype: Any = None, *, device: DeviceLike = None, requires_grad: bool = False
) -> Tensor:
    """A new tensor of some values: `asarray` that always copies, by PyTorch's name.

    >>> wg.tensor([1.5, 2.5], requires_grad=True).requires_grad
    True
    """
    made = asarray(value, dtype, device=device, copy=True)
    return made.requires_grad_() if requires_grad else made


# From a shape


def _target(op: str, dtype: Any, device: DeviceLike) -> tuple[DType, AnyDevice]:
    where = open_device(device)
    if isinstance(dtype, int) and not isinstance(dtype, bool):
        raise ArgumentError(f"{op}: {dtype} is not a data type; the shape is one argument: {op}((2, 3), …)")
    wanted = as_dtype(dtype)
    check_dtype(op, wanted, where)
    return wanted, where


def full(shape: Shape, fill_value: Any, dtype: Any = None, *, device: DeviceLike = None) -> Tensor:
    """Every element is the same number; a float makes float32, an int int32, a complex number complex64.

    The number may be a tensor of no axes, which gives its dtype and device too, and is not read.

    >>> wg.full((2, 2), 7).tolist()
    [[7, 7], [7, 7]]
    """
    return _full("full", shape, fill_value, dtype, device)


def _full(op: str, shape: Shape, value: Any, dtype: Any, device: DeviceLike) -> Tensor:
    sizes = as_shape(op, shape)
    if isinstance(value, Tensor) and not value.shape:
        return Tensor(primitives.expand(asarray(value, dtype, device=device).node, sizes))
    number = as_any_number(op, value)
    wanted, where = _target(op, dtype if dtype is not None else _DEFAULTS[_plain(number)], device)
    return Tensor(primitives.expand(primitives.constant(op, number, wanted, where), sizes))


def _filled(
    op: str, shape: Shape, sizes: tuple[Any, ...], value: int, dtype: Any, device: DeviceLike
) -> Tensor:
    """zeros((2, 3)), zeros((2, 3), float32), zeros(2, 3), zeros(2, 3, dtype=float32)."""
    last = sizes[-1] if sizes else 0
    if isinstance(last, type) or not hasattr(last, "__index__"):
        if dtype is not None:
            raise TypeError(f"{op}() was given a dtype twice, {last!r} and {dtype!r}: give one of them")
        dtype, sizes = last, sizes[:-1]
    if sizes:
        shape = (shape, *sizes)  # type: ignore[arg-type]  # sizes one by one
    return _full(op, shape, value, dtypes.float32 if dtype is None else dtype, device)


def _plain(number: Any) -> type:
    """The type of a Python number; NumPy's float64 and complex128 are subclasses of them."""
    return next(each for each in _DEFAULTS if isinstance(number, each))


def zeros(shape: Shape, *sizes: Any, dtype: Any = None, device: DeviceLike = None) -> Tensor:
    """Zeros, float32 by default; the shape is one argument, or sizes one by one.

    >>> wg.zeros((2, 3)).shape, wg.zeros(2, 3).shape
    ((2, 3), (2, 3))
    """
    return _filled("zeros", shape, sizes, 0, dtype, device)


def ones(shape: Shape, *sizes: Any, dtype: Any = None, device: DeviceLike = None) -> Tensor:
    """Ones, float32 by default.

    >>> wg.ones((2, 2)).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _filled("ones", shape, sizes, 1, dtype, device)


def empty(shape: Shape, *sizes: Any, dtype: Any = None, device: DeviceLike = None) -> Tensor:
    """A tensor to be filled later; its values are zeros, which cost nothing.

    >>> wg.empty((2, 3)).shape
    (2, 3)
    """
    return _filled("empty", shape, sizes, 0, dtype, device)


def full_like(x: Tensor, fill_value: Any, dtype: Any = None, *, device: DeviceLike = None) -> Tensor:
    """A tensor full of one number, with the shape, dtype and device of x.

    >>> wg.full_like(wg.asarray([1, 2]), 7).tolist()
    [7, 7]
    """
    return _full_like("full_like", x, fill_value, dtype, device)


def _full_like(op: str, x: Tensor, value: Any, dtype: Any, device: DeviceLike) -> Tensor:
    x = as_tensor(op, x)
    return _full(
        op, x.shape, value, x.dtype if dtype is None else dtype, x.device if device is None else device
    )


def zeros_like(x: Tensor, dtype: Any = None, *, device: DeviceLike = None) -> Tensor:
    """Zeros with the shape, dtype and device of x.

    >>> wg.zeros_like(wg.asarray([3, 4])).tolist()
    [0, 0]
    """
    return _full_like("zeros_like", x, 0, dtype, device)


def ones_like(x: Tensor, dtype: Any = None, *, device: DeviceLike = None) -> Tensor:
    """Ones with the shape, dtype and device of x.

    >>> wg.ones_like(wg.asarray([3, 4])).tolist()
    [1, 1]
    """
    return _full_like("ones_like", x, 1, dtype, device)


def empty_like(x: Tensor, dtype: Any = None, *, device: DeviceLike = None) -> Tensor:
    """A tensor to be filled later, with the shape, dtype and device of x; its values are zeros.

    >>> wg.empty_like(wg.asarray([1, 2])).dtype
    webgrad.int32
    """
    return _full_like("empty_like", x, 0, dtype, device)


# From an index


def arange(
    start: Number | Tensor,
    stop: Number | Tensor | None = None,
    step: Number | Tensor = 1,
    dtype: Any = None,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """Numbers from `start` (0 where only one is given) up to and without `stop`, by `step`.

    Bounds that are tensors of one element are read, which waits for them.

    >>> wg.arange(2, 8, 2).tolist()
    [2, 4, 6]
    """
    first, last = (_bound(each) for each in ((0, start) if stop is None else (start, stop)))
    by = _bound(step)
    if by == 0 or not all(map(math.isfinite, (first, last, by))):
        raise ShapeError(
            f"arange from {first} to {last} by {by} does not end: give finite numbers and a step"
        )
    (length,) = as_shape("arange", max(0, math.ceil((last - first) / by)))
    floats = any(isinstance(each, float) for each in (first, last, by))
    wanted, where = _target("arange", (float if floats else int) if dtype is None else dtype, device)
    if wanted.kind in "bc":
        way = "use arange(…) != 0" if wanted.kind == "b" else "convert with arange(…).astype"
        raise DTypeError(f"arange is not offered for {wanted.name}: {way}")
    return Tensor(
        _arithmetic_sequence(primitives.iota(length, _counter(wanted), where), first, by, wanted, length)
    )


def _bound(value: Any) -> Number:
    known = isinstance(value, Tensor) and value.size == 1 and not is_runtime(value.node.storage)
    return as_number("arange", value.item() if known else value)


def _counter(dtype: DType) -> DType:
    """The type to count in: exact, and wide enough."""
    return dtype if dtype.kind in "iu" and not dtype.is_packed else dtypes.int32


def _arithmetic_sequence(count: Node, start: Number, step: Number, dtype: DType, length: int) -> Node:
    """start + count * step in a dtype; the last value must fit it."""
    if length and dtype.kind != "f":
        for each in (start, start + (length - 1) * step):
            primitives.constant("arange", each, dtype, count.sig.device)
    exact = dtype.wide if dtype.kind == "f" else count.sig.dtype
    result = primitives.cast(count, exact)
    for op, number, neutral in ((_MULTIPLY, step, 1), (_ADD, start, 0)):
        if number != neutral:
            fitting = int(number) % (1 << exact.bits) if exact.kind == "u" else number
            result = elementwise(op, result, fitting)
    return primitives.cast(result, dtype)


def linspace(
    start: Number | complex,
    stop: Number | complex,
    num: int,
    dtype: Any = None,
    *,
    device: DeviceLike = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` numbers at equal distances from `start` to `stop`, the last one unless `endpoint` is False.

    >>> wg.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if not hasattr(num, "__index__") or num < 0:
        raise ShapeError(f"linspace: num must be an integer, 0 or more, not {num!r}")
    (length,) = as_shape("linspace", num)
    ends = [as_any_number("linspace", each) for each in (start, stop)]
    default = dtypes.complex64 if complex in map(type, ends) else dtypes.float32
    wanted, where = _target("linspace", default if dtype is None else dtype, device)
    if wanted.kind not in "fc" or (wanted.kind == "f" and default.kind == "c"):
        raise DTypeError(
            f"linspace is not offered for {wanted.name} from {start} to {stop}: make floats, or complex "
            "numbers, and convert them with astype"
        )
    # As many steps as there are numbers before `stop`, so that leaving it out changes no other.
    share = _fractions(length, max(1, length - 1 if endpoint else length), dtypes.part_of(wanted), where)
    if wanted.kind == "f":
        return Tensor(primitives.cast(_interpolated(share, ends[0].real, ends[1].real), wanted))
    parts = _interpolated(share, ends[0].real, ends[1].real), _interpolated(share, ends[0].imag, ends[1].imag)
    pairs = primitives.concat([primitives.reshape(each, (length, 1)) for each in parts], 1)
    return Tensor(primitives.as_complex(pairs))


def _fractions(length: int, steps: int, dtype: DType, device: AnyDevice) -> Node:
    """0, 1 / steps, 2 / steps …, in at least float32."""
    count = primitives.cast(primitives.iota(length, dtypes.int32, device), dtype.wide)
    return elementwise(TABLE["divide"], count, steps)


def _interpolated(share: Node, start: float, stop: float) -> Node:
    """start + share * (stop - start).

    The second half from the other end: the last one is `stop` itself, and errors stay half as large. Half the
    way is a number of the dtype even where the whole is more than it holds.
    """
    half, twice = stop / 2 - start / 2, elementwise(_MULTIPLY, share, 2.0)
    up = elementwise(_ADD, elementwise(_MULTIPLY, twice, half), start)
    left = elementwise(_SUBTRACT, 2.0, twice)
    down = elementwise(_SUBTRACT, stop, elementwise(_MULTIPLY, left, half))
    return primitives.choose(elementwise(TABLE["less"], twice, 1.0), up, down)


def eye(
    n_rows: int, n_cols: int | None = None, *, k: int = 0, dtype: Any = None, device: DeviceLike = None
) -> Tensor:
    """Ones on a diagonal, the k-th above the main one, and zeros elsewhere.

    >>> wg.eye(2, 3, k=1).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    height, width = as_shape("eye", (n_rows, n_rows if n_cols is None else n_cols))
    if not hasattr(k, "__index__"):
        raise DTypeError(f"eye: k, the diagonal, must be an integer, not {k!r}")
    wanted, where = _target("eye", dtypes.float32 if dtype is None else dtype, device)
    down = primitives.reshape(primitives.iota(height, dtypes.int32, where), (height, 1))
    along = elementwise(
        _SUBTRACT, primitives.iota(width, dtypes.int32, where), min(max(index(k), -height), width)
    )
    return Tensor(primitives.cast(elementwise(TABLE["equal"], down, along), wanted))


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinates of a grid from those along its axes, each in the shape of the whole grid.

    >>> [each.shape for each in wg.meshgrid(wg.arange(2), wg.arange(3))]
    [(3, 2), (3, 2)]
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}")
    axes = [as_tensor("meshgrid", each) for each in arrays]
    if any(each.ndim > 1 for each in axes):
        raise ShapeError(f"meshgrid takes tensors of one dimension, not {[each.shape for each in axes]}")
    order = list(range(len(axes)))
    if indexing == "xy" and len(axes) > 1:
        order[0], order[1] = 1, 0
    sizes = [0] * len(axes)
    for each, place_ in zip(axes, order, strict=True):
        sizes[place_] = each.size
    grids = []
    for each, place_ in zip(axes, order, strict=True):
        alone = tuple(each.size if at == place_ else 1 for at in range(len(axes)))
        grids.append(Tensor(primitives.expand(primitives.reshape(each.node, alone), tuple(sizes))))
    return tuple(grids)


_ADD, _MULTIPLY, _SUBTRACT = TABLE["add"], TABLE["multiply"], TABLE["subtract"]

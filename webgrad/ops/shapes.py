"""Shape and dtype rules: input signatures and attributes in, the result's shape and dtype out.

Each rule runs once per (op, input signatures). A rule refuses invalid inputs: its error names the op, the
shapes and dtypes, and what to do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from numbers import Integral
from typing import Any

from .. import dtypes
from ..arrays import has_numpy, np
from ..dtypes import DType
from ..errors import AxisError, BufferError, DTypeError, ShapeError
from ..graph.node import Signature
from ..graph.op import Infer

MAX_GPU_COUNT = (1 << 32) - 1  # elements: kernels' indices have 32 bits
Shape = tuple[int, ...]
Sigs = tuple[Signature, ...]
Result = tuple[Shape, DType]


@cache
def most_axes() -> int:
    """NumPy's limit, and so the cpu's."""
    return 32 if has_numpy() and int(np.__version__.split(".")[0]) < 2 else 64


def check_rank(shape: Shape) -> None:
    """Refuse more axes than a tensor can have on any device."""
    if len(shape) > 32 and len(shape) > most_axes():
        raise ShapeError(
            f"a shape of {len(shape)} axes: tensors have at most {most_axes()}, those of complex numbers one "
            "less; join some with reshape"
        )


def broadcast(op: str, shapes: Sequence[Shape]) -> Shape:
    """The common shape of operands, by NumPy's rule."""
    first = shapes[0]
    if all(each == first for each in shapes):
        return first
    rank = max(map(len, shapes))
    result = [1] * rank
    for shape in shapes:
        offset = rank - len(shape)
        for axis, size in enumerate(shape, offset):
            if size != 1:
                if result[axis] not in (1, size):
                    raise ShapeError(
                        f"{op}: the shapes {' and '.join(map(str, shapes))} do not broadcast: counted from "
                        "the last, sizes must be equal or 1; reshape one, or insert an axis with x[:, None]"
                    )
                result[axis] = size
    return tuple(result)


_HINTS = {"f": "float32", "i": "int32", "u": "uint32", "b": "bool", "c": "complex64"}


def check_kind(op: str, types: str, *operands: DType) -> None:
    """Refuse a dtype that an op is not offered for."""
    for dtype in operands:
        if dtype.kind not in types:
            offered = ", ".join(each.name for each in (*dtypes.REAL, *dtypes.COMPLEX) if each.kind in types)
            if dtype.kind == "c":
                raise DTypeError(
                    f"{op} is not offered for {dtype.name}, only for {offered}: take webgrad.real(x), "
                    "webgrad.imag(x) or webgrad.abs(x)"
                )
            hint = next(name for kind, name in _HINTS.items() if kind in types)
            raise DTypeError(
                f"{op} is not offered for {dtype.name}, only for {offered}: convert with "
                f"x.astype(webgrad.{hint})"
            )


def elementwise(name: str, types: str, result: str) -> Infer:
    """The rule of a map op: operands of one dtype, broadcast."""
    fixed = None if result == "same" else dtypes.as_dtype(result)

    def infer(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
        check_kind(name, types, *[each.dtype for each in sigs])
        return broadcast(name, [each.shape for each in sigs]), fixed or sigs[-1].dtype

    return infer


def same(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    """The first input's shape and dtype."""
    return sigs[0].shape, sigs[0].dtype


def normalise_axis(op: str, axis: Any, rank: int) -> int:
    """An axis counted from the front; an error that names the op where it is out of range."""
    if axis.__class__ is not int:
        # Not everything with __index__: a bool or a tensor of one element is another argument by mistake.
        if isinstance(axis, bool) or not isinstance(axis, Integral):
            raise AxisError(f"{op}: an axis must be an integer, not {_shown(axis)}")
        axis = int(axis)
    if not -rank <= axis < rank:
        span = f"from {-rank} to {rank - 1}" if rank else "none: it has no dimensions"
        raise AxisError(
            f"{op}: there is no axis {axis} in a tensor of {rank} dimensions; its axes are {span}"
        )
    return axis % rank if rank else 0


def _shown(axis: Any) -> str:
    """An invalid axis, for a message; of a tensor its shape, since its value is not computed."""
    shape = getattr(axis, "shape", None)
    return repr(axis) if shape is None else f"a {type(axis).__name__} of shape {tuple(shape)}"


def normalise_axes(op: str, axes: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Axes counted from the front, in order, each once; None is all of them.

    What has no axes may be reduced over its only element: axis 0 or -1, as in PyTorch.
    """
    if axes is None:
        return tuple(range(rank))
    if not rank:
        normalise_axes(op, axes, 1)
        return ()
    if isinstance(axes, Sequence):
        found = [normalise_axis(op, each, rank) for each in axes]
        if len(set(found)) != len(found):
            raise AxisError(f"{op}: an axis is named twice in {tuple(axes)}")
        return tuple(sorted(found))
    return (normalise_axis(op, axes, rank),)


def _check_countable(op: str, sig: Signature) -> None:
    """Refuse a size that 32-bit indices cannot count; only values that are never stored can be so large."""
    if sig.device.is_gpu and sig.size > MAX_GPU_COUNT:
        raise ShapeError(
            f"{op}: {sig!r} has {sig.size:,} elements, and GPUs count to {MAX_GPU_COUNT:,}: work in parts, "
            "or on the cpu with x.to_device('cpu')"
        )


def reduced(name: str, types: str) -> Infer:
    """The rule of a reduce over attributes = (axes,), which the result lacks."""

    def infer(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
        (sig,) = sigs
        check_kind(name, types, sig.dtype)
        _check_countable(name, sig)
        return tuple(size for axis, size in enumerate(sig.shape) if axis not in attributes[0]), sig.dtype

    return infer


def concat(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    """Tensors concatenated along attributes = (axis,)."""
    (axis,) = attributes
    first = sigs[0]
    for each in sigs[1:]:
        others = [
            (a, b) for at, (a, b) in enumerate(zip(first.shape, each.shape, strict=False)) if at != axis
        ]
        if len(each.shape) != len(first.shape) or any(a != b for a, b in others):
            raise ShapeError(
                f"concat along axis {axis}: the shapes {first.shape} and {each.shape} differ on another axis"
            )
    length = sum(each.shape[axis] for each in sigs)
    return (*first.shape[:axis], length, *first.shape[axis + 1 :]), first.dtype


def contract(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    """(…, m, k) @ (…, k, n), the leading axes broadcast."""
    a, b = sigs
    check_kind("matmul", "iuf", a.dtype, b.dtype)
    if len(a.shape) < 2 or len(b.shape) < 2 or a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            f"matmul of {a.shape} and {b.shape}: the last axis of the first and the last but one of the "
            "second must have the same size; transpose one with .mT, or reshape"
        )
    try:
        batches = broadcast("matmul", [a.shape[:-2], b.shape[:-2]])
    except ShapeError:
        raise ShapeError(
            f"matmul of {a.shape} and {b.shape}: the axes before the last two must broadcast"
        ) from None
    return (*batches, a.shape[-2], b.shape[-1]), a.dtype


def attended(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    """q (b, h, l, e), k (b, g, s, e), v (b, g, s, w), a scale, a length, and perhaps a mask for (b, h, l, s).

    attributes = (causal, window, from the end, chunks). With chunks, the parts of a result that each of them
    gives: (chunks, b, h, l, w in whole fours and four more), the last four: largest score and sum.
    """
    query, value = sigs[0], sigs[2]
    check_kind("attention", "f", *[each.dtype for each in sigs[:3]])
    if query.dtype is dtypes.float64 and query.device.is_gpu:
        raise DTypeError(
            "attention of float64 is not offered on GPUs: convert with x.astype(webgrad.float32), or compute "
            "it on the cpu with x.to_device('cpu')"
        )
    for each in sigs:
        _check_countable("attention", each)
    shape = (*query.shape[:3], value.shape[3])
    chunks = attributes[3]
    return (
        ((chunks, *shape[:3], -(-shape[3] // 4) * 4 + 4), dtypes.float32) if chunks else (shape, query.dtype)
    )


def parted(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    """as_real: a new last axis of two for the parts."""
    check_kind("as_real", "c", sigs[0].dtype)
    return (*sigs[0].shape, 2), dtypes.part_of(sigs[0].dtype)


def paired(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    """as_complex: the last axis, of two, is a number's parts."""
    shape, dtype = sigs[0].shape, sigs[0].dtype
    if dtype not in (dtypes.float32, dtypes.float64):
        raise DTypeError(
            f"a complex number's parts are float32 or float64, not {dtype.name}: convert with "
            "x.astype(webgrad.float32)"
        )
    if not shape or shape[-1] != 2:
        raise ShapeError(
            f"complex numbers of a tensor of shape {shape}: its last axis must have size 2, for the "
            "real and the imaginary part"
        )
    return shape[:-1], dtypes.complex_of(dtype)


# Movement: the attributes determine the result.


def reshaped(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    """attributes = (shape,), with the same number of elements."""
    (shape,) = attributes
    if math.prod(shape) != sigs[0].size:
        raise ShapeError(
            f"reshape of {sigs[0].shape} ({sigs[0].size:,} elements) to {shape} ({math.prod(shape):,} "
            "elements): the number of elements must be the same"
        )
    return shape, sigs[0].dtype


def permuted(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    """attributes = (axes,): axis i of the result is axis axes[i] of the input."""
    return tuple(sigs[0].shape[axis] for axis in attributes[0]), sigs[0].dtype


def expanded(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    """attributes = (shape,), to which the input broadcasts."""
    (shape,) = attributes
    if len(shape) < len(sigs[0].shape) or broadcast("broadcast_to", [sigs[0].shape, shape]) != shape:
        raise ShapeError(f"broadcast_to: {sigs[0].shape} does not broadcast to {shape}")
    return shape, sigs[0].dtype


def padded(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    """attributes = (((before, after), …),); the second input is the value, a scalar."""
    (widths,) = attributes
    padding = zip(sigs[0].shape, widths, strict=True)
    return tuple(size + before + after for size, (before, after) in padding), sigs[0].dtype


def sliced(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    """attributes = (((start, stop, step), …),), steps positive, within the shape."""
    return tuple(len(range(*each)) for each in attributes[0]), sigs[0].dtype


def windowed(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    """attributes = (axis, size, stride, dilation): the axis counts windows, a new last one their elements."""
    axis, size, stride, dilation = attributes
    shape = sigs[0].shape
    count = (shape[axis] - dilation * (size - 1) - 1) // stride + 1
    if count < 1:
        raise ShapeError(
            f"window of {size} elements, {dilation} apart, along axis {axis} of {shape}: it spans "
            f"{dilation * (size - 1) + 1} elements of {shape[axis]}; pad x, or use a smaller window"
        )
    return (*shape[:axis], count, *shape[axis + 1 :], size), sigs[0].dtype


def taken(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    """take: attributes = (axis,), which becomes the index's axes."""
    (axis,) = attributes
    x, index = sigs
    check_kind("take (its indices)", "iu", index.dtype)
    _check_countable("take", x)
    return (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]), x.dtype


def taken_along(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    """take_along: attributes = (axis,); the index has x's rank, and broadcasts with it on the other axes."""
    (axis,) = attributes
    x, index = sigs
    check_kind("take_along_axis (its indices)", "iu", index.dtype)
    _check_countable("take_along_axis", x)
    if len(x.shape) != len(index.shape):
        raise ShapeError(
            f"take_along_axis: x {x.shape} and the indices {index.shape} must have the same number of "
            "dimensions"
        )
    others = broadcast(
        "take_along_axis",
        [(*x.shape[:axis], *x.shape[axis + 1 :]), (*index.shape[:axis], *index.shape[axis + 1 :])],
    )
    return (*others[:axis], index.shape[axis], *others[axis:]), x.dtype


def scanned(name: str, types: str) -> Infer:
    """The rule of a scan along attributes = (axis,): nothing changes."""

    def infer(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
        check_kind(name, types, sigs[0].dtype)
        return sigs[0].shape, sigs[0].dtype

    return infer


def scattered(name: str, types: str) -> Infer:
    """The rule of base (rows, columns), index (count,), updates (count, columns): base with rows written."""

    def infer(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
        check_kind(name, types, sigs[0].dtype)
        return _scattered(sigs)

    return infer


def check_binding(op: str, *sigs: Signature, width: int = 0) -> None:
    """Refuse values too large for one binding of a kernel; elements take at least `width` bytes in it."""
    for sig in sigs:
        nbytes = sig.size * max(width, sig.dtype.itemsize)
        if sig.device.is_gpu and nbytes > sig.device.profile.max_binding_bytes:
            raise BufferError(
                f"{op}: {sig!r} takes {nbytes:,} bytes, and {sig.device.name} takes at most "
                f"{sig.device.profile.max_binding_bytes:,} here: work in parts, or on the cpu with "
                "x.to_device('cpu')"
            )


def _scattered(sigs: Sigs) -> Result:
    base, index, updates = sigs
    check_kind("scatter (its indices)", "iu", index.dtype)
    if (
        len(base.shape) != 2
        or updates.shape != (*index.shape, base.shape[1])
        or base.dtype is not updates.dtype
    ):
        raise ShapeError(f"scatter of {updates!r} at {index!r} into {base!r}: the rows have different shapes")
    check_binding("scatter", *sigs)
    return base.shape, base.dtype


def sorting(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    """The indices that sort the last axis."""
    check_kind("sort (its keys)", "u", sigs[0].dtype)
    if sigs[0].dtype is dtypes.uint64 and sigs[0].device.is_gpu:
        raise DTypeError(
            "sort_order of uint64: GPUs sort keys of 32 bits, the low words and then the high ones"
        )
    check_binding("sort", sigs[0], width=4)
    return sigs[0].shape, dtypes.int32

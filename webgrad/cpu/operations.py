"""What NumPy does for a node: one function of arrays, and what is known about it.

In: a node's signature, its inputs' signatures, and the shape of the result, which is the whole of it or one
block. Out: an `Operation`. float16 and bfloat16 have two forms: narrow, as they are stored, and wide, as
float32, in which they are computed with; an operation says which it takes and gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from ..arrays import Array, np
from ..dtypes import DType, as_dtype, complex_of, float32, float64
from ..graph.node import Signature
from .attention import attention
from .folds import fold_of
from .fourier import half_of_real, real_from_half, transformed
from .functions import element_function
from .ordering import binned_places, counts_between, searched_places, sorted_places, sorted_values
from .pairs import add_to_real, conjugate, multiply, sizes
from .products import matmul
from .scans import scan_of
from .scattering import scatter, set_turned

__all__ = ["Operation", "convert", "iota", "is_by_host", "is_half", "is_view", "operation_of", "wide_type"]

Shape = tuple[int, ...]
Form = Literal["narrow", "wide", "either"]
FEW = 64  # indices that are kept and copied: counting takes ten times as long


@dataclass(frozen=True, slots=True)
class Operation:
    """What to do with the inputs' arrays.

    `into`: the function takes `out` too, and fills it. `view`: the result may be a part of an input.
    `elementwise`: `out` may be an input of the same shape and dtype. `rewrite`: the same function, but it
    writes to its first input, which is contiguous, and gives it back. The form "either": the result has the
    form of the inputs, which is one for all of them but indices.
    """

    function: Callable[..., Any]
    takes: Form = "wide"
    gives: Form = "wide"
    into: bool = False
    view: bool = False
    elementwise: bool = False
    rewrite: Callable[..., Any] | None = None


def is_half(dtype: DType) -> bool:
    """Whether a dtype is computed in another, float32."""
    return dtype.kind == "f" and dtype.itemsize == 2


def wide_type(dtype: DType) -> np.dtype[Any]:
    """The type that NumPy computes in."""
    return np.dtype(np.float32) if is_half(dtype) else dtype.numpy


def is_view(sig: Signature) -> bool:
    """Whether a node's elements are those of its input, at other places."""
    return sig.kind == "move" and sig.op.name != "pad"


def is_by_host(sig: Signature) -> bool:
    """Whether a node of a native plan is computed here: there is no kernel for it."""
    return sig.kind in _HOST_KINDS


_HOST_KINDS = frozenset(("sort", "scatter", "fft", "kernel", "attend"))


def operation_of(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    """The operation of a node that is no leaf."""
    make = _BY_NAME.get(sig.op.name) or _BY_KIND.get(sig.kind)
    return (make and make(sig, inputs, shape)) or _plain(sig)


def _plain(sig: Signature) -> Operation:
    """By the row of the table, whole."""
    dtype = wide_type(sig.dtype)

    def plain(*arrays: Array) -> Array:
        return np.asarray(sig.op.numpy(sig, *arrays)).astype(dtype, copy=False)

    return Operation(plain)


def _map(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    dtype = wide_type(sig.dtype)
    quick = element_function(sig.op.name, sig.op.numpy, wide_type(inputs[-1].dtype))
    if quick is not None and _meets_pairs(sig, inputs):
        return Operation(_by_parts(quick, dtype, shape), into=True)
    if quick is not None:
        return Operation(quick, into=True, elementwise=isinstance(quick, np.ufunc))

    def plain(*arrays: Array) -> Array:
        return np.asarray(sig.op.numpy(*arrays)).astype(dtype, copy=False)

    return Operation(plain)


def _meets_pairs(sig: Signature, inputs: list[Signature]) -> bool:
    """Whether arrays of single numbers meet both parts of pairs: NumPy would go by rows of two."""
    return sig.shape[-1:] == (2,) and any(each.shape[-1:] == (1,) and each.size > 1 for each in inputs)


def _by_parts(function: Callable[..., Any], dtype: np.dtype[Any], shape: Shape) -> Callable[..., Array]:
    """A map of one part after the other."""

    def by_parts(*arrays: Array, out: Array | None = None) -> Array:
        result = np.empty(shape, dtype) if out is None else out
        for at in range(shape[-1]):
            columns = [each[..., min(at, each.shape[-1] - 1)] if each.ndim else each for each in arrays]
            function(*columns, out=result[..., at])
        return result

    return by_parts


# Pairs of floats that are complex numbers


def _multiply_pairs(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    return Operation(multiply, into=True, elementwise=True)


def _conjugate_pairs(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    return Operation(conjugate, into=True, elementwise=True)


def _add_to_real(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    return Operation(add_to_real, into=True, elementwise=True)


def _sizes_of_pairs(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    return Operation(sizes, into=True)


# Casts


def convert(dtype: np.dtype[Any]) -> Callable[..., Array]:
    """The function that rounds or wraps to a dtype: not for floats to integers."""

    def cast(x: Array, out: Array | None = None) -> Array:
        if out is None:
            return x.astype(dtype)
        np.copyto(out, x, casting="unsafe")
        return out

    return cast


def _cast(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    dtype = sig.dtype.numpy
    if inputs[0].dtype.kind != "f" or sig.dtype.kind not in "iu":
        return Operation(convert(dtype), gives="narrow", into=True)
    limits = np.iinfo(dtype)
    low, high = float(limits.min), float(limits.max + 1)  # both are powers of two, and exact

    def saturate(x: Array) -> Array:
        """As kernels convert: what is out of range stops at the ends, NaN becomes 0."""
        x = np.asarray(x)
        result = np.asarray(x.astype(dtype))
        outside = ~((x >= low) & (x < high))  # true for NaN
        if outside.any():
            bad = x[outside]
            ends = np.where(bad > 0, dtype.type(limits.max), dtype.type(limits.min))
            result[outside] = np.where(np.isnan(bad), dtype.type(0), ends)
        return result

    return Operation(saturate, gives="narrow")


def _bitcast(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    dtype = sig.dtype.numpy

    def bits(x: Array) -> Array:
        seen: Array = np.ascontiguousarray(x).view(dtype)
        return seen.reshape(shape)

    return Operation(bits, "narrow", "narrow", view=True)


def iota(dtype: np.dtype[Any], start: int, stop: int) -> Array:
    """Indices from start up to stop; integers wrap."""
    return np.arange(start, stop).astype(dtype, copy=False)


def _iota(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    dtype, (length,) = sig.dtype.numpy, shape
    if length <= FEW:
        return Operation(iota(dtype, 0, length).copy, gives="narrow")
    return Operation(lambda: iota(dtype, 0, length), gives="narrow")


# Movement: "either" form, since elements stay what they are


def _moved(function: Callable[[Array], Array]) -> Operation:
    return Operation(function, "either", "either", view=True)


def _reshape(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    return _moved(lambda x: x.reshape(shape))


def _permute(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    axes = sig.attributes[0]
    return _moved(lambda x: x.transpose(axes))


def _expand(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    return _moved(lambda x: np.broadcast_to(x, shape))


def _slice(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    index = tuple(slice(*each) for each in sig.attributes[0])
    return _moved(lambda x: x[index])


def _flip(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    axes = sig.attributes[0]
    index = tuple(slice(None, None, -1 if axis in axes else 1) for axis in range(len(shape)))
    return _moved(lambda x: x[index])


def _window(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    axis, size, stride, dilation = sig.attributes
    count = shape[axis]

    def window(x: Array) -> Array:
        step = x.strides[axis]
        strides = (*x.strides[:axis], step * stride, *x.strides[axis + 1 :], step * dilation)
        shape = (*x.shape[:axis], count, *x.shape[axis + 1 :], size)
        return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)

    return _moved(window)


def _pad(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    widths = sig.attributes[0]
    inner = tuple(slice(before, side - after) for side, (before, after) in zip(shape, widths, strict=True))

    def pad(x: Array, value: Array, out: Array | None = None) -> Array:
        result = np.empty(shape, x.dtype) if out is None else out
        result[...] = value
        result[inner] = x
        return result

    return Operation(pad, "either", "either", into=True)


# Computed indices: those out of range are clamped, as on a GPU


def _take(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    (axis,) = sig.attributes

    def take(x: Array, index: Array) -> Array:
        return np.take(x, index.astype(np.intp, copy=False), axis=axis, mode="clip")

    return Operation(take, "either", "either")


def _take_along(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    (axis,) = sig.attributes

    def take_row(x: Array, index: Array) -> Array:
        return np.take(x, index.astype(np.intp, copy=False), mode="clip")

    def take_along(x: Array, index: Array) -> Array:
        side = x.shape[axis]
        inside = np.clip(index.astype(np.intp, copy=False), 0, max(side - 1, 0))
        full = (*shape[:axis], side, *shape[axis + 1 :])
        return np.take_along_axis(np.broadcast_to(x, full), np.broadcast_to(inside, shape), axis)

    return Operation(take_row if len(shape) == 1 else take_along, "either", "either")


def _concat(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    (axis,) = sig.attributes

    def concat(*arrays: Array, out: Array | None = None) -> Array:
        return np.concatenate(arrays, axis, out=out)

    pairs = (
        sig.shape[-1] == 2 and axis == len(sig.shape) - 1 and [each.shape[-1] for each in inputs] == [1, 1]
    )
    function = _joined if pairs and sig.dtype in (float32, float64) else concat
    return Operation(function, "either", "either", into=True)


def _joined(real: Array, imaginary: Array, out: Array | None = None) -> Array:
    """Two parts as pairs: NumPy's conversion to complex numbers writes whole ones, so it goes first."""
    result = np.empty((*real.shape[:-1], 2), real.dtype) if out is None else out
    numbers = complex_of(as_dtype(real.dtype)).numpy
    if result.flags.c_contiguous:
        np.copyto(result.view(numbers), real)
        np.copyto(result[..., 1:], imaginary)
        return result
    return np.concatenate((real, imaginary), -1, out=result)


# Folds and products


def _reduce(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation | None:
    fold = fold_of(sig, wide_type(sig.dtype))
    if fold is None:
        return None
    axes = sig.attributes[0]
    return Operation(lambda x: fold(x, axes))


def _contract(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    return Operation(matmul, into=True)


def _scan(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation | None:
    scan = scan_of(sig, wide_type(sig.dtype))
    return None if scan is None else Operation(scan)


def _sort(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    return Operation(sorted_places, gives="narrow")


def _sort_places(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    descending, count = sig.attributes
    return Operation(lambda x: sorted_places(x, descending, count), gives="narrow")


def _sort_values(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    (descending,) = sig.attributes
    return Operation(lambda x: sorted_values(x, descending))


def _search_places(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    (side,) = sig.attributes
    return Operation(lambda line, x: searched_places(line, x, side), gives="narrow")


def _bin_places(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    return Operation(binned_places, gives="narrow")


def _counts_between(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    return Operation(counts_between, gives="narrow")


def _scatter(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    how = sig.op.name.removeprefix("scatter_")
    if sig.attributes:
        write = partial(set_turned, *sig.attributes)
        return Operation(write, "narrow", "narrow", rewrite=partial(write, reuse=True))
    form: Form = "narrow" if how == "set" else "wide"  # nothing is computed with what is only set
    return Operation(partial(scatter, how), form, form, rewrite=partial(scatter, how, reuse=True))


# Fourier transforms


def _fft(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    inverse, scale, axis = sig.attributes
    return Operation(lambda x: transformed(x, inverse, scale, axis))


def _rfft(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    (scale,) = sig.attributes
    return Operation(lambda x: half_of_real(x, scale))


def _irfft(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    length, scale = sig.attributes
    return Operation(lambda x: real_from_half(x, length, scale))


def _attend(sig: Signature, inputs: list[Signature], shape: Shape) -> Operation:
    return Operation(attention(sig, wide_type(sig.dtype)), "narrow")


Maker = Callable[[Signature, list[Signature], Shape], Operation | None]
_BY_KIND: dict[str, Maker] = {
    "map": _map,
    "reduce": _reduce,
    "contract": _contract,
    "attend": _attend,
    "scan": _scan,
    "sort": _sort,
    "scatter": _scatter,
}
_BY_NAME: dict[str, Maker] = {
    "multiply_pairs": _multiply_pairs,
    "conjugate_pairs": _conjugate_pairs,
    "add_to_real": _add_to_real,
    "sizes_of_pairs": _sizes_of_pairs,
    "cast": _cast,
    "bitcast": _bitcast,
    "iota": _iota,
    "reshape": _reshape,
    "permute": _permute,
    "expand": _expand,
    "slice": _slice,
    "flip": _flip,
    "window": _window,
    "pad": _pad,
    "take": _take,
    "take_along": _take_along,
    "concat": _concat,
    "matmul_blocks": lambda sig, inputs, shape: _plain(sig),
    "sort_places": _sort_places,
    "sort_values": _sort_values,
    "search_places": _search_places,
    "bin_places": _bin_places,
    "counts_between": _counts_between,
    "fft": _fft,
    "rfft": _rfft,
    "irfft": _irfft,
}

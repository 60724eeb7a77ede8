"""Nodes from nodes: the primitives as functions, with promotion, broadcasting and checks at the call.

In: nodes and Python numbers. Out: nodes. Everything a user can call is composed of these. Complex numbers
are moved as pairs of floats along a new last axis, and computed by formulas over their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from ..dtypes import DType, dtype_of_scalar, float32, part_of, promote
from ..errors import DeviceError, DTypeError, ShapeError
from ..gradients.history import grad_mode
from ..graph.node import Node, make, scalar, source
from ..graph.op import SCALAR, Op
from ..graph.trace import current_trace, is_runtime
from ..values import stored
from .shapes import MAX_GPU_COUNT, broadcast, check_kind, check_rank
from .table import TABLE

Number = bool | int | float | complex
_LARGEST = (2 - 2.0**-23) * 2.0**127  # of float32
_CAST = TABLE["cast"]
_AS_REAL, _AS_COMPLEX, _CONCAT, _WHERE = (
    TABLE[each] for each in ("as_real", "as_complex", "concat", "where")
)
_RESHAPE, _PERMUTE = TABLE["reshape"], TABLE["permute"]


def cast(x: Node, dtype: DType) -> Node:
    """x in another dtype; x itself where it has that dtype."""
    if x.sig.dtype is dtype:
        return x
    device = x.sig.device
    if dtype.feature and device.is_gpu and dtype.feature not in device.features:
        raise DTypeError(
            f"{x.sig.dtype.name} to {dtype.name}: {device.name} has no {dtype.name}; use a smaller type, or "
            "the cpu"
        )
    if dtype.kind == "c" or x.sig.dtype.kind == "c":
        return _cast_complex(x, dtype)
    if x.sig.op is SCALAR and not is_runtime(x.storage):
        return constant("cast", x.storage, dtype, device, wrap=True)
    return make(_CAST, (x,), (dtype,))


def _cast_complex(x: Node, dtype: DType) -> Node:
    """To or from a complex dtype; complex numbers do not become real ones."""
    if x.sig.dtype.kind != "c":
        real = cast(x, part_of(dtype))
        return join(real, constant("cast", 0.0, part_of(dtype), x.sig.device))
    if dtype.kind == "b":
        return elementwise(TABLE["not_equal"], x, 0)
    if dtype.kind != "c":
        raise DTypeError(
            f"{x.sig.dtype.name} to {dtype.name}: a complex number has two parts: take webgrad.real(x), "
            "webgrad.imag(x) or webgrad.abs(x), and convert that"
        )
    return as_complex(cast(as_real(x), part_of(dtype)))


# Complex numbers and their parts


def as_real(x: Node) -> Node:
    """Complex numbers as pairs of floats: a new last axis of two."""
    inputs = x.inputs  # read once: another thread may compute x, which then has no inputs
    if inputs and x.sig.op is _AS_COMPLEX and x.history is None:
        return _same(inputs[0])
    return make(_AS_REAL, (x,))


def as_complex(pairs: Node) -> Node:
    """Pairs of floats, along the last axis, as complex numbers."""
    return make(_AS_COMPLEX, (pairs,))


def join(real: Node, imaginary: Node) -> Node:
    """Complex numbers from their parts, floats of one dtype, broadcast."""
    shape = broadcast("complex", (real.sig.shape, imaginary.sig.shape))
    one = (*shape, 1)
    halves = [reshape(expand(each, shape), one) for each in (real, imaginary)]
    return as_complex(make(_CONCAT, tuple(halves), (len(shape),)))


def parts(x: Node) -> tuple[Node, Node]:
    """The real and the imaginary part of complex numbers; the imaginary part of real ones is 0."""
    if x.sig.dtype.kind != "c":
        return x, constant("complex", 0, x.sig.dtype, x.sig.device)
    shape = x.sig.shape
    halves = _halves(x)
    if halves is None:
        pairs, whole = as_real(x), tuple((0, size, 1) for size in shape)
        halves = (slice_(pairs, (*whole, (0, 1, 1))), slice_(pairs, (*whole, (1, 2, 1))))
    return reshape(halves[0], shape), reshape(halves[1], shape)


def _halves(x: Node) -> tuple[Node, ...] | None:
    """The parts that complex numbers were just joined of, unless gradients must go through the join."""
    inputs = x.inputs  # read once, as above
    if not inputs or x.sig.op is not _AS_COMPLEX or (x.history is not None and grad_mode.on):
        return None
    halves, sig = inputs[0].inputs, inputs[0].sig
    joined = len(halves) == 2 and sig.op is _CONCAT and sig.attributes == (len(x.sig.shape),)
    return halves if joined else None


def is_joined(x: Node) -> bool:
    """Whether complex numbers were just joined of their parts."""
    return _halves(x) is not None


Formula = Callable[..., Node]


class ComplexNumbers:
    """How ops of complex numbers are computed: by formulas, one for each op, which are made of the primitives
    here. Whoever has them says so.
    """

    formulas: Callable[[], Mapping[str, Formula]] = dict

    def formula(self, op: Op, dtype: DType) -> Formula:
        """The formula of an op; a dtype that it has none for is refused."""
        known = self.formulas()
        if op.name not in known:
            check_kind(op.name, op.types, dtype)
        return known[op.name]


complex_numbers = ComplexNumbers()


def _parted(op: str, operands: Sequence[Node | Number], dtype: DType, device: Any) -> tuple[Node, ...]:
    """Operands of arithmetic with complex numbers: complex, or real in the dtype of their parts."""
    found: list[Node] = []
    for each in operands:
        is_complex = each.sig.dtype.kind == "c" if isinstance(each, Node) else isinstance(each, complex)
        found += _cast_operands(op, (each,), dtype if is_complex else part_of(dtype), device)
    return tuple(found)


def choose(condition: Node, first: Node, second: Node) -> Node:
    """`first` where a condition holds, else `second`; both of one dtype."""
    if first.sig.dtype.kind == "c":
        shape = broadcast("where", [each.sig.shape for each in (condition, first, second)])
        condition = reshape(expand(condition, shape), (*shape, 1))
        pairs = [as_real(expand(each, shape)) for each in (first, second)]
        return as_complex(make(_WHERE, (condition, *pairs)))
    return make(_WHERE, (condition, first, second))


# Maps


_REAL: Any = frozenset((float, int))


def elementwise(op: Op, *operands: Node | Number) -> Node:
    """A map op over nodes of one device, cast to one dtype; Python numbers take the dtype of the nodes."""
    if len(operands) == 1:  # the common cases first: this is called for every operator
        (a,) = operands
        if a.__class__ is Node and a.sig.dtype.kind != "c":
            return make(op, (a,))
    elif len(operands) == 2:
        x: Any
        y: Any
        x, y = operands
        if x.__class__ is Node:
            left = x.sig
            if y.__class__ is Node:
                right = y.sig
                if left.dtype is right.dtype and left.device is right.device and left.dtype.kind != "c":
                    return make(op, (x, y))
            elif left.dtype is float32 and y.__class__ in _REAL and -_LARGEST < y < _LARGEST:
                return make(op, (x, scalar(float(y), float32, left.device)))
        elif y.sig.dtype is float32 and x.__class__ in _REAL and -_LARGEST < x < _LARGEST:
            return make(op, (scalar(float(x), float32, y.sig.device), y))
    dtype, device = _promotion(op.name, operands)
    if dtype.kind == "c":
        return complex_numbers.formula(op, dtype)(operands)
    return make(op, _cast_operands(op.name, operands, dtype, device))


def common(op: str, operands: Sequence[Node | Number]) -> tuple[Node, ...]:
    """Operands as nodes of one dtype on one device."""
    return _cast_operands(op, operands, *_promotion(op, operands))


def factors(op: str, operands: Sequence[Node | Number]) -> tuple[Node, ...]:
    """`common`, but real operands of complex products stay real: that is half the work."""
    dtype, device = _promotion(op, operands)
    return (_parted if dtype.kind == "c" else _cast_operands)(op, operands, dtype, device)


def _promotion(op: str, operands: Sequence[Node | Number]) -> tuple[DType, Any]:
    """The dtype that operands promote to, and the device that all of them must be on."""
    nodes = [each for each in operands if isinstance(each, Node)]
    check_device(op, *nodes)
    first = nodes[0].sig
    dtype: DType = first.dtype
    for node in nodes[1:]:
        dtype = promote(dtype, node.sig.dtype)
    if len(nodes) != len(operands):
        for each in operands:
            if each.__class__ is not Node:
                dtype = dtype_of_scalar(each, dtype)
    return dtype, first.device


def _cast_operands(op: str, operands: Sequence[Node | Number], dtype: DType, device: Any) -> tuple[Node, ...]:
    return tuple(
        [
            cast(each, dtype) if each.__class__ is Node else constant(op, each, dtype, device)
            for each in operands
        ]
    )


def constant(op: str, value: Any, dtype: DType, device: Any, *, wrap: bool = False) -> Node:
    """A Python number as a node of a dtype that can hold it; with `wrap` a value out of range is cast."""
    if dtype.kind == "c" and isinstance(value, (bool, int, float, complex)):
        part = part_of(dtype)
        return join(
            *[constant(op, each, part, device) for each in (complex(value).real, complex(value).imag)]
        )
    try:
        if wrap and dtype.kind in "iu":
            value = _cast_to_integer(value, dtype)
        value = bool(value) if dtype.kind == "b" else float(value) if dtype.kind == "f" else int(value)
    except (TypeError, ValueError, OverflowError):
        raise DTypeError(f"{op}: {value!r} is not a number of {dtype.name}") from None
    if dtype.kind == "f" and (dtype.is_half or not -_LARGEST < value < _LARGEST):
        value = stored(value, dtype)
    if dtype.kind in "iu":
        low, high = dtype.limits
        if not low <= value <= high:
            raise DTypeError(
                f"{op}: {value} does not fit {dtype.name}, which holds {low} to {high}: use a wider "
                "type, for a tensor by x.astype"
            )
    return scalar(value, dtype, device)


def _cast_to_integer(value: Any, dtype: DType) -> int:
    """A number cast to an integer dtype: floats are clamped to its range, integers wrap."""
    low, high = dtype.limits
    if isinstance(value, float):
        return 0 if value != value else int(min(max(value, low), high))
    wrapped: int = (int(value) - low) % (1 << dtype.bits) + low
    return wrapped


def iota(length: int, dtype: DType, device: Any) -> Node:
    """0, 1, 2, …"""
    if device.is_gpu and length > MAX_GPU_COUNT:
        raise ShapeError(f"arange of {length:,} elements: GPUs count to {MAX_GPU_COUNT:,}; make it in parts")
    return source(TABLE["iota"], (length,), dtype, device)


def reshape(x: Node, shape: tuple[int, ...]) -> Node:
    """The same elements in another shape."""
    if x.sig.dtype.kind == "c":
        return as_complex(reshape(as_real(x), (*shape, 2)))
    if x.sig.shape == shape:
        return _same(x)
    check_rank(shape)
    return make(_RESHAPE, (x,), (shape,))


def _same(x: Node) -> Node:
    """x itself; under no_grad a node without a history, since a result must not require gradients."""
    return x if grad_mode.on or x.history is None else alias(x)


def alias(x: Node) -> Node:
    """A new node of the same value; it has a history if gradients go through x.

    While a function is captured, tensors hold its leaves, so no other node may have their storage.
    """
    if x.storage is not None and x.history is None and current_trace() is None:
        return Node(x.sig, (), x.storage, x.where)
    if x.sig.dtype.kind == "c":
        return as_complex(as_real(x))
    return make(TABLE["reshape"], (x,), (x.sig.shape,))


def permute(x: Node, axes: tuple[int, ...]) -> Node:
    """Axis i of the result is axis axes[i] of x."""
    if x.sig.dtype.kind == "c":
        return as_complex(permute(as_real(x), (*axes, len(axes))))
    return _same(x) if axes == axes_of(len(axes)) else make(_PERMUTE, (x,), (axes,))


@cache
def axes_of(rank: int) -> tuple[int, ...]:
    """All axes of a tensor, in order."""
    return tuple(range(rank))


def expand(x: Node, shape: tuple[int, ...]) -> Node:
    """x repeated along axes of size 1, and new leading ones."""
    if x.sig.dtype.kind == "c":
        return as_complex(expand(as_real(x), (*shape, 2)))
    if x.sig.shape == shape:
        return _same(x)
    check_rank(shape)
    return make(TABLE["expand"], (x,), (shape,))


def pad(x: Node, widths: tuple[tuple[int, int], ...], value: Number = 0) -> Node:
    """x with `value` before and after it on each axis."""
    if all(before == after == 0 for before, after in widths):
        return _same(x)
    if x.sig.dtype.kind == "c":
        real, imaginary = parts(x)
        return join(pad(real, widths, complex(value).real), pad(imaginary, widths, complex(value).imag))
    return make(TABLE["pad"], (x, constant("pad", value, x.sig.dtype, x.sig.device)), (widths,))


@lru_cache(4096)
def whole_ranges(shape: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    """Slices that are all of each axis."""
    return tuple([(0, size, 1) for size in shape])


def slice_(x: Node, ranges: tuple[tuple[int, int, int], ...]) -> Node:
    """Slices of each axis as (start, stop, step), with positive steps and within its size."""
    if ranges == whole_ranges(x.sig.shape):
        return _same(x)
    if x.sig.dtype.kind == "c":
        return as_complex(slice_(as_real(x), (*ranges, (0, 2, 1))))
    return make(TABLE["slice"], (x,), (ranges,))


def flip(x: Node, axes: tuple[int, ...]) -> Node:
    """x reversed along some axes."""
    if x.sig.dtype.kind == "c":
        return as_complex(flip(as_real(x), axes))
    return make(TABLE["flip"], (x,), (axes,)) if axes else _same(x)


def window(x: Node, axis: int, size: int, stride: int = 1, dilation: int = 1) -> Node:
    """All windows along an axis: the axis counts windows, a new last axis has their elements."""
    if x.sig.dtype.kind == "c":
        apart = window(as_real(x), axis, size, stride, dilation)
        rank = len(apart.sig.shape)
        return as_complex(permute(apart, (*range(rank - 2), rank - 1, rank - 2)))
    return make(TABLE["window"], (x,), (axis, size, stride, dilation))


def reduce(op: Op, x: Node, axes: tuple[int, ...]) -> Node:
    """A reduction over axes, which the result lacks."""
    if x.sig.dtype.kind == "c":
        return _folded(op, x, axes)
    return make(op, (x,), (axes,)) if axes else _same(x)


def _folded(op: Op, x: Node, axes: tuple[int, ...]) -> Node:
    """A reduction of complex numbers: sums part by part, products by a formula."""
    if op.name == "sum":
        return as_complex(reduce(op, as_real(x), axes))
    return complex_numbers.formula(op, x.sig.dtype)(x, axes)


def concat(xs: Sequence[Node], axis: int) -> Node:
    """Nodes of one dtype concatenated along an axis."""
    if len(xs) == 1:
        return _same(xs[0])
    nodes = common("concat", xs)
    if nodes[0].sig.dtype.kind == "c":
        return as_complex(make(_CONCAT, tuple(map(as_real, nodes)), (axis,)))
    return make(_CONCAT, nodes, (axis,))


def contract(a: Node, b: Node) -> Node:
    """(…, m, k) @ (…, k, n)."""
    if a.sig.dtype.kind == "c" or b.sig.dtype.kind == "c":
        return complex_numbers.formula(TABLE["matmul"], promote(a.sig.dtype, b.sig.dtype))(a, b)
    return make(TABLE["matmul"], common("matmul", (a, b)))


def check_device(op: str, *nodes: Node) -> None:
    """Refuse nodes of different devices."""
    device = nodes[0].sig.device
    for each in nodes[1:]:
        if each.sig.device is not device:
            raise DeviceError(
                f"{op}: one operand is on {device.name}, another on {each.sig.device.name}: move one with "
                f"x.to_device({device.name!r})"
            )


def take(x: Node, index: Node, axis: int) -> Node:
    """Elements of an axis by index; the index's axes replace it. Indices must be in range."""
    check_device("take", x, index)
    if x.sig.dtype.kind == "c":
        return as_complex(take(as_real(x), index, axis))
    return make(TABLE["take"], (x, index), (axis,))


def take_along(x: Node, index: Node, axis: int) -> Node:
    """x[…, index[…, i, …], …]: an index for each element of the result."""
    check_device("take_along_axis", x, index)
    if x.sig.dtype.kind == "c":
        return as_complex(take_along(as_real(x), reshape(index, (*index.sig.shape, 1)), axis))
    return make(TABLE["take_along"], (x, index), (axis,))


def scan(op: Op, x: Node, axis: int) -> Node:
    """Running totals along an axis."""
    if x.sig.dtype.kind == "c":
        if op.name == "cumulative_sum":
            return as_complex(scan(op, as_real(x), axis))
        return complex_numbers.formula(op, x.sig.dtype)(x, axis)
    return make(op, (x,), (axis,))


def sort_order(keys: Node) -> Node:
    """The stable permutation that sorts unsigned keys along the last axis."""
    return make(TABLE["sort_order"], (keys,))


def scatter(op: Op, base: Node, index: Node, updates: Node) -> Node:
    """base (rows, columns) with `updates` (count, columns) set, added or maxed into rows `index` (count,)."""
    check_device(op.name, base, index, updates)
    if base.sig.dtype.kind == "c":
        if op.name == "scatter_max":
            check_kind(op.name, op.types, base.sig.dtype)
        rows = [as_real(each) for each in (base, updates)]
        wide = [reshape(each, (each.sig.shape[0], 2 * each.sig.shape[1])) for each in rows]
        done = scatter(op, wide[0], index, wide[1])
        return as_complex(reshape(done, (*base.sig.shape, 2)))
    return make(op, (base, index, updates))

"""Functions of single elements: those of one row each (`maps.py`), and what is composed of them.

In: tensors; other operands may be numbers and NumPy arrays. Out: tensors of the broadcast shape. Operands
are promoted as the array API says; shapes, dtypes and devices that do not fit are refused at the call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

from ... import dtypes
from ...dtypes import as_dtype
from ...errors import ArgumentError, DeviceError, DTypeError
from ...gradients.own import own_gradient
from ...graph.node import Node, make
from ...ops import primitives, shapes
from ...ops.host_arrays import check_dtype
from ...ops.primitives import elementwise
from ...ops.table import TABLE
from ...runtime.device import DeviceLike
from ...tensor import Tensor
from ...values import float_limits_of
from .creation import as_tensor
from .maps import *  # noqa: F403
from .maps import abs, exp, isfinite, isinf, isnan, log1p, maximum, minimum, sigmoid, sqrt
from .masks import nonzero
from .rows import function_of, operands, truth_of


def as_floats(op: str, *values: Any) -> list[Tensor]:
    """Operands as tensors of one floating dtype; where there are no floats, of float32."""
    nodes = primitives.common(op, operands(op, *values))
    if nodes[0].sig.dtype.kind in "biu":
        nodes = tuple(primitives.cast(each, dtypes.float32) for each in nodes)
    shapes.check_kind(op, "f", nodes[0].sig.dtype)
    return [Tensor(each) for each in nodes]


def _broadcast_floats(op: str, *values: Any) -> list[Tensor]:
    """`as_floats`, with operands that require a gradient broadcast to one shape: the gradient of `expand`
    then sums over what was repeated.
    """
    found = as_floats(op, *values)
    shape = shapes.broadcast(op, [each.shape for each in found])
    return [
        each if each.node.history is None else Tensor(primitives.expand(each.node, shape)) for each in found
    ]


# Composed


pow = function_of(TABLE["power"], "pow")  # the array API's name


def positive(x: Tensor) -> Tensor:
    """The same values.

    >>> wg.positive(wg.asarray([-1, 2])).tolist()
    [-1, 2]
    """
    return Tensor(as_tensor("positive", x).node)


def square(x: Tensor) -> Tensor:
    """x times itself.

    >>> wg.square(wg.asarray([-1, 3])).tolist()
    [1, 9]
    """
    node = as_tensor("square", x).node
    shapes.check_kind("square", "iufc", node.sig.dtype)
    return Tensor(elementwise(TABLE["multiply"], node, node))


def reciprocal(x: Tensor) -> Tensor:
    """1 / x.

    >>> wg.reciprocal(wg.asarray([2.0, 4.0])).tolist()
    [0.5, 0.25]
    """
    return 1 / as_tensor("reciprocal", x)


@overload
def where(condition: Tensor, /) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor: ...
def where(condition: Tensor, x1: Any = None, x2: Any = None, /) -> Tensor | tuple[Tensor, ...]:
    """x1 where the condition is true, else x2; of a condition alone what `nonzero` gives, as in NumPy.

    >>> wg.where(wg.asarray([True, False]), wg.asarray([1, 2]), 0).tolist()
    [1, 0]
    """
    condition = as_tensor("where", condition)
    if x1 is None and x2 is None:
        return nonzero(condition)
    if x1 is None or x2 is None:
        raise ArgumentError(
            "where takes a condition and two choices, or a condition alone; here one choice is None"
        )
    device = condition.device
    _, *choices = operands("where", condition, x1, x2)
    if not any(isinstance(each, Node) for each in choices):
        choices = [_constant(choices, device), choices[1]]
    first, second = primitives.common("where", choices)
    if first.sig.device is not device:
        raise DeviceError(
            f"where: the condition is on {device.name}, the choices on {first.sig.device.name}: move one "
            f"with x.to_device({device.name!r})"
        )
    return Tensor(primitives.choose(truth_of(condition.node), first, second))


def _constant(numbers: Sequence[Any], device: Any) -> Node:
    """The first of some numbers in the type of all: the widest of complex64, float32, int32 and bool."""
    kinds = {type(each) for each in numbers}
    dtype = as_dtype(next(each for each in (complex, float, int, bool) if each in kinds))
    return primitives.constant("where", numbers[0], dtype, device)


def clip(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """x clamped to two bounds, numbers or tensors; None is no bound, and NaN stays.

    The gradient goes to x between the bounds and at them.

    >>> wg.clip(wg.asarray([-2.0, 0.5, 7.0]), 0, 1).tolist()
    [0.0, 0.5, 1.0]
    """
    node = as_tensor("clip", x).node
    for row, bound in (("clamp_min", min), ("clamp_max", max)):
        if bound is not None:
            both = primitives.common("clip", operands("clip", Tensor(node), bound))
            shapes.check_kind("clip", "biuf", both[0].sig.dtype)
            node = elementwise(TABLE[row], *both)
    return Tensor(node)


clamp = clip


def lerp(a: Tensor, b: Any, weight: Any) -> Tensor:
    """Linear interpolation from a to b: a where the weight is 0, b where it is 1, exactly.

    >>> wg.lerp(wg.asarray([0.0, 10.0]), 20.0, 0.25).tolist()
    [5.0, 12.5]
    """
    start, stop, share = _broadcast_floats("lerp", a, b, weight)

    def between() -> Tensor:
        whole = stop - start
        return where(share < 0.5, start + whole * share, stop - whole * (1 - share))

    return own_gradient(
        between,
        (start, lambda g: g * (1 - share)),
        (stop, lambda g: g * share),
        (share, lambda g: g * (stop - start)),
    )


def nan_to_num(
    x: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """NaN and infinities replaced: by 0, and by the largest and lowest numbers of the dtype.

    >>> wg.nan_to_num(wg.asarray([1.0, wg.nan])).tolist()
    [1.0, 0.0]
    """
    x = as_tensor("nan_to_num", x)
    if x.dtype.kind == "c":
        pairs = nan_to_num(Tensor(primitives.as_real(x.node)), nan, posinf, neginf)
        return Tensor(primitives.as_complex(pairs.node))
    if x.dtype.kind != "f":
        return +x
    most = float_limits_of(x.dtype)[1]
    result = where(isnan(x), nan, x)
    result = where(x == math.inf, most if posinf is None else posinf, result)
    return where(x == -math.inf, -most if neginf is None else neginf, result)


def signbit(x: Tensor) -> Tensor:
    """Whether the sign bit is set, also of -0.0 and NaN.

    >>> wg.signbit(wg.asarray([-0.0, 0.0])).tolist()
    [True, False]
    """
    x = as_tensor("signbit", x)
    shapes.check_kind("signbit", "biuf", x.dtype)
    if x.dtype.kind != "f":
        return x < 0
    # By bits: a conversion from float64 may lose the sign of NaN.
    bits = dtypes.int64 if x.dtype is dtypes.float64 else dtypes.int32
    wide = x if bits is dtypes.int64 else x.astype(dtypes.float32)
    return Tensor(make(TABLE["bitcast"], (wide.node,), (bits,))) < 0


def copysign(x1: Any, x2: Any, /) -> Tensor:
    """The value of x1 with the sign of x2.

    >>> wg.copysign(wg.asarray([1.0, 2.0]), wg.asarray([-1.0, 1.0])).tolist()
    [-1.0, 2.0]
    """
    value, signed = as_floats("copysign", x1, x2)
    return where(signbit(signed), -abs(value), abs(value))


def nextafter(x1: Any, x2: Any, /) -> Tensor:
    """The next number of the dtype after x1 on the way to x2; x2 where they are equal.

    The gradient is x1's.

    >>> wg.nextafter(wg.asarray([1.0, 0.0]), 2.0).tolist()
    [1.0000001192092896, 1.401298464324817e-45]
    """
    start, stop = _broadcast_floats("nextafter", x1, x2)
    return own_gradient(lambda: _next(start, stop), (start, lambda g: g), (stop, lambda g: g * 0))


def _next(start: Tensor, stop: Tensor) -> Tensor:
    # Only by bits, since GPUs may take the smallest numbers for 0: without the sign they count upwards.
    signed = _SIGNED[start.dtype.itemsize]
    low = -(1 << (8 * start.dtype.itemsize - 1))
    bits, towards = (Tensor(make(TABLE["bitcast"], (each.node,), (signed,))) for each in (start, stop))
    count, goal = (where(each < 0, low - each, each) for each in (bits, towards))
    moved = where(goal > count, count + 1, count - 1)
    minus = (moved < 0) | ((moved == 0) & (bits < 0))
    result = where(goal == count, towards, where(minus, low - moved, moved))
    nan = isnan(start) | isnan(stop)
    return where(nan, math.nan, Tensor(make(TABLE["bitcast"], (result.node,), (start.dtype,))))


_SIGNED = {2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}


def hypot(x1: Any, x2: Any, /) -> Tensor:
    """sqrt(x1² + x2²), which does not overflow on the way.

    >>> wg.hypot(wg.asarray([3.0]), wg.asarray([4.0])).tolist()
    [5.0]
    """
    given = _broadcast_floats("hypot", x1, x2)
    dtype = given[0].dtype
    wide = dtypes.float32 if dtype.is_half else dtype
    first, second = (each.astype(wide, copy=False) for each in given)

    def cosine(leg: Tensor) -> Tensor:
        length = hypot(first, second)
        origin = length == 0  # where norms have 0
        return where(origin, 0.0, leg / where(origin, 1.0, length))

    found = own_gradient(
        lambda: _length(abs(first), abs(second)),
        (first, lambda g: g * cosine(first)),
        (second, lambda g: g * cosine(second)),
    )
    return found.astype(dtype, copy=False)


def _length(first: Tensor, second: Tensor) -> Tensor:
    """sqrt(first² + second²) of what is not negative."""
    large, small = maximum(first, second), minimum(first, second)
    ratio = small / where(large == 0, 1.0, large)
    return where((first == math.inf) | (second == math.inf), math.inf, large * sqrt(1 + ratio * ratio))


def logaddexp(x1: Any, x2: Any, /) -> Tensor:
    """log(exp(x1) + exp(x2)), which does not overflow on the way.

    >>> wg.logaddexp(wg.asarray([-wg.inf]), wg.asarray([2.0])).tolist()
    [2.0]
    """
    given = primitives.common("logaddexp", operands("logaddexp", x1, x2))
    if given[0].sig.dtype.kind == "c":
        return _complex_logaddexp(*(Tensor(each) for each in given))
    first, second = _broadcast_floats("logaddexp", x1, x2)
    # Equal ones apart, since the difference of two infinities is NaN.
    return own_gradient(
        lambda: where(
            first == second, first + math.log(2), maximum(first, second) + log1p(exp(-abs(first - second)))
        ),
        (first, lambda g: g * sigmoid(_difference(first, second))),
        (second, lambda g: g * sigmoid(_difference(second, first))),
    )


def _complex_logaddexp(first: Tensor, second: Tensor) -> Tensor:
    """By the one with the larger real part, so that the other's power is 1 at most."""
    falls = first.real >= second.real
    large, small = where(falls, first, second), where(falls, second, first)
    return large + log1p(exp(small - large))


def _difference(first: Tensor, second: Tensor) -> Tensor:
    """first - second; of equal infinities 0."""
    return where(isinf(first) & (first == second), 0.0, first - second)


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether |a - b| ≤ atol + rtol |b|, element by element; infinities are close to themselves only.

    >>> wg.isclose(wg.asarray([1.0, 2.0]), wg.asarray([1.0000001, 2.1])).tolist()
    [True, False]
    """
    first, second = (Tensor(each) for each in primitives.common("isclose", operands("isclose", a, b)))
    if first.dtype.kind not in "fc":
        first, second = first.astype(dtypes.float32), second.astype(dtypes.float32)
    near = (abs(first - second) <= atol + rtol * abs(second)) & isfinite(second)
    result = near | (first == second)
    return result | (isnan(first) & isnan(second)) if equal_nan else result


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are close, as one bool: computes and reads.

    >>> wg.allclose(wg.asarray([1.0, 2.0]), wg.asarray([1.0, 2.000001]))
    True
    """
    return bool(isclose(a, b, rtol, atol, equal_nan).all())


def array_equal(a: Tensor, b: Tensor, equal_nan: bool = False) -> bool:
    """Whether shapes and all elements are equal, as one bool: computes and reads.

    >>> wg.array_equal(wg.asarray([1, 2]), wg.asarray([1, 2]))
    True
    """
    first, second = as_tensor("array_equal", a), as_tensor("array_equal", b)
    if first.shape != second.shape:
        return False
    same = first == second
    if equal_nan and first.dtype.kind == second.dtype.kind == "f":
        same = same | (isnan(first) & isnan(second))
    return bool(same.all())


# Types


def astype(x: Tensor, dtype: Any, *, copy: bool = True, device: DeviceLike = None) -> Tensor:
    """The values in another dtype: floats to integers by truncation, clamped, NaN as 0; integers wrap.

    >>> wg.astype(wg.asarray([1.9, -1.9, 300.0]), wg.uint8).tolist()
    [1, 0, 255]
    """
    x = as_tensor("astype", x) if device is None else as_tensor("astype", x).to_device(device)
    wanted = as_dtype(dtype)
    if wanted is x.dtype:
        return +x if copy else x
    check_dtype("astype", wanted, x.device)
    return Tensor(primitives.cast(x.node, wanted))


def bitcast(x: Tensor, dtype: Any) -> Tensor:
    """The same bits as another dtype of the same width.

    >>> hex(wg.bitcast(wg.asarray([1.0]), wg.uint32).item())
    '0x3f800000'
    """
    x = as_tensor("bitcast", x)
    wanted = as_dtype(dtype)
    if wanted.itemsize != x.dtype.itemsize or "b" in (wanted.kind, x.dtype.kind):
        raise DTypeError(
            f"bitcast from {x.dtype.name} to {wanted.name}: both must have the same width, and neither be "
            "bool; astype converts values"
        )
    check_dtype("bitcast", wanted, x.device)
    return Tensor(x.node if wanted is x.dtype else make(TABLE["bitcast"], (x.node,), (wanted,)))

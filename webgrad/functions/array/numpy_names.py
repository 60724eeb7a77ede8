"""NumPy's names, where the array API has another one, and small functions that only NumPy has.

In: tensors. Out: tensors.
"""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...dtypes import promote
from ...errors import ArgumentError
from ...ops.shapes import check_kind
from ...tensor import Tensor
from ..complex.parts import conj, imag
from .arithmetic import deg2rad, rad2deg
from .creation import as_tensor, asarray, eye, full_like, tensor
from .elementwise import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_right_shift,
    divide,
    floor_divide,
    isinf,
    power,
    remainder,
    round,
    sign,
    trunc,
    where,
)
from .indexing import take
from .manipulation import concat, pad, vstack
from .reductions import any as any_of
from .reductions import sum as total
from .reshaping import expand_dims, flatten, moveaxis, reshape
from .sorting import argsort, sort

absolute = fabs = abs
arccos, arcsin, arctan, arctan2 = acos, asin, atan, atan2
arccosh, arcsinh, arctanh = acosh, asinh, atanh
array, asanyarray, ascontiguousarray = tensor, asarray, asarray
bitwise_not = invert = bitwise_invert
concatenate = concat
conjugate = conj
degrees, radians = rad2deg, deg2rad
fix, rint = trunc, round
identity = eye
left_shift, right_shift = bitwise_left_shift, bitwise_right_shift
mod = remainder
promote_types = promote
ravel = flatten
row_stack = vstack
true_divide = divide


def copy(x: Tensor) -> Tensor:
    """A tensor of the same values; changing one of them leaves the other as it is.

    >>> wg.copy(wg.asarray([1, 2])).tolist()
    [1, 2]
    """
    return +as_tensor("copy", x)


def around(x: Tensor, decimals: int = 0) -> Tensor:
    """The nearest numbers with so many decimals; halves go to the even one.

    >>> print(wg.around(wg.asarray([1.25, 2.675]), 1).numpy().round(4))
    [1.2 2.7]
    """
    x = as_tensor("around", x)
    if not decimals or (decimals > 0 and x.dtype.kind in "iub"):
        return round(x)
    if x.dtype.kind in "iu":
        step: int = 10**-decimals
        return (round(x / step) * step).astype(x.dtype)
    scale = 10.0**decimals
    return round(x * scale) / scale


def cbrt(x: Tensor) -> Tensor:
    """The cube root.

    >>> print(wg.cbrt(wg.asarray([8.0, -27.0])).numpy().round(4))
    [ 2. -3.]
    """
    x = as_tensor("cbrt", x)
    check_kind("cbrt", "biuf", x.dtype)
    x = x if x.dtype.kind == "f" else x.astype(dtypes.float32)
    return sign(x) * power(abs(x), 1 / 3)


def divmod(x1: Any, x2: Any, /) -> tuple[Tensor, Tensor]:
    """The floors of quotients, and the remainders.

    >>> [each.tolist() for each in wg.divmod(wg.asarray([7, -7]), 3)]
    [[2, -3], [1, 2]]
    """
    return floor_divide(x1, x2), remainder(x1, x2)


def modf(x: Tensor) -> tuple[Tensor, Tensor]:
    """What is behind the point, and what is before it, both of the sign of x.

    >>> [each.tolist() for each in wg.modf(wg.asarray([1.5, -2.25]))]
    [[0.5, -0.25], [1.0, -2.0]]
    """
    x = as_tensor("modf", x)
    x = x if x.dtype.kind == "f" else x.astype(dtypes.float32)
    whole = trunc(x)
    return where(isinf(x), 0.0 * sign(x), x - whole), whole


def float_power(x1: Any, x2: Any, /) -> Tensor:
    """The power of numbers as floats: of integers too.

    >>> print(wg.float_power(wg.asarray([2, 3]), -1).numpy().round(4))
    [0.5    0.3333]
    """
    first, second = (
        each.astype(dtypes.float32) if isinstance(each, Tensor) and each.dtype.kind in "biu" else each
        for each in (x1, x2)
    )
    return power(first if isinstance(first, Tensor) else first * 1.0, second)


def iscomplex(x: Tensor) -> Tensor:
    """Whether the imaginary part is not zero.

    >>> wg.iscomplex(wg.asarray([1 + 1j, 2 + 0j])).tolist()
    [True, False]
    """
    x = as_tensor("iscomplex", x)
    return imag(x) != 0 if x.dtype.kind == "c" else full_like(x, False, dtypes.bool)


def array_equiv(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are equal where their shapes broadcast; computes them, and waits.

    >>> wg.array_equiv(wg.asarray([1, 1]), wg.asarray(1))
    True
    """
    try:
        different = as_tensor("array_equiv", a) != as_tensor("array_equiv", b)
    except ValueError:  # shapes that do not broadcast
        return False
    return not any_of(different).item()


def partition(x: Tensor, kth: Any, axis: int | None = -1) -> Tensor:
    """The element number `kth` of an axis in its place, smaller ones before it: here all are in order.

    >>> wg.partition(wg.asarray([3, 1, 2]), 1).tolist()
    [1, 2, 3]
    """
    return sort(flatten(x), 0) if axis is None else sort(x, axis)


def argpartition(x: Tensor, kth: Any, axis: int | None = -1) -> Tensor:
    """The indices, int32, of `partition`.

    >>> wg.argpartition(wg.asarray([3, 1, 2]), 1).tolist()
    [1, 2, 0]
    """
    return argsort(flatten(x), 0) if axis is None else argsort(x, axis)


def lexsort(keys: Any) -> Tensor:
    """The indices that sort by the last key, what is equal there by the one before it, and so on.

    >>> wg.lexsort((wg.asarray([2, 1, 0]), wg.asarray([1, 0, 1]))).tolist()
    [1, 2, 0]
    """
    order: Tensor | None = None
    for key in keys:
        line = as_tensor("lexsort", key)
        order = argsort(line) if order is None else take(order, argsort(take(line, order)))
    return asarray([], dtypes.int32) if order is None else order


def packbits(x: Tensor, axis: int | None = None, bitorder: str = "big") -> Tensor:
    """Eight flags to a byte, along an axis; missing ones are zeros. Without an axis of the flattened tensor.

    >>> wg.packbits(wg.asarray([1, 0, 0, 0, 0, 0, 1, 1, 1])).tolist()
    [131, 128]
    """
    x = as_tensor("packbits", x)
    check_kind("packbits", "biu", x.dtype)
    bits = flatten(x) if axis is None else moveaxis(x, axis, -1)
    bits = (bits != 0).astype(dtypes.int32)
    bits = pad(bits, ((0, 0),) * (bits.ndim - 1) + ((0, -bits.shape[-1] % 8),))
    bytes_of = reshape(bits, (*bits.shape[:-1], -1, 8)) * _worths(bitorder, x)
    found = total(bytes_of, -1).astype(dtypes.uint8)
    return found if axis is None else moveaxis(found, -1, axis)


def unpackbits(x: Tensor, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Tensor:
    """The eight bits of every byte, along an axis, or the first `count` of them.

    >>> wg.unpackbits(wg.asarray([131], dtype=wg.uint8)).tolist()
    [1, 0, 0, 0, 0, 0, 1, 1]
    """
    x = as_tensor("unpackbits", x)
    check_kind("unpackbits", "u", x.dtype)
    line = flatten(x) if axis is None else moveaxis(x, axis, -1)
    bits = (expand_dims(line.astype(dtypes.int32), -1) // _worths(bitorder, x)) % 2
    found = reshape(bits, (*line.shape[:-1], -1)).astype(dtypes.uint8)[..., :count]
    return found if axis is None else moveaxis(found, -1, axis)


def _worths(bitorder: str, like: Tensor) -> Tensor:
    if bitorder not in ("big", "little"):
        raise ArgumentError(f"bits are in the order 'big' or 'little', not {bitorder!r}")
    values = [1 << each for each in range(8)]
    return asarray(values if bitorder == "little" else values[::-1], dtypes.int32, device=like.device)

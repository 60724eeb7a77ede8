"""Data types as in the array API: promotion, casts, kinds and limits.

In: dtypes, tensors, Python numbers. Out: dtypes, bools, records. Types follow `dtypes.promote`; where tensors
are given, their device must have the result, as it must when they are combined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ... import dtypes
from ...dtypes import DType, as_dtype, dtype_of_scalar, part_of, promote
from ...errors import ArgumentError, DTypeError
from ...ops.host_arrays import check_dtype
from ...tensor import Tensor
from ...values import float_limits_of

KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}
_NUMBERS = (bool, int, float, complex)


@dataclass(frozen=True, slots=True)
class FloatLimits:
    """The result of `finfo`: the limits of a floating dtype; of complex numbers those of their parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType

    @property
    def tiny(self) -> float:
        """The smallest normal number, by NumPy's and PyTorch's name."""
        return self.smallest_normal


@dataclass(frozen=True, slots=True)
class IntegerLimits:
    """The result of `iinfo`: the limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def _type_of(value: Any) -> DType:
    return value.dtype if isinstance(value, Tensor) else as_dtype(value)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether a dtype, or a tensor's, becomes another by promotion; a tensor's device must have that too.

    >>> wg.can_cast(wg.int8, wg.int32), wg.can_cast(wg.int32, wg.int8)
    (True, False)
    """
    own, wanted = _type_of(from_), as_dtype(to)
    try:
        if isinstance(from_, Tensor):
            check_dtype("can_cast", wanted, from_.device)
        return promote(own, wanted) is wanted
    except DTypeError:
        return False


def _not_a_type_of(what: str, op: str, dtype: DType) -> DTypeError:
    ways = {"b": "bools have no limits", "f": "use webgrad.finfo", "c": "use webgrad.finfo"}
    return DTypeError(f"{op}: {dtype.name} is not of {what}: {ways.get(dtype.kind, 'use webgrad.iinfo')}")


def finfo(type: Any, /) -> FloatLimits:
    """The limits of a floating dtype, or of a tensor's; of a complex dtype those of its parts.

    >>> wg.finfo(wg.float32).bits, wg.finfo(wg.complex64).dtype
    (32, webgrad.float32)
    """
    dtype = part_of(_type_of(type))
    if dtype.kind != "f":
        raise _not_a_type_of("floats", "finfo", dtype)
    eps, largest, smallest_normal = float_limits_of(dtype)
    return FloatLimits(dtype.bits, eps, largest, -largest, smallest_normal, dtype)


def iinfo(type: Any, /) -> IntegerLimits:
    """The limits of an integer dtype, or of a tensor's.

    >>> wg.iinfo(wg.int8).max
    127
    """
    dtype = _type_of(type)
    if dtype.kind not in "iu":
        raise _not_a_type_of("integers", "iinfo", dtype)
    low, high = dtype.limits
    return IntegerLimits(dtype.bits, high, low, dtype)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is another one, or of a kind, or one of a tuple of those.

    Kinds are 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating' (float16 and bfloat16
    too), 'complex floating' and 'numeric'.

    >>> wg.isdtype(wg.float32, "real floating"), wg.isdtype(wg.int8, ("bool", wg.int16))
    (True, False)
    """
    found = as_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(found, each) for each in kind)
    return found.kind in letters_of(kind) if isinstance(kind, str) else found is as_dtype(kind)


def letters_of(kind: str) -> str:
    """The kinds of `DType` in a kind of the array API."""
    if kind not in KINDS:
        raise ArgumentError(f"{kind!r} is not a kind of data types; there are {', '.join(map(repr, KINDS))}")
    return KINDS[kind]


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype that tensors, dtypes and Python numbers promote to; one at least is a tensor or dtype.

    >>> wg.result_type(wg.int8, wg.uint8), wg.result_type(wg.float16, 1)
    (webgrad.int16, webgrad.float16)
    """
    numbers = [each for each in arrays_and_dtypes if isinstance(each, _NUMBERS)]
    typed = [each for each in arrays_and_dtypes if not isinstance(each, _NUMBERS)]
    if not typed:
        raise ArgumentError("result_type takes at least one tensor or dtype; numbers alone have no type")
    result = _promoted(typed)
    for each in numbers:
        result = dtype_of_scalar(each, result)
    for each in typed:
        if isinstance(each, Tensor):
            check_dtype("result_type", result, each.device)
    return result


def _promoted(typed: Sequence[Any]) -> DType:
    """The common type. Signs are mixed last, so that it is the same in every order."""
    found = sorted((_type_of(each) for each in typed), key=lambda each: each.kind)
    result = found[0]
    for each in found[1:]:
        result = promote(result, each)
    return result


STANDARD = tuple(
    each for each in (*dtypes.REAL, *dtypes.COMPLEX) if each not in (dtypes.float16, dtypes.bfloat16)
)  # the types that the array API names

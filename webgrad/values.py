"""Host values without NumPy: flat bytes, a data type and a shape, from and to lists, numbers and memoryviews.

`Values` replaces a NumPy array where there is no NumPy, as in a browser: on the way to a device and back. It
computes nothing. The invariant: its bytes are contiguous, row-major, in this machine's byte order.
"""

from __future__ import annotations

import builtins
import math
import struct
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import dtypes
from .dtypes import DType
from .errors import DTypeError, ShapeError

# The format letters of struct, array and memoryview for a dtype; bfloat16 and complex numbers have none.
_LETTERS: dict[DType, Any] = {
    dtypes.bool: "?",
    dtypes.int8: "b",
    dtypes.int16: "h",
    dtypes.int32: "i",
    dtypes.int64: "q",
    dtypes.uint8: "B",
    dtypes.uint16: "H",
    dtypes.uint32: "I",
    dtypes.uint64: "Q",
    dtypes.float16: "e",
    dtypes.float32: "f",
    dtypes.float64: "d",
}
_VIEWED: dict[DType, Any] = {
    dtypes.float16: "H",
    dtypes.bfloat16: "H",
    dtypes.complex64: "f",
    dtypes.complex128: "d",
}
_BY_KIND: dict[tuple[str, int], DType] = {
    (each.kind, each.itemsize): each for each in (*_LETTERS, *dtypes.COMPLEX)
}
_KINDS = dict.fromkeys("bhilqn", "i") | dict.fromkeys("BHILQN", "u") | dict.fromkeys("efd", "f")
_KINDS |= {"?": "b", "Zf": "c", "Zd": "c"}
# The dtype of lists whose numbers are of a 64-bit dtype: the default dtype of Python's numbers.
NARROW = {
    dtypes.float64: dtypes.float32,
    dtypes.int64: dtypes.int32,
    dtypes.uint64: dtypes.int32,
    dtypes.complex128: dtypes.complex64,
}


class Values:
    """Elements on the host."""

    __slots__ = ("data", "dtype", "shape")

    def __init__(self, data: Any, dtype: DType, shape: Sequence[int]) -> None:
        self.data = flat_bytes(data)
        self.dtype = dtype
        self.shape = tuple(shape)

    def __reduce__(self) -> tuple[Any, ...]:
        return Values, (bytes(self.data), self.dtype, self.shape)

    @property
    def ndim(self) -> int:
        """How many axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes."""
        return self.data.nbytes

    def numbers(self) -> list[Any]:
        """The elements as a flat list."""
        if self.dtype.kind == "c":
            parts = Values(self.data, dtypes.part_of(self.dtype), (2 * self.size,)).numbers()
            return [complex(*each) for each in zip(parts[::2], parts[1::2], strict=True)]
        if self.dtype is dtypes.bfloat16:
            words = array("I", [each << 16 for each in self.data.cast("H")])
            return memoryview(words).cast("B").cast("f").tolist()
        letter = _LETTERS[self.dtype]
        if letter == "e":  # memoryviews do not support it
            return list(struct.unpack(f"{self.size}e", self.data))
        return self.data.cast(letter).tolist()

    def tolist(self) -> Any:
        """The elements in nested lists; without axes, the one element."""
        found: list[Any] = self.numbers()
        for size in reversed(self.shape[1:]):
            count = len(found) // size if size else math.prod(self.shape[: self.shape.index(0)])
            found = [found[at * size : (at + 1) * size] for at in range(count)]
        return found if self.shape else found[0]

    def memoryview(self) -> builtins.memoryview:
        """The elements by the buffer protocol; of 16-bit floats their bits, of complex numbers the parts."""
        letter = _VIEWED.get(self.dtype) or _LETTERS[self.dtype]
        if not self.size:
            # one axis: a view cannot have several with an empty one
            return memoryview(array(letter.replace("?", "B")))
        return self.data.cast(letter, (*self.shape, 2) if self.dtype.kind == "c" else self.shape)

    def nonzero(self) -> list[Values]:
        """The indices of the elements that are not zero, a 1-d array for each axis."""
        places = [at for at, each in enumerate(self.numbers()) if each]
        found: list[Values] = []
        for size in reversed(self.shape):
            found.append(packed([each % size for each in places], dtypes.int64, (len(places),)))
            places = [each // size for each in places]
        return found[::-1]

    def astype(self, dtype: DType) -> Values:
        """The elements in another dtype, by the rules of `Tensor.astype`."""
        return self if dtype is self.dtype else packed(self.numbers(), dtype, self.shape, wrap=True)


def flat_bytes(data: Any) -> memoryview:
    """A buffer as contiguous bytes."""
    view = memoryview(data)
    if not view.nbytes:
        return memoryview(b"")
    return view.cast("B") if view.c_contiguous else memoryview(view.tobytes())


# A float type's bits of fraction, and its largest exponent.
_FLOATS = {
    dtypes.float16: (10, 15),
    dtypes.bfloat16: (7, 127),
    dtypes.float32: (23, 127),
    dtypes.float64: (52, 1023),
}


def float_limits_of(dtype: DType) -> tuple[float, float, float]:
    """Of a floating dtype: eps, the largest number, and the smallest normal one."""
    fraction, exponent = _FLOATS[dtype]
    return 2.0**-fraction, (2 - 2.0**-fraction) * 2.0**exponent, 2.0 ** (1 - exponent)


def stored(value: float, dtype: DType) -> float:
    """A number rounded to a floating dtype; infinite out of range."""
    found: float = packed([value], dtype, ()).numbers()[0]
    return found


def packed(numbers: Sequence[Any], dtype: DType, shape: Sequence[int], *, wrap: bool = False) -> Values:
    """Python's numbers as elements of a dtype; with `wrap` integers out of range keep their low bits."""
    if dtype.kind in "iu":
        numbers = [_whole(each, dtype, wrap) for each in numbers]
    elif dtype.kind == "c":
        parts = [part for each in map(complex, numbers) for part in (each.real, each.imag)]
        return Values(packed(parts, dtypes.part_of(dtype), (len(parts),)).data, dtype, shape)
    elif dtype.kind == "b":
        return Values(bytes(map(bool, numbers)), dtype, shape)
    if dtype is dtypes.bfloat16:
        bits = memoryview(array("f", numbers)).cast("B").cast("I")
        return Values(array("H", map(_rounded, bits)), dtype, shape)
    if dtype is dtypes.float16:
        return Values(struct.pack(f"{len(numbers)}e", *map(_half, numbers)), dtype, shape)
    return Values(array(_LETTERS[dtype], numbers), dtype, shape)


def _whole(value: Any, dtype: DType, wrap: bool) -> int:
    """A number as an integer of a dtype: floats are clamped, NaN becomes 0."""
    low, high = dtype.limits
    if isinstance(value, float):
        return 0 if value != value else int(min(max(value, low), high))
    whole = int(value)
    return (whole - low) % (high - low + 1) + low if wrap else whole


def _rounded(bits: int) -> int:
    """The upper half of a float32's bits, rounded to nearest even; NaN stays NaN."""
    if bits & 0x7FFFFFFF > 0x7F800000:
        return bits >> 16 | 0x40
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


def _half(value: float) -> float:
    return value if not abs(value) >= 65520 else math.copysign(math.inf, value)  # what struct refuses


# From Python's values


def values_of(op: str, value: Any, dtype: DType | None = None) -> Values:
    """Numbers, nested lists of them, or an object with the buffer protocol, as elements of a dtype."""
    if isinstance(value, Values):
        return value if dtype is None else value.astype(dtype)
    try:
        view = memoryview(value)
    except TypeError:
        return _of_lists(op, value, dtype)
    found = _of_buffer(op, value, view)
    return found if dtype is None else found.astype(dtype)


def _of_buffer(op: str, value: Any, view: memoryview) -> Values:
    kind = _KINDS.get(view.format.lstrip("@=<" if struct.pack("=H", 1)[0] else "@=>"))
    dtype = _BY_KIND.get((kind or "", view.itemsize))
    if dtype is None:
        raise DTypeError(
            f"{op}: a {type(value).__name__} of format {view.format!r} holds no elements of a dtype that "
            f"webgrad has, in this machine's byte order: {', '.join(each.name for each in _BY_KIND.values())}"
        )
    return Values(view, dtype, view.shape or ())


def _of_lists(op: str, value: Any, dtype: DType | None) -> Values:
    numbers: list[Any] = []
    owned: set[DType | None] = set()
    shape = _flatten(op, value, numbers, owned)
    own = owned.pop() if len(owned) == 1 else None
    wanted = dtype or (NARROW.get(own, own) if own else _common(numbers))
    if wanted.kind not in "bc" and any(isinstance(each, complex) for each in numbers):
        raise DTypeError(f"{op}: complex numbers do not become {wanted.name}: take .real, .imag or abs()")
    _refuse_overflow(op, [each for each in numbers if isinstance(each, int)], wanted)
    return packed(numbers, wanted, shape)


def _flatten(op: str, value: Any, numbers: list[Any], owned: set[DType | None]) -> tuple[int, ...]:
    """Append the numbers of nested lists, and add their dtypes to `owned`; gives the lists' shape."""
    if isinstance(value, (int, float, complex)):
        numbers.append(value)
        owned.add(None)
        return ()
    if hasattr(value, "tolist"):  # a tensor, or what has the buffer protocol
        typed = value if hasattr(value, "dtype") else values_of(op, value)
        owned.add(typed.dtype)
        return _flatten(op, typed.tolist(), numbers, set())
    if not isinstance(value, (Sequence, range)) or isinstance(value, (str, bytes)):
        raise DTypeError(
            f"{op}: a {type(value).__name__} cannot be read as numbers: give numbers, or lists of them"
        )
    shapes = {_flatten(op, each, numbers, owned) for each in value}
    if len(shapes) > 1:
        raise ShapeError(
            f"{op}: these values do not make an array: it has lists of different shapes {sorted(shapes)}"
        )
    return (len(value), *next(iter(shapes), ()))


def _common(numbers: Iterable[Any]) -> DType:
    """The dtype of Python's numbers: float32 if there is a float, else int32, or bool."""
    kinds = set(map(type, numbers))
    rules: tuple[tuple[Callable[[type], Any], DType], ...] = (
        (lambda each: issubclass(each, complex), dtypes.complex64),
        (lambda each: issubclass(each, float), dtypes.float32),
        (lambda each: not issubclass(each, bool), dtypes.int32),
    )
    if not kinds:
        return dtypes.float32
    return next((dtype for rule, dtype in rules if any(map(rule, kinds))), dtypes.bool)


def _refuse_overflow(op: str, numbers: list[int], dtype: DType) -> None:
    """Refuse integers out of the range of a dtype, or of all dtypes."""
    widest = dtypes.int64.limits[0], dtypes.uint64.limits[1]
    low, high = dtype.limits if dtype.kind in "iu" else widest
    outside = next((each for each in numbers if not low <= each <= high), None)
    if outside is None:
        return
    if not widest[0] <= outside <= widest[1]:
        raise DTypeError(
            f"{op}: an integer of {outside.bit_length()} bits fits no type of webgrad: pass it as a float"
        )
    raise DTypeError(
        f"{op}: {outside} does not fit {dtype.name}, which holds {low} to {high}: pass a wider type, "
        "such as dtype=webgrad.int64"
    )

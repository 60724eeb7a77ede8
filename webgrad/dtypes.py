"""Data types: what an element is, its layout in memory, and the type in which kernels compute with it.

A `DType` is a singleton, and equals its name and NumPy's dtype. `promote` follows the array API standard's
table, and PyTorch's rule where that has none: an integer with a float gives the float.

A complex number is a pair of floats, its parts; kernels only see these: `REAL` are the types they compute
in.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, Literal

from .arrays import has_numpy, ml_dtypes, np
from .errors import DTypeError

Kind = Literal["b", "i", "u", "f", "c"]  # bool, signed, unsigned, float, complex


class DType:
    """The type of a tensor's elements: one row of the table below.

    >>> wg.float32.itemsize, wg.float16.is_packed, wg.float16.wide
    (4, True, webgrad.float32)
    """

    __slots__ = ("_numpy", "compute", "feature", "is_half", "is_packed", "itemsize", "kind", "name", "short")

    def __init__(
        self, name: str, short: str, kind: Kind, itemsize: int, compute: str, feature: str = ""
    ) -> None:
        self.name = name
        self.short = short  # as in WGSL's names and, in capitals, safetensors'
        self.kind: Kind = kind
        self.itemsize = itemsize
        self.compute = compute  # the WGSL type that kernels compute in
        self.feature = feature  # what an adapter must have for it; empty: nothing
        self.is_packed = itemsize < 4  # several elements share a 32-bit word
        self.is_half = kind == "f" and itemsize == 2
        self._numpy: np.dtype[Any] | None = None

    @property
    def is_floating_point(self) -> Any:
        """Whether it is one of floats.

        >>> wg.float16.is_floating_point, wg.complex64.is_floating_point
        (True, False)
        """
        return self.kind == "f"

    @property
    def is_complex(self) -> Any:
        """Whether it is one of complex numbers."""
        return self.kind == "c"

    @property
    def is_signed(self) -> Any:
        """Whether it has numbers below 0."""
        return self.kind in "ifc"

    @property
    def bits(self) -> int:
        """How many bits an element has in memory."""
        return 8 * self.itemsize

    @property
    def wide(self) -> DType:
        """The dtype in which a packed dtype is computed; any other dtype itself.

        >>> wg.int8.wide, wg.bool.wide
        (webgrad.int32, webgrad.bool)
        """
        return _BY_SHORT[self.compute] if self.is_packed else self

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest integer of an integer dtype.

        >>> wg.int8.limits
        (-128, 127)
        """
        signed = self.kind == "i"
        return -(1 << self.bits - 1) if signed else 0, (1 << self.bits - signed) - 1

    @property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's dtype of the same elements."""
        if self._numpy is None:
            self._numpy = np.dtype(ml_dtypes.bfloat16 if self.name == "bfloat16" else self.name)
        return self._numpy

    def __repr__(self) -> str:
        return f"webgrad.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype, so that NumPy takes this one where it takes a dtype."""
        return self.numpy

    def __eq__(self, other: object) -> Any:
        if self is other or other.__class__ is DType:
            return self is other
        try:
            return as_dtype(other) is self
        except DTypeError:
            return NotImplemented

    __hash__ = object.__hash__  # of itself; like NumPy's, it equals names that hash differently


REAL = (
    bool := DType("bool", "bool", "b", 1, "bool"),
    int8 := DType("int8", "i8", "i", 1, "i32"),
    int16 := DType("int16", "i16", "i", 2, "i32"),
    int32 := DType("int32", "i32", "i", 4, "i32"),
    int64 := DType("int64", "i64", "i", 8, "i64", "int64"),
    uint8 := DType("uint8", "u8", "u", 1, "u32"),
    uint16 := DType("uint16", "u16", "u", 2, "u32"),
    uint32 := DType("uint32", "u32", "u", 4, "u32"),
    uint64 := DType("uint64", "u64", "u", 8, "u64", "int64"),
    bfloat16 := DType("bfloat16", "bf16", "f", 2, "f32"),
    float16 := DType("float16", "f16", "f", 2, "f32"),
    float32 := DType("float32", "f32", "f", 4, "f32"),
    float64 := DType("float64", "f64", "f", 8, "f64", "f64"),
)
complex64 = DType("complex64", "c64", "c", 8, "")
complex128 = DType("complex128", "c128", "c", 16, "", "f64")
COMPLEX = (complex64, complex128)
_BY_NAME = {each.name: each for each in (*REAL, *COMPLEX)}
_BY_SHORT = {each.short: each for each in REAL}
_BOOL: type = type(bool is None)  # Python's bool: the name is a DType here
_BY_TYPE: dict[object, DType] = {_BOOL: bool, int: int32, float: float32, complex: complex64}


@cache
def _by_numpy() -> dict[np.dtype[Any], DType]:
    return {each.numpy: each for each in (*REAL, *COMPLEX)}


def as_dtype(value: Any) -> DType:
    """A DType from itself, its name, a NumPy dtype, or Python's bool, int, float or complex.

    >>> wg.as_dtype("float32") is wg.float32
    True
    """
    if value.__class__ is DType:
        return value
    try:
        found = _BY_NAME.get(value) if isinstance(value, str) else _BY_TYPE.get(value)
    except TypeError:  # not hashable
        found = None
    if found is None and value is not None and has_numpy():
        try:
            known = _by_numpy()
            found = known.get(value) or known.get(np.dtype(value).newbyteorder("="))
        except (TypeError, ValueError):  # a bad description of fields is a ValueError
            found = None
    if found is None:
        raise DTypeError(f"{value!r} is not a data type of webgrad; there are {', '.join(_BY_NAME)}")
    return found


def part_of(dtype: DType) -> DType:
    """The type of a complex number's parts; of any other type itself."""
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


def complex_of(dtype: DType) -> DType:
    """The complex dtype that a dtype promotes to."""
    return dtype if dtype.kind == "c" else complex128 if dtype is float64 else complex64


def dtype_of_scalar(value: Any, other: DType) -> DType:
    """The dtype of a Python number in arithmetic with a tensor of dtype `other`: that, if the kind allows.

    A float with integers makes float32, an int with bools int32, as in PyTorch; a complex number with floats
    makes the complex dtype of their width.
    """
    if isinstance(value, complex):
        return complex_of(other)
    kind = "b" if isinstance(value, (np.bool_, _BOOL)) else "i" if isinstance(value, int) else "f"
    if other.kind == "c" or other.kind == "f" or (kind != "f" and other.kind != "b") or kind == other.kind:
        return other
    return float32 if kind == "f" else int32


@lru_cache(maxsize=256)
def promote(a: DType, b: DType) -> DType:
    """The dtype that two dtypes promote to.

    >>> wg.promote(wg.int8, wg.uint8)
    webgrad.int16
    """
    a, b = as_dtype(a), as_dtype(b)
    if a is b:
        return a
    if a.kind == "b" or b.kind == "b":
        return b if a.kind == "b" else a
    if a.kind == "c" or b.kind == "c":
        return complex128 if float64 in (part_of(a), part_of(b)) else complex64
    if a.kind == "f" or b.kind == "f":
        if a.kind != b.kind:
            return a if a.kind == "f" else b
        if a.itemsize == b.itemsize:
            return float32  # float16 and bfloat16: neither holds the other
        return a if a.itemsize > b.itemsize else b
    if a.kind == b.kind:
        return a if a.itemsize > b.itemsize else b
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if unsigned is uint64:
        raise DTypeError(
            f"{a.name} and {b.name} have no common integer type: convert one of them with astype first"
        )
    return max(signed, as_dtype(f"int{2 * unsigned.bits}"), key=lambda each: each.itemsize)

"""ONNX's element types: a row each, with the NumPy type that holds them and how files write them."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import webgrad as wg

from ..arrays import ml_dtypes, np

__all__ = ["ElementType", "code_of", "type_of"]


class ElementType(NamedTuple):
    """One row: a number in files, a name, the bits of an element, and the field that lists elements."""

    code: int
    name: str
    bits: int
    field: str

    @property
    def numpy(self) -> np.dtype[Any]:
        """The type of its arrays: several small elements of a byte have one byte each here."""
        return _numpy(self.name)

    @property
    def webgrad(self) -> Any:
        """webgrad's type, None where it has none: texts, floats of 8 bits and fewer, integers of 4 and 2."""
        return (
            None
            if self.name == "string" or self.bits < 8 or "float8" in self.name
            else wg.as_dtype(self.name)
        )


_ROWS = """
1 float32 32 float_data, 2 uint8 8 int32_data, 3 int8 8 int32_data, 4 uint16 16 int32_data,
5 int16 16 int32_data, 6 int32 32 int32_data, 7 int64 64 int64_data, 8 string 0 string_data,
9 bool 8 int32_data, 10 float16 16 int32_data, 11 float64 64 double_data, 12 uint32 32 uint64_data,
13 uint64 64 uint64_data, 14 complex64 64 float_data, 15 complex128 128 double_data,
16 bfloat16 16 int32_data, 17 float8_e4m3fn 8 int32_data, 18 float8_e4m3fnuz 8 int32_data,
19 float8_e5m2 8 int32_data, 20 float8_e5m2fnuz 8 int32_data, 21 uint4 4 int32_data, 22 int4 4 int32_data,
23 float4_e2m1fn 4 int32_data, 24 float8_e8m0fnu 8 int32_data, 25 uint2 2 int32_data, 26 int2 2 int32_data
"""
_TYPES = [
    ElementType(int(code), name, int(bits), field)
    for code, name, bits, field in (row.split() for row in _ROWS.replace("\n", " ").split(","))
]
_BY_CODE = {each.code: each for each in _TYPES}
_BY_NAME = {each.name: each for each in _TYPES}


def type_of(code: int) -> ElementType:
    """The row of a number in a file."""
    if code not in _BY_CODE:
        raise wg.ModelFileError(f"there is no ONNX element type {code} that webgrad knows")
    return _BY_CODE[code]


def code_of(dtype: Any) -> int:
    """The number of a NumPy type, or of one of webgrad's."""
    name = (
        "string" if getattr(dtype, "kind", "") in "OUS" and dtype.kind else str(getattr(dtype, "name", dtype))
    )
    if name not in _BY_NAME:
        raise wg.DTypeError(f"ONNX has no element type for {dtype}")
    return _BY_NAME[name].code


@cache
def _numpy(name: str) -> np.dtype[Any]:
    if name == "string":
        return np.dtype(object)
    return np.dtype(getattr(ml_dtypes, name, None) or name)

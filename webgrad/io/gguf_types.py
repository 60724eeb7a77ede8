"""GGUF's numbers for types: of values beside the tensors, and of the tensors themselves.

Tables only. A tensor's type is a plain number, a format of blocks that webgrad computes with, or one that is
only known by its name and size, so that a file with it can be opened and the tensor refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import ml_dtypes, np
from ..ops.blocks import FORMATS

__all__ = ["ARRAY", "BOOL", "NUMBERS", "TEXT", "TYPES", "TYPE_NUMBERS", "TensorType"]

# Values: the number of a type → NumPy's dtype
NUMBERS: dict[int, np.dtype[np.generic]] = {
    number: np.dtype(code)
    for number, code in (
        (0, "<u1"),
        (1, "<i1"),
        (2, "<u2"),
        (3, "<i2"),
        (4, "<u4"),
        (5, "<i4"),
        (6, "<f4"),
        (10, "<u8"),
        (11, "<i8"),
        (12, "<f8"),
    )
}
BOOL, TEXT, ARRAY = 7, 8, 9


@dataclass(frozen=True, slots=True)
class TensorType:
    """A type of tensors: numbers have a dtype; blocks have so many weights in so many bytes."""

    name: str
    weights: int
    nbytes: int
    dtype: np.dtype[np.generic] | None = None

    @property
    def is_readable(self) -> bool:
        """Whether webgrad has tensors of it."""
        return self.dtype is not None or self.name in FORMATS


def _plain(name: str, dtype: object) -> TensorType:
    made: np.dtype[np.generic] = np.dtype(dtype)  # type: ignore[call-overload]
    return TensorType(name, 1, made.itemsize, made)


# Those that are not blocks webgrad computes with
_OTHERS: dict[int, TensorType] = {
    0: _plain("F32", "<f4"),
    1: _plain("F16", "<f2"),
    9: TensorType("Q8_1", 32, 36),
    15: TensorType("Q8_K", 256, 292),
    16: TensorType("IQ2_XXS", 256, 66),
    17: TensorType("IQ2_XS", 256, 74),
    18: TensorType("IQ3_XXS", 256, 98),
    19: TensorType("IQ1_S", 256, 50),
    20: TensorType("IQ4_NL", 32, 18),
    21: TensorType("IQ3_S", 256, 110),
    22: TensorType("IQ2_S", 256, 82),
    23: TensorType("IQ4_XS", 256, 136),
    24: _plain("I8", "i1"),
    25: _plain("I16", "<i2"),
    26: _plain("I32", "<i4"),
    27: _plain("I64", "<i8"),
    28: _plain("F64", "<f8"),
    29: TensorType("IQ1_M", 256, 56),
    30: _plain("BF16", ml_dtypes.bfloat16),
    34: TensorType("TQ1_0", 256, 54),
    35: TensorType("TQ2_0", 256, 66),
    39: TensorType("MXFP4", 32, 17),
    40: TensorType("NVFP4", 64, 36),
    41: TensorType("Q1_0", 128, 18),
}
# Tensors: the number of a type → what it is
_BLOCKS = {each.number: TensorType(each.name, each.weights, each.nbytes) for each in FORMATS.values()}
TYPES: dict[int, TensorType] = dict(sorted((_OTHERS | _BLOCKS).items()))
TYPE_NUMBERS: dict[str, int] = {each.name: number for number, each in TYPES.items() if each.is_readable}

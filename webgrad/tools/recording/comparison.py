"""Whether contents of a buffer are what they were: bit by bit, or for floats within what adapters differ by.

In: two stretches of bytes and the type of their elements. Out: an `Outcome`. NaN and infinities must stand in
the same places; integers must be equal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ...arrays import Array, np
from ...dtypes import as_dtype
from ...errors import DTypeError
from ...tuning.measure import TOLERANCE

__all__ = ["Outcome", "compare", "element_type"]


# A value may be off by TOLERANCE, in parts of itself or of the typical value, whichever is larger. Below
# _NOISE a difference is none: what cancels out leaves the rounding of what it was made of.
_NOISE = {"float64": 1e-15}
_USUAL_NOISE = 1e-7
_MASK = 1e30  # what is larger stands for infinity, and is not typical
_SCALARS = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "i32": "int32",
    "u32": "uint32",
    "i64": "int64",
    "u64": "uint64",
}
_SCALAR = re.compile(rf"\b({'|'.join(_SCALARS)})\b")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a computed buffer compares with the recorded one; `error` is the largest, relative for floats."""

    same: bool  # every bit
    right: bool  # or within tolerance
    error: float = 0.0
    places: int = 0  # elements out of tolerance
    first: int = -1  # the first of these

    def __str__(self) -> str:
        if self.same:
            return "equal"
        if self.right:
            return f"within {self.error:.1e}"
        return f"differs in {self.places:,} elements from {self.first:,} on, by up to {self.error:.1e}"


EQUAL = Outcome(same=True, right=True)


def element_type(dtype: str, wgsl: str) -> np.dtype[Any]:
    """The type to compare by: webgrad's name where it is known, else the scalar of a WGSL type.

    >>> element_type("bfloat16", "array<u32>"), element_type("", "array<vec4<f32>>")
    (dtype(bfloat16), dtype('float32'))
    """
    try:
        found = as_dtype(dtype).numpy if dtype else None
    except DTypeError:
        found = None
    if found is not None and found.kind != "c":
        return found
    scalar = _SCALAR.search(wgsl)
    return np.dtype(_SCALARS[scalar[1]] if scalar else "uint32")


def compare(expected: bytes, computed: bytes, dtype: np.dtype[Any]) -> Outcome:
    """Hold computed contents against recorded ones of the same length."""
    if expected == computed:
        return EQUAL
    if len(expected) % dtype.itemsize:
        dtype = np.dtype(np.uint8)
    was, now = (np.frombuffer(each, np.uint8).view(dtype) for each in (expected, computed))
    if dtype.name not in TOLERANCE:
        return _of_integers(was, now)
    with np.errstate(all="ignore"):
        return _of_floats(was.astype(np.float64), now.astype(np.float64), dtype.name)


def _of_integers(was: Array, now: Array) -> Outcome:
    wrong = np.flatnonzero(was != now)
    off = max(abs(int(was[at]) - int(now[at])) for at in (wrong if len(wrong) < 1000 else wrong[:1000]))
    return Outcome(same=False, right=False, error=float(off), places=len(wrong), first=int(wrong[0]))


def _of_floats(was: Array, now: Array, dtype: str) -> Outcome:
    finite = np.isfinite(was) & np.isfinite(now)
    alike = finite | (np.isnan(was) & np.isnan(now)) | (was == now)
    known = was[finite]
    usual = known[np.abs(known) < _MASK]
    typical = float(np.sqrt(np.mean(np.square(usual)))) if usual.size else 0.0
    scale = np.maximum(np.abs(known), typical)
    off = np.abs(known - now[finite])
    noise = _NOISE.get(dtype, _USUAL_NOISE)
    far = np.zeros(was.shape, bool)
    far[finite] = off > np.maximum(TOLERANCE[dtype] * scale, noise)
    wrong = np.flatnonzero(far | ~alike)
    relative = off / np.maximum(scale, noise)
    error = float("inf") if not alike.all() else float(relative.max(initial=0.0))
    return Outcome(
        same=False,
        right=not wrong.size,
        error=error,
        places=len(wrong),
        first=int(wrong[0]) if wrong.size else -1,
    )

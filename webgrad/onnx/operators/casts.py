"""Cast, CastLike and BitCast: between numbers, texts, and types that no tensor holds.

A tensor is cast on its device. From and to texts, floats of 8 bits and numbers of fewer, elements are arrays
on the host.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg

from ...arrays import Array, ml_dtypes, np
from ..types import ElementType, code_of, type_of
from .table import Call, operator
from .values import is_held, stored

__all__: list[str] = []

SCALE = "float8_e8m0fnu"  # powers of 2 alone
IN_RANGE = 23  # the last version whose own results of few bits stay in range; later ones drop higher bits
BIAS = 127  # of their exponents; the code above the largest is NaN


@operator("Cast", 6, known="x")
def cast(x: Any, *, to: int, saturate: int = 1, round_mode: str = "up", call: Call) -> Any:
    return _cast(x, type_of(to), saturate, round_mode, call)


@operator("CastLike", 15, known="x like")
def cast_like(x: Any, like: Any, *, saturate: int = 1, round_mode: str = "up", call: Call) -> Any:
    return _cast(x, type_of(code_of(like.dtype)), saturate, round_mode, call)


@operator("BitCast", 26, known="x")
def bit_cast(x: Any, *, to: int, call: Call) -> Any:
    wanted = type_of(to)
    if wanted.webgrad is None or not is_held(x):
        return call.host(x).view(wanted.numpy)
    tensor = call.tensor(x)
    if tensor.dtype.kind == "b":
        tensor = tensor.astype(wg.uint8)
    return wg.bitcast(tensor, wanted.webgrad)


def _cast(x: Any, to: ElementType, saturate: int, round_mode: str, call: Call) -> Any:
    if to.webgrad is None or not is_held(x):
        array = call.host(x)
        if 0 < to.bits < 8 and call.opset <= IN_RANGE and array.dtype.kind == "f":
            array = _in_range(array, to)
        return _cast_array(array, to, saturate, round_mode)
    tensor = call.tensor(x)
    return tensor.astype(stored(to.name, tensor.device))


def _cast_array(x: Array, to: ElementType, saturate: int, round_mode: str) -> Array:
    if to.name == "string":
        return x.astype(str).astype(object)
    if x.dtype == object:
        wanted = object if to.bits >= 8 and to.name.startswith(("int", "uint")) else np.float64
        x = np.array([_number(each) for each in x.reshape(-1)], wanted).reshape(x.shape)
    if to.name == SCALE:
        return _as_scales(x.astype(np.float32), saturate, round_mode)
    if saturate and to.name.startswith("float8"):
        largest = float(ml_dtypes.finfo(to.numpy).max)  # type: ignore[no-untyped-call]
        x = np.clip(x.astype(np.float32), -largest, largest)
    with np.errstate(all="ignore"):
        return x.astype(to.numpy)


def _number(text: str) -> int | float:
    """What a text says; of a whole number every digit."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def _in_range(x: Array, to: ElementType) -> Array:
    """Numbers that a type of few bits has; NaN is its largest."""
    facts: Any = ml_dtypes.finfo if to.name.startswith("float") else ml_dtypes.iinfo
    low, high = float(facts(to.numpy).min), float(facts(to.numpy).max)
    return np.clip(np.where(np.isnan(x), high, x), low, high)


def _as_scales(x: Array, saturate: int, round_mode: str) -> Array:
    """Powers of 2 next to numbers: above, below or the nearest; of a tie the larger."""
    fraction, exponent = np.frexp(x)  # the fraction is from 0.5 up to 1, so 0.5 is the power itself
    upward = {"up": fraction > 0.5, "down": np.zeros(x.shape, bool), "nearest": fraction >= 0.75}
    code = exponent - 1 + BIAS + upward[round_mode]
    is_outside = (x == 0) | np.isinf(x) | (code < 0) | (code > 2 * BIAS)
    code = np.where(np.isinf(x), 2 * BIAS, np.where(x == 0, 0, np.clip(code, 0, 2 * BIAS)))
    code = np.where(np.isnan(x) | (is_outside & (not saturate)), 2 * BIAS + 1, code)
    return code.astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)

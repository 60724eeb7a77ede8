"""References of map ops that NumPy lacks, or computes differently.

In: arrays of one dtype. Out: an array of that dtype. The rows of `ops/maps.py` name them.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from ..arrays import Array, np

# gelu's approximation: x sigmoid(GELU_SCALE (x + GELU_CUBIC x³))
GELU_SCALE = math.sqrt(8 / math.pi)
GELU_CUBIC = 0.044715


def power(base: Array, exponent: Array) -> Array:
    """Integers wrap; of negative exponents only 1 and -1 have a power, the others give 0."""
    if base.dtype.kind not in "iu":
        return float_power(base, exponent)
    square = np.broadcast_arrays(base, exponent)[0].copy()
    left = np.where(exponent < 0, exponent & 1, exponent)
    result = np.ones_like(square)
    while np.any(left):
        result = np.where(left & 1 == 1, result * square, result)
        square = square * square
        left = left >> 1
    unit = (base == 1) | (base == base.dtype.type(-1) if base.dtype.kind == "i" else False)
    return np.asarray(np.where((exponent < 0) & ~unit, base.dtype.type(0), result))


def float_power(base: Array, exponent: Array, out: Array | None = None) -> Array:
    """Powers of floats as in IEEE 754; `out` shares no memory with the others.

    Where one exponent of 0.5 meets several bases, NumPy takes the square root, which is NaN at -inf and -0.0
    at -0.0: the layout of operands in memory would change the result.
    """
    result = np.asarray(np.power(base, exponent)) if out is None else np.power(base, exponent, out=out)
    if np.equal(exponent, 0.5).any() and np.signbit(base).any():
        ends = np.isinf(base) | np.equal(base, 0)
        np.copyto(result, np.abs(base), where=ends & np.equal(exponent, 0.5))
    return result


def floor_divide(a: Array, b: Array) -> Array:
    """NumPy's; where a float is infinite a / b, as in the array API standard."""
    result = np.asarray(np.floor_divide(a, b))
    if result.dtype.kind in "iu":
        return result
    return np.where(np.isinf(a) | np.isinf(b), a / b, result)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    small = np.exp(-np.abs(x))
    share: Array = np.where(np.signbit(x), small, x.dtype.type(1)) / (1 + small)
    return share


# The error function: math's in float64. In float32 the kernels' approximations (wgsl/library.wgsl), ten times
# as fast.

ERF_NEAR = (
    *(0.128379166, -0.37612626, 0.112835787, -0.0268533472),
    *(0.0051871622, -0.00079978531, 7.80690316e-5),
)
ERFC_NEAR = (
    *(1.02158272, -0.687160909, 0.279471517, -0.0364359021, -0.0215028133),
    *(0.00643521547, 0.00304291351, -0.000726362225, -0.000529147452, -4.67994578e-5),
)
NORMAL_TAIL = (
    *(0.737438381, -0.539486647, 0.274453729, -0.0809261724, 0.00109971117, 0.00831780024),
    *(-0.00116977841, -0.00109307421, 0.000136255403, 0.000172092492, 2.57185293e-5),
)


@cache
def _of_math(name: str) -> Any:
    return np.frompyfunc(getattr(math, name), 1, 1)


def _polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    """The sum of coefficients[i] x^i, in x's dtype."""
    result = np.full_like(x, coefficients[-1])
    for each in coefficients[-2::-1]:
        result *= x
        result += x.dtype.type(each)
    return result


def _times_exp_square(factor: Array, x: Array, scale: float) -> Array:
    """factor exp(scale x²) in float32: an error of x² would be one of the result."""
    return (factor * np.exp(np.square(x, dtype=np.float64) * scale)).astype(np.float32)


def _erfc_near(x: Array) -> Array:
    """erfc of float32 numbers from 0 up."""
    below = x + np.float32(2)
    return _times_exp_square(_polynomial(2 * (x / below) - 1, ERFC_NEAR) / below, x, -1)


def erf(x: Array) -> Array:
    """The error function."""
    if x.dtype != np.float32:
        return np.asarray(_of_math("erf")(x)).astype(x.dtype)
    size = np.minimum(np.abs(x), np.float32(4))
    near = size + size * _polynomial(size * size, ERF_NEAR)
    return np.copysign(np.where(size < 1, near, 1 - _erfc_near(size)), x)


def erfc(x: Array) -> Array:
    """1 - erf(x)."""
    if x.dtype != np.float32:
        return np.asarray(_of_math("erfc")(x)).astype(x.dtype)
    near = _erfc_near(np.minimum(np.abs(x), np.float32(11)))
    return np.where(x < 0, 2 - near, near)


def gelu(x: Array) -> Array:
    """x Φ(x); 0 at -inf, the limit."""
    if x.dtype != np.float32:
        share = 0.5 * np.asarray(_of_math("erfc")(x * -math.sqrt(0.5))).astype(x.dtype)
        return np.where(np.isneginf(x), 0, x * share)
    size = np.minimum(np.abs(x), np.float32(15))
    share = size / (size + np.float32(3.25))
    tail = _times_exp_square(share * _polynomial(2 * share - 1, NORMAL_TAIL), size, -0.5)
    return np.maximum(x, np.float32(0)) - tail


def gelu_tanh(x: Array) -> Array:
    """gelu's approximation; 0 at -inf."""
    wide = x.astype(np.float64)
    share = sigmoid(GELU_SCALE * (wide + GELU_CUBIC * wide**3))
    return np.where(np.isneginf(x), 0, wide * share).astype(x.dtype)


def rsqrt(x: Array) -> Array:
    """1 / sqrt(x)."""
    return 1 / np.sqrt(x)


# Threefry-2x32: by how many bits words are rotated, in turn, and what a third word of the key is made with
THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
THREEFRY_PARITY = 0x1BD11BDA


def threefry(counter0: Array, counter1: Array, key0: Array, key1: Array) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds: two random uint32 words for a counter of two words, by a key of two."""
    keys = (key0, key1, key0 ^ key1 ^ np.uint32(THREEFRY_PARITY))
    x, y = counter0 + key0, counter1 + key1
    for block in range(5):
        for turn in THREEFRY_ROTATIONS[block % 2]:
            x = x + y
            y = ((y << np.uint32(turn)) | (y >> np.uint32(32 - turn))) ^ x
        x = x + keys[(block + 1) % 3]
        y = y + (keys[(block + 2) % 3] + np.uint32(block + 1))
    return x, y


def random_bits(counter: Array, key0: Array, key1: Array) -> Array:
    """The first of threefry's words."""
    return threefry(counter, np.zeros_like(counter), key0, key1)[0]

"""The tables of `twiddles.py` by lists, where there is no NumPy to make them: a function for each.

In: lengths. Out: `Values` of complex128, or of float64 for a matrix: the same numbers but for last digits.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterable

from ... import dtypes
from ...values import Values, packed


def _roots_of_unity(parts: Iterable[int], whole: int, inverse: bool) -> list[complex]:
    """exp(∓2πi · parts / whole), parts between 0 and whole."""
    sign = 1 if inverse else -1
    reduced = (part - whole if 2 * part > whole else part for part in parts)
    return [cmath.exp(sign * 2j * math.pi * (each / whole)) for each in reduced]


def _line(numbers: list[complex]) -> Values:
    return packed(numbers, dtypes.complex128, (len(numbers),))


def twiddle_factors(length: int, count: int, inverse: bool) -> Values:
    """Twiddle factors: exp(∓2πik/length) for k below `count`."""
    return _line(_roots_of_unity(range(count), length, inverse))


def _chirped(length: int, inverse: bool) -> list[complex]:
    return _roots_of_unity((k * k % (2 * length) for k in range(length)), 2 * length, inverse)


def chirp(length: int, inverse: bool) -> Values:
    """exp(∓πik²/length) for k below the length."""
    return _line(_chirped(length, inverse))


def chirp_transform(length: int, padded: int, inverse: bool) -> Values:
    """The transform, `padded` long, of the conjugate chirp, which is also mirrored at the end."""
    wave = _chirped(length, not inverse)
    return _line(_transformed([*wave, *[0j] * (padded - 2 * length + 1), *wave[:0:-1]]))


def _transformed(line: list[complex]) -> list[complex]:
    """The Fourier transform of a line: halves while there are any, the rest as it is defined."""
    length = len(line)
    if length % 2 or length < 4:
        waves = _roots_of_unity(range(length), length, False)
        return [sum(x * waves[k * at % length] for at, x in enumerate(line)) for k in range(length)]
    even, odd = _transformed(line[::2]), _transformed(line[1::2])
    twiddled = [
        x * wave for x, wave in zip(odd, _roots_of_unity(range(length // 2), length, False), strict=True)
    ]
    pairs = list(zip(even, twiddled, strict=True))
    return [x + y for x, y in pairs] + [x - y for x, y in pairs]


def matrix(length: int, inverse: bool, scale: float) -> Values:
    """The matrix that a row of pairs is multiplied with: (2 length, 2 length) real numbers."""
    cells: list[float] = []
    for row in range(length):
        wave = [
            each * scale
            for each in _roots_of_unity((row * k % length for k in range(length)), length, inverse)
        ]
        cells += [part for each in wave for part in (each.real, each.imag)]
        cells += [part for each in wave for part in (-each.imag, each.real)]
    return packed(cells, dtypes.float64, (2 * length, 2 * length))

"""The numbers that erf, erfc and gelu are computed with on the cpu, by NumPy and by native code alike."""

from __future__ import annotations

import math

__all__ = ["END", "SERIES", "SLOPE", "TAIL"]

# t · Σ cᵢ tⁱ with t = 1 / (1 + SLOPE z) is erfc(z) exp(z²) for z from 0 to END, within 1.6e-9 of its value:
# the Chebyshev interpolation of degree 10, as powers. Beyond, erfc is 0 in float32.
TAIL = (
    0.0566112630848,
    -0.338108392364,
    0.758022489131,
    -0.860879249249,
    0.792970062187,
    -0.295861683892,
    0.272945610928,
    0.108416479675,
    0.167957789747,
    0.168642238592,
    0.16928339226,
)
SLOPE = 0.3
END = 10.7
# erf(x) / x as a series in x², for |x| up to 0.5
SERIES = tuple(
    2 / math.sqrt(math.pi) * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in reversed(range(8))
)

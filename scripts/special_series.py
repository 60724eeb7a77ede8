"""The Chebyshev series of `webgrad.special`; needs mpmath.

`python -m scripts.special_series` writes their table. In: for each series the function that
it is of, on -1 to 1, in the numbers of mpmath. Out: `webgrad/special/series_table.py`.
A series ends where what is left out is below a rounding of float64.
"""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Callable
from typing import Any

from scripts.system import ROOT

__all__ = ["SERIES", "coefficients", "main"]

mp: Any = importlib.import_module("mpmath").mp
NODES = 80
TARGET = ROOT / "webgrad" / "special" / "series_table.py"
HEAD = '''"""Coefficients of the series that `series.py` adds up; made by `python -m scripts.special_series`.

In: nothing. Out: a line for each series: its name, and its coefficients, the constant first.
"""

# fmt: off
TABLE = """
'''


def inverse(t: Any, least: float) -> Any:
    """x from `least` to infinity, of t = 2 (least / x)² - 1."""
    return least / mp.sqrt((t + 1) / 2)


def moebius(t: Any, middle: float, reach: float) -> Any:
    """x of reach t = (x - middle) / (x + middle)."""
    return middle * (1 + reach * t) / (1 - reach * t)


def lgamma(t: Any) -> Any:
    x = moebius(t, 2, 0.6)
    return mp.loggamma(x) / ((x - 1) * (x - 2))


def lgamma_tail(t: Any) -> Any:
    x = inverse(t, 8)
    return x * (mp.loggamma(x) - (x - 0.5) * (mp.log(x) - 1) + 0.5 - mp.log(2 * mp.pi) / 2)


def digamma(t: Any) -> Any:
    x = moebius(t, 3, 0.5)
    return mp.digamma(x) / (x - mp.findroot(mp.digamma, 1.46))


def digamma_tail(t: Any) -> Any:
    x = inverse(t, 9)
    return x * x * (mp.digamma(x) - mp.log(x) + 1 / (2 * x))


def erfinv(t: Any) -> Any:
    """erfinv(x) / x, of s = sqrt(-log(1 - x²)) = 3 (t + 1)."""
    x = mp.sqrt(-mp.expm1(-((3 * (t + 1)) ** 2)))
    return mp.erfinv(x) / x


def erfinv_tail(t: Any) -> Any:
    """erfinv(x) / s, of 1 / s from 1 / 28 to 1 / 6."""
    s = 1 / ((t + 1) / 2 * (mp.mpf(1) / 6 - mp.mpf(1) / 28) + mp.mpf(1) / 28)
    with mp.workdps(720):
        left = -mp.expm1(mp.log1p(-mp.exp(-s * s)) / 2)  # 1 - x
        start = s - mp.log(s * mp.sqrt(mp.pi) / 2) / (2 * s)
        return mp.findroot(lambda y: mp.log(mp.erfc(y)) - mp.log(left), start) / s


def erfcx(t: Any) -> Any:
    x = moebius(t, 2, 1)
    return mp.exp(x * x) * mp.erfc(x) * (x + 2)


def i0e(t: Any) -> Any:
    x = 4 * (t + 1)
    return mp.exp(-x) * mp.besseli(0, x)


def i0e_tail(t: Any) -> Any:
    x = 16 / (t + 1)
    return mp.sqrt(x) * mp.exp(-x) * mp.besseli(0, x)


def i1e(t: Any) -> Any:
    x = 4 * (t + 1)
    return mp.exp(-x) * mp.besseli(1, x) / x


def i1e_tail(t: Any) -> Any:
    x = 16 / (t + 1)
    return mp.sqrt(x) * mp.exp(-x) * mp.besseli(1, x)


def k0(t: Any) -> Any:
    x = mp.sqrt(2 * (t + 1))
    return mp.besselk(0, x) + mp.log(x / 2) * mp.besseli(0, x)


def k0e_tail(t: Any) -> Any:
    x = 4 / (t + 1)
    return mp.sqrt(x) * mp.exp(x) * mp.besselk(0, x)


def k1(t: Any) -> Any:
    x = mp.sqrt(2 * (t + 1))
    return x * (mp.besselk(1, x) - mp.log(x / 2) * mp.besseli(1, x))


def k1e_tail(t: Any) -> Any:
    x = 4 / (t + 1)
    return mp.sqrt(x) * mp.exp(x) * mp.besselk(1, x)


def j0(t: Any) -> Any:
    return mp.besselj(0, mp.sqrt(32 * (t + 1)))


def j1(t: Any) -> Any:
    x = mp.sqrt(32 * (t + 1))
    return mp.besselj(1, x) / x


def y0(t: Any) -> Any:
    x = mp.sqrt(32 * (t + 1))
    return mp.bessely(0, x) - 2 / mp.pi * mp.log(x) * mp.besselj(0, x)


def y1(t: Any) -> Any:
    x = mp.sqrt(32 * (t + 1))
    return (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x


def _wave(order: int, t: Any) -> tuple[Any, Any, Any]:
    """x, and the amplitudes of the cosine and of the sine that Bessel functions are far away."""
    x = inverse(t, 8)
    angle = x - (2 * order + 1) * mp.pi / 4
    scale = mp.sqrt(mp.pi * x / 2)
    j, y = mp.besselj(order, x), mp.bessely(order, x)
    return x, scale * (j * mp.cos(angle) + y * mp.sin(angle)), scale * (y * mp.cos(angle) - j * mp.sin(angle))


def j0_cosine(t: Any) -> Any:
    return _wave(0, t)[1]


def j0_sine(t: Any) -> Any:
    x, _, sine = _wave(0, t)
    return x * sine


def j1_cosine(t: Any) -> Any:
    return _wave(1, t)[1]


def j1_sine(t: Any) -> Any:
    x, _, sine = _wave(1, t)
    return x * sine


def airy(t: Any) -> Any:
    return mp.airyai(3 * t - 1)


def airy_tail(t: Any) -> Any:
    zeta = 2 * (2 / mp.mpf(3) * mp.mpf(2) ** 1.5) / (t + 1)
    x = (1.5 * zeta) ** (mp.mpf(2) / 3)
    return mp.airyai(x) * 2 * mp.sqrt(mp.pi) * x**0.25 * mp.exp(zeta)


def _airy_wave(t: Any) -> tuple[Any, Any, Any]:
    zeta = inverse(t, mp.mpf(16) / 3)
    x = (1.5 * zeta) ** (mp.mpf(2) / 3)
    angle, scale = zeta + mp.pi / 4, mp.sqrt(mp.pi) * x**0.25
    ai, bi = mp.airyai(-x), mp.airybi(-x)
    return (
        zeta,
        scale * (ai * mp.sin(angle) + bi * mp.cos(angle)),
        (scale * (bi * mp.sin(angle) - ai * mp.cos(angle))),
    )


def airy_sine(t: Any) -> Any:
    return _airy_wave(t)[1]


def airy_cosine(t: Any) -> Any:
    zeta, _, cosine = _airy_wave(t)
    return zeta * cosine


SERIES: tuple[Callable[[Any], Any], ...] = (
    *(lgamma, lgamma_tail, digamma, digamma_tail, erfinv, erfinv_tail, erfcx),
    *(i0e, i0e_tail, i1e, i1e_tail, k0, k0e_tail, k1, k1e_tail, j0, j1, y0, y1),
    *(j0_cosine, j0_sine, j1_cosine, j1_sine, airy, airy_tail, airy_sine, airy_cosine),
)


def coefficients(function: Callable[[Any], Any]) -> list[float]:
    """The coefficients of a function's series, by its values at the zeros of a Chebyshev polynomial."""
    angles = [mp.pi * (at + mp.mpf(1) / 2) / NODES for at in range(NODES)]
    values = [mp.re(function(mp.cos(angle))) for angle in angles]
    found = [
        2 * mp.fsum(value * mp.cos(k * angle) for value, angle in zip(values, angles, strict=True)) / NODES
        for k in range(NODES)
    ]
    found[0] /= 2
    least = max(abs(each) for each in found) * mp.mpf(2) ** -57
    last = max(k for k, each in enumerate(found) if abs(each) > least)
    return [float(each) for each in found[: last + 1]]


def main() -> None:
    """Write the table."""
    mp.dps = 50
    lines = []
    for function in SERIES:
        words = " ".join(repr(each) for each in coefficients(function))
        lines += textwrap.wrap(f"{function.__name__} {words}", 108, subsequent_indent="  ")
    TARGET.write_text(HEAD + "\n".join(lines) + '\n"""\n', encoding="utf-8")


if __name__ == "__main__":
    main()

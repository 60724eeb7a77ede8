"""Windows, by SciPy's and PyTorch's names: `webgrad.signal.windows`.

In: a length; `sym=False` makes a window whose copies, one after the other, are a period: a symmetric one of
one element more, without its last. Out: a lazy tensor of floats, 1 at its middle (but for rounding).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import webgrad as wg
from webgrad import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "hanning",
    "kaiser",
    "nuttall",
]


def _window(
    name: str, count: Any, sym: bool, dtype: Any, device: Any, formula: Callable[[Tensor, int], Tensor]
) -> Tensor:
    """A formula of places 0 to count - 1 and of the length of the symmetric window that they belong to."""
    if not hasattr(count, "__index__") or count.__index__() < 0:
        raise wg.ArgumentError(f"signal.windows.{name}: a window has 0 elements or more, not {count!r}")
    wanted = wg.float32 if dtype is None else wg.as_dtype(dtype)
    if wanted.kind != "f":
        raise wg.DTypeError(f"signal.windows.{name} gives floats, not {wanted.name}")
    length = count.__index__()
    if length < 2:
        return wg.ones(length, dtype=wanted, device=device)
    places = wg.arange(length, dtype=wanted.wide, device=device)
    return formula(places, length if sym else length + 1).astype(wanted, copy=False)


def general_cosine(
    M: int, a: Sequence[float], *, sym: bool = True, dtype: Any = None, device: Any = None
) -> Tensor:
    """The sum of cosines a[0] - a[1] cos(t) + a[2] cos(2t) - …, for t from 0 to 2π.

    >>> [round(each, 4) for each in wg.signal.windows.general_cosine(5, [0.5, 0.5]).tolist()]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _cosines("general_cosine", M, a, sym, dtype, device)


def _cosines(name: str, M: int, a: Sequence[float], sym: bool, dtype: Any, device: Any) -> Tensor:
    if not a:
        raise wg.ArgumentError(f"signal.windows.{name}: a is a sequence of numbers, not {a!r}")

    def formula(places: Tensor, length: int) -> Tensor:
        total: Any = float(a[0])
        for order, factor in enumerate(a[1:], 1):
            angles = places * (2 * math.pi * order / (length - 1))
            total = total + (-1) ** order * float(factor) * wg.cos(angles)
        return wg.broadcast_to(wg.asarray(total, dtype=places.dtype, device=places.device), places.shape)

    return _window(name, M, sym, dtype, device, formula)


def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, device: Any = None
) -> Tensor:
    """alpha - (1 - alpha) cos(t), for t from 0 to 2π.

    >>> [round(each, 4) for each in wg.signal.windows.general_hamming(3, alpha=0.6).tolist()]
    [0.2, 1.0, 0.2]
    """
    return _cosines("general_hamming", M, [alpha, 1.0 - alpha], sym, dtype, device)


def hann(M: int, *, sym: bool = True, dtype: Any = None, device: Any = None) -> Tensor:
    """Half a cosine and a half: 0 at both ends.

    >>> [round(each, 4) for each in wg.signal.windows.hann(4, sym=False).tolist()]
    [0.0, 0.5, 1.0, 0.5]
    """
    return _cosines("hann", M, [0.5, 0.5], sym, dtype, device)


hanning = hann  # by NumPy's name


def hamming(M: int, *, sym: bool = True, dtype: Any = None, device: Any = None) -> Tensor:
    """`general_hamming` of 0.54.

    >>> [round(each, 4) for each in wg.signal.windows.hamming(3).tolist()]
    [0.08, 1.0, 0.08]
    """
    return _cosines("hamming", M, [0.54, 0.46], sym, dtype, device)


def blackman(M: int, *, sym: bool = True, dtype: Any = None, device: Any = None) -> Tensor:
    """`general_cosine` of 0.42, 0.5 and 0.08.

    >>> [round(abs(each), 4) for each in wg.signal.windows.blackman(5).tolist()]
    [0.0, 0.34, 1.0, 0.34, 0.0]
    """
    return _cosines("blackman", M, [0.42, 0.5, 0.08], sym, dtype, device)


def nuttall(M: int, *, sym: bool = True, dtype: Any = None, device: Any = None) -> Tensor:
    """`general_cosine` of four terms whose side lobes are lowest.

    >>> [round(each, 4) for each in wg.signal.windows.nuttall(3).tolist()]
    [0.0004, 1.0, 0.0004]
    """
    return _cosines("nuttall", M, [0.3635819, 0.4891775, 0.1365995, 0.0106411], sym, dtype, device)


def bartlett(M: int, *, sym: bool = True, dtype: Any = None, device: Any = None) -> Tensor:
    """A triangle: 0 at both ends.

    >>> wg.signal.windows.bartlett(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _window(
        "bartlett", M, sym, dtype, device, lambda places, length: 1 - wg.abs(places * (2 / (length - 1)) - 1)
    )


def cosine(M: int, *, sym: bool = True, dtype: Any = None, device: Any = None) -> Tensor:
    """Half a wave of a sine.

    >>> [round(each, 4) for each in wg.signal.windows.cosine(3).tolist()]
    [0.5, 1.0, 0.5]
    """
    return _window(
        "cosine", M, sym, dtype, device, lambda places, length: wg.sin((places + 0.5) * (math.pi / length))
    )


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """exp(-|k - center| / tau); a symmetric one has its center in the middle.

    >>> [round(each, 4) for each in wg.signal.windows.exponential(3).tolist()]
    [0.3679, 1.0, 0.3679]
    """
    if not tau > 0:
        raise wg.ArgumentError(f"signal.windows.exponential: Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise wg.ArgumentError("signal.windows.exponential: Center must be None for symmetric windows")

    def formula(places: Tensor, length: int) -> Tensor:
        middle = (length - 1) / 2 if center is None else center
        return wg.exp(-wg.abs(places - middle) / tau)

    return _window("exponential", M, sym, dtype, device, formula)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, device: Any = None) -> Tensor:
    """The bell of a normal distribution, `std` elements wide.

    >>> [round(each, 4) for each in wg.signal.windows.gaussian(3).tolist()]
    [0.6065, 1.0, 0.6065]
    """
    if not std > 0:
        raise wg.ArgumentError(
            f"signal.windows.gaussian: Standard deviation must be positive, got: {std} instead."
        )
    return _window(
        "gaussian",
        M,
        sym,
        dtype,
        device,
        lambda places, length: wg.exp(-0.5 * wg.square((places - (length - 1) / 2) / std)),
    )


def kaiser(M: int, beta: float = 12.0, *, sym: bool = True, dtype: Any = None, device: Any = None) -> Tensor:
    """A Bessel function of a half circle: the larger beta, the narrower it is.

    >>> [round(each, 4) for each in wg.signal.windows.kaiser(3, beta=2.0).tolist()]
    [0.4387, 1.0, 0.4387]
    """
    if beta < 0:
        raise wg.ArgumentError(f"signal.windows.kaiser: beta must be non-negative, got: {beta} instead.")

    def formula(places: Tensor, length: int) -> Tensor:
        across = places * (2 / (length - 1)) - 1
        inside = beta * wg.sqrt(wg.maximum(1 - across * across, 0.0))
        # exp(-x) i0(x) does not overflow
        scale = wg.special.i0e(wg.asarray(float(beta), dtype=places.dtype, device=places.device))
        return wg.special.i0e(inside) / scale * wg.exp(inside - beta)

    return _window("kaiser", M, sym, dtype, device, formula)

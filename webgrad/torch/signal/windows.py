"""torch.signal.windows: those of `webgrad.signal`, with torch's options for new tensors.

In: a length, and what shapes the window. Out: a tensor of torch's default float.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import webgrad as wg

from ..binding import absent, bind
from ..creation import made
from ..defaults import float_dtype
from ..devices import place

__all__: list[str] = []

ROWS = """
[function]
bartlett(M, *, sym=True, $options) = window("bartlett", M, sym, $given)
blackman(M, *, sym=True, $options) = window("blackman", M, sym, $given)
cosine(M, *, sym=True, $options) = window("cosine", M, sym, $given)
exponential(M, *, center=None, tau=1.0, sym=True, $options) = window("exponential", M, sym, $given,
    center=center, tau=tau)
gaussian(M, *, std=1.0, sym=True, $options) = window("gaussian", M, sym, $given, std=std)
general_cosine(M, *, a, sym=True, $options) = window("general_cosine", M, sym, $given,
    a=coefficients(a))
general_hamming(M, *, alpha=0.54, sym=True, $options) = window("general_hamming", M, sym, $given,
    alpha=alpha)
hamming(M, *, sym=True, $options) = window("hamming", M, sym, $given)
hann(M, *, sym=True, $options) = window("hann", M, sym, $given)
kaiser(M, *, beta=12.0, sym=True, $options) = window("kaiser", M, sym, $given, beta=beta)
nuttall(M, *, sym=True, $options) = window("nuttall", M, sym, $given)
"""
SHORT = {
    "$options": "dtype=None, layout=None, device=None, requires_grad=False",
    "$given": "dtype, device, requires_grad",
}


def window(
    name: str, count: int, sym: bool, dtype: Any, device: Any, requires_grad: bool, **shape: Any
) -> Any:
    """A window by name; one of another dtype than floats of 32 and 64 bits is refused."""
    wanted = float_dtype() if dtype is None else wg.as_dtype(dtype)
    if wanted not in (wg.float32, wg.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {wanted.name}")
    make = getattr(wg.signal.windows, name)
    return made(make(count, sym=sym, dtype=wanted, device=place(device), **shape), requires_grad)


def coefficients(a: Any) -> list[float]:
    """The numbers before the cosines."""
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    return list(a)


_functions = bind(ROWS, globals(), SHORT)
globals().update(_functions)
__all__ += _functions
__getattr__ = absent(__name__, __all__)

"""torch.fft: the functions of `webgrad.fft` by torch's names and signatures.

In: tensors. Out: tensors of floats or complex numbers, on the same device.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg

from .binding import absent, bind
from .creation import given, made
from .defaults import float_dtype
from .devices import place
from .pointwise import floats

__all__: list[str] = []

ONE = "fft ifft rfft irfft hfft ihfft"
TWO = "fft2 ifft2 rfft2 irfft2 hfft2 ihfft2"
SEVERAL = "fftn ifftn rfftn irfftn hfftn ihfftn"
ROWS = """
[function]
fftshift(input, dim=None) = wf.fftshift(input, dim)
ifftshift(input, dim=None) = wf.ifftshift(input, dim)
fftfreq(n, d=1.0, *, out=None, $options) = frequencies(wf.fftfreq, n, d, out, dtype, device, requires_grad)
rfftfreq(n, d=1.0, *, out=None, $options) = frequencies(wf.rfftfreq, n, d, out, dtype, device,
    requires_grad)
"""
OPTIONS = {"$options": "dtype=None, layout=None, device=None, requires_grad=False"}
wf: Any = wg.fft


def rows() -> str:
    """A row for each transform: along one dimension, along the last two, along all."""
    lines = ["[function out]"]
    for names, size, dim in ((ONE, "n", "-1"), (TWO, "s", "(-2, -1)"), (SEVERAL, "s", "None")):
        lines += [
            f"{name}(input, {size}=None, dim={dim}, norm=None) = wf.{name}(floats(input), {size}, dim, norm)"
            for name in names.split()
        ]
    return "\n".join(lines)


def frequencies(function: Any, n: int, d: float, out: Any, dtype: Any, device: Any, learnt: bool) -> Any:
    """The frequencies of a transform in torch's default dtype."""
    return given(out, made(function(n, d, dtype or float_dtype(), place(device)), learnt))


_functions = bind(rows() + ROWS, globals(), OPTIONS)
globals().update(_functions)
__all__ += _functions
__getattr__ = absent(__name__, __all__)

"""Complex numbers by size and angle, and the question whether numbers are complex.

In: tensors. Out: tensors of floats or complex numbers, made of the functions of `elementwise.py`.
"""

from __future__ import annotations

import math
from typing import Any

from ..tensor import Tensor
from . import elementwise
from .creation import as_tensor, zeros_like
from .elementwise import atan2, cos, isnan, signbit, sin, where

__all__ = ["angle", "is_complex", "polar"]


def angle(x: Tensor) -> Tensor:
    """The angles of complex numbers, from -π to π; of real ones 0, or π where they are negative.

    >>> wg.angle(wg.asarray([1j, -1 + 0j])).tolist()
    [1.5707963705062866, 3.1415927410125732]
    """
    x = as_tensor("angle", x)
    if x.dtype.kind == "c":
        return atan2(elementwise.imag(x), elementwise.real(x))
    if x.dtype.kind != "f":
        return where(x < 0, math.pi, 0.0)
    zero = zeros_like(x)
    return where(isnan(x), x, where(signbit(x), zero + math.pi, zero))


def polar(abs: Any, angle: Any) -> Tensor:
    """Complex numbers from their sizes and angles.

    >>> wg.polar(wg.asarray([2.0]), wg.asarray([0.0])).tolist()
    [(2+0j)]
    """
    size, turn = as_tensor("polar", abs), as_tensor("polar", angle)
    return elementwise.complex(size * cos(turn), size * sin(turn))


def is_complex(x: Tensor) -> bool:
    """Whether a tensor's dtype is complex.

    >>> wg.is_complex(wg.asarray([1j]))
    True
    """
    return as_tensor("is_complex", x).dtype.kind == "c"

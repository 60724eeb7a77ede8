"""Complex numbers and their parts, absolute values and angles.

In: tensors. Out: tensors of floats or complex numbers, made of the functions of `elementwise.py`.
"""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ...ops import moves, primitives, shapes
from ...tensor import Tensor, view
from ..array.creation import as_tensor, zeros_like
from ..array.elementwise import as_floats, atan2, cos, isnan, negative, signbit, sin, where


def real(x: Tensor) -> Tensor:
    """The real parts of complex numbers; real numbers are their own.

    >>> wg.real(wg.asarray([1 + 2j, 3 - 4j])).tolist()
    [1.0, 3.0]
    """
    x = as_tensor("real", x)
    return view(x, (moves.one_part, 0)) if x.dtype.kind == "c" else x


def imag(x: Tensor) -> Tensor:
    """The imaginary parts of complex numbers; of real ones zeros.

    >>> wg.imag(wg.asarray([1 + 2j, 3 - 4j])).tolist()
    [2.0, -4.0]
    """
    x = as_tensor("imag", x)
    return view(x, (moves.one_part, 1)) if x.dtype.kind == "c" else zeros_like(x)


def conj(x: Tensor) -> Tensor:
    """The conjugates of complex numbers: the imaginary part negated; real numbers stay.

    >>> wg.conj(wg.asarray([1 + 2j])).tolist()
    [(1-2j)]
    """
    x = as_tensor("conj", x)
    if x.dtype.kind != "c":
        return x
    real_part, imaginary = primitives.parts(x.node)
    return Tensor(primitives.join(real_part, negative(Tensor(imaginary)).node))


def complex(real: Any, imag: Any) -> Tensor:
    """Complex numbers from their real and imaginary parts.

    >>> wg.complex(wg.asarray([1.0, 2.0]), 0.5).tolist()
    [(1+0.5j), (2+0.5j)]
    """
    parts = [
        each.astype(dtypes.float32, copy=False) if each.dtype is not dtypes.float64 else each
        for each in as_floats("complex", real, imag)
    ]
    return Tensor(primitives.join(parts[0].node, parts[1].node))


def view_as_real(x: Tensor) -> Tensor:
    """Complex numbers as pairs of floats, along a new last axis.

    >>> wg.view_as_real(wg.asarray([1 + 2j])).tolist()
    [[1.0, 2.0]]
    """
    x = as_tensor("view_as_real", x)
    shapes.check_kind("view_as_real", "c", x.dtype)
    return view(x, (moves.as_parts, None))


def view_as_complex(x: Tensor) -> Tensor:
    """Pairs of floats, along the last axis, as complex numbers.

    >>> wg.view_as_complex(wg.asarray([[1.0, 2.0]])).tolist()
    [(1+2j)]
    """
    return view(as_tensor("view_as_complex", x), (moves.as_numbers, None))


def angle(x: Tensor) -> Tensor:
    """The angles of complex numbers, from -π to π; of real ones 0, or π where they are negative.

    >>> wg.angle(wg.asarray([1j, -1 + 0j])).tolist()
    [1.5707963705062866, 3.1415927410125732]
    """
    x = as_tensor("angle", x)
    if x.dtype.kind == "c":
        return atan2(imag(x), real(x))
    if x.dtype.kind != "f":
        return where(x < 0, math.pi, 0.0)
    zero = zeros_like(x)
    return where(isnan(x), x, where(signbit(x), zero + math.pi, zero))


def polar(abs: Any, angle: Any) -> Tensor:
    """Complex numbers from their absolute values and angles.

    >>> wg.polar(wg.asarray([2.0]), wg.asarray([0.0])).tolist()
    [(2+0j)]
    """
    size, turn = as_tensor("polar", abs), as_tensor("polar", angle)
    return complex(size * cos(turn), size * sin(turn))


def is_complex(x: Tensor) -> bool:
    """Whether a tensor's dtype is complex.

    >>> wg.is_complex(wg.asarray([1j]))
    True
    """
    return as_tensor("is_complex", x).dtype.kind == "c"

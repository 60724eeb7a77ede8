"""Discrete Fourier transforms, `wg.fft`: the array API's extension, and what NumPy has for two dimensions.

In: tensors of floats or complex numbers on any device; integers are taken as float32. Out: lazy tensors,
complex64, or complex128 of float64, with gradients. All lengths are transformed where the tensor is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from . import dtypes
from .arrays import np
from .dtypes import as_dtype, complex_of
from .errors import ArgumentError, DTypeError, ShapeError
from .functions.array.creation import as_tensor, asarray
from .functions.array.manipulation import roll
from .functions.array.reshaping import moveaxis, part, whole, wholes
from .functions.complex.parts import conj
from .functions.fourier import transform
from .functions.spellings import all_spelled
from .ops import primitives
from .ops.shapes import normalise_axis
from .tensor import Tensor

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

Norm = Literal["backward", "ortho", "forward"] | None
Sizes = Sequence[int] | None
Axes = Sequence[int] | None

# norm → the power of the length by which a transform there, and one back, is divided
_POWERS = {"backward": (0.0, 1.0), "ortho": (0.5, 0.5), "forward": (1.0, 0.0)}


def _scale(op: str, norm: Norm, length: int, inverse: bool) -> float:
    powers = _POWERS.get("backward" if norm is None else norm)
    if powers is None:
        raise ArgumentError(f"{op}: norm is one of {', '.join(map(repr, _POWERS))}, not {norm!r}")
    power = powers[inverse]
    return 1.0 if power == 0 else 1 / length if power == 1 else 1 / math.sqrt(length)


def _transformable(op: str, value: Any) -> Tensor:
    """Floats of at least 32 bits, or complex numbers."""
    x = as_tensor(op, value)
    if x.dtype.kind == "c":
        return x
    wanted = x.dtype if x.dtype is dtypes.float64 else dtypes.float32
    return Tensor(primitives.cast(x.node, wanted))


def _real_only(op: str, value: Any) -> Tensor:
    """Floats of at least 32 bits."""
    x = _transformable(op, value)
    if x.dtype.kind == "c":
        raise DTypeError(
            f"{op} takes real numbers, not {x.dtype.name}: transform them with webgrad.fft.fft or fftn, or "
            "take webgrad.real(x)"
        )
    return x


def _as_complex(x: Tensor) -> Tensor:
    return Tensor(primitives.cast(x.node, complex_of(x.dtype)))


def _length(op: str, n: Any, default: int) -> int:
    length = default if n is None else whole(op, "n", n)
    if length < 1:
        raise ShapeError(
            f"{op} of {length} numbers: there must be at least one; give n to fill up with zeros"
        )
    if length >= 1 << 63:
        raise ShapeError(f"{op} of {length} numbers: no machine counts so far; give a smaller n")
    return length


def _cropped_or_padded(x: Tensor, axis: int, length: int) -> Tensor:
    """An axis cut off, or filled up with zeros."""
    size = x.shape[axis]
    if size > length:
        return part(x, axis, 0, length)
    if size == length:
        return x
    widths = [(0, length - size if each == axis else 0) for each in range(x.ndim)]
    if x.dtype.kind == "c":
        pairs = primitives.pad(primitives.as_real(x.node), (*widths, (0, 0)))
        return Tensor(primitives.as_complex(pairs))
    return Tensor(primitives.pad(x.node, tuple(widths)))


def _pairs(x: Tensor) -> Tensor:
    return Tensor(primitives.as_real(x.node))


def _from_pairs(pairs: Tensor) -> Tensor:
    return Tensor(primitives.as_complex(pairs.node))


# Along one axis that is known, to a length


def _complex_along(x: Tensor, axis: int, length: int, inverse: bool, scale: float) -> Tensor:
    """All numbers of a transform; that of real ones is mirrored in its middle."""
    given = _cropped_or_padded(x, axis, length)
    if x.dtype.kind == "c":
        return _from_pairs(transform.transformed(_pairs(given), inverse, scale, axis))
    half = transform.half_of_real(moveaxis(given, axis, -1), scale)
    result = moveaxis(_from_pairs(transform.mirrored(half, length)), -1, axis)
    return conj(result) if inverse else result


def _half_along(x: Tensor, axis: int, length: int, scale: float) -> Tensor:
    line = moveaxis(_cropped_or_padded(x, axis, length), axis, -1)
    return moveaxis(_from_pairs(transform.half_of_real(line, scale)), -1, axis)


def _real_along(x: Tensor, axis: int, length: int, scale: float) -> Tensor:
    line = moveaxis(_cropped_or_padded(_as_complex(x), axis, length // 2 + 1), axis, -1)
    return moveaxis(transform.real_from_half(_pairs(line), length, scale), -1, axis)


# One dimension


def _along(
    op: str, x: Tensor, n: int | None, axis: int, norm: Norm, *, inverse: bool, half: bool = False
) -> tuple[int, int, float]:
    """The axis, the length to transform, and the scale; with `half` x is the first half of a transform."""
    along = normalise_axis(op, axis, x.ndim)
    own = 2 * (x.shape[along] - 1) if half else x.shape[along]
    length = _length(op, n, own)
    return along, length, _scale(op, norm, length, inverse)


def _one(op: str, x: Any, n: int | None, axis: int, norm: Norm, inverse: bool) -> Tensor:
    x = _transformable(op, x)
    along, length, scale = _along(op, x, n, axis, norm, inverse=inverse)
    return _complex_along(x, along, length, inverse, scale)


def fft(x: Tensor, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """The discrete Fourier transform along an axis, cut off or filled up with zeros to n elements.

    >>> wg.real(wg.fft.fft(wg.asarray([1.0, 0.0, 0.0, 0.0]))).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _one("fft", x, n, axis, norm, False)


def ifft(x: Tensor, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """The inverse of `fft`.

    >>> wg.real(wg.fft.ifft(wg.asarray([4.0, 0.0, 0.0, 0.0]))).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _one("ifft", x, n, axis, norm, True)


def rfft(x: Tensor, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """The first n // 2 + 1 numbers of the transform of real ones; the others are their conjugates.

    >>> wg.fft.rfft(wg.asarray([1.0, 1.0, 1.0, 1.0])).tolist()
    [(4+0j), 0j, 0j]
    """
    x = _real_only("rfft", x)
    return _half_along(x, *_along("rfft", x, n, axis, norm, inverse=False))


def irfft(x: Tensor, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """The inverse of `rfft`: n real numbers, 2 (m - 1) of m where n is not given.

    Imaginary parts that real numbers cannot give, of the first number and the middle one, are ignored.

    >>> wg.fft.irfft(wg.asarray([4.0 + 0j, 0j, 0j])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    x = _transformable("irfft", x)
    return _real_along(x, *_along("irfft", x, n, axis, norm, inverse=True, half=True))


def hfft(x: Tensor, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """The transform of a signal whose other half is the conjugate of the one given: real numbers.

    >>> wg.fft.hfft(wg.asarray([1.0 + 0j, 0j, 0j])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    x = _transformable("hfft", x)
    return _real_along(conj(x), *_along("hfft", x, n, axis, norm, inverse=False, half=True))


def ihfft(x: Tensor, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """The inverse of `hfft`: the first n // 2 + 1 numbers.

    >>> wg.real(wg.fft.ihfft(wg.asarray([1.0, 1.0, 1.0, 1.0]))).tolist()
    [1.0, 0.0, 0.0]
    """
    x = _real_only("ihfft", x)
    return conj(_half_along(x, *_along("ihfft", x, n, axis, norm, inverse=True)))


# Several dimensions


def _axes_and_lengths(op: str, x: Tensor, s: Sizes, axes: Axes, real: bool = False) -> list[tuple[int, int]]:
    """The axes, each with the length it is brought to; with `real` the last one is a half of its result."""
    if axes is None:
        count = x.ndim if s is None else len(wholes(op, "an element of s", s))
        if count > x.ndim:
            raise ShapeError(
                f"{op} of a tensor of shape {x.shape}: s={s!r} has more elements than x has axes"
            )
        along = list(range(x.ndim - count, x.ndim))
    else:
        along = [normalise_axis(op, each, x.ndim) for each in wholes(op, "an axis", axes)]
    if not along:
        raise ArgumentError(f"{op} of a tensor of shape {x.shape}: there must be an axis to transform")
    wanted = [-1] * len(along) if s is None else list(wholes(op, "an element of s", s))
    if len(wanted) != len(along):
        raise ArgumentError(f"{op}: s={s!r} and axes={axes!r} must be of the same length")
    found = []
    for at, (axis, size) in enumerate(zip(along, wanted, strict=True)):
        own = 2 * (x.shape[axis] - 1) if real and at == len(along) - 1 else x.shape[axis]
        found.append((axis, _length(op, own if size == -1 else size, own)))
    return found


def _several(op: str, value: Any, s: Sizes, axes: Axes, norm: Norm, inverse: bool) -> Tensor:
    x = _transformable(op, value)
    for axis, length in reversed(_axes_and_lengths(op, x, s, axes)):
        x = _complex_along(x, axis, length, inverse, _scale(op, norm, length, inverse))
    return x


def _several_real(op: str, x: Any, s: Sizes, axes: Axes, norm: Norm) -> Tensor:
    x = _real_only(op, x)
    *others, (axis, length) = _axes_and_lengths(op, x, s, axes)
    half = _half_along(x, axis, length, _scale(op, norm, length, False))
    for axis, length in reversed(others):
        half = _complex_along(half, axis, length, False, _scale(op, norm, length, False))
    return half


def _several_back(op: str, x: Any, s: Sizes, axes: Axes, norm: Norm) -> Tensor:
    x = _as_complex(_transformable(op, x))
    *others, (last, length) = _axes_and_lengths(op, x, s, axes, real=True)
    for axis, size in others:
        x = _complex_along(x, axis, size, True, _scale(op, norm, size, True))
    return _real_along(x, last, length, _scale(op, norm, length, True))


def _several_hermitian(op: str, x: Any, s: Sizes, axes: Axes, norm: Norm) -> Tensor:
    x = _as_complex(_transformable(op, x))
    *others, (last, length) = _axes_and_lengths(op, x, s, axes, real=True)
    for axis, size in others:
        x = _complex_along(x, axis, size, False, _scale(op, norm, size, False))
    return _real_along(conj(x), last, length, _scale(op, norm, length, False))


def _several_hermitian_back(op: str, x: Any, s: Sizes, axes: Axes, norm: Norm) -> Tensor:
    x = _real_only(op, x)
    *others, (axis, length) = _axes_and_lengths(op, x, s, axes)
    half = conj(_half_along(x, axis, length, _scale(op, norm, length, True)))
    for axis, length in reversed(others):
        half = _complex_along(half, axis, length, True, _scale(op, norm, length, True))
    return half


def fftn(x: Tensor, /, s: Sizes = None, axes: Axes = None, norm: Norm = "backward") -> Tensor:
    """The transform along several axes, or all, each cut off or filled up with zeros to its size in s.

    >>> wg.fft.fftn(wg.ones((2, 2))).tolist()
    [[(4+0j), 0j], [0j, 0j]]
    """
    return _several("fftn", x, s, axes, norm, False)


def ifftn(x: Tensor, /, s: Sizes = None, axes: Axes = None, norm: Norm = "backward") -> Tensor:
    """The inverse of `fftn`.

    >>> wg.real(wg.fft.ifftn(wg.ones((2, 2)))).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _several("ifftn", x, s, axes, norm, True)


def rfftn(x: Tensor, /, s: Sizes = None, axes: Axes = None, norm: Norm = "backward") -> Tensor:
    """The transform of real numbers along several axes: `rfft` along the last one, `fft` along the others.

    >>> wg.fft.rfftn(wg.ones((2, 4))).shape
    (2, 3)
    """
    return _several_real("rfftn", x, s, axes, norm)


def irfftn(x: Tensor, /, s: Sizes = None, axes: Axes = None, norm: Norm = "backward") -> Tensor:
    """The inverse of `rfftn`: real numbers.

    >>> wg.fft.irfftn(wg.fft.rfftn(wg.ones((2, 4)))).shape
    (2, 4)
    """
    return _several_back("irfftn", x, s, axes, norm)


def hfftn(x: Tensor, /, s: Sizes = None, axes: Axes = None, norm: Norm = "backward") -> Tensor:
    """The transform of a signal whose other half is conjugate, along several axes: real numbers.

    It is `hfft` along the last axis, `fft` along the others.

    >>> wg.fft.hfftn(wg.ones((2, 3))).shape
    (2, 4)
    """
    return _several_hermitian("hfftn", x, s, axes, norm)


def ihfftn(x: Tensor, /, s: Sizes = None, axes: Axes = None, norm: Norm = "backward") -> Tensor:
    """The inverse of `hfftn`: the half of it that the other one follows from.

    >>> wg.fft.ihfftn(wg.ones((2, 4))).shape
    (2, 3)
    """
    return _several_hermitian_back("ihfftn", x, s, axes, norm)


def fft2(x: Tensor, /, s: Sizes = None, axes: Axes = (-2, -1), norm: Norm = "backward") -> Tensor:
    """`fftn` along the last two axes, or two others.

    >>> wg.fft.fft2(wg.ones((3, 2, 2))).shape
    (3, 2, 2)
    """
    return _several("fft2", x, s, axes, norm, False)


def ifft2(x: Tensor, /, s: Sizes = None, axes: Axes = (-2, -1), norm: Norm = "backward") -> Tensor:
    """`ifftn` along the last two axes, or two others.

    >>> wg.fft.ifft2(wg.ones((3, 2, 2))).shape
    (3, 2, 2)
    """
    return _several("ifft2", x, s, axes, norm, True)


def rfft2(x: Tensor, /, s: Sizes = None, axes: Axes = (-2, -1), norm: Norm = "backward") -> Tensor:
    """`rfftn` along the last two axes, or two others.

    >>> wg.fft.rfft2(wg.ones((3, 2, 8))).shape
    (3, 2, 5)
    """
    return _several_real("rfft2", x, s, axes, norm)


def irfft2(x: Tensor, /, s: Sizes = None, axes: Axes = (-2, -1), norm: Norm = "backward") -> Tensor:
    """`irfftn` along the last two axes, or two others.

    >>> wg.fft.irfft2(wg.ones((3, 2, 5))).shape
    (3, 2, 8)
    """
    return _several_back("irfft2", x, s, axes, norm)


def hfft2(x: Tensor, /, s: Sizes = None, axes: Axes = (-2, -1), norm: Norm = "backward") -> Tensor:
    """`hfftn` along the last two axes, or two others.

    >>> wg.fft.hfft2(wg.ones((3, 2, 5))).shape
    (3, 2, 8)
    """
    return _several_hermitian("hfft2", x, s, axes, norm)


def ihfft2(x: Tensor, /, s: Sizes = None, axes: Axes = (-2, -1), norm: Norm = "backward") -> Tensor:
    """`ihfftn` along the last two axes, or two others.

    >>> wg.fft.ihfft2(wg.ones((3, 2, 8))).shape
    (3, 2, 5)
    """
    return _several_hermitian_back("ihfft2", x, s, axes, norm)


# Frequencies


def _frequencies(op: str, n: Any, d: Any, dtype: Any, device: Any, places: Any) -> Tensor:
    count = whole(op, "n", n)
    if count < 1:
        raise ArgumentError(f"{op}: n is the length of a signal, at least 1, not {count}")
    if not isinstance(d, (int, float, np.number)) or d == 0:
        raise ArgumentError(f"{op}: d is the time between two samples, a number other than 0, not {d!r}")
    wanted = dtypes.float32 if dtype is None else as_dtype(dtype)
    if wanted.kind != "f":
        raise DTypeError(f"{op} gives floats, not {wanted.name}")
    return asarray([each / (count * float(d)) for each in places(count)], wanted, device=device)


def fftfreq(n: int, /, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies that the n numbers of a transform belong to, for samples d apart.

    >>> wg.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """

    def places(count: int) -> Iterable[int]:
        return ((each + count // 2) % count - count // 2 for each in range(count))

    return _frequencies("fftfreq", n, d, dtype, device, places)


def rfftfreq(n: int, /, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies that the numbers of `rfft` belong to, for n samples d apart.

    >>> wg.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    return _frequencies("rfftfreq", n, d, dtype, device, lambda count: range(count // 2 + 1))


def _shifted(op: str, value: Any, axes: int | Axes, back: bool) -> Tensor:
    x = as_tensor(op, value)
    along = range(x.ndim) if axes is None else wholes(op, "an axis", axes)
    numbers = [normalise_axis(op, each, x.ndim) for each in along]
    if not numbers:
        return +x
    shifts = [x.shape[each] // 2 for each in numbers]
    return roll(x, [-each for each in shifts] if back else shifts, numbers)


def fftshift(x: Tensor, /, axes: int | Axes = None) -> Tensor:
    """The zero frequency moved to the middle of axes, or of all.

    >>> wg.fft.fftshift(wg.fft.fftfreq(4)).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    return _shifted("fftshift", x, axes, False)


def ifftshift(x: Tensor, /, axes: int | Axes = None) -> Tensor:
    """The inverse of `fftshift`.

    >>> wg.fft.ifftshift(wg.fft.fftshift(wg.fft.fftfreq(5))).tolist() == wg.fft.fftfreq(5).tolist()
    True
    """
    return _shifted("ifftshift", x, axes, True)


globals().update(all_spelled(__all__, globals()))

"""Fourier transforms along one axis, of any length on every device, composed of the rows that devices have.

In: tensors, complex numbers as pairs (…, n, 2). Out: lazy tensors. On GPUs lengths that are products of 2, 3,
5 and 7 have kernels; short other ones are a matrix product; the rest is Bluestein's algorithm: with
jk = (j² + k² - (k-j)²) / 2 the sum is a convolution with a chirp, and that goes by transforms of a power of
two. Real numbers of an even length are half as many complex ones.
"""

from __future__ import annotations

from ...dtypes import complex_of, int32
from ...graph.node import make
from ...ops import primitives
from ...ops.capabilities import has_real_transform, has_transform
from ...ops.table import TABLE
from ...tensor import Tensor
from ..array.elementwise import where
from ..array.reshaping import part, swapaxes
from ..complex.parts import conj
from . import twiddles
from .twiddles import tables

SHORT = 64  # numbers: up to here a product with a matrix is faster than Bluestein's algorithm


def transformed(pairs: Tensor, inverse: bool, scale: float, axis: int = -2) -> Tensor:
    """The sums over an axis of x · exp(∓2πi·jk/n) times a scale, for pairs along the last axis."""
    along = axis % pairs.ndim
    length = pairs.shape[along]
    if length == 1:
        return pairs if scale == 1 else pairs * scale
    if has_transform(pairs.device, length):
        return Tensor(make(TABLE["fft"], (pairs.node,), (inverse, float(scale), along)))
    way = _multiplied if length <= SHORT else _chirped
    return swapaxes(way(swapaxes(pairs, along, -2), inverse, scale), along, -2)


def _multiplied(pairs: Tensor, inverse: bool, scale: float) -> Tensor:
    """The transform as a product with the matrix of all exponentials, over pairs."""
    sig = pairs.node.sig
    length = sig.shape[-2]
    table = tables.get(twiddles.matrix, (length, inverse, float(scale)), sig.dtype, sig.device)
    rows = primitives.reshape(pairs.node, (sig.size // (2 * length), 2 * length))
    return Tensor(primitives.reshape(primitives.contract(rows, table), sig.shape))


def _chirped(pairs: Tensor, inverse: bool, scale: float) -> Tensor:
    """The transform as a convolution with a chirp (Bluestein's algorithm)."""
    sig = pairs.node.sig
    length = sig.shape[-2]
    padded = 1 << (2 * length - 2).bit_length()
    dtype = complex_of(sig.dtype)
    wave = Tensor(tables.get(twiddles.chirp, (length, inverse), dtype, sig.device))
    response = Tensor(tables.get(twiddles.chirp_transform, (length, padded, inverse), dtype, sig.device))
    turned = _pairs(_numbers(pairs) * wave).node
    widths = (*[(0, 0)] * (len(sig.shape) - 2), (0, padded - length), (0, 0))
    spectrum = transformed(Tensor(primitives.pad(turned, widths)), False, 1.0)
    whole = transformed(_pairs(_numbers(spectrum) * response), True, scale / padded)
    return _pairs(_numbers(part(whole, whole.ndim - 2, 0, length)) * wave)


def _numbers(pairs: Tensor) -> Tensor:
    return Tensor(primitives.as_complex(pairs.node))


def _pairs(numbers: Tensor) -> Tensor:
    return Tensor(primitives.as_real(numbers.node))


# Real numbers


def half_of_real(x: Tensor, scale: float) -> Tensor:
    """The first n // 2 + 1 pairs of the transform of real numbers (…, n)."""
    sig = x.node.sig
    length = sig.shape[-1]
    if has_real_transform(sig.device, length):
        return Tensor(make(TABLE["rfft"], (x.node,), (float(scale),)))
    if length % 2:
        whole = transformed(_with_zeros(x), False, scale)
        return part(whole, whole.ndim - 2, 0, length // 2 + 1)
    half = length // 2
    mixed = transformed(Tensor(primitives.reshape(x.node, (*sig.shape[:-1], half, 2))), False, 0.5 * scale)
    axis = mixed.ndim - 2
    ring = primitives.concat([mixed.node, part(mixed, axis, 0, 1).node], axis)
    forwards, backwards = _both_ways(Tensor(ring))
    table = tables.get(twiddles.twiddle_factors, (length, half + 1, False), complex_of(sig.dtype), sig.device)
    return _pairs(forwards + backwards + (forwards - backwards) * (Tensor(table) * -1j))


def _both_ways(pairs: Tensor) -> tuple[Tensor, Tensor]:
    """Complex numbers z(k), and the conjugates of z(last - k)."""
    back = Tensor(primitives.flip(pairs.node, (pairs.ndim - 2,)))
    return _numbers(pairs), conj(_numbers(back))


def _with_zeros(x: Tensor) -> Tensor:
    """Real numbers as pairs."""
    return _pairs(Tensor(primitives.cast(x.node, complex_of(x.dtype))))


def real_from_half(pairs: Tensor, length: int, scale: float) -> Tensor:
    """Real numbers (…, length) from the first half of their transform, pairs (…, length // 2 + 1, 2).

    Only the real parts of its first number, and for even lengths of its last, are used.
    """
    sig = pairs.node.sig
    if has_real_transform(sig.device, length):
        return Tensor(make(TABLE["irfft"], (pairs.node,), (length, float(scale))))
    axis = pairs.ndim - 2
    half = length // 2
    known = where(_is_real(pairs) | ~_at_ends(pairs, length), pairs, 0)
    if length % 2:
        whole = transformed(mirrored(known, length), True, scale)
        return Tensor(primitives.reshape(part(whole, axis + 1, 0, 1).node, (*sig.shape[:-2], length)))
    forwards, backwards = (_numbers(part(_pairs(each), axis, 0, half)) for each in _both_ways(known))
    table = tables.get(twiddles.twiddle_factors, (length, half, True), complex_of(sig.dtype), sig.device)
    mixed = forwards + backwards + (forwards - backwards) * (Tensor(table) * 1j)
    return Tensor(primitives.reshape(transformed(_pairs(mixed), True, scale).node, (*sig.shape[:-2], length)))


def _is_real(pairs: Tensor) -> Tensor:
    """Which number of a pair, (2,), is its real part."""
    return Tensor(primitives.iota(2, int32, pairs.node.sig.device)) == 0


def _at_ends(pairs: Tensor, length: int) -> Tensor:
    """Which of the pairs of a half, (n, 1), are their own mirror images: the first, and the middle one."""
    sig = pairs.node.sig
    count = sig.shape[-2]
    index = primitives.iota(count, int32, sig.device)
    place = Tensor(primitives.reshape(index, (count, 1)))
    return place == 0 if length % 2 else (place == 0) | (place == length // 2)


def half_weighted(pairs: Tensor, length: int, weight: float) -> Tensor:
    """Pairs of a half, times a weight where they also stand for their mirror image."""
    return where(_at_ends(pairs, length), pairs, pairs * weight)


def mirrored(pairs: Tensor, length: int) -> Tensor:
    """All pairs of the transform of real numbers from its first half."""
    axis = pairs.ndim - 2
    if length <= 2:
        return pairs
    inner = part(pairs, axis, 1, length - length // 2)
    back = Tensor(primitives.flip(inner.node, (axis,)))
    return Tensor(primitives.concat([pairs.node, where(_is_real(pairs), back, -back).node], axis))

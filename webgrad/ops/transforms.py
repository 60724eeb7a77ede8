"""The rows of the table that are Fourier transforms, over complex numbers as pairs of floats.

In: float32 or float64, pairs along the last axis. Out: the sums over n of x · exp(∓2πi·jk/n), times a scale.
GPUs have lengths that are products of 2, 3, 5 and 7, of real numbers even ones; others are composed of those
(`functions/fourier/transform.py`). The cpu has every length.
"""

from __future__ import annotations

from typing import Any

from ..arrays import Array, np
from ..errors import DTypeError, ShapeError
from ..graph.node import Signature, signature
from ..graph.op import Op
from . import shapes

Sigs = tuple[Signature, ...]
Result = tuple[tuple[int, ...], Any]


def has_kernels(length: int) -> bool:
    """Whether a length has no prime factor but 2, 3, 5 and 7."""
    for factor in (2, 3, 5, 7):
        while length and length % factor == 0:
            length //= factor
    return length == 1


def halves_have_kernels(length: int) -> bool:
    """The same for `length` real numbers, which are half as many complex ones."""
    return length % 2 == 0 and has_kernels(length // 2)


def _numbers(x: Array) -> Array:
    """Pairs as complex numbers."""
    complex_type = np.result_type(x.dtype, np.complex64)
    found: Array = np.ascontiguousarray(x).view(complex_type)[..., 0]
    return found


def _pairs(sig: Signature, x: Array) -> Array:
    """Complex numbers of any precision as pairs in a signature's dtype."""
    dtype = sig.dtype.numpy
    plain = np.ascontiguousarray(x, np.result_type(dtype, np.complex64))
    found: Array = plain[..., None].view(dtype)
    return found


def _fft(sig: Signature, x: Array) -> Array:
    inverse, scale, axis = sig.attributes
    if inverse:
        return _pairs(sig, np.fft.ifft(_numbers(x), axis=axis, norm="forward") * scale)
    return _pairs(sig, np.fft.fft(_numbers(x), axis=axis) * scale)


def _rfft(sig: Signature, x: Array) -> Array:
    return _pairs(sig, np.fft.rfft(x) * sig.attributes[0])


def _irfft(sig: Signature, x: Array) -> Array:
    length, scale = sig.attributes
    return np.asarray(np.fft.irfft(_numbers(x), length, norm="forward") * scale).astype(sig.dtype.numpy)


def _check(op: str, sig: Signature, pairs: bool) -> None:
    if sig.dtype.kind != "f" or sig.dtype.is_half:
        raise DTypeError(f"{op} is not offered for {sig.dtype.name}, only for float32 and float64")
    if (
        len(sig.shape) < 1 + pairs
        or (pairs and sig.shape[-1] != 2)
        or (op != "fft" and not sig.shape[-1 - pairs])
    ):
        shape = "(…, n, 2)" if pairs else "(…, n)"
        raise ShapeError(f"{op} of {sig!r}: it takes {shape}, n at least 1")


def _same(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    (sig,) = sigs
    axis = attributes[2]
    _check("fft", sig, True)
    if not 0 <= axis < len(sig.shape) - 1 or not sig.shape[axis]:
        raise ShapeError(f"fft of {sig!r} along axis {axis}: the axis is empty")
    length = sig.shape[axis]
    if sig.device.is_gpu:
        if length < 2 or not has_kernels(length):
            raise ShapeError(f"fft of {length} numbers: kernels take products of 2, 3, 5 and 7")
        shapes.check_binding("fft", sig)
    return sig.shape, sig.dtype


def _check_halves(op: str, sig: Signature, length: int) -> None:
    if sig.device.is_gpu:
        if not halves_have_kernels(length):
            raise ShapeError(f"{op} of {length} numbers: kernels take even products of 2, 3, 5 and 7")
        shapes.check_binding(op, sig)


def _halved(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    (sig,) = sigs
    _check("rfft", sig, False)
    shape = (*sig.shape[:-1], sig.shape[-1] // 2 + 1, 2)
    _check_halves("rfft", signature(sig.op, shape, sig.dtype, sig.device), sig.shape[-1])
    return shape, sig.dtype


def _doubled(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    (sig,) = sigs
    length = attributes[0]
    _check("irfft", sig, True)
    _check_halves("irfft", sig, length)
    if sig.shape[-2] != length // 2 + 1:
        raise ShapeError(f"irfft of {sig!r}: a result of length {length} needs {length // 2 + 1} numbers")
    return (*sig.shape[:-2], length), sig.dtype


def _transform(name: str, reference: Any, infer: Any, gradient: str, doc: str) -> Op:
    return Op(
        name, "fft", 1, reference, types="f", infer=infer, domain=(-2, 2), gradient=(gradient,), doc=doc
    )


TRANSFORMS = (
    _transform(
        "fft",
        _fft,
        _same,
        "transformed(g, not attributes[0], *attributes[1:])",
        "The Fourier transform of pairs along an axis, attributes = (inverse, scale, axis).",
    ),
    _transform(
        "rfft",
        _rfft,
        _halved,
        "real_from_half(half_weighted(g, a.shape[-1], 0.5), a.shape[-1], attributes[0])",
        "The first n // 2 + 1 pairs of the transform of real numbers, attributes = (scale,).",
    ),
    _transform(
        "irfft",
        _irfft,
        _doubled,
        "half_weighted(half_of_real(g, attributes[1]), attributes[0], 2.0)",
        "Real numbers from the first half of their transform, attributes = (n, scale).",
    ),
)

"""Fourier transforms of pairs of numbers, windows, and the matrix of the mel scale."""

from __future__ import annotations

import math
from typing import Any

import webgrad as wg

from ...arrays import Array, np
from ..types import type_of
from .table import operator
from .values import bounded, whole

__all__: list[str] = []


@operator("DFT", 20, host="dft_length axis")
def fourier(x: Any, dft_length: Any = None, axis: Any = None, *, inverse: int = 0, onesided: int = 0) -> Any:
    """The last axis holds numbers, or pairs of parts; one side of a transform has what reals leave free."""
    along = -2 if axis is None else whole(axis)
    along = along + x.ndim if along < 0 else along
    length = x.shape[along] if dft_length is None else whole(dft_length)
    if inverse and onesided:
        length = 2 * (x.shape[along] - 1) if dft_length is None else length
        found = wg.fft.irfft(_complex(x), length, axis=along)
        return wg.expand_dims(found, -1).astype(x.dtype)
    if inverse:
        return _pairs(wg.fft.ifft(_complex(x), length, axis=along), x.dtype)
    return _forward(x, length, along, bool(onesided))


@operator("DFT", 17, host="dft_length")
def fourier_along(
    x: Any, dft_length: Any = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0
) -> Any:
    return fourier(x, dft_length, np.asarray(axis), inverse=inverse, onesided=onesided)


@operator("STFT", 17, host="frame_step frame_length")
def short_time_fourier(
    x: Any, frame_step: Any, window: Any = None, frame_length: Any = None, *, onesided: int = 1
) -> Any:
    """Transforms of frames of a signal (batch, length, parts): (batch, frames, frequencies, parts).

    Files leave out the axis of parts of real signals.
    """
    x = x if x.ndim > 2 else x[..., None]
    if frame_length is not None:
        length = whole(frame_length)
    else:
        length = x.shape[1] if window is None else window.shape[0]
    frames = wg.moveaxis(wg.sliding_windows(x, length, whole(frame_step), axis=1), -1, 2)
    if window is not None:
        frames = frames * wg.reshape(window, (length, 1))
    return _forward(frames, length, 2, bool(onesided))


def _forward(x: Any, length: int, axis: int, onesided: bool) -> Any:
    """Of real numbers the second half mirrors the first."""
    if x.shape[-1] == 2:
        found = wg.fft.fft(_complex(x), length, axis=axis)
        return _pairs(_part(found, axis, 0, length // 2 + 1) if onesided else found, x.dtype)
    half = wg.fft.rfft(_computed(x)[..., 0], length, axis=axis)
    if onesided:
        return _pairs(half, x.dtype)
    mirrored = wg.conj(wg.flip(_part(half, axis, 1, (length + 1) // 2), axis))
    return _pairs(wg.concat([half, mirrored], axis=axis), x.dtype)


def _part(x: Any, axis: int, start: int, end: int) -> Any:
    return x[(*[slice(None)] * axis, slice(start, end))]


def _computed(x: Any) -> Any:
    """Transforms are of float32 and float64; halves are computed in the first."""
    return x if x.dtype.itemsize >= 4 else x.astype(wg.float32)


def _complex(x: Any) -> Any:
    x = _computed(x)
    return wg.view_as_complex(x if x.shape[-1] == 2 else wg.concat([x, wg.zeros_like(x)], axis=-1))


def _pairs(x: Any, dtype: Any) -> Any:
    return wg.view_as_real(x).astype(dtype)


# Windows: the factors of cosines of 0, 1 and 2 turns over the length
_WINDOWS = {
    "HannWindow": (0.5, -0.5, 0.0),
    "HammingWindow": (25 / 46, -21 / 46, 0.0),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}


def _window(factors: tuple[float, ...]) -> Any:
    def window(size: Any, *, periodic: int = 1, output_datatype: int = 1) -> Array:
        count = whole(size)
        turn = 2 * math.pi * np.arange(bounded(count)) / max(count if periodic else count - 1, 1)
        found = sum(factor * np.cos(at * turn) for at, factor in enumerate(factors))
        return np.asarray(found).astype(type_of(output_datatype).numpy)

    return window


for _name, _factors in _WINDOWS.items():
    operator(_name, 17, host="size")(_window(_factors))


_MEL, _HERTZ = 2595.0, 700.0  # mel(f) = 2595 log10(1 + f / 700)


@operator("MelWeightMatrix", 17, host="bins dft_length rate lowest highest")
def mel_weights(
    bins: Any, dft_length: Any, rate: Any, lowest: Any, highest: Any, *, output_datatype: int = 1
) -> Array:
    """A triangle for each band, from the centre of the one before it to that of the one after it."""
    count, length = whole(bins), whole(dft_length)
    low, high = (
        _MEL * np.log10(1 + each.reshape(()).astype(np.float64) / _HERTZ) for each in (lowest, highest)
    )
    bounded(count + 2, length // 2 + 1)
    mels = low + np.arange(count + 2) * (high - low) / (count + 2)
    edges = ((length + 1) * _HERTZ * (10 ** (mels / _MEL) - 1) // float(rate.reshape(())[()])).astype(
        np.int64
    )
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    steps = np.arange(length // 2 + 1).reshape(-1, 1)
    rising = (steps - left) / np.maximum(centre - left, 1)
    falling = (right - steps) / np.maximum(right - centre, 1)
    found = np.where(steps <= centre, np.where(steps >= left, rising, 0), np.where(steps < right, falling, 0))
    found = np.where(steps == centre, 1.0, found)
    return np.asarray(found).astype(type_of(output_datatype).numpy)

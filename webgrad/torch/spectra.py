"""stft and istft of torch, and windows by their older names, which are periodic unless told otherwise.

In: signals, or lengths. Out: complex tensors, or pairs of real numbers where `return_complex=False`.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg

from .binding import bind
from .signal.windows import window

__all__ = ["functions"]

ROWS = """
[function method]
stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect",
    normalized=False, onesided=None, return_complex=None, align_to_window=None) = spectrogram(wg.signal.stft(
    input, n_fft, hop_length, win_length, window, center=center, pad_mode=pad_mode, normalized=normalized,
    onesided=onesided), input, window, return_complex)
istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False,
    onesided=None, length=None, return_complex=False) = wg.signal.istft(input, n_fft, hop_length, win_length,
    window, center=center, normalized=normalized, onesided=onesided, length=length,
    return_complex=return_complex)

[function]
bartlett_window(window_length, periodic=True, *, $options) = window("bartlett", window_length, not periodic,
    $given)
blackman_window(window_length, periodic=True, *, $options) = window("blackman", window_length, not periodic,
    $given)
hann_window(window_length, periodic=True, *, $options) = window("hann", window_length, not periodic, $given)
hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, $options) =
    window("general_cosine", window_length, not periodic, $given, a=[alpha, beta])
kaiser_window(window_length, periodic=True, beta=12.0, *, $options) = window("kaiser", window_length,
    not periodic, $given, beta=beta)
"""
SHORT = {
    "$options": "dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False",
    "$given": "dtype, device, requires_grad",
}


def spectrogram(found: Any, x: Any, weights: Any, return_complex: bool | None) -> Any:
    """Complex numbers, or their parts; of real signals torch wants to be told which."""
    is_complex = x.dtype.kind == "c" or (weights is not None and weights.dtype.kind == "c")
    if return_complex is None and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require "
            "that return_complex=True in a future PyTorch release."
        )
    return wg.view_as_real(found) if return_complex is False else found


functions: dict[str, Any] = bind(ROWS, globals(), SHORT)

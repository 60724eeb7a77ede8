"""The short-time Fourier transform of signals, and signals from it: stft and istft.

In: signals along the last axis, of one or two axes; or what stft gave. Out: complex numbers (…, frequencies,
frames), or signals. Frames are windows of the signal that copy nothing.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg
from webgrad import Tensor

__all__ = ["istft", "stft"]


def stft(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    *,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
) -> Tensor:
    """The Fourier transform of pieces of n_fft elements, every `hop_length` (a quarter): (…, n, frames).

    Each piece is multiplied by the window, which is filled up with zeros to n_fft. With `center` the signal
    is padded so that the k-th frame has element k · hop_length in its middle. Real signals give
    n_fft // 2 + 1 numbers for each frame, unless `onesided=False`; `normalized` divides by √n_fft.

    >>> wg.signal.stft(wg.ones(16), 8).shape
    (5, 9)
    """
    hop, weights = _checked("stft", x, n_fft, hop_length, win_length, window)
    if x.ndim not in (1, 2):
        raise wg.ShapeError(f"signal.stft takes one signal or a batch of them, not {tuple(x.shape)}")
    is_complex = x.dtype.kind == "c" or (window is not None and window.dtype.kind == "c")
    half = not is_complex if onesided is None else onesided
    if half and is_complex:
        raise wg.ArgumentError("signal.stft: Cannot have onesided output if window or input is complex")
    signals = x if x.ndim == 2 else x[None]
    if center:
        signals = _padded(signals, n_fft // 2, pad_mode)
    if not 0 < n_fft <= signals.shape[-1]:
        raise wg.ShapeError(
            f"signal.stft of {tuple(x.shape)}: expected 0 < n_fft <= {signals.shape[-1]}, but got {n_fft}"
        )
    frames = _frames(signals, n_fft, hop)
    if weights is not None:
        frames = frames * weights
    transform = wg.fft.rfft if half else wg.fft.fft
    found = wg.swapaxes(transform(frames, norm="ortho" if normalized else None), -1, -2)
    return found if x.ndim == 2 else found[0]


def _checked(
    op: str, x: Tensor, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None
) -> tuple[int, Tensor | None]:
    """The distance of frames, and the window in the middle of n_fft elements; None where all count alike."""
    if x.dtype.kind not in "fc":
        raise wg.DTypeError(f"signal.{op} takes floats or complex numbers, not {x.dtype.name}")
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if hop <= 0:
        raise wg.ArgumentError(f"signal.{op}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise wg.ArgumentError(
            f"signal.{op}: expected 0 < win_length <= n_fft, but got win_length={length}, n_fft={n_fft}"
        )
    if window is not None and tuple(window.shape) != (length,):
        raise wg.ShapeError(
            f"signal.{op}: expected a 1D window tensor of size equal to win_length={length}, but got window "
            f"with size {list(window.shape)}"
        )
    if window is None and length == n_fft:
        return hop, None
    if window is None:
        real = wg.float64 if x.dtype in (wg.float64, wg.complex128) else wg.float32
        window = wg.ones(length, dtype=real, device=x.device)
    before = (n_fft - length) // 2
    return hop, wg.pad(window, [(before, n_fft - length - before)])


def _padded(signals: Tensor, width: int, mode: str) -> Tensor:
    """More at both ends, by a mode of `nn.functional.pad`."""
    if signals.dtype.kind != "c":
        return wg.nn.functional.pad(signals[:, None], (width, width), mode=mode)[:, 0]
    parts = (wg.real(signals), wg.imag(signals))
    return wg.complex(*(_padded(each, width, mode) for each in parts))


def _frames(signals: Tensor, length: int, hop: int) -> Tensor:
    """(batch, frames, length)."""
    columns = wg.unfold(signals[:, None, None, :], (1, length), stride=(1, hop))
    return wg.swapaxes(columns, -1, -2)


def istft(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    *,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal that `stft` with the same arguments gives x of: the nearest one, where there is none.

    Frames are transformed back, multiplied by the window and added up; then divided by the sum of the squares
    of the windows, and are NaN where that is 0. `length` is that of the signal, where frames do not say it.

    >>> x = wg.arange(16.0)
    >>> y = wg.signal.istft(wg.signal.stft(x, 8), 8)
    >>> [round(each, 3) for each in y.tolist()[:4]]
    [0.0, 1.0, 2.0, 3.0]
    """
    hop, weights = _checked("istft", x, n_fft, hop_length, win_length, window)
    if x.dtype.kind != "c" or x.ndim not in (2, 3) or not x.size:
        raise wg.ShapeError(
            "signal.istft takes complex numbers (frequencies, frames), or a batch of these, not "
            f"{tuple(x.shape)} of {x.dtype.name}"
        )
    half = x.shape[-2] != n_fft if onesided is None else onesided
    if half and return_complex:
        raise wg.ArgumentError("signal.istft: cannot have onesided input with return_complex=True")
    if x.shape[-2] != (n_fft // 2 + 1 if half else n_fft):
        raise wg.ShapeError(
            f"signal.istft of {tuple(x.shape)} with n_fft={n_fft}, onesided={half}: there must be "
            f"{n_fft // 2 + 1 if half else n_fft} frequencies"
        )
    lines = wg.swapaxes(x if x.ndim == 3 else x[None], -1, -2)
    norm: Any = "ortho" if normalized else None
    if return_complex:
        frames = wg.fft.ifft(lines, norm=norm)
    else:  # of a real signal's frequencies the second half says the same
        frames = wg.fft.irfft(lines[..., : n_fft // 2 + 1], n_fft, norm=norm)
    count = frames.shape[-2]
    squares = wg.ones(n_fft, dtype=wg.real(x).dtype, device=x.device)
    if weights is not None:
        frames = frames * weights
        squares = weights * weights
    whole = n_fft + hop * (count - 1)
    begin = n_fft // 2 if center else 0
    end = begin + length if length is not None else whole - (n_fft // 2 if center else 0)
    share = _added_up(wg.broadcast_to(squares, (1, count, n_fft)), hop)[:, begin : min(end, whole)]
    found = _added_up(frames, hop)[:, begin : min(end, whole)] / share
    found = wg.pad(found, [(0, 0), (0, max(end - whole, 0))])
    return found if x.ndim == 3 else found[0]


def _added_up(frames: Tensor, hop: int) -> Tensor:
    """Frames (batch, frames, length) at their places in a signal."""
    if frames.dtype.kind == "c":
        return wg.complex(_added_up(wg.real(frames), hop), _added_up(wg.imag(frames), hop))
    _, count, length = frames.shape
    whole = length + hop * (count - 1)
    return wg.fold(wg.swapaxes(frames, -1, -2), (1, whole), (1, length), stride=(1, hop))[:, 0, 0]

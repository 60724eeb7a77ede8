"""Sounds as arrays: .wav files of whole numbers, as Python's own module reads them."""

from __future__ import annotations

import os
import wave

import webgrad as wg

from ..arrays import Array, np

__all__ = ["read_sound"]


def read_sound(path: str | os.PathLike[str]) -> tuple[Array, int]:
    """A .wav file's samples (frames, channels) as float32 from -1 to 1, and how many frames a second has.

    >>> import tempfile, wave
    >>> path = tempfile.mkdtemp() + "/silence.wav"
    >>> with wave.open(path, "wb") as file:
    ...     file.setparams((1, 2, 16000, 0, "NONE", ""))
    ...     file.writeframes(bytes(200))
    >>> samples, rate = wg.io.read_sound(path)
    >>> samples.shape, rate
    ((100, 1), 16000)
    """
    try:
        with wave.open(os.fspath(path), "rb") as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            data = file.readframes(file.getnframes())
    except OSError as error:
        raise wg.ModelFileError(f"{path} cannot be read: {error.strerror or error}") from None
    except (wave.Error, EOFError) as error:
        raise wg.ModelFileError(
            f"{path} is no .wav file of whole numbers: {str(error) or 'it ends too early'}"
        ) from None
    frames = len(data) // (width * channels)
    return _numbers(data[: frames * width * channels], width).reshape(frames, channels), rate


def _numbers(data: bytes, width: int) -> Array:
    """Samples from -1 to 1: one byte is counted from 128 on, more are signed."""
    if width == 1:
        return (np.frombuffer(data, np.uint8).astype(np.float32) - 128) / 128
    bytes_of_each = np.frombuffer(data, np.uint8).reshape(-1, width)
    wide = np.zeros((len(bytes_of_each), 4), np.uint8)
    wide[:, 4 - width :] = bytes_of_each  # the upper bytes of 32 bits
    return (wide.view("<i4")[:, 0] / 2.0**31).astype(np.float32)

"""The short-time transform against its definition; signals come back from it; gradients; what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import everywhere, place
from webgrad.signal import istft, stft, windows

Array = np.ndarray[Any, Any]


def signal(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def frames(x: Array, n: int, hop: int) -> Array:
    return np.stack([x[..., at : at + n] for at in range(0, x.shape[-1] - n + 1, hop)], -2)


@everywhere
def test_definition(kind: str) -> None:
    x, window = signal(2, 50), np.hanning(8).astype(np.float32)
    found = stft(place(kind, x), 8, 3, window=place(kind, window)).numpy()
    padded = np.pad(x, [(0, 0), (4, 4)], mode="reflect")
    wanted = np.fft.rfft(frames(padded, 8, 3) * window).swapaxes(-1, -2)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_options() -> None:
    x = signal(40)
    whole = np.fft.fft(frames(x, 8, 2)).T
    np.testing.assert_allclose(stft(wg.asarray(x), 8, center=False, onesided=False).numpy(), whole, atol=1e-5)
    scaled = stft(wg.asarray(x), 8, center=False, normalized=True).numpy()
    np.testing.assert_allclose(scaled, whole[:5] / np.sqrt(8), atol=1e-5)
    padded = np.pad(x, 4)
    zeros = stft(wg.asarray(x), 8, pad_mode="constant").numpy()
    np.testing.assert_allclose(zeros, np.fft.rfft(frames(padded, 8, 2)).T, atol=1e-5)
    short = stft(wg.asarray(x), 8, win_length=4, center=False).numpy()
    ones = np.asarray([0, 0, 1, 1, 1, 1, 0, 0])
    np.testing.assert_allclose(short, np.fft.rfft(frames(x, 8, 2) * ones).T, atol=1e-5)
    y = (x + 1j * signal(2, 40)[1]).astype(np.complex64)
    found = stft(wg.asarray(y), 8, center=False).numpy()
    np.testing.assert_allclose(found, np.fft.fft(frames(y, 8, 2)).T, atol=1e-5)


@everywhere
def test_signals_come_back(kind: str) -> None:
    x = signal(2, 64)
    window = windows.hann(16, sym=False, device=place(kind, x).device)
    spectrum = stft(place(kind, x), 16, window=window)
    np.testing.assert_allclose(istft(spectrum, 16, window=window).numpy(), x, atol=1e-5)


def test_lengths() -> None:
    x = signal(61)
    spectrum = stft(wg.asarray(x), 16)
    assert istft(spectrum, 16).shape == (60,)
    np.testing.assert_allclose(istft(spectrum, 16, length=50).numpy(), x[:50], atol=1e-5)
    longer = istft(stft(wg.asarray(x[:60]), 16, center=False), 16, center=False, length=70).numpy()
    np.testing.assert_allclose(longer[:60], x[:60], atol=1e-5)
    assert (longer[60:] == 0).all()
    y = (x[:60] + 1j).astype(np.complex64)
    back = istft(stft(wg.asarray(y), 16), 16, onesided=False, return_complex=True).numpy()
    np.testing.assert_allclose(back, y, atol=1e-5)


def test_gradients() -> None:
    x = wg.asarray(signal(32).astype(np.float64)).requires_grad_()
    total = wg.sum(wg.square(wg.abs(stft(x, 8, center=False))))
    total.backward()
    step = 1e-6

    def energy(values: Array) -> float:
        return float(np.sum(np.abs(np.fft.rfft(frames(values, 8, 2))) ** 2))

    ahead, behind = (x.detach().numpy() + way * step * np.eye(32)[5] for way in (1, -1))
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy()[5], (energy(ahead) - energy(behind)) / (2 * step), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: stft(wg.ones(4), 8, center=False), "n_fft <= 4"),
        (lambda: stft(wg.ones(16), 8, 0), "hop_length > 0"),
        (lambda: stft(wg.ones(16), 8, win_length=9), "win_length <= n_fft"),
        (lambda: stft(wg.ones(16), 8, window=wg.ones(7)), "size equal to win_length"),
        (lambda: stft(wg.ones(16, dtype=wg.complex64), 8, onesided=True), "onesided"),
        (lambda: stft(wg.ones((1, 1, 16)), 8), "batch"),
        (lambda: stft(wg.arange(16), 8), "floats"),
        (lambda: istft(wg.ones((5, 3)), 8), "complex"),
        (lambda: istft(wg.ones((6, 3), dtype=wg.complex64), 8), "frequencies"),
        (lambda: istft(wg.ones((5, 3), dtype=wg.complex64), 8, return_complex=True), "return_complex"),
    ],
)
def test_what_is_refused(call: Any, words: str) -> None:
    with pytest.raises(wg.WebgradError, match=words):
        call()

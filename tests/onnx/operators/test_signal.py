"""Fourier transforms of pairs, windows, the mel scale, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.onnx.models import floats
from tests.onnx.operators.single import run_one

REAL = np.random.default_rng(5).random((2, 12, 1), np.float32)
PAIRS = np.random.default_rng(6).random((2, 12, 2), np.float32)


def numbers(pairs: Any) -> Any:
    return pairs[..., 0] + 1j * pairs[..., 1]


@pytest.mark.parametrize("length", [None, 8, 15])
@pytest.mark.parametrize("onesided", [0, 1])
def test_transforms_of_real_numbers(length: int | None, onesided: int) -> None:
    sizes = None if length is None else np.array(length)
    found = run_one("DFT", REAL, sizes, np.array(1), onesided=onesided)
    expected = (np.fft.rfft if onesided else np.fft.fft)(REAL[..., 0], length, axis=1)
    np.testing.assert_allclose(numbers(found), expected, rtol=1e-4, atol=1e-5)
    assert (found[:, 0, 1] == 0).all()


@pytest.mark.parametrize("axis", [0, 1, -2])
@pytest.mark.parametrize("inverse", [0, 1])
def test_transforms_of_complex_numbers(axis: int, inverse: int) -> None:
    along = axis if axis >= 0 else axis + 3
    found = run_one("DFT", PAIRS, None, np.array(axis), inverse=inverse)
    expected = (np.fft.ifft if inverse else np.fft.fft)(numbers(PAIRS), axis=along)
    np.testing.assert_allclose(numbers(found), expected, rtol=1e-4, atol=1e-5)
    old = run_one("DFT", PAIRS, opset=17, axis=along, inverse=inverse)
    np.testing.assert_array_equal(old, found)


def test_real_numbers_from_one_side() -> None:
    half = run_one("DFT", REAL, None, np.array(1), onesided=1)
    found = run_one("DFT", half, None, np.array(1), onesided=1, inverse=1)
    np.testing.assert_allclose(found, REAL, rtol=1e-4, atol=1e-5)


def test_halves_are_computed_as_floats() -> None:
    found = run_one("DFT", REAL.astype(np.float16), None, np.array(1))
    assert found.dtype == np.float16
    np.testing.assert_allclose(numbers(found), np.fft.fft(REAL[..., 0]), atol=1e-2)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("has_window", [False, True])
def test_transforms_of_frames(onesided: int, has_window: bool) -> None:
    window = np.hanning(5).astype(np.float32) if has_window else None
    given = (window, None) if has_window else (None, np.array(5))
    found = run_one("STFT", REAL, np.array(3), *given, opset=17, onesided=onesided)
    weights = window if window is not None else 1
    frames = np.stack([REAL[:, at : at + 5, 0] * weights for at in (0, 3, 6)], axis=1)
    expected = (np.fft.rfft if onesided else np.fft.fft)(frames)
    np.testing.assert_allclose(numbers(found), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kind", "window"), [("HannWindow", np.hanning), ("BlackmanWindow", np.blackman)])
def test_windows(kind: str, window: Any) -> None:
    symmetric = run_one(kind, np.array(9), periodic=0)
    assert symmetric.dtype == np.float32
    np.testing.assert_allclose(symmetric, window(9), atol=1e-6)
    np.testing.assert_allclose(run_one(kind, np.array(8)), window(9)[:-1], atol=1e-6)


def test_the_window_of_hamming_has_fractions_of_46() -> None:
    found = run_one("HammingWindow", np.array(4))
    np.testing.assert_allclose(found, np.array([4, 25, 46, 25]) / 46, rtol=1e-6)


def test_triangles_of_the_mel_scale() -> None:
    sizes = np.array(4), np.array(16), np.array(8192)
    found = run_one("MelWeightMatrix", *sizes, floats(0).reshape(()), floats(4096).reshape(()))
    assert found.shape == (9, 4)
    assert found.max(axis=0).tolist() == [1] * 4
    assert (np.diff(found.argmax(axis=0)) > 0).all()
    assert ((found >= 0) & (found <= 1)).all()

"""The cpu's Fourier transforms against NumPy in float64: many rows, long ones, and both ways into NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from webgrad.reference import fourier
from webgrad.reference.fourier import half_of_real, real_from_half, transformed

Array = np.ndarray[Any, Any]
BOUNDS = {np.float32: 4e-7, np.float64: 1e-15}


@pytest.fixture(params=["quick", "public"])
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By the functions under NumPy's, and by the public ones."""
    if request.param == "public":
        monkeypatch.setattr(fourier, "_under", lambda name: None)
    return str(request.param)


def draw(shape: tuple[int, ...], dtype: Any) -> Array:
    return np.random.default_rng(shape[0]).standard_normal(shape).astype(dtype)


def as_complex(pairs: Array) -> Array:
    found: Array = np.ascontiguousarray(pairs, np.float64).view(np.complex128)[..., 0]
    return found


def close(found: Array, wanted: Array, dtype: Any) -> None:
    assert found.shape == wanted.shape
    error = np.sqrt(np.mean(np.abs(found - wanted) ** 2) / np.mean(np.abs(wanted) ** 2))
    assert error < BOUNDS[dtype]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [(), (1,), (3, 5), (700,)])
def test_transforms(dtype: Any, rows: tuple[int, ...], ways: str) -> None:
    for length in (1, 2, 15, 64, 97):
        x = draw((*rows, length, 2), dtype)
        there, back = transformed(x, False, 1.0, len(rows)), transformed(x, True, 0.5, len(rows))
        assert there.dtype == dtype
        close(as_complex(there), np.fft.fft(as_complex(x)), dtype)
        close(as_complex(back), np.fft.ifft(as_complex(x), norm="forward") * 0.5, dtype)


@pytest.mark.parametrize("shape", [(3, 8, 5, 2), (64, 1000, 2), (2, 3, 50, 4, 2), (9, 1, 2)])
def test_axes_that_are_not_the_last(shape: tuple[int, ...], ways: str) -> None:
    for axis in range(len(shape) - 1):
        for inverse in (False, True):
            x = draw(shape, np.float32)
            wanted = (
                np.fft.ifftn(as_complex(x), axes=(axis,)) if inverse else np.fft.fft(as_complex(x), axis=axis)
            )
            scale = 1 / shape[axis] if inverse else 1.0
            close(as_complex(transformed(x, inverse, scale, axis)), wanted, np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_real_transforms(dtype: Any, ways: str) -> None:
    for length in (1, 2, 15, 64, 97):
        x = draw((40, length), dtype)
        half = half_of_real(x, 0.25)
        assert half.dtype == dtype
        close(as_complex(half), np.fft.rfft(x.astype(np.float64)) * 0.25, dtype)
        back = real_from_half(half, length, 4 / length)
        assert back.dtype == dtype
        close(back, x.astype(np.float64), dtype)


@pytest.mark.parametrize("length", [1 << 10, 600, 1 << 17, 150_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_rows_are_cut_in_two(length: int, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fourier, "cores", lambda: 4)
    monkeypatch.setattr(fourier, "LONG", 1 << 9)
    called = []

    def noted(*arguments: Any) -> None:
        called.append(arguments)
        in_two(*arguments)

    in_two: Callable[..., None] = fourier._in_two
    monkeypatch.setattr(fourier, "_in_two", noted)
    for inverse in (False, True):
        x = draw((2, length, 2), dtype)
        wanted = np.fft.ifft(as_complex(x), norm="forward") if inverse else np.fft.fft(as_complex(x))
        close(as_complex(transformed(x, inverse, 0.5, 1)), wanted * 0.5, dtype)
    assert len(called) == 4


def test_single_precision_is_kept_where_numpy_has_it() -> None:
    """NumPy's public fft rounds only once, at the end: it is not what is called here."""
    x = draw((8, 4096, 2), np.float32)
    exact = np.fft.fft(as_complex(x))
    if fourier._under("fft") is not None:
        error = np.abs(as_complex(transformed(x, False, 1.0, 1)) - exact).max()
        assert error > 2 * np.abs(exact.astype(np.complex64) - exact).max()


def test_nothing() -> None:
    assert transformed(np.zeros((0, 8, 2), np.float32), False, 1.0, 1).shape == (0, 8, 2)
    assert half_of_real(np.zeros((0, 8), np.float32), 1.0).shape == (0, 5, 2)
    assert real_from_half(np.zeros((0, 5, 2), np.float32), 8, 1.0).shape == (0, 8)

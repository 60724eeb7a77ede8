"""How transforms are composed on GPUs: which way a length goes, and the tables that are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.properties.helpers import gpu
from webgrad import dtypes
from webgrad.functions.fourier import transform, twiddles
from webgrad.functions.fourier.twiddles import Tables, tables
from webgrad.ops.transforms import has_kernels

Array = np.ndarray[Any, Any]


def pairs(rows: int, length: int) -> Array:
    return np.random.default_rng(length).standard_normal((rows, length, 2)).astype(np.float32)


def as_complex(x: Array) -> Array:
    found: Array = np.ascontiguousarray(x, np.float64).view(np.complex128)[..., 0]
    return found


@pytest.mark.gpu
@pytest.mark.parametrize("length", [6, 22, 35, 61])
@pytest.mark.parametrize("inverse", [False, True])
def test_every_way_gives_the_same(length: int, inverse: bool) -> None:
    x = pairs(3, length)
    given = wg.asarray(x, device=gpu())
    ways = [transform._multiplied, transform._chirped] + [transform.transformed] * has_kernels(length)
    wanted = np.fft.ifft(as_complex(x)) if inverse else np.fft.fft(as_complex(x)) / length
    for way in ways:
        found = as_complex(way(given, inverse, 1 / length).numpy())
        assert np.abs(found - wanted).max() < 2e-6 * np.abs(wanted).max()


def test_lengths_with_kernels() -> None:
    assert [each for each in range(1, 40) if not has_kernels(each)] == [
        *(11, 13, 17, 19, 22, 23, 26, 29, 31, 33, 34, 37, 38, 39),
    ]
    assert not has_kernels(0)


def test_tables_are_exact() -> None:
    """k² is reduced before it is rounded: far out a chirp is as exact as at its start."""
    length = 1_000_003
    k = 999_999
    assert (
        abs(twiddles.chirp(length, False)[k] - np.exp(-1j * np.pi * (k * k % (2 * length)) / length)) < 1e-15
    )
    wave = twiddles.twiddle_factors(12, 7, True)
    np.testing.assert_allclose(wave, np.exp(2j * np.pi * np.arange(7) / 12), atol=1e-15)


@pytest.mark.gpu
def test_tables_are_kept_up_to_a_limit() -> None:
    kept = Tables(3000)
    first = kept.get(twiddles.twiddle_factors, (64, 33, False), dtypes.complex64, gpu())
    assert kept.get(twiddles.twiddle_factors, (64, 33, False), dtypes.complex64, gpu()) is first
    assert kept.get(twiddles.twiddle_factors, (64, 33, True), dtypes.complex64, gpu()) is not first
    assert kept.nbytes == 2 * 33 * 8
    for length in range(100, 140):
        kept.get(twiddles.twiddle_factors, (length, length, False), dtypes.complex64, gpu())
        assert kept.nbytes <= 3000
    assert kept.get(twiddles.twiddle_factors, (64, 33, False), dtypes.complex64, gpu()) is not first
    kept.clear()
    assert kept.nbytes == 0


@pytest.mark.gpu
def test_a_table_too_large_to_keep_is_used_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    tables.clear()  # what other tests made of this length
    monkeypatch.setattr(tables, "limit", 100)
    x = pairs(1, 101)
    found = as_complex(transform.transformed(wg.asarray(x, device=gpu()), False, 1.0).numpy())
    assert np.abs(found - np.fft.fft(as_complex(x))).max() < 2e-5
    assert tables.nbytes <= 100


@pytest.mark.gpu
def test_lengths_of_one_kind_share_kernels() -> None:
    """Bluestein's way of another length compiles nothing new."""
    device = gpu()
    for length in (101, 103):
        transform.transformed(wg.asarray(pairs(2, length), device=device), False, 1.0).numpy()
    before = wg.stats(device)["pipelines_compiled"]
    for length in (107, 109, 113, 127):
        transform.transformed(wg.asarray(pairs(2, length), device=device), False, 1.0).numpy()
    assert wg.stats(device)["pipelines_compiled"] == before

"""Attention of few queries by native code, against the blocks of BLAS."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import webgrad as wg
from webgrad.native import attending
from webgrad.native.attention import exponentials
from webgrad.native.compiler import compiled
from webgrad.native.text import FLOATS, Function

RNG = np.random.default_rng(7)


def floats(*shape: int) -> wg.Tensor:
    return wg.asarray(RNG.standard_normal(shape).astype(np.float32), device="cpu")


@pytest.mark.parametrize(
    ("heads", "queries", "keys", "columns", "causal", "window", "length"),
    [
        ((9, 3), 1, 40, (64, 64), True, None, 17),
        ((9, 3), 1, 40, (64, 64), True, None, 0),
        ((4, 2), 3, 33, (32, 48), True, 5, None),
        ((4, 1), 4, 16, (16, 16), False, None, 7),
        ((2, 2), 2, 300, (80, 16), True, 64, 200),
        ((1, 1), 1, 1, (16, 32), False, None, None),
    ],
)
def test_results_are_those_of_blas(
    heads: tuple[int, int],
    queries: int,
    keys: int,
    columns: tuple[int, int],
    causal: bool,
    window: int | None,
    length: int | None,
    switch_off: Callable[[], None],
) -> None:
    q = floats(2, heads[0], queries, columns[0])
    k, v = (floats(2, keys, heads[1], each).permute(0, 2, 1, 3) for each in columns)  # not contiguous

    def computed(k: wg.Tensor = k) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return wg.scaled_dot_product_attention(
            q, k, v, is_causal=causal, enable_gqa=True, window=window, length=length
        ).numpy()

    spoiled = k.numpy().copy()
    spoiled[0, 0, 0, 0] = np.nan
    spoiled[-1, -1, 0, 1] = -np.inf
    got, not_finite = computed(), computed(wg.asarray(spoiled, device="cpu"))
    switch_off()
    np.testing.assert_allclose(got, computed(), rtol=1e-5, atol=1e-6)
    want = computed(wg.asarray(spoiled, device="cpu"))
    np.testing.assert_allclose(not_finite, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("converts", [True, False])
@pytest.mark.parametrize("queries", [1, 3, 9])
def test_half_floats_are_read_as_they_are_stored(
    queries: int, converts: bool, monkeypatch: pytest.MonkeyPatch, switch_off: Callable[[], None]
) -> None:
    """By the processor's own conversion, where it has one, and without; by BLAS for many queries."""
    if not converts:
        monkeypatch.setattr(attending, "converts_halves", lambda: False)
    q = floats(1, 6, queries, 32)
    stored = [floats(1, 50, 2, 32).astype(wg.float16) for _ in range(2)]
    stored[0] = wg.where(wg.arange(32) == 3, 1e-6, stored[0]).astype(wg.float16)  # less than normal ones

    def computed(k: wg.Tensor, v: wg.Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        k, v = (each.permute(0, 2, 1, 3) for each in (k, v))
        return wg.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True, length=41).numpy()

    got = computed(*stored)
    assert got.dtype == np.float32
    switch_off()
    want = computed(*(each.astype(wg.float32) for each in stored))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_exponentials_are_right_to_two_units_in_the_last_place() -> None:
    def module() -> str:
        f = Function("run", [("ptr", "fields")], "i64")
        place = f.field("ptr", 0)
        with f.loop(0, f.field("i64", 1), 16) as at:
            f.store(FLOATS, exponentials(f, f.load(FLOATS, place, at, "float")), place, at, "float")
        return f.module()

    x = np.concatenate([np.linspace(-87.3, 88, 1 << 16), [0, -0.0, -88, -1e30, -np.inf, np.nan]])
    x = np.concatenate([x, np.zeros(-len(x) % 16)]).astype(np.float32)
    got = x.copy()
    compiled(module)[0](np.array([got.ctypes.data, len(got)]).ctypes.data)
    with np.errstate(all="ignore"):
        want = np.exp(x.astype(np.float64))
    normal = want > np.finfo(np.float32).tiny
    assert (np.abs(got[normal] / want[normal] - 1) < 2 * 2.0**-23).all()
    assert (got[(want < np.finfo(np.float32).tiny)] == 0).all()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(x))

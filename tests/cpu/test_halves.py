"""float16 as float32: every number there is, any layout, and pieces with infinities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from webgrad.cpu.halves import PIECE, SHARED, widen

EVERY = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)


def same(got: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> None:
    want = x.astype(np.float32)
    assert got.dtype == np.float32
    assert got.shape == x.shape
    np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))  # signs of zeros, NaN's bits


def test_every_number() -> None:
    same(widen(EVERY), EVERY)
    finite = EVERY[np.isfinite(EVERY)]
    many = np.resize(finite, 3 * PIECE + 5)  # whole pieces, and a tail
    same(widen(many), many)


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_infinities_in_one_piece_of_many(special: float) -> None:
    x = np.random.default_rng(0).standard_normal(SHARED + 77).astype(np.float16)
    x[3 * PIECE + 1] = special
    same(widen(x), x)


@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (2, PIECE), (1030, 1030)], ids=str)
def test_shapes_and_layouts(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float16)
    same(widen(x), x)
    out = np.empty(shape, np.float32)
    assert widen(x, out=out) is out
    same(out, x)
    if len(shape) == 2:
        turned = np.empty(shape[::-1], np.float32)
        same(widen(x.T, out=turned), np.ascontiguousarray(x.T))
        same(np.ascontiguousarray(widen(x, out=np.empty(shape[::-1], np.float32).T)), x)
        wide = np.empty((2, *shape), np.float32)
        same(widen(x, out=wide)[1], x)  # repeated

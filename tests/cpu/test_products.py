"""Matrix products: batches, layouts, and integers that wrap."""

from __future__ import annotations

import numpy as np
import pytest

from webgrad import arrays
from webgrad.cpu import products
from webgrad.cpu.products import matmul
from webgrad.runtime import threads

RNG = np.random.default_rng(8)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 4), (4, 5)),
        ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (1, 4, 5)),
        ((3, 4), (6, 4, 5)),
        ((2, 1, 3, 4), (5, 4, 1)),
        ((3, 0), (0, 2)),
        ((0, 3, 2), (2, 2)),
    ],
)
def test_batches(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = RNG.standard_normal(a).astype(np.float32), RNG.standard_normal(b).astype(np.float32)
    want = x.astype(np.float64) @ y.astype(np.float64)
    got = matmul(x, y)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    out = np.empty(want.shape, np.float32)
    assert matmul(x, y, out) is out
    np.testing.assert_array_equal(out, got)


def test_batches_that_are_turned_give_a_contiguous_result() -> None:
    x = RNG.standard_normal((3, 5, 4, 6)).astype(np.float32).transpose(1, 0, 2, 3)
    y = RNG.standard_normal((3, 1, 6, 7)).astype(np.float32).transpose(1, 0, 2, 3)
    got = matmul(x, y)
    assert got.flags.c_contiguous
    np.testing.assert_allclose(got, x.astype(np.float64) @ y, rtol=1e-5, atol=1e-5)


def test_any_layout() -> None:
    x = RNG.standard_normal((40, 60)).astype(np.float32)
    for one in (
        x,
        x.T.copy().T,
        x[::2, ::3],
        x[::-1, ::-1],
        np.broadcast_to(x[:1], (9, 60)),
        np.broadcast_to(x[:, :1], (40, 7)),
    ):
        other = RNG.standard_normal((one.shape[1], 5)).astype(np.float32)
        want = one.astype(np.float64) @ other.astype(np.float64)
        np.testing.assert_allclose(matmul(one, other), want, rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(matmul(other.T, one.T), want.T, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
)
@pytest.mark.parametrize("side", [5, 64])
@pytest.mark.parametrize("large", [False, True])
def test_integers_wrap(dtype: type[np.integer], side: int, large: bool) -> None:
    """Small ones go through float64, large ones of wide types cannot; both give the bits of wrapping."""
    limits = np.iinfo(dtype)
    low, high = (limits.min, limits.max) if large else (max(limits.min, -100), 100)
    a = RNG.integers(low, high, (side, side), dtype, endpoint=True)
    b = RNG.integers(low, high, (side, side), dtype, endpoint=True)
    got = matmul(a, b)
    exact = a.astype(object) @ b.astype(object)
    want = np.array([[int(each) & ((1 << limits.bits) - 1) for each in row] for row in exact], np.uint64)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.astype(np.uint64) & np.uint64((1 << limits.bits) - 1), want)


def test_integers_that_are_exact_are_multiplied_by_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.dtype[np.generic]] = []
    plain = np.matmul

    def spy(a: np.ndarray[tuple[int, ...], np.dtype[np.generic]], *rest: object, **more: object) -> object:
        seen.append(a.dtype)
        return plain(a, *rest, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(arrays.np, "matmul", spy)
    small = np.ones((64, 64), np.int32)
    matmul(small, small)
    matmul(small * (1 << 30), small * (1 << 30))
    assert seen == [np.float64, np.int32]


SHAPES = [
    ((300, 40), (40, 500)),
    ((500, 40), (40, 300)),
    ((1, 400), (400, 900)),
    ((900, 400), (400, 1)),
    ((7, 30, 20), (7, 20, 50)),
    ((1, 30, 20), (7, 20, 50)),
    ((2, 3, 30, 20), (3, 20, 50)),
    ((2, 30, 20), (20, 50)),
    ((2, 300, 20), (2, 20, 50)),
    ((3, 1), (1, 5)),
    ((4, 0), (0, 6)),
    ((0, 4), (4, 6)),
    ((0, 3, 4), (0, 4, 2)),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("turned", [False, True])
def test_products_that_are_shared_out(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In parts, by several threads: the same as at once."""
    monkeypatch.setattr(products, "SHARED", 1)
    monkeypatch.setattr(products, "cores", lambda: 3)
    monkeypatch.setattr(threads, "cores", lambda: 3)
    a, b = (RNG.standard_normal(shape).astype(np.float32) for shape in shapes)
    if turned:
        a, b = (np.ascontiguousarray(each.swapaxes(-1, -2)).swapaxes(-1, -2) for each in (a, b))
    want = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(matmul(a, b), want, rtol=1e-5, atol=1e-4)
    out = np.full(want.shape, np.nan, np.float32)
    assert matmul(a, b, out) is out
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-4)


def test_parts_cover_the_result_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "cores", lambda: 3)
    for a, b in ((5, 700), (700, 5), (100, 100), (1, 17)):
        out = np.zeros((a, b), np.float32)
        parts = products._parts(np.zeros((a, 2), np.float32), np.zeros((2, b), np.float32), out)
        assert 1 <= len(parts) <= 3
        for _, _, part in parts:
            part += 1
        assert (out == 1).all()

"""Folds: short runs of additions, any strides, and what an empty fold gives."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.cpu.helpers import drawn, fold
from webgrad import dtypes
from webgrad.cpu import folds
from webgrad.cpu.folds import DOT, fold_of, sum_floats, sum_products

Array = np.ndarray[Any, Any]


def layouts(shape: tuple[int, ...]) -> list[Array]:
    generator = np.random.default_rng(5)
    plain = generator.standard_normal(shape).astype(np.float32)
    wide = generator.standard_normal([2 * side for side in shape]).astype(np.float32)
    return [
        plain,
        np.asfortranarray(plain),
        wide[tuple(slice(None, None, 2) for _ in shape)],
        plain[tuple(slice(None, None, -1) for _ in shape)],
        np.broadcast_to(plain[:1], shape),
        plain.transpose(1, 2, 0).copy().transpose(2, 0, 1),
    ]


@pytest.mark.parametrize("shape", [(3, 4, 5), (33, 17, 40), (1, 300, 2)], ids=str)
def test_sums_of_any_layout(shape: tuple[int, ...]) -> None:
    for x in layouts(shape):
        for count in (1, 2, 3):
            for axes in itertools.combinations(range(3), count):
                before = x.copy()
                got = sum_floats(x, axes)
                assert got.dtype == np.float32
                np.testing.assert_allclose(got, x.astype(np.float64).sum(axes), rtol=1e-5, atol=2e-5)
                np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("layout", ["C", "F", "turned", "repeated"])
@pytest.mark.parametrize("axis", [0, 1])
def test_no_long_accumulator(layout: str, axis: int) -> None:
    shape = (1 << 20, 3) if axis == 0 else (3, 1 << 20)
    x = np.full(shape, 0.1, np.float32, order="F" if layout == "F" else "C")
    if layout == "turned":
        x = np.full(shape[::-1], 0.1, np.float32).T
    if layout == "repeated":
        x = np.broadcast_to(np.float32(0.1), shape)
    np.testing.assert_allclose(sum_floats(x, (axis,)), float(np.float32(0.1)) * (1 << 20), rtol=1e-6)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize(
    "dtype", [dtypes.bool, dtypes.uint8, dtypes.int64, dtypes.float32, dtypes.float64], ids=str
)
def test_empty_folds_give_the_identity(name: str, dtype: dtypes.DType) -> None:
    if dtype.kind == "b" and name in ("sum", "prod"):
        return
    sig = fold(name, drawn(2, 0, 3, dtype=dtype), 1).sig
    function = fold_of(sig, dtype.numpy)
    assert function is not None
    got = function(np.empty((2, 0, 3), dtype.numpy), (1,))
    assert sig.op.identity is not None
    assert got.dtype == dtype.numpy
    np.testing.assert_array_equal(got, np.full((2, 3), sig.op.identity(dtype.numpy), dtype.numpy))


def test_small_integers_wrap() -> None:
    sig = fold("sum", drawn(3, dtype=dtypes.uint8), 0).sig
    function = fold_of(sig, np.dtype(np.uint8))
    assert function is not None
    assert function(np.array([200, 100, 3], np.uint8), (0,)) == (303) % 256


LENGTHS = [1, 127, 128, 1000, DOT, DOT + 1, 3 * DOT, 3 * DOT + 200]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("with_blas", [True, False])
def test_rows_of_any_length(
    length: int, dtype: type, with_blas: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not with_blas:  # as with NumPy 1
        monkeypatch.setattr(folds, "_vecdot", None)
    generator = np.random.default_rng(3)
    a: Array = generator.standard_normal((2, 3, length)).astype(dtype)
    b: Array = generator.standard_normal((2, 3, length)).astype(dtype)
    for got, want in (
        (sum_floats(a, (2,)), a.sum(2, dtype=np.float64)),
        (sum_floats(a[0, 0], (0,)), a[0, 0].sum(dtype=np.float64)),
        (sum_products(a, b, (2,)), (a.astype(np.float64) * b).sum(2)),
        (sum_products(a, b, (1, 2)), (a.astype(np.float64) * b).sum((1, 2))),
        (sum_products(a, a[..., ::-1], (2,)), (a.astype(np.float64) * a[..., ::-1]).sum(2)),
    ):
        assert np.asarray(got).dtype == dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6 * length)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_special_values_in_a_row(special: float) -> None:
    x = np.ones((2, 2 * DOT + 300), np.float32)
    x[0, DOT + 5] = special
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(sum_floats(x, (1,)), [special, 2 * DOT + 300])
        np.testing.assert_array_equal(sum_products(x, x, (1,)), [special * special, 2 * DOT + 300])


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
def test_windows_are_folded_one_element_after_another(name: str, stride: int) -> None:
    x = np.random.default_rng(3).uniform(0.5, 1.5, (4, 21, 22)).astype(np.float32)
    x[1, 5, 5] = np.nan
    view = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))[:, ::stride, ::stride]
    first = view.transpose(0, 3, 4, 1, 2)
    node = fold(name, drawn(*first.shape), 1, 2)
    function = fold_of(node.sig, np.dtype(np.float32))
    assert function is not None
    expected = getattr(np, name)(view.astype(np.float64), (3, 4))
    np.testing.assert_allclose(function(first, (1, 2)), expected, rtol=1e-6)
    np.testing.assert_allclose(function(view, (3, 4)), expected, rtol=1e-6)

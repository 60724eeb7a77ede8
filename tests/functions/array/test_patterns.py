"""Patterned matrices, slopes, areas and distances against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg

A = np.arange(6, dtype=np.float32).reshape(2, 3) ** 2
B = np.asarray([[1.0, -2.0], [0.5, 4.0]], np.float32)


@pytest.mark.parametrize("pair", [(A, B), (A[0], B), (A, B[0]), (A[0, 1], B), (A[None], B)])
def test_kroneckers_product_is_numpys(pair: Any) -> None:
    np.testing.assert_array_equal(wg.kron(*map(wg.asarray, pair)).numpy(), np.kron(*pair))


def test_blocks_lie_along_the_diagonal() -> None:
    found = wg.block_diag(wg.asarray(A), wg.asarray(B), wg.asarray(5.0), wg.asarray([7.0, 8.0])).numpy()
    wanted = np.zeros((6, 8), np.float32)
    wanted[:2, :3], wanted[2:4, 3:5], wanted[4, 5], wanted[5, 6:] = A, B, 5, [7, 8]
    np.testing.assert_array_equal(found, wanted)
    with pytest.raises(wg.ShapeError, match="two dimensions at most"):
        wg.block_diag(wg.ones((1, 1, 1)))


@pytest.mark.parametrize("count", [None, 0, 1, 4])
@pytest.mark.parametrize("increasing", [False, True])
def test_powers_are_numpys(count: int | None, increasing: bool) -> None:
    x = np.asarray([1.0, -2.0, 3.0], np.float32)
    np.testing.assert_array_equal(
        wg.vander(wg.asarray(x), count, increasing=increasing).numpy(), np.vander(x, count, increasing)
    )


@pytest.mark.parametrize(("rows", "columns", "offset"), [(3, 3, 0), (2, 4, 1), (4, 2, -1), (3, None, 0)])
def test_triangles_are_numpys(rows: int, columns: int | None, offset: int) -> None:
    for name in ("tril_indices", "triu_indices"):
        wanted = np.stack(getattr(np, name)(rows, offset, columns))
        np.testing.assert_array_equal(getattr(wg, name)(rows, columns, offset).numpy(), wanted)


@pytest.mark.parametrize("k", [-1, 0, 1, 2, 3, 6])
def test_quarters_of_a_turn_are_numpys(k: int) -> None:
    x = np.arange(12).reshape(2, 3, 2)
    for axes in ((0, 1), (2, 0)):
        np.testing.assert_array_equal(wg.rot90(wg.asarray(x), k, axes).numpy(), np.rot90(x, k, axes))
    with pytest.raises(wg.ShapeError, match="two different axes"):
        wg.rot90(wg.ones((2, 2)), 1, (0, -2))


def test_areas_are_numpys() -> None:
    x = np.asarray([0.0, 1.0, 4.0], np.float32)
    for axis, places in ((1, None), (0, None), (1, x), (1, A * 2)):
        ours = wg.trapezoid(wg.asarray(A), None if places is None else wg.asarray(places), 0.5, axis)
        np.testing.assert_allclose(ours.numpy(), np.trapezoid(A, places, 0.5, axis))
    assert wg.cumulative_trapezoid(wg.asarray(A[1]), dx=2.0).tolist() == [25.0, 66.0]
    assert wg.trapezoid(wg.zeros((0,))).item() == 0.0


@pytest.mark.parametrize("edge_order", [1, 2])
def test_slopes_are_numpys(edge_order: Any) -> None:
    x = np.asarray([[1.0, 2.0, 6.0, 3.0], [3.0, 4.0, 5.0, 9.0], [0.0, 2.0, 2.0, 7.0]], np.float32)
    places = np.asarray([0.0, 1.0, 1.5, 4.0], np.float32)
    for spacing, axis in (((), None), ((2.0,), 1), ((places,), 1), ((0.5, places), None), ((), (1, 0))):
        ours = wg.gradient(wg.asarray(x), *spacing, axis=axis, edge_order=edge_order)
        theirs = np.gradient(x, *spacing, axis=axis, edge_order=edge_order)
        theirs = theirs if isinstance(theirs, tuple | list) else [theirs]
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one.numpy(), other, rtol=1e-5, atol=1e-6)
    with pytest.raises(wg.ShapeError, match="it needs 2 elements"):
        wg.gradient(wg.ones(1))
    with pytest.raises(wg.ArgumentError, match="spacings"):
        wg.gradient(wg.ones((3, 3)), 1.0, 2.0, 3.0)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, np.inf])
def test_distances_between_all_are_norms(p: float) -> None:
    first, second = np.random.default_rng(0).normal(size=(2, 3, 4)), np.arange(8.0).reshape(2, 4)
    found = wg.cdist(wg.asarray(first), wg.asarray(second), p).numpy()
    gaps = np.abs(first[:, :, None] - second)
    wanted = (gaps != 0).sum(-1) if p == 0 else np.linalg.norm(gaps, p, axis=-1)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_the_gradient_of_no_distance_is_zero() -> None:
    for p in (0.5, 1.0, 2.0, 3.0, np.inf):
        x = wg.asarray([[1.0, 2.0]]).requires_grad_()
        wg.cdist(x, wg.asarray([[1.0, 2.0]]), p).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [[0.0, 0.0]]
    with pytest.raises(wg.ShapeError, match="cdist of shapes"):
        wg.cdist(wg.ones(2), wg.ones((2, 2)))


def test_products_are_added() -> None:
    x, v = wg.asarray([wg.nan, 1.0]), wg.asarray([1.0, 2.0])
    assert wg.addmm(x, wg.asarray(B), wg.eye(2), beta=0).tolist() == B.tolist()
    assert wg.addmv(wg.ones(2), wg.asarray(B), v, beta=2, alpha=3).tolist() == [-7.0, 27.5]
    found = wg.baddbmm(wg.ones((2, 2)), wg.asarray(B[None]), wg.eye(2).reshape(1, 2, 2))
    assert found.tolist() == [(B + 1).tolist()]

"""Medians, quantiles, covariance and correlation against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg

VALUES = np.asarray([[3.0, -1.0, 2.0, 9.0], [5.0, 5.0, -7.0, 0.5], [1.0, 4.0, 4.0, 2.5]], np.float32)
MISSING = np.where(VALUES == 5.0, np.nan, VALUES).astype(np.float32)


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_the_median_is_numpys(axis: int | None, keepdims: bool) -> None:
    for values in (VALUES, MISSING, VALUES.astype(np.int32)):
        found = wg.median(wg.asarray(values), axis, keepdims=keepdims).numpy()
        np.testing.assert_array_equal(found, np.median(values, axis, keepdims=keepdims))


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("q", [0.3, [0.0, 0.5, 0.85, 1.0]])
def test_quantiles_are_numpys(method: Any, q: Any) -> None:
    for axis, keepdims in ((None, False), (0, True), (1, False)):
        ours = wg.quantile(wg.asarray(VALUES), q, axis, method=method, keepdims=keepdims).numpy()
        theirs = np.quantile(VALUES, q, axis, method=method, keepdims=keepdims)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
        ours = wg.nanquantile(wg.asarray(MISSING), q, axis, method=method, keepdims=keepdims).numpy()
        theirs = np.nanquantile(MISSING, q, axis, method=method, keepdims=keepdims)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert np.isnan(wg.quantile(wg.asarray(MISSING), 0.5).item())


def test_of_nothing_but_nan_there_is_no_quantile() -> None:
    found = wg.nanquantile(wg.asarray([[wg.nan, wg.nan], [1.0, wg.nan]]), 0.5, 1).numpy()
    np.testing.assert_array_equal(found, [np.nan, 1.0])


def test_a_quantile_has_the_gradients_of_the_elements_it_lies_between() -> None:
    x = wg.asarray([4.0, 1.0, 2.0]).requires_grad_()
    wg.quantile(x, 0.75).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.5, 0.0, 0.5]


def test_what_is_no_quantile_is_refused() -> None:
    with pytest.raises(wg.ArgumentError, match="q must be from 0 to 1"):
        wg.quantile(wg.ones(3), 1.5)
    with pytest.raises(wg.ArgumentError, match="method must be one of"):
        wg.quantile(wg.ones(3), 0.5, method="nearby")
    with pytest.raises(wg.ShapeError, match="no elements"):
        wg.median(wg.zeros((0,)))
    with pytest.raises(wg.ShapeError, match="one dimension"):
        wg.quantile(wg.ones(3), wg.ones((2, 2)))


def test_covariance_and_correlation_are_numpys() -> None:
    for values in (VALUES, VALUES[0], VALUES.astype(np.int32), VALUES + 1j * VALUES[::-1]):
        x = wg.asarray(values.astype(np.complex64) if values.dtype.kind == "c" else values)
        for correction in (0, 1):
            ours = wg.cov(x, correction=correction).numpy()
            np.testing.assert_allclose(ours, np.cov(values, ddof=correction), rtol=2e-6, atol=1e-6)
        np.testing.assert_allclose(wg.corrcoef(x).numpy(), np.corrcoef(values), rtol=2e-6, atol=1e-6)


def test_observations_have_weights() -> None:
    often, heavy = np.asarray([1, 2, 3, 1]), np.asarray([0.5, 1.0, 0.25, 2.0])
    for fweights, aweights in ((often, None), (None, heavy), (often, heavy)):
        given = [None if each is None else wg.asarray(each) for each in (fweights, aweights)]
        found = wg.cov(wg.asarray(VALUES), fweights=given[0], aweights=given[1]).numpy()
        wanted = np.cov(VALUES, fweights=fweights, aweights=aweights)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    with pytest.raises(wg.ShapeError, match="weights of shape"):
        wg.cov(wg.asarray(VALUES), fweights=wg.ones(3))

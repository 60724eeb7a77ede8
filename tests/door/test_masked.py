"""torch.masked: what is masked out counts for nothing."""

from __future__ import annotations

import numpy as np
import pytest

import webgrad.torch as torch
from webgrad.torch import masked

X = np.asarray([[3.0, -1.0, 2.0], [5.0, 4.0, -6.0]], np.float32)
MASK = np.asarray([[True, False, True], [False, True, True]])


def test_reductions() -> None:
    x, mask = torch.tensor(X), torch.tensor(MASK)
    nan = np.where(MASK, X, np.nan)
    for name, wanted in {
        "sum": np.nansum(nan, 1),
        "prod": np.nanprod(nan, 1),
        "amax": np.nanmax(nan, 1),
        "amin": np.nanmin(nan, 1),
        "mean": np.nanmean(nan, 1),
        "var": np.nanvar(nan, 1, ddof=1),
        "std": np.nanstd(nan, 1, ddof=1),
        "argmax": np.nanargmax(nan, 1),
        "argmin": np.nanargmin(nan, 1),
    }.items():
        np.testing.assert_allclose(getattr(masked, name)(x, 1, mask=mask).numpy(), wanted, rtol=1e-5)
    np.testing.assert_allclose(masked.norm(x, 2.0, 1, mask=mask).numpy(), np.sqrt([13, 52]), rtol=1e-6)
    assert masked.sum(torch.tensor([1, 2]), mask=torch.tensor([True, False])).dtype == torch.int64
    assert np.isnan(masked.mean(x, mask=torch.tensor(False)).item())
    found = masked.logsumexp(x, 1, mask=mask).numpy()
    np.testing.assert_allclose(found, np.log(np.nansum(np.exp(nan), 1)), rtol=1e-6)


def test_medians() -> None:
    x, mask = torch.tensor(X), torch.tensor(MASK)
    assert masked.median(x, 1, mask=mask).tolist() == [2, -6]
    assert masked.median(x.int(), 1, mask=mask).dtype == torch.int32
    with pytest.raises(ValueError, match="fully masked out"):
        masked.median(x.int(), 1, mask=torch.zeros(2, 3, dtype=torch.bool))


def test_the_same_shape() -> None:
    x, mask = torch.tensor(X), torch.tensor(MASK)
    np.testing.assert_allclose(masked.cumsum(x, 1, mask=mask).numpy(), np.cumsum(np.where(MASK, X, 0), 1))
    np.testing.assert_allclose(masked.cumprod(x, 1, mask=mask).numpy(), np.cumprod(np.where(MASK, X, 1), 1))
    powers = np.where(MASK, np.exp(X), 0)
    softmax = powers / powers.sum(1, keepdims=True)
    np.testing.assert_allclose(masked.softmax(x, 1, mask=mask).numpy(), softmax, rtol=1e-5)
    np.testing.assert_allclose(masked.softmin(-x, 1, mask=mask).numpy(), softmax, rtol=1e-5)
    lengths = np.sqrt([[13.0], [52.0]])
    found = masked.normalize(x, 2.0, 1, mask=mask).numpy()
    np.testing.assert_allclose(found, np.where(MASK, X, 0) / lengths, rtol=1e-5)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="floating point"):
        masked.mean(torch.tensor([1, 2]))
    with pytest.raises(IndexError, match="mask"):
        masked.sum(torch.ones(2), mask=torch.ones(2, 2, dtype=torch.bool))

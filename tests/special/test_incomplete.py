"""The incomplete gamma functions against SciPy, at the ends, and their gradients."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest

import webgrad as wg

BOTH = pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])

scipy = importlib.import_module("scipy.special")
SHAPES = (0.01, 0.5, 1.0, 2.3, 9.0, 40.0, 700.0)
RATIOS = (1e-3, 0.3, 0.95, 1.0, 1.1, 2.0, 30.0)


@BOTH
@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_values_are_scipys(name: str, device: str) -> None:
    a = np.repeat(np.asarray(SHAPES, np.float32), len(RATIOS))
    x = (a * np.tile(np.asarray(RATIOS, np.float32), len(SHAPES))).astype(np.float32)
    wanted = getattr(scipy, name)(a.astype(np.float64), x.astype(np.float64))
    found = getattr(wg.special, name)(wg.asarray(a, device=device), wg.asarray(x, device=device)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-6)
    if device == "cpu":
        wide = getattr(wg.special, name)(wg.asarray(a.astype(np.float64)), wg.asarray(x.astype(np.float64)))
        np.testing.assert_allclose(wide.numpy(), wanted, rtol=1e-9, atol=1e-12)


@BOTH
def test_the_ends(device: str) -> None:
    a = wg.asarray([0.0, 0.0, 1.0, 2.0, math.inf, 1.0, -1.0, math.nan], device=device)
    x = wg.asarray([0.0, 1.0, 0.0, math.inf, 2.0, -1.0, 1.0, 1.0], device=device)
    nan = math.nan
    np.testing.assert_array_equal(wg.special.gammainc(a, x).numpy(), [nan, 1, 0, 1, 0, nan, nan, nan])
    np.testing.assert_array_equal(wg.special.gammaincc(a, x).numpy(), [nan, 0, 1, 0, 1, nan, nan, nan])


def test_the_gradient_is_by_the_second_argument() -> None:
    x: Any = wg.asarray([0.5, 2.0]).requires_grad_()
    wg.special.gammainc(wg.asarray([1.0, 3.0]), x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [math.exp(-0.5), 2 * math.exp(-2)], rtol=1e-5)
    with pytest.raises(wg.GradientError, match="gammainc"):
        wg.special.gammainc(wg.ones(2).requires_grad_(), x.detach()).sum().backward()

"""Element functions by native code, against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from webgrad.cpu.native import maps
from webgrad.cpu.native.compiler import compiled
from webgrad.cpu.native.maps import sigmoid, sigmoid_module

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def started() -> None:
    compiled(sigmoid_module)


def expected(x: Array) -> Array:
    with np.errstate(all="ignore"):
        return (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)


@pytest.mark.parametrize("count", [16, 17, 31, 1000, 70001])
def test_sigmoid_is_rounded_once(count: int) -> None:
    x = np.linspace(-106, 106, count).astype(np.float32)
    out = np.full(count, np.nan, np.float32)
    assert sigmoid(x, out)
    np.testing.assert_array_equal(out, expected(x))


def test_special_values() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 1e-40] * 2, np.float32)
    out = np.empty_like(x)
    assert sigmoid(x, out)
    np.testing.assert_array_equal(out, expected(x))


def test_what_is_left_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.zeros(32, np.float32)
    assert not sigmoid(x[:8], np.empty(8, np.float32))
    assert not sigmoid(x[::2], np.empty(16, np.float32))
    assert not sigmoid(x, np.empty(32, np.float64))
    monkeypatch.setattr(maps, "is_started", lambda: False)
    assert not sigmoid(x, np.empty(32, np.float32))

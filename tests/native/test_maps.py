"""Element functions by native code, against float64 and against NumPy's way."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.cpu import functions
from webgrad.native import maps
from webgrad.native.compiler import compiled
from webgrad.native.maps import FUNCTIONS, map_module, mapped

Array = np.ndarray[Any, Any]
NUMPY: dict[str, Callable[[Array], Array]] = {
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "gelu": lambda x: x * np.vectorize(math.erfc, otypes=[np.float64])(-x / math.sqrt(2)) / 2,
    "gelu_tanh": lambda x: x / (1 + np.exp(-math.sqrt(8 / math.pi) * (x + 0.044715 * x**3))),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 1e-40, 12, -12, 20, -20] * 2, np.float32)


@pytest.fixture(autouse=True)
def started() -> None:
    compiled(map_module, "sigmoid")


def filled(name: str, x: Array) -> Array:
    out = np.full(x.shape, 7, np.float32)
    assert mapped(name, x, out)
    return out


def plain(name: str, x: Array) -> Array:
    """By NumPy's kernel."""
    out = np.empty_like(x)
    with np.errstate(all="ignore"):
        getattr(functions, f"_{name}")(x, out)
    return out


def test_every_function_by_pieces_has_native_code() -> None:
    assert FUNCTIONS.keys() == functions._DOUBLES.keys() == NUMPY.keys()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("count", [16, 17, 31, 20001])
def test_values(name: str, count: int) -> None:
    x = np.linspace(-9, 9, count).astype(np.float32)
    found, expected = filled(name, x), NUMPY[name](x.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=2e-7, atol=1e-44)
    np.testing.assert_allclose(found, plain(name, x), rtol=2e-7, atol=1e-44)


def test_sigmoid_is_rounded_once() -> None:
    x = np.linspace(-106, 106, 70001).astype(np.float32)
    np.testing.assert_array_equal(
        filled("sigmoid", x), NUMPY["sigmoid"](x.astype(np.float64)).astype(np.float32)
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name: str) -> None:
    np.testing.assert_array_equal(filled(name, SPECIAL), plain(name, SPECIAL))


def test_what_is_left_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.zeros(32, np.float32)
    assert not mapped("gelu", x[:8], np.empty(8, np.float32))
    assert not mapped("gelu", x[::2], np.empty(16, np.float32))
    assert not mapped("gelu", x, np.empty(32, np.float64))
    monkeypatch.setattr(maps, "is_started", lambda: False)
    monkeypatch.setattr(maps, "_by_numpy", 0)
    assert not mapped("gelu", x, np.empty(32, np.float32))


def test_it_is_started_when_it_would_have_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "is_started", lambda: False)
    monkeypatch.setattr(maps, "_by_numpy", 0)
    monkeypatch.setattr(maps, "WORTH", 100)
    x, out = np.ones(40, np.float32), np.empty(40, np.float32)
    assert [mapped("gelu", x, out) for _ in range(4)] == [False, False, True, True]


def test_a_large_tensor_in_threads() -> None:
    x = np.random.default_rng(0).standard_normal((700, 1000)).astype(np.float32)
    found = wg.gelu(wg.asarray(x, device="cpu")).numpy()
    np.testing.assert_array_equal(found, filled("gelu", x.reshape(-1)).reshape(x.shape))

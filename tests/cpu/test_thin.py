"""Products with half-width weights: found in graphs, and as right as those in float32."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import webgrad as wg
from webgrad.cpu import panels, thin
from webgrad.cpu.thin import multiply_narrow
from webgrad.native import calls
from webgrad.native.compiler import is_available

RNG = np.random.default_rng(9)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(1, 96), (2, 3, 96), (9, 96), (40, 96)])
def test_a_layer_with_things_around(
    dtype: Any, shape: tuple[int, ...], native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    if native:
        monkeypatch.setattr(thin, "multiply_rows", partial(_counted, taken))
    else:
        monkeypatch.setattr(thin, "is_available", lambda: False)
    x, w = RNG.standard_normal(shape).astype(np.float32), RNG.standard_normal((64, 96)).astype(dtype)
    bias = RNG.standard_normal(64).astype(np.float32)
    weight = wg.asarray(w, device="cpu")
    made = wg.relu(wg.linear(wg.asarray(2 * x, device="cpu"), weight, wg.asarray(bias, device="cpu")))
    want = np.maximum(2 * x.astype(np.float64) @ w.astype(np.float64).T + bias, 0)
    np.testing.assert_allclose(made.numpy(), want, rtol=1e-5, atol=1e-4)
    assert len(taken) == (native and is_available())


def _counted(taken: list[int], *arrays: Any) -> bool:
    taken.append(1)
    return calls.multiply_rows(*arrays)


def test_without_native_code_the_op_is_computed_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "is_available", lambda: False)
    x, w = np.ones((2, 8), np.float32), np.full((3, 8), 0.5, np.float16)
    np.testing.assert_array_equal(multiply_narrow(x, w), np.full((2, 3), 4.0))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_panels_of_many_rows(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panels, "PANEL", 5 * 33)
    x, w = RNG.standard_normal((50, 33)).astype(np.float32), RNG.standard_normal((23, 33)).astype(dtype)
    want = x.astype(np.float64) @ w.astype(np.float64).T
    np.testing.assert_allclose(multiply_narrow(x, w), want, rtol=1e-5, atol=1e-4)

"""Products with half-width weights: these are read as they are stored, and widened exactly."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import webgrad as wg
from tests.cpu.helpers import last_plan
from webgrad.cpu.plan import CompiledPlan
from webgrad.native.compiler import is_available

pytestmark = [
    pytest.mark.skipif(not is_available(), reason="no native code here: llvmlite is not installed, or off"),
    pytest.mark.usefixtures("compiled_at_once"),
]

HALVES = [np.float16, ml_dtypes.bfloat16]
RNG = np.random.default_rng(9)


def on_cpu(array: Any) -> wg.Tensor:
    return wg.asarray(array, device="cpu")


def check_stored() -> None:
    """That the last plan is one product whose form reads the weights itself."""
    plan = last_plan()
    assert isinstance(plan.plan, CompiledPlan)
    (step,) = plan.plan._steps
    assert "fill_b" not in step.kernel.program.text  # type: ignore[union-attr]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("shape", [(1, 96), (2, 3, 96), (9, 97), (40, 96)])
def test_a_layer_with_things_around(dtype: Any, shape: tuple[int, ...]) -> None:
    x, w = RNG.standard_normal(shape).astype(np.float32), RNG.standard_normal((65, shape[-1])).astype(dtype)
    bias = RNG.standard_normal(65).astype(np.float32)
    found = wg.relu(wg.linear(on_cpu(2 * x), on_cpu(w), on_cpu(bias))).numpy()
    check_stored()
    want = np.maximum(2 * x.astype(np.float64) @ w.astype(np.float64).T + bias, 0)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("count", [1, 20])
def test_every_number_is_widened_exactly(dtype: Any, count: int) -> None:
    """Subnormal ones, infinities and NaN too: one times each; by single numbers, and by vectors."""
    weights = np.arange(1 << 16, dtype=np.uint16).view(dtype).reshape(-1, 1)
    for columns in (1, 16):
        padded = np.zeros((1 << 16, columns), dtype)
        padded[:, -1:] = weights
        ones = np.ones((count, columns), np.float32)
        found = wg.linear(on_cpu(ones), on_cpu(padded)).numpy()
        np.testing.assert_array_equal(found, np.repeat(weights.T.astype(np.float32), count, 0))
    check_stored()


@pytest.mark.parametrize("dtype", HALVES)
def test_batches_change_no_bit(dtype: Any) -> None:
    x, w = (
        on_cpu(RNG.standard_normal((8, 300)).astype(np.float32)),
        on_cpu(RNG.random((50, 300)).astype(dtype)),
    )
    whole = wg.linear(x, w).numpy()
    for row in (0, 7):
        np.testing.assert_array_equal(wg.linear(x[row : row + 1], w).numpy(), whole[row : row + 1])

"""The table of kinks: on the cpu in every type of floats, on a GPU, and in a captured function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.gradients.kinks import KINKS, array_of
from tests.selection import every
from webgrad.dtypes import DType

PLACES = [
    *(pytest.param("cpu", each, id=f"cpu-{each.name}") for each in (wg.float64, wg.float32)),
    *(pytest.param("cpu", each, id=f"cpu-{each.name}") for each in (wg.float16, wg.bfloat16)),
    pytest.param("webgpu", wg.float32, marks=pytest.mark.gpu, id="webgpu-float32"),
]
ROUNDED = {wg.float64: 1e-6, wg.float32: 1e-6, wg.float16: 2e-3, wg.bfloat16: 1e-2}


def gradients_of(name: str, tensors: list[wg.Tensor]) -> Any:
    """The gradients of a row's sum, as a tuple."""
    function = KINKS[name].function
    return wg.grad(lambda *xs: function(wg, *xs).sum(), argnums=tuple(range(len(tensors))))(*tensors)


def check(name: str, found: Any, dtype: DType) -> None:
    """They are what the table says, as the dtype holds it."""
    for each, slope in zip(found, KINKS[name].slopes, strict=True):
        with np.errstate(over="ignore"):
            wanted = wg.asarray(array_of(slope), dtype=dtype).astype(wg.float64).numpy()
        values = each.astype(wg.float32).numpy() if each.device.is_gpu else each.astype(wg.float64).numpy()
        np.testing.assert_allclose(values, wanted, rtol=ROUNDED[dtype], atol=1e-6, err_msg=name)


@pytest.mark.parametrize("name", KINKS)
@pytest.mark.parametrize(("device", "dtype"), PLACES)
def test_gradients_at_a_kink(name: str, device: str, dtype: DType) -> None:
    tensors = [wg.asarray(array_of(each), dtype=dtype, device=device) for each in KINKS[name].points]
    check(name, gradients_of(name, tensors), dtype)


@pytest.mark.parametrize("name", every(3, KINKS))
def test_gradients_at_a_kink_in_a_captured_function(name: str) -> None:
    captured = wg.jit(lambda *xs: gradients_of(name, list(xs)))
    tensors = [wg.asarray(array_of(each), dtype=wg.float32) for each in KINKS[name].points]
    for _ in range(2):
        check(name, captured(*tensors), wg.float32)

"""Gradients of public functions against finite differences, in float64 on the cpu; some of them on a GPU.

Along a few ways through all inputs at once, so that functions of many elements are quick to check.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from scripts.reference_page import names_of
from tests.gradients.composed import CASES, KINKED, Case
from tests.gradients.helpers import Array, directions, gradients_of, is_wanted, slope_along, weights
from webgrad import dtypes
from webgrad.ops.table import TABLE

WAYS = 3
STEP, BOUND = 2e-4, 1e-6
# Masks and angles are float32 even beside float64: their rounding shows in small steps
ROUGH = {"attention with a learnt bias": (1e-2, 1e-4), "rotary_angles": (0.1, 1e-5)}
# At some ties their slope changes at once, so that differences err with the step
CURVED_ONCE = ("celu", "elu", "huber_loss", "smooth_l1_loss", "softsign")
BENT = 1e-3
ON_GPU_AT_TIES = (
    *("logsigmoid", "binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits, weighted"),
    *("celu", "logaddexp", "hypot", "huber_loss", "smooth_l1_loss", "lerp", "normalize", "prod with zeros"),
)
# What runs on a GPU too: one of each kind of rule, since drivers compile slowly
ON_GPU = (
    "softmax of the first axis",
    "layer_norm",
    "conv2d, strided",
    "max_pool2d, overlapping and padded",
    "x[integers, integers] = y",
    "prod with zeros",
    "sort",
    "pad, reflect",
    "cross_entropy",
    "einsum of three",
    "numbers of parts, and their parts",
)


# Public functions whose results have no gradient: bools, integers, and what only looks at values
WITHOUT = (
    *("all", "any", "allclose", "array_equal", "isclose", "signbit", "argmax", "argmin", "argsort"),
    *("bincount", "histogram", "histogramdd", "count_nonzero", "nonzero", "searchsorted", "one_hot"),
    *("bitwise_left_shift", "bitwise_right_shift", "vector_norm", "nextafter", "broadcast_shapes"),
)
MODULES = (
    *(
        "learning.activations",
        "convolution.adaptive",
        "learning.attention",
        "convolution.convolution",
        "array.elementwise",
        "array.histograms",
        "learning.images",
        "array.indexing",
    ),
    *(
        "learning.losses",
        "array.manipulation",
        "learning.normalisation",
        "convolution.pooling",
        "learning.positions",
        "array.products",
        "array.reductions",
        "array.scans",
    ),
    *("array.scatters", "array.sorting", "convolution.unpooling", "convolution.windows"),
)


def value_of(case: Case, *arrays: Array) -> Any:
    """Weighted and summed, in float64 on the cpu."""
    result = case.function(*[wg.asarray(each, device="cpu") for each in arrays]).numpy()
    assert result.dtype == np.float64
    return np.sum(weights(result.shape) * result)


@pytest.mark.parametrize("name", CASES)
def test_gradients_along_a_line(name: str) -> None:
    case = CASES[name]
    found = gradients_of(case.function, case.arrays, dtypes.float64, "cpu")
    gradients = [np.zeros(()) if each is None else each.numpy() for each in found]
    step, bound = ROUGH.get(name, (STEP, BOUND))
    for way in directions(name, case.arrays, WAYS):
        wanted = slope_along(lambda *xs: value_of(case, *xs), case.arrays, way, step)
        parts = [np.sum(g * d) for g, d, x in zip(gradients, way, case.arrays, strict=True) if is_wanted(x)]
        assert sum(parts) == pytest.approx(wanted, rel=bound, abs=1e-7), name


@pytest.mark.parametrize("name", sorted(set(CASES) - KINKED))
def test_gradients_along_a_line_through_ties(name: str) -> None:
    """Smooth functions have their slope where elements are zero or equal as well."""
    case = CASES[name]
    gradients = [
        np.zeros(()) if each is None else each.numpy()
        for each in gradients_of(case.function, case.ties, dtypes.float64, "cpu")
    ]
    step, bound = ROUGH.get(name, (STEP, BENT if name in CURVED_ONCE else BOUND))
    for way in directions(name, case.ties, WAYS):
        wanted = slope_along(lambda *xs: value_of(case, *xs), case.ties, way, step)
        parts = [np.sum(g * d) for g, d, x in zip(gradients, way, case.ties, strict=True) if is_wanted(x)]
        assert sum(parts) == pytest.approx(wanted, rel=bound, abs=max(bound * 1e-1, 1e-7)), name


@pytest.mark.gpu
@pytest.mark.parametrize("name", ON_GPU_AT_TIES)
def test_gradients_at_ties_on_a_gpu_and_captured(name: str) -> None:
    case = CASES[name]
    floats = tuple(at for at, each in enumerate(case.ties) if is_wanted(each))

    def gradient(*tensors: wg.Tensor) -> Any:
        return wg.grad(lambda *xs: (case.function(*xs) * 1.0).sum(), argnums=floats)(*tensors)

    exact = gradient(*[wg.asarray(each, device="cpu") for each in case.ties])
    for device in ("webgpu", "cpu"):
        narrow = [each.astype(np.float32) if is_wanted(each) else each for each in case.ties]
        tensors = [wg.asarray(each, device=device) for each in narrow]
        for found in (gradient(*tensors), wg.jit(gradient)(*tensors)):
            for got, wanted in zip(found, exact, strict=True):
                np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=2e-4, atol=2e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ON_GPU)
def test_gradients_on_a_gpu(name: str) -> None:
    case = CASES[name]
    wanted = gradients_of(case.function, case.arrays, dtypes.float64, "cpu")
    found = gradients_of(case.function, case.arrays, dtypes.float32, "webgpu")
    for got, exact in zip(found, wanted, strict=True):
        if got is not None and exact is not None:
            np.testing.assert_allclose(got.numpy(), exact.numpy(), rtol=2e-4, atol=2e-5)


def test_every_public_function_is_in_a_case() -> None:
    """Rows of the table have tests of their own; everything else that has a gradient runs in some case."""
    seen: set[Any] = set()
    sys.setprofile(lambda frame, event, _: seen.add(frame.f_code) if event == "call" else None)
    try:
        for case in CASES.values():
            case.function(*[wg.asarray(each, device="cpu") for each in case.arrays])
    finally:
        sys.setprofile(None)
    missing = [
        name
        for module in MODULES
        for name in names_of(importlib.import_module(f"webgrad.functions.{module}"))
        if name not in TABLE and name not in WITHOUT and getattr(wg, name).__code__ not in seen
    ]
    assert not missing, f"{missing}: add cases to tests/gradients/composed.py"

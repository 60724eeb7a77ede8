"""Derivatives of second and third order against finite differences of the order below, in float64 on the cpu.

Of all rows of the table that have a slope, and of all composed functions (in `make test` of every third); on
a GPU of a few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.gradients.composed import CASES, KINKED, Case
from tests.gradients.helpers import Array, directions, is_wanted, slope_along, weights
from tests.gradients.samples import samples_of
from tests.selection import every
from webgrad.graph.node import make
from webgrad.ops.table import TABLE
from webgrad.tensor import Tensor

STEP = 1e-3
THIRD = ("power of a number", "softmax", "layer_norm", "matmul", "cumprod", "conv2d", "attention", "mse_loss")
ON_GPU = ("softmax", "matmul", "cumsum", "take", "scatter_add", "where")
ROUGH = {"attention with a learnt bias"}  # masks are float32 even beside float64
BENT = {"celu", "elu", "huber_loss", "smooth_l1_loss", "softsign", "norm of order 3"}  # in what is compared
# Rows whose gradient is not the same number everywhere; all that casts and moves is in the composed functions
CURVED = [
    name
    for name, op in TABLE.items()
    if op.gradient and op.kind in ("map", "contract", "reduce", "scan", "scatter", "attend")
]


def row_case(name: str) -> Case:
    """A row of the table as a function, at the first of its samples."""
    op, sample = TABLE[name], samples_of(TABLE[name])[0]

    def function(*tensors: Tensor) -> Tensor:
        operands = [each.view(wg, tensor) for each, tensor in zip(sample.inputs, tensors, strict=True)]
        return Tensor(make(op, tuple(each.node for each in operands), sample.attributes))

    arrays = tuple(each.base for each in sample.inputs)
    return Case(function, arrays, arrays)


def scalar_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Weighted and summed."""

    def summed(*tensors: Tensor) -> Any:
        result = function(*tensors)
        factor = wg.asarray(weights(result.shape), dtype=result.dtype, device=result.device)
        return (result * factor).sum()

    return summed


def derived(function: Callable[..., Any], floats: Sequence[int]) -> Callable[..., Any]:
    """The slope of a function along fixed ways, as a function again: one order up."""
    gradient = wg.grad(function, argnums=tuple(floats))

    def slope(*tensors: Tensor) -> Any:
        parts = [
            (each * wg.asarray(weights(each.shape), dtype=each.dtype, device=each.device)).sum()
            for each in gradient(*tensors)
        ]
        return sum(parts[1:], parts[0])

    return slope


def check(name: str, case: Case, order: int, bound: float) -> None:
    """The gradient of a derivative, along two ways, where elements are apart."""
    check_at(name, case.function, case.arrays, order, bound)


def check_at(
    name: str, function: Callable[..., Any], arrays: Sequence[Array], order: int, bound: float
) -> None:
    """The same anywhere."""
    floats = [at for at, each in enumerate(arrays) if is_wanted(each)]
    function = scalar_of(function)
    for _ in range(order - 1):
        function = derived(function, floats)

    def value(*moved: Array) -> Any:
        return function(*[wg.asarray(each, device="cpu") for each in moved]).numpy()

    tensors = [wg.asarray(each, device="cpu") for each in arrays]
    found = wg.grad(function, argnums=tuple(floats))(*tensors)
    for way in directions(name, arrays, 2):
        wanted = slope_along(value, arrays, way, STEP)
        total = sum(np.sum(each.numpy() * way[at]) for at, each in zip(floats, found, strict=True))
        assert total == pytest.approx(wanted, rel=bound, abs=bound), name


@pytest.mark.parametrize("name", CURVED)
def test_second_derivatives_of_rows(name: str) -> None:
    check(name, row_case(name), 2, 1e-5)


@pytest.mark.parametrize("name", every(3, CASES))
def test_second_derivatives_of_functions(name: str) -> None:
    check(name, CASES[name], 2, 1e-3 if name in ROUGH else 1e-5)


@pytest.mark.parametrize("name", every(3, sorted(set(CASES) - KINKED - BENT)))
def test_second_derivatives_at_ties(name: str) -> None:
    case = CASES[name]
    check_at(name, case.function, case.ties, 2, 1e-3 if name in ROUGH else 1e-5)


@pytest.mark.parametrize("name", THIRD)
def test_third_derivatives(name: str) -> None:
    check(name, CASES[name], 3, 1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ON_GPU)
def test_second_derivatives_on_a_gpu(name: str) -> None:
    case = CASES[name]
    floats = [at for at, each in enumerate(case.arrays) if is_wanted(each)]
    second = wg.grad(derived(scalar_of(case.function), floats), argnums=tuple(floats))
    exact = second(*[wg.asarray(each, device="cpu") for each in case.arrays])
    narrow = [each.astype(np.float32) if is_wanted(each) else each for each in case.arrays]
    found = second(*[wg.asarray(each, device="webgpu") for each in narrow])
    for got, wanted in zip(found, exact, strict=True):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_derivatives_of_a_power_go_to_any_order(order: int) -> None:
    function: Any = lambda x: x**5  # noqa: E731
    for _ in range(order):
        function = wg.grad(function)
    wanted = {1: 5 * 16, 2: 20 * 8, 3: 60 * 4, 4: 120 * 2, 5: 120}[order]
    assert function(wg.asarray(2.0)).item() == pytest.approx(wanted)

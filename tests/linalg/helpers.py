"""Shared by the tests of linalg: random matrices, both devices, and slopes by finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import place

__all__ = ["BOTH", "Array", "adjoint", "check_slope", "close", "numbers", "place", "positive", "read"]

Array = np.ndarray[Any, Any]
BOTH = pytest.mark.parametrize("kind", ["cpu", pytest.param("software", marks=pytest.mark.gpu)])
STEP = 1e-6


def numbers(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    """Random numbers, with both parts where the dtype has them."""
    random = np.random.default_rng(seed + len(shape))
    values = random.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def positive(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    """Random matrices that are Hermitian and positive definite."""
    a = numbers(*shape, dtype=dtype, seed=seed)
    return np.asarray(a @ adjoint(a) + 2 * np.eye(shape[-1]), dtype)


def adjoint(x: Any) -> Any:
    """The conjugate transpose of an array or a tensor."""
    if isinstance(x, wg.Tensor):
        return wg.conj(x).mT
    return np.conj(x).swapaxes(-1, -2)


def read(*tensors: wg.Tensor) -> list[Array]:
    """Values, to be checked by NumPy: kernels of the checks' own would take most of the time."""
    return [each.numpy() for each in tensors]


def close(found: Any, wanted: Any, tolerance: float = 1e-5) -> None:
    """The same shape, and the same numbers but for rounding."""
    array = np.asarray(found)
    assert array.shape == np.shape(wanted)
    np.testing.assert_allclose(array, wanted, rtol=tolerance, atol=tolerance)


def check_slope(function: Callable[..., Any], *arrays: Array, order: int = 2) -> None:
    """The gradient of a function's results in a random direction is what they change by; so is its own."""
    random = np.random.default_rng(7)

    def weights(shape: tuple[int, ...], is_complex: bool) -> wg.Tensor:
        values = random.standard_normal(shape)
        return place("cpu", values + 1j * random.standard_normal(shape) if is_complex else values)

    def weighed(values: Any, factors: list[wg.Tensor]) -> Any:
        total: Any = 0.0
        for value, factor in zip(values, factors, strict=True):
            product = wg.sum(wg.conj(factor) * value)
            total = total + (wg.real(product) if product.dtype.kind == "c" else product)
        return total

    def several(result: Any) -> tuple[Any, ...]:
        return tuple(result) if isinstance(result, tuple) else (result,)

    tensors = [place("cpu", each) for each in arrays]
    factors = [weights(each.shape, each.dtype.kind == "c") for each in several(function(*tensors))]
    directions = [weights(each.shape, each.dtype.kind == "c") for each in tensors]
    places = tuple(range(len(arrays)))

    def loss(*xs: wg.Tensor) -> Any:
        return weighed(several(function(*xs)), factors)

    def slope(*xs: wg.Tensor) -> Any:
        return weighed(wg.grad(loss, argnums=places)(*xs), directions)

    ahead, behind = (
        [x + direction * step for x, direction in zip(tensors, directions, strict=True)]
        for step in (STEP, -STEP)
    )
    for value in (loss, slope)[:order]:
        wanted = (value(*ahead).item() - value(*behind).item()) / (2 * STEP)
        found = weighed(wg.grad(value, argnums=places)(*tensors), directions).item()
        assert abs(found - wanted) <= 1e-6 * max(1.0, abs(wanted))

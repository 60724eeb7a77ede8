"""Parameters, gradients and devices of the optimisers' tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import device_of
from webgrad import Tensor

__all__ = ["DEVICES", "SHAPES", "Array", "drawn", "parameters", "trained"]

Array = np.ndarray[Any, Any]
SHAPES = [(5, 3), (7,), (2, 3, 4), ()]
DEVICES = pytest.mark.parametrize("kind", ["cpu", pytest.param("software", marks=pytest.mark.gpu)])


def drawn(seed: int, shape: tuple[int, ...]) -> Array:
    """Normal numbers, the same for each seed."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def parameters(
    kind: str = "cpu", shapes: list[tuple[int, ...]] = SHAPES, dtype: Any = wg.float32
) -> list[Tensor]:
    """Leaves that ask for gradients."""
    return [
        wg.asarray(drawn(at, shape), dtype, device=device_of(kind)).requires_grad_()
        for at, shape in enumerate(shapes)
    ]


def trained(optimizer: wg.optim.Optimizer, steps: int, first: int = 0, idle: Any = ()) -> None:
    """Steps with drawn gradients; `idle` are (step, parameter) without one."""
    every = [each for group in optimizer.param_groups for each in group["params"]]
    for step in range(first, first + steps):
        for at, each in enumerate(every):
            gradient = wg.asarray(drawn(100 * step + at, each.shape), each.dtype, device=each.device)
            each.grad = None if (step, at) in idle else gradient
        optimizer.step()

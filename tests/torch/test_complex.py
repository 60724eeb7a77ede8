"""Gradients of complex functions against torch, whose convention they share: ∂L/∂re + i ∂L/∂im."""

from __future__ import annotations

import numpy as np
import pytest

import webgrad as wg
from tests.torch.checking import torch

NAMES = (
    *("exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos"),
    *("atan", "asinh", "acosh", "atanh", "abs", "square", "reciprocal", "conj", "angle"),
)


def numbers(seed: int) -> np.ndarray[tuple[int], np.dtype[np.complex128]]:
    generator = np.random.default_rng(seed)
    return generator.standard_normal(6) + 1j * generator.standard_normal(6)


@pytest.mark.parametrize("name", NAMES)
def test_functions(name: str) -> None:
    values = numbers(0)
    x = wg.asarray(values, device="cpu").requires_grad_()
    wg.sum(wg.abs(getattr(wg, name)(x) + 2) ** 2).backward()
    y = torch.tensor(values, requires_grad=True)
    (torch.abs(getattr(torch, name)(y) + 2) ** 2).sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), y.grad.resolve_conj().numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "pow"])
def test_arithmetic(name: str) -> None:
    values = numbers(1), numbers(2)
    ours = [wg.asarray(each, device="cpu").requires_grad_() for each in values]
    wg.sum(wg.abs(getattr(wg, name)(*ours)) ** 2).backward()
    theirs = [torch.tensor(each, requires_grad=True) for each in values]
    (torch.abs(getattr(torch, name)(*theirs)) ** 2).sum().backward()
    for x, y in zip(ours, theirs, strict=True):
        assert x.grad is not None
        assert y.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), y.grad.resolve_conj().numpy(), rtol=1e-8, atol=1e-8)

"""Shared by the tests of jit: both devices, tensors of floats on one, and what `wg.jit` gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.jit.capture import Jit

__all__ = ["DEVICES", "captured", "tensor"]

DEVICES = ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)]


def tensor(values: Any, device: str) -> wg.Tensor:
    return wg.asarray(np.asarray(values, np.float32), device=device)


def captured(function: Any) -> Jit:
    assert isinstance(function, Jit)
    return function

"""check finds what is wrong and names it, and is silent where nothing is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.tools.faults import library_fault, loop_fault, move_fault, pass_fault, template_fault
from webgrad import nn, optim
from webgrad.tools.check import check

pytestmark = pytest.mark.gpu

random = np.random.default_rng(5)


def tensor(*shape: int, device: str = "cpu") -> wg.Tensor:
    return wg.asarray(random.normal(size=shape).astype(np.float32), device=device)


# Faults


def _gelu(x: wg.Tensor) -> wg.Tensor:
    return wg.gelu(x @ x.mT + 1)


FAULTS: dict[str, tuple[AbstractContextManager[None], Callable[[wg.Tensor], Any], str, str]] = {
    "a wrong constant": (library_fault("0.737438381", "0.7375"), _gelu, "gelu", "op"),
    "a fold that ends too early": (loop_fault(), lambda x: (x * 2).sum(axis=1) + 1, "sum", "op"),
    "a wrong index": (move_fault("permute"), lambda x: wg.exp(x.permute(1, 0)) + x, "permute", "op"),
    "a wrong cast": (
        library_fault(
            "wg_cast_f32_i8(x: F) -> I { return select(I(clamp(x,",
            "wg_cast_f32_i8(x: F) -> I { return select(I(clamp(x + F(0.5),",
        ),
        lambda x: (x * 20).astype(wg.int8),
        "cast",
        "op",
    ),
    "a product without its tail": (
        template_fault("matmul.pwgsl", "step < p.steps", "step + 1u < p.steps"),
        lambda x: wg.relu(x @ x),
        "matmul",
        "op",
    ),
    "two functions taken for one": (
        pass_fault("exp", "sin"),
        lambda x: wg.exp(x) + wg.sin(x),
        "add",
        "fusion",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(name: str) -> None:
    fault, function, op, cause = FAULTS[name]
    x = tensor(34, 34)
    with fault:
        report = check(function, x)
    assert not report.ok
    assert report.result is None
    first = report.first
    assert first is not None
    assert (first.op, first.cause) == (op, cause), str(report)
    assert first.wrong > 0
    assert first.max_error > first.tolerance
    assert first.line.startswith(__file__)
    assert "fn main" in first.wgsl or "fn matmul" in first.wgsl
    assert first.op in str(report)
    assert check(function, x).ok

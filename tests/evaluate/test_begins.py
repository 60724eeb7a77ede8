"""Slices that begin elsewhere: one plan serves them, before and after it is compiled, and gradients too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.cpu.plan import CompiledPlan
from webgrad.evaluate import cpu_plan
from webgrad.evaluate.evaluate import clear_plans, plans

DEVICES = ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)]
A = np.arange(60, dtype=np.float32).reshape(5, 12) / 10


@pytest.fixture(autouse=True)
def compiled_soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(cpu_plan, "MOST", 4)
    clear_plans()
    yield
    clear_plans()


@pytest.mark.parametrize("device", DEVICES)
def test_values_for_every_place(device: str) -> None:
    x = wg.asarray(A, device=device)
    made = plans()
    for row, column in [(0, 3), (4, 3), (4, 5), (2, 0), (1, 1), (3, 4), (0, 5), (0, 3)]:
        found = wg.exp(x[row, column : column + 6 : 2]) * x[row + 1 - 5, 7 - column] + x[:, column].sum()
        wanted = np.exp(A[row, column : column + 6 : 2]) * A[row - 4, 7 - column] + A[:, column].sum()
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5)
    assert plans() - made <= 4


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_for_every_place(device: str) -> None:
    p = wg.asarray(A, device=device).requires_grad_()
    made = 0
    for at, (row, column) in enumerate([(1, 3), (4, 6), (0, 0), (2, 5), (3, 1), (1, 3), (4, 2), (0, 6)]):
        p.grad = None
        (p[row, column : column + 4] * 3 + p[1:3, ::-1][1, column]).sum().backward()
        grad: Any = p.grad
        wanted: Any = np.zeros_like(A)
        wanted[row, column : column + 4] = 3
        wanted[2, 11 - column] += 4
        np.testing.assert_allclose(grad.numpy(), wanted)
        made = plans() if at == 2 else made
    assert plans() == made


@pytest.mark.parametrize("device", DEVICES)
def test_writes_at_every_place(device: str) -> None:
    made = 0
    for at, start in enumerate([1, 4, 0, 2, 3, 5, 1]):
        x = wg.zeros((8, 2), device=device)
        x[start : start + 3] = wg.asarray(A[:3, :2], device=device)
        x[start] = -1.0
        wanted = np.zeros((8, 2), np.float32)
        wanted[start : start + 3] = A[:3, :2]
        wanted[start] = -1
        np.testing.assert_array_equal(x.numpy(), wanted)
        made = plans() if at == 2 else made
    assert plans() == made


def test_another_form_varies_later() -> None:
    """What began at one place only, and was taken for a constant, begins elsewhere after it was compiled."""
    x = wg.asarray(A, device="cpu")
    for row, column in [*[(at % 4, 2) for at in range(9)], *[(at % 4, at % 5) for at in range(9)]]:
        found = (x[row, :3] * 2 + x[:, column : column + 2].sum()).numpy()
        np.testing.assert_allclose(
            found, A[row, :3] * 2 + A[:, column : column + 2].sum(), rtol=1e-5, err_msg=f"{row}, {column}"
        )


def test_what_is_seen_seldom_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_plan, "MOST", 64)
    compiled: list[object] = []
    original = CompiledPlan.__init__

    def count(self: CompiledPlan, *args: Any) -> None:
        compiled.append(self)
        original(self, *args)

    monkeypatch.setattr(CompiledPlan, "__init__", count)
    line = wg.zeros((1,), device="cpu")
    for length in range(1, 40):  # a sequence that grows
        line = wg.concat([line, line[-1:] + 1])
        assert float(wg.tanh(line).sum().item()) > 0
        assert line.shape == (length + 1,)
    assert not compiled

"""Views and in-place writes beside torch's: the same values, and the same gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.properties.view_programs import OURS, Program, run, write_program
from tests.torch.checking import torch

EACH = 100  # programs of one test

THEIRS: dict[str, Any] = {
    "index": lambda x, key: x[key],
    "transpose": lambda x, axes: x.permute(axes),
    "reshape": lambda x, shape: x.reshape(shape),
    "diagonal": lambda x, _: torch.moveaxis(x.diagonal(), -1, 0),
    "expand": lambda x, shape: x.expand(shape),
    "detach": lambda x, _: x.detach(),
    "rows": lambda x, at: x[at],
    "contiguous": lambda x, _: x.contiguous(),
    "copy": lambda x, _: x.clone(memory_format=torch.contiguous_format),
    "doubled": lambda x, _: torch.clip(x * 2, -9, 9).contiguous(),
    "fill": lambda x, value: x.fill_(value),
    "assign": lambda x, argument: _assign(x, *argument),
    "add": lambda x, value: x.add_(value if isinstance(value, float) else torch.from_numpy(value)),
    "multiply": lambda x, value: x.mul_(value),
}


def _assign(x: Any, key: Any, value: Any) -> None:
    key = torch.from_numpy(key) if isinstance(key, np.ndarray) else key
    x[key] = torch.from_numpy(value) if isinstance(value, np.ndarray) else value


def _by_both(program: Program, beginning: Callable[[Any, Any], Any]) -> tuple[list[Any], list[Any], str]:
    """The tensors that webgrad and torch end with; and why torch would not, if it would not."""
    theirs = [beginning(torch, torch.from_numpy(each.copy())) for each in program.beginnings]
    try:
        theirs = run(program, theirs, THEIRS, lambda function: function)
    except RuntimeError as error:
        return [], [], str(error)
    ours = [beginning(wg, wg.asarray(each)) for each in program.beginnings]
    return run(program, ours, OURS, wg.jit), theirs, ""


@pytest.mark.parametrize("first", range(50_000, 51_000, EACH))
def test_values(first: int) -> None:
    for seed in range(first, first + EACH):
        program = write_program(seed, negative_steps=False)
        ours, theirs, refused = _by_both(program, lambda _, x: x)
        assert not refused, program
        for at, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert (a is None) == (b is None)
            assert a is None or np.array_equal(a.numpy(), b.numpy()), f"{program}\nx{at}: {a} and {b}"


@pytest.mark.parametrize("first", range(60_000, 61_000, EACH))
def test_gradients(first: int) -> None:
    """Every tensor that is alive counts, each of its elements differently; gradients come to the leaves."""
    compared = 0
    for seed in range(first, first + EACH):
        program = write_program(seed, negative_steps=False, captures=False)
        leaves: dict[Any, list[Any]] = {wg: [], torch: []}

        def begin(library: Any, x: Any, leaves: dict[Any, list[Any]] = leaves) -> Any:
            leaves[library].append(x.requires_grad_())
            return x * 1.0  # what is written to is no leaf

        ours, theirs, refused = _by_both(program, begin)
        if refused:
            continue
        for a, b in zip(ours, theirs, strict=True):
            assert (a is None) == (b is None)
            assert a is None or a.requires_grad == b.requires_grad, f"{program}\n{a} and {b}"
        for library, tensors in ((wg, ours), (torch, theirs)):
            terms = [
                ((x * library.asarray(_weights(x.shape))).sum())
                for x in tensors
                if x is not None and x.requires_grad
            ]
            if terms:
                sum(terms[1:], terms[0]).backward()
        for a, b in zip(leaves[wg], leaves[torch], strict=True):
            assert (a.grad is None) == (b.grad is None), program
            assert a.grad is None or np.array_equal(a.grad.numpy(), b.grad.numpy()), f"{program}\n{a.grad}"
        compared += 1
    assert compared > EACH * 3 // 4


def _weights(shape: tuple[int, ...]) -> Any:
    return (np.arange(int(np.prod(shape)), dtype=np.float32) % 7 - 3).reshape(tuple(shape))


def test_under_no_grad_a_history_stays() -> None:
    for library in (wg, torch):
        w = library.ones((2, 2)).requires_grad_()
        y = w * 2
        with library.no_grad():
            y += 1
            w[0].fill_(5.0)
        assert y.requires_grad
        (y * 3).sum().backward()
        assert w.grad.tolist() == [[6.0, 6.0], [6.0, 6.0]]
        assert w.tolist() == [[5.0, 5.0], [1.0, 1.0]]

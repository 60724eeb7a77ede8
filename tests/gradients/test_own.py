"""Gradients of their own: they take the place of those of the parts, and are computed again where asked."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import webgrad as wg
from webgrad.gradients.own import own_gradient
from webgrad.tensor import Tensor


def tripled(x: Tensor) -> Tensor:
    """x, with a gradient that is three times what it should be."""
    return own_gradient(lambda: x * 1.0, (x, lambda g: g * 3.0))


def test_the_rule_is_used() -> None:
    assert wg.grad(lambda x: tripled(x).sum())(wg.asarray([1.0, 2.0])).tolist() == [3.0, 3.0]


def test_without_histories_there_is_none() -> None:
    assert not tripled(wg.ones(2)).requires_grad
    with wg.no_grad():
        assert not tripled(wg.ones(2).requires_grad_()).requires_grad


def test_rules_of_sources_without_a_gradient_are_not_asked() -> None:
    x, y = wg.ones(2).requires_grad_(), wg.ones(2)
    asked: list[str] = []

    def rule(name: str, g: Tensor) -> Tensor:
        asked.append(name)
        return g

    own_gradient(lambda: x + y, (x, lambda g: rule("x", g)), (y, lambda g: rule("y", g))).sum().backward()
    assert asked == ["x"]


def test_inside_of_a_checkpoint() -> None:
    x = wg.asarray([1.0, 2.0]).requires_grad_()
    wg.checkpoint(lambda x: (tripled(x * 2) ** 2).sum(), x).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [24.0, 48.0]


def test_a_custom_gradient_inside_of_a_checkpoint() -> None:
    @wg.custom_gradient
    def halved(x: Tensor) -> tuple[Tensor, Callable[..., Any]]:
        return x * 1.0, lambda g: g * 0.5

    x = wg.asarray([1.0, 2.0]).requires_grad_()
    wg.checkpoint(lambda x: halved(x * 2).sum(), x).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, 1.0]


def test_what_was_let_go_dies_at_once() -> None:
    """A ring of references would keep a step's values until the collector comes."""
    x = wg.ones(2).requires_grad_()
    inner = x * 2.0
    alive = weakref.ref(inner.node)
    loss = tripled(inner).sum()
    loss.backward()
    del inner, loss
    x.grad = None
    assert alive() is None

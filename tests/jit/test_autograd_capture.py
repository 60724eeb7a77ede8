"""Gradients inside of captured functions, around them, and what is refused."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.errors import CaptureError, GradientError

EVERYWHERE = pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])


def parameter(values: Any, **more: Any) -> Any:
    """A tensor that asks for a gradient."""
    return wg.asarray(values, **more).requires_grad_()


def batches(device: str, count: int) -> list[Any]:
    generator = np.random.default_rng(1)
    x = generator.normal(size=(count, 8, 3)).astype(np.float32)
    return [
        (
            wg.asarray(each, device=device),
            wg.asarray(each @ [[1.0], [2.0], [-1.0]], wg.float32, device=device),
        )
        for each in x
    ]


@EVERYWHERE
def test_a_step_of_training_is_captured_whole(device: str) -> None:
    """zero_grad, backward and the update inside; the same as without."""
    found = []
    for wrap in (lambda function: function, wg.jit):
        w = parameter(np.zeros((3, 1), np.float32), device=device)
        momentum = wg.zeros((3, 1), device=device)

        def step(x: Any, y: Any, rate: Any, w: Any = w, momentum: Any = momentum) -> Any:
            w.grad = None
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()
            with wg.no_grad():
                momentum *= 0.5
                momentum += w.grad
                w -= rate * momentum
            return loss.detach()

        run = wrap(step)
        losses = [run(x, y, 0.1 / (1 + at)).item() for at, (x, y) in enumerate(batches(device, 6))]
        found.append((losses, w.numpy(), w.grad.numpy()))
        assert w.is_leaf
        assert w.requires_grad
        if wrap is wg.jit:
            assert run.captures <= 2  # type: ignore[union-attr]  # with no gradient there, and with one
    for plain, captured in zip(*found, strict=True):
        np.testing.assert_allclose(plain, captured, rtol=1e-4, atol=1e-6)


def test_gradients_are_left_and_add_up_over_calls() -> None:
    w = parameter([1.0, 2.0])

    @wg.jit
    def add_up(x: Any) -> None:
        (w * x).sum().backward()

    for times in range(1, 5):
        add_up(wg.asarray([1.0, 10.0]))
        assert w.grad.tolist() == [1.0 * times, 10.0 * times]
    w.grad = None
    add_up(wg.asarray([2.0, 2.0]))
    assert w.grad.tolist() == [2.0, 2.0]


def test_a_gradient_set_outside_is_seen() -> None:
    w = parameter([1.0])

    @wg.jit
    def add_up() -> None:
        (w * 3).sum().backward()

    add_up()
    add_up()
    w.grad = wg.asarray([100.0])
    add_up()
    assert w.grad.tolist() == [103.0]


def test_updates_outside_of_what_is_captured() -> None:
    w, rate = parameter([4.0]), 0.25

    @wg.jit
    def gradients() -> Any:
        w.grad = None
        loss = (w * w).sum()
        loss.backward()
        return loss.detach()

    losses = []
    for _ in range(4):
        losses.append(gradients().item())
        with wg.no_grad():
            w -= rate * w.grad
    assert losses == [16.0, 4.0, 1.0, 0.25]


def test_grad_inside_of_a_captured_function() -> None:
    @wg.jit
    def step(w: Any, x: Any) -> Any:
        value, gradient = wg.value_and_grad(lambda w: ((w * x) ** 2).sum())(w)
        return value, w - 0.1 * gradient

    w = wg.asarray([1.0, 2.0])
    for _ in range(3):
        value, following = step(w, wg.asarray([1.0, 0.5]))
        wanted = (w.numpy() * [1.0, 0.5]) ** 2
        assert value.item() == pytest.approx(wanted.sum(), rel=1e-5)
        np.testing.assert_allclose(
            following.numpy(), w.numpy() * (1 - 0.2 * np.array([1.0, 0.25])), rtol=1e-5
        )
        w = following
    assert step.captures == 1  # type: ignore[attr-defined]


def test_second_derivatives_inside() -> None:
    hessian = wg.jit(wg.grad(lambda x: wg.grad(lambda x: (x**3).sum())(x).sum()))
    assert hessian(wg.asarray([1.0, 2.0])).tolist() == [6.0, 12.0]
    assert hessian(wg.asarray([3.0, 4.0])).tolist() == [18.0, 24.0]


def test_a_captured_function_inside_of_grad_is_refused_with_what_to_do() -> None:
    """What it computes is gone; the value says so when a gradient is asked for."""
    w = parameter([2.0])
    square = wg.jit(lambda x: x * x)
    for _ in range(2):
        y = square(w)
        assert y.requires_grad
        with pytest.raises(GradientError, match=r"webgrad\.jit.*inside"):
            y.sum().backward()
        with pytest.raises(GradientError, match=r"inside of the captured function"):
            wg.grad(lambda x: square(x).sum())(wg.asarray([1.0]))
    assert not square(wg.asarray([3.0])).requires_grad


def test_what_closes_over_a_parameter_is_refused_too() -> None:
    w = parameter([2.0])
    scaled = wg.jit(lambda x: x * w)
    for _ in range(2):
        with pytest.raises(GradientError, match=r"webgrad\.jit"):
            scaled(wg.ones(1)).sum().backward()
    with wg.no_grad():
        assert not scaled(wg.ones(1)).requires_grad
        assert scaled(wg.ones(1)).tolist() == [2.0]
    assert scaled(wg.ones(1)).requires_grad


def test_an_argument_that_begins_to_ask_is_another_call() -> None:
    square = wg.jit(lambda x: x * x)
    x = wg.asarray([3.0])
    assert not square(x).requires_grad
    x.requires_grad_()
    assert square(x).requires_grad


def test_a_gradient_of_an_argument_is_refused() -> None:
    @wg.jit
    def step(w: Any) -> None:
        (w * w).sum().backward()

    with pytest.raises(CaptureError, match=r"Close over.*webgrad\.grad"):
        step(parameter([1.0]))


def test_parameters_that_are_frozen_and_thawed() -> None:
    """A captured function is another one when a parameter stops asking, or asks again."""
    a, b = parameter([1.0]), parameter([2.0])

    @wg.jit
    def step() -> None:
        a.grad = b.grad = None
        (a * b).sum().backward()

    step()
    assert (a.grad.tolist(), b.grad.tolist()) == ([2.0], [1.0])
    b.requires_grad = False
    with wg.no_grad():
        b += 1.0
    step()
    assert (a.grad.tolist(), b.grad) == ([3.0], None)
    b.requires_grad = True
    step()
    step()
    assert (a.grad.tolist(), b.grad.tolist()) == ([3.0], [1.0])


def test_hooks_and_retained_gradients_inside() -> None:
    w, kept = parameter([1.0, 2.0]), wg.zeros(2)

    @wg.jit
    def step() -> Any:
        w.grad = None
        y = w * w
        y.register_hook(lambda g: g * 10)
        y.retain_grad()
        y.sum().backward()
        kept[...] = y.grad
        return w.grad * 1.0

    for _ in range(3):
        assert step().tolist() == [20.0, 40.0]
    assert kept.tolist() == [10.0, 10.0]


def test_a_gradient_of_what_is_made_inside_needs_no_other_capture() -> None:
    """A penalty on the gradient by the input: the tensor that has it is gone after each call."""
    w = parameter([0.5, -2.0])

    @wg.jit
    def penalty(x: Any) -> Any:
        w.grad = None
        x = x.detach().requires_grad_()
        hidden = x * w
        hidden.retain_grad()
        (hidden**2).sum().backward(create_graph=True)
        assert hidden.grad is not None
        found = (x.grad**2).sum()
        w.grad = None
        found.backward()
        return found.detach()

    for factor in (1.0, 2.0, 3.0):
        x = np.array([1.0, 2.0]) * factor
        assert penalty(wg.asarray(x, wg.float32)).item() == pytest.approx((4 * x**2 * [0.0625, 16.0]).sum())
        np.testing.assert_allclose(w.grad.numpy(), 16 * x**2 * [0.125, -8.0], rtol=1e-5)
    assert penalty.captures == 1  # type: ignore[attr-defined]


def test_a_hook_of_a_parameter_is_part_of_what_is_captured() -> None:
    w = parameter([1.0])
    w.register_hook(lambda g: g * 7)

    @wg.jit
    def step() -> None:
        w.grad = None
        (w * 2).sum().backward()

    for _ in range(3):
        step()
        assert w.grad.tolist() == [14.0]


def test_checkpoints_inside_draw_the_same_again() -> None:
    w = parameter(np.ones(500, np.float32))

    def dropped(x: Any) -> Any:
        return wg.where(wg.random.bernoulli(0.5, x.shape), x * 2, 0.0)

    @wg.jit
    def step() -> Any:
        w.grad = None
        y = wg.checkpoint(dropped, w)
        y.sum().backward()
        return y.detach()

    results = []
    for _ in range(4):
        y = step().tolist()
        assert w.grad.tolist() == y
        results.append(tuple(y))
    assert len(set(results)) == 4


def test_custom_gradients_inside() -> None:
    @wg.custom_gradient
    def rounded(x: Any) -> Any:
        return wg.round(x), lambda g: g

    w = parameter([0.4])

    @wg.jit
    def step(factor: Any) -> Any:
        w.grad = None
        loss = (rounded(w) * factor).sum()
        loss.backward()
        return loss.detach()

    for factor in (1.0, 2.0, 3.0):
        assert step(factor).item() == 0.0
        assert w.grad.tolist() == [factor]


def test_what_is_not_reached_gets_zeros_only_if_it_is_part_of_the_graph() -> None:
    used, unused = parameter([1.0]), parameter([1.0])

    @wg.jit
    def step() -> None:
        used.grad = None
        (used * 2 + wg.floor(unused)).sum().backward()

    for _ in range(3):
        step()
    assert used.grad.tolist() == [2.0]
    assert unused.grad.tolist() == [0.0]


def test_memory_and_captures_stay_as_they_are() -> None:
    w, x = parameter(np.ones((4, 4), np.float32)), wg.ones((2, 4))

    @wg.jit
    def step(x: Any) -> Any:
        w.grad = None
        loss = wg.tanh(x @ w).sum()
        loss.backward()
        with wg.no_grad():
            w.__isub__(0.01 * w.grad)
        return loss.detach()

    for _ in range(20):
        step(x)
    assert step.captures <= 2  # type: ignore[attr-defined]


def test_what_asks_inside_only_is_no_state() -> None:
    """A penalty on a gradient: the tensors that `wg.grad` makes are gone after the call."""
    w = parameter([1.0, 2.0])

    @wg.jit
    def step(x: Any) -> Any:
        w.grad = None
        slope = wg.grad(lambda x: (w * x * x).sum())(x)
        loss = (slope * slope).sum()
        loss.backward()
        return loss.detach()

    for factor in (1.0, 2.0, 3.0):
        assert step(wg.asarray([factor, factor])).item() == 20 * factor**2
        assert w.grad.tolist() == [8 * factor**2, 16 * factor**2]
    assert step.captures == 1  # type: ignore[attr-defined]


def test_parameters_that_are_frozen_for_a_while_inside() -> None:
    """As adversaries are, while the other side learns."""
    a, b = parameter([1.0]), parameter([2.0])

    @wg.jit
    def step(x: Any) -> None:
        a.grad = None
        b.requires_grad_(False)
        (a * b * x).sum().backward()
        b.requires_grad_(True)
        (a.detach() * b * x).sum().backward()
        with wg.no_grad():
            b.__isub__(b.grad)

    step(wg.asarray([1.0]))
    step(wg.asarray([0.5]))
    step(wg.asarray([0.25]))
    assert (a.grad.tolist(), b.grad.tolist(), b.tolist()) == ([0.125], [0.25], [0.25])
    assert b.requires_grad


def test_a_parameter_that_stays_frozen_is_refused() -> None:
    a, b = parameter([1.0]), wg.asarray([2.0])

    @wg.jit
    def freeze() -> Any:
        return a.requires_grad_(False) * 2

    @wg.jit
    def thaw() -> Any:
        return (b.requires_grad_() * 2).detach()

    for function in (freeze, thaw):
        with pytest.raises(CaptureError, match=r"requires_grad of a tensor of shape \(1,\).*set it outside"):
            function()
    assert a.requires_grad
    assert not b.requires_grad


def test_gradients_that_are_left_are_not_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collecting garbage takes a fifth of a second, and a capture would do it for each training step."""
    monkeypatch.setattr(import_module("webgrad.jit.escapes"), "gc", None)
    w = wg.asarray([1.0, 2.0], device="cpu").requires_grad_()

    @wg.jit
    def step(x: wg.Tensor) -> wg.Tensor:
        w.grad = None
        loss = (x * w).sum()
        loss.backward()
        return loss

    for factor in (2.0, 3.0):
        assert step(wg.asarray([factor, factor], device="cpu")).item() == 3 * factor
        assert w.grad is not None
        assert w.grad.tolist() == [factor, factor]


def test_a_gradient_that_is_left_and_kept_elsewhere_is_refused() -> None:
    w = wg.asarray([1.0, 2.0], device="cpu").requires_grad_()
    kept: list[wg.Tensor | None] = []

    @wg.jit
    def step(x: wg.Tensor) -> wg.Tensor:
        w.grad = None
        loss = (x * w).sum()
        loss.backward()
        kept.append(w.grad)
        return loss

    with pytest.raises(wg.CaptureError, match="kept outside"):
        step(wg.asarray([2.0, 2.0], device="cpu"))
